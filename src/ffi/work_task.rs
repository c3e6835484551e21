//! Tasks of a worker pool.
//!
//! Ids are those of a registry, with a bit that tells them from those of a pool's own tasks.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::attempt::{Work, pace_attempt_fn, pace_attempt_work_t};
use super::boundary::{
    self, Failure, Out, Result, TIMED_OUT, call, nanos, optional_out, out, usable,
};
use super::callback::{pace_drop_fn, pace_task_t};
use super::owner::pair;
use super::retry::{pace_retry_t, retry_of};
use super::sized::{self, InOut};
use super::status::*;
use super::task_status::number_of;
use super::task_type::{PACE_OVERLOAD_DEFAULT, full_of, pace_task_type_t};
use super::values::{PACE_DEFAULT, PACE_FOREVER, PACE_NONE};
use super::work::lane as priority;
use super::workers::pace_workers_t;
use crate::Rejected;
use crate::task::{Known, OverloadPolicy, TaskBuilder, TaskHandle, TaskReport};
use core::cell::RefCell;
use core::ffi::{c_char, c_void};
use core::mem::{MaybeUninit, forget, offset_of};
use core::ptr;
use core::time::Duration;
use std::ffi::CString;

/// What one task, or all of a batch, have in place of their task type's settings. Call
/// pace_task_options_init(), and change what you like.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_task_options_t {
    /// The size of the struct in bytes, as pace_task_options_init() sets it.
    pub struct_size: u32,
    /// PACE_LANE_. PACE_DEFAULT: the task type's.
    pub lane: u32,
    /// When the task is tried again after a failure. PACE_RETRY_DEFAULT (default): as its task type says.
    pub retry: pace_retry_t,
    /// How long each attempt may take. 0: as the task type has it; PACE_FOREVER: no limit. So for the next two.
    pub timeout_ns: u64,
    /// How long it may wait for its first attempt.
    pub queue_timeout_ns: u64,
    /// How long it may take in all, from now to its end.
    pub deadline_ns: u64,
    /// Not before so long from now; up to 100 ms later while all `max_handles` of the pool are in use. More than 100
    /// years are taken as 100 years. Its limits begin when it is due.
    pub delay_ns: u64,
    /// If `keyed`: of the tasks of a worker pool with equal keys one runs at a time, in the order of their
    /// submission.
    pub key: u64,
    /// Whether the task has a key, in `key`. Default false.
    pub keyed: bool,
    /// Room for later versions; zero.
    pub reserved: [u8; 7],
    /// How long each attempt may take before it is asked to give up. 0: as the task type has it; PACE_FOREVER:
    /// no limit.
    pub soft_timeout_ns: u64,
    /// How long an attempt whose time is over may take to return. 0: as the task type has it.
    pub grace_ns: u64,
    /// PACE_OVERLOAD_. Not for tasks without a function.
    pub full: u32,
    /// Room for later versions; zero.
    pub reserved2: u32,
    /// For PACE_OVERLOAD_WAIT: for how long. PACE_FOREVER: as long as it takes.
    pub full_wait_ns: u64,
}

/// How a task ended. Set struct_size to sizeof the struct before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_task_report_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// How the task has ended: PACE_TASK_COMPLETED or a greater PACE_TASK_ number.
    pub status: u32,
    /// The task's number, which no other task of this process has or had.
    pub id: u64,
    /// The name of its task type. Static.
    pub name: *const c_char,
    /// What went wrong last; NULL if it has completed. Good until this thread gets another report, or
    /// ends.
    pub message: *const c_char,
    /// What the last attempt reported; PACE_EFAILED if none did, 0 if it has completed.
    pub outcome: i32,
    /// How many attempts were begun.
    pub attempts: u32,
    /// From its submission, or from when it was due, to the first attempt; or to its end without one.
    pub queue_time_ns: u64,
    /// What its attempts took together.
    pub run_time_ns: u64,
    /// The thread that ran the last attempt, as `worker` of pace_workers_worker_stats(). PACE_NONE: none of the pool's did.
    pub worker: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
}

/// Called when a task has ended, with PACE_TASK_.
pub type pace_task_ended_fn = Option<unsafe extern "C" fn(user_data: *mut c_void, status: u32)>;

