//! `Clock`: where the time comes from.
//!
//! Instants of the real clock are counted from an origin. It lies before every instant of
//! `std` that a process can meet:
//!
//! ```text
//!   origin ─────────── 36 years ───────────▶ first use of the clock ──▶ now
//! ```

#![forbid(unsafe_code)]

#[cfg(feature = "std")]
use core::time::Duration;
#[cfg(feature = "std")]
use std::sync::OnceLock;

use super::Instant;

/// A source of the time.
///
/// It never goes back. It is read outside every lock, so it may take a lock of its own.
///
/// # Examples
///
/// A clock of our own, with timers that are fired when it has moved. It moves in steps,
/// so the granularity is the finest. With a coarser one, a deadline that is rounded up
/// past a step would fire at the next step.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use reveille::backend::Native;
/// use reveille::time::{Clock, Duration, Instant, Timers};
///
/// #[derive(Clone, Default)]
/// struct Seconds(Arc<AtomicU64>);
///
/// impl Clock for Seconds {
///     fn now(&self) -> Instant {
///         Instant::ORIGIN + Duration::from_secs(self.0.load(Ordering::Relaxed))
///     }
/// }
///
/// let clock = Seconds::default();
/// let timers = Timers::<Native>::new_in(clock.clone(), Duration::from_nanos(1));
/// let sleep = timers.sleep(Duration::from_secs(5));
/// clock.0.store(5, Ordering::Relaxed);
/// timers.fire();
/// assert!(sleep.is_elapsed());
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Returns the time.
    fn now(&self) -> Instant;
}

/// How a [`VirtualClock`](super::VirtualClock) is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advance {
    /// Only by the methods of the clock.
    ByHand,
    /// Also by an executor of one thread. If it has nothing else to do, it moves the
    /// clock to the next deadline ([`Timers::idle`](super::Timers::idle)). On a pool of
    /// threads the clock stands still: see
    /// [`VirtualClock::when_idle`](super::VirtualClock::when_idle).
    WhenIdle,
}

/// The monotonic clock of the system, `std::time::Instant`.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

#[cfg(feature = "std")]
impl Clock for RealClock {
    #[inline]
    fn now(&self) -> Instant {
        from_std(std::time::Instant::now())
    }
}

#[cfg(feature = "std")]
impl Instant {
    /// Converts an instant of `std` to one of the real clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::Instant;
    ///
    /// let now = std::time::Instant::now();
    /// assert_eq!(Instant::from_std(now).into_std(), now);
    /// ```
    pub fn from_std(instant: std::time::Instant) -> Self {
        from_std(instant)
    }

    /// Converts an instant of the real clock to one of `std`. An instant that `std`
    /// cannot express, which must be one of another clock, becomes the nearest that is
    /// known.
    pub fn into_std(self) -> std::time::Instant {
        into_std(self)
    }
}

#[cfg(feature = "std")]
impl From<std::time::Instant> for Instant {
    fn from(instant: std::time::Instant) -> Self {
        Self::from_std(instant)
    }
}

#[cfg(feature = "std")]
impl From<Instant> for std::time::Instant {
    fn from(instant: Instant) -> Self {
        instant.into_std()
    }
}

/// The instant of `std` that is `BEFORE` after the origin.
#[cfg(feature = "std")]
static ANCHOR: OnceLock<std::time::Instant> = OnceLock::new();

#[cfg(feature = "std")]
const BEFORE: Instant = Instant::from_nanos(1 << 60);

#[cfg(feature = "std")]
fn anchor() -> std::time::Instant {
    *ANCHOR.get_or_init(std::time::Instant::now)
}

#[cfg(feature = "std")]
#[inline]
fn from_std(instant: std::time::Instant) -> Instant {
    let anchor = anchor();
    match instant.checked_duration_since(anchor) {
        Some(after) => BEFORE + after,
        None => BEFORE - anchor.duration_since(instant),
    }
}

#[cfg(feature = "std")]
fn into_std(instant: Instant) -> std::time::Instant {
    let anchor = anchor();
    let (after, before): (Duration, Duration) = (instant - BEFORE, BEFORE - instant);
    let std = match before.is_zero() {
        true => anchor.checked_add(after),
        false => anchor.checked_sub(before),
    };
    std.unwrap_or(anchor)
}
