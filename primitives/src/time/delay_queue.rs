//! `DelayQueue`: values that each expire after a delay.
//!
//! ```text
//!             insert                 its deadline passes, poll_expired
//!   (caller) ────────▶ in the queue ──────────────────────────────────▶ (caller)
//!                       │  ▲    └────────────── remove ───────────────▶
//!                       └──┘ reset
//! ```
//!
//! Like [`Timers`], it is a [wheel](super::wheel), but with values in its entries and
//! without a lock, because it has one user at a time. That user waits in one [`Sleep`],
//! until the next deadline, or for ever if there is none.
//!
//! Invariant: if a poll returned that the queue is empty, or that the task has to wait,
//! its waker is called when a poll would return something else. An earlier deadline
//! resets the sleep, which keeps the waker. If the queue becomes empty, or is no longer
//! empty, the sleep ends.

#![forbid(unsafe_code)]

use alloc::collections::BTreeMap;
use core::fmt;
use core::future::Future;
use core::hash::{Hash, Hasher};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use super::wheel::{Timer, Wheel};
use super::{Instant, Sleep, Timers};
use crate::backend::{Backend, DefaultBackend};

/// A queue of values, each with a delay after which it expires.
///
/// Values expire in the order of their deadlines, rounded up to the
/// [granularity](Timers::granularity) of the timers. Values of the same tick expire in
/// the order in which they were inserted or reset. Inserting, removing and resetting take
/// constant time.
///
/// The queue has a time of its own. It begins at the creation of the queue. It moves to
/// the deadline of each value that the queue returns, and to the time of each poll that
/// finds nothing due. A value that is inserted or reset with an earlier deadline is
/// *overdue*, and expires as if this time were its deadline: before all values that are
/// due later, and after those that are overdue already.
///
/// With the feature `futures-core`, it is a `Stream`.
///
/// # Differences
///
/// Unlike `tokio_util::time::DelayQueue`, it specifies the order in which overdue values
/// expire. [`peek`](Self::peek) is exact. It is a `Stream` only with the feature. A
/// [`Key`] never becomes the key of another value: if the value is no longer in the
/// queue, [`try_remove`](Self::try_remove) returns `None`, and [`remove`](Self::remove)
/// panics.
///
/// [`contains`](Self::contains), [`expired`](Self::expired) and [`new_in`](Self::new_in)
/// are additions.
///
/// # Examples
///
/// ```
/// use reveille::time::{DelayQueue, Duration};
///
/// # reveille_executor::block_on(async {
/// let mut sessions = DelayQueue::new();
/// let ada = sessions.insert("ada", Duration::from_millis(2));
/// sessions.insert("ben", Duration::from_millis(3));
/// sessions.reset(&ada, Duration::from_millis(4)); // this session was active
///
/// assert_eq!(sessions.expired().await.unwrap().into_inner(), "ben");
/// assert_eq!(sessions.expired().await.unwrap().into_inner(), "ada");
/// assert!(sessions.expired().await.is_none());
/// # });
/// ```
pub struct DelayQueue<T, B: Backend = DefaultBackend> {
    wheel: Wheel<Delayed<T>>,
    /// Waits until the next deadline, while a task waits for the queue.
    sleep: Sleep<B>,
    serial: u64,
    /// The new entries of values that have been moved, by their serials.
    moved: BTreeMap<u64, Timer>,
}

struct Delayed<T> {
    deadline: Instant,
    serial: u64,
    /// `None` in a free entry.
    value: Option<T>,
}

/// A key to a value in a [`DelayQueue`], from its insertion until it is taken out.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The entry of the value, unless it has been moved since. Only the serial identifies
    /// the value.
    timer: Timer,
    serial: u64,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.serial.hash(state);
    }
}

/// A value that a [`DelayQueue`] has returned.
#[derive(Debug, PartialEq, Eq)]
pub struct Expired<T> {
    value: T,
    deadline: Instant,
    key: Key,
}

#[cfg(feature = "std")]
impl<T> DelayQueue<T> {
    /// Creates an empty queue, on the timers that are [current](Timers::current).
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// Creates an empty queue with room for `capacity` values, on the timers that are
    /// [current](Timers::current).
    ///
    /// # Panics
    ///
    /// Panics if `capacity` is 2^32 - 1 or more.
    #[track_caller]
    pub fn with_capacity(capacity: usize) -> Self {
        let mut queue = Self::new_in(&Timers::current());
        queue.reserve(capacity);
        queue
    }
}

