//! Staged timers: none is left in its shard while the leader sleeps on, and each has one end.
//!
//! The handle set and the shards are the real ones. A leader that sleeps through a timer is a deadlock.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | staged timers | no barrier in `stage`, before a visit, between a question and its ring, or behind what is handed over | the leader sleeps through a timer |
//! |  | no visit before a longer sleep; no look whether it was asked; the question taken Relaxed; none behind what is handed over | likewise |
//! |  | no barrier in `stage`, of a pool that stops | a timer is neither run nor cancelled |
//! |  | a staged timer is closed as one in a wheel, or one in a wheel as a staged one | a slot is never free; an entry names a free slot |

use super::explore;
use super::house::House;
use super::timers::{deadlines, lead_until};
use crate::pool::Shared;
use crate::pool::slots::{Claim, Key, Payload};
use crate::pool::timers::Own;

/// A thread's shard. Claimed before threads are made, because loom does not see that a `OnceLock` orders the
/// making of shards and slots.
fn own(house: &House) -> Own {
    let own = Own::claim(&house.shared).expect("no shard has an owner");
    // So that the chunk of the table is there.
    let index = house.shared.ready.handles.slots.take().expect("a slot is free");
    house.shared.ready.handles.slots.give_back_all(&[index]);
    own
}

fn stage(
    own: &mut Own,
    shared: &Shared,
    deadline: u64,
    work: impl FnOnce() + Send + 'static,
) -> Key {
    let token = own.stage(shared, deadline, &mut Some((work, |_| ())));
    Key::from_token(token.expect("there is room"))
}

fn cancel(own: &mut Own, shared: &Shared, key: Key) -> bool {
    own.cancel(shared, key, &mut Payload::Empty)
}

/// Stages a timer, and the leader takes it in.
fn take_in(house: &House, own: &mut Own, deadline: u64) {
    stage(own, &house.shared, deadline, house.record.closure());
    let mut lead = house.shared.ready.handles.sets[0].try_lead(0).unwrap();
    assert_eq!(lead.take_in_timers(&house.shared.ready.handles.slots), deadline);
    lead.promote();
}

/// Goal: a leader that sleeps until later, or for ever, comes for an earlier timer that is staged. Method:
/// two timers, the later one first, against a leader that sleeps until it knows the earlier.
#[test]
fn a_sleeping_leader_comes_for_an_earlier_timer() {
    explore(3, || {
        let house = House::new(1, 1);
        let mut own = own(&house);
        let [later, earlier] = deadlines(&house);
        let leader = house.spawn(move |shared, _| {
            let mut lead = shared.ready.handles.sets[0].try_lead(0).unwrap();
            lead_until(shared, &mut lead, earlier);
        });
        stage(&mut own, &house.shared, later, house.record.closure());
        stage(&mut own, &house.shared, earlier, house.record.closure());
        leader.join().unwrap();
    });
}

/// Goal: a leader that is about to sleep for longer takes along what was staged under its old word. Method:
/// a leader that has said the earlier time, which has come; a later timer is staged meanwhile.
#[test]
fn a_leader_looks_before_it_sleeps_longer() {
    explore(3, || {
        let house = House::new(1, 1);
        let mut own = own(&house);
        let [later, earlier] = deadlines(&house);
        take_in(&house, &mut own, earlier);
        let leader = house.spawn(move |shared, _| {
            let mut lead = shared.ready.handles.sets[0].try_lead(0).unwrap();
            let harvest =
                lead.sort_out(&shared.ready.handles.slots, &shared.ready.handles.stack, earlier);
            assert!(harvest.first.is_some(), "the earlier is due");
            lead_until(shared, &mut lead, later);
        });
        stage(&mut own, &house.shared, later, house.record.closure());
        leader.join().unwrap();
    });
}

