//! The contract of `block_on` on real threads. Every order of wake and park is explored
//! in `interleavings.rs`.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use reveille::oneshot;
use reveille_executor::block_on;

use support::in_time;

mod support;

/// Returns a future that is pending for `polls` polls, and calls `each` in each of them.
fn pending_until_poll(polls: u32, mut each: impl FnMut(u32, &Waker)) -> impl Future<Output = u32> {
    let mut polled = 0;
    poll_fn(move |cx| {
        polled += 1;
        each(polled, cx.waker());
        if polled == polls {
            Poll::Ready(polled)
        } else {
            Poll::Pending
        }
    })
}

/// Blocks on a value that is sent some time after the given poll. Returns how often the
/// receiver was polled.
fn polls_for_a_value_sent_after_poll(poll: u32) -> u32 {
    let (tx, mut rx) = oneshot::channel();
    let mut tx = Some(tx);
    let mut sending = None;
    let mut polls = 0;
    let received = block_on(poll_fn(|cx| {
        let answer = Pin::new(&mut rx).poll(cx);
        polls += 1;
        if polls == poll {
            let tx = tx.take().expect("only one poll has this number");
            sending = Some(thread::spawn(move || {
                thread::sleep(Duration::from_millis(50));
                tx.send(7)
            }));
        }
        answer
    }));
    assert_eq!(received, Ok(7));
    let sending = sending.expect("the value was sent by this thread");
    assert_eq!(sending.join().unwrap(), Ok(()));
    polls
}

fn panic_message(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("the call panics");
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => (*panic.downcast::<&str>().expect("the payload is a message")).into(),
    }
}

#[test]
fn a_ready_future_is_polled_once() {
    let mut polls = 0;
    let output = block_on(pending_until_poll(1, |_, _| polls += 1));
    assert_eq!((output, polls), (1, 1));
}

#[test]
fn the_future_may_borrow_and_stay_on_the_thread() {
    let local = Rc::new(Cell::new(0));
    let borrowed = String::from("borrowed");
    let length = block_on(async {
        local.set(1);
        borrowed.len()
    });
    assert_eq!((length, local.get()), (8, 1));
}

#[test]
fn a_wake_during_the_poll_is_kept_for_the_park() {
    let polls = in_time(|| {
        block_on(pending_until_poll(1000, |_, waker| {
            waker.wake_by_ref();
        }))
    });
    assert_eq!(polls, 1000);
}

#[test]
fn wakes_before_the_park_merge_into_one() {
    let polls = in_time(|| {
        let woken = AtomicBool::new(false);
        thread::scope(|scope| {
            let woken = &woken;
            block_on(pending_until_poll(3, |poll, waker| match poll {
                1 => (0..3).for_each(|_| waker.wake_by_ref()),
                2 => {
                    let waker = waker.clone();
                    scope.spawn(move || {
                        thread::sleep(Duration::from_millis(50));
                        woken.store(true, Ordering::Relaxed);
                        waker.wake();
                    });
                }
                _ => assert!(
                    woken.load(Ordering::Relaxed),
                    "the second poll was for all three wakes, and no wake came since"
                ),
            }))
        })
    });
    assert_eq!(polls, 3);
}

#[test]
fn a_wake_from_another_thread_is_one_further_poll() {
    assert_eq!(in_time(|| polls_for_a_value_sent_after_poll(1)), 2);
}

/// Futures may call `thread::park` themselves, and consume the token of the thread.
#[test]
fn a_wake_survives_a_poll_that_parks_the_thread_itself() {
    let output = in_time(|| {
        block_on(pending_until_poll(2, |poll, waker| {
            if poll == 1 {
                waker.wake_by_ref();
                thread::park_timeout(Duration::from_millis(1));
                thread::park_timeout(Duration::from_millis(1));
            }
        }))
    });
    assert_eq!(output, 2);
}

/// Conversely, a token that the thread already has does not end the wait, and causes no
/// poll.
#[test]
fn a_token_of_the_thread_is_no_wake() {
    let polls = in_time(|| {
        thread::current().unpark();
        polls_for_a_value_sent_after_poll(1)
    });
    assert_eq!(polls, 2);
}

/// Returns the nanoseconds of processor time that this thread has used.
#[cfg(target_os = "linux")]
fn processor_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("this is Linux");
    stat.split(' ')
        .next()
        .and_then(|nanos| nanos.parse().ok())
        .expect("the first number is the time on the processor")
}

