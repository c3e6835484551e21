//! Host threads: taking part for a while.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{call, nanos, optional_out, out, text, usable};
use super::pool::pace_pool_t;
use super::status::*;
use core::ffi::c_char;
use core::mem::MaybeUninit;
use std::os::fd::AsRawFd;

/// Makes the calling thread a member of the pool for `time_ns`: it leads, follows and runs handlers as
/// the pool's own threads do. It returns when the time is over and the handler that runs then has returned. With a time of
/// 0 it runs what is ready, for up to one turn (max_turn_ns), and returns; PACE_FOREVER lasts until the pool shuts down. *ran says how many handlers and tasks it has run; `ran` may be NULL.
///
/// PACE_EFULL when max_joined threads are here already, PACE_EINVAL inside a handler, PACE_ESHUTDOWN.
///
/// Threads: any but the pool's own. In handlers: no.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pool_join(
    pool: Option<&pace_pool_t>,
    time_ns: u64,
    ran: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let ran = optional_out(ran);
        ran.set(pool.pool.join(nanos(time_ns))?);
        Ok(())
    })
}

/// A descriptor that becomes readable when there is something to do, for hosts that wait in a loop of
/// their own and then call pace_pool_join(pool, 0, NULL) or pace_cq_wait() with a time of 0. For a
/// pool of no threads and one handle set. It belongs to the pool: never read, write or close it.
///
/// PACE_EINVAL if the pool has threads of its own, or no descriptors; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pool_pollable(
    pool: Option<&pace_pool_t>,
    fd: Option<&mut MaybeUninit<i32>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let to = out(fd, "fd")?;
        to.set(pool.pool.pollable()?.as_raw_fd());
        Ok(())
    })
}

/// Names what a host thread handles of what pace_cq_wait() has brought it; shown until the thread waits again. `thread` is
/// its number (gettid), 0: the calling one. Up to 200 bytes of `name` are shown; "": no name. The process keeps some
/// 4,000 names.
///
/// PACE_ESTALE: no host of this pool, or it handles nothing; PACE_EINVAL: `name` is NULL or not UTF-8; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_name_host(
    pool: Option<&pace_pool_t>,
    thread: u32,
    name: *const c_char,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        // SAFETY: as the header demands.
        let name = unsafe { text(name, "name") }?;
        Ok(pool.pool.name_host(thread, name)?)
    })
}
