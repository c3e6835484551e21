//! One-shot timers.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Result, call, nanos, optional_out, out, usable};
use super::callback::{pace_drop_fn, pace_task_fn, pace_timer_t};
use super::handle::key;
use super::pool::pace_pool_t;
use super::status::*;
use super::task::ignore;
use super::work::Work;
use crate::Timer;
use crate::pool::AskedFor;
use core::ffi::c_void;
use core::mem::{MaybeUninit, forget};

/// Runs a task once, `delay_ns` from now (up to 100 years): never early. Allocates nothing. `timer`
/// may be NULL: a timer ends by itself, and nothing need be kept.
///
/// PACE_EINVAL, PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_after(
    pool: Option<&pace_pool_t>,
    delay_ns: u64,
    run: pace_task_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    timer: Option<&mut MaybeUninit<pace_timer_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let to = optional_out(timer);
        let work = Work::new(run, user_data, drop)?;
        let work = AskedFor(move || ignore(work.run()));
        match Timer::after(pool.pool.shared(), nanos(delay_ns), work, |_| ()) {
            Ok(timer) => {
                to.set(name(&timer));
                Ok(())
            }
            Err((error, work)) => {
                // It is the caller's still: its `drop` must not run.
                forget(work);
                Err(error.into())
            }
        }
    })
}

/// Cancels. *cancelled: true, the task never runs, and its `drop` has; false, it has begun, has run,
/// or was cancelled before, and the id may be forgotten.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_timer_cancel(
    pool: Option<&pace_pool_t>,
    timer: pace_timer_t,
    cancelled: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| ask(pool, timer, cancelled, "cancelled", Timer::cancel))
}

/// Puts a timer off until `delay_ns` from now, which must not be earlier than it was due (then nothing
/// changes); more than 100 years are taken as 100 years. *postponed: true, it had not begun; a timer that begins at
/// this very moment may still run once.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_timer_postpone(
    pool: Option<&pace_pool_t>,
    timer: pace_timer_t,
    delay_ns: u64,
    postponed: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    let postpone = |timer: &Timer| timer.postpone(nanos(delay_ns));
    call(|| ask(pool, timer, postponed, "postponed", postpone))
}

/// Whether a timer has neither begun nor been cancelled.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_timer_is_pending(
    pool: Option<&pace_pool_t>,
    timer: pace_timer_t,
    pending: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| ask(pool, timer, pending, "pending", Timer::is_pending))
}

pub(super) fn name(timer: &Timer) -> pace_timer_t {
    pace_timer_t { id: timer.key().token() + 1 }
}

/// Asks a timer, if it is still there; that it is not is the usual end of it, and no failure.
fn ask(
    pool: Option<&pace_pool_t>,
    timer: pace_timer_t,
    answer: Option<&mut MaybeUninit<bool>>,
    what: &str,
    question: impl FnOnce(&Timer) -> bool,
) -> Result {
    let pool = usable(pool)?;
    let answer = out(answer, what)?;
    let timer = key(timer.id).and_then(|key| pool.pool.timer_by_key(key));
    answer.set(timer.is_some_and(|timer| question(&timer)));
    Ok(())
}
