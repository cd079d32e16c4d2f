//! Executors drive timers: in which order with ready tasks, while workers are busy, and
//! after their end.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::future::{Future, pending};
use std::panic::panic_any;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use reveille::oneshot;
use reveille::time::{Timers, VirtualClock, interval, sleep, timeout};
use reveille_executor::task::{self, JoinHandle, yield_now};
use reveille_executor::{Executor, LocalExecutor, ThreadPool, block_on};

use support::in_time;

mod support;

const MS: Duration = Duration::from_millis(1);
const FAR: Duration = Duration::from_secs(1000);

fn pool(workers: usize) -> ThreadPool {
    ThreadPool::builder().workers(workers).build()
}

/// TM-01
#[test]
fn a_nearer_deadline_ends_the_park_of_a_worker() {
    in_time(|| {
        for workers in [1, 2] {
            let pool = pool(workers);
            drop(pool.spawn(sleep_far()));
            thread::sleep(5 * MS); // the workers are parked
            block_on(pool.timers().sleep(MS));
            // On a task, and on the thread that blocks.
            pool.block_on(pool.spawn(async { sleep(MS).await }))
                .unwrap();
            pool.block_on(async { sleep(MS).await });
        }
    });
}

async fn sleep_far() {
    sleep(FAR).await;
}

#[test]
fn tasks_that_timers_wake_run_in_order_and_in_turn_with_ready_tasks() {
    in_time(|| {
        let pool = pool(1);
        // More tasks than a worker runs before it fires timers.
        const READY: u32 = 100;
        let order = Arc::new(Mutex::new(Vec::new()));
        let says = |number| {
            let order = order.clone();
            move || order.lock().unwrap().push(number)
        };
        let all = (READY..READY + 3).map(|number| (says(number), MS * (number - READY + 1)));
        let ready: Vec<_> = (0..READY).map(says).collect();
        let timers: Vec<_> = all.collect();
        let spawns = pool.spawn(async move {
            // The latest deadline first.
            let timers: Vec<_> = timers
                .into_iter()
                .rev()
                .map(|(says, deadline)| {
                    task::spawn(async move {
                        sleep(deadline).await;
                        says();
                    })
                })
                .collect();
            yield_now().await;
            thread::sleep(MS * 5); // all timers are due
            for says in ready {
                task::spawn(async move { says() });
            }
            for timer in timers {
                timer.await.unwrap();
            }
        });
        pool.block_on(spawns).unwrap();
        let order = std::mem::take(&mut *order.lock().unwrap());
        let (ready, timers): (Vec<_>, Vec<_>) = order.iter().partition(|&&it| it < READY);
        assert_eq!(timers, [READY, READY + 1, READY + 2]);
        assert!(ready.is_sorted(), "{order:?}");
        let between = |&number: &u32| order.iter().position(|&it| it == number);
        let places: Vec<_> = timers.iter().filter_map(between).collect();
        assert!(places[0] <= 61 && places[2] - places[0] <= 4, "{order:?}");
    });
}

#[test]
fn tasks_that_are_always_ready_keep_no_timer_of_a_pool_waiting() {
    in_time(|| {
        let pool = pool(1);
        let busy = pool.spawn(async {
            loop {
                yield_now().await;
            }
        });
        pool.block_on(async { sleep(MS).await });
        let busy: task::JoinHandle<()> = busy;
        busy.abort();
    });
}

/// A loop that runs the executor for a moment in each iteration.
#[test]
fn block_ons_that_are_short_come_to_the_timers() {
    in_time(|| {
        let executor = LocalExecutor::new();
        let due = executor.spawn_local(async { sleep(MS).await });
        executor.block_on(yield_now());
        while !due.is_finished() {
            executor.block_on(yield_now());
        }
        let ticks = Rc::new(Cell::new(0));
        let ticking = executor.spawn_local({
            let ticks = ticks.clone();
            async move {
                let mut interval = interval(5 * MS);
                loop {
                    interval.tick().await;
                    ticks.set(ticks.get() + 1);
                }
            }
        });
        const ROUNDS: u32 = 15;
        for _ in 0..ROUNDS {
            executor.block_on(yield_now());
            thread::sleep(5 * MS);
        }
        executor.block_on(yield_now());
        assert!(ticks.get() >= ROUNDS, "{} ticks", ticks.get());
        let ticking: JoinHandle<()> = ticking;
        drop(ticking);
    });
}

/// Sleeps that a task polls itself end too, without a turn of the executor.
#[test]
fn a_sleep_that_is_polled_in_a_loop_within_one_poll_ends() {
    in_time(|| {
        LocalExecutor::new().block_on(async {
            let mut sleep = sleep(MS);
            let mut cx = Context::from_waker(Waker::noop());
            while Pin::new(&mut sleep).poll(&mut cx).is_pending() {}
            let late = reveille::time::sleep(MS);
            thread::sleep(2 * MS);
            assert!(late.is_elapsed());
        });
    });
}

