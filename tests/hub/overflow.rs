//! Full mailboxes: who loses what, and how it is told.

use crate::common::{Gate, hang_guard, until};
use crate::kit::{Log, at_rest, hub, settle, text};
use paceline::Error;
use paceline::hub::{Hub, Message, Overflow, Priority, Subscription, Unsubscribe, Unsubscribed};
use std::thread;
use std::time::Duration;

/// A subscription whose handler is held in its first message, which is "first"; others are noted with
/// what was lost before them.
fn held(hub: &Hub, gate: &Gate, log: &Log, overflow: Overflow, capacity: usize) -> Subscription {
    let (wait, into) = (gate.clone(), log.clone());
    let settings = hub.subscription("a.*").capacity(capacity).overflow(overflow);
    let subscription = settings
        .serve(move |message: &Message<'_>| match &*text(message) {
            "first" => wait.wait(),
            other => into.add(format!("{other} -{}", message.lost_before())),
        })
        .unwrap();
    assert_eq!(hub.publish("a.0", "first").unwrap().enqueued, 1);
    gate.until_entered(1);
    subscription
}

fn publish(hub: &Hub, texts: &[&str]) -> (u64, u64, u64) {
    let mut sum = (0, 0, 0);
    for text in texts {
        let receipt = hub.publish(format!("a.{}", &text[..1]), *text).unwrap();
        assert_eq!(receipt.matched, 1);
        sum = (sum.0 + receipt.enqueued, sum.1 + receipt.dropped, sum.2 + receipt.rejected);
    }
    sum
}

fn run(overflow: Overflow, expected: (u64, u64, u64), lines: &[&str]) {
    let _guard = hang_guard();
    let hub = hub(1);
    let (gate, log) = (Gate::new(), Log::default());
    let subscription = held(&hub, &gate, &log, overflow, 3);
    assert_eq!(publish(&hub, &["1a", "2a", "1b", "3a", "2b", "4a"]), expected);
    assert_eq!(subscription.stats().waiting, 3);
    gate.open();
    at_rest(&hub);
    hub.publish("a.9", "9").unwrap();
    at_rest(&hub);
    assert_eq!(log.lines(), lines);
    let stats = subscription.stats();
    let lost = stats.dropped + stats.rejected;
    assert_eq!((stats.matched, stats.delivered, lost), (8, 8 - lost, 3));
    settle(&hub);
}

#[test]
fn reject_refuses_and_tells_on_the_next() {
    run(Overflow::Reject, (3, 0, 3), &["1a -0", "2a -0", "1b -0", "9 -3"]);
}

#[test]
fn drop_newest_drops_what_comes() {
    run(Overflow::DropNewest, (3, 3, 0), &["1a -0", "2a -0", "1b -0", "9 -3"]);
}

#[test]
fn drop_oldest_drops_what_has_waited_longest() {
    run(Overflow::DropOldest, (6, 0, 0), &["3a -3", "2b -0", "4a -0", "9 -0"]);
}

/// 1b takes the place of 1a, 2b that of 2a; then 4a finds it full of others, and drops the oldest.
#[test]
fn conflate_keeps_the_last_of_each_key() {
    run(Overflow::Conflate, (6, 0, 0), &["2b -3", "3a -0", "4a -0", "9 -0"]);
}

#[test]
fn block_refuses_those_who_may_not_wait() {
    let forever = Overflow::Block(Duration::MAX);
    run(forever, (3, 0, 3), &["1a -0", "2a -0", "1b -0", "9 -3"]);
}

#[test]
fn block_lets_the_publisher_wait_for_room() {
    let _guard = hang_guard();
    let hub = hub(1);
    let (gate, log) = (Gate::new(), Log::default());
    let subscription = held(&hub, &gate, &log, Overflow::Block(Duration::MAX), 2);
    thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            for number in 0..200 {
                let publication = hub.message("a.x").payload(number.to_string()).may_block();
                assert_eq!(publication.publish().unwrap().enqueued, 1);
            }
        });
        until("a full mailbox", || subscription.stats().waiting == 2);
        thread::sleep(Duration::from_millis(5));
        assert!(!publisher.is_finished());
        gate.open();
    });
    at_rest(&hub);
    assert_eq!(log.lines(), (0..200).map(|n| format!("{n} -0")).collect::<Vec<_>>());
    settle(&hub);
}

