//! The wake word: no published work lies beside parked members.
//!
//! `Member` takes the steps of `Worker::{step, follow, park_once, woken, found_work, give_up_search,
//! watch, tick, leave_watch, end_watch, leave}`, with the real [`WakeWord`] and [`Parker`]. Ready
//! work is a count, and what others hold (a local queue, a chain, an offered set) is another one.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | wake word: leave | no barrier after announcing parking | a task lies beside parked members |
//! | clear | no barrier after giving the searching mark up | deadlock: both members parked |
//! | time-out | no barrier after the watch ends | a local queue lies beside a parked member |
//! | threads that are set aside | nobody is called back, or only some are | deadlock |
//! |  | the searching mark is kept; a watch that steps aside does not hand on | a task, or a local queue, lies beside a parked member |

use super::explore;
use super::heap::Heap;
use crate::pool::members::{Called, WakeWord};
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::sync::{Parker, Wakes, store_load_barrier};
use core::time::Duration;
use loom::thread;
use std::sync::Arc;

struct Group {
    word: WakeWord,
    parkers: Vec<Parker>,
    /// What anybody finds: lanes, surplus, stack.
    ready: Heap,
    /// What only searchers and the watch find: other members' local queues.
    held: Heap,
    /// How many members are active, where that changes.
    active: Option<AtomicUsize>,
}

impl Group {
    fn new(members: usize) -> Arc<Self> {
        Self::with_active(members, None)
    }

    fn with_active(members: usize, active: Option<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self {
            active,
            word: WakeWord::new(),
            parkers: (0..members).map(|_| Parker::new()).collect(),
            ready: Heap::new(),
            held: Heap::new(),
        })
    }

    /// `Members::{wake_one, call}`.
    fn wake_one(&self) {
        if let Ok(taken) = self.word.wake_one() {
            let off = if taken.was_watch { Wakes::OFF_WATCH } else { Wakes::SEARCH };
            let _ = self.parkers[taken.member].unpark(Wakes::SEARCH.with(off));
        }
    }

    /// `Members::arm_watch`.
    fn arm_watch(&self) {
        self.pass_watch(self.word.arm_watch(false));
    }

    fn pass_watch(&self, called: Called) {
        if let Called::Member(member) = called {
            let _ = self.parkers[member].unpark(Wakes::WATCH);
        }
    }

    /// `Shared::post` from outside.
    fn submit(&self) {
        self.ready.add();
        store_load_barrier();
        self.wake_one();
    }

    /// `Places::set_active`.
    fn set_active(&self, active: usize) {
        let all = self.active.as_ref().expect("a number that changes");
        let before = all.swap(active, AcqRel);
        store_load_barrier();
        for parker in &self.parkers[before.min(active)..] {
            let _ = parker.unpark(Wakes::ACTIVE);
        }
    }

    /// A member claims work and is stuck at once: `Worker::claim_tasks`, `before_user_code`.
    fn get_stuck_with_a_queue(&self) {
        self.held.add();
        store_load_barrier();
        if self.word.is_unwatched() {
            self.arm_watch();
        }
    }
}

/// One member, until it has something to handle: its handler never returns.
struct Member<'a> {
    group: &'a Group,
    me: usize,
    searching: bool,
    /// Was the watch and is not any more.
    left_watch: bool,
    /// A host thread leaves when its time is up, which may be at any park.
    host: bool,
    /// Tasks return; only what was held by others does not.
    returns: bool,
}

/// Why a member rides no more.
#[derive(PartialEq, Debug)]
enum End {
    Handles,
    Left,
}

impl<'a> Member<'a> {
    fn new(group: &'a Group, me: usize) -> Self {
        Self { group, me, searching: false, left_watch: false, host: false, returns: false }
    }

    /// `Worker::{run, step}`.
    fn run(&mut self) -> End {
        loop {
            if self.is_set_aside() {
                self.stand_aside();
            } else if self.group.ready.take() {
                self.before_user_code();
                if !self.returns {
                    return End::Handles;
                }
            } else if self.searching && self.group.held.take() {
                self.before_user_code();
                return End::Handles;
            } else if let Some(end) = self.follow() {
                return end;
            }
        }
    }

