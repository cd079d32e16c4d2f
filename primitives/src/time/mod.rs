//! Time: sleeps, timeouts, intervals and queues of delays, on any executor.
//!
//! ```
//! use reveille::time::{Duration, sleep, timeout};
//!
//! # reveille_executor::block_on(async {
//! sleep(Duration::from_millis(1)).await;
//! let late = timeout(Duration::from_millis(1), std::future::pending::<()>());
//! assert!(late.await.is_err());
//! # });
//! ```
//!
//! Names and semantics are those of `tokio::time`, and of `tokio_util::time` for the
//! [`DelayQueue`].
//!
//! | | |
//! | --- | --- |
//! | [`sleep`], [`sleep_until`] | wait |
//! | [`timeout`], [`timeout_at`] | wait for a future, but not for ever |
//! | [`interval`], [`interval_at`] | tick |
//! | [`DelayQueue`] | holds values, each of which expires after a delay |
//! | [`Timers`] | all of these on a given clock |
//! | [`RealClock`], [`VirtualClock`], [`Clock`] | the clock of the system, one that a test or an executor moves, and the trait |
//! | [`Driver`] | fires timers |
//! | [`wheel`] | the timing wheel under all of these |
//!
//! # Clocks
//!
//! Nothing here needs global state: [`Timers`] are a value, and have a clock. The
//! functions of this module use the timers that are [entered](Timers::enter) on the
//! thread, as those of an executor are. If none are entered, they use the timers of the
//! process, on the real clock.
//!
//! The functions find their timers when they are called, not when the future is polled.
//! So write `block_on(async { sleep(d).await })`, not `block_on(sleep(d))`. The latter
//! sleeps on the timers that were current before, not on those of the executor.
//!
//! # Drivers
//!
//! Timers have to be driven. An executor with a loop of its own has a [`Driver`], and
//! sleeps until the deadline that each turn returns. If there is no driver, a thread
//! drives. It starts when the first sleep waits. So everything works without set-up on
//! tokio, smol, futures, or a bare `block_on`. If the system refuses that thread, the
//! poll [panics](Sleep#panics).
//!
//! # Precision
//!
//! No timer fires early. Deadlines are rounded up to ticks of 2^16 ns (66 µs), or of the
//! length given to [`Timers::new_in`]. To that comes the time that the system takes to
//! wake a thread. Finer ticks are less late, and wake the driver more often. These are
//! the figures of 200,000 sleeps of one to two milliseconds, 200 at a time, on a busy
//! machine with two processors:
//!
//! | ticks of | median delay | processor time per sleep |
//! | --- | --- | --- |
//! | 1 µs | 94 µs | 5.4 µs |
//! | 16 µs | 103 µs | 5.7 µs |
//! | 66 µs, the default | 132 µs | 4.4 µs |
//! | 262 µs | 258 µs | 2.6 µs |
//! | 1049 µs, about tokio's | 657 µs | 1.0 µs |
//!
//! They come from `cargo run --profile bench -p reveille-benches --bin timers`.
//!
//! Deadlines past [`Instant::MAX`] never come. Nothing wraps.
//!
//! Without the feature `std` there are the wheel, and [`Timers`] on a [`VirtualClock`] or
//! a [`Clock`] of your own. There are no current timers.
//!
//! # Differences from `tokio::time`
//!
//! - It works without a runtime. Outside of one, a sleep is on the timers of the process;
//!   in tokio it panics.
//! - There is no `pause`, `resume` or `advance`. Use a [`VirtualClock`] instead. Pausing
//!   tokio's time does not move these timers.
//! - Deadlines are rounded up to ticks of 66 µs, or of the length given to
//!   [`Timers::new_in`]. tokio rounds up to milliseconds.
//! - [`MissedTickBehavior`] has no tolerance. See [its
//!   differences](MissedTickBehavior#differences).
//! - No timer consumes a budget.
//! - A sleep whose deadline has passed is ready, and [`is_elapsed`](Sleep::is_elapsed),
//!   even before its first poll. tokio's is elapsed once the driver has fired it.
//! - No operation returns [`error::Error`]. If the system refuses the thread that drives
//!   timers, a poll [panics](Sleep#panics).
//!
//! [`Instant`] and [`DelayQueue`] list their own.

#![forbid(unsafe_code)]

mod clock;
#[cfg(feature = "std")]
mod current;
pub mod delay_queue;
mod driver;
mod drivers;
pub mod error;
mod instant;
mod interval;
mod sleep;
#[cfg(feature = "std")]
mod thread;
mod ticks;
mod timeout;
mod timers;
mod virtual_clock;
pub mod wheel;

