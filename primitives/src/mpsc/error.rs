//! The errors of the channels.

#![forbid(unsafe_code)]

use core::error::Error;
use core::fmt;

/// The error of a send on a channel that is closed, with the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value was not sent: the channel is closed")
    }
}

impl<T> Error for SendError<T> {}

/// The error of [`try_send`](super::Sender::try_send) and the `try_reserve` methods,
/// with what the caller gave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no capacity, or others wait for it.
    Full(T),
    /// The receiver was closed or dropped.
    Closed(T),
}

impl<T> TrySendError<T> {
    /// Returns what the caller gave.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel(1);
    /// tx.try_send(1).unwrap();
    /// assert_eq!(tx.try_send(2).unwrap_err().into_inner(), 2);
    /// ```
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Closed(value) => value,
        }
    }

    pub(super) fn map<U>(self, f: impl FnOnce(T) -> U) -> TrySendError<U> {
        match self {
            Self::Full(value) => TrySendError::Full(f(value)),
            Self::Closed(value) => TrySendError::Closed(f(value)),
        }
    }
}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(SendError(value): SendError<T>) -> Self {
        Self::Closed(value)
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the value was not sent: the channel has no capacity left",
            Self::Closed(_) => "the value was not sent: the channel is closed",
        })
    }
}

impl<T> Error for TrySendError<T> {}

/// The error of [`send_timeout`](super::Sender::send_timeout), with the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendTimeoutError<T> {
    /// The time passed before there was capacity.
    Timeout(T),
    /// The receiver was closed or dropped.
    Closed(T),
}

impl<T> SendTimeoutError<T> {
    /// Returns the value.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::mpsc::error::SendTimeoutError;
    ///
    /// assert_eq!(SendTimeoutError::Timeout(7).into_inner(), 7);
    /// ```
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(value) | Self::Closed(value) => value,
        }
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout(_) => "Timeout(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout(_) => "the value was not sent: the channel was full for too long",
            Self::Closed(_) => "the value was not sent: the channel is closed",
        })
    }
}

impl<T> Error for SendTimeoutError<T> {}

/// The error of [`try_recv`](super::Receiver::try_recv).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is no value, and one may still come.
    Empty,
    /// There is no value, and none will come.
    Disconnected,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "no value is in the channel",
            Self::Disconnected => "no value will come: the channel is closed",
        })
    }
}

impl Error for TryRecvError {}
