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

use super::care::Who;
use super::dead::DeadLetters;
use super::key::is_reserved;
use super::mailbox::Phase;
use super::message::Payload;
use super::publish::Terms;
use super::subscribe::Subscriber;
use super::{Core, Hub, HubBuilder, Work};
use crate::log::{Component, Level, Logger, Value as Logged};
use crate::pool::Timer;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use crate::sync::{Mutex, MutexGuard, store_load_barrier};
use crate::sys::clock;
use core::fmt;
use core::time::Duration;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, Weak};
use std::time::SystemTime;

/// More notices than this do not wait.
const MOST_WAITING: usize = 4096;
/// Notices of one turn, before others on the ready list have theirs.
const TURN: usize = 64;
/// The most errors that a hub can keep.
const MAX_ERRORS: usize = 1_000_000;
/// What may happen at any time, and is no news for a log.
const DAILY: [&str; 2] = ["subscription.started", "subscription.ended"];
/// What the keys of notices begin with.
const PREFIX: &str = "$SYS.";

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

/// Something that went wrong in a hub, as [`Hub::errors`] keeps it.
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
    limit: Option<usize>,
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

    fn passes(&self, error: &ErrorRecord) -> bool {
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
pub(super) struct Notice {
    pub(super) event: &'static str,
    pub(super) severity: Severity,
    pub(super) origin: String,
    pub(super) message: String,
    /// What belongs to the event: an object.
    pub(super) fields: Value,
}

impl Notice {
    /// By the log of the pool. That somebody subscribes, or does not any more, is not news there.
    fn log(&self, log: &Logger, heard: bool) {
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

    fn payload(self, time: u64, lost: u64) -> Payload {
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
pub(super) struct Queue<T> {
    waiting: VecDeque<T>,
    most: usize,
    listed: bool,
    lost: u64,
    lost_before_next: u64,
    told: u64,
}

impl<T> Queue<T> {
    pub(super) fn new(most: usize) -> Self {
        let waiting = VecDeque::new();
        Self { waiting, most, listed: false, lost: 0, lost_before_next: 0, told: 0 }
    }

    /// True: the caller puts the queue on the ready list.
    pub(super) fn push(&mut self, one: T) -> bool {
        if self.waiting.len() >= self.most {
            self.lost += 1;
            self.lost_before_next += 1;
            return false;
        }
        self.waiting.push_back(one);
        !core::mem::replace(&mut self.listed, true)
    }

    /// The next one, and how many were lost before it was taken. None: the queue is off the list.
    pub(super) fn next(&mut self) -> Option<(T, u64)> {
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
pub(super) struct Burst {
    open: AtomicBool,
    told: AtomicU64,
}

impl Burst {
    /// Something was lost, and counted. True: the caller has opened the burst.
    #[inline]
    pub(super) fn open(&self) -> bool {
        // Against *close, then look at the count* in `close`.
        store_load_barrier();
        !self.open.load(Relaxed) && !self.open.swap(true, AcqRel)
    }

    /// How many of these were not told; by whoever has opened the burst, or by the timer.
    pub(super) fn untold(&self, lost: u64) -> u64 {
        let told = self.told.load(Relaxed);
        self.told.store(lost.max(told), Relaxed);
        lost.saturating_sub(told)
    }

    /// Closes it. Something may have been lost meanwhile by who has seen it open: how many that are not told,
    /// if it is open again by this.
    pub(super) fn close(&self, lost: impl FnOnce() -> u64) -> u64 {
        self.open.store(false, Release);
        // Against *count, then look whether it is open* in `open`.
        store_load_barrier();
        match lost() > self.told.load(Relaxed) && !self.open.swap(true, AcqRel) {
            true => 1,
            false => 0,
        }
    }
}

/// What loses messages in bursts.
pub(super) trait Loses: Send + Sync {
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
struct Bursts {
    open: Vec<Weak<dyn Loses>>,
    /// A timer is on its way.
    armed: bool,
}

/// See the head of the file.
pub(super) struct Notices {
    /// Subscriptions to the hub's own keys.
    heard: AtomicU32,
    queue: Mutex<Queue<(Notice, u64)>>,
    bursts: Mutex<Bursts>,
    interval: Duration,
    errors: Mutex<Errors>,
}

struct Errors {
    list: VecDeque<ErrorRecord>,
    most: usize,
    recorded: u64,
}

/// Settings of what a hub tells of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    errors: usize,
    interval: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { errors: 1024, interval: Duration::from_secs(1) }
    }
}

impl HubBuilder<'_> {
    /// How many errors are kept for [`Hub::errors`], 0 to 1 000 000; default 1024. When there are more the
    /// oldest is forgotten.
    pub fn errors(mut self, most: usize) -> Self {
        self.notices.errors = most;
        self
    }

    /// How often losses of the same kind are told, 1 ms to 1 hour; default 1 s. The first of a burst is told
    /// at once.
    pub fn notice_interval(mut self, interval: Duration) -> Self {
        self.notices.interval = interval;
        self
    }
}

impl Notices {
    pub(super) fn new(settings: Settings) -> crate::Result<Self> {
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
    pub(super) fn listen(&self, pattern: &str) {
        if pattern.starts_with(PREFIX) {
            self.heard.fetch_add(1, Relaxed);
        }
    }

    /// One has ended.
    pub(super) fn unlisten(&self, pattern: &str) {
        if pattern.starts_with(PREFIX) {
            self.heard.fetch_sub(1, Relaxed);
        }
    }

    pub(super) fn stats(&self) -> NoticeStats {
        let queue = lock(&self.queue);
        let (told, lost) = (queue.told, queue.lost);
        drop(queue);
        let errors = lock(&self.errors);
        let forgotten = errors.recorded - errors.list.len() as u64;
        NoticeStats { told, lost, errors: errors.recorded, forgotten }
    }

    fn record(&self, notice: &Notice, time: u64) {
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

impl Core {
    /// Tells what has happened, to those who want to hear it, and to the list of errors. `pattern` is that of
    /// the subscription that it happened to.
    #[inline]
    pub(super) fn tell(
        &self,
        severity: Severity,
        pattern: Option<&str>,
        make: impl FnOnce() -> Notice,
    ) {
        let due = severity > Severity::Info || self.is_logged(Level::Info);
        self.tell_if(due, pattern, make);
    }

    /// The same, and if it is `due` though nobody wants to hear it.
    #[inline]
    fn tell_if(&self, due: bool, pattern: Option<&str>, make: impl FnOnce() -> Notice) {
        // Relaxed: who subscribes beside an event may hear of it or not.
        let heard = self.notices.heard.load(Relaxed) > 0;
        if heard || due {
            self.tell_now(make(), heard && !pattern.is_some_and(is_reserved));
        }
    }

    /// Whether notices of this level are told by the log.
    fn is_logged(&self, level: Level) -> bool {
        let log = &self.shared.log;
        log.is_on(Component::Hub, level) || log.is_on(Component::History, level)
    }

    #[cold]
    fn tell_now(&self, notice: Notice, heard: bool) {
        notice.log(&self.shared.log, heard);
        let time = clock::unix_nanos();
        if notice.severity > Severity::Info {
            self.notices.record(&notice, time);
        }
        // Not in the condition: the lock would be held to the end of the block.
        let list = heard && lock(&self.notices.queue).push((notice, time));
        if list {
            self.call(self.ready.push(Work::Notices));
        }
    }

    /// Publishes what waits to be told. True: there may be more.
    pub(super) fn run_notices(&self) -> bool {
        for _ in 0..TURN {
            let next = lock(&self.notices.queue).next();
            let Some(((notice, time), lost)) = next else { return false };
            let key = self.keys.intern(&format!("{PREFIX}{}", notice.event));
            // Whoever does not listen in time loses some, which the next one tells.
            let _told =
                self.publish_seldom(&key, &mut notice.payload(time, lost), &Terms::default());
        }
        true
    }

    /// Something was lost, and counted. Not under the lock that counts.
    #[inline]
    pub(super) fn lost<L: Loses + 'static>(&self, loser: &Arc<L>) {
        if loser.burst().open() {
            self.lost_first(Arc::<L>::clone(loser));
        }
    }

    #[cold]
    fn lost_first(&self, loser: Arc<dyn Loses>) {
        self.tell_losses(&*loser);
        let mut bursts = lock(&self.notices.bursts);
        bursts.open.push(Arc::downgrade(&loser));
        let arms = !core::mem::replace(&mut bursts.armed, true);
        drop(bursts);
        if arms {
            self.arm_bursts();
        }
    }

    fn tell_losses(&self, loser: &dyn Loses) -> bool {
        let count = loser.burst().untold(loser.losses());
        if count > 0 {
            self.tell(Severity::Warning, None, || loser.notice(count));
        }
        count > 0
    }

    fn arm_bursts(&self) {
        let core = Weak::clone(&self.me);
        let look = move || {
            if let Some(core) = core.upgrade() {
                core.look_at_bursts();
            }
        };
        let armed = Timer::after(&self.shared, self.notices.interval, look, |_| ());
        if armed.is_err() {
            // The next burst tries again.
            lock(&self.notices.bursts).armed = false;
        }
    }

    fn look_at_bursts(&self) {
        let open = core::mem::take(&mut lock(&self.notices.bursts).open);
        let goes_on = |loser: &Weak<dyn Loses>| {
            let Some(loser) = loser.upgrade() else { return false };
            let told = self.tell_losses(&*loser);
            if loser.is_over() {
                return false;
            }
            told || (loser.burst().close(|| loser.losses()) > 0 && self.tell_losses(&*loser))
        };
        let mut left: Vec<_> = open.into_iter().filter(goes_on).collect();
        let mut bursts = lock(&self.notices.bursts);
        bursts.open.append(&mut left);
        bursts.armed = !bursts.open.is_empty();
        let arms = bursts.armed;
        drop(bursts);
        if arms {
            self.arm_bursts();
        }
    }
}

impl Hub {
    /// What went wrong of late, the oldest first. Any thread.
    ///
    /// Warnings and errors of all that the hub tells under `$SYS.` are kept, whether anybody subscribes to
    /// that or not:
    ///
    /// | event | severity | what it has beside the fields of all |
    /// |---|---|---|
    /// | `subscription.started` | info | `subscription`, `pattern` |
    /// | `subscription.ended` | info | `subscription`, `pattern`, `delivered`, `lost_messages` |
    /// | `subscription.resumed` | info | `subscription`, `pattern` |
    /// | `subscription.overflow` | warning | `subscription`, `pattern`, `count`: messages that it lost |
    /// | `subscription.restarted` | warning | `subscription`, `pattern`, `count`, `failure` |
    /// | `subscription.suspended` | error | `subscription`, `pattern`, `waited`: new dead letters, `resumes_in_ms`: null: when it is resumed |
    /// | `subscription.lapsed` | warning | `subscription`, `pattern`, `lease_ms` |
    /// | `dead.forgotten` | warning | `count`: dead letters that were forgotten for newer ones |
    /// | `publisher.refused` | warning | `publisher`, `count`: messages beyond its quota |
    /// | `history.failed` | error | `pattern`, `error` |
    /// | `history.recovered` | info | `pattern` |
    /// | `history.lines_lost` | warning | `pattern`, `count`: lines that could not be written |
    /// | `history.given_up` | error | `pattern`, `count`: messages that are on no disk and never will be |
    /// | `threshold.crossed` | as it says | `threshold`, `metric`, `labels`, `limit`, `figure` |
    /// | `threshold.cleared` | info | likewise |
    /// | `threshold.stopped`, `statistics.stopped` | error | none: the pool has no place for a timer |
    ///
    /// The payload of a notice is an object of JSON with these, and `event`, `time` (RFC 3339), `severity`,
    /// `origin`, `message` (for people), and `lost`: how many notices were lost before this one because too
    /// many waited. What comes in bursts is told once, and then once in each
    /// [`notice_interval`](HubBuilder::notice_interval) with its count.
    ///
    /// ```
    /// # use paceline::Pool;
    /// # use paceline::hub::{ErrorFilter, Hub, Severity};
    /// # fn main() -> paceline::Result<()> {
    /// # let pool = Pool::new()?;
    /// let hub = Hub::new(&pool)?;
    /// let full = hub.mailbox("a", 1)?;
    /// assert!(hub.publish("a", "one")?.is_complete());
    /// assert!(hub.publish("a", "too many").is_err());
    /// let errors = hub.errors(&ErrorFilter::all().at_least(Severity::Warning));
    /// assert_eq!(errors[0].event, "subscription.overflow");
    /// # drop(full);
    /// # Ok(()) }
    /// ```
    pub fn errors(&self, filter: &ErrorFilter) -> Vec<ErrorRecord> {
        let errors = lock(&self.core.notices.errors);
        let found = errors.list.iter().rev().filter(|error| filter.passes(error));
        let mut found: Vec<_> = found.take(filter.limit.unwrap_or(usize::MAX)).cloned().collect();
        drop(errors);
        found.reverse();
        found
    }

    /// How many notices and errors there were.
    pub fn notice_stats(&self) -> NoticeStats {
        self.core.notices.stats()
    }
}

fn origin(kind: &str, id: u64, pattern: &str) -> String {
    format!("{kind} {id} ({pattern})")
}

fn notice(
    kind: &str,
    id: u64,
    pattern: &str,
    event: &'static str,
    severity: Severity,
    (message, more): (String, Value),
) -> Notice {
    let mut fields = json!({ "subscription": id, "pattern": pattern });
    if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
        fields.extend(more);
    }
    Notice { event, severity, origin: origin(kind, id, pattern), message, fields }
}

impl Who {
    /// Tells what has happened to it.
    pub(super) fn tell(
        &self,
        core: &Core,
        event: &'static str,
        severity: Severity,
        say: impl FnOnce() -> (String, Value),
    ) {
        core.tell(severity, Some(&self.pattern), || {
            notice(self.kind, self.id, &self.pattern, event, severity, say())
        });
    }
}

/// What a subscription has to tell.
impl Subscriber {
    pub(super) fn notice(
        &self,
        event: &'static str,
        severity: Severity,
        message: String,
        more: Value,
    ) -> Notice {
        let pattern = self.channel().pattern();
        notice("subscription", self.id(), pattern, event, severity, (message, more))
    }

    /// Tells what has happened to it.
    #[inline]
    pub(super) fn tell(
        &self,
        core: &Core,
        event: &'static str,
        severity: Severity,
        say: impl FnOnce() -> (String, Value),
    ) {
        // What is no news for a log is not even made for one that is off below that.
        let level = if DAILY.contains(&event) { Level::Debug } else { Level::Info };
        let due = severity > Severity::Info || core.is_logged(level);
        core.tell_if(due, Some(self.channel().pattern()), || {
            let (message, more) = say();
            self.notice(event, severity, message, more)
        });
    }

    /// It has lost messages. Not under its mailbox's lock.
    #[cold]
    pub(super) fn lost(self: &Arc<Self>, core: &Core) {
        if !is_reserved(self.channel().pattern()) {
            core.lost(self);
        }
    }
}

impl Loses for Subscriber {
    fn burst(&self) -> &Burst {
        self.care_or_default().burst()
    }

    fn losses(&self) -> u64 {
        self.mail().losses()
    }

    fn is_over(&self) -> bool {
        self.mail().phase() == Phase::Ended
    }

    fn notice(&self, count: u64) -> Notice {
        let policy = format!("{:?}", self.rules.overflow);
        let message = format!("the mailbox was full: {count} lost by {policy}");
        let more = json!({ "count": count, "overflow": policy });
        Subscriber::notice(self, "subscription.overflow", Severity::Warning, message, more)
    }
}

impl Loses for DeadLetters {
    fn burst(&self) -> &Burst {
        &self.burst
    }

    fn losses(&self) -> u64 {
        self.pushed_out()
    }

    fn notice(&self, count: u64) -> Notice {
        let message = format!("{count} forgotten for newer ones");
        let (event, origin) = ("dead.forgotten", "dead letters".into());
        let fields = json!({ "count": count });
        Notice { event, severity: Severity::Warning, origin, message, fields }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
