//! The sections of what stands on a pool: tasks, the hub and its history, servers, webhooks, bridges and their rules.

use super::table::{Field, Kind, Stored, Value, given, section};
use crate::error::without_login;
use crate::hub::history::{History, Limits, LinesOptions, WhenFull};
use crate::hub::{HubBuilder, Overflow};
use crate::net::{Listen, ServerBuilder};
use crate::queue::Lane;
use crate::task::{OverloadPolicy, TaskTypeBuilder};
use crate::time::{Backoff, Retry};
use core::time::Duration;

const NANO: Duration = Duration::from_nanos(1);
const MILLI: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
/// 100 years.
const LONGEST: Duration = Duration::from_secs(3_155_760_000);

/// A limit in time.
const LIMIT: Kind = Kind::Time { low: NANO, high: LONGEST };
/// A time that connections have.
const PATIENCE: Kind = Kind::Time { low: MILLI, high: LONGEST };
const DELAY: Kind = Kind::Time { low: Duration::ZERO, high: LONGEST };
const RETRIES: Kind = Kind::Count { low: 0, high: 1_000_000 };
const BUFFER: Kind = Kind::Bytes { low: 1, high: 1 << 30 };
const FILE: Kind = Kind::Bytes { low: 1, high: 1 << 50 };
const MESSAGES: Kind = Kind::Count { low: 1, high: 1 << 40 };

/// How the delays of retries grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Growth {
    /// All are `retry_delay`.
    Fixed,
    /// `retry_delay`, twice that, three times that.
    Linear,
    /// `retry_delay`, and twice as long after each other, up to `retry_cap`, with full jitter.
    Exponential,
    /// Anything from `retry_delay` to `retry_cap`.
    Random,
}

impl Stored for Growth {
    fn from_value(value: Value) -> Option<Self> {
        match String::from_value(value)?.as_str() {
            "fixed" => Some(Self::Fixed),
            "linear" => Some(Self::Linear),
            "exponential" => Some(Self::Exponential),
            "random" => Some(Self::Random),
            _ => None,
        }
    }
}

impl Stored for Lane {
    fn from_value(value: Value) -> Option<Self> {
        match String::from_value(value)?.as_str() {
            "critical" => Some(Self::Critical),
            "high" => Some(Self::High),
            "normal" => Some(Self::Normal),
            "low" => Some(Self::Low),
            _ => None,
        }
    }
}

section! {
    /// Settings of a task type; what is `None` is left to its builder.
    TaskSettings in tasks, rows TASKS:
    lane: Lane, Kind::Choice(&["critical", "high", "normal", "low"]), "normal",
        "The lane, that is the priority, of tasks.";
    timeout: Duration, LIMIT, "no limit",
        "How long each attempt may take.";
    soft_timeout: Duration, LIMIT, "no limit",
        "How long each attempt may take before it is asked to give up.";
    queue_timeout: Duration, LIMIT, "no limit",
        "How long a task may wait for its first attempt.";
    deadline: Duration, LIMIT, "no limit",
        "How long a task may take in all.";
    grace: Duration, LIMIT, "1s",
        "How long an attempt whose time is over may take to return.";
    lease: Duration, PATIENCE, "no limit",
        "How long a host may be silent about an attempt that it has taken from a completion queue.";
    retries: u32, RETRIES, "0",
        "How many retries a task may have.";
    retry_growth: Growth, Kind::Choice(&["fixed", "linear", "exponential", "random"]), "exponential",
        "How the delays of retries grow; exponential delays have full jitter.";
    retry_delay: Duration, DELAY, "100ms",
        "The delay before the first retry.";
    retry_cap: Duration, DELAY, "30s, or none for fixed and linear delays",
        "The longest delay before a retry.";
    retry_within: Duration, LIMIT, "no limit",
        "How long after its submission a task is retried.";
    max_running: u32, Kind::Count { low: 1, high: u32::MAX as u64 - 1 }, "no limit",
        "Attempts of a task type that may run at once.";
    full: OverloadPolicy, Kind::Choice(&["wait", "reject", "run_here", "drop_oldest"]), "as its worker pool",
        "What is done with a task for which its lane has no room.";
}

