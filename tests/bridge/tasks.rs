//! Tasks that outlive the process.

use crate::broker::{Broker, broker};
use crate::common::{Gate, hang_guard, quiet_panic, until, with_longer_ticks};
use paceline::bridge::tasks::{DurableBuilder, DurableQueue, DurableStatus, Job};
use paceline::task::{Fault, WorkerPool};
use paceline::{Error, Lane, Pool, Retry};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
/// The id of no task.
const NOBODY: &str = "n00000000000000000000000000000000";

fn queue(broker: &Broker, name: &str) -> DurableBuilder {
    let pool = Pool::builder().threads(2).build().unwrap();
    WorkerPool::new(&pool).durable(name).nats(broker.url())
}

fn opened(builder: DurableBuilder) -> DurableQueue {
    let queue = builder.open().unwrap();
    queue.wait_connected(LIMIT).unwrap();
    queue
}

fn quick() -> Retry {
    Retry::fixed(2, Duration::from_millis(20))
}

/// Goal: a task runs in another process than the one that submits it, and its result comes back; also to one that asks
/// later, and to one that knows its id alone.
#[test]
fn a_task_runs_elsewhere_and_its_result_comes_back() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let here = opened(queue(&broker, "q"));
    // Before there is a worker.
    let early = here.submit("double", "2").unwrap();
    let there = opened(queue(&broker, "q").task("double", |job: &Job<'_>| {
        let number: u64 = String::from_utf8_lossy(job.arguments()).parse().unwrap();
        format!("{}", number * 2)
    }));
    assert_eq!(early.wait(LIMIT).unwrap().value, b"4");
    let tasks: Vec<_> =
        (0..100).map(|number| here.submit("double", format!("{number}")).unwrap()).collect();
    for (number, task) in tasks.iter().enumerate() {
        let report = task.wait(LIMIT).unwrap();
        assert_eq!((report.status, report.attempts), (DurableStatus::Completed, 1));
        assert_eq!(report.value, format!("{}", 2 * number).into_bytes());
        assert_eq!((report.id.as_str(), report.failure), (task.id(), None));
    }
    let (tell, told) = std::sync::mpsc::channel();
    here.task("double").arguments("21").submit_then(move |task| tell.send(task).unwrap()).unwrap();
    let task = told.recv().unwrap().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    task.then(move |report| tell.send(report).unwrap());
    assert_eq!(told.recv().unwrap().value, b"42");
    let other = opened(queue(&broker, "q"));
    assert_eq!(other.find(task.id()).unwrap().wait(LIMIT).unwrap().value, b"42");
    assert!(other.find("x1").is_err());
    let ignored = here.task("double").arguments("1").ignore_result().submit().unwrap();
    assert!(ignored.wait(Duration::from_millis(300)).is_err());
    until("the broker has heard of all", || {
        there.stats().imports.iter().map(|import| import.acknowledged).sum::<u64>() == 103
    });
    assert_eq!((here.close(LIMIT), there.close(LIMIT)), (0, 0));
}

