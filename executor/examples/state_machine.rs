//! An `async fn` is a state machine. One is written by hand, beside the compiler's.

#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use reveille::oneshot::{self, Receiver};

/// Returns the sum of two numbers that it waits for.
async fn sum(first: Receiver<u32>, second: Receiver<u32>) -> u32 {
    let first = first.await.unwrap();
    first + second.await.unwrap()
}

/// The same by hand, with a variant for each `await` and the values that live across it.
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
                        unreachable!("the variant was matched above");
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

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Returns the result of each poll while the numbers come one after the other, and the
/// size of the future.
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

fn main() {
    let (by_hand, size_by_hand) = polls(Sum::First);
    let (compiled, size_compiled) = polls(sum);
    println!("by hand:  {by_hand:?}, {size_by_hand} bytes");
    println!("compiled: {compiled:?}, {size_compiled} bytes");
    assert_eq!(by_hand, [Poll::Pending, Poll::Pending, Poll::Ready(7)]);
    assert_eq!(compiled, by_hand);
    assert!(size_by_hand <= size_compiled);
}

#[test]
fn what_is_printed_holds() {
    main();
}
