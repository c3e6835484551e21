//! Stand for the lock-free queues that most Rust programs use: crossbeam's bounded `ArrayQueue` and
//! unbounded `SegQueue`, the latter held to the same capacity by a look at its length now and then.

use crossbeam_queue::{ArrayQueue, SegQueue};

use super::{Consumer, Item, Producer, Rival, Simple};

pub struct Array<T>(ArrayQueue<T>);

impl<T: Item> Simple<T> for Array<T> {
    fn new(capacity: usize) -> Self {
        Self(ArrayQueue::new(capacity))
    }

    fn push(&self, item: T) -> bool {
        self.0.push(item).is_ok()
    }

    fn pop(&self) -> Option<T> {
        self.0.pop()
    }
}

/// Pushes between two looks at the length.
const CREDIT: usize = 64;

pub struct Segments<T> {
    queue: SegQueue<T>,
    capacity: usize,
}

pub struct SegmentsProducer<'a, T> {
    queue: &'a Segments<T>,
    credit: usize,
}

pub struct SegmentsConsumer<'a, T>(&'a SegQueue<T>);

impl<T: Item> Rival<T> for Segments<T> {
    const BATCH: usize = 1;
    type Producer<'a> = SegmentsProducer<'a, T>;
    type Consumer<'a> = SegmentsConsumer<'a, T>;

    fn new(capacity: usize, _producers: usize) -> Self {
        Self { queue: SegQueue::new(), capacity }
    }

    fn producer(&self) -> SegmentsProducer<'_, T> {
        SegmentsProducer { queue: self, credit: 0 }
    }

    fn consumer(&self) -> SegmentsConsumer<'_, T> {
        SegmentsConsumer(&self.queue)
    }
}

impl<T: Item> Producer<T> for SegmentsProducer<'_, T> {
    fn push(&mut self, items: &[T]) -> usize {
        if self.credit == 0 {
            if self.queue.queue.len() >= self.queue.capacity {
                return 0;
            }
            self.credit = CREDIT;
        }
        self.credit -= 1;
        self.queue.queue.push(items[0]);
        1
    }
}

impl<T: Item> Consumer<T> for SegmentsConsumer<'_, T> {
    fn pop(&mut self, take: impl FnMut(T)) -> usize {
        usize::from(self.0.pop().map(take).is_some())
    }
}
