//! A datagram socket whose datagrams are data, for hosts that cannot be called back.
//!
//! ```text
//!   kernel ──a batch──► handler (pool): copies ──► outbox ──a batch──► host thread
//!                             └─ beyond `max_waiting`: dropped, and counted
//! ```
//!
//! Datagrams have no connection whose reading could be paused for a slow host, and their senders must
//! bear that some are lost. So what waits is bounded in bytes, what comes beyond that is dropped, and
//! [`UdpStats::dropped`](crate::net::UdpStats::dropped) says how many.
//!
//! 1. `waiting` is at least what the datagrams in the outbox weigh: it is raised before one is put in,
//!    and lowered after it was taken out. Only the handler raises it, so the bound holds without a lock.
//! 2. The outbox has one source, the handler: it is over when the handler has gone, and then what
//!    arrived before is pulled still.

use super::settings::UdpBuilder;
use super::socket::{DatagramHandler, Datagrams, UdpSocket};
use crate::error::{Error, Result};
use crate::net::bounds::range;
use crate::net::stream::status::Reason;
use crate::queue::Outbox;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// What a datagram weighs beside its bytes.
const OVERHEAD: usize = 128;

/// What has come to a socket: the hooks of a [`DatagramHandler`] as data. The end is reported by
/// [`PulledUdp::pull`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UdpEvent {
    /// A datagram.
    Datagram {
        /// Its bytes, up to `max_datagram`.
        bytes: Vec<u8>,
        /// Who sent it. An IPv4 address looks like `[::ffff:…]` on a socket that takes both.
        from: SocketAddr,
        /// How long it was; more than there are bytes if its end is lost.
        length: usize,
    },
    /// An error that came instead. The socket goes on.
    Error(ErrorKind),
}

impl UdpEvent {
    fn weight(&self) -> usize {
        match self {
            Self::Datagram { bytes, .. } => OVERHEAD + bytes.len(),
            Self::Error(_) => OVERHEAD,
        }
    }
}

/// A [`UdpSocket`] without a handler: what comes is pulled. Clones are the same socket; when the last
/// one is dropped it closes. All methods may be called by any thread.
#[derive(Clone)]
pub struct PulledUdp {
    inner: Arc<Inner>,
}

struct Inner {
    socket: UdpSocket,
    host: Arc<Host>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // In a forked child another thread may have held the lock.
        if self.socket.check_may_wait(false).is_ok() {
            drop(self.host.outbox.close());
            // By name, so that nobody waits: no code of the user runs.
            let _closed = self.socket.close();
        }
    }
}

pub(crate) struct Host {
    pub(crate) outbox: Outbox<UdpEvent>,
    /// What lies in the outbox weighs at most this (invariant 1).
    waiting: AtomicUsize,
    max_waiting: usize,
}

impl Host {
    pub(crate) fn has_taken(&self, event: &UdpEvent) {
        // Relaxed: a figure that orders nothing.
        self.waiting.fetch_sub(event.weight(), Relaxed);
    }
}

impl UdpBuilder {
    /// Serves for a completion queue, and gives what it is to listen to.
    pub(crate) fn serve_to_host(self, max_waiting: usize) -> Result<(UdpSocket, Arc<Host>)> {
        range("max_waiting", max_waiting, 1024, 1 << 40)?;
        let host = Host { outbox: Outbox::new(), waiting: AtomicUsize::new(0), max_waiting };
        let host = Arc::new(host);
        host.outbox.enter();
        host.outbox.end();
        let socket = self.serve(Copying { host: Arc::clone(&host) })?;
        Ok((socket, host))
    }

    /// As [`serve`](Self::serve), for a host that [pulls](PulledUdp::pull) what comes. Of what it has
    /// not pulled up to `max_waiting` bytes are kept, 128 for each datagram included, at least 1024;
    /// datagrams beyond that are dropped, and counted.
    ///
    /// # Errors
    /// As there; [`Error::Invalid`] for `max_waiting`.
    pub fn serve_pulled(self, max_waiting: usize) -> Result<PulledUdp> {
        range("max_waiting", max_waiting, 1024, 1 << 40)?;
        let host = Host { outbox: Outbox::new(), waiting: AtomicUsize::new(0), max_waiting };
        let host = Arc::new(host);
        host.outbox.enter();
        host.outbox.end();
        let socket = self.serve(Copying { host: Arc::clone(&host) })?;
        Ok(PulledUdp { inner: Arc::new(Inner { socket, host }) })
    }
}

impl PulledUdp {
    /// The socket: to send by it, for its address, its end and its counters.
    #[must_use]
    pub fn socket(&self) -> &UdpSocket {
        &self.inner.socket
    }

    /// Appends up to `most` events to `events`, in the order in which they came, and waits up to
    /// `time` for the first; says how many.
    ///
    /// # Errors
    /// [`Error::ShutDown`] when the socket is closed, and all that had come before was pulled.
    /// [`Error::Invalid`] for a `most` of 0. [`Error::WouldDeadlock`] on a thread of the pool, unless
    /// `time` is zero. [`Error::Forked`].
    pub fn pull(&self, events: &mut Vec<UdpEvent>, most: usize, time: Duration) -> Result<usize> {
        let Inner { socket, host } = &*self.inner;
        socket.check_may_wait(!time.is_zero())?;
        if most == 0 {
            return Err(Error::invalid("most", 0, "at least 1"));
        }
        let before = events.len();
        let count = host.outbox.take(events, most, time).ok_or(Error::ShutDown)?;
        let weight = events[before..].iter().map(UdpEvent::weight).sum();
        // Relaxed: a figure that orders nothing.
        host.waiting.fetch_sub(weight, Relaxed);
        Ok(count)
    }

    /// A descriptor that is readable while a pull would not wait. It belongs to the socket: never read
    /// it.
    ///
    /// # Errors
    /// [`Error::Os`] if there are no descriptors left, [`Error::Forked`].
    pub fn pollable(&self) -> Result<BorrowedFd<'_>> {
        self.inner.socket.check_may_wait(false)?;
        self.inner.host.outbox.pollable()
    }
}

impl fmt::Debug for PulledUdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PulledUdp").field(self.socket()).finish()
    }
}

/// The handler of a pulled socket.
struct Copying {
    host: Arc<Host>,
}

impl Copying {
    /// False: there is no room for it.
    fn put(&self, event: UdpEvent) -> bool {
        let (host, weight) = (&self.host, event.weight());
        // Nobody else raises it.
        if host.waiting.load(Relaxed) + weight > host.max_waiting {
            return false;
        }
        host.waiting.fetch_add(weight, Relaxed);
        // If nobody takes it any more, the socket is about to be closed.
        drop(host.outbox.put(event));
        true
    }
}

impl DatagramHandler for Copying {
    fn data(&mut self, socket: &UdpSocket, datagrams: Datagrams<'_>) {
        let mut dropped = 0;
        for datagram in datagrams.iter() {
            let (bytes, from, length) = (datagram.bytes.to_vec(), datagram.from, datagram.length);
            dropped += u64::from(!self.put(UdpEvent::Datagram { bytes, from, length }));
        }
        if dropped > 0 {
            socket.count_dropped(dropped);
        }
    }

    fn error(&mut self, _: &UdpSocket, kind: ErrorKind) {
        // It is counted, whether or not there is room for it.
        self.put(UdpEvent::Error(kind));
    }

    fn close(&mut self, _: &UdpSocket, _: Reason) {}
}

impl Drop for Copying {
    fn drop(&mut self) {
        self.host.outbox.left();
    }
}
