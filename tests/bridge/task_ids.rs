//! Which task an id means: it is made once, by who submits it, and its broker may forget numbers.

use crate::broker::{Broker, broker};
use crate::common::{hang_guard, until};
use crate::raw::Raw;
use paceline::Pool;
use paceline::bridge::tasks::{DurableBuilder, DurableQueue, DurableStatus, Job};
use paceline::task::WorkerPool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

type Runs = Arc<Mutex<Vec<(String, String)>>>;

/// A queue whose tasks are called `t` and `other`, answer what they were given, and note that with their id.
fn queue(broker: &Broker) -> (DurableQueue, Runs) {
    let runs = Runs::default();
    let noting = |builder: DurableBuilder, name: &str| {
        let list = Arc::clone(&runs);
        builder.task(name, move |job: &Job<'_>| {
            let arguments = String::from_utf8_lossy(job.arguments()).into_owned();
            list.lock().unwrap().push((job.id().to_owned(), arguments));
            job.arguments().to_vec()
        })
    };
    let pool = Pool::builder().threads(1).build().unwrap();
    let builder = WorkerPool::new(&pool).durable("q").nats(broker.url());
    let queue = noting(noting(builder, "t"), "other").open().unwrap();
    queue.wait_connected(LIMIT).unwrap();
    (queue, runs)
}

fn value(queue: &DurableQueue, id: &str) -> Vec<u8> {
    let report = queue.find(id).unwrap().wait(LIMIT).unwrap();
    assert_eq!((report.status, report.id.as_str()), (DurableStatus::Completed, id));
    report.value
}

/// Goal: a stream that gives its numbers again, as the broker has lost it, has no task answered by another's result, and none
/// taken for one that has ended: here and with the broker.
#[test]
fn a_stream_that_counts_anew_mixes_up_no_tasks() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let (queue, runs) = queue(&broker);
    let first = queue.submit("t", "first").unwrap();
    assert_eq!(value(&queue, first.id()), b"first");
    // One that removes a stream while the queue makes it anew may lose the files of the new one.
    broker.stop();
    broker.lose_stream("paceline_q_normal");
    broker.start_again();
    let second = queue.task("t").arguments("second").timeout(LIMIT).submit().unwrap();
    assert_ne!(first.id(), second.id());
    assert_eq!(value(&queue, second.id()), b"second");
    assert_eq!(value(&queue, first.id()), b"first");
    let seen = runs.lock().unwrap().clone();
    let of = |task: &str, arguments: &str| (task.to_owned(), arguments.to_owned());
    assert_eq!(seen, [of(first.id(), "first"), of(second.id(), "second")]);
}

/// Goal: a result is believed only if it names the task, wherever it comes from.
#[test]
fn a_result_that_names_another_task_is_not_believed() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (queue, _runs) = queue(&broker);
    let nobody = queue.submit("nobody", "").unwrap();
    let mut raw = Raw::connect(&broker.url());
    let subject = format!("paceline.results.q.somebody.{}", nobody.id());
    let headers =
        "Paceline-Status: completed\r\nPaceline-Task: n00000000000000000000000000000001\r\n";
    raw.publish_with(&subject, None, headers, b"another's");
    raw.sync();
    assert!(nobody.wait(Duration::from_millis(300)).is_err());
}

/// Goal: a submission that is stored twice, as it was sent again after an outage, has one id and runs once.
#[test]
fn a_submission_that_is_stored_twice_runs_once() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (queue, runs) = queue(&broker);
    // The stream is there.
    queue.submit("nobody", "").unwrap();
    let mut raw = Raw::connect(&broker.url());
    let id = "n0123456789abcdef0123456789abcdef";
    for _ in 0..3 {
        raw.publish(&format!("paceline.tasks.q.normal.t.{id}"), b"once");
    }
    raw.sync();
    until("all copies have ended", || {
        let imports = queue.stats().imports;
        imports.iter().map(|import| import.acknowledged + import.duplicates).sum::<u64>() == 3
    });
    assert_eq!(*runs.lock().unwrap(), [(id.to_owned(), "once".to_owned())]);
}

/// Goal: a unique id is one task of its name for the window, also if that has ended and the broker has restarted.
#[test]
fn a_unique_id_is_known_for_the_window() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let (queue, runs) = queue(&broker);
    let submit = |name: &str| {
        let task = queue.task(name).arguments(name).unique("bill 17").timeout(LIMIT);
        task.submit().unwrap()
    };
    let first = submit("t");
    assert!(!first.is_duplicate());
    assert_eq!(value(&queue, first.id()), b"t");
    until("the broker has heard of it", || {
        queue.stats().imports.iter().map(|import| import.acknowledged).sum::<u64>() == 1
            && queue.stats().exports.iter().all(|export| export.waiting + export.in_flight == 0)
    });
    broker.stop();
    broker.start_again();
    let again = submit("t");
    assert_eq!((again.is_duplicate(), again.id()), (true, first.id()));
    let other = submit("other");
    assert!(!other.is_duplicate() && other.id() != first.id());
    assert_eq!(value(&queue, other.id()), b"other");
    assert_eq!(runs.lock().unwrap().len(), 2);
}

/// Goal: who claims a unique id and dies before the task is stored leaves it to the next one.
#[test]
fn a_claim_without_its_task_is_taken_up() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (queue, runs) = queue(&broker);
    queue.task("t").unique("first").submit().unwrap().wait(LIMIT).unwrap();
    let mut raw = Raw::connect(&broker.url());
    let id = "n0123456789abcdef0123456789abcdef";
    raw.publish_with(&format!("paceline.claims.q.{id}"), None, "Nats-Msg-Id: t left\r\n", b"");
    raw.sync();
    let task = queue.task("t").arguments("left").unique("left").submit().unwrap();
    assert_eq!((task.id(), task.is_duplicate()), (id, false));
    assert_eq!(value(&queue, id), b"left");
    let again = queue.task("t").arguments("left").unique("left").submit().unwrap();
    assert_eq!((again.id(), again.is_duplicate()), (id, true));
    assert_eq!(runs.lock().unwrap().len(), 2);
}
