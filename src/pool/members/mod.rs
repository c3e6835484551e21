//! The members of a pool: its own threads, and those that host threads become, how each is woken, and
//! what each has done.

mod deferred_watchdog;
mod hosts;
mod places;
mod wake;

pub(crate) use places::{Overseer, Places};
pub(crate) use wake::{Called, GROUP, NotCalled, Taken, WakeWord, Watchers};

use super::this_thread::Outcome;
use crate::queue::{LANES, Lane, LocalChain, LocalQueue};
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use crate::sync::{CachePadded, Parker, Unparked, Wakes};
use crate::sys::thread;
use crate::trace::{self, Doing, Name, Recorder, What};
use core::ops::{Deref, Range};
use deferred_watchdog::DeferredWatchdog;

/// What a member is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum ThreadRole {
    /// No host thread takes this place, or the thread has ended.
    Away,
    /// Idle: parked until it is woken.
    Follower,
    /// Parked with a timer, looking out for stuck work.
    Watch,
    /// Leads a handle set, or looks for work.
    Leader,
    /// Runs a handler of a handle, strand, timer or ring.
    Processing,
    /// Runs a task.
    Task,
    /// Set aside by [`Pool::set_active`](super::Pool::set_active): parked until it is wanted again.
    Parked,
}

impl ThreadRole {
    fn from_bits(bits: u32) -> Self {
        match bits {
            1 => Self::Follower,
            2 => Self::Watch,
            3 => Self::Leader,
            4 => Self::Processing,
            5 => Self::Task,
            6 => Self::Parked,
            _ => Self::Away,
        }
    }

    fn bits(self) -> u32 {
        match self {
            Self::Away => 0,
            Self::Follower => 1,
            Self::Watch => 2,
            Self::Leader => 3,
            Self::Processing => 4,
            Self::Task => 5,
            Self::Parked => 6,
        }
    }
}

/// A count that one thread writes and any thread reads.
#[derive(Debug)]
pub(crate) struct Count(AtomicU64);

impl Count {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Only the owner may call this: it is a load and a store, no read-modify-write.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed) + n, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Acquire: pairs with nothing but keeps a snapshot's reads in order.
        self.0.load(Acquire)
    }
}

/// What one member has done, counted by itself.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) terms: Count,
    pub(crate) handovers: Count,
    pub(crate) rescues: Count,
    pub(crate) events: Count,
    pub(crate) handled: Count,
    pub(crate) tasks: Count,
    pub(crate) failed: Count,
    pub(crate) cancelled: Count,
    pub(crate) panics: Count,
    pub(crate) stolen: Count,
    pub(crate) parked: Count,
    pub(crate) woken: Count,
    pub(crate) ticks: Count,
}

impl Tally {
    fn new() -> Self {
        Self {
            terms: Count::new(),
            handovers: Count::new(),
            rescues: Count::new(),
            events: Count::new(),
            handled: Count::new(),
            tasks: Count::new(),
            failed: Count::new(),
            cancelled: Count::new(),
            panics: Count::new(),
            stolen: Count::new(),
            parked: Count::new(),
            woken: Count::new(),
            ticks: Count::new(),
        }
    }
}

impl Tally {
    /// Handlers and tasks.
    pub(crate) fn ran(&self) -> u64 {
        self.handled.get() + self.tasks.get()
    }

    /// A task has ended.
    #[inline]
    pub(crate) fn count_task(&self, panicked: bool, outcome: Outcome) {
        self.tasks.add(1);
        // A submitted task's panic is caught by its wrapper, which says that it failed.
        if panicked || outcome == Outcome::Failed {
            self.panics.add(1);
        }
        match outcome {
            Outcome::Cancelled => self.cancelled.add(1),
            Outcome::Completed if !panicked => {}
            Outcome::Completed | Outcome::Failed => self.failed.add(1),
        }
    }
}

