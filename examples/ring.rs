//! Several producers, one table, no lock.
//!
//! Weather stations measure, each in a thread of its own. The pool keeps one table of what all of
//! them have seen. A serial ring calls its handler on one thread at a time, with everything that has
//! come since the last call, so the table simply belongs to the handler.
//!
//! ```text
//! cargo run -p examples --example ring
//! ```

use paceline::{Pool, Ring};
use std::error::Error;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const STATIONS: [&str; 3] = ["harbour", "airport", "summit"];
const PER_STATION: usize = 100_000;
const BATCH: usize = 100;

/// What a ring carries: plain data of a fixed size.
#[derive(Clone, Copy)]
struct Reading {
    station: usize,
    celsius: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::new()?;

    let (finished, table) = mpsc::channel();
    let mut rows = [Row::EMPTY; STATIONS.len()];
    let mut left = STATIONS.len() * PER_STATION;
    let ring = Ring::serial(&pool, 4096, move |readings: &[Reading]| {
        for reading in readings {
            rows[reading.station].add(reading.celsius);
        }
        left -= readings.len();
        if left == 0 {
            finished.send(rows).expect("the main thread waits for the table");
        }
    })?;

    // A full ring makes its producers wait. A batch is published by one compare-and-swap.
    thread::scope(|scope| {
        for station in 0..STATIONS.len() {
            let ring = ring.clone();
            scope.spawn(move || {
                for first in (0..PER_STATION).step_by(BATCH) {
                    let readings: [_; BATCH] = std::array::from_fn(|n| measure(station, first + n));
                    ring.publish_batch(&readings).expect("the ring is open");
                }
            });
        }
    });

    println!("{:<8} {:>8} {:>7} {:>7} {:>7}", "station", "readings", "lowest", "mean", "highest");
    for (name, row) in STATIONS.iter().zip(table.recv()?) {
        let mean = row.sum / row.readings as f64;
        println!(
            "{name:<8} {:>8} {:>7.1} {mean:>7.1} {:>7.1}",
            row.readings, row.lowest, row.highest
        );
    }
    drop(ring);
    let _ = pool.shutdown(Duration::from_secs(1));
    Ok(())
}

/// A day and a night go by in a thousand readings.
fn measure(station: usize, number: usize) -> Reading {
    let warmth = [14.0, 11.0, -3.0][station];
    let hour = (number % 1000) as f64 / 1000.0 * 24.0;
    let sun = ((hour - 9.0) / 24.0 * std::f64::consts::TAU).sin();
    Reading { station, celsius: warmth + 6.0 * sun }
}

/// What one station has seen.
#[derive(Clone, Copy)]
struct Row {
    readings: u64,
    lowest: f64,
    highest: f64,
    sum: f64,
}

impl Row {
    const EMPTY: Self =
        Self { readings: 0, lowest: f64::INFINITY, highest: f64::NEG_INFINITY, sum: 0.0 };

    fn add(&mut self, celsius: f64) {
        self.readings += 1;
        self.lowest = self.lowest.min(celsius);
        self.highest = self.highest.max(celsius);
        self.sum += celsius;
    }
}
