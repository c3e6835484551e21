//! One member's loop: lead, handle, follow.
//!
//! The protocol is told in [`super`]; the words that it runs on are in `wake.rs`, `set.rs` and
//! `slots.rs`. What belongs here is the order of steps, and where the barriers stand:
//!
//! * after publishing (offering leadership, queueing surplus, keeping claimed tasks in the hand) and
//!   before user code, one barrier, then the look whether somebody watches (`before_user_code`);
//! * after announcing sleep (idle, or polling) one barrier, then the look for work (`follow`,
//!   `block`). It is in `WakeWord::announce` and in the doorbell's `arm`.

use super::context;
use super::crew::{Member, ThreadRole};
use super::pace::{Pace, Survey};
use super::set::Leadership;
use super::slots::{Claim, Finish, Slot};
use super::wake::WakeWord;
use super::{Flow, Promotion, Shared};
use crate::queue::{Claimed, Erased, Lane, Taken, Turn};
use crate::source::Ready;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Wakes, store_load_barrier};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How often new readiness is handled on the spot before other work has its turn.
const LOOPS: usize = 8;
/// A member that ran so many tasks since it last parked is in a burst, and spins before it parks.
const BURST: u32 = 16;
/// A member that ran tasks so soon after it went to sleep, in nanoseconds, is in a burst too.
const BURST_WITHIN: u64 = 200_000;
/// One round of that spinning: pauses between two looks at the queues.
const SPIN_PAUSES: u32 = 256;
const SPIN_ROUNDS: u32 = if cfg!(loom) { 0 } else { 16 };
/// After so many rounds the CPU is offered to others between two looks.
const SPIN_HOT_ROUNDS: u32 = 1;

/// Something to run.
pub(super) enum Work<'a> {
    /// The first of what is in the hand.
    Task(Taken<'a>),
    /// The first of what was in another's hand; the rest is in this member's.
    Stolen(Erased),
    Activation(u32),
}

/// What one look of the watch shows.
enum Seen {
    /// Something is going on.
    Work,
    /// Something has not moved since the last look.
    Stuck,
    /// There is nothing left to look after.
    Quiet,
}

