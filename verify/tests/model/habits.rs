//! What tests of async code do by habit, in a model. Each works, or fails with a sentence
//! that names it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reveille::time::{self, Duration, Instant};
use reveille::{CancellationToken, Mutex, Notify, OnceMap, Phaser, Pool, Shutdown, mpmc, oneshot};
use reveille_executor::task::JoinSet;
use reveille_executor::{Executor, LocalExecutor, task};
use reveille_verify::{Kind, Model, explore_model, model};

use crate::{fails, first_of, holds};

type Scene = fn(&Model);

#[test]
fn what_works() {
    let scenes: [(&str, Scene); 12] = [
        ("a lock of std within one step", |m| {
            let total = Arc::new(std::sync::Mutex::new(0));
            let turn = Arc::new(Mutex::new(()));
            for name in ["alice", "bob"] {
                let (total, turn) = (total.clone(), turn.clone());
                m.spawn(name, async move {
                    drop(turn.lock().await);
                    *total.lock().unwrap() += 1;
                });
            }
            m.at_end(move || assert_eq!(*total.lock().unwrap(), 2));
        }),
        ("a thread of the system that is joined", |m| {
            m.spawn("alice", async {
                let doubled = std::thread::spawn(|| 2 * 2).join();
                assert_eq!(doubled.unwrap(), 4);
            });
        }),
        ("a time of the model", |m| {
            m.spawn("alice", async {
                let start = Instant::now();
                let mut interval = time::interval(Duration::from_secs(60));
                for _ in 0..3 {
                    interval.tick().await;
                }
                assert_eq!(start.elapsed(), Duration::from_secs(120));
            });
        }),
        ("tasks in a set, on an executor of one thread", |m| {
            m.thread("runs them", || {
                LocalExecutor::new().block_on(async {
                    let mut tasks = JoinSet::new();
                    for value in 1..=3 {
                        tasks.spawn(async move {
                            task::yield_now().await;
                            value
                        });
                    }
                    let mut sum = 0;
                    while let Some(value) = tasks.join_next().await {
                        sum += value.unwrap();
                    }
                    assert_eq!(sum, 6);
                });
            });
        }),
        ("the first of two, and the other one dropped", |m| {
            let (one, other) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
            let (rings, also) = (one.clone(), other.clone());
            m.spawn("waits", async move {
                let _ = first_of(one.notified(), other.notified()).await;
            });
            m.spawn("rings", async move { rings.notify_one() });
            m.spawn("too", async move { also.notify_one() });
        }),
        ("mpmc", |m| {
            let (tx, rx) = mpmc::bounded(1);
            for name in ["one", "other"] {
                let rx = rx.clone();
                m.spawn(name, async move { assert!(rx.recv().await.is_ok()) });
            }
            m.spawn("sender", async move {
                for value in [7, 8] {
                    tx.send(value).await.unwrap();
                }
            });
        }),
        ("a token", |m| {
            let token = CancellationToken::new();
            let child = token.child_token();
            m.spawn("waits", async move { child.cancelled().await });
            m.spawn("cancels", async move { token.cancel() });
        }),
        ("a pool", |m| {
            let pool = Arc::new(Pool::new(1));
            for name in ["alice", "bob"] {
                let pool = pool.clone();
                m.spawn_cancellable(name, async move {
                    let made = pool.get(|| async { Ok::<_, ()>(7) }).await;
                    assert_eq!(*made.unwrap(), 7);
                });
            }
            m.at_end(move || assert!(pool.size() <= 1));
        }),
        ("one value for each key", |m| {
            let map = Arc::new(OnceMap::new());
            let made = Arc::new(AtomicUsize::new(0));
            for name in ["alice", "bob"] {
                let (map, made) = (map.clone(), made.clone());
                m.spawn(name, async move {
                    let make = || async move { made.fetch_add(1, Ordering::Relaxed) };
                    assert_eq!(map.get_or_init("key", make).await, 0);
                });
            }
        }),
        ("a phaser", |m| {
            let phaser = Phaser::new();
            for name in ["alice", "bob"] {
                let mut party = phaser.register();
                m.spawn(name, async move {
                    for phase in 0..2 {
                        assert_eq!(party.arrive_and_wait().await, phase + 1);
                    }
                });
            }
        }),
        ("a shutdown", |m| {
            let shutdown = Shutdown::new();
            let guard = shutdown.guard();
            m.spawn("works", async move { guard.requested().await });
            m.spawn("stops it", async move {
                shutdown.request();
                shutdown.wait().await;
            });
        }),
        ("a call that blocks, in a task", |m| {
            let lock = Arc::new(Mutex::new(0));
            for name in ["alice", "bob"] {
                let lock = lock.clone();
                m.spawn(name, async move { *lock.blocking_lock() += 1 });
            }
            m.at_end(move || assert_eq!(*lock.try_lock().unwrap(), 2));
        }),
    ];
    for (what, scene) in scenes {
        eprintln!("{what}");
        holds(scene);
    }
}

