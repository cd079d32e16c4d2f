//! `Interval`: ticks, a period apart.
//!
//! ```text
//!   due at d ──polled at t ≥ d──▶ ticks, as d ──▶ due at d + period      in time
//!                                             ├─▶ due at d + period      late: Burst
//!                                             ├─▶ due at t + period      late: Delay
//!                                             └─▶ due at d + n·period > t  late: Skip
//! ```
//!
//! Invariant: a tick answers the instant at which it was due, and ticks once.

#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use super::{Instant, Sleep, Timers};
use crate::backend::{Backend, DefaultBackend};

/// What an [`Interval`] does when a tick is taken late.
///
/// A tick is late where it is taken at any time after it was due. There is no
/// tolerance: under `Burst` and `Skip` none is needed, since a tick that is less
/// than a period late moves nothing, and `Delay` promises a period between ticks.
///
/// # Differences
///
/// tokio's overlooks what is up to 5 ms late, so that under `Delay` ticks come
/// closer than a period, and with periods that short none is ever late.
///
/// # Examples
///
/// With a period of 10 from 0, taken at 0, 25, 26, 30 and 41:
///
/// | | takes the ticks of |
/// | --- | --- |
/// | `Burst` | 0, 10, 20, 30, 40 |
/// | `Delay` | 0, 10, and at 41 that of 35 |
/// | `Skip` | 0, 10, 30, 40 |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MissedTickBehavior {
    /// Ticks as fast as it is asked, until it has caught up.
    #[default]
    Burst,
    /// Ticks a period after the late tick was taken, and so on from there.
    Delay,
    /// Leaves out what was missed, and goes on at the next multiple of the period.
    Skip,
}

impl MissedTickBehavior {
    /// When the next tick is due, of which the last was due at `due` and taken at
    /// `now`.
    fn next(self, due: Instant, now: Instant, period: Duration) -> Instant {
        match self {
            Self::Burst => due + period,
            Self::Delay => now + period,
            Self::Skip => {
                let late = (now - due).as_nanos();
                // Less than a period, and no more than it was late: it fits.
                let past = (late % period.as_nanos()) as u64;
                now - Duration::from_nanos(past) + period
            }
        }
    }
}

impl<B: Backend> Timers<B> {
    /// Ticks now, and each time `period` has passed. See
    /// [`time::interval`](super::interval).
    ///
    /// # Panics
    ///
    /// Panics where the period is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let mut interval = clock.timers().interval(Duration::from_secs(1));
    /// assert_eq!(reveille_executor::block_on(interval.tick()), clock.now());
    /// ```
    #[track_caller]
    #[must_use]
    pub fn interval(&self, period: Duration) -> Interval<B> {
        self.interval_at(self.now(), period)
    }

    /// Ticks at `start`, and each time `period` has passed. See
    /// [`time::interval_at`](super::interval_at).
    ///
    /// # Panics
    ///
    /// Panics where the period is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let second = Duration::from_secs(1);
    /// let mut interval = clock.timers().interval_at(clock.now() + second, second);
    /// clock.advance(second);
    /// assert_eq!(reveille_executor::block_on(interval.tick()), clock.now());
    /// ```
    #[track_caller]
    #[must_use]
    pub fn interval_at(&self, start: Instant, period: Duration) -> Interval<B> {
        Interval::new(self.clone(), start, period)
    }
}

/// Ticks, a period apart. See [`interval`](super::interval).
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, Instant, VirtualClock};
///
/// let clock = VirtualClock::by_hand();
/// let mut interval = clock.timers().interval(Duration::from_secs(1));
/// # reveille_executor::block_on(async {
/// assert_eq!(interval.tick().await, Instant::ORIGIN);
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(interval.tick().await, clock.now());
/// # });
/// ```
pub struct Interval<B: Backend = DefaultBackend> {
    sleep: Sleep<B>,
    period: Duration,
    missed_tick_behavior: MissedTickBehavior,
}

