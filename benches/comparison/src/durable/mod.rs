//! `comparison durable`: empty tasks that are stored by a broker, and one process that runs them, beside Celery, RQ and
//! Dramatiq on Redis. The tasks are stored first; measured is the time from the first that the worker runs to the last.
//!
//! The rivals are left out where Python (COMPARISON_PYTHON, by default python3) does not have them.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use paceline::Pool;
use paceline::bridge::tasks::Job;
use paceline::task::WorkerPool;

use crate::bridge::broker::{self, Broker};
use crate::options::Plan;
use crate::process::Process;
use crate::report::{self, Bar, Column, Results};
use crate::stats::Limit::AtLeast;

const SCENARIO: &str = "empty";
const OURS: &str = "paceline";
const CELERY: &str = "celery";
const PEERS: [&str; 4] = [OURS, CELERY, "rq", "dramatiq"];
const RATE: &str = "tasks/s";
const COLUMNS: [Column; 1] = [Column { metric: RATE, decimals: 0 }];
/// The worker has ended, or stands still.
const PATIENCE: Duration = Duration::from_secs(120);
const RIVALS: &str = include_str!("rivals.py");

pub fn run(plan: &Plan, results: &mut Results) -> Result<(), String> {
    if plan.list {
        println!("scenarios: {SCENARIO}\npeers: {}", PEERS.join(", "));
        return Ok(());
    }
    if !broker::is_installed() {
        eprintln!("durable is left out: nats-server is not installed");
        return Ok(());
    }
    let peers: Vec<&str> =
        plan.peers(&PEERS)?.into_iter().filter(|peer| *peer == OURS || has_rival(peer)).collect();
    let mut failures = 0;
    for round in 1..=plan.rounds {
        eprintln!("round {round}/{}", plan.rounds);
        for &peer in &peers {
            let (count, measured) = match peer {
                OURS => (if plan.quick { 500 } else { 50_000 }, ours as fn(usize) -> _),
                CELERY => (
                    if plan.quick { 50 } else { 5_000 },
                    (|count| rival(CELERY, count)) as fn(usize) -> _,
                ),
                "rq" => (
                    if plan.quick { 50 } else { 2_000 },
                    (|count| rival("rq", count)) as fn(usize) -> _,
                ),
                _ => (
                    if plan.quick { 50 } else { 5_000 },
                    (|count| rival("dramatiq", count)) as fn(usize) -> _,
                ),
            };
            let rate =
                measured(count).map(|time: Duration| (count - 1) as f64 / time.as_secs_f64());
            let rate = rate.unwrap_or_else(|error| {
                eprintln!("{peer}: {error}");
                failures += 1;
                f64::NAN
            });
            results.add(SCENARIO, peer, RATE, rate);
        }
    }
    results.print(SCENARIO, "empty tasks, stored before, in one process", &peers, &COLUMNS);
    let series = |peer| results.series(SCENARIO, peer, RATE).to_vec();
    if peers.contains(&CELERY) {
        let (ours, theirs) = (series(OURS), series(CELERY));
        let bar = Bar::ratio("tasks/s, beside Celery", AtLeast(5.0), &ours, &theirs);
        results.judge(vec![bar], plan.quick);
    }
    report::outcome(failures)
}

fn has_rival(peer: &str) -> bool {
    let import = format!("import redis, {peer}");
    let found = Command::new(python()).args(["-c", &import]).stderr(Stdio::null()).status();
    let is_there = found.is_ok_and(|status| status.success())
        && Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_there {
        eprintln!("{peer} is left out: {} does not have it, or there is no redis-server", python());
    }
    is_there
}

