//! The log of outcomes: what became of each task, told by a thread of its own.
//!
//! Workers hand a copy of what they know to a bounded queue and go on. The log's thread takes it from
//! there to the `log` facade, to a callback, and to a file of JSON lines that is rotated by size. So a slow
//! disk holds up nobody, and a full one is a count: what could not be queued or written is in
//! [`OutcomeLogStats`].

use crate::error::{Error, Result};
use crate::pool::contain;
use crate::rotate::{Lost, RotatingFile};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sys::thread::without_signals;
use crate::task::{EndRecord, Observer, Status, StuckRecord};
use core::fmt;
use core::time::Duration;
use serde_json::json;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Instant, SystemTime};

/// The target of records of the `log` facade.
pub const LOG_TARGET: &str = "paceline::task";

/// Lines that are written at once while more are waiting.
const BATCH: usize = 256;

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
        line["time"] = humantime::format_rfc3339_millis(self.time).to_string().into();
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
pub struct OutcomeLogBuilder {
    facade: bool,
    callback: Option<Callback>,
    file: Option<PathBuf>,
    max_size: usize,
    files: usize,
    capacity: usize,
}

impl OutcomeLogBuilder {
    /// Whether the `log` facade is told, under the target [`LOG_TARGET`]: completed tasks as debug, retries
    /// and cancellations as info, the rest as warnings. Default: true.
    pub fn facade(mut self, facade: bool) -> Self {
        self.facade = facade;
        self
    }

    /// Called for each outcome, on the log's thread. A panic in it is counted as an error.
    pub fn callback(mut self, callback: impl FnMut(&Outcome) + Send + 'static) -> Self {
        self.callback = Some(Box::new(callback));
        self
    }

    /// Appends JSON lines to this file. Default: no file.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = Some(path.into());
        self
    }

    /// How large the file may become, 1 KiB to 1 TiB; then it is renamed to `path.1`, that to `path.2`, and
    /// so on. Default: 64 MiB. A line that is longer gets a file for itself.
    pub fn max_size(mut self, bytes: usize) -> Self {
        self.max_size = bytes;
        self
    }

    /// How many files are kept, the one that is written included: 1 to 1000. Default: 4.
    pub fn files(mut self, files: usize) -> Self {
        self.files = files;
        self
    }

    /// How many outcomes may wait to be told, 1 to 2^20. Default: 8192. What comes while so many wait is
    /// dropped, and counted.
    pub fn capacity(mut self, outcomes: usize) -> Self {
        self.capacity = outcomes;
        self
    }

    /// Starts the log: its thread is the only one, and is created here.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the setting, its value and the allowed range; [`Error::Os`] if the thread
    /// cannot be created. That the file cannot be opened is no error: it is tried again for each batch.
    pub fn build(self) -> Result<Arc<OutcomeLog>> {
        let range = |name, value: usize, low: usize, high: usize| {
            let allowed = || Error::invalid(name, value, format!("{low} to {high}"));
            (low..=high).contains(&value).then_some(()).ok_or_else(allowed)
        };
        range("max_size", self.max_size, 1 << 10, 1 << 40)?;
        range("files", self.files, 1, 1000)?;
        range("capacity", self.capacity, 1, 1 << 20)?;
        let (sender, receiver) = sync_channel(self.capacity);
        let counts = Arc::new(Counts::default());
        let file = self.file.map(|path| RotatingFile::new(path, self.max_size as u64, self.files));
        let teller = Teller {
            facade: self.facade,
            callback: self.callback,
            file,
            counts: Arc::clone(&counts),
        };
        let thread = thread::Builder::new().name("paceline-log".into());
        let spawned = without_signals(|| thread.spawn(move || teller.run(&receiver)));
        let thread = spawned.map_err(|error| Error::os("start the thread of the log", error))?;
        Ok(Arc::new(OutcomeLog { sender, counts, thread: thread.thread().id() }))
    }
}

impl fmt::Debug for OutcomeLogBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutcomeLogBuilder")
            .field("facade", &self.facade)
            .field("file", &self.file)
            .field("max_size", &self.max_size)
            .field("files", &self.files)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

enum Message {
    Told(Outcome),
    Flush(SyncSender<()>),
}

#[derive(Default)]
struct Counts {
    told: AtomicU64,
    dropped: AtomicU64,
    errors: AtomicU64,
    last_error: Mutex<Option<String>>,
}

