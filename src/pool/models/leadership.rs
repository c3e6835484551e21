//! Promotion and the watch: a set has one leader at a time, and whatever a stuck member leaves behind
//! (offered leadership, queued work, what it had claimed) finds a free one (invariants 1 to 3).
//!
//! `Member` takes the steps of `Worker::{step, lead, demultiplex, block, watches_while_leading,
//! tick_while_leading, before_user_code, found_work, replace_watch, follow, park_once, woken, watch, tick,
//! leave_watch, end_watch, rescue}` and `ReadyWork::arm_watch`, with the real handle sets, doorbells,
//! wake word and parkers. Ready work, local queues and what the kernel has are counts. No handler returns,
//! so there are as many members as there is work, and each must find some. Two leaders of one set
//! would meet in its tools, which loom reports.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | promotion | the set's word Relaxed, in `promote` or in `try_lead` | two leaders in the set's tools |
//! |  | eager: no barrier between `promote` and the look at who is parked | a follower parks beside an offered set |

use super::explore;
use super::heap::Heap;
use crate::pool::leader::{HandleSet, Leadership};
use crate::pool::members::{Called, Taken, WakeWord};
use crate::source::Source;
use crate::sync::{Parker, Wakes, store_load_barrier};
use core::time::Duration;
use loom::thread;
use std::sync::Arc;

struct Bench {
    sets: Vec<HandleSet>,
    /// Events that the kernel holds, by set.
    arrived: Vec<Heap>,
    word: WakeWord,
    parkers: Vec<Parker>,
    /// What anybody finds: lanes, surplus, stack.
    ready: Heap,
    /// What only searchers and the watch find: other members' local queues.
    held: Heap,
    /// A parked member is called to lead, and there is no watch to make up for it if not.
    eager: bool,
}

impl Bench {
    fn new(sets: usize, members: usize, eager: bool) -> Arc<Self> {
        Arc::new(Self {
            eager,
            sets: (0..sets).map(|_| HandleSet::new(Source::in_memory(), 0)).collect(),
            arrived: (0..sets).map(|_| Heap::new()).collect(),
            word: WakeWord::new(),
            parkers: (0..members).map(|_| Parker::new()).collect(),
            ready: Heap::new(),
            held: Heap::new(),
        })
    }

    /// Something happens at a descriptor. The kernel wakes whoever waits there, which is what a ring
    /// does here.
    fn arrive(&self, set: usize) {
        self.arrived[set].add();
        store_load_barrier();
        self.sets[set].source.ring();
    }

    /// `Shared::post`, `ReadyWork::notify_outside`.
    fn submit(&self) {
        self.ready.add();
        store_load_barrier();
        if !self.wake_one() {
            self.ring_a_leader();
        }
    }

    /// A member claims work and gets stuck: `Worker::{claim_tasks, before_user_code}`.
    fn get_stuck_with_a_queue(&self) {
        self.held.add();
        store_load_barrier();
        if self.word.is_unwatched() {
            self.arm_watch();
        }
    }

    fn is_offered(&self) -> bool {
        self.sets.iter().any(HandleSet::is_offered)
    }

    fn is_polling(&self) -> bool {
        self.sets.iter().any(|set| set.source.is_armed())
    }

    /// `ReadyWork::ring_a_leader`. Without system calls it takes a look to know whether one was called.
    fn ring_a_leader(&self) -> bool {
        let polling = self.sets.iter().find(|set| set.source.is_armed());
        polling.map(|set| set.source.ring()).is_some()
    }

    /// `Worker::call_next_leader`.
    fn call_next_leader(&self) -> Stuck {
        store_load_barrier();
        if self.is_offered()
            && let Ok(taken) = self.word.wake_to_lead()
        {
            assert!(!taken.was_watch, "there is none");
            let _ = self.parkers[taken.member].unpark(Wakes::LEAD);
        }
        Stuck
    }

    /// `Members::wake_one`.
    fn wake_one(&self) -> bool {
        match self.word.wake_one() {
            Ok(Taken { member, was_watch }) => {
                let off = if was_watch { Wakes::OFF_WATCH } else { Wakes::SEARCH };
                let _ = self.parkers[member].unpark(Wakes::SEARCH.with(off));
                true
            }
            Err(why) => why == crate::pool::members::NotCalled::Searching,
        }
    }

    /// `ReadyWork::arm_watch`.
    fn arm_watch(&self) {
        while self.arm(self.is_polling()) {
            store_load_barrier();
            if self.ring_a_leader() {
                return;
            }
            self.word.end_leader_watch();
        }
    }

    /// `Members::arm_watch`.
    fn arm(&self, leader_can: bool) -> bool {
        let called = self.word.arm_watch(leader_can);
        self.pass_watch(called);
        called == Called::Leader
    }

