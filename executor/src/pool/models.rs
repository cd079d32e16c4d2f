//! Every interleaving of a pool's workers with whoever spawns, wakes, aborts, joins
//! and ends it. The models have no preemption bound: each is complete.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use loom::thread;
use reveille::protocol::{
    Description, Failure, Join, Loom, Outcome, Ran, Runnable, Schedule, block_on, task,
};

use super::workers::{Worker, Workers};

/// Explores every execution of `model`, and collects what each returned.
fn explore<T: Ord + Send + 'static>(
    model: impl Fn() -> T + Send + Sync + 'static,
) -> (usize, BTreeSet<T>) {
    let executions = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let mut search = loom::model::Builder::new();
    search.preemption_bound = None;
    search.max_duration = None;
    search.check({
        let (executions, seen) = (executions.clone(), seen.clone());
        move || {
            let outcome = model();
            seen.lock().unwrap().insert(outcome);
            executions.fetch_add(1, Ordering::Relaxed);
        }
    });
    let executions = executions.load(Ordering::Relaxed);
    assert_ne!(executions, 0, "nothing was explored");
    println!("{executions} executions");
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (executions, seen)
}

fn description() -> Description {
    Description {
        id: 0,
        location: std::panic::Location::caller(),
        name: None,
    }
}

/// Counts its drops, which the model asks for at its end.
#[derive(Clone, Default)]
struct Drops(Arc<AtomicUsize>);

struct Counted(Arc<AtomicUsize>);

