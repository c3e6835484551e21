//! Stream sockets as this layer wants them: non-blocking, CLOEXEC, and never a SIGPIPE.

use super::limits::{Limits, Marks, whole_seconds};
use super::origin::Origin;
use super::output_buffer::Wire;
use crate::net::address::Address;
use crate::net::socket::set_buffers;
use crate::sys::stream::{self, Lent};
use core::net::SocketAddr;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A socket that listens, bound and non-blocking, and the file that it made.
pub(crate) fn listen(address: &Address, limits: &Limits) -> io::Result<(Socket, Option<OwnFile>)> {
    let socket = open(address)?;
    prepare(&socket, address, limits)?;
    match socket.bind(&address.to_socket_address()?) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_left_over(address) => {
            if let Address::Unix(path) = address {
                fs::remove_file(path)?;
            }
            socket.bind(&address.to_socket_address()?)?;
        }
        other => other?,
    }
    let file = OwnFile::of(address)?;
    if let (Some(file), Some(mode)) = (&file, limits.socket_mode) {
        // Before it listens, so that nobody gets in who may not.
        fs::set_permissions(&file.path, Permissions::from_mode(mode))?;
    }
    socket.listen(limits.backlog)?;
    Ok((socket, file))
}

fn prepare(socket: &Socket, address: &Address, limits: &Limits) -> io::Result<()> {
    if let Address::Tcp(tcp) = address {
        socket.set_reuse_address(true)?;
        if tcp.is_ipv6() {
            socket.set_only_v6(limits.v6_only)?;
        }
        if limits.reuse_port {
            socket.set_reuse_port(true)?;
        }
    }
    // Before listening: what is accepted inherits it, and TCP agrees on its window scale by it.
    set_buffers(socket, limits.send_buffer, limits.receive_buffer)
}

/// The file of a Unix socket that was bound here. It is removed at the end, unless another server has
/// put its own in that place meanwhile.
pub(crate) struct OwnFile {
    path: PathBuf,
    /// Device and number, by which it differs from others of its name.
    identity: (u64, u64),
}

impl OwnFile {
    fn of(address: &Address) -> io::Result<Option<Self>> {
        let Address::Unix(path) = address else { return Ok(None) };
        let identity = identity(path)?;
        Ok(Some(Self { path: path.clone(), identity }))
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            // It may be gone: then there is nothing to do.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

fn open(address: &Address) -> io::Result<Socket> {
    let (domain, protocol) = match address {
        Address::Tcp(SocketAddr::V4(_)) => (Domain::IPV4, Some(Protocol::TCP)),
        Address::Tcp(SocketAddr::V6(_)) => (Domain::IPV6, Some(Protocol::TCP)),
        _ => (Domain::UNIX, None),
    };
    Socket::new(domain, Type::STREAM.nonblocking(), protocol)
}

/// Whether a path is a socket at which nobody listens any more: its server was killed.
fn is_left_over(address: &Address) -> bool {
    let Address::Unix(path) = address else { return false };
    if !fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        return false;
    }
    let refused = |error: io::Error| error.kind() == ErrorKind::ConnectionRefused;
    connect(address, &Limits::default()).is_err_and(refused)
}

/// A listener that somebody else has opened.
pub(crate) fn adopt(fd: OwnedFd) -> io::Result<(Socket, Address)> {
    let socket = Socket::from(fd);
    if !socket.is_listener()? || socket.r#type()? != Type::STREAM {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it does not listen for streams"));
    }
    socket.set_nonblocking(true)?;
    let address = bound_to(&socket)?;
    Ok((socket, address))
}

pub(crate) fn bound_to(socket: &impl AsFd) -> io::Result<Address> {
    Ok(Address::from_socket_address(&SockRef::from(socket).local_addr()?))
}

/// One connection that waits to be accepted.
pub(crate) fn accept(listener: &Socket) -> io::Result<(Socket, Address)> {
    let (socket, peer) = listener.accept4(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)?;
    Ok((socket, Address::from_socket_address(&peer)))
}

