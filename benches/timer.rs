//! What a timer costs: arming and cancelling (most timers never fire), postponing, and firing.
//!
//! Each is measured from a thread outside the pool, with few and with many other timers pending,
//! since the point of a wheel is that their number does not matter.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use paceline::{Pool, Timer};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
/// Timers that wait while others are measured.
const CROWDS: [u32; 3] = [0, 1_000, 100_000];
/// Timers that fire together.
const BURST: u64 = 1_000;

fn pool() -> Pool {
    Pool::builder().threads(2).build().expect("a pool of two threads")
}

/// A pool in which `crowd` timers wait, with deadlines spread over an hour and a second.
fn crowded(crowd: u32) -> (Pool, Vec<Timer>) {
    let pool = pool();
    let delay = |n: u32| HOUR + Duration::from_secs(1) * n / crowd;
    let timers = (0..crowd).map(|n| arm(&pool, delay(n))).collect();
    (pool, timers)
}

fn arm(pool: &Pool, delay: Duration) -> Timer {
    pool.after(delay, || ()).expect("room for a timer")
}

fn arm_and_cancel(c: &mut Criterion) {
    let mut group = c.benchmark_group("timer/arm_and_cancel");
    group.throughput(Throughput::Elements(1));
    for crowd in CROWDS {
        let (pool, timers) = crowded(crowd);
        group.bench_function(BenchmarkId::new("pending", crowd), |b| {
            b.iter(|| arm(&pool, 2 * HOUR).cancel());
        });
        drop(timers);
    }
    group.finish();
}

fn postpone(c: &mut Criterion) {
    let pool = pool();
    let timer = arm(&pool, HOUR);
    c.bench_function("timer/postpone", |b| b.iter(|| timer.postpone(black_box(2 * HOUR))));
}

/// Arms timers that are due at once and waits until the last of them has run. What is reported is
/// the time per timer, with everything between arming and running.
fn fire(c: &mut Criterion) {
    let pool = pool();
    let mut group = c.benchmark_group("timer/fire");
    group.throughput(Throughput::Elements(BURST));
    group.bench_function("burst", |b| b.iter(|| fire_burst(&pool)));
    group.finish();
}

fn fire_burst(pool: &Pool) {
    let fired = Arc::new(AtomicU64::new(0));
    for _ in 0..BURST {
        let fired = Arc::clone(&fired);
        let work = move || {
            fired.fetch_add(1, Ordering::Relaxed);
        };
        pool.after(Duration::ZERO, work).expect("room for a timer");
    }
    while fired.load(Ordering::Relaxed) < BURST {
        std::thread::yield_now();
    }
}

criterion_group!(benches, arm_and_cancel, postpone, fire);
criterion_main!(benches);
