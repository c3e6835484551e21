//! A message is put into the mailbox of a subscription.

use crate::error::receipt::{Refused, Told};
use crate::hub::core::{Core, Work};
use crate::hub::mailbox::ending::finish;
use crate::hub::mailbox::mail::{Offer, Phase};
use crate::hub::mailbox::rules::{Execution, Overflow};
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::message::Stored;
use crate::hub::publish::settings::IfFull;
use crate::hub::publish::waiting::{WaitingPublisher, wait_for_room};
use crate::hub::run::depth::MAX_DEPTH;
use crate::hub::supervise::burial::bury_of;
use crate::hub::supervise::dead::DeadReason;
use crate::hub::supervise::failure_policy::FailurePolicy;
use crate::hub::system::tell::lost_by;
use crate::sync::atomic::Ordering::Acquire;
use core::time::Duration;
use std::sync::{Arc, PoisonError};

/// Puts a message into a mailbox: all but inline subscriptions have one.
pub(in crate::hub) fn enqueue(
    core: &Core,
    subscriber: &Arc<Subscriber>,
    stored: &Stored,
    if_full: IfFull,
) -> Offer {
    // It goes last, when the message is in the list.
    let mut waiting = None;
    // Acquire: pairs with the Release in `deliver_batch`.
    let begun = || subscriber.progress.begun.load(Acquire);
    let mut mail = subscriber.mail();
    let lost = mail.losses();
    let rules = &subscriber.rules;
    let mut offer = match if_full {
        IfFull::Exceed if matches!(rules.overflow, Overflow::Block(_)) => {
            mail.offer_accepted(rules, stored)
        }
        _ => mail.offer(rules, begun(), stored, matches!(if_full, IfFull::Wait | IfFull::Answer)),
    };
    let mut has_lost = mail.losses() > lost && offer != Offer::Replaced;
    drop(mail);
    if offer == Offer::Full && if_full == IfFull::Wait {
        offer = wait_for_room(
            waiting.insert(WaitingPublisher::new(core, subscriber)),
            subscriber,
            stored,
        );
        has_lost = offer == Offer::Rejected;
    }
    if has_lost {
        lost_by(subscriber, core);
    }
    match offer {
        Offer::Enqueued { schedule: true, .. } => {
            core.call(core.ready.push(Work::Mailbox(Arc::clone(subscriber))));
        }
        Offer::Dead => bury_offered(core, subscriber, stored),
        _ => {}
    }
    if let Some(puller) = subscriber.puller() {
        puller.notify();
    }
    offer
}

/// Makes what was offered to a suspended subscription a dead letter. Not under a lock.
#[cold]
pub(in crate::hub) fn bury_offered(core: &Core, subscriber: &Arc<Subscriber>, stored: &Stored) {
    bury_of(subscriber, core, stored, DeadReason::Suspended, None, 0);
    let close = subscriber.mail().buried(1);
    finish(subscriber, core, close);
}

/// Counts what became of an offer; `by` says whose it was.
pub(in crate::hub) fn count(told: &mut Told, offer: Offer, by: impl FnOnce() -> Refused) {
    let Told { receipt, refused, .. } = told;
    receipt.matched += u64::from(offer != Offer::Closed);
    match offer {
        Offer::Closed => {}
        Offer::Enqueued { .. } | Offer::Replaced => receipt.enqueued += 1,
        Offer::Dropped => receipt.dropped += 1,
        Offer::Dead => receipt.dead_lettered += 1,
        Offer::Rejected | Offer::Full => {
            receipt.rejected += 1;
            if refused.is_none() {
                *refused = Some(by());
            }
        }
    }
}

/// What has refused a message, for people.
#[cold]
pub(in crate::hub) fn refused(subscriber: &Subscriber) -> Refused {
    let name = format!("subscription {} ({})", subscriber.id(), subscriber.channel().pattern());
    match (subscriber.rules.execution, subscriber.group()) {
        (Execution::Inline, _) => {
            let depth = MAX_DEPTH as usize;
            (format!("the stack of inline handlers before {name}").into(), depth)
        }
        (_, None) => (format!("the mailbox of {name}").into(), subscriber.rules.capacity as usize),
        (_, Some(_)) => {
            let mailbox = format!("each mailbox that may have it in the group of {name}");
            (mailbox.into(), subscriber.rules.capacity as usize)
        }
    }
}

/// Whether it is on the strand and gets a message whose filters have let it pass to these.
pub(in crate::hub) fn gets_on_strand(subscriber: &Subscriber, passed: &[u64]) -> bool {
    subscriber.rules.execution == Execution::Strand
        && (!subscriber.policy().is_some_and(FailurePolicy::has_filter)
            || passed.contains(&subscriber.id()))
}

/// Whether it would have a publisher wait for room.
pub(in crate::hub) fn has_no_room(subscriber: &Subscriber) -> bool {
    if !matches!(subscriber.rules.overflow, Overflow::Block(_)) {
        return false;
    }
    subscriber.channel().with_ring(subscriber, |_, in_ring, mail| {
        // Acquire: pairs with the Release where messages begin.
        let begun = subscriber.progress.begun.load(Acquire);
        let room = u64::from(subscriber.rules.capacity).saturating_sub(mail.waiting(begun) as u64);
        mail.has_no_room(&subscriber.rules, begun) || mail.phase() == Phase::Open && in_ring >= room
    })
}

/// Sleeps until somebody tells of room, or for so long.
pub(in crate::hub) fn nap_for_room(subscriber: &Subscriber, nap: Duration) {
    let mut mail = subscriber.mail();
    mail.has_waiters = true;
    drop(subscriber.room().wait_timeout(mail, nap).unwrap_or_else(PoisonError::into_inner));
}
