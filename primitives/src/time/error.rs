//! Errors of timers and timeouts.

#![forbid(unsafe_code)]

use core::fmt;

/// The error of a timer that cannot wait. It has no values: no operation of
/// [`time`](super) returns it.
///
/// It exists for code that names `tokio::time::error::Error`, as in an `impl
/// From<time::error::Error>`.
///
/// # Examples
///
/// ```
/// use reveille::time::error::Error;
///
/// enum Failure {
///     Timer(Error),
/// }
///
/// impl From<Error> for Failure {
///     fn from(error: Error) -> Self {
///         Self::Timer(error)
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {}

impl Error {
    /// Returns whether the timers have been shut down.
    #[must_use]
    pub const fn is_shutdown(&self) -> bool {
        match *self {}
    }

    /// Returns whether there are too many timers.
    #[must_use]
    pub const fn is_at_capacity(&self) -> bool {
        match *self {}
    }

    /// Returns whether the timer was misconfigured.
    #[must_use]
    pub const fn is_invalid(&self) -> bool {
        match *self {}
    }
}

impl fmt::Display for Error {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl core::error::Error for Error {}

/// The error of a [`Timeout`](super::Timeout) whose deadline passed before its future
/// was ready.
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, timeout};
///
/// let late = timeout(Duration::from_millis(1), std::future::pending::<()>());
/// let elapsed = reveille_executor::block_on(late).unwrap_err();
/// assert_eq!(elapsed.to_string(), "the deadline passed before the future was ready");
/// assert_eq!(std::io::Error::from(elapsed).kind(), std::io::ErrorKind::TimedOut);
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl Elapsed {
    pub(crate) const fn new() -> Self {
        Self(())
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline passed before the future was ready")
    }
}

impl core::error::Error for Elapsed {}

#[cfg(feature = "std")]
impl From<Elapsed> for std::io::Error {
    fn from(_: Elapsed) -> Self {
        std::io::ErrorKind::TimedOut.into()
    }
}
