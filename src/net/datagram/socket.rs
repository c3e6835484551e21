//! Datagrams on the pool.
//!
//! ```text
//!   kernel ──a batch in one call──► inbox ──► the user's handler, on one thread at a time
//!   any thread ──send_to──► kernel; what it does not take is an error
//! ```
//!
//! Nothing is queued on the way out. A datagram that waits grows old, its sender is the one who knows
//! whether it still matters, and whoever uses datagrams must bear that some are lost. So memory is
//! bounded by the inbox, and what the kernel has no room for is reported to whoever sent it.
//!
//! # States
//!
//! ```text
//!   open ──close, drop: nothing is sent any more──► a run sees the call ──► handler's close ──► ended
//!     └───drain: what has arrived is handled first ──────┘
//! ```
//!
//! # Invariants
//!
//! 1. The socket is in its [`Port`] as long as it is open. Senders hold the lock for reading while
//!    they send, and closing takes the socket out: afterwards nobody sends.
//! 2. Of all that close, one learns that it did, and its call has a run (invariants of [`crate::net::calls`]).
//! 3. The descriptor is closed after the handler's `close`, with the [`Reader`]; only then does the
//!    socket count as ended, and its port is free.
//!
//! # Orderings
//!
//! All that concerns the socket is ordered by the lock. `ended` is stored with Release, behind the
//! descriptor's end, and loaded with Acquire: whoever has waited may bind the same port.

use crate::contain::contain;
use crate::error::{Error, Result};
use crate::net::address::ToAddress;
use crate::net::bounds::range;
use crate::net::calls::{CallWord, Calls};
use crate::net::slot_ref::SlotRef;
use crate::net::socket;
use crate::net::stream::status::Reason;
use crate::pool::{Activity, Deadline, Flow, HandleOptions, Key, Pool, Timer, WeakPool};
use crate::source::{Interest, Ready};
use crate::sync::RwLock;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sys::datagram::{BATCH, Inbox, send};
use crate::sys::futex::Futex;
use core::any::Any;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Batches received in one run, before others have their turn.
const BATCHES: usize = 16;

/// How long a socket that was cut off may take to end, before a drain stops waiting for it.
const GRACE: Duration = Duration::from_secs(1);

const STALE: Error = Error::Stale { what: "socket" };

// --- what users write and see ------------------------------------------------------------------------

/// What a datagram socket does. Its hooks never run on two threads at once; they run on threads of the
/// pool, and should not block. To receive on several threads, open several sockets with
/// [`reuse_port`](UdpBuilder::reuse_port).
///
/// A hook that panics closes its socket with [`Reason::Panicked`].
pub trait DatagramHandler: Send + 'static {
    /// Datagrams have arrived, at least one.
    fn data(&mut self, socket: &UdpSocket, datagrams: Datagrams<'_>);

    /// An error that came instead: on a connected socket that nobody listens at its peer, say. The
    /// socket goes on.
    fn error(&mut self, socket: &UdpSocket, kind: ErrorKind) {
        let _ = (socket, kind);
    }

    /// The end, exactly once, and the last call.
    fn close(&mut self, socket: &UdpSocket, reason: Reason) {
        let _ = (socket, reason);
    }
}

impl DatagramHandler for Box<dyn DatagramHandler> {
    fn data(&mut self, socket: &UdpSocket, datagrams: Datagrams<'_>) {
        (**self).data(socket, datagrams);
    }
    fn error(&mut self, socket: &UdpSocket, kind: ErrorKind) {
        (**self).error(socket, kind);
    }
    fn close(&mut self, socket: &UdpSocket, reason: Reason) {
        (**self).close(socket, reason);
    }
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Datagram<'a> {
    /// Its bytes, up to `max_datagram`.
    pub bytes: &'a [u8],
    /// Who sent it. An IPv4 address looks like `[::ffff:…]` on a socket that takes both.
    pub from: SocketAddr,
    /// How long it was.
    pub length: usize,
}

impl Datagram<'_> {
    /// Whether it was longer than `max_datagram`, so that its end is lost.
    pub fn is_truncated(&self) -> bool {
        self.length > self.bytes.len()
    }
}

/// Datagrams that have arrived together, in their order.
#[derive(Clone, Copy)]
pub struct Datagrams<'a> {
    inbox: &'a Inbox,
}

