//! A channel that holds one value. Receivers see the latest.
//!
//! ```
//! use reveille::watch;
//!
//! # reveille_executor::block_on(async {
//! let (tx, mut rx) = watch::channel("tattoo");
//! assert_eq!(*rx.borrow(), "tattoo");
//! tx.send("reveille").unwrap();
//! rx.changed().await.unwrap();
//! assert_eq!(*rx.borrow_and_update(), "reveille");
//! # });
//! ```
//!
//! # The lock of the value
//!
//! A [`Ref`] holds the value's lock as a reader. Sending blocks the thread while there is
//! one, so keep it for a moment and not across an `await`. Neither side starves: readers
//! and writers get the lock in the order of their requests. A thread that sends while it
//! holds a [`Ref`] waits for itself.
//!
//! # States
//!
//! ```text
//!   bits = version ‖ CLOSED
//!
//!   send:  lock the value ─▶ write it ─▶ next version ─▶ unlock ─▶ notify the waiters
//!   look:  version == the receiver's ─▶ no new value; otherwise a new one
//! ```
//!
//! Invariants: the version changes only while the value is locked for writing, so a reader
//! of the value sees the version that belongs to it. A receiver begins to wait in a section
//! that finds its own version and an open channel. A send, and the drop of the last sender,
//! notify every receiver that waits then, also if a waker panics.
//!
//! Differences from `tokio::sync::watch`: futures are named; a guard may be sent to another
//! thread if the value is `Sync`; there is no watch over `Local`, since a single thread
//! cannot block for itself; [`channel_in`] is an addition.

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::mem;
use core::ops::Deref;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{BlockingBackend, DefaultBackend};
use crate::protocol::{Bits, CallerLocation, Section, StateLock, Waiter, Waiters};
use crate::rwlock::{RwLock, RwLockReadGuard};

use self::error::{RecvError, SendError};

/// All senders are gone.
const CLOSED: Bits = Bits::new(1);

/// Which value it is. Versions wrap, and are compared only for being the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version(usize);

impl Version {
    const STEP: usize = 2;

    const fn of(bits: Bits) -> Self {
        Self(bits.without(CLOSED).get())
    }

    const fn next(self) -> Self {
        Self(self.0.wrapping_add(Self::STEP) & Bits::MAX)
    }

    const fn previous(self) -> Self {
        Self(self.0.wrapping_sub(Self::STEP) & Bits::MAX)
    }

    /// These bits with this version.
    fn into_bits(self, bits: Bits) -> Bits {
        Bits::new(self.0 | bits.get() & CLOSED.get())
    }
}

/// Creates a channel with its first value, which counts as seen.
///
/// # Examples
///
/// ```
/// use reveille::watch;
///
/// let (tx, rx) = watch::channel(1);
/// tx.send(2).unwrap();
/// assert_eq!(*rx.borrow(), 2);
/// ```
#[must_use]
pub fn channel<T>(init: T) -> (Sender<T>, Receiver<T>) {
    channel_in(init)
}

/// Creates a channel as [`channel`] does, over any backend that blocks.
///
/// # Examples
///
/// ```
/// use reveille::{backend::Spin, watch};
///
/// let (tx, rx) = watch::channel_in::<_, Spin>(1);
/// tx.send(2).unwrap();
/// assert_eq!(*rx.borrow(), 2);
/// ```
#[must_use]
pub fn channel_in<T, B: BlockingBackend>(init: T) -> (Sender<T, B>, Receiver<T, B>) {
    let sender = Sender::new_in(init);
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// What the halves of a channel share.
struct Chan<T, B: BlockingBackend> {
    value: RwLock<T, B>,
    lock: StateLock<Shared, B>,
}

/// What stands under the lock of the version.
struct Shared {
    receivers: usize,
    senders: usize,
    /// The receivers that wait for another version.
    waiters: Waiters<()>,
    /// The senders that wait for the last receiver to go.
    closers: Waiters<()>,
}

impl<T, B: BlockingBackend> Chan<T, B> {
    fn version(&self) -> Version {
        Version::of(self.lock.load())
    }

    fn is_closed(&self) -> bool {
        self.lock.load().contains(CLOSED)
    }

    /// Notifies the receivers that wait.
    fn notify(&self) {
        let mut notified = None;
        self.lock.rounds(|Section { state, wakes, .. }| {
            let notified = *notified.get_or_insert_with(|| state.waiters.notify_all());
            state.waiters.wake_notified(notified, wakes)
        });
    }

    /// Polls for another version than `seen`.
    fn poll_changed(
        &self,
        seen: &mut Version,
        waiter: &mut Option<Waiter>,
        location: CallerLocation,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), RecvError>> {
        let fresh = waiter.is_none();
        let poll = self.lock.poll(cx, fresh, |section, registration| {
            let Section { bits, state, wakes } = section;
            let waiters = &mut state.waiters;
            let now = Version::of(*bits);
            let over = now != *seen || bits.contains(CLOSED);
            // Notified of a version that it has seen before it began to wait.
            let stale = waiter.as_ref().is_some_and(|it| waiters.is_notified(it));
            if (over || stale)
                && let Some(waiter) = waiter.take()
            {
                waiters.remove(waiter, wakes);
            }
            if over {
                return Ok(now);
            }
            let waiter = waiter.get_or_insert_with(|| waiters.push(location, ()));
            Err(registration.register(waiters.waker(waiter)))
        });
        // Not in the section: a waker that panics must not lose the change (P8).
        poll.map(|now| {
            if now == *seen {
                return Err(RecvError(()));
            }
            *seen = now;
            Ok(())
        })
    }

    fn cancel_changed(&self, waiter: Waiter) {
        self.lock.with(|Section { state, wakes, .. }| {
            state.waiters.remove(waiter, wakes);
        });
    }
}

/// Notifies the waiters, also while a panic unwinds.
struct Notifies<'a, T, B: BlockingBackend>(&'a Chan<T, B>);

