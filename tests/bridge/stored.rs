//! Keys at least once.

use crate::broker::{broker, connected};
use crate::common::{hang_guard, until};
use crate::topics::{hub, next};
use paceline::Retry;
use paceline::bridge::{Bridge, Export, Import, StartAt};
use paceline::hub::{Acknowledged, Execution, Failure, Headers, Message, OnFailure, Overflow};
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Goal: a publisher learns that its message is stored; what is stored before anybody imports is handled later, in order
/// and once, by handlers that know nothing of it.
#[test]
fn what_is_stored_is_handled_later() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let out = connected(
        Bridge::nats(&here, broker.url()).export(Export::new("orders.>").at_least_once("ORDERS")),
    );
    for number in 0..100 {
        let message = here.message("orders.a").payload(format!("{number}"));
        out.publish(message).unwrap().wait(LIMIT).unwrap();
    }
    let all: Vec<_> = (100..1000)
        .map(|number| out.publish(here.message("orders.a").payload(format!("{number}"))).unwrap())
        .collect();
    all.iter().for_each(|one| one.wait(LIMIT).unwrap());
    let stats = out.stats();
    assert_eq!((stats.exports[0].stored, stats.exports[0].in_flight), (1000, 0));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&seen);
    let _handler = there
        .subscribe("orders.>", move |message: &Message<'_>| {
            list.lock()
                .unwrap()
                .push(String::from_utf8_lossy(message.payload()).parse::<u32>().unwrap());
        })
        .unwrap();
    let back = connected(
        Bridge::nats(&there, broker.url())
            .import(Import::new("orders.>").at_least_once("ORDERS", "b")),
    );
    until("all", || back.stats().imports[0].acknowledged == 1000);
    assert_eq!(*seen.lock().unwrap(), (0..1000).collect::<Vec<_>>());
    // Another name begins where it likes.
    let other = hub();
    let mailbox = other.mailbox("orders.>", 10_000).unwrap();
    let late = connected(Bridge::nats(&other, broker.url()).import(
        Import::new("orders.>").at_least_once("ORDERS", "late").start_at(StartAt::Sequence(991)),
    ));
    until("the last ten", || mailbox.stats().waiting == 10);
    assert_eq!(late.stats().imports[0].acknowledged, 0);
    (0..10).for_each(|_| drop(next(&mailbox)));
    until("they are taken, which counts as delivered", || {
        late.stats().imports[0].acknowledged == 10
    });
}

/// Goal: who asks whether a message is stored is refused where nobody would tell that it was dropped.
#[test]
fn a_message_to_be_stored_needs_an_export_that_keeps_it() {
    let _guard = hang_guard();
    let here = hub();
    for (overflow, keeps) in [
        (Overflow::DropOldest, false),
        (Overflow::DropNewest, false),
        (Overflow::Conflate, false),
        (Overflow::Reject, true),
        (Overflow::Block(LIMIT), true),
    ] {
        let rule = Export::new("a").at_least_once("A").overflow(overflow);
        let bridge = Bridge::nats(&here, "nats://127.0.0.1:1").export(rule).open().unwrap();
        match bridge.publish(here.message("a").payload("x")) {
            Ok(_) => assert!(keeps, "{overflow:?}"),
            Err(error) => assert!(!keeps && error.to_string().contains("overflow policy")),
        }
        assert_eq!(bridge.close(Duration::ZERO), u64::from(keeps));
    }
}

/// Goal: a message that the broker does not take is not sent for ever: its publisher learns why, and those behind it are
/// stored. Method: larger than the broker allows, by itself and with its headers.
#[test]
fn what_is_too_large_is_refused_and_holds_up_nothing() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let here = hub();
    let out = connected(
        Bridge::nats(&here, broker.url()).export(Export::new("orders.>").at_least_once("ORDERS")),
    );
    let publish = |size| out.publish(here.message("orders.a").payload(vec![7; size])).unwrap();
    for size in [(1 << 20) + 1, (1 << 20) - 8] {
        let (large, small) = (publish(size), publish(1));
        let error = large.wait(LIMIT).unwrap_err().to_string();
        assert!(error.starts_with("the message is"), "{error}");
        small.wait(LIMIT).unwrap();
    }
    let stats = out.stats();
    assert_eq!((stats.exports[0].stored, stats.exports[0].refused, stats.connects), (2, 2, 1));
}

