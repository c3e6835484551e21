//! Attempts of durable tasks.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]
#![cfg_attr(not(feature = "nats"), allow(dead_code, reason = "there is no queue then"))]

use super::boundary::{
    self, Failure, Handle, Result, bytes as boundary_bytes, call, call_void, consumed, nanos, out,
    usable,
};
use super::message::lend;
use super::sized::{self, InOut};
use super::status::*;
use super::values::{PACE_FOREVER, pace_text_t};
#[cfg(feature = "nats")]
use crate::bridge::tasks::{Job, OpenJob};
use crate::pool::Pool;
use crate::task::Fault;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One attempt of a durable task, which a handler is lent or a host has taken.
pub struct pace_job_t {
    pool: Pool,
    id: String,
    name: String,
    arguments: Vec<u8>,
    number: u32,
    end: Mutex<JobEnd>,
}

/// How an attempt is ended.
enum JobEnd {
    /// A handler has not said it yet; it is lent this until it returns.
    #[cfg(feature = "nats")]
    Lent(Job<'static>),
    /// What it has said.
    Said(core::result::Result<Vec<u8>, Fault>),
    /// A host's.
    #[cfg(feature = "nats")]
    Open(OpenJob),
    Ended,
}

/// An attempt of a durable task. Set struct_size to sizeof the struct before the call. Its texts live as long as the job.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_job_info_t {
    /// In: sizeof the struct. Out: how many bytes were written.
    pub struct_size: u32,
    /// Which attempt it is, in all processes together: 1 for the first. An attempt counts if its process ended in it; a task
    /// that was given back before it began has had none.
    pub number: u32,
    /// The task's id, the same for each attempt in any process.
    pub id: pace_text_t,
    /// The name of the task, which has chosen its handler.
    pub name: pace_text_t,
    /// What the task was submitted with; NULL if there are none.
    pub arguments: *const c_void,
    /// The number of bytes at arguments.
    pub size: usize,
    /// How long the attempt may take still, in nanoseconds: 0 if its time is over, and when it was ended;
    /// PACE_FOREVER without a limit.
    pub time_left_ns: u64,
}

// SAFETY: `repr(C)`, the size comes first, and zero is a value of every field.
unsafe impl sized::Sized for pace_job_info_t {
    const FIRST: usize = 64;
    const NAME: &'static str = "pace_job_info_t";
}

/// Runs an attempt of a durable task. It says how that has ended by pace_job_complete() or pace_job_fail(); if it says
/// nothing, PACE_OK completes the task with no bytes, and any other status fails the attempt. The job is lent until it
/// returns.
pub type pace_durable_fn =
    Option<unsafe extern "C" fn(user_data: *mut c_void, job: *mut pace_job_t) -> pace_status_t>;

/// What an attempt is of.
///
/// PACE_EVERSION.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_job_info(
    job: Option<&pace_job_t>,
    info: InOut<pace_job_info_t>,
) -> pace_status_t {
    call(|| {
        let job = usable(job)?;
        let time_left = job.time_left().and_then(|left| u64::try_from(left.as_nanos()).ok());
        info.room("info")?.fill(pace_job_info_t {
            struct_size: 0,
            number: job.number,
            id: lend(&job.id),
            name: lend(&job.name),
            arguments: pointer_of(&job.arguments),
            size: job.arguments.len(),
            time_left_ns: time_left.unwrap_or(PACE_FOREVER),
        });
        Ok(())
    })
}

/// Begins the attempt of a job that pace_durable_take_waiting() gave, once. *begun is false if it is not to be run, because the
/// task was cancelled, its time is over, or it was given back: free the job then. It waits for the broker, up to five seconds,
/// unless this is the first attempt of several. A job that has begun already: *begun is true.
///
/// Threads: any. In handlers: no. It blocks.
#[unsafe(no_mangle)]
pub extern "C" fn pace_job_begin(
    job: Option<&pace_job_t>,
    begun: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let job = usable(job)?;
        let to = out(begun, "begun")?;
        to.set(job.begin());
        Ok(())
    })
}

/// Whether an attempt is to end, because its time is over or the pool ends: what comes of it then is waited for no longer.
/// Also if it was ended.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_job_is_cancelled(
    job: Option<&pace_job_t>,
    cancelled: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| {
        let job = usable(job)?;
        let to = out(cancelled, "cancelled")?;
        to.set(job.is_cancelled());
        Ok(())
    })
}

/// An attempt has succeeded, with these bytes. The first end that is said counts.
///
/// PACE_ESTALE: it was ended before.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_job_complete(
    job: Option<&pace_job_t>,
    bytes: *const c_void,
    size: usize,
) -> pace_status_t {
    call(|| {
        let job = usable(job)?;
        // SAFETY: as the header demands.
        let value = unsafe { boundary_bytes(bytes, size, 1, "bytes") }?;
        job.end(Ok(value.to_vec()))
    })
}

