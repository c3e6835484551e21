//! Ways in.

use super::attempt::{Attempt, Outcome};
use super::execute::Job;
use super::gate::Gate;
use super::handle::Task;
use super::kind::{KindInner, Limits, nanos};
use super::record::{self, Extras, Holder};
use super::stats::Event;
use super::waiting::Special;
use super::{Common, OPEN};
use crate::error::Rejected;
use crate::queue::Lane;
use crate::time::Retry;
use core::fmt;
use core::time::Duration;
use std::borrow::Cow;
use std::hash::Hash;
use std::sync::Arc;

/// A task that is not submitted yet.
#[must_use = "a task does nothing until `submit`"]
pub struct TaskBuilder<'a, F> {
    kind: &'static KindInner,
    common: Cow<'a, Arc<Common>>,
    lane: Lane,
    attempt_limit: u64,
    extras: Option<Box<Extras>>,
    key: Option<u64>,
    delay: Duration,
    work: F,
}

impl<'a, F, R> TaskBuilder<'a, F>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome,
{
    #[inline]
    pub(super) fn new(kind: &'static KindInner, common: Cow<'a, Arc<Common>>, work: F) -> Self {
        let (lane, attempt_limit) = (kind.settings.lane, kind.settings.limits.attempt);
        let (extras, key, delay) = (None, None, Duration::ZERO);
        Self { kind, common, lane, attempt_limit, extras, key, delay, work }
    }

    fn limits(&mut self) -> &mut Limits {
        let limits = self.kind.settings.limits;
        self.extras.get_or_insert_default().limits.get_or_insert(limits)
    }

    /// Where it queues. Default: as its kind.
    #[inline]
    pub fn lane(mut self, lane: Lane) -> Self {
        self.lane = lane;
        self
    }

    /// How failed attempts are followed by others. Default: as its kind. Allocates.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.extras.get_or_insert_default().retry = Some(retry);
        self
    }

    /// How long each attempt may take. Zero is over at once. Default: as its kind.
    #[inline]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.attempt_limit = nanos(limit);
        self
    }

    /// How long it may wait for its first attempt. Default: as its kind. Allocates.
    pub fn queue_timeout(mut self, limit: Duration) -> Self {
        self.limits().queue = nanos(limit);
        self
    }

    /// How long it may take in all, from now to its end. Default: as its kind. Allocates.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.limits().overall = nanos(limit);
        self
    }

    /// Of the tasks of a worker pool that have equal keys one runs at a time, in the order in which they
    /// were submitted (or, with a delay, became due), whatever their names and lanes. A task keeps its key
    /// until its last attempt has returned, through the delays between them. No thread waits for a turn; a
    /// task that waits inside for one of its own key waits for ever.
    pub fn key(mut self, key: impl Hash) -> Self {
        self.key = Some(self.common.lobby.keys.hash(&key));
        self
    }

    /// Not before `delay` (up to 100 years) from its submission. Its limits begin when it is due, and so
    /// does its time in the queue. It takes one of the pool's `max_handles`.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Submits it. Any thread. From outside the pool's threads this waits while the lane is full;
    /// inside a handler or task it never waits. With at most 40 bytes of captures, and a value of at
    /// most 24 bytes, it allocates nothing once warm.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back: `Full` (inside; or when 16,777,216 tasks with handles are
    /// under way, or too many wait for their keys, their rate or their time), `ShutDown` when the worker pool or its pool is, `Forked`.
    #[inline]
    pub fn submit(self) -> Result<Task<R::Value>, Rejected<F>> {
        let Self { kind, common, lane, attempt_limit, extras, key, delay, work } = self;
        if key.is_none() && delay.is_zero() {
            return submit(kind, &common, lane, attempt_limit, extras, work);
        }
        let plan = Plan { kind, common: &common, lane, attempt_limit, extras, key, delay };
        plan.submit(work)
    }
}

#[inline]
pub(super) fn submit<F, R>(
    kind: &'static KindInner,
    common: &Common,
    lane: Lane,
    attempt_limit: u64,
    extras: Option<Box<Extras>>,
    work: F,
) -> Result<Task<R::Value>, Rejected<F>>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome,
{
    if kind.phase() != OPEN {
        return Err(refused(kind, Rejected::ShutDown(work)));
    }
    if kind.gate.as_ref().is_some_and(Gate::is_full) {
        return Err(refused(kind, Rejected::Full(work)));
    }
    let own = extras.as_ref().and_then(|extras| extras.limits);
    let limits = own.as_ref().unwrap_or(&kind.settings.limits);
    let now = kind.stamp(limits.queue.min(limits.overall));
    let opened = record::open::<R::Value>(kind, lane, attempt_limit, extras, now);
    let Some((runner, holder)) = opened else {
        return Err(refused(kind, Rejected::Full(work)));
    };
    kind.stats.count(Event::Accepted);
    let posted = common.shared.post(lane, Job::new(runner, work));
    if let (Some(scaler), Ok(())) = (&common.scaler, &posted) {
        scaler.note_submission(&common.shared);
    }
    answer(kind, holder, posted)
}

