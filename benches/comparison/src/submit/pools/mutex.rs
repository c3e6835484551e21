//! Stands for the textbook pool: a queue under a mutex and a condition variable, signalled only
//! when a worker sleeps.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use super::{TaskPool, WORKERS};
use crate::submit::work;

type Task = Box<dyn FnOnce() + Send>;

pub struct MutexPool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    sleeping: usize,
    stopping: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    fn post(&self, task: Task) {
        let mut state = self.lock();
        state.tasks.push_back(task);
        let wake = state.sleeping > 0;
        drop(state);
        if wake {
            self.filled.notify_one();
        }
    }

    fn post_batch(&self, tasks: impl Iterator<Item = Task>) {
        let mut state = self.lock();
        state.tasks.extend(tasks);
        let wake = state.sleeping > 0;
        drop(state);
        if wake {
            self.filled.notify_all();
        }
    }

    fn work(&self) {
        while let Some(task) = self.next() {
            task();
        }
    }

    fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.tasks.pop_front() {
                return Some(task);
            }
            if state.stopping {
                return None;
            }
            state.sleeping += 1;
            state = self.filled.wait(state).expect("no holder panics");
            state.sleeping -= 1;
        }
    }
}

impl MutexPool {
    pub fn new() -> Self {
        let shared = Arc::new(Shared::default());
        let spawn = |_| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.work())
        };
        let workers = (0..WORKERS).map(spawn).collect();
        Self { shared, workers }
    }
}

/// Posts a burst and itself behind it.
fn burst(shared: Arc<Shared>) {
    if work::burst(|| shared.post(Box::new(work::tick))) {
        let next = Arc::clone(&shared);
        shared.post(Box::new(move || burst(next)));
    }
}

impl TaskPool for MutexPool {
    fn post(&self, count: usize) {
        for _ in 0..count {
            self.shared.post(Box::new(work::tick));
        }
    }

    fn post_batches(&self, batches: usize, size: usize) -> bool {
        for _ in 0..batches {
            self.shared.post_batch((0..size).map(|_| Box::new(work::tick) as Task));
        }
        true
    }

    fn post_inside(&self) {
        let shared = Arc::clone(&self.shared);
        self.shared.post(Box::new(move || burst(shared)));
    }

    fn post_started(&self) {
        self.shared.post(Box::new(work::started));
    }
}

impl Drop for MutexPool {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.filled.notify_all();
        for worker in self.workers.drain(..) {
            worker.join().expect("no task panics");
        }
    }
}
