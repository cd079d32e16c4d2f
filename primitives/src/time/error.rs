//! What can go wrong in time.

#![forbid(unsafe_code)]

use core::error::Error;
use core::fmt;

/// The answer of a [`Timeout`](super::Timeout) whose deadline passed before its
/// future was ready.
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
    pub(super) const fn new() -> Self {
        Self(())
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline passed before the future was ready")
    }
}

impl Error for Elapsed {}

#[cfg(feature = "std")]
impl From<Elapsed> for std::io::Error {
    fn from(_: Elapsed) -> Self {
        std::io::ErrorKind::TimedOut.into()
    }
}
