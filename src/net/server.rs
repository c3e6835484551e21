//! The server: its settings, its start, its books, and its end.
//!
//! ```text
//!   serving ──drain──► listeners take in who waits, and end ─► connections close when they are
//!                      through ─► all gone, or the time is over: the rest is cut off ─► report
//! ```
//!
//! Conservation: accepted + connected = open + closed, by cause; requests begun = answered + aborted +
//! in work. A connection has a *seat* from before its registration until after its socket is closed.

use super::address::{Address, ToAddress};
use super::conn::{Conn, ConnHandler, ConnId, ConnRef, Reason};
use super::connection::Connection;
use super::limits::{Limits, nanos};
use super::link::{Calls, Link, Place};
use super::listener::Listener;
use super::socket;
use crate::error::{Error, Result};
use crate::pool::{Deadline, HandleOptions, Pool, WeakPool};
use crate::source::Interest;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use crate::sync::{Mutex, store_load_barrier};
use crate::sys::futex::Futex;
use core::fmt;
use core::time::Duration;
use socket2::Socket;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Parts of the registry, each with a lock of its own.
const SHARDS: usize = 16;

/// How long connections that were cut off may take to end, before a drain stops waiting for them.
const GRACE: Duration = Duration::from_secs(1);

type Factory = dyn Fn(&Conn) -> Box<dyn ConnHandler> + Send + Sync;
type ExhaustedHook = dyn Fn(&Error) + Send + Sync;

// --- settings --------------------------------------------------------------------------------------

enum Source {
    Bind(Result<Address>),
    Inherited(OwnedFd),
}

/// Settings of a server; see [`Server::builder`]. They hold for all its listeners and connections: for
/// others, start another server on the same pool.
#[must_use]
pub struct ServerBuilder {
    pool: Pool,
    sources: Vec<Source>,
    limits: Limits,
    on_exhausted: Option<Box<ExhaustedHook>>,
}

impl ServerBuilder {
    /// Listens here, too. Port 0 is a free port: [`Server::addresses`] tells which. The file of a
    /// Unix socket is made, replaced if nobody listens there any more, and removed at the end.
    pub fn listen(mut self, address: impl ToAddress) -> Self {
        self.sources.push(Source::Bind(address.to_address()));
        self
    }

    /// Accepts from a socket that listens already, opened by a parent or a supervisor.
    pub fn listen_on(mut self, socket: impl Into<OwnedFd>) -> Self {
        self.sources.push(Source::Inherited(socket.into()));
        self
    }

