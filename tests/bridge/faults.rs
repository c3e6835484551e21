//! What the broker refuses, what is taken away from a bridge while it runs, and how it ends.

use crate::broker::{Broker, broker, connected};
use crate::common::{Gate, forked, hang_guard, in_child, until};
use crate::raw::Raw;
use crate::topics::{hub, next};
use paceline::bridge::{Bridge, Export, Import};
use paceline::hub::{Headers, Hub, Message, Overflow};
use paceline::task::WorkerPool;
use paceline::{Error, Pool};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

/// Goal: a bridge, and a queue of durable tasks, that a forked child drops, takes no thread of the child's for its own. Method:
/// the child's threads have the places of those that it does not have.
#[test]
fn a_forked_child_keeps_its_own_threads() {
    let _guard = hang_guard();
    in_child(|| {
        let hub = hub();
        let bridge = Bridge::nats(&hub, "nats://127.0.0.1:1").export("a").open().unwrap();
        let workers = WorkerPool::new(&Pool::builder().threads(1).build().unwrap());
        let queue = workers.durable("q").nats("nats://127.0.0.1:1").open().unwrap();
        let end = forked(move || {
            let gate = Gate::new();
            let spawn = |_| {
                let held = gate.clone();
                std::thread::spawn(move || held.wait())
            };
            let own: Vec<_> = (0..8).map(spawn).collect();
            drop((bridge, queue));
            gate.open();
            own.into_iter().for_each(|one| one.join().unwrap());
        });
        assert_eq!(end, 0);
    });
}

/// Goal: a message that the broker never takes stops none of those behind it, with either promise; its publisher is told.
#[test]
fn what_the_broker_never_takes_does_not_block_the_rest() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let remote = there.mailbox("often", 100).unwrap();
    let _back = connected(Bridge::nats(&there, broker.url()).import("often"));
    let out = connected(
        Bridge::nats(&here, broker.url())
            .export("often")
            .export(Export::new("kept").at_least_once("KEPT")),
    );
    crate::topics::warm_up(&here, "often", &remote);
    // The broker takes 1 MB with its headers, so the second is too large by these only.
    for size in [2 << 20, 1 << 20] {
        let _ = here.publish("often", vec![b'x'; size]).unwrap();
        let end = out.publish(here.message("kept").payload(vec![b'x'; size])).unwrap().wait(LIMIT);
        assert!(matches!(end, Err(Error::Invalid { .. })), "{end:?}");
    }
    // A header for the broker that this stream cannot meet.
    for name in ["Nats-Expected-Stream", "Nats-Expected-Last-Msg-Id", "Nats-Expected-Last-Sequence"]
    {
        let headers = Headers::new([(name, "17")]).unwrap();
        let end = out.publish(here.message("kept").headers(headers)).unwrap().wait(LIMIT);
        assert!(matches!(end, Err(Error::Invalid { .. })), "{name}: {end:?}");
    }
    let _ = here.publish("often", "small").unwrap();
    out.publish(here.message("kept").payload("small")).unwrap().wait(LIMIT).unwrap();
    assert_eq!(next(&remote).payload(), b"small");
    let stats = out.stats();
    assert_eq!((stats.exports[0].refused, stats.exports[1].refused), (2, 5));
    assert_eq!((stats.exports[1].stored, stats.connects), (1, 1), "{stats:?}");
}

/// Goal: where the broker has no JetStream, rules at most once go on as ever, and the bridge says what it lacks.
#[test]
fn a_broker_without_streams_does_not_stop_the_rest() {
    let _guard = hang_guard();
    let Some(broker) = Broker::start_plain() else { return };
    let (here, there) = (hub(), hub());
    let remote = there.mailbox("often", 1000).unwrap();
    let back = connected(
        Bridge::nats(&there, broker.url())
            .import("often")
            .import(Import::new("kept").at_least_once("KEPT", "b")),
    );
    let out = connected(
        Bridge::nats(&here, broker.url())
            .export("often")
            .export(Export::new("kept").at_least_once("KEPT")),
    );
    crate::topics::warm_up(&here, "often", &remote);
    for bridge in [&out, &back] {
        until("the reason", || bridge.stats().reason.is_some_and(|reason| reason.contains("KEPT")));
    }
    for number in 0..100 {
        let _ = here.publish("often", format!("{number}")).unwrap();
        assert_eq!(next(&remote).payload(), format!("{number}").as_str());
    }
    assert_eq!((out.stats().connects, back.stats().connects), (1, 1));
}

