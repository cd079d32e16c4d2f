//! Wakes one task, or all of them, without a value.
//!
//! A [`Notify`] is a place to wait for an event. [`notify_one`] lets one task
//! go on; where none waits, it leaves a *permit*, and the next to wait goes on
//! at once. [`notify_waiters`] lets everybody go on who waits now, and leaves
//! nothing.
//!
//! ```
//! use reveille::Notify;
//!
//! # reveille_executor::block_on(async {
//! let notify = Notify::new();
//! notify.notify_one();
//! notify.notified().await; // takes the permit that was left
//! # });
//! ```
//!
//! # States
//!
//! The bits hold the permit, whether anybody is queued, and how often
//! `notify_waiters` has been called. A wait remembers that number from its
//! creation:
//!
//! ```text
//!            first poll                 notify_one, notify_last
//!   created ────────────▶ queued ───────────────────────────────▶ granted ──▶ done
//!      │                    │  notify_waiters: the number differs                ▲
//!      └────────────────────┴────────────────────────────────────────────────────┘
//!        (or, at the first poll, the permit)
//! ```
//!
//! Invariant: a permit is left only where nobody is queued, and a wait that is
//! dropped after it was granted by `notify_one` or `notify_last` hands the grant
//! on in the same way.
//!
//! Differences from `tokio::sync::Notify`: `new` is `const`; futures are `Unpin`;
//! [`wait_until`], [`new_in`], [`waiting`] and [`granted`] are additions.
//!
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
use crate::protocol::{Bits, Section, StateLock, Waiter, Waiters, WakeList};
use crate::raw::CallerLocation;
#[cfg(feature = "locations")]
use crate::raw::Locations;

const PERMIT: Bits = Bits::new(1);
const QUEUED: Bits = Bits::new(1 << 1);
/// Nothing is left where nobody waits: what a [`Condvar`](crate::Condvar) is of.
const NO_PERMIT: Bits = Bits::new(1 << 2);
/// The number of calls of `notify_waiters` stands above the flags.
const CALL: usize = 1 << 3;

/// Lets tasks wait for an event, and lets them go on.
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
    /// Nothing; or all were called at once, which needs no handing on.
    None,
    /// It was called alone: as the first, or as the last.
    One(Strategy),
}

/// Which end of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    Fifo,
    Lifo,
}

#[cfg(not(loom))]
impl Notify {
    /// A notify without a permit.
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

    /// A notify without a permit, in a constant: the same as [`new`](Self::new).
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

    /// One that leaves no permits, in a constant.
    pub(crate) const fn const_without_permit() -> Self {
        Self::of(NO_PERMIT)
    }

    const fn of(bits: Bits) -> Self {
        Self {
            lock: StateLock::<_, DefaultBackend>::const_new(bits, Waiters::new()),
        }
    }
}

#[cfg(loom)]
impl Notify {
    /// A notify without a permit.
    pub fn new() -> Self {
        Self::new_in()
    }
}

impl<B: Backend> Notify<B> {
    /// A notify without a permit, over any backend.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::{Notify, backend::Local};
    ///
    /// # reveille_executor::block_on(async {
    /// let notify = Notify::<Local>::new_in(); // of one thread
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

    /// One that leaves no permits, over any backend.
    pub(crate) fn without_permit_in() -> Self {
        Self {
            lock: StateLock::new_in(NO_PERMIT, Waiters::new()),
        }
    }

    /// Waits to be notified.
    ///
    /// The wait is covered by [`notify_waiters`](Self::notify_waiters) from this
    /// call on, polled or not; for [`notify_one`](Self::notify_one) it takes its
    /// place in the queue at its first poll, or by
    /// [`enable`](Notified::enable).
    ///
    /// # Cancel safety
    ///
    /// A wait that is dropped loses its place in the queue. Was it notified
    /// alone and has not seen it, the notification goes on to the next.
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
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn notified(&self) -> Notified<'_, B> {
        self.notified_at(CallerLocation::capture())
    }

    /// As [`notified`](Self::notified), as one that began at `location`.
    pub(crate) fn notified_at(&self, location: CallerLocation) -> Notified<'_, B> {
        Notified {
            notify: self,
            wait: Wait::new(self, location),
        }
    }

    /// Waits to be notified, holding on to the notify.
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
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn notified_owned(self: Arc<Self>) -> OwnedNotified<B> {
        OwnedNotified {
            wait: Wait::new(&self, CallerLocation::capture()),
            notify: self,
        }
    }

    /// Waits until `predicate` holds. It is asked now, and again each time the
    /// notify lets the wait go on.
    ///
    /// Whoever changes what the predicate looks at notifies afterwards. That is
    /// all there is to get right: the wait begins before the predicate is asked,
    /// so that no notification falls between the two.
    ///
    /// # Cancel safety
    ///
    /// As for [`notified`](Self::notified).
    ///
    /// # Panics
    ///
    /// Where `predicate` does; the next poll asks it again.
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
    #[cfg_attr(feature = "locations", track_caller)]
    pub fn wait_until<F: FnMut() -> bool>(&self, predicate: F) -> WaitUntil<'_, F, B> {
        WaitUntil {
            predicate,
            notified: self.notified(),
            phase: Phase::Check,
        }
    }

    /// Lets the task go on that has waited longest. Where none waits, leaves a
    /// permit for the next that does; there is never more than one.
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

    /// Lets the task go on that has come last, and otherwise is
    /// [`notify_one`](Self::notify_one).
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

    /// Lets all tasks go on whose waits exist now. Leaves no permit.
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

    /// How many waits are queued.
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

    /// How many waits have been notified and not polled since: a number that
    /// stays above zero tells of futures that nobody polls.
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

    /// Where in the source each who waits began to, the first first; also those
    /// who have been notified and have not seen it.
    ///
    /// With the feature `locations`.
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
        // Also where there is a permit: whoever takes it must see what was written
        // before this call.
        let unqueued = self
            .lock
            .update(|bits| (!bits.intersects(QUEUED | NO_PERMIT)).then(|| bits | PERMIT));
        if unqueued.is_err_and(|bits| bits.contains(QUEUED)) {
            self.lock.with(|section| notify(section, strategy));
        }
    }
}

