use super::counted::{Counted, Drops};
use crate::Error;
use crate::queue::Origin::{Inside, Outside};
use crate::queue::mpmc::{CLOSED_ALL, CLOSED_OUTSIDE};
use crate::queue::{MpmcRing, PopError, PushError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

fn ring<T>(capacity: usize) -> MpmcRing<T> {
    MpmcRing::new("capacity", capacity).unwrap()
}

#[test]
fn capacity_is_checked_and_rounded_up() {
    for (asked, got) in [(1, 1), (2, 2), (3, 4), (1000, 1024)] {
        assert_eq!(ring::<u8>(asked).capacity(), got);
    }
    for bad in [0, (1 << 31) + 1, usize::MAX] {
        match MpmcRing::<u8>::new("lane_capacity", bad) {
            Err(Error::Invalid { name, value, allowed }) => {
                assert_eq!((name, value), ("lane_capacity", bad.to_string()));
                assert!(allowed.contains("2147483648"), "{allowed}");
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{bad} was accepted"),
        }
    }
}

#[test]
fn fills_empties_and_wraps() {
    for capacity in [1, 2, 4, 8] {
        let ring = ring(capacity);
        for lap in 0..5 * capacity {
            assert_eq!(ring.try_pop(), Err(PopError::Empty));
            for i in 0..capacity {
                assert_eq!(ring.len(), i);
                assert_eq!(ring.try_push((lap, i), Outside), Ok(()));
            }
            assert_eq!(ring.try_push((9, 9), Outside), Err(PushError::Full((9, 9))));
            for i in 0..capacity {
                assert_eq!(ring.try_pop(), Ok((lap, i)));
            }
        }
        assert_eq!(ring.head(), ring.tail());
        assert_eq!(ring.tail(), (5 * capacity * capacity) as u64);
    }
}

#[test]
fn batches_say_how_many_went_in_and_wrap() {
    let ring = ring(8);
    let (mut next_in, mut next_out) = (0u32, 0u32);
    for size in (1..=11).cycle().take(200) {
        let before = ring.len();
        let pushed = ring.push_batch_with(size, Outside, || {
            next_in += 1;
            next_in - 1
        });
        let expected = size.min(8 - before);
        assert_eq!(pushed, if expected == 0 { Err(PushError::Full(())) } else { Ok(expected) });
        let popped = ring.pop_batch(size.div_ceil(2), |value| {
            assert_eq!(value, next_out);
            next_out += 1;
        });
        assert_eq!(popped, Ok(size.div_ceil(2).min(before + expected)));
    }
}

#[test]
fn nothing_is_pushed_or_popped_by_an_empty_batch() {
    let ring = ring::<u8>(2);
    assert_eq!(ring.push_batch_with(0, Outside, || unreachable!()), Ok(0));
    assert_eq!(ring.pop_batch(0, |_| unreachable!()), Ok(0));
    assert_eq!(ring.pop_batch(5, |_| unreachable!()), Err(PopError::Empty));
}

/// What other threads see while one is between its claim and its end.
#[test]
fn a_slot_being_read_is_full_for_producers_and_gone_for_consumers() {
    let ring = ring(4);
    assert_eq!(ring.push_batch_with(4, Outside, || 7), Ok(4));
    let popped = ring.pop_batch(3, |_| {
        assert_eq!(ring.try_push(8, Outside), Err(PushError::Full(8)));
        assert_eq!((ring.len(), ring.is_full()), (1, false));
    });
    assert_eq!((popped, ring.head()), (Ok(3), 3));
    assert_eq!(ring.push_batch_with(9, Outside, || 1), Ok(3));
}

#[test]
fn a_slot_being_written_is_busy_and_not_empty() {
    let ring = ring(4);
    let pushed = ring.push_batch_with(2, Outside, || {
        // Published behind the unfinished ones, as another producer would.
        let _ = ring.try_push(9, Outside);
        assert_eq!(ring.try_pop(), Err(PopError::Busy));
        assert_eq!(ring.pop_batch(4, |_| unreachable!()), Err(PopError::Busy));
        assert!(!ring.is_empty() && !ring.is_claimable());
        8
    });
    assert_eq!((pushed, ring.len()), (Ok(2), 4));
    assert_eq!([(); 4].map(|()| ring.try_pop()), [Ok(8), Ok(8), Ok(9), Ok(9)]);
}

#[test]
fn closing_refuses_by_origin_and_keeps_what_is_in() {
    let ring = ring(4);
    ring.try_push(1, Outside).unwrap();
    ring.close(CLOSED_OUTSIDE);
    assert_eq!(ring.try_push(2, Outside), Err(PushError::Closed(2)));
    assert_eq!(ring.push_batch_with(2, Outside, || 2), Err(PushError::Closed(())));
    assert_eq!(ring.try_push(3, Inside), Ok(()));
    assert!(ring.is_closed(Outside) && !ring.is_closed(Inside));
    ring.close(CLOSED_ALL);
    assert_eq!(ring.try_push(4, Inside), Err(PushError::Closed(4)));
    assert_eq!((ring.len(), ring.tail(), ring.head()), (2, 2, 0));
    assert_eq!((ring.try_pop(), ring.try_pop()), (Ok(1), Ok(3)));
    assert_eq!(ring.try_pop(), Err(PopError::Empty));
}

#[test]
fn values_left_behind_are_dropped_once() {
    for left in [0, 3, 8] {
        let drops = Drops::default();
        let ring = ring(8);
        for _ in 0..5 {
            ring.try_push(drops.value(), Outside).ok().unwrap();
            drop(ring.try_pop());
        }
        assert_eq!(ring.push_batch_with(left, Outside, || drops.value()), Ok(left));
        assert_eq!(drops.count(), 5);
        drop(ring);
        assert_eq!(drops.count(), 5 + left);
    }
}

#[test]
fn slots_are_aligned_whatever_the_value() {
    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(align(256))]
    struct Wide(u8);
    let wide = ring(2);
    for i in 0..5 {
        wide.try_push(Wide(i), Outside).unwrap();
        assert_eq!(wide.try_pop(), Ok(Wide(i)));
    }
}

#[test]
fn a_panicking_sink_drops_the_rest_of_its_batch() {
    let drops = Drops::default();
    let ring = ring(8);
    assert_eq!(ring.push_batch_with(6, Outside, || drops.value()), Ok(6));
    let popping = || ring.pop_batch(4, |_: Counted| panic!("sink"));
    assert!(catch_unwind(AssertUnwindSafe(popping)).is_err());
    assert_eq!((drops.count(), ring.len()), (4, 2));
    assert_eq!(ring.push_batch_with(9, Outside, || drops.value()), Ok(6));
}

/// Two producers and two consumers, single and in batches by turns, on a ring much smaller than
/// the traffic: everything arrives once, and in order per producer.
#[test]
fn conservation_and_order_per_producer() {
    const PER_PRODUCER: u64 = 100_000;
    for capacity in [1, 2, 64] {
        let ring = ring::<(usize, u64)>(capacity);
        let popped = AtomicU64::new(0);
        thread::scope(|scope| {
            for producer in 0..2 {
                let ring = &ring;
                scope.spawn(move || produce(ring, producer, PER_PRODUCER));
            }
            for _ in 0..2 {
                scope.spawn(|| consume(&ring, &popped, 2 * PER_PRODUCER));
            }
        });
        assert_eq!(popped.load(Relaxed), 2 * PER_PRODUCER);
        assert_eq!((ring.head(), ring.len()), (2 * PER_PRODUCER, 0));
    }
}

fn produce(ring: &MpmcRing<(usize, u64)>, producer: usize, count: u64) {
    let mut next = 0;
    while next < count {
        let pushed = if next.is_multiple_of(3) {
            ring.try_push((producer, next), Outside).map(|()| next += 1).is_ok()
        } else {
            let want = (count - next).min(5) as usize;
            let make = || {
                next += 1;
                (producer, next - 1)
            };
            ring.push_batch_with(want, Outside, make).is_ok()
        };
        if !pushed {
            thread::yield_now();
        }
    }
}

fn consume(ring: &MpmcRing<(usize, u64)>, popped: &AtomicU64, total: u64) {
    // One consumer sees a producer's values in order, though not all of them.
    let mut seen = [None::<u64>; 2];
    let mut check = |(producer, value): (usize, u64)| {
        assert!(seen[producer].is_none_or(|last| last < value));
        seen[producer] = Some(value);
    };
    let mut turn = 0u64;
    while popped.load(Relaxed) < total {
        turn += 1;
        let got = if turn.is_multiple_of(2) {
            ring.try_pop().map(&mut check).map_or(0, |()| 1)
        } else {
            ring.pop_batch(4, &mut check).unwrap_or(0)
        };
        popped.fetch_add(got as u64, Relaxed);
        if got == 0 {
            thread::yield_now();
        }
    }
}

#[test]
fn dropped_once_under_contention() {
    const COUNT: usize = 50_000;
    let drops = Drops::default();
    let ring = ring(16);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let producers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..COUNT {
                        let mut value = drops.value();
                        while let Err(back) = ring.try_push(value, Outside) {
                            let (PushError::Full(same) | PushError::Closed(same)) = back;
                            value = same;
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Relaxed) {
                if ring.pop_batch(3, drop).is_err() {
                    thread::yield_now();
                }
            }
        });
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        done.store(true, Relaxed);
    });
    drop(ring);
    assert_eq!(drops.count(), 2 * COUNT);
}

