//! `Async`: any source whose readiness the system tells of.

#![forbid(unsafe_code)]

use std::io;
use std::task::{Context, Poll};

use super::half::{Half, Perform, Readiness};
use super::pollable::Pollable;
use super::readiness::Direction;

/// A source whose operations wait for the system instead of blocking the thread.
///
/// It is for sources that have no type of their own here: a pipe, the output of a child
/// process, or a socket of another library. The reactor of the process tells when it is
/// ready, so it works under any executor.
///
/// # Examples
///
/// The output of a child process:
///
/// ```
/// # #[cfg(unix)] {
/// use reveille_executor::net::Async;
/// use std::io::{self, Read};
/// use std::process::Command;
///
/// let (reader, writer) = io::pipe()?;
/// let mut child = Command::new("echo").arg("hello").stdout(writer).spawn()?;
/// let output = Async::new(reader)?;
/// let text = reveille_executor::block_on(async {
///     let mut text = Vec::new();
///     loop {
///         let mut part = [0; 64];
///         match output.read_with(|mut pipe| pipe.read(&mut part)).await? {
///             0 => return io::Result::Ok(text),
///             n => text.extend_from_slice(&part[..n]),
///         }
///     }
/// })?;
/// assert_eq!(text, b"hello\n");
/// child.wait()?;
/// # }
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Async<T: Pollable> {
    read: Half<T>,
    write: Half<T>,
}

impl<T: Pollable> Async<T> {
    /// Registers a source. It no longer blocks from then on.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it does not tell of such a source, such as a file,
    /// or if the reactor cannot be started.
    pub fn new(io: T) -> io::Result<Self> {
        let (read, write) = Half::pair(io)?;
        Ok(Self { read, write })
    }

    /// Returns the source.
    #[must_use]
    pub fn get_ref(&self) -> &T {
        self.read.io()
    }

    /// Deregisters the source and returns it. It still does not block.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.read.into_inner(self.write)
    }

    /// Waits until a read would not block. See [`Readiness`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub fn readable(&self) -> Readiness<'_, T> {
        self.read.ready()
    }

    /// Waits until a write would not block. See [`Readiness`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub fn writable(&self) -> Readiness<'_, T> {
        self.write.ready()
    }

    /// Performs `operation` as soon as a read would not block, and again whenever it would
    /// block nevertheless.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: it is ready as soon as the operation has been
    /// performed.
    pub fn read_with<R, F>(&self, operation: F) -> Perform<'_, T, F>
    where
        F: FnMut(&T) -> io::Result<R>,
    {
        Perform::new(self.read.registered(), Direction::Read, operation)
    }

    /// Performs `operation` as soon as a write would not block, and again whenever it would
    /// block nevertheless.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: it is ready as soon as the operation has been
    /// performed.
    pub fn write_with<R, F>(&self, operation: F) -> Perform<'_, T, F>
    where
        F: FnMut(&T) -> io::Result<R>,
    {
        Perform::new(self.write.registered(), Direction::Write, operation)
    }

    /// Polls to perform an operation that reads.
    pub fn poll_read_with<R>(
        &mut self,
        cx: &mut Context<'_>,
        operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.read.poll_with(cx, operation)
    }

    /// Polls to perform an operation that writes.
    pub fn poll_write_with<R>(
        &mut self,
        cx: &mut Context<'_>,
        operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.write.poll_with(cx, operation)
    }

    /// Performs an operation that reads and does not wait.
    ///
    /// # Errors
    ///
    /// Returns the error of the operation. If it would block, [`readable`](Self::readable)
    /// waits from then on.
    pub fn try_read_with<R>(&self, operation: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.read.try_with(operation)
    }

    /// Performs an operation that writes and does not wait.
    ///
    /// # Errors
    ///
    /// Returns the error of the operation. If it would block, [`writable`](Self::writable)
    /// waits from then on.
    pub fn try_write_with<R>(&self, operation: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.write.try_with(operation)
    }
}
