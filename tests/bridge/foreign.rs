//! Streams and consumers that another program has made, and servers of a cluster that nobody named.

use crate::broker::{Broker, broker, connected};
use crate::common::{hang_guard, until};
use crate::raw::Raw;
use crate::topics::{hub, next};
use paceline::bridge::{Bridge, Export, Import, StartAt};
use paceline::hub::Message;
use paceline::task::WorkerPool;
use paceline::{Error, Pool};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

fn make_stream(raw: &mut Raw, name: &str, subject: &str, more: &str) {
    let config = format!(
        r#"{{"name":"{name}","subjects":["{subject}"],"num_replicas":1,"storage":"file","retention":"limits"{more}}}"#
    );
    let made = raw.request(&format!("$JS.API.STREAM.CREATE.{name}"), &config);
    assert!(!made.contains("error"), "{made}");
}

fn make_consumer(raw: &mut Raw, config: &str) {
    let config = format!(r#"{{"stream_name":"S","config":{{"durable_name":"d",{config}}}}}"#);
    let made = raw.request("$JS.API.CONSUMER.DURABLE.CREATE.S.d", &config);
    assert!(!made.contains("error"), "{made}");
}

fn has_reason(bridge: &Bridge, part: &str) -> bool {
    bridge.stats().reason.is_some_and(|reason| reason.contains(part))
}

/// Goal: a stream that loses what it has said it stores is refused by the setting's name and value, and used once it is
/// another; one with limits that refuses what is new is no such stream.
#[test]
fn streams_that_lose_messages_are_refused() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let mut raw = Raw::connect(&broker.url());
    let bad = [
        (r#","storage":"memory""#, "storage is memory, but must be file"),
        (r#","no_ack":true"#, "no_ack is true, but must be false"),
        (r#","max_msgs":5"#, "discard is old, but must be new with max_msgs 5"),
        (r#","max_bytes":5000"#, "discard is old, but must be new with max_bytes 5000"),
        (r#","max_msgs_per_subject":1"#, "discard_new_per_subject is false, but must be true"),
    ];
    for (more, part) in bad {
        make_stream(&mut raw, "S", "s", more);
        let here = hub();
        let out = connected(
            Bridge::nats(&here, broker.url()).export(Export::new("s").at_least_once("S")),
        );
        let pending = out.publish(here.message("s")).unwrap();
        until(part, || has_reason(&out, part));
        let gone = raw.request("$JS.API.STREAM.DELETE.S", "");
        assert!(gone.contains("success"), "{gone}");
        pending.wait(LIMIT).unwrap();
        assert_eq!((out.stats().exports[0].sent, out.stats().reason), (1, None));
        drop(out);
        let gone = raw.request("$JS.API.STREAM.DELETE.S", "");
        assert!(gone.contains("success"), "{gone}");
    }
}

/// Goal: so it is with streams of tasks, which are to have each until it has ended.
#[test]
fn a_lane_that_is_no_work_queue_is_refused() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let mut raw = Raw::connect(&broker.url());
    let bad = [
        ("", "retention is limits, but must be workqueue"),
        (r#","retention":"workqueue","max_age":60000000000"#, "max_age is 60s, but must be 0"),
    ];
    for (number, (more, part)) in bad.into_iter().enumerate() {
        let name = format!("q{number}");
        let subjects = format!("paceline.tasks.{name}.normal.>");
        make_stream(&mut raw, &format!("paceline_{name}_normal"), &subjects, more);
        let workers = WorkerPool::new(&Pool::builder().threads(1).build().unwrap());
        let queue = workers.durable(&name).nats(broker.url()).open().unwrap();
        until(part, || {
            let end = queue.task("t").timeout(Duration::from_millis(100)).submit();
            matches!(end, Err(Error::Broker { reason }) if reason.contains(part))
        });
    }
}

/// Goal: a consumer that gives messages up, or does not wait for their acknowledgement, is refused, by the setting's name and
/// value; when it is gone the import makes its own, and what was stored comes.
#[test]
fn consumers_that_lose_messages_are_refused() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let mut raw = Raw::connect(&broker.url());
    let good = r#""ack_policy":"explicit","filter_subject":"s""#;
    let bad = [
        (format!(r#"{good},"max_deliver":3"#), "max_deliver is 3, but must be -1"),
        (format!(r#"{good},"headers_only":true"#), "headers_only is true, but must be false"),
        (format!(r#"{good},"ack_wait":5000000"#), "ack_wait is 5ms, but must be at least 100 ms"),
        (
            r#""ack_policy":"all","filter_subject":"s""#.into(),
            "ack_policy is All, but must be explicit",
        ),
        (
            r#""ack_policy":"none","filter_subject":"s""#.into(),
            "ack_policy is None, but must be explicit",
        ),
        (r#""ack_policy":"explicit""#.into(), "it is of \"\", and not of \"s\""),
    ];
    make_stream(&mut raw, "S", "s", "");
    for (config, part) in bad {
        make_consumer(&mut raw, &config);
        let there = hub();
        let mailbox = there.mailbox("s", 100).unwrap();
        let back = connected(
            Bridge::nats(&there, broker.url())
                .import(Import::new("s").at_least_once("S", "d").start_at(StartAt::New)),
        );
        until(part, || has_reason(&back, part));
        let deleted = raw.request("$JS.API.CONSUMER.DELETE.S.d", "");
        assert!(deleted.contains("success"), "{deleted}");
        until("it is well", || back.stats().reason.is_none());
        raw.publish("s", part.as_bytes());
        assert_eq!(next(&mailbox).payload(), part.as_bytes());
        drop(back);
        let deleted = raw.request("$JS.API.CONSUMER.DELETE.S.d", "");
        assert!(deleted.contains("success"), "{deleted}");
    }
}

/// Goal: a consumer that is there keeps its `ack_wait`, whatever the import says: it is told, and a handler that takes longer
/// has its message alone, as the broker hears of it in time.
#[test]
fn signs_of_life_come_as_the_consumer_needs_them() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let mut raw = Raw::connect(&broker.url());
    make_stream(&mut raw, "S", "s", "");
    make_consumer(
        &mut raw,
        r#""ack_policy":"explicit","filter_subject":"s","max_deliver":-1,"ack_wait":1000000000"#,
    );
    let runs = Arc::new(AtomicU64::new(0));
    let rule = Import::new("s").at_least_once("S", "d").ack_wait(Duration::from_secs(30));
    let both: Vec<_> = (0..2)
        .map(|_| {
            let (there, count) = (hub(), Arc::clone(&runs));
            let notices = there.mailbox("$SYS.bridge.other_ack_wait", 10).unwrap();
            let handler = move |_: &Message<'_>| {
                count.fetch_add(1, Relaxed);
                std::thread::sleep(Duration::from_millis(2500));
            };
            there.subscribe("s", handler).unwrap().detach();
            let back = connected(Bridge::nats(&there, broker.url()).import(rule.clone()));
            let notice = next(&notices);
            let text = String::from_utf8_lossy(notice.payload()).into_owned();
            assert!(text.contains("\"ack_wait\":\"1s\""), "{text}");
            back
        })
        .collect();
    raw.publish("s", b"x");
    until("it is dealt with", || both.iter().any(|back| back.stats().imports[0].acknowledged == 1));
    assert_eq!(runs.load(Relaxed), 1);
}

/// Goal: an import of what is new whose consumer is gone goes on where it was, whether it has had a message or not.
#[test]
fn what_is_stored_while_the_consumer_is_gone_comes() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let mut raw = Raw::connect(&broker.url());
    make_stream(&mut raw, "S", "s", "");
    raw.publish("s", b"old");
    raw.sync();
    let there = hub();
    let mailbox = there.mailbox("s", 1000).unwrap();
    let back = connected(
        Bridge::nats(&there, broker.url())
            .import(Import::new("s").at_least_once("S", "d").start_at(StartAt::New)),
    );
    until("the consumer", || raw.request("$JS.API.CONSUMER.INFO.S.d", "").contains("created"));
    for round in 0..3 {
        let deleted = raw.request("$JS.API.CONSUMER.DELETE.S.d", "");
        assert!(deleted.contains("success"), "{deleted}");
        // Before it is made again.
        for number in 0..10 {
            raw.publish("s", format!("{round} {number}").as_bytes());
        }
        for number in 0..10 {
            assert_eq!(next(&mailbox).payload(), format!("{round} {number}").as_bytes());
        }
        until("all are acknowledged", || back.stats().imports[0].in_flight == 0);
    }
    assert_eq!(mailbox.try_recv().unwrap().map(|one| one.payload().to_vec()), None);
}

/// Goal: a bridge that knows one server of a cluster goes on with another when that is gone.
#[test]
fn servers_that_the_cluster_tells_of_are_tried() {
    let _guard = hang_guard();
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (one, two) = (free(), free());
    let cluster = |own: u16, other: u16| {
        Broker::start_plain_with(&format!(
            "cluster {{ name: c, listen: \"127.0.0.1:{own}\", routes: [ \"nats://127.0.0.1:{other}\" ] }}"
        ))
    };
    let Some(mut first) = cluster(one, two) else { return };
    let second = cluster(two, one).unwrap();
    let address = |broker: &Broker| broker.url().trim_start_matches("nats://").to_owned();
    until("the first knows the second", || {
        let mut line = String::new();
        let stream = TcpStream::connect(address(&first)).unwrap();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.contains(&format!("\"{}\"", address(&second)))
    });
    let (here, there) = (hub(), hub());
    let remote = there.mailbox("a", 1000).unwrap();
    let out = connected(Bridge::nats(&here, first.url()).export("a"));
    let _back = connected(Bridge::nats(&there, second.url()).import("a"));
    crate::topics::warm_up(&here, "a", &remote);
    first.kill();
    until("it has another server", || out.stats().connects == 2);
    crate::topics::warm_up(&here, "a", &remote);
}