    fn pass_watch(&self, called: Called) {
        if let Called::Member(member) = called {
            let _ = self.parkers[member].unpark(Wakes::WATCH);
        }
    }
}

/// A member until its first handler.
struct Member<'a> {
    bench: &'a Bench,
    me: usize,
    next_set: usize,
    searching: bool,
    rescuing: bool,
    owes_watch: bool,
    published: bool,
}

/// Its handler never returns.
struct Stuck;

/// What a tick compares: `Survey`.
#[derive(PartialEq)]
struct Look(Vec<Option<u64>>, bool, bool);

impl<'a> Member<'a> {
    fn new(bench: &'a Bench, me: usize) -> Self {
        Self {
            bench,
            me,
            next_set: 0,
            searching: false,
            rescuing: false,
            owes_watch: false,
            published: true,
        }
    }

    fn run(mut self) {
        while self.step().is_none() {}
    }

    fn step(&mut self) -> Option<Stuck> {
        let bench = self.bench;
        if core::mem::take(&mut self.rescuing) && bench.held.take() {
            self.published = true;
            return Some(self.handle());
        }
        if !bench.ready.any()
            && let Some(lead) = self.try_lead()
        {
            return self.lead(lead);
        }
        if bench.ready.take() || (self.searching && bench.held.take()) {
            return Some(self.handle());
        }
        self.follow();
        None
    }

    fn try_lead(&mut self) -> Option<(usize, Leadership<'a>)> {
        let count = self.bench.sets.len();
        for offset in 0..count {
            let index = (self.next_set + offset) % count;
            if let Some(lead) = self.bench.sets[index].try_lead(self.me) {
                self.next_set = (index + 1) % count;
                return Some((index, lead));
            }
        }
        None
    }