impl Drops {
    fn counted(&self) -> Counted {
        Counted(self.0.clone())
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn join<T: Send + 'static>(end: Join<T, Loom>) -> Outcome<T> {
    let mut end = Some(end);
    block_on::<Loom, _>(poll_fn(|cx| Join::poll(&mut end, cx)))
}

/// A queue of one, which a runner waits for.
#[derive(Default)]
struct Slot(loom::sync::Mutex<Option<Runnable<Loom>>>);

struct ToSlot(Arc<Slot>);

impl Schedule<Loom> for ToSlot {
    fn schedule(&self, task: Runnable<Loom>) {
        let before = self.0.0.lock().unwrap().replace(task);
        assert!(before.is_none(), "a task was scheduled twice");
    }
}

impl Slot {
    fn run(&self) -> Option<Ran<Loom>> {
        let runnable = self.0.lock().unwrap().take()?;
        Some(runnable.run())
    }
}

/// A future that is pending once, giving its waker to another thread, and the task
/// of it on a slot, run once. Answers how often it was polled in all.
fn woken(
    meanwhile: impl Fn(Waker) + Send + Sync + Clone + 'static,
) -> (usize, usize, Option<bool>) {
    let slot = Arc::new(Slot::default());
    let polls = Arc::new(AtomicUsize::new(0));
    let drops = Drops::default();
    let other = Arc::new(Mutex::new(None));
    let future = poll_fn({
        let (polls, other, held) = (polls.clone(), other.clone(), drops.counted());
        move |cx| {
            let _ = &held;
            if polls.fetch_add(1, Ordering::Relaxed) > 0 {
                return Poll::Ready(());
            }
            let (waker, meanwhile) = (cx.waker().clone(), meanwhile.clone());
            *other.lock().unwrap() = Some(thread::spawn(move || meanwhile(waker)));
            // Here the other thread may come in between.
            thread::yield_now();
            Poll::Pending
        }
    });
    let (runnable, held, end) = task(future, ToSlot(slot.clone()), description());
    let mut next = match runnable.run() {
        Ran::Woken(runnable) => Some(runnable),
        Ran::Waits => None,
        Ran::Done(_) => panic!("it waits once"),
    };
    let other = other.lock().unwrap().take().expect("it was polled");
    other.join().unwrap();
    while let Some(runnable) = next.take() {
        if let Ran::Woken(again) = runnable.run() {
            next = Some(again);
        }
    }
    while slot.run().is_some() {}
    let finished = end.is_finished();
    let outcome = finished.then(|| join(end).is_ok());
    drop(held);
    (polls.load(Ordering::Relaxed), drops.count(), outcome)
}

#[test]
fn a_wake_during_or_after_a_poll_is_one_further_poll() {
    let (_, seen) = explore(|| woken(|waker| waker.wake()));
    assert_eq!(seen, BTreeSet::from([(2, 1, Some(true))]));
}

#[test]
fn wakes_merge_and_one_after_the_end_is_nothing() {
    let (_, seen) = explore(|| {
        woken(|waker| {
            waker.wake_by_ref();
            waker.wake();
        })
    });
    assert_eq!(seen, BTreeSet::from([(2, 1, Some(true))]));
}

/// Abort beside the poll: the future is dropped once and not while it is polled,
/// which loom's cell would report.
#[test]
fn an_abort_beside_a_poll_drops_the_future_once() {
    let (_, seen) = explore(|| {
        let slot = Arc::new(Slot::default());
        let drops = Drops::default();
        let polled = drops.counted();
        let future = poll_fn(move |_| {
            let _ = &polled;
            thread::yield_now();
            Poll::<()>::Pending
        });
        let (runnable, held, end) = task(future, ToSlot(slot.clone()), description());
        let abort = end.abort_handle();
        let aborting = thread::spawn(move || abort.abort());
        drop(runnable.run());
        aborting.join().unwrap();
        while slot.run().is_some() {}
        let cancelled = matches!(join(end), Err(Failure::Cancelled));
        drop(held);
        (drops.count(), cancelled)
    });
    assert_eq!(seen, BTreeSet::from([(1, true)]));
}

/// The join end waits, or leaves, beside the completion: the output is delivered or
/// dropped, once.
#[test]
fn a_join_beside_the_completion_gets_the_output() {
    let (_, seen) = explore(|| {
        let drops = Drops::default();
        let output = drops.counted();
        let slot = Arc::new(Slot::default());
        let (runnable, held, end) = task(async { output }, ToSlot(slot), description());
        let running = thread::spawn(move || drop(runnable.run()));
        let delivered = join(end).is_ok();
        running.join().unwrap();
        drop(held);
        (delivered, drops.count())
    });
    assert_eq!(seen, BTreeSet::from([(true, 1)]));
}

#[test]
fn a_join_end_that_leaves_beside_the_completion_leaves_nothing() {
    let (_, seen) = explore(|| {
        let drops = Drops::default();
        let output = drops.counted();
        let slot = Arc::new(Slot::default());
        let (runnable, held, end) = task(async { output }, ToSlot(slot), description());
        let running = thread::spawn(move || drop(runnable.run()));
        let mut end = Some(end);
        let polled = Join::poll(&mut end, &mut Context::from_waker(Waker::noop())).is_ready();
        drop(end);
        running.join().unwrap();
        drop(held);
        (polled, drops.count())
    });
    assert_eq!(seen, BTreeSet::from([(false, 1), (true, 1)]));
}

/// EX-07: a detached task that waits and loses its last waker.
#[test]
fn an_orphan_is_dropped_by_its_executor() {
    let (_, seen) = explore(|| woken(drop).0);
    assert_eq!(seen, BTreeSet::from([1]), "with a handle it waits");
    let (_, seen) = explore(|| {
        let slot = Arc::new(Slot::default());
        let drops = Drops::default();
        let held_value = drops.counted();
        let waker = Arc::new(Mutex::new(None));
        let future = poll_fn({
            let waker = waker.clone();
            move |cx| {
                let _ = &held_value;
                *waker.lock().unwrap() = Some(cx.waker().clone());
                Poll::<()>::Pending
            }
        });
        let (runnable, held, end) = task(future, ToSlot(slot.clone()), description());
        drop(runnable.run());
        let waker = waker.lock().unwrap().take();
        let dropping = thread::spawn(move || drop(waker));
        drop(end);
        dropping.join().unwrap();
        let by_wakers = drops.count();
        while slot.run().is_some() {}
        drop(held);
        (by_wakers, drops.count())
    });
    assert_eq!(seen, BTreeSet::from([(0, 1)]));
}

/// The life of a worker, as `Handle::work` has it.
fn work(workers: &Arc<Workers<Loom>>, index: usize) {
    let mut worker = Worker::new(workers.clone(), index);
    while let Some(runnable) = worker.next() {
        match runnable.run() {
            Ran::Waits => {}
            Ran::Woken(runnable) => worker.again(runnable),
            Ran::Done(key) => workers.done(key),
        }
    }
}

fn spawn<F>(workers: &Arc<Workers<Loom>>, future: F) -> Join<F::Output, Loom>
where
    F: Future<Output: Send> + Send + 'static,
{
    let (runnable, held, end) = task(future, workers.scheduler(), description());
    workers.start(runnable, held);
    end
}

#[test]
fn a_worker_that_goes_to_sleep_does_not_miss_a_spawn() {
    let (_, seen) = explore(|| {
        let workers = Workers::<Loom>::new(1, |_| None);
        let working = thread::spawn({
            let workers = workers.clone();
            move || work(&workers, 0)
        });
        let answer = join(spawn(&workers, async { 7 })).ok();
        workers.close();
        working.join().unwrap();
        answer
    });
    assert_eq!(seen, BTreeSet::from([Some(7)]));
}

/// One worker puts two tasks into its queue, and runs neither; the other steals.
#[test]
fn a_worker_that_goes_to_sleep_does_not_miss_what_it_can_steal() {
    let (_, seen) = explore(|| {
        let workers = Workers::<Loom>::new(2, |_| None);
        let stealing = thread::spawn({
            let workers = workers.clone();
            move || {
                let mut worker = Worker::new(workers, 1);
                drop(worker.next().expect("there is one to steal").run());
            }
        });
        let busy = Worker::new(workers.clone(), 0);
        let (first, held, end) = task(async { 1 }, workers.scheduler(), description());
        let (second, held_too, _) = task(async { 2 }, workers.scheduler(), description());
        busy.again(first);
        busy.again(second);
        stealing.join().unwrap();
        drop((held, held_too));
        join(end).ok()
    });
    assert_eq!(seen, BTreeSet::from([Some(1)]));
}

#[test]
fn a_spawn_beside_the_end_runs_or_is_cancelled() {
    let (_, seen) = explore(|| {
        let workers = Workers::<Loom>::new(1, |_| None);
        let drops = Drops::default();
        let ending = thread::spawn({
            let workers = workers.clone();
            move || workers.close()
        });
        let held = drops.counted();
        let end = spawn(&workers, async move {
            let _held = held;
        });
        ending.join().unwrap();
        work(&workers, 0);
        let cancelled = matches!(join(end), Err(Failure::Cancelled));
        (cancelled, drops.count())
    });
    assert_eq!(
        seen,
        BTreeSet::from([(true, 1)]),
        "nobody ran it before the end"
    );
}

#[test]
fn a_task_that_waits_is_cancelled_by_the_worker_at_the_end() {
    let (_, seen) = explore(|| {
        let workers = Workers::<Loom>::new(1, |_| None);
        let working = thread::spawn({
            let workers = workers.clone();
            move || work(&workers, 0)
        });
        let drops = Drops::default();
        let held = drops.counted();
        let end = spawn(&workers, async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        workers.close();
        let cancelled = matches!(join(end), Err(Failure::Cancelled));
        working.join().unwrap();
        (cancelled, drops.count())
    });
    assert_eq!(seen, BTreeSet::from([(true, 1)]));
}
