//! One member's loop: lead, handle, follow.
//!
//! The protocol is described in [`super`]; the words that it runs on are in `members/wake.rs`, `leader/` and
//! `slots/`. What belongs here is the order of steps, and where the barriers stand:
//!
//! * after publishing (offering leadership, queueing surplus, keeping claimed tasks in the local queue) and
//!   before user code, one barrier, then the look whether a thread watches (`before_user_code`);
//! * after announcing parking (idle, or polling) one barrier, then the look for work (`follow`,
//!   `block`). It is in `WakeWord::announce` and in the doorbell's `arm`.

mod follow;
mod lead;
mod pace;
mod survey;

use super::handler::{Flow, SlowReport};
use super::host::{await_refresh, hand_out};
use super::log;
use super::members::{Member, ThreadRole, WakeWord};
use super::ready::{REPORTED, ReadyWork};
use super::shared::Shared;
use super::slots::{Claim, Finish, Slot, with_claimed};
use super::this_thread::take_outcome;
use super::turn;
use crate::queue::{Claimed, ClosureType, Erased, Lane, Taken, Turn};
use crate::source;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::store_load_barrier;
use crate::trace::{self, Name, What};
use core::time::Duration;
use pace::Pace;
use std::panic::{AssertUnwindSafe, catch_unwind};
use survey::Survey;

/// How often new readiness is handled on the spot before other work has its turn.
const LOOPS: usize = 8;

/// Something to run.
pub(super) enum Work<'a> {
    /// The first of what is in the local queue.
    Task(Taken<'a>),
    /// The first of what was in another's local queue; the rest is in this member's.
    Stolen(Erased),
    Activation(u32),
}

