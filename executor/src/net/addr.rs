//! Names and addresses.

#![forbid(unsafe_code)]

use std::io;
use std::net::{self, IpAddr, SocketAddr};

use crate::task::spawn_blocking;

/// What can be turned into socket addresses, as in the standard library.
///
/// An address is taken as it is. A name is looked up on a thread for calls that block.
pub trait ToSocketAddrs {
    /// Returns the addresses, if that takes no look-up, or what is to be looked up.
    #[doc(hidden)]
    fn addresses(&self) -> Addresses;
}

/// Addresses, or what is to be looked up.
#[doc(hidden)]
#[derive(Debug)]
pub enum Addresses {
    Known(Vec<SocketAddr>),
    Name(String),
    NameAndPort(String, u16),
}

macro_rules! known {
    ($($address:ty;)*) => {$(
        impl ToSocketAddrs for $address {
            fn addresses(&self) -> Addresses {
                Addresses::Known(vec![SocketAddr::from(*self)])
            }
        }
    )*};
}

known! {
    SocketAddr;
    net::SocketAddrV4;
    net::SocketAddrV6;
    (IpAddr, u16);
    (net::Ipv4Addr, u16);
    (net::Ipv6Addr, u16);
}

impl ToSocketAddrs for &[SocketAddr] {
    fn addresses(&self) -> Addresses {
        Addresses::Known(self.to_vec())
    }
}

impl ToSocketAddrs for str {
    fn addresses(&self) -> Addresses {
        match self.parse() {
            Ok(address) => Addresses::Known(vec![address]),
            Err(_) => Addresses::Name(self.to_owned()),
        }
    }
}

impl ToSocketAddrs for String {
    fn addresses(&self) -> Addresses {
        self.as_str().addresses()
    }
}

impl ToSocketAddrs for (&str, u16) {
    fn addresses(&self) -> Addresses {
        match self.0.parse::<IpAddr>() {
            Ok(ip) => Addresses::Known(vec![SocketAddr::from((ip, self.1))]),
            Err(_) => Addresses::NameAndPort(self.0.to_owned(), self.1),
        }
    }
}

impl ToSocketAddrs for (String, u16) {
    fn addresses(&self) -> Addresses {
        (self.0.as_str(), self.1).addresses()
    }
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {
    fn addresses(&self) -> Addresses {
        (**self).addresses()
    }
}

/// Returns the addresses of a host and port, such as `"localhost:80"`.
///
/// # Errors
///
/// Returns the error of the system if the name is not known or not valid.
///
/// # Examples
///
/// ```
/// use reveille_executor::net::lookup_host;
///
/// let addresses = reveille_executor::block_on(lookup_host("127.0.0.1:80"))?;
/// assert_eq!(addresses.collect::<Vec<_>>(), ["127.0.0.1:80".parse().unwrap()]);
/// # std::io::Result::Ok(())
/// ```
pub async fn lookup_host(host: impl ToSocketAddrs) -> io::Result<impl Iterator<Item = SocketAddr>> {
    Ok(resolve(host.addresses()).await?.into_iter())
}

async fn resolve(addresses: Addresses) -> io::Result<Vec<SocketAddr>> {
    use net::ToSocketAddrs;
    if let Addresses::Known(known) = addresses {
        return Ok(known);
    }
    let call = spawn_blocking(move || {
        Ok(match addresses {
            Addresses::Known(known) => known,
            Addresses::Name(name) => name.to_socket_addrs()?.collect(),
            Addresses::NameAndPort(name, port) => {
                (name.as_str(), port).to_socket_addrs()?.collect()
            }
        })
    });
    call.await.map_err(io::Error::other)?
}

/// Calls a function with each address until it returns no error.
pub(super) async fn first_of<T>(
    host: impl ToSocketAddrs,
    mut with: impl AsyncFnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let addresses = resolve(host.addresses()).await?;
    let mut last = io::Error::new(
        io::ErrorKind::InvalidInput,
        "the name has no address: check it",
    );
    for address in addresses {
        match with(address).await {
            Ok(value) => return Ok(value),
            Err(error) => last = error,
        }
    }
    Err(last)
}