    /// Connections at once, 1 to 2^24; more are sent the refusal and closed. Default 2^20.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.limits.max_connections = connections;
        self
    }

    /// What connections beyond the maximum are sent, up to 64 KiB. Default: nothing.
    pub fn refusal(mut self, message: impl Into<Vec<u8>>) -> Self {
        self.limits.refusal = message.into();
        self
    }

    /// Admitted requests at once over all connections, at least 1; see [`Conn::admit`]. Default: no
    /// limit.
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.limits.max_requests = requests;
        self
    }

    /// What a request beyond the maximum is answered with, up to 64 KiB. Default: nothing.
    pub fn busy(mut self, message: impl Into<Vec<u8>>) -> Self {
        self.limits.busy = message.into();
        self
    }

    /// Bytes that a handler may leave unconsumed, at least 1. With more its connection is closed.
    /// Default 1 MiB. A handler sees up to 64 KiB beyond it once.
    pub fn max_unconsumed(mut self, bytes: usize) -> Self {
        self.limits.max_unconsumed = bytes;
        self
    }

    /// Marks of the output queue, in bytes: `low` < `high` ≤ `max`. Above `high` reading of that
    /// connection pauses until it has fallen to `low`; a write that would exceed `max` is refused.
    /// Default 64 KiB, 256 KiB, 16 MiB.
    pub fn output_marks(mut self, low: usize, high: usize, max: usize) -> Self {
        self.limits.marks = super::limits::Marks { low, high, max };
        self
    }

    /// A connection on which nothing was sent or received for so long, at least 1 ms, and with no
    /// request in work, has timed out. If only other threads write to it, it may take twice as long.
    /// Default: never.
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.limits.idle = nanos(time);
        self
    }

    /// The rest of a message of which a part was not consumed must come within this, at least 1 ms,
    /// however much of it comes meanwhile. Default: never.
    pub fn read_timeout(mut self, time: Duration) -> Self {
        self.limits.read = nanos(time);
        self
    }

    /// A peer that takes nothing of what is queued for it for so long, at least 1 ms, has stalled.
    /// Default 30 s.
    pub fn stall_timeout(mut self, time: Duration) -> Self {
        self.limits.stall = nanos(time);
        self
    }

    /// An outgoing connection must be made within this, at least 1 ms. Default 10 s.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.limits.connect = nanos(time);
        self
    }

    /// How long a peer that was told the end may take to end too; what it sends meanwhile is dropped.
    /// Without it, closing can destroy what was just sent. Default 2 s, 0: none.
    pub fn linger(mut self, time: Duration) -> Self {
        self.limits.linger = nanos(time);
        self
    }

    /// Connections that may wait to be accepted, 1 to 2^20; the kernel has a limit of its own
    /// (`net.core.somaxconn`). Default 4096.
    pub fn backlog(mut self, connections: i32) -> Self {
        self.limits.backlog = connections;
        self
    }

    /// TCP sends small writes at once. Default: yes.
    pub fn no_delay(mut self, on: bool) -> Self {
        self.limits.no_delay = on;
        self
    }

    /// TCP asks silent peers whether they are there, first after this time. Default: no.
    pub fn keep_alive(mut self, time: Duration) -> Self {
        self.limits.keep_alive = Some(time);
        self
    }

    /// IPv6 listeners take no IPv4. Default: `[::]` takes both.
    pub fn v6_only(mut self, on: bool) -> Self {
        self.limits.v6_only = on;
        self
    }

    /// Several processes may listen on the same port; the kernel deals connections out. Default: no.
    pub fn reuse_port(mut self, on: bool) -> Self {
        self.limits.reuse_port = on;
        self
    }

    /// Bytes that the kernel buffers for sending (it doubles them). Default: the system's.
    pub fn send_buffer(mut self, bytes: usize) -> Self {
        self.limits.send_buffer = Some(bytes);
        self
    }

    /// Bytes that the kernel buffers for receiving (it doubles them). Default: the system's.
    pub fn receive_buffer(mut self, bytes: usize) -> Self {
        self.limits.receive_buffer = Some(bytes);
        self
    }

    /// Called once each time that accepting pauses because descriptors or memory have run out, with
    /// what to log. It is tried again every 50 ms.
    pub fn on_exhausted(mut self, hook: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.on_exhausted = Some(Box::new(hook));
        self
    }

    /// Starts. The factory makes a handler for each connection, on the thread that runs it first. A
    /// server without listeners only connects.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the setting, its value and its bounds. [`Error::Os`] names the
    /// address that could not be listened on, and the reason. [`Error::Full`], [`Error::ShutDown`],
    /// [`Error::Forked`] as for any handle. If one listener fails, none is left.
    pub fn serve<H, F>(self, factory: F) -> Result<Server>
    where
        H: ConnHandler,
        F: Fn(&Conn) -> H + Send + Sync + 'static,
    {
        self.start(Box::new(move |conn| Box::new(factory(conn))))
    }

    fn start(self, factory: Box<Factory>) -> Result<Server> {
        let Self { pool, sources, limits, on_exhausted } = self;
        limits.check()?;
        let sockets: Vec<_> =
            sources.into_iter().map(|source| open(source, &limits)).collect::<Result<_>>()?;
        let addresses = sockets.iter().map(|(_, address, _)| address.clone()).collect();
        let service = Arc::new(Service::new(&pool, limits, factory, on_exhausted));
        // From here on, dropping it takes back what was begun.
        let server = Server {
            life: Arc::new(Life { service: Arc::clone(&service), pool: pool.clone(), addresses }),
        };
        for (socket, address, owns_file) in sockets {
            service.listen(&pool, socket, address, owns_file)?;
        }
        Ok(server)
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A socket that listens, where, and whether it made the file of its address.
fn open(source: Source, limits: &Limits) -> Result<(Socket, Address, bool)> {
    match source {
        Source::Bind(address) => {
            let address = address?;
            let failed = |error: io::Error| Error::os(format!("listen on {address}"), error);
            let socket = socket::listen(&address, limits).map_err(failed)?;
            let bound = socket::bound_to(&socket).map_err(failed)?;
            Ok((socket, bound, true))
        }
        Source::Inherited(fd) => {
            let failed = |error| Error::os("listen on an inherited socket", error);
            let (socket, address) = socket::adopt(fd).map_err(failed)?;
            Ok((socket, address, false))
        }
    }
}

// --- the server ------------------------------------------------------------------------------------

/// Listeners and connections with one factory of handlers, on a pool. Clones are the same server; when
/// the last one is dropped it stops: listeners end, and connections are cut off. [`drain`](Self::drain)
/// first for an orderly end. All methods may be called by any thread.
///
/// ```
/// use paceline::Pool;
/// use paceline::net::{Conn, ConnHandler, Server};
///
/// struct Echo;
/// impl ConnHandler for Echo {
///     fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
///         let _ = conn.write(bytes);
///         bytes.len()
///     }
/// }
///
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let server = Server::builder(&pool).listen("127.0.0.1:0").serve(|_| Echo)?;
/// println!("listening on {}", server.addresses()[0]);
/// # use std::io::{Read, Write};
/// # let mut client = std::net::TcpStream::connect(server.addresses()[0].tcp().unwrap()).unwrap();
/// # client.write_all(b"hello").unwrap();
/// # client.read_exact(&mut [0; 5]).unwrap();
/// # drop(client);
/// # server.drain(std::time::Duration::from_secs(10));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Server {
    life: Arc<Life>,
}

