//! `JoinHandle` and `AbortHandle`: the handles of a task that was spawned.

#![forbid(unsafe_code)]

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use reveille::backend::Native;
use reveille::raw::{Abort, Join};

use super::id::{Running, cancel_refused};
use super::{Id, JoinError};
use crate::blocking::Spawned;

/// A handle to a spawned task. As a future, it waits for the outcome of the task.
///
/// Dropping the handle detaches the task: it goes on running, and its output is dropped
/// when it finishes.
///
/// # Errors
///
/// Returns a [`JoinError`] if the task panicked or was cancelled.
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
/// use reveille_executor::{Executor, Threads, task::JoinHandle};
///
/// let handle: JoinHandle<u32> = Threads.spawn(async { 7 });
/// assert_eq!(Threads.block_on(handle).unwrap(), 7);
/// ```
pub struct JoinHandle<T> {
    /// `None` only while the handle is dropped.
    join: Option<Join<T, Native>>,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(join: Join<T, Native>) -> Self {
        Self { join: Some(join) }
    }

    #[inline]
    fn join(&self) -> &Join<T, Native> {
        self.join.as_ref().expect("the handle is not dropped")
    }

    /// Creates the handle of a call that may block.
    ///
    /// # Panics
    ///
    /// Panics if the system refused a thread for the call.
    #[track_caller]
    pub(crate) fn of_call(spawned: io::Result<Spawned<T, Native>>) -> Self {
        match spawned {
            Ok(Spawned { join, refused }) => {
                if let Some(refused) = refused {
                    cancel_refused(refused);
                }
                Self::new(join)
            }
            Err(error) => panic!(
                "the system refused a thread for a blocking call ({error}), and there is none \
                 yet that could make it: the call was cancelled"
            ),
        }
    }

    /// Cancels the task, if it is not finished. Its executor drops the future.
    ///
    /// If the future is being polled, it is dropped when that poll ends. Otherwise it is
    /// dropped when the executor next runs the task.
    ///
    /// The handle then returns a [cancelled](JoinError::is_cancelled) error, unless the
    /// poll under way finished the task.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::LocalExecutor;
    ///
    /// let executor = LocalExecutor::new();
    /// let task = executor.spawn_local(std::future::pending::<()>());
    /// task.abort();
    /// assert!(executor.block_on(task).unwrap_err().is_cancelled());
    /// ```
    pub fn abort(&self) {
        self.join().abort();
    }

    /// Returns a handle that can only abort the task. It may outlive this handle.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::LocalExecutor;
    ///
    /// let executor = LocalExecutor::new();
    /// let task = executor.spawn_local(std::future::pending::<()>());
    /// let aborting = task.abort_handle();
    /// executor.spawn_local(async move { aborting.abort() });
    /// assert!(executor.block_on(task).unwrap_err().is_cancelled());
    /// ```
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle {
            abort: self.join().abort_handle(),
        }
    }

    /// Returns whether the task has finished. If so, the handle is ready.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::LocalExecutor;
    ///
    /// let executor = LocalExecutor::new();
    /// let task = executor.spawn_local(async {});
    /// assert!(!task.is_finished());
    /// executor.run_until_idle();
    /// assert!(task.is_finished());
    /// ```
    pub fn is_finished(&self) -> bool {
        self.join().is_finished()
    }

    /// Returns the number of the task.
    pub fn id(&self) -> Id {
        Id::of(self.join().id())
    }

    /// Returns the name of the task, if it has one.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::LocalExecutor;
    ///
    /// let executor = LocalExecutor::new();
    /// let task = executor.spawn_named("greeter", async {});
    /// assert_eq!(task.name(), Some("greeter"));
    /// ```
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.join().name()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let join = self.join.as_mut().expect("the handle is not dropped");
        let outcome = ready!(join.poll(cx));
        Poll::Ready(outcome.map_err(|failure| JoinError::new(self.id(), failure)))
    }
}

/// If the handle owns the output, it is dropped as the task: its destructor sees the
/// task's [id](super::id()), as it does if the task finishes after the handle is dropped.
impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if let Some(join) = self.join.take() {
            let _running = Running::enter(join.id());
            drop(join);
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("id", &self.id())
            .field("name", &self.name())
            .field("is_finished", &self.is_finished())
            .finish()
    }
}

/// A handle that can only abort a task. See [`JoinHandle::abort_handle`].
#[derive(Clone)]
pub struct AbortHandle {
    abort: Abort<Native>,
}

impl AbortHandle {
    /// Cancels the task, if it is not finished. See [`JoinHandle::abort`].
    pub fn abort(&self) {
        self.abort.abort();
    }

    /// Returns whether the task has finished.
    pub fn is_finished(&self) -> bool {
        self.abort.is_finished()
    }

    /// Returns the number of the task.
    pub fn id(&self) -> Id {
        Id::of(self.abort.id())
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle")
            .field("id", &self.id())
            .field("is_finished", &self.is_finished())
            .finish()
    }
}
