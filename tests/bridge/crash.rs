//! Processes that are killed: the rows of the table at the head of `src/bridge/mod.rs`, at least once; and the books of all.
//!
//! Two publishers and two importers are processes of their own, and so is the broker. One of them, by chance, is killed at a
//! point by chance, and started again. A publisher notes each number before it publishes it, and what became of it; an
//! importer's handler notes each that it has dealt with. Who is not killed gives its audit in the end. The same with durable
//! tasks: who submits them is a publisher, and a worker an importer.
//! `PACELINE_BRIDGE_KILLS` says how often: 8 in each of nine mixtures, unless set.

use crate::broker::{Broker, broker};
use crate::common::{Random, hang_guard, until};
use crate::letters::mailbox_of_letters;
use crate::raw::Raw;
use crate::topics::hub;
use base64::prelude::{BASE64_STANDARD, Engine};
use paceline::bridge::tasks::Job;
use paceline::bridge::{Bridge, Export, Import, ImportStats, NatsSettings};
use paceline::hub::{Failure, Hub, Mailbox, Message, OnFailure, Overflow};
use paceline::task::{Fault, WorkerPool};
use paceline::{Backoff, Error, Retry};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

const ROLE: &str = "PACELINE_BRIDGE_ROLE";
const LIMIT: Duration = Duration::from_secs(60);
const ACK_WAIT: Duration = Duration::from_millis(500);
/// Kills between two looks at the books.
const BATCH: u64 = 64;
/// What a publisher publishes at once as a rule, and now and then, and how much of it may wait.
const FEW: u64 = 8;
const MANY: u64 = 48;
const BUFFER: usize = 32;

