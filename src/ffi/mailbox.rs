//! Subscriptions whose messages are pulled by threads of the host.
//!
//! What a thread has pulled lies in a place of the thread's own until it pulls again: the payloads are the
//! hub's, shared with all others that have them.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, FORKED, Out, Result, TIMED_OUT, call, call_void, nanos};
use super::dead::failure_of;
use super::hub::{open as open_hub, pace_hub_t};
use super::message::{list, pace_message_t, pace_subscription_t, show};
use super::sized::Room;
use super::status::*;
use super::subscription::{
    configure, counts, pace_subscription_options_t, pace_subscription_stats_t, pattern_of, read,
    way,
};
use super::values::{PACE_FOREVER, pace_field_t};
use crate::hub::{Acknowledged, Mailbox, Messages, Received, Unsubscribed};
use crate::pool::Shared;
use core::cell::RefCell;
use core::ffi::c_char;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Bytes: if no message of a pull has a longer payload, the payloads lie one after the other, in order and
/// without gaps, so that the host may copy all of them at once.
pub const PACE_PULLED_TOGETHER: usize = 256;

/// A subscription of a hub that the host empties itself.
pub struct pace_mailbox_t {
    pub(super) mailbox: Arc<Mailbox>,
    shared: Arc<Shared>,
}

/// Subscribes with a mailbox that the caller empties. Of the options the execution is not looked at, and
/// those of supervision are refused, because there is no handler; NULL: 1024 messages, of which more are
/// refused.
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
            let allowed = "NULL for a mailbox that is pulled";
            return Err(boundary::Failure::invalid("on_restart", "set", allowed));
        }
        // SAFETY: as the header demands.
        let builder = unsafe { configure(hub.hub.subscription(pattern), &options) }?;
        let builder = match options.lease_ns {
            0 => builder,
            lease => builder.lease(nanos(lease)),
        };
        let builder = if options.acknowledged { builder.acknowledged() } else { builder };
        let mailbox = Arc::new(builder.pull()?);
        let shared = Arc::clone(hub.hub.pool().shared());
        to.set(Box::into_raw(Box::new(pace_mailbox_t { mailbox, shared })));
        Ok(())
    })
}

/// Waits for up to `timeout_ns` for messages, and takes up to `capacity` of them, in order. PACE_OK:
/// *count is 1 or more. They count as delivered, and stay where they are until the thread that has pulled
/// them pulls again, from whatever mailbox, or ends. Payloads of up to PACE_PULLED_TOGETHER bytes lie one
/// after the other.
///
/// PACE_ETIMEDOUT: nothing came; PACE_ESTALE: the subscription has ended, and all that waited was pulled;
/// PACE_EINVAL for a capacity of 0; PACE_ESHUTDOWN when the pool ends; PACE_EDEADLOCK on a thread of the
/// pool, if no other is left.
///
/// Threads: any. In handlers: yes. It waits, unless the time is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_mailbox_pull(
    mailbox: *mut pace_mailbox_t,
    messages: *mut pace_message_t,
    capacity: usize,
    timeout_ns: u64,
    count: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mailbox = &unsafe { open(mailbox) }?.mailbox;
        boundary::check(messages, "messages")?;
        if capacity == 0 {
            return Err(boundary::Failure::invalid("capacity", 0, "at least 1"));
        }
        // SAFETY: as the header demands.
        let count = unsafe { Out::new(count, "count") }?;
        let take = |into: &mut Messages| mailbox.pull_batch(into, capacity, nanos(timeout_ns));
        // SAFETY: no more than `capacity` are taken, and there is room for as many.
        match unsafe { lend_pulled(messages, take) }? {
            0 => Err(TIMED_OUT),
            some => {
                count.set(some);
                Ok(())
            }
        }
    })
}

/// *fd is readable while a message may wait, or the subscription has ended. It belongs to the mailbox:
/// never read or close it. A pull that finds nothing makes it unreadable.
///
/// PACE_EOS if there are no descriptors left.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_mailbox_pollable(
    mailbox: *mut pace_mailbox_t,
    fd: *mut i32,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mailbox = unsafe { open(mailbox) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(fd, "fd") }?;
        to.set(mailbox.mailbox.descriptor()?.as_raw_fd());
        Ok(())
    })
}

/// The counts of its subscription, as they are now. What was pulled counts as delivered.
///
/// PACE_EVERSION.
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
        let stats = mailbox.mailbox.stats();
        let counts = counts(stats, mailbox.mailbox.id(), stats.suspended);
        let counts = super::subscription::with_latency(counts, mailbox.mailbox.latency());
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

