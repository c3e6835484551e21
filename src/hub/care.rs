//! What is known of a subscription besides its mailbox: its filter, and how its failures are dealt with.
//!
//! Most subscriptions need none of it. It is made with them if they are given settings, and else at their
//! first failure.

use super::Core;
use super::dead::{DeadLetter, DeadReason, Origin};
use super::filter::Filter;
use super::handler::Failure;
use super::mailbox::{Entry, Phase, Tried};
use super::message::Stored;
use super::notice::{Burst, Severity};
use super::subscribe::{Subscriber, Subscription, SubscriptionBuilder};
use super::supervise::{
    Decision, FailedAttempt, Intensity, OnFailure, RestartDecision, Supervisor,
};
use crate::error::{Error, Result};
use crate::pool::contain;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sys::clock;
use core::time::Duration;
use serde_json::{Value, json};
use std::sync::Arc;

/// A restart of a handler, as `on_restart` is told of it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Restart<'a> {
    /// Why: what the handler panicked with. None when another of its supervisor panicked, or after a
    /// suspension.
    pub failure: Option<&'a str>,
    /// How often this subscription was restarted, this time included.
    pub count: u64,
}

type OnRestart = dyn Fn(&Restart<'_>) + Send + Sync;

/// What a subscription is given to deal with failures.
#[derive(Default)]
pub(super) struct Terms {
    pub(super) filter: Option<Filter>,
    pub(super) policy: OnFailure,
    pub(super) intensity: Option<Intensity>,
    pub(super) supervisor: Option<Supervisor>,
    pub(super) on_restart: Option<Arc<OnRestart>>,
    #[cfg(feature = "metrics")]
    pub(super) measured: bool,
}

impl Terms {
    /// `has_handler`: it is not pulled; `can_wait`: there is a mailbox in which a message can wait for its
    /// next attempt.
    pub(super) fn check(&self, has_handler: bool, can_wait: bool) -> Result<()> {
        self.policy.check()?;
        if !has_handler && !self.is_unsupervised() {
            let allowed = "left out: a mailbox that is pulled has no handler that could fail";
            return Err(Error::invalid("supervision", "set", allowed));
        }
        if self.policy.has_retries() && !can_wait {
            let allowed = "without retries: an execution other than Serial and Concurrent has no \
                           place to wait for them";
            return Err(Error::invalid("on_failure", "with retries", allowed));
        }
        if self.intensity.is_some() && self.supervisor.is_some() {
            let allowed = "not set beside a supervisor, which has its own";
            return Err(Error::invalid("intensity", "set", allowed));
        }
        Ok(())
    }

    fn is_plain(&self) -> bool {
        self.filter.is_none() && self.is_unsupervised() && !self.is_measured()
    }

    fn is_measured(&self) -> bool {
        #[cfg(feature = "metrics")]
        return self.measured;
        #[cfg(not(feature = "metrics"))]
        false
    }

    fn is_unsupervised(&self) -> bool {
        self.policy == OnFailure::default()
            && self.intensity.is_none()
            && self.supervisor.is_none()
            && self.on_restart.is_none()
    }
}

/// See the head of the file.
pub(super) struct Care {
    terms: Terms,
    supervisor: Supervisor,
    /// The supervisor's epoch that the handler knows.
    seen: AtomicU64,
    restarts: AtomicU64,
    /// Messages that did not pass the filter, and those of which its predicate panicked.
    filtered: AtomicU64,
    filter_panics: AtomicU64,
    /// Of losses by a full mailbox.
    burst: Burst,
    #[cfg(feature = "metrics")]
    latency: Option<crate::metrics::Histogram>,
}

/// What is to be done about a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(super) enum After {
    /// The message is delivered once more after this delay.
    Retry(Duration),
    /// It has become a dead letter.
    Dead,
    /// It is dropped.
    Discard,
    /// It has become a dead letter, and so do all others: the subscription is suspended.
    Suspend,
}

impl Care {
    /// None if there is nothing to be kept.
    pub(super) fn new(terms: Terms) -> Result<Option<Box<Self>>> {
        if terms.is_plain() { Ok(None) } else { Self::with(terms).map(|care| Some(Box::new(care))) }
    }

    pub(super) fn with(terms: Terms) -> Result<Self> {
        let supervisor = match &terms.supervisor {
            Some(supervisor) => supervisor.clone(),
            None => Supervisor::own(terms.intensity.unwrap_or_default())?,
        };
        #[cfg(feature = "metrics")]
        let time = crate::metrics::Unit::Time;
        Ok(Self {
            #[cfg(feature = "metrics")]
            latency: terms.measured.then(|| crate::metrics::Histogram::new(time)),
            terms,
            seen: AtomicU64::new(supervisor.epoch()),
            supervisor,
            restarts: AtomicU64::new(0),
            filtered: AtomicU64::new(0),
            filter_panics: AtomicU64::new(0),
            burst: Burst::default(),
        })
    }