/// Goal: a stream that is full holds the export up, and no longer; nothing is lost, and the reason is gone with it.
#[test]
fn a_full_stream_is_waited_for() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let mut raw = Raw::connect(&broker.url());
    let config = r#"{"name":"FULL","subjects":["full"],"max_msgs":5,"discard":"new","storage":"file","num_replicas":1,"retention":"limits"}"#;
    let made = raw.request("$JS.API.STREAM.CREATE.FULL", config);
    assert!(!made.contains("error"), "{made}");
    let here = hub();
    let out = connected(
        Bridge::nats(&here, broker.url()).export(Export::new("full").at_least_once("FULL")),
    );
    let sent: Vec<_> =
        (0..8).map(|_| out.publish(here.message("full").payload("x")).unwrap()).collect();
    until("it is full", || out.stats().reason.is_some_and(|reason| reason.contains("no room")));
    assert_eq!(out.stats().exports[0].stored, 5);
    let emptied = raw.request("$JS.API.STREAM.PURGE.FULL", "");
    assert!(!emptied.contains("error"), "{emptied}");
    sent.iter().for_each(|one| one.wait(LIMIT).unwrap());
    assert_eq!((out.stats().exports[0].stored, out.stats().reason), (8, None));
}

/// Goal: a stream, and a consumer, that somebody deletes while the bridge runs, is made again, and what comes then comes.
#[test]
fn what_is_deleted_at_the_broker_is_made_again() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let mut raw = Raw::connect(&broker.url());
    let (here, there) = (hub(), hub());
    let mailbox = there.mailbox("a", 1000).unwrap();
    let out =
        connected(Bridge::nats(&here, broker.url()).export(Export::new("a").at_least_once("A")));
    let _back = connected(
        Bridge::nats(&there, broker.url()).import(Import::new("a").at_least_once("A", "b")),
    );
    for deleted in ["$JS.API.CONSUMER.DELETE.A.b", "$JS.API.STREAM.DELETE.A"] {
        out.publish(here.message("a").payload("before")).unwrap().wait(LIMIT).unwrap();
        assert_eq!(next(&mailbox).payload(), b"before", "{deleted}");
        std::thread::sleep(Duration::from_millis(100));
        let answer = raw.request(deleted, "");
        assert!(answer.contains("\"success\":true"), "{answer}");
        out.publish(here.message("a").payload("after")).unwrap().wait(LIMIT).unwrap();
        until("what came after", || {
            mailbox
                .recv_timeout(Duration::from_millis(100))
                .is_ok_and(|one| one.payload() == b"after")
        });
    }
    assert_eq!(out.stats().connects, 1);
}

/// Goal: a message that has no room in the hub when the connection is lost is published when there is room.
#[test]
fn what_waits_for_room_survives_the_connection() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let narrow =
        there.subscription("a").capacity(1).overflow(Overflow::Block(LIMIT)).pull().unwrap();
    let out =
        connected(Bridge::nats(&here, broker.url()).export(Export::new("a").at_least_once("A")));
    let back = connected(
        Bridge::nats(&there, broker.url())
            .import(Import::new("a").at_least_once("A", "b").ack_wait(Duration::from_secs(1))),
    );
    let sent: Vec<_> =
        (0..4).map(|n| out.publish(here.message("a").payload(format!("{n}"))).unwrap()).collect();
    sent.iter().for_each(|one| one.wait(LIMIT).unwrap());
    until("three wait for room", || back.stats().imports[0].in_flight == 4);
    broker.kill();
    until("the loss", || !back.is_connected());
    broker.start_again();
    let mut seen: Vec<Vec<u8>> = (0..4).map(|_| next(&narrow).payload().to_vec()).collect();
    seen.sort();
    assert_eq!(seen, [b"0", b"1", b"2", b"3"]);
    until("all are acknowledged", || back.stats().imports[0].in_flight == 0);
    assert_eq!(back.close(LIMIT), 0);
}

