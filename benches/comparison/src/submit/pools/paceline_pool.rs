//! paceline's `Pool` with its defaults.

use paceline::{Pool, Rejected};

use super::{TaskPool, WORKERS};
use crate::submit::work;

pub struct Paceline(Pool);

impl Paceline {
    pub fn new() -> Self {
        let pool = Pool::builder().threads(WORKERS).lane_capacity(work::IN_FLIGHT).build();
        Self(pool.expect("two threads can be started"))
    }
}

/// From outside this waits for room inside `Pool::post`, and the loop ends at once.
fn post(pool: &Pool, mut task: impl FnOnce() + Send + 'static) {
    while let Err(rejected) = pool.post(task) {
        let Rejected::Full(back, _) = rejected else { panic!("the pool is shut down") };
        task = back;
        std::thread::yield_now();
    }
}

/// Posts a burst and itself behind it.
fn burst(pool: Pool) {
    if work::burst(|| post(&pool, work::tick)) {
        let next = pool.clone();
        post(&pool, move || burst(next));
    }
}

impl TaskPool for Paceline {
    fn post(&self, count: usize) {
        for _ in 0..count {
            post(&self.0, work::tick);
        }
    }

    fn post_batches(&self, batches: usize, size: usize) -> bool {
        for _ in 0..batches {
            let batch = std::iter::repeat_n(work::tick, size);
            assert!(self.0.post_batch(batch).is_ok(), "the pool refused a batch");
        }
        true
    }

    fn post_inside(&self) {
        let pool = self.0.clone();
        post(&self.0, move || burst(pool));
    }

    fn post_started(&self) {
        post(&self.0, work::started);
    }

    fn bounded(&self) -> bool {
        true
    }

    fn wake_ups(&self) -> Option<u64> {
        Some(self.0.stats().wakes)
    }
}
