//! How far the end of the pool has come, and the parts of the pool that it takes into account.
//!
//! ```text
//!   open ──begin_drain──► draining ──begin_stop──► stopping
//! ```

use super::counters::Counters;
use crate::contain::Contained;
use crate::metrics::Collector;
use crate::sync::CachePadded;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use serde_json::Value as Json;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// How often a leader looks whether the pool has drained.
pub(crate) const DRAIN_LOOK: u64 = 10_000_000;

/// The life of a pool, in order.
const OPEN: u32 = 0;
const DRAINING: u32 = 1;
const STOPPING: u32 = 2;

/// How a shutdown went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct PoolReport {
    /// Everything that had been accepted has ended: nothing was cut off, cancelled or left, and no handler still runs.
    /// If it is false, the counts say what was.
    pub drained: bool,
    /// This was called inside a handler, so it was only a request: the pool shuts down when its
    /// handlers have returned.
    pub requested: bool,
    /// Tasks that were accepted and will not run, and one-shot timers that were not due. (These do not count against
    /// `drained`.) This and what follows is what has come about since the first shutdown of the pool began.
    pub cancelled: u64,
    /// Of worker pools: tasks that were cancelled, those that waited for another attempt among them, and those that a
    /// host has taken and not completed.
    pub worker_tasks: u64,
    /// Of servers: connections that were cut off, as they were not through.
    pub connections: u64,
    /// Events of rings, and messages of hubs, in mailboxes or with publishers that waited for room there, which will not
    /// be handled.
    pub left: u64,
    /// Indices of threads whose handlers have not returned. They end when those do.
    pub stuck: Vec<usize>,
}

/// What a part of the pool (a server, a worker pool, a hub, a ring) still has to do before the pool may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remains {
    Nothing,
    /// Only work whose time comes after the drain's deadline: it is not waited for.
    Later,
    Work,
}

/// A part of the pool, as far as the end of the pool and its figures are concerned. It is called without a lock, so it
/// may call the pool.
pub(crate) trait Served: Send + Sync {
    /// The pool drains from now on. It may be called more than once. Not called if the pool stops without a drain.
    fn begin_drain(&self) {}
    /// What is left to do for a drain that ends at `deadline`, by the pool's clock.
    fn remains(&self, deadline: u64) -> Remains;
    /// How many events or messages have not been handled.
    fn left(&self) -> u64 {
        0
    }
    /// How many tasks of a worker pool were cancelled so far.
    fn cancelled(&self) -> u64 {
        0
    }
    /// How many tasks of a worker pool a host has taken and not completed.
    fn out(&self) -> u64 {
        0
    }
    /// How many connections of a server were cut off so far, by its own end or the pool's.
    fn cut_off(&self) -> u64 {
        0
    }
    /// Of a completion queue: a number that changes when a host takes or completes something, and whether something lies
    /// there that no host has taken.
    fn at_hosts(&self) -> Option<(u64, bool)> {
        None
    }
    /// Whether some of what remains ends only if a host takes it, or completes what it has taken.
    fn needs_host(&self) -> bool {
        self.at_hosts().is_some_and(|(_, has_entries)| has_entries)
    }
    /// Says what is wrong with it: whether it takes work all the same, and a reason for people.
    fn health(&self, _say: &mut dyn FnMut(bool, String)) {}
    /// Refuses everything from now on.
    fn close(&self);
    /// Gives its figures at one snapshot, where the pool is called `pool`. It may begin here to count what costs something.
    fn figures(&self, _to: &mut Collector, _pool: &str) {}
    /// What the live page shows of histories that have files.
    fn shown_histories(&self) -> Vec<Json> {
        Vec::new()
    }
    /// What the live page shows of the newest dead letters; how many are held.
    fn show_dead_letters(&self, _to: &mut Vec<Json>) -> usize {
        0
    }
    /// What the live page shows of a bridge. None: it is none.
    fn shown(&self) -> Option<Json> {
        None
    }
}