/// Fills options with the defaults. `size` is sizeof *options.
///
/// PACE_EVERSION if `size` is no size of this struct.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_task_options_init(
    options: InOut<pace_task_options_t>,
    size: usize,
) -> pace_status_t {
    call(|| options.init(size, DEFAULTS, "options"))
}

/// Submits a task of a task type. `options` may be NULL. `task` may be NULL: then the task has no id, and
/// nobody learns its outcome but the statistics. An id is given back by pace_workers_wait() or
/// pace_workers_detach(). From outside the pool's threads it waits while the lane is full; inside a handler
/// it never waits.
///
/// PACE_EFULL (inside; or all ids are in use; or too many wait for their key, their rate or their time),
/// PACE_ESHUTDOWN, PACE_EINVAL, PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_submit(
    workers: Option<&pace_workers_t>,
    task_type: Option<&pace_task_type_t>,
    run: pace_attempt_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    options: *const pace_task_options_t,
    task: Option<&mut MaybeUninit<pace_task_t>>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let task_type = usable(task_type)?;
        // SAFETY: as the header demands.
        let options = unsafe { options_of(options) }?;
        let set = Settings::new(options.as_ref())?;
        let is_wanted = task.is_some();
        let to = optional_out(task);
        let work = Work::new(run, user_data, drop)?;
        let submitted = submit(workers, is_wanted, || submit_one(task_type, &set, work))?;
        to.set(submitted);
        Ok(())
    })
}

/// Submits `count` tasks of a task type, in order, with the same options, up to 32 by one atomic step (one after
/// the other if they have a key or a delay, if the oldest is to be dropped for them, or if the task type overlaps
/// retries). `tasks` is NULL or has room for
/// `count` ids. *accepted says how many were taken, also for PACE_EFULL and PACE_ESHUTDOWN: of the others
/// user_data is still the caller's.
///
/// As pace_workers_submit(); PACE_EINVAL, with none taken and *accepted unchanged, if any of them has no
/// `run`.
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_submit_batch(
    workers: Option<&pace_workers_t>,
    task_type: Option<&pace_task_type_t>,
    work: *const pace_attempt_work_t,
    count: usize,
    options: *const pace_task_options_t,
    tasks: *mut pace_task_t,
    accepted: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let task_type = usable(task_type)?;
        // SAFETY: as the header demands.
        let options = unsafe { options_of(options) }?;
        let set = Settings::new(options.as_ref())?;
        // SAFETY: as the header demands.
        let work = unsafe { boundary::array(work, count, "work") }?;
        if let Some(index) = work.iter().position(|one| one.run.is_none()) {
            return Err(Failure::told(PACE_EINVAL, format!("work[{index}].run is NULL")));
        }
        // SAFETY: as the header demands.
        let ids = unsafe { Ids::new(tasks) }?;
        let accepted = out(accepted, "accepted")?;
        if !task_type.task_type.overlaps_retries() {
            return submit_many(workers, task_type, &set, work, &ids, accepted);
        }
        // Each has attempts that share its work.
        let submit_next = |index: usize| {
            let one = work[index];
            let work = Work::new(one.run, one.user_data, one.drop)?;
            submit(workers, ids.are_wanted(), || submit_one(task_type, &set, work))
        };
        ids.fill(count, accepted, submit_next)
    })
}

/// Waits for up to `timeout_ns` until a task has ended, and says how. `report` may be NULL. One thread at a
/// time may wait for a task. PACE_OK gives the id back; its `drop` may run a little later. In a pool without threads
/// the caller takes part meanwhile, as in pace_pool_join().
///
/// The others do not give it back: PACE_ETIMEDOUT, PACE_EBUSY (another thread waits), PACE_EDEADLOCK (on
/// a thread of the pool, when all others wait already), PACE_ESTALE, PACE_EVERSION.
///
/// Threads: any. In handlers: yes; it hands leadership on before it waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_workers_wait(
    workers: Option<&pace_workers_t>,
    task: pace_task_t,
    timeout_ns: u64,
    report: InOut<pace_task_report_t>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let room = match report.is_null() {
            true => None,
            false => Some(report.room("report")?),
        };
        let hold = workers.tasks.hold(key(task))?;
        let timeout = (timeout_ns != PACE_FOREVER).then(|| nanos(timeout_ns));
        let block = |time| hold.value().block(time);
        let pool = workers.workers.pool();
        let is_over = hold.value().is_done()
            || timeout_ns > 0 && pool.wait_for(timeout, block).map_err(Failure::from)?;
        if !is_over {
            return Err(TIMED_OUT);
        }
        let mut task = hold.take()?;
        let name = task.c_name();
        let made = task.wait_timeout(Duration::ZERO)?;
        if let Some(room) = room {
            room.fill(as_data(made, name));
        }
        Ok(())
    })
}

