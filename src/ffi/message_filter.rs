//! Filters of messages: what of its pattern a subscription takes.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, Handle, Result, Text, call, call_void, callback, consumed, nanos, out,
};
use super::callback::pace_drop_fn;
use super::message::{self, pace_message_t};
use super::owner::pair;
use super::status::*;
use crate::hub::{Filter, Rate};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use std::time::SystemTime;

/// Says which messages come into a mailbox. What does not pass does not match. It never changes, and may be
/// given to any number of subscriptions, which share what it counts.
pub struct pace_message_filter_t {
    filter: Filter,
}

impl Handle for pace_message_filter_t {
    const NAME: &'static str = "filter";

    fn is_forked(&self) -> bool {
        false
    }
}

/// Whether a message passes: 0 for no, and negative if that cannot be told: then it does not pass either, and
/// filter_failures counts it. It is called by publishers, by several at once, before the message is in any
/// mailbox, and must be quick.
pub type pace_message_test_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, message: *const pace_message_t) -> i32>;

/// Messages that have a header of this name with this value, compared byte for byte.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_message_filter_header(
    name: Text,
    value: Text,
    filter: Option<&mut MaybeUninit<*mut pace_message_filter_t>>,
) -> pace_status_t {
    call(|| {
        let name = name.get("name")?;
        let value = value.get("value")?;
        // SAFETY: as the header demands.
        unsafe { give(Filter::header(name, value), filter) }
    })
}

/// Messages whose payload has these `size` bytes, `offset` bytes after its beginning. The bytes are copied.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_message_filter_bytes(
    offset: usize,
    bytes: *const c_void,
    size: usize,
    filter: Option<&mut MaybeUninit<*mut pace_message_filter_t>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        // SAFETY: as the header demands.
        unsafe { give(Filter::bytes_at(offset, bytes), filter) }
    })
}

/// Messages that are published at `from_ns` or later and before `to_ns`: nanoseconds since 1970, by the clock
/// of the system.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_message_filter_time(
    from_ns: u64,
    to_ns: u64,
    filter: Option<&mut MaybeUninit<*mut pace_message_filter_t>>,
) -> pace_status_t {
    let time = |at| SystemTime::UNIX_EPOCH + nanos(at);
    // SAFETY: as the header demands.
    call(|| unsafe { give(Filter::published(time(from_ns), time(to_ns)), filter) })
}

/// No more than `messages` (at least 1) in each `per_ns` (1 ns for each to 100 years), evenly spread, and up
/// to `burst` (at least 1) at once after a time with fewer. Whichever it is asked about uses one up, so
/// behind others it belongs second in pace_message_filter_and().
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_message_filter_rate(
    messages: u32,
    per_ns: u64,
    burst: u32,
    filter: Option<&mut MaybeUninit<*mut pace_message_filter_t>>,
) -> pace_status_t {
    call(|| {
        let made = Filter::at_most(Rate::new(messages, nanos(per_ns)).burst(burst))?;
        // SAFETY: as the header demands.
        unsafe { give(made, filter) }
    })
}

/// Messages of which `test` says so. `drop` runs when neither a filter nor a subscription has it any more; one
/// that has ended may have it until the next message of its key, or the end of the hub.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_message_filter_test(
    test: pace_message_test_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    filter: Option<&mut MaybeUninit<*mut pace_message_filter_t>>,
) -> pace_status_t {
    call(|| {
        let test = callback(test, "test")?;
        let to = out(filter, "filter")?;
        let (registration, owner) = pair(user_data, drop);
        let made = Filter::predicate_or_none(move |stored| {
            // SAFETY: as the header demands, the function takes what came with it.
            let says = message::lend_to(stored, |shown| unsafe { test(owner.data(), shown) });
            (says >= 0).then_some(says != 0)
        });
        registration.keep();
        to.set(wrap(made));
        Ok(())
    })
}

/// Messages that pass both; the second is not asked about those that do not pass the first. Both can be freed.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_message_filter_and(
    first: *const pace_message_filter_t,
    second: *const pace_message_filter_t,
    filter: Option<&mut MaybeUninit<*mut pace_message_filter_t>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let (first, second) = unsafe { (open(first, "first")?, open(second, "second")?) };
        // SAFETY: as the header demands.
        unsafe { give(first.and(second), filter) }
    })
}

/// Messages that pass one of both; the second is not asked about those that pass the first. Both can be freed.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_message_filter_or(
    first: *const pace_message_filter_t,
    second: *const pace_message_filter_t,
    filter: Option<&mut MaybeUninit<*mut pace_message_filter_t>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let (first, second) = unsafe { (open(first, "first")?, open(second, "second")?) };
        // SAFETY: as the header demands.
        unsafe { give(first.or(second), filter) }
    })
}

/// Messages that do not pass `of`, which can be freed.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_message_filter_not(
    of: *const pace_message_filter_t,
    filter: Option<&mut MaybeUninit<*mut pace_message_filter_t>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let of = unsafe { open(of, "of") }?;
        // SAFETY: as the header demands.
        unsafe { give(of.not(), filter) }
    })
}

/// Frees a filter. Subscriptions and filters that were made with it keep what they need. NULL is a no-op.
///
/// Threads: any, as long as no other uses the filter any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_message_filter_free(filter: Option<Box<pace_message_filter_t>>) {
    call_void(|| drop(consumed(filter)));
}

/// # Safety
///
/// As the header demands of a filter.
pub(super) unsafe fn open(filter: *const pace_message_filter_t, name: &str) -> Result<Filter> {
    // SAFETY: as the caller promises.
    Ok(unsafe { boundary::borrow(filter, name) }?.filter.clone())
}

/// # Safety
///
/// As the header demands of an out-parameter.
unsafe fn give(
    made: Filter,
    filter: Option<&mut MaybeUninit<*mut pace_message_filter_t>>,
) -> Result {
    out(filter, "filter")?.set(wrap(made));
    Ok(())
}

fn wrap(filter: Filter) -> *mut pace_message_filter_t {
    Box::into_raw(Box::new(pace_message_filter_t { filter }))
}
