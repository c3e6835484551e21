//! Load by `wrk`, which measures what a client sees.

use std::io;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/wrk.lua");
const THREADS: usize = 2;

pub struct Load {
    pub requests: f64,
    pub seconds: f64,
    /// In microseconds. Not of pipelined requests: wrk sees their batches only, and then mends the
    /// distribution as if each request had been timed.
    pub p50: f64,
    pub p99: f64,
}

/// Says why there can be no load, if that is so.
pub fn probe() -> Result<(), String> {
    let started = Command::new("wrk").stdout(Stdio::null()).stderr(Stdio::null()).status();
    started.map(drop).map_err(|error| format!("wrk: {error}"))
}

/// Keeps `depth` requests on the way on each of `connections` for whole seconds, at least one.
pub fn run(
    address: SocketAddr,
    connections: usize,
    depth: usize,
    time: Duration,
) -> io::Result<Load> {
    let output = Command::new("wrk")
        .args(["-t", &THREADS.to_string(), "-c", &connections.to_string()])
        .args(["-d", &format!("{}s", time.as_secs().max(1)), "-s", SCRIPT])
        .args([&format!("http://{address}/"), "--", &depth.to_string()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).ok_or_else(|| {
        let reason = String::from_utf8_lossy(&output.stderr);
        io::Error::other(format!("wrk failed: {text}{reason}"))
    })
}

/// The script's line: requests, microseconds, p50 and p99 in microseconds, errors.
fn parse(text: &str) -> Option<Load> {
    let line = text.lines().find_map(|line| line.strip_prefix("measured "))?;
    let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let &[requests, micros, p50, p99, errors] = numbers.as_slice() else { return None };
    (errors == 0.0 && requests > 0.0).then_some(Load { requests, seconds: micros / 1e6, p50, p99 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_errors_is_no_measurement() {
        assert!(parse("measured 10 1000000 5 9 1\n").is_none());
        assert!(parse("measured 0 1000000 5 9 0\n").is_none());
        assert!(parse("nothing\n").is_none());
        let load = parse("noise\nmeasured 10 1000000 5 9 0\n").expect("a good line");
        assert_eq!((load.requests, load.seconds, load.p50, load.p99), (10.0, 1.0, 5.0, 9.0));
    }
}
