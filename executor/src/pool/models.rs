//! Models of a pool: its workers beside threads that spawn, wake, abort, join and end it.
//!
//! Under loom each model is complete, without a preemption bound, unless its comment says
//! otherwise. Shuttle draws some thousand executions of each, which may have more
//! preemptions than such a bound.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use reveille::backend::{BlockingBackend, Loom, Park, Shuttle};
use reveille::protocol::{Bits, StateLock, WakeList, WakerSlot, block_on};
use reveille::raw::{Failure, Join, Metadata, Outcome, RunResult, Runnable, Schedule, task};
use reveille::time::{Duration, Instant};
use shuttle::scheduler::RandomScheduler;

use super::driver::{Drive, Driving};
use super::workers::{DeadlineWaker, Worker, Workers};
use crate::blocking::{Blocking, Spawned, Threads};
use crate::registry::Registry;

/// Explores a model: a backend, with threads of its own.
trait Checker: BlockingBackend {
    /// Runs executions of a model. A checker that explores runs all executions with at
    /// most `preemptions` switches away from a thread that could go on. A checker that
    /// draws ignores the bound.
    fn check(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static);

    /// Starts a thread of the model. Returns a function that joins it.
    fn spawn<T: Send + 'static>(
        life: impl FnOnce() -> T + Send + 'static,
    ) -> Box<dyn FnOnce() -> T + Send>;

    /// Lets other threads run in between.
    fn yield_now();

    /// Makes the thread a worker.
    fn enter_worker(index: usize);

    /// Makes the thread no worker any more.
    fn leave_worker();

    /// Returns the index of the worker that the thread is.
    fn worker() -> Option<usize>;
}

loom::thread_local! {
    static OF_LOOM: Cell<Option<usize>> = Cell::new(None);
}

impl Checker for Loom {
    fn check(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
        let mut search = loom::model::Builder::new();
        search.preemption_bound = preemptions;
        search.max_duration = None;
        search.check(model);
    }

    fn spawn<T: Send + 'static>(
        life: impl FnOnce() -> T + Send + 'static,
    ) -> Box<dyn FnOnce() -> T + Send> {
        let handle = loom::thread::spawn(life);
        Box::new(|| handle.join().unwrap())
    }

    fn yield_now() {
        loom::thread::yield_now();
    }

    fn enter_worker(index: usize) {
        OF_LOOM.with(|it| it.set(Some(index)));
    }

    fn leave_worker() {
        OF_LOOM.with(|it| it.set(None));
    }

    fn worker() -> Option<usize> {
        OF_LOOM.with(Cell::get)
    }
}

shuttle::thread_local! {
    static OF_SHUTTLE: Cell<Option<usize>> = Cell::new(None);
}

/// The number of executions of a model that shuttle draws, from a fixed seed.
const DRAWN: usize = 2_000;

impl Checker for Shuttle {
    fn check(_: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
        let draw = RandomScheduler::new_from_seed(7, DRAWN);
        shuttle::Runner::new(draw, shuttle::Config::new()).run(model);
    }

    fn spawn<T: Send + 'static>(
        life: impl FnOnce() -> T + Send + 'static,
    ) -> Box<dyn FnOnce() -> T + Send> {
        let handle = shuttle::thread::spawn(life);
        Box::new(|| handle.join().unwrap())
    }

    fn yield_now() {
        shuttle::thread::yield_now();
    }

    fn enter_worker(index: usize) {
        OF_SHUTTLE.with(|it| it.set(Some(index)));
    }

    fn leave_worker() {
        OF_SHUTTLE.with(|it| it.set(None));
    }

    fn worker() -> Option<usize> {
        OF_SHUTTLE.with(Cell::get)
    }
}

/// Runs each model under each checker.
macro_rules! models {
    ($($model:ident),* $(,)?) => {
        mod under_loom {
            $(#[test]
            fn $model() {
                super::$model::<reveille::backend::Loom>();
            })*
        }

        mod under_shuttle {
            $(#[test]
            fn $model() {
                super::$model::<reveille::backend::Shuttle>();
            })*
        }
    };
}

/// Explores `model`, and collects what its executions return.
fn explore<C: Checker, T: Ord + Send + 'static>(
    model: impl Fn() -> T + Send + Sync + 'static,
) -> (usize, BTreeSet<T>) {
    explore_within::<C, T>(None, model)
}