#[cfg(target_os = "linux")]
#[test]
fn waiting_takes_no_processor_time() {
    let wait = Duration::from_millis(300);
    let used = in_time(move || {
        let (tx, rx) = oneshot::channel();
        let sending = thread::spawn(move || {
            thread::sleep(wait);
            tx.send(()).unwrap();
        });
        let before = processor_time();
        block_on(rx).unwrap();
        let used = processor_time() - before;
        sending.join().unwrap();
        used
    });
    assert!(
        u128::from(used) < wait.as_nanos() / 10,
        "waiting {wait:?} took {used} ns of the processor"
    );
}

#[test]
fn nested_use_panics_and_says_what_to_do() {
    let message = panic_message(|| block_on(async { block_on(async {}) }));
    assert!(
        message.starts_with("block_on was called inside a future that block_on runs"),
        "{message}"
    );
    assert!(message.contains("`.await` the inner future"), "{message}");

    assert_eq!(block_on(async { 7 }), 7, "the thread cannot block again");
}

#[test]
fn a_refused_nested_call_leaves_the_outer_one_running() {
    let polls = in_time(|| {
        block_on(async {
            panic_message(|| block_on(pending::<()>()));
            pending_until_poll(2, |_, waker| waker.wake_by_ref()).await
        })
    });
    assert_eq!(polls, 2);
}

#[test]
fn nested_use_on_another_thread_is_in_order() {
    let inner = block_on(async {
        let other = thread::spawn(|| block_on(async { 7 }));
        other.join().unwrap()
    });
    assert_eq!(inner, 7);
}

#[test]
fn a_panic_of_the_future_leaves_the_thread_fit_to_block() {
    let (message, polls) = in_time(|| {
        let message = panic_message(|| {
            block_on(async { panic!("as planned") });
        });
        (message, polls_for_a_value_sent_after_poll(1))
    });
    assert_eq!(message, "as planned");
    assert_eq!(polls, 2);
}

/// Runs a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn the_destructor_of_the_future_may_block() {
    let blocked = Cell::new(0);
    let held = OnDrop(|| blocked.set(block_on(async { 7 })));
    block_on(poll_fn(move |_| {
        let _ = &held;
        Poll::Ready(())
    }));
    assert_eq!(blocked.get(), 7);
}

/// Whichever of the two thread-locals is destroyed first, the destructor can block.
#[test]
fn the_destructor_of_a_thread_local_may_block() {
    struct Blocks(RefCell<Option<(oneshot::Receiver<u32>, mpsc::Sender<u32>)>>);

    impl Drop for Blocks {
        fn drop(&mut self) {
            let (rx, result) = self.0.take().expect("the test has stored it");
            result.send(block_on(rx).unwrap()).unwrap();
        }
    }

    thread_local! {
        static EARLIER: Blocks = const { Blocks(RefCell::new(None)) };
        static LATER: Blocks = const { Blocks(RefCell::new(None)) };
    }

    let mut seen = in_time(|| {
        let (result, results) = mpsc::channel();
        let (tx_earlier, rx_earlier) = oneshot::channel();
        let (tx_later, rx_later) = oneshot::channel();
        let ending = thread::spawn(move || {
            EARLIER.with(|local| *local.0.borrow_mut() = Some((rx_earlier, result.clone())));
            block_on(async {});
            LATER.with(|local| *local.0.borrow_mut() = Some((rx_later, result)));
        });
        thread::sleep(Duration::from_millis(50));
        tx_earlier.send(1).unwrap();
        tx_later.send(2).unwrap();
        ending.join().unwrap();
        results.iter().collect::<Vec<_>>()
    });
    seen.sort_unstable();
    assert_eq!(seen, [1, 2]);
}

#[test]
fn a_thread_makes_one_waker_and_keeps_it() {
    let waker = || block_on(poll_fn(|cx| Poll::Ready(cx.waker().clone())));
    let first = waker();
    assert!(first.will_wake(&waker()));
    let other = thread::spawn(waker).join().unwrap();
    assert!(!first.will_wake(&other));
}

#[test]
fn a_wake_that_comes_after_the_end_costs_the_next_call_one_poll() {
    let polls = in_time(|| {
        let late = block_on(poll_fn(|cx| Poll::Ready(cx.waker().clone())));
        late.wake_by_ref();
        late.wake();
        // The late wakes cause the second poll, and both count as one.
        polls_for_a_value_sent_after_poll(2)
    });
    assert_eq!(polls, 3);
}

#[test]
fn waking_a_thread_that_has_ended_does_nothing() {
    let waker = in_time(|| block_on(poll_fn(|cx| Poll::Ready(cx.waker().clone()))));
    waker.wake_by_ref();
    waker.wake();
}
