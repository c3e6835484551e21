//! An online shop on an event hub, with orders, prices and reports as keys. The packer fails at one order, which becomes a dead
//! letter, and crashes at another, and is restarted. A history keeps all of it, and a notice tells of the crash.
//!
//! ```text
//! cargo run -p examples --example orders
//! ```

use paceline::Pool;
use paceline::hub::history::{History, Limits, ReplayFrom};
use paceline::hub::{
    DeadFilter, Failure, Filter, Hub, Message, OnFailure, Restart, Retry, Subscription, Unsubscribe,
};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::{error::Error, panic, thread, time::Duration};

/// Waits until they have dealt with all that was published.
fn settle(subscriptions: [&Subscription; 2]) {
    for each in subscriptions {
        let is_busy = || {
            let stats = each.stats();
            stats.waiting + stats.running > 0
        };
        while is_busy() {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn text(message: &Message<'_>) -> String {
    String::from_utf8_lossy(message.payload()).into_owned()
}

fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::new()?;
    // HistoryLogger: the last 100 messages.
    let history = History::of("shop.>").keep(Limits::of_count(100));
    let hub = Hub::builder(&pool).history(history).build()?;
    let has_pears = Arc::new(AtomicBool::new(false));
    let reports = hub.clone();
    let report = move |text: String| {
        reports.publish("shop.reports", text).map(drop).map_err(|e| Failure::new(e.to_string()))
    };

    // ResilientSubscriber: tries a message once more, and is restarted after a crash, which is a panic.
    let retry = Retry::fixed(1, Duration::from_millis(1));
    let (restarts, packed, is_there) = (report.clone(), report.clone(), Arc::clone(&has_pears));
    let packer = hub
        .subscription("shop.orders")
        .on_failure(OnFailure::dead_letter().retry(retry))
        .on_restart(move |restart: &Restart<'_>| {
            let _ = restarts(format!("the packer was restarted: {}", restart.count));
        })
        .measured()
        .serve(move |order: &Message<'_>| match &*text(order) {
            "pears" if !is_there.load(Relaxed) => Err(Failure::new("pears are out of stock")),
            // As `panic!`, but for the line on the standard error stream.
            "melons" if order.attempt() == 1 => panic::resume_unwind(Box::new("too heavy")),
            order => packed(format!("packed {order}")),
        })?;
    // FilteredSubscriber: the prices of apples.
    let apples = Filter::bytes_at(0, b"apples");
    let watcher = hub.subscription("shop.prices").filter(apples).serve({
        let report = report.clone();
        move |price: &Message<'_>| report(format!("new price: {}", text(price)))
    })?;
    let print = |report: &Message<'_>| println!("{}", text(report));
    let reporter = hub.subscription("shop.reports").serve(print)?;
    // NotificationService: what goes wrong in the hub is a message, too.
    let (notify, notices) = mpsc::channel();
    let warnings = Filter::header("severity", "warning");
    let _notifier =
        hub.subscription("$SYS.>").filter(warnings).serve(move |notice: &Message<'_>| {
            let _ = notify.send(notice.headers().get("event").map(str::to_owned));
        })?;
    println!("subscribers of shop.orders: {}", hub.subscriber_count("shop.orders")?);

    hub.publish_batch("shop.orders", ["apples", "pears", "melons", "plums"])?;
    settle([&packer, &reporter]);
    hub.publish_batch("shop.prices", ["apples 3.20", "plums 4.10"])?;
    settle([&watcher, &reporter]);
    println!("notice: {}", notices.recv()?.unwrap_or_default());

    for letter in hub.dead_letters(&DeadFilter::all()) {
        let order = String::from_utf8_lossy(letter.message().payload());
        println!("dead letter: {order}, {} attempts", letter.attempts());
    }
    has_pears.store(true, Relaxed);
    let redelivered = hub.redeliver(&DeadFilter::all())?;
    settle([&packer, &reporter]);
    println!("redelivered: {}", redelivered.enqueued);

    let (again, replayed) = mpsc::channel();
    let replay = hub.replay("shop.orders", ReplayFrom::Beginning);
    let _replay = replay.serve(move |order: &Message<'_>| {
        let _ = again.send(text(order));
    })?;
    for order in replayed.iter().take(4) {
        println!("replayed: {order}");
    }
    let stats = packer.stats(); // PerformanceMonitor
    let (matched, delivered) = (stats.matched, stats.delivered);
    println!("orders: {matched} matched, {delivered} delivered, {} restarts", stats.restarts);
    let p99 = packer.latency().map_or(0.0, |latency| latency.quantile(0.99) * 1e6);
    println!("from publishing to packing, p99: {p99:.0} us");
    let _ended = packer.unsubscribe(Unsubscribe::Sync)?;
    println!("subscribers of shop.orders: {}", hub.subscriber_count("shop.orders")?);
    Ok(())
}
