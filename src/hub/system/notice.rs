//! The hub's own events: notices under `$SYS.`, and the errors that stay to be asked for.
//!
//! # The way of a notice
//!
//! ```text
//!                    ┌─► errors (from warnings up; bounded, the oldest is forgotten)
//!   who finds out ───┤
//!                    └─► queue (bounded) ─► ready list ─► a service ─publish─► $SYS.…
//! ```
//!
//! | the queue is | it is on the ready list | `listed` |
//! |---|---|---|
//! | IDLE: nothing waits | no | false |
//! | LISTED: something waits | yes, or a service is at it | true |
//!
//! ```text
//!           push                      next finds nothing
//!   IDLE ─────────► LISTED ───────────────────────────────► IDLE
//! ```
//!
//! # Bursts
//!
//! What may happen a million times a second is told once, and then by its number: the first loss opens a
//! *burst*, which is told at once. While it is open losses are counted only. A timer tells after each
//! interval how many there were, and closes the burst when there were none.
//!
//! ```text
//!           a loss: told with its count              the timer finds nothing new
//!   CLOSED ─────────────────────────────► OPEN ──────────────────────────────────► CLOSED
//!                                          ▲ │ the timer finds more: told with their count
//!                                          └─┘
//! ```
//!
//! # Invariants
//!
//! 1. Whoever finds out does nothing but put a notice into the queue, under a lock that nothing else is taken
//!    under. Subscribers are called by a service, which holds no lock. So it may be told from anywhere.
//! 2. What waits is on the ready list, or a service is at it. (`listed`, under the queue's lock)
//! 3. A notice causes none: nothing is told of subscriptions to the hub's own keys, and of no others can a
//!    notice come. They have no part in bursts either.
//! 4. Notices = told + lost + waiting. What was lost is in the next one that is told.
//! 5. A loss is told, or its burst is open and a timer will look: the loser counts and then looks whether the
//!    burst is open; the timer closes it and then looks at the count.
//!
//! # Orderings
//!
//! Invariant 5 is a race of the kind store, then load; both sides have the barrier in between. The number
//! that was told is written by whoever opened the burst, and by the timer after that.

use crate::hub::message::Payload;
use crate::log::{Component, Level, Logger, Value as Logged};
use crate::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use crate::sync::{Mutex, MutexGuard, store_load_barrier};
use core::fmt;
use core::time::Duration;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, Weak};
use std::time::SystemTime;

/// More notices than this do not wait.
const MOST_WAITING: usize = 4096;
/// Notices of one turn, before others on the ready list have theirs.
pub(in crate::hub) const TURN: usize = 64;
/// The most errors that a hub can keep.
const MAX_ERRORS: usize = 1_000_000;
/// What may happen at any time, and is no news for a log.
pub(in crate::hub) const DAILY: [&str; 2] = ["subscription.started", "subscription.ended"];
/// What the keys of notices begin with.
pub(in crate::hub) const PREFIX: &str = "$SYS.";

/// How bad something is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Severity {
    /// It is as it should be.
    Info,
    /// Something was lost or put right, as was asked for.
    Warning,
    /// Something does not work any more.
    Error,
}

impl Severity {
    /// In small letters, as notices have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something that went wrong in a hub, as [`Hub::errors`](crate::hub::Hub::errors) keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ErrorRecord {
    /// Its number: 1 for the hub's first.
    pub number: u64,
    /// When, by the clock of the system.
    pub time: SystemTime,
    /// How bad: [`Severity::Warning`] or worse.
    pub severity: Severity,
    /// What happened: the key of its notice without `$SYS.`.
    pub event: &'static str,
    /// Where: `subscription 7 (orders.>)`, say.
    pub origin: String,
    /// What there is to say.
    pub message: String,
}

/// Which errors: those that all of its conditions hold for. Default: all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ErrorFilter {
    severity: Option<Severity>,
    event: Option<String>,
    origin: Option<String>,
    since: Option<SystemTime>,
    after: u64,
    pub(in crate::hub) limit: Option<usize>,
}

impl ErrorFilter {
    /// All.
    pub fn all() -> Self {
        Self::default()
    }

