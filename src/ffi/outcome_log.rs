//! The log of outcomes: what became of tasks, to a callback and to a file that is rotated.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, FORKED, Out, Result, call, call_void, nanos};
use super::callback::pace_drop_fn;
use super::owner::pair;
use super::settings::layers;
use super::sized::{self, Room};
use super::stats::PACE_NONE;
use super::status::*;
use super::task_status::{PACE_TASK_RETRYING, PACE_TASK_RUNNING, number_of};
use crate::Error;
use crate::admin::{Outcome, OutcomeEvent, OutcomeLog};
use crate::sys::fork::ForkGuard;
use core::cell::RefCell;
use core::ffi::{c_char, c_void};
use core::ptr;
use core::time::Duration;
use std::ffi::CString;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// A task has ended.
pub const PACE_OUTCOME_END: u32 = 0;
/// An attempt has failed, and another one comes.
pub const PACE_OUTCOME_RETRY: u32 = 1;
/// An attempt has not returned though its time is over.
pub const PACE_OUTCOME_STUCK: u32 = 2;

/// Something that happened to a task.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_outcome_t {
    /// PACE_OUTCOME_.
    pub event: u32,
    /// How it stands: PACE_TASK_.
    pub status: u32,
    /// When, since 1970 (UTC).
    pub time_ns: u64,
    /// The task's number, as in its report.
    pub id: u64,
    /// The name of its task type.
    pub name: *const c_char,
    /// What went wrong last; empty if nothing did.
    pub message: *const c_char,
    /// END: from its submission to its first attempt.
    pub queue_time_ns: u64,
    /// END: what its attempts took together. STUCK: how long this one has run.
    pub run_time_ns: u64,
    /// RETRY: when the next attempt comes.
    pub delay_ns: u64,
    /// END: how many there were. RETRY: the number of the one that failed.
    pub attempts: u32,
    /// The thread of the last one, or PACE_NONE.
    pub worker: u32,
}

/// Called for each outcome, on the log's own thread. What it points to is good during the call.
pub type pace_outcome_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, outcome: *const pace_outcome_t)>;

/// Settings of a log of outcomes. Call pace_outcome_log_config_init(), change what you like, call
/// pace_outcome_log_new().
#[repr(C)]
pub struct pace_outcome_log_config_t {
    /// Set by pace_outcome_log_config_init().
    pub struct_size: u32,
    /// How many outcomes may wait to be told, 1 to 2^20. Default 8192. What comes while so many wait is
    /// dropped, and counted.
    pub capacity: u32,
    /// The file that lines of JSON are appended to: UTF-8, and copied. NULL (default): none. Several logs may write
    /// one file, and it may be a device, as pace_log_config_t.file.
    pub file: *const c_char,
    /// How large the file may become, 1 KiB to 1 TiB; then it is renamed to file.1, that to file.2, and so
    /// on. Default 64 MiB.
    pub max_size: u64,
    /// How many files are kept, the one that is written included: 1 to 1000. Default 4.
    pub files: u32,
    /// Zero.
    pub reserved: u32,
    /// Told of each outcome. NULL (default): nobody is.
    pub on_outcome: pace_outcome_fn,
    /// What it is given.
    pub user_data: *mut c_void,
    /// Runs once after the last call. NULL: nothing.
    pub drop: pace_drop_fn,
}

/// What a log of outcomes has done. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_outcome_log_stats_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Outcomes that its thread has taken.
    pub told: u64,
    /// Outcomes that found no room.
    pub dropped: u64,
    /// Lines that could not be written.
    pub errors: u64,
    /// The last of these errors, or NULL. Good until this thread asks again, or ends.
    pub last_error: *const c_char,
}

/// A log of outcomes: a thread of its own, which is created with it.
pub struct pace_outcome_log_t {
    log: Arc<OutcomeLog>,
    fork: ForkGuard,
}

/// Fills a configuration with the defaults. `size` is sizeof *config.
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_outcome_log_config_init(
    config: *mut pace_outcome_log_config_t,
    size: usize,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { sized::init(config, size, DEFAULTS, "config") })
}

