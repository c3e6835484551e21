//! One round: from the first start of the processes to the comparison.

use crate::common::Random;
use crate::compare::{FAULTS, Fault, Records};
use crate::processes::{Broker, Process, start_program, within};
use crate::programs::SPOOLED;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The programs; whoever is first publishes, and so on.
const ROLES: [&str; 5] = ["publisher", "importer", "submitter", "worker", "worker"];
/// Those that end by themselves.
const SOURCES: [usize; 2] = [0, 2];
/// What all that was accepted may take in the end, and what a program may take to end.
const PATIENCE: Duration = Duration::from_secs(90);
/// The same where what was accepted may be lost.
const SHORT: Duration = Duration::from_secs(5);

pub struct Round {
    folder: PathBuf,
    random: Random,
    /// The broker keeps its disk.
    is_kept: bool,
    is_spooled: bool,
    lives: u64,
    programs: Vec<Process>,
    /// Until when the program is stopped.
    stopped: [Option<Instant>; ROLES.len()],
    kills: u64,
    /// Of the broker: version 2.9 has faults of its own.
    crashes: u64,
    told: String,
}

impl Round {
    pub fn new(seed: u64, is_kept: bool) -> Self {
        let name = format!("paceline-chaos-{}-{seed}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder for the round");
        Self {
            folder,
            random: Random::new(seed),
            is_kept: is_kept || seed % 6 != 5,
            is_spooled: seed % 2 == 1,
            lives: 0,
            programs: Vec::new(),
            stopped: [None; ROLES.len()],
            kills: 0,
            crashes: 0,
            told: String::new(),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn forget(&self) {
        let _left_behind = fs::remove_dir_all(&self.folder);
    }

    /// What it was about, once it has run.
    pub fn told(&self) -> &str {
        &self.told
    }

    /// What is not as it must be; nothing, if all is well.
    pub fn run(&mut self, seconds: u64, fault: Option<&Fault>) -> Vec<String> {
        let mut problems = match self.disturb_and_drain(Duration::from_secs(seconds)) {
            Ok(problems) => problems,
            Err(problem) => vec![problem],
        };
        self.programs.clear();
        let mut records = Records::read(&self.folder);
        self.told = format!(
            "{}{}{}{} kills, {} messages, {} tasks, {} answers, {} again",
            if self.is_kept { "" } else { "broker forgets, " },
            if self.is_spooled { "spool, " } else { "" },
            if self.crashes == 0 {
                String::new()
            } else {
                format!("broker crashes {}, ", self.crashes)
            },
            self.kills,
            records.accepted_messages.len(),
            records.accepted_tasks.len(),
            records.answers.len(),
            records.repeated(),
        );
        if let Some(fault) = fault {
            fault.falsify(&mut records);
        }
        problems.extend(records.differences(self.is_kept));
        if problems.is_empty() {
            let missed = FAULTS.iter().filter(|fault| !fault.is_noticed(&records, self.is_kept));
            problems.extend(missed.map(|fault| format!("{} is not noticed", fault.name)));
        }
        problems
    }

    fn start(&mut self, place: usize, url: &str) -> Process {
        self.lives += 1;
        self.stopped[place] = None;
        let more = if self.is_spooled { SPOOLED } else { "" };
        start_program(&self.folder, ROLES[place], self.lives, url, more)
    }

    fn disturb_and_drain(&mut self, time: Duration) -> Result<Vec<String>, String> {
        let random = &mut self.random;
        let broker = Broker::start(&self.folder, |bound| random.below(bound));
        let mut broker = broker.ok_or("the broker does not begin")?;
        for place in 0..ROLES.len() {
            let program = self.start(place, &broker.url());
            self.programs.push(program);
        }
        let begun = Instant::now();
        while begun.elapsed() < time {
            self.sleep(250);
            self.crashes += u64::from(broker.revive());
            self.all_live()?;
            self.resume(false);
            self.disturb(&mut broker)?;
        }
        self.resume(true);
        self.drain(&mut broker)
    }

    fn sleep(&mut self, most: u64) {
        std::thread::sleep(Duration::from_millis(self.random.below(most)));
    }

    /// Nobody ends by itself, but for the broker.
    fn all_live(&mut self) -> Result<(), String> {
        let mut programs = self.programs.iter_mut().zip(ROLES);
        let ended = programs.find_map(|(program, role)| Some((role, program.end()?)));
        ended.map_or(Ok(()), |(role, end)| Err(format!("the {role} has ended by itself: {end}")))
    }

    /// Lets go on who was stopped for long enough, or everybody.
    fn resume(&mut self, everybody: bool) {
        for (program, stopped) in self.programs.iter().zip(&mut self.stopped) {
            if stopped.is_some_and(|until| everybody || until <= Instant::now()) {
                program.signal(libc::SIGCONT);
                *stopped = None;
            }
        }
    }

    fn disturb(&mut self, broker: &mut Broker) -> Result<(), String> {
        let serves = match self.random.below(16) {
            0 => {
                broker.stop();
                self.away(broker);
                broker.start_again(false)
            }
            1 => {
                broker.stop();
                let serves = broker.start_again(true);
                self.sleep(500);
                broker.stop();
                serves && broker.start_again(false)
            }
            2..=4 => {
                broker.kill();
                self.away(broker);
                broker.start_again(false)
            }
            5 | 6 => {
                let place = self.random.below(ROLES.len() as u64) as usize;
                let time = Duration::from_millis(self.random.below(2000));
                self.programs[place].signal(libc::SIGSTOP);
                self.stopped[place] = Some(Instant::now() + time);
                true
            }
            other => {
                let place = self.random.below(ROLES.len() as u64) as usize;
                if other < 10 && self.stopped[place].is_none() {
                    self.programs[place].ask_to_end();
                    // What has not ended by then is killed.
                    self.programs[place].ends_within(Duration::from_secs(2), || {});
                }
                self.programs[place].kill();
                let program = self.start(place, &broker.url());
                self.programs[place] = program;
                true
            }
        };
        self.kills += 1;
        serves.then_some(()).ok_or("the broker does not begin again".into())
    }

    /// The broker is away for a while.
    fn away(&mut self, broker: &Broker) {
        self.sleep(200);
        if !self.is_kept {
            match self.random.below(3) {
                0 => broker.lose_disk(),
                1 => broker.lose_stream(|bound| self.random.below(bound)),
                _ => {}
            }
        }
    }

    /// Everybody ends what has begun. What has not ended in time is told.
    fn drain(&mut self, broker: &mut Broker) -> Result<Vec<String>, String> {
        let mut problems = Vec::new();
        let limit = if self.is_kept { PATIENCE } else { SHORT };
        fs::write(self.folder.join("drain"), limit.as_secs().to_string()).expect("a file");
        for place in SOURCES {
            self.end_of(place, limit + PATIENCE, broker, &mut problems);
        }
        if self.is_kept {
            // The comparison says what is missing.
            let _is_there = within(PATIENCE, || {
                self.crashes += u64::from(broker.revive());
                std::thread::sleep(Duration::from_millis(100));
                Records::read(&self.folder).has_received_all()
            });
        }
        for place in (0..ROLES.len()).filter(|place| !SOURCES.contains(place)) {
            self.programs[place].ask_to_end();
        }
        for place in (0..ROLES.len()).filter(|place| !SOURCES.contains(place)) {
            self.end_of(place, PATIENCE, broker, &mut problems);
        }
        broker.kill();
        Ok(problems)
    }

    fn end_of(
        &mut self,
        place: usize,
        limit: Duration,
        broker: &mut Broker,
        problems: &mut Vec<String>,
    ) {
        let ends = self.programs[place].ends_within(limit, || {
            self.crashes += u64::from(broker.revive());
        });
        if !ends {
            problems.push(format!("the {} does not end well", ROLES[place]));
        }
    }
}