/// One member's shared side. What only its own thread needs is in the worker.
pub(crate) struct Member {
    pub(crate) parker: CachePadded<Parker>,
    /// Claimed tasks that it has not begun; others may steal them.
    pub(crate) local: LocalQueue,
    /// Activations that it has not begun; others may steal them.
    pub(crate) chain: LocalChain,
    pub(crate) tally: CachePadded<Tally>,
    /// Its role, and what it runs.
    pub(crate) doing: Doing,
    /// When the handler that runs began, for reports of slow ones; 0: none runs, or no reports were asked for.
    pub(crate) began: AtomicU64,
    /// Whose turn it was when the thread before left.
    pub(crate) turn: AtomicU32,
    /// The CPU it is pinned to plus one, or 0.
    pub(crate) pinned: AtomicU32,
    pub(crate) pin_failed: AtomicU32,
    /// The kernel's number of its thread: of the pool's own while it runs, of a host that is this member or was last.
    /// 0: there is none.
    pub(crate) kernel_thread: AtomicU32,
    /// A host's thread is outside with what a wait has brought it: a number that changes with each wait. 0: it is not.
    outside: AtomicU32,
    /// By which name that is called, while `outside` is the number: `{ number: 32, name: 32 }`.
    named: AtomicU64,
}

impl Member {
    fn new() -> Self {
        Self {
            parker: CachePadded::new(Parker::new()),
            local: LocalQueue::new(),
            chain: LocalChain::new(),
            tally: CachePadded::new(Tally::new()),
            doing: Doing::new(),
            began: AtomicU64::new(0),
            turn: AtomicU32::new(0),
            pinned: AtomicU32::new(0),
            pin_failed: AtomicU32::new(0),
            kernel_thread: AtomicU32::new(0),
            outside: AtomicU32::new(0),
            named: AtomicU64::new(0),
        }
    }

    /// Only the owner may call this.
    #[inline]
    pub(crate) fn set_role(&self, role: ThreadRole) {
        self.doing.set(role.bits(), Name::NONE);
    }

    /// Only the owner may call this: what it runs from now on has this name.
    #[inline]
    pub(crate) fn runs(&self, role: ThreadRole, name: Name) {
        self.doing.set(role.bits(), name);
    }

    pub(crate) fn role(&self) -> ThreadRole {
        ThreadRole::from_bits(self.doing.look().role)
    }

    /// What it runs now, as far as that has a name; with a number that is another one when something else runs.
    pub(crate) fn running(&self) -> Option<(Name, u64)> {
        let look = self.doing.look();
        let runs =
            matches!(ThreadRole::from_bits(look.role), ThreadRole::Processing | ThreadRole::Task);
        runs.then(|| (look.name, u64::from(look.changes) + self.tally.ran()))
    }

    /// How people are told what it runs, or what its host handles outside, as far as that has a name.
    pub(crate) fn shown(&self) -> Option<&'static str> {
        if let Some((name, _)) = self.running() {
            return name.text();
        }
        let (outside, named) = (self.outside.load(Relaxed), self.named.load(Relaxed));
        let is_named = outside != 0 && (named >> 32) as u32 == outside;
        is_named.then(|| Name::from_bits(named as u32).text()).flatten()
    }

    /// What it does now, and a value that changes with every change of that: as long as it stays, so does what runs.
    /// A host's thread handles, outside, what it was brought.
    pub(crate) fn observe(&self) -> (ThreadRole, u64) {
        let look = self.doing.look();
        let (role, outside) = (ThreadRole::from_bits(look.role), self.outside.load(Relaxed));
        let changes = u64::from(look.changes) + self.tally.ran() + u64::from(outside);
        if role == ThreadRole::Away && outside != 0 && self.has_thread() {
            return (ThreadRole::Processing, changes);
        }
        (role, changes)
    }

    /// A value that differs for each thing that runs here, or that its host handles outside; none while neither is so, as
    /// while it leads or looks for work.
    pub(crate) fn at_work(&self) -> Option<u64> {
        let (role, value) = self.observe();
        // What runs has a name; one that only looks for tasks has their role, and none.
        let is_named = self.doing.look().name != Name::NONE || self.outside.load(Relaxed) != 0;
        let runs = matches!(role, ThreadRole::Processing | ThreadRole::Task);
        (runs && is_named).then_some(value)
    }

    /// Whether the thread that was here last lives.
    fn has_thread(&self) -> bool {
        thread::is_alive(self.kernel_thread.load(Relaxed))
    }

    /// Only the owner may call this: something has happened here that belongs to the timeline.
    #[inline]
    pub(crate) fn note(&self, what: What, other: Option<usize>, name: Name) {
        if self.doing.recorder.is_on() {
            self.doing.recorder.instant(what, other, name);
        }
    }

    /// A value that changes with every change of the role; none if this member runs a task, looks
    /// for one, or holds some.
    pub(crate) fn rest(&self) -> Option<u32> {
        // The role first: only a member whose role is `Task` fills its local queue, so one that was seen empty stays so
        // until the role changes.
        let look = self.doing.look();
        // An age is loaded with Acquire: pairs with the end of `steal`, so that whoever sees that a
        // local queue was emptied sees the role of the thief.
        (look.role != ThreadRole::Task.bits() && self.local.age().is_none()).then_some(look.changes)
    }

    /// A host thread becomes this member, if none is.
    fn take(&self) -> bool {
        self.doing.take(ThreadRole::Away.bits(), ThreadRole::Leader.bits())
    }
}