/// How a task stands: PACE_TASK_. The answer may be out of date when it arrives, unless it is an end.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_workers_status(
    workers: Option<&pace_workers_t>,
    task: pace_task_t,
    status: Option<&mut MaybeUninit<u32>>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let to = out(status, "status")?;
        to.set(number_of(workers.tasks.with(key(task), TaskHandle::status)?));
        Ok(())
    })
}

/// Cancels a task. *cancelled: true, it waited, and has ended as PACE_TASK_CANCELLED; false, it runs and
/// is asked to give up, or it has ended. Its id is still to be given back.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_workers_cancel(
    workers: Option<&pace_workers_t>,
    task: pace_task_t,
    cancelled: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let to = out(cancelled, "cancelled")?;
        // Not under the id's lock: who hears of the end may ask for the task.
        let known = workers.tasks.with(key(task), TaskHandle::known)?;
        to.set(known.is_some_and(Known::cancel));
        Ok(())
    })
}

/// Drops a task for the sake of others, by a policy of the host's own. *dropped: true, it waited, and has
/// ended as PACE_TASK_REJECTED; false, it runs, or has ended. Its id is still to be given back.
///
/// PACE_ESTALE.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_workers_drop(
    workers: Option<&pace_workers_t>,
    task: pace_task_t,
    dropped: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let to = out(dropped, "dropped")?;
        let known = workers.tasks.with(key(task), TaskHandle::known)?;
        to.set(known.is_some_and(Known::reject));
        Ok(())
    })
}

/// Has `ended` called when a task has ended, with PACE_TASK_, on the thread that ends it; at once, here, if
/// it has. It should be short, and cannot give the id back. It may be called for a task several times, with
/// a function each.
///
/// PACE_ESTALE; PACE_EBUSY while another thread waits for it.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_workers_on_end(
    workers: Option<&pace_workers_t>,
    task: pace_task_t,
    ended: pace_task_ended_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        let ended = boundary::callback(ended, "ended")?;
        let hold = workers.tasks.hold(key(task))?;
        let (registration, owner) = pair(user_data, drop);
        registration.keep();
        hold.value().on_end(move |status| {
            // SAFETY: as the header demands, the function takes what came with it.
            unsafe { ended(owner.data(), number_of(status)) }
        });
        Ok(())
    })
}

/// Gives a task's id back without waiting: it goes on, and nobody learns its outcome.
///
/// PACE_ESTALE; PACE_EBUSY while another thread waits for it.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_workers_detach(
    workers: Option<&pace_workers_t>,
    task: pace_task_t,
) -> pace_status_t {
    call(|| {
        let workers = usable(workers)?;
        drop(workers.tasks.take(key(task))?);
        Ok(())
    })
}

/// In ids of tasks of a worker pool. No index of a registry has it.
const MARK: u64 = 1 << 31;

pub(super) fn key(task: pace_task_t) -> u64 {
    task.id ^ MARK
}

/// Submits by `by`, and names the task if `named`.
pub(super) fn submit(
    workers: &pace_workers_t,
    named: bool,
    by: impl FnOnce() -> Result<TaskHandle<()>>,
) -> Result<pace_task_t> {
    if !named {
        drop(by()?);
        return Ok(pace_task_t { id: 0 });
    }
    let place = workers.tasks.reserve()?;
    Ok(pace_task_t { id: place.fill(by()?) ^ MARK })
}

fn submit_one(task_type: &pace_task_type_t, set: &Settings, work: Work) -> Result<TaskHandle<()>> {
    let work = move |attempt: &crate::task::Attempt<'_>| work.run(attempt);
    match task_type.task_type.overlaps_retries() {
        false => set.on(task_type.task_type.task(work)).submit().map_err(refused),
        true => set.on(task_type.task_type.task_concurrent(work)).submit().map_err(refused),
    }
}

/// So many at once.
const CHUNK: usize = 32;

