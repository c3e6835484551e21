//! `comparison resp`: stores that speak the protocol of Redis under the same load by
//! `redis-benchmark`, each in a process of its own.

pub mod floor;

use std::env;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::options::Plan;
use crate::process::{self, Process};
use crate::report::{self, Bar, Column, Results};
use crate::stats::Limit::{AtLeast, AtMost};

/// paceline's example with one thread and with two, redis-server, and fixed answers.
const PEERS: [&str; 4] = ["paceline", "paceline-2", "redis", "floor"];

const CLIENTS: usize = 50;

const RATE: &str = "req/s";
const CPU: &str = "server CPU µs/req";
const SWITCHES: &str = "switches/req";
const P50: &str = "p50 ms";
const P99: &str = "p99 ms";

const COLUMNS: [Column; 5] = [
    Column { metric: RATE, decimals: 0 },
    Column { metric: CPU, decimals: 3 },
    Column { metric: SWITCHES, decimals: 3 },
    Column { metric: P50, decimals: 2 },
    Column { metric: P99, decimals: 2 },
];

struct Scenario {
    name: &'static str,
    what: &'static str,
    test: &'static str,
    depth: usize,
    /// About as many as come in a second.
    requests: f64,
    max_cpu: f64,
    min_rate: f64,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "set",
        what: "SET, 50 clients",
        test: "set",
        depth: 1,
        requests: 60_000.0,
        max_cpu: 0.9,
        min_rate: 0.88,
    },
    Scenario {
        name: "get",
        what: "GET, 50 clients",
        test: "get",
        depth: 1,
        requests: 60_000.0,
        max_cpu: 0.9,
        min_rate: 0.88,
    },
    Scenario {
        name: "set16",
        what: "SET, 50 clients, pipelined by 16",
        test: "set",
        depth: 16,
        requests: 800_000.0,
        max_cpu: 0.8,
        min_rate: 1.05,
    },
    Scenario {
        name: "get16",
        what: "GET, 50 clients, pipelined by 16",
        test: "get",
        depth: 16,
        requests: 800_000.0,
        max_cpu: 0.75,
        min_rate: 0.88,
    },
];

const QUICK: [&str; 2] = ["set", "get16"];

/// Runs the whole comparison; the error names what could not be measured.
pub fn run(plan: &Plan, results: &mut Results) -> Result<(), String> {
    let names = SCENARIOS.each_ref().map(|s| s.name);
    if plan.list {
        println!("scenarios: {}\npeers: {}", names.join(", "), PEERS.join(", "));
        return Ok(());
    }
    let chosen = plan.scenarios(&names, &QUICK)?;
    if !is_installed("redis-benchmark") {
        eprintln!("resp is left out: redis-benchmark is not installed");
        return Ok(());
    }
    let peers = launches(plan)?;
    let mut failures = 0;
    for scenario in SCENARIOS.iter().filter(|s| chosen.contains(&s.name)) {
        for round in 1..=plan.rounds {
            for (peer, launch) in &peers {
                eprintln!("{} {round}/{}: {peer}", scenario.name, plan.rounds);
                let measured = measure(scenario, launch, plan).unwrap_or_else(|error| {
                    eprintln!("{peer}: {error}");
                    failures += 1;
                    COLUMNS.map(|c| (c.metric, f64::NAN))
                });
                for (metric, value) in measured {
                    results.add(scenario.name, peer, metric, value);
                }
            }
        }
        results.print(scenario.name, scenario.what, &PEERS, &COLUMNS);
        results.judge(bars(scenario, results), plan.quick);
    }
    report::outcome(failures)
}

/// How a peer's server is started.
enum Launch {
    Example { program: PathBuf, threads: usize },
    Redis,
    Floor,
}

/// The chosen peers that can run here, with how to start them.
fn launches(plan: &Plan) -> Result<Vec<(&'static str, Launch)>, String> {
    let example = || process::example("resp").map_err(|error| format!("resp: {error}"));
    let mut launches = Vec::new();
    for peer in plan.peers(&PEERS)? {
        let launch = match peer {
            "paceline" => Launch::Example { program: example()?, threads: 1 },
            "paceline-2" => Launch::Example { program: example()?, threads: 2 },
            "redis" if !is_installed("redis-server") => {
                eprintln!("redis is left out: redis-server is not installed");
                continue;
            }
            "redis" => Launch::Redis,
            _ => Launch::Floor,
        };
        launches.push((peer, launch));
    }
    Ok(launches)
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok()
}

