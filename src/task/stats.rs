//! Counters, and the counters that must balance.
//!
//! Each thread that has a [number](crate::sync::thread_number) has a shard of its own, which it changes by a plain load and store; all others
//! share the last one. A snapshot sums the shards.

use crate::pool::{Stats, ThreadRole, ThreadStats};
use crate::sync::atomic::Ordering::{Acquire, Relaxed};
use crate::task::arena::{Pin, pin};
use crate::task::common::Common;
use crate::task::common::TaskTypeInner;
use crate::task::counters::Event;
use crate::task::record;
use crate::task::task_type::TaskType;
use crate::task::worker_pool::WorkerPool;
use core::time::Duration;

/// What has happened to the tasks of one name. Counts never fall, but for `running`
/// and `waiting`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskTypeSnapshot {
    /// The name.
    pub name: String,
    /// Tasks that were handed in.
    pub submitted: u64,
    /// Those that were taken.
    pub accepted: u64,
    /// Those that were given back.
    pub rejected: u64,
    /// Those that have their value.
    pub completed: u64,
    /// Those whose last attempt failed.
    pub failed: u64,
    /// Those that were cancelled.
    pub cancelled: u64,
    /// Those whose time was over.
    pub timed_out: u64,
    /// Those that were taken, and dropped for the sake of others.
    pub dropped: u64,
    /// Attempts that failed and were followed by another.
    pub retried: u64,
    /// Retries that their budget did not allow.
    pub retries_refused: u64,
    /// Outcomes of attempts that had been overtaken by a retry: they changed nothing.
    pub discarded: u64,
    /// Attempts whose functions run now, on threads of the pool, or that are out with a host.
    pub running: u64,
    /// Tasks that are through their lane, and wait for their rate or because as many run as may.
    pub waiting: u64,
    /// How many may run at once, if there is a bound.
    pub max_running: Option<u32>,
}

impl TaskType {
    /// What has happened to the tasks of this name. Any thread.
    pub fn stats(&self) -> TaskTypeSnapshot {
        snapshot(self.inner())
    }
}

fn snapshot(task_type: &'static TaskTypeInner) -> TaskTypeSnapshot {
    let get = |event| task_type.stats.get(event);
    // What has ended is read first.
    let (completed, failed) = (get(Event::Completed), get(Event::Failed));
    let (cancelled, timed_out, dropped) =
        (get(Event::Cancelled), get(Event::TimedOut), get(Event::Dropped));
    let (accepted, rejected) = (get(Event::Accepted), get(Event::Rejected));
    TaskTypeSnapshot {
        name: task_type.name().to_owned(),
        submitted: accepted + rejected,
        accepted,
        rejected,
        completed,
        failed,
        cancelled,
        timed_out,
        dropped,
        retried: get(Event::Retried),
        retries_refused: get(Event::RetryRefused),
        discarded: get(Event::Discarded),
        running: task_type.guard.running(task_type)
            + task_type.wait_lists.attempts.out(|head| core::ptr::eq(head.task_type(), task_type)),
        waiting: task_type.limiter.as_ref().map_or(0, |limiter| limiter.waiting() as u64),
        max_running: task_type.settings.max_running,
    }
}

/// A snapshot of a worker pool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkerStats {
    /// One entry for each name, in their order.
    pub task_types: Vec<TaskTypeSnapshot>,
    /// Tasks that have not ended.
    pub in_flight: usize,
    /// Threads inside functions whose time is over: capacity that is lost until these return.
    pub stuck: Vec<StuckTask>,
    /// One entry for each thread of the pool, by its number, as in [`Stats::threads`].
    pub workers: Vec<WorkerSnapshot>,
}

/// What one thread of the pool has done for a worker pool. Attempts that a submitter runs in its own thread
/// ([`OverloadPolicy::RunHere`](crate::task::OverloadPolicy::RunHere)), or that a host takes from a completion queue,
/// are no thread's of the pool.
///
/// ```
/// use paceline::{Pool, task::{Attempt, WorkerPool}};
/// # fn main() -> paceline::Result<()> {
/// let workers = WorkerPool::new(&Pool::new()?);
/// let task = workers.task("add", |_: &Attempt<'_>| Ok::<_, String>(40 + 2)).submit()?;
/// let worker = task.wait()?.worker.expect("a thread of the pool");
/// let row = &workers.stats().workers[worker];
/// assert_eq!((row.worker, row.attempts, row.completed), (worker, 1, 1));
/// println!("{:.0} % of its time", row.utilisation * 100.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkerSnapshot {
    /// The number of the thread, as in [`TaskReport::worker`](crate::task::TaskReport::worker).
    pub worker: usize,
    /// What the thread is doing now, for this worker pool or anything else of the pool.
    pub role: ThreadRole,
    /// It runs an attempt of this worker pool that has outlived its time, or its task.
    pub stuck: bool,
    /// The name of the task of this worker pool that it runs now.
    pub task_type: Option<&'static str>,
    /// Attempts that it has begun: those that have completed or failed, and the one that runs.
    pub attempts: u64,
    /// Attempts that have returned a value.
    pub completed: u64,
    /// Attempts that have failed, panicked or been cancelled while they ran.
    pub failed: u64,
    /// What its attempts took together, up to now.
    pub run_time: Duration,
    /// The part of the time since the worker pool was made that its attempts took, 0.0 to 1.0.
    pub utilisation: f64,
}

