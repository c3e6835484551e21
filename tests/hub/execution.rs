//! Where handlers run, and in what order.

use crate::common::{Count, Gate, Random, hang_guard, quiet_panic, until};
use crate::kit::{Log, at_rest, hub, settle, text, told};
use paceline::hub::{
    DeadFilter, Execution, Failure, Hub, Intensity, Message, OnFailure, Overflow, Retry,
    Subscription, Unsubscribe, Unsubscribed,
};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Goal: never two threads at once, and in order for each publisher. Method: a handler that would see
/// another beside it, and three publishers.
#[test]
fn serial_is_one_at_a_time_and_in_order() {
    let _guard = hang_guard();
    let hub = hub(4);
    let inside = Arc::new(AtomicBool::new(false));
    let last = Arc::new(Mutex::new([0u64; 3]));
    let (seen, entered) = (Arc::clone(&last), Arc::clone(&inside));
    let _one = hub
        .subscription("a.*")
        .capacity(1 << 20)
        .serve(move |message: &Message<'_>| {
            assert!(!entered.swap(true, SeqCst));
            let publisher: usize = message.key().tokens().nth(1).unwrap().parse().unwrap();
            let number: u64 = text(message).parse().unwrap();
            let mut last = seen.lock().unwrap();
            assert_eq!(last[publisher] + 1, number);
            last[publisher] = number;
            entered.store(false, SeqCst);
        })
        .unwrap();
    thread::scope(|scope| {
        for publisher in 0..3 {
            let hub = &hub;
            scope.spawn(move || {
                let key = hub.key(&format!("a.{publisher}")).unwrap();
                for number in 1..=2000 {
                    let receipt = hub.publish(&key, number.to_string()).unwrap();
                    assert_eq!(receipt.enqueued, 1);
                }
            });
        }
    });
    let audit = at_rest(&hub);
    assert_eq!((audit.delivered, audit.failed), (6000, 0));
    assert_eq!(*last.lock().unwrap(), [2000; 3]);
    settle(&hub);
}

#[test]
fn inline_runs_in_the_publisher_before_publishing_returns() {
    let _guard = hang_guard();
    let hub = hub(1);
    let thread = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&thread);
    let _inline = hub
        .subscription("a")
        .execution(Execution::Inline)
        .serve_shared(move |_: &Message<'_>| *seen.lock().unwrap() = Some(thread::current().id()))
        .unwrap();
    let receipt = hub.publish("a", "").unwrap();
    assert_eq!(receipt.enqueued, 1);
    assert_eq!(*thread.lock().unwrap(), Some(thread::current().id()));
    settle(&hub);
}

/// An inline handler may publish to itself: it ends at a depth, and what was refused is told.
#[test]
fn inline_does_not_recur_without_an_end() {
    let _guard = hang_guard();
    let hub = hub(1);
    let calls = Count::new();
    let (count, from) = (calls.clone(), hub.clone());
    let lost = Count::new();
    let lag = lost.clone();
    let inline = hub
        .subscription("a")
        .execution(Execution::Inline)
        .serve_shared(move |message: &Message<'_>| {
            count.up();
            lag.add(message.lost_before());
            if text(message) == "deeper" {
                assert_eq!(told(from.publish("a", "deeper")).matched, 1);
            }
        })
        .unwrap();
    assert_eq!(hub.publish("a", "deeper").unwrap().enqueued, 1);
    assert_eq!(calls.get(), 16);
    assert_eq!(inline.stats().rejected, 1);
    let _ = hub.publish("a", "").unwrap();
    assert_eq!((calls.get(), lost.get()), (17, 1));
    drop(inline);
    settle(&hub);
}

/// Goal: up to k at once, and no more. Method: the first k wait for each other inside.
#[test]
fn concurrent_is_on_k_threads_and_no_more() {
    let _guard = hang_guard();
    let hub = hub(4);
    let (gate, inside, most) = (Gate::new(), Arc::new(AtomicU64::new(0)), Count::new());
    let (wait, entered, above) = (gate.clone(), Arc::clone(&inside), most.clone());
    let _three = hub
        .subscription("a")
        .execution(Execution::Concurrent(3))
        .serve_shared(move |_: &Message<'_>| {
            if entered.fetch_add(1, SeqCst) >= 3 {
                above.up();
            }
            wait.wait();
            entered.fetch_sub(1, SeqCst);
        })
        .unwrap();
    for _ in 0..100 {
        assert_eq!(hub.publish("a", "").unwrap().enqueued, 1);
    }
    gate.until_entered(3);
    gate.open();
    assert_eq!(at_rest(&hub).delivered, 100);
    assert_eq!(most.get(), 0, "more than three at once");
    settle(&hub);
}