impl TaskSettings {
    pub(super) fn apply<'a>(&self, builder: TaskTypeBuilder<'a>) -> TaskTypeBuilder<'a> {
        let builder = given!(builder, self, lane timeout soft_timeout queue_timeout deadline);
        let builder = given!(builder, self, grace lease max_running full);
        let Some(retries) = self.retries else { return builder };
        let delay = self.retry_delay.unwrap_or(Duration::from_millis(100));
        let backoff = Growth::backoff(self.retry_growth, delay, self.retry_cap);
        let retry = Retry::new(retries, backoff);
        builder.retry(self.retry_within.map_or(retry.clone(), |within| retry.within(within)))
    }
}

impl Growth {
    /// Of what is said of retries.
    pub(crate) fn backoff(said: Option<Self>, delay: Duration, cap: Option<Duration>) -> Backoff {
        let longest = cap.unwrap_or(CAP);
        let backoff = match said.unwrap_or(Self::Exponential) {
            Self::Fixed => Backoff::fixed(delay),
            Self::Linear => Backoff::linear(delay),
            Self::Exponential => Backoff::exponential(delay).cap(longest),
            Self::Random => Backoff::random(delay..=longest.max(delay)),
        };
        cap.map_or(backoff.clone(), |cap| backoff.cap(cap))
    }
}

/// The longest delay before a retry, where delays grow by themselves.
const CAP: Duration = Duration::from_secs(30);

section! {
    /// Settings of a [`Hub`](crate::hub::Hub); what is `None` is left to its builder.
    HubSettings in hub, rows HUB:
    max_payload: usize, Kind::Bytes { low: 1, high: 1 << 30 }, "16 MiB",
        "The largest payload.";
    dead_letters: usize, Kind::Count { low: 1, high: 10_000_000 }, "10000",
        "How many dead letters are kept.";
    errors: usize, Kind::Count { low: 1, high: 1_000_000 }, "1024",
        "How many of its own errors are kept.";
    notice_interval: Duration, Kind::Time { low: MILLI, high: HOUR }, "1s",
        "How often losses of the same kind are told under $SYS.";
    count_keys: usize, Kind::Count { low: 1, high: 1_000_000 }, "none",
        "Of how many keys it is counted how often each was published.";
    stats_interval: Duration, Kind::Time { low: Duration::from_millis(10), high: DAY }, "never",
        "How often its statistics are told under $SYS.hub.statistics and in the log.";
}

section! {
    /// Settings of a [`History`]; what is `None` is left to it.
    #[derive(PartialEq)]
    HistorySettings in history, rows HISTORY:
    pattern: String, Kind::Text, ">, that is all keys",
        "Of which keys messages are kept.";
    keep_count: u64, Kind::Count { low: 0, high: 1 << 40 }, "1024",
        "How many messages are kept in memory.";
    keep_bytes: u64, FILE, "no limit",
        "How many bytes of messages are kept in memory.";
    keep_age: Duration, LIMIT, "no limit",
        "For how long messages are kept in memory.";
    archive: String, Kind::Text, "none",
        "A file of SQLite that keeps the messages, too (feature archive).";
    archive_count: u64, MESSAGES, "no limit",
        "How many messages the archive keeps.";
    archive_bytes: u64, FILE, "no limit",
        "How large the archive may become.";
    archive_age: Duration, LIMIT, "no limit",
        "For how long the archive keeps messages.";
    lines: String, Kind::Text, "none",
        "A file that lines of JSON are appended to.";
    lines_max_size: u64, Kind::Bytes { low: 1 << 10, high: 1 << 40 }, "64 MiB",
        "How large the file of lines may become before it is rotated.";
    lines_files: usize, Kind::Count { low: 1, high: 1000 }, "4",
        "How many files of lines are kept, the one that is written included.";
    commit_messages: usize, Kind::Count { low: 1, high: 1 << 16 }, "1024",
        "What waits for the disk is written when it is so many messages.";
    commit_delay: Duration, Kind::Time { low: Duration::ZERO, high: HOUR }, "10ms",
        "What waits for the disk is written after so long in any case.";
    disk_wait: Duration, DELAY, "10s",
        "How long a publisher waits for a disk that has no room for its message.";
    process_only: bool, Kind::Flag, "false",
        "Whether a commit counts when the file was written, and not only when the disk has it.";
}