fn start(launch: &Launch) -> io::Result<(Process, SocketAddr)> {
    let mut command = match launch {
        Launch::Redis => return start_redis(),
        Launch::Floor => Command::new(env::current_exe()?),
        Launch::Example { program, .. } => Command::new(program),
    };
    match launch {
        Launch::Example { threads, .. } => {
            command.args(["--listen", "127.0.0.1:0", "--threads", &threads.to_string()])
        }
        _ => command.arg("serve-resp"),
    };
    let mut process = Process::start(command)?;
    let address = process.announced()?;
    Ok((process, address))
}

/// Without persistence, and otherwise as it comes.
fn start_redis() -> io::Result<(Process, SocketAddr)> {
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
    command.args(["--save", "", "--appendonly", "no", "--logfile", "/dev/null"]);
    let mut process = Process::start(command)?;
    process.await_listener(address)?;
    Ok((process, address))
}

/// The benchmark's connecting is in the window: it costs every server about the same, and little.
fn measure(
    scenario: &Scenario,
    launch: &Launch,
    plan: &Plan,
) -> io::Result<[(&'static str, f64); 5]> {
    let (server, address) = start(launch)?;
    let requests = (scenario.requests * plan.window.as_secs_f64()).ceil();
    // There is a value to get then.
    benchmark(address, "set", scenario.depth, 1000.0)?;
    benchmark(address, scenario.test, scenario.depth, (requests / 10.0).ceil())?;
    let before = server.usage()?;
    let load = benchmark(address, scenario.test, scenario.depth, requests)?;
    let after = server.usage()?;
    let cpu = (after.cpu - before.cpu).as_secs_f64() * 1e6;
    let switches = (after.switches - before.switches) as f64;
    Ok([
        (RATE, load.rate),
        (CPU, cpu / requests),
        (SWITCHES, switches / requests),
        (P50, load.p50),
        (P99, load.p99),
    ])
}

struct Load {
    rate: f64,
    p50: f64,
    p99: f64,
}

fn benchmark(address: SocketAddr, test: &str, depth: usize, requests: f64) -> io::Result<Load> {
    let output = Command::new("redis-benchmark")
        .args(["-p", &address.port().to_string(), "--csv", "-t", test])
        .args(["-c", &CLIENTS.to_string(), "-P", &depth.to_string(), "-n", &requests.to_string()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).ok_or_else(|| io::Error::other(format!("redis-benchmark said {text:?}")))
}

/// The last line has the test's name, requests per second, and the mean, least, median, 95th and 99th
/// percentile and greatest latency in milliseconds.
fn parse(text: &str) -> Option<Load> {
    let fields: Vec<&str> =
        text.lines().last()?.split(',').map(|field| field.trim_matches('"')).collect();
    let number = |index: usize| fields.get(index)?.parse().ok();
    Some(Load { rate: number(1)?, p50: number(4)?, p99: number(6)? })
}

/// What paceline must reach in a scenario.
fn bars(scenario: &Scenario, results: &Results) -> Vec<Bar> {
    let name = scenario.name;
    let series = |peer, metric| results.series(name, peer, metric);
    let ratio = |what: &str, limit, metric, ours, theirs| {
        Bar::ratio(format!("{name}: {what}"), limit, series(ours, metric), series(theirs, metric))
    };
    let (max_cpu, min_rate) = (AtMost(scenario.max_cpu), AtLeast(scenario.min_rate));
    vec![
        ratio("CPU per request against redis", max_cpu, CPU, "paceline", "redis"),
        ratio("requests/s against redis", min_rate, RATE, "paceline", "redis"),
        ratio("requests/s, two threads against one", AtLeast(1.0), RATE, "paceline-2", "paceline"),
        ratio("CPU per request, two threads against redis", max_cpu, CPU, "paceline-2", "redis"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_the_benchmark_is_read() {
        let text = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
            \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
            \"SET\",\"66666.66\",\"0.396\",\"0.144\",\"0.383\",\"0.543\",\"0.655\",\"1.103\"\n";
        let load = parse(text).unwrap();
        assert_eq!((load.rate, load.p50, load.p99), (66666.66, 0.383, 0.655));
        assert!(parse("Could not connect to Redis").is_none());
    }
}
