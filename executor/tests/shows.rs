//! What `async` is, in examples that run and assert what they print.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

use reveille::oneshot::{self, Receiver};
use reveille::time::{Duration, Instant, sleep};
use reveille_executor::{LocalExecutor, Simulation, ThreadPool, task};

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The sum of two numbers that are waited for.
async fn sum(first: Receiver<u32>, second: Receiver<u32>) -> u32 {
    let first = first.await.unwrap();
    first + second.await.unwrap()
}

/// The same by hand: a state for each `await`, and what lives across it.
enum Sum {
    First(Receiver<u32>, Receiver<u32>),
    Second(u32, Receiver<u32>),
    Done,
}

impl Future for Sum {
    type Output = u32;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u32> {
        loop {
            match &mut *self {
                Self::First(first, _) => {
                    let Poll::Ready(first) = Pin::new(first).poll(cx) else {
                        return Poll::Pending;
                    };
                    let before = std::mem::replace(&mut *self, Self::Done);
                    let Self::First(_, second) = before else {
                        unreachable!("it was matched above");
                    };
                    *self = Self::Second(first.unwrap(), second);
                }
                Self::Second(first, second) => {
                    let Poll::Ready(second) = Pin::new(second).poll(cx) else {
                        return Poll::Pending;
                    };
                    let sum = *first + second.unwrap();
                    *self = Self::Done;
                    return Poll::Ready(sum);
                }
                Self::Done => panic!("polled after it was ready"),
            }
        }
    }
}

/// What each poll answers, while the numbers come one after the other.
fn polls<F: Future<Output = u32>>(
    make: impl FnOnce(Receiver<u32>, Receiver<u32>) -> F,
) -> (Vec<Poll<u32>>, usize) {
    let ((tx, first), (tx_too, second)) = (oneshot::channel(), oneshot::channel());
    let mut future = pin!(make(first, second));
    let size = size_of_val(&*future);
    let mut polls = vec![poll(future.as_mut())];
    tx.send(3).unwrap();
    polls.push(poll(future.as_mut()));
    tx_too.send(4).unwrap();
    polls.push(poll(future.as_mut()));
    (polls, size)
}

#[test]
fn a_state_machine_by_hand_is_what_the_compiler_makes() {
    let (by_hand, size_by_hand) = polls(Sum::First);
    let (compiled, size_compiled) = polls(sum);
    println!("by hand {size_by_hand} bytes, compiled {size_compiled} bytes");
    assert_eq!(by_hand, [Poll::Pending, Poll::Pending, Poll::Ready(7)]);
    assert_eq!(compiled, by_hand);
    assert!(size_by_hand <= size_compiled);
}

#[test]
fn an_async_fn_has_not_begun_before_its_first_poll() {
    async fn begins(begun: &Cell<bool>) {
        begun.set(true);
    }
    let begun = Cell::new(false);
    let mut future = pin!(begins(&begun));
    assert!(!begun.get());
    assert!(poll(future.as_mut()).is_ready());
    assert!(begun.get());
}

#[test]
fn two_waits_joined_take_the_time_of_one() {
    const SECOND: Duration = Duration::from_secs(1);
    let simulation = Simulation::new(7);
    let (joined, in_sequence) = simulation.block_on(async {
        let start = Instant::now();
        let waits = [(); 2].map(|()| task::spawn(sleep(SECOND)));
        for wait in waits {
            wait.await.unwrap();
        }
        let joined = start.elapsed();
        let start = Instant::now();
        sleep(SECOND).await;
        sleep(SECOND).await;
        (joined, start.elapsed())
    });
    assert_eq!((joined, in_sequence), (SECOND, 2 * SECOND));
}

#[test]
fn a_call_that_blocks_starves_its_neighbours_and_is_reported() {
    const LONG: std::time::Duration = std::time::Duration::from_millis(20);

    let reports = Arc::new(Mutex::new(Vec::new()));
    let pool = ThreadPool::builder()
        .workers(1)
        .on_long_poll(LONG / 2, {
            let reports = reports.clone();
            move |poll| {
                reports
                    .lock()
                    .unwrap()
                    .extend(poll.name().map(String::from))
            }
        })
        .build();
    let waited = |blocks: task::JoinHandle<()>, begun: Receiver<()>| {
        pool.block_on(begun).unwrap();
        let start = std::time::Instant::now();
        pool.block_on(pool.spawn_named("neighbour", async {}))
            .unwrap();
        let waited = start.elapsed();
        pool.block_on(blocks).unwrap();
        waited
    };

    let (begins, begun) = oneshot::channel();
    let blocks = pool.spawn_named("blocks", async move {
        begins.send(()).unwrap();
        thread::sleep(LONG);
    });
    assert!(waited(blocks, begun) >= LONG / 2);

    let (begins, begun) = oneshot::channel();
    let cured = pool.spawn_named("cured", async move {
        let call = task::spawn_blocking(move || {
            begins.send(()).unwrap();
            thread::sleep(LONG * 10);
        });
        call.await.unwrap();
    });
    assert!(waited(cured, begun) < LONG * 10);
    assert_eq!(*reports.lock().unwrap(), ["blocks"]);
}

#[test]
fn a_dropped_future_frees_what_it_holds_and_never_goes_on() {
    struct Says(&'static str, Rc<RefCell<Vec<&'static str>>>);

    impl Drop for Says {
        fn drop(&mut self) {
            self.1.borrow_mut().push(self.0);
        }
    }

    let said = Rc::new(RefCell::new(Vec::new()));
    let executor = LocalExecutor::new();
    let task = executor.spawn_local({
        let said = said.clone();
        async move {
            let _held = Says("freed", said.clone());
            said.borrow_mut().push("waits");
            pending::<()>().await;
            said.borrow_mut().push("goes on");
        }
    });
    executor.run_until_idle();
    task.abort();
    executor.run_until_idle();
    assert_eq!(*said.borrow(), ["waits", "freed"]);
}

#[test]
fn a_pinned_handle_moves_while_its_future_does_not() {
    let places = Rc::new(RefCell::new(Vec::new()));
    let mut handle: Pin<Box<dyn Future<Output = ()>>> = Box::pin({
        let places = places.clone();
        async move {
            let mut local = 0_u8;
            for _ in 0..2 {
                local += 1;
                places.borrow_mut().push(std::ptr::from_ref(&local).addr());
                let mut yielded = false;
                poll_fn(|_| match std::mem::replace(&mut yielded, true) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                })
                .await;
            }
            assert_eq!(local, 2);
        }
    });
    assert!(poll(handle.as_mut()).is_pending());
    let before = std::ptr::from_ref(&handle).addr();
    let mut moved = [handle];
    assert_ne!(std::ptr::from_ref(&moved[0]).addr(), before);
    assert!(poll(moved[0].as_mut()).is_pending());
    let places = places.borrow();
    assert_eq!(places[0], places[1]);
}