    pub(super) fn of_default() -> Box<Self> {
        let care = Self::with(Terms::default());
        Box::new(care.unwrap_or_else(|_| unreachable!("the default intensity is in its range")))
    }

    pub(super) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    pub(super) fn restarts(&self) -> u64 {
        self.restarts.load(Relaxed)
    }

    /// A message that was published at this time, in nanoseconds since 1970, comes to its handler.
    #[inline]
    pub(super) fn measure(&self, published: u64) {
        #[cfg(feature = "metrics")]
        if let Some(latency) = &self.latency {
            latency.record(clock::unix_nanos().saturating_sub(published));
        }
        #[cfg(not(feature = "metrics"))]
        let _no_histogram = published;
    }

    #[cfg(feature = "metrics")]
    pub(super) fn is_measured(&self) -> bool {
        self.latency.is_some()
    }

    #[cfg(feature = "metrics")]
    pub(super) fn latency(&self) -> Option<crate::metrics::Distribution> {
        self.latency.as_ref().map(crate::metrics::Histogram::snapshot)
    }

    pub(super) fn burst(&self) -> &Burst {
        &self.burst
    }

    pub(super) fn filtered(&self) -> u64 {
        self.filtered.load(Relaxed)
    }

    pub(super) fn filter_panics(&self) -> u64 {
        self.filter_panics.load(Relaxed)
    }

    pub(super) fn has_filter(&self) -> bool {
        self.terms.filter.is_some()
    }

    /// Whether a message comes into the mailbox.
    pub(super) fn passes(&self, message: &Stored) -> bool {
        let Some(filter) = &self.terms.filter else { return true };
        let passes = filter.passes(message, &clock::now);
        if passes != Some(true) {
            self.filtered.fetch_add(1, Relaxed);
        }
        if passes.is_none() {
            self.filter_panics.fetch_add(1, Relaxed);
        }
        passes == Some(true)
    }

    /// Restarts the handler, if others of its supervisor have failed, or it was suspended.
    #[inline]
    pub(super) fn catch_up(&self) {
        let epoch = self.supervisor.epoch();
        if self.seen.load(Relaxed) != epoch {
            self.seen.store(epoch, Relaxed);
            self.restarted(None);
        }
    }

    /// Has the handler restarted before its next message.
    pub(super) fn restart_later(&self) {
        self.seen.store(u64::MAX, Relaxed);
    }

    #[cold]
    fn restarted(&self, failure: Option<&Failure>) -> u64 {
        let count = self.restarts.fetch_add(1, Relaxed) + 1;
        if let Some(on_restart) = &self.terms.on_restart {
            let failure = failure.map(Failure::message);
            let _panicked = contain(|| on_restart(&Restart { failure, count }));
            crate::log::faults::note_told();
        }
        count
    }

    /// The handler has failed at a message at `now`. If it was restarted: how often by now.
    fn judge(
        &self,
        seed: u64,
        tried: &mut Tried,
        failure: &Failure,
        now: u64,
    ) -> (Decision, Option<u64>) {
        tried.attempts += 1;
        let failed = FailedAttempt {
            attempts: tried.attempts,
            elapsed: now.saturating_sub(tried.first),
            is_panic: failure.is_panic(),
            is_permanent: failure.is_permanent(),
            retry_after: failure.asked_delay(),
        };
        let decision = self.terms.policy.judge(&failed, seed);
        if !failed.is_panic {
            return (decision, None);
        }
        let mut seen = self.seen.load(Relaxed);
        match self.supervisor.restart(now, &mut seen) {
            RestartDecision::Restart => {
                self.seen.store(seen, Relaxed);
                let count = self.restarted(Some(failure));
                (decision, Some(count))
            }
            RestartDecision::Suspend | RestartDecision::Suspended => (Decision::Suspend, None),
        }
    }
}

/// Whose handler it is: a subscription's or a replay's, as its notices and dead letters name it.
pub(super) struct Who {
    pub(super) kind: &'static str,
    pub(super) id: u64,
    pub(super) pattern: Arc<str>,
    pub(super) origin: Origin,
}

