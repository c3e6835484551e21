//! What is counted for the whole pool; what a member does it counts by itself.

use super::this_thread::Outcome;
use crate::contain::contain;
use crate::queue::Erased;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;

/// See [`Audit`](super::Audit) for how they balance.
pub(crate) struct Counters {
    pub(crate) rejected: AtomicU64,
    /// Tasks, and timers that were due, that the end of the pool has left unrun, outside of a member's own count.
    pub(crate) dropped: AtomicU64,
    /// Timers that were not due when the pool ended.
    pub(crate) undue: AtomicU64,
    /// Timers that were cancelled by a call. Those that were staged count in their shards.
    pub(crate) timers_cancelled: AtomicU64,
    pub(crate) timers_armed: AtomicU64,
    /// Strand tasks accepted and not ended.
    pub(crate) in_strands: AtomicU64,
    pub(crate) strands_accepted: AtomicU64,
    /// Strand tasks that a thread outside of the pool has run, since it waits for their end.
    pub(crate) completed_outside: AtomicU64,
    pub(crate) failed_outside: AtomicU64,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            rejected: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            undue: AtomicU64::new(0),
            timers_cancelled: AtomicU64::new(0),
            timers_armed: AtomicU64::new(0),
            in_strands: AtomicU64::new(0),
            strands_accepted: AtomicU64::new(0),
            completed_outside: AtomicU64::new(0),
            failed_outside: AtomicU64::new(0),
        }
    }

    #[cold]
    pub(crate) fn count_rejected<R>(&self, rejected: R) -> R {
        self.rejected.fetch_add(1, Relaxed);
        rejected
    }

    /// A task has ended on a thread that is no member.
    pub(crate) fn count_outside(&self, panicked: bool, outcome: Outcome) {
        let count = match outcome {
            Outcome::Cancelled => &self.dropped,
            Outcome::Completed if !panicked => &self.completed_outside,
            Outcome::Completed | Outcome::Failed => &self.failed_outside,
        };
        count.fetch_add(1, Relaxed);
    }

    /// Drops a task unrun, because the pool stops.
    pub(crate) fn cancel(&self, task: Erased) {
        self.dropped.fetch_add(1, Relaxed);
        // What a closure's own drop does must not end the thread that sweeps up.
        let _panicked = contain(|| drop(task));
    }
}
