//! How a worker pool is, in one word, and what is left of it.
//!
//! | word | when |
//! |---|---|
//! | DRAINING | it, or its pool, takes no more tasks |
//! | STUCK | every ordinary thread is inside an attempt that has outlived its time |
//! | DEGRADED | some are |
//! | READY | else |

use crate::pool::{Stats, ThreadRole};
use crate::task::arena::pin;
use crate::task::common::{Common, OPEN};
use crate::task::worker_pool::WorkerPool;

/// How a worker pool is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Health {
    /// Every thread comes back in time.
    Ready,
    /// Some threads are inside functions that have outlived their time and do not listen. The others do
    /// all the work.
    Degraded,
    /// All ordinary threads are. Only reserved ones, and those of a host, begin anything.
    Stuck,
    /// It takes no more tasks.
    Draining,
}

/// How a worker pool is, with what is left of it: see [`WorkerPool::health`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthReport {
    /// In one word.
    pub health: Health,
    /// The pool's ordinary threads.
    pub threads: usize,
    /// Those of them that are stuck, by index.
    pub stuck: Vec<usize>,
    /// Those that are active ([`Pool::set_active`](crate::Pool::set_active)) and not stuck: what is left
    /// to run tasks now.
    pub capacity: usize,
    /// Those of them that run nothing now.
    pub free: usize,
    /// Reserved threads that are not stuck ([`Builder::reserve`](crate::Builder::reserve)).
    pub reserved: usize,
    /// Tasks that wait in the lanes.
    pub queued: usize,
}

impl WorkerPool {
    /// How it is. Any thread; allocates.
    pub fn health(&self) -> HealthReport {
        self.common.health()
    }
}

impl Common {
    pub(super) fn health(&self) -> HealthReport {
        let shared = &self.shared;
        let stats = Stats::of(shared);
        let threads = shared.places.ordinary();
        let late: Vec<_> = self.guard.stuck(&pin()).into_iter().map(|(_, worker)| worker).collect();
        let is_stuck = |index: &usize| late.contains(index);
        let busy = |role| matches!(role, ThreadRole::Processing | ThreadRole::Task);
        let stuck: Vec<usize> = (0..threads).filter(is_stuck).collect();
        let at_work = |index: &usize| stats.threads[*index].role != ThreadRole::Parked;
        let left = (0..threads).filter(at_work).filter(|index| !is_stuck(index));
        let reserved = (0..stats.threads.len()).filter(|&at| stats.threads[at].reserved.is_some());
        let health = if self.phase() != OPEN || !shared.end.is_open_to(false) {
            Health::Draining
        } else if stuck.is_empty() {
            Health::Ready
        } else if stuck.len() < threads {
            Health::Degraded
        } else {
            Health::Stuck
        };
        HealthReport {
            health,
            threads,
            capacity: left.clone().count(),
            free: left.filter(|&index| !busy(stats.threads[index].role)).count(),
            reserved: reserved.filter(|index| !is_stuck(index)).count(),
            queued: stats.queued.iter().sum(),
            stuck,
        }
    }
}
