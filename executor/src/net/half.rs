//! One direction of a source, with the place of the task that uses it.

#![forbid(unsafe_code)]

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::pollable::Pollable;
use super::reactor::Registered;
use super::readiness::{Direction, Place};

/// One direction of a source. A stream is two of them, and its halves are these two.
pub(super) struct Half<T: Pollable> {
    registered: Arc<Registered<T>>,
    direction: Direction,
    place: Place,
}

impl<T: Pollable> Half<T> {
    /// Registers a source and returns its directions, to read and to write.
    pub(super) fn pair(io: T) -> io::Result<(Self, Self)> {
        let registered = Arc::new(Registered::new(io)?);
        let half = |direction| Self {
            registered: registered.clone(),
            direction,
            place: Place::new(),
        };
        Ok((half(Direction::Read), half(Direction::Write)))
    }

    /// Returns `true` if both are directions of the same source.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.registered, &other.registered)
    }

    pub(super) fn io(&self) -> &T {
        self.registered.io()
    }

    pub(super) fn registered(&self) -> &Registered<T> {
        &self.registered
    }

    /// Performs an operation as soon as it would not block.
    pub(super) fn poll_with<R>(
        &mut self,
        cx: &mut Context<'_>,
        operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.registered
            .poll_with(&mut self.place, self.direction, cx, operation)
    }

    /// Performs an operation that does not wait.
    pub(super) fn try_with<R>(&self, operation: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.registered.try_with(self.direction, operation)
    }

    /// Returns a future that waits until the direction is ready.
    pub(super) fn ready(&self) -> Readiness<'_, T> {
        Readiness::new(&self.registered, self.direction)
    }

    /// Deregisters the source and returns it.
    pub(super) fn into_inner(self, other: Self) -> T {
        drop(other);
        let registered = self.registered.clone();
        drop(self);
        Arc::into_inner(registered)
            .expect("its two directions are the only references")
            .into_inner()
    }
}

impl<T: Pollable> Drop for Half<T> {
    fn drop(&mut self) {
        self.registered.leave(&mut self.place, self.direction);
    }
}

impl<T: Pollable + fmt::Debug> fmt::Debug for Half<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.registered.fmt(f)
    }
}

/// The future of the `readable` and `writable` methods of sockets: waits until a read, or a
/// write, would not block.
///
/// Several tasks can wait for the same direction, and all of them are woken.
///
/// # Cancel safety
///
/// Dropping it loses nothing.
#[must_use = "futures do nothing unless polled"]
pub struct Readiness<'a, T: Pollable> {
    registered: &'a Registered<T>,
    direction: Direction,
    place: Place,
}

impl<'a, T: Pollable> Readiness<'a, T> {
    pub(super) fn new(registered: &'a Registered<T>, direction: Direction) -> Self {
        Self {
            registered,
            direction,
            place: Place::new(),
        }
    }
}

impl<T: Pollable> Future for Readiness<'_, T> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.registered
            .poll_ready(&mut this.place, this.direction, cx)
    }
}

impl<T: Pollable> Drop for Readiness<'_, T> {
    fn drop(&mut self) {
        self.registered.leave(&mut self.place, self.direction);
    }
}

impl<T: Pollable> fmt::Debug for Readiness<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readiness")
            .field("direction", &self.direction)
            .finish_non_exhaustive()
    }
}

/// The future of [`Async::read_with`](super::Async::read_with) and of methods that receive or
/// send: performs an operation as soon as it would not block.
///
/// # Cancel safety
///
/// Dropping it loses nothing: an operation either has not been performed, or the future is
/// ready.
#[must_use = "futures do nothing unless polled"]
pub struct Perform<'a, T: Pollable, F> {
    registered: &'a Registered<T>,
    direction: Direction,
    place: Place,
    operation: F,
}

impl<'a, T: Pollable, F> Perform<'a, T, F> {
    pub(super) fn new(registered: &'a Registered<T>, direction: Direction, operation: F) -> Self {
        Self {
            registered,
            direction,
            place: Place::new(),
            operation,
        }
    }
}

/// The operation is only called.
impl<T: Pollable, F> Unpin for Perform<'_, T, F> {}

impl<R, T: Pollable, F: FnMut(&T) -> io::Result<R>> Future for Perform<'_, T, F> {
    type Output = io::Result<R>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        let this = self.get_mut();
        this.registered
            .poll_with(&mut this.place, this.direction, cx, &mut this.operation)
    }
}

impl<T: Pollable, F> Drop for Perform<'_, T, F> {
    fn drop(&mut self) {
        self.registered.leave(&mut self.place, self.direction);
    }
}

impl<T: Pollable, F> fmt::Debug for Perform<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Perform")
            .field("direction", &self.direction)
            .finish_non_exhaustive()
    }
}
