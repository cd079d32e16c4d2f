//! Tasks: how one is joined, and how it fails.
//!
//! ```text
//!              ready ──▶ its future is dropped ──▶ Ok(output)
//!   running ── panics ─▶ its future is dropped ──▶ Err, is_panic
//!              dropped by its executor ──────────▶ Err, is_cancelled
//! ```
//!
//! A task gives its outcome to its handle through a `reveille::oneshot`, and a
//! task that the executor drops takes its sender along, which is what
//! "cancelled" means.
//!
//! Invariant: the future of a task is gone before its handle answers, and no
//! panic of a task's own code reaches the executor that polls it.

#![forbid(unsafe_code)]

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use reveille::oneshot;
use reveille::protocol::{Boxed, Native};

/// Threads are at work here whatever the default backend is.
type Outcome<T> = oneshot::Receiver<Result<T, JoinError>, Boxed<Native>>;

/// The future of a spawned task's outcome.
///
/// Dropping it leaves the task running, and its output is dropped when it is
/// there.
///
/// # Errors
///
/// Answers a [`JoinError`] where the task panicked or was cancelled.
///
/// # Cancel safety
///
/// Polled by reference, it loses nothing when the wait is given up.
///
/// # Panics
///
/// Polling it again after it was ready panics.
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
    outcome: Outcome<T>,
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(
            !self.outcome.is_terminated(),
            "JoinHandle polled after it was ready"
        );
        let outcome = ready!(Pin::new(&mut self.outcome).poll(cx));
        Poll::Ready(outcome.unwrap_or_else(|_| Err(JoinError::cancelled())))
    }
}

/// An output nobody came for is dropped here, and its panic is the task's.
impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        self.outcome.close();
        if let Ok(unwanted) = self.outcome.try_recv() {
            contain(|| drop(unwanted));
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

/// Splits a future into a task, which any executor can run, and its handle.
pub(crate) fn joinable<F>(
    future: F,
) -> (
    impl Future<Output = ()> + Send + 'static,
    JoinHandle<F::Output>,
)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (handle, outcome) = oneshot::channel_in();
    let task = async move {
        // Dropped unfinished, the block drops its locals first, then what it
        // captured and has not moved, in the order of first use: the future
        // before `handle` in any case, so that the outcome comes last.
        let mut future = pin!(Some(future));
        let polled = poll_fn(|cx| {
            let Some(future) = future.as_mut().as_pin_mut() else {
                unreachable!("the future is taken out only once it has been polled to its end");
            };
            match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
                Ok(poll) => poll.map(Ok),
                Err(panic) => Poll::Ready(Err(panic)),
            }
        })
        .await;
        let dropped = catch_unwind(AssertUnwindSafe(|| future.set(None)));
        contain(|| {
            let outcome = polled
                .and_then(|output| dropped.map(|()| output))
                .map_err(JoinError::panicked);
            // A handle that is gone refuses it, and it is dropped here.
            drop(handle.send(outcome));
        });
    };
    (task, JoinHandle { outcome })
}

/// Runs code of the task's that must not harm whoever polls or joins it: a
/// destructor of its output, the waker of its handle. The panic hook has
/// reported the panic when it ends here.
fn contain(f: impl FnOnce()) {
    drop(catch_unwind(AssertUnwindSafe(f)));
}

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

    /// Whether the task was dropped before it had finished: its executor shut
    /// down, or dropped it.
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
                "the task was cancelled: its executor shut down or dropped it before it finished",
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
