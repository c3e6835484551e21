//! Bridges and durable tasks: over a broker where one is needed.

use crate::broker::{Broker, broker, connected};
use crate::common::{LONG, until};
use crate::{Driver, MAX, MS, YEARS, refused};
use paceline::Pool;
use paceline::bridge::tasks::{DurableBuilder, DurableQueue, DurableStatus, Job, Submission};
use paceline::bridge::{Bridge, BridgeBuilder, Export, Import, NatsSettings};
use paceline::hub::{Hub, Message};
use paceline::task::WorkerPool;
use std::time::Duration;

/// No broker listens there.
const NOWHERE: &str = "nats://127.0.0.1:1";

pub const DRIVERS: &[(&str, Driver)] = &[
    ("NatsSettings::connect_timeout", |pool| {
        settings(pool, "connect_timeout", |settings, time| settings.connect_timeout(time));
    }),
    ("NatsSettings::ping_interval", |pool| {
        settings(pool, "ping_interval", |settings, time| settings.ping_interval(time));
    }),
    ("BridgeBuilder::window", |pool| {
        let day = Duration::from_secs(86_400);
        let window = |time| nowhere(pool).export("a").window(time, 10);
        refused(window(MAX).open(), "window is ");
        refused(window(day + MS).open(), "100 ms to 1 day");
        drop(window(day).open().unwrap());
    }),
    ("Import::ack_wait", |pool| {
        let import =
            |time| nowhere(pool).import(Import::new("a").at_least_once("S", "d").ack_wait(time));
        refused(import(MAX).open(), "ack_wait is ");
        refused(import(Duration::ZERO).open(), "100 ms to 1 day");
        drop(import(Duration::from_secs(86_400)).open().unwrap());
    }),
    ("Import::request_timeout", |pool| {
        refused(
            nowhere(pool).import(Import::new("a").request_timeout(Duration::ZERO)).open(),
            "1ms",
        );
        over(|broker| {
            let (here, there) = (Hub::new(pool).unwrap(), Hub::new(pool).unwrap());
            let import = Import::new("ask").request_timeout(MAX);
            let _back = connected(Bridge::nats(&there, broker.url()).import(import));
            let _out = connected(Bridge::nats(&here, broker.url()).export("ask"));
            let replier = there.clone();
            let answer = move |message: &Message<'_>| {
                let _ = replier.reply(message, "!").unwrap();
            };
            let _answers = there.subscribe("ask", answer).unwrap();
            until("it is answered", || here.request("ask", "?", LONG).is_ok());
        });
    }),
    ("Import::handle_timeout", |pool| {
        let import = |time| Import::new("a").at_least_once("S", "d").handle_timeout(time);
        refused(nowhere(pool).import(import(Duration::ZERO)).open(), "handle_timeout is ");
        over(|broker| {
            let (here, there) = (Hub::new(pool).unwrap(), Hub::new(pool).unwrap());
            let _handler = there.subscribe("a", |_: &Message<'_>| ()).unwrap();
            let back = connected(Bridge::nats(&there, broker.url()).import(import(MAX)));
            let out = connected(Bridge::nats(&here, broker.url()).export(stored()));
            out.publish(here.message("a")).unwrap().wait(LONG).unwrap();
            until("it is acknowledged", || back.stats().imports[0].acknowledged == 1);
        });
    }),
    ("Bridge::wait_connected", |pool| over(|broker| drop(exporting(pool, broker)))),
    ("PendingStore::wait", |pool| over(|broker| drop(exporting(pool, broker)))),
    ("Bridge::flush", |pool| over(|broker| exporting(pool, broker).flush(MAX).unwrap())),
    ("Bridge::close", |pool| over(|broker| assert_eq!(exporting(pool, broker).close(MAX), 0))),
    ("DurableBuilder::ack_wait", |pool| {
        let queue = |time| durable(pool, NOWHERE).task("t", echo).ack_wait(time);
        refused(queue(MAX).open(), "ack_wait is ");
        drop(queue(Duration::from_secs(86_400)).open().unwrap());
    }),
    ("DurableBuilder::window", |pool| {
        refused(durable(pool, NOWHERE).window(MAX).open(), "100 ms to 1 day");
        drop(durable(pool, NOWHERE).window(Duration::from_secs(86_400)).open().unwrap());
    }),
    ("DurableBuilder::results_last", |pool| {
        refused(durable(pool, NOWHERE).results_last(MAX).open(), "1 second to 100 years");
        refused(durable(pool, NOWHERE).results_last(MS).open(), "results_last is ");
        over(|broker| {
            let builder = durable(pool, &broker.url()).results_last(YEARS);
            completes(builder, |submission| submission);
        });
    }),
    ("DurableQueue::wait_connected", |pool| {
        over(|broker| completes(durable(pool, &broker.url()), |submission| submission));
    }),
    ("DurableTask::wait", |pool| {
        over(|broker| completes(durable(pool, &broker.url()), |submission| submission));
    }),
    ("DurableQueue::close", |pool| {
        over(|broker| completes(durable(pool, &broker.url()), |submission| submission));
    }),
    ("DurableQueue::take", |pool| {
        over(|broker| {
            let builder = durable(pool, &broker.url());
            let queue = builder.task_pulled("t", paceline::Retry::none()).open().unwrap();
            let task = queue.submit("t", "!").unwrap();
            queue.take(1, MAX).unwrap().remove(0).complete("!");
            assert_eq!(task.wait(LONG).unwrap().status, DurableStatus::Completed);
        });
    }),
    ("DurableQueue::take_waiting", |pool| {
        over(|broker| {
            let builder = durable(pool, &broker.url());
            let queue = builder.task_pulled("t", paceline::Retry::none()).open().unwrap();
            let task = queue.submit("t", "!").unwrap();
            let job = queue.take_waiting(1, MAX).unwrap().remove(0);
            assert!(job.begin());
            job.complete("!");
            assert_eq!(task.wait(LONG).unwrap().status, DurableStatus::Completed);
        });
    }),
    ("Submission::timeout", |pool| {
        over(|broker| {
            completes(durable(pool, &broker.url()), |submission| submission.timeout(MAX))
        });
    }),
    ("Submission::deadline", |pool| {
        over(|broker| {
            completes(durable(pool, &broker.url()), |submission| submission.deadline(MAX));
            completes(durable(pool, &broker.url()), |submission| submission.deadline(YEARS));
        });
    }),
    ("Submission::delay", |pool| {
        over(|broker| {
            let queue = durable(pool, &broker.url()).task("t", echo).open().unwrap();
            let sent_back = |queue: &DurableQueue| {
                queue.stats().imports.iter().map(|import| import.again).sum::<u64>()
            };
            for (index, delay) in [MAX, YEARS].into_iter().enumerate() {
                let task = queue.task("t").delay(delay).submit().unwrap();
                until("it has come too early", || sent_back(&queue) > index as u64);
                // One that the broker takes for none comes back at once, and again.
                std::thread::sleep(100 * MS);
                assert_eq!(sent_back(&queue), index as u64 + 1, "{delay:?}");
                assert!(task.cancel().unwrap());
                assert_eq!(task.wait(LONG).unwrap().status, DurableStatus::Cancelled);
            }
        });
    }),
];

