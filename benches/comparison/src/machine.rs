//! The machine and the versions that a table was measured with.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Instant;

use serde_json::{Value, json};

use crate::sys;

/// The machine, the day, and the versions that the build recorded.
pub fn description() -> Value {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let programs = programs();
    let built = env!("VERSIONS").split(", ").filter_map(|entry| entry.split_once(' '));
    let versions = built.chain(programs.lines().filter_map(|line| line.split_once(' ')));
    json!({
        "cpu": cpu_model(),
        "cores": cores,
        "kernel": format!("Linux {}", kernel.trim()),
        "load before": load(),
        "date": today(),
        "versions": versions.collect::<BTreeMap<_, _>>(),
    })
}

/// The versions of the rivals and loads that are programs and installed, a line each.
fn programs() -> String {
    let packages = ["h2o", "nginx-light", "redis-server", "wrk"];
    let mut query = Command::new("dpkg-query");
    let output = query.args(["-W", "-f", "${Package} ${Version}\n"]).args(packages).output();
    output.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).into_owned())
}

fn today() -> String {
    let output = Command::new("date").args(["-u", "+%F"]).output();
    output.map_or("unknown".into(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

fn cpu_model() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(": ")).map_or("unknown CPU", |(_, model)| model).to_owned()
}

/// The load average of the last minute before the run: a busy machine measures its other work.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

/// Nanoseconds that a word takes from one processor to another and back, the least of several tries. On a virtual
/// machine whose processors share a cache in some minutes and not in others it says which minutes these are. None:
/// there is one processor.
pub fn round_trip() -> Option<f64> {
    const TRIES: u32 = 8;
    const ROUNDS: u32 = 2_000;
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return None;
    }
    let word = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..TRIES * ROUNDS).for_each(|round| hand_over(&word, 2 * round + 1)));
        let tries = (0..TRIES).map(|of| {
            let start = Instant::now();
            (of * ROUNDS..(of + 1) * ROUNDS).for_each(|round| hand_over(&word, 2 * round));
            start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
        });
        tries.min_by(f64::total_cmp)
    })
}

/// Waits until the word says so, and counts it up.
fn hand_over(word: &AtomicU32, turn: u32) {
    let mut looks = 0_u32;
    while word.load(Acquire) != turn {
        looks += 1;
        // Both may be on one processor.
        if looks.is_multiple_of(10_000) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
    word.store(turn + 1, Release);
}

/// How busy the machine was with other things while something was measured.
pub struct Neighbours {
    busy: f64,
    own: f64,
    total: f64,
}

impl Neighbours {
    /// CPU seconds so far, since boot and of this process with its children.
    pub fn now() -> Self {
        let ticks = ticks();
        let seconds = |columns: &[usize]| {
            columns.iter().filter_map(|&c| ticks.get(c)).sum::<u64>() as f64 / TICKS_PER_SECOND
        };
        // The columns of /proc/stat: user nice system idle iowait irq softirq steal.
        Self {
            busy: seconds(&[0, 1, 2, 5, 6, 7]),
            own: sys::own_cpu().as_secs_f64(),
            total: seconds(&[0, 1, 2, 3, 4, 5, 6, 7]),
        }
    }

    /// The share of the machine's CPU time that others have used since `self`, in percent.
    pub fn share_since(&self) -> f64 {
        let now = Self::now();
        let others = (now.busy - self.busy) - (now.own - self.own);
        (100.0 * others / (now.total - self.total)).max(0.0)
    }
}

/// USER_HZ, which Linux has fixed for user space on every architecture that matters here.
const TICKS_PER_SECOND: f64 = 100.0;

fn ticks() -> Vec<u64> {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let words = text.lines().next().unwrap_or_default().split_whitespace().skip(1);
    words.filter_map(|word| word.parse().ok()).collect()
}
