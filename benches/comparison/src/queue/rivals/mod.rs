//! The queues: one file each, one trait.

mod channel;
mod crossbeam_queues;
mod disruptor_ring;
mod paceline_queue;

#[cfg(has_moodycamel)]
mod moodycamel;

use super::flow::Flow;

/// What goes through a queue: 8 or 56 bytes that carry a number.
pub trait Item: Copy + Default + Send + Sync + 'static {
    fn new(number: u64) -> Self;
    /// Something that depends on the item's first and last word.
    fn check(&self) -> u64;
}

impl Item for [u64; 1] {
    fn new(number: u64) -> Self {
        [number]
    }

    fn check(&self) -> u64 {
        self[0]
    }
}

impl Item for [u64; 7] {
    fn new(number: u64) -> Self {
        [number; 7]
    }

    fn check(&self) -> u64 {
        self[0].wrapping_add(self[6].rotate_left(1))
    }
}

pub trait Producer<T> {
    /// Appends items from the front, at most the queue's `BATCH`; how many, 0 if it is full.
    fn push(&mut self, items: &[T]) -> usize;
}

pub trait Consumer<T> {
    /// Takes at most `BATCH` items out; how many, 0 if it is empty.
    fn pop(&mut self, take: impl FnMut(T)) -> usize;
}

pub trait Rival<T>: Sync + Sized {
    /// Items per operation: 1 or 16.
    const BATCH: usize;
    type Producer<'a>: Producer<T>
    where
        Self: 'a;
    type Consumer<'a>: Consumer<T>
    where
        Self: 'a;

    fn new(capacity: usize, producers: usize) -> Self;
    fn producer(&self) -> Self::Producer<'_>;
    fn consumer(&self) -> Self::Consumer<'_>;
}

/// A queue that is pushed to and popped from one by one through a shared reference.
pub trait Simple<T>: Sync + Sized {
    fn new(capacity: usize) -> Self;
    fn push(&self, item: T) -> bool;
    fn pop(&self) -> Option<T>;
}

/// What a `Simple` queue needs to take part: its reference serves as both ends.
pub struct OneByOne<Q>(Q);

impl<T: Copy, Q: Simple<T>> Rival<T> for OneByOne<Q> {
    const BATCH: usize = 1;
    type Producer<'a>
        = &'a Self
    where
        Q: 'a;
    type Consumer<'a>
        = &'a Self
    where
        Q: 'a;

    fn new(capacity: usize, _producers: usize) -> Self {
        Self(Q::new(capacity))
    }

    fn producer(&self) -> &Self {
        self
    }

    fn consumer(&self) -> &Self {
        self
    }
}

impl<T: Copy, Q: Simple<T>> Producer<T> for &OneByOne<Q> {
    fn push(&mut self, items: &[T]) -> usize {
        usize::from(self.0.push(items[0]))
    }
}

impl<T, Q: Simple<T>> Consumer<T> for &OneByOne<Q> {
    fn pop(&mut self, take: impl FnMut(T)) -> usize {
        usize::from(self.0.pop().map(take).is_some())
    }
}

/// The names of the queues that were built, in the order of the tables.
pub fn names() -> Vec<&'static str> {
    vec![
        "paceline",
        "paceline-x16",
        "ArrayQueue",
        "SegQueue",
        "crossbeam-channel",
        "flume",
        "kanal",
        "disruptor",
        "disruptor-x16",
        #[cfg(has_moodycamel)]
        "moodycamel",
        #[cfg(has_moodycamel)]
        "moodycamel-x16",
    ]
}

/// Items per second; `None` where the queue does not fit the number of threads.
pub fn measure<T: Item>(name: &str, flow: Flow) -> Option<Result<f64, String>> {
    Some(match name {
        "paceline" => flow.run::<T, OneByOne<paceline_queue::Single<T>>>(),
        "paceline-x16" => flow.run::<T, paceline_queue::Batches<T>>(),
        "ArrayQueue" => flow.run::<T, OneByOne<crossbeam_queues::Array<T>>>(),
        "SegQueue" => flow.run::<T, crossbeam_queues::Segments<T>>(),
        "crossbeam-channel" => flow.run::<T, OneByOne<channel::Crossbeam<T>>>(),
        "flume" => flow.run::<T, OneByOne<channel::Flume<T>>>(),
        "kanal" => flow.run::<T, OneByOne<channel::Kanal<T>>>(),
        "disruptor" if flow.threads == 1 => flow.run::<T, disruptor_ring::Ring<T, 1>>(),
        "disruptor-x16" if flow.threads == 1 => flow.run::<T, disruptor_ring::Ring<T, 16>>(),
        #[cfg(has_moodycamel)]
        "moodycamel" => flow.run::<T, moodycamel::Queue<T, 1>>(),
        #[cfg(has_moodycamel)]
        "moodycamel-x16" => flow.run::<T, moodycamel::Queue<T, 16>>(),
        _ => return None,
    })
}
