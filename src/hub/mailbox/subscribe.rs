//! Subscriptions: how they are made, what is kept of them, and how they end.

use crate::error::{Error, Result};
use crate::hub::channel::cursor::RingCursor;
use crate::hub::channel::route::Identity;
use crate::hub::filter::Filter;
use crate::hub::group::balance::Balance;
use crate::hub::group::dispatch::group_of;
use crate::hub::handle::Hub;
use crate::hub::keys::key;
use crate::hub::mailbox::factory::{Renew, Told};
use crate::hub::mailbox::failure::Answer;
use crate::hub::mailbox::handler::Handler;
use crate::hub::mailbox::mail::Mail;
use crate::hub::mailbox::progress::Progress;
use crate::hub::mailbox::puller::Puller;
use crate::hub::mailbox::rules::{Execution, Overflow, Rules};
use crate::hub::mailbox::subscriber::{Extra, Subscriber};
use crate::hub::mailbox::subscription::Subscription;
use crate::hub::message::Message;
use crate::hub::supervise::failure_policy::{FailurePolicy, FailureSettings, HandlerOf, Restart};
use crate::hub::supervise::failures::find;
use crate::hub::supervise::supervisor::{Intensity, OnFailure, Supervisor};
use crate::hub::system::notice::Severity;
use crate::hub::system::tell::tell_of;
use crate::sync::atomic::{AtomicBool, AtomicU32};
use crate::sync::{Condvar, Mutex};
use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;
use serde_json::Value;
use std::hash::DefaultHasher;
use std::sync::{Arc, OnceLock};

/// The most messages of a mailbox.
const MAX_CAPACITY: usize = 1 << 24;
const DEFAULT_CAPACITY: usize = 1024;
const MAX_CONCURRENT: u32 = 1024;

/// Settings of a subscription.
///
/// ```
/// use paceline::{Pool, Retry, hub::{Failure, Hub, Message, OnFailure, Overflow}};
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let hub = Hub::new(&Pool::new()?)?;
/// let subscription = hub
///     .subscription("orders.*")
///     .capacity(1000)
///     .overflow(Overflow::Block(Duration::from_secs(1)))
///     .on_failure(OnFailure::dead_letter().retry(Retry::fixed(3, Duration::from_millis(100))))
///     .serve(|message: &Message<'_>| match message.payload().is_empty() {
///         true => Err(Failure::permanent("an order without a text")),
///         false => Ok(()),
///     })?;
/// hub.publish("orders.eu", "order 1")?;
/// # drop(subscription);
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until `serve`"]
pub struct SubscriptionBuilder<'a> {
    hub: &'a Hub,
    pattern: &'a str,
    capacity: usize,
    overflow: Option<Overflow>,
    pub(in crate::hub) execution: Execution,
    ranked: bool,
    acknowledged: bool,
    /// With how it is shown.
    identity: Option<(Identity, Box<str>)>,
    pub(in crate::hub) lease: Option<Duration>,
    pub(in crate::hub) failure: FailureSettings,
    pub(in crate::hub) group: Option<(Box<str>, Balance)>,
}

impl<'a> SubscriptionBuilder<'a> {
    pub(in crate::hub) fn new(hub: &'a Hub, pattern: &'a str) -> Self {
        Self {
            hub,
            pattern,
            capacity: DEFAULT_CAPACITY,
            overflow: None,
            execution: Execution::default(),
            ranked: false,
            acknowledged: false,
            identity: None,
            lease: None,
            failure: FailureSettings::default(),
            group: None,
        }
    }

    /// How many messages may wait, 1 to 2^24; default 1024. Those that are being handled do not wait.
    pub fn capacity(mut self, messages: usize) -> Self {
        self.capacity = messages;
        self
    }