/// Submits tasks together. None of them is without `run`.
fn submit_many(
    workers: &pace_workers_t,
    task_type: &pace_task_type_t,
    set: &Settings,
    work: &[pace_attempt_work_t],
    ids: &Ids,
    accepted: Out<usize>,
) -> Result {
    let (mut tasks, mut places) = (Vec::new(), Vec::new());
    let mut taken = 0;
    let mut result = Ok(());
    for chunk in work.chunks(CHUNK) {
        let mut count = chunk.len();
        if ids.are_wanted() {
            while places.len() < count && result.is_ok() {
                result = workers.tasks.reserve().map(|place| places.push(place));
            }
            count = places.len();
        }
        let closures = chunk[..count]
            .iter()
            .filter_map(Work::of)
            .map(|work| move |attempt: &crate::task::Attempt<'_>| work.run(attempt));
        if let Err(rejected) = set.on(task_type.task_type.batch()).submit(closures, &mut tasks) {
            result = Err(Failure::from(&rejected));
            // Refused work is the caller's: its `drop` must not run.
            rejected.into_inner().for_each(forget);
        }
        for task in tasks.drain(..) {
            if let Some(place) = places.pop() {
                // SAFETY: ids are wanted, and no more were taken than `work` has.
                unsafe { ids.put(taken, pace_task_t { id: place.fill(task) ^ MARK }) };
            }
            taken += 1;
        }
        if result.is_err() {
            break;
        }
    }
    accepted.set(taken);
    result
}

/// Refused work is the caller's: its `drop` must not run.
#[cold]
pub(super) fn refused<F>(rejected: Rejected<F>) -> Failure {
    let failure = Failure::from(&rejected);
    forget(rejected.into_inner());
    failure
}

/// Where the ids of a batch go.
pub(super) struct Ids(*mut pace_task_t);

impl Ids {
    /// # Safety
    ///
    /// It is NULL, or has room for as many as `fill` is told.
    pub(super) unsafe fn new(tasks: *mut pace_task_t) -> Result<Self> {
        if !tasks.is_null() {
            boundary::check(tasks, "tasks")?;
        }
        Ok(Self(tasks))
    }

    pub(super) fn are_wanted(&self) -> bool {
        !self.0.is_null()
    }

    /// # Safety
    ///
    /// They are wanted, and `index` is below what `new` was told there is room for.
    unsafe fn put(&self, index: usize, id: pace_task_t) {
        // SAFETY: as the caller promises.
        unsafe { self.0.add(index).write(id) }
    }

    /// Submits one after the other, until one is refused.
    pub(super) fn fill(
        &self,
        count: usize,
        accepted: Out<usize>,
        mut submit: impl FnMut(usize) -> Result<pace_task_t>,
    ) -> Result {
        for index in 0..count {
            match submit(index) {
                Ok(id) if self.are_wanted() => {
                    // SAFETY: as `new` was promised.
                    unsafe { self.put(index, id) };
                }
                Ok(_) => {}
                Err(failure) => {
                    accepted.set(index);
                    return Err(failure);
                }
            }
        }
        accepted.set(count);
        Ok(())
    }
}

/// # Safety
///
/// It is NULL, or points to as many bytes as it says.
pub(super) unsafe fn options_of(
    options: *const pace_task_options_t,
) -> Result<Option<pace_task_options_t>> {
    if options.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, and as the caller promises.
    Ok(Some(unsafe { sized::read(options, "options") }?))
}

/// Options that were found good.
#[derive(Default)]
pub(super) struct Settings {
    lane: Option<crate::Lane>,
    retry: Option<crate::task::Retry>,
    timeout: u64,
    queue_timeout: u64,
    deadline: u64,
    delay: u64,
    key: Option<u64>,
    soft_timeout: u64,
    grace: u64,
    full: Option<OverloadPolicy>,
}

impl Settings {
    pub(super) fn new(options: Option<&pace_task_options_t>) -> Result<Self> {
        let Some(options) = options else { return Ok(Self::default()) };
        let retry = retry_of(&options.retry, None)?;
        if let Some(retry) = &retry {
            retry.check()?;
        }
        Ok(Self {
            lane: match options.lane {
                PACE_DEFAULT => None,
                lane => Some(priority(lane)?),
            },
            retry,
            timeout: options.timeout_ns,
            queue_timeout: options.queue_timeout_ns,
            deadline: options.deadline_ns,
            delay: options.delay_ns,
            key: options.keyed.then_some(options.key),
            soft_timeout: options.soft_timeout_ns,
            grace: options.grace_ns,
            full: full_of(options.full, options.full_wait_ns)?,
        })
    }

    /// Puts them on a task.
    pub(super) fn on<'a, F>(&self, mut task: TaskBuilder<'a, F>) -> TaskBuilder<'a, F> {
        if let Some(lane) = self.lane {
            task = task.lane(lane);
        }
        if let Some(retry) = &self.retry {
            task = task.retry(retry.clone());
        }
        // PACE_FOREVER is what the core has for no limit, too.
        if self.timeout != 0 {
            task = task.timeout(nanos(self.timeout));
        }
        if self.queue_timeout != 0 {
            task = task.queue_timeout(nanos(self.queue_timeout));
        }
        if self.deadline != 0 {
            task = task.deadline(nanos(self.deadline));
        }
        if self.delay != 0 {
            task = task.delay(nanos(self.delay));
        }
        if self.soft_timeout != 0 {
            task = task.soft_timeout(nanos(self.soft_timeout));
        }
        if self.grace != 0 {
            task = task.grace(nanos(self.grace));
        }
        if let Some(full) = self.full {
            task = task.full(full);
        }
        match self.key {
            Some(key) => task.key(key),
            None => task,
        }
    }
}

