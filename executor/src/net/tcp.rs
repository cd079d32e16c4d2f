//! TCP: `TcpListener`, `TcpStream`, and the halves of a stream.

#![forbid(unsafe_code)]

use std::io::{self, IoSlice, Read, Write};
use std::net::{self, Shutdown, SocketAddr};
use std::panic::UnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::{Domain, SockAddr, Socket, Type};

use super::addr::{ToSocketAddrs, first_of};
use super::async_io::Async;
use super::half::{Half, Readiness};
use super::io::{Reads, Writes, reads, writes};
use super::stream::stream;

stream!(TcpStream, net::TcpStream, "TCP");

impl TcpStream {
    /// Connects to an address. If a name has several, they are tried in order.
    ///
    /// # Errors
    ///
    /// Returns the error of the last address that was tried.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection that is being made.
    ///
    /// # Examples
    ///
    /// ```
    /// use reveille_executor::net::{TcpListener, TcpStream};
    ///
    /// reveille_executor::block_on(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (accepted, address) = listener.accept().await?;
    ///     assert_eq!(stream.local_addr()?, address);
    ///     stream.try_write(b"hello")?;
    ///     accepted.readable().await?;
    ///     let mut bytes = [0; 8];
    ///     assert_eq!(accepted.try_read(&mut bytes)?, 5);
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        first_of(address, async |address| {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            socket.set_nonblocking(true)?;
            let begun = socket.connect(&SockAddr::from(address));
            if let Err(error) = begun
                && !is_in_progress(&error)
            {
                return Err(error);
            }
            let stream = Self::from_std(socket.into())?;
            stream.connected().await?;
            Ok(stream)
        })
        .await
    }

    /// Waits until the connection is made or has failed.
    async fn connected(&self) -> io::Result<()> {
        loop {
            self.writable().await?;
            if let Some(error) = self.io().take_error()? {
                return Err(error);
            }
            // A socket that is not connected yet can be writable too, before its
            // connection has begun.
            match self.io().peer_addr() {
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    let not_yet = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
                    drop(self.write.try_with(|_| not_yet()));
                }
                result => return result.map(drop),
            }
        }
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

    /// Returns `true` if small writes are sent at once.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.io().nodelay()
    }

    /// Sets whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.io().set_nodelay(nodelay)
    }

    /// Returns how many routers a packet may pass.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn ttl(&self) -> io::Result<u32> {
        self.io().ttl()
    }

    /// Sets how many routers a packet may pass.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io().set_ttl(ttl)
    }

    /// Returns the error that the socket has met since the last call, if there is one.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io().take_error()
    }

    /// Reads without taking the bytes out: the next read returns them again.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn peek(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let peek = |io: &net::TcpStream| io.peek(bytes);
        super::half::Perform::new(
            self.read.registered(),
            super::readiness::Direction::Read,
            peek,
        )
        .await
    }
}

fn is_in_progress(error: &io::Error) -> bool {
    if error.kind() == io::ErrorKind::WouldBlock {
        return true;
    }
    // `EINPROGRESS` has a kind of its own that is not stable yet.
    cfg!(unix) && error.raw_os_error() == Some(in_progress())
}

/// Returns `EINPROGRESS`.
const fn in_progress() -> i32 {
    if cfg!(any(target_os = "linux", target_os = "android")) {
        115
    } else {
        // macOS and the BSDs.
        36
    }
}

/// Listens for TCP connections.
///
/// # Examples
///
/// ```no_run
/// use reveille_executor::net::TcpListener;
/// use reveille_executor::{ThreadPool, task};
///
/// ThreadPool::new().block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:8080").await?;
///     loop {
///         match listener.accept().await {
///             Ok((stream, address)) => {
///                 drop(task::spawn(async move { println!("{address}: {stream:?}") }));
///             }
///             // Too many files are open, for example. The listener goes on.
///             Err(error) => eprintln!("a connection was lost: {error}"),
///         }
///     }
///     # #[allow(unreachable_code)]
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct TcpListener(Async<net::TcpListener>);

impl TcpListener {
    pub(super) fn io(&self) -> &net::TcpListener {
        self.0.get_ref()
    }

    /// Binds to an address and listens. Port 0 lets the system choose one. If a name has
    /// several addresses, they are tried in order.
    ///
    /// # Errors
    ///
    /// Returns the error of the last address that was tried.
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        first_of(address, async |address| {
            Self::from_std(net::TcpListener::bind(address)?)
        })
        .await
    }

    /// Takes over a listener of the standard library. It no longer blocks from then on.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, or of the reactor if it cannot be started.
    pub fn from_std(listener: net::TcpListener) -> io::Result<Self> {
        Async::new(listener).map(Self)
    }

    /// Returns the listener of the standard library. It still does not block.
    ///
    /// # Errors
    ///
    /// None today. The signature is that of tokio.
    pub fn into_std(self) -> io::Result<net::TcpListener> {
        Ok(self.0.into_inner())
    }

    /// Accepts a connection, and returns it with the address of the other side.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. If too many files are open, the connection stays in
    /// the queue of the system, and a later call accepts it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no connection.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, address) = self.0.read_with(net::TcpListener::accept).await?;
        Ok((TcpStream::from_std(stream)?, address))
    }

    /// Returns the address that it listens at.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io().local_addr()
    }

    /// Returns how many routers a packet may pass.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn ttl(&self) -> io::Result<u32> {
        self.io().ttl()
    }

    /// Sets how many routers a packet may pass.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io().set_ttl(ttl)
    }

    /// Polls to accept a connection. See [`accept`](Self::accept).
    pub fn poll_accept(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let accepted = self.0.poll_read_with(cx, net::TcpListener::accept);
        accepted.map(|accepted| {
            let (stream, address) = accepted?;
            Ok((TcpStream::from_std(stream)?, address))
        })
    }
}