pub use core::time::Duration;

#[cfg(feature = "std")]
pub use self::clock::RealClock;
pub use self::clock::{Advance, Clock};
#[cfg(feature = "std")]
pub use self::current::Entered;
pub use self::delay_queue::{DelayQueue, Expired, Key, NextExpired};
pub use self::driver::Driver;
pub use self::instant::Instant;
pub use self::interval::{Interval, MissedTickBehavior, Tick};
pub use self::sleep::Sleep;
#[cfg(feature = "std")]
pub use self::timeout::FutureExt;
pub use self::timeout::Timeout;
pub use self::timers::Timers;
pub use self::virtual_clock::VirtualClock;

/// Waits for `duration`.
///
/// The time begins with this call, not with the first poll. The timers are those that are
/// [current](Timers::current) here, so call it inside the future that an executor runs.
/// See [Clocks](self#clocks).
///
/// # Cancel safety
///
/// Dropping the future cancels the sleep.
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, Instant, sleep};
///
/// # reveille_executor::block_on(async {
/// let start = Instant::now();
/// sleep(Duration::from_millis(2)).await;
/// assert!(start.elapsed() >= Duration::from_millis(2));
/// # });
/// ```
#[cfg(feature = "std")]
pub fn sleep(duration: Duration) -> Sleep {
    current::with(|timers| timers.sleep(duration))
}

/// Waits until `deadline`, on the timers that are [current](Timers::current) at this
/// call, as [`sleep`] does.
///
/// # Cancel safety
///
/// Dropping the future cancels the sleep.
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, Instant, sleep_until};
///
/// let deadline = Instant::now() + Duration::from_millis(2);
/// reveille_executor::block_on(sleep_until(deadline));
/// assert!(Instant::now() >= deadline);
/// ```
#[cfg(feature = "std")]
pub fn sleep_until(deadline: Instant) -> Sleep {
    current::with(|timers| timers.sleep_until(deadline))
}

/// Waits for a future, for at most `duration`.
///
/// The future is polled before the time is checked. If it is ready, its output is
/// returned, however late.
///
/// # Cancel safety
///
/// It is that of the future, which is dropped with the timeout.
///
/// # Errors
///
/// Returns [`Elapsed`](error::Elapsed) if the time has passed before the future was
/// ready.
///
/// # Examples
///
/// ```
/// use reveille::oneshot;
/// use reveille::time::{Duration, timeout};
///
/// # reveille_executor::block_on(async {
/// let (tx, rx) = oneshot::channel::<u32>();
/// assert!(timeout(Duration::from_millis(1), rx).await.is_err());
/// assert_eq!(tx.send(7), Err(7)); // the receiver has been dropped
/// # });
/// ```
#[cfg(feature = "std")]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    current::with(|timers| timers.timeout(duration, future))
}

/// Waits for a future, until `deadline` at most.
///
/// # Cancel safety
///
/// As for [`timeout`].
///
/// # Errors
///
/// As for [`timeout`].
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, Instant, timeout_at};
///
/// let deadline = Instant::now() + Duration::from_secs(60);
/// let ready = timeout_at(deadline, async { 7 });
/// assert_eq!(reveille_executor::block_on(ready), Ok(7));
/// ```
#[cfg(feature = "std")]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    current::with(|timers| timers.timeout_at(deadline, future))
}

/// Creates an interval that ticks now, and each time `period` has passed.
///
/// # Panics
///
/// Panics if `period` is zero.
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, interval};
///
/// # reveille_executor::block_on(async {
/// let period = Duration::from_millis(1);
/// let mut interval = interval(period);
/// let first = interval.tick().await; // at once
/// assert_eq!(interval.tick().await - first, period);
/// # });
/// ```
#[cfg(feature = "std")]
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    let timers = Timers::current();
    timers.interval(period)
}

/// Creates an interval that ticks at `start`, and each time `period` has passed.
///
/// # Panics
///
/// Panics if `period` is zero.
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, Instant, interval_at};
///
/// let start = Instant::now() + Duration::from_millis(1);
/// let mut interval = interval_at(start, Duration::from_secs(1));
/// assert_eq!(reveille_executor::block_on(interval.tick()), start);
/// ```
#[cfg(feature = "std")]
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    let timers = Timers::current();
    timers.interval_at(start, period)
}
