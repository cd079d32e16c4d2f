//! Notifies one task, or all that wait, of an event.
//!
//! A [`Notify`] carries no value. [`notify_one`] wakes one waiting task. If no task
//! waits, it stores a *permit*, and the next [`Notified`] that is polled completes at
//! once.
//! [`notify_waiters`] wakes all tasks that wait now, and stores no permit.
//!
//! ```
//! use reveille::Notify;
//!
//! # reveille_executor::block_on(async {
//! let notify = Notify::new();
//! notify.notify_one();
//! notify.notified().await; // consumes the stored permit
//! # });
//! ```
//!
//! # States
//!
//! The bits hold the permit, whether the queue is empty, and the number of calls of
//! `notify_waiters` so far. A wait stores that number when it is created. If the
//! number differs at its first poll, a call has come in between, and the wait is done.
//!
//! ```text
//!            first poll                 notify_one, notify_last
//!   created ────────────▶ queued ───────────────────────────────▶ granted ──▶ done
//!      │                    │  notify_waiters: the number differs                ▲
//!      └────────────────────┴────────────────────────────────────────────────────┘
//! ```
//!
//! A wait that finds the permit, or a call since its creation, is done at its first poll.
//!
//! Invariant: a permit is stored only while the queue is empty. A wait that was
//! granted by `notify_one` or `notify_last` and is dropped before it was polled again
//! passes the grant on, by the same strategy.
//!
//! Differences from `tokio::sync::Notify`: `new` is `const`; futures are `Unpin`;
//! [`wait_until`], [`new_in`], [`waiting`] and [`granted`] are additions.
//!
//! [`notified`]: Notify::notified
//! [`notify_one`]: Notify::notify_one
//! [`notify_waiters`]: Notify::notify_waiters
//! [`wait_until`]: Notify::wait_until
//! [`new_in`]: Notify::new_in
//! [`waiting`]: Notify::waiting
//! [`granted`]: Notify::granted

#![forbid(unsafe_code)]

use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, DefaultBackend};
use crate::protocol::CallerLocation;
#[cfg(feature = "locations")]
use crate::protocol::Locations;
use crate::protocol::{Bits, Section, StateLock, Waiter, Waiters, WakeList};

const PERMIT: Bits = Bits::new(1);
const QUEUED: Bits = Bits::new(1 << 1);
/// No permit is ever stored: a [`Condvar`](crate::Condvar) relies on this.
const NO_PERMIT: Bits = Bits::new(1 << 2);
/// The number of calls of `notify_waiters` is counted above the flags.
const CALL: usize = 1 << 3;

/// Notifies tasks of an event. See the [module](self).
///
/// # Examples
///
/// ```
/// use reveille::Notify;
/// use std::sync::Arc;
///
/// let notify = Arc::new(Notify::new());
/// let waits = std::thread::spawn({
///     let notify = notify.clone();
///     move || reveille_executor::block_on(notify.notified())
/// });
/// notify.notify_one();
/// waits.join().unwrap();
/// ```
pub struct Notify<B: Backend = DefaultBackend> {
    lock: StateLock<Waiters<Grant>, B>,
}

/// What a queued wait has been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    /// Nothing, or it was notified with all others, which is not passed on.
    None,
    /// It was notified alone, as the first or as the last of the queue.
    One(Strategy),
}

/// Which end of the queue is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    Fifo,
    Lifo,
}

impl Notify {
    const_unless_loom! {
        /// Creates a `Notify` without a permit.
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Notify;
        ///
        /// static STARTED: Notify = Notify::new();
        /// STARTED.notify_one();
        /// ```
        pub const fn new() -> Self {
            Self::const_new()
        }

        /// Creates a `Notify` without a permit. It is the same as [`new`](Self::new).
        ///
        /// # Examples
        ///
        /// ```
        /// use reveille::Notify;
        ///
        /// static STARTED: Notify = Notify::const_new();
        /// STARTED.notify_one();
        /// ```
        pub const fn const_new() -> Self {
            Self::of(Bits::EMPTY)
        }

        /// Creates a `Notify` that stores no permits, in a constant.
        pub(crate) const fn const_without_permit() -> Self {
            Self::of(NO_PERMIT)
        }

        const fn of(bits: Bits) -> Self {
            Self {
                lock: StateLock::<_, DefaultBackend>::const_new(bits, Waiters::new()),
            }
        }
    }
}

