//! A channel with many senders and many receivers. Each receiver gets every value.
//!
//! ```
//! use reveille::broadcast;
//!
//! # reveille_executor::block_on(async {
//! let (tx, mut first) = broadcast::channel(16);
//! let mut second = tx.subscribe();
//! tx.send("reveille").unwrap();
//! assert_eq!(first.recv().await, Ok("reveille"));
//! assert_eq!(second.recv().await, Ok("reveille"));
//! # });
//! ```
//!
//! # Lagging
//!
//! Sending never waits. The channel retains as many values as its capacity; when another is
//! sent, the oldest is dropped. A receiver that has not received it *lags*: its next
//! receive returns [`Lagged`](error::RecvError::Lagged) with the number of values that it
//! missed, and it goes on with the oldest value that is retained. A value is dropped before
//! that, as soon as every receiver has received it.
//!
//! # States
//!
//! ```text
//!   position:      0 .. oldest    oldest ........ next
//!   value:         dropped        in the ring     to be sent
//!   a receiver:    lags           has a value     waits
//! ```
//!
//! The ring stores each value with the number of receivers that have not received it. The
//! last of them takes the value. The others clone it, after the lock is released.
//!
//! Invariants: a receiver is counted in the number of each value from its position on, and
//! of no other. The first value of the ring is one that a receiver has not received. A
//! receiver that waits is at the position `next`, and a sender is left.
//!
//! Differences from `tokio::sync::broadcast`: values are cloned outside the lock, so to
//! share a channel between threads takes values that are `Send` and `Sync`; the last
//! receiver of a value gets the value itself and no clone; [`channel_in`] is an addition;
//! [`blocking_recv`](Receiver::blocking_recv) does not know whether it is within an
//! executor, and cannot panic there.

#![forbid(unsafe_code)]

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::watch::refused;
use crate::backend::{Backend, BlockingBackend, DefaultBackend};
use crate::protocol::{Bits, CallerLocation, Section, StateLock, Waiter, Waiters, block_on};

use self::error::{RecvError, SendError, TryRecvError};

/// Creates a channel that retains `capacity` values, rounded up to a power of two.
///
/// # Panics
///
/// Panics if `capacity` is 0, or above `usize::MAX / 2`.
///
/// # Examples
///
/// ```
/// use reveille::broadcast;
///
/// let (tx, mut rx) = broadcast::channel(2);
/// assert_eq!(tx.send(7), Ok(1));
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
#[must_use]
#[track_caller]
pub fn channel<T: Clone>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    channel_in(capacity)
}

