//! The end of subscriptions.

use crate::common::{Count, Gate, LONG, hang_guard, until};
use crate::kit::{Log, at_rest, hub, settle};
use paceline::Flow;
use paceline::hub::{Execution, Message, Subscription, Unsubscribe, Unsubscribed};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[test]
fn async_discards_what_waits_and_drops_the_handler_after_it_returned() {
    let _guard = hang_guard();
    let hub = hub(2);
    let (gate, dropped) = (Gate::new(), Count::new());
    let (wait, on_drop) = (gate.clone(), dropped.on_drop());
    let subscription = hub
        .subscribe("a", move |_: &Message<'_>| {
            let _held = &on_drop;
            wait.wait();
        })
        .unwrap();
    for _ in 0..10 {
        let _ = hub.publish("a", "").unwrap();
    }
    gate.until_entered(1);
    assert_eq!(subscription.unsubscribe(Unsubscribe::Async).unwrap(), Unsubscribed::Later);
    assert_eq!(hub.publish("a", "").unwrap().matched, 0);
    assert_eq!(dropped.get(), 0);
    gate.open();
    dropped.until(1);
    until("the end", || subscription.stats().running == 0);
    let stats = subscription.stats();
    assert_eq!((stats.matched, stats.delivered, stats.discarded), (10, 1, 9));
    assert_eq!(subscription.unsubscribe(Unsubscribe::Sync).unwrap(), Unsubscribed::Now);
    drop(subscription);
    settle(&hub);
    assert_eq!((gate.entered(), dropped.get()), (1, 1));
    assert_eq!(hub.audit().discarded, 9);
}

#[test]
fn drain_delivers_what_waits_and_takes_nothing_more() {
    let _guard = hang_guard();
    let hub = hub(1);
    let (gate, dropped) = (Gate::new(), Count::new());
    let (wait, on_drop) = (gate.clone(), dropped.on_drop());
    let subscription = hub
        .subscribe("a", move |_: &Message<'_>| {
            let _held = &on_drop;
            wait.wait();
        })
        .unwrap();
    for _ in 0..10 {
        let _ = hub.publish("a", "").unwrap();
    }
    assert_eq!(subscription.unsubscribe(Unsubscribe::Drain).unwrap(), Unsubscribed::Later);
    assert_eq!(hub.publish("a", "").unwrap().matched, 0);
    gate.open();
    assert!(subscription.unsubscribe(Unsubscribe::Drain).is_ok());
    dropped.until(1);
    assert_eq!(gate.entered(), 10);
    settle(&hub);
}

/// Goal: after SYNC no handler runs. Method: handlers that would find out, publishers all the time, and
/// subscriptions that come and go.
#[test]
fn after_sync_no_handler_runs() {
    let _guard = hang_guard();
    let hub = hub(3);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    let _ = hub.publish("a.b", "").unwrap();
                }
            });
        }
        for round in 0..300 {
            let over = Arc::new(AtomicBool::new(false));
            let (seen, dropped) = (Arc::clone(&over), Count::new());
            let on_drop = dropped.on_drop();
            let execution =
                [Execution::Serial, Execution::Inline, Execution::Concurrent(2), Execution::Strand]
                    [round % 4];
            let late = Count::new();
            let too_late = late.clone();
            let subscription = hub
                .subscription(["a.b", "a.*"][round / 4 % 2])
                .execution(execution)
                .serve_shared(move |_: &Message<'_>| {
                    let _held = &on_drop;
                    if seen.load(SeqCst) {
                        too_late.up();
                    }
                })
                .unwrap();
            until("messages", || subscription.stats().delivered > 3);
            assert_eq!(subscription.unsubscribe(Unsubscribe::Sync).unwrap(), Unsubscribed::Now);
            over.store(true, SeqCst);
            assert_eq!(dropped.get(), 1, "dropped before it returns, once");
            assert_eq!(late.get(), 0);
        }
        stop.store(true, SeqCst);
    });
    settle(&hub);
}

/// A handler that unsubscribes itself, or another that waits for it, must not wait.
#[test]
fn sync_inside_a_handler_does_not_wait() {
    let _guard = hang_guard();
    let hub = hub(1);
    for execution in [Execution::Serial, Execution::Inline] {
        let own: Arc<Mutex<Option<Subscription>>> = Arc::default();
        let log = Log::default();
        let (slot, into) = (Arc::clone(&own), log.clone());
        let subscription = hub
            .subscription("a")
            .execution(execution)
            .serve_shared(move |_: &Message<'_>| {
                let own = slot.lock().unwrap().take().expect("called once");
                let answer = own.unsubscribe(Unsubscribe::Sync).unwrap();
                into.add(format!("{answer:?}"));
            })
            .unwrap();
        *own.lock().unwrap() = Some(subscription);
        let _ = hub.publish("a", "").unwrap();
        until("the handler", || log.len() == 1);
        assert_eq!(log.lines(), ["Later"]);
        at_rest(&hub);
        assert_eq!(hub.publish("a", "").unwrap().matched, 0);
    }
    settle(&hub);
}

