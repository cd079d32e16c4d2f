//! A future, and another that ends the wait for it: the core of a timeout.
//!
//! ```text
//!   poll ──▶ the future ──ready──▶ Ok(its output)
//!                │
//!                └─pending─▶ the end ──ready──▶ Err(its output)
//!                                │
//!                                └─pending─▶ pending
//! ```
//!
//! It stands here for the one thing that needs `unsafe`: the future is pinned where
//! this one is, and may be any.
//!
//! Invariant: a result that is there is the result, however late it is asked for:
//! the future is polled first. It is dropped with this one and not before, and a
//! grant in it is then handed on by its own `Drop` (P6).

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// The future `F`, unless `E` ends first. `E` is not pinned.
///
/// It is `Unpin` where `F` is.
///
/// # Errors
///
/// The output of `E`, where that was ready and `F` was not.
///
/// # Cancel safety
///
/// That of `F`.
///
/// # Panics
///
/// Polled again after it was ready, it polls `F` again, which may panic. After the
/// end that is legal, and a result of `F` still wins.
///
/// # Examples
///
/// ```
/// use core::future::{pending, ready};
/// use reveille::backend::Native;
/// use reveille::protocol::block_on;
/// use reveille::raw::Within;
///
/// assert_eq!(block_on::<Native, _>(Within::new(ready(1), ready(2))), Ok(1));
/// assert_eq!(block_on::<Native, _>(Within::new(pending::<u32>(), ready(2))), Err(2));
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Within<F, E> {
    /// Pinned structurally.
    future: F,
    end: E,
}

impl<F, E> Within<F, E> {
    /// `future`, unless `end` ends first.
    pub const fn new(future: F, end: E) -> Self {
        Self { future, end }
    }

    /// The future inside.
    pub const fn get_ref(&self) -> &F {
        &self.future
    }

    /// The future inside, by exclusive borrow.
    pub const fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// The future inside, without its end.
    pub fn into_inner(self) -> F {
        self.future
    }
}

/// Nothing of `E` is pinned.
impl<F: Unpin, E> Unpin for Within<F, E> {}

impl<F: Future, E: Future + Unpin> Future for Within<F, E> {
    type Output = Result<F::Output, E::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved out of the borrow.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: the field is pinned structurally: `Within` is `Unpin` only where
        // `F` is, has no `Drop` and is not packed, and gives the future out only by
        // value or by a borrow of an unpinned `Within`.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        if let Poll::Ready(output) = future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(&mut this.end).poll(cx).map(Err)
    }
}

impl<F: fmt::Debug, E: fmt::Debug> fmt::Debug for Within<F, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Within")
            .field("future", &self.future)
            .field("end", &self.end)
            .finish()
    }
}