    /// That are this bad, or worse.
    #[must_use]
    pub fn at_least(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    /// Of events whose names begin so: `subscription.overflow`, or `history.`.
    #[must_use]
    pub fn event(mut self, prefix: &str) -> Self {
        self.event = Some(prefix.into());
        self
    }

    /// Whose origins begin so: `publisher`, or `subscription 7 `.
    #[must_use]
    pub fn origin(mut self, prefix: &str) -> Self {
        self.origin = Some(prefix.into());
        self
    }

    /// Of this time or later.
    #[must_use]
    pub fn since(mut self, time: SystemTime) -> Self {
        self.since = Some(time);
        self
    }

    /// With greater numbers than this.
    #[must_use]
    pub fn after(mut self, number: u64) -> Self {
        self.after = number;
        self
    }

    /// At most so many, the latest.
    #[must_use]
    pub fn limit(mut self, most: usize) -> Self {
        self.limit = Some(most);
        self
    }

    pub(in crate::hub) fn passes(&self, error: &ErrorRecord) -> bool {
        let begins = |wanted: &Option<String>, text: &str| {
            wanted.as_ref().is_none_or(|prefix| text.starts_with(prefix))
        };
        error.number > self.after
            && self.severity.is_none_or(|severity| error.severity >= severity)
            && begins(&self.event, error.event)
            && begins(&self.origin, &error.origin)
            && self.since.is_none_or(|time| error.time >= time)
    }
}

/// What a hub has told of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct NoticeStats {
    /// Notices that were published.
    pub told: u64,
    /// Notices that were not, because too many waited.
    pub lost: u64,
    /// Errors that were recorded.
    pub errors: u64,
    /// Of these, those that were forgotten for newer ones.
    pub forgotten: u64,
}

/// One event.
#[derive(Debug)]
pub(in crate::hub) struct Notice {
    pub(in crate::hub) event: &'static str,
    pub(in crate::hub) severity: Severity,
    pub(in crate::hub) origin: String,
    pub(in crate::hub) message: String,
    /// What belongs to the event: an object.
    pub(in crate::hub) fields: Value,
}

impl Notice {
    /// By the log of the pool. That somebody subscribes, or does not any more, is not news there.
    pub(in crate::hub) fn log(&self, log: &Logger, heard: bool) {
        let level = match self.severity {
            Severity::Error => Level::Error,
            Severity::Warning => Level::Warn,
            Severity::Info if DAILY.contains(&self.event) => Level::Debug,
            Severity::Info => Level::Info,
        };
        let is_of_history = self.event.starts_with("history.");
        let component = if is_of_history { Component::History } else { Component::Hub };
        log.log_unless(heard, component, level, self.event, |record| {
            record.with("origin", self.origin.as_str());
            for (name, value) in self.fields.as_object().into_iter().flatten() {
                record.with(name.clone(), as_logged(value));
            }
            record.say(self.message.as_str());
        });
    }

    pub(in crate::hub) fn payload(self, time: u64, lost: u64) -> Payload {
        let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(time);
        let mut object = match self.fields {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        let mut put = |name: &str, value: Value| object.insert(name.into(), value);
        put("event", self.event.into());
        put("severity", self.severity.name().into());
        put("origin", self.origin.into());
        put("message", self.message.into());
        put("time", humantime::format_rfc3339_millis(time).to_string().into());
        put("lost", lost.into());
        Value::Object(object).to_string().into()
    }
}

fn as_logged(value: &Value) -> Logged {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(number), ..) => number.into(),
            (_, Some(number), _) => number.into(),
            (.., number) => number.unwrap_or(f64::NAN).into(),
        },
        other => other.to_string().into(),
    }
}

/// A bounded queue that is on a list while something is in it. See the head of the file.
pub(in crate::hub) struct Queue<T> {
    waiting: VecDeque<T>,
    most: usize,
    listed: bool,
    lost: u64,
    lost_before_next: u64,
    told: u64,
}

