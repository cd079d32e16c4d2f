//! Every interleaving of a pool's workers with whoever spawns, wakes, aborts, joins
//! and ends it. Each is complete, without a preemption bound, unless it says so.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use loom::thread;
use reveille::protocol::{
    Bits, Description, Failure, Held, Join, Loom, LoomPark, Outcome, Park, Ran, Runnable, Schedule,
    StateLock, WakeList, WakerSlot, block_on, task,
};
use reveille::time::{Duration, Instant};

use super::blocking::{Blocking, Threads, ToBlocking};
use super::driver::{Drive, Driving};
use super::workers::{Alarm, Worker, Workers};

/// Explores every execution of `model`, and collects what each returned.
fn explore<T: Ord + Send + 'static>(
    model: impl Fn() -> T + Send + Sync + 'static,
) -> (usize, BTreeSet<T>) {
    explore_within(None, model)
}

/// As [`explore`], with so many preemptions of a thread that could go on.
fn explore_within<T: Ord + Send + 'static>(
    preemptions: Option<usize>,
    model: impl Fn() -> T + Send + Sync + 'static,
) -> (usize, BTreeSet<T>) {
    let executions = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let mut search = loom::model::Builder::new();
    search.preemption_bound = preemptions;
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

/// The executor's end beside the poll: whoever comes later drops the future. What
/// `cargo verify task` has found in two sections of `cancel`.
#[test]
fn a_cancellation_beside_a_poll_leaves_no_future_behind() {
    let (_, seen) = explore(|| {
        let slot = Arc::new(Slot::default());
        let drops = Drops::default();
        let polled = drops.counted();
        let waker = Arc::new(Mutex::new(None));
        let future = poll_fn({
            let waker = waker.clone();
            move |cx| {
                let _ = &polled;
                *waker.lock().unwrap() = Some(cx.waker().clone());
                Poll::<()>::Pending
            }
        });
        let (runnable, held, end) = task(future, ToSlot(slot.clone()), description());
        let cancelling = thread::spawn(move || {
            held.cancel();
            held
        });
        drop(runnable.run());
        let held = cancelling.join().unwrap();
        let dropped = drops.count();
        let cancelled = matches!(join(end), Err(Failure::Cancelled));
        drop((held, waker.lock().unwrap().take()));
        (dropped, cancelled)
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

/// Nothing to drive.
struct Idle;

impl Drive<Loom> for Idle {
    fn fire(&self) {}

    fn turn(&self, _: &mut Context<'_>) -> Option<Instant> {
        None
    }

    fn park(&self, park: &Arc<LoomPark>, _: Option<Instant>) {
        park.park();
    }
}

fn idle() -> Arc<Driving<Loom>> {
    Driving::new(Idle, Waker::noop().clone())
}

/// The life of a worker, as `Handle::work` has it.
fn work(workers: &Arc<Workers<Loom>>, driving: Arc<Driving<Loom>>, index: usize) {
    let mut worker = Worker::new(workers.clone(), driving, index);
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
            move || work(&workers, idle(), 0)
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
                let mut worker = Worker::new(workers, idle(), 1);
                drop(worker.next().expect("there is one to steal").run());
            }
        });
        let busy = Worker::new(workers.clone(), idle(), 0);
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
        work(&workers, idle(), 0);
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
            move || work(&workers, idle(), 0)
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

/// One sleep and its driver, as `Timers` have them, with the clock under the same lock:
/// its time is the bits. All of it is a section each, and small enough for the stacks of loom's threads. That
/// `Timers` keep this contract is explored over `Timers`.
struct OneSleep(StateLock<Sleeping, Loom>);

#[derive(Default)]
struct Sleeping {
    deadline: Option<u64>,
    fired: bool,
    sleeper: WakerSlot,
    /// Who is woken by the next turn in any case.
    turned: WakerSlot,
    driver: WakerSlot,
    /// Until when the driver needs no wake.
    until: u64,
    /// Who sleeps until then.
    parked: Option<Arc<LoomPark>>,
}

fn shown(bits: Bits) -> u64 {
    u64::try_from(bits.get()).unwrap()
}

impl Sleeping {
    fn begin(&mut self, deadline: u64, wakes: &mut WakeList) {
        self.deadline = Some(deadline);
        if deadline < self.until {
            wakes.wake(&mut self.driver);
        }
    }

    fn fire(&mut self, bits: Bits, wakes: &mut WakeList) {
        wakes.wake(&mut self.turned);
        if self.deadline.is_some_and(|at| at <= shown(bits)) {
            self.deadline = None;
            self.fired = true;
            wakes.wake(&mut self.sleeper);
        }
    }
}

impl OneSleep {
    fn new() -> Arc<Self> {
        Arc::new(Self(StateLock::new_in(Bits::EMPTY, Sleeping::default())))
    }

    fn tick(&self) {
        let parked = self.0.with(|section| {
            *section.bits = Bits::new(section.bits.get() + 1);
            let rings = section.state.until <= shown(*section.bits);
            section.state.parked.take_if(|_| rings)
        });
        if let Some(park) = parked {
            park.unpark();
        }
    }

    fn poll(&self, deadline: u64, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll(cx, true, |section, caller| {
            let state = section.state;
            if state.fired {
                return Poll::Ready(());
            }
            state.begin(deadline, section.wakes);
            caller.register(&mut state.sleeper);
            Poll::Pending
        })
    }

    fn begin(&self, deadline: u64) {
        self.0
            .with(|section| section.state.begin(deadline, section.wakes));
    }

    fn at_next_turn(&self, waker: Waker) {
        let mut cx = Context::from_waker(&waker);
        let registered: Poll<()> = self.0.poll(&mut cx, true, |section, caller| {
            caller.register(&mut section.state.turned);
            Poll::Pending
        });
        assert!(registered.is_pending());
    }

    /// Begins to sleep for a tick, which passes at once, and blocks the thread until
    /// somebody has seen that.
    fn block_on_a_tick(&self) {
        let mut ticked = false;
        block_on::<Loom, _>(poll_fn(|cx| {
            let poll = self.poll(1, cx);
            if !std::mem::replace(&mut ticked, true) {
                self.tick();
            }
            poll
        }));
    }
}

impl Drive<Loom> for Arc<OneSleep> {
    fn fire(&self) {
        self.0
            .with(|section| section.state.fire(*section.bits, section.wakes));
    }

    fn turn(&self, cx: &mut Context<'_>) -> Option<Instant> {
        let mut next = None;
        let registered: Poll<()> = self.0.poll(cx, true, |section, caller| {
            section.state.fire(*section.bits, section.wakes);
            next = section.state.deadline;
            section.state.until = next.unwrap_or(u64::MAX);
            caller.register(&mut section.state.driver);
            Poll::Pending
        });
        assert!(registered.is_pending());
        next.map(|next| Instant::ORIGIN + Duration::from_nanos(next))
    }

    /// Nothing ends it but the time and an unpark: where neither comes, loom tells.
    fn park(&self, park: &Arc<LoomPark>, until: Option<Instant>) {
        let until = until.map_or(u64::MAX, |until| {
            u64::try_from(until.since_origin().as_nanos()).unwrap()
        });
        let sleeps = self.0.with(|section| {
            let sleeps = shown(*section.bits) < until;
            section.state.parked = sleeps.then(|| park.clone());
            section.state.until = until;
            sleeps
        });
        if sleeps {
            park.park();
        }
    }
}

/// Workers that drive a sleep.
fn driven(count: usize) -> (Arc<Workers<Loom>>, Arc<Driving<Loom>>, Arc<OneSleep>) {
    let sleep = OneSleep::new();
    let workers = Workers::<Loom>::new(count, |_| INDEX.with(Cell::get));
    let alarm = Waker::from(Arc::new(Alarm(workers.clone())));
    let driving = Driving::new(sleep.clone(), alarm);
    (workers, driving, sleep)
}

/// TM-01: the worker goes to park while a deadline comes up, and is in time for it.
#[test]
fn a_worker_that_goes_to_park_does_not_miss_a_nearer_deadline() {
    let (executions, _) = explore(|| {
        let (workers, driving, sleep) = driven(1);
        let working = thread::spawn({
            let workers = workers.clone();
            move || Worker::new(workers, driving, 0).sleep()
        });
        sleep.block_on_a_tick();
        workers.close();
        working.join().unwrap();
    });
    assert!(executions > 10);
}

loom::thread_local! {
    static INDEX: Cell<Option<usize>> = Cell::new(None);
}

/// Is woken once, and has a task scheduled by whoever does.
struct Schedules {
    workers: Arc<Workers<Loom>>,
    runnable: Mutex<Option<Runnable<Loom>>>,
    then: Option<Arc<OneSleep>>,
}

impl Wake for Schedules {
    fn wake(self: Arc<Self>) {
        let runnable = self.runnable.lock().unwrap().take().unwrap();
        self.workers.scheduler().schedule(runnable);
        if let Some(sleep) = &self.then {
            sleep.begin(1);
        }
    }
}

/// When a sleep begins, seen from the worker that drives and whom its turn has given
/// something to run.
#[derive(Clone, Copy, PartialEq)]
enum Begins {
    BeforeItsTurn,
    AfterItsTurn,
    WhenItRuns,
}

/// The worker that drives goes to run what its turn has woken, and is kept by it until
/// a sleep ends: the other drives, whether it was idle before or comes to be.
fn left_behind(begins: Begins) {
    // All interleavings are too many; five preemptions are 145,542 executions of the
    // last.
    let (executions, _) = explore_within(Some(3), move || {
        let (workers, driving, sleep) = driven(2);
        if begins == Begins::BeforeItsTurn {
            sleep.begin(1);
        }
        let (runnable, held, _) = task(async {}, workers.scheduler(), description());
        let schedules = Schedules {
            workers: workers.clone(),
            runnable: Mutex::new(Some(runnable)),
            then: (begins == Begins::AfterItsTurn).then(|| sleep.clone()),
        };
        sleep.at_next_turn(Arc::new(schedules).into());
        let live = move |index| {
            INDEX.with(|it| it.set(Some(index)));
            let mut worker = Worker::new(workers.clone(), driving.clone(), index);
            if let Some(runnable) = worker.next() {
                drop(runnable);
                sleep.block_on_a_tick();
                workers.close();
            }
        };
        let other = thread::spawn({
            let live = live.clone();
            move || live(1)
        });
        live(0);
        other.join().unwrap();
        drop(held);
    });
    assert!(executions > 10);
}

#[test]
fn a_worker_that_drove_leaves_no_deadline_behind() {
    left_behind(Begins::BeforeItsTurn);
}

#[test]
fn a_worker_that_drove_leaves_no_deadline_behind_that_came_after_its_turn() {
    left_behind(Begins::AfterItsTurn);
}

#[test]
fn a_worker_that_drove_leaves_no_deadline_behind_that_comes_after_it() {
    left_behind(Begins::WhenItRuns);
}

/// Threads of loom's, idle for ever or not at all.
struct OfLoom {
    too_long: bool,
}

impl Threads<Loom> for OfLoom {
    fn start(&self, life: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        thread::spawn(life);
        Ok(())
    }

    fn park(&self, park: &LoomPark) -> bool {
        if !self.too_long {
            park.park();
        }
        self.too_long
    }
}

fn calls(most: usize, too_long: bool) -> Arc<Blocking<Loom>> {
    let blocking = Blocking::new(most, OfLoom { too_long });
    blocking.run_by(Arc::new(|call: Runnable<Loom>| drop(call.run())));
    blocking
}

fn call(blocking: &Arc<Blocking<Loom>>, answer: u32) -> (Held<Loom>, Join<u32, Loom>) {
    let scheduler = ToBlocking(blocking.clone());
    let (runnable, held, end) = task(async move { answer }, scheduler, description());
    blocking.push(runnable);
    (held, end)
}

/// A call comes while the only thread ends the one before, goes to sleep, or ends for
/// having been idle for too long. Within three preemptions: all are too many.
#[test]
fn a_call_that_blocks_is_not_missed_by_a_thread_that_goes_to_sleep_or_ends() {
    for too_long in [false, true] {
        let (executions, seen) = explore_within(Some(3), move || {
            let blocking = calls(1, too_long);
            let answers = [1, 2].map(|answer| {
                let (held, end) = call(&blocking, answer);
                let answer = join(end).ok();
                drop(held);
                answer
            });
            blocking.close();
            answers
        });
        assert!(executions > 10);
        assert_eq!(seen, BTreeSet::from([[Some(1), Some(2)]]));
    }
}

/// Two calls at a time, which one thread takes both, or two do. Within two preemptions.
#[test]
fn calls_that_block_are_taken_once_each() {
    for most in [1, 2] {
        let (executions, seen) = explore_within(Some(2), move || {
            let blocking = calls(most, false);
            let calls = [1, 2].map(|answer| call(&blocking, answer));
            let answers = calls.map(|(held, end)| {
                let answer = join(end).ok();
                drop(held);
                answer
            });
            blocking.close();
            answers
        });
        assert!(executions > 10);
        assert_eq!(seen, BTreeSet::from([[Some(1), Some(2)]]));
    }
}

/// The end comes while a thread takes a call or is idle: it is run or left, and left it
/// is cancelled by whoever holds it; the thread ends, or loom would tell.
#[test]
fn a_call_that_blocks_beside_the_end_runs_or_is_cancelled() {
    let (_, seen) = explore(|| {
        let blocking = calls(1, false);
        let ending = thread::spawn({
            let blocking = blocking.clone();
            move || blocking.close()
        });
        let (held, end) = call(&blocking, 7);
        ending.join().unwrap();
        held.cancel();
        let outcome = join(end);
        drop(held);
        match outcome {
            Ok(answer) => Some(answer),
            Err(Failure::Cancelled) => None,
            Err(Failure::Panicked(panic)) => std::panic::resume_unwind(panic),
        }
    });
    assert_eq!(seen, BTreeSet::from([None, Some(7)]));
}
