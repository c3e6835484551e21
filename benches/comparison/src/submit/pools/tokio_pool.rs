//! Stands for the asynchronous runtime that most Rust servers use: tokio, multi-threaded.

use tokio::runtime::{Builder, Runtime};

use super::{TaskPool, WORKERS};
use crate::submit::work;

pub struct Tokio(Runtime);

impl Tokio {
    pub fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(WORKERS).build();
        Self(runtime.expect("two threads can be started"))
    }
}

impl TaskPool for Tokio {
    fn post(&self, count: usize) {
        for _ in 0..count {
            self.0.spawn(async { work::tick() });
        }
    }

    fn post_inside(&self) {
        self.0.spawn(async {
            while work::go_on(work::BURST) {
                for _ in 0..work::BURST {
                    tokio::spawn(async { work::tick() });
                }
                tokio::task::yield_now().await;
                while work::in_flight() > work::IN_FLIGHT {
                    tokio::task::yield_now().await;
                }
            }
        });
    }

    fn post_started(&self) {
        self.0.spawn(async { work::started() });
    }
}
