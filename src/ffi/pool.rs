//! The pool: settings, start, end.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, FORKED, Failure, Handle, Result, call, call_void, consumed, nanos, out, usable,
};
use super::callback::{pace_drop_fn, pace_slow_fn, pace_thread_fn};
use super::log::{log_of, pace_log_t};
use super::owner::{Owner, Registration, pair};
use super::pool_registry::Figures;
use super::registry::Registry;
use super::settings::{change, change_text, change_time, load};
use super::sized::{self, In, InOut};
use super::status::*;
use super::values::{PACE_DEFAULT, PACE_FOREVER};
use crate::admin::PoolSettings;
use crate::sys::unconfined::{Unconfined, end_unconfined};
use crate::{Builder, Lane, Pool, Promotion, SourceKind, Strand, Task};
use core::ffi::{c_char, c_void};
use core::mem::{MaybeUninit, offset_of};
use core::ptr;
use std::sync::Arc;

/// Wait at Linux epoll: descriptors, timers, tasks, rings. The default.
pub const PACE_SOURCE_EPOLL: u32 = 0;
/// No descriptors: rings, timers and tasks only, without a system call while busy.
pub const PACE_SOURCE_RING: u32 = 1;

/// Leadership is offered, and whoever is free next takes it; nobody is woken in the common case. The
/// default.
pub const PACE_PROMOTION_DEFERRED: u32 = 0;
/// A thread is woken to lead before each event is handled. For handlers that always block.
pub const PACE_PROMOTION_EAGER: u32 = 1;

/// A pool: a fixed set of threads and what they serve.
pub struct pace_pool_t {
    pub(super) pool: Pool,
    pub(super) tasks: Registry<Task<i32>>,
    pub(super) strands: Registry<Strand>,
    pub(super) figures: Figures,
}

/// Settings of a pool. Call pace_pool_config_init(), change what you like, call pace_pool_new().
#[repr(C)]
pub struct pace_pool_config_t {
    /// The size of the struct in bytes, as pace_pool_config_init() sets it.
    pub struct_size: u32,
    /// Pool threads, 0 to 1024. PACE_DEFAULT: one per usable CPU. 0: only host threads drive it, by
    /// pace_pool_join() or pace_cq_wait().
    pub threads: u32,
    /// How many host threads may take part at once, 0 to 1024. Default 4.
    pub max_joined: u32,
    /// Handle sets, each with one leader at a time: 1 to one less than the threads (1 for a pool of
    /// one or none). PACE_DEFAULT: 1 for up to 8 threads, then one per 8.
    pub leaders: u32,
    /// What the leader waits at: PACE_SOURCE_EPOLL (default) or PACE_SOURCE_RING.
    pub source: u32,
    /// When leadership is handed on: PACE_PROMOTION_DEFERRED (default) or PACE_PROMOTION_EAGER.
    pub promotion: u32,
    /// How often the watch looks for stuck work while handlers are slow: 10 000 (10 µs) to
    /// 1 000 000 000 (1 s). Default 200 000.
    pub watch_period_ns: u64,
    /// How long a leader polls without blocking before it sleeps: 0 (default) to 100 000 000.
    pub spin_ns: u64,
    /// Room of each task lane, 2 to 2^24, rounded up to a power of two. Default 8192.
    pub lane_capacity: u32,
    /// Room of each strand, 2 to 2^24, rounded up to a power of two. Default 1024.
    pub strand_capacity: u32,
    /// How many handles, strands, timers and rings may exist at once, 1 to 2^24. Default 2^22.
    /// Memory is taken as they appear. A worker pool takes up to two of them, for as long as the pool
    /// is there.
    pub max_handles: u32,
    /// Whether a failure to pin fails pace_pool_new(), or is only told by the statistics (default).
    pub pin_strict: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// Where threads are pinned: "none", "compact", "spread", or a list of CPUs such as "0,2,4-7".
    /// NULL: compact if that leaves a CPU free, else none.
    pub pin: *const c_char,
    /// Threads are called name-0, name-1 …; the kernel shows 15 bytes. NULL: "paceline".
    pub name: *const c_char,
    /// Stack of each thread in bytes, 65536 to 2^32; 0: 2 MiB.
    pub stack_size: u64,
    /// Called with hook_data on each thread before anything else runs there. NULL: no call.
    pub on_start: pace_thread_fn,
    /// Called with hook_data on each thread after everything else has run there. NULL: no call.
    pub on_stop: pace_thread_fn,
    /// Called with hook_data for what takes longer than slow_ns. NULL: no call.
    pub on_slow: pace_slow_fn,
    /// The limit for on_slow in nanoseconds, at least 10 000 (10 µs).
    pub slow_ns: u64,
    /// The first argument of on_start, on_stop and on_slow.
    pub hook_data: *mut c_void,
    /// Runs once, after the last call of a hook: when the pool and all its rings have been freed.
    /// NULL: nothing.
    pub hook_drop: pace_drop_fn,
    /// So many threads are added, 0 to 48, that run nothing but tasks of a lane, by PACE_LANE_: with all
    /// others inside long tasks these still start at once. Default: none.
    pub reserve: [u32; 4],
    /// After how long a wait in a lane every fourth pick is of that lane: 1 ms to 1 h; 0 (default): 1 s;
    /// PACE_FOREVER: never.
    pub ageing_ns: u64,
    /// What happens in the pool, and in all that stands on it, is told to this log, which it keeps. NULL (default):
    /// to the one of pace_log_install(), or to none.
    pub log: *mut pace_log_t,
    /// How long a thread works on ready work before it looks at everything that waits (the event source, timers that are due,
    /// more urgent lanes): 10 000 (10 µs) to 1 000 000 000 (1 s); 0 (default): 1 ms. A backlog leaves its thread after that
    /// time, once the handler that runs has returned.
    pub max_turn_ns: u64,
}

