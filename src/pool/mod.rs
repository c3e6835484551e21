//! The pool: threads that take turns leading. **This page is the protocol; read it first.**
//!
//! ```text
//!   follower ──try_lead──► leader ──demultiplex──► harvest ──promote──► processing ──► follower
//!                                                     └─ surplus ─► ready work ─► any thread
//! ```
//!
//! One thread leads: it waits at the event source of its [handle set](set). When something happens
//! it keeps one event, puts the rest into ready work, offers leadership, and handles the event
//! itself. In the common case no event changes threads and nobody is woken: the leader comes back,
//! works the surplus off, and takes the leadership that it had offered.
//!
//! # What each file is about
//!
//! | file | idea |
//! |---|---|
//! | `worker.rs` | the loop of one member: lead, handle, follow, watch |
//! | `wake.rs` | who sleeps, searches and watches: one word, every wake one CAS |
//! | `reserve.rs` | threads that run one lane only |
//! | `active.rs` | how many of the threads work, and how the others are set aside |
//! | `ageing.rs` | whether something waits for too long in a lane |
//! | `bed.rs` | how the watch is armed for a lone request without waking anybody |
//! | `set.rs` | leadership of a handle set, and what the leader does with it |
//! | `slots.rs`, `slab.rs` | where handles live; one word per handle settles every race for it |
//! | `pace.rs` | what is known of time: averages, thresholds, and the watch's survey |
//! | `crew.rs` | members, how they are woken, what they have done |
//! | `shared.rs` | what they share, and the steps that work on it |
//! | `task.rs`, `submit.rs` | submitted work and its results |
//! | `handle.rs`, `timer.rs`, `strand.rs`, `ring.rs` | what users register |
//! | `service.rs` | slots for parts that keep ready work of their own |
//! | `pull.rs` | events as data, for hosts that cannot be called back |
//! | `signals.rs` | signals of the process, told on the pool |
//! | `host.rs`, `shutdown.rs`, `stats.rs`, `config.rs`, `placement.rs` | the rest of the surface |
//!
//! # Deferred promotion
//!
//! Waking a follower for every event is what makes the textbook pattern slow: a wake costs more than
//! a small handler. Never waking one lets a handler that blocks starve everybody. So `promote`
//! stores *offered* and wakes nobody, and three rules keep every promise all the same:
//!
//! * **Nothing claimed is stuck.** The surplus of a harvest is in a ring that every thread pops from,
//!   claimed tasks and activations stay in words that others can steal ([`crate::queue`]).
//! * **Somebody watches.** Before code of the user runs, if a leadership is offered or work is left,
//!   there must be a watch: a follower in a timed park (or, with nobody parked, a polling leader
//!   with a time-out). At each tick it compares what it sees with the tick before, by age: a set
//!   still offered with the same harvest number, an entry still queued, a hand still held. Then it
//!   hands the watch on and steps in.
//! * **Cost decides about sharing.** If a harvest is worth more than a helper's start, one is woken.
//!
//! # Invariants
//!
//! 1. A handle set has at most one leader. (`set.rs`)
//! 2. Never { ready work ∧ every thread parked }. Work from outside never waits while a follower is
//!    parked and nobody is searching. (`wake.rs`)
//! 3. Ready work and an offered leadership never wait longer than two watch periods, plus the
//!    scheduler's delay, while some thread is free. (`worker.rs`, [`pace`]) A reserved thread is free
//!    for its lane only (`reserve.rs`), and one that is set aside is not (`active.rs`).
//! 4. A handle's handler runs on at most one thread at a time, and an event that arrives meanwhile is
//!    not lost. (`slots.rs`)
//! 5. `deregister` closes a queued handle at once; of a running one it returns after the handler has,
//!    or, inside a handler, says `Closing`. (`handle.rs`)
//! 6. Conservation: submitted = accepted + rejected; accepted = completed + failed + cancelled + in
//!    flight. (`stats.rs`)
//! 7. After start no thread is created, and posting, dispatching and arming allocate nothing.
//! 8. No lock is held, and no foreign work runs on the caller's stack, while code of the user runs.

mod active;
mod ageing;
mod bed;
mod config;
mod context;
mod crew;
mod handle;
mod host;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(all(test, loom))]
pub(crate) mod models;
mod pace;
mod placement;
mod pull;
pub(crate) mod record;
mod reserve;
mod ring;
mod service;
mod set;
mod shared;
mod shutdown;
mod signals;
mod slab;
mod slots;
mod staging;
mod start;
mod stats;
mod strand;
mod submit;
mod task;
mod tell;
#[cfg(all(test, not(loom)))]
mod tests;
mod timer;
mod wake;
mod worker;

