use super::counted::{Counted, Drops};
use crate::{Error, Queue, QueueFull};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const FOR_EVER: Duration = Duration::MAX;

fn queue<T>(capacity: usize) -> Queue<T> {
    Queue::new(capacity).unwrap()
}

#[test]
fn a_bad_capacity_is_named() {
    for bad in [0, usize::MAX] {
        let Err(Error::Invalid { name, value, .. }) = Queue::<u8>::new(bad) else {
            panic!("{bad} was accepted")
        };
        assert_eq!((name, value), ("capacity", bad.to_string()));
    }
}

#[test]
fn counts_its_items() {
    let queue = queue(2);
    let state = |queue: &Queue<()>| (queue.len(), queue.is_empty(), queue.is_full());
    assert_eq!((queue.capacity(), state(&queue)), (2, (0, true, false)));
    queue.push(()).unwrap();
    assert_eq!(state(&queue), (1, false, false));
    queue.push(()).unwrap();
    assert_eq!(state(&queue), (2, false, true));
    assert_eq!(queue.pop(), Some(()));
    assert_eq!(state(&queue), (1, false, false));
    assert_eq!(format!("{queue:?}"), "Queue { len: 1, capacity: 2, closed: false }");
}

#[test]
fn a_refused_item_comes_back_with_the_reason() {
    let queue = queue(1);
    queue.push(Box::new(1)).unwrap();
    let full = queue.push(Box::new(2)).unwrap_err();
    assert_eq!((full.is_closed(), full.to_string().as_str()), (false, "the queue is full"));
    assert_eq!(*full.into_inner(), 2);
    queue.close();
    let closed = queue.push(Box::new(3)).unwrap_err();
    assert_eq!((closed.is_closed(), closed.to_string().as_str()), (true, "the queue is closed"));
    assert_eq!(*closed.into_inner(), 3);
    assert_eq!((queue.pop(), queue.pop()), (Some(Box::new(1)), None));
}

#[test]
fn a_batch_leaves_in_the_vector_what_did_not_fit() {
    let queue = queue(4);
    let drops = Drops::default();
    let mut items: Vec<Counted> = (0..7).map(|_| drops.value()).collect();
    assert_eq!(queue.push_batch(&mut items), 4);
    assert_eq!((items.len(), queue.push_batch(&mut items), drops.count()), (3, 0, 0));
    let mut out = Vec::new();
    assert_eq!(queue.pop_batch(&mut out, 3), 3);
    assert_eq!(queue.push_batch(&mut items), 3);
    assert!(items.is_empty());
    assert_eq!((queue.pop_batch(&mut out, usize::MAX), queue.pop_batch(&mut out, 1)), (4, 0));
    assert_eq!((out.len(), drops.count()), (7, 0));
    drop(out);
    assert_eq!(drops.count(), 7);
}

#[test]
fn copies_go_in_as_far_as_there_is_room() {
    let queue = queue(4);
    assert_eq!(queue.push_batch_copied(&[1, 2, 3]), 3);
    assert_eq!(queue.push_batch_copied(&[4, 5, 6]), 1);
    assert_eq!(queue.push_batch_copied(&[]), 0);
    let mut out = vec![0];
    assert_eq!(queue.pop_batch(&mut out, 0), 0);
    assert_eq!(queue.pop_batch(&mut out, 10), 4);
    assert_eq!(out, [0, 1, 2, 3, 4]);
    queue.close();
    assert_eq!(queue.push_batch_copied(&[7]), 0);
}

#[test]
fn a_timeout_of_zero_only_looks() {
    let queue = queue(1);
    assert_eq!(queue.pop_timeout(Duration::ZERO), None);
    assert!(queue.push_timeout(1, Duration::ZERO).is_ok());
    let full = queue.push_timeout(2, Duration::ZERO).unwrap_err();
    assert_eq!((full.is_closed(), full.into_inner()), (false, 2));
    assert_eq!(queue.pop_timeout(Duration::ZERO), Some(1));
    assert_eq!(queue.pop_timeout(Duration::from_millis(1)), None);
}

