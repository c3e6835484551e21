//! Servers as child processes, and a client that knows where a reply ends.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use crate::common::{PATIENCE, skipped};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{env, fs};

/// Where cargo puts examples: beside the directory of the tests.
pub fn example() -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    let profile = test.ancestors().nth(2).expect("tests are in target/<profile>/deps");
    let path = profile.join("examples/resp");
    assert!(path.exists(), "{path:?} is missing: `cargo build --examples` builds it");
    path
}

/// Whether a program is there. If it is not, the test says so and passes.
pub fn is_installed(program: &str) -> bool {
    let mut version = Command::new(program);
    let is_there = version.arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_there {
        skipped(format_args!("{program} is not installed (Debian: redis-server, redis-tools)"));
    }
    is_there
}

/// A path for a socket that nobody else uses.
pub fn socket_path() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    env::temp_dir().join(format!("paceline-resp-{}-{number}", std::process::id()))
}

/// The example as a child.
pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// As it says where it listens.
    pub address: String,
    path: Option<PathBuf>,
}

impl Server {
    pub fn start(flags: &[&str]) -> Self {
        Self::spawn(&example(), flags)
    }

    /// A program with the same command line.
    pub fn spawn(program: &Path, flags: &[&str]) -> Self {
        Self::spawn_at(program, "127.0.0.1:0", flags)
    }

    /// The same, on a Unix socket of its own.
    pub fn spawn_unix(program: &Path, flags: &[&str]) -> Self {
        let path = socket_path();
        let mut server = Self::spawn_at(program, &format!("unix:{}", path.display()), flags);
        server.path = Some(path);
        server
    }

    fn spawn_at(program: &Path, listen: &str, flags: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["--listen", listen]).args(flags).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the example starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("the server speaks");
        let address = line.trim().strip_prefix("listening on ").map(str::to_owned);
        let address = address.expect("the server says where it listens");
        Self { child, stdout, address, path: None }
    }

    /// Where redis-cli and others find it.
    pub fn port(&self) -> String {
        self.address.rsplit_once(':').expect("it is TCP").1.to_owned()
    }

    /// To one on a Unix socket.
    pub fn connect_unix(&self) -> UnixStream {
        let path = self.path.as_ref().expect("it listens on a Unix socket");
        let stream = UnixStream::connect(path).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time-out can be set");
        stream
    }

    pub fn connect(&self) -> Client {
        if self.path.is_some() {
            return Client::new(self.connect_unix());
        }
        let stream = TcpStream::connect(&self.address).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time-out can be set");
        Client::new(stream)
    }

    /// What it prints from SIGTERM to its end, which must be a good one.
    pub fn stop(mut self) -> String {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("the server prints UTF-8");
        let status = self.child.wait().expect("the server is our child");
        assert!(status.success(), "{status}\n{text}");
        text
    }

    /// The most memory that it ever had.
    pub fn peak(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(path).expect("it runs");
        let line =
            text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it has a peak");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("it is in kB");
        kib * 1024
    }

    /// What it has allocated, and stacks. Its code does not count: that comes in as it first runs.
    pub fn allocated(&self) -> u64 {
        let path = format!("/proc/{}/smaps_rollup", self.child.id());
        let text = fs::read_to_string(path).expect("it runs");
        let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:"));
        let line = line.expect("the kernel tells what is anonymous");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("it is in kB");
        kib * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// The real one, on a Unix socket.
pub struct Redis {
    child: Child,
    path: PathBuf,
}

impl Redis {
    pub fn start() -> Self {
        let path = socket_path();
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
        let child = command.arg(&path).stdout(Stdio::null()).spawn().expect("redis-server starts");
        let redis = Self { child, path };
        crate::common::until("redis-server listens", || UnixStream::connect(&redis.path).is_ok());
        redis
    }

    pub fn connect(&self) -> Client {
        let stream = UnixStream::connect(&self.path).expect("redis-server accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        Client::new(stream)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.path);
    }
}

pub trait Stream: Read + Write + Send {
    fn finish(&self);
}

impl Stream for TcpStream {
    fn finish(&self) {
        self.shutdown(Shutdown::Write).expect("it is open");
    }
}

impl Stream for UnixStream {
    fn finish(&self) {
        self.shutdown(Shutdown::Write).expect("it is open");
    }
}

/// A client of either.
pub struct Client(BufReader<Box<dyn Stream>>);

impl Client {
    pub fn new(stream: impl Stream + 'static) -> Self {
        Self(BufReader::new(Box::new(stream)))
    }

    /// Sends nothing more.
    pub fn finish(&self) {
        self.0.get_ref().finish();
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("the server reads");
    }

    /// The reply to one request.
    pub fn ask(&mut self, words: &[&[u8]]) -> Vec<u8> {
        self.send(&encoded(words));
        self.reply()
    }

    /// The same, of words with blanks between them.
    pub fn say(&mut self, line: &str) -> Vec<u8> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.ask(&words)
    }

    /// One reply, as it came.
    pub fn reply(&mut self) -> Vec<u8> {
        let mut reply = Vec::new();
        let mut missing = 1;
        while missing > 0 {
            let start = reply.len();
            self.0.read_until(b'\n', &mut reply).expect("the server answers");
            assert!(reply.ends_with(b"\r\n"), "{:?}", String::from_utf8_lossy(&reply));
            let text = str::from_utf8(&reply[start + 1..reply.len() - 2]).unwrap_or_default();
            missing -= 1;
            match (reply[start], text.parse::<i64>()) {
                (b'*', Ok(items)) => missing += items.max(0),
                (b'$', Ok(length @ 0..)) => {
                    let bulk = reply.len();
                    reply.resize(bulk + length as usize + 2, 0);
                    self.0.read_exact(&mut reply[bulk..]).expect("a bulk string is whole");
                }
                _ => {}
            }
        }
        reply
    }

    /// All that comes up to the end of the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).expect("the connection ends well");
        rest
    }
}

/// A request as clients send it.
pub fn encoded(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
