//! `comparison bridge`: keys of a hub over a NATS broker beside the bare client, async-nats, that the bridge uses: messages
//! per second at most once and at least once, the time from a publisher to a handler, and what the export of a key costs
//! those who subscribe to it in the same process.
//!
//! The broker, nats-server, is a process of its own, started anew for each measurement. The bare client lives as the
//! bridge's does: on one thread of its own; who publishes is another.

pub mod bare;
pub mod broker;
mod local;
pub mod ours;

use std::time::{Duration, Instant};

use crate::options::Plan;
use crate::report::{self, Bar, Column, Results};
use crate::stats::Limit::{AtLeast, AtMost};
use broker::Broker;

const AT_MOST_ONCE: &str = "at-most-once";
const AT_LEAST_ONCE: &str = "at-least-once";
const ALONE: &str = "alone";
const PACED: &str = "paced";
const LOCAL: &str = "local";
const SCENARIOS: [&str; 5] = [AT_MOST_ONCE, AT_LEAST_ONCE, ALONE, PACED, LOCAL];

const OURS: &str = "paceline";
const BARE: &str = "async-nats";
/// With one header, as the bridge gives each message one.
const BARE_HEADER: &str = "async-nats, one header";
const PEERS: [&str; 3] = [OURS, BARE, BARE_HEADER];

/// Bytes of a message.
pub const SIZE: usize = 128;
/// Messages under way to the broker's stream.
const IN_FLIGHT: usize = 256;
/// Messages per second of the scenario that is paced.
const PACE: f64 = 10_000.0;
/// Nothing comes for so long: it is lost.
pub const PATIENCE: Duration = Duration::from_secs(30);

const RATE: &str = "k messages/s";
const P50: &str = "p50 µs";
const P99: &str = "p99 µs";
const COST: &str = "ns/publication";

const RATES: [Column; 1] = [Column { metric: RATE, decimals: 1 }];
const TIMES: [Column; 2] =
    [Column { metric: P50, decimals: 1 }, Column { metric: P99, decimals: 1 }];
const COSTS: [Column; 3] = [
    Column { metric: COST, decimals: 0 },
    Column { metric: P50, decimals: 1 },
    Column { metric: P99, decimals: 1 },
];

