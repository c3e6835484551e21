//! One structured log for all components.
//!
//! # The way of a record
//!
//! ```text
//!   a component ── is its level on? ──no──► nothing: one relaxed load, and a branch that is not taken
//!                        │ yes (cold)
//!                        ▼
//!                 a Record is made ─► queue (bounded) ─► thread of the log ─► file · callback · facade
//!                                        └─ full: dropped, counted, and told by a record of its own
//! ```
//!
//! # Why it is like this
//!
//! - **A pool has its log**, given by [`Builder::log`](crate::Builder::log): two pools in one process need
//!   not share one, and tests do not meet each other. The same log may be given to several, as each record
//!   names its pool; and [`Log::install`] makes it that of all pools that have none of their own.
//! - **What stands on a pool asks the pool.** Servers, worker pools and hubs have no setting for it.
//! - **Only what is rare is told.** No event of a hot path is a record: not a promotion, a task's begin, a
//!   request that went well, or a delivery. Figures are for those. So being told costs a thread nothing as long
//!   as nothing happens.
//! - **Nobody waits for a sink.** The thread of the log is created with it and not with a pool, so it is there
//!   only if somebody wants it.
//! - **A record is data**: a stable name of the event, and fields with types. The message is for people.
//!
//! The log is off by default. Without one nothing is made or written, but for faults: these are lines on the standard
//! error stream ([loud.rs](loud.rs)).

mod levels;
pub(crate) mod loud;
mod sinks;
pub(crate) mod teller;

#[cfg(feature = "config")]
pub(crate) use levels::ALLOWED as ALLOWED_LEVELS;
pub use levels::Levels;
pub use sinks::{Log, LogBuilder};
pub use teller::LogStats;

use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::Relaxed;
use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

/// How much something matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Level {
    /// Something does not work.
    Error = 1,
    /// Something was lost, refused or late, or will be.
    Warn = 2,
    /// Something began, ended or changed, as it was asked to.
    Info = 3,
    /// One request, connection or task did not get what it wanted.
    Debug = 4,
    /// Steps of the library's own.
    Trace = 5,
}

impl Level {
    /// All, the one that matters most first.
    pub const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// In small letters: `warn`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    const fn facade(self) -> ::log::Level {
        match self {
            Self::Error => ::log::Level::Error,
            Self::Warn => ::log::Level::Warn,
            Self::Info => ::log::Level::Info,
            Self::Debug => ::log::Level::Debug,
            Self::Trace => ::log::Level::Trace,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who tells something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum Component {
    /// The pool: its threads, its handlers, its end.
    Pool,
    /// Listeners, connections and datagram sockets.
    Net,
    /// The HTTP server.
    Http,
    /// Worker pools.
    Task,
    /// Hubs: subscriptions, publishers, thresholds.
    Hub,
    /// Histories of hubs, and their archives.
    History,
    /// Webhooks.
    Webhook,
    /// What systemd is told.
    Service,
    /// The log itself.
    Log,
}

impl Component {
    /// All.
    pub const ALL: [Self; 9] = [
        Self::Pool,
        Self::Net,
        Self::Http,
        Self::Task,
        Self::Hub,
        Self::History,
        Self::Webhook,
        Self::Service,
        Self::Log,
    ];

    /// In small letters: `net`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        // They have the same beginning, so that no table is needed for the facade.
        self.target().split_at("paceline::".len()).1
    }

    /// The target of its records in the `log` facade: `paceline::net`.
    #[must_use]
    pub const fn target(self) -> &'static str {
        match self {
            Self::Pool => "paceline::pool",
            Self::Net => "paceline::net",
            Self::Http => "paceline::http",
            Self::Task => "paceline::task",
            Self::Hub => "paceline::hub",
            Self::History => "paceline::history",
            Self::Webhook => "paceline::webhook",
            Self::Service => "paceline::service",
            Self::Log => "paceline::log",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a field of a [`Record`] has.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A count, an identifier, a time in nanoseconds.
    U64(u64),
    /// A number that may be negative.
    I64(i64),
    /// A figure.
    F64(f64),
    /// A text.
    Text(String),
}

macro_rules! value_from {
    ($($(#[$only:meta])? $from:ty => $kind:ident ($to:ty);)+) => {
        $($(#[$only])? impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$kind(value as $to)
            }
        })+
    };
}

value_from! {
    u64 => U64(u64);
    u32 => U64(u64);
    u16 => U64(u64);
    usize => U64(u64);
    i64 => I64(i64);
    i32 => I64(i64);
    f64 => F64(f64);
    String => Text(String);
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U64(value) => value.fmt(f),
            Self::I64(value) => value.fmt(f),
            Self::F64(value) => value.fmt(f),
            // Quoted if it is not one plain word.
            Self::Text(text) if text.is_empty() || text.contains(needs_quotes) => {
                fmt::Debug::fmt(text, f)
            }
            Self::Text(text) => text.fmt(f),
        }
    }
}

fn needs_quotes(c: char) -> bool {
    c == '"' || c == '=' || c.is_whitespace() || c.is_control()
}

/// Something that a component tells.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Record {
    /// When.
    pub time: SystemTime,
    /// How much it matters.
    pub level: Level,
    /// Who tells it.
    pub component: Component,
    /// What happened: a name that stays, as `accept.paused`.
    pub event: &'static str,
    /// The name of the pool that it happened in.
    pub pool: Arc<str>,
    /// For people: a sentence without the fields.
    pub message: String,
    /// What belongs to it, in order. Times end in `_ns`, and are in nanoseconds.
    pub fields: Vec<(Cow<'static, str>, Value)>,
}

impl Record {
    /// Adds a field.
    pub(crate) fn with(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Value>,
    ) -> &mut Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// What it says to people.
    pub(crate) fn say(&mut self, message: impl Into<String>) -> &mut Self {
        self.message = message.into();
        self
    }
}

/// As people read it, on one line if its message is: `accept.paused: no descriptor is left address=0.0.0.0:80`.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.event, self.message)?;
        self.fields.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// What a pool, and all that stands on it, tells by. Without the feature `log` it has no size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logger {
    to: Option<Arc<To>>,
}

