//! Worker pools: tasks with names, priorities, retries and limits, on a pool's threads.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, FORKED, Failure, Handle, Result, Text, call, call_void, callback, consumed, nanos, out,
    usable,
};
use super::callback::pace_drop_fn;
use super::log::{log_of, pace_log_t};
use super::middleware::{self, pace_middleware_t};
use super::owner::{Registration, pair};
use super::pool::pace_pool_t;
use super::registry::Registry;
use super::settings::{change, load};
use super::sized::{self, In, InOut};
use super::status::*;
use super::task_type::{PACE_OVERLOAD_DEFAULT, change_full, full_of};
use super::values::PACE_NONE;
use crate::admin::WorkerSettings;
use crate::metrics::Registry as MetricsRegistry;
use crate::task::{Phases, Scaling, TaskHandle, WorkerPool, WorkerPoolBuilder};
use core::ffi::{c_char, c_void};
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use std::ffi::CString;

/// In the report of a shutdown: how many tasks of a name have completed since it began.
pub const PACE_ENDED_COMPLETED: u32 = 0;
/// In the report of a shutdown: a task that was cancelled.
pub const PACE_ENDED_CANCELLED: u32 = 1;
/// In the report of a shutdown: a task whose function has not returned, or whose attempt a host has not
/// completed.
pub const PACE_ENDED_STUCK: u32 = 2;
/// In the report of a shutdown: a clean-up hook for which there was no time, or that has not returned in
/// time.
pub const PACE_ENDED_HOOK: u32 = 3;

/// A worker pool over a pool, whose threads run its tasks beside everything else.
pub struct pace_workers_t {
    pub(super) workers: WorkerPool,
    pub(super) tasks: Registry<TaskHandle<()>>,
    pub(super) registry: Option<MetricsRegistry>,
}

/// Settings of a worker pool. Call pace_workers_config_init(), change what you like, call
/// pace_workers_new().
#[repr(C)]
pub struct pace_workers_config_t {
    /// The size of the struct in bytes, as pace_workers_config_init() sets it.
    pub struct_size: u32,
    /// How many tasks may wait for their keys, and how many for the rate of each task type, before others are
    /// refused: 1 to 2^24. Default 65,536.
    pub max_waiting: u32,
    /// How many tasks with a tag (pace_workers_submit_tagged) may wait to be taken from the completion queue before others
    /// are refused: 1 to 2^24. Default 2^20.
    pub max_queued: u32,
    /// How many tasks with ids may exist at once: 1 to 2^24, rounded up to the next multiple of 256. Default
    /// 2^22. Memory is taken as they appear.
    pub max_tasks: u32,
    /// From what the jitter of retries is drawn, so that a run can be repeated. 0 (default): another one
    /// for each worker pool.
    pub seed: u64,
    /// Adapt the number of active threads to how long tasks wait, between min_active and all. One worker
    /// pool of a pool may. Default: all threads are active.
    pub scaling: bool,
    /// Count for pace_workers_metrics(). Default: not, for it costs each task something.
    pub metrics: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 2],
    /// The least number of active threads, at least 1. Default 1.
    pub min_active: u32,
    /// More threads when the percentile of the waits is above this. Default 2 ms.
    pub scaling_high_ns: u64,
    /// Fewer when it is below this, at most half of scaling_high_ns. Default 200 µs.
    pub scaling_low_ns: u64,
    /// How often it is looked at, 1 ms to 1 h. Default 20 ms.
    pub scaling_period_ns: u64,
    /// Which percentile, 1 to 100. Default 95.
    pub scaling_percentile: u32,
    /// How many quiet periods in a row it takes for one thread less, at least 1. Default 10.
    pub scaling_patience: u32,
    /// What figures of it are labelled with: UTF-8. NULL: "workers".
    pub name: *const c_char,
    /// PACE_OVERLOAD_: what is done when a lane is full, unless a task type or a task says otherwise.
    pub full: u32,
    /// How many tasks with PACE_OVERLOAD_DROP_OLDEST may wait, in all lanes together, before the oldest is
    /// dropped: up to 2^24. 0 (default): the pool's lane_capacity.
    pub max_droppable: u32,
    /// For PACE_OVERLOAD_WAIT: for how long. PACE_FOREVER: as long as it takes.
    pub full_wait_ns: u64,
    /// What runs around each attempt, the first outermost. NULL (default): nothing.
    pub middleware: *const pace_middleware_t,
    /// How many those are, up to 64.
    pub middleware_count: u32,
    /// Room for later versions; zero.
    pub reserved2: u32,
    /// The log of its tasks, which it keeps, in place of the pool's. Each end of a task is a record then, and not only
    /// one that failed: task.completed, task.failed, task.timed_out, task.cancelled or task.rejected, at the level debug,
    /// with id, name, attempts, queue_ns, run_ns and thread. NULL (default): the pool's log.
    pub log: *mut pace_log_t,
}

