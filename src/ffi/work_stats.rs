//! Worker pools: statistics, counters, health, and figures as text.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Out, Result, Text, call, out, usable};
use super::sized::{self, InOut};
use super::stats::{no_row, number_of};
use super::status::*;
use super::task_type::pace_task_type_t;
use super::workers::pace_workers_t;
use crate::metrics::{Registry, TextFormat};
use crate::task::Health;
use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;
use core::ptr;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

/// All ordinary threads of the pool return from their tasks in time.
pub const PACE_HEALTH_READY: u32 = 0;
/// Some threads are inside functions that have outlived their time and do not listen.
pub const PACE_HEALTH_DEGRADED: u32 = 1;
/// All ordinary threads are stuck: inside functions that have outlived their time and do not listen.
pub const PACE_HEALTH_STUCK: u32 = 2;
/// The worker pool takes no more tasks.
pub const PACE_HEALTH_DRAINING: u32 = 3;

/// A JSON object with `families`.
pub const PACE_METRICS_JSON: u32 = 0;
/// Prometheus's text format 0.0.4. Its media type is "text/plain; version=0.0.4; charset=utf-8".
pub const PACE_METRICS_PROMETHEUS: u32 = 1;
/// The text of OpenMetrics 1.0. Its media type is "application/openmetrics-text; version=1.0.0; charset=utf-8".
pub const PACE_METRICS_OPENMETRICS: u32 = 3;

/// What has happened to the tasks of one task type. Counts never fall, but for `running`. Set struct_size to
/// sizeof the struct before the call, here and below.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_task_type_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Tasks of this type that were submitted.
    pub submitted: u64,
    /// Of `submitted`: tasks that the worker pool has taken.
    pub accepted: u64,
    /// Of `submitted`: tasks that were given back to the caller.
    pub rejected: u64,
    /// Of `accepted`: tasks that have succeeded.
    pub completed: u64,
    /// Of `accepted`: tasks whose last attempt has failed.
    pub failed: u64,
    /// Of `accepted`: tasks that were cancelled.
    pub cancelled: u64,
    /// Of `accepted`: tasks that were over one of their times.
    pub timed_out: u64,
    /// Of `accepted`: tasks that were dropped to make room for others.
    pub dropped: u64,
    /// Attempts that failed and were followed by another.
    pub retried: u64,
    /// Retries that their budget did not allow.
    pub retries_refused: u64,
    /// Attempts whose functions run now, or that are out with a host.
    pub running: u64,
    /// Outcomes of attempts that had been overtaken by a retry: they changed nothing.
    pub discarded: u64,
}

/// The counters of a worker pool. At rest they balance exactly: submitted = accepted + rejected, and
/// accepted = completed + failed + cancelled + timed_out + dropped + in_flight.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_workers_audit_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Whether the counters balance: no task is lost.
    pub balances: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// Tasks that were submitted to the worker pool.
    pub submitted: u64,
    /// Of `submitted`: tasks that the worker pool has taken.
    pub accepted: u64,
    /// Of `submitted`: tasks that were given back to the caller.
    pub rejected: u64,
    /// Of `accepted`: tasks that have succeeded.
    pub completed: u64,
    /// Of `accepted`: tasks whose last attempt has failed.
    pub failed: u64,
    /// Of `accepted`: tasks that were cancelled.
    pub cancelled: u64,
    /// Of `accepted`: tasks that were over one of their times.
    pub timed_out: u64,
    /// Of `accepted`: tasks that were dropped to make room for others.
    pub dropped: u64,
    /// Of `accepted`: tasks that have not ended; counted where they are, not derived.
    pub in_flight: u64,
}

/// What one thread of the pool has done for a worker pool. Attempts that a submitter runs in its own thread
/// (PACE_OVERLOAD_RUN_HERE), or that a host takes from a completion queue, are no thread's of the pool.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_worker_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// What the thread is doing now, for this worker pool or anything else of the pool: PACE_ROLE_.
    pub role: u32,
    /// The thread runs an attempt of this worker pool that has outlived its time, or its task.
    pub stuck: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 7],
    /// The name of the task of this worker pool that the thread runs now; NULL if it runs none. Static.
    pub task_type: *const c_char,
    /// Attempts that the thread has begun: those that have completed or failed, and the one that runs.
    pub attempts: u64,
    /// Attempts that have reported success.
    pub completed: u64,
    /// Attempts that have failed, or were cancelled while they ran.
    pub failed: u64,
    /// What the attempts of the thread took together, up to now.
    pub run_time_ns: u64,
    /// The part of the time since the worker pool was made that its attempts took, 0.0 to 1.0.
    pub utilisation: f64,
}

