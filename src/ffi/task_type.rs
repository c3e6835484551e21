//! Task types: the names of tasks, with the settings that all tasks of a name share.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, FORKED, Failure, Handle, Result, Text, call, call_void, consumed, nanos, out, usable,
};
use super::callback::{pace_drop_fn, pace_task_fn};
use super::owner::{Registration, pair};
use super::retry::{NO_RETRY, PACE_RETRY_CUSTOM, pace_retry_t, retry_of};
use super::settings::{Retries, change, change_retry, change_time, load};
use super::sized::{self, In, InOut};
use super::status::*;
use super::task::{PACE_LANE_NORMAL, ignore, refuse};
use super::values::{PACE_FOREVER, PACE_UNLIMITED32};
use super::work::{Work, lane as priority};
use super::workers::pace_workers_t;
use crate::admin::TaskSettings;
use crate::task::{Backoff, OverloadPolicy, Rate, RetryBudget, TaskType};
use core::ffi::{c_char, c_void};
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use core::time::Duration;

/// For a task: as its task type; for a task type: as its worker pool; for that: wait for room outside the pool's
/// threads, as long as it takes; inside, PACE_EFULL.
pub const PACE_OVERLOAD_DEFAULT: u32 = 0;
/// A task that finds no room is refused with PACE_EFULL at once.
pub const PACE_OVERLOAD_REJECT: u32 = 1;
/// A task that finds no room waits for it for up to full_wait_ns.
pub const PACE_OVERLOAD_WAIT: u32 = 2;
/// The first attempt of a task that finds no room runs in the submitter's thread; inside the pool it is
/// refused with PACE_EFULL.
pub const PACE_OVERLOAD_RUN_HERE: u32 = 3;
/// The oldest task with this policy in the lowest lane is dropped, and ends as PACE_TASK_REJECTED.
pub const PACE_OVERLOAD_DROP_OLDEST: u32 = 4;

/// The delay before a retry, in nanoseconds: `retry` is 1 after the first failure. It is called on the
/// threads of the pool, by several at once, and must be quick.
pub type pace_delay_fn = Option<unsafe extern "C" fn(user_data: *mut c_void, retry: u32) -> u64>;

/// A task type of tasks: a name with its settings and its statistics.
pub struct pace_task_type_t {
    pub(super) task_type: TaskType,
    pub(super) pool: crate::Pool,
}

