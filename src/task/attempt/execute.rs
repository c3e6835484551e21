//! One attempt, and what follows from how it went.
//!
//! ```text
//!   lane ─► begin ─► function ─► returned ─┬─ a value ───────────────► finish(Completed)
//!            │                             ├─ failed, one is left ───► timer ─► lane
//!            └─ ended meanwhile: dropped   └─ failed ────────────────► finish(Failed | …)
//! ```
//!
//! The closure travels with its runner, from the lane to the thread, to the timer, and back: it is never
//! in two places, so attempts do not overlap. Where they may (`overlap.rs`), an attempt that returns claims
//! its runner before it goes on.
//!
//! A job whose attempts a host takes goes the same way, but begins and returns on threads of a host, and
//! lies in a table between the two: see `tagged.rs`.

use crate::error::Rejected;
use crate::pool::{self, Shared, contain, member_here};
use crate::queue::{Lane, Run};
use crate::sync::barrier_after_change;
use crate::task::attempt::Attempt;
use crate::task::attempt::fault::{Advice, Fault, Outcome};
use crate::task::attempt::guard::Begun;
use crate::task::attempt::limits;
use crate::task::attempt::middleware::{around, caught};
use crate::task::attempt::waiting::Turn;
use crate::task::common::STOPPING;
use crate::task::counters::Event;
use crate::task::record::Hold;
use crate::task::record::{Head, Runner};
use crate::task::result::observe;
use crate::task::result::report::Status;
use crate::task::settings::OverloadPolicy;
use crate::trace;
use core::time::Duration;

/// What is queued: the closure, with the end of its task that it must come to.
pub(in crate::task) struct Job<B, T: Send + 'static> {
    runner: Runner<T>,
    body: B,
}

/// A task's closure, or one with what few tasks have besides.
pub(in crate::task) trait Body: Send + 'static {
    type Output;

    /// Its attempts are taken by threads of a host. Then a call only says what success is.
    const TAGGED: bool = false;

    /// An attempt of it may be overtaken.
    const OVERLAPS: bool = false;

    fn call(&mut self, attempt: &Attempt<'_>) -> Self::Output;

    /// By what the host that takes its attempts knows it.
    fn tag(&self) -> u64 {
        0
    }

    /// Its turn at its key, if it has one.
    fn turn(&mut self) -> Option<&mut Turn> {
        None
    }

    /// An attempt begins.
    fn begun(&mut self) {}

    /// If attempts may overlap: its key, until all of them have returned.
    fn keep(&mut self, _key: Hold) {}
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
    pub(in crate::task) fn new(runner: Runner<T>, body: B) -> Self {
        Self { runner, body }
    }

    /// The closure of a job that was not taken in. `first`: its task has not ended otherwise.
    pub(in crate::task) fn into_body(self, first: &mut bool) -> B {
        *first = self.runner.forget();
        self.body
    }

    pub(in crate::task) fn body(&mut self) -> &mut B {
        &mut self.body
    }

    pub(in crate::task) fn body_ref(&self) -> &B {
        &self.body
    }

    pub(in crate::task) fn head(&self) -> Head {
        Head(self.runner.record())
    }
}

impl<B, T> Run for Job<B, T>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    fn name() -> &'static str {
        // That of its type, when it runs.
        ""
    }

    #[inline]
    fn run(self) {
        self.run_on(member_here());
    }
}