impl<'a> Datagrams<'a> {
    /// How many they are, at least one.
    #[allow(clippy::len_without_is_empty, reason = "they never are")]
    pub fn len(&self) -> usize {
        self.inbox.len()
    }

    /// This one. None: there are not so many.
    pub fn get(&self, index: usize) -> Option<Datagram<'a>> {
        let (bytes, from, length) = self.inbox.get(index)?;
        Some(Datagram { bytes, from, length })
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'a>> + use<'a> {
        let datagrams = *self;
        (0..self.len()).filter_map(move |index| datagrams.get(index))
    }
}

impl fmt::Debug for Datagrams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A socket's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct UdpStats {
    /// Datagrams that the handler was given.
    pub received: u64,
    /// Their bytes, with those that were cut off.
    pub received_bytes: u64,
    /// Datagrams whose end was cut off.
    pub truncated: u64,
    /// Errors that came instead of datagrams.
    pub errors: u64,
    /// Datagrams that the kernel has taken.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Calls of which the kernel took nothing, since it had no room.
    pub refused: u64,
    /// Calls of which the kernel took nothing, for another reason.
    pub failed: u64,
    /// Of a socket that is [pulled](crate::net::PulledUdp): datagrams that were received and dropped, since
    /// too much waited for the host.
    pub dropped: u64,
}

/// How a drain went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct UdpReport {
    /// All that had arrived was handled within the time.
    pub drained: bool,
    /// This was called on a thread of the pool, so it was only a request.
    pub requested: bool,
    /// The counters afterwards.
    pub stats: UdpStats,
}

// --- settings --------------------------------------------------------------------------------------

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
        UdpSocket::start(&pool, socket, address, peer, &limits, Box::new(handler))
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
        socket::set_buffers(socket, self.send_buffer, self.receive_buffer)
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

// --- the socket ------------------------------------------------------------------------------------

/// A UDP socket on a pool. Clones are the same socket; when the last one is dropped it closes, and what has arrived is
/// dropped. On a thread outside the pool the drop returns when the handler's `close` has returned and the handler has
/// been dropped; on a thread of the pool it does not wait, nor after [`close`](Self::close), nor for a host that pulls.
/// (The one that hooks are given, and its clones, do not count.) All methods may be called by any thread.
///
/// ```
/// use paceline::Pool;
/// use paceline::net::{DatagramHandler, Datagrams, UdpSocket};
///
/// struct Echo;
/// impl DatagramHandler for Echo {
///     fn data(&mut self, socket: &UdpSocket, datagrams: Datagrams<'_>) {
///         for datagram in datagrams.iter() {
///             let _ = socket.send_to(datagram.bytes, datagram.from);
///         }
///     }
/// }
///
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let socket = UdpSocket::builder(&pool).bind("127.0.0.1:0").serve(Echo)?;
/// println!("receiving on {}", socket.address());
/// # let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
/// # client.send_to(b"hello", socket.address()).unwrap();
/// # assert_eq!(client.recv(&mut [0; 9]).unwrap(), 5);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct UdpSocket {
    core: Arc<Core>,
    /// None: the hooks' own.
    life: Option<Arc<Life>>,
}

/// Dropped with the last clone of the user's.
struct Life(Arc<Core>);

impl Drop for Life {
    fn drop(&mut self) {
        // One that was closed by name before is not waited for.
        if self.0.end_by(Calls::CUT) {
            let ended = |time| self.0.port.wait_until_ended(Deadline::after(Some(time)));
            self.0.slot.wait_outside(ended);
        }
    }
}

/// The part of a socket that threads race for.
struct Port<S> {
    calls: CallWord,
    /// None: closed.
    socket: RwLock<Option<S>>,
    /// 1 when it has ended.
    ended: Futex,
}

impl<S> Port<S> {
    fn new(socket: S) -> Self {
        let socket = RwLock::new(Some(socket));
        Self { calls: CallWord::new(), socket, ended: Futex::new(0) }
    }

    /// For one system call that does not block. None: it is closed.
    fn with<R>(&self, call: impl FnOnce(&S) -> R) -> Option<R> {
        // Nothing under the lock panics.
        let socket = self.socket.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        socket.as_ref().map(call)
    }

    /// From here on nothing is sent. False: it was closed already.
    fn close(&self) -> bool {
        let mut socket = self.socket.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        socket.take().is_some()
    }

