//! The halves of a channel. States and invariants are those of `chan`.

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;
#[cfg(feature = "futures-core")]
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, BlockingBackend, DefaultBackend};
use crate::mpsc::error::{SendError, TrySendError};
use crate::protocol::{CallerLocation, Waiter, block_on};

use super::chan::{Chan, Half};
use super::error::{RecvError, TryRecvError};
use super::futures::{Closed, Recv, SendFuture};

/// The capacity of an unbounded channel.
const UNBOUNDED: usize = usize::MAX;

/// Creates a channel that holds `capacity` values at most.
///
/// With a capacity of 0 it is a [rendezvous](super#rendezvous).
///
/// # Examples
///
/// ```
/// use reveille::mpmc;
///
/// let (tx, rx) = mpmc::bounded(1);
/// tx.try_send(7).unwrap();
/// assert!(tx.try_send(8).is_err());
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    bounded_in(capacity)
}

/// Creates a channel that holds `capacity` values at most, over any backend.
///
/// # Examples
///
/// ```
/// use reveille::{mpmc, backend::Local};
///
/// // For a single thread: no atomics in the lock, and not `Send`.
/// let (tx, rx) = mpmc::bounded_in::<_, Local>(1);
/// tx.try_send(7).unwrap();
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
#[must_use]
pub fn bounded_in<T, B: Backend>(capacity: usize) -> (Sender<T, B>, Receiver<T, B>) {
    let chan = Arc::new(Chan::new(capacity));
    (Sender::of(chan.clone()), Receiver::of(chan))
}

/// Creates a channel without a capacity: sending never waits.
///
/// If receivers are slower than senders, it grows without a limit.
///
/// # Examples
///
/// ```
/// use reveille::mpmc;
///
/// let (tx, rx) = mpmc::unbounded();
/// tx.try_send(7).unwrap();
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    unbounded_in()
}

/// Creates a channel without a capacity, over any backend.
///
/// # Examples
///
/// ```
/// use reveille::{mpmc, backend::Local};
///
/// let (tx, rx) = mpmc::unbounded_in::<_, Local>();
/// tx.try_send(7).unwrap();
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
#[must_use]
pub fn unbounded_in<T, B: Backend>() -> (Sender<T, B>, Receiver<T, B>) {
    bounded_in(UNBOUNDED)
}

/// The sending half of a channel.
///
/// The channel is closed when the last sender is dropped.
pub struct Sender<T, B: Backend = DefaultBackend> {
    chan: Arc<Chan<T, B>>,
}

impl<T, B: Backend> Sender<T, B> {
    const fn of(chan: Arc<Chan<T, B>>) -> Self {
        Self { chan }
    }

