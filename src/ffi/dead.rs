//! Dead letters.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Result, call, optional_out, usable};
use super::hub::pace_hub_t;
use super::mailbox::{open as open_mailbox, pace_mailbox_t};
use super::message::{
    NOTHING, fields, headers, lend, pace_message_t, pace_subscription_t, priority, show, text_of,
};
use super::sized::{self, In, InOut};
use super::status::*;
use super::subscription::pattern_of;
use super::values::pace_text_t;
use crate::hub::{DeadFilter, DeadLetter, DeadReason, Hub, Key, Stored};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::time::Duration;
use std::time::SystemTime;

/// A dead letter's reason: its handler has failed at the last attempt.
pub const PACE_DEAD_FAILED: u32 = 1;
/// A dead letter's reason: its handler, which is written in Rust, has panicked at the last attempt.
pub const PACE_DEAD_PANICKED: u32 = 2;
/// A dead letter's reason: the subscription was suspended.
pub const PACE_DEAD_SUSPENDED: u32 = 3;

/// Which dead letters: those that all conditions hold for. Set struct_size to sizeof the struct, and what
/// is not asked about to zero.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_dead_filter_t {
    /// The size of the struct in bytes: sizeof, set by the caller.
    pub struct_size: u32,
    /// PACE_DEAD_. 0: whatever it died of.
    pub reason: u32,
    /// Whose key this pattern matches. NULL: any.
    pub pattern: *const c_char,
    /// That were for the subscription of this number; see pace_subscription_stats_t. 0: any.
    pub subscription: u64,
    /// With this number or a later one.
    pub first: u64,
    /// With this number or an earlier one. 0: any.
    pub last: u64,
    /// That died at this time or later: nanoseconds since 1970.
    pub since_ns: u64,
    /// At most so many, the oldest. 0: all.
    pub limit: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_dead_filter_t {
    const FIRST: usize = 56;
    const NAME: &'static str = "pace_dead_filter_t";
}

/// A message that a subscription could not deal with. What it points to is lent to the function that gets it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_dead_letter_t {
    /// The message, as it was published; its attempt is the last one.
    pub message: pace_message_t,
    /// The letter's number in its hub: 1 for the first.
    pub number: u64,
    /// The number of the subscription that it was for; see pace_subscription_stats_t.
    pub subscription: u64,
    /// When it died: nanoseconds since 1970, by the clock of the system.
    pub died_ns: u64,
    /// The pattern of the subscription.
    pub pattern: pace_text_t,
    /// What the handler said at its last attempt. NULL: nothing.
    pub failure: pace_text_t,
    /// Why the message is a dead letter: one of PACE_DEAD_FAILED, PACE_DEAD_PANICKED and PACE_DEAD_SUSPENDED.
    pub reason: u32,
    /// How often the handler was called with it: 0 if it came to a suspended subscription.
    pub attempts: u32,
}

/// Called for a dead letter, in the thread that asks.
pub type pace_dead_letter_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, letter: *const pace_dead_letter_t)>;

/// How many dead letters there were. Set struct_size to sizeof the struct before the call.
///
/// buried = held + forgotten + removed
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_dead_letter_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Messages that have become dead letters.
    pub buried: u64,
    /// Of these, those that are kept now.
    pub held: u64,
    /// Those that were forgotten for newer ones.
    pub forgotten: u64,
    /// Those that were taken out, to be delivered again or not.
    pub removed: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_dead_letter_stats_t {
    const FIRST: usize = 40;
    const NAME: &'static str = "pace_dead_letter_stats_t";
}

/// What became of dead letters that were to be delivered again. Set struct_size to sizeof the struct before
/// the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_redelivered_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// They wait in the mailboxes of their subscriptions, or for their replays, again.
    pub enqueued: u64,
    /// They are dead letters still, with new numbers: the mailbox was full, or the subscription is
    /// suspended, or has no mailbox because it is inline. A replay that is suspended, or for which 1024 wait
    /// so, takes none either.
    pub refused: u64,
    /// They are dead letters still, with new numbers: their subscription, or their replay, has ended.
    pub orphaned: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_redelivered_t {
    const FIRST: usize = 32;
    const NAME: &'static str = "pace_redelivered_t";
}

