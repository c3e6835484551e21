//! The figures of a pool, for a registry.

use super::Pool;
use super::members::Member;
use super::shared::Shared;
use super::stats::{Audit, Stats};
use crate::metrics::{Collector, Registry};
use crate::queue::Lane;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sys::clock;
use crate::sys::thread::cpu_time_of;
use std::sync::{Arc, Mutex, PoisonError};

impl Pool {
    /// Puts this pool's figures into a registry, with the label `pool` = `name`, for as long as the pool
    /// lives: its counters, the lengths of its lanes, and for each of its threads what it has done, its CPU
    /// time, and its utilisation: the part of the time since the last snapshot that it had a CPU.
    pub fn attach_metrics(&self, registry: &Registry, name: &str) {
        let pool = Arc::downgrade(self.shared());
        let usage = Mutex::new(Usage::new(self.shared()));
        let name = name.to_owned();
        registry.collect(move |collector| {
            let Some(shared) = pool.upgrade() else { return false };
            let mut figures = Figures { collector, pool: &name };
            figures.tasks(&shared);
            let stats = Stats::of(&shared);
            figures.present(&stats);
            figures.threads(&stats);
            let mut usage = usage.lock().unwrap_or_else(PoisonError::into_inner);
            figures.usage(&shared, &mut usage);
            true
        });
    }
}

/// When CPU times were last read, and what they were, in nanoseconds.
struct Usage {
    at: u64,
    cpu: Vec<Option<u64>>,
}

impl Usage {
    fn new(shared: &Shared) -> Self {
        Self { at: clock::now(), cpu: shared.ready.members.iter().map(cpu_of).collect() }
    }
}

/// None: no thread of the pool runs there.
fn cpu_of(member: &Member) -> Option<u64> {
    match member.kernel_thread.load(Relaxed) {
        0 => None,
        thread => cpu_time_of(thread),
    }
}

struct Figures<'a> {
    collector: &'a mut Collector,
    pool: &'a str,
}

impl Figures<'_> {
    fn counter(&mut self, name: &str, help: &str, count: u64) {
        self.collector.counter(name, help, &[("pool", self.pool)], count as f64);
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.collector.gauge(name, help, &[("pool", self.pool)], value);
    }

    fn tasks(&mut self, shared: &Shared) {
        let tasks = Audit::of(shared);
        self.counter("paceline_tasks_submitted", "Tasks and timers handed in", tasks.submitted);
        self.counter("paceline_tasks_accepted", "Those that were taken", tasks.accepted);
        self.counter("paceline_tasks_rejected", "Those that were given back", tasks.rejected);
        self.counter("paceline_tasks_completed", "Those that ran to their end", tasks.completed);
        self.counter("paceline_tasks_failed", "Those that panicked", tasks.failed);
        self.counter("paceline_tasks_cancelled", "Those that never ran", tasks.cancelled);
        self.gauge("paceline_tasks_in_flight", "Those that wait or run", tasks.in_flight as f64);
    }

    fn present(&mut self, stats: &Stats) {
        let lanes = [
            (Lane::Critical, "critical"),
            (Lane::High, "high"),
            (Lane::Normal, "normal"),
            (Lane::Low, "low"),
        ];
        for (lane, name) in lanes {
            let labels = [("pool", self.pool), ("lane", name)];
            let queued = stats.queued[lane as usize] as f64;
            self.collector.gauge(
                "paceline_lane_tasks",
                "Tasks that wait in a lane",
                &labels,
                queued,
            );
        }
        self.gauge("paceline_handles", "Handles, strands, timers and rings", stats.handles as f64);
        self.gauge("paceline_parked_threads", "Threads that are parked", f64::from(stats.parked));
        self.counter("paceline_wakes", "System calls made to wake threads", stats.wakes);
    }

    fn threads(&mut self, stats: &Stats) {
        for (index, thread) in stats.threads.iter().enumerate() {
            let index = index.to_string();
            let labels = [("pool", self.pool), ("thread", &*index)];
            let mut counter = |name: &str, help: &str, count: u64| {
                self.collector.counter(name, help, &labels, count as f64);
            };
            counter("paceline_thread_tasks", "Tasks that a thread ran", thread.tasks);
            counter("paceline_thread_handled", "Handlers that a thread ran", thread.handled);
            counter("paceline_thread_events", "Events that a thread harvested", thread.events);
            counter("paceline_thread_led", "Terms of leadership of a thread", thread.terms);
            let promoted = "Terms that a thread was promoted to from following another leader";
            counter("paceline_thread_promoted", promoted, thread.handovers);
            counter("paceline_thread_rescues", "Times it stepped in as the watch", thread.rescues);
            counter("paceline_thread_stolen", "Times it took over claimed work", thread.stolen);
            counter("paceline_thread_parked", "Times that a thread parked", thread.parked);
            counter("paceline_thread_panics", "Handlers and tasks that panicked", thread.panics);
        }
    }

    /// Of the pool's own threads; hosts that take part have other things to do, too.
    fn usage(&mut self, shared: &Shared, last: &mut Usage) {
        let now = Usage::new(shared);
        let passed = now.at.saturating_sub(last.at).max(1) as f64;
        for (index, (cpu, before)) in now.cpu.iter().zip(&last.cpu).enumerate() {
            let Some(cpu) = cpu else { continue };
            let index = index.to_string();
            let labels = [("pool", self.pool), ("thread", &*index)];
            let help = "CPU time of a thread, in seconds";
            self.collector.counter("paceline_thread_cpu_seconds", help, &labels, *cpu as f64 / 1e9);
            let used = cpu.saturating_sub(before.unwrap_or(0)) as f64;
            let help = "Part of the time since the last snapshot that a thread had a CPU";
            let utilisation = (used / passed).min(1.0);
            self.collector.gauge("paceline_thread_utilisation", help, &labels, utilisation);
        }
        *last = now;
    }
}
