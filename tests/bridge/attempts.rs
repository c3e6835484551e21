//! What counts as an attempt: that its handler was called, and nothing else; also if its process ended in it.

use crate::broker::{Broker, broker};
use crate::common::{Gate, LONG, hang_guard, until};
use crate::crash::Process;
use crate::letters::letters;
use crate::topics::hub;
use paceline::bridge::tasks::{DurableBuilder, DurableQueue, DurableStatus, Job};
use paceline::bridge::{Bridge, Export, Import};
use paceline::hub::Message;
use paceline::task::WorkerPool;
use paceline::{Pool, Retry};
use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
/// Of a child: the broker.
const URL: &str = "PACELINE_ATTEMPTS_URL";
const NOTES: &str = "notes";

fn queue(url: &str, capacity: usize) -> DurableBuilder {
    let pool = Pool::builder().threads(1).lane_capacity(capacity).build().unwrap();
    WorkerPool::new(&pool).durable("q").nats(url)
}

fn opened(builder: DurableBuilder) -> DurableQueue {
    let queue = builder.open().unwrap();
    queue.wait_connected(LIMIT).unwrap();
    queue
}

fn in_flight(queue: &DurableQueue) -> u64 {
    queue.stats().imports.iter().map(|import| import.in_flight).sum()
}

/// This test in another process, which ends when this one is dropped.
fn child(test: &str, broker: &Broker, directory: &Path) -> Process {
    let child = Command::new(env::current_exe().unwrap())
        .args([&format!("attempts::{test}"), "--exact", "--quiet"])
        .env(URL, broker.url())
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Process::new(child.unwrap())
}

fn directory(test: &str) -> PathBuf {
    let directory = env::temp_dir().join(format!("paceline-{test}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn note(text: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(NOTES).unwrap();
    file.write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// A worker of one thread: "once" and "twice", which may be run so often, kill their process, the first time when four other
/// tasks wait behind them.
fn kills() {
    static QUEUE: OnceLock<DurableQueue> = OnceLock::new();
    let kill = |job: &Job<'_>| -> Vec<u8> {
        note(&format!("{} {}", job.name(), job.number()));
        let are_here = || QUEUE.get().is_some_and(|queue| in_flight(queue) == 5);
        until("the others are here", || job.number() > 1 || are_here());
        std::process::abort();
    };
    let builder = queue(&env::var(URL).unwrap(), 100).in_flight(10);
    let queue = builder
        .ack_wait(Duration::from_millis(500))
        .task_with("once", Retry::none(), kill)
        .task_with("twice", Retry::fixed(1, Duration::from_millis(10)), kill)
        .task_with("calm", Retry::none(), |job: &Job<'_>| format!("{}", job.number()));
    QUEUE.get_or_init(|| queue.open().unwrap());
    std::thread::sleep(LONG);
}

/// Goal: a task that kills its process is run as often as it may be, and then buried before it begins once more; those that
/// waited behind it are run, though they may be run once only.
#[test]
fn a_task_that_kills_its_process_is_buried() {
    if env::var(URL).is_ok() {
        return kills();
    }
    let _guard = hang_guard();
    for (name, most) in [("once", 1), ("twice", 2)] {
        let Some(broker) = broker() else { return };
        is_buried(name, most, &broker);
    }
}

fn is_buried(name: &str, most: u32, broker: &Broker) {
    let start =
        |directory: &Path| child("a_task_that_kills_its_process_is_buried", broker, directory);
    let directory = directory("buried");
    let here = opened(queue(&broker.url(), 100));
    let killer = here.submit(name, "").unwrap();
    let (mut process, mut starts) = (start(&directory), 1);
    let notes = || fs::read_to_string(directory.join(NOTES)).unwrap_or_default();
    let first = format!("{name} 1\n");
    until("it has begun", || notes() == first);
    let calm: Vec<_> = (0..4).map(|_| here.submit("calm", "").unwrap()).collect();
    let report = loop {
        if let Ok(report) = killer.wait(Duration::from_millis(50)) {
            break report;
        }
        if process.has_ended() {
            assert!(starts <= most, "{}", notes());
            (process, starts) = (start(&directory), starts + 1);
        }
    };
    let failure = format!("its process ended in attempt {most}");
    assert_eq!((report.status, report.attempts), (DurableStatus::Failed, most));
    assert_eq!(report.failure.as_deref(), Some(&*failure));
    for task in calm {
        let report = task.wait(LIMIT).unwrap();
        assert_eq!((report.status, report.attempts), (DurableStatus::Completed, 1));
        assert_eq!(report.value, b"1");
    }
    let all = (1..=most).map(|number| format!("{name} {number}\n"));
    assert_eq!(notes(), all.collect::<String>());
    let dead = here.dead(1, 10).unwrap();
    let dead: Vec<_> = dead.iter().map(|dead| (dead.name.as_str(), dead.attempts)).collect();
    assert_eq!(dead, [(name, most)]);
    fs::remove_dir_all(directory).unwrap();
}

/// Goal: a task that was given back for want of room, however often, has its first attempt after that.
#[test]
fn a_task_without_room_has_not_begun() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let gate = Gate::new();
    let held = gate.clone();
    let handler = move |job: &Job<'_>| {
        held.wait();
        format!("{}", job.number())
    };
    let again = Retry::fixed(1, Duration::from_millis(10));
    let builder = queue(&broker.url(), 2).in_flight(10);
    let there = opened(builder.task_with("t", again, handler.clone()).task_with(
        "once",
        Retry::none(),
        handler,
    ));
    let here = opened(queue(&broker.url(), 100));
    let first = here.submit("t", "").unwrap();
    gate.until_entered(1);
    let mut tasks: Vec<_> =
        ["t", "once"].repeat(4).iter().map(|name| here.submit(name, "").unwrap()).collect();
    tasks.push(first);
    until("some were given back twice", || {
        there.stats().imports.iter().map(|import| import.again).sum::<u64>() > 20
    });
    gate.open();
    for task in tasks {
        let report = task.wait(LIMIT).unwrap();
        assert_eq!((report.status, report.attempts), (DurableStatus::Completed, 1));
        assert_eq!(report.value, b"1");
    }
}

/// Goal: a worker that is stopped in order gives back at once what has not begun, which has its first attempt elsewhere.
#[test]
fn what_a_stopped_worker_has_not_begun_begins_elsewhere() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let (gate, runs) = (Gate::new(), Arc::new(AtomicU64::new(0)));
    let (held, count) = (gate.clone(), Arc::clone(&runs));
    let again = Retry::fixed(1, Duration::from_millis(10));
    let there =
        opened(queue(&broker.url(), 100).task_with("t", again.clone(), move |_: &Job<'_>| {
            count.fetch_add(1, Relaxed);
            held.wait();
            "there"
        }));
    let here = opened(queue(&broker.url(), 100));
    let first = here.submit("t", "").unwrap();
    gate.until_entered(1);
    let second = here.submit("t", "").unwrap();
    until("it waits there", || in_flight(&there) == 2);
    let closes = std::thread::spawn(move || there.close(LIMIT));
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&numbers);
    let next = opened(queue(&broker.url(), 100).task_with("t", again, move |job: &Job<'_>| {
        list.lock().unwrap().push(job.number());
        "next"
    }));
    assert_eq!(second.wait(LIMIT).unwrap().value, b"next");
    gate.open();
    assert_eq!(closes.join().unwrap(), 0);
    assert_eq!(first.wait(LIMIT).unwrap().value, b"there");
    assert_eq!((runs.load(Relaxed), numbers.lock().unwrap().as_slice()), (1, &[1][..]));
    drop(next);
}

