//! Ways in.

use super::attempt::{Attempt, Outcome};
use super::execute::{self, Job};
use super::handle::Task;
use super::kind::{KindInner, Settings, nanos};
use super::limits;
use super::record::{AnyRecord, Record};
use super::retry::Retry;
use super::{OPEN, stats};
use crate::error::Rejected;
use crate::queue::Lane;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// A task that is not submitted yet.
#[must_use = "a task does nothing until `submit`"]
pub struct TaskBuilder<F> {
    kind: Arc<KindInner>,
    lane: Lane,
    settings: Option<Box<Settings>>,
    work: F,
}

impl<F, R> TaskBuilder<F>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome,
{
    pub(super) fn new(kind: Arc<KindInner>, work: F) -> Self {
        Self { lane: kind.settings.lane, kind, settings: None, work }
    }

    fn settings(&mut self) -> &mut Settings {
        let kind = &self.kind;
        self.settings.get_or_insert_with(|| Box::new(kind.settings.clone()))
    }

    /// Where it queues. Default: as its kind.
    pub fn lane(mut self, lane: Lane) -> Self {
        self.lane = lane;
        self
    }

    /// How failed attempts are followed by others. Default: as its kind.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.settings().retry = retry;
        self
    }

    /// How long each attempt may take. Zero is over at once. Default: as its kind.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings().limits.attempt = nanos(limit);
        self
    }

    /// How long it may wait for its first attempt. Default: as its kind.
    pub fn queue_timeout(mut self, limit: Duration) -> Self {
        self.settings().limits.queue = nanos(limit);
        self
    }

    /// How long it may take in all, from now to its end. Default: as its kind.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.settings().limits.overall = nanos(limit);
        self
    }

    /// Submits it. Any thread. From outside the pool's threads this waits while the lane is full;
    /// inside a handler or task it never waits.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back: `Full` (inside only), `ShutDown` when the worker pool or
    /// its pool is, `Forked`.
    pub fn submit(self) -> Result<Task<R::Value>, Rejected<F>> {
        let Self { kind, lane, settings, work } = self;
        let common = kind.common();
        kind.stats.submitted.up();
        if common.phase() != OPEN {
            kind.stats.rejected.up();
            return Err(Rejected::ShutDown(work));
        }
        let limits = settings.as_ref().map_or(kind.settings.limits, |own| own.limits);
        let retry = settings.map(|own| own.retry);
        let most = retry.as_ref().unwrap_or(&kind.settings.retry).attempts();
        let now = common.now();
        let record = Record::<R::Value>::new(Arc::clone(&kind), lane, limits, most, now);
        let live: Arc<dyn AnyRecord> = Arc::clone(&record) as _;
        common.live.add(Arc::clone(&live));
        let job = Job::new(Arc::clone(&record), retry, work);
        if let Err(rejected) = common.shared.post(lane, job) {
            kind.stats.rejected.up();
            common.live.remove(record.head.id);
            return Err(execute::work_of(rejected));
        }
        stats::accepted(&kind);
        limits::watch_over(&live);
        Ok(Task::new(record))
    }
}

impl<F> fmt::Debug for TaskBuilder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskBuilder")
            .field("name", &self.kind.name())
            .field("lane", &self.lane)
            .finish_non_exhaustive()
    }
}

/// Fire and forget.
#[inline]
pub(super) fn post<F>(kind: &KindInner, work: F) -> Result<(), Rejected<F>>
where
    F: FnOnce() + Send + 'static,
{
    kind.common().shared.post(kind.settings.lane, work)
}
