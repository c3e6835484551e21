//! Stand for channels used as queues, all bounded and without waiting: crossbeam-channel, flume and
//! kanal.

use super::{Item, Simple};

pub struct Crossbeam<T>(crossbeam_channel::Sender<T>, crossbeam_channel::Receiver<T>);

impl<T: Item> Simple<T> for Crossbeam<T> {
    fn new(capacity: usize) -> Self {
        let (sender, receiver) = crossbeam_channel::bounded(capacity);
        Self(sender, receiver)
    }

    fn push(&self, item: T) -> bool {
        self.0.try_send(item).is_ok()
    }

    fn pop(&self) -> Option<T> {
        self.1.try_recv().ok()
    }
}

pub struct Flume<T>(flume::Sender<T>, flume::Receiver<T>);

impl<T: Item> Simple<T> for Flume<T> {
    fn new(capacity: usize) -> Self {
        let (sender, receiver) = flume::bounded(capacity);
        Self(sender, receiver)
    }

    fn push(&self, item: T) -> bool {
        self.0.try_send(item).is_ok()
    }

    fn pop(&self) -> Option<T> {
        self.1.try_recv().ok()
    }
}

pub struct Kanal<T>(kanal::Sender<T>, kanal::Receiver<T>);

impl<T: Item> Simple<T> for Kanal<T> {
    fn new(capacity: usize) -> Self {
        let (sender, receiver) = kanal::bounded(capacity);
        Self(sender, receiver)
    }

    fn push(&self, item: T) -> bool {
        matches!(self.0.try_send(item), Ok(true))
    }

    fn pop(&self) -> Option<T> {
        self.1.try_recv().ok().flatten()
    }
}
