//! The log writer: a thread that writes the records that others hand over to the file, the callback and the facade.
//!
//! ```text
//!   any thread ──log──► queue ──► thread ──take──► sinks
//!                  └─ full: dropped, counted             └─ failed: counted
//! ```
//!
//! # Invariants
//!
//! 1. A thread that logs never waits: the [queue](crate::Queue) is lock-free, and what finds no room is dropped.
//! 2. Handed over = told + dropped, as soon as nothing waits.
//! 3. Every drop is reported once: after a batch, and at the end, the thread reports what the count has grown by.
//!    A drop that is counted while the thread has nothing more to take is in the report after the next batch.
//! 4. In a forked child there is no thread: nothing is handed over, and nothing is waited for.

use super::faults;
use super::record::{Component, Level, Record};
use crate::contain::contain;
use crate::error::{Error, Result};
use crate::queue::Queue;
use crate::rotate::{Lost, RotatingFile};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sys::fork::ForkGuard;
use crate::sys::thread::without_signals;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

/// What is taken before lines are written though more is waiting.
const BATCH: usize = 256;

/// What a log has done. What it was given = told + dropped, when nothing waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStats {
    /// What the log's thread has taken, whether or not all of its sinks took it.
    pub told: u64,
    /// What found no room.
    pub dropped: u64,
    /// Lines that could not be written, and callbacks that panicked.
    pub errors: u64,
    /// The last of these errors.
    pub last_error: Option<String>,
}

/// Where a log goes, and how much of it may wait.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) facade: bool,
    pub(super) file: Option<PathBuf>,
    pub(super) max_size: usize,
    pub(super) files: usize,
    pub(super) capacity: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { facade: true, file: None, max_size: 64 << 20, files: 4, capacity: 8192 }
    }
}

impl Settings {
    fn check(&self) -> Result<()> {
        let range = |name, value: usize, low: usize, high: usize| {
            let allowed = || Error::invalid(name, value, format!("{low} to {high}"));
            (low..=high).contains(&value).then_some(()).ok_or_else(allowed)
        };
        range("max_size", self.max_size, 1 << 10, 1 << 40)?;
        range("files", self.files, 1, 1000)?;
        range("capacity", self.capacity, 1, 1 << 20)
    }
}

/// Called by the thread for each record, and dropped there.
pub(super) type Callback = Box<dyn FnMut(&Record) + Send>;

enum Item {
    Record(Record),
    Flush(SyncSender<()>),
}

#[derive(Default)]
struct Counters {
    told: AtomicU64,
    dropped: AtomicU64,
    errors: AtomicU64,
    last_error: Mutex<Option<String>>,
    /// Why the last lines were not written. None: they were.
    failure: Mutex<Option<String>>,
    /// The thread has ended.
    ended: Mutex<bool>,
    end: Condvar,
}

impl Counters {
    fn error(&self, count: u64, error: String) {
        // Not by the log itself, which might fail again.
        faults::log(Component::Log, Level::Warn, "log.failed", "", &mut |record| {
            record.say(error.as_str());
        });
        *lock(&self.last_error) = Some(error);
        self.errors.fetch_add(count, Relaxed);
    }

