use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::AtomicUsize;
use std::thread;

/// An event as large as a line, so that a torn one would show.
type Wide = [u64; 8];

fn wide(producer: u64, number: u64) -> Wide {
    [producer, number, number, number, number, number, number, producer]
}

fn is_whole(event: &Wide) -> bool {
    *event == wide(event[0], event[1])
}

#[test]
fn a_capacity_out_of_range_is_refused_by_name() {
    for capacity in [0, MAX_CAPACITY + 1, usize::MAX] {
        let refused = serial::<u8>("ring_capacity", capacity, 1).err().unwrap();
        assert!(matches!(refused, Error::Invalid { name: "ring_capacity", .. }), "{refused}");
    }
    let (ring, _consumer) = serial::<u8>("capacity", 3, 1).unwrap();
    assert_eq!(ring.capacity(), 4);
}

#[test]
fn more_than_memory_is_refused() {
    let refused = serial::<[u64; 1 << 20]>("capacity", MAX_CAPACITY, 1).err().unwrap();
    assert!(matches!(refused, Error::Invalid { name: "capacity", .. }), "{refused}");
}

#[test]
fn a_full_ring_gives_the_event_back() {
    let (ring, mut consumer) = serial("capacity", 2, 1).unwrap();
    assert_eq!(ring.try_publish(&1), Ok(Published::Call));
    assert_eq!(ring.try_publish(&2), Ok(Published::Seen));
    assert_eq!(ring.try_publish(&3), Err(PushError::Full(3)));
    assert_eq!(ring.try_publish_batch(&[3]), Err(PushError::Full(())));
    assert_eq!(ring.len(), 2);
    assert_eq!(consumer.consume(1, |events| assert_eq!(events, [1])), 1);
    assert_eq!(ring.try_publish_batch(&[3, 4]), Ok((1, Published::Seen)));
    assert_eq!((ring.accepted(), ring.consumed(), ring.len()), (3, 1, 2));
}

#[test]
fn a_closed_ring_refuses_and_can_be_drained() {
    let (ring, mut consumer) = serial("capacity", 2, 1).unwrap();
    assert!(ring.try_publish(&1).is_ok());
    ring.close();
    assert!(ring.is_closed());
    assert_eq!(ring.try_publish(&2), Err(PushError::Closed(2)));
    assert_eq!(ring.publish_batch(&[2, 3], || unreachable!()), 0);
    assert_eq!(consumer.consume(usize::MAX, |events| assert_eq!(events, [1])), 1);
    assert_eq!((ring.accepted(), ring.consumed()), (1, 1));
}

#[test]
fn at_the_end_of_the_ring_a_run_comes_in_two_slices() {
    let (ring, mut consumer) = serial("capacity", 4, 1).unwrap();
    for lap in 0..100 {
        let batch = [lap, lap + 1, lap + 2];
        assert_eq!(ring.try_publish_batch(&batch).unwrap().0, 3);
        let (mut seen, mut slices) = (Vec::new(), 0);
        let count = consumer.consume(usize::MAX, |events| {
            seen.extend_from_slice(events);
            slices += 1;
        });
        assert_eq!((count, &seen[..]), (3, &batch[..]));
        let unbroken = lap * 3 % 4 <= 1;
        assert_eq!(slices, if unbroken { 1 } else { 2 }, "lap {lap}");
    }
}

#[test]
fn only_the_publisher_that_finds_the_consumer_resting_calls_it() {
    let (ring, mut consumer) = serial("capacity", 8, 1).unwrap();
    assert_eq!(ring.try_publish(&1), Ok(Published::Call));
    assert_eq!(ring.try_publish(&2), Ok(Published::Seen));
    assert_eq!(consumer.consume(1, |_| {}), 1);
    assert_eq!(consumer.rest(), Rest::More);
    assert_eq!(ring.try_publish(&3), Ok(Published::Seen));
    assert_eq!(consumer.consume(usize::MAX, |_| {}), 2);
    assert_eq!(consumer.rest(), Rest::Resting);
    assert_eq!(ring.try_publish_batch(&[4, 5]), Ok((2, Published::Call)));
}

/// Goal: invariant 3. Method: a handler that panics on one slice of two.
#[test]
fn events_in_a_panicking_handlers_hands_are_not_handed_out_again() {
    let (ring, mut consumer) = serial("capacity", 4, 1).unwrap();
    assert_eq!(ring.try_publish_batch(&[0; 3]).unwrap().0, 3);
    consumer.consume(usize::MAX, |_| {});
    assert_eq!(ring.try_publish_batch(&[1, 2, 3]).unwrap().0, 3);
    let handler = || consumer.consume(usize::MAX, |_| panic!("on purpose"));
    catch_unwind(AssertUnwindSafe(handler)).unwrap_err();
    assert_eq!(ring.consumed(), 4);
    let mut seen = Vec::new();
    consumer.consume(usize::MAX, |events| seen.extend_from_slice(events));
    assert_eq!(seen, [2, 3]);
}