/// A value whose destructor panics.
struct Brittle;

impl Drop for Brittle {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "it broke");
    }
}

#[test]
fn what_is_named() {
    let scenes: [(&str, Kind, Scene, &str); 11] = [
        (
            "tokio's timers",
            Kind::Panic,
            |m| m.spawn("alice", tokio::time::sleep(Duration::from_secs(1))),
            "Tokio",
        ),
        (
            "a task of tokio",
            Kind::Panic,
            |m| m.spawn("alice", async { drop(tokio::spawn(async {})) }),
            "Tokio",
        ),
        (
            "a task of an executor that does not run",
            Kind::Panic,
            |m| m.spawn("alice", async { drop(task::spawn(async {})) }),
            "task::spawn was called outside of the executors of this crate",
        ),
        (
            "an executor that waits within the model",
            Kind::Panic,
            |m| {
                let (tx, rx) = oneshot::channel();
                m.thread("runs them", || {
                    LocalExecutor::new().block_on(async { drop(task::spawn(rx).await) });
                });
                m.spawn("sends", async move { tx.send(7).unwrap() });
            },
            "spawn its tasks on the handle of the model",
        ),
        (
            "a destructor that panics",
            Kind::Panic,
            |m| m.spawn("alice", async { drop(Brittle) }),
            "alice panics: it broke, at ",
        ),
        (
            "a destructor that panics when a task is dropped",
            Kind::Panic,
            |m| {
                m.spawn_cancellable("alice", async {
                    let _held = Brittle;
                    time::sleep(Duration::from_secs(1)).await;
                    std::mem::forget(_held);
                });
            },
            "alice panics: it broke, at ",
        ),
        (
            "thousands of tasks",
            Kind::Panic,
            |m| {
                for _ in 0..5_000 {
                    m.spawn("task", async {});
                }
            },
            "the set-up panics: a model has 32 tasks, threads and clocks at most",
        ),
        (
            "a program of many steps",
            Kind::Livelock,
            |m| {
                m.spawn("alice", async {
                    let lock = Mutex::new(0);
                    for _ in 0..20_000 {
                        *lock.lock().await += 1;
                    }
                });
            },
            "the execution has taken 10000 steps and does not end: alice took the last",
        ),
        (
            "a value that another thread sends",
            Kind::Elsewhere,
            |m| {
                let (tx, rx) = oneshot::channel();
                m.spawn("alice", async move {
                    let mut rx = rx;
                    assert!(rx.try_recv().is_err());
                    std::thread::spawn(|| tx.send(7)).join().unwrap().unwrap();
                    drop(rx.await);
                });
            },
            "alice finds lock 0 changed by a thread that the model does not run",
        ),
        (
            "a task that another thread wakes",
            Kind::Elsewhere,
            |m| {
                let (tx, rx) = oneshot::channel();
                m.spawn("alice", async move { drop(rx.await) });
                m.spawn_background("bob", async {
                    task::yield_now().await;
                    time::sleep(Duration::from_secs(1)).await;
                    std::thread::spawn(|| tx.send(7)).join().unwrap().unwrap();
                });
            },
            "make threads by `thread` of the model",
        ),
        (
            "a thread that another thread unparks",
            Kind::Elsewhere,
            |m| {
                let (tx, rx) = oneshot::channel();
                m.thread("alice", || drop(rx.blocking_recv()));
                m.spawn("bob", async {
                    time::sleep(Duration::from_secs(1)).await;
                    std::thread::spawn(|| tx.send(7)).join().unwrap().unwrap();
                });
            },
            "make threads by `thread` of the model",
        ),
    ];
    for (what, kind, scene, part) in scenes {
        eprintln!("{what}");
        let failure = fails(kind, scene);
        assert!(failure.sentence.contains(part), "{what}: {failure}");
    }
}

