//! Processes that are killed: the rows of the table at the head of `src/bridge/mod.rs`, at least once.
//!
//! A publisher and an importer are processes of their own, and so is the broker. One of them, by chance, is killed at a point
//! by chance, and started again. The publisher notes each number of which the bridge has said that it is stored; the
//! importer's handler notes each that it has got. `PACELINE_BRIDGE_KILLS` says how often: 8 in each of six mixtures, unless set.

use crate::broker::{Broker, broker};
use crate::common::{Random, hang_guard, until};
use crate::raw::Raw;
use crate::topics::hub;
use paceline::bridge::{Bridge, Export, Import};
use paceline::hub::Message;
use std::collections::HashSet;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

const ROLE: &str = "PACELINE_BRIDGE_ROLE";
const LIMIT: Duration = Duration::from_secs(60);

/// Goal: nothing that was acknowledged to its publisher is lost, whoever dies; with one message out at a time the order of
/// first deliveries holds; and what the stream has stored is what was handled. While the importer lives nothing comes
/// twice, and while the broker lives only what was with an importer that died. If both die, what was acknowledged shortly
/// before may come again, too: the broker has that on disk a little later, and the new importer does not know it.
#[test]
fn whoever_is_killed_nothing_acknowledged_is_lost() {
    if let Ok(role) = env::var(ROLE) {
        return play(&role);
    }
    for in_flight in [1, 64] {
        for victims in
            [&[Victim::Publisher, Victim::Importer][..], &[Victim::Publisher, Victim::Broker], &ALL]
        {
            killed(in_flight, victims);
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

fn killed(in_flight: u64, victims: &[Victim]) {
    let _guard = hang_guard();
    let Some(mut broker) = broker() else { return };
    let kills = env::var("PACELINE_BRIDGE_KILLS").map_or(8, |text| text.parse().unwrap());
    let directory =
        env::temp_dir().join(format!("paceline-crash-{}-{in_flight}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let mut random = Random::new(in_flight + u64::from(std::process::id()));
    let start = |role: &str, number: u64, broker: &Broker| {
        start(&format!("{role} {number} {in_flight} {}", broker.url()), &directory)
    };
    let mut publisher = start("publish", 0, &broker);
    let mut importer = start("import", 0, &broker);
    let mut importers = 0;
    for kill in 1..=kills {
        std::thread::sleep(Duration::from_millis(50 + random.below(300)));
        match victims[random.below(victims.len() as u64) as usize] {
            Victim::Publisher => {
                end(&mut publisher);
                publisher = start("publish", kill, &broker);
            }
            Victim::Importer => {
                end(&mut importer);
                importer = start("import", 0, &broker);
                importers += 1;
            }
            Victim::Broker => {
                broker.kill();
                broker.start_again();
            }
        }
    }
    let before = numbers(&directory.join("stored")).len();
    until("some more are stored", || numbers(&directory.join("stored")).len() > before);
    end(&mut publisher);
    let stored = numbers(&directory.join("stored"));
    let handled = || numbers(&directory.join("handled"));
    until("all that was acknowledged is handled", || {
        let handled: HashSet<u64> = handled().into_iter().collect();
        stored.iter().all(|number| handled.contains(number))
    });
    let mut raw = Raw::connect(&broker.url());
    until("the broker has nothing left", || {
        let info = raw.request("$JS.API.CONSUMER.INFO.K.b", "");
        info.contains("\"num_pending\":0") && info.contains("\"num_ack_pending\":0")
    });
    let info = raw.request("$JS.API.STREAM.INFO.K", "");
    end(&mut importer);
    let all = handled();
    let mut known = HashSet::new();
    let firsts: Vec<u64> = all.iter().copied().filter(|number| known.insert(*number)).collect();
    assert!(info.contains(&format!("\"messages\":{},", firsts.len())), "{} {info}", firsts.len());
    let twice = (all.len() - firsts.len()) as u64;
    let most = if victims.len() == ALL.len() { u64::MAX } else { importers * in_flight };
    assert!(twice <= most, "{twice} came twice, {importers} importers were killed");
    let early = firsts.windows(2).find(|pair| pair[0] > pair[1]);
    assert!(in_flight > 1 || early.is_none(), "{early:?}");
    fs::remove_dir_all(&directory).unwrap();
}

fn start(role: &str, directory: &Path) -> Child {
    start_by(Command::new(env::current_exe().unwrap()), role, directory)
}

/// By a command that runs this program.
pub fn start_by(mut command: Command, role: &str, directory: &Path) -> Child {
    command
        .args(["crash::whoever_is_killed_nothing_acknowledged_is_lost", "--exact", "--quiet"])
        .env(ROLE, role)
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

pub fn end(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The whole lines of a file: the last may have been cut off.
pub fn numbers(path: &PathBuf) -> Vec<u64> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| line.parse().unwrap()).collect()
}

/// A child, until it is killed.
fn play(role: &str) {
    let words: Vec<&str> = role.split(' ').collect();
    let [role, incarnation, in_flight, url] = words[..] else { panic!("{role}") };
    let hub = hub();
    let note =
        |name: &str| Mutex::new(OpenOptions::new().create(true).append(true).open(name).unwrap());
    let write = |file: &Mutex<fs::File>, text: &str| {
        file.lock().unwrap().write_all(format!("{text}\n").as_bytes()).unwrap();
    };
    let parent = std::os::unix::process::parent_id();
    let lives = || std::os::unix::process::parent_id() == parent;
    if role == "import" {
        let handled = note("handled");
        let _handler = hub
            .subscribe("k", move |message: &Message<'_>| {
                write(&handled, std::str::from_utf8(message.payload()).unwrap());
            })
            .unwrap();
        let rule = Import::new("k").at_least_once("K", "b").in_flight(in_flight.parse().unwrap());
        let rule = rule.ack_wait(Duration::from_millis(500));
        let _bridge = Bridge::nats(&hub, url).import(rule).open().unwrap();
        while lives() {
            std::thread::sleep(Duration::from_millis(50));
        }
        return;
    }
    let stored = note("stored");
    let bridge =
        Bridge::nats(&hub, url).export(Export::new("k").at_least_once("K")).open().unwrap();
    let mut number = incarnation.parse::<u64>().unwrap() << 32;
    while lives() {
        let sent: Vec<_> = (number..number + 8)
            .map(|number| {
                (number, bridge.publish(hub.message("k").payload(number.to_string())).unwrap())
            })
            .collect();
        for (number, pending) in sent {
            pending.wait(LIMIT).unwrap();
            write(&stored, &number.to_string());
        }
        number += 8;
        std::thread::sleep(Duration::from_millis(2));
    }
}