impl<T> Queue<T> {
    pub(in crate::hub) fn new(most: usize) -> Self {
        let waiting = VecDeque::new();
        Self { waiting, most, listed: false, lost: 0, lost_before_next: 0, told: 0 }
    }

    /// True: the caller puts the queue on the ready list.
    pub(in crate::hub) fn push(&mut self, one: T) -> bool {
        if self.waiting.len() >= self.most {
            self.lost += 1;
            self.lost_before_next += 1;
            return false;
        }
        self.waiting.push_back(one);
        !core::mem::replace(&mut self.listed, true)
    }

    /// The next one, and how many were lost before it was taken. None: the queue is off the list.
    pub(in crate::hub) fn next(&mut self) -> Option<(T, u64)> {
        let next = self.waiting.pop_front();
        match next {
            Some(next) => {
                self.told += 1;
                Some((next, core::mem::take(&mut self.lost_before_next)))
            }
            None => {
                self.listed = false;
                None
            }
        }
    }
}

/// Whether losses of one kind are being counted, and how many have been told.
#[derive(Debug, Default)]
pub(in crate::hub) struct Burst {
    open: AtomicBool,
    told: AtomicU64,
}

impl Burst {
    /// Something was lost, and counted. True: the caller has opened the burst.
    #[inline]
    pub(in crate::hub) fn open(&self) -> bool {
        // Against *close, then look at the count* in `close`.
        store_load_barrier();
        !self.open.load(Relaxed) && !self.open.swap(true, AcqRel)
    }

    /// How many of these were not told; by whoever has opened the burst, or by the timer.
    pub(in crate::hub) fn untold(&self, lost: u64) -> u64 {
        let told = self.told.load(Relaxed);
        self.told.store(lost.max(told), Relaxed);
        lost.saturating_sub(told)
    }

    /// Closes it. Something may have been lost meanwhile by who has seen it open: how many that are not told,
    /// if it is open again by this.
    pub(in crate::hub) fn close(&self, lost: impl FnOnce() -> u64) -> u64 {
        self.open.store(false, Release);
        // Against *count, then look whether it is open* in `open`.
        store_load_barrier();
        match lost() > self.told.load(Relaxed) && !self.open.swap(true, AcqRel) {
            true => 1,
            false => 0,
        }
    }
}

/// A hub, as a part of it that is below sees it: it is told what has happened there.
pub(in crate::hub) trait Listener: Send + Sync {
    fn tell(&self, notice: Notice);
    /// Something was lost: the number is told now, or after a while.
    fn lost(&self, loser: Arc<dyn Loses>);
}

/// What loses messages in bursts.
pub(in crate::hub) trait Loses: Send + Sync {
    fn burst(&self) -> &Burst;
    /// All losses so far.
    fn losses(&self) -> u64;
    /// Whether more may come.
    fn is_over(&self) -> bool {
        false
    }
    /// So many more were lost.
    fn notice(&self, count: u64) -> Notice;
}

/// The bursts that are open.
#[derive(Default)]
pub(in crate::hub) struct Bursts {
    pub(in crate::hub) open: Vec<Weak<dyn Loses>>,
    /// A timer is on its way.
    pub(in crate::hub) armed: bool,
}

/// See the head of the file.
pub(in crate::hub) struct Notices {
    /// Subscriptions to the hub's own keys.
    pub(in crate::hub) heard: AtomicU32,
    pub(in crate::hub) queue: Mutex<Queue<(Notice, u64)>>,
    pub(in crate::hub) bursts: Mutex<Bursts>,
    pub(in crate::hub) interval: Duration,
    pub(in crate::hub) errors: Mutex<Errors>,
}

pub(in crate::hub) struct Errors {
    pub(in crate::hub) list: VecDeque<ErrorRecord>,
    pub(in crate::hub) most: usize,
    pub(in crate::hub) recorded: u64,
}

/// Settings of what a hub tells of itself.
#[derive(Clone, Copy, Debug)]
pub(in crate::hub) struct Settings {
    pub(in crate::hub) errors: usize,
    pub(in crate::hub) interval: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { errors: 1024, interval: Duration::from_secs(1) }
    }
}

