//! The bridge itself: how it is set up, asked and ended.

use super::connection;
use super::outbox::{Bell, Outbox};
use super::question::{Found, What};
use super::rules::{Export, Import};
use super::settings::NatsSettings;
use super::shared::{Exporting, Importing, Shared, Status};
use super::sink::Sink;
use super::stats::BridgeStats;
use super::waiters::{PendingStore, Waiters};
use super::wire::{Origin, RECEIPT};
use crate::contain::contain;
use crate::error::{Error, Result};
use crate::hub::{Hub, Pattern, Publication, ToKey, covers, overlap};
use crate::sys::thread::without_signals;
use crate::time::MAX_DELAY;
use core::fmt;
use core::time::Duration;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Instant;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;

/// How long the end of a bridge that is dropped may take.
pub(super) const AT_DROP: Duration = Duration::from_secs(2);
/// How many ids a window has at the most, unless set.
pub(super) const WINDOW: usize = 100_000;

/// Carries keys between the hubs of several processes and hosts, over a broker.
///
/// What a hub publishes under an exported key goes to the broker, and to every other process that imports it; local
/// subscribers get it as ever. Handlers do not know where a message comes from, unless they ask for its header
/// `Paceline-Origin`, which those from elsewhere have.
///
/// ```no_run
/// use paceline::{Pool, bridge::{Bridge, Export, Import}, hub::{Hub, Message}};
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let hub = Hub::new(&pool)?;
/// let bridge = Bridge::nats(&hub, "nats://127.0.0.1:4222")
///     .export("orders.>") // at most once
///     .export(Export::new("audit.>").at_least_once("AUDIT"))
///     .import("prices.*")
///     .import(Import::new("jobs.>").at_least_once("JOBS", "workers"))
///     .open()?;
/// let _prices = hub.subscribe("prices.*", |price: &Message<'_>| println!("{price:?}"))?;
/// hub.publish("orders.eu", "42")?;
/// // The broker has stored it when this returns.
/// bridge.publish(hub.message("audit.login").payload("joe"))?.wait(std::time::Duration::from_secs(5))?;
/// println!("{}", bridge.stats());
/// # Ok(())
/// # }
/// ```
///
/// Dropping it ends it, which takes up to 2 seconds if messages wait; [`close`](Self::close) sets another limit.
pub struct Bridge {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    id: ThreadId,
}

