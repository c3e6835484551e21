//! What the broker refuses is given up only if it is the message's own fault; otherwise it waits, and all who ask hear why.

use crate::broker::{Broker, broker, connected};
use crate::common::{hang_guard, until};
use crate::raw::{Raw, Scripted};
use crate::topics::hub;
use paceline::bridge::tasks::{DurableQueue, Job};
use paceline::bridge::{Bridge, Export, NatsSettings};
use paceline::task::WorkerPool;
use paceline::{Error, Lane, Pool};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(100);

/// What a broker says of its stream S.
const STREAM: &str = r#"{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":"S","subjects":["s.>"],
    "retention":"limits","max_consumers":-1,"max_msgs":-1,"max_bytes":-1,"max_age":0,"max_msgs_per_subject":-1,
    "max_msg_size":-1,"discard":"old","storage":"file","num_replicas":1,"duplicate_window":120000000000},
    "created":"2026-01-01T00:00:00Z","state":{"messages":0,"bytes":0,"first_seq":0,"first_ts":"0001-01-01T00:00:00Z",
    "last_seq":0,"last_ts":"0001-01-01T00:00:00Z","consumer_count":0}}"#;

fn refusal(code: u32, number: u32, text: &str) -> String {
    let error = format!(r#"{{"code":{code},"err_code":{number},"description":"{text}"}}"#);
    format!(r#"{{"stream":"S","seq":0,"error":{error}}}"#)
}

fn is_of_broker<T: std::fmt::Debug>(end: &paceline::Result<T>, part: &str) -> bool {
    match end {
        Err(Error::Broker { reason }) => reason.to_lowercase().contains(part),
        _ => false,
    }
}

/// Goal: what a full account refuses waits, and is stored when there is room; no message is given up.
#[test]
fn a_full_account_is_waited_for() {
    let _guard = hang_guard();
    let more = "no_auth_user: joe\naccounts { A { jetstream { max_file: 200KB }, users: [ { user: joe, password: pw } ] } }";
    let Some(broker) = Broker::start(more) else { return };
    let here = hub();
    let out =
        connected(Bridge::nats(&here, broker.url()).export(Export::new("a").at_least_once("A")));
    let sent: Vec<_> = (0..30)
        .map(|_| out.publish(here.message("a").payload(vec![b'x'; 10_000])).unwrap())
        .collect();
    until("it is full", || out.stats().reason.is_some_and(|it| it.contains("resource limits")));
    let full = sent.last().unwrap().wait(SOON);
    assert!(is_of_broker(&full, "resource limits"), "{full:?}");
    let mut raw = Raw::connect(&broker.url());
    let stores =
        |count: usize| until("more are stored", || out.stats().exports[0].stored >= count as u64);
    for stored in [16, 30] {
        stores(stored);
        if stored < 30 {
            let emptied = raw.request("$JS.API.STREAM.PURGE.A", "");
            assert!(!emptied.contains("error"), "{emptied}");
        }
    }
    sent.iter().for_each(|one| one.wait(LIMIT).unwrap());
    let stats = out.stats();
    assert_eq!((stats.exports[0].refused, stats.exports[0].stored, stats.reason), (0, 30, None));
}

/// Goal: of what a stream refuses, only what is about the message is final. Method: a stream that refuses all at first.
#[test]
fn only_what_is_about_the_message_is_final() {
    let _guard = hang_guard();
    let Some(broker) = Broker::start_plain() else { return };
    let (seen, now) = (Arc::<AtomicU64>::default(), Arc::<AtomicUsize>::default());
    let passing = [
        (400, 10002, "resource limits exceeded for account"),
        (429, 10167, "too many requests"),
        (500, 10047, "insufficient storage resources available"),
        (503, 10077, "maximum bytes exceeded"),
        // It has no expectation of its own.
        (400, 10060, "expected stream does not match"),
        (409, 10158, "duplicate message id is in process"),
        (400, 99999, "what nobody knows yet"),
    ];
    let last = [
        (400, 10054, "message size exceeds maximum allowed"),
        (400, 10097, "header size exceeds maximum allowed of 64k"),
        (400, 10071, "wrong last sequence: 1"),
        (400, 10111, "rollup not permitted"),
        (400, 10109, "invalid operation on sealed stream"),
        (400, 10166, "per-message TTL is disabled"),
    ];
    let (count, which) = (Arc::clone(&seen), Arc::clone(&now));
    let _stream = Scripted::listen(&broker.url(), &["$JS.API.>", "s.>"], move |subject, _| {
        if subject.starts_with("$JS.API.") {
            return Some(STREAM.into());
        }
        let (code, number, text) = *passing.iter().chain(&last).nth(which.load(Relaxed)).unwrap();
        let is_first = count.fetch_add(1, Relaxed) == 0;
        let is_final = which.load(Relaxed) >= passing.len();
        Some(match is_first || is_final {
            true => refusal(code, number, text),
            false => r#"{"stream":"S","seq":1}"#.into(),
        })
    });
    let here = hub();
    let out =
        connected(Bridge::nats(&here, broker.url()).export(Export::new("s.a").at_least_once("S")));
    for (index, (_, number, text)) in passing.iter().chain(&last).enumerate() {
        seen.store(0, Relaxed);
        now.store(index, Relaxed);
        let end = out.publish(here.message("s.a")).unwrap().wait(LIMIT);
        match (index < passing.len(), end) {
            (true, Ok(())) => assert_eq!(seen.load(Relaxed), 2, "{number}"),
            (false, Err(Error::Invalid { value, .. })) => assert!(value.contains(text), "{value}"),
            (_, end) => panic!("{number} {text}: {end:?}"),
        }
    }
    let stats = &out.stats().exports[0];
    assert_eq!((stats.stored, stats.refused), (passing.len() as u64, last.len() as u64));
}

/// Goal: as long as nothing is stored nobody hears that all is well. Method: a stream that is there, and whose answers to
/// messages are none; each time that one comes the bridge is asked.
#[test]
fn trouble_lasts_until_something_is_stored() {
    let _guard = hang_guard();
    let Some(broker) = Broker::start_plain() else { return };
    let bridge = Arc::new(OnceLock::<Arc<Bridge>>::new());
    let (asked, well) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let (its, count, is_well) = (Arc::clone(&bridge), Arc::clone(&asked), Arc::clone(&well));
    let _stream = Scripted::listen(&broker.url(), &["$JS.API.>", "s.>"], move |subject, _| {
        if subject.starts_with("$JS.API.") {
            return Some(STREAM.into());
        }
        let before = count.fetch_add(1, Relaxed);
        if before > 0 && its.wait().stats().reason.is_none() {
            is_well.fetch_add(1, Relaxed);
        }
        Some(if before < 5 { "nonsense".into() } else { r#"{"stream":"S","seq":1}"#.into() })
    });
    let here = hub();
    let out =
        connected(Bridge::nats(&here, broker.url()).export(Export::new("s.a").at_least_once("S")));
    let out = Arc::new(out);
    assert!(bridge.set(Arc::clone(&out)).is_ok());
    out.publish(here.message("s.a")).unwrap().wait(LIMIT).unwrap();
    assert_eq!((asked.load(Relaxed), well.load(Relaxed), out.stats().reason), (6, 0, None));
}

/// Goal: what the broker does not permit is not counted as sent, and who waits for it hears the reason.
#[test]
fn what_is_not_permitted_is_not_sent() {
    let _guard = hang_guard();
    let more = "authorization { users = [ { user: joe, password: pw, permissions: { publish: { deny: [\"no.>\", \"$JS.API.*.*.B\"] } } } ] }";
    let Some(broker) = Broker::start(more) else { return };
    let here = hub();
    let out = connected(
        Bridge::nats(&here, NatsSettings::new(broker.url()).user("joe", "pw"))
            .export("no.often")
            .export(Export::new("no.kept").at_least_once("A"))
            .export(Export::new("other").at_least_once("B")),
    );
    let _ = here.publish("no.often", "x").unwrap();
    let kept = out.publish(here.message("no.kept")).unwrap();
    let other = out.publish(here.message("other")).unwrap();
    until("it is told", || is_of_broker(&kept.wait(SOON), "permissions violation"));
    until("of the stream, too", || is_of_broker(&other.wait(SOON), "permissions violation"));
    until("it is counted", || {
        let exports = out.stats().exports;
        (exports[0].sent, exports[0].refused) == (0, 1) && exports[1].sent == 0
    });
    assert_eq!((out.stats().exports[1].refused, out.stats().exports[2].refused), (0, 0));
}

fn queue(settings: NatsSettings) -> DurableQueue {
    let workers = WorkerPool::new(&Pool::builder().threads(1).build().unwrap());
    workers.durable("q").nats(settings).open().unwrap()
}

/// Goal: a queue without a broker that serves it says why, whoever asks: for a task, for its reason, for its health.
#[test]
fn a_queue_says_why_it_cannot() {
    let _guard = hang_guard();
    let Some(plain) = Broker::start_plain() else { return };
    let users = "authorization { users = [ { user: joe, password: pw } ] }";
    let (closed, with_users) = ("nats://127.0.0.1:1", Broker::start(users).unwrap());
    let open = broker().unwrap();
    let cases = [
        (NatsSettings::new(closed), "refused"),
        (NatsSettings::new(plain.url()), "stream"),
        (NatsSettings::new(with_users.url()).user("joe", "wrong"), "authorization"),
        (NatsSettings::new(open.url()).require_tls(), "tls"),
    ];
    for (settings, part) in cases {
        let queue = queue(settings);
        until(part, || {
            let end = queue.task("t").timeout(SOON).submit().map(|task| task.id().to_owned());
            is_of_broker(&end, part) && queue.reason().is_some()
        });
        let task = queue.find(&format!("n{}", "0".repeat(32))).unwrap();
        assert!(is_of_broker(&task.wait(SOON), part), "{part}");
        assert!(is_of_broker(&queue.dead(1, 1), part), "{part}");
    }
}

/// Goal: a process whose queue has no broker is not ready, and is once it has.
#[cfg(all(feature = "http", feature = "metrics"))]
#[test]
fn a_queue_without_a_broker_is_not_ready() {
    use crate::client::get;
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let pool = Pool::builder().threads(2).build().unwrap();
    let ops = paceline::ops::Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let ready = || get(&ops.addresses()[0], "/health/ready");
    let queue = WorkerPool::new(&pool).durable("q").nats(broker.url()).open().unwrap();
    queue.submit("t", "").unwrap();
    until("it is ready", || ready().status == 200);
    broker.kill();
    until("it is not ready", || {
        let answer = ready();
        answer.status == 503 && answer.body.contains("bridge \"tasks q\" has no broker: ")
    });
    broker.start_again();
    until("it is ready again", || ready().status == 200);
}

/// Goal: names that the broker cannot serve are refused by name, and the longest that are taken serve.
#[test]
fn names_are_as_long_as_they_serve() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let workers = WorkerPool::new(&Pool::builder().threads(1).build().unwrap());
    let opened = |queue: &str, task: &str| {
        let builder = workers.durable(queue).nats(broker.url());
        builder.task(task, |job: &Job<'_>| job.name().len().to_string()).open()
    };
    let refused = |end: paceline::Result<DurableQueue>, part: &str| match end {
        Err(Error::Invalid { name, value, allowed }) => {
            let text = format!("{name} {value} {allowed}");
            assert!(text.contains(part), "{text}");
        }
        other => panic!("{other:?}"),
    };
    let (q, t) = (|count: usize| "q".repeat(count), |count: usize| "t".repeat(count));
    for name in ["a%b", "a b", "a\tb", "a*", "a>", "a.b", "a/b", "a\\b", ""] {
        refused(opened(name, "t"), "the name of a queue");
        refused(opened("q", name), "the name of a task");
        let queue = opened("q", "t").unwrap();
        assert!(matches!(queue.submit(name, ""), Err(Error::Invalid { .. })), "{name:?}");
    }
    refused(opened(&q(183), "t"), "1 to 182 bytes");
    refused(opened(&q(182), &t(24)), "1 to 23 bytes");
    refused(opened("q", &t(201)), "1 to 200 bytes");
    for (queue, task) in [(q(182), t(23)), (q(5), t(200))] {
        let queue = opened(&queue, &task).unwrap();
        let submitted = queue.task(&task).lane(Lane::Critical).unique("u").timeout(LIMIT).submit();
        let report = submitted.unwrap().wait(LIMIT).unwrap();
        assert_eq!(report.value, task.len().to_string().into_bytes());
    }
}
