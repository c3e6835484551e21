//! How a task of a worker pool stands, as a number.

use crate::task::Status;

/// It waits for its first attempt.
pub const PACE_TASK_PENDING: u32 = 0;
/// An attempt runs.
pub const PACE_TASK_RUNNING: u32 = 1;
/// An attempt has failed, and the next one is to come.
pub const PACE_TASK_RETRYING: u32 = 2;
/// It has succeeded. A task that has this number or a greater one has ended.
pub const PACE_TASK_COMPLETED: u32 = 3;
/// Its last attempt failed.
pub const PACE_TASK_FAILED: u32 = 4;
/// It was cancelled, or the pool stopped.
pub const PACE_TASK_CANCELLED: u32 = 5;
/// One of its times was over.
pub const PACE_TASK_TIMED_OUT: u32 = 6;
/// It had been taken in, and was dropped for the sake of others.
pub const PACE_TASK_REJECTED: u32 = 7;

pub(super) fn number_of(status: Status) -> u32 {
    match status {
        Status::Pending => PACE_TASK_PENDING,
        Status::Running => PACE_TASK_RUNNING,
        Status::Retrying => PACE_TASK_RETRYING,
        Status::Completed => PACE_TASK_COMPLETED,
        Status::Failed => PACE_TASK_FAILED,
        Status::Cancelled => PACE_TASK_CANCELLED,
        Status::TimedOut => PACE_TASK_TIMED_OUT,
        Status::Rejected => PACE_TASK_REJECTED,
    }
}
