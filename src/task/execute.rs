//! One attempt, and what follows from how it went.
//!
//! ```text
//!   lane ─► begin ─► function ─► returned ─┬─ a value ───────────────► finish(Completed)
//!            │                             ├─ failed, one is left ───► timer ─► lane
//!            └─ ended meanwhile: dropped   └─ failed ────────────────► finish(Failed | …)
//! ```
//!
//! The closure travels with its runner, from the lane to the thread, to the timer, and back: it is never
//! in two places, so attempts do not overlap.

use super::attempt::{Advice, Attempt, Fault, Outcome};
use super::record::{Head, Runner};
use super::report::Status;
use super::stats::Event;
use super::{STOPPING, limits, observe};
use crate::error::Rejected;
use crate::pool::{self, Shared, current, message_of, seat_here};
use crate::queue::Run;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// When a retry finds its lane full it tries again after this.
const LANE_WAIT: Duration = Duration::from_millis(1);

/// What is queued: the closure, with the end of its task that it must come to.
pub(super) struct Job<F, T: Send + 'static> {
    runner: Runner<T>,
    work: F,
}

impl<F, T: Send + 'static> Job<F, T> {
    #[inline]
    pub(super) fn new(runner: Runner<T>, work: F) -> Self {
        Self { runner, work }
    }

    /// The closure of a job that was not taken in. `first`: its task has not ended otherwise.
    pub(super) fn into_work(self, first: &mut bool) -> F {
        *first = self.runner.forget();
        self.work
    }

    fn head(&self) -> Head {
        Head(self.runner.record())
    }
}

impl<F, R, T> Run for Job<F, T>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome<Value = T>,
    T: Send + 'static,
{
    #[inline]
    fn run(mut self) {
        let head = self.head();
        let kind = head.kind();
        let now = kind.stamp();
        if !limits::may_begin(head, kind, now) {
            return self.not_begun();
        }
        let worker = seat_here();
        let number = head.note_begin(now, worker);
        if !self.runner.begin() {
            return self.not_begun();
        }
        kind.stats.count(Event::Begun);
        let _watched = limits::watch(head, kind, worker);
        let attempt = Attempt::new(head, number);
        let result = catch_unwind(AssertUnwindSafe(|| (self.work)(&attempt).into_result()));
        drop(_watched);
        head.note_return(kind.stamp());
        kind.stats.count(Event::Returned);
        match result {
            Ok(Ok(value)) => self.runner.finish(Status::Completed as u32, Ok(value), None),
            Ok(Err(fault)) => self.failed(number, fault),
            Err(panic) => {
                let fault = Fault::panicked(message_of(&*panic));
                pool::discard(panic);
                self.failed(number, fault);
            }
        }
    }
}

impl<F, R, T> Job<F, T>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome<Value = T>,
    T: Send + 'static,
{
    /// The task has ended already, or ends here.
    #[cold]
    fn not_begun(self) {
        pool::report(pool::Outcome::Cancelled);
    }

    #[cold]
    fn failed(self, number: u32, fault: Fault) {
        let head = self.head();
        if head.is_asked() {
            pool::report(pool::Outcome::Cancelled);
            return self.end(Status::Cancelled, fault);
        }
        pool::report(pool::Outcome::Failed);
        // Before another attempt can clear it.
        let late = head.is_late();
        match self.delay_after(number, &fault) {
            Some(delay) if self.runner.retry() => self.try_again(number, &fault, delay),
            _ if late => self.end(Status::TimedOut, fault),
            _ => self.end(Status::Failed, fault),
        }
    }

    fn end(self, status: Status, fault: Fault) {
        let told = self.head().kind().told;
        let message = told.then(|| fault.message().to_owned());
        self.runner.finish(status as u32, Err(fault), message.as_deref());
    }

    /// When there is to be another attempt. None: there is none.
    fn delay_after(&self, number: u32, fault: &Fault) -> Option<Duration> {
        let head = self.head();
        let kind = head.kind();
        if kind.phase() == STOPPING {
            return None;
        }
        let after = match fault.advice() {
            Advice::Permanent => return None,
            Advice::After(delay) => Some(delay),
            Advice::Transient | Advice::Panicked => None,
        };
        let elapsed = kind.clock.now().saturating_sub(head.submitted());
        let elapsed = Duration::from_nanos(elapsed);
        let delay = head.with_retry(|retry| retry.next(number, elapsed, after, head.id())).ok()?;
        // One that could only begin after the end of all its time is none.
        let overall = Duration::from_nanos(head.limits().overall);
        (elapsed.saturating_add(delay) < overall).then_some(delay)
    }

    fn try_again(self, number: u32, fault: &Fault, delay: Duration) {
        let head = self.head();
        head.kind().stats.count(Event::Retried);
        observe::tell_retry(head, number, fault.message(), delay);
        if let Some((shared, _)) = current() {
            self.post_after(&shared, delay);
        }
    }

    /// Puts the job back into its lane after `delay`. Should that fail, the pool stops, and dropping
    /// the job ends its task.
    fn post_after(self, shared: &Arc<Shared>, delay: Duration) {
        let armed = shared.after_or_back(delay, move || self.post_again());
        if let Err((_, work)) = armed {
            drop(work);
        }
    }

    /// Runs as a timer, in the pool.
    fn post_again(self) {
        let head = self.head();
        let Some((shared, _)) = current() else { return };
        if head.is_ended() {
            return;
        }
        match shared.try_post(head.lane(), self) {
            Ok(()) => {}
            Err(Rejected::Full(job)) => job.post_after(&shared, LANE_WAIT),
            Err(Rejected::ShutDown(job) | Rejected::Forked(job)) => drop(job),
        }
    }
}
