//! Reserved threads: a task of their lane never lies beside one that is parked, an ordinary one never
//! beside an ordinary parked one, and an offered set is led by a member.
//!
//! `Ordinary` and `Reserved` take the steps of `Worker::{run_reserved, rescues_set, hand_over, step,
//! follow, park_once, watch, before_user_code, found_work, call_reserved}` and
//! `ReadyWork::{notify_reserved, see_to_a_watch, arm_watch}`, with the real wake words, parkers and handle
//! sets. Ready work is a count per kind. No ordinary handler returns: whatever one leaves behind,
//! another must come for.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | reserved threads | an ordinary member parks, or leads, without a look at local queues | a local queue lies beside those who are free |
//! |  | a reserved one parks without seeing that an ordinary one watches | likewise |
//! |  | no barrier in a post to its lane | a task of the lane lies beside it |
//! |  | no reserved watch for an offered set, from either side; no barrier before the look whether anybody watches | nobody leads |

use super::explore;
use super::heap::Heap;
use crate::pool::leader::HandleSet;
use crate::pool::members::{Called, NotCalled, WakeWord};
use crate::source::Source;
use crate::sync::{Parker, Wakes, store_load_barrier};
use core::time::Duration;
use loom::thread;
use std::sync::Arc;

struct Bench {
    set: HandleSet,
    /// Tasks of the reserved lane, and all other work.
    lane: Heap,
    other: Heap,
    /// What only an ordinary watch finds: other members' local queues.
    held: Heap,
    /// Of ordinary members, and of the reserved ones.
    words: [WakeWord; 2],
    parkers: [Vec<Parker>; 2],
}

const ORDINARY: usize = 0;
const RESERVED: usize = 1;

impl Bench {
    fn new(ordinary: usize, reserved: usize) -> Arc<Self> {
        let parkers = |count| (0..count).map(|_| Parker::new()).collect();
        Arc::new(Self {
            set: HandleSet::new(Source::in_memory(), 0),
            lane: Heap::new(),
            other: Heap::new(),
            held: Heap::new(),
            words: [WakeWord::new(), WakeWord::new()],
            parkers: [parkers(ordinary), parkers(reserved)],
        })
    }

    /// `Members::{wake_one, wake_reserved}`.
    fn wake_one(&self, of: usize) -> bool {
        match self.words[of].wake_one() {
            Ok(taken) => {
                let off = if taken.was_watch { Wakes::OFF_WATCH } else { Wakes::SEARCH };
                let _ = self.parkers[of][taken.member].unpark(Wakes::SEARCH.with(off));
                true
            }
            Err(why) => why == NotCalled::Searching,
        }
    }

    /// `Members::wake_ordinary_to_lead`.
    fn wake_ordinary_to_lead(&self) -> bool {
        let taken = self.words[ORDINARY].wake_to_lead();
        let off = |was_watch| if was_watch { Wakes::OFF_WATCH } else { Wakes::LEAD };
        let call = |member: usize, was_watch| {
            let _ = self.parkers[ORDINARY][member].unpark(Wakes::LEAD.with(off(was_watch)));
        };
        taken.map(|taken| call(taken.member, taken.was_watch)).is_ok()
    }

    fn arm(&self, of: usize) {
        if let Called::Member(member) = self.words[of].arm_watch(false) {
            let _ = self.parkers[of][member].unpark(Wakes::WATCH);
        }
    }

    fn is_unwatched(&self) -> bool {
        self.words.iter().all(WakeWord::is_unwatched)
    }

    /// `ReadyWork::{arm_watch, call_a_watch}`.
    fn arm_watch(&self) {
        self.arm(ORDINARY);
        while self.is_unwatched() && self.is_polling() {
            let _leader = self.words[ORDINARY].arm_watch(true);
            store_load_barrier();
            if self.is_polling() {
                self.set.source.ring();
                return;
            }
            self.words[ORDINARY].end_leader_watch();
            self.arm(ORDINARY);
        }
        if self.set.is_offered() && self.is_unwatched() {
            self.arm(RESERVED);
        }
    }

    /// `ReadyWork::is_polling`: an ordinary leader waits.
    fn is_polling(&self) -> bool {
        let leader = self.set.leader();
        self.set.source.is_armed() && leader.is_some_and(|who| who < self.parkers[ORDINARY].len())
    }