/// Goal: a handler that fails gets the message again after the retry's delay, and past the last attempt it is one dead
/// letter and comes no more. In each execution.
#[test]
fn what_a_handler_fails_at_comes_again_and_is_a_dead_letter_in_the_end() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    for (name, execution) in [
        ("serial", Execution::Serial),
        ("concurrent", Execution::Concurrent(2)),
        ("strand", Execution::Strand),
        ("inline", Execution::Inline),
    ] {
        let hub = hub();
        let key = format!("jobs.{name}");
        let attempts: Arc<Mutex<HashMap<String, u32>>> = Arc::default();
        let seen = Arc::clone(&attempts);
        let _handler = hub
            .subscription(&key)
            .execution(execution)
            .on_failure(OnFailure::dead_letter())
            .serve_shared(move |message: &Message<'_>| {
                let text = String::from_utf8_lossy(message.payload()).into_owned();
                let mut seen = seen.lock().unwrap();
                let count = seen.entry(text.clone()).or_default();
                *count += 1;
                match (&*text, *count) {
                    ("good", _) | ("second", 2) => Ok(()),
                    ("second", _) => Err(Failure::new("not yet")),
                    _ => Err(Failure::new("never")),
                }
            })
            .unwrap();
        let from = crate::topics::hub();
        let stream = name.to_uppercase();
        let out = connected(
            Bridge::nats(&from, broker.url()).export(Export::new(&*key).at_least_once(&*stream)),
        );
        let back = connected(
            Bridge::nats(&hub, broker.url()).import(
                Import::new(&*key)
                    .at_least_once(&*stream, "b")
                    .retry(Retry::fixed(2, Duration::from_millis(10))),
            ),
        );
        for text in ["good", "second", "bad"] {
            out.publish(from.message(&*key).payload(text)).unwrap().wait(LIMIT).unwrap();
        }
        until("all have ended", || {
            let stats = &back.stats().imports[0];
            (stats.acknowledged, stats.dead, stats.in_flight) == (2, 1, 0)
        });
        let counts = attempts.lock().unwrap().clone();
        assert_eq!((counts["good"], counts["second"], counts["bad"]), (1, 2, 3), "{name}");
        let dead = hub.dead_letters(&paceline::hub::DeadFilter::all());
        assert_eq!(dead.len(), 1, "{name}: {dead:?}");
        assert_eq!(dead[0].message().payload(), b"bad");
        assert_eq!(back.stats().imports[0].again, 3);
    }
}

/// Goal: a message is acknowledged when all subscriptions have dealt with it, and not before; while a handler works it
/// does not come again, though that takes longer than the broker waits.
#[test]
fn while_a_handler_works_the_broker_waits() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let out = connected(
        Bridge::nats(&here, broker.url()).export(Export::new("slow").at_least_once("SLOW")),
    );
    let calls = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&calls);
    let _quick = there.subscribe("slow", |_: &Message<'_>| ()).unwrap();
    let _slow = there
        .subscribe("slow", move |_: &Message<'_>| {
            count.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_millis(1500));
        })
        .unwrap();
    let back = connected(Bridge::nats(&there, broker.url()).import(
        Import::new("slow").at_least_once("SLOW", "b").ack_wait(Duration::from_millis(300)),
    ));
    out.publish(here.message("slow")).unwrap().wait(LIMIT).unwrap();
    until("it works", || calls.load(Relaxed) == 1);
    assert_eq!((back.stats().imports[0].acknowledged, back.stats().imports[0].in_flight), (0, 1));
    until("it is done", || back.stats().imports[0].acknowledged == 1);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(calls.load(Relaxed), 1);
}

