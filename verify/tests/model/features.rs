//! The features of a model, one by one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use reveille::time::{Duration, Instant, interval, sleep, timeout};
use reveille::{
    Mutex, Notify, Pool, RwLock, RwLockUpgradableReadGuard, Semaphore, broadcast, mpmc, mpsc,
    oneshot,
};
use reveille_executor::{Executor, task};
use reveille_verify::{Kind, Model, ModelReport, Verdict, explore_model, replay_model};

use crate::{fails, holds};

#[test]
fn a_panic_is_told_with_its_place() {
    let failure = fails(Kind::Panic, |m| {
        m.spawn("alice", async { panic!("no coffee") });
    });
    assert!(
        failure.sentence.contains("alice panics: no coffee, at "),
        "{failure}"
    );
    assert!(failure.sentence.contains("features.rs"), "{failure}");
}

#[test]
fn time_passes_at_every_moment() {
    let report = holds(|m| {
        let (in_time, late) = (m.sometimes("in time"), m.sometimes("late"));
        let (tx, rx) = oneshot::channel();
        m.spawn("receiver", async move {
            let start = Instant::now();
            match timeout(Duration::from_secs(3600), rx).await {
                Ok(received) => {
                    assert_eq!(received, Ok(7));
                    in_time.reached();
                }
                Err(_) => {
                    assert!(start.elapsed() >= Duration::from_secs(3600));
                    late.reached();
                }
            }
        });
        m.spawn("sender", async move {
            let _ = tx.send(7);
        });
    });
    assert!(report.executions > report.time_passed, "{report}");
    assert!(report.time_passed > 0, "{report}");
}

#[test]
fn sleeps_end() {
    holds(|m| {
        let order = Arc::new(Mutex::new(Vec::new()));
        for seconds in [2, 1] {
            let order = order.clone();
            m.spawn("sleeper", async move {
                sleep(Duration::from_secs(seconds)).await;
                order.lock().await.push(seconds);
            });
        }
        m.at_end(move || assert_eq!(order.try_lock().unwrap().len(), 2));
    });
}

#[test]
fn an_interval_ticks() {
    holds(|m| {
        m.spawn("ticker", async {
            let start = Instant::now();
            let mut interval = interval(Duration::from_secs(1));
            for tick in 0..3 {
                let at = interval.tick().await;
                assert_eq!(at - start, Duration::from_secs(tick));
            }
        });
    });
}

#[test]
fn threads_block_on_primitives() {
    holds(|m| {
        let (tx, rx) = oneshot::channel();
        let both = Arc::new(Mutex::new(0));
        let other = both.clone();
        m.thread("blocks", move || {
            *other.blocking_lock() += rx.blocking_recv().unwrap();
        });
        let other = both.clone();
        m.thread("executor", move || {
            reveille_executor::block_on(async move { *other.lock().await += 1 });
        });
        m.spawn("sends", async move { tx.send(7).unwrap() });
        m.at_end(move || assert_eq!(*both.try_lock().unwrap(), 8));
    });
}

#[test]
fn tasks_spawn_tasks_and_abort_them() {
    let report = holds(|m| {
        let handle = m.handle();
        let (finished, aborted) = (m.sometimes("finished"), m.sometimes("aborted"));
        m.spawn("parent", async move {
            let (tx, rx) = oneshot::channel::<()>();
            let child = handle.spawn(async move { rx.await.is_ok() });
            let other = handle.spawn(async move { tx.send(()) });
            child.abort();
            match child.await {
                Ok(received) => {
                    assert!(received);
                    finished.reached();
                }
                Err(error) => {
                    assert!(error.is_cancelled());
                    aborted.reached();
                }
            }
            let _ = other.await.unwrap();
        });
    });
    assert!(report.executions > 1);
}

#[test]
fn a_mark_that_is_never_reached_is_named() {
    let failure = fails(Kind::NeverReached, |m| {
        let _never = m.sometimes("the moon is full");
        m.spawn("alice", async {});
    });
    assert!(
        failure.sentence.contains("\"the moon is full\""),
        "{failure}"
    );
}

#[test]
fn a_task_that_may_wait_for_ever_does_no_harm() {
    holds(|m| {
        let jobs = Arc::new(Semaphore::new(0));
        let server = jobs.clone();
        m.spawn_background("server", async move {
            loop {
                server.acquire().await.unwrap().forget();
            }
        });
        m.spawn("client", async move { jobs.add_permits(1) });
    });
}

