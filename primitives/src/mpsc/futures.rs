//! The futures of the channels that receive and send. Those that reserve are in `permit`.
//!
//! ```text
//!   receive, closed:  created ──poll──▶ waits ──poll──▶ done
//!   send:             created ──poll──▶ waits ──poll──▶ sent ──▶ done
//! ```
//!
//! Invariant: a future that waits has its waker registered, or has been called and has
//! not been polled since. Dropping it takes the waker out, and passes the permit on that
//! it was granted (P6). A send is `sent` from outside only if a waker panicked in the
//! poll that sent its value (P8): the next poll returns the result.

#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::backend::{Backend, DefaultBackend};
use crate::protocol::CallerLocation;
use crate::protocol::{Bits, Waiter};
use crate::raw::permits::closed_in;
use crate::raw::{AcquireState, Request};
#[cfg(feature = "std")]
use crate::time::Sleep;

use super::chan::{Chan, Rx};
use super::error::SendError;
#[cfg(feature = "std")]
use super::error::SendTimeoutError;

/// The future of [`Receiver::recv`](super::Receiver::recv) and
/// [`UnboundedReceiver::recv`](super::UnboundedReceiver::recv).
#[must_use = "futures do nothing unless polled"]
pub struct Recv<'a, T, B: Backend = DefaultBackend> {
    rx: &'a mut Rx<T, B>,
    waits: bool,
}

impl<'a, T, B: Backend> Recv<'a, T, B> {
    #[inline]
    pub(super) const fn new(rx: &'a mut Rx<T, B>) -> Self {
        Self { rx, waits: false }
    }
}

impl<T, B: Backend> Future for Recv<'_, T, B> {
    type Output = Option<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // Before the poll, which may panic with the waker registered.
        let fresh = !mem::replace(&mut this.waits, true);
        let poll = this.rx.poll_recv(cx, fresh);
        this.waits = poll.is_pending();
        poll
    }
}

impl<T, B: Backend> Drop for Recv<'_, T, B> {
    #[inline]
    fn drop(&mut self) {
        if self.waits {
            self.rx.cancel_recv();
        }
    }
}

/// The future of [`Receiver::recv_many`](super::Receiver::recv_many) and
/// [`UnboundedReceiver::recv_many`](super::UnboundedReceiver::recv_many).
#[must_use = "futures do nothing unless polled"]
pub struct RecvMany<'a, T, B: Backend = DefaultBackend> {
    rx: &'a mut Rx<T, B>,
    buffer: &'a mut Vec<T>,
    limit: usize,
    waits: bool,
}

impl<'a, T, B: Backend> RecvMany<'a, T, B> {
    pub(super) const fn new(rx: &'a mut Rx<T, B>, buffer: &'a mut Vec<T>, limit: usize) -> Self {
        Self {
            rx,
            buffer,
            limit,
            waits: false,
        }
    }
}

impl<T, B: Backend> Future for RecvMany<'_, T, B> {
    type Output = usize;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        let this = self.get_mut();
        let fresh = !mem::replace(&mut this.waits, true);
        let poll = this.rx.poll_recv_many(cx, fresh, this.buffer, this.limit);
        this.waits = poll.is_pending();
        poll
    }
}

impl<T, B: Backend> Drop for RecvMany<'_, T, B> {
    fn drop(&mut self) {
        if self.waits {
            self.rx.cancel_recv();
        }
    }
}

/// The future of [`Sender::closed`](super::Sender::closed) and
/// [`UnboundedSender::closed`](super::UnboundedSender::closed).
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
        let Self {
            chan,
            waiter,
            location,
        } = self.get_mut();
        chan.poll_closed(waiter, *location, cx)
    }
}

impl<T, B: Backend> Drop for Closed<'_, T, B> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.chan.cancel_closed(waiter);
        }
    }
}

/// A request for permits, until it is ready.
pub(super) struct Reserving {
    /// None once it is ready, and for more permits than there will ever be.
    request: Option<Request>,
    state: AcquireState,
}

/// How a reservation ended: none will be given.
pub(super) struct Refused;

impl Reserving {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(super) const fn new(permits: usize) -> Self {
        Self {
            request: Some(Request::exactly(permits)),
            state: AcquireState::new(),
        }
    }

    /// A request that will be refused.
    pub(super) const fn refused() -> Self {
        Self {
            request: None,
            state: AcquireState::new(),
        }
    }

    /// Polls for the permits, once the bits `found` have been seen.
    fn poll_after<T, B: Backend>(
        &mut self,
        found: Bits,
        chan: &Chan<T, B>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        let Some(request) = &mut self.request else {
            return Poll::Ready(Err(Refused));
        };
        let poll = self.state.poll(found, request, &chan.permits, cx);
        if poll.is_ready() {
            self.request = None;
        }
        poll.map(|acquired| acquired.map(|_| ()).map_err(|_| Refused))
    }

    #[inline]
    pub(super) fn poll<T, B: Backend>(
        &mut self,
        chan: &Chan<T, B>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        let Some(request) = self.request else {
            return Poll::Ready(Err(Refused));
        };
        match self.state.try_start(request, &chan.permits) {
            Ok(_) => {
                self.request = None;
                Poll::Ready(Ok(()))
            }
            Err(found) => self.poll_after(found, chan, cx),
        }
    }

