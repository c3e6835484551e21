//! `comparison queue`: items per second through one queue, for several numbers of threads, sizes
//! of items and capacities; one by one, and in batches of 16 where a queue has them.

mod flow;
mod rivals;

use crate::options::Plan;
use crate::report::{self, Bar, Column, Results};
use crate::stats::{self, Limit::AtLeast};
use flow::Flow;
use rivals::Item;

/// Numbers of producers and of consumers.
const SHAPES: [(&str, usize); 3] = [("1p1c", 1), ("2p2c", 2), ("4p4c", 4)];

const COLUMNS: [Column; 3] = [
    Column { metric: SHAPES[0].0, decimals: 1 },
    Column { metric: SHAPES[1].0, decimals: 1 },
    Column { metric: SHAPES[2].0, decimals: 1 },
];

struct Scenario {
    name: &'static str,
    bytes: usize,
    capacity: usize,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario { name: "8x1024", bytes: 8, capacity: 1024 },
    Scenario { name: "8x65536", bytes: 8, capacity: 65_536 },
    Scenario { name: "56x1024", bytes: 56, capacity: 1024 },
    Scenario { name: "56x65536", bytes: 56, capacity: 65_536 },
];

pub fn run(plan: &Plan, results: &mut Results) -> Result<(), String> {
    let peers = rivals::names();
    let names = SCENARIOS.each_ref().map(|scenario| scenario.name);
    if plan.list {
        println!("scenarios: {}\npeers: {}", names.join(", "), peers.join(", "));
        return Ok(());
    }
    let chosen = plan.scenarios(&names, &names[..1])?;
    let taking_part = plan.peers(&peers)?;
    let mut failures = 0;
    for scenario in SCENARIOS.iter().filter(|s| chosen.contains(&s.name)) {
        for round in 1..=plan.rounds {
            eprintln!("{} {round}/{}", scenario.name, plan.rounds);
            failures += measure_all(scenario, &taking_part, plan, results);
        }
        let what = format!("{} bytes, capacity {}, M items/s", scenario.bytes, scenario.capacity);
        results.print(scenario.name, &what, &peers, &COLUMNS);
    }
    results.judge(bars(results, &chosen), plan.quick);
    report::outcome(failures)
}

/// One round: every shape, every peer. Says how many measurements failed.
fn measure_all(scenario: &Scenario, peers: &[&str], plan: &Plan, results: &mut Results) -> usize {
    let mut failures = 0;
    for (shape, threads) in SHAPES {
        for peer in peers {
            let flow = Flow { capacity: scenario.capacity, threads, window: plan.window };
            let rate = match scenario.bytes {
                8 => measure::<[u64; 1]>(peer, flow),
                _ => measure::<[u64; 7]>(peer, flow),
            };
            if let Some(rate) = rate {
                let rate = rate.unwrap_or_else(|error| {
                    eprintln!("{peer}, {shape}: {error}");
                    failures += 1;
                    f64::NAN
                });
                results.add(scenario.name, peer, shape, rate / 1e6);
            }
        }
    }
    failures
}

/// Items per second; `None` where the queue does not fit the shape.
fn measure<T: Item>(peer: &str, flow: Flow) -> Option<Result<f64, String>> {
    rivals::measure::<T>(peer, flow)
}

/// What paceline must reach, shape by shape and in the mean.
fn bars(results: &Results, scenarios: &[&str]) -> Vec<Bar> {
    let mut bars = against(results, scenarios, "paceline", "ArrayQueue", |_| Some(0.9), 1.1);
    bars.extend(against(results, scenarios, "paceline-x16", "ArrayQueue", batch_limit, f64::NAN));
    bars.extend(against(results, scenarios, "paceline-x16", "moodycamel-x16", |_| None, 1.1));
    bars
}

fn batch_limit(scenario: &str) -> Option<f64> {
    Some(if scenario.ends_with("65536") { 4.0 } else { 3.0 })
}

/// A bar for each shape that has a limit, and one on the geometric mean of all shapes.
fn against(
    results: &Results,
    scenarios: &[&str],
    ours: &str,
    theirs: &str,
    limit: fn(&str) -> Option<f64>,
    mean: f64,
) -> Vec<Bar> {
    let mut bars = Vec::new();
    let mut all: Vec<Vec<f64>> = Vec::new();
    for scenario in scenarios {
        for (shape, _) in SHAPES {
            let series = |peer| results.series(scenario, peer, shape);
            let what = format!("{scenario} {shape}: {ours} against {theirs}");
            let bar = Bar::ratio(
                what,
                AtLeast(limit(scenario).unwrap_or(mean)),
                series(ours),
                series(theirs),
            );
            all.push(bar.rounds.clone());
            if limit(scenario).is_some() {
                bars.push(bar);
            }
        }
    }
    if !mean.is_nan() {
        let rounds = all.iter().map(Vec::len).min().unwrap_or(0);
        let means = (0..rounds).map(|round| {
            let ratios: Vec<f64> = all.iter().map(|ratios| ratios[round]).collect();
            stats::geometric_mean(&ratios)
        });
        let what = format!("geometric mean: {ours} against {theirs}");
        bars.push(Bar { what, limit: AtLeast(mean), rounds: means.collect() });
    }
    bars
}