    /// Sends a value, waiting until there is room for it.
    ///
    /// # Errors
    ///
    /// Returns the value if the channel is closed.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, nothing is sent, and the value is
    /// dropped. [`SendFuture::into_inner`] returns it instead.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, rx) = mpmc::bounded(1);
    /// tx.send(7).await.unwrap();
    /// assert_eq!(rx.recv().await, Ok(7));
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn send(&self, value: T) -> SendFuture<'_, T, B> {
        SendFuture::new(&self.chan, value)
    }

    /// Sends a value if there is room for it.
    ///
    /// # Errors
    ///
    /// Returns the value if there is no room or the channel is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc::{self, TrySendError};
    ///
    /// let (tx, rx) = mpmc::bounded(1);
    /// tx.try_send(1).unwrap();
    /// assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    /// drop(rx);
    /// assert_eq!(tx.try_send(3), Err(TrySendError::Closed(3)));
    /// ```
    #[inline]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.chan.try_send(value)
    }

    /// Sends a value, and replaces the oldest in the channel if there is no room.
    ///
    /// Returns the value that was replaced. If no value can be replaced, since the
    /// channel is a rendezvous or all its room is granted to senders that wait, it
    /// returns the value itself.
    ///
    /// # Errors
    ///
    /// Returns the value if the channel is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::bounded(1);
    /// assert_eq!(tx.force_send(1), Ok(None));
    /// assert_eq!(tx.force_send(2), Ok(Some(1)));
    /// assert_eq!(rx.try_recv(), Ok(2));
    /// ```
    pub fn force_send(&self, value: T) -> Result<Option<T>, SendError<T>> {
        self.chan.force_send(value)
    }

    /// Sends a value, blocking the thread until there is room for it.
    ///
    /// It is for threads outside an executor: within one it blocks the thread that may
    /// have to run the receiver.
    ///
    /// # Errors
    ///
    /// Returns the value if the channel is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::bounded(1);
    /// let receiver = std::thread::spawn(move || rx.recv_blocking());
    /// tx.send_blocking(7).unwrap();
    /// assert_eq!(receiver.join().unwrap(), Ok(7));
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn send_blocking(&self, value: T) -> Result<(), SendError<T>>
    where
        B: BlockingBackend,
    {
        block_on::<B, _>(self.send(value))
    }

    /// Waits until the channel is closed.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, rx) = mpmc::bounded::<u32>(1);
    /// drop(rx);
    /// tx.closed().await;
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn closed(&self) -> Closed<'_, T, B> {
        Closed::new(&self.chan)
    }

    /// Closes the channel. Returns `true` if it was open.
    ///
    /// Sends fail from now on. What is in the channel can still be received.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded();
    /// tx.try_send(7).unwrap();
    /// assert!(tx.close());
    /// assert!(tx.try_send(8).is_err());
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// ```
    pub fn close(&self) -> bool {
        self.chan.close()
    }

    /// Returns `true` if the channel is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded::<u32>();
    /// assert!(!tx.is_closed());
    /// drop(rx);
    /// assert!(tx.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.chan.is_closed()
    }

    /// Returns `true` if no value is in the channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded();
    /// assert!(tx.is_empty());
    /// tx.try_send(7).unwrap();
    /// assert!(!tx.is_empty());
    /// # drop(rx);
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if as many values are in the channel as it holds. A rendezvous is
    /// always full.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::bounded(1);
    /// assert!(!tx.is_full());
    /// tx.try_send(7).unwrap();
    /// assert!(tx.is_full());
    /// # drop(rx);
    /// ```
    pub fn is_full(&self) -> bool {
        self.len() >= self.chan.capacity
    }

    /// Returns the number of values in the channel. Those that are granted to receivers
    /// are included.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded();
    /// tx.try_send(7).unwrap();
    /// assert_eq!(tx.len(), 1);
    /// # drop(rx);
    /// ```
    pub fn len(&self) -> usize {
        self.chan.len()
    }

    /// Returns how many values the channel holds at most. Returns `None` if it is
    /// unbounded.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::bounded::<u32>(3);
    /// assert_eq!(tx.capacity(), Some(3));
    /// # drop((tx, rx));
    /// ```
    pub fn capacity(&self) -> Option<usize> {
        let capacity = self.chan.capacity;
        (capacity != UNBOUNDED).then_some(capacity)
    }

    /// Returns the number of receivers.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded::<u32>();
    /// let another = rx.clone();
    /// assert_eq!(tx.receiver_count(), 2);
    /// # drop((tx, another));
    /// ```
    pub fn receiver_count(&self) -> usize {
        self.chan.count(Half::Receiver)
    }

    /// Returns the number of senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded::<u32>();
    /// let another = tx.clone();
    /// assert_eq!(tx.sender_count(), 2);
    /// # drop((rx, another));
    /// ```
    pub fn sender_count(&self) -> usize {
        self.chan.count(Half::Sender)
    }

    /// Returns `true` if two senders belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded::<u32>();
    /// assert!(tx.same_channel(&tx.clone()));
    /// # drop((tx, rx));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }

    /// Creates a weak sender: one that does not keep the channel open.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded::<u32>();
    /// let weak = tx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// assert!(rx.is_closed());
    /// ```
    #[must_use = "a weak sender that is dropped does nothing"]
    pub fn downgrade(&self) -> WeakSender<T, B> {
        WeakSender {
            chan: self.chan.clone(),
        }
    }
}

/// The last one closes the channel.
impl<T, B: Backend> Drop for Sender<T, B> {
    fn drop(&mut self) {
        self.chan.leave(Half::Sender, None);
    }
}

impl<T, B: Backend> Clone for Sender<T, B> {
    fn clone(&self) -> Self {
        let chan = self.chan.clone();
        chan.join(Half::Sender);
        Self::of(chan)
    }
}

impl<T, B: Backend> fmt::Debug for Sender<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("is_closed", &self.is_closed())
            .field("chan", &self.chan)
            .finish_non_exhaustive()
    }
}

