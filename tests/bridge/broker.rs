//! A broker of the test's own, on a free port.

use crate::common::until;
use paceline::bridge::{Bridge, BridgeBuilder};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub struct Broker {
    process: Child,
    port: u16,
    directory: PathBuf,
    more: String,
    is_plain: bool,
}

/// None, and a word, where there is no broker.
pub fn broker() -> Option<Broker> {
    Broker::start("")
}

impl Broker {
    /// Without streams.
    pub fn start_plain() -> Option<Self> {
        Self::start_plain_with("")
    }

    /// Without streams, with these lines more in its settings.
    pub fn start_plain_with(more: &str) -> Option<Self> {
        Self::start("").map(|mut broker| {
            broker.kill();
            broker.is_plain = true;
            broker.more = more.into();
            broker.start_again();
            broker
        })
    }

    /// With these lines more in its settings.
    pub fn start(more: &str) -> Option<Self> {
        if Command::new("nats-server").arg("--version").output().is_err() {
            crate::common::skipped("there is no nats-server");
            return None;
        }
        let port = free_port();
        let directory = std::env::temp_dir().join(format!("paceline-nats-{port}"));
        fs::create_dir_all(&directory).unwrap();
        let process = spawn(port, &directory, more, false);
        Some(Self { process, port, directory, more: more.into(), is_plain: false })
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends it as a crash does.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Ends it in order.
    pub fn stop(&mut self) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        self.process.wait().unwrap();
    }

    /// While it is stopped: removes what it has on disk of a stream and of its consumers.
    pub fn lose_stream(&self, stream: &str) {
        let streams = self.directory.join("store/jetstream/$G/streams");
        fs::remove_dir_all(streams.join(stream)).unwrap();
    }

    fn messages(&self, stream: &str) -> PathBuf {
        self.directory.join("store/jetstream/$G/streams").join(stream).join("msgs")
    }

    /// While it is stopped: removes the messages of a stream, and their numbers; consumers keep their places.
    pub fn lose_messages(&self, stream: &str) {
        fs::remove_dir_all(self.messages(stream)).unwrap();
    }

    /// While it is stopped: a copy of a stream's messages, with its numbers.
    pub fn copy_messages(&self, stream: &str) -> Vec<(PathBuf, Vec<u8>)> {
        let files = fs::read_dir(self.messages(stream)).unwrap().map(|file| file.unwrap().path());
        files.map(|file| (file.clone(), fs::read(file).unwrap())).collect()
    }

    /// While it is stopped: puts such a copy in place of what there is.
    pub fn put_back(&self, copy: &[(PathBuf, Vec<u8>)], stream: &str) {
        self.lose_messages(stream);
        fs::create_dir(self.messages(stream)).unwrap();
        copy.iter().for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
    }

    /// Starts it again, with what it has stored, at another port, and says which.
    pub fn start_elsewhere(&mut self) -> String {
        let port = free_port();
        self.process = spawn(port, &self.directory, &self.more, self.is_plain);
        format!("nats://127.0.0.1:{port}")
    }

    /// Starts it again, with what it has stored.
    pub fn start_again(&mut self) {
        self.process = spawn(self.port, &self.directory, &self.more, self.is_plain);
    }
}

/// The kernel's choice, which another process could take in between.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn spawn(port: u16, directory: &Path, more: &str, is_plain: bool) -> Child {
    let settings = directory.join("settings");
    let store = directory.join("store");
    let streams =
        if is_plain { String::new() } else { format!("jetstream {{ store_dir: {store:?} }}") };
    let text = format!("host: 127.0.0.1\nport: {port}\n{streams}\n{more}\n");
    fs::write(&settings, text).unwrap();
    let log = fs::File::create(directory.join("log")).unwrap();
    let process = Command::new("nats-server")
        .arg("-c")
        .arg(&settings)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    until("the broker", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    process
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
        let _left = fs::remove_dir_all(&self.directory);
    }
}

/// Opens it and waits until it is connected.
pub fn connected(builder: BridgeBuilder) -> Bridge {
    let bridge = builder.open().unwrap();
    bridge.wait_connected(Duration::from_secs(60)).unwrap();
    bridge
}