/// Goal: nothing that was acknowledged to its publisher is lost, whoever dies; with one message out at a time the order of
/// first deliveries of each publisher's key holds; what the stream has stored is what was dealt with; and the audits of all
/// processes balance. While the importer lives nothing comes twice, and while the broker lives only what was with an
/// importer that died. If both die, what was acknowledged shortly before may come again, too: the broker has that on disk a
/// little later, and the new importer does not know it.
#[test]
fn whoever_is_killed_nothing_acknowledged_is_lost() {
    if let Ok(role) = env::var(ROLE) {
        return play(&role);
    }
    let kills = env::var("PACELINE_BRIDGE_KILLS").map_or(8, |text| text.parse().unwrap());
    let begun = Instant::now();
    for done in (0..kills).step_by(BATCH as usize) {
        for (kind, in_flight) in [(Kind::Keys, 1), (Kind::Keys, 64), (Kind::Tasks, 64)] {
            for victims in [
                &[Victim::Publisher, Victim::Importer][..],
                &[Victim::Publisher, Victim::Broker],
                &ALL,
            ] {
                let _guard = hang_guard();
                let Some(broker) = broker() else { return };
                let mut scene = Scene::new(broker, kind, in_flight);
                (0..BATCH.min(kills - done)).for_each(|_| scene.kill_one_of(victims));
                scene.end(victims.len() < ALL.len());
            }
        }
        println!("{} kills in {:?}", 9 * kills.min(done + BATCH), begun.elapsed());
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Keys,
    Tasks,
}

impl Kind {
    /// Of those who publish and of those who import.
    fn roles(self) -> [&'static str; 2] {
        match self {
            Self::Keys => ["publish", "import"],
            Self::Tasks => ["submit", "work"],
        }
    }

    /// The stream, and the names at which the two import.
    fn stream(self) -> (&'static str, [&'static str; 2]) {
        match self {
            Self::Keys => ("K", ["b0", "b1"]),
            Self::Tasks => ("paceline_q_normal", ["t0", "t1"]),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Victim {
    Publisher,
    Importer,
    Broker,
}

const ALL: [Victim; 3] = [Victim::Publisher, Victim::Importer, Victim::Broker];

/// The processes, and the directory that they share.
struct Scene {
    broker: Broker,
    directory: PathBuf,
    kind: Kind,
    in_flight: u64,
    random: Random,
    /// Of messages: those that are dead since importers were killed in their last attempts come here, too.
    letters: Option<(Bridge, Mailbox)>,
    dead: RefCell<HashSet<u64>>,
    /// Two of each.
    publishers: Vec<Process>,
    importers: Vec<Process>,
    killed: HashSet<u64>,
    started: u64,
}

impl Scene {
    fn new(broker: Broker, kind: Kind, in_flight: u64) -> Self {
        let directory = env::temp_dir().join(format!("paceline-crash-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let random = Random::new(u64::from(std::process::id()) << 32 | in_flight);
        let (publishers, importers, killed) = (Vec::new(), Vec::new(), HashSet::new());
        let letters = (kind == Kind::Keys).then(|| mailbox_of_letters(&broker));
        let mut scene = Self {
            broker,
            directory,
            kind,
            in_flight,
            random,
            letters,
            dead: RefCell::default(),
            publishers,
            importers,
            killed,
            started: 0,
        };
        let [publish, import] = kind.roles();
        scene.publishers = [0, 1].map(|place| scene.start(publish, place)).into();
        // The stream of keys is made with their pattern.
        scene.publishers.iter().for_each(|one| scene.until_at_work(one));
        scene.importers = [0, 1].map(|place| scene.start(import, place)).into();
        scene.importers.iter().for_each(|one| scene.until_at_work(one));
        scene
    }

    fn start(&mut self, role: &str, place: usize) -> Process {
        self.started += 1;
        let (number, url) = (self.started, self.broker.url());
        let role = format!("{role} {place} {number} {} {url}", self.in_flight);
        let command = Command::new(env::current_exe().unwrap());
        Process { child: start_by(command, &role, &self.directory), number }
    }

    fn until_at_work(&self, process: &Process) {
        let mark = self.directory.join(format!("at-work-{}", process.number));
        until("a process is at work", || mark.exists());
    }

    fn kill_one_of(&mut self, victims: &[Victim]) {
        let (victim, place) = (
            victims[self.random.below(victims.len() as u64) as usize],
            self.random.below(2) as usize,
        );
        // Most are at work; some have just begun.
        let is_at_work = self.random.below(4) > 0;
        let (list, role): (fn(&mut Self) -> &mut Vec<Process>, _) = match victim {
            Victim::Publisher => (|scene| &mut scene.publishers, 0),
            Victim::Importer => (|scene| &mut scene.importers, 1),
            Victim::Broker => {
                std::thread::sleep(Duration::from_micros(self.random.below(50_000)));
                self.broker.kill();
                std::thread::sleep(Duration::from_micros(self.random.below(20_000)));
                return self.broker.start_again();
            }
        };
        let mut process = list(self).remove(place);
        if is_at_work {
            self.until_at_work(&process);
        }
        std::thread::sleep(Duration::from_micros(self.random.below(50_000)));
        process.is_alive(&self.directory);
        self.killed.insert(process.number);
        drop(process);
        let next = self.start(self.kind.roles()[role], place);
        list(self).insert(place, next);
    }

    /// Ends who lives, and looks at the books. `strict`: the broker and an importer have not both been killed.
    fn end(mut self, strict: bool) {
        let publishers = self.publishers.iter().chain(&self.importers);
        publishers.for_each(|one| self.until_at_work(one));
        let before = self.notes("stored").len();
        until("some more are stored", || self.notes("stored").len() > before);
        let publishers = std::mem::take(&mut self.publishers);
        let published = self.finish(0, publishers);
        let mut raw = Raw::connect(&self.broker.url());
        let (stream, names) = self.kind.stream();
        let stored = self.notes("stored");
        let begun = Instant::now();
        loop {
            let ends = self.ends();
            let left = stored.iter().map(|note| note.1).filter(|number| !ends.contains(number));
            let left: Vec<u64> = left.collect();
            if left.is_empty() {
                break;
            }
            if begun.elapsed() > LIMIT {
                let consumers = names.map(|name| format!("CONSUMER.INFO.{stream}.{name}"));
                let asked = consumers.into_iter().chain([format!("STREAM.INFO.{stream}")]);
                let told: Vec<_> =
                    asked.map(|what| raw.request(&format!("$JS.API.{what}"), "")).collect();
                let killed = self.killed.len();
                // What src/bridge/places.rs says that no process can see which has had nothing of the stream: the broker was
                // killed before it had on disk what it had acknowledged, and has gone past the consumer's place again. Then
                // something that it had acknowledged, or delivered, is in the stream no more, which keeps all.
                let is_past = told[..names.len()].iter().all(|info| {
                    info.contains("\"num_pending\":0") && info.contains("\"num_ack_pending\":0")
                });
                let kept = kept_in(&mut raw, stream, &told[names.len()]);
                let known = stored.iter().map(|note| note.1).chain(ends);
                let lost: Vec<u64> = known.filter(|number| !kept.contains(number)).collect();
                if !strict && self.kind == Kind::Keys && is_past && !lost.is_empty() {
                    println!(
                        "the broker has lost {lost:?}, so {left:?} were not delivered; {told:#?}"
                    );
                    self.importers.clear();
                    return fs::remove_dir_all(&self.directory).unwrap();
                }
                panic!(
                    "acknowledged and not dealt with: {left:?} of {}, after {killed} kills; {told:#?} {}",
                    stored.len(),
                    errors(&self.directory),
                );
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        for name in names {
            until("the broker has nothing left", || {
                let info = raw.request(&format!("$JS.API.CONSUMER.INFO.{stream}.{name}"), "");
                // Once it was killed, nats-server 2.9 may count a task that is gone from the stream as not acknowledged.
                let is_settled = self.kind == Kind::Tasks || info.contains("\"num_ack_pending\":0");
                info.contains("\"num_pending\":0") && is_settled
            });
        }
        // What has ended is in the stream of keys, and a task has a result.
        let result = if self.kind == Kind::Tasks { "paceline_q_results" } else { stream };
        until("the broker has each that has ended, and no other", || {
            let info = raw.request(&format!("$JS.API.STREAM.INFO.{result}"), "");
            info.contains(&format!("\"messages\":{},", self.ends().len()))
        });
        if self.kind == Kind::Keys {
            let info = raw.request(&format!("$JS.API.STREAM.INFO.{stream}"), "");
            assert_eq!(kept_in(&mut raw, stream, &info), self.ends(), "what the broker keeps");
        }
        let importers = std::mem::take(&mut self.importers);
        let imported = self.finish(1, importers);
        let is_killed = |note: &&(u64, u64)| self.killed.contains(&note.0);
        let count = |name: &str| self.notes(name).iter().filter(is_killed).count() as u64;
        let sum =
            |books: &[Vec<u64>], column: usize| books.iter().map(|of| of[column]).sum::<u64>();

        let (handled, dead) = (self.notes("handled"), self.notes("dead"));
        let ends = self.ends().len() as u64;

        // Published = stored + dropped + what died with a publisher before it was stored: what it waited for, at the most.
        let all = sum(&published, 0) + count("offered");
        let dropped = sum(&published, 2) + count("dropped");
        let killed = |notes: &[(u64, u64)]| {
            notes.iter().filter(is_killed).map(|note| note.0).collect::<HashSet<_>>().len() as u64
        };
        let publishers = killed(&self.notes("offered"));
        let died = all.checked_sub(ends + dropped).expect("no more is stored than was published");
        assert!(died <= MANY * publishers, "{died} died with {publishers} publishers");

        // Stored = delivered + dead, but for what came again after an importer had died: what it had, at the most.
        let delivered = sum(&imported, 0) + count("handled");
        let noted = self.noted_ends();
        let unnoted = self.dead.borrow().iter().filter(|number| !noted.contains(number)).count();
        let buried = sum(&imported, 1) + count("dead") + unnoted as u64;
        let twice = (delivered + buried).checked_sub(ends).expect("each was dealt with");
        let importers = killed(&[handled.as_slice(), dead.as_slice()].concat());
        let most = if strict { importers * self.in_flight } else { u64::MAX };
        assert!(twice <= most, "{twice} came twice, {importers} importers were killed");

        println!(
            "{} killed: {all} published = {delivered} delivered + {buried} dead - {twice} twice + {dropped} dropped + {died} died",
            self.killed.len()
        );

        let mut last = HashMap::new();
        let mut known = HashSet::new();
        for (_, number) in handled.iter().filter(|note| known.insert(note.1)) {
            // Of one process and one key.
            let before = last.insert((number >> 32, number % 2), *number);
            assert!(self.in_flight > 1 || before < Some(*number), "{before:?} {number}");
        }
        fs::remove_dir_all(&self.directory).unwrap();
    }

    /// What was dealt with.
    fn ends(&self) -> HashSet<u64> {
        let mut dead = self.dead.borrow_mut();
        if let Some((_, letters)) = &self.letters {
            while let Ok(Some(letter)) = letters.try_recv() {
                dead.insert(std::str::from_utf8(letter.payload()).unwrap().parse().unwrap());
            }
        }
        let mut ends = self.noted_ends();
        ends.extend(dead.iter());
        ends
    }

    fn noted_ends(&self) -> HashSet<u64> {
        self.notes("handled").iter().chain(&self.notes("dead")).map(|note| note.1).collect()
    }

    /// Has processes end by themselves, and their books.
    fn finish(&self, role: usize, processes: Vec<Process>) -> Vec<Vec<u64>> {
        fs::write(self.directory.join(format!("end-{}", self.kind.roles()[role])), "").unwrap();
        let books = processes.into_iter().map(|mut process| {
            let status = process.child.wait().unwrap();
            assert!(status.success(), "{status} {}", errors(&self.directory));
            let text = fs::read_to_string(self.directory.join(format!("books-{}", process.number)));
            text.unwrap().split(' ').map(|word| word.parse().unwrap()).collect()
        });
        books.collect()
    }

    fn notes(&self, name: &str) -> Vec<(u64, u64)> {
        notes(&self.directory.join(name))
    }
}

/// A child, until this is dropped.
pub struct Process {
    child: Child,
    number: u64,
}

impl Process {
    pub fn new(child: Child) -> Self {
        Self { child, number: 0 }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    fn is_alive(&mut self, directory: &Path) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "{ended:?} {}", errors(directory));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _has_ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The numbers that are in a stream of keys, of which `info` is the broker's answer.
fn kept_in(raw: &mut Raw, stream: &str, info: &str) -> HashSet<u64> {
    let field = |text: &str, name: &str| Some(text.split_once(name)?.1.to_owned());
    let digits = |text: String| text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    let last: u64 = field(info, "\"last_seq\":").and_then(digits).expect("it says its last number");
    let message = |number: u64| {
        let told = raw
            .request(&format!("$JS.API.STREAM.MSG.GET.{stream}"), &format!("{{\"seq\":{number}}}"));
        let data = field(&told, "\"data\":\"")?;
        let payload = BASE64_STANDARD.decode(data.split('"').next()?).ok()?;
        String::from_utf8(payload).ok()?.parse().ok()
    };
    (1..=last).filter_map(message).collect()
}

fn errors(directory: &Path) -> String {
    fs::read_to_string(directory.join("errors")).unwrap_or_default()
}

/// By a command that runs this program.
pub fn start_by(mut command: Command, role: &str, directory: &Path) -> Child {
    command
        .args([
            "crash::whoever_is_killed_nothing_acknowledged_is_lost",
            "--exact",
            "--quiet",
            "--nocapture",
        ])
        .env(ROLE, role)
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(open(&directory.join("errors")))
        .spawn()
        .unwrap()
}

/// To append to.
fn open(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}

/// The whole lines of a file, who has noted what: the last may have been cut off.
pub fn notes(path: &Path) -> Vec<(u64, u64)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let note = |line: &str| {
        let (who, what) = line.split_once(' ').unwrap();
        (who.parse().unwrap(), what.parse().unwrap())
    };
    whole.lines().map(note).collect()
}

/// What a handler has done.
enum Deal {
    Handled,
    NotYet,
    Never,
}

/// A child's part.
struct Part {
    number: u64,
    place: usize,
    in_flight: usize,
    url: String,
    hub: Hub,
    parent: u32,
}

/// A child, until it is killed or told to end.
fn play(role: &str) {
    let words: Vec<&str> = role.split(' ').collect();
    let [role, place, number, in_flight, url] = words[..] else { panic!("{role}") };
    let part = Part {
        number: number.parse().unwrap(),
        place: place.parse().unwrap(),
        in_flight: in_flight.parse().unwrap(),
        url: url.to_owned(),
        hub: hub(),
        parent: std::os::unix::process::parent_id(),
    };
    let books = match role {
        "publish" => part.publish(),
        "import" => part.import(),
        "submit" => part.submit(),
        _ => part.work(),
    };
    let books: Vec<String> = books.iter().map(u64::to_string).collect();
    fs::write(format!("books-{number}"), books.join(" ")).unwrap();
}

impl Part {
    /// What appends to a file that all share.
    fn notes(&self, name: &str) -> impl Fn(u64) + Send + Sync + use<> {
        let (file, who) = (Mutex::new(open(Path::new(name))), self.number);
        move |number| {
            file.lock().unwrap().write_all(format!("{who} {number}\n").as_bytes()).unwrap();
        }
    }

    fn noted(&self, name: &str) -> u64 {
        notes(Path::new(name)).iter().filter(|note| note.0 == self.number).count() as u64
    }

    /// The file that says that it is at work.
    fn mark(&self) -> String {
        format!("at-work-{}", self.number)
    }

    fn goes_on(&self, role: &str) -> bool {
        std::os::unix::process::parent_id() == self.parent && !Path::new(role).exists()
    }

    fn broker(&self) -> NatsSettings {
        let soon = Backoff::fixed(Duration::from_millis(5));
        NatsSettings::new(&*self.url).reconnect(soon)
    }

    /// What a handler does with a number, noted: some fail, at the first place for good, at the other once.
    fn deal(&self) -> impl Fn(&[u8]) -> Deal + Send + Sync + use<> {
        let [handled, dead] = ["handled", "dead"].map(|name| self.notes(name));
        let (failed, mark, path) = (Mutex::new(HashSet::new()), Once::new(), self.mark());
        let is_final = self.place == 0;
        move |payload| {
            let number = std::str::from_utf8(payload).unwrap().parse().unwrap();
            let is_faulty = number / 2 % 16 == 15;
            let deal = match is_faulty && (is_final || failed.lock().unwrap().insert(number)) {
                true if is_final => Deal::Never,
                true => Deal::NotYet,
                false => Deal::Handled,
            };
            match deal {
                Deal::Handled => handled(number),
                Deal::NotYet => {}
                Deal::Never => dead(number),
            }
            mark.call_once(|| fs::write(&path, "").unwrap());
            deal
        }
    }

    /// Published, stored, dropped.
    fn publish(&self) -> Vec<u64> {
        let [offered, stored, dropped] =
            ["offered", "stored", "dropped"].map(|name| self.notes(name));
        let rule = Export::new("k.*").at_least_once("K").buffer(BUFFER).overflow(Overflow::Reject);
        let bridge = Bridge::nats(&self.hub, self.broker()).export(rule).open().unwrap();
        let mut number = self.number << 32;
        let mut round = 0;
        while self.goes_on("end-publish") {
            round += 1;
            let end = number + if round % 8 == 0 { MANY } else { FEW };
            let sent: Vec<_> = (number..end)
                .map(|number| {
                    offered(number);
                    let message = self.hub.message(format!("k.{}", number % 2));
                    (number, bridge.publish(message.payload(number.to_string())))
                })
                .collect();
            number = end;
            for (number, sent) in sent {
                match sent.map(|pending| pending.wait(LIMIT)) {
                    Ok(end) => {
                        end.unwrap();
                        stored(number);
                    }
                    Err(Error::MailboxFull { .. }) => dropped(number),
                    Err(error) => panic!("{error}"),
                }
            }
            fs::write(self.mark(), "").unwrap();
            // With one message out at a time an import is slow.
            std::thread::sleep(Duration::from_millis(if self.in_flight == 1 { 40 } else { 4 }));
        }
        let (audit, stats) = (self.hub.audit(), bridge.stats());
        let published = number - (self.number << 32);
        assert!(audit.is_balanced() && audit.matched == published, "{published} {audit:?}");
        let stats = &stats.exports[0];
        assert_eq!(
            (stats.stored, stats.dropped),
            (audit.delivered, audit.rejected),
            "{audit:?} {stats:?}"
        );
        assert_eq!(
            (self.noted("stored"), self.noted("dropped")),
            (audit.delivered, audit.rejected)
        );
        vec![audit.matched, audit.delivered, audit.rejected]
    }

    /// Delivered, dead.
    fn import(&self) -> Vec<u64> {
        let deal = self.deal();
        let key = format!("k.{}", self.place);
        let _handler = self
            .hub
            .subscription(&key)
            .on_failure(OnFailure::dead_letter())
            .serve(move |message: &Message<'_>| match deal(message.payload()) {
                Deal::Handled => Ok(()),
                Deal::NotYet => Err(Failure::new("not yet")),
                Deal::Never => Err(Failure::new("never")),
            })
            .unwrap();
        let rule = Import::new(key).at_least_once("K", format!("b{}", self.place));
        let rule = rule.in_flight(self.in_flight).ack_wait(ACK_WAIT);
        let again = Retry::fixed(1000, Duration::from_millis(5));
        let rule = rule.retry(if self.place == 0 { Retry::none() } else { again });
        let bridge = Bridge::nats(&self.hub, self.broker()).import(rule).open().unwrap();
        while self.goes_on("end-import") {
            std::thread::sleep(Duration::from_millis(5));
        }
        let (audit, stats) = (self.hub.audit(), bridge.stats());
        assert!(audit.is_balanced(), "{audit:?}");
        let stats = &stats.imports[0];
        assert_eq!((stats.acknowledged, stats.again), (audit.delivered, audit.failed), "{stats:?}");
        // Others had ended a process, as they were killed in their last attempts.
        assert!(stats.dead >= audit.dead_lettered, "{audit:?} {stats:?}");
        assert_eq!(
            (self.noted("handled"), self.noted("dead")),
            (audit.delivered, audit.dead_lettered)
        );
        vec![audit.delivered, audit.dead_lettered]
    }

    /// Submitted, stored, dropped.
    fn submit(&self) -> Vec<u64> {
        let [offered, stored] = ["offered", "stored"].map(|name| self.notes(name));
        let queue = WorkerPool::new(self.hub.pool()).durable("q").nats(self.broker());
        let queue = queue.open().unwrap();
        let first = self.number << 32;
        let mut number = first;
        while self.goes_on("end-submit") {
            offered(number);
            let task = queue.task(["t0", "t1"][number as usize % 2]).arguments(number.to_string());
            let _task = task.timeout(LIMIT).submit().unwrap();
            stored(number);
            number += 1;
            fs::write(self.mark(), "").unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        let sum = queue.stats().exports.iter().map(|export| export.stored).sum::<u64>();
        assert_eq!((sum, self.noted("stored")), (number - first, number - first));
        vec![number - first, sum, 0]
    }

    /// Completed, dead.
    fn work(&self) -> Vec<u64> {
        let deal = self.deal();
        let workers = WorkerPool::new(self.hub.pool());
        let again = Retry::fixed(1000, Duration::from_millis(5));
        let queue = workers
            .durable("q")
            .nats(self.broker())
            .in_flight(self.in_flight)
            .ack_wait(ACK_WAIT)
            .task_with(["t0", "t1"][self.place], again, move |job: &Job<'_>| {
                match deal(job.arguments()) {
                    Deal::Handled => Ok(job.arguments().to_vec()),
                    Deal::NotYet => Err(Fault::new("not yet")),
                    Deal::Never => Err(Fault::permanent("never")),
                }
            })
            .open()
            .unwrap();
        while self.goes_on("end-work") {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(queue.close(LIMIT), 0);
        let (audit, imports) = (workers.audit(), queue.stats().imports);
        assert!(audit.balances() && audit.in_flight == 0, "{audit:?}");
        let sum = |of: fn(&ImportStats) -> u64| imports.iter().map(of).sum::<u64>();
        let ends = (sum(|one| one.acknowledged), sum(|one| one.dead), sum(|one| one.again));
        // One that comes again while the broker cannot say how often it has begun is given back without an attempt.
        let attempts = audit.completed + audit.failed;
        assert!(attempts <= ends.0 + ends.1 + ends.2, "{audit:?} {ends:?}");
        assert_eq!((self.noted("handled"), self.noted("dead")), (ends.0, ends.1));
        vec![ends.0, ends.1]
    }
}
