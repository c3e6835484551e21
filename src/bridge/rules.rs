//! Which keys cross, how, and with what promise.

use crate::error::{Error, Result};
use crate::hub::{Overflow, Pattern, check_crossing};
use crate::time::{Backoff, Retry};
use core::str::FromStr;
use core::time::Duration;
use std::path::PathBuf;
use std::time::SystemTime;

/// Of an import at least once: more than a broker is sent acknowledgements in the time between two signs of life.
const MAX_IN_FLIGHT: usize = 65_536;
/// The signs of life come three times as often.
pub(super) const LEAST_ACK_WAIT: Duration = Duration::from_millis(100);

/// Keys that go from the hub to the broker. A pattern as text is one, too: at most once, without a prefix.
///
/// ```
/// use paceline::bridge::Export;
/// use paceline::hub::Overflow;
/// // Stored by the broker's stream ORDERS; the publisher waits for room while 10 000 wait for the broker.
/// let orders = Export::new("orders.>").at_least_once("ORDERS").buffer(10_000);
/// // What is not sent when the next comes is not worth sending.
/// let positions = Export::new("position.*").overflow(Overflow::Conflate).prefix("fleet.");
/// # let _ = (orders, positions);
/// ```
#[derive(Clone, Debug)]
pub struct Export {
    pub(super) pattern: String,
    pub(super) prefix: String,
    pub(super) buffer: usize,
    pub(super) overflow: Option<Overflow>,
    pub(super) stream: Option<String>,
    pub(super) in_flight: usize,
    pub(super) keeps: Keeps,
    pub(super) spool: Option<PathBuf>,
}

/// For how long a stream that the bridge makes keeps its messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keeps {
    /// Until somebody sets limits with the broker's tools.
    All,
    /// Until one consumer has acknowledged it.
    UntilDone,
    For(Duration),
    /// The last one of each subject, for so long.
    Last(Duration),
}

impl Export {
    /// Messages whose key matches the pattern.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            prefix: String::new(),
            buffer: 65_536,
            overflow: None,
            stream: None,
            in_flight: 256,
            keeps: Keeps::All,
            spool: None,
        }
    }

    /// What is put before the key, to make the broker's subject of it: whole tokens with a dot behind each, "eu.shop.".
    /// Default: nothing.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How many messages wait for the broker, 1 to 2^24. Default: 65536.
    #[must_use]
    pub fn buffer(mut self, messages: usize) -> Self {
        self.buffer = messages;
        self
    }

    /// What becomes of a message for a full buffer. Default: the oldest one is dropped, and counted; at least once: the
    /// publisher waits for room for up to 10 seconds, where it may wait, and publishing fails then with
    /// [`Error::MailboxFull`]. Local subscribers have got the message in any case.
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = Some(overflow);
        self
    }

    /// Has the broker store each message, in this stream of its JetStream, which is made if there is none of this name:
    /// see [`Bridge`](super::Bridge). A message is sent again until the broker says that it is stored. Requests are not
    /// stored: they are sent as with exports at most once. Default: at most once.
    #[must_use]
    pub fn at_least_once(mut self, stream: impl Into<String>) -> Self {
        self.stream = Some(stream.into());
        self
    }

    /// At least once: how many messages may be under way to the broker at the same time, 1 to 65536. Default: 256. With 1
    /// each is stored before the next is sent.
    #[must_use]
    pub fn in_flight(mut self, messages: usize) -> Self {
        self.in_flight = messages;
        self
    }

    /// At least once: messages wait for the broker in the archive of the hub's history instead of memory, as many as that
    /// keeps, and are sent though the process ends or dies meanwhile. The hub needs a
    /// [history](crate::hub::history::History) with an archive of all keys that the pattern matches. In this file, which
    /// is made if it is not there, the bridge keeps how far the broker has stored them; it belongs to that archive, and to
    /// one bridge at a time. Without it the export begins with the oldest message that is kept. Neither
    /// [`buffer`](Self::buffer) nor [`overflow`](Self::overflow) means anything then: what the archive lets go of before
    /// it was sent counts as dropped. Requests are not carried. Default: they wait in memory.
    #[must_use]
    pub fn spool(mut self, path: impl Into<PathBuf>) -> Self {
        self.spool = Some(path.into());
        self
    }

    /// The stream, if it is made, keeps its messages for so long.
    pub(super) fn keeps(mut self, keeps: Keeps) -> Self {
        self.keeps = keeps;
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        check_crossing("the pattern of an export", &self.pattern)?;
        check_prefix(&self.prefix)?;
        check_buffer(self.buffer)?;
        check_in_flight(self.in_flight)?;
        if let (Some(path), None) = (&self.spool, &self.stream) {
            let allowed = "that of an export at least once, with a stream";
            return Err(Error::invalid("spool", format!("{path:?}"), allowed));
        }
        if let (Some(_), Some(overflow)) = (&self.spool, self.overflow) {
            let allowed = "unset with a spool: its archive says what is kept";
            return Err(Error::invalid("overflow", format!("{overflow:?}"), allowed));
        }
        self.stream.as_deref().map_or(Ok(()), |name| check_name("stream", name))
    }

    /// Whether a message may be thrown away that its publisher was not refused.
    pub(super) fn may_drop(&self) -> bool {
        let keeps = matches!(self.overflow_policy(), Overflow::Block(_) | Overflow::Reject);
        self.spool.is_none() && !keeps
    }

    pub(super) fn overflow_policy(&self) -> Overflow {
        self.overflow.unwrap_or(match self.stream {
            Some(_) => Overflow::Block(Duration::from_secs(10)),
            None => Overflow::DropOldest,
        })
    }
}

