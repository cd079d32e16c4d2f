//! `JoinError`: why a task has no output.

#![forbid(unsafe_code)]

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

use reveille::raw::Failure;

use super::{Id, describe};

/// The error of a task that has no output: it panicked, or it was cancelled.
///
/// Its `Display` and `Debug` texts are those of `tokio::task::JoinError`.
///
/// # Examples
///
/// ```
/// use reveille_executor::{Executor, Threads};
///
/// let task = Threads.spawn(async { panic!("no coffee") });
/// let id = task.id();
/// let error = Threads.block_on(task).unwrap_err();
/// assert!(error.is_panic());
/// assert_eq!(error.id(), id);
/// assert_eq!(error.to_string(), format!("task {id} panicked with message \"no coffee\""));
/// ```
pub struct JoinError {
    id: Id,
    reason: Reason,
}

enum Reason {
    Cancelled,
    /// The mutex is there only because errors are expected to be `Sync`.
    Panicked(Mutex<Box<dyn Any + Send>>),
}

impl JoinError {
    pub(crate) fn new(id: Id, failure: Failure) -> Self {
        let reason = match failure {
            Failure::Cancelled => Reason::Cancelled,
            Failure::Panicked(payload) => Reason::Panicked(Mutex::new(payload)),
        };
        Self { id, reason }
    }

    /// Returns the error of a task that was dropped before it had finished, for an
    /// [`Executor`](crate::Executor) of another crate. The task has a new number.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::task::JoinError;
    ///
    /// assert!(JoinError::cancelled().is_cancelled());
    /// ```
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(Id::of(describe(()).id), Failure::Cancelled)
    }

    /// Returns the number of the task.
    ///
    /// # Examples
    ///
    /// See the [type](Self).
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns whether the task was cancelled. It was aborted, or its executor shut down
    /// or dropped it before it had finished.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{Executor, Threads};
    ///
    /// let task = Threads.spawn(async { panic!("no coffee") });
    /// assert!(!Threads.block_on(task).unwrap_err().is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        matches!(self.reason, Reason::Cancelled)
    }

    /// Returns whether the task panicked, or the destructor of its future did.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::{Executor, Threads};
    ///
    /// let task = Threads.spawn(async { panic!("no coffee") });
    /// assert!(Threads.block_on(task).unwrap_err().is_panic());
    /// ```
    pub fn is_panic(&self) -> bool {
        matches!(self.reason, Reason::Panicked(_))
    }

    /// Returns the payload of the panic, for
    /// [`resume_unwind`](std::panic::resume_unwind).
    ///
    /// # Panics
    ///
    /// Panics if the task was cancelled. [`try_into_panic`] returns an error instead.
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
    pub fn into_panic(self) -> Box<dyn Any + Send> {
        self.try_into_panic().expect(
            "JoinError::into_panic: the task was cancelled and did not panic; \
             ask is_panic first, or call try_into_panic",
        )
    }

    /// Returns the payload of the panic, if the task panicked.
    ///
    /// # Errors
    ///
    /// Returns the error itself if the task was cancelled.
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

/// Returns the message in the payload of a panic, if it has one.
fn message(payload: &(dyn Any + Send)) -> Option<&str> {
    match payload.downcast_ref::<&'static str>() {
        Some(text) => Some(text),
        None => payload.downcast_ref::<String>().map(String::as_str),
    }
}

impl Reason {
    /// Calls a function with the message of the panic, if it has one.
    fn with_message<R>(&self, f: impl FnOnce(Option<&str>) -> R) -> R {
        match self {
            Self::Cancelled => f(None),
            Self::Panicked(payload) => {
                let payload = payload.lock().unwrap_or_else(PoisonError::into_inner);
                f(message(&**payload))
            }
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id;
        if self.is_cancelled() {
            return write!(f, "task {id} was cancelled");
        }
        self.reason.with_message(|message| match message {
            Some(message) => write!(f, "task {id} panicked with message {message:?}"),
            None => write!(f, "task {id} panicked"),
        })
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id;
        if self.is_cancelled() {
            return write!(f, "JoinError::Cancelled({id:?})");
        }
        self.reason.with_message(|message| match message {
            Some(message) => write!(f, "JoinError::Panic({id:?}, {message:?}, ...)"),
            None => write!(f, "JoinError::Panic({id:?}, ...)"),
        })
    }
}

impl Error for JoinError {}

/// The kind is `Other`. The payload of a panic is lost.
impl From<JoinError> for io::Error {
    fn from(error: JoinError) -> Self {
        Self::other(if error.is_cancelled() {
            "task was cancelled"
        } else {
            "task panicked"
        })
    }
}
