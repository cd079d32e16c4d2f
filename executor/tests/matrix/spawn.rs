//! The contract of `Executor` itself, on which all other checks rely.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::future::poll_fn;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use reveille::{Mutex, oneshot};
use reveille_executor::Executor;

use crate::{announced, poll_once};

matrix! {
    a_handle_returns_the_output,
    block_on_takes_what_stays_on_the_thread,
    block_on_hands_a_panic_on_and_works_again,
    block_on_inside_block_on_is_refused,
    a_task_outlives_its_handle,
    a_panic_is_the_outcome_of_the_task,
    a_panic_after_a_wait_is_the_outcome_of_the_task,
    a_panic_in_the_futures_destructor_is_the_outcome_of_the_task,
    panics_take_no_other_task_along,
    a_panic_of_an_unwanted_output_is_contained,
    a_handle_is_ready_once_the_future_is_dropped,
    a_handle_polled_by_two_tasks_wakes_the_second,
    a_wake_in_the_middle_of_a_poll_is_one_further_poll,
}

/// Runs a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn a_handle_returns_the_output<E: Executor>(executor: &E) {
    let task = executor.spawn(async { 7 });
    assert_eq!(executor.block_on(task).unwrap(), 7);
}

fn block_on_takes_what_stays_on_the_thread<E: Executor>(executor: &E) {
    let local = Rc::new(Cell::new(0));
    let borrowed = &local;
    executor.block_on(async {
        let number = executor.spawn(async { 7 }).await.unwrap();
        borrowed.set(number);
    });
    assert_eq!(local.get(), 7);
}

fn block_on_hands_a_panic_on_and_works_again<E: Executor>(executor: &E) {
    let panicking = AssertUnwindSafe(|| executor.block_on(async { panic_any(7_u32) }));
    let payload = catch_unwind(panicking).expect_err("the future panics");
    assert_eq!(payload.downcast_ref(), Some(&7_u32));
    assert_eq!(executor.block_on(async { 7 }), 7);
}

fn block_on_inside_block_on_is_refused<E: Executor>(executor: &E) {
    let outer = executor.block_on(async {
        let inner = AssertUnwindSafe(|| executor.block_on(async {}));
        catch_unwind(inner).expect_err("the outer future would block");
        executor.spawn(async { 7 }).await.unwrap()
    });
    assert_eq!(outer, 7);
    assert_eq!(executor.block_on(async { 8 }), 8);
}

fn a_task_outlives_its_handle<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, rx) = oneshot::channel();
        let (go, going) = oneshot::channel();
        drop(executor.spawn(async move {
            going.await.unwrap();
            tx.send(7).unwrap();
        }));
        go.send(()).unwrap();
        assert_eq!(rx.await, Ok(7));
    });
}

fn a_panic_is_the_outcome_of_the_task<E: Executor>(executor: &E) {
    let task = executor.spawn(async { panic!("number {}", black_box(7)) });
    let error = executor.block_on(task).unwrap_err();
    assert!(error.is_panic() && !error.is_cancelled());
    let text = format!("task {} panicked with message \"number 7\"", error.id());
    assert_eq!(error.to_string(), text);
    let payload = error.into_panic();
    assert_eq!(payload.downcast_ref(), Some(&String::from("number 7")));
}

fn a_panic_after_a_wait_is_the_outcome_of_the_task<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (go, going) = oneshot::channel::<u32>();
        let task = executor.spawn(async move { panic_any(going.await.unwrap()) });
        go.send(7).unwrap();
        let payload = task.await.unwrap_err().into_panic();
        assert_eq!(payload.downcast_ref(), Some(&7_u32));
    });
}

fn a_panic_in_the_futures_destructor_is_the_outcome_of_the_task<E: Executor>(executor: &E) {
    let held = OnDrop(|| panic_any(7_u32));
    let future = poll_fn(move |_| {
        let _ = &held;
        Poll::Ready(())
    });
    let error = executor.block_on(executor.spawn(future)).unwrap_err();
    assert_eq!(error.into_panic().downcast_ref(), Some(&7_u32));
}

