//! Durable tasks: a worker pool whose queue is a broker's.
//!
//! Without the feature `nats` no queue can be made, so that its functions have no body then.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]
#![cfg_attr(
    not(feature = "nats"),
    allow(dead_code, unused_imports, unused_variables, reason = "there is no queue then")
)]

use super::boundary::{
    Failure, Handle, Out, Result, Text, bytes as boundary_bytes, call, call_void, callback,
    consumed, nanos, optional_out, out, usable,
};
use super::bridge::{of_nats, pace_bridge_stats_t};
use super::bridge_options::{optional, pace_bridge_options_t};
use super::callback::pace_drop_fn;
use super::job::{pace_durable_fn, pace_job_t, pointer_of};
use super::message::{NOTHING, lend};
use super::owner::pair;
use super::retry::{pace_retry_t, retry_of};
use super::sized::{self, In, InOut};
use super::status::*;
use super::task::PACE_LANE_NORMAL;
use super::values::{PACE_FOREVER, pace_text_t};
use super::work::lane;
use super::work_stats::give;
use super::workers::pace_workers_t;
#[cfg(feature = "nats")]
use super::{bridge::stats_of, bridge_options::settings_of};
#[cfg(feature = "nats")]
use crate::bridge::tasks::{
    DeadTask, DurableBuilder, DurableQueue, DurableReport, DurableStatus, Job,
};
use crate::pool::Pool;
use crate::task::Fault;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A durable task has completed: its handler has succeeded.
pub const PACE_DURABLE_COMPLETED: u32 = 0;
/// The last attempt of a durable task has failed; it is a dead task.
pub const PACE_DURABLE_FAILED: u32 = 1;
/// A durable task was cancelled before it began.
pub const PACE_DURABLE_CANCELLED: u32 = 2;
/// The deadline of a durable task was over before an attempt succeeded.
pub const PACE_DURABLE_TIMED_OUT: u32 = 3;

/// A queue of tasks that outlive the process: a broker has them, and any process with a handler for a task's name runs it.
pub struct pace_durable_t {
    pool: Pool,
    /// Until it is open.
    #[cfg(feature = "nats")]
    builder: Mutex<Option<DurableBuilder>>,
    #[cfg(feature = "nats")]
    open: OnceLock<DurableQueue>,
}

/// How a durable task has ended, and with what; or a dead task.
pub struct pace_durable_report_t {
    pool: Pool,
    info: Info,
}

struct Info {
    status: u32,
    attempts: u32,
    number: u64,
    id: String,
    name: String,
    bytes: Vec<u8>,
    failure: Option<String>,
}

/// Settings of a queue of durable tasks. Call pace_durable_options_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_durable_options_t {
    /// The size of the struct in bytes, as pace_durable_options_init() sets it.
    pub struct_size: u32,
    /// How many tasks of each name and lane this process may have taken and not ended, up to 65536. More keep threads busy;
    /// fewer leave more to other processes. Default 0: twice the pool's threads.
    pub in_flight: u32,
    /// How long results are kept, in nanoseconds: 1 second to 100 years. Default 1 hour.
    pub results_ns: u64,
    /// After how long without a sign of life the broker gives a task to another process, in nanoseconds: 100 ms to 1 day.
    /// Default 30 s.
    pub ack_wait_ns: u64,
    /// How long a unique id is known, in nanoseconds, where this process makes the broker's streams. Default 2 minutes.
    pub window_ns: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_durable_options_t {
    const FIRST: usize = 32;
    const NAME: &'static str = "pace_durable_options_t";
}

const OPTIONS: pace_durable_options_t = pace_durable_options_t {
    struct_size: 0,
    in_flight: 0,
    results_ns: 3_600_000_000_000,
    ack_wait_ns: 30_000_000_000,
    window_ns: 120_000_000_000,
};

