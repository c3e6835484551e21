//! What a server and its listeners have counted, for users. Conservation: begun = open + closed, by cause; requests
//! begun = answered + aborted + in work.

use crate::net::address::Address;

/// Connections that have ended, by [`Reason`](crate::net::Reason).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Closed {
    /// [`Reason::Peer`](crate::net::Reason::Peer).
    pub peer: u64,
    /// [`Reason::Local`](crate::net::Reason::Local).
    pub local: u64,
    /// [`Reason::Aborted`](crate::net::Reason::Aborted).
    pub aborted: u64,
    /// [`Reason::Refused`](crate::net::Reason::Refused).
    pub refused: u64,
    /// [`Reason::TimedOut`](crate::net::Reason::TimedOut).
    pub timed_out: u64,
    /// [`Reason::Failed`](crate::net::Reason::Failed).
    pub failed: u64,
    /// [`Reason::Unconsumed`](crate::net::Reason::Unconsumed).
    pub unconsumed: u64,
    /// [`Reason::Panicked`](crate::net::Reason::Panicked).
    pub panicked: u64,
    /// [`Reason::Drained`](crate::net::Reason::Drained).
    pub drained: u64,
    /// [`Reason::CutOff`](crate::net::Reason::CutOff).
    pub cut_off: u64,
    /// [`Reason::PoolEnded`](crate::net::Reason::PoolEnded).
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

/// The counters of one listener. The fields mean what those of [`ServerStats`] do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "explained once, where they are summed up")]
pub struct ListenerStats {
    /// Where it listens.
    pub address: Address,
    pub accepted: u64,
    pub turned_away: u64,
    pub open: usize,
    pub closed: Closed,
    pub panics_in_close: u64,
    pub exhausted: u64,
    pub requests: u64,
    pub answered: u64,
    pub requests_aborted: u64,
    pub busy: u64,
    pub in_work: usize,
}

impl ListenerStats {
    /// Whether everything that began has ended or is open. The answer is exact while no connection begins or ends.
    pub fn balances(&self) -> bool {
        self.accepted == self.closed.total() + self.open as u64
            && self.requests == self.answered + self.requests_aborted + self.in_work as u64
    }
}

/// A server's counters: the sums over its listeners and its outgoing connections.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerStats {
    /// Connections that came and were let in.
    pub accepted: u64,
    /// Connections that were begun by [`Server::connect`](crate::net::Server::connect).
    pub connected: u64,
    /// Connections beyond the maximum; not counted as accepted.
    pub turned_away: u64,
    /// Connections whose sockets are open.
    pub open: usize,
    /// Connections that have ended.
    pub closed: Closed,
    /// `close` hooks that panicked, after whatever reason.
    pub panics_in_close: u64,
    /// Times that accepting paused for want of descriptors or memory, or since the socket accepted no more.
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
    /// The same for each listener, in the order of [`Server::addresses`](crate::net::Server::addresses).
    pub listeners: Vec<ListenerStats>,
}

impl ServerStats {
    /// Whether everything that began has ended or is open. The answer is exact while no connection begins or ends.
    pub fn balances(&self) -> bool {
        self.accepted + self.connected == self.closed.total() + self.open as u64
            && self.requests == self.answered + self.requests_aborted + self.in_work as u64
            && self.listeners.iter().all(ListenerStats::balances)
    }
}
