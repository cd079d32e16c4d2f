//! `Timers`: a wheel under a lock, a clock, and their drivers.
//!
//! ```text
//!   Sleep::poll ──registers, or is due──▶ ┌────────────────┐ ◀──fires what is due── driver
//!                                         │ wheel, drivers │ ◀──registers, until──    │
//!   Sleep::poll ──nearer deadline───────▶ └────────────────┘ ──wakes───────────▶ parked
//! ```
//!
//! Drivers are in `driver`: the loop of an executor, or a thread. This file knows no
//! future. The methods of `Timers` that create a future are in the file of that future.
//!
//! Invariant: a sleep is ready if the *wheel's* time has reached its deadline, or if a
//! poll has read that from a real clock. The wheel's time is under the lock with the
//! wakers (P1), and moves only in the sections that fire. A sleep that is due is ready at
//! once and never enters the wheel. So firing ends, whatever the wakers do.

#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::panic::RefUnwindSafe;
use core::time::Duration;

use super::drivers::Drivers;
use super::ticks::Ticks;
use super::wheel::{Timer, Wheel};
use super::{Advance, Clock, Instant};
use crate::backend::{Backend, DefaultBackend};
use crate::protocol::{Bits, Section, StateLock, WakeList, WakerSlot};

/// Timers: sleeps, timeouts and intervals on one clock.
///
/// It is a handle: clones share the same timers. To test code that waits, give it the
/// timers of a [`VirtualClock`](super::VirtualClock). No global state is involved.
///
/// Timers have to be [driven](Self::driver), by an executor or by a thread of their own
/// ([`threaded`](Self::threaded)). Timers on a virtual clock fire when the clock is
/// moved.
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, Timers};
///
/// let timers = Timers::threaded();
/// let start = timers.now();
/// reveille_executor::block_on(timers.sleep(Duration::from_millis(2)));
/// assert!(timers.now() - start >= Duration::from_millis(2));
/// ```
pub struct Timers<B: Backend = DefaultBackend> {
    pub(super) inner: Arc<Inner<B>>,
}

pub(super) struct Inner<B: Backend> {
    pub(super) lock: StateLock<State, B>,
    pub(super) source: Source,
    pub(super) ticks: Ticks,
    /// Starts the thread that drives if there is no driver, in its slot.
    pub(super) start: Option<Start<B>>,
}

/// The clock is only read, outside the lock.
impl<B: Backend> RefUnwindSafe for Inner<B> {}

/// Starts a thread that drives timers, in a slot. Returns an error if the thread could
/// not be started.
pub(super) type Start<B> = fn(&Timers<B>, usize) -> Result<(), String>;

/// A sleep may wait: the wheel was not empty at the last section that fired, or is not
/// empty since.
pub(super) const WAITING: Bits = Bits::new(1);

/// Where the time comes from.
pub(super) enum Source {
    /// It is read from a clock.
    Clock(Box<dyn Clock>),
    /// It is [`State::now`], which the methods of the clock move.
    Virtual(Advance),
}

pub(super) struct State {
    pub(super) wheel: Wheel<WakerSlot>,
    /// The time, if it is virtual.
    now: Instant,
    pub(super) drivers: Drivers,
}

/// The default granularity, 2^16 ns.
pub(super) const DEFAULT_GRANULARITY: Duration = Duration::from_nanos(1 << 16);

impl Timers {
    /// Creates timers on a clock. A [driver](Self::driver), or calls of
    /// [`fire`](Self::fire), have to fire them.
    #[must_use]
    pub fn new(clock: impl Clock) -> Self {
        Self::new_in(clock, DEFAULT_GRANULARITY)
    }
}

impl<B: Backend> Timers<B> {
    /// Creates timers on a clock, over any backend and with any granularity.
    ///
    /// The granularity is rounded down to a power of two of nanoseconds. Deadlines are
    /// rounded up to ticks of this length. Finer ticks are less late. Timers of the same
    /// tick share one wake-up of the driver.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::backend::Native;
    /// use reveille::time::{Duration, RealClock, Timers};
    ///
    /// let timers = Timers::<Native>::new_in(RealClock, Duration::from_micros(10));
    /// assert_eq!(timers.granularity(), Duration::from_nanos(1 << 13));
    /// ```
    #[must_use]
    pub fn new_in(clock: impl Clock, granularity: Duration) -> Self {
        let now = clock.now();
        Self::from_source(Source::Clock(Box::new(clock)), now, granularity, None)
    }

    pub(super) fn from_source(
        source: Source,
        now: Instant,
        granularity: Duration,
        start: Option<Start<B>>,
    ) -> Self {
        let ticks = Ticks::of(granularity);
        let state = State {
            wheel: Wheel::new(ticks.now(now)),
            now,
            drivers: Drivers::new(start.is_some()),
        };
        Self {
            inner: Arc::new(Inner {
                lock: StateLock::new_in(Bits::EMPTY, state),
                source,
                ticks,
                start,
            }),
        }
    }