impl<T, B: Backend> DelayQueue<T, B> {
    /// Creates an empty queue, on the given timers.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{DelayQueue, Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let mut queue = DelayQueue::new_in(clock.timers());
    /// queue.insert(7, Duration::from_secs(1));
    /// clock.advance(Duration::from_secs(1));
    /// let expired = reveille_executor::block_on(queue.expired());
    /// assert_eq!(expired.unwrap().into_inner(), 7);
    /// ```
    #[must_use]
    pub fn new_in(timers: &Timers<B>) -> Self {
        let now = timers.now();
        Self {
            wheel: Wheel::new(timers.ticks().now(now)),
            sleep: Sleep::unread(timers.clone(), now),
            serial: 0,
            moved: BTreeMap::new(),
        }
    }

    /// Inserts a value that expires after `delay`.
    ///
    /// # Panics
    ///
    /// Panics if the queue holds 2^32 - 3 values.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{DelayQueue, Duration};
    ///
    /// let mut queue = DelayQueue::new();
    /// queue.insert(7, Duration::from_millis(1));
    /// let expired = reveille_executor::block_on(queue.expired());
    /// assert_eq!(expired.unwrap().into_inner(), 7);
    /// ```
    pub fn insert(&mut self, value: T, delay: Duration) -> Key {
        self.insert_at(value, self.timers().now() + delay)
    }

    /// Inserts a value that expires at `deadline`.
    ///
    /// # Panics
    ///
    /// Panics if the queue holds 2^32 - 3 values.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{DelayQueue, Instant};
    ///
    /// let mut queue = DelayQueue::new();
    /// let key = queue.insert_at(7, Instant::now());
    /// assert!(queue.deadline(&key) <= Instant::now());
    /// ```
    pub fn insert_at(&mut self, value: T, deadline: Instant) -> Key {
        let serial = self.serial;
        self.serial += 1;
        let delayed = Delayed {
            deadline,
            serial,
            value: Some(value),
        };
        let was_empty = self.is_empty();
        let tick = self.timers().tick(deadline);
        let timer = self.wheel.insert(tick, delayed);
        match was_empty {
            true => self.wake(),
            false => self.reset_earlier(deadline),
        }
        Key { timer, serial }
    }

    /// Removes a value from the queue, even if it is due already.
    ///
    /// # Panics
    ///
    /// Panics if the value is no longer in the queue. [`try_remove`](Self::try_remove)
    /// returns `None` instead.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{DelayQueue, Duration};
    ///
    /// let mut queue = DelayQueue::new();
    /// let key = queue.insert(7, Duration::from_secs(1));
    /// assert_eq!(queue.remove(&key).into_inner(), 7);
    /// assert!(queue.try_remove(&key).is_none());
    /// ```
    #[track_caller]
    pub fn remove(&mut self, key: &Key) -> Expired<T> {
        self.try_remove(key).expect(GONE)
    }

    /// Removes a value, as [`remove`](Self::remove) does. Returns `None` if the value is
    /// no longer in the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{DelayQueue, Duration};
    ///
    /// let mut queue = DelayQueue::new();
    /// let key = queue.insert(7, Duration::from_secs(60));
    /// let removed = queue.try_remove(&key);
    /// assert_eq!(removed.unwrap().into_inner(), 7);
    /// assert_eq!(queue.try_remove(&key), None);
    /// ```
    pub fn try_remove(&mut self, key: &Key) -> Option<Expired<T>> {
        let removed = self.find(key).map(|timer| self.take(timer))?;
        match self.is_empty() {
            true => self.wake(),
            false => self.reset_later(removed.deadline),
        }
        Some(removed)
    }

    /// Resets a value, which then expires after `delay` from now.
    ///
    /// # Panics
    ///
    /// Panics if the value is no longer in the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{DelayQueue, Duration, Instant};
    ///
    /// let mut queue = DelayQueue::new();
    /// let key = queue.insert(7, Duration::from_secs(1));
    /// queue.reset(&key, Duration::from_secs(60));
    /// assert!(queue.deadline(&key) > Instant::now() + Duration::from_secs(2));
    /// ```
    #[track_caller]
    pub fn reset(&mut self, key: &Key, delay: Duration) {
        self.reset_at(key, self.timers().now() + delay);
    }

    /// Resets a value, which then expires at `deadline`.
    ///
    /// # Panics
    ///
    /// Panics if the value is no longer in the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{DelayQueue, Duration, Instant};
    ///
    /// let mut queue = DelayQueue::new();
    /// let key = queue.insert(7, Duration::from_secs(60));
    /// let now = Instant::now();
    /// queue.reset_at(&key, now);
    /// assert_eq!(queue.deadline(&key), now);
    /// let expired = reveille_executor::block_on(queue.expired());
    /// assert_eq!(expired.unwrap().into_inner(), 7);
    /// ```
    #[track_caller]
    pub fn reset_at(&mut self, key: &Key, deadline: Instant) {
        let timer = self.find(key).expect(GONE);
        let tick = self.timers().tick(deadline);
        let before = core::mem::replace(&mut self.wheel[timer].deadline, deadline);
        self.wheel.reset(timer, tick);
        self.reset_earlier(deadline);
        self.reset_later(before);
    }