impl Bridge {
    /// A bridge between the hub and a NATS broker. Nothing is carried that no rule names.
    pub fn nats(hub: &Hub, settings: impl Into<NatsSettings>) -> BridgeBuilder {
        BridgeBuilder {
            hub: hub.clone(),
            settings: settings.into(),
            name: "nats".into(),
            exports: Vec::new(),
            imports: Vec::new(),
            permitted: None,
            window: (Duration::from_secs(120), WINDOW),
            is_vital: false,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// How it is, and what it has carried. Any thread.
    pub fn stats(&self) -> BridgeStats {
        self.shared.stats()
    }

    /// Whether it is connected to a broker.
    pub fn is_connected(&self) -> bool {
        self.shared.status().is_connected
    }

    /// Waits until it is connected, for up to `timeout`. Nothing needs that: what is published before waits.
    ///
    /// # Errors
    /// [`Error::TimedOut`], or [`Error::Broker`] with the reason; [`Error::ShutDown`] if it has ended.
    pub fn wait_connected(&self, timeout: Duration) -> Result<()> {
        self.poll(timeout, |shared| shared.status().is_connected)
    }

    /// Publishes a message in the hub, and says when the broker has stored it. Local subscribers do not wait for that. The
    /// key needs an export [at least once](Export::at_least_once).
    ///
    /// # Errors
    /// As [`Hub::publish`](crate::hub::Hub::publish); [`Error::Invalid`] without such an export, and if its overflow policy
    /// drops what waits.
    pub fn publish<K: ToKey>(&self, message: Publication<'_, K>) -> Result<PendingStore> {
        let (number, pending) = self.shared.waiters.open();
        let exports = |key: &str| {
            let stores = |one: &&Exporting| one.rule.stream.is_some() && one.pattern.matches(key);
            let exports: Vec<_> = self.shared.exports.iter().filter(stores).collect();
            let drops = exports.iter().find(|one| one.rule.may_drop()).copied();
            let spools = exports.iter().filter(|one| one.rule.spool.is_some());
            let spools: Vec<_> = spools.map(|one| one.id()).collect();
            (exports.len() as u64, drops, spools)
        };
        let (message, (expected, drops, spools)) =
            message.with_header(RECEIPT, &number.to_string(), exports)?;
        if let Some(drops) = drops {
            let allowed = "block or reject for a message that is to be stored: nobody tells of one that was dropped";
            let overflow = format!("{:?}", drops.rule.overflow_policy());
            return Err(Error::invalid("the overflow policy of the export", overflow, allowed));
        }
        if expected == 0 {
            let allowed = "one that an export at least once matches";
            return Err(Error::invalid(
                "the key of a message to be stored",
                "without one",
                allowed,
            ));
        }
        self.check_open()?;
        let message = match thread::current().id() == self.id {
            // This thread makes the room.
            true => message.no_wait(),
            false => message,
        };
        let receipt = message.publish()?;
        pending.expect_of(expected, receipt.sequence, spools);
        Ok(pending)
    }

    /// Waits until all that was published before is handed to the connection, and, at least once, stored by the broker:
    /// for up to `timeout`.
    ///
    /// # Errors
    /// [`Error::TimedOut`], or [`Error::Broker`] with the reason; [`Error::ShutDown`] if it has ended.
    pub fn flush(&self, timeout: Duration) -> Result<()> {
        let mark = |one: &Exporting| one.outbox.mark(&self.shared.hub);
        let marks: Vec<u64> = self.shared.exports.iter().map(mark).collect();
        self.poll(timeout, |shared| {
            let mut exports = shared.exports.iter().zip(&marks);
            exports.all(|(one, &mark)| one.outbox.is_past(mark, one.in_hand()))
        })
    }

    fn poll(&self, timeout: Duration, is_done: impl Fn(&Shared) -> bool) -> Result<()> {
        let until = Instant::now().checked_add(timeout);
        let mut nap = Duration::from_micros(50);
        loop {
            if is_done(&self.shared) {
                return Ok(());
            }
            if self.shared.status().has_ended {
                return Err(Error::ShutDown);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(self.late());
            }
            thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(5));
        }
    }

    /// Ends it: it takes nothing more from the broker, sends what waits, waits until the hub has dealt with what it has
    /// taken, and acknowledges that; for up to `timeout`. What is not acknowledged then comes again, to any process of the
    /// same durable name; what waits to be sent is lost, unless it is in a [spool](Export::spool), and the answer says how many that are: 0 as a
    /// rule. It may be
    /// called more than once, and anywhere: in a handler that a message of the bridge has come to it waits in vain for
    /// that one, and on the bridge's own thread, where [`PendingStore::then`] calls, it does not wait.
    pub fn close(&self, timeout: Duration) -> u64 {
        if self.shared.hub.shared().is_forked() {
            // Its thread is the parent's, and so may be its locks.
            return 0;
        }
        self.shared.close(Instant::now() + timeout.min(MAX_DELAY));
        if thread::current().id() != self.id {
            // Others who close it wait here, too.
            let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            // It contains its panics.
            let _panicked = thread.take().map(JoinHandle::join);
        }
        self.shared.status().left
    }
}

/// What durable tasks need of it.
impl Bridge {
    /// What is said when its time has run out.
    pub(super) fn late(&self) -> Error {
        self.shared.late()
    }

    pub(super) fn downgrade(&self) -> Weak<Shared> {
        Arc::downgrade(&self.shared)
    }

    /// Why it is not connected, or what the broker has refused last.
    pub(super) fn reason(&self) -> Option<String> {
        self.shared.reason()
    }

    /// As [`close`](Self::close): how many messages were not stored that a stream was to store.
    pub(super) fn close_stores(&self, timeout: Duration) -> u64 {
        self.close(timeout);
        self.shared.status().unstored
    }

