//! Looking at a pool: statistics, and the counters that must balance.

use super::Pool;
use super::members::{Tally, ThreadRole};
use super::shared::Shared;
use super::slots::Slot;
use crate::queue::Lane;
use crate::sync::atomic::Ordering::{Acquire, Relaxed};

/// A snapshot of a pool. Counts are since the start and never fall.
///
/// ```
/// use paceline::Pool;
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::builder().threads(2).build()?;
/// pool.submit(|| ())?.wait()?;
/// let stats = pool.stats();
/// // Its two threads, and then those that host threads become.
/// for (index, thread) in stats.threads.iter().take(2).enumerate() {
///     println!("thread {index} is {:?} and has led {} times", thread.role, thread.terms);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// One entry per pool thread, then one for each host thread that may join. A host thread that comes back has the
    /// entry that it had, unless more have come than may join at once.
    pub threads: Vec<ThreadStats>,
    /// One entry per handle set.
    pub sets: Vec<SetStats>,
    /// Tasks that wait in each lane, by [`Lane`] as an index.
    pub queued: [usize; 4],
    /// Handles, strands, timers and rings that exist now.
    pub handles: u64,
    /// System calls made to wake threads.
    pub wakes: u64,
    /// Threads that are parked now, idle or as the watch. Those that are set aside are not counted.
    pub parked: u32,
    /// Ordinary threads that work or are free to; the others are set aside
    /// ([`Pool::set_active`]).
    pub active: usize,
    /// Which thread is the watch now.
    pub watch: Option<usize>,
}

/// What a thread is doing, in five words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum ThreadState {
    /// No host thread takes this place, or the thread has ended.
    Away,
    /// Leads a handle set, or looks for work.
    Leader,
    /// Idle, or the watch.
    Follower,
    /// Runs a handler or a task.
    Processing,
    /// Runs a handler or a task that has outlasted its limit, and cannot be made to end.
    Stuck,
    /// Set aside by [`Pool::set_active`].
    Parked,
}

/// What one thread has done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadStats {
    /// What it is doing now.
    pub role: ThreadRole,
    /// What it runs now: the type of a handler or of a task's closure, the address of a server, the method and pattern of
    /// an HTTP route, the name of a worker pool's task type, or the pattern of a subscription. A process has room for
    /// some 4000 such names of 200 bytes; what finds none is called "(other)".
    pub running: Option<&'static str>,
    /// The lane that it is reserved for ([`Builder::reserve`](super::Builder::reserve)).
    pub reserved: Option<Lane>,
    /// What it runs has taken longer than the limit of
    /// [`Builder::on_slow`](super::Builder::on_slow). A worker pool knows of the limits of its tasks.
    pub stuck: bool,
    /// The CPU it is pinned to.
    pub cpu: Option<usize>,
    /// Pinning was asked for and failed.
    pub pin_failed: bool,
    /// The kernel's number of the thread, as `top -H` has it. Of a host thread's place: of the thread that has it, or had
    /// it last. None: no thread has run there, or the pool's own has ended.
    pub native_id: Option<u32>,
    /// Terms of leadership.
    pub terms: u64,
    /// Terms that it took over from another thread.
    pub handovers: u64,
    /// Times that it stepped in as the watch because something was stuck.
    pub rescues: u64,
    /// Events that it harvested as leader.
    pub events: u64,
    /// Handlers that it ran.
    pub handled: u64,
    /// Tasks that it ran or found cancelled.
    pub tasks: u64,
    /// Handlers and tasks that panicked.
    pub panics: u64,
    /// Times that it took over work that another thread had claimed.
    pub stolen: u64,
    /// Times that it parked.
    pub parked: u64,
    /// Looks that it took as the watch.
    pub ticks: u64,
}

/// What one handle set is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SetStats {
    /// The thread that leads it now.
    pub leader: Option<usize>,
    /// Terms that were led so far.
    pub harvests: u64,
    /// Activations that wait in its surplus ring.
    pub surplus: usize,
}

/// The counters of a pool. At rest they balance exactly; while it works the numbers are read one after
/// another, so they may be apart by what happened in between.
///
/// ```
/// use paceline::Pool;
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// for _ in 0..10 {
///     pool.post(|| ())?;
/// }
/// pool.shutdown(Duration::from_secs(10));
/// let audit = pool.audit();
/// assert!(audit.balances());
/// assert_eq!((audit.accepted, audit.completed, audit.cancelled), (10, 10, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audit {
    /// Tasks and one-shot timers that were handed in.
    pub submitted: u64,
    /// Those that were taken.
    pub accepted: u64,
    /// Those that were given back.
    pub rejected: u64,
    /// Those that ran to their end.
    pub completed: u64,
    /// Those that panicked.
    pub failed: u64,
    /// Those that were accepted and never ran.
    pub cancelled: u64,
    /// Those that wait or run: counted where they are, not derived from the others.
    pub in_flight: u64,
}

impl Audit {
    /// Whether accepted = completed + failed + cancelled + in flight, and submitted = accepted +
    /// rejected.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.submitted == self.accepted + self.rejected
            && self.accepted == self.completed + self.failed + self.cancelled + self.in_flight
    }
}