/// Calls `each` for the dead letters that the filter names, the oldest first, in this thread. They stay what
/// they are. `filter` may be NULL: all; `each` may be NULL: they are only counted. `count` may be NULL.
///
/// PACE_EINVAL, PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_dead_letters(
    hub: Option<&pace_hub_t>,
    filter: In<pace_dead_filter_t>,
    each: pace_dead_letter_fn,
    user_data: *mut c_void,
    count: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { letters(hub, filter, each, user_data, count, Hub::dead_letters) })
}

/// As pace_hub_dead_letters(), and takes them out.
///
/// PACE_EINVAL, PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_remove_dead_letters(
    hub: Option<&pace_hub_t>,
    filter: In<pace_dead_filter_t>,
    each: pace_dead_letter_fn,
    user_data: *mut c_void,
    count: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { letters(hub, filter, each, user_data, count, Hub::remove_dead_letters) })
}

/// Delivers dead letters once more, each to the subscription or the replay that it was for and to no other, behind
/// what waits there. `filter` may be NULL: all; `redelivered` may be NULL.
///
/// PACE_EINVAL, PACE_EVERSION, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_hub_redeliver(
    hub: Option<&pace_hub_t>,
    filter: In<pace_dead_filter_t>,
    redelivered: InOut<pace_redelivered_t>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        // SAFETY: as the header demands.
        let filter = unsafe { filter_of(filter) }?;
        let room = match redelivered.is_null() {
            true => None,
            false => Some(redelivered.room("redelivered")?),
        };
        let done = hub.hub.redeliver(&filter)?;
        if let Some(room) = room {
            room.fill(pace_redelivered_t {
                struct_size: 0,
                reserved: 0,
                enqueued: done.enqueued,
                refused: done.refused,
                orphaned: done.orphaned,
            });
        }
        Ok(())
    })
}

/// How many dead letters there were, and what became of them.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_hub_dead_letter_stats(
    hub: Option<&pace_hub_t>,
    stats: InOut<pace_dead_letter_stats_t>,
) -> pace_status_t {
    call(|| {
        let counts = usable(hub)?.hub.dead_letter_stats();
        stats.room("stats")?.fill(pace_dead_letter_stats_t {
            struct_size: 0,
            reserved: 0,
            buried: counts.buried,
            held: counts.held,
            forgotten: counts.forgotten,
            removed: counts.removed,
        });
        Ok(())
    })
}

/// Makes a message that was brought from this mailbox a dead letter, after so many attempts: it counts as
/// dead-lettered then, and no longer as delivered. With 0 attempts the reason is PACE_DEAD_SUSPENDED, and else
/// PACE_DEAD_FAILED. The message may be a copy of what was brought; all that it points to is copied. `failure`
/// may be NULL.
///
/// PACE_EINVAL for what cannot be a message of this mailbox.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_mailbox_bury(
    mailbox: *mut pace_mailbox_t,
    message: *const pace_message_t,
    failure: *const c_char,
    attempts: u32,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mailbox = &unsafe { open_mailbox(mailbox) }?.mailbox;
        // SAFETY: as the header demands.
        let stored = unsafe { stored_of(message, |key| mailbox.key(key)) }?;
        // SAFETY: as the header demands.
        Ok(mailbox.bury(&stored, unsafe { failure_of(failure) }?, attempts)?)
    })
}

/// A copy of a message that is to be buried.
///
/// # Safety
///
/// As the header demands of a message.
pub(super) unsafe fn stored_of(
    message: *const pace_message_t,
    key_of: impl FnOnce(&str) -> crate::Result<Key>,
) -> Result<Stored> {
    // SAFETY: as the caller promises.
    let message = unsafe { boundary::borrow(message, "message") }?;
    // SAFETY: as the caller promises.
    let key = unsafe { text_of(&message.key, "the message's key") }?;
    // SAFETY: as the caller promises.
    let payload = unsafe { super::message::payload(message.payload, message.size) }?;
    Ok(Stored {
        sequence: message.sequence,
        time: message.time_ns,
        key: key_of(key)?,
        // SAFETY: as the caller promises.
        headers: unsafe { headers(message.headers, message.header_count) }?,
        payload,
        priority: priority(message.priority)?,
    })
}

