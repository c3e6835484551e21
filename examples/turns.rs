//! Workers that take turns at a queue of tasks. The worker that leads takes a task, hands the lead on, and handles the task.
//! In `roles` one worker waits for events. Here tasks are in a queue, and whoever is free takes the next one.
//!
//! ```text
//! cargo run -p examples --example turns
//! ```

use paceline::{Pool, promote_new_leader};
use std::cell::Cell;
use std::thread::sleep;
use std::time::Duration;

thread_local! {
    static WORKER: Cell<usize> = const { Cell::new(0) };
}

fn main() -> paceline::Result<()> {
    let pool =
        Pool::builder().threads(3).name("worker").on_start(|thread| WORKER.set(thread)).build()?;
    for task in 1..=9 {
        // The queue: a lane of the pool. It is bounded, and a post waits for room.
        pool.post(move || {
            let worker = WORKER.get();
            println!("worker-{worker} leads, and takes task {task}");
            promote_new_leader(); // another worker is called for the next task
            sleep(Duration::from_millis(25)); // what the task takes
            println!("worker-{worker} has handled task {task}");
        })?;
        sleep(Duration::from_millis(10)); // until the next task comes
    }
    // Handles what was accepted, and ends.
    let report = pool.shutdown(Duration::from_secs(60));
    for (worker, thread) in pool.stats().threads.iter().take(3).enumerate() {
        println!("worker-{worker}: {} tasks", thread.tasks);
    }
    println!("drained: {}", report.drained);
    Ok(())
}
