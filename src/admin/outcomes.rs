//! The log of outcomes: what became of each task, told by a thread of its own.
//!
//! Workers hand a copy of what they know to a bounded queue and go on. The log's thread takes it from
//! there to the `log` facade, to a callback, and to a file of JSON lines that is rotated by size. So a slow
//! disk holds up nobody, and a full one is a count: what could not be queued or written is in
//! [`OutcomeLogStats`].

use crate::error::Result;
use crate::log::LogStats;
use crate::log::writer::{LogWriter, Settings, Sink};
use crate::sys::clock;
use crate::task::{EndRecord, Observer, Status, StuckRecord};
use core::fmt;
use core::time::Duration;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// The target of records of the `log` facade.
pub const LOG_TARGET: &str = "paceline::task";

/// Something that happened to a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// When.
    pub time: SystemTime,
    /// The task's number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// What happened.
    pub event: OutcomeEvent,
    /// What went wrong last; empty if nothing did.
    pub message: String,
}

/// What happened to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutcomeEvent {
    /// It has ended; the times are those of its [`TaskReport`](crate::task::TaskReport).
    End {
        /// How.
        status: Status,
        /// How long it waited for its first attempt.
        queue_time: Duration,
        /// What its attempts took.
        run_time: Duration,
        /// How many there were.
        attempts: u32,
        /// The thread of the last one.
        worker: Option<usize>,
    },
    /// An attempt has failed, and another one comes.
    Retry {
        /// The number of the one that failed.
        attempt: u32,
        /// When the next one comes.
        delay: Duration,
    },
    /// An attempt has not returned though its time is over.
    Stuck {
        /// The thread that it holds.
        worker: Option<usize>,
        /// How long it has run.
        elapsed: Duration,
    },
}

impl Outcome {
    /// One line of JSON, without the line's end: `time`, `event` ("end", "retry" or "stuck"), `id`, `name`,
    /// `message`, and what belongs to the event, times in milliseconds.
    #[must_use]
    pub fn to_json(&self) -> String {
        let millis = |time: &Duration| time.as_secs_f64() * 1e3;
        let mut line = match &self.event {
            OutcomeEvent::End { status, queue_time, run_time, attempts, worker } => json!({
                "event": "end", "status": status.name(), "queue_ms": millis(queue_time),
                "run_ms": millis(run_time), "attempts": attempts, "worker": worker,
            }),
            OutcomeEvent::Retry { attempt, delay } => {
                json!({ "event": "retry", "attempt": attempt, "delay_ms": millis(delay) })
            }
            OutcomeEvent::Stuck { worker, elapsed } => {
                json!({ "event": "stuck", "worker": worker, "elapsed_ms": millis(elapsed) })
            }
        };
        let time = humantime::format_rfc3339_millis(clock::with_a_form(self.time));
        line["time"] = time.to_string().into();
        line["id"] = self.id.into();
        line["name"] = self.name.as_str().into();
        line["message"] = self.message.as_str().into();
        line.to_string()
    }

    fn level(&self) -> log::Level {
        match &self.event {
            OutcomeEvent::End { status: Status::Completed, .. } => log::Level::Debug,
            OutcomeEvent::End { status: Status::Cancelled, .. } => log::Level::Info,
            OutcomeEvent::Retry { .. } => log::Level::Info,
            OutcomeEvent::End { .. } | OutcomeEvent::Stuck { .. } => log::Level::Warn,
        }
    }
}

/// As people read it: `resize 17 FAILED after 3 attempts: the disk was full`.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.name, self.id)?;
        match &self.event {
            OutcomeEvent::End { status, attempts, .. } => {
                let s = if *attempts == 1 { "" } else { "s" };
                write!(f, "{status} after {attempts} attempt{s}")?;
            }
            OutcomeEvent::Retry { attempt, delay } => {
                write!(f, "attempt {attempt} failed, the next one comes in {delay:?}")?;
            }
            OutcomeEvent::Stuck { worker: Some(worker), elapsed } => {
                write!(f, "stuck on thread {worker} for {elapsed:?}")?;
            }
            OutcomeEvent::Stuck { worker: None, elapsed } => write!(f, "stuck for {elapsed:?}")?,
        }
        match self.message.as_str() {
            "" => Ok(()),
            message => write!(f, ": {message}"),
        }
    }
}

type Callback = Box<dyn FnMut(&Outcome) + Send>;

/// Settings of an [`OutcomeLog`].
#[must_use = "a builder does nothing until `build`"]
#[derive(Default)]
pub struct OutcomeLogBuilder {
    settings: Settings,
    callback: Option<Callback>,
}

impl OutcomeLogBuilder {
    /// Whether the `log` facade is told, under the target [`LOG_TARGET`]: completed tasks as debug, retries
    /// and cancellations as info, the rest as warnings. Default: true.
    pub fn facade(mut self, facade: bool) -> Self {
        self.settings.facade = facade;
        self
    }

    /// Called for each outcome, on the log's thread. A panic in it is counted as an error.
    pub fn callback(mut self, callback: impl FnMut(&Outcome) + Send + 'static) -> Self {
        self.callback = Some(Box::new(callback));
        self
    }