impl<B: Backend> Notify<B> {
    /// Creates a `Notify` without a permit, over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Notify, backend::Local};
    ///
    /// # reveille_executor::block_on(async {
    /// let notify = Notify::<Local>::new_in(); // for one thread
    /// notify.notify_one();
    /// notify.notified().await;
    /// # });
    /// ```
    #[must_use]
    pub fn new_in() -> Self {
        Self {
            lock: StateLock::new_in(Bits::EMPTY, Waiters::new()),
        }
    }

    /// Creates a `Notify` that stores no permits, over any backend.
    pub(crate) fn without_permit_in() -> Self {
        Self {
            lock: StateLock::new_in(NO_PERMIT, Waiters::new()),
        }
    }

    /// Waits for a notification.
    ///
    /// If a permit is stored, the future consumes it and completes at its first poll.
    /// Otherwise it takes its place in the queue at the first poll, or at a call of
    /// [`enable`](Notified::enable). A [`notify_one`](Self::notify_one) that comes before
    /// can go to another waiter. A call of
    /// [`notify_waiters`](Self::notify_waiters) completes every future that exists at
    /// that moment, polled or not.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its place in the queue. If it was notified by
    /// [`notify_one`](Self::notify_one) or [`notify_last`](Self::notify_last) and has
    /// not been polled since, the notification passes to another waiter.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Notify;
    ///
    /// # reveille_executor::block_on(async {
    /// let notify = Notify::new();
    /// let waits = notify.notified();
    /// notify.notify_waiters();
    /// waits.await;
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn notified(&self) -> Notified<'_, B> {
        self.notified_at(CallerLocation::capture())
    }

    /// Waits as [`notified`](Self::notified) does, with the location of another wait.
    pub(crate) fn notified_at(&self, location: CallerLocation) -> Notified<'_, B> {
        Notified {
            notify: self,
            wait: Wait::new(self, location),
        }
    }

    /// Waits for a notification. The future owns its `Notify`, through the `Arc`.
    ///
    /// # Cancel safety
    ///
    /// As for [`notified`](Self::notified).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Notify;
    /// use std::sync::Arc;
    ///
    /// # reveille_executor::block_on(async {
    /// let notify = Arc::new(Notify::new());
    /// let waits = notify.clone().notified_owned();
    /// notify.notify_waiters();
    /// waits.await;
    /// # });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn notified_owned(self: Arc<Self>) -> OwnedNotified<B> {
        OwnedNotified {
            wait: Wait::new(&self, CallerLocation::capture()),
            notify: self,
        }
    }

    /// Waits until `predicate` returns `true`. The future calls it at its first poll
    /// and after each notification.
    ///
    /// Code that changes what the predicate reads has to notify afterwards. No
    /// notification is missed: the future registers its wait before it calls the
    /// predicate.
    ///
    /// # Cancel safety
    ///
    /// As for [`notified`](Self::notified).
    ///
    /// # Panics
    ///
    /// The poll panics if `predicate` does. The next poll calls it again.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Notify;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// let notify = Notify::new();
    /// let open = AtomicBool::new(false);
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         open.store(true, Ordering::Release);
    ///         notify.notify_waiters();
    ///     });
    ///     reveille_executor::block_on(notify.wait_until(|| open.load(Ordering::Acquire)));
    /// });
    /// ```
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub fn wait_until<F: FnMut() -> bool>(&self, predicate: F) -> WaitUntil<'_, F, B> {
        WaitUntil {
            predicate,
            notified: self.notified(),
            phase: Phase::Check,
        }
    }

    /// Notifies the task that has waited longest.
    ///
    /// If no task waits, the call stores a permit for the next [`Notified`] that is
    /// polled. At most one permit is stored.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Notify;
    ///
    /// # reveille_executor::block_on(async {
    /// let notify = Notify::new();
    /// notify.notify_one();
    /// notify.notify_one();
    /// notify.notified().await;
    /// # });
    /// ```
    #[inline]
    pub fn notify_one(&self) {
        self.notify(Strategy::Fifo);
    }

    /// Notifies the task that began to wait last.
    ///
    /// If no task waits, the call stores a permit, as [`notify_one`](Self::notify_one)
    /// does.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Notify;
    ///
    /// # reveille_executor::block_on(async {
    /// let notify = Notify::new();
    /// notify.notify_last();
    /// notify.notified().await;
    /// # });
    /// ```
    #[inline]
    pub fn notify_last(&self) {
        self.notify(Strategy::Lifo);
    }

    /// Notifies all tasks that wait now, and stores no permit.
    ///
    /// It completes every future of [`notified`](Self::notified) that has been created
    /// before this call, also those that have not been polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Notify;
    ///
    /// # reveille_executor::block_on(async {
    /// let notify = Notify::new();
    /// let (first, second) = (notify.notified(), notify.notified());
    /// notify.notify_waiters();
    /// first.await;
    /// second.await;
    /// # });
    /// ```
    pub fn notify_waiters(&self) {
        let unqueued = self
            .lock
            .update(|bits| (!bits.contains(QUEUED)).then(|| next_call(bits)));
        if unqueued.is_err() {
            let mut notified = None;
            self.lock.rounds(|Section { bits, state, wakes }| {
                let generation = *notified.get_or_insert_with(|| {
                    *bits = next_call(*bits).without(QUEUED);
                    state.notify_all()
                });
                state.wake_notified(generation, wakes)
            });
        }
    }

    /// Returns how many tasks wait in the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Notify;
    /// use core::pin::pin;
    ///
    /// let notify = Notify::new();
    /// let mut waits = pin!(notify.notified());
    /// waits.as_mut().enable();
    /// assert_eq!(notify.waiting(), 1);
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock.with(|section| section.state.queued())
    }

    /// Returns how many waits have been notified and not polled since. A number that
    /// stays above zero shows that a future is no longer polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Notify;
    /// use core::pin::pin;
    ///
    /// let notify = Notify::new();
    /// let mut waits = pin!(notify.notified());
    /// waits.as_mut().enable();
    /// notify.notify_one();
    /// assert_eq!(notify.granted(), 1);
    /// ```
    #[must_use]
    pub fn granted(&self) -> usize {
        self.lock.with(|section| section.state.notified())
    }

    /// Returns where in the source each wait began, in the order of the queue. Waits
    /// that have been notified and not polled since are included.
    ///
    /// Available with the feature `locations`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::Notify;
    ///
    /// assert!(Notify::new().waiters().is_empty());
    /// ```
    #[cfg(feature = "locations")]
    #[must_use]
    pub fn waiters(&self) -> alloc::vec::Vec<&'static core::panic::Location<'static>> {
        self.lock.with(|section| section.state.locations())
    }

    #[inline]
    fn notify(&self, strategy: Strategy) {
        // Also if a permit is stored: the task that consumes it must see what was
        // written before this call.
        let unqueued = self
            .lock
            .update(|bits| (!bits.intersects(QUEUED | NO_PERMIT)).then(|| bits | PERMIT));
        if unqueued.is_err_and(|bits| bits.contains(QUEUED)) {
            self.lock.with(|section| notify(section, strategy));
        }
    }
}

