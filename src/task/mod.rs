//! The worker pool: tasks with names, priorities, limits in time, retries, and a report of each.
//!
//! ```text
//!   submit ─► intake ─► lane ─► attempt ──returned──► end ─► report, callback, counters
//!               │                 ▲  │
//!            refused              │  └─ failed, another try is left ─► timer ─┐
//!                                 └───────────────────────────────────────────┘
//! ```
//!
//! It stands on what users of a [`Pool`] have: lanes for what is ready, timers for what waits. It
//! creates no thread, and no thread waits for a retry or a time-out.
//!
//! | file | idea |
//! |---|---|
//! | `task_type.rs` | a name with its settings and its counters |
//! | `submit.rs` | ways in |
//! | `batch.rs` | many at once |
//! | `intake.rs` | what is done when a lane is full |
//! | `estate.rs` | what a worker pool leaves behind, and when it is freed |
//! | `record.rs` | what is known of a task under way; its word is in `pool/record.rs`, where every race for its end is settled |
//! | `execute.rs` | one attempt, and what follows from how it went |
//! | `limits.rs` | what is done when a time is over |
//! | `attempt.rs` | what a task's function is given, and what it may answer |
//! | `middleware.rs` | what runs around attempts |
//! | `handle.rs`, `report.rs`, `event.rs` | what the submitter holds, and gets |
//! | `pulled.rs` | tasks whose attempts a host takes as data |
//! | `waiting.rs` | where a task is while it neither runs nor lies in a lane |
//! | `sleepers.rs` | tasks that wait for their time |
//! | `keyed.rs` | one task at a time per key, in order |
//! | `overlap.rs` | retries that do not wait for an attempt that has outlived its time |
//! | `gate.rs` | those that must wait because their name runs as often as it may, or has started as often |
//! | `budget.rs` | how many retries the tasks of a name may make together |
//! | `periodic.rs` | a function that runs again and again |
//! | `observe.rs` | what is told to those who count and log |
//! | `scaling.rs` | how many threads are active |
//! | `health.rs` | how it is, in one word |
//! | `shutdown.rs` | refuse, drain, stop, clean up |
//!
//! # Promises
//!
//! 1. A task ends once: with one status, told once to each who asked.
//! 2. A task that was cancelled before it began never begins.
//! 3. Two attempts of one task never overlap, unless its task type says so: then one that has outlived its time
//!    may run beside the next, and what it comes to is discarded and counted.
//! 4. Whoever waits for a task with a deadline hears of its end at the deadline, whatever its function
//!    does; if a time-out of one attempt is what it has, and another might follow, after a grace in which
//!    the function may return. A function that does not look at its token cannot be ended: it keeps its thread, which is
//!    reported as stuck until it returns.
//! 5. Conservation: submitted = accepted + rejected; accepted = completed + failed + cancelled + timed
//!    out + dropped + in flight, and in flight is counted.
//!
//! # What it rests on
//!
//! 1. **One word settles a task's end.** Its function, a cancel, a limit in time and a shutdown may each want to
//!    end it; one compare-exchange does, and whoever made it counts and tells (`record.rs`). The word carries a
//!    generation and the number of the attempt, so what is late for one touches neither the next attempt nor the
//!    next tenant.
//! 2. **Records are recycled; task types are freed when their pool is gone and no record refers to them** (`estate.rs`).
//!    So a task counts no references. A few free records lie with each thread, and pass between threads 64 at a
//!    time.
//! 3. **The closure travels.** It is by value in the lane's slot, with its thread, or where it waits (its record, a
//!    key's list): one place at a time, so two attempts cannot overlap, and a retry holds no thread. A task that
//!    waits for its time is its record alone: the closure lies where its value will, and a wheel of the worker pool
//!    links the records (`sleepers.rs`).
//! 4. **A limit in time arms no timer.** Whoever would begin the task looks, whoever waits for it looks, and what
//!    runs, at most one task for each thread, is looked after by one guard. A callback or a future that waits for a
//!    limited task has a timer, as no thread sleeps for it.
//! 5. **A function that does not listen cannot be ended.** Its waiter hears TIMED_OUT at the deadline (of an
//!    attempt that another might follow, after its `grace`, since none begins beside it); its thread is in
//!    `WorkerStats::stuck` until it returns, and that much capacity is lost. A task type that overlaps its retries has
//!    the next attempt begin all the same: by one change of the word the right to go on passes to it, and the one
//!    that returns later finds that out, and touches nothing (`overlap.rs`).
//! 6. **Only who agreed is dropped.** A submitter says what happens when a lane is full. What may be dropped for
//!    others lies in a list beside its lane, with tickets in the lane (`intake.rs`): so the oldest can be taken
//!    out, while the lane keeps its order and whoever has another policy stays.
//! 7. **Who may not begin yet has left its lane.** A task whose name runs as often as it may, or has started as
//!    often, waits in its name's line (`gate.rs`) without a thread, and with its place by age: so tasks of other
//!    names are not behind it.
//! 8. **Attempts may be data.** A task without a function waits in a queue of its own, in the order of lanes, until
//!    a host pulls it: then its attempt begins, and is out until any thread completes it (`pulled.rs`). A host that
//!    is gone without a word is found out by a lease, if its name has one. All else is as for other tasks. This is
//!    how languages with an interpreter's lock run tasks: in batches, on their own threads.
//! 9. **Times are exact when it matters.** A thread that asks for the time more than 64 times within a tick of the
//!    kernel's, for limits of a second or more or for none, gets an answer that may be a tick old for most of them.
//!    Such long limits end up to 10 ms late rather than early.

