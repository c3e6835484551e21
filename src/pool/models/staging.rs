//! Staged timers: none is left in its shard while the leader waits on, and each has one end.
//!
//! The handle set and the shards are the real ones. A leader that waits past a timer is a deadlock.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | staged timers | no barrier in `stage`, before a visit, between a question and its ring, or behind what is handed over | the leader waits past a timer |
//! |  | no visit before a longer wait; no look whether it was asked; the question taken Relaxed; none behind what is handed over | likewise |
//! |  | no barrier in `stage`, of a pool that stops | a timer is neither run nor cancelled |
//! |  | a staged timer is closed as one in a wheel, or one in a wheel as a staged one | a slot is never free; an entry names a free slot |

use super::explore;
use super::fixture::Fixture;
use super::timers::{deadlines, lead_until};
use crate::pool::Shared;
use crate::pool::slots::{Claim, Key, Payload};
use crate::pool::timers::Own;

/// A thread's shard. Claimed before threads are made, because loom does not see that a `OnceLock` orders the
/// making of shards and slots.
fn own(fixture: &Fixture) -> Own {
    let own = Own::claim(&fixture.shared).expect("no shard has an owner");
    // So that the chunk of the table is there.
    let index = fixture.shared.ready.handles.slots.take().expect("a slot is free");
    fixture.shared.ready.handles.slots.give_back_all(&[index]);
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
fn take_in(fixture: &Fixture, own: &mut Own, deadline: u64) {
    stage(own, &fixture.shared, deadline, fixture.record.closure());
    let mut lead = fixture.shared.ready.handles.sets[0].try_lead(0).unwrap();
    assert_eq!(lead.take_in_timers(&fixture.shared.ready.handles.slots), deadline);
    lead.promote();
}

/// Goal: a leader that waits until later, or for ever, comes for an earlier timer that is staged. Method:
/// two timers, the later one first, against a leader that waits until it knows the earlier.
#[test]
fn a_waiting_leader_comes_for_an_earlier_timer() {
    explore(3, || {
        let fixture = Fixture::new(1, 1);
        let mut own = own(&fixture);
        let [later, earlier] = deadlines(&fixture);
        let leader = fixture.spawn(move |shared, _| {
            let mut lead = shared.ready.handles.sets[0].try_lead(0).unwrap();
            lead_until(shared, &mut lead, earlier);
        });
        stage(&mut own, &fixture.shared, later, fixture.record.closure());
        stage(&mut own, &fixture.shared, earlier, fixture.record.closure());
        leader.join().unwrap();
    });
}

/// Goal: a leader that is about to wait for longer takes along what was staged under its old word. Method:
/// a leader that has said the earlier time, which has come; a later timer is staged meanwhile.
#[test]
fn a_leader_looks_before_it_waits_longer() {
    explore(3, || {
        let fixture = Fixture::new(1, 1);
        let mut own = own(&fixture);
        let [later, earlier] = deadlines(&fixture);
        take_in(&fixture, &mut own, earlier);
        let leader = fixture.spawn(move |shared, _| {
            let mut lead = shared.ready.handles.sets[0].try_lead(0).unwrap();
            let harvest =
                lead.sort_out(&shared.ready.handles.slots, &shared.ready.handles.stack, earlier);
            assert!(harvest.first.is_some(), "the earlier is due");
            lead_until(shared, &mut lead, later);
        });
        stage(&mut own, &fixture.shared, later, fixture.record.closure());
        leader.join().unwrap();
    });
}

/// Goal: a staged timer is cancelled by one, or runs: its closure ends once, and its slot is free once.
/// Method: its owner, another thread, and a leader that takes it in and runs it.
#[test]
fn a_staged_timer_has_one_end() {
    explore(2, || {
        let fixture = Fixture::new(1, 1);
        let mut own = own(&fixture);
        let [_, earlier] = deadlines(&fixture);
        let key = stage(&mut own, &fixture.shared, earlier, fixture.record.closure());
        let leader = fixture.spawn(move |shared, _| {
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
        let other = fixture.spawn(move |shared, _| usize::from(close(shared, key)));
        let mine = cancel(&mut own, &fixture.shared, key) || close(&fixture.shared, key);
        let others = other.join().unwrap();
        let runs = leader.join().unwrap();
        assert_eq!(usize::from(mine) + others + runs, 1);
        assert_eq!(fixture.record.runs(), runs);
        // What was closed in the wheel lies there until it is due.
        let mut lead = fixture.shared.ready.handles.sets[0].try_lead(0).unwrap();
        lead.take_in_timers(&fixture.shared.ready.handles.slots);
        let _none = lead.sort_out(
            &fixture.shared.ready.handles.slots,
            &fixture.shared.ready.handles.stack,
            earlier,
        );
        lead.promote();
        assert_eq!(fixture.shared.ready.handles.slots_in_use(), 0);
        if runs == 1 {
            // loom would have a close that came while it ran change the word after it was free.
            return;
        }
        // The slot's next tenant is staged in the same shard, and nobody else's.
        let next = stage(&mut own, &fixture.shared, earlier, || ());
        assert!(!cancel(&mut own, &fixture.shared, key), "late");
        assert!(cancel(&mut own, &fixture.shared, next));
        assert_eq!(fixture.shared.ready.handles.slots_in_use(), 0);
    });
}

/// `Timer::cancel_key` of a thread without a shard.
fn close(shared: &Shared, key: Key) -> bool {
    let (_, payload) = shared.ready.handles.close(key, false);
    payload.is_some()
}

/// Goal: what an owner hands to the intake, since it needs room, is not lost on its way: a leader that is
/// about to wait for longer, and finds it in no cell any more, hears of it. Method: as above, and what is
/// staged is handed over meanwhile.
#[test]
fn what_is_handed_over_is_heard_of() {
    explore(3, || {
        let fixture = Fixture::new(1, 1);
        let mut own = own(&fixture);
        let [later, earlier] = deadlines(&fixture);
        take_in(&fixture, &mut own, earlier);
        own.find_free_cells(&fixture.shared);
        stage(&mut own, &fixture.shared, later, fixture.record.closure());
        let leader = fixture.spawn(move |shared, _| {
            let mut lead = shared.ready.handles.sets[0].try_lead(0).unwrap();
            let harvest =
                lead.sort_out(&shared.ready.handles.slots, &shared.ready.handles.stack, earlier);
            assert!(harvest.first.is_some(), "the earlier is due");
            lead_until(shared, &mut lead, later);
        });
        own.hand_over(&fixture.shared);
        leader.join().unwrap();
    });
}

/// Goal: an owner whose timers stay has room for more all the same, and all of them arrive. Method: twice
/// as many as it has cells.
#[test]
fn an_owner_makes_room() {
    explore(1, || {
        let fixture = Fixture::new(1, 1);
        let mut own = own(&fixture);
        let [later, _] = deadlines(&fixture);
        for _ in 0..4 {
            stage(&mut own, &fixture.shared, later, fixture.record.closure());
        }
        let mut lead = fixture.shared.ready.handles.sets[0].try_lead(0).unwrap();
        assert_eq!(lead.take_in_timers(&fixture.shared.ready.handles.slots), later);
        let harvest = lead.sort_out(
            &fixture.shared.ready.handles.slots,
            &fixture.shared.ready.handles.stack,
            later,
        );
        assert_eq!(harvest.first.into_iter().count() + harvest.surplus, 4);
        lead.promote();
    });
}

/// Goal: a timer that is staged while the pool stops is cancelled, by who stages it or by who sweeps. Method:
/// `Timer::at` against stop and sweep, in a set whose leader need not be asked.
#[test]
fn a_stop_forgets_no_staged_timer() {
    explore(3, || {
        let fixture = Fixture::new(1, 1);
        let mut own = own(&fixture);
        let [later, earlier] = deadlines(&fixture);
        take_in(&fixture, &mut own, earlier);
        let arming = fixture.spawn(move |shared, record| {
            let key = stage(&mut own, shared, later, record.closure());
            if shared.end.is_stopping() {
                cancel(&mut own, shared, key);
            }
        });
        fixture.shared.stop();
        fixture.shared.sweep();
        arming.join().unwrap();
        assert_eq!(fixture.record.runs(), 0);
        fixture.is_closed(2, 0);
    });
}
