//! What a datagram socket is opened with.

use super::socket::{DatagramHandler, UdpSocket};
use crate::error::{Error, Result};
use crate::net::address::ToAddress;
use crate::net::bounds::range;
use crate::net::socket::set_buffers;
use crate::pool::Pool;
use crate::sys::datagram::{BATCH, Inbox};
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

impl UdpSocket {
    /// Settings to open a socket with.
    pub fn builder(pool: &Pool) -> UdpBuilder {
        let pool = pool.clone();
        UdpBuilder { pool, source: Source::Unbound, peer: None, limits: Limits::default() }
    }
}

/// Settings of a datagram socket; see [`UdpSocket::builder`].
#[must_use]
pub struct UdpBuilder {
    pool: Pool,
    source: Source,
    peer: Option<Result<SocketAddr>>,
    limits: Limits,
}

enum Source {
    /// At the peer's family's unspecified address, if there is a peer.
    Unbound,
    Bind(Result<SocketAddr>),
    Inherited(OwnedFd),
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    batch: usize,
    max_datagram: usize,
    v6_only: bool,
    reuse_port: bool,
    broadcast: bool,
    multicast_loop: bool,
    multicast_ttl: u32,
    send_buffer: Option<usize>,
    receive_buffer: Option<usize>,
}

impl UdpBuilder {
    /// Receives here. Port 0 is a free port: [`UdpSocket::address`] tells which. A socket that sends
    /// to a multicast group does so on the interface whose IPv4 address it is bound to.
    pub fn bind(mut self, address: impl ToAddress) -> Self {
        self.source = Source::Bind(ip(address));
        self
    }

    /// A socket for datagrams that is bound already.
    pub fn bind_to(mut self, socket: impl Into<OwnedFd>) -> Self {
        self.source = Source::Inherited(socket.into());
        self
    }

    /// Sends to this peer, and receives from nobody else.
    pub fn connect(mut self, address: impl ToAddress) -> Self {
        self.peer = Some(ip(address));
        self
    }

    /// Datagrams received in one system call, 1 to 64. Default 32.
    pub fn batch(mut self, datagrams: usize) -> Self {
        self.limits.batch = datagrams;
        self
    }

    /// Bytes received of a datagram, 1 to 65535; what is longer is truncated, and says so. The socket
    /// has room for a batch of such, which costs memory where datagrams have been. Default 65535:
    /// nothing is truncated.
    pub fn max_datagram(mut self, bytes: usize) -> Self {
        self.limits.max_datagram = bytes;
        self
    }

    /// An IPv6 socket takes no IPv4. Default: `[::]` takes both.
    pub fn v6_only(mut self, on: bool) -> Self {
        self.limits.v6_only = on;
        self
    }

    /// Several sockets may be bound to the same port; the kernel deals datagrams out by their source.
    /// Default: no.
    pub fn reuse_port(mut self, on: bool) -> Self {
        self.limits.reuse_port = on;
        self
    }

    /// May send to broadcast addresses. Default: no.
    pub fn broadcast(mut self, on: bool) -> Self {
        self.limits.broadcast = on;
        self
    }

    /// What it sends to a group comes back to members on this host. Default: yes.
    pub fn multicast_loop(mut self, on: bool) -> Self {
        self.limits.multicast_loop = on;
        self
    }

    /// Hops that what it sends to a group may take, 0 to 255. Default 1: the own network.
    pub fn multicast_ttl(mut self, hops: u32) -> Self {
        self.limits.multicast_ttl = hops;
        self
    }

    /// Bytes that the kernel buffers for sending (it doubles them). Default: the system's.
    pub fn send_buffer(mut self, bytes: usize) -> Self {
        self.limits.send_buffer = Some(bytes);
        self
    }

    /// Bytes that the kernel buffers for receiving (it doubles them); what does not fit is lost.
    /// Default: the system's.
    pub fn receive_buffer(mut self, bytes: usize) -> Self {
        self.limits.receive_buffer = Some(bytes);
        self
    }

