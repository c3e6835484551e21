//! What a history is asked to be, and what it has done.

use crate::error::{Error, Result};
#[cfg(feature = "archive")]
use crate::hub::history::archive::{ArchiveOptions, Writer};
use crate::hub::history::limits::Limits;
use crate::hub::history::lines::{Lines, LinesOptions, Lost};
use crate::hub::history::log::{Alarm, Disk, Log, Shelf, Sink};
use crate::hub::history::pace::{Pace, WhenFull};
use crate::hub::keys::key::{Pattern, is_reserved};
use crate::hub::message::Stored;
use crate::hub::system::notice::{Burst, Listener, Loses, Notice, Severity};
use crate::log::{Component, Level, Logger};
use crate::pool::{Shared, Timer, promote_new_leader};
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::time::MAX_DELAY;
use core::time::Duration;
use serde_json::json;
use std::sync::{Arc, OnceLock, PoisonError, Weak};

/// What a hub keeps of the messages that a pattern matches; give it to
/// [`HubBuilder::history`](crate::hub::HubBuilder::history).
///
/// ```
/// use paceline::{Pool, hub::{Hub, history::{History, Limits, Query}}};
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let hub = Hub::builder(&pool).history(History::of("orders.>").keep(Limits::of_count(100))).build()?;
/// hub.publish("orders.eu", "order 1")?;
/// hub.publish("orders.us", "order 2")?;
/// let found = hub.query(&Query::of("orders.us"))?;
/// assert_eq!(found.len(), 1);
/// assert_eq!(found[0].payload(), b"order 2");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct History {
    pattern: String,
    keep: Limits,
    #[cfg(feature = "archive")]
    archive: Option<ArchiveOptions>,
    lines: Option<LinesOptions>,
    pace: Pace,
}