/// A sender that does not keep the channel open.
///
/// It is created by [`Sender::downgrade`]. To send, [upgrade](Self::upgrade) it.
pub struct WeakSender<T, B: Backend = DefaultBackend> {
    chan: Arc<Chan<T, B>>,
}

impl<T, B: Backend> WeakSender<T, B> {
    /// Returns a sender, if another is left and the channel is open.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded::<u32>();
    /// let weak = tx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// tx.close();
    /// assert!(weak.upgrade().is_none());
    /// # drop(rx);
    /// ```
    pub fn upgrade(&self) -> Option<Sender<T, B>> {
        let joins = self.chan.try_join(Half::Sender);
        joins.then(|| Sender::of(self.chan.clone()))
    }
}

impl<T, B: Backend> Clone for WeakSender<T, B> {
    fn clone(&self) -> Self {
        Self {
            chan: self.chan.clone(),
        }
    }
}

impl<T, B: Backend> fmt::Debug for WeakSender<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender").finish_non_exhaustive()
    }
}

/// The receiving half of a channel.
///
/// Each value is received by one receiver. The channel is closed when the last receiver is
/// dropped, and the values in it are dropped with it.
pub struct Receiver<T, B: Backend = DefaultBackend> {
    chan: Arc<Chan<T, B>>,
    /// That of `poll_recv`.
    waiter: Option<Waiter>,
}

impl<T, B: Backend> Receiver<T, B> {
    const fn of(chan: Arc<Chan<T, B>>) -> Self {
        Self { chan, waiter: None }
    }

    /// Receives a value, waiting until there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the channel is closed and no value is left.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no value: one that was granted to it goes to the next
    /// receiver.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc::{self, RecvError};
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, rx) = mpmc::bounded(1);
    /// tx.send(7).await.unwrap();
    /// drop(tx);
    /// assert_eq!(rx.recv().await, Ok(7));
    /// assert_eq!(rx.recv().await, Err(RecvError));
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub fn recv(&self) -> Recv<'_, T, B> {
        Recv::new(&self.chan)
    }

    /// Receives a value if one is free.
    ///
    /// # Errors
    ///
    /// [`Empty`](TryRecvError::Empty) if a value may still come,
    /// [`Closed`](TryRecvError::Closed) if none will.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc::{self, TryRecvError};
    ///
    /// let (tx, rx) = mpmc::bounded(1);
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.try_send(7).unwrap();
    /// drop(tx);
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    /// ```
    #[inline]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.chan.try_recv()
    }

    /// Receives a value, blocking the thread until there is one.
    ///
    /// It is for threads outside an executor: within one it blocks the thread that may
    /// have to run the sender.
    ///
    /// # Errors
    ///
    /// Returns an error if the channel is closed and no value is left.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::bounded(1);
    /// let sender = std::thread::spawn(move || tx.try_send(7));
    /// assert_eq!(rx.recv_blocking(), Ok(7));
    /// sender.join().unwrap().unwrap();
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn recv_blocking(&self) -> Result<T, RecvError>
    where
        B: BlockingBackend,
    {
        block_on::<B, _>(self.recv())
    }

    /// Polls for a value. Returns `None` once the channel is closed and no value is left.
    ///
    /// After it returned `Pending` the receiver has a place in the queue until it is
    /// polled again, or dropped: a value that is granted to it meanwhile is kept for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Poll, Waker};
    /// use reveille::mpmc;
    ///
    /// let mut cx = Context::from_waker(Waker::noop());
    /// let (tx, mut rx) = mpmc::bounded(1);
    /// assert_eq!(rx.poll_recv(&mut cx), Poll::Pending);
    /// tx.try_send(7).unwrap();
    /// assert_eq!(rx.poll_recv(&mut cx), Poll::Ready(Some(7)));
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let location = CallerLocation::capture();
        let poll = self.chan.poll_recv(&mut self.waiter, location, cx);
        poll.map(Result::ok)
    }

    /// Closes the channel. Returns `true` if it was open.
    ///
    /// Sends fail from now on. What is in the channel can still be received.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded();
    /// tx.try_send(7).unwrap();
    /// assert!(rx.close());
    /// assert!(tx.try_send(8).is_err());
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// ```
    pub fn close(&self) -> bool {
        self.chan.close()
    }

    /// Returns `true` if the channel is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded::<u32>();
    /// assert!(!rx.is_closed());
    /// drop(tx);
    /// assert!(rx.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.chan.is_closed()
    }

    /// Returns `true` if no value is in the channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded();
    /// assert!(rx.is_empty());
    /// tx.try_send(7).unwrap();
    /// assert!(!rx.is_empty());
    /// # drop(rx);
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if as many values are in the channel as it holds. A rendezvous is
    /// always full.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::bounded(1);
    /// assert!(!rx.is_full());
    /// tx.try_send(7).unwrap();
    /// assert!(rx.is_full());
    /// # drop(rx);
    /// ```
    pub fn is_full(&self) -> bool {
        self.len() >= self.chan.capacity
    }

    /// Returns the number of values in the channel. Those that are granted to receivers
    /// are included.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded();
    /// tx.try_send(7).unwrap();
    /// assert_eq!(rx.len(), 1);
    /// # drop(rx);
    /// ```
    pub fn len(&self) -> usize {
        self.chan.len()
    }

    /// Returns how many values the channel holds at most. Returns `None` if it is
    /// unbounded.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::bounded::<u32>(3);
    /// assert_eq!(rx.capacity(), Some(3));
    /// # drop((tx, rx));
    /// ```
    pub fn capacity(&self) -> Option<usize> {
        let capacity = self.chan.capacity;
        (capacity != UNBOUNDED).then_some(capacity)
    }

    /// Returns the number of receivers.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded::<u32>();
    /// let another = rx.clone();
    /// assert_eq!(rx.receiver_count(), 2);
    /// # drop((tx, another));
    /// ```
    pub fn receiver_count(&self) -> usize {
        self.chan.count(Half::Receiver)
    }

    /// Returns the number of senders.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded::<u32>();
    /// let another = tx.clone();
    /// assert_eq!(rx.sender_count(), 2);
    /// # drop((rx, another));
    /// ```
    pub fn sender_count(&self) -> usize {
        self.chan.count(Half::Sender)
    }

    /// Returns `true` if two receivers belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded::<u32>();
    /// assert!(rx.same_channel(&rx.clone()));
    /// # drop((tx, rx));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }

    /// Creates a weak receiver: one that does not keep the channel open.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded::<u32>();
    /// let weak = rx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(rx);
    /// assert!(weak.upgrade().is_none());
    /// assert!(tx.is_closed());
    /// ```
    #[must_use = "a weak receiver that is dropped does nothing"]
    pub fn downgrade(&self) -> WeakReceiver<T, B> {
        WeakReceiver {
            chan: self.chan.clone(),
        }
    }
}

