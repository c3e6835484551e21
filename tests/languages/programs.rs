//! Small programs in C, C++ and Python: how they are built and run.

use super::{skipped, source};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// After so many seconds a program is ended, and its test fails. No healthy run comes near.
const PATIENCE: &str = "300";

/// Where cargo has put the shared library: beside this test.
fn libraries() -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    test.parent().expect("a test is in a directory").to_owned()
}

/// A file that a test writes.
pub fn scratch(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    fs::create_dir_all(&place).expect("the scratch directory can be written to");
    place.join(name)
}

/// The compiler for files with this ending, with what every program is compiled with. None: there is none; says so.
fn compiler(ending: &str) -> Option<Command> {
    let (name, flags) = match ending {
        "c" => ("cc", "-std=gnu11 -O0 -Wall -Wextra -Werror"),
        _ => ("c++", "-std=c++17 -O0 -Wall -Wextra -Wpedantic -Wshadow -Werror"),
    };
    if is_missing(name) {
        return None;
    }
    let mut command = Command::new(name);
    command.current_dir(source(".")).args(flags.split(' '));
    command.args(["-pthread", "-I", "include", "-I", "bindings/cpp"]);
    Some(command)
}

fn is_missing(program: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    if version.is_err() {
        skipped(format_args!("there is no {program}"));
    }
    version.is_err()
}

/// A program in C or C++, compiled and linked with the shared library. None: there is no compiler.
pub fn built(unit: &Path) -> Option<PathBuf> {
    let ending = unit.extension().expect("it is in a language").to_str().expect("it is in UTF-8");
    let name = unit.strip_prefix(source(".")).unwrap_or(unit).to_string_lossy();
    let program = scratch(&name.replace(['/', '.'], "-"));
    let mut command = compiler(ending)?;
    command.arg(unit).arg("-o").arg(&program).arg("-L").arg(libraries()).arg("-lpaceline");
    // Before the path that cargo sets, where an older build may lie.
    command.arg(format!("-Wl,--disable-new-dtags,-rpath,{}", libraries().display()));
    let output = command.output().expect("the compiler starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{command:?}\n{errors}");
    Some(program)
}

/// What a program prints that ends well and says nothing on its standard error stream.
pub fn printed(program: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("timeout");
    command.arg(PATIENCE).arg(program).args(arguments);
    command.env("PACELINE_LIBRARY", libraries().join("libpaceline.so"));
    command.env("PYTHONPATH", source("bindings/python/src")).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && errors.is_empty(),
        "{command:?}: {}\n{errors}",
        output.status
    );
    String::from_utf8(output.stdout).expect("it prints UTF-8")
}

/// As `printed`, of a file in Python. None: there is no Python.
pub fn printed_by_python(file: &Path) -> Option<String> {
    let file = file.to_str().expect("it is in UTF-8");
    (!is_missing("python3")).then(|| printed(Path::new("python3"), &["-W", "error", file]))
}
