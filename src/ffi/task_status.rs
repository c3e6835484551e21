//! How a task of a worker pool stands, as a number.

use crate::task::Status;

/// The task waits for its first attempt.
pub const PACE_TASK_PENDING: u32 = 0;
/// An attempt of the task runs now.
pub const PACE_TASK_RUNNING: u32 = 1;
/// An attempt of the task has failed, and waits for its retry.
pub const PACE_TASK_RETRYING: u32 = 2;
/// The task has succeeded. A task with this number or a greater one has ended.
pub const PACE_TASK_COMPLETED: u32 = 3;
/// The last attempt of the task has failed.
pub const PACE_TASK_FAILED: u32 = 4;
/// The task was cancelled, or the pool was stopped.
pub const PACE_TASK_CANCELLED: u32 = 5;
/// The task was over one of its times: for waiting, for running, or its deadline.
pub const PACE_TASK_TIMED_OUT: u32 = 6;
/// The task was accepted, and dropped later to make room for another one.
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
