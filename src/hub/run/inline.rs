//! One message is delivered on this thread.

use crate::hub::core::Core;
use crate::hub::mailbox::counters::Settled;
use crate::hub::mailbox::ending::finish;
use crate::hub::mailbox::entry::Entry;
use crate::hub::mailbox::failure::Failure;
use crate::hub::mailbox::handler::Handler;
use crate::hub::mailbox::mail::{Mail, Offer};
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::message::{Message, Stored};
use crate::hub::run::depth::{InHandler, is_too_deep};
use crate::hub::supervise::failure_policy::{After, Handling};
use crate::hub::supervise::failures::{failed_at, suspend_all};
use crate::trace;
use std::sync::Arc;

/// The handler, for a run that is active beside others. It is dropped before the run leaves.
#[allow(unsafe_code, reason = "as `handler.rs` says")]
pub(in crate::hub) fn lend_shared(mail: &Mail<Handler>) -> Option<Handler> {
    // SAFETY: whoever calls has an active run, and lets go of what is lent before `leave`; `end_if_over` alone gives
    // the handler up, when no run is active.
    mail.share(|handler| unsafe { handler.lend_shared() })
}

/// Delivers a message on this thread. False: the subscription has ended.
pub(in crate::hub) fn deliver_inline(
    subscriber: &Arc<Subscriber>,
    core: &Core,
    stored: &Stored,
) -> Inline {
    if is_too_deep() {
        return match subscriber.mail().refuse() {
            Offer::Closed => Inline::Closed,
            Offer::Dead => Inline::Dead,
            _ => Inline::TooDeep,
        };
    }
    let mut mail = subscriber.mail();
    let lost = match mail.enter_inline() {
        Ok(lost) => lost,
        Err(Offer::Dead) => return Inline::Dead,
        Err(_) => return Inline::Closed,
    };
    let handler = lend_shared(&mail);
    drop(mail);
    let Some(mut handler) = handler else { unreachable!("an inline mailbox has a shared one") };
    let failure = {
        let _in_handler = InHandler::enter();
        let _handling = catch_up(subscriber, stored);
        let _runs = trace::runs_within(subscriber.name());
        let message = Message { stored, lost_before: lost, attempt: 1 };
        let failure = handler.call(&message);
        core.shared.end_if_forked();
        failure
    };
    drop(handler);
    let settled = match failure {
        None => Settled { delivered: 1, ..Settled::default() },
        Some(failure) => {
            let mut entry = Entry { stored: stored.clone(), lost, number: 0, tried: None };
            failed_alone(subscriber, core, &mut entry, &failure)
        }
    };
    stored.end_one();
    let mut mail = subscriber.mail();
    mail.settle(&settled);
    let close = mail.leave(None);
    drop(mail);
    finish(subscriber, core, close);
    Inline::Delivered
}

/// Restarts the handler first, if that is due, and measures what the message has waited, and from here on how long the
/// handler takes.
#[inline]
fn catch_up<'a>(subscriber: &'a Subscriber, stored: &Stored) -> Option<Handling<'a>> {
    let policy = subscriber.policy()?;
    policy.catch_up();
    policy.measure(stored.time);
    Some(policy.handle())
}

/// Calls the handler with a message that waited. Why it could not deal with it, if so.
#[inline]
pub(in crate::hub) fn call_handler(
    subscriber: &Subscriber,
    core: &Core,
    handler: &mut Handler,
    entry: &Entry,
) -> Option<Box<Failure>> {
    let _handling = catch_up(subscriber, &entry.stored);
    trace::goes_on();
    let attempt = entry.tried.as_ref().map_or(1, |tried| tried.attempts + 1);
    let message = Message { stored: &entry.stored, lost_before: entry.lost, attempt };
    let failure = handler.call(&message);
    core.shared.end_if_forked();
    failure
}

/// Deals with the failure of a handler whose messages are not tried again.
#[cold]
pub(in crate::hub) fn failed_alone(
    subscriber: &Arc<Subscriber>,
    core: &Core,
    entry: &mut Entry,
    failure: &Failure,
) -> Settled {
    let after = failed_at(subscriber, core, entry, failure);
    if after == After::Suspend {
        suspend_all(subscriber, core);
    }
    let failed = u64::from(after == After::Discard);
    Settled { delivered: 0, failed, dead: 1 - failed }
}

/// What became of an inline delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::hub) enum Inline {
    Delivered,
    Closed,
    /// The subscription is suspended: the caller makes it a dead letter.
    Dead,
    /// Handlers have published to handlers to such a depth that it was refused.
    TooDeep,
}

/// Calls the handler of a replay. Why it could not deal with the message, if so.
pub(in crate::hub) fn call_in_handler(
    core: &Core,
    handler: &mut Handler,
    message: &Message<'_>,
) -> Option<Box<Failure>> {
    let _in_handler = InHandler::enter();
    let failure = handler.call(message);
    core.shared.end_if_forked();
    failure
}