/// What a durable task is submitted with beside its name and arguments. Call pace_submission_init() first.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pace_submission_t {
    /// The size of the struct in bytes, as pace_submission_init() sets it.
    pub struct_size: u32,
    /// PACE_LANE_CRITICAL to PACE_LANE_LOW. Each lane is a stream of the broker, and workers run what they have taken in the
    /// order of lanes. Default PACE_LANE_NORMAL.
    pub lane: u32,
    /// How long it waits before its first attempt, in nanoseconds, by the clocks of submitter and worker. Default 0.
    pub delay_ns: u64,
    /// How long it may take from now on, in nanoseconds, by the clocks of submitter and worker. After that no attempt begins,
    /// and one that runs is told to end and has failed. Default PACE_FOREVER.
    pub deadline_ns: u64,
    /// How many attempts there may be, if those are fewer than the handler's retries allow. Default 0: as many as those.
    pub attempts: u32,
    /// Stores no result: nobody waits for its end. Default false.
    pub ignore_result: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 3],
    /// Submits it once: while the broker has one of this id in the same lane that was stored within the queue's window, it is
    /// that one. 1 to 200 bytes. Default NULL: each submission is a task of its own.
    pub unique: *const c_char,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_submission_t {
    const FIRST: usize = 40;
    const NAME: &'static str = "pace_submission_t";
    const FLAGS: &'static [(&'static str, usize)] = &[("ignore_result", 28)];
    const RESERVED: &'static [usize] = &[29, 30, 31];
}

const SUBMISSION: pace_submission_t = pace_submission_t {
    struct_size: 0,
    lane: PACE_LANE_NORMAL,
    delay_ns: 0,
    deadline_ns: PACE_FOREVER,
    attempts: 0,
    ignore_result: false,
    reserved: [0; 3],
    unique: ptr::null(),
};

/// The id of a durable task in its queue, for any process: text that ends with NUL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_durable_id_t {
    /// A letter for the lane, and 32 hexadecimal digits that nobody can guess.
    pub text: [c_char; 40],
}

/// How a durable task has ended, or a dead task. Set struct_size to sizeof the struct before the call. Its texts live as long
/// as the report.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_durable_info_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// PACE_DURABLE_COMPLETED, PACE_DURABLE_FAILED, PACE_DURABLE_CANCELLED or PACE_DURABLE_TIMED_OUT.
    pub status: u32,
    /// How many attempts were begun, in all processes together.
    pub attempts: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// Of a dead task: its number among the dead of its queue. Otherwise 0.
    pub number: u64,
    /// The id of the task, as pace_durable_submit() gave it.
    pub id: pace_text_t,
    /// Of a dead task: its name. Otherwise name.text is NULL.
    pub name: pace_text_t,
    /// What the handler has returned, if the task has completed; of a dead task, what it was submitted with. NULL if there
    /// are no bytes.
    pub bytes: *const c_void,
    /// The number of bytes at bytes.
    pub size: usize,
    /// What went wrong last; failure.text is NULL if the task has completed.
    pub failure: pace_text_t,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_durable_info_t {
    const FIRST: usize = 88;
    const NAME: &'static str = "pace_durable_info_t";
}

/// Fills in the defaults; `size` is sizeof *options.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_options_init(
    options: InOut<pace_durable_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, OPTIONS, "options"))
}

/// Fills in the defaults; `size` is sizeof *submission.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_submission_init(
    submission: InOut<pace_submission_t>,
    size: usize,
) -> pace_status_t {
    call(|| submission.init(size, SUBMISSION, "submission"))
}

/// Makes a queue of durable tasks, whose tasks a worker pool runs. Give it handlers by pace_durable_task() and
/// pace_durable_task_pulled(), and open it: pace_durable_open(). A process that only submits needs none. `broker` says how
/// the broker is reached; its name and its window are not regarded. `options` may be NULL. `name` has 1 to 182 bytes, that of a
/// task 1 to 200, both together up to 205, without blanks, control characters, and any of . * > / \ %.
///
/// PACE_EINVAL names the setting, its value and what would be right; PACE_EVERSION; PACE_EUNSUPPORTED in a library without
/// the feature `nats`.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_durable_new(
    workers: Option<&pace_workers_t>,
    name: Text,
    broker: In<pace_bridge_options_t>,
    options: In<pace_durable_options_t>,
    queue: Option<&mut MaybeUninit<*mut pace_durable_t>>,
) -> pace_status_t {
    call(|| {
        let workers = &usable(workers)?.workers;
        let name = name.get("name")?;
        let broker = broker.read("broker")?;
        let options = if options.is_null() { OPTIONS } else { options.read("options")? };
        let to = out(queue, "queue")?;
        of_nats!({
            let builder = workers
                .durable(name)
                // SAFETY: as the header demands.
                .nats(unsafe { settings_of(&broker) }?)
                .results_last(nanos(options.results_ns))
                .window(nanos(options.window_ns))
                .ack_wait(nanos(options.ack_wait_ns))
                .in_flight(options.in_flight as usize);
            to.set(Box::into_raw(Box::new(pace_durable_t {
                pool: workers.pool().clone(),
                builder: Mutex::new(Some(builder)),
                open: OnceLock::new(),
            })));
            Ok(())
        })
    })
}

