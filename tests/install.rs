//! What `bindings/cpp/CMakeLists.txt` installs, by those who use it: C and C++ programs that find
//! the library through pkg-config and CMake, shared and static, and a project that brings paceline
//! along. And the wheel of Python, by pip.
#![cfg(all(not(loom), feature = "capi"))]

#[path = "common/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SONAME: &str = concat!(
    "libpaceline.so.",
    env!("CARGO_PKG_VERSION_MAJOR"),
    ".",
    env!("CARGO_PKG_VERSION_MINOR")
);

#[test]
#[ignore = "it takes long: cargo xtask test all"]
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
    // A program that is linked with the static library may have a SQLite of its own.
    let symbols =
        printed(Command::new("nm").arg("--extern-only").arg(prefix.join("lib/libpaceline.a")));
    let of_sqlite = |line: &&str| line.split(' ').any(|word| word.starts_with("sqlite3"));
    assert_eq!(symbols.lines().find(of_sqlite), None);
    assert!(symbols.contains(" paceline_sqlite3_open_v2"));
    for folder in ["include/paceline", "bindings/cpp/paceline"] {
        for header in fs::read_dir(source(folder)).expect("it can be listed") {
            let name = header.expect("it can be listed").file_name();
            assert!(prefix.join("include/paceline").join(&name).is_file(), "{name:?}");
        }
    }
    // docs/BENCHMARKS.md says what takes the room, and what was done about it. The client of NATS, and what is built on it,
    // takes 3.0 MB, which libraries built as `core` do without. It was 10.75 MB; compilers and processors differ.
    assert!(size_of(&library) < 16_000_000, "{} bytes", size_of(&library));
}

/// What `complete.c` and `complete.py` print where all is there, and where archives, bridges, webhooks and systemd were
/// left out.
const FULL: &str = "archive: 1 message, on disk\nwebhook: POST\nsystemd: READY=1\n\
                    metrics: Prometheus\nconfig: 3 threads\n";
const CORE: &str = "archive: PACE_EUNSUPPORTED\nwebhook: PACE_EUNSUPPORTED\nsystemd: PACE_EUNSUPPORTED\n\
                    metrics: Prometheus\nconfig: 3 threads\nbridge: PACE_EUNSUPPORTED\n";

#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn nothing_that_is_installed_is_unsupported() {
    let Some(prefix) = installed_and("pkg-config") else { return };
    assert_eq!(said_by_complete(prefix, "full"), format!("{FULL}bridge: waits for a broker\n"));
}

#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn what_is_large_can_be_left_out() {
    if installed_and("pkg-config").is_none() {
        return;
    }
    let (build, prefix) = (fresh("build-core"), fresh("prefix-core"));
    // What it does is looked at, and not its speed.
    let environment =
        [("LTO", "off"), ("OPT_LEVEL", "0"), ("CODEGEN_UNITS", "16"), ("STRIP", "none")];
    // In a directory of its own: where builds with other features take turns, each links anew, which takes a minute here.
    let directory = cargo_directory().with_extension("core");
    let settings =
        [("PACELINE_FEATURES", Path::new("core")), ("PACELINE_TARGET_DIR", directory.as_path())];
    install(&build, &prefix, &settings, &environment);
    assert_eq!(said_by_complete(&prefix, "core"), CORE);
}

#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn other_features_are_refused() {
    if is_missing("cmake") {
        return;
    }
    let mut command = Command::new("cmake");
    command.arg("-DPACELINE_FEATURES=small").arg("-S").arg(source("bindings/cpp"));
    let output = command.arg("-B").arg(fresh("build-small")).output().expect("cmake starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{told}");
    assert!(told.contains("PACELINE_FEATURES is small: it must be full or core"), "{told}");
}

/// Builds `complete.c` with an installed library, and runs it.
fn said_by_complete(prefix: &Path, kind: &str) -> String {
    let flags = pkg_config(prefix, &["--cflags", "--libs", "paceline"]);
    let mut run = Command::new(compile("cc", "complete.c", &flags, kind));
    printed(run.arg(fresh("complete")).env("LD_LIBRARY_PATH", prefix.join("lib")))
}

