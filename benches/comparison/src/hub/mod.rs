//! `comparison hub`: deliveries per second, counted in handlers, to 1000 subscribers, to 10 and to one; what
//! an idle subscription weighs; whether a million keys, or subscriptions that come and go, slow publishing
//! down; and what publishing allocates.

mod costs;
mod fan;

use std::time::Duration;

use crate::options::Plan;
use crate::report::{self, Bar, Column, Results};
use crate::stats::Limit::{AtLeast, AtMost};

const THOUSAND: &str = "to-1000";
const TEN: &str = "to-10";
const ONE: &str = "to-one";
const COSTS: &str = "costs";
const SCENARIOS: [&str; 4] = [THOUSAND, TEN, ONE, COSTS];

/// Nothing arrives for so long although it was published: it is lost.
const PATIENCE: Duration = Duration::from_secs(30);

const RATE: &str = "M deliveries/s";
const RATE_COLUMNS: [Column; 1] = [Column { metric: RATE, decimals: 1 }];

pub fn run(plan: &Plan, results: &mut Results) -> Result<(), String> {
    let names = fan::ALL.map(|(name, _)| name);
    if plan.list {
        println!("scenarios: {}\npeers: {}", SCENARIOS.join(", "), names.join(", "));
        return Ok(());
    }
    let peers = plan.peers(&names)?;
    let scenarios = plan.scenarios(&SCENARIOS, &SCENARIOS)?;
    let mut failures = 0;
    for round in 1..=plan.rounds {
        eprintln!("round {round}/{}", plan.rounds);
        for &scenario in &scenarios {
            if scenario == COSTS {
                for (metric, value) in costs::measure(plan.quick, plan.window) {
                    results.add(COSTS, metric, costs::FIGURE, value);
                }
                continue;
            }
            for (name, make) in fan::ALL.iter().filter(|(name, _)| peers.contains(name)) {
                let Some(shape) = shape(scenario, name) else { continue };
                let rate = fan::rate(*make, shape, plan.window).unwrap_or_else(|error| {
                    eprintln!("{name}, {scenario}: {error}");
                    failures += 1;
                    f64::NAN
                });
                results.add(scenario, name, RATE, rate);
            }
        }
    }
    for scenario in &scenarios {
        if *scenario == COSTS {
            let columns = [Column { metric: costs::FIGURE, decimals: 2 }];
            results.print(COSTS, "what paceline's hub costs by itself", &costs::ALL, &columns);
        } else {
            results.print(scenario, describe(scenario), &names, &RATE_COLUMNS);
        }
    }
    results.judge(bars(results), plan.quick);
    report::outcome(failures)
}

/// What a peer does in a scenario. None: it takes no part.
fn shape(scenario: &str, peer: &str) -> Option<fan::Shape> {
    let shape = |subscribers, capacity, burst| fan::Shape { subscribers, capacity, burst };
    match scenario {
        // tokio's receivers lose what they do not read in time: a burst must fit.
        THOUSAND => (peer != fan::CROSSBEAM).then(|| shape(1000, 1024, 1024)),
        TEN => (peer != fan::CROSSBEAM).then(|| shape(10, 1024, 1024)),
        // ZeroMQ drops for a subscriber that is full, and tokio's receiver loses.
        _ if peer == fan::ZEROMQ || peer == fan::TOKIO => Some(shape(1, 1024, 1024)),
        _ => Some(shape(1, 1024, 1 << 16)),
    }
}

fn describe(scenario: &str) -> &'static str {
    match scenario {
        THOUSAND => "1000 subscribers, bursts of 1024 messages of 8 bytes",
        TEN => "10 subscribers, bursts of 1024 messages of 8 bytes",
        _ => {
            "one subscriber, capacity 1024; bursts of 65536 to those that make their publisher wait"
        }
    }
}

/// What paceline must reach.
fn bars(results: &Results) -> Vec<Bar> {
    let rate = |scenario, peer| results.series(scenario, peer, RATE);
    let against = |what: &str, scenario, limit, rival| {
        Bar::ratio(what, AtLeast(limit), rate(scenario, fan::OURS), rate(scenario, rival))
    };
    let cost = |metric| results.series(COSTS, metric, costs::FIGURE);
    vec![
        against("to 1000 against tokio's broadcast", THOUSAND, 3.0, fan::TOKIO),
        against("to 10 against tokio's broadcast", TEN, 2.0, fan::TOKIO),
        against("to one against tokio's broadcast", ONE, 2.0, fan::TOKIO),
        against("to 1000 against ZeroMQ inproc", THOUSAND, 20.0, fan::ZEROMQ),
        against("to 10 against ZeroMQ inproc", TEN, 20.0, fan::ZEROMQ),
        against("to one against ZeroMQ inproc", ONE, 20.0, fan::ZEROMQ),
        Bar::absolute("bytes of an idle subscription", AtMost(200.0), cost(costs::BYTES)),
        Bar::absolute("bytes of one to a key of its own", AtMost(400.0), cost(costs::OWN)),
        Bar::absolute("one of a million keys against one of ten", AtMost(3.5), cost(costs::KEYS)),
        Bar::absolute(
            "publish rate beside 100 000 subscribe/unsubscribe per second",
            AtLeast(0.7),
            cost(costs::CHURN),
        ),
        Bar::absolute("allocations per inline publish", AtMost(0.0), cost(costs::ALLOCATIONS)),
    ]
}