/// Creates a channel as [`channel`] does, over any backend.
///
/// # Panics
///
/// As for [`channel`].
///
/// # Examples
///
/// ```
/// use reveille::{backend::Local, broadcast};
///
/// let (tx, mut rx) = broadcast::channel_in::<_, Local>(2);
/// tx.send(7).unwrap();
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
#[must_use]
#[track_caller]
pub fn channel_in<T: Clone, B: Backend>(capacity: usize) -> (Sender<T, B>, Receiver<T, B>) {
    let sender = Sender::new_in(capacity);
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// A value that some receivers have not received.
struct Slot<T> {
    value: Arc<T>,
    /// How many have not.
    unseen: usize,
}

/// What stands under the lock.
struct Shared<T> {
    ring: VecDeque<Slot<T>>,
    /// The position of the value that is sent next.
    next: u64,
    receivers: usize,
    senders: usize,
    weak_senders: usize,
    /// The receivers that wait for a value.
    waiters: Waiters<()>,
    /// The senders that wait for the last receiver to go.
    closers: Waiters<()>,
}

/// For how many values an empty ring keeps room.
const KEPT: usize = 32;

impl<T> Shared<T> {
    /// The position of the first value in the ring.
    fn oldest(&self) -> u64 {
        self.next - self.ring.len() as u64
    }

    /// Takes out what no receiver is left to receive: its place, and its value.
    fn trim(&mut self) {
        while self.ring.front().is_some_and(|slot| slot.unseen == 0) {
            self.ring.pop_front();
        }
        if self.ring.is_empty() && self.ring.capacity() > KEPT {
            self.ring = VecDeque::new();
        }
    }

    /// Moves a receiver on by one value, if there is one for it.
    fn advance(&mut self, position: &mut u64) -> Option<Received<T>> {
        let oldest = self.oldest();
        if *position < oldest {
            let missed = oldest - *position;
            *position = oldest;
            return Some(Received::Lagged(missed));
        }
        let index = usize::try_from(*position - oldest).unwrap_or(usize::MAX);
        if let Some(slot) = self.ring.get_mut(index) {
            *position += 1;
            slot.unseen -= 1;
            // The ring's own is dropped outside the lock, if this is the last.
            let value = slot.value.clone();
            let last = slot.unseen == 0 && index == 0;
            let ring = last.then(|| self.ring.pop_front()).flatten();
            let ring = ring.map(|slot| slot.value);
            self.trim();
            return Some(Received::Value(value, ring));
        }
        (self.senders == 0).then_some(Received::Closed)
    }
}

/// What a receiver was moved on by.
enum Received<T> {
    /// A value, and the ring's own if it has gone from there.
    Value(Arc<T>, Option<Arc<T>>),
    Lagged(u64),
    Closed,
}

impl<T: Clone> Received<T> {
    /// The value itself for the last receiver, and otherwise a clone.
    fn value(self) -> Result<T, RecvError> {
        match self {
            Self::Value(value, ring) => {
                drop(ring);
                Ok(Arc::unwrap_or_clone(value))
            }
            Self::Lagged(missed) => Err(RecvError::Lagged(missed)),
            Self::Closed => Err(RecvError::Closed),
        }
    }
}

/// What the halves of a channel share.
struct Chan<T, B: Backend> {
    lock: StateLock<Shared<T>, B>,
    capacity: usize,
}

/// A panic leaves a channel as it leaves any of the suite: see P8.
impl<T, B: Backend> UnwindSafe for Chan<T, B> {}
impl<T, B: Backend> RefUnwindSafe for Chan<T, B> {}

/// The sending half.
///
/// The channel is closed for receivers when the last sender is dropped.
pub struct Sender<T, B: Backend = DefaultBackend> {
    chan: Arc<Chan<T, B>>,
}

/// A sender that does not keep the channel open.
///
/// It is made by [`Sender::downgrade`]. To send, [upgrade](Self::upgrade) it.
pub struct WeakSender<T, B: Backend = DefaultBackend> {
    chan: Arc<Chan<T, B>>,
}

/// The receiving half: each gets every value that is sent after it was made.
pub struct Receiver<T, B: Backend = DefaultBackend> {
    chan: Arc<Chan<T, B>>,
    /// The position of the value that it receives next.
    position: u64,
    /// Taken out of the ring, by a poll that a waker's panic ended (P8).
    undelivered: Option<Received<T>>,
}

impl<T, B: Backend> UnwindSafe for Receiver<T, B> {}
impl<T, B: Backend> RefUnwindSafe for Receiver<T, B> {}

impl<T> Sender<T> {
    /// Creates the sending half of a channel that has no receiver yet.
    ///
    /// # Panics
    ///
    /// As for [`channel`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast::Sender;
    ///
    /// let tx = Sender::new(2);
    /// assert!(tx.send(1).is_err());
    /// let mut rx = tx.subscribe();
    /// tx.send(2).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(2));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        Self::new_in(capacity)
    }
}

