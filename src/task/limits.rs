//! What is done when a time is over.
//!
//! | time | from | to | what happens at its end |
//! |---|---|---|---|
//! | in the queue | submission | the first attempt | the task ends as TIMED_OUT, and never begins |
//! | of an attempt | its begin | its return | its token is set; without another attempt left, the task ends |
//! | overall | submission | the end | the task ends; a function that runs is asked to stop |

use super::execute::{finish, finish_if};
use super::observe;
use super::record::{AnyRecord, Head, Record};
use super::report::Status;
use core::time::Duration;
use std::sync::{Arc, Weak};

/// Ends a task whose time in the queue, or in all, was over before it could begin.
pub(super) fn end_if_late(head: &Head, now: u64) {
    let waited = now.saturating_sub(head.submitted);
    if waited >= head.limits.overall || head.attempts() == 0 && waited >= head.limits.queue {
        end_waiting(head);
    }
}

fn end_waiting(head: &Head) {
    finish_if(head, Status::TimedOut, |status| status != Status::Running);
}

/// Ends a task whose time is over. How long until it may be: None if no limit applies now.
pub(super) fn enforce(head: &Head) -> Option<Duration> {
    let now = head.kind.common().now();
    let waits = head.attempts() == 0;
    let of_queue = if waits { head.limits.queue } else { u64::MAX };
    let from_start = head.limits.overall.min(of_queue);
    let from_start = head.submitted.saturating_add(from_start);
    let of_attempt = match head.status() {
        Status::Running => head.attempt_deadline().unwrap_or(u64::MAX),
        _ => u64::MAX,
    };
    if now >= from_start && from_start != u64::MAX {
        if waits { end_waiting(head) } else { end_late(head) }
    } else if now >= of_attempt {
        attempt_is_over(head, head.attempts());
    }
    let due = if now >= of_attempt { from_start } else { from_start.min(of_attempt) };
    (due != u64::MAX).then(|| Duration::from_nanos(due.saturating_sub(now)))
}

fn end_late(head: &Head) {
    head.make_late();
    finish(head, Status::TimedOut);
}

/// Arms what a submitted task needs.
pub(super) fn watch_over(record: &Arc<dyn AnyRecord>) {
    let limits = record.head().limits;
    if limits.queue != u64::MAX {
        arm(record, limits.queue, |head| {
            if head.attempts() == 0 {
                end_waiting(head);
            }
        });
    }
    if limits.overall != u64::MAX {
        arm(record, limits.overall, end_late);
    }
}

fn arm(record: &Arc<dyn AnyRecord>, delay: u64, then: impl FnOnce(&Head) + Send + 'static) {
    let weak: Weak<dyn AnyRecord> = Arc::downgrade(record);
    let shared = &record.head().kind.common().shared;
    let armed = shared.after_or_back(Duration::from_nanos(delay), move || {
        if let Some(record) = weak.upgrade() {
            then(record.head());
        }
    });
    // Without room for a timer the limit is looked at when an attempt is to begin.
    drop(armed);
}

/// An attempt has begun.
pub(super) fn begin<T: Send + 'static>(record: &Arc<Record<T>>, number: u32, now: u64) {
    let limit = record.head.limits.attempt;
    if limit == u64::MAX {
        return;
    }
    record.head.set_attempt_deadline(now.saturating_add(limit));
    let record: Arc<dyn AnyRecord> = Arc::clone(record) as _;
    arm(&record, limit, move |head| attempt_is_over(head, number));
}

fn attempt_is_over(head: &Head, number: u32) {
    if head.attempts() != number || head.status() != Status::Running {
        return;
    }
    if head.make_late() {
        observe::tell_stuck(head);
    }
    if number >= head.max_attempts {
        finish_if(head, Status::TimedOut, |status| status == Status::Running);
    }
}
