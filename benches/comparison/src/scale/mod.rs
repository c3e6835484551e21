//! `comparison scale`: how far bridges go. It measures what one message costs each of those that it passes, and works out
//! what 100 hosts ask of their bridges and of the brokers: `model.rs` says how.
//!
//! CPU time is the kernel's count of a process: this one has the hub, and the broker is one of its own. What an import costs
//! at most once is measured with the bare client as the publisher, whose own costs are measured without it and taken off.
//! Bytes are those of the loopback interface, so they need a machine that is at rest.

mod model;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use paceline::bridge::{Bridge, Import};
use paceline::hub::{Hub, Message, Subscription};

use crate::bridge::{PATIENCE, Publish, SIZE, bare, broker, broker::Broker, ours};
use crate::options::Plan;
use crate::report::{self, Column, Results};
use crate::sys;
use model::{Costs, LAYOUTS, Load, Rule};

const COSTS: &str = "costs";
const HOSTS: &str = "hosts";
const LIMITS: &str = "limits";
const LOCAL: &str = "a local subscriber";
const MOST: &str = "at most once";
const LEAST: &str = "at least once";

/// In the order of the fields of [`Rule`].
const RULE: [&str; 6] = [
    "export CPU µs",
    "import CPU µs",
    "broker in, CPU µs",
    "broker out, CPU µs",
    "bytes in",
    "bytes out",
];
const LOADS: [(&str, usize); 6] = [
    ("host CPU %", 1),
    ("broker k/s in", 0),
    ("broker k/s out", 0),
    ("broker MB/s in", 1),
    ("broker MB/s out", 1),
    ("broker cores", 2),
];
const ENDS: [&str; 4] = ["bridge", "stream", "broker's cores", "broker's link"];
/// Messages per second of each host.
const RATE: f64 = 1000.0;

pub fn run(plan: &Plan, results: &mut Results) -> Result<(), String> {
    if plan.list {
        println!("scenarios: {COSTS}\npeers: {MOST}, {LEAST}");
        return Ok(());
    }
    if !broker::is_installed() {
        eprintln!("scale is left out: nats-server is not installed");
        return Ok(());
    }
    let count = if plan.quick { 2_000 } else { 100_000 };
    for round in 1..=plan.rounds {
        eprintln!("round {round}/{}", plan.rounds);
        results.add(COSTS, LOCAL, RULE[0], local(count)? * 1e6);
        for (name, rule) in [(MOST, at_most_once(count)?), (LEAST, at_least_once(count)?)] {
            let times =
                [rule.export, rule.import, rule.broker_in, rule.broker_out].map(|s| s * 1e6);
            let figures = times.into_iter().chain([rule.bytes_in, rule.bytes_out]);
            RULE.iter()
                .zip(figures)
                .for_each(|(metric, value)| results.add(COSTS, name, metric, value));
        }
    }
    let columns =
        RULE.map(|metric| Column { metric, decimals: if metric.contains('µ') { 2 } else { 0 } });
    let what = format!("a message of {SIZE} bytes");
    results.print(COSTS, &what, &[LOCAL, MOST, LEAST], &columns);
    let costs = costs(results);
    let names = LAYOUTS.map(|layout| layout.name);
    for layout in &LAYOUTS {
        let (centre, leaf) = costs.brokers(layout, RATE);
        let busiest = leaf.filter(|leaf| leaf.cpu > centre.cpu).unwrap_or(centre);
        let Load { messages_in, messages_out, bytes_in, bytes_out, cpu } = busiest;
        let host = costs.host(layout, RATE) * 100.0;
        let values =
            [host, messages_in / 1e3, messages_out / 1e3, bytes_in / 1e6, bytes_out / 1e6, cpu];
        LOADS
            .iter()
            .zip(values)
            .for_each(|(column, value)| results.add(HOSTS, layout.name, column.0, value));
        for (end, value) in ENDS.iter().zip(costs.limits(layout)) {
            // NaN: this is no limit.
            let value = if value.is_finite() { value } else { f64::NAN };
            results.add(LIMITS, layout.name, end, value);
        }
    }
    let columns = LOADS.map(|(metric, decimals)| Column { metric, decimals });
    let what = format!("{} hosts, {RATE} messages/s of each, and the busiest broker", model::HOSTS);
    results.print(HOSTS, &what, &names, &columns);
    let columns = ENDS.map(|metric| Column { metric, decimals: 0 });
    results.print(LIMITS, "messages/s of each host until this is the limit", &names, &columns);
    report::outcome(0)
}

