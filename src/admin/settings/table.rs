//! The table: every setting with its type, range, default and meaning. What reads, checks, applies and
//! documents settings goes by it.

use super::node::Node;
use super::service::{
    BRIDGE, ExportSettings, HISTORY, HTTP, HUB, ImportSettings, OPS, SERVER, TASKS, WEBHOOK,
    is_start, without_secret,
};
use crate::log::{ALLOWED_LEVELS, Levels, LogBuilder};
use crate::pool::{Builder, MAX_JOINED, MAX_THREADS, Pin, Promotion, SourceKind};
use crate::task::{OverloadPolicy, WorkerPoolBuilder};
use bytesize::ByteSize;
use core::fmt;
use core::time::Duration;

/// One setting, as the table knows it; see [`Settings::fields`](super::Settings::fields).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Field {
    /// The section that it belongs to: `pool`.
    pub section: &'static str,
    /// Its name there, which is the name of the builder's method: `threads`.
    pub name: &'static str,
    /// Its type and range.
    pub kind: Kind,
    /// What holds without it, in words.
    pub default: &'static str,
    /// What it is for.
    pub about: &'static str,
    pub(super) store: fn(&mut super::Settings, Value),
}

impl Field {
    /// Where it stands in a file: `pool.threads`.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// The environment variable that sets it: `PACELINE_POOL_THREADS`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("PACELINE_{}_{}", self.section, self.name).to_uppercase()
    }
}

/// The type and range of a setting. Its text says what is allowed.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// A whole number.
    Count {
        /// The least.
        low: u64,
        /// The most.
        high: u64,
    },
    /// An amount of memory: a whole number of bytes, or a text with a unit, as `"64 KiB"`.
    Bytes {
        /// The least.
        low: u64,
        /// The most.
        high: u64,
    },
    /// A text of numbers with their units, as `"200us"` or `"1s 500ms"`.
    Time {
        /// The shortest.
        low: Duration,
        /// The longest.
        high: Duration,
    },
    /// `true` or `false`.
    Flag,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A text that is not empty and has no NUL.
    Text,
    /// What [`Pin`] reads from a text, or a list of CPUs.
    Pin,
    /// What [`Levels`] reads from a text.
    Levels,
    /// A list of texts, or one text with commas between them.
    Texts,
    /// Where an import of a bridge begins.
    Start,
    /// A list of exports of a bridge, each a pattern or a section; or one text of patterns with commas between them.
    Exports,
    /// A list of imports, likewise.
    Imports,
}

/// A value that its [`Kind`] has accepted.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Count(u64),
    Time(Duration),
    Flag(bool),
    Text(String),
    Pin(Pin),
    Levels(Levels),
    Texts(Vec<String>),
    Exports(Vec<ExportSettings>),
    Imports(Vec<ImportSettings>),
}

/// For people.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Time(time) => write!(f, "{time:?}"),
            Self::Flag(flag) => flag.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::Pin(pin) => write!(f, "{pin:?}"),
            Self::Levels(levels) => levels.fmt(f),
            Self::Texts(texts) => f.write_str(&texts.join(",")),
            Self::Exports(rules) => patterns(f, rules.iter().map(|rule| &rule.pattern)),
            Self::Imports(rules) => patterns(f, rules.iter().map(|rule| &rule.pattern)),
        }
    }
}

fn patterns<'a>(
    f: &mut fmt::Formatter<'_>,
    rules: impl Iterator<Item = &'a Option<String>>,
) -> fmt::Result {
    let patterns: Vec<&str> = rules.flatten().map(String::as_str).collect();
    f.write_str(&patterns.join(","))
}

/// The parts of a text with commas between them.
pub(super) fn parts(text: &str) -> Vec<Node> {
    text.split(',').map(|part| Node::Text(part.trim().to_owned())).collect()
}