    /// A member claims work and gets stuck: `Worker::{claim_tasks, before_user_code}`.
    fn get_stuck_with_a_queue(&self) {
        self.held.add();
        store_load_barrier();
        if self.is_unwatched() {
            self.arm_watch();
        }
    }

    /// `Shared::push`, `ReadyWork::notify_outside`.
    fn post_other(&self) {
        self.other.add();
        store_load_barrier();
        if !self.wake_one(ORDINARY) {
            // `ReadyWork::ring_a_leader`: an ordinary one.
            if self.set.leader().is_some_and(|leader| leader < self.parkers[ORDINARY].len()) {
                self.set.source.ring();
            }
        }
    }

    /// `Shared::push`, `ReadyWork::notify_reserved`.
    fn post_to_lane(&self) {
        self.lane.add();
        store_load_barrier();
        self.call_for_lane();
    }

    /// `ReadyWork::call_for_lane`. A ring at the source calls whoever leads.
    fn call_for_lane(&self) {
        if self.wake_one(RESERVED) {
            return;
        }
        if self.set.leader().is_some_and(|leader| leader >= self.parkers[ORDINARY].len()) {
            self.set.source.ring();
            return;
        }
        if !self.wake_one(ORDINARY) {
            self.set.source.ring();
        }
    }
}

/// What a member is stuck in at the end.
#[derive(PartialEq, Debug)]
enum Stuck {
    Lane,
    Other,
}

struct Ordinary<'a> {
    bench: &'a Bench,
    me: usize,
    searching: bool,
    /// Left the watch because of something stuck.
    rescuing: bool,
}

impl Ordinary<'_> {
    fn run(&mut self) -> Stuck {
        loop {
            let looks_at_hands = core::mem::take(&mut self.rescuing) || self.searching;
            if looks_at_hands && self.bench.held.take() {
                return self.handle(Stuck::Other);
            }
            if !self.has_ready()
                && let Some(mut lead) = self.bench.set.try_lead(self.me)
            {
                self.give_up_search();
                lead.set.source.arm();
                let mut stuck = false;
                if !self.has_ready() {
                    let watches = self.watches_while_leading();
                    let _events = lead.wait(watches.then_some(1));
                    stuck = watches && self.bench.held.any();
                }
                lead.set.source.disarm();
                store_load_barrier();
                if self.bench.words[ORDINARY].leader_watches() {
                    self.bench.words[ORDINARY].end_leader_watch();
                }
                lead.promote();
                if stuck && self.bench.held.take() {
                    return self.handle(Stuck::Other);
                }
            } else if self.bench.other.take() {
                return self.handle(Stuck::Other);
            } else if self.bench.lane.take() {
                return self.handle(Stuck::Lane);
            } else {
                self.follow();
            }
        }
    }

    /// `Worker::watches_while_leading`.
    fn watches_while_leading(&self) -> bool {
        let word = &self.bench.words[ORDINARY];
        if word.leader_watches() {
            return true;
        }
        self.bench.held.any() && self.bench.is_unwatched() && word.arm_watch(true) == Called::Leader
    }

    fn has_ready(&self) -> bool {
        self.bench.other.any() || self.bench.lane.any()
    }

    /// `Worker::{before_user_code, found_work}`, `ReadyWork::call_reserved`.
    fn handle(&mut self, stuck: Stuck) -> Stuck {
        let bench = self.bench;
        if core::mem::take(&mut self.searching) {
            bench.words[ORDINARY].stop_searching();
            if bench.lane.any() {
                bench.call_for_lane();
            }
            if bench.other.any() {
                bench.wake_one(ORDINARY);
            }
        }
        store_load_barrier();
        if bench.is_unwatched() && (bench.set.is_offered() || self.has_ready()) {
            bench.arm_watch();
        }
        stuck
    }

    fn give_up_search(&mut self) -> bool {
        if !core::mem::take(&mut self.searching) {
            return false;
        }
        self.bench.words[ORDINARY].stop_searching();
        self.has_ready()
    }

    /// `Worker::{follow, park_once, woken, watch, leave_watch}`. As the watch it steps in at once.
    fn follow(&mut self) {
        let bench = self.bench;
        if self.give_up_search() {
            return;
        }
        let word = &bench.words[ORDINARY];
        word.announce(self.me);
        if self.has_ready() || bench.set.is_offered() {
            if word.retract(self.me) {
                return;
            }
        } else if bench.held.any() && bench.is_unwatched() {
            bench.arm(ORDINARY);
        }
        let wakes = bench.parkers[ORDINARY][self.me].park(None);
        self.woken(wakes);
    }

    fn woken(&mut self, wakes: Wakes) {
        let park = || self.bench.parkers[ORDINARY][self.me].park(None);
        let mut news = wakes;
        while wakes.contains(Wakes::OFF_WATCH) && !news.contains(Wakes::WATCH) {
            news = park();
        }
        if wakes.contains(Wakes::SEARCH) {
            self.searching = true;
        } else if wakes.contains(Wakes::WATCH) && !wakes.contains(Wakes::LEAD) {
            self.rescuing = true;
            match self.bench.words[ORDINARY].leave_watch(self.me) {
                Some(Called::Member(member)) => {
                    let _ = self.bench.parkers[ORDINARY][member].unpark(Wakes::WATCH);
                }
                Some(_) => {}
                None => self.searching |= park().contains(Wakes::SEARCH),
            }
        }
    }
}

