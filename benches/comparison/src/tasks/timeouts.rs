//! What it costs to arm a time-out that is cancelled, as nearly all are.
//!
//! Armed are bursts, as by a server that has many requests under way: 256 time-outs, and then all of
//! them are cancelled.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use paceline::Timer;
use paceline::task::{TaskHandle, WorkerPool};
use tokio::time::Sleep;

use super::peers::{self, LIMIT};
use crate::submit::work;

pub const BURST: usize = work::BURST;

pub const OF_TASK: &str = "a task's limit";
pub const TIMER: &str = "a timer of the pool";
pub const TOKIO: &str = "tokio's sleep";

type Measure = fn(Duration) -> f64;

pub const ALL: [(&str, Measure); 3] = [(OF_TASK, of_tasks), (TIMER, timers), (TOKIO, sleeps)];

/// Nanoseconds for each of the bursts that fit into `window`, after some to warm up.
fn each(window: Duration, mut burst: impl FnMut()) -> f64 {
    let mut timed = |window: Duration| {
        let (start, mut bursts) = (work::now(), 0);
        while work::now() - start < window.as_nanos() as u64 {
            burst();
            bursts += 1;
        }
        (work::now() - start) as f64 / (bursts * BURST) as f64
    };
    timed(window / 3);
    timed(window)
}

/// How much longer it takes to submit a task and to redeem it if it has a limit. Both kinds alternate, so
/// that the machine is the same for both.
fn of_tasks(window: Duration) -> f64 {
    let pool = peers::pool();
    let kind = WorkerPool::new(&pool).task_type("tick").build().expect("plain settings");
    let mut kept: Vec<TaskHandle<()>> = Vec::with_capacity(BURST);
    let mut burst = |limited: bool| {
        for _ in 0..BURST {
            let task = kind.task(|_| ());
            let task = if limited { task.timeout(LIMIT) } else { task };
            kept.push(task.submit().expect("an open pool"));
        }
        while let Some(task) = kept.pop() {
            task.wait().expect("outside of the pool");
        }
    };
    let (mut with, mut without, mut pairs) = (0, 0, 0);
    let start = work::now();
    while work::now() - start < window.as_nanos() as u64 {
        let begin = work::now();
        burst(true);
        let middle = work::now();
        burst(false);
        with += middle - begin;
        without += work::now() - middle;
        pairs += 1;
    }
    (with as f64 - without as f64) / (pairs * BURST) as f64
}

fn timers(window: Duration) -> f64 {
    let pool = peers::pool();
    let mut armed: Vec<Timer> = Vec::with_capacity(BURST);
    each(window, || {
        armed.extend((0..BURST).map(|_| pool.after(LIMIT, || ()).expect("room for a timer")));
        for timer in armed.drain(..) {
            assert!(timer.cancel());
        }
    })
}

/// A sleep is armed by its first poll and cancelled by its drop. It lies where a future would have it: its
/// place is not allocated anew.
fn sleeps(window: Duration) -> f64 {
    let runtime = peers::runtime();
    runtime.block_on(async {
        let mut places: Vec<Pin<Box<Option<Sleep>>>> = (0..BURST).map(|_| Box::pin(None)).collect();
        let mut context = Context::from_waker(Waker::noop());
        each(window, || {
            for place in &mut places {
                place.set(Some(tokio::time::sleep(LIMIT)));
                let sleep = place.as_mut().as_pin_mut().expect("it was set");
                assert!(sleep.poll(&mut context).is_pending());
            }
            for place in &mut places {
                place.set(None);
            }
        })
    })
}
