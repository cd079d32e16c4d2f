//! The channel with a capacity. States and invariants are those of `chan`.

#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
#[cfg(feature = "futures-core")]
use core::pin::Pin;
use core::task::{Context, Poll};
#[cfg(feature = "std")]
use core::time::Duration;

use crate::backend::watch::refused;
use crate::backend::{Backend, BlockingBackend, DefaultBackend};
use crate::protocol::block_on;
use crate::raw::permits::closed_in;

use super::chan::{Chan, Room, Rx, Tx, WeakTx};
use super::error::{SendError, TryRecvError, TrySendError};
#[cfg(feature = "std")]
use super::futures::SendTimeout;
use super::futures::{Closed, Recv, RecvMany, SendFuture};

/// Creates a channel that holds so many values at most.
///
/// With a capacity of 0 it is a rendezvous: see [Capacity](super#capacity).
///
/// # Panics
///
/// Panics if `capacity` is above [`Semaphore::MAX_PERMITS`](crate::Semaphore::MAX_PERMITS).
///
/// # Examples
///
/// ```
/// use reveille::mpsc;
///
/// let (tx, mut rx) = mpsc::channel(1);
/// tx.try_send(1).unwrap();
/// assert!(tx.try_send(2).is_err());
/// assert_eq!(rx.try_recv(), Ok(1));
/// ```
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    channel_in(capacity)
}

/// Creates a channel that holds so many values at most, over any backend.
///
/// # Panics
///
/// As for [`channel`].
///
/// # Examples
///
/// ```
/// use reveille::{mpsc, backend::Local};
///
/// // For a single thread: no atomics in the lock, and not `Send`.
/// let (tx, mut rx) = mpsc::channel_in::<_, Local>(1);
/// tx.try_send(7).unwrap();
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
#[track_caller]
#[must_use]
pub fn channel_in<T, B: Backend>(capacity: usize) -> (Sender<T, B>, Receiver<T, B>) {
    let (tx, rx) = Chan::halves(Room::Bounded(capacity));
    (Sender { tx }, Receiver { rx })
}

/// The sending half of a bounded channel.
///
/// The channel is disconnected when the last sender is dropped.
pub struct Sender<T, B: Backend = DefaultBackend> {
    tx: Tx<T, B>,
}

/// The receiving half of a bounded channel.
///
/// Dropped, it closes the channel and drops the values in it.
pub struct Receiver<T, B: Backend = DefaultBackend> {
    rx: Rx<T, B>,
}

/// Values are received whole, and a shared borrow reaches none.
impl<T, B: Backend> UnwindSafe for Receiver<T, B> {}
impl<T, B: Backend> RefUnwindSafe for Receiver<T, B> {}

impl<T, B: Backend> Sender<T, B> {
    #[inline]
    pub(super) fn chan(&self) -> &Chan<T, B> {
        &self.tx.chan
    }