    /// Appends JSON lines to this file. Default: no file. Several logs may write one file, links and devices may be
    /// named, and torn lines are ended, as for [`LogBuilder::file`](crate::log::LogBuilder::file).
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.file = Some(path.into());
        self
    }

    /// How large the file may become, 1 KiB to 1 TiB; then it is renamed to `path.1`, that to `path.2`, and
    /// so on. Default: 64 MiB. A line that is longer gets a file for itself.
    pub fn max_size(mut self, bytes: usize) -> Self {
        self.settings.max_size = bytes;
        self
    }

    /// How many files are kept, the one that is written included: 1 to 1000. Default: 4.
    pub fn files(mut self, files: usize) -> Self {
        self.settings.files = files;
        self
    }

    /// How many outcomes may wait to be told, 1 to 2^20, rounded up to a power of two. Default: 8192. What
    /// comes while so many wait is dropped, and counted.
    pub fn capacity(mut self, outcomes: usize) -> Self {
        self.settings.capacity = outcomes;
        self
    }

    /// Starts the log: its thread is the only one, and is created here.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) names the setting, its value and the allowed range, also for a file
    /// that is a directory, a block device or a socket;
    /// [`Error::Os`](crate::Error::Os) if the thread cannot be created. That the file cannot be opened is no error: it is tried again for each batch.
    pub fn build(self) -> Result<Arc<OutcomeLog>> {
        let writer = LogWriter::start(self.settings, Outcomes { callback: self.callback })?;
        Ok(Arc::new(OutcomeLog { writer }))
    }
}

impl fmt::Debug for OutcomeLogBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutcomeLogBuilder")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// What a log of outcomes has done.
pub type OutcomeLogStats = LogStats;

/// A log of outcomes; give it to [`WorkerPoolBuilder::observe`](crate::task::WorkerPoolBuilder::observe).
/// When the last worker pool that uses it is gone, and it is dropped, its thread tells what waits and ends. If there is a
/// callback, that drop returns when the callback has been dropped, unless it is on a thread of a pool or of the log.
///
/// ```
/// use paceline::{Pool, admin::OutcomeLog, task::{Attempt, WorkerPool}};
/// # fn main() -> paceline::Result<()> {
/// let log = OutcomeLog::builder().callback(|outcome| println!("{outcome:?}")).build()?;
/// let workers = WorkerPool::builder(&Pool::new()?).observe(log).build()?;
/// workers.task("hello", |_: &Attempt<'_>| Ok::<_, String>(())).submit()?.wait()?;
/// # Ok(())
/// # }
/// ```
pub struct OutcomeLog {
    writer: LogWriter<Outcome>,
}

impl OutcomeLog {
    /// Settings to build a log from.
    pub fn builder() -> OutcomeLogBuilder {
        OutcomeLogBuilder::default()
    }

    /// What it has done so far. Any thread.
    pub fn stats(&self) -> OutcomeLogStats {
        self.writer.stats()
    }

    /// Waits until everything that was observed before is told and written.
    ///
    /// # Errors
    /// [`Error::TimedOut`](crate::Error::TimedOut); [`Error::WouldDeadlock`](crate::Error::WouldDeadlock) in its
    /// own callback; [`Error::Forked`](crate::Error::Forked).
    pub fn flush(&self, timeout: Duration) -> Result<()> {
        self.writer.flush(timeout)
    }

    fn hand_over(&self, id: u64, name: &str, event: OutcomeEvent, message: &str) {
        let (time, name, message) = (SystemTime::now(), name.to_owned(), message.to_owned());
        self.writer.log(Outcome { time, id, name, event, message });
    }
}

impl Observer for OutcomeLog {
    fn on_end(&self, end: &EndRecord<'_>) {
        let event = OutcomeEvent::End {
            status: end.status,
            queue_time: end.queue_time,
            run_time: end.run_time,
            attempts: end.attempts,
            worker: end.worker,
        };
        self.hand_over(end.id, end.name, event, end.message.unwrap_or_default());
    }

    fn on_retry(&self, name: &str, id: u64, attempt: u32, message: &str, delay: Duration) {
        self.hand_over(id, name, OutcomeEvent::Retry { attempt, delay }, message);
    }

    fn on_stuck(&self, stuck: &StuckRecord<'_>) {
        let event = OutcomeEvent::Stuck { worker: stuck.worker, elapsed: stuck.elapsed };
        self.hand_over(stuck.id, stuck.name, event, "");
    }
}

impl fmt::Debug for OutcomeLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutcomeLog").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// Where outcomes go.
struct Outcomes {
    callback: Option<Callback>,
}

impl Sink<Outcome> for Outcomes {
    fn line(&self, outcome: &Outcome) -> Vec<u8> {
        outcome.to_json().into_bytes()
    }

    fn facade(&self, outcome: &Outcome) {
        log::log!(target: LOG_TARGET, outcome.level(), "{outcome}");
    }

    fn call(&mut self, outcome: &Outcome) {
        if let Some(callback) = &mut self.callback {
            callback(outcome);
        }
    }

    fn calls_back(&self) -> bool {
        self.callback.is_some()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_of_any_time_has_a_line() {
        let time = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        let event = OutcomeEvent::Stuck { worker: None, elapsed: Duration::ZERO };
        let outcome = Outcome { time, id: 1, name: String::new(), event, message: String::new() };
        let line = outcome.to_json();
        assert!(line.contains(r#""time":"1970-01-01T00:00:00.000Z""#), "{line}");
    }
}
