//! Compiles the C++ rivals whose development packages are installed, and records the versions of
//! everything that takes part. A rival that is not installed is left out; nothing fails.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A C++ library: its name here, its header, its Debian package and what to link.
struct Library {
    name: &'static str,
    header: &'static str,
    package: &'static str,
    link: &'static [&'static str],
}

const LIBRARIES: [Library; 8] = [
    // Ours, through its C interface: the functions are in the crate that is linked anyway.
    Library { name: "paceline", header: "paceline.h", package: "", link: &[] },
    Library { name: "asio", header: "asio.hpp", package: "libasio-dev", link: &[] },
    Library { name: "libuv", header: "uv.h", package: "libuv1-dev", link: &["uv"] },
    Library { name: "ace", header: "ace/TP_Reactor.h", package: "libace-dev", link: &["ACE"] },
    Library { name: "onetbb", header: "tbb/task_arena.h", package: "libtbb-dev", link: &["tbb"] },
    Library {
        name: "moodycamel",
        header: "concurrentqueue/concurrentqueue.h",
        package: "libconcurrentqueue-dev",
        link: &[],
    },
    // Called from Rust: its interface is C.
    Library { name: "zmq", header: "zmq.h", package: "libzmq3-dev", link: &["zmq"] },
    Library {
        name: "libevent",
        header: "event2/http.h",
        package: "libevent-dev",
        link: &["event"],
    },
];

/// Servers, each a program of its own: the comparison that it takes part in and its library.
const PROGRAMS: [(&str, &str); 4] =
    [("echo", "asio"), ("echo", "libuv"), ("echo", "ace"), ("http", "libevent")];
/// Task pools and queues, linked in behind a small C interface.
const SHIMS: [&str; 4] = ["paceline", "asio", "onetbb", "moodycamel"];

const CXXFLAGS: [&str; 7] =
    ["-std=c++17", "-O3", "-DNDEBUG", "-DASIO_STANDALONE", "-I../../include", "-pthread", "-w"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=cpp");
    println!("cargo::rerun-if-changed=../../include");
    println!("cargo::rerun-if-env-changed=CXX");

    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut versions = vec![("rustc".to_owned(), rustc_version())];
    versions.extend(crate_versions());

    for library in &LIBRARIES {
        println!("cargo::rustc-check-cfg=cfg(has_{})", library.name);
        let Some(version) = installed(library, &out) else { continue };
        if let Some((part, _)) = PROGRAMS.iter().find(|(_, name)| *name == library.name) {
            let name = format!("{part}_{}", library.name);
            let Some(program) = build_program(&name, library, &out) else { continue };
            println!("cargo::rustc-env=PROGRAM_{name}={}", program.display());
        }
        if SHIMS.contains(&library.name) && !build_shim(library, &out) {
            continue;
        }
        println!("cargo::rustc-cfg=has_{}", library.name);
        if !library.package.is_empty() {
            versions.push((library.name.to_owned(), version));
        }
    }
    let list: Vec<String> = versions.iter().map(|(n, v)| format!("{n} {v}")).collect();
    println!("cargo::rustc-env=VERSIONS={}", list.join(", "));
}

fn cxx() -> String {
    env::var("CXX").unwrap_or_else(|_| "g++".into())
}

/// The version of `library` if its header can be included.
fn installed(library: &Library, out: &Path) -> Option<String> {
    let probe = out.join("probe.cpp");
    fs::write(&probe, format!("#include <{}>\n", library.header)).ok()?;
    let found = Command::new(cxx()).args(CXXFLAGS).arg("-E").arg(&probe).output().ok()?;
    found.status.success().then(|| package_version(library.package))
}

fn package_version(package: &str) -> String {
    Command::new("dpkg-query")
        .args(["-W", "-f", "${Version}", package])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .filter(|version| !version.is_empty())
        .unwrap_or_else(|| "(version unknown)".into())
}

fn build_program(name: &str, library: &Library, out: &Path) -> Option<PathBuf> {
    let program = out.join(name);
    let mut command = Command::new(cxx());
    command.args(CXXFLAGS).arg(format!("cpp/{name}.cpp")).arg("-o").arg(&program);
    command.args(library.link.iter().map(|l| format!("-l{l}")));
    run(&mut command, library).then_some(program)
}

fn build_shim(library: &Library, out: &Path) -> bool {
    let object = out.join(format!("shim_{}.o", library.name));
    let archive = out.join(format!("libshim_{}.a", library.name));
    let _ = fs::remove_file(&archive);
    let mut compile = Command::new(cxx());
    compile.args(CXXFLAGS).arg("-c").arg(format!("cpp/shim_{}.cpp", library.name));
    compile.arg("-o").arg(&object);
    let mut pack = Command::new("ar");
    pack.arg("crs").arg(&archive).arg(&object);
    if !run(&mut compile, library) || !run(&mut pack, library) {
        return false;
    }
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=shim_{}", library.name);
    for dependency in library.link {
        println!("cargo::rustc-link-lib={dependency}");
    }
    println!("cargo::rustc-link-lib=stdc++");
    true
}

/// Runs one compiler command; a failure costs the rival its row and is said in the build's output.
fn run(command: &mut Command, library: &Library) -> bool {
    match command.output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr);
            let first = reason.lines().find(|l| l.contains("error")).unwrap_or("no reason given");
            println!("cargo::warning={} is left out: {first}", library.name);
            false
        }
        Err(error) => {
            println!("cargo::warning={} is left out: {error}", library.name);
            false
        }
    }
}

fn rustc_version() -> String {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    text.split_whitespace().nth(1).unwrap_or("(version unknown)").to_owned()
}

/// The locked versions of the rivals that are crates.
fn crate_versions() -> Vec<(String, String)> {
    const RIVALS: [&str; 11] = [
        "actix-web",
        "hyper",
        "tokio",
        "rayon",
        "io-uring",
        "crossbeam-channel",
        "crossbeam-queue",
        "flume",
        "kanal",
        "disruptor",
        "paceline",
    ];
    let lock = Path::new("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(lock).unwrap_or_default();
    let field = |block: &str, name: &str| {
        let line = block.lines().find(|l| l.starts_with(&format!("{name} = ")))?;
        line.split('"').nth(1).map(str::to_owned)
    };
    text.split("[[package]]")
        .filter_map(|block| Some((field(block, "name")?, field(block, "version")?)))
        .filter(|(name, _)| RIVALS.contains(&name.as_str()))
        .collect()
}
