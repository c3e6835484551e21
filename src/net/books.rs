//! Where connections come from, and what is counted there.
//!
//! A connection belongs to one *origin*: the listener that accepted it, or the server's outgoing side.
//! The origin has the settings of its connections, and counts them; a server's books are the sum.
//!
//! Conservation, at each origin: begun = open + closed, by cause; requests begun = answered + aborted
//! + in work.

use super::address::Address;
use super::conn::Reason;
use super::limits::Limits;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::Arc;

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

/// See the head of the file.
pub(crate) struct Origin {
    pub(crate) limits: Limits,
    /// Where it listens; unnamed: the outgoing side.
    pub(super) address: Address,
    /// Seats that are taken.
    open: AtomicUsize,
    begun: AtomicU64,
    turned_away: AtomicU64,
    closed: [AtomicU64; REASONS],
    panics_in_close: AtomicU64,
    exhausted: AtomicU64,
    requests: AtomicU64,
    in_work: AtomicUsize,
    answered: AtomicU64,
    requests_aborted: AtomicU64,
    busy: AtomicU64,
}

impl Origin {
    pub(super) fn new(limits: Limits, address: Address) -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        Arc::new(Self {
            limits,
            address,
            open: AtomicUsize::new(0),
            begun: zero(),
            turned_away: zero(),
            closed: core::array::from_fn(|_| zero()),
            panics_in_close: zero(),
            exhausted: zero(),
            requests: zero(),
            in_work: AtomicUsize::new(0),
            answered: zero(),
            requests_aborted: zero(),
            busy: zero(),
        })
    }

    /// Takes a seat. False: all are taken.
    #[must_use]
    pub(super) fn sit_down(&self) -> bool {
        let max = self.limits.max_connections;
        let one_more = |open: usize| (open < max).then_some(open + 1);
        self.open.fetch_update(Relaxed, Relaxed, one_more).is_ok()
    }

    pub(super) fn stand_up(&self) {
        // AcqRel: whoever sees zero sees what the connections did.
        self.open.fetch_sub(1, AcqRel);
    }

    pub(super) fn began(&self) {
        self.begun.fetch_add(1, Relaxed);
    }

    pub(super) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Relaxed);
    }

    pub(super) fn ended(&self, reason: Reason, close_panicked: bool) {
        self.closed[index_of(reason)].fetch_add(1, Relaxed);
        self.panics_in_close.fetch_add(close_panicked.into(), Relaxed);
    }

    /// Of a connection whose end was pulled, what handles that has failed.
    pub(super) fn close_failed(&self) {
        self.panics_in_close.fetch_add(1, Relaxed);
    }

    pub(super) fn exhausted(&self) {
        self.exhausted.fetch_add(1, Relaxed);
    }

    /// Whether there is a maximum.
    #[cfg(feature = "http")]
    pub(crate) fn limits_requests(&self) -> bool {
        self.limits.max_requests != usize::MAX
    }

    /// False: as many are in work as may be.
    #[must_use]
    pub(crate) fn begin_request(&self) -> bool {
        if self.in_work.fetch_add(1, Relaxed) >= self.limits.max_requests {
            self.in_work.fetch_sub(1, Relaxed);
            self.busy.fetch_add(1, Relaxed);
            return false;
        }
        self.requests.fetch_add(1, Relaxed);
        true
    }

    pub(crate) fn end_request(&self, answered: bool) {
        let count = if answered { &self.answered } else { &self.requests_aborted };
        count.fetch_add(1, Relaxed);
        // AcqRel: whoever sees zero sees what became of the requests.
        self.in_work.fetch_sub(1, AcqRel);
    }
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
    fn of(count: impl Fn(usize) -> u64) -> Self {
        Self {
            peer: count(0),
            local: count(1),
            aborted: count(2),
            refused: count(3),
            timed_out: count(4),
            failed: count(5),
            unconsumed: count(6),
            panicked: count(7),
            drained: count(8),
            cut_off: count(9),
            pool_ended: count(10),
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        let Self { peer, local, aborted, refused, timed_out, failed, .. } = self;
        let Self { unconsumed, panicked, drained, cut_off, pool_ended, .. } = self;
        let orderly = peer + local + refused + drained;
        orderly + aborted + timed_out + failed + unconsumed + panicked + cut_off + pool_ended
    }
}

