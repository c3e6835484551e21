//! The broker and the programs of a round as processes. Each ends with the process that has started it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a process may take to begin, or to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program of the broker: that of the environment, so that other versions can be tried.
fn broker() -> String {
    std::env::var("PACELINE_NATS_SERVER").unwrap_or("nats-server".into())
}

pub fn has_broker() -> bool {
    Command::new(broker()).arg("--version").stdout(Stdio::null()).status().is_ok()
}

/// This process ends with the one that has started it.
pub fn end_with_parent() {
    // SAFETY: a call of the kernel with numbers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Waits until it holds, at most so long. Whether it holds.
pub fn within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if begun.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A child that is killed when this is dropped.
pub struct Process(Child);

impl Process {
    /// What it prints goes to this file.
    fn start(mut command: Command, output: &Path) -> io::Result<Self> {
        let output = OpenOptions::new().create(true).append(true).open(output)?;
        command.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output);
        // SAFETY: between fork and exec only a call is made that is safe in a signal handler.
        unsafe {
            command.pre_exec(|| {
                end_with_parent();
                Ok(())
            });
        }
        command.spawn().map(Self)
    }

    /// None: it lives.
    pub fn end(&mut self) -> Option<String> {
        self.0.try_wait().ok()?.map(|status| status.to_string())
    }

    pub fn kill(&mut self) {
        let _it_has_ended = self.0.kill();
        let _reaped = self.0.wait();
    }

    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: a call of the kernel with numbers; the child is not reaped before `wait`, so its id is its own.
        unsafe { libc::kill(self.0.id().cast_signed(), signal) };
    }

    /// Asks a program to end: its input is at its end.
    pub fn ask_to_end(&mut self) {
        drop(self.0.stdin.take());
    }

    /// Whether it ends well in time; it has ended in any case. `meanwhile` is called all the time.
    pub fn ends_within(&mut self, limit: Duration, mut meanwhile: impl FnMut()) -> bool {
        let ends = within(limit, || {
            meanwhile();
            self.end().is_some()
        });
        self.kill();
        ends && self.0.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts this program in a role.
pub fn start_program(folder: &Path, role: &str, number: u64, url: &str, more: &str) -> Process {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["play", role, &number.to_string(), url, more]).current_dir(folder);
    Process::start(command, &folder.join(format!("output-{role}"))).expect("a program starts")
}

/// The broker, with a folder of its own.
pub struct Broker {
    process: Option<Process>,
    folder: PathBuf,
    port: u16,
}

/// What a full account has room for, in bytes.
const FULL: u64 = 1;

impl Broker {
    /// `random` gives a number below another. None: it does not begin to serve.
    pub fn start(folder: &Path, mut random: impl FnMut(u64) -> u64) -> Option<Self> {
        // Not one that the kernel gives to a client, which would meet itself there while the broker is away.
        let port = (0..1000).map(|_| 10_000 + random(20_000) as u16);
        let port = { port }.find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok())?;
        let folder = folder.join("broker");
        fs::create_dir_all(&folder).ok()?;
        let mut broker = Self { process: None, folder, port };
        broker.start_again(false).then_some(broker)
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Ends it in order. Whether it does.
    pub fn stop(&mut self) -> bool {
        let Some(mut process) = self.process.take() else { return true };
        process.signal(libc::SIGTERM);
        let ends = within(PATIENCE, || process.end().is_some());
        process.kill();
        ends
    }

    /// Starts it again if it has crashed. Whether it has.
    pub fn revive(&mut self) -> bool {
        let has_crashed = self.process.as_mut().is_some_and(|process| process.end().is_some());
        has_crashed && self.start_again(false)
    }

    /// While it is away: its disk is a new one.
    pub fn lose_disk(&self) {
        let _there_is_none = fs::remove_dir_all(self.folder.join("store"));
    }

    /// While it is away: removes what it has on disk of one stream and of its consumers. Removed by the broker while somebody
    /// makes it anew, the new one may lose its files.
    pub fn lose_stream(&self, random: impl FnOnce(u64) -> u64) {
        let streams = fs::read_dir(self.folder.join("store/jetstream/A/streams"));
        let mut streams: Vec<_> = streams.into_iter().flatten().flatten().collect();
        streams.sort_by_key(fs::DirEntry::file_name);
        if !streams.is_empty() {
            let one = &streams[random(streams.len() as u64) as usize];
            let _there_is_none = fs::remove_dir_all(one.path());
        }
    }

    /// Starts it with what it has stored, without room for more if its account is to be full. Whether it serves.
    pub fn start_again(&mut self, is_full: bool) -> bool {
        let store = self.folder.join("store");
        let room = if is_full { FULL } else { 1 << 30 };
        let text = format!(
            "host: 127.0.0.1\nport: {}\njetstream {{ store_dir: {store:?} }}\nno_auth_user: a\n\
             accounts {{ A {{ users: [{{ user: a, password: a }}], jetstream: {{ max_mem: {room}, max_file: {room} }} }} }}\n",
            self.port
        );
        let settings = self.folder.join("settings");
        fs::write(&settings, text).expect("its settings are written");
        let mut command = Command::new(broker());
        command.arg("-c").arg(&settings);
        let process = Process::start(command, &self.folder.join("log"));
        self.process = Some(process.expect("the broker starts"));
        within(PATIENCE, || TcpStream::connect(("127.0.0.1", self.port)).is_ok())
    }
}

/// To append to.
pub fn open(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).expect("a file of the round")
}
