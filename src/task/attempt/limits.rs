//! What is done when a time is over, and by whom.
//!
//! | time | from | to | what happens at its end |
//! |---|---|---|---|
//! | in the queue | submission | the first attempt | the task ends as TIMED_OUT, and never begins |
//! | of an attempt | its begin | its return | its token is set; without another attempt left, the task ends; if attempts may overlap, it is overtaken |
//! | soft | the begin of an attempt | its return | its token says so when it is asked: nobody has to look after it |
//! | of grace | the end of an attempt's time | its return | the task ends, as no other attempt can begin beside it |
//! | overall | submission | the end | the task ends; a function that runs is asked to stop |
//!
//! # No timer for each task
//!
//! Nearly all tasks end before their time is over. So arming must cost next to nothing, and three look
//! instead of one timer each:
//!
//! * **The thread that would begin it.** A task whose time is over is not begun.
//! * **Whoever waits for it** sleeps no longer than to its next limit (or, before the attempt has begun,
//!   than the attempt may take), and enforces it. So the promise to
//!   a waiter holds even if every thread of the pool is inside a function that does not listen.
//! * **The guard**, for what runs: there are no more attempts under way than threads. Each thread has a
//!   place where it says which task it runs. One timer per worker pool is armed for the earliest limit
//!   known when it was last looked; a thread that begins an attempt with a later limit arms nothing. When
//!   it fires it looks at all places.
//!
//! A callback or a future has nobody who sleeps. It gets a timer of its own.
//!
//! # Ordering
//!
//! A thread writes its place, changes the task's word, which is a barrier, and looks when the guard is due. The guard says that
//! it is not armed, passes a barrier, and looks at the places. One of them sees the other.

use crate::pool::{Shared, Timer, current};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{barrier_after_change, store_load_barrier};
use crate::task::arena::{Pin, pin};
use crate::task::attempt::guard::Begun;
use crate::task::attempt::guard::Guard;
use crate::task::attempt::guard::Watch;
use crate::task::attempt::guard::Watched;
use crate::task::common::TaskTypeInner;
use crate::task::common::{OPEN, STOPPING};
use crate::task::record::word::LATE;
use crate::task::record::{self, Head, is};
use crate::task::result::observe;
use crate::task::result::report::Status;
use std::sync::Arc;

const NEVER: u64 = u64::MAX;

/// Whether a task may begin now. If not it has ended. `other`: as `TaskTypeInner::has_other_limits` says.
#[inline]
pub(in crate::task) fn may_begin(
    head: Head,
    task_type: &'static TaskTypeInner,
    now: u64,
    other: bool,
) -> bool {
    if task_type.phase() != OPEN && !may_begin_late(head, task_type) {
        return false;
    }
    !other || !end_if_waited_too_long(head, now)
}

#[cold]
fn may_begin_late(head: Head, task_type: &'static TaskTypeInner) -> bool {
    if task_type.phase() == STOPPING {
        head.end_if(Status::Cancelled, |_| true);
    }
    !head.is_ended()
}

fn end_if_waited_too_long(head: Head, now: u64) -> bool {
    let limits = head.limits();
    let waited = now.saturating_sub(head.submitted());
    let is_over = waited >= limits.overall || head.attempts() == 0 && waited >= limits.queue;
    is_over && head.end_if(Status::TimedOut, |seen| !is(seen, Status::Running))
}

/// When the time of what the task does now is over, in all and for the attempt.
fn limits_of(head: Head, seen: record::Look) -> (u64, u64) {
    let limits = head.limits();
    let from_start = match is(seen, Status::Pending) {
        true => limits.overall.min(limits.queue),
        false => limits.overall,
    };
    let of_attempt = match is(seen, Status::Running) {
        true => head.attempt_deadline(),
        false => NEVER,
    };
    (head.deadline_from_start(from_start), of_attempt)
}

/// Ends a task whose time is over; marks an attempt whose time is. When the next of its limits is due:
/// NEVER if there is none. The caller is an end of the task.
pub(in crate::task) fn enforce(head: Head) -> u64 {
    enforce_seen(head, head.look(), head.task_type().clock.now())
}

