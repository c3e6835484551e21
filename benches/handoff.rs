//! What it takes to get something handled: `cargo bench --bench handoff`.
//!
//! * `event, pool at rest`: a byte into a socket until its handler has run; the leader sleeps at epoll.
//! * `task, pool at rest`: an empty task until it has run; a follower, or the leader, sleeps.
//! * `64 events at once`: 64 sockets become readable; the leader keeps one and queues the rest.
//! * `serial ring`: events published by this thread until the handler has seen them.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use paceline::{Flow, Handle, HandleOptions, Interest, Pool, Ring};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;

/// Long enough for the watch to end, so that the pool is at rest.
const REST: Duration = Duration::from_millis(6);

fn wait_for(seen: &AtomicU64, target: u64) {
    while seen.load(Acquire) < target {
        std::hint::spin_loop();
    }
}

/// Registers one end of a socket pair; its handler counts the bytes that the other end sends.
fn counting(pool: &Pool, seen: &Arc<AtomicU64>) -> (UnixStream, Handle<UnixStream>) {
    let (bell, socket) = UnixStream::pair().expect("a socket pair");
    socket.set_nonblocking(true).expect("non-blocking mode");
    let seen = Arc::clone(seen);
    let options = HandleOptions::new().interest(Interest::READABLE);
    let handle = pool.register_with(socket, options, move |socket: &mut UnixStream, _| {
        let mut bytes = [0; 64];
        match socket.read(&mut bytes) {
            Ok(0) => Flow::Done,
            Ok(count) => {
                seen.fetch_add(count as u64, Release);
                // Fewer than there was room for: the socket is empty.
                Flow::Wait
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Flow::Wait,
            Err(_) => Flow::Done,
        }
    });
    (bell, handle.expect("a registration"))
}

fn at_rest(c: &mut Criterion) {
    let pool = Pool::builder().threads(2).build().expect("a pool of two threads");
    let seen = Arc::new(AtomicU64::new(0));
    let (mut bell, _handle) = counting(&pool, &seen);
    let mut group = c.benchmark_group("handoff");
    group.sample_size(10);
    let mut measure = |name: &str, publish: &mut dyn FnMut()| {
        group.bench_function(name, |b| {
            b.iter_custom(|rounds| {
                let mut took = Duration::ZERO;
                for _ in 0..rounds {
                    std::thread::sleep(REST);
                    let target = seen.load(Acquire) + 1;
                    let start = std::time::Instant::now();
                    publish();
                    wait_for(&seen, target);
                    took += start.elapsed();
                }
                took
            });
        });
    };
    measure("event, pool at rest", &mut || {
        bell.write_all(&[1]).expect("an open socket");
    });
    measure("task, pool at rest", &mut || {
        let seen = Arc::clone(&seen);
        let counts = move || {
            seen.fetch_add(1, Release);
        };
        pool.post(counts).expect("an open pool");
    });
    group.finish();
}

fn bursts(c: &mut Criterion) {
    const EVENTS: u64 = 64;
    const RING_EVENTS: u64 = 4096;
    let pool = Pool::builder().threads(2).build().expect("a pool of two threads");
    let seen = Arc::new(AtomicU64::new(0));
    let mut handles: Vec<_> = (0..EVENTS).map(|_| counting(&pool, &seen)).collect();
    let mut group = c.benchmark_group("handoff");

    group.throughput(Throughput::Elements(EVENTS));
    group.bench_function("64 events at once", |b| {
        b.iter(|| {
            let target = seen.load(Acquire) + EVENTS;
            for (bell, _) in &mut handles {
                bell.write_all(&[1]).expect("an open socket");
            }
            wait_for(&seen, target);
        });
    });

    let handled = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&handled);
    let ring = Ring::serial(&pool, 1024, move |events: &[u64]| {
        counts.fetch_add(events.len() as u64, Release);
    })
    .expect("a ring");
    group.throughput(Throughput::Elements(RING_EVENTS));
    group.bench_function("serial ring", |b| {
        b.iter(|| {
            let target = handled.load(Relaxed) + RING_EVENTS;
            for event in 0..RING_EVENTS {
                ring.publish(event).expect("an open ring");
            }
            wait_for(&handled, target);
        });
    });
    group.finish();
}

criterion_group!(benches, at_rest, bursts);
criterion_main!(benches);
