//! Timers on their way to the leader: none is left in the intake while the leader waits on.
//!
//! The handle set is the real one, and so is `refresh_alarm`, which leads for a host that
//! polls. A leader that waits past a timer is a deadlock.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | timers on their way | no barrier in `HandleSet::arm`, or in the doorbell's `arm` | the leader waits past a timer |
//! |  | no barrier when the alarm has been refreshed | a follower parks beside an offered set |

use super::explore;
use super::fixture::Fixture;
use crate::pool::Shared;
use crate::pool::ThreadRole;
use crate::pool::host::refresh_alarm;
use crate::pool::leader::Leadership;
use crate::pool::slots::{Key, Start};

/// `Handles::arm`, for a set that no host polls.
fn arm(shared: &Shared, key: Key, deadline: u64) {
    shared.ready.handles.slots.slot(key.index).set_deadline(deadline);
    shared.ready.handles.slots.publish(key, Start::Armed);
    shared.ready.handles.sets[0].arm(&shared.ready.handles.slots, key.index, deadline);
}

/// `Worker::{demultiplex, block}` without a clock: waits until called, unless it knows of `earliest`.
pub(super) fn lead_until(shared: &Shared, lead: &mut Leadership<'_>, earliest: u64) {
    while lead.take_in_timers(&shared.ready.handles.slots) != earliest {
        lead.set.source.arm();
        if !lead.has_new_timers() {
            lead.wait(None);
        }
        lead.set.source.disarm();
    }
}

/// The deadlines of the models' timers, as a wheel that has them says them.
pub(super) fn deadlines(fixture: &Fixture) -> [u64; 2] {
    let tick = 1 << 20;
    [4, 2].map(|ticks| (fixture.shared.now() / tick + ticks) * tick)
}

/// Goal: a leader that waits until later, or for ever, is called for an earlier timer. Method: two
/// timers, the later one first, against a leader that waits until it knows the earlier.
#[test]
fn a_waiting_leader_hears_of_an_earlier_timer() {
    explore(3, || {
        let fixture = Fixture::new(1, 1);
        let (late, early) = (fixture.timer(), fixture.timer());
        let [later, earlier] = deadlines(&fixture);
        let leader = fixture.spawn(move |shared, _| {
            let mut lead = shared.ready.handles.sets[0].try_lead(0).unwrap();
            lead_until(shared, &mut lead, earlier);
        });
        arm(&fixture.shared, late, later);
        arm(&fixture.shared, early, earlier);
        leader.join().unwrap();
    });
}

/// Goal: the same for timers from two threads, one of which may rely on the other's call. Bound 2: a
/// third preemption takes minutes.
#[test]
fn timers_of_two_threads_are_heard_of() {
    explore(2, || {
        let fixture = Fixture::new(1, 1);
        let (late, early) = (fixture.timer(), fixture.timer());
        let [later, earlier] = deadlines(&fixture);
        let leader = fixture.spawn(move |shared, _| {
            let mut lead = shared.ready.handles.sets[0].try_lead(0).unwrap();
            lead_until(shared, &mut lead, earlier);
        });
        let other = fixture.spawn(move |shared, _| arm(shared, late, later));
        arm(&fixture.shared, early, earlier);
        other.join().unwrap();
        leader.join().unwrap();
    });
}

/// Goal: of two threads that arm timers for a host that polls, one refreshes the alarm, and what it
/// does not know of has rung the bell, or is due later than the alarm. Method: two timers against each
/// other; then the descriptor's state.
#[test]
fn a_polling_host_hears_of_every_timer() {
    explore(3, || {
        let fixture = Fixture::new(1, 1);
        fixture.shared.alarm.want();
        let (late, early) = (fixture.timer(), fixture.timer());
        let [later, earlier] = deadlines(&fixture);
        let other = fixture.spawn(move |shared, _| shared.arm(late, later, |_| ()));
        fixture.shared.arm(early, earlier, |_| ());
        other.join().unwrap();
        let set = &fixture.shared.ready.handles.sets[0];
        let rung = set.source.disarm();
        let alarm = set.earliest();
        let all = set.try_lead(0).unwrap().take_in_timers(&fixture.shared.ready.handles.slots);
        assert_eq!(all, earlier);
        assert!(rung || alarm <= earlier);
    });
}

/// Goal: a member that could not lead, since a thread refreshed the alarm just then, does not park
/// beside an offered set. Method: `Worker::{step, follow, park_once}` against `refresh_alarm`.
#[test]
fn who_refreshes_the_alarm_calls_a_follower() {
    explore(3, || {
        let fixture = Fixture::new(1, 1);
        let member = fixture.spawn(|shared, _| {
            let (word, me) = shared.ready.members.word_of(0);
            let member = &shared.ready.members[0];
            while shared.ready.handles.sets[0].try_lead(me).is_none() {
                member.set_role(ThreadRole::Follower);
                word.announce(me);
                if !shared.ready.is_offered() || !word.retract(me) {
                    let wakes = member.parker.park(None);
                    assert!(wakes.is_call());
                }
            }
        });
        refresh_alarm(&fixture.shared.ready, || false);
        member.join().unwrap();
    });
}
