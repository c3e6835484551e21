//! Ways in.

use crate::error::{NoRoom, Rejected};
use crate::queue::Lane;
use crate::task::admission::limiter::Limiter;
use crate::task::attempt::Attempt;
use crate::task::attempt::execute::{Body, Job};
use crate::task::attempt::fault::Outcome;
use crate::task::attempt::tagged::{self, Tagged};
use crate::task::attempt::waiting::Special;
use crate::task::common::TaskTypeInner;
use crate::task::common::{Common, OPEN};
use crate::task::counters::Event;
use crate::task::record::{self, Extras, Holder};
use crate::task::result::handle::TaskHandle;
use crate::task::retry::overlap::Overlapping;
use crate::task::settings::OverloadPolicy;
use crate::task::settings::{Limits, nanos};
use crate::task::task_type::TaskType;
use crate::task::worker_pool::WorkerPool;
use crate::time::Retry;
use core::fmt;
use core::time::Duration;
use std::borrow::Cow;
use std::hash::Hash;
use std::sync::Arc;

/// A task that is not submitted yet.
#[must_use = "a task does nothing until `submit`"]
pub struct TaskBuilder<'a, F> {
    task_type: &'static TaskTypeInner,
    common: Cow<'a, Arc<Common>>,
    lane: Lane,
    attempt_limit: u64,
    extras: Option<Box<Extras>>,
    key: Option<u64>,
    delay: Duration,
    full: OverloadPolicy,
    work: F,
}

impl WorkerPool {
    /// A task, to be submitted. If no task type has this name one with default settings is made. Looking the
    /// name up takes a lock: a [`TaskType`] that is kept does not.
    pub fn task<F, R>(&self, name: &str, work: F) -> TaskBuilder<'_, F>
    where
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        let task_type = self.common.task_types.find_or_make(name, &self.common);
        TaskBuilder::new(task_type, Cow::Borrowed(&self.common), work)
    }
}

impl TaskType {
    /// A task with settings of its own, to be submitted.
    pub fn task<F, R>(&self, work: F) -> TaskBuilder<'_, F>
    where
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        self.task_of(work)
    }

    pub(in crate::task) fn task_of<B>(&self, work: B) -> TaskBuilder<'_, B> {
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
        submit(
            self.inner,
            &self.common,
            settings.lane,
            settings.limits.attempt,
            extras,
            self.inner.full,
            work,
        )
    }

    /// Runs `work` once, in the task type's lane: no handle, no limits, no retries, and it costs what
    /// [`Pool::post`](crate::Pool::post) costs. It is counted in the pool's counters, not in the task type's. With
    /// [`OverloadPolicy::DropOldest`] it is given back, as with [`OverloadPolicy::Reject`]: what has no handle drops nobody,
    /// and is not dropped. One that [`OverloadPolicy::RunHere`] runs here is in no counters; if it panics that is all.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back.
    #[inline]
    pub fn post<F>(&self, work: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let (shared, lane) = (&self.common.shared, self.inner.settings.lane);
        let full = |work| {
            crate::task::admission::lane::post_when_full(self.inner.full, shared, lane, work)
        };
        shared.post_or(lane, work, full)
    }
}

impl<'a, F> TaskBuilder<'a, F> {
    #[inline]
    pub(in crate::task) fn new(
        task_type: &'static TaskTypeInner,
        common: Cow<'a, Arc<Common>>,
        work: F,
    ) -> Self {
        let (lane, attempt_limit) = (task_type.settings.lane, task_type.settings.limits.attempt);
        let (extras, key, delay, full) = (None, None, Duration::ZERO, task_type.full);
        Self { task_type, common, lane, attempt_limit, extras, key, delay, full, work }
    }

    /// Whether attempts of its task type may overlap.
    pub(in crate::task) fn overlaps(&self) -> bool {
        self.task_type.settings.overlap_retries
    }

