//! Durable tasks that are too large, too late or forged, and worker pools that are full.

use crate::broker::{Broker, broker};
use crate::common::{Gate, hang_guard, until};
use crate::raw::Raw;
use paceline::bridge::tasks::{DurableBuilder, DurableQueue, DurableStatus, Job};
use paceline::task::{OverloadPolicy, WorkerPool};
use paceline::{Error, Pool, Retry};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const MS: Duration = Duration::from_millis(1);

fn workers() -> WorkerPool {
    WorkerPool::new(&Pool::builder().threads(2).build().unwrap())
}

fn queue(broker: &Broker) -> DurableBuilder {
    workers().durable("q").nats(broker.url())
}

fn opened(builder: DurableBuilder) -> DurableQueue {
    let queue = builder.open().unwrap();
    queue.wait_connected(LIMIT).unwrap();
    queue
}

/// Goal: arguments that the broker does not take are refused, a result fails its task, and a dead letter has less.
#[test]
fn what_is_larger_than_the_broker_allows_ends() {
    let _guard = hang_guard();
    let Some(broker) = Broker::start("max_payload: 65536") else { return };
    let runs = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&runs);
    let queue = opened(
        queue(&broker)
            .task("large", move |_: &Job<'_>| {
                count.fetch_add(1, Relaxed);
                vec![b'x'; 70_000]
            })
            .task_with("fails", Retry::none(), |_: &Job<'_>| Err::<Vec<u8>, _>("no ".repeat(2000))),
    );
    assert!(matches!(queue.submit("fails", vec![0; 70_000]), Err(Error::Invalid { .. })));
    let report = queue.submit("large", "!").unwrap().wait(LIMIT).unwrap();
    assert_eq!((report.status, report.attempts), (DurableStatus::Failed, 1));
    let failure = report.failure.unwrap();
    assert!(failure.contains("70000 bytes") && failure.contains("not stored"), "{failure}");
    assert_eq!(runs.load(Relaxed), 1);
    let arguments = vec![b'a'; 64_000];
    let report = queue.submit("fails", arguments.clone()).unwrap().wait(LIMIT).unwrap();
    assert_eq!(report.status, DurableStatus::Failed);
    let dead = queue.dead(0, 10).unwrap();
    assert_eq!((dead.len(), dead[0].arguments.as_slice()), (2, &b"!"[..]));
    assert!(dead[1].arguments == arguments && dead[1].failure.starts_with("no no"));
}

/// Goal: a worker pool without room holds up no submission of its own queue, and what its task type says of that, and of
/// retries, counts not.
#[test]
fn a_full_worker_pool_holds_nothing_up() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let pool = Pool::builder().threads(1).lane_capacity(2).build().unwrap();
    let workers = WorkerPool::new(&pool);
    let wait = OverloadPolicy::Wait(Duration::MAX);
    let often = Retry::fixed(3, MS);
    workers.task_type("t").full(wait).retry(often.clone()).build().unwrap();
    workers.task_type("fails").retry(often).build().unwrap();
    let (gate, runs) = (Gate::new(), Arc::new(AtomicU64::new(0)));
    let (held, count) = (gate.clone(), Arc::clone(&runs));
    let builder = workers.durable("q").nats(broker.url()).in_flight(10);
    let there = opened(
        builder
            .task("t", move |_: &Job<'_>| -> Vec<u8> {
                held.wait();
                Vec::new()
            })
            .task_with("fails", Retry::fixed(1, MS), move |_: &Job<'_>| {
                count.fetch_add(1, Relaxed);
                Err::<Vec<u8>, _>("no")
            }),
    );
    let here = opened(queue(&broker));
    let first = here.submit("t", "").unwrap();
    gate.until_entered(1);
    let mut tasks: Vec<_> = (0..6).map(|_| here.submit("t", "").unwrap()).collect();
    until("some were given back", || {
        there.stats().imports.iter().map(|import| import.again).sum::<u64>() > 2
    });
    tasks.push(there.task("t").timeout(LIMIT).submit().unwrap());
    tasks.push(first);
    gate.open();
    for task in tasks {
        assert_eq!(task.wait(LIMIT).unwrap().status, DurableStatus::Completed);
    }
    let report = here.submit("fails", "").unwrap().wait(LIMIT).unwrap();
    assert_eq!((report.status, report.attempts, runs.load(Relaxed)), (DurableStatus::Failed, 2, 2));
}