/// How a shutdown went. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_report_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Everything that had been accepted has ended: nothing was cut off, cancelled or left, and no handler still runs.
    /// If it is false, the counts say what was.
    pub drained: bool,
    /// It was called inside a handler, so it was only a request.
    pub requested: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 2],
    /// Tasks that were accepted and will not run, and one-shot timers that were not due. (These do not count against
    /// `drained`.) This and what follows is what has come about since the first shutdown of the pool began.
    pub cancelled: u64,
    /// Threads whose handlers have not returned; pace_pool_thread_stats() tells which: their role is
    /// not PACE_ROLE_AWAY.
    pub stuck: u32,
    /// Room for later versions; zero.
    pub reserved2: u32,
    /// Events of rings, and messages of hubs, in mailboxes or with publishers that waited for room there, which will not
    /// be handled.
    pub left: u64,
    /// Of worker pools: tasks that were cancelled, those that waited for another attempt among them, and those that a
    /// host has taken and not completed.
    pub worker_tasks: u64,
    /// Of servers: connections that were cut off, as they were not through.
    pub connections: u64,
}

/// Fills a configuration with the defaults. `size` is sizeof *config, so that a library that has
/// grown never writes past a caller's struct: pace_pool_config_init(&config, sizeof config).
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pool_config_init(
    config: InOut<pace_pool_config_t>,
    size: usize,
) -> pace_status_t {
    call(|| config.init(size, DEFAULTS, "config"))
}

/// Builds a pool and starts its threads. A `config` of NULL means the defaults. Texts in it are
/// copied. If it fails, whatever had been started is stopped again, and hook_drop does not run.
///
/// PACE_EINVAL names the field, its value and the allowed range; PACE_EVERSION: struct_size was not
/// set, or sets what this library does not have; PACE_EOS: the system refuses a thread or descriptor,
/// or, with pin_strict, to pin.
///
/// Threads: any. In handlers: yes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_new(
    config: In<pace_pool_config_t>,
    pool: Option<&mut MaybeUninit<*mut pace_pool_t>>,
) -> pace_status_t {
    call(|| {
        let pool = out(pool, "pool")?;
        let config = match config.is_null() {
            true => DEFAULTS,
            false => config.read("config")?,
        };
        pool.set(Box::into_raw(Box::new(build(&config)?)));
        Ok(())
    })
}

/// Changes a configuration to what the section `pool` of a file of settings says: JSON if its name ends in .json,
/// YAML if in .yaml or .yml. `path` may be NULL. With `environment`, variables PACELINE_POOL_… win over the file. What
/// neither says stays as it is, so later files are loaded by later calls, and what is changed afterwards wins. Sections
/// of other configurations, which have functions like this, are checked too. Texts, here `pin` and `name`, are this
/// thread's, and lent until it loads the same setting again, or ends.
///
/// PACE_EINVAL: pace_last_error() tells all that is wrong, each with file or variable, key, value and what
/// is allowed; the configuration is as it was. PACE_EVERSION: pace_pool_config_init() was not called.
///
/// Threads: any. In handlers: yes; it reads a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_pool_config_load(
    config: InOut<pace_pool_config_t>,
    path: *const c_char,
    environment: bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        unsafe {
            load(config, path, environment, "config", |config, said| said_of(config, said.pool))
        }
    })
}

