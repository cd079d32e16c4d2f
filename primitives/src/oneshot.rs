//! One value, from one task to another.
//!
//! [`channel`] makes a [`Sender`] and a [`Receiver`]. The sender gives a value
//! once, without waiting; the receiver is the future of it. Either side can
//! leave at any time, and the other learns of it: a receiver without a sender
//! is answered [`RecvError`], a sender without a receiver gets its value back.
//!
//! ```
//! use reveille::oneshot;
//!
//! # reveille_executor::block_on(async {
//! let (tx, rx) = oneshot::channel();
//! tx.send("reveille").unwrap();
//! assert_eq!(rx.await, Ok("reveille"));
//! # });
//! ```
//!
//! # Without an allocation
//!
//! A channel is one allocation. Where even that is too much, a [`Slot`] is a
//! place of one's own for it, split into a sender and a receiver by borrow, and
//! used again and again:
//!
//! ```
//! use reveille::oneshot::Slot;
//!
//! # reveille_executor::block_on(async {
//! let mut slot = Slot::new();
//! for round in 0..3 {
//!     let (tx, rx) = slot.split();
//!     tx.send(round).unwrap();
//!     assert_eq!(rx.await, Ok(round));
//! }
//! # });
//! ```
//!
//! # States
//!
//! They are those of a [`Handoff`], which this module
//! gives the names and the errors of `tokio::sync::oneshot`. Sending to a
//! receiver that does not wait is one compare-exchange; receiving a value that
//! is there is a load. Whoever leaves last frees the channel; whoever leaves
//! drops its waker at once.
//!
//! Differences from `tokio::sync::oneshot`: `blocking_recv` does not know
//! whether it is called within an executor, and cannot panic there; `closed`
//! is a named future; [`channel_in`] and [`Slot`] are additions.

#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, BlockingBackend, DefaultBackend};
use crate::protocol::block_on;
use crate::raw::{Boxed, Handoff, InSlot, RawReceiver, RawSender, Storage};

use self::error::{RecvError, TryRecvError};

/// Makes a channel: a sender and a receiver of one value.
///
/// # Examples
///
/// ```
/// use reveille::oneshot;
///
/// let (tx, mut rx) = oneshot::channel();
/// assert_eq!(tx.send(7), Ok(()));
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
#[inline]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    channel_in()
}

/// Makes a channel over any backend.
///
/// # Examples
///
/// ```
/// use reveille::{oneshot, backend::Local};
///
/// // For a single thread: no atomics, and not `Send`.
/// let (tx, mut rx) = oneshot::channel_in::<_, Local>();
/// tx.send(7).unwrap();
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
#[must_use]
#[inline]
pub fn channel_in<T, B: Backend>() -> (Sender<T, Boxed<B>>, Receiver<T, Boxed<B>>) {
    let (sender, receiver) = Handoff::pair();
    (
        Sender { sender },
        Receiver {
            receiver: Some(receiver),
        },
    )
}

/// The sending half of a channel.
///
/// Dropped without having sent, it answers the receiver [`RecvError`].
///
/// The parameter `P` says where the channel is: on the heap by default, in a
/// [`Slot`] as [`SlotSender`].
pub struct Sender<T, P: Storage = Boxed> {
    sender: RawSender<T, P>,
}

/// The receiving half of a channel, and the future of its value.
///
/// Dropped, it closes the channel: a value sent later goes back to its sender,
/// one sent before is dropped with the receiver.
///
/// # Cancel safety
///
/// Polled by reference (`(&mut rx).await`), it loses nothing when the wait is
/// given up: the value comes to the next poll, or to
/// [`try_recv`](Self::try_recv).
///
/// # Panics
///
/// Polling it again after it was ready panics, as it does after
/// [`try_recv`](Self::try_recv) has answered other than
/// [`Empty`](TryRecvError::Empty).
pub struct Receiver<T, P: Storage = Boxed> {
    /// None once the receiver is terminated.
    receiver: Option<RawReceiver<T, P>>,
}

impl<T, P: Storage> Sender<T, P> {
    /// Sends the value, without waiting.
    ///
    /// That it was sent does not mean that it will be received: the receiver
    /// can still be dropped with it.
    ///
    /// # Errors
    ///
    /// The value, where the receiver has been closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::oneshot;
    ///
    /// let (tx, rx) = oneshot::channel();
    /// drop(rx);
    /// assert_eq!(tx.send(7), Err(7));
    /// ```
    #[inline]
    pub fn send(self, value: T) -> Result<(), T> {
        self.sender.send(value)
    }

