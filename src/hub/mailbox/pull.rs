//! Mailboxes that a thread of the host empties itself.
//!
//! The pool does not serve them. Whoever waits for one sleeps in [`Mailbox::recv_timeout`], or in a loop of
//! his own beside [`Mailbox::descriptor`], which is readable while something may wait
//! (`queue/pollable.rs`). A puller that is gone without a word is found out by its *lease*: if nobody has
//! pulled for so long, the subscription ends.

use crate::error::{Error, Result};
use crate::hub::channel::reading::Pull;
use crate::hub::channel::segment::Taken;
use crate::hub::core::Core;
use crate::hub::group::dispatch::finished;
use crate::hub::handle::Hub;
use crate::hub::keys::key;
use crate::hub::keys::key::Key;
use crate::hub::mailbox::closing::close;
use crate::hub::mailbox::counters::Settled;
use crate::hub::mailbox::ending::finish;
use crate::hub::mailbox::entry::Entry;
use crate::hub::mailbox::mail::Phase;
use crate::hub::mailbox::puller::Puller;
use crate::hub::mailbox::subscribe::SubscriptionBuilder;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::mailbox::subscription::{Subscription, Unsubscribe, Unsubscribed};
use crate::hub::message::{Received, Stored};
use crate::hub::naps::NAP;
use crate::hub::outcome::Handled;
use crate::hub::supervise::burial::{bury_of, who};
use crate::hub::supervise::dead::DeadReason;
use crate::hub::supervise::failure_policy::FailurePolicy;
use crate::hub::supervise::failures::{AfterCrash, crashed, find};
use crate::hub::system::notice::Severity;
use crate::hub::system::stats::SubscriptionStats;
use crate::hub::system::tell::tell_of;
use crate::pool::{self, Timer};
use crate::queue::{Line, Wire};
use crate::sync::atomic::Ordering::Relaxed;
use crate::sys::clock;
use crate::time::MAX_DELAY;
use core::fmt;
use core::time::Duration;
use serde_json::json;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};
use std::time::Instant;

impl SubscriptionBuilder<'_> {
    /// Subscribes with a mailbox that the caller empties. The execution is not regarded.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub fn pull(self) -> Result<Mailbox> {
        let lease = self.lease;
        if lease.is_some_and(|lease| !(Duration::from_millis(1)..=MAX_DELAY).contains(&lease)) {
            let value = format!("{:?}", lease.unwrap_or_default());
            return Err(Error::invalid("lease", value, "1 ms to 100 years"));
        }
        let subscription = self.subscribe_pulled()?;
        if let Some(lease) = lease {
            watch_lease(&subscription.core, &subscription.subscriber, lease, lease)?;
        }
        Ok(Mailbox { subscription })
    }
}

/// Looks after `delay` whether anybody has pulled within the lease.
fn watch_lease(
    core: &Arc<Core>,
    subscriber: &Arc<Subscriber>,
    lease: Duration,
    delay: Duration,
) -> Result<()> {
    let (core_left, subscriber_left) = (Arc::downgrade(core), Arc::downgrade(subscriber));
    let look = move || look_at_lease(&core_left, &subscriber_left, lease);
    Timer::after(&core.shared, delay, look, |_| ()).map(drop).map_err(|(error, _)| error)
}

fn look_at_lease(core: &Weak<Core>, subscriber: &Weak<Subscriber>, lease: Duration) {
    let (Some(core), Some(subscriber)) = (core.upgrade(), subscriber.upgrade()) else { return };
    let Some(puller) = subscriber.puller() else { return };
    if subscriber.mail().phase() == Phase::Ended {
        return;
    }
    let asked_at = puller.pulled_at.load(Relaxed).max(puller.pollable.asked_at());
    let idle = clock::now().saturating_sub(asked_at);
    match lease.checked_sub(Duration::from_nanos(idle)) {
        Some(left) if !left.is_zero() => {
            // Should the pool be about to stop, so is all that could be cleaned up.
            let _stopping = watch_lease(&core, &subscriber, lease, left);
        }
        _ => {
            tell_of(&subscriber, &core, "subscription.lapsed", Severity::Warning, || {
                let message = format!("nobody has pulled for {lease:?}: it ends");
                (message, json!({ "lease_ms": lease.as_millis() as u64 }))
            });
            close(&subscriber, &core, false);
        }
    }
}

