//! Where to listen and whom to connect to.

use crate::error::{Error, Result};
use core::fmt;
use core::net::{Ipv6Addr, SocketAddr};
use socket2::SockAddr;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The address of a stream socket.
///
/// As text it is `127.0.0.1:80`, `[::1]:80`, `*:80` (all of IPv6 and IPv4), `unix:/run/socket`, or
/// `unix:@name` in the abstract namespace. Host names are not resolved.
///
/// ```
/// # use paceline::net::{Address, ToAddress};
/// let address = "unix:@paceline".to_address().unwrap();
/// assert_eq!(address, Address::Abstract(b"paceline".to_vec()));
/// assert_eq!(address.to_string(), "unix:@paceline");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Address {
    /// TCP over IPv4 or IPv6. `[::]` takes IPv4 too, unless `v6_only` is set.
    Tcp(SocketAddr),
    /// A Unix socket in the file system: a path of 1 to 107 bytes without a zero byte.
    Unix(PathBuf),
    /// A Unix socket in the abstract namespace: its name, of up to 107 bytes, without the leading zero.
    Abstract(Vec<u8>),
    /// The other end of a Unix socket that was never bound.
    Unnamed,
}

/// How many bytes the path or the abstract name of a Unix socket may have: what sockaddr_un(7) has room for
/// beside a zero byte.
const LONGEST_UNIX: usize = 107;

impl Address {
    /// As `address` says, if the kernel has a form for it: the only way into the layer.
    pub(super) fn of(address: impl ToAddress) -> Result<Self> {
        let address = address.to_address()?;
        let refused = |bytes: usize, allowed: String| {
            Err(Error::invalid("address", format_args!("{address} ({bytes} bytes)"), allowed))
        };
        match &address {
            Self::Tcp(_) => Ok(address),
            Self::Unix(path) => match path.as_os_str().as_bytes() {
                path if path.contains(&0) => {
                    refused(path.len(), "a path without a zero byte".into())
                }
                path if (1..=LONGEST_UNIX).contains(&path.len()) => Ok(address),
                path => refused(path.len(), format!("a path of 1 to {LONGEST_UNIX} bytes")),
            },
            Self::Abstract(name) if name.len() <= LONGEST_UNIX => Ok(address),
            Self::Abstract(name) => {
                refused(name.len(), format!("a name of up to {LONGEST_UNIX} bytes"))
            }
            Self::Unnamed => refused(0, "one with a name".into()),
        }
    }

    /// The IP address and port, if this is TCP.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            _ => None,
        }
    }

    pub(super) fn to_socket_address(&self) -> io::Result<SockAddr> {
        match self {
            Self::Tcp(address) => Ok((*address).into()),
            Self::Unix(path) => SockAddr::unix(path),
            Self::Abstract(name) => {
                let name = [b"\0", name.as_slice()].concat();
                SockAddr::unix(Path::new(OsStr::from_bytes(&name)))
            }
            Self::Unnamed => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    pub(super) fn from_socket_address(address: &SockAddr) -> Self {
        if let Some(tcp) = address.as_socket() {
            Self::Tcp(tcp)
        } else if let Some(path) = address.as_pathname() {
            Self::Unix(path.into())
        } else if let Some(name) = address.as_abstract_namespace() {
            Self::Abstract(name.into())
        } else {
            Self::Unnamed
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.strip_prefix('@') {
                Some(name) => Some(Self::Abstract(name.into())),
                None => (!path.is_empty()).then(|| Self::Unix(path.into())),
            };
        }
        if let Some(port) = text.strip_prefix("*:") {
            let all = Ipv6Addr::UNSPECIFIED.into();
            return Some(Self::Tcp(SocketAddr::new(all, port.parse().ok()?)));
        }
        text.parse().ok().map(Self::Tcp)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "unix:@{}", name.escape_ascii()),
            Self::Unnamed => f.write_str("unix:"),
        }
    }
}

/// What can be read as an [`Address`].
///
/// Whoever takes one refuses, as [`Error::Invalid`], an [`Address`] that the kernel has no form for: a path or a
/// name of a Unix socket that is longer than 107 bytes, say.
pub trait ToAddress {
    /// The address.
    ///
    /// # Errors
    /// [`Error::Invalid`] for text that is none; it says what it may look like.
    fn to_address(&self) -> Result<Address>;
}

impl ToAddress for str {
    fn to_address(&self) -> Result<Address> {
        Address::parse(self).ok_or_else(|| {
            let allowed = "an IP address with a port, *:port, unix:/path or unix:@name";
            Error::invalid("address", format!("{self:?}"), allowed)
        })
    }
}

impl ToAddress for String {
    fn to_address(&self) -> Result<Address> {
        self.as_str().to_address()
    }
}

impl ToAddress for Address {
    fn to_address(&self) -> Result<Address> {
        Ok(self.clone())
    }
}

impl ToAddress for SocketAddr {
    fn to_address(&self) -> Result<Address> {
        Ok(Address::Tcp(*self))
    }
}

impl ToAddress for Path {
    fn to_address(&self) -> Result<Address> {
        Ok(Address::Unix(self.into()))
    }
}

impl<A: ToAddress + ?Sized> ToAddress for &A {
    fn to_address(&self) -> Result<Address> {
        (**self).to_address()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn text_goes_round() {
        for text in ["127.0.0.1:80", "[::1]:8080", "[::]:0", "unix:/run/a", "unix:@a b"] {
            assert_eq!(text.to_address().unwrap().to_string(), text);
        }
        assert_eq!("*:80".to_address().unwrap().to_string(), "[::]:80");
        for text in ["", "localhost:80", "127.0.0.1", "*:x", "unix:", "127.0.0.1:70000"] {
            let Err(Error::Invalid { name, value, .. }) = text.to_address() else { panic!() };
            assert_eq!((name, value), ("address", format!("{text:?}")));
        }
    }

    #[test]
    fn the_kernels_form_goes_round() {
        for text in ["127.0.0.1:80", "[::1]:8080", "unix:/run/a", "unix:@name"] {
            let address = text.to_address().unwrap();
            let kernels = address.to_socket_address().unwrap();
            assert_eq!(Address::from_socket_address(&kernels), address);
        }
        assert!("unix:/".to_address().unwrap().to_socket_address().is_ok());
        let long = format!("unix:/{}", "x".repeat(200));
        assert!(long.to_address().unwrap().to_socket_address().is_err());
    }

    #[test]
    fn what_the_kernel_has_no_form_for_is_refused() {
        let path = |bytes| Address::Unix("x".repeat(bytes).into());
        let name = |bytes| Address::Abstract(vec![b'x'; bytes]);
        for (address, expected) in [
            (path(1), None),
            (path(107), None),
            (path(108), Some("(108 bytes), but must be a path of 1 to 107 bytes")),
            (path(0), Some("address is unix: (0 bytes), but must be a path of 1 to 107 bytes")),
            (
                Address::Unix("a\0b".into()),
                Some("(3 bytes), but must be a path without a zero byte"),
            ),
            (name(107), None),
            (name(108), Some("(108 bytes), but must be a name of up to 107 bytes")),
            (Address::Unnamed, Some("but must be one with a name")),
        ] {
            let is_formed = address.to_socket_address().is_ok();
            match (Address::of(&address), expected) {
                (Ok(_), None) => assert!(is_formed, "{address}"),
                (Err(error), Some(expected)) => {
                    let text = error.to_string();
                    assert!(
                        matches!(error, Error::Invalid { .. }) && text.ends_with(expected),
                        "{text}"
                    );
                }
                (other, _) => panic!("{address}: {other:?}"),
            }
        }
    }
}