impl<T, B: Backend> Sender<T, B> {
    /// Creates the sending half of a channel as [`new`](Sender::new) does, over any backend.
    ///
    /// # Panics
    ///
    /// As for [`channel`].
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{backend::Local, broadcast::Sender};
    ///
    /// let tx = Sender::<u32, Local>::new_in(2);
    /// assert_eq!(tx.receiver_count(), 0);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new_in(capacity: usize) -> Self {
        assert!(capacity > 0, "broadcast channel capacity cannot be zero");
        assert!(
            capacity <= usize::MAX >> 1,
            "broadcast channel capacity exceeded `usize::MAX / 2`"
        );
        let shared = Shared {
            ring: VecDeque::new(),
            next: 0,
            receivers: 0,
            senders: 1,
            weak_senders: 0,
            waiters: Waiters::new(),
            closers: Waiters::new(),
        };
        Self {
            chan: Arc::new(Chan {
                lock: StateLock::new_in(Bits::EMPTY, shared),
                capacity: capacity.next_power_of_two(),
            }),
        }
    }

    /// Sends a value to all receivers, without waiting, and returns how many there are.
    ///
    /// That it was sent does not mean that it will be received: receivers may lag, or be
    /// dropped.
    ///
    /// # Errors
    ///
    /// The value, if there are no receivers. More may [subscribe](Self::subscribe) later.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel(2);
    /// assert_eq!(tx.send(1), Ok(1));
    /// drop(rx);
    /// assert_eq!(tx.send(2).unwrap_err().0, 2);
    /// ```
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        let capacity = self.chan.capacity;
        // Outside the lock.
        let mut value = Some(Arc::new(value));
        let mut receivers = 0;
        let mut dropped = None;
        let mut generation = None;
        self.chan.lock.rounds(|Section { state, wakes, .. }| {
            if let Some(value) = value.take_if(|_| state.receivers > 0) {
                receivers = state.receivers;
                if state.ring.len() == capacity {
                    dropped = state.ring.pop_front();
                }
                state.ring.push_back(Slot {
                    value,
                    unseen: receivers,
                });
                state.next += 1;
                generation = Some(state.waiters.notify_all());
            }
            generation.is_some_and(|generation| state.waiters.wake_notified(generation, wakes))
        });
        drop(dropped);
        match value.and_then(Arc::into_inner) {
            None => Ok(receivers),
            Some(value) => Err(SendError(value)),
        }
    }

    /// Creates a receiver of the values that are sent from now on.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel(2);
    /// tx.send(1).unwrap();
    /// let mut rx = tx.subscribe();
    /// tx.send(2).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(2));
    /// ```
    #[must_use = "a receiver that is dropped receives nothing"]
    pub fn subscribe(&self) -> Receiver<T, B> {
        Receiver::new(&self.chan)
    }

    /// Returns how many values there are that some receiver has not received.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, mut rx) = broadcast::channel(2);
    /// tx.send(1).unwrap();
    /// assert_eq!(tx.len(), 1);
    /// rx.try_recv().unwrap();
    /// assert_eq!(tx.len(), 0);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.chan.lock.with(|section| section.state.ring.len())
    }

    /// Returns `true` if every receiver has received every value.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel(2);
    /// assert!(tx.is_empty());
    /// tx.send(1).unwrap();
    /// assert!(!tx.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many receivers there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel::<u32>(2);
    /// let another = tx.subscribe();
    /// assert_eq!(tx.receiver_count(), 2);
    /// # drop((rx, another));
    /// ```
    #[must_use]
    pub fn receiver_count(&self) -> usize {
        self.chan.lock.with(|section| section.state.receivers)
    }

    /// Returns `true` if two senders belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel::<u32>(2);
    /// assert!(tx.same_channel(&tx.clone()));
    /// ```
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }

    /// Waits until there are no receivers.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the wait is given up.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, rx) = broadcast::channel::<u32>(2);
    /// drop(rx);
    /// tx.closed().await;
    /// # });
    /// ```
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn closed(&self) -> Closed<'_, T, B> {
        Closed {
            chan: &self.chan,
            waiter: None,
            location: CallerLocation::capture(),
        }
    }

    /// Creates a weak sender: one that does not keep the channel open.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel::<u32>(2);
    /// let weak = tx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// ```
    #[must_use = "a weak sender that is dropped does nothing"]
    pub fn downgrade(&self) -> WeakSender<T, B> {
        WeakSender::new(&self.chan)
    }

    /// Returns how many senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel::<u32>(2);
    /// assert_eq!(tx.strong_count(), 1);
    /// ```
    #[must_use]
    pub fn strong_count(&self) -> usize {
        self.chan.senders().0
    }

    /// Returns how many weak senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel::<u32>(2);
    /// assert_eq!(tx.weak_count(), 0);
    /// ```
    #[must_use]
    pub fn weak_count(&self) -> usize {
        self.chan.senders().1
    }
}

impl<T, B: Backend> Chan<T, B> {
    /// How many senders there are, and how many weak ones.
    fn senders(&self) -> (usize, usize) {
        self.lock
            .with(|Section { state, .. }| (state.senders, state.weak_senders))
    }
}

/// The count cannot overflow: `Arc`'s own, which is as large, aborts before.
impl<T, B: Backend> Clone for Sender<T, B> {
    fn clone(&self) -> Self {
        let chan = self.chan.clone();
        chan.lock.with(|section| section.state.senders += 1);
        Self { chan }
    }
}

/// The last one closes the channel: receivers that wait are told.
impl<T, B: Backend> Drop for Sender<T, B> {
    fn drop(&mut self) {
        let mut generation = None;
        let mut first = true;
        self.chan.lock.rounds(|Section { state, wakes, .. }| {
            if core::mem::take(&mut first) {
                state.senders -= 1;
                if state.senders == 0 {
                    generation = Some(state.waiters.notify_all());
                }
            }
            generation.is_some_and(|generation| state.waiters.wake_notified(generation, wakes))
        });
    }
}