    #[inline]
    pub(super) fn cancel<T, B: Backend>(&mut self, chan: &Chan<T, B>) {
        if let Some(request) = self.request.take() {
            self.state.cancel(&request, &chan.permits);
        }
    }
}

/// The future of [`Sender::send`](super::Sender::send).
///
/// Polling it again after it was ready panics.
#[must_use = "futures do nothing unless polled"]
pub struct SendFuture<'a, T, B: Backend = DefaultBackend> {
    chan: &'a Chan<T, B>,
    /// None once it is sent, or has come back.
    value: Option<T>,
    stage: Stage,
    reserving: Reserving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Created,
    Waits,
    Sent,
    Done,
}

impl<'a, T, B: Backend> SendFuture<'a, T, B> {
    #[cfg_attr(feature = "caller-locations", track_caller)]
    #[inline]
    pub(super) const fn new(chan: &'a Chan<T, B>, value: T) -> Self {
        Self {
            chan,
            value: Some(value),
            stage: Stage::Created,
            reserving: Reserving::new(1),
        }
    }

    /// Gives the send up and returns its value, unless it is sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::pin::Pin;
    /// use core::task::{Context, Waker};
    /// use core::future::Future;
    /// use reveille::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel(1);
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

    /// Sends the value if there is a permit and no waiter is queued.
    #[inline]
    fn first_poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        let value = self.take();
        self.stage = Stage::Sent;
        match self.chan.try_send(value) {
            Ok(()) => {
                self.stage = Stage::Done;
                Poll::Ready(Ok(()))
            }
            Err((found, value)) if closed_in(found) => {
                self.stage = Stage::Done;
                Poll::Ready(Err(SendError(value)))
            }
            Err((found, value)) => {
                self.value = Some(value);
                self.stage = Stage::Waits;
                self.poll_reserving(found, cx)
            }
        }
    }

    #[inline(never)]
    fn poll_reserving(
        &mut self,
        found: Bits,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        let chan = self.chan;
        let poll = self.reserving.poll_after(found, chan, cx);
        poll.map(|reserved| {
            let value = self.take();
            match reserved {
                Ok(()) => {
                    self.stage = Stage::Sent;
                    chan.send_reserved(value);
                    self.stage = Stage::Done;
                    Ok(())
                }
                Err(Refused) => {
                    self.stage = Stage::Done;
                    Err(SendError(value))
                }
            }
        })
    }

    /// Takes the value, which is there until it is sent.
    fn take(&mut self) -> T {
        self.value.take().expect("a value is sent once")
    }
}

impl<T, B: Backend> Future for SendFuture<'_, T, B> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.stage {
            Stage::Created => this.first_poll(cx),
            Stage::Waits => this.poll_reserving(Bits::EMPTY, cx),
            Stage::Sent => {
                this.stage = Stage::Done;
                Poll::Ready(Ok(()))
            }
            Stage::Done => panic!("mpsc::Sender::send polled after it was ready"),
        }
    }
}

/// The value is not pinned.
impl<T, B: Backend> Unpin for SendFuture<'_, T, B> {}

impl<T, B: Backend> Drop for SendFuture<'_, T, B> {
    #[inline]
    fn drop(&mut self) {
        if self.stage == Stage::Waits {
            self.reserving.cancel(self.chan);
        }
    }
}

/// The future of [`Sender::send_timeout`](super::Sender::send_timeout).
///
/// Polling it again after it was ready panics.
#[cfg(feature = "std")]
#[must_use = "futures do nothing unless polled"]
pub struct SendTimeout<'a, T, B: Backend = DefaultBackend> {
    send: SendFuture<'a, T, B>,
    sleep: Sleep,
}

#[cfg(feature = "std")]
impl<'a, T, B: Backend> SendTimeout<'a, T, B> {
    pub(super) const fn new(send: SendFuture<'a, T, B>, sleep: Sleep) -> Self {
        Self { send, sleep }
    }
}

#[cfg(feature = "std")]
impl<T, B: Backend> Future for SendTimeout<'_, T, B> {
    type Output = Result<(), SendTimeoutError<T>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { send, sleep } = self.get_mut();
        if let Poll::Ready(sent) = Pin::new(&mut *send).poll(cx) {
            return Poll::Ready(sent.map_err(|SendError(value)| SendTimeoutError::Closed(value)));
        }
        Pin::new(sleep).poll(cx).map(|()| {
            let value = send.take();
            send.stage = Stage::Done;
            send.reserving.cancel(send.chan);
            Err(SendTimeoutError::Timeout(value))
        })
    }
}

impl<T, B: Backend> fmt::Debug for Recv<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Recv");
        f.field("waits", &self.waits).finish_non_exhaustive()
    }
}

impl<T, B: Backend> fmt::Debug for RecvMany<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("RecvMany");
        f.field("limit", &self.limit)
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}

impl<T, B: Backend> fmt::Debug for Closed<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Closed");
        f.field("waits", &self.waiter.is_some())
            .finish_non_exhaustive()
    }
}

impl<T, B: Backend> fmt::Debug for SendFuture<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("SendFuture");
        f.field("stage", &self.stage).finish_non_exhaustive()
    }
}

#[cfg(feature = "std")]
impl<T, B: Backend> fmt::Debug for SendTimeout<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendTimeout")
            .field("send", &self.send)
            .finish_non_exhaustive()
    }
}
