//! `comparison http`: HTTP servers under the same load by `wrk`, each in a process of its own.

mod crowd;
pub mod serve;
mod servers;
mod wrk;

use std::io;
use std::time::Duration;

use crate::options::Plan;
use crate::report::{self, Bar, Column, Results};
use crate::stats::Limit::{self, AtLeast, AtMost};
use crowd::Hostile;
use servers::{Launch, Server};

const PEERS: [&str; 7] = ["paceline", "floor", "hyper", "actix-web", "nginx", "h2o", "evhttp"];
/// Those that a user could have taken instead: all but the floor.
const RIVALS: [&str; 5] = ["hyper", "actix-web", "nginx", "h2o", "evhttp"];

const RATE: &str = "req/s";
const P50: &str = "p50 µs";
const P99: &str = "p99 µs";
const CPU: &str = "server CPU µs/req";
const SWITCHES: &str = "switches/req";
const P99_BESIDE: &str = "p99 µs beside hostile";
const P99_RATIO: &str = "times";
const HOSTILE_BYTES: &str = "bytes/hostile client";
const IDLE_BYTES: &str = "bytes/idle connection";
const IDLE_HEAP: &str = "of the allocator";

const LOAD_COLUMNS: [Column; 5] = [
    Column { metric: RATE, decimals: 0 },
    Column { metric: CPU, decimals: 2 },
    Column { metric: SWITCHES, decimals: 3 },
    Column { metric: P50, decimals: 0 },
    Column { metric: P99, decimals: 0 },
];
const HOSTILE_COLUMNS: [Column; 4] = [
    Column { metric: P99, decimals: 0 },
    Column { metric: P99_BESIDE, decimals: 0 },
    Column { metric: P99_RATIO, decimals: 2 },
    Column { metric: HOSTILE_BYTES, decimals: 0 },
];
const IDLE_COLUMNS: [Column; 2] =
    [Column { metric: IDLE_BYTES, decimals: 0 }, Column { metric: IDLE_HEAP, decimals: 0 }];

enum Traffic {
    /// So many requests on the way on each connection.
    Load { connections: usize, depth: usize },
    /// Fifty connections without and with so many hostile clients of each kind beside them.
    Hostile { each: usize },
    /// So many connections that have nothing to say.
    Idle { connections: usize },
}

struct Scenario {
    name: &'static str,
    what: &'static str,
    threads: usize,
    traffic: Traffic,
}

const HEALTHY: usize = 50;
const CALM: Duration = Duration::from_secs(2);

const fn load(
    name: &'static str,
    what: &'static str,
    threads: usize,
    connections: usize,
    depth: usize,
) -> Scenario {
    Scenario { name, what, threads, traffic: Traffic::Load { connections, depth } }
}

const SCENARIOS: [Scenario; 8] = [
    load("c50", "50 connections, one thread", 1, 50, 1),
    load("c500", "500 connections, one thread", 1, 500, 1),
    load("x16", "50 connections, pipelined by 16, one thread", 1, 50, 16),
    load("c50-2", "50 connections, two threads", 2, 50, 1),
    load("c500-2", "500 connections, two threads", 2, 500, 1),
    load("x16-2", "50 connections, pipelined by 16, two threads", 2, 50, 16),
    Scenario {
        name: "hostile",
        what: "50 connections beside 1000 heads that never end and 1000 clients that never read, one thread",
        threads: 1,
        traffic: Traffic::Hostile { each: 1000 },
    },
    Scenario {
        name: "idle",
        what: "10 000 connections that have been served once, one thread",
        threads: 1,
        traffic: Traffic::Idle { connections: 10_000 },
    },
];

const QUICK: [&str; 2] = ["c50", "x16"];

impl Scenario {
    /// The floor keeps all that it cannot send, without a bound.
    fn admits(&self, peer: &str) -> bool {
        peer != "floor" || !matches!(self.traffic, Traffic::Hostile { .. })
    }

    fn columns(&self) -> &'static [Column] {
        match self.traffic {
            Traffic::Load { depth: 1, .. } => &LOAD_COLUMNS,
            Traffic::Load { .. } => &LOAD_COLUMNS[..3],
            Traffic::Hostile { .. } => &HOSTILE_COLUMNS,
            Traffic::Idle { .. } => &IDLE_COLUMNS,
        }
    }
}

/// Runs the whole comparison; the error names what could not be measured.
pub fn run(plan: &Plan, results: &mut Results) -> Result<(), String> {
    let names = SCENARIOS.each_ref().map(|s| s.name);
    if plan.list {
        println!("scenarios: {}\npeers: {}", names.join(", "), PEERS.join(", "));
        return Ok(());
    }
    let chosen = plan.scenarios(&names, &QUICK)?;
    let peers = launches(plan)?;
    if let Err(reason) = wrk::probe() {
        eprintln!("http is left out: {reason}");
        return Ok(());
    }
    let mut failures = 0;
    for scenario in SCENARIOS.iter().filter(|s| chosen.contains(&s.name)) {
        for round in 1..=plan.rounds {
            for &(peer, launch) in peers.iter().filter(|(peer, _)| scenario.admits(peer)) {
                eprintln!("{} {round}/{}: {peer}", scenario.name, plan.rounds);
                let measured = measure(scenario, launch, plan).unwrap_or_else(|error| {
                    eprintln!("{peer}: {error}");
                    failures += 1;
                    scenario.columns().iter().map(|c| (c.metric, f64::NAN)).collect()
                });
                for (metric, value) in measured {
                    results.add(scenario.name, peer, metric, value);
                }
            }
        }
        results.print(scenario.name, scenario.what, &PEERS, scenario.columns());
        results.judge(bars(scenario, results), plan.quick);
    }
    report::outcome(failures)
}

