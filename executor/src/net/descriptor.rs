//! The descriptor of a socket, for libraries that set options.

#![forbid(unsafe_code)]

#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// Gives types their descriptor, that of the value which `io` returns.
macro_rules! descriptors {
    ($($socket:ty: $this:ident => $io:expr;)*) => {$(
        #[cfg(unix)]
        impl AsFd for $socket {
            fn as_fd(&self) -> BorrowedFd<'_> {
                let $this = self;
                $io.as_fd()
            }
        }

        #[cfg(unix)]
        impl AsRawFd for $socket {
            fn as_raw_fd(&self) -> RawFd {
                self.as_fd().as_raw_fd()
            }
        }
    )*};
}

descriptors! {
    super::TcpListener: this => this.io();
    super::TcpStream: this => this.io();
    super::UdpSocket: this => this.io();
}

#[cfg(unix)]
descriptors! {
    super::UnixDatagram: this => this.io();
    super::UnixListener: this => this.io();
    super::UnixStream: this => this.io();
}
