//! A name with its settings and its counters.

use super::attempt::{Attempt, Outcome};
use super::batch::Unsubmitted;
use super::budget::{Budget, RetryBudget};
use super::gate::Gate;
use super::handle::TaskHandle;
use super::intake::{self, OverloadPolicy};
use super::limits::Guard;
use super::record::{self, Head};
use super::report::Status;
use super::scaling::Waits;
use super::stats::{Event, TaskTypeStats};
use super::submit::{self, TaskBuilder};
use super::waiting::Lobby;
use super::{Common, OPEN, WorkerPool};
use crate::error::{Error, Rejected, Result};
use crate::pool::Shared;
use crate::queue::Lane;
use crate::source::Clock;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::sys::fork::ForkGuard;
use crate::time::{MAX_DELAY, Rate, Retry};
#[cfg(feature = "capi")]
use core::ffi::CStr;
use core::fmt;
use core::time::Duration;
use std::borrow::{Borrow, Cow};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// Times in nanoseconds; u64::MAX: no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// From submission to the first attempt.
    pub(crate) queue: u64,
    /// Of each attempt.
    pub(crate) attempt: u64,
    /// From submission to the end.
    pub(crate) overall: u64,
    /// From the end of an attempt's time to the end of the task, if it might be tried again.
    pub(crate) grace: u64,
    /// Of each attempt; its token hears of it, and nobody else.
    pub(crate) soft: u64,
    /// Of each attempt that is pulled, from its last sign of life.
    pub(crate) lease: u64,
}

/// The shortest that a host may be silent.
const LEAST_LEASE: Duration = Duration::from_millis(1);

/// Unless set.
const GRACE: u64 = 1_000_000_000;

impl Default for Limits {
    fn default() -> Self {
        let never = u64::MAX;
        Self {
            queue: never,
            attempt: never,
            overall: never,
            grace: GRACE,
            soft: never,
            lease: never,
        }
    }
}

/// What all tasks of a name have unless they say otherwise.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) lane: Lane,
    pub(crate) retry: Retry,
    pub(crate) limits: Limits,
    pub(crate) budget: Option<RetryBudget>,
    pub(crate) rate: Option<Rate>,
    pub(crate) full: Option<OverloadPolicy>,
    pub(crate) max_running: Option<u32>,
    pub(crate) overlap_retries: bool,
}

/// A name, with a NUL at its end. It lasts as long as the process, once for each name, since reports, which
/// have it, do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name(&'static str);

impl Name {
    fn new(name: &str) -> Self {
        static NAMES: Mutex<BTreeSet<Name>> = Mutex::new(BTreeSet::new());
        let name = format!("{name}\0");
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.get(name.as_str()).copied();
        known.unwrap_or_else(|| {
            let new = Self(name.leak());
            names.insert(new);
            new
        })
    }

    fn as_str(self) -> &'static str {
        &self.0[..self.0.len() - 1]
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.0
    }
}

/// What the tasks of one name share. It is part of its worker pool's estate, so that a task need not count
/// references to it.
pub(crate) struct TaskTypeInner {
    name: Name,
    /// The same without the NUL, for each report.
    plain_name: &'static str,
    common: Weak<Common>,
    pub(crate) settings: Settings,
    pub(crate) stats: TaskTypeStats,
    /// Somebody observes the ends.
    pub(super) told: bool,
    /// Something runs around attempts.
    pub(super) has_middleware: bool,
    /// Its tasks have other limits than that of their attempts.
    has_limits: bool,
    /// The phase of the worker pool.
    phase: AtomicU32,
    pub(super) clock: Clock,
    pub(super) fork: ForkGuard,
    pub(super) guard: &'static Guard,
    pub(super) lobby: &'static Lobby,
    /// Tasks of this name that wait for its rate, or for those that run.
    pub(super) gate: Option<Gate>,
    pub(super) budget: Option<Budget>,
    /// What is done when a lane is full.
    pub(super) full: OverloadPolicy,
    /// Where waits in the queue are counted, if somebody adapts to them.
    pub(super) waits: Option<&'static Waits>,
    /// The address of what its pool shares.
    home: usize,
}

