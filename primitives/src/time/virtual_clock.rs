//! `VirtualClock`: time that passes when it is told to.
//!
//! ```text
//!            advance(d): + d                advance_to_next, idle: to the deadline
//!   now ───────────────────────▶ now' ─────────────────────────────────────────▶ now''
//!           what is due fires                      what is due fires
//! ```
//!
//! Invariant: its time is the time of its timers, under their lock, so no sleep can
//! be seen that is due and not ready.

#![forbid(unsafe_code)]

use core::fmt;
use core::time::Duration;

use super::timers::Source;
use super::{Advance, Instant, Timers};
use crate::backend::{Backend, DefaultBackend};

/// A clock that stands still until somebody moves it, with the timers that it is
/// the time of.
///
/// It is a handle: clones move the same clock. Unless it was made with another,
/// its granularity is a nanosecond, so that every deadline is met exactly.
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
    /// A clock at its origin that is moved by hand only.
    #[must_use]
    pub fn by_hand() -> Self {
        Self::starting_at(Instant::ORIGIN, Advance::ByHand)
    }

    /// A clock at its origin that an idle executor moves to the next deadline.
    ///
    /// `LocalExecutor` and `Simulation` of `reveille_executor` do. A `ThreadPool` does
    /// not, whose workers do not know when all others are idle too: on one it stands
    /// still until it is moved by hand.
    #[must_use]
    pub fn when_idle() -> Self {
        Self::starting_at(Instant::ORIGIN, Advance::WhenIdle)
    }

    /// A clock at any time.
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
    /// A clock over any backend, with the granularity of its timers.
    #[must_use]
    pub fn new_in(start: Instant, advance: Advance, granularity: Duration) -> Self {
        Self {
            timers: Timers::from_source(Source::Virtual(advance), start, granularity, None),
        }
    }

    /// The timers of this clock.
    #[must_use]
    pub const fn timers(&self) -> &Timers<B> {
        &self.timers
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.timers.now()
    }

    /// Moves the clock by exactly `duration`, and fires what is due then, in the order
    /// of deadlines. Past [`Instant::MAX`] it stops there.
    ///
    /// What is woken sees the time that the clock has gone to, not that of its
    /// deadline; [`advance_to_next`](Self::advance_to_next) stops at each.
    ///
    /// # Panics
    ///
    /// Where a waker panics: the clock has been moved then, and all the others have
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

    /// Moves the clock to a time, and fires what is due then. One that has passed
    /// leaves it where it is.
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

    /// Moves the clock to the next deadline, and fires what is due then. Answers
    /// whether there was one, before the end of time.
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
