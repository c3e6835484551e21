//! What the listeners and connections of one server share: the registry, who makes handlers, and the end.
//!
//! A connection has a *permit* of its origin from before its registration until after its socket is closed.

use super::conn::{Conn, ConnHandler};
use super::connection::Connection;
use super::figures;
use super::filter::Filter;
use super::origin::{Origin, server_stats};
use super::stats::ServerStats;
use super::status::{ConnId, Reason};
use crate::contain::{Contained, contain};
use crate::error::Error;
use crate::log::{Component, Level, Logger};
use crate::metrics::Collector;
use crate::net::address::Address;
use crate::net::bounds::nanos;
use crate::net::calls::Calls;
use crate::net::slot_ref::{PoolRef, SlotRef};
use crate::pool::{Deadline, Key, Pool, Remains, Served, WeakPool};
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use crate::sync::{Mutex, store_load_barrier};
use crate::sys::clock;
use crate::sys::futex::Futex;
use core::fmt;
use core::time::Duration;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};

/// Parts of the registry, each with a lock of its own.
const SHARDS: usize = 16;

/// How often connections without a timer are looked after at most.
const LOOK_AFTER: Duration = Duration::from_millis(100);

pub(crate) type Factory = dyn Fn(&Conn) -> Box<dyn ConnHandler> + Send + Sync;
pub(crate) type ExhaustedHook = dyn Fn(&Error) + Send + Sync;
type OverHook = dyn Fn() + Send + Sync;

type Make = dyn Fn(&Conn) -> Box<dyn Filter> + Send + Sync;

/// Makes the filters of a listener's connections.
#[derive(Clone)]
pub(crate) struct FilterFactory(Arc<Make>);

impl FilterFactory {
    pub(crate) fn new<F: Filter>(make: impl Fn(&Conn) -> F + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |conn| Box::new(make(conn))))
    }

    pub(crate) fn make(&self, conn: &Conn) -> Box<dyn Filter> {
        (self.0)(conn)
    }
}

impl fmt::Debug for FilterFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FilterFactory")
    }
}

type Registry = [Mutex<HashMap<u64, Arc<Connection>>>; SHARDS];

pub(crate) struct Service {
    /// Of its connections.
    pub(crate) pool_ref: PoolRef,
    pool: WeakPool,
    pub(crate) log: Logger,
    factory: Contained<Box<Factory>>,
    on_exhausted: Option<Contained<Box<ExhaustedHook>>>,
    pub(crate) on_over: OnceLock<Box<OverHook>>,
    /// Of connections that are made here.
    pub(crate) outgoing: Arc<Origin>,
    /// One for each listener, in order.
    origins: Vec<Arc<Origin>>,
    /// Those of the listeners, in the same order.
    filters: Vec<Option<FilterFactory>>,
    pub(crate) listeners: Mutex<Vec<Arc<SlotRef>>>,
    registry: Registry,
    /// Some connection had a time to wait for, and the pool no room for a timer.
    untimed: AtomicBool,
    /// When those are looked after again, in nanoseconds.
    look_after: AtomicU64,
    draining: AtomicBool,
    cut: AtomicBool,
    /// Listeners that have not ended.
    listening: AtomicUsize,
    /// Permits that are taken at all origins.
    pub(crate) open: AtomicUsize,
    /// Of these, those whose connection does more than linger: the end of the pool waits for these.
    at_work: AtomicUsize,
    /// Bumped when `listening` or `open` falls to zero.
    changed: Futex,
}

impl Service {
    pub(crate) fn new(
        pool: &Pool,
        outgoing: Arc<Origin>,
        origins: Vec<Arc<Origin>>,
        filters: Vec<Option<FilterFactory>>,
        factory: Box<Factory>,
        on_exhausted: Option<Box<ExhaustedHook>>,
    ) -> Self {
        Self {
            pool_ref: PoolRef::new(pool.shared()),
            pool: pool.downgrade(),
            log: pool.shared().log.clone(),
            factory: Contained::new(factory),
            on_exhausted: on_exhausted.map(Contained::new),
            on_over: OnceLock::new(),
            outgoing,
            origins,
            filters,
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
    pub(crate) fn pool(&self) -> Option<Pool> {
        self.pool.upgrade()
    }

    pub(crate) fn make_handler(&self, conn: &Conn) -> Box<dyn ConnHandler> {
        (self.factory)(conn)
    }

    /// None: what this connection reads and writes goes through no filter.
    pub(crate) fn make_filter(&self, conn: &Conn) -> Option<Box<dyn Filter>> {
        let origin = &conn.connection.origin;
        if !origin.limits.is_filtered {
            return None;
        }
        let at = self.origins.iter().position(|other| Arc::ptr_eq(other, origin))?;
        self.filters[at].as_ref().map(|factory| factory.make(conn))
    }

    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        // Acquire: pairs with the Release in `begin_drain`.
        self.draining.load(Acquire)
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Acquire)
    }

