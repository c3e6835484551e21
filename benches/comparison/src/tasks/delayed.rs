//! A million tasks that wait for their time: what each of them takes of memory, and how late they start.
//!
//! Each peer is measured in a process of its own, which begins with none of the memory that another one
//! left. All tasks are handed in before the first is due; then the growth of the resident set is taken;
//! then they come due, evenly, in an order that is not the one of their submission. Their handles are
//! dropped at once.

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use paceline::Pool;
use paceline::task::WorkerPool;

use super::peers;
use crate::process::{self, Process};
use crate::submit::work;

pub const OURS: &str = "paceline";
pub const TOKIO: &str = "tokio";
pub const ALL: [&str; 2] = [OURS, TOKIO];

/// How many tasks, when the first of them is due, and over how long they are.
struct Load {
    tasks: u64,
    lead: Duration,
    span: Duration,
}

fn load(quick: bool) -> Load {
    let (tasks, lead, span) = if quick { (20_000, 1, 1) } else { (1_000_000, 6, 10) };
    Load { tasks, lead: Duration::from_secs(lead), span: Duration::from_secs(span) }
}

pub fn description(quick: bool) -> String {
    let Load { tasks, span, .. } = load(quick);
    format!("{tasks} tasks, due over {} s", span.as_secs())
}

/// Bytes for each task, and how late they started in microseconds: median, p99, the latest.
pub fn measure_apart(name: &str, quick: bool) -> Result<[f64; 4], String> {
    let mut command = Command::new(env::current_exe().map_err(|error| error.to_string())?);
    command.args(["serve-delayed", name, if quick { "quick" } else { "whole" }]);
    let failed = |error: std::io::Error| format!("the measuring process: {error}");
    let mut child = Process::start(command).map_err(failed)?;
    let mut line = child.line().map_err(failed)?;
    while line == WAITING {
        line = child.line().map_err(failed)?;
    }
    let figures: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    figures.try_into().map_err(|_| format!("the measuring process said {line:?}"))
}

/// What the process says every second until it has its figures.
const WAITING: &str = "waiting";

/// Tasks by how late they started, in steps; the last holds all that were later still.
static LATE: [AtomicU64; 1 << 17] = [const { AtomicU64::new(0) }; 1 << 17];
const STEP_NS: u64 = 4_000;
static STARTED: AtomicU64 = AtomicU64::new(0);

fn note(due: u64) {
    let late = work::now().saturating_sub(due) / STEP_NS;
    LATE[LATE.len().min(late as usize + 1) - 1].fetch_add(1, Relaxed);
    STARTED.fetch_add(1, Relaxed);
}

/// The measuring process.
pub fn serve(name: &str, quick: bool) -> Result<(), String> {
    let load = load(quick);
    for late in &LATE {
        late.store(0, Relaxed);
    }
    match name {
        OURS => {
            let handles = load.tasks as usize + 1000;
            let pool = Pool::builder().threads(2).max_handles(handles).build();
            let pool = pool.map_err(|error| error.to_string())?;
            let kind = WorkerPool::new(&pool).task_type("delayed").build();
            let kind = kind.map_err(|error| error.to_string())?;
            measure(&load, |delay, due| {
                let task = kind.task(move |_| note(due)).delay(delay).submit();
                drop(task.expect("room for a task"));
            })
        }
        TOKIO => {
            let runtime = peers::runtime();
            measure(&load, |delay, due| {
                drop(runtime.spawn(async move {
                    tokio::time::sleep(delay).await;
                    note(due);
                }));
            })
        }
        other => Err(format!("nobody here is called {other:?}")),
    }
}

fn measure(load: &Load, mut submit: impl FnMut(Duration, u64)) -> Result<(), String> {
    // What is made once is made by now.
    submit(Duration::from_millis(1), 0);
    std::thread::sleep(Duration::from_millis(50));
    let resident = || process::own_resident().map_err(|error| error.to_string());
    let before = resident()?;
    STARTED.store(0, Relaxed);
    LATE.iter().for_each(|late| late.store(0, Relaxed));
    let first = work::now() + load.lead.as_nanos() as u64;
    for number in 0..load.tasks {
        // Steps of a prime bring each place once, far from the one before.
        let place = number * 618_039_703 % load.tasks;
        let due = first + (load.span.as_nanos() as f64 * place as f64 / load.tasks as f64) as u64;
        submit(Duration::from_nanos(due.saturating_sub(work::now())), due);
    }
    if work::now() > first {
        return Err("handing them in took until the first was due".into());
    }
    // tokio's workers take in what was spawned.
    std::thread::sleep(Duration::from_nanos((first - work::now()) / 2));
    let bytes = (resident()?.saturating_sub(before)) as f64 / load.tasks as f64;
    let end = first + 2 * load.span.as_nanos() as u64;
    while STARTED.load(Relaxed) < load.tasks {
        if work::now() > end {
            return Err(format!("{} of {} tasks started", STARTED.load(Relaxed), load.tasks));
        }
        println!("{WAITING}");
        std::thread::sleep(Duration::from_secs(1));
    }
    let [p50, p99, worst] = [0.5, 0.99, 1.0].map(late_at);
    println!("{bytes} {p50} {p99} {worst}");
    Ok(())
}

/// How late `share` of all tasks were at most, in microseconds.
fn late_at(share: f64) -> f64 {
    let wanted = (STARTED.load(Relaxed) as f64 * share) as u64;
    let mut seen = 0;
    let step = LATE.iter().position(|late| {
        seen += late.load(Relaxed);
        seen >= wanted
    });
    (step.unwrap_or(LATE.len()) as u64 + 1) as f64 * STEP_NS as f64 / 1e3
}
