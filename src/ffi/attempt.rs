//! What a task's function is given, and what it may say beside its outcome.
//!
//! A `pace_attempt_t *` is the address of a [`Lent`], good while the function runs.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Result, call, callback, nanos, out};
use super::callback::pace_drop_fn;
use super::status::*;
use crate::task::{Attempt, Fault};
use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::time::Duration;

/// An attempt, for as long as its function runs: good for that call only, and on that thread.
pub struct pace_attempt_t {
    _opaque: (),
}

/// A task of a worker pool. It is called for each attempt, by one thread at a time, unless its task type overlaps
/// retries. *outcome is PACE_EFAILED beforehand; set it to 0 for success, or to a number of your own. What it says by
/// pace_attempt_fail(), pace_attempt_permanent() and pace_attempt_retry_after() counts if the outcome is
/// not 0.
pub type pace_attempt_fn = Option<
    unsafe extern "C" fn(user_data: *mut c_void, attempt: *mut pace_attempt_t, outcome: *mut i32),
>;

/// One task of a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_attempt_work_t {
    /// The function of the task, called once for each attempt. It must not be NULL.
    pub run: pace_attempt_fn,
    /// The first argument of each call of `run`.
    pub user_data: *mut c_void,
    /// Runs once after its last attempt, or when it ends without one. NULL: nothing.
    pub drop: pace_drop_fn,
}

/// 1 for the first attempt, 2 for the first retry.
///
/// Threads: the function's. In handlers: in this task's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_attempt_number(
    attempt: *const pace_attempt_t,
    number: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let lent = unsafe { lent(attempt) }?;
        out(number, "number")?.set(lent.attempt.number());
        Ok(())
    })
}

/// The task's number, as in its report.
///
/// Threads: the function's. In handlers: in this task's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_attempt_task(
    attempt: *const pace_attempt_t,
    id: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let lent = unsafe { lent(attempt) }?;
        out(id, "id")?.set(lent.attempt.id());
        Ok(())
    })
}

/// The name of the task's task type. Static.
///
/// Threads: the function's. In handlers: in this task's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_attempt_name(
    attempt: *const pace_attempt_t,
    name: Option<&mut MaybeUninit<*const c_char>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let lent = unsafe { lent(attempt) }?;
        out(name, "name")?.set(lent.attempt.c_name().as_ptr());
        Ok(())
    })
}

/// Whether the function should give up: the task was cancelled, its time is over, a retry has overtaken it,
/// or the worker pool stops. What it answers after that is not waited for by anybody.
///
/// Threads: the function's. In handlers: in this task's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_attempt_is_cancelled(
    attempt: *const pace_attempt_t,
    cancelled: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let lent = unsafe { lent(attempt) }?;
        out(cancelled, "cancelled")?.set(lent.attempt.is_cancelled());
        Ok(())
    })
}

/// How long until the time of this attempt is over: 0 if it is, PACE_FOREVER if there is no limit.
///
/// Threads: the function's. In handlers: in this task's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_attempt_time_left(
    attempt: *const pace_attempt_t,
    time_ns: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let lent = unsafe { lent(attempt) }?;
        let left = lent.attempt.time_left();
        let left = left.and_then(|left| u64::try_from(left.as_nanos()).ok());
        out(time_ns, "time_ns")?.set(left.unwrap_or(u64::MAX));
        Ok(())
    })
}

/// Says that the function still makes progress: the time of this attempt begins anew.
///
/// Threads: the function's. In handlers: in this task's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_attempt_heartbeat(attempt: *const pace_attempt_t) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe { lent(attempt) }?.attempt.heartbeat();
        Ok(())
    })
}

/// Says what went wrong, for the report. The text is copied; what is not UTF-8 in it is replaced by U+FFFD. It
/// does not make the attempt fail: the outcome does.
///
/// PACE_EINVAL for a text that is NULL.
///
/// Threads: the function's. In handlers: in this task's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_attempt_fail(
    attempt: *mut pace_attempt_t,
    message: *const c_char,
) -> pace_status_t {
    call(|| {
        boundary::check(message, "message")?;
        // SAFETY: not NULL, and as the header demands.
        let message = unsafe { boundary::words(message) };
        // SAFETY: as the header demands.
        unsafe { lent_mut(attempt) }?.message = Some(message.into_owned());
        Ok(())
    })
}

/// Says that no other attempt will help: if this one fails, there is none.
///
/// Threads: the function's. In handlers: in this task's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_attempt_permanent(attempt: *mut pace_attempt_t) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe { lent_mut(attempt) }?.advice = Advice::Permanent;
        Ok(())
    })
}

