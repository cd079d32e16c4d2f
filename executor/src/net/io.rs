//! The traits of futures, tokio and hyper for types that read and write.
//!
//! Each type says once how it reads and writes, by [`Reads`] and [`Writes`], and the macros
//! below implement the traits of the others by that.

#![forbid(unsafe_code)]

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

/// What reads bytes.
pub(super) trait Reads {
    fn poll_bytes(&mut self, cx: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>>;
}

/// What writes bytes.
pub(super) trait Writes {
    fn poll_bytes(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>>;

    /// Ends the direction: the other side reads to the end.
    fn end(&mut self) -> io::Result<()>;
}

/// The number of bytes that hyper reads at a time. Its buffer is not initialized, so the
/// bytes are read into one on the stack first.
#[cfg(feature = "hyper")]
pub(super) const HYPER_READ: usize = 8 * 1024;

/// Implements the traits of others for types that are [`Reads`].
macro_rules! reads {
    ($($reader:ty),*) => {$(
        impl futures_io::AsyncRead for $reader {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                Reads::poll_bytes(self.get_mut(), cx, bytes)
            }
        }

        #[cfg(feature = "tokio")]
        impl ::tokio::io::AsyncRead for $reader {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut ::tokio::io::ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let read = Reads::poll_bytes(self.get_mut(), cx, buffer.initialize_unfilled());
                read.map_ok(|n| buffer.advance(n))
            }
        }

        #[cfg(feature = "hyper")]
        impl ::hyper::rt::Read for $reader {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                mut buffer: ::hyper::rt::ReadBufCursor<'_>,
            ) -> Poll<io::Result<()>> {
                let mut bytes = [0; $crate::net::io::HYPER_READ];
                let most = buffer.remaining().min(bytes.len());
                let read = Reads::poll_bytes(self.get_mut(), cx, &mut bytes[..most]);
                read.map_ok(|n| buffer.put_slice(&bytes[..n]))
            }
        }
    )*};
}

/// Implements the traits of others for types that are [`Writes`].
macro_rules! writes {
    ($($writer:ty),*) => {$(
        impl futures_io::AsyncWrite for $writer {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Writes::poll_bytes(self.get_mut(), cx, &[IoSlice::new(bytes)])
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Writes::poll_bytes(self.get_mut(), cx, bytes)
            }

            /// Returns ready: nothing is buffered here.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Writes::end(self.get_mut()))
            }
        }

        #[cfg(feature = "tokio")]
        impl ::tokio::io::AsyncWrite for $writer {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Writes::poll_bytes(self.get_mut(), cx, &[IoSlice::new(bytes)])
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Writes::poll_bytes(self.get_mut(), cx, bytes)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            /// Returns ready: nothing is buffered here.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Writes::end(self.get_mut()))
            }
        }

        #[cfg(feature = "hyper")]
        impl ::hyper::rt::Write for $writer {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Writes::poll_bytes(self.get_mut(), cx, &[IoSlice::new(bytes)])
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Writes::poll_bytes(self.get_mut(), cx, bytes)
            }

            /// Returns ready: nothing is buffered here.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Writes::end(self.get_mut()))
            }
        }
    )*};
}

pub(super) use {reads, writes};
