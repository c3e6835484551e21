//! A server under test: a child process, so that its CPU time, context switches and memory are its
//! own, read from outside.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::sys::{self, Epoll};

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(5);

pub struct Process {
    child: Child,
    /// Held until the server has exited: it may print when it ends.
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts `command`; it ends with this process at the latest.
    pub fn start(mut command: Command) -> io::Result<Self> {
        command.stdout(Stdio::piped());
        // SAFETY: the hook makes one async-signal-safe system call.
        unsafe { command.pre_exec(sys::end_with_parent) };
        let mut child = command.spawn()?;
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Ok(Self { child, stdout })
    }

    /// The address that the server says it listens on.
    pub fn announced(&mut self) -> io::Result<SocketAddr> {
        let line = self.line()?;
        let address = line.strip_prefix("listening on ").and_then(|a| a.parse().ok());
        address.ok_or_else(|| io::Error::other(format!("the server said {line:?}")))
    }

    /// Sends the server a line, if its standard input is a pipe.
    pub fn say(&mut self, line: &str) -> io::Result<()> {
        let stdin = self.child.stdin.as_mut().ok_or_else(|| io::Error::other("no pipe"))?;
        writeln!(stdin, "{line}")
    }

    /// The next line that the server prints.
    pub fn line(&mut self) -> io::Result<String> {
        let ready = Epoll::new()?;
        ready.add(self.stdout.get_ref().as_raw_fd(), libc::EPOLLIN as u32, 0)?;
        let began = Instant::now();
        // A wait that is interrupted brings nothing either.
        while ready.wait_for(&mut sys::events(1), START_LIMIT)? == 0 {
            if began.elapsed() >= START_LIMIT {
                return Err(io::Error::other(format!(
                    "the server has said nothing for {START_LIMIT:?}; its threads: {}",
                    self.threads(),
                )));
            }
        }
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// What each of its threads is and does.
    fn threads(&self) -> String {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let threads = threads.into_iter().flatten().flatten().map(|thread| {
            let read = |file| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            let state = read("stat").split(' ').nth(2).unwrap_or_default().to_owned();
            format!("{} {state} in {}", read("comm").trim(), read("wchan"))
        });
        threads.collect::<Vec<_>>().join(", ")
    }

    /// Waits until a server that announces nothing accepts connections on `address`.
    pub fn await_listener(&mut self, address: SocketAddr) -> io::Result<()> {
        let end = Instant::now() + START_LIMIT;
        while TcpStream::connect(address).is_err() {
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("the server ended: {status}")));
            }
            if Instant::now() > end {
                return Err(io::Error::other("the server does not start"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// CPU time and context switches so far, of all its threads and child processes.
    pub fn usage(&self) -> io::Result<Usage> {
        let mut usage = Usage::default();
        for pid in self.pids() {
            usage.cpu += sys::process_cpu(pid)?;
            usage.switches += context_switches(pid)?;
        }
        Ok(usage)
    }

    /// Resident memory in bytes, by page tables (the faster counters lag behind).
    pub fn resident(&self) -> io::Result<u64> {
        let mut kib = 0;
        for pid in self.pids() {
            kib += resident_kib(&pid.to_string())?;
        }
        Ok(kib * 1024)
    }

    /// The process and its direct children: nginx serves in the latter.
    fn pids(&self) -> Vec<u32> {
        let pid = self.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let words = children.split_whitespace().filter_map(|word| word.parse().ok());
        std::iter::once(pid).chain(words).collect()
    }
}

impl Drop for Process {
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

/// Resident memory of this process in bytes.
pub fn own_resident() -> io::Result<u64> {
    resident_kib("self").map(|kib| kib * 1024)
}

fn resident_kib(pid: &str) -> io::Result<u64> {
    field(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?, "Rss:")
}

/// An example of paceline, built beside this program and as this was, with cargo's own idea of what is fresh.
pub fn example(name: &str) -> io::Result<PathBuf> {
    let here = env::current_exe()?;
    let profile = here.parent().ok_or_else(|| io::Error::other("no target directory"))?;
    let target = profile.parent().ok_or_else(|| io::Error::other("no target directory"))?;
    let optimized = profile.ends_with("release");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--profile", if optimized { "release" } else { "dev" }])
        .args(["--example", name, "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .status()?;
    if !status.success() {
        return Err(io::Error::other(format!("the example {name} does not build")));
    }
    Ok(profile.join("examples").join(name))
}

#[derive(Clone, Copy, Default)]
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