    /// Starts.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the setting, its value and its bounds. [`Error::Os`] names the address
    /// that could not be bound or connected to, and the reason. [`Error::Full`], [`Error::ShutDown`],
    /// [`Error::Forked`] as for any handle.
    pub fn serve(self, handler: impl DatagramHandler) -> Result<UdpSocket> {
        let Self { pool, source, peer, limits } = self;
        limits.check()?;
        pool.shared().check_open()?;
        let peer = peer.transpose()?;
        let (socket, address) = open(source, peer, &limits)?;
        let inbox = Inbox::new(limits.batch, limits.max_datagram);
        UdpSocket::start(&pool, socket, address, peer, inbox, Box::new(handler))
    }
}

impl fmt::Debug for UdpBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpBuilder").field("limits", &self.limits).finish_non_exhaustive()
    }
}

fn ip(address: impl ToAddress) -> Result<SocketAddr> {
    let address = address.to_address()?;
    let allowed = "an IP address with a port, or *:port";
    address.tcp().ok_or_else(|| Error::invalid("address", address, allowed))
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch: 32,
            max_datagram: 65535,
            v6_only: false,
            reuse_port: false,
            broadcast: false,
            multicast_loop: true,
            multicast_ttl: 1,
            send_buffer: None,
            receive_buffer: None,
        }
    }
}

impl Limits {
    fn check(&self) -> Result<()> {
        range("batch", self.batch, 1, BATCH)?;
        range("max_datagram", self.max_datagram, 1, 65535)?;
        range("multicast_ttl", self.multicast_ttl as usize, 0, 255)?;
        range("send_buffer", self.send_buffer.unwrap_or(1), 1, 1 << 30)?;
        range("receive_buffer", self.receive_buffer.unwrap_or(1), 1, 1 << 30)
    }

    fn apply(&self, socket: &Socket, is_v6: bool) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_broadcast(self.broadcast)?;
        if is_v6 {
            socket.set_multicast_loop_v6(self.multicast_loop)?;
            socket.set_multicast_hops_v6(self.multicast_ttl)?;
        } else {
            socket.set_multicast_loop_v4(self.multicast_loop)?;
            socket.set_multicast_ttl_v4(self.multicast_ttl)?;
        }
        set_buffers(socket, self.send_buffer, self.receive_buffer)
    }
}

/// A socket that is ready to receive, and where.
fn open(source: Source, peer: Option<SocketAddr>, limits: &Limits) -> Result<(Socket, SocketAddr)> {
    let socket = match (source, peer) {
        (Source::Inherited(fd), _) => {
            let failed = |error| Error::os("receive on an inherited socket", error);
            adopt(fd, limits).map_err(failed)?
        }
        (Source::Bind(address), _) => bind(address?, limits)?,
        (Source::Unbound, Some(peer)) => bind(unspecified(peer), limits)?,
        (Source::Unbound, None) => {
            let allowed = "told: what to bind, or whom to connect to";
            return Err(Error::invalid("address", "missing", allowed));
        }
    };
    if let Some(peer) = peer {
        let failed = |error| Error::os(format!("connect to {peer}"), error);
        socket.connect(&peer.into()).map_err(failed)?;
    }
    let address = socket.local_addr().ok().and_then(|address| address.as_socket());
    let unknown = || Error::os("find a socket's address", ErrorKind::AddrNotAvailable.into());
    Ok((socket, address.ok_or_else(unknown)?))
}

fn bind(address: SocketAddr, limits: &Limits) -> Result<Socket> {
    let bound = || -> io::Result<Socket> {
        let kind = Type::DGRAM.nonblocking();
        let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(limits.v6_only)?;
        }
        socket.set_reuse_port(limits.reuse_port)?;
        limits.apply(&socket, address.is_ipv6())?;
        socket.bind(&address.into())?;
        Ok(socket)
    };
    bound().map_err(|error| Error::os(format!("bind {address}"), error))
}

fn adopt(fd: OwnedFd, limits: &Limits) -> io::Result<Socket> {
    let socket = Socket::from(fd);
    let domain = socket.domain()?;
    if socket.r#type()? != Type::DGRAM || domain != Domain::IPV4 && domain != Domain::IPV6 {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not one for UDP datagrams"));
    }
    limits.apply(&socket, domain == Domain::IPV6)?;
    Ok(socket)
}

fn unspecified(peer: SocketAddr) -> SocketAddr {
    let address: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(address, 0)
}
