//! How a task fails.

#![forbid(unsafe_code)]

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use reveille::raw::Failure;

/// Why a task has no output: it panicked, or it was cancelled.
///
/// # Examples
///
/// ```
/// use reveille_executor::{Executor, Threads};
///
/// let task = Threads.spawn(async { panic!("no coffee") });
/// let error = Threads.block_on(task).unwrap_err();
/// assert!(error.is_panic());
/// assert_eq!(error.to_string(), "the task panicked: no coffee");
/// ```
pub struct JoinError {
    reason: Reason,
}

enum Reason {
    Cancelled,
    /// Under a mutex only because errors are expected to be `Sync`.
    Panicked(Mutex<Box<dyn Any + Send>>),
}

impl From<Failure> for JoinError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Cancelled => Self::cancelled(),
            Failure::Panicked(payload) => Self::panicked(payload),
        }
    }
}

impl JoinError {
    pub(crate) fn cancelled() -> Self {
        Self {
            reason: Reason::Cancelled,
        }
    }

    pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> Self {
        Self {
            reason: Reason::Panicked(Mutex::new(payload)),
        }
    }

    /// Whether the task was dropped before it had finished: it was aborted, or its
    /// executor shut down or dropped it.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{Executor, Threads};
    ///
    /// let task = Threads.spawn(async { panic!("no coffee") });
    /// assert!(!Threads.block_on(task).unwrap_err().is_cancelled());
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.reason, Reason::Cancelled)
    }

    /// Whether the task panicked, or the destructor of its future did.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{Executor, Threads};
    ///
    /// let task = Threads.spawn(async { panic!("no coffee") });
    /// assert!(Threads.block_on(task).unwrap_err().is_panic());
    /// ```
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(self.reason, Reason::Panicked(_))
    }

    /// What the task panicked with, for
    /// [`resume_unwind`](std::panic::resume_unwind).
    ///
    /// # Panics
    ///
    /// Panics where the task was cancelled. [`try_into_panic`] asks first.
    ///
    /// [`try_into_panic`]: Self::try_into_panic
    ///
    /// # Examples
    ///
    /// ```should_panic
    /// use reveille_executor::{Executor, Threads};
    ///
    /// let task = Threads.spawn(async { panic!("no coffee") });
    /// if let Err(error) = Threads.block_on(task) {
    ///     std::panic::resume_unwind(error.into_panic());
    /// }
    /// ```
    #[track_caller]
    #[must_use]
    pub fn into_panic(self) -> Box<dyn Any + Send> {
        self.try_into_panic().expect(
            "JoinError::into_panic: the task was cancelled and did not panic; \
             ask is_panic first, or call try_into_panic",
        )
    }

    /// What the task panicked with, if it did.
    ///
    /// # Errors
    ///
    /// The error itself, where the task was cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{Executor, Threads};
    ///
    /// let task = Threads.spawn(async { std::panic::panic_any(7) });
    /// let error = Threads.block_on(task).unwrap_err();
    /// assert_eq!(error.try_into_panic().unwrap().downcast_ref(), Some(&7));
    /// ```
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send>, Self> {
        match self.reason {
            Reason::Panicked(payload) => {
                Ok(payload.into_inner().unwrap_or_else(PoisonError::into_inner))
            }
            Reason::Cancelled => Err(self),
        }
    }
}

/// What `panic!` leaves in a payload: the message, where there is one.
fn message(payload: &(dyn Any + Send)) -> Option<&str> {
    match payload.downcast_ref::<&'static str>() {
        Some(text) => Some(text),
        None => payload.downcast_ref::<String>().map(String::as_str),
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Cancelled => f.write_str(
                "the task was cancelled: it was aborted, or its executor dropped it before it finished",
            ),
            Reason::Panicked(payload) => {
                let payload = payload.lock().unwrap_or_else(PoisonError::into_inner);
                match message(&**payload) {
                    Some(message) => write!(f, "the task panicked: {message}"),
                    None => f.write_str("the task panicked with a value that is not a message"),
                }
            }
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Cancelled => f.write_str("JoinError::Cancelled"),
            Reason::Panicked(payload) => {
                let payload = payload.lock().unwrap_or_else(PoisonError::into_inner);
                match message(&**payload) {
                    Some(message) => write!(f, "JoinError::Panic({message:?})"),
                    None => f.write_str("JoinError::Panic(..)"),
                }
            }
        }
    }
}

impl Error for JoinError {}