/// Goal: an attempt that fails, panics or takes too long is followed by another, and past the last one the task is a dead
/// letter, which can be submitted again. What will not help is not tried again.
#[test]
fn failures_are_retried_and_end_as_dead_letters() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let healed = Arc::new(AtomicU64::new(0));
    let heals = Arc::clone(&healed);
    let pool = Pool::builder().threads(2).build().unwrap();
    let workers = WorkerPool::new(&pool);
    workers.task_type("slow").timeout(Duration::from_millis(50)).build().unwrap();
    let queue = opened(
        workers
            .durable("q")
            .nats(broker.url())
            .task_with("second", quick(), |job: &Job<'_>| match job.number() {
                1 => Err("not yet"),
                number => Ok(format!("{number}")),
            })
            .task_with("never", quick(), move |_: &Job<'_>| match heals.load(Relaxed) {
                0 => Err("never"),
                _ => Ok("healed"),
            })
            .task_with("panics", quick(), |_: &Job<'_>| -> Vec<u8> {
                quiet_panic("a fault of the test")
            })
            .task_with("permanent", quick(), |_: &Job<'_>| -> Result<Vec<u8>, Fault> {
                Err(Fault::permanent("no use"))
            })
            .task_with("slow", quick(), |job: &Job<'_>| -> Result<Vec<u8>, Fault> {
                let begun = Instant::now();
                while !job.is_cancelled() && begun.elapsed() < LIMIT {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(Fault::new("told to end"))
            }),
    );
    let names = ["second", "never", "panics", "permanent", "slow"];
    let tasks = names.map(|name| queue.submit(name, name).unwrap());
    let reports = tasks.each_ref().map(|task| task.wait(LIMIT).unwrap());
    let seen = reports.each_ref().map(|report| (report.status, report.attempts));
    assert_eq!(
        seen,
        [
            (DurableStatus::Completed, 2),
            (DurableStatus::Failed, 3),
            (DurableStatus::Failed, 3),
            (DurableStatus::Failed, 1),
            (DurableStatus::Failed, 3),
        ]
    );
    assert!(
        reports[2].failure.as_ref().unwrap().contains("a fault of the test"),
        "{:?}",
        reports[2]
    );
    let dead = queue.dead(0, 10).unwrap();
    let mut buried: Vec<_> =
        dead.iter().map(|one| (one.name.as_str(), one.arguments.as_slice())).collect();
    buried.sort_unstable();
    assert_eq!(
        buried,
        ["never", "panics", "permanent", "slow"].map(|name| (name, name.as_bytes()))
    );
    healed.store(1, Relaxed);
    let never = dead.iter().find(|one| one.name == "never").unwrap();
    assert_eq!(
        (never.failure.as_str(), never.attempts, never.id.as_str()),
        ("never", 3, tasks[1].id())
    );
    let again = queue.resubmit(never.number).unwrap();
    assert_eq!(again.wait(LIMIT).unwrap().value, b"healed");
    assert_eq!(queue.dead(0, 10).unwrap().len(), 3);
    assert!(queue.forget(dead[0].number).is_ok() || dead[0].number == never.number);
    assert!(queue.resubmit(never.number).is_err());
    // Fewer attempts than the handler allows.
    let once = queue.task("slow").attempts(1).submit().unwrap().wait(LIMIT).unwrap();
    assert_eq!((once.status, once.attempts), (DurableStatus::Failed, 1));
}

/// Goal: a delay is kept, a deadline is, a unique id is one task, and a lane goes before others.
#[test]
fn delays_deadlines_unique_ids_and_lanes() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let gate = Gate::new();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (held, list) = (gate.clone(), Arc::clone(&order));
    let pool = Pool::builder().threads(1).build().unwrap();
    let queue = opened(
        WorkerPool::new(&pool)
            .durable("q")
            .nats(broker.url())
            .task("gate", move |_: &Job<'_>| -> Vec<u8> {
                held.wait();
                Vec::new()
            })
            .task("note", move |job: &Job<'_>| -> Vec<u8> {
                list.lock().unwrap().push(String::from_utf8_lossy(job.arguments()).into_owned());
                format!("{}", job.number()).into()
            }),
    );
    let begun = Instant::now();
    let delayed =
        queue.task("note").arguments("late").delay(Duration::from_millis(400)).submit().unwrap();
    let report = delayed.wait(LIMIT).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(395), "{:?}", begun.elapsed());
    assert_eq!((report.attempts, report.value), (1, b"1".to_vec()));
    let gates = queue.submit("gate", "").unwrap();
    gate.until_entered(1);
    let late =
        queue.task("note").arguments("never").deadline(Duration::from_millis(50)).submit().unwrap();
    let low = queue.task("note").arguments("low").lane(Lane::Low).submit().unwrap();
    let urgent = queue.task("note").arguments("urgent").lane(Lane::Critical).submit().unwrap();
    let first = queue.task("note").arguments("once").unique("u").submit().unwrap();
    let second = queue.task("note").arguments("twice").unique("u").submit().unwrap();
    assert_eq!((first.is_duplicate(), second.is_duplicate()), (false, true));
    assert_eq!(first.id(), second.id());
    until("all are here", || {
        queue.stats().imports.iter().map(|one| one.in_flight).sum::<u64>() >= 5
    });
    std::thread::sleep(Duration::from_millis(100));
    gate.open();
    assert_eq!(late.wait(LIMIT).unwrap().status, DurableStatus::TimedOut);
    for task in [&gates, &low, &urgent, &first] {
        assert_eq!(task.wait(LIMIT).unwrap().status, DurableStatus::Completed);
    }
    assert_eq!(*order.lock().unwrap(), ["late", "urgent", "once", "low"]);
}

