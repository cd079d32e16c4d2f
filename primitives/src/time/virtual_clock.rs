//! `VirtualClock`: time that passes only when it is told to.
//!
//! ```text
//!            advance(d): + d                advance_to_next, idle: to the deadline
//!   now ───────────────────────▶ now' ─────────────────────────────────────────▶ now''
//!           what is due fires                      what is due fires
//! ```
//!
//! Invariant: the clock's time is the time of its timers, under their lock. So no sleep
//! is ever seen that is due and not ready.

#![forbid(unsafe_code)]

use core::fmt;
use core::time::Duration;

use super::timers::Source;
use super::{Advance, Instant, Timers};
use crate::backend::{Backend, DefaultBackend};

/// A clock that stands still until it is moved, with timers of its own.
///
/// It is a handle: clones move the same clock. Its default granularity is a nanosecond,
/// so that every deadline is met exactly.
///
/// # Examples
///
/// ```
/// use core::task::{Context, Waker};
/// use core::{future::Future, pin::pin};
/// use reveille::time::{Duration, VirtualClock};
///
/// let clock = VirtualClock::by_hand();
/// let mut sleep = pin!(clock.timers().sleep(Duration::from_secs(60)));
/// let mut cx = Context::from_waker(Waker::noop());
/// clock.advance(Duration::from_millis(59_999));
/// assert!(sleep.as_mut().poll(&mut cx).is_pending());
/// clock.advance(Duration::from_millis(1));
/// assert!(sleep.as_mut().poll(&mut cx).is_ready());
/// ```
pub struct VirtualClock<B: Backend = DefaultBackend> {
    timers: Timers<B>,
}

impl VirtualClock {
    /// Creates a clock at its origin that only its methods move.
    #[must_use]
    pub fn by_hand() -> Self {
        Self::starting_at(Instant::ORIGIN, Advance::ByHand)
    }

    /// Creates a clock at its origin that an idle executor moves to the next deadline.
    ///
    /// `LocalExecutor` and `Simulation` of `reveille_executor` do so. A `ThreadPool` does
    /// not, because no worker knows when all others are idle too. There the clock stands
    /// still until it is moved by hand.
    #[must_use]
    pub fn when_idle() -> Self {
        Self::starting_at(Instant::ORIGIN, Advance::WhenIdle)
    }

    /// Creates a clock at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Advance, Duration, Instant, VirtualClock};
    ///
    /// let start = Instant::ORIGIN + Duration::from_secs(3600);
    /// let clock = VirtualClock::starting_at(start, Advance::ByHand);
    /// assert_eq!(clock.now(), start);
    /// ```
    #[must_use]
    pub fn starting_at(start: Instant, advance: Advance) -> Self {
        Self::new_in(start, advance, Duration::from_nanos(1))
    }
}

impl<B: Backend> VirtualClock<B> {
    /// Creates a clock over any backend. `granularity` is that of its timers.
    #[must_use]
    pub fn new_in(start: Instant, advance: Advance, granularity: Duration) -> Self {
        Self {
            timers: Timers::from_source(Source::Virtual(advance), start, granularity, None),
        }
    }

    /// Returns the timers of this clock.
    #[must_use]
    pub const fn timers(&self) -> &Timers<B> {
        &self.timers
    }

    /// Returns the time of this clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.timers.now()
    }

    /// Moves the clock by `duration`, and fires what is due then, in the order of
    /// deadlines. The clock stops at [`Instant::MAX`].
    ///
    /// A task that is woken sees the new time of the clock, not the time of its deadline.
    /// [`advance_to_next`](Self::advance_to_next) stops at each deadline.
    ///
    /// # Panics
    ///
    /// Panics if a waker panics. The clock has been moved then, and all other tasks have
    /// been woken.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, Instant, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// clock.advance(Duration::from_nanos(7));
    /// assert_eq!(clock.now(), Instant::ORIGIN + Duration::from_nanos(7));
    /// ```
    pub fn advance(&self, duration: Duration) {
        self.timers.fire_at(|state| Some(state.now() + duration));
    }

    /// Moves the clock to `instant`, and fires what is due then. If the clock is there or
    /// past it, it does not move.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, Instant, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let second = Instant::ORIGIN + Duration::from_secs(1);
    /// clock.advance_to(second);
    /// clock.advance_to(Instant::ORIGIN);
    /// assert_eq!(clock.now(), second);
    /// ```
    pub fn advance_to(&self, instant: Instant) {
        self.timers.fire_at(|_| Some(instant));
    }

    /// Moves the clock to the next deadline, and fires what is due then. Returns whether
    /// there was a deadline before the end of time.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::task::{Context, Waker};
    /// use core::{future::Future, pin::pin};
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let mut sleep = pin!(clock.timers().sleep(Duration::from_secs(5)));
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(sleep.as_mut().poll(&mut cx).is_pending());
    /// assert!(clock.advance_to_next());
    /// assert_eq!(clock.now(), sleep.deadline());
    /// assert!(!clock.advance_to_next());
    /// ```
    pub fn advance_to_next(&self) -> bool {
        self.timers.fire_next()
    }
}

impl<B: Backend> Clone for VirtualClock<B> {
    fn clone(&self) -> Self {
        Self {
            timers: self.timers.clone(),
        }
    }
}

impl<B: Backend> fmt::Debug for VirtualClock<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualClock")
            .field("now", &self.now())
            .field("waiting", &self.timers.waiting())
            .finish()
    }
}
