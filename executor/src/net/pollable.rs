//! What the reactor can be asked about.

use polling::AsSource;

/// A type whose readiness the system tells of, such as a socket or a pipe.
///
/// # Safety
///
/// Until the value is dropped, each call of `as_fd` (`as_socket` on Windows) returns the same
/// descriptor, which stays open. Nothing that can be done with a shared reference to the
/// value closes the descriptor or replaces it.
#[allow(unsafe_code)]
pub unsafe trait Pollable: AsSource {}

/// Implements [`Pollable`] for types of the standard library, which own their descriptor.
macro_rules! pollable {
    ($($(#[$attribute:meta])* $owner:ty;)*) => {$(
        $(#[$attribute])*
        #[allow(unsafe_code)]
        // SAFETY: the type owns its descriptor, as its `AsFd` or `AsSocket` states. It is
        // closed by `drop` only, and no method with a shared reference replaces it.
        unsafe impl Pollable for $owner {}
    )*};
}

pollable! {
    std::net::TcpListener;
    std::net::TcpStream;
    std::net::UdpSocket;
    #[cfg(unix)] std::os::fd::OwnedFd;
    #[cfg(unix)] std::os::unix::net::UnixDatagram;
    #[cfg(unix)] std::os::unix::net::UnixListener;
    #[cfg(unix)] std::os::unix::net::UnixStream;
    #[cfg(unix)] std::io::PipeReader;
    #[cfg(unix)] std::io::PipeWriter;
    #[cfg(unix)] std::process::ChildStderr;
    #[cfg(unix)] std::process::ChildStdin;
    #[cfg(unix)] std::process::ChildStdout;
}