/// Members next to each other that share a wake word.
struct Group {
    word: WakeWord,
    first: usize,
}

impl Group {
    /// As many as it takes for `members`.
    fn cover(members: Range<usize>) -> impl Iterator<Item = Group> {
        members.step_by(GROUP).map(|first| Group { word: WakeWord::new(), first })
    }
}

/// Threads that run tasks of one lane only; see `ready/reserve.rs`.
struct Reserve {
    lane: Lane,
    group: Group,
    members: Range<usize>,
}

/// All members. The pool's own threads come first, and of these the reserved ones last; then those that host threads
/// become.
pub(crate) struct Members {
    /// Of the ordinary members.
    groups: Box<[Group]>,
    reserves: Box<[Reserve]>,
    members: Box<[Member]>,
    /// The pool's own, reserved ones included.
    pub(crate) threads: usize,
    /// Those of them that run anything.
    pub(crate) ordinary: usize,
    deferred: DeferredWatchdog,
    /// Those who take part now.
    present: AtomicU32,
    /// The pool is recorded.
    pub(crate) recorded: AtomicBool,
    /// What threads of others do to these, for the timeline.
    pub(crate) outside: Box<Recorder>,
    /// System calls spent on waking, counted where no member's tally is at hand.
    wakes: CachePadded<AtomicU64>,
}

impl Deref for Members {
    type Target = [Member];

    #[inline]
    fn deref(&self) -> &[Member] {
        &self.members
    }
}