/// Goal: at most once, too, what was taken to be sent when the connection is lost is sent over the next; only what the
/// connection had is lost.
#[test]
fn what_was_taken_and_not_sent_is_sent_later() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let here = hub();
    let out = connected(Bridge::nats(&here, broker.url()).export("a"));
    broker.kill();
    const ALL: u64 = 20_000;
    for _ in 0..ALL {
        let _ = here.publish("a", vec![b'x'; 1000]).unwrap();
    }
    broker.start_again();
    out.flush(LIMIT).unwrap();
    let stats = &out.stats().exports[0];
    assert_eq!((stats.sent, stats.dropped, stats.waiting, stats.in_flight), (ALL, 0, 0, 0));
}

/// Goal: what lies in a stream and is no message of a hub is counted and never asked for again.
#[test]
fn what_is_no_message_of_a_hub_is_left_out() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let there = hub();
    let mailbox = there.mailbox("k.>", 1000).unwrap();
    let back = connected(
        Bridge::nats(&there, broker.url()).import(Import::new("k.>").at_least_once("K", "b")),
    );
    let mut raw = Raw::connect(&broker.url());
    // Made after the stream, which is known before it stores.
    until("the consumer", || raw.request("$JS.API.CONSUMER.INFO.K.b", "").contains("\"config\""));
    let long = format!("k.{}", "x".repeat(300));
    raw.publish(&long, b"too long a key");
    raw.publish("k.\u{85}", b"a control character");
    raw.publish_with("k.a", None, &"h: 1\r\n".repeat(100), b"too many headers");
    raw.publish("k.good", b"good");
    assert_eq!(next(&mailbox).payload(), b"good");
    until("all are dealt with", || {
        let stats = &back.stats().imports[0];
        (stats.refused, stats.in_flight, stats.acknowledged) == (3, 0, 1)
    });
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!((back.stats().imports[0].again, back.stats().imports[0].refused), (0, 3));
}

/// Goal: it can be closed anywhere, and more than once: in a handler of its own message, by the function that learns that
/// a message is stored, by two threads. None waits for longer than was said.
#[test]
fn it_can_be_closed_anywhere() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let out = Arc::new(connected(
        Bridge::nats(&here, broker.url()).export(Export::new("a").at_least_once("A")),
    ));
    let back = Arc::new(connected(
        Bridge::nats(&there, broker.url()).import(Import::new("a").at_least_once("A", "b")),
    ));
    let (tell, told) = mpsc::channel();
    let bridge = Arc::clone(&back);
    let _handler = there
        .subscribe("a", move |_: &Message<'_>| {
            tell.send(bridge.close(Duration::from_millis(100))).unwrap();
        })
        .unwrap();
    let (end, ended) = mpsc::channel();
    let bridge = Arc::clone(&out);
    out.publish(here.message("a")).unwrap().then(move |stored| {
        bridge.close(LIMIT);
        end.send(stored).unwrap();
    });
    ended.recv_timeout(LIMIT).unwrap().unwrap();
    assert_eq!(told.recv_timeout(LIMIT).unwrap(), 0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(out.close(LIMIT), 0));
        }
    });
    assert!(matches!(out.publish(here.message("a")), Err(Error::ShutDown)));
    assert!(matches!(out.flush(LIMIT), Ok(())));
    assert!(matches!(out.wait_connected(LIMIT), Err(Error::ShutDown)));
}

/// Goal: what a bridge that has ended leaves is counted, and publishers of its keys do not wait for it.
#[test]
fn a_bridge_that_has_ended_holds_nobody_up() {
    let _guard = hang_guard();
    let here = hub();
    let out = Bridge::nats(&here, "nats://127.0.0.1:1")
        .export(Export::new("a").at_least_once("A").buffer(10))
        .open()
        .unwrap();
    let waits: Vec<_> = (0..10).map(|_| out.publish(here.message("a")).unwrap()).collect();
    let begun = Instant::now();
    assert_eq!(out.close(Duration::from_millis(50)), 10);
    assert!(waits.iter().all(|one| matches!(one.wait(LIMIT), Err(Error::ShutDown))));
    assert_eq!((out.stats().exports[0].waiting, out.stats().exports[0].dropped), (0, 10));
    for _ in 0..100 {
        assert_eq!(here.publish("a", "x").unwrap().matched, 0);
    }
    assert_eq!(out.close(LIMIT), 10);
    assert!(begun.elapsed() < LIMIT);
}