/// The medians of what was measured.
fn costs(results: &Results) -> Costs {
    let median = |name, metric| crate::stats::median(results.series(COSTS, name, metric));
    let rule = |name| {
        let [export, import, broker_in, broker_out, bytes_in, bytes_out] =
            RULE.map(|metric| median(name, metric));
        let [export, import, broker_in, broker_out] =
            [export, import, broker_in, broker_out].map(|us| us / 1e6);
        Rule { export, import, broker_in, broker_out, bytes_in, bytes_out }
    };
    Costs { local: median(LOCAL, RULE[0]) / 1e6, most: rule(MOST), least: rule(LEAST) }
}

/// What was spent: CPU seconds of this process and of the broker, and bytes, until now.
#[derive(Clone, Copy)]
struct Spent([f64; 3]);

impl Spent {
    fn now(broker: &Broker) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let bytes = fs::read_to_string("/sys/class/net/lo/statistics/tx_bytes").map_err(text)?;
        let bytes = bytes.trim().parse().map_err(|_| "the loopback interface counts no bytes")?;
        let theirs = broker.cpu().map_err(text)?;
        Ok(Self([sys::own_cpu().as_secs_f64(), theirs.as_secs_f64(), bytes]))
    }

    /// By one of so many messages since.
    fn each(self, broker: &Broker, count: usize) -> Result<[f64; 3], String> {
        let Self(now) = Self::now(broker)?;
        Ok([0, 1, 2].map(|at| (now[at] - self.0[at]) / count as f64))
    }
}

/// A hub, and how many messages have come to its one subscriber.
struct Counted {
    hub: Hub,
    count: Arc<AtomicU64>,
    _subscription: Subscription,
}

impl Counted {
    fn new() -> Result<Self, String> {
        let hub = ours::hub()?;
        let count = Arc::<AtomicU64>::default();
        let counts = Arc::clone(&count);
        let subscription = hub.subscribe("a.*", move |_: &Message<'_>| {
            counts.fetch_add(1, Relaxed);
        });
        Ok(Self { hub, count, _subscription: subscription.map_err(|error| error.to_string())? })
    }

    fn until(&self, count: usize) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        while self.count.load(Relaxed) < count as u64 {
            if Instant::now() > end {
                return Err("a message is lost".into());
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }
}

/// Messages between two looks at those that have come.
const BURST: usize = 500;

fn local(count: usize) -> Result<f64, String> {
    let counted = Counted::new()?;
    let before = sys::own_cpu();
    for done in (0..count).step_by(BURST) {
        for _ in 0..BURST {
            let published = counted.hub.publish("a.b", &[b'x'; SIZE][..]);
            let _receipt = published.map_err(|error| error.to_string())?;
        }
        counted.until(done + BURST)?;
    }
    Ok((sys::own_cpu() - before).as_secs_f64() / count as f64)
}

fn start() -> Result<Broker, String> {
    Broker::start().map_err(|error| format!("nats-server: {error}"))
}

/// What so many messages cost.
fn publish(broker: &Broker, peer: &mut dyn Publish, count: usize) -> Result<[f64; 3], String> {
    peer.publish(BURST)?;
    peer.finish()?;
    let before = Spent::now(broker)?;
    peer.publish(count)?;
    peer.finish()?;
    before.each(broker, count)
}

fn at_most_once(count: usize) -> Result<Rule, String> {
    let broker = start()?;
    let mut bare = bare::Stream::at_most_once(&broker.url(), true)?;
    let [bare_own, broker_in, bytes_in] = publish(&broker, &mut bare, count)?;
    let [export, ..] = publish(&broker, &mut ours::Stream::at_most_once(&broker.url())?, count)?;
    let counted = Counted::new()?;
    let _bridge = ours::open(Bridge::nats(&counted.hub, broker.url()).import("a.*"))?;
    // The broker has the subscription some time after the connection.
    std::thread::sleep(Duration::from_millis(50));
    let before = Spent::now(&broker)?;
    for done in (0..count).step_by(BURST) {
        bare.publish(BURST)?;
        counted.until(done + BURST)?;
    }
    let [own, theirs, bytes] = before.each(&broker, count)?;
    let (import, broker_out, bytes_out) = (own - bare_own, theirs - broker_in, bytes - bytes_in);
    Ok(Rule { export, import, broker_in, broker_out, bytes_in, bytes_out })
}

/// What is stored is imported later.
fn at_least_once(count: usize) -> Result<Rule, String> {
    let broker = start()?;
    let [export, broker_in, bytes_in] =
        publish(&broker, &mut ours::Stream::at_least_once(&broker.url())?, count)?;
    let counted = Counted::new()?;
    let before = Spent::now(&broker)?;
    let rule = Import::new("a.*").at_least_once("A", "b");
    let bridge = ours::open(Bridge::nats(&counted.hub, broker.url()).import(rule))?;
    counted.until(count + BURST)?;
    drop(bridge);
    let [import, broker_out, bytes_out] = before.each(&broker, count + BURST)?;
    Ok(Rule { export, import, broker_in, broker_out, bytes_in, bytes_out })
}
