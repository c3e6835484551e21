//! The records that a pool writes to the log. All of them are rare: no path that is taken for each event comes here.

use super::end::PoolReport;
use super::members::Members;
use super::slots::Key;
use crate::contain::{discard, message_of};
use crate::log::{Component, Level, Logger, faults};
use crate::sync::atomic::Ordering::Relaxed;
use crate::trace::Name;
use core::any::Any;
use core::time::Duration;
use std::os::fd::RawFd;

/// Written once.
const DRAINING: u32 = 1;
const STOPPED: u32 = 2;

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn started(log: &Logger, threads: usize, sets: usize, members: &Members) {
    log.info(Component::Pool, "pool.started", |record| {
        record
            .with("threads", threads)
            .with("reserved", threads - members.ordinary)
            .with("sets", sets)
            .say("the pool has started");
    });
    for (index, member) in members.iter().enumerate() {
        if member.pin_failed.load(Relaxed) != 0 {
            log.warn(Component::Pool, "pool.not_pinned", |record| {
                record.with("thread", index).say("a thread could not be pinned");
            });
        }
    }
}

pub(super) fn draining(log: &Logger, left: u64) {
    if log.is_first(DRAINING) {
        log.info(Component::Pool, "pool.draining", |record| {
            record.with("time_ns", left).say("work from outside is refused, the rest is done");
        });
    }
}

pub(super) fn stopping(log: &Logger, drained: bool) {
    log.debug(Component::Pool, "pool.stopping", |record| {
        let how = if drained { "everything is done" } else { "what has not begun is cancelled" };
        record.with("drained", u64::from(drained)).say(how);
    });
}

pub(super) fn stopped(log: &Logger, report: &PoolReport, threads: usize) {
    if !log.is_first(STOPPED) {
        return;
    }
    // A host's thread is the program's own, which may just not have been given a processor yet.
    for thread in report.stuck.iter().filter(|&&member| member < threads) {
        log.error(Component::Pool, "pool.thread_stuck", |record| {
            record.with("thread", *thread).say("a handler has not returned; its thread stays");
        });
    }
    log.info(Component::Pool, "pool.stopped", |record| {
        record
            .with("drained", u64::from(report.drained))
            .with("cancelled", report.cancelled)
            .with("worker_tasks", report.worker_tasks)
            .with("connections", report.connections)
            .with("left", report.left)
            .with("stuck", report.stuck.len())
            .say("the pool has stopped");
    });
}

/// Code of the user has panicked, on this thread. Drops what it panicked with.
#[cold]
pub(super) fn panicked(
    log: &Logger,
    what: &'static str,
    member: Option<usize>,
    panic: Box<dyn Any + Send>,
) {
    let says = faults::take_text();
    log.error(Component::Pool, "pool.panicked", |record| {
        let thread = member.map_or(u64::MAX, |member| member as u64);
        let says = says.unwrap_or_else(|| message_of(&*panic).into());
        record.with("what", what).with("thread", thread).say(says);
    });
    discard(panic);
}

/// The program has closed a descriptor that is registered, and registers another one of its number.
#[cold]
pub(super) fn closed_registered(log: &Logger, descriptor: RawFd, old: Key) {
    log.warn(Component::Pool, "pool.closed_registered", |record| {
        record.with("descriptor", i64::from(descriptor)).with("handle", old.token() + 1).say(
            "its descriptor was closed, and the number is another one's: deregister a handle before \
             its descriptor is closed",
        );
    });
}

/// Code of another language's has failed, and nothing of ours will.
pub(super) fn unhandled(log: &Logger, member: Option<usize>, says: &str) {
    log.error(Component::Pool, "pool.unhandled", |record| {
        if let Some(thread) = member {
            record.with("thread", thread);
        }
        record.say(says);
    });
}

/// Only if such reports were asked for.
pub(super) fn slow(
    log: &Logger,
    thread: usize,
    name: Option<&'static str>,
    elapsed: Duration,
    running: bool,
) {
    let (event, says) = match running {
        true => ("pool.slow", "a handler is slow, and still runs"),
        false => ("pool.was_slow", "a handler was slow, and has returned"),
    };
    log.warn(Component::Pool, event, |record| {
        record.with("thread", thread).with("elapsed_ns", nanos(elapsed));
        if let Some(name) = name {
            record.with("name", name);
        }
        record.say(says);
    });
}

/// `held_up`: a thread that has run the same thing for two looks of the watch.
pub(super) fn rescued(log: &Logger, thread: usize, held_up: Option<(usize, Name)>, count: u64) {
    log.warn(Component::Pool, "pool.rescued", |record| {
        record.with("thread", thread).with("count", count);
        if let Some((held_up, name)) = held_up {
            record.with("held_up", held_up);
            if let Some(name) = name.text() {
                record.with("name", name);
            }
        }
        record.say("the watch stepped in for a thread that was held up");
    });
}

/// Another thread leads than before.
pub(super) fn leads(log: &Logger, thread: usize, before: Option<usize>) {
    log.log(Component::Pool, Level::Trace, "pool.leads", |record| {
        record.with("thread", thread);
        if let Some(before) = before {
            record.with("before", before);
        }
        record.say("another thread leads");
    });
}