/// Tells the hub that the host has restarted its handler of these messages, and why: `failure` is UTF-8 and copied; NULL:
/// together with others, or after a suspension. It counts as one of the subscription's `restarts`, and is told under
/// $SYS.subscription.restarted and by pace_hub_errors().
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_mailbox_restarted(
    mailbox: *mut pace_mailbox_t,
    failure: *const c_char,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mailbox = unsafe { open(mailbox) }?;
        // SAFETY: as the header demands.
        let failure = unsafe { failure_of(failure) }?;
        mailbox.mailbox.restarted(failure);
        Ok(())
    })
}

/// Suspends the subscription as a supervisor would, because the host's handler fails too often: what waits, and what
/// comes, becomes dead letters for so long, up to 100 years, or until pace_mailbox_resume(); PACE_FOREVER: until that
/// alone. What was taken is the host's still. *suspended, which may be NULL, says whether it was open before.
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

/// Ends the subscription. With PACE_UNSUBSCRIBE_DRAIN what waits can be pulled still. *ended, which may be
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

/// Ends the subscription, and frees the mailbox. NULL is a no-op, and in a forked child nothing is freed.
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

/// What a thread has pulled last.
#[derive(Default)]
struct Place {
    pulled: Messages,
    /// The headers of all of them, one after the other. They point into the messages.
    fields: Vec<pace_field_t>,
    /// The payloads of all of them, if none is long.
    payloads: Vec<u8>,
}

impl Place {
    /// Looks through what was pulled: puts the payloads together, if none is long, and lists the headers. Whether
    /// the payloads lie together now: a copy of this size costs less than what a host of another language would do
    /// per message.
    fn gather(&mut self) -> bool {
        let Self { pulled, fields, payloads } = self;
        fields.clear();
        payloads.clear();
        let mut gathers = true;
        pulled.for_each(|message, _| {
            if !message.headers().is_empty() {
                fields.extend(list(message.headers()));
            }
            let payload = message.payload().as_slice();
            gathers &= payload.len() <= PACE_PULLED_TOGETHER;
            if gathers {
                payloads.extend_from_slice(payload);
            }
        });
        gathers
    }

    /// Shows each message.
    fn show(&mut self, mut to: impl FnMut(usize, pace_message_t)) {
        let gathered = self.gather();
        let name = pace_subscription_t { id: 0 };
        let (mut index, mut first, mut start) = (0, 0, 0);
        self.pulled.for_each(|message, lost_before| {
            let last = first + message.headers().len();
            let mut shown = show(message, lost_before, name, &self.fields[first..last]);
            first = last;
            if gathered && shown.size > 0 {
                shown.payload = self.payloads[start..].as_ptr().cast();
                start += shown.size;
            }
            to(index, shown);
            index += 1;
        });
    }
}

/// Takes messages, and shows them to the caller; they lie in this thread's place then. 0 also while the thread
/// ends, when there is no such place any more.
///
/// # Safety
///
/// There is room at `messages` for as many as `take` appends.
pub(super) unsafe fn lend_pulled(
    messages: *mut pace_message_t,
    take: impl FnOnce(&mut Messages) -> crate::Result<usize>,
) -> Result<usize> {
    // SAFETY: as the caller promises.
    lend_through(take, |index, shown| unsafe { messages.add(index).write(shown) })
}

/// As [`lend_pulled`], and `to` puts each where it belongs.
pub(super) fn lend_through(
    take: impl FnOnce(&mut Messages) -> crate::Result<usize>,
    to: impl FnMut(usize, pace_message_t),
) -> Result<usize> {
    let mut place = PLACE.try_with(RefCell::take).unwrap_or_default();
    place.pulled = Messages::default();
    let taken = take(&mut place.pulled);
    place.show(to);
    let is_kept = PLACE.try_with(|kept| kept.replace(place)).is_ok();
    Ok(if is_kept { taken? } else { 0 })
}

/// Shows a message, and keeps it where this thread's last ones are. While the thread ends there is no such
/// place any more.
pub(super) fn keep(message: Received) -> Result<pace_message_t> {
    let mut shown = None;
    let one = |pulled: &mut Messages| {
        pulled.push(message);
        Ok(1)
    };
    match lend_through(one, |_, message| shown = Some(message))? {
        0 => Err(TIMED_OUT),
        _ => shown.ok_or(TIMED_OUT),
    }
}

thread_local! {
    static PLACE: RefCell<Place> = RefCell::default();
}

/// # Safety
///
/// As the header demands of a mailbox.
pub(super) unsafe fn open<'a>(mailbox: *const pace_mailbox_t) -> Result<&'a pace_mailbox_t> {
    // SAFETY: as the caller promises.
    let mailbox = unsafe { boundary::borrow(mailbox, "mailbox") }?;
    if mailbox.shared.is_forked() { Err(FORKED) } else { Ok(mailbox) }
}
