//! Tasks on the executors of this crate: aborted, forgotten, woken at unusual times, or
//! left at the end. Some tests name the case of a fault that was reported elsewhere.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::future::{Future, pending, poll_fn};
use std::panic::{catch_unwind, panic_any};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use reveille::oneshot;
use reveille::time::{Timers, VirtualClock, sleep};
use reveille_executor::task::coop::{cooperative, has_budget_remaining, poll_proceed};
use reveille_executor::task::{self, JoinSet, consume_budget, yield_now};
use reveille_executor::{Executor, LocalExecutor, Simulation, ThreadPool, block_on};

use support::in_time;

mod support;

const MS: Duration = Duration::from_millis(1);

fn pool(workers: usize) -> ThreadPool {
    ThreadPool::builder().workers(workers).build()
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Returns a future that counts its drop, and waits for ever with a waker in `place`.
fn parked(
    drops: &Arc<AtomicUsize>,
    place: &Arc<Mutex<Option<Waker>>>,
) -> impl Future<Output = ()> + Send + use<> {
    let (counted, place) = (Counted(drops.clone()), place.clone());
    poll_fn(move |cx| {
        let _ = &counted;
        *place.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    })
}

/// Runs the executor until `done` returns `true`.
fn run_until(executor: &impl Executor, done: impl Fn() -> bool) {
    while !done() {
        executor.block_on(executor.spawn(async {})).unwrap();
    }
}

/// EX-01
#[test]
fn an_abort_holds_though_the_handle_is_dropped_at_once() {
    fn check(executor: &impl Executor<JoinHandle<()> = task::JoinHandle<()>>) {
        let (drops, place) = (Arc::default(), Arc::default());
        let task = executor.spawn(parked(&drops, &place));
        run_until(executor, || place.lock().unwrap().is_some());
        task.abort();
        drop(task);
        run_until(executor, || drops.load(Ordering::SeqCst) == 1);
        place.lock().unwrap().take().unwrap().wake();
        executor.block_on(executor.spawn(async {})).unwrap();
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    }
    in_time(|| {
        check(&LocalExecutor::new());
        check(&Simulation::builder().with_threads().build());
        check(&pool(1));
        check(&pool(2));
    });
}

/// EX-04
#[test]
fn what_is_spawned_after_the_end_is_cancelled_at_once() {
    in_time(|| {
        let pool = pool(2);
        let handle = pool.handle().clone();
        let drops = Arc::new(AtomicUsize::new(0));
        let counted = Counted(drops.clone());
        let old = pool.spawn(async move {
            let _counted = counted;
            pending::<()>().await;
        });
        drop(pool);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        let counted = Counted(drops.clone());
        let new = handle.spawn(async move { drop(counted) });
        let counted = Counted(drops.clone());
        let call = handle.spawn_blocking(move || drop(counted));
        assert_eq!(drops.load(Ordering::SeqCst), 3);
        for task in [old, new, call] {
            assert!(task.is_finished());
            assert!(block_on(task).unwrap_err().is_cancelled());
        }
    });
}

/// EX-07
#[test]
fn a_task_that_nothing_can_wake_is_dropped_by_its_executor() {
    fn check(executor: &impl Executor) {
        let (drops, place) = (Arc::default(), Arc::default());
        drop(executor.spawn(parked(&drops, &place)));
        run_until(executor, || place.lock().unwrap().is_some());
        assert_eq!(drops.load(Ordering::SeqCst), 0);
        let waker = place.lock().unwrap().take();
        drop(waker);
        run_until(executor, || drops.load(Ordering::SeqCst) == 1);
    }
    in_time(|| {
        check(&LocalExecutor::new());
        check(&pool(1));
        check(&pool(2));
    });
}

/// The destructor runs on the executor's thread, not on the thread that drops the waker.
#[test]
fn the_last_waker_drops_no_future() {
    let executor = LocalExecutor::new();
    let thread = thread::current().id();
    let dropped = Rc::new(RefCell::new(None));
    let place = Arc::new(Mutex::new(None));
    let held = OnDrop({
        let dropped = dropped.clone();
        move || *dropped.borrow_mut() = Some(thread::current().id())
    });
    drop(executor.spawn_local(poll_fn({
        let place = place.clone();
        move |cx| {
            let _ = &held;
            *place.lock().unwrap() = Some(cx.waker().clone());
            Poll::<()>::Pending
        }
    })));
    executor.run_until_idle();
    let waker = place.lock().unwrap().take();
    thread::spawn(move || drop(waker)).join().unwrap();
    assert_eq!(*dropped.borrow(), None);
    executor.run_until_idle();
    assert_eq!(*dropped.borrow(), Some(thread));
}

/// The panic ends neither the thread, nor the slow task, nor the tasks that wait.
#[test]
fn a_panicking_report_of_a_long_poll_takes_nothing_down() {
    async fn slow() -> u32 {
        thread::sleep(2 * MS);
        yield_now().await;
        7
    }
    fn check(executor: &impl Executor<JoinHandle<u32> = task::JoinHandle<u32>>) {
        let (tx, rx) = oneshot::channel::<u32>();
        let waits = executor.spawn(async move { rx.await.unwrap() });
        for _ in 0..2 {
            assert_eq!(executor.block_on(executor.spawn(slow())).unwrap(), 7);
        }
        tx.send(8).unwrap();
        assert_eq!(executor.block_on(waits).unwrap(), 8);
    }
    in_time(|| {
        // The payload of the panic panics too when it is dropped.
        let report = || panic_any(OnDrop(|| panic!("a payload")));
        let pool = ThreadPool::builder().workers(1);
        check(&pool.on_long_poll(MS, move |_| report()).build());
        let local = LocalExecutor::builder();
        check(&local.on_long_poll(MS, move |_| report()).build());
    });
}

/// PS-02
#[test]
fn a_panicking_destructor_takes_no_worker_down() {
    fn check(executor: &impl Executor<JoinHandle<()> = task::JoinHandle<()>>) {
        for _ in 0..8 {
            let (waits, waiting) = oneshot::channel();
            let held = OnDrop(|| panic_any(7_u32));
            let task = executor.spawn(async move {
                let _held = held;
                waits.send(()).unwrap();
                pending::<()>().await;
            });
            executor.block_on(waiting).unwrap();
            task.abort();
            let error = executor.block_on(task).unwrap_err();
            assert_eq!(error.into_panic().downcast_ref(), Some(&7_u32));
        }
        executor.block_on(executor.spawn(async {})).unwrap();
    }
    in_time(|| {
        check(&LocalExecutor::new());
        check(&pool(1));
        check(&pool(2));
    });
}

/// RE-03: at the end, the destructor of one task wakes another while it holds a lock that
/// the other's destructor takes.
#[test]
fn a_wake_runs_no_destructor() {
    fn check<E: Executor>(executor: E) {
        let lock = Arc::new(Mutex::new(()));
        let (drops, place) = (Arc::default(), Arc::default());
        let taking = OnDrop({
            let lock = lock.clone();
            move || drop(lock.lock().unwrap())
        });
        let woken = parked(&drops, &place);
        drop(executor.spawn(async move {
            let _taking = taking;
            woken.await;
        }));
        let waking = OnDrop({
            let place = place.clone();
            move || {
                let _held = lock.lock().unwrap();
                place.lock().unwrap().take().unwrap().wake();
            }
        });
        let waits = executor.spawn(async move {
            let _waking = waking;
            pending::<()>().await;
        });
        run_until(&executor, || place.lock().unwrap().is_some());
        drop(executor);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        drop(waits);
    }
    in_time(|| {
        check(LocalExecutor::new());
        check(pool(1));
        check(pool(2));
    });
}

/// TM-01
#[test]
fn a_nearer_deadline_ends_a_park_that_was_for_a_farther_one() {
    in_time(|| {
        let executor = LocalExecutor::new();
        let timers: Timers = executor.timers().clone();
        let far = executor.spawn_local(async { sleep(Duration::from_secs(10)).await });
        let start = Instant::now();
        let (tx, rx) = oneshot::channel();
        thread::spawn(move || {
            thread::sleep(20 * MS);
            block_on(timers.sleep(MS));
            tx.send(()).unwrap();
        });
        executor.block_on(rx).unwrap();
        assert!(start.elapsed() < Duration::from_secs(5));
        far.abort();
    });
}

#[test]
fn a_wake_after_the_end_of_a_task_is_nothing() {
    let executor = LocalExecutor::new();
    let place = Arc::new(Mutex::new(None));
    let task = executor.spawn_local(poll_fn({
        let place = place.clone();
        move |cx| {
            let mut place = place.lock().unwrap();
            assert!(place.is_none(), "the task was polled after it was ready");
            *place = Some(cx.waker().clone());
            Poll::Ready(7)
        }
    }));
    assert_eq!(executor.block_on(task).unwrap(), 7);
    let waker = place.lock().unwrap().clone().unwrap();
    waker.wake_by_ref();
    waker.wake();
    executor.run_until_idle();
}

#[test]
fn tasks_that_are_always_ready_keep_no_timer_waiting() {
    in_time(|| {
        let executor = LocalExecutor::new();
        drop(executor.spawn_local(async {
            loop {
                yield_now().await;
            }
        }));
        executor.block_on(sleep(5 * MS));
    });
}

/// Each of these tasks is always ready.
#[test]
fn a_budget_keeps_a_task_that_is_always_ready_from_starving_others() {
    fn check<E: Executor>(executor: &E) {
        let polls = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let mutex = Arc::new(reveille::Mutex::new(0_usize));
        let endless = executor.spawn({
            let (mutex, stop, polls) = (mutex.clone(), stop.clone(), polls.clone());
            let mut looped = Box::pin(async move {
                while !stop.load(Ordering::SeqCst) {
                    *cooperative(mutex.lock()).await += 1;
                }
            });
            poll_fn(move |cx| {
                polls.fetch_add(1, Ordering::SeqCst);
                looped.as_mut().poll(cx)
            })
        });
        let receives = executor.spawn({
            let stop = stop.clone();
            async move {
                while !stop.load(Ordering::SeqCst) {
                    let (tx, rx) = oneshot::channel();
                    tx.send(()).unwrap();
                    cooperative(rx).await.unwrap();
                }
            }
        });
        let consumes = executor.spawn({
            let stop = stop.clone();
            async move {
                while !stop.load(Ordering::SeqCst) {
                    consume_budget().await;
                }
            }
        });
        for number in 0..10 {
            assert_eq!(
                executor
                    .block_on(executor.spawn(async move { number }))
                    .unwrap(),
                number
            );
        }
        // Timers fire meanwhile, and the thread that blocks makes progress.
        executor.block_on(async { sleep(MS).await });
        executor.block_on(async {
            for _ in 0..1000 {
                consume_budget().await;
            }
            stop.store(true, Ordering::SeqCst);
        });
        for task in [endless, receives, consumes] {
            executor.block_on(task).unwrap();
        }
        let (locked, polls) = (*mutex.try_lock().unwrap(), polls.load(Ordering::SeqCst));
        assert!(locked <= polls * 128, "{locked} in {polls} polls");
    }
    in_time(|| {
        check(&LocalExecutor::new());
        check(&pool(1));
        check(&pool(2));
    });
}

#[test]
fn a_budget_is_that_of_one_poll() {
    let executor = LocalExecutor::new();
    let spends = || async {
        let mut spent = 0;
        while has_budget_remaining() {
            consume_budget().await;
            spent += 1;
        }
        spent
    };
    let spent = executor.block_on(async {
        let first = spends().await;
        assert!(!has_budget_remaining());
        // A poll within this one has its own budget, and leaves this one's as it was.
        assert_eq!(LocalExecutor::new().block_on(spends()), first);
        assert!(!has_budget_remaining());
        yield_now().await;
        // A future that waits consumes nothing.
        let mut waits = Box::pin(cooperative(pending::<()>()));
        poll_fn(|cx| {
            assert!(waits.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        [first, spends().await]
    });
    assert_eq!(spent, [128, 128]);
    // Outside of a task there is no bound.
    block_on(async {
        for _ in 0..1000 {
            consume_budget().await;
        }
        assert!(has_budget_remaining());
    });
}

/// On one worker two tasks wake each other for ever, and a third still runs.
#[test]
fn tasks_that_wake_each_other_keep_no_other_waiting() {
    in_time(|| {
        let pool = pool(1);
        let places: [Arc<Mutex<Option<Waker>>>; 2] = Default::default();
        for (own, other) in [(0, 1), (1, 0)] {
            let (own, other) = (places[own].clone(), places[other].clone());
            drop(pool.spawn(poll_fn(move |cx| {
                *own.lock().unwrap() = Some(cx.waker().clone());
                match other.lock().unwrap().take() {
                    Some(waker) => waker.wake(),
                    None => cx.waker().wake_by_ref(),
                }
                Poll::<()>::Pending
            })));
        }
        for _ in 0..100 {
            assert_eq!(pool.block_on(pool.spawn(async { 7 })).unwrap(), 7);
        }
    });
}

#[test]
fn at_the_end_each_task_is_dropped_once() {
    in_time(|| {
        for round in 0..20 {
            let pool = pool(2);
            let handle = pool.handle().clone();
            let drops = Arc::new(AtomicUsize::new(0));
            let spawned = Arc::new(AtomicUsize::new(0));
            let stop = Arc::new(AtomicBool::new(false));
            let spawning = thread::spawn({
                let (drops, spawned, stop) = (drops.clone(), spawned.clone(), stop.clone());
                move || {
                    while !stop.load(Ordering::SeqCst) {
                        let counted = Counted(drops.clone());
                        spawned.fetch_add(1, Ordering::SeqCst);
                        drop(handle.spawn(async move {
                            let _counted = counted;
                            for _ in 0..3 {
                                yield_now().await;
                            }
                        }));
                    }
                }
            });
            thread::sleep(MS * (round % 5));
            assert!(pool.shutdown_timeout(Duration::from_secs(10)));
            stop.store(true, Ordering::SeqCst);
            spawning.join().unwrap();
            assert_eq!(drops.load(Ordering::SeqCst), spawned.load(Ordering::SeqCst));
        }
    });
}

#[test]
fn a_shutdown_waits_no_longer_than_it_is_told() {
    in_time(|| {
        let pool = pool(1);
        let (started, starting) = oneshot::channel();
        let task = pool.spawn(async move {
            started.send(()).unwrap();
            thread::sleep(200 * MS);
            pending::<()>().await;
        });
        block_on(starting).unwrap();
        let start = Instant::now();
        assert!(!pool.shutdown_timeout(10 * MS));
        assert!(start.elapsed() < 150 * MS);
        // The task is cancelled at the end of its poll.
        assert!(block_on(task).unwrap_err().is_cancelled());
    });
}

#[test]
fn calls_that_block_are_bounded_and_their_threads_end() {
    thread_local! {
        static ENDS: RefCell<Option<Counted>> = const { RefCell::new(None) };
    }
    in_time(|| {
        let pool = ThreadPool::builder()
            .workers(1)
            .max_blocking(3)
            .keep_alive(10 * MS)
            .build();
        let [now, most, ended]: [Arc<AtomicUsize>; 3] = Default::default();
        let calls: Vec<_> = (0..30)
            .map(|number| {
                let (now, most, ended) = (now.clone(), most.clone(), ended.clone());
                pool.spawn_blocking(move || {
                    ENDS.with_borrow_mut(|ends| {
                        ends.get_or_insert_with(|| Counted(ended));
                    });
                    let count = now.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(count, Ordering::SeqCst);
                    thread::sleep(MS);
                    now.fetch_sub(1, Ordering::SeqCst);
                    number
                })
            })
            .collect();
        for (number, call) in calls.into_iter().enumerate() {
            assert_eq!(pool.block_on(call).unwrap(), number);
        }
        let most = most.load(Ordering::SeqCst);
        assert!((1..=3).contains(&most), "{most} at a time");
        while ended.load(Ordering::SeqCst) < most {
            thread::sleep(MS);
        }
    });
}

#[test]
fn a_thread_for_calls_that_block_can_be_kept_for_ever() {
    in_time(|| {
        let pool = ThreadPool::builder()
            .workers(1)
            .keep_alive(Duration::MAX)
            .build();
        for number in 0..2 {
            let call = pool.spawn_blocking(move || number);
            assert_eq!(pool.block_on(call).unwrap(), number);
        }
    });
}

#[test]
fn a_pool_dropped_on_one_of_its_threads_does_not_wait_for_itself() {
    in_time(|| {
        let (one, other) = (pool(1), pool(1));
        let handles = (one.handle().clone(), other.handle().clone());
        let on_a_worker = handles.0.spawn(async move { drop(one) });
        block_on(on_a_worker).unwrap();
        let in_a_call = handles.1.spawn_blocking(move || drop(other));
        block_on(in_a_call).unwrap();
        assert!(handles.0.is_closed() && handles.1.is_closed());
    });
}

#[test]
fn blocking_within_a_task_or_a_call_has_no_budget() {
    async fn many_units() {
        for _ in 0..1000 {
            consume_budget().await;
        }
    }
    in_time(|| {
        let pool = pool(1);
        pool.block_on(pool.spawn(async { block_on(many_units()) }))
            .unwrap();
        let handle = pool.handle().clone();
        pool.block_on(pool.spawn_blocking(move || handle.block_on(many_units())))
            .unwrap();
    });
}

#[test]
fn a_call_that_blocks_can_use_what_tasks_can() {
    in_time(|| {
        let clock = VirtualClock::by_hand();
        let builder = ThreadPool::builder().workers(1);
        let pool = builder.timers(clock.timers().clone()).build();
        clock.advance(MS);
        let call = pool.spawn_blocking(|| {
            let id = (task::id(), task::spawn(async { 7 }));
            (id, reveille::time::Instant::now().since_origin())
        });
        let id = call.id();
        let ((own, spawned), now) = pool.block_on(call).unwrap();
        assert_eq!((own, now), (id, clock.timers().now().since_origin()));
        assert_eq!(pool.block_on(spawned).unwrap(), 7);
    });
}

/// Each task spawns in its destructor, when the executor ends or has ended.
#[test]
fn destructors_at_the_end_are_those_of_their_tasks_and_can_spawn() {
    type Seen = Arc<Mutex<Vec<(task::Id, bool)>>>;
    fn twice(seen: &Seen) -> impl Future<Output = ()> + Send + use<> {
        let spawns = || {
            let seen = seen.clone();
            OnDrop(move || {
                let late = task::spawn(async {});
                let cancelled = late.is_finished() && block_on(late).unwrap_err().is_cancelled();
                seen.lock().unwrap().push((task::id(), cancelled));
            })
        };
        let held = (spawns(), spawns());
        async move {
            let _held = held;
            pending::<()>().await;
        }
    }
    fn check(executor: impl Executor<JoinHandle<()> = task::JoinHandle<()>>) {
        let seen = Seen::default();
        let waits = executor.spawn(twice(&seen));
        executor.block_on(yield_now());
        drop(executor);
        let id = waits.id();
        assert!(block_on(waits).unwrap_err().is_cancelled());
        assert_eq!(*seen.lock().unwrap(), [(id, true); 2]);
    }
    in_time(|| {
        check(LocalExecutor::new());
        check(Simulation::new(7));
        check(pool(1));
        check(pool(2));
    });
}

/// Whether the handle is dropped before the task is finished or after it.
#[test]
fn an_output_that_nothing_joins_is_dropped_as_its_task() {
    fn check(executor: &impl Executor<JoinHandle<OnDrop<Box<dyn FnMut() + Send>>> = Handle>) {
        for finished in [false, true] {
            let seen = Arc::new(Mutex::new(None));
            let sees = seen.clone();
            let output: Box<dyn FnMut() + Send> =
                Box::new(move || *sees.lock().unwrap() = task::try_id());
            let output = OnDrop(output);
            let handle = executor.spawn(async move { output });
            let id = handle.id();
            let mut handle = Some(handle);
            if finished {
                while !handle.as_ref().is_some_and(|handle| handle.is_finished()) {
                    executor.block_on(yield_now());
                }
            }
            handle.take();
            while seen.lock().unwrap().is_none() {
                executor.block_on(yield_now());
            }
            assert_eq!(*seen.lock().unwrap(), Some(id), "finished: {finished}");
        }
    }
    type Handle = task::JoinHandle<OnDrop<Box<dyn FnMut() + Send>>>;
    in_time(|| {
        check(&LocalExecutor::new());
        check(&Simulation::new(7));
        check(&pool(1));
    });
}

#[test]
fn a_refused_task_is_dropped_as_itself() {
    let pool = pool(1);
    let handle = pool.handle().clone();
    drop(pool);
    let seen = Arc::new(Mutex::new(None));
    let held = OnDrop({
        let seen = seen.clone();
        move || *seen.lock().unwrap() = task::try_id()
    });
    let refused = handle.spawn(async move { drop(held) });
    assert_eq!(*seen.lock().unwrap(), Some(refused.id()));
}

#[test]
fn an_executor_can_be_dropped_and_run_where_its_thread_ends() {
    struct Last(Option<LocalExecutor>);
    impl Drop for Last {
        fn drop(&mut self) {
            let executor = self.0.take().unwrap();
            let task = executor.spawn_local(async { 7 });
            assert_eq!(executor.block_on(task).unwrap(), 7);
            ENDED.store(true, Ordering::SeqCst);
        }
    }
    static ENDED: AtomicBool = AtomicBool::new(false);
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    in_time(|| {
        // This thread-local is initialized first, so it is destroyed last.
        LAST.set(None);
        LAST.set(Some(Last(Some(LocalExecutor::new()))));
        LocalExecutor::new().block_on(async {});
    });
    assert!(ENDED.load(Ordering::SeqCst));
}

#[test]
fn a_handle_that_was_ready_is_that_of_a_finished_task() {
    let executor = LocalExecutor::new();
    let mut task = executor.spawn_local(async { 7 });
    assert!(!task.is_finished());
    assert_eq!(executor.block_on(&mut task).unwrap(), 7);
    assert!(task.is_finished());
}

#[test]
fn what_is_done_with_a_whole_set_is_done_in_order() {
    fn trace() -> String {
        let simulation = Simulation::new(7);
        simulation.block_on(async {
            for _ in 0..3 {
                let mut set: JoinSet<()> = (0..8).map(|_| pending()).collect();
                yield_now().await;
                set.abort_all();
                while set.join_next().await.is_some() {}
                let dropped: JoinSet<()> = (0..8).map(|_| pending()).collect();
                drop(dropped);
                yield_now().await;
            }
        });
        simulation.trace()
    }
    let first = trace();
    for _ in 0..5 {
        assert_eq!(trace(), first);
    }
}

#[test]
fn a_seed_gives_one_order_of_many_tasks() {
    let drawn = |seed, tasks: u32| {
        let simulation = Simulation::builder().seed(seed).trace_limit(0).build();
        let order = Rc::new(RefCell::new(Vec::new()));
        simulation.block_on(async {
            let tasks: Vec<_> = (0..tasks)
                .map(|it| {
                    let order = order.clone();
                    task::spawn_local(async move { order.borrow_mut().push(it) })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        assert_eq!(simulation.trace(), "");
        order.take()
    };
    assert_eq!(drawn(7, 1000), drawn(7, 1000));
    assert_ne!(drawn(7, 1000), drawn(8, 1000));
}

#[test]
fn a_trace_with_a_limit_is_the_end_of_the_whole() {
    let trace = |limit| {
        let builder = Simulation::builder().seed(7);
        let simulation = match limit {
            Some(limit) => builder.trace_limit(limit).build(),
            None => builder.build(),
        };
        simulation.block_on(async {
            let tasks: JoinSet<()> = (0..20)
                .map(|it| async move {
                    for _ in 0..it {
                        yield_now().await;
                    }
                })
                .collect();
            tasks.join_all().await;
        });
        simulation.trace()
    };
    let whole = trace(None);
    for limit in [0, 1, 18, 19, 20, 57, 100, whole.len() - 1, whole.len()] {
        let limited = trace(Some(limit));
        assert!(
            limited.len() <= limit && limited.len() + 25 > limit,
            "{limit}"
        );
        assert!(whole.ends_with(&limited), "{limit}");
        let before = &whole[..whole.len() - limited.len()];
        assert!(before.is_empty() || before.ends_with('\n'), "{limit}");
    }
}

#[test]
fn a_set_that_is_joined_whole_goes_on_with_a_panic() {
    let join_all = |fails: bool| {
        LocalExecutor::new().block_on(async move {
            let numbers = (1..=3).map(|number| async move {
                assert!(!fails || number != 2, "no second");
                number
            });
            numbers.collect::<JoinSet<u32>>().join_all().await
        })
    };
    assert_eq!(join_all(false), [1, 2, 3]);
    let panic = catch_unwind(|| join_all(true)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"no second"));
}

#[test]
fn a_set_joins_in_the_order_of_the_ends_and_aborts_what_is_left() {
    let simulation = Simulation::new(7);
    let drops = Arc::new(AtomicUsize::new(0));
    let order = simulation.block_on(async {
        let mut set = JoinSet::new();
        for number in [3_u32, 1, 2] {
            let counted = Counted(drops.clone());
            set.spawn(async move {
                let _counted = counted;
                sleep(number * MS).await;
                number
            });
        }
        let one = set.join_next().await.unwrap().unwrap();
        let two = set.join_next().await.unwrap().unwrap();
        drop(set);
        sleep(MS).await; // passes when nothing is ready
        [one, two]
    });
    assert_eq!(order, [1, 2]);
    assert_eq!(drops.load(Ordering::SeqCst), 3);
}

#[test]
fn tasks_have_names_numbers_and_know_their_own() {
    let pool = pool(1);
    let [one, two] = ["one", "two"].map(|name| pool.spawn_named(name, async { task::id() }));
    assert_eq!([one.name(), two.name()], [Some("one"), Some("two")]);
    assert_ne!(one.id(), two.id());
    let id = two.id();
    assert_eq!(pool.block_on(two).unwrap(), id);
}

/// Runs writers that read before they write. Returns the trace, and the sum.
fn writers(seed: u64) -> (String, u32) {
    let simulation = Simulation::new(seed);
    let sum = Rc::new(RefCell::new(0));
    simulation.block_on(async {
        let tasks: Vec<_> = (1..=3)
            .map(|number| {
                let sum = sum.clone();
                simulation.spawn_named("writer", async move {
                    sleep(MS).await;
                    let read = *sum.borrow();
                    yield_now().await;
                    *sum.borrow_mut() = read + number;
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    let sum = *sum.borrow();
    (simulation.trace(), sum)
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_another() {
    let traces: Vec<_> = (0..100).map(writers).collect();
    assert_eq!(traces, (0..100).map(writers).collect::<Vec<_>>());
    assert!(traces.iter().any(|other| other.0 != traces[0].0));
}

#[test]
fn a_thousand_seeds_find_a_bug_of_order_and_the_seed_finds_it_again() {
    let right = (0..1000).filter(|&seed| writers(seed).1 == 6).count();
    assert!(
        (1..1000).contains(&right),
        "{right} of 1000 seeds are right"
    );
    let wrong = (0..1000).find(|&seed| writers(seed).1 != 6).unwrap();
    assert_ne!(writers(wrong).1, 6);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_simulation_says_that_it_is_stuck() {
    Simulation::new(7).block_on(async {
        let (_tx, rx) = oneshot::channel::<()>();
        drop(rx.await);
    });
}

reveille_executor::task_local! {
    static NUMBER: u32;
    static SEEN: Arc<Mutex<Vec<u32>>>
}

/// The value stays with its future, in each poll and in its destructors, and is visible
/// nowhere else.
#[test]
fn a_task_local_goes_with_its_future() {
    fn check(executor: &impl Executor<JoinHandle<u32> = task::JoinHandle<u32>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..20)
            .map(|number| {
                let sees = OnDrop(|| SEEN.with(|seen| seen.lock().unwrap().push(NUMBER.get())));
                let numbered = async move {
                    let _sees = sees;
                    for _ in 0..3 {
                        assert_eq!(NUMBER.get(), number);
                        yield_now().await;
                    }
                    assert_eq!(
                        NUMBER.scope(number + 100, async { NUMBER.get() }).await,
                        number + 100
                    );
                    let spawned = task::spawn(async { NUMBER.try_get().is_err() }).await;
                    assert!(spawned.unwrap());
                    NUMBER.get()
                };
                executor.spawn(SEEN.scope(seen.clone(), NUMBER.scope(number, numbered)))
            })
            .collect();
        for (number, task) in (0..).zip(tasks) {
            assert_eq!(executor.block_on(task).unwrap(), number);
        }
        let mut seen = seen.lock().unwrap();
        seen.sort_unstable();
        assert_eq!(*seen, (0..20).collect::<Vec<_>>());
    }
    in_time(|| {
        check(&LocalExecutor::new());
        check(&pool(2));
    });
    assert!(NUMBER.try_with(|_| ()).is_err());
}

#[test]
fn a_task_local_is_dropped_with_its_future_and_seen_by_its_destructors() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = OnDrop(|| SEEN.with(|seen| seen.lock().unwrap().push(NUMBER.get())));
    let executor = LocalExecutor::new();
    let waits = executor.spawn_local(SEEN.scope(
        seen.clone(),
        NUMBER.scope(7, async move {
            let _sees = sees;
            pending::<()>().await;
        }),
    ));
    executor.run_until_idle();
    waits.abort();
    executor.run_until_idle();
    assert_eq!(*seen.lock().unwrap(), [7]);
    assert_eq!(Arc::strong_count(&seen), 1);
}

#[test]
fn a_future_without_a_budget_is_not_stopped() {
    let executor = LocalExecutor::new();
    let (polls, count) = (Rc::new(RefCell::new(0)), Rc::new(RefCell::new(0)));
    let mut looped = Box::pin(task::unconstrained({
        let count = count.clone();
        async move {
            for _ in 0..1000 {
                consume_budget().await;
                *count.borrow_mut() += 1;
            }
            assert!(has_budget_remaining());
        }
    }));
    let counted = polls.clone();
    executor.block_on(poll_fn(move |cx| {
        *counted.borrow_mut() += 1;
        looped.as_mut().poll(cx)
    }));
    assert_eq!((*polls.borrow(), *count.borrow()), (1, 1000));
}

#[test]
fn a_budget_is_given_back_where_a_poll_came_to_nothing() {
    LocalExecutor::new().block_on(poll_fn(|cx| {
        for _ in 0..1000 {
            assert!(poll_proceed(cx).is_ready());
        }
        let consumed = (0..1000).take_while(|_| match poll_proceed(cx) {
            Poll::Ready(restores) => {
                restores.made_progress();
                true
            }
            Poll::Pending => false,
        });
        assert_eq!(consumed.count(), 128);
        Poll::Ready(())
    }));
}

#[test]
fn a_handle_is_one_pointer_and_has_the_number_of_its_task_after_it_was_ready() {
    assert_eq!(size_of::<task::JoinHandle<[u64; 8]>>(), size_of::<usize>());
    let executor = LocalExecutor::new();
    let mut handle = executor.spawn_named("seven", async { (task::id(), 7) });
    let (id, seven) = executor.block_on(&mut handle).unwrap();
    assert_eq!((handle.id(), handle.name(), seven), (id, Some("seven"), 7));
    assert!(handle.is_finished());
}