/// Goal: pip installs all that the README promises, in a wheel that says truly where it runs. Method: an environment of its
/// own; `auditwheel` looks at what the library needs of the system, as package indexes do.
#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn the_wheel_is_complete_small_and_tagged_by_what_it_needs() {
    // The library is almost the same as that of the others, with whom it shares cargo's directory.
    if installed_and("python3").is_none() {
        return;
    }
    let Some(tools) = environment_with(&["hatchling", "auditwheel"]) else { return };
    let wheels = fresh("wheels");
    let mut build = Command::new(tools.join("pip"));
    build.args(["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]);
    build.arg(&wheels).arg(source("bindings/python"));
    build.env("CARGO_TARGET_DIR", cargo_directory()).env_remove("RUSTFLAGS");
    let refused = build.env("PACELINE_FEATURES", "small").output().expect("pip starts");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("PACELINE_FEATURES is 'small': it must be full or core"), "{told}");
    build.env_remove("PACELINE_FEATURES");
    let alone = one_at_a_time();
    printed(&mut build);
    drop(alone);
    let wheel = fs::read_dir(&wheels).expect("it can be listed").next().expect("a wheel");
    let wheel = wheel.expect("it can be listed").path();
    assert!(size_of(&wheel) <= 9_000_000, "{} bytes", size_of(&wheel));

    let name = wheel.file_name().and_then(|name| name.to_str()).expect("names are UTF-8");
    let tag = name.trim_end_matches(".whl").rsplit('-').next().expect("it ends with a platform");
    let (machine, version) = (std::env::consts::ARCH, tag.strip_prefix("manylinux_2_"));
    let version = version.and_then(|rest| rest.strip_suffix(&format!("_{machine}")));
    let version: u32 = version.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| {
        panic!("{tag} is no manylinux_2_*_{machine}");
    });
    // What auditwheel knows below 2.34; above, it knows each version.
    let known = [5, 12, 17, 24, 26, 27, 28, 31, 34].into_iter().find(|&known| known >= version);
    let audited = printed(Command::new(tools.join("auditwheel")).arg("show").arg(&wheel));
    let audited = audited.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = format!("\"manylinux_2_{}_{machine}\"", known.unwrap_or(version));
    assert!(audited.contains(&format!("platform tag: {expected}")), "{tag}, but {audited}");

    let listed =
        printed(Command::new(tools.join("python")).args(["-m", "zipfile", "-l"]).arg(&wheel));
    for licence in ["LICENSE-MIT", "LICENSE-APACHE", "CRATES.txt"] {
        assert!(listed.contains(&format!("dist-info/licenses/{licence}")), "{licence} of {listed}");
    }

    printed(Command::new(tools.join("pip")).args(["install", "--quiet", "--no-deps"]).arg(&wheel));
    let mut run = Command::new(tools.join("python"));
    run.arg(source("bindings/python/tests/complete.py")).arg(fresh("complete-python"));
    run.env_remove("PACELINE_LIBRARY").env_remove("PYTHONPATH").env_remove("LD_LIBRARY_PATH");
    assert_eq!(printed(&mut run), FULL);
}

/// The programs of a virtual environment of Python with some packages, if they can be had.
fn environment_with(packages: &[&str]) -> Option<PathBuf> {
    let place = fresh("venv");
    printed(Command::new("python3").args(["-m", "venv"]).arg(&place));
    let mut command = Command::new(place.join("bin/pip"));
    let told = command.args(["install", "--quiet"]).args(packages).output().expect("pip starts");
    if !told.status.success() {
        skipped(format_args!("{packages:?} cannot be installed from a package index"));
        return None;
    }
    Some(place.join("bin"))
}