type Figures = Vec<(&'static str, f64)>;

pub fn run(plan: &Plan, results: &mut Results) -> Result<(), String> {
    if plan.list {
        println!("scenarios: {}\npeers: {}", SCENARIOS.join(", "), PEERS.join(", "));
        return Ok(());
    }
    let (peers, scenarios) = (plan.peers(&PEERS)?, plan.scenarios(&SCENARIOS, &SCENARIOS)?);
    if !broker::is_installed() {
        eprintln!("bridge is left out: nats-server is not installed");
        return Ok(());
    }
    let mut failures = 0;
    for round in 1..=plan.rounds {
        eprintln!("round {round}/{}", plan.rounds);
        for &scenario in &scenarios {
            let subjects = if scenario == LOCAL { &local::SUBJECTS[..] } else { &peers[..] };
            for &subject in subjects {
                let measured = measure(scenario, subject, plan.window).unwrap_or_else(|error| {
                    eprintln!("{subject}, {scenario}: {error}");
                    failures += 1;
                    columns(scenario).iter().map(|column| (column.metric, f64::NAN)).collect()
                });
                for (metric, value) in measured {
                    results.add(scenario, subject, metric, value);
                }
            }
        }
    }
    for &scenario in &scenarios {
        let subjects = if scenario == LOCAL { &local::SUBJECTS[..] } else { &PEERS[..] };
        results.print(scenario, describe(scenario), subjects, columns(scenario));
    }
    results.judge(bars(results), plan.quick);
    report::outcome(failures)
}

fn measure(scenario: &str, subject: &str, window: Duration) -> Result<Figures, String> {
    let broker = Broker::start().map_err(|error| format!("nats-server: {error}"))?;
    let url = broker.url();
    let has_header = subject == BARE_HEADER;
    match (scenario, subject) {
        (LOCAL, _) => local::measure(subject, &url, window),
        (AT_MOST_ONCE, OURS) => rate(&mut ours::Stream::at_most_once(&url)?, window),
        (AT_MOST_ONCE, _) => rate(&mut bare::Stream::at_most_once(&url, has_header)?, window),
        (AT_LEAST_ONCE, OURS) => rate(&mut ours::Stream::at_least_once(&url)?, window),
        (AT_LEAST_ONCE, _) => rate(&mut bare::Stream::at_least_once(&url, has_header)?, window),
        (_, OURS) => times(&mut ours::Pair::new(&url)?, scenario, window),
        _ => times(&mut bare::Pair::new(&url, has_header)?, scenario, window),
    }
}

/// Messages in one direction.
pub trait Publish {
    fn publish(&mut self, count: usize) -> Result<(), String>;
    /// Waits until the broker has all.
    fn finish(&mut self) -> Result<(), String>;
}

/// From the first publication until the broker has the last.
fn rate(peer: &mut dyn Publish, window: Duration) -> Result<Figures, String> {
    const BURST: usize = 1000;
    peer.publish(BURST)?;
    peer.finish()?;
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < window {
        peer.publish(BURST)?;
        count += BURST;
    }
    peer.finish()?;
    Ok(vec![(RATE, count as f64 / start.elapsed().as_secs_f64() / 1e3)])
}

/// Messages from one hub, or client, through the broker to a handler of another.
pub trait Travel {
    fn send(&mut self, payload: Vec<u8>) -> Result<(), String>;
    /// The next that has come, and when.
    fn arrival(&mut self) -> Result<(Vec<u8>, Instant), String>;
}

fn times(peer: &mut dyn Travel, scenario: &str, window: Duration) -> Result<Figures, String> {
    let mut travel = |number: u64| {
        let sent = Instant::now();
        peer.send(payload(number))?;
        let (_, came) = peer.arrival()?;
        Ok::<_, String>(came.duration_since(sent))
    };
    for number in 0..200 {
        travel(number)?;
    }
    let mut taken = Vec::new();
    if scenario == ALONE {
        let start = Instant::now();
        while start.elapsed() < window {
            taken.push(travel(0)?);
        }
        return Ok(percentiles(taken));
    }
    let count = (PACE * window.as_secs_f64()).ceil() as u64;
    let start = Instant::now();
    let mut sent = Vec::new();
    pace(count, |number| {
        sent.push(Instant::now());
        peer.send(payload(number))
    })?;
    for _ in 0..count {
        let (text, came) = peer.arrival()?;
        let number = u64::from_le_bytes(text[..8].try_into().expect("eight bytes"));
        taken.push(came.duration_since(sent[number as usize]));
    }
    if start.elapsed() > window * 3 / 2 {
        return Err("it does not keep up with the pace".into());
    }
    Ok(percentiles(taken))
}

/// Calls it so often, at the pace.
fn pace(count: u64, mut each: impl FnMut(u64) -> Result<(), String>) -> Result<(), String> {
    let start = Instant::now();
    for number in 0..count {
        let due = start + Duration::from_secs_f64(number as f64 / PACE);
        if let Some(early) = due.checked_duration_since(Instant::now()) {
            std::thread::sleep(early);
        }
        each(number)?;
    }
    Ok(())
}

fn payload(number: u64) -> Vec<u8> {
    let mut payload = vec![b'x'; SIZE];
    payload[..8].copy_from_slice(&number.to_le_bytes());
    payload
}

fn percentiles(mut taken: Vec<Duration>) -> Figures {
    taken.sort_unstable();
    let at = |share: f64| taken[(taken.len() as f64 * share) as usize].as_secs_f64() * 1e6;
    vec![(P50, at(0.5)), (P99, at(0.99))]
}

fn columns(scenario: &str) -> &'static [Column] {
    match scenario {
        AT_MOST_ONCE | AT_LEAST_ONCE => &RATES,
        LOCAL => &COSTS,
        _ => &TIMES,
    }
}

fn describe(scenario: &str) -> &'static str {
    match scenario {
        AT_MOST_ONCE => "exported at most once, 128 bytes, until the broker has all",
        AT_LEAST_ONCE => "stored in a stream on disk, 128 bytes, 256 under way",
        ALONE => "from a publisher through the broker to a handler, one message at a time",
        PACED => "from a publisher through the broker to a handler, 10 000 messages/s",
        _ => "a key with one subscriber in the process: flat out, and times at 10 000 messages/s",
    }
}

/// What paceline must reach.
fn bars(results: &Results) -> Vec<Bar> {
    let bar = |what: &str, limit, scenario, metric| {
        let series = |peer| results.series(scenario, peer, metric);
        Bar::ratio(what, limit, series(OURS), series(BARE))
    };
    let local = |what: &str, metric| {
        let series = |subject| results.series(LOCAL, subject, metric);
        let (with, without) = (series(local::EXPORTED), series(local::ALONE));
        Bar::ratio(what, AtMost(1.05), with, without)
    };
    vec![
        bar("at most once against the bare client", AtLeast(0.8), AT_MOST_ONCE, RATE),
        bar("at least once against the bare client", AtLeast(0.8), AT_LEAST_ONCE, RATE),
        bar("one at a time, p50 against the bare client", AtMost(1.3), ALONE, P50),
        bar("at 10 000 messages/s, p50 against the bare client", AtMost(1.3), PACED, P50),
        local("a publication of an exported key against one that is not, flat out", COST),
        local("the same at 10 000 messages/s, p50 until a local handler runs", P50),
    ]
}