/// Goal: a handler has returned, and is dropped, when its subscription or replay has been. Method: handlers that take a
/// while, of all kinds.
#[test]
fn a_drop_waits_for_the_handler_that_runs() {
    let _guard = hang_guard();
    let hub = hub(2);
    for execution in
        [Execution::Serial, Execution::Inline, Execution::Concurrent(2), Execution::Strand]
    {
        let (gate, dropped) = (Gate::new(), Count::new());
        let (wait, on_drop) = (gate.clone(), dropped.on_drop());
        let subscription = hub
            .subscription("a")
            .execution(execution)
            .serve_shared(move |_: &Message<'_>| {
                let _held = &on_drop;
                wait.wait();
            })
            .unwrap();
        thread::scope(|scope| {
            scope.spawn(|| hub.publish("a", "").unwrap());
            gate.until_entered(1);
            scope.spawn(|| {
                thread::sleep(std::time::Duration::from_millis(5));
                assert_eq!(dropped.get(), 0);
                gate.open();
            });
            drop(subscription);
            assert_eq!(dropped.get(), 1, "{execution:?}");
        });
    }
    settle(&hub);
}

/// Goal: the end of a pool waits for a stuck handler no longer than it says, whatever it drops. Method: what a timer
/// owns that never runs is dropped by whoever ends the pool: the subscription of the handler, and a periodic timer.
#[test]
fn the_end_of_a_pool_does_not_wait_where_it_drops() {
    let _guard = hang_guard();
    let hub = hub(2);
    let (gate, far) = (Gate::new(), 2 * LONG);
    let (waits, ticks) = (gate.clone(), gate.clone());
    let subscription = hub.subscribe("a", move |_: &Message<'_>| waits.wait()).unwrap();
    let tick = move || {
        ticks.wait();
        Flow::Wait
    };
    let timer = hub.pool().every(Duration::from_millis(1), tick).unwrap();
    let _ = hub.publish("a", "").unwrap();
    gate.until_entered(2);
    let _subscription = hub.pool().after(far, move || drop(subscription)).unwrap();
    let _timer = hub.pool().after(far, move || drop(timer)).unwrap();
    let report = hub.pool().stop_now();
    gate.open();
    assert_eq!((report.drained, report.stuck.len(), report.cancelled), (false, 2, 2), "{report:?}");
}

#[test]
fn a_subscription_that_is_dropped_ends_and_a_detached_one_does_not() {
    let _guard = hang_guard();
    let hub = hub(1);
    let came = Count::new();
    let (one, two) = (came.clone(), came.clone());
    drop(hub.subscribe("a", move |_: &Message<'_>| one.up()).unwrap());
    hub.subscribe("a", move |_: &Message<'_>| two.up()).unwrap().detach();
    assert_eq!(hub.publish("a", "").unwrap().matched, 1);
    settle(&hub);
    assert_eq!(came.get(), 1);
}

#[test]
fn a_unique_subscription_is_there_once() {
    let _guard = hang_guard();
    let hub = hub(1);
    for pattern in ["a", "a.*"] {
        let subscribe = |id, data| {
            let dropped = Count::new();
            let on_drop = dropped.on_drop();
            let result =
                hub.subscription(pattern).unique((id, data)).serve(move |_: &Message<'_>| {
                    let _held = &on_drop;
                });
            assert_eq!(dropped.get(), u64::from(result.is_err()));
            result
        };
        let first = subscribe(1, 2).unwrap();
        assert_eq!(
            subscribe(1, 2).unwrap_err().to_string(),
            "the identity of a unique handler is (1, 2), but must be one that does not subscribe to \
             this pattern already"
        );
        let _other = subscribe(1, 3).unwrap();
        let _plain = hub.subscribe(pattern, |_: &Message<'_>| ()).unwrap();
        assert_eq!(first.unsubscribe(Unsubscribe::Sync).unwrap(), Unsubscribed::Now);
        let _again = subscribe(1, 2).unwrap();
    }
    assert_eq!(hub.patterns(), []);
    settle(&hub);
}

/// Patterns come and go by the thousand, and publishers see each of them at once.
#[test]
fn a_subscription_is_seen_by_the_next_message() {
    let _guard = hang_guard();
    let hub = hub(1);
    let key = hub.key("a.b.c").unwrap();
    for round in 0..2000 {
        let pattern = match round % 3 {
            0 => "a.b.c".to_owned(),
            1 => "a.*.c".to_owned(),
            _ => format!("*.b.{}", if round % 2 == 0 { ">".into() } else { round.to_string() }),
        };
        let subscription = hub.subscribe(&pattern, |_: &Message<'_>| ()).unwrap();
        let matches = u64::from(round % 3 != 2 || round % 2 == 0);
        assert_eq!(hub.publish(&key, "").unwrap().matched, matches, "{pattern}");
        drop(subscription);
        assert_eq!(hub.publish(&key, "").unwrap().matched, 0, "{pattern}");
    }
    settle(&hub);
}

#[test]
fn a_hub_that_goes_takes_what_was_detached_with_it() {
    let _guard = hang_guard();
    let dropped = Count::new();
    let hub = hub(2);
    for pattern in ["a.b", "a.*"] {
        for execution in [Execution::Serial, Execution::Strand] {
            let on_drop = dropped.on_drop();
            let handler = move |_: &Message<'_>| {
                let _held = &on_drop;
            };
            hub.subscription(pattern).execution(execution).serve(handler).unwrap().detach();
        }
    }
    let _ = hub.publish("a.b", "").unwrap();
    settle(&hub);
    assert_eq!(dropped.get(), 0);
    drop(hub);
    dropped.until(4);
}

/// Goal: keys cost nothing when nobody asks for them any more. Method: many are subscribed to for a moment, some with
/// a message; less than half of them are known then, and those in use are.
/// Goal: what a key's subscriptions keep together goes to another key without them. Method: it is given up because a
/// subscription ends that was the last one at work; another key's are called from it while the first key has one again,
/// in which somebody is far behind.
#[test]
fn what_a_key_leaves_to_another_names_none_of_its_subscriptions() {
    const BEHIND: u64 = 300;
    let _guard = hang_guard();
    let hub = hub(5);
    let subscribe = |key: &str, waits_for: &'static str| {
        let (gate, count) = (Gate::new(), Count::new());
        let (wait, counted) = (gate.clone(), count.clone());
        let handler = move |message: &Message<'_>| {
            counted.up();
            if &**message.payload() == waits_for.as_bytes() {
                wait.wait();
            }
        };
        (hub.subscribe(key, handler).unwrap(), gate, count)
    };
    // Nobody outside can tell a subscription that rests from one that looks out for more, for some microseconds.
    let let_rest = || thread::sleep(std::time::Duration::from_millis(5));
    let (_a, _, a_count) = subscribe("k", "none");
    let (_b, b_gate, b_count) = subscribe("k", "b");
    let (c, c_gate, _) = subscribe("k", "c");
    let (_x, _, x_count) = subscribe("l", "none");
    let (_y, y_gate, y_count) = subscribe("l", "y");
    let _ = hub.publish("k", "c").unwrap();
    c_gate.until_entered(1);
    a_count.until(1);
    b_count.until(1);
    let_rest();
    assert_eq!(c.unsubscribe(Unsubscribe::Async).unwrap(), Unsubscribed::Later);
    let _ = hub.publish("l", "y").unwrap();
    y_gate.until_entered(1);
    x_count.until(1);
    let _ = hub.publish("k", "b").unwrap();
    b_gate.until_entered(1);
    (0..BEHIND).for_each(|_| _ = hub.publish("k", "").unwrap());
    a_count.until(2 + BEHIND);
    let_rest();
    let _ = hub.publish("l", "").unwrap();
    x_count.until(2);
    let_rest();
    b_gate.open();
    b_count.until(2 + BEHIND);
    c_gate.open();
    y_gate.open();
    y_count.until(2);
    settle(&hub);
}

#[test]
fn keys_that_nobody_subscribes_to_any_more_are_forgotten() {
    const KEYS: usize = 150_000;
    let _guard = hang_guard();
    let hub = hub(1);
    let kept = hub.key("kept").unwrap();
    let _subscription = hub.subscribe("held", |_: &Message<'_>| ()).unwrap();
    for number in 0..KEYS {
        let key = format!("key.{number}");
        let inline = hub.subscription(&key).execution(Execution::Inline);
        let _short = inline.serve_shared(|_: &Message<'_>| ()).unwrap();
        if number % 100 == 0 {
            assert_eq!(hub.publish(&key, "").unwrap().enqueued, 1);
        }
    }
    assert!(hub.key_count() < KEYS / 2, "{}", hub.key_count());
    assert_eq!(hub.key("kept").unwrap(), kept);
    assert_eq!(hub.publish("held", "").unwrap().enqueued, 1);
    settle(&hub);
}