/// Whom one pool tells.
#[derive(Debug)]
struct To {
    /// None: only faults are told, on the standard error stream.
    log: Option<Log>,
    pool: Arc<str>,
    /// What is told once, by bits.
    told: AtomicU32,
}

impl Logger {
    pub(crate) fn new(log: Option<&Log>, pool: &str) -> Self {
        let log = log.or(Log::installed()).cloned();
        Self { to: Some(Arc::new(To { log, pool: pool.into(), told: AtomicU32::new(0) })) }
    }

    /// That of what stands on no pool.
    #[cfg(any(feature = "capi", feature = "webhook"))]
    pub(crate) fn for_nobodys_pool() -> Self {
        Self::new(None, "")
    }

    /// Whether this is told for the first time; `what` is a bit. It is not told otherwise. Without a log, too.
    pub(crate) fn is_first(&self, what: u32) -> bool {
        self.to.as_ref().is_some_and(|to| to.told.fetch_or(what, Relaxed) & what == 0)
    }

    /// Whether this would be told, for what is made in another way.
    pub(crate) fn is_on(&self, component: Component, level: Level) -> bool {
        self.logs_to().is_some_and(|(_, log)| log.is_on(component, level))
    }

    #[inline(always)]
    fn logs_to(&self) -> Option<(&To, &Log)> {
        let to = self.to.as_deref()?;
        Some((to, to.log.as_ref()?))
    }

    /// Tells something if the component's level is on: one relaxed load, and nothing is made if it is off. Without a
    /// log a fault is a line on the standard error stream.
    #[inline(always)]
    pub(crate) fn tell(
        &self,
        component: Component,
        level: Level,
        event: &'static str,
        fill: impl FnOnce(&mut Record),
    ) {
        self.tell_unless(false, component, level, event, fill);
    }

    /// The same; without a log, nothing is written if a hook of the program is told of it (`heard`).
    #[inline(always)]
    pub(crate) fn tell_unless(
        &self,
        heard: bool,
        component: Component,
        level: Level,
        event: &'static str,
        fill: impl FnOnce(&mut Record),
    ) {
        let is_told = match self.logs_to() {
            Some((_, log)) => log.is_on(component, level),
            None => level <= Level::Warn && !heard,
        };
        if is_told {
            let mut fill = Some(fill);
            self.tell_now(component, level, event, &mut |record| {
                if let Some(fill) = fill.take() {
                    fill(record);
                }
            });
        }
    }

    /// Compiled once, whoever tells.
    #[cold]
    #[inline(never)]
    fn tell_now(
        &self,
        component: Component,
        level: Level,
        event: &'static str,
        fill: &mut dyn FnMut(&mut Record),
    ) {
        let pool = match self.logs_to() {
            Some((to, log)) => return log.emit(&to.pool, component, level, event, fill),
            None => self.to.as_ref().map_or("", |to| &*to.pool),
        };
        loud::tell(component, level, event, pool, fill);
    }

    pub(crate) fn error(
        &self,
        who: Component,
        event: &'static str,
        fill: impl FnOnce(&mut Record),
    ) {
        self.tell(who, Level::Error, event, fill);
    }

    pub(crate) fn warn(&self, who: Component, event: &'static str, fill: impl FnOnce(&mut Record)) {
        self.tell(who, Level::Warn, event, fill);
    }

    pub(crate) fn info(&self, who: Component, event: &'static str, fill: impl FnOnce(&mut Record)) {
        self.tell(who, Level::Info, event, fill);
    }

    pub(crate) fn debug(
        &self,
        who: Component,
        event: &'static str,
        fill: impl FnOnce(&mut Record),
    ) {
        self.tell(who, Level::Debug, event, fill);
    }

    /// Whether the `log` facade is told of everything that passes the levels.
    pub(crate) fn tells_facade(&self) -> bool {
        self.logs_to().is_some_and(|(_, log)| log.tells_facade())
    }
}