/// Explores `model` as [`explore`] does, with at most `preemptions` preemptions.
fn explore_within<C: Checker, T: Ord + Send + 'static>(
    preemptions: Option<usize>,
    model: impl Fn() -> T + Send + Sync + 'static,
) -> (usize, BTreeSet<T>) {
    let executions = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    C::check(preemptions, {
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

fn metadata() -> Metadata<()> {
    Metadata {
        id: 0,
        location: std::panic::Location::caller(),
        name: (),
    }
}

/// Counts drops. A model checks the count at its end.
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

fn join<C: Checker, T: Send + 'static>(mut end: Join<T, C>) -> Outcome<T> {
    block_on::<C, _>(poll_fn(|cx| end.poll(cx)))
}

/// A queue with room for one runnable, which a runner waits for.
struct Slot<C: Checker>(StateLock<Option<Runnable<C>>, C>);

struct ToSlot<C: Checker>(Arc<Slot<C>>);

impl<C: Checker> Schedule<C> for ToSlot<C> {
    fn schedule(&self, task: Runnable<C>) {
        let before = self.0.0.with(|section| section.state.replace(task));
        assert!(before.is_none(), "a task was scheduled twice");
    }
}

impl<C: Checker> Slot<C> {
    fn new() -> Arc<Self> {
        Arc::new(Self(StateLock::new_in(Bits::EMPTY, None)))
    }

    fn run(&self) -> Option<RunResult<C>> {
        let runnable = self.0.with(|section| section.state.take())?;
        Some(runnable.run())
    }
}

/// Runs the task of a future that is pending once and gives its waker to another thread.
/// The task is scheduled into a slot, and run from it. Returns how often the future was
/// polled.
fn woken<C: Checker>(
    meanwhile: impl Fn(Waker) + Send + Sync + Clone + 'static,
) -> (usize, usize, Option<bool>) {
    let slot = Slot::<C>::new();
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
            *other.lock().unwrap() = Some(C::spawn(move || meanwhile(waker)));
            // The other thread may run in between.
            C::yield_now();
            Poll::Pending
        }
    });
    let (runnable, held, end) = task(future, ToSlot(slot.clone()), metadata());
    let mut next = match runnable.run() {
        RunResult::Woken(runnable) => Some(runnable),
        RunResult::Pending => None,
        RunResult::Completed(_) => panic!("the future is pending once"),
    };
    let other = other.lock().unwrap().take().expect("the future was polled");
    other();
    while let Some(runnable) = next.take() {
        if let RunResult::Woken(again) = runnable.run() {
            next = Some(again);
        }
    }
    while slot.run().is_some() {}
    let finished = end.is_finished();
    let outcome = finished.then(|| join(end).is_ok());
    drop(held);
    (polls.load(Ordering::Relaxed), drops.count(), outcome)
}

fn a_wake_during_or_after_a_poll_is_one_further_poll<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| woken::<C>(|waker| waker.wake()));
    assert_eq!(seen, BTreeSet::from([(2, 1, Some(true))]));
}

fn wakes_merge_and_one_after_the_end_is_nothing<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| {
        woken::<C>(|waker| {
            waker.wake_by_ref();
            waker.wake();
        })
    });
    assert_eq!(seen, BTreeSet::from([(2, 1, Some(true))]));
}

/// An abort beside the poll. The future is dropped once, and not while it is polled,
/// which loom's cell would report.
fn an_abort_beside_a_poll_drops_the_future_once<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| {
        let slot = Slot::<C>::new();
        let drops = Drops::default();
        let polled = drops.counted();
        let future = poll_fn(move |_| {
            let _ = &polled;
            C::yield_now();
            Poll::<()>::Pending
        });
        let (runnable, held, end) = task(future, ToSlot(slot.clone()), metadata());
        let abort = end.abort_handle();
        let aborting = C::spawn(move || abort.abort());
        drop(runnable.run());
        aborting();
        while slot.run().is_some() {}
        let cancelled = matches!(join(end), Err(Failure::Cancelled));
        drop(held);
        (drops.count(), cancelled)
    });
    assert_eq!(seen, BTreeSet::from([(1, true)]));
}

/// The end of the executor beside the poll. The later of the two drops the future. `cargo
/// verify task` found this fault when `cancel` had two sections.
fn a_cancellation_beside_a_poll_leaves_no_future_behind<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| {
        let slot = Slot::<C>::new();
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
        let (runnable, held, end) = task(future, ToSlot(slot.clone()), metadata());
        let cancelling = C::spawn(move || {
            held.cancel();
            held
        });
        drop(runnable.run());
        let held = cancelling();
        let dropped = drops.count();
        let cancelled = matches!(join(end), Err(Failure::Cancelled));
        drop((held, waker.lock().unwrap().take()));
        (dropped, cancelled)
    });
    assert_eq!(seen, BTreeSet::from([(1, true)]));
}

