//! The Python package: its tests run against the shared library that this build has made. No pip is
//! needed, and nothing is installed.
#![cfg(all(feature = "capi", not(loom)))]

#[path = "common/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Cargo puts it beside the tests' programs.
fn library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let library = program.with_file_name("libpaceline.so");
    assert!(library.exists(), "{} has not been built", library.display());
    library
}

/// The oldest Python that the package supports is 3.9.
fn python() -> Option<&'static str> {
    let script = "import sys; sys.exit(sys.version_info < (3, 9))";
    let told = Command::new("python3").args(["-c", script]).output();
    match told {
        Ok(told) if told.status.success() => Some("python3"),
        Ok(_) => {
            skipped("python3 is older than 3.9");
            None
        }
        Err(_) => {
            skipped("python3 is missing");
            None
        }
    }
}

fn run(command: &mut Command) -> Output {
    let told = command
        .env("PACELINE_LIBRARY", library())
        .env("PYTHONPATH", root().join("bindings/python/src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&told.stdout), text(&told.stderr));
    assert!(told.status.success(), "{command:?}: {}\n{out}{err}", told.status);
    told
}

/// The tests that unittest has skipped, with the reasons that they gave, from its verbose report. A test that has a
/// description is named in the line before.
fn left_out(report: &str) -> impl Iterator<Item = String> + '_ {
    let mut name = "";
    report.lines().filter_map(move |line| {
        let (what, end) = line.split_once(" ... ").unwrap_or((line, ""));
        if let Some((function, _)) = what.split_once(" (").filter(|(word, _)| !word.contains(' ')) {
            name = function;
        }
        let why = end.strip_prefix("skipped ")?;
        let why = why.trim_matches(['\'', '"']);
        Some(format!("{name}: {}", why.trim_start_matches("skipped, because ")))
    })
}

#[test]
fn what_unittest_skips_is_told() {
    let report = "\
        test_ok (test_pool.Pool.test_ok) ... ok\n\
        test_plain (test_pool.Pool.test_plain) ... skipped 'no signals'\n\
        test_described (test_udp.Groups.test_described)\n\
        Groups are joined. ... skipped \"skipped, because there is no multicast here: it's off\"\n\
        test_skips (test_pool.Pool.test_skips) ... ok\n\
        setUpClass (test_log.Forks) ... skipped 'no forks'\n\
        \n\
        OK (skipped=2)\n";
    let expected = [
        "test_plain: no signals",
        "test_described: there is no multicast here: it's off",
        "setUpClass: no forks",
    ];
    assert!(left_out(report).eq(expected));
}

fn unittest(pattern: &str) {
    let Some(python) = python() else { return };
    let tests = root().join("bindings/python/tests");
    let arguments = ["-W", "default", "-m", "unittest", "discover", "-v", "-p", pattern];
    let told = run(Command::new(python).args(arguments).current_dir(tests));
    let told = String::from_utf8_lossy(&told.stderr);
    eprint!("{told}");
    left_out(&told).for_each(skipped);
}

/// Goal: no file of tests is forgotten. Method: the folder against the patterns that are given to `unittest` here.
#[test]
fn every_file_of_tests_is_run() {
    let here = include_str!("python.rs");
    let patterns: Vec<_> =
        here.split("unittest(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let is_run = |name: &str| {
        patterns.iter().any(|pattern| match pattern.split_once('*') {
            Some((head, tail)) => name.starts_with(head) && name.ends_with(tail),
            None => name == *pattern,
        })
    };
    let names = std::fs::read_dir(root().join("bindings/python/tests")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = names
        .filter(|name| name.starts_with("test_") && name.ends_with(".py") && !is_run(name))
        .collect();
    assert!(left.is_empty(), "not run: {left:?}");
}

#[test]
fn what_is_wrong_is_said_and_types_are_known() {
    unittest("test_said.py");
    unittest("test_scope.py");
    unittest("test_types.py");
}

#[test]
fn structures_are_as_c_has_them_and_names_have_comments() {
    unittest("test_layout.py");
    unittest("test_comments.py");
}

#[test]
fn what_does_not_fit_is_told() {
    unittest("test_import.py");
    unittest("test_interpreters.py");
    unittest("test_library.py");
    unittest("test_arguments.py");
}

#[test]
fn the_executor_is_a_standard_one() {
    unittest("test_executor.py");
    unittest("test_standard_cases.py");
}

#[test]
fn pools_queues_and_rings() {
    unittest("test_pool*.py");
    unittest("test_ways.py");
    unittest("test_queue.py");
    unittest("test_cq.py");
    unittest("test_log.py");
    unittest("test_ops.py");
}

#[test]
fn worker_pools() {
    unittest("test_workers*.py");
    unittest("test_extensions.py");
}

#[test]
fn hubs() {
    unittest("test_hub*.py");
}

#[test]
fn what_goes_over_a_broker() {
    unittest("test_bridge.py");
    unittest("test_durable.py");
    unittest("test_worker.py");
}

#[test]
fn servers() {
    unittest("test_server.py");
    unittest("test_framing.py");
    unittest("test_http.py");
    unittest("test_streaming.py");
    unittest("test_udp.py");
    unittest("test_inherited.py");
}

#[test]
fn nothing_is_abused_or_left_behind() {
    unittest("test_abuse.py");
    unittest("test_native.py");
    unittest("test_contained_pool.py");
    unittest("test_reentrant.py");
    unittest("test_ends.py");
    unittest("test_user_objects.py");
    unittest("test_exits.py");
}

#[test]
fn the_readme_and_the_examples_run() {
    unittest("test_readme.py");
    unittest("test_examples.py");
}
