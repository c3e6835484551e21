//! What a pool tells by the log. All of it is rare: no path that is taken for each event comes here.

use super::{PoolReport, Shared, context, message_of};
use crate::log::{Component, Level, faults};
use core::any::Any;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Told once.
const DRAINING: u32 = 1;
const STOPPED: u32 = 2;

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Shared {
    pub(super) fn tell_start(&self, threads: usize) {
        self.log.info(Component::Pool, "pool.started", |record| {
            record
                .with("threads", threads)
                .with("reserved", threads - self.crew.ordinary)
                .with("sets", self.sets.len())
                .say("the pool has started");
        });
        for (index, member) in self.crew.members.iter().enumerate() {
            if member.pin_failed.load(crate::sync::atomic::Ordering::Relaxed) != 0 {
                self.log.warn(Component::Pool, "pool.not_pinned", |record| {
                    record.with("thread", index).say("a thread could not be pinned");
                });
            }
        }
    }

    pub(super) fn tell_drain(&self, left: u64) {
        if self.log.is_first(DRAINING) {
            self.log.info(Component::Pool, "pool.draining", |record| {
                record.with("time_ns", left).say("work from outside is refused, the rest is done");
            });
        }
    }

    pub(super) fn tell_stop(&self, drained: bool) {
        self.log.debug(Component::Pool, "pool.stopping", |record| {
            let how =
                if drained { "everything is done" } else { "what has not begun is cancelled" };
            record.with("drained", u64::from(drained)).say(how);
        });
    }

    pub(super) fn tell_end(&self, report: &PoolReport) {
        if !self.log.is_first(STOPPED) {
            return;
        }
        // A host's thread is the program's own, which may just not have been given a processor yet.
        for thread in report.stuck.iter().filter(|&&member| member < self.crew.threads) {
            self.log.error(Component::Pool, "pool.thread_stuck", |record| {
                record.with("thread", *thread).say("a handler has not returned; its thread stays");
            });
        }
        self.log.info(Component::Pool, "pool.stopped", |record| {
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
    pub(crate) fn tell_panic(&self, what: &'static str, panic: Box<dyn Any + Send>) {
        let says = faults::take_text();
        self.log.error(Component::Pool, "pool.panicked", |record| {
            let thread = context::seat_in(self).map_or(u64::MAX, |seat| seat as u64);
            let says = says.unwrap_or_else(|| message_of(&*panic).into());
            record.with("what", what).with("thread", thread).say(says);
        });
        context::discard(panic);
    }

    /// Code of another language's has failed, and nothing of ours will.
    #[cfg(feature = "capi")]
    pub(crate) fn tell_unhandled(&self, says: &str) {
        self.log.error(Component::Pool, "pool.unhandled", |record| {
            if let Some(thread) = context::seat_in(self) {
                record.with("thread", thread);
            }
            record.say(says);
        });
    }

    /// Runs a hook of the user, on any thread. A panic of it is told, and ends nothing.
    pub(crate) fn run_hook(&self, hook: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(hook)) {
            self.tell_panic("hook", panic);
        }
    }

    /// Only if somebody has asked for such reports.
    pub(super) fn log_slow(&self, thread: usize, elapsed: Duration, running: bool) {
        let (event, says) = match running {
            true => ("pool.slow", "a handler is slow, and still runs"),
            false => ("pool.was_slow", "a handler was slow, and has returned"),
        };
        self.log.warn(Component::Pool, event, |record| {
            record.with("thread", thread).with("elapsed_ns", nanos(elapsed)).say(says);
        });
    }

    pub(super) fn tell_rescue(&self, thread: usize) {
        self.log.log(Component::Pool, Level::Trace, "pool.rescued", |record| {
            record.with("thread", thread).say("the watch stepped in for a thread that was held up");
        });
    }

    pub(super) fn tell_active(&self, before: usize, threads: usize) {
        self.log.debug(Component::Pool, "pool.active", |record| {
            record
                .with("before", before)
                .with("threads", threads)
                .say("more or fewer threads work");
        });
    }
}