/// See the module's documentation.
pub(crate) struct End {
    phase: CachePadded<AtomicU32>,
    drain_deadline: AtomicU64,
    was_drained: AtomicBool,
    /// A member has left since the pool stopped.
    was_left: AtomicBool,
    /// What had been lost when the end began.
    before: OnceLock<Before>,
    /// The list is replaced, never changed: parts are asked without the lock.
    parts: Mutex<Arc<[Weak<dyn Served>]>>,
    /// How many parts without a name of their own have a number.
    numbered: AtomicU64,
}

impl End {
    pub(crate) fn new() -> Self {
        Self {
            phase: CachePadded::new(AtomicU32::new(OPEN)),
            drain_deadline: AtomicU64::new(u64::MAX),
            was_drained: AtomicBool::new(false),
            was_left: AtomicBool::new(false),
            before: OnceLock::new(),
            parts: Mutex::new(Arc::new([])),
            numbered: AtomicU64::new(0),
        }
    }

    /// Whether the end has not begun.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.phase.load(Relaxed) == OPEN
    }

    /// Whether nothing more may begin; while the pool drains, `is_over` says whether that is over.
    #[inline]
    pub(crate) fn must_stop(&self, is_over: impl FnOnce() -> bool) -> bool {
        match self.phase.load(Relaxed) {
            OPEN => false,
            DRAINING => is_over(),
            _ => true,
        }
    }

    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.phase.load(Relaxed) == DRAINING
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.phase.load(Relaxed) == STOPPING
    }

    /// Whether tasks are accepted: a pool that drains takes them from inside only.
    #[inline]
    pub(crate) fn is_open_to(&self, inside: bool) -> bool {
        match self.phase.load(Relaxed) {
            OPEN => true,
            DRAINING => inside,
            _ => false,
        }
    }

    /// True for one member of a stopped pool, the first that asks.
    pub(crate) fn is_first_to_leave(&self) -> bool {
        !self.was_left.swap(true, Relaxed)
    }

    /// When the drain must be over: u64::MAX while there is none.
    #[inline]
    pub(crate) fn drain_deadline(&self) -> u64 {
        self.drain_deadline.load(Relaxed)
    }

    /// When a leader must look at the drain again: u64::MAX while there is none. A part of the pool may be through
    /// by what another thread does, which tells no member: a task that is cancelled, say.
    #[inline]
    pub(crate) fn next_drain_look(&self, now: u64) -> u64 {
        match self.drain_deadline() {
            u64::MAX => u64::MAX,
            deadline => deadline.min(now.saturating_add(DRAIN_LOOK)),
        }
    }

    #[inline]
    pub(crate) fn drain_is_over(&self, now: u64) -> bool {
        now >= self.drain_deadline()
    }

    /// The drain begins, if the end has not: callers have closed what is closed to work from outside.
    pub(crate) fn begin_drain(&self) {
        // Release: whoever sees the phase sees the deadline.
        let _ = self.phase.compare_exchange(OPEN, DRAINING, Release, Relaxed);
    }

    /// The drain, should it begin or have begun, ends at `deadline` or earlier. What was lost before is noted.
    pub(crate) fn set_deadline(&self, deadline: u64, counters: &Counters) {
        self.before.get_or_init(|| Before::of(self, counters));
        self.drain_deadline.fetch_min(deadline, Relaxed);
    }

    /// From now on nothing begins. False: that was so before.
    pub(crate) fn begin_stop(&self) -> bool {
        self.phase.swap(STOPPING, AcqRel) != STOPPING
    }

    /// The pool has stopped; everything had ended, or not.
    pub(crate) fn set_drained(&self, drained: bool) {
        self.was_drained.store(drained, Release);
    }

    /// Whether everything had ended when the pool stopped.
    pub(crate) fn ended_drained(&self) -> bool {
        self.was_drained.load(Acquire)
    }

    /// From now on the end of the pool takes this part into account.
    pub(crate) fn serve(&self, part: Weak<dyn Served>) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let alive = parts.iter().filter(|part| part.strong_count() > 0).cloned();
        let after = alive.chain([part.clone()]).collect();
        *parts = after;
        drop(parts);
        // A drain that began before is seen here, by the order of the lock; one that begins now finds the part.
        let Some(part) = part.upgrade().map(Contained::new) else { return };
        match self.phase.load(Relaxed) {
            OPEN => {}
            DRAINING => part.begin_drain(),
            _ => part.close(),
        }
    }

    /// The parts that are alive. They may call the pool when they are asked, closed, or dropped as the last of their
    /// clones here.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Contained<Arc<dyn Served>>> {
        let parts = Arc::clone(&*self.parts.lock().unwrap_or_else(PoisonError::into_inner));
        let count = parts.len();
        (0..count).filter_map(move |at| parts[at].upgrade().map(Contained::new))
    }

    /// What a part without a name of its own is called in figures.
    pub(crate) fn next_name(&self) -> String {
        (self.numbered.fetch_add(1, Relaxed) + 1).to_string()
    }

    /// What all parts together still have to do before the drain may end.
    pub(crate) fn remains(&self) -> Remains {
        let deadline = self.drain_deadline();
        self.parts().map(|part| part.remains(deadline)).max().unwrap_or(Remains::Nothing)
    }

    /// Events and messages that were taken and not handled.
    pub(crate) fn left_in_parts(&self) -> u64 {
        self.parts().map(|part| part.left()).sum()
    }

    /// What has become of everything, by now; `stuck` says who has not left.
    pub(crate) fn report(
        &self,
        counters: &Counters,
        stuck: impl FnOnce() -> Vec<usize>,
    ) -> PoolReport {
        let before = self.before.get_or_init(|| Before::of(self, counters));
        let (worker_tasks, connections) = before.lost_in_parts(self);
        let dropped = counters.dropped.load(Relaxed) - before.dropped;
        let undue = counters.undue.load(Relaxed) - before.undue;
        let (left, stuck) = (self.left_in_parts(), stuck());
        // A thread that has nothing more to do may just not have been given a processor yet.
        let all_have_ended = stuck.is_empty() || self.ended_drained();
        PoolReport {
            drained: all_have_ended && dropped + worker_tasks + connections + left == 0,
            requested: false,
            cancelled: dropped + undue,
            worker_tasks,
            connections,
            left,
            stuck,
        }
    }
}

