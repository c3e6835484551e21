//! The programs of a round: publisher, importer, submitter and worker. Each lives until its input ends, or until it has ended
//! what it has begun once there is the file `drain`, which says how many seconds that may take.

use crate::compare::{Kind, Records, answer, kind, lines};
use crate::processes::open;
use paceline::bridge::tasks::{DurableQueue, DurableTask, Job};
use paceline::bridge::{Bridge, Export, Import, NatsSettings};
use paceline::hub::history::{ArchiveOptions, Durability, History, Limits};
use paceline::hub::{Failure, Hub, Message, Overflow};
use paceline::task::{Fault, WorkerPool};
use paceline::{Backoff, Lane, Pool, Retry};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What one that is asked to end waits for.
const LIMIT: Duration = Duration::from_secs(20);
const ACK_WAIT: Duration = Duration::from_secs(1);

/// The word for a publisher whose messages wait on disk.
pub const SPOOLED: &str = "spooled";

pub fn play(role: &str, number: &str, url: &str, more: &str) {
    let ends = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&ends);
    thread::spawn(move || {
        let _at_its_end = std::io::stdin().read(&mut [0]);
        asked.store(true, SeqCst);
    });
    let part = Part { number: number.into(), url: url.into(), ends };
    match (role, more) {
        ("publisher", SPOOLED) => part.publish_spooled(),
        ("publisher", _) => part.publish(),
        ("importer", _) => part.import(),
        ("submitter", _) => part.submit(),
        _ => part.work(),
    }
}

/// A file of one life of a program.
struct Notes(Mutex<File>);

impl Notes {
    fn add(&self, line: &str) {
        let written = self.0.lock().expect("no panic").write_all(format!("{line}\n").as_bytes());
        written.expect("the disk has room");
    }

    /// It counts when this returns.
    fn add_for_good(&self, line: &str) {
        self.add(line);
        self.0.lock().expect("no panic").sync_data().expect("the disk keeps it");
    }
}

struct Part {
    /// Of this life; no other has it.
    number: String,
    url: String,
    ends: Arc<AtomicBool>,
}

/// Up to when a program may end what it has begun. None: others go on.
fn drain() -> Option<Duration> {
    fs::read_to_string("drain").ok()?.parse().ok().map(Duration::from_secs)
}

impl Part {
    fn notes(&self, name: &str) -> Notes {
        Notes(Mutex::new(open(Path::new(&format!("{name}.{}", self.number)))))
    }

    fn goes_on(&self) -> bool {
        !self.ends.load(SeqCst)
    }

    fn settings(&self) -> NatsSettings {
        NatsSettings::new(&*self.url).reconnect(Backoff::fixed(Duration::from_millis(20)))
    }

    /// What it publishes or submits, each with a name that no other has.
    fn names(&self, letter: char) -> impl Iterator<Item = String> {
        (0..).map(move |number| format!("{letter}{}-{number}", self.number))
    }

    /// A message is accepted when the broker has stored it.
    fn publish(&self) {
        let (offered, accepted) = (self.notes("offered-messages"), self.notes("accepted-messages"));
        let hub = hub(None);
        let rule = Export::new("k.*").at_least_once("K").overflow(Overflow::Reject);
        let bridge = Bridge::nats(&hub, self.settings()).export(rule).open().expect("a bridge");
        let mut names = self.names('m');
        while self.goes_on() && drain().is_none() {
            let batch: Vec<_> = names
                .by_ref()
                .take(8)
                .map(|name| {
                    offered.add(&name);
                    let message = hub.message(format!("k.{name}")).payload(payload(&name));
                    (name, bridge.publish(message))
                })
                .collect();
            for (name, stored) in batch {
                // What is not stored in time may be received.
                if stored.and_then(|stored| stored.wait(LIMIT)).is_ok() {
                    accepted.add_for_good(&name);
                }
            }
            thread::sleep(Duration::from_millis(5));
        }
        bridge.close(LIMIT);
    }