    /// `Worker::is_set_aside`.
    fn is_set_aside(&self) -> bool {
        self.group.active.as_ref().is_some_and(|active| self.me >= active.load(Relaxed))
    }

    /// `Worker::{stand_aside, put_down}`.
    fn stand_aside(&mut self) {
        let _left = self.leave();
        while self.is_set_aside() {
            let _woken = self.group.parkers[self.me].park(None);
        }
    }

    /// `Worker::{before_user_code, found_work, arm_watch}`.
    fn before_user_code(&mut self) {
        let group = self.group;
        if self.searching {
            self.searching = false;
            group.word.stop_searching();
            if group.ready.any() {
                group.wake_one();
            }
        }
        if core::mem::take(&mut self.left_watch) {
            store_load_barrier();
            if group.word.is_unwatched() && (group.ready.any() || group.held.any()) {
                group.arm_watch();
            }
        }
    }

    /// `Worker::{follow, give_up_search}`.
    fn follow(&mut self) -> Option<End> {
        if core::mem::take(&mut self.searching) {
            self.group.word.stop_searching();
            if self.group.ready.any() {
                return None;
            }
        }
        self.group.word.announce(self.me);
        self.park()
    }

    /// `Worker::park_once`.
    fn park(&mut self) -> Option<End> {
        let group = self.group;
        if group.ready.any() || self.is_set_aside() {
            if group.word.retract(self.me) {
                return None;
            }
        } else if group.held.any() && group.word.is_unwatched() {
            group.arm_watch();
        }
        let time = self.host.then_some(Duration::ZERO);
        let wakes = group.parkers[self.me].park(time);
        self.woken(wakes)
    }

    /// `Worker::woken`.
    fn woken(&mut self, mut wakes: Wakes) -> Option<End> {
        while !wakes.is_call() && !self.group.word.retract(self.me) {
            wakes = self.group.parkers[self.me].park(None);
        }
        let mut news = wakes;
        while wakes.contains(Wakes::OFF_WATCH) && !news.contains(Wakes::WATCH) {
            news = self.group.parkers[self.me].park(None);
        }
        if wakes.contains(Wakes::SEARCH) {
            self.searching = true;
            self.left_watch |= wakes.contains(Wakes::OFF_WATCH);
        } else if wakes.contains(Wakes::WATCH) {
            return self.watch();
        }
        self.host.then(|| self.leave())
    }

    /// `Worker::{watch, tick}`: what it sees twice is stuck, and if it sees nothing all is quiet.
    fn watch(&mut self) -> Option<End> {
        let group = self.group;
        let parker = &group.parkers[self.me];
        let wakes = parker.park(Some(Duration::ZERO));
        if wakes.is_call() {
            return self.called_off(wakes);
        }
        let stuck = group.ready.any() || group.held.any();
        if stuck || self.host || self.is_set_aside() {
            self.step_in()
        } else if group.word.end_watch(self.me) {
            self.park()
        } else {
            self.await_call()
        }
    }

    /// `Worker::{leave_watch, rescue}`.
    fn step_in(&mut self) -> Option<End> {
        let group = self.group;
        self.left_watch = true;
        match group.word.leave_watch(self.me) {
            Some(called) => group.pass_watch(called),
            None => return self.await_call(),
        }
        if self.host {
            return Some(self.leave());
        }
        if !self.is_set_aside() && group.held.take() {
            self.before_user_code();
            return Some(End::Handles);
        }
        None
    }

    /// `Worker::await_call`.
    fn await_call(&mut self) -> Option<End> {
        loop {
            let wakes = self.group.parkers[self.me].park(None);
            if wakes.is_call() {
                return self.called_off(wakes);
            }
        }
    }

    fn called_off(&mut self, wakes: Wakes) -> Option<End> {
        assert!(wakes.contains(Wakes::OFF_WATCH), "only a call ends a watch");
        self.searching = true;
        self.left_watch = true;
        self.host.then(|| self.leave())
    }

    /// `Worker::leave`.
    fn leave(&mut self) -> End {
        let group = self.group;
        if core::mem::take(&mut self.searching) {
            group.word.stop_searching();
        }
        store_load_barrier();
        if group.ready.any() {
            group.wake_one();
        } else if group.held.any() && group.word.is_unwatched() {
            group.arm_watch();
        }
        End::Left
    }
}

