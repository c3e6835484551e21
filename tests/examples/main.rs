//! The examples, by their command lines: what they print, what they refuse, and that the servers
//! among them hold out.
#![cfg(not(loom))]

mod chat;
mod echo;
#[cfg(feature = "http")]
mod http;
mod kit;
#[cfg(all(feature = "http", feature = "metrics"))]
mod observe;
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
#[cfg(feature = "metrics")]
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

/// Goal: the README shows the same service in four languages, as it is in the examples. tests/newcomer.rs runs all four.
#[test]
fn the_readme_shows_its_examples() {
    let shown = include_str!("../../README.md");
    for (language, path) in [
        ("rust,no_run", "readme.rs"),
        ("c", "c/readme.c"),
        ("cpp", "cpp/readme.cpp"),
        ("python", "python/readme.py"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(path);
        let source = fs::read_to_string(&path).expect("an example");
        assert!(shown.contains(&format!("```{language}\n{source}```\n")), "{path:?} is not shown");
        let lines = source.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= 19, "{path:?} has {lines} lines");
    }
    let lines = shown.lines().count();
    assert!(lines <= 131, "the README has {lines} lines");
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
