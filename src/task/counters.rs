//! What is counted of the tasks of one task type.
//!
//! Each thread that has a [number](crate::sync::thread_number) has a shard of its own, which it changes by a plain load and store; all others
//! share the last one. A snapshot sums the shards.

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{CachePadded, NUMBERED, UNNUMBERED, thread_number};
use crate::task::result::report::Status;
use std::sync::OnceLock;

/// What is counted, by its place in a shard. The ends come first, by their status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Event {
    Completed = 0,
    Failed = 1,
    Cancelled = 2,
    TimedOut = 3,
    Dropped = 4,
    Accepted = 5,
    Rejected = 6,
    Retried = 7,
    RetryRefused = 8,
    Discarded = 9,
    /// Code of the program begins to be told of an end.
    Telling = 10,
    /// It has been told.
    Told = 11,
}

const EVENTS: usize = 12;

type Shard = CachePadded<[AtomicU64; EVENTS]>;

/// What has happened to the tasks of one name.
#[derive(Debug)]
pub(crate) struct TaskTypeStats {
    shards: [OnceLock<Box<Shard>>; NUMBERED + 1],
}

impl Default for TaskTypeStats {
    fn default() -> Self {
        Self { shards: core::array::from_fn(|_| OnceLock::new()) }
    }
}

impl TaskTypeStats {
    #[inline]
    pub(super) fn count(&self, event: Event) {
        let number = thread_number();
        let shard = self.shards[usize::from(number)].get_or_init(Box::default);
        let count = &shard[event as usize];
        if number == UNNUMBERED {
            count.fetch_add(1, Release);
        } else {
            // Release: whoever sees it sees what this thread counted before.
            count.store(count.load(Relaxed) + 1, Release);
        }
    }

    /// A task that was counted by this thread was not taken in after all.
    #[cold]
    pub(super) fn take_back_accepted(&self) {
        self.shared_shard()[Event::Accepted as usize].fetch_sub(1, Release);
    }

    fn shared_shard(&self) -> &Shard {
        self.shards[usize::from(UNNUMBERED)].get_or_init(Box::default)
    }

    pub(crate) fn get(&self, event: Event) -> u64 {
        let shards = self.shards.iter().filter_map(OnceLock::get);
        // Acquire: keeps the reads of a snapshot in order.
        shards.map(|shard| shard[event as usize].load(Acquire)).fold(0, u64::wrapping_add)
    }

    #[inline]
    pub(super) fn ended(&self, status: Status) {
        self.count(match status {
            Status::Completed => Event::Completed,
            Status::Failed => Event::Failed,
            Status::Cancelled => Event::Cancelled,
            Status::TimedOut => Event::TimedOut,
            Status::Rejected => Event::Dropped,
            Status::Pending | Status::Running | Status::Retrying => unreachable!("no end"),
        });
    }

    /// Accepted and not ended, by the counters: a busy task type seems to have too many rather than too few.
    pub(super) fn under_way(&self) -> u64 {
        use Event::{Accepted, Cancelled, Completed, Dropped, Failed, TimedOut};
        let ends = [Completed, Failed, Cancelled, TimedOut, Dropped];
        let ended: u64 = ends.map(|end| self.get(end)).iter().sum();
        self.get(Accepted).saturating_sub(ended)
    }

    /// Ends that code of the program is being told of. An end is among them before it is counted as one.
    pub(super) fn told_now(&self) -> u64 {
        let told = self.get(Event::Told);
        self.get(Event::Telling).saturating_sub(told)
    }
}
