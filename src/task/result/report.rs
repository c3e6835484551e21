//! How a task stands, and how it ended.

use crate::task::attempt::fault::Fault;
use core::fmt;
use core::time::Duration;

/// How a task stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Status {
    /// It waits for its first attempt.
    Pending = 0,
    /// An attempt runs.
    Running = 1,
    /// An attempt has failed, and the next one is to come.
    Retrying = 2,
    /// It has its value.
    Completed = 3,
    /// Its last attempt failed: by its own word, or by a panic.
    Failed = 4,
    /// It was cancelled, or the pool stopped.
    Cancelled = 5,
    /// One of its times was over.
    TimedOut = 6,
    /// It had been taken in, and was dropped for the sake of others.
    Rejected = 7,
}

impl Status {
    #[inline]
    pub(in crate::task) const fn from_bits(bits: u32) -> Self {
        match bits & 7 {
            0 => Self::Pending,
            1 => Self::Running,
            2 => Self::Retrying,
            3 => Self::Completed,
            4 => Self::Failed,
            5 => Self::Cancelled,
            6 => Self::TimedOut,
            _ => Self::Rejected,
        }
    }

    /// Whether it will not change any more.
    #[must_use]
    pub const fn is_end(self) -> bool {
        self as u8 >= Self::Completed as u8
    }

    /// In capitals, as logs have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Retrying => "RETRYING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
            Self::TimedOut => "TIMED_OUT",
            Self::Rejected => "REJECTED",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a task ended.
///
/// ```
/// use paceline::{Pool, task::{Attempt, Status, WorkerPool}};
/// # fn main() -> paceline::Result<()> {
/// let workers = WorkerPool::new(&Pool::new()?);
/// let report = workers.task("divide", |_: &Attempt<'_>| Ok::<_, String>(84 / 2)).submit()?.wait()?;
/// assert_eq!((report.status, report.result.unwrap()), (Status::Completed, 42));
/// println!("it waited {:?} and ran {:?}", report.queue_time, report.run_time);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct TaskReport<T> {
    /// The task's number.
    pub id: u64,
    /// Its name.
    pub name: &'static str,
    /// How it ended.
    pub status: Status,
    /// Its value, if it has completed; else what went wrong last.
    pub result: Result<T, Fault>,
    /// From its submission, or from when it was due, to the first attempt; or to its end without one.
    pub queue_time: Duration,
    /// What its attempts took together. An attempt that had not returned at the end counts until then.
    pub run_time: Duration,
    /// How many attempts were begun.
    pub attempts: u32,
    /// The thread that ran the last attempt, as in [`WorkerStats::workers`](crate::task::WorkerStats::workers). None: no
    /// thread of the pool did.
    pub worker: Option<usize>,
}
