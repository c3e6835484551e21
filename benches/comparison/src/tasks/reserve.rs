//! How soon a critical task starts: on a pool at rest, and while all its ordinary threads sleep in long
//! tasks. One thread is reserved for the lane in both.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use paceline::task::WorkerPool;
use paceline::{Lane, Pool};

use crate::submit::work;

pub const IDLE: &str = "at rest";
pub const ASLEEP: &str = "all ordinary threads asleep";

pub const ALL: [(&str, bool); 2] = [(IDLE, false), (ASLEEP, true)];

const ORDINARY: usize = 2;
/// How long the pool rests before each critical task.
const REST: Duration = Duration::from_millis(1);
/// Windows that are measured, since a p99 needs many tasks.
const WINDOWS: u32 = 8;

/// Median and p99 of the time from submission to the first instruction, in microseconds.
pub fn start_latency(asleep: bool, window: Duration) -> Result<(f64, f64), String> {
    let pool = Pool::builder().threads(ORDINARY).reserve(Lane::Critical, 1).build();
    let pool = pool.map_err(|error| error.to_string())?;
    let workers = WorkerPool::new(&pool);
    let critical = workers.task_type("critical").lane(Lane::Critical).build();
    let critical = critical.map_err(|error| error.to_string())?;
    let (begun, end) = (Arc::new(Barrier::new(ORDINARY + 1)), Arc::new(Barrier::new(ORDINARY + 1)));
    if asleep {
        for _ in 0..ORDINARY {
            let (begun, end) = (begun.clone(), end.clone());
            let long = move || {
                begun.wait();
                end.wait();
            };
            pool.post(long).map_err(|rejected| rejected.to_string())?;
        }
        begun.wait();
    }
    let mut latencies = Vec::new();
    let begin = work::now();
    let whole = WINDOWS * window;
    while work::now() - begin < whole.as_nanos() as u64 {
        std::thread::sleep(REST);
        let submitted = work::now();
        let task = critical.submit(|_| work::started()).map_err(|rejected| rejected.to_string())?;
        task.wait().map_err(|error| error.to_string())?;
        let started = work::take_start().ok_or("the task noted no time")?;
        latencies.push((started - submitted) as f64 / 1e3);
    }
    if asleep {
        end.wait();
    }
    latencies.sort_by(f64::total_cmp);
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    Ok((at(0.5), at(0.99)))
}