impl<B, T> Job<B, T>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    /// Runs the attempt in the submitter's thread, which may be another pool's.
    #[cold]
    pub(in crate::task) fn run_here(self) {
        let outcome = pool::take_outcome();
        let _panicked = contain(|| self.run_on(None));
        pool::report(outcome);
    }

    /// `worker` is the thread's number in the task's own pool. None: it has none there.
    #[inline]
    fn run_on(mut self, worker: Option<usize>) {
        let head = self.head();
        let task_type = head.task_type();
        if worker.is_some() {
            trace::runs(task_type.runs);
        }
        // Of other limits it is not known here how short they are.
        let other = head.has_other_limits();
        let limit = if other { 0 } else { head.attempt_limit() };
        let now = match worker {
            Some(_) => task_type.stamp_begin(limit),
            None => task_type.stamp(limit),
        };
        if !limits::may_begin(head, task_type, now, other) {
            return self.not_begun();
        }
        if let Some(limiter) = &task_type.limiter {
            match limiter.pass(head, self) {
                Some(job) => self = job,
                None => return pool::report(pool::Outcome::Cancelled),
            }
        }
        let Some(begun) = self.begin(now, worker, other) else { return self.not_begun() };
        if B::OVERLAPS && begun.is_void {
            return self.discard::<T>(begun, Err(Fault::new("the pool has stopped")));
        }
        match worker {
            Some(_) => task_type.guard.watch(begun.due),
            None => limits::watch_alone(head, begun.due),
        }
        let attempt = Attempt::new(head, begun.number, worker.is_none().then_some(limits::enforce));
        let mut call = || caught(|| self.body.call(&attempt).into_result());
        let result = match task_type.has_middleware {
            false => call(),
            true => around(task_type, &attempt, call),
        };
        if B::OVERLAPS && self.is_overtaken(&begun) {
            return self.discard(begun, result);
        }
        let fault = match result {
            Ok(value) => {
                self.complete(begun, value);
                return;
            }
            Err(fault) => fault,
        };
        pool::report(match head.is_asked() {
            true => pool::Outcome::Cancelled,
            false => pool::Outcome::Failed,
        });
        self.fail(begun, fault);
    }

    /// Puts it to where its attempt is begun from: if that is a lane, to its task's, which is `lane`. What `full` says of a lane is not for those with a
    /// tag.
    #[inline]
    pub(in crate::task) fn post(
        self,
        shared: &Shared,
        lane: Lane,
        full: OverloadPolicy,
    ) -> Result<(), Rejected<Self>> {
        match B::TAGGED {
            true => self.head().task_type().wait_lists.attempts.put(self),
            false => crate::task::admission::lane::take_in(full, shared, lane, self),
        }
    }

    /// As [`post`](Self::post), and never waits.
    pub(in crate::task) fn try_post(self, shared: &Shared) -> Result<(), Rejected<Self>> {
        match B::TAGGED {
            true => self.head().task_type().wait_lists.attempts.put(self),
            false => {
                let lane = self.head().lane();
                shared.try_post(lane, self)
            }
        }
    }

    /// The task has ended already, or ends here.
    #[cold]
    fn not_begun(self) {
        pool::report(pool::Outcome::Cancelled);
    }

    /// Begins an attempt at `now`, on the thread that runs it. `other`: it may have other limits than that of
    /// its attempts. None: the task has ended.
    #[inline]
    pub(in crate::task) fn begin(
        &mut self,
        now: u64,
        worker: Option<usize>,
        other: bool,
    ) -> Option<Begun> {
        let head = self.head();
        let task_type = head.task_type();
        let number = head.note_begin(now, worker);
        let (place, due) = limits::take_place(head, task_type, worker, now, other);
        let seen = self.runner.begin()?;
        self.body.begun();
        // A shutdown that has not counted this task has entered its last phase by now.
        barrier_after_change();
        let stops = task_type.phase() == STOPPING;
        // Whoever has overtaken it has the runner.
        let is_void = B::OVERLAPS && stops && !self.runner.claim(seen, || head.noted() == number);
        if stops && !is_void {
            drop(place);
            self.runner.unbegin();
            head.note_unbegun(number);
            return None;
        }
        if let (Some(waits), 1) = (task_type.waits, number) {
            waits.note(now.saturating_sub(head.submitted()));
        }
        let has_place = B::OVERLAPS && !B::TAGGED && head.take_place();
        Some(Begun { number, due, seen, place, has_place, is_void })
    }

    /// Whether the attempt, which has returned, is not the task's any more.
    pub(in crate::task) fn is_overtaken(&self, begun: &Begun) -> bool {
        let head = self.head();
        !self.runner.claim(begun.seen, || head.noted() == begun.number)
    }

    /// The attempt has returned, and has been overtaken.
    #[cold]
    pub(in crate::task) fn discard<V>(self, begun: Begun, result: Result<V, Fault>) {
        let task_type = self.head().task_type();
        if !begun.is_void {
            begun.place.count(task_type.clock.now(), result.is_ok());
        }
        drop(begun.place);
        if begun.has_place
            && let Some(limiter) = &task_type.limiter
        {
            limiter.give_back(task_type);
        }
        task_type.stats.count(Event::Discarded);
        if result.is_err() {
            pool::report(pool::Outcome::Failed);
        }
        let Self { runner, body } = self;
        runner.yield_to_other();
        let _panicked = contain(|| drop((result, body)));
    }

    /// What follows when an attempt was overtaken: the runner is this one now.
    pub(in crate::task) fn follow(self) {
        let head = self.head();
        let number = head.attempts();
        head.note_return(head.task_type().clock.now());
        if B::TAGGED
            && let Some(limiter) = &head.task_type().limiter
        {
            limiter.leave(head);
        }
        let fault = Fault::new(head.reason(Status::TimedOut));
        if head.is_asked() {
            self.end(Status::Cancelled, fault);
            return;
        }
        match delay_after(head, number, &fault) {
            Some(delay) => {
                head.note_overtaken();
                self.try_again(number, &fault, delay);
            }
            None => {
                self.end(Status::TimedOut, fault);
            }
        }
    }

    /// The attempt has returned a value. False: the task had ended before.
    #[inline]
    pub(in crate::task) fn complete(self, begun: Begun, value: T) -> bool {
        let head = self.head();
        let task_type = head.task_type();
        let now = task_type.stamp_end(!core::mem::needs_drop::<B>());
        begun.place.count(now, true);
        drop(begun.place);
        head.note_return(now);
        leave_limiter(head, begun.has_place);
        let first = self.runner.finish(Status::Completed as u32, Ok(value), None);
        if !first {
            observe::tell_return(task_type);
        }
        first
    }

    /// The attempt has failed. What the task is then: None if it had ended before.
    #[cold]
    pub(in crate::task) fn fail(self, begun: Begun, fault: Fault) -> Option<Status> {
        let head = self.head();
        let now = head.task_type().stamp(u64::MAX);
        begun.place.count(now, false);
        drop(begun.place);
        head.note_return(now);
        leave_limiter(head, begun.has_place);
        if head.is_asked() {
            return self.end(Status::Cancelled, fault);
        }
        // Before another attempt can clear it.
        let late = head.is_late();
        match delay_after(head, begun.number, &fault) {
            Some(delay) if self.runner.retry() => match head.is_asked() {
                // Whoever asked while it ran still counts on that: from now on they end it themselves.
                true => self.end(Status::Cancelled, fault),
                false => self.try_again(begun.number, &fault, delay),
            },
            _ if late => self.end(Status::TimedOut, fault),
            _ => self.end(Status::Failed, fault),
        }
    }

    fn end(self, status: Status, fault: Fault) -> Option<Status> {
        let task_type = self.head().task_type();
        observe::tell_failure(self.head(), status, &fault);
        let told = task_type.told;
        let message = told.then(|| fault.message().to_owned());
        let first = self.runner.finish(status as u32, Err(fault), message.as_deref());
        if !first {
            observe::tell_return(task_type);
        }
        first.then_some(status)
    }

    fn try_again(self, number: u32, fault: &Fault, delay: Duration) -> Option<Status> {
        let head = self.head();
        head.task_type().stats.count(Event::Retried);
        observe::tell_retry(head, number, fault.message(), delay);
        if delay.is_zero() {
            self.go_on();
            return Some(Status::Retrying);
        }
        let Some(common) = head.task_type().common() else { return Some(Status::Cancelled) };
        match self.sleep(&common.shared, delay) {
            Ok(()) => Some(Status::Retrying),
            // The pool stops, and the task ends with its job.
            Err(_) => Some(Status::Cancelled),
        }
    }
}