impl TaskTypeInner {
    #[inline]
    pub(crate) fn name(&self) -> &'static str {
        self.plain_name
    }

    /// As C has it.
    #[cfg(feature = "capi")]
    pub(crate) fn c_name(&self) -> &'static CStr {
        CStr::from_bytes_until_nul(self.name.0.as_bytes()).unwrap_or_default()
    }

    /// What it shares with the other task types of its worker pool. None: pool and worker pool are gone.
    pub(crate) fn common(&self) -> Option<Arc<Common>> {
        self.common.upgrade()
    }

    pub(super) fn is_of(&self, common: &Common) -> bool {
        core::ptr::eq(self.common.as_ptr(), common)
    }

    /// Whether its tasks run in that pool. The address is only compared.
    pub(super) fn is_in(&self, shared: &Shared) -> bool {
        self.home == core::ptr::from_ref(shared).addr()
    }

    #[inline]
    pub(crate) fn phase(&self) -> u32 {
        self.phase.load(Relaxed)
    }

    pub(super) fn enter(&self, phase: u32) {
        self.phase.fetch_max(phase, AcqRel);
    }

    /// The time of the pool's clock: exactly if a time that is short begins with it, else as
    /// [`record::stamp`] tells it.
    #[inline]
    pub(super) fn stamp(&self, limit: u64) -> u64 {
        match &self.clock {
            Clock::Monotonic if limit >= record::LONG => record::stamp(),
            clock => clock.now(),
        }
    }

    /// The same for an attempt that begins on a thread of the pool.
    #[inline]
    pub(super) fn stamp_begin(&self, limit: u64) -> u64 {
        match &self.clock {
            Clock::Monotonic if limit >= record::LONG => record::stamp_begin(),
            clock => clock.now(),
        }
    }

    /// The same for an attempt that ends; see [`record::stamp_end`].
    #[inline]
    pub(super) fn stamp_end(&self, at_once: bool) -> u64 {
        match &self.clock {
            Clock::Monotonic => record::stamp_end(at_once),
            clock @ Clock::Manual(_) => clock.now(),
        }
    }

    /// Whether the retry budget allows one more at `now`.
    pub(super) fn affords_retry(&self, now: u64) -> bool {
        let Some(budget) = &self.budget else { return true };
        let affords = budget.take(now, self.stats.get(Event::Accepted));
        if !affords {
            self.stats.count(Event::RetryRefused);
        }
        affords
    }

    /// Whether a task of this task type may have another limit than that of its attempts.
    #[inline]
    pub(super) fn has_other_limits(&self, head: Head) -> bool {
        self.has_limits || head.has_extras()
    }

    /// A task of this task type has ended. Called once for each.
    #[inline]
    pub(super) fn ended(&self, status: Status) {
        self.stats.ended(status);
        if self.phase() != OPEN
            && let Some(common) = self.common()
        {
            common.note_end();
        }
    }
}

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
    inner: &'static TaskTypeInner,
    common: Arc<Common>,
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
    #[cfg(feature = "capi")]
    pub(crate) fn overlaps_retries(&self) -> bool {
        self.inner.settings.overlap_retries
    }

    /// A task with settings of its own, to be submitted.
    pub fn task<F, R>(&self, work: F) -> TaskBuilder<'_, F>
    where
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        self.task_of(work)
    }

    pub(super) fn task_of<B>(&self, work: B) -> TaskBuilder<'_, B> {
        TaskBuilder::new(self.inner, Cow::Borrowed(&self.common), work)
    }

    /// Submits a task with the task type's settings.
    ///
    /// # Errors
    /// As [`TaskBuilder::submit`].
    pub fn submit<F, R>(&self, work: F) -> Result<TaskHandle<R::Value>, Rejected<F>>
    where
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        let settings = &self.inner.settings;
        let extras = None;
        submit::submit(
            self.inner,
            &self.common,
            settings.lane,
            settings.limits.attempt,
            extras,
            self.inner.full,
            work,
        )
    }

    /// Submits everything that `work` yields, up to 32 tasks by one compare-exchange, and appends a
    /// handle for each that was taken to `tasks`.
    ///
    /// # Errors
    /// As [`TaskBuilder::submit`]; [`Rejected`] holds an iterator over what was not taken, in order. All
    /// before it was. It counts as one rejected task.
    pub fn submit_batch<I, F, R>(
        &self,
        work: I,
        tasks: &mut Vec<TaskHandle<R::Value>>,
    ) -> Result<(), Rejected<Unsubmitted<I::IntoIter, F>>>
    where
        I: IntoIterator<Item = F>,
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        self.batch().submit(work, tasks)
    }

    /// Runs `work` once, in the task type's lane: no handle, no limits, no retries, and it costs what
    /// [`Pool::post`](crate::Pool::post) costs. It is counted in the pool's books, not in the task type's. With
    /// [`OverloadPolicy::DropOldest`] it is given back, as with [`OverloadPolicy::Reject`]: what has no handle drops nobody,
    /// and is not dropped. One that [`OverloadPolicy::RunHere`] runs here is in no books; if it panics that is all.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back.
    #[inline]
    pub fn post<F>(&self, work: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let (shared, lane) = (&self.common.shared, self.inner.settings.lane);
        let full = |work| intake::post_when_full(self.inner.full, shared, lane, work);
        shared.post_or(lane, work, full)
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

    /// How long each attempt may take: more than zero, up to 100 years. Of one that was
    /// [pulled](WorkerPool::pull) this limit and the [`deadline`](Self::deadline) may end 100 ms late while all
    /// `max_handles` of the pool are in use. Default: no limit.
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
    /// ([`is_cancelled`](Attempt::is_cancelled)): more than zero, up to 100 years. Nothing else follows:
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

    /// For [`task_pulled`](TaskType::task_pulled): how long a host may be silent about an attempt that it has
    /// pulled, before it counts as gone: 1 ms to 100 years. The attempt has failed then, and is followed by
    /// another as after any failure; if there is none, that is told as [`TaskEvent::End`](super::TaskEvent).
    /// [`WorkerPool::heartbeat`] is a sign of life; what a host that was not gone says later is stale, and its
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
    /// between two attempts; one whose attempts are pulled gives it up when it ends, though its host may
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
    /// For tasks of [`TaskType::task_concurrent`] and [`TaskType::task_pulled`]; a function that only one thread may
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

    /// The task_type.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a setting that is out of its range, or if a task type of this name exists with
    /// other settings.
    pub fn build(self) -> Result<TaskType> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
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
            let allowed = "a name without a task type, or the settings of its task type";
            return Err(Error::invalid("task type", self.name, allowed));
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

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The task types of a worker pool, by name.
#[derive(Default)]
pub(crate) struct TaskTypes(RwLock<HashMap<Box<str>, &'static TaskTypeInner>>);

impl TaskTypes {
    pub(super) fn find_or_make(&self, name: &str, common: &Arc<Common>) -> &'static TaskTypeInner {
        self.find_or(name, Settings::default, common)
    }

    fn find_or(
        &self,
        name: &str,
        settings: impl FnOnce() -> Settings,
        common: &Arc<Common>,
    ) -> &'static TaskTypeInner {
        if let Some(found) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return found;
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.entry(name.into()).or_insert_with(|| {
            let settings = settings();
            let Settings { budget, rate, max_running, limits, .. } = settings;
            let clock = common.shared.ready.handles.sets.clock().clone();
            let checked = "settings that were checked";
            let kept = Name::new(name);
            common.estate.keep(TaskTypeInner {
                plain_name: kept.as_str(),
                name: kept,
                common: Arc::downgrade(common),
                full: settings.full.unwrap_or(common.full),
                budget: budget.map(|budget| Budget::new(budget, clock.now()).expect(checked)),
                gate: (rate.is_some() || max_running.is_some())
                    .then(|| Gate::new(rate, max_running, common.lobby.most).expect(checked)),
                settings,
                stats: TaskTypeStats::default(),
                told: common.logs_ends || !common.observers.is_empty(),
                has_middleware: !common.middleware.is_empty(),
                has_limits: limits.queue & limits.overall & limits.soft != u64::MAX,
                // A shutdown tells all task types that exist, under this lock, after it has entered.
                phase: AtomicU32::new(common.phase()),
                clock,
                fork: common.shared.fork_guard(),
                guard: common.guard,
                lobby: common.lobby,
                waits: common.scaler.as_ref().map(|scaler| scaler.waits()),
                home: Arc::as_ptr(&common.shared).addr(),
            })
        })
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> Vec<&'static TaskTypeInner> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut task_types: Vec<_> = all.values().copied().collect();
        task_types.sort_unstable_by_key(|task_type| task_type.name);
        task_types
    }
}
