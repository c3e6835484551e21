//! The server: its start, and its end.
//!
//! ```text
//!   serving ──drain──► listeners take in who waits, and end ─► connections close when they are
//!                      through ─► all gone, or the time is over: the rest is cut off ─► report
//! ```

pub(super) mod host;
mod inherited;
mod listener;
pub(crate) mod settings;
pub use host::{ConnEvent, ConnEventKind, Wanted};
pub use inherited::{Inherited, inherited};
pub use settings::{Listen, Outgoing, ServerBuilder};

use self::host::Host;
use self::listener::{Listener, Opened};
use crate::error::{Error, Result};
use crate::log::Component;
use crate::net::address::{Address, ToAddress};
use crate::net::stream::conn::{ConnHandler, ConnRef};
use crate::net::stream::connection::Connection;
use crate::net::stream::driver::Driver;
use crate::net::stream::origin::Origin;
use crate::net::stream::service::{ExhaustedHook, Factory, Permit, Service, lock};
use crate::net::stream::socket;
use crate::net::stream::stats::ServerStats;
use crate::net::stream::status::ConnId;
use crate::pool::{Deadline, Pool, Timer};
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::store_load_barrier;
use core::fmt;
use core::time::Duration;
use std::sync::{Arc, OnceLock, Weak};

/// How long connections that were cut off may take to end, before a drain stops waiting for them.
const GRACE: Duration = Duration::from_secs(1);

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
    /// When it ends, it waits for no connection.
    waits_for_nothing: AtomicBool,
    /// Of a server that a completion queue has started.
    host: OnceLock<Arc<Host>>,
}

impl Server {
    pub(crate) fn start(
        pool: &Pool,
        opened: Vec<Opened>,
        outgoing: Arc<Origin>,
        factory: Box<Factory>,
        on_exhausted: Option<Box<ExhaustedHook>>,
    ) -> Result<Server> {
        let addresses = opened.iter().map(|listener| listener.origin.address.clone()).collect();
        let origins = opened.iter().map(|listener| Arc::clone(&listener.origin)).collect();
        let filters = opened.iter().map(|listener| listener.filter.clone()).collect();
        let service = Service::new(pool, outgoing, origins, filters, factory, on_exhausted);
        let service = Arc::new(service);
        // From here on, dropping it takes back what was begun.
        let server = Server {
            life: Arc::new(Life {
                service: Arc::clone(&service),
                pool: pool.clone(),
                addresses,
                waits_for_nothing: AtomicBool::new(false),
                host: OnceLock::new(),
            }),
        };
        for Opened { socket, file, origin, .. } in opened {
            Listener::register(&service, pool, socket, file, origin)?;
        }
        for address in server.addresses() {
            service.log.info(Component::Net, "listener.opened", |record| {
                record.with("address", address.to_string()).say("connections are accepted here");
            });
        }
        // Only now that nothing can fail any more do connections come.
        lock(&service.listeners).iter().for_each(|slot| slot.resume());
        let part: Weak<Service> = Arc::downgrade(&service);
        pool.shared().end.serve(part);
        Ok(server)
    }

    /// Where it listens, in the order of the settings, with the ports that it got.
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
        self.connect_to(address, Box::new(handler))
    }

    fn connect_to(&self, address: Address, handler: Box<dyn ConnHandler>) -> Result<ConnRef> {
        let Life { service, pool, .. } = &*self.life;
        pool.shared().check_open()?;
        let origin = &service.outgoing;
        let capacity = origin.limits.max_connections;
        let full = Error::Full { what: "outgoing connections", capacity };
        let permit = Permit::take(service, origin).ok_or(full)?;
        // Against *drain, then look whether anything is open*.
        store_load_barrier();
        if service.is_draining() {
            return Err(Error::ShutDown);
        }
        let failed = |error| Error::os(format!("connect to {address}"), error);
        let socket = socket::connect(&address, &origin.limits).map_err(failed)?;
        origin.began();
        let connection = Arc::new(Connection::new(service, origin, &socket, address, true));
        let driver = Driver::outgoing(Arc::clone(&connection), socket, permit, handler);
        driver.register(pool, &connection)?;
        Ok(ConnRef { connection })
    }

    /// Has a completion queue bring what happens to a connection, with the tag of this server and the kinds of events
    /// that are `wanted` here: for an outgoing connection ([`connect`](Self::connect)), or for one of an HTTP server that is
    /// upgraded ([`Response::upgrade`](crate::http::Response::upgrade)). The latter stays the HTTP server's, as to its
    /// limits, its drain and its counters.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless [`CompletionQueue::serve`](crate::cq::CompletionQueue::serve) has started the server.
    pub fn handler(&self, wanted: Wanted) -> Result<impl ConnHandler + use<>> {
        let allowed = "one that a completion queue has started";
        let wrong = || Error::invalid("server", "one with handlers of its own", allowed);
        self.life.host.get().map(|host| host.handler(wanted)).ok_or_else(wrong)
    }

    /// The connection of this name.
    ///
    /// # Errors
    /// [`Error::Stale`] if it has ended, [`Error::Forked`] in a forked child.
    pub fn conn(&self, id: ConnId) -> Result<ConnRef> {
        if self.life.pool.shared().is_forked() {
            return Err(Error::Forked);
        }
        let connection = self.life.service.find(id).ok_or(Error::Stale { what: "connection" })?;
        Ok(ConnRef { connection })
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
    pub(crate) fn check_may_wait(&self, waits: bool) -> Result<()> {
        let pool = &self.life.pool;
        match () {
            () if pool.shared().is_forked() => Err(Error::Forked),
            () if waits && pool.is_inside() => Err(Error::WouldDeadlock),
            () => Ok(()),
        }
    }

    /// As when the last clone is dropped, and waits for nothing, now or then.
    pub(crate) fn cut_off(&self) {
        self.life.waits_for_nothing.store(true, Relaxed);
        self.life.stop();
    }

    /// What happens to its connections waits here for a completion queue.
    fn set_host(&self, host: &Arc<Host>) {
        let _first = self.life.host.set(Arc::clone(host));
        // Its connections end when their entries are completed, which may be up to the thread that drops it.
        self.life.waits_for_nothing.store(true, Relaxed);
    }

    /// As when the last clone is dropped.
    pub(crate) fn stop(&self) {
        self.life.end();
    }

    /// Has this called, once or more, when all has ended: by drain, drop or the end of the pool. It is
    /// set once.
    pub(crate) fn when_over(&self, hook: impl Fn() + Send + Sync + 'static) {
        let service = &self.life.service;
        let _first = service.on_over.set(Box::new(hook));
        // Against *the last one ends, then look for the hook*.
        store_load_barrier();
        service.run_over_hook();
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
    /// In a forked child it does nothing.
    fn stop(&self) {
        if !self.pool.shared().is_forked() {
            self.service.begin_drain();
            self.service.cut_off();
        }
    }

    /// As far as this thread may wait, returns when no hook runs and every handler has been dropped.
    fn stop_and_wait(&self) {
        self.stop();
        if !self.pool.shared().is_forked() {
            let gone = |time| self.service.wait_until_gone(Deadline::after(Some(time)), false);
            self.pool.shared().wait_outside(|| self.service.activities(), gone);
        }
    }

    fn end(&self) {
        match self.waits_for_nothing.load(Relaxed) {
            true => self.stop(),
            false => self.stop_and_wait(),
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end();
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
    /// The counters afterwards.
    pub stats: ServerStats,
}
