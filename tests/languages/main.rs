//! Programs in C, C++ and Python. The servers among the examples that are there in every language behave as those in
//! Rust do, so their tests are the same. The programs of examples/features and of docs/coming-from.md are small, and
//! check themselves.
#![cfg(all(not(loom), feature = "capi"))]
#![allow(clippy::duplicate_mod, reason = "the suites take their programs from who includes them")]

mod c;
mod cpp;
mod features;
mod page;
mod programs;
mod scenarios;
mod services;
#[path = "../common/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

/// A file of the repository.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// An example, compiled by whoever comes first, by the line that its head shows, and linked with the
/// shared library that was built with this test.
fn compiled(path: &str, flags: &str) -> Command {
    static PROGRAMS: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let programs = programs.get_or_insert_default();
    Command::new(programs.entry(path.to_owned()).or_insert_with(|| compile(path, flags)))
}

fn compile(path: &str, flags: &str) -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    let libraries = test.parent().expect("a test is in a directory").display().to_string();
    let head = fs::read_to_string(source(path)).expect("an example");
    let line = head.lines().map(|line| line.trim_start_matches([' ', '*', '/']));
    let line = line.clone().find(|line| line.starts_with("cc ") || line.starts_with("c++ "));
    let (line, _output) = line.and_then(|line| line.rsplit_once(" -o ")).expect("its line");
    // Before the path that cargo sets, where an older build may lie.
    let line = line.replace("-rpath,", "--disable-new-dtags,-rpath,");
    let line = line.replace("target/release", &libraries);
    let mut words = line.split(' ');
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(path.replace(['/', '.'], "-"));
    let mut command = Command::new(words.next().expect("a compiler"));
    command.current_dir(source(".")).args(words).args(flags.split(' ')).arg("-o").arg(&program);
    let output = command.output().expect("the compiler starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{command:?}\n{errors}");
    program
}

/// Whether a program is not here; says so.
fn has_no(program: &str, needed_by: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        skipped(format_args!("there is no {program}, which the examples in {needed_by} need"));
    }
    !found
}

/// What runs the example of this name in `language`: "rust", "c", "cpp" or "python". None: what it needs is missing, and that
/// was said.
fn example_in(language: &str, name: &str) -> Option<Command> {
    let flags = "-O0 -pthread -Wall -Wextra -Werror";
    let is_missing = match language {
        "c" => has_no("cc", "C"),
        "cpp" => has_no("c++", "C++"),
        "python" => has_no("python3", "Python"),
        _ => false,
    };
    (!is_missing).then(|| match language {
        "c" => compiled(&format!("examples/c/{name}.c"), flags),
        "cpp" => {
            compiled(&format!("examples/cpp/{name}.cpp"), &format!("{flags} -Wpedantic -Wshadow"))
        }
        "python" => {
            let mut command = Command::new("python3");
            command.args(["-W", "error"]).arg(source(&format!("examples/python/{name}.py")));
            command.env("PACELINE_LIBRARY", programs::libraries().join("libpaceline.so"));
            command.env("PYTHONPATH", source("bindings/python/src"));
            command.env("PYTHONDONTWRITEBYTECODE", "1");
            command
        }
        _ => {
            let test = env::current_exe().expect("a test has a path");
            let profile = test.ancestors().nth(2).expect("tests are in target/<profile>/deps");
            let path = profile.join("examples").join(name);
            assert!(path.exists(), "{path:?} is missing: `cargo build --examples` builds it");
            Command::new(path)
        }
    })
}

#[test]
fn every_example_that_serves_is_there_in_every_language() {
    for name in ["chat", "http", "observe", "proxy", "service"] {
        let rust = if name == "observe" { "observe.rs".into() } else { format!("{name}/main.rs") };
        for path in [rust, format!("c/{name}.c"), format!("cpp/{name}.cpp")] {
            let is_there = fs::exists(source("examples").join(&path));
            assert!(is_there.expect("it can be looked for"), "{path} is missing");
        }
    }
}