impl HistorySettings {
    /// None: nothing is said of a history.
    pub(super) fn history(&self) -> Option<History> {
        if *self == Self::default() {
            return None;
        }
        let keep = (self.keep_count.or(Some(1024)), self.keep_bytes, self.keep_age);
        let history = History::of(self.pattern.as_deref().unwrap_or(">"));
        let delay = self.commit_delay.unwrap_or(Duration::from_millis(10));
        let mut history =
            history.keep(limits(keep)).commit(self.commit_messages.unwrap_or(1024), delay);
        if let Some(time) = self.disk_wait {
            history = history.when_full(WhenFull::Wait(time));
        }
        if let Some(path) = &self.lines {
            let lines = LinesOptions::at(path).max_size(self.lines_max_size.unwrap_or(64 << 20));
            history = history.lines(lines.files(self.lines_files.unwrap_or(4)));
        }
        Some(self.archived(history))
    }

    /// What is said of an archive without the feature was refused when the settings were built.
    fn archived(&self, history: History) -> History {
        #[cfg(feature = "archive")]
        if let Some(path) = &self.archive {
            use crate::hub::history::{ArchiveOptions, Durability};
            let keep = limits((self.archive_count, self.archive_bytes, self.archive_age));
            let durability = match self.process_only {
                Some(true) => Durability::Process,
                _ => Durability::Power,
            };
            return history.archive(ArchiveOptions::at(path).keep(keep).durability(durability));
        }
        history
    }
}

fn limits((count, bytes, age): (Option<u64>, Option<u64>, Option<Duration>)) -> Limits {
    let limits = Limits::unlimited();
    let limits = count.map_or(limits.clone(), |most| limits.count(most));
    let limits = bytes.map_or(limits.clone(), |most| limits.bytes(most));
    age.map_or(limits.clone(), |most| limits.age(most))
}

impl HubSettings {
    pub(super) fn apply<'a>(&self, builder: HubBuilder<'a>) -> HubBuilder<'a> {
        given!(builder, self, max_payload dead_letters errors notice_interval count_keys stats_interval)
    }
}

section! {
    /// Settings of a listener, of a [`Server`](crate::net::Server) or of an HTTP server; what is `None` is left to it.
    ServerSettings in server, rows SERVER:
    address: String, Kind::Text, "none",
        "Where it listens: `127.0.0.1:80`, `[::1]:80`, `*:80`, `unix:/run/socket` or `unix:@name`.";
    max_connections: usize, Kind::Count { low: 1, high: 1 << 24 }, "1048576",
        "Connections at once.";
    max_requests: usize, Kind::Count { low: 1, high: 1 << 40 }, "no limit",
        "Admitted requests at once, over all connections.";
    max_unconsumed: usize, Kind::Bytes { low: 1, high: 1 << 40 }, "1 MiB, or max_head and 128 KiB for HTTP",
        "Bytes that a handler may leave unconsumed.";
    output_low: usize, Kind::Bytes { low: 0, high: 1 << 40 }, "64 KiB",
        "Reading goes on when the output of a connection has fallen to this.";
    output_high: usize, Kind::Bytes { low: 1, high: 1 << 40 }, "256 KiB",
        "Reading pauses when the output of a connection is above this.";
    output_max: usize, Kind::Bytes { low: 1, high: 1 << 40 }, "16 MiB",
        "A write is refused if the output of its connection would exceed this.";
    idle_timeout: Duration, PATIENCE, "no limit, or keep_alive_timeout for HTTP",
        "How long nothing may be sent or received on a connection.";
    read_timeout: Duration, PATIENCE, "no limit, or head_timeout for HTTP",
        "How long the rest of a message may take.";
    stall_timeout: Duration, PATIENCE, "30s",
        "How long a peer may take nothing of what is queued for it.";
    linger: Duration, DELAY, "2s",
        "How long a peer that was told the end may take to end, too.";
    keep_alive: Duration, Kind::Time { low: Duration::from_secs(1), high: Duration::from_secs(32_767) }, "off",
        "After how long TCP asks silent peers whether they are there.";
    no_delay: bool, Kind::Flag, "true",
        "Whether TCP sends small writes at once.";
    send_buffer: usize, BUFFER, "the system's",
        "Bytes that the kernel buffers for sending.";
    receive_buffer: usize, BUFFER, "the system's",
        "Bytes that the kernel buffers for receiving.";
    backlog: u32, Kind::Count { low: 1, high: 1 << 20 }, "4096",
        "Connections that may wait to be accepted.";
    reuse_port: bool, Kind::Flag, "false",
        "Whether several processes may listen on the same port.";
    v6_only: bool, Kind::Flag, "false",
        "Whether IPv6 listeners take no IPv4.";
}