/// The same for who sleeps until the task's end: when to look again. Of an attempt that has not begun
/// nobody knows when its time will be over, and nobody else may be there to look then.
pub(in crate::task) fn enforce_asleep(head: Head) -> u64 {
    let (seen, now) = (head.look(), head.task_type().clock.now());
    let due = enforce_seen(head, seen, now);
    match head.attempt_limit() {
        limit if limit != NEVER && !is(seen, Status::Running) => {
            due.min(now.saturating_add(limit.max(SHORTEST_LOOK)))
        }
        _ => due,
    }
}

/// Who waits for a task that has not begun looks no more often than this.
const SHORTEST_LOOK: u64 = 1_000_000;

fn enforce_seen(head: Head, seen: record::Look, now: u64) -> u64 {
    let (all, attempt) = limits_of(head, seen);
    if now >= all && all != NEVER {
        end_late(head, seen, |now| now.is_same_task(seen));
        return NEVER;
    }
    if now >= attempt && attempt != NEVER {
        let patience = attempt.saturating_add(head.limits().grace);
        let most = head.with_retry(|retry| retry.attempts());
        let again = if head.attempts() < most { head.again() } else { None };
        if again.is_some() || head.attempts() < most && now < patience {
            if head.make_late(seen) {
                observe::tell_stuck(head);
            }
            let Some(again) = again else { return all.min(patience) };
            again.overtake(head, seen);
            // Who begins the next attempt has it watched. Who waits for the task may be alone.
            return all.min(now.saturating_add(head.attempt_limit().max(SHORTEST_LOOK)));
        }
        end_late(head, seen, |now| is(now, Status::Running) && now.is_same_attempt(seen));
        return all;
    }
    all.min(attempt)
}

/// Ends a task whose time is over, unless it has become another. A function that gives up when it hears of that must not
/// come first with what it returns: it hears of it by the end. The record stays after that, since the caller is an end of
/// the task, or holds the arena's pin.
fn end_late(head: Head, seen: record::Look, same: impl Fn(record::Look) -> bool) {
    let is_told = !is(seen, Status::Running) || head.is_late();
    if head.end_if(Status::TimedOut, same) && !is_told {
        observe::tell_stuck(head);
    }
}

/// The same for an attempt on a thread that has no place, where the guard does not see it.
pub(in crate::task) fn watch_alone(head: Head, due: u64) {
    if due != NEVER
        && let Some(common) = head.task_type().common()
    {
        look_at(&common.shared, head.id(), due);
    }
}

/// A timer of its own for a task whose end is not waited for by a thread.
pub(in crate::task) fn arm_own(head: Head) {
    let limits = head.limits();
    let limit = limits.overall.min(limits.queue);
    if limit == NEVER {
        return;
    }
    let Some(common) = head.task_type().common() else { return };
    look_at(&common.shared, head.id(), head.deadline_from_start(limit));
}

fn look_at(shared: &Arc<Shared>, id: u64, at: u64) {
    let armed = Timer::at(
        shared,
        at,
        move || {
            let pin = pin();
            let Some((head, seen)) = record::find(&pin, id) else { return };
            if !seen.is_live() {
                return;
            }
            let due = enforce_seen(head, seen, head.task_type().clock.now());
            if due != NEVER
                && let Some((shared, _)) = current()
            {
                look_at(&shared, id, due);
            }
        },
        |_| (),
    );
    // Without room for a timer the limit is looked at when an attempt is to begin.
    drop(armed);
}

impl Watch {
    /// None: the attempt's time is not limited.
    pub(in crate::task) fn of(head: Head, begun: &Begun) -> Option<Self> {
        let (task, at) = (head.id(), begun.due);
        (at != NEVER).then_some(Self { task, begun: begun.seen, at })
    }

    /// Looks at it now. None: it needs to be looked at no more.
    pub(in crate::task) fn look(self) -> Option<Self> {
        let pin = pin();
        let (head, seen) = record::find(&pin, self.task)?;
        if !seen.is_live() || !seen.is_same_attempt(self.begun) {
            return None;
        }
        let at = enforce_seen(head, seen, head.task_type().clock.now());
        (at != NEVER).then_some(Self { at, ..self })
    }
}

// --- the guard --------------------------------------------------------------------------------------

