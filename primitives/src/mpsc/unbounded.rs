//! The channel without a capacity. States and invariants are those of `chan`.

#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
#[cfg(feature = "futures-core")]
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, BlockingBackend, DefaultBackend};
use crate::protocol::block_on;

use super::chan::{Chan, Room, Rx, Tx, WeakTx};
use super::error::{SendError, TryRecvError};
use super::futures::{Closed, Recv, RecvMany};

/// Creates a channel without a capacity: sending never waits.
///
/// A receiver that is slower than the senders lets it grow without a limit.
///
/// # Examples
///
/// ```
/// use reveille::mpsc;
///
/// let (tx, mut rx) = mpsc::unbounded_channel();
/// tx.send(7).unwrap();
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    unbounded_channel_in()
}

/// Creates a channel without a capacity, over any backend.
///
/// # Examples
///
/// ```
/// use reveille::{mpsc, backend::Local};
///
/// // For a single thread: no atomics in the lock, and not `Send`.
/// let (tx, mut rx) = mpsc::unbounded_channel_in::<_, Local>();
/// tx.send(7).unwrap();
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
#[must_use]
pub fn unbounded_channel_in<T, B: Backend>() -> (UnboundedSender<T, B>, UnboundedReceiver<T, B>) {
    let (tx, rx) = Chan::halves(Room::Unbounded);
    (UnboundedSender { tx }, UnboundedReceiver { rx })
}

/// The sending half of an unbounded channel.
///
/// The channel is disconnected when the last sender is dropped.
pub struct UnboundedSender<T, B: Backend = DefaultBackend> {
    tx: Tx<T, B>,
}

/// The receiving half of an unbounded channel.
///
/// Dropped, it closes the channel and drops the values in it.
pub struct UnboundedReceiver<T, B: Backend = DefaultBackend> {
    rx: Rx<T, B>,
}

/// Values are received whole, and a shared borrow reaches none.
impl<T, B: Backend> UnwindSafe for UnboundedReceiver<T, B> {}
impl<T, B: Backend> RefUnwindSafe for UnboundedReceiver<T, B> {}

impl<T, B: Backend> UnboundedSender<T, B> {
    /// Sends a value, without waiting.
    ///
    /// # Errors
    ///
    /// The value, if the receiver has been closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, rx) = mpsc::unbounded_channel();
    /// tx.send(1).unwrap();
    /// drop(rx);
    /// assert_eq!(tx.send(2).unwrap_err().0, 2);
    /// ```
    #[inline]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.tx.chan.send_unbounded(value).map_err(SendError)
    }

    /// Returns `true` if two senders belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::unbounded_channel::<u32>();
    /// let (other, _other_rx) = mpsc::unbounded_channel::<u32>();
    /// assert!(tx.same_channel(&tx.clone()));
    /// assert!(!tx.same_channel(&other));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        self.tx.same_channel(&other.tx)
    }

    /// Waits until the receiver has been closed or dropped.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the wait is given up.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, rx) = mpsc::unbounded_channel::<u32>();
    /// drop(rx);
    /// tx.closed().await;
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn closed(&self) -> Closed<'_, T, B> {
        Closed::new(&self.tx.chan)
    }

    /// Returns `true` if the receiver has been closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, rx) = mpsc::unbounded_channel::<u32>();
    /// assert!(!tx.is_closed());
    /// drop(rx);
    /// assert!(tx.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.tx.chan.is_closed()
    }

    /// Creates a weak sender: one that does not keep the channel connected.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::unbounded_channel::<u32>();
    /// let weak = tx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// assert!(rx.try_recv().is_err());
    /// ```
    #[must_use = "a weak sender that is dropped does nothing"]
    pub fn downgrade(&self) -> WeakUnboundedSender<T, B> {
        WeakUnboundedSender {
            tx: self.tx.downgrade(),
        }
    }

    /// Returns how many senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::unbounded_channel::<u32>();
    /// assert_eq!(tx.strong_count(), 1);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.tx.chan.counts().0
    }

    /// Returns how many weak senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::unbounded_channel::<u32>();
    /// assert_eq!(tx.weak_count(), 0);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.tx.chan.counts().1
    }
}