impl History {
    /// Of all keys that this pattern matches, in memory: the last 1024 messages.
    pub fn of(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            keep: Limits::of_count(1024),
            #[cfg(feature = "archive")]
            archive: None,
            lines: None,
            pace: Pace::default(),
        }
    }

    /// What is kept in memory. What waits to be committed is kept besides.
    pub fn keep(mut self, limits: Limits) -> Self {
        self.keep = limits;
        self
    }

    /// Keeps it on disk, too. The hub's sequences go on where the file ends; far behind it, if it was not closed,
    /// so that no number that anybody has seen comes again. It is closed by
    /// [`Hub::close_histories`](crate::hub::Hub::close_histories), or else when the hub is gone, which may be when the
    /// last handler of it has returned: who opens it again waits for that, or for the pool's end.
    #[cfg(feature = "archive")]
    pub fn archive(mut self, archive: ArchiveOptions) -> Self {
        self.archive = Some(archive);
        self
    }

    /// Writes it as lines of JSON, too. Lines are not read again by the hub; those that the disk refuses are
    /// lost and counted.
    pub fn lines(mut self, lines: LinesOptions) -> Self {
        self.lines = Some(lines);
        self
    }

    /// When what waits is committed: when it is so many messages (1 to 65536), and after `delay` (0 to an
    /// hour) in any case. Default: 1024 and 10 ms. A commit is made of as many.
    pub fn commit(mut self, messages: usize, delay: Duration) -> Self {
        self.pace.batch = messages as u64;
        self.pace.delay = delay;
        self
    }

    /// How many messages may wait to be committed, from as many as a commit takes to 2^32, and how many
    /// bytes, 1 MiB to 2^40. Default: 65536 and 64 MiB.
    pub fn waiting(mut self, messages: u64, bytes: usize) -> Self {
        self.pace.most = messages;
        self.pace.most_bytes = bytes;
        self
    }

    /// What happens when so many wait, because the disk is slow or full. Default: publishers make room,
    /// or wait for it for up to 10 seconds, and then their publication is refused; see [`WhenFull`].
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.pace.when_full = when_full;
        self
    }

    fn check(&self) -> Result<()> {
        let Pace { batch, delay, most, most_bytes, when_full, .. } = self.pace;
        self.keep.check("the history's limit")?;
        if !(1..=65_536).contains(&batch) {
            return Err(Error::invalid("the history's messages of a commit", batch, "1 to 65536"));
        }
        if delay > Duration::from_secs(3600) {
            let delay = format!("{delay:?}");
            return Err(Error::invalid("the history's delay of a commit", delay, "up to an hour"));
        }
        if !(batch..=1 << 32).contains(&most) {
            let allowed = format!("{batch} (those of a commit) to 4294967296");
            return Err(Error::invalid("the history's waiting messages", most, allowed));
        }
        if !(1 << 20..=1 << 40).contains(&most_bytes) {
            let allowed = "1048576 to 1099511627776";
            return Err(Error::invalid("the history's waiting bytes", most_bytes, allowed));
        }
        match when_full {
            WhenFull::Wait(longest) if longest > MAX_DELAY => {
                let longest = format!("{longest:?}");
                Err(Error::invalid("the history's longest wait", longest, "up to 100 years"))
            }
            _ => Ok(()),
        }
    }

    /// Opens what it has on disk.
    pub(in crate::hub) fn open(
        self,
        shared: &Arc<Shared>,
        hub: &Arc<OnceLock<Weak<dyn Listener>>>,
    ) -> Result<Kept> {
        let pattern = Pattern::new(&self.pattern)?;
        self.check()?;
        let (lines, lost) = self.lines.as_ref().map(LinesOptions::open).transpose()?.unzip();
        #[cfg(feature = "archive")]
        let (writer, shelf) = match &self.archive {
            None => (None, None),
            Some(archive) => {
                let (writer, reader) = archive.open()?;
                (Some(writer), Some(Box::new(reader) as Box<dyn Shelf>))
            }
        };
        #[cfg(feature = "archive")]
        let (next, first_sequence) =
            writer.as_ref().map_or((1, 1), |writer| (writer.next(), writer.first_sequence()));
        #[cfg(not(feature = "archive"))]
        let (shelf, next, first_sequence) = (None::<Box<dyn Shelf>>, 1, 1);
        #[cfg(feature = "archive")]
        let archive = writer.as_ref().map(|writer| writer.id);
        #[cfg(not(feature = "archive"))]
        let archive = None;
        let sinks = Sinks {
            #[cfg(feature = "archive")]
            archive: writer,
            lines,
        };
        let mut pace = self.pace;
        if is_reserved(pattern.as_str()) {
            // Notices have no publisher that could wait.
            pace.when_full = WhenFull::GiveUp;
        }
        let has_sink = lost.is_some() || shelf.is_some();
        let disk = has_sink.then(|| Disk { sink: Box::new(sinks), shelf });
        let health = Arc::new(Health {
            hub: Arc::clone(hub),
            pattern: pattern.clone(),
            is_failing: AtomicBool::new(false),
            log: OnceLock::new(),
            burst: Burst::default(),
            lost: lost.clone(),
            lost_told: AtomicU64::new(0),
        });
        let alarm = Box::new(OnPool(Arc::clone(shared), Arc::clone(&health)));
        let log = Log::new(self.keep, next, disk, alarm, pace);
        let _it_is_new = health.log.set(Arc::downgrade(&log));
        Ok(Kept { pattern, log, first_sequence, archive, lost, health })
    }
}

/// A history at work.
pub(in crate::hub) struct Kept {
    pub(super) pattern: Pattern,
    pub(super) log: Arc<Log>,
    /// What the hub's sequences begin with, for all that the history knows.
    pub(super) first_sequence: u64,
    /// The id of its archive.
    #[cfg_attr(not(feature = "nats"), expect(dead_code, reason = "spools ask for it"))]
    pub(super) archive: Option<u64>,
    lost: Option<Arc<Lost>>,
    health: Arc<Health>,
}