    fn lead(&mut self, (set, mut lead): (usize, Leadership<'a>)) -> Option<Stuck> {
        let bench = self.bench;
        if !bench.ready.any() {
            self.give_up_search();
            self.block(set, &mut lead);
        }
        if bench.word.leader_watches() {
            bench.word.end_leader_watch();
            self.owes_watch = true;
        }
        let first = bench.arrived[set].take();
        while bench.arrived[set].take() {
            bench.ready.add();
        }
        lead.promote();
        self.published = true;
        first.then(|| if bench.eager { bench.call_next_leader() } else { self.handle() })
    }

    fn block(&mut self, set: usize, lead: &mut Leadership<'_>) {
        let bench = self.bench;
        lead.set.source.arm();
        if !bench.ready.any() && !bench.arrived[set].any() {
            let watches = self.watches_while_leading();
            let before = watches.then(|| self.look());
            let _events = lead.wait(watches.then_some(1));
            lead.set.source.disarm();
            store_load_barrier();
            self.rescuing = before.is_some_and(|before| self.is_stuck_since(&before));
        } else {
            lead.set.source.disarm();
            store_load_barrier();
        }
    }

    fn watches_while_leading(&self) -> bool {
        let bench = self.bench;
        if bench.word.leader_watches() {
            return true;
        }
        (bench.is_offered() || bench.held.any()) && bench.word.is_unwatched() && bench.arm(true)
    }

    fn look(&self) -> Look {
        let bench = self.bench;
        let vacancies = bench.sets.iter().map(HandleSet::vacancy).collect();
        Look(vacancies, bench.ready.any(), bench.held.any())
    }

    fn is_stuck_since(&self, before: &Look) -> bool {
        let now = self.look();
        let vacant = |(now, before): (&Option<u64>, &Option<u64>)| now.is_some() && now == before;
        now.0.iter().zip(&before.0).any(vacant) || (now.1 && before.1) || (now.2 && before.2)
    }

    fn handle(&mut self) -> Stuck {
        let bench = self.bench;
        if core::mem::take(&mut self.searching) {
            bench.word.stop_searching();
            if bench.ready.any() {
                bench.wake_one();
            }
        }
        if core::mem::take(&mut self.published) {
            store_load_barrier();
        }
        if core::mem::take(&mut self.owes_watch) {
            store_load_barrier();
            if bench.word.is_unwatched() && bench.held.any() {
                bench.arm_watch();
            }
        }
        if bench.word.is_unwatched() && (bench.is_offered() || bench.ready.any()) {
            bench.arm_watch();
        }
        Stuck
    }

    fn give_up_search(&mut self) -> bool {
        if !core::mem::take(&mut self.searching) {
            return false;
        }
        self.bench.word.stop_searching();
        self.bench.ready.any()
    }

    fn follow(&mut self) {
        if !self.give_up_search() {
            self.bench.word.announce(self.me);
            self.park();
        }
    }

    fn park(&mut self) {
        let bench = self.bench;
        if bench.ready.any() || bench.is_offered() {
            if bench.word.retract(self.me) {
                return;
            }
        } else if bench.held.any() && bench.word.is_unwatched() {
            bench.arm(false);
        }
        let wakes = bench.parkers[self.me].park(None);
        self.woken(wakes);
    }

    fn woken(&mut self, wakes: Wakes) {
        let mut news = wakes;
        while wakes.contains(Wakes::OFF_WATCH) && !news.contains(Wakes::WATCH) {
            news = self.bench.parkers[self.me].park(None);
        }
        if wakes.contains(Wakes::SEARCH) {
            self.owes_watch |= wakes.contains(Wakes::OFF_WATCH);
            self.searching = true;
        } else if wakes.contains(Wakes::WATCH) {
            self.watch();
        }
    }

    fn watch(&mut self) {
        let bench = self.bench;
        let mut before = self.look();
        loop {
            let wakes = bench.parkers[self.me].park(Some(Duration::ZERO));
            if wakes.is_call() {
                return self.called_off();
            }
            if self.is_stuck_since(&before) {
                self.rescuing = true;
                return self.leave_watch();
            }
            let now = self.look();
            let quiet = now.0.iter().all(Option::is_none) && !now.1 && !now.2;
            if quiet && bench.sets.iter().all(|set| set.source.is_armed()) {
                return if bench.word.end_watch(self.me) { self.park() } else { self.await_call() };
            }
            before = now;
        }
    }

    fn leave_watch(&mut self) {
        self.owes_watch = true;
        match self.bench.word.leave_watch(self.me) {
            Some(called) => self.bench.pass_watch(called),
            None => self.await_call(),
        }
    }

    fn await_call(&mut self) {
        while !self.bench.parkers[self.me].park(None).is_call() {}
        self.called_off();
    }

    fn called_off(&mut self) {
        self.owes_watch = true;
        self.searching = true;
    }
}

fn spawn(bench: &Arc<Bench>, me: usize) -> thread::JoinHandle<()> {
    let bench = bench.clone();
    thread::spawn(move || Member::new(&bench, me).run())
}

/// Two members, and what `world` does; both must find something to handle.
fn both_find_work(preemptions: usize, sets: usize, world: impl Fn(&Bench) + Send + Sync + 'static) {
    explore(preemptions, move || {
        let bench = Bench::new(sets, 2, false);
        let members = [0, 1].map(|me| spawn(&bench, me));
        world(&bench);
        members.into_iter().for_each(|member| member.join().unwrap());
        assert!(!bench.ready.any() && !bench.held.any());
    });
}

/// Goal: a leader that harvests and gets stuck leaves an offered set, which the follower takes. Method:
/// two events, one after the other or at once.
#[test]
fn offered_leadership_is_taken() {
    both_find_work(2, 1, |bench| {
        bench.arrive(0);
        bench.arrive(0);
    });
}

/// Goal: a set whose leader is stuck elsewhere is led by the leader of another set. Method: an event in
/// each of two sets.
#[test]
fn a_leader_takes_over_another_set() {
    both_find_work(2, 2, |bench| {
        bench.arrive(0);
        bench.arrive(1);
    });
}

/// Goal: when the watch is called away for a task, a polling leader that waited because of it takes
/// the watch up. Method: a local queue behind a stuck member, and a task.
#[test]
fn a_leader_replaces_the_watch() {
    both_find_work(2, 1, |bench| {
        bench.get_stuck_with_a_queue();
        bench.submit();
    });
}

/// Goal: a leader that has the watch and harvests leaves a new watch behind. Method: a local queue behind a
/// stuck member, and an event.
#[test]
fn a_leader_hands_its_watch_on() {
    both_find_work(2, 1, |bench| {
        bench.get_stuck_with_a_queue();
        bench.arrive(0);
    });
}

/// Goal: with eager promotion a follower leads as soon as the leader handles, without a watch. Method:
/// two events, no watch, no handler returns.
#[test]
fn an_eager_leader_calls_the_next() {
    explore(3, || {
        let bench = Bench::new(1, 2, true);
        let members = [0, 1].map(|me| spawn(&bench, me));
        bench.arrive(0);
        bench.arrive(0);
        members.into_iter().for_each(|member| member.join().unwrap());
    });
}

/// Goal: what one leader does with the set's tools happens before the next one's term (invariant 2).
/// Method: terms of two threads with nothing in between that would order them; loom checks the tools.
#[test]
fn a_term_ends_before_the_next_begins() {
    explore(3, || {
        let set = Arc::new(HandleSet::new(Source::in_memory(), 0));
        let lead_once = |set: &HandleSet, me| {
            if let Some(mut lead) = set.try_lead(me) {
                lead.wait(Some(0));
                lead.promote();
            }
        };
        let other = {
            let set = set.clone();
            thread::spawn(move || lead_once(&set, 1))
        };
        lead_once(&set, 0);
        lead_once(&set, 0);
        other.join().unwrap();
    });
}
