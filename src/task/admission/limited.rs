//! Tasks that wait because as many of their name run as may, or have started as often as they may.
//!
//! A job that is about to begin needs a *place*, if its name has a bound on those that run, and a token
//! of the [`Tokens`], if it has a rate: so the rate is one of starts, however long the lanes are. Without
//! them it goes into the limiter, which lets it back into its lane when it may begin.
//!
//! ```text
//!   lane ─► a place, a token? ─── yes, and nobody older waits ───► attempt ──┐ its place is free
//!     ▲             └── no ─► line, by age ─┐                                │
//!     └──── let go, with a place ◄──────────┴── a token is there: one timer ─┴── per name
//! ```
//!
//! No thread waits with it, and the threads go on with tasks of other names. A place is kept from when
//! its job is let go, or begins, until the function has returned, or the job is dropped. Between two
//! attempts a task has none. One with a tag has none once it has ended: its host may never
//! come back.
//!
//! # Invariants
//!
//! 1. Every start takes a token. So the bound of `time/rate.rs` holds for starts. Nobody is let go for a token
//!    that somebody else was let go for.
//! 2. Places that are free, and jobs that have one, are together as many as may run.
//! 3. A job that was not let go begins only if no older one of its name is in the line: the young cannot
//!    starve the old. One that was let go, and finds its token gone, gives its place back and takes its
//!    old place in the line.
//! 4. If a place is free and somebody waits then somebody is letting go, or there is no token, `armed` is
//!    set, and a [`Wake`] is on its way.
//! 5. While a job waits for a place a `Wake` is in a timer that never comes. Any of them, dropped unrun
//!    because the pool stops, ends who is in the line.
//!
//! # Orderings
//!
//! All of the line under its lock, which is held for a few steps, never while a job is let go or dropped.
//! One thread at a time lets go; others only note that a place is free, and it looks again before it
//! stops. So letting go does not recurse, though what is let go may end at once and free its place.

use crate::error::Error;
use crate::pool::{Timer, contain};
use crate::queue::{Lane, Run};
use crate::task::admission::limiter::Limiter;
use crate::task::common::TaskTypeInner;
use crate::task::record::{Head, Place};
use crate::task::record::{Parked, Waits};
use crate::time::MAX_DELAY;
use core::time::Duration;

impl Limiter<Parked> {
    /// Lets a task begin now, or keeps its job until it may: then there is no answer.
    pub(in crate::task) fn pass<J: Waits + 'static>(&self, head: Head, job: J) -> Option<J> {
        let task_type = head.task_type();
        let was_let_go = head.take_released();
        if was_let_go && self.line.places.is_some() && !head.take_place() {
            // The task has ended, and gave its place up. It does not begin.
            self.line.leave(false, true);
            self.let_go(task_type);
            return Some(job);
        }
        let token = || self.tokens.as_ref().is_none_or(|it| it.take(task_type.clock.now()).is_ok());
        let starts = self.line.start(head.submitted(), was_let_go, token);
        if self.line.places.is_some() {
            head.set_place(starts);
        }
        if starts {
            return Some(job);
        }
        self.keep_waiting(head, job);
        self.let_go(task_type);
        None
    }

    #[cold]
    fn keep_waiting<J: Waits + 'static>(&self, head: Head, job: J) {
        let task_type = head.task_type();
        if self.line.places.is_some() && self.line.is_first_to_wait() {
            self.arm(task_type, MAX_DELAY);
        }
        // One of two notices an end that comes now: who ends it, or this.
        if head.when_ended(|extras| extras.place = Place::Limiter) {
            return;
        }
        let ended = self.line.wait(head.submitted(), Box::new(job), || head.is_ended());
        let _panicked = contain(|| drop(ended));
    }

    /// The attempt has returned: its place, if it had one, is free.
    #[inline]
    pub(in crate::task) fn leave(&self, head: Head) {
        if head.take_place() {
            self.give_back(head.task_type());
        }
    }

    /// The same for a place that the attempt itself had.
    pub(in crate::task) fn give_back(&self, task_type: &'static TaskTypeInner) {
        self.line.leave(true, false);
        self.let_go(task_type);
    }

    /// The job is dropped: what it had or was promised is another's.
    pub(in crate::task) fn gone_unrun(&self, head: Head) {
        let (had_place, was_let_go) = (head.take_place(), head.take_released());
        if had_place || was_let_go {
            self.line.leave(had_place, was_let_go);
            self.let_go(head.task_type());
        }
    }

    /// Lets go who may.
    #[cold]
    fn let_go(&self, task_type: &'static TaskTypeInner) {
        let permits = |promised| {
            let Some(tokens) = &self.tokens else { return Ok(()) };
            let now = task_type.clock.now();
            match tokens.available(now) > promised {
                true => Ok(()),
                false => Err(Duration::from_nanos(tokens.next(now, promised) - now)),
            }
        };
        let delay = self.line.let_go(permits, |job| {
            job.task().set_released(self.line.places.is_some());
            let _panicked = contain(|| job.go());
        });
        if let Some(delay) = delay {
            self.arm(task_type, delay);
        }
    }

    fn arm(&self, task_type: &'static TaskTypeInner, delay: Duration) {
        let Some(common) = task_type.common() else { return };
        let shared = &common.shared;
        let wake = Wake { task_type: Some(task_type) };
        let Err((error, mut wake)) = Timer::after(shared, delay, wake, |_| ()) else { return };
        match error {
            // Every timer is in use. Going round through a lane wastes work, but not the tasks.
            Error::Full { .. } if delay < MAX_DELAY => drop(shared.try_post(Lane::Low, wake)),
            // Those who run come by, each when it is through.
            Error::Full { .. } => wake.task_type = None,
            _ => drop(wake),
        }
    }

    /// Takes the job of a task that has ended.
    pub(in crate::task) fn take_out(&self, head: Head) -> Option<Parked> {
        let id = head.id();
        self.line.take_out(head.submitted(), |job| job.task().id() == id)
    }

    /// The pool stops: nobody will come for them.
    fn drop_all(&self) {
        for job in self.line.take_all() {
            let _panicked = contain(|| drop(job));
        }
    }
}

/// Opens a limiter when it runs.
struct Wake {
    /// None: it has run.
    task_type: Option<&'static TaskTypeInner>,
}

impl Run for Wake {
    fn run(mut self) {
        if let Some(task_type) = self.task_type.take()
            && let Some(limiter) = &task_type.limiter
        {
            limiter.line.lock().armed = false;
            limiter.let_go(task_type);
        }
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        if let Some(limiter) = self.task_type.and_then(|task_type| task_type.limiter.as_ref()) {
            limiter.drop_all();
        }
    }
}