struct Reserved<'a> {
    bench: &'a Bench,
    me: usize,
    searching: bool,
    /// It has found an offered set beside busy members, and leads it.
    leads: bool,
    /// Ends when it was called on to lead, though it has no task.
    may_end: bool,
}

impl Reserved<'_> {
    fn number(&self) -> usize {
        self.bench.parkers[ORDINARY].len() + self.me
    }

    /// `Worker::run_reserved`.
    fn run(&mut self) -> Option<Stuck> {
        let bench = self.bench;
        loop {
            let leads = core::mem::take(&mut self.leads);
            if leads {
                store_load_barrier();
            }
            if leads
                && !bench.lane.any()
                && !bench.wake_ordinary_to_lead()
                && let Some(mut lead) = bench.set.try_lead(self.number())
            {
                self.give_up_search();
                lead.set.source.arm();
                if !bench.lane.any() && !self.may_end {
                    let _events = lead.wait(None);
                }
                lead.set.source.disarm();
                store_load_barrier();
                if self.may_end {
                    return None;
                }
                self.hand_over(lead);
            } else if bench.lane.take() {
                return Some(self.handle());
            } else {
                self.follow();
            }
        }
    }

    /// `Worker::hand_over` with nothing harvested.
    fn hand_over(&self, lead: crate::pool::leader::Leadership<'_>) {
        lead.promote();
        store_load_barrier();
        self.bench.wake_ordinary_to_lead();
    }

    fn handle(&mut self) -> Stuck {
        if core::mem::take(&mut self.searching) {
            self.bench.words[RESERVED].stop_searching();
            if self.bench.lane.any() {
                self.bench.call_for_lane();
            }
        }
        store_load_barrier();
        if self.bench.is_unwatched() && self.bench.set.is_offered() {
            self.bench.arm_watch();
        }
        Stuck::Lane
    }

    fn give_up_search(&mut self) -> bool {
        if !core::mem::take(&mut self.searching) {
            return false;
        }
        self.bench.words[RESERVED].stop_searching();
        self.bench.lane.any()
    }

    /// `Worker::{follow, park_once, watch, end_watch}` and `ReadyWork::{see_to_a_watch,
    /// is_better_unwatched}`.
    fn follow(&mut self) {
        let bench = self.bench;
        if self.give_up_search() {
            return;
        }
        bench.words[RESERVED].announce(self.me);
        self.rest();
    }

    /// Being announced.
    fn rest(&mut self) {
        let bench = self.bench;
        let word = &bench.words[RESERVED];
        loop {
            if bench.lane.any() {
                if word.retract(self.me) {
                    return;
                }
            } else if bench.is_unwatched() {
                let offered = bench.set.is_offered();
                if bench.words[ORDINARY].has_parked() || bench.is_polling() {
                    if offered || bench.other.any() || bench.held.any() {
                        bench.arm_watch();
                    }
                } else if offered {
                    bench.arm(RESERVED);
                }
            }
            let wakes = bench.parkers[RESERVED][self.me].park(None);
            let mut news = wakes;
            while wakes.contains(Wakes::OFF_WATCH) && !news.contains(Wakes::WATCH) {
                news = bench.parkers[RESERVED][self.me].park(None);
            }
            if wakes.contains(Wakes::SEARCH) {
                self.searching = true;
                return;
            }
            let wakes = bench.parkers[RESERVED][self.me].park(Some(Duration::ZERO));
            if wakes.is_call() {
                self.searching = true;
                return;
            }
            if !bench.words[ORDINARY].has_parked() && bench.set.is_offered() {
                self.leads = true;
                if word.leave_watch(self.me).is_none() {
                    while !bench.parkers[RESERVED][self.me].park(None).is_call() {}
                    self.searching = true;
                }
                return;
            }
            if !word.end_watch(self.me) {
                while !bench.parkers[RESERVED][self.me].park(None).is_call() {}
                self.searching = true;
                return;
            }
        }
    }
}

