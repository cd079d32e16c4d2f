//! `Interval`: ticks that are a period apart.
//!
//! ```text
//!   due at d ──polled at t ≥ d──▶ ticks, as d ──▶ due at d + period      in time
//!                                             ├─▶ due at d + period      late: Burst
//!                                             ├─▶ due at t + period      late: Delay
//!                                             └─▶ due at d + n·period > t  late: Skip
//! ```
//!
//! Invariant: a tick returns the instant at which it was due, and is returned once.

#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use super::{Instant, Sleep, Timers};
use crate::backend::{Backend, DefaultBackend};

/// What an [`Interval`] does after a late tick.
///
/// A tick is late if it is taken at any time after it was due. There is no tolerance.
/// `Burst` and `Skip` need none, because a tick that is less than a period late moves no
/// other. `Delay` promises a full period between ticks.
///
/// # Differences
///
/// tokio ignores a delay of up to 5 ms. So its ticks under `Delay` can be closer than a
/// period, and with a period that short no tick is ever late.
///
/// # Examples
///
/// With a period of 10 from 0, and ticks taken at 0, 25, 26, 30 and 41:
///
/// | | returns the ticks of |
/// | --- | --- |
/// | `Burst` | 0, 10, 20, 30, 40 |
/// | `Delay` | 0, 10, and at 41 the tick of 35 |
/// | `Skip` | 0, 10, 30, 40 |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MissedTickBehavior {
    /// Ticks without a pause until it has caught up.
    #[default]
    Burst,
    /// Ticks a period after the late tick was taken, and each period after that.
    Delay,
    /// Skips the missed ticks, and continues at the next multiple of the period.
    Skip,
}

impl MissedTickBehavior {
    /// Returns when the next tick is due, if the last was due at `due` and taken at
    /// `now`.
    fn next(self, due: Instant, now: Instant, period: Duration) -> Instant {
        match self {
            Self::Burst => due + period,
            Self::Delay => now + period,
            Self::Skip => {
                let late = (now - due).as_nanos();
                // Less than a period, and at most the delay, so it fits into a `u64`.
                let past = (late % period.as_nanos()) as u64;
                now - Duration::from_nanos(past) + period
            }
        }
    }
}

impl<B: Backend> Timers<B> {
    /// Creates an interval that ticks now, and each time `period` has passed. See
    /// [`time::interval`](super::interval).
    ///
    /// # Panics
    ///
    /// Panics if `period` is zero.
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

    /// Creates an interval that ticks at `start`, and each time `period` has passed. See
    /// [`time::interval_at`](super::interval_at).
    ///
    /// # Panics
    ///
    /// Panics if `period` is zero.
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

/// Ticks that are a period apart. See [`interval`](super::interval).
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

    /// Waits for the next tick. Returns the instant at which it was due.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no tick.
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

    /// Polls for the next tick. Returns the instant at which it was due.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        let due = self.sleep.deadline();
        let mut now = self.sleep.timers().now();
        if now < due {
            if Pin::new(&mut self.sleep).poll(cx).is_pending() {
                return Poll::Pending;
            }
            // The tick has become due since the clock was read.
            now = due;
        }
        let next = self.missed_tick_behavior.next(due, now, self.period);
        self.sleep.restart(next);
        Poll::Ready(due)
    }

    /// Resets the interval: the next tick is due a period from now.
    ///
    /// A task that waits for a tick goes on waiting, and is woken when the tick is due.
    /// This holds for each of the resets.
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

    /// Resets the interval: the next tick is due now.
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

    /// Resets the interval: the next tick is due `after` from now.
    pub fn reset_after(&mut self, after: Duration) {
        self.reset_at(self.sleep.timers().now() + after);
    }

    /// Resets the interval: the next tick is due at `deadline`.
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

    /// Returns the period.
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// Returns what the interval does after a late tick.
    pub const fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed_tick_behavior
    }

    /// Sets what the interval does after a late tick.
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
