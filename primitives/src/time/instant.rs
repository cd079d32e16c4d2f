//! `Instant`: a point in time, of whichever clock.

#![forbid(unsafe_code)]

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};
use core::time::Duration;

/// A point in time: nanoseconds since the origin of a clock.
///
/// Real clocks share one origin, which lies before the process began; a virtual
/// clock has its own. Instants of different clocks can be compared like any two
/// numbers, and it means as little.
///
/// Arithmetic saturates: it neither wraps nor panics. [`Instant::MAX`], which lies
/// 584 years after the origin, is what everything later becomes, and a timer for
/// then is one that never fires.
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

    /// The last instant there is.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant that lies so long after the origin of its clock.
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

    /// How long after the origin of its clock it is.
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

    /// How much time has passed since then, by the timers that are
    /// [current](super::Timers::current).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, Instant};
    ///
    /// assert!(Instant::now().elapsed() < Duration::from_secs(60));
    /// ```
    #[cfg(feature = "std")]
    pub fn elapsed(&self) -> Duration {
        Self::now() - *self
    }

    /// Now, by the timers that are [current](super::Timers::current).
    #[cfg(feature = "std")]
    pub fn now() -> Self {
        super::current::with(super::Timers::now)
    }

    /// An instant of `std`, as one of the real clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::Instant;
    ///
    /// let now = std::time::Instant::now();
    /// assert_eq!(Instant::from_std(now).into_std(), now);
    /// ```
    #[cfg(feature = "std")]
    pub fn from_std(instant: std::time::Instant) -> Self {
        super::clock::from_std(instant)
    }

    /// An instant of the real clock, as one of `std`. One that `std` cannot
    /// express, which is one of another clock, is taken for the nearest that is
    /// known.
    #[cfg(feature = "std")]
    pub fn into_std(self) -> std::time::Instant {
        super::clock::into_std(self)
    }

    /// How much time has passed since an earlier instant, and zero since a later
    /// one.
    pub const fn duration_since(&self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }

    /// How much time has passed since an earlier instant, or `None` since a later
    /// one.
    pub fn checked_duration_since(&self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }

    /// How much time has passed since an earlier instant, and zero since a later
    /// one.
    pub const fn saturating_duration_since(&self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The instant so much later, or `None` past [`MAX`](Self::MAX).
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

    /// The instant so much earlier, or `None` before the origin.
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

/// Zero where the other is the later one.
impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
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

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instant")
            .field(&self.since_origin())
            .finish()
    }
}