/// Goal: a handler, and what it has, is there until the last thread has left it, and is dropped once then. Method: two
/// threads are inside when its subscription ends.
#[test]
fn a_shared_handler_outlives_those_who_are_inside() {
    let _guard = hang_guard();
    for execution in [Execution::Inline, Execution::Concurrent(2)] {
        let hub = hub(2);
        let (gate, drops, left) = (Gate::new(), Count::new(), Count::new());
        let (wait, told, leave) = (gate.clone(), drops.on_drop(), (drops.clone(), left.clone()));
        let shared = hub
            .subscription("a")
            .execution(execution)
            .serve_shared(move |_: &Message<'_>| {
                wait.wait();
                let _it_is_there = &told;
                assert_eq!(leave.0.get(), 0);
                leave.1.up();
            })
            .unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| hub.publish("a", "").unwrap());
            }
            gate.until_entered(2);
            // By name: the drop alone would wait for them.
            assert_eq!(shared.unsubscribe(Unsubscribe::Async).unwrap(), Unsubscribed::Later);
            drop(shared);
            gate.open();
        });
        left.until(2);
        drops.until(1);
        settle(&hub);
        assert_eq!((left.get(), drops.get()), (2, 1));
    }
}

/// Goal: one order over all keys, the same for all on the strand. Method: several publishers and keys, and
/// subscriptions that each see all, with handlers that would see another beside them.
#[test]
fn the_strand_has_one_order_over_all_keys() {
    let _guard = hang_guard();
    let hub = hub(4);
    let logs = [Log::default(), Log::default(), Log::default()];
    let inside = Arc::new(AtomicBool::new(false));
    let _subscriptions: Vec<_> = logs
        .iter()
        .zip([">", "*.x", "a.>"])
        .map(|(log, pattern)| {
            let (log, inside) = (log.clone(), Arc::clone(&inside));
            let on_strand = hub.subscription(pattern).execution(Execution::Strand);
            on_strand
                .capacity(1 << 20)
                .serve(move |message: &Message<'_>| {
                    assert!(!inside.swap(true, SeqCst));
                    log.note(message);
                    inside.store(false, SeqCst);
                })
                .unwrap()
        })
        .collect();
    thread::scope(|scope| {
        for publisher in 0..3 {
            let hub = &hub;
            scope.spawn(move || {
                for number in 0..500 {
                    let key = ["a.x", "b.x", "a.y"][(publisher + number) % 3];
                    let _ = hub.publish(key, format!("{key} {publisher} {number}")).unwrap();
                }
            });
        }
    });
    let audit = at_rest(&hub);
    assert_eq!((audit.failed, audit.delivered), (0, 1500 + 1000 + 1000));
    let all = logs[0].lines();
    let of = |wanted: &[&str]| -> Vec<String> {
        all.iter().filter(|line| wanted.iter().any(|key| line.starts_with(key))).cloned().collect()
    };
    assert_eq!(logs[1].lines(), of(&["a.x", "b.x"]));
    assert_eq!(logs[2].lines(), of(&["a.x", "a.y"]));
    settle(&hub);
}

/// A handler that never returns keeps its thread, and nobody else waits for it.
#[test]
fn a_stuck_handler_holds_nobody_else_up() {
    let _guard = hang_guard();
    let hub = hub(2);
    let gate = Gate::new();
    let wait = gate.clone();
    let _stuck = hub.subscribe("a", move |_: &Message<'_>| wait.wait()).unwrap();
    let others = Count::new();
    let _others: Vec<_> = (0..50)
        .map(|_| {
            let others = others.clone();
            hub.subscribe("*", move |_: &Message<'_>| others.up()).unwrap()
        })
        .collect();
    for _ in 0..20 {
        let _ = hub.publish("a", "").unwrap();
    }
    others.until(50 * 20);
    gate.open();
    settle(&hub);
}

/// Handlers that panic or fail touch nobody else, and go on with the next message.
#[test]
fn failures_are_counted_and_contained() {
    let _guard = hang_guard();
    let hub = hub(2);
    let came = Count::new();
    let count = came.clone();
    let bad = hub
        .subscription("a")
        .on_failure(OnFailure::discard())
        .serve(move |message: &Message<'_>| match &*text(message) {
            "panic" => quiet_panic("on purpose"),
            "fail" => Err(Failure::new("on purpose")),
            _ => {
                count.up();
                Ok(())
            }
        })
        .unwrap();
    let inline = hub
        .subscription("a")
        .execution(Execution::Inline)
        .serve_shared(|message: &Message<'_>| match &*text(message) {
            "panic" => quiet_panic("on purpose"),
            _ => Ok::<(), Failure>(()),
        })
        .unwrap();
    for payload in ["a", "panic", "b", "fail", "c"] {
        let _ = hub.publish("a", payload).unwrap();
    }
    at_rest(&hub);
    assert_eq!(came.get(), 3);
    assert_eq!((bad.stats().delivered, bad.stats().failed), (3, 2));
    assert_eq!((inline.stats().delivered, inline.stats().dead_lettered), (4, 1));
    settle(&hub);
}

