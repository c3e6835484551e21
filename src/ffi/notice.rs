//! What a hub tells of itself: its errors. Its notices come to subscriptions to `$SYS.` as any message.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Result, call, optional_out, usable};
use super::hub::pace_hub_t;
use super::message::lend;
use super::sized::{self, In};
use super::status::*;
use super::values::pace_text_t;
use crate::hub::{ErrorFilter, Severity};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::time::Duration;
use std::time::SystemTime;

/// It is as it should be.
pub const PACE_SEVERITY_INFO: u32 = 0;
/// Something was lost or put right, as was asked for.
pub const PACE_SEVERITY_WARNING: u32 = 1;
/// Something does not work any more.
pub const PACE_SEVERITY_ERROR: u32 = 2;

/// Which errors: those that all conditions hold for. Set struct_size to sizeof the struct, and what is not
/// asked about to zero.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_error_filter_t {
    /// The size of the struct in bytes: sizeof, set by the caller.
    pub struct_size: u32,
    /// That are this bad, or worse: PACE_SEVERITY_.
    pub severity: u32,
    /// Of events whose names begin so: "subscription.overflow", or "history.". NULL: any.
    pub event: *const c_char,
    /// Whose origins begin so: "publisher", or "subscription 7 ". NULL: any.
    pub origin: *const c_char,
    /// Of this time or later: nanoseconds since 1970.
    pub since_ns: u64,
    /// With greater numbers than this.
    pub after: u64,
    /// At most so many, the latest. 0: all.
    pub limit: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_error_filter_t {
    const FIRST: usize = 48;
    const NAME: &'static str = "pace_error_filter_t";
}

/// Something that went wrong in a hub. Texts are lent to the function that gets it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_hub_error_t {
    /// Its number: 1 for the hub's first.
    pub number: u64,
    /// When it was recorded: nanoseconds since 1970, by the clock of the system.
    pub time_ns: u64,
    /// What happened: the key of its notice without "$SYS.".
    pub event: pace_text_t,
    /// Where: "subscription 7 (orders.>)", say.
    pub origin: pace_text_t,
    /// What there is to say, for people.
    pub message: pace_text_t,
    /// PACE_SEVERITY_: a warning or worse.
    pub severity: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
}

/// Called for an error, in the thread that asks.
pub type pace_hub_error_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, error: *const pace_hub_error_t)>;

/// Calls `each` for the warnings and errors that the filter names, the oldest first, in this thread. `filter`
/// may be NULL: all that are kept; `each` may be NULL: they are only counted. `count` may be NULL.
///
/// A hub tells of itself under keys that begin with "$SYS.": whoever subscribes to "$SYS.>" gets all of it,
/// as any messages, each with an object of JSON: `event`, `time`, `severity`, `origin`, `message`, and fields
/// of its own. The headers "event" and "severity" say these, too, for pace_message_filter_header(). Warnings and errors are kept besides, whether anybody subscribes or not.
///
/// PACE_EINVAL, PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_hub_errors(
    hub: Option<&pace_hub_t>,
    filter: In<pace_error_filter_t>,
    each: pace_hub_error_fn,
    user_data: *mut c_void,
    count: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let hub = usable(hub)?;
        // SAFETY: as the header demands.
        let filter = unsafe { filter_of(filter) }?;
        let to = optional_out(count);
        let errors = hub.hub.errors(&filter);
        if let Some(each) = each {
            for error in &errors {
                let time = error.time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let shown = pace_hub_error_t {
                    number: error.number,
                    time_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
                    event: lend(error.event),
                    origin: lend(&error.origin),
                    message: lend(&error.message),
                    severity: number_of(error.severity),
                    reserved: 0,
                };
                // SAFETY: as the header demands; what is shown lives until it returns.
                unsafe { each(user_data, &shown) }
            }
        }
        to.set(errors.len());
        Ok(())
    })
}

/// # Safety
///
/// As the header demands of a filter, which may be NULL.
unsafe fn filter_of(filter: In<pace_error_filter_t>) -> Result<ErrorFilter> {
    let all = ErrorFilter::all();
    if filter.is_null() {
        return Ok(all);
    }
    let filter = filter.read("filter")?;
    let since = SystemTime::UNIX_EPOCH + Duration::from_nanos(filter.since_ns);
    let mut found = all.at_least(severity_of(filter.severity)?).since(since).after(filter.after);
    if !filter.event.is_null() {
        // SAFETY: not NULL, and as the caller promises.
        found = found.event(unsafe { boundary::text(filter.event, "event") }?);
    }
    if !filter.origin.is_null() {
        // SAFETY: not NULL, and as the caller promises.
        found = found.origin(unsafe { boundary::text(filter.origin, "origin") }?);
    }
    Ok(match filter.limit {
        0 => found,
        most => found.limit(usize::try_from(most).unwrap_or(usize::MAX)),
    })
}

pub(super) fn severity_of(number: u32) -> Result<Severity> {
    Ok(match number {
        PACE_SEVERITY_INFO => Severity::Info,
        PACE_SEVERITY_WARNING => Severity::Warning,
        PACE_SEVERITY_ERROR => Severity::Error,
        other => return Err(Failure::invalid("severity", other, "0 to 2 (PACE_SEVERITY_)")),
    })
}

pub(super) fn number_of(severity: Severity) -> u32 {
    match severity {
        Severity::Info => PACE_SEVERITY_INFO,
        Severity::Warning => PACE_SEVERITY_WARNING,
        Severity::Error => PACE_SEVERITY_ERROR,
    }
}
