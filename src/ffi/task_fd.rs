//! Descriptors that tell of the ends of tasks.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, FORKED, Out, Result, call, call_void};
use super::callback::pace_task_t;
use super::status::*;
use super::work_task::key;
use super::workers::{open as open_workers, pace_workers_t};
use crate::Error;
use crate::sys::fork::ForkGuard;
use crate::task::TaskFd;
use std::os::fd::AsRawFd;

/// A descriptor for a loop of one's own, which becomes readable when a task ends that it was given to. One
/// may serve many tasks.
pub struct pace_task_fd_t {
    fd: TaskFd,
    fork: ForkGuard,
}

/// Makes one that is not readable yet.
///
/// PACE_EOS when the process or the system is out of descriptors.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_task_fd_new(task_fd: *mut *mut pace_task_fd_t) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(task_fd, "task_fd") }?;
        let fork = ForkGuard::new().map_err(|e| Error::os("map a page that tells of a fork", e))?;
        let fd = TaskFd::new()?;
        to.set(Box::into_raw(Box::new(pace_task_fd_t { fd, fork })));
        Ok(())
    })
}

/// *fd is readable from the end of a task until pace_task_fd_take(). It belongs to task_fd: never read or
/// close it.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_task_fd_pollable(
    task_fd: *const pace_task_fd_t,
    fd: *mut i32,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let task_fd = unsafe { open(task_fd) }?;
        // SAFETY: as the header demands.
        unsafe { Out::new(fd, "fd") }?.set(task_fd.fd.as_raw_fd());
        Ok(())
    })
}

/// *ended says how many ends it has told of since this was last called; it is not readable until the next.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_task_fd_take(
    task_fd: *const pace_task_fd_t,
    ended: *mut u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let task_fd = unsafe { open(task_fd) }?;
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(ended, "ended") }?;
        to.set(task_fd.fd.take());
        Ok(())
    })
}

/// Has `task_fd` tell of a task's end; at once, if it has ended. Each call counts as one. task_fd may be
/// freed before that.
///
/// PACE_ESTALE; PACE_EBUSY while another thread waits for it.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_tell(
    workers: *mut pace_workers_t,
    task: pace_task_t,
    task_fd: *const pace_task_fd_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let workers = unsafe { open_workers(workers) }?;
        // SAFETY: as the header demands.
        let task_fd = unsafe { open(task_fd) }?;
        let hold = workers.tasks.hold(key(task))?;
        hold.value().tell(&task_fd.fd);
        Ok(())
    })
}

/// Frees it; its descriptor is closed when those tasks have ended. NULL: nothing.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_task_fd_free(task_fd: *mut pace_task_fd_t) {
    call_void(|| {
        // SAFETY: as the header demands, it came from `pace_task_fd_new` and is used by nobody else.
        if unsafe { open(task_fd) }.is_ok() {
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(task_fd) });
        }
    });
}

/// # Safety
///
/// It is NULL, or came from `pace_task_fd_new` and has not been freed.
unsafe fn open<'a>(task_fd: *const pace_task_fd_t) -> Result<&'a pace_task_fd_t> {
    // SAFETY: as the caller promises.
    let task_fd = unsafe { boundary::borrow(task_fd, "task_fd") }?;
    if task_fd.fork.is_child() { Err(FORKED) } else { Ok(task_fd) }
}