    /// Waits until the receiver has been closed or dropped: the time to stop
    /// working on a value nobody wants.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the wait is given up.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::oneshot;
    ///
    /// # reveille_executor::block_on(async {
    /// let (mut tx, mut rx) = oneshot::channel::<u32>();
    /// rx.close();
    /// tx.closed().await;
    /// assert_eq!(tx.send(7), Err(7));
    /// # });
    /// ```
    pub fn closed(&mut self) -> Closed<'_, T, P> {
        Closed {
            sender: self,
            polled: false,
        }
    }

    /// Polls for the receiver to be closed or dropped, as
    /// [`closed`](Self::closed) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Poll, Waker};
    /// use reveille::oneshot;
    ///
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let (mut tx, rx) = oneshot::channel::<u32>();
    /// assert_eq!(tx.poll_closed(&mut cx), Poll::Pending);
    /// drop(rx);
    /// assert_eq!(tx.poll_closed(&mut cx), Poll::Ready(()));
    /// ```
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.sender.poll_closed(cx)
    }

    /// Whether the receiver has been closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::oneshot;
    ///
    /// let (tx, rx) = oneshot::channel::<u32>();
    /// assert!(!tx.is_closed());
    /// drop(rx);
    /// assert!(tx.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl<T, P: Storage> Receiver<T, P> {
    /// Closes the channel: a value sent from now on goes back to its sender.
    /// One sent before is still there to be received.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::oneshot;
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// tx.send(7).unwrap();
    /// rx.close();
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// ```
    pub fn close(&mut self) {
        if let Some(receiver) = &self.receiver {
            receiver.close();
        }
    }

    /// Receives the value if it is there.
    ///
    /// # Errors
    ///
    /// [`Empty`](TryRecvError::Empty) where a value may still come,
    /// [`Closed`](TryRecvError::Closed) where none will: the sender was dropped
    /// without having sent, the channel was closed, or the value has been
    /// received.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::oneshot::{self, error::TryRecvError};
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.send(7).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    /// ```
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        match RawReceiver::try_recv(&mut self.receiver) {
            Poll::Ready(value) => value.ok_or(TryRecvError::Closed),
            Poll::Pending => Err(TryRecvError::Empty),
        }
    }

    /// Receives the value, blocking the thread until it comes.
    ///
    /// For threads outside an executor. Within one it blocks the thread that
    /// may have to run the sender.
    ///
    /// # Errors
    ///
    /// [`RecvError`] where no value will come.
    ///
    /// # Panics
    ///
    /// Panics where the receiver is [terminated](Self::is_terminated).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::oneshot;
    ///
    /// let (tx, rx) = oneshot::channel();
    /// let sender = std::thread::spawn(move || tx.send(7));
    /// assert_eq!(rx.blocking_recv(), Ok(7));
    /// sender.join().unwrap().unwrap();
    /// ```
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, RecvError>
    where
        P::Backend: BlockingBackend,
    {
        assert!(
            self.receiver.is_some(),
            "oneshot::Receiver::blocking_recv called after the receiver was terminated"
        );
        block_on::<P::Backend, _>(self)
    }

    /// Whether the receiver has answered for good: a value, or that none will
    /// come. Polling it then panics.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::oneshot;
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// tx.send(7).unwrap();
    /// assert!(!rx.is_terminated());
    /// rx.try_recv().unwrap();
    /// assert!(rx.is_terminated());
    /// ```
    pub fn is_terminated(&self) -> bool {
        self.receiver.is_none()
    }

    /// Whether there is no value to be received at this moment.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::oneshot;
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// assert!(rx.is_empty());
    /// tx.send(7).unwrap();
    /// assert!(!rx.is_empty());
    /// rx.try_recv().unwrap();
    /// assert!(rx.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        !self.receiver.as_ref().is_some_and(RawReceiver::is_full)
    }
}

impl<T, P: Storage> Future for Receiver<T, P> {
    type Output = Result<T, RecvError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(
            self.receiver.is_some(),
            "oneshot::Receiver polled after it was ready"
        );
        RawReceiver::poll_recv(&mut self.receiver, cx).map(|value| value.ok_or(RecvError))
    }
}