/// The join handle waits, or is dropped, beside the completion. The output is delivered
/// once, or dropped once.
fn a_join_beside_the_completion_gets_the_output<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| {
        let drops = Drops::default();
        let output = drops.counted();
        let slot = Slot::<C>::new();
        let (runnable, held, end) = task(async { output }, ToSlot(slot), metadata());
        let running = C::spawn(move || drop(runnable.run()));
        let delivered = join(end).is_ok();
        running();
        drop(held);
        (delivered, drops.count())
    });
    assert_eq!(seen, BTreeSet::from([(true, 1)]));
}

fn a_join_end_that_leaves_beside_the_completion_leaves_nothing<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| {
        let drops = Drops::default();
        let output = drops.counted();
        let slot = Slot::<C>::new();
        let (runnable, held, end) = task(async { output }, ToSlot(slot), metadata());
        let running = C::spawn(move || drop(runnable.run()));
        let mut end = end;
        let polled = end.poll(&mut Context::from_waker(Waker::noop())).is_ready();
        drop(end);
        running();
        drop(held);
        (polled, drops.count())
    });
    assert_eq!(seen, BTreeSet::from([(false, 1), (true, 1)]));
}

/// A scheduler whose drop shows that the memory of its task has been freed.
struct Freed(#[allow(dead_code, reason = "its drop is counted")] Counted);

impl<C: Checker> Schedule<C> for Freed {
    fn schedule(&self, _: Runnable<C>) {
        unreachable!("nothing wakes the task");
    }
}

/// A task completes while its executor ends, which cancels the tasks that it still has.
/// The join handle takes the outcome later, or leaves meanwhile. The memory is freed once, whichever of them
/// releases the reference of the executor.
fn a_completion_beside_the_end_frees_the_task_once<C: Checker>() {
    for leaves in [false, true] {
        let (executions, seen) = explore::<C, _>(move || {
            let freed = Drops::default();
            let (runnable, owned, end) = task(async { 7 }, Freed(freed.counted()), metadata());
            let registry = StateLock::<Registry<C>, C>::new_in(Bits::EMPTY, Registry::default());
            registry.with(|section| section.state.insert(owned));
            let registry = Arc::new(registry);
            let (stays, leaving) = match leaves {
                true => (None, Some(end)),
                false => (Some(end), None),
            };
            let ending = C::spawn({
                let registry = registry.clone();
                move || {
                    if let Some(owned) = registry.with(|section| section.state.pop()) {
                        owned.cancel();
                    }
                    drop(leaving);
                }
            });
            if let RunResult::Completed(completion) = runnable.run() {
                let key = completion.key();
                let owned = registry.with(|section| section.state.remove(key));
                completion.complete(owned);
            }
            ending();
            (stays.and_then(|end| join(end).ok()), freed.count())
        });
        assert!(executions > 10);
        let ends: &[_] = match leaves {
            true => &[(None, 1)],
            false => &[(None, 1), (Some(7), 1)],
        };
        assert_eq!(seen, ends.iter().copied().collect());
    }
}

/// EX-07: a detached task waits, and loses its last waker.
fn an_orphan_is_dropped_by_its_executor<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| woken::<C>(drop).0);
    assert_eq!(seen, BTreeSet::from([1]), "a task with a handle waits");
    let (_, seen) = explore::<C, _>(|| {
        let slot = Slot::<C>::new();
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
        let (runnable, held, end) = task(future, ToSlot(slot.clone()), metadata());
        drop(runnable.run());
        let waker = waker.lock().unwrap().take();
        let dropping = C::spawn(move || drop(waker));
        drop(end);
        dropping();
        let by_wakers = drops.count();
        while slot.run().is_some() {}
        drop(held);
        (by_wakers, drops.count())
    });
    assert_eq!(seen, BTreeSet::from([(0, 1)]));
}

/// A driver with nothing to drive.
struct Idle;

impl<C: Checker> Drive<C> for Idle {
    fn fire(&self) {}

    fn turn(&self, _: &mut Context<'_>) -> Option<Instant> {
        None
    }

    fn park(&self, park: &Arc<C::Park>, _: Option<Instant>) {
        park.park();
    }
}

fn idle<C: Checker>() -> Arc<Driving<C>> {
    Driving::new(Idle, Waker::noop().clone())
}

/// Runs tasks as a worker does, like `Handle::work`.
fn work<C: Checker>(workers: &Arc<Workers<C>>, driving: Arc<Driving<C>>, index: usize) {
    let mut worker = Worker::new(workers.clone(), driving, index);
    while let Some(runnable) = worker.next() {
        match runnable.run() {
            RunResult::Pending => {}
            RunResult::Woken(runnable) => worker.again(runnable),
            RunResult::Completed(completion) => workers.complete(completion),
        }
    }
}

fn spawn<C, F>(workers: &Arc<Workers<C>>, future: F) -> Join<F::Output, C>
where
    C: Checker,
    F: Future<Output: Send> + Send + 'static,
{
    let (runnable, held, end) = task(future, workers.scheduler(), metadata());
    if let Err(refused) = workers.start(runnable, held) {
        refused.cancel();
    }
    end
}