    fn signal_end(&self) {
        // Release: pairs with the Acquire in `wait_until_ended`.
        self.ended.store(1, Release);
        self.ended.wake(i32::MAX);
    }

    /// True: it has ended.
    fn wait_until_ended(&self, deadline: Deadline) -> bool {
        // Acquire: pairs with the Release in `signal_end`.
        while self.ended.load(Acquire) == 0 {
            if deadline.is_over() {
                return false;
            }
            self.ended.wait(0, deadline.left());
        }
        true
    }
}

/// What senders, closers and the reader share.
struct Core {
    pool: WeakPool,
    slot: SlotRef,
    port: Port<Arc<Socket>>,
    address: SocketAddr,
    peer: Option<SocketAddr>,
    received: AtomicU64,
    received_bytes: AtomicU64,
    truncated: AtomicU64,
    errors: AtomicU64,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

impl UdpSocket {
    /// Settings to open a socket with.
    pub fn builder(pool: &Pool) -> UdpBuilder {
        let pool = pool.clone();
        UdpBuilder { pool, source: Source::Unbound, peer: None, limits: Limits::default() }
    }

    fn start(
        pool: &Pool,
        socket: Socket,
        address: SocketAddr,
        peer: Option<SocketAddr>,
        limits: &Limits,
        handler: Box<dyn DatagramHandler>,
    ) -> Result<Self> {
        let socket = Arc::new(socket);
        let core = Arc::new(Core::new(pool, Arc::clone(&socket), address, peer));
        let reader = Reader::new(Arc::clone(&core), Arc::clone(&socket), limits, handler);
        let options = HandleOptions::new().interest(Interest::READABLE);
        pool.register_activity(socket, options, false, |_| Box::new(reader))?.detach();
        let life = Some(Arc::new(Life(Arc::clone(&core))));
        Ok(Self { core, life })
    }

    /// Where it receives, with the port that it got.
    pub fn address(&self) -> SocketAddr {
        self.core.address
    }

    /// Whom it is connected to.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.core.peer
    }

    /// Sends a datagram to the peer that it is connected to, without waiting.
    ///
    /// # Errors
    /// As [`send_to`](Self::send_to).
    pub fn send(&self, bytes: &[u8]) -> Result<()> {
        let to = self.core.peer.ok_or_else(|| {
            Error::invalid("peer", "missing", "told when the socket is built: connect")
        })?;
        // Without the address, since the kernel knows it.
        self.core
            .send_one(to, bytes.len(), |socket| socket.send_with_flags(bytes, libc::MSG_NOSIGNAL))
    }

    /// Sends a datagram, without waiting and without a queue.
    ///
    /// # Errors
    /// [`Error::Full`]: the kernel has no room; the datagram is not sent. [`Error::Os`] names the
    /// address, and the reason, which on a connected socket may be an earlier datagram's.
    /// [`Error::Stale`] if the socket is closed, [`Error::Forked`] in a forked child.
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> Result<()> {
        self.core.send_one(to, bytes.len(), |socket| {
            socket.send_to_with_flags(bytes, &to.into(), libc::MSG_NOSIGNAL)
        })
    }

    /// Sends datagrams in their order, up to 64 in one system call. Answers how many the kernel has
    /// taken; for the reason why it did not take the next one, try that.
    ///
    /// # Errors
    /// As [`send_to`](Self::send_to), if it did not take the first.
    pub fn send_batch(&self, datagrams: &[(&[u8], SocketAddr)]) -> Result<usize> {
        self.core.send_batch(datagrams)
    }

