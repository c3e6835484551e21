//! What `bindings/cpp/CMakeLists.txt` installs, by those who use it: C and C++ programs that find
//! the library through pkg-config and CMake, shared and static, and a project that brings paceline
//! along.
#![cfg(all(not(loom), feature = "capi"))]

#[path = "common/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SONAME: &str = concat!(
    "libpaceline.so.",
    env!("CARGO_PKG_VERSION_MAJOR"),
    ".",
    env!("CARGO_PKG_VERSION_MINOR")
);

#[test]
fn what_is_installed_is_complete() {
    let Some(prefix) = installed() else { return };
    let library = prefix.join("lib/libpaceline.so");
    let version = concat!("libpaceline.so.", env!("CARGO_PKG_VERSION"));
    assert_eq!(fs::read_link(&library).expect("a link"), Path::new(SONAME));
    assert_eq!(fs::read_link(prefix.join("lib").join(SONAME)).expect("a link"), Path::new(version));
    let dynamic = printed(Command::new("readelf").arg("-d").arg(&library));
    assert!(dynamic.contains(&format!("soname: [{SONAME}]")), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
    for file in ["include/paceline.h", "include/paceline.hpp", "lib/libpaceline.a"] {
        assert!(prefix.join(file).is_file(), "{file}");
    }
    for folder in ["include/paceline", "bindings/cpp/paceline"] {
        for header in fs::read_dir(source(folder)).expect("it can be listed") {
            let name = header.expect("it can be listed").file_name();
            assert!(prefix.join("include/paceline").join(&name).is_file(), "{name:?}");
        }
    }
    // docs/BENCHMARKS.md says what takes the room, and what was done about it.
    assert!(size_of(&library) < 4_150_000, "{} bytes", size_of(&library));
}

#[test]
fn through_pkg_config_shared() {
    let Some(prefix) = installed_and("pkg-config") else { return };
    for (compiler, file, says) in CONSUMERS {
        let flags = pkg_config(prefix, &["--cflags", "--libs", "paceline"]);
        let program = compile(compiler, file, &flags, "shared");
        assert!(needs_library(&program));
        let mut run = Command::new(program);
        assert_eq!(printed(run.env("LD_LIBRARY_PATH", prefix.join("lib"))), says);
    }
}

#[test]
fn through_pkg_config_static() {
    let Some(prefix) = installed_and("pkg-config") else { return };
    for (compiler, file, says) in CONSUMERS {
        let flags = pkg_config(prefix, &["--cflags", "--libs", "paceline-static"]);
        let program = compile(compiler, file, &flags, "static");
        assert!(!needs_library(&program));
        assert_eq!(printed(&mut Command::new(program)), says);
    }
}

#[test]
fn through_pkg_config_wholly_static() {
    let Some(prefix) = installed_and("pkg-config") else { return };
    for (compiler, file, says) in CONSUMERS {
        let flags = pkg_config(prefix, &["--static", "--cflags", "--libs", "paceline"]);
        let program = compile(compiler, file, &format!("{flags} -static"), "wholly-static");
        assert!(!needs_library(&program));
        assert_eq!(printed(&mut Command::new(program)), says);
    }
}

#[test]
fn through_find_package() {
    let Some(prefix) = installed() else { return };
    // Moved away: nothing in it may know where it was built for.
    let moved = fresh("moved");
    printed(Command::new("cp").arg("-a").arg(prefix.join(".")).arg(&moved));
    let build = fresh("find_package");
    configure(&source("bindings/cpp/tests/consumer"), &build, &[("CMAKE_PREFIX_PATH", &moved)]);
    check_consumers(&build);
}

#[test]
fn as_a_part_of_another_project() {
    // After the others have built, with whom it shares cargo's directory.
    if installed().is_none() {
        return;
    }
    let build = fresh("fetched");
    let settings =
        [("PACELINE_SOURCE", Path::new(ROOT)), ("PACELINE_TARGET_DIR", &cargo_directory())];
    configure(&source("bindings/cpp/tests/consumer"), &build, &settings);
    check_consumers(&build);
}

/// Compiler, source, and what the program says.
const CONSUMERS: [(&str, &str, &str); 2] =
    [("cc", "consumer.c", "C 42\n"), ("c++", "consumer.cpp", "C++ 42\n")];

/// The prefix that everything has been installed to, once for all tests.
fn installed() -> Option<&'static Path> {
    static PREFIX: OnceLock<Option<PathBuf>> = OnceLock::new();
    PREFIX
        .get_or_init(|| {
            let is_complete = !["cmake", "cc", "c++"].iter().any(|tool| is_missing(tool));
            is_complete.then(install)
        })
        .as_deref()
}

