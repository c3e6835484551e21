//! Counters, and the books that must balance.

use super::WorkerPool;
use super::kind::KindInner;
use super::report::Status;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire};

/// A count.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn up(&self) {
        self.0.fetch_add(1, AcqRel);
    }

    fn down(&self) {
        self.0.fetch_sub(1, AcqRel);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Acquire)
    }
}

/// What has happened to the tasks of one name.
#[derive(Debug, Default)]
pub(crate) struct KindStats {
    pub(super) submitted: Count,
    pub(super) rejected: Count,
    accepted: Count,
    completed: Count,
    failed: Count,
    cancelled: Count,
    timed_out: Count,
    dropped: Count,
    retried: Count,
    running: Count,
}

pub(super) fn accepted(kind: &KindInner) {
    kind.stats.accepted.up();
}

pub(super) fn began(kind: &KindInner) {
    kind.stats.running.up();
}

pub(super) fn returned(kind: &KindInner) {
    kind.stats.running.down();
}

pub(super) fn retried(kind: &KindInner) {
    kind.stats.retried.up();
}

/// A task has ended. Called once for each.
pub(super) fn ended(kind: &KindInner, status: Status) {
    let stats = &kind.stats;
    match status {
        Status::Completed => stats.completed.up(),
        Status::Failed => stats.failed.up(),
        Status::Cancelled => stats.cancelled.up(),
        Status::TimedOut => stats.timed_out.up(),
        Status::Rejected => stats.dropped.up(),
        Status::Pending | Status::Running | Status::Retrying => unreachable!("no end"),
    }
}

/// What has happened to the tasks of one name. Counts never fall, but for `running`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindSnapshot {
    /// The name.
    pub name: String,
    /// Tasks that were handed in.
    pub submitted: u64,
    /// Those that were taken.
    pub accepted: u64,
    /// Those that were given back.
    pub rejected: u64,
    /// Those that have their value.
    pub completed: u64,
    /// Those whose last attempt failed.
    pub failed: u64,
    /// Those that were cancelled.
    pub cancelled: u64,
    /// Those whose time was over.
    pub timed_out: u64,
    /// Those that were taken, and dropped for the sake of others.
    pub dropped: u64,
    /// Attempts that failed and were followed by another.
    pub retried: u64,
    /// Attempts whose functions run now.
    pub running: u64,
}

fn snapshot(kind: &KindInner) -> KindSnapshot {
    let stats = &kind.stats;
    KindSnapshot {
        name: kind.name().to_owned(),
        submitted: stats.submitted.get(),
        accepted: stats.accepted.get(),
        rejected: stats.rejected.get(),
        completed: stats.completed.get(),
        failed: stats.failed.get(),
        cancelled: stats.cancelled.get(),
        timed_out: stats.timed_out.get(),
        dropped: stats.dropped.get(),
        retried: stats.retried.get(),
        running: stats.running.get(),
    }
}

/// A snapshot of a worker pool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkerStats {
    /// One entry for each name, in their order.
    pub kinds: Vec<KindSnapshot>,
    /// Tasks that have not ended.
    pub in_flight: usize,
}

/// The books of a worker pool. At rest they balance exactly; while it works the numbers are read one
/// after another, and may be apart by what happened in between. What was posted without a handle is in
/// the books of the pool ([`Pool::audit`](crate::Pool::audit)), where every attempt counts as a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskAudit {
    /// Tasks that were handed in.
    pub submitted: u64,
    /// Those that were taken.
    pub accepted: u64,
    /// Those that were given back.
    pub rejected: u64,
    /// Those that have their value.
    pub completed: u64,
    /// Those whose last attempt failed.
    pub failed: u64,
    /// Those that were cancelled.
    pub cancelled: u64,
    /// Those whose time was over.
    pub timed_out: u64,
    /// Those that were taken, and dropped for the sake of others.
    pub dropped: u64,
    /// Those that have not ended: counted, not derived from the others.
    pub in_flight: u64,
}

impl TaskAudit {
    /// Whether submitted = accepted + rejected, and accepted = completed + failed + cancelled + timed out
    /// + dropped + in flight.
    #[must_use]
    pub fn balances(&self) -> bool {
        let ended = self.completed + self.failed + self.cancelled + self.timed_out + self.dropped;
        self.submitted == self.accepted + self.rejected && self.accepted == ended + self.in_flight
    }
}

impl WorkerPool {
    /// A snapshot for people and dashboards. Any thread; allocates.
    pub fn stats(&self) -> WorkerStats {
        let kinds = self.kinds.all().iter().map(|kind| snapshot(kind)).collect();
        WorkerStats { kinds, in_flight: self.common.live.count() }
    }

    /// The books; see [`TaskAudit`]. Any thread.
    pub fn audit(&self) -> TaskAudit {
        let in_flight = self.common.live.count() as u64;
        let mut audit = TaskAudit { in_flight, ..TaskAudit::default() };
        for kind in self.stats().kinds {
            audit.submitted += kind.submitted;
            audit.accepted += kind.accepted;
            audit.rejected += kind.rejected;
            audit.completed += kind.completed;
            audit.failed += kind.failed;
            audit.cancelled += kind.cancelled;
            audit.timed_out += kind.timed_out;
            audit.dropped += kind.dropped;
        }
        audit
    }
}