/// Goal: of messages that a run takes together, each failure is its own. Method: a hundred that wait behind a gate, some of
/// which are failed at, for a handler of each kind; each is handled once and in order, and those alone are dead letters.
#[test]
fn failures_in_one_run_are_each_their_own() {
    let _guard = hang_guard();
    let hub = hub(2);
    let gate = Gate::new();
    let handler = |log: &Log| {
        let (log, gate) = (log.clone(), gate.clone());
        move |message: &Message<'_>| {
            let number: u32 = text(message).parse().unwrap();
            if number == 0 {
                gate.wait();
            }
            log.note(message);
            match number {
                _ if number % 7 == 3 => quiet_panic("on purpose"),
                _ if number % 10 == 9 => Err(Failure::new("on purpose")),
                _ => Ok(()),
            }
        }
    };
    let logs = [Log::default(), Log::default()];
    let often = Intensity::new(1000, Duration::from_secs(3600));
    let settings = || hub.subscription("a").intensity(often);
    let one = settings().serve(handler(&logs[0])).unwrap();
    let other = settings().serve_shared(handler(&logs[1])).unwrap();
    let _ = hub.publish("a", "0").unwrap();
    gate.until_entered(2);
    let all: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let _ = hub.publish_batch("a", all[1..].iter().map(String::as_str)).unwrap();
    gate.open();
    at_rest(&hub);
    let bad: Vec<&String> =
        (0..100).filter(|number| number % 7 == 3 || number % 10 == 9).map(|n| &all[n]).collect();
    for (subscription, log) in [(&one, &logs[0]), (&other, &logs[1])] {
        assert_eq!(log.lines(), all);
        let stats = subscription.stats();
        let counts = (stats.delivered, stats.dead_lettered, stats.failed);
        assert_eq!(counts, (100 - bad.len() as u64, bad.len() as u64, 0));
        let letters = hub.dead_letters(&DeadFilter::all().subscription(subscription.id()));
        let payloads = letters.iter().map(|letter| letter.message().payload().to_vec());
        assert!(payloads.eq(bad.iter().map(|text| text.as_bytes().to_vec())));
    }
    settle(&hub);
}

/// Goal: the books balance whatever happens. Method: publishers and subscriptions of all kinds come and go
/// at random; at the end the sum of all receipts is what the hub says has matched.
#[test]
fn the_books_balance() {
    let asked = std::env::var("PACELINE_HUB_MESSAGES").ok();
    // A run of millions takes as long as it takes.
    let _guard = asked.is_none().then(hang_guard);
    let rounds: u64 = asked.map_or(20_000, |messages| messages.parse().unwrap());
    let hub = hub(3);
    let matched = Count::new();
    let delivered = Count::new();
    let out_of_order = Count::new();
    thread::scope(|scope| {
        for publisher in 0..2u64 {
            let (hub, matched) = (&hub, matched.clone());
            scope.spawn(move || {
                let keys = ["a.0", "a.1", "b.0", "b.1"].map(|key| hub.key(key).unwrap());
                let mut random = Random::new(publisher);
                for number in 0..rounds / 2 {
                    let key = &keys[random.below(4) as usize];
                    let text = format!("{publisher} {number}");
                    let receipt = told(hub.publish(key, text));
                    let lost = receipt.dropped + receipt.rejected + receipt.dead_lettered;
                    assert_eq!(receipt.matched, receipt.enqueued + lost);
                    matched.add(receipt.matched);
                }
            });
        }
        let (hub, delivered, out_of_order) = (&hub, &delivered, &out_of_order);
        scope.spawn(move || {
            let mut random = Random::new(7);
            let mut subscriptions = Vec::new();
            for number in 0..rounds / 50 {
                if subscriptions.len() > 20 {
                    drop(subscriptions.swap_remove(random.below(20) as usize));
                }
                subscriptions.push(come(hub, &mut random, number, delivered, out_of_order));
                thread::yield_now();
            }
        });
    });
    let audit = at_rest(&hub);
    assert_eq!(audit.published, rounds / 2 * 2);
    assert_eq!(audit.matched, matched.get());
    assert_eq!(audit.delivered, delivered.get());
    assert_eq!(out_of_order.get(), 0);
    settle(&hub);
}