impl Members {
    /// `reserved` threads for each lane come on top of the ordinary ones.
    pub(crate) fn new(ordinary: usize, reserved: [usize; LANES], hosts: usize) -> Self {
        let threads = ordinary + reserved.iter().sum::<usize>();
        let members = threads + hosts;
        // Without reserved threads in between, hosts share the words of the threads.
        let groups: Box<[Group]> = if threads == ordinary {
            Group::cover(0..members.max(1)).collect()
        } else {
            Group::cover(0..ordinary).chain(Group::cover(threads..members)).collect()
        };
        let mut first = ordinary;
        let reserves = Lane::ALL.into_iter().zip(reserved).filter(|&(_, count)| count > 0);
        let reserves = reserves.map(|(lane, count)| {
            let members = first..first + count;
            first += count;
            let group = Group { word: WakeWord::new(), first: members.start };
            Reserve { lane, group, members }
        });
        Self {
            groups,
            reserves: reserves.collect(),
            members: (0..members).map(|_| Member::new()).collect(),
            threads,
            ordinary,
            deferred: DeferredWatchdog::new(),
            present: AtomicU32::new(0),
            recorded: AtomicBool::new(false),
            outside: Box::default(),
            wakes: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// The word that `member` is announced in, and its number there.
    #[inline]
    pub(crate) fn word_of(&self, member: usize) -> (&WakeWord, usize) {
        let reserve = self.reserves.iter().find(|reserve| reserve.members.contains(&member));
        let group = match reserve {
            Some(reserve) => &reserve.group,
            None => {
                let after = self.groups.partition_point(|group| group.first <= member);
                &self.groups[after - 1]
            }
        };
        (&group.word, member - group.first)
    }

    /// The lane that `member` is reserved for.
    #[inline]
    pub(crate) fn reserved_for(&self, member: usize) -> Option<Lane> {
        let reserve = self.reserves.iter().find(|reserve| reserve.members.contains(&member))?;
        Some(reserve.lane)
    }

    #[inline]
    pub(crate) fn has_reserve(&self) -> bool {
        !self.reserves.is_empty()
    }

    /// The lanes that threads are reserved for.
    pub(crate) fn reserved_lanes(&self) -> impl Iterator<Item = Lane> {
        self.reserves.iter().map(|reserve| reserve.lane)
    }

    /// How many wake-ups took a system call.
    pub(crate) fn wakes(&self) -> u64 {
        self.wakes.load(Relaxed)
    }

    /// Members that are parked, the watches included.
    pub(crate) fn parked(&self) -> u32 {
        self.all_groups().map(|group| group.word.parked()).sum()
    }

    fn all_groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().chain(self.reserves.iter().map(|reserve| &reserve.group))
    }

    /// Who has the watch.
    pub(crate) fn watch(&self) -> Option<usize> {
        self.all_groups().find_map(|group| Some(group.first + group.word.watch()?))
    }

    /// Calls one ordinary parked member to search. True: one is on the way, or was already. The caller has
    /// published its work and passed a barrier.
    #[inline]
    pub(crate) fn wake_one(&self) -> bool {
        self.groups.iter().any(|group| self.wake_one_of(group))
    }

    #[inline]
    fn wake_one_of(&self, group: &Group) -> bool {
        match group.word.wake_one() {
            Ok(taken) => {
                self.call(group, taken, Wakes::SEARCH);
                true
            }
            Err(NotCalled::Searching) => true,
            Err(NotCalled::NoneParked) => false,
        }
    }

    /// As `wake_one`, of those who are reserved for `lane`.
    pub(crate) fn wake_reserved(&self, lane: Lane) -> bool {
        self.reserves.iter().any(|of| of.lane == lane && self.wake_one_of(&of.group))
    }

    /// Calls one parked member to lead, an ordinary one if there is any.
    pub(crate) fn wake_to_lead(&self) -> bool {
        self.all_groups().any(|group| self.wake_group_to_lead(group))
    }

    /// Calls one ordinary parked member to lead.
    pub(crate) fn wake_ordinary_to_lead(&self) -> bool {
        self.groups.iter().any(|group| self.wake_group_to_lead(group))
    }

    fn wake_group_to_lead(&self, group: &Group) -> bool {
        let taken = group.word.wake_to_lead();
        taken.map(|taken| self.call(group, taken, Wakes::LEAD)).is_ok()
    }

    /// Whether no group has a watch.
    #[inline]
    pub(crate) fn is_unwatched(&self) -> bool {
        self.groups.iter().all(|group| group.word.is_unwatched())
            && self.reserves.iter().all(|reserve| reserve.group.word.is_unwatched())
    }

    /// Whether there is a watch, and whether an ordinary member is parked.
    #[inline]
    pub(crate) fn watchers(&self) -> Watchers {
        // As most pools are: one word says both.
        if let ([group], []) = (&*self.groups, &*self.reserves) {
            return group.word.watchers();
        }
        Watchers { watched: !self.is_unwatched(), parked: self.has_parked() }
    }

    /// Makes a reserved thread the watch, if one is parked.
    #[cold]
    pub(crate) fn arm_reserved_watch(&self, look_at: Option<u64>) {
        for Reserve { group, .. } in &self.reserves {
            if let Called::Member(number) = group.word.arm_watch(false) {
                return self.call_watch(group.first + number, look_at);
            }
        }
    }

    fn call_watch(&self, member: usize, look_at: Option<u64>) {
        if !look_at.is_some_and(|time| {
            self.deferred.leave_reason(&self.members[member].parker, member, time)
        }) {
            self.unpark(member, Wakes::WATCH);
        }
    }

    /// Sees to it that an ordinary member watches. True: a polling leader has to be rung for it.
    #[cold]
    #[must_use]
    pub(crate) fn arm_watch(&self, leader_can: bool, look_at: Option<u64>) -> bool {
        for (index, group) in self.groups.iter().enumerate() {
            match group.word.arm_watch(leader_can && index + 1 == self.groups.len()) {
                Called::Member(number) => {
                    self.call_watch(group.first + number, look_at);
                    return false;
                }
                Called::Leader => return true,
                Called::Nobody => {}
            }
        }
        false
    }

    /// Passes the watch on to the member that `called` names in `me`'s group.
    pub(crate) fn pass_watch(&self, me: usize, called: Called) {
        if let Called::Member(number) = called {
            let (_, mine) = self.word_of(me);
            self.unpark(me - mine + number, Wakes::WATCH);
        }
    }

    /// Whether a polling leader has the watch.
    pub(crate) fn leader_watches(&self) -> bool {
        self.groups[self.groups.len() - 1].word.leader_watches()
    }

    pub(crate) fn end_leader_watch(&self) {
        self.groups[self.groups.len() - 1].word.end_leader_watch();
    }

    /// Whether an ordinary member is parked. A hint.
    #[inline]
    pub(crate) fn has_parked(&self) -> bool {
        self.groups.iter().any(|group| group.word.has_parked())
    }

    /// Wakes every member, because the pool closes.
    pub(crate) fn stop_all(&self) {
        for member in 0..self.members.len() {
            self.unpark(member, Wakes::STOP);
        }
    }

    /// Parks without a time to leave. `deferred`: where it can be made the watch without being woken, if that place is
    /// free.
    pub(crate) fn park(&self, me: usize, deferred: bool) -> Wakes {
        let parker = &self.members[me].parker;
        let parked = if deferred {
            let (word, number) = self.word_of(me);
            self.deferred.park(parker, me, |is_here| word.prefer(is_here.then_some(number)))
        } else {
            None
        };
        parked.unwrap_or_else(|| parker.park(None))
    }

    /// When the watch may look for the first time if it need not be woken for it `now`: what to give to `arm_watch`.
    pub(crate) fn first_look(&self, now: u64) -> Option<u64> {
        self.deferred.first_look(now)
    }

    /// The leader is about to wait: takes the watch back that no member was told of. It looks at the
    /// queues afterwards.
    #[inline]
    pub(crate) fn relieve(&self) {
        if self.deferred.is_watch() {
            self.relieve_parked();
        }
    }

    #[cold]
    fn relieve_parked(&self) {
        let Some(member) = self.deferred.take_back() else { return };
        if self.members[member].parker.take_back(Wakes::WATCH) {
            let (word, number) = self.word_of(member);
            if !word.relieve_watch(number) {
                // A call has taken the watch away, and its member waits for the news (rule 1 of the
                // wake word).
                self.unpark(member, Wakes::WATCH);
            }
        } else {
            self.deferred.ring_now();
        }
    }

    pub(crate) fn arrive(&self) {
        self.present.fetch_add(1, AcqRel);
    }

    pub(crate) fn depart(&self) {
        self.present.fetch_sub(1, AcqRel);
    }

    /// Takes one off `present` members. False: their number has changed.
    pub(crate) fn depart_from(&self, present: u32) -> bool {
        self.present.compare_exchange(present, present - 1, AcqRel, Relaxed).is_ok()
    }

    pub(crate) fn present(&self) -> u32 {
        self.present.load(Acquire)
    }

    /// Whether this member is the only one, or none is here. A hint.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        self.present.load(Relaxed) <= 1
    }

