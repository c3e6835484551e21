//! How the HTTP servers are started, each a process of its own.

use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::serve::BODY;
use crate::process::Process;

/// More descriptors than any scenario needs.
const CONNECTIONS: usize = 20_000;

const EVHTTP: Option<&str> = option_env!("PROGRAM_http_libevent");

/// How a peer's server is started.
#[derive(Clone, Copy)]
pub enum Launch {
    /// By this program.
    Own(&'static str),
    Evhttp(&'static str),
    Nginx,
    H2o,
}

/// How to start `peer`; the error says what is missing.
pub fn launch(peer: &'static str) -> Result<Launch, String> {
    let installed = |program: &str, launch| {
        let mut version = Command::new(program);
        version.arg("-v").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().map(|_| launch).map_err(|error| format!("{program}: {error}"))
    };
    match peer {
        "nginx" => installed("nginx", Launch::Nginx),
        "h2o" => installed("h2o", Launch::H2o),
        "evhttp" => EVHTTP.map(Launch::Evhttp).ok_or("libevent-dev was not installed".into()),
        own => Ok(Launch::Own(own)),
    }
}

/// A started server and where it listens.
pub struct Server {
    pub process: Process,
    pub address: SocketAddr,
    /// One of our own, see `serve`.
    tells_heap: bool,
    /// Where its configuration lies, removed at the end.
    _directory: Option<Directory>,
}

impl Server {
    pub fn start(launch: Launch, threads: usize) -> io::Result<Self> {
        match launch {
            Launch::Own(name) => {
                let mut command = Command::new(env::current_exe()?);
                command.args(["serve-http", name]).stdin(Stdio::piped());
                Ok(Server { tells_heap: true, ..announcing(command, threads)? })
            }
            Launch::Evhttp(program) => announcing(Command::new(program), threads),
            Launch::Nginx => configured(threads, nginx),
            Launch::H2o => configured(threads, h2o),
        }
    }

    /// Bytes that the server's allocator has given out; NaN where nobody can say.
    pub fn heap(&mut self) -> io::Result<f64> {
        if !self.tells_heap {
            return Ok(f64::NAN);
        }
        self.process.say("heap")?;
        self.process.line()?.parse().map_err(io::Error::other)
    }

    /// Sees that `GET /`, sent twice at once, is answered twice as all servers must answer.
    pub fn check(&self) -> io::Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2).as_bytes())?;
        let mut text = Vec::new();
        let mut buffer = [0; 4096];
        while whole_answers(&text) < 2 {
            match stream.read(&mut buffer)? {
                0 => return Err(wrong(&text)),
                n => text.extend_from_slice(&buffer[..n]),
            }
        }
        let head = String::from_utf8_lossy(&text).to_ascii_lowercase();
        let twice = |what: &str| head.matches(what).count() == 2;
        let as_agreed = head.starts_with("http/1.1 200 ")
            && ["http/1.1 200 ", "\r\ncontent-length: 64\r\n", "\r\ndate: "].map(twice)
                == [true; 3];
        if as_agreed && whole_answers(&text) == 2 { Ok(()) } else { Err(wrong(&text)) }
    }
}

fn whole_answers(text: &[u8]) -> usize {
    let answer_end = [b"\r\n\r\n", BODY.as_slice()].concat();
    memchr::memmem::find_iter(text, &answer_end).count()
}

fn wrong(text: &[u8]) -> io::Error {
    io::Error::other(format!("it answers {:?}", String::from_utf8_lossy(text)))
}

/// A server that is told its address by arguments and prints it.
fn announcing(mut command: Command, threads: usize) -> io::Result<Server> {
    command.args(["--listen", "127.0.0.1:0", "--threads", &threads.to_string()]);
    let mut process = Process::start(command)?;
    let address = process.announced()?;
    Ok(Server { process, address, tells_heap: false, _directory: None })
}

/// A server that reads its address, a port that was free a moment ago, from a file.
fn configured(
    threads: usize,
    configure: fn(&Path, SocketAddr, usize) -> io::Result<Command>,
) -> io::Result<Server> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let directory = Directory::new(address.port())?;
    let mut command = configure(&directory.0, address, threads)?;
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut process = Process::start(command)?;
    process.await_listener(address)?;
    Ok(Server { process, address, tells_heap: false, _directory: Some(directory) })
}

/// A master and `threads` workers, each with a listening socket of its own.
fn nginx(directory: &Path, address: SocketAddr, threads: usize) -> io::Result<Command> {
    let body = String::from_utf8_lossy(BODY);
    let configuration = format!(
        "daemon off; worker_processes {threads}; worker_rlimit_nofile {CONNECTIONS};
        user root; pid nginx.pid; error_log /dev/null crit;
        events {{ worker_connections {CONNECTIONS}; }}
        http {{
            access_log off; keepalive_requests 1000000000; keepalive_timeout 300s;
            client_header_timeout 300s; server_tokens off;
            server {{
                listen {address} backlog=4096 reuseport;
                location / {{ default_type text/plain; return 200 {body}; }}
            }}
        }}"
    );
    let file = directory.join("nginx.conf");
    fs::write(&file, configuration)?;
    let mut command = Command::new("nginx");
    command.arg("-p").arg(directory).arg("-c").arg(file);
    Ok(command)
}

/// h2o without a script can answer from memory by a redirection only; so the body is a file, in
/// memory if there is a file system for that.
fn h2o(directory: &Path, address: SocketAddr, threads: usize) -> io::Result<Command> {
    let body = directory.join("body");
    fs::write(&body, BODY)?;
    let configuration = format!(
        "listen: {{host: {}, port: {}}}\nnum-threads: {threads}\nmax-connections: {CONNECTIONS}\n\
        user: root\nhttp1-request-timeout: 300\nfile.etag: OFF\n\
        hosts: {{default: {{paths: {{/: {{file.file: {}}}}}}}}}\n",
        address.ip(),
        address.port(),
        body.display(),
    );
    let file = directory.join("h2o.conf");
    fs::write(&file, configuration)?;
    let mut command = Command::new("h2o");
    command.arg("-c").arg(file);
    Ok(command)
}

struct Directory(PathBuf);

impl Directory {
    fn new(port: u16) -> io::Result<Self> {
        let memory = PathBuf::from("/dev/shm");
        let base = if memory.is_dir() { memory } else { env::temp_dir() };
        let path = base.join(format!("comparison-{}-{port}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A directory that is left behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
