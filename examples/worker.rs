//! A hundred tasks of mixed priority against a function that often fails: retries, a deadline, a periodic
//! task beside them, a graceful stop, and a report.
//!
//! ```text
//! cargo run -p examples --example worker
//! ```

use paceline::metrics::{Registry, Value};
use paceline::task::{Attempt, Fault, Phases, Retry, Status, TaskHandle, WorkerPool};
use paceline::{Flow, Lane, Pool};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const LANES: [Lane; 4] = [Lane::Critical, Lane::High, Lane::Normal, Lane::Low];

/// A backend as they are: it wants to be asked up to three times, does not know some numbers at all, and
/// never answers about 50.
fn fetch(number: u32, attempt: &Attempt<'_>) -> Result<u32, Fault> {
    if number == 50 {
        while !attempt.is_cancelled() {
            thread::sleep(Duration::from_millis(1));
        }
        return Err(Fault::new("gave up"));
    }
    if number % 25 == 13 {
        return Err(Fault::permanent("there is no such number"));
    }
    match attempt.number() > number % 3 {
        true => Ok(number * number),
        false => Err(Fault::new("busy, ask again")),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::new()?;
    let registry = Registry::new();
    let workers = WorkerPool::builder(&pool).metrics(&registry, "example").build()?;

    // A name has settings, which single tasks may override.
    let retry = Retry::fixed(3, Duration::from_millis(5));
    let kind = workers.task_type("fetch").retry(retry).deadline(Duration::from_secs(60)).build()?;
    workers.on_shutdown("say goodbye", || println!("clean-up: the backend is told goodbye"));

    // Every 5 ms, beside the tasks, until it is deregistered.
    let (tick, ticks) = mpsc::channel();
    let heartbeat = pool.every(Duration::from_millis(5), move || match tick.send(()) {
        Ok(()) => Flow::Wait,
        Err(_) => Flow::Done,
    })?;

    let mut tasks: Vec<TaskHandle<u32>> = Vec::new();
    for number in 0..100 {
        let work = move |attempt: &Attempt<'_>| fetch(number, attempt);
        let mut task = kind.task(work).lane(LANES[number as usize % 4]);
        if number == 50 {
            task = task.deadline(Duration::from_millis(200));
        }
        tasks.push(task.submit().map_err(|refused| refused.to_string())?);
    }

    let mut ends: BTreeMap<Status, u32> = BTreeMap::new();
    let mut faults: BTreeMap<String, u32> = BTreeMap::new();
    let mut sum = 0;
    for task in tasks {
        let report = task.wait()?;
        *ends.entry(report.status).or_default() += 1;
        match report.result {
            Ok(square) => sum += square,
            Err(fault) if report.status == Status::Failed => {
                *faults.entry(fault.message().to_owned()).or_default() += 1;
            }
            Err(_) => {}
        }
    }
    (0..3).try_for_each(|_| ticks.recv())?;
    heartbeat.deregister()?;

    println!("{:<12}{:>6}", "status", "tasks");
    for (status, count) in &ends {
        println!("{status:<12}{count:>6}");
    }
    println!("the squares add up to {sum}");
    for (fault, count) in &faults {
        println!("{count} failed, because {fault}");
    }
    let stats = workers.stats();
    println!("attempts that were followed by another: {}", stats.task_types[0].retried);
    println!("the periodic task ran at least 3 times");

    let report = workers.shutdown(Phases::default());
    println!("drained: {}, stuck: {}", report.drained, report.stuck.len());
    println!("the books balance: {}", workers.audit().balances());

    let snapshot = registry.snapshot();
    for (what, name) in
        [("waited", "paceline_task_queue_seconds"), ("ran", "paceline_task_run_seconds")]
    {
        let times = snapshot.sample(name, &[]).and_then(Value::distribution);
        let millis = |quantile| times.map_or(0.0, |times| times.quantile(quantile) * 1e3);
        println!("{what}: p50 {:.3} ms, p99 {:.3} ms", millis(0.5), millis(0.99));
    }
    Ok(())
}