impl ServerSettings {
    /// None: nothing is said of where.
    pub(super) fn listen(&self) -> Option<Listen> {
        let listen = Listen::on(self.address.as_deref()?);
        let listen = given!(listen, self, max_connections max_requests max_unconsumed);
        let listen =
            given!(listen, self, idle_timeout read_timeout stall_timeout linger keep_alive);
        let mut listen =
            given!(listen, self, no_delay send_buffer receive_buffer reuse_port v6_only);
        if let Some(connections) = self.backlog {
            listen = listen.backlog(connections as i32);
        }
        match (self.output_low, self.output_high, self.output_max) {
            (None, None, None) => Some(listen),
            (low, high, max) => Some(listen.output_marks(
                low.unwrap_or(64 << 10),
                high.unwrap_or(256 << 10),
                max.unwrap_or(16 << 20),
            )),
        }
    }

    pub(super) fn apply(&self, builder: ServerBuilder) -> ServerBuilder {
        match self.listen() {
            Some(listen) => builder.listen(listen),
            None => builder,
        }
    }
}

section! {
    /// Settings of an HTTP server; what is `None` is left to its builder.
    HttpSettings in http, rows HTTP:
    max_head: usize, Kind::Bytes { low: 64, high: 1 << 20 }, "16 KiB",
        "Bytes of a request's head.";
    max_target: usize, Kind::Bytes { low: 1, high: 1 << 20 }, "8 KiB",
        "Bytes of a request's target.";
    max_headers: usize, Kind::Count { low: 1, high: 256 }, "100",
        "Headers of a request.";
    max_body: usize, Kind::Bytes { low: 0, high: 1 << 40 }, "1 MiB",
        "Bytes of a body that is not streamed.";
    body_rate: u64, Kind::Bytes { low: 0, high: 1 << 40 }, "500 bytes",
        "How many bytes of a body must come per second; 0 for any.";
    head_timeout: Duration, PATIENCE, "10s",
        "How long a head may take from its first byte.";
    body_timeout: Duration, PATIENCE, "10s",
        "How often the rate of a body is looked at.";
    keep_alive_timeout: Duration, PATIENCE, "60s",
        "How long a connection may have no request.";
    keep_alive_requests: u32, Kind::Count { low: 1, high: u32::MAX as u64 - 1 }, "no limit",
        "Requests on one connection.";
    max_requests: usize, Kind::Count { low: 1, high: 1 << 40 }, "no limit",
        "Requests in work at once, over all connections.";
}

#[cfg(feature = "http")]
impl super::Settings {
    /// An HTTP builder with the settings of the section `http`, which listens at `server.address` if it is set, with
    /// the settings of that section.
    pub fn http_builder(&self, pool: &crate::Pool) -> crate::http::HttpBuilder {
        let http = &self.http;
        let builder = crate::http::Http::builder(pool);
        let builder = given!(builder, http, max_head max_target max_headers max_body body_rate);
        let builder = given!(builder, http, head_timeout body_timeout keep_alive_timeout);
        let builder = given!(builder, http, keep_alive_requests max_requests);
        match self.server.listen() {
            Some(listen) => builder.listen(listen),
            None => builder,
        }
    }
}

