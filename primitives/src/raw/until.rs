//! `RunUntilCancelled`: a future, until another one is ready.
//!
//! ```text
//!   first poll ──▶ the cancellation ──ready──▶ None
//!                        │
//!                        └─pending─▶ as every later poll
//!
//!   later poll ──▶ the future ──ready──▶ Some(its output)
//!                        │
//!                        └─pending─▶ the cancellation ──ready──▶ None
//! ```
//!
//! It is in this module because it pins the future in place, and the future may be of
//! any type.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// The future of [`CancellationToken::run_until_cancelled`] and
/// [`run_until_cancelled_owned`].
///
/// It is `Unpin` if the future inside is. Polled again after it was ready, it polls the
/// future inside again, which may panic.
///
/// [`CancellationToken::run_until_cancelled`]: crate::CancellationToken::run_until_cancelled
/// [`run_until_cancelled_owned`]: crate::CancellationToken::run_until_cancelled_owned
#[must_use = "futures do nothing unless polled"]
pub struct RunUntilCancelled<F, C> {
    /// Pinned structurally.
    future: F,
    cancellation: C,
    started: bool,
}

impl<F, C> RunUntilCancelled<F, C> {
    pub(crate) const fn new(future: F, cancellation: C) -> Self {
        Self {
            future,
            cancellation,
            started: false,
        }
    }
}

/// The cancellation is not pinned.
impl<F: Unpin, C> Unpin for RunUntilCancelled<F, C> {}

impl<F: Future, C: Future<Output = ()> + Unpin> Future for RunUntilCancelled<F, C> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved out of the borrow.
        let this = unsafe { self.get_unchecked_mut() };
        let mut cancellation = Pin::new(&mut this.cancellation);
        if !this.started {
            if cancellation.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            this.started = true;
        }
        // SAFETY: the field is pinned structurally: this type is `Unpin` only if `F` is,
        // has no `Drop`, is not packed, and does not give the future out.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        if let Poll::Ready(output) = future.poll(cx) {
            return Poll::Ready(Some(output));
        }
        cancellation.poll(cx).map(|()| None)
    }
}

impl<F: fmt::Debug, C: fmt::Debug> fmt::Debug for RunUntilCancelled<F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunUntilCancelled")
            .field("future", &self.future)
            .field("cancellation", &self.cancellation)
            .finish_non_exhaustive()
    }
}