mod attempt;
mod batch;
mod budget;
mod estate;
mod event;
mod execute;
mod gate;
mod handle;
mod health;
mod intake;
mod keyed;
mod limits;
#[cfg(feature = "metrics")]
mod metrics;
mod middleware;
mod observe;
mod overlap;
mod periodic;
mod pulled;
mod record;
mod report;
mod scaling;
mod shutdown;
mod sleepers;
mod stats;
mod submit;
mod task_type;
#[cfg(all(test, not(loom)))]
mod tests;
mod waiting;

pub use crate::time::{Backoff, GiveUp, Jitter, Rate, Retry};
pub use attempt::{Attempt, Fault, Outcome, Plain};
pub use batch::{Batch, Unsubmitted};
pub use budget::RetryBudget;
pub use event::TaskFd;
#[cfg(feature = "capi")]
pub(crate) use handle::Known;
pub use handle::TaskHandle;
pub use health::{Health, HealthReport};
pub use intake::OverloadPolicy;
pub use middleware::Middleware;
pub use observe::{EndRecord, Observer, StuckRecord};
pub use overlap::Concurrent;
pub use periodic::{MissedTick, Periodic};
pub use pulled::{AttemptId, Pulled, TaskEvent};
pub use report::{Status, TaskReport};
pub use scaling::Scaling;
pub use shutdown::{Phases, ShutdownReport};
pub use stats::{StuckTask, TaskAudit, TaskTypeSnapshot, WorkerStats};
pub use submit::TaskBuilder;
pub use task_type::{TaskType, TaskTypeBuilder};

use crate::contain::Contained;
use crate::error::{Error, Result};
use crate::log::{Log, Logger};
use crate::pool::{Pool, Shared};
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::Acquire;
use crate::sys::futex::Futex;
use core::fmt;
use estate::Estate;
use std::borrow::Cow;
use std::sync::{Arc, Weak};
use task_type::TaskTypes;