/// Goal: two processes that each take one task at a time run two tasks, also while another waits for its time.
#[test]
fn who_takes_one_at_a_time_leaves_the_others_to_others() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let gate = Gate::new();
    let open = || {
        let held = gate.clone();
        opened(queue(&broker, "q").in_flight(1).task("gate", move |_: &Job<'_>| -> Vec<u8> {
            held.wait();
            Vec::new()
        }))
    };
    let both = [open(), open()];
    let delayed = both[0].task("gate").delay(LIMIT).submit().unwrap();
    until("it was given back until then", || {
        both.iter().flat_map(|queue| queue.stats().imports).any(|import| import.again == 1)
    });
    let tasks = [(); 2].map(|()| both[0].submit("gate", "").unwrap());
    gate.until_entered(2);
    gate.open();
    for task in &tasks {
        assert_eq!(task.wait(LIMIT).unwrap().status, DurableStatus::Completed);
    }
    assert!(delayed.cancel().unwrap());
}

#[test]
fn the_example_says_what_became_of_its_tasks() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let mut lines = Vec::new();
    crate::example::story(&broker.url(), |line| lines.push(line)).unwrap();
    let expected = [
        "Completed after 2 attempts: hello, Ada",
        "Failed after 1 attempts: nobody is there",
        "dead: greet, nobody is there",
        "not stored: 0",
    ];
    assert_eq!(lines, expected);
}

/// Goal: that there is no such task is told from a broker that does not say.
#[test]
fn a_broker_that_does_not_answer_is_not_one_that_has_none() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    // Its streams may not be there yet.
    let bare = opened(queue(&broker, "bare"));
    assert!(bare.dead(0, 1).unwrap().is_empty());
    assert!(matches!(bare.forget(1), Err(Error::Stale { .. })));
    assert!(!bare.cancel(NOBODY).unwrap());
    let refuses = |_: &Job<'_>| Err::<Vec<u8>, _>("no");
    let queue = opened(queue(&broker, "q").task_with("fails", Retry::none(), refuses));
    let task = queue.submit("fails", "").unwrap();
    assert_eq!(task.wait(LIMIT).unwrap().status, DurableStatus::Failed);
    let number = queue.dead(0, 1).unwrap()[0].number;
    assert!(matches!(queue.resubmit(number + 1), Err(Error::Stale { .. })));
    broker.kill();
    until("it is away", || !queue.is_connected());
    let stranger = queue.find(NOBODY).unwrap();
    let silent = |answer: Result<(), Error>| {
        assert!(matches!(answer, Err(Error::TimedOut | Error::Broker { .. })), "{answer:?}");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| silent(queue.dead(0, 1).map(drop)));
        scope.spawn(|| silent(queue.forget(number)));
        scope.spawn(|| silent(queue.resubmit(number).map(drop)));
        scope.spawn(|| silent(stranger.cancel().map(drop)));
    });
    broker.start_again();
    queue.wait_connected(LIMIT).unwrap();
    assert_eq!(queue.dead(0, 10).unwrap().len(), 1);
    queue.forget(number).unwrap();
    assert!(matches!(queue.forget(number), Err(Error::Stale { .. })));
    queue.close(LIMIT);
    assert!(matches!(queue.dead(0, 1), Err(Error::ShutDown)));
    assert!(matches!(queue.cancel(NOBODY), Err(Error::ShutDown)));
}

/// Goal: a broker without streams has not said that there is no such task.
#[test]
fn a_broker_without_streams_does_not_answer() {
    let _guard = hang_guard();
    let Some(broker) = Broker::start_plain() else { return };
    let queue = opened(queue(&broker, "q"));
    assert!(matches!(queue.dead(0, 1), Err(Error::TimedOut | Error::Broker { .. })));
    assert!(matches!(queue.forget(1), Err(Error::TimedOut | Error::Broker { .. })));
}