/// One item to and fro between two threads that sleep whenever they can.
#[test]
fn sleepers_are_woken() {
    let (there, back) = (queue(1), queue(1));
    thread::scope(|scope| {
        scope.spawn(|| {
            while let Some(item) = there.pop_timeout(FOR_EVER) {
                back.push(item + 1).unwrap();
            }
            back.close();
        });
        for round in 0..2_000 {
            there.push(round).unwrap();
            assert_eq!(back.pop_timeout(FOR_EVER), Some(round + 1));
        }
        there.close();
        assert_eq!(back.pop_timeout(FOR_EVER), None);
    });
}

/// Sleeping producers and sleeping consumers on one small queue, closed at the end.
#[test]
fn nobody_sleeps_for_ever() {
    const PER_PRODUCER: usize = 5_000;
    let queue = queue(2);
    let popped = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while queue.pop_timeout(FOR_EVER).is_some() {
                    popped.fetch_add(1, Relaxed);
                }
            });
        }
        let producers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    (0..PER_PRODUCER).for_each(|i| queue.push_timeout(i, FOR_EVER).unwrap());
                })
            })
            .collect();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        queue.close();
    });
    assert_eq!(popped.load(Relaxed), 3 * PER_PRODUCER);
}

#[test]
fn closing_wakes_a_producer_that_waits_for_room() {
    let queue = queue(1);
    queue.push(1).unwrap();
    let refused: QueueFull<i32> = thread::scope(|scope| {
        let waiting = scope.spawn(|| queue.push_timeout(2, FOR_EVER));
        queue.close();
        waiting.join().unwrap().unwrap_err()
    });
    assert_eq!((refused.is_closed(), refused.into_inner()), (true, 2));
}

// What follows asks of `Queue` what the tests of crossbeam-queue ask of `ArrayQueue`.

#[test]
fn one_producer_one_consumer_in_order() {
    const COUNT: usize = 100_000;
    let queue = queue(3);
    thread::scope(|scope| {
        scope.spawn(|| {
            for expected in 0..COUNT {
                let popped =
                    std::iter::repeat_with(|| queue.pop().or_else(yielded)).flatten().next();
                assert_eq!(popped, Some(expected));
            }
            assert_eq!(queue.pop(), None);
        });
        for item in 0..COUNT {
            push_patiently(&queue, item);
        }
    });
}

fn yielded<T>() -> Option<T> {
    thread::yield_now();
    None
}

fn push_patiently<T>(queue: &Queue<T>, mut item: T) {
    while let Err(full) = queue.push(item) {
        item = full.into_inner();
        thread::yield_now();
    }
}

#[test]
fn every_item_arrives_once() {
    const COUNT: usize = 25_000;
    const THREADS: usize = 4;
    let queue = queue::<usize>(3);
    let seen: Vec<_> = (0..COUNT).map(|_| AtomicUsize::new(0)).collect();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..COUNT {
                    let item =
                        std::iter::repeat_with(|| queue.pop().or_else(yielded)).flatten().next();
                    seen[item.unwrap()].fetch_add(1, Relaxed);
                }
            });
            scope.spawn(|| (0..COUNT).for_each(|item| push_patiently(&queue, item)));
        }
    });
    assert!(seen.iter().all(|seen| seen.load(Relaxed) == THREADS));
}

#[test]
fn the_length_stays_within_its_bounds() {
    const COUNT: usize = 30_000;
    let queue = queue(1000);
    let capacity = queue.capacity();
    for round in 0..capacity / 10 {
        (0..50).for_each(|i| {
            queue.push(round + i).unwrap();
            assert_eq!(queue.len(), i + 1);
        });
        (0..50).for_each(|i| {
            queue.pop().unwrap();
            assert_eq!(queue.len(), 49 - i);
        });
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..COUNT {
                while queue.pop().is_none() {
                    thread::yield_now();
                }
                assert!(queue.len() <= capacity);
            }
        });
        for item in 0..COUNT {
            push_patiently(&queue, item);
            assert!(queue.len() <= capacity);
        }
    });
    assert_eq!(queue.len(), 0);
}