struct Life {
    service: Arc<Service>,
    pool: Pool,
    addresses: Vec<Address>,
}

impl Server {
    /// Settings to start a server with.
    pub fn builder(pool: &Pool) -> ServerBuilder {
        ServerBuilder {
            pool: pool.clone(),
            sources: Vec::new(),
            limits: Limits::default(),
            on_exhausted: None,
        }
    }

    /// Where it listens, in the order in which it was told to, with the ports that it got.
    pub fn addresses(&self) -> &[Address] {
        &self.life.addresses
    }

    /// Connects, with a handler of its own. It returns at once; the handler's `open` comes when the
    /// connection is there, or else its `close`. What is written before is sent then.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an address that is none. [`Error::Os`] names the address if the
    /// attempt failed at once. [`Error::Full`] when `max_connections` are open or the pool has no
    /// room, [`Error::ShutDown`] if the server drains, [`Error::Forked`].
    pub fn connect(&self, address: impl ToAddress, handler: impl ConnHandler) -> Result<ConnRef> {
        let address = address.to_address()?;
        self.life.service.connect(&self.life.pool, address, Box::new(handler))
    }

    /// The connection of this name.
    ///
    /// # Errors
    /// [`Error::Stale`] if it has ended.
    pub fn conn(&self, id: ConnId) -> Result<ConnRef> {
        let link = self.life.service.find(id).ok_or(Error::Stale { what: "connection" })?;
        Ok(ConnRef { link })
    }

    /// Waits until it has drained, or its pool has shut down.
    ///
    /// # Errors
    /// [`Error::WouldDeadlock`] on a thread of its pool, [`Error::Forked`] in a forked child.
    pub fn wait(&self) -> Result<()> {
        let Life { service, pool, .. } = &*self.life;
        if pool.shared().is_forked() {
            return Err(Error::Forked);
        }
        if pool.is_inside() {
            return Err(Error::WouldDeadlock);
        }
        service.wait_until_gone(Deadline::after(None), true);
        Ok(())
    }

