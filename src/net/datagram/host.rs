//! A datagram socket whose datagrams a completion queue brings.
//!
//! ```text
//!   kernel ──a batch──► handler (pool): copies ──► outbox ──a batch──► completion queue
//!                             └─ beyond `max_waiting`: dropped, and counted
//! ```
//!
//! Datagrams have no connection whose reading could be paused for a slow program, and their senders must
//! bear that some are lost. So what waits is bounded in bytes, what comes beyond that is dropped, and
//! [`UdpStats::dropped`](crate::net::UdpStats::dropped) says how many.
//!
//! 1. `waiting` is at least what the datagrams in the outbox weigh: it is raised before one is put in,
//!    and lowered after it was taken out. Only the handler raises it, so the bound holds without a lock.
//! 2. The outbox has one source, the handler: it is over when the handler has gone, and what arrived
//!    before is brought first.

use super::settings::UdpBuilder;
use super::socket::{DatagramHandler, Datagrams, UdpSocket};
use crate::error::Result;
use crate::net::bounds::range;
use crate::net::stream::status::Reason;
use crate::queue::Outbox;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use core::net::SocketAddr;
use std::io::ErrorKind;
use std::sync::Arc;

/// What a datagram weighs beside its bytes.
const OVERHEAD: usize = 128;

/// What has come to a socket: the hooks of a [`DatagramHandler`] as data. A completion queue brings it as
/// [`EntryKind::Datagram`](crate::cq::EntryKind::Datagram).
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

/// Where what comes to a socket waits for a completion queue.
pub(crate) struct Host {
    pub(crate) outbox: Outbox<UdpEvent>,
    /// What lies in the outbox weighs at most this (invariant 1).
    waiting: AtomicUsize,
    max_waiting: usize,
}

impl Host {
    /// A completion queue has taken this out of the outbox.
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
}

/// The handler of a socket whose datagrams a completion queue brings.
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
        for datagram in datagrams {
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