    /// Sends a value, waiting until there is capacity for it.
    ///
    /// That it was sent does not mean that it will be received: the receiver can still be
    /// dropped with it.
    ///
    /// # Errors
    ///
    /// The value, if the receiver has been closed or dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it was ready, the future drops the value, which was not sent;
    /// [`SendFuture::into_inner`] returns it. It loses its place in the queue, and passes on
    /// the permit that it was granted.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, rx) = mpsc::channel(1);
    /// tx.send(1).await.unwrap();
    /// drop(rx);
    /// assert_eq!(tx.send(2).await.unwrap_err().0, 2);
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn send(&self, value: T) -> SendFuture<'_, T, B> {
        SendFuture::new(self.chan(), value)
    }

    /// Sends a value if there is capacity for it and nothing waits for that.
    ///
    /// # Errors
    ///
    /// The value: [`Full`](TrySendError::Full) if there is no capacity,
    /// [`Closed`](TrySendError::Closed) if the receiver has been closed or dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc::{self, error::TrySendError};
    ///
    /// let (tx, rx) = mpsc::channel(1);
    /// assert_eq!(tx.try_send(1), Ok(()));
    /// assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    /// drop(rx);
    /// assert_eq!(tx.try_send(3), Err(TrySendError::Closed(3)));
    /// ```
    #[inline]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        match self.chan().try_send(value) {
            Ok(()) => Ok(()),
            Err((found, value)) if closed_in(found) => Err(TrySendError::Closed(value)),
            Err((_, value)) => Err(refused::<B, _>(TrySendError::Full(value))),
        }
    }

    /// Sends a value, waiting for capacity for so long at most.
    ///
    /// The time begins with this call, and the timers are those that are
    /// [current](crate::time::Timers::current) here.
    ///
    /// # Errors
    ///
    /// The value: [`Timeout`](super::error::SendTimeoutError::Timeout) if the time has
    /// passed, [`Closed`](super::error::SendTimeoutError::Closed) if the receiver has been
    /// closed or dropped.
    ///
    /// # Cancel safety
    ///
    /// As for [`send`](Self::send).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc::{self, error::SendTimeoutError};
    /// use reveille::time::Duration;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, _rx) = mpsc::channel(1);
    /// let wait = Duration::from_millis(1);
    /// assert_eq!(tx.send_timeout(1, wait).await, Ok(()));
    /// assert_eq!(tx.send_timeout(2, wait).await, Err(SendTimeoutError::Timeout(2)));
    /// # });
    /// ```
    #[cfg(feature = "std")]
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn send_timeout(&self, value: T, timeout: Duration) -> SendTimeout<'_, T, B> {
        SendTimeout::new(self.send(value), crate::time::sleep(timeout))
    }

    /// Sends a value, blocking the thread until there is capacity for it.
    ///
    /// It is for threads outside an executor: within one it blocks the thread that may have
    /// to run the receiver.
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
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let sender = std::thread::spawn(move || tx.blocking_send(7));
    /// assert_eq!(rx.blocking_recv(), Some(7));
    /// sender.join().unwrap().unwrap();
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>>
    where
        B: BlockingBackend,
    {
        match self.try_send(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(value)) => Err(SendError(value)),
            Err(TrySendError::Full(value)) => block_on::<B, _>(self.send(value)),
        }
    }

    /// Returns how many values can be sent at this moment: how many permits are free.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel(3);
    /// tx.try_send(7).unwrap();
    /// assert_eq!(tx.capacity(), 2);
    /// ```
    pub fn capacity(&self) -> usize {
        self.tx.chan.permits.available()
    }

    /// Returns how many values the channel holds at most.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(3);
    /// assert_eq!(tx.max_capacity(), 3);
    /// ```
    pub fn max_capacity(&self) -> usize {
        self.tx.chan.capacity()
    }

    /// Returns `true` if two senders belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(1);
    /// let (other, _other_rx) = mpsc::channel::<u32>(1);
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
    /// let (tx, rx) = mpsc::channel::<u32>(1);
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
    /// let (tx, rx) = mpsc::channel::<u32>(1);
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
    /// let (tx, mut rx) = mpsc::channel::<u32>(1);
    /// let weak = tx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// assert!(rx.try_recv().is_err());
    /// ```
    #[must_use = "a weak sender that is dropped does nothing"]
    pub fn downgrade(&self) -> WeakSender<T, B> {
        WeakSender {
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
    /// let (tx, _rx) = mpsc::channel::<u32>(1);
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
    /// let (tx, _rx) = mpsc::channel::<u32>(1);
    /// assert_eq!(tx.weak_count(), 0);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.tx.chan.counts().1
    }
}

impl<T, B: Backend> Clone for Sender<T, B> {
    fn clone(&self) -> Self {
        Self {
            tx: self.tx.clone(),
        }
    }
}

impl<T, B: Backend> fmt::Debug for Sender<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("is_closed", &self.is_closed())
            .field("chan", &self.tx.chan)
            .finish()
    }
}

/// A sender that does not keep the channel connected.
///
/// It is made by [`Sender::downgrade`]. To send, [upgrade](Self::upgrade) it.
pub struct WeakSender<T, B: Backend = DefaultBackend> {
    tx: WeakTx<T, B>,
}

impl<T, B: Backend> WeakSender<T, B> {
    /// Returns a sender, if another is left.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let weak = tx.downgrade();
    /// weak.upgrade().unwrap().try_send(7).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// ```
    pub fn upgrade(&self) -> Option<Sender<T, B>> {
        self.tx.upgrade().map(|tx| Sender { tx })
    }