#[test]
fn block_gives_up_after_its_time_and_at_the_end() {
    let _guard = hang_guard();
    let hub = hub(2);
    let (gate, log) = (Gate::new(), Log::default());
    let short = held(&hub, &gate, &log, Overflow::Block(Duration::from_millis(1)), 1);
    let publish = |hub: &Hub| hub.message("a.x").payload("x").may_block().publish().unwrap();
    assert_eq!(publish(&hub).enqueued, 1);
    assert_eq!(publish(&hub).rejected, 1);
    assert_eq!(short.stats().rejected, 1);
    // A subscription that ends lets its publishers go.
    let gate_two = Gate::new();
    let long = held_on("b", &hub, &gate_two);
    thread::scope(|scope| {
        let publisher =
            scope.spawn(|| hub.message("b").payload("x").may_block().publish().unwrap());
        thread::sleep(Duration::from_millis(5));
        // By name: the drop alone would wait for its handler.
        assert_eq!(long.unsubscribe(Unsubscribe::Async).unwrap(), Unsubscribed::Later);
        drop(long);
        let receipt = publisher.join().unwrap();
        assert_eq!((receipt.matched, receipt.rejected), (0, 0));
    });
    gate.open();
    gate_two.open();
    settle(&hub);
}

/// Goal: nobody waits for room beyond the end of the pool. Method: a handler holds the first of two messages, in the
/// ring of its channel and in a mailbox of its own; the third waits, and the pool's time to drain is over.
#[test]
fn block_ends_with_the_pool() {
    let _guard = hang_guard();
    let hub = hub(2);
    let (gate, log) = (Gate::new(), Log::default());
    let own = held(&hub, &gate, &log, Overflow::Block(Duration::MAX), 1);
    let shared = held_on("b", &hub, &gate);
    hub.publish("a.x", "second").unwrap();
    thread::scope(|scope| {
        let publish = |key: &'static str| {
            let hub = &hub;
            scope.spawn(move || hub.message(key).payload("x").may_block().publish().unwrap())
        };
        let publishers = [publish("a.x"), publish("b")];
        thread::sleep(Duration::from_millis(5));
        let gate = gate.clone();
        let opens = scope.spawn(move || {
            for publisher in publishers {
                assert_eq!(publisher.join().unwrap().rejected, 1);
            }
            gate.open();
        });
        assert!(!hub.pool().shutdown(Duration::from_millis(1)).drained);
        opens.join().unwrap();
    });
    assert_eq!((own.stats().rejected, shared.stats().rejected), (1, 1));
}

fn held_on(key: &str, hub: &Hub, gate: &Gate) -> Subscription {
    let wait = gate.clone();
    let settings = hub.subscription(key).capacity(1).overflow(Overflow::Block(Duration::MAX));
    // Inline in nobody: the handler is held in the first message, and the second fills the mailbox.
    let subscription = settings.serve(move |_: &Message<'_>| wait.wait()).unwrap();
    hub.publish(key, "first").unwrap();
    until("the first one", || subscription.stats().waiting == 0);
    hub.publish(key, "second").unwrap();
    subscription
}

/// A thread of the pool that waited for room might be the one that would make it.
#[test]
fn blocking_is_refused_inside_handlers() {
    let _guard = hang_guard();
    let hub = hub(2);
    let (from, log) = (hub.clone(), Log::default());
    let into = log.clone();
    let outer = hub
        .subscribe("outer", move |_: &Message<'_>| {
            let result = from.message("inner").may_block().publish();
            into.add(format!("{}", matches!(result, Err(Error::WouldDeadlock))));
        })
        .unwrap();
    hub.publish("outer", "").unwrap();
    at_rest(&hub);
    assert_eq!(log.lines(), ["true"]);
    drop(outer);
    settle(&hub);
}

#[test]
fn priorities_go_first_where_they_are_regarded() {
    let _guard = hang_guard();
    let hub = hub(1);
    let (gate, log) = (Gate::new(), Log::default());
    let (wait, into) = (gate.clone(), log.clone());
    let _ranked = hub
        .subscription("a")
        .by_priority()
        .capacity(5)
        .overflow(Overflow::DropOldest)
        .serve(move |message: &Message<'_>| match &*text(message) {
            "first" => wait.wait(),
            other => into.add(other),
        })
        .unwrap();
    hub.publish("a", "first").unwrap();
    gate.until_entered(1);
    let list = [
        ("n1", Priority::Normal),
        ("l1", Priority::Low),
        ("c1", Priority::Critical),
        ("h1", Priority::High),
        ("n2", Priority::Normal),
        ("c2", Priority::Critical),
    ];
    for (text, priority) in list {
        hub.message("a").payload(text).priority(priority).publish().unwrap();
    }
    gate.open();
    at_rest(&hub);
    assert_eq!(
        log.lines(),
        ["c1", "c2", "h1", "n1", "n2"],
        "l1 was the last, and the mailbox full"
    );
    let conflating = hub.subscription("a").by_priority().overflow(Overflow::Conflate);
    assert_eq!(
        conflating.serve(|_: &Message<'_>| ()).unwrap_err().to_string(),
        "overflow is Conflate, but must be another one with priorities: a mailbox that conflates has \
         one order"
    );
    settle(&hub);
}