#[test]
#[ignore = "it takes long: cargo xtask test all"]
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
#[ignore = "it takes long: cargo xtask test all"]
fn through_pkg_config_static() {
    let Some(prefix) = installed_and("pkg-config") else { return };
    for (compiler, file, says) in CONSUMERS {
        let flags = pkg_config(prefix, &["--cflags", "--libs", "paceline-static"]);
        let program = compile(compiler, file, &flags, "static");
        assert!(!needs_library(&program));
        // The linker leaves out what the program does not use.
        assert!(size_of(&program) < 8_000_000, "{} bytes", size_of(&program));
        assert_eq!(printed(&mut Command::new(program)), says);
    }
}

#[test]
#[ignore = "it takes long: cargo xtask test all"]
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
#[ignore = "it takes long: cargo xtask test all"]
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
#[ignore = "it takes long: cargo xtask test all"]
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
    // What the project installs starts, without the directory that it was built in.
    let prefix = fresh("fetched-prefix");
    let mut install = Command::new("cmake");
    printed(install.arg("--install").arg(&build).arg("--prefix").arg(&prefix));
    fs::remove_dir_all(&build).expect("it is there");
    for (program, says) in [("c_shared", "C 42\n"), ("cpp_shared", "C++ 42\n")] {
        assert_eq!(printed(&mut Command::new(prefix.join("bin").join(program))), says);
    }
    assert!(!prefix.join("include").exists(), "headers are for those who ask for them");
}

#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn components_are_found_or_named() {
    let Some(prefix) = installed() else { return };
    let find = |components: &str| {
        let (project, build) = (fresh("components"), fresh("components-build"));
        let text = format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(p LANGUAGES C)\n\
             find_package(paceline 0.1 REQUIRED COMPONENTS {components})\n"
        );
        fs::write(project.join("CMakeLists.txt"), text).expect("it can be written to");
        let mut command = Command::new("cmake");
        command.arg("-S").arg(project).arg("-B").arg(build);
        command
            .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()))
            .output()
            .expect("it starts")
    };
    assert!(find("shared static").status.success());
    let refused = find("static gui");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success(), "{told}");
    assert!(told.contains("there is no component \"gui\""), "{told}");
}

#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn what_was_installed_can_be_removed() {
    if installed().is_none() {
        return;
    }
    // Cargo has built it, so that this only copies.
    let (build, prefix) = (fresh("build-removed"), fresh("prefix-removed"));
    install(&build, &prefix, &[], &[]);
    assert!(prefix.join("lib/libpaceline.a").exists());
    printed(Command::new("cmake").arg("--build").arg(&build).args(["--target", "uninstall"]));
    let files = printed(Command::new("find").arg(&prefix).args(["-not", "-type", "d"]));
    assert_eq!(files, "");
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
            is_complete.then(|| {
                let (build, prefix) = (fresh("build"), fresh("prefix"));
                install(&build, &prefix, &[], &[]);
                prefix
            })
        })
        .as_deref()
}

fn installed_and(tool: &str) -> Option<&'static Path> {
    if is_missing(tool) { None } else { installed() }
}

/// Builds with these settings of CMake, and of cargo's profile, and installs.
fn install(build: &Path, prefix: &Path, more: &[(&str, &Path)], profile: &[(&str, &str)]) {
    let cargo_directory = cargo_directory();
    let settings = [
        ("CMAKE_INSTALL_PREFIX", prefix),
        ("CMAKE_INSTALL_LIBDIR", Path::new("lib")),
        ("PACELINE_TARGET_DIR", &cargo_directory),
    ];
    configure(&source("bindings/cpp"), build, &[&settings, more].concat());
    let names =
        profile.iter().map(|(name, value)| (format!("CARGO_PROFILE_SHIPPED_{name}"), value));
    let _alone = one_at_a_time();
    printed(build_command(build).envs(names));
    printed(Command::new("cmake").arg("--install").arg(build));
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
fn build_command(build: &Path) -> Command {
    let mut command = Command::new("cmake");
    command.arg("--build").arg(build).env_remove("RUSTFLAGS");
    command
}

/// To be held by who builds in cargo's directory, and takes the library from there.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static BUILDS: Mutex<()> = Mutex::new(());
    BUILDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Builds and runs the consumer's four programs.
fn check_consumers(build: &Path) {
    let alone = one_at_a_time();
    printed(&mut build_command(build));
    drop(alone);
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
