//! What becomes of a message whose handler has failed, and of a subscription whose handler panics too often.

use crate::hub::core::Core;
use crate::hub::group::dispatch::finished;
use crate::hub::mailbox::ending::finish;
use crate::hub::mailbox::entry::{Entry, Tried};
use crate::hub::mailbox::failure::Failure;
use crate::hub::mailbox::mail::Phase;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::mailbox::subscription::Subscription;
use crate::hub::message::Stored;
use crate::hub::supervise::burial::{Who, bury, bury_of, who};
use crate::hub::supervise::dead::DeadReason;
use crate::hub::supervise::failure_policy::{After, FailurePolicy};
use crate::hub::supervise::supervisor::{Decision, Find, Supervised};
use crate::hub::system::notice::Severity;
use crate::sys::clock;
use core::time::Duration;
use serde_json::{Value, json};
use std::sync::{Arc, Weak};

/// Deals with a message that the handler has failed at. Not under a lock.
#[cold]
pub(in crate::hub) fn failed(
    policy: &FailurePolicy,
    core: &Core,
    who: &Who,
    stored: &Stored,
    tried: &mut Option<Box<Tried>>,
    failure: &Failure,
) -> After {
    let now = clock::now();
    let tried = tried.get_or_insert_with(|| Box::new(Tried { attempts: 0, first: now }));
    let seed = stored.sequence ^ who.id.rotate_left(32);
    let (decision, restarted) = policy.judge(seed, tried, failure, now);
    let attempts = tried.attempts;
    if let Some(count) = restarted {
        tell_restart(who, core, count, failure.message());
    }
    match decision {
        Decision::Retry(delay) => After::Retry(delay),
        Decision::Discard => After::Discard,
        Decision::DeadLetter if stored.comes_again() => {
            stored.fail(failure.message());
            After::Discard
        }
        Decision::DeadLetter | Decision::Suspend => {
            let panicked = failure.is_panic();
            let reason = if panicked { DeadReason::Panicked } else { DeadReason::Failed };
            bury(core, who, stored, reason, Some(failure.message()), attempts);
            if decision == Decision::Suspend { After::Suspend } else { After::Dead }
        }
    }
}

/// Tells that a handler was restarted.
fn tell_restart(who: &Who, core: &Core, count: u64, failure: &str) {
    who.tell(core, "subscription.restarted", Severity::Warning, || {
        (format!("restart {count}: {failure}"), json!({ "count": count, "failure": failure }))
    });
}

/// What becomes of a handler that the host runs, when it has crashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum AfterCrash {
    /// The host restarts it and goes on.
    Restart,
    /// That was once too often: it, and all others of its supervisor, are suspended.
    Suspended {
        /// For how long; None: until they are resumed.
        lasts: Option<Duration>,
    },
}

/// A handler that the host runs has crashed.
#[cold]
pub(in crate::hub) fn crashed(
    policy: &FailurePolicy,
    core: &Core,
    who: &Who,
    find: &Find,
    failure: &str,
) -> AfterCrash {
    if let Some(count) = policy.crashed(failure, clock::now()) {
        tell_restart(who, core, count, failure);
        return AfterCrash::Restart;
    }
    let supervisor = policy.supervisor();
    supervisor.suspend_members(&core.shared, find);
    AfterCrash::Suspended { lasts: supervisor.suspended_for() }
}

impl Supervised for (Arc<Core>, Arc<Subscriber>) {
    fn suspend(&self) -> bool {
        suspend(&self.1, &self.0)
    }

    fn resume(&self) -> bool {
        resume(&self.1, &self.0)
    }
}

/// Finds a subscription for its supervisor, and keeps neither it nor its hub.
pub(in crate::hub) fn find(subscriber: &Arc<Subscriber>, core: &Core) -> Find {
    let (core, subscriber) = (Weak::clone(&core.me), Arc::downgrade(subscriber));
    Arc::new(
        move || Some(Box::new((core.upgrade()?, subscriber.upgrade()?)) as Box<dyn Supervised>),
    )
}

