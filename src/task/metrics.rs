//! The figures of a worker pool, for a registry.

use super::WorkerPool;
use super::observe::{EndRecord, Observer};
use super::stats::{WorkerStats, stats_of};
use crate::error::Result;
use crate::metrics::{Collector, Histogram, Registry, Unit};
use std::sync::Arc;

/// How long tasks wait and run.
pub(super) struct Times {
    queue: Histogram,
    run: Histogram,
}

impl Times {
    pub(super) fn new(registry: &Registry, name: &str) -> Result<Self> {
        let times = |metric: &str, help: &str| {
            registry.histogram(metric, help, &[("workers", name)], Unit::Time)
        };
        Ok(Self {
            queue: times("paceline_task_queue_seconds", "From submission to the first attempt")?,
            run: times("paceline_task_run_seconds", "What the attempts of a task took together")?,
        })
    }
}

impl Observer for Times {
    fn on_end(&self, end: &EndRecord<'_>) {
        self.queue.record_time(end.queue_time);
        if end.attempts > 0 {
            self.run.record_time(end.run_time);
        }
    }
}

/// As long as the worker pool lives, which this does not keep alive.
pub(super) fn attach(registry: &Registry, name: String, workers: &WorkerPool) {
    let handles = Arc::downgrade(&workers.handles);
    registry.collect(move |collector| {
        let handles = handles.upgrade();
        if let Some(handles) = &handles {
            collect(collector, &name, &stats_of(&handles.0));
        }
        handles.is_some()
    });
}

/// The counts of each name.
fn collect(collector: &mut Collector, workers: &str, stats: &WorkerStats) {
    let in_flight = stats.in_flight as f64;
    let labels = [("workers", workers)];
    collector.gauge("paceline_task_in_flight", "Tasks that have not ended", &labels, in_flight);
    for kind in &stats.kinds {
        let labels = [("workers", workers), ("kind", kind.name.as_str())];
        let mut counter = |name: &str, help: &str, count: u64| {
            collector.counter(name, help, &labels, count as f64);
        };
        counter("paceline_task_submitted", "Tasks that were handed in", kind.submitted);
        counter("paceline_task_accepted", "Tasks that were taken", kind.accepted);
        counter("paceline_task_rejected", "Tasks that were given back", kind.rejected);
        counter("paceline_task_completed", "Tasks that have their value", kind.completed);
        counter("paceline_task_failed", "Tasks whose last attempt failed", kind.failed);
        counter("paceline_task_cancelled", "Tasks that were cancelled", kind.cancelled);
        counter("paceline_task_timed_out", "Tasks whose time was over", kind.timed_out);
        counter("paceline_task_dropped", "Tasks dropped for the sake of others", kind.dropped);
        counter("paceline_task_retried", "Attempts that were followed by another", kind.retried);
        let help = "Outcomes of attempts that a retry had overtaken";
        counter("paceline_task_discarded", help, kind.discarded);
        let help = "Attempts whose functions run now";
        collector.gauge("paceline_task_running", help, &labels, kind.running as f64);
        let help = "Tasks that wait for their rate, or because as many run as may";
        collector.gauge("paceline_task_waiting", help, &labels, kind.waiting as f64);
    }
}