    fn check(&self, written: core::result::Result<(), Lost>) {
        if let Err(lost) = written {
            self.error(lost.lines, lost.error.to_string());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The side of the threads that log. When it is dropped, the thread writes what waits and ends. If there is a callback, that is
/// waited for, but not by the thread itself, nor by a thread of a pool.
pub(super) struct LogWriter {
    queue: Arc<Queue<Item>>,
    counters: Arc<Counters>,
    thread: ThreadId,
    calls_back: bool,
    fork: ForkGuard,
}

impl LogWriter {
    pub(super) fn start(settings: Settings, callback: Option<Callback>) -> Result<Self> {
        settings.check()?;
        let fork = ForkGuard::new()
            .map_err(|error| Error::os("map a page that tells of a fork", error))?;
        let queue = Arc::new(Queue::new(settings.capacity)?);
        let counters = Arc::new(Counters::default());
        let Settings { facade, max_size, files, .. } = settings;
        let file = settings.file.map(|path| RotatingFile::new(path, max_size as u64, files));
        let file = file.transpose()?;
        let (items, counts) = (Arc::clone(&queue), Arc::clone(&counters));
        let calls_back = callback.is_some();
        let output = Output { facade, file, callback, counters: counts, reported: 0 };
        let thread = thread::Builder::new().name("paceline-log".into());
        let spawned = without_signals(|| thread.spawn(move || output.run(&items)));
        let thread = spawned.map_err(|error| Error::os("start the thread of the log", error))?;
        Ok(Self { queue, counters, thread: thread.thread().id(), calls_back, fork })
    }

    /// Whether what this thread logs would be written: not in a forked child, and not by the log's own thread,
    /// where a sink's own doings would never end.
    pub(super) fn is_for_this_thread(&self) -> bool {
        !self.fork.is_child() && !self.is_own()
    }

    pub(super) fn log(&self, record: Record) {
        if self.queue.push(Item::Record(record)).is_err() {
            self.counters.dropped.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn stats(&self) -> LogStats {
        LogStats {
            told: self.counters.told.load(Relaxed),
            dropped: self.counters.dropped.load(Relaxed),
            errors: self.counters.errors.load(Relaxed),
            last_error: lock(&self.counters.last_error).clone(),
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        lock(&self.counters.failure).clone()
    }

    pub(super) fn flush(&self, timeout: Duration) -> Result<()> {
        self.check_may_wait()?;
        let start = Instant::now();
        let left = || timeout.saturating_sub(start.elapsed());
        let (done, told) = sync_channel(1);
        match self.queue.push_timeout(Item::Flush(done), timeout) {
            Ok(()) => told.recv_timeout(left()).map_err(|_| Error::TimedOut),
            // What was told before it was closed is waited for.
            Err(full) if full.is_closed() => self.wait_for_end(left()),
            Err(_) => Err(Error::TimedOut),
        }
    }

    /// Takes nothing more, and waits until everything is told and the thread has let go of its sinks. Only for
    /// who may wait.
    pub(super) fn close(&self, timeout: Duration) -> Result<()> {
        self.queue.close();
        self.wait_for_end(timeout)
    }

    fn wait_for_end(&self, timeout: Duration) -> Result<()> {
        let ended = lock(&self.counters.ended);
        let waited = self.counters.end.wait_timeout_while(ended, timeout, |ended| !*ended);
        let (ended, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *ended { Ok(()) } else { Err(Error::TimedOut) }
    }

    fn is_own(&self) -> bool {
        thread::current().id() == self.thread
    }

    /// Not a forked child, which has no such thread, nor the thread itself.
    pub(super) fn check_may_wait(&self) -> Result<()> {
        match () {
            () if self.fork.is_child() => Err(Error::Forked),
            () if self.is_own() => Err(Error::WouldDeadlock),
            () => Ok(()),
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        if self.fork.is_child() {
            return;
        }
        self.queue.close();
        let is_own = thread::current().id() == self.thread;
        if self.calls_back && !is_own && !crate::thread_state::is_member() {
            let ended = lock(&self.counters.ended);
            let wait = self.counters.end.wait_while(ended, |ended| !*ended);
            drop(wait.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// What the thread has.
struct Output {
    facade: bool,
    file: Option<RotatingFile>,
    callback: Option<Callback>,
    counters: Arc<Counters>,
    /// Of what was dropped.
    reported: u64,
}

impl Output {
    fn run(mut self, queue: &Queue<Item>) {
        // None: closed, and empty.
        while let Some(first) = queue.pop_timeout(Duration::MAX) {
            let mut flushed = Vec::new();
            let more = core::iter::from_fn(|| queue.pop()).take(BATCH - 1);
            for item in core::iter::once(first).chain(more) {
                match item {
                    Item::Record(record) => {
                        self.write(&record);
                        self.counters.told.fetch_add(1, Relaxed);
                    }
                    Item::Flush(done) => flushed.push(done),
                }
            }
            self.report_losses();
            self.write_out();
            for done in flushed {
                let _nobody_waits_any_more = done.try_send(());
            }
        }
        self.report_losses();
        self.write_out();
        let Self { callback, file, counters, .. } = self;
        let _panicked = contain(|| drop((callback, file)));
        *lock(&counters.ended) = true;
        counters.end.notify_all();
    }

    fn write(&mut self, record: &Record) {
        let Self { facade, file, callback, counters, .. } = self;
        if let Some(file) = file {
            let mut line = record.line();
            line.push(b'\n');
            counters.check(file.add(&line));
        }
        let told = contain(|| {
            if *facade {
                log::log!(target: record.component.target(), record.level.facade(), "{record}");
            }
            if let Some(callback) = callback {
                callback(record);
            }
        });
        if told.is_none() {
            counters.error(1, "a callback panicked".into());
        }
    }

    fn report_losses(&mut self) {
        let dropped = self.counters.dropped.load(Relaxed);
        let new = dropped - core::mem::replace(&mut self.reported, dropped);
        if new > 0 {
            let mut loss = Record::new(Component::Log, Level::Warn, "log.dropped", "".into());
            loss.with("count", new).say("records found no room and were dropped");
            self.write(&loss);
        }
    }

    fn write_out(&mut self) {
        if let Some(file) = &mut self.file {
            self.counters.check(file.write_out());
            *lock(&self.counters.failure) = file.failure().map(str::to_owned);
        }
    }
}