    /// Returns the deadline of a value.
    ///
    /// # Panics
    ///
    /// Panics if the value is no longer in the queue.
    #[track_caller]
    pub fn deadline(&self, key: &Key) -> Instant {
        let timer = self.find(key).expect(GONE);
        self.wheel[timer].deadline
    }

    /// Returns whether a value is in the queue.
    #[must_use]
    pub fn contains(&self, key: &Key) -> bool {
        self.find(key).is_some()
    }

    /// Returns the entry of a value, if it is in the queue.
    fn find(&self, key: &Key) -> Option<Timer> {
        let is_at = |timer: &Timer| {
            let delayed = self.wheel.get(*timer);
            delayed.is_some_and(|it| it.serial == key.serial && it.value.is_some())
        };
        Some(key.timer)
            .filter(is_at)
            .or_else(|| self.moved.get(&key.serial).copied())
    }

    /// Returns the key of the value that expires next. It scans the values of one slot of
    /// the wheel.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{DelayQueue, Duration};
    ///
    /// let mut queue = DelayQueue::new();
    /// let late = queue.insert("late", Duration::from_secs(60));
    /// let soon = queue.insert("soon", Duration::from_secs(1));
    /// assert_eq!(queue.peek(), Some(soon));
    /// # let _ = late;
    /// ```
    pub fn peek(&self) -> Option<Key> {
        let timer = self.wheel.first_listed()?;
        let serial = self.wheel[timer].serial;
        Some(Key { timer, serial })
    }

