//! `Timeout`: a future, until a deadline. States and invariant are those of
//! [`Within`].

#![forbid(unsafe_code)]

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::Sleep;
use super::error::Elapsed;
use crate::backend::{Backend, DefaultBackend};
use crate::raw::Within;

/// The future of [`timeout`](super::timeout) and [`timeout_at`](super::timeout_at):
/// answers `Ok` with the output of the future inside, or [`Elapsed`] where the
/// deadline passed before that was ready.
///
/// The future inside is polled first, so a result that is there wins, however late.
/// It is dropped with the timeout and not before. The timeout is `Unpin` where the
/// future inside is.
///
/// # Examples
///
/// ```
/// use reveille::time::{Duration, Timeout, timeout};
///
/// let ready: Timeout<_> = timeout(Duration::from_secs(1), std::future::ready(7));
/// assert_eq!(reveille_executor::block_on(ready.into_inner()), 7);
/// ```
pub type Timeout<F, B = DefaultBackend> = Within<F, Deadline<B>>;

/// A sleep whose end is an error.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Deadline<B: Backend = DefaultBackend> {
    sleep: Sleep<B>,
}

impl<B: Backend> Deadline<B> {
    pub(super) const fn new(sleep: Sleep<B>) -> Self {
        Self { sleep }
    }
}

impl<B: Backend> Future for Deadline<B> {
    type Output = Elapsed;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Elapsed> {
        Pin::new(&mut self.sleep).poll(cx).map(|()| Elapsed::new())
    }
}