impl<T, B: Backend> WeakSender<T, B> {
    fn new(chan: &Arc<Chan<T, B>>) -> Self {
        let chan = chan.clone();
        chan.lock.with(|section| section.state.weak_senders += 1);
        Self { chan }
    }

    /// Returns a sender, if another is left.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, mut rx) = broadcast::channel(2);
    /// let weak = tx.downgrade();
    /// weak.upgrade().unwrap().send(7).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// ```
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T, B>> {
        let chan = self.chan.clone();
        let upgraded = chan.lock.with(|Section { state, .. }| {
            let open = state.senders > 0;
            state.senders += usize::from(open);
            open
        });
        upgraded.then(|| Sender { chan })
    }

    /// Returns how many senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel::<u32>(2);
    /// assert_eq!(tx.downgrade().strong_count(), 1);
    /// ```
    #[must_use]
    pub fn strong_count(&self) -> usize {
        self.chan.senders().0
    }

    /// Returns how many weak senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel::<u32>(2);
    /// assert_eq!(tx.downgrade().weak_count(), 1);
    /// ```
    #[must_use]
    pub fn weak_count(&self) -> usize {
        self.chan.senders().1
    }
}

impl<T, B: Backend> Clone for WeakSender<T, B> {
    fn clone(&self) -> Self {
        Self::new(&self.chan)
    }
}

impl<T, B: Backend> Drop for WeakSender<T, B> {
    fn drop(&mut self) {
        self.chan
            .lock
            .with(|section| section.state.weak_senders -= 1);
    }
}

impl<T, B: Backend> Receiver<T, B> {
    fn new(chan: &Arc<Chan<T, B>>) -> Self {
        let chan = chan.clone();
        let position = chan.lock.with(|Section { state, .. }| {
            state.receivers += 1;
            state.next
        });
        Self {
            chan,
            position,
            undelivered: None,
        }
    }

    /// Returns how many values were sent that this receiver has not received, those that
    /// it missed included.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel(2);
    /// tx.send(1).unwrap();
    /// assert_eq!(rx.len(), 1);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        let next = self.chan.lock.with(|section| section.state.next);
        let undelivered = matches!(self.undelivered, Some(Received::Value(..)));
        usize::try_from(next - self.position).unwrap_or(usize::MAX) + usize::from(undelivered)
    }

    /// Returns `true` if every value that was sent has been received.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel(2);
    /// assert!(rx.is_empty());
    /// tx.send(1).unwrap();
    /// assert!(!rx.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if two receivers belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel::<u32>(2);
    /// assert!(rx.same_channel(&tx.subscribe()));
    /// ```
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }

    /// Returns `true` if all senders have been dropped. There may be values to be received.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel::<u32>(2);
    /// drop(tx);
    /// assert!(rx.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.chan.senders().0 == 0
    }

    /// Returns how many senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (_tx, rx) = broadcast::channel::<u32>(2);
    /// assert_eq!(rx.sender_strong_count(), 1);
    /// ```
    #[must_use]
    pub fn sender_strong_count(&self) -> usize {
        self.chan.senders().0
    }

    /// Returns how many weak senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (_tx, rx) = broadcast::channel::<u32>(2);
    /// assert_eq!(rx.sender_weak_count(), 0);
    /// ```
    #[must_use]
    pub fn sender_weak_count(&self) -> usize {
        self.chan.senders().1
    }

    /// Moves on by one value, or registers.
    fn poll_advance(
        &mut self,
        waiter: &mut Option<Waiter>,
        location: CallerLocation,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let Self {
            chan,
            position,
            undelivered,
        } = self;
        if undelivered.is_some() {
            return Poll::Ready(());
        }
        let fresh = waiter.is_none();
        chan.lock.poll(cx, fresh, |section, registration| {
            let Section { state, wakes, .. } = section;
            if let Some(received) = state.advance(position) {
                *undelivered = Some(received);
                if let Some(waiter) = waiter.take() {
                    state.waiters.remove(waiter, wakes);
                }
                return Ok(());
            }
            let waiters = &mut state.waiters;
            let waiter = waiter.get_or_insert_with(|| waiters.push(location, ()));
            Err(registration.register(waiters.waker(waiter)))
        })
    }

    fn cancel(&self, waiter: Waiter) {
        self.chan.lock.with(|Section { state, wakes, .. }| {
            state.waiters.remove(waiter, wakes);
        });
    }
}

