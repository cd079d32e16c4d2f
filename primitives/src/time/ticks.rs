//! Instants in ticks of a wheel, and back.

#![forbid(unsafe_code)]

use core::time::Duration;

use super::Instant;

/// How long a tick is: a power of two of nanoseconds, so that converting is a
/// shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    shift: u32,
}

impl Ticks {
    /// Ticks that are no longer than `granularity`.
    pub(super) fn of(granularity: Duration) -> Self {
        let nanos = u64::try_from(granularity.as_nanos()).unwrap_or(u64::MAX);
        Self {
            shift: nanos.checked_ilog2().unwrap_or(0),
        }
    }

    pub(super) const fn granularity(self) -> Duration {
        Duration::from_nanos(1 << self.shift)
    }

    /// The tick at which a deadline has passed: rounded up, so that nothing fires
    /// early.
    #[inline]
    pub(super) const fn deadline(self, instant: Instant) -> u64 {
        let nanos = instant.nanos();
        let tick = nanos >> self.shift;
        tick + ((tick << self.shift) != nanos) as u64
    }

    /// The tick that a time is in: rounded down, but for the end of time, by which
    /// every deadline has passed.
    #[inline]
    pub(super) const fn now(self, instant: Instant) -> u64 {
        match instant.nanos() {
            u64::MAX => u64::MAX,
            nanos => nanos >> self.shift,
        }
    }

    /// The instant at which a tick begins. None where it does not come before the
    /// end of time.
    pub(super) fn instant(self, tick: u64) -> Option<Instant> {
        let begins = tick <= u64::MAX >> self.shift;
        let instant = Instant::from_nanos(tick << self.shift);
        (begins && instant < Instant::MAX).then_some(instant)
    }
}