section! {
    /// Settings of a webhook; what is `None` is left to its builder.
    WebhookSettings in webhook, rows WEBHOOK:
    url: String, Kind::Text, "none",
        "What is posted to.";
    capacity: usize, Kind::Count { low: 1, high: 1 << 16 }, "1024",
        "How many bodies may wait.";
    timeout: Duration, Kind::Time { low: MILLI, high: Duration::from_secs(300) }, "10s",
        "How long one attempt may take.";
    retries: u32, RETRIES, "5",
        "How many attempts may follow one that failed.";
    retry_delay: Duration, DELAY, "1s",
        "The delay before the first retry; it doubles with each other.";
    retry_cap: Duration, DELAY, "none",
        "The longest delay before a retry.";
    proxy: String, Kind::Text, "none",
        "A proxy: `http://proxy.example:3128`.";
}

section! {
    /// Settings of an operations endpoint; what is `None` is left to its builder.
    OpsSettings in ops, rows OPS:
    address: String, Kind::Text, "none, that is no endpoint",
        "Where it listens: `127.0.0.1:9090`.";
    token: String, Kind::Text, "none",
        "What requests must show, of at least 16 characters. Without one it listens for this machine only, and answers nothing that a proxy has passed on.";
    blocked_after: Duration, Kind::Time { low: MILLI, high: HOUR }, "500ms",
        "How long a handler or task may hold its thread before the thread is shown as blocked.";
    ready_after: Duration, Kind::Time { low: MILLI, high: HOUR }, "5s",
        "How long the oldest task, event or due timer may wait before the pool is not ready.";
    dead_after: Duration, Kind::Time { low: MILLI, high: HOUR }, "30s",
        "How long something must have waited, and nothing have begun or ended, before the pool is dead.";
}

#[cfg(feature = "webhook")]
impl super::Settings {
    /// A webhook builder with the settings of the section `webhook`. `None` if its `url` is not set.
    pub fn webhook_builder(&self) -> Option<crate::admin::WebhookBuilder> {
        let webhook = &self.webhook;
        let mut builder = crate::admin::Webhook::builder(webhook.url.as_deref()?);
        builder = given!(builder, webhook, capacity timeout);
        let delay = webhook.retry_delay.unwrap_or(Duration::from_secs(1));
        let backoff = Backoff::exponential(delay);
        let backoff = webhook.retry_cap.map_or(backoff.clone(), |cap| backoff.cap(cap));
        builder = builder.retry(Retry::new(webhook.retries.unwrap_or(5), backoff));
        Some(match &webhook.proxy {
            Some(url) => builder.proxy(url),
            None => builder,
        })
    }
}

const WAITING: Kind = Kind::Count { low: 1, high: 1 << 24 };
const IN_FLIGHT: Kind = Kind::Count { low: 1, high: 1 << 16 };
const TENTH: Duration = Duration::from_millis(100);
/// What a connection has time for.
const CONNECTING: Kind = Kind::Time { low: Duration::from_millis(10), high: DAY };