fn said_of(config: &mut pace_pool_config_t, pool: PoolSettings) {
    change(&mut config.threads, pool.threads);
    change(&mut config.max_joined, pool.max_joined);
    change(&mut config.leaders, pool.leaders);
    change(&mut config.lane_capacity, pool.lane_capacity);
    change(&mut config.strand_capacity, pool.strand_capacity);
    change(&mut config.max_handles, pool.max_handles);
    change(&mut config.stack_size, pool.stack_size);
    config.source = pool.source.map_or(config.source, |source| match source {
        SourceKind::Ring => PACE_SOURCE_RING,
        // A script cannot be said in settings.
        SourceKind::Epoll | SourceKind::Scripted(_) => PACE_SOURCE_EPOLL,
    });
    config.promotion = pool.promotion.map_or(config.promotion, |promotion| match promotion {
        Promotion::Deferred => PACE_PROMOTION_DEFERRED,
        Promotion::Eager => PACE_PROMOTION_EAGER,
    });
    change_time(&mut config.watch_period_ns, pool.watch_period);
    change_time(&mut config.spin_ns, pool.spin);
    change_time(&mut config.max_turn_ns, pool.max_turn);
    change(&mut config.pin_strict, pool.pin_strict);
    change_text(&mut config.pin, "pool.pin", pool.pin.map(|pin| pin.to_string()));
    change_text(&mut config.name, "pool.name", pool.name);
}

/// Lets only the first `threads` of the ordinary threads work; the others finish what they are at, and
/// park until more are wanted. Parked threads cost nothing. 1 to the number of ordinary threads; with more
/// than one handle set, at least one more than there are sets.
///
/// PACE_EINVAL names the range; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pool_set_active(pool: Option<&pace_pool_t>, threads: u32) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        Ok(pool.pool.set_active(threads as usize)?)
    })
}

/// Shuts the pool down: refuses new work from outside and lets everything that was accepted end, for up to
/// `drain_ns`. Then it cancels what has not begun, closes all handles, and ends the threads. It returns when all
/// handlers have returned, or 100 ms after the drain at the latest; threads that are still inside a handler then are
/// counted as stuck. Calling it again is harmless. `report` may be NULL.
///
/// Everything: servers stop accepting, answer the requests that they have taken, and close their connections, as by
/// pace_server_drain(); worker pools run their tasks, with the retries; hubs and rings deliver what was published; tasks
/// run. A retry, or a delayed task of a worker pool, that is due only after the drain is not waited for; nor is a one-shot
/// timer that is not due. A connection that is not through after the drain is cut off, and counted. Datagram sockets
/// stay open to the end, so that late answers can be sent.
///
/// A pool without threads is drained by the hosts that join it or wait at a completion queue. If none of them is left, the
/// calling thread runs what was accepted, in the time that `drain_ns` gives. It does not wait for what only a host could
/// end: an attempt that no host has taken, or one that was taken and is not completed.
///
/// Inside a handler it is only a request: it returns at once, and the pool shuts down when its
/// handlers have returned.
///
/// PACE_EVERSION: report->struct_size was not set.
///
/// Threads: any. In handlers: yes, as a request.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pool_shutdown(
    pool: Option<&pace_pool_t>,
    drain_ns: u64,
    report: InOut<pace_report_t>,
) -> pace_status_t {
    end(pool, drain_ns, report)
}

/// Shuts the pool down without a drain: what has not begun is cancelled. Otherwise as pace_pool_shutdown().
///
/// PACE_EVERSION: report->struct_size was not set.
///
/// Threads: any. In handlers: yes, as a request.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pool_stop_now(
    pool: Option<&pace_pool_t>,
    report: InOut<pace_report_t>,
) -> pace_status_t {
    end(pool, 0, report)
}

fn end(pool: Option<&pace_pool_t>, drain_ns: u64, report: InOut<pace_report_t>) -> pace_status_t {
    call(|| {
        let pool = usable(pool)?;
        let room = match report.is_null() {
            true => None,
            false => Some(report.room("report")?),
        };
        let report = pool.pool.shutdown(nanos(drain_ns));
        if let Some(room) = room {
            room.fill(pace_report_t {
                struct_size: 0,
                drained: report.drained,
                requested: report.requested,
                reserved: [0; 2],
                cancelled: report.cancelled,
                stuck: report.stuck.len() as u32,
                reserved2: 0,
                left: report.left,
                worker_tasks: report.worker_tasks,
                connections: report.connections,
            });
        }
        Ok(())
    })
}

