//! Subscriptions: how they are made, what is kept of them, and how they end.

use super::care::{self, Care};
use super::group::Balance;
use super::handler::{Answer, Handler};
use super::mailbox::{Close, Mail, Overflow, Phase, Rules};
use super::message::{Message, Stored};
use super::notice::Severity;
use super::pull::Puller;
use super::ring::Cursor;
use super::route::{Channel, Identity};
use super::stats::SubscriptionStats;
use super::{Core, Hub, execute, key, share};
use crate::error::{Error, Result};
use crate::pool::contain;
use crate::sync::atomic::Ordering::{Acquire, Release};
use crate::sync::atomic::{AtomicBool, AtomicU32};
use crate::sync::{Condvar, Mutex, MutexGuard};
use core::fmt;
use core::hash::{Hash, Hasher};
use core::time::Duration;
use serde_json::{Value, json};
use std::hash::DefaultHasher;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Instant;

/// Where a subscription's handler runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Execution {
    /// On the pool, never on two threads at once, in the order of its mailbox.
    #[default]
    Serial,
    /// In the publisher's thread, before publishing returns, with no mailbox. Several publishers may be in
    /// it at once.
    Inline,
    /// On up to so many threads of the pool at once, 1 to 1024. Messages begin in the order of the mailbox.
    Concurrent(u32),
    /// On the pool, one at a time with all others of its hub that have this, whatever their keys, in the one
    /// order in which the messages were published. Priorities are not regarded.
    Strand,
    /// Nowhere: a thread of the host takes the messages. See [`Mailbox`](super::Mailbox), which has this.
    Pull,
}

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
    pub(super) execution: Execution,
    ranked: bool,
    /// With how it is shown.
    identity: Option<(Identity, Box<str>)>,
    pub(super) lease: Option<Duration>,
    pub(super) care: care::Terms,
    pub(super) group: Option<(Box<str>, Balance)>,
}