/// What had been lost when the end of the pool began.
struct Before {
    dropped: u64,
    undue: u64,
    /// Tasks cancelled, and connections cut off, by part.
    parts: Vec<(Weak<dyn Served>, u64, u64)>,
}

impl Before {
    fn of(end: &End, counters: &Counters) -> Self {
        let part = |part: Contained<Arc<dyn Served>>| {
            (Arc::downgrade(&part), part.cancelled(), part.cut_off())
        };
        Self {
            dropped: counters.dropped.load(Relaxed),
            undue: counters.undue.load(Relaxed),
            parts: end.parts().map(part).collect(),
        }
    }

    /// Tasks of worker pools, and connections, that have been lost since. Parts that came later had lost none.
    fn lost_in_parts(&self, end: &End) -> (u64, u64) {
        let lost = |part: Contained<Arc<dyn Served>>| {
            let is_it =
                |known: &Weak<dyn Served>| core::ptr::addr_eq(known.as_ptr(), Arc::as_ptr(&part));
            let known = self.parts.iter().find(|(known, ..)| is_it(known));
            let (cancelled, cut_off) =
                known.map_or((0, 0), |&(_, cancelled, cut_off)| (cancelled, cut_off));
            (
                part.cancelled().saturating_sub(cancelled) + part.out(),
                part.cut_off().saturating_sub(cut_off),
            )
        };
        end.parts().map(lost).fold((0, 0), |sum, lost| (sum.0 + lost.0, sum.1 + lost.1))
    }
}
