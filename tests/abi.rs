//! Programs that were linked against an older library of the same minor version still fit.
//!
//! Goal: functions keep their signatures and structs their layout; what comes is added. Method: the
//! headers as a compiler sees them, with a body for each function, beside the same of the baseline in
//! `bindings/cpp/abi`, by libabigail. Functions may be added; anything else that changes fails.
//! `PACELINE_BLESS=1 cargo test --test abi` makes today's headers the baseline, for a new minor
//! version or after a struct has grown at its end.
#![cfg(all(not(loom), feature = "capi"))]

#[path = "common/header.rs"]
mod header;
#[path = "common/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// Each must be noticed: what it is, what is replaced, and by what.
const BREAKS: [(&str, &str, &str); 5] = [
    ("a field that is wider", "uint32_t max_joined;", "uint64_t max_joined;"),
    ("a field that is gone", "    uint64_t spin_ns;\n", ""),
    ("fields that have changed places", "uint32_t sets;", "uint64_t sets;"),
    ("a parameter that is narrower", "uint64_t drain_ns,", "uint32_t drain_ns,"),
    ("a function that is gone", "pace_status_t pace_promote_new_leader(void);", ""),
];

#[test]
fn nothing_changes_that_programs_rely_on() {
    if is_missing() {
        return;
    }
    let library = stub("today", &header::C.whole());
    if env::var_os("PACELINE_BLESS").is_some() {
        write_baseline(&library);
    }
    if let Some(how) = differs(&library) {
        panic!("{how}");
    }
}

#[test]
fn every_break_is_noticed() {
    if is_missing() {
        return;
    }
    let header = header::C.whole();
    for (number, (what, from, to)) in BREAKS.into_iter().enumerate() {
        assert_eq!(header.matches(from).count(), 1, "{from}");
        let library = stub(&format!("break-{number}"), &header.replace(from, to));
        assert!(differs(&library).is_some(), "{what} was not noticed");
    }
}

#[test]
fn a_function_may_be_added() {
    if is_missing() {
        return;
    }
    let one = "pace_status_t pace_promote_new_leader(void);";
    let more = format!("{one}\n\npace_status_t pace_pool_paint(pace_pool_t *pool);");
    let library = stub("addition", &header::C.whole().replace(one, &more));
    assert_eq!(differs(&library), None);
}

fn baseline() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bindings/cpp/abi/paceline.abi")
}

/// Whether a library differs from the baseline, and how.
fn differs(library: &Path) -> Option<String> {
    let mut command = Command::new("abidiff");
    command.arg("--no-added-syms").arg(baseline()).arg(library);
    let Output { status, stdout, stderr } = command.output().expect("abidiff starts");
    let text = String::from_utf8_lossy(&stdout).into_owned();
    match status.code() {
        Some(0) => None,
        // The two lowest bits say that it has not compared at all.
        Some(code) if code & 3 == 0 => Some(text),
        _ => panic!("{command:?}: {status}\n{text}{}", String::from_utf8_lossy(&stderr)),
    }
}

fn write_baseline(library: &Path) {
    let mut command = Command::new("abidw");
    command.args(["--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--out-file"]);
    succeed(command.arg(baseline()).arg(library));
}

/// A library that has the headers' functions and types, and does nothing.
fn stub(name: &str, header: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("abi").join(name);
    fs::create_dir_all(&directory).expect("cargo's scratch directory can be written to");
    fs::write(directory.join("paceline.h"), header).expect("it can be written to");
    let bodies: String =
        functions(header).map(|function| format!("{function} {{ abort(); }}\n")).collect();
    let source = format!("#include \"paceline.h\"\n#include <stdlib.h>\n{bodies}");
    fs::write(directory.join("stub.c"), source).expect("it can be written to");

    let library = directory.join("libpaceline.so");
    let mut command = Command::new("cc");
    command.current_dir(&directory).args(["-std=c11", "-g", "-O0", "-fPIC", "-shared"]);
    succeed(command.args(["-Wl,-soname,libpaceline.so", "stub.c", "-o"]).arg(&library));
    library
}

/// The prototypes, without their semicolons: they begin their lines, as nothing else with a name of
/// ours in front of a parenthesis does.
fn functions(header: &str) -> impl Iterator<Item = &str> {
    let begins = |text: &str| {
        let line = text.lines().next().unwrap_or_default();
        let named = line.split_once('(').is_some_and(|(before, _)| before.contains("pace_"));
        named && line.starts_with(|c: char| c.is_ascii_lowercase()) && !line.starts_with("typedef")
    };
    let starts = header.match_indices('\n').map(|(newline, _)| newline + 1);
    starts
        .map(|start| &header[start..])
        .filter(move |text| begins(text))
        .map(|text| text.split_once(';').expect("a prototype ends").0)
}

fn succeed(command: &mut Command) {
    let Output { status, stderr, .. } = command.output().expect("the program starts");
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
}

/// Whether a program that is needed is not here; says so.
fn is_missing() -> bool {
    let missing = |tool: &&str| Command::new(tool).arg("--version").output().is_err();
    let tool = ["cc", "abidw", "abidiff"].into_iter().find(missing);
    if let Some(tool) = tool {
        skipped(format_args!("there is no {tool}"));
    }
    tool.is_some()
}
