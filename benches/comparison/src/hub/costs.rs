//! What the hub costs by itself.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use paceline::Pool;
use paceline::hub::{Execution, Hub, Key, Message, Subscription};

use crate::submit::allocations;

pub const FIGURE: &str = "figure";
pub const BYTES: &str = "bytes of an idle subscription, a thousand to a key";
pub const OWN: &str = "bytes of an idle subscription to a key of its own, key included";
pub const PUBLISH: &str = "ns to publish to one of ten keys, handled inline";
pub const KEYS: &str = "the same, one of a million keys: ratio";
pub const LINE: &str = "ns to read one of a million pairs of lines, each found by the one before";
pub const CHURN: &str = "publish rate beside 100 000 subscribe/unsubscribe per second: ratio";
pub const ALLOCATIONS: &str = "allocations per inline publish";

pub const ALL: [&str; 7] = [BYTES, OWN, PUBLISH, KEYS, LINE, CHURN, ALLOCATIONS];

pub fn measure(quick: bool, window: Duration) -> Vec<(&'static str, f64)> {
    let many = if quick { 10_000 } else { 1_000_000 };
    let (ten, ratio) = keys(many, window);
    vec![
        (BYTES, idle_bytes(many, 1000)),
        (OWN, idle_bytes(many, 1)),
        (PUBLISH, ten),
        (KEYS, ratio),
        (LINE, line(many, window)),
        (CHURN, churn(window)),
        (ALLOCATIONS, publish_allocations()),
    ]
}

fn hub() -> Hub {
    let pool = Pool::builder().threads(1).build().expect("a thread can be started");
    Hub::new(&pool).expect("a hub")
}

/// Bytes of the heap for each of `count` subscriptions, `to_a_key` to each key.
fn idle_bytes(count: usize, to_a_key: usize) -> f64 {
    let hub = hub();
    let mut subscriptions: Vec<Subscription> = Vec::with_capacity(count);
    let before = allocations::heap_bytes();
    for number in 0..count {
        let key = format!("key.{}", number / to_a_key);
        subscriptions.push(hub.subscribe(&key, |_: &Message<'_>| ()).expect("a subscription"));
    }
    let after = allocations::heap_bytes();
    drop(subscriptions);
    (after - before) as f64 / count as f64
}

/// Nanoseconds to publish to one of ten keys, and how many times as long one of `many` takes. Each key has an
/// inline subscription, so that no mailbox is in the figure. The publisher has the keys at hand, and not who subscribes.
fn keys(many: usize, window: Duration) -> (f64, f64) {
    let hub = hub();
    let subscribe = |number: usize| {
        let text = format!("key.{number}");
        let key = hub.key(&text).expect("a key");
        let inline = hub.subscription(&text).execution(Execution::Inline);
        let subscription = inline.serve_shared(|message: &Message<'_>| {
            black_box(message.payload().len());
        });
        (key, subscription.expect("a subscription"))
    };
    let (all, _subscriptions): (Vec<Key>, Vec<Subscription>) = (0..many).map(subscribe).unzip();
    let time = |keys: &[Key]| {
        // The first message to a key finds its route.
        for key in keys {
            let _ = hub.publish(key, &[0; 8]).expect("an open hub");
        }
        let (start, mut count, mut at) = (Instant::now(), 0u64, 0usize);
        while start.elapsed() < window {
            for _ in 0..1000 {
                // Far from the one before.
                at = (at + 7919) % keys.len();
                let _ = hub.publish(&keys[at], &[0; 8]).expect("an open hub");
            }
            count += 1000;
        }
        start.elapsed().as_nanos() as f64 / count as f64
    };
    let (ten, million) = (time(&all[..10]), time(&all));
    (ten, million / ten)
}

/// Nanoseconds until a line is there that no cache has, which whoever publishes to one of a million keys waits for at
/// least once.
fn line(many: usize, window: Duration) -> f64 {
    #[repr(align(128))]
    struct Pair(usize);
    // One cycle through all, in no order that a processor could guess (Sattolo's, with SplitMix64's steps).
    let mut pairs: Vec<Pair> = (0..many).map(Pair).collect();
    let mut random = 0u64;
    for last in (1..many).rev() {
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (random ^ random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        pairs.swap(last, (mixed >> 32) as usize % last);
    }
    let (start, mut count, mut at) = (Instant::now(), 0u64, 0usize);
    while start.elapsed() < window {
        for _ in 0..1000 {
            at = black_box(&pairs)[at].0;
        }
        count += 1000;
    }
    black_box(at);
    start.elapsed().as_nanos() as f64 / count as f64
}

/// How fast a publisher is while another thread subscribes and unsubscribes 100 000 times a second, to the
/// key that is published and to patterns that match it, against how fast it is alone.
fn churn(window: Duration) -> f64 {
    let hub = hub();
    let key = hub.key("a.b").expect("a key");
    let _one = hub.subscribe("a.b", |_: &Message<'_>| ()).expect("a subscription");
    let publish = || {
        let (start, mut count) = (Instant::now(), 0u64);
        while start.elapsed() < window {
            for _ in 0..100 {
                let _ = hub.publish(&key, &[0; 8]).expect("an open hub");
            }
            count += 100;
        }
        count as f64 / start.elapsed().as_secs_f64()
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The other thread takes as much of the machine, and touches nothing of the hub's that is asked about.
        let paced = |subscribe: &(dyn Fn(usize) + Sync)| {
            let start = Instant::now();
            let mut done = 0usize;
            while !stop.load(Ordering::Relaxed) {
                let due = (start.elapsed().as_nanos() / 10_000) as usize;
                while done < due {
                    subscribe(done);
                    done += 1;
                }
                std::hint::spin_loop();
            }
        };
        let other = super::costs::hub();
        let elsewhere = scope.spawn(move || {
            paced(&|_| drop(other.subscribe("c", |_: &Message<'_>| ()).expect("a subscription")))
        });
        let quiet = publish();
        stop.store(true, Ordering::Relaxed);
        elsewhere.join().expect("it ends");
        stop.store(false, Ordering::Relaxed);
        let hub = &hub;
        let here = scope.spawn(move || {
            paced(&|number| {
                let pattern = if number % 100 == 0 { "a.*" } else { "a.b" };
                drop(hub.subscribe(pattern, |_: &Message<'_>| ()).expect("a subscription"));
            })
        });
        let busy = publish();
        stop.store(true, Ordering::Relaxed);
        here.join().expect("it ends");
        busy / quiet
    })
}

/// Of a warm hub: serial and inline subscriptions, an inline payload.
fn publish_allocations() -> f64 {
    const COUNT: u64 = 100_000;
    let hub = hub();
    let key = hub.key("a.b").expect("a key");
    let _serial = hub.subscribe("a.b", |_: &Message<'_>| ()).expect("a subscription");
    let _pattern = hub.subscribe("a.*", |_: &Message<'_>| ()).expect("a subscription");
    let inline = hub.subscription("a.b").execution(Execution::Inline);
    let _inline = inline.serve_shared(|_: &Message<'_>| ()).expect("a subscription");
    let publish = || {
        for _ in 0..COUNT {
            let _ = hub.publish(&key, &[0; 8]).expect("an open hub");
        }
    };
    publish();
    allocations::during(publish) as f64 / COUNT as f64
}