    /// A message is accepted when the archive has it.
    fn publish_spooled(&self) {
        let (offered, accepted) = (self.notes("offered-messages"), self.notes("accepted-messages"));
        let archive = ArchiveOptions::at("archive").keep(Limits::unlimited());
        let archive = archive.durability(Durability::Process);
        let history = History::of("k.*").keep(Limits::of_count(10)).archive(archive);
        let hub = hub(Some(history.commit(64, Duration::from_millis(5))));
        let rule = Export::new("k.*").at_least_once("K").spool("spool");
        let bridge = Bridge::nats(&hub, self.settings()).export(rule).open().expect("a bridge");
        let mut names = self.names('m');
        while self.goes_on() && drain().is_none() {
            let batch: Vec<String> = names.by_ref().take(8).collect();
            for name in &batch {
                offered.add(name);
                let message = hub.message(format!("k.{name}")).payload(payload(name));
                let _all_is_well = message.publish().expect("published");
            }
            hub.flush_histories().expect("the archive has it");
            batch.iter().for_each(|name| accepted.add_for_good(name));
            thread::sleep(Duration::from_millis(5));
        }
        if let Some(limit) = drain() {
            // The comparison says what was not sent.
            let _sent = bridge.flush(limit);
        }
        bridge.close(LIMIT);
    }

    /// Some messages fail at first.
    fn import(&self) {
        let received = self.notes("received");
        let hub = hub(None);
        let failed = Mutex::new(HashSet::new());
        let note = move |message: &Message<'_>| {
            let key = message.key().as_str().trim_start_matches("k.").to_owned();
            let payload = String::from_utf8_lossy(message.payload()).into_owned();
            let named = payload.split(' ').next().unwrap_or_default();
            let fails = kind(&key) == Kind::Again;
            if fails && failed.lock().expect("no panic").insert(key.clone()) {
                return Err(Failure::new("not yet"));
            }
            received.add(&format!("{key} {named}"));
            Ok(())
        };
        let _handler = hub.subscription("k.*").serve(note).expect("a subscription");
        let rule = Import::new("k.*").at_least_once("K", "importer").ack_wait(ACK_WAIT);
        let rule = rule.in_flight(16).retry(Retry::fixed(1000, Duration::from_millis(5)));
        let bridge = Bridge::nats(&hub, self.settings()).import(rule).open().expect("a bridge");
        while self.goes_on() {
            thread::sleep(Duration::from_millis(5));
        }
        bridge.close(LIMIT);
    }

    fn work(&self) {
        let ran = self.notes("ran");
        let work = move |job: &Job<'_>| {
            let question = String::from_utf8_lossy(job.arguments()).into_owned();
            ran.add(&format!("{question} {} {}", job.id(), job.number()));
            match kind(&question) {
                Kind::Again if job.number() == 1 => return Err(Fault::new("not yet")),
                Kind::Never => return Err(Fault::permanent("never")),
                Kind::Slow => thread::sleep(Duration::from_millis(30)),
                _ => {}
            }
            Ok(answer(&question))
        };
        let pool = Pool::builder().threads(2).build().expect("a pool");
        let queue = WorkerPool::new(&pool).durable("q").nats(self.settings()).ack_wait(ACK_WAIT);
        let retry = Retry::fixed(1000, Duration::from_millis(5));
        let queue = queue.task_with("t", retry, work).open().expect("a queue");
        while self.goes_on() {
            thread::sleep(Duration::from_millis(5));
        }
        queue.close(LIMIT);
    }

    /// A task is accepted when `submit` returns it. Answers of earlier lives' tasks are waited for, too.
    fn submit(&self) {
        let pool = Pool::builder().threads(1).build().expect("a pool");
        let queue = WorkerPool::new(&pool).durable("q").nats(self.settings()).open();
        let submitter = Submitter::new(self, queue.expect("a queue"));
        thread::scope(|scope| {
            let (cancel, cancelled) = channel();
            scope.spawn(|| submitter.wait_for_answers());
            scope.spawn(|| submitter.cancel(cancelled));
            for question in self.names('t') {
                if !self.goes_on() || drain().is_some() {
                    break;
                }
                submitter.submit(&question, &cancel);
                thread::sleep(Duration::from_millis(2));
            }
            submitter.is_at_end.store(true, SeqCst);
        });
        submitter.queue.close(LIMIT);
    }
}

/// A key's message says which it is, and is of some length.
fn payload(name: &str) -> String {
    format!("{name} {}", ".".repeat(name.len() * 97 % 512))
}