    /// Returns how many senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(1);
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
    /// let (tx, _rx) = mpsc::channel::<u32>(1);
    /// assert_eq!(tx.downgrade().weak_count(), 1);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.tx.chan.counts().1
    }
}

impl<T, B: Backend> Clone for WeakSender<T, B> {
    fn clone(&self) -> Self {
        Self {
            tx: self.tx.clone(),
        }
    }
}

impl<T, B: Backend> fmt::Debug for WeakSender<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender").finish_non_exhaustive()
    }
}

impl<T, B: Backend> Receiver<T, B> {
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
    /// let (tx, mut rx) = mpsc::channel(1);
    /// tx.try_send(7).unwrap();
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
    /// let (tx, mut rx) = mpsc::channel(4);
    /// for value in 1..=3 {
    ///     tx.try_send(value).unwrap();
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
    /// let (tx, mut rx) = mpsc::channel(1);
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.try_send(7).unwrap();
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
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let sender = std::thread::spawn(move || tx.try_send(7));
    /// assert_eq!(rx.blocking_recv(), Some(7));
    /// sender.join().unwrap().unwrap();
    /// ```
    pub fn blocking_recv(&mut self) -> Option<T>
    where
        B: BlockingBackend,
    {
        // On a rendezvous that would be another request for a value.
        if self.max_capacity() > 0 {
            match self.try_recv() {
                Ok(value) => return Some(value),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
        }
        block_on::<B, _>(self.recv())
    }

    /// Receives up to `limit` values, as [`recv_many`](Self::recv_many) does, blocking the
    /// thread until there is at least one.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(4);
    /// tx.try_send(7).unwrap();
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
    /// let (tx, mut rx) = mpsc::channel(1);
    /// assert_eq!(rx.poll_recv(&mut cx), Poll::Pending);
    /// tx.try_send(7).unwrap();
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
    /// let (tx, mut rx) = mpsc::channel(4);
    /// let mut values = Vec::new();
    /// assert_eq!(rx.poll_recv_many(&mut cx, &mut values, 4), Poll::Pending);
    /// tx.try_send(7).unwrap();
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
    /// What is in the channel can still be received, and what is sent by permits that were
    /// reserved before. A reservation that has not been seen to be granted fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, mut rx) = mpsc::channel(4);
    /// tx.try_send(1).unwrap();
    /// rx.close();
    /// assert!(tx.try_send(2).is_err());
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
    /// let (tx, rx) = mpsc::channel::<u32>(1);
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
    /// let (tx, rx) = mpsc::channel(1);
    /// assert!(rx.is_empty());
    /// tx.try_send(7).unwrap();
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
    /// let (tx, rx) = mpsc::channel(1);
    /// tx.try_send(7).unwrap();
    /// assert_eq!(rx.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.rx.len()
    }

    /// Returns how many values can be sent at this moment: how many permits are free.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, rx) = mpsc::channel(3);
    /// tx.try_send(7).unwrap();
    /// assert_eq!(rx.capacity(), 2);
    /// ```
    pub fn capacity(&self) -> usize {
        self.rx.chan.permits.available()
    }

    /// Returns how many values the channel holds at most.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (_tx, rx) = mpsc::channel::<u32>(3);
    /// assert_eq!(rx.max_capacity(), 3);
    /// ```
    pub fn max_capacity(&self) -> usize {
        self.rx.chan.capacity()
    }

    /// Returns how many senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, rx) = mpsc::channel::<u32>(1);
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
    /// let (tx, rx) = mpsc::channel::<u32>(1);
    /// let weak = tx.downgrade();
    /// assert_eq!(rx.sender_weak_count(), 1);
    /// # drop(weak);
    /// ```
    pub fn sender_weak_count(&self) -> usize {
        self.rx.chan.counts().1
    }
}

#[cfg(feature = "futures-core")]
impl<T, B: Backend> futures_core::Stream for Receiver<T, B> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(cx)
    }
}

/// No value is pinned.
impl<T, B: Backend> Unpin for Receiver<T, B> {}

impl<T, B: Backend> fmt::Debug for Receiver<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .field("is_closed", &self.is_closed())
            .field("chan", &self.rx.chan)
            .finish()
    }
}
