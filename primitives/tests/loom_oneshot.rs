//! Every behaviour of one sender beside every behaviour of one receiver, under loom:
//! over the abstract lock without a bound, and over the real lock, whose single loads
//! and compare-exchanges are the steps there, with a bound.

mod support;

use std::any::type_name;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::thread;
use reveille::backend::{BlockingBackend, Loom, LoomWord};
use reveille::oneshot::{self, Receiver, Sender};
use reveille::protocol::block_on;
use reveille::raw::Boxed;

use support::models;

/// The reference count shows a value that is lost, or dropped twice.
type Value = Arc<()>;

type Tx<B> = Sender<Value, Boxed<B>>;
type Rx<B> = Receiver<Value, Boxed<B>>;

/// What happened to the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// It was sent, and belongs to the channel.
    Given,
    /// It was refused and returned.
    Refused,
    /// It was not sent.
    Not,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Received {
    Value,
    /// The channel said that no value will come.
    Never,
    /// The receiver left without a result.
    Left,
}

/// A task that sleeps, and counts its wakers.
struct Asleep;

impl Wake for Asleep {
    fn wake(self: Arc<Self>) {}
}

type Task = Arc<Asleep>;

fn waker(task: &Task) -> Waker {
    Waker::from(task.clone())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    Send,
    Drop,
    /// Polls for closing, and sends or leaves whatever the result is.
    PollThenSend,
    PollThenDrop,
    /// Polls for closing, waits for it with another waker, and sends.
    PollThenAwaitClosing,
}

impl Sending {
    const ALL: [Self; 5] = [
        Self::Send,
        Self::Drop,
        Self::PollThenSend,
        Self::PollThenDrop,
        Self::PollThenAwaitClosing,
    ];

    fn run<B: BlockingBackend>(self, mut tx: Tx<B>, value: Value, task: &Task) -> Sent {
        if !matches!(self, Self::Send | Self::Drop) {
            let waker = waker(task);
            let closed = tx.poll_closed(&mut Context::from_waker(&waker));
            assert!(closed.is_pending() || tx.is_closed(), "it stays closed");
        }
        if self == Self::PollThenAwaitClosing {
            block_on::<B, _>(tx.closed());
        }
        if matches!(self, Self::Drop | Self::PollThenDrop) {
            return Sent::Not;
        }
        match tx.send(value) {
            Ok(()) => Sent::Given,
            Err(_) => Sent::Refused,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Receiving {
    Await,
    TryThenDrop,
    Drop,
    PollThenDrop,
    /// Polls, then waits with another waker.
    PollThenAwait,
    CloseThenTry,
    PollThenCloseThenTry,
}

impl Receiving {
    const ALL: [Self; 7] = [
        Self::Await,
        Self::TryThenDrop,
        Self::Drop,
        Self::PollThenDrop,
        Self::PollThenAwait,
        Self::CloseThenTry,
        Self::PollThenCloseThenTry,
    ];

    /// Returns `true` if it ends a wait for closing without a result from the sender
    /// first.
    fn closes(self) -> bool {
        !matches!(self, Self::Await | Self::PollThenAwait)
    }

    fn run<B: BlockingBackend>(self, mut rx: Rx<B>, task: &Task) -> Received {
        if matches!(
            self,
            Self::PollThenDrop | Self::PollThenAwait | Self::PollThenCloseThenTry
        ) {
            let waker = waker(task);
            match Pin::new(&mut rx).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(Ok(_)) => return Received::Value,
                Poll::Ready(Err(_)) => return Received::Never,
                Poll::Pending => {}
            }
        }
        if matches!(self, Self::CloseThenTry | Self::PollThenCloseThenTry) {
            rx.close();
        }
        match self {
            Self::Drop | Self::PollThenDrop => Received::Left,
            Self::TryThenDrop | Self::CloseThenTry | Self::PollThenCloseThenTry => {
                use oneshot::error::TryRecvError::{Closed, Empty};
                match rx.try_recv() {
                    Ok(_) => Received::Value,
                    Err(Closed) => Received::Never,
                    Err(Empty) => {
                        assert!(self == Self::TryThenDrop, "closing settles it");
                        Received::Left
                    }
                }
            }
            Self::Await | Self::PollThenAwait => match block_on::<B, _>(rx) {
                Ok(_) => Received::Value,
                Err(_) => Received::Never,
            },
        }
    }
}

/// Explores a sender beside a receiver, and returns the number of executions.
fn explore<B: BlockingBackend>(
    preemptions: Option<usize>,
    sending: Sending,
    receiving: Receiving,
) -> usize {
    models::explore(preemptions, move || {
        let value = Value::default();
        let tasks: [Task; 2] = [(); 2].map(|()| Arc::new(Asleep));
        let [one, other] = tasks.clone();

        let (tx, rx) = oneshot::channel_in::<Value, B>();
        let sender = {
            let value = value.clone();
            thread::spawn(move || sending.run(tx, value, &one))
        };
        let received = receiving.run(rx, &other);
        let sent = sender.join().expect("loom fails the model before");
        drop(other);

        let what = (sending, receiving, sent, received);
        match received {
            Received::Value => assert_eq!(sent, Sent::Given, "{what:?}"),
            Received::Never => assert_ne!(sent, Sent::Given, "{what:?}"),
            Received::Left => {}
        }
        assert_eq!(Arc::strong_count(&value), 1, "{what:?}: the value is gone");
        let wakers = tasks.each_ref().map(|task| Arc::strong_count(task) - 1);
        assert_eq!(wakers, [0; 2], "{what:?}: the wakers are gone");
    })
}

/// Explores every pair that ends, and returns the number of executions.
fn explore_all<B: BlockingBackend>(preemptions: Option<usize>) -> usize {
    let mut all = 0;
    for sending in Sending::ALL {
        for receiving in Receiving::ALL {
            // In this pair each would wait for the other.
            if sending == Sending::PollThenAwaitClosing && !receiving.closes() {
                continue;
            }
            let executions = explore::<B>(preemptions, sending, receiving);
            assert!(executions > 1, "{sending:?} beside {receiving:?}");
            all += executions;
        }
    }
    println!("{all} executions over {}", type_name::<B>());
    all
}

#[test]
fn sender_beside_receiver_over_the_abstract_lock() {
    let executions = explore_all::<Loom>(None);
    assert!(executions >= 10_000, "{executions} executions");
}

#[test]
fn bounded_to_2_preemptions_sender_beside_receiver_over_the_real_lock() {
    let executions = explore_all::<LoomWord>(Some(2));
    assert!(executions >= 15_000, "{executions} executions");
}