thread_local! {
    /// What the last report's message was, on this thread.
    static MESSAGE: RefCell<CString> = RefCell::default();
}

fn as_data(report: TaskReport<()>, name: &'static core::ffi::CStr) -> pace_task_report_t {
    let (message, outcome) = match &report.result {
        Ok(()) => (ptr::null(), PACE_OK),
        Err(fault) => {
            let mut text = fault.message().as_bytes().to_vec();
            text.retain(|&byte| byte != 0);
            let text = CString::new(text).unwrap_or_default();
            let outcome = if fault.code() == 0 { PACE_EFAILED } else { fault.code() };
            let kept = MESSAGE.try_with(|place| {
                place.replace(text);
                place.borrow().as_ptr()
            });
            (kept.unwrap_or(c"".as_ptr()), outcome)
        }
    };
    pace_task_report_t {
        struct_size: 0,
        status: number_of(report.status),
        id: report.id,
        name: name.as_ptr(),
        message,
        outcome,
        attempts: report.attempts,
        queue_time_ns: nanos_of(report.queue_time),
        run_time_ns: nanos_of(report.run_time),
        worker: report.worker.map_or(PACE_NONE, |worker| worker as u32),
        reserved: 0,
    }
}

fn nanos_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

const DEFAULTS: pace_task_options_t = pace_task_options_t {
    struct_size: size_of::<pace_task_options_t>() as u32,
    lane: PACE_DEFAULT,
    retry: pace_retry_t {
        shape: 0,
        jitter: 0,
        retries: 0,
        reserved: 0,
        first_ns: 0,
        cap_ns: 0,
        within_ns: 0,
    },
    timeout_ns: 0,
    queue_timeout_ns: 0,
    deadline_ns: 0,
    delay_ns: 0,
    key: 0,
    keyed: false,
    reserved: [0; 7],
    soft_timeout_ns: 0,
    grace_ns: 0,
    full: PACE_OVERLOAD_DEFAULT,
    reserved2: 0,
    full_wait_ns: 0,
};

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_task_options_t {
    const FIRST: usize = 96;
    const NAME: &'static str = "pace_task_options_t";
    const FLAGS: &'static [(&'static str, usize)] =
        &[("keyed", offset_of!(pace_task_options_t, keyed))];
    const RESERVED: &'static [usize] = &{
        const FIRST: usize = offset_of!(pace_task_options_t, reserved);
        const SECOND: usize = offset_of!(pace_task_options_t, reserved2);
        [
            FIRST,
            FIRST + 1,
            FIRST + 2,
            FIRST + 3,
            FIRST + 4,
            FIRST + 5,
            FIRST + 6,
            SECOND,
            SECOND + 1,
            SECOND + 2,
            SECOND + 3,
        ]
    };
}

// SAFETY: as above.
unsafe impl sized::Sized for pace_task_report_t {
    const FIRST: usize = 64;
    const NAME: &'static str = "pace_task_report_t";
}