/// Grants one who is queued, or leaves the permit.
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

/// Keeps the bit that says whether anybody is queued.
fn update_queued(bits: &mut Bits, waiters: &Waiters<Grant>) {
    match waiters.is_empty() {
        true => bits.remove(QUEUED),
        false => bits.insert(QUEUED),
    }
}

fn calls(bits: Bits) -> usize {
    bits.get() / CALL
}

/// One call more; the number wraps.
fn next_call(bits: Bits) -> Bits {
    Bits::fitting((bits.get() + CALL) & Bits::MAX)
}

/// A wait, without what it waits on: common to the borrowed and the owned one.
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
    /// Done, by a grant that is handed on where nobody makes use of it.
    const DONE_FIFO: Self = Self(Waiter::sentinel(2));
    const DONE_LIFO: Self = Self(Waiter::sentinel(3));
    /// Done, as far as the section of a poll goes. Should that poll panic, what
    /// was given is not lost: the next poll sees it, or the drop hands it on.
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

    #[inline]
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

    /// Whether it is done; from now on, its user knows.
    #[inline]
    fn observe(&mut self) -> bool {
        match self.stage {
            Stage::GRANTED_FIFO => self.stage = Stage::DONE_FIFO,
            Stage::GRANTED_LIFO => self.stage = Stage::DONE_LIFO,
            _ => {}
        }
        self.stage.is_done()
    }

    /// Whether it is done without a place in the queue.
    #[inline]
    fn try_take_permit<B: Backend>(&self, notify: &Notify<B>) -> bool {
        let taken = notify.lock.update(|bits| {
            let permitted = calls(bits) == self.calls && bits.contains(PERMIT);
            permitted.then(|| bits.without(PERMIT))
        });
        taken.map_or_else(|bits| calls(bits) != self.calls, |_| true)
    }

    /// From its creation as far as it can: to the end, or into the queue.
    #[inline]
    fn step(&mut self, bits: &mut Bits, waiters: &mut Waiters<Grant>) -> Poll<()> {
        if calls(*bits) != self.calls {
            self.stage = Stage::DONE;
            return Poll::Ready(());
        }
        if bits.contains(PERMIT) {
            bits.remove(PERMIT);
            self.stage = Stage::GRANTED_FIFO;
            return Poll::Ready(());
        }
        self.stage = Stage(waiters.push(self.location, Grant::None));
        bits.insert(QUEUED);
        Poll::Pending
    }

    /// Leaves the queue, if it was granted something.
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

    /// Leaves the queue, and hands on what it was granted.
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
/// Polled again after it was ready, it is ready again and takes nothing. One that
/// is leaked keeps its place in the queue, and a notification that goes to it is
/// lost.
#[must_use = "futures do nothing unless polled"]
pub struct Notified<'a, B: Backend = DefaultBackend> {
    notify: &'a Notify<B>,
    wait: Wait,
}

impl<B: Backend> Notified<'_, B> {
    /// Takes its place in the queue now, before the first poll, and answers
    /// whether it has been notified already.
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
    /// notify.notify_one(); // goes to `waits`, and leaves no permit
    /// waits.await;
    /// # });
    /// ```
    pub fn enable(self: Pin<&mut Self>) -> bool {
        let this = self.get_mut();
        this.wait.enable(this.notify)
    }

    /// Hands on what it was granted and has seen, but made no use of.
    pub(crate) fn hand_on(&mut self) {
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

/// The future of [`Notify::notified_owned`]. What is said of [`Notified`] holds.
#[must_use = "futures do nothing unless polled"]
pub struct OwnedNotified<B: Backend = DefaultBackend> {
    notify: Arc<Notify<B>>,
    wait: Wait,
}

impl<B: Backend> OwnedNotified<B> {
    /// As [`Notified::enable`].
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
    /// notify.notify_one(); // goes to `waits`, and leaves no permit
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
/// Polling it again after it was ready panics.
#[must_use = "futures do nothing unless polled"]
pub struct WaitUntil<'a, F, B: Backend = DefaultBackend> {
    predicate: F,
    notified: Notified<'a, B>,
    phase: Phase,
}

/// What the next poll is to do.
enum Phase {
    /// Ask the predicate, which has not been since `notified` was made.
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
                // A predicate that panics is asked again.
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

/// The predicate is never pinned: it is called, not polled.
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
