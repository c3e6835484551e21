//! Tasks: singly, with inline argument bytes, in batches, and with a result to wait for.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, Failure, Out, Result, TIMED_OUT, call, callback, nanos, optional_out, out, usable,
};
use super::callback::{pace_bytes_fn, pace_drop_fn, pace_task_fn, pace_task_t};
use super::pool::pace_pool_t;
use super::status::*;
use super::values::PACE_FOREVER;
use super::work::{Work, judge, lane as priority};
use crate::trace;
use crate::{Rejected, Task};
use core::ffi::c_void;
use core::mem::{MaybeUninit, forget};
use core::time::Duration;

/// Before all others. No lane starves: while all four have tasks, of 64 picks 32 are of CRITICAL, 18 of HIGH, 10 of NORMAL
/// and 4 of LOW. A pick of a thread takes up to 64 tasks of its lane if these take some 20 microseconds together.
pub const PACE_LANE_CRITICAL: u32 = 0;
/// Before NORMAL and LOW, but for their turns: see PACE_LANE_CRITICAL.
pub const PACE_LANE_HIGH: u32 = 1;
/// The usual one: before LOW, but for its turns.
pub const PACE_LANE_NORMAL: u32 = 2;
/// After all others, but for its turns: one pick after 15 of the others.
pub const PACE_LANE_LOW: u32 = 3;

/// How many bytes fit in a task itself.
pub const PACE_INLINE_BYTES: usize = 32;

/// One task of a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_work_t {
    /// The function of the task. It must not be NULL.
    pub run: pace_task_fn,
    /// The argument of `run`, and of `drop`.
    pub user_data: *mut c_void,
    /// Called once with user_data after the task has run, or when it is cancelled. NULL: no call.
    pub drop: pace_drop_fn,
}

/// Runs a task on the pool. Allocates nothing. From outside the pool's threads it waits while the
/// lane is full; inside a handler it never waits.
///
/// PACE_EFULL (inside only), PACE_ESHUTDOWN; PACE_EINVAL for a lane that is none of PACE_LANE_, or no
/// `run`.
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_post(
    pool: Option<&pace_pool_t>,
    lane: u32,
    run: pace_task_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let lane = pool.pool.lane(priority(lane)?);
        let work = Work::new(run, user_data, drop)?;
        lane.post(move || ignore(work.run())).or_else(refuse)
    })
}

/// As pace_pool_post(), and never waits.
///
/// PACE_EFULL, PACE_ESHUTDOWN, PACE_EINVAL as there.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_try_post(
    pool: Option<&pace_pool_t>,
    lane: u32,
    run: pace_task_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let lane = pool.pool.lane(priority(lane)?);
        let work = Work::new(run, user_data, drop)?;
        lane.try_post(move || ignore(work.run())).or_else(refuse)
    })
}

/// As pace_pool_post(), for a task whose argument is a few bytes: `size` of them, 0 to
/// PACE_INLINE_BYTES, are copied, and nothing need be freed. `bytes` may be NULL if `size` is 0.
///
/// PACE_EFULL (inside only), PACE_ESHUTDOWN, PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_post_bytes(
    pool: Option<&pace_pool_t>,
    lane: u32,
    run: pace_bytes_fn,
    bytes: *const c_void,
    size: usize,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let lane = pool.pool.lane(priority(lane)?);
        let run = callback(run, "run")?;
        if size > PACE_INLINE_BYTES {
            return Err(Failure::invalid("size", size, "0 to 32 (PACE_INLINE_BYTES)"));
        }
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(bytes, size, 1, "bytes") }?;
        let mut copy = [0u64; PACE_INLINE_BYTES / 8];
        // SAFETY: there is room for as many bytes as were checked for.
        unsafe {
            copy.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), size);
        }
        let work = move || {
            let (mut copy, mut outcome) = (copy, PACE_EFAILED);
            trace::runs(trace::of_code(run as *const () as usize));
            // SAFETY: as the header demands, the function takes its bytes.
            unsafe { run(copy.as_mut_ptr().cast(), size, &mut outcome) };
            ignore(judge(outcome));
        };
        lane.post(work).or_else(refuse)
    })
}

/// Posts `count` tasks in order, up to 32 by one atomic step. From outside the pool's threads it waits
/// for room; inside a handler it never waits. *accepted says how many were taken, also for PACE_EFULL
/// and PACE_ESHUTDOWN: of the others user_data is still the caller's.
///
/// PACE_EFULL (inside only), PACE_ESHUTDOWN; PACE_EINVAL, with none taken and *accepted unchanged, if
/// any of them has no `run`.
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_post_batch(
    pool: Option<&pace_pool_t>,
    lane: u32,
    work: *const pace_work_t,
    count: usize,
    accepted: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let lane = pool.pool.lane(priority(lane)?);
        let accepted = out(accepted, "accepted")?;
        // SAFETY: as the header demands.
        let work = unsafe { all_work(work, count) }?;
        let mut rest = work.iter();
        let posted = lane.post_made(count, || {
            // SAFETY: called at most `count` times, and each `run` was found not to be NULL.
            let work = unsafe { rest.next().and_then(Work::of).unwrap_unchecked() };
            move || ignore(work.run())
        });
        match posted {
            Ok(()) => {
                accepted.set(count);
                Ok(())
            }
            Err(rejected) => {
                let failure = Failure::from(&rejected);
                accepted.set(count - rejected.into_inner());
                Err(failure)
            }
        }
    })
}