section! {
    /// Settings of a bridge; what is `None` is left to its builder.
    BridgeSettings in bridge, rows BRIDGE:
    servers: Vec<String>, Kind::Texts, "none, that is no bridge",
        "The broker: `nats://host:4222` or `tls://host:4222`; several servers of one cluster, any one of which is used.";
    name: String, Kind::Text, "nats",
        "What health, figures, notices, the live page and the broker's tools call it.";
    user: String, Kind::Text, "none",
        "The user that logs in, with a password.";
    password: String, Kind::Text, "none",
        "Its password.";
    password_file: String, Kind::Text, "none",
        "A file that has its password, read at each connection.";
    token: String, Kind::Text, "none",
        "The token that logs in.";
    token_file: String, Kind::Text, "none",
        "A file that has the token, read at each connection.";
    nkey_file: String, Kind::Text, "none",
        "A file that has the seed of the nkey that logs in, read at each connection.";
    credentials_file: String, Kind::Text, "none",
        "A file of the broker's tools, `.creds`, that logs in, read at each connection.";
    tls_required: bool, Kind::Flag, "false",
        "Whether a connection without TLS is refused, also where an address is `nats://`.";
    tls_roots: String, Kind::Text, "those of the system",
        "A PEM file of the certificates that are trusted.";
    tls_certificate: String, Kind::Text, "none",
        "A PEM file of the certificate that is shown to the broker, with `tls_key`.";
    tls_key: String, Kind::Text, "none",
        "A PEM file of its key.";
    connect_timeout: Duration, CONNECTING, "5s",
        "How long an attempt to connect may take.";
    ping_interval: Duration, CONNECTING, "10s",
        "How often the broker is asked for a sign of life.";
    reconnect_delay: Duration, Kind::Time { low: MILLI, high: HOUR }, "50ms",
        "How long it waits before the second attempt to connect; twice as long each time, and half of it by chance.";
    reconnect_cap: Duration, Kind::Time { low: MILLI, high: DAY }, "10s",
        "The longest wait before an attempt to connect.";
    window: Duration, Kind::Time { low: TENTH, high: DAY }, "2m",
        "How long ids of messages are kept, so that what comes twice is dropped.";
    window_count: usize, Kind::Count { low: 0, high: 1 << 24 }, "100000",
        "How many ids are kept; 0 for none.";
    permit: Vec<String>, Kind::Texts, "all keys",
        "Patterns: rules are refused whose keys are not all matched by one of them.";
    exports: Vec<ExportSettings>, Kind::Exports, "none",
        "Keys that go from the hub to the broker.";
    imports: Vec<ImportSettings>, Kind::Imports, "none",
        "Keys that come from the broker to the hub.";
}

/// One rule of a list.
pub(super) trait Rule: Default {
    const FIELDS: &'static [Field];
    /// Fields that mean something with a stream only.
    const OF_STREAMS: &'static [&'static str];
    fn store(&mut self, field: &Field, value: Value);
}

section! {
    /// One export of a bridge; what is `None` is left to the rule.
    ExportSettings, rule "bridge.exports", rows EXPORTS, of streams ["in_flight", "spool"]:
    pattern: String, Kind::Text, "none: it is needed",
        "Messages whose key matches it.";
    prefix: String, Kind::Text, "nothing",
        "What is put before the key: tokens with a dot behind each, `eu.shop.`.";
    buffer: usize, WAITING, "65536",
        "How many messages wait for the broker.";
    overflow: Overflow, Kind::Choice(&["block", "conflate", "drop_newest", "drop_oldest", "reject"]),
        "drop_oldest, with a stream block",
        "What becomes of a message for a full buffer; block is for up to 10 seconds.";
    stream: String, Kind::Text, "none, that is at most once",
        "The stream that stores each message, at least once.";
    in_flight: usize, IN_FLIGHT, "256",
        "With a stream: how many messages may be under way to the broker.";
    spool: String, Kind::Text, "none, that is they wait in memory",
        "With a stream: messages wait in the archive of the hub's history; how far they are stored is in this file.";
}