impl<T, B: BlockingBackend> Drop for Notifies<'_, T, B> {
    fn drop(&mut self) {
        self.0.notify();
    }
}

/// A panic leaves a channel as it leaves any of the suite: see P8.
impl<T, B: BlockingBackend> UnwindSafe for Chan<T, B> {}
impl<T, B: BlockingBackend> RefUnwindSafe for Chan<T, B> {}

/// The sending half: sets the value.
pub struct Sender<T, B: BlockingBackend = DefaultBackend> {
    chan: Arc<Chan<T, B>>,
}

/// The receiving half: sees the latest value.
pub struct Receiver<T, B: BlockingBackend = DefaultBackend> {
    chan: Arc<Chan<T, B>>,
    /// What it has seen.
    version: Version,
}

/// The value, locked for reading. See [The lock of the value](self#the-lock-of-the-value).
pub struct Ref<'a, T, B: BlockingBackend = DefaultBackend> {
    guard: RwLockReadGuard<'a, T, B>,
    has_changed: bool,
}

impl<T, B: BlockingBackend> Ref<'_, T, B> {
    /// Returns `true` if the receiver had not seen this value before.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, mut rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// assert!(rx.borrow_and_update().has_changed());
    /// assert!(!rx.borrow().has_changed());
    /// ```
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl<T, B: BlockingBackend> Deref for Ref<'_, T, B> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: fmt::Debug, B: BlockingBackend> fmt::Debug for Ref<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ref")
            .field("value", &**self)
            .field("has_changed", &self.has_changed)
            .finish()
    }
}

impl<T> Sender<T> {
    /// Creates the sending half of a channel that has no receiver yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch::Sender;
    ///
    /// let tx = Sender::new(1);
    /// assert!(tx.send(2).is_err());
    /// assert_eq!(*tx.subscribe().borrow(), 1);
    /// ```
    #[must_use]
    pub fn new(init: T) -> Self {
        Self::new_in(init)
    }
}

impl<T, B: BlockingBackend> Sender<T, B> {
    /// Creates the sending half of a channel as [`new`](Sender::new) does, over any backend
    /// that blocks.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{backend::Spin, watch::Sender};
    ///
    /// assert_eq!(*Sender::<_, Spin>::new_in(1).borrow(), 1);
    /// ```
    #[must_use]
    pub fn new_in(init: T) -> Self {
        Self::starting_at(init, Version(0))
    }

    fn starting_at(init: T, version: Version) -> Self {
        let shared = Shared {
            receivers: 0,
            senders: 1,
            waiters: Waiters::new(),
            closers: Waiters::new(),
        };
        Self {
            chan: Arc::new(Chan {
                value: RwLock::new_in(init),
                lock: StateLock::new_in(version.into_bits(Bits::EMPTY), shared),
            }),
        }
    }