/// A token that the caller had before the call is there after it.
#[test]
fn blocking_leaves_the_token_of_the_thread() {
    type Blocks = (&'static str, fn());
    let blocks: [Blocks; 6] = [
        ("LocalExecutor::block_on", || {
            LocalExecutor::new().block_on(async { sleep(5 * MS).await });
        }),
        ("LocalExecutor::block_on, woken from a thread", || {
            let (tx, rx) = oneshot::channel();
            let sends = thread::spawn(move || {
                thread::sleep(5 * MS);
                tx.send(())
            });
            LocalExecutor::new().block_on(rx).unwrap();
            sends.join().unwrap().unwrap();
        }),
        ("ThreadPool::block_on", || {
            pool(1).block_on(async { sleep(5 * MS).await });
        }),
        ("block_on", || block_on(async { sleep(5 * MS).await })),
        ("blocking_recv", || {
            let (tx, rx) = oneshot::channel();
            let sends = thread::spawn(move || {
                thread::sleep(5 * MS);
                tx.send(())
            });
            rx.blocking_recv().unwrap();
            sends.join().unwrap().unwrap();
        }),
        ("Threads", || {
            reveille_executor::Threads.block_on(async { sleep(5 * MS).await });
        }),
    ];
    for (what, blocks) in blocks {
        in_time(move || {
            thread::current().unpark();
            blocks();
            let start = Instant::now();
            thread::park_timeout(Duration::from_secs(5));
            assert!(start.elapsed() < Duration::from_secs(4), "{what}");
        });
    }
}

/// The worker that drove runs a long task. Another worker drives.
#[test]
fn a_long_poll_keeps_no_timer_waiting_while_a_worker_is_idle() {
    in_time(|| {
        let pool = pool(2);
        for _ in 0..20 {
            let (slept, sleeps) = oneshot::channel();
            let other = pool.spawn(async {
                sleep(4 * MS).await;
                slept.send(()).unwrap();
            });
            let blocks = pool.spawn(async {
                sleep(MS).await;
                // A worker wakes this task, which blocks the worker.
                block_on(sleeps).unwrap();
            });
            for task in [other, blocks] {
                pool.block_on(task).unwrap();
            }
        }
    });
}

#[test]
fn executors_drive_their_own_timers_and_each_others() {
    fn both(one: Option<Timers>, other: Option<Timers>) {
        in_time(move || {
            // Each executor waits for a sleep of the other.
            let (there, here) = oneshot::channel();
            let local = thread::spawn(move || {
                let builder = LocalExecutor::builder();
                let executor = match one {
                    Some(timers) => builder.timers(timers).build(),
                    None => builder.build(),
                };
                executor.block_on(async {
                    sleep(5 * MS).await;
                    there.send(()).unwrap();
                    timeout(FAR, pending::<()>()).await.unwrap_err();
                })
            });
            let builder = ThreadPool::builder().workers(2);
            let pool = match other {
                Some(timers) => builder.timers(timers).build(),
                None => builder.build(),
            };
            let waits = pool.spawn(timeout(FAR, here));
            pool.block_on(waits).unwrap().unwrap().unwrap();
            // The other executor is parked until a far deadline.
            pool.block_on(pool.spawn(async { sleep(5 * MS).await }))
                .unwrap();
            drop(local);
        });
    }
    both(None, None);
    let timers = Timers::threaded();
    both(Some(timers.clone()), Some(timers));
}

#[test]
fn what_sleeps_on_when_an_executor_ends_is_woken_all_the_same() {
    in_time(|| {
        let pool = pool(2);
        let handle = pool.handle().clone();
        let (blocks, blocking) = oneshot::channel();
        let blocked = thread::spawn(move || {
            handle.block_on(async {
                let sleeping = sleep(20 * MS);
                blocks.send(()).unwrap();
                sleeping.await;
                sleep(MS).await;
            });
        });
        block_on(blocking).unwrap();
        drop(pool);
        blocked.join().unwrap();

        let executor = LocalExecutor::new();
        let timers = executor.timers().clone();
        let mut sleeping = timers.sleep(MS);
        let poll = Pin::new(&mut sleeping).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(poll, Poll::Pending);
        drop(executor);
        block_on(sleeping);
    });
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("this waker panics on purpose");
    }
}

