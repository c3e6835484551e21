//! What runs around the attempts of a worker pool.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::attempt::{lend, pace_attempt_t};
use super::callback::pace_drop_fn;
use super::owner::{Owner, Registration, pair};
use super::status::{PACE_EFAILED, PACE_OK};
use crate::task::{Attempt, Fault, Middleware};
use core::ffi::{c_char, c_void};
use std::ffi::CString;
use std::sync::Arc;

/// Called before an attempt's function. *outcome is 0 beforehand: then the attempt goes on. Any other
/// refuses it: it fails as if its function had reported that, with what was said by pace_attempt_fail(),
/// pace_attempt_permanent() and pace_attempt_retry_after().
pub type pace_before_fn = Option<
    unsafe extern "C" fn(user_data: *mut c_void, attempt: *mut pace_attempt_t, outcome: *mut i32),
>;

/// Called after an attempt's function, if it was not refused before, whatever came of it.
pub type pace_after_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, attempt: *const pace_attempt_t)>;

/// Called before the one after, if the attempt has failed, with what it reported and what went wrong. The
/// text is good during the call.
pub type pace_on_error_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
        attempt: *const pace_attempt_t,
        outcome: i32,
        message: *const c_char,
    ),
>;

/// What runs around each attempt of every task of a worker pool, on the attempt's own thread and within
/// its time, by several threads at once. Each function may be NULL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_middleware_t {
    /// Called before each attempt, on its thread. NULL: no call.
    pub before: pace_before_fn,
    /// Called after each attempt, on its thread. NULL: no call.
    pub after: pace_after_fn,
    /// Called before `after`, if the attempt has failed. NULL: no call.
    pub on_error: pace_on_error_fn,
    /// The first argument of each call of these functions.
    pub user_data: *mut c_void,
    /// Runs once after the last call, when the worker pool and its pool have been freed. NULL: nothing.
    pub drop: pace_drop_fn,
}

struct Around {
    all: pace_middleware_t,
    owner: Owner,
}

// SAFETY: the header demands that callbacks and user_data may be used by any thread.
unsafe impl Send for Around {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Around {}

impl Middleware for Around {
    fn before(&self, attempt: &Attempt<'_>) -> Result<(), Fault> {
        let Some(before) = self.all.before else { return Ok(()) };
        lend(attempt, PACE_OK, |attempt, outcome| {
            // SAFETY: as the header demands, the function takes what came with it.
            unsafe { before(self.owner.data(), attempt, outcome) }
        })
    }

    fn after(&self, attempt: &Attempt<'_>) {
        let Some(after) = self.all.after else { return };
        let _outcome = lend(attempt, PACE_OK, |attempt, _| {
            // SAFETY: as above.
            unsafe { after(self.owner.data(), attempt) }
        });
    }

    fn on_error(&self, attempt: &Attempt<'_>, fault: &Fault) {
        let Some(on_error) = self.all.on_error else { return };
        let mut message = fault.message().as_bytes().to_vec();
        message.retain(|&byte| byte != 0);
        let message = CString::new(message).unwrap_or_default();
        let outcome = if fault.code() == 0 { PACE_EFAILED } else { fault.code() };
        let _outcome = lend(attempt, PACE_OK, |attempt, _| {
            // SAFETY: as above.
            unsafe { on_error(self.owner.data(), attempt, outcome, message.as_ptr()) }
        });
    }
}

pub(super) fn of(all: &pace_middleware_t) -> (Registration, Arc<dyn Middleware>) {
    let (registration, owner) = pair(all.user_data, all.drop);
    (registration, Arc::new(Around { all: *all, owner }))
}