    // --- listeners -------------------------------------------------------------------------------

    pub(crate) fn began_listening(&self) {
        self.listening.fetch_add(1, Relaxed);
    }

    pub(crate) fn ended_listening(&self, origin: &Origin) {
        self.log.info(Component::Net, "listener.closed", |record| {
            record.with("address", origin.address.to_string()).say("nobody listens here any more");
        });
        // AcqRel: whoever sees zero sees what the listeners have taken in.
        self.listening.fetch_sub(1, AcqRel);
        // Against *the last connection ends, then look whether anybody listens*.
        store_load_barrier();
        self.announce();
    }

    #[cold]
    pub(crate) fn log_refused(&self, origin: &Origin, peer: &Address) {
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
    pub(crate) fn log_resumed(&self, origin: &Origin) {
        self.log.info(Component::Net, "accept.resumed", |record| {
            record
                .with("address", origin.address.to_string())
                .say("connections are accepted again");
        });
    }

    pub(crate) fn report_exhausted(&self, origin: &Origin, error: &io::Error) {
        origin.exhausted();
        let heard = self.on_exhausted.is_some();
        self.log.log_unless(heard, Component::Net, Level::Warn, "accept.paused", |record| {
            record.with("address", origin.address.to_string()).say(error.to_string());
        });
        if let Some(hook) = &self.on_exhausted {
            let source = io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(0));
            let reported = Error::os(format!("accept on {} for now", origin.address), source);
            // It goes on to listen, whatever the hook does.
            let run = || hook(&reported);
            match self.pool() {
                Some(pool) => pool.shared().run_hook(run),
                None => _ = contain(run),
            }
        }
    }

    // --- connections -----------------------------------------------------------------------------

    fn shard(&self, id: ConnId) -> &Mutex<HashMap<u64, Arc<Connection>>> {
        &self.registry[id.to_bits() as usize % SHARDS]
    }

    /// Before anybody else can know it.
    pub(crate) fn enter(&self, connection: &Arc<Connection>) {
        let id = connection.id();
        lock(self.shard(id)).insert(id.to_bits(), Arc::clone(connection));
    }

    /// A connection does nothing any more but wait for its peer's end: the end of the pool does not wait for it.
    pub(crate) fn lingers(&self) {
        // AcqRel: whoever sees zero sees what the connections did.
        self.at_work.fetch_sub(1, AcqRel);
    }

    /// It has ended, and its handler is gone.
    pub(crate) fn remove(&self, connection: &Connection, reason: Reason, close_panicked: bool) {
        let id = connection.id();
        let removed = lock(self.shard(id)).remove(&id.to_bits());
        connection.origin.ended(reason, close_panicked);
        drop(removed);
        self.look_after_times(false);
        let level = if reason.is_abrupt() { Level::Debug } else { Level::Trace };
        self.log.log(Component::Net, level, "connection.closed", |record| {
            record
                .with("address", connection.origin.address.to_string())
                .with("peer", connection.peer.to_string())
                .with("connection", id.to_bits())
                .say(format!("{reason:?}"));
        });
    }

    pub(crate) fn find(&self, id: ConnId) -> Option<Arc<Connection>> {
        lock(self.shard(id)).get(&id.to_bits()).cloned()
    }

    pub(crate) fn call_all(&self, call: Calls) {
        for shard in &self.registry {
            // A poke runs no code of the user.
            lock(shard).values().for_each(|connection| connection.call(call));
        }
    }

    /// Where its listeners and connections live. They are called without a lock.
    pub(crate) fn activities(&self) -> Vec<Key> {
        let mut keys: Vec<_> = lock(&self.listeners).iter().filter_map(|slot| slot.key()).collect();
        for shard in &self.registry {
            keys.extend(lock(shard).values().filter_map(|connection| connection.key()));
        }
        keys
    }

    /// A connection has found no room for a timer.
    #[cold]
    pub(crate) fn note_untimed(&self) {
        self.untimed.store(true, Relaxed);
    }