    /// The same task with another body.
    pub(in crate::task) fn with<G>(
        self,
        body: impl FnOnce(F, &mut Option<Box<Extras>>) -> G,
    ) -> TaskBuilder<'a, G> {
        let Self { task_type, common, lane, attempt_limit, mut extras, key, delay, full, work } =
            self;
        let work = body(work, &mut extras);
        TaskBuilder { task_type, common, lane, attempt_limit, extras, key, delay, full, work }
    }

    fn limits(&mut self) -> &mut Limits {
        let limits = self.task_type.settings.limits;
        self.extras.get_or_insert_default().limits.get_or_insert(limits)
    }

    /// Where it queues. Default: as its task type.
    #[inline]
    pub fn lane(mut self, lane: Lane) -> Self {
        self.lane = lane;
        self
    }

    /// How failed attempts are followed by others. Default: as its task type. Allocates.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.extras.get_or_insert_default().retry = Some(retry);
        self
    }

    /// How long each attempt may take. Zero is over at once. Default: as its task type.
    #[inline]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.attempt_limit = nanos(limit);
        self
    }

    /// How long it may wait for its first attempt. Default: as its task type. Allocates.
    pub fn queue_timeout(mut self, limit: Duration) -> Self {
        self.limits().queue = nanos(limit);
        self
    }

    /// How long it may take in all, from now to its end. Default: as its task type. Allocates.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.limits().overall = nanos(limit);
        self
    }

    /// How long each attempt may take before its token says so. Default: as its task type. Allocates.
    pub fn soft_timeout(mut self, limit: Duration) -> Self {
        self.limits().soft = nanos(limit);
        self
    }

    /// How long an attempt whose time is over, and that another might follow, may take to return before
    /// the task ends as TIMED_OUT. Default: as its task type. Allocates.
    pub fn grace(mut self, time: Duration) -> Self {
        self.limits().grace = nanos(time);
        self
    }

    /// Of the tasks of a worker pool that have equal keys one runs at a time, in the order in which they
    /// were submitted (or, with a delay, became due), whatever their names and lanes. A task keeps its key
    /// until its last attempt has returned, through the delays between them. No thread waits for a turn; a
    /// task that waits inside for one of its own key waits for ever.
    pub fn key(mut self, key: impl Hash) -> Self {
        self.key = Some(self.common.wait_lists.keys.hash(&key));
        self
    }

    /// Not before `delay` from its submission; up to 100 ms later while all `max_handles` of the pool are in use.
    /// A delay of more than 100 years is taken as 100 years. The limits of the task begin when it is due, and so
    /// does its time in the queue. Until then it takes about 120 bytes, if its closure has at most 16 and
    /// it has no key.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

impl<F> TaskBuilder<'_, F> {
    /// What is done if its lane has no room; not for those with a tag. Default: as its task type.
    #[inline]
    pub fn full(mut self, full: OverloadPolicy) -> Self {
        self.full = full;
        self
    }
}

impl<F, R> TaskBuilder<'_, F>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome,
{
    /// Submits it. Any thread. While the lane is full [`OverloadPolicy`] says what happens: unless set, this waits
    /// outside the pool's threads, and never inside a handler or task. With at most 40 bytes of captures, and a value of at
    /// most 24 bytes, it allocates nothing once warm.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back: `Full` (as the policy says; or when 16,777,216 tasks with
    /// handles are under way, or too many wait for their keys or their rate), `ShutDown` when the worker
    /// pool or its pool is, `Forked`.
    #[inline]
    pub fn submit(self) -> Result<TaskHandle<R::Value>, Rejected<F>> {
        hand_in(self)
    }
}

impl TaskBuilder<'_, Tagged> {
    /// Submits it. Any thread, never waits. Its attempts come to the completion queue that the worker pool is attached to
    /// ([`CompletionQueue::workers`](crate::cq::CompletionQueue::workers)), and so does its end, unless the completion of an
    /// attempt is that.
    ///
    /// # Errors
    /// [`Rejected::Full`] when [`max_queued`](crate::task::WorkerPoolBuilder::max_queued) tasks wait to be
    /// taken (or too many for their keys, their rate or their time), `ShutDown`, `Forked`.
    pub fn submit(mut self) -> Result<TaskHandle<()>, Rejected<Tagged>> {
        if let Err(error) = self.task_type.wait_lists.attempts.open(&self.common.shared) {
            return Err(refused(self.task_type, tagged::refusal(&error, self.work)));
        }
        self.extras.get_or_insert_default().tag = Some(self.work.tag);
        let task = match self.overlaps() {
            false => hand_in(self)?,
            true => hand_in(self.with(Overlapping::new))
                .map_err(|rejected| rejected.map(Overlapping::into_work))?,
        };
        tagged::tell_host(&task);
        Ok(task)
    }
}

