//! The figures of a worker pool, for a registry.

use crate::error::Result;
use crate::metrics::{Collector, Histogram, Registry, Unit};
use crate::sync::atomic::Ordering::Relaxed;
use crate::task::common::Common;
use crate::task::result::observer::{EndRecord, Observer};
use crate::task::stats::{WorkerStats, stats_of};
use crate::task::worker_pool::WorkerPool;
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

/// As long as the worker pool has a handle.
pub(super) fn attach(registry: &Registry, workers: &WorkerPool) {
    let common = Arc::downgrade(&workers.common);
    registry.collect(move |collector| {
        let common = common.upgrade().filter(|common| !common.is_left.load(Relaxed));
        common.is_some_and(|common| {
            collect(collector, &common);
            true
        })
    });
}

pub(super) fn collect(collector: &mut Collector, common: &Common) {
    if common.is_left.load(Relaxed) {
        return;
    }
    let name = common.name.get_or_init(|| common.shared.end.next_name());
    if let Some(name) = collector.enter(common, "workers", name) {
        collect_counts(collector, &name, &stats_of(common));
    }
}

/// The counts of each name.
fn collect_counts(collector: &mut Collector, workers: &str, stats: &WorkerStats) {
    let in_flight = stats.in_flight as f64;
    let labels = [("workers", workers)];
    collector.gauge("paceline_task_in_flight", "Tasks that have not ended", &labels, in_flight);
    for worker in stats.workers.iter().filter(|worker| worker.attempts > 0) {
        let number = worker.worker.to_string();
        let labels = [("workers", workers), ("worker", number.as_str())];
        let mut counter = |name: &str, help: &str, count: f64| {
            collector.counter(name, help, &labels, count);
        };
        let (completed, failed) = (worker.completed as f64, worker.failed as f64);
        let run_time = worker.run_time.as_secs_f64();
        counter("paceline_worker_completed", "Attempts of a thread that have a value", completed);
        counter("paceline_worker_failed", "Attempts of a thread that have none", failed);
        counter("paceline_worker_run_seconds", "What the attempts of a thread took", run_time);
    }
    for task_type in &stats.task_types {
        let labels = [("workers", workers), ("task_type", task_type.name.as_str())];
        let mut counter = |name: &str, help: &str, count: u64| {
            collector.counter(name, help, &labels, count as f64);
        };
        counter("paceline_task_submitted", "Tasks that were handed in", task_type.submitted);
        counter("paceline_task_accepted", "Tasks that were taken", task_type.accepted);
        counter("paceline_task_rejected", "Tasks that were given back", task_type.rejected);
        counter("paceline_task_completed", "Tasks that have their value", task_type.completed);
        counter("paceline_task_failed", "Tasks whose last attempt failed", task_type.failed);
        counter("paceline_task_cancelled", "Tasks that were cancelled", task_type.cancelled);
        counter("paceline_task_timed_out", "Tasks whose time was over", task_type.timed_out);
        counter("paceline_task_dropped", "Tasks dropped for the sake of others", task_type.dropped);
        counter(
            "paceline_task_retried",
            "Attempts that were followed by another",
            task_type.retried,
        );
        let help = "Outcomes of attempts that a retry had overtaken";
        counter("paceline_task_discarded", help, task_type.discarded);
        let help = "Attempts whose functions run now";
        collector.gauge("paceline_task_running", help, &labels, task_type.running as f64);
        let help = "Tasks that wait for their rate, or because as many run as may";
        collector.gauge("paceline_task_waiting", help, &labels, task_type.waiting as f64);
    }
}