/// The chosen peers that can run here, with how to start them.
fn launches(plan: &Plan) -> Result<Vec<(&'static str, Launch)>, String> {
    let mut launches = Vec::new();
    for peer in plan.peers(&PEERS)? {
        match servers::launch(peer) {
            Ok(launch) => launches.push((peer, launch)),
            Err(reason) => eprintln!("{peer} is left out: {reason}"),
        }
    }
    Ok(launches)
}

type Measured = Vec<(&'static str, f64)>;

fn measure(scenario: &Scenario, launch: Launch, plan: &Plan) -> io::Result<Measured> {
    let mut server = Server::start(launch, scenario.threads)?;
    server.check()?;
    match scenario.traffic {
        Traffic::Load { connections, depth } => under_load(&server, connections, depth, plan),
        Traffic::Hostile { each } => beside_hostile(&server, each, plan),
        Traffic::Idle { connections } => idle(&mut server, connections),
    }
}

/// wrk's connecting is in the window: it costs every server about the same, and little.
fn under_load(
    server: &Server,
    connections: usize,
    depth: usize,
    plan: &Plan,
) -> io::Result<Measured> {
    let before = server.process.usage()?;
    let load = wrk::run(server.address, connections, depth, plan.window)?;
    let after = server.process.usage()?;
    let cpu = (after.cpu - before.cpu).as_secs_f64() * 1e6;
    let switches = (after.switches - before.switches) as f64;
    Ok(vec![
        (RATE, load.requests / load.seconds),
        (CPU, cpu / load.requests),
        (SWITCHES, switches / load.requests),
        (P50, load.p50),
        (P99, load.p99),
    ])
}

/// Both windows come after two seconds of the same load: those of a server that has just begun, and
/// those of a kernel that has just closed the windows of a thousand clients and asks for all of them
/// again 0.2, 0.6 and 1.4 s later, in soft interrupts of 10 ms, are not what the bar is about.
fn beside_hostile(server: &Server, each: usize, plan: &Plan) -> io::Result<Measured> {
    let healthy = || {
        wrk::run(server.address, HEALTHY, 1, CALM)?;
        wrk::run(server.address, HEALTHY, 1, plan.window)
    };
    let alone = healthy()?;
    let before = server.process.resident()? as f64;
    let hostile = Hostile::begin(server.address, each)?;
    settle(server)?;
    let beside = healthy()?;
    let grown = server.process.resident()? as f64 - before;
    drop(hostile);
    Ok(vec![
        (P99, alone.p99),
        (P99_BESIDE, beside.p99),
        (P99_RATIO, beside.p99 / alone.p99),
        (HOSTILE_BYTES, grown / (2 * each) as f64),
    ])
}

/// Waits until the server has worked off what it was sent: until it rests for half the time.
fn settle(server: &Server) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(100);
    for _ in 0..100 {
        let before = server.process.usage()?.cpu;
        std::thread::sleep(PAUSE);
        if server.process.usage()?.cpu - before < PAUSE / 2 {
            return Ok(());
        }
    }
    Err(io::Error::other("the server does not come to rest beside clients that do not read"))
}

fn idle(server: &mut Server, connections: usize) -> io::Result<Measured> {
    // One batch before: what the server needs for the first connections is not theirs.
    let first = crowd::idle(server.address, HEALTHY)?;
    let before = (server.process.resident()? as f64, server.heap()?);
    let idle = crowd::idle(server.address, connections)?;
    let after = (server.process.resident()? as f64, server.heap()?);
    drop((first, idle));
    let each = |before: f64, after: f64| (after - before) / connections as f64;
    Ok(vec![(IDLE_BYTES, each(before.0, after.0)), (IDLE_HEAP, each(before.1, after.1))])
}

/// What paceline must reach in a scenario.
fn bars(scenario: &Scenario, results: &Results) -> Vec<Bar> {
    let name = scenario.name;
    let series = |peer, metric| results.series(name, peer, metric);
    let ours = |metric| series("paceline", metric);
    let against = |what: &str, limit: Limit, metric, peer| {
        Bar::ratio(format!("{name}: {what}"), limit, ours(metric), series(peer, metric))
    };
    let best = |what: &str, limit: Limit, metric, choose| {
        let rivals = report::best(&RIVALS.map(|rival| series(rival, metric)), choose);
        Bar::ratio(format!("{name}: {what}"), limit, ours(metric), &rivals)
    };
    match scenario.traffic {
        Traffic::Load { depth, .. } if depth > 1 => vec![
            against("CPU per request against hyper", AtMost(0.7), CPU, "hyper"),
            against("requests/s against hyper", AtLeast(1.0), RATE, "hyper"),
        ],
        Traffic::Load { .. } => vec![
            best("CPU per request against the best rival", AtMost(0.95), CPU, f64::min),
            against("CPU per request against the floor", AtMost(1.15), CPU, "floor"),
            best("requests/s against the best rival", AtLeast(0.97), RATE, f64::max),
            against("p99 against hyper", AtMost(1.0), P99, "hyper"),
        ],
        Traffic::Hostile { .. } => {
            let what = format!("{name}: p99 of the healthy, times that without");
            vec![Bar::absolute(what, AtMost(2.0), ours(P99_RATIO))]
        }
        Traffic::Idle { .. } => [IDLE_BYTES, IDLE_HEAP]
            .map(|metric| Bar::absolute(format!("{name}: {metric}"), AtMost(1024.0), ours(metric)))
            .into(),
    }
}