/// Messages that were taken: one, or several that lie in the channel's ring still, and what was lost before them.
enum Part {
    One(Received),
    Several(u64, Taken),
}

impl Part {
    fn each(self, mut to: impl FnMut(Received)) {
        match self {
            Self::One(message) => to(message),
            Self::Several(lost, taken) => {
                for (stored, lost_before) in with_lost(&taken, lost) {
                    to(Received { stored: stored.clone(), lost_before });
                }
            }
        }
    }
}

fn with_lost(taken: &Taken, lost: u64) -> impl Iterator<Item = (&Stored, u64)> {
    let lost = core::iter::once(lost).chain(core::iter::repeat(0));
    taken.messages().zip(lost)
}

/// Messages that were pulled, where they lie.
#[derive(Default)]
pub(crate) struct Messages(Vec<Part>);

impl Messages {
    pub(crate) fn push(&mut self, message: Received) {
        self.0.push(Part::One(message));
    }

    /// Each, with what was lost before it.
    pub(crate) fn for_each<'a>(&'a self, mut to: impl FnMut(&'a Stored, u64)) {
        for part in &self.0 {
            match part {
                Part::One(message) => to(&message.stored, message.lost_before),
                Part::Several(lost, taken) => {
                    with_lost(taken, *lost).for_each(|(stored, lost)| to(stored, lost));
                }
            }
        }
    }
}

/// A mailbox as a completion queue and the C interface know it: of a subscription, or of a replay.
#[cfg_attr(not(feature = "capi"), allow(dead_code, reason = "for the C interface"))]
pub(crate) trait HostMailbox: Send + Sync {
    /// Messages that wait, how many, and whether there may be more.
    fn take_brought(&self, most: usize) -> Result<(Messages, usize, bool)>;
    /// From now on this is raised when a message may wait, or it has ended. False: something else is.
    fn listen(&self, line: Arc<dyn Line>) -> bool;
    fn bury(&self, message: &Stored, failure: Option<&str>, attempts: u32) -> Result<()>;
    /// A key of messages that come here.
    fn key(&self, text: &str) -> Result<Key>;
    fn acknowledge(&self, done: Acknowledged) -> Result<()>;
    fn crashed(&self, failure: &str) -> Result<AfterCrash>;
    fn catch_up(&self) -> bool;
    fn is_suspended(&self) -> bool;
    fn suspend(&self, lasts: Option<Duration>) -> Result<bool>;
    fn resume(&self) -> bool;
    fn unsubscribe(&self, how: Unsubscribe) -> Result<Unsubscribed>;
}

/// Whether messages of this key come to a mailbox of this pattern.
pub(in crate::hub) fn check_key(pattern: &str, text: &str) -> Result<()> {
    let is_key = key::check_pattern(text).is_ok() && key::is_literal(text);
    if is_key && key::matches(pattern, text) {
        return Ok(());
    }
    let allowed = format!("one that the mailbox's pattern {pattern:?} matches");
    Err(Error::invalid("key", format!("{text:?}"), allowed))
}

/// What became of messages of a [`Mailbox`] that is [acknowledged](crate::hub::SubscriptionBuilder::acknowledged).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Acknowledged {
    /// Messages that the host has dealt with.
    pub delivered: u64,
    /// Messages that it has failed at for good, and that are no dead letters.
    pub failed: u64,
    /// Messages that it has thrown away unhandled.
    pub discarded: u64,
}

impl Acknowledged {
    pub(in crate::hub) fn count(&self) -> u64 {
        self.delivered.saturating_add(self.failed).saturating_add(self.discarded)
    }

    pub(in crate::hub) fn too_many(&self, left: u64) -> Error {
        let allowed = format!("up to {left}, as many as were taken and not acknowledged");
        Error::invalid("acknowledged messages", self.count(), allowed)
    }
}