/// Goal: of a mailbox whose host says what became of each message, one that it buries comes again and is one dead letter in
/// the end, as one that it throws away is another's.
#[test]
fn what_a_host_fails_at_comes_again() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let out =
        connected(Bridge::nats(&here, broker.url()).export(Export::new("a").at_least_once("A")));
    let retry = Retry::fixed(2, Duration::from_millis(10));
    let back = connected(
        Bridge::nats(&there, broker.url())
            .import(Import::new("a").at_least_once("A", "b").retry(retry)),
    );
    let mailbox = there.subscription("a").acknowledged().pull().unwrap();
    out.publish(here.message("a").payload("bad")).unwrap().wait(LIMIT).unwrap();
    for attempt in 1..=3 {
        let message = mailbox.recv_timeout(LIMIT).unwrap();
        assert_eq!((back.stats().imports[0].acknowledged, attempt), (0, attempt));
        mailbox.bury(&message, Some("no"), 1).unwrap();
    }
    until("it is given up", || back.stats().imports[0].dead == 1);
    assert_eq!(there.dead_letters(&paceline::hub::DeadFilter::all()).len(), 1);
    assert_eq!(back.stats().imports[0].again, 2);
    out.publish(here.message("a").payload("thrown away")).unwrap().wait(LIMIT).unwrap();
    assert!(mailbox.recv_timeout(LIMIT).is_ok());
    let thrown = Acknowledged { discarded: 1, ..Acknowledged::default() };
    mailbox.acknowledge(thrown).unwrap();
    let message = mailbox.recv_timeout(LIMIT).unwrap();
    assert_eq!((message.payload().len(), back.stats().imports[0].acknowledged), (11, 0));
    mailbox.acknowledge(Acknowledged { delivered: 1, ..Acknowledged::default() }).unwrap();
    until("it is acknowledged", || back.stats().imports[0].acknowledged == 1);
    assert!(there.audit().is_balanced());
}

/// Goal: what nobody subscribes to waits at the broker for who does.
#[test]
fn what_nobody_handles_waits() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let out =
        connected(Bridge::nats(&here, broker.url()).export(Export::new("a").at_least_once("A")));
    let back = connected(
        Bridge::nats(&there, broker.url()).import(Import::new("a").at_least_once("A", "b")),
    );
    out.publish(here.message("a")).unwrap().wait(LIMIT).unwrap();
    until("it was asked for again", || back.stats().imports[0].again > 0);
    assert_eq!(back.stats().imports[0].acknowledged, 0);
    let mailbox = there.mailbox("a", 10).unwrap();
    assert!(mailbox.recv_timeout(LIMIT).is_ok());
    until("it is acknowledged", || back.stats().imports[0].acknowledged == 1);
}

/// Goal: nothing that was published is lost when the broker is killed, again and again. With one message under way, of an
/// import, each key's order holds, too: with more the broker may give out what is new before it gives out again what was
/// on its way.
#[test]
fn a_broker_that_dies_loses_nothing() {
    for in_flight in [1, 256] {
        a_broker_dies(in_flight);
    }
}