fn ordinary(bench: &Arc<Bench>, me: usize) -> thread::JoinHandle<Stuck> {
    let bench = bench.clone();
    let run = move || {
        let mut member = Ordinary { bench: &bench, me, searching: false, rescuing: false };
        member.run()
    };
    thread::spawn(run)
}

fn reserved(bench: &Arc<Bench>, may_end: bool) -> thread::JoinHandle<Option<Stuck>> {
    let bench = bench.clone();
    let run =
        move || Reserved { bench: &bench, me: 0, searching: false, leads: false, may_end }.run();
    thread::spawn(run)
}

/// Goal: a task of the lane and another one reach a member each, whoever wakes first. Method: two posts
/// from two threads; what the ordinary member takes is replaced, so that the reserved one gets a task
/// of its lane.
#[test]
fn each_task_finds_a_member_that_may_run_it() {
    explore(2, || {
        let bench = Bench::new(1, 1);
        let (first, second) = (ordinary(&bench, 0), reserved(&bench, false));
        let poster = {
            let bench = bench.clone();
            thread::spawn(move || bench.post_other())
        };
        bench.post_to_lane();
        poster.join().unwrap();
        if first.join().unwrap() == Stuck::Lane {
            bench.post_to_lane();
        }
        assert_eq!(second.join().unwrap(), Some(Stuck::Lane));
    });
}

/// Goal: a task of the lane that relied on an ordinary member's searching mark is not left beside a
/// reserved leader when that member gets stuck in other work. Method: the reserved member leads, or
/// comes to it; an ordinary member is called for other work, then the lane is posted to.
#[test]
fn a_mark_that_was_relied_on_is_answered_for() {
    explore(2, || {
        let bench = Bench::new(1, 1);
        let second = {
            let bench = bench.clone();
            let run = move || {
                let mut member = Reserved {
                    bench: &bench,
                    me: 0,
                    searching: false,
                    leads: true,
                    may_end: false,
                };
                member.run()
            };
            thread::spawn(run)
        };
        let first = ordinary(&bench, 0);
        bench.post_other();
        bench.post_to_lane();
        if first.join().unwrap() == Stuck::Lane {
            bench.post_to_lane();
        }
        assert_eq!(second.join().unwrap(), Some(Stuck::Lane));
    });
}

/// Goal: a set that an ordinary member offers before it gets stuck is led by the reserved one. Method:
/// one of each; the reserved one ends when it leads, and is parked for ever if no thread armed it.
#[test]
fn a_reserved_watch_leads_what_a_stuck_member_offers() {
    explore(3, || {
        let bench = Bench::new(1, 1);
        let second = reserved(&bench, true);
        let first = ordinary(&bench, 0);
        bench.post_other();
        assert_eq!(first.join().unwrap(), Stuck::Other);
        assert_eq!(second.join().unwrap(), None);
    });
}

/// Goal: a local queue whose owner saw a reserved thread watch, and an ordinary leader that waited because of
/// it, come together when that watch ends. Method: the reserved member begins as the watch; an ordinary
/// one leads; a third gets stuck.
#[test]
fn a_reserved_watch_that_ends_leaves_no_queue_beside_a_leader() {
    explore(2, || {
        let bench = Bench::new(1, 1);
        bench.words[RESERVED].announce(0);
        bench.arm(RESERVED);
        let second = {
            let bench = bench.clone();
            let run = move || {
                let _told = bench.parkers[RESERVED][0].park(None);
                let mut member = Reserved {
                    bench: &bench,
                    me: 0,
                    searching: false,
                    leads: false,
                    may_end: false,
                };
                member.searching = !bench.words[RESERVED].end_watch(0);
                if !member.searching {
                    member.rest();
                }
                member.run()
            };
            thread::spawn(run)
        };
        let first = ordinary(&bench, 0);
        bench.get_stuck_with_a_queue();
        assert_eq!(first.join().unwrap(), Stuck::Other);
        bench.post_to_lane();
        assert_eq!(second.join().unwrap(), Some(Stuck::Lane));
    });
}
