//! `comparison submit`: what it costs to hand a pool of two workers an empty task, from the first
//! post to the last execution, and how soon a pool at rest starts one.

pub mod allocations;
mod pools;
pub mod work;

use std::time::Duration;

use crate::options::Plan;
use crate::report::{self, Bar, Column, Results};
use crate::stats::Limit::{AtLeast, AtMost};
use crate::stats::{self};
use pools::{OURS_IN_C, TaskPool};

/// The one table's name among the results.
const TABLE: &str = "submit";

const SINGLE: &str = "one thread ns";
const TWO: &str = "two threads ns";
const INSIDE: &str = "inside ns";
const BATCH: &str = "batches of 32 ns";
const WAKE: &str = "wake p50 µs";
const ALLOCATIONS: &str = "allocations/task";
const WAKE_UPS: &str = "wake-ups/1000 tasks";

const COLUMNS: [Column; 7] = [
    Column { metric: SINGLE, decimals: 1 },
    Column { metric: TWO, decimals: 1 },
    Column { metric: INSIDE, decimals: 1 },
    Column { metric: BATCH, decimals: 1 },
    Column { metric: WAKE, decimals: 1 },
    Column { metric: ALLOCATIONS, decimals: 2 },
    Column { metric: WAKE_UPS, decimals: 2 },
];

const SCENARIOS: [&str; 5] = ["single", "two", "inside", "batch", "wake"];
const BATCH_SIZE: usize = 32;

/// Tasks whose allocations are counted.
const COUNTED: usize = 64 * work::BURST;
/// How long a pool rests before it is woken, and how long a task may take to start.
const REST: Duration = Duration::from_millis(3);
const PATIENCE: Duration = Duration::from_secs(30);

pub fn run(plan: &Plan, results: &mut Results) -> Result<(), String> {
    let pools = pools::all();
    let names: Vec<&str> = pools.iter().map(|(name, _)| *name).collect();
    if plan.list {
        println!("scenarios: {}\npeers: {}", SCENARIOS.join(", "), names.join(", "));
        return Ok(());
    }
    let peers = plan.peers(&names)?;
    let scenarios = plan.scenarios(&SCENARIOS, &SCENARIOS)?;
    let mut failures = 0;
    for round in 1..=plan.rounds {
        for (name, make) in pools.iter().filter(|(name, _)| peers.contains(name)) {
            eprintln!("round {round}/{}: {name}", plan.rounds);
            let pool = make();
            for scenario in &scenarios {
                let measured = measure(scenario, &*pool, plan.window).unwrap_or_else(|error| {
                    eprintln!("{name}, {scenario}: {error}");
                    failures += 1;
                    failed(scenario)
                });
                for (metric, value) in measured {
                    results.add(TABLE, name, metric, value);
                }
            }
        }
    }
    results.print(TABLE, "empty tasks to 2 workers, ns per task", &names, &COLUMNS);
    results.judge(bars(results), plan.quick);
    report::outcome(failures)
}

type Measured = Vec<(&'static str, f64)>;

fn measure(scenario: &str, pool: &dyn TaskPool, window: Duration) -> Result<Measured, String> {
    let warm_up = window / 3;
    match scenario {
        "single" => {
            from_outside(pool, 1, warm_up)?;
            let before = pool.wake_ups();
            let nanoseconds = from_outside(pool, 1, window)?;
            let mut measured = vec![(SINGLE, nanoseconds)];
            if let (Some(before), Some(after)) = (before, pool.wake_ups()) {
                let tasks = work::posted() as f64;
                measured.push((WAKE_UPS, (after - before) as f64 * 1000.0 / tasks));
            }
            if pool.allocations_counted() {
                measured.push((ALLOCATIONS, allocations_per_task(pool)?));
            }
            Ok(measured)
        }
        "two" => {
            from_outside(pool, 2, warm_up)?;
            Ok(vec![(TWO, from_outside(pool, 2, window)?)])
        }
        "inside" => {
            from_inside(pool, warm_up)?;
            Ok(vec![(INSIDE, from_inside(pool, window)?)])
        }
        "batch" => match in_batches(pool, warm_up)? {
            Some(_) => Ok(in_batches(pool, window)?.map(|ns| (BATCH, ns)).into_iter().collect()),
            None => Ok(Vec::new()),
        },
        _ => Ok(vec![(WAKE, wake_latency(pool, window)?)]),
    }
}

/// What stands in the rounds' series for a measurement that failed.
fn failed(scenario: &str) -> Measured {
    let metrics: &[&'static str] = match scenario {
        "single" => &[SINGLE, ALLOCATIONS, WAKE_UPS],
        "two" => &[TWO],
        "inside" => &[INSIDE],
        "batch" => &[BATCH],
        _ => &[WAKE],
    };
    metrics.iter().map(|metric| (*metric, f64::NAN)).collect()
}

/// Posts single tasks from `threads` threads for as long as `window`; nanoseconds per task.
fn from_outside(pool: &dyn TaskPool, threads: usize, window: Duration) -> Result<f64, String> {
    work::begin();
    let start = work::now();
    let post = || {
        while work::now() - start < window.as_nanos() as u64 {
            work::announce(work::BURST);
            pool.post(work::BURST);
            throttle(pool);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(post);
        }
        post();
    });
    finish(start)
}