    /// Sets the value, and notifies the receivers.
    ///
    /// # Errors
    ///
    /// The value, if there are no receivers: the channel keeps the one it has.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// drop(rx);
    /// assert_eq!(tx.send(3).unwrap_err().0, 3);
    /// ```
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.receiver_count() == 0 {
            return Err(SendError(value));
        }
        self.send_replace(value);
        Ok(())
    }

    /// Sets the value, also without receivers, and returns the one before.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, _rx) = watch::channel(1);
    /// assert_eq!(tx.send_replace(2), 1);
    /// ```
    pub fn send_replace(&self, mut value: T) -> T {
        self.send_modify(|old| mem::swap(old, &mut value));
        value
    }

    /// Changes the value in place, and notifies the receivers.
    ///
    /// # Panics
    ///
    /// Panics if `modify` does; no receiver is notified then.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// tx.send_modify(|value| *value += 1);
    /// assert_eq!(*rx.borrow(), 2);
    /// ```
    pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Changes the value in place, and notifies the receivers if `modify` returns `true`.
    /// Returns what that returned.
    ///
    /// # Panics
    ///
    /// Panics if `modify` does; no receiver is notified then.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// assert!(!tx.send_if_modified(|value| *value > 1));
    /// assert!(!rx.has_changed().unwrap());
    /// ```
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
        let chan = &*self.chan;
        // Dropped after the guard.
        let mut notifies = None;
        let mut value = chan.value.blocking_write();
        let modified = modify(&mut value);
        if modified {
            let next = |bits| Some(Version::of(bits).next().into_bits(bits));
            let changed = chan.lock.update(next);
            debug_assert!(changed.is_ok());
            notifies = Some(Notifies(chan));
        }
        drop(value);
        drop(notifies);
        modified
    }

    /// Returns the value, locked for reading.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, _rx) = watch::channel(1);
    /// assert_eq!(*tx.borrow(), 1);
    /// ```
    #[must_use]
    pub fn borrow(&self) -> Ref<'_, T, B> {
        Ref {
            guard: self.chan.value.blocking_read(),
            has_changed: false,
        }
    }

    /// Returns `true` if there are no receivers.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// drop(rx);
    /// assert!(tx.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
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
    /// use reveille::watch;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, rx) = watch::channel(1);
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

    /// Creates a receiver, which has seen the value that there is.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, _rx) = watch::channel(1);
    /// assert!(!tx.subscribe().has_changed().unwrap());
    /// ```
    #[must_use = "a receiver that is dropped receives nothing"]
    pub fn subscribe(&self) -> Receiver<T, B> {
        Receiver::new(&self.chan, None)
    }

    /// Returns how many receivers there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// assert_eq!(tx.receiver_count(), 1);
    /// # drop(rx);
    /// ```
    #[must_use]
    pub fn receiver_count(&self) -> usize {
        self.chan.lock.with(|section| section.state.receivers)
    }

    /// Returns how many senders there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, _rx) = watch::channel(1);
    /// assert_eq!(tx.sender_count(), 1);
    /// ```
    #[must_use]
    pub fn sender_count(&self) -> usize {
        self.chan.lock.with(|section| section.state.senders)
    }

    /// Returns `true` if two senders belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, _rx) = watch::channel(1);
    /// assert!(tx.same_channel(&tx.clone()));
    /// ```
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }
}

/// The count cannot overflow: `Arc`'s own, which is as large, aborts before.
impl<T, B: BlockingBackend> Clone for Sender<T, B> {
    fn clone(&self) -> Self {
        let chan = self.chan.clone();
        chan.lock.with(|section| section.state.senders += 1);
        Self { chan }
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// The last one closes the channel: receivers that wait are told.
impl<T, B: BlockingBackend> Drop for Sender<T, B> {
    fn drop(&mut self) {
        let mut notified = None;
        let mut first = true;
        self.chan.lock.rounds(|Section { bits, state, wakes }| {
            if mem::take(&mut first) {
                state.senders -= 1;
                if state.senders == 0 {
                    bits.insert(CLOSED);
                    notified = Some(state.waiters.notify_all());
                }
            }
            notified.is_some_and(|notified| state.waiters.wake_notified(notified, wakes))
        });
    }
}

impl<T, B: BlockingBackend> Receiver<T, B> {
    /// A receiver that has seen `seen`, or else the value that there is.
    fn new(chan: &Arc<Chan<T, B>>, seen: Option<Version>) -> Self {
        let chan = chan.clone();
        let version = chan.lock.with(|Section { bits, state, .. }| {
            state.receivers += 1;
            seen.unwrap_or(Version::of(*bits))
        });
        Self { chan, version }
    }

    /// Returns the value, locked for reading. It does not count as seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// assert_eq!(*rx.borrow(), 2);
    /// assert!(rx.has_changed().unwrap());
    /// ```
    #[must_use]
    pub fn borrow(&self) -> Ref<'_, T, B> {
        let guard = self.chan.value.blocking_read();
        let has_changed = self.version != self.chan.version();
        Ref { guard, has_changed }
    }

    /// Returns the value, locked for reading, and counts it as seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, mut rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// assert_eq!(*rx.borrow_and_update(), 2);
    /// assert!(!rx.has_changed().unwrap());
    /// ```
    pub fn borrow_and_update(&mut self) -> Ref<'_, T, B> {
        let guard = self.chan.value.blocking_read();
        let version = self.chan.version();
        let has_changed = mem::replace(&mut self.version, version) != version;
        Ref { guard, has_changed }
    }

