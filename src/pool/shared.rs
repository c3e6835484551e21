//! What all members of a pool share, and the steps that work on it.

use super::ageing::Ageing;
use super::config::{Builder, Promotion, SlowHook};
use super::context;
use super::crew::Crew;
use super::pace::Sharing;
use super::placement::Placement;
use super::pull::Outbox;
use super::set::HandleSet;
use super::shutdown::Before;
use super::slots::{Close, Finish, Key, Payload, Slot, SlotTable, Traits};
use super::task::TaskTable;
use super::wake::Watchers;
use super::{Deadline, Flow, SlowReport};
use crate::contain::Contained;
use crate::error::{Error, Rejected, Result};
use crate::log::Logger;
use crate::queue::{
    Claimed, Erased, Hand, IntrusiveStack, LANES, Lane, Origin, PushError, Run, Taken, TaskQueue,
    Turn,
};
use crate::source::{Clock, Interest, Ready};
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use crate::sync::{CachePadded, store_load_barrier};
use crate::sys::fork::ForkGuard;
use crate::sys::futex::Futex;
use core::time::Duration;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// The watch relaxes to this while no handler is slow.
const COARSE_PERIOD: u64 = 2_000_000;
/// How long the watch stays fine after a slow handler.
const FINE_FOR: u64 = 100_000_000;

/// The life of a pool, in order.
const OPEN: u32 = 0;
const DRAINING: u32 = 1;
const STOPPING: u32 = 2;

/// Everything that the members of one pool share. Fields are dropped in order: queued closures,
/// which may hold a completer, before the table of cells that completers point into.
pub(crate) struct Shared {
    pub(crate) tasks: TaskQueue,
    pub(crate) slots: SlotTable,
    pub(crate) cells: Arc<TaskTable>,
    /// Activations that did not come from a leader's harvest.
    pub(crate) stack: IntrusiveStack,
    pub(crate) sets: Box<[HandleSet]>,
    pub(crate) crew: Crew,
    pub(crate) sharing: Sharing,
    pub(crate) ageing: Ageing,
    pub(crate) promotion: Promotion,
    pub(crate) fine_period: u64,
    /// Nanoseconds; 0: nobody asked for reports.
    pub(crate) slow_limit: u64,
    pub(crate) spin: u64,
    pub(crate) strand_capacity: usize,
    slow_hook: Option<SlowHook>,
    pub(crate) log: Logger,
    clock: Clock,
    fork: ForkGuard,
    pub(crate) placement: Placement<'static>,
    /// Until when the watch is fine.
    fine_until: CachePadded<AtomicU64>,
    phase: CachePadded<AtomicU32>,
    drain_deadline: AtomicU64,
    /// How many ordinary threads work, the first ones (`active.rs`).
    pub(super) active: CachePadded<AtomicU32>,
    pub(super) overseer: Mutex<Option<Weak<dyn super::active::Overseer>>>,
    /// Members inside a wait of ours; see `begin_wait` for which.
    pub(super) waiting: AtomicU32,
    /// Members that take part now.
    present: AtomicU32,
    /// Host threads that pull, also between two pulls (`pull.rs`).
    pub(super) pullers: AtomicU32,
    /// Bumped when something that outside threads sleep for may have happened.
    pub(crate) changed: Futex,
    /// Producers that wait for room, by lane.
    lane_rooms: [Room; LANES],
    /// Producers that wait for room in a strand.
    pub(crate) strand_room: Room,
    /// Strand tasks accepted and not ended.
    pub(crate) in_strands: AtomicU64,
    pub(crate) strands_accepted: AtomicU64,
    pub(crate) rejected: AtomicU64,
    /// Tasks, and timers that were due, that the end of the pool has left unrun, outside of a member's own count.
    pub(crate) dropped: AtomicU64,
    /// Timers that were not due when the pool ended.
    pub(crate) undue: AtomicU64,
    /// The books when the end began.
    pub(super) before: OnceLock<Before>,
    /// Timers that were cancelled by a call. Those that were staged count in their shards.
    pub(crate) timers_cancelled: AtomicU64,
    pub(crate) timers_armed: AtomicU64,
    was_drained: AtomicBool,
    /// Somebody has asked for the end, and does not just let go of the pool.
    /// A member has left since the pool stopped.
    was_left: AtomicBool,
    next_set: AtomicU32,
    /// A host waits in a loop of its own for the pool's descriptor.
    pub(crate) hosted: AtomicBool,
    /// Events for hosts that pull.
    pub(crate) outbox: Outbox,
    /// What those who stand on the pool have it keep.
    kept: Mutex<Vec<Arc<dyn core::any::Any + Send + Sync>>>,
    /// Rings that the pool serves. The list is replaced, never changed: whoever asks them does it
    /// without the lock.
    parts: Mutex<Arc<[Weak<dyn Served>]>>,
    /// What may be gone only after all else here: so it is the last.
    last: Mutex<Vec<Arc<dyn core::any::Any + Send + Sync>>>,
}

/// Runs `f` on the payload of a slot that the caller has claimed and not finished.
#[inline]
#[allow(unsafe_code, reason = "the slot was claimed")]
pub(crate) fn with_claimed<R>(slot: &Slot, f: impl FnOnce(&mut Payload) -> R) -> R {
    // SAFETY: every caller has claimed the slot and not finished it, so the payload is its own.
    unsafe { slot.payload(f) }
}

/// How often a leader looks whether the pool has drained.
pub(super) const DRAIN_LOOK: u64 = 10_000_000;

/// What a part of the pool (a server, a worker pool, a hub, a ring) still has to do before the pool may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remains {
    Nothing,
    /// Only work whose time comes after the drain's deadline: it is not waited for.
    Later,
    Work,
}

