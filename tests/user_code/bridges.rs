//! Bridges and durable tasks: handlers, and functions that are told an end, over a broker.

use crate::broker::{Broker, broker};
use crate::charge::{Bang, Driver, panics};
use crate::common::{Count, LONG};
use paceline::Pool;
use paceline::bridge::tasks::{DurableBuilder, DurableQueue, DurableStatus, Job};
use paceline::bridge::{Bridge, Export};
use paceline::hub::Hub;
use paceline::task::{Fault, Retry, WorkerPool};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NOWHERE: &str = "nats://127.0.0.1:1";

pub const DRIVERS: &[(&str, Driver)] = &[
    ("PendingStore::then", |pool, bang| {
        let Some(broker) = broker() else { return };
        let (hub, told) = (Hub::new(pool).unwrap(), Count::new());
        let open = |url: String| {
            Bridge::nats(&hub, url).export(Export::new("a").at_least_once("S")).open().unwrap()
        };
        let bridge = Arc::new(open(broker.url()));
        for has_last in [false, true] {
            let (charge, tell, its) = (bang.charge_once(), told.clone(), Arc::clone(&bridge));
            let (own, hub) = (Mutex::new(has_last.then(|| open(NOWHERE.into()))), hub.clone());
            bridge.publish(hub.message("a")).unwrap().then(move |end| {
                assert!(end.is_ok() && its.publish(hub.message("a")).is_ok());
                // A bridge ends here as well.
                drop(own.lock().unwrap().take());
                tell.up();
                charge.go()
            });
        }
        told.until(2);
        bridge.publish(hub.message("a")).unwrap().wait(LONG).unwrap();
        // One that ends before it is stored.
        let away = open(NOWHERE.into());
        let (charge, tell) = (bang.charge_once(), told.clone());
        away.publish(hub.message("a")).unwrap().then(move |end| {
            assert!(end.is_err());
            tell.up();
            charge.go()
        });
        let _left = away.close(Duration::ZERO);
        told.until(3);
        drop(hub);
    }),
    ("Submission::submit_then", |pool, bang| {
        let Some(broker) = broker() else { return };
        let (queue, told) = (opened(durable(pool, &broker)), Count::new());
        let (charge, tell, its) = (bang.charge_once(), told.clone(), queue.clone());
        let tell_last = told.clone();
        let then = move |task: paceline::Result<_>| {
            // It calls back, and has the last of the queue.
            let again = its.task("t").submit_then(move |_| tell_last.up());
            assert!(task.is_ok() && again.is_ok());
            drop((task, its));
            tell.up();
            charge.go()
        };
        queue.task("t").submit_then(then).unwrap();
        drop(queue);
        told.until(2);
        still_runs(pool, &broker);
    }),
    ("DurableTask::then", |pool, bang| {
        let Some(broker) = broker() else { return };
        let (queue, told) = (opened(durable(pool, &broker)), Count::new());
        let task = queue.submit("t", "!").unwrap();
        // Before, or as soon as it is there; and when it is there for sure.
        for _ in 0..2 {
            let (charge, tell, its) = (bang.charge_once(), told.clone(), task.clone());
            task.then(move |report| {
                assert_eq!((report.value.as_slice(), its.id()), (&b"!"[..], &*report.id));
                tell.up();
                charge.go()
            });
            task.wait(LONG).unwrap();
        }
        told.until(2);
        // One that never ends, and one that has the last of the queue.
        let charge = bang.charge_once();
        queue.find("n00000000000000000000000000000000").unwrap().then(move |_| charge.go());
        let (charge, tell, its) = (bang.charge_once(), told.clone(), queue.clone());
        let task = queue.task("t").delay(Duration::from_millis(50)).submit().unwrap();
        task.then(move |_| {
            drop(its);
            tell.up();
            charge.go()
        });
        drop((queue, task));
        told.until(3);
        still_runs(pool, &broker);
    }),
    ("DurableBuilder::task", |pool, bang| {
        let Some(broker) = broker() else { return };
        let charge = bang.charge();
        let builder =
            durable(pool, &broker).task("p", move |_: &Job<'_>| -> Vec<u8> { charge.go() });
        let queue = opened(builder);
        let report = queue.task("p").attempts(1).submit().unwrap().wait(LONG).unwrap();
        assert_eq!((report.status, report.attempts), (DurableStatus::Failed, 1));
        let _in_drop = panics(|| drop(queue));
        still_runs(pool, &broker);
    }),
    ("DurableBuilder::task_with", |pool, bang| {
        let Some(broker) = broker() else { return };
        let charge = bang.charge();
        let retry = Retry::fixed(2, Duration::from_millis(1));
        let kept: Arc<Mutex<Option<DurableQueue>>> = Arc::default();
        let own = Arc::clone(&kept);
        let builder = durable(pool, &broker)
            .task_with("p", retry.clone(), move |_: &Job<'_>| -> Vec<u8> { charge.go() })
            // What becomes bytes is the user's, too.
            .task_with("odd", retry, move |_: &Job<'_>| Ok::<_, Fault>(Odd(bang)))
            // The last of the queue is dropped by its own handler.
            .task("last", move |_: &Job<'_>| -> Vec<u8> {
                drop(own.lock().unwrap().take());
                Vec::new()
            });
        let queue = opened(builder);
        for name in ["p", "odd"] {
            let report = queue.submit(name, "").unwrap().wait(LONG).unwrap();
            assert_eq!((report.status, report.attempts), (DurableStatus::Failed, 3), "{name}");
        }
        *kept.lock().unwrap() = Some(queue.clone());
        queue.task("last").submit_then(|_| ()).unwrap();
        let _in_drop = panics(|| drop(queue));
        still_runs(pool, &broker);
    }),
];

/// What panics when it becomes bytes.
struct Odd(Bang);

impl From<Odd> for Vec<u8> {
    fn from(odd: Odd) -> Self {
        odd.0.go()
    }
}

fn durable(pool: &Pool, broker: &Broker) -> DurableBuilder {
    let echo = |job: &Job<'_>| job.arguments().to_vec();
    WorkerPool::new(pool).durable("q").nats(broker.url()).task("t", echo)
}

fn opened(builder: DurableBuilder) -> DurableQueue {
    let queue = builder.open().unwrap();
    queue.wait_connected(LONG).unwrap();
    queue
}

fn still_runs(pool: &Pool, broker: &Broker) {
    let queue = opened(durable(pool, broker));
    assert_eq!(queue.submit("t", "on").unwrap().wait(LONG).unwrap().value, b"on");
    assert_eq!(queue.close(LONG), 0);
}
