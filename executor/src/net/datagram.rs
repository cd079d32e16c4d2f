//! `UdpSocket`.

#![forbid(unsafe_code)]

use std::io;
use std::net::{self, SocketAddr};

use super::addr::{ToSocketAddrs, first_of};
use super::async_io::Async;
use super::half::{Perform, Readiness};

/// A UDP socket.
///
/// All methods take a shared reference, so that several tasks can send and receive.
///
/// # Examples
///
/// ```
/// use reveille_executor::net::UdpSocket;
///
/// reveille_executor::block_on(async {
///     let (a, b) = (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
///     a.send_to(b"hello", b.local_addr()?).await?;
///     let mut bytes = [0; 8];
///     assert_eq!(b.recv_from(&mut bytes).await?, (5, a.local_addr()?));
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct UdpSocket(Async<net::UdpSocket>);

impl UdpSocket {
    pub(super) fn io(&self) -> &net::UdpSocket {
        self.0.get_ref()
    }

    /// Binds to an address. Port 0 lets the system choose one.
    ///
    /// # Errors
    ///
    /// Returns the error of the last address that was tried.
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        first_of(address, async |address| {
            Self::from_std(net::UdpSocket::bind(address)?)
        })
        .await
    }

    /// Takes over a socket of the standard library. It no longer blocks from then on.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, or of the reactor if it cannot be started.
    pub fn from_std(socket: net::UdpSocket) -> io::Result<Self> {
        Async::new(socket).map(Self)
    }

    /// Returns the socket of the standard library. It still does not block.
    ///
    /// # Errors
    ///
    /// None today. The signature is that of tokio.
    pub fn into_std(self) -> io::Result<net::UdpSocket> {
        Ok(self.0.into_inner())
    }

    /// Sets the address that [`send`](Self::send) sends to and [`recv`](Self::recv) receives
    /// from.
    ///
    /// # Errors
    ///
    /// Returns the error of the last address that was tried.
    pub async fn connect(&self, address: impl ToSocketAddrs) -> io::Result<()> {
        first_of(address, async |address| self.io().connect(address)).await
    }

    /// Returns the address of this side.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io().local_addr()
    }

    /// Returns the address that it is connected to.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, for example if it is not connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io().peer_addr()
    }

    /// Waits until a message can be received.
    pub fn readable(&self) -> Readiness<'_, net::UdpSocket> {
        self.0.readable()
    }

    /// Waits until a message can be sent.
    pub fn writable(&self) -> Readiness<'_, net::UdpSocket> {
        self.0.writable()
    }

    /// Sends a message to the address that it is connected to.
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
    ) -> Perform<'a, net::UdpSocket, impl FnMut(&net::UdpSocket) -> io::Result<usize> + 'a> {
        self.0.write_with(move |socket| socket.send(bytes))
    }

    /// Receives a message from the address that it is connected to. Bytes that do not fit
    /// are lost.
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
    ) -> Perform<'a, net::UdpSocket, impl FnMut(&net::UdpSocket) -> io::Result<usize> + 'a> {
        self.0.read_with(move |socket| socket.recv(bytes))
    }

    /// Sends a message to an address.
    ///
    /// # Errors
    ///
    /// Returns the error of the last address that was tried.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it is ready sends nothing.
    pub async fn send_to(&self, bytes: &[u8], address: impl ToSocketAddrs) -> io::Result<usize> {
        first_of(address, async |address| {
            let send = move |socket: &net::UdpSocket| socket.send_to(bytes, address);
            self.0.write_with(send).await
        })
        .await
    }

    /// Receives a message, and returns its length with the address of the sender. Bytes that
    /// do not fit are lost.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no message.
    pub fn recv_from<'a>(
        &'a self,
        bytes: &'a mut [u8],
    ) -> Perform<
        'a,
        net::UdpSocket,
        impl FnMut(&net::UdpSocket) -> io::Result<(usize, SocketAddr)> + 'a,
    > {
        self.0.read_with(move |socket| socket.recv_from(bytes))
    }

    /// Sends a message without waiting.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind `WouldBlock` if there is no room.
    pub fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write_with(|socket| socket.send(bytes))
    }

    /// Sends a message to an address without waiting.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind `WouldBlock` if there is no room.
    pub fn try_send_to(&self, bytes: &[u8], address: SocketAddr) -> io::Result<usize> {
        self.0
            .try_write_with(|socket| socket.send_to(bytes, address))
    }

    /// Receives a message without waiting.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind `WouldBlock` if there is none.
    pub fn try_recv(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.try_read_with(|socket| socket.recv(bytes))
    }

    /// Receives a message and the address of its sender without waiting.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind `WouldBlock` if there is none.
    pub fn try_recv_from(&self, bytes: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.try_read_with(|socket| socket.recv_from(bytes))
    }
}