fn a_worker_that_goes_to_sleep_does_not_miss_a_spawn<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| {
        let workers = Workers::<C>::new(1, |_| None);
        let working = C::spawn({
            let workers = workers.clone();
            move || work(&workers, idle(), 0)
        });
        let answer = join(spawn(&workers, async { 7 })).ok();
        workers.close();
        working();
        answer
    });
    assert_eq!(seen, BTreeSet::from([Some(7)]));
}

/// One worker puts two tasks into its queue and runs neither. The other steals one.
fn a_worker_that_goes_to_sleep_does_not_miss_what_it_can_steal<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| {
        let workers = Workers::<C>::new(2, |_| None);
        let stealing = C::spawn({
            let workers = workers.clone();
            move || {
                let mut worker = Worker::new(workers, idle(), 1);
                drop(worker.next().expect("there is a task to steal").run());
            }
        });
        let busy = Worker::new(workers.clone(), idle(), 0);
        let (first, held, end) = task(async { 1 }, workers.scheduler(), metadata());
        let (second, held_too, _) = task(async { 2 }, workers.scheduler(), metadata());
        busy.again(first);
        busy.again(second);
        stealing();
        drop((held, held_too));
        join(end).ok()
    });
    assert_eq!(seen, BTreeSet::from([Some(1)]));
}

fn a_spawn_beside_the_end_runs_or_is_cancelled<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| {
        let workers = Workers::<C>::new(1, |_| None);
        let drops = Drops::default();
        let ending = C::spawn({
            let workers = workers.clone();
            move || workers.close()
        });
        let held = drops.counted();
        let end = spawn(&workers, async move {
            let _held = held;
        });
        ending();
        work(&workers, idle(), 0);
        let cancelled = matches!(join(end), Err(Failure::Cancelled));
        (cancelled, drops.count())
    });
    assert_eq!(
        seen,
        BTreeSet::from([(true, 1)]),
        "no worker ran it before the end"
    );
}

fn a_task_that_waits_is_cancelled_by_the_worker_at_the_end<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| {
        let workers = Workers::<C>::new(1, |_| None);
        let working = C::spawn({
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
        working();
        (cancelled, drops.count())
    });
    assert_eq!(seen, BTreeSet::from([(true, 1)]));
}

/// A driver whose `fire` has another worker steal what there is to be stolen.
struct Steals<C: Checker>(Mutex<Worker<C>>);

impl<C: Checker> Drive<C> for Steals<C> {
    fn fire(&self) {
        let stolen = self.0.lock().unwrap().next();
        drop(stolen.expect("there is a task to steal"));
    }

    fn turn(&self, _: &mut Context<'_>) -> Option<Instant> {
        None
    }

    fn park(&self, _: &Arc<C::Park>, _: Option<Instant>) {
        unreachable!("the worker has a task to run, and does not park");
    }
}

/// A worker holds its lifo slot back while it fires. The task is found afterwards, even
/// if its queue was found empty in between.
fn a_lifo_slot_is_not_lost_where_the_rest_is_stolen<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| {
        C::enter_worker(0);
        let workers = Workers::<C>::new(2, |_| C::worker());
        let thief = Worker::new(workers.clone(), idle(), 1);
        let driving = Driving::new(Steals(Mutex::new(thief)), Waker::noop().clone());
        let mut busy = Worker::new(workers.clone(), driving, 0);
        let (first, held, _) = task(async {}, workers.scheduler(), metadata());
        let (lifo, held_too, end) = task(async { 7 }, workers.scheduler(), metadata());
        workers.scheduler().schedule(first);
        workers.scheduler().schedule(lifo);
        busy.fire();
        drop(busy.next().map(Runnable::run));
        drop((held, held_too));
        join(end).ok()
    });
    assert_eq!(seen, BTreeSet::from([Some(7)]));
}

/// One sleep and its driver, in place of `Timers`. The clock is under the same lock: its
/// time is the bits. Each operation is one section, and small enough for the stacks of
/// loom's threads. Other models explore that `Timers` keep this contract.
struct OneSleep<C: Checker>(StateLock<Sleeping<C>, C>);

struct Sleeping<C: Checker> {
    deadline: Option<u64>,
    fired: bool,
    sleeper: WakerSlot,
    /// Woken at the next turn, whatever is due.
    turned: WakerSlot,
    driver: WakerSlot,
    /// The time up to which the driver needs no wake.
    until: u64,
    /// The thread that sleeps until that time.
    parked: Option<Arc<C::Park>>,
}

fn shown(bits: Bits) -> u64 {
    u64::try_from(bits.get()).unwrap()
}

