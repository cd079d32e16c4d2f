//! Sockets of the file system: `UnixListener`, `UnixStream` and `UnixDatagram`.

#![forbid(unsafe_code)]

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{self, SocketAddr};
use std::panic::UnwindSafe;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::{Domain, SockAddr, Socket, Type};

use super::async_io::Async;
use super::half::{Half, Perform, Readiness};
use super::io::{Reads, Writes, reads, writes};
use super::stream::stream;

stream!(UnixStream, net::UnixStream, "a socket of the file system");

impl UnixStream {
    /// Connects to a path.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. If the queue of the listener is full, it is of the
    /// kind `WouldBlock`: the system tells of no room in it.
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(path)?)?;
        let stream = Self::from_std(std::os::fd::OwnedFd::from(socket).into())?;
        stream.writable().await?;
        Ok(stream)
    }

    /// Returns two streams that are connected to each other.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = net::UnixStream::pair()?;
        Ok((Self::from_std(a)?, Self::from_std(b)?))
    }

    /// Returns the address of this side.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io().local_addr()
    }

    /// Returns the address of the other side.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io().peer_addr()
    }

    /// Returns the error that the socket has met since the last call, if there is one.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io().take_error()
    }
}

/// Listens for connections at a path.
#[derive(Debug)]
pub struct UnixListener(Async<net::UnixListener>);

impl UnixListener {
    pub(super) fn io(&self) -> &net::UnixListener {
        self.0.get_ref()
    }

    /// Binds to a path and listens. The file is not removed when the listener is dropped.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, for example if the file exists.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::from_std(net::UnixListener::bind(path)?)
    }

    /// Takes over a listener of the standard library. It no longer blocks from then on.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, or of the reactor if it cannot be started.
    pub fn from_std(listener: net::UnixListener) -> io::Result<Self> {
        Async::new(listener).map(Self)
    }

    /// Returns the listener of the standard library. It still does not block.
    ///
    /// # Errors
    ///
    /// None today. The signature is that of tokio.
    pub fn into_std(self) -> io::Result<net::UnixListener> {
        Ok(self.0.into_inner())
    }

    /// Accepts a connection, and returns it with the address of the other side.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no connection.
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let (stream, address) = self.0.read_with(net::UnixListener::accept).await?;
        Ok((UnixStream::from_std(stream)?, address))
    }

    /// Returns the address that it listens at.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io().local_addr()
    }
}

/// A socket of the file system for messages.
///
/// All methods take a shared reference, so that several tasks can send and receive.
#[derive(Debug)]
pub struct UnixDatagram(Async<net::UnixDatagram>);

impl UnixDatagram {
    pub(super) fn io(&self) -> &net::UnixDatagram {
        self.0.get_ref()
    }

    /// Binds to a path.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, for example if the file exists.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::from_std(net::UnixDatagram::bind(path)?)
    }

    /// Creates a socket without an address.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn unbound() -> io::Result<Self> {
        Self::from_std(net::UnixDatagram::unbound()?)
    }

    /// Returns two sockets that are connected to each other.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = net::UnixDatagram::pair()?;
        Ok((Self::from_std(a)?, Self::from_std(b)?))
    }

    /// Takes over a socket of the standard library. It no longer blocks from then on.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, or of the reactor if it cannot be started.
    pub fn from_std(socket: net::UnixDatagram) -> io::Result<Self> {
        Async::new(socket).map(Self)
    }

    /// Returns the socket of the standard library. It still does not block.
    ///
    /// # Errors
    ///
    /// None today. The signature is that of tokio.
    pub fn into_std(self) -> io::Result<net::UnixDatagram> {
        Ok(self.0.into_inner())
    }

    /// Sets the path that [`send`](Self::send) sends to.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.io().connect(path)
    }

    /// Waits until a message can be received.
    pub fn readable(&self) -> Readiness<'_, net::UnixDatagram> {
        self.0.readable()
    }

    /// Waits until a message can be sent.
    pub fn writable(&self) -> Readiness<'_, net::UnixDatagram> {
        self.0.writable()
    }

    /// Sends a message to the path that it is connected to.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it is ready sends nothing.
    pub fn send<'a>(
        &'a self,
        bytes: &'a [u8],
    ) -> Perform<'a, net::UnixDatagram, impl FnMut(&net::UnixDatagram) -> io::Result<usize> + 'a>
    {
        self.0.write_with(move |socket| socket.send(bytes))
    }

    /// Receives a message. Bytes that do not fit are lost.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no message.
    pub fn recv<'a>(
        &'a self,
        bytes: &'a mut [u8],
    ) -> Perform<'a, net::UnixDatagram, impl FnMut(&net::UnixDatagram) -> io::Result<usize> + 'a>
    {
        self.0.read_with(move |socket| socket.recv(bytes))
    }

    /// Sends a message to a path.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it is ready sends nothing.
    pub async fn send_to(&self, bytes: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        let path = path.as_ref();
        let send = |socket: &net::UnixDatagram| socket.send_to(bytes, path);
        self.0.write_with(send).await
    }

    /// Receives a message, and returns its length with the address of the sender.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no message.
    pub async fn recv_from(&self, bytes: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let receive = |socket: &net::UnixDatagram| socket.recv_from(bytes);
        self.0.read_with(receive).await
    }

    /// Returns the address of this side.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io().local_addr()
    }
}