/// Changes a configuration to what the section `outcomes` of a file of settings says, as
/// pace_workers_config_load() does. The text of `file` is good until this thread loads another, or ends.
///
/// As there.
///
/// Threads: any. In handlers: yes; it reads a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_outcome_log_config_load(
    config: *mut pace_outcome_log_config_t,
    path: *const c_char,
    environment: bool,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let mut changed = unsafe { sized::read(config, "config") }?;
        // SAFETY: as the header demands.
        let log = unsafe { layers(path, environment) }?.outcomes;
        if let Some(file) = log.file {
            let file = CString::new(file).unwrap_or_default();
            let kept = FILE.try_with(|place| {
                place.replace(file);
                place.borrow().as_ptr()
            });
            changed.file = kept.unwrap_or(ptr::null());
        }
        changed.max_size = log.max_size.map_or(changed.max_size, |bytes| bytes as u64);
        changed.files = log.files.map_or(changed.files, |files| files as u32);
        changed.capacity = log.capacity.map_or(changed.capacity, |outcomes| outcomes as u32);
        let size = changed.struct_size as usize;
        // SAFETY: as the header demands.
        unsafe { sized::init(config, size, changed, "config") }
    })
}

/// Starts a log of outcomes. A `config` of NULL means the defaults. Give it to worker pools as
/// pace_workers_config_t.outcome_log; they keep it. That its file cannot be opened is no error: it is tried
/// again for each line, and counted.
///
/// PACE_EINVAL names the field, its value and the allowed range; PACE_EVERSION; PACE_EOS if the thread
/// cannot be created.
///
/// Threads: any. In handlers: yes; it creates a thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_outcome_log_new(
    config: *const pace_outcome_log_config_t,
    log: *mut *mut pace_outcome_log_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let to = unsafe { Out::new(log, "log") }?;
        let config = match config.is_null() {
            true => DEFAULTS,
            // SAFETY: not NULL, and as the header demands.
            false => unsafe { sized::read(config, "config") }?,
        };
        let fork = ForkGuard::new().map_err(|e| Error::os("map a page that tells of a fork", e))?;
        let max_size = usize::try_from(config.max_size).unwrap_or(usize::MAX);
        let mut builder = OutcomeLog::builder()
            .facade(false)
            .max_size(max_size)
            .files(config.files as usize)
            .capacity(config.capacity as usize);
        if !config.file.is_null() {
            // SAFETY: not NULL, and as the header demands.
            builder = builder.file(unsafe { boundary::text(config.file, "file") }?);
        }
        let (registration, owner) = pair(config.user_data, config.drop);
        if let Some(on_outcome) = config.on_outcome {
            builder = builder.callback(move |outcome| {
                // SAFETY: as the header demands, the function takes what came with it.
                with_data(outcome, |data| unsafe { on_outcome(owner.data(), data) });
            });
        }
        match builder.build() {
            Ok(log) => {
                registration.keep();
                to.set(Box::into_raw(Box::new(pace_outcome_log_t { log, fork })));
                Ok(())
            }
            Err(error) => {
                // There is no thread that could have called it.
                registration.give_back();
                Err(error.into())
            }
        }
    })
}

/// Waits for up to `timeout_ns` until everything that happened before was told and written.
///
/// PACE_ETIMEDOUT; PACE_EDEADLOCK inside its own callback.
///
/// Threads: any but the log's. In handlers: it holds one up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_outcome_log_flush(
    log: *mut pace_outcome_log_t,
    timeout_ns: u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let log = unsafe { open(log) }?;
        Ok(log.log.flush(nanos(timeout_ns))?)
    })
}

/// What a log has done so far.
///
/// PACE_EVERSION: struct_size was not set.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_outcome_log_stats(
    log: *mut pace_outcome_log_t,
    stats: *mut pace_outcome_log_stats_t,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let log = unsafe { open(log) }?;
        // SAFETY: as the header demands.
        let room = unsafe { Room::new(stats, "stats") }?;
        let stats = log.log.stats();
        let last_error = stats.last_error.map_or(ptr::null(), |text| {
            let kept = ERROR.try_with(|place| {
                place.replace(as_c(&text));
                place.borrow().as_ptr()
            });
            kept.unwrap_or(c"".as_ptr())
        });
        room.fill(pace_outcome_log_stats_t {
            struct_size: 0,
            reserved: 0,
            told: stats.told,
            dropped: stats.dropped,
            errors: stats.errors,
            last_error,
        });
        Ok(())
    })
}