/// What only its own thread needs to know of a member.
pub(crate) struct Worker<'a> {
    shared: &'a Shared,
    ready: &'a ReadyWork,
    me: usize,
    member: &'a Member,
    /// This member's group and number in the wake words.
    word: &'a WakeWord,
    number: usize,
    /// Holds the searching mark of its group.
    searching: bool,
    /// Was called to lead before anything else.
    called_to_lead: bool,
    /// Left the watch because something was stuck.
    rescuing: bool,
    /// Whoever ran the same in the two looks of the watch that found that.
    held_up: Option<(usize, Name)>,
    /// Has given the watch up for something else, and not yet seen to a new one.
    owes_watch: bool,
    /// Has published work or leadership since it last made sure of a watch.
    published: bool,
    /// Whose turn it is: tasks or activations.
    tasks_first: bool,
    turn: Turn,
    /// Where the function of the last task's closure is, and what such tasks are called.
    closure: (usize, Name),
    pace: Pace,
    /// When its turn is over, and whether it was at the last look at the clock (`pool/turn.rs`).
    turn_ends: u64,
    turn_is_over: bool,
    /// It has led since it last ran ready work: the next lead that only time asks for comes after some.
    works_first: bool,
    /// What was made ready by others than the leader comes before what it has harvested, the next time.
    stack_first: bool,
    /// Its turn was over while tasks that it has claimed had not begun: one of a more urgent lane comes before them.
    urgent_first: bool,
    /// Its pool's clock is one that a test moves.
    manual_clock: bool,
    since_poll: u32,
    tasks_since_park: u32,
    /// When it last had nothing to do.
    idle_since: u64,
    /// It is the watch that it was called for last, so it parks where the next watch can be deferred.
    deferred: bool,
    next_set: usize,
    /// A host thread leaves at this time.
    until: u64,
    /// What its place had run before it came; at the end, what it has run itself.
    ran: u64,
    survey: [Survey; 2],
    /// A host that waits at a completion queue: how many sources of that have something for it.
    listed: Option<&'a AtomicUsize>,
    /// Runs tasks of this lane only (`ready/reserve.rs`).
    only: Option<Lane>,
    /// It is set aside when no more threads than this are active (`members/places.rs`); 0: never.
    rank: u32,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(shared: &'a Shared, me: usize, until: u64) -> Self {
        let ready = &shared.ready;
        let (word, number) = ready.members.word_of(me);
        Self {
            shared,
            ready,
            me,
            member: &ready.members[me],
            word,
            number,
            searching: false,
            called_to_lead: false,
            rescuing: false,
            held_up: None,
            owes_watch: false,
            published: true,
            tasks_first: false,
            turn: Turn::from_bits(ready.members[me].turn.load(Relaxed)),
            closure: (0, Name::NONE),
            pace: Pace::new(ready.now()),
            turn_ends: 0,
            turn_is_over: true,
            works_first: false,
            stack_first: false,
            urgent_first: false,
            manual_clock: ready.handles.sets.clock().is_manual(),
            since_poll: 0,
            tasks_since_park: 0,
            idle_since: 0,
            deferred: false,
            next_set: me % ready.handles.sets.len(),
            until,
            ran: ready.members[me].tally.ran(),
            survey: core::array::from_fn(|_| {
                Survey::new(ready.handles.sets.len(), ready.members.len())
            }),
            listed: None,
            only: ready.members.reserved_for(me),
            rank: if me < ready.members.ordinary { me as u32 } else { 0 },
        }
    }

    /// Takes part until the pool stops or the time is up.
    pub(crate) fn run(&mut self) {
        self.set_role(ThreadRole::Leader);
        self.begin_turn(self.ready.now());
        match self.only {
            Some(lane) => self.run_reserved(lane),
            None => {
                while self.is_wanted() {
                    if self.is_set_aside() {
                        self.stand_aside();
                    } else {
                        self.step();
                    }
                }
            }
        }
        self.leave();
    }

    /// The loop of a reserved thread.
    fn run_reserved(&mut self, lane: Lane) {
        while self.is_wanted() {
            let leads = core::mem::take(&mut self.called_to_lead) || self.rescues_set();
            if leads && self.lead() {
                continue;
            }
            match self.claim_reserved(lane) {
                Some(work) => self.handle(work),
                None => self.follow(),
            }
        }
    }

    /// Looks at each set once, runs what is ready then, for one turn, and leaves: at least one of each kind, so that none
    /// keeps the others away for ever. What that makes ready is for the next time.
    pub(crate) fn run_ready(&mut self) {
        self.set_role(ThreadRole::Leader);
        let ready = self.ready;
        await_refresh(ready);
        self.begin_turn(ready.now());
        let _led = (0..ready.handles.sets.len()).all(|_| self.lead());
        let (tasks, surplus) = ready.queued();
        self.member.chain.install(ready.handles.stack.take_all(&ready.handles.slots));
        self.published = true;
        while let Some(index) = self.member.chain.pop(&ready.handles.slots) {
            self.run_activation(index);
            if self.turn_is_over {
                break;
            }
        }
        for _ in 0..surplus {
            let Some(index) = ready.handles.sets.iter().find_map(|set| set.surplus.pop()) else {
                break;
            };
            self.run_activation(index as u32);
            if self.turn_is_over {
                break;
            }
        }
        for _ in 0..tasks {
            let Some(work) = self.next_task() else { break };
            self.handle(work);
            if self.turn_is_over {
                break;
            }
        }
        self.leave();
    }

    /// As `run` or `run_ready`, until `most` sources are listed, or some and nothing is ready that could bring more.
    pub(crate) fn host(&mut self, listed: &'a AtomicUsize, most: usize, only_ready: bool) {
        self.listed = Some(listed);
        if only_ready {
            return self.run_ready();
        }
        self.set_role(ThreadRole::Leader);
        self.begin_turn(self.ready.now());
        let mut steps = 0;
        while self.is_wanted() && steps < most {
            let sources = listed.load(Relaxed);
            let waits = !self.turn_is_over && self.ready.has_ready(self.member);
            if sources >= most || sources > 0 && !waits {
                break;
            }
            steps += usize::from(sources > 0);
            self.step();
        }
        self.leave();
    }

    /// How many handlers and tasks it ran, once it has left.
    pub(crate) fn ran(&self) -> u64 {
        self.ran
    }

    /// Whether there is anything to do here before it parks.
    #[inline]
    fn has_ready(&self) -> bool {
        if let Some(lane) = self.only {
            return self.ready.tasks.is_claimable(lane);
        }
        self.ready.has_ready(self.member) || self.has_events()
    }

    fn has_events(&self) -> bool {
        self.listed.is_some_and(|listed| listed.load(Relaxed) > 0)
    }

    fn step(&mut self) {
        if core::mem::take(&mut self.rescuing) && self.rescue() {
            return;
        }
        // A host thread may be gone before a watch would have looked twice.
        if self.until != u64::MAX
            && !self.ready.has_ready(self.member)
            && let Some(work) = self.steal()
        {
            return self.handle(work);
        }
        // A harvest whose first handler takes a whole turn must not keep this thread from all other work.
        let works_first = core::mem::take(&mut self.works_first);
        let lead_now = core::mem::take(&mut self.called_to_lead) || self.poll_due() && !works_first;
        if (lead_now || !self.ready.has_ready(self.member)) && self.lead() {
            self.works_first = true;
            return self.go_on();
        }
        if self.turn_is_over {
            // Another thread is at each source.
            self.begin_turn(self.ready.now());
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
        let ready = self.ready;
        let waits =
            self.rescuing || self.searching || self.listed.is_some() || self.until != u64::MAX;
        if waits || !self.member.local.is_empty() || !self.member.chain.is_empty() {
            return;
        }
        let home = &ready.handles.sets[self.next_set];
        let mut empty = ready.tasks.ends_if_empty();
        while !self.poll_due() && self.goes_on() {
            if empty.is_none_or(|ends| !ready.tasks.end_at(ends)) {
                empty = ready.tasks.ends_if_empty();
                if empty.is_none() {
                    return;
                }
            }
            let Some(index) = home.surplus.pop() else { return };
            self.run_activation(index as u32);
        }
    }

    fn is_wanted(&mut self) -> bool {
        if self.shared.must_stop() {
            return false;
        }
        // Only host threads have a time to leave, and they look at the clock every time.
        self.until == u64::MAX || self.ready.now() < self.until
    }

    #[inline]
    fn set_role(&self, role: ThreadRole) {
        self.member.set_role(role);
    }

    /// What tasks of this closure are called.
    #[inline]
    fn name_of(&mut self, closure: ClosureType) -> Name {
        if self.closure.0 != closure.address() {
            let name = trace::of_function(closure.address(), || closure.name());
            self.closure = (closure.address(), name);
        }
        self.closure.1
    }

    /// What was begun in the timeline is over.
    #[inline]
    fn end_span(&self, what: What) {
        let doing = &self.member.doing;
        doing.recorder.end(what, || doing.look().name);
    }

    /// Whether it is to look at the source before it runs anything else: by what it has run, or by time.
    #[inline]
    fn poll_due(&self) -> bool {
        self.since_poll >= self.pace.poll_every() || self.turn_is_over
    }

    /// The next turn begins now (`pool/turn.rs`).
    #[inline]
    fn begin_turn(&mut self, now: u64) {
        let ends = now.saturating_add(self.shared.max_turn);
        // A host that came without time has one turn all the same.
        self.turn_ends = if self.until > now { ends.min(self.until) } else { ends };
        self.turn_is_over = false;
        self.urgent_first = !self.member.local.is_empty();
        turn::ends_at(self.turn_ends, self.manual_clock);
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
        if core::mem::take(&mut self.urgent_first)
            && let Some(task) = self.claim_urgent()
        {
            return Some(Work::Task(task));
        }
        let task = match self.member.local.next() {
            Some(task) => task,
            None if self.ready.tasks.has_claimable() => self.claim_tasks()?,
            None => return None,
        };
        Some(Work::Task(task))
    }

    fn claim_tasks(&mut self) -> Option<Taken<'a>> {
        // Before the claim: a task on its way from the lane to the local queue must not look like none.
        self.set_role(ThreadRole::Task);
        // A host thread may leave after any task, so it claims one at a time.
        let most = if self.until == u64::MAX { self.pace.claim() } else { 1 };
        match self.ready.tasks.claim(&self.member.local, &mut self.turn, most) {
            Claimed::Some(task) => {
                self.published |= !self.member.local.is_empty();
                self.shared.rooms.made_room(&self.ready.tasks);
                Some(task)
            }
            // A producer is between its two steps: it wakes a member when it is through.
            Claimed::Busy | Claimed::Empty => None,
        }
    }

    /// A task that is more urgent than those that this member has claimed and not begun.
    fn claim_urgent(&mut self) -> Option<Taken<'a>> {
        let tasks = &self.ready.tasks;
        let above = Lane::ALL.into_iter().take_while(|lane| *lane < self.turn.claimed);
        let task = above.filter(|&lane| tasks.is_claimable(lane)).find_map(|lane| {
            // Before the claim, as in `claim_tasks`.
            self.set_role(ThreadRole::Task);
            tasks.claim_of(lane, &self.member.local)
        })?;
        self.shared.rooms.made_room(tasks);
        Some(task)
    }

    fn claim_reserved(&mut self, lane: Lane) -> Option<Work<'a>> {
        if !self.ready.tasks.is_claimable(lane) {
            return None;
        }
        // Before the claim: a task on its way from the lane to this thread must not look like none.
        self.set_role(ThreadRole::Task);
        let task = self.ready.tasks.claim_of(lane, &self.member.local)?;
        self.shared.rooms.made_room(&self.ready.tasks);
        Some(Work::Task(task))
    }

    fn next_activation(&mut self) -> Option<Work<'a>> {
        self.stack_first = !self.stack_first;
        let index = if self.stack_first {
            self.next_of_stack().or_else(|| self.next_harvested())
        } else {
            self.next_harvested().or_else(|| self.next_of_stack())
        };
        index.map(Work::Activation)
    }

    /// Of what leaders have harvested.
    fn next_harvested(&mut self) -> Option<u32> {
        let sets = &self.ready.handles.sets;
        let home = self.next_set;
        (0..sets.len())
            .find_map(|offset| sets[(home + offset) % sets.len()].surplus.pop())
            .map(|index| index as u32)
    }

    /// Of what has become ready otherwise.
    fn next_of_stack(&mut self) -> Option<u32> {
        let handles = &self.ready.handles;
        if let Some(index) = self.member.chain.pop(&handles.slots) {
            return Some(index);
        }
        if handles.stack.is_empty() {
            return None;
        }
        let mut chain = handles.stack.take_all(&handles.slots);
        let first = chain.pop(&handles.slots)?;
        if !chain.is_empty() {
            self.published = true;
            self.member.chain.install(chain);
        }
        Some(first)
    }

    /// Takes what another member has claimed and not begun.
    fn steal(&mut self) -> Option<Work<'a>> {
        let ready = self.ready;
        // As in `claim_tasks`.
        self.set_role(ThreadRole::Task);
        let others = ready.members.iter().enumerate().filter(|&(index, _)| index != self.me);
        for (from, member) in others {
            if let Some(task) = member.local.steal(&self.member.local) {
                // They may be of any lane, so none goes before them.
                self.turn.claimed = Lane::Critical;
                return self.stolen(from, Work::Stolen(task));
            }
            if let Some(index) = member.chain.steal(&self.member.chain, &ready.handles.slots) {
                return self.stolen(from, Work::Activation(index));
            }
        }
        None
    }

    fn stolen(&mut self, from: usize, work: Work<'a>) -> Option<Work<'a>> {
        self.member.note(What::Steal, Some(from), Name::NONE);
        self.published = true;
        self.member.tally.stolen.add(1);
        Some(work)
    }

    /// After a watch found something stuck: what was claimed first, it is the only work that no other thread
    /// comes across.
    fn rescue(&mut self) -> bool {
        self.tell_rescue();
        if !self.member.local.is_empty() || !self.member.chain.is_empty() {
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

    fn tell_rescue(&mut self) {
        self.member.tally.rescues.add(1);
        let held_up = self.held_up.take();
        let (who, name) = held_up.unzip();
        self.member.note(What::Rescue, who, name.unwrap_or_default());
        if let Some(count) = self.ready.watchdog.tell_rescue(self.ready.now()) {
            log::rescued(&self.shared.log, self.me, held_up, count);
        }
    }

    /// After its watch has found something stuck. True: a set that no other thread can lead now.
    fn rescues_set(&mut self) -> bool {
        if !core::mem::take(&mut self.rescuing) || self.has_ready() {
            return false;
        }
        self.tell_rescue();
        let members = &self.ready.members;
        // It has left the watch. Against *announce parking, then see whether a member watches*.
        store_load_barrier();
        if self.ready.is_offered() {
            !members.wake_ordinary_to_lead()
        } else {
            // Whoever searches also takes what others hold.
            members.wake_one();
            false
        }
    }

    fn handle(&mut self, work: Work<'a>) {
        match work {
            Work::Task(task) => self.run_tasks(task.closure_type(), || task.run_caught()),
            Work::Stolen(task) => self.run_tasks(task.closure_type(), || task.run_caught()),
            Work::Activation(index) => self.run_activation(index),
        }
    }

    /// Runs a task and what was claimed with it, until the turn is over. That is little by its estimate, and whoever is
    /// free takes it over if the estimate was wrong, so no thread needs to be asked in between.
    #[inline]
    fn run_tasks(&mut self, closure: ClosureType, first: impl FnOnce() -> std::thread::Result<()>) {
        let name = self.name_of(closure);
        self.before_user_code(ThreadRole::Task, name);
        self.run_task(name, first);
        while !self.shared.must_stop()
            && !self.turn_is_over
            && let Some(task) = self.member.local.next()
        {
            let name = self.name_of(task.closure_type());
            self.member.runs(ThreadRole::Task, name);
            self.run_task(name, || task.run_caught());
        }
    }

    #[inline(always)]
    fn run_task(&mut self, name: Name, run: impl FnOnce() -> std::thread::Result<()>) {
        self.note_begin(name);
        let panicked = run().map_err(|panic| self.shared.log_panic("task", panic)).is_err();
        self.tasks_since_park = self.tasks_since_park.saturating_add(1);
        self.member.tally.count_task(panicked, take_outcome());
        crate::thread_state::next_lap();
        self.after_user_code();
    }

    #[inline]
    fn run_activation(&mut self, index: u32) {
        let handles = &self.ready.handles;
        let slot = handles.slots.slot(index);
        let arrived = match slot.claim() {
            Claim::Run(arrived) => arrived,
            Claim::Free => return handles.bury(index),
            Claim::Nothing => return,
        };
        let traits = slot.traits();
        if traits.is_plain() {
            let flow = self.run_handler(slot, arrived);
            if flow != Flow::Wait || !slot.rest() {
                self.finish(index, slot, flow, arrived);
            }
        } else {
            self.run_unusual(index, slot, arrived);
        }
    }

    /// Runs a claimed activation that takes other steps than most.
    #[inline(never)]
    fn run_unusual(&mut self, index: u32, slot: &Slot, arrived: source::Ready) {
        let shared = self.shared;
        let ready = self.ready;
        let traits = slot.traits();
        if traits.once {
            // A task that waited for its time: its slot is free before it runs.
            let closure = with_claimed(slot, |payload| payload.closure_type());
            let name = closure.map_or(Name::NONE, |closure| self.name_of(closure));
            self.before_user_code(ThreadRole::Task, name);
            let task = ready.handles.take_once(index);
            return self.run_task(name, || task.run_caught());
        }
        if traits.hosted {
            self.member.tally.handled.add(1);
            return hand_out(index, arrived, shared, true);
        }
        if traits.may_block {
            self.set_role(ThreadRole::Processing);
            ready.promote_for_blocking(Some(self.me));
        }
        let flow = self.run_handler(slot, arrived);
        self.finish(index, slot, flow, arrived);
    }

    /// Sees to what becomes of a slot whose handler has returned `flow`, and runs it again if more has come.
    #[inline(never)]
    fn finish(&mut self, index: u32, slot: &Slot, mut flow: Flow, mut arrived: source::Ready) {
        let ready = self.ready;
        if flow == Flow::Again {
            // It may have left the rest because the turn is over.
            self.read_clock();
        }
        for round in 1.. {
            let yields = || round >= LOOPS || self.turn_is_over || ready.has_ready(self.member);
            match ready.handles.finish(index, flow, arrived, yields) {
                Finish::More(more) => arrived = more,
                Finish::Queued | Finish::Armed => {
                    self.published = true;
                    return;
                }
                _ => return,
            }
            flow = self.run_handler(slot, arrived);
        }
    }

    /// Runs the handler of a claimed slot once.
    #[inline(always)] // Of each activation.
    fn run_handler(&mut self, slot: &Slot, arrived: source::Ready) -> Flow {
        let name = self.ready.handles.name_of(slot);
        self.before_user_code(ThreadRole::Processing, name);
        self.note_begin(name);
        self.member.tally.handled.add(1);
        let ran = catch_unwind(AssertUnwindSafe(|| self.ready.handles.run_claimed(slot, arrived)));
        let flow = ran.unwrap_or_else(|panic| {
            self.member.tally.panics.add(1);
            let traits = slot.traits();
            let what = if traits.timer && !traits.service { "timer" } else { "handler" };
            self.shared.log_panic(what, panic);
            // The handler's state may be half-changed, so it is closed; everything else goes on.
            Flow::Done
        });
        self.after_user_code();
        flow
    }

    /// Everything that must be true before code of the user runs, which may never return.
    #[inline(always)] // Of each activation.
    fn before_user_code(&mut self, role: ThreadRole, name: Name) {
        crate::thread_state::next_lap();
        if self.searching | self.published | self.owes_watch {
            self.settle(role, name);
        }
        self.member.runs(role, name);
        if self.ready.lacks_watch() {
            self.arm_watch();
        }
    }

    /// Pays what this thread owes the others.
    #[inline(never)]
    fn settle(&mut self, role: ThreadRole, name: Name) {
        if self.searching {
            self.found_work();
        }
        self.member.runs(role, name);
        if core::mem::take(&mut self.published) {
            // Against *the watch ends, then looks once more*.
            store_load_barrier();
        }
        if core::mem::take(&mut self.owes_watch) {
            self.replace_watch();
        }
    }

    #[inline(always)] // Of each activation.
    fn note_begin(&self, name: Name) {
        self.member.doing.recorder.begin(name);
        if self.ready.watchdog.slow_limit != 0 {
            self.note_begin_with_limit();
        }
    }

    #[inline(never)]
    fn note_begin_with_limit(&self) {
        self.member.began.store(self.ready.now(), Relaxed);
        // Against *the watch ends, then looks once more*: a member is to report it if it does
        // not return.
        store_load_barrier();
        if self.ready.members.is_unwatched() {
            self.ready.arm_watch();
        }
    }

    /// Somebody must look after what this thread leaves behind if it gets stuck.
    #[inline(never)]
    fn arm_watch(&self) {
        let ready = self.ready;
        if ready.is_offered() || ready.has_ready(self.member) {
            ready.call_a_watch();
        }
    }

    /// Whoever claimed work while this thread was the watch relied on it, and may be stuck.
    #[cold]
    fn replace_watch(&self) {
        let ready = self.ready;
        // Against *claim, then see that a member watches*.
        store_load_barrier();
        if ready.members.is_unwatched() && ready.needs_watch(self.me) {
            ready.arm_watch();
        }
    }

    #[inline]
    fn after_user_code(&mut self) {
        self.shared.end_if_forked();
        self.end_span(What::Handle);
        if self.ready.watchdog.slow_limit != 0 {
            self.note_end();
        }
        self.since_poll += 1;
        self.pace.handled();
        if self.pace.clock_is_due() {
            self.read_clock();
        }
    }

    fn read_clock(&mut self) {
        let now = self.ready.now();
        self.pace.read_clock(self.ready, now);
        self.turn_is_over = now >= self.turn_ends;
    }

    /// Whether it may go on with what it is at: the pool is open, and it is not set aside. If it says no, it does so to
    /// be on the safe side.
    #[inline]
    fn goes_on(&self) -> bool {
        self.shared.end.is_open() && self.shared.places.is_active(self.rank)
    }

    /// Whether it is set aside.
    #[inline]
    fn is_set_aside(&self) -> bool {
        !self.shared.places.is_active(self.rank) && self.has_no_place()
    }

    #[cold]
    fn has_no_place(&self) -> bool {
        self.shared.places.has_none_for(self.rank) && self.shared.end.is_open_to(false)
    }

    // --- slow handlers -------------------------------------------------------------------------

    /// Reports handlers that run for longer than the limit.
    #[inline(never)]
    fn report_slow(&self) {
        let ready = self.ready;
        if ready.watchdog.slow_limit == 0 {
            return;
        }
        for (member, elapsed) in ready.watchdog.overdue(&ready.members, ready.now()) {
            let name = ready.members[member].running().map_or(Name::NONE, |(name, _)| name);
            self.report(member, name, elapsed, true);
        }
    }

    /// This member's handler returned.
    #[inline(never)]
    fn note_end(&self) {
        let began = self.member.began.swap(0, Relaxed);
        let elapsed = self.ready.now().saturating_sub(began & !REPORTED);
        if elapsed > self.ready.watchdog.slow_limit && began & REPORTED == 0 {
            let name = self.member.running().map_or(Name::NONE, |(name, _)| name);
            self.report(self.me, name, elapsed, false);
        }
    }

    fn report(&self, thread: usize, name: Name, elapsed: u64, running: bool) {
        let elapsed = Duration::from_nanos(elapsed);
        let name = name.text();
        log::slow(&self.shared.log, thread, name, elapsed, running);
        crate::thread_state::next_lap();
        if let Some(hook) = &self.ready.watchdog.slow_hook {
            self.shared.run_hook(|| hook(&SlowReport { thread, name, elapsed, running }));
        }
    }
}
