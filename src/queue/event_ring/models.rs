//! One model per race. A lost call or a lost wake-up shows as a deadlock, a place that is written
//! while it is read as a causality violation of its cell.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | event ring | Relaxed on the stamp, the gate, `released` or `done`, on either side | an event is read before it is written, or its place written while it is read |
//! |  | no barrier in the publisher, at rest, in release, close or the waiter; no second look before resting | an event or a waiter is forgotten |

use super::*;
use crate::sync::{Parker, Wakes};
use loom::thread;
use std::sync::atomic::AtomicUsize;

fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A ring, and a way to call its consumer.
struct Called {
    ring: Arc<EventRing<u8>>,
    parker: Parker,
    /// Not loom's: it only counts.
    calls: AtomicUsize,
}

impl Called {
    fn new(capacity: usize) -> (Arc<Self>, SerialConsumer<u8>) {
        let (ring, consumer) = serial("capacity", capacity, 1).unwrap();
        (Arc::new(Self { ring, parker: Parker::new(), calls: AtomicUsize::new(0) }), consumer)
    }

    fn publish(&self, events: &[u8]) -> usize {
        self.ring.publish_batch(events, || {
            self.calls.fetch_add(1, Relaxed);
            let _ = self.parker.unpark(Wakes::SEARCH);
        })
    }

    /// Consumes until `count` events have been seen, and sleeps whenever it may rest. Each rest is
    /// ended by one call.
    fn consume(&self, consumer: &mut SerialConsumer<u8>, count: usize) -> Vec<u8> {
        let (mut seen, mut rests) = (Vec::new(), 0);
        while seen.len() < count {
            rests += 1;
            let _ = self.parker.park(None);
            loop {
                consumer.consume(usize::MAX, |events| seen.extend_from_slice(events));
                if seen.len() == count || consumer.rest() == Rest::Resting {
                    break;
                }
            }
        }
        assert!(self.calls.load(Relaxed) <= rests);
        seen
    }
}

#[must_use]
struct Publisher(thread::JoinHandle<()>);

impl Publisher {
    fn join(self) {
        self.0.join().unwrap();
    }
}

fn spawn_publisher(called: &Arc<Called>, batches: &'static [&'static [u8]]) -> Publisher {
    let called = called.clone();
    Publisher(thread::spawn(move || {
        for batch in batches {
            assert_eq!(called.publish(batch), batch.len());
        }
    }))
}

fn sorted(mut events: Vec<u8>) -> Vec<u8> {
    events.sort_unstable();
    events
}

/// Goal: invariants 1, 2 and 4. Method: two publishers against a consumer that sleeps without a
/// time-out whenever it may.
#[test]
fn a_resting_consumer_is_called() {
    explore(3, || {
        let (called, mut consumer) = Called::new(2);
        let publishers = [spawn_publisher(&called, &[&[1]]), spawn_publisher(&called, &[&[2]])];
        assert_eq!(sorted(called.consume(&mut consumer, 2)), [1, 2]);
        let _ = publishers.map(Publisher::join);
    });
}

/// Goal: a batch is claimed by one step. Method: another publisher tries to come between.
#[test]
fn a_batch_stays_together() {
    explore(2, || {
        let (called, mut consumer) = Called::new(4);
        let publishers = [spawn_publisher(&called, &[&[1, 2]]), spawn_publisher(&called, &[&[3]])];
        let seen = called.consume(&mut consumer, 3);
        assert!(seen == [1, 2, 3] || seen == [3, 1, 2], "{seen:?}");
        let _ = publishers.map(Publisher::join);
    });
}

/// Goal: invariant 2 at the wrap. Method: a ring of two, three events, so that the first place is
/// written again; `try_publish` until there is room.
#[test]
fn a_place_is_written_again_only_after_it_was_read() {
    explore(3, || {
        let (ring, mut consumer) = serial::<u8>("capacity", 2, 1).unwrap();
        let publisher = thread::spawn(move || {
            for event in 1..=3 {
                while ring.try_publish(&event).is_err() {
                    thread::yield_now();
                }
            }
        });
        let mut seen = Vec::new();
        while seen.len() < 3 {
            if consumer.consume(usize::MAX, |events| seen.extend_from_slice(events)) == 0 {
                thread::yield_now();
            }
        }
        assert_eq!(seen, [1, 2, 3]);
        publisher.join().unwrap();
    });
}

/// Goal: invariant 6. Method: a ring of one, so that every event but the first waits for room.
#[test]
fn a_drain_wakes_a_publisher() {
    explore(3, || {
        let (called, mut consumer) = Called::new(1);
        let publisher = spawn_publisher(&called, &[&[1, 2]]);
        assert_eq!(called.consume(&mut consumer, 2), [1, 2]);
        publisher.join();
    });
}