    /// Returns `true` if there is a value that has not been seen.
    ///
    /// # Errors
    ///
    /// [`RecvError`] if all senders have been dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// assert_eq!(rx.has_changed(), Ok(true));
    /// drop(tx);
    /// assert!(rx.has_changed().is_err());
    /// ```
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        let bits = self.chan.lock.load();
        match bits.contains(CLOSED) {
            true => Err(RecvError(())),
            false => Ok(self.version != Version::of(bits)),
        }
    }

    /// Returns `true` if all senders have been dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// drop(tx);
    /// assert!(rx.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.chan.is_closed()
    }

    /// Counts the value that there is as not seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (_tx, mut rx) = watch::channel(1);
    /// rx.mark_changed();
    /// assert_eq!(rx.has_changed(), Ok(true));
    /// ```
    pub fn mark_changed(&mut self) {
        self.version = self.chan.version().previous();
    }

    /// Counts the value that there is as seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (tx, mut rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// rx.mark_unchanged();
    /// assert_eq!(rx.has_changed(), Ok(false));
    /// ```
    pub fn mark_unchanged(&mut self) {
        self.version = self.chan.version();
    }

    /// Waits until there is a value that has not been seen, and counts it as seen.
    ///
    /// # Errors
    ///
    /// [`RecvError`] if there is none and all senders have been dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no change.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, mut rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// drop(tx);
    /// assert_eq!(rx.changed().await, Ok(()));
    /// assert!(rx.changed().await.is_err());
    /// # });
    /// ```
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn changed(&mut self) -> Changed<'_, T, B> {
        Changed {
            chan: &self.chan,
            version: &mut self.version,
            waiter: None,
            location: CallerLocation::capture(),
        }
    }

    /// Waits for a value for which `predicate` returns `true`, the one that there is
    /// included, and counts it as seen.
    ///
    /// The value is locked for reading while `predicate` runs.
    ///
    /// # Errors
    ///
    /// [`RecvError`] if all senders have been dropped without such a value.
    ///
    /// # Cancel safety
    ///
    /// Values that `predicate` has been asked about count as seen.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// # reveille_executor::block_on(async {
    /// let (tx, mut rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// assert_eq!(*rx.wait_for(|value| *value > 1).await.unwrap(), 2);
    /// # });
    /// ```
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn wait_for<F: FnMut(&T) -> bool>(&mut self, predicate: F) -> WaitFor<'_, T, F, B> {
        WaitFor {
            changed: self.changed(),
            predicate,
            asks: true,
            closed: false,
        }
    }

    /// Returns `true` if two receivers belong to the same channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::watch;
    ///
    /// let (_tx, rx) = watch::channel(1);
    /// assert!(rx.same_channel(&rx.clone()));
    /// ```
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chan, &other.chan)
    }
}

/// The clone has seen what this one has.
impl<T, B: BlockingBackend> Clone for Receiver<T, B> {
    fn clone(&self) -> Self {
        Self::new(&self.chan, Some(self.version))
    }
}

impl<T, B: BlockingBackend> Drop for Receiver<T, B> {
    fn drop(&mut self) {
        let mut notified = None;
        let mut first = true;
        self.chan.lock.rounds(|Section { state, wakes, .. }| {
            if mem::take(&mut first) {
                state.receivers -= 1;
                if state.receivers == 0 {
                    notified = Some(state.closers.notify_all());
                }
            }
            notified.is_some_and(|notified| state.closers.wake_notified(notified, wakes))
        });
    }
}

/// The future of [`Receiver::changed`].
#[must_use = "futures do nothing unless polled"]
pub struct Changed<'a, T, B: BlockingBackend = DefaultBackend> {
    chan: &'a Chan<T, B>,
    version: &'a mut Version,
    waiter: Option<Waiter>,
    location: CallerLocation,
}

impl<T, B: BlockingBackend> Future for Changed<'_, T, B> {
    type Output = Result<(), RecvError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            chan,
            version,
            waiter,
            location,
        } = self.get_mut();
        chan.poll_changed(version, waiter, *location, cx)
    }
}

impl<T, B: BlockingBackend> Drop for Changed<'_, T, B> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.chan.cancel_changed(waiter);
        }
    }
}