fn hub(history: Option<History>) -> Hub {
    let pool = Pool::builder().threads(2).build().expect("a pool");
    let builder = Hub::builder(&pool);
    match history {
        Some(history) => builder.history(history).build(),
        None => builder.build(),
    }
    .expect("a hub")
}

struct Submitter<'a> {
    part: &'a Part,
    queue: DurableQueue,
    offered: Notes,
    accepted: Notes,
    cancelled: Notes,
    too_late: Notes,
    answers: Notes,
    /// Questions and ids of those who have no answer yet.
    open: Mutex<VecDeque<(String, String)>>,
    /// No more are submitted.
    is_at_end: AtomicBool,
}

impl<'a> Submitter<'a> {
    fn new(part: &'a Part, queue: DurableQueue) -> Self {
        let here = Path::new(".");
        let ended: BTreeSet<String> =
            lines(here, "answers").into_iter().map(|line| line[0].clone()).collect();
        let accepted = lines(here, "accepted-tasks").into_iter();
        let open = accepted.map(|line| (line[0].clone(), line[1].clone()));
        Self {
            part,
            queue,
            offered: part.notes("offered-tasks"),
            accepted: part.notes("accepted-tasks"),
            cancelled: part.notes("cancelled"),
            too_late: part.notes("cancelled-too-late"),
            answers: part.notes("answers"),
            open: Mutex::new(open.filter(|(question, _)| !ended.contains(question)).collect()),
            is_at_end: AtomicBool::new(false),
        }
    }

    fn submit(&self, question: &str, cancel: &Sender<(String, DurableTask)>) {
        self.offered.add(question);
        let lane = Lane::ALL[question.bytes().map(usize::from).sum::<usize>() % Lane::ALL.len()];
        let mut task = self.queue.task("t").arguments(question).lane(lane).timeout(LIMIT);
        match kind(question) {
            Kind::Unique => task = task.unique(question),
            Kind::Cancelled => task = task.delay(Duration::from_millis(40)),
            _ => {}
        }
        // What is not stored in time may run.
        let Ok(task) = task.submit() else { return };
        self.accepted.add_for_good(&format!("{question} {}", task.id()));
        self.open.lock().expect("no panic").push_back((question.into(), task.id().into()));
        if kind(question) == Kind::Cancelled {
            // Another thread waits for what becomes of it.
            cancel.send((question.into(), task)).expect("it waits until this thread has ended");
        }
    }

    fn cancel(&self, tasks: Receiver<(String, DurableTask)>) {
        for (question, task) in tasks {
            self.cancelled.add(&question);
            if matches!(task.cancel(), Ok(false)) {
                self.too_late.add(&question);
            }
        }
    }

    fn wait_for_answers(&self) {
        let mut last = None;
        while self.part.goes_on() {
            let next = self.open.lock().expect("no panic").pop_front();
            if let Some((question, id)) = next {
                match self.queue.find(&id).and_then(|task| task.wait(Duration::from_millis(50))) {
                    Ok(end) => {
                        let value = match end.value.is_empty() {
                            true => "none".into(),
                            false => String::from_utf8_lossy(&end.value).into_owned(),
                        };
                        let line = format!("{question} {} {:?} {value}", end.id, end.status);
                        self.answers.add(&line);
                    }
                    Err(_) => self.open.lock().expect("no panic").push_back((question, id)),
                }
            } else {
                thread::sleep(Duration::from_millis(5));
            }
            let Some(limit) = drain().filter(|_| self.is_at_end.load(SeqCst)) else { continue };
            let begun = *last.get_or_insert_with(Instant::now);
            if self.is_done(begun.elapsed()) || begun.elapsed() > limit {
                return;
            }
        }
    }

    /// Whoever was cancelled need not have a result: it is told by a message that nobody keeps if this process is killed.
    fn is_done(&self, waited: Duration) -> bool {
        let open = self.open.lock().expect("no panic");
        if open.is_empty() || waited < Duration::from_secs(2) {
            return open.is_empty();
        }
        let cancelled = Records::read(Path::new(".")).cancelled;
        open.iter().all(|(question, _)| cancelled.contains(question))
    }
}