/// A subscription of a random kind. One message in a hundred makes it fail.
fn come(
    hub: &paceline::hub::Hub,
    random: &mut Random,
    number: u64,
    delivered: &Count,
    out_of_order: &Count,
) -> paceline::hub::Subscription {
    let pattern = ["a.0", "a.1", "b.*", ">", "*.1", "a.>"][random.below(6) as usize];
    let overflow =
        [Overflow::Reject, Overflow::DropNewest, Overflow::DropOldest, Overflow::Conflate]
            [random.below(4) as usize];
    let execution = match random.below(4) {
        0 => Execution::Inline,
        1 => Execution::Concurrent(2),
        2 => Execution::Strand,
        _ => Execution::Serial,
    };
    let ordered = matches!(execution, Execution::Serial | Execution::Strand)
        && overflow != Overflow::Conflate;
    let last = Mutex::new([0u64; 2]);
    let (delivered, out_of_order) = (delivered.clone(), out_of_order.clone());
    let calls = AtomicU64::new(number);
    let handler = move |message: &Message<'_>| {
        let text = text(message);
        let (publisher, number) = text.split_once(' ').unwrap();
        let (publisher, number): (usize, u64) =
            (publisher.parse().unwrap(), number.parse().unwrap());
        let mut last = last.lock().unwrap();
        if ordered && number < last[publisher] {
            out_of_order.up();
        }
        last[publisher] = number;
        drop(last);
        match calls.fetch_add(1, SeqCst) % 200 {
            0 => quiet_panic("on purpose"),
            100 => return Err(Failure::new("on purpose")),
            _ => delivered.up(),
        }
        Ok(())
    };
    let capacity = 1 + random.below(100) as usize;
    let policy = match random.below(4) {
        0 => OnFailure::discard(),
        1 => OnFailure::dead_letter(),
        _ if !matches!(execution, Execution::Serial | Execution::Concurrent(_)) => {
            OnFailure::discard()
        }
        2 => OnFailure::discard().retry(Retry::fixed(1, Duration::ZERO)),
        _ => OnFailure::dead_letter().retry(Retry::fixed(2, Duration::from_micros(100))),
    };
    let intensity = [Intensity::default(), Intensity::unlimited()][random.below(2) as usize];
    let subscription = hub.subscription(pattern).capacity(capacity).overflow(overflow);
    let subscription = subscription.on_failure(policy).intensity(intensity);
    subscription.execution(execution).serve_shared(handler).unwrap()
}

/// Messages in more segments of the channel's ring than one, which a run takes at once.
const BACKLOG: u64 = 700;

/// Publishes a backlog to a subscription whose pool is held up, and lets it go on.
fn backlog(hub: &Hub, key: &str) {
    let gate = Gate::new();
    let held = gate.clone();
    hub.pool().post(move || held.wait()).unwrap();
    until("the pool is held up", || gate.entered() == 1);
    for number in 0..BACKLOG {
        assert_eq!(hub.publish(key, number.to_string()).unwrap().enqueued, 1);
    }
    gate.open();
}

