//! A task that is woken sees what was written before the wake, even if the wake found
//! that there had been another and changed nothing. This is explored under loom, over
//! the real lock. The abstract locks publish more than their contract promises, and
//! would not detect a fault.

mod support;

use std::future::poll_fn;
use std::panic::Location;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use loom::sync::atomic::AtomicBool;
use loom::thread;
use reveille::Notify;
use reveille::backend::LoomWord;
use reveille::protocol::{Bits, StateLock, block_on};
use reveille::raw::{Metadata, RunResult, Runnable, Schedule, task};

use support::models::explore;

/// The task that takes the permit looks for what it stands for, and waits again.
#[test]
fn a_notification_that_finds_a_permit_publishes() {
    for notify_one in [Notify::notify_one, Notify::notify_last] {
        let executions = explore(None, move || {
            let shared = Arc::new((Notify::<LoomWord>::new_in(), AtomicBool::new(false)));
            shared.0.notify_one();
            let notifying = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (notify, done) = &*shared;
                    done.store(true, Relaxed);
                    notify_one(notify);
                })
            };
            let (notify, done) = &*shared;
            // Loom reports a deadlock.
            block_on::<LoomWord, _>(async {
                notify.notified().await;
                while !done.load(Relaxed) {
                    notify.notified().await;
                }
            });
            notifying.join().unwrap();
        });
        assert!(executions > 5, "next to nothing was explored");
    }
}

type Slot = StateLock<Option<Runnable<LoomWord>>, LoomWord>;

struct ToSlot(Arc<Slot>);

impl Schedule<LoomWord> for ToSlot {
    fn schedule(&self, task: Runnable<LoomWord>) {
        let before = self.0.with(|section| section.state.replace(task));
        assert!(before.is_none(), "a task was scheduled twice");
    }
}

fn run_all(slot: &Slot) {
    let mut next = slot.with(|section| section.state.take());
    while let Some(runnable) = next.take() {
        next = match runnable.run() {
            RunResult::Woken(again) => Some(again),
            RunResult::Pending | RunResult::Completed(_) => {
                slot.with(|section| section.state.take())
            }
        };
    }
}

/// There are too many executions to explore all of them.
#[test]
fn bounded_to_2_preemptions_a_wake_that_finds_its_task_scheduled_publishes() {
    let executions = explore(Some(2), || {
        let slot = Arc::new(Slot::new_in(Bits::EMPTY, None));
        let done = Arc::new(AtomicBool::new(false));
        let waker = Arc::new(Mutex::new(None));
        let future = poll_fn({
            let (done, waker) = (done.clone(), waker.clone());
            move |cx| {
                if done.load(Relaxed) {
                    return Poll::Ready(());
                }
                // No lock is held here where threads can be switched.
                let own = cx.waker().clone();
                let before = waker.lock().unwrap().replace(own);
                drop(before);
                Poll::Pending
            }
        });
        let metadata = Metadata {
            id: 0,
            location: Location::caller(),
            name: (),
        };
        let (runnable, held, join) = task(future, ToSlot(slot.clone()), metadata);
        assert!(matches!(runnable.run(), RunResult::Pending));
        let waker = waker.lock().unwrap().take().unwrap();
        waker.wake_by_ref();
        let waking = thread::spawn(move || {
            done.store(true, Relaxed);
            waker.wake();
        });
        run_all(&slot);
        waking.join().unwrap();
        run_all(&slot);
        assert!(join.is_finished(), "the last wake was lost");
        drop(held);
    });
    assert!(executions > 5, "next to nothing was explored");
}