impl Kind {
    /// The node's value, if it is one of this kind.
    pub(super) fn read(&self, node: &Node) -> Option<Value> {
        match (self, node) {
            (Self::Count { low, high } | Self::Bytes { low, high }, Node::Int(number)) => {
                within(u64::try_from(*number).ok()?, *low, *high).map(Value::Count)
            }
            (Self::Bytes { low, high }, Node::Text(text)) => {
                within(text.parse::<ByteSize>().ok()?.as_u64(), *low, *high).map(Value::Count)
            }
            (Self::Time { low, high }, Node::Text(text)) => {
                within(humantime::parse_duration(text).ok()?, *low, *high).map(Value::Time)
            }
            (Self::Flag, Node::Flag(flag)) => Some(Value::Flag(*flag)),
            (Self::Choice(choices), Node::Text(text)) => {
                choices.contains(&text.as_str()).then(|| Value::Text(text.clone()))
            }
            (Self::Text, Node::Text(text)) => {
                (!text.is_empty() && !text.contains('\0')).then(|| Value::Text(text.clone()))
            }
            (Self::Pin, Node::Text(text)) => text.parse().ok().map(Value::Pin),
            (Self::Pin, Node::List(nodes)) => cpus(nodes).map(|cpus| Value::Pin(Pin::List(cpus))),
            (Self::Levels, Node::Text(text)) => text.parse().ok().map(Value::Levels),
            (Self::Texts, Node::Text(text)) => texts(&parts(text)).map(Value::Texts),
            (Self::Texts, Node::List(nodes)) => texts(nodes).map(Value::Texts),
            (Self::Start, Node::Int(number)) => {
                self.read(&Node::Text(u64::try_from(*number).ok()?.to_string()))
            }
            (Self::Start, Node::Text(text)) => is_start(text).then(|| Value::Text(text.clone())),
            _ => None,
        }
    }

    /// What a text stands for where everything is a text: in a variable, or on a command line.
    pub(super) fn lift(&self, text: &str) -> Node {
        let node = match self {
            Self::Count { .. } | Self::Bytes { .. } => text.parse().ok().map(Node::Int),
            Self::Flag => text.parse().ok().map(Node::Flag),
            _ => None,
        };
        node.unwrap_or_else(|| Node::Text(text.into()))
    }
}

fn within<T: PartialOrd>(value: T, low: T, high: T) -> Option<T> {
    (low <= value && value <= high).then_some(value)
}

fn cpus(nodes: &[Node]) -> Option<Vec<usize>> {
    let cpu = |node: &Node| match node {
        Node::Int(number) => usize::try_from(*number).ok(),
        _ => None,
    };
    nodes.iter().map(cpu).collect::<Option<Vec<_>>>().filter(|cpus| !cpus.is_empty())
}

/// None: it is not one of texts alone, or is empty.
fn texts(nodes: &[Node]) -> Option<Vec<String>> {
    let text = |node: &Node| String::from_value(Kind::Text.read(node)?);
    nodes.iter().map(text).collect::<Option<Vec<_>>>().filter(|texts| !texts.is_empty())
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { low, high } => write!(f, "{low} to {high}"),
            Self::Bytes { low, high } => {
                let (low, high) = (ByteSize(*low), ByteSize(*high));
                write!(f, "{low:.0} to {high:.0}, in bytes or with a unit")
            }
            Self::Time { low, high } => {
                let text = humantime::format_duration;
                let known = [Duration::from_secs(5), Duration::from_millis(5)];
                let example = known.into_iter().find(|time| (*low..=*high).contains(time));
                let example = text(example.unwrap_or(*low));
                write!(f, "{} to {}, with a unit, as \"{example}\"", text(*low), text(*high))
            }
            Self::Flag => f.write_str("true or false"),
            Self::Choice(choices) => f.write_str(&choices.join(" or ")),
            Self::Text => f.write_str("a text without NUL of at least one byte"),
            Self::Pin => f.write_str("none, compact, spread or a list of CPUs like 0,2,4-7"),
            Self::Levels => f.write_str(ALLOWED_LEVELS),
            Self::Texts => f.write_str("a list of texts, or one text with commas between them"),
            Self::Start => {
                f.write_str("first, new, a number in the stream, or a time as 2026-11-28T06:00:00Z")
            }
            Self::Exports | Self::Imports => f.write_str(
                "a list of patterns and of sections, or patterns with commas between them",
            ),
        }
    }
}

/// A type that a setting is kept as. The table names a kind that yields what the type is made of.
pub(super) trait Stored: Sized {
    fn from_value(value: Value) -> Option<Self>;
}

impl Stored for usize {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Count(count) => usize::try_from(count).ok(),
            _ => None,
        }
    }
}

impl Stored for Duration {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Time(time) => Some(time),
            _ => None,
        }
    }
}

impl Stored for bool {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }
}

impl Stored for String {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Stored for Pin {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Pin(pin) => Some(pin),
            _ => None,
        }
    }
}

impl Stored for Levels {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Levels(levels) => Some(levels),
            _ => None,
        }
    }
}

impl Stored for Vec<String> {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Texts(texts) => Some(texts),
            _ => None,
        }
    }
}

impl Stored for Vec<ExportSettings> {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Exports(rules) => Some(rules),
            _ => None,
        }
    }
}