/// A broker, where there is one.
fn over(drive: impl FnOnce(&Broker)) {
    if let Some(broker) = broker() {
        drive(&broker);
    }
}

fn nowhere(pool: &Pool) -> BridgeBuilder {
    Bridge::nats(&Hub::new(pool).unwrap(), NOWHERE)
}

fn settings(pool: &Pool, name: &str, set: fn(NatsSettings, Duration) -> NatsSettings) {
    let open = |time| {
        let settings = set(NatsSettings::new(NOWHERE), time);
        Bridge::nats(&Hub::new(pool).unwrap(), settings).export("a").open()
    };
    refused(open(MAX), name);
    refused(open(Duration::ZERO), "10 ms to 1 day");
    drop(open(Duration::from_secs(86_400)).unwrap());
}

fn stored() -> Export {
    Export::new("a").at_least_once("S")
}

/// It has stored a message.
fn exporting(pool: &Pool, broker: &Broker) -> Bridge {
    let hub = Hub::new(pool).unwrap();
    let bridge = Bridge::nats(&hub, broker.url()).export(stored()).open().unwrap();
    bridge.wait_connected(MAX).unwrap();
    bridge.publish(hub.message("a")).unwrap().wait(MAX).unwrap();
    bridge
}

fn durable(pool: &Pool, url: &str) -> DurableBuilder {
    WorkerPool::new(pool).durable("q").nats(url)
}

fn echo(job: &Job<'_>) -> Vec<u8> {
    job.arguments().to_vec()
}

fn completes(builder: DurableBuilder, set: impl FnOnce(Submission<'_>) -> Submission<'_>) {
    let queue = builder.task("t", echo).open().unwrap();
    queue.wait_connected(MAX).unwrap();
    let task = set(queue.task("t").arguments("!")).submit().unwrap();
    assert_eq!(task.wait(MAX).unwrap().value, b"!");
    assert_eq!(queue.close(MAX), 0);
}