section! {
    /// One import of a bridge; what is `None` is left to the rule.
    ImportSettings, rule "bridge.imports", rows IMPORTS, of streams [
        "durable", "start_at", "retries", "retry_growth", "retry_delay", "retry_cap", "in_flight", "ack_wait",
        "handle_timeout"
    ]:
    pattern: String, Kind::Text, "none: it is needed",
        "Messages whose key matches it.";
    prefix: String, Kind::Text, "nothing",
        "What is taken off the front of the broker's subject: tokens with a dot behind each, `eu.shop.`.";
    group: String, Kind::Text, "none: it gets all messages",
        "Without a stream: the group that shares the messages, of which one gets each.";
    buffer: usize, WAITING, "65536",
        "How many messages wait for room in the hub; more are lost.";
    request_timeout: Duration, Kind::Time { low: MILLI, high: LONGEST }, "30s",
        "How long a request from elsewhere waits for its reply.";
    stream: String, Kind::Text, "none, that is at most once",
        "The stream that the messages are taken from, at least once, with `durable`.";
    durable: String, Kind::Text, "none: with a stream it is needed",
        "The name under which the broker knows how far the messages were handled; who shares it shares them.";
    start_at: String, Kind::Start, "first",
        "Where it begins if the broker does not know the durable name.";
    retries: u32, RETRIES, "9",
        "How often a message that a handler failed at comes again, until it is a dead letter.";
    retry_growth: Growth, Kind::Choice(&["fixed", "linear", "exponential", "random"]), "exponential",
        "How the delays of retries grow; exponential delays have full jitter.";
    retry_delay: Duration, DELAY, "500ms",
        "The delay before the first retry.";
    retry_cap: Duration, DELAY, "30s, or none for fixed and linear delays",
        "The longest delay before a retry.";
    in_flight: usize, IN_FLIGHT, "256",
        "How many messages may be in the hub and not acknowledged.";
    ack_wait: Duration, Kind::Time { low: TENTH, high: DAY }, "30s",
        "After how long without a word of it the broker sends a message again.";
    handle_timeout: Duration, Kind::Time { low: TENTH, high: LONGEST }, "1h",
        "How long handlers may take for a message until the broker sends it again all the same.";
}

impl Stored for Overflow {
    fn from_value(value: Value) -> Option<Self> {
        match String::from_value(value)?.as_str() {
            "block" => Some(Self::Block(Duration::from_secs(10))),
            "conflate" => Some(Self::Conflate),
            "drop_newest" => Some(Self::DropNewest),
            "drop_oldest" => Some(Self::DropOldest),
            "reject" => Some(Self::Reject),
            _ => None,
        }
    }
}

/// What may be said of where an import begins.
pub(super) fn is_start(text: &str) -> bool {
    matches!(text, "first" | "new")
        || text.parse::<u64>().is_ok_and(|number| number > 0)
        || humantime::parse_rfc3339(text).is_ok()
}

/// The text of a setting that anybody may see.
pub(super) fn without_secret(key: &str, text: String) -> String {
    match key {
        "bridge.servers" => text.split(',').map(without_login).collect::<Vec<_>>().join(","),
        _ if SECRETS.contains(&key) => "***".into(),
        _ => text,
    }
}

/// Settings whose values are shown to nobody.
const SECRETS: [&str; 5] =
    ["webhook.url", "webhook.proxy", "ops.token", "bridge.password", "bridge.token"];

impl BridgeSettings {
    /// A setting that must not be set as it is: whether it is set, and what would be right.
    pub(super) fn contradiction(&self) -> Option<(&'static str, bool, String)> {
        let secret = self.password.is_some() || self.password_file.is_some();
        let logins = [
            ("user", self.user.is_some() || secret),
            ("token", self.token.is_some()),
            ("token_file", self.token_file.is_some()),
            ("nkey_file", self.nkey_file.is_some()),
            ("credentials_file", self.credentials_file.is_some()),
        ];
        let mut logins = logins.into_iter().filter(|(_, is_set)| *is_set);
        if let (Some((first, _)), Some((second, _))) = (logins.next(), logins.next()) {
            return Some((second, true, format!("unset, as bridge.{first} is set")));
        }
        if self.password.is_some() && self.password_file.is_some() {
            return Some(("password_file", true, "unset, as bridge.password is set".into()));
        }
        let needs = [
            ("user", self.user.is_some(), "password", secret),
            ("tls_key", self.tls_key.is_some(), "tls_certificate", self.tls_certificate.is_some()),
        ];
        needs.into_iter().find(|(_, one, _, two)| one != two).map(|(first, one, second, _)| {
            let (missing, given) = if one { (second, first) } else { (first, second) };
            (missing, false, format!("set, as bridge.{given} is set"))
        })
    }
}
