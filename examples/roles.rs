//! Who leads, and who handles: ten events, three workers. One worker leads, which means that it waits for events. It
//! sees one, hands the lead on, and handles the event itself.
//!
//! ```text
//! cargo run -p examples --example roles
//! ```

use paceline::{Pool, promote_new_leader};
use std::cell::Cell;
use std::sync::mpsc;
use std::thread::sleep;
use std::time::Duration;

thread_local! {
    static WORKER: Cell<usize> = const { Cell::new(0) };
}

/// The worker that leads now.
fn leader(pool: &Pool) -> usize {
    loop {
        if let Some(thread) = pool.stats().sets[0].leader {
            return thread + 1;
        }
        sleep(Duration::from_micros(100)); // between two leaders
    }
}

fn main() -> paceline::Result<()> {
    let pool =
        Pool::builder().threads(3).leaders(1).on_start(|thread| WORKER.set(thread + 1)).build()?;
    let (done, all_done) = mpsc::channel();
    for event in 1..=10 {
        let (of, done) = (pool.clone(), done.clone());
        // A timer is an event, as is a descriptor that becomes readable.
        pool.after(Duration::from_millis(20 * event), move || {
            let worker = WORKER.get();
            // By itself the lead is handed on when a handler takes long. A handler that knows that it will says so.
            promote_new_leader();
            println!("worker {worker} handles event {event}, worker {} leads", leader(&of));
            sleep(Duration::from_millis(30)); // what the event takes
            drop(done);
        })?;
    }
    drop(done);
    // It ends when nobody can send any more.
    let _: Result<(), _> = all_done.recv();
    Ok(())
}