/// Notifies a waiter, or stores the permit.
fn notify(section: Section<'_, Waiters<Grant>>, strategy: Strategy) {
    let Section {
        bits,
        state: waiters,
        wakes,
    } = section;
    let next = match strategy {
        Strategy::Fifo => waiters.first(),
        Strategy::Lifo => waiters.last(),
    };
    match next {
        Some(waiter) => {
            *waiters.notify_one(&waiter, wakes) = Grant::One(strategy);
            update_queued(bits, waiters);
        }
        None if bits.contains(NO_PERMIT) => {}
        None => bits.insert(PERMIT),
    }
}

/// Updates the bit that says whether the queue is empty.
fn update_queued(bits: &mut Bits, waiters: &Waiters<Grant>) {
    match waiters.is_empty() {
        true => bits.remove(QUEUED),
        false => bits.insert(QUEUED),
    }
}

fn calls(bits: Bits) -> usize {
    bits.get() / CALL
}

/// Counts a call. The number wraps.
fn next_call(bits: Bits) -> Bits {
    Bits::fitting((bits.get() + CALL) & Bits::MAX)
}

/// A wait, without its `Notify`: common to the borrowed and the owned future.
#[derive(Debug)]
struct Wait {
    calls: usize,
    location: CallerLocation,
    stage: Stage,
}

