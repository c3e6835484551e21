//! A connection as all threads know it: its output, whether it is read from, and what is in work.
//!
//! Other threads write, close, resume and abort a connection whose handler may be running, resting, or gone. Nothing
//! that they ask for may be missed, and no thread may wait for the handler: so each of these publishes what it wants,
//! under the output's lock or in a word of its own, and then [calls](crate::net::calls) the handler.

use super::origin::Origin;
use super::output::SharedOutput;
use super::service::Service;
use super::socket::SendHalf;
use super::status::ConnId;
use crate::error::Error;
use crate::net::address::Address;
use crate::net::calls::Calls;
use crate::pool::Key;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU32};
use crate::sync::store_load_barrier;
use crate::sys::fd::{Peer, peer_of};
use socket2::Socket;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};

/// How a connection stands whose events a completion queue brings; others are always IDLE. See `net/server/host.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Hosted {
    /// Nothing is out.
    Idle,
    /// An event is out, or bytes are about to be put back.
    Out,
    /// The same, and nothing is to be read before that has changed.
    Full,
}

/// What all threads know of a connection. What each run looks at comes first.
#[repr(C)]
pub(crate) struct Connection {
    pub(crate) output: SharedOutput<SendHalf>,
    pub(crate) service: Arc<Service>,
    pub(crate) origin: Arc<Origin>,
    /// Requests admitted and not ended.
    in_work: AtomicU32,
    /// A [`Hosted`].
    hosted: AtomicU8,
    pub(crate) is_outgoing: bool,
    /// The peer has finished, and the connection is closed when nothing is in work.
    finishing: AtomicBool,
    /// The peer sends no more, as was seen while a request of its was in work and nothing was read.
    pub(crate) peer_left: AtomicBool,
    key: OnceLock<Key>,
    pub(crate) peer: Address,
}

// With the counts of its references, what malloc(3) gives in 192 bytes.
#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Connection>() <= 168);

impl Connection {
    pub(crate) fn new(
        service: &Arc<Service>,
        origin: &Arc<Origin>,
        socket: &Socket,
        peer: Address,
        is_outgoing: bool,
    ) -> Self {
        Self {
            output: SharedOutput::new(SendHalf::of(socket, origin), is_outgoing),
            service: Arc::clone(service),
            origin: Arc::clone(origin),
            in_work: AtomicU32::new(0),
            hosted: AtomicU8::new(Hosted::Idle as u8),
            is_outgoing,
            finishing: AtomicBool::new(false),
            peer_left: AtomicBool::new(false),
            key: OnceLock::new(),
            peer,
        }
    }

    /// Before anybody else can know it.
    pub(crate) fn let_to(&self, key: Key) {
        self.key.get_or_init(|| key);
    }

    pub(crate) fn key(&self) -> Option<Key> {
        self.key.get().copied()
    }

    pub(crate) fn id(&self) -> ConnId {
        ConnId::new(self.key().map_or(u64::MAX, Key::token))
    }

    /// Makes its slot runnable; a running one runs again.
    pub(crate) fn poke(&self) {
        self.service.pool_ref.poke(self.key());
    }

    /// See [`PoolRef::is_forked`].
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.service.pool_ref.is_forked()
    }

    /// Asks for a run.
    pub(crate) fn call(&self, call: Calls) {
        if self.output.calls.call(call) {
            self.poke();
        }
    }

    /// The output, for users, who may be in a forked child.
    #[inline]
    pub(crate) fn reach(&self) -> Result<&SharedOutput<SendHalf>, Error> {
        if self.is_forked() { Err(Error::Forked) } else { Ok(&self.output) }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.reach().is_ok_and(|output| output.lock().wire().is_some())
    }

    pub(crate) fn in_work(&self) -> u32 {
        // Acquire: pairs with the Release half in `end_work`: what the request wrote is queued.
        self.in_work.load(Acquire)
    }

    pub(crate) fn begin_work(&self) {
        self.in_work.fetch_add(1, Relaxed);
    }

    pub(crate) fn end_work(&self) {
        self.in_work.fetch_sub(1, AcqRel);
        self.call_if_ending();
    }

    /// Something has ended that a drain waits for, or the end of a connection whose peer has finished.
    pub(crate) fn call_if_ending(&self) {
        // Against *drain, or finish, then look at what is in work*: one of both sees the other.
        store_load_barrier();
        if self.service.is_draining() {
            self.call(Calls::DRAIN);
        } else if self.finishing.load(Relaxed) {
            self.call(Calls::OUTPUT);
        }
    }

    /// By the handler: the peer has finished. It looks at what is in work afterwards.
    pub(crate) fn finish(&self) {
        self.finishing.store(true, Relaxed);
        // Against *end a request, then look whether it finishes*.
        store_load_barrier();
    }

    /// By the handler, which reads nothing now: whether the peer sends no more, and that was not seen before.
    pub(crate) fn note_peer_left(&self, socket: BorrowedFd<'_>) -> bool {
        // Relaxed: whoever leaves a hook for it looks behind that, under the lock that whoever takes the hook has.
        !self.origin.limits.allow_half_open
            && peer_of(socket) != Peer::There
            && !self.peer_left.swap(true, Relaxed)
    }

    #[inline]
    pub(crate) fn is_hosted(&self) -> bool {
        self.hosted() != Hosted::Idle
    }

    /// Whether nothing is to be read for now.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.output.calls.is_paused() || self.hosted() == Hosted::Full
    }

    #[inline]
    fn hosted(&self) -> Hosted {
        // Acquire: pairs with the Release in `set_hosted`: IDLE comes after what the host has written.
        match self.hosted.load(Acquire) {
            0 => Hosted::Idle,
            1 => Hosted::Out,
            _ => Hosted::Full,
        }
    }

    /// Under the lock of the connection's ledger. Answers with what it was, and what it is.
    pub(crate) fn set_hosted(&self, now: Hosted) -> (Hosted, Hosted) {
        let before = self.hosted();
        if before != now {
            // Release: pairs with the Acquire in `hosted`.
            self.hosted.store(now as u8, Release);
        }
        (before, now)
    }
}