/// Frees a log. When the last worker pool that uses it is gone too, its thread tells what waits, and ends. With
/// on_outcome whoever frees the last of these waits until `drop` has run. NULL: nothing.
///
/// Threads: any, as long as no other uses it any more. In handlers, and on threads of a pool or of the log: yes, it never
/// waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_outcome_log_free(log: *mut pace_outcome_log_t) {
    call_void(|| {
        // SAFETY: as the header demands, it came from `pace_outcome_log_new` and is used by nobody else.
        if unsafe { open(log) }.is_ok() {
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(log) });
        }
    });
}

/// The log of a worker pool to be.
///
/// # Safety
///
/// It is NULL, or came from `pace_outcome_log_new` and has not been freed.
pub(super) unsafe fn observer(log: *const pace_outcome_log_t) -> Result<Arc<OutcomeLog>> {
    // SAFETY: as the caller promises.
    Ok(Arc::clone(&unsafe { open(log) }?.log))
}

/// # Safety
///
/// As above.
unsafe fn open<'a>(log: *const pace_outcome_log_t) -> Result<&'a pace_outcome_log_t> {
    // SAFETY: as the caller promises.
    let log = unsafe { boundary::borrow(log, "log") }?;
    if log.fork.is_child() { Err(FORKED) } else { Ok(log) }
}

thread_local! {
    /// The path of the configuration that was loaded last, on this thread.
    static FILE: RefCell<CString> = RefCell::default();
    /// What the last statistics said went wrong.
    static ERROR: RefCell<CString> = RefCell::default();
}

fn with_data(outcome: &Outcome, user: impl FnOnce(&pace_outcome_t)) {
    let (name, message) = (as_c(&outcome.name), as_c(&outcome.message));
    let time = outcome.time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let worker_of = |worker: Option<usize>| worker.map_or(PACE_NONE, |worker| worker as u32);
    let mut data = pace_outcome_t {
        event: PACE_OUTCOME_END,
        status: 0,
        time_ns: count(time),
        id: outcome.id,
        name: name.as_ptr(),
        message: message.as_ptr(),
        queue_time_ns: 0,
        run_time_ns: 0,
        delay_ns: 0,
        attempts: 0,
        worker: PACE_NONE,
    };
    match outcome.event {
        OutcomeEvent::End { status, queue_time, run_time, attempts, worker } => {
            data.status = number_of(status);
            (data.queue_time_ns, data.run_time_ns) = (count(queue_time), count(run_time));
            (data.attempts, data.worker) = (attempts, worker_of(worker));
        }
        OutcomeEvent::Retry { attempt, delay } => {
            data.event = PACE_OUTCOME_RETRY;
            data.status = PACE_TASK_RETRYING;
            (data.attempts, data.delay_ns) = (attempt, count(delay));
        }
        OutcomeEvent::Stuck { worker, elapsed } => {
            data.event = PACE_OUTCOME_STUCK;
            data.status = PACE_TASK_RUNNING;
            (data.worker, data.run_time_ns) = (worker_of(worker), count(elapsed));
        }
    }
    user(&data);
}

fn as_c(text: &str) -> CString {
    let mut text = text.as_bytes().to_vec();
    text.retain(|&byte| byte != 0);
    CString::new(text).unwrap_or_default()
}

fn count(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

const DEFAULTS: pace_outcome_log_config_t = pace_outcome_log_config_t {
    struct_size: size_of::<pace_outcome_log_config_t>() as u32,
    capacity: 8192,
    file: ptr::null(),
    max_size: 64 << 20,
    files: 4,
    reserved: 0,
    on_outcome: None,
    user_data: ptr::null_mut(),
    drop: None,
};

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_outcome_log_config_t {
    const FIRST: usize = 56;
    const NAME: &'static str = "pace_outcome_log_config_t";
    const RESERVED: &'static [usize] = &{
        const FIRST: usize = core::mem::offset_of!(pace_outcome_log_config_t, reserved);
        [FIRST, FIRST + 1, FIRST + 2, FIRST + 3]
    };
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_outcome_log_stats_t {
    const FIRST: usize = 40;
    const NAME: &'static str = "pace_outcome_log_stats_t";
}
