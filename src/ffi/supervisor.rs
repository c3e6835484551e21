//! Supervision: what becomes of handlers that fail, and of their messages.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Out, Result, call, call_void, nanos};
use super::request::pace_text_t;
use super::status::*;
use crate::hub::{Intensity, RestartStrategy, Supervisor};
use core::ffi::c_void;

/// A message that its handler has failed at for good is kept among the hub's dead letters.
pub const PACE_FATE_DEAD_LETTER: u32 = 0;
/// It is dropped, and counted as failed.
pub const PACE_FATE_DISCARD: u32 = 1;

/// A failure restarts the handler that failed.
pub const PACE_RESTART_ONE_FOR_ONE: u32 = 0;
/// It restarts all handlers of the supervisor, each before its next message.
pub const PACE_RESTART_ONE_FOR_ALL: u32 = 1;

/// Any number of restarts: no failure suspends.
pub const PACE_RESTARTS_UNLIMITED: u32 = u32::MAX;

/// Counts the restarts of several subscriptions, and suspends all of them when there are too many.
pub struct pace_supervisor_t {
    supervisor: Supervisor,
}

/// Called when a handler is restarted, with the user_data of the handler, on the thread that runs it, before
/// its next message. `failure` is what it has failed with; its text is NULL when another of the supervisor
/// has failed, and after a suspension. `count` is how often it was restarted, this time included.
pub type pace_restart_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, failure: pace_text_t, count: u64)>;

/// Makes a supervisor. `strategy` is PACE_RESTART_. More than `restarts` (0 to 100,000, or
/// PACE_RESTARTS_UNLIMITED) in a span of `within_ns` (1 ns to 100 years) suspend its subscriptions: what
/// waits for them, and what comes, becomes dead letters until pace_hub_resume().
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_supervisor_new(
    strategy: u32,
    restarts: u32,
    within_ns: u64,
    supervisor: *mut *mut pace_supervisor_t,
) -> pace_status_t {
    call(|| {
        let strategy = match strategy {
            PACE_RESTART_ONE_FOR_ONE => RestartStrategy::OneForOne,
            PACE_RESTART_ONE_FOR_ALL => RestartStrategy::OneForAll,
            other => return Err(Failure::invalid("strategy", other, "PACE_RESTART_")),
        };
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(supervisor, "supervisor") }?;
        let supervisor = Supervisor::new(strategy, intensity(restarts, within_ns))?;
        to.set(Box::into_raw(Box::new(pace_supervisor_t { supervisor })));
        Ok(())
    })
}

/// Whether its subscriptions are suspended.
///
/// PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_supervisor_is_suspended(
    supervisor: *const pace_supervisor_t,
    suspended: *mut bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let supervisor = unsafe { open(supervisor) }?;
        // SAFETY: as the header demands.
        unsafe { Out::new(suspended, "suspended") }?.set(supervisor.is_suspended());
        Ok(())
    })
}

/// Frees what names a supervisor. Its subscriptions keep it. NULL is a no-op.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_supervisor_free(supervisor: *mut pace_supervisor_t) {
    call_void(|| {
        if boundary::check(supervisor, "supervisor").is_ok() {
            // SAFETY: as the header demands, it came from here and is used by nobody else.
            drop(unsafe { Box::from_raw(supervisor) });
        }
    });
}

/// # Safety
///
/// As the header demands of a supervisor.
pub(super) unsafe fn open<'a>(supervisor: *const pace_supervisor_t) -> Result<&'a Supervisor> {
    // SAFETY: as the caller promises.
    Ok(&unsafe { boundary::borrow(supervisor, "supervisor") }?.supervisor)
}

pub(super) fn intensity(restarts: u32, within_ns: u64) -> Intensity {
    match restarts {
        PACE_RESTARTS_UNLIMITED => Intensity::unlimited(),
        restarts => Intensity::new(restarts, nanos(within_ns)),
    }
}