/// A part of the pool, as far as the end of the pool is concerned. It is called without a lock, so it may call
/// the pool.
pub(crate) trait Served: Send + Sync {
    /// The pool drains from now on. It may be called more than once. Not called if the pool stops without a drain.
    fn begin_drain(&self) {}
    /// What is left to do for a drain that ends at `deadline`, by the pool's clock.
    fn remains(&self, deadline: u64) -> Remains;
    /// How many events or messages have not been handled.
    fn left(&self) -> u64 {
        0
    }
    /// How many tasks of a worker pool were cancelled so far.
    fn cancelled(&self) -> u64 {
        0
    }
    /// How many tasks of a worker pool a host has pulled and not completed.
    fn out(&self) -> u64 {
        0
    }
    /// How many connections of a server were cut off so far, by its own end or the pool's.
    fn cut_off(&self) -> u64 {
        0
    }
    /// Refuses everything from now on.
    fn close(&self);
}

/// Where producers sleep while a lane is full, or while their strand is.
pub(crate) struct Room {
    waiters: AtomicU32,
    epoch: Futex,
}

impl Room {
    fn new() -> Self {
        Self { waiters: AtomicU32::new(0), epoch: Futex::new(0) }
    }

    /// Whether anybody waits. The caller has made room and passed a barrier.
    #[inline]
    fn is_wanted(&self) -> bool {
        self.waiters.load(Relaxed) != 0
    }

    #[cold]
    fn call(&self) {
        self.epoch.fetch_add(1, AcqRel);
        self.epoch.wake(i32::MAX);
    }
}

impl Shared {
    pub(crate) fn new(
        config: &Builder,
        ordinary: usize,
        sets: Box<[HandleSet]>,
        placement: Placement<'static>,
    ) -> Result<Self> {
        let clock = sets[0].source.clock();
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let fork = ForkGuard::new()
            .map_err(|error| Error::os("map a page that tells of a fork", error))?;
        let crew = Crew::new(ordinary, config.reserved, config.max_joined);
        Ok(Self {
            tasks: TaskQueue::new(config.lane_capacity)?.reserving(crew.reserved_lanes()),
            slots: SlotTable::new(config.max_handles),
            cells: Arc::new(TaskTable::new(config.max_handles, fork)),
            stack: IntrusiveStack::new(),
            sets,
            crew,
            sharing: Sharing::new(),
            ageing: Ageing::new(config.ageing.map_or(u64::MAX, nanos)),
            promotion: config.promotion,
            fine_period: nanos(config.watch_period),
            slow_limit: config.on_slow.as_ref().map_or(0, |(limit, _)| nanos(*limit)),
            spin: nanos(config.spin),
            strand_capacity: config.strand_capacity,
            slow_hook: config.on_slow.as_ref().map(|(_, hook)| Arc::clone(hook)),
            log: config.logger(),
            clock,
            fork,
            placement,
            fine_until: CachePadded::new(AtomicU64::new(0)),
            phase: CachePadded::new(AtomicU32::new(OPEN)),
            drain_deadline: AtomicU64::new(u64::MAX),
            active: CachePadded::new(AtomicU32::new(ordinary.max(1) as u32)),
            overseer: Mutex::default(),
            waiting: AtomicU32::new(0),
            present: AtomicU32::new(0),
            pullers: AtomicU32::new(0),
            changed: Futex::new(0),
            lane_rooms: core::array::from_fn(|_| Room::new()),
            strand_room: Room::new(),
            in_strands: AtomicU64::new(0),
            strands_accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            undue: AtomicU64::new(0),
            before: OnceLock::new(),
            timers_cancelled: AtomicU64::new(0),
            timers_armed: AtomicU64::new(0),
            was_drained: AtomicBool::new(false),
            was_left: AtomicBool::new(false),
            next_set: AtomicU32::new(0),
            hosted: AtomicBool::new(false),
            outbox: Outbox::new(config.lane_capacity),
            kept: Mutex::default(),
            parts: Mutex::new(Arc::new([])),
            last: Mutex::default(),
        })
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.fork.is_child()
    }