/// Goal: what is cancelled before it began never begins, wherever it is; what has begun goes on.
#[test]
fn what_is_cancelled_before_it_began_never_begins() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let here = opened(queue(&broker, "q"));
    // At the broker: nobody has it.
    let waits = here.submit("gate", "").unwrap();
    assert!(waits.cancel().unwrap());
    assert_eq!(waits.wait(LIMIT).unwrap().status, DurableStatus::Cancelled);
    assert!(!waits.cancel().unwrap());
    let (gate, runs) = (Gate::new(), Arc::new(AtomicU64::new(0)));
    let (held, count) = (gate.clone(), Arc::clone(&runs));
    let pool = Pool::builder().threads(1).build().unwrap();
    let there = opened(WorkerPool::new(&pool).durable("q").nats(broker.url()).task(
        "gate",
        move |_: &Job<'_>| -> Vec<u8> {
            count.fetch_add(1, Relaxed);
            held.wait();
            Vec::new()
        },
    ));
    let begun = here.submit("gate", "").unwrap();
    gate.until_entered(1);
    // With a worker, behind the one that runs.
    let behind = here.submit("gate", "").unwrap();
    until("it is there", || {
        there.stats().imports.iter().map(|one| one.in_flight).sum::<u64>() == 2
    });
    assert!(behind.cancel().unwrap());
    assert!(!begun.cancel().unwrap());
    gate.open();
    assert_eq!(begun.wait(LIMIT).unwrap().status, DurableStatus::Completed);
    assert_eq!(behind.wait(LIMIT).unwrap().status, DurableStatus::Cancelled);
    assert_eq!(runs.load(Relaxed), 1);
}

/// Goal: a process that ends in the middle has its tasks run by another.
#[test]
fn the_tasks_of_a_worker_that_ends_are_run_elsewhere() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let wait = Duration::from_millis(500);
    let gate = Gate::new();
    let held = gate.clone();
    let first =
        opened(queue(&broker, "q").ack_wait(wait).task("t", move |_: &Job<'_>| -> Vec<u8> {
            held.wait();
            b"first".to_vec()
        }));
    let here = opened(queue(&broker, "q"));
    let task = here.submit("t", "").unwrap();
    gate.until_entered(1);
    // As if its process had died: the broker hears no more of it.
    assert_eq!(first.close(Duration::ZERO), 0);
    let second = opened(
        queue(&broker, "q")
            .ack_wait(wait)
            .task("t", |job: &Job<'_>| format!("second {}", job.number())),
    );
    assert_eq!(task.wait(LIMIT).unwrap().value, b"second 2");
    gate.open();
    drop((first, second));
}

/// Goal: a queue that is closed has its tasks end, and their results are stored; it takes no more, and others do.
#[test]
fn a_queue_that_is_closed_finishes_what_it_has() {
    let _guard = hang_guard();
    with_longer_ticks("the other process runs what was submitted later", |tick| {
        let Some(broker) = broker() else { return true };
        let (gate, runs) = (Gate::new(), Arc::new(AtomicU64::new(0)));
        let (held, count) = (gate.clone(), Arc::clone(&runs));
        let there = opened(queue(&broker, "q").task("t", move |_: &Job<'_>| {
            count.fetch_add(1, Relaxed);
            held.wait();
            "there"
        }));
        let here = opened(queue(&broker, "q"));
        let task = here.submit("t", "").unwrap();
        gate.until_entered(1);
        let closes = std::thread::spawn(move || there.close(LIMIT * 10));
        std::thread::sleep(2 * tick);
        // One that the broker must not send to who takes no more: that would give it back after half a minute.
        let other = here.submit("t", "").unwrap();
        std::thread::sleep(2 * tick);
        let next = opened(queue(&broker, "q").task("t", |_: &Job<'_>| "next"));
        let report = other.wait(Duration::from_secs(20));
        gate.open();
        let left = closes.join().unwrap();
        // It was sent to the one that closes.
        let Ok(report) = report else { return false };
        assert_eq!((report.value.as_slice(), left), (&b"next"[..], 0));
        assert_eq!(task.wait(LIMIT).unwrap().value, b"there");
        assert_eq!(runs.load(Relaxed), 1);
        drop(next);
        true
    });
}

/// Goal: two processes with the same schedule submit one task for each time.
#[test]
fn a_schedule_of_two_processes_is_one_task_each_time() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let runs = Arc::new(Mutex::new(Vec::new()));
    let build = || {
        let list = Arc::clone(&runs);
        queue(&broker, "q").schedule("tick", "* * * * * *", "tick", "now").task(
            "tick",
            move |job: &Job<'_>| -> Vec<u8> {
                list.lock().unwrap().push(job.id().to_owned());
                Vec::new()
            },
        )
    };
    let second = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() as usize;
    let begun = second();
    let both = [opened(build()), opened(build())];
    until("five times", || runs.lock().unwrap().len() >= 5);
    std::thread::sleep(Duration::from_millis(300));
    let mut ids = runs.lock().unwrap().clone();
    let (count, times) = (ids.len(), second() - begun);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
    // The clock of the schedule may be a moment ahead.
    assert!(count <= times + 1, "{count} of two processes in {times} s");
    drop(both);
    let error =
        queue(&broker, "q").schedule("a", "nonsense", "t", "").open().unwrap_err().to_string();
    assert!(error.contains("schedule") && error.contains("nonsense"), "{error}");
}

