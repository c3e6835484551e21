//! Accepting: an edge-triggered handle per listener.
//!
//! It accepts in batches until nobody waits. When descriptors or memory run out, or the socket accepts no
//! more (whoever shares it may have shut it down), it rests until a time has come, since the edge does not
//! come again for those that wait already, and to look again at once would be to spin. Its slot is the
//! timer, so there is one though all of the pool are in use.

use super::books::Origin;
use super::link::Place;
use super::server::Service;
use super::socket::{self, OwnFile};
use crate::pool::{Activity, Flow, Key, NEVER};
use crate::source::Ready;
use core::any::Any;
use core::time::Duration;
use socket2::Socket;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// Connections accepted in one run, before others have their turn.
const ACCEPTS: usize = 64;

/// How long to wait for a descriptor to become free when all are in use.
const RETRY: Duration = Duration::from_millis(50);

/// The activity in the slot.
pub(super) struct Listener {
    /// Dropped, and so removed, before the socket: until then others see that somebody listens.
    _file: Option<OwnFile>,
    origin: Arc<Origin>,
    socket: Arc<Socket>,
    place: Arc<Place>,
    service: Arc<Service>,
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
    pub(super) fn new(
        service: &Arc<Service>,
        origin: Arc<Origin>,
        socket: Arc<Socket>,
        file: Option<OwnFile>,
        place: Arc<Place>,
    ) -> Self {
        service.began_listening();
        let _listens = Listens(Arc::clone(service), Arc::clone(&origin));
        let service = Arc::clone(service);
        Self {
            _file: file,
            origin,
            socket,
            place,
            service,
            exhausted: false,
            retries: false,
            _listens,
        }
    }

    /// A drain takes those in first who wait already: to them it is a connection.
    fn accept_some(&mut self) -> Flow {
        self.service.look_after_times();
        for _ in 0..ACCEPTS {
            if self.service.is_cut() {
                return Flow::Done;
            }
            match socket::accept(&self.socket) {
                Ok((stream, peer)) => {
                    self.recover();
                    self.service.take_in(&self.origin, stream, peer);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // The kernel has found a descriptor before it found that nobody waits.
                    self.recover();
                    return self.rest();
                }
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
            self.service.tell_relieved(&self.origin);
        }
    }

    fn rest(&self) -> Flow {
        if self.service.is_draining() { Flow::Done } else { Flow::Wait }
    }

    fn retry_later(&mut self, error: &std::io::Error) -> Flow {
        if self.service.is_draining() {
            return Flow::Done;
        }
        if !core::mem::replace(&mut self.exhausted, true) {
            self.service.tell_exhausted(&self.origin, error);
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

    fn let_to(&mut self, key: Key) {
        self.place.set(key);
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }
}