#[test]
fn an_execution_that_does_not_end_is_named() {
    let failure = fails(Kind::Livelock, |m| {
        let lock = Arc::new(Mutex::new(()));
        m.spawn("spins", async move {
            loop {
                drop(lock.lock().await);
                task::yield_now().await;
            }
        });
    });
    assert!(failure.sentence.contains("spins"), "{failure}");
    assert!(failure.table().lines().count() < 250, "{failure}");
}

#[test]
fn what_happened_is_counted() {
    let report = holds(|m| {
        let lock = Arc::new(Mutex::new(0));
        let other = lock.clone();
        m.spawn("slow", async move {
            let _held = other.lock().await;
            sleep(Duration::from_secs(1)).await;
        });
        let other = lock.clone();
        m.spawn_cancellable("short", async move {
            drop(timeout(Duration::from_secs(1), other.lock()).await);
        });
        m.spawn("tries", async move { drop(lock.try_lock()) });
    });
    let ModelReport {
        executions,
        waited,
        time_passed,
        timed_out,
        refused,
        cancelled,
        ..
    } = report;
    assert_eq!(time_passed, executions, "slow sleeps in each: {report}");
    for some in [waited, timed_out, refused, cancelled] {
        assert!(0 < some && some < executions, "{report}");
    }
    assert!(
        report.to_string().contains("a try was refused in"),
        "{report}"
    );
}

#[test]
fn each_call_that_does_not_wait_is_counted_if_it_is_refused() {
    fn refused(call: fn()) -> u64 {
        let report = holds(move |m| m.spawn("tries", async move { call() }));
        report.refused
    }
    let calls: [fn(); 10] = [
        || {
            let lock = Mutex::new(0);
            let _held = lock.try_lock().unwrap();
            lock.try_lock().unwrap_err();
        },
        || {
            let lock = RwLock::new(0);
            let _held = lock.try_write().unwrap();
            lock.try_read().unwrap_err();
        },
        || {
            let lock = RwLock::new(0);
            let _held = lock.try_read().unwrap();
            let looks = lock.try_upgradable_read().unwrap();
            drop(RwLockUpgradableReadGuard::try_upgrade(looks).unwrap_err());
        },
        || assert!(Semaphore::new(0).try_acquire().is_err()),
        || assert!(mpsc::channel::<u32>(1).1.try_recv().is_err()),
        || {
            let (tx, _rx) = mpsc::channel(1);
            tx.try_send(1).unwrap();
            tx.try_send(2).unwrap_err();
        },
        || assert!(mpmc::bounded::<u32>(1).1.try_recv().is_err()),
        || {
            let (tx, mut rx) = broadcast::channel::<u32>(1);
            rx.try_recv().unwrap_err();
            drop(tx);
        },
        || {
            let (tx, mut rx) = oneshot::channel::<u32>();
            rx.try_recv().unwrap_err();
            drop(tx);
        },
        || assert!(Pool::<u32>::new(1).try_get().is_none()),
    ];
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(refused(call), 1, "call {number}");
    }
    assert_eq!(refused(|| drop(Mutex::new(0).try_lock().unwrap())), 0);
}

#[test]
fn a_yield_lets_others_go_first() {
    holds(|m| {
        let done = Arc::new(Mutex::new(false));
        let other = done.clone();
        m.spawn("waits", async move {
            while !*other.lock().await {
                task::yield_now().await;
            }
        });
        m.spawn("does", async move { *done.lock().await = true });
    });
}

#[test]
fn what_depends_on_more_than_the_order_is_said() {
    let calls = AtomicUsize::new(0);
    let failure = fails(Kind::NonDeterminism, move |m| {
        let odd = calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        let locks = Arc::new([Mutex::new(0), Mutex::new(0)]);
        for _ in 0..2 {
            let locks = locks.clone();
            m.spawn("task", async move {
                if odd {
                    *locks[0].lock().await += 1;
                }
                *locks[1].lock().await += 1;
            });
        }
    });
    let first = "step 3, of task, was not the same";
    assert!(failure.sentence.contains(first), "{failure}");
}

#[test]
fn a_bound_and_a_draw_are_said() {
    let scene = |m: &Model| {
        let lock = Arc::new(Mutex::new(0));
        for name in ["alice", "bob", "carol"] {
            let lock = lock.clone();
            m.spawn(name, async move { *lock.lock().await += 1 });
        }
    };
    let whole = explore_model(scene);
    assert_eq!(whole.verdict, Verdict::Complete);
    let few = explore_model(move |m| {
        m.preemptions(0);
        scene(m);
    });
    assert_eq!(few.verdict, Verdict::Bounded);
    assert_eq!(
        few.executions, 6,
        "orders of three that do not interrupt each other: {few}"
    );
    let drawn = explore_model(move |m| {
        m.sampled(50);
        scene(m);
    });
    assert_eq!(drawn.verdict, Verdict::Sampled);
    assert_eq!(drawn.executions, 50);
    let cut = explore_model(move |m| {
        m.at_most(2);
        m.expect_complete();
        scene(m);
    });
    assert_eq!(cut.verdict, Verdict::Bounded);
    assert_eq!(cut.failure.unwrap().kind, Kind::Incomplete);
}