/// A subscription whose messages are taken by the host's threads, any number of them. Dropping it
/// unsubscribes.
///
/// ```
/// use paceline::{Pool, hub::Hub};
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let hub = Hub::new(&Pool::new()?)?;
/// let mailbox = hub.mailbox("orders.>", 100)?; // pulled by a thread of the program's own
/// hub.publish("orders.eu", "order 1")?;
/// let message = mailbox.recv_timeout(Duration::from_secs(1))?;
/// assert_eq!(message.payload(), b"order 1");
/// assert!(mailbox.try_recv()?.is_none());
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it unsubscribes"]
pub struct Mailbox {
    subscription: Subscription,
}

impl Mailbox {
    /// Takes the next message, if one waits.
    ///
    /// # Errors
    /// [`Error::Stale`] when the subscription has ended, and nothing waits.
    pub fn try_recv(&self) -> Result<Option<Received>> {
        let mut taken = None;
        self.take(1, |part| part.each(|message| taken = Some(message)))?;
        Ok(taken)
    }

    /// Appends up to `most` messages that wait; says how many. It never waits.
    ///
    /// # Errors
    /// As [`try_recv`](Self::try_recv).
    pub fn recv_batch(&self, into: &mut Vec<Received>, most: usize) -> Result<usize> {
        self.take(most, |part| part.each(|message| into.push(message)))
    }

