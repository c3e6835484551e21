//! `comparison echo`: echo servers under the same traffic, each in a process of its own.

mod load;
mod server;

use std::io;
use std::time::Duration;

use crate::options::Plan;
use crate::report::{self, Bar, Column, Results};
use crate::serve::{self, Slow};
use crate::stats::Limit::{self, AtLeast, AtMost};
use load::{Load, Schedule};
use server::{Launch, Server};

const PEERS: [&str; 12] = [
    "paceline",
    "paceline-eager",
    "epoll",
    "tokio",
    "tokio-bip",
    "asio",
    "libuv",
    "ace",
    "textbook",
    "shared",
    "half-sync",
    "io_uring",
];

const RATE: &str = "req/s";
const P50: &str = "p50 µs";
const P99: &str = "p99 µs";
const P999: &str = "p99.9 µs";
const CPU: &str = "server CPU µs/req";
const SWITCHES: &str = "switches/req";
const IDLE_BYTES: &str = "bytes/idle connection";
const WAKE_UPS: &str = "wake-ups/s";

const TRAFFIC_COLUMNS: [Column; 6] = [
    Column { metric: RATE, decimals: 0 },
    Column { metric: P50, decimals: 0 },
    Column { metric: P99, decimals: 0 },
    Column { metric: P999, decimals: 0 },
    Column { metric: CPU, decimals: 2 },
    Column { metric: SWITCHES, decimals: 3 },
];
const IDLE_COLUMN: Column = Column { metric: IDLE_BYTES, decimals: 0 };
const REST_COLUMN: Column = Column { metric: WAKE_UPS, decimals: 1 };

enum Traffic {
    /// So many requests on the way on each active connection.
    Closed {
        depth: usize,
    },
    Open(Schedule),
    /// None: what does a server do that has nothing to do?
    Rest,
}

struct Scenario {
    name: &'static str,
    what: &'static str,
    active: usize,
    idle: usize,
    size: usize,
    threads: usize,
    slow: Slow,
    traffic: Traffic,
}

const SMALL: usize = 64;

/// 20 000 requests per second, one in a hundred slow.
const MIXED: Schedule = Schedule { per_second: 20_000, random: true, slow_one_in: Some(100) };

const fn closed(
    name: &'static str,
    what: &'static str,
    active: usize,
    size: usize,
    depth: usize,
) -> Scenario {
    let traffic = Traffic::Closed { depth };
    Scenario { name, what, active, idle: 0, size, threads: 2, slow: Slow::Burn, traffic }
}

const fn mixed(name: &'static str, what: &'static str, slow: Slow) -> Scenario {
    let traffic = Traffic::Open(MIXED);
    Scenario { name, what, active: 500, idle: 0, size: SMALL, threads: 4, slow, traffic }
}

const SCENARIOS: [Scenario; 10] = [
    closed("c50", "64 bytes, 50 connections, 2 threads", 50, SMALL, 1),
    closed("c1000", "64 bytes, 1000 connections, 2 threads", 1000, SMALL, 1),
    Scenario {
        idle: 5000,
        ..closed("idle5000", "64 bytes, 50 busy + 5000 idle connections, 2 threads", 50, SMALL, 1)
    },
    closed("pipelined", "64 bytes, 50 connections, 16 requests deep, 2 threads", 50, SMALL, 16),
    closed("16k", "16 KiB, 50 connections, 2 threads", 50, 16 * 1024, 1),
    Scenario {
        traffic: Traffic::Open(Schedule { per_second: 100, random: false, slow_one_in: None }),
        ..closed("lone", "64 bytes, one connection, 100 requests/s, 2 threads", 1, SMALL, 1)
    },
    mixed(
        "slow-sleep",
        "500 connections, 20 000 requests/s offered, 1 % sleep 1 ms, 4 threads; latency of the cheap",
        Slow::Sleep,
    ),
    mixed(
        "slow-burn",
        "500 connections, 20 000 requests/s offered, 1 % burn 1 ms, 4 threads; latency of the cheap",
        Slow::Burn,
    ),
    Scenario {
        traffic: Traffic::Open(Schedule { per_second: 1000, ..MIXED }),
        ..mixed(
            "slow-database",
            "500 connections, 1000 requests/s offered, 1 % sleep 50 ms, 4 threads; latency of the cheap",
            Slow::Database,
        )
    },
    Scenario {
        traffic: Traffic::Rest,
        ..closed("rest", "50 connections and no traffic, 2 threads", 50, SMALL, 1)
    },
];

const QUICK: [&str; 3] = ["c50", "slow-sleep", "rest"];

impl Scenario {
    /// Some peers say something new in some scenarios only, and ACE's select() has its limit.
    fn admits(&self, peer: &str) -> bool {
        let slow = matches!(self.traffic, Traffic::Open(Schedule { slow_one_in: Some(_), .. }));
        match peer {
            "tokio-bip" => slow,
            "paceline-eager" => slow || self.name == "c50",
            "ace" => self.active + self.idle <= 1000,
            _ => true,
        }
    }

