//! The log itself: its settings, and where its records go.

use super::levels::{InForce, Levels};
use super::recent;
use super::record::{Component, Level, Record};
use super::writer::{Callback, LogStats, LogWriter, Settings};
use crate::error::{Error, Result};
use core::fmt;
use core::time::Duration;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// That of pools without one of their own.
static INSTALLED: OnceLock<Log> = OnceLock::new();

/// Settings of a [`Log`].
///
/// ```
/// use paceline::{Pool, log::Log};
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let log = Log::builder()
///     .levels("info,net=debug".parse()?)
///     .callback(|record| println!("{record}"))
///     .build()?;
/// let pool = Pool::builder().log(&log).build()?;
/// pool.shutdown(Duration::from_secs(1));
/// log.flush(Duration::from_secs(1))?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until `build`"]
#[derive(Default)]
pub struct LogBuilder {
    settings: Settings,
    levels: Levels,
    callback: Option<Callback>,
}

impl LogBuilder {
    /// Which records are made. Default: `info`, for all components.
    pub fn levels(mut self, levels: Levels) -> Self {
        self.levels = levels;
        self
    }

    /// Whether the `log` facade is told, under the target of each component ([`Component::target`]). Default:
    /// true.
    pub fn facade(mut self, facade: bool) -> Self {
        self.settings.facade = facade;
        self
    }

    /// Called for each record, on the log's thread, and dropped there after the last call. A panic in it is
    /// counted as an error. What it causes itself is not logged, or it might never end.
    pub fn callback(mut self, callback: impl FnMut(&Record) + Send + 'static) -> Self {
        self.callback = Some(Box::new(callback));
        self
    }

    /// Appends JSON lines to this file: [`Record::to_json`]. Default: no file.
    ///
    /// Several logs may write one file, in one process or in several: they take turns by a lock, and none cuts off or
    /// rotates away what another writes. If a symbolic link leads to the file, what it leads to is rotated. A character
    /// device, a pipe and what a link in `/proc` leads to, as `/dev/stdout`, are written and never rotated. A batch
    /// of lines begins on a line of its own, also behind a line that a killed process has left torn.
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

    /// How many records may wait to be told, 1 to 2^20, rounded up to a power of two. Default: 8192. What
    /// comes while so many wait is dropped, counted, and told by a record `log.dropped` with its `count`.
    pub fn capacity(mut self, records: usize) -> Self {
        self.settings.capacity = records;
        self
    }

    /// Starts the log: its thread is the only one, and is created here.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the setting, its value and the allowed range, also for a file that is a directory, a
    /// block device or a socket; [`Error::Os`] if the thread cannot be created, or the file cannot be opened.
    pub fn build(self) -> Result<Log> {
        let uses_facade = self.settings.facade;
        let writer = LogWriter::start(self.settings, self.callback)?;
        let levels = InForce::new(self.levels);
        Ok(Log { inner: Arc::new(Inner { levels, writer, uses_facade }) })
    }
}

impl fmt::Debug for LogBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogBuilder")
            .field("settings", &self.settings)
            .field("levels", &self.levels)
            .finish_non_exhaustive()
    }
}

/// A structured log, for [`Builder::log`](crate::Builder::log). Clones are the same one; when the last is
/// dropped, those of pools included, its thread tells what waits and ends. If there is a callback, that drop returns when
/// the callback has been dropped, unless it is on a thread of a pool or of the log. Without one a process that ends
/// does not wait for what is to be written: [`close`](Self::close) it before. In a forked child it does nothing. All
/// methods may be called by any thread.
///
/// ```
/// use paceline::Pool;
/// use paceline::log::{Level, Levels, Log};
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
///
/// # fn main() -> paceline::Result<()> {
/// let events = Arc::new(Mutex::new(vec![]));
/// let seen = events.clone();
/// let log = Log::builder()
///     .levels("info,net=debug".parse()?)
///     .callback(move |record| seen.lock().unwrap().push(record.event))
///     .build()?;
/// let pool = Pool::builder().threads(2).log(&log).build()?;
/// let _ = pool.shutdown(Duration::from_secs(1));
/// log.close(Duration::from_secs(10))?;
/// assert_eq!(*events.lock().unwrap(), ["pool.started", "pool.draining", "pool.stopped"]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Log {
    inner: Arc<Inner>,
}

struct Inner {
    levels: InForce,
    writer: LogWriter,
    uses_facade: bool,
}

impl Log {
    /// Settings to build a log from.
    pub fn builder() -> LogBuilder {
        LogBuilder::default()
    }

    /// Makes it the log of all pools that are built from now on without one of their own, for as long as the
    /// process lives: whoever writes the program may, libraries should not.
    ///
    /// # Errors
    /// [`Error::Full`] if there is one already.
    pub fn install(&self) -> Result<()> {
        let full = Error::Full { what: "places for the log of the process", capacity: 1 };
        INSTALLED.set(self.clone()).map_err(|_| full)
    }

    pub(super) fn installed() -> Option<&'static Self> {
        INSTALLED.get()
    }

    /// The levels that are in force.
    #[must_use]
    pub fn levels(&self) -> Levels {
        self.inner.levels.get()
    }

    /// Changes them, for what is told from now on.
    pub fn set_levels(&self, levels: Levels) {
        self.inner.levels.set(levels);
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> LogStats {
        self.inner.writer.stats()
    }

    /// Waits until everything that was told before has reached its sinks, the file included. It does not wait
    /// for the disk (fsync).
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::WouldDeadlock`] in its own callback; [`Error::Forked`].
    pub fn flush(&self, timeout: Duration) -> Result<()> {
        self.inner.writer.flush(timeout)
    }

    /// Turns all levels off and waits until everything that was told is written, the callback is dropped, and
    /// the thread ends. What somebody tells meanwhile is counted as dropped. Closing again only waits.
    ///
    /// # Errors
    /// As [`flush`](Self::flush); after [`Error::TimedOut`] the thread goes on until it is through.
    pub fn close(&self, timeout: Duration) -> Result<()> {
        self.inner.writer.check_may_wait()?;
        self.set_levels(Levels::OFF);
        self.inner.writer.close(timeout)
    }

    /// Why its file is not written just now.
    pub(crate) fn failure(&self) -> Option<String> {
        self.inner.writer.failure()
    }

    #[inline(always)]
    pub(super) fn is_on(&self, component: Component, level: Level) -> bool {
        self.inner.levels.has(component, level)
    }

    pub(super) fn uses_facade(&self) -> bool {
        self.inner.uses_facade
    }

    #[cold]
    #[inline(never)]
    pub(super) fn emit(
        &self,
        pool: &Arc<str>,
        component: Component,
        level: Level,
        event: &'static str,
        fill: &mut dyn FnMut(&mut Record),
    ) {
        if self.inner.writer.is_for_this_thread() {
            let mut record = Record::new(component, level, event, Arc::clone(pool));
            fill(&mut record);
            recent::note(&record);
            self.inner.writer.log(record);
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("levels", &self.levels())
            .field("facade", &self.inner.uses_facade)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
