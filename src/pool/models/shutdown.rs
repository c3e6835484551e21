//! The end of a pool: what was accepted runs, or is cancelled, once; what is refused comes back; and
//! a drain ends when all has ended, not before, and not never.
//!
//! The pool's state is the real one, by a clock that stands still. `Follower` takes the steps of
//! `Worker::{step, run_activation, follow, park_once, leave}`; the model of a whole pool runs
//! `Worker::run` itself. A drain that does not end is a deadlock.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | post against shutdown | local queues are not swept | a task is neither run nor cancelled |
//! |  | strands are looked at before members | a drain ends while a task has just posted |
//! |  | no barrier in a post to a strand; no look after a refused one | a drain ends too early, or not by itself |
//! |  | a strand ends when it was seen empty *before* its close | its last task is cancelled |

use super::explore;
use super::fixture::{Fixture, post};
use crate::pool::ThreadRole;
use crate::pool::{Shared, context};
use crate::queue::{Claimed, Lane, Taken, Turn};
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::Relaxed;
use loom::thread;
use std::sync::Arc;

/// A drain without end.
const LONG: u64 = u64::MAX - 1;

/// Member 0, for activations only.
struct Follower<'a>(&'a Shared);

impl Follower<'_> {
    fn run(&self) {
        while !self.0.end.is_stopping() {
            if !Fixture::run_next(self.0) {
                self.follow();
            }
        }
    }

    fn follow(&self) {
        let shared = self.0;
        let (word, me) = shared.ready.members.word_of(0);
        let member = &shared.ready.members[0];
        member.set_role(ThreadRole::Follower);
        word.announce(me);
        let busy = !shared.ready.handles.stack.is_empty() || shared.end.is_stopping();
        if busy || shared.is_drained() {
            if word.retract(me) {
                return if busy { member.set_role(ThreadRole::Leader) } else { shared.stop() };
            }
        }
        let wakes = member.parker.park(None);
        if wakes.is_call() {
            word.stop_searching();
        } else {
            let _called = word.retract(me);
        }
        member.set_role(ThreadRole::Leader);
    }
}

/// Goal: a task that is posted while the pool begins to drain is refused, or runs before the drain
/// ends. Method: a whole pool of one thread. Bound 1: that is all of a member's loop, and a second
/// preemption takes an hour.
#[test]
fn a_post_against_a_drain_runs_or_comes_back() {
    explore(1, || {
        let fixture = Fixture::new(1, 1);
        let member = fixture.start(0);
        let poster = fixture.spawn(|shared, record| usize::from(post(shared, record)));
        fixture.shared.drain(LONG);
        let accepted = poster.join().unwrap();
        member.join().unwrap();
        assert!(fixture.shared.end.ended_drained());
        assert_eq!(fixture.record.runs(), accepted);
        fixture.is_closed(accepted, 1 - accepted);
    });
}

/// Goal: when a pool stops, each accepted task is run, or cancelled by its member, by whoever sweeps,
/// or out of the local queue of a member that is stuck; once, and by whomever. Method: a member that has
/// claimed two tasks and runs them, or is stuck in the first, and a post, against stop and sweep.
fn a_stop_forgets_no_task(stuck: bool) {
    explore(2, move || {
        let fixture = Fixture::new(1, 4);
        let before = [(); 2].map(|()| usize::from(fixture.post()));
        let member = fixture.spawn(move |shared, _| {
            let local = &shared.ready.members[0].local;
            let claimed = shared.ready.tasks.claim(local, &mut Turn::default(), 2);
            if let Claimed::Some(task) = claimed {
                task.into_task().run();
            }
            // `Worker::run_tasks`, then `leave`.
            while !stuck && let Some(task) = local.next().map(Taken::into_task) {
                if shared.end.is_stopping() { shared.counters.cancel(task) } else { task.run() }
            }
        });
        let poster = fixture.spawn(|shared, record| usize::from(post(shared, record)));
        fixture.shared.stop();
        fixture.shared.sweep();
        member.join().unwrap();
        let accepted = before.iter().sum::<usize>() + poster.join().unwrap();
        // Whoever leaves last.
        fixture.shared.sweep();
        fixture.is_closed(accepted, 3 - accepted);
    });
}

#[test]
fn a_stop_forgets_no_task_of_a_member_that_leaves() {
    a_stop_forgets_no_task(false);
}

#[test]
fn a_stop_forgets_no_task_of_a_member_that_is_stuck() {
    a_stop_forgets_no_task(true);
}

