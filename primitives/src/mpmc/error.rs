//! The errors of receiving. Those of sending are those of `mpsc`.

#![forbid(unsafe_code)]

use core::error::Error;
use core::fmt;

/// The error of a receive: the channel is closed, and no value is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no value will come: the channel is closed")
    }
}

impl Error for RecvError {}

/// The error of [`try_recv`](super::Receiver::try_recv).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// No value is free, and one may still come.
    Empty,
    /// The channel is closed, and no value is left.
    Closed,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "no value is in the channel",
            Self::Closed => "no value will come: the channel is closed",
        })
    }
}

impl Error for TryRecvError {}

impl From<RecvError> for TryRecvError {
    fn from(RecvError: RecvError) -> Self {
        Self::Closed
    }
}
