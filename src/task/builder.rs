//! How a worker pool is made.

use crate::contain::Contained;
use crate::error::{Error, Result};
use crate::log::Log;
use crate::pool::{Pool, Shared};
use crate::sync::atomic::AtomicU32;
use crate::sys::futex::Futex;
use crate::task::arena::Arena;
use crate::task::common::{Common, Hooks, OPEN, TaskTypes};
use core::fmt;
use std::sync::{Arc, Weak};

use crate::task::attempt::Middleware;
use crate::task::attempt::guard::Guard;
use crate::task::common::WaitLists;
use crate::task::metrics;
use crate::task::record;
use crate::task::result::observer::Observer;
use crate::task::scaling::{self, Scaling};
use crate::task::settings::OverloadPolicy;
use crate::task::worker_pool::{Handles, WorkerPool};

/// Settings of a [`WorkerPool`].
#[must_use = "a builder does nothing until `build`"]
pub struct WorkerPoolBuilder {
    pool: Pool,
    log: Option<Log>,
    observers: Vec<Arc<dyn Observer>>,
    middleware: Vec<Arc<dyn Middleware>>,
    max_waiting: usize,
    full: OverloadPolicy,
    max_droppable: Option<usize>,
    max_queued: usize,
    seed: Option<u64>,
    metrics: Option<(crate::metrics::Registry, String)>,
    scaling: Option<Scaling>,
}

/// What bounds those who wait.
const WAITING: core::ops::RangeInclusive<usize> = 1..=1 << 24;

/// How many tasks may wait for their keys, and for the rate of each name, unless set.
const DEFAULT_MAX_WAITING: usize = 1 << 16;
/// How many tasks with a tag may wait to be taken, unless set.
const DEFAULT_MAX_QUEUED: usize = 1 << 20;

impl WorkerPoolBuilder {
    /// How many tasks may wait for their keys, and how many for the rate of each name, before others are
    /// refused as `Full`. 1 to 2^24; default 65,536.
    pub fn max_waiting(mut self, tasks: usize) -> Self {
        self.max_waiting = tasks;
        self
    }

    /// What is done with a task for which its lane has no room. Default: [`OverloadPolicy::Wait`], as long as it
    /// takes.
    pub fn full(mut self, full: OverloadPolicy) -> Self {
        self.full = full;
        self
    }

    /// How many tasks with [`OverloadPolicy::DropOldest`] may wait, in all lanes together, before the oldest is
    /// dropped. 1 to 2^24; default: the pool's `lane_capacity`.
    pub fn max_droppable(mut self, tasks: usize) -> Self {
        self.max_droppable = Some(tasks);
        self
    }

    /// How many tasks of [`TaskType::task_tagged`](super::TaskType::task_tagged) may wait to be taken from the completion
    /// queue before others are refused as `Full`. 1 to 2^24; default 2^20.
    pub fn max_queued(mut self, tasks: usize) -> Self {
        self.max_queued = tasks;
        self
    }

    /// From what the jitter of retries is drawn, in the order of the failures: so a run can be repeated.
    /// Default: another one for each worker pool, so that those of a fleet do not retry in step.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Adapts the number of active threads to how long tasks wait, between `min_active` and all of the
    /// pool's. One worker pool of a pool may do that, for as long as the pool lives, and nobody else
    /// should call [`Pool::set_active`] then. Default: all threads are active.
    pub fn scaling(mut self, scaling: Scaling) -> Self {
        self.scaling = Some(scaling);
        self
    }

    /// As [`scaling`](Self::scaling) with its defaults, or what was set of it, and at least so many active
    /// threads: 1 to as many as the pool has.
    pub fn min_active(mut self, threads: usize) -> Self {
        self.scaling.get_or_insert_default().min_active = threads;
        self
    }

    /// Has `middleware` run around each attempt. May be called several times: the first is the outermost.
    pub fn middleware(mut self, middleware: Arc<dyn Middleware>) -> Self {
        self.middleware.push(middleware);
        self
    }

    /// The log of its tasks, in place of the pool's. Each end of a task is a record then, and not only one that
    /// failed: `task.completed`, `task.failed`, `task.timed_out`, `task.cancelled` or `task.rejected`, with `id`,
    /// `name`, `attempts`, `queue_ns`, `run_ns` and `thread`. These records have the level debug, which a log does
    /// not show unless it is told to: `Log::builder().levels("task=debug".parse()?)`. A file or a callback of
    /// such a log is a log of outcomes. Default: the pool's log, without the tasks that complete.
    pub fn log(mut self, log: &Log) -> Self {
        self.log = Some(log.clone());
        self
    }