/// The future of [`Receiver::wait_for`].
#[must_use = "futures do nothing unless polled"]
pub struct WaitFor<'a, T, F, B: BlockingBackend = DefaultBackend> {
    changed: Changed<'a, T, B>,
    predicate: F,
    /// Returns `true` if the predicate has not been asked about the value that there is.
    asks: bool,
    closed: bool,
}

impl<'a, T, F: FnMut(&T) -> bool, B: BlockingBackend> Future for WaitFor<'a, T, F, B> {
    type Output = Result<Ref<'a, T, B>, RecvError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            if mem::take(&mut this.asks) {
                let chan = this.changed.chan;
                let guard = chan.value.blocking_read();
                let version = chan.version();
                let has_changed = mem::replace(this.changed.version, version) != version;
                if (this.predicate)(&guard) {
                    return Poll::Ready(Ok(Ref { guard, has_changed }));
                }
            }
            if this.closed {
                return Poll::Ready(Err(RecvError(())));
            }
            match Pin::new(&mut this.changed).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => {
                    // Unseen until the predicate has been asked.
                    *this.changed.version = this.changed.version.previous();
                    this.asks = true;
                }
                Poll::Ready(Err(RecvError(()))) => this.closed = true,
            }
        }
    }
}

/// The predicate is not pinned.
impl<T, F, B: BlockingBackend> Unpin for WaitFor<'_, T, F, B> {}

/// The future of [`Sender::closed`].
///
/// Polled again after it was ready, it waits for the receivers that came since.
#[must_use = "futures do nothing unless polled"]
pub struct Closed<'a, T, B: BlockingBackend = DefaultBackend> {
    chan: &'a Chan<T, B>,
    waiter: Option<Waiter>,
    location: CallerLocation,
}

impl<T, B: BlockingBackend> Future for Closed<'_, T, B> {
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

impl<T, B: BlockingBackend> Drop for Closed<'_, T, B> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.chan.lock.with(|Section { state, wakes, .. }| {
                state.closers.remove(waiter, wakes);
            });
        }
    }
}

impl<T, B: BlockingBackend> fmt::Debug for Chan<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (version, receivers, waiting, senders) =
            self.lock.with(|Section { bits, state, .. }| {
                let version = Version::of(*bits).0 / Version::STEP;
                let waiting = state.waiters.queued();
                (version, state.receivers, waiting, state.senders)
            });
        f.debug_struct("Chan")
            .field("version", &version)
            .field("receivers", &receivers)
            .field("waiting", &waiting)
            .field("senders", &senders)
            .finish_non_exhaustive()
    }
}

impl<T, B: BlockingBackend> fmt::Debug for Sender<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("chan", &self.chan).finish()
    }
}

impl<T, B: BlockingBackend> fmt::Debug for Receiver<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("has_changed", &self.has_changed())
            .field("chan", &self.chan)
            .finish()
    }
}

impl<T, B: BlockingBackend> fmt::Debug for Changed<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Changed");
        f.field("waits", &self.waiter.is_some())
            .finish_non_exhaustive()
    }
}

impl<T, F, B: BlockingBackend> fmt::Debug for WaitFor<'_, T, F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitFor")
            .field("changed", &self.changed)
            .finish_non_exhaustive()
    }
}

impl<T, B: BlockingBackend> fmt::Debug for Closed<'_, T, B> {
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

    /// The error of a receiver whose senders have been dropped.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RecvError(pub(super) ());

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the value will not change any more: the channel is closed")
        }
    }

    impl Error for RecvError {}
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::task::Waker;

    use super::*;
    use crate::backend::Native;

    #[test]
    fn a_version_that_wraps_is_another() {
        let last = Version(Bits::MAX & !CLOSED.get());
        let tx = Sender::<_, Native>::starting_at(0, last);
        let mut rx = tx.subscribe();
        let mut cx = Context::from_waker(Waker::noop());
        for value in 1..4 {
            assert_eq!(rx.has_changed(), Ok(false));
            tx.send(value).unwrap();
            assert_eq!(rx.has_changed(), Ok(true));
            assert_eq!(
                Pin::new(&mut rx.changed()).poll(&mut cx),
                Poll::Ready(Ok(()))
            );
            assert_eq!(*rx.borrow(), value);
        }
        assert_eq!(tx.chan.version(), Version(2 * Version::STEP));
        assert!(!rx.is_closed());
        rx.version = Version(0);
        rx.mark_changed();
        drop(tx);
        assert_eq!(
            Pin::new(&mut rx.changed()).poll(&mut cx),
            Poll::Ready(Ok(()))
        );
        assert!(rx.is_closed());
    }
}