impl Kept {
    /// Tells the hub if commits have begun to fail, or to succeed again, or messages were given up.
    pub(super) fn tell_health(&self) {
        self.health.tell(&self.log);
    }

    /// The hub is gone, and what waits is on no disk.
    pub(super) fn log_loss(&self, log: &Logger, error: &Error) {
        let Notice { event, origin, .. } = self.health.notice(0);
        log.log(Component::History, Level::Error, event, |record| {
            let count = self.log.figures().waiting;
            record.with("origin", origin).with("pattern", self.pattern.as_str());
            record.with("count", count).say(format!("its last commit failed: {error}"));
        });
    }

    /// Why it is not written just now: its archive, or its lines.
    pub(super) fn failure(&self) -> Option<String> {
        let figures = self.log.figures();
        let of_lines =
            |lost: &Arc<Lost>| lost.now.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let of_archive = |error| format!("{error}; {} messages wait for the disk", figures.waiting);
        figures.last_error.map(of_archive).or_else(|| self.lost.as_ref().and_then(of_lines))
    }

    pub(super) fn stats(&self) -> HistoryStats {
        let figures = self.log.figures();
        let last_of_lines =
            |lost: &Arc<Lost>| lost.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        HistoryStats {
            pattern: self.pattern.as_str().into(),
            recorded: figures.recorded,
            in_memory: figures.in_memory,
            memory_bytes: figures.memory_bytes as u64,
            waiting: figures.waiting,
            commits: figures.commits,
            given_up: figures.given_up,
            errors: figures.errors,
            last_error: figures.last_error,
            read_errors: figures.read_errors,
            last_read_error: figures.last_read_error,
            durable: self.log.durable(),
            lines_lost: self.lost.as_ref().map_or(0, |lost| lost.lines.load(Relaxed)),
            last_error_of_lines: self.lost.as_ref().and_then(last_of_lines),
        }
    }
}

/// What a history has done since the hub was built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryStats {
    /// Of which keys.
    pub pattern: String,
    /// Messages that it took.
    pub recorded: u64,
    /// Those that are in memory.
    pub in_memory: u64,
    /// How many bytes those count for (see [`Limits::bytes`]).
    pub memory_bytes: u64,
    /// Those that wait to be committed.
    pub waiting: u64,
    /// Commits that were made.
    pub commits: u64,
    /// Messages that are on no disk and never will be: see [`WhenFull::GiveUp`], and without an archive those of
    /// `lines_lost`.
    pub given_up: u64,
    /// Commits that failed, to be tried again, and timers for them that the pool refused.
    pub errors: u64,
    /// The last of these; none again when a commit has been made.
    pub last_error: Option<String>,
    /// How often a replay could not read the archive. It tries again for a second, and then goes on with what
    /// is in memory; what it has lost is in its lag marks.
    pub read_errors: u64,
    /// The last of these.
    pub last_read_error: Option<String>,
    /// Every message of this run of the hub with a sequence up to this is in the archive. Messages that were given
    /// up are not, so it stays below the first of them. None: there is no archive.
    pub durable: Option<u64>,
    /// Lines that could not be written.
    pub lines_lost: u64,
    /// The reason for the last of them.
    pub last_error_of_lines: Option<String>,
}

/// Whether commits of a history fail, and how many messages it has given up, as its hub was told.
struct Health {
    hub: Arc<OnceLock<Weak<dyn Listener>>>,
    pattern: Pattern,
    is_failing: AtomicBool,
    log: OnceLock<Weak<Log>>,
    burst: Burst,
    lost: Option<Arc<Lost>>,
    /// Of the lost lines.
    lost_told: AtomicU64,
}

/// Of notices nothing is told: a notice causes none.
impl Loses for Health {
    fn burst(&self) -> &Burst {
        &self.burst
    }