    /// For those who must be able to ask when the pool is gone.
    pub(crate) fn fork_guard(&self) -> ForkGuard {
        self.fork
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How many seats there are, for the pool's own threads and for hosts.
    pub(crate) fn members(&self) -> usize {
        self.crew.members.len()
    }

    /// Keeps something until the pool has been swept up.
    pub(crate) fn keep(&self, what: Arc<dyn core::any::Any + Send + Sync>) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Keeps something until no thread of the pool is left, nor anything else of it.
    pub(crate) fn keep_to_the_end(&self, what: Arc<dyn core::any::Any + Send + Sync>) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Code of the user has returned. In a child that it forked there is nothing to return to: this
    /// thread would run again what the parent runs, and take the parent's events.
    #[inline]
    pub(crate) fn end_if_forked(&self) {
        if self.is_forked() {
            std::process::abort();
        }
    }

    /// The instant that is `delay` from now.
    pub(crate) fn now_and(&self, delay: core::time::Duration) -> u64 {
        self.now().saturating_add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX))
    }

    /// An error unless this process built the pool and it is open to this thread: while it drains, to handlers, and to
    /// hosts that have pulled what they handle.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_forked() {
            Err(Error::Forked)
        } else if self.is_open_to(false) || self.is_open_to_handlers() {
            Ok(())
        } else {
            Err(Error::ShutDown)
        }
    }

    #[cold]
    fn is_open_to_handlers(&self) -> bool {
        self.is_open_to(context::is_inside(self) || context::has_pulled(self))
    }

    /// Something of this pool, or of what stands on it, was pulled by this thread, which handles it from here on.
    pub(crate) fn note_pulled(&self) {
        context::note_pulled(self);
    }

    // --- what is there to do ---------------------------------------------------------------------

    /// Whether this member would find work without taking it from another.
    #[inline]
    pub(crate) fn has_ready(&self, seat: &super::crew::Member) -> bool {
        !seat.hand.is_empty() || !seat.chain.is_empty() || self.has_unclaimed()
    }

    /// Whether there is work that nobody has claimed.
    #[inline]
    pub(crate) fn has_unclaimed(&self) -> bool {
        // What a busy server has most often comes first.
        self.sets.iter().any(|set| !set.surplus.is_empty())
            || !self.stack.is_empty()
            || self.tasks.has_claimable()
    }

    /// About how many more handlers `seat` could run now.
    pub(crate) fn backlog(&self, seat: &super::crew::Member) -> u64 {
        let (tasks, surplus) = self.queued();
        let stacked = usize::from(!self.stack.is_empty()) + usize::from(!seat.chain.is_empty());
        (tasks + surplus + stacked + seat.hand.len()) as u64
    }

    /// Tasks in the lanes, and activations in the surplus rings.
    pub(crate) fn queued(&self) -> (usize, usize) {
        let tasks = Lane::ALL.iter().map(|&lane| self.tasks.len(lane)).sum();
        (tasks, self.sets.iter().map(|set| set.surplus.len()).sum())
    }

    /// Whether another member has claimed work that it has not begun.
    pub(crate) fn others_hold_work(&self, me: usize) -> bool {
        let holds =
            |member: &super::crew::Member| !member.hand.is_empty() || !member.chain.is_empty();
        self.crew.members.iter().enumerate().any(|(index, other)| index != me && holds(other))
    }

    /// Whether there is anything that only a watch comes across: what another member has claimed,
    /// or a handler that is to be reported if it goes on for too long.
    pub(crate) fn needs_watch(&self, me: usize) -> bool {
        let unreported = |member: &super::crew::Member| {
            let began = member.began.load(Relaxed);
            began != 0 && began & REPORTED == 0
        };
        self.others_hold_work(me)
            || self.slow_limit != 0 && self.crew.members.iter().any(unreported)
    }

    /// Whether some set has no leader.
    #[inline]
    pub(crate) fn is_offered(&self) -> bool {
        self.sets.iter().any(HandleSet::is_offered)
    }

    /// Whether an ordinary leader waits at its source.
    pub(crate) fn is_polling(&self) -> bool {
        self.sets.iter().any(|set| set.source.is_armed() && self.leads_for(set, None))
    }

    /// Calls an ordinary leader that waits at its source. False: none does that had not been called
    /// already.
    pub(crate) fn ring_a_leader(&self) -> bool {
        self.sets.iter().any(|set| self.leads_for(set, None) && set.source.ring())
    }

    /// As `ring_a_leader`, of those who are reserved for `lane`.
    pub(crate) fn ring_reserved(&self, lane: Lane) -> bool {
        self.sets.iter().any(|set| self.leads_for(set, Some(lane)) && set.source.ring())
    }

    /// Whether the leader of a set is reserved for `lane`, or ordinary. Of a set without one it does
    /// not matter: whoever comes to lead it looks for work before it waits.
    #[inline]
    fn leads_for(&self, set: &HandleSet, lane: Option<Lane>) -> bool {
        let leader = || set.leader().and_then(|leader| self.crew.reserved_for(leader));
        if self.crew.has_reserve() { leader() == lane } else { lane.is_none() }
    }

    /// When the watch may look for the first time if it need not be woken for it now.
    fn first_look(&self) -> Option<u64> {
        let now = self.now();
        let coarse = now >= self.fine_until.load(Relaxed);
        self.crew.bed.first_look(now).filter(|_| coarse)
    }

    /// Sees to it that somebody watches over what was published or claimed, unless nobody has time.
    /// The caller has passed a barrier since.
    #[inline]
    pub(crate) fn arm_watch(&self) {
        if self.lacks_watch() {
            self.call_a_watch();
        }
    }

    /// Whether nobody watches though somebody could.
    #[inline]
    pub(crate) fn lacks_watch(&self) -> bool {
        // Without anybody to call there is nothing to be found out, not even the time. Whoever comes later
        // looks for work before it sleeps.
        if self.present.load(Relaxed) <= 1 {
            return false;
        }
        let Watchers { watched, asleep } = self.crew.watchers();
        !watched && (asleep || self.is_polling() || self.crew.has_reserve())
    }

    /// Whether a member of this rank may go on with what it is at: the pool is open, and the member is not set
    /// aside. If it says no, it does so to be on the safe side.
    #[inline]
    pub(crate) fn is_open_to_rank(&self, rank: u32) -> bool {
        self.phase.load(Relaxed) == OPEN && rank < self.active.load(Relaxed)
    }

    #[cold]
    pub(crate) fn call_a_watch(&self) {
        while self.crew.arm_watch(self.is_polling(), self.first_look()) {
            // Against *disarm, then look for the watch that comes with a ring*.
            store_load_barrier();
            if self.ring_a_leader() {
                return;
            }
            // The leader has left the source meanwhile, and does not know. Somebody else may have
            // gone to sleep.
            self.crew.end_leader_watch();
        }
        // All that a reserved thread can do about it is lead.
        if self.crew.has_reserve() && self.is_offered() && self.crew.is_unwatched() {
            self.crew.arm_reserved_watch(self.first_look());
        }
    }

    pub(crate) fn surplus_head(&self) -> u64 {
        self.sets[0].surplus.head()
    }

    // --- after publishing ------------------------------------------------------------------------

    /// Work was published by a thread outside: a sleeper or a polling leader comes for it, unless
    /// somebody is on the way already.
    #[inline]
    pub(crate) fn notify_outside(&self) {
        // Against *announce sleep, then look for work* in every member.
        store_load_barrier();
        if !self.crew.wake_one() {
            let _rung = self.ring_a_leader();
        }
    }

    /// Work was published by a handler: its own thread comes for it, but somebody must watch in case
    /// the handler does not return.
    #[inline]
    pub(crate) fn notify_inside(&self) {
        store_load_barrier();
        if self.crew.is_unwatched() {
            self.arm_watch();
        }
    }

    /// As the one or the other.
    #[inline]
    pub(crate) fn notify(&self, inside: bool) {
        if inside { self.notify_inside() } else { self.notify_outside() }
    }

    /// Tasks were published.
    #[inline]
    fn notify_task(&self, lane: Lane, inside: bool) {
        if self.tasks.is_reserved(lane) {
            self.notify_reserved(lane, inside);
        } else {
            self.notify(inside);
        }
    }

    /// An activation that this thread has made QUEUED.
    pub(crate) fn push_activation(&self, index: u32) {
        self.stack.push(index, &self.slots);
        self.notify(context::is_inside(self));
    }

    /// The thread that calls is about to block in user code: whoever sleeps takes its place.
    pub(crate) fn promote_for_blocking(&self) {
        store_load_barrier();
        if self.is_offered() {
            self.crew.wake_to_lead();
        }
        let me = context::seat_in(self);
        if me.is_some_and(|me| self.has_ready(&self.crew.members[me])) && !self.crew.wake_one() {
            let _rung = self.ring_a_leader();
        }
    }

    // --- tasks -----------------------------------------------------------------------------------

    /// Pushes a closure without waiting for room.
    #[inline]
    pub(crate) fn try_post<F: Run>(&self, lane: Lane, work: F) -> Result<(), Rejected<F>> {
        let inside = context::is_inside(self);
        match self.push(lane, work, inside) {
            Ok(()) => Ok(()),
            Err(rejected) => Err(self.count_rejected(rejected)),
        }
    }

    /// Pushes a closure; from outside, waits for room.
    #[inline]
    pub(crate) fn post<F: Run>(&self, lane: Lane, work: F) -> Result<(), Rejected<F>> {
        self.post_or(lane, work, |work| self.post_within(lane, work, Deadline::after(None)))
    }

    /// Pushes a closure; from outside, `full` says what becomes of one for which there is no room.
    #[inline]
    pub(crate) fn post_or<F: Run>(
        &self,
        lane: Lane,
        work: F,
        full: impl FnOnce(F) -> Result<(), Rejected<F>>,
    ) -> Result<(), Rejected<F>> {
        let inside = context::is_inside(self);
        match self.push(lane, work, inside) {
            Ok(()) => Ok(()),
            Err(Rejected::Full(work)) if !inside => full(work),
            Err(rejected) => Err(self.count_rejected(rejected)),
        }
    }

    #[inline]
    fn push<F: Run>(&self, lane: Lane, work: F, inside: bool) -> Result<(), Rejected<F>> {
        if self.is_forked() {
            return Err(Rejected::Forked(work));
        }
        let origin = if inside { Origin::Inside } else { Origin::Outside };
        match self.tasks.push_work(lane, work, origin) {
            Ok(()) => {
                self.notify_task(lane, inside);
                Ok(())
            }
            Err(PushError::Full(work)) => Err(Rejected::Full(work)),
            Err(PushError::Closed(work)) => Err(Rejected::ShutDown(work)),
        }
    }

    #[cold]
    pub(crate) fn count_rejected<R>(&self, rejected: R) -> R {
        self.rejected.fetch_add(1, Relaxed);
        rejected
    }

    /// Waits for room, from outside, until the deadline.
    #[cold]
    pub(crate) fn post_within<F: Run>(
        &self,
        lane: Lane,
        work: F,
        deadline: Deadline,
    ) -> Result<(), Rejected<F>> {
        let room = self.lane_room(lane);
        let push = |work| self.push(lane, work, false);
        let result = self.retry_for_room_until(deadline, room, work, push);
        result.map_err(|rejected| self.count_rejected(rejected))
    }

    /// How many tasks each lane has room for.
    pub(crate) fn lane_capacity(&self) -> usize {
        self.tasks.lane_capacity()
    }

    pub(crate) fn lane_room(&self, lane: Lane) -> &Room {
        &self.lane_rooms[lane as usize]
    }

    /// Sleeps until there may be room and tries again, as long as the answer is `Full`.
    pub(crate) fn retry_for_room<W>(
        &self,
        room: &Room,
        work: W,
        attempt: impl FnMut(W) -> Result<(), Rejected<W>>,
    ) -> Result<(), Rejected<W>> {
        self.retry_for_room_until(Deadline::after(None), room, work, attempt)
    }

    /// As [`retry_for_room`](Self::retry_for_room), until the deadline.
    pub(crate) fn retry_for_room_until<W>(
        &self,
        deadline: Deadline,
        room: &Room,
        mut work: W,
        mut attempt: impl FnMut(W) -> Result<(), Rejected<W>>,
    ) -> Result<(), Rejected<W>> {
        room.waiters.fetch_add(1, AcqRel);
        let result = loop {
            // Acquire: a wake-up that comes after this load changes the epoch, and is not lost.
            let epoch = room.epoch.load(Acquire);
            // Against *make room, then look for waiters* in `made_room`.
            store_load_barrier();
            match attempt(work) {
                Err(Rejected::Full(back)) if !deadline.is_over() => work = back,
                other => break other,
            }
            room.epoch.wait(epoch, deadline.left());
        };
        room.waiters.fetch_sub(1, AcqRel);
        result
    }

    /// Tasks have left their slots: wakes producers that wait for room in a lane that has fallen to
    /// half, so that a producer and a consumer do not wake each other for every task.
    #[inline]
    pub(crate) fn made_room(&self) {
        // Against *announce waiting, then try to push* in `retry_for_room`.
        store_load_barrier();
        if self.lane_rooms.iter().any(Room::is_wanted) {
            self.call_producers();
        }
    }

    #[cold]
    fn call_producers(&self) {
        let half = self.tasks.lane_capacity() / 2;
        for lane in Lane::ALL {
            let room = self.lane_room(lane);
            if room.is_wanted() && self.tasks.len(lane) <= half {
                room.call();
            }
        }
    }

    /// A strand has run some of its tasks.
    pub(crate) fn made_room_in_strand(&self) {
        store_load_barrier();
        if self.strand_room.is_wanted() {
            self.strand_room.call();
        }
    }

    /// Sends everybody who waits for room home.
    fn dismiss_producers(&self) {
        self.lane_rooms.iter().for_each(Room::call);
        self.strand_room.call();
    }

    /// Pushes up to `STAGE` closures at once; what was refused stays in `staged`.
    pub(crate) fn push_staged<F: Run>(
        &self,
        lane: Lane,
        staged: &mut Staged<F>,
        inside: bool,
    ) -> Result<(), Rejected<()>> {
        let mut left = staged.len();
        let next = || staged.next().expect("as many as were counted");
        self.push_made(lane, &mut left, inside, next)
    }

    /// Posts `left` closures, which is counted down. `make` is called once for each that is taken, and
    /// runs while slots are claimed: no code of the user, and short.
    #[inline]
    pub(crate) fn push_made<F: Run>(
        &self,
        lane: Lane,
        left: &mut usize,
        inside: bool,
        mut make: impl FnMut() -> F,
    ) -> Result<(), Rejected<()>> {
        if self.is_forked() {
            return Err(Rejected::Forked(()));
        }
        let origin = if inside { Origin::Inside } else { Origin::Outside };
        while *left > 0 {
            let count = (*left).min(STAGE);
            match self.tasks.push_batch(lane, count, origin, || Erased::new(make())) {
                Ok(pushed) => {
                    *left -= pushed;
                    self.notify_task(lane, inside);
                }
                Err(PushError::Full(())) => return Err(Rejected::Full(())),
                Err(PushError::Closed(())) => return Err(Rejected::ShutDown(())),
            }
        }
        Ok(())
    }

    /// Drops a task unrun, because the pool stops.
    pub(crate) fn cancel(&self, task: Erased) {
        self.dropped.fetch_add(1, Relaxed);
        // What a closure's own drop does must not end the thread that sweeps up.
        let _panicked = context::contain(|| drop(task));
    }

    // --- activations -----------------------------------------------------------------------------

    /// Runs the handler of a claimed slot.
    #[inline]
    pub(crate) fn run_claimed(&self, slot: &Slot, ready: Ready) -> Flow {
        with_claimed(slot, |payload| match payload {
            Payload::Activity(activity) => activity.run(ready),
            Payload::Once(_) | Payload::Empty => unreachable!("not a handler"),
        })
    }

    /// Takes a claimed one-shot timer's closure out and frees its slot.
    pub(crate) fn take_once(&self, index: u32) -> Erased {
        let payload = with_claimed(self.slots.slot(index), |payload| {
            core::mem::replace(payload, Payload::Empty)
        });
        self.slots.free(index);
        match payload {
            Payload::Once(closure) => closure,
            Payload::Activity(_) | Payload::Empty => unreachable!("not a one-shot timer"),
        }
    }

    /// A task of a strand has ended on this thread.
    pub(crate) fn count_strand_task(&self, panicked: bool, outcome: context::Outcome) {
        if let Some(seat) = context::seat_in(self) {
            self.crew.members[seat].tally.count_task(panicked, outcome);
        }
    }

    /// Ends the run of a handler as its answer says.
    #[inline]
    pub(crate) fn finish(
        &self,
        index: u32,
        flow: Flow,
        kept: Ready,
        yields: impl Fn() -> bool,
    ) -> Finish {
        let slot = self.slots.slot(index);
        let traits = slot.traits();
        if traits.timer {
            self.set_next_deadline(index);
        } else if traits.level && flow == Flow::Wait {
            self.rearm(index, traits);
        }
        let finish = slot.finish(flow, kept, yields);
        match finish {
            Finish::Rests | Finish::More(_) => {}
            Finish::Queued => self.stack.push(index, &self.slots),
            Finish::Armed => {
                self.sets[traits.set as usize].arm(&self.slots, index, slot.deadline());
            }
            Finish::Close => self.dispose(index),
            Finish::Announce => self.announce_change(),
        }
        finish
    }

    /// Gives up a slot that was let by [`Start::Registering`](super::slots::Start::Registering).
    pub(crate) fn end_registering(&self, index: u32, flow: Flow) {
        match self.slots.slot(index).finish(flow, Ready::NONE, || true) {
            Finish::Rests | Finish::More(_) | Finish::Armed => {}
            Finish::Queued => self.push_activation(index),
            Finish::Close => self.dispose(index),
            Finish::Announce => self.announce_change(),
        }
    }

    /// A level-triggered handle is asked about again. Should that fail, the descriptor is gone, and
    /// there is nothing more to be told about it.
    fn rearm(&self, index: u32, traits: Traits) {
        let slot = self.slots.slot(index);
        if !with_claimed(slot, |payload| payload.still_has(slot.descriptor())) {
            return;
        }
        let token = Key { index, generation: slot.generation() }.token();
        let interest = Interest::from_bits(traits.interest);
        let _gone = self.sets[traits.set as usize].source.rearm(slot.descriptor(), token, interest);
    }

    fn set_next_deadline(&self, index: u32) {
        let slot = self.slots.slot(index);
        let next = with_claimed(slot, |payload| match payload {
            Payload::Activity(activity) => activity.next_deadline(self.now()),
            Payload::Once(_) | Payload::Empty => unreachable!("not a periodic timer"),
        });
        slot.set_deadline(next);
    }

    /// Ends a CLOSED slot whose payload nobody waits for: off the source first, then dropped.
    fn dispose(&self, index: u32) {
        let payload = self.take_payload(index);
        let _panicked = context::contain(|| drop(payload));
        self.slots.free(index);
    }

    /// Frees a closed slot whose entry was found in ready work.
    pub(crate) fn bury(&self, index: u32) {
        let traits = self.slots.slot(index).traits();
        if traits.timer {
            self.sets[traits.set as usize].note_undead();
        }
        self.slots.free(index);
    }

    /// Takes the payload of a slot that this thread has closed, and its descriptor off the source.
    pub(crate) fn take_payload(&self, index: u32) -> Payload {
        let slot = self.slots.slot(index);
        #[allow(unsafe_code, reason = "the slot was closed by this thread")]
        // SAFETY: `close` made the payload the caller's.
        let payload =
            unsafe { slot.payload(|payload| core::mem::replace(payload, Payload::Empty)) };
        if slot.descriptor() >= 0 && payload.still_has(slot.descriptor()) {
            // Fails only if the descriptor was closed behind our back: then it is off already.
            let set = &self.sets[slot.traits().set as usize];
            let _gone = set.source.deregister(slot.descriptor());
        }
        payload
    }

    /// Closes a slot from anywhere but its own handler. None: it is gone, or it runs and is closed
    /// by its runner.
    pub(crate) fn close(&self, key: Key, wait: bool) -> (Close, Option<Payload>) {
        let Some(slot) = self.slots.get(key.index) else { return (Close::Stale, None) };
        let closed = slot.close(key.generation, wait);
        (closed, (closed == Close::Mine).then(|| self.take_closed(key)))
    }

    /// Takes the payload of a slot that this thread has closed while its handler did not run, and lets the slot go.
    fn take_closed(&self, key: Key) -> Payload {
        let slot = self.slots.slot(key.index);
        let payload = self.take_payload(key.index);
        let timer = slot.traits().timer;
        let set = &self.sets[slot.traits().set as usize];
        if timer {
            set.note_dead();
        }
        if slot.closer_done() {
            if timer {
                set.note_undead();
            }
            self.slots.free(key.index);
        }
        payload
    }

    /// What a destructor waits for (docs/GUIDE.md): until `ended`, which sleeps for up to the time that it is given, says
    /// so. A member does not wait, since two of them could wait for each other; nor does who sweeps the pool
    /// up, since that is to end though a handler is stuck. Nor does anybody once the pool has stopped and no member is
    /// left that could bring the end about.
    ///
    /// Where hosts drive the pool, they come and go, and the only one may be the thread that calls. So nothing is left
    /// to them that they have not begun: this thread [ends](Self::end_here) the `activities`, which have been told to
    /// end, and waits only for those that run.
    pub(crate) fn wait_outside<K: IntoIterator<Item = Key>>(
        &self,
        activities: impl Fn() -> K,
        mut ended: impl FnMut(Duration) -> bool,
    ) {
        const LOOK_AGAIN: Duration = Duration::from_millis(100);
        /// One that has run is not told of, if its host leaves before it runs again.
        const HAS_RUN: Duration = Duration::from_millis(1);
        if self.crew.ordinary > 0 {
            while !self.may_not_wait() && self.has_servers() && !ended(LOOK_AGAIN) {}
            return;
        }
        while !self.may_not_wait() {
            activities().into_iter().for_each(|key| self.end_here(key));
            if ended(HAS_RUN) {
                return;
            }
        }
    }

    /// Has an activity that was told to end do so on this thread, unless a member runs it now: it is taken off its slot,
    /// so that nobody else can begin it, runs until it has nothing more to do, and is dropped.
    pub(crate) fn end_here(&self, key: Key) {
        let Some(slot) = self.slots.get(key.index) else { return };
        if !slot.withdraw(key.generation) {
            return;
        }
        let mut payload = self.take_closed(key);
        if let Payload::Activity(activity) = &mut payload {
            self.run_hook(|| while activity.run(Ready::NONE) == Flow::Again {});
        }
        let _panicked = context::contain(|| drop(payload));
    }

    /// Whether there is a member, or one to come, that could do what somebody waits for.
    pub(crate) fn has_servers(&self) -> bool {
        self.present() > 0 || self.crew.ordinary > 0 && !self.is_stopping()
    }

    /// Whether this thread is one that must not wait for what the pool's threads do: a member, or who sweeps up.
    #[inline]
    pub(crate) fn may_not_wait(&self) -> bool {
        context::is_inside(self) || context::sweeps(self)
    }

    /// Sleeps until [`announce_change`](Self::announce_change), unless `ended` holds already.
    pub(crate) fn wait_for_change(&self, time: Duration, ended: impl Fn() -> bool) -> bool {
        let epoch = self.changed.load(Acquire);
        ended() || {
            self.changed.wait(epoch, Some(time));
            false
        }
    }

    /// Something that threads outside sleep for may have happened.
    pub(crate) fn announce_change(&self) {
        self.changed.fetch_add(1, AcqRel);
        self.changed.wake(i32::MAX);
    }

    /// The set for a new handle: they are dealt out in turn.
    pub(crate) fn pick_set(&self) -> u16 {
        if self.sets.len() == 1 {
            return 0;
        }
        (self.next_set.fetch_add(1, Relaxed) as usize % self.sets.len()) as u16
    }

    // --- time ------------------------------------------------------------------------------------

    /// How long the watch sleeps now.
    pub(crate) fn watch_period(&self, now: u64) -> u64 {
        if now < self.fine_until.load(Relaxed) {
            self.fine_period
        } else {
            self.fine_period.max(COARSE_PERIOD)
        }
    }

    /// A handler outlasted the watch period: the watch is fine for a while.
    #[cold]
    pub(crate) fn saw_slow(&self, now: u64) {
        self.fine_until.store(now + FINE_FOR, Relaxed);
    }

    // --- slow handlers ---------------------------------------------------------------------------

    /// Reports handlers that run for longer than the limit. Called by the watch.
    pub(crate) fn report_slow(&self) {
        if self.slow_limit == 0 {
            return;
        }
        let now = self.now();
        for (index, member) in self.crew.members.iter().enumerate() {
            let began = member.began.load(Relaxed);
            let elapsed = now.saturating_sub(began);
            // The mark says that this run has been reported; the CAS fails if it ended meanwhile.
            if began != 0
                && began & REPORTED == 0
                && elapsed > self.slow_limit
                && member.began.compare_exchange(began, began | REPORTED, Relaxed, Relaxed).is_ok()
            {
                self.tell_slow(index, elapsed, true);
            }
        }
    }

    /// Whether a member's handler runs for longer than the limit.
    pub(crate) fn is_slow(&self, member: &super::crew::Member) -> bool {
        let began = member.began.load(Relaxed);
        let elapsed = || self.now().saturating_sub(began & !REPORTED);
        began != 0 && (began & REPORTED != 0 || elapsed() > self.slow_limit)
    }

    /// A member's handler returned.
    pub(crate) fn note_end(&self, me: usize) {
        let began = self.crew.members[me].began.swap(0, Relaxed);
        let elapsed = self.now().saturating_sub(began & !REPORTED);
        if elapsed > self.slow_limit && began & REPORTED == 0 {
            self.tell_slow(me, elapsed, false);
        }
    }

    fn tell_slow(&self, thread: usize, elapsed: u64, running: bool) {
        let elapsed = Duration::from_nanos(elapsed);
        self.log_slow(thread, elapsed, running);
        crate::thread_state::next_lap();
        if let Some(hook) = &self.slow_hook {
            self.run_hook(|| hook(&SlowReport { thread, elapsed, running }));
        }
    }

    // --- waiting inside handlers -----------------------------------------------------------------

    /// A member is about to wait for another's work. None: nobody else is left.
    ///
    /// Host threads come and go. So in a pool that has threads of its own one of these must be left,
    /// and hosts that wait are not counted. Nor are reserved threads.
    pub(crate) fn begin_wait(&self, member: usize) -> Option<impl Drop + '_> {
        struct Waiting<'a>(&'a Shared, u32);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.waiting.fetch_sub(self.1, AcqRel);
            }
        }
        // Reserved threads could not run what is waited for.
        let threads = self.crew.ordinary;
        let counts = u32::from(threads == 0 || member < threads);
        let waiting = self.waiting.fetch_add(counts, AcqRel) + counts;
        let guard = Waiting(self, counts);
        let all = if threads == 0 { self.present() } else { threads as u32 };
        if waiting < all {
            self.lend_place(waiting);
        }
        (waiting < all).then_some(guard)
    }

    pub(crate) fn arrive(&self) {
        self.present.fetch_add(1, AcqRel);
    }

    pub(crate) fn depart(&self) {
        self.present.fetch_sub(1, AcqRel);
        self.announce_change();
    }

    /// Takes one off `present` members. False: their number has changed.
    pub(crate) fn depart_from(&self, present: u32) -> bool {
        let left = present - 1;
        let departed = self.present.compare_exchange(present, left, AcqRel, Relaxed).is_ok();
        if departed {
            self.announce_change();
        }
        departed
    }

    pub(crate) fn present(&self) -> u32 {
        self.present.load(Acquire)
    }

    // --- the end ---------------------------------------------------------------------------------

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.phase.load(Relaxed) == STOPPING
    }

    /// Whether tasks are accepted: a pool that drains takes them from inside only.
    #[inline]
    pub(crate) fn is_open_to(&self, inside: bool) -> bool {
        match self.phase.load(Relaxed) {
            OPEN => true,
            DRAINING => inside,
            _ => false,
        }
    }

    /// Whether nothing more may begin. A drain whose time is over is ended here: members that find
    /// work all the time come to no other place where they would notice.
    #[inline]
    pub(crate) fn must_stop(&self) -> bool {
        match self.phase.load(Relaxed) {
            OPEN => false,
            DRAINING => self.stop_if_late(),
            _ => true,
        }
    }

    #[cold]
    fn stop_if_late(&self) -> bool {
        let late = self.drain_is_over(self.now());
        if late {
            self.stop();
        }
        late
    }

    /// True for one member of a stopped pool, the first that asks.
    pub(crate) fn is_first_to_leave(&self) -> bool {
        !self.was_left.swap(true, Relaxed)
    }

    /// When the drain must be over: u64::MAX while there is none.
    #[inline]
    pub(crate) fn drain_deadline(&self) -> u64 {
        self.drain_deadline.load(Relaxed)
    }

    /// When a leader must look at the drain again: u64::MAX while there is none. A part of the pool may be through
    /// by what another thread does, which tells no member: a task that is cancelled, say.
    #[inline]
    pub(crate) fn next_drain_look(&self, now: u64) -> u64 {
        match self.drain_deadline() {
            u64::MAX => u64::MAX,
            deadline => deadline.min(now.saturating_add(DRAIN_LOOK)),
        }
    }

    #[inline]
    pub(crate) fn drain_is_over(&self, now: u64) -> bool {
        now >= self.drain_deadline()
    }

    /// Refuses work from outside and lets members finish what was accepted, until `deadline`.
    pub(crate) fn drain(&self, deadline: u64) {
        self.tell_drain(deadline.saturating_sub(self.now()));
        self.before.get_or_init(|| Before::of(self));
        self.drain_deadline.fetch_min(deadline, Relaxed);
        self.tasks.close_outside();
        self.outbox.close_outside();
        // Release: whoever sees the phase sees the deadline.
        let _ = self.phase.compare_exchange(OPEN, DRAINING, Release, Relaxed);
        store_load_barrier();
        self.dismiss_producers();
        if !self.drain_is_over(self.now()) {
            self.parts().for_each(|part| part.begin_drain());
        }
        if !self.stop_if_drained() {
            // Leaders must take the deadline into account.
            for set in &self.sets {
                set.source.ring();
            }
            self.crew.stop_all();
        }
    }

    /// Whether every task that was accepted has ended, and every one-shot timer that is due. Callers
    /// have changed their own role, and passed a barrier, before they ask; whoever ends something
    /// asks, so the last one gets the answer.
    ///
    /// The order of the looks is what makes it true. A task moves from a lane, or a timer from its
    /// slot, to a member whose role says so *before*: so lanes and slots come first. A member may
    /// rob one that was not looked at yet, and both seem to have nothing: so there must be an instant
    /// at which all of them rest (`members_rest`). What rests has posted before it came to that: so
    /// what the strands and the rings hold, and what the lanes have accepted, come last.
    pub(crate) fn is_drained(&self) -> bool {
        if self.phase.load(Relaxed) != DRAINING {
            return false;
        }
        let accepted = self.tasks.accepted();
        self.tasks.is_empty()
            && !self.has_due_timers()
            && self.members_rest()
            && self.in_strands.load(Acquire) == 0
            && self.outbox.is_delivered()
            && self.remains() < Remains::Work
            && self.tasks.accepted() == accepted
    }

    /// From now on the end of the pool takes this part into account.
    pub(crate) fn serve(&self, part: Weak<dyn Served>) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let alive = parts.iter().filter(|part| part.strong_count() > 0).cloned();
        let after = alive.chain([part.clone()]).collect();
        *parts = after;
        drop(parts);
        // A drain that began before is seen here, by the order of the lock; one that begins now finds the part.
        let Some(part) = part.upgrade().map(Contained::new) else { return };
        match self.phase.load(Relaxed) {
            OPEN => {}
            DRAINING => part.begin_drain(),
            _ => part.close(),
        }
    }

    /// The parts that are alive. They may call the pool when they are asked, closed, or dropped as the last of their
    /// clones here.
    pub(super) fn parts(&self) -> impl Iterator<Item = Contained<Arc<dyn Served>>> {
        let parts = Arc::clone(&*self.parts.lock().unwrap_or_else(PoisonError::into_inner));
        let count = parts.len();
        (0..count).filter_map(move |at| parts[at].upgrade().map(Contained::new))
    }

    /// What all parts together still have to do before the drain may end.
    fn remains(&self) -> Remains {
        let deadline = self.drain_deadline();
        self.parts().map(|part| part.remains(deadline)).max().unwrap_or(Remains::Nothing)
    }

    /// Events and messages that were taken and not handled.
    pub(crate) fn left_in_parts(&self) -> u64 {
        self.parts().map(|part| part.left()).sum()
    }

    /// Whether there was an instant at which no member ran a task or held one: none did at its turn,
    /// and no role changed from the first one's first turn to the last one's second.
    fn members_rest(&self) -> bool {
        let look = || {
            let rests = self.crew.members.iter().map(|member| member.rest().map(u64::from));
            // Each of them only grows, so the sum is the same only if each of them is.
            rests.sum::<Option<u64>>()
        };
        let mut before = look();
        while before.is_some() {
            let now = look();
            if now == before {
                return true;
            }
            before = now;
        }
        false
    }

    /// Whether a one-shot timer has left the wheel and not begun.
    fn has_due_timers(&self) -> bool {
        let is_due = |index| self.slots.get(index).is_some_and(super::slots::Slot::is_due_timer);
        self.slots.indices().any(is_due)
    }

    /// A thread outside has taken back what a drain may have waited for.
    pub(crate) fn recheck_drain(&self) {
        store_load_barrier();
        self.stop_if_drained();
    }

    /// Whether whoever sweeps up may have missed what the caller has just published: then that is the
    /// caller's to take back.
    pub(crate) fn is_too_late(&self) -> bool {
        // Against *stop, then sweep*.
        store_load_barrier();
        self.is_stopping()
    }

    /// Ends it if all that was accepted has ended. Callers as those of `is_drained`.
    pub(crate) fn stop_if_drained(&self) -> bool {
        let accepted = self.tasks.accepted();
        let drained = self.is_drained();
        if drained {
            self.refuse_all();
            // What a handler has posted meanwhile is seen here. Members are not looked at again: the
            // one that looks for work now would pass for one that runs it.
            let nothing_new = self.tasks.accepted() == accepted
                && self.outbox.is_delivered()
                && self.remains() == Remains::Nothing;
            self.end(nothing_new);
        }
        drained
    }

    /// Ends it: nothing new begins.
    pub(crate) fn stop(&self) {
        self.refuse_all();
        self.end(self.is_drained() && self.remains() == Remains::Nothing);
    }

    /// Before the last look: a handler that posts now is refused, or what it posted is seen. (Into a
    /// strand it may still get a task, which is cancelled, and counted as that.)
    fn refuse_all(&self) {
        self.tasks.close_all();
        self.outbox.close();
        self.parts().for_each(|part| part.close());
    }

    fn end(&self, drained: bool) {
        if self.phase.swap(STOPPING, AcqRel) == STOPPING {
            return;
        }
        self.tell_stop(drained);
        self.was_drained.store(drained, Release);
        store_load_barrier();
        for set in &self.sets {
            set.source.ring();
        }
        self.crew.stop_all();
        self.dismiss_producers();
        self.announce_change();
    }

    /// Whether everything had ended when the pool stopped.
    pub(crate) fn ended_drained(&self) -> bool {
        self.was_drained.load(Acquire)
    }

    /// Drops everything that will not run any more. What a stuck handler uses is left alone: its own
    /// state, and the tasks behind it in its strand. Tasks in the stuck member's hand are taken out of
    /// it, as any thread may.
    pub(crate) fn sweep(&self) {
        // Against *publish, then see that the pool goes on* in `is_too_late`'s callers.
        store_load_barrier();
        let _sweeping = context::sweep(self);
        // No timer was due when a drain was through, whatever becomes due until the last member has left.
        let drained = self.ended_drained();
        let now = self.now();
        let mut turn = Turn::default();
        let hand = Hand::new();
        loop {
            match self.tasks.claim(&hand, &mut turn, 1) {
                Claimed::Some(task) => self.cancel(task.into_task()),
                Claimed::Busy => std::thread::yield_now(),
                Claimed::Empty => break,
            }
        }
        for member in &self.crew.members {
            let mut left = member.hand.steal(&hand);
            while let Some(task) = left {
                self.cancel(task);
                left = hand.next().map(Taken::into_task);
            }
        }
        self.dropped.fetch_add(self.outbox.sweep(), Relaxed);
        for index in self.slots.indices() {
            let Some(slot) = self.slots.get(index) else { continue };
            let key = Key { index, generation: slot.generation() };
            let of_the_library = slot.traits().service;
            let is_due = !drained && (slot.is_due_timer() || slot.deadline() <= now);
            let (_, payload) = self.close(key, false);
            if matches!(payload, Some(Payload::Once(_))) {
                let count = match is_due {
                    _ if of_the_library => &self.timers_cancelled,
                    true => &self.dropped,
                    false => &self.undue,
                };
                count.fetch_add(1, Relaxed);
            }
            let _panicked = context::contain(|| drop(payload));
        }
        {
            let kept =
                core::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
            let _panicked = context::contain(|| drop(kept));
        }
    }
}

/// Set in `Member::began` once that run has been reported.
const REPORTED: u64 = 1 << 63;

/// The most closures that one CAS pushes.
const STAGE: usize = 32;

/// Closures on their way into a lane.
pub(crate) struct Staged<F> {
    closures: [Option<F>; STAGE],
    from: usize,
    to: usize,
}

impl<F> Staged<F> {
    pub(crate) fn new() -> Self {
        Self { closures: [const { None }; STAGE], from: 0, to: 0 }
    }

    /// Fills up from `rest`, once it is empty. Code of the user runs here, and not while slots are
    /// claimed.
    pub(crate) fn fill(&mut self, rest: &mut impl Iterator<Item = F>) {
        debug_assert_eq!(self.len(), 0);
        (self.from, self.to) = (0, 0);
        for (place, closure) in self.closures.iter_mut().zip(rest) {
            *place = Some(closure);
            self.to += 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.to - self.from
    }
}

impl<F> Iterator for Staged<F> {
    type Item = F;

    #[inline]
    fn next(&mut self) -> Option<F> {
        let place = self.closures[..self.to].get_mut(self.from)?;
        self.from += 1;
        place.take()
    }
}