/// What the submitter gets once its job was taken in, or was not.
#[inline]
fn answer<B, T: Send + 'static>(
    kind: &'static KindInner,
    holder: Holder<T>,
    taken: Result<(), Rejected<Job<B, T>>>,
) -> Result<Task<T>, Rejected<B>> {
    let Err(rejected) = taken else { return Ok(Task::new(holder)) };
    let mut first = false;
    let rejected = rejected.map(|job| job.into_body(&mut first));
    // A shutdown may have found it, and cancelled it: then it stays in the books as that.
    if first {
        kind.stats.take_back_accepted();
        kind.stats.count(Event::Rejected);
    }
    drop(holder);
    Err(rejected)
}

/// What a task is to be that may have to wait before it gets to its lane.
struct Plan<'a> {
    kind: &'static KindInner,
    common: &'a Arc<Common>,
    lane: Lane,
    attempt_limit: u64,
    extras: Option<Box<Extras>>,
    key: Option<u64>,
    delay: Duration,
}

impl Plan<'_> {
    fn submit<F, R>(self, work: F) -> Result<Task<R::Value>, Rejected<F>>
    where
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        let Self { kind, common, lane, attempt_limit, extras, key, delay } = self;
        if kind.phase() != OPEN {
            return Err(refused(kind, Rejected::ShutDown(work)));
        }
        if kind.gate.as_ref().is_some_and(Gate::is_full) {
            return Err(refused(kind, Rejected::Full(work)));
        }
        let due = kind.clock.now().saturating_add(nanos(delay));
        let opened = record::open::<R::Value>(kind, lane, attempt_limit, extras, due);
        let Some((runner, holder)) = opened else {
            return Err(refused(kind, Rejected::Full(work)));
        };
        kind.stats.count(Event::Accepted);
        let taken = Job::new(runner, Special::new(work, key)).come_in(&common.shared, delay);
        if let (Some(scaler), Ok(())) = (&common.scaler, &taken) {
            scaler.note_submission(&common.shared);
        }
        answer(kind, holder, taken).map_err(|rejected| rejected.map(Special::into_work))
    }
}

#[cold]
fn refused<F>(kind: &KindInner, rejected: Rejected<F>) -> Rejected<F> {
    kind.stats.count(Event::Rejected);
    rejected
}

/// What a periodic task needs for each of its runs.
pub(super) struct Pattern {
    pub(super) kind: &'static KindInner,
    pub(super) common: Arc<Common>,
    pub(super) lane: Lane,
    attempt_limit: u64,
    retry: Option<Retry>,
    limits: Option<Limits>,
    key: Option<u64>,
}

impl Pattern {
    pub(super) fn submit<F, R>(&self, work: F) -> Result<Task<R::Value>, Rejected<F>>
    where
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        let has_extras = self.retry.is_some() || self.limits.is_some();
        let extras = has_extras.then(|| {
            let (retry, limits) = (self.retry.clone(), self.limits);
            Box::new(Extras { retry, limits, ..Extras::default() })
        });
        let plan = Plan {
            kind: self.kind,
            common: &self.common,
            lane: self.lane,
            attempt_limit: self.attempt_limit,
            extras,
            key: self.key,
            delay: Duration::ZERO,
        };
        plan.submit(work)
    }
}

impl<F> TaskBuilder<'_, F> {
    /// What each run is to be, the delay of the first, and the closure.
    pub(super) fn into_pattern(self) -> (Pattern, Duration, F) {
        let Self { kind, common, lane, attempt_limit, extras, key, delay, work } = self;
        let (retry, limits) = extras.map_or((None, None), |own| (own.retry, own.limits));
        let common = common.into_owned();
        (Pattern { kind, common, lane, attempt_limit, retry, limits, key }, delay, work)
    }
}

impl<F> fmt::Debug for TaskBuilder<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskBuilder")
            .field("name", &self.kind.name())
            .field("lane", &self.lane)
            .finish_non_exhaustive()
    }
}