    /// Receives what is sent to this group, on the interface of this index; 0: the system's choice.
    ///
    /// # Errors
    /// [`Error::Os`] names the group, and the reason. [`Error::Stale`] if the socket is closed,
    /// [`Error::Forked`] in a forked child.
    pub fn join_multicast(&self, group: IpAddr, interface: u32) -> Result<()> {
        let joined = self.core.with_socket(|socket| match group {
            IpAddr::V4(group) => {
                socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(interface))
            }
            IpAddr::V6(group) => socket.join_multicast_v6(&group, interface),
        })?;
        joined.map_err(|error| Error::os(format!("join {group}"), error))
    }

    /// The opposite of [`join_multicast`](Self::join_multicast).
    ///
    /// # Errors
    /// As there.
    pub fn leave_multicast(&self, group: IpAddr, interface: u32) -> Result<()> {
        let left = self.core.with_socket(|socket| match group {
            IpAddr::V4(group) => {
                socket.leave_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(interface))
            }
            IpAddr::V6(group) => socket.leave_multicast_v6(&group, interface),
        })?;
        left.map_err(|error| Error::os(format!("leave {group}"), error))
    }

    /// Closes: from here on nothing is sent, and what has arrived is dropped. The handler's `close`
    /// follows on a thread of the pool. A hook that is running is not interrupted.
    ///
    /// # Errors
    /// [`Error::Stale`] if it is closed already, [`Error::Forked`] in a forked child.
    pub fn close(&self) -> Result<()> {
        if self.core.slot.is_forked() {
            return Err(Error::Forked);
        }
        if self.core.end_by(Calls::ABORT) { Ok(()) } else { Err(STALE) }
    }

    /// Whether it is not closed. In a forked child it is.
    pub fn is_open(&self) -> bool {
        self.core.with_socket(|_| ()).is_ok()
    }

    /// Waits until it has ended: its handler's `close` has returned, and its port is free.
    ///
    /// # Errors
    /// [`Error::WouldDeadlock`] on a thread of its pool, [`Error::Forked`] in a forked child.
    pub fn wait(&self) -> Result<()> {
        self.check_may_wait(true)?;
        self.core.port.wait_until_ended(Deadline::after(None));
        Ok(())
    }

    /// Whether this thread of this process may wait for what the pool does.
    pub(crate) fn check_may_wait(&self, waits: bool) -> Result<()> {
        if self.core.slot.is_forked() {
            return Err(Error::Forked);
        }
        if waits && self.core.pool.upgrade().is_some_and(|pool| pool.is_inside()) {
            return Err(Error::WouldDeadlock);
        }
        Ok(())
    }

    /// Datagrams that the handler was given have been dropped.
    pub(crate) fn count_dropped(&self, count: u64) {
        self.core.dropped.fetch_add(count, Relaxed);
    }

    /// Handles what has arrived, and closes. What is not handled after `time` is dropped.
    ///
    /// It returns when the socket has ended, or 1 s after `time` at the latest. On a thread of the
    /// pool it is only a request, and returns at once.
    pub fn drain(&self, time: Duration) -> UdpReport {
        let core = &self.core;
        let report = |drained, requested| UdpReport { drained, requested, stats: core.stats() };
        if core.slot.is_forked() {
            return report(false, false);
        }
        core.call(Calls::DRAIN);
        if let Some(pool) = core.pool.upgrade()
            && pool.is_inside()
        {
            let later = Arc::downgrade(core);
            let cut = move || {
                let _ = later.upgrade().is_some_and(|core| core.end_by(Calls::CUT));
            };
            // A pool that ends ends its sockets too.
            let _ = Timer::after(pool.shared(), time, cut, |_| ());
            return report(false, true);
        }
        let drained = core.port.wait_until_ended(Deadline::after(Some(time)));
        if !drained {
            core.end_by(Calls::CUT);
            core.port.wait_until_ended(Deadline::after(Some(GRACE)));
        }
        report(drained, false)
    }

    /// The counts of what this socket has done so far. They add up exactly while no datagram is being handled.
    pub fn stats(&self) -> UdpStats {
        self.core.stats()
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("UdpSocket");
        debug.field("address", &self.core.address).field("peer", &self.core.peer);
        debug.field("counts", &self.life.is_some()).finish_non_exhaustive()
    }
}

