//! Descriptors that tell of the ends of tasks.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Handle, call, call_void, consumed, out, usable};
use super::callback::pace_task_t;
use super::status::*;
use super::work_task::key;
use super::workers::pace_workers_t;
use crate::Error;
use crate::sys::fork::ForkGuard;
use crate::task::TaskFd;
use core::mem::MaybeUninit;
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
pub unsafe extern "C" fn pace_task_fd_new(
    task_fd: Option<&mut MaybeUninit<*mut pace_task_fd_t>>,
) -> pace_status_t {
    call(|| {
        let to = out(task_fd, "task_fd")?;
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
pub extern "C" fn pace_task_fd_pollable(
    task_fd: Option<&pace_task_fd_t>,
    fd: Option<&mut MaybeUninit<i32>>,
) -> pace_status_t {
    call(|| {
        let task_fd = usable(task_fd)?;
        out(fd, "fd")?.set(task_fd.fd.as_raw_fd());
        Ok(())
    })
}

/// *ended says how many ends it has told of since this was last called; it is not readable until the next.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_task_fd_take(
    task_fd: Option<&pace_task_fd_t>,
    ended: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        let task_fd = usable(task_fd)?;
        let to = out(ended, "ended")?;
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
pub extern "C" fn pace_workers_tell(
    workers: Option<&pace_workers_t>,
    task: pace_task_t,
    task_fd: Option<&pace_task_fd_t>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let task_fd = usable(task_fd)?;
        let hold = workers.tasks.hold(key(task))?;
        hold.value().tell(&task_fd.fd);
        Ok(())
    })
}

/// Frees it; its descriptor is closed when those tasks have ended. NULL: nothing.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_task_fd_free(task_fd: Option<Box<pace_task_fd_t>>) {
    call_void(|| drop(consumed(task_fd)));
}

impl Handle for pace_task_fd_t {
    const NAME: &'static str = "task_fd";

    fn is_forked(&self) -> bool {
        self.fork.is_child()
    }
}