#[test]
fn a_concurrent_claim_fills_what_its_buffer_has_room_for() {
    let (ring, consumer) = concurrent("capacity", 4, 1).unwrap();
    let mut out = Vec::with_capacity(3);
    assert_eq!(consumer.claim(&mut out), 0);
    for lap in 0..50 {
        assert_eq!(ring.try_publish_batch(&[lap, lap, lap]).unwrap().0, 3);
        assert_eq!((consumer.claim(&mut out), &out[..]), (3, &[lap; 3][..]));
        assert_eq!(consumer.claim(&mut out), 0, "no room in the buffer");
        out.clear();
    }
    assert_eq!((ring.consumed(), ring.len()), (150, 0));
    assert_eq!(consumer.rest(), Rest::Resting);
}

/// Goal: events of several values stay whole where the memory ends, in both rings. Method: runs of two
/// events of three values pass the end of a ring of four again and again, and a full ring takes no part of one.
#[test]
fn events_of_several_values_stay_whole() {
    let (serial, mut in_place) = serial("capacity", 4, 3).unwrap();
    let (concurrent, copied) = concurrent("capacity", 4, 3).unwrap();
    let mut out = Vec::with_capacity(7);
    for n in 0..50 {
        let batch = [n, n + 1, n + 2, n + 3, n + 4, n + 5];
        for ring in [&serial, &concurrent] {
            assert_eq!(ring.try_publish_batch(&batch).unwrap().0, 2);
        }
        let mut seen = Vec::new();
        let handler = |values: &[i32]| seen.extend_from_slice(values);
        assert_eq!((in_place.consume(usize::MAX, handler), &seen[..]), (2, &batch[..]));
        assert_eq!((copied.claim(&mut out), &out[..]), (2, &batch[..]));
        out.clear();
    }
    assert_eq!(serial.try_publish_batch(&[0; 15]).unwrap().0, 4);
    assert_eq!(serial.try_publish_batch(&[0; 3]), Err(PushError::Full(())));
    assert_eq!((serial.accepted(), serial.len(), concurrent.consumed()), (104, 4, 100));
}

/// Publishes numbered events from several threads, in batches of several sizes, and waits for room.
fn publish_from_many(ring: &EventRing<Wide>, producers: u64, each: u64, call: impl Fn() + Sync) {
    thread::scope(|scope| {
        for producer in 0..producers {
            let call = &call;
            scope.spawn(move || {
                let numbers: Vec<_> = (0..each).map(|number| wide(producer, number)).collect();
                for batch in numbers.chunks(1 + producer as usize * 7) {
                    assert_eq!(ring.publish_batch(batch, call), batch.len());
                }
            });
        }
    });
}

/// Goal: every event arrives once, whole, and in its producer's order; no waiting producer and no
/// resting consumer is forgotten (a lost call hangs the test). Method: four producers, a small ring,
/// a consumer that sleeps whenever it may.
#[test]
fn many_producers_and_a_serial_consumer() {
    const PRODUCERS: u64 = 4;
    const EACH: u64 = 30_000;
    let (ring, mut consumer) = serial::<Wide>("capacity", 64, 1).unwrap();
    let main = thread::current();
    let publishing = {
        let ring = ring.clone();
        thread::spawn(move || publish_from_many(&ring, PRODUCERS, EACH, || main.unpark()))
    };
    let mut next = [0; PRODUCERS as usize];
    let mut handler = |events: &[Wide]| {
        for event in events {
            assert!(is_whole(event), "{event:?}");
            let expected = &mut next[event[0] as usize];
            assert_eq!(event[1], *expected);
            *expected += 1;
        }
    };
    let mut count = 0;
    while count < (PRODUCERS * EACH) as usize {
        count += consumer.consume(17, &mut handler);
        if consumer.rest() == Rest::Resting && count < (PRODUCERS * EACH) as usize {
            // A call from before the rest ends this at once; what it was for has been consumed.
            thread::park();
        }
    }
    publishing.join().unwrap();
    assert_eq!(next, [EACH; PRODUCERS as usize]);
    assert_eq!((ring.len(), ring.consumed()), (0, PRODUCERS * EACH));
}

/// Goal: every event is taken once and whole by one of many consumers, and all room comes back.
#[test]
fn many_producers_and_many_consumers() {
    const PRODUCERS: u64 = 4;
    const EACH: u64 = 20_000;
    const TOTAL: usize = (PRODUCERS * EACH) as usize;
    let (ring, consumer) = concurrent::<Wide>("capacity", 64, 1).unwrap();
    let (taken, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let start = Barrier::new(5);
    thread::scope(|scope| {
        for size in [1, 3, 16, 100] {
            let (consumer, taken, sum, start) = (consumer.clone(), &taken, &sum, &start);
            scope.spawn(move || {
                let mut out = Vec::with_capacity(size);
                start.wait();
                while taken.load(Relaxed) < TOTAL {
                    if consumer.claim(&mut out) == 0 {
                        thread::yield_now();
                    }
                    assert!(out.iter().all(is_whole));
                    sum.fetch_add(out.iter().map(|event| event[1] as usize).sum(), Relaxed);
                    taken.fetch_add(out.len(), Relaxed);
                    out.clear();
                }
            });
        }
        start.wait();
        publish_from_many(&ring, PRODUCERS, EACH, || {});
    });
    let each = EACH as usize;
    assert_eq!(taken.into_inner(), TOTAL);
    assert_eq!(sum.into_inner(), PRODUCERS as usize * each * (each - 1) / 2);
    assert_eq!((ring.len(), ring.consumed()), (0, TOTAL as u64));
}