/// Goal: a drain does not end while a task is on its way from one member to another, and whoever sees
/// that it has ended sees what the tasks did. Method: a member that is robbed, and rests, and a thief
/// that is looked at before it, against a look.
#[test]
fn a_drain_sees_what_is_being_stolen() {
    explore(3, || {
        let fixture = Fixture::new(2, 4);
        let done = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        for which in [0, 1] {
            let done = done.clone();
            // Relaxed: that the drain orders it is what is to be shown.
            let work = move || done[which].store(1, Relaxed);
            assert!(fixture.shared.try_post(Lane::Normal, work).is_ok());
        }
        let member = &fixture.shared.ready.members[1];
        member.set_role(ThreadRole::Task);
        let claimed = fixture.shared.ready.tasks.claim(&member.local, &mut Turn::default(), 2);
        let Claimed::Some(task) = claimed else { panic!("two were there") };
        let task = task.into_task();
        fixture.shared.drain(LONG);
        let thief = fixture.spawn(|shared, _| {
            let [thief, victim] = &shared.ready.members[..] else { panic!("two members") };
            thief.set_role(ThreadRole::Task);
            if let Some(task) = victim.local.steal(&thief.local) {
                task.run();
            }
            thief.set_role(ThreadRole::Follower);
        });
        let victim = fixture.spawn(move |shared, _| {
            task.run();
            let member = &shared.ready.members[1];
            if let Some(task) = member.local.next() {
                task.into_task().run();
            }
            member.set_role(ThreadRole::Follower);
        });
        // loom tries the others first, and comes to the reversals from there: not the other way round.
        thread::yield_now();
        if fixture.shared.is_drained() {
            assert!(done.iter().all(|done| done.load(Relaxed) == 1));
        }
        victim.join().unwrap();
        thief.join().unwrap();
        assert!(fixture.shared.is_drained());
    });
}

/// Goal: a drain waits for a strand's task that a lane's task has posted, and the other way round.
/// Method: a member that runs such a chain against a look.
#[test]
fn a_drain_sees_what_tasks_post() {
    explore(3, || {
        let fixture = Fixture::new(1, 4);
        let strand = fixture.strand();
        let member = &fixture.shared.ready.members[0];
        member.set_role(ThreadRole::Task);
        fixture.shared.drain(LONG);
        // loom's threads are one to the system, so all of them are inside; only the member posts.
        let _inside = context::enter(&fixture.shared, 0);
        let member = fixture.spawn(move |shared, record| {
            let member = &shared.ready.members[0];
            strand.post(record.closure()).unwrap();
            member.set_role(ThreadRole::Leader);
            assert!(Fixture::run_next(shared));
            member.set_role(ThreadRole::Follower);
        });
        if fixture.shared.is_drained() {
            assert_eq!(fixture.record.runs(), 1);
        }
        member.join().unwrap();
        assert!(fixture.shared.is_drained());
    });
}

/// Goal: a post to a strand while the pool begins to drain is refused, or runs before the drain ends.
/// Method: a post against the drain, whose thread then follows, and so ends it. Bound 2: a third
/// preemption takes minutes.
#[test]
fn a_post_to_a_strand_against_a_drain_runs_or_comes_back() {
    explore(2, || {
        let fixture = Fixture::new(1, 1);
        let strand = fixture.strand();
        let poster =
            fixture.spawn(move |_, record| usize::from(strand.try_post(record.closure()).is_ok()));
        fixture.shared.drain(LONG);
        Follower(&fixture.shared).run();
        let accepted = poster.join().unwrap();
        assert_eq!(fixture.record.runs(), accepted);
        assert!(fixture.shared.end.ended_drained());
        fixture.shared.sweep();
        fixture.is_closed(accepted, 1 - accepted);
    });
}

/// Goal: a post to a strand that a drain refuses does not keep the drain from ending. Method: the same
/// against a follower that runs what the strand had, and parks.
#[test]
fn a_refused_post_to_a_strand_does_not_hold_a_drain_up() {
    explore(2, || {
        let fixture = Fixture::new(1, 1);
        let strand = fixture.strand();
        strand.post(fixture.record.closure()).unwrap();
        fixture.shared.drain(LONG);
        let member = fixture.spawn(|shared, _| Follower(shared).run());
        assert!(strand.try_post(fixture.record.closure()).is_err());
        member.join().unwrap();
        assert_eq!(fixture.record.runs(), 1);
        assert!(fixture.shared.end.ended_drained());
        fixture.shared.sweep();
        fixture.is_closed(1, 1);
    });
}

/// Goal: a strand ends when its tasks have run, also the last one, which was posted just before it was
/// dropped. Method: a run of the strand against a post and the drop.
#[test]
fn a_dropped_strand_runs_its_last_task() {
    explore(3, || {
        let fixture = Fixture::new(1, 2);
        let strand = fixture.strand();
        strand.post(fixture.record.closure()).unwrap();
        let runner = fixture.spawn(|shared, _| Fixture::run_next(shared));
        strand.post(fixture.record.closure()).unwrap();
        drop(strand);
        runner.join().unwrap();
        while Fixture::run_next(&fixture.shared) {}
        assert_eq!(fixture.record.runs(), 2);
        assert_eq!(fixture.shared.ready.handles.slots.in_use(), 0, "it has ended");
        fixture.is_closed(2, 0);
    });
}