/// Goal: a time to end that is made shorter while it runs is kept: another has closed it, or the pool ends.
#[test]
fn the_shorter_time_to_end_holds() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let pool = Pool::builder().threads(2).build().unwrap();
    let hub = Hub::new(&pool).unwrap();
    let (open, opened) = mpsc::channel::<()>();
    let opened = Mutex::new(opened);
    let calls = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&calls);
    let _handler = hub
        .subscribe("a", move |_: &Message<'_>| {
            count.fetch_add(1, Relaxed);
            let _ = opened.lock().unwrap().recv_timeout(LIMIT);
        })
        .unwrap();
    let from = crate::topics::hub();
    let out =
        connected(Bridge::nats(&from, broker.url()).export(Export::new("a").at_least_once("A")));
    let back = connected(
        Bridge::nats(&hub, broker.url()).import(Import::new("a").at_least_once("A", "b")),
    );
    out.publish(from.message("a")).unwrap().wait(LIMIT).unwrap();
    until("it works", || calls.load(Relaxed) == 1);
    std::thread::scope(|scope| {
        scope.spawn(|| back.close(Duration::from_secs(3600)));
        std::thread::sleep(Duration::from_millis(100));
        scope.spawn(|| back.close(Duration::ZERO));
    });
    open.send(()).unwrap();
}

/// Goal: the pool may end before its bridges, with a broker and without; their threads end, and nobody hangs.
#[test]
fn the_pool_may_end_first() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let pool = Pool::builder().threads(2).build().unwrap();
    let hub = Hub::new(&pool).unwrap();
    let rules = |url: String| {
        let bridge = Bridge::nats(&hub, url).export("a").import("b");
        let bridge = bridge.export(Export::new("c").at_least_once("C"));
        bridge.import(Import::new("d").at_least_once("D", "b"))
    };
    let bridges =
        [connected(rules(broker.url())), rules("nats://127.0.0.1:1".into()).open().unwrap()];
    crate::common::finish(&pool);
    for bridge in &bridges {
        until("it has ended", || matches!(bridge.wait_connected(LIMIT), Err(Error::ShutDown)));
        bridge.close(LIMIT);
    }
    assert!(matches!(rules(broker.url()).open(), Err(Error::ShutDown)));
}

/// Goal: a child that was forked while a bridge is open ends it without waiting for its parent's thread, and a bridge of
/// its own is another origin.
#[test]
fn a_fork_leaves_the_bridge_to_its_parent() {
    let _guard = hang_guard();
    in_child(|| {
        let Some(broker) = broker() else { return };
        let (here, url) = (hub(), broker.url());
        let mailbox = here.mailbox("a", 100).unwrap();
        let bridge = connected(Bridge::nats(&here, url.clone()).export("b").import("a"));
        let end = forked(move || {
            assert_eq!(bridge.close(LIMIT), 0);
            drop(bridge);
            let hub = hub();
            let own =
                connected(Bridge::nats(&hub, url).export(Export::new("a").at_least_once("A")));
            own.publish(hub.message("a").payload("of the child")).unwrap().wait(LIMIT).unwrap();
        });
        assert_eq!(end, 0);
        assert_eq!(next(&mailbox).payload(), b"of the child");
    });
}

/// Goal: a flush of a bridge that has ended does not say that all was sent: what waited was thrown away.
#[test]
fn a_flush_after_the_end_is_refused() {
    let _guard = hang_guard();
    let hub = hub();
    let bridge = Bridge::nats(&hub, "nats://127.0.0.1:1").export("a").open().unwrap();
    let _ = hub.publish("a", "lost").unwrap();
    assert!(matches!(bridge.flush(Duration::ZERO), Err(Error::TimedOut | Error::Broker { .. })));
    assert_eq!(bridge.close(Duration::ZERO), 1);
    assert!(matches!(bridge.flush(LIMIT), Err(Error::ShutDown)));
    assert!(matches!(bridge.wait_connected(LIMIT), Err(Error::ShutDown)));
}
