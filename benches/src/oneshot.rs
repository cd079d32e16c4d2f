//! One value from one task to another on the same thread. This is the cost of the
//! primitive itself, without that of moving cache lines between processors.

use std::future::Future;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use reveille::backend::Local;
use reveille::oneshot::{Receiver, Sender, Slot, SlotReceiver, SlotSender, channel, channel_in};
use reveille::raw::Boxed;

use crate::{Contender, Kind};

const VALUE: u64 = 7;

/// Returns the contenders of every operation.
pub(crate) fn contenders() -> Vec<Contender> {
    let mut all = Vec::new();
    for (group, operation) in OPERATIONS {
        let mut add = |kind, name, run| {
            all.push(Contender::new(group, kind, name, run));
        };
        add(Kind::Reveille, "reveille", operation.of::<Reveille>());
        add(Kind::Reveille, "reveille, Local", operation.of::<OnLocal>());
        add(Kind::Reveille, "reveille, Slot", operation.of::<InSlot>());
        add(Kind::Peer, "tokio", operation.of::<Tokio>());
        add(Kind::Peer, "futures", operation.of::<Futures>());
        add(Kind::Peer, "oneshot", operation.of::<OneshotCrate>());
        add(Kind::Peer, "async-oneshot", operation.of::<AsyncOneshot>());
        add(Kind::Floor, "malloc and free alone", allocate);
    }
    all
}

const OPERATIONS: [(&str, Operation); 5] = [
    ("oneshot/ready", Operation::Ready),
    ("oneshot/pending", Operation::Pending),
    ("oneshot/repolled", Operation::Repolled),
    ("oneshot/dropped", Operation::Dropped),
    ("oneshot/refused", Operation::Refused),
];

#[derive(Clone, Copy)]
enum Operation {
    Ready,
    Pending,
    Repolled,
    Dropped,
    Refused,
}

impl Operation {
    /// Returns the loop of this operation for one implementation.
    fn of<C: Oneshot>(self) -> fn(u64) {
        match self {
            Self::Ready => ready::<C>,
            Self::Pending => pending::<C, 1>,
            Self::Repolled => pending::<C, 4>,
            Self::Dropped => dropped::<C>,
            Self::Refused => refused::<C>,
        }
    }
}

/// A oneshot channel, as the loops use it.
trait Oneshot {
    /// What the caller keeps from one channel to the next.
    type Place: Default;
    /// The sending half.
    type Sender<'a>;
    /// The receiving half.
    type Receiver<'a>: Future<Output = Result<u64, Self::Error>> + Unpin;
    /// The error if no value will come.
    type Error;

    /// Creates a channel.
    fn channel(place: &mut Self::Place) -> (Self::Sender<'_>, Self::Receiver<'_>);

    /// Sends the value. Returns whether it was accepted.
    fn send(tx: Self::Sender<'_>, value: u64) -> bool;
}

/// Creates a channel, sends, and receives by a poll.
fn ready<C: Oneshot>(iterations: u64) {
    let mut place = C::Place::default();
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..iterations {
        let (mut tx, mut rx) = C::channel(&mut place);
        black_box((&mut tx, &mut rx));
        assert!(C::send(tx, black_box(VALUE)));
        assert!(matches!(
            Pin::new(&mut rx).poll(&mut cx),
            Poll::Ready(Ok(VALUE))
        ));
    }
}

/// Creates a channel; polls it while it is empty, all with the same waker, as `select`
/// does; sends, which wakes; receives by a poll.
fn pending<C: Oneshot, const POLLS: usize>(iterations: u64) {
    let mut place = C::Place::default();
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..iterations {
        let (mut tx, mut rx) = C::channel(&mut place);
        black_box((&mut tx, &mut rx));
        for _ in 0..POLLS {
            assert!(Pin::new(&mut rx).poll(&mut cx).is_pending());
        }
        assert!(C::send(tx, black_box(VALUE)));
        assert!(matches!(
            Pin::new(&mut rx).poll(&mut cx),
            Poll::Ready(Ok(VALUE))
        ));
    }
}

/// Creates a channel, and drops both halves unused.
fn dropped<C: Oneshot>(iterations: u64) {
    let mut place = C::Place::default();
    for _ in 0..iterations {
        let (mut tx, mut rx) = C::channel(&mut place);
        black_box((&mut tx, &mut rx));
        drop(tx);
        drop(rx);
    }
}

/// Creates a channel, drops the receiver, and sends a value that is refused.
fn refused<C: Oneshot>(iterations: u64) {
    let mut place = C::Place::default();
    for _ in 0..iterations {
        let (mut tx, mut rx) = C::channel(&mut place);
        black_box((&mut tx, &mut rx));
        drop(rx);
        assert!(!C::send(tx, black_box(VALUE)));
    }
}

/// Allocates and frees the memory of a channel.
fn allocate(iterations: u64) {
    for _ in 0..iterations {
        drop(black_box(Box::new(MaybeUninit::<Slot<u64>>::uninit())));
    }
}

struct Reveille;

impl Oneshot for Reveille {
    type Place = ();
    type Sender<'a> = Sender<u64>;
    type Receiver<'a> = Receiver<u64>;
    type Error = reveille::oneshot::error::RecvError;