impl Core {
    fn new(
        pool: &Pool,
        socket: Arc<Socket>,
        address: SocketAddr,
        peer: Option<SocketAddr>,
    ) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            pool: pool.downgrade(),
            slot: SlotRef::new(pool.shared()),
            port: Port::new(socket),
            address,
            peer,
            received: zero(),
            received_bytes: zero(),
            truncated: zero(),
            errors: zero(),
            sent: zero(),
            sent_bytes: zero(),
            refused: zero(),
            failed: zero(),
            dropped: zero(),
        }
    }

    // --- sending ---------------------------------------------------------------------------------

    /// For one system call that does not block.
    fn with_socket<R>(&self, call: impl FnOnce(&Arc<Socket>) -> R) -> Result<R> {
        if self.slot.is_forked() {
            // Whoever held the lock in the parent holds it here for ever.
            return Err(Error::Forked);
        }
        self.port.with(call).ok_or(STALE)
    }

    fn send_one(
        &self,
        to: SocketAddr,
        len: usize,
        send: impl FnOnce(&Socket) -> io::Result<usize>,
    ) -> Result<()> {
        match self.with_socket(|socket| send(socket))? {
            Ok(_) => {
                self.count_sent(1, len);
                Ok(())
            }
            Err(error) => Err(self.unsent(to, error)),
        }
    }

    fn send_batch(&self, datagrams: &[(&[u8], SocketAddr)]) -> Result<usize> {
        let mut sent = 0;
        for some in datagrams.chunks(BATCH) {
            let all = some.iter().map(|&(bytes, to)| (bytes, Some(to)));
            match self.with_socket(|socket| send(socket.as_fd(), all))? {
                Ok(count) => {
                    let bytes = some[..count].iter().map(|(bytes, _)| bytes.len()).sum();
                    self.count_sent(count, bytes);
                    sent += count;
                    if count < some.len() {
                        break;
                    }
                }
                Err(error) if sent == 0 => return Err(self.unsent(some[0].1, error)),
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    fn count_sent(&self, count: usize, bytes: usize) {
        self.sent.fetch_add(count as u64, Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }

    #[cold]
    fn unsent(&self, to: SocketAddr, error: io::Error) -> Error {
        let no_room = error.kind() == ErrorKind::WouldBlock || socket::is_exhausted(&error);
        let count = if no_room { &self.refused } else { &self.failed };
        count.fetch_add(1, Relaxed);
        if !no_room {
            return Error::os(format!("send to {to}"), error);
        }
        let capacity = self.with_socket(|socket| socket.send_buffer_size().unwrap_or(0));
        Error::Full { what: "bytes of a socket's send buffer", capacity: capacity.unwrap_or(0) }
    }

    // --- the end ---------------------------------------------------------------------------------

    /// Asks for a run.
    fn call(&self, call: Calls) {
        if self.port.calls.call(call) {
            self.slot.poke();
        }
    }

    /// Closes, and asks for the run that calls the handler's `close`. False: it was closed already.
    fn end_by(&self, call: Calls) -> bool {
        let closed = !self.slot.is_forked() && self.port.close();
        if closed {
            self.call(call);
        }
        closed
    }

    fn stats(&self) -> UdpStats {
        UdpStats {
            received: self.received.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            truncated: self.truncated.load(Relaxed),
            errors: self.errors.load(Relaxed),
            sent: self.sent.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            refused: self.refused.load(Relaxed),
            failed: self.failed.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
        }
    }
}

// --- receiving -------------------------------------------------------------------------------------

/// The activity in the slot.
struct Reader {
    socket: Arc<Socket>,
    /// None after the end.
    handler: Option<Box<dyn DatagramHandler>>,
    inbox: Inbox,
    /// What hooks are given.
    own: UdpSocket,
    /// Set by an edge; cleared when there is no more.
    readable: bool,
    draining: bool,
    /// Dropped after the socket: its port is free.
    _ended: Ended,
}

struct Ended(Arc<Core>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.port.signal_end();
    }
}

impl Reader {
    fn new(
        core: Arc<Core>,
        socket: Arc<Socket>,
        limits: &Limits,
        handler: Box<dyn DatagramHandler>,
    ) -> Self {
        Self {
            socket,
            handler: Some(handler),
            inbox: Inbox::new(limits.batch, limits.max_datagram),
            own: UdpSocket { core: Arc::clone(&core), life: None },
            readable: false,
            draining: false,
            _ended: Ended(core),
        }
    }

    fn turn(&mut self, ready: Ready) -> Result<Flow, Reason> {
        self.obey()?;
        self.readable |= ready.is_readable() || ready.is_error();
        for _ in 0..BATCHES {
            if !self.readable {
                break;
            }
            self.receive();
            self.obey()?;
        }
        match (self.readable, self.draining) {
            (true, _) => Ok(Flow::Again),
            (false, true) => Err(Reason::Drained),
            (false, false) => Ok(Flow::Wait),
        }
    }

    fn obey(&mut self) -> Result<(), Reason> {
        let calls = self.own.core.port.calls.take();
        if calls.has(Calls::ABORT) {
            return Err(Reason::Local);
        }
        if calls.has(Calls::CUT) {
            return Err(Reason::CutOff);
        }
        if calls.has(Calls::DRAIN) {
            // What has arrived and was not reported yet counts.
            (self.draining, self.readable) = (true, true);
        }
        Ok(())
    }

    fn receive(&mut self) {
        match self.inbox.receive(self.socket.as_fd()) {
            Ok(()) => self.deliver(),
            // What comes next brings another edge.
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => self.report(&error),
        }
    }

    fn deliver(&mut self) {
        let datagrams = Datagrams { inbox: &self.inbox };
        // Fewer than there was room for were all; but an error of a connected socket may come behind
        // them, for which there is no other edge.
        self.readable = datagrams.len() == self.inbox.capacity() || self.own.core.peer.is_some();
        let core = &self.own.core;
        let bytes = datagrams.iter().map(|datagram| datagram.length as u64).sum();
        let truncated = datagrams.iter().filter(Datagram::is_truncated).count();
        core.received.fetch_add(datagrams.len() as u64, Relaxed);
        core.received_bytes.fetch_add(bytes, Relaxed);
        if truncated > 0 {
            core.truncated.fetch_add(truncated as u64, Relaxed);
        }
        if let Some(handler) = &mut self.handler {
            handler.data(&self.own, datagrams);
        }
    }

    fn report(&mut self, error: &io::Error) {
        // Without memory, to try again at once would be to spin.
        self.readable = !socket::is_exhausted(error);
        self.own.core.errors.fetch_add(1, Relaxed);
        if let Some(handler) = &mut self.handler {
            handler.error(&self.own, error.kind());
        }
    }

    fn end(&mut self, reason: Reason) {
        let Some(mut handler) = self.handler.take() else { return };
        self.own.core.port.close();
        // There is no hook left to report a panic of these to. A destructor that panics while another panic unwinds
        // ends the process, so the handler is dropped by itself.
        let _panicked = contain(|| handler.close(&self.own, reason));
        let _panicked = contain(|| drop(handler));
    }
}

impl Activity for Reader {
    fn run(&mut self, ready: Ready) -> Flow {
        match catch_unwind(AssertUnwindSafe(|| self.turn(ready))) {
            Ok(Ok(flow)) => flow,
            Ok(Err(reason)) => {
                self.end(reason);
                Flow::Done
            }
            Err(panic) => {
                self.end(Reason::Panicked);
                // The pool counts it, and closes the slot.
                resume_unwind(panic)
            }
        }
    }

    fn let_to(&mut self, key: Key) {
        self.own.core.slot.set(key);
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

impl Drop for Reader {
    /// The pool has closed it. One that it had no room for was never there, and is not closed.
    fn drop(&mut self) {
        if self.own.core.slot.key().is_some() {
            self.end(Reason::PoolEnded);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    struct Quiet;

    impl DatagramHandler for Quiet {
        fn data(&mut self, _: &UdpSocket, _: Datagrams<'_>) {}
    }

    /// Goal: what the kernel has no room for is an error, is counted, and is nowhere. Method: a pair of
    /// Unix sockets, since datagrams of UDP leave at once on loopback.
    #[test]
    fn what_has_no_room_is_refused() {
        let pool = Pool::builder().threads(1).build().unwrap();
        let (from, to) = UnixDatagram::pair().unwrap();
        from.set_nonblocking(true).unwrap();
        to.set_nonblocking(true).unwrap();
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let (socket, limits) = (Socket::from(OwnedFd::from(from)), Limits::default());
        let socket =
            UdpSocket::start(&pool, socket, nowhere, Some(nowhere), &limits, Box::new(Quiet));
        let socket = socket.unwrap();
        let mut sent = 0;
        let refused = loop {
            match socket.send(&[7; 1000]) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        let what = "bytes of a socket's send buffer";
        assert!(matches!(refused, Error::Full { what: full, .. } if full == what), "{refused}");
        let stats = socket.stats();
        assert_eq!((stats.sent, stats.sent_bytes, stats.refused), (sent, 1000 * sent, 1));
        let mut buffer = [0; 1000];
        let received = std::iter::from_fn(|| to.recv(&mut buffer).ok()).count();
        assert_eq!(received as u64, sent);
        socket.send(b"there is room again").unwrap();
    }
}

/// The socket is a count of what was sent and a flag for its descriptor; the slot is a flag with a
/// condition variable, which keeps a poke as the slot word does (its own models show that).
#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | a datagram socket's end | the descriptor is used outside the lock, or the end announced before it is closed | something is sent behind a close, or the port is not free |
    //! |  | the end is stored Relaxed, or nobody is woken | the port is not free; who waits sleeps for ever |
    //! |  | closing says yes to both of two | one's reason is lost |

    use super::*;
    use crate::sync::atomic::{AtomicBool, AtomicU32};
    use crate::sync::{Condvar, Mutex};
    use loom::thread;

    #[derive(Default)]
    struct Kernel {
        sent: AtomicU32,
        is_free: AtomicBool,
    }

    /// The descriptor: the last of its clones frees the port.
    struct Descriptor(Arc<Kernel>);

    impl Drop for Descriptor {
        fn drop(&mut self) {
            self.0.is_free.store(true, Relaxed);
        }
    }

    #[derive(Default)]
    struct Runnable(Mutex<bool>, Condvar);

    struct World {
        kernel: Arc<Kernel>,
        port: Port<Arc<Descriptor>>,
        /// The reader's own.
        socket: Mutex<Option<Arc<Descriptor>>>,
        runnable: Runnable,
    }

    impl World {
        fn new() -> Arc<Self> {
            let kernel = Arc::new(Kernel::default());
            let socket = Arc::new(Descriptor(Arc::clone(&kernel)));
            let port = Port::new(Arc::clone(&socket));
            let runnable = Runnable::default();
            Arc::new(Self { kernel, port, socket: Mutex::new(Some(socket)), runnable })
        }

        /// As [`Core::end_by`].
        fn end_by(&self, call: Calls) -> bool {
            let closed = self.port.close();
            if closed && self.port.calls.call(call) {
                *self.runnable.0.lock().unwrap() = true;
                self.runnable.1.notify_one();
            }
            closed
        }

        /// A run, as [`Reader::end`] and the reader's drop end it.
        fn run(&self) -> Calls {
            let mut runnable = self.runnable.0.lock().unwrap();
            while !core::mem::take(&mut *runnable) {
                runnable = self.runnable.1.wait(runnable).unwrap();
            }
            drop(runnable);
            let calls = self.port.calls.take();
            self.port.close();
            drop(self.socket.lock().unwrap().take());
            self.port.signal_end();
            calls
        }
    }

    fn check(model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    /// Goal: nothing is sent behind a close (invariant 1), and whoever has waited for the end finds the
    /// port free (invariant 3). Method: a sender, a closer that waits, and the run.
    #[test]
    fn nothing_is_sent_behind_a_close_and_the_port_is_free_at_the_end() {
        check(|| {
            let world = World::new();
            let sender = {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    let send = |socket: &Arc<Descriptor>| {
                        assert!(!socket.0.is_free.load(Relaxed), "the descriptor is a stranger's");
                        socket.0.sent.fetch_add(1, Relaxed);
                    };
                    world.port.with(send).is_some()
                })
            };
            let closer = {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    assert!(world.end_by(Calls::ABORT));
                    let sent = world.kernel.sent.load(Relaxed);
                    assert!(world.port.wait_until_ended(Deadline::after(None)));
                    assert!(world.kernel.is_free.load(Relaxed), "the port is not free");
                    sent
                })
            };
            assert!(world.run().has(Calls::ABORT));
            let at_close = closer.join().unwrap();
            let sent = sender.join().unwrap();
            assert_eq!((at_close, world.kernel.sent.load(Relaxed)), (sent.into(), sent.into()));
        });
    }

    /// Goal: of two that close, one does, and it is that one's reason which the run sees (invariant 2).
    #[test]
    fn one_of_two_closes() {
        check(|| {
            let world = World::new();
            let closers = [Calls::ABORT, Calls::CUT].map(|call| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.end_by(call))
            });
            let calls = world.run();
            let closed = closers.map(|closer| closer.join().unwrap());
            assert_eq!(closed, [calls.has(Calls::ABORT), calls.has(Calls::CUT)]);
            assert_ne!(closed[0], closed[1]);
        });
    }
}