/// How the shutdown of a worker pool went. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_workers_report_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// It was called inside the pool, so it was only a request: new tasks are refused.
    pub requested: bool,
    /// Whether everything has ended by itself, and nothing was cancelled or is stuck.
    pub drained: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 2],
    /// The number of tasks that have completed since the shutdown began.
    pub completed: u64,
    /// The number of tasks that were cancelled by the shutdown.
    pub cancelled: u64,
    /// The number of tasks whose functions have not returned.
    pub stuck: u32,
    /// Clean-up hooks for which there was no time, or that had not returned when the time was over.
    pub failed_hooks: u32,
}

/// Called for each line of a shutdown's report: PACE_ENDED_, the name of the task type or hook, how many, and
/// the thread (PACE_ENDED_STUCK only) or PACE_NONE. The name is good during the call.
pub type pace_ended_fn = Option<
    unsafe extern "C" fn(
        user_data: *mut c_void,
        what: u32,
        name: *const c_char,
        count: u64,
        thread: u32,
    ),
>;

/// A clean-up hook of a worker pool, called once with its user_data during the shutdown.
pub type pace_clean_up_fn = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

/// Fills a configuration with the defaults. `size` is sizeof *config.
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_workers_config_init(
    config: InOut<pace_workers_config_t>,
    size: usize,
) -> pace_status_t {
    call(|| config.init(size, DEFAULTS, "config"))
}

/// Changes a configuration to what the section `workers` of a file of settings says: JSON if its name ends
/// in .json, YAML if in .yaml or .yml. `path` may be NULL. With `environment`, variables PACELINE_WORKERS_…
/// win over the file. What neither says stays as it is; what is changed after this call wins over both.
///
/// PACE_EINVAL: pace_last_error() tells all that is wrong, each with file or variable, key, value and what
/// is allowed; the configuration is as it was. PACE_EVERSION: pace_workers_config_init() was not called.
///
/// Threads: any. In handlers: yes; it reads a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_config_load(
    config: InOut<pace_workers_config_t>,
    path: *const c_char,
    environment: bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe {
            load(config, path, environment, "config", |config, said| said_of(config, &said.workers))
        }
    })
}

fn said_of(config: &mut pace_workers_config_t, workers: &WorkerSettings) {
    config.scaling |= workers.min_active.is_some();
    change(&mut config.min_active, workers.min_active);
    change_full((&mut config.full, &mut config.full_wait_ns), workers.full);
    change(&mut config.max_droppable, workers.max_droppable);
    change(&mut config.max_waiting, workers.max_waiting);
}

