//! The end of a worker pool: refuse, drain, stop, clean up.
//!
//! ```text
//!   open ──shutdown──► draining ──all ended, or the time──► stopping ──all returned, or the time──► hooks
//!          refuses new work         what has not begun is cancelled; what runs is asked
//! ```
//!
//! The pool beneath is its owner's, and goes on. From inside a task, and from any other thread of the
//! pool, a shutdown is a request: it refuses new work, and returns.

use super::record::{self, Head};
use super::report::Status;
use super::{Common, DRAINING, OPEN, STOPPING, WorkerPool};
use crate::pool::{Deadline, contain};
use crate::sync::atomic::Ordering::{AcqRel, Acquire};
use crate::sync::store_load_barrier;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

/// How long each phase of a shutdown may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// Until what was accepted has ended by itself.
    pub drain: Duration,
    /// Until what runs has returned, after it was asked to.
    pub stop: Duration,
    /// Until the clean-up hooks have run; one that has begun is waited for.
    pub clean_up: Duration,
}

impl Default for Phases {
    /// 30 s, 5 s and 5 s.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { drain: seconds(30), stop: seconds(5), clean_up: seconds(5) }
    }
}

/// How a shutdown went. Names appear once for each task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct ShutdownReport {
    /// This was called inside the pool, so it was only a request: new work is refused.
    pub requested: bool,
    /// Everything ended by itself.
    pub drained: bool,
    /// Tasks that completed since the shutdown began, by name and number.
    pub completed: Vec<(String, u64)>,
    /// Tasks that were cancelled, by name.
    pub cancelled: Vec<String>,
    /// Tasks whose functions have not returned, by name, and their threads.
    pub stuck: Vec<(String, Option<usize>)>,
    /// Clean-up hooks that panicked, or for which there was no time, by name.
    pub failed_hooks: Vec<String>,
}

type Hook = Box<dyn FnOnce() + Send>;

/// What is run at the end, the last one first.
#[derive(Default)]
pub(super) struct Hooks(Mutex<Vec<(String, Hook)>>);

impl Hooks {
    fn push(&self, name: &str, hook: Hook) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), hook));
    }

    fn pop(&self) -> Option<(String, Hook)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

impl Common {
    /// A task has ended.
    pub(super) fn note_end(&self) {
        if self.phase() != OPEN {
            self.changed.fetch_add(1, AcqRel);
            self.changed.wake(i32::MAX);
        }
    }

    /// Waits until `done`. False: the time ran out.
    fn wait_until(&self, deadline: Deadline, mut done: impl FnMut() -> bool) -> bool {
        loop {
            let epoch = self.changed.load(Acquire);
            if done() {
                return true;
            }
            if deadline.is_over() {
                return false;
            }
            self.changed.wait(epoch, deadline.left());
        }
    }
}

impl WorkerPool {
    /// Has `hook` run at the end of a shutdown, the last one that was registered first.
    pub fn on_shutdown(&self, name: &str, hook: impl FnOnce() + Send + 'static) {
        self.common.hooks.push(name, Box::new(hook));
    }

    /// Shuts the worker pool down: refuses new work, lets what was accepted end, then cancels what has
    /// not begun and asks what runs to stop, then runs the clean-up hooks. The pool beneath goes on.
    ///
    /// Any thread. Inside the pool it is a request: new work is refused from then on, and a thread
    /// outside must call it for the rest. Calling it again is harmless.
    pub fn shutdown(&self, phases: Phases) -> ShutdownReport {
        let common = &*self.common;
        if common.shared.is_forked() {
            return ShutdownReport::default();
        }
        let before = self.completed();
        self.enter(DRAINING);
        if self.pool.is_inside() {
            return ShutdownReport { requested: true, ..ShutdownReport::default() };
        }
        let drain = Deadline::after(Some(phases.drain));
        let drained = common.wait_until(drain, || self.is_quiet());
        self.enter(STOPPING);
        let cancelled = self.cancel_all();
        let stop = Deadline::after(Some(phases.stop));
        common.wait_until(stop, || self.is_quiet());
        let stuck = self.left().map(|(head, _)| (head.kind().name().to_owned(), head.worker()));
        ShutdownReport {
            requested: false,
            drained,
            stuck: stuck.collect(),
            cancelled,
            completed: self.completed_since(&before),
            failed_hooks: self.clean_up(Deadline::after(Some(phases.clean_up))),
        }
    }

    fn completed(&self) -> Vec<(String, u64)> {
        self.stats().kinds.into_iter().map(|kind| (kind.name, kind.completed)).collect()
    }

    fn completed_since(&self, before: &[(String, u64)]) -> Vec<(String, u64)> {
        let then =
            |name: &str| before.iter().find(|(known, _)| known == name).map_or(0, |(_, n)| *n);
        let since = self.completed().into_iter().map(|(name, now)| {
            let then = then(&name);
            (name, now - then)
        });
        since.filter(|(_, count)| *count > 0).collect()
    }

    /// Tells all kinds. Those to come look at the worker pool's own phase.
    fn enter(&self, phase: u32) {
        self.common.phase.fetch_max(phase, AcqRel);
        self.kinds.all().into_iter().for_each(|kind| kind.enter(phase));
    }

    /// Whether everything that was accepted has ended.
    fn is_quiet(&self) -> bool {
        // Against *count as accepted and post, then look at the phase* in whoever submits.
        store_load_barrier();
        self.kinds.all().into_iter().all(|kind| kind.stats.under_way() == 0)
    }

    fn left(&self) -> impl Iterator<Item = (Head, record::Look)> {
        record::live(|kind| kind.is_of(&self.common))
    }

    /// What waits ends here; what runs is asked.
    fn cancel_all(&self) -> Vec<String> {
        let mut cancelled = Vec::new();
        for (head, seen) in self.left() {
            let may =
                |now: record::Look| now.is_same_task(seen) && !record::is(now, Status::Running);
            let name = head.kind().name();
            if head.end_if(Status::Cancelled, may) {
                cancelled.push(name.to_owned());
            } else {
                head.ask_seen(seen);
            }
        }
        cancelled
    }

    fn clean_up(&self, deadline: Deadline) -> Vec<String> {
        let mut failed = Vec::new();
        while let Some((name, hook)) = self.common.hooks.pop() {
            if deadline.is_over() || contain(hook).is_none() {
                failed.push(name);
            }
        }
        failed
    }
}
