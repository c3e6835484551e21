//! The Python package: its tests run against the shared library that this build has made. No pip is
//! needed, and nothing is installed.
#![cfg(all(feature = "capi", not(loom)))]

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
            eprintln!("skipped, because python3 is older than 3.9");
            None
        }
        Err(_) => {
            eprintln!("skipped, because python3 is missing");
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

fn unittest(pattern: &str) {
    let Some(python) = python() else { return };
    let tests = root().join("bindings/python/tests");
    let arguments = ["-W", "default", "-m", "unittest", "discover", "-v", "-p", pattern];
    let told = run(Command::new(python).args(arguments).current_dir(tests));
    // What was skipped, and why, is shown by `cargo test -- --nocapture`.
    eprint!("{}", String::from_utf8_lossy(&told.stderr));
}

#[test]
fn structures_are_as_c_has_them() {
    unittest("test_layout.py");
}

#[test]
fn what_does_not_fit_is_told() {
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
    unittest("test_pool.py");
    unittest("test_queue.py");
    unittest("test_log.py");
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
fn servers() {
    unittest("test_server.py");
    unittest("test_http.py");
    unittest("test_streaming.py");
    unittest("test_udp.py");
    unittest("test_inherited.py");
}

#[test]
fn nothing_is_abused_or_left_behind() {
    unittest("test_abuse.py");
    unittest("test_exits.py");
}

#[test]
fn the_readme_and_the_examples_run() {
    unittest("test_readme.py");
    unittest("test_examples.py");
}