/// Notes in the member's place that it is about to begin an attempt, `now`. When that must be over is the
/// second answer. `other` as above.
#[inline]
pub(in crate::task) fn take_place(
    head: Head,
    task_type: &'static TaskTypeInner,
    worker: Option<usize>,
    now: u64,
    other: bool,
) -> (Watched, u64) {
    let attempt = head.attempt_deadline_from(now);
    let due = match other {
        true => attempt.min(head.overall_deadline()),
        false => attempt,
    };
    let place = worker.and_then(|worker| task_type.guard.places.get(worker)).map(|place| &**place);
    if let Some(place) = place {
        place.began.store(now, Relaxed);
        // Release: the guard sees the attempt that it is about.
        place.task.store(head.id() + 1, Release);
    }
    (Watched(place), due)
}

impl Guard {
    /// How many functions of tasks of this task type run now.
    pub(in crate::task) fn running(&self, task_type: &'static TaskTypeInner) -> u64 {
        let pin = pin();
        let running = self.places.iter().filter(|place| {
            let id = place.task.load(Acquire).checked_sub(1);
            let task = id.and_then(|id| record::find(&pin, id));
            task.is_some_and(|(head, _)| core::ptr::eq(head.task_type(), task_type))
        });
        running.count() as u64
    }

    /// Has the guard look when `due`, at the latest. The caller has taken its place, and has made the
    /// attempt RUNNING since.
    #[inline]
    pub(in crate::task) fn watch(&'static self, due: u64) {
        if due == NEVER {
            return;
        }
        // Against *say that it is not armed, then look at the places* in `fire`.
        barrier_after_change();
        if due < self.due.load(Relaxed) {
            self.arm_here(due);
        }
    }

    #[cold]
    fn arm_here(&'static self, due: u64) {
        if let Some((shared, _)) = current() {
            self.arm(&shared, due);
        }
    }

    /// Arms the timer for `due`, unless it is armed for an earlier time.
    fn arm(&'static self, shared: &Arc<Shared>, due: u64) {
        if self.due.fetch_min(due, AcqRel) <= due {
            return;
        }
        if Timer::at(shared, due, move || self.fire(due), |_| ()).is_err() {
            // Waiters and the next to begin look after it.
            let _ = self.due.compare_exchange(due, NEVER, AcqRel, Relaxed);
        }
    }

    fn fire(&'static self, due: u64) {
        // If it was armed for an earlier time since, that timer goes on from here.
        if self.due.compare_exchange(due, NEVER, AcqRel, Relaxed).is_err() {
            return;
        }
        // Against *write the place, then look when the guard is due* in `watch`.
        store_load_barrier();
        let next = self.places.iter().map(|place| look(&place.task)).min();
        if let (Some(next), Some((shared, _))) = (next, current())
            && next != NEVER
        {
            self.arm(&shared, next);
        }
    }
}

/// Looks at the task in a place. When it must be looked at again: NEVER if nothing more can be done.
fn look(place: &AtomicU64) -> u64 {
    // Acquire: pairs with `watch`.
    let Some(id) = place.load(Acquire).checked_sub(1) else { return NEVER };
    let pin = pin();
    let Some((head, seen)) = record::find(&pin, id) else { return NEVER };
    match seen.is_live() && place.load(Acquire) == id + 1 {
        true => enforce_seen(head, seen, head.task_type().clock.now()),
        false => NEVER,
    }
}

/// Whether the attempt of that thread has outlived its time, or its task.
fn is_stuck(head: Head, seen: record::Look, worker: usize) -> bool {
    if !seen.is_live() {
        return true;
    }
    // `LATE` is the next attempt's too until that has begun.
    match head.task_type().settings.overlap_retries {
        true if head.worker() != Some(worker) => true,
        true => seen.has(LATE) && is(seen, Status::Running),
        false => seen.has(LATE),
    }
}

impl Guard {
    /// Threads whose functions have not returned though their time is over. The `Pin` is held as long as the
    /// tasks are looked at.
    pub(crate) fn stuck(&self, pin: &Pin) -> Vec<(Head, usize)> {
        let places = self.places.iter().enumerate();
        let stuck = places.filter_map(|(worker, place)| {
            let id = place.task.load(Acquire).checked_sub(1)?;
            let (head, seen) = record::find(pin, id)?;
            is_stuck(head, seen, worker).then_some((head, worker))
        });
        stuck.collect()
    }
}
