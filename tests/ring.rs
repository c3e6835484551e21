//! Events published to a ring are handled once each, in order or not, whoever publishes.

use paceline::{Error, Pool, Rejected, Ring};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PRODUCERS: u64 = 4;
const EVENTS: u64 = 20_000;

fn publish_from_many(ring: &Ring<(u64, u64)>) {
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            scope.spawn(move || {
                for number in 0..EVENTS / 2 {
                    ring.publish((producer, number)).unwrap();
                }
                let rest: Vec<_> = (EVENTS / 2..EVENTS).map(|number| (producer, number)).collect();
                rest.chunks(37).for_each(|batch| ring.publish_batch(batch).unwrap());
            });
        }
    });
}

#[test]
fn a_serial_ring_keeps_each_producers_order_and_runs_on_one_thread_at_a_time() {
    let pool = Pool::builder().threads(4).build().unwrap();
    let next = Arc::new(Mutex::new([0; PRODUCERS as usize]));
    let seen = Arc::clone(&next);
    let ring = Ring::serial(&pool, 256, move |events: &[(u64, u64)]| {
        let mut next = seen.try_lock().expect("one thread at a time");
        for &(producer, number) in events {
            assert_eq!(number, next[producer as usize]);
            next[producer as usize] += 1;
        }
    })
    .unwrap();
    publish_from_many(&ring);
    ring.close();
    assert!(matches!(ring.publish((0, 0)), Err(Rejected::ShutDown((0, 0)))));
    while ring.handled() < ring.published() {
        std::thread::yield_now();
    }
    assert_eq!(ring.published(), PRODUCERS * EVENTS);
    let _ = pool.shutdown(Duration::from_secs(60));
    assert_eq!(*next.lock().unwrap(), [EVENTS; PRODUCERS as usize]);
}

#[test]
fn a_concurrent_ring_handles_each_event_once() {
    let pool = Pool::builder().threads(4).build().unwrap();
    let sum = Arc::new(AtomicU64::new(0));
    let count = Arc::new(AtomicU64::new(0));
    let (sum_in, count_in) = (Arc::clone(&sum), Arc::clone(&count));
    let ring = Ring::concurrent(&pool, 256, move |events: &[(u64, u64)]| {
        sum_in.fetch_add(events.iter().map(|event| event.1).sum(), SeqCst);
        count_in.fetch_add(events.len() as u64, SeqCst);
    })
    .unwrap();
    publish_from_many(&ring);
    while count.load(SeqCst) < PRODUCERS * EVENTS {
        std::thread::yield_now();
    }
    assert_eq!(sum.load(SeqCst), PRODUCERS * (0..EVENTS).sum::<u64>());
    let _ = pool.shutdown(Duration::from_secs(60));
}

/// Goal: a ring that cannot get all its slots leaves none behind.
/// Goal: a drain waits for what was published, and refuses more from outside. Method: handlers that
/// take their time, so that much lies in the rings when it begins.
#[test]
fn a_drain_handles_what_was_published() {
    let pool = Pool::builder().threads(2).build().unwrap();
    let handled = Arc::new(AtomicU64::new(0));
    let handler = |handled: &Arc<AtomicU64>| {
        let handled = Arc::clone(handled);
        move |events: &[u64]| {
            std::thread::sleep(Duration::from_millis(1));
            handled.fetch_add(events.len() as u64, SeqCst);
        }
    };
    let serial = Ring::serial(&pool, 8, handler(&handled)).unwrap();
    let concurrent = Ring::concurrent(&pool, 8, handler(&handled)).unwrap();
    for event in 0..64 {
        serial.publish(event).unwrap();
        concurrent.publish(event).unwrap();
    }
    concurrent.close();
    assert!(pool.shutdown(Duration::from_secs(600)).drained);
    assert_eq!(handled.load(SeqCst), 128);
    assert!(matches!(serial.publish(1), Err(Rejected::ShutDown(1))));
    assert!(matches!(serial.publish_batch(&[1, 2]), Err(Rejected::ShutDown(0))));
}

#[test]
fn a_ring_that_does_not_fit_leaves_nothing_behind() {
    let pool = Pool::builder().threads(4).max_handles(1).build().unwrap();
    let mut strands = Vec::new();
    let capacity = loop {
        match pool.strand() {
            Ok(strand) => strands.push(strand),
            Err(Error::Full { capacity, .. }) => break capacity,
            Err(other) => panic!("{other}"),
        }
    };
    strands.truncate(capacity - 2);
    let in_use = || pool.stats().handles as usize;
    while in_use() > capacity - 2 {
        std::thread::yield_now();
    }
    let refused = Ring::<u64>::concurrent(&pool, 16, |_| ());
    assert!(matches!(refused, Err(Error::Full { .. })));
    assert_eq!(in_use(), capacity - 2);
    drop(strands);
    assert!(pool.shutdown(Duration::from_secs(60)).drained);
}
