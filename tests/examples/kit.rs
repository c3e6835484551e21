//! Examples as children, and what is done to them.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;
use std::{fs, thread};

/// After this a test gives up, and fails.
pub const PATIENCE: Duration = Duration::from_secs(300);

pub fn run(name: &str, arguments: &[&str]) -> Output {
    super::program(name).args(arguments).output().expect("the example starts")
}

/// What a run that went well has printed.
pub fn printed(output: Output) -> String {
    let text = String::from_utf8(output.stdout).expect("examples print UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{}\n{text}{errors}", output.status);
    text
}

/// An example that listens, as a child.
pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub address: SocketAddr,
}

impl Server {
    pub fn start(name: &str, flags: &[&str]) -> Self {
        let mut command = super::program(name);
        command.args(flags);
        Self::spawn(command)
    }

    pub fn spawn(mut command: Command) -> Self {
        command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the example starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("the server speaks");
        let address = line.trim().strip_prefix("listening on ").map(str::parse);
        let address = address.expect("the server says where it listens").expect("an address");
        Self { child, stdout, address }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        stream.set_write_timeout(Some(PATIENCE)).expect("a time-out can be set");
        stream
    }

    /// What it prints from a signal to its end, which must be a good one.
    pub fn stop(mut self, signal: &str) -> String {
        self.end(signal)
    }

    /// The same of a server that somebody owns.
    pub fn end(&mut self, signal: &str) -> String {
        let kill = format!("kill -{signal} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().expect("there is a shell");
        assert!(sent.success());
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("the server prints UTF-8");
        let status = self.child.wait().expect("the server is our child");
        assert!(status.success(), "{signal}: {status}\n{text}");
        text
    }

    /// A line of what it says on stderr, which was piped.
    pub fn error(&mut self) -> String {
        let mut line = String::new();
        let stderr = self.child.stderr.as_mut().expect("stderr is piped");
        BufReader::new(stderr).read_line(&mut line).expect("the server prints UTF-8");
        line
    }

    /// CPU time of all its threads, in steps of 10 ms.
    pub fn cpu_time(&self) -> Duration {
        let stat = self.proc("stat");
        let (_, fields) = stat.rsplit_once(") ").expect("the name is in parentheses");
        let fields: Vec<u64> = fields.split(' ').map(|field| field.parse().unwrap_or(0)).collect();
        Duration::from_millis((fields[11] + fields[12]) * 10)
    }

    pub fn resident(&self) -> u64 {
        let rollup = self.proc("smaps_rollup");
        let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).expect("it has Rss");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("Rss is in kB");
        kib * 1024
    }

    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("it runs").count()
    }

    fn proc(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).expect("it runs")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends until, for a while, the server takes no more. How much it took.
pub fn fill(client: &mut TcpStream, bytes: &[u8]) -> usize {
    let (mut sent, mut quiet) = (0, 0);
    while quiet < 20 && sent < bytes.len() {
        match client.write(&bytes[sent..]) {
            Ok(count) => (sent, quiet) = (sent + count, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                quiet += 1;
                thread::sleep(Duration::from_millis(10));
            }
            Err(error) => panic!("{error}"),
        }
    }
    sent
}

/// Whether the peer has closed or reset the connection.
pub fn is_over(client: &mut TcpStream) -> bool {
    match client.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(std::time::Instant::now() < end, "in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
