//! The server: its start, its registry, and its end.
//!
//! ```text
//!   serving ──drain──► listeners take in who waits, and end ─► connections close when they are
//!                      through ─► all gone, or the time is over: the rest is cut off ─► report
//! ```
//!
//! A connection has a *seat* at its origin from before its registration until after its socket is closed.

use super::address::{Address, ToAddress};
use super::books::{Origin, ServerStats};
use super::conn::{Conn, ConnHandler, ConnId, ConnRef, Reason};
use super::connection::{Connection, is_abrupt};
use super::limits::nanos;
use super::link::{Calls, Home, Link, Place};
use super::listener::Listener;
use super::settings::{Opened, ServerBuilder};
use super::socket::{self, OwnFile};
use crate::contain::{Contained, contain};
use crate::error::{Error, Result};
use crate::log::{Component, Level, Logger};
use crate::pool::{Deadline, HandleOptions, Key, Pool, Remains, Served, Timer, WeakPool};
use crate::source::Interest;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use crate::sync::{Mutex, store_load_barrier};
use crate::sys::clock;
use crate::sys::futex::Futex;
use core::fmt;
use core::time::Duration;
use socket2::Socket;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock, Weak};

/// Parts of the registry, each with a lock of its own.
const SHARDS: usize = 16;

/// How long connections that were cut off may take to end, before a drain stops waiting for them.
const GRACE: Duration = Duration::from_secs(1);

/// How often connections without a timer are looked after at most.
const LOOK_AFTER: Duration = Duration::from_millis(100);

pub(super) type Factory = dyn Fn(&Conn) -> Box<dyn ConnHandler> + Send + Sync;
pub(super) type ExhaustedHook = dyn Fn(&Error) + Send + Sync;
type OverHook = dyn Fn() + Send + Sync;

// --- the server ------------------------------------------------------------------------------------

/// Listeners and connections with one factory of handlers, on a pool. Clones are the same server; when
/// the last one is dropped it stops: listeners end, and connections are cut off. On a thread outside the pool that drop
/// returns when the hooks of all connections have returned and their handlers have been dropped; on a thread of the
/// pool it does not wait. [`drain`](Self::drain) first for an orderly end. All methods may be called by any thread.
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
    /// It was cut off by [`Server::cut_off`], which waits for nothing.
    left: AtomicBool,
}

impl Server {
    /// Settings to start a server with.
    pub fn builder(pool: &Pool) -> ServerBuilder {
        ServerBuilder::new(pool)
    }

