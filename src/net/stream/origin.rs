//! Where connections come from, and what is counted there.
//!
//! A connection belongs to one *origin*: the listener that accepted it, or the server's outgoing side.
//! The origin has the settings of its connections, and counts them; a server's counters are the sum.
//!
//! Conservation, at each origin: begun = open + closed, by cause; requests begun = answered + aborted
//! + in work.

use super::limits::Limits;
use super::stats::{Closed, ListenerStats, ServerStats};
use super::status::Reason;
use crate::net::address::Address;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use crate::trace::Name;
use std::sync::Arc;

/// Idle for so many nanoseconds, a connection that gives way is closed when few places are left.
const CROWDED_IDLE: u64 = 1_000_000_000;

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
    pub(crate) address: Address,
    /// What the runs of its connections are called.
    pub(crate) name: Name,
    /// Some of its connections give way to others while they are idle.
    pub(crate) gives_way: AtomicBool,
    /// Permits that are taken.
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

fn name_at(address: &Address) -> Name {
    match address {
        Address::Tcp(address) => Name::new(&format!("tcp {address}")),
        Address::Unnamed => Name::new("outgoing connection"),
        Address::Unix(_) | Address::Abstract(_) => Name::new(&address.to_string()),
    }
}

impl Origin {
    pub(crate) fn new(limits: Limits, address: Address) -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        Arc::new(Self {
            limits,
            name: name_at(&address),
            address,
            gives_way: AtomicBool::new(false),
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

    /// Takes a permit for a socket. False: all are taken.
    #[must_use]
    pub(crate) fn acquire(&self) -> bool {
        let max = self.limits.max_connections;
        let one_more = |open: usize| (open < max).then_some(open + 1);
        self.open.fetch_update(Relaxed, Relaxed, one_more).is_ok()
    }

    /// Whether fewer than an eighth of the places are left, and some may give way. Never with fewer than eight of them.
    pub(crate) fn is_crowded(&self) -> bool {
        let max = self.limits.max_connections;
        // Relaxed: whoever comes later looks again.
        self.open.load(Relaxed) > max - max / 8 && self.gives_way.load(Relaxed)
    }

    /// For how long a connection may be idle that gives way to others.
    pub(crate) fn idle_that_gives_way(&self) -> u64 {
        match self.is_crowded() && self.limits.idle != u64::MAX {
            true => self.limits.idle.min(CROWDED_IDLE),
            false => self.limits.idle,
        }
    }

    pub(crate) fn release(&self) {
        // AcqRel: whoever sees zero sees what the connections did.
        self.open.fetch_sub(1, AcqRel);
    }

    pub(crate) fn began(&self) {
        self.begun.fetch_add(1, Relaxed);
    }

    pub(crate) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Relaxed);
    }

    pub(crate) fn ended(&self, reason: Reason, close_panicked: bool) {
        self.closed[index_of(reason)].fetch_add(1, Relaxed);
        self.panics_in_close.fetch_add(close_panicked.into(), Relaxed);
    }

    /// The entry with the end of a hosted connection was completed as failed.
    pub(crate) fn close_failed(&self) {
        self.panics_in_close.fetch_add(1, Relaxed);
    }

    pub(crate) fn exhausted(&self) {
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

    /// What it has counted. The answer adds up while no connection begins or ends.
    pub(crate) fn stats(&self) -> ListenerStats {
        // Read first: whoever sees that nothing is under way sees all that has ended.
        let (open, in_work) = (self.open.load(Acquire), self.in_work.load(Acquire));
        ListenerStats {
            address: self.address.clone(),
            accepted: self.begun.load(Relaxed),
            turned_away: self.turned_away.load(Relaxed),
            open,
            closed: closed_by(|index| self.closed[index].load(Relaxed)),
            panics_in_close: self.panics_in_close.load(Relaxed),
            exhausted: self.exhausted.load(Relaxed),
            requests: self.requests.load(Relaxed),
            answered: self.answered.load(Relaxed),
            requests_aborted: self.requests_aborted.load(Relaxed),
            busy: self.busy.load(Relaxed),
            in_work,
        }
    }
}

/// The sums over the listeners of a server and its outgoing connections.
pub(crate) fn server_stats(outgoing: &Origin, listeners: &[Arc<Origin>]) -> ServerStats {
    let all = || listeners.iter().map(|origin| &**origin).chain([outgoing]);
    let sum = |count: fn(&Origin) -> &AtomicU64| all().map(|at| count(at).load(Relaxed)).sum();
    let now = |count: fn(&Origin) -> &AtomicUsize| all().map(|at| count(at).load(Acquire)).sum();
    // Read first, as those of a listener.
    let (open, in_work) = (now(|at| &at.open), now(|at| &at.in_work));
    ServerStats {
        accepted: listeners.iter().map(|at| at.begun.load(Relaxed)).sum(),
        connected: outgoing.begun.load(Relaxed),
        turned_away: sum(|at| &at.turned_away),
        open,
        closed: closed_by(|index| all().map(|at| at.closed[index].load(Relaxed)).sum()),
        panics_in_close: sum(|at| &at.panics_in_close),
        exhausted: sum(|at| &at.exhausted),
        requests: sum(|at| &at.requests),
        answered: sum(|at| &at.answered),
        requests_aborted: sum(|at| &at.requests_aborted),
        busy: sum(|at| &at.busy),
        in_work,
        listeners: listeners.iter().map(|at| at.stats()).collect(),
    }
}

/// By what each reason has, in the order of [`index_of`].
fn closed_by(count: impl Fn(usize) -> u64) -> Closed {
    Closed {
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

#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | the end of a request against a look | what is in work is read after what has ended, or falls Relaxed | nothing is in work, and the counters do not balance |
    //! | the end of a connection against a look | what is open is read after what has ended, or falls Relaxed | nothing is open, and the counters do not balance |

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
        (origin.stats(), server_stats(&outgoing, &[Arc::clone(origin)]))
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
            assert!(origin.acquire());
            origin.began();
            let worker = Arc::clone(&origin);
            let worker = thread::spawn(move || {
                worker.ended(Reason::Peer, false);
                worker.release();
            });
            let (listener, server) = looks(&origin);
            assert!(listener.open > 0 || listener.balances(), "{listener:?}");
            assert!(server.open > 0 || server.balances(), "{server:?}");
            worker.join().unwrap();
        });
    }
}
