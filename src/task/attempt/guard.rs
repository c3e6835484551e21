//! The attempts that run, and when their times are over.

use crate::sync::CachePadded;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::task::record::word::Seen;

pub(in crate::task) const NEVER: u64 = u64::MAX;

/// An attempt that has begun, until it has returned.
pub(in crate::task) struct Begun {
    pub(in crate::task) number: u32,
    /// When its time is over; u64::MAX: never.
    pub(in crate::task) due: u64,
    pub(in crate::task) seen: Seen,
    pub(in crate::task) place: Watched,
    /// It has a place of those that run, which the task may not have any more when it returns.
    pub(in crate::task) has_place: bool,
    /// The pool has stopped, and it was overtaken already: nothing is to be called.
    pub(in crate::task) is_void: bool,
}

/// An attempt that is out with a host, and the time at which it is to be looked at.
#[derive(Clone, Copy)]
pub(in crate::task) struct Watch {
    pub(in crate::task) task: u64,
    pub(in crate::task) begun: Seen,
    pub(in crate::task) at: u64,
}

/// Looks after what runs. It lasts as long as the task types that refer to it.
pub(crate) struct Guard {
    /// When its timer is due; NEVER: it is not armed.
    pub(in crate::task) due: CachePadded<AtomicU64>,
    /// One for each member.
    pub(in crate::task) places: Box<[CachePadded<WorkerPlace>]>,
}

/// What one member runs, and has run. Only its thread writes.
#[derive(Default)]
pub(in crate::task) struct WorkerPlace {
    /// Which task it runs: its id + 1, or 0.
    pub(in crate::task) task: AtomicU64,
    /// When the attempt that it runs began.
    pub(in crate::task) began: AtomicU64,
    /// Attempts that have returned a value.
    completed: AtomicU64,
    /// Attempts that have returned none.
    failed: AtomicU64,
    /// How many nanoseconds those that have returned took.
    run_time: AtomicU64,
}

/// Of a [`WorkerPlace`].
pub(in crate::task) struct Returned {
    pub(in crate::task) completed: u64,
    pub(in crate::task) failed: u64,
    pub(in crate::task) run_time: u64,
}

impl WorkerPlace {
    pub(in crate::task) fn returned(&self) -> Returned {
        // Acquire: keeps the reads of a snapshot in order, with what has ended read first.
        Returned {
            completed: self.completed.load(Acquire),
            failed: self.failed.load(Acquire),
            run_time: self.run_time.load(Acquire),
        }
    }
}

/// Takes a task from its place when the attempt is over.
pub(in crate::task) struct Watched(pub(in crate::task) Option<&'static WorkerPlace>);

impl Watched {
    /// The attempt has returned at `now`, and is counted.
    #[inline]
    pub(in crate::task) fn count(&self, now: u64, is_completed: bool) {
        let Some(place) = self.0 else { return };
        let add = |count: &AtomicU64, more| count.store(count.load(Relaxed) + more, Release);
        add(if is_completed { &place.completed } else { &place.failed }, 1);
        add(&place.run_time, now.saturating_sub(place.began.load(Relaxed)));
    }
}

impl Drop for Watched {
    #[inline]
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.task.store(0, Release);
        }
    }
}

impl Guard {
    pub(in crate::task) fn new(members: usize) -> Self {
        Self {
            due: CachePadded::new(AtomicU64::new(NEVER)),
            places: (0..members).map(|_| CachePadded::default()).collect(),
        }
    }
}