#[test]
fn a_waker_that_panics_takes_no_executor_down() {
    fn check(executor: &impl Executor<JoinHandle<u32> = JoinHandle<u32>>, timers: &Timers) {
        let waker = Waker::from(Arc::new(Panics));
        for _ in 0..3 {
            let mut bad = timers.sleep(MS);
            let poll = Pin::new(&mut bad).poll(&mut Context::from_waker(&waker));
            assert_eq!(poll, Poll::Pending);
            executor.block_on(async { sleep(2 * MS).await });
            assert!(bad.is_elapsed());
            assert_eq!(
                executor.block_on(executor.spawn(async { 7_u32 })).unwrap(),
                7
            );
        }
    }
    in_time(|| {
        let pool = pool(1);
        check(&pool, pool.timers());
        let local = LocalExecutor::new();
        check(&local, local.timers());
    });
}

/// Many sleeps on several workers: none is lost, and none is early.
#[test]
fn many_sleeps_end_on_a_pool() {
    in_time(|| {
        for workers in [1, 2, 4] {
            let pool = pool(workers);
            let tasks: Vec<_> = (0..200_u32)
                .map(|number| {
                    pool.spawn(async move {
                        for round in 0..5 {
                            let length = MS / 4 * (number * 7 % 13 + round);
                            let start = Instant::now();
                            sleep(length).await;
                            assert!(start.elapsed() >= length);
                        }
                    })
                })
                .collect();
            for task in tasks {
                pool.block_on(task).unwrap();
            }
        }
    });
}

/// A blocking call takes real time. Virtual time does not pass meanwhile.
#[test]
fn virtual_time_stands_while_a_call_blocks() {
    in_time(|| {
        let clock = VirtualClock::when_idle();
        let builder = LocalExecutor::builder().timers(clock.timers().clone());
        let executor = builder.build();
        let call = || thread::sleep(20 * MS);
        executor.block_on(async {
            let joined = timeout(MS, task::spawn_blocking(call)).await;
            joined.expect("no time has passed").unwrap();
            let joined = timeout(MS, task::spawn_blocking(|| panic_any("no coffee"))).await;
            assert!(joined.expect("no time has passed").unwrap_err().is_panic());
        });
        assert_eq!(clock.now(), reveille::time::Instant::ORIGIN);

        // Virtual time passes again when a call that is never joined has ended.
        executor.block_on(async {
            let call = task::spawn_blocking(call);
            sleep(FAR).await;
            assert!(call.is_finished());
        });
        assert!(clock.now() >= reveille::time::Instant::ORIGIN + FAR);
    });
}

/// A sleep ends while many tasks are ready, and stay so. Its task does not wait for all of
/// them.
#[test]
fn a_sleep_is_not_late_by_the_length_of_the_queue() {
    let executor = LocalExecutor::new();
    let sleep = executor.timers().sleep(Duration::from_millis(20));
    let due = Instant::now() + Duration::from_millis(20);
    let (over, polls) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0_u32)));
    let ready: Vec<_> = (0..20_000)
        .map(|_| {
            let (over, polls) = (over.clone(), polls.clone());
            executor.spawn_local(async move {
                while !over.get() {
                    if Instant::now() >= due {
                        polls.set(polls.get() + 1);
                    }
                    task::yield_now().await;
                }
            })
        })
        .collect();
    let sleeps = executor.spawn_local(async move {
        sleep.await;
        over.set(true);
        polls.get()
    });
    let polls = executor.block_on(sleeps).unwrap();
    // Timers fire after 256 polls.
    assert!(
        polls <= 2 * 256,
        "the sleep was late by {polls} polls of others"
    );
    drop(ready);
}

/// The same on a pool, whose only worker has a long queue.
#[test]
fn a_sleep_is_not_late_by_the_length_of_the_queue_of_a_worker() {
    let pool = ThreadPool::builder().workers(1).build();
    let sleep = pool.timers().sleep(Duration::from_millis(20));
    let due = Instant::now() + Duration::from_millis(20);
    let over = Arc::new(AtomicBool::new(false));
    let polls = Arc::new(AtomicU32::new(0));
    let (late, sleeps) = oneshot::channel();
    pool.spawn({
        let (over, polls) = (over.clone(), polls.clone());
        async move {
            sleep.await;
            over.store(true, Relaxed);
            late.send(polls.load(Relaxed)).unwrap();
        }
    });
    for _ in 0..20_000 {
        let (over, polls) = (over.clone(), polls.clone());
        pool.spawn(async move {
            while !over.load(Relaxed) {
                if Instant::now() >= due {
                    polls.fetch_add(1, Relaxed);
                }
                task::yield_now().await;
            }
        });
    }
    let late = pool.block_on(sleeps).unwrap();
    // A worker fires timers after 61 polls.
    assert!(
        late <= 4 * 61,
        "the sleep was late by {late} polls of others"
    );
}