impl<T: Into<String>> From<T> for Export {
    fn from(pattern: T) -> Self {
        Self::new(pattern)
    }
}

/// Where an import from a stream begins, if the broker does not know how far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum StartAt {
    /// With the first message that the stream has.
    #[default]
    First,
    /// With what is stored from now on.
    New,
    /// With the message of this number in the stream, or the next that there is.
    Sequence(u64),
    /// With the first message that was stored then or later.
    Time(SystemTime),
}

/// What text may say of it.
const STARTS: &str = "first, new, a number from 1 on, or a time as 2026-11-28T06:00:00Z";

/// From "first", "new", a number, or a time as RFC 3339 writes it.
impl FromStr for StartAt {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "first" => Ok(Self::First),
            "new" => Ok(Self::New),
            _ => match (text.parse(), humantime::parse_rfc3339(text)) {
                (Ok(number), _) if number > 0 => Ok(Self::Sequence(number)),
                (_, Ok(time)) => Ok(Self::Time(time)),
                _ => Err(Error::invalid("start_at", format!("{text:?}"), STARTS)),
            },
        }
    }
}

/// Keys that come from the broker to the hub. A pattern as text is one, too: at most once, to each process that imports
/// it.
///
/// ```
/// use paceline::{Retry, bridge::Import};
/// use std::time::Duration;
/// // One of all processes of the group "billing" gets each.
/// let requests = Import::new("billing.>").group("billing");
/// // Acknowledged when the hub's handlers have succeeded, tried 5 times in all.
/// let orders = Import::new("orders.>")
///     .at_least_once("ORDERS", "billing")
///     .retry(Retry::fixed(4, Duration::from_secs(1)));
/// # let _ = (requests, orders);
/// ```
#[derive(Clone, Debug)]
pub struct Import {
    pub(super) pattern: String,
    pub(super) prefix: String,
    pub(super) group: Option<String>,
    pub(super) buffer: usize,
    pub(super) request_timeout: Duration,
    pub(super) stream: Option<Source>,
}

/// Of an import at least once.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) stream: String,
    /// Of the stream, if those are more than the import's own.
    pub(super) subjects: Option<String>,
    pub(super) keeps: Keeps,
    pub(super) durable: String,
    pub(super) start: StartAt,
    pub(super) retry: Retry,
    pub(super) in_flight: usize,
    pub(super) ack_wait: Duration,
    pub(super) handle_timeout: Duration,
}