    /// Returns the time.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Instant {
        match &self.inner.source {
            Source::Clock(clock) => clock.now(),
            Source::Virtual(_) => self.inner.lock.look(State::now),
        }
    }

    /// Returns the length of a tick. Deadlines are rounded up to ticks.
    #[must_use]
    pub fn granularity(&self) -> Duration {
        self.inner.ticks.granularity()
    }

    /// Returns the number of sleeps that wait, or that have been woken and not polled
    /// since.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let sleep = clock.timers().sleep(Duration::from_secs(1));
    /// assert_eq!(clock.timers().waiting(), 0); // it has not been polled
    /// ```
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inner.lock.with(|section| section.state.wheel.len())
    }

    /// Fires what is due by the clock, in the order of deadlines. On a virtual clock it
    /// does nothing, because moving the clock fires.
    ///
    /// If a waker panics, all others are still woken. The panic then resumes in the
    /// caller.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Waker};
    /// use core::{future::Future, pin::pin};
    /// use reveille::time::{Duration, RealClock, Timers};
    ///
    /// let timers = Timers::new(RealClock);
    /// let mut sleep = pin!(timers.sleep(Duration::from_millis(1)));
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(sleep.as_mut().poll(&mut cx).is_pending());
    /// std::thread::sleep(Duration::from_millis(2));
    /// timers.fire();
    /// assert!(sleep.as_mut().poll(&mut cx).is_ready());
    /// ```
    pub fn fire(&self) {
        if let Source::Clock(clock) = &self.inner.source {
            let now = clock.now();
            self.fire_at(|_| Some(now));
        }
    }

    /// Returns whether a real clock has reached a deadline. On a virtual clock it returns
    /// `false`: there the wheel's time is the clock's, and the section compares that.
    #[inline]
    pub(super) fn has_passed(&self, deadline: Instant) -> bool {
        match &self.inner.source {
            Source::Clock(clock) => deadline <= clock.now(),
            Source::Virtual(_) => false,
        }
    }

    /// Moves a virtual clock that is [moved when idle](Advance::WhenIdle) to the next
    /// deadline, and fires what is due. An executor calls this when it has nothing else
    /// to do. Returns whether the clock was moved. If so, a task may be ready.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::when_idle();
    /// let sleeping = clock.timers().sleep(Duration::from_secs(86_400));
    /// let mut sleeping = std::pin::pin!(sleeping);
    /// let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// while sleeping.as_mut().poll(&mut cx).is_pending() {
    ///     assert!(clock.timers().idle(), "a deadline is left");
    /// }
    /// # use std::future::Future;
    /// ```
    pub fn idle(&self) -> bool {
        match self.inner.source {
            Source::Virtual(Advance::WhenIdle) => self.fire_next(),
            _ => false,
        }
    }

    /// Returns the first deadline that has not fired, at the end of its tick. Returns
    /// `None` if there is none before the end of time.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// assert_eq!(clock.timers().next_deadline(), None);
    /// ```
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let next = self
            .inner
            .lock
            .with(|section| section.state.wheel.next_deadline());
        self.inner.ticks.instant(next?)
    }

    /// Moves a virtual clock to the next deadline, and fires. Returns whether there was a
    /// deadline before the end of time.
    pub(super) fn fire_next(&self) -> bool {
        self.fire_at(|state| self.inner.ticks.instant(state.wheel.next_deadline()?))
    }

    /// Moves the time to the result of `to`, which is called in the first section. Then
    /// fires what is due, in as many sections as it takes. Returns whether `to` returned
    /// a time.
    pub(super) fn fire_at(&self, to: impl FnOnce(&State) -> Option<Instant>) -> bool {
        let ticks = self.inner.ticks;
        let mut to = Some(to);
        let mut due = None;
        self.inner.lock.rounds(|section| {
            let Section { bits, state, wakes } = section;
            if state.wheel.is_empty() {
                bits.remove(WAITING);
            }
            if let Some(to) = to.take() {
                due = to(state).map(|to| {
                    state.now = state.now.max(to);
                    ticks.now(to)
                });
            }
            due.is_some_and(|due| state.fire(due, wakes))
        });
        due.is_some()
    }

    /// Returns the tick at which a deadline has passed.
    #[inline]
    pub(super) fn tick(&self, deadline: Instant) -> u64 {
        self.inner.ticks.deadline(deadline)
    }

    #[inline]
    pub(super) fn ticks(&self) -> Ticks {
        self.inner.ticks
    }
}

impl State {
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// Takes out the wakers that are due by `due`, as many as fit. Returns whether more
    /// are left.
    fn fire(&mut self, due: u64, wakes: &mut WakeList) -> bool {
        while !wakes.is_full() {
            let Some(timer) = self.wheel.pop(due) else {
                return false;
            };
            wakes.wake(&mut self.wheel[timer]);
        }
        true
    }

    /// Removes a timer, and discards its waker.
    pub(super) fn remove(&mut self, timer: Timer, wakes: &mut WakeList) {
        wakes.discard(&mut self.wheel[timer]);
        self.wheel.remove(timer);
    }
}

/// Wakes parked drivers, because nothing is left to drive.
impl<B: Backend> Drop for Inner<B> {
    fn drop(&mut self) {
        self.lock
            .rounds(|section| section.state.drivers.wake_all(section.wakes));
    }
}

impl<B: Backend> Clone for Timers<B> {
    #[inline]
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<B: Backend> fmt::Debug for Timers<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("granularity", &self.granularity())
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}