impl<'a> SubscriptionBuilder<'a> {
    pub(super) fn new(hub: &'a Hub, pattern: &'a str) -> Self {
        Self {
            hub,
            pattern,
            capacity: DEFAULT_CAPACITY,
            overflow: None,
            execution: Execution::default(),
            ranked: false,
            identity: None,
            lease: None,
            care: care::Terms::default(),
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
    pub(super) fn overflow_policy(&self) -> Overflow {
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

    pub(super) fn subscribe_pulled(mut self) -> Result<Subscription> {
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
            shared: matches!(self.execution, Execution::Serial | Execution::Pull)
                && !self.ranked
                && overflow != Overflow::Conflate
                && self.care.filter.is_none()
                && self.group.is_none(),
        })
    }

    fn subscribe(self, handler: Option<Handler>) -> Result<Subscription> {
        let core = &self.hub.core;
        core.check_open()?;
        key::check_pattern(self.pattern)?;
        let rules = self.rules()?;
        self.care.check(self.execution != Execution::Pull, rules.runs > 0)?;
        self.check_group()?;
        let group = match &self.group {
            Some((name, balance)) => Some(core.group_of(self.pattern, name, balance)?),
            None => None,
        };
        let joins = group.clone();
        let supervisor = self.care.supervisor.clone();
        let care = Care::new(self.care)?;
        let extra = Extra {
            identity: self.identity.as_ref().map(|(identity, _)| *identity),
            puller: (self.execution == Execution::Pull).then(Puller::new),
            care: care.map_or_else(OnceLock::new, OnceLock::from),
            group,
            room: Condvar::new(),
        };
        let is_used = !extra.is_empty();
        let extra = is_used.then(|| Box::new(extra)).map_or_else(OnceLock::new, OnceLock::from);
        let rules = core.rules.find(rules);
        let id = core.next_subscription();
        let make = |channel| {
            Arc::new(Subscriber {
                id,
                channel,
                place: AtomicU32::new(0),
                rules,
                begun: AtomicU32::new(0),
                cursor: Cursor::new(),
                started: AtomicU32::new(0),
                resting: AtomicBool::new(false),
                closing: AtomicBool::new(false),
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
            group.join(&subscriber);
        }
        if let Some(supervisor) = supervisor {
            supervisor.join(core, Arc::<Subscriber>::clone(&subscriber));
        }
        subscriber.tell(core, "subscription.started", Severity::Info, || {
            (format!("with {:?} execution", subscriber.rules.execution), Value::Null)
        });
        Ok(Subscription { core: Arc::clone(core), subscriber, detached: false })
    }
}

/// What the hub keeps of a subscription.
pub(super) struct Subscriber {
    id: u64,
    channel: Arc<Channel>,
    /// Where its channel has it.
    pub(super) place: AtomicU32,
    pub(super) rules: Arc<Rules>,
    /// How many of the messages that a run took have begun.
    pub(super) begun: AtomicU32,
    pub(super) cursor: Cursor,
    /// In the ring, the last bits of the first position of which the message has not begun. Written by the run.
    pub(super) started: AtomicU32,
    /// It is in the ring and is to be called when something comes. The channel's lock guards it.
    pub(super) resting: AtomicBool,
    /// What a run has taken and not begun is to be discarded.
    closing: AtomicBool,
    mail: Mutex<Mail<Handler>>,
    extra: OnceLock<Box<Extra>>,
}

/// What most subscriptions do without.
struct Extra {
    identity: Option<Identity>,
    puller: Option<Puller>,
    care: OnceLock<Box<Care>>,
    group: Option<Arc<share::Shared>>,
    /// Publishers wait here for room.
    room: Condvar,
}

impl Extra {
    fn none() -> Box<Self> {
        Box::new(Self {
            identity: None,
            puller: None,
            care: OnceLock::new(),
            group: None,
            room: Condvar::new(),
        })
    }

    /// Whether there is nothing in it.
    fn is_empty(&self) -> bool {
        let Self { identity, puller, care, group, room: _ } = self;
        identity.is_none() && puller.is_none() && care.get().is_none() && group.is_none()
    }
}

impl Subscriber {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// What is known of it besides its mailbox, if anything.
    #[inline]
    pub(super) fn care(&self) -> Option<&Care> {
        self.extra()?.care.get().map(|care| &**care)
    }

    /// The group that it shares messages in.
    #[inline]
    pub(super) fn group(&self) -> Option<&Arc<share::Shared>> {
        self.extra()?.group.as_ref()
    }

    /// A message that it had got has come to its end. Not under the mailbox's lock.
    #[inline]
    pub(super) fn finished(&self, core: &Core, stored: &Stored) {
        if let Some(group) = self.group() {
            group.finished(core, stored);
        }
    }

    pub(super) fn care_or_default(&self) -> &Care {
        self.extra.get_or_init(Extra::none).care.get_or_init(Care::of_default)
    }

    #[inline]
    fn extra(&self) -> Option<&Extra> {
        self.extra.get().map(|extra| &**extra)
    }

    /// Where publishers wait for room.
    pub(super) fn room(&self) -> &Condvar {
        &self.extra.get_or_init(Extra::none).room
    }

    /// There is room, or an end. Whoever waits was counted under the mailbox's lock, after it had asked for
    /// the place to wait at.
    pub(super) fn notify_room(&self) {
        if let Some(extra) = self.extra() {
            extra.room.notify_all();
        }
    }

    pub(super) fn channel(&self) -> &Channel {
        &self.channel
    }

    pub(super) fn identity(&self) -> Option<Identity> {
        self.extra()?.identity
    }

    pub(super) fn puller(&self) -> Option<&Puller> {
        self.extra()?.puller.as_ref()
    }

    pub(super) fn mail(&self) -> MutexGuard<'_, Mail<Handler>> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(super) fn is_closing(&self) -> bool {
        // Acquire: pairs with the Release in `close`.
        self.closing.load(Acquire)
    }

    /// Closes the mailbox. True: it has ended.
    pub(super) fn close(self: &Arc<Self>, core: &Core, drain: bool) -> bool {
        if !drain {
            // Release: pairs with the Acquire in `is_closing`.
            self.closing.store(true, Release);
        }
        if let Some(group) = self.group() {
            group.leave(core, self.id);
        }
        // Under the channel's lock, so that it does not come back to the ring in between.
        let mut state = self.rules.shared.then(|| self.channel.lock());
        if let Some(state) = &mut state
            && self.cursor.is_in_ring()
        {
            self.channel.close(state, self, !drain);
            state.ring.release(core);
        }
        let mut mail = self.mail();
        let held = mail.held_later();
        let (close, discarded) = mail.close(drain);
        let let_go = held - mail.held_later();
        drop(mail);
        drop(state);
        core.let_go(let_go);
        discarded.iter().for_each(|entry| self.finished(core, &entry.stored));
        drop(discarded);
        self.notify_room();
        if let Some(puller) = self.puller() {
            puller.notify_end();
        }
        self.finish(core, close)
    }

    /// The pool ends: the mailbox takes no more messages.
    pub(super) fn shut(self: &Arc<Self>, core: &Core) {
        // Under the channel's lock, so that it does not come back to the ring in between.
        let mut state = self.rules.shared.then(|| self.channel.lock());
        if let Some(state) = &mut state
            && self.cursor.is_in_ring()
        {
            self.channel.apart(state, self);
            state.ring.release(core);
        }
        self.mail().shut();
    }

    /// Does what closing has left to do. True: it has ended.
    pub(super) fn finish(self: &Arc<Self>, core: &Core, close: Close<Handler>) -> bool {
        let Close::Now(handler) = close else { return self.mail().phase() == Phase::Ended };
        let _panicked = contain(|| drop(handler));
        // Under one lock, so that whoever adds the books up finds these once, and whoever sees the end
        // sees all of it.
        let mut ended = core.lock_ended();
        core.router.leave(self);
        let books = self.mail().ended();
        ended.add(&books);
        drop(ended);
        core.notices.unlisten(self.channel.pattern());
        self.tell(core, "subscription.ended", Severity::Info, || {
            let lost = books.dropped + books.rejected;
            let message = format!("{} delivered, {lost} lost", books.delivered);
            (message, json!({ "delivered": books.delivered, "lost_messages": lost }))
        });
        core.announce();
        true
    }
}

/// How to unsubscribe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Unsubscribe {
    /// What waits is discarded, and a handler that runs is not waited for.
    #[default]
    Async,
    /// Takes no more messages; those that wait are delivered still, for another attempt too. Dropping the
    /// [`Subscription`] discards what is left of them; see [`Subscription::drain`].
    Drain,
    /// As `Async`, and waits until no handler runs. Inside a handler, and on a thread of the pool, it does not wait.
    Sync,
}

/// What unsubscribing has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Unsubscribed {
    /// No handler runs or will run, and it has been dropped.
    Now,
    /// The handler runs, or messages are left to be delivered; it is dropped after the last.
    Later,
}

