//! Converts instants to ticks of a wheel, and back.

#![forbid(unsafe_code)]

use core::time::Duration;

use super::Instant;

/// The length of a tick. It is a power of two of nanoseconds, so that converting is a
/// shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    shift: u32,
}

impl Ticks {
    /// Creates ticks that are no longer than `granularity`.
    pub(super) fn of(granularity: Duration) -> Self {
        let nanos = u64::try_from(granularity.as_nanos()).unwrap_or(u64::MAX);
        Self {
            shift: nanos.checked_ilog2().unwrap_or(0),
        }
    }

    pub(super) const fn granularity(self) -> Duration {
        Duration::from_nanos(1 << self.shift)
    }

    /// Returns the tick at which a deadline has passed. It is rounded up, so that nothing
    /// fires early.
    #[inline]
    pub(super) const fn deadline(self, instant: Instant) -> u64 {
        let nanos = instant.nanos();
        let tick = nanos >> self.shift;
        tick + ((tick << self.shift) != nanos) as u64
    }

    /// Returns the tick that contains a time. It is rounded down, except for the end of
    /// time, by which every deadline has passed.
    #[inline]
    pub(super) const fn now(self, instant: Instant) -> u64 {
        match instant.nanos() {
            u64::MAX => u64::MAX,
            nanos => nanos >> self.shift,
        }
    }

    /// Returns the instant at which a tick begins, or `None` if it is not before the end
    /// of time.
    pub(super) fn instant(self, tick: u64) -> Option<Instant> {
        let begins = tick <= u64::MAX >> self.shift;
        let instant = Instant::from_nanos(tick << self.shift);
        (begins && instant < Instant::MAX).then_some(instant)
    }
}
