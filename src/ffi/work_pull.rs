//! Attempts as data: tasks of a worker pool for hosts that cannot be called back.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::attempt::{Advice, fault, message_of};
use super::boundary::{self, Failure, Out, TIMED_OUT, call, nanos};
use super::callback::pace_task_t;
use super::status::*;
use super::task_status::number_of;
use super::task_type::{open as open_task_type, pace_task_type_t};
use super::work_task::{Ids, Settings, options_of, pace_task_options_t, refused, submit};
use super::workers::{open, pace_workers_t};
use crate::task::{AttemptId, Status, TaskEvent};
use core::cell::Cell;
use core::ffi::c_char;
use std::os::fd::AsRawFd;

/// An attempt has begun.
pub const PACE_TASK_EVENT_ATTEMPT: u32 = 0;
/// A task has ended as PACE_TASK_CANCELLED, PACE_TASK_TIMED_OUT or PACE_TASK_REJECTED: an attempt of it may
/// be out still, and is to be completed all the same. Or as PACE_TASK_FAILED, when the lease of its last
/// attempt was over.
pub const PACE_TASK_EVENT_END: u32 = 1;

/// In a completion: if the attempt failed, another one may help.
pub const PACE_ADVICE_ANY: u32 = 0;
/// None will.
pub const PACE_ADVICE_PERMANENT: u32 = 1;
/// One may, after after_ns.
pub const PACE_ADVICE_AFTER: u32 = 2;

/// What pace_workers_pull() brings.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_task_event_t {
    /// PACE_TASK_EVENT_.
    pub kind: u32,
    /// 1 for a task's first attempt; 0 for an end.
    pub number: u32,
    /// PACE_TASK_: how the task stands.
    pub status: u32,
    /// Zero.
    pub reserved: u32,
    /// What was given when it was submitted.
    pub token: u64,
    /// Names the attempt until it is completed; 0 for an end.
    pub attempt: u64,
    /// The task's number, as in its report.
    pub id: u64,
}

/// How an attempt ended.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_attempt_end_t {
    /// Which.
    pub attempt: u64,
    /// 0 for success; PACE_EFAILED, or a number of your own.
    pub outcome: i32,
    /// PACE_ADVICE_, if the outcome is not 0.
    pub advice: u32,
    /// For PACE_ADVICE_AFTER.
    pub after_ns: u64,
    /// What went wrong, for the report: UTF-8, and copied. NULL: nothing is known.
    pub message: *const c_char,
    /// Out: how the task stands now: PACE_TASK_RETRYING, or an end.
    pub status: u32,
    /// Out: PACE_OK; PACE_ESTALE: it was completed already, or its task has ended meanwhile; PACE_EINVAL:
    /// the advice is none, and it is still out.
    pub result: i32,
}

/// Submits a task without a function: each of its attempts comes out of pace_workers_pull(), with
/// `token`, and is completed by pace_workers_complete(). All else is as for pace_workers_submit(), but it
/// never waits. How it ends is the answer to a completion, or a PACE_TASK_EVENT_END.
///
/// PACE_EFULL, PACE_ESHUTDOWN, PACE_EINVAL, PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_submit_pulled(
    workers: *mut pace_workers_t,
    task_type: *const pace_task_type_t,
    token: u64,
    options: *const pace_task_options_t,
    task: *mut pace_task_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let workers = unsafe { open(workers) }?;
        // SAFETY: as the header demands.
        let task_type = unsafe { open_task_type(task_type) }?;
        // SAFETY: as the header demands.
        let options = unsafe { options_of(options) }?;
        let set = Settings::new(options.as_ref())?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::optional(task, "task") }?;
        let by = || set.on(task_type.task_type.task_pulled(token)).submit().map_err(refused);
        to.set(submit(workers, !task.is_null(), by)?);
        Ok(())
    })
}

/// Submits `count` tasks as pace_workers_submit_pulled() does, in order, with the same options. `tasks` is
/// NULL or has room for `count` ids. *accepted says how many were taken, also for PACE_EFULL and
/// PACE_ESHUTDOWN.
///
/// As there.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_submit_pulled_batch(
    workers: *mut pace_workers_t,
    task_type: *const pace_task_type_t,
    tokens: *const u64,
    count: usize,
    options: *const pace_task_options_t,
    tasks: *mut pace_task_t,
    accepted: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let workers = unsafe { open(workers) }?;
        // SAFETY: as the header demands.
        let task_type = unsafe { open_task_type(task_type) }?;
        // SAFETY: as the header demands.
        let options = unsafe { options_of(options) }?;
        let set = Settings::new(options.as_ref())?;
        // SAFETY: as the header demands.
        let tokens = unsafe { boundary::array(tokens, count, "tokens") }?;
        // SAFETY: as the header demands.
        let ids = unsafe { Ids::new(tasks) }?;
        // SAFETY: as the header demands.
        let accepted = unsafe { Out::new(accepted, "accepted") }?;
        let submit_next = |index: usize| {
            let by =
                || set.on(task_type.task_type.task_pulled(tokens[index])).submit().map_err(refused);
            submit(workers, ids.are_wanted(), by)
        };
        ids.fill(count, accepted, submit_next)
    })
}