impl ThreadStats {
    /// Its role in the words of a dashboard.
    #[must_use]
    pub fn state(&self) -> ThreadState {
        match self.role {
            ThreadRole::Away => ThreadState::Away,
            ThreadRole::Follower | ThreadRole::Watch => ThreadState::Follower,
            ThreadRole::Leader => ThreadState::Leader,
            ThreadRole::Processing | ThreadRole::Task if self.stuck => ThreadState::Stuck,
            ThreadRole::Processing | ThreadRole::Task => ThreadState::Processing,
            ThreadRole::Parked => ThreadState::Parked,
        }
    }
}

impl Pool {
    /// A snapshot for people and dashboards. Any thread; allocates.
    pub fn stats(&self) -> Stats {
        Stats::of(self.shared())
    }

    /// The counters; see [`Audit`]. Any thread.
    pub fn audit(&self) -> Audit {
        Audit::of(self.shared())
    }
}

impl Stats {
    pub(crate) fn of(shared: &Shared) -> Self {
        Self {
            threads: (0..shared.ready.members.len())
                .map(|index| ThreadStats::of(shared, index))
                .collect(),
            sets: shared
                .ready
                .handles
                .sets
                .iter()
                .map(|set| SetStats {
                    leader: set.leader(),
                    harvests: set.harvests(),
                    surplus: set.surplus.len(),
                })
                .collect(),
            queued: Lane::ALL.map(|lane| shared.ready.tasks.len(lane)),
            handles: shared.ready.handles.slots_in_use(),
            wakes: shared.ready.members.wakes(),
            parked: shared.ready.members.parked(),
            active: shared.places.active(),
            watch: shared.ready.members.watch(),
        }
    }
}

impl ThreadStats {
    fn of(shared: &Shared, index: usize) -> Self {
        let member = &shared.ready.members[index];
        let tally = &member.tally;
        Self {
            role: member.role(),
            running: member.shown(),
            reserved: shared.ready.members.reserved_for(index),
            stuck: shared.ready.watchdog.is_slow(member, || shared.now()),
            cpu: member.pinned.load(Relaxed).checked_sub(1).map(|cpu| cpu as usize),
            pin_failed: member.pin_failed.load(Relaxed) != 0,
            native_id: Some(member.kernel_thread.load(Relaxed)).filter(|&id| id != 0),
            terms: tally.terms.get(),
            handovers: tally.handovers.get(),
            rescues: tally.rescues.get(),
            events: tally.events.get(),
            handled: tally.handled.get(),
            tasks: tally.tasks.get(),
            panics: tally.panics.get(),
            stolen: tally.stolen.get(),
            parked: tally.parked.get(),
            ticks: tally.ticks.get(),
        }
    }
}

impl Audit {
    pub(crate) fn of(shared: &Shared) -> Self {
        let sum = |count: fn(&Tally) -> u64| -> u64 {
            shared.ready.members.iter().map(|member| count(&member.tally)).sum()
        };
        // What has ended is read first, what was accepted last: a busy pool seems to have too much
        // in flight rather than too little.
        let ended = sum(|tally| tally.tasks.get());
        let outside = shared.counters.completed_outside.load(Acquire);
        let failed_outside = shared.counters.failed_outside.load(Acquire);
        let failed = sum(|tally| tally.failed.get());
        let cancelled = sum(|tally| tally.cancelled.get());
        let timers =
            shared.counters.undue.load(Acquire) + shared.counters.timers_cancelled.load(Acquire);
        let dropped = shared.counters.dropped.load(Acquire) + timers;
        let (staged, unstaged) = shared.ready.handles.sets.staged();
        let (tags_accepted, tags_taken, tags_waiting) = shared.hosts.counts();
        let in_flight = in_flight(shared) + tags_waiting;
        let accepted = shared.ready.tasks.accepted()
            + shared.counters.strands_accepted.load(Acquire)
            + shared.counters.timers_armed.load(Acquire)
            + staged
            + tags_accepted;
        let rejected = shared.counters.rejected.load(Acquire);
        Self {
            submitted: accepted + rejected,
            accepted,
            rejected,
            completed: ended - failed - cancelled + tags_taken + outside,
            failed: failed + failed_outside,
            cancelled: cancelled + dropped + unstaged,
            in_flight,
        }
    }
}

/// Counted: what is queued, claimed, waits in strands or for its time, or runs.
fn in_flight(shared: &Shared) -> u64 {
    let queued: usize = Lane::ALL.iter().map(|&lane| shared.ready.tasks.len(lane)).sum();
    let held: usize = shared.ready.members.iter().map(|member| member.local.len()).sum();
    let running =
        shared.ready.members.iter().filter(|member| member.role() == ThreadRole::Task).count();
    let timers =
        shared.ready.handles.slots.indices().filter(|&index| {
            shared.ready.handles.slots.get(index).is_some_and(Slot::is_waiting_timer)
        });
    (queued + held + running + timers.count()) as u64 + shared.counters.in_strands.load(Acquire)
}