impl<C: Checker> Sleeping<C> {
    fn new() -> Self {
        Self {
            deadline: None,
            fired: false,
            sleeper: WakerSlot::new(),
            turned: WakerSlot::new(),
            driver: WakerSlot::new(),
            until: 0,
            parked: None,
        }
    }

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

impl<C: Checker> OneSleep<C> {
    fn new() -> Arc<Self> {
        Arc::new(Self(StateLock::new_in(Bits::EMPTY, Sleeping::new())))
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
        self.0.poll(cx, true, |section, registration| {
            let state = section.state;
            if state.fired {
                return Ok(());
            }
            state.begin(deadline, section.wakes);
            Err(registration.register(&mut state.sleeper))
        })
    }

    fn begin(&self, deadline: u64) {
        self.0
            .with(|section| section.state.begin(deadline, section.wakes));
    }

    fn at_next_turn(&self, waker: Waker) {
        let mut cx = Context::from_waker(&waker);
        let registered: Poll<()> = self.0.poll(&mut cx, true, |section, registration| {
            Err(registration.register(&mut section.state.turned))
        });
        assert!(registered.is_pending());
    }

    /// Begins to sleep for a tick, which passes at once, and blocks the thread until a
    /// turn has fired the sleep.
    fn block_on_a_tick(&self) {
        let mut ticked = false;
        block_on::<C, _>(poll_fn(|cx| {
            let poll = self.poll(1, cx);
            if !std::mem::replace(&mut ticked, true) {
                self.tick();
            }
            poll
        }));
    }
}

impl<C: Checker> Drive<C> for Arc<OneSleep<C>> {
    fn fire(&self) {
        self.0
            .with(|section| section.state.fire(*section.bits, section.wakes));
    }

    fn turn(&self, cx: &mut Context<'_>) -> Option<Instant> {
        let mut next = None;
        let registered: Poll<()> = self.0.poll(cx, true, |section, registration| {
            section.state.fire(*section.bits, section.wakes);
            next = section.state.deadline;
            section.state.until = next.unwrap_or(u64::MAX);
            Err(registration.register(&mut section.state.driver))
        });
        assert!(registered.is_pending());
        next.map(|next| Instant::ORIGIN + Duration::from_nanos(next))
    }