/// A worker pool over a [`Pool`], whose threads run its tasks beside everything else. Clones are the
/// same worker pool. What it has of its own, some 6 KB and what is known of its names, is the pool's, and is
/// freed when that is gone and the last of its tasks' handles.
///
/// ```
/// use paceline::{Lane, Pool};
/// use paceline::task::{Attempt, Fault, Retry, Status, WorkerPool};
/// use std::time::Duration;
///
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let workers = WorkerPool::new(&pool);
/// let task = workers
///     .task("resize", |attempt: &Attempt| match attempt.number() {
///         1 => Err(Fault::new("the disk was busy")),
///         _ => Ok(640 * 480),
///     })
///     .lane(Lane::High)
///     .retry(Retry::fixed(2, Duration::from_millis(1)))
///     .timeout(Duration::from_secs(2))
///     .submit()
///     .expect("an open pool");
/// let report = task.wait()?;
/// assert_eq!((report.status, report.attempts), (Status::Completed, 2));
/// assert_eq!(report.result.unwrap(), 307_200);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct WorkerPool {
    pool: Pool,
    common: Arc<Common>,
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "held"))]
    handles: Arc<Handles>,
}

/// What all clones of one worker pool have. With the last of them goes whoever could pull tasks and complete
/// attempts: those end.
struct Handles(Arc<Common>);

impl Drop for Handles {
    fn drop(&mut self) {
        if !self.0.shared.is_forked() {
            self.0.lobby.attempts.end();
            self.0.lobby.attempts.abandon();
        }
    }
}

/// The life of a worker pool, in order.
pub(crate) const OPEN: u32 = 0;
pub(crate) const DRAINING: u32 = 1;
pub(crate) const STOPPING: u32 = 2;

/// What all tasks of one worker pool share.
pub(crate) struct Common {
    pub(crate) shared: Arc<Shared>,
    /// The log of the pool, or the one that the worker pool was given.
    pub(crate) log: Logger,
    pub(crate) logs_ends: bool,
    pub(crate) observers: Box<[Contained<Arc<dyn Observer>>]>,
    middleware: Box<[Contained<Arc<dyn Middleware>>]>,
    estate: Arc<Estate>,
    pub(crate) guard: &'static limits::Guard,
    lobby: &'static waiting::Lobby,
    /// What is done when a lane is full, unless a task type says otherwise.
    full: OverloadPolicy,
    pub(crate) scaler: Option<Arc<scaling::Scaler>>,
    hooks: shutdown::Hooks,
    task_types: TaskTypes,
    phase: AtomicU32,
    /// Changes when something has ended that a shutdown may wait for.
    changed: Futex,
}

impl Common {
    #[inline]
    fn note_submission(&self, taken: bool) {
        if let (Some(scaler), true) = (&self.scaler, taken) {
            scaler.note_submission(&self.shared);
        }
    }

    pub(crate) fn phase(&self) -> u32 {
        self.phase.load(Acquire)
    }
}

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
    max_pulled: usize,
    seed: Option<u64>,
    #[cfg(feature = "metrics")]
    metrics: Option<(crate::metrics::Registry, String)>,
    scaling: Option<Scaling>,
}

/// What bounds those who wait.
const WAITING: core::ops::RangeInclusive<usize> = 1..=1 << 24;

