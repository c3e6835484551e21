//! Two thermometers publish to four subscribers: one adds up, one raises alarms, one refuses what
//! cannot be, and one is too slow and loses by its policy. At the end, what became of every reading.
//!
//! ```text
//! cargo run -p examples --example hub
//! ```

use paceline::Pool;
use paceline::hub::{
    DeadFilter, Execution, Failure, Filter, Hub, Message, OnFailure, Overflow, Publisher, Retry,
    Stored, Subscription,
};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const READINGS: i64 = 1000;
/// What a broken thermometer says.
const BROKEN: i64 = -300;

fn reading(message: &Stored) -> i64 {
    message.payload().as_slice().try_into().map_or(BROKEN, i64::from_le_bytes)
}

/// Publishes degrees between -10 and 30, and two readings that cannot be.
fn measure(thermometer: &Publisher, key: &str, broken_at: i64) -> paceline::Result<()> {
    for number in 0..READINGS {
        let degrees = if number == broken_at { BROKEN } else { number % 41 - 10 };
        thermometer.publish(key, degrees.to_le_bytes().as_slice())?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::new()?;
    let hub = Hub::new(&pool)?;

    // Serial, by default: one thread at a time, in order.
    let sum = Arc::new(AtomicI64::new(0));
    let total = Arc::clone(&sum);
    let adds = hub.subscription("temperature.*").capacity(4096).serve(move |m: &Message<'_>| {
        total.fetch_add(reading(m).max(-273), Relaxed);
    })?;

    // In the publisher's own thread, and only what passes the filter.
    let alarms = Arc::new(AtomicU64::new(0));
    let raised = Arc::clone(&alarms);
    let alarm = hub
        .subscription("temperature.roof")
        .execution(Execution::Inline)
        .filter(Filter::predicate(|message| reading(message) >= 30))
        .serve_shared(move |_: &Message<'_>| {
            raised.fetch_add(1, Relaxed);
        })?;

    // Fails at what cannot be; after two attempts the reading is a dead letter. Only a panic restarts the handler.
    let checks = hub
        .subscription("temperature.*")
        .capacity(4096)
        .on_failure(OnFailure::dead_letter().retry(Retry::fixed(1, Duration::from_millis(1))))
        .serve(|message: &Message<'_>| match reading(message) {
            ..-273 => Err(Failure::new("colder than cold can be")),
            _ => Ok(()),
        })?;

    // Too slow for all of them: it shows the newest, and knows how many it has not shown.
    let unseen = Arc::new(AtomicU64::new(0));
    let lost = Arc::clone(&unseen);
    let display =
        hub.subscription("temperature.room").capacity(8).overflow(Overflow::DropOldest).serve(
            move |message: &Message<'_>| {
                lost.fetch_add(message.lost_before(), Relaxed);
                thread::sleep(Duration::from_millis(1));
            },
        )?;

    let roof = hub.publisher("roof").allow("temperature.roof").build()?;
    let room = hub.publisher("room").allow("temperature.room").build()?;
    thread::scope(|scope| {
        let up = scope.spawn(|| measure(&roof, "temperature.roof", 100));
        let down = scope.spawn(|| measure(&room, "temperature.room", 500));
        up.join().and(down.join())
    })
    .map_err(|_| "a thermometer has panicked")??;
    let refused = roof.publish("temperature.room", "").is_err();
    println!("the roof may not publish for the room: {refused}");

    // What waits in mailboxes is delivered before the pool has drained. A reading that is to be tried again
    // waits for its time, and those behind it for it: for that a drain does not wait.
    while checks.stats().waiting + checks.stats().running > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    let report = pool.shutdown(Duration::from_secs(60));
    println!("drained: {}", report.drained);

    println!("{:<10}{:>8}{:>11}{:>7}{:>10}", "", "matched", "delivered", "dead", "restarts");
    let all: [(&str, &Subscription); 3] = [("adds", &adds), ("alarm", &alarm), ("checks", &checks)];
    for (name, subscription) in all {
        let stats = subscription.stats();
        let (matched, delivered) = (stats.matched, stats.delivered);
        let (dead, restarts) = (stats.dead_lettered, stats.restarts);
        println!("{name:<10}{matched:>8}{delivered:>11}{dead:>7}{restarts:>10}");
    }
    let stats = hub.stats();
    for publisher in &stats.publishers {
        let (name, done) = (&publisher.name, publisher.stats);
        println!("{name} has published {}, and was refused {}", done.published, done.refused);
    }
    println!("published in all: {}", stats.audit.published);
    let stats = display.stats();
    let accounted = stats.delivered + stats.dropped == stats.matched;
    println!("the display has lost some: {}", stats.dropped > 0);
    println!("it was told of each: {}", accounted && unseen.load(Relaxed) == stats.dropped);
    println!("the sum is {}, and there were {} alarms", sum.load(Relaxed), alarms.load(Relaxed));
    for key in ["temperature.roof", "temperature.room"] {
        for letter in hub.dead_letters(&DeadFilter::all().key(key)?) {
            let reason = letter.failure().unwrap_or("no reason");
            println!("dead letter of {key} after {} attempts: {reason}", letter.attempts());
        }
    }
    println!("the books balance: {}", hub.audit().is_balanced());
    Ok(())
}
