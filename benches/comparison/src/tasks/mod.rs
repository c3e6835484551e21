//! `comparison tasks`: what a task with a priority, a handle and a time limit costs beside a bare post
//! and beside tokio, and from C beside Python's ThreadPoolExecutor; what a time-out costs that nobody needs; a million tasks that wait for their time;
//! and how soon a critical task starts while all ordinary threads sleep in long ones.

pub mod delayed;
mod executor;
mod peers;
mod reserve;
mod timeouts;

use std::time::Duration;

use crate::options::Plan;
use crate::report::{self, Bar, Column, Results};
use crate::stats::Limit::{AtLeast, AtMost};
use crate::submit::{allocations, work};
use crate::sys;
use peers::Peer;

const TASKS: &str = "task";
const TIMEOUTS: &str = "timeout";
const DELAYED: &str = "delayed";
const RESERVE: &str = "reserve";
const EXECUTOR: &str = "executor";
const SCENARIOS: [&str; 5] = [TASKS, TIMEOUTS, DELAYED, RESERVE, EXECUTOR];

const TIME: &str = "ns/task";
const CPU: &str = "CPU ns/task";
const ALLOCATIONS: &str = "allocations/task";
const TASK_COLUMNS: [Column; 3] = [
    Column { metric: TIME, decimals: 1 },
    Column { metric: CPU, decimals: 1 },
    Column { metric: ALLOCATIONS, decimals: 2 },
];

const EXECUTOR_COLUMNS: [Column; 2] =
    [Column { metric: TIME, decimals: 1 }, Column { metric: CPU, decimals: 1 }];

const ARM_AND_CANCEL: &str = "arm and cancel ns";
const TIMEOUT_COLUMNS: [Column; 1] = [Column { metric: ARM_AND_CANCEL, decimals: 1 }];

const BYTES: &str = "bytes each";
const P50: &str = "late p50 µs";
const P99: &str = "late p99 µs";
const WORST: &str = "late max µs";
const DELAYED_COLUMNS: [Column; 4] = [
    Column { metric: BYTES, decimals: 1 },
    Column { metric: P50, decimals: 0 },
    Column { metric: P99, decimals: 0 },
    Column { metric: WORST, decimals: 0 },
];

const START_P50: &str = "start p50 µs";
const START_P99: &str = "start p99 µs";
const RESERVE_COLUMNS: [Column; 2] =
    [Column { metric: START_P50, decimals: 1 }, Column { metric: START_P99, decimals: 1 }];

/// Tasks whose allocations are counted.
const COUNTED: usize = 64 * work::BURST;

type Measured = Vec<(&'static str, f64)>;

pub fn run(plan: &Plan, results: &mut Results) -> Result<(), String> {
    let names = peers::ALL.map(|(name, _)| name);
    if plan.list {
        println!("scenarios: {}\npeers of {TASKS}: {}", SCENARIOS.join(", "), names.join(", "));
        return Ok(());
    }
    let peers = plan.peers(&names)?;
    let scenarios = plan.scenarios(&SCENARIOS, &SCENARIOS)?;
    let mut run = Run { results, failures: 0 };
    for round in 1..=plan.rounds {
        eprintln!("round {round}/{}", plan.rounds);
        for scenario in &scenarios {
            match *scenario {
                TASKS => {
                    for (name, make) in peers::ALL.iter().filter(|(name, _)| peers.contains(name)) {
                        run.note(TASKS, name, &[TIME, CPU, ALLOCATIONS], || {
                            cost(&mut *make(), plan.window)
                        });
                    }
                }
                TIMEOUTS => {
                    for (name, measure) in timeouts::ALL {
                        run.note(TIMEOUTS, name, &[ARM_AND_CANCEL], || {
                            Ok(vec![(ARM_AND_CANCEL, measure(plan.window))])
                        });
                    }
                }
                DELAYED => {
                    for name in delayed::ALL {
                        let metrics = [BYTES, P50, P99, WORST];
                        run.note(DELAYED, name, &metrics, || {
                            let figures = delayed::measure_apart(name, plan.quick)?;
                            Ok(metrics.into_iter().zip(figures).collect())
                        });
                    }
                }
                EXECUTOR => {
                    run.note(EXECUTOR, executor::IN_C, &[TIME, CPU], || {
                        let mut figures = cost(&mut *executor::in_c()?, plan.window)?;
                        figures.retain(|(metric, _)| *metric != ALLOCATIONS);
                        Ok(figures)
                    });
                    run.note(EXECUTOR, executor::STANDARD, &[TIME, CPU], || {
                        let (time, cpu) = executor::standard(plan.window)?;
                        Ok(vec![(TIME, time), (CPU, cpu)])
                    });
                }
                _ => {
                    for (state, asleep) in reserve::ALL {
                        run.note(RESERVE, state, &[START_P50, START_P99], || {
                            let (p50, p99) = reserve::start_latency(asleep, plan.window)?;
                            Ok(vec![(START_P50, p50), (START_P99, p99)])
                        });
                    }
                }
            }
        }
    }
    run.print(&scenarios, &names, plan.quick);
    report::outcome(run.failures)
}

struct Run<'a> {
    results: &'a mut Results,
    failures: usize,
}