fn spawn(group: &Arc<Group>, me: usize) -> thread::JoinHandle<End> {
    let group = group.clone();
    thread::spawn(move || Member::new(&group, me).run())
}

fn spawn_host(group: &Arc<Group>, me: usize) -> thread::JoinHandle<End> {
    let group = group.clone();
    thread::spawn(move || Member { host: true, ..Member::new(&group, me) }.run())
}

/// Goal: two tasks reach two members, whichever wakes which, though no handler returns. Method:
/// announce, rescan, retract, the searching mark and the chain against two submissions in a row; a
/// lost wake-up leaves a member parked.
#[test]
fn each_task_finds_a_member() {
    explore(3, || {
        let group = Group::new(2);
        let members = [0, 1].map(|me| spawn(&group, me));
        group.submit();
        group.submit();
        for member in members {
            assert_eq!(member.join().unwrap(), End::Handles);
        }
    });
}

/// Goal: the same for tasks from two threads, one of which may rely on the other's wake. Bound 2:
/// with four threads a third preemption takes minutes.
#[test]
fn each_task_of_two_submitters_finds_a_member() {
    explore(2, || {
        let group = Group::new(2);
        let members = [0, 1].map(|me| spawn(&group, me));
        let other = {
            let group = group.clone();
            thread::spawn(move || group.submit())
        };
        group.submit();
        other.join().unwrap();
        for member in members {
            assert_eq!(member.join().unwrap(), End::Handles);
        }
    });
}

/// Goal: a task that wakes a host thread whose time is up passes to the member that stays. Method:
/// the host parks with a time-out, so that leaving races with being called.
#[test]
fn a_host_that_leaves_passes_its_call_on() {
    explore(3, || {
        let group = Group::new(2);
        let host = spawn_host(&group, 0);
        let member = spawn(&group, 1);
        group.submit();
        if host.join().unwrap() == End::Handles {
            group.submit();
        }
        assert_eq!(member.join().unwrap(), End::Handles);
    });
}

/// Goal: what a stuck member holds is found by an idle one, whether that is still the watch or just
/// ceases to be. Method: arming against `end_watch`, which sees nothing and then looks once more.
#[test]
fn the_watch_does_not_end_beside_a_hand() {
    explore(3, || {
        let group = Group::new(1);
        // The member begins as the watch, armed by somebody who has come back since.
        group.word.announce(0);
        group.arm_watch();
        let member = {
            let group = group.clone();
            thread::spawn(move || {
                let mut member = Member::new(&group, 0);
                let wakes = group.parkers[0].park(None);
                member.woken(wakes).unwrap_or_else(|| member.run())
            })
        };
        group.get_stuck_with_a_queue();
        assert_eq!(member.join().unwrap(), End::Handles);
    });
}

/// Goal: a watch that is called away for a task, or steps in, leaves nothing unwatched. Method: a
/// local queue and a task, two members, no handler returns; the call takes the idle one, or the watch, or
/// one that has just been made the watch. Bound 2: a third preemption takes minutes.
#[test]
fn the_watch_is_handed_on() {
    explore(2, || {
        let group = Group::new(2);
        let members = [0, 1].map(|me| spawn(&group, me));
        group.get_stuck_with_a_queue();
        group.submit();
        for member in members {
            assert_eq!(member.join().unwrap(), End::Handles);
        }
    });
}

/// Goal: news of the watch that is overtaken by a call, which takes the watch away again, does not
/// pass for a later watch. Method: a thread arms the watch and is back before its local queue is needed, then
/// gets stuck; another submits a task that returns.
#[test]
fn a_call_overtakes_the_watch() {
    explore(3, || {
        let group = Group::new(1);
        let member = {
            let group = group.clone();
            thread::spawn(move || Member { returns: true, ..Member::new(&group, 0) }.run())
        };
        let other = {
            let group = group.clone();
            thread::spawn(move || {
                group.get_stuck_with_a_queue();
                if group.held.take() {
                    group.get_stuck_with_a_queue();
                }
            })
        };
        group.submit();
        other.join().unwrap();
        assert_eq!(member.join().unwrap(), End::Handles);
    });
}

