//! `Timeout`: a future with a deadline.
//!
//! ```text
//!   poll ──▶ the future ──ready──▶ Ok(its output)
//!                │
//!                └─pending─▶ the sleep ──ready──▶ Err(Elapsed)
//!                                │
//!                                └─pending─▶ pending
//! ```
//!
//! It is in this module because it pins the future in place, and the future may be of
//! any type.
//!
//! Invariant: the future is polled first, so a result that is there wins, however
//! late the poll. The future is dropped with the timeout and not before, and its own
//! `Drop` passes on a grant that it holds (P6).

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

#[cfg(feature = "model")]
use crate::backend::watch::tell;
use crate::backend::{Backend, DefaultBackend};
use crate::time::Sleep;
use crate::time::error::Elapsed;

/// The future of [`timeout`](crate::time::timeout) and
/// [`timeout_at`](crate::time::timeout_at).
///
/// Returns `Ok` with the output of the future inside, or [`Elapsed`] if the deadline
/// passes before that future is ready.
///
/// The future inside is polled first, so a result that is there wins, however late
/// the poll. The future is dropped with the timeout and not before. The timeout is
/// `Unpin` if the future inside is.
///
/// # Cancel safety
///
/// The same as that of the future inside.
///
/// # Panics
///
/// If it is polled again after it has completed, it polls the future inside again,
/// which may panic. After [`Elapsed`] this is allowed, and a result of the future
/// still wins.
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, Timeout, timeout};
///
/// let ready: Timeout<_> = timeout(Duration::from_secs(1), std::future::ready(7));
/// assert_eq!(reveille_executor::block_on(ready.into_inner()), 7);
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Timeout<F, B: Backend = DefaultBackend> {
    /// Pinned structurally.
    future: F,
    sleep: Sleep<B>,
}

impl<F, B: Backend> Timeout<F, B> {
    pub(crate) const fn new(future: F, sleep: Sleep<B>) -> Self {
        Self { future, sleep }
    }

    /// Returns the future inside.
    pub const fn get_ref(&self) -> &F {
        &self.future
    }

    /// Returns a mutable reference to the future inside.
    pub const fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Returns the future inside, and forgets the deadline.
    pub fn into_inner(self) -> F {
        self.future
    }
}

/// The sleep is not pinned.
impl<F: Unpin, B: Backend> Unpin for Timeout<F, B> {}

impl<F: Future, B: Backend> Future for Timeout<F, B> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved out of the borrow.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: the field is pinned structurally. `Timeout` is `Unpin` only if `F`
        // is, has no `Drop` and is not packed, and gives the future out only by value
        // or by a borrow of an unpinned `Timeout`.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        if let Poll::Ready(output) = future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        let sleep = Pin::new(&mut this.sleep);
        sleep.poll(cx).map(|()| {
            #[cfg(feature = "model")]
            tell::<B>(|watcher| watcher.timed_out());
            Err(Elapsed::new())
        })
    }
}

impl<F: fmt::Debug, B: Backend> fmt::Debug for Timeout<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("future", &self.future)
            .field("deadline", &self.sleep.deadline())
            .finish_non_exhaustive()
    }
}