// What follows an attempt is the same for each type of job, and so no part of it.

#[inline]
fn leave_limiter(head: Head, has_place: bool) {
    if let Some(limiter) = &head.task_type().limiter {
        match has_place {
            true => limiter.give_back(head.task_type()),
            false => limiter.leave(head),
        }
    }
}

/// When there is to be another attempt. None: there is none.
fn delay_after(head: Head, number: u32, fault: &Fault) -> Option<Duration> {
    let task_type = head.task_type();
    if task_type.phase() == STOPPING {
        return None;
    }
    let after = match fault.advice() {
        Advice::Permanent => return None,
        Advice::After(delay) => Some(delay),
        Advice::Transient | Advice::Panicked => None,
    };
    let now = task_type.clock.now();
    let elapsed = Duration::from_nanos(now.saturating_sub(head.submitted()));
    let seed = task_type.wait_lists.draw();
    // A function of the user's may choose the delay, and panic.
    let next = || head.with_retry(|retry| retry.next(number, elapsed, after, seed));
    let delay = contain(next)?.ok()?;
    // One that could only begin after the end of all its time is none.
    let overall = Duration::from_nanos(head.limits().overall);
    if elapsed.saturating_add(delay) >= overall {
        return None;
    }
    task_type.affords_retry(now).then_some(delay)
}