    /// What happens to a message for a full mailbox. Default: its publisher waits for room, without a limit
    /// ([`Overflow::Block`]); where it may not wait, publishing fails with
    /// [`Error::MailboxFull`](crate::Error::MailboxFull). A mailbox that is [pulled](Self::pull) refuses by default
    /// ([`Overflow::Reject`]).
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = Some(overflow);
        self
    }

    /// What was asked for, or the default.
    pub(in crate::hub) fn overflow_policy(&self) -> Overflow {
        self.overflow.unwrap_or(match self.execution {
            Execution::Pull => Overflow::Reject,
            _ => Overflow::Block(Duration::MAX),
        })
    }

    /// Where the handler runs; default [`Execution::Serial`].
    pub fn execution(mut self, execution: Execution) -> Self {
        self.execution = execution;
        self
    }

    /// Delivers messages by their priority; of equal ones, the first published. Default: in the order of
    /// publishing alone.
    pub fn by_priority(mut self) -> Self {
        self.ranked = true;
        self
    }

    /// Refuses this subscription with [`Error::Invalid`] if its pattern has one of the same identity. An identity is
    /// anything that can be hashed and shown: a name, an id of the program's, a tuple. Default: a subscription has
    /// none, and a pattern may have the same handler more than once.
    ///
    /// ```
    /// # use paceline::{Pool, hub::{Hub, Message}};
    /// # fn main() -> paceline::Result<()> {
    /// let hub = Hub::new(&Pool::new()?)?;
    /// let subscribe =
    ///     || hub.subscription("orders.>").unique("audit").serve(|_: &Message<'_>| ());
    /// let first = subscribe()?;
    /// assert!(subscribe().unwrap_err().to_string().contains("is \"audit\""));
    /// # drop(first);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unique(mut self, identity: impl Hash + fmt::Debug) -> Self {
        // Two hashes of 64 bits, as a collision would refuse a subscription wrongly.
        let hash = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            (salt, &identity).hash(&mut hasher);
            hasher.finish()
        };
        self.identity = Some(((hash(0), hash(1)), format!("{identity:?}").into()));
        self
    }

    /// Ends a subscription that is [pulled](Self::pull) when nobody has pulled for so long, 1 ms to 100
    /// years. Default: never.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// For a subscription that is [pulled](Self::pull) by a host that runs a handler of its own: a message that was
    /// taken counts as running until the host says what became of it, by
    /// [`Mailbox::acknowledge`](crate::hub::Mailbox::acknowledge) or [`Mailbox::bury`](crate::hub::Mailbox::bury), and
    /// the subscription ends after the last. Default: what was taken counts as delivered.
    pub fn acknowledged(mut self) -> Self {
        self.acknowledged = true;
        self
    }

    /// Subscribes. The handler answers nothing, or a `Result`; it is dropped when the subscription has
    /// ended, on any thread.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a bad pattern or setting, for an execution that needs a handler for several
    /// threads, and for a second subscription of the same identity. [`Error::ShutDown`] and
    /// [`Error::Forked`].
    pub fn serve<F, A>(self, handler: F) -> Result<Subscription>
    where
        F: FnMut(&Message<'_>) -> A + Send + 'static,
        A: Answer,
    {
        if self.execution == Execution::Pull {
            return Err(Error::invalid("execution", "Pull", "one with a handler; see `pull`"));
        }
        if matches!(self.execution, Execution::Inline | Execution::Concurrent(_)) {
            let execution = format!("{:?}", self.execution);
            let allowed = "Serial or Strand; `serve_shared` takes a handler for several threads";
            return Err(Error::invalid("execution", execution, allowed));
        }
        self.subscribe(Some(Handler::serial(handler)))
    }

    /// As [`serve`](Self::serve), with handlers of a factory's making: one now, and after each restart a new one, which
    /// is made before the next message, on the thread that runs the handler. The one before is dropped then; none is
    /// called again after it has panicked.
    ///
    /// If the factory panics later on, the message that waits for the handler has failed as if the handler had panicked:
    /// that counts as a restart, and the next message has the factory called again. A panic of the first call is the
    /// caller's.
    ///
    /// ```
    /// use paceline::{Pool, hub::{Hub, Message}};
    /// # fn main() -> paceline::Result<()> {
    /// let hub = Hub::new(&Pool::new()?)?;
    /// let subscription = hub.subscription("orders.>").serve_factory(|| {
    ///     let mut seen = 0;
    ///     move |_: &Message<'_>| seen += 1
    /// })?;
    /// hub.publish("orders.eu", "order 1")?;
    /// # drop(subscription);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn serve_factory<M, F, A>(self, mut factory: M) -> Result<Subscription>
    where
        M: FnMut() -> F + Send + 'static,
        F: FnMut(&Message<'_>) -> A + Send + 'static,
        A: Answer + 'static,
    {
        let first = factory();
        self.serve_renewed(first, move || Ok(factory()))
    }

    /// As [`serve`](Self::serve), with a handler that several threads may call at once, for any execution.
    ///
    /// # Errors
    /// As there.
    pub fn serve_shared<F, A>(self, handler: F) -> Result<Subscription>
    where
        F: Fn(&Message<'_>) -> A + Send + Sync + 'static,
        A: Answer,
    {
        if self.execution == Execution::Pull {
            return Err(Error::invalid("execution", "Pull", "one with a handler; see `pull`"));
        }
        self.subscribe(Some(Handler::shared(handler)))
    }

    pub(in crate::hub) fn subscribe_pulled(mut self) -> Result<Subscription> {
        self.execution = Execution::Pull;
        self.subscribe(None)
    }

    fn rules(&self) -> Result<Rules> {
        if !(1..=MAX_CAPACITY).contains(&self.capacity) {
            return Err(Error::invalid("capacity", self.capacity, "1 to 16777216"));
        }
        let runs = match self.execution {
            Execution::Serial => 1,
            Execution::Inline | Execution::Strand | Execution::Pull => 0,
            Execution::Concurrent(threads) if (1..=MAX_CONCURRENT).contains(&threads) => threads,
            Execution::Concurrent(threads) => {
                return Err(Error::invalid("the threads of a subscription", threads, "1 to 1024"));
            }
        };
        let overflow = self.overflow_policy();
        if self.ranked && overflow == Overflow::Conflate {
            let allowed = "another one with priorities: a mailbox that conflates has one order";
            return Err(Error::invalid("overflow", "Conflate", allowed));
        }
        Ok(Rules {
            execution: self.execution,
            capacity: self.capacity as u32,
            overflow,
            ranked: self.ranked && self.execution != Execution::Strand,
            runs,
            acknowledged: self.acknowledged && self.execution == Execution::Pull,
            shared: matches!(self.execution, Execution::Serial | Execution::Pull)
                && !self.ranked
                && overflow != Overflow::Conflate
                && self.failure.filter.is_none()
                && self.group.is_none(),
        })
    }

    fn subscribe(self, handler: Option<Handler>) -> Result<Subscription> {
        let core = &self.hub.core;
        core.check_open()?;
        key::check_pattern(self.pattern)?;
        let rules = self.rules()?;
        let whose = match self.execution {
            Execution::Pull if rules.acknowledged => HandlerOf::Host,
            Execution::Pull => HandlerOf::Nobody,
            _ => HandlerOf::Hub,
        };
        self.failure.check(whose, rules.runs > 0)?;
        self.check_group()?;
        let group = match &self.group {
            Some((name, balance)) => Some(group_of(core, self.pattern, name, balance)?),
            None => None,
        };
        let joins = group.clone();
        let supervisor = self.failure.supervisor.clone();
        let policy = FailurePolicy::new(self.failure)?;
        let extra = Extra {
            identity: self.identity.as_ref().map(|(identity, _)| *identity),
            puller: (self.execution == Execution::Pull).then(Puller::new),
            policy: policy.map_or_else(OnceLock::new, OnceLock::from),
            group,
            room: Condvar::new(),
        };
        let is_used = !extra.is_empty();
        let extra = is_used.then(|| Box::new(extra)).map_or_else(OnceLock::new, OnceLock::from);
        let rules = core.rules.find(rules);
        let begun = if rules.acknowledged { u32::MAX } else { 0 };
        let id = core.next_subscription();
        let make = |channel| {
            Arc::new(Subscriber {
                id,
                channel,
                place: AtomicU32::new(0),
                rules,
                progress: Progress::new(begun),
                cursor: RingCursor::new(),
                mail: Mutex::new(Mail::new(handler)),
                extra,
            })
        };
        let (subscriber, joined) = match key::is_literal(self.pattern) {
            true => {
                core.router.join_key(&core.keys.intern(self.pattern), make, || core.is_closed())
            }
            false => core.router.join_pattern(self.pattern, make, || core.is_closed()),
        };
        if !joined {
            let value = self.identity.map(|(_, shown)| shown).unwrap_or_default();
            let allowed = "one that does not subscribe to this pattern already";
            return Err(Error::invalid("the identity of a unique handler", value, allowed));
        }
        core.notices.listen(self.pattern);
        if let Some(group) = joins {
            group.join(subscriber.id(), &subscriber);
        }
        if let Some(supervisor) = supervisor {
            supervisor.join(find(&subscriber, core));
        }
        tell_of(&subscriber, core, "subscription.started", Severity::Info, || {
            (format!("with {:?} execution", subscriber.rules.execution), Value::Null)
        });
        Ok(Subscription { core: Arc::clone(core), subscriber, detached: false })
    }
}

impl Renew for SubscriptionBuilder<'_> {
    type Served = Subscription;

    fn renews(&mut self, stale: Arc<AtomicBool>) {
        self.failure.stale = Some(stale);
    }

    fn serve_all(
        self,
        handler: impl FnMut(&Message<'_>) -> Told + Send + 'static,
    ) -> Result<Subscription> {
        self.serve(handler)
    }
}

/// How a subscription is supervised, and what it takes.
impl SubscriptionBuilder<'_> {
    /// Which of the messages come into the mailbox; default: all. What does not pass does not match.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.failure.filter = Some(filter);
        self
    }

    /// Measures how long messages take from publishing to the handler, or to who pulls, and how long the handler takes
    /// for each: see [`Subscription::latency`](crate::hub::Subscription::latency),
    /// [`SubscriptionFigures::handling`](crate::hub::SubscriptionFigures::handling), and the registry of
    /// [`HubBuilder::metrics`](crate::hub::HubBuilder::metrics). Each thread that serves it takes 49 KB for that. Default: not measured, which costs nothing. The clock is that of the system; should it be set
    /// back, messages that wait then count as 0.
    #[cfg(feature = "metrics")]
    pub fn measured(mut self) -> Self {
        self.failure.measured = true;
        self
    }

    /// What happens to a message that the handler fails at, or panics at; default: it becomes a dead letter.
    /// Retries need [`Serial`](crate::hub::Execution::Serial) or
    /// [`Concurrent`](crate::hub::Execution::Concurrent) execution.
    pub fn on_failure(mut self, policy: OnFailure) -> Self {
        self.failure.on_failure = policy;
        self
    }

    /// How many panics of the handler suspend the subscription, and for how long; default: more than 3 in 5 seconds,
    /// for 1 second, and each time for twice as long, up to 60 seconds. What waits then, and what comes meanwhile,
    /// becomes dead letters, which the publisher's receipt says. Errors that the handler returns never suspend it.
    pub fn intensity(mut self, intensity: Intensity) -> Self {
        self.failure.intensity = Some(intensity);
        self
    }

    /// Supervises it together with others; default: alone.
    pub fn supervisor(mut self, supervisor: &Supervisor) -> Self {
        self.failure.supervisor = Some(supervisor.clone());
        self
    }

    /// Called when the handler is restarted, on the thread that runs the handler, before its next message:
    /// after it has panicked, when another of its supervisor has and all are restarted, and after a suspension.
    /// A panic of it is contained.
    pub fn on_restart(mut self, f: impl Fn(&Restart<'_>) + Send + Sync + 'static) -> Self {
        self.failure.on_restart = Some(Arc::new(f));
        self
    }
}

impl SubscriptionBuilder<'_> {
    /// Shares the messages with all other subscriptions of this pattern that have the same group: each
    /// message goes to one of them. The execution is [`Serial`](Execution::Serial),
    /// [`Concurrent`](Execution::Concurrent), or the mailbox is pulled; there is no filter. By key or header
    /// it is `Serial`, or pulled and [acknowledged](Self::acknowledged), and the overflow policy is [`Reject`](Overflow::Reject) or
    /// [`DropNewest`](Overflow::DropNewest): what drops others would break the order.
    pub fn group(mut self, name: &str, balance: Balance) -> Self {
        self.group = Some((name.into(), balance));
        self
    }

    pub(in crate::hub) fn check_group(&self) -> Result<()> {
        let Some((name, balance)) = &self.group else { return Ok(()) };
        if name.is_empty() || name.len() > 255 {
            let value = format!("{} bytes long", name.len());
            return Err(Error::invalid("the name of a group", value, "1 to 255 bytes long"));
        }
        let by_key = matches!(balance, Balance::ByKey | Balance::ByHeader(_));
        let serves = match self.execution {
            Execution::Serial => true,
            Execution::Pull => !by_key || self.acknowledged,
            Execution::Concurrent(_) => !by_key,
            _ => false,
        };
        if !serves {
            let execution = format!("{:?}", self.execution);
            let allowed = "Serial in a group, or Concurrent if it goes not by key or header, or Pull, which is \
                 acknowledged if it does";
            return Err(Error::invalid("execution", execution, allowed));
        }
        let overflow = self.overflow_policy();
        if by_key && matches!(overflow, Overflow::DropOldest | Overflow::Conflate) {
            let overflow = format!("{overflow:?}");
            let allowed = "Block, Reject or DropNewest in a group by key or header";
            return Err(Error::invalid("overflow", overflow, allowed));
        }
        if self.failure.filter.is_some() {
            return Err(Error::invalid("filter", "set", "left out in a group"));
        }
        Ok(())
    }
}
