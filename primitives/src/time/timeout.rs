//! `Timeout`: a future, until a deadline.
//!
//! ```text
//!   poll ──▶ the future ──ready──▶ Ok(output)
//!                │
//!                └─pending─▶ the sleep ──ready──▶ Err(Elapsed)
//!                                │
//!                                └─pending─▶ pending
//! ```
//!
//! Invariant: a result that is there is the result, however late it is asked for:
//! the future is polled first. One that comes too late even for that is dropped
//! with the future, and a grant in it is handed on by its own `Drop` (P6).

#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::Sleep;
use super::error::Elapsed;
use crate::protocol::{Backend, DefaultBackend};

pin_project! {
    /// The future of [`timeout`](super::timeout) and [`timeout_at`](super::timeout_at).
    ///
    /// It is `Unpin` where the future inside is.
    ///
    /// # Errors
    ///
    /// [`Elapsed`] where the deadline passed before the future was ready.
    ///
    /// # Cancel safety
    ///
    /// That of the future inside, which is dropped with it and not before.
    ///
    /// # Panics
    ///
    /// Polled again after it was ready, it polls the future inside again, which may
    /// panic. After `Elapsed` that is legal, and its result still wins.
    #[must_use = "futures do nothing unless polled"]
    pub struct Timeout<F, B: Backend = DefaultBackend> {
        #[pin]
        future: F,
        sleep: Sleep<B>,
    }
}

impl<F, B: Backend> Timeout<F, B> {
    pub(super) const fn new(future: F, sleep: Sleep<B>) -> Self {
        Self { future, sleep }
    }

    /// The future inside.
    #[must_use]
    pub const fn get_ref(&self) -> &F {
        &self.future
    }

    /// The future inside, by exclusive borrow.
    #[must_use]
    pub const fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// The future inside, without its deadline.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille::time::{Duration, timeout};
    ///
    /// let ready = timeout(Duration::from_secs(1), std::future::ready(7));
    /// assert_eq!(reveille_executor::block_on(ready.into_inner()), 7);
    /// ```
    #[must_use]
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future, B: Backend> Future for Timeout<F, B> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(this.sleep).poll(cx).map(|()| Err(Elapsed::new()))
    }
}

impl<F: fmt::Debug, B: Backend> fmt::Debug for Timeout<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("future", &self.future)
            .field("sleep", &self.sleep)
            .finish()
    }
}