    /// Takes the next message; waits for it, for up to `timeout`.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::Stale`] when the subscription has ended and nothing waits; on a thread
    /// of the pool [`Error::WouldDeadlock`], if no other is left.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Received> {
        let mut taken = None;
        self.take_or_wait(1, timeout, |part| part.each(|message| taken = Some(message)))?;
        taken.ok_or(Error::TimedOut)
    }

    /// As [`recv_batch`](Self::recv_batch), and waits for the first of them for up to `timeout`. None have
    /// come if it answers 0.
    ///
    /// # Errors
    /// As [`recv_timeout`](Self::recv_timeout), without `TimedOut`.
    pub fn recv_batch_timeout(
        &self,
        into: &mut Vec<Received>,
        most: usize,
        timeout: Duration,
    ) -> Result<usize> {
        self.take_or_wait(most, timeout, |part| part.each(|message| into.push(message)))
    }

    /// Of a mailbox that is [acknowledged](crate::hub::SubscriptionBuilder::acknowledged): says what became of the
    /// messages that were taken first, in the order in which they were taken. Any thread; it never waits.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more messages than were taken and are not acknowledged; [`Error::Forked`].
    pub fn acknowledge(&self, done: Acknowledged) -> Result<()> {
        let core = &self.subscription.core;
        if core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let Some(messages) = self.puller().let_go(done.count()) else {
            return Err(done.too_many(self.puller().in_hand()));
        };
        if done.count() > 0 {
            // Who throws messages away does so when it has ended: the newest ones.
            let kept = messages.len().saturating_sub(done.discarded as usize);
            messages[kept..].iter().for_each(|message| message.spoil(Handled::Lost));
            let settled = Settled { delivered: done.delivered, failed: done.failed, dead: 0 };
            self.settle(&settled, done.discarded, &messages);
        }
        Ok(())
    }

    fn settle(&self, settled: &Settled, discarded: u64, messages: &[Stored]) {
        let (core, subscriber) = (&self.subscription.core, self.subscriber());
        let close = subscriber.mail().acknowledge(settled, discarded);
        messages.iter().for_each(|message| finished(subscriber, core, message));
        finish(subscriber, core, close);
    }

    /// Of one that is [acknowledged](crate::hub::SubscriptionBuilder::acknowledged): the host's handler has crashed. That
    /// counts as a restart by the intensity or the supervisor of the mailbox, and is told under
    /// `$SYS.subscription.restarted` and by [`Hub::errors`](crate::hub::Hub::errors). Was it once too often, what comes is
    /// dealt with as with other handlers that are suspended, and what was taken is the host's still. Any thread.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn crashed(&self, failure: &str) -> Result<AfterCrash> {
        let (core, subscriber) = (&self.subscription.core, self.subscriber());
        if core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let (policy, find) = (subscriber.policy_or_default(), find(subscriber, core));
        Ok(crashed(policy, core, &who(subscriber, core), &find, failure))
    }

    /// To be asked before the host's handler gets a message. True: it is to be restarted first, because another of its
    /// supervisor has crashed and all are restarted, or because a suspension has ended; that counts as a restart.
    pub fn catch_up(&self) -> bool {
        self.subscriber().policy().is_some_and(FailurePolicy::catch_up)
    }

    /// Whether it is suspended.
    pub fn is_suspended(&self) -> bool {
        self.subscription.is_suspended()
    }

    /// Suspends the subscription as its supervisor would, because the host's handler fails too often: what waits, and
    /// what comes, becomes dead letters until [`resume`](Self::resume), or for so long. What was taken is the host's
    /// still. Any thread. False: it was suspended, or has ended.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a time beyond 100 years; [`Error::Forked`].
    pub fn suspend(&self, lasts: Option<Duration>) -> Result<bool> {
        let (core, subscriber) = (&self.subscription.core, self.subscriber());
        if core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let supervisor = subscriber.policy_or_default().supervisor();
        supervisor.suspend_for(&core.shared, lasts, &find(subscriber, core))
    }

    /// Ends a suspension. False: there was none.
    pub fn resume(&self) -> bool {
        !self.subscription.core.shared.is_forked() && self.subscription.resume()
    }

    /// Makes a message that was taken a dead letter of this subscription, after so many attempts of whoever
    /// took it: it counts as dead-lettered then, and no longer as delivered or running. With no attempts at all the
    /// reason is [`DeadReason::Suspended`], and else [`DeadReason::Failed`]. If a broker sends the message again, which a
    /// bridge has brought at least once, it is no dead letter yet, and counts as failed. Any thread; it never waits.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a message of another key, and if no message that was taken is left;
    /// [`Error::Forked`].
    pub fn bury(&self, message: &Stored, failure: Option<&str>, attempts: u32) -> Result<()> {
        let core = &self.subscription.core;
        if core.shared.is_forked() {
            return Err(Error::Forked);
        }
        self.check_key(message.key.as_str())?;
        let subscriber = self.subscriber();
        let not_taken = || {
            let allowed = "one that was taken from this mailbox and not buried before";
            Error::invalid("the message", format!("{message:?}"), allowed)
        };
        let reason = if attempts == 0 { DeadReason::Suspended } else { DeadReason::Failed };
        if subscriber.rules.acknowledged {
            let taken = self.puller().let_one_go(message).ok_or_else(not_taken)?;
            let settled = if taken.comes_again() {
                taken.fail(failure.unwrap_or_default());
                Settled { failed: 1, ..Settled::default() }
            } else {
                bury_of(subscriber, core, &taken, reason, failure, attempts);
                Settled { dead: 1, ..Settled::default() }
            };
            self.settle(&settled, 0, core::slice::from_ref(&taken));
            return Ok(());
        }
        if !subscriber.mail().bury_pulled() {
            return Err(not_taken());
        }
        bury_of(subscriber, core, message, reason, failure, attempts);
        // Under one lock with the end, at which the counters move.
        let mut ended = core.lock_ended();
        let mut mail = subscriber.mail();
        mail.buried_pulled();
        if mail.phase() == Phase::Ended {
            ended.delivered -= 1;
            ended.dead += 1;
        }
        Ok(())
    }

    fn check_key(&self, text: &str) -> Result<()> {
        check_key(self.pattern(), text)
    }

    /// A descriptor that is readable while a message may wait, or the subscription has ended. Poll it, do not
    /// read it: a receive that finds nothing makes it unreadable. It belongs to this value.
    ///
    /// # Errors
    /// [`Error::Os`] when the process is out of descriptors.
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        let pollable = &self.puller().pollable;
        pollable.demand(Wire::descriptor, || self.is_worth_a_look())?.as_fd()
    }

    /// The number of its subscription.
    pub fn id(&self) -> u64 {
        self.subscription.id()
    }

    /// What it has subscribed to.
    pub fn pattern(&self) -> &str {
        self.subscription.pattern()
    }

    /// Its counts. What was taken counts as delivered.
    pub fn stats(&self) -> SubscriptionStats {
        self.subscription.stats()
    }

    /// How long messages took from publishing until they were taken. None unless it is
    /// [measured](crate::hub::SubscriptionBuilder::measured).
    #[cfg(feature = "metrics")]
    pub fn latency(&self) -> Option<crate::metrics::Distribution> {
        self.subscription.latency()
    }

    /// As [`Subscription::unsubscribe`]. With [`Unsubscribe::Drain`] what waits can be taken still.
    ///
    /// # Errors
    /// As there.
    pub fn unsubscribe(&self, how: Unsubscribe) -> Result<Unsubscribed> {
        // No handler runs, so there is nothing to wait for.
        let how = if how == Unsubscribe::Sync { Unsubscribe::Async } else { how };
        self.subscription.unsubscribe(how)
    }

    fn puller(&self) -> &Puller {
        self.subscriber().puller().expect("a mailbox is pulled")
    }

    fn subscriber(&self) -> &Arc<Subscriber> {
        &self.subscription.subscriber
    }

    /// Whether something waits, or it has ended.
    fn is_worth_a_look(&self) -> bool {
        let mail = self.subscriber().mail();
        !mail.is_empty() || mail.is_over() || self.subscriber().is_called()
    }

    /// Takes up to `most`; waits for the first of them, for up to `timeout`.
    fn take_or_wait(
        &self,
        most: usize,
        timeout: Duration,
        mut into: impl FnMut(Part),
    ) -> Result<usize> {
        let taken = self.take(most, &mut into)?;
        if taken > 0 || most == 0 || timeout.is_zero() {
            return Ok(taken);
        }
        let core = &self.subscription.core;
        let wait = || {
            let deadline = Instant::now().checked_add(timeout);
            loop {
                let in_time = self.wait(deadline)?;
                // Another thread may have been quicker.
                let taken = self.take(most, &mut into)?;
                if taken > 0 || !in_time {
                    return Ok(taken);
                }
            }
        };
        pool::blocking(|shared| core::ptr::eq(shared, &*core.shared), wait)?
    }

    fn take(&self, most: usize, mut into: impl FnMut(Part)) -> Result<usize> {
        let core = &self.subscription.core;
        if core.shared.is_forked() {
            return Err(Error::Forked);
        }
        self.puller().pulled_at.store(clock::now(), Relaxed);
        let (mut count, mut over) = (0, false);
        while count < most {
            let mut fenced = Vec::new();
            let pull = self.pull_once(most - count, count, &mut fenced, &mut into);
            if self.subscriber().rules.acknowledged && pull.count > 0 {
                if let Some((_, taken)) = &pull.several
                    && core.tracks()
                {
                    fenced.extend(taken.messages().cloned());
                }
                self.puller().take(pull.count as u64, fenced);
            }
            count += pull.count;
            over = pull.over;
            if let Some((lost, taken)) = pull.several {
                if let Some(policy) = self.subscriber().policy() {
                    taken.messages().for_each(|stored| policy.measure(stored.time));
                }
                into(Part::Several(lost, taken));
            }
            finish(self.subscriber(), core, pull.close);
            if !pull.left {
                break;
            }
            if count == most {
                self.puller().notify_next();
            }
        }
        if count > 0 {
            core.shared.note_host();
        }
        if count < most {
            self.puller().pollable.found_nothing(|| self.is_worth_a_look());
        }
        match count == 0 && over {
            true => Err(Error::Stale { what: "mailbox" }),
            false => Ok(count),
        }
    }

    /// Takes of the mailbox, and then of one segment of the ring if it is there. `fenced` gets messages whose ends a
    /// group waits for.
    fn pull_once(
        &self,
        most: usize,
        before: usize,
        fenced: &mut Vec<Stored>,
        into: &mut impl FnMut(Part),
    ) -> Pull {
        let (core, subscriber) = (&self.subscription.core, self.subscriber());
        let policy = subscriber.policy();
        let is_fenced = subscriber.group().is_some_and(|group| group.is_fenced)
            || subscriber.rules.acknowledged && core.tracks();
        let one = |entry: Entry| {
            if is_fenced {
                fenced.push(entry.stored.clone());
            } else {
                entry.stored.end_one();
            }
            if let Some(policy) = policy {
                policy.measure(entry.stored.time);
            }
            into(Part::One(Received { stored: entry.stored, lost_before: entry.lost }));
        };
        if subscriber.rules.shared {
            return subscriber.channel().pull(core, subscriber, most, before, one);
        }
        let mut mail = subscriber.mail();
        let over = mail.is_over();
        let count = mail.pull(&subscriber.rules, most, one);
        let (left, close) = (!mail.is_empty(), mail.end_if_over());
        let waiters = core::mem::take(&mut mail.has_waiters);
        drop(mail);
        if waiters {
            subscriber.notify_room();
        }
        Pull { count, several: None, left, over, close }
    }

    /// Sleeps until there is something to take. False: nothing was in time.
    fn wait(&self, deadline: Option<Instant>) -> Result<bool> {
        let subscriber = self.subscriber();
        loop {
            // Not under the lock: it may be this thread that ends the pool, which shuts the mailbox.
            let stops = self.subscription.core.shared.must_stop();
            let mail = subscriber.mail();
            if !mail.is_empty() || mail.is_over() || subscriber.is_called() {
                return Ok(true);
            }
            let left = match deadline {
                Some(at) => at.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3600),
            };
            if left.is_zero() {
                return Ok(false);
            }
            if stops {
                return Err(Error::ShutDown);
            }
            drop(self.puller().sleep(mail, left.min(NAP)));
        }
    }
}