/// How a worker pool is, with what is left of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_health_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// The state as one number: PACE_HEALTH_READY to PACE_HEALTH_DRAINING.
    pub health: u32,
    /// The number of ordinary threads of the pool.
    pub threads: u32,
    /// The number of ordinary threads that are stuck.
    pub stuck: u32,
    /// The number of ordinary threads that are active and not stuck: what is left to run tasks.
    pub capacity: u32,
    /// The number of ordinary threads that run nothing now.
    pub free: u32,
    /// The number of reserved threads that are not stuck.
    pub reserved_threads: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// The number of tasks that wait in the lanes.
    pub queued: u64,
}

/// What has happened to the tasks of a task type.
///
/// PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_task_type_stats(
    task_type: Option<&pace_task_type_t>,
    stats: InOut<pace_task_type_stats_t>,
) -> pace_status_t {
    call(|| {
        let task_type = usable(task_type)?;
        let room = stats.room("stats")?;
        let stats = task_type.task_type.stats();
        room.fill(pace_task_type_stats_t {
            struct_size: 0,
            reserved: 0,
            submitted: stats.submitted,
            accepted: stats.accepted,
            rejected: stats.rejected,
            completed: stats.completed,
            failed: stats.failed,
            cancelled: stats.cancelled,
            timed_out: stats.timed_out,
            dropped: stats.dropped,
            retried: stats.retried,
            retries_refused: stats.retries_refused,
            running: stats.running,
            discarded: stats.discarded,
        });
        Ok(())
    })
}

/// What it has counted; the counters add up at rest.
///
/// PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub extern "C" fn pace_workers_audit(
    workers: Option<&pace_workers_t>,
    audit: InOut<pace_workers_audit_t>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let room = audit.room("audit")?;
        let audit = workers.workers.audit();
        room.fill(pace_workers_audit_t {
            struct_size: 0,
            balances: audit.balances(),
            reserved: [0; 3],
            submitted: audit.submitted,
            accepted: audit.accepted,
            rejected: audit.rejected,
            completed: audit.completed,
            failed: audit.failed,
            cancelled: audit.cancelled,
            timed_out: audit.timed_out,
            dropped: audit.dropped,
            in_flight: audit.in_flight,
        });
        Ok(())
    })
}

/// What one thread of the pool has done for a worker pool: `worker` is 0 to pace_pool_stats_t.threads - 1, as
/// `worker` of pace_task_report_t.
///
/// PACE_EINVAL for another `worker`; PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub extern "C" fn pace_workers_worker_stats(
    workers: Option<&pace_workers_t>,
    worker: u32,
    stats: InOut<pace_worker_stats_t>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let room = stats.room("stats")?;
        let rows = workers.workers.stats().workers;
        let row = rows.get(worker as usize);
        let row = row.ok_or_else(|| no_row("worker", worker, rows.len()))?;
        room.fill(pace_worker_stats_t {
            struct_size: 0,
            role: number_of(row.role),
            stuck: row.stuck,
            reserved: [0; 7],
            task_type: row.task_type.map_or(ptr::null(), |name| static_name(name).as_ptr()),
            attempts: row.attempts,
            completed: row.completed,
            failed: row.failed,
            run_time_ns: u64::try_from(row.run_time.as_nanos()).unwrap_or(u64::MAX),
            utilisation: row.utilisation,
        });
        Ok(())
    })
}

/// A name of a task type as C has it, which lasts as long as the process, once for each name.
fn static_name(name: &'static str) -> &'static CStr {
    static NAMES: Mutex<BTreeMap<&str, &CStr>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.entry(name).or_insert_with(|| {
        let name = CString::new(name).unwrap_or_default();
        Box::leak(name.into_boxed_c_str())
    })
}

/// How a worker pool is.
///
/// PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits; allocates.
#[unsafe(no_mangle)]
pub extern "C" fn pace_workers_health(
    workers: Option<&pace_workers_t>,
    health: InOut<pace_health_t>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let room = health.room("health")?;
        let health = workers.workers.health();
        room.fill(pace_health_t {
            struct_size: 0,
            health: match health.health {
                Health::Ready => PACE_HEALTH_READY,
                Health::Degraded => PACE_HEALTH_DEGRADED,
                Health::Stuck => PACE_HEALTH_STUCK,
                Health::Draining => PACE_HEALTH_DRAINING,
            },
            threads: health.threads as u32,
            stuck: health.stuck.len() as u32,
            capacity: health.capacity as u32,
            free: health.free as u32,
            reserved_threads: health.reserved as u32,
            reserved: 0,
            queued: health.queued as u64,
        });
        Ok(())
    })
}

