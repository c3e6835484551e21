//! One attempt, and what follows from how it went.
//!
//! ```text
//!   lane ─► begin ─► before ─► function ─► returned ─┬─ a value ───────────────► end(Completed)
//!            │                                       ├─ failed, one is left ───► timer ─► lane
//!            └─ ended meanwhile: dropped             └─ failed ────────────────► end(Failed)
//! ```

use super::attempt::{Advice, Attempt, Fault, Outcome};
use super::record::{Head, Record};
use super::report::Status;
use super::retry::Retry;
use super::{STOPPING, limits, observe, stats};
use crate::error::Rejected;
use crate::pool::{self, contain, message_of, seat_in};
use crate::queue::Run;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// When a retry finds its lane full it tries again after this.
const LANE_WAIT: Duration = Duration::from_millis(1);

/// What is queued: the closure, with the end of its task that it must come to.
pub(super) struct Job<F, T: Send + 'static> {
    runner: Runner<T>,
    retry: Option<Retry>,
    work: F,
}

/// The closure's side of a task. Dropped before the end, it reports "cancelled".
struct Runner<T: Send + 'static>(Arc<Record<T>>);

impl<T: Send + 'static> Drop for Runner<T> {
    fn drop(&mut self) {
        finish(&self.0.head, Status::Cancelled);
    }
}

/// Brings a task to an end that is not its function's own, unless it has ended. True: this was it.
pub(super) fn finish(head: &Head, status: Status) -> bool {
    finish_if(head, status, |_| true)
}

/// As `finish`, if `may` allows it by the status that the task has.
pub(super) fn finish_if(head: &Head, status: Status, may: impl Fn(Status) -> bool) -> bool {
    let Some(before) = head.end_if(status, may) else { return false };
    head.note_times(head.kind.common().now(), before);
    settle(head, status, Some(reason(head, status)));
    true
}

/// Why a task has no value, in words, if its function did not say.
pub(super) fn reason(head: &Head, status: Status) -> &'static str {
    match status {
        Status::Cancelled => "it was cancelled",
        Status::Rejected => "it was dropped to make room for others",
        _ if head.attempts() == 0 => "its time was over before it could begin",
        _ => "its time was over",
    }
}

/// Bookkeeping of an end, by whoever has set it.
fn settle(head: &Head, status: Status, message: Option<&str>) {
    let kind = &head.kind;
    stats::ended(kind, status);
    observe::tell_end(head, status, message);
    kind.common().live.remove(head.id);
    head.announce();
    kind.common().note_end();
}

impl<F, T: Send + 'static> Job<F, T> {
    pub(super) fn new(record: Arc<Record<T>>, retry: Option<Retry>, work: F) -> Self {
        Self { runner: Runner(record), retry, work }
    }
}

/// The closure of a job that was not taken in. Its task never was.
pub(super) fn work_of<F, T: Send + 'static>(rejected: Rejected<Job<F, T>>) -> Rejected<F> {
    rejected.map(|job| {
        let _first = job.runner.0.head.end_if(Status::Rejected, |_| true);
        job.work
    })
}

impl<F, R, T> Run for Job<F, T>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome<Value = T>,
    T: Send + 'static,
{
    fn run(mut self) {
        let record = Arc::clone(&self.runner.0);
        let head = &record.head;
        let kind = &head.kind;
        let common = kind.common();
        if common.phase() == STOPPING {
            finish(head, Status::Cancelled);
        }
        let now = common.now();
        limits::end_if_late(head, now);
        let Some(number) = head.begin(now, seat_in(&common.shared)) else {
            pool::report(pool::Outcome::Cancelled);
            return;
        };
        stats::began(kind);
        limits::begin(&record, number, now);
        let attempt = Attempt::new(head, number);
        let run = AssertUnwindSafe(|| (self.work)(&attempt).into_result());
        let result = catch_unwind(run);
        head.note_return(common.now());
        stats::returned(kind);
        match result {
            Ok(Ok(value)) => self.complete(value),
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
    fn complete(self, value: T) {
        end_with(&self.runner.0, Status::Completed, Ok(value));
    }

    fn failed(self, number: u32, fault: Fault) {
        let head = &self.runner.0.head;
        if head.is_asked() {
            pool::report(pool::Outcome::Cancelled);
            return end_with(&self.runner.0, Status::Cancelled, Err(fault));
        }
        pool::report(pool::Outcome::Failed);
        match self.delay_after(number, &fault) {
            Some(delay) if head.retry() => self.try_again(number, &fault, delay),
            _ if head.is_late() => end_with(&self.runner.0, Status::TimedOut, Err(fault)),
            _ => end_with(&self.runner.0, Status::Failed, Err(fault)),
        }
    }

    /// When there is to be another attempt. None: there is none.
    fn delay_after(&self, number: u32, fault: &Fault) -> Option<Duration> {
        let head = &self.runner.0.head;
        if head.kind.common().phase() == STOPPING {
            return None;
        }
        let retry = self.retry.as_ref().unwrap_or(&head.kind.settings.retry);
        let planned = retry.delay_after(number)?;
        match fault.advice() {
            Advice::Permanent => None,
            Advice::After(delay) => Some(delay),
            Advice::Transient | Advice::Panicked => Some(planned),
        }
    }

    fn try_again(self, number: u32, fault: &Fault, delay: Duration) {
        let record = Arc::clone(&self.runner.0);
        stats::retried(&record.head.kind);
        observe::tell_retry(&record.head, number, fault.message(), delay);
        self.post_after(delay);
    }

    /// Puts the job back into its lane after `delay`. Should that fail, the pool stops, and dropping
    /// the job ends its task.
    fn post_after(self, delay: Duration) {
        let shared = Arc::clone(&self.runner.0.head.kind.common().shared);
        let armed = shared.after_or_back(delay, move || self.post_again());
        if let Err((_, work)) = armed {
            drop(work);
        }
    }

    fn post_again(self) {
        let record = Arc::clone(&self.runner.0);
        if record.head.is_ended() {
            return;
        }
        let shared = &record.head.kind.common().shared;
        match shared.try_post(record.head.lane, self) {
            Ok(()) => {}
            Err(Rejected::Full(job)) => job.post_after(LANE_WAIT),
            Err(Rejected::ShutDown(job) | Rejected::Forked(job)) => drop(job),
        }
    }
}

/// The end that the function itself has come to.
fn end_with<T: Send + 'static>(record: &Arc<Record<T>>, status: Status, result: Result<T, Fault>) {
    let message = result.as_ref().err().map(|fault| fault.message().to_owned());
    let place = || record.value.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *place() = Some(result);
    if record.head.end_if(status, |_| true).is_some() {
        settle(&record.head, status, message.as_deref());
    } else {
        // It has ended otherwise meanwhile, and nobody wants this.
        let unwanted = place().take();
        let _panicked = contain(|| drop(unwanted));
    }
}
