//! A name with its settings and its counters.

use crate::error::{Error, Result};
use crate::queue::Lane;
use crate::task::common::Common;
use crate::task::common::TaskTypeInner;
use crate::task::retry::budget::RetryBudget;
use crate::task::settings::LEAST_LEASE;
use crate::task::settings::OverloadPolicy;
use crate::task::settings::Settings;
use crate::task::settings::nanos;
use crate::task::worker_pool::WorkerPool;
use crate::time::{MAX_DELAY, Rate, Retry};
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// A task's name with the settings and statistics that all tasks of that name share; see
/// [`WorkerPool::task_type`]. Clones are the same. What is known of a name is kept as long as the pool lives, and
/// the name itself as long as the process, so names should be few: "resize", not "resize image 17".
///
/// ```
/// use paceline::{Pool, Retry, task::{Attempt, Status, WorkerPool}};
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let workers = WorkerPool::new(&Pool::new()?);
/// let fetch = workers
///     .task_type("fetch")
///     .retry(Retry::fixed(3, Duration::from_millis(1)))
///     .timeout(Duration::from_secs(5))
///     .build()?;
/// let task = fetch.submit(|attempt: &Attempt<'_>| match attempt.number() {
///     1 => Err("the line was busy"),
///     _ => Ok("a page"),
/// })?;
/// let report = task.wait()?;
/// assert_eq!((report.status, report.attempts), (Status::Completed, 2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TaskType {
    pub(super) inner: &'static TaskTypeInner,
    pub(super) common: Arc<Common>,
}

impl TaskType {
    pub(super) fn of(inner: &'static TaskTypeInner, common: &Arc<Common>) -> Self {
        Self { inner, common: Arc::clone(common) }
    }

    #[inline]
    pub(crate) fn inner(&self) -> &'static TaskTypeInner {
        self.inner
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.inner.name()
    }

    /// Whether a task of it may be overtaken.
    pub(crate) fn overlaps_retries(&self) -> bool {
        self.inner.settings.overlap_retries
    }
}

impl WorkerPool {
    /// Settings for the tasks of one name. Give each name its settings before its first task.
    pub fn task_type<'a>(&'a self, name: &'a str) -> TaskTypeBuilder<'a> {
        TaskTypeBuilder::new(self, name)
    }
}

impl WorkerPool {
    /// The task type of this name, with default settings if there was none.
    #[cfg_attr(not(feature = "nats"), allow(dead_code, reason = "for durable tasks"))]
    pub(crate) fn task_type_of(&self, name: &str) -> TaskType {
        TaskType::of(self.common.task_types.find_or_make(name, &self.common), &self.common)
    }
}

impl fmt::Debug for TaskType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskType").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Settings of a [`TaskType`].
#[must_use = "a builder does nothing until `build`"]
pub struct TaskTypeBuilder<'a> {
    pool: &'a WorkerPool,
    name: &'a str,
    settings: Settings,
    wrong: Option<Error>,
}

impl<'a> TaskTypeBuilder<'a> {
    pub(super) fn new(pool: &'a WorkerPool, name: &'a str) -> Self {
        Self { pool, name, settings: Settings::default(), wrong: None }
    }

    /// Where its tasks queue. Default: [`Lane::Normal`].
    pub fn lane(mut self, lane: Lane) -> Self {
        self.settings.lane = lane;
        self
    }

    /// How failed attempts are followed by others. Default: [`Retry::none`].
    pub fn retry(mut self, retry: Retry) -> Self {
        self.settings.retry = retry;
        self
    }

