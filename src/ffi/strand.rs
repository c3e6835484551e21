//! Strands: serial execution without locks.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Result, call, nanos, optional_out, out, usable};
use super::callback::{pace_drop_fn, pace_strand_t, pace_task_fn, pace_task_t};
use super::pool::pace_pool_t;
use super::status::*;
use super::task::{all_work, ignore, pace_work_t, refuse, submit};
use super::work::Work;
use crate::Strand;
use core::ffi::c_void;
use core::mem::MaybeUninit;

/// Makes a strand: its tasks run one at a time, in the order in which they were posted, on whatever
/// thread of the pool is free.
///
/// PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_strand_new(
    pool: Option<&pace_pool_t>,
    strand: Option<&mut MaybeUninit<pace_strand_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let strand = out(strand, "strand")?;
        let place = pool.strands.reserve()?;
        strand.set(pace_strand_t { id: place.fill(pool.pool.strand()?) });
        Ok(())
    })
}

/// Appends a task. From outside the pool's threads it waits while the strand is full; inside a
/// handler it never waits.
///
/// PACE_EFULL (inside only), PACE_ESHUTDOWN, PACE_ESTALE, PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_strand_post(
    pool: Option<&pace_pool_t>,
    strand: pace_strand_t,
    run: pace_task_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let strand = find(usable(pool)?, strand)?;
        let work = Work::new(run, user_data, drop)?;
        strand.post(move || ignore(work.run())).or_else(refuse)
    })
}

/// As pace_strand_post(), and never waits.
///
/// PACE_EFULL, PACE_ESHUTDOWN, PACE_ESTALE, PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_strand_try_post(
    pool: Option<&pace_pool_t>,
    strand: pace_strand_t,
    run: pace_task_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let strand = find(usable(pool)?, strand)?;
        let work = Work::new(run, user_data, drop)?;
        strand.try_post(move || ignore(work.run())).or_else(refuse)
    })
}

/// As pace_pool_post_batch(), of a strand: one after the other, so that tasks of other threads may come between them.
///
/// PACE_EFULL (inside only), PACE_ESHUTDOWN, PACE_ESTALE; PACE_EINVAL, with none taken and *accepted
/// unchanged, if any of them has no `run`.
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_strand_post_batch(
    pool: Option<&pace_pool_t>,
    strand: pace_strand_t,
    work: *const pace_work_t,
    count: usize,
    accepted: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let strand = find(usable(pool)?, strand)?;
        let accepted = out(accepted, "accepted")?;
        // SAFETY: as the header demands.
        let work = unsafe { all_work(work, count) }?;
        let mut taken = 0;
        let tasks = work.iter().filter_map(Work::of).inspect(|_| taken += 1);
        let posted = strand.post_batch(tasks.map(|work| move || ignore(work.run())));
        accepted.set(taken - usize::from(posted.is_err()));
        posted.map(drop).or_else(refuse)
    })
}

/// As pace_strand_post(), and names the task as pace_pool_submit() does.
///
/// PACE_EFULL (inside; or all ids are in use), PACE_ESHUTDOWN, PACE_ESTALE, PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_strand_submit(
    pool: Option<&pace_pool_t>,
    strand: pace_strand_t,
    run: pace_task_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    task: Option<&mut MaybeUninit<pace_task_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let strand = find(pool, strand)?;
        let task = out(task, "task")?;
        submit(pool, run, user_data, drop, task, |work| strand.submit(move || work.run()))
    })
}

/// As pace_strand_submit(), and never waits.
///
/// PACE_EFULL, PACE_ESHUTDOWN, PACE_ESTALE, PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_strand_try_submit(
    pool: Option<&pace_pool_t>,
    strand: pace_strand_t,
    run: pace_task_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    task: Option<&mut MaybeUninit<pace_task_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let strand = find(pool, strand)?;
        let task = out(task, "task")?;
        submit(pool, run, user_data, drop, task, |work| strand.try_submit(move || work.run()))
    })
}

/// Takes no more tasks, and waits until those that were accepted have run. *drained says whether they have after `time_ns`;
/// `drained` may be NULL. The strand is to be closed still.
///
/// Inside a handler of the pool it is only a request, and returns at once with false. In a pool without threads this thread
/// runs what no host has begun.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, as a request.
#[unsafe(no_mangle)]
pub extern "C" fn pace_strand_drain(
    pool: Option<&pace_pool_t>,
    strand: pace_strand_t,
    time_ns: u64,
    drained: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let to = optional_out(drained);
        to.set(find(pool, strand)?.drain(nanos(time_ns)));
        Ok(())
    })
}

/// Closes a strand and gives its id back. What was accepted still runs.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_strand_close(
    pool: Option<&pace_pool_t>,
    strand: pace_strand_t,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        drop(pool.strands.take(strand.id)?);
        Ok(())
    })
}

fn find(pool: &pace_pool_t, strand: pace_strand_t) -> Result<Strand> {
    pool.strands.with(strand.id, Strand::clone)
}