/// Goal: what waits with a host has not begun: it can be cancelled, and given back, also where there is one attempt only.
#[test]
fn what_a_host_holds_has_not_begun() {
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let queue = opened(queue(&broker.url(), 100).task_pulled("t", Retry::none()));
    let take = || queue.take_waiting(1, LIMIT).unwrap().remove(0);
    let task = queue.submit("t", "").unwrap();
    (0..3).for_each(|_| drop(take()));
    let job = take();
    assert!(job.number() == 1 && job.begin() && !task.cancel().unwrap());
    job.complete("done");
    let report = task.wait(LIMIT).unwrap();
    assert_eq!((report.status, report.attempts), (DurableStatus::Completed, 1));
    let task = queue.submit("t", "").unwrap();
    let job = take();
    assert!(task.cancel().unwrap() && !job.begin());
    job.complete("too late");
    assert_eq!(task.wait(LIMIT).unwrap().status, DurableStatus::Cancelled);
}

/// An import that tries each message three times, and dies of one.
fn imports() {
    let here = hub();
    let _handler = here.subscribe("k.*", |message: &Message<'_>| {
        note(&message.key().as_str()[2..]);
        if message.payload() == b"kills" {
            // Others have come, too.
            std::thread::sleep(Duration::from_millis(100));
            std::process::abort();
        }
    });
    let rule = Import::new("k.*").at_least_once("K", "d").ack_wait(Duration::from_millis(300));
    let rule = rule.retry(Retry::fixed(2, Duration::from_millis(10)));
    let bridge = Bridge::nats(&here, env::var(URL).unwrap()).import(rule).open().unwrap();
    let stats = || bridge.stats().imports[0].clone();
    until("all have ended", || stats().published > 0 && (stats().in_flight, stats().lag) == (0, 0));
    if stats().dead == 1 {
        note("dead");
    }
    drop(bridge);
    std::process::exit(0);
}

/// Goal: a message that kills its process is tried as often as it may be, and then dead; those beside it are not, though
/// they were with the same processes.
#[test]
fn a_message_that_kills_its_process_is_dead_in_the_end() {
    if env::var(URL).is_ok() {
        return imports();
    }
    let _guard = hang_guard();
    let Some(broker) = broker() else { return };
    let directory = directory("message");
    let here = hub();
    let rule = Export::new("k.*").at_least_once("K");
    let bridge = Bridge::nats(&here, broker.url()).export(rule).open().unwrap();
    for number in 0..8 {
        let payload = if number == 2 { "kills" } else { "calm" };
        let message = here.message(format!("k.{number}")).payload(payload);
        bridge.publish(message).unwrap().wait(LIMIT).unwrap();
    }
    let notes = || fs::read_to_string(directory.join(NOTES)).unwrap_or_default();
    let mut starts = 0;
    let count = |key: &str| notes().lines().filter(|line| *line == key).count();
    let is_tried = |number: u32| count(&number.to_string()) > 0;
    while count("dead") == 0 || !(0..8).all(is_tried) {
        assert!(starts < 8, "{}", notes());
        let test = "a_message_that_kills_its_process_is_dead_in_the_end";
        let mut process = child(test, &broker, &directory);
        starts += 1;
        until("it has ended", || process.has_ended());
    }
    assert_eq!((count("2"), count("dead")), (3, 1), "{}", notes());
    let letter = ["k.2", "kills", "its process ended in attempt 3", "3"].map(str::to_owned);
    assert_eq!(letters(&broker, 1), [letter]);
    fs::remove_dir_all(directory).unwrap();
}
