//! Following: waiting for a call, watching, standing aside, leaving.

use super::Worker;
use crate::pool::members::ThreadRole;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Wakes, store_load_barrier};
use crate::trace::{Name, What};
use core::time::Duration;

/// A member that ran so many tasks since it last parked is in a burst, and spins before it parks.
const BURST: u32 = 16;
/// A member that ran tasks so soon after it became idle, in nanoseconds, is in a burst too.
const BURST_WITHIN: u64 = 200_000;
/// One round of that spinning: pauses between two looks at the queues.
const SPIN_PAUSES: u32 = 256;
const SPIN_ROUNDS: u32 = if cfg!(loom) { 0 } else { 16 };
/// After so many rounds the CPU is offered to others between two looks.
const SPIN_HOT_ROUNDS: u32 = 1;

/// What one look of the watch shows.
enum Seen {
    /// Something is going on.
    Work,
    /// Something has not moved since the last look.
    Stuck,
    /// There is nothing left to look after.
    Quiet,
}

impl Worker<'_> {
    /// Nothing to do: parks until called.
    pub(super) fn follow(&mut self) {
        let shared = self.shared;
        let ready = self.ready;
        if self.spin_for_work() {
            return;
        }
        if self.give_up_search() {
            return;
        }
        let now = ready.now();
        self.pace.read_clock(ready, now);
        if shared.end.drain_is_over(now) {
            return shared.stop();
        }
        self.tasks_since_park = 0;
        self.idle_since = now;
        self.set_role(ThreadRole::Follower);
        self.word.announce(self.number);
        self.member.doing.recorder.begin(Name::NONE);
        self.park_until_called();
        self.end_span(What::Park);
        let now = ready.now();
        // The time that passed was parked, and is no handler's.
        self.pace.read_clock(ready, now);
        self.begin_turn(now);
    }

    /// Parks, being announced as idle, until it is called to something else than to watch.
    fn park_until_called(&mut self) {
        while self.park_once() && self.watch() {}
    }

    /// Parks, being announced as idle, unless a last look finds something. True: it is the watch now.
    fn park_once(&mut self) -> bool {
        let shared = self.shared;
        let ready = self.ready;
        let must_lead = self.only.is_none() && ready.is_offered();
        let must_go = shared.end.is_stopping() || self.is_set_aside();
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
            ready.see_to_a_watch(self.me);
        } else if ready.needs_watch(self.me) && ready.members.is_unwatched() {
            // Whoever claimed that work found no thread to watch over it.
            let _rung = ready.members.arm_watch(false, None);
        }
        self.member.tally.parked.add(1);
        let wakes = match self.park_time() {
            None => ready.members.park(self.me, self.deferred),
            time => self.member.parker.park(time),
        };
        self.woken(wakes)
    }

    fn park_time(&self) -> Option<Duration> {
        let until = self.until.min(self.shared.end.drain_deadline());
        (until != u64::MAX).then(|| Duration::from_nanos(until.saturating_sub(self.ready.now())))
    }

    /// Sorts out why this member is awake. True: it is the watch.
    fn woken(&mut self, mut wakes: Wakes) -> bool {
        // Called for no reason of the wake word (time out, stop): the announcement is still there,
        // or a reason is on its way (rule 1 of the wake word).
        while !wakes.is_call() && !self.word.retract(self.number) {
            wakes = self.member.parker.park(None);
        }
        self.member.tally.woken.add(1);
        // Called to watch and then, before it came to that, to search or lead: the later call took
        // the watch away, and may have overtaken the news of it.
        let mut news = wakes;
        while wakes.contains(Wakes::OFF_WATCH) && !news.contains(Wakes::WATCH) {
            news = self.member.parker.park(None);
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
        self.deferred = false;
        self.called_to_lead |= wakes.contains(Wakes::LEAD);
        self.set_role(ThreadRole::Leader);
        if wakes.contains(Wakes::SEARCH) {
            self.ready.sharing.answered(self.ready.surplus_head());
        }
    }

    /// Found work while searching: gives the mark up, and calls the next one if there is enough left
    /// for two.
    #[cold]
    pub(super) fn found_work(&mut self) {
        self.searching = false;
        self.word.stop_searching();
        if self.ready.members.has_reserve() {
            self.ready.call_reserved();
        }
        if self.only.is_some() {
            return;
        }
        let left = self.ready.backlog(self.member);
        if left > 0 && self.pace.expected(left) > self.ready.sharing.threshold() {
            self.ready.members.wake_one();
        }
    }

    /// Stops searching because there is nothing. True: there is, after all.
    pub(super) fn give_up_search(&mut self) -> bool {
        if !core::mem::take(&mut self.searching) {
            return false;
        }
        self.word.stop_searching();
        self.has_ready()
    }

    /// Many tasks since it last parked, or some so soon after it that it need not have parked.
    fn is_in_burst(&self) -> bool {
        self.tasks_since_park >= BURST
            || self.tasks_since_park > 0 && self.ready.now() < self.idle_since + BURST_WITHIN
    }

    /// After a burst of tasks the next one is likely to come soon: looks out for it for a while.
    pub(super) fn spin_for_work(&mut self) -> bool {
        let rounds = if self.is_in_burst() { SPIN_ROUNDS } else { 0 };
        for round in 0..rounds {
            if !self.searching {
                self.searching = self.word.start_searching();
            }
            for _ in 0..SPIN_PAUSES {
                core::hint::spin_loop();
            }
            if self.has_ready() || self.shared.end.is_stopping() {
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
        self.end_span(What::Park);
        self.set_role(ThreadRole::Watch);
        self.member.doing.recorder.begin(Name::NONE);
        self.deferred = true;
        let is_quiet = self.watch_over();
        self.end_span(What::Watch);
        if is_quiet {
            self.member.doing.recorder.begin(Name::NONE);
        }
        is_quiet
    }

    fn watch_over(&mut self) -> bool {
        let shared = self.shared;
        let ready = self.ready;
        self.survey[0].take(ready);
        loop {
            let now = ready.now();
            let period = ready.watchdog.period(now).min(self.until.saturating_sub(now));
            let wakes = self.member.parker.park(Some(Duration::from_nanos(period)));
            if wakes.is_call() {
                self.owes_watch = true;
                self.take_call(wakes);
                return false;
            }
            let must_go = !self.is_wanted() || self.is_set_aside();
            if must_go || shared.end.drain_is_over(ready.now()) || shared.is_drained() {
                self.leave_watch();
                return false;
            }
            match self.tick() {
                Seen::Work => {}
                Seen::Stuck => {
                    self.rescues();
                    self.leave_watch();
                    return false;
                }
                Seen::Quiet => return self.end_watch(),
            }
        }
    }

    /// One look.
    fn tick(&mut self) -> Seen {
        let ready = self.ready;
        self.member.tally.ticks.add(1);
        self.report_slow();
        let [before, now] = &mut self.survey;
        now.take(ready);
        if now.is_stuck_since(before) {
            return Seen::Stuck;
        }
        let quiet = match self.only {
            None => now.is_quiet_since(before) && !ready.needs_watch(self.me),
            Some(_) => ready.is_better_unwatched(),
        };
        if quiet {
            return Seen::Quiet;
        }
        self.survey.swap(0, 1);
        Seen::Work
    }

    /// Its two last looks have shown something that is stuck.
    pub(super) fn rescues(&mut self) {
        let [before, now] = &self.survey;
        self.rescuing = true;
        self.held_up = now.held_up_since(before);
    }

    /// Hands the watch on and goes to work.
    fn leave_watch(&mut self) {
        // There may be no thread to hand it to but a polling leader.
        self.owes_watch = true;
        match self.word.leave_watch(self.number) {
            Some(called) => {
                self.ready.members.pass_watch(self.me, called);
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
            let wakes = self.member.parker.park(None);
            if wakes.is_call() {
                self.owes_watch = true;
                return self.take_call(wakes);
            }
        }
    }

    // --- leaving -------------------------------------------------------------------------------

    /// Parks until it is wanted again.
    pub(super) fn stand_aside(&mut self) {
        let shared = self.shared;
        let ready = self.ready;
        self.put_down(ThreadRole::Parked);
        self.member.doing.recorder.begin(Name::NONE);
        while self.is_set_aside() {
            // Whatever the reason, the number says whether it is for this thread (rule 3).
            let _woken = self.member.parker.park(shared.places.oversee(self.rank));
        }
        shared.places.oversee_no_more(self.rank, &ready.members);
        self.end_span(What::Aside);
        self.set_role(ThreadRole::Leader);
        // The time that passed was parked, and is no handler's.
        self.pace.read_clock(ready, ready.now());
    }

    pub(super) fn leave(&mut self) {
        self.put_down(ThreadRole::Away);
    }

    /// Leaves nothing behind that only this member would come across, and takes `role`.
    pub(super) fn put_down(&mut self, role: ThreadRole) {
        let shared = self.shared;
        let ready = self.ready;
        if self.searching {
            self.searching = false;
            self.word.stop_searching();
        }
        if shared.end.is_stopping() {
            while let Some(task) = self.member.local.next() {
                shared.counters.cancel(task.into_task());
            }
        } else {
            while let Some(task) = self.member.local.next() {
                let name = self.name_of(task.closure_type());
                self.before_user_code(ThreadRole::Task, name);
                self.run_task(name, || task.run_caught());
            }
            shared.rooms.made_room(&ready.tasks);
        }
        if !self.member.chain.is_empty() {
            // It comes before what was pushed since: a backlog that has more does not overtake the others.
            let handles = &ready.handles;
            let mut since = handles.stack.take_all(&handles.slots);
            while let Some(index) = self.member.chain.pop(&handles.slots) {
                handles.stack.push(index, &handles.slots);
            }
            while let Some(index) = since.pop(&handles.slots) {
                handles.stack.push(index, &handles.slots);
            }
        }
        if role == ThreadRole::Away {
            // From here on another thread may be this member.
            self.ran = self.member.tally.ran() - self.ran;
            // A host may stay for one task each time, and they must not all be of the first lane.
            self.member.turn.store(self.turn.bits(), Relaxed);
        }
        self.set_role(role);
        if core::mem::take(&mut self.owes_watch) {
            self.replace_watch();
        }
        // Against *announce parking, then look*, which is for work, for an offered set, and for the end
        // of the drain: a follower that saw this thread at a task counts on it for the last of these.
        store_load_barrier();
        if shared.stop_if_drained() {
            return;
        }
        if ready.has_unclaimed() {
            ready.call_for_unclaimed();
        }
        let alone = ready.handles.sets.len() == 1 && !ready.members.has_reserve();
        if ready.is_offered() && !ready.members.wake_to_lead() && !alone {
            // Those who are left lead other sets, or are stuck.
            ready.arm_watch();
        }
    }
}
