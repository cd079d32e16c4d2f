//! `Instant`: a point in time of a clock.
//!
//! `Instant::now` is in `current`, and conversions from and to `std` are in `clock`.

#![forbid(unsafe_code)]

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};
use core::time::Duration;

/// A point in time, in nanoseconds since the origin of a clock.
///
/// Real clocks share one origin, which lies before the process began. A virtual clock has
/// its own. Comparing instants of different clocks is possible, but has no meaning.
///
/// Arithmetic saturates: it neither wraps nor panics. Everything later than
/// [`Instant::MAX`], 584 years after the origin, becomes [`Instant::MAX`]. A timer with
/// that deadline never fires.
///
/// # Differences
///
/// Unlike `tokio::time::Instant`, it works without `std`, and `+` and `-` saturate
/// instead of panicking. [`ORIGIN`](Self::ORIGIN), [`MAX`](Self::MAX),
/// [`from_origin`](Self::from_origin) and [`since_origin`](Self::since_origin) are
/// additions.
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, Instant};
///
/// let start = Instant::now();
/// let deadline = start + Duration::from_millis(5);
/// assert_eq!(deadline - start, Duration::from_millis(5));
/// assert_eq!(start - deadline, Duration::ZERO);
/// assert_eq!(start + Duration::MAX, Instant::MAX);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin of its clock.
    pub const ORIGIN: Self = Self(0);

    /// The last instant.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the instant that is `duration` after the origin of its clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, Instant};
    ///
    /// let second = Duration::from_secs(1);
    /// assert_eq!(Instant::from_origin(second), Instant::ORIGIN + second);
    /// ```
    #[must_use]
    pub const fn from_origin(duration: Duration) -> Self {
        let nanos = duration.as_nanos();
        // `u64::try_from` is not `const`.
        match nanos > u64::MAX as u128 {
            true => Self::MAX,
            false => Self(nanos as u64),
        }
    }

    /// Returns the time from the origin of its clock to this instant.
    #[must_use]
    pub const fn since_origin(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    pub(super) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub(super) const fn nanos(self) -> u64 {
        self.0
    }

    /// Returns the time that has passed since an earlier instant. Returns zero if
    /// `earlier` is later.
    pub const fn duration_since(&self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }

    /// Returns the time that has passed since an earlier instant. Returns `None` if
    /// `earlier` is later.
    pub fn checked_duration_since(&self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }

    /// Returns the time that has passed since an earlier instant. Returns zero if
    /// `earlier` is later.
    pub const fn saturating_duration_since(&self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the instant that is `duration` later, or `None` past [`MAX`](Self::MAX).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, Instant};
    ///
    /// let last = Instant::ORIGIN.checked_add(Duration::from_nanos(u64::MAX));
    /// assert_eq!(last, Some(Instant::MAX));
    /// assert_eq!(Instant::MAX.checked_add(Duration::from_nanos(1)), None);
    /// ```
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Self> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        self.0.checked_add(nanos).map(Self)
    }

    /// Returns the instant that is `duration` earlier, or `None` before the origin.
    #[must_use]
    pub fn checked_sub(&self, duration: Duration) -> Option<Self> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        self.0.checked_sub(nanos).map(Self)
    }
}

/// Saturates at [`Instant::MAX`].
impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(Self::from_origin(duration).0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// Saturates at [`Instant::ORIGIN`].
impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(Self::from_origin(duration).0))
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

/// Returns zero if the other instant is later.
impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instant")
            .field(&self.since_origin())
            .finish()
    }
}