    fn columns(&self) -> Vec<Column> {
        match self.traffic {
            Traffic::Rest => vec![REST_COLUMN],
            _ if self.idle > 0 => [&TRAFFIC_COLUMNS[..], &[IDLE_COLUMN]].concat(),
            _ => TRAFFIC_COLUMNS.to_vec(),
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
    let mut failures = 0;
    for scenario in SCENARIOS.iter().filter(|s| chosen.contains(&s.name)) {
        let peers: Vec<_> = peers.iter().filter(|(peer, _)| scenario.admits(peer)).collect();
        for round in 1..=plan.rounds {
            for (peer, launch) in &peers {
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
        results.print(scenario.name, scenario.what, &PEERS, &scenario.columns());
        results.judge(bars(scenario.name, results), plan.quick);
    }
    report::outcome(failures)
}

/// The chosen peers that can run here, with how to start them.
fn launches(plan: &Plan) -> Result<Vec<(&'static str, Launch)>, String> {
    let mut launches = Vec::new();
    for peer in plan.peers(&PEERS)? {
        if let Err(error) = serve::probe(peer) {
            eprintln!("{peer} is left out: {error}");
            continue;
        }
        match server::launch(peer, plan) {
            Ok(Some(launch)) => launches.push((peer, launch)),
            Ok(None) => eprintln!("{peer} is left out: its development package is not installed"),
            Err(error) => return Err(format!("{peer}: {error}")),
        }
    }
    Ok(launches)
}

type Measured = Vec<(&'static str, f64)>;

fn measure(scenario: &Scenario, launch: &Launch, plan: &Plan) -> io::Result<Measured> {
    let server = Server::start(launch, scenario.threads, scenario.slow)?;
    let mut load = Load::new(scenario.size)?;
    load.connect(server.address, scenario.active)?;
    drive(&mut load, scenario, warm_up(plan.window))?;

    let mut measured = Measured::new();
    if scenario.idle > 0 {
        load.drain()?;
        let before = server.process.resident()?;
        load.connect(server.address, scenario.idle)?;
        let grown = server.process.resident()? as f64 - before as f64;
        measured.push((IDLE_BYTES, grown / scenario.idle as f64));
        drive(&mut load, scenario, warm_up(plan.window))?;
    }

    load.begin_window();
    let before = server.process.usage()?;
    let start = std::time::Instant::now();
    drive(&mut load, scenario, plan.window)?;
    let elapsed = start.elapsed().as_secs_f64();
    let after = server.process.usage()?;
    let requests = load.completed as f64;

    let cpu = (after.cpu - before.cpu).as_secs_f64() * 1e6;
    let switches = (after.switches - before.switches) as f64;
    if let Traffic::Rest = scenario.traffic {
        return Ok(vec![(WAKE_UPS, switches / elapsed)]);
    }
    let quantile = |q| load.latency.value_at_quantile(q) as f64 / 1e3;
    measured.extend([
        (RATE, requests / elapsed),
        (P50, quantile(0.5)),
        (P99, quantile(0.99)),
        (P999, quantile(0.999)),
        (CPU, cpu / requests),
        (SWITCHES, switches / requests),
    ]);
    load.drain()?;
    Ok(measured)
}

/// Long enough for pools to start, averages to settle and buffers to be touched.
fn warm_up(window: Duration) -> Duration {
    (window / 3).min(Duration::from_millis(300))
}

fn drive(load: &mut Load, scenario: &Scenario, time: Duration) -> io::Result<()> {
    match scenario.traffic {
        Traffic::Closed { depth } => load.closed(scenario.active, depth, time),
        Traffic::Open(schedule) => load.open_loop(schedule, time),
        Traffic::Rest => {
            std::thread::sleep(time);
            Ok(())
        }
    }
}

/// What paceline must reach in a scenario.
fn bars(scenario: &str, results: &Results) -> Vec<Bar> {
    let series = |peer, metric| results.series(scenario, peer, metric);
    let against = |what: &str, limit: Limit, metric, rival| {
        Bar::ratio(what, limit, series("paceline", metric), series(rival, metric))
    };
    let both =
        |metric, choose| report::best(&[series("tokio", metric), series("epoll", metric)], choose);
    let ours = |metric| series("paceline", metric);
    match scenario {
        "c50" => vec![
            Bar::ratio(
                "c50: requests/s against the best of tokio and epoll",
                AtLeast(1.10),
                ours(RATE),
                &both(RATE, f64::max),
            ),
            Bar::ratio(
                "c50: CPU per request against the best of tokio and epoll",
                AtMost(0.97),
                ours(CPU),
                &both(CPU, f64::min),
            ),
            against("c50: p99 against tokio", AtMost(0.8), P99, "tokio"),
            Bar::absolute("c50: context switches per request", AtMost(0.02), ours(SWITCHES)),
        ],
        "c1000" => vec![
            against("c1000: CPU per request against epoll", AtMost(1.0), CPU, "epoll"),
            against("c1000: requests/s against epoll", AtLeast(1.0), RATE, "epoll"),
        ],
        "idle5000" => {
            vec![Bar::absolute(
                "idle5000: bytes per idle connection",
                AtMost(512.0),
                ours(IDLE_BYTES),
            )]
        }
        "lone" => vec![against("lone: CPU per request against tokio", AtMost(2.0), CPU, "tokio")],
        "slow-sleep" => vec![
            against("slow-sleep: p99 of the cheap against tokio", AtMost(0.55), P99, "tokio"),
            against("slow-sleep: CPU per request against textbook", AtMost(0.85), CPU, "textbook"),
        ],
        "rest" => vec![Bar::absolute("rest: wake-ups per second", AtMost(0.0), ours(WAKE_UPS))],
        _ => Vec::new(),
    }
}
