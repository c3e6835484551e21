//! Full mailboxes: who loses what, and how it is told.

use crate::common::{Count, Gate, hang_guard, quiet_panic, until};
use crate::kit::{Log, at_rest, hub, settle, text, told};
use paceline::hub::{
    Balance, Execution, Failure, Filter, Headers, Hub, Intensity, Message, Overflow, Priority,
    Subscription, SubscriptionBuilder, Unsubscribe, Unsubscribed,
};
use paceline::{Error, Pool};
use std::sync::{Arc, Barrier};
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
        let message = hub.message(format!("a.{}", &text[..1])).payload(*text);
        let receipt = told(message.no_wait().publish());
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
    let _ = hub.publish("a.9", "9").unwrap();
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
                let publication = hub.message("a.x").payload(number.to_string());
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
    let publish = |hub: &Hub| told(hub.publish("a.x", "x"));
    assert_eq!(publish(&hub).enqueued, 1);
    assert_eq!(publish(&hub).rejected, 1);
    assert_eq!(short.stats().rejected, 1);
    // A subscription that ends lets its publishers go.
    let gate_two = Gate::new();
    let long = held_on("b", &hub, &gate_two);
    thread::scope(|scope| {
        let publisher = scope.spawn(|| hub.publish("b", "x").unwrap());
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
    let _ = hub.publish("a.x", "second").unwrap();
    thread::scope(|scope| {
        let publish = |key: &'static str| {
            let hub = &hub;
            scope.spawn(move || told(hub.publish(key, "x")))
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
        let report = hub.pool().shutdown(Duration::from_millis(1));
        assert!(!report.drained && report.left >= 2, "both were turned away: {report:?}");
        opens.join().unwrap();
    });
    assert_eq!((own.stats().rejected, shared.stats().rejected), (1, 1));
}

fn held_on(key: &str, hub: &Hub, gate: &Gate) -> Subscription {
    let wait = gate.clone();
    let settings = hub.subscription(key).capacity(1).overflow(Overflow::Block(Duration::MAX));
    // Inline in nobody: the handler is held in the first message, and the second fills the mailbox.
    let subscription = settings.serve(move |_: &Message<'_>| wait.wait()).unwrap();
    let _ = hub.publish(key, "first").unwrap();
    until("the first one", || subscription.stats().waiting == 0);
    let _ = hub.publish(key, "second").unwrap();
    subscription
}

/// A thread of the pool that waited for room might be the one that would make it.
#[test]
fn nobody_waits_inside_handlers_and_on_threads_of_the_pool() {
    let _guard = hang_guard();
    let hub = hub(3);
    let (gate, log) = (Gate::new(), Log::default());
    let inner = held_on("inner", &hub, &gate);
    let (from, into) = (hub.clone(), log.clone());
    let publishes = move || match from.publish("inner", "") {
        Err(error @ Error::MailboxFull { .. }) => into.add(error.to_string()),
        other => into.add(format!("{other:?}")),
    };
    let task = publishes.clone();
    let handler = publishes.clone();
    let inline = publishes.clone();
    let outer = hub.subscribe("outer", move |_: &Message<'_>| handler()).unwrap();
    let outside = hub.subscription("inline").execution(Execution::Inline);
    let outside = outside.serve_shared(move |_: &Message<'_>| inline()).unwrap();
    assert_eq!(hub.publish("outer", "").unwrap().enqueued, 1);
    until("the handler has published", || log.len() == 1);
    hub.pool().post(task).unwrap();
    until("the task has published", || log.len() == 2);
    assert_eq!(hub.publish("inline", "").unwrap().enqueued, 1);
    let told = format!(
        "the mailbox of subscription {} (inner) is full (1 messages); of 1 deliveries 1 were refused \
         and 0 accepted; more capacity helps, an overflow policy that drops, or one that waits where the \
         publisher may: outside of handlers and of the threads of pools",
        inner.id()
    );
    assert_eq!(log.lines(), [&*told; 3]);
    gate.open();
    drop((publishes, outer, outside));
    settle(&hub);
}

/// Goal: nobody waits where no member of the pool is there to make room. Method: a pool without threads that nobody drives;
/// then what was taken is handled when somebody does.
#[test]
fn nobody_waits_where_nobody_serves() {
    let _guard = hang_guard();
    let hub = Hub::new(&Pool::builder().threads(0).max_joined(1).build().unwrap()).unwrap();
    let log = Log::default();
    let into = log.clone();
    let settings = hub.subscription("k").capacity(4);
    let _handled = settings.serve(move |message: &Message<'_>| into.add(text(message))).unwrap();
    for number in 0..4 {
        assert_eq!(hub.publish("k", number.to_string()).unwrap().enqueued, 1);
    }
    assert!(matches!(hub.publish("k", "4"), Err(Error::MailboxFull { capacity: 4, .. })));
    while log.len() < 4 {
        hub.pool().join(Duration::from_millis(1)).unwrap();
    }
    settle(&hub);
    assert_eq!(log.lines(), ["0", "1", "2", "3"]);
}

/// Goal: members of two pools never wait for each other. Method: two pools of one thread; while both are in a task, each
/// publishes to the other's hub, whose mailbox is full.
#[test]
fn members_of_two_pools_do_not_wait_for_each_other() {
    let _guard = hang_guard();
    let hubs = [hub(1), hub(1)];
    let log = Log::default();
    let handled: Vec<_> = hubs
        .iter()
        .map(|hub| hub.subscription("k").capacity(1).serve(|_: &Message<'_>| ()).unwrap())
        .collect();
    let both = Arc::new(Barrier::new(2));
    for place in [0, 1] {
        let (other, into, both) = (hubs[1 - place].clone(), log.clone(), Arc::clone(&both));
        let publishes = move || {
            both.wait();
            assert_eq!(other.publish("k", "").unwrap().enqueued, 1);
            let refused = matches!(other.publish("k", ""), Err(Error::MailboxFull { .. }));
            into.add(format!("refused: {refused}"));
            both.wait();
        };
        hubs[place].pool().post(publishes).unwrap();
    }
    until("both have published", || log.len() == 2);
    assert_eq!(log.lines(), ["refused: true"; 2]);
    drop(handled);
    hubs.iter().for_each(settle);
}

/// Goal: what a publisher is told is accepted is handled, also if it has waited for room when the pool began to end.
/// Method: publishers wait at a mailbox in the ring of its channel and at one of its own, whose first two messages take
/// long; the pool's time to drain is enough for all.
#[test]
fn a_drain_waits_for_publishers_that_wait() {
    for execution in [Execution::Serial, Execution::Concurrent(2), Execution::Strand] {
        let _guard = hang_guard();
        let hub = hub(2);
        let count = Count::default();
        let handled = count.clone();
        let settings = hub.subscription("k").capacity(1).execution(execution);
        let subscription = settings
            .serve_shared(move |_: &Message<'_>| {
                handled.up();
                thread::sleep(Duration::from_millis(if handled.get() <= 2 { 400 } else { 1 }));
            })
            .unwrap();
        thread::scope(|scope| {
            let publish = || scope.spawn(|| hub.publish("k", "").is_ok());
            let publishers: Vec<_> = (0..8).map(|_| publish()).collect();
            until("the first one", || count.get() > 0);
            thread::sleep(Duration::from_millis(30));
            assert!(hub.pool().shutdown(Duration::from_secs(20)).drained, "{execution:?}");
            let told = publishers.into_iter().map(|one| one.join().unwrap());
            let accepted = told.filter(|&is_ok| is_ok).count();
            assert_eq!((accepted, count.get()), (8, 8), "{execution:?}");
        });
        drop(subscription);
    }
}

/// Goal: nobody waits for a subscription on the strand whose filter keeps the message away. Method: its mailbox is full, and
/// its handler is held.
#[test]
fn nobody_waits_for_whom_a_filter_keeps_out() {
    let _guard = hang_guard();
    let hub = hub(2);
    let gate = Gate::new();
    let wait = gate.clone();
    fn strand(settings: SubscriptionBuilder<'_>) -> SubscriptionBuilder<'_> {
        settings.execution(Execution::Strand)
    }
    let keeps = strand(hub.subscription("k").capacity(1)).filter(Filter::header("for", "held"));
    let held = keeps.serve(move |_: &Message<'_>| wait.wait()).unwrap();
    let free = strand(hub.subscription("k")).serve(|_: &Message<'_>| ()).unwrap();
    let publish = |name: &str| {
        let headers = Headers::new([("for", name)]).unwrap();
        hub.message("k").headers(headers).publish().unwrap().enqueued
    };
    assert_eq!(publish("held"), 2);
    gate.until_entered(1);
    assert_eq!(publish("held"), 2);
    assert_eq!(publish("free"), 1);
    gate.open();
    drop((held, free));
    settle(&hub);
}

/// Goal: a loop that publishes more than the mailbox holds loses nothing, by default. Method: a hundred thousand messages
/// to a trivial handler, one by one and in a batch, with one thread and with several.
#[test]
fn a_loop_of_a_hundred_thousand_loses_nothing() {
    const MANY: u64 = 100_000;
    let _guard = hang_guard();
    for threads in [1, 2] {
        let hub = hub(threads);
        let came = Count::new();
        let count = came.clone();
        let one = hub.subscribe("a", move |_: &Message<'_>| count.up()).unwrap();
        for _ in 0..MANY / 2 {
            let receipt = hub.publish("a", "x").unwrap();
            assert_eq!((receipt.matched, receipt.enqueued), (1, 1));
        }
        let receipt = hub.publish_batch("a", vec!["x"; MANY as usize / 2]).unwrap();
        assert_eq!((receipt.matched, receipt.enqueued), (MANY / 2, MANY / 2));
        at_rest(&hub);
        assert_eq!((came.get(), one.stats().delivered), (MANY, MANY));
        settle(&hub);
    }
}

/// The same with subscriptions of all kinds beside each other, and small mailboxes.
#[test]
fn publishers_wait_for_handlers_of_all_kinds() {
    const MANY: u64 = 10_000;
    let _guard = hang_guard();
    for threads in [1, 2] {
        let hub = hub(threads);
        let counts: [Count; 6] = std::array::from_fn(|_| Count::new());
        let counting = |place: usize| {
            let count = counts[place].clone();
            move |_: &Message<'_>| count.up()
        };
        let a = || hub.subscription("a").capacity(50);
        let group =
            |place| a().group("workers", Balance::RoundRobin).serve(counting(place)).unwrap();
        let _all = [
            a().serve(counting(0)).unwrap(),
            a().filter(Filter::bytes_at(0, b"x")).serve(counting(1)).unwrap(),
            hub.subscription("*")
                .capacity(50)
                .execution(Execution::Concurrent(2))
                .serve_shared(counting(2))
                .unwrap(),
            a().execution(Execution::Strand).serve(counting(3)).unwrap(),
            group(4),
            group(4),
            a().by_priority().capacity(7).serve(counting(5)).unwrap(),
        ];
        for number in 0..MANY / 2 {
            let receipt = hub.publish("a", "x").unwrap();
            assert_eq!((receipt.matched, receipt.enqueued), (6, 6), "{number}");
        }
        let receipt = hub.publish_batch("a", vec!["x"; MANY as usize / 2]).unwrap();
        assert_eq!((receipt.matched, receipt.enqueued), (3 * MANY, 3 * MANY));
        at_rest(&hub);
        assert_eq!(counts.each_ref().map(Count::get), [MANY; 6]);
        settle(&hub);
    }
}

/// What one refuses is in the error, with what became of the message elsewhere, and the others have got it.
#[test]
fn a_refusal_tells_of_the_others() {
    let _guard = hang_guard();
    let hub = hub(2);
    let log = Log::default();
    let into = log.clone();
    let full = hub.mailbox("a", 1).unwrap();
    let lossy = hub.subscription("a").capacity(1).overflow(Overflow::DropNewest).pull().unwrap();
    let good = hub.subscribe("a", move |message: &Message<'_>| into.note(message)).unwrap();
    assert_eq!(hub.publish("a", "1").unwrap().enqueued, 3);
    let Err(Error::MailboxFull { mailbox, capacity, receipt }) = hub.publish("a", "2") else {
        panic!("it is full")
    };
    assert_eq!(&*mailbox, format!("the mailbox of subscription {} (a)", full.id()));
    let counts = (receipt.matched, receipt.enqueued, receipt.dropped, receipt.rejected);
    assert_eq!((capacity, counts), (1, (3, 1, 1, 1)));
    let Err(Error::MailboxFull { receipt, .. }) = hub.publish_batch("a", ["3", "4"]) else {
        panic!("it is full")
    };
    assert_eq!((receipt.matched, receipt.enqueued, receipt.rejected), (6, 2, 2));
    until("the others have got it", || log.len() == 4);
    let publisher = hub.publisher("p").build().unwrap();
    assert!(matches!(publisher.publish("a", "5"), Err(Error::MailboxFull { .. })));
    let stats = publisher.stats();
    assert_eq!((stats.published, stats.refused, stats.enqueued, stats.lost), (1, 0, 1, 2));
    drop((full, lossy, good));
    settle(&hub);
}

/// A publisher that waits does not wait for a subscription that is suspended meanwhile: its message is a dead letter.
#[test]
fn a_suspension_lets_publishers_go() {
    let _guard = hang_guard();
    let hub = hub(1);
    let gate = Gate::new();
    let wait = gate.clone();
    let intensity = Intensity::new(0, Duration::from_secs(3600)).suspend_for_good();
    let subscription = hub
        .subscription("a")
        .capacity(1)
        .intensity(intensity)
        .serve(move |_: &Message<'_>| -> Result<(), Failure> {
            wait.wait();
            quiet_panic("on purpose")
        })
        .unwrap();
    assert_eq!(hub.publish("a", "first").unwrap().enqueued, 1);
    gate.until_entered(1);
    assert_eq!(hub.publish("a", "second").unwrap().enqueued, 1);
    thread::scope(|scope| {
        let publisher = scope.spawn(|| hub.publish("a", "third").unwrap());
        thread::sleep(Duration::from_millis(5));
        assert!(!publisher.is_finished());
        gate.open();
        let receipt = publisher.join().unwrap();
        assert_eq!((receipt.matched, receipt.dead_lettered), (1, 1));
    });
    assert!(subscription.is_suspended());
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
    let _ = hub.publish("a", "first").unwrap();
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
        assert_eq!(
            hub.message("a").payload(text).priority(priority).publish().unwrap().enqueued,
            1
        );
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