#[inline]
pub(in crate::task) fn hand_in<B>(
    task: TaskBuilder<'_, B>,
) -> Result<TaskHandle<Value<B>>, Rejected<B>>
where
    B: Body<Output: Outcome>,
{
    let TaskBuilder { task_type, common, lane, attempt_limit, extras, key, delay, full, work } =
        task;
    if key.is_none() && delay.is_zero() {
        return submit(task_type, &common, lane, attempt_limit, extras, full, work);
    }
    let plan = Plan { task_type, common: &common, lane, attempt_limit, extras, key, delay, full };
    plan.submit(work)
}

/// What a body's task yields.
pub(in crate::task) type Value<B> = <<B as Body>::Output as Outcome>::Value;

#[inline]
pub(in crate::task) fn submit<B>(
    task_type: &'static TaskTypeInner,
    common: &Common,
    lane: Lane,
    attempt_limit: u64,
    extras: Option<Box<Extras>>,
    full: OverloadPolicy,
    work: B,
) -> Result<TaskHandle<Value<B>>, Rejected<B>>
where
    B: Body<Output: Outcome>,
{
    if task_type.phase() != OPEN {
        return Err(refused(task_type, Rejected::ShutDown(work)));
    }
    if task_type.limiter.as_ref().is_some_and(Limiter::is_full) {
        return Err(refused(task_type, Rejected::Full(work, NoRoom::TASKS_WAIT)));
    }
    let own = extras.as_ref().and_then(|extras| extras.limits);
    let limits = own.as_ref().unwrap_or(&task_type.settings.limits);
    let now = task_type.stamp(limits.queue.min(limits.overall));
    let opened = record::open::<Value<B>>(task_type, lane, attempt_limit, extras, now);
    let Some((runner, holder)) = opened else {
        return Err(refused(task_type, Rejected::Full(work, NoRoom::TASKS_OPEN)));
    };
    task_type.stats.count(Event::Accepted);
    let posted = Job::new(runner, work).post(&common.shared, lane, full);
    common.note_submission(posted.is_ok());
    answer(task_type, holder, posted)
}

/// What the submitter gets once its job was taken in, or was not.
#[inline]
fn answer<B, T: Send + 'static>(
    task_type: &'static TaskTypeInner,
    holder: Holder<T>,
    taken: Result<(), Rejected<Job<B, T>>>,
) -> Result<TaskHandle<T>, Rejected<B>> {
    let Err(rejected) = taken else { return Ok(TaskHandle::new(holder)) };
    let mut first = false;
    let rejected = rejected.map(|job| job.into_body(&mut first));
    // A shutdown may have found it, and cancelled it: then it stays in the counters as that.
    if first {
        task_type.stats.take_back_accepted();
        task_type.stats.count(Event::Rejected);
    }
    drop(holder);
    Err(rejected)
}

/// What a task is to be that may have to wait before it gets to its lane.
struct Plan<'a> {
    task_type: &'static TaskTypeInner,
    common: &'a Arc<Common>,
    lane: Lane,
    attempt_limit: u64,
    extras: Option<Box<Extras>>,
    key: Option<u64>,
    delay: Duration,
    full: OverloadPolicy,
}