    /// Tells `observer` what happens. May be called several times.
    pub fn observe(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Puts the figures of this worker pool into a registry, with the label `workers` = `name`, for as
    /// long as it lives: the counts of each task type, and how long tasks wait and run. What threads do is
    /// [`Pool::attach_metrics`]'s.
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self, registry: &crate::metrics::Registry, name: &str) -> Self {
        self.metrics = Some((registry.clone(), name.into()));
        self
    }

    /// A worker pool with these settings.
    ///
    /// # Errors
    /// [`Error::ShutDown`] and [`Error::Forked`];
    /// [`Error::Invalid`] and [`Error::Full`] if the registry
    /// has no place for its figures, or a setting is out of its range.
    pub fn build(mut self) -> Result<WorkerPool> {
        let shared = Arc::clone(self.pool.shared());
        shared.check_open()?;
        let bounds = [
            ("max_waiting", Some(self.max_waiting)),
            ("max_droppable", self.max_droppable),
            ("max_queued", Some(self.max_queued)),
        ];
        for (name, tasks) in bounds {
            if let Some(tasks) = tasks.filter(|tasks| !WAITING.contains(tasks)) {
                return Err(Error::invalid(name, tasks, "1 to 16777216"));
            }
        }
        let (arena, guard) = Self::found(&shared);
        let start = |scaling| scaling::Scaler::start(scaling, &shared, &arena, guard);
        let scaler = self.scaling.map(start);
        let scaler = scaler.transpose()?;
        if let Some((registry, name)) = self.metrics.take() {
            self.observers.push(Arc::new(metrics::Times::new(&registry, &name)?));
            let workers = self.make(shared, arena, guard, scaler);
            let _first = workers.common.name.set(name);
            metrics::attach(&registry, &workers);
            return Ok(workers);
        }
        Ok(self.make(shared, arena, guard, scaler))
    }

    fn found(shared: &Shared) -> (Arc<Arena>, &'static Guard) {
        let arena = Arena::new(shared, record::task_types_referred_to);
        let guard = arena.keep(Guard::new(shared.ready.members.len()));
        (arena, guard)
    }

    fn make(
        self,
        shared: Arc<Shared>,
        arena: Arc<Arena>,
        guard: &'static Guard,
        scaler: Option<Arc<scaling::Scaler>>,
    ) -> WorkerPool {
        let droppable = self.max_droppable.unwrap_or(shared.lane_capacity());
        let wait_lists = WaitLists::new(self.max_waiting, droppable, self.max_queued, self.seed);
        let log = self.log.as_ref().map_or_else(|| shared.log.clone(), |log| shared.log.to(log));
        let common = Arc::new(Common {
            scaler,
            made: shared.now(),
            shared,
            log,
            logs_ends: self.log.is_some(),
            full: self.full,
            observers: self.observers.into_iter().map(Contained::new).collect(),
            middleware: self.middleware.into_iter().map(Contained::new).collect(),
            guard,
            wait_lists: arena.keep(wait_lists),
            arena,
            hooks: Hooks::default(),
            task_types: TaskTypes::default(),
            phase: AtomicU32::new(OPEN),
            changed: Futex::new(0),
            name: std::sync::OnceLock::new(),
            is_left: crate::sync::atomic::AtomicBool::new(false),
        });
        // Tasks outlive the handles of their worker pool; those who observe them do, too.
        self.pool.shared().keep(Arc::clone(&common) as _);
        let served: Weak<Common> = Arc::downgrade(&common);
        self.pool.shared().end.serve(served);
        common.wait_lists.attempts.end_with(&common.shared);
        let handles = Arc::new(Handles(Arc::clone(&common)));
        WorkerPool { pool: self.pool, common, handles }
    }
}

impl WorkerPool {
    /// A worker pool with default settings.
    pub fn new(pool: &Pool) -> WorkerPool {
        let (arena, guard) = WorkerPoolBuilder::found(pool.shared());
        Self::builder(pool).make(Arc::clone(pool.shared()), arena, guard, None)
    }

    /// Settings to build a worker pool from.
    pub fn builder(pool: &Pool) -> WorkerPoolBuilder {
        WorkerPoolBuilder {
            pool: pool.clone(),
            log: None,
            observers: Vec::new(),
            middleware: Vec::new(),
            max_waiting: DEFAULT_MAX_WAITING,
            full: OverloadPolicy::default(),
            max_droppable: None,
            max_queued: DEFAULT_MAX_QUEUED,
            seed: None,
            metrics: None,
            scaling: None,
        }
    }
}

impl fmt::Debug for WorkerPoolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPoolBuilder")
            .field("max_waiting", &self.max_waiting)
            .field("full", &self.full)
            .field("max_droppable", &self.max_droppable)
            .field("scaling", &self.scaling)
            .finish_non_exhaustive()
    }
}
