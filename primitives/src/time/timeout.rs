//! Methods that create a [`Timeout`]. Its states and invariant are documented with the
//! type.

#![forbid(unsafe_code)]

#[cfg(feature = "std")]
use core::future::Future;
use core::time::Duration;

use super::{Instant, Timers};
use crate::backend::Backend;
pub use crate::raw::Timeout;

impl<B: Backend> Timers<B> {
    /// Waits for a future, for at most `duration`. See [`time::timeout`](super::timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::future::pending;
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let late = clock.timers().timeout(Duration::from_secs(1), pending::<()>());
    /// clock.advance(Duration::from_secs(1));
    /// assert!(reveille_executor::block_on(late).is_err());
    /// ```
    pub fn timeout<F: IntoFuture>(
        &self,
        duration: Duration,
        future: F,
    ) -> Timeout<F::IntoFuture, B> {
        Timeout::new(future.into_future(), self.sleep(duration))
    }

    /// Waits for a future, until `deadline` at most. See
    /// [`time::timeout_at`](super::timeout_at).
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, VirtualClock};
    ///
    /// let clock = VirtualClock::by_hand();
    /// let ready = clock.timers().timeout_at(clock.now(), async { 7 });
    /// assert_eq!(reveille_executor::block_on(ready), Ok(7));
    /// ```
    pub fn timeout_at<F: IntoFuture>(
        &self,
        deadline: Instant,
        future: F,
    ) -> Timeout<F::IntoFuture, B> {
        Timeout::new(future.into_future(), self.sleep_until(deadline))
    }
}

/// Provides [`timeout`](super::timeout) and [`timeout_at`](super::timeout_at) as methods
/// of a future, for chains of calls.
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, FutureExt};
///
/// let late = std::future::pending::<()>().timeout(Duration::from_millis(1));
/// assert!(reveille_executor::block_on(late).is_err());
/// ```
#[cfg(feature = "std")]
pub trait FutureExt: Future {
    /// Waits for the future, for at most `duration`. See
    /// [`time::timeout`](super::timeout).
    ///
    /// # Errors
    ///
    /// As for [`time::timeout`](super::timeout).
    fn timeout(self, duration: Duration) -> Timeout<Self>
    where
        Self: Sized,
    {
        super::timeout(duration, self)
    }

    /// Waits for the future, until `deadline` at most. See
    /// [`time::timeout_at`](super::timeout_at).
    ///
    /// # Errors
    ///
    /// As for [`time::timeout`](super::timeout).
    fn timeout_at(self, deadline: Instant) -> Timeout<Self>
    where
        Self: Sized,
    {
        super::timeout_at(deadline, self)
    }
}

#[cfg(feature = "std")]
impl<F: Future + ?Sized> FutureExt for F {}