    /// # Errors
    /// [`Error::ShutDown`] if it has ended; [`Error::Forked`].
    pub(super) fn check_open(&self) -> Result<()> {
        self.shared.hub.check_open()?;
        match self.shared.status().has_ended {
            true => Err(Error::ShutDown),
            false => Ok(()),
        }
    }

    /// Asks for a message of a stream: None if there is none.
    ///
    /// # Errors
    /// [`Error::TimedOut`], or [`Error::Broker`], without an answer within `timeout`, of seconds, or if the connection was lost
    /// before it came;
    /// [`Error::WouldDeadlock`] on the bridge's own thread; [`Error::ShutDown`] if it has ended; [`Error::Forked`].
    pub(super) fn ask(&self, stream: &str, what: What, timeout: Duration) -> Result<Option<Found>> {
        if thread::current().id() == self.id {
            return Err(Error::WouldDeadlock);
        }
        self.check_open()?;
        let (answer, answered) = sync_channel(1);
        self.ask_then(stream, what, timeout, move |found| {
            // Nobody waits any more.
            let _gone = answer.try_send(found);
        });
        answered.recv_timeout(timeout).unwrap_or(Err(Error::TimedOut)).or_else(|error| {
            self.check_open()?;
            Err(match error {
                Error::TimedOut => self.late(),
                error => error,
            })
        })
    }

