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
use super::waiting::Turn;
use super::{STOPPING, limits, observe};
use crate::error::Error;
use crate::pool::{self, contain, current, message_of, seat_here};
use crate::queue::Run;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What is queued: the closure, with the end of its task that it must come to.
pub(super) struct Job<B, T: Send + 'static> {
    runner: Runner<T>,
    body: B,
}

/// A task's closure, or one with what few tasks have besides.
pub(super) trait Body: Send + 'static {
    type Output;

    fn call(&mut self, attempt: &Attempt<'_>) -> Self::Output;

    /// Its turn at its key, if it has one.
    fn turn(&mut self) -> Option<&mut Turn> {
        None
    }
}

impl<F, R> Body for F
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
{
    type Output = R;

    #[inline]
    fn call(&mut self, attempt: &Attempt<'_>) -> R {
        self(attempt)
    }
}

impl<B, T: Send + 'static> Job<B, T> {
    #[inline]
    pub(super) fn new(runner: Runner<T>, body: B) -> Self {
        Self { runner, body }
    }

    /// The closure of a job that was not taken in. `first`: its task has not ended otherwise.
    pub(super) fn into_body(self, first: &mut bool) -> B {
        *first = self.runner.forget();
        self.body
    }

    pub(super) fn body(&mut self) -> &mut B {
        &mut self.body
    }

    pub(super) fn head(&self) -> Head {
        Head(self.runner.record())
    }
}

impl<B, T> Run for Job<B, T>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    #[inline]
    fn run(mut self) {
        let head = self.head();
        let kind = head.kind();
        let now = kind.stamp(head.attempt_limit());
        if !limits::may_begin(head, kind, now) {
            return self.not_begun();
        }
        if let Some(gate) = &kind.gate {
            match gate.pass(head, self) {
                Some(job) => self = job,
                None => return pool::report(pool::Outcome::Cancelled),
            }
        }
        let worker = seat_here();
        let number = head.note_begin(now, worker);
        let (place, due) = limits::take_place(head, kind, worker);
        if !self.runner.begin() {
            drop(place);
            return self.not_begun();
        }
        if let (Some(waits), 1) = (kind.waits, number) {
            waits.note(now.saturating_sub(head.submitted()));
        }
        kind.guard.watch(due);
        let attempt = Attempt::new(head, number);
        let result = catch_unwind(AssertUnwindSafe(|| self.body.call(&attempt).into_result()));
        drop(place);
        head.note_return(kind.stamp(u64::MAX));
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

impl<B, T> Job<B, T>
where
    B: Body<Output: Outcome<Value = T>>,
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
            Some(delay) if self.runner.retry() => self.try_again(number, fault, delay),
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
        let now = kind.clock.now();
        let elapsed = Duration::from_nanos(now.saturating_sub(head.submitted()));
        let seed = kind.lobby.draw();
        // A function of the user's may choose the delay, and panic.
        let next = || head.with_retry(|retry| retry.next(number, elapsed, after, seed));
        let delay = contain(next)?.ok()?;
        // One that could only begin after the end of all its time is none.
        let overall = Duration::from_nanos(head.limits().overall);
        if elapsed.saturating_add(delay) >= overall {
            return None;
        }
        kind.affords_retry(now).then_some(delay)
    }

    fn try_again(self, number: u32, fault: Fault, delay: Duration) {
        let head = self.head();
        head.kind().stats.count(Event::Retried);
        observe::tell_retry(head, number, fault.message(), delay);
        if delay.is_zero() {
            return self.go_on();
        }
        let Some((shared, _)) = current() else { return };
        // Every timer is in use. By any other error the pool stops, and the task ends with its job.
        if let Err((Error::Full { .. }, job)) = self.sleep(&shared, delay) {
            job.end(Status::Failed, fault);
        }
    }
}
