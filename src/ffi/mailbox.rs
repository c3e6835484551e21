//! Subscriptions and replays whose messages a completion queue brings to threads of the host.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, FORKED, Out, Result, call, call_void, nanos};
use super::dead::failure_of;
use super::hub::{open as open_hub, pace_hub_t};
use super::sized::Room;
use super::status::*;
use super::subscription::{
    configure, counts, pace_subscription_options_t, pace_subscription_stats_t, pattern_of, read,
    way,
};
use super::values::PACE_FOREVER;
use crate::hub::history::ReplayMailbox;
use crate::hub::{Acknowledged, AfterCrash, HostMailbox, Mailbox, Unsubscribed};
use crate::pool::Shared;
use core::ffi::c_char;
use core::time::Duration;
use std::sync::Arc;

/// A subscription or a replay of a hub that the host empties itself.
pub struct pace_mailbox_t {
    pub(super) mailbox: Arc<dyn HostMailbox>,
    pub(super) of: MailboxOf,
    shared: Arc<Shared>,
}

/// Whose counts a mailbox has.
pub(super) enum MailboxOf {
    Subscription(Arc<Mailbox>),
    Replay(Arc<ReplayMailbox>),
}

impl pace_mailbox_t {
    /// For its owner, in C.
    pub(super) fn give(of: MailboxOf, hub: &pace_hub_t) -> *mut Self {
        let mailbox: Arc<dyn HostMailbox> = match &of {
            MailboxOf::Subscription(mailbox) => Arc::<Mailbox>::clone(mailbox),
            MailboxOf::Replay(mailbox) => Arc::<ReplayMailbox>::clone(mailbox),
        };
        let shared = Arc::clone(hub.hub.pool().shared());
        Box::into_raw(Box::new(Self { mailbox, of, shared }))
    }
}

/// Subscribes with a mailbox that a completion queue empties (pace_cq_mailbox). Of the options the execution is not looked at, and
/// those of supervision are refused, because there is no handler; with `acknowledged` the host's own may have a
/// supervisor, or restarts and suspensions. NULL: 1024 messages, of which more are refused.
///
/// PACE_EINVAL for a bad pattern or option, or a second subscription of the same `unique`; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_mailbox(
    hub: *mut pace_hub_t,
    pattern: *const c_char,
    options: *const pace_subscription_options_t,
    mailbox: *mut *mut pace_mailbox_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let hub = unsafe { open_hub(hub) }?;
        // SAFETY: as the header demands.
        let options = unsafe { read(options) }?;
        // SAFETY: as the header demands.
        let pattern = unsafe { pattern_of(pattern) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(mailbox, "mailbox") }?;
        if options.on_restart.is_some() || options.factory.is_some() {
            let allowed = "NULL for a mailbox, which has no handler";
            return Err(boundary::Failure::invalid("on_restart", "set", allowed));
        }
        // SAFETY: as the header demands.
        let builder = unsafe { configure(hub.hub.subscription(pattern), &options) }?;
        let builder = match options.lease_ns {
            0 => builder,
            lease => builder.lease(nanos(lease)),
        };
        let builder = if options.acknowledged { builder.acknowledged() } else { builder };
        let mailbox = MailboxOf::Subscription(Arc::new(builder.pull()?));
        to.set(pace_mailbox_t::give(mailbox, hub));
        Ok(())
    })
}

/// The counts of its subscription, as they are now. What was brought counts as delivered, or with `acknowledged` as
/// running until the host has said what became of it.
///
/// PACE_EINVAL for the mailbox of a replay; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_mailbox_stats(
    mailbox: *mut pace_mailbox_t,
    stats: *mut pace_subscription_stats_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mailbox = unsafe { open(mailbox) }?;
        // SAFETY: as the header demands.
        let room = unsafe { Room::new(stats, "stats") }?;
        let MailboxOf::Subscription(mailbox) = &mailbox.of else {
            let allowed = "that of a subscription; see pace_replay_mailbox_stats";
            return Err(boundary::Failure::invalid("mailbox", "of a replay", allowed));
        };
        let stats = mailbox.stats();
        let counts = counts(stats, mailbox.id(), stats.suspended);
        let counts = super::subscription::with_latency(counts, mailbox.latency());
        room.fill(counts);
        Ok(())
    })
}

/// Of a mailbox that was made with `acknowledged`: says what became of the messages that were taken first, in the order
/// in which they were taken: so many were dealt with, so many have failed for good, and so many were thrown away.
///
/// PACE_EINVAL for more messages than were taken and are not acknowledged.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_mailbox_acknowledge(
    mailbox: *mut pace_mailbox_t,
    delivered: u64,
    failed: u64,
    discarded: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mailbox = unsafe { open(mailbox) }?;
        Ok(mailbox.mailbox.acknowledge(Acknowledged { delivered, failed, discarded })?)
    })
}