impl HostMailbox for Mailbox {
    fn take_brought(&self, most: usize) -> Result<(Messages, usize, bool)> {
        let mut messages = Messages::default();
        let count = self.take_or_wait(most, Duration::ZERO, |part| messages.0.push(part))?;
        // It does not call again for its end if it was draining before the last message was taken.
        Ok((messages, count, count > 0 && self.is_worth_a_look()))
    }

    fn listen(&self, line: Arc<dyn Line>) -> bool {
        self.puller().pollable.listen(line, || self.is_worth_a_look())
    }

    fn bury(&self, message: &Stored, failure: Option<&str>, attempts: u32) -> Result<()> {
        self.bury(message, failure, attempts)
    }

    fn key(&self, text: &str) -> Result<Key> {
        self.check_key(text)?;
        Ok(self.subscription.core.keys.intern(text))
    }

    fn acknowledge(&self, done: Acknowledged) -> Result<()> {
        self.acknowledge(done)
    }

    fn crashed(&self, failure: &str) -> Result<AfterCrash> {
        self.crashed(failure)
    }

    fn catch_up(&self) -> bool {
        self.catch_up()
    }

    fn is_suspended(&self) -> bool {
        self.is_suspended()
    }

    fn suspend(&self, lasts: Option<Duration>) -> Result<bool> {
        self.suspend(lasts)
    }

    fn resume(&self) -> bool {
        self.resume()
    }

    fn unsubscribe(&self, how: Unsubscribe) -> Result<Unsubscribed> {
        self.unsubscribe(how)
    }
}

impl Drop for Mailbox {
    /// Nobody acknowledges the rest any more.
    fn drop(&mut self) {
        let left = self.puller().in_hand();
        if left > 0 {
            let _ended = self.unsubscribe(Unsubscribe::Async);
            let _forked = self.acknowledge(Acknowledged { discarded: left, ..Default::default() });
        }
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("id", &self.id())
            .field("pattern", &self.pattern())
            .finish_non_exhaustive()
    }
}

impl Hub {
    /// A mailbox for so many messages, 1 to 2^24, that the caller empties; more are refused.
    ///
    /// # Errors
    /// As [`SubscriptionBuilder::serve`].
    pub fn mailbox(&self, pattern: &str, capacity: usize) -> Result<Mailbox> {
        self.subscription(pattern).capacity(capacity).pull()
    }
}