/// Goal: a member that was called for nothing, since another thread took the task, gives the
/// searching mark up on every path, also when it was the watch and steps in at that moment. Method:
/// the caller takes its own task back and submits another, which needs a wake of its own. Bound 2: a
/// third preemption takes minutes.
#[test]
fn a_call_for_nothing_leaves_no_mark() {
    explore(2, || {
        let group = Group::new(2);
        let members = [0, 1].map(|me| spawn(&group, me));
        group.get_stuck_with_a_queue();
        group.submit();
        if group.ready.take() {
            group.submit();
        }
        for member in members {
            assert_eq!(member.join().unwrap(), End::Handles);
        }
    });
}

/// Goal: a watch that is a host thread, and may leave at any tick, hands the watch on. Method: a local queue
/// is left behind while the host parks, watches or leaves.
#[test]
fn a_host_hands_the_watch_on() {
    explore(3, || {
        let group = Group::new(2);
        let host = spawn_host(&group, 1);
        let member = spawn(&group, 0);
        group.get_stuck_with_a_queue();
        if host.join().unwrap() == End::Handles {
            group.get_stuck_with_a_queue();
        }
        assert_eq!(member.join().unwrap(), End::Handles);
    });
}

/// Goal: a member that is set aside, whatever it was called to at that moment, passes that on, and is
/// called back for more. Method: the number of active members falls, a task comes, the number rises,
/// and another one comes; no handler returns. Bound 2: a third preemption takes minutes.
#[test]
fn a_member_that_is_set_aside_passes_its_call_on() {
    explore(2, || {
        let group = Group::with_active(2, Some(AtomicUsize::new(2)));
        let members = [0, 1].map(|me| spawn(&group, me));
        group.set_active(1);
        group.submit();
        group.set_active(2);
        group.submit();
        for member in members {
            assert_eq!(member.join().unwrap(), End::Handles);
        }
    });
}

/// Goal: a watch that is set aside leaves nothing unwatched. Method: a local queue is left behind while the
/// number of active members falls; the other member must come for it.
#[test]
fn a_watch_that_is_set_aside_hands_on() {
    explore(2, || {
        let group = Group::with_active(2, Some(AtomicUsize::new(2)));
        let members = [0, 1].map(|me| spawn(&group, me));
        group.get_stuck_with_a_queue();
        group.set_active(1);
        group.set_active(2);
        group.get_stuck_with_a_queue();
        for member in members {
            assert_eq!(member.join().unwrap(), End::Handles);
        }
    });
}

/// A member that may be set aside; what it gets stuck in is replaced, so that the other one has something
/// to come for whoever was quicker.
fn spawn_replacing(group: &Arc<Group>, me: usize, replace: fn(&Group)) -> thread::JoinHandle<()> {
    let group = group.clone();
    thread::spawn(move || {
        assert_eq!(Member::new(&group, me).run(), End::Handles);
        replace(&group);
    })
}

/// Goal: a call that took a member which is set aside reaches one that is not, though the first is never
/// called back. Method: the number falls, a task comes, and the first member must get it.
#[test]
fn a_member_that_stays_set_aside_passes_its_call_on() {
    explore(2, || {
        let group = Group::with_active(2, Some(AtomicUsize::new(2)));
        let other = spawn_replacing(&group, 1, Group::submit);
        let poster = {
            let group = group.clone();
            thread::spawn(move || {
                group.set_active(1);
                group.submit();
            })
        };
        assert_eq!(Member::new(&group, 0).run(), End::Handles);
        poster.join().unwrap();
        group.set_active(2);
        group.submit();
        other.join().unwrap();
    });
}

/// Goal: the same for the watch. Method: a local queue is left behind, and only the first member stays active.
#[test]
fn a_watch_that_stays_set_aside_hands_on() {
    explore(2, || {
        let group = Group::with_active(2, Some(AtomicUsize::new(2)));
        let other = spawn_replacing(&group, 1, Group::get_stuck_with_a_queue);
        let poster = {
            let group = group.clone();
            thread::spawn(move || {
                group.get_stuck_with_a_queue();
                group.set_active(1);
            })
        };
        assert_eq!(Member::new(&group, 0).run(), End::Handles);
        poster.join().unwrap();
        group.set_active(2);
        group.get_stuck_with_a_queue();
        other.join().unwrap();
    });
}