impl<T: Clone, B: Backend> Receiver<T, B> {
    /// Creates a receiver of the values that are sent from now on.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel(2);
    /// tx.send(1).unwrap();
    /// assert!(rx.resubscribe().is_empty());
    /// ```
    #[must_use = "a receiver that is dropped receives nothing"]
    pub fn resubscribe(&self) -> Self {
        Self::new(&self.chan)
    }

    /// Receives the next value, waiting until there is one.
    ///
    /// # Errors
    ///
    /// [`Lagged`](RecvError::Lagged) if this receiver missed values, with how many: the next
    /// call returns the oldest value that is retained. [`Closed`](RecvError::Closed) if all
    /// senders have been dropped, and all values received.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no value.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast::{self, error::RecvError};
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, mut rx) = broadcast::channel(2);
    /// for value in 1..=3 {
    ///     tx.send(value).unwrap();
    /// }
    /// drop(tx);
    /// assert_eq!(rx.recv().await, Err(RecvError::Lagged(1)));
    /// assert_eq!(rx.recv().await, Ok(2));
    /// assert_eq!(rx.recv().await, Ok(3));
    /// assert_eq!(rx.recv().await, Err(RecvError::Closed));
    /// # });
    /// ```
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn recv(&mut self) -> Recv<'_, T, B> {
        Recv {
            receiver: self,
            waiter: None,
            location: CallerLocation::capture(),
        }
    }

    /// Receives the next value if there is one.
    ///
    /// # Errors
    ///
    /// [`Empty`](TryRecvError::Empty) if a value may still come; otherwise as for
    /// [`recv`](Self::recv).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast::{self, error::TryRecvError};
    ///
    /// let (tx, mut rx) = broadcast::channel(2);
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.send(7).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// ```
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let received = self.undelivered.take().or_else(|| {
            let position = &mut self.position;
            self.chan
                .lock
                .with(|section| section.state.advance(position))
        });
        match received.map(Received::value) {
            None => Err(refused::<B, _>(TryRecvError::Empty)),
            Some(Ok(value)) => Ok(value),
            Some(Err(RecvError::Closed)) => Err(TryRecvError::Closed),
            Some(Err(RecvError::Lagged(missed))) => Err(TryRecvError::Lagged(missed)),
        }
    }

    /// Receives the next value, blocking the thread until there is one.
    ///
    /// It is for threads outside an executor: within one it blocks the thread that may have
    /// to run the sender.
    ///
    /// # Errors
    ///
    /// As for [`recv`](Self::recv).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::broadcast;
    ///
    /// let (tx, mut rx) = broadcast::channel(2);
    /// let sender = std::thread::spawn(move || tx.send(7));
    /// assert_eq!(rx.blocking_recv(), Ok(7));
    /// sender.join().unwrap().unwrap();
    /// ```
    pub fn blocking_recv(&mut self) -> Result<T, RecvError>
    where
        B: BlockingBackend,
    {
        block_on::<B, _>(self.recv())
    }
}

/// What only this receiver had left to receive is dropped.
impl<T, B: Backend> Drop for Receiver<T, B> {
    fn drop(&mut self) {
        let mut dropped = Vec::new();
        let mut generation = None;
        let mut first = true;
        let position = self.position;
        self.chan.lock.rounds(|Section { state, wakes, .. }| {
            if core::mem::take(&mut first) {
                let oldest = state.oldest();
                let seen = usize::try_from(position.max(oldest) - oldest).unwrap_or(usize::MAX);
                for slot in state.ring.iter_mut().skip(seen) {
                    slot.unseen -= 1;
                    if slot.unseen == 0 {
                        dropped.push(slot.value.clone());
                    }
                }
                state.trim();
                state.receivers -= 1;
                if state.receivers == 0 {
                    generation = Some(state.closers.notify_all());
                }
            }
            generation.is_some_and(|generation| state.closers.wake_notified(generation, wakes))
        });
    }
}

/// The future of [`Receiver::recv`].
#[must_use = "futures do nothing unless polled"]
pub struct Recv<'a, T, B: Backend = DefaultBackend> {
    receiver: &'a mut Receiver<T, B>,
    waiter: Option<Waiter>,
    location: CallerLocation,
}

