//! A consumer whose place is not in the stream that there is: its broker has lost messages and gives their numbers again.

use crate::broker::{Broker, broker, connected};
use crate::common::{hang_guard, until};
use crate::raw::Raw;
use crate::topics::hub;
use paceline::Pool;
use paceline::bridge::tasks::{DurableQueue, Job};
use paceline::bridge::{Bridge, Import};
use paceline::hub::{Hub, Mailbox, Message};
use paceline::task::WorkerPool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const LANE: &str = "paceline_q_normal";

type Runs = Arc<Mutex<Vec<String>>>;

/// A queue with these tasks, which note their arguments.
fn queue(broker: &Broker, tasks: &[&str], runs: &Runs) -> DurableQueue {
    let pool = Pool::builder().threads(1).build().unwrap();
    let workers = WorkerPool::new(&pool);
    let builder = workers.durable("q").nats(broker.url());
    let builder = tasks.iter().fold(builder, |builder, name| {
        let runs = Arc::clone(runs);
        builder.task(*name, move |job: &Job<'_>| {
            runs.lock().unwrap().push(String::from_utf8_lossy(job.arguments()).into_owned());
            ""
        })
    });
    let queue = builder.open().unwrap();
    queue.wait_connected(LIMIT).unwrap();
    queue
}

/// Submits and waits until all have run, and the broker knows.
fn run(queue: &DurableQueue, names: impl Iterator<Item = String>) {
    let before = acknowledged(queue);
    let tasks: Vec<_> = names
        .map(|name| queue.task("t").arguments(name).timeout(LIMIT).submit().unwrap())
        .collect();
    tasks.iter().for_each(|task| _ = task.wait(LIMIT).unwrap());
    until("the broker knows", || acknowledged(queue) == before + tasks.len() as u64);
}

fn acknowledged(queue: &DurableQueue) -> u64 {
    queue.stats().imports.iter().map(|import| import.acknowledged).sum()
}

/// What is told of consumers that were made anew.
fn notices(hub: &Hub) -> Mailbox {
    hub.mailbox("$SYS.bridge.>", 1000).unwrap()
}

fn told(notices: &Mailbox, event: &str) -> Vec<String> {
    let told = core::iter::from_fn(|| notices.try_recv().unwrap());
    let texts = told.map(|notice| String::from_utf8_lossy(notice.payload()).into_owned());
    texts.filter(|text| text.contains(event)).collect()
}

/// Goal: tasks that were accepted after the broker has lost numbers run, though their numbers are behind the place of the
/// consumer: while a worker is there all the time, and for one that begins when the stream is past that place again.
#[test]
fn tasks_below_a_stale_place_run() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let runs = Runs::default();
    let seen = || {
        let mut seen = runs.lock().unwrap().clone();
        seen.sort();
        seen
    };
    let worker = queue(&broker, &["t"], &runs);
    run(&worker, (0..9).map(|number| format!("a{number}")));
    broker.stop();
    broker.lose_messages(LANE);
    broker.start_again();
    run(&worker, (0..3).map(|number| format!("b{number}")));
    assert_eq!(seen().len(), 12, "{:?}", seen());
    // The place is 3. A worker of another task: the name has nobody.
    drop(worker);
    broker.stop();
    broker.lose_messages(LANE);
    broker.start_again();
    let submits = queue(&broker, &[], &runs);
    let submit = |number| submits.submit("t", format!("c{number}")).unwrap();
    let tasks: Vec<_> = (0..6).map(submit).collect();
    let _worker = queue(&broker, &["t"], &runs);
    tasks.iter().for_each(|task| _ = task.wait(LIMIT).unwrap());
    assert_eq!(seen().len(), 18, "{:?}", seen());
}

/// Goal: of a stream that is kept, what was stored under numbers that are given again comes, and what was acknowledged
/// does not come once more; whether the stream is past the consumer's place or not. A notice says it.
#[test]
fn imports_below_a_stale_place_come() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let store = |url: &str, names: core::ops::Range<u32>| {
        let mut raw = Raw::connect(url);
        for name in names {
            // The broker knows a stream before it stores for it: until then nobody responds (503).
            until("it is stored", || raw.request(&format!("k.{name}"), "x").contains("\"seq\""));
        }
    };
    let there = hub();
    let (seen, notices) = (Arc::new(Mutex::new(Vec::new())), notices(&there));
    let list = Arc::clone(&seen);
    let handler = move |message: &Message<'_>| {
        let name = message.key().as_str().trim_start_matches("k.").parse::<u32>().unwrap();
        list.lock().unwrap().push(name);
    };
    let _handler = there.subscribe("k.*", handler).unwrap();
    let rule = Import::new("k.*").at_least_once("S", "d");
    let bridge = connected(Bridge::nats(&there, broker.url()).import(rule));
    let came = |count: u64| {
        until("all have come", || bridge.stats().imports[0].acknowledged == count);
        seen.lock().unwrap().clone()
    };
    until("the stream is there", || {
        let mut raw = Raw::connect(&broker.url());
        raw.request("$JS.API.STREAM.INFO.S", "").contains("\"created\"")
    });
    store(&broker.url(), 0..5);
    assert_eq!(came(5), (0..5).collect::<Vec<_>>());
    broker.stop();
    let copy = broker.copy_messages("S");
    broker.start_again();
    store(&broker.url(), 5..10);
    assert_eq!(came(10), (0..10).collect::<Vec<_>>());
    for (total, more, is_behind) in [(13, 10..13, true), (30, 13..30, false)] {
        broker.stop();
        broker.put_back(&copy, "S");
        // Where the bridge does not find it.
        let url = broker.start_elsewhere();
        store(&url, more);
        broker.stop();
        broker.start_again();
        assert_eq!(came(total), (0..total as u32).collect::<Vec<_>>());
        let told = told(&notices, "made_anew");
        assert_eq!(told.len(), 1, "{told:?}");
        let reason =
            if is_behind { "the stream's last message is 8" } else { "is another than before" };
        assert!(told[0].contains(reason), "{told:?}");
    }
}

/// Goal: a place that is right is left alone.
#[test]
fn a_broker_that_forgets_nothing_has_no_consumer_made_anew() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let (here, there) = (hub(), hub());
    let notices = notices(&there);
    let _handler = there.subscribe("k", |_: &Message<'_>| ()).unwrap();
    let rule = paceline::bridge::Export::new("k").at_least_once("S");
    let out = connected(Bridge::nats(&here, broker.url()).export(rule));
    let back = connected(
        Bridge::nats(&there, broker.url()).import(Import::new("k").at_least_once("S", "d")),
    );
    for round in 1..4 {
        for _ in 0..20 {
            let message = here.message("k").payload("x");
            out.publish(message).unwrap().wait(LIMIT).unwrap();
        }
        until("all have come", || back.stats().imports[0].acknowledged == 20 * round);
        broker.kill();
        broker.start_again();
        back.wait_connected(LIMIT).unwrap();
    }
    until("it is bound", || back.stats().connects == 4);
    let message = here.message("k").payload("x");
    out.publish(message).unwrap().wait(LIMIT).unwrap();
    until("the last has come", || back.stats().imports[0].acknowledged == 61);
    let all = told(&notices, "bridge");
    assert!(!all.iter().any(|text| text.contains("made_anew")), "{all:?}");
    // Which version it is, is said once.
    assert!(all.iter().filter(|text| text.contains("old_version")).count() <= 1, "{all:?}");
}