/// A waiter, or one of the stages below: a word.
#[derive(PartialEq, Eq)]
struct Stage(Waiter);

impl Stage {
    const CREATED: Self = Self(Waiter::sentinel(0));
    const DONE: Self = Self(Waiter::sentinel(1));
    /// Done, by a grant that its user may still [pass on](Notified::pass_on).
    const DONE_FIFO: Self = Self(Waiter::sentinel(2));
    const DONE_LIFO: Self = Self(Waiter::sentinel(3));
    /// Granted, in the section of a poll. If a waker panics after that section, the
    /// grant is not lost: the next poll observes it, or the drop hands it on (P8).
    const GRANTED_FIFO: Self = Self(Waiter::sentinel(4));
    const GRANTED_LIFO: Self = Self(Waiter::sentinel(5));

    const fn granted_by(grant: Grant) -> Self {
        match grant {
            Grant::None => Self::DONE,
            Grant::One(Strategy::Fifo) => Self::GRANTED_FIFO,
            Grant::One(Strategy::Lifo) => Self::GRANTED_LIFO,
        }
    }

    #[inline]
    const fn is_done(&self) -> bool {
        matches!(*self, Self::DONE | Self::DONE_FIFO | Self::DONE_LIFO)
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::CREATED => "Created",
            Self::GRANTED_FIFO | Self::GRANTED_LIFO => "Granted",
            _ if self.is_done() => "Done",
            _ => "Queued",
        })
    }
}

impl Wait {
    fn new<B: Backend>(notify: &Notify<B>, location: CallerLocation) -> Self {
        Self {
            calls: calls(notify.lock.load()),
            location,
            stage: Stage::CREATED,
        }
    }

    // As in `guards.rs`.
    #[cfg_attr(feature = "model", inline(always))]
    #[cfg_attr(not(feature = "model"), inline)]
    fn poll<B: Backend>(&mut self, notify: &Notify<B>, cx: &mut Context<'_>) -> Poll<()> {
        match self.stage {
            Stage::CREATED => match self.try_take_permit(notify) {
                true => {
                    self.stage = Stage::DONE;
                    Poll::Ready(())
                }
                false => self.first_poll(notify, cx),
            },
            _ => self.next_poll(notify, cx),
        }
    }

    #[inline(never)]
    fn first_poll<B: Backend>(&mut self, notify: &Notify<B>, cx: &mut Context<'_>) -> Poll<()> {
        let poll = notify.lock.first_poll(cx, |bits, waiters, registration| {
            match self.step(bits, waiters) {
                Poll::Ready(()) => Ok(()),
                Poll::Pending => Err(registration.register(waiters.waker(&self.stage.0))),
            }
        });
        self.observe();
        poll
    }

    #[inline(never)]
    fn next_poll<B: Backend>(&mut self, notify: &Notify<B>, cx: &mut Context<'_>) -> Poll<()> {
        if self.observe() {
            return Poll::Ready(());
        }
        let poll = notify.lock.poll(cx, false, |section, registration| {
            let Section { state, wakes, .. } = section;
            match self.is_granted(state, wakes) {
                true => Ok(()),
                false => Err(registration.register(state.waker(&self.stage.0))),
            }
        });
        self.observe();
        poll
    }

    /// Returns `true` if the wait is done. A grant counts as observed from now on.
    #[inline]
    fn observe(&mut self) -> bool {
        match self.stage {
            Stage::GRANTED_FIFO => self.stage = Stage::DONE_FIFO,
            Stage::GRANTED_LIFO => self.stage = Stage::DONE_LIFO,
            _ => {}
        }
        self.stage.is_done()
    }