#[test]
fn what_is_shared_otherwise_takes_every_order() {
    // The model sees no atomics, so exchanging the two seems to make no difference.
    let scene = |m: &Model, every_order: bool| {
        if every_order {
            m.every_order();
        }
        let (ready, notify) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let (flag, bell) = (ready.clone(), notify.clone());
        m.spawn("waits", async move {
            while !flag.load(Ordering::Relaxed) {
                bell.notified().await;
            }
        });
        m.spawn("sets", async move {
            ready.store(true, Ordering::Relaxed);
            notify.notify_waiters();
        });
    };
    fails(Kind::LostWakeUp, move |m| scene(m, true));
}

#[test]
fn a_wake_for_no_reason_is_polled_through() {
    let most = Arc::new(AtomicUsize::new(0));
    let seen = most.clone();
    holds(move |m| {
        m.spurious(1);
        let (tx, rx) = oneshot::channel();
        let seen = seen.clone();
        m.spawn("receiver", async move {
            let mut rx = std::pin::pin!(rx);
            let mut polls = 0;
            std::future::poll_fn(|cx| {
                polls += 1;
                seen.fetch_max(polls, Ordering::Relaxed);
                rx.as_mut().poll(cx)
            })
            .await
            .unwrap();
        });
        m.spawn("sender", async move { tx.send(7).unwrap() });
    });
    assert_eq!(
        most.load(Ordering::Relaxed),
        3,
        "polls: the first, one for nothing, one for the value"
    );
}

/// The notes of tasks, in some order.
type Outcome = Vec<&'static str>;

/// Returns all the notes that a scene can leave.
fn outcomes(
    every_order: bool,
    scene: impl Fn(&Model, &Arc<std::sync::Mutex<Outcome>>) + Send + Sync + 'static,
) -> (BTreeSet<Outcome>, u64) {
    let all = Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let noted = all.clone();
    let report = explore_model(move |m| {
        if every_order {
            m.every_order();
        }
        let outcome = Arc::default();
        scene(m, &outcome);
        let noted = noted.clone();
        m.at_end(move || {
            let outcome = std::mem::take(&mut *outcome.lock().unwrap());
            noted.lock().unwrap().insert(outcome);
        });
    });
    assert!(report.failure.is_none(), "{:?}", report.failure);
    assert_eq!(report.verdict, Verdict::Complete);
    let all = all.lock().unwrap();
    (all.clone(), report.executions)
}

/// Two callers of a slow lock. One of them has little time, and can be dropped.
fn slow_lock(m: &Model, outcome: &Arc<std::sync::Mutex<Outcome>>) {
    let lock = Arc::new(Mutex::new(()));
    let (other, notes) = (lock.clone(), outcome.clone());
    m.spawn("slow", async move {
        let held = other.lock().await;
        notes.lock().unwrap().push("taken");
        drop(held);
    });
    let notes = outcome.clone();
    m.spawn_cancellable("short", async move {
        let second = Duration::from_secs(1);
        let held = timeout(second, lock.lock()).await;
        let note = if held.is_ok() { "in time" } else { "late" };
        notes.lock().unwrap().push(note);
    });
}

#[test]
fn leaving_orders_out_leaves_no_outcome_out() {
    let (reduced, few) = outcomes(false, slow_lock);
    let (all, many) = outcomes(true, slow_lock);
    assert_eq!(reduced, all);
    assert!(all.contains(&vec!["taken", "late"]), "{all:?}");
    assert!(few < many, "{few} of {many}");
}

#[test]
fn a_token_runs_the_same_execution_again() {
    let scene = |m: &Model| {
        let notify = Arc::new(Notify::new());
        let other = notify.clone();
        m.spawn_cancellable("first", async move { other.notified().await });
        let other = notify.clone();
        m.spawn("second", async move { other.notified().await });
        m.spawn("boss", async move { notify.notify_one() });
    };
    let failure = fails(Kind::LostWakeUp, scene);
    let again = replay_model(&failure.token, scene);
    assert_eq!(again.executions, 1);
    let again = again.failure.expect("it fails again");
    assert_eq!(again.sentence, failure.sentence);
    assert_eq!(again.table(), failure.table());
    let damaged = replay_model("no token", scene).failure.unwrap();
    assert!(damaged.sentence.contains("damaged"), "{damaged}");
}
