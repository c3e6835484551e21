//! A server under test: a child process, so that its CPU time, context switches and memory are its
//! own, read from outside.

use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::options::Plan;
use crate::serve::Slow;
use crate::sys::{self, Epoll};

const START_LIMIT: Duration = Duration::from_secs(10);
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// How a peer's server is started.
#[derive(Clone)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<String>,
}

/// The C++ servers that the build found the packages for.
const PROGRAMS: [(&str, Option<&str>); 3] = [
    ("asio", option_env!("ECHO_asio")),
    ("libuv", option_env!("ECHO_libuv")),
    ("ace", option_env!("ECHO_ace")),
];

/// How to start `peer`; `None` for a C++ one that was not built.
pub fn launch(peer: &str, plan: &Plan) -> io::Result<Option<Launch>> {
    if let Some((_, program)) = PROGRAMS.iter().find(|(name, _)| *name == peer) {
        return Ok(program.map(|path| Launch { program: path.into(), arguments: Vec::new() }));
    }
    let launch = match peer {
        "paceline" | "paceline-eager" => {
            let mut arguments = plan.echo_args.clone();
            if peer == "paceline-eager" {
                arguments.extend(["--promotion".into(), "eager".into()]);
            }
            Launch { program: paceline_echo(plan)?, arguments }
        }
        rival => {
            Launch { program: env::current_exe()?, arguments: vec!["serve".into(), rival.into()] }
        }
    };
    Ok(Some(launch))
}

/// The example `echo`, given or built beside this program, with cargo's own idea of what is fresh.
fn paceline_echo(plan: &Plan) -> io::Result<PathBuf> {
    if let Some(program) = &plan.echo_program {
        return Ok(program.into());
    }
    let here = env::current_exe()?;
    let profile = here.parent().ok_or_else(|| io::Error::other("no target directory"))?;
    let target = profile.parent().ok_or_else(|| io::Error::other("no target directory"))?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--example", "echo", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .status()?;
    if !status.success() {
        return Err(io::Error::other("the example echo does not build"));
    }
    Ok(target.join("release/examples/echo"))
}

pub struct Server {
    child: Child,
    /// Held until the server has exited: it may print when it ends.
    stdout: BufReader<ChildStdout>,
    pub address: SocketAddr,
}

impl Server {
    pub fn start(launch: &Launch, threads: usize, slow: Slow) -> io::Result<Self> {
        let slow = if slow == Slow::Burn { "burn" } else { "sleep" };
        let mut command = Command::new(&launch.program);
        command.args(&launch.arguments).args(["--listen", "127.0.0.1:0", "--slow", slow]);
        command.args(["--threads", &threads.to_string()]).stdout(Stdio::piped());
        // SAFETY: the hook makes one async-signal-safe system call.
        unsafe { command.pre_exec(sys::die_with_parent) };
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().expect("stdout is piped");
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { child, stdout: BufReader::new(stdout), address };
        server.address = server.await_address()?;
        Ok(server)
    }

    fn await_address(&mut self) -> io::Result<SocketAddr> {
        let ready = Epoll::new()?;
        ready.add(self.stdout.get_ref().as_raw_fd(), libc::EPOLLIN as u32, 0)?;
        if ready.wait_for(&mut sys::events(1), START_LIMIT)? == 0 {
            return Err(io::Error::other("the server does not start"));
        }
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on ").and_then(|a| a.parse().ok());
        address.ok_or_else(|| io::Error::other(format!("the server said {:?}", line.trim())))
    }

    /// CPU time and context switches of all its threads so far.
    pub fn usage(&self) -> io::Result<Usage> {
        let cpu = sys::process_cpu(self.child.id())?;
        Ok(Usage { cpu, switches: context_switches(self.child.id())? })
    }

    /// Resident memory in bytes, by page tables (the faster counters lag behind).
    pub fn resident(&self) -> io::Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        field(&text, "Rss:").map(|kib| kib * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        sys::terminate(self.child.id());
        let end = Instant::now() + STOP_LIMIT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Both fail only if the child is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.stdout.read_to_end(&mut Vec::new());
    }
}

#[derive(Clone, Copy)]
pub struct Usage {
    pub cpu: Duration,
    pub switches: u64,
}

fn context_switches(pid: u32) -> io::Result<u64> {
    let mut switches = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("status"))?;
        switches += field(&text, "voluntary_ctxt_switches:")?;
        switches += field(&text, "nonvoluntary_ctxt_switches:")?;
    }
    Ok(switches)
}

/// The number after `name` at the beginning of a line.
fn field(text: &str, name: &str) -> io::Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|rest| rest.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).ok_or_else(|| io::Error::other(format!("no {name}")))
}
