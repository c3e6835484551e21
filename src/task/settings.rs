//! What a task type is told: limits in time, retries, rates, and what is done when its lane is full.

use crate::queue::Lane;
use crate::task::retry::budget::RetryBudget;
use crate::time::{Rate, Retry};
use core::time::Duration;

/// Times in nanoseconds; u64::MAX: no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// From submission to the first attempt.
    pub(crate) queue: u64,
    /// Of each attempt.
    pub(crate) attempt: u64,
    /// From submission to the end.
    pub(crate) overall: u64,
    /// From the end of an attempt's time to the end of the task, if it might be tried again.
    pub(crate) grace: u64,
    /// Of each attempt; its token hears of it, and nobody else.
    pub(crate) soft: u64,
    /// Of each attempt that a host has, from its last sign of life.
    pub(crate) lease: u64,
}

/// The shortest that a host may be silent.
pub(super) const LEAST_LEASE: Duration = Duration::from_millis(1);

/// Unless set.
const GRACE: u64 = 1_000_000_000;

impl Default for Limits {
    fn default() -> Self {
        let never = u64::MAX;
        Self {
            queue: never,
            attempt: never,
            overall: never,
            grace: GRACE,
            soft: never,
            lease: never,
        }
    }
}

/// What all tasks of a name have unless they say otherwise.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) lane: Lane,
    pub(crate) retry: Retry,
    pub(crate) limits: Limits,
    pub(crate) budget: Option<RetryBudget>,
    pub(crate) rate: Option<Rate>,
    pub(crate) full: Option<OverloadPolicy>,
    pub(crate) max_running: Option<u32>,
    pub(crate) overlap_retries: bool,
}

/// What is done with a task for which its lane has no room.
///
/// It is about lanes only. A task that may not wait for its key, for its rate or its time, or for those
/// of its name that run, because too many do ([`max_waiting`](super::WorkerPoolBuilder::max_waiting)), is given back whatever this says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OverloadPolicy {
    /// It is given back at once.
    Reject,
    /// Its submitter waits for room, for so long at most (`Duration::MAX`: as long as it takes), and
    /// gets it back then. On threads of the pool it is given back at once: they must make the room.
    Wait(Duration),
    /// Its first attempt runs in the submitter's thread, before the submission returns, with all that
    /// applies to attempts, rates and bounds included; others run in the pool. No thread of the pool keeps its time: a timer does.
    /// Inside the pool it is given back at once, as a handler that holds a lock would meet itself.
    RunHere,
    /// The oldest task that waits in the lowest lane is dropped, and ends as
    /// [`Rejected`](super::Status::Rejected). Only tasks with this policy are dropped, and only for those of
    /// their own lane or of a higher one; if there is none, the new one is given back. They are dropped
    /// once [`max_droppable`](super::WorkerPoolBuilder::max_droppable) of them wait, or when their lane
    /// is full. Never waits. Allocates for each task.
    DropOldest,
}

impl Default for OverloadPolicy {
    /// [`OverloadPolicy::Wait`], as long as it takes.
    fn default() -> Self {
        Self::Wait(Duration::MAX)
    }
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