impl Care {
    /// Deals with a message that the handler has failed at. Not under a lock.
    #[cold]
    pub(super) fn failed(
        &self,
        core: &Core,
        who: &Who,
        stored: &Stored,
        tried: &mut Option<Box<Tried>>,
        failure: &Failure,
    ) -> After {
        let now = clock::now();
        let tried = tried.get_or_insert_with(|| Box::new(Tried { attempts: 0, first: now }));
        let seed = stored.sequence ^ who.id.rotate_left(32);
        let (decision, restarted) = self.judge(seed, tried, failure, now);
        let attempts = tried.attempts;
        if let Some(count) = restarted {
            who.tell(core, "subscription.restarted", Severity::Warning, || {
                let failure = failure.message();
                (
                    format!("restart {count}: {failure}"),
                    json!({ "count": count, "failure": failure }),
                )
            });
        }
        match decision {
            Decision::Retry(delay) => After::Retry(delay),
            Decision::Discard => After::Discard,
            Decision::DeadLetter | Decision::Suspend => {
                let panicked = failure.is_panic();
                let reason = if panicked { DeadReason::Panicked } else { DeadReason::Failed };
                core.bury(who, stored, reason, Some(failure.message()), attempts);
                if decision == Decision::Suspend { After::Suspend } else { After::Dead }
            }
        }
    }
}

impl Core {
    /// Makes a message a dead letter.
    #[cold]
    pub(super) fn bury(
        &self,
        who: &Who,
        stored: &Stored,
        reason: DeadReason,
        failure: Option<&str>,
        attempts: u32,
    ) {
        let pushed_out = self.dead.bury(DeadLetter {
            number: 0,
            stored: stored.clone(),
            reason,
            failure: failure.map(Into::into),
            attempts,
            subscription: who.id,
            pattern: Arc::clone(&who.pattern),
            died: clock::unix_nanos(),
            origin: who.origin.clone(),
        });
        if pushed_out {
            self.lost(&self.dead);
        }
    }
}

/// One of those that a supervisor suspends and resumes.
pub(super) trait Supervised: Send + Sync {
    fn suspend_member(self: Arc<Self>, core: &Core);
    /// False: it was not suspended.
    fn resume_member(self: Arc<Self>, core: &Core) -> bool;
}

impl Supervised for Subscriber {
    fn suspend_member(self: Arc<Self>, core: &Core) {
        Self::suspend(&self, core);
    }

    fn resume_member(self: Arc<Self>, core: &Core) -> bool {
        Self::resume(&self, core)
    }
}

impl Subscriber {
    fn who(self: &Arc<Self>) -> Who {
        let pattern = self.channel().pattern().into();
        Who { kind: "subscription", id: self.id(), pattern, origin: Origin::of(self) }
    }

    /// Deals with a message that the handler has failed at. Not under the mailbox's lock.
    #[cold]
    pub(super) fn failed(
        self: &Arc<Self>,
        core: &Core,
        entry: &mut Entry,
        failure: &Failure,
    ) -> After {
        let care = self.care_or_default();
        care.failed(core, &self.who(), &entry.stored, &mut entry.tried, failure)
    }

    /// Makes a message a dead letter of this subscription.
    #[cold]
    pub(super) fn bury(
        self: &Arc<Self>,
        core: &Core,
        stored: &Stored,
        reason: DeadReason,
        failure: Option<&str>,
        attempts: u32,
    ) {
        core.bury(&self.who(), stored, reason, failure, attempts);
    }

    /// Suspends all subscriptions of the supervisor.
    #[cold]
    pub(super) fn suspend_all(self: &Arc<Self>, core: &Core) {
        let found: Arc<dyn Supervised> = Arc::<Self>::clone(self);
        self.care_or_default().supervisor.suspend_members(core, &found);
    }

    /// Suspends this one: what waits becomes dead letters, and so does what comes.
    pub(super) fn suspend(self: &Arc<Self>, core: &Core) {
        if let Some(group) = self.group() {
            group.step_back(self.id());
        }
        // Under the channel's lock, so that it does not come back to the ring in between.
        let mut state = self.rules.shared.then(|| self.channel().lock());
        if let Some(state) = &mut state {
            self.channel().part(state, self);
        }
        let mut mail = self.mail();
        let was_open = mail.phase() == Phase::Open;
        let held = mail.held_later();
        let waited = mail.suspend();
        let let_go = held - mail.held_later();
        // It may have been about to end.
        let mut close = mail.end_if_over();
        drop(mail);
        drop(state);
        core.let_go(let_go);
        if was_open {
            let (waited, lasts) = (waited.len(), self.suspended_for());
            self.tell(core, "subscription.suspended", Severity::Error, || {
                let until = until(lasts);
                let message =
                    format!("panicked too often; {waited} messages that waited are dead; {until}");
                (message, suspension(waited as u64, lasts))
            });
        }
        for entry in &waited {
            let attempts = entry.tried.as_ref().map_or(0, |tried| tried.attempts);
            self.bury(core, &entry.stored, DeadReason::Suspended, None, attempts);
            self.finished(core, &entry.stored);
        }
        if !waited.is_empty() {
            close = self.mail().buried(waited.len() as u64);
        }
        drop(waited);
        self.notify_room();
        self.finish(core, close);
    }

