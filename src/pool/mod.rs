//! The pool: threads that take turns leading. **This page is the protocol; read it first.**
//!
//! ```text
//!   follower ──try_lead──► leader ──demultiplex──► harvest ──promote──► processing ──► follower
//!                                                     └─ surplus ─► ready work ─► any thread
//! ```
//!
//! One thread leads: it waits at the event source of its [handle set](leader). When something happens
//! it keeps one event, puts the rest into ready work, offers leadership, and handles the event
//! itself. In the common case no event changes threads and no thread is woken: the leader comes back,
//! works the surplus off, and takes the leadership that it had offered.
//!
//! # What each file is about
//!
//! | where | idea |
//! |---|---|
//! | `worker/` | the loop of one member: lead, handle, follow, watch; what it knows of time |
//! | `members/` | members, how they are woken, what they have done; `wake.rs`: who is parked, searches and watches: one word, every wake one CAS |
//! | `members/places.rs` | how many of the threads work, and how the others are set aside |
//! | `members/deferred_watchdog.rs` | how the watch is armed for a lone request without waking a thread |
//! | `leader/` | leadership of a handle set, and what the leader does with it |
//! | `slots/` | where handles live; one word per handle settles every race for it |
//! | `ready/` | ready work, and who comes for it; `reserve.rs`: threads that run one lane only; `ageing.rs`: whether something waits for too long in a lane |
//! | `tasks/` | submitted work and its results; strands |
//! | `end.rs`, `shutdown.rs` | the end: refuse, drain, stop, sweep |
//! | `shared.rs` | what the members share: the owners of all this |
//! | `handle.rs`, `timers/`, `ring.rs` | what users register |
//! | `turn.rs` | turns: how long a thread works on ready work before it looks at everything that waits |
//! | `service.rs` | slots for parts that keep ready work of their own |
//! | `host/` | threads of a host: they take part, or take events from completion queues |
//! | `signals.rs` | signals of the process, handled on the pool |
//! | `timeline.rs` | recordings of what threads do |
//! | `progress.rs` | whether the pool makes progress, and how long the oldest thing has waited: what health is |
//! | `start.rs`, `stats.rs`, `config.rs`, `placement.rs` | the rest of the surface |
//!
//! # Deferred promotion
//!
//! Waking a follower for every event is what makes the textbook pattern slow: a wake costs more than
//! a small handler. Never waking one lets a handler that blocks starve all others. So `promote`
//! stores *offered* and wakes no thread, and three rules keep every promise all the same:
//!
//! * **Nothing claimed is stuck.** The surplus of a harvest is in a ring that every thread pops from,
//!   claimed tasks and activations stay in words that others can steal ([`crate::queue`]).
//! * **A thread watches.** Before code of the user runs, if a leadership is offered or work is left,
//!   there must be a watch: a follower in a timed park (or, with no member parked, a polling leader
//!   with a time-out). At each tick it compares what it sees with the tick before, by age: a set
//!   still offered with the same harvest number, an entry still queued, a local queue still held. Then it
//!   hands the watch on and steps in.
//! * **Cost decides about sharing.** If a harvest is worth more than a helper's start, one is woken.
//!
//! # Invariants
//!
//! 1. A handle set has at most one leader. (`leader/`)
//! 2. Never { ready work ∧ every thread parked }. Work from outside never waits while a follower is
//!    parked and no thread is searching. (`members/wake.rs`)
//! 3. Ready work and an offered leadership never wait longer than two watch periods, plus the
//!    scheduler's delay, while some thread is free. (`worker/`) A reserved thread is free
//!    for its lane only (`ready/reserve.rs`), and one that is set aside is not (`members/places.rs`).
//! 4. A handle's handler runs on at most one thread at a time, and an event that arrives meanwhile is
//!    not lost. (`slots/`)
//! 5. `deregister` closes a queued handle at once; of a running one it returns after the handler has,
//!    or, inside a handler, says `Closing`. (`handle.rs`)
//! 6. Conservation: submitted = accepted + rejected; accepted = completed + failed + cancelled + in
//!    flight. (`stats.rs`)
//! 7. After start no thread is created, and posting, dispatching and arming allocate nothing.
//! 8. No lock is held, and no foreign work runs on the caller's stack, while code of the user runs.
//! 9. Beside any number of backlogs a thread looks at its source, at due timers and at each lane after a turn and the
//!    handler that runs then. (`turn.rs`)

mod config;
mod context;
mod counters;
mod deadline;
mod end;
mod handle;
mod handler;
mod host;
mod leader;
mod log;
mod members;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(all(test, loom))]
pub(crate) mod models;
mod placement;
pub(crate) mod progress;
mod ready;
mod ring;
pub(crate) mod service;
mod shared;
mod shutdown;
mod signals;
mod slots;
mod start;
mod stats;
mod tasks;
#[cfg(all(test, not(loom)))]
mod tests;
mod this_thread;
mod timeline;
mod timers;
mod turn;
mod worker;

pub use config::{Builder, Promotion, SourceKind};
#[cfg(feature = "config")]
pub(crate) use config::{MAX_JOINED, MAX_THREADS};
pub use context::{promote_new_leader, unconfined};
pub use end::PoolReport;
pub use handle::{Handle, HandleOptions};
pub use handler::{EventKind, Flow, SlowReport};
pub use host::HandleId;
pub(crate) use host::{
    Event, Outbox as HostOutbox, abandon, complete, pollable, take_part, wait_for,
};
pub(crate) use members::Overseer;
pub use members::ThreadRole;
pub use placement::Pin;
pub use ring::Ring;
pub use signals::Signals;
pub use stats::{Audit, SetStats, Stats, ThreadState, ThreadStats};
pub use tasks::{LaneRef, Scope, Strand, Task, Unposted};
pub use timeline::{Recording, Trace};
pub use timers::Timer;