    /// Polls for a value that has expired. Returns `None` if the queue is empty. The
    /// waker is called when a poll would return something else, also after `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Poll, Waker};
    /// use reveille::time::{DelayQueue, Duration};
    ///
    /// let mut queue = DelayQueue::new();
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(matches!(queue.poll_expired(&mut cx), Poll::Ready(None)));
    /// queue.insert(7, Duration::from_secs(60));
    /// assert!(queue.poll_expired(&mut cx).is_pending());
    /// ```
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        loop {
            let now = self.timers().now();
            if let Some(timer) = self.wheel.pop(self.timers().ticks().now(now)) {
                self.sleep.restart(now);
                return Poll::Ready(Some(self.take(timer)));
            }
            let next = self.next_pop();
            if next != self.sleep.deadline() {
                self.sleep.reset_to(next);
            }
            // `now` is the clock's time, so the wheel alone decides.
            let over = self.sleep.poll_wheel(cx).is_ready();
            if self.is_empty() {
                return Poll::Ready(None);
            }
            if !over {
                return Poll::Pending;
            }
        }
    }

    /// Waits for a value to expire. Returns `None` if the queue is empty.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: no value is removed.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{DelayQueue, Duration};
    ///
    /// # reveille_executor::block_on(async {
    /// let mut queue = DelayQueue::new();
    /// queue.insert("late", Duration::from_millis(2));
    /// queue.insert("soon", Duration::from_millis(1));
    /// assert_eq!(queue.expired().await.unwrap().into_inner(), "soon");
    /// assert_eq!(queue.expired().await.unwrap().into_inner(), "late");
    /// assert_eq!(queue.expired().await, None);
    /// # });
    /// ```
    pub fn expired(&mut self) -> NextExpired<'_, T, B> {
        NextExpired {
            queue: self,
            polled: false,
        }
    }

    /// Removes and drops all values.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{DelayQueue, Duration};
    ///
    /// let mut queue = DelayQueue::new();
    /// queue.insert(7, Duration::from_secs(60));
    /// queue.clear();
    /// assert!(queue.is_empty());
    /// ```
    pub fn clear(&mut self) {
        let empty = Wheel::new(self.wheel.now());
        let cleared = core::mem::replace(&mut self.wheel, empty);
        self.moved.clear();
        self.wake();
        drop(cleared);
    }

    /// Returns the number of values.
    pub const fn len(&self) -> usize {
        self.wheel.len()
    }

    /// Returns whether there are no values.
    pub const fn is_empty(&self) -> bool {
        self.wheel.is_empty()
    }

    /// Returns the number of values for which there is room.
    pub const fn capacity(&self) -> usize {
        self.wheel.capacity()
    }

    /// Reserves room for `additional` more values.
    ///
    /// # Panics
    ///
    /// Panics if there would be room for 2^32 - 1 values or more.
    #[track_caller]
    pub fn reserve(&mut self, additional: usize) {
        self.wheel.reserve(additional);
    }

    /// Frees unused room without moving values. If the queue is empty, it frees all of
    /// it.
    pub fn shrink_to_fit(&mut self) {
        self.wheel.shrink_to_fit();
    }

    /// Frees unused room, and moves values for that. It scans all values. Keys stay
    /// valid, but finding a value that has been moved takes logarithmic time.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{DelayQueue, Duration};
    ///
    /// let mut queue = DelayQueue::with_capacity(10);
    /// let first = queue.insert(7, Duration::from_secs(1));
    /// let last = queue.insert(8, Duration::from_secs(2));
    /// queue.remove(&first);
    /// queue.compact();
    /// assert_eq!(queue.capacity(), 1);
    /// assert_eq!(queue.remove(&last).into_inner(), 8);
    /// ```
    pub fn compact(&mut self) {
        let moved = &mut self.moved;
        self.wheel.compact(|delayed, timer| {
            moved.insert(delayed.serial, timer);
        });
    }

    fn timers(&self) -> &Timers<B> {
        self.sleep.timers()
    }

    /// Resets the sleep of a waiting task for a new deadline that is earlier.
    fn reset_earlier(&mut self, deadline: Instant) {
        if self.sleep.is_waiting() && deadline < self.sleep.deadline() {
            self.sleep.reset_to(deadline);
        }
    }

    /// Resets the sleep of a waiting task if it waits for a `deadline` that has been
    /// removed or reset.
    fn reset_later(&mut self, deadline: Instant) {
        let ticks = self.timers().ticks();
        let waited_for = ticks.deadline(deadline) <= ticks.deadline(self.sleep.deadline());
        if self.sleep.is_waiting() && waited_for {
            let next = self.next_pop();
            if self.sleep.deadline() < next {
                self.sleep.reset_to(next);
            }
        }
    }

    /// Returns the time until which nothing expires.
    fn next_pop(&self) -> Instant {
        let next = self.wheel.next_pop();
        next.and_then(|tick| self.timers().ticks().instant(tick))
            .unwrap_or(Instant::MAX)
    }

    /// Wakes the waiting task, because a poll would return something else.
    fn wake(&mut self) {
        if self.sleep.is_waiting() {
            self.sleep.reset_to(Instant::ORIGIN);
        }
    }

    fn take(&mut self, timer: Timer) -> Expired<T> {
        let Delayed {
            deadline,
            serial,
            value,
        } = &mut self.wheel[timer];
        let key = Key {
            timer,
            serial: *serial,
        };
        let expired = Expired {
            deadline: *deadline,
            value: value
                .take()
                .expect("an entry that is not free has its value"),
            key,
        };
        self.wheel.remove(timer);
        if !self.moved.is_empty() {
            self.moved.remove(&key.serial);
        }
        expired
    }
}

/// A constant, because a closure that panics would name its own line in place of the
/// caller's.
const GONE: &str = "the value of this key is no longer in the DelayQueue";

#[cfg(feature = "std")]
impl<T> Default for DelayQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Nothing in it is pinned.
impl<T, B: Backend> Unpin for DelayQueue<T, B> {}

#[cfg(feature = "futures-core")]
impl<T, B: Backend> futures_core::Stream for DelayQueue<T, B> {
    type Item = Expired<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.get_mut().poll_expired(cx)
    }
}

impl<T, B: Backend> fmt::Debug for DelayQueue<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// The future of [`DelayQueue::expired`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct NextExpired<'a, T, B: Backend = DefaultBackend> {
    queue: &'a mut DelayQueue<T, B>,
    polled: bool,
}

impl<T, B: Backend> Future for NextExpired<'_, T, B> {
    type Output = Option<Expired<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.polled = true;
        self.queue.poll_expired(cx)
    }
}

/// Discards the waker that a poll has left in the queue, also after `None`.
impl<T, B: Backend> Drop for NextExpired<'_, T, B> {
    fn drop(&mut self) {
        if self.polled {
            self.queue.sleep.unregister();
        }
    }
}

impl<T> Expired<T> {
    /// Returns a reference to the value.
    pub const fn get_ref(&self) -> &T {
        &self.value
    }

    /// Returns a mutable reference to the value.
    pub const fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Returns the deadline that the value had.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the key that the value had.
    pub const fn key(&self) -> Key {
        self.key
    }
}