/// Says that another attempt may help, not earlier than `delay_ns` from now.
///
/// Threads: the function's. In handlers: in this task's; it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_attempt_retry_after(
    attempt: *mut pace_attempt_t,
    delay_ns: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe { lent_mut(attempt) }?.advice = Advice::After(nanos(delay_ns));
        Ok(())
    })
}

/// What another attempt is to be like.
#[derive(Clone, Copy)]
pub(super) enum Advice {
    Any,
    Permanent,
    After(Duration),
}

/// What a function has said: how an attempt failed.
pub(super) fn fault(outcome: i32, message: Option<String>, advice: Advice) -> Fault {
    let message = message.unwrap_or_else(|| match outcome {
        PACE_EFAILED => "it ended without reporting success".to_owned(),
        other => format!("it reported {other}"),
    });
    let fault = match advice {
        Advice::Any => Fault::new(message),
        Advice::Permanent => Fault::permanent(message),
        Advice::After(delay) => Fault::retry_after(message, delay),
    };
    fault.with_code(outcome)
}

/// What a `pace_attempt_t *` points to.
struct Lent<'a> {
    attempt: &'a Attempt<'a>,
    message: Option<String>,
    advice: Advice,
}

/// Lends an attempt to `user`, whose outcome is `outcome` unless it sets another.
#[inline]
pub(super) fn lend(
    attempt: &Attempt<'_>,
    mut outcome: i32,
    user: impl FnOnce(*mut pace_attempt_t, *mut i32),
) -> core::result::Result<(), Fault> {
    let mut lent = Lent { attempt, message: None, advice: Advice::Any };
    user((&raw mut lent).cast(), &mut outcome);
    match outcome {
        PACE_OK => Ok(()),
        failed => Err(fault(failed, lent.message, lent.advice)),
    }
}

/// # Safety
///
/// It is NULL, or what a function was given that runs now, on this thread.
unsafe fn lent<'a>(attempt: *const pace_attempt_t) -> Result<&'a Lent<'a>> {
    // SAFETY: as the caller promises.
    unsafe { boundary::borrow(attempt.cast(), "attempt") }
}

/// # Safety
///
/// As above, and nothing else of it is borrowed.
unsafe fn lent_mut<'a>(attempt: *mut pace_attempt_t) -> Result<&'a mut Lent<'a>> {
    let lent = attempt.cast::<Lent<'a>>();
    boundary::check(lent, "attempt")?;
    // SAFETY: as the caller promises.
    Ok(unsafe { &mut *lent })
}

type Run = unsafe extern "C" fn(*mut c_void, *mut pace_attempt_t, *mut i32);

/// A task of C's that may run more than once. Dropped, it runs `drop`.
pub(super) struct Work {
    run: Run,
    data: *mut c_void,
    drop: pace_drop_fn,
}

// SAFETY: the header demands that callbacks and user_data may be used by any thread.
unsafe impl Send for Work {}
// SAFETY: `&Work` gives way to calls only, and where they overlap the header demands functions that bear it.
unsafe impl Sync for Work {}

impl Work {
    pub(super) fn new(run: pace_attempt_fn, data: *mut c_void, drop: pace_drop_fn) -> Result<Self> {
        Ok(Self { run: callback(run, "run")?, data, drop })
    }

    /// One of a batch. None if there is nothing to run.
    #[inline]
    pub(super) fn of(one: &pace_attempt_work_t) -> Option<Self> {
        Some(Self { run: one.run?, data: one.user_data, drop: one.drop })
    }

    /// One attempt.
    #[inline]
    pub(super) fn run(&self, attempt: &Attempt<'_>) -> core::result::Result<(), Fault> {
        lend(attempt, PACE_EFAILED, |attempt, outcome| {
            // SAFETY: as the header demands, the function takes what came with it.
            unsafe { (self.run)(self.data, attempt, outcome) }
        })
    }
}

impl Drop for Work {
    #[inline]
    fn drop(&mut self) {
        if let Some(drop) = self.drop {
            // SAFETY: this is the only time, and no call comes after it.
            unsafe { drop(self.data) }
        }
    }
}

/// A message of C's that may be NULL.
///
/// # Safety
///
/// It is NULL, or ends with NUL.
pub(super) unsafe fn message_of(message: *const c_char) -> Option<String> {
    // SAFETY: not NULL, and as the caller promises.
    (!message.is_null()).then(|| unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned())
}
