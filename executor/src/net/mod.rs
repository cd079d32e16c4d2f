//! Sockets that work under any executor.
//!
//! | item | |
//! | --- | --- |
//! | [`TcpListener`], [`TcpStream`] | TCP |
//! | [`UdpSocket`] | UDP |
//! | `UnixListener`, `UnixStream`, `UnixDatagram` | sockets of the file system, on Unix |
//! | [`Async`] | any source whose readiness the system tells of |
//! | [`lookup_host`] | the addresses of a name |
//! | [`readiness`], [`sources`] | what the reactor stands on, generic over the backend |
//!
//! Names and semantics are those of `tokio::net`. The streams read and write by the traits of
//! `futures_io`, and with the features `tokio` and `hyper` by those of these crates.
//!
//! ```
//! use reveille_executor::net::{TcpListener, TcpStream};
//! use reveille_executor::{ThreadPool, task};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! let reply = ThreadPool::new().block_on(async {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let address = listener.local_addr()?;
//!     let echo = task::spawn(async move {
//!         let (mut stream, _) = listener.accept().await?;
//!         let (mut read, mut write) = stream.split();
//!         tokio::io::copy(&mut read, &mut write).await
//!     });
//!     let mut stream = TcpStream::connect(address).await?;
//!     stream.write_all(b"hello").await?;
//!     stream.shutdown().await?;
//!     let mut reply = String::new();
//!     stream.read_to_string(&mut reply).await?;
//!     assert_eq!(echo.await.unwrap()?, 5);
//!     std::io::Result::Ok(reply)
//! })?;
//! assert_eq!(reply, "hello");
//! # std::io::Result::Ok(())
//! ```
//!
//! # How it works
//!
//! ```text
//!   the system          the reactor                  a source                 a task
//!   fd 9 is readable ─▶ key ─▶ Sources ─▶ notify: ─▶ readiness, wakers ─wake─▶ polls, reads
//!                                                    under one lock
//! ```
//!
//! The system is asked by the `polling` crate: epoll, kqueue, event ports or IOCP. It tells of
//! each change once. A source stores that it is ready, and keeps it until a task finds that an
//! operation would block. The task then clears it and registers its waker in one section,
//! unless an event has come in between. So no change is lost: see [`readiness`].
//!
//! One thread waits for the system, for all executors of the process. It is started with the
//! first socket.

mod addr;
mod async_io;
mod datagram;
mod descriptor;
mod half;
pub(crate) mod io;
mod pollable;
mod reactor;
pub mod readiness;
pub mod sources;
mod stream;
/// TCP streams, and their halves.
pub mod tcp;
/// Streams of the file system, and their halves.
#[cfg(unix)]
pub mod unix;

pub use self::addr::{ToSocketAddrs, lookup_host};
pub use self::async_io::Async;
pub use self::datagram::UdpSocket;
pub use self::half::{Perform, Readiness};
pub use self::pollable::Pollable;
pub use self::tcp::{TcpListener, TcpStream};
#[cfg(unix)]
pub use self::unix::{UnixDatagram, UnixListener, UnixStream};

/// Returns the number of sockets that the reactor knows.
///
/// # Examples
///
/// ```
/// use reveille_executor::net::{registered, TcpListener};
///
/// let listener = reveille_executor::block_on(TcpListener::bind("127.0.0.1:0"))?;
/// assert!(registered() >= 1);
/// drop(listener);
/// # std::io::Result::Ok(())
/// ```
#[must_use]
pub fn registered() -> usize {
    reactor::registered()
}
