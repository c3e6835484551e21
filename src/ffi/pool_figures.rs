//! The figures of a pool, of the process, and of file systems, as text.
#![allow(unsafe_code, reason = "the symbols and pointers of the C interface")]

use super::boundary::{Out, call};
use super::metric::text as text_of;
use super::pool::{open, pace_pool_t};
use super::status::*;
use super::work_stats::{give, text_in};
use crate::Error;
use core::ffi::c_char;
use std::path::Path;

/// The figures of a pool and of all that stands on it (servers, HTTP by route, datagram sockets, worker pools, hubs,
/// completion queues), of the process and the system, and of the file systems of pace_pool_disk(), as text that ends
/// with NUL: PACE_METRICS_JSON, PACE_METRICS_PROMETHEUS or PACE_METRICS_OPENMETRICS (pace_metrics_format()). They have the
/// label `pool`, which is the pool's name. *needed says how many bytes it takes, with the NUL, also for PACE_EFULL: `size`
/// is less. `text` may be NULL if `size` is 0. They change from call to call, so ask for some more. Of a worker pool that
/// was made with `metrics`, pace_workers_metrics() has these and its own.
///
/// PACE_EFULL; PACE_EINVAL if `format` is none of these.
///
/// Threads: any. In handlers: it may read files of /proc; allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_metrics(
    pool: *mut pace_pool_t,
    format: u32,
    text: *mut c_char,
    size: usize,
    needed: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pool = unsafe { open(pool) }?;
        // SAFETY: as the header demands.
        let needed = unsafe { Out::new(needed, "needed") }?;
        let made = text_in(format, pool.figures.registry(&pool.pool))?;
        // SAFETY: as the header demands.
        unsafe { give(&made, text, size, needed) }
    })
}

/// From now on pace_pool_metrics() of the pool, and pace_workers_metrics() of worker pools on it, tell the free space and
/// the size of the file system that `path` is on: system_disk_free_bytes and system_disk_total_bytes, with the label
/// `path`.
///
/// PACE_EINVAL; PACE_EOS if there is no such path.
///
/// Threads: any. In handlers: yes. It may wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_disk(
    pool: *mut pace_pool_t,
    path: *const c_char,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let pool = unsafe { open(pool) }?;
        // SAFETY: as the header demands.
        let path = Path::new(unsafe { text_of(path, "path") }?);
        let there = crate::sys::machine::space(path);
        there.map_err(|error| Error::os(format!("find space of {}", path.display()), error))?;
        pool.figures.add_disk(path);
        Ok(())
    })
}