    /// Returns `true` if the wait is done without a place in the queue: it has consumed
    /// the permit, or `notify_waiters` has been called since its creation.
    #[inline]
    fn try_take_permit<B: Backend>(&self, notify: &Notify<B>) -> bool {
        let taken = notify.lock.update(|bits| {
            let permitted = calls(bits) == self.calls && bits.contains(PERMIT);
            permitted.then(|| bits.without(PERMIT))
        });
        taken.map_or_else(|bits| calls(bits) != self.calls, |_| true)
    }

    /// Completes a wait that is not queued yet, or puts it into the queue.
    #[inline]
    fn step(&mut self, bits: &mut Bits, waiters: &mut Waiters<Grant>) -> Poll<()> {
        if calls(*bits) != self.calls {
            self.stage = Stage::DONE;
            return Poll::Ready(());
        }
        if bits.contains(PERMIT) {
            bits.remove(PERMIT);
            // A permit is for one wait, whichever end of the queue it was meant for.
            self.stage = Stage::GRANTED_FIFO;
            return Poll::Ready(());
        }
        self.stage = Stage(waiters.push(self.location, Grant::None));
        bits.insert(QUEUED);
        Poll::Pending
    }

    /// Takes the grant of a queued wait, if it has one, and returns whether it had.
    #[inline]
    fn is_granted(&mut self, waiters: &mut Waiters<Grant>, wakes: &mut WakeList) -> bool {
        let granted = waiters.is_notified(&self.stage.0);
        if granted {
            let Stage(waiter) = core::mem::replace(&mut self.stage, Stage::DONE);
            self.stage = Stage::granted_by(waiters.remove(waiter, wakes));
        }
        granted
    }

    fn enable<B: Backend>(&mut self, notify: &Notify<B>) -> bool {
        if !self.observe() {
            notify.lock.with(|section| match self.stage {
                Stage::CREATED => {
                    let _ = self.step(section.bits, section.state);
                }
                _ => {
                    self.is_granted(section.state, section.wakes);
                }
            });
        }
        self.observe()
    }

    /// Leaves the queue, and passes on an unobserved grant (P6).
    #[inline]
    fn cancel<B: Backend>(&mut self, notify: &Notify<B>) {
        if !(self.stage == Stage::CREATED || self.stage.is_done()) {
            self.cancel_slow(notify);
        }
    }

    #[cold]
    #[inline(never)]
    fn cancel_slow<B: Backend>(&mut self, notify: &Notify<B>) {
        match core::mem::replace(&mut self.stage, Stage::DONE) {
            Stage::GRANTED_FIFO => notify.notify(Strategy::Fifo),
            Stage::GRANTED_LIFO => notify.notify(Strategy::Lifo),
            Stage(waiter) => notify.lock.with(|Section { bits, state, wakes }| {
                let grant = state.remove(waiter, wakes);
                update_queued(bits, state);
                if let Grant::One(strategy) = grant {
                    let section = Section { bits, state, wakes };
                    self::notify(section, strategy);
                }
            }),
        }
    }
}

/// The future of [`Notify::notified`].
///
/// If it is polled again after it was ready, it is ready again and consumes nothing. A
/// future that is leaked keeps its place in the queue, and a notification that goes to
/// it is lost.
#[must_use = "futures do nothing unless polled"]
pub struct Notified<'a, B: Backend = DefaultBackend> {
    notify: &'a Notify<B>,
    wait: Wait,
}

impl<B: Backend> Notified<'_, B> {
    /// Takes the place in the queue now, before the first poll. Returns `true` if the
    /// wait is done already.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::pin::pin;
    /// use reveille::Notify;
    ///
    /// # reveille_executor::block_on(async {
    /// let notify = Notify::new();
    /// let mut waits = pin!(notify.notified());
    /// assert!(!waits.as_mut().enable());
    /// notify.notify_one(); // goes to `waits`, and stores no permit
    /// waits.await;
    /// # });
    /// ```
    pub fn enable(self: Pin<&mut Self>) -> bool {
        let this = self.get_mut();
        this.wait.enable(this.notify)
    }

    /// Passes on a grant that has been observed but not used.
    pub(crate) fn pass_on(&mut self) {
        let strategy = match self.wait.stage {
            Stage::DONE_FIFO => Strategy::Fifo,
            Stage::DONE_LIFO => Strategy::Lifo,
            _ => return,
        };
        self.wait.stage = Stage::DONE;
        self.notify.notify(strategy);
    }
}