    pub(super) fn start(
        pool: &Pool,
        opened: Vec<Opened>,
        outgoing: Arc<Origin>,
        factory: Box<Factory>,
        on_exhausted: Option<Box<ExhaustedHook>>,
    ) -> Result<Server> {
        let addresses = opened.iter().map(|listener| listener.origin.address.clone()).collect();
        let origins = opened.iter().map(|listener| Arc::clone(&listener.origin)).collect();
        let service = Arc::new(Service::new(pool, outgoing, origins, factory, on_exhausted));
        // From here on, dropping it takes back what was begun.
        let server = Server {
            life: Arc::new(Life {
                service: Arc::clone(&service),
                pool: pool.clone(),
                addresses,
                left: AtomicBool::new(false),
            }),
        };
        for Opened { socket, file, origin } in opened {
            service.listen(pool, socket, file, origin)?;
        }
        for address in server.addresses() {
            service.log.info(Component::Net, "listener.opened", |record| {
                record.with("address", address.to_string()).say("connections are accepted here");
            });
        }
        // Only now that nothing can fail any more do connections come.
        lock(&service.listeners).iter().for_each(|place| place.resume());
        let part: Weak<Service> = Arc::downgrade(&service);
        pool.shared().end.serve(part);
        Ok(server)
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
    /// attempt failed at once. [`Error::Full`] when `max_connections` outgoing ones are open or the pool has no
    /// room, [`Error::ShutDown`] if the server drains, [`Error::Forked`].
    pub fn connect(&self, address: impl ToAddress, handler: impl ConnHandler) -> Result<ConnRef> {
        let address = Address::of(address)?;
        self.life.service.connect(&self.life.pool, address, Box::new(handler))
    }

    /// The connection of this name.
    ///
    /// # Errors
    /// [`Error::Stale`] if it has ended, [`Error::Forked`] in a forked child.
    pub fn conn(&self, id: ConnId) -> Result<ConnRef> {
        if self.life.pool.shared().is_forked() {
            return Err(Error::Forked);
        }
        let link = self.life.service.find(id).ok_or(Error::Stale { what: "connection" })?;
        Ok(ConnRef { link })
    }

    /// Waits until it has drained, or its pool has shut down.
    ///
    /// # Errors
    /// [`Error::WouldDeadlock`] on a thread of its pool, [`Error::Forked`] in a forked child.
    pub fn wait(&self) -> Result<()> {
        self.check_may_wait(true)?;
        self.life.service.wait_until_gone(Deadline::after(None), true);
        Ok(())
    }

    /// Whether this process, and if it waits this thread, may do so.
    pub(super) fn check_may_wait(&self, waits: bool) -> Result<()> {
        let pool = &self.life.pool;
        match () {
            () if pool.shared().is_forked() => Err(Error::Forked),
            () if waits && pool.is_inside() => Err(Error::WouldDeadlock),
            () => Ok(()),
        }
    }

    /// So many events were pulled, by this thread.
    pub(super) fn note_pulled(&self, count: usize) {
        if count > 0 {
            self.life.pool.shared().note_pulled();
        }
    }

    /// As when the last clone is dropped, and waits for nothing, now or then. False: in a forked child, where it does
    /// nothing.
    pub(crate) fn cut_off(&self) -> bool {
        self.life.left.store(true, Relaxed);
        self.life.stop()
    }

    /// As when the last clone is dropped.
    #[cfg(feature = "capi")]
    pub(crate) fn stop(&self) {
        self.life.stop_and_wait();
    }

    /// Has this called, once or more, when all has ended: by drain, drop or the end of the pool. It is
    /// set once.
    pub(crate) fn when_over(&self, hook: impl Fn() + Send + Sync + 'static) {
        let service = &self.life.service;
        let _first = service.on_over.set(Box::new(hook));
        // Against *the last one ends, then look for the hook*.
        store_load_barrier();
        service.tell_if_over();
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
        service.log.info(Component::Net, "server.draining", |record| {
            record
                .with("connections", service.open.load(Relaxed))
                .with("time_ns", u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
                .say("listeners end, and connections close when they are through");
        });
        service.begin_drain();
        if pool.is_inside() {
            let later = Arc::downgrade(service);
            let cut_off = move || later.upgrade().into_iter().for_each(|service| service.cut_off());
            // A pool that ends ends its connections too.
            let _ = Timer::after(pool.shared(), time, cut_off, |_| ());
            return DrainReport { drained: false, requested: true, stats: service.stats() };
        }
        let drained = service.wait_until_gone(Deadline::after(Some(time)), false);
        if !drained {
            service.log.warn(Component::Net, "server.cut_off", |record| {
                let left = service.open.load(Relaxed);
                record.with("connections", left).say("the drain's time is over");
            });
            service.cut_off();
            service.wait_until_gone(Deadline::after(Some(GRACE)), false);
        }
        service.log.info(Component::Net, "server.drained", |record| {
            record.with("drained", u64::from(drained)).say("the server has ended");
        });
        DrainReport { drained, requested: false, stats: service.stats() }
    }

    /// The counts of the server's connections so far. They add up exactly while no connection begins or ends.
    pub fn stats(&self) -> ServerStats {
        self.life.service.stats()
    }
}

impl Life {
    /// False: in a forked child, where it does nothing.
    fn stop(&self) -> bool {
        let is_ours = !self.pool.shared().is_forked();
        if is_ours {
            self.service.begin_drain();
            self.service.cut_off();
        }
        is_ours
    }

    /// As far as this thread may wait, returns when no hook runs and every handler has been dropped.
    fn stop_and_wait(&self) {
        if self.stop() {
            let gone = |time| self.service.wait_until_gone(Deadline::after(Some(time)), false);
            self.pool.shared().wait_outside(|| self.service.activities(), gone);
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        match self.left.load(Relaxed) {
            true => _ = self.stop(),
            false => self.stop_and_wait(),
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

// --- what listeners and connections share ------------------------------------------------------------

type Registry = [Mutex<HashMap<u64, Arc<Link>>>; SHARDS];

pub(crate) struct Service {
    /// Of its connections.
    pub(super) home: Home,
    pool: WeakPool,
    pub(super) log: Logger,
    factory: Contained<Box<Factory>>,
    on_exhausted: Option<Contained<Box<ExhaustedHook>>>,
    on_over: OnceLock<Box<OverHook>>,
    /// Of connections that are made here.
    outgoing: Arc<Origin>,
    /// One for each listener, in order.
    origins: Vec<Arc<Origin>>,
    listeners: Mutex<Vec<Arc<Place>>>,
    registry: Registry,
    /// Some connection had a time to wait for, and the pool no room for a timer.
    untimed: AtomicBool,
    /// When those are looked after again, in nanoseconds.
    look_after: AtomicU64,
    draining: AtomicBool,
    cut: AtomicBool,
    /// Listeners that have not ended.
    listening: AtomicUsize,
    /// Seats that are taken at all origins.
    open: AtomicUsize,
    /// Of these, those whose connection does more than linger: the end of the pool waits for these.
    at_work: AtomicUsize,
    /// Bumped when `listening` or `open` falls to zero.
    changed: Futex,
}

impl Service {
    fn new(
        pool: &Pool,
        outgoing: Arc<Origin>,
        origins: Vec<Arc<Origin>>,
        factory: Box<Factory>,
        on_exhausted: Option<Box<ExhaustedHook>>,
    ) -> Self {
        Self {
            home: Home::new(pool.shared()),
            pool: pool.downgrade(),
            log: pool.shared().log.clone(),
            factory: Contained::new(factory),
            on_exhausted: on_exhausted.map(Contained::new),
            on_over: OnceLock::new(),
            outgoing,
            origins,
            listeners: Mutex::new(Vec::new()),
            registry: core::array::from_fn(|_| Mutex::new(HashMap::new())),
            untimed: AtomicBool::new(false),
            look_after: AtomicU64::new(0),
            draining: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            listening: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            at_work: AtomicUsize::new(0),
            changed: Futex::new(0),
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
    pub(crate) fn is_draining(&self) -> bool {
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
        file: Option<OwnFile>,
        origin: Arc<Origin>,
    ) -> Result<()> {
        let place = Arc::new(Place::new(pool.shared()));
        lock(&self.listeners).push(Arc::clone(&place));
        let options = HandleOptions::new().interest(Interest::READABLE).paused().timed();
        let handle = pool.register_activity(Arc::new(socket), options, false, |socket| {
            Box::new(Listener::new(self, origin, socket, file, place))
        })?;
        handle.detach();
        Ok(())
    }

    pub(super) fn began_listening(&self) {
        self.listening.fetch_add(1, Relaxed);
    }

    pub(super) fn ended_listening(&self, origin: &Origin) {
        self.log.info(Component::Net, "listener.closed", |record| {
            record.with("address", origin.address.to_string()).say("nobody listens here any more");
        });
        // AcqRel: whoever sees zero sees what the listeners have taken in.
        self.listening.fetch_sub(1, AcqRel);
        // Against *the last connection ends, then look whether anybody listens*.
        store_load_barrier();
        self.announce();
    }

    /// A connection came.
    pub(super) fn take_in(self: &Arc<Self>, origin: &Arc<Origin>, socket: Socket, peer: Address) {
        let Some(seat) = Seat::take(self, origin) else {
            origin.turned_away();
            self.tell_refused(origin, &peer);
            return socket::turn_away(&socket, origin.limits.refusal_in_plain());
        };
        let Some(pool) = self.pool() else { return };
        socket::set_options(&socket, &peer, &origin.limits);
        origin.began();
        let link = Arc::new(Link::new(self, origin, &socket, peer, false));
        let connection = Connection::accepted(Arc::clone(&link), socket, seat);
        // Should that fail, the connection is counted by its end, which comes with its drop.
        let _ = self.register(&pool, &link, connection);
    }

    #[cold]
    fn tell_refused(&self, origin: &Origin, peer: &Address) {
        self.log.debug(Component::Net, "connection.refused", |record| {
            record
                .with("address", origin.address.to_string())
                .with("peer", peer.to_string())
                .with("max_connections", origin.limits.max_connections)
                .say("as many connections are open as may be");
        });
    }

    /// It accepts again.
    #[cold]
    pub(super) fn tell_relieved(&self, origin: &Origin) {
        self.log.info(Component::Net, "accept.resumed", |record| {
            record
                .with("address", origin.address.to_string())
                .say("connections are accepted again");
        });
    }

    pub(super) fn tell_exhausted(&self, origin: &Origin, error: &io::Error) {
        origin.exhausted();
        let heard = self.on_exhausted.is_some();
        self.log.log_unless(heard, Component::Net, Level::Warn, "accept.paused", |record| {
            record.with("address", origin.address.to_string()).say(error.to_string());
        });
        if let Some(hook) = &self.on_exhausted {
            let source = io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(0));
            let told = Error::os(format!("accept on {} for now", origin.address), source);
            // It goes on to listen, whatever the hook does.
            let run = || hook(&told);
            match self.pool() {
                Some(pool) => pool.shared().run_hook(run),
                None => _ = contain(run),
            }
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
        let origin = &self.outgoing;
        let capacity = origin.limits.max_connections;
        let full = Error::Full { what: "outgoing connections", capacity };
        let seat = Seat::take(self, origin).ok_or(full)?;
        // Against *drain, then look whether anything is open*.
        store_load_barrier();
        if self.is_draining() {
            return Err(Error::ShutDown);
        }
        let failed = |error| Error::os(format!("connect to {address}"), error);
        let socket = socket::connect(&address, &origin.limits).map_err(failed)?;
        origin.began();
        let link = Arc::new(Link::new(self, origin, &socket, address, true));
        let connection = Connection::outgoing(Arc::clone(&link), socket, seat, handler);
        self.register(pool, &link, connection)?;
        Ok(ConnRef { link })
    }

    fn register(&self, pool: &Pool, link: &Arc<Link>, connection: Connection) -> Result<()> {
        let make = |connection| Box::new(connection) as Box<_>;
        pool.register_activity(connection, HandleOptions::new(), false, make)?.detach();
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
        if link.outlet.calls.is_called() {
            // Somebody found it in the registry, and poked a slot that was not published yet.
            link.poke();
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

    /// A connection does nothing any more but wait for its peer's end: the end of the pool does not wait for it.
    pub(super) fn lingers(&self) {
        // AcqRel: whoever sees zero sees what the connections did.
        self.at_work.fetch_sub(1, AcqRel);
    }

    /// It has ended, and its handler is gone.
    pub(super) fn remove(&self, link: &Link, reason: Reason, close_panicked: bool) {
        let id = link.id();
        let removed = lock(self.shard(id)).remove(&id.to_bits());
        link.origin.ended(reason, close_panicked);
        drop(removed);
        self.look_after_times();
        let level = if is_abrupt(reason) { Level::Debug } else { Level::Trace };
        self.log.log(Component::Net, level, "connection.closed", |record| {
            record
                .with("address", link.origin.address.to_string())
                .with("peer", link.peer.to_string())
                .with("connection", id.to_bits())
                .say(format!("{reason:?}"));
        });
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

    /// Where its listeners and connections live. They are called without a lock.
    fn activities(&self) -> Vec<Key> {
        let mut keys: Vec<_> =
            lock(&self.listeners).iter().filter_map(|place| place.key()).collect();
        for shard in &self.registry {
            keys.extend(lock(shard).values().filter_map(|link| link.key()));
        }
        keys
    }

    /// A connection has found no room for a timer.
    #[cold]
    pub(super) fn note_untimed(&self) {
        self.untimed.store(true, Relaxed);
    }

    /// Has connections without a timer look at their times: when somebody comes, who may need the room of one
    /// whose time is over, and when one has ended, which may have left room for a timer. Otherwise such a
    /// connection could stay for as long as it is silent.
    #[inline]
    pub(super) fn look_after_times(&self) {
        if self.untimed.load(Relaxed) {
            self.call_untimed();
        }
    }

    #[cold]
    fn call_untimed(&self) {
        let (now, due) = (clock::now(), self.look_after.load(Relaxed));
        let next = now.saturating_add(nanos(LOOK_AFTER));
        if now < due || self.look_after.compare_exchange(due, next, Relaxed, Relaxed).is_err() {
            return;
        }
        // Before they are called: whoever finds no room again says so again.
        self.untimed.store(false, Relaxed);
        self.call_all(Calls::ALARM);
    }

    // --- the end ---------------------------------------------------------------------------------

    fn begin_drain(&self) {
        // Release: pairs with the Acquire in `is_draining`.
        self.draining.store(true, Release);
        // Against *register, then look whether it drains*, and *end a request, then look*.
        store_load_barrier();
        let listeners = lock(&self.listeners).clone();
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
        self.tell_if_over();
    }

    fn tell_if_over(&self) {
        if self.is_over()
            && let Some(hook) = self.on_over.get()
        {
            hook();
        }
    }

    /// Nothing is left, and nothing will come.
    fn is_over(&self) -> bool {
        self.is_draining() && self.is_gone()
    }

    fn is_gone(&self) -> bool {
        self.listening.load(Acquire) == 0 && self.open.load(Acquire) == 0
    }

    /// Waits until nothing is left: true, or the deadline has come. With `for_drain` also until
    /// somebody drains it, or the pool is gone.
    fn wait_until_gone(&self, deadline: Deadline, for_drain: bool) -> bool {
        loop {
            let epoch = self.changed.load(Acquire);
            if self.is_over() || !for_drain && self.is_gone() {
                return true;
            }
            if deadline.is_over() {
                return false;
            }
            self.changed.wait(epoch, deadline.left());
        }
    }

    fn stats(&self) -> ServerStats {
        ServerStats::of(&self.outgoing, &self.origins)
    }
}

/// The end of the pool beneath drains its servers. Its end without a drain closes their connections, with
/// [`Reason::PoolEnded`].
impl Served for Service {
    fn begin_drain(&self) {
        self.begin_drain();
    }

    fn remains(&self, _deadline: u64) -> Remains {
        let nothing = self.listening.load(Acquire) == 0 && self.at_work.load(Acquire) == 0;
        if nothing { Remains::Nothing } else { Remains::Work }
    }

    fn cut_off(&self) -> u64 {
        let ServerStats { closed, open, .. } = self.stats();
        // Those of a server that was cut off are as good as ended, whatever comes then.
        let doomed = if self.is_cut() { open } else { 0 };
        closed.cut_off + closed.pool_ended + doomed as u64
    }

    /// Listeners end here and now, unless they run: they may have found no thread to do so, and who waits at them is cut
    /// off, and counted, as any connection. What waits for the server's end is told that it drains, so that it is over
    /// when all connections are gone.
    fn close(&self) {
        self.draining.store(true, Release);
        let listeners = lock(&self.listeners).clone();
        listeners.iter().for_each(|place| place.end_here());
        // Against *the last one ends, then look whether it drains*.
        store_load_barrier();
        self.announce();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> impl core::ops::DerefMut<Target = T> + '_ {
    // Nothing under these locks panics.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The right to have a socket open.
pub(super) struct Seat<'a> {
    service: &'a Service,
    origin: &'a Origin,
    lingers: bool,
}

impl<'a> Seat<'a> {
    /// None: all are taken.
    fn take(service: &'a Service, origin: &'a Origin) -> Option<Self> {
        origin.sit_down().then(|| {
            service.open.fetch_add(1, Relaxed);
            service.at_work.fetch_add(1, Relaxed);
            Self { service, origin, lingers: false }
        })
    }

    /// A connection has it from here on, and [gives it up](Self::of) when its socket is closed.
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }

    /// The one that a connection has kept; whether it [lingered](Service::lingers) to its end.
    pub(super) fn of(link: &'a Link, lingers: bool) -> Self {
        Self { service: &link.service, origin: &link.origin, lingers }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let service = self.service;
        self.origin.stand_up();
        if !self.lingers {
            service.lingers();
        }
        // AcqRel: whoever sees zero sees what the connections did.
        let is_last = service.open.fetch_sub(1, AcqRel) == 1;
        // Against *the last listener ends, then look whether anything is open*.
        store_load_barrier();
        // Nobody waits for this as long as somebody may still come.
        if is_last && service.is_draining() {
            service.announce();
        }
    }
}