fn python() -> String {
    env::var("COMPARISON_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// A directory that is gone with this.
struct Directory(PathBuf);

impl Directory {
    fn new(peer: &str) -> Result<Self, String> {
        let name = format!("comparison-durable-{peer}-{}", std::process::id());
        let path = env::temp_dir().join(name);
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _left = fs::remove_dir_all(&self.0);
    }
}

/// The time between the files `first` and `last`.
fn watch(directory: &Path) -> Result<Duration, String> {
    let end = Instant::now() + PATIENCE;
    let until = |name: &str| {
        let path = directory.join(name);
        while !path.exists() {
            if Instant::now() > end {
                return Err(format!("there was no {name} task in time"));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(Instant::now())
    };
    let first = until("first")?;
    Ok(until("last")? - first)
}

fn ours(count: usize) -> Result<Duration, String> {
    let broker = Broker::start().map_err(|error| format!("nats-server: {error}"))?;
    let directory = Directory::new(OURS)?;
    let text = |error: paceline::Error| error.to_string();
    let pool = Pool::new().map_err(text)?;
    let queue = WorkerPool::new(&pool).durable("bench").nats(broker.url()).open().map_err(text)?;
    let stored = Arc::new(AtomicU64::new(0));
    for number in 0..count {
        // No more than its mailbox holds.
        while number as u64 - stored.load(Relaxed) > 10_000 {
            std::thread::sleep(Duration::from_micros(100));
        }
        let stored = Arc::clone(&stored);
        let task = queue.task("empty").ignore_result();
        let then = task.submit_then(move |task| {
            if task.is_ok() {
                stored.fetch_add(1, Relaxed);
            }
        });
        then.map_err(text)?;
    }
    let end = Instant::now() + PATIENCE;
    while stored.load(Relaxed) < count as u64 {
        if Instant::now() > end {
            return Err("the broker has not stored all tasks in time".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(own);
    command.args(["work-durable", &broker.url(), &count.to_string()]).arg(&directory.0);
    let _worker = Process::start(command).map_err(|error| format!("the worker: {error}"))?;
    watch(&directory.0)
}

/// The worker's process.
pub fn work(url: &str, count: u64, directory: PathBuf) -> Result<(), String> {
    let text = |error: paceline::Error| error.to_string();
    let pool = Pool::new().map_err(text)?;
    let ran = AtomicU64::new(0);
    let mark = move |name: &str| {
        // Who waits for it says that it is not there.
        let _written = fs::write(directory.join(name), "");
    };
    let _queue = WorkerPool::new(&pool)
        .durable("bench")
        .nats(url)
        .in_flight(256)
        .task("empty", move |_: &Job<'_>| -> Vec<u8> {
            match ran.fetch_add(1, Relaxed) + 1 {
                1 => mark("first"),
                number if number == count => mark("last"),
                _ => {}
            }
            Vec::new()
        })
        .open()
        .map_err(text)?;
    loop {
        std::thread::park();
    }
}

fn rival(peer: &str, count: usize) -> Result<Duration, String> {
    let directory = Directory::new(peer)?;
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|free| free.local_addr())
        .map_err(|error| error.to_string())?;
    let mut redis = Command::new("redis-server");
    redis.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1", "--save", ""]);
    redis.args(["--appendonly", "yes", "--appendfsync", "everysec", "--dir"]).arg(&directory.0);
    let mut server = Process::start(redis).map_err(|error| format!("redis-server: {error}"))?;
    server.await_listener(address).map_err(|error| format!("redis-server: {error}"))?;
    let script = directory.0.join("rivals.py");
    fs::write(&script, RIVALS).map_err(|error| error.to_string())?;
    let command = |what: &str| {
        let mut command = Command::new(python());
        command.arg(&script).args([peer, what, &count.to_string()]).arg(&directory.0);
        command.env("REDIS_URL", format!("redis://{address}/0")).stderr(Stdio::null());
        command
    };
    let filled = command("fill").status().map_err(|error| error.to_string())?;
    if !filled.success() {
        return Err(format!("its tasks could not be submitted: {filled}"));
    }
    let _worker =
        Process::start(command("work")).map_err(|error| format!("the worker: {error}"))?;
    watch(&directory.0)
}