/// Frees a pool. One that is still open is drained first, for up to 30 s, as by pace_pool_shutdown(): what was
/// accepted ends; of a pool without threads the calling thread runs it. For an end without a drain call
/// pace_pool_stop_now() before. It waits until all handlers
/// have returned; afterwards no callback runs any more, and every `drop` has run. NULL is a no-op.
/// Ids of its tasks, strands, handles and timers must not be used afterwards; rings, servers and
/// datagram sockets are freed by themselves, before or after.
///
/// Inside a handler of the pool it is a request: it returns at once, and the rest happens when the
/// last handler has returned. In a forked child it does nothing. Two pools that free each other, each
/// in a handler, wait for each other for ever.
///
/// Threads: any, as long as no other uses the pool any more; a call that posted the very task that
/// frees the pool may still be using it. In handlers: yes, as a request.
#[unsafe(no_mangle)]
pub extern "C" fn pace_pool_free(pool: Option<Box<pace_pool_t>>) {
    call_void(|| {
        let Ok(pool) = consumed(pool) else { return };
        let _ = pool.pool.end_with_owner();
        drop(pool);
    });
}

/// Until pace_confine(), programs (posix_spawn, system, popen) and threads (pthread_create) that the calling thread starts
/// inherit the signal mask and the CPUs of the thread that built the pool. Started by a thread of a pool without this, a program ignores
/// SIGTERM and Ctrl-C, and a thread may share its CPU. Signals of
/// pace_signals_new() are let through. Each call needs its pace_confine() before the handler returns, or the thread
/// gets signals of the program. Outside the pool it does nothing. A child of fork() needs none.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_unconfine() {
    call_void(|| core::mem::forget(Unconfined::begin()));
}

/// Ends what the last pace_unconfine() of the calling thread has begun. Without one it does nothing.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_confine() {
    call_void(end_unconfined);
}

/// Says "I am about to block": another thread of this thread's pool is called to lead and to take
/// over what this one has claimed. Outside of handlers it does nothing.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_promote_new_leader() -> pace_status_t {
    call(|| {
        crate::promote_new_leader();
        Ok(())
    })
}

impl Handle for pace_pool_t {
    const NAME: &'static str = "pool";

    fn is_forked(&self) -> bool {
        self.pool.shared().is_forked()
    }
}

/// The pool behind an argument, in the process that made it.
///
/// # Safety
///
/// It is NULL, or came from `pace_pool_new` and has not been freed.
#[inline]
pub(super) unsafe fn open<'a>(pool: *const pace_pool_t) -> Result<&'a pace_pool_t> {
    // SAFETY: as the caller promises.
    let pool = unsafe { boundary::borrow(pool, "pool") }?;
    if pool.pool.shared().is_forked() { Err(FORKED) } else { Ok(pool) }
}

const DEFAULTS: pace_pool_config_t = pace_pool_config_t {
    struct_size: size_of::<pace_pool_config_t>() as u32,
    threads: PACE_DEFAULT,
    max_joined: 4,
    leaders: PACE_DEFAULT,
    source: PACE_SOURCE_EPOLL,
    promotion: PACE_PROMOTION_DEFERRED,
    watch_period_ns: 200_000,
    spin_ns: 0,
    lane_capacity: 8192,
    strand_capacity: 1024,
    max_handles: 1 << 22,
    pin_strict: false,
    reserved: [0; 3],
    pin: ptr::null(),
    name: ptr::null(),
    stack_size: 0,
    on_start: None,
    on_stop: None,
    on_slow: None,
    slow_ns: 0,
    hook_data: ptr::null_mut(),
    hook_drop: None,
    reserve: [0; 4],
    ageing_ns: 0,
    log: ptr::null_mut(),
    max_turn_ns: 0,
};

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_pool_config_t {
    const FIRST: usize = 128;
    const NAME: &'static str = "pace_pool_config_t";
    const FLAGS: &'static [(&'static str, usize)] =
        &[("pin_strict", offset_of!(pace_pool_config_t, pin_strict))];
    const RESERVED: &'static [usize] = &{
        const FIRST: usize = offset_of!(pace_pool_config_t, reserved);
        [FIRST, FIRST + 1, FIRST + 2]
    };
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_report_t {
    const FIRST: usize = 24;
    const NAME: &'static str = "pace_report_t";
}

