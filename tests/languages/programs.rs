//! Small programs in C, C++ and Python: how they are built and run.

use super::{skipped, source};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

/// After so many seconds a program is ended, and its test fails. No healthy run comes near.
const PATIENCE: &str = "300";

/// Where cargo has put the shared library: beside this test.
pub fn libraries() -> PathBuf {
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

/// A NATS server for the programs that look for one, until it is dropped.
pub struct Broker {
    process: Child,
    url: String,
    folder: PathBuf,
}

impl Broker {
    /// On a free port. None: there is none; says so.
    pub fn start() -> Option<Self> {
        if is_missing("nats-server") {
            return None;
        }
        // The kernel's choice, which another process could take in between.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = port.expect("there is a free port").port();
        let folder = env::temp_dir().join(format!("paceline-nats-{port}"));
        let mut command = Command::new("nats-server");
        command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]).arg(&folder);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.expect("it starts");
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            thread::sleep(Duration::from_millis(5));
        }
        Some(Self { process, url: format!("nats://127.0.0.1:{port}"), folder })
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
        let _left = fs::remove_dir_all(&self.folder);
    }
}

/// What a program prints that ends well and says nothing on its standard error stream.
pub fn printed(program: &Path, arguments: &[&str]) -> String {
    printed_beside(None, program, arguments)
}

/// The same, of a program that finds the broker.
pub fn printed_beside(broker: Option<&Broker>, program: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("timeout");
    command.arg(PATIENCE).arg(program).args(arguments).env_remove("NATS_URL");
    command.envs(broker.map(|broker| ("NATS_URL", &broker.url)));
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
    printed_by_python_beside(None, file)
}

/// The same, of a program that finds the broker.
pub fn printed_by_python_beside(broker: Option<&Broker>, file: &Path) -> Option<String> {
    let file = file.to_str().expect("it is in UTF-8");
    let arguments = ["-W", "error", file];
    (!is_missing("python3")).then(|| printed_beside(broker, Path::new("python3"), &arguments))
}
