//! `Executor` for tokio's `Runtime` and `Handle`.
//!
//! `spawn` and `block_on` are tokio's own, in the flavor that the runtime was built with.
//!
//! ```
//! use reveille_executor::Executor;
//!
//! fn answer<E: Executor>(executor: &E) -> u32 {
//!     let task = executor.spawn(async { 42 });
//!     executor.block_on(task).expect("the task ends")
//! }
//!
//! let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! assert_eq!(answer(&runtime), 42);
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::tokio::runtime::{Handle, Runtime};
use reveille::raw::Failure;

use crate::Executor;
use crate::task::{Id, JoinError};

/// A `JoinHandle` of tokio that returns this crate's [`JoinError`].
///
/// Dropping it leaves the task running.
///
/// # Errors
///
/// Returns a [`JoinError`] if the task panicked, was aborted, or its runtime shut down.
///
/// # Cancel safety
///
/// Nothing is lost if the handle is polled by reference and the wait is given up.
///
/// # Panics
///
/// Panics if it is polled again after it was ready.
///
/// # Examples
///
/// ```
/// use reveille_executor::Executor;
///
/// # fn main() -> Result<(), std::io::Error> {
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let task = Executor::spawn(&runtime, std::future::pending::<()>());
/// task.get_ref().abort();
/// assert!(runtime.block_on(task).unwrap_err().is_cancelled());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct JoinHandle<T> {
    inner: ::tokio::task::JoinHandle<T>,
}

impl<T> JoinHandle<T> {
    /// Returns tokio's handle, for all of its other methods.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::Executor;
    ///
    /// # fn main() -> Result<(), std::io::Error> {
    /// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// let task = Executor::spawn(&runtime, async {});
    /// assert!(!task.get_ref().is_finished());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn get_ref(&self) -> &::tokio::task::JoinHandle<T> {
        &self.inner
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.inner).poll(cx).map_err(|error| {
            let id = Id::of_tokio(error.id());
            let failure = error
                .try_into_panic()
                .map_or_else(|_| Failure::Cancelled, Failure::Panicked);
            JoinError::new(id, failure)
        })
    }
}

impl Executor for Runtime {
    type JoinHandle<T: Send + 'static> = JoinHandle<T>;

    #[track_caller]
    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Executor::spawn(self.handle(), future)
    }

    #[track_caller]
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        Runtime::block_on(self, future)
    }
}

/// On a runtime of the current-thread flavor, tasks run only while a thread is in
/// `Runtime::block_on`. `block_on` of a handle does not run them.
impl Executor for Handle {
    type JoinHandle<T: Send + 'static> = JoinHandle<T>;

    #[track_caller]
    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        JoinHandle {
            inner: Handle::spawn(self, future),
        }
    }

    #[track_caller]
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        Handle::block_on(self, future)
    }
}
