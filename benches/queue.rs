//! What a `Queue` costs per item: on one thread, where only instructions count, and between threads
//! that push and pop as fast as they can, beside crossbeam's `ArrayQueue`.
//!
//! The full comparison with other queues is `cargo run --release -p comparison -- queue`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crossbeam_queue::ArrayQueue;
use crossbeam_utils::Backoff;
use paceline::Queue;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

const CAPACITY: usize = 1024;
const BATCH: usize = 16;

fn queue<T>() -> Queue<T> {
    Queue::new(CAPACITY).expect("a valid capacity")
}

/// Items go in and out on the same thread: the price of the instructions.
fn on_one_thread<const WORDS: usize>(c: &mut Criterion) {
    let mut group = c.benchmark_group(format!("queue/one_thread/{}_bytes", WORDS * 8));
    let item = [7u64; WORDS];

    group.throughput(Throughput::Elements(1));
    let array = ArrayQueue::new(CAPACITY);
    group.bench_function("array_queue", |b| {
        b.iter(|| (array.push(black_box(item)).is_ok(), array.pop()));
    });
    let single = queue();
    group.bench_function("single", |b| {
        b.iter(|| (single.push(black_box(item)).is_ok(), single.pop()));
    });

    group.throughput(Throughput::Elements(BATCH as u64));
    let batches = queue();
    let items = [item; BATCH];
    let mut out = Vec::with_capacity(BATCH);
    group.bench_function("batch", |b| {
        b.iter(|| {
            batches.push_batch_copied(black_box(&items));
            batches.pop_batch(&mut out, BATCH);
            black_box(&out);
            out.clear();
        });
    });
    group.finish();
}

/// As many producers as consumers: the time in which one item passes.
fn between_threads<const WORDS: usize>(c: &mut Criterion) {
    let mut group = c.benchmark_group(format!("queue/threads/{}_bytes", WORDS * 8));
    group.throughput(Throughput::Elements(1));
    for pairs in [1, 2] {
        let shape = format!("{pairs}p{pairs}c");
        let array = ArrayQueue::new(CAPACITY);
        group.bench_function(BenchmarkId::new("array_queue", &shape), |b| {
            let push = |item| array.push(item).is_ok();
            b.iter_custom(|items| pass::<WORDS>(pairs, items, &push, &|| array.pop()));
        });
        let single = queue();
        group.bench_function(BenchmarkId::new("single", &shape), |b| {
            let push = |item| single.push(item).is_ok();
            b.iter_custom(|items| pass::<WORDS>(pairs, items, &push, &|| single.pop()));
        });
        let batches = queue();
        group.bench_function(BenchmarkId::new("batch", &shape), |b| {
            b.iter_custom(|items| pass_batches::<WORDS>(pairs, items, &batches));
        });
    }
    group.finish();
}

/// Passes at least `items` items, split among the threads.
fn pass<const WORDS: usize>(
    pairs: u64,
    items: u64,
    push: &(impl Fn([u64; WORDS]) -> bool + Sync),
    pop: &(impl Fn() -> Option<[u64; WORDS]> + Sync),
) -> Duration {
    let each = items.div_ceil(pairs);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..pairs {
            scope.spawn(|| (0..each).for_each(|i| patiently(|| push([i; WORDS]).then_some(()))));
            scope.spawn(|| (0..each).map(|_| patiently(pop)).for_each(|item| _ = black_box(item)));
        }
    });
    start.elapsed()
}

fn pass_batches<const WORDS: usize>(
    pairs: u64,
    items: u64,
    queue: &Queue<[u64; WORDS]>,
) -> Duration {
    let each = items.div_ceil(pairs) as usize;
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..pairs {
            scope.spawn(|| push_in_batches(queue, each));
            scope.spawn(|| pop_in_batches(queue, each));
        }
    });
    start.elapsed()
}

fn push_in_batches<const WORDS: usize>(queue: &Queue<[u64; WORDS]>, count: usize) {
    let items = [[7; WORDS]; BATCH];
    let mut left = count;
    while left > 0 {
        let batch = &items[..left.min(BATCH)];
        left -= patiently(|| Some(queue.push_batch_copied(batch)).filter(|&pushed| pushed > 0));
    }
}

fn pop_in_batches<const WORDS: usize>(queue: &Queue<[u64; WORDS]>, count: usize) {
    let mut out = Vec::with_capacity(BATCH);
    let mut left = count;
    while left > 0 {
        let most = left.min(BATCH);
        left -= patiently(|| Some(queue.pop_batch(&mut out, most)).filter(|&popped| popped > 0));
        black_box(&out);
        out.clear();
    }
}

/// Tries until there is an answer, spinning and then yielding in between.
fn patiently<R>(mut attempt: impl FnMut() -> Option<R>) -> R {
    let backoff = Backoff::new();
    loop {
        match attempt() {
            Some(answer) => return answer,
            None => backoff.snooze(),
        }
    }
}

fn benches(c: &mut Criterion) {
    on_one_thread::<1>(c);
    on_one_thread::<7>(c);
    between_threads::<1>(c);
    between_threads::<7>(c);
}

criterion_group! {
    name = queue_group;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(20);
    targets = benches
}
criterion_main!(queue_group);