    fn losses(&self) -> u64 {
        self.log.get().and_then(Weak::upgrade).map_or(0, |log| log.given_up())
    }

    fn notice(&self, count: u64) -> Notice {
        let pattern = self.pattern.as_str();
        Notice {
            event: "history.given_up",
            severity: Severity::Error,
            origin: format!("history {pattern}"),
            message: format!("{count} messages were given up: they are not on disk"),
            fields: json!({ "pattern": pattern, "count": count }),
        }
    }
}

impl Health {
    fn tell_losses(self: &Arc<Self>) {
        if let Some(hub) = self.hub.get().and_then(Weak::upgrade)
            && !is_reserved(self.pattern.as_str())
        {
            hub.lost(Arc::<Self>::clone(self));
        }
    }

    fn tell(self: &Arc<Self>, log: &Log) {
        let Some(hub) = self.hub.get().and_then(Weak::upgrade) else { return };
        self.tell_lost_lines(&*hub);
        let error = log.figures().last_error;
        // Relaxed: it stands for nothing else.
        if self.is_failing.swap(error.is_some(), Relaxed) == error.is_some() {
            return;
        }
        let pattern = self.pattern.as_str();
        let (event, severity, message, fields) = match error {
            Some(error) => {
                let fields = json!({ "pattern": pattern, "error": error });
                ("history.failed", Severity::Error, error, fields)
            }
            None => {
                let message = "it is written again".to_owned();
                ("history.recovered", Severity::Info, message, json!({ "pattern": pattern }))
            }
        };
        let origin = format!("history {pattern}");
        hub.tell(Notice { event, severity, origin, message, fields });
    }
}

impl Health {
    fn tell_lost_lines(&self, hub: &dyn Listener) {
        let Some(lost) = &self.lost else { return };
        let lines = lost.lines.load(Relaxed);
        let count = lines.saturating_sub(self.lost_told.fetch_max(lines, Relaxed));
        if count == 0 {
            return;
        }
        let pattern = self.pattern.as_str();
        hub.tell(Notice {
            event: "history.lines_lost",
            severity: Severity::Warning,
            origin: format!("history {pattern}"),
            message: lost
                .last
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
                .unwrap_or_default(),
            fields: json!({ "pattern": pattern, "count": count }),
        });
    }
}

/// Timers of the pool.
struct OnPool(Arc<Shared>, Arc<Health>);

impl Alarm for OnPool {
    fn gave_up(&self) {
        self.1.tell_losses();
    }

    fn set(&self, log: &Arc<Log>, delay: Duration, number: u64) -> Result<()> {
        let (log, health) = (Arc::downgrade(log), Arc::clone(&self.1));
        let commit = move || {
            if let Some(log) = log.upgrade() {
                promote_new_leader();
                log.commit_due(number);
                health.tell(&log);
            }
        };
        let set = Timer::after(&self.0, delay, commit, |_| ());
        set.map(drop).map_err(|(error, _)| error)
    }
}

/// The archive, and lines.
struct Sinks {
    #[cfg(feature = "archive")]
    archive: Option<Writer>,
    lines: Option<Lines>,
}

impl Sink for Sinks {
    /// What the archive has not taken comes again, so lines are written only after it has. What it has taken is on disk,
    /// whatever becomes of its lines.
    fn write(&mut self, first: u64, records: &[Stored], now: u64) -> Result<u64> {
        #[cfg(feature = "archive")]
        if let Some(archive) = &mut self.archive {
            archive.write(first, records, now)?;
            self.lines.as_mut().map_or(Ok(0), |lines| lines.write(first, records, now))?;
            return Ok(0);
        }
        self.lines.as_mut().map_or(Ok(0), |lines| lines.write(first, records, now))
    }

    fn close(self: Box<Self>) -> Result<()> {
        #[cfg(feature = "archive")]
        if let Some(archive) = self.archive {
            archive.end()?;
        }
        Ok(())
    }
}