/// What only its own thread needs to know of a member.
pub(crate) struct Worker<'a> {
    pub(super) shared: &'a Shared,
    me: usize,
    pub(super) seat: &'a Member,
    /// This member's group and number in the wake words.
    word: &'a WakeWord,
    number: usize,
    role: ThreadRole,
    /// Holds the searching mark of its group.
    searching: bool,
    /// Was called to lead before anything else.
    pub(super) called_to_lead: bool,
    /// Left the watch because something was stuck.
    pub(super) rescuing: bool,
    /// Has given the watch up for something else, and not yet seen to a new one.
    owes_watch: bool,
    /// Has published work or leadership since it last made sure of a watch.
    pub(super) published: bool,
    /// Whose turn it is: tasks or activations.
    tasks_first: bool,
    turn: Turn,
    pub(super) pace: Pace,
    since_poll: u32,
    tasks_since_park: u32,
    /// When it last went to sleep.
    slept_at: u64,
    /// It is the watch that it was called for last, so it sleeps where that can be told later.
    goes_to_bed: bool,
    next_set: usize,
    /// A host thread leaves at this time.
    until: u64,
    /// What its seat had run before it came; at the end, what it has run itself.
    ran: u64,
    survey: [Survey; 2],
    /// A host thread that pulls: what is in the outbox is work for it.
    pulls: bool,
    /// Runs tasks of this lane only (`reserve.rs`).
    pub(super) only: Option<Lane>,
    /// It is set aside when no more threads than this are active (`active.rs`); 0: never.
    pub(super) rank: u32,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(shared: &'a Shared, me: usize, until: u64) -> Self {
        let (word, number) = shared.crew.place(me);
        Self {
            shared,
            me,
            seat: &shared.crew.members[me],
            word,
            number,
            role: ThreadRole::Away,
            searching: false,
            called_to_lead: false,
            rescuing: false,
            owes_watch: false,
            published: true,
            tasks_first: false,
            turn: Turn::from_bits(shared.crew.members[me].turn.load(Relaxed)),
            pace: Pace::new(shared.now()),
            since_poll: 0,
            tasks_since_park: 0,
            slept_at: 0,
            goes_to_bed: false,
            next_set: me % shared.sets.len(),
            until,
            ran: shared.crew.members[me].tally.ran(),
            survey: core::array::from_fn(|_| {
                Survey::new(shared.sets.len(), shared.crew.members.len())
            }),
            pulls: false,
            only: shared.crew.reserved_for(me),
            rank: if me < shared.crew.ordinary { me as u32 } else { 0 },
        }
    }

    /// Takes part until the pool stops or the time is up.
    pub(crate) fn run(&mut self) {
        self.set_role(ThreadRole::Leader);
        let shared = self.shared;
        match self.only {
            Some(lane) => self.run_reserved(lane),
            None => {
                while self.is_wanted() {
                    if shared.is_set_aside(self.rank) {
                        self.stand_aside();
                    } else {
                        self.step();
                    }
                }
            }
        }
        self.leave();
    }

    /// Looks at each set once, runs what is ready then, and leaves. What that makes ready in its
    /// turn is for the next time, so this ends.
    pub(crate) fn run_ready(&mut self) {
        self.set_role(ThreadRole::Leader);
        let shared = self.shared;
        shared.await_refresh();
        let _led = (0..shared.sets.len()).all(|_| self.lead());
        let (tasks, surplus) = shared.queued();
        self.seat.chain.install(shared.stack.take_all(&shared.slots));
        self.published = true;
        while let Some(index) = self.seat.chain.pop(&shared.slots) {
            self.run_activation(index);
        }
        for _ in 0..surplus {
            let Some(index) = shared.sets.iter().find_map(|set| set.surplus.pop()) else { break };
            self.run_activation(index as u32);
        }
        for _ in 0..tasks {
            let Some(work) = self.next_task() else { break };
            self.handle(work);
        }
        self.leave();
    }

    /// As `run` or `run_ready`, until `most` events are in the outbox, or some and nothing is ready
    /// that could bring more.
    pub(crate) fn pull(&mut self, most: usize, only_ready: bool) {
        self.pulls = true;
        if only_ready {
            return self.run_ready();
        }
        self.set_role(ThreadRole::Leader);
        let mut steps = 0;
        while self.is_wanted() && steps < most {
            let waiting = self.shared.outbox.len();
            if waiting >= most || waiting > 0 && !self.shared.has_ready(self.seat) {
                break;
            }
            steps += usize::from(waiting > 0);
            self.step();
        }
        self.leave();
    }

    /// How many handlers and tasks it ran, once it has left.
    pub(crate) fn ran(&self) -> u64 {
        self.ran
    }

    /// Whether there is anything to do here before sleep.
    #[inline]
    pub(super) fn has_ready(&self) -> bool {
        if let Some(lane) = self.only {
            return self.shared.tasks.is_claimable(lane);
        }
        self.shared.has_ready(self.seat) || self.pulls && !self.shared.outbox.is_empty()
    }

    fn step(&mut self) {
        if core::mem::take(&mut self.rescuing) && self.rescue() {
            return;
        }
        // A host thread may be gone before a watch would have looked twice.
        if self.until != u64::MAX
            && !self.shared.has_ready(self.seat)
            && let Some(work) = self.steal()
        {
            return self.handle(work);
        }
        let lead_now = core::mem::take(&mut self.called_to_lead) || self.poll_due();
        if (lead_now || !self.shared.has_ready(self.seat)) && self.lead() {
            return self.go_on();
        }
        match self.next_work() {
            Some(work) => self.handle(work),
            None => self.follow(),
        }
    }

    /// Runs what the harvests of a set have brought, as further steps would, for as long as these would
    /// find nothing else to be done.
    #[inline]
    fn go_on(&mut self) {
        let shared = self.shared;
        let waits = self.rescuing || self.searching || self.pulls || self.until != u64::MAX;
        if waits || !self.seat.hand.is_empty() || !self.seat.chain.is_empty() {
            return;
        }
        let home = &shared.sets[self.next_set];
        let mut empty = shared.tasks.ends_if_empty();
        while !self.poll_due() && shared.is_open_to_rank(self.rank) {
            if empty.is_none_or(|ends| !shared.tasks.end_at(ends)) {
                empty = shared.tasks.ends_if_empty();
                if empty.is_none() {
                    return;
                }
            }
            let Some(index) = home.surplus.pop() else { return };
            self.run_activation(index as u32);
        }
    }

    pub(super) fn is_wanted(&mut self) -> bool {
        if self.shared.must_stop() {
            return false;
        }
        // Only host threads have a time to leave, and they look at the clock every time.
        self.until == u64::MAX || self.shared.now() < self.until
    }

    pub(super) fn set_role(&mut self, role: ThreadRole) {
        if self.role != role {
            self.role = role;
            self.seat.set_role(role);
        }
    }

    fn poll_due(&self) -> bool {
        self.since_poll >= self.pace.poll_every()
    }

    // --- leading -------------------------------------------------------------------------------

    /// Leads one term of a set that is offered. False: none is.
    pub(super) fn lead(&mut self) -> bool {
        let shared = self.shared;
        let Some(mut lead) = self.try_lead() else { return false };
        self.since_poll = 0;
        self.seat.tally.terms.add(1);
        self.seat.tally.handovers.add(u64::from(lead.took_over()));

        let events = self.demultiplex(&mut lead);
        if self.only.is_some() {
            self.seat.tally.events.add(events as u64);
            self.hand_over(lead);
            return true;
        }
        if shared.crew.leader_watches() {
            // Only a thread that waits can watch: whoever has something to lose arms anew.
            shared.crew.end_leader_watch();
            self.owes_watch = true;
        }
        let now = shared.now();
        self.pace.read_clock(shared, now);
        let harvest = lead.sort_out(&shared.slots, &shared.stack, now);
        lead.promote();
        self.published = true;
        self.seat.tally.events.add(events as u64);

        if let Some(first) = harvest.first {
            self.share(harvest.surplus);
            if shared.promotion == Promotion::Eager {
                self.call_next_leader();
            }
            self.run_activation(first);
        }
        true
    }

    fn try_lead(&mut self) -> Option<Leadership<'a>> {
        let sets = &self.shared.sets;
        for offset in 0..sets.len() {
            let index = (self.next_set + offset) % sets.len();
            if let Some(lead) = sets[index].try_lead(self.me) {
                self.next_set = (index + 1) % sets.len();
                return Some(lead);
            }
        }
        None
    }

    /// Waits at the source: not at all while work is queued, else until something happens.
    fn demultiplex(&mut self, lead: &mut Leadership<'_>) -> usize {
        self.set_role(ThreadRole::Leader);
        let earliest = lead.take_in_timers(&self.shared.slots);
        if self.has_ready() || self.spin_for_work() {
            return lead.wait(Some(0));
        }
        self.give_up_search();
        match self.spin_at_source(lead, earliest) {
            Some(events) => events,
            None => self.block(lead, earliest),
        }
    }

    /// Polls without blocking for as long as the `spin` setting says. None: nothing came.
    fn spin_at_source(&mut self, lead: &mut Leadership<'_>, earliest: u64) -> Option<usize> {
        let shared = self.shared;
        if shared.spin == 0 {
            return None;
        }
        let until = shared.now().saturating_add(shared.spin).min(earliest).min(self.until);
        while shared.now() < until {
            let events = lead.wait(Some(0));
            if events > 0 || self.has_ready() || lead.has_new_timers() || shared.is_stopping() {
                return Some(events);
            }
            core::hint::spin_loop();
        }
        None
    }

    /// Blocks at the source, having announced it and looked again.
    fn block(&mut self, lead: &mut Leadership<'_>, earliest: u64) -> usize {
        let shared = self.shared;
        let now = shared.now();
        self.pace.read_clock(shared, now);
        shared.crew.bed.relieve(&shared.crew);
        lead.set.source.arm();
        if self.has_ready()
            || lead.has_new_timers()
            || shared.is_stopping()
            || shared.drain_is_over(now)
            || shared.is_set_aside(self.rank)
        {
            lead.set.source.disarm();
            return lead.wait(Some(0));
        }
        if shared.is_drained() {
            lead.set.source.disarm();
            shared.stop_if_drained();
            return lead.wait(Some(0));
        }
        let watches = self.watches_while_leading();
        let mut wake_at = earliest.min(self.until).min(shared.next_drain_look(now));
        if watches {
            self.survey[0].take(shared);
            wake_at = wake_at.min(now + shared.watch_period(now));
        }
        self.tasks_since_park = 0;
        self.slept_at = now;
        let events = lead.wait_until(now, wake_at);
        lead.set.source.disarm();
        if watches {
            self.tick_while_leading();
        }
        events
    }

    /// A polling leader is the watch when nobody else can be.
    fn watches_while_leading(&self) -> bool {
        let shared = self.shared;
        if self.only.is_some() {
            // Nobody relies on it: it is not rung for it.
            return false;
        }
        if shared.crew.leader_watches() {
            return true;
        }
        // What this thread must look after is either another set without a leader, or tasks and
        // activations in the hands of a member that may be stuck.
        (shared.is_offered() || shared.needs_watch(self.me))
            && shared.crew.is_unwatched()
            && shared.crew.arm_watch(true, None)
    }

    fn tick_while_leading(&mut self) {
        let shared = self.shared;
        self.seat.tally.ticks.add(1);
        let [before, now] = &mut self.survey;
        now.take(shared);
        self.rescuing = now.is_stuck_since(before);
        shared.report_slow();
    }

    /// Wakes a helper when what was harvested is worth more than its start.
    fn share(&mut self, surplus: usize) {
        let shared = self.shared;
        if surplus > 0 && self.pace.expected(surplus as u64 + 1) > shared.sharing.threshold() {
            // Against *announce sleep, then look for work*: before the first look at who sleeps.
            store_load_barrier();
            if shared.crew.has_sleeper() && shared.crew.wake_one() {
                shared.sharing.called(shared.surplus_head() + surplus as u64 / 2);
            }
        }
    }

    /// Eager promotion: whoever sleeps leads before this thread handles anything.
    fn call_next_leader(&self) {
        // Against *announce sleep, then look for an offered set*. Without it both may look too early:
        // the follower sleeps beside an offered set until a watch finds it.
        store_load_barrier();
        if self.shared.is_offered() {
            self.shared.crew.wake_to_lead();
        }
    }

    // --- handling ------------------------------------------------------------------------------

    /// The next thing to run: tasks and activations are drawn one for one.
    fn next_work(&mut self) -> Option<Work<'a>> {
        self.tasks_first = !self.tasks_first;
        let work = if self.tasks_first {
            self.next_task().or_else(|| self.next_activation())
        } else {
            self.next_activation().or_else(|| self.next_task())
        };
        work.or_else(|| if self.searching { self.steal() } else { None })
    }

    fn next_task(&mut self) -> Option<Work<'a>> {
        let task = match self.seat.hand.next() {
            Some(task) => task,
            None if self.shared.tasks.has_claimable() => self.claim_tasks()?,
            None => return None,
        };
        Some(Work::Task(task))
    }

    fn claim_tasks(&mut self) -> Option<Taken<'a>> {
        // Before the claim: a task on its way from the lane to the hand must not look like none.
        self.set_role(ThreadRole::Task);
        // A host thread may leave after any task, so it claims one at a time.
        let most = if self.until == u64::MAX { self.pace.claim() } else { 1 };
        match self.shared.tasks.claim(&self.seat.hand, &mut self.turn, most) {
            Claimed::Some(task) => {
                self.published |= !self.seat.hand.is_empty();
                self.shared.made_room();
                Some(task)
            }
            // A producer is between its two steps: it wakes somebody when it is through.
            Claimed::Busy | Claimed::Empty => None,
        }
    }

    fn next_activation(&mut self) -> Option<Work<'a>> {
        let shared = self.shared;
        if let Some(index) = self.seat.chain.pop(&shared.slots) {
            return Some(Work::Activation(index));
        }
        let home = self.next_set;
        for offset in 0..shared.sets.len() {
            let set = &shared.sets[(home + offset) % shared.sets.len()];
            if let Some(index) = set.surplus.pop() {
                return Some(Work::Activation(index as u32));
            }
        }
        if shared.stack.is_empty() {
            return None;
        }
        let mut chain = shared.stack.take_all(&shared.slots);
        let first = chain.pop(&shared.slots)?;
        if !chain.is_empty() {
            self.published = true;
            self.seat.chain.install(chain);
        }
        Some(Work::Activation(first))
    }

    /// Takes what another member has claimed and not begun.
    fn steal(&mut self) -> Option<Work<'a>> {
        let shared = self.shared;
        // As in `claim_tasks`.
        self.set_role(ThreadRole::Task);
        let others = shared.crew.members.iter().enumerate().filter(|&(index, _)| index != self.me);
        for (_, member) in others {
            if let Some(task) = member.hand.steal(&self.seat.hand) {
                return self.stolen(Work::Stolen(task));
            }
            if let Some(index) = member.chain.steal(&self.seat.chain, &shared.slots) {
                return self.stolen(Work::Activation(index));
            }
        }
        None
    }

    fn stolen(&mut self, work: Work<'a>) -> Option<Work<'a>> {
        self.published = true;
        self.seat.tally.stolen.add(1);
        Some(work)
    }

    /// After a watch found something stuck: what was claimed first, it is the only work that nobody
    /// else comes across.
    fn rescue(&mut self) -> bool {
        self.seat.tally.rescues.add(1);
        self.shared.tell_rescue(self.me);
        if !self.seat.hand.is_empty() || !self.seat.chain.is_empty() {
            return false;
        }
        match self.steal() {
            Some(work) => {
                self.handle(work);
                true
            }
            None => false,
        }
    }

    pub(super) fn handle(&mut self, work: Work<'a>) {
        match work {
            Work::Task(task) => self.run_tasks(|| task.run_caught()),
            Work::Stolen(task) => self.run_tasks(|| task.run_caught()),
            Work::Activation(index) => self.run_activation(index),
        }
    }

    /// Runs a task and what was claimed with it. That is little by its estimate, and whoever is free
    /// takes it over if the estimate was wrong, so nobody needs to be asked in between.
    #[inline]
    fn run_tasks(&mut self, first: impl FnOnce() -> std::thread::Result<()>) {
        self.before_user_code(ThreadRole::Task);
        self.run_task(first);
        while !self.shared.must_stop()
            && let Some(task) = self.seat.hand.next()
        {
            self.run_task(|| task.run_caught());
        }
    }

    #[inline(always)]
    fn run_task(&mut self, run: impl FnOnce() -> std::thread::Result<()>) {
        self.note_begin();
        let panicked = run().map_err(|panic| self.shared.tell_panic("task", panic)).is_err();
        self.tasks_since_park = self.tasks_since_park.saturating_add(1);
        self.seat.tally.count_task(panicked, context::take_outcome());
        crate::thread_state::next_lap();
        self.after_user_code();
    }

    #[inline]
    fn run_activation(&mut self, index: u32) {
        let shared = self.shared;
        let slot = shared.slots.slot(index);
        let ready = match slot.claim() {
            Claim::Run(ready) => ready,
            Claim::Free => return shared.bury(index),
            Claim::Nothing => return,
        };
        let traits = slot.traits();
        if traits.is_plain() {
            let flow = self.run_handler(slot, ready);
            if flow != Flow::Wait || !slot.rest() {
                self.finish(index, slot, flow, ready);
            }
        } else {
            self.run_unusual(index, slot, ready);
        }
    }

    /// Runs a claimed activation that takes other steps than most.
    #[inline(never)]
    fn run_unusual(&mut self, index: u32, slot: &Slot, ready: Ready) {
        let shared = self.shared;
        let traits = slot.traits();
        if traits.once {
            // A task that waited for its time: its slot is free before it runs.
            self.before_user_code(ThreadRole::Task);
            let task = shared.take_once(index);
            return self.run_task(|| task.run_caught());
        }
        if traits.pulled {
            self.seat.tally.handled.add(1);
            return shared.hand_out(index, ready);
        }
        if traits.may_block {
            self.set_role(ThreadRole::Processing);
            shared.promote_for_blocking();
        }
        let flow = self.run_handler(slot, ready);
        self.finish(index, slot, flow, ready);
    }

    /// Sees to what becomes of a slot whose handler has returned `flow`, and runs it again if more has come.
    #[inline(never)]
    fn finish(&mut self, index: u32, slot: &Slot, mut flow: Flow, mut ready: Ready) {
        let shared = self.shared;
        for round in 1.. {
            let yields = || round >= LOOPS || shared.has_ready(self.seat);
            match shared.finish(index, flow, ready, yields) {
                Finish::More(more) => ready = more,
                Finish::Queued | Finish::Armed => {
                    self.published = true;
                    return;
                }
                _ => return,
            }
            flow = self.run_handler(slot, ready);
        }
    }

    /// Runs the handler of a claimed slot once.
    #[inline(always)] // Of each activation.
    fn run_handler(&mut self, slot: &Slot, ready: Ready) -> Flow {
        self.before_user_code(ThreadRole::Processing);
        self.note_begin();
        self.seat.tally.handled.add(1);
        let ran = catch_unwind(AssertUnwindSafe(|| self.shared.run_claimed(slot, ready)));
        let flow = ran.unwrap_or_else(|panic| {
            self.seat.tally.panics.add(1);
            let traits = slot.traits();
            let what = if traits.timer && !traits.service { "timer" } else { "handler" };
            self.shared.tell_panic(what, panic);
            // The handler's state may be half-changed, so it is closed; everything else goes on.
            Flow::Done
        });
        self.after_user_code();
        flow
    }

    /// Everything that must be true before code of the user runs, which may never return.
    #[inline(always)] // Of each activation.
    fn before_user_code(&mut self, role: ThreadRole) {
        crate::thread_state::next_lap();
        if self.searching | self.published | self.owes_watch {
            self.settle(role);
        }
        self.set_role(role);
        if self.shared.lacks_watch() {
            self.arm_watch();
        }
    }

    /// Pays what this thread owes the others.
    #[inline(never)]
    fn settle(&mut self, role: ThreadRole) {
        if self.searching {
            self.found_work();
        }
        self.set_role(role);
        if core::mem::take(&mut self.published) {
            // Against *the watch ends, then looks once more*.
            store_load_barrier();
        }
        if core::mem::take(&mut self.owes_watch) {
            self.replace_watch();
        }
    }

    #[inline(always)] // Of each activation.
    fn note_begin(&self) {
        if self.shared.slow_limit != 0 {
            self.note_begin_with_limit();
        }
    }

    #[inline(never)]
    fn note_begin_with_limit(&self) {
        self.seat.began.store(self.shared.now(), Relaxed);
        // Against *the watch ends, then looks once more*: somebody is to report it if it does
        // not return.
        store_load_barrier();
        if self.shared.crew.is_unwatched() {
            self.shared.arm_watch();
        }
    }

    /// Somebody must look after what this thread leaves behind if it gets stuck.
    #[inline(never)]
    fn arm_watch(&self) {
        let shared = self.shared;
        if shared.is_offered() || shared.has_ready(self.seat) {
            shared.call_a_watch();
        }
    }

    /// Whoever claimed work while this thread was the watch relied on it, and may be stuck.
    #[cold]
    fn replace_watch(&self) {
        let shared = self.shared;
        // Against *claim, then see that somebody watches*.
        store_load_barrier();
        if shared.crew.is_unwatched() && shared.needs_watch(self.me) {
            shared.arm_watch();
        }
    }

    #[inline]
    fn after_user_code(&mut self) {
        self.shared.end_if_forked();
        if self.shared.slow_limit != 0 {
            self.shared.note_end(self.me);
        }
        self.since_poll += 1;
        self.pace.handled();
        if self.pace.clock_is_due() {
            self.pace.read_clock(self.shared, self.shared.now());
        }
    }

    // --- following -----------------------------------------------------------------------------

    /// Nothing to do: parks until called.
    pub(super) fn follow(&mut self) {
        let shared = self.shared;
        if self.spin_for_work() {
            return;
        }
        if self.give_up_search() {
            return;
        }
        let now = shared.now();
        self.pace.read_clock(shared, now);
        if shared.drain_is_over(now) {
            return shared.stop();
        }
        self.tasks_since_park = 0;
        self.slept_at = now;
        self.set_role(ThreadRole::Follower);
        self.word.announce(self.number);
        self.sleep();
        // What passed was sleep, and is no handler's.
        self.pace.read_clock(shared, shared.now());
    }

    /// Sleeps, being announced as idle, until it is called to something else than to watch.
    fn sleep(&mut self) {
        while self.nap() && self.watch() {}
    }

    /// Parks, being announced as idle, unless a last look finds something. True: it is the watch now.
    fn nap(&mut self) -> bool {
        let shared = self.shared;
        let must_lead = self.only.is_none() && shared.is_offered();
        let must_go = shared.is_stopping() || shared.is_set_aside(self.rank);
        if self.has_ready() || must_lead || must_go {
            if self.word.retract(self.number) {
                self.set_role(ThreadRole::Leader);
                return false;
            }
        } else if shared.is_drained() {
            if self.word.retract(self.number) {
                shared.stop_if_drained();
                self.set_role(ThreadRole::Leader);
                return false;
            }
        } else if self.only.is_some() {
            shared.see_to_a_watch(self.me);
        } else if shared.needs_watch(self.me) && shared.crew.is_unwatched() {
            // Whoever claimed that work found nobody to watch over it.
            let _rung = shared.crew.arm_watch(false, None);
        }
        self.seat.tally.parked.add(1);
        let wakes = match self.park_time() {
            None => self.park(),
            time => self.seat.parker.park(time),
        };
        self.woken(wakes)
    }

    /// Parks without a time to leave: in the bed if that is worth it and it is free.
    fn park(&self) -> Wakes {
        let crew = &self.shared.crew;
        let bed = if self.goes_to_bed { crew.bed.sleep(crew, self.me) } else { None };
        bed.unwrap_or_else(|| self.seat.parker.park(None))
    }

    fn park_time(&self) -> Option<Duration> {
        let until = self.until.min(self.shared.drain_deadline());
        (until != u64::MAX).then(|| Duration::from_nanos(until.saturating_sub(self.shared.now())))
    }

    /// Sorts out why this member is awake. True: it is the watch.
    fn woken(&mut self, mut wakes: Wakes) -> bool {
        // Called for no reason of the wake word (time out, stop): the announcement is still there,
        // or a reason is on its way (rule 1 of the wake word).
        while !wakes.is_call() && !self.word.retract(self.number) {
            wakes = self.seat.parker.park(None);
        }
        self.seat.tally.woken.add(1);
        // Called to watch and then, before it came to that, to search or lead: the later call took
        // the watch away, and may have overtaken the news of it.
        let mut news = wakes;
        while wakes.contains(Wakes::OFF_WATCH) && !news.contains(Wakes::WATCH) {
            news = self.seat.parker.park(None);
        }
        if wakes.contains(Wakes::SEARCH) || wakes.contains(Wakes::LEAD) {
            self.owes_watch |= wakes.contains(Wakes::OFF_WATCH);
            self.take_call(wakes);
        } else if wakes.contains(Wakes::WATCH) {
            return true;
        } else {
            self.set_role(ThreadRole::Leader);
        }
        false
    }

    fn take_call(&mut self, wakes: Wakes) {
        self.searching |= wakes.contains(Wakes::SEARCH);
        self.goes_to_bed = false;
        self.called_to_lead |= wakes.contains(Wakes::LEAD);
        self.set_role(ThreadRole::Leader);
        if wakes.contains(Wakes::SEARCH) {
            self.shared.sharing.answered(self.shared.surplus_head());
        }
    }

    /// Found work while searching: gives the mark up, and calls the next one if there is enough left
    /// for two.
    #[cold]
    fn found_work(&mut self) {
        self.searching = false;
        self.word.stop_searching();
        if self.shared.crew.has_reserve() {
            self.call_reserved();
        }
        if self.only.is_some() {
            return;
        }
        let left = self.shared.backlog(self.seat);
        if left > 0 && self.pace.expected(left) > self.shared.sharing.threshold() {
            self.shared.crew.wake_one();
        }
    }

    /// Stops searching because there is nothing. True: there is, after all.
    fn give_up_search(&mut self) -> bool {
        if !core::mem::take(&mut self.searching) {
            return false;
        }
        self.word.stop_searching();
        self.has_ready()
    }

    /// Many tasks since it last slept, or some so soon after it that it need not have slept.
    fn is_in_burst(&self) -> bool {
        self.tasks_since_park >= BURST
            || self.tasks_since_park > 0 && self.shared.now() < self.slept_at + BURST_WITHIN
    }

    /// After a burst of tasks the next one is likely to come soon: looks out for it for a while.
    fn spin_for_work(&mut self) -> bool {
        let rounds = if self.is_in_burst() { SPIN_ROUNDS } else { 0 };
        for round in 0..rounds {
            if !self.searching {
                self.searching = self.word.start_searching();
            }
            for _ in 0..SPIN_PAUSES {
                core::hint::spin_loop();
            }
            if self.has_ready() || self.shared.is_stopping() {
                return true;
            }
            if round >= SPIN_HOT_ROUNDS {
                std::thread::yield_now();
            }
        }
        self.tasks_since_park = 0;
        false
    }

    // --- watching ------------------------------------------------------------------------------

    /// Is the watch until it is called for something else, steps in, or nothing is left to watch. True:
    /// the latter, and it is announced as idle again.
    fn watch(&mut self) -> bool {
        let shared = self.shared;
        self.set_role(ThreadRole::Watch);
        self.goes_to_bed = true;
        self.survey[0].take(shared);
        loop {
            let now = shared.now();
            let period = shared.watch_period(now).min(self.until.saturating_sub(now));
            let wakes = self.seat.parker.park(Some(Duration::from_nanos(period)));
            if wakes.is_call() {
                self.owes_watch = true;
                self.take_call(wakes);
                return false;
            }
            let must_go = !self.is_wanted() || shared.is_set_aside(self.rank);
            if must_go || shared.drain_is_over(shared.now()) || shared.is_drained() {
                self.leave_watch();
                return false;
            }
            match self.tick() {
                Seen::Work => {}
                Seen::Stuck => {
                    self.rescuing = true;
                    self.leave_watch();
                    return false;
                }
                Seen::Quiet => return self.end_watch(),
            }
        }
    }

    /// One look.
    fn tick(&mut self) -> Seen {
        let shared = self.shared;
        self.seat.tally.ticks.add(1);
        shared.report_slow();
        let [before, now] = &mut self.survey;
        now.take(shared);
        if now.is_stuck_since(before) {
            return Seen::Stuck;
        }
        let quiet = match self.only {
            None => now.is_quiet_since(before) && !shared.needs_watch(self.me),
            Some(_) => shared.is_better_unwatched(),
        };
        if quiet {
            return Seen::Quiet;
        }
        self.survey.swap(0, 1);
        Seen::Work
    }

    /// Hands the watch on and goes to work.
    fn leave_watch(&mut self) {
        // There may be nobody to hand it to but a polling leader.
        self.owes_watch = true;
        match self.word.leave_watch(self.number) {
            Some(called) => {
                self.shared.crew.pass_watch(self.me, called);
                self.set_role(ThreadRole::Leader);
            }
            None => self.await_call(),
        }
    }

    /// All is quiet: becomes an idle follower. False: the watch had been taken from this member.
    fn end_watch(&mut self) -> bool {
        self.set_role(ThreadRole::Follower);
        let idle = self.word.end_watch(self.number);
        if !idle {
            self.await_call();
        }
        idle
    }

    /// The watch was taken from this member, so a reason is on its way (rule 1 of the wake word).
    fn await_call(&mut self) {
        loop {
            let wakes = self.seat.parker.park(None);
            if wakes.is_call() {
                self.owes_watch = true;
                return self.take_call(wakes);
            }
        }
    }

    // --- leaving -------------------------------------------------------------------------------

    fn leave(&mut self) {
        self.put_down(ThreadRole::Away);
    }

    /// Leaves nothing behind that only this member would come across, and takes `role`.
    pub(super) fn put_down(&mut self, role: ThreadRole) {
        let shared = self.shared;
        if self.searching {
            self.searching = false;
            self.word.stop_searching();
        }
        if shared.is_stopping() {
            while let Some(task) = self.seat.hand.next() {
                shared.cancel(task.into_task());
            }
        } else {
            while let Some(task) = self.seat.hand.next() {
                self.before_user_code(ThreadRole::Task);
                self.run_task(|| task.run_caught());
            }
            shared.made_room();
        }
        while let Some(index) = self.seat.chain.pop(&shared.slots) {
            shared.stack.push(index, &shared.slots);
        }
        if role == ThreadRole::Away {
            // From here on the seat may be somebody else's.
            self.ran = self.seat.tally.ran() - self.ran;
            // A host may stay for one task each time, and they must not all be of the first lane.
            self.seat.turn.store(self.turn.bits(), Relaxed);
        }
        self.set_role(role);
        if core::mem::take(&mut self.owes_watch) {
            self.replace_watch();
        }
        // Against *announce sleep, then look*, which is for work, for an offered set, and for the end
        // of the drain: a follower that saw this thread at a task counts on it for the last of these.
        store_load_barrier();
        if shared.stop_if_drained() {
            return;
        }
        if shared.has_unclaimed() {
            shared.call_for_unclaimed();
        }
        let alone = shared.sets.len() == 1 && !shared.crew.has_reserve();
        if shared.is_offered() && !shared.crew.wake_to_lead() && !alone {
            // Those who are left lead other sets, or are stuck.
            shared.arm_watch();
        }
    }
}