/// Has the tasks of a name run by a function, on threads of the pool, several at once. `retry` may be NULL: ten attempts in
/// all, after half a second and then twice as long each time. `drop` runs when the queue is gone. A function that does not
/// return keeps its thread.
///
/// PACE_EINVAL if the queue is open already, and for a retry that makes no sense; a bad name is found by
/// pace_durable_open().
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_durable_task(
    queue: Option<&pace_durable_t>,
    name: Text,
    retry: Option<&pace_retry_t>,
    handler: pace_durable_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let name = name.get("name")?;
        let handler = callback(handler, "handler")?;
        let retry = match retry {
            Some(retry) => retry_of(retry, None)?,
            None => None,
        };
        of_nats!({
            let (registration, owner) = pair(user_data, drop);
            let pool = queue.pool.clone();
            let run = move |job: &Job<'_>| -> core::result::Result<Vec<u8>, Fault> {
                let Some(data) = owner.enter() else {
                    return Err(Fault::new("the queue has ended"));
                };
                let lend = |its: &pace_job_t| {
                    // SAFETY: as the header demands, the function takes what came with it; the job lives for the call.
                    unsafe { handler(data, ptr::from_ref(its).cast_mut()) }
                };
                pace_job_t::lent(&pool, job, lend)
            };
            queue.change(|builder| match retry {
                Some(retry) => builder.task_with(name, retry, run),
                None => builder.task(name, run),
            })?;
            registration.keep();
            Ok(())
        })
    })
}

/// Has the tasks of a name taken by the host, on threads of its own: pace_durable_take(). `retry` as with
/// pace_durable_task().
///
/// PACE_EINVAL if the queue is open already, and for a retry that makes no sense.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_task_pulled(
    queue: Option<&pace_durable_t>,
    name: Text,
    retry: Option<&pace_retry_t>,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let name = name.get("name")?;
        let retry = match retry {
            Some(retry) => retry_of(retry, None)?,
            None => None,
        };
        of_nats!({
            let retry = retry.unwrap_or_else(crate::bridge::tasks::usual_retry);
            queue.change(|builder| builder.task_pulled(name, retry))
        })
    })
}

/// Submits a task at times of the calendar, in the manner of cron, by UTC: "30 3 * * 1-5" is half past three from Monday to
/// Friday. All processes with a schedule of this label submit one task together for each time. What comes due while none of
/// them runs is not submitted later.
///
/// PACE_EINVAL if the queue is open already; a bad time or name is found by pace_durable_open().
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_durable_schedule(
    queue: Option<&pace_durable_t>,
    label: Text,
    when: Text,
    task: Text,
    arguments: *const c_void,
    size: usize,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let (label, when) = (label.get("label")?, when.get("when")?);
        let task = task.get("task")?;
        // SAFETY: as the header demands.
        let arguments = unsafe { boundary_bytes(arguments, size, 1, "arguments") }?;
        of_nats!({ queue.change(|builder| builder.schedule(label, when, task, arguments)) })
    })
}

/// Opens a queue, and begins to connect, on a thread of its own. It does not wait for the broker, which may come later. If it
/// fails, the queue is of no use any more but to be freed.
///
/// PACE_EINVAL names the name, setting or schedule, its value and what would be right, also if the queue is open already;
/// PACE_EOS if a thread cannot be created; PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_open(queue: Option<&pace_durable_t>) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        of_nats!({
            let builder = queue.builder().take().ok_or(OPEN)?;
            let made = builder.open()?;
            queue.open.get_or_init(|| made);
            Ok(())
        })
    })
}

