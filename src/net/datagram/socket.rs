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
use crate::metrics::Collector;
use crate::net::calls::{CallWord, Calls};
use crate::net::slot_ref::SlotRef;
use crate::net::socket;
use crate::net::stream::status::Reason;
use crate::pool::{Activity, Deadline, Flow, HandleOptions, Key, Pool, Timer, TurnClock, WeakPool};
use crate::pool::{Remains, Served};
use crate::source::{Interest, Ready};
use crate::sync::RwLock;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sys::datagram::{BATCH, Inbox, send};
use crate::sys::futex::Futex;
use crate::trace::Name;
use core::any::Any;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::ops::Range;
use core::time::Duration;
use socket2::{InterfaceIndexOrAddress, Socket};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Batches received in one run, before others have their turn, unless the thread's turn is over earlier.
const BATCHES: usize = 16;

/// How long a socket that was cut off may take to end, before a drain stops waiting for it.
const GRACE: Duration = Duration::from_secs(1);

const STALE: Error = Error::Stale { what: "socket" };

// --- what users write and see ------------------------------------------------------------------------

/// What a datagram socket does. Its hooks never run on two threads at once; they run on threads of the
/// pool, and should not block. To receive on several threads, open several sockets with
/// [`reuse_port`](super::UdpBuilder::reuse_port).
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

    /// All of them; `for datagram in datagrams` does the same.
    pub fn iter(&self) -> DatagramsIter<'a> {
        DatagramsIter { datagrams: *self, left: 0..self.len() }
    }
}

impl<'a> IntoIterator for Datagrams<'a> {
    type Item = Datagram<'a>;
    type IntoIter = DatagramsIter<'a>;

    fn into_iter(self) -> DatagramsIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Datagrams<'a> {
    type Item = Datagram<'a>;
    type IntoIter = DatagramsIter<'a>;

    fn into_iter(self) -> DatagramsIter<'a> {
        self.iter()
    }
}

/// Goes through [`Datagrams`], in the order of their arrival.
#[derive(Clone, Debug)]
pub struct DatagramsIter<'a> {
    datagrams: Datagrams<'a>,
    left: Range<usize>,
}

impl<'a> Iterator for DatagramsIter<'a> {
    type Item = Datagram<'a>;

    fn next(&mut self) -> Option<Datagram<'a>> {
        self.datagrams.get(self.left.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl ExactSizeIterator for DatagramsIter<'_> {}

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
    /// Datagrams that were received and dropped, since too much waited for the completion queue that
    /// brings them ([`CompletionQueue::bind`](crate::cq::CompletionQueue::bind)). 0 for a socket with a handler.
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

// --- the socket ------------------------------------------------------------------------------------

/// A UDP socket on a pool. Clones are the same socket; when the last one is dropped it closes, and what has arrived is
/// dropped. On a thread outside the pool the drop returns when the handler's `close` has returned and the handler has
/// been dropped; on a thread of the pool it does not wait, nor after [`close`](Self::close).
/// (The one that hooks are given, and its clones, do not count.) All methods may be called by any thread.
///
/// ```
/// use paceline::Pool;
/// use paceline::net::{DatagramHandler, Datagrams, UdpSocket};
///
/// struct Echo;
/// impl DatagramHandler for Echo {
///     fn data(&mut self, socket: &UdpSocket, datagrams: Datagrams<'_>) {
///         for datagram in datagrams {
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
    pub(crate) fn start(
        pool: &Pool,
        socket: Socket,
        address: SocketAddr,
        peer: Option<SocketAddr>,
        inbox: Inbox,
        handler: Box<dyn DatagramHandler>,
    ) -> Result<Self> {
        let socket = Arc::new(socket);
        let core = Arc::new(Core::new(pool, Arc::clone(&socket), address, peer));
        let reader = Reader::new(Arc::clone(&core), Arc::clone(&socket), inbox, handler);
        let options = HandleOptions::new().interest(Interest::READABLE);
        pool.register_activity(socket, options, false, |_| Box::new(reader))?.detach();
        pool.shared().end.serve(Arc::<Core>::downgrade(&core) as _);
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

/// The end of the pool closes it as any handle, so it is a part for its figures alone.
impl Served for Core {
    fn remains(&self, _deadline: u64) -> Remains {
        Remains::Nothing
    }

    fn close(&self) {}

    fn figures(&self, to: &mut Collector, pool: &str) {
        if self.port.ended.load(Relaxed) == 0
            && let Some(name) = to.enter(self, "socket", &self.address.to_string())
        {
            super::figures::collect(to, pool, &name, &self.stats());
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
        inbox: Inbox,
        handler: Box<dyn DatagramHandler>,
    ) -> Self {
        Self {
            socket,
            handler: Some(handler),
            inbox,
            own: UdpSocket { core: Arc::clone(&core), life: None },
            readable: false,
            draining: false,
            _ended: Ended(core),
        }
    }

    fn turn(&mut self, ready: Ready) -> Result<Flow, Reason> {
        self.obey()?;
        self.readable |= ready.is_readable() || ready.is_error();
        let mut turn = TurnClock::new();
        for _ in 0..BATCHES {
            if !self.readable || turn.was_over() {
                break;
            }
            self.receive();
            turn.is_over();
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

    fn name(&self) -> Name {
        Name::new(&format!("udp {}", self.own.core.address))
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
    use std::os::fd::OwnedFd;
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
        let (socket, inbox) = (Socket::from(OwnedFd::from(from)), Inbox::new(32, 65535));
        let socket =
            UdpSocket::start(&pool, socket, nowhere, Some(nowhere), inbox, Box::new(Quiet));
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