/// The figures of a worker pool that was made with `metrics`, of its pool, and of the process and the
/// system, as text that ends with NUL. *needed says how many bytes it takes, with that, also for
/// PACE_EFULL: `size` is less. `text` may be NULL if `size` is 0. They change from call to call, so ask
/// for some more.
///
/// PACE_EFULL; PACE_EINVAL if it was made without, or `format` is none of PACE_METRICS_.
///
/// Threads: any. In handlers: it may read files of /proc; allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_metrics(
    workers: Option<&pace_workers_t>,
    format: u32,
    text: *mut c_char,
    size: usize,
    needed: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let needed = out(needed, "needed")?;
        let made = text_in(format, workers.metrics()?)?;
        // SAFETY: as the header demands.
        unsafe { give(&made, text, size, needed) }
    })
}

/// The text format of metrics that a request with this `Accept` header wants most: *format is
/// PACE_METRICS_PROMETHEUS or PACE_METRICS_OPENMETRICS, for pace_workers_metrics() and pace_hub_metrics().
/// *media_type is what to send as Content-Type with that text: a collector may take it for another format
/// without. It ends with NUL, and is good for ever. `accept` is NULL if the request has no such header: then
/// *format is PACE_METRICS_PROMETHEUS, as it is where both or neither are wanted.
///
/// PACE_EINVAL if `accept` is not UTF-8.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_metrics_format(
    accept: Text,
    format: Option<&mut MaybeUninit<u32>>,
    media_type: Option<&mut MaybeUninit<*const c_char>>,
) -> pace_status_t {
    call(|| {
        let accept = match accept.is_null() {
            true => None,
            false => Some(accept.get("accept")?),
        };
        let to = out(format, "format")?;
        let name = out(media_type, "media_type")?;
        let (format, media_type) = match TextFormat::negotiate(accept) {
            TextFormat::Prometheus => (PACE_METRICS_PROMETHEUS, PROMETHEUS),
            TextFormat::OpenMetrics => (PACE_METRICS_OPENMETRICS, OPENMETRICS),
        };
        to.set(format);
        name.set(media_type.as_ptr());
        Ok(())
    })
}

// As `TextFormat::media_type` has them.
const PROMETHEUS: &CStr = c"text/plain; version=0.0.4; charset=utf-8";
const OPENMETRICS: &CStr = c"application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Gives a text away, with NUL behind it, if there is room.
///
impl pace_workers_t {
    /// Its registry. Fails if it was made without.
    pub(super) fn metrics(&self) -> Result<&Registry> {
        let none = || Failure::invalid("metrics", "false", "true in the worker pool's settings");
        self.registry.as_ref().ok_or_else(none)
    }
}

/// What a registry has, in one of its formats.
pub(super) fn text_in(format: u32, registry: &Registry) -> Result<String> {
    let snapshot = registry.snapshot();
    match format {
        PACE_METRICS_JSON => Ok(snapshot.to_json()),
        PACE_METRICS_PROMETHEUS => Ok(snapshot.to_text(TextFormat::Prometheus)),
        PACE_METRICS_OPENMETRICS => Ok(snapshot.to_text(TextFormat::OpenMetrics)),
        other => {
            let allowed = "0, 1 or 3 (PACE_METRICS_JSON, _PROMETHEUS or _OPENMETRICS)";
            Err(Failure::invalid("format", other, allowed))
        }
    }
}

/// # Safety
///
/// `size` bytes can be written to `text`, which may be NULL if that is 0.
pub(super) unsafe fn give(
    made: &str,
    text: *mut c_char,
    size: usize,
    needed: Out<usize>,
) -> Result {
    if size > 0 {
        boundary::check(text, "text")?;
    }
    needed.set(made.len() + 1);
    if made.len() >= size {
        return Err(TOO_SMALL);
    }
    // SAFETY: `size` bytes can be written, and these are no more with the NUL.
    unsafe {
        text.cast::<u8>().copy_from_nonoverlapping(made.as_ptr(), made.len());
        text.add(made.len()).write(0);
    }
    Ok(())
}

const TOO_SMALL: Failure = Failure::plain(PACE_EFULL, c"the text needs more bytes than size");

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_task_type_stats_t {
    const FIRST: usize = 96;
    const NAME: &'static str = "pace_task_type_stats_t";
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_workers_audit_t {
    const FIRST: usize = 80;
    const NAME: &'static str = "pace_workers_audit_t";
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_worker_stats_t {
    const FIRST: usize = 64;
    const NAME: &'static str = "pace_worker_stats_t";
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_health_t {
    const FIRST: usize = 40;
    const NAME: &'static str = "pace_health_t";
}