/// Waits until a queue is connected to its broker, for up to `timeout_ns`. Nothing needs that.
///
/// PACE_ETIMEDOUT: pace_last_error() says why, if that is known. PACE_ESHUTDOWN if the queue has ended; PACE_EINVAL before it
/// is open.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_wait_connected(
    queue: Option<&pace_durable_t>,
    timeout_ns: u64,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        of_nats!({ Ok(queue.open()?.wait_connected(nanos(timeout_ns))?) })
    })
}

/// Submits a task of this name, and waits for up to `timeout_ns` until the broker has stored it: then it is accepted, and *id
/// is its id. `submission` may be NULL. *duplicate, if not NULL, says whether the broker had it already, by its unique id.
///
/// PACE_ETIMEDOUT: it is not stored yet, and will be when the broker takes it: pace_last_error() says what stands in the way,
/// if that is known. PACE_EINVAL for a bad name or setting, or if the stream refuses it; PACE_EFULL: too many wait to be
/// stored; PACE_EVERSION, PACE_ESHUTDOWN; PACE_EINVAL before it is open.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_durable_submit(
    queue: Option<&pace_durable_t>,
    name: Text,
    submission: In<pace_submission_t>,
    arguments: *const c_void,
    size: usize,
    timeout_ns: u64,
    id: Option<&mut MaybeUninit<pace_durable_id_t>>,
    duplicate: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let name = name.get("name")?;
        let submission =
            if submission.is_null() { SUBMISSION } else { submission.read("submission")? };
        let lane = lane(submission.lane)?;
        // SAFETY: as the header demands.
        let unique = unsafe { optional(submission.unique, "unique") }?;
        // SAFETY: as the header demands.
        let arguments = unsafe { boundary_bytes(arguments, size, 1, "arguments") }?;
        let (id, duplicate) = (out(id, "id")?, optional_out(duplicate));
        of_nats!({
            let mut task = queue
                .open()?
                .task(name)
                .arguments(arguments)
                .lane(lane)
                .delay(nanos(submission.delay_ns))
                .timeout(nanos(timeout_ns));
            if submission.deadline_ns != PACE_FOREVER {
                task = task.deadline(nanos(submission.deadline_ns));
            }
            if submission.attempts > 0 {
                task = task.attempts(submission.attempts);
            }
            if let Some(unique) = unique {
                task = task.unique(unique);
            }
            if submission.ignore_result {
                task = task.ignore_result();
            }
            let task = task.submit()?;
            give_id(task.id(), id);
            duplicate.set(task.is_duplicate());
            Ok(())
        })
    })
}

/// Waits until the task of this id has ended, for up to `timeout_ns`, also if another process has submitted it: *report,
/// which is to be freed. With 0 it answers what has come to this process, and does not ask the broker.
///
/// PACE_ETIMEDOUT, with what is known of the reason, also if it was submitted without a result, if the result is older than results are kept, and if there is
/// no such task; PACE_EINVAL for what is no id, and before the queue is open.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_wait(
    queue: Option<&pace_durable_t>,
    id: Text,
    timeout_ns: u64,
    report: Option<&mut MaybeUninit<*mut pace_durable_report_t>>,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let id = id.get("id")?;
        let to = out(report, "report")?;
        of_nats!({
            let report = queue.open()?.find(id)?.wait(nanos(timeout_ns))?;
            queue.give(report.into(), to);
            Ok(())
        })
    })
}

/// Has a task not begin. *cancelled: true: it has not begun, and will not, and its result is PACE_DURABLE_CANCELLED; false:
/// an attempt of it has begun, or it has ended, or there is none of this id. Workers are asked first, then it is deleted at
/// the broker, so it takes up to a second.
///
/// PACE_ETIMEDOUT: neither a worker nor the broker has answered, so that it may run. PACE_ESHUTDOWN; PACE_EINVAL for what is
/// no id, and before the queue is open.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_cancel(
    queue: Option<&pace_durable_t>,
    id: Text,
    cancelled: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let id = id.get("id")?;
        let to = optional_out(cancelled);
        of_nats!({
            to.set(queue.open()?.cancel(id)?);
            Ok(())
        })
    })
}