/// A thread that pushed and finds `Empty` has been robbed by another, never fooled: while everyone
/// pops exactly what was pushed, at least as many values are left as threads that look.
#[test]
fn a_pusher_never_finds_the_ring_empty() {
    let ring = ring(64);
    thread::scope(|scope| {
        for id in 0..4 {
            let ring = &ring;
            scope.spawn(move || {
                for _ in 0..50_000 {
                    // Full while another thread has claimed the slot of the last lap, not taken it.
                    while ring.try_push(id, Inside).is_err() {
                        thread::yield_now();
                    }
                    loop {
                        match ring.try_pop() {
                            Ok(_) => break,
                            Err(PopError::Busy) => thread::yield_now(),
                            Err(PopError::Empty) => panic!("this thread's own value is missing"),
                        }
                    }
                }
            });
        }
    });
    assert!(ring.is_empty());
}

#[test]
fn closing_is_atomic_with_acceptance() {
    for _ in 0..200 {
        let ring = ring::<u64>(1 << 12);
        let accepted = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while ring.try_push(0, Outside).is_ok() {
                        accepted.fetch_add(1, Relaxed);
                    }
                });
            }
            ring.close(CLOSED_OUTSIDE);
            let at_close = ring.tail();
            thread::yield_now();
            assert_eq!(ring.tail(), at_close);
        });
        assert_eq!(ring.tail(), accepted.load(Relaxed));
    }
}
