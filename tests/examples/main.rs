//! The examples, by their command lines: what they print, what they refuse, and that the servers
//! among them hold out.
#![cfg(all(feature = "net", not(loom)))]

mod chat;
mod echo;
#[cfg(feature = "http")]
mod http;
mod kit;
mod proxy;
#[path = "../common/skipped.rs"]
#[cfg(feature = "http")]
mod skipped;
#[cfg(feature = "http")]
mod tls;

use kit::{printed, run};
#[cfg(feature = "http")]
use skipped::skipped;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Where cargo puts examples: beside the directory of the tests.
fn example(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    let profile = test.ancestors().nth(2).expect("tests are in target/<profile>/deps");
    let path = profile.join("examples").join(name);
    assert!(path.exists(), "{path:?} is missing: `cargo build --examples` builds it");
    path
}

/// An example, to be given its arguments. The tests of those that are there in several languages are
/// in `tests/languages` once more, with other programs.
fn program(name: &str) -> Command {
    Command::new(example(name))
}

/// Whether what it needs is not here.
fn is_missing() -> bool {
    false
}

#[test]
fn hello_says_what_its_tasks_say() {
    let expected = "\
        a task says 42\n\
        ten tasks say [1, 4, 9, 16, 25, 36, 49, 64, 81, 100]\n\
        a timer says that 20 ms have passed: true\n\
        drained: true, the books balance: true\n";
    assert_eq!(printed(run("hello", &[])), expected);
}

/// What it measures follows what it says.
#[test]
#[cfg(all(feature = "metrics", feature = "tasks"))]
fn worker_says_what_became_of_its_tasks() {
    let expected = "\
        status       tasks\n\
        COMPLETED       95\n\
        FAILED           4\n\
        TIMED_OUT        1\n\
        the squares add up to 312524\n\
        4 failed, because there is no such number\n\
        attempts that were followed by another: 93\n\
        the periodic task ran at least 3 times\n\
        clean-up: the backend is told goodbye\n\
        drained: true, stuck: 0\n\
        the books balance: true\n";
    let output = printed(run("worker", &[]));
    let measured = output.strip_prefix(expected);
    assert!(measured.is_some_and(|times| times.starts_with("waited: p50 ")), "{output}");
}

#[test]
#[cfg(feature = "hub")]
fn hub_says_what_became_of_its_readings() {
    let expected = "\
        the roof may not publish for the room: true\n\
        drained: true\n\
        \u{20}          matched  delivered   dead  restarts\n\
        adds          2000       2000      0         0\n\
        alarm           24         24      0         0\n\
        checks        2000       1998      2         0\n\
        roof has published 1000, and was refused 1\n\
        room has published 1000, and was refused 0\n\
        published in all: 2000\n\
        the display has lost some: true\n\
        it was told of each: true\n\
        the sum is 19048, and there were 24 alarms\n\
        dead letter of temperature.roof after 2 attempts: colder than cold can be\n\
        dead letter of temperature.room after 2 attempts: colder than cold can be\n\
        the books balance: true\n";
    assert_eq!(printed(run("hub", &[])), expected);
}

#[test]
fn the_readme_shows_its_example_and_what_it_prints() {
    let shown = include_str!("../../README.md");
    let source = include_str!("../../examples/readme.rs");
    assert!(shown.contains(&format!("```rust\n{source}```\n")), "the code differs");
    let output = printed(run("readme", &[]));
    assert!(shown.contains(&format!("--example readme\n{output}```\n")), "it prints\n{output}");
}

#[test]
fn ring_loses_no_reading() {
    let expected = "\
        station  readings  lowest    mean highest\n\
        harbour    100000     8.0    14.0    20.0\n\
        airport    100000     5.0    11.0    17.0\n\
        summit     100000    -9.0    -3.0     3.0\n";
    assert_eq!(printed(run("ring", &[])), expected);
}

/// The lines of the README that compile are those that the tests of C and C++ build these examples by.
#[test]
fn the_readme_compiles_examples_by_the_lines_at_their_heads() {
    let mut seen = 0;
    for line in include_str!("../../README.md").lines().filter_map(|line| line.strip_prefix("$ ")) {
        let Some(path) = line.split(' ').find(|word| word.starts_with("examples/c")) else {
            continue;
        };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let head = fs::read_to_string(source).expect("an example");
        let (command, _output) = line.rsplit_once(" -o ").expect("it says where to");
        assert!(head.contains(&format!(" {command} -o ")), "{path} is not built by {command}");
        seen += 1;
    }
    assert_eq!(seen, 2);
}