/// Makes a worker pool over a pool. A `config` of NULL means the defaults. It needs no thread of its own.
///
/// PACE_EINVAL names the field, its value and the allowed range; PACE_EVERSION, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_new(
    pool: Option<&pace_pool_t>,
    config: In<pace_workers_config_t>,
    workers: Option<&mut MaybeUninit<*mut pace_workers_t>>,
) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let to = out(workers, "workers")?;
        let config = match config.is_null() {
            true => DEFAULTS,
            false => config.read("config")?,
        };
        let mut builder = WorkerPool::builder(&pool.pool)
            .max_waiting(config.max_waiting as usize)
            .max_queued(config.max_queued as usize);
        if !(1..=1 << 24).contains(&config.max_tasks) {
            return Err(Failure::invalid("max_tasks", config.max_tasks, "1 to 16777216"));
        }
        if config.seed != 0 {
            builder = builder.seed(config.seed);
        }
        if config.scaling {
            builder = builder.scaling(Scaling {
                min_active: config.min_active as usize,
                high: nanos(config.scaling_high_ns),
                low: nanos(config.scaling_low_ns),
                percentile: config.scaling_percentile,
                period: nanos(config.scaling_period_ns),
                patience: config.scaling_patience,
            });
        }
        let mut registry = None;
        if config.metrics {
            let name = match config.name.is_null() {
                true => "workers",
                // SAFETY: not NULL, and as the header demands.
                false => unsafe { boundary::text(config.name, "name") }?,
            };
            let made = registry.insert(MetricsRegistry::new());
            pool.figures.attach(made, &pool.pool, name);
            builder = builder.metrics(made, name);
        }
        if let Some(full) = full_of(config.full, config.full_wait_ns)? {
            builder = builder.full(full);
        }
        if config.max_droppable != 0 {
            builder = builder.max_droppable(config.max_droppable as usize);
        }
        if !config.log.is_null() {
            // SAFETY: as the header demands.
            builder = builder.log(unsafe { log_of(config.log) }?);
        }
        // SAFETY: as the header demands.
        let (registrations, builder) = unsafe { with_middleware(builder, &config) }?;
        let workers = match builder.build() {
            Ok(workers) => workers,
            Err(error) => {
                // Nobody has called them.
                registrations.iter().for_each(|registration| _ = registration.give_back());
                return Err(error.into());
            }
        };
        registrations.into_iter().for_each(Registration::keep);
        let tasks = Registry::new(config.max_tasks as usize, pool.pool.shared().fork_guard());
        to.set(Box::into_raw(Box::new(pace_workers_t { workers, tasks, registry })));
        Ok(())
    })
}

/// # Safety
///
/// `middleware` is NULL, or points to as many as `middleware_count` says.
unsafe fn with_middleware(
    mut builder: WorkerPoolBuilder,
    config: &pace_workers_config_t,
) -> Result<(Vec<Registration>, WorkerPoolBuilder)> {
    let count = config.middleware_count;
    if count > MOST_MIDDLEWARE {
        return Err(Failure::invalid("middleware_count", count, "at most 64"));
    }
    // SAFETY: as the caller promises.
    let all = unsafe { boundary::array(config.middleware, count as usize, "middleware") }?;
    let mut registrations = Vec::with_capacity(all.len());
    for each in all {
        let (registration, middleware) = middleware::of(each);
        registrations.push(registration);
        builder = builder.middleware(middleware);
    }
    Ok((registrations, builder))
}

/// Has `run` called at the end of a shutdown, the hook that was registered last first. It runs on a thread of
/// the pool; if none comes to it within a second (or half of the time that is left), or the pool takes no more
/// work, on the thread that shuts down, which cannot leave it alone then. The name is copied.
///
/// PACE_EINVAL for a name that is not UTF-8.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_on_shutdown(
    workers: Option<&pace_workers_t>,
    name: Text,
    run: pace_clean_up_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let name = name.get("name")?;
        let run = callback(run, "run")?;
        let (registration, owner) = pair(user_data, drop);
        workers.workers.on_shutdown(name, move || {
            // SAFETY: as the header demands, the hook takes what came with it.
            unsafe { run(owner.data()) }
        });
        registration.keep();
        Ok(())
    })
}