fn panics_take_no_other_task_along<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (tx, rx) = oneshot::channel();
        let waiting = executor.spawn(rx);
        // More tasks than any of the executors has threads.
        for _ in 0..8 {
            let panicking = executor.spawn(async { panic!("as planned") });
            assert!(panicking.await.unwrap_err().is_panic());
        }
        let sending = executor.spawn(async move { tx.send(7) });
        assert_eq!(sending.await.unwrap(), Ok(()));
        assert_eq!(waiting.await.unwrap(), Ok(7));
    });
}

fn a_panic_of_an_unwanted_output_is_contained<E: Executor>(executor: &E) {
    let bomb = |dropped: &Arc<AtomicU32>| {
        let dropped = dropped.clone();
        OnDrop(move || {
            dropped.fetch_add(1, Ordering::Relaxed);
            panic!("as planned");
        })
    };
    let dropped = Arc::new(AtomicU32::new(0));
    executor.block_on(async {
        // The handle is dropped first, and the output is dropped in the task.
        for _ in 0..8 {
            let (go, going) = oneshot::channel();
            let output = bomb(&dropped);
            let (ends, ended) = oneshot::channel::<()>();
            drop(executor.spawn(async move {
                let _ends = ends;
                going.await.unwrap();
                output
            }));
            go.send(()).unwrap();
            ended.await.unwrap_err();
        }
        // The output is there first, and is dropped with the handle.
        for _ in 0..8 {
            let (ends, ended) = oneshot::channel::<()>();
            let output = bomb(&dropped);
            let task = executor.spawn(async move {
                let _ends = ends;
                output
            });
            ended.await.unwrap_err();
            thread::sleep(Duration::from_millis(1));
            drop(task);
        }
        assert_eq!(executor.spawn(async { 7 }).await.unwrap(), 7);
    });
    while dropped.load(Ordering::Relaxed) < 16 {
        executor.block_on(executor.spawn(async {})).unwrap();
    }
}

fn a_handle_is_ready_once_the_future_is_dropped<E: Executor>(executor: &E) {
    let gone = Arc::new(AtomicBool::new(false));
    let held = OnDrop({
        let gone = gone.clone();
        move || {
            thread::sleep(Duration::from_millis(20));
            gone.store(true, Ordering::Relaxed);
        }
    });
    // Not an `async` block, which would drop its values before it is ready.
    let future = poll_fn(move |_| {
        let _ = &held;
        Poll::Ready(())
    });
    executor.block_on(executor.spawn(future)).unwrap();
    assert!(gone.load(Ordering::Relaxed));
}

fn a_handle_polled_by_two_tasks_wakes_the_second<E: Executor>(executor: &E) {
    executor.block_on(async {
        let (go, going) = oneshot::channel();
        let task = executor.spawn(going);
        let (polled, task) = executor.spawn(poll_once(task)).await.unwrap();
        assert!(polled.is_pending());
        let (waits, waiting) = oneshot::channel();
        let second = executor.spawn(announced(waits, task));
        waiting.await.unwrap();
        go.send(7).unwrap();
        assert_eq!(second.await.unwrap().unwrap(), Ok(7));
    });
}

/// EX-06. The wake does not end a wait for a lock that the thread makes in that poll.
fn a_wake_in_the_middle_of_a_poll_is_one_further_poll<E: Executor>(executor: &E) {
    let lock = Arc::new(Mutex::new(0));
    let polls = executor.block_on(executor.spawn(async move {
        let mut polls = 0;
        poll_fn(|cx| {
            polls += 1;
            if polls > 1 {
                return Poll::Ready(());
            }
            let (waker, held) = (cx.waker().clone(), lock.clone());
            let mut guard = held.try_lock_owned().unwrap();
            let waking = thread::spawn(move || {
                waker.wake();
                thread::sleep(Duration::from_millis(2));
                *guard = 1;
            });
            assert_eq!(
                *lock.blocking_lock(),
                1,
                "the thread did not wait for the guard"
            );
            waking.join().unwrap();
            Poll::Pending
        })
        .await;
        polls
    }));
    assert_eq!(polls.unwrap(), 2);
}