/// A subscription. Dropping it unsubscribes as [`Unsubscribe::Sync`]: messages that wait are discarded, and on a thread
/// outside the pool the drop returns when no handler runs and the handler has been dropped. Inside a handler, and on a
/// thread of the pool, it does not wait; nor does it after `unsubscribe(Unsubscribe::Async)`.
/// [`detach`](Self::detach) keeps the subscription.
///
/// ```
/// use paceline::{Pool, hub::{Hub, Message, Unsubscribe, Unsubscribed}};
/// # fn main() -> paceline::Result<()> {
/// let hub = Hub::new(&Pool::new()?)?;
/// let subscription = hub.subscribe("a", |_: &Message<'_>| println!("it came"))?;
/// hub.publish("a", "x")?;
/// // Takes nothing more, and returns when no handler runs: what its handler uses may go now.
/// assert_eq!(subscription.unsubscribe(Unsubscribe::Sync)?, Unsubscribed::Now);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it unsubscribes"]
pub struct Subscription {
    pub(super) core: Arc<Core>,
    pub(super) subscriber: Arc<Subscriber>,
    detached: bool,
}

impl Subscription {
    /// Its number, which no other subscription of the hub has or had.
    pub fn id(&self) -> u64 {
        self.subscriber.id
    }

    /// What it has subscribed to.
    pub fn pattern(&self) -> &str {
        self.subscriber.channel.pattern()
    }