    /// Has connections look at their times that have no timer for it, or one for later: when somebody comes, who may need
    /// the room of one whose time is over, and when one has ended, which may have left room for a timer. Otherwise
    /// such a connection could stay for as long as it is silent.
    #[inline]
    pub(crate) fn look_after_times(&self, is_crowded: bool) {
        if is_crowded || self.untimed.load(Relaxed) {
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

    pub(crate) fn begin_drain(&self) {
        // Release: pairs with the Acquire in `is_draining`.
        self.draining.store(true, Release);
        // Against *register, then look whether it drains*, and *end a request, then look*.
        store_load_barrier();
        let listeners = lock(&self.listeners).clone();
        listeners.iter().for_each(|slot| slot.resume());
        self.call_all(Calls::DRAIN);
        self.announce();
    }

    pub(crate) fn cut_off(&self) {
        self.cut.store(true, Release);
        // Against *register, then look whether it is cut*.
        store_load_barrier();
        self.call_all(Calls::CUT);
    }

    fn announce(&self) {
        self.changed.fetch_add(1, AcqRel);
        self.changed.wake(i32::MAX);
        self.run_over_hook();
    }

    pub(crate) fn run_over_hook(&self) {
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

    pub(crate) fn is_gone(&self) -> bool {
        self.listening.load(Acquire) == 0 && self.open.load(Acquire) == 0
    }

    /// Waits until nothing is left: true, or the deadline has come. With `for_drain` also until
    /// somebody drains it, or the pool is gone.
    pub(crate) fn wait_until_gone(&self, deadline: Deadline, for_drain: bool) -> bool {
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

    pub(crate) fn stats(&self) -> ServerStats {
        server_stats(&self.outgoing, &self.origins)
    }

    /// Bytes that are queued for peers. It takes the lock of one connection after another.
    pub(super) fn queued(&self) -> usize {
        let of = |connection: Arc<Connection>| connection.output.lock().queued();
        let shard = |shard: &Mutex<HashMap<_, _>>| lock(shard).values().cloned().collect();
        let shards = self.registry.iter().map(|part| -> Vec<Arc<Connection>> { shard(part) });
        shards.flatten().map(of).sum()
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

    fn health(&self, say: &mut dyn FnMut(bool, String)) {
        if self.draining.load(Acquire) {
            let address = self.stats().listeners.first().map(|it| it.address.to_string());
            say(false, format!("the server at {} is draining", address.unwrap_or_default()));
        }
    }

    /// Listeners end here and now, unless they run: they may have found no thread to do so, and who waits at them is cut
    /// off, and counted, as any connection. What waits for the server's end sees that it drains, so that it is over
    /// when all connections are gone.
    fn close(&self) {
        self.draining.store(true, Release);
        let listeners = lock(&self.listeners).clone();
        listeners.iter().for_each(|slot| slot.end_here());
        // Against *the last one ends, then look whether it drains*.
        store_load_barrier();
        self.announce();
    }

    fn figures(&self, to: &mut Collector, pool: &str) {
        let (stats, outgoing) = (self.stats(), self.outgoing.stats());
        let first = stats.listeners.first().map(|listener| &listener.address);
        if let Some(server) = to.enter(self, "server", &figures::name_of(first)) {
            figures::collect(to, (pool, &server), &stats, &outgoing, self.queued());
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> impl core::ops::DerefMut<Target = T> + '_ {
    // Nothing under these locks panics.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The right to have a socket open.
pub(crate) struct Permit<'a> {
    service: &'a Service,
    origin: &'a Origin,
    lingers: bool,
}

impl<'a> Permit<'a> {
    /// None: all are taken.
    pub(crate) fn take(service: &'a Service, origin: &'a Origin) -> Option<Self> {
        origin.acquire().then(|| {
            service.open.fetch_add(1, Relaxed);
            service.at_work.fetch_add(1, Relaxed);
            Self { service, origin, lingers: false }
        })
    }

    /// A connection has it from here on, and [gives it up](Self::of) when its socket is closed.
    pub(crate) fn keep(self) {
        core::mem::forget(self);
    }

    /// The one that a connection has kept; whether it [lingered](Service::lingers) to its end.
    pub(crate) fn of(connection: &'a Connection, lingers: bool) -> Self {
        Self { service: &connection.service, origin: &connection.origin, lingers }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let service = self.service;
        self.origin.release();
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