/// Goal: a task whose deadline is over is that, and not a dead letter, also if no attempt is left; a wait ends with the
/// queue; a schedule that says nothing is refused.
#[test]
fn what_is_too_late_is_told() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let queue_of = || queue(&broker);
    let queue = opened(queue_of().task_with("slow", Retry::none(), |job: &Job<'_>| {
        let begun = Instant::now();
        while !job.is_cancelled() && begun.elapsed() < LIMIT {
            std::thread::sleep(MS);
        }
        Err::<Vec<u8>, _>("told to end")
    }));
    let task = queue.task("slow").deadline(3000 * MS).submit().unwrap();
    let report = task.wait(LIMIT).unwrap();
    assert_eq!((report.status, report.attempts), (DurableStatus::TimedOut, 1));
    assert!(queue.dead(0, 1).unwrap().is_empty());
    let nobody = queue.submit("nobody", "").unwrap();
    let waits = std::thread::spawn(move || nobody.wait(LIMIT));
    std::thread::sleep(50 * MS);
    queue.close(LIMIT);
    assert!(matches!(waits.join().unwrap(), Err(Error::ShutDown)));
    for (label, when) in [("l".repeat(161).as_str(), "* * * * *"), ("never", "0 0 30 2 *")] {
        let error = queue_of().schedule(label, when, "t", "").open().unwrap_err().to_string();
        assert!(error.contains("schedule"), "{error}");
    }
}

/// Goal: what a peer forges is ended or ignored, and costs bounded work.
#[test]
fn what_is_forged_is_ended_or_ignored() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let ran: Arc<Mutex<Vec<String>>> = Arc::default();
    let list = Arc::clone(&ran);
    let queue = opened(queue(&broker).task_with("t", Retry::fixed(5, MS), move |job: &Job<'_>| {
        let name = String::from_utf8_lossy(job.arguments()).into_owned();
        let fails = name == "once";
        list.lock().unwrap().push(name);
        if fails { Err("no") } else { Ok(Vec::new()) }
    }));
    let first = queue.submit("t", "first").unwrap();
    first.wait(LIMIT).unwrap();
    let mut raw = Raw::connect(&broker.url());
    let most = u64::MAX;
    for (headers, name) in [
        ("Paceline-Attempts: 0\r\n".to_owned(), "once"),
        ("Paceline-Attempts: 99999999999999999999\r\n".to_owned(), "many"),
        ("Paceline-Deadline: 1\r\n".to_owned(), "past"),
        (format!("Paceline-Deadline: {most}\r\n"), "far"),
        (format!("Paceline-Not-Before: {most}\r\n"), "early"),
        ("Paceline-Deadline: -1\r\nPaceline-Not-Before: x\r\n".to_owned(), "odd"),
        ("Paceline-Reply: a.b.>\r\n".to_owned(), "reply"),
    ] {
        let id = name.bytes().fold(0_u64, |sum, byte| sum * 31 + u64::from(byte));
        let subject = format!("paceline.tasks.q.normal.t.n{id:032x}");
        raw.publish_with(&subject, None, &headers, name.as_bytes());
    }
    for id in ["l00000000000000000000000000000001", "1", "n1"] {
        raw.publish_with(
            &format!("paceline.tasks.q.normal.t.{id}"),
            None,
            "",
            b"no id of this lane",
        );
    }
    let garbage = vec![b'n'; 500_000];
    for _ in 0..20 {
        raw.publish_with("paceline.control.q", Some("x.y"), "", &garbage);
        raw.publish_with("paceline.control.q", None, "", b"\xff\xfe");
        raw.publish_with(
            "paceline.results.q.nobody.n00000000000000000000000000000001",
            None,
            "Paceline-Status: odd\r\n",
            b"x",
        );
    }
    raw.sync();
    until("all that may run have", || ran.lock().unwrap().len() == 6);
    std::thread::sleep(200 * MS);
    let mut names = ran.lock().unwrap().clone();
    names.sort();
    assert_eq!(names, ["far", "first", "many", "odd", "once", "reply"]);
    let imports = queue.stats().imports;
    assert_eq!(imports.iter().map(|import| import.again).sum::<u64>(), 1, "the early one");
    let digits = "0".repeat(32);
    for id in [
        "",
        "n",
        "n1",
        "ä",
        &digits,
        &format!("x{digits}"),
        &format!("n{digits}0"),
        &format!("n+{}", &digits[1..]),
    ] {
        assert!(queue.find(id).is_err(), "{id:?}");
    }
    assert!(queue.find(first.id()).unwrap().wait(LIMIT).is_ok());
    assert_eq!(
        queue.submit("t", "last").unwrap().wait(LIMIT).unwrap().status,
        DurableStatus::Completed
    );
    assert_eq!(queue.close(LIMIT), 0);
}
