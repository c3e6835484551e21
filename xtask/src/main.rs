//! One word for each habit: `cargo xtask` lists them. Each runs the commands that it shows.

mod summary;

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode};

/// A word, what it takes, what it does, and the commands. `{}` stands for what follows the word.
struct Habit {
    word: &'static str,
    takes: &'static str,
    does: &'static str,
    commands: &'static [&'static str],
}

const HABITS: &[Habit] = &[
    Habit {
        word: "test",
        takes: "[all] [arguments of cargo test]",
        does: "the tests in all four languages, or some of them: cargo xtask test --test hub requests; its last lines name \
               what has failed. With the word all, also those that take long: other compilers and dialects, packages, the \
               README in a fresh clone",
        commands: &["cargo test --no-fail-fast {}"],
    },
    Habit {
        word: "lint",
        takes: "",
        does: "formatting of all four languages, clippy of the whole workspace",
        commands: &[".ci/run formatting clippy"],
    },
    Habit {
        word: "model",
        takes: "[name]",
        does: "the loom models, or those whose path contains the name: cargo xtask model pool::models::wake",
        commands: &[
            "RUSTFLAGS=--cfg=loom CARGO_TARGET_DIR=target/loom cargo test --release --package paceline --lib {models}",
        ],
    },
    Habit {
        word: "map",
        takes: "",
        does: "draws docs/architecture.svg from the sources",
        commands: &[
            "PACELINE_BLESS=1 cargo test --package paceline --test architecture the_picture",
        ],
    },
    Habit {
        word: "bench",
        takes: "<echo|http|resp|submit|tasks|hub|queue> [arguments]",
        does: "paceline beside other engines; add --quick for a first look",
        commands: &["cargo run --release --package comparison -- {}"],
    },
    Habit {
        word: "header",
        takes: "",
        does: "renews what is generated from src/ffi (headers, enumerations in C++, layouts in Python and for tests), and the listing of the public interface in Rust",
        commands: &[
            "PACELINE_BLESS=1 cargo test --test header",
            "PACELINE_BLESS=1 cargo test --test public_api",
        ],
    },
    Habit {
        word: "examples",
        takes: "",
        does: "runs the small programs of examples/features, and writes docs/EXAMPLES.md from their heads",
        commands: &["PACELINE_BLESS=1 cargo test --test languages features"],
    },
    Habit {
        word: "abi",
        takes: "",
        does: "takes today's header as the baseline of the binary interface, when a struct or function was added",
        commands: &["PACELINE_BLESS=1 cargo test --test abi nothing_changes"],
    },
    Habit {
        word: "fuzz",
        takes: "[seconds]",
        does: "each fuzz target for so many seconds (20); needs a nightly compiler",
        commands: &["fuzz/run {}"],
    },
    Habit {
        word: "chaos",
        takes: "[--rounds 10] [--seed S] [--seconds 5] [--fault NAME]",
        does: "kills, ends and stops programs and their broker by chance, and sees that nothing accepted is lost; a fault \
               falsifies what is compared, so that it fails; needs nats-server",
        commands: &["cargo test --quiet --test chaos -- {}"],
    },
    Habit {
        word: "docs",
        takes: "",
        does: "the documentation, with all features, without warnings",
        commands: &["RUSTDOCFLAGS=-Dwarnings cargo doc --no-deps"],
    },
    Habit {
        word: "ci",
        takes: "",
        does: "everything that must hold before a change is taken (half an hour on two cores)",
        commands: &[".ci/run"],
    },
];

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let word = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let Some(habit) = HABITS.iter().find(|habit| habit.word == word) else {
        list();
        let is_asked_for = ["", "help", "--help", "-h"].contains(&&*word);
        if !is_asked_for {
            eprintln!("\ncargo xtask: there is no word {word:?}");
        }
        return if is_asked_for { ExitCode::SUCCESS } else { ExitCode::from(2) };
    };
    for command in habit.commands {
        let went_well = match habit.word {
            "test" => summary::run_tests(root(), &of_cargo(&rest), &mut std::io::stdout())
                .unwrap_or_else(|error| {
                    eprintln!("cargo xtask: {command}: {error}");
                    false
                }),
            _ => run(command, &rest),
        };
        if !went_well {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// What cargo test is given for what the word test was.
fn of_cargo(rest: &[String]) -> Vec<String> {
    let Some(("all", rest)) = rest.split_first().map(|(first, rest)| (first.as_str(), rest)) else {
        return rest.to_vec();
    };
    let separator = (!rest.iter().any(|word| word == "--")).then(|| "--".to_owned());
    rest.iter().cloned().chain(separator).chain(["--include-ignored".to_owned()]).collect()
}

fn list() {
    println!("cargo xtask <word>\n");
    for Habit { word, takes, does, commands } in HABITS {
        println!("  {word} {takes}\n      {does}");
        for command in *commands {
            println!("      $ {}", command.replace("{models}", "models").replace(" {}", ""));
        }
    }
}

/// The repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository")
}

/// What cargo says of this package is not for what it starts: build scripts look at it, and run again where it differs, and
/// all that depends on them is built again.
fn forget_xtask(process: &mut Command) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            process.env_remove(&name);
        }
    }
}

/// Runs one command at the root of the repository. Whether it went well.
fn run(command: &str, rest: &[String]) -> bool {
    let mut words = command.split(' ').peekable();
    let mut variables = Vec::new();
    while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
        variables.push((name, value));
        words.next();
    }
    let mut process = Command::new(words.next().expect("a command has a program"));
    forget_xtask(&mut process);
    process.current_dir(root()).envs(variables);
    for word in words {
        match word {
            "{}" => _ = process.args(rest),
            "{models}" if rest.is_empty() => _ = process.arg("models"),
            "{models}" => _ = process.args(rest),
            word => _ = process.arg(word),
        }
    }
    println!("$ {command}");
    match process.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cargo xtask: {command}: {error}");
            false
        }
    }
}