/// A function that has not returned though its time is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StuckTask {
    /// The task's name.
    pub name: &'static str,
    /// Its number.
    pub id: u64,
    /// The thread that it holds, as in [`Stats::threads`](crate::Stats::threads).
    pub worker: usize,
}

/// The counters of a worker pool. At rest they balance exactly; while it works the numbers are read one
/// after another, and may be apart by what happened in between. What was posted without a handle is in
/// the counters of the pool ([`Pool::audit`](crate::Pool::audit)), where every attempt counts as a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskAudit {
    /// Tasks that were handed in.
    pub submitted: u64,
    /// Those that were taken.
    pub accepted: u64,
    /// Those that were given back.
    pub rejected: u64,
    /// Those that have their value.
    pub completed: u64,
    /// Those whose last attempt failed.
    pub failed: u64,
    /// Those that were cancelled.
    pub cancelled: u64,
    /// Those whose time was over.
    pub timed_out: u64,
    /// Those that were taken, and dropped for the sake of others.
    pub dropped: u64,
    /// Those that have not ended: counted, not derived from the others.
    pub in_flight: u64,
}

impl TaskAudit {
    /// Whether submitted = accepted + rejected, and accepted = completed + failed + cancelled + timed out
    /// + dropped + in flight.
    #[must_use]
    pub fn balances(&self) -> bool {
        let ended = self.completed + self.failed + self.cancelled + self.timed_out + self.dropped;
        self.submitted == self.accepted + self.rejected && self.accepted == ended + self.in_flight
    }
}

pub(super) fn stats_of(common: &Common) -> WorkerStats {
    let in_flight = in_flight(common);
    let task_types = common.task_types.all().into_iter().map(snapshot).collect();
    let pin = pin();
    let stuck = common.guard.stuck(&pin).into_iter().map(|(head, worker)| StuckTask {
        name: head.task_type().name(),
        id: head.id(),
        worker,
    });
    let stuck: Vec<_> = stuck.collect();
    let threads = Stats::of(&common.shared).threads;
    let rows = threads.iter().enumerate();
    let workers = rows.map(|(worker, thread)| WorkerSnapshot {
        stuck: stuck.iter().any(|task| task.worker == worker),
        ..worker_snapshot(common, worker, thread, &pin)
    });
    WorkerStats { workers: workers.collect(), task_types, in_flight, stuck }
}

fn worker_snapshot(
    common: &Common,
    worker: usize,
    thread: &ThreadStats,
    pin: &Pin,
) -> WorkerSnapshot {
    let place = &common.guard.places[worker];
    // What runs is read first: if it returns meanwhile, it counts once more rather than not at all.
    let running = place.task.load(Acquire).checked_sub(1);
    let began = place.began.load(Relaxed);
    let returned = place.returned();
    let now = common.shared.now();
    let runs_for = running.map_or(0, |_| now.saturating_sub(began));
    let run_time = returned.run_time + runs_for;
    let task = running.and_then(|id| record::find(pin, id));
    let task_type = task.map(|(head, _)| head.task_type());
    let lived = now.saturating_sub(common.made).max(1);
    WorkerSnapshot {
        worker,
        role: thread.role,
        stuck: false,
        task_type: task_type.map(TaskTypeInner::name),
        attempts: returned.completed + returned.failed + u64::from(running.is_some()),
        completed: returned.completed,
        failed: returned.failed,
        run_time: Duration::from_nanos(run_time),
        utilisation: (run_time as f64 / lived as f64).min(1.0),
    }
}

/// Counted: the records of this worker pool whose tasks have not ended.
fn in_flight(common: &Common) -> usize {
    record::live(&pin(), |task_type| task_type.is_of(common)).count()
}

impl WorkerPool {
    /// A snapshot for people and dashboards. Any thread; allocates, and looks at every task of the
    /// process that is under way.
    pub fn stats(&self) -> WorkerStats {
        stats_of(&self.common)
    }

    /// The counters; see [`TaskAudit`]. Any thread; as long as `stats`.
    pub fn audit(&self) -> TaskAudit {
        let stats = self.stats();
        let mut audit = TaskAudit { in_flight: stats.in_flight as u64, ..TaskAudit::default() };
        for task_type in stats.task_types {
            audit.submitted += task_type.submitted;
            audit.accepted += task_type.accepted;
            audit.rejected += task_type.rejected;
            audit.completed += task_type.completed;
            audit.failed += task_type.failed;
            audit.cancelled += task_type.cancelled;
            audit.timed_out += task_type.timed_out;
            audit.dropped += task_type.dropped;
        }
        audit
    }
}
