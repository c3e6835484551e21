//! A durable task as its handler and its submitter see it.

use crate::task::Attempt;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// What a handler of durable tasks is given: what was submitted, and which attempt it is.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: &'a [u8],
    pub(super) number: u32,
    pub(super) attempt: &'a Attempt<'a>,
}

impl<'a> Job<'a> {
    /// The task's id, the same for each attempt in any process.
    pub fn id(&self) -> &'a str {
        self.id
    }

    /// The task's name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// What it was submitted with.
    pub fn arguments(&self) -> &'a [u8] {
        self.arguments
    }

    /// Which attempt this is, in all processes together: 1 for the first. An attempt counts if its process ended in it; a task
    /// that was given back before it began has had none.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether it is to end, because its time is over or its pool ends: as
    /// [`Attempt::is_cancelled`](crate::task::Attempt::is_cancelled).
    pub fn is_cancelled(&self) -> bool {
        self.attempt.is_cancelled()
    }

    /// As [`Attempt::time_left`](crate::task::Attempt::time_left).
    pub fn time_left(&self) -> Option<Duration> {
        self.attempt.time_left()
    }
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("number", &self.number)
            .field("arguments", &format_args!("{} bytes", self.arguments.len()))
            .finish_non_exhaustive()
    }
}

/// How a durable task has ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DurableStatus {
    /// Its handler has succeeded.
    Completed,
    /// Its last attempt has failed; it is a dead letter.
    Failed,
    /// It was cancelled before it began.
    Cancelled,
    /// Its deadline was over before an attempt succeeded.
    TimedOut,
}

impl DurableStatus {
    pub(super) const ALL: [(Self, &'static str); 4] = [
        (Self::Completed, "completed"),
        (Self::Failed, "failed"),
        (Self::Cancelled, "cancelled"),
        (Self::TimedOut, "timed-out"),
    ];

    pub(super) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(status, _)| *status == self).map_or("", |(_, text)| text)
    }
}

impl FromStr for DurableStatus {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Self> {
        let found = Self::ALL.iter().find(|(_, other)| *other == text).map(|(status, _)| *status);
        let allowed = "completed, failed, cancelled or timed-out";
        found.ok_or_else(|| {
            crate::Error::invalid("the status of a task", format!("{text:?}"), allowed)
        })
    }
}

/// How a durable task has ended, and with what.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DurableReport {
    /// The task's id.
    pub id: String,
    /// How.
    pub status: DurableStatus,
    /// What its handler has returned, if it has completed.
    pub value: Vec<u8>,
    /// What went wrong last, if it has not.
    pub failure: Option<String>,
    /// How many attempts were begun, in all processes together.
    pub attempts: u32,
}