    /// Stops accepting, after those that wait already; lets every connection answer what has arrived,
    /// and closes it when its admitted requests have ended and everything is sent. What is not
    /// through after `time` is cut off.
    ///
    /// It returns when all sockets are closed, or 1 s after `time` at the latest. On a thread of the
    /// pool it is only a request, and returns at once.
    pub fn drain(&self, time: Duration) -> DrainReport {
        let Life { service, pool, .. } = &*self.life;
        if pool.shared().is_forked() {
            return DrainReport { drained: false, requested: false, stats: service.stats() };
        }
        service.begin_drain();
        if pool.is_inside() {
            let later = Arc::clone(service);
            // A pool that ends ends its connections too.
            let _ = pool.after(time, move || later.cut_off());
            return DrainReport { drained: false, requested: true, stats: service.stats() };
        }
        let drained = service.wait_until_gone(Deadline::after(Some(time)), false);
        if !drained {
            service.cut_off();
            service.wait_until_gone(Deadline::after(Some(GRACE)), false);
        }
        DrainReport { drained, requested: false, stats: service.stats() }
    }

    /// Its books, exact when nothing happens.
    pub fn stats(&self) -> ServerStats {
        self.life.service.stats()
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if !self.pool.shared().is_forked() {
            self.service.begin_drain();
            self.service.cut_off();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}

/// How a drain went.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct DrainReport {
    /// Everything ended within the time; nothing was cut off.
    pub drained: bool,
    /// This was called on a thread of the pool, so it was only a request.
    pub requested: bool,
    /// The books afterwards.
    pub stats: ServerStats,
}

/// Connections that have ended, by [`Reason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Closed {
    /// [`Reason::Peer`].
    pub peer: u64,
    /// [`Reason::Local`].
    pub local: u64,
    /// [`Reason::Aborted`].
    pub aborted: u64,
    /// [`Reason::Refused`].
    pub refused: u64,
    /// [`Reason::TimedOut`].
    pub timed_out: u64,
    /// [`Reason::Failed`].
    pub failed: u64,
    /// [`Reason::Unconsumed`].
    pub unconsumed: u64,
    /// [`Reason::Panicked`].
    pub panicked: u64,
    /// [`Reason::Drained`].
    pub drained: u64,
    /// [`Reason::CutOff`].
    pub cut_off: u64,
    /// [`Reason::PoolEnded`].
    pub pool_ended: u64,
}

impl Closed {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Self { peer, local, aborted, refused, timed_out, failed, .. } = self;
        let Self { unconsumed, panicked, drained, cut_off, pool_ended, .. } = self;
        let orderly = peer + local + refused + drained;
        orderly + aborted + timed_out + failed + unconsumed + panicked + cut_off + pool_ended
    }
}

/// A server's books.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerStats {
    /// Connections that came and were let in.
    pub accepted: u64,
    /// Connections that were begun by [`Server::connect`].
    pub connected: u64,
    /// Connections beyond the maximum; not counted as accepted.
    pub turned_away: u64,
    /// Connections whose sockets are open.
    pub open: usize,
    /// Connections that have ended.
    pub closed: Closed,
    /// `close` hooks that panicked, after whatever reason.
    pub panics_in_close: u64,
    /// Times that accepting paused for want of descriptors or memory.
    pub exhausted: u64,
    /// Requests admitted.
    pub requests: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that were dropped, or whose connection had ended.
    pub requests_aborted: u64,
    /// Requests beyond the maximum; not counted as admitted.
    pub busy: u64,
    /// Requests admitted and not ended.
    pub in_work: usize,
}

impl ServerStats {
    /// Whether everything that began has ended or is open. Exact when nothing happens.
    pub fn balances(&self) -> bool {
        self.accepted + self.connected == self.closed.total() + self.open as u64
            && self.requests == self.answered + self.requests_aborted + self.in_work as u64
    }
}

// --- what listeners and connections share ------------------------------------------------------------

type Registry = [Mutex<HashMap<u64, Arc<Link>>>; SHARDS];

/// The number of reasons, for counting.
const REASONS: usize = 11;