/// Goal: a staged timer is cancelled by one, or runs: its closure ends once, and its slot is free once.
/// Method: its owner, another thread, and a leader that takes it in and runs it.
#[test]
fn a_staged_timer_has_one_end() {
    explore(2, || {
        let house = House::new(1, 1);
        let mut own = own(&house);
        let [_, earlier] = deadlines(&house);
        let key = stage(&mut own, &house.shared, earlier, house.record.closure());
        let leader = house.spawn(move |shared, _| {
            let mut lead = shared.ready.handles.sets[0].try_lead(0).unwrap();
            lead.take_in_timers(&shared.ready.handles.slots);
            let harvest =
                lead.sort_out(&shared.ready.handles.slots, &shared.ready.handles.stack, earlier);
            let Some(index) = harvest.first else { return 0 };
            match shared.ready.handles.slots.slot(index).claim() {
                Claim::Run(_) => {
                    shared.ready.handles.take_once(index).run();
                    return 1;
                }
                Claim::Free => shared.ready.handles.bury(index),
                Claim::Nothing => {}
            }
            0
        });
        let other = house.spawn(move |shared, _| usize::from(close(shared, key)));
        let mine = cancel(&mut own, &house.shared, key) || close(&house.shared, key);
        let others = other.join().unwrap();
        let runs = leader.join().unwrap();
        assert_eq!(usize::from(mine) + others + runs, 1);
        assert_eq!(house.record.runs(), runs);
        // What was closed in the wheel lies there until it is due.
        let mut lead = house.shared.ready.handles.sets[0].try_lead(0).unwrap();
        lead.take_in_timers(&house.shared.ready.handles.slots);
        let _none = lead.sort_out(
            &house.shared.ready.handles.slots,
            &house.shared.ready.handles.stack,
            earlier,
        );
        lead.promote();
        assert_eq!(house.shared.ready.handles.slots_in_use(), 0);
        if runs == 1 {
            // loom would have a close that came while it ran change the word after it was free.
            return;
        }
        // The slot's next tenant is staged in the same shard, and nobody else's.
        let next = stage(&mut own, &house.shared, earlier, || ());
        assert!(!cancel(&mut own, &house.shared, key), "late");
        assert!(cancel(&mut own, &house.shared, next));
        assert_eq!(house.shared.ready.handles.slots_in_use(), 0);
    });
}

/// `Shared::cancel_timer` of a thread without a shard.
fn close(shared: &Shared, key: Key) -> bool {
    let (_, payload) = shared.ready.handles.close(key, false);
    payload.is_some()
}

/// Goal: what an owner hands to the intake, since it needs room, is not lost on its way: a leader that is
/// about to sleep for longer, and finds it in no cell any more, hears of it. Method: as above, and what is
/// staged is handed over meanwhile.
#[test]
fn what_is_handed_over_is_heard_of() {
    explore(3, || {
        let house = House::new(1, 1);
        let mut own = own(&house);
        let [later, earlier] = deadlines(&house);
        take_in(&house, &mut own, earlier);
        own.find_free_cells(&house.shared);
        stage(&mut own, &house.shared, later, house.record.closure());
        let leader = house.spawn(move |shared, _| {
            let mut lead = shared.ready.handles.sets[0].try_lead(0).unwrap();
            let harvest =
                lead.sort_out(&shared.ready.handles.slots, &shared.ready.handles.stack, earlier);
            assert!(harvest.first.is_some(), "the earlier is due");
            lead_until(shared, &mut lead, later);
        });
        own.hand_over(&house.shared);
        leader.join().unwrap();
    });
}

/// Goal: an owner whose timers stay has room for more all the same, and all of them arrive. Method: twice
/// as many as it has cells.
#[test]
fn an_owner_makes_room() {
    explore(1, || {
        let house = House::new(1, 1);
        let mut own = own(&house);
        let [later, _] = deadlines(&house);
        for _ in 0..4 {
            stage(&mut own, &house.shared, later, house.record.closure());
        }
        let mut lead = house.shared.ready.handles.sets[0].try_lead(0).unwrap();
        assert_eq!(lead.take_in_timers(&house.shared.ready.handles.slots), later);
        let harvest = lead.sort_out(
            &house.shared.ready.handles.slots,
            &house.shared.ready.handles.stack,
            later,
        );
        assert_eq!(harvest.first.into_iter().count() + harvest.surplus, 4);
        lead.promote();
    });
}

/// Goal: a timer that is staged while the pool stops is cancelled, by who stages it or by who sweeps. Method:
/// `Shared::at_or_back` against stop and sweep, in a set whose leader need not be asked.
#[test]
fn a_stop_forgets_no_staged_timer() {
    explore(3, || {
        let house = House::new(1, 1);
        let mut own = own(&house);
        let [later, earlier] = deadlines(&house);
        take_in(&house, &mut own, earlier);
        let arming = house.spawn(move |shared, record| {
            let key = stage(&mut own, shared, later, record.closure());
            if shared.end.is_stopping() {
                cancel(&mut own, shared, key);
            }
        });
        house.shared.stop();
        house.shared.sweep();
        arming.join().unwrap();
        assert_eq!(house.record.runs(), 0);
        house.is_closed(2, 0);
    });
}