#[cfg(feature = "futures-core")]
impl<T, P: Storage> futures_core::FusedFuture for Receiver<T, P> {
    fn is_terminated(&self) -> bool {
        self.is_terminated()
    }
}

impl<T, P: Storage> Unpin for Sender<T, P> {}
impl<T, P: Storage> Unpin for Receiver<T, P> {}

impl<T, P: Storage> fmt::Debug for Sender<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("is_closed", &self.is_closed())
            .finish()
    }
}

impl<T, P: Storage> fmt::Debug for Receiver<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("is_terminated", &self.is_terminated())
            .field("is_empty", &self.is_empty())
            .finish()
    }
}

/// The future of [`Sender::closed`].
#[must_use = "futures do nothing unless polled"]
pub struct Closed<'a, T, P: Storage = Boxed> {
    sender: &'a mut Sender<T, P>,
    polled: bool,
}

impl<T, P: Storage> Future for Closed<'_, T, P> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.polled = true;
        self.sender.poll_closed(cx)
    }
}

/// Discards the waker that a pending poll has left in the channel.
impl<T, P: Storage> Drop for Closed<'_, T, P> {
    fn drop(&mut self) {
        if self.polled {
            self.sender.sender.unregister();
        }
    }
}

impl<T, P: Storage> fmt::Debug for Closed<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed")
            .field("sender", &self.sender)
            .finish()
    }
}

/// A place for a channel, in a variable, a field or a static of one's own.
///
/// Splitting it allocates nothing, and it can be split again once both halves
/// are gone.
pub struct Slot<T, B: Backend = DefaultBackend> {
    handoff: Handoff<T, B>,
}

/// The sending half of a split [`Slot`].
pub type SlotSender<'a, T, B = DefaultBackend> = Sender<T, InSlot<'a, B>>;

/// The receiving half of a split [`Slot`].
pub type SlotReceiver<'a, T, B = DefaultBackend> = Receiver<T, InSlot<'a, B>>;

impl<T> Slot<T> {
    /// An empty slot.
    #[must_use]
    pub fn new() -> Self {
        Self::new_in()
    }
}

impl<T, B: Backend> Slot<T, B> {
    /// An empty slot over any backend.
    #[must_use]
    pub fn new_in() -> Self {
        Self {
            handoff: Handoff::new_in(),
        }
    }

    /// Makes a channel in the slot.
    ///
    /// A value that leaked halves of an earlier split left in it is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::oneshot::Slot;
    ///
    /// let mut slot = Slot::new();
    /// let (tx, rx) = slot.split();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| tx.send(7).unwrap());
    ///     assert_eq!(rx.blocking_recv(), Ok(7));
    /// });
    /// ```
    #[must_use]
    #[inline]
    pub fn split(&mut self) -> (SlotSender<'_, T, B>, SlotReceiver<'_, T, B>) {
        let (sender, receiver) = self.handoff.split();
        (
            Sender { sender },
            Receiver {
                receiver: Some(receiver),
            },
        )
    }
}

/// Drops what leaked halves left in the slot.
impl<T, B: Backend> Drop for Slot<T, B> {
    #[inline]
    fn drop(&mut self) {
        self.handoff.clear();
    }
}

impl<T, B: Backend> Default for Slot<T, B> {
    fn default() -> Self {
        Self::new_in()
    }
}

impl<T, B: Backend> fmt::Debug for Slot<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

/// The errors of the channel.
pub mod error {
    use core::error::Error;
    use core::fmt;

    /// The answer of a [`Receiver`](super::Receiver) whose sender was dropped
    /// without having sent, or which was closed before.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct RecvError;

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("no value will come: the channel closed before one was sent")
        }
    }

    impl Error for RecvError {}

    /// The answer of [`try_recv`](super::Receiver::try_recv) where there is no
    /// value.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TryRecvError {
        /// A value may still come.
        Empty,
        /// No value will come.
        Closed,
    }

    impl fmt::Display for TryRecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(match self {
                Self::Empty => "no value has been sent yet",
                Self::Closed => "no value will come: the channel is closed",
            })
        }
    }

    impl Error for TryRecvError {}
}
