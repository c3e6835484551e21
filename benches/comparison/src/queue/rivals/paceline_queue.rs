//! paceline's public `Queue`, one by one and in batches.

use paceline::Queue;

use super::{Consumer, Item, Producer, Rival, Simple};

fn queue<T>(capacity: usize) -> Queue<T> {
    Queue::new(capacity).expect("a valid capacity")
}

pub struct Single<T>(Queue<T>);

impl<T: Item> Simple<T> for Single<T> {
    fn new(capacity: usize) -> Self {
        Self(queue(capacity))
    }

    fn push(&self, item: T) -> bool {
        self.0.push(item).is_ok()
    }

    fn pop(&self) -> Option<T> {
        self.0.pop()
    }
}

pub struct Batches<T>(Queue<T>);

pub struct BatchProducer<'a, T>(&'a Queue<T>);

pub struct BatchConsumer<'a, T>(&'a Queue<T>, Vec<T>);

impl<T: Item> Rival<T> for Batches<T> {
    const BATCH: usize = 16;
    type Producer<'a> = BatchProducer<'a, T>;
    type Consumer<'a> = BatchConsumer<'a, T>;

    fn new(capacity: usize, _producers: usize) -> Self {
        Self(queue(capacity))
    }

    fn producer(&self) -> BatchProducer<'_, T> {
        BatchProducer(&self.0)
    }

    fn consumer(&self) -> BatchConsumer<'_, T> {
        BatchConsumer(&self.0, Vec::with_capacity(16))
    }
}

impl<T: Item> Producer<T> for BatchProducer<'_, T> {
    fn push(&mut self, items: &[T]) -> usize {
        self.0.push_batch_copied(items)
    }
}

impl<T: Item> Consumer<T> for BatchConsumer<'_, T> {
    fn pop(&mut self, take: impl FnMut(T)) -> usize {
        let popped = self.0.pop_batch(&mut self.1, 16);
        self.1.drain(..).for_each(take);
        popped
    }
}