    /// Only the time and an unpark end it. If neither comes, loom reports a deadlock.
    fn park(&self, park: &Arc<C::Park>, until: Option<Instant>) {
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
type Driven<C> = (Arc<Workers<C>>, Arc<Driving<C>>, Arc<OneSleep<C>>);

fn driven<C: Checker>(count: usize) -> Driven<C> {
    let sleep = OneSleep::new();
    let workers = Workers::<C>::new(count, |_| C::worker());
    let deadline_waker = Waker::from(Arc::new(DeadlineWaker(workers.clone())));
    let driving = Driving::new(sleep.clone(), deadline_waker);
    (workers, driving, sleep)
}

/// TM-01: a deadline comes while the worker goes to park. The worker fires it in time.
fn a_worker_that_goes_to_park_does_not_miss_a_nearer_deadline<C: Checker>() {
    let (executions, _) = explore::<C, _>(|| {
        let (workers, driving, sleep) = driven::<C>(1);
        let working = C::spawn({
            let workers = workers.clone();
            move || Worker::new(workers, driving, 0).sleep()
        });
        sleep.block_on_a_tick();
        workers.close();
        working();
    });
    assert!(executions > 10);
}

/// A waker that schedules a task from the thread that wakes it.
struct Schedules<C: Checker> {
    workers: Arc<Workers<C>>,
    runnable: Mutex<Option<Runnable<C>>>,
    then: Option<Arc<OneSleep<C>>>,
}

impl<C: Checker> Wake for Schedules<C> {
    fn wake(self: Arc<Self>) {
        let runnable = self.runnable.lock().unwrap().take().unwrap();
        self.workers.scheduler().schedule(runnable);
        if let Some(sleep) = &self.then {
            sleep.begin(1);
        }
    }
}

/// When a sleep begins, relative to the turn that gives the driving worker a task to run.
#[derive(Clone, Copy, PartialEq)]
enum Begins {
    BeforeItsTurn,
    AfterItsTurn,
    WhenItRuns,
}

/// The worker that drives leaves to run a task that its turn has woken, and the task
/// blocks it until a sleep ends. The other worker drives, whether it was idle before or
/// becomes idle.
fn left_behind<C: Checker>(begins: Begins) {
    // All interleavings are too many. Five preemptions are 145,542 executions of the last
    // model.
    let (executions, _) = explore_within::<C, _>(Some(3), move || {
        let (workers, driving, sleep) = driven::<C>(2);
        if begins == Begins::BeforeItsTurn {
            sleep.begin(1);
        }
        let (runnable, held, _) = task(async {}, workers.scheduler(), metadata());
        let schedules = Schedules {
            workers: workers.clone(),
            runnable: Mutex::new(Some(runnable)),
            then: (begins == Begins::AfterItsTurn).then(|| sleep.clone()),
        };
        sleep.at_next_turn(Arc::new(schedules).into());
        let live = move |index| {
            C::enter_worker(index);
            let mut worker = Worker::new(workers.clone(), driving.clone(), index);
            if let Some(runnable) = worker.next() {
                drop(runnable);
                sleep.block_on_a_tick();
                workers.close();
            }
        };
        let other = C::spawn({
            let live = live.clone();
            move || live(1)
        });
        live(0);
        other();
        drop(held);
    });
    assert!(executions > 10);
}

fn a_worker_that_drove_leaves_no_deadline_behind<C: Checker>() {
    left_behind::<C>(Begins::BeforeItsTurn);
}

fn a_worker_that_drove_leaves_no_deadline_behind_that_came_after_its_turn<C: Checker>() {
    left_behind::<C>(Begins::AfterItsTurn);
}

fn a_worker_that_drove_leaves_no_deadline_behind_that_comes_after_it<C: Checker>() {
    left_behind::<C>(Begins::WhenItRuns);
}

/// Threads of the checker, which are idle for ever or not at all. The first `refuses`
/// starts are refused.
struct OfModel<C> {
    too_long: bool,
    refuses: AtomicUsize,
    checker: PhantomData<fn() -> C>,
}

impl<C: Checker> Threads<C> for OfModel<C> {
    fn start(&self, life: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        // Another call may come in between.
        C::yield_now();
        let left = |left: usize| left.checked_sub(1);
        let refused = self
            .refuses
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        if refused.is_ok() {
            return Err(io::Error::other("refused"));
        }
        drop(C::spawn(life));
        Ok(())
    }

    fn park(&self, park: &C::Park) -> bool {
        if !self.too_long {
            park.park();
        }
        self.too_long
    }
}

fn calls<C: Checker>(max_threads: usize, too_long: bool, refuses: usize) -> Arc<Blocking<C>> {
    let threads = OfModel {
        too_long,
        refuses: AtomicUsize::new(refuses),
        checker: PhantomData,
    };
    let blocking = Blocking::new(max_threads, threads);
    blocking.run_within(Arc::new(|f| f()));
    blocking
}

/// Makes a call. Returns `None` if it was refused a thread.
fn try_call<C: Checker>(blocking: &Arc<Blocking<C>>, answer: u32) -> Option<Join<u32, C>> {
    let Spawned { join, refused } = blocking.spawn(move || answer, metadata()).ok()?;
    if let Some(refused) = refused {
        refused.cancel();
    }
    Some(join)
}

fn call<C: Checker>(blocking: &Arc<Blocking<C>>, answer: u32) -> Join<u32, C> {
    try_call(blocking, answer).expect("no thread is refused")
}

/// Returns the output of a call, or `None` if it was cancelled.
fn called<C: Checker>(end: Join<u32, C>) -> Option<u32> {
    match join(end) {
        Ok(answer) => Some(answer),
        Err(Failure::Cancelled) => None,
        Err(Failure::Panicked(panic)) => std::panic::resume_unwind(panic),
    }
}

/// A call comes while the only thread finishes the one before, goes to sleep, or ends
/// because it was idle for too long. Within three preemptions, because all are too many.
fn a_call_that_blocks_is_not_missed_by_a_thread_that_goes_to_sleep_or_ends<C: Checker>() {
    for too_long in [false, true] {
        let (executions, seen) = explore_within::<C, _>(Some(3), move || {
            let blocking = calls::<C>(1, too_long, 0);
            let answers = [1, 2].map(|answer| called(call(&blocking, answer)));
            blocking.close();
            answers
        });
        assert!(executions > 10);
        assert_eq!(seen, BTreeSet::from([[Some(1), Some(2)]]));
    }
}

/// Two calls at a time, which one thread takes both, or two threads take. Within two
/// preemptions.
fn calls_that_block_are_taken_once_each<C: Checker>() {
    for max_threads in [1, 2] {
        let (executions, seen) = explore_within::<C, _>(Some(2), move || {
            let blocking = calls::<C>(max_threads, false, 0);
            let calls = [1, 2].map(|answer| call(&blocking, answer));
            let answers = calls.map(called);
            blocking.close();
            answers
        });
        assert!(executions > 10);
        assert_eq!(seen, BTreeSet::from([[Some(1), Some(2)]]));
    }
}

/// The end comes while a thread takes a call or is idle. The call runs, or it is
/// cancelled. The thread ends, or loom reports a deadlock.
fn a_call_that_blocks_beside_the_end_runs_or_is_cancelled<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| {
        let blocking = calls::<C>(1, false, 0);
        let ending = C::spawn({
            let blocking = blocking.clone();
            move || blocking.close()
        });
        let end = call(&blocking, 7);
        ending();
        called(end)
    });
    assert_eq!(seen, BTreeSet::from([None, Some(7)]));
}

/// Two calls at a time, for which the system refuses one thread or both. Each call
/// returns an error, runs, or is cancelled. None waits for ever.
fn a_call_that_is_refused_a_thread_leaves_no_call_behind<C: Checker>() {
    for (refuses, max_threads) in [(1, 2), (2, 2), (1, 1)] {
        let (executions, seen) = explore_within::<C, _>(Some(2), move || {
            let blocking = calls::<C>(max_threads, false, refuses);
            let other = C::spawn({
                let blocking = blocking.clone();
                move || try_call(&blocking, 1).map(called)
            });
            let own = try_call(&blocking, 2).map(called);
            let other = other();
            blocking.close();
            (own, other)
        });
        assert!(executions > 10);
        let is_refused = |&(own, other): &(Option<_>, Option<_>)| own.is_none() || other.is_none();
        assert!(seen.iter().any(is_refused), "no call was refused: {seen:?}");
        if refuses == 2 {
            let runs = |seen: &(_, _)| *seen == (Some(Some(2)), Some(Some(1)));
            assert!(
                !seen.iter().any(runs),
                "both ran without a thread: {seen:?}"
            );
        }
    }
}

/// An abort comes while a thread takes the call. What the call has captured is dropped
/// once. Unless the call has begun, it is dropped when the abort returns.
fn an_abort_beside_a_call_that_begins_drops_what_it_captured_once<C: Checker>() {
    let (_, seen) = explore::<C, _>(|| {
        let blocking = calls::<C>(1, false, 0);
        let drops = Drops::default();
        let captured = drops.counted();
        let call = move || {
            let _captured = captured;
            7
        };
        let spawned = blocking
            .spawn(call, metadata())
            .expect("no thread is refused");
        let end = spawned.join;
        end.abort();
        let at_once = drops.count();
        let outcome = called(end);
        blocking.close();
        assert_eq!(drops.count(), 1);
        (at_once, outcome)
    });
    let cancelled = BTreeSet::from([(1, None)]);
    let begun = |&(_, outcome): &(usize, Option<u32>)| outcome == Some(7);
    assert!(
        seen.is_superset(&cancelled) && seen.iter().any(begun),
        "{seen:?}"
    );
}

/// The only worker has a task in its queue, and the task that it runs blocks until that
/// one has ended. Another thread takes its place, as in `block_in_place`. The task that
/// blocked is woken meanwhile, and is run again by the thread that took the place. Within
/// three preemptions.
fn a_worker_that_is_replaced_leaves_no_task_behind<C: Checker>() {
    let (executions, seen) = explore_within::<C, _>(Some(3), || {
        C::enter_worker(0);
        let workers = Workers::<C>::new(1, |_| C::worker());
        let mut worker = Worker::new(workers.clone(), idle(), 0);
        let replacing = Arc::new(Mutex::new(None));
        let outer = spawn(&workers, {
            let (workers, replacing) = (workers.clone(), replacing.clone());
            let mut blocked = false;
            poll_fn(move |cx| {
                if std::mem::replace(&mut blocked, true) {
                    return Poll::Ready(());
                }
                let inner = spawn(&workers, async {});
                C::leave_worker();
                *replacing.lock().unwrap() = Some(C::spawn({
                    let workers = workers.clone();
                    move || {
                        C::enter_worker(0);
                        work(&workers, idle(), 0);
                    }
                }));
                join(inner).expect("the other thread runs it");
                cx.waker().wake_by_ref();
                Poll::Pending
            })
        });
        let runnable = worker.next().expect("it has been spawned");
        let RunResult::Woken(woken) = runnable.run() else {
            panic!("the task has woken itself");
        };
        worker.give_way(Some(woken));
        let ended = join(outer).is_ok();
        workers.close();
        let replacing = replacing.lock().unwrap().take().expect("the task ran");
        replacing();
        ended
    });
    assert!(executions > 10);
    assert_eq!(seen, BTreeSet::from([true]));
}

/// What a task waits for, with its thread.
struct Gate<C: Checker>(StateLock<WakerSlot, C>);

const OPEN: Bits = Bits::new(1);

impl<C: Checker> Gate<C> {
    fn new() -> Arc<Self> {
        Arc::new(Self(StateLock::new_in(Bits::EMPTY, WakerSlot::new())))
    }