impl<B: Backend> Future for Notified<'_, B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.wait.poll(this.notify, cx)
    }
}

impl<B: Backend> Drop for Notified<'_, B> {
    fn drop(&mut self) {
        self.wait.cancel(self.notify);
    }
}

/// The future of [`Notify::notified_owned`]. It behaves as [`Notified`].
#[must_use = "futures do nothing unless polled"]
pub struct OwnedNotified<B: Backend = DefaultBackend> {
    notify: Arc<Notify<B>>,
    wait: Wait,
}

impl<B: Backend> OwnedNotified<B> {
    /// Takes the place in the queue now, as [`Notified::enable`] does.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::pin::pin;
    /// use reveille::Notify;
    /// use std::sync::Arc;
    ///
    /// # reveille_executor::block_on(async {
    /// let notify = Arc::new(Notify::new());
    /// let mut waits = pin!(notify.clone().notified_owned());
    /// assert!(!waits.as_mut().enable());
    /// notify.notify_one(); // goes to `waits`, and stores no permit
    /// waits.await;
    /// # });
    /// ```
    pub fn enable(self: Pin<&mut Self>) -> bool {
        let this = self.get_mut();
        this.wait.enable(&this.notify)
    }
}

impl<B: Backend> Future for OwnedNotified<B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.wait.poll(&this.notify, cx)
    }
}

impl<B: Backend> Drop for OwnedNotified<B> {
    fn drop(&mut self) {
        self.wait.cancel(&self.notify);
    }
}

/// The future of [`Notify::wait_until`].
///
/// # Panics
///
/// A poll after the future was ready panics.
#[must_use = "futures do nothing unless polled"]
pub struct WaitUntil<'a, F, B: Backend = DefaultBackend> {
    predicate: F,
    notified: Notified<'a, B>,
    phase: Phase,
}

/// What the next poll has to do.
enum Phase {
    /// Call the predicate: it has not been called since `notified` was created.
    Check,
    Waiting,
    Done,
}

impl<F: FnMut() -> bool, B: Backend> Future for WaitUntil<'_, F, B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            this.phase = match this.phase {
                // If the predicate panics, the next poll calls it again.
                Phase::Check if (this.predicate)() => {
                    this.phase = Phase::Done;
                    return Poll::Ready(());
                }
                Phase::Check => Phase::Waiting,
                Phase::Waiting => match Pin::new(&mut this.notified).poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(()) => {
                        let Notified { notify, wait } = &this.notified;
                        this.notified = notify.notified_at(wait.location);
                        Phase::Check
                    }
                },
                Phase::Done => panic!("Notify::wait_until polled after it was ready"),
            };
        }
    }
}

// The predicate is never pinned: it is called, not polled.
impl<F, B: Backend> Unpin for WaitUntil<'_, F, B> {}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Backend> fmt::Debug for Notify<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bits, waiting, granted) = self.lock.with(|section| {
            (
                *section.bits,
                section.state.queued(),
                section.state.notified(),
            )
        });
        let mut f = f.debug_struct("Notify");
        f.field("permit", &bits.contains(PERMIT))
            .field("waiting", &waiting)
            .field("granted", &granted);
        #[cfg(feature = "locations")]
        f.field("waiters", &Locations(self.waiters()));
        f.finish()
    }
}

impl<B: Backend> fmt::Debug for Notified<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notified")
            .field("stage", &self.wait.stage)
            .finish()
    }
}

impl<B: Backend> fmt::Debug for OwnedNotified<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedNotified")
            .field("stage", &self.wait.stage)
            .finish()
    }
}

impl<F, B: Backend> fmt::Debug for WaitUntil<'_, F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitUntil")
            .field("notified", &self.notified)
            .finish_non_exhaustive()
    }
}
