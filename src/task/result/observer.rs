//! What a program that counts and logs is told of tasks.

use crate::task::result::report::Status;
use core::time::Duration;

/// How a task ended, for observers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndRecord<'a> {
    /// The task's number.
    pub id: u64,
    /// Its name.
    pub name: &'a str,
    /// How it ended.
    pub status: Status,
    /// What went wrong last, unless it has completed.
    pub message: Option<&'a str>,
    /// As in [`TaskReport`](crate::task::TaskReport).
    pub queue_time: Duration,
    /// As in [`TaskReport`](crate::task::TaskReport).
    pub run_time: Duration,
    /// How many attempts were begun.
    pub attempts: u32,
    /// The thread of the last one.
    pub worker: Option<usize>,
}

/// An attempt that has not returned though its time is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StuckRecord<'a> {
    /// The task's number.
    pub id: u64,
    /// Its name.
    pub name: &'a str,
    /// The thread that it holds.
    pub worker: Option<usize>,
    /// How long the attempt has run.
    pub elapsed: Duration,
}

/// Somebody who is told what happens to tasks. The calls come from pool threads, or from the thread
/// that cancels or submits; they hold up whoever waits for the task, so they should be short. A panic
/// in one is dropped.
pub trait Observer: Send + Sync {
    /// A task has ended. Called once for each that was accepted.
    fn on_end(&self, _end: &EndRecord<'_>) {}

    /// An attempt has failed, and another one will come after `delay`.
    fn on_retry(&self, _name: &str, _id: u64, _attempt: u32, _message: &str, _delay: Duration) {}

    /// An attempt has outlived its time.
    fn on_stuck(&self, _stuck: &StuckRecord<'_>) {}
}
