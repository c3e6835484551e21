//! Tasks that outlive the process: a NATS server with streams (`nats-server -js`) keeps them until they have ended, and any
//! process with a handler for a task's name runs it.
//!
//! ```text
//! cargo run -p examples --example durable --features nats -- nats://127.0.0.1:4222
//! ```

use paceline::Pool;
use paceline::bridge::tasks::{DurableQueue, DurableReport, Job};
use paceline::task::{Fault, Retry, WorkerPool};
use std::error::Error;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// The first attempt fails, and another follows.
fn greet(job: &Job<'_>) -> Result<String, Fault> {
    match (job.arguments(), job.number()) {
        ([], _) => Err(Fault::permanent("nobody is there")),
        (_, 1) => Err(Fault::new("not yet")),
        (name, _) => Ok(format!("hello, {}", String::from_utf8_lossy(name))),
    }
}

fn greeted(queue: &DurableQueue, name: &str) -> paceline::Result<DurableReport> {
    // It is stored when this returns.
    let task = queue.submit("greet", name)?;
    // As another process may, which knows its id.
    queue.find(task.id())?.wait(LIMIT)
}

pub fn story(broker: &str, mut say: impl FnMut(String)) -> Result<(), Box<dyn Error>> {
    let workers = WorkerPool::new(&Pool::new()?);
    let retry = Retry::fixed(3, Duration::from_millis(10));
    let queue =
        workers.durable("greetings").nats(broker).task_with("greet", retry, greet).open()?;
    for name in ["Ada", ""] {
        let report = greeted(&queue, name)?;
        let told = report.failure.unwrap_or(String::from_utf8(report.value)?);
        say(format!("{:?} after {} attempts: {told}", report.status, report.attempts));
    }
    // What has failed for good is kept, and may be submitted again.
    for dead in queue.dead(0, 100)? {
        say(format!("dead: {}, {}", dead.name, dead.failure));
        queue.forget(dead.number)?;
    }
    say(format!("not stored: {}", queue.close(LIMIT)));
    Ok(())
}

#[allow(dead_code, reason = "the test of this example has a main of its own")]
fn main() -> Result<(), Box<dyn Error>> {
    let broker = std::env::args().nth(1).ok_or("the address of a NATS server is missing")?;
    story(&broker, |line| println!("{line}"))
}