/// Runs a task on the pool and names it, to be waited for. Once it is waited for, or detached, its id
/// is given back; an id that nobody gives back is kept until the pool is freed. Waits for room as
/// pace_pool_post() does.
///
/// PACE_EFULL (inside; or all ids are in use), PACE_ESHUTDOWN, PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_submit(
    pool: Option<&pace_pool_t>,
    lane: u32,
    run: pace_task_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    task: Option<&mut MaybeUninit<pace_task_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let lane = pool.pool.lane(priority(lane)?);
        let task = out(task, "task")?;
        submit(pool, run, user_data, drop, task, |work| lane.submit(move || work.run()))
    })
}

/// As pace_pool_submit(), and never waits.
///
/// PACE_EFULL, PACE_ESHUTDOWN, PACE_EINVAL as there.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_try_submit(
    pool: Option<&pace_pool_t>,
    lane: u32,
    run: pace_task_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    task: Option<&mut MaybeUninit<pace_task_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let lane = pool.pool.lane(priority(lane)?);
        let task = out(task, "task")?;
        submit(pool, run, user_data, drop, task, |work| lane.try_submit(move || work.run()))
    })
}

/// Waits for up to `timeout_ns` until a task has ended; its `drop` has run then. PACE_OK: it ran, and
/// *outcome is what it reported. `outcome` may be NULL. One thread at a time may wait for a task, and
/// not the task itself, which would wait until its time is out. In a pool without threads the caller takes part meanwhile,
/// as in pace_pool_join().
///
/// PACE_OK, PACE_ECANCELLED (it never ran) and PACE_EPANIC give the id back, and the others do not:
/// PACE_ETIMEDOUT, PACE_EBUSY (another thread waits), PACE_EDEADLOCK (on a thread of the pool, when
/// all others wait already), PACE_ESTALE.
///
/// Threads: any. In handlers: yes; it hands leadership on before it waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_task_wait(
    pool: Option<&pace_pool_t>,
    task: pace_task_t,
    timeout_ns: u64,
    outcome: Option<&mut MaybeUninit<i32>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let outcome = optional_out(outcome);
        let hold = pool.tasks.hold(task.id)?;
        let timeout = (timeout_ns != PACE_FOREVER).then(|| nanos(timeout_ns));
        let block = |time| hold.value().block(time);
        let is_over = hold.value().is_done()
            || timeout_ns > 0 && pool.pool.wait_for(timeout, block).map_err(Failure::from)?;
        if !is_over {
            return Err(TIMED_OUT);
        }
        outcome.set(hold.take()?.wait_timeout(Duration::ZERO)?);
        Ok(())
    })
}

/// Whether a task has ended, in whatever way.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_task_is_done(
    pool: Option<&pace_pool_t>,
    task: pace_task_t,
    done: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let done = out(done, "done")?;
        done.set(pool.tasks.with(task.id, Task::is_done)?);
        Ok(())
    })
}

/// Asks that a task should not begin. *cancelled: true, it never will, its `drop` runs when a thread
/// comes across it, and waiting for it gives PACE_ECANCELLED; false, it runs or has ended. Its id is
/// still to be given back.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_task_cancel(
    pool: Option<&pace_pool_t>,
    task: pace_task_t,
    cancelled: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let cancelled = out(cancelled, "cancelled")?;
        cancelled.set(pool.tasks.with(task.id, Task::cancel)?);
        Ok(())
    })
}

/// Gives a task's id back without waiting: it runs on, and nobody learns its outcome.
///
/// PACE_ESTALE; PACE_EBUSY while another thread waits for it.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_task_detach(pool: Option<&pace_pool_t>, task: pace_task_t) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        drop(pool.tasks.take(task.id)?);
        Ok(())
    })
}

/// The outcome of a task that nobody waits for has been counted.
#[inline]
pub(super) fn ignore(_outcome: i32) {}

/// Refused work is the caller's: its `drop` must not run.
#[cold]
pub(super) fn refuse<F>(rejected: Rejected<F>) -> Result {
    let failure = Failure::from(&rejected);
    forget(rejected.into_inner());
    Err(failure)
}

/// Submits by one of the ways to do so, and names the task.
pub(super) fn submit<F>(
    pool: &pace_pool_t,
    run: pace_task_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    to: Out<pace_task_t>,
    by: impl FnOnce(Work) -> core::result::Result<Task<i32>, Rejected<F>>,
) -> Result {
    let place = pool.tasks.reserve()?;
    match by(Work::new(run, user_data, drop)?) {
        Ok(task) => {
            to.set(pace_task_t { id: place.fill(task) });
            Ok(())
        }
        Err(rejected) => refuse(rejected),
    }
}

/// # Safety
///
/// If `count` is not zero, `work` is NULL or points to as many, which live for `'a`.
pub(super) unsafe fn all_work<'a>(
    work: *const pace_work_t,
    count: usize,
) -> Result<&'a [pace_work_t]> {
    if count == 0 {
        return Ok(&[]);
    }
    boundary::check(work, "work")?;
    let most = isize::MAX as usize / size_of::<pace_work_t>();
    if count > most {
        return Err(Failure::invalid("count", count, &format!("at most {most}")));
    }
    // SAFETY: as the caller promises, and no more than a slice may have.
    let all = unsafe { core::slice::from_raw_parts(work, count) };
    match all.iter().position(|one| one.run.is_none()) {
        Some(index) => Err(Failure::told(PACE_EINVAL, format!("work[{index}].run is NULL"))),
        None => Ok(all),
    }
}
