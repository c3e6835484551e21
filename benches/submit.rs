//! What a task costs, from posting to having run: `cargo bench --bench submit`.
//!
//! Each measurement posts a burst of empty tasks and waits until all have run, so the figure holds
//! both ends. Two workers.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use paceline::Pool;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const BURST: u64 = 4096;

/// Static, so that no task counts references.
static RAN: AtomicU64 = AtomicU64::new(0);

fn task() {
    RAN.fetch_add(1, Relaxed);
}

fn wait_for(target: u64) {
    let mut spins = 0u32;
    while RAN.load(Relaxed) < target {
        spins += 1;
        if spins.is_multiple_of(64) { std::thread::yield_now() } else { spin_loop() }
    }
}

fn submit(c: &mut Criterion) {
    let pool = Pool::builder().threads(2).build().expect("a pool of two threads");
    let mut group = c.benchmark_group("submit");
    group.throughput(Throughput::Elements(BURST));

    group.bench_function("post", |b| {
        b.iter(|| {
            let target = RAN.load(Relaxed) + BURST;
            for _ in 0..BURST {
                pool.post(task).expect("an open pool");
            }
            wait_for(target);
        });
    });
    group.bench_function("post_batch", |b| {
        b.iter(|| {
            let target = RAN.load(Relaxed) + BURST;
            pool.post_batch((0..BURST).map(|_| task)).expect("an open pool");
            wait_for(target);
        });
    });
    group.bench_function("submit and wait for each", |b| {
        b.iter_batched(
            Vec::new,
            |mut tasks| {
                tasks.extend((0..BURST).map(|n| pool.submit(move || n).expect("an open pool")));
                tasks.into_iter().map(|task| task.wait().expect("it ran")).sum::<u64>()
            },
            BatchSize::PerIteration,
        );
    });
    let strand = pool.strand().expect("a strand");
    group.bench_function("strand", |b| {
        b.iter(|| {
            let target = RAN.load(Relaxed) + BURST;
            for _ in 0..BURST {
                strand.post(task).expect("an open pool");
            }
            wait_for(target);
        });
    });
    group.finish();
}

criterion_group!(benches, submit);
criterion_main!(benches);