fn build(config: &pace_pool_config_t) -> Result<pace_pool_t> {
    let (hooks, builder) = hooks(config, settings(config)?);
    match builder.build() {
        Ok(pool) => {
            hooks.keep();
            Ok(own(pool, config.max_handles as usize))
        }
        Err(error) => {
            // Threads that had started have stopped: no hook is called any more.
            hooks.give_back();
            Err(error.into())
        }
    }
}

fn own(pool: Pool, limit: usize) -> pace_pool_t {
    let fork = pool.shared().fork_guard();
    let (tasks, strands) = (Registry::new(limit, fork), Registry::new(limit, fork));
    pace_pool_t { pool, tasks, strands, figures: Figures::default() }
}

fn settings(config: &pace_pool_config_t) -> Result<Builder> {
    let mut builder = Pool::builder()
        .max_joined(config.max_joined as usize)
        .source(match config.source {
            PACE_SOURCE_EPOLL => SourceKind::Epoll,
            PACE_SOURCE_RING => SourceKind::Ring,
            other => return Err(Failure::invalid("source", other, "0 or 1 (PACE_SOURCE_)")),
        })
        .promotion(match config.promotion {
            PACE_PROMOTION_DEFERRED => Promotion::Deferred,
            PACE_PROMOTION_EAGER => Promotion::Eager,
            other => return Err(Failure::invalid("promotion", other, "0 or 1 (PACE_PROMOTION_)")),
        })
        .watch_period(nanos(config.watch_period_ns))
        .spin(nanos(config.spin_ns))
        .lane_capacity(config.lane_capacity as usize)
        .strand_capacity(config.strand_capacity as usize)
        .max_handles(config.max_handles as usize)
        .pin_strict(config.pin_strict);
    if config.threads != PACE_DEFAULT {
        builder = builder.threads(config.threads as usize);
    }
    if config.leaders != PACE_DEFAULT {
        builder = builder.leaders(config.leaders as usize);
    }
    for (lane, &threads) in Lane::ALL.into_iter().zip(&config.reserve) {
        builder = builder.reserve(lane, threads as usize);
    }
    if config.max_turn_ns != 0 {
        builder = builder.max_turn(nanos(config.max_turn_ns));
    }
    match config.ageing_ns {
        0 => {}
        PACE_FOREVER => builder = builder.ageing(None),
        after => builder = builder.ageing(nanos(after)),
    }
    if config.stack_size != 0 {
        let bytes = usize::try_from(config.stack_size).unwrap_or(usize::MAX);
        builder = builder.stack_size(bytes);
    }
    if !config.pin.is_null() {
        // SAFETY: not NULL, and as the header demands.
        builder = builder.pin(unsafe { boundary::text(config.pin, "pin") }?.parse()?);
    }
    if !config.name.is_null() {
        // SAFETY: not NULL, and as the header demands.
        builder = builder.name(unsafe { boundary::text(config.name, "name") }?);
    }
    if !config.log.is_null() {
        // SAFETY: not NULL, and as the header demands.
        builder = builder.log(unsafe { log_of(config.log) }?);
    }
    Ok(builder)
}

fn hooks(config: &pace_pool_config_t, mut builder: Builder) -> (Registration, Builder) {
    let (registration, owner) = pair(config.hook_data, config.hook_drop);
    let owner = Arc::new(owner);
    let on_thread = |hook: unsafe extern "C" fn(*mut c_void, u32), owner: &Arc<Owner>| {
        let owner = Arc::clone(owner);
        move |thread: usize| {
            // SAFETY: as the header demands, the hook takes what came with it.
            unsafe { hook(owner.data(), thread as u32) }
        }
    };
    if let Some(hook) = config.on_start {
        builder = builder.on_start(on_thread(hook, &owner));
    }
    if let Some(hook) = config.on_stop {
        builder = builder.on_stop(on_thread(hook, &owner));
    }
    if let Some(hook) = config.on_slow {
        let owner = Arc::clone(&owner);
        builder = builder.on_slow(nanos(config.slow_ns), move |report| {
            let elapsed = u64::try_from(report.elapsed.as_nanos()).unwrap_or(u64::MAX);
            // SAFETY: as the header demands, the hook takes what came with it.
            unsafe { hook(owner.data(), report.thread as u32, elapsed, report.running) }
        });
    }
    // Without a hook the builder does not keep it, and `drop` runs when the pool has been built.
    (registration, builder)
}