/// The last one closes the channel, and drops the values in it.
impl<T, B: Backend> Drop for Receiver<T, B> {
    fn drop(&mut self) {
        self.chan.leave(Half::Receiver, self.waiter.take());
    }
}

impl<T, B: Backend> Clone for Receiver<T, B> {
    fn clone(&self) -> Self {
        let chan = self.chan.clone();
        chan.join(Half::Receiver);
        Self::of(chan)
    }
}

impl<T, B: Backend> fmt::Debug for Receiver<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("is_closed", &self.is_closed())
            .field("chan", &self.chan)
            .finish_non_exhaustive()
    }
}

/// A receiver that does not keep the channel open.
///
/// It is created by [`Receiver::downgrade`]. To receive, [upgrade](Self::upgrade) it.
pub struct WeakReceiver<T, B: Backend = DefaultBackend> {
    chan: Arc<Chan<T, B>>,
}

impl<T, B: Backend> WeakReceiver<T, B> {
    /// Returns a receiver, if another is left and the channel is open.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpmc;
    ///
    /// let (tx, rx) = mpmc::unbounded::<u32>();
    /// let weak = rx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// tx.close();
    /// assert!(weak.upgrade().is_none());
    /// # drop(rx);
    /// ```
    pub fn upgrade(&self) -> Option<Receiver<T, B>> {
        let joins = self.chan.try_join(Half::Receiver);
        joins.then(|| Receiver::of(self.chan.clone()))
    }
}

impl<T, B: Backend> Clone for WeakReceiver<T, B> {
    fn clone(&self) -> Self {
        Self {
            chan: self.chan.clone(),
        }
    }
}

impl<T, B: Backend> fmt::Debug for WeakReceiver<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakReceiver").finish_non_exhaustive()
    }
}

#[cfg(feature = "futures-core")]
impl<T, B: Backend> futures_core::Stream for Receiver<T, B> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(cx)
    }
}
