//! Chaos: programs publish, submit and work over a broker, and all of them are killed, stopped and held up by chance. Nothing
//! that was accepted may be lost, and every answer belongs to its question. `cargo xtask chaos` runs it.
//!
//! ```text
//!   publisher ─► stream ─► importer            each program appends what it has done to files of its own in the
//!   submitter ─► queue ──► two workers         folder of the round; what was accepted is synced before it counts
//!       ▲───── results ◄──────┘
//! ```
//!
//! A round (`round.rs`) starts the broker and the five programs (`programs.rs`), and for some seconds it picks one of the six
//! at a time: a program is killed, ended in order or stopped for a while, the broker is killed or ended in order with its disk
//! kept, or has no room in its account for a while. Then all are started again, whoever submits and publishes ends what it
//! has begun, and the files are compared (`compare.rs`). In one of six rounds the broker loses its disk or a stream; then only
//! what an answer says is compared.
//!
//! Whatever the round is, its records are falsified afterwards in every way that `compare.rs` knows, and each is to be noticed.
//!
//! Bounds: a process ends with the one that has started it (`PR_SET_PDEATHSIG`), every wait has an end, and what does not end
//! in time is killed and is a difference. A round's choices follow from its seed, but not what the processes have reached by
//! then: a seed that has failed need not fail again.
#![allow(unsafe_code, reason = "signals, and a process that ends with its parent")]

#[path = "../common/mod.rs"]
mod common;
#[cfg(all(feature = "nats", feature = "archive"))]
mod compare;
#[cfg(all(feature = "nats", feature = "archive"))]
mod processes;
#[cfg(all(feature = "nats", feature = "archive"))]
mod programs;
#[cfg(all(feature = "nats", feature = "archive"))]
mod round;

use std::process::ExitCode;

#[cfg(not(all(feature = "nats", feature = "archive")))]
fn main() -> ExitCode {
    eprintln!("skipped: chaos: it needs the features nats and archive");
    ExitCode::SUCCESS
}

#[cfg(all(feature = "nats", feature = "archive"))]
fn main() -> ExitCode {
    processes::end_with_parent();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["play", role, number, url, more] = words[..] {
        programs::play(role, number, url, more);
        return ExitCode::SUCCESS;
    }
    let Some(options) = Options::parse(&words) else {
        eprintln!("cargo xtask chaos {}", Options::usage());
        return ExitCode::from(2);
    };
    if !processes::has_broker() {
        eprintln!("skipped: chaos: there is no nats-server");
        return ExitCode::SUCCESS;
    }
    match options.run() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

#[cfg(all(feature = "nats", feature = "archive"))]
struct Options {
    rounds: u64,
    seed: u64,
    seconds: u64,
    fault: Option<&'static compare::Fault>,
}

#[cfg(all(feature = "nats", feature = "archive"))]
impl Options {
    fn parse(words: &[&str]) -> Option<Self> {
        let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs());
        let mut options = Self { rounds: 10, seed: now, seconds: 5, fault: None };
        for pair in words.chunks(2) {
            let [name, value] = pair else { return None };
            match *name {
                "--rounds" => options.rounds = value.parse().ok()?,
                "--seed" => options.seed = value.parse().ok()?,
                "--seconds" => options.seconds = value.parse().ok()?,
                "--fault" => options.fault = Some(compare::fault(value)?),
                _ => return None,
            }
        }
        Some(options)
    }

    fn usage() -> String {
        let faults: Vec<&str> = compare::FAULTS.iter().map(|fault| fault.name).collect();
        format!("[--rounds N] [--seed S] [--seconds T] [--fault {}]", faults.join("|"))
    }

    /// Whether all rounds went well.
    fn run(&self) -> bool {
        let mut failed = 0;
        for seed in (self.seed..).take(usize::try_from(self.rounds).expect("a number of rounds")) {
            let mut round = round::Round::new(seed, self.fault.is_some());
            let differences = round.run(self.seconds, self.fault);
            if differences.is_empty() {
                println!("seed {seed}: {}: ok", round.told());
                round.forget();
                continue;
            }
            failed += 1;
            let folder = round.folder().display();
            println!(
                "seed {seed}: {}: FAILED, see {folder}: {}",
                round.told(),
                differences.join("; ")
            );
        }
        if failed > 0 {
            println!("{failed} of {} rounds have failed", self.rounds);
        }
        failed == 0
    }
}