#[test]
fn a_backlog_comes_whole_and_in_order() {
    let _guard = hang_guard();
    let hub = hub(1);
    let log = Log::default();
    let seen = log.clone();
    let one = hub.subscription("a").serve(move |message: &Message<'_>| seen.note(message)).unwrap();
    backlog(&hub, "a");
    assert_eq!(at_rest(&hub).delivered, BACKLOG);
    assert_eq!(log.lines(), (0..BACKLOG).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(one.stats().waiting, 0);
    settle(&hub);
}

/// What a run has taken and not begun is discarded when its subscription ends, in all segments.
#[test]
fn a_backlog_is_discarded_when_its_handler_ends_the_subscription() {
    let _guard = hang_guard();
    for last in [0, 127, 128, 200] {
        let hub = hub(1);
        let own = Arc::new(Mutex::new(None::<Subscription>));
        let mine = Arc::clone(&own);
        let one = hub.subscription("a").serve(move |message: &Message<'_>| {
            if text(message) == last.to_string() {
                drop(mine.lock().unwrap().take());
            }
        });
        *own.lock().unwrap() = Some(one.unwrap());
        backlog(&hub, "a");
        let audit = at_rest(&hub);
        let ends = (audit.delivered, audit.discarded);
        assert_eq!(ends, (last + 1, BACKLOG - last - 1));
        settle(&hub);
    }
}

/// Past its intensity a handler is suspended: what it had taken becomes dead letters, in order.
#[test]
fn a_backlog_is_buried_when_its_handler_is_suspended() {
    let _guard = hang_guard();
    for first in [1, 126, 130] {
        let hub = hub(1);
        let handler = move |message: &Message<'_>| match text(message).parse::<u64>().unwrap() {
            number if number >= first => quiet_panic("it is the test's"),
            _ => Ok::<(), Failure>(()),
        };
        let one = hub.subscription("a").serve(handler).unwrap();
        backlog(&hub, "a");
        let audit = at_rest(&hub);
        assert_eq!(audit.delivered, first);
        assert_eq!(audit.delivered + audit.failed + audit.dead_lettered, BACKLOG);
        let buried = hub.dead_letters(&DeadFilter::all());
        let numbers = buried.iter().map(|dead| {
            String::from_utf8(dead.message().payload().to_vec()).unwrap().parse::<u64>().unwrap()
        });
        assert!(numbers.is_sorted());
        drop(one);
        settle(&hub);
    }
}

/// Goal: a publisher that waits for room is told while the run is in the segments that it has taken. Method: it
/// falls asleep while the handler is in the first one, and the handler stops in the second until it has gone on.
#[test]
fn a_run_of_several_segments_tells_who_waits_for_room() {
    let _guard = hang_guard();
    let hub = hub(1);
    let (start, first, second) = (Gate::new(), Gate::new(), Gate::new());
    let (held, in_first, in_second) = (start.clone(), first.clone(), second.clone());
    let one = hub
        .subscription("a")
        .capacity(300)
        .overflow(Overflow::Block(Duration::MAX))
        .serve(move |message: &Message<'_>| match text(message).as_str() {
            "5" => in_first.wait(),
            "130" => in_second.wait(),
            _ => {}
        })
        .unwrap();
    hub.pool().post(move || held.wait()).unwrap();
    until("the pool is held up", || start.entered() == 1);
    let publish = |number: u64| {
        let publication = hub.message("a").payload(number.to_string());
        assert_eq!(publication.publish().unwrap().enqueued, 1);
    };
    (0..300).for_each(publish);
    start.open();
    until("the handler is in the first segment", || first.entered() == 1);
    // Those that have begun have made room.
    (300..306).for_each(publish);
    assert_eq!(one.stats().waiting, 300);
    thread::scope(|scope| {
        let publisher = scope.spawn(|| publish(306));
        thread::sleep(Duration::from_millis(5));
        assert!(!publisher.is_finished());
        first.open();
        until("the handler is in the second segment", || second.entered() == 1);
        publisher.join().unwrap();
        second.open();
    });
    assert_eq!(at_rest(&hub).delivered, 307);
    settle(&hub);
}

/// Goal: what was taken cannot be dropped for what comes, so not much is taken where the oldest is. Method: a handler
/// that stops in the first of a full mailbox; the newest still find old ones to be dropped.
#[test]
fn a_mailbox_that_drops_the_oldest_is_not_emptied_by_its_run() {
    let _guard = hang_guard();
    let hub = hub(1);
    let (start, first, log) = (Gate::new(), Gate::new(), Log::default());
    let (held, in_first, seen) = (start.clone(), first.clone(), log.clone());
    let one = hub.subscription("a").capacity(256).overflow(Overflow::DropOldest);
    let _one = one
        .serve(move |message: &Message<'_>| {
            if text(message) == "0" {
                in_first.wait();
            }
            seen.note(message);
        })
        .unwrap();
    hub.pool().post(move || held.wait()).unwrap();
    until("the pool is held up", || start.entered() == 1);
    let publish = |number: u64| assert!(hub.publish("a", number.to_string()).is_ok());
    (0..256).for_each(publish);
    start.open();
    until("the handler is in the first", || first.entered() == 1);
    (256..356).for_each(publish);
    first.open();
    at_rest(&hub);
    let newest: Vec<String> = (256..356).map(|number| number.to_string()).collect();
    assert!(log.lines().ends_with(&newest));
    settle(&hub);
}