    /// Its counts, as they are now.
    pub fn stats(&self) -> SubscriptionStats {
        SubscriptionStats::of(&self.subscriber)
    }

    /// How long messages took from publishing to its handler, each attempt by itself. None unless it is
    /// [measured](SubscriptionBuilder::measured).
    #[cfg(feature = "metrics")]
    pub fn latency(&self) -> Option<crate::metrics::Distribution> {
        self.subscriber.care().and_then(|care| care.latency())
    }

    /// Ends the subscription; any thread, any number of times.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn unsubscribe(&self, how: Unsubscribe) -> Result<Unsubscribed> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let ended = self.subscriber.close(&self.core, how == Unsubscribe::Drain);
        let waits = how == Unsubscribe::Sync && !execute::is_in_handler() && !self.core.is_inside();
        match ended || (waits && self.wait_for_end()) {
            true => Ok(Unsubscribed::Now),
            false => Ok(Unsubscribed::Later),
        }
    }

    /// Ends the subscription as [`Unsubscribe::Drain`], and waits for up to `within` until all that waits has been
    /// handled, what waits for another attempt included. What is left then is discarded; a handler that still
    /// runs is not waited for. Says how many messages had not begun by then: 0 if all were handled.
    ///
    /// # Errors
    /// [`Error::WouldDeadlock`] inside a handler or on a thread of the pool; [`Error::Forked`].
    pub fn drain(&self, within: Duration) -> Result<u64> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        if execute::is_in_handler() || self.core.is_inside() {
            return Err(Error::WouldDeadlock);
        }
        let before = self.stats().discarded;
        self.subscriber.close(&self.core, true);
        let deadline = Instant::now().checked_add(within);
        let has_ended = || self.subscriber.mail().phase() == Phase::Ended;
        if !self.core.wait_for(deadline, has_ended) {
            self.subscriber.close(&self.core, false);
        }
        // What a run has taken and not begun is discarded when the handler returns.
        let now = self.stats();
        Ok(now.discarded - before + now.waiting)
    }

    fn wait_for_end(&self) -> bool {
        self.core.wait_until(|| self.subscriber.mail().phase() == Phase::Ended);
        true
    }

    /// The same one, which does not end when this is dropped.
    #[cfg(feature = "capi")]
    pub(crate) fn share(&self) -> Self {
        let (core, subscriber) = (Arc::clone(&self.core), Arc::clone(&self.subscriber));
        Self { core, subscriber, detached: true }
    }

    /// Lets it last as long as its hub. A handler that has a clone of the hub, to reply with, say, makes the hub last as
    /// long as itself, and so both would for ever: keep the subscription of such a handler, and drop it at the end.
    pub fn detach(mut self) {
        self.detached = true;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // One that was ended by name before is not waited for.
        if !self.detached && !self.core.shared.is_forked() && !self.subscriber.is_closing() {
            let pulled = self.subscriber.puller().is_some();
            let how = if pulled { Unsubscribe::Async } else { Unsubscribe::Sync };
            let _ended = self.unsubscribe(how);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("id", &self.id())
            .field("pattern", &self.pattern())
            .finish_non_exhaustive()
    }
}

// With the counts of its `Arc` and the allocator's word that is 160 bytes. One or two references to it are in the lists
// of its channel: an idle subscription is to cost up to 200.
#[cfg(all(test, target_pointer_width = "64", not(loom)))]
const _: () = assert!(size_of::<Subscriber>() <= 136);
