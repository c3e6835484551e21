//! Stands for the pool that is quickly written in Rust: workers that receive boxed closures from a
//! crossbeam channel. A box of a closure that captures nothing does not allocate.

use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};

use super::{TaskPool, WORKERS};
use crate::submit::work;

type Task = Box<dyn FnOnce() + Send>;

pub struct Channel {
    sender: Option<Sender<Task>>,
    workers: Vec<JoinHandle<()>>,
    bounded: bool,
}

impl Channel {
    pub fn bounded() -> Self {
        Self::start(crossbeam_channel::bounded(work::IN_FLIGHT), true)
    }

    pub fn unbounded() -> Self {
        Self::start(crossbeam_channel::unbounded(), false)
    }

    fn start((sender, receiver): (Sender<Task>, Receiver<Task>), bounded: bool) -> Self {
        let spawn = |_| {
            let receiver = receiver.clone();
            std::thread::spawn(move || receiver.iter().for_each(|task| task()))
        };
        Self { sender: Some(sender), workers: (0..WORKERS).map(spawn).collect(), bounded }
    }

    fn sender(&self) -> &Sender<Task> {
        self.sender.as_ref().expect("taken only by drop")
    }
}

fn send(sender: &Sender<Task>, task: impl FnOnce() + Send + 'static) {
    sender.send(Box::new(task)).expect("the workers outlive the senders");
}

/// Posts a burst and itself behind it.
fn burst(sender: Sender<Task>) {
    if work::burst(|| send(&sender, work::tick)) {
        let next = sender.clone();
        send(&sender, move || burst(next));
    }
}

impl TaskPool for Channel {
    fn post(&self, count: usize) {
        for _ in 0..count {
            send(self.sender(), work::tick);
        }
    }

    fn post_inside(&self) {
        let sender = self.sender().clone();
        send(self.sender(), move || burst(sender));
    }

    fn post_started(&self) {
        send(self.sender(), work::started);
    }

    fn bounded(&self) -> bool {
        self.bounded
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.sender = None;
        for worker in self.workers.drain(..) {
            worker.join().expect("no task panics");
        }
    }
}