#[cfg(feature = "capi")]
pub(crate) use self::{handle::next_multiple, timers::AskedFor};
pub(crate) use crate::contain::{contain, discard, message_of};
pub(crate) use context::{blocking, current, stops_around_us};
pub(crate) use deadline::Deadline;
pub(crate) use end::{Remains, Served};
pub(crate) use shared::Shared;
pub(crate) use slots::{Activity, Entry, Key, NEVER, Slab, Slot};
pub(crate) use tasks::Staged;
pub(crate) use this_thread::{Outcome, member_here, report, take_outcome};
#[cfg(feature = "capi")]
pub(crate) use timeline::KEPT_RECORDS;
pub(crate) use turn::TurnClock;

use crate::error::{Error, Result};
use core::fmt;
use core::time::Duration;
use shutdown::{Life, Threads};
use std::sync::Arc;

/// A fixed set of threads and the event sources that they serve. Clones are the same pool; when the
/// last one is dropped, the pool runs what it has accepted and shuts down.
///
/// ```
/// use paceline::Pool;
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?; // one thread for each CPU that the process may use
/// let answer = pool.submit(|| 6 * 7)?;
/// assert_eq!(answer.wait()?, 42);
/// let report = pool.shutdown(Duration::from_secs(10));
/// assert!(report.drained);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pool {
    life: Arc<Life>,
}

impl Pool {
    pub(crate) fn from_life(life: Life) -> Self {
        Self { life: Arc::new(life) }
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.life.shared
    }

    fn threads(&self) -> &Threads {
        &self.life.threads
    }

    /// Whether the calling thread is a member now.
    pub(crate) fn is_inside(&self) -> bool {
        self.shared().is_inside()
    }

    /// Shuts the pool down: refuses new work from outside and lets everything that was accepted end, for up to
    /// `drain`. Then it cancels what has not begun, closes all handles, and ends the threads.
    ///
    /// Everything: servers stop accepting, answer the requests that they have taken, and close their connections, as by
    /// their own `drain`; worker pools run their tasks, with the retries; hubs and rings deliver what was published; tasks
    /// run. A retry, or a delayed task of a worker pool, that is due only after the drain is not waited for; nor is a
    /// one-shot timer that is not due. A connection that is not through after the drain is cut off, and counted.
    /// Datagram sockets stay open to the end, so that late answers can be sent.
    ///
    /// It returns when all handlers have returned, or 100 ms after the drain at the latest; threads
    /// that are still inside a handler then are reported as stuck, and nothing that they use is
    /// freed. Inside a handler it is only a request and returns at once. Calling it again is
    /// harmless.
    ///
    /// A pool without threads is drained by the hosts that are in it now: those that [join](Self::join) until the
    /// last of them leaves, and those that wait at a [completion queue](crate::cq::CompletionQueue), until it is closed. If
    /// none of them is left, the calling thread runs what was accepted, in the time that `drain` gives. It does not wait for
    /// what only a host could end: an attempt that no host has taken, or one that was taken and is not completed.
    ///
    /// The end of a pool's last owner does the same, for up to 30 s.
    pub fn shutdown(&self, drain: Duration) -> PoolReport {
        let shared = self.shared();
        if shared.is_forked() {
            return PoolReport::default();
        }
        let drain = u64::try_from(drain.as_nanos()).unwrap_or(u64::MAX);
        shared.shut_down(drain, self.threads())
    }

    /// What the last owner's end does, for owners in other languages.
    pub(crate) fn end_with_owner(&self) -> PoolReport {
        match self.shared().is_forked() {
            true => PoolReport::default(),
            false => self.shared().end_with_owner(self.threads()),
        }
    }

    /// Shuts the pool down without a drain: what has not begun is cancelled. Otherwise as
    /// [`shutdown`](Self::shutdown).
    pub fn stop_now(&self) -> PoolReport {
        self.shutdown(Duration::ZERO)
    }

    /// Lets only the first `threads` of the ordinary threads work; the others finish what they are at,
    /// and park until more are wanted. Parked threads cost nothing. At the start all are active; a
    /// shutdown calls them all back to help.
    ///
    /// 1 to the number of ordinary threads; with more than one handle set, at least one more than
    /// there are sets. Reserved threads and host threads always work. While threads of the pool wait
    /// inside for others' tasks, as many more are active.
    ///
    /// Any thread may call this, and so may handlers.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the range; [`Error::ShutDown`], [`Error::Forked`].
    pub fn set_active(&self, threads: usize) -> Result<()> {
        let shared = self.shared();
        shared.check_open()?;
        let (least, most) = (shared.places.least(), shared.places.ordinary());
        if !(least..=most).contains(&threads) {
            return Err(Error::invalid("active", threads, format!("{least} to {most}")));
        }
        shared.places.set_active(threads, &shared.ready, &shared.log);
        Ok(())
    }

    pub(crate) fn downgrade(&self) -> WeakPool {
        WeakPool(Arc::downgrade(&self.life))
    }
}

/// A pool, for what lives in it and must not keep it alive.
pub(crate) struct WeakPool(std::sync::Weak<Life>);

impl WeakPool {
    /// None: it shuts down.
    pub(crate) fn upgrade(&self) -> Option<Pool> {
        self.0.upgrade().map(|life| Pool { life })
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("threads", &self.shared().ready.members.threads)
            .field("sets", &self.shared().ready.handles.sets.len())
            .finish_non_exhaustive()
    }
}
