//! Tasks of a worker pool that run again and again.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::attempt::{Work, pace_attempt_fn};
use super::boundary::{
    Failure, Handle, call, call_void, consumed, nanos, optional_out, out, usable,
};
use super::callback::pace_drop_fn;
use super::owner::pair;
use super::status::*;
use super::task_type::pace_task_type_t;
use super::work_task::{Settings, options_of, pace_task_options_t};
use super::workers::pace_workers_t;
use crate::Pool;
use crate::task::{Attempt, MissedTick, Periodic};
use core::ffi::c_void;
use core::mem::MaybeUninit;

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
    workers: Option<&pace_workers_t>,
    task_type: Option<&pace_task_type_t>,
    period_ns: u64,
    missed: u32,
    run: pace_attempt_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    options: *const pace_task_options_t,
    periodic: Option<&mut MaybeUninit<*mut pace_periodic_t>>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let task_type = usable(task_type)?;
        // SAFETY: as the header demands.
        let options = unsafe { options_of(options) }?;
        let set = Settings::new(options.as_ref())?;
        let to = out(periodic, "periodic")?;
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
pub extern "C" fn pace_periodic_counts(
    periodic: Option<&pace_periodic_t>,
    runs: Option<&mut MaybeUninit<u64>>,
    missed: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        let periodic = usable(periodic)?;
        let runs = optional_out(runs);
        let missed = optional_out(missed);
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
pub extern "C" fn pace_periodic_free(periodic: Option<Box<pace_periodic_t>>) {
    call_void(|| drop(consumed(periodic)));
}

impl Handle for pace_periodic_t {
    const NAME: &'static str = "periodic";

    fn is_forked(&self) -> bool {
        self.pool.shared().is_forked()
    }
}