/// Settings of a task type. Call pace_task_type_config_init(), change what you like, call pace_task_type_new().
#[repr(C)]
pub struct pace_task_type_config_t {
    /// The size of the struct in bytes, as pace_task_type_config_init() sets it.
    pub struct_size: u32,
    /// The lane of the tasks: PACE_LANE_CRITICAL to PACE_LANE_LOW. Default: PACE_LANE_NORMAL.
    pub lane: u32,
    /// When a task that has failed is tried again. Default: no retries.
    pub retry: pace_retry_t,
    /// How long each attempt may take, up to 100 years. Of one that is out of a completion queue this limit and
    /// deadline_ns may end 100 ms late while all `max_handles` of the pool are in use. PACE_FOREVER (default), or 0: no limit.
    pub timeout_ns: u64,
    /// How long a task may wait for its first attempt. PACE_FOREVER (default), or 0: no limit.
    pub queue_timeout_ns: u64,
    /// How long a task may take in all, from its submission to its end. PACE_FOREVER (default), or 0: no
    /// limit.
    pub deadline_ns: u64,
    /// Called for the delay before each retry, if the shape is PACE_RETRY_CUSTOM.
    pub retry_delay: pace_delay_fn,
    /// The first argument of retry_delay and retry_drop.
    pub retry_data: *mut c_void,
    /// Runs once after its last call: when the pool is gone and the ids of its tasks, or later. NULL: nothing.
    pub retry_drop: pace_drop_fn,
    /// Retries are bounded together by the budget of the next three fields. Default: they are not.
    pub retry_budget: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// So many retries in each second, 0 to 1,000,000. Default 10.
    pub budget_per_second: u32,
    /// So many retries for each first attempt besides, 0 to 1000. Default 0.2.
    pub budget_ratio: f64,
    /// At most so many retries are saved up, 1 to 1,000,000. Default 100.
    pub budget_burst: u32,
    /// So many attempts may start in each rate_per_ns. PACE_UNLIMITED32 (default), or 0: no limit.
    pub rate_starts: u32,
    /// 1 ns for each start to 100 years. Default one second.
    pub rate_per_ns: u64,
    /// So many starts at once after a time with fewer, at least 1. Default 1.
    pub rate_burst: u32,
    /// So many attempts may run at once. One that is out of a completion queue counts until its task has
    /// ended.
    /// PACE_UNLIMITED32 (default), or 0: no limit.
    pub max_running: u32,
    /// How long each attempt may take before it is asked to give up; nothing else follows. PACE_FOREVER (default), or
    /// 0: no limit.
    pub soft_timeout_ns: u64,
    /// How long an attempt whose time is over, and that another might follow, may take to return: then the
    /// task ends, unless its retries overlap. 0 (default): one second.
    pub grace_ns: u64,
    /// PACE_OVERLOAD_: what is done when the lane is full. Default: as its worker pool.
    pub full: u32,
    /// Room for later versions; zero.
    pub reserved2: u32,
    /// For PACE_OVERLOAD_WAIT: for how long. PACE_FOREVER: as long as it takes.
    pub full_wait_ns: u64,
    /// An attempt whose time is over does not hold up the next one: both may run at once, so the function
    /// must bear that. What the one that was overtaken comes to is discarded and counted; it is asked to
    /// give up. `drop` runs once, when all have returned. Each attempt on a thread of the pool counts for
    /// max_running. Not for periodic tasks. Default: the next one waits.
    pub overlap_retries: bool,
    /// Room for later versions; zero.
    pub reserved3: [u8; 7],
    /// For tasks without a function: how long a host may be silent about an attempt that it has taken from a completion
    /// queue, before it counts as gone: 1 ms to 100 years. Then the attempt has failed, and is followed by another as
    /// after any failure; if it is the last one, that end comes to the queue, too. Renewing its entry is a sign of life;
    /// what the host says later is PACE_ESTALE, and its attempt may have run beside the next. While all `max_handles` of
    /// the pool are in use it may end 100 ms late. PACE_FOREVER (default), or 0: no limit, it is waited for.
    pub lease_ns: u64,
}

/// Fills a configuration with the defaults. `size` is sizeof *config.
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_task_type_config_init(
    config: InOut<pace_task_type_config_t>,
    size: usize,
) -> pace_status_t {
    call(|| config.init(size, DEFAULTS, "config"))
}

/// Changes a configuration to what the section `tasks` of a file of settings says, as pace_pool_config_load() does for
/// `pool`.
///
/// As there.
///
/// Threads: any. In handlers: yes; it reads a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_task_type_config_load(
    config: InOut<pace_task_type_config_t>,
    path: *const c_char,
    environment: bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe {
            load(config, path, environment, "config", |config, said| said_of(config, said.tasks))
        }
    })
}

fn said_of(config: &mut pace_task_type_config_t, tasks: TaskSettings) {
    change(&mut config.lane, tasks.lane.map(|lane| lane as u32));
    change_time(&mut config.timeout_ns, tasks.timeout);
    change_time(&mut config.soft_timeout_ns, tasks.soft_timeout);
    change_time(&mut config.queue_timeout_ns, tasks.queue_timeout);
    change_time(&mut config.deadline_ns, tasks.deadline);
    change_time(&mut config.grace_ns, tasks.grace);
    change_time(&mut config.lease_ns, tasks.lease);
    change(&mut config.max_running, tasks.max_running);
    change_full((&mut config.full, &mut config.full_wait_ns), tasks.full);
    let said = Retries {
        retries: tasks.retries,
        growth: tasks.retry_growth,
        delay: tasks.retry_delay,
        cap: tasks.retry_cap,
        within: tasks.retry_within,
    };
    let usual = [Duration::from_millis(100), Duration::from_secs(30)];
    change_retry(&mut config.retry, &said, usual);
}