    fn open(&self) {
        self.0.with(|section| {
            section.bits.insert(OPEN);
            section.wakes.wake(section.state);
        });
    }

    fn block(&self) {
        block_on::<C, _>(poll_fn(|cx| {
            self.0.poll(cx, true, |section, registration| {
                match section.bits.contains(OPEN) {
                    true => Ok(()),
                    false => Err(registration.register(section.state)),
                }
            })
        }));
    }
}

/// Two tasks come while all workers are idle or about to be, from outside or from a
/// worker. The second comes while a worker searches for the first. Each blocks its worker
/// until the other has begun, so both are found, by different workers. If a worker that
/// searches finds a task and leaves the other to no worker, loom reports a deadlock.
fn of_two_tasks_none_is_left_by_the_worker_that_searches<C: Checker>(of_worker: bool) {
    let (executions, _) = explore_within::<C, _>(Some(2), move || {
        let count = if of_worker { 3 } else { 2 };
        let workers = Workers::<C>::new(count, |_| C::worker());
        let ends: Vec<_> = (0..2)
            .map(|index| {
                let workers = workers.clone();
                C::spawn(move || {
                    C::enter_worker(index);
                    let mut worker = Worker::new(workers, idle(), index);
                    drop(worker.next().map(Runnable::run));
                })
            })
            .collect();
        if of_worker {
            C::enter_worker(2);
        }
        let gates = [Gate::<C>::new(), Gate::new()];
        let joins = [0, 1].map(|own| {
            let gates = gates.clone();
            spawn(&workers, async move {
                gates[own].open();
                gates[1 - own].block();
            })
        });
        for end in ends {
            end();
        }
        for end in joins {
            join(end).expect("the task ends");
        }
        if of_worker {
            drop(Worker::new(workers, idle(), 2));
        }
    });
    assert!(executions > 10);
}

fn of_two_tasks_that_are_injected_none_is_left_by_the_worker_that_searches<C: Checker>() {
    of_two_tasks_none_is_left_by_the_worker_that_searches::<C>(false);
}

fn of_two_tasks_that_a_worker_spawns_none_is_left_by_the_worker_that_searches<C: Checker>() {
    of_two_tasks_none_is_left_by_the_worker_that_searches::<C>(true);
}

/// A worker spawns a task and blocks until the task has ended. The other worker, which is
/// idle or about to be, runs it.
fn a_spawned_task_is_not_stranded_by_what_spawned_it<C: Checker>() {
    let (executions, seen) = explore::<C, _>(|| {
        let workers = Workers::<C>::new(2, |_| C::worker());
        let other = C::spawn({
            let workers = workers.clone();
            move || {
                C::enter_worker(1);
                work(&workers, idle(), 1);
            }
        });
        C::enter_worker(0);
        let answer = join(spawn(&workers, async { 7 })).ok();
        workers.close();
        other();
        answer
    });
    assert!(executions > 10);
    assert_eq!(seen, BTreeSet::from([Some(7)]));
}

models!(
    a_wake_during_or_after_a_poll_is_one_further_poll,
    wakes_merge_and_one_after_the_end_is_nothing,
    an_abort_beside_a_poll_drops_the_future_once,
    a_cancellation_beside_a_poll_leaves_no_future_behind,
    a_join_beside_the_completion_gets_the_output,
    a_join_end_that_leaves_beside_the_completion_leaves_nothing,
    a_completion_beside_the_end_frees_the_task_once,
    an_orphan_is_dropped_by_its_executor,
    a_worker_that_goes_to_sleep_does_not_miss_a_spawn,
    a_worker_that_goes_to_sleep_does_not_miss_what_it_can_steal,
    a_spawn_beside_the_end_runs_or_is_cancelled,
    a_lifo_slot_is_not_lost_where_the_rest_is_stolen,
    a_task_that_waits_is_cancelled_by_the_worker_at_the_end,
    a_worker_that_goes_to_park_does_not_miss_a_nearer_deadline,
    a_worker_that_drove_leaves_no_deadline_behind,
    a_worker_that_drove_leaves_no_deadline_behind_that_came_after_its_turn,
    a_worker_that_drove_leaves_no_deadline_behind_that_comes_after_it,
    a_call_that_blocks_is_not_missed_by_a_thread_that_goes_to_sleep_or_ends,
    calls_that_block_are_taken_once_each,
    a_call_that_blocks_beside_the_end_runs_or_is_cancelled,
    a_call_that_is_refused_a_thread_leaves_no_call_behind,
    an_abort_beside_a_call_that_begins_drops_what_it_captured_once,
    a_spawned_task_is_not_stranded_by_what_spawned_it,
    a_worker_that_is_replaced_leaves_no_task_behind,
    of_two_tasks_that_are_injected_none_is_left_by_the_worker_that_searches,
    of_two_tasks_that_a_worker_spawns_none_is_left_by_the_worker_that_searches,
);