/// An attempt has failed. With `permanent` no other attempt follows; otherwise, if `retry_after_ns` is not 0, it follows
/// after that time, and not after the delay of the retry. `message` may be NULL; what is not UTF-8 in it is replaced by
/// U+FFFD. The first end that is said counts.
///
/// PACE_ESTALE: it was ended before.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_job_fail(
    job: Option<&pace_job_t>,
    message: *const c_char,
    permanent: bool,
    retry_after_ns: u64,
) -> pace_status_t {
    call(|| {
        let job = usable(job)?;
        let message = match message.is_null() {
            true => "failed".into(),
            // SAFETY: not NULL, and as the header demands.
            false => unsafe { boundary::words(message) },
        };
        job.end(Err(match (permanent, retry_after_ns) {
            (true, _) => Fault::permanent(message),
            (false, 0) => Fault::new(message),
            (false, delay) => Fault::retry_after(message, nanos(delay)),
        }))
    })
}

/// Frees a job that pace_durable_take() or pace_durable_take_waiting() gave. One that was not ended is given back: it is
/// run again, by this process or another, and this attempt does not count. Not for a job that a handler is lent. NULL is a no-op, and in a forked child nothing is freed.
///
/// Threads: any, as long as no other uses it any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_job_free(job: Option<Box<pace_job_t>>) {
    call_void(|| drop(consumed(job)));
}

const ENDED: Failure = Failure::plain(PACE_ESTALE, c"the job was ended before");

impl Handle for pace_job_t {
    const NAME: &'static str = "job";

    fn is_forked(&self) -> bool {
        self.pool.shared().is_forked()
    }
}

impl pace_job_t {
    /// Lends an attempt to `user`, and says how it has ended.
    #[cfg(feature = "nats")]
    pub(super) fn lent(
        pool: &Pool,
        job: &Job<'_>,
        user: impl FnOnce(&Self) -> pace_status_t,
    ) -> core::result::Result<Vec<u8>, Fault> {
        // SAFETY: `lent` has it, which is gone when this returns.
        let its = unsafe { core::mem::transmute::<Job<'_>, Job<'static>>(*job) };
        let (pool, id, name) = (pool.clone(), job.id().to_owned(), job.name().to_owned());
        let (arguments, number) = (job.arguments().to_vec(), job.number());
        let lent = Self { pool, id, name, arguments, number, end: Mutex::new(JobEnd::Lent(its)) };
        let status = user(&lent);
        match (lent.end.into_inner().unwrap_or_else(PoisonError::into_inner), status) {
            (JobEnd::Said(result), _) => result,
            (_, PACE_OK) => Ok(Vec::new()),
            (_, status) => Err(Fault::new(format!("the handler answered {status}"))),
        }
    }

    /// A host has taken it.
    #[cfg(feature = "nats")]
    pub(super) fn taken(pool: &Pool, open: OpenJob) -> Self {
        let (pool, id, name) = (pool.clone(), open.id().to_owned(), open.name().to_owned());
        let (arguments, number) = (open.arguments().to_vec(), open.number());
        Self { pool, id, name, arguments, number, end: Mutex::new(JobEnd::Open(open)) }
    }

    fn lock(&self) -> MutexGuard<'_, JobEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> bool {
        let begins: Box<dyn FnOnce() -> bool> = match &*self.lock() {
            #[cfg(feature = "nats")]
            JobEnd::Lent(_) => Box::new(|| true),
            #[cfg(feature = "nats")]
            JobEnd::Open(open) => Box::new(open.begins()),
            JobEnd::Said(_) | JobEnd::Ended => Box::new(|| false),
        };
        begins()
    }

    fn is_cancelled(&self) -> bool {
        match &*self.lock() {
            #[cfg(feature = "nats")]
            JobEnd::Lent(job) => job.is_cancelled(),
            #[cfg(feature = "nats")]
            JobEnd::Open(open) => open.is_cancelled(),
            JobEnd::Said(_) | JobEnd::Ended => true,
        }
    }

    fn time_left(&self) -> Option<Duration> {
        match &*self.lock() {
            #[cfg(feature = "nats")]
            JobEnd::Lent(job) => job.time_left(),
            #[cfg(feature = "nats")]
            JobEnd::Open(open) => open.time_left(),
            JobEnd::Said(_) | JobEnd::Ended => Some(Duration::ZERO),
        }
    }

    /// Says how it has ended, once.
    fn end(&self, result: core::result::Result<Vec<u8>, Fault>) -> Result {
        let mut end = self.lock();
        match core::mem::replace(&mut *end, JobEnd::Ended) {
            #[cfg(feature = "nats")]
            JobEnd::Lent(_) => {
                *end = JobEnd::Said(result);
                Ok(())
            }
            #[cfg(feature = "nats")]
            JobEnd::Open(open) => {
                drop(end);
                match result {
                    Ok(value) => open.complete(value),
                    Err(fault) => open.fail(fault),
                }
                Ok(())
            }
            other => {
                *end = other;
                drop(result);
                Err(ENDED)
            }
        }
    }
}

/// NULL for none.
pub(super) fn pointer_of(bytes: &[u8]) -> *const c_void {
    if bytes.is_empty() { ptr::null() } else { bytes.as_ptr().cast() }
}