/// # Safety
///
/// As the header demands of a failure's text, which may be NULL.
pub(super) unsafe fn failure_of<'a>(failure: *const c_char) -> Result<Option<&'a str>> {
    match failure.is_null() {
        true => Ok(None),
        // SAFETY: not NULL, and as the caller promises.
        false => Ok(Some(unsafe { boundary::text(failure, "failure") }?)),
    }
}

/// # Safety
///
/// As the header demands of a filter, which may be NULL.
unsafe fn filter_of(filter: In<pace_dead_filter_t>) -> Result<DeadFilter> {
    let all = DeadFilter::all();
    if filter.is_null() {
        return Ok(all);
    }
    let filter = filter.read("filter")?;
    let found = match filter.reason {
        0 => all,
        PACE_DEAD_FAILED => all.reason(DeadReason::Failed),
        PACE_DEAD_PANICKED => all.reason(DeadReason::Panicked),
        PACE_DEAD_SUSPENDED => all.reason(DeadReason::Suspended),
        other => return Err(Failure::invalid("reason", other, "0 to 3 (PACE_DEAD_)")),
    };
    let found = match filter.pattern.is_null() {
        true => found,
        // SAFETY: as the caller promises.
        false => found.key(unsafe { pattern_of(filter.pattern) }?)?,
    };
    let found = match filter.subscription {
        0 => found,
        number => found.subscription(number),
    };
    let last = if filter.last == 0 { u64::MAX } else { filter.last };
    let found = found.numbers(filter.first, last);
    let found = found.since(SystemTime::UNIX_EPOCH + Duration::from_nanos(filter.since_ns));
    Ok(match filter.limit {
        0 => found,
        most => found.limit(usize::try_from(most).unwrap_or(usize::MAX)),
    })
}

/// Tells of the letters that `take` brings, and how many they are.
///
/// # Safety
///
/// As the header demands of the two functions that list dead letters.
unsafe fn letters(
    hub: Option<&pace_hub_t>,
    filter: In<pace_dead_filter_t>,
    each: pace_dead_letter_fn,
    user_data: *mut c_void,
    count: Option<&mut MaybeUninit<usize>>,
    take: fn(&Hub, &DeadFilter) -> Vec<DeadLetter>,
) -> Result<()> {
    let hub = usable(hub)?;
    // SAFETY: the caller vouches for it.
    let filter = unsafe { filter_of(filter) }?;
    let to = optional_out(count);
    let letters = take(&hub.hub, &filter);
    // SAFETY: the caller vouches for it.
    unsafe { tell(&letters, each, user_data) };
    to.set(letters.len());
    Ok(())
}

/// # Safety
///
/// The function takes what came with it.
unsafe fn tell(letters: &[DeadLetter], each: pace_dead_letter_fn, user_data: *mut c_void) {
    let Some(each) = each else { return };
    for letter in letters {
        let headers = fields(letter.message().headers());
        let mut message = show(letter.message(), 0, pace_subscription_t { id: 0 }, &headers);
        message.attempt = letter.attempts();
        let died = letter.died().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let shown = pace_dead_letter_t {
            message,
            number: letter.number(),
            subscription: letter.subscription(),
            died_ns: u64::try_from(died.as_nanos()).unwrap_or(u64::MAX),
            pattern: lend(letter.pattern()),
            failure: letter.failure().map_or(NOTHING, lend),
            reason: match letter.reason() {
                DeadReason::Failed => PACE_DEAD_FAILED,
                DeadReason::Panicked => PACE_DEAD_PANICKED,
                DeadReason::Suspended => PACE_DEAD_SUSPENDED,
            },
            attempts: letter.attempts(),
        };
        // SAFETY: as the caller promises; what is shown lives until it returns.
        unsafe { each(user_data, &shown) }
    }
}
