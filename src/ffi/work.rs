//! A task of C's: a function, what it is given, and what happens to that afterwards.
#![allow(unsafe_code, reason = "calls functions of C's")]

use super::boundary::{Failure, Result, callback};
use super::callback::{pace_drop_fn, pace_task_fn};
use super::status::{PACE_EFAILED, PACE_OK};
use super::task::{
    PACE_LANE_CRITICAL, PACE_LANE_HIGH, PACE_LANE_LOW, PACE_LANE_NORMAL, pace_work_t,
};
use crate::Lane;
use crate::pool::{Outcome, report};
use crate::trace;
use core::ffi::c_void;

type Run = unsafe extern "C" fn(user_data: *mut c_void, outcome: *mut i32);

/// Three words, so that it lies in the lane itself. Dropped, it runs `drop`, whether it has run or not.
pub(crate) struct Work {
    run: Run,
    data: *mut c_void,
    drop: pace_drop_fn,
}

// SAFETY: the header demands that callbacks and user_data may be used by any thread.
unsafe impl Send for Work {}

impl Work {
    #[inline]
    pub(crate) fn new(run: pace_task_fn, data: *mut c_void, drop: pace_drop_fn) -> Result<Self> {
        Ok(Self { run: callback(run, "run")?, data, drop })
    }

    /// One of a batch. None if there is nothing to run.
    #[inline]
    pub(crate) fn of(one: &pace_work_t) -> Option<Self> {
        Some(Self { run: one.run?, data: one.user_data, drop: one.drop })
    }

    /// Runs it, and then `drop`. What is not success counts as failed in the counters.
    #[inline]
    pub(crate) fn run(self) -> i32 {
        let mut outcome = PACE_EFAILED;
        trace::runs(trace::of_code(self.run as *const () as usize));
        // SAFETY: as the header demands, the function takes what came with it.
        unsafe { (self.run)(self.data, &mut outcome) };
        drop(self);
        judge(outcome)
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

/// Tells the pool's counters of an outcome.
#[inline]
pub(crate) fn judge(outcome: i32) -> i32 {
    if outcome != PACE_OK {
        report(Outcome::Failed);
    }
    outcome
}

#[inline]
pub(crate) fn lane(lane: u32) -> Result<Lane> {
    match lane {
        PACE_LANE_CRITICAL => Ok(Lane::Critical),
        PACE_LANE_HIGH => Ok(Lane::High),
        PACE_LANE_NORMAL => Ok(Lane::Normal),
        PACE_LANE_LOW => Ok(Lane::Low),
        _ => Err(Failure::invalid("lane", lane, "0 to 3 (PACE_LANE_)")),
    }
}