impl Stored for Vec<ImportSettings> {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Imports(rules) => Some(rules),
            _ => None,
        }
    }
}

impl Stored for Promotion {
    fn from_value(value: Value) -> Option<Self> {
        match String::from_value(value)?.as_str() {
            "deferred" => Some(Self::Deferred),
            "eager" => Some(Self::Eager),
            _ => None,
        }
    }
}

impl Stored for SourceKind {
    fn from_value(value: Value) -> Option<Self> {
        match String::from_value(value)?.as_str() {
            "epoll" => Some(Self::Epoll),
            "ring" => Some(Self::Ring),
            _ => None,
        }
    }
}

/// The builder after the calls of those of its methods whose settings are given.
macro_rules! given {
    ($builder:expr, $settings:expr, $($name:ident)+) => {{
        let mut builder = $builder;
        $(
            if let Some(value) = $settings.$name.clone() {
                builder = builder.$name(value);
            }
        )+
        builder
    }};
}
pub(super) use given;

/// Makes of one list of settings: the typed section, its rows of the table, and what applies it to the
/// builder, whose methods have the names of the settings.
macro_rules! section {
    (
        $(#[$attribute:meta])*
        $Section:ident in $section:ident, for $Builder:ty, rows $ROWS:ident:
        $($name:ident: $type:ty, $kind:expr, $default:literal, $about:literal;)+
    ) => {
        section! {
            $(#[$attribute])*
            $Section in $section, rows $ROWS:
            $($name: $type, $kind, $default, $about;)+
        }

        impl $Section {
            /// The builder with what is set here.
            pub(super) fn apply(&self, builder: $Builder) -> $Builder {
                given!(builder, self, $($name)+)
            }
        }
    };
    (
        $(#[$attribute:meta])*
        $Section:ident in $section:ident, rows $ROWS:ident:
        $($name:ident: $type:ty, $kind:expr, $default:literal, $about:literal;)+
    ) => {
        section! {
            @$(#[$attribute])*
            $Section, stringify!($section), $ROWS,
            $(|settings, value| settings.$section.$name = <$type>::from_value(value),)+:
            $($name: $type, $kind, $default, $about;)+
        }
    };
    (
        $(#[$attribute:meta])*
        $Rule:ident, rule $section:literal, rows $ROWS:ident, of streams [$($of:literal),+]:
        $($name:ident: $type:ty, $kind:expr, $default:literal, $about:literal;)+
    ) => {
        section! {
            // A rule is stored by the names of its fields.
            @$(#[$attribute])*
            $Rule, $section, $ROWS, $(|_, _| _ = stringify!($name),)+:
            $($name: $type, $kind, $default, $about;)+
        }

        impl Rule for $Rule {
            const FIELDS: &'static [Field] = $ROWS;
            const OF_STREAMS: &'static [&'static str] = &[$($of),+];

            fn store(&mut self, field: &Field, value: Value) {
                match field.name {
                    $(stringify!($name) => self.$name = <$type>::from_value(value),)+
                    _ => {}
                }
            }
        }
    };
    (
        @$(#[$attribute:meta])*
        $Section:ident, $section:expr, $ROWS:ident, $($store:expr,)+:
        $($name:ident: $type:ty, $kind:expr, $default:literal, $about:literal;)+
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Default)]
        #[non_exhaustive]
        pub struct $Section {
            $(
                #[doc = $about]
                #[doc = concat!("Default: ", $default, ".")]
                pub $name: Option<$type>,
            )+
        }

        pub(super) const $ROWS: &[Field] = &[
            $(Field {
                section: $section,
                name: stringify!($name),
                kind: $kind,
                default: $default,
                about: $about,
                store: $store,
            },)+
        ];

        /// Without secrets.
        impl core::fmt::Debug for $Section {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut shown = f.debug_struct(stringify!($Section));
                $(
                    let key = format!("{}.{}", $section, stringify!($name));
                    let value = self.$name.as_ref();
                    let value = value.map(|value| without_secret(&key, format!("{value:?}")));
                    let value = value.map_or("None".into(), |value| format!("Some({value})"));
                    shown.field(stringify!($name), &format_args!("{value}"));
                )+
                shown.finish()
            }
        }
    };
}

pub(super) use section;

impl Stored for OverloadPolicy {
    fn from_value(value: Value) -> Option<Self> {
        match String::from_value(value)?.as_str() {
            "wait" => Some(Self::Wait(Duration::MAX)),
            "reject" => Some(Self::Reject),
            "run_here" => Some(Self::RunHere),
            "drop_oldest" => Some(Self::DropOldest),
            _ => None,
        }
    }
}

impl Stored for u32 {
    fn from_value(value: Value) -> Option<Self> {
        usize::from_value(value)?.try_into().ok()
    }
}

impl Stored for u64 {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Count(count) => Some(count),
            _ => None,
        }
    }
}

const fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

section! {
    /// Settings of a [`Pool`](crate::Pool); what is `None` is left to its [`Builder`].
    PoolSettings in pool, for Builder, rows POOL:
    threads: usize, Kind::Count { low: 0, high: MAX_THREADS as u64 }, "the usable CPUs",
        "Number of pool threads; 0 for a pool that only host threads drive.";
    max_joined: usize, Kind::Count { low: 0, high: MAX_JOINED as u64 }, "4",
        "Host threads that may take part at once.";
    leaders: usize, Kind::Count { low: 1, high: MAX_THREADS as u64 - 1 }, "one per 8 threads",
        "Number of handle sets, below the number of threads (1 for 1).";
    source: SourceKind, Kind::Choice(&["epoll", "ring"]), "epoll",
        "What the pool waits at.";
    promotion: Promotion, Kind::Choice(&["deferred", "eager"]), "deferred",
        "When a leader hands leadership on.";
    watch_period: Duration, Kind::Time { low: micros(10), high: micros(1_000_000) }, "200us",
        "How often the watch looks for stuck work while handlers are slow.";
    pin: Pin, Kind::Pin, "compact if a CPU is left, else none",
        "Where threads are pinned.";
    pin_strict: bool, Kind::Flag, "false",
        "Whether a failure to pin is an error.";
    spin: Duration, Kind::Time { low: micros(0), high: micros(100_000) }, "0s",
        "How long a leader polls before it sleeps.";
    max_turn: Duration, Kind::Time { low: micros(10), high: micros(1_000_000) }, "1ms",
        "How long a thread works on ready work before it looks at everything that waits.";
    lane_capacity: usize, Kind::Count { low: 2, high: 1 << 24 }, "8192",
        "Tasks that each lane has room for.";
    strand_capacity: usize, Kind::Count { low: 2, high: 1 << 24 }, "1024",
        "Tasks that each strand has room for.";
    max_handles: usize, Kind::Count { low: 1, high: 1 << 24 }, "4194304",
        "Handles, strands, timers and rings that may exist at once.";
    name: String, Kind::Text, "paceline",
        "Threads are called by it, with their number.";
    stack_size: usize, Kind::Bytes { low: 64 << 10, high: 4 << 30 }, "2 MiB",
        "Stack of each thread.";
}

section! {
    /// Settings of a [`WorkerPool`](crate::task::WorkerPool); what is `None` is left to its builder.
    WorkerSettings in workers, for WorkerPoolBuilder, rows WORKERS:
    min_active: usize, Kind::Count { low: 1, high: MAX_THREADS as u64 }, "all threads of the pool",
        "The least number of active threads: if it is set, more are active as tasks wait.";
    full: OverloadPolicy, Kind::Choice(&["wait", "reject", "run_here", "drop_oldest"]), "wait",
        "What is done with a task for which its lane has no room.";
    max_droppable: usize, Kind::Count { low: 1, high: 1 << 24 }, "the pool's lane_capacity",
        "Tasks that may wait until they are dropped for others, in all lanes.";
    max_waiting: usize, Kind::Count { low: 1, high: 1 << 24 }, "65536",
        "Tasks that may wait for their keys, and for the rate or the bound of each name.";
}

section! {
    /// Settings of a [`Log`](crate::log::Log); what is `None` is left to its builder.
    LogSettings in log, for LogBuilder, rows LOG:
    levels: Levels, Kind::Levels, "info",
        "Which records are made, for all components and for single ones.";
    facade: bool, Kind::Flag, "true",
        "Whether the log facade is told.";
    file: String, Kind::Text, "none",
        "The file that JSON lines are appended to.";
    max_size: usize, Kind::Bytes { low: 1 << 10, high: 1 << 40 }, "64 MiB",
        "How large the file may become before it is rotated.";
    files: usize, Kind::Count { low: 1, high: 1000 }, "4",
        "How many files are kept, the one that is written included.";
    capacity: usize, Kind::Count { low: 1, high: 1 << 20 }, "8192",
        "How many records may wait to be told.";
}

/// All settings, by section.
pub(super) const TABLE: &[&[Field]] =
    &[POOL, WORKERS, TASKS, HUB, HISTORY, SERVER, HTTP, WEBHOOK, OPS, BRIDGE, LOG];