impl<B: Backend> Interval<B> {
    #[track_caller]
    pub(super) fn new(timers: Timers<B>, start: Instant, period: Duration) -> Self {
        assert!(
            !period.is_zero(),
            "an interval needs a period that is not zero"
        );
        Self {
            sleep: Sleep::unread(timers, start),
            period,
            missed_tick_behavior: MissedTickBehavior::default(),
        }
    }

    /// Waits for the next tick, and answers the instant at which it was due.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is ready, it takes no tick.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let second = Duration::from_secs(1);
    /// let mut interval = clock.timers().interval(second);
    /// # reveille_executor::block_on(async {
    /// let first = interval.tick().await;
    /// clock.advance(second);
    /// assert_eq!(interval.tick().await, first + second);
    /// # });
    /// ```
    pub fn tick(&mut self) -> Tick<'_, B> {
        Tick {
            interval: self,
            polled: false,
        }
    }

    /// Polls for the next tick.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        let due = self.sleep.deadline();
        let mut now = self.sleep.timers().now();
        if now < due {
            if Pin::new(&mut self.sleep).poll(cx).is_pending() {
                return Poll::Pending;
            }
            // It has become due since the clock was read.
            now = due;
        }
        let next = self.missed_tick_behavior.next(due, now, self.period);
        self.sleep.restart(next);
        Poll::Ready(due)
    }

    /// Makes the next tick due a period from now.
    ///
    /// As after each of the resets, a task that waits for a tick goes on waiting,
    /// and is woken when the tick is due.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let second = Duration::from_secs(1);
    /// let mut interval = clock.timers().interval(second);
    /// clock.advance(second / 2);
    /// interval.reset();
    /// clock.advance(second);
    /// assert_eq!(reveille_executor::block_on(interval.tick()), clock.now());
    /// ```
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// Makes the next tick due now.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let hour = Duration::from_secs(3600);
    /// let mut interval = clock.timers().interval_at(clock.now() + hour, hour);
    /// interval.reset_immediately();
    /// assert_eq!(reveille_executor::block_on(interval.tick()), clock.now());
    /// ```
    pub fn reset_immediately(&mut self) {
        self.reset_after(Duration::ZERO);
    }

    /// Makes the next tick due when `after` has passed from now.
    pub fn reset_after(&mut self, after: Duration) {
        self.reset_at(self.sleep.timers().now() + after);
    }

    /// Makes the next tick due at `deadline`.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, Instant, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let mut interval = clock.timers().interval(Duration::from_secs(10));
    /// interval.reset_at(Instant::ORIGIN + Duration::from_secs(3));
    /// clock.advance(Duration::from_secs(3));
    /// assert_eq!(reveille_executor::block_on(interval.tick()), clock.now());
    /// ```
    pub fn reset_at(&mut self, deadline: Instant) {
        self.sleep.reset_to(deadline);
    }

    /// The period.
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// What it does when a tick is taken late.
    pub const fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed_tick_behavior
    }

    /// Says what to do when a tick is taken late.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, Instant, MissedTickBehavior, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let mut interval = clock.timers().interval(Duration::from_secs(10));
    /// interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    /// clock.advance(Duration::from_secs(25));
    /// # reveille_executor::block_on(async {
    /// assert_eq!(interval.tick().await, Instant::ORIGIN);
    /// clock.advance(Duration::from_secs(5));
    /// assert_eq!(interval.tick().await, clock.now());
    /// # });
    /// ```
    pub const fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed_tick_behavior = behavior;
    }
}

impl<B: Backend> fmt::Debug for Interval<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval")
            .field("next", &self.sleep.deadline())
            .field("period", &self.period)
            .field("missed_tick_behavior", &self.missed_tick_behavior)
            .finish()
    }
}

/// The future of [`Interval::tick`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Tick<'a, B: Backend = DefaultBackend> {
    interval: &'a mut Interval<B>,
    polled: bool,
}

impl<B: Backend> Future for Tick<'_, B> {
    type Output = Instant;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        self.polled = true;
        self.interval.poll_tick(cx)
    }
}

/// Discards the waker that a pending poll has left in the interval.
impl<B: Backend> Drop for Tick<'_, B> {
    fn drop(&mut self) {
        if self.polled {
            self.interval.sleep.unregister();
        }
    }
}