/// Waits for up to `timeout_ns` for attempts, begins up to `capacity` of them in the order of lanes, and
/// tells of ends. PACE_OK: *count is 1 or more. An attempt is out until it was completed, by any thread:
/// until then its task runs.
///
/// PACE_ETIMEDOUT: nothing came; PACE_ESHUTDOWN: the worker pool was shut down, or its pool, and nothing
/// is left to tell (an end that a cancel or a completion brings about after that is told by a pull after
/// it); PACE_EINVAL for a capacity of 0; PACE_EDEADLOCK on a thread of the pool, unless the time is 0.
///
/// Threads: any but the pool's own. In handlers: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_pull(
    workers: *mut pace_workers_t,
    events: *mut pace_task_event_t,
    capacity: usize,
    timeout_ns: u64,
    count: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let workers = unsafe { open(workers) }?;
        boundary::check(events, "events")?;
        // SAFETY: as the header demands.
        let count = unsafe { Out::new(count, "count") }?;
        if capacity == 0 {
            return Err(Failure::invalid("capacity", 0, "at least 1"));
        }
        let mut pulled = PULLED.try_with(Cell::take).unwrap_or_default();
        pulled.clear();
        let result = workers.workers.pull(&mut pulled, capacity, nanos(timeout_ns));
        for (index, event) in pulled.iter().enumerate() {
            // SAFETY: no more than `capacity` were pulled, and there is room for as many.
            unsafe { events.add(index).write(as_data(event)) };
        }
        let _ = PULLED.try_with(|place| place.set(pulled));
        match result? {
            0 => Err(TIMED_OUT),
            some => {
                count.set(some);
                Ok(())
            }
        }
    })
}

/// Completes `count` attempts, in order. Each says in `result` what has become of that, and in `status`
/// how its task stands; the status of the call is the first result that is not PACE_OK.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_complete(
    workers: *mut pace_workers_t,
    completions: *mut pace_attempt_end_t,
    count: usize,
) -> pace_status_t {
    let mut first = PACE_OK;
    let status = call(|| {
        // SAFETY: as the header demands.
        let workers = unsafe { open(workers) }?;
        // SAFETY: as the header demands. This refuses NULL, and more than a slice may have.
        if unsafe { boundary::array(completions, count, "completions") }?.is_empty() {
            return Ok(());
        }
        // SAFETY: found good above.
        let completions = unsafe { core::slice::from_raw_parts_mut(completions, count) };
        for one in completions {
            let mut status = one.status;
            one.result = call(|| {
                let result = match (one.outcome, one.advice) {
                    (PACE_OK, _) => Ok(()),
                    (_, PACE_ADVICE_ANY) => Err(Advice::Any),
                    (_, PACE_ADVICE_PERMANENT) => Err(Advice::Permanent),
                    (_, PACE_ADVICE_AFTER) => Err(Advice::After(nanos(one.after_ns))),
                    (_, other) => {
                        return Err(Failure::invalid("advice", other, "0 to 2 (PACE_ADVICE_)"));
                    }
                };
                let result = result.map_err(|advice| {
                    // SAFETY: as the header demands.
                    fault(one.outcome, unsafe { message_of(one.message) }, advice)
                });
                status = number_of(workers.workers.complete(AttemptId(one.attempt), result)?);
                Ok(())
            });
            one.status = status;
            if first == PACE_OK {
                first = one.result;
            }
        }
        Ok(())
    });
    if status == PACE_OK { first } else { status }
}

/// Whether an attempt that is out should be given up: its task was cancelled, its time is over, or the
/// worker pool stops.
///
/// PACE_ESTALE: it was completed.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_is_cancelled(
    workers: *mut pace_workers_t,
    attempt: u64,
    cancelled: *mut bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let workers = unsafe { open(workers) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(cancelled, "cancelled") }?;
        to.set(workers.workers.is_cancelled(AttemptId(attempt))?);
        Ok(())
    })
}

/// Says that an attempt that is out still makes progress: its time and its lease begin anew.
///
/// PACE_ESTALE: it was completed.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_heartbeat(
    workers: *mut pace_workers_t,
    attempt: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let workers = unsafe { open(workers) }?;
        Ok(workers.workers.heartbeat(AttemptId(attempt))?)
    })
}

/// *fd is readable while a pull would not wait. It belongs to the worker pool: never read or close it.
///
/// PACE_EOS if there are no descriptors left.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_pollable(
    workers: *mut pace_workers_t,
    fd: *mut i32,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let workers = unsafe { open(workers) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(fd, "fd") }?;
        to.set(workers.workers.pollable()?.as_raw_fd());
        Ok(())
    })
}

thread_local! {
    /// Where this thread's events lie on their way, so that a pull allocates little once warm.
    static PULLED: Cell<Vec<TaskEvent>> = const { Cell::new(Vec::new()) };
}

fn as_data(event: &TaskEvent) -> pace_task_event_t {
    match *event {
        TaskEvent::Attempt { id: AttemptId(attempt), token, task, number } => pace_task_event_t {
            kind: PACE_TASK_EVENT_ATTEMPT,
            number,
            status: number_of(Status::Running),
            reserved: 0,
            token,
            attempt,
            id: task,
        },
        TaskEvent::End { token, task, status } => pace_task_event_t {
            kind: PACE_TASK_EVENT_END,
            number: 0,
            status: number_of(status),
            reserved: 0,
            token,
            attempt: 0,
            id: task,
        },
    }
}