    fn channel((): &mut ()) -> (Sender<u64>, Receiver<u64>) {
        channel()
    }

    fn send(tx: Sender<u64>, value: u64) -> bool {
        tx.send(value).is_ok()
    }
}

struct OnLocal;

impl Oneshot for OnLocal {
    type Place = ();
    type Sender<'a> = Sender<u64, Boxed<Local>>;
    type Receiver<'a> = Receiver<u64, Boxed<Local>>;
    type Error = reveille::oneshot::error::RecvError;

    fn channel((): &mut ()) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        channel_in()
    }

    fn send(tx: Self::Sender<'_>, value: u64) -> bool {
        tx.send(value).is_ok()
    }
}

struct InSlot;

impl Oneshot for InSlot {
    type Place = Slot<u64>;
    type Sender<'a> = SlotSender<'a, u64>;
    type Receiver<'a> = SlotReceiver<'a, u64>;
    type Error = reveille::oneshot::error::RecvError;

    fn channel(slot: &mut Slot<u64>) -> (SlotSender<'_, u64>, SlotReceiver<'_, u64>) {
        slot.split()
    }

    fn send(tx: SlotSender<'_, u64>, value: u64) -> bool {
        tx.send(value).is_ok()
    }
}

struct Tokio;

impl Oneshot for Tokio {
    type Place = ();
    type Sender<'a> = tokio::sync::oneshot::Sender<u64>;
    type Receiver<'a> = tokio::sync::oneshot::Receiver<u64>;
    type Error = tokio::sync::oneshot::error::RecvError;

    fn channel((): &mut ()) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        tokio::sync::oneshot::channel()
    }

    fn send(tx: Self::Sender<'_>, value: u64) -> bool {
        tx.send(value).is_ok()
    }
}

struct Futures;

impl Oneshot for Futures {
    type Place = ();
    type Sender<'a> = futures_channel::oneshot::Sender<u64>;
    type Receiver<'a> = futures_channel::oneshot::Receiver<u64>;
    type Error = futures_channel::oneshot::Canceled;

    fn channel((): &mut ()) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        futures_channel::oneshot::channel()
    }

    fn send(tx: Self::Sender<'_>, value: u64) -> bool {
        tx.send(value).is_ok()
    }
}

/// The crate `oneshot`.
struct OneshotCrate;

impl Oneshot for OneshotCrate {
    type Place = ();
    type Sender<'a> = ::oneshot::Sender<u64>;
    type Receiver<'a> = ::oneshot::AsyncReceiver<u64>;
    type Error = ::oneshot::RecvError;

    fn channel((): &mut ()) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        ::oneshot::async_channel()
    }

    fn send(tx: Self::Sender<'_>, value: u64) -> bool {
        tx.send(value).is_ok()
    }
}

struct AsyncOneshot;

impl Oneshot for AsyncOneshot {
    type Place = ();
    type Sender<'a> = async_oneshot::Sender<u64>;
    type Receiver<'a> = async_oneshot::Receiver<u64>;
    type Error = async_oneshot::Closed;

    fn channel((): &mut ()) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        async_oneshot::oneshot()
    }

    fn send(mut tx: Self::Sender<'_>, value: u64) -> bool {
        tx.send(value).is_ok()
    }
}
