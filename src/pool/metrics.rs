//! The figures of a pool, for a registry.

use super::Pool;
use super::members::Member;
use super::shared::Shared;
use super::stats::{Audit, Stats, ThreadState};
use crate::log::recent;
use crate::metrics::{Collector, Histogram, Registry, Unit};
use crate::queue::Lane;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sys::clock;
use crate::sys::thread::cpu_time_of;
use std::sync::{Arc, Mutex, PoisonError};

impl Pool {
    /// Puts the figures of this pool and of all that stands on it into a registry, with the label `pool` = `name`, for as
    /// long as the pool lives; what comes later is in it, too. [`SystemFigures`](crate::metrics::SystemFigures) are those
    /// of the process.
    ///
    /// | of | figures | labels |
    /// |---|---|---|
    /// | the pool | its counters; per lane, how many tasks wait; per handle set, the thread that leads (-1: none), terms and what was harvested and waits | `lane`, `set` |
    /// | its progress | threads that are blocked, how long nobody has led a handle set, timers that are overdue, how long the oldest thing has waited: as seen at snapshots, and each second where there is an [endpoint](crate::ops::Ops); how late timers were, of all since the first call | `set` |
    /// | the process | its faults, of all pools: what `/errors.json` of an endpoint has the last of | `level` |
    /// | each thread | state, what it has done, the CPU it is pinned to, CPU time, and utilisation: the part of the time since the last snapshot that it had a CPU | `thread`, `state` |
    /// | servers | per listener, connections that are open, came, were turned away or ended, by reason; requests that were admitted; per server, bytes that are queued for peers | `server`, `listener`, `reason` |
    /// | HTTP servers | requests by outcome, in work; per route, how long requests took from the head to the last byte, by the class of their status | `server`, `method`, `route`, `status`, `cause` |
    /// | UDP sockets | datagrams and bytes, errors | `socket` |
    /// | worker pools | as [`WorkerPoolBuilder::metrics`](crate::task::WorkerPoolBuilder::metrics), without times | `workers` |
    /// | completion queues of C, C++ and Python | entries that were brought, completed, withdrawn, are out | `queue` |
    /// | hubs | as [`HubBuilder::metrics`](crate::hub::HubBuilder::metrics) | `hub` |
    ///
    /// A server is called by its first address. A worker pool and a hub are called as they were when their own figures were
    /// asked for, or else by a number. Times of requests cost two looks at the clock each: they are measured from this
    /// call on, and of a server that comes later from the first snapshot on. Not counted, since each task, hand-over or read would pay for it: how long each task of a lane has
    /// waited, and the bytes of streams.
    pub fn attach_metrics(&self, registry: &Registry, name: &str) {
        let pool = Arc::downgrade(self.shared());
        let usage = Mutex::new(Usage::new(self.shared()));
        let name = name.to_owned();
        // What begins to count when it is asked begins now.
        self.shared().end.parts().for_each(|part| part.figures(&mut Collector::default(), &name));
        for set in &*self.shared().ready.handles.sets {
            set.lateness.get_or_init(|| Histogram::coarse(Unit::Time));
        }
        registry.collect(move |collector| {
            let Some(shared) = pool.upgrade() else { return false };
            let mut figures = Figures { collector, pool: &name };
            figures.faults();
            figures.tasks(&shared);
            let stats = Stats::of(&shared);
            figures.present(&stats);
            figures.sets(&stats);
            figures.progress(&shared);
            figures.threads(&stats);
            let mut usage = usage.lock().unwrap_or_else(PoisonError::into_inner);
            figures.usage(&shared, &mut usage);
            drop(usage);
            shared.end.parts().for_each(|part| part.figures(collector, &name));
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
        let own = &shared.ready.members[..shared.ready.members.threads];
        Self { at: clock::now(), cpu: own.iter().map(cpu_of).collect() }
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

    /// Those of the process, once.
    fn faults(&mut self) {
        let counted = recent::counted();
        if self.collector.enter(counted, "faults", "").is_none() {
            return;
        }
        for (level, count) in ["error", "warn"].into_iter().zip(counted) {
            let count = count.load(Relaxed);
            let help = "Warnings and errors of this process, of all pools, whether or not they were logged";
            self.collector.counter("paceline_faults", help, &[("level", level)], count as f64);
        }
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

    fn sets(&mut self, stats: &Stats) {
        for (index, set) in stats.sets.iter().enumerate() {
            let index = index.to_string();
            let labels = [("pool", self.pool), ("set", &*index)];
            let leader = set.leader.map_or(-1.0, |thread| thread as f64);
            let help = "The thread that leads a handle set now; -1: none";
            self.collector.gauge("paceline_set_leader", help, &labels, leader);
            let help = "Terms that were led in a handle set";
            self.collector.counter("paceline_set_terms", help, &labels, set.harvests as f64);
            let help = "Events that were harvested in a handle set and wait for a thread";
            self.collector.gauge("paceline_set_surplus", help, &labels, set.surplus as f64);
        }
    }

    fn progress(&mut self, shared: &Shared) {
        let found = shared.progress.find(shared);
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        for (index, nanos) in found.leaderless.iter().enumerate() {
            let index = index.to_string();
            let labels = [("pool", self.pool), ("set", &*index)];
            let help = "How long nobody has led a handle set, in seconds; 0: a thread leads";
            let name = "paceline_set_leaderless_seconds";
            self.collector.gauge(name, help, &labels, seconds(*nanos));
        }
        let help = "Threads that have been in the same handler or task for blocked_after";
        self.gauge("paceline_blocked_threads", help, found.blocked as f64);
        let help = "Timers that are due in handle sets that nobody leads";
        self.gauge("paceline_timers_overdue", help, found.overdue as f64);
        for (index, set) in shared.ready.handles.sets.iter().enumerate() {
            let Some(lateness) = set.lateness.get().filter(|it| it.is_used()) else { continue };
            let index = index.to_string();
            let labels = [("pool", self.pool), ("set", &*index)];
            let help =
                "From the time that a timer is due at until the leader of its handle set takes it";
            let name = "paceline_timer_lateness_seconds";
            self.collector.histogram(name, help, &labels, lateness.snapshot());
        }
        let help = "How long the oldest task, event, due timer or entry of a completion queue has waited, in seconds";
        let oldest = found.late.map_or(0.0, |late| seconds(late.nanos));
        self.gauge("paceline_oldest_waiting_seconds", help, oldest);
    }

    fn threads(&mut self, stats: &Stats) {
        for (index, thread) in stats.threads.iter().enumerate() {
            let index = index.to_string();
            let state = match thread.state() {
                ThreadState::Away => "away",
                ThreadState::Leader => "leader",
                ThreadState::Follower => "follower",
                ThreadState::Processing => "processing",
                ThreadState::Stuck => "stuck",
                ThreadState::Parked => "parked",
            };
            let labels = [("pool", self.pool), ("thread", &*index), ("state", state)];
            let help = "1, with what a thread is doing now as the label state";
            self.collector.gauge("paceline_thread_state", help, &labels, 1.0);
            let labels = [("pool", self.pool), ("thread", &*index)];
            if let Some(cpu) = thread.cpu {
                let help = "The CPU that a thread is pinned to";
                self.collector.gauge("paceline_thread_cpu", help, &labels, cpu as f64);
            }
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
