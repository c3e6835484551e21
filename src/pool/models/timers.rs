//! Timers on their way to the leader: none is left in the intake while the leader sleeps on.
//!
//! The handle set is the real one, and so is `refresh_alarm`, which leads for a host that
//! polls. A leader that sleeps through a timer is a deadlock.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | timers on their way | no barrier in `HandleSet::arm`, or in the doorbell's `arm` | the leader sleeps through a timer |
//! |  | no barrier when the alarm has been refreshed | a follower sleeps beside an offered set |

use super::explore;
use super::house::House;
use crate::pool::Shared;
use crate::pool::ThreadRole;
use crate::pool::host::refresh_alarm;
use crate::pool::leader::Leadership;
use crate::pool::slots::{Key, Start};

/// `Shared::arm`, for a set that no host polls.
fn arm(shared: &Shared, key: Key, deadline: u64) {
    shared.ready.handles.slots.slot(key.index).set_deadline(deadline);
    shared.ready.handles.slots.publish(key, Start::Armed);
    shared.ready.handles.sets[0].arm(&shared.ready.handles.slots, key.index, deadline);
}

/// `Worker::{demultiplex, block}` without a clock: sleeps until called, unless it knows of `earliest`.
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
pub(super) fn deadlines(house: &House) -> [u64; 2] {
    let tick = 1 << 20;
    [4, 2].map(|ticks| (house.shared.now() / tick + ticks) * tick)
}

/// Goal: a leader that sleeps until later, or for ever, is called for an earlier timer. Method: two
/// timers, the later one first, against a leader that sleeps until it knows the earlier.
#[test]
fn a_sleeping_leader_hears_of_an_earlier_timer() {
    explore(3, || {
        let house = House::new(1, 1);
        let (late, early) = (house.timer(), house.timer());
        let [later, earlier] = deadlines(&house);
        let leader = house.spawn(move |shared, _| {
            let mut lead = shared.ready.handles.sets[0].try_lead(0).unwrap();
            lead_until(shared, &mut lead, earlier);
        });
        arm(&house.shared, late, later);
        arm(&house.shared, early, earlier);
        leader.join().unwrap();
    });
}

/// Goal: the same for timers from two threads, one of which may rely on the other's call. Bound 2: a
/// third preemption takes minutes.
#[test]
fn timers_of_two_threads_are_heard_of() {
    explore(2, || {
        let house = House::new(1, 1);
        let (late, early) = (house.timer(), house.timer());
        let [later, earlier] = deadlines(&house);
        let leader = house.spawn(move |shared, _| {
            let mut lead = shared.ready.handles.sets[0].try_lead(0).unwrap();
            lead_until(shared, &mut lead, earlier);
        });
        let other = house.spawn(move |shared, _| arm(shared, late, later));
        arm(&house.shared, early, earlier);
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
        let house = House::new(1, 1);
        house.shared.alarm.want();
        let (late, early) = (house.timer(), house.timer());
        let [later, earlier] = deadlines(&house);
        let other = house.spawn(move |shared, _| shared.arm(late, later, |_| ()));
        house.shared.arm(early, earlier, |_| ());
        other.join().unwrap();
        let set = &house.shared.ready.handles.sets[0];
        let rung = set.source.disarm();
        let alarm = set.earliest();
        let all = set.try_lead(0).unwrap().take_in_timers(&house.shared.ready.handles.slots);
        assert_eq!(all, earlier);
        assert!(rung || alarm <= earlier);
    });
}

/// Goal: a member that could not lead, since a thread refreshed the alarm just then, does not sleep
/// beside an offered set. Method: `Worker::{step, follow, sleep}` against `refresh_alarm`.
#[test]
fn who_refreshes_the_alarm_calls_a_follower() {
    explore(3, || {
        let house = House::new(1, 1);
        let member = house.spawn(|shared, _| {
            let (word, me) = shared.ready.members.place(0);
            let seat = &shared.ready.members[0];
            while shared.ready.handles.sets[0].try_lead(me).is_none() {
                seat.set_role(ThreadRole::Follower);
                word.announce(me);
                if !shared.ready.is_offered() || !word.retract(me) {
                    let wakes = seat.parker.park(None);
                    assert!(wakes.is_call());
                }
            }
        });
        refresh_alarm(&house.shared.ready, &house.shared.outbox);
        member.join().unwrap();
    });
}
