//! How a message becomes a dead letter, and who it was that could not deal with it.

use crate::error::Result;
use crate::hub::core::{Core, Work};
use crate::hub::mailbox::mail::{Offer, Phase};
use crate::hub::mailbox::rules::Execution;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::message::Stored;
use crate::hub::supervise::dead::{DeadLetter, DeadReason, Origin, Unfit};
use crate::hub::system::notice::Severity;
use crate::hub::system::tell::{lost, notice, tell};
use crate::sync::atomic::Ordering::Acquire;
use crate::sys::clock;
use serde_json::Value;
use std::sync::{Arc, Weak};

/// Makes a message a dead letter.
#[cold]
pub(in crate::hub) fn bury(
    core: &Core,
    who: &Who,
    stored: &Stored,
    reason: DeadReason,
    failure: Option<&str>,
    attempts: u32,
) {
    stored.fail(failure.unwrap_or_default());
    let pushed_out = core.dead.bury(DeadLetter {
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
        lost(core, &core.dead);
    }
}

/// What names this subscription in notices and dead letters.
pub(in crate::hub) fn who(subscriber: &Arc<Subscriber>, core: &Core) -> Who {
    let pattern = subscriber.channel().pattern().into();
    Who { kind: "subscription", id: subscriber.id(), pattern, origin: origin_of(subscriber, core) }
}

/// Makes a message a dead letter of this subscription.
#[cold]
pub(in crate::hub) fn bury_of(
    subscriber: &Arc<Subscriber>,
    core: &Core,
    stored: &Stored,
    reason: DeadReason,
    failure: Option<&str>,
    attempts: u32,
) {
    bury(core, &who(subscriber, core), stored, reason, failure, attempts);
}

/// Whose handler it is: a subscription's or a replay's, as its notices and dead letters name it.
pub(in crate::hub) struct Who {
    pub(in crate::hub) kind: &'static str,
    pub(in crate::hub) id: u64,
    pub(in crate::hub) pattern: Arc<str>,
    pub(in crate::hub) origin: Origin,
}

impl Who {
    /// Tells what has happened to it.
    pub(in crate::hub) fn tell(
        &self,
        core: &Core,
        event: &'static str,
        severity: Severity,
        say: impl FnOnce() -> (String, Value),
    ) {
        tell(core, severity, Some(&self.pattern), || {
            notice(self.kind, self.id, &self.pattern, event, severity, say())
        });
    }
}

fn origin_of(subscriber: &Arc<Subscriber>, core: &Core) -> Origin {
    let (core, subscriber) = (Weak::clone(&core.me), Arc::downgrade(subscriber));
    Origin::new(move |stored| match (core.upgrade(), subscriber.upgrade()) {
        (Some(core), Some(subscriber)) => redeliver(&subscriber, &core, stored),
        _ => Err(Unfit::Orphaned),
    })
}

/// Puts a dead letter into the mailbox once more.
fn redeliver(subscriber: &Arc<Subscriber>, core: &Core, stored: &Stored) -> Result<(), Unfit> {
    let on_strand = match subscriber.rules.execution {
        Execution::Inline => return Err(Unfit::Refused),
        execution => execution == Execution::Strand,
    };
    let mut strand = on_strand.then(|| core.strand());
    // What it has in its channel's ring is older.
    let mut ring = subscriber.rules.shared.then(|| subscriber.channel().lock());
    if let Some(state) = &mut ring {
        subscriber.channel().part(state, subscriber);
    }
    let mut mail = subscriber.mail();
    // Acquire: as in `Core::offer`.
    let begun = subscriber.progress.begun.load(Acquire);
    let Some(offer) = mail.offer_again(&subscriber.rules, begun, stored) else {
        return Err(match mail.phase() {
            Phase::Open | Phase::Suspended => Unfit::Refused,
            _ => Unfit::Orphaned,
        });
    };
    drop(mail);
    drop(ring);
    let work = match (offer, &mut strand) {
        (Offer::Enqueued { number, .. }, Some(strand)) => {
            strand.append(subscriber, number).then_some(Work::Strand)
        }
        (Offer::Enqueued { schedule: true, .. }, None) => {
            Some(Work::Mailbox(Arc::clone(subscriber)))
        }
        _ => None,
    };
    drop(strand);
    if let Some(work) = work {
        core.call(core.ready.push(work));
    }
    if let Some(puller) = subscriber.puller() {
        puller.notify();
    }
    Ok(())
}