/// How many tasks may wait for their keys, and for the rate of each name, unless set.
const DEFAULT_MAX_WAITING: usize = 1 << 16;
/// How many tasks may wait to be pulled, unless set.
const DEFAULT_MAX_PULLED: usize = 1 << 20;

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

    /// How many tasks of [`TaskType::task_pulled`] may wait to be pulled before others are refused as `Full`.
    /// 1 to 2^24; default 2^20.
    pub fn max_pulled(mut self, tasks: usize) -> Self {
        self.max_pulled = tasks;
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
    #[cfg_attr(not(feature = "metrics"), allow(unused_mut))]
    pub fn build(mut self) -> Result<WorkerPool> {
        let shared = Arc::clone(self.pool.shared());
        shared.check_open()?;
        let bounds = [
            ("max_waiting", Some(self.max_waiting)),
            ("max_droppable", self.max_droppable),
            ("max_pulled", Some(self.max_pulled)),
        ];
        for (name, tasks) in bounds {
            if let Some(tasks) = tasks.filter(|tasks| !WAITING.contains(tasks)) {
                return Err(Error::invalid(name, tasks, "1 to 16777216"));
            }
        }
        let (estate, guard) = Self::found(&shared);
        let start = |scaling| scaling::Scaler::start(scaling, &shared, &estate, guard);
        let scaler = self.scaling.map(start);
        let scaler = scaler.transpose()?;
        #[cfg(feature = "metrics")]
        if let Some((registry, name)) = self.metrics.take() {
            self.observers.push(Arc::new(metrics::Times::new(&registry, &name)?));
            let workers = self.make(shared, estate, guard, scaler);
            metrics::attach(&registry, name, &workers);
            return Ok(workers);
        }
        Ok(self.make(shared, estate, guard, scaler))
    }

    fn found(shared: &Shared) -> (Arc<Estate>, &'static limits::Guard) {
        let estate = Estate::new(shared);
        let guard = estate.keep(limits::Guard::new(shared.ready.members.len()));
        (estate, guard)
    }

    fn make(
        self,
        shared: Arc<Shared>,
        estate: Arc<Estate>,
        guard: &'static limits::Guard,
        scaler: Option<Arc<scaling::Scaler>>,
    ) -> WorkerPool {
        let droppable = self.max_droppable.unwrap_or(shared.lane_capacity());
        let lobby = waiting::Lobby::new(self.max_waiting, droppable, self.max_pulled, self.seed);
        let log = self.log.as_ref().map_or_else(|| shared.log.clone(), |log| shared.log.to(log));
        let common = Arc::new(Common {
            scaler,
            shared,
            log,
            logs_ends: self.log.is_some(),
            full: self.full,
            observers: self.observers.into_iter().map(Contained::new).collect(),
            middleware: self.middleware.into_iter().map(Contained::new).collect(),
            guard,
            lobby: estate.keep(lobby),
            estate,
            hooks: shutdown::Hooks::default(),
            task_types: TaskTypes::default(),
            phase: AtomicU32::new(OPEN),
            changed: Futex::new(0),
        });
        // Tasks outlive the handles of their worker pool; those who observe them do, too.
        self.pool.shared().keep(Arc::clone(&common) as _);
        let served: Weak<Common> = Arc::downgrade(&common);
        self.pool.shared().end.serve(served);
        common.lobby.attempts.end_with(&common.shared);
        let handles = Arc::new(Handles(Arc::clone(&common)));
        WorkerPool { pool: self.pool, common, handles }
    }
}

impl WorkerPool {
    /// A worker pool with default settings.
    pub fn new(pool: &Pool) -> WorkerPool {
        let (estate, guard) = WorkerPoolBuilder::found(pool.shared());
        Self::builder(pool).make(Arc::clone(pool.shared()), estate, guard, None)
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
            max_pulled: DEFAULT_MAX_PULLED,
            seed: None,
            #[cfg(feature = "metrics")]
            metrics: None,
            scaling: None,
        }
    }

    /// The pool whose threads run the tasks.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Settings for the tasks of one name. Give each name its settings before its first task.
    pub fn task_type<'a>(&'a self, name: &'a str) -> TaskTypeBuilder<'a> {
        TaskTypeBuilder::new(self, name)
    }

    /// A task, to be submitted. If no task type has this name one with default settings is made. Looking the
    /// name up takes a lock: a [`TaskType`] that is kept does not.
    pub fn task<F, R>(&self, name: &str, work: F) -> TaskBuilder<'_, F>
    where
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        let task_type = self.common.task_types.find_or_make(name, &self.common);
        TaskBuilder::new(task_type, Cow::Borrowed(&self.common), work)
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

impl fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool").field("pool", &self.pool).finish_non_exhaustive()
    }
}