/// Takes the next task of the names that the host runs itself, that of the most urgent lane, and begins it; waits for it for
/// up to `timeout_ns`. End *job by pace_job_complete(), pace_job_fail() or pace_job_free(). Several threads may take.
///
/// PACE_ETIMEDOUT; PACE_ESHUTDOWN when the queue has ended; PACE_EINVAL before it is open.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_take(
    queue: Option<&pace_durable_t>,
    timeout_ns: u64,
    job: Option<&mut MaybeUninit<*mut pace_job_t>>,
) -> pace_status_t {
    take(queue, timeout_ns, job, true)
}

/// As pace_durable_take(), for a host whose tasks wait before they are run: pace_job_begin() begins *job. Until then the task
/// can be cancelled, pace_durable_close() gives it back, and if the process ends it has had no attempt.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_take_waiting(
    queue: Option<&pace_durable_t>,
    timeout_ns: u64,
    job: Option<&mut MaybeUninit<*mut pace_job_t>>,
) -> pace_status_t {
    take(queue, timeout_ns, job, false)
}

fn take(
    queue: Option<&pace_durable_t>,
    timeout_ns: u64,
    job: Option<&mut MaybeUninit<*mut pace_job_t>>,
    begins: bool,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let to = out(job, "job")?;
        of_nats!({
            let (open, timeout) = (queue.open()?, nanos(timeout_ns));
            let mut taken = match begins {
                true => open.take(1, timeout)?,
                false => open.take_waiting(1, timeout)?,
            };
            let open = taken.pop().ok_or(crate::Error::TimedOut)?;
            to.set(Box::into_raw(Box::new(pace_job_t::taken(&queue.pool, open))));
            Ok(())
        })
    })
}

/// The first task that has failed for good whose number is `from` or more: *report, which is to be freed.
///
/// PACE_ESTALE: there is none. PACE_ETIMEDOUT: the broker does not answer. PACE_ESHUTDOWN; PACE_EINVAL before the queue is
/// open.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_dead(
    queue: Option<&pace_durable_t>,
    from: u64,
    report: Option<&mut MaybeUninit<*mut pace_durable_report_t>>,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let to = out(report, "report")?;
        of_nats!({
            let dead = queue.open()?.dead(from, 1)?.pop();
            let dead = dead.ok_or(crate::Error::Stale { what: "dead task" })?;
            queue.give(dead.into(), to);
            Ok(())
        })
    })
}

/// Submits a task that has failed for good once more, as a new one, and forgets the dead one, unless the broker is away by
/// then. *id is that of the new one.
///
/// PACE_ESTALE: there is none of this number; as pace_durable_dead() and pace_durable_submit().
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_resubmit(
    queue: Option<&pace_durable_t>,
    number: u64,
    id: Option<&mut MaybeUninit<pace_durable_id_t>>,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let id = optional_out(id);
        of_nats!({
            give_id(queue.open()?.resubmit(number)?.id(), id);
            Ok(())
        })
    })
}

/// Forgets a task that has failed for good.
///
/// PACE_ESTALE: there is none of this number; as pace_durable_dead().
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_forget(
    queue: Option<&pace_durable_t>,
    number: u64,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        of_nats!({ Ok(queue.open()?.forget(number)?) })
    })
}

/// What a report says.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_report_info(
    report: Option<&pace_durable_report_t>,
    info: InOut<pace_durable_info_t>,
) -> pace_status_t {
    call(|| {
        let Info { status, attempts, number, id, name, bytes, failure } = &usable(report)?.info;
        info.room("info")?.fill(pace_durable_info_t {
            struct_size: 0,
            status: *status,
            attempts: *attempts,
            reserved: 0,
            number: *number,
            id: lend(id),
            name: if name.is_empty() { NOTHING } else { lend(name) },
            bytes: pointer_of(bytes),
            size: bytes.len(),
            failure: failure.as_deref().map_or(NOTHING, lend),
        });
        Ok(())
    })
}

/// Frees a report. NULL is a no-op, and in a forked child nothing is freed.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_report_free(report: Option<Box<pace_durable_report_t>>) {
    call_void(|| drop(consumed(report)));
}