#[test]
fn a_hint_to_another_thread_does_not_outlive_its_execution() {
    let failure = fails(Kind::LostWakeUp, |m| {
        m.spawn("alice", async { Notify::new().notified().await });
    });
    assert!(!failure.sentence.contains("another thread"), "{failure}");
    assert!(!failure.sentence.contains("make threads"), "{failure}");
}

#[test]
fn a_clock_of_the_system_is_named_if_what_happens_depends_on_it() {
    let calls = AtomicUsize::new(0);
    let failure = fails(Kind::NonDeterminism, move |m| {
        let lock = Arc::new(Mutex::new(0));
        let slow = calls.fetch_add(1, Ordering::Relaxed) == 1;
        for name in ["alice", "bob"] {
            let lock = lock.clone();
            m.spawn(name, async move {
                let start = std::time::Instant::now();
                *lock.lock().await += 1;
                if slow {
                    std::thread::sleep(Duration::from_millis(20));
                }
                if start.elapsed() < Duration::from_millis(20) {
                    *lock.lock().await += 1;
                }
            });
        }
    });
    assert!(
        failure.sentence.contains("the time of the system"),
        "{failure}"
    );
}

#[test]
fn a_model_runs_within_a_test_of_tokio() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(async {
        model(|m| m.spawn("alice", async {}));
        holds(|m| {
            let (tx, rx) = oneshot::channel();
            m.spawn("receives", async move { assert_eq!(rx.await, Ok(7)) });
            m.spawn("sends", async move { tx.send(7).unwrap() });
        });
    });
}

#[test]
fn a_model_is_not_disturbed_by_primitives_that_others_use_beside_it() {
    let bell = Arc::new(Notify::new());
    let stop = CancellationToken::new();
    let (rings, ends) = (bell.clone(), stop.clone());
    let beside = std::thread::spawn(move || {
        while !ends.is_cancelled() {
            rings.notify_one();
            let mut woken = pin!(rings.notified());
            reveille_executor::block_on(woken.as_mut());
        }
    });
    let two = || {
        explore_model(|m| {
            let lock = Arc::new(Mutex::new(0));
            for name in ["alice", "bob"] {
                let lock = lock.clone();
                m.spawn(name, async move { *lock.lock().await += 1 });
            }
        })
    };
    let counts: Vec<_> = (0..3).map(|_| two().executions).collect();
    stop.cancel();
    bell.notify_one();
    beside.join().unwrap();
    assert!(counts.iter().all(|&count| count == counts[0]), "{counts:?}");
}

#[test]
fn tasks_of_a_handle_run_and_their_panics_are_told() {
    let failed = catch_unwind(AssertUnwindSafe(|| {
        model(|m| {
            let handle = m.handle();
            m.spawn("parent", async move {
                let child = handle.spawn(async { panic!("no coffee") });
                let _: Result<(), _> = child.await;
            });
        });
    }));
    let message = failed.expect_err("it panics");
    let message = message.downcast_ref::<String>().expect("a text");
    assert!(message.contains("no coffee"), "{message}");
}
