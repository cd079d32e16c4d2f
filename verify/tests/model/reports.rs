//! What a failure says.

use std::future::{Future, pending, poll_fn};
use std::panic::catch_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use reveille::{Mutex, Notify, Semaphore, oneshot};
use reveille_executor::{Executor, block_on};
use reveille_verify::{Kind, Model, Verdict, explore_model, model};

use crate::{fails, holds};

#[test]
fn a_waker_that_is_kept_for_ever_is_a_leak() {
    let failure = fails(Kind::Leak, |m| {
        m.spawn("alice", async {
            poll_fn(|cx| {
                std::mem::forget(cx.waker().clone());
                Poll::Ready(())
            })
            .await;
        });
    });
    assert!(failure.sentence.contains("waker of alice"), "{failure}");
}

#[test]
fn a_future_that_keeps_no_waker_is_never_woken() {
    let failure = fails(Kind::NeverWoken, |m| m.spawn("alice", pending()));
    assert!(failure.sentence.contains("registered nowhere"), "{failure}");
}

#[test]
fn a_permit_that_no_task_holds_is_a_lost_wake_up_and_one_in_a_circle_a_deadlock() {
    let failure = fails(Kind::LostWakeUp, |m| {
        let permits = Arc::new(Semaphore::new(1));
        for name in ["alice", "bob"] {
            let permits = permits.clone();
            m.spawn(name, async move {
                permits.acquire().await.unwrap().forget();
            });
        }
    });
    assert!(failure.sentence.contains("nothing holds it"), "{failure}");
    assert!(failure.sentence.contains("ended: alice"), "{failure}");
    let failure = fails(Kind::Deadlock, |m| {
        let permits = Arc::new(Semaphore::new(2));
        for name in ["alice", "bob"] {
            let permits = permits.clone();
            m.spawn(name, async move {
                let _one = permits.acquire().await.unwrap();
                let _other = permits.acquire().await.unwrap();
            });
        }
    });
    assert!(failure.sentence.contains("alice holds it"), "{failure}");
    assert!(failure.sentence.contains("reports.rs"), "{failure}");
}

#[test]
fn a_task_that_waits_for_a_task_that_has_ended_is_told_so() {
    let failure = fails(Kind::LostWakeUp, |m| {
        let lock = Arc::new(Mutex::new(0));
        let other = lock.clone();
        m.spawn("alice", async move {
            std::mem::forget(other.lock().await);
        });
        m.spawn("bob", async move { drop(lock.lock().await) });
    });
    assert!(failure.sentence.contains("which has ended"), "{failure}");
}

#[test]
fn a_grant_that_its_task_does_not_poll_is_named() {
    // The first future is neither polled nor dropped, and is what is notified.
    let failure = fails(Kind::Deadlock, |m| {
        let bell = Arc::new(Notify::new());
        m.name(&*bell, "bell");
        let other = bell.clone();
        m.spawn("alice", async move { other.notify_one() });
        m.spawn("bob", async move {
            let mut first = pin!(bell.notified());
            let once = poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx))).await;
            if once.is_pending() {
                bell.notified().await;
            }
        });
    });
    assert!(
        failure.sentence.starts_with("a task waits for itself"),
        "{failure}"
    );
    for part in [
        "bob waits for `bell`, asked for at ",
        "bob was granted it, and does not poll the future that asked for it at ",
    ] {
        assert!(failure.sentence.contains(part), "{failure}");
    }
}

#[test]
fn a_name_of_a_whole_tells_its_locks_apart_and_one_of_a_part_goes_first() {
    let failure = fails(Kind::Deadlock, |m| {
        let locks = Arc::new([Mutex::new(0), Mutex::new(0), Mutex::new(0)]);
        m.name(&*locks, "bank");
        m.name(&locks[2], "log");
        for (name, order) in [("alice", [0, 1, 2]), ("bob", [2, 1, 0])] {
            let locks = locks.clone();
            m.spawn(name, async move {
                let _first = locks[order[0]].lock().await;
                let _second = locks[order[1]].lock().await;
                let _third = locks[order[2]].lock().await;
            });
        }
    });
    let table = failure.table();
    for name in ["`bank`", "`bank#2`", "`log`"] {
        assert!(table.contains(name), "{failure}");
    }
}

#[test]
fn a_model_that_fails_is_not_complete() {
    let report = explore_model(|m| m.spawn("alice", async { panic!("no coffee") }));
    assert_eq!(report.verdict, Verdict::Bounded);
    assert_eq!(report.bound, "up to the failure");
}

/// Returns how often a token changes from one process to another.
fn switches(token: &str) -> usize {
    let choices = token.split_once('-').expect("a plan and choices").1;
    let choices = choices.as_bytes();
    choices.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[test]
fn the_execution_that_is_shown_has_the_fewest_preemptions() {
    let failure = fails(Kind::AtEnd, |m| {
        let counter = Arc::new(Mutex::new(0));
        for name in ["alice", "bob", "carol"] {
            let counter = counter.clone();
            m.spawn(name, async move {
                drop(counter.lock().await);
                let before = *counter.lock().await;
                drop(counter.lock().await);
                *counter.lock().await = before + 1;
            });
        }
        m.at_end(move || assert_eq!(*counter.try_lock().unwrap(), 3));
    });
    // One task runs to its read, the second to its end, then the first goes on.
    assert_eq!(switches(&failure.token), 3, "{failure}");
}

#[test]
fn the_message_of_a_test_has_the_line_that_runs_it_again() {
    let failed = catch_unwind(|| {
        model(|m| m.spawn("alice", async { panic!("no coffee") }));
    });
    let message = failed.expect_err("it panics");
    let message = message.downcast_ref::<String>().expect("a text");
    let line = "again: REVEILLE_REPLAY='-' cargo test \
                reports::the_message_of_a_test_has_the_line_that_runs_it_again";
    for part in ["panic: alice panics: no coffee", line, "1 executions"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_model_within_another_is_refused() {
    let failure = fails(Kind::Panic, |m| {
        m.spawn("alice", async { model(|_: &Model| {}) });
    });
    let refused = "a model cannot run within another";
    assert!(failure.sentence.contains(refused), "{failure}");
}

#[test]
fn a_thread_that_blocks_on_a_future_is_explored() {
    let report = holds(|m| {
        let handle = m.handle();
        let (tx, rx) = oneshot::channel();
        let (answer, question) = oneshot::channel();
        m.thread("blocks", move || {
            assert_eq!(block_on(rx), Ok(7));
            assert_eq!(handle.block_on(question), Ok(8));
        });
        m.spawn("sends", async move {
            tx.send(7).unwrap();
            answer.send(8).unwrap();
        });
    });
    assert!(report.waited > 0, "{report}");
    assert!(report.waited < report.executions, "{report}");
}