/// Goal: one drain serves all who wait. Method: two publishers wait for the same place. Bound 2: at 3
/// it takes many minutes.
#[test]
fn a_drain_wakes_all_publishers() {
    explore(2, || {
        let (called, mut consumer) = Called::new(1);
        assert_eq!(called.publish(&[1]), 1);
        let publishers = [spawn_publisher(&called, &[&[2]]), spawn_publisher(&called, &[&[3]])];
        assert_eq!(sorted(called.consume(&mut consumer, 3)), [1, 2, 3]);
        let _ = publishers.map(Publisher::join);
    });
}

/// Goal: no publisher outlives the ring's closing, and the epoch. Method: two wait; the one that comes
/// late sets the mark again and leaves, and must not put the other to sleep behind its back.
#[test]
fn a_close_sends_all_waiting_publishers_away() {
    explore(3, || {
        let (called, _consumer) = Called::new(1);
        assert_eq!(called.publish(&[1]), 1);
        let publishers = [2, 3].map(|event| {
            let called = called.clone();
            thread::spawn(move || assert_eq!(called.publish(&[event]), 0))
        });
        called.ring.close();
        let _ = publishers.map(|publisher| publisher.join().unwrap());
    });
}

fn spawn_taker(consumer: &ConcurrentConsumer<u8>) -> thread::JoinHandle<Vec<u8>> {
    let consumer = consumer.clone();
    thread::spawn(move || {
        let mut taken = Vec::with_capacity(1);
        consumer.claim(&mut taken);
        taken
    })
}

/// Goal: invariants 3 and 5. Method: three threads take one event each, in any order of finishing;
/// then all the room must be back. Bound 2: the third thread adds only length.
#[test]
fn whoever_finishes_last_releases_all() {
    explore(2, || {
        let (ring, consumer) = concurrent::<u8>("capacity", 4, 1).unwrap();
        assert_eq!(ring.try_publish_batch(&[1, 2, 3]).unwrap().0, 3);
        let takers = [spawn_taker(&consumer), spawn_taker(&consumer)];
        let mut taken = Vec::with_capacity(1);
        consumer.claim(&mut taken);
        for taker in takers {
            taken.extend(taker.join().unwrap());
        }
        assert_eq!(sorted(taken), [1, 2, 3]);
        assert_eq!(ring.consumed(), 3);
    });
}

/// Goal: invariant 2 with several consumers. Method: a publisher writes the places again as soon as
/// it may, while two threads read.
#[test]
fn a_taken_place_is_written_again_only_after_it_was_copied() {
    explore(3, || {
        let (ring, consumer) = concurrent::<u8>("capacity", 2, 1).unwrap();
        assert_eq!(ring.try_publish_batch(&[1, 2]).unwrap().0, 2);
        let taker = spawn_taker(&consumer);
        let publisher = {
            let ring = ring.clone();
            thread::spawn(move || u8::from(ring.try_publish(&3).is_ok()))
        };
        let mut taken = Vec::with_capacity(1);
        consumer.claim(&mut taken);
        taken.extend(taker.join().unwrap());
        let published = publisher.join().unwrap();
        assert!(taken.contains(&1) && taken.len() == 2, "{taken:?}");
        let mut rest = Vec::with_capacity(2);
        consumer.claim(&mut rest);
        taken.extend(rest);
        assert_eq!(sorted(taken), (1..=2 + published).collect::<Vec<_>>());
    });
}

/// Goal: invariant 6 in a concurrent ring. Method: a ring of one, full, and a publisher that waits.
#[test]
fn a_claim_wakes_a_publisher() {
    explore(3, || {
        let (ring, consumer) = concurrent::<u8>("capacity", 1, 1).unwrap();
        assert!(ring.try_publish(&1).is_ok());
        let publisher = thread::spawn(move || assert_eq!(ring.publish_batch(&[2], || {}), 1));
        let mut taken = Vec::with_capacity(1);
        consumer.claim(&mut taken);
        assert_eq!(taken, [1]);
        publisher.join().unwrap();
    });
}

/// Goal: the word of invariant 4 when the call is given on. Method: whoever is called takes one
/// event, and gives the call on before it would handle it.
#[test]
fn a_call_is_given_on_while_there_is_more() {
    explore(3, || {
        let (ring, consumer) = concurrent::<u8>("capacity", 2, 1).unwrap();
        let parker = Arc::new(Parker::new());
        let publishers = [1, 2].map(|event| {
            let (ring, parker) = (ring.clone(), parker.clone());
            thread::spawn(move || {
                if ring.try_publish(&event).unwrap() == Published::Call {
                    let _ = parker.unpark(Wakes::SEARCH);
                }
            })
        });
        let mut taken = Vec::with_capacity(2);
        while taken.len() < 2 {
            let _ = parker.park(None);
            loop {
                let mut one = Vec::with_capacity(1);
                consumer.claim(&mut one);
                taken.extend(one);
                if consumer.rest() == Rest::Resting {
                    break;
                }
            }
        }
        assert_eq!(sorted(taken), [1, 2]);
        let _ = publishers.map(|publisher| publisher.join().unwrap());
    });
}
