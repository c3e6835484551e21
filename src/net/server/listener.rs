//! Accepting: an edge-triggered handle per listener.
//!
//! It accepts in batches until nobody waits. When descriptors or memory run out, or the socket accepts no
//! more (whoever shares it may have shut it down), it rests until a time has come, since the edge does not
//! come again for those that wait already, and to look again at once would be to spin. Its slot is the
//! timer, so there is one though all of the pool are in use. A listener that keeps a descriptor gives it up for the
//! next connection then, and takes one again when it can.

use crate::error::Result;
use crate::net::address::Address;
use crate::net::slot_ref::SlotRef;
use crate::net::socket::is_exhausted;
use crate::net::stream::connection::Connection;
use crate::net::stream::driver::Driver;
use crate::net::stream::origin::Origin;
use crate::net::stream::service::{FilterFactory, Permit, Service, lock};
use crate::net::stream::socket::{self, OwnFile};
use crate::pool::{Activity, Flow, HandleOptions, Key, NEVER, Pool};
use crate::source::{Interest, Ready};
use crate::trace::Name;
use core::any::Any;
use core::time::Duration;
use socket2::{Domain, Socket, Type};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// Connections accepted in one run, before others have their turn.
const ACCEPTS: usize = 64;

/// How long to wait for a descriptor to become free when all are in use.
const RETRY: Duration = Duration::from_millis(50);

/// A socket that listens, before it accepts.
pub(crate) struct Opened {
    pub(crate) socket: Socket,
    pub(crate) file: Option<OwnFile>,
    pub(crate) origin: Arc<Origin>,
    pub(crate) filter: Option<FilterFactory>,
}

/// The activity in the slot.
pub(crate) struct Listener {
    /// Dropped, and so removed, before the socket: until then others see that somebody listens.
    _file: Option<OwnFile>,
    origin: Arc<Origin>,
    socket: Arc<Socket>,
    slot: Arc<SlotRef>,
    service: Arc<Service>,
    /// What is kept if the limits say so; a socket, since that needs no path.
    spare: Option<Socket>,
    /// Descriptors had run out at the last look, or it could not accept for another reason.
    exhausted: bool,
    /// It looks again when [`RETRY`] is over, and not before.
    retries: bool,
    /// Dropped after the socket: it listens as long as its descriptor is open.
    _listens: Listens,
}

/// Counted as listening.
struct Listens(Arc<Service>, Arc<Origin>);

impl Drop for Listens {
    fn drop(&mut self) {
        self.0.ended_listening(&self.1);
    }
}

impl Listener {
    fn new(
        service: &Arc<Service>,
        origin: Arc<Origin>,
        socket: Arc<Socket>,
        file: Option<OwnFile>,
        slot: Arc<SlotRef>,
    ) -> Self {
        service.began_listening();
        let _listens = Listens(Arc::clone(service), Arc::clone(&origin));
        let service = Arc::clone(service);
        Self {
            _file: file,
            origin,
            socket,
            slot,
            service,
            spare: None,
            exhausted: false,
            retries: false,
            _listens,
        }
    }

    /// Gives a listener to the pool. It accepts when its slot is resumed.
    pub(crate) fn register(
        service: &Arc<Service>,
        pool: &Pool,
        socket: Socket,
        file: Option<OwnFile>,
        origin: Arc<Origin>,
    ) -> Result<()> {
        let slot = Arc::new(SlotRef::new(pool.shared()));
        lock(&service.listeners).push(Arc::clone(&slot));
        let options = HandleOptions::new().interest(Interest::READABLE).paused().timed();
        let handle = pool.register_activity(Arc::new(socket), options, false, |socket| {
            Box::new(Listener::new(service, origin, socket, file, slot))
        })?;
        handle.detach();
        Ok(())
    }

    /// A connection came.
    fn take_in(&self, socket: Socket, peer: Address) {
        let Self { service, origin, .. } = self;
        let permit = Permit::take(service, origin);
        service.look_after_times(origin.is_crowded());
        let Some(permit) = permit else {
            origin.turned_away();
            service.log_refused(origin, &peer);
            return socket::turn_away(&socket, origin.limits.refusal_in_plain());
        };
        let Some(pool) = service.pool() else { return };
        socket::set_options(&socket, &peer, &origin.limits);
        origin.began();
        let connection = Arc::new(Connection::new(service, origin, &socket, peer, false));
        let driver = Driver::accepted(Arc::clone(&connection), socket, permit);
        // Should that fail, the connection is counted by its end, which comes with its drop.
        let _ = driver.register(&pool, &connection);
    }

    /// A drain takes those in first who wait already: to them it is a connection.
    fn accept_some(&mut self) -> Flow {
        for _ in 0..ACCEPTS {
            if self.service.is_cut() {
                return Flow::Done;
            }
            match socket::accept(&self.socket) {
                Ok((stream, peer)) => {
                    self.recover();
                    self.take_in(stream, peer);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // The kernel has found a descriptor before it found that nobody waits.
                    self.recover();
                    return self.rest();
                }
                // The next accept has its descriptor.
                Err(error) if is_exhausted(&error) && self.spare.take().is_some() => {}
                // The next may be well.
                Err(error) if socket::is_of_one_connection(&error) => {}
                Err(error) => return self.retry_later(&error),
            }
        }
        Flow::Again
    }

    /// There are descriptors.
    #[inline]
    fn recover(&mut self) {
        if core::mem::take(&mut self.exhausted) {
            self.service.log_resumed(&self.origin);
        }
    }

    fn rest(&mut self) -> Flow {
        if self.service.is_draining() {
            return Flow::Done;
        }
        if self.origin.limits.keeps_descriptor && self.spare.is_none() {
            self.spare = Socket::new(Domain::UNIX, Type::DGRAM, None).ok();
            self.retries = self.spare.is_none();
        }
        Flow::Wait
    }

    fn retry_later(&mut self, error: &std::io::Error) -> Flow {
        if self.service.is_draining() {
            return Flow::Done;
        }
        if !core::mem::replace(&mut self.exhausted, true) {
            self.service.report_exhausted(&self.origin, error);
        }
        self.retries = true;
        Flow::Wait
    }
}

impl Activity for Listener {
    fn run(&mut self, _: Ready) -> Flow {
        self.retries = false;
        self.accept_some()
    }

    fn next_deadline(&mut self, now: u64) -> u64 {
        if self.retries { now.saturating_add(RETRY.as_nanos() as u64) } else { NEVER }
    }

    fn name(&self) -> Name {
        Name::new(&format!("accept {}", self.origin.address))
    }

    fn let_to(&mut self, key: Key) {
        self.slot.set(key);
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }
}
