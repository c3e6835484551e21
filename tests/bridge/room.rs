//! What comes of a stream is no more than there is room for, and is never run by two workers that are well.

use crate::broker::{Broker, broker, connected};
use crate::common::{Gate, hang_guard, until};
use crate::raw::Raw;
use crate::topics::hub;
use paceline::Pool;
use paceline::bridge::tasks::{DurableQueue, DurableStatus, Job};
use paceline::bridge::{Bridge, Import};
use paceline::hub::Message;
use paceline::task::WorkerPool;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// A worker of one thread that holds up to four tasks.
fn worker(
    broker: &Broker,
    wait: Duration,
    handler: impl Fn() + Send + Sync + 'static,
) -> DurableQueue {
    let pool = Pool::builder().threads(1).build().unwrap();
    let builder = WorkerPool::new(&pool).durable("q").nats(broker.url()).in_flight(4);
    let handler = move |_: &Job<'_>| -> Vec<u8> {
        handler();
        Vec::new()
    };
    let queue = builder.ack_wait(wait).task("t", handler).open().unwrap();
    queue.wait_connected(LIMIT).unwrap();
    queue
}

/// Goal: tasks that wait with a worker for longer than `ack_wait` are run once.
#[test]
fn a_backlog_of_long_tasks_is_run_once() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let runs = Arc::new(AtomicU64::new(0));
    let wait = Duration::from_secs(1);
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let count = Arc::clone(&runs);
            worker(&broker, wait, move || {
                count.fetch_add(1, Relaxed);
                std::thread::sleep(wait * 2 / 5);
            })
        })
        .collect();
    let tasks: Vec<_> = (0..30).map(|_| workers[0].submit("t", "").unwrap()).collect();
    for task in &tasks {
        let report = task.wait(LIMIT).unwrap();
        assert_eq!((report.status, report.attempts), (DurableStatus::Completed, 1));
    }
    assert_eq!(runs.load(Relaxed), 30);
}

/// Goal: a worker that stood still for longer than `ack_wait` does not run what it finds when it goes on: another has it.
#[test]
fn a_stale_copy_is_not_run() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (stands, runs) = (Gate::new(), Gate::new());
    let wait = Duration::from_millis(500);
    let stale = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&stale);
    let first = worker(&broker, wait, move || {
        count.fetch_add(1, Relaxed);
    });
    first.submit("t", "").unwrap().wait(LIMIT).unwrap();
    let held = stands.clone();
    // On the thread that takes tasks.
    first.task("nobody").submit_then(move |_| held.wait()).unwrap();
    stands.until_entered(1);
    let held = runs.clone();
    let submitter = {
        let pool = Pool::builder().threads(1).build().unwrap();
        WorkerPool::new(&pool).durable("q").nats(broker.url()).open().unwrap()
    };
    let task = submitter.task("t").timeout(LIMIT).submit().unwrap();
    let second = worker(&broker, wait, move || held.wait());
    // The broker has given up the first by then.
    runs.until_entered(1);
    stands.open();
    until("the first has looked at what it has", || first.submit("nobody", "").is_ok());
    std::thread::sleep(wait / 5);
    runs.open();
    assert_eq!(task.wait(LIMIT).unwrap().status, DurableStatus::Completed);
    assert_eq!(stale.load(Relaxed), 1, "the one before");
    drop(second);
}

/// Goal: a consumer that bounds how many one may ask for brings all.
#[test]
fn a_bound_on_requests_is_kept() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let mut raw = Raw::connect(&broker.url());
    let made = raw.request(
        "$JS.API.STREAM.CREATE.S",
        r#"{"name":"S","subjects":["s.>"],"storage":"file","retention":"limits","num_replicas":1}"#,
    );
    assert!(!made.contains("error"), "{made}");
    let made = raw.request(
        "$JS.API.CONSUMER.DURABLE.CREATE.S.d",
        r#"{"stream_name":"S","config":{"durable_name":"d","ack_policy":"explicit","deliver_policy":"all",
            "filter_subject":"s.>","max_batch":5,"max_expires":10000000000,"max_deliver":-1,
            "max_ack_pending":65536,"ack_wait":30000000000}}"#,
    );
    assert!(!made.contains("error"), "{made}");
    for _ in 0..20 {
        raw.publish("s.a", b"x");
    }
    raw.sync();
    let (there, seen) = (hub(), Arc::new(AtomicU64::new(0)));
    let count = Arc::clone(&seen);
    let _handler = there.subscribe("s.>", move |_: &Message<'_>| {
        count.fetch_add(1, Relaxed);
    });
    let bridge = connected(
        Bridge::nats(&there, broker.url()).import(Import::new("s.>").at_least_once("S", "d")),
    );
    until("all have come", || seen.load(Relaxed) == 20);
    assert_eq!(bridge.stats().reason, None);
}