impl Import {
    /// Messages whose key matches the pattern. Keys of the hub's own and inboxes never come.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            prefix: String::new(),
            group: None,
            buffer: 65_536,
            request_timeout: Duration::from_secs(30),
            stream: None,
        }
    }

    /// What is taken off the front of the broker's subject to make the hub's key of it: that which the exporter puts
    /// there. The pattern is that of the keys. Default: nothing.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Shares the messages with all other imports of this pattern in this group, of any process: each message goes to one
    /// of them. A request that comes to one whose hub has no subscription for it fails at once; without a group it is
    /// left to others, and fails by its time. Default: this import gets all messages.
    #[must_use]
    pub fn group(mut self, name: impl Into<String>) -> Self {
        self.group = Some(name.into());
        self
    }

    /// How many messages wait for room in the hub's mailboxes, 1 to 2^24; the broker may send as many as it likes, so what
    /// comes beyond is lost, and counted. Default: 65536.
    #[must_use]
    pub fn buffer(mut self, messages: usize) -> Self {
        self.buffer = messages;
        self
    }

    /// How long a request from elsewhere waits for the reply of this hub, at least 1 ms. Default: 30 seconds.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// Takes messages out of a stream of the broker's JetStream, under this name, which all processes share that take
    /// turns at the same messages: the broker knows under it how far they have come. A message is acknowledged when all
    /// the hub's subscriptions that got it have dealt with it. If a handler fails at it, or no subscription matches, it
    /// comes again, to any of the processes. The stream is made if there is none of this name. Default: at most once.
    #[must_use]
    pub fn at_least_once(mut self, stream: impl Into<String>, durable: impl Into<String>) -> Self {
        self.stream = Some(Source {
            stream: stream.into(),
            subjects: None,
            keeps: Keeps::All,
            durable: durable.into(),
            start: StartAt::First,
            retry: Retry::new(9, Backoff::exponential(Duration::from_millis(500))),
            in_flight: 256,
            ack_wait: Duration::from_secs(30),
            handle_timeout: Duration::from_secs(3600),
        });
        self
    }

    /// Of a stream with these subjects that keeps its messages for so long.
    pub(super) fn of_stream(self, subjects: String, keeps: Keeps) -> Self {
        self.source(|source| {
            source.subjects = Some(subjects);
            source.keeps = keeps;
        })
    }

    fn source(mut self, change: impl FnOnce(&mut Source)) -> Self {
        if let Some(source) = &mut self.stream {
            change(source);
        }
        self
    }

    /// At least once: where it begins, if the broker does not know its name yet. Default: with the first message of the
    /// stream.
    #[must_use]
    pub fn start_at(self, start: StartAt) -> Self {
        self.source(|source| source.start = start)
    }

    /// At least once: how often, and after which delays, the broker is to send a message again that a handler has failed
    /// at. Past the last attempt it becomes a dead letter of the hub, and one that the broker keeps in the stream
    /// `paceline_dead`, and comes no more; so does one that has ended its process in its last attempt. Default: 9 times, after
    /// half a second and then twice as long each time, up to 30 seconds. Retries of the subscription itself come before
    /// that, and count as one attempt.
    #[must_use]
    pub fn retry(self, retry: Retry) -> Self {
        self.source(|source| source.retry = retry)
    }

    /// At least once: how many messages may be in the hub and not acknowledged, 1 to 65536. Default: 256. With 1, where the
    /// consumer is made, the broker gives out one message at a time to all processes of the durable name together: so the
    /// order holds whatever fails or dies.
    #[must_use]
    pub fn in_flight(self, messages: usize) -> Self {
        self.source(|source| source.in_flight = messages)
    }

    /// At least once: after how long the broker sends a message again of which it has not heard, because the process has
    /// ended, say: 100 ms to 1 day. While a handler works the bridge tells the broker so three times as often. A consumer that
    /// is there keeps its own. Default: 30 seconds.
    #[must_use]
    pub fn ack_wait(self, wait: Duration) -> Self {
        self.source(|source| source.ack_wait = wait)
    }

    /// At least once: for how long it does that at the most, at least 100 ms. Then the broker sends the message again,
    /// though a handler may be at it still. Default: one hour.
    #[must_use]
    pub fn handle_timeout(self, limit: Duration) -> Self {
        self.source(|source| source.handle_timeout = limit)
    }

    pub(super) fn check(&self) -> Result<()> {
        check_crossing("the pattern of an import", &self.pattern)?;
        check_prefix(&self.prefix)?;
        check_buffer(self.buffer)?;
        check_least("request_timeout", self.request_timeout, Duration::from_millis(1))?;
        if let Some(group) = &self.group {
            check_name("group", group)?;
        }
        let Some(source) = &self.stream else { return Ok(()) };
        check_name("stream", &source.stream)?;
        check_name("durable name", &source.durable)?;
        check_in_flight(source.in_flight)?;
        source.retry.check()?;
        if !(LEAST_ACK_WAIT..=Duration::from_secs(86_400)).contains(&source.ack_wait) {
            let value = format!("{:?}", source.ack_wait);
            return Err(Error::invalid("ack_wait", value, "100 ms to 1 day"));
        }
        check_least("handle_timeout", source.handle_timeout, Duration::from_millis(100))?;
        if source.start == StartAt::Sequence(0) {
            return Err(Error::invalid("start_at", 0, STARTS));
        }
        match self.group {
            None => Ok(()),
            Some(_) => Err(Error::invalid(
                "group",
                "with at_least_once",
                "none: imports of the same durable name share its messages",
            )),
        }
    }
}