impl Run<'_> {
    /// Adds one round's figures of one peer. A measurement that fails leaves NaN, so that the rounds
    /// stay aligned.
    fn note(
        &mut self,
        scenario: &str,
        peer: &str,
        metrics: &[&'static str],
        measure: impl FnOnce() -> Result<Measured, String>,
    ) {
        let measured = measure().unwrap_or_else(|error| {
            eprintln!("{peer}, {scenario}: {error}");
            self.failures += 1;
            metrics.iter().map(|&metric| (metric, f64::NAN)).collect()
        });
        for (metric, value) in measured {
            self.results.add(scenario, peer, metric, value);
        }
    }

    fn print(&mut self, scenarios: &[&str], names: &[&str], quick: bool) {
        let results = &mut *self.results;
        for scenario in scenarios {
            match *scenario {
                TASKS => {
                    let what = "empty tasks to 2 workers, each with its handle redeemed";
                    results.print(TASKS, what, names, &TASK_COLUMNS);
                }
                TIMEOUTS => {
                    let what = format!("armed and cancelled, {} at a time", timeouts::BURST);
                    let names = timeouts::ALL.map(|(name, _)| name);
                    results.print(TIMEOUTS, &what, &names, &TIMEOUT_COLUMNS);
                }
                DELAYED => {
                    let what = delayed::description(quick);
                    results.print(DELAYED, &what, &delayed::ALL, &DELAYED_COLUMNS);
                }
                EXECUTOR => {
                    let what = "empty tasks to 2 threads, each with its handle redeemed";
                    results.print(EXECUTOR, what, &executor::ALL, &EXECUTOR_COLUMNS);
                }
                _ => {
                    let what = "a critical task, 2 ordinary threads, 1 reserved";
                    let states = reserve::ALL.map(|(state, _)| state);
                    results.print(RESERVE, what, &states, &RESERVE_COLUMNS);
                }
            }
        }
        results.judge(bars(results), quick);
    }
}

/// Hands in empty tasks one by one and redeems their handles, for as long as `window`.
fn cost(peer: &mut dyn Peer, window: Duration) -> Result<Measured, String> {
    drive(peer, window / 3)?;
    let cpu = sys::own_cpu();
    let nanoseconds = drive(peer, window)?;
    let cpu = sys::own_cpu() - cpu;
    let per_task = cpu.as_nanos() as f64 / work::posted() as f64;
    let mut counted = Ok(());
    let count = allocations::during(|| {
        work::begin();
        for _ in 0..COUNTED / work::BURST {
            work::announce(work::BURST);
            peer.submit(work::BURST);
        }
        counted = finish(peer);
    });
    counted?;
    let allocations = count as f64 / COUNTED as f64;
    Ok(vec![(TIME, nanoseconds), (CPU, per_task), (ALLOCATIONS, allocations)])
}

fn drive(peer: &mut dyn Peer, window: Duration) -> Result<f64, String> {
    work::begin();
    let start = work::now();
    while work::now() - start < window.as_nanos() as u64 {
        work::announce(work::BURST);
        peer.submit(work::BURST);
    }
    finish(peer)?;
    Ok((work::now() - start) as f64 / work::posted() as f64)
}

fn finish(peer: &mut dyn Peer) -> Result<(), String> {
    peer.settle();
    let end = work::now() + Duration::from_secs(30).as_nanos() as u64;
    while work::executed() < work::posted() {
        if work::now() > end {
            return Err(format!("{} of {} tasks were executed", work::executed(), work::posted()));
        }
        std::thread::sleep(Duration::from_micros(20));
    }
    Ok(())
}

/// What paceline must reach.
fn bars(results: &Results) -> Vec<Bar> {
    let series = |scenario, peer, metric| results.series(scenario, peer, metric);
    let task = |peer, metric| series(TASKS, peer, metric);
    let mut bars = Vec::new();
    for (what, metric) in [("time", TIME), ("CPU time", CPU)] {
        bars.push(Bar::ratio(
            format!("a task with lane, handle and limit against a bare post: {what}"),
            AtMost(4.0),
            task(peers::TASK, metric),
            task(peers::POST, metric),
        ));
        bars.push(Bar::ratio(
            format!("tokio's spawn, timeout and JoinHandle against it: {what}"),
            AtLeast(3.0),
            task(peers::TOKIO, metric),
            task(peers::TASK, metric),
        ));
    }
    for (what, metric) in [("time", TIME), ("CPU time", CPU)] {
        bars.push(Bar::ratio(
            format!("Python's ThreadPoolExecutor against a task driven from C: {what}"),
            AtLeast(20.0),
            series(EXECUTOR, executor::STANDARD, metric),
            series(EXECUTOR, executor::IN_C, metric),
        ));
    }
    let armed = |peer| series(TIMEOUTS, peer, ARM_AND_CANCEL);
    for ours in [timeouts::OF_TASK, timeouts::TIMER] {
        bars.push(Bar::ratio(
            format!("arming and cancelling {ours} against tokio"),
            AtMost(0.3),
            armed(ours),
            armed(timeouts::TOKIO),
        ));
    }
    let late = |peer| series(DELAYED, peer, P99);
    bars.extend([
        Bar::absolute(
            "bytes of a delayed task",
            AtMost(128.0),
            series(DELAYED, delayed::OURS, BYTES),
        ),
        Bar::ratio(
            "delayed tasks: lateness at p99 against tokio",
            AtMost(1.5),
            late(delayed::OURS),
            late(delayed::TOKIO),
        ),
        Bar::ratio(
            "start of a critical task, all ordinary threads asleep: p99 against an idle pool",
            AtMost(2.0),
            series(RESERVE, reserve::ASLEEP, START_P99),
            series(RESERVE, reserve::IDLE, START_P99),
        ),
    ]);
    bars
}