    /// As [`ask`](Self::ask), without waiting: the function is told, on the bridge's thread as a rule.
    pub(super) fn ask_then(
        &self,
        stream: &str,
        what: What,
        timeout: Duration,
        told: impl FnOnce(Result<Option<Found>>) + Send + 'static,
    ) {
        self.shared.ask_then(stream, what, timeout, told);
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if self.shared.hub.shared().is_forked() {
            // A thread of the child's own may have its place: it is not to be detached.
            core::mem::forget(core::mem::take(&mut self.thread));
        }
        let _left = self.close(AT_DROP);
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// Settings of a [`Bridge`].
#[must_use = "a builder does nothing until `open`"]
#[derive(Clone)]
pub struct BridgeBuilder {
    hub: Hub,
    settings: NatsSettings,
    name: String,
    exports: Vec<Export>,
    imports: Vec<(Import, Option<Arc<dyn Sink>>)>,
    permitted: Option<Vec<String>>,
    window: (Duration, usize),
    is_vital: bool,
}

impl BridgeBuilder {
    /// What health, figures, notices and the live page call it. Default: "nats".
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Carries these keys from the hub to the broker: a pattern, or an [`Export`] with more to say. A key that several
    /// exports match goes out by each.
    pub fn export(mut self, rule: impl Into<Export>) -> Self {
        self.exports.push(rule.into());
        self
    }

    /// Carries these keys from the broker to the hub: a pattern, or an [`Import`] with more to say.
    pub fn import(mut self, rule: impl Into<Import>) -> Self {
        self.imports.push((rule.into(), None));
        self
    }

    /// Carries these from a stream of the broker to something else than the hub.
    pub(super) fn import_to(mut self, rule: Import, sink: Arc<dyn Sink>) -> Self {
        self.imports.push((rule, Some(sink)));
        self
    }

    /// Without a broker, and with one that refuses something, the pool is not ready.
    pub(super) fn vital(mut self) -> Self {
        self.is_vital = true;
        self
    }

    /// Refuses rules whose keys are not all matched by one of these patterns: for rules that come from elsewhere than the
    /// program. Default: all keys are permitted, but for the hub's own and inboxes, which never cross.
    pub fn permit(mut self, pattern: impl Into<String>) -> Self {
        self.permitted.get_or_insert_default().push(pattern.into());
        self
    }

    /// How long, and how many, ids of messages are kept: a message from the broker whose id is among them is dropped. The
    /// broker's streams that the bridge makes drop what comes twice within the same time. 100 ms to 1 day, and up to 2^24
    /// ids; 0: none is dropped. Default: those of the last 2 minutes, up to 100 000.
    pub fn window(mut self, lasts: Duration, most: usize) -> Self {
        self.window = (lasts, most);
        self
    }

    /// Opens it: subscribes in the hub, and begins to connect, on a thread of its own. It does not wait for the broker,
    /// which may come later.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a bad address, pattern or setting; [`Error::ShutDown`]; [`Error::Os`].
    pub fn open(self) -> Result<Bridge> {
        self.hub.check_open()?;
        self.settings.check()?;
        self.check_rules()?;
        let name = self.name;
        let counted = |rule: Export| {
            let (pattern, bell) = (Pattern::new(&rule.pattern)?, Arc::<Bell>::default());
            let outbox = Outbox::open(&self.hub, &rule, &bell)?;
            let (counters, trouble) = Default::default();
            Ok(Exporting { outbox, bell, pattern, rule, counters, trouble })
        };
        let (asks, asked) = unbounded_channel();
        let shared = Arc::new(Shared {
            origin: Origin::of(self.hub.number()),
            exports: self.exports.into_iter().map(counted).collect::<Result<_>>()?,
            imports: self
                .imports
                .into_iter()
                .map(|(rule, sink)| {
                    let sink = sink.unwrap_or_else(|| Arc::new(self.hub.clone()));
                    let (counters, trouble) = Default::default();
                    Importing { rule, sink, counters, trouble }
                })
                .collect(),
            name: name.clone(),
            settings: self.settings,
            window: self.window,
            status: Mutex::new(Status::default()),
            requests_out: Default::default(),
            requests_in: Default::default(),
            lost: Default::default(),
            waiters: Arc::<Waiters>::default(),
            closing: watch::Sender::new(None),
            is_vital: self.is_vital,
            asks,
            hub: self.hub,
        });
        let served: Weak<Shared> = Arc::downgrade(&shared);
        let of = Weak::clone(&served);
        shared.waiters.explain(move || of.upgrade().map_or(Error::ShutDown, |it| it.late()));
        shared.hub.shared().end.serve(served);
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new().name("paceline-nats".into());
        let life = move || {
            let _panicked = contain(|| connection::run(&its, asked));
            // It may be the last to have handlers of the user's.
            let _panicked = contain(|| drop(its));
        };
        let spawned = without_signals(|| thread.spawn(life));
        let thread = spawned
            .map_err(|error| Error::os(format!("start the thread of bridge {name:?}"), error))?;
        let id = thread.thread().id();
        Ok(Bridge { shared, thread: Mutex::new(Some(thread)), id })
    }

    fn check_rules(&self) -> Result<()> {
        if self.exports.is_empty() && self.imports.is_empty() {
            return Err(Error::invalid("the rules of a bridge", "none", "an export or an import"));
        }
        let (lasts, most) = self.window;
        if !(Duration::from_millis(100)..=Duration::from_secs(86_400)).contains(&lasts) {
            return Err(Error::invalid("window", format!("{lasts:?}"), "100 ms to 1 day"));
        }
        if most > 1 << 24 {
            return Err(Error::invalid("window_count", most, "0 to 16777216"));
        }
        self.exports.iter().try_for_each(Export::check)?;
        self.imports.iter().try_for_each(|(rule, _)| rule.check())?;
        let patterns = self.exports.iter().map(|rule| &rule.pattern);
        for pattern in patterns.chain(self.imports.iter().map(|(rule, _)| &rule.pattern)) {
            let covers = |wide: &String| covers(wide, pattern);
            if self.permitted.as_ref().is_some_and(|list| !list.iter().any(covers)) {
                let allowed = format!("within {:?}", self.permitted.as_deref().unwrap_or_default());
                return Err(Error::invalid(
                    "the pattern of a rule",
                    format!("{pattern:?}"),
                    allowed,
                ));
            }
        }
        for (index, (one, _)) in self.imports.iter().enumerate() {
            for (other, _) in &self.imports[index + 1..] {
                let (left, right) = (
                    format!("{}{}", one.prefix, one.pattern),
                    format!("{}{}", other.prefix, other.pattern),
                );
                if one.stream.is_some() != other.stream.is_some() && overlap(&left, &right) {
                    let allowed = format!("other subjects than {right:?}, with another promise");
                    return Err(Error::invalid(
                        "the subjects of an import",
                        format!("{left:?}"),
                        allowed,
                    ));
                }
            }
        }
        Ok(())
    }
}