pub(crate) use active::Overseer;
pub use config::{Builder, Promotion, SourceKind};
#[cfg(feature = "config")]
pub(crate) use config::{MAX_JOINED, MAX_THREADS};
pub use crew::ThreadRole;
pub use handle::{Handle, HandleOptions};
pub use placement::Pin;
pub use pull::{Event, EventKind, HandleId};
pub use ring::Ring;
pub use shutdown::PoolReport;
pub use signals::Signals;
pub use stats::{Audit, SetStats, Stats, ThreadState, ThreadStats};
pub use strand::Strand;
pub use submit::{LaneRef, Unposted};
pub use task::Task;
pub use timer::Timer;

#[cfg(feature = "capi")]
pub(crate) use self::{
    handle::next_multiple,
    slab::{Entry, Slab},
    timer::AskedFor,
};
pub(crate) use context::current;
pub(crate) use context::discard;
pub(crate) use context::{Outcome, report};
pub(crate) use context::{blocking, contain};
pub(crate) use context::{is_inside, seat_here, stops_around_us, take_outcome};
pub(crate) use shared::Shared;
pub(crate) use shared::Staged;
pub(crate) use shared::{Remains, Served};
pub(crate) use slots::Activity;
pub(crate) use slots::Key;
pub(crate) use slots::NEVER;
pub(crate) use slots::Slot;
pub(crate) use submit::message_of;

use crate::error::Result;
use core::fmt;
use core::time::Duration;
use shutdown::{Life, Threads};
use std::sync::Arc;

/// What a handler answers.
///
/// ```
/// use paceline::{Flow, Pool};
/// use std::sync::mpsc;
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let (ticks, ticked) = mpsc::channel();
/// let mut left = 3;
/// pool.every(Duration::from_millis(1), move || {
///     let _receiver_may_be_gone = ticks.send(left);
///     left -= 1;
///     if left == 0 { Flow::Done } else { Flow::Wait } // three calls, then it is deregistered
/// })?
/// .detach();
/// assert_eq!(ticked.iter().collect::<Vec<_>>(), [3, 2, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Flow {
    /// Call me when something happens. For an edge-triggered descriptor this promises that the last
    /// operation saw EAGAIN (or `WouldBlock`): what is left unread now is not reported again.
    Wait,
    /// There is more to do: call me again, after others had their turn.
    Again,
    /// Do not call me before [`Handle::resume`]. What arrives meanwhile is kept. See [`Handle::pause`] for the one
    /// exception.
    Pause,
    /// I am through: deregister, and drop what was registered.
    Done,
}

/// A handler or task that took longer than the limit of [`Builder::on_slow`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlowReport {
    /// The index of the thread.
    pub thread: usize,
    /// How long it has taken so far.
    pub elapsed: Duration,
    /// It has not returned yet.
    pub running: bool,
}

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
    /// A pool with default settings: a thread per usable CPU, epoll, deferred promotion.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new() -> Result<Pool> {
        Builder::default().build()
    }

    /// Settings to build a pool from.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn start(config: Builder) -> Result<Pool> {
        start::start(config)
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.life.shared
    }

    pub(crate) fn threads(&self) -> &Threads {
        &self.life.threads
    }

    /// Whether the calling thread is a member now.
    pub(crate) fn is_inside(&self) -> bool {
        context::is_inside(self.shared())
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
            .field("threads", &self.shared().crew.threads)
            .field("sets", &self.shared().sets.len())
            .finish_non_exhaustive()
    }
}

/// Says "I am about to block": another thread of this thread's pool is called to lead and to take
/// over what this one has claimed. Call it inside a handler or task; elsewhere it does nothing.
///
/// ```
/// use paceline::{Pool, promote_new_leader};
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::builder().threads(2).build()?;
/// let task = pool.submit(|| {
///     promote_new_leader(); // what follows may block: another thread leads from now on
///     std::fs::read_to_string("/proc/self/comm")
/// })?;
/// assert!(task.wait()?.is_ok());
/// # Ok(())
/// # }
/// ```
pub fn promote_new_leader() {
    if let Some((shared, _)) = context::current() {
        shared.promote_for_blocking();
    }
}

/// A time to give up at, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<u64>);

impl Deadline {
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self(timeout.map(|time| crate::sys::clock::now().saturating_add(nanos(time))))
    }

    pub(crate) fn is_over(self) -> bool {
        self.0.is_some_and(|deadline| crate::sys::clock::now() >= deadline)
    }

    pub(crate) fn left(self) -> Option<Duration> {
        let left = |deadline: u64| deadline.saturating_sub(crate::sys::clock::now());
        self.0.map(|deadline| Duration::from_nanos(left(deadline)))
    }
}
