//! What is logged: a record with its level, its component and its fields.

use crate::sys::clock;
use core::fmt;
use std::borrow::Cow;
use std::io::Write;
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

    pub(super) const fn facade(self) -> ::log::Level {
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

/// The part of the library that logs.
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

/// One entry of the log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Record {
    /// When.
    pub time: SystemTime,
    /// How much it matters.
    pub level: Level,
    /// Which part of the library has logged it.
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
    /// One without a message and fields, of this moment.
    pub(super) fn new(
        component: Component,
        level: Level,
        event: &'static str,
        pool: Arc<str>,
    ) -> Self {
        let (time, message, fields) = (SystemTime::now(), String::new(), Vec::new());
        Self { time, level, component, event, pool, message, fields }
    }

    /// One line of JSON, without the line's end: `time` (RFC 3339, with nanoseconds, from 1970 to 9999),
    /// `level`, `component`, `event`, `pool`, `message`, and the object `fields`. A figure that is no number
    /// is null.
    #[must_use]
    pub fn to_json(&self) -> String {
        String::from_utf8(self.line()).unwrap_or_default()
    }

    pub(super) fn line(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(256);
        let time = humantime::format_rfc3339_nanos(clock::with_a_form(self.time));
        let (level, component) = (self.level, self.component);
        // Into memory: it cannot fail. None of these needs escapes.
        let _ = write!(line, r#"{{"time":"{time}","level":"{level}","component":"{component}","#);
        let _ = write!(line, r#""event":"{}","pool":"#, self.event);
        write_text(&mut line, &self.pool);
        line.extend_from_slice(br#","message":"#);
        write_text(&mut line, &self.message);
        line.extend_from_slice(br#","fields":{"#);
        for (index, (name, value)) in self.fields.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            line.extend_from_slice(comma.as_bytes());
            write_text(&mut line, name);
            line.push(b':');
            match value {
                Value::Text(text) => write_text(&mut line, text),
                Value::F64(value) if !value.is_finite() => line.extend_from_slice(b"null"),
                value => drop(write!(line, "{value}")),
            }
        }
        line.extend_from_slice(b"}}");
        line
    }

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

/// In quotes, with escapes.
fn write_text(line: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(line, text);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn a_record_of_any_time_has_a_line() {
        let mut record = Record::new(Component::Pool, Level::Info, "event", "pool".into());
        record.time = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        let line = record.to_json();
        assert!(line.starts_with(r#"{"time":"1970-01-01T00:00:00.000000000Z""#), "{line}");
    }
}