fn installed_and(tool: &str) -> Option<&'static Path> {
    if is_missing(tool) { None } else { installed() }
}

/// Builds and installs; says where to.
fn install() -> PathBuf {
    let (build, prefix) = (fresh("build"), fresh("prefix"));
    let cargo_directory = cargo_directory();
    let settings = [
        ("CMAKE_INSTALL_PREFIX", prefix.as_path()),
        ("CMAKE_INSTALL_LIBDIR", Path::new("lib")),
        ("PACELINE_TARGET_DIR", &cargo_directory),
    ];
    configure(&source("bindings/cpp"), &build, &settings);
    build_all(&build);
    printed(Command::new("cmake").arg("--install").arg(&build));
    prefix
}

fn size_of(library: &Path) -> u64 {
    fs::metadata(library).expect("it is there").len()
}

fn configure(source: &Path, build: &Path, settings: &[(&str, &Path)]) {
    let mut command = Command::new("cmake");
    command.arg("-S").arg(source).arg("-B").arg(build).arg("-DCMAKE_BUILD_TYPE=Release");
    for (name, value) in settings {
        command.arg(format!("-D{name}={}", value.display()));
    }
    printed(&mut command);
}

/// Flags for this test's own build, such as a sanitizer's, are not for what is installed.
fn build_all(build: &Path) {
    printed(Command::new("cmake").arg("--build").arg(build).env_remove("RUSTFLAGS"));
}

/// Builds and runs the consumer's four programs.
fn check_consumers(build: &Path) {
    build_all(build);
    for (program, says) in [("c", "C 42\n"), ("cpp", "C++ 42\n")] {
        for (kind, needs) in [("shared", true), ("static", false)] {
            let program = build.join(format!("{program}_{kind}"));
            assert_eq!(needs_library(&program), needs, "{program:?}");
            assert_eq!(printed(&mut Command::new(program)), says);
        }
    }
}

fn compile(compiler: &str, file: &str, flags: &str, kind: &str) -> PathBuf {
    let program = scratch().join(format!("{file}-{kind}"));
    let file = source("bindings/cpp/tests/consumer").join(file);
    let mut command = Command::new(compiler);
    command.arg("-o").arg(&program).arg(file).args(flags.split_whitespace()).arg("-pthread");
    printed(&mut command);
    program
}

fn pkg_config(prefix: &Path, arguments: &[&str]) -> String {
    let path = prefix.join("lib/pkgconfig");
    printed(Command::new("pkg-config").args(arguments).env("PKG_CONFIG_PATH", path))
}

fn needs_library(program: &Path) -> bool {
    printed(Command::new("readelf").arg("-d").arg(program)).contains(&format!("[{SONAME}]"))
}

/// What a run that went well has printed.
fn printed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{out}{err}");
    out.into_owned()
}

/// Whether a program that is needed is not here; says so.
fn is_missing(tool: &str) -> bool {
    let is_missing = Command::new(tool).arg("--version").output().is_err();
    if is_missing {
        skipped(format_args!("there is no {tool}"));
    }
    is_missing
}

fn source(path: &str) -> PathBuf {
    Path::new(ROOT).join(path)
}

/// Cargo's own inside cmake's: it stays, so that only the first run builds everything.
fn cargo_directory() -> PathBuf {
    scratch().join("cargo")
}

/// An empty directory.
fn fresh(name: &str) -> PathBuf {
    let directory = scratch().join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("cargo's scratch directory can be written to");
    directory
}

fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("install")
}