/// Of a mailbox that was made with `acknowledged`: the host's handler has crashed at a message, as `failure` says, UTF-8, which
/// is copied. That counts as a restart by `restarts` or `supervisor` of the mailbox's options, and is told under
/// $SYS.subscription.restarted and by pace_hub_errors(). *suspended_ns, which may be NULL, is 0 if the host restarts the handler
/// and goes on. Otherwise that was once too often, so it and all others of its supervisor are suspended as other handlers would
/// be, for so long; PACE_FOREVER: until they are resumed. What was taken is the host's still.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_mailbox_crashed(
    mailbox: *mut pace_mailbox_t,
    failure: *const c_char,
    suspended_ns: *mut u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mailbox = unsafe { open(mailbox) }?;
        // SAFETY: as the header demands.
        let failure = unsafe { failure_of(failure) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(suspended_ns, "suspended_ns") }?;
        to.set(match mailbox.mailbox.crashed(failure.unwrap_or("it crashed"))? {
            AfterCrash::Restart => 0,
            AfterCrash::Suspended { lasts } => {
                let nanos =
                    |lasts: Duration| u64::try_from(lasts.as_nanos()).unwrap_or(PACE_FOREVER);
                lasts.map_or(PACE_FOREVER, nanos)
            }
        });
        Ok(())
    })
}

/// To be asked before the host's handler gets a message. *suspended, which may be NULL: it is suspended, and gets none.
/// *restarts: the handler is to be restarted first, because another of its supervisor has crashed and all are restarted, or
/// because a suspension has ended; that counts as a restart. NULL: only *suspended is asked for.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_mailbox_catch_up(
    mailbox: *mut pace_mailbox_t,
    restarts: *mut bool,
    suspended: *mut bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mailbox = &unsafe { open(mailbox) }?.mailbox;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(suspended, "suspended") }?;
        let (is_asked, suspended) = (!restarts.is_null(), mailbox.is_suspended());
        // SAFETY: as the header demands.
        let restarts = unsafe { Out::optional(restarts, "restarts") }?;
        to.set(suspended);
        restarts.set(is_asked && !suspended && mailbox.catch_up());
        Ok(())
    })
}

/// Suspends the subscription as a supervisor would, because the host's handler fails too often: what waits, and what
/// comes, becomes dead letters for so long, up to 100 years, or until pace_mailbox_resume(); PACE_FOREVER: until that
/// alone. A replay brings nothing until then, and what comes stays in the history. What was taken is the host's still. *suspended, which may be NULL, says whether it was open before.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_mailbox_suspend(
    mailbox: *mut pace_mailbox_t,
    suspension_ns: u64,
    suspended: *mut bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mailbox = unsafe { open(mailbox) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(suspended, "suspended") }?;
        let lasts = (suspension_ns != PACE_FOREVER).then(|| nanos(suspension_ns));
        to.set(mailbox.mailbox.suspend(lasts)?);
        Ok(())
    })
}

/// Ends a suspension of pace_mailbox_suspend() now. *resumed, which may be NULL, says whether there was one.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_mailbox_resume(
    mailbox: *mut pace_mailbox_t,
    resumed: *mut bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mailbox = unsafe { open(mailbox) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(resumed, "resumed") }?;
        to.set(mailbox.mailbox.resume());
        Ok(())
    })
}

/// Ends the subscription or the replay. With PACE_UNSUBSCRIBE_DRAIN what waits for a subscription is brought still. *ended, which may be
/// NULL, says whether nothing is left.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_mailbox_unsubscribe(
    mailbox: *mut pace_mailbox_t,
    how: u32,
    ended: *mut bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mailbox = unsafe { open(mailbox) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(ended, "ended") }?;
        to.set(mailbox.mailbox.unsubscribe(way(how)?)? == Unsubscribed::Now);
        Ok(())
    })
}

/// Ends the subscription or the replay, and frees the mailbox. NULL is a no-op, and in a forked child nothing is freed.
///
/// Threads: any, as long as no other uses the mailbox any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_mailbox_free(mailbox: *mut pace_mailbox_t) {
    call_void(|| {
        // SAFETY: as the header demands.
        if unsafe { open(mailbox) }.is_ok() {
            // SAFETY: as the header demands, it came from here and is used by nobody else.
            drop(unsafe { Box::from_raw(mailbox) });
        }
    });
}

/// # Safety
///
/// As the header demands of a mailbox.
pub(super) unsafe fn open<'a>(mailbox: *const pace_mailbox_t) -> Result<&'a pace_mailbox_t> {
    // SAFETY: as the caller promises.
    let mailbox = unsafe { boundary::borrow(mailbox, "mailbox") }?;
    if mailbox.shared.is_forked() { Err(FORKED) } else { Ok(mailbox) }
}
