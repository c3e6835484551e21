//! What is told to those who count and log.

use crate::log::{Component, Level, Record};
use crate::pool::{contain, member_here};
use crate::task::attempt::fault::Fault;
use crate::task::common::TaskTypeInner;
use crate::task::record::Head;
use crate::task::result::observer::{EndRecord, Observer, StuckRecord};
use crate::task::result::report::Status;
use core::time::Duration;

fn each(head: Head, tell: impl Fn(&dyn Observer)) {
    if !head.task_type().told {
        return;
    }
    let Some(common) = head.task_type().common() else { return };
    for observer in &common.observers {
        let _panicked = contain(|| tell(&***observer));
    }
}

#[cold]
pub(in crate::task) fn tell_end(head: Head, status: Status, message: Option<&str>) {
    let end = EndRecord {
        id: head.id(),
        name: head.task_type().name(),
        status,
        message,
        queue_time: head.queue_time(),
        run_time: head.run_time(),
        attempts: head.attempts(),
        worker: head.worker(),
    };
    log_end(head, &end);
    each(head, |observer| observer.on_end(&end));
}

#[cold]
pub(in crate::task) fn tell_retry(head: Head, attempt: u32, message: &str, delay: Duration) {
    log(head.task_type(), Level::Debug, "task.retried", |record| {
        record
            .with("id", head.id())
            .with("attempt", attempt)
            .with("delay_ns", delay.as_nanos() as u64)
            .say(message);
    });
    each(head, |observer| {
        observer.on_retry(head.task_type().name(), head.id(), attempt, message, delay);
    });
}

#[cold]
pub(in crate::task) fn tell_stuck(head: Head) {
    let elapsed = head.task_type().clock.now().saturating_sub(head.began());
    let stuck = StuckRecord {
        id: head.id(),
        name: head.task_type().name(),
        worker: head.worker(),
        elapsed: Duration::from_nanos(elapsed),
    };
    log(head.task_type(), Level::Warn, "task.stuck", |record| {
        record.with("id", stuck.id).with("elapsed_ns", elapsed);
        if let Some(worker) = stuck.worker {
            record.with("thread", worker);
        }
        record.say("an attempt has not returned though its time is over");
    });
    each(head, |observer| observer.on_stuck(&stuck));
}

/// The attempt of a task that had ended before has come back, and with it its thread.
#[cold]
pub(in crate::task) fn tell_return(task_type: &'static TaskTypeInner) {
    log(task_type, Level::Info, "task.returned", |record| {
        if let Some(thread) = member_here() {
            record.with("thread", thread);
        }
        record.say("an attempt has returned after its task had ended");
    });
}

/// In the log that the worker pool was given.
fn log_end(head: Head, end: &EndRecord<'_>) {
    if !head.task_type().common().is_some_and(|common| common.logs_ends) {
        return;
    }
    log(head.task_type(), Level::Debug, event_of(end.status), |record| {
        record.with("id", end.id).with("attempts", end.attempts);
        record.with("queue_ns", end.queue_time.as_nanos() as u64);
        record.with("run_ns", end.run_time.as_nanos() as u64);
        if let Some(thread) = end.worker {
            record.with("thread", thread);
        }
        record.say(end.message.unwrap_or_default());
    });
}

fn event_of(end: Status) -> &'static str {
    match end {
        Status::Completed => "task.completed",
        Status::TimedOut => "task.timed_out",
        Status::Cancelled => "task.cancelled",
        Status::Rejected => "task.rejected",
        _ => "task.failed",
    }
}

/// The last attempt has failed.
#[cold]
pub(in crate::task) fn tell_failure(head: Head, status: Status, fault: &Fault) {
    let logs_ends = head.task_type().common().is_some_and(|common| common.logs_ends);
    let (level, event) = match fault.is_panic() {
        true => (Level::Error, "task.panicked"),
        false if logs_ends => return,
        false => (Level::Debug, event_of(status)),
    };
    log(head.task_type(), level, event, |record| {
        record.with("id", head.id()).with("attempts", head.attempts()).say(fault.message());
    });
}

/// A middleware has panicked where nobody hears of it.
#[cold]
pub(in crate::task) fn tell_middleware(task_type: &'static TaskTypeInner, hook: &'static str) {
    log(task_type, Level::Error, "middleware.panicked", |record| {
        record.with("hook", hook).say("a middleware has panicked");
    });
}

/// By the log, with the name of the task type. Tasks outlive their worker pool, which is not heard of any more then.
fn log(
    task_type: &'static TaskTypeInner,
    level: Level,
    event: &'static str,
    fill: impl FnOnce(&mut Record),
) {
    if let Some(common) = task_type.common() {
        // None is told of a middleware.
        let heard = !common.observers.is_empty() && event != "middleware.panicked";
        common.log.log_unless(heard, Component::Task, level, event, |record| {
            record.with("name", task_type.name());
            fill(record);
        });
    }
}