#[test]
fn every_item_is_dropped_once() {
    // Fixed sizes that end at different places of the array, instead of random ones.
    for (steps, additional) in [(0, 0), (1, 50), (777, 3), (5_000, 64), (4_999, 63)] {
        let drops = Drops::default();
        let queue = queue(50);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..steps {
                    while queue.pop().is_none() {
                        thread::yield_now();
                    }
                }
            });
            for _ in 0..steps {
                push_patiently(&queue, drops.value());
            }
        });
        for _ in 0..additional {
            queue.push(drops.value()).unwrap();
        }
        assert_eq!(drops.count(), steps);
        drop(queue);
        assert_eq!(drops.count(), steps + additional);
    }
}

/// As many threads as slots: a push that follows the thread's own pop always finds room, a pop that
/// follows its own push always finds an item.
#[test]
fn push_and_pop_are_linearizable() {
    const THREADS: usize = 4;
    let queue = queue(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..25_000 {
                    queue.push(0).unwrap();
                    queue.pop().unwrap();
                }
            });
        }
    });
    assert!(queue.is_empty());
}

/// The same with batches.
#[test]
fn batches_are_linearizable() {
    const THREADS: usize = 4;
    let queue = queue(2 * THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut out = Vec::new();
                for round in 0..10_000 {
                    let mut left = 2;
                    while left > 0 {
                        let pushed = queue.push_batch_copied(&[round; 2][..left]);
                        assert!(pushed > 0);
                        left -= pushed;
                    }
                    while out.len() < 2 {
                        let missing = 2 - out.len();
                        assert!(queue.pop_batch(&mut out, missing) > 0);
                    }
                    out.clear();
                }
            });
        }
    });
    assert!(queue.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Push,
    PushBatch(usize),
    PushCopied(usize),
    Pop,
    PopBatch(usize),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Push),
        4 => (0..12usize).prop_map(Step::PushBatch),
        4 => (0..12usize).prop_map(Step::PushCopied),
        8 => Just(Step::Pop),
        4 => (0..12usize).prop_map(Step::PopBatch),
        1 => Just(Step::Close),
    ]
}

/// What the queue must be on one thread.
struct Model {
    items: VecDeque<u32>,
    capacity: usize,
    closed: bool,
    next: u32,
}

impl Model {
    fn make(&mut self, count: usize) -> Vec<u32> {
        self.next += count as u32;
        (self.next - count as u32..self.next).collect()
    }

    fn push(&mut self, items: &[u32]) -> usize {
        let room = if self.closed { 0 } else { self.capacity - self.items.len() };
        let fits = items.len().min(room);
        self.items.extend(&items[..fits]);
        fits
    }

    fn pop(&mut self, max: usize) -> Vec<u32> {
        let count = max.min(self.items.len());
        self.items.drain(..count).collect()
    }
}

fn apply(step: &Step, queue: &Queue<u32>, model: &mut Model) {
    match *step {
        Step::Push => {
            let item = model.make(1);
            assert_eq!(queue.push(item[0]).is_ok(), model.push(&item) == 1);
        }
        Step::PushBatch(count) => {
            let mut items = model.make(count);
            let fits = model.push(&items);
            let rest = items[fits..].to_vec();
            assert_eq!((queue.push_batch(&mut items), items), (fits, rest));
        }
        Step::PushCopied(count) => {
            let items = model.make(count);
            assert_eq!(queue.push_batch_copied(&items), model.push(&items));
        }
        Step::Pop => assert_eq!(queue.pop(), model.pop(1).pop()),
        Step::PopBatch(max) => {
            let mut out = Vec::new();
            let expected = model.pop(max);
            assert_eq!((queue.pop_batch(&mut out, max), &out), (expected.len(), &expected));
        }
        Step::Close => {
            queue.close();
            model.closed = true;
        }
    }
    assert_eq!(queue.len(), model.items.len());
    assert_eq!(queue.is_closed(), model.closed);
}

proptest! {
    #[test]
    fn behaves_like_a_bounded_deque(
        log in 0..5u32,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let queue = queue(1 << log);
        let items = VecDeque::new();
        let mut model = Model { items, capacity: 1 << log, closed: false, next: 0 };
        for step in &steps {
            apply(step, &queue, &mut model);
        }
    }
}