/// Shuts a worker pool down: refuses new tasks, lets what was accepted end for up to `drain_for_ns`, then
/// cancels what has not begun and asks what runs to stop, for up to `stop_for_ns`, then runs the clean-up
/// hooks for up to `clean_up_for_ns` (one that takes longer goes on, on a thread of the pool, and its `drop` runs
/// when it has returned). A task has ended when what pace_workers_on_end() was given has returned. The pool beneath goes
/// on. Hosts that take attempts should go on meanwhile. Calling it again is harmless. `report` and `each` may be NULL; `each` is called for each line of the report, on this thread, before
/// this returns.
///
/// Inside the pool it is a request: new tasks are refused from then on, and it returns.
///
/// PACE_EVERSION: report->struct_size was not set.
///
/// Threads: any. In handlers: yes, as a request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_shutdown(
    workers: Option<&pace_workers_t>,
    drain_for_ns: u64,
    stop_for_ns: u64,
    clean_up_for_ns: u64,
    report: InOut<pace_workers_report_t>,
    each: pace_ended_fn,
    user_data: *mut c_void,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let room = match report.is_null() {
            true => None,
            false => Some(report.room("report")?),
        };
        let (drain, stop, clean_up) =
            (nanos(drain_for_ns), nanos(stop_for_ns), nanos(clean_up_for_ns));
        let report = workers.workers.shutdown(Phases { drain, stop, clean_up });
        if let Some(each) = each {
            let tell = |what: u32, name: &str, count: u64, thread: u32| {
                let name = CString::new(name).unwrap_or_default();
                // SAFETY: as the header demands, it takes what came with it.
                unsafe { each(user_data, what, name.as_ptr(), count, thread) }
            };
            for (name, count) in &report.completed {
                tell(PACE_ENDED_COMPLETED, name, *count, PACE_NONE);
            }
            for name in &report.cancelled {
                tell(PACE_ENDED_CANCELLED, name, 1, PACE_NONE);
            }
            for (name, thread) in &report.stuck {
                let thread = thread.map_or(PACE_NONE, |thread| thread as u32);
                tell(PACE_ENDED_STUCK, name, 1, thread);
            }
            for name in report.failed_hooks.iter().chain(&report.abandoned_hooks) {
                tell(PACE_ENDED_HOOK, name, 1, PACE_NONE);
            }
        }
        if let Some(room) = room {
            room.fill(pace_workers_report_t {
                struct_size: 0,
                requested: report.requested,
                drained: report.drained,
                reserved: [0; 2],
                completed: report.completed.iter().map(|(_, count)| count).sum(),
                cancelled: report.cancelled.len() as u64,
                stuck: report.stuck.len() as u32,
                failed_hooks: (report.failed_hooks.len() + report.abandoned_hooks.len()) as u32,
            });
        }
        Ok(())
    })
}

/// Frees a worker pool: ids of its tasks name nothing any more. It is not shut down by that: what was
/// accepted goes on until the pool stops, unobserved; with the pool an attempt that is out of a completion
/// queue and was not completed has failed for good. Free its task types before or after. NULL: nothing.
///
/// Threads: any, as long as no other uses the worker pool any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_workers_free(workers: Option<Box<pace_workers_t>>) {
    call_void(|| drop(consumed(workers)));
}

impl Handle for pace_workers_t {
    const NAME: &'static str = "workers";

    fn is_forked(&self) -> bool {
        self.workers.pool().shared().is_forked()
    }
}

/// The worker pool behind an argument, in the process that made it.
///
/// # Safety
///
/// It is NULL, or came from `pace_workers_new` and has not been freed.
#[inline]
pub(super) unsafe fn open<'a>(workers: *const pace_workers_t) -> Result<&'a pace_workers_t> {
    // SAFETY: as the caller promises.
    let workers = unsafe { boundary::borrow(workers, "workers") }?;
    if workers.workers.pool().shared().is_forked() { Err(FORKED) } else { Ok(workers) }
}

/// More is a number that nobody has meant.
const MOST_MIDDLEWARE: u32 = 64;

const DEFAULTS: pace_workers_config_t = pace_workers_config_t {
    struct_size: size_of::<pace_workers_config_t>() as u32,
    max_waiting: 1 << 16,
    max_queued: 1 << 20,
    max_tasks: 1 << 22,
    seed: 0,
    scaling: false,
    metrics: false,
    reserved: [0; 2],
    min_active: 1,
    scaling_high_ns: 2_000_000,
    scaling_low_ns: 200_000,
    scaling_period_ns: 20_000_000,
    scaling_percentile: 95,
    scaling_patience: 10,
    name: ptr::null(),
    full: PACE_OVERLOAD_DEFAULT,
    max_droppable: 0,
    full_wait_ns: 0,
    middleware: ptr::null(),
    middleware_count: 0,
    reserved2: 0,
    log: ptr::null_mut(),
};

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_workers_config_t {
    const FIRST: usize = 72;
    const NAME: &'static str = "pace_workers_config_t";
    const FLAGS: &'static [(&'static str, usize)] = &[
        ("scaling", offset_of!(pace_workers_config_t, scaling)),
        ("metrics", offset_of!(pace_workers_config_t, metrics)),
    ];
    const RESERVED: &'static [usize] = &{
        const FIRST: usize = offset_of!(pace_workers_config_t, reserved);
        const SECOND: usize = offset_of!(pace_workers_config_t, reserved2);
        [FIRST, FIRST + 1, SECOND, SECOND + 1, SECOND + 2, SECOND + 3]
    };
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_workers_report_t {
    const FIRST: usize = 32;
    const NAME: &'static str = "pace_workers_report_t";
}
