//! Every interleaving of `block_on` with the threads that wake it.
//!
//! `block_on` is a [`Parker`] that is kept for each thread. So the models explore a
//! parker, both a new one ([`block_on_in`]) and one that is used again. The models have
//! no preemption bound: each is complete.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use loom::sync::atomic::AtomicBool;
use loom::thread;
use reveille::backend::{BlockingBackend, Loom, Observed, Observer, Park, Passage};
use reveille::oneshot;
use reveille::protocol::{Bits, Parker};
use reveille_executor::block_on_in;

/// Explores every execution of `model`, and collects what each returns.
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
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (executions, seen)
}

/// Blocks on a future that starts another thread to wake it, and that is pending until it
/// was woken. Returns whether the wake came before the first poll ended, and so before
/// the park, and how often the future was polled.
fn block_on_one_wake<B: BlockingBackend>() -> (bool, usize) {
    let ready = Arc::new(AtomicBool::new(false));
    let woken = Arc::new(AtomicBool::new(false));
    let mut waking = None;
    let mut early = false;
    let mut polls = 0;
    block_on_in::<B, _>(poll_fn(|cx| {
        polls += 1;
        if waking.is_none() {
            let waker = cx.waker().clone();
            waking = Some(thread::spawn({
                let (ready, woken) = (ready.clone(), woken.clone());
                move || {
                    ready.store(true, Ordering::Release);
                    waker.wake();
                    woken.store(true, Ordering::Release);
                }
            }));
            early = woken.load(Ordering::Acquire);
            return Poll::Pending;
        }
        if ready.load(Ordering::Acquire) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    waking
        .expect("the first poll is pending")
        .join()
        .expect("waking does not panic");
    (early, polls)
}

#[test]
fn a_wake_before_or_after_the_park_is_one_further_poll() {
    let (executions, seen) = explore(block_on_one_wake::<Loom>);
    println!("{executions} executions");
    assert_eq!(
        seen,
        BTreeSet::from([(true, 2), (false, 2)]),
        "the wake comes early or late, and causes one further poll"
    );
}

#[test]
fn wakes_of_two_threads_may_merge_and_neither_is_lost() {
    let (executions, polls) = explore(|| {
        let done = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let mut waking = Vec::new();
        let mut polls = 0;
        block_on_in::<Loom, _>(poll_fn(|cx| {
            polls += 1;
            if waking.is_empty() {
                waking.extend(done.iter().map(|done| {
                    let (done, waker) = (done.clone(), cx.waker().clone());
                    thread::spawn(move || {
                        done.store(true, Ordering::Release);
                        waker.wake();
                    })
                }));
                return Poll::Pending;
            }
            if done.iter().all(|done| done.load(Ordering::Acquire)) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));
        for thread in waking {
            thread.join().expect("waking does not panic");
        }
        polls
    });
    println!("{executions} executions");
    assert_eq!(polls, BTreeSet::from([2, 3]), "wakes are merged, or not");
}

#[test]
fn a_oneshot_ends_the_wait_in_every_order() {
    let (executions, received) = explore(|| {
        let (tx, rx) = oneshot::channel_in::<u32, Loom>();
        let sending = thread::spawn(move || tx.send(7));
        let received = block_on_in::<Loom, _>(rx);
        sending
            .join()
            .expect("sending does not panic")
            .expect("the receiver waits");
        received.ok()
    });
    println!("{executions} executions");
    assert_eq!(received, BTreeSet::from([Some(7)]));
}

#[test]
fn a_dropped_sender_ends_the_wait_in_every_order() {
    let (executions, received) = explore(|| {
        let (tx, rx) = oneshot::channel_in::<u32, Loom>();
        let leaving = thread::spawn(move || drop(tx));
        let received = block_on_in::<Loom, _>(rx);
        leaving.join().expect("leaving does not panic");
        received.ok()
    });
    println!("{executions} executions");
    assert_eq!(received, BTreeSet::from([None]));
}

/// The parker that `block_on` keeps. The first future is ready before its wake, which
/// then comes during the second call and may cost it a poll.
#[test]
fn a_parker_used_again_bears_a_wake_that_comes_late() {
    let (executions, polls) = explore(|| {
        let mut parker = Parker::<Loom>::new();
        let (tx, mut rx) = oneshot::channel_in::<u32, Loom>();

        let ready = Arc::new(AtomicBool::new(false));
        let mut tx = Some(tx);
        let mut waking = None;
        parker.block_on(poll_fn(|cx| {
            if let Some(tx) = tx.take() {
                let (ready, waker) = (ready.clone(), cx.waker().clone());
                waking = Some(thread::spawn(move || {
                    ready.store(true, Ordering::Release);
                    waker.wake();
                    tx.send(7).expect("the receiver waits");
                }));
            }
            if ready.load(Ordering::Acquire) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }));

        let mut polls = 0;
        let received = parker.block_on(poll_fn(|cx| {
            polls += 1;
            Pin::new(&mut rx).poll(cx)
        }));
        assert_eq!(received, Ok(7));
        waking
            .expect("the first poll spawns the thread")
            .join()
            .expect("sending does not panic");
        polls
    });
    println!("{executions} executions");
    assert_eq!(
        polls,
        BTreeSet::from([1, 2, 3]),
        "the value is there, or it is waited for, or a late wake comes too"
    );
}

/// The fault that the models above have to catch: a parker that forgets a wake that comes
/// before the park.
struct ForgetfulPark(loom::sync::Mutex<()>, loom::sync::Condvar);

impl Park for ForgetfulPark {
    fn new() -> Self {
        Self(loom::sync::Mutex::new(()), loom::sync::Condvar::new())
    }

    fn park(&self) {
        drop(self.1.wait(self.0.lock().unwrap()));
    }

    fn unpark(&self) {
        let _held = self.0.lock().unwrap();
        self.1.notify_one();
    }
}

/// A backend of loom with the parker above. It watches nothing.
struct Forgetful;

impl Observer for Forgetful {
    type Park = ForgetfulPark;
    type Visit = ();

    fn approach(_: usize, _: Passage) {}
    fn enter((): &mut ()) {}
    fn leave((): &mut (), _: Bits, _: Bits) {}
    fn created() {}
    fn dropped() {}
}

#[test]
#[should_panic(expected = "deadlock")]
fn the_models_catch_a_parker_that_forgets_early_wakes() {
    explore(block_on_one_wake::<Observed<Loom, Forgetful>>);
}