/// The books of one listener. The fields mean what those of [`ServerStats`] do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "told once, where they are summed up")]
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

    fn of(at: &Origin) -> Self {
        // Read first: whoever sees that nothing is under way sees all that has ended.
        let (open, in_work) = (at.open.load(Acquire), at.in_work.load(Acquire));
        Self {
            address: at.address.clone(),
            accepted: at.begun.load(Relaxed),
            turned_away: at.turned_away.load(Relaxed),
            open,
            closed: Closed::of(|index| at.closed[index].load(Relaxed)),
            panics_in_close: at.panics_in_close.load(Relaxed),
            exhausted: at.exhausted.load(Relaxed),
            requests: at.requests.load(Relaxed),
            answered: at.answered.load(Relaxed),
            requests_aborted: at.requests_aborted.load(Relaxed),
            busy: at.busy.load(Relaxed),
            in_work,
        }
    }
}

/// A server's books: the sums over its listeners and its outgoing connections.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerStats {
    /// Connections that came and were let in.
    pub accepted: u64,
    /// Connections that were begun by [`Server::connect`](super::Server::connect).
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
    /// The same for each listener, in the order of [`Server::addresses`](super::Server::addresses).
    pub listeners: Vec<ListenerStats>,
}

impl ServerStats {
    /// Whether everything that began has ended or is open. The answer is exact while no connection begins or ends.
    pub fn balances(&self) -> bool {
        self.accepted + self.connected == self.closed.total() + self.open as u64
            && self.requests == self.answered + self.requests_aborted + self.in_work as u64
            && self.listeners.iter().all(ListenerStats::balances)
    }

    pub(super) fn of(outgoing: &Origin, listeners: &[Arc<Origin>]) -> Self {
        let all = || listeners.iter().map(|origin| &**origin).chain([outgoing]);
        let sum = |count: fn(&Origin) -> &AtomicU64| all().map(|at| count(at).load(Relaxed)).sum();
        let now =
            |count: fn(&Origin) -> &AtomicUsize| all().map(|at| count(at).load(Acquire)).sum();
        // Read first, as those of a listener.
        let (open, in_work) = (now(|at| &at.open), now(|at| &at.in_work));
        Self {
            accepted: listeners.iter().map(|at| at.begun.load(Relaxed)).sum(),
            connected: outgoing.begun.load(Relaxed),
            turned_away: sum(|at| &at.turned_away),
            open,
            closed: Closed::of(|index| all().map(|at| at.closed[index].load(Relaxed)).sum()),
            panics_in_close: sum(|at| &at.panics_in_close),
            exhausted: sum(|at| &at.exhausted),
            requests: sum(|at| &at.requests),
            answered: sum(|at| &at.answered),
            requests_aborted: sum(|at| &at.requests_aborted),
            busy: sum(|at| &at.busy),
            in_work,
            listeners: listeners.iter().map(|at| ListenerStats::of(at)).collect(),
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | the end of a request against a look | what is in work is read after what has ended, or falls Relaxed | nothing is in work, and the books do not balance |
    //! | the end of a connection against a look | what is open is read after what has ended, or falls Relaxed | nothing is open, and the books do not balance |

    use super::*;
    use loom::thread;

    fn check(model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    /// What a look says of an origin, and of the server that has no other.
    fn looks(origin: &Arc<Origin>) -> (ListenerStats, ServerStats) {
        let outgoing = Origin::new(Limits::default(), Address::Unnamed);
        (ListenerStats::of(origin), ServerStats::of(&outgoing, &[Arc::clone(origin)]))
    }

    /// Goal: who sees that nothing is in work sees all that has ended. Method: the last request ends beside a look.
    #[test]
    fn with_nothing_in_work_all_requests_are_accounted_for() {
        check(|| {
            let origin = Origin::new(Limits::default(), Address::Unnamed);
            assert!(origin.begin_request());
            let worker = Arc::clone(&origin);
            let worker = thread::spawn(move || worker.end_request(true));
            let (listener, server) = looks(&origin);
            assert!(listener.in_work > 0 || listener.balances(), "{listener:?}");
            assert!(server.in_work > 0 || server.balances(), "{server:?}");
            worker.join().unwrap();
        });
    }

    /// Goal: who sees that nothing is open sees all that has ended. Method: the last connection ends beside a look.
    #[test]
    fn with_nothing_open_all_connections_are_accounted_for() {
        check(|| {
            let origin = Origin::new(Limits::default(), Address::Unnamed);
            assert!(origin.sit_down());
            origin.began();
            let worker = Arc::clone(&origin);
            let worker = thread::spawn(move || {
                worker.ended(Reason::Peer, false);
                worker.stand_up();
            });
            let (listener, server) = looks(&origin);
            assert!(listener.open > 0 || listener.balances(), "{listener:?}");
            assert!(server.open > 0 || server.balances(), "{server:?}");
            worker.join().unwrap();
        });
    }
}
