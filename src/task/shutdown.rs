//! The end of a worker pool: refuse, drain, stop, clean up.
//!
//! ```text
//!   open ──shutdown──► draining ──all ended, or the time──► stopping ──all returned, or the time──► hooks
//!          refuses new work         what has not begun is cancelled; what runs is asked
//! ```
//!
//! # A submission that meets a shutdown
//!
//! Whoever submits looks at the phase, counts the task as accepted and pushes it. A shutdown may come
//! between, find nothing under way, and be through before the push. A barrier in every submission would
//! prevent that, and cost all for the sake of few. Instead no attempt begins after that: a thread makes
//! the attempt RUNNING, and looks at the phase then; the shutdown says that it stops, passes a barrier,
//! and counts once more what is under way. One of them sees the other. So when a shutdown says that
//! nothing is stuck, no function of a task runs, and none will: what came too late ends as CANCELLED.
//!
//! The pool beneath is its owner's, and goes on. From inside a task, and from any other thread of the
//! pool, a shutdown is a request: it refuses new work, and returns.

use crate::log::Component;
use crate::pool::{Deadline, Remains, Served, contain};
use crate::queue::Lane;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::store_load_barrier;
use crate::task::arena::{Pin, pin};
use crate::task::common::Hook;
use crate::task::common::{Common, DRAINING, OPEN, STOPPING};
use crate::task::counters::Event;
use crate::task::health::Health;
use crate::task::record::{self, Head};
use crate::task::result::end::told_here;
use crate::task::result::report::Status;
use crate::task::worker_pool::WorkerPool;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

/// How long each phase of a shutdown may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// Until what was accepted has ended by itself.
    pub drain: Duration,
    /// Until what runs has returned, after it was asked to.
    pub stop: Duration,
    /// Until the clean-up hooks have run; one that takes longer is left alone.
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
    /// Tasks that had not begun, or waited for another attempt, and were cancelled, by name.
    pub cancelled: Vec<String>,
    /// Tasks whose functions have not returned, by name, and their threads.
    pub stuck: Vec<(String, Option<usize>)>,
    /// Clean-up hooks that panicked, or for which there was no time, by name.
    pub failed_hooks: Vec<String>,
    /// Clean-up hooks that had not returned when their time was over, by name. They go on, on threads of
    /// the pool.
    pub abandoned_hooks: Vec<String>,
}

/// So long a hook waits for a thread of the pool.
const SOMEBODY_COMES: Duration = Duration::from_secs(1);

/// The end of the pool beneath drains its worker pools: what waits for another attempt, or for its time, is
/// waited for if that time comes before the deadline.
impl Served for Common {
    fn remains(&self, deadline: u64) -> Remains {
        match self.under_way() {
            0 => Remains::Nothing,
            tasks if self.wait_lists.delay_queue.all_sleep_beyond(deadline, tasks) => {
                Remains::Later
            }
            _ => Remains::Work,
        }
    }

    fn cancelled(&self) -> u64 {
        self.task_types
            .all()
            .into_iter()
            .map(|task_type| task_type.stats.get(Event::Cancelled))
            .sum()
    }

    fn out(&self) -> u64 {
        let is_out = |&(head, seen): &(Head, record::Look)| {
            record::is(seen, Status::Running) && head.worker().is_none()
        };
        record::live(&pin(), |task_type| task_type.is_of(self)).filter(is_out).count() as u64
    }

    fn needs_host(&self) -> bool {
        // Relaxed: it is asked again.
        self.wait_lists.attempts.desk.waiting.load(Relaxed) > 0 || self.out() > 0
    }

    fn health(&self, say: &mut dyn FnMut(bool, String)) {
        let report = self.health();
        let stuck = report.stuck.len();
        match report.health {
            Health::Ready => {}
            Health::Degraded => say(true, format!("a worker pool has {stuck} stuck threads")),
            Health::Stuck => say(false, "all threads of a worker pool are stuck".into()),
            Health::Draining => say(false, "a worker pool is draining".into()),
        }
    }

    /// The lanes refuse what comes.
    fn close(&self) {}

    fn figures(&self, to: &mut crate::metrics::Collector, _pool: &str) {
        crate::task::metrics::collect(to, self);
    }
}

impl Common {
    /// How many tasks were accepted and have not ended.
    fn under_way(&self) -> u64 {
        // Against *begin an attempt, then look at the phase* in whoever runs one: what it runs was counted
        // before.
        store_load_barrier();
        self.task_types.all().into_iter().map(|task_type| task_type.stats.under_way()).sum()
    }

    /// Whether all that was accepted has ended, and the program has been told of each end: by observers, by
    /// [`on_end`](crate::task::TaskHandle::on_end), but for what runs around this very call.
    fn is_through(&self) -> bool {
        let told_now = || -> u64 {
            self.task_types.all().into_iter().map(|task_type| task_type.stats.told_now()).sum()
        };
        self.under_way() == 0 && told_now() <= told_here()
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
            // An end that has not seen the phase calls nobody.
            let left = deadline.left().map_or(LOOK_AGAIN, |left| left.min(LOOK_AGAIN));
            self.changed.wait(epoch, Some(left));
        }
    }
}