/// Goal: no task that was accepted is lost when the broker is killed again and again, and each result is one.
#[test]
fn a_broker_that_dies_loses_no_task() {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let runs = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&runs);
    let wait = Duration::from_secs(1);
    let worker = queue(&broker, "q")
        .ack_wait(wait)
        .task("t", move |job: &Job<'_>| {
            count.fetch_add(1, Relaxed);
            job.arguments().to_vec()
        })
        .open()
        .unwrap();
    let here = queue(&broker, "q").open().unwrap();
    let submitter = here.clone();
    const TASKS: usize = 600;
    let thread = std::thread::spawn(move || {
        (0..TASKS)
            .map(|number| {
                submitter.task("t").arguments(format!("{number}")).timeout(LIMIT).submit().unwrap()
            })
            .collect::<Vec<_>>()
    });
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(300));
        broker.kill();
        std::thread::sleep(Duration::from_millis(100));
        broker.start_again();
    }
    let tasks = thread.join().unwrap();
    for (number, task) in tasks.iter().enumerate() {
        let report = task.wait(LIMIT).unwrap();
        assert_eq!(report.value, format!("{number}").into_bytes());
    }
    assert!(runs.load(Relaxed) >= TASKS as u64);
    drop(worker);
}

/// Goal: a host takes tasks as data, in the order of lanes; what it gives back, and what it fails at, is run again.
#[test]
fn a_host_takes_tasks_as_data() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let queue = opened(queue(&broker, "q").task_pulled("t", quick()));
    let low = queue.task("t").arguments("low").lane(Lane::Low).submit().unwrap();
    let normal = queue.task("t").arguments("normal").submit().unwrap();
    until("both are here", || {
        queue.stats().imports.iter().map(|one| one.in_flight).sum::<u64>() == 2
    });
    std::thread::sleep(Duration::from_millis(50));
    let mut jobs = queue.take(10, LIMIT).unwrap();
    assert_eq!(
        jobs.iter().map(|job| job.arguments()).collect::<Vec<_>>(),
        [&b"normal"[..], b"low"]
    );
    assert!(!low.cancel().unwrap());
    jobs.remove(0).complete("done");
    drop(jobs);
    assert_eq!(normal.wait(LIMIT).unwrap().value, b"done");
    for (number, failure) in [(1, "not yet"), (2, "not yet"), (3, "never")] {
        let job = queue.take(1, LIMIT).unwrap().remove(0);
        assert_eq!((job.id(), job.number(), job.time_left()), (low.id(), number, None));
        job.fail(Fault::new(failure));
    }
    let report = low.wait(LIMIT).unwrap();
    assert_eq!((report.status, report.failure.as_deref()), (DurableStatus::Failed, Some("never")));
    assert!(queue.take(1, Duration::from_millis(10)).unwrap().is_empty());
    let other = queue.clone();
    let waits = std::thread::spawn(move || other.take(1, LIMIT).map(|jobs| jobs.len()));
    std::thread::sleep(Duration::from_millis(50));
    queue.close(LIMIT);
    assert!(matches!(waits.join().unwrap(), Err(paceline::Error::ShutDown)));
}