impl Plan<'_> {
    fn submit<B>(self, work: B) -> Result<TaskHandle<Value<B>>, Rejected<B>>
    where
        B: Body<Output: Outcome>,
    {
        let Self { task_type, common, lane, attempt_limit, extras, key, delay, full } = self;
        if task_type.phase() != OPEN {
            return Err(refused(task_type, Rejected::ShutDown(work)));
        }
        if task_type.limiter.as_ref().is_some_and(Limiter::is_full) {
            return Err(refused(task_type, Rejected::Full(work, NoRoom::TASKS_WAIT)));
        }
        let due = task_type.clock.now().saturating_add(nanos(delay));
        let opened = record::open::<Value<B>>(task_type, lane, attempt_limit, extras, due);
        let Some((runner, holder)) = opened else {
            return Err(refused(task_type, Rejected::Full(work, NoRoom::TASKS_OPEN)));
        };
        task_type.stats.count(Event::Accepted);
        if key.is_none() {
            let taken = Job::new(runner, work).come_in(&common.shared, delay, full);
            common.note_submission(taken.is_ok());
            return answer(task_type, holder, taken);
        }
        let taken = Job::new(runner, Special::new(work, key)).come_in(&common.shared, delay, full);
        common.note_submission(taken.is_ok());
        answer(task_type, holder, taken).map_err(|rejected| rejected.map(Special::into_work))
    }
}

#[cold]
pub(in crate::task) fn refused<F>(task_type: &TaskTypeInner, rejected: Rejected<F>) -> Rejected<F> {
    task_type.stats.count(Event::Rejected);
    rejected
}

/// What many tasks have in common: runs of a periodic one, or those of a batch.
pub(in crate::task) struct Pattern<'a> {
    pub(in crate::task) task_type: &'static TaskTypeInner,
    pub(in crate::task) common: Cow<'a, Arc<Common>>,
    pub(in crate::task) lane: Lane,
    pub(in crate::task) attempt_limit: u64,
    retry: Option<Retry>,
    limits: Option<Limits>,
    key: Option<u64>,
    pub(in crate::task) delay: Duration,
    pub(in crate::task) full: OverloadPolicy,
}

impl Pattern<'_> {
    /// For each task anew.
    pub(in crate::task) fn extras(&self) -> Option<Box<Extras>> {
        let has_extras = self.retry.is_some() || self.limits.is_some();
        has_extras.then(|| {
            let (retry, limits) = (self.retry.clone(), self.limits);
            Box::new(Extras { retry, limits, ..Extras::default() })
        })
    }

    /// When a task's time begins that is submitted now.
    pub(in crate::task) fn stamp(&self) -> u64 {
        let limits = self.limits.as_ref().unwrap_or(&self.task_type.settings.limits);
        self.task_type.stamp(limits.queue.min(limits.overall))
    }

    /// Whether they go to their lane at once, and drop nobody.
    pub(in crate::task) fn is_direct(&self) -> bool {
        self.key.is_none() && self.delay.is_zero() && self.full != OverloadPolicy::DropOldest
    }

    pub(in crate::task) fn submit<F, R>(&self, work: F) -> Result<TaskHandle<R::Value>, Rejected<F>>
    where
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        let plan = Plan {
            task_type: self.task_type,
            common: &self.common,
            lane: self.lane,
            attempt_limit: self.attempt_limit,
            extras: self.extras(),
            key: self.key,
            delay: self.delay,
            full: self.full,
        };
        plan.submit(work)
    }

    /// Without what it borrows.
    pub(in crate::task) fn into_owned(self) -> Pattern<'static> {
        let Self { task_type, common, lane, attempt_limit, retry, limits, key, delay, full } = self;
        let common = Cow::Owned(common.into_owned());
        Pattern { task_type, common, lane, attempt_limit, retry, limits, key, delay, full }
    }
}

impl<'a, F> TaskBuilder<'a, F> {
    /// What each task is to be, and what it has in the place of a function.
    pub(in crate::task) fn into_pattern(self) -> (Pattern<'a>, F) {
        let Self { task_type, common, lane, attempt_limit, extras, key, delay, full, work } = self;
        let (retry, limits) = extras.map_or((None, None), |own| (own.retry, own.limits));
        (Pattern { task_type, common, lane, attempt_limit, retry, limits, key, delay, full }, work)
    }
}

impl<F> fmt::Debug for TaskBuilder<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskBuilder")
            .field("name", &self.task_type.name())
            .field("lane", &self.lane)
            .finish_non_exhaustive()
    }
}