/// What a log has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutcomeLogStats {
    /// Outcomes that the log's thread has taken, whether or not all of its sinks took them.
    pub told: u64,
    /// Outcomes that found no room.
    pub dropped: u64,
    /// Lines that could not be written, and callbacks that panicked.
    pub errors: u64,
    /// The last of these errors.
    pub last_error: Option<String>,
}

/// A log of outcomes; give it to [`WorkerPoolBuilder::observe`](crate::task::WorkerPoolBuilder::observe).
/// When the last worker pool that uses it is gone, and it is dropped, its thread tells what waits and ends.
pub struct OutcomeLog {
    sender: SyncSender<Message>,
    counts: Arc<Counts>,
    thread: ThreadId,
}

impl OutcomeLog {
    /// Settings to build a log from.
    pub fn builder() -> OutcomeLogBuilder {
        OutcomeLogBuilder {
            facade: true,
            callback: None,
            file: None,
            max_size: 64 << 20,
            files: 4,
            capacity: 8192,
        }
    }

    /// What it has done so far. Any thread.
    pub fn stats(&self) -> OutcomeLogStats {
        let last_error = self.counts.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        OutcomeLogStats {
            told: self.counts.told.load(Relaxed),
            dropped: self.counts.dropped.load(Relaxed),
            errors: self.counts.errors.load(Relaxed),
            last_error: last_error.clone(),
        }
    }

    /// Waits until everything that was observed before is told and written.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::WouldDeadlock`] in its own callback.
    pub fn flush(&self, timeout: Duration) -> Result<()> {
        if thread::current().id() == self.thread {
            return Err(Error::WouldDeadlock);
        }
        let start = Instant::now();
        let left = || timeout.checked_sub(start.elapsed()).ok_or(Error::TimedOut);
        let (done, told) = sync_channel(1);
        while let Err(error) = self.sender.try_send(Message::Flush(done.clone())) {
            match error {
                TrySendError::Full(_) => thread::sleep(left()?.min(Duration::from_millis(1))),
                TrySendError::Disconnected(_) => return Err(Error::ShutDown),
            }
        }
        told.recv_timeout(left()?).map_err(|_| Error::TimedOut)
    }

    fn hand_over(&self, id: u64, name: &str, event: OutcomeEvent, message: &str) {
        let (time, name, message) = (SystemTime::now(), name.to_owned(), message.to_owned());
        let outcome = Outcome { time, id, name, event, message };
        if self.sender.try_send(Message::Told(outcome)).is_err() {
            self.counts.dropped.fetch_add(1, Relaxed);
        }
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

/// What the log's thread has.
struct Teller {
    facade: bool,
    callback: Option<Callback>,
    file: Option<RotatingFile>,
    counts: Arc<Counts>,
}

impl Teller {
    fn run(mut self, receiver: &Receiver<Message>) {
        while let Ok(first) = receiver.recv() {
            let mut flushed = Vec::new();
            let more = receiver.try_iter().take(BATCH - 1);
            for message in core::iter::once(first).chain(more) {
                match message {
                    Message::Told(outcome) => self.tell(&outcome),
                    Message::Flush(done) => flushed.push(done),
                }
            }
            self.write_out();
            for done in flushed {
                let _nobody_waits_any_more = done.try_send(());
            }
        }
    }

    fn tell(&mut self, outcome: &Outcome) {
        if let Some(file) = &mut self.file {
            let line = outcome.to_json() + "\n";
            let written = file.add(line.as_bytes());
            self.check(written);
        }
        let (facade, callback) = (self.facade, &mut self.callback);
        let told = contain(|| {
            if facade {
                log::log!(target: LOG_TARGET, outcome.level(), "{outcome}");
            }
            if let Some(callback) = callback {
                callback(outcome);
            }
        });
        if told.is_none() {
            self.error(1, "a callback panicked".into());
        }
        self.counts.told.fetch_add(1, Relaxed);
    }

    fn write_out(&mut self) {
        if let Some(file) = &mut self.file {
            let written = file.write_out();
            self.check(written);
        }
    }

    fn check(&self, written: core::result::Result<(), Lost>) {
        if let Err(lost) = written {
            self.error(lost.lines, lost.error.to_string());
        }
    }

    fn error(&self, count: u64, error: String) {
        *self.counts.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.counts.errors.fetch_add(count, Relaxed);
    }
}
