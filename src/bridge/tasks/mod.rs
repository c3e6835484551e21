//! Durable tasks: a worker pool whose queue is a broker's, and outlives the process.
//!
//! ```text
//!   submitter                        broker                              any worker
//!   submit ──► export ──► stream of the lane ──► consumer of the name ──► Jobs ──► task of the WorkerPool
//!      │        stored: accepted        ▲                                             │ end
//!      │                                └── nak: another attempt, after its delay ◄───┤ failed, one is left
//!      └──◄── results ◄── stream of results ◄── result stored ◄───────────────────────┘ else; then ack
//!                         stream of the dead ◄── failed for good: stored, then ack
//! ```
//!
//! It is a bridge of a hub of its own (`handle.rs`), so submitting is exporting at least once, and working is importing at
//! least once, into the worker pool in place of the hub.
//!
//! | in the hub | subject | stream | keeps |
//! |---|---|---|---|
//! | `tasks.Q.LANE.NAME.ID` | `paceline.tasks.Q.LANE.NAME.ID` | `paceline_Q_LANE`, four of them | until a task has ended |
//! | `claims.Q.ID` | `paceline.claims.…` | `paceline_Q_claims`: of unique ids | for the window |
//! | `results.Q.ORIGIN.ID` | `paceline.results.…` | `paceline_Q_results` | for an hour, unless set |
//! | `began.Q.ID` | `paceline.began.…` | `paceline_Q_began`: see `attempts.rs` | until a task has ended |
//! | `dead.Q.NAME` | `paceline.dead.…` | `paceline_Q_dead` | until somebody deletes it |
//! | `control.Q` | `paceline.control.Q` | none | |
//!
//! # Which runs of a task there can be
//!
//! 1. An attempt begins only after the task was stored, and while no other process is known to be at it: the broker gives
//!    a task to one process, and to another only when it was told of a failure, or has heard nothing for `ack_wait`.
//! 2. So two attempts overlap in one case: a process goes on working while the broker cannot hear it, for longer than
//!    `ack_wait`. Then both may end the task. The first result that is stored counts: the stream takes one for each id.
//! 3. A process that dies with a task has that task run again, unless it has had as many attempts as it may (`attempts.rs`).
//!    What an attempt has done before is done; handlers are to bear that, for which [`Job::id`] is the same each time.
//! 4. A task that was cancelled before it began never begins, as long as each worker that has it can be reached: see
//!    [`DurableQueue::cancel`].
//!
//! # Invariants
//!
//! 1. A task is acknowledged to the broker after its result, if it is wanted, and its dead letter are stored.
//! 2. An id is made by the submitter, and is that of one task for ever: in the key, in its result's, and as the id by which
//!    a stream knows a duplicate. What the broker's numbers say is never who a task is.
//! 3. `Table` has an entry for each task that somebody waits for, and a bounded number of results that came before.

mod attempts;
mod builder;
mod job;
mod line;
mod pulled;
mod queue;
mod schedule;
mod table;
mod wire;
mod work;

pub use builder::DurableBuilder;
#[cfg(feature = "capi")]
pub(crate) use builder::usual_retry;
pub use job::{DurableReport, DurableStatus, Job};
pub use pulled::OpenJob;
pub use queue::{DeadTask, DurableQueue, DurableTask, Submission};