fn in_batches(pool: &dyn TaskPool, window: Duration) -> Result<Option<f64>, String> {
    work::begin();
    let start = work::now();
    while work::now() - start < window.as_nanos() as u64 {
        work::announce(work::BURST);
        if !pool.post_batches(work::BURST / BATCH_SIZE, BATCH_SIZE) {
            return Ok(None);
        }
        throttle(pool);
    }
    finish(start).map(Some)
}

fn from_inside(pool: &dyn TaskPool, window: Duration) -> Result<f64, String> {
    work::begin();
    let start = work::now();
    pool.post_inside();
    std::thread::sleep(window);
    work::enough();
    finish_when(start, work::ended)
}

/// Holds a poster back whose pool would let it run away. It looks once per burst and yields, which
/// is what a program does that must bound its memory.
fn throttle(pool: &dyn TaskPool) {
    while !pool.bounded() && work::in_flight() > work::IN_FLIGHT {
        std::thread::yield_now();
    }
}

/// Waits until every posted task was executed; nanoseconds per task since `start`.
fn finish(start: u64) -> Result<f64, String> {
    finish_when(start, || true)
}

/// The same, for a run whose posting ends by itself.
fn finish_when(start: u64, posting_ended: fn() -> bool) -> Result<f64, String> {
    let waiting = work::now();
    loop {
        if posting_ended() && work::executed() >= work::posted() {
            return Ok((work::now() - start) as f64 / work::posted() as f64);
        }
        if work::now() - waiting > PATIENCE.as_nanos() as u64 {
            return Err(format!("{} of {} tasks were executed", work::executed(), work::posted()));
        }
        std::thread::sleep(Duration::from_micros(20));
    }
}

fn allocations_per_task(pool: &dyn TaskPool) -> Result<f64, String> {
    work::begin();
    let mut outcome = Ok(0.0);
    let count = allocations::during(|| {
        for _ in 0..COUNTED / work::BURST {
            work::announce(work::BURST);
            pool.post(work::BURST);
            throttle(pool);
        }
        outcome = finish(work::now());
    });
    outcome.map(|_| count as f64 / COUNTED as f64)
}

/// The median time from posting to the start of a task, the pool being at rest before each.
fn wake_latency(pool: &dyn TaskPool, window: Duration) -> Result<f64, String> {
    let probes = (window.as_micros() / REST.as_micros()).clamp(10, 1000);
    let mut latencies = Vec::new();
    for _ in 0..probes {
        std::thread::sleep(REST);
        let posted = work::now();
        pool.post_started();
        latencies.push((await_start(posted)? - posted) as f64 / 1e3);
    }
    Ok(stats::median(&latencies))
}

/// Sleeps rather than spins: the poster of a lone task goes about its own waiting.
fn await_start(posted: u64) -> Result<u64, String> {
    loop {
        std::thread::sleep(Duration::from_millis(1));
        if let Some(start) = work::take_start() {
            return Ok(start);
        }
        if work::now() - posted > PATIENCE.as_nanos() as u64 {
            return Err("a task was never started".to_owned());
        }
    }
}

/// What paceline must reach.
fn bars(results: &Results) -> Vec<Bar> {
    let series = |peer, metric| results.series(TABLE, peer, metric);
    let queues = |metric| {
        let peers = ["channel-bounded", "channel-unbounded", "moodycamel"];
        report::best(&peers.map(|peer| series(peer, metric)), f64::min)
    };
    let mut bars = Vec::new();
    for (threads, metric) in [("one thread", SINGLE), ("two threads", TWO)] {
        let ours = series("paceline", metric);
        let rivals = [("tokio", 15.0), ("rayon", 8.0)];
        bars.extend(rivals.map(|(rival, times)| {
            let what = format!("{threads}: {rival}'s time against ours");
            Bar::ratio(what, AtLeast(times), series(rival, metric), ours)
        }));
        let what = format!("{threads}: our time against the fastest of channels and moodycamel");
        bars.push(Bar::ratio(what, AtMost(1.0), ours, &queues(metric)));
    }
    let single = series("paceline", SINGLE);
    let batch = series("paceline", BATCH);
    bars.extend([
        Bar::ratio(
            "inside: the same order of cost as from one thread",
            AtMost(3.2),
            series("paceline", INSIDE),
            single,
        ),
        Bar::ratio("batches of 32 against our single posts", AtMost(0.5), batch, single),
        Bar::ratio(
            "batches of 32 against moodycamel's",
            AtMost(0.5),
            batch,
            series("moodycamel", BATCH),
        ),
        Bar::ratio(
            "waking an idle pool: p50 against the best rival's",
            AtMost(1.0),
            series("paceline", WAKE),
            &best_rival(results, WAKE),
        ),
        Bar::ratio("in C: a post against Rust's", AtMost(1.2), series(OURS_IN_C, SINGLE), single),
        Bar::ratio(
            "in C: batches of 32 against Rust's",
            AtMost(1.1),
            series(OURS_IN_C, BATCH),
            batch,
        ),
        Bar::absolute("allocations per task", AtMost(0.0), series("paceline", ALLOCATIONS)),
        Bar::absolute("wake-ups per 1000 tasks", AtMost(1.0), series("paceline", WAKE_UPS)),
    ]);
    bars
}

fn best_rival(results: &Results, metric: &'static str) -> Vec<f64> {
    let pools = pools::all();
    let rivals = pools.iter().filter(|(name, _)| !["paceline", OURS_IN_C].contains(name));
    let series: Vec<&[f64]> = rivals.map(|(name, _)| results.series(TABLE, name, metric)).collect();
    report::best(&series, f64::min)
}