impl<T, B: Backend> Clone for UnboundedSender<T, B> {
    fn clone(&self) -> Self {
        Self {
            tx: self.tx.clone(),
        }
    }
}

impl<T, B: Backend> fmt::Debug for UnboundedSender<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedSender")
            .field("is_closed", &self.is_closed())
            .field("chan", &self.tx.chan)
            .finish()
    }
}

/// A sender that does not keep the channel connected.
///
/// It is made by [`UnboundedSender::downgrade`]. To send, [upgrade](Self::upgrade) it.
pub struct WeakUnboundedSender<T, B: Backend = DefaultBackend> {
    tx: WeakTx<T, B>,
}

impl<T, B: Backend> WeakUnboundedSender<T, B> {
    /// Returns a sender, if another is left.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::unbounded_channel();
    /// let weak = tx.downgrade();
    /// weak.upgrade().unwrap().send(7).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// ```
    pub fn upgrade(&self) -> Option<UnboundedSender<T, B>> {
        self.tx.upgrade().map(|tx| UnboundedSender { tx })
    }

    /// Returns how many senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::unbounded_channel::<u32>();
    /// assert_eq!(tx.downgrade().strong_count(), 1);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.tx.chan.counts().0
    }

    /// Returns how many weak senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::unbounded_channel::<u32>();
    /// assert_eq!(tx.downgrade().weak_count(), 1);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.tx.chan.counts().1
    }
}

impl<T, B: Backend> Clone for WeakUnboundedSender<T, B> {
    fn clone(&self) -> Self {
        Self {
            tx: self.tx.clone(),
        }
    }
}

impl<T, B: Backend> fmt::Debug for WeakUnboundedSender<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakUnboundedSender")
            .finish_non_exhaustive()
    }
}