impl<T: Clone, B: Backend> Future for Recv<'_, T, B> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            receiver,
            waiter,
            location,
        } = self.get_mut();
        match receiver.poll_advance(waiter, *location, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                let received = receiver.undelivered.take();
                Poll::Ready(received.map_or(Err(RecvError::Closed), Received::value))
            }
        }
    }
}

impl<T, B: Backend> Drop for Recv<'_, T, B> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.receiver.cancel(waiter);
        }
    }
}

/// The future of [`Sender::closed`].
///
/// Polled again after it was ready, it waits for the receivers that came since.
#[must_use = "futures do nothing unless polled"]
pub struct Closed<'a, T, B: Backend = DefaultBackend> {
    chan: &'a Chan<T, B>,
    waiter: Option<Waiter>,
    location: CallerLocation,
}

impl<T, B: Backend> Future for Closed<'_, T, B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            chan,
            waiter,
            location,
        } = self.get_mut();
        let fresh = waiter.is_none();
        chan.lock.poll(cx, fresh, |section, registration| {
            let Section { state, wakes, .. } = section;
            let closers = &mut state.closers;
            // Told of an end after which receivers have come.
            let stale = waiter.as_ref().is_some_and(|it| closers.is_notified(it));
            let over = state.receivers == 0;
            if (over || stale)
                && let Some(waiter) = waiter.take()
            {
                closers.remove(waiter, wakes);
            }
            if over {
                return Ok(());
            }
            let waiter = waiter.get_or_insert_with(|| closers.push(*location, ()));
            Err(registration.register(closers.waker(waiter)))
        })
    }
}

impl<T, B: Backend> Drop for Closed<'_, T, B> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.chan.lock.with(|Section { state, wakes, .. }| {
                state.closers.remove(waiter, wakes);
            });
        }
    }
}

impl<T, B: Backend> fmt::Debug for Chan<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (values, receivers, waiting, senders) = self.lock.with(|Section { state, .. }| {
            let waiting = state.waiters.queued();
            (state.ring.len(), state.receivers, waiting, state.senders)
        });
        f.debug_struct("Chan")
            .field("capacity", &self.capacity)
            .field("values", &values)
            .field("receivers", &receivers)
            .field("waiting", &waiting)
            .field("senders", &senders)
            .finish_non_exhaustive()
    }
}

impl<T, B: Backend> fmt::Debug for Sender<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("chan", &self.chan).finish()
    }
}

impl<T, B: Backend> fmt::Debug for WeakSender<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender").finish_non_exhaustive()
    }
}

impl<T, B: Backend> fmt::Debug for Receiver<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("len", &self.len())
            .field("chan", &self.chan)
            .finish()
    }
}

impl<T, B: Backend> fmt::Debug for Recv<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Recv");
        f.field("waits", &self.waiter.is_some())
            .finish_non_exhaustive()
    }
}

impl<T, B: Backend> fmt::Debug for Closed<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Closed");
        f.field("waits", &self.waiter.is_some())
            .finish_non_exhaustive()
    }
}

/// The errors of the channel.
pub mod error {
    use core::error::Error;
    use core::fmt;

    /// The error of a send without receivers, with the value.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct SendError<T>(pub T);

    impl<T> fmt::Debug for SendError<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("SendError").finish_non_exhaustive()
        }
    }

    impl<T> fmt::Display for SendError<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the value was not sent: the channel has no receivers")
        }
    }

    impl<T> Error for SendError<T> {}

    /// The error of [`recv`](super::Receiver::recv).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum RecvError {
        /// No value will come: all senders have been dropped.
        Closed,
        /// So many values were missed.
        Lagged(u64),
    }

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Closed => f.write_str("no value will come: the channel is closed"),
                Self::Lagged(missed) => write!(f, "the receiver lagged: it missed {missed} values"),
            }
        }
    }

    impl Error for RecvError {}

    /// The error of [`try_recv`](super::Receiver::try_recv).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum TryRecvError {
        /// There is no value, and one may still come.
        Empty,
        /// No value will come: all senders have been dropped.
        Closed,
        /// So many values were missed.
        Lagged(u64),
    }

    impl fmt::Display for TryRecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Empty => f.write_str("no value is in the channel"),
                Self::Closed => f.write_str("no value will come: the channel is closed"),
                Self::Lagged(missed) => write!(f, "the receiver lagged: it missed {missed} values"),
            }
        }
    }

    impl Error for TryRecvError {}
}