fn index_of(reason: Reason) -> usize {
    match reason {
        Reason::Peer => 0,
        Reason::Local => 1,
        Reason::Aborted => 2,
        Reason::Refused => 3,
        Reason::TimedOut(_) => 4,
        Reason::Failed(_) => 5,
        Reason::Unconsumed => 6,
        Reason::Panicked => 7,
        Reason::Drained => 8,
        Reason::CutOff => 9,
        Reason::PoolEnded => 10,
    }
}

pub(super) struct Service {
    pub(super) limits: Limits,
    pool: WeakPool,
    factory: Box<Factory>,
    on_exhausted: Option<Box<ExhaustedHook>>,
    listeners: Mutex<Vec<Arc<Place>>>,
    registry: Registry,
    draining: AtomicBool,
    cut: AtomicBool,
    /// Listeners that have not ended.
    listening: AtomicUsize,
    /// Seats that are taken.
    open: AtomicUsize,
    in_work: AtomicUsize,
    /// Bumped when `listening` or `open` falls to zero.
    changed: Futex,
    accepted: AtomicU64,
    connected: AtomicU64,
    turned_away: AtomicU64,
    closed: [AtomicU64; REASONS],
    panics_in_close: AtomicU64,
    exhausted: AtomicU64,
    requests: AtomicU64,
    answered: AtomicU64,
    requests_aborted: AtomicU64,
    busy: AtomicU64,
}