/// Whether an error of [`accept`] is about the connection that was to be accepted, which is gone by that:
/// the errors of accept(2) that a network passes on, and what a firewall says. Any other will be the same at
/// once: descriptors or memory have run out, or the socket accepts no more.
pub(crate) fn is_of_one_connection(error: &io::Error) -> bool {
    use libc::{ECONNABORTED, EINTR, ENETDOWN, ENETUNREACH, ENONET, ENOPROTOOPT, EPERM, EPROTO};
    use libc::{EHOSTDOWN, EHOSTUNREACH, EOPNOTSUPP, ETIMEDOUT};
    let local = [ECONNABORTED, EINTR, EPERM, EPROTO, ETIMEDOUT];
    let network = [ENETDOWN, ENETUNREACH, ENONET, ENOPROTOOPT, EHOSTDOWN, EHOSTUNREACH, EOPNOTSUPP];
    error.raw_os_error().is_some_and(|code| local.contains(&code) || network.contains(&code))
}

/// A connection that has been begun: it is there when the socket becomes writable without an error.
pub(crate) fn connect(address: &Address, limits: &Limits) -> io::Result<Socket> {
    let socket = open(address)?;
    set_buffers(&socket, limits.send_buffer, limits.receive_buffer)?;
    match socket.connect(&address.to_socket_address()?) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

/// Whether a connection that was begun is there. It may have failed instead.
pub(crate) fn is_connected(socket: &Socket) -> io::Result<bool> {
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    match socket.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

/// The values have been checked, so what is refused is a socket that is gone already: it says so when it
/// is read.
pub(crate) fn set_options(socket: &Socket, peer: &Address, limits: &Limits) {
    if peer.tcp().is_none() {
        // Unix sockets take over nothing from their listener.
        let _ = set_buffers(socket, limits.send_buffer, limits.receive_buffer);
        return;
    }
    if limits.no_delay {
        let _ = socket.set_tcp_nodelay(true);
    }
    if let Some(time) = limits.keep_alive {
        let _ = socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(whole_seconds(time)));
    }
}

/// Reads what is there.
#[inline]
pub(crate) fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    stream::receive(socket.as_fd(), buffer)
}

/// The descriptor's end will be a reset, so that the peer cannot take it for an orderly end.
pub(crate) fn reset_when_closed(socket: &Socket) {
    let _ = socket.set_linger(Some(core::time::Duration::ZERO));
}

/// Tells a connection that is not wanted why, and ends it. What the peer has sent already is taken
/// first, or the kernel would answer with a reset that overtakes the message.
pub(crate) fn turn_away(socket: &Socket, message: &[u8]) {
    let _ = socket.send_with_flags(message, libc::MSG_NOSIGNAL);
    let _ = socket.shutdown(Shutdown::Write);
    let _ = receive(socket, &mut [0; 4096]);
}

/// The wire of a connection: its socket, which the connection owns. It closes the output before that.
pub(crate) struct SendHalf {
    origin: Arc<Origin>,
    socket: Lent,
}

impl SendHalf {
    pub(crate) fn of(socket: &Socket, origin: &Arc<Origin>) -> Self {
        Self { origin: Arc::clone(origin), socket: Lent::new(socket.as_fd()) }
    }

    /// From now on the kernel keeps about this much of what the peer has not taken, and grows it for nobody.
    pub(crate) fn set_send_buffer(&self, bytes: usize) {
        // It fails if the socket has none: then nothing is kept.
        let _ = SockRef::from(self).set_send_buffer_size(bytes);
    }
}

impl AsFd for SendHalf {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Wire for SendHalf {
    #[inline]
    fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match pieces {
            [piece] => stream::send(self.as_fd(), piece),
            _ => SockRef::from(self).send_vectored_with_flags(pieces, libc::MSG_NOSIGNAL),
        }
    }

    fn finish(&self) {
        // It fails if the peer is gone: then there is nobody to tell.
        let _ = SockRef::from(self).shutdown(Shutdown::Write);
    }

    #[inline]
    fn marks(&self) -> &Marks {
        &self.origin.limits.marks
    }
}
