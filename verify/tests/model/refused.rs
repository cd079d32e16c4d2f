//! What a model refuses: tasks that block its thread, and primitives that outlive an
//! execution.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reveille::{Mutex, Notify, Semaphore};
use reveille_executor::task;
use reveille_verify::{Kind, Model, explore_model};

use crate::{fails, holds};

/// Runs a model of which bob blocks the thread. Returns the message.
fn blocks(scene: impl Fn(&Model) + Send + Sync + 'static) -> String {
    let begun = Instant::now();
    let failure = fails(Kind::Blocked, scene);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(failure.sentence.starts_with("bob blocks"), "{failure}");
    assert!(!failure.token.is_empty(), "{failure}");
    failure.to_string()
}

#[test]
#[allow(clippy::await_holding_lock, reason = "the fault that is to be found")]
fn a_lock_of_the_thread_that_is_held_across_an_await_is_named() {
    let message = blocks(|m| {
        let total = Arc::new(std::sync::Mutex::new(0));
        let turn = Arc::new(Mutex::new(()));
        m.name(&*turn, "turn");
        for name in ["alice", "bob"] {
            let (total, turn) = (total.clone(), turn.clone());
            m.spawn(name, async move {
                drop(turn.lock().await);
                let mut total = total.lock().unwrap();
                drop(turn.lock().await);
                *total += 1;
            });
        }
    });
    assert!(message.contains("`turn`"), "{message}");
}

#[test]
fn a_real_sleep_is_named() {
    blocks(|m| {
        m.spawn("alice", async {});
        m.spawn("bob", async {
            std::thread::sleep(Duration::from_secs(60));
        });
    });
}

#[test]
fn a_loop_that_waits_for_another_task_is_named() {
    static ENDED: AtomicBool = AtomicBool::new(false);
    blocks(|m| {
        m.spawn("bob", async {
            while !ENDED.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        });
        m.spawn("carol", async {
            task::yield_now().await;
            ENDED.store(true, Ordering::Relaxed);
        });
    });
    // The thread that was given up does not spin for ever.
    ENDED.store(true, Ordering::Relaxed);
}

#[test]
fn a_static_that_an_execution_changes_is_refused() {
    static JOBS: Mutex<u32> = Mutex::new(0);
    let failure = fails(Kind::LeftOver, |m| {
        m.name(&JOBS, "jobs");
        for name in ["alice", "bob"] {
            m.spawn(name, async { *JOBS.lock().await += 1 });
        }
    });
    for part in ["uses `jobs`", "refused.rs:7", "static"] {
        assert!(failure.sentence.contains(part), "{failure}");
    }
}

#[test]
fn a_primitive_from_outside_of_the_model_is_refused() {
    let bell = Arc::new(Notify::new());
    fails(Kind::LeftOver, move |m| {
        let (bell, other) = (bell.clone(), bell.clone());
        m.spawn("alice", async move { bell.notified().await });
        m.spawn("bob", async move { other.notify_one() });
    });
}

#[test]
fn a_static_that_is_only_read_is_allowed() {
    static PERMITS: Semaphore = Semaphore::new(3);
    holds(|m| {
        let seen = Arc::new(Mutex::new(0));
        for name in ["alice", "bob"] {
            let seen = seen.clone();
            m.spawn(name, async move {
                assert_eq!(PERMITS.available_permits(), 3);
                *seen.lock().await += 1;
            });
        }
    });
}

#[test]
fn a_lock_at_the_address_of_an_earlier_one_is_another() {
    // It is used, then moved: no destructor runs at its first address.
    let scene = |m: &Model| {
        let lock = Mutex::new(0);
        *lock.try_lock().unwrap() += 1;
        let lock = Arc::new(lock);
        for name in ["alice", "bob"] {
            let lock = lock.clone();
            m.spawn(name, async move { *lock.lock().await += 1 });
        }
    };
    holds(scene);
    let report = explore_model(scene);
    assert!(report.failure.is_none(), "{:?}", report.failure);
}
