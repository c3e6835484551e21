//! Ready work, and who comes for it: what is there to do, who is called when something was published, and who watches.

mod ageing;
mod reserve;
mod sharing;
mod watchdog;

pub(crate) use watchdog::{REPORTED, Watchdog};

use super::leader::HandleSet;
use super::members::{Member, Members, Watchers};
use super::slots::Handles;
use crate::queue::{Lane, TaskQueue};
use crate::sync::store_load_barrier;
use ageing::Ageing;
use sharing::Sharing;

/// Where work is ready, and the members that come for it. Fields are dropped in order.
pub(crate) struct ReadyWork {
    pub(crate) tasks: TaskQueue,
    pub(crate) handles: Handles,
    pub(crate) members: Members,
    pub(crate) sharing: Sharing,
    pub(crate) ageing: Ageing,
    pub(crate) watchdog: Watchdog,
}

impl ReadyWork {
    /// `ageing`: after so many nanoseconds a task in a lane is aged.
    pub(crate) fn new(
        tasks: TaskQueue,
        handles: Handles,
        members: Members,
        ageing: u64,
        watchdog: Watchdog,
    ) -> Self {
        Self {
            tasks,
            handles,
            members,
            sharing: Sharing::new(),
            ageing: Ageing::new(ageing),
            watchdog,
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.handles.sets.now()
    }

    // --- what is there to do ---------------------------------------------------------------------

    /// Whether this member would find work without taking it from another.
    #[inline]
    pub(crate) fn has_ready(&self, member: &Member) -> bool {
        !member.local.is_empty() || !member.chain.is_empty() || self.has_unclaimed()
    }

    /// Whether there is work that no thread has claimed.
    #[inline]
    pub(crate) fn has_unclaimed(&self) -> bool {
        // What a busy server has most often comes first.
        self.handles.sets.iter().any(|set| !set.surplus.is_empty())
            || !self.handles.stack.is_empty()
            || self.tasks.has_claimable()
    }

    /// About how many more handlers `member` could run now.
    pub(crate) fn backlog(&self, member: &Member) -> u64 {
        let (tasks, surplus) = self.queued();
        let stacked =
            usize::from(!self.handles.stack.is_empty()) + usize::from(!member.chain.is_empty());
        (tasks + surplus + stacked + member.local.len()) as u64
    }

    /// Tasks in the lanes, and activations in the surplus rings.
    pub(crate) fn queued(&self) -> (usize, usize) {
        let tasks = Lane::ALL.iter().map(|&lane| self.tasks.len(lane)).sum();
        (tasks, self.handles.sets.surplus())
    }

    /// Tasks that no thread has begun: in the lanes, and claimed with others.
    pub(crate) fn waiting_tasks(&self) -> usize {
        self.queued().0 + self.members.claimed_tasks()
    }

    /// Whether a task waits, or a thread is at one, or on its way to some; whatever `me` runs, who asks.
    pub(crate) fn has_tasks(&self, me: Option<usize>) -> bool {
        // In this order: a thread shows its role before it takes any out of a lane.
        !self.tasks.is_empty() || !self.members.rest_beside(me)
    }

    /// Whether there is anything that only a watch comes across: what another member has claimed,
    /// or a handler that is to be reported if it goes on for too long.
    pub(crate) fn needs_watch(&self, me: usize) -> bool {
        self.members.others_hold_work(me) || self.watchdog.has_unreported(&self.members)
    }

    /// Whether some set has no leader.
    #[inline]
    pub(crate) fn is_offered(&self) -> bool {
        self.handles.sets.is_offered()
    }

    /// Whether an ordinary leader waits at its source.
    pub(crate) fn is_polling(&self) -> bool {
        self.handles.sets.iter().any(|set| set.source.is_armed() && self.leads_for(set, None))
    }

    /// Calls an ordinary leader that waits at its source. False: none does that had not been called
    /// already.
    pub(crate) fn ring_a_leader(&self) -> bool {
        self.handles.sets.iter().any(|set| self.leads_for(set, None) && self.ring(set))
    }

    fn ring(&self, set: &HandleSet) -> bool {
        let leader = set.leader();
        let rung = set.source.ring();
        if let (true, true, Some(leader)) = (rung, self.members.outside.is_on(), leader) {
            self.members.note_wake(leader);
        }
        rung
    }

    /// As `ring_a_leader`, of those who are reserved for `lane`.
    pub(crate) fn ring_reserved(&self, lane: Lane) -> bool {
        self.handles.sets.iter().any(|set| self.leads_for(set, Some(lane)) && self.ring(set))
    }

    /// Whether the leader of a set is reserved for `lane`, or ordinary. Of a set without one it does
    /// not matter: whoever comes to lead it looks for work before it waits.
    #[inline]
    fn leads_for(&self, set: &HandleSet, lane: Option<Lane>) -> bool {
        let leader = || set.leader().and_then(|leader| self.members.reserved_for(leader));
        if self.members.has_reserve() { leader() == lane } else { lane.is_none() }
    }

    /// When the watch may look for the first time if it need not be woken for it now.
    fn first_look(&self) -> Option<u64> {
        let now = self.now();
        let coarse = self.watchdog.is_coarse(now);
        self.members.first_look(now).filter(|_| coarse)
    }

    /// Sees to it that a thread watches over what was published or claimed, unless none has time.
    /// The caller has passed a barrier since.
    #[inline]
    pub(crate) fn arm_watch(&self) {
        if self.lacks_watch() {
            self.call_a_watch();
        }
    }

    /// Whether no thread watches though one could.
    #[inline]
    pub(crate) fn lacks_watch(&self) -> bool {
        // Without a member to call there is nothing to be found out, not even the time. Whoever comes later
        // looks for work before it parks.
        if self.members.is_alone() {
            return false;
        }
        let Watchers { watched, parked } = self.members.watchers();
        !watched && (parked || self.is_polling() || self.members.has_reserve())
    }

    #[cold]
    pub(crate) fn call_a_watch(&self) {
        while self.members.arm_watch(self.is_polling(), self.first_look()) {
            // Against *disarm, then look for the watch that comes with a ring*.
            store_load_barrier();
            if self.ring_a_leader() {
                return;
            }
            // The leader has left the source meanwhile, and does not know. Another member may have
            // parked.
            self.members.end_leader_watch();
        }
        // All that a reserved thread can do about it is lead.
        if self.members.has_reserve() && self.is_offered() && self.members.is_unwatched() {
            self.members.arm_reserved_watch(self.first_look());
        }
    }

    pub(crate) fn surplus_head(&self) -> u64 {
        self.handles.sets[0].surplus.head()
    }

    // --- after publishing ------------------------------------------------------------------------

    /// Work was published by a thread outside: a parked member or a polling leader comes for it, unless
    /// a thread is on the way already.
    #[inline]
    pub(crate) fn notify_outside(&self) {
        // Against *announce parking, then look for work* in every member.
        store_load_barrier();
        if !self.members.wake_one() {
            let _rung = self.ring_a_leader();
        }
    }

    /// Work was published by a handler: its own thread comes for it, but another must watch in case
    /// the handler does not return.
    #[inline]
    pub(crate) fn notify_inside(&self) {
        store_load_barrier();
        if self.members.is_unwatched() {
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
    pub(crate) fn notify_task(&self, lane: Lane, inside: bool) {
        if self.tasks.is_reserved(lane) {
            self.notify_reserved(lane, inside);
        } else {
            self.notify(inside);
        }
    }

    /// An activation that this thread has made QUEUED.
    pub(crate) fn push_activation(&self, index: u32, inside: bool) {
        self.handles.stack.push(index, &self.handles.slots);
        self.notify(inside);
    }

    /// The calling thread, a member if it has a number, is about to block in user code: a parked member takes its place.
    pub(crate) fn promote_for_blocking(&self, me: Option<usize>) {
        store_load_barrier();
        if self.is_offered() {
            self.members.wake_to_lead();
        }
        if me.is_some_and(|me| self.has_ready(&self.members[me])) && !self.members.wake_one() {
            let _rung = self.ring_a_leader();
        }
    }
}
