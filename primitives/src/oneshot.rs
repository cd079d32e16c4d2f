//! A channel that sends one value from one task to another.
//!
//! [`channel`] creates a [`Sender`] and a [`Receiver`]. The sender sends a value once,
//! without waiting. The receiver is a future of the value. Either half can be dropped
//! at any time: if the sender is dropped unsent, the receiver returns [`RecvError`],
//! and if the receiver is dropped, [`send`](Sender::send) returns the value.
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
//! A channel is one allocation. A [`Slot`] needs none: it is the memory of a channel,
//! is split into a sender and a receiver that borrow it, and can be split again:
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
//! The states are those of a [`Handoff`], to which this module adds the names and the
//! errors of `tokio::sync::oneshot`. Sending to a receiver that does not wait is one
//! compare-exchange. Receiving a value that has been sent is one load. A half drops its
//! waker when it is dropped, and the half that is dropped last frees the channel.
//!
//! Differences from `tokio::sync::oneshot`: `blocking_recv` does not panic within an
//! executor, since the channel knows of none; `closed` returns a named future;
//! [`channel_in`] and [`Slot`] are additions.

#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::watch::refused;
use crate::backend::{Backend, BlockingBackend, DefaultBackend};
use crate::protocol::block_on;
use crate::raw::{Boxed, Handoff, InSlot, RawReceiver, RawSender, Storage};

use self::error::{RecvError, TryRecvError};

/// Creates a channel for one value.
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

/// Creates a channel for one value, over any backend.
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

/// Sends the value of a channel.
///
/// If the sender is dropped unsent, the receiver returns [`RecvError`].
///
/// The parameter `P` is where the channel is stored: on the heap by default, and in a
/// [`Slot`] for a [`SlotSender`].
pub struct Sender<T, P: Storage = Boxed> {
    sender: RawSender<T, P>,
}

/// Receives the value of a channel: a future.
///
/// Dropping the receiver closes the channel. A value that was sent before is dropped
/// with it, and a later [`send`](Sender::send) returns its value.
///
/// # Cancel safety
///
/// If the receiver is polled by reference (`(&mut rx).await`) and that wait is dropped,
/// no value is lost: the next poll or [`try_recv`](Self::try_recv) returns it.
///
/// # Panics
///
/// A poll panics if an earlier poll was ready, or if [`try_recv`](Self::try_recv) has
/// returned anything but [`Empty`](TryRecvError::Empty).
pub struct Receiver<T, P: Storage = Boxed> {
    /// `None` once the receiver is terminated.
    receiver: Option<RawReceiver<T, P>>,
}

impl<T, P: Storage> Sender<T, P> {
    /// Sends the value, without waiting.
    ///
    /// A value that has been sent is not necessarily received: the receiver can still
    /// be dropped with it.
    ///
    /// # Errors
    ///
    /// Returns the value if the receiver has been closed or dropped.
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

    /// Waits until the receiver has been closed or dropped. A task can then stop working
    /// on a value that will not be received.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
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

    /// Returns `true` if the receiver has been closed or dropped.
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
    /// Closes the channel: a later [`send`](Sender::send) returns its value. A value
    /// that has been sent before can still be received.
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

    /// Receives the value if it has been sent.
    ///
    /// # Errors
    ///
    /// Returns [`Empty`](TryRecvError::Empty) if a value may still be sent. Returns
    /// [`Closed`](TryRecvError::Closed) if none will: the sender was dropped unsent, the
    /// channel was closed, or the value has been received.
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
            Poll::Pending => Err(refused::<P::Backend, _>(TryRecvError::Empty)),
        }
    }

    /// Receives the value, blocking the thread until it is sent.
    ///
    /// It is for threads outside an executor. On a thread that runs tasks it can block
    /// the task that would send.
    ///
    /// # Errors
    ///
    /// Returns [`RecvError`] if no value will be sent.
    ///
    /// # Panics
    ///
    /// Panics if the receiver is [terminated](Self::is_terminated).
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

    /// Returns `true` if the receiver has returned the value or an error. A poll would
    /// then panic.
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

    /// Returns `true` if no value can be received at this moment.
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

/// The memory of a channel, in a variable, a field or a static.
///
/// Splitting it allocates nothing. It can be split again after both halves have been
/// dropped.
pub struct Slot<T, B: Backend = DefaultBackend> {
    handoff: Handoff<T, B>,
}

/// Sends the value of a channel in a [`Slot`].
pub type SlotSender<'a, T, B = DefaultBackend> = Sender<T, InSlot<'a, B>>;

/// Receives the value of a channel in a [`Slot`].
pub type SlotReceiver<'a, T, B = DefaultBackend> = Receiver<T, InSlot<'a, B>>;

impl<T> Slot<T> {
    /// Creates an empty slot.
    #[must_use]
    pub fn new() -> Self {
        Self::new_in()
    }
}

impl<T, B: Backend> Slot<T, B> {
    /// Creates an empty slot, over any backend.
    #[must_use]
    pub fn new_in() -> Self {
        Self {
            handoff: Handoff::new_in(),
        }
    }

    /// Creates a channel in the slot.
    ///
    /// If the halves of an earlier split were leaked, a value that they left is dropped.
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

    /// Returned by a [`Receiver`](super::Receiver) whose sender was dropped unsent, or
    /// which was closed before a value was sent.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct RecvError;

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("no value will come: the channel closed before one was sent")
        }
    }

    impl Error for RecvError {}

    /// Returned by [`try_recv`](super::Receiver::try_recv) if it receives no value.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TryRecvError {
        /// A value may still be sent.
        Empty,
        /// No value will be sent.
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
