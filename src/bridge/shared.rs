//! What the bridge's own thread and those who ask it share.

use super::figures;
use super::outbox::{Bell, Outbox};
use super::question::{Answer, Ask, Found, What};
use super::rules::{Export, Import};
use super::settings::NatsSettings;
use super::sink::Sink;
use super::stats::{BridgeStats, Counters, ExportStats, ImportStats, count};
use super::waiters::Waiters;
use super::wire::Origin;
use crate::error::{Error, Result};
use crate::hub::{Hub, Pattern, Severity};
use crate::metrics::Collector;
use crate::pool::{Remains, Served};
use async_nats::ServerInfo;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

/// See the head of the room.
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) hub: Hub,
    pub(super) origin: Origin,
    pub(super) settings: NatsSettings,
    pub(super) exports: Vec<Exporting>,
    pub(super) imports: Vec<Importing>,
    /// How many ids of messages are kept, and for how long.
    pub(super) window: (Duration, usize),
    pub(super) status: Mutex<Status>,
    pub(super) requests_out: AtomicU64,
    pub(super) requests_in: AtomicU64,
    /// Messages of imports that came while its buffer was full.
    pub(super) lost: AtomicU64,
    pub(super) waiters: Arc<Waiters>,
    pub(super) asks: UnboundedSender<Ask>,
    /// Until when it may take to end, once it is to end.
    pub(super) closing: watch::Sender<Option<Instant>>,
    /// Whether its host is of no use without the broker.
    pub(super) is_vital: bool,
}

/// One export: what waits for the broker is in its outbox.
pub(super) struct Exporting {
    pub(super) rule: Export,
    pub(super) pattern: Pattern,
    pub(super) outbox: Outbox,
    pub(super) bell: Arc<Bell>,
    pub(super) counters: Arc<Counters>,
    pub(super) trouble: Trouble,
}

/// What the broker refuses to one rule, for as long as it does: until it has stored something of it, or nothing of it waits.
#[derive(Default)]
pub(super) struct Trouble(Mutex<Option<Against>>);

struct Against {
    reason: String,
    /// The broker says so once, and then it does not answer: its silence is no other reason.
    is_forbidden: bool,
}

impl Trouble {
    fn lock(&self) -> MutexGuard<'_, Option<Against>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reason(&self) -> Option<String> {
        self.lock().as_ref().map(|it| it.reason.clone())
    }

    pub(super) fn is_forbidden(&self) -> bool {
        self.lock().as_ref().is_some_and(|it| it.is_forbidden)
    }

    pub(super) fn end(&self) {
        *self.lock() = None;
    }
}

pub(super) struct Importing {
    pub(super) rule: Import,
    /// Where messages of a stream go.
    pub(super) sink: Arc<dyn Sink>,
    pub(super) counters: Arc<Counters>,
    pub(super) trouble: Trouble,
}

#[derive(Default)]
pub(super) struct Status {
    pub(super) is_connected: bool,
    pub(super) server: String,
    pub(super) connects: u64,
    /// That its version is not safe has been said.
    pub(super) is_old: bool,
    pub(super) reason: Option<String>,
    pub(super) has_ended: bool,
    /// How many messages waited at its end, and those of them that a stream was to store.
    pub(super) left: u64,
    pub(super) unstored: u64,
}

impl Shared {
    pub(super) fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what has happened, under `$SYS.bridge.`.
    pub(super) fn tell(
        &self,
        event: &'static str,
        severity: Severity,
        message: String,
        mut fields: Value,
    ) {
        if let Value::Object(fields) = &mut fields {
            fields.insert("bridge".into(), json!(self.name));
        }
        self.hub.tell_of_bridge(event, severity, &self.name, message, fields);
    }

    /// The broker may forget numbers of a work queue if it is killed: its streams are not safe, and that is said once.
    pub(super) fn old_version(&self, version: &str) {
        let has_streams = self.exports.iter().any(|one| one.rule.stream.is_some())
            || self.imports.iter().any(|one| one.rule.stream.is_some());
        let mut status = self.status();
        if !has_streams || core::mem::replace(&mut status.is_old, true) {
            return;
        }
        drop(status);
        let message = format!(
            "nats-server {version} may forget the last messages of a stream if it is killed; 2.10.26 and newer do not",
        );
        self.tell("bridge.old_version", Severity::Warning, message, json!({ "version": version }));
    }

