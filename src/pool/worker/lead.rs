//! Leading: one term of a handle set.

use super::Worker;
use crate::pool::config::Promotion;
use crate::pool::leader::Leadership;
use crate::pool::log;
use crate::pool::members::ThreadRole;
use crate::sync::store_load_barrier;
use crate::sys::clock;
use crate::trace::{NO_THREAD, Name, Record, What};

impl<'a> Worker<'a> {
    /// Leads one term of a set that is offered. False: none is.
    pub(super) fn lead(&mut self) -> bool {
        let shared = self.shared;
        let ready = self.ready;
        let Some(mut lead) = self.try_lead() else { return false };
        self.since_poll = 0;
        let led_at = self.member.doing.recorder.is_on().then(clock::now);
        self.member.tally.terms.add(1);
        if lead.took_over() {
            self.member.tally.handovers.add(1);
            log::leads(&shared.log, self.me, lead.before());
            self.member.note(What::HandOver, lead.before(), Name::NONE);
        }

        let events = self.demultiplex(&mut lead);
        if self.only.is_some() {
            self.member.tally.events.add(events as u64);
            self.hand_over(lead);
            self.note_term(led_at, events);
            return true;
        }
        if ready.members.leader_watches() {
            // Only a thread that waits can watch: whoever has something to lose arms anew.
            ready.members.end_leader_watch();
            self.owes_watch = true;
        }
        let now = ready.now();
        self.pace.read_clock(ready, now);
        self.begin_turn(now);
        let harvest = lead.sort_out(&ready.handles.slots, &ready.handles.stack, now);
        lead.promote();
        self.published = true;
        self.member.tally.events.add(events as u64);
        self.note_term(led_at, harvest.surplus + usize::from(harvest.first.is_some()));

        if let Some(first) = harvest.first {
            self.share(harvest.surplus);
            if shared.promotion == Promotion::Eager {
                self.call_next_leader();
            }
            self.run_activation(first);
        }
        true
    }

    /// A term is over, which has brought so many activations.
    #[inline]
    fn note_term(&self, led_at: Option<u64>, harvest: usize) {
        if let Some(at) = led_at {
            let lasted = clock::now().saturating_sub(at);
            let (name, number, what) = (Name::NONE, harvest as u16, What::Lead);
            let record = Record { at, lasted, name, number, other: NO_THREAD, what };
            self.member.doing.recorder.record(record);
        }
    }

    fn try_lead(&mut self) -> Option<Leadership<'a>> {
        let sets = &self.ready.handles.sets;
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
        let earliest = lead.take_in_timers(&self.ready.handles.slots);
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
        let ready = self.ready;
        if shared.spin == 0 {
            return None;
        }
        let until = ready.now().saturating_add(shared.spin).min(earliest).min(self.until);
        while ready.now() < until {
            let events = lead.wait(Some(0));
            if events > 0 || self.has_ready() || lead.has_new_timers() || shared.end.is_stopping() {
                return Some(events);
            }
            core::hint::spin_loop();
        }
        None
    }

    /// Blocks at the source, having announced it and looked again.
    fn block(&mut self, lead: &mut Leadership<'_>, earliest: u64) -> usize {
        let shared = self.shared;
        let ready = self.ready;
        let now = ready.now();
        self.pace.read_clock(ready, now);
        ready.members.relieve();
        lead.set.source.arm();
        if self.has_ready()
            || lead.has_new_timers()
            || shared.end.is_stopping()
            || shared.end.drain_is_over(now)
            || self.is_set_aside()
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
        let mut wake_at = earliest.min(self.until).min(shared.end.next_drain_look(now));
        if watches {
            self.survey[0].take(ready);
            wake_at = wake_at.min(now + ready.watchdog.period(now));
        }
        self.tasks_since_park = 0;
        self.idle_since = now;
        self.member.doing.recorder.begin(Name::NONE);
        let events = lead.wait_until(now, wake_at);
        self.end_span(What::Wait);
        lead.set.source.disarm();
        if watches {
            self.tick_while_leading();
        }
        events
    }

    /// A polling leader is the watch when no other thread can be.
    fn watches_while_leading(&self) -> bool {
        let ready = self.ready;
        if self.only.is_some() {
            // Nobody relies on it: it is not rung for it.
            return false;
        }
        if ready.members.leader_watches() {
            return true;
        }
        // What this thread must look after is either another set without a leader, or tasks and
        // activations in the local queues of a member that may be stuck.
        (ready.is_offered() || ready.needs_watch(self.me))
            && ready.members.is_unwatched()
            && ready.members.arm_watch(true, None)
    }

    fn tick_while_leading(&mut self) {
        let ready = self.ready;
        self.member.tally.ticks.add(1);
        let [before, now] = &mut self.survey;
        now.take(ready);
        if now.is_stuck_since(before) {
            self.rescues();
        }
        self.report_slow();
    }

    /// Wakes a helper when what was harvested is worth more than its start.
    fn share(&mut self, surplus: usize) {
        let ready = self.ready;
        if surplus > 0 && self.pace.expected(surplus as u64 + 1) > ready.sharing.threshold() {
            // Against *announce parking, then look for work*: before the first look at who is parked.
            store_load_barrier();
            if ready.members.has_parked() && ready.members.wake_one() {
                ready.sharing.called(ready.surplus_head() + surplus as u64 / 2);
            }
        }
    }

    /// Eager promotion: a parked member leads before this thread handles anything.
    fn call_next_leader(&self) {
        // Against *announce parking, then look for an offered set*. Without it both may look too early:
        // the follower parks beside an offered set until a watch finds it.
        store_load_barrier();
        if self.ready.is_offered() {
            self.ready.members.wake_to_lead();
        }
    }

    /// Ends a term of which nothing is this thread's: everything is ready work before leadership is
    /// offered, and then an ordinary member is called to both.
    pub(super) fn hand_over(&mut self, mut lead: Leadership<'_>) {
        let ready = self.ready;
        let harvest = lead.sort_out(&ready.handles.slots, &ready.handles.stack, ready.now());
        if let Some(first) = harvest.first {
            ready.handles.stack.push(first, &ready.handles.slots);
        }
        lead.promote();
        self.published = true;
        if harvest.first.is_some() {
            ready.notify_outside();
        } else {
            // Against *announce parking, then look for an offered set*.
            store_load_barrier();
            ready.members.wake_ordinary_to_lead();
        }
    }
}