    /// How long each attempt may take: more than zero, up to 100 years. Of one that is
    /// [out of a completion queue](crate::cq::OpenAttempt) this limit and the [`deadline`](Self::deadline) may end 100 ms
    /// late while all `max_handles` of the pool are in use. Default: no limit.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings.limits.attempt = self.check("timeout", limit);
        self
    }

    /// How long a task may wait for its first attempt. Default: no limit.
    pub fn queue_timeout(mut self, limit: Duration) -> Self {
        self.settings.limits.queue = self.check("queue_timeout", limit);
        self
    }

    /// How long a task may take in all, from its submission to its end. Default: no limit.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.settings.limits.overall = self.check("deadline", limit);
        self
    }

    /// How long each attempt may take before its token says so
    /// ([`is_cancelled`](super::Attempt::is_cancelled)): more than zero, up to 100 years. Nothing else follows:
    /// what the function returns then counts as ever. Default: no limit.
    pub fn soft_timeout(mut self, limit: Duration) -> Self {
        self.settings.limits.soft = self.check("soft_timeout", limit);
        self
    }

    /// How long an attempt whose time is over, and that another might follow, may take to return: then
    /// the task ends as TIMED_OUT, since no other can begin beside it (unless
    /// [`overlap_retries`](Self::overlap_retries) lets it). Default: one second.
    pub fn grace(mut self, time: Duration) -> Self {
        self.settings.limits.grace = nanos(time);
        self
    }

    /// For [`task_tagged`](TaskType::task_tagged): how long a host may be silent about an attempt that it has
    /// taken from a completion queue, before it counts as gone: 1 ms to 100 years. The attempt has failed then, and is
    /// followed by another as after any failure; if there is none, [`EntryKind::TaskEnded`](crate::cq::EntryKind) tells
    /// of the end. [`OpenAttempt::heartbeat`](crate::cq::OpenAttempt::heartbeat) is a sign of life; what a host that was not gone says later is stale, and its
    /// attempt may have run beside the next. It is independent of [`timeout`](Self::timeout), at whose
    /// end no other attempt begins while the host is silent. While all `max_handles` of the pool are in use it
    /// may end 100 ms late. Default: none, and an attempt without a time-out is
    /// waited for until the worker pool and its pool are gone.
    pub fn lease(mut self, time: Duration) -> Self {
        if !(LEAST_LEASE..=MAX_DELAY).contains(&time) {
            let wrong = || Error::invalid("lease", format!("{time:?}"), "1 ms to 100 years");
            self.wrong.get_or_insert_with(wrong);
        }
        self.settings.limits.lease = nanos(time);
        self
    }

    /// How many retries its tasks may make together, so that a backend that fails is not stormed: a task
    /// whose retry is refused fails at once. Default: as many as their policies allow.
    pub fn retry_budget(mut self, budget: RetryBudget) -> Self {
        self.settings.budget = Some(budget);
        self
    }

    /// How often its tasks may start. Each attempt is a start. Those that must wait start in the order
    /// of their submission. Default: as often as they can.
    pub fn rate(mut self, rate: Rate) -> Self {
        self.settings.rate = Some(rate);
        self
    }

    /// How many of its attempts may run at once: at least 1. The others wait, the oldest first, without
    /// a thread, and tasks of other names pass them; [`TaskTypeSnapshot::waiting`](super::TaskTypeSnapshot)
    /// counts them. A task has its place while its function runs, also when its time is over, and none
    /// between two attempts; one with a tag gives it up when it ends, though its host may
    /// be at it still. One that waits inside for another of its own name may wait for ever.
    /// Default: no bound.
    pub fn max_running(mut self, attempts: u32) -> Self {
        if attempts == 0 {
            let wrong = || Error::invalid("max_running", 0, "at least 1");
            self.wrong.get_or_insert_with(wrong);
        }
        self.settings.max_running = Some(attempts);
        self
    }

    /// Whether an attempt whose time ([`timeout`](Self::timeout)) is over holds up the next one until it has
    /// returned, or its [`grace`](Self::grace) is over: false, the default; or is overtaken by it: true. Then
    /// two or more attempts of a task may run at once; what one comes to that was overtaken is discarded and
    /// counted ([`TaskTypeSnapshot::discarded`](super::TaskTypeSnapshot)), and its thread is stuck until it returns. Its
    /// token says so to it. The key stays the task's, and the closure is dropped, once, when all have
    /// returned. Each attempt on a thread of the pool counts for [`max_running`](Self::max_running).
    ///
    /// For tasks of [`TaskType::task_concurrent`] and [`TaskType::task_tagged`]; a function that only one thread may
    /// call at a time is not overtaken.
    pub fn overlap_retries(mut self, overlap: bool) -> Self {
        self.settings.overlap_retries = overlap;
        self
    }

    /// What is done with its tasks when their lane has no room. Default: as its worker pool.
    pub fn full(mut self, full: OverloadPolicy) -> Self {
        self.settings.full = Some(full);
        self
    }

    fn check(&mut self, name: &'static str, limit: Duration) -> u64 {
        if limit.is_zero() || limit > MAX_DELAY {
            let wrong =
                || Error::invalid(name, format!("{limit:?}"), "more than 0, up to 100 years");
            self.wrong.get_or_insert_with(wrong);
        }
        nanos(limit)
    }

    /// The task type.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty name, a setting that is out of its range, or if a task type of this name exists with
    /// other settings.
    pub fn build(self) -> Result<TaskType> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if self.name.is_empty() {
            return Err(Error::invalid("task type", "\"\"", "a name: it is in errors and metrics"));
        }
        self.settings.retry.check()?;
        self.settings.budget.as_ref().map_or(Ok(()), RetryBudget::check)?;
        self.settings.rate.as_ref().map_or(Ok(()), Rate::check)?;
        let inner = self.pool.common.task_types.find_or(
            self.name,
            || self.settings.clone(),
            &self.pool.common,
        );
        if inner.settings != self.settings {
            let value = format!("{:?}, which is there already with other settings", self.name);
            let allowed = "a new name, or the same settings";
            return Err(Error::invalid("task type", value, allowed));
        }
        Ok(TaskType::of(inner, &self.pool.common))
    }
}

impl fmt::Debug for TaskTypeBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskTypeBuilder")
            .field("name", &self.name)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
