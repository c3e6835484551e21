//! Producers that wait for room: each is woken when there is some, and when there will be none.
//!
//! `Shared::{post, drain}` and a lane of one place are the real ones; the consumer takes the steps of
//! `Worker::claim_tasks`. A producer that waits on is a deadlock.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | producers that wait for room | no barrier in the producer, or in the consumer | a producer waits beside free places |
//! |  | a drain dismisses nobody | a producer waits for ever |

use super::explore;
use super::fixture::{Fixture, Record};
use crate::pool::Shared;
use crate::queue::{Claimed, Lane, LocalQueue, Turn};
use loom::thread;
use std::sync::Arc;

/// A producer that waits if it has to. Whether its task was accepted.
fn producer(fixture: &Fixture) -> thread::JoinHandle<bool> {
    fixture
        .spawn(|shared, record: &Arc<Record>| shared.post(Lane::Normal, record.closure()).is_ok())
}

/// Claims one task and runs it. False: none was there.
fn consume(shared: &Shared) -> bool {
    match shared.ready.tasks.claim(&LocalQueue::new(), &mut Turn::default(), 1) {
        Claimed::Some(task) => {
            shared.rooms.made_room(&shared.ready.tasks);
            task.into_task().run();
            true
        }
        Claimed::Busy | Claimed::Empty => false,
    }
}

/// Goal: a producer that waits gets the place that a consumer makes. Method: a full lane, one claim.
#[test]
fn a_producer_gets_the_room_that_is_made() {
    explore(3, || {
        let fixture = Fixture::new(1, 1);
        assert!(fixture.post());
        let producer = producer(&fixture);
        assert!(consume(&fixture.shared));
        assert!(producer.join().unwrap());
        assert!(consume(&fixture.shared));
        fixture.is_closed(2, 0);
    });
}

/// Goal: of two that wait, the one that comes too late waits on and gets the next place. Method: as
/// above, with a second claim. Bound 2: a third preemption takes minutes.
#[test]
fn two_producers_get_a_place_each() {
    explore(2, || {
        let fixture = Fixture::new(1, 1);
        assert!(fixture.post());
        let producers = [(); 2].map(|()| producer(&fixture));
        while fixture.record.runs() < 2 {
            if !consume(&fixture.shared) {
                thread::yield_now();
            }
        }
        assert!(producers.into_iter().all(|producer| producer.join().unwrap()));
        assert!(consume(&fixture.shared));
        fixture.is_closed(3, 0);
    });
}

/// Goal: a producer that waits is sent home when the pool drains. Method: a lane that stays full.
#[test]
fn a_drain_sends_producers_home() {
    explore(3, || {
        let fixture = Fixture::new(1, 1);
        assert!(fixture.post());
        let producer = producer(&fixture);
        fixture.shared.drain(u64::MAX - 1);
        assert!(!producer.join().unwrap());
        fixture.shared.stop();
        fixture.shared.sweep();
        fixture.is_closed(1, 1);
    });
}

/// Goal: the same of a strand, which knows of the drain by the pool's phase only. Method: a strand
/// that stays full.
#[test]
fn a_drain_sends_producers_of_strands_home() {
    explore(2, || {
        let fixture = Fixture::new(1, 1);
        let strand = fixture.strand();
        strand.post(fixture.record.closure()).unwrap();
        let producer = fixture.spawn(move |_, record| strand.post(record.closure()).is_ok());
        fixture.shared.drain(u64::MAX - 1);
        assert!(!producer.join().unwrap());
        fixture.shared.stop();
        fixture.shared.sweep();
        fixture.is_closed(1, 1);
    });
}