    /// Whether another member has claimed work that it has not begun.
    pub(crate) fn others_hold_work(&self, me: usize) -> bool {
        let holds = |member: &Member| !member.local.is_empty() || !member.chain.is_empty();
        self.members.iter().enumerate().any(|(index, other)| index != me && holds(other))
    }

    /// Tasks that are claimed and not begun.
    pub(crate) fn claimed_tasks(&self) -> usize {
        self.members.iter().map(|member| member.local.len()).sum()
    }

    /// Whether there was an instant at which no member ran a task or held one: none did at its turn,
    /// and no role changed from the first one's first turn to the last one's second.
    pub(crate) fn rest(&self) -> bool {
        self.rest_beside(None)
    }

    /// As [`rest`](Self::rest), whatever `me` runs, who asks.
    pub(crate) fn rest_beside(&self, me: Option<usize>) -> bool {
        let look = || {
            let rests = self.members.iter().enumerate().map(|(number, member)| match me {
                Some(me) if me == number => member.local.age().is_none().then_some(0),
                _ => member.rest().map(u64::from),
            });
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

    /// Those who have not left.
    pub(crate) fn stuck(&self) -> Vec<usize> {
        let members = self.members.iter().enumerate();
        members
            .filter(|(_, member)| member.role() != ThreadRole::Away)
            .map(|(index, _)| index)
            .collect()
    }

    fn call(&self, group: &Group, taken: Taken, reason: Wakes) {
        let reason = if taken.was_watch { reason.with(Wakes::OFF_WATCH) } else { reason };
        self.unpark(group.first + taken.member, reason);
    }

    pub(super) fn unpark(&self, member: usize, reason: Wakes) {
        match self.members[member].parker.unpark(reason) {
            Unparked::Awake => return,
            Unparked::Woken => {}
            Unparked::OnTimer => self.deferred.ring_now(),
        }
        self.wakes.fetch_add(1, Relaxed);
        if self.outside.is_on() {
            self.note_wake(member);
        }
    }

    /// This thread has woken a member.
    #[cold]
    pub(crate) fn note_wake(&self, member: usize) {
        let here = self.members.iter().find(|here| trace::is_here(&here.doing));
        let recorder = here.map_or(&*self.outside, |here| &here.doing.recorder);
        recorder.instant(What::Wake, Some(member), Name::NONE);
    }
}
