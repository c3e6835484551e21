//! Tasks of a worker pool that run again and again.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::attempt::{Work, pace_attempt_fn};
use super::boundary::{self, FORKED, Failure, Out, Result, call, call_void, nanos};
use super::callback::pace_drop_fn;
use super::owner::pair;
use super::status::*;
use super::task_type::{open as open_task_type, pace_task_type_t};
use super::work_task::{Settings, options_of, pace_task_options_t};
use super::workers::{open as open_workers, pace_workers_t};
use crate::Pool;
use crate::task::{Attempt, MissedTick, Periodic};
use core::ffi::c_void;

/// Ticks that come while a run has not ended are skipped.
pub const PACE_MISSED_TICK_SKIP: u32 = 0;
/// However many there were, one run makes up for them, as soon as the one before has ended.
pub const PACE_MISSED_TICK_COALESCE: u32 = 1;

/// A task that runs again and again.
pub struct pace_periodic_t {
    periodic: Periodic,
    pool: Pool,
}

/// Runs a task every `period_ns` (1 µs to 100 years), first after one period and the options' delay. Each
/// run is a task of its own, with these options: its own attempts and limits. Runs never overlap.
/// `missed` is PACE_MISSED_TICK_. `options` may be NULL. It ends with pace_periodic_free(), or when the worker
/// pool is shut down.
///
/// PACE_EINVAL, PACE_EVERSION, PACE_ESHUTDOWN; PACE_EFULL when all max_handles of the pool are in use.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_every(
    workers: *mut pace_workers_t,
    task_type: *const pace_task_type_t,
    period_ns: u64,
    missed: u32,
    run: pace_attempt_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    options: *const pace_task_options_t,
    periodic: *mut *mut pace_periodic_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let workers = unsafe { open_workers(workers) }?;
        // SAFETY: as the header demands.
        let task_type = unsafe { open_task_type(task_type) }?;
        // SAFETY: as the header demands.
        let options = unsafe { options_of(options) }?;
        let set = Settings::new(options.as_ref())?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(periodic, "periodic") }?;
        let missed = match missed {
            PACE_MISSED_TICK_SKIP => MissedTick::Skip,
            PACE_MISSED_TICK_COALESCE => MissedTick::Coalesce,
            other => return Err(Failure::invalid("missed", other, "0 or 1 (PACE_MISSED_TICK_)")),
        };
        let work = Work::new(run, user_data, None)?;
        let (registration, owner) = pair(user_data, drop);
        let task = task_type.task_type.task(move |attempt: &Attempt<'_>| match owner.enter() {
            Some(_) => work.run(attempt),
            None => Ok(()),
        });
        match set.on(task).every(nanos(period_ns), missed) {
            Ok(periodic) => {
                registration.keep();
                let pool = workers.workers.pool().clone();
                to.set(Box::into_raw(Box::new(pace_periodic_t { periodic, pool })));
                Ok(())
            }
            Err(error) => {
                // It has not run: its first tick would have come after this.
                registration.give_back();
                Err(error.into())
            }
        }
    })
}

/// How many runs were submitted, and how many ticks started none: the run before had not ended, or its
/// lane was full. Both may be NULL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_periodic_counts(
    periodic: *const pace_periodic_t,
    runs: *mut u64,
    missed: *mut u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let periodic = unsafe { open(periodic) }?;
        // SAFETY: as the header demands.
        let runs = unsafe { Out::optional(runs, "runs") }?;
        // SAFETY: as the header demands.
        let missed = unsafe { Out::optional(missed, "missed") }?;
        runs.set(periodic.periodic.runs());
        missed.set(periodic.periodic.missed());
        Ok(())
    })
}

/// Ends a periodic task, and frees it: no other run begins, one that waits is cancelled, and one that runs is asked to
/// stop (pace_attempt_is_cancelled()). It waits until no run is left and `drop` has run. NULL: nothing.
///
/// Threads: any, as long as no other uses it any more. In handlers, and on threads of the pool: yes, it never waits
/// there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_periodic_free(periodic: *mut pace_periodic_t) {
    call_void(|| {
        // SAFETY: as the header demands, it came from `pace_workers_every` and is used by nobody else.
        if unsafe { open(periodic) }.is_ok() {
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(periodic) });
        }
    });
}

/// # Safety
///
/// It is NULL, or came from `pace_workers_every` and has not been freed.
unsafe fn open<'a>(periodic: *const pace_periodic_t) -> Result<&'a pace_periodic_t> {
    // SAFETY: as the caller promises.
    let periodic = unsafe { boundary::borrow(periodic, "periodic") }?;
    if periodic.pool.shared().is_forked() { Err(FORKED) } else { Ok(periodic) }
}