    fn suspended_for(&self) -> Option<Duration> {
        self.care_or_default().supervisor.suspended_for()
    }

    /// Ends the suspension of this one. False: there was none.
    pub(super) fn resume(self: &Arc<Self>, core: &Core) -> bool {
        let mut mail = self.mail();
        let resumed = mail.resume();
        // Before the next message, which needs the lock.
        if let Some(care) = self.care().filter(|_| resumed) {
            care.restart_later();
        }
        drop(mail);
        if let Some(group) = self.group().filter(|_| resumed) {
            group.join(self);
        }
        if resumed {
            let say = || ("it takes messages again".into(), Value::Null);
            self.tell(core, "subscription.resumed", Severity::Info, say);
        }
        resumed
    }
}

/// For people: how long a suspension lasts.
pub(super) fn until(lasts: Option<Duration>) -> String {
    match lasts {
        Some(lasts) => format!("it tries again in {lasts:?}"),
        None => "it is suspended until it is resumed".into(),
    }
}

/// The fields of a notice of a suspension.
pub(super) fn suspension(waited: u64, lasts: Option<Duration>) -> Value {
    let lasts = lasts.map(|lasts| u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX));
    json!({ "waited": waited, "resumes_in_ms": lasts })
}

/// How a subscription is supervised, and what it takes.
impl SubscriptionBuilder<'_> {
    /// Which of the messages come into the mailbox; default: all. What does not pass does not match.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.care.filter = Some(filter);
        self
    }

    /// Measures how long messages take from publishing to the handler, or to who pulls: see
    /// [`Subscription::latency`](super::Subscription::latency), and with
    /// [`HubBuilder::metrics`](super::HubBuilder::metrics) the registry. Each thread that serves it takes 43 KB
    /// for that. Default: not measured, which costs nothing. The clock is that of the system; should it be set
    /// back, messages that wait then count as 0.
    #[cfg(feature = "metrics")]
    pub fn measured(mut self) -> Self {
        self.care.measured = true;
        self
    }

    /// What happens to a message that the handler fails at, or panics at; default: it becomes a dead letter.
    /// Retries need [`Serial`](super::Execution::Serial) or
    /// [`Concurrent`](super::Execution::Concurrent) execution.
    pub fn on_failure(mut self, policy: OnFailure) -> Self {
        self.care.policy = policy;
        self
    }

    /// How many panics of the handler suspend the subscription, and for how long; default: more than 3 in 5 seconds,
    /// for 1 second, and each time for twice as long, up to 60 seconds. What waits then, and what comes meanwhile,
    /// becomes dead letters, which the publisher's receipt says. Errors that the handler returns never suspend it.
    pub fn intensity(mut self, intensity: Intensity) -> Self {
        self.care.intensity = Some(intensity);
        self
    }

    /// Supervises it together with others; default: alone.
    pub fn supervisor(mut self, supervisor: &Supervisor) -> Self {
        self.care.supervisor = Some(supervisor.clone());
        self
    }

    /// Called when the handler is restarted, on the thread that runs the handler, before its next message:
    /// after it has panicked, when another of its supervisor has and all are restarted, and after a suspension.
    /// A panic of it is contained.
    pub fn on_restart(mut self, f: impl Fn(&Restart<'_>) + Send + Sync + 'static) -> Self {
        self.care.on_restart = Some(Arc::new(f));
        self
    }
}

impl Subscription {
    /// Whether it is suspended, because its handler has panicked too often.
    pub fn is_suspended(&self) -> bool {
        self.subscriber.mail().phase() == Phase::Suspended
    }

    /// Ends its suspension now, and that of all others of its supervisor: messages that come are delivered
    /// again. Those that became dead letters stay so; see [`Hub::redeliver`](super::Hub::redeliver). False:
    /// none was suspended.
    pub fn resume(&self) -> bool {
        match self.subscriber.care() {
            Some(care) => care.supervisor().resume_members(|| self.subscriber.resume(&self.core)),
            None => false,
        }
    }
}