impl Notices {
    pub(in crate::hub) fn new(settings: Settings) -> crate::Result<Self> {
        let Settings { errors: most, interval } = settings;
        if most > MAX_ERRORS {
            return Err(crate::Error::invalid("errors", most, format!("up to {MAX_ERRORS}")));
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(3600)).contains(&interval) {
            let interval = format!("{interval:?}");
            return Err(crate::Error::invalid("notice_interval", interval, "1 ms to 1 hour"));
        }
        Ok(Self {
            heard: AtomicU32::new(0),
            queue: Mutex::new(Queue::new(MOST_WAITING)),
            bursts: Mutex::default(),
            interval,
            errors: Mutex::new(Errors { list: VecDeque::new(), most, recorded: 0 }),
        })
    }

    /// A subscription begins.
    pub(in crate::hub) fn listen(&self, pattern: &str) {
        if pattern.starts_with(PREFIX) {
            self.heard.fetch_add(1, Relaxed);
        }
    }

    /// One has ended.
    pub(in crate::hub) fn unlisten(&self, pattern: &str) {
        if pattern.starts_with(PREFIX) {
            self.heard.fetch_sub(1, Relaxed);
        }
    }

    pub(in crate::hub) fn stats(&self) -> NoticeStats {
        let queue = lock(&self.queue);
        let (told, lost) = (queue.told, queue.lost);
        drop(queue);
        let errors = lock(&self.errors);
        let forgotten = errors.recorded - errors.list.len() as u64;
        NoticeStats { told, lost, errors: errors.recorded, forgotten }
    }

    pub(in crate::hub) fn record(&self, notice: &Notice, time: u64) {
        let mut errors = lock(&self.errors);
        errors.recorded += 1;
        let record = ErrorRecord {
            number: errors.recorded,
            time: SystemTime::UNIX_EPOCH + Duration::from_nanos(time),
            severity: notice.severity,
            event: notice.event,
            origin: notice.origin.clone(),
            message: notice.message.clone(),
        };
        if errors.most == 0 {
            return;
        }
        let full = errors.list.len() >= errors.most;
        let forgotten = if full { errors.list.pop_front() } else { None };
        errors.list.push_back(record);
        drop(errors);
        drop(forgotten);
    }
}

pub(in crate::hub) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(loom)))]
mod tests {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | losses in a burst | the timer closes a burst without a second look | a loss is told by nobody |

    use super::*;

    #[test]
    fn a_queue_is_listed_once_and_counts_what_finds_no_room() {
        let mut queue = Queue::new(2);
        assert_eq!([1, 2, 3, 4].map(|n| queue.push(n)), [true, false, false, false]);
        assert_eq!(queue.next(), Some((1, 2)), "two were lost before it was taken");
        assert!(!queue.push(5), "it is listed still");
        assert_eq!([queue.next(), queue.next()], [Some((2, 0)), Some((5, 0))]);
        assert_eq!((queue.next(), queue.told, queue.lost), (None, 3, 2));
        assert!(queue.push(6), "it had left the list");
    }

    #[test]
    fn a_burst_is_opened_once_and_its_losses_are_told_once() {
        let burst = Burst::default();
        assert!(burst.open() && !burst.open());
        assert_eq!((burst.untold(1), burst.untold(4), burst.untold(4)), (1, 3, 0));
        assert_eq!(burst.close(|| 5), 1, "one was lost while it was open: it is open again");
        assert!(!burst.open());
        assert_eq!((burst.untold(5), burst.close(|| 5)), (1, 0));
        assert!(burst.open(), "it was closed");
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let refused = |errors, interval| {
            let refused = Notices::new(Settings { errors, interval });
            refused.err().map(|error| error.to_string())
        };
        let second = Duration::from_secs(1);
        assert_eq!(
            refused(1_000_001, second).as_deref(),
            Some("errors is 1000001, but must be up to 1000000")
        );
        assert_eq!(
            refused(0, Duration::ZERO).as_deref(),
            Some("notice_interval is 0ns, but must be 1 ms to 1 hour")
        );
        assert_eq!(refused(1_000_000, Duration::from_millis(1)), None);
    }
}