/// How the connection of a queue is, and what it has carried: tasks out are exports, tasks in are imports.
///
/// PACE_EINVAL before it is open; PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_stats(
    queue: Option<&pace_durable_t>,
    stats: InOut<pace_bridge_stats_t>,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let room = stats.room("stats")?;
        of_nats!({
            room.fill(stats_of(&queue.open()?.stats()));
            Ok(())
        })
    })
}

/// Why nothing of a queue is stored or comes: it is not connected, or what the broker has refused last; nothing if all is well.
/// Otherwise as pace_bridge_server().
///
/// PACE_EFULL; PACE_EINVAL before it is open.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_durable_reason(
    queue: Option<&pace_durable_t>,
    text: *mut c_char,
    size: usize,
    needed: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let needed = out(needed, "needed")?;
        of_nats!({
            let reason = queue.open()?.reason().unwrap_or_default();
            // SAFETY: as the header demands.
            unsafe { give(&reason, text, size, needed) }
        })
    })
}

/// Ends a queue: it takes no more tasks, gives back those that have not begun, and waits until the others have ended, for up
/// to `timeout_ns`. What has not ended then is run again elsewhere, or later. *left, if not NULL, says how many submissions,
/// results and dead tasks were not stored.
///
/// PACE_EINVAL before it is open.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_close(
    queue: Option<&pace_durable_t>,
    timeout_ns: u64,
    left: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let to = optional_out(left);
        of_nats!({
            to.set(queue.open()?.close(nanos(timeout_ns)));
            Ok(())
        })
    })
}

/// Frees a queue, and ends it if it is open, which takes up to 2 seconds if something waits. NULL is a no-op, and in a forked
/// child nothing is freed.
///
/// Threads: any, as long as no other uses it any more. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_durable_free(queue: Option<Box<pace_durable_t>>) {
    call_void(|| drop(consumed(queue)));
}

const OPEN: Failure = Failure::plain(PACE_EINVAL, c"the queue is open already");
const NOT_OPEN: Failure = Failure::plain(PACE_EINVAL, c"the queue is not open");

impl Handle for pace_durable_t {
    const NAME: &'static str = "queue";

    fn is_forked(&self) -> bool {
        self.pool.shared().is_forked()
    }
}

impl Handle for pace_durable_report_t {
    const NAME: &'static str = "report";

    fn is_forked(&self) -> bool {
        self.pool.shared().is_forked()
    }
}

#[cfg(feature = "nats")]
impl pace_durable_t {
    fn open(&self) -> Result<&DurableQueue> {
        self.open.get().ok_or(NOT_OPEN)
    }

    fn builder(&self) -> MutexGuard<'_, Option<DurableBuilder>> {
        self.builder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(DurableBuilder) -> DurableBuilder) -> Result {
        let mut builder = self.builder();
        *builder = Some(change(builder.take().ok_or(OPEN)?));
        Ok(())
    }

    fn give(&self, info: Info, to: Out<'_, *mut pace_durable_report_t>) {
        to.set(Box::into_raw(Box::new(pace_durable_report_t { pool: self.pool.clone(), info })));
    }
}

#[cfg(feature = "nats")]
impl From<DurableReport> for Info {
    fn from(report: DurableReport) -> Self {
        let status = match report.status {
            DurableStatus::Completed => PACE_DURABLE_COMPLETED,
            DurableStatus::Cancelled => PACE_DURABLE_CANCELLED,
            DurableStatus::TimedOut => PACE_DURABLE_TIMED_OUT,
            DurableStatus::Failed => PACE_DURABLE_FAILED,
        };
        Self {
            status,
            attempts: report.attempts,
            number: 0,
            id: report.id,
            name: String::new(),
            bytes: report.value,
            failure: report.failure,
        }
    }
}

#[cfg(feature = "nats")]
impl From<DeadTask> for Info {
    fn from(dead: DeadTask) -> Self {
        Self {
            status: PACE_DURABLE_FAILED,
            attempts: dead.attempts,
            number: dead.number,
            id: dead.id,
            name: dead.name,
            bytes: dead.arguments,
            failure: Some(dead.failure),
        }
    }
}

fn give_id(id: &str, to: Out<'_, pace_durable_id_t>) {
    let mut text = [0; 40];
    for (place, byte) in text[..39].iter_mut().zip(id.bytes()) {
        *place = byte as c_char;
    }
    to.set(pace_durable_id_t { text });
}