    pub(super) fn connected(&self, server: &ServerInfo) {
        let server = server.server_name.as_str();
        let mut status = self.status();
        status.is_connected = true;
        status.server = server.to_owned();
        status.connects += 1;
        status.reason = None;
        let connects = status.connects;
        drop(status);
        let message = format!("connected to {server}; connection {connects}");
        self.tell(
            "bridge.connected",
            Severity::Info,
            message,
            json!({ "server": server, "connects": connects }),
        );
    }

    /// Asks for a message of a stream: see [`Bridge::ask_then`](super::Bridge::ask_then).
    pub(super) fn ask_then(
        &self,
        stream: &str,
        what: What,
        timeout: Duration,
        told: impl FnOnce(Result<Option<Found>>) + Send + 'static,
    ) {
        let (answer, until) = (Answer::new(told), Instant::now() + timeout);
        // If it has ended, dropping it tells.
        let _ended = self.asks.send(Ask { stream: stream.to_owned(), what, answer, until });
    }

    /// The connection is lost, or could not be made.
    pub(super) fn disconnected(&self, reason: String) {
        let mut status = self.status();
        let was_connected = core::mem::replace(&mut status.is_connected, false);
        let is_news = was_connected || status.reason.as_ref() != Some(&reason);
        status.reason = Some(reason.clone());
        drop(status);
        if is_news {
            let fields = json!({ "reason": reason });
            self.tell("bridge.disconnected", Severity::Warning, reason, fields);
        }
    }

    /// The broker has something against one rule, until that ends.
    pub(super) fn troubled(&self, trouble: &Trouble, reason: String) {
        self.set(trouble, reason, false);
    }

    fn set(&self, trouble: &Trouble, reason: String, is_forbidden: bool) {
        let before = trouble.lock().replace(Against { reason: reason.clone(), is_forbidden });
        if before.is_none_or(|before| before.reason != reason) {
            self.refused(reason);
        }
    }

    /// The broker says that it refuses something: the rule is known by the subject or the stream in it. What is at most once is
    /// lost then, and what a stream was to store is not sent.
    pub(super) fn forbidden(&self, said: &str) {
        let reason = format!("refused: {said}");
        let (what, subject) = said.split_once('"').unwrap_or_default();
        let subject = subject.split('"').next().unwrap_or_default();
        let is_publication = what.to_lowercase().contains("publish to");
        let export = self.exports.iter().find(|export| is_publication && export.carries(subject));
        if let Some(export) = export {
            // Counted as sent just before.
            let counters = &export.counters;
            let less = |sent: u64| sent.checked_sub(1);
            let _none = counters.passed.fetch_update(Relaxed, Relaxed, less);
            if export.rule.stream.is_some() {
                return self.set(&export.trouble, reason, true);
            }
            count(&counters.refused);
        }
        let mut is_of_stream = false;
        if let Some(api) = subject.strip_prefix("$JS.") {
            let named = |stream: &str| api.split('.').any(|token| token == stream);
            for (_, trouble) in self.rules().filter(|(stream, _)| stream.is_some_and(named)) {
                self.set(trouble, reason.clone(), true);
                is_of_stream = true;
            }
        }
        if !is_of_stream && self.status().reason.replace(reason.clone()).as_ref() != Some(&reason) {
            self.refused(reason);
        }
    }

    /// The broker has refused something, and the connection is there still.
    pub(super) fn refused(&self, reason: String) {
        let fields = json!({ "reason": reason });
        self.tell("bridge.refused", Severity::Error, reason, fields);
    }

    /// The stream of each rule, and what the broker has against it.
    fn rules(&self) -> impl Iterator<Item = (Option<&str>, &Trouble)> {
        let exports = self.exports.iter().map(|one| (one.rule.stream.as_deref(), &one.trouble));
        exports.chain(self.imports.iter().map(|one| {
            let source = one.rule.stream.as_ref();
            (source.map(|source| &*source.stream), &one.trouble)
        }))
    }

    /// Why what was waited for has not come in time.
    pub(super) fn late(&self) -> Error {
        self.reason().map_or(Error::TimedOut, |reason| Error::Broker { reason })
    }

    /// Why it is not connected, or what the broker has against one of its rules.
    pub(super) fn reason(&self) -> Option<String> {
        let reason = self.status().reason.clone();
        let reason = reason.or_else(|| self.rules().find_map(|(_, trouble)| trouble.reason()));
        reason.or_else(|| self.exports.iter().find_map(|one| one.outbox.failure()))
    }