fn a_broker_dies(in_flight: usize) {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let seen: Arc<Mutex<Vec<(String, u32)>>> = Arc::default();
    let list = Arc::clone(&seen);
    let _handler = there
        .subscribe("k.*", move |message: &Message<'_>| {
            let number = String::from_utf8_lossy(message.payload()).parse().unwrap();
            list.lock().unwrap().push((message.key().to_string(), number));
        })
        .unwrap();
    let out = Bridge::nats(&here, broker.url())
        .export(Export::new("k.*").at_least_once("K"))
        .open()
        .unwrap();
    let import = Import::new("k.*").at_least_once("K", "b").in_flight(in_flight);
    let back = Bridge::nats(&there, broker.url())
        .import(import.ack_wait(Duration::from_secs(2)))
        .open()
        .unwrap();
    const EACH: u32 = 3000;
    let publisher = std::thread::spawn(move || {
        for number in 0..EACH {
            for key in ["k.a", "k.b"] {
                let _ = here.publish(key, format!("{number}")).unwrap();
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        here
    });
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(400));
        broker.kill();
        std::thread::sleep(Duration::from_millis(100));
        broker.start_again();
    }
    let here = publisher.join().unwrap();
    out.flush(LIMIT).unwrap();
    until("all are handled", || {
        let mut distinct: Vec<_> = seen.lock().unwrap().clone();
        distinct.sort();
        distinct.dedup();
        distinct.len() == 2 * EACH as usize
    });
    for key in ["k.a", "k.b"] {
        let seen = seen.lock().unwrap();
        let numbers = seen.iter().filter(|(k, _)| k == key).map(|(_, n)| *n);
        let firsts = firsts(numbers);
        let early = firsts.windows(2).find(|pair| in_flight == 1 && pair[0] > pair[1]);
        assert_eq!(early, None, "{key}: first deliveries are in order");
        assert_eq!(firsts.len(), EACH as usize, "{key}");
    }
    drop((here, out, back));
}

/// Each number where it comes first.
fn firsts(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut known = std::collections::HashSet::new();
    numbers.filter(|number| known.insert(*number)).collect()
}

/// Goal: an import that begins at a time gets what was stored then or later, and what comes while it does, once each and in
/// order.
#[test]
fn an_import_from_a_time_on_joins_what_comes() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let out = connected(
        Bridge::nats(&here, broker.url()).export(Export::new("t").at_least_once("TIMES")),
    );
    let publish =
        |number: u32| out.publish(here.message("t").payload(format!("{number}"))).unwrap();
    publish(0).wait(LIMIT).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let begin = std::time::SystemTime::now();
    std::thread::sleep(Duration::from_millis(50));
    let first: Vec<_> = (1..200).map(publish).collect();
    first.iter().for_each(|one| one.wait(LIMIT).unwrap());
    let mailbox = there.mailbox("t", 1000).unwrap();
    let _back = Bridge::nats(&there, broker.url())
        .import(Import::new("t").at_least_once("TIMES", "late").start_at(StartAt::Time(begin)))
        .open()
        .unwrap();
    let second: Vec<_> = (200..400).map(publish).collect();
    second.iter().for_each(|one| one.wait(LIMIT).unwrap());
    for number in 1..400 {
        assert_eq!(next(&mailbox).payload(), format!("{number}").as_str());
    }
}

/// Goal: a handler sees that a message has come before, and how often, whatever its publisher says.
#[test]
fn what_comes_again_is_marked() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&seen);
    let handler = move |message: &Message<'_>| -> Result<(), Failure> {
        let mut list = list.lock().unwrap();
        list.push(message.headers().get("Paceline-Redelivered").map(str::to_owned));
        match list.len() < 3 {
            true => Err(Failure::new("not yet")),
            false => Ok(()),
        }
    };
    let failing = there.subscription("a").on_failure(OnFailure::dead_letter());
    let _handler = failing.serve_shared(handler).unwrap();
    let retry = Retry::fixed(5, Duration::from_millis(10));
    let back = connected(
        Bridge::nats(&there, broker.url())
            .import(Import::new("a").at_least_once("A", "b").retry(retry)),
    );
    let out =
        connected(Bridge::nats(&here, broker.url()).export(Export::new("a").at_least_once("A")));
    let headers = Headers::new([("Paceline-Redelivered", "17")]).unwrap();
    out.publish(here.message("a").headers(headers)).unwrap().wait(LIMIT).unwrap();
    until("it is dealt with", || back.stats().imports[0].acknowledged == 1);
    assert_eq!(*seen.lock().unwrap(), [None, Some("1".into()), Some("2".into())]);
}