/// A task type of this name. Task types are for names that are few ("resize", not "resize image 17"): what is known
/// of one is kept as long as the pool, and the name as long as the process. The name is UTF-8, and is copied.
/// A `config` of NULL means the defaults. The same name with the same settings is the same task type.
///
/// PACE_EINVAL names the field, its value and the allowed range; or the name has other settings already.
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_task_type_new(
    workers: Option<&pace_workers_t>,
    name: Text,
    config: In<pace_task_type_config_t>,
    task_type: Option<&mut MaybeUninit<*mut pace_task_type_t>>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let name = name.get("name")?;
        let to = out(task_type, "task_type")?;
        let config = match config.is_null() {
            true => DEFAULTS,
            false => config.read("config")?,
        };
        let (registration, delay) = custom(&config)?;
        let made = make(workers, name, &config, delay);
        let task_type = match (made, registration) {
            (Ok(task_type), Some(registration)) => {
                registration.keep();
                task_type
            }
            (Err(failure), Some(registration)) => {
                // Nobody has called it.
                registration.give_back();
                return Err(failure);
            }
            (made, None) => made?,
        };
        let pool = workers.workers.pool().clone();
        to.set(Box::into_raw(Box::new(pace_task_type_t { task_type, pool })));
        Ok(())
    })
}

/// Runs a function once, in the task type's lane: no id, no limits, no retries, and it costs what
/// pace_pool_post() costs. It is counted in the pool's counters, not in the task type's. While the lane is full the
/// task type's policy is followed; PACE_OVERLOAD_DROP_OLDEST is PACE_OVERLOAD_REJECT here, for what has no id is not
/// dropped, and drops nobody.
///
/// PACE_EFULL, PACE_ESHUTDOWN; PACE_EINVAL.
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_task_type_post(
    task_type: Option<&pace_task_type_t>,
    run: pace_task_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let task_type = usable(task_type)?;
        let work = Work::new(run, user_data, drop)?;
        task_type.task_type.post(move || ignore(work.run())).or_else(refuse)
    })
}

/// Frees what names a task type. Its tasks go on, and what is known of the name is kept. NULL: nothing.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_task_type_free(task_type: Option<Box<pace_task_type_t>>) {
    call_void(|| drop(consumed(task_type)));
}

impl Handle for pace_task_type_t {
    const NAME: &'static str = "task_type";

    fn is_forked(&self) -> bool {
        self.pool.shared().is_forked()
    }
}

/// The task type behind an argument, in the process that made it.
///
/// # Safety
///
/// It is NULL, or came from `pace_task_type_new` and has not been freed.
#[inline]
pub(super) unsafe fn open<'a>(task_type: *const pace_task_type_t) -> Result<&'a pace_task_type_t> {
    // SAFETY: as the caller promises.
    let task_type = unsafe { boundary::borrow(task_type, "task_type") }?;
    if task_type.pool.shared().is_forked() { Err(FORKED) } else { Ok(task_type) }
}

/// None: no limit.
fn limit(time: u64) -> Option<Duration> {
    (![0, PACE_FOREVER].contains(&time)).then(|| nanos(time))
}

/// What settings say of it.
pub(super) fn change_full((full, wait_ns): (&mut u32, &mut u64), said: Option<OverloadPolicy>) {
    (*full, *wait_ns) = match said {
        None => return,
        Some(OverloadPolicy::Reject) => (PACE_OVERLOAD_REJECT, 0),
        Some(OverloadPolicy::Wait(_)) => (PACE_OVERLOAD_WAIT, PACE_FOREVER),
        Some(OverloadPolicy::RunHere) => (PACE_OVERLOAD_RUN_HERE, 0),
        Some(OverloadPolicy::DropOldest) => (PACE_OVERLOAD_DROP_OLDEST, 0),
    };
}

/// None: the default.
pub(super) fn full_of(full: u32, wait_ns: u64) -> Result<Option<OverloadPolicy>> {
    Ok(Some(match full {
        PACE_OVERLOAD_DEFAULT => return Ok(None),
        PACE_OVERLOAD_REJECT => OverloadPolicy::Reject,
        PACE_OVERLOAD_WAIT if wait_ns == PACE_FOREVER => OverloadPolicy::Wait(Duration::MAX),
        PACE_OVERLOAD_WAIT => OverloadPolicy::Wait(nanos(wait_ns)),
        PACE_OVERLOAD_RUN_HERE => OverloadPolicy::RunHere,
        PACE_OVERLOAD_DROP_OLDEST => OverloadPolicy::DropOldest,
        other => return Err(Failure::invalid("full", other, "0 to 4 (PACE_OVERLOAD_)")),
    }))
}