/// Deals with a message that the handler has failed at. Not under the mailbox's lock.
#[cold]
pub(in crate::hub) fn failed_at(
    subscriber: &Arc<Subscriber>,
    core: &Core,
    entry: &mut Entry,
    failure: &Failure,
) -> After {
    let policy = subscriber.policy_or_default();
    failed(policy, core, &who(subscriber, core), &entry.stored, &mut entry.tried, failure)
}

/// Suspends all subscriptions of the supervisor.
#[cold]
pub(in crate::hub) fn suspend_all(subscriber: &Arc<Subscriber>, core: &Core) {
    let supervisor = subscriber.policy_or_default().supervisor();
    supervisor.suspend_members(&core.shared, &find(subscriber, core));
}

/// Suspends this one: what waits becomes dead letters, and so does what comes. False: it was not open.
fn suspend(subscriber: &Arc<Subscriber>, core: &Core) -> bool {
    if let Some(group) = subscriber.group() {
        group.step_back(subscriber.id());
    }
    // Under the channel's lock, so that it does not come back to the ring in between.
    let mut state = subscriber.rules.shared.then(|| subscriber.channel().lock());
    if let Some(state) = &mut state {
        subscriber.channel().part(state, subscriber);
    }
    let mut mail = subscriber.mail();
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
        let (waited, policy) = (waited.len() as u64, subscriber.policy_or_default());
        let fate = format!("{waited} messages that waited are dead");
        tell_suspension(&who(subscriber, core), core, policy, waited, &fate);
    }
    for entry in &waited {
        let attempts = entry.tried.as_ref().map_or(0, |tried| tried.attempts);
        bury_of(subscriber, core, &entry.stored, DeadReason::Suspended, None, attempts);
        finished(subscriber, core, &entry.stored);
    }
    if !waited.is_empty() {
        close = subscriber.mail().buried(waited.len() as u64);
    }
    drop(waited);
    subscriber.notify_room();
    finish(subscriber, core, close);
    was_open
}

/// Tells that one is suspended; `fate`: what becomes of its messages.
pub(in crate::hub) fn tell_suspension(
    who: &Who,
    core: &Core,
    policy: &FailurePolicy,
    waited: u64,
    fate: &str,
) {
    who.tell(core, "subscription.suspended", Severity::Error, || {
        let lasts = policy.supervisor().suspended_for();
        let until = match lasts {
            Some(lasts) => format!("it tries again in {lasts:?}"),
            None => "it is suspended until it is resumed".into(),
        };
        let lasts = lasts.map(|lasts| u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX));
        let fields = json!({ "waited": waited, "resumes_in_ms": lasts });
        (format!("panicked too often; {fate}; {until}"), fields)
    });
}

/// Tells that a suspension is over.
pub(in crate::hub) fn tell_resumption(who: &Who, core: &Core) {
    let say = || ("it takes messages again".into(), Value::Null);
    who.tell(core, "subscription.resumed", Severity::Info, say);
}

/// Ends the suspension of this one. False: there was none.
fn resume(subscriber: &Arc<Subscriber>, core: &Core) -> bool {
    let mut mail = subscriber.mail();
    let resumed = mail.resume();
    // Before the next message, which needs the lock.
    if let Some(policy) = subscriber.policy().filter(|_| resumed) {
        policy.restart_later();
    }
    drop(mail);
    if let Some(group) = subscriber.group().filter(|_| resumed) {
        group.join(subscriber.id(), subscriber);
    }
    if resumed {
        tell_resumption(&who(subscriber, core), core);
    }
    resumed
}

impl Subscription {
    /// Whether it is suspended, because its handler has panicked too often.
    pub fn is_suspended(&self) -> bool {
        self.subscriber.mail().phase() == Phase::Suspended
    }

    /// Ends its suspension now, and that of all others of its supervisor: messages that come are delivered
    /// again. Those that became dead letters stay so; see [`Hub::redeliver`](crate::hub::Hub::redeliver). False:
    /// none was suspended.
    pub fn resume(&self) -> bool {
        match self.subscriber.policy() {
            Some(policy) => {
                policy.supervisor().resume_members(|| resume(&self.subscriber, &self.core))
            }
            None => false,
        }
    }
}
