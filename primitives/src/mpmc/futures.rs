//! The futures of a channel.
//!
//! ```text
//!   send:            created ──poll──▶ waits ──poll──▶ sent ──▶ done
//!   receive, closed: created ──poll──▶ waits ──poll──▶ created
//! ```
//!
//! Invariant: a future that waits has its waker registered, or has been notified and has
//! not been polled since. Dropping it takes the waker out, and passes on what it was
//! granted (P6).

#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, DefaultBackend};
use crate::mpsc::error::SendError;
use crate::protocol::{CallerLocation, Waiter};

use super::chan::{Chan, Sending};
use super::error::RecvError;

/// The future of [`Sender::send`](super::Sender::send).
///
/// Polling it again after it was ready panics.
#[must_use = "futures do nothing unless polled"]
pub struct SendFuture<'a, T, B: Backend = DefaultBackend> {
    chan: &'a Chan<T, B>,
    /// None once it is sent, or has come back.
    value: Option<T>,
    sending: Sending,
    location: CallerLocation,
}

impl<'a, T, B: Backend> SendFuture<'a, T, B> {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(super) const fn new(chan: &'a Chan<T, B>, value: T) -> Self {
        Self {
            chan,
            value: Some(value),
            sending: Sending::Created,
            location: CallerLocation::capture(),
        }
    }

    /// Gives the send up and returns its value, unless it is sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::future::Future;
    /// use core::pin::Pin;
    /// use core::task::{Context, Waker};
    /// use reveille::mpmc;
    ///
    /// let (tx, _rx) = mpmc::bounded(1);
    /// tx.try_send(1).unwrap();
    /// let mut send = tx.send(2);
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(Pin::new(&mut send).poll(&mut cx).is_pending());
    /// assert_eq!(send.into_inner(), Some(2));
    /// ```
    #[must_use]
    pub fn into_inner(mut self) -> Option<T> {
        self.value.take()
    }
}

impl<T, B: Backend> Future for SendFuture<'_, T, B> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.chan
            .poll_send(&mut this.sending, &mut this.value, this.location, cx)
    }
}

/// The value is not pinned.
impl<T, B: Backend> Unpin for SendFuture<'_, T, B> {}

impl<T, B: Backend> Drop for SendFuture<'_, T, B> {
    #[inline]
    fn drop(&mut self) {
        if let Sending::Waits(_) = self.sending
            && let Sending::Waits(waiter) = core::mem::replace(&mut self.sending, Sending::Done)
        {
            self.chan.cancel_send(waiter);
        }
    }
}

impl<T, B: Backend> fmt::Debug for SendFuture<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFuture")
            .field("waits", &matches!(self.sending, Sending::Waits(_)))
            .finish_non_exhaustive()
    }
}

/// The future of [`Receiver::recv`](super::Receiver::recv).
///
/// Polled again after it was ready, it receives the next value.
#[must_use = "futures do nothing unless polled"]
pub struct Recv<'a, T, B: Backend = DefaultBackend> {
    chan: &'a Chan<T, B>,
    waiter: Option<Waiter>,
    location: CallerLocation,
}

impl<'a, T, B: Backend> Recv<'a, T, B> {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(super) const fn new(chan: &'a Chan<T, B>) -> Self {
        Self {
            chan,
            waiter: None,
            location: CallerLocation::capture(),
        }
    }
}

impl<T, B: Backend> Future for Recv<'_, T, B> {
    type Output = Result<T, RecvError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.chan.poll_recv(&mut this.waiter, this.location, cx)
    }
}

impl<T, B: Backend> Drop for Recv<'_, T, B> {
    #[inline]
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.chan.cancel_recv(waiter);
        }
    }
}

impl<T, B: Backend> fmt::Debug for Recv<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv")
            .field("waits", &self.waiter.is_some())
            .finish_non_exhaustive()
    }
}

/// The future of [`Sender::closed`](super::Sender::closed).
///
/// Polled again after it was ready, it is ready again.
#[must_use = "futures do nothing unless polled"]
pub struct Closed<'a, T, B: Backend = DefaultBackend> {
    chan: &'a Chan<T, B>,
    waiter: Option<Waiter>,
    location: CallerLocation,
}

impl<'a, T, B: Backend> Closed<'a, T, B> {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    pub(super) const fn new(chan: &'a Chan<T, B>) -> Self {
        Self {
            chan,
            waiter: None,
            location: CallerLocation::capture(),
        }
    }
}

impl<T, B: Backend> Future for Closed<'_, T, B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.chan.poll_closed(&mut this.waiter, this.location, cx)
    }
}

impl<T, B: Backend> Drop for Closed<'_, T, B> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.chan.cancel_closed(waiter);
        }
    }
}

impl<T, B: Backend> fmt::Debug for Closed<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed")
            .field("waits", &self.waiter.is_some())
            .finish_non_exhaustive()
    }
}