/// Whoever ends a task looks at the phase without a barrier. So a shutdown looks again by itself.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl WorkerPool {
    /// Has `hook` run at the end of a shutdown, the last one that was registered first. It runs on a
    /// thread of the pool; if none comes to it within a second (or half of the time that is left), or the
    /// pool takes no more work, on the thread that shuts down, which cannot leave it alone then.
    pub fn on_shutdown(&self, name: &str, hook: impl FnOnce() + Send + 'static) {
        self.common.hooks.push(name, Box::new(hook));
    }

    /// Shuts the worker pool down: refuses new work, lets what was accepted end, then cancels what has
    /// not begun and asks what runs to stop, then runs the clean-up hooks. The pool beneath goes on.
    /// A task has ended here when the program has been told so: the functions given to
    /// [`on_end`](crate::task::TaskHandle::on_end) and the observers have returned.
    ///
    /// Any thread. Inside the pool it is a request: new work is refused from then on, and a thread
    /// outside must call it for the rest. Calling it again is harmless.
    pub fn shutdown(&self, phases: Phases) -> ShutdownReport {
        let common = &*self.common;
        if common.shared.is_forked() {
            return ShutdownReport::default();
        }
        let before = self.completed();
        let log = &common.log;
        // Whoever comes later is told of nothing new.
        let begun = common.phase();
        if begun == OPEN {
            log.info(Component::Task, "workers.draining", |record| {
                record.with("time_ns", nanos(phases.drain)).say("no more tasks are taken");
            });
        }
        self.enter(DRAINING);
        if self.pool.is_inside() {
            return ShutdownReport { requested: true, ..ShutdownReport::default() };
        }
        let drain = Deadline::after(Some(phases.drain));
        let drained = common.wait_until(drain, || common.is_through());
        // Those that wait come before the threads hear that they must not begin them, and before those
        // that run are asked: so they are told of by name.
        if begun < STOPPING {
            log.info(Component::Task, "workers.stopping", |record| {
                record
                    .with("drained", u64::from(drained))
                    .with("time_ns", nanos(phases.stop))
                    .say("what has not begun is cancelled, and what runs is asked to stop");
            });
        }
        let mut cancelled = self.cancel_waiting();
        self.enter(STOPPING);
        cancelled.extend(self.cancel_waiting());
        self.ask_running();
        let stop = Deadline::after(Some(phases.stop));
        common.wait_until(stop, || common.is_through());
        common.wait_lists.attempts.end();
        let name = |head: Head| (head.task_type().name().to_owned(), head.worker());
        let stuck = self.left(&pin()).map(|(head, _)| name(head)).collect();
        let report = ShutdownReport {
            requested: false,
            drained: drained && cancelled.is_empty(),
            stuck,
            cancelled,
            completed: self.completed_since(&before),
            ..self.clean_up(Deadline::after(Some(phases.clean_up)))
        };
        if begun < STOPPING {
            log.info(Component::Task, "workers.stopped", |record| {
                record
                    .with("drained", u64::from(report.drained))
                    .with("cancelled", report.cancelled.len())
                    .with("stuck", report.stuck.len())
                    .say("the worker pool has stopped");
            });
        }
        report
    }

    fn completed(&self) -> Vec<(String, u64)> {
        self.stats()
            .task_types
            .into_iter()
            .map(|task_type| (task_type.name, task_type.completed))
            .collect()
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

    /// Tells all task types. Those to come look at the worker pool's own phase.
    fn enter(&self, phase: u32) {
        self.common.phase.fetch_max(phase, AcqRel);
        self.common.task_types.all().into_iter().for_each(|task_type| task_type.enter(phase));
    }

    fn left<'a>(&'a self, pin: &'a Pin) -> impl Iterator<Item = (Head, record::Look)> + 'a {
        record::live(pin, |task_type| task_type.is_of(&self.common))
    }

    /// What waits ends here.
    fn cancel_waiting(&self) -> Vec<String> {
        let mut cancelled = Vec::new();
        for (head, seen) in self.left(&pin()) {
            let may =
                |now: record::Look| now.is_same_task(seen) && !record::is(now, Status::Running);
            let name = head.task_type().name();
            if head.end_if(Status::Cancelled, may) {
                cancelled.push(name.to_owned());
            }
        }
        cancelled
    }

    fn ask_running(&self) {
        self.left(&pin()).for_each(|(head, seen)| head.ask_seen(seen));
    }

    /// Of the report, what the hooks have come to.
    fn clean_up(&self, deadline: Deadline) -> ShutdownReport {
        let mut report = ShutdownReport::default();
        while let Some((name, hook)) = self.common.hooks.pop() {
            let done = if deadline.is_over() { Some(false) } else { self.run_hook(hook, deadline) };
            match done {
                Some(true) => {}
                Some(false) => report.failed_hooks.push(name),
                None => report.abandoned_hooks.push(name),
            }
        }
        report
    }

    /// Whether it has returned as it should. None: not in time.
    fn run_hook(&self, hook: Hook, deadline: Deadline) -> Option<bool> {
        // Whoever takes it first runs it.
        let place = Arc::new(Mutex::new(Some(hook)));
        let take = |place: &Mutex<Option<Hook>>| {
            place.lock().unwrap_or_else(PoisonError::into_inner).take()
        };
        let theirs = Arc::clone(&place);
        let work = move || take(&theirs).is_some_and(|hook| contain(hook).is_some());
        let Ok(mut task) = self.pool.lane(Lane::Critical).try_submit(work) else {
            return take(&place).map(|hook| contain(hook).is_some());
        };
        let left = || deadline.left().unwrap_or(Duration::MAX);
        if let Ok(good) = task.wait_timeout(SOMEBODY_COMES.min(left() / 2)) {
            return Some(good);
        }
        match take(&place) {
            Some(hook) => Some(contain(hook).is_some()),
            None => task.wait_timeout(left()).ok(),
        }
    }
}