impl<T: Into<String>> From<T> for Import {
    fn from(pattern: T) -> Self {
        Self::new(pattern)
    }
}

fn check_buffer(messages: usize) -> Result<()> {
    match (1..=1 << 24).contains(&messages) {
        true => Ok(()),
        false => Err(Error::invalid("buffer", messages, "1 to 16777216")),
    }
}

fn check_least(what: &'static str, time: Duration, least: Duration) -> Result<()> {
    match time >= least {
        true => Ok(()),
        false => Err(Error::invalid(what, format!("{time:?}"), format!("at least {least:?}"))),
    }
}

fn check_in_flight(messages: usize) -> Result<()> {
    match (1..=MAX_IN_FLIGHT).contains(&messages) {
        true => Ok(()),
        false => Err(Error::invalid("in_flight", messages, format!("1 to {MAX_IN_FLIGHT}"))),
    }
}

fn check_prefix(prefix: &str) -> Result<()> {
    let is_good = prefix.is_empty()
        || prefix.strip_suffix('.').is_some_and(|tokens| {
            Pattern::new(tokens).is_ok_and(|tokens| tokens.is_literal())
                && check_crossing("prefix", tokens).is_ok()
        });
    match is_good {
        true => Ok(()),
        false => {
            let allowed = "tokens with a dot behind each, \"eu.shop.\", the first not $… or _INBOX";
            Err(Error::invalid("prefix", format!("{prefix:?}"), allowed))
        }
    }
}

/// Names of streams, of groups, and durable ones.
pub(super) fn check_name(what: &'static str, name: &str) -> Result<()> {
    check_name_of(what, name, 200)
}

/// Names of up to so many bytes.
pub(super) fn check_name_of(what: &'static str, name: &str, most: usize) -> Result<()> {
    // Brokers before 2.9.16, and some later ones, deliver nothing where there is a % in the name of a stream or a consumer.
    let is_good = (1..=most).contains(&name.len())
        && name.chars().all(|c| !c.is_whitespace() && !c.is_control() && !".*>/\\%".contains(c));
    match is_good {
        true => Ok(()),
        false => {
            let allowed = format!(
                "1 to {most} bytes without blanks, control characters, and any of . * > / \\ %"
            );
            Err(Error::invalid(what, format!("{name:?}"), allowed))
        }
    }
}