    pub(super) fn stats(&self) -> BridgeStats {
        let reason = self.reason();
        let status = self.status();
        let mut stats = BridgeStats {
            connected: status.is_connected,
            reason,
            server: status.server.clone(),
            connects: status.connects,
            ..BridgeStats::default()
        };
        drop(status);
        stats.requests_out = self.requests_out.load(Relaxed);
        stats.lost = self.lost.load(Relaxed);
        stats.requests_in = self.requests_in.load(Relaxed);
        stats.exports = self.exports.iter().map(Exporting::stats).collect();
        stats.imports = self.imports.iter().map(Importing::stats).collect();
        stats
    }

    /// Whether nothing that came of a stream is in the hub, or with a task.
    pub(super) fn is_settled(&self) -> bool {
        self.imports.iter().all(|one| one.counters.in_flight.load(Relaxed) == 0)
    }

    /// Whether it is to end, and by when.
    pub(super) fn deadline(&self) -> Option<Instant> {
        *self.closing.borrow()
    }

    /// Has it end by then at the latest.
    pub(super) fn close(&self, deadline: Instant) {
        self.closing.send_modify(|until| {
            *until = Some(until.map_or(deadline, |until| until.min(deadline)));
        });
    }
}

impl Exporting {
    /// Whether its messages go out under this subject.
    fn carries(&self, subject: &str) -> bool {
        subject.strip_prefix(&*self.rule.prefix).is_some_and(|key| self.pattern.matches(key))
    }

    /// Whether nothing waits for the broker but what an archive keeps, and nothing that was sent is still to be stored.
    pub(super) fn is_empty(&self) -> bool {
        self.outbox.at_risk() + self.in_hand() == 0
    }

    /// At most once: what is taken and not handed to the connection.
    pub(super) fn in_hand(&self) -> u64 {
        self.counters.in_flight.load(Relaxed)
    }

    /// Which export of its bridge it is: they stay where they are.
    pub(super) fn id(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    pub(super) fn stats(&self) -> ExportStats {
        let (counts, counters) = (self.outbox.counts(), &self.counters);
        ExportStats {
            pattern: self.rule.pattern.clone(),
            stream: self.rule.stream.clone(),
            waiting: counts.waiting,
            sent: counters.passed.load(Relaxed),
            stored: counters.settled.load(Relaxed),
            in_flight: counts.running + self.in_hand(),
            sent_again: counters.again.load(Relaxed),
            dropped: counts.dropped,
            refused: counters.refused.load(Relaxed),
            late: counters.late.load(Relaxed),
            turned_back: counters.turned_back.load(Relaxed),
        }
    }
}

impl Importing {
    fn stats(&self) -> ImportStats {
        let counters = &self.counters;
        ImportStats {
            pattern: self.rule.pattern.clone(),
            stream: self.rule.stream.as_ref().map(|source| source.stream.clone()),
            published: counters.passed.load(Relaxed),
            acknowledged: counters.settled.load(Relaxed),
            in_flight: counters.in_flight.load(Relaxed),
            again: counters.again.load(Relaxed),
            dead: counters.dead.load(Relaxed),
            lag: counters.lag.load(Relaxed),
            duplicates: counters.duplicates.load(Relaxed),
            turned_back: counters.turned_back.load(Relaxed),
            refused: counters.refused.load(Relaxed),
        }
    }
}

/// For the pool's end, health and figures.
impl Served for Shared {
    fn remains(&self, _deadline: u64) -> Remains {
        Remains::Nothing
    }

    fn health(&self, say: &mut dyn FnMut(bool, String)) {
        let reason = self.reason();
        let status = self.status();
        let is_ready = !self.is_vital;
        if !status.has_ended && !status.is_connected {
            let reason = reason.as_deref().unwrap_or("it has not connected yet");
            say(is_ready, format!("bridge {:?} has no broker: {reason}", self.name));
        } else if let Some(reason) = &reason {
            say(is_ready, format!("bridge {:?}: {reason}", self.name));
        }
    }

    fn close(&self) {
        Shared::close(self, Instant::now());
    }

    fn figures(&self, to: &mut Collector, pool: &str) {
        if let Some(bridge) = to.enter(self, "bridge", &self.name) {
            figures::collect(to, pool, &bridge, &self.stats());
        }
    }

    fn shown(&self) -> Option<Value> {
        Some(figures::json(&self.name, &self.stats()))
    }
}
