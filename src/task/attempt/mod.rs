//! What a task's function is given, and what it may answer.

pub(in crate::task) mod attempts;
pub(in crate::task) mod execute;
pub(in crate::task) mod fault;
pub(in crate::task) mod guard;
pub(in crate::task) mod limits;
pub(in crate::task) mod middleware;
pub(in crate::task) mod tagged;
pub(in crate::task) mod waiting;

use crate::task::attempt::fault::Fault;
use crate::task::record::Head;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

/// One run of a task's function, which gets it as its argument.
pub struct Attempt<'a> {
    head: Head,
    number: u32,
    /// Where no thread looks after its time: what does so.
    enforce: Option<fn(Head) -> u64>,
    /// It is not to be kept.
    run: PhantomData<&'a ()>,
}

impl Attempt<'_> {
    #[inline]
    pub(in crate::task) fn new(head: Head, number: u32, enforce: Option<fn(Head) -> u64>) -> Self {
        Self { head, number, enforce, run: PhantomData }
    }

    /// 1 for the first run, 2 for the first retry.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The task's name.
    pub fn name(&self) -> &'static str {
        self.head.task_type().name()
    }

    /// As C has it.
    pub(crate) fn c_name(&self) -> &'static core::ffi::CStr {
        self.head.task_type().c_name()
    }

    /// The task's number, which no other task of this process has or had.
    pub fn id(&self) -> u64 {
        self.head.id()
    }

    /// Whether the function should give up: the task was cancelled, its time or its soft time is over, or
    /// the worker pool stops. Unless it is for the soft time, what it returns after that is not waited
    /// for by anybody.
    pub fn is_cancelled(&self) -> bool {
        self.head.should_stop()
            || self.is_overtaken()
            || self.is_over_softly()
            || self.looks_after_itself()
    }

    /// Whether the soft time of this attempt is over.
    pub fn is_over_softly(&self) -> bool {
        let task_type = self.head.task_type();
        self.head.has_other_limits() && {
            let soft = self.head.limits().soft;
            let is_over = || task_type.clock.now() >= self.head.began().saturating_add(soft);
            soft != u64::MAX && (self.is_overtaken() || is_over())
        }
    }

    /// Whether another attempt has begun since, or is about to.
    fn is_overtaken(&self) -> bool {
        self.head.task_type().settings.overlap_retries && {
            // Acquire: the number of the attempt that runs.
            let _seen = self.head.look();
            self.head.noted() != self.number
        }
    }

    /// In the submitter's thread, all of the pool's may be busy.
    fn looks_after_itself(&self) -> bool {
        let Some(enforce) = self.enforce else { return false };
        enforce(self.head);
        self.head.should_stop()
    }

    /// How long until this attempt's time is over: zero if it is. None: there is no limit.
    pub fn time_left(&self) -> Option<Duration> {
        if self.is_overtaken() {
            return Some(Duration::ZERO);
        }
        let limits = self.head.limits();
        let all = self.head.submitted().saturating_add(limits.overall);
        let deadline = self.head.attempt_deadline().min(all);
        let left =
            || Duration::from_nanos(deadline.saturating_sub(self.head.task_type().clock.now()));
        (deadline != u64::MAX).then(left)
    }

    /// Says that the function still makes progress: the time of this attempt begins anew. Call it every
    /// now and then in a function that may take long, and give the time-out that one step may take.
    pub fn heartbeat(&self) {
        let now = self.head.task_type().clock.now();
        if !self.is_overtaken() {
            self.head.renew(now);
        }
    }
}

impl fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("name", &self.name())
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// Something that runs around each attempt of every task of a worker pool, on the attempt's own thread
/// and within its time; see [`WorkerPoolBuilder::middleware`](super::WorkerPoolBuilder::middleware). It
/// runs at several threads at once, and should be short.
///
/// ```
/// use paceline::{Pool, task::{Attempt, Fault, Middleware, WorkerPool}};
/// use std::sync::Arc;
///
/// struct NoMondays;
///
/// impl Middleware for NoMondays {
///     fn before(&self, attempt: &Attempt<'_>) -> Result<(), Fault> {
///         match attempt.name() {
///             "monday" => Err(Fault::permanent("not on a Monday")),
///             _ => Ok(()),
///         }
///     }
/// }
///
/// # fn main() -> paceline::Result<()> {
/// let workers = WorkerPool::builder(&Pool::new()?).middleware(Arc::new(NoMondays)).build()?;
/// let task = workers.task("monday", |_: &Attempt<'_>| Ok::<_, String>(())).submit()?;
/// assert_eq!(task.wait()?.result.unwrap_err().to_string(), "not on a Monday");
/// # Ok(())
/// # }
/// ```
pub trait Middleware: Send + Sync {
    /// Before the function.
    ///
    /// # Errors
    /// A [`Fault`] refuses the attempt, which fails with it as if the function had returned it: so the
    /// task may be tried again. A panic does, too.
    fn before(&self, _attempt: &Attempt<'_>) -> Result<(), Fault> {
        Ok(())
    }

    /// After the function, if `before` let the attempt pass, whatever came of it. A panic is dropped.
    fn after(&self, _attempt: &Attempt<'_>) {}

    /// Before `after`, if the attempt has failed: by the function's word or panic, or because another
    /// middleware, between this one and the function, has refused it. A panic is dropped.
    fn on_error(&self, _attempt: &Attempt<'_>, _fault: &Fault) {}
}
