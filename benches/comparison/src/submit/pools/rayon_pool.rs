//! Stands for the work-stealing pool that most Rust programs use: rayon.

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{TaskPool, WORKERS};
use crate::submit::work;

pub struct Rayon(ThreadPool);

impl Rayon {
    pub fn new() -> Self {
        let pool = ThreadPoolBuilder::new().num_threads(WORKERS).build();
        Self(pool.expect("two threads can be started"))
    }
}

impl TaskPool for Rayon {
    fn post(&self, count: usize) {
        for _ in 0..count {
            self.0.spawn(work::tick);
        }
    }

    fn post_inside(&self) {
        self.0.spawn(|| {
            while work::go_on(work::BURST) {
                for _ in 0..work::BURST {
                    rayon::spawn(work::tick);
                }
                while work::in_flight() > work::IN_FLIGHT {
                    rayon::yield_now();
                }
            }
        });
    }

    fn post_started(&self) {
        self.0.spawn(work::started);
    }
}
