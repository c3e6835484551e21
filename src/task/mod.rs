//! The worker pool: tasks with names, priorities, limits in time, retries, and a report of each.
//!
//! ```text
//!   submit ─► admission ─► lane ─► attempt ──returned──► end ─► report, callback, counters
//!               │                 ▲  │
//!            refused              │  └─ failed, another try is left ─► timer ─┐
//!                                 └───────────────────────────────────────────┘
//! ```
//!
//! It stands on what users of a [`Pool`](crate::Pool) have: lanes for what is ready, timers for what waits. It
//! creates no thread, and no thread waits for a retry or a time-out.
//!
//! From the ground up; a line imports from those above it.
//!
//! | where | idea |
//! |---|---|
//! | `settings.rs`, `counters.rs`, `stamp.rs`, `attempt/fault.rs`, `result/report.rs` | plain values: settings, counts, times, faults, reports |
//! | `admission/`: `keyed.rs`, `droppable.rs`, `limiter.rs`; `retry/`: `delay_queue.rs`, `budget.rs`; `attempt/`: `guard.rs`, `attempts.rs` | where tasks wait, or are noted: containers that know no task |
//! | `record/word.rs`, `record/table.rs` | a task under way: its word, where every race for its end is settled, and where records lie |
//! | `record/`, `common.rs`, `attempt/mod.rs` | what a record says of its task; what a worker pool's tasks share; what a function is given |
//! | `attempt/limits.rs`, `attempt/middleware.rs`, `admission/limited.rs`, `result/observe.rs` | what is done when a time is over, around an attempt, for a name's bounds, for those who count and log |
//! | `attempt/execute.rs`, `attempt/waiting.rs`, `admission/lane.rs` | a job: one attempt and what follows, where it waits, what is done when its lane is full |
//! | `result/handle.rs` | what the submitter holds |
//! | `admission/submit.rs`, `admission/batch.rs`, `retry/overlap.rs`, `retry/periodic.rs`, `attempt/tagged.rs` | ways in: single tasks, many at once, retries that overlap, periodic tasks, attempts that a host takes as data |
//! | `result/end.rs` | what follows from the end of a task |
//! | `task_type.rs`, `worker_pool.rs`, `builder.rs`, `stats.rs`, `health.rs`, `scaling.rs`, `shutdown.rs`, `arena.rs` | the worker pool itself, its figures, its threads, its end, and what it leaves behind |
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
//!    end it; one compare-exchange does, and whoever made it counts and tells (`record/word.rs`). The word carries a
//!    generation and the number of the attempt, so what is late for one touches neither the next attempt nor the
//!    next tenant.
//! 2. **Records are recycled; task types are freed when their pool is gone and no record refers to them** (`arena.rs`).
//!    So a task counts no references. A few free records lie with each thread, and pass between threads 64 at a
//!    time.
//! 3. **The closure travels.** It is by value in the lane's slot, with its thread, or where it waits (its record, a
//!    key's list): one place at a time, so two attempts cannot overlap, and a retry holds no thread. A task that
//!    waits for its time is its record alone: the closure lies where its value will, and a wheel of the worker pool
//!    links the records (`retry/delay_queue.rs`).
//! 4. **A limit in time arms no timer.** Whoever would begin the task looks, whoever waits for it looks, and what
//!    runs, at most one task for each thread, is looked after by one guard. A callback or a future that waits for a
//!    limited task has a timer, as no thread sleeps for it.
//! 5. **A function that does not listen cannot be ended.** Its waiter hears TIMED_OUT at the deadline (of an
//!    attempt that another might follow, after its `grace`, since none begins beside it); its thread is in
//!    `WorkerStats::stuck` until it returns, and that much capacity is lost. A task type that overlaps its retries has
//!    the next attempt begin all the same: by one change of the word the right to go on passes to it, and the one
//!    that returns later finds that out, and touches nothing (`retry/overlap.rs`).
//! 6. **Only who agreed is dropped.** A submitter says what happens when a lane is full. What may be dropped for
//!    others lies in a list beside its lane, with tickets in the lane (`admission/droppable.rs`): so the oldest can be taken
//!    out, while the lane keeps its order and whoever has another policy stays.
//! 7. **Who may not begin yet has left its lane.** A task whose name runs as often as it may, or has started as
//!    often, waits in its name's line (`admission/limiter.rs`) without a thread, and with its place by age: so tasks of other
//!    names are not behind it.
//! 8. **Attempts may be data.** A task without a function waits in a queue of its own, in the order of lanes, until
//!    a completion queue brings it: then its attempt begins, and is out until any thread completes it (`attempt/tagged.rs`). A host that
//!    is gone without a word is found out by a lease, if its name has one. All else is as for other tasks. This is
//!    how languages with an interpreter's lock run tasks: in batches, on their own threads.
//! 9. **Times are exact when it matters.** A thread that asks for the time more than 64 times within a tick of the
//!    kernel's, for limits of a second or more or for none, gets an answer that may be a tick old for most of them.
//!    Such long limits end up to 10 ms late rather than early.

mod admission;
mod arena;
mod attempt;
mod builder;
mod common;
mod counters;
mod health;
mod metrics;
pub(crate) mod record;
mod result;
mod retry;
mod scaling;
mod settings;
mod shutdown;
mod stamp;
mod stats;
mod task_type;
#[cfg(all(test, not(loom)))]
mod tests;
mod worker_pool;

pub use crate::time::{Backoff, GiveUp, Jitter, Rate, Retry};
pub use admission::batch::{Batch, Unsubmitted};
pub use admission::submit::TaskBuilder;
pub use attempt::Attempt;
pub use attempt::Middleware;
pub(crate) use attempt::attempts::{AttemptId, TaskEvent};
pub use attempt::fault::{Fault, Outcome, Plain};
pub(crate) use attempt::tagged::OfWorkers as Attempts;
pub use attempt::tagged::Tagged;
pub use builder::WorkerPoolBuilder;
pub use health::{Health, HealthReport};
#[cfg(feature = "capi")]
pub(crate) use result::handle::Known;
pub use result::handle::TaskHandle;
pub use result::observer::{EndRecord, Observer, StuckRecord};
pub use result::report::{Status, TaskReport};
pub use retry::budget::RetryBudget;
pub use retry::overlap::Concurrent;
pub use retry::periodic::{MissedTick, Periodic};
pub use scaling::Scaling;
pub use settings::OverloadPolicy;
pub use shutdown::{Phases, ShutdownReport};
pub use stats::{StuckTask, TaskAudit, TaskTypeSnapshot, WorkerSnapshot, WorkerStats};
pub use task_type::{TaskType, TaskTypeBuilder};
pub use worker_pool::WorkerPool;