impl Service {
    fn new(
        pool: &Pool,
        limits: Limits,
        factory: Box<Factory>,
        on_exhausted: Option<Box<ExhaustedHook>>,
    ) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            limits,
            pool: pool.downgrade(),
            factory,
            on_exhausted,
            listeners: Mutex::new(Vec::new()),
            registry: core::array::from_fn(|_| Mutex::new(HashMap::new())),
            draining: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            listening: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            in_work: AtomicUsize::new(0),
            changed: Futex::new(0),
            accepted: zero(),
            connected: zero(),
            turned_away: zero(),
            closed: core::array::from_fn(|_| zero()),
            panics_in_close: zero(),
            exhausted: zero(),
            requests: zero(),
            answered: zero(),
            requests_aborted: zero(),
            busy: zero(),
        }
    }

    /// None: it shuts down.
    pub(super) fn pool(&self) -> Option<Pool> {
        self.pool.upgrade()
    }

    pub(super) fn make_handler(&self, conn: &Conn) -> Box<dyn ConnHandler> {
        (self.factory)(conn)
    }

    #[inline]
    pub(super) fn is_draining(&self) -> bool {
        // Acquire: pairs with the Release in `begin_drain`.
        self.draining.load(Acquire)
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Acquire)
    }

    // --- listeners -------------------------------------------------------------------------------

    fn listen(
        self: &Arc<Self>,
        pool: &Pool,
        socket: Socket,
        address: Address,
        owns_file: bool,
    ) -> Result<()> {
        let place = Arc::new(Place::new(Arc::downgrade(pool.shared())));
        lock(&self.listeners).push(Arc::clone(&place));
        let options = HandleOptions::new().interest(Interest::READABLE);
        let handle = pool.register_activity(Arc::new(socket), options, false, |socket| {
            Box::new(Listener::new(self, socket, address, owns_file, place))
        })?;
        handle.detach();
        Ok(())
    }

    pub(super) fn began_listening(&self) {
        self.listening.fetch_add(1, Relaxed);
    }

    pub(super) fn ended_listening(&self) {
        // AcqRel: whoever sees zero sees what the listeners have taken in.
        self.listening.fetch_sub(1, AcqRel);
        // Against *the last connection ends, then look whether anybody listens*.
        store_load_barrier();
        self.announce();
    }

    /// A connection came.
    pub(super) fn take_in(self: &Arc<Self>, socket: Socket, peer: Address) {
        let Some(seat) = Seat::take(self) else {
            self.turned_away.fetch_add(1, Relaxed);
            return socket::turn_away(&socket, &self.limits.refusal);
        };
        let Some(pool) = self.pool() else { return };
        socket::set_options(&socket, &peer, &self.limits);
        self.accepted.fetch_add(1, Relaxed);
        let socket = Arc::new(socket);
        let link = Arc::new(Link::new(self, pool.shared(), &socket, peer, false));
        // Should that fail, the connection is counted by its end, which comes with its drop.
        let _ = self.register(&pool, socket, &link, |link, socket| {
            Connection::accepted(link, socket, seat)
        });
    }

    pub(super) fn tell_exhausted(&self, address: &Address, error: &io::Error) {
        self.exhausted.fetch_add(1, Relaxed);
        if let Some(hook) = &self.on_exhausted {
            let source = io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(0));
            hook(&Error::os(format!("accept on {address} for now"), source));
        }
    }

    // --- connections -----------------------------------------------------------------------------

    fn connect(
        self: &Arc<Self>,
        pool: &Pool,
        address: Address,
        handler: Box<dyn ConnHandler>,
    ) -> Result<ConnRef> {
        pool.shared().check_open()?;
        if self.is_draining() {
            return Err(Error::ShutDown);
        }
        let capacity = self.limits.max_connections;
        let seat = Seat::take(self).ok_or(Error::Full { what: "connections", capacity })?;
        let failed = |error| Error::os(format!("connect to {address}"), error);
        let socket = Arc::new(socket::connect(&address, &self.limits).map_err(failed)?);
        self.connected.fetch_add(1, Relaxed);
        let link = Arc::new(Link::new(self, pool.shared(), &socket, address, true));
        self.register(pool, socket, &link, |link, socket| {
            Connection::outgoing(link, socket, seat, handler)
        })?;
        Ok(ConnRef { link })
    }

    fn register(
        &self,
        pool: &Pool,
        socket: Arc<Socket>,
        link: &Arc<Link>,
        connection: impl FnOnce(Arc<Link>, Arc<Socket>) -> Connection,
    ) -> Result<()> {
        let inner = Arc::clone(link);
        let make = |socket| Box::new(connection(inner, socket)) as Box<_>;
        pool.register_activity(socket, HandleOptions::new(), false, make)?.detach();
        if link.is_outgoing {
            // So that the time for connecting runs.
            link.call(Calls::OUTPUT);
        }
        // Against *drain, then call all that are in the registry*.
        store_load_barrier();
        if self.is_draining() {
            link.call(Calls::DRAIN);
        }
        if self.is_cut() {
            link.call(Calls::CUT);
        }
        if link.outlet.is_called() {
            // Somebody found it in the registry, and poked a slot that was not published yet.
            link.place.poke();
        }
        Ok(())
    }

    fn shard(&self, id: ConnId) -> &Mutex<HashMap<u64, Arc<Link>>> {
        &self.registry[id.to_bits() as usize % SHARDS]
    }

    /// Before anybody else can know it.
    pub(super) fn enter(&self, link: &Arc<Link>) {
        let id = link.id();
        lock(self.shard(id)).insert(id.to_bits(), Arc::clone(link));
    }

    /// It has ended, and its handler is gone.
    pub(super) fn remove(&self, link: &Link, reason: Reason, close_panicked: bool) {
        let id = link.id();
        let removed = lock(self.shard(id)).remove(&id.to_bits());
        self.closed[index_of(reason)].fetch_add(1, Relaxed);
        self.panics_in_close.fetch_add(close_panicked.into(), Relaxed);
        drop(removed);
    }

    fn find(&self, id: ConnId) -> Option<Arc<Link>> {
        lock(self.shard(id)).get(&id.to_bits()).cloned()
    }

    fn call_all(&self, call: Calls) {
        for shard in &self.registry {
            // A poke runs no code of the user.
            lock(shard).values().for_each(|link| link.call(call));
        }
    }

    // --- requests --------------------------------------------------------------------------------

    pub(super) fn begin_request(&self) -> bool {
        if self.in_work.fetch_add(1, Relaxed) >= self.limits.max_requests {
            self.in_work.fetch_sub(1, Relaxed);
            self.busy.fetch_add(1, Relaxed);
            return false;
        }
        self.requests.fetch_add(1, Relaxed);
        true
    }

    pub(super) fn end_request(&self, answered: bool) {
        let count = if answered { &self.answered } else { &self.requests_aborted };
        count.fetch_add(1, Relaxed);
        self.in_work.fetch_sub(1, Relaxed);
    }

    // --- the end ---------------------------------------------------------------------------------

    fn begin_drain(&self) {
        // Release: pairs with the Acquire in `is_draining`.
        self.draining.store(true, Release);
        // Against *register, then look whether it drains*, and *end a request, then look*.
        store_load_barrier();
        let listeners = core::mem::take(&mut *lock(&self.listeners));
        listeners.iter().for_each(|place| place.resume());
        self.call_all(Calls::DRAIN);
        self.announce();
    }

    fn cut_off(&self) {
        self.cut.store(true, Release);
        // Against *register, then look whether it is cut*.
        store_load_barrier();
        self.call_all(Calls::CUT);
    }

    fn announce(&self) {
        self.changed.fetch_add(1, AcqRel);
        self.changed.wake(i32::MAX);
    }

    fn is_gone(&self) -> bool {
        self.listening.load(Acquire) == 0 && self.open.load(Acquire) == 0
    }

    /// Waits until nothing is left: true, or the deadline has come. With `for_drain` also until
    /// somebody drains it, or the pool is gone.
    fn wait_until_gone(&self, deadline: Deadline, for_drain: bool) -> bool {
        loop {
            let epoch = self.changed.load(Acquire);
            let over = !for_drain || self.is_draining() || self.has_lost_its_listeners();
            if over && self.is_gone() {
                return true;
            }
            if deadline.is_over() {
                return false;
            }
            self.changed.wait(epoch, deadline.left());
        }
    }

    /// The pool has closed them.
    fn has_lost_its_listeners(&self) -> bool {
        self.listening.load(Acquire) == 0 && !lock(&self.listeners).is_empty()
    }

    fn stats(&self) -> ServerStats {
        let closed = |index: usize| self.closed[index].load(Relaxed);
        ServerStats {
            accepted: self.accepted.load(Relaxed),
            connected: self.connected.load(Relaxed),
            turned_away: self.turned_away.load(Relaxed),
            open: self.open.load(Relaxed),
            closed: Closed {
                peer: closed(0),
                local: closed(1),
                aborted: closed(2),
                refused: closed(3),
                timed_out: closed(4),
                failed: closed(5),
                unconsumed: closed(6),
                panicked: closed(7),
                drained: closed(8),
                cut_off: closed(9),
                pool_ended: closed(10),
            },
            panics_in_close: self.panics_in_close.load(Relaxed),
            exhausted: self.exhausted.load(Relaxed),
            requests: self.requests.load(Relaxed),
            answered: self.answered.load(Relaxed),
            requests_aborted: self.requests_aborted.load(Relaxed),
            busy: self.busy.load(Relaxed),
            in_work: self.in_work.load(Relaxed),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> impl core::ops::DerefMut<Target = T> + '_ {
    // Nothing under these locks panics.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The right to have a socket open.
pub(super) struct Seat {
    service: Arc<Service>,
}

impl Seat {
    /// None: all are taken.
    fn take(service: &Arc<Service>) -> Option<Self> {
        // The seat exists before the look, so that its drop takes the count back.
        let before = service.open.fetch_add(1, Relaxed);
        let seat = Self { service: Arc::clone(service) };
        (before < service.limits.max_connections).then_some(seat)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // AcqRel: whoever sees zero sees what the connections did.
        let service = &self.service;
        let is_last = service.open.fetch_sub(1, AcqRel) == 1;
        // Against *the last listener ends, then look whether anything is open*.
        store_load_barrier();
        // Nobody waits for this as long as somebody may still come.
        if is_last && (service.is_draining() || service.listening.load(Acquire) == 0) {
            service.announce();
        }
    }
}
