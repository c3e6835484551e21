//! Tasks without a function: their attempts come to a completion queue.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Out, call};
use super::callback::pace_task_t;
use super::status::*;
use super::task_type::{open as open_task_type, pace_task_type_t};
use super::work_task::{Ids, Settings, options_of, pace_task_options_t, refused, submit};
use super::workers::{open, pace_workers_t};

/// Submits a task without a function. Each of its attempts comes with `tag` to the completion queue that the worker pool is
/// attached to (see paceline/cq.h), or waits until there is one; at most max_queued may wait. The task ends by a completion
/// of an attempt; if it ends otherwise, that comes to the queue, too. Everything else is as for pace_workers_submit(), but
/// this never waits. `task` may be NULL.
///
/// PACE_EFULL, PACE_ESHUTDOWN, PACE_EINVAL, PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_submit_tagged(
    workers: *mut pace_workers_t,
    task_type: *const pace_task_type_t,
    tag: u64,
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
        let by = || set.on(task_type.task_type.task_tagged(tag)).submit().map_err(refused);
        to.set(submit(workers, !task.is_null(), by)?);
        Ok(())
    })
}

/// Submits a task for each of `count` tags, in order and with the same options, as pace_workers_submit_tagged() does.
/// `tasks` is NULL or has room for `count` ids. *accepted says how many were taken, also for PACE_EFULL and
/// PACE_ESHUTDOWN.
///
/// PACE_EFULL, PACE_ESHUTDOWN, PACE_EINVAL, PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_submit_tagged_batch(
    workers: *mut pace_workers_t,
    task_type: *const pace_task_type_t,
    tags: *const u64,
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
        let tags = unsafe { boundary::array(tags, count, "tags") }?;
        // SAFETY: as the header demands.
        let ids = unsafe { Ids::new(tasks) }?;
        // SAFETY: as the header demands.
        let accepted = unsafe { Out::new(accepted, "accepted") }?;
        let submit_next = |index: usize| {
            let by =
                || set.on(task_type.task_type.task_tagged(tags[index])).submit().map_err(refused);
            submit(workers, ids.are_wanted(), by)
        };
        ids.fill(count, accepted, submit_next)
    })
}