/// The task type's own function, if its retries follow it.
fn custom(config: &pace_task_type_config_t) -> Result<(Option<Registration>, Option<Backoff>)> {
    if config.retry.shape != PACE_RETRY_CUSTOM {
        return Ok((None, None));
    }
    let delay = boundary::callback(config.retry_delay, "retry_delay")?;
    let (registration, owner) = pair(config.retry_data, config.retry_drop);
    let backoff = Backoff::custom(move |retry| {
        // SAFETY: as the header demands, the function takes what came with it.
        nanos(unsafe { delay(owner.data(), retry) })
    });
    Ok((Some(registration), Some(backoff)))
}

fn make(
    workers: &pace_workers_t,
    name: &str,
    config: &pace_task_type_config_t,
    delay: Option<Backoff>,
) -> Result<TaskType> {
    let mut builder = workers.workers.task_type(name).lane(priority(config.lane)?);
    if let Some(retry) = retry_of(&config.retry, delay)? {
        builder = builder.retry(retry);
    }
    if let Some(time) = limit(config.timeout_ns) {
        builder = builder.timeout(time);
    }
    if let Some(time) = limit(config.queue_timeout_ns) {
        builder = builder.queue_timeout(time);
    }
    if let Some(time) = limit(config.deadline_ns) {
        builder = builder.deadline(time);
    }
    if ![0, PACE_UNLIMITED32].contains(&config.max_running) {
        builder = builder.max_running(config.max_running);
    }
    if config.overlap_retries {
        builder = builder.overlap_retries(true);
    }
    if let Some(time) = limit(config.soft_timeout_ns) {
        builder = builder.soft_timeout(time);
    }
    if let Some(time) = limit(config.lease_ns) {
        builder = builder.lease(time);
    }
    if config.grace_ns != 0 {
        builder = builder.grace(nanos(config.grace_ns));
    }
    if let Some(full) = full_of(config.full, config.full_wait_ns)? {
        builder = builder.full(full);
    }
    if config.retry_budget {
        let budget = RetryBudget::new(config.budget_ratio);
        let budget = budget.per_second(config.budget_per_second).burst(config.budget_burst);
        builder = builder.retry_budget(budget);
    }
    if ![0, PACE_UNLIMITED32].contains(&config.rate_starts) {
        let rate = Rate::new(config.rate_starts, nanos(config.rate_per_ns));
        builder = builder.rate(rate.burst(config.rate_burst));
    }
    Ok(builder.build()?)
}

const DEFAULTS: pace_task_type_config_t = pace_task_type_config_t {
    struct_size: size_of::<pace_task_type_config_t>() as u32,
    lane: PACE_LANE_NORMAL,
    retry: NO_RETRY,
    timeout_ns: PACE_FOREVER,
    queue_timeout_ns: PACE_FOREVER,
    deadline_ns: PACE_FOREVER,
    retry_delay: None,
    retry_data: ptr::null_mut(),
    retry_drop: None,
    retry_budget: false,
    reserved: [0; 3],
    budget_per_second: 10,
    budget_ratio: 0.2,
    budget_burst: 100,
    rate_starts: PACE_UNLIMITED32,
    rate_per_ns: 1_000_000_000,
    rate_burst: 1,
    max_running: PACE_UNLIMITED32,
    soft_timeout_ns: PACE_FOREVER,
    grace_ns: 0,
    full: PACE_OVERLOAD_DEFAULT,
    reserved2: 0,
    full_wait_ns: 0,
    overlap_retries: false,
    reserved3: [0; 7],
    lease_ns: PACE_FOREVER,
};

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_task_type_config_t {
    const FIRST: usize = 168;
    const NAME: &'static str = "pace_task_type_config_t";
    const FLAGS: &'static [(&'static str, usize)] = &[
        ("retry_budget", offset_of!(pace_task_type_config_t, retry_budget)),
        ("overlap_retries", offset_of!(pace_task_type_config_t, overlap_retries)),
    ];
    const RESERVED: &'static [usize] = &{
        const FIRST: usize = offset_of!(pace_task_type_config_t, reserved);
        const SECOND: usize = offset_of!(pace_task_type_config_t, reserved2);
        const THIRD: usize = offset_of!(pace_task_type_config_t, reserved3);
        [
            FIRST,
            FIRST + 1,
            FIRST + 2,
            SECOND,
            SECOND + 1,
            SECOND + 2,
            SECOND + 3,
            THIRD,
            THIRD + 1,
            THIRD + 2,
            THIRD + 3,
            THIRD + 4,
            THIRD + 5,
            THIRD + 6,
        ]
    };
}
