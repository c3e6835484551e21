//! Ways in.

use super::attempt::{Attempt, Outcome};
use super::execute::Job;
use super::handle::Task;
use super::kind::{KindInner, Limits, nanos};
use super::record::{self, Extras};
use super::stats::Event;
use super::{Common, OPEN};
use crate::error::Rejected;
use crate::queue::Lane;
use crate::time::Retry;
use core::fmt;
use core::time::Duration;
use std::borrow::Cow;
use std::sync::Arc;

/// A task that is not submitted yet.
#[must_use = "a task does nothing until `submit`"]
pub struct TaskBuilder<'a, F> {
    kind: &'static KindInner,
    common: Cow<'a, Arc<Common>>,
    lane: Lane,
    attempt_limit: u64,
    extras: Option<Box<Extras>>,
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
        Self { kind, common, lane, attempt_limit, extras: None, work }
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

    /// Submits it. Any thread. From outside the pool's threads this waits while the lane is full;
    /// inside a handler or task it never waits. With at most 40 bytes of captures, and a value of at
    /// most 16 bytes, it allocates nothing once warm.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back: `Full` (inside, or when 16,777,216 tasks with handles are
    /// under way), `ShutDown` when the worker pool or its pool is, `Forked`.
    #[inline]
    pub fn submit(self) -> Result<Task<R::Value>, Rejected<F>> {
        let Self { kind, common, lane, attempt_limit, extras, work } = self;
        submit(kind, &common, lane, attempt_limit, extras, work)
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
    let opened = record::open::<R::Value>(kind, lane, attempt_limit, extras, kind.stamp());
    let Some((runner, holder)) = opened else {
        return Err(refused(kind, Rejected::Full(work)));
    };
    kind.stats.count(Event::Accepted);
    match common.shared.post(lane, Job::new(runner, work)) {
        Ok(()) => Ok(Task::new(holder)),
        Err(rejected) => {
            let mut first = false;
            let rejected = rejected.map(|job| job.into_work(&mut first));
            // A shutdown may have found it, and cancelled it: then it stays in the books as that.
            if first {
                kind.stats.take_back_accepted();
                kind.stats.count(Event::Rejected);
            }
            drop(holder);
            Err(rejected)
        }
    }
}

#[cold]
fn refused<F>(kind: &KindInner, rejected: Rejected<F>) -> Rejected<F> {
    kind.stats.count(Event::Rejected);
    rejected
}

impl<F> fmt::Debug for TaskBuilder<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskBuilder")
            .field("name", &self.kind.name())
            .field("lane", &self.lane)
            .finish_non_exhaustive()
    }
}