impl<T, B: Backend> UnboundedReceiver<T, B> {
    /// Receives the next value, waiting until there is one.
    ///
    /// Returns `None` once no value will come: all senders were dropped, or the channel
    /// was closed and no permit is reserved, and all values have been received.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no value.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, mut rx) = mpsc::unbounded_channel();
    /// tx.send(7).unwrap();
    /// drop(tx);
    /// assert_eq!(rx.recv().await, Some(7));
    /// assert_eq!(rx.recv().await, None);
    /// # });
    /// ```
    #[inline]
    pub fn recv(&mut self) -> Recv<'_, T, B> {
        Recv::new(&mut self.rx)
    }

    /// Receives up to `limit` values, which it adds to `buffer`, waiting until there is
    /// at least one. Returns how many.
    ///
    /// Returns 0 if `limit` is 0, and once no value will come.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no value; then nothing was added to `buffer`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, mut rx) = mpsc::unbounded_channel();
    /// for value in 1..=3 {
    ///     tx.send(value).unwrap();
    /// }
    /// let mut values = Vec::new();
    /// assert_eq!(rx.recv_many(&mut values, 2).await, 2);
    /// assert_eq!(values, [1, 2]);
    /// # });
    /// ```
    pub fn recv_many<'a>(&'a mut self, buffer: &'a mut Vec<T>, limit: usize) -> RecvMany<'a, T, B> {
        RecvMany::new(&mut self.rx, buffer, limit)
    }

    /// Receives the next value if there is one.
    ///
    /// # Errors
    ///
    /// [`Empty`](TryRecvError::Empty) if a value may still come,
    /// [`Disconnected`](TryRecvError::Disconnected) if none will.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc::{self, error::TryRecvError};
    ///
    /// let (tx, mut rx) = mpsc::unbounded_channel();
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.send(7).unwrap();
    /// drop(tx);
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.rx.try_recv()
    }

    /// Receives the next value, blocking the thread until there is one.
    ///
    /// Returns `None` as [`recv`](Self::recv) does. It is for threads outside an executor:
    /// within one it blocks the thread that may have to run the sender.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::unbounded_channel();
    /// let sender = std::thread::spawn(move || tx.send(7));
    /// assert_eq!(rx.blocking_recv(), Some(7));
    /// sender.join().unwrap().unwrap();
    /// ```
    pub fn blocking_recv(&mut self) -> Option<T>
    where
        B: BlockingBackend,
    {
        match self.try_recv() {
            Ok(value) => Some(value),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => block_on::<B, _>(self.recv()),
        }
    }

    /// Receives up to `limit` values, as [`recv_many`](Self::recv_many) does, blocking the
    /// thread until there is at least one.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::unbounded_channel();
    /// tx.send(7).unwrap();
    /// let mut values = Vec::new();
    /// assert_eq!(rx.blocking_recv_many(&mut values, 10), 1);
    /// assert_eq!(values, [7]);
    /// ```
    pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize
    where
        B: BlockingBackend,
    {
        block_on::<B, _>(self.recv_many(buffer, limit))
    }

    /// Polls for the next value, as [`recv`](Self::recv) does.
    ///
    /// The waker of the latest call that returned `Pending` is woken; it is kept until
    /// then, or until the receiver is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Poll, Waker};
    /// use reveille::mpsc;
    ///
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let (tx, mut rx) = mpsc::unbounded_channel();
    /// assert_eq!(rx.poll_recv(&mut cx), Poll::Pending);
    /// tx.send(7).unwrap();
    /// assert_eq!(rx.poll_recv(&mut cx), Poll::Ready(Some(7)));
    /// ```
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.rx.poll_recv(cx, false)
    }

    /// Polls for up to `limit` values, as [`recv_many`](Self::recv_many) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Poll, Waker};
    /// use reveille::mpsc;
    ///
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let (tx, mut rx) = mpsc::unbounded_channel();
    /// let mut values = Vec::new();
    /// assert_eq!(rx.poll_recv_many(&mut cx, &mut values, 4), Poll::Pending);
    /// tx.send(7).unwrap();
    /// assert_eq!(rx.poll_recv_many(&mut cx, &mut values, 4), Poll::Ready(1));
    /// ```
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        self.rx.poll_recv_many(cx, false, buffer, limit)
    }

    /// Closes the channel: sends fail from now on.
    ///
    /// What is in the channel can still be received.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, mut rx) = mpsc::unbounded_channel();
    /// tx.send(1).unwrap();
    /// rx.close();
    /// assert!(tx.send(2).is_err());
    /// assert_eq!(rx.recv().await, Some(1));
    /// assert_eq!(rx.recv().await, None);
    /// # });
    /// ```
    pub fn close(&mut self) {
        self.rx.close();
    }

    /// Returns `true` if no value can be sent any more: the channel was closed, or all senders were
    /// dropped. There may be values to be received.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, rx) = mpsc::unbounded_channel::<u32>();
    /// assert!(!rx.is_closed());
    /// drop(tx);
    /// assert!(rx.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.rx.is_closed()
    }

    /// Returns `true` if there is no value to be received at this moment.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, rx) = mpsc::unbounded_channel();
    /// assert!(rx.is_empty());
    /// tx.send(7).unwrap();
    /// assert!(!rx.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.rx.len() == 0
    }

    /// Returns how many values there are to be received.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, rx) = mpsc::unbounded_channel();
    /// tx.send(7).unwrap();
    /// assert_eq!(rx.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.rx.len()
    }

    /// Returns how many senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, rx) = mpsc::unbounded_channel::<u32>();
    /// let another = tx.clone();
    /// assert_eq!(rx.sender_strong_count(), 2);
    /// # drop(another);
    /// ```
    pub fn sender_strong_count(&self) -> usize {
        self.rx.chan.counts().0
    }

    /// Returns how many weak senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, rx) = mpsc::unbounded_channel::<u32>();
    /// let weak = tx.downgrade();
    /// assert_eq!(rx.sender_weak_count(), 1);
    /// # drop(weak);
    /// ```
    pub fn sender_weak_count(&self) -> usize {
        self.rx.chan.counts().1
    }
}

#[cfg(feature = "futures-core")]
impl<T, B: Backend> futures_core::Stream for UnboundedReceiver<T, B> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(cx)
    }
}

/// No value is pinned.
impl<T, B: Backend> Unpin for UnboundedReceiver<T, B> {}

impl<T, B: Backend> fmt::Debug for UnboundedReceiver<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedReceiver")
            .field("len", &self.len())
            .field("is_closed", &self.is_closed())
            .field("chan", &self.rx.chan)
            .finish()
    }
}
