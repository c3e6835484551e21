//! Examples as children, and what is done to them.

use socket2::{Domain, SockAddr, Socket, Type};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{env, fs, process, thread};

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

/// The kinds of stream that examples serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tcp,
    Unix,
}

pub const KINDS: [Kind; 2] = [Kind::Tcp, Kind::Unix];

impl Kind {
    /// Where to listen: a port that is free, or a path that nobody else uses.
    fn address(self) -> String {
        match self {
            Kind::Tcp => String::from("127.0.0.1:0"),
            Kind::Unix => format!("unix:{}", own_path("socket").display()),
        }
    }
}

/// A path for temporary files that nobody else uses, not even the same test of another language.
pub fn own_path(name: &str) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    let module = module_path!().replace("::", "-");
    env::temp_dir().join(format!("paceline-{name}-{}-{module}-{number}", process::id()))
}

/// What the kernel makes of an address as it is written on command lines.
fn parsed(address: &str) -> (Domain, SockAddr) {
    match address.strip_prefix("unix:") {
        Some(path) => (Domain::UNIX, SockAddr::unix(path).expect("a path")),
        None => {
            let address: SocketAddr = address.parse().expect("an address");
            (Domain::for_address(address), address.into())
        }
    }
}

/// One end of a connection, of either kind.
pub struct Stream(Socket);

impl Stream {
    fn with_times(socket: Socket) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        socket.set_write_timeout(Some(PATIENCE)).expect("a time-out can be set");
        Self(socket)
    }

    pub fn connect(address: &str) -> io::Result<Self> {
        let (domain, address) = parsed(address);
        let socket = Socket::new(domain, Type::STREAM, None)?;
        socket.connect(&address)?;
        Ok(Self::with_times(socket))
    }

    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    pub fn set_nonblocking(&self, is: bool) -> io::Result<()> {
        self.0.set_nonblocking(is)
    }

    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }

    /// Small pieces leave at once; of a Unix socket they do in any case.
    pub fn set_nodelay(&self, is: bool) -> io::Result<()> {
        self.0.set_tcp_nodelay(is)
    }

    /// How much there is to read, up to 64 bytes; waits until there is something.
    pub fn peek(&self) -> io::Result<usize> {
        self.0.peek(&mut [const { std::mem::MaybeUninit::uninit() }; 64])
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where others may connect to, of either kind: a proxy's upstream.
pub struct Upstream {
    socket: Socket,
    pub address: String,
}

impl Upstream {
    pub fn start(kind: Kind) -> Self {
        let address = kind.address();
        let (domain, at) = parsed(&address);
        let socket = Socket::new(domain, Type::STREAM, None).expect("a socket");
        socket.bind(&at).expect("there is a free place");
        socket.listen(64).expect("it is bound");
        let port = socket.local_addr().expect("it is bound").as_socket();
        Self { socket, address: port.map_or(address, |port| port.to_string()) }
    }

    pub fn accept(&self) -> Stream {
        Stream::with_times(self.socket.accept().expect("somebody connects").0)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if let Some(path) = self.address.strip_prefix("unix:") {
            let _ = fs::remove_file(path);
        }
    }
}

/// An example that listens, as a child.
pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// As it says where it listens.
    pub address: String,
}

impl Server {
    pub fn start(kind: Kind, name: &str, flags: &[&str]) -> Self {
        let mut command = super::program(name);
        command.args(flags);
        Self::spawn(kind, command)
    }

    pub fn spawn(kind: Kind, mut command: Command) -> Self {
        command.args(["--listen", &kind.address()]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the example starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("the server speaks");
        let address = line.trim().strip_prefix("listening on ").map(str::to_owned);
        let address = address.expect("the server says where it listens");
        Self { child, stdout, address }
    }

    pub fn connect(&self) -> Stream {
        Stream::connect(&self.address).expect("the server accepts")
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

    /// Waits until it does nothing more.
    pub fn until_it_rests(&self) {
        eventually("it rests", || {
            let before = self.cpu_time();
            thread::sleep(Duration::from_millis(200));
            self.cpu_time() == before
        });
    }

    /// Bytes that it has allocated, and has stacks of. Its code does not count: that comes in as it first runs, in pieces
    /// whose size is the machine's. The kernel counts them page by page; the numbers in `status` lag behind by up to some
    /// pages for each CPU.
    pub fn allocated(&self) -> usize {
        let rollup = self.proc("smaps_rollup");
        let line = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:"));
        let line = line.expect("the kernel tells what is anonymous");
        let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("it is in kB");
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
        if let Some(path) = self.address.strip_prefix("unix:") {
            let _ = fs::remove_file(path);
        }
    }
}

/// Sends until, for a while, the server takes no more. How much it took.
pub fn fill(client: &mut impl Write, bytes: &[u8]) -> usize {
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
pub fn is_over(client: &mut Stream) -> bool {
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
