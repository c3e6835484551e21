//! The broker.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::process::Process;

/// nats-server on a free port, with a store of its own.
pub struct Broker {
    address: SocketAddr,
    store: PathBuf,
    process: Process,
}

impl Broker {
    pub fn start() -> io::Result<Self> {
        // A port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let store = std::env::temp_dir().join(format!("comparison-nats-{}", address.port()));
        let mut command = Command::new("nats-server");
        command.args(["-a", "127.0.0.1", "-p", &address.port().to_string(), "-js", "-sd"]);
        command.arg(&store).stderr(Stdio::null());
        let mut process = Process::start(command)?;
        process.await_listener(address)?;
        Ok(Self { address, store, process })
    }

    /// CPU time so far.
    pub fn cpu(&self) -> io::Result<Duration> {
        self.process.usage().map(|usage| usage.cpu)
    }

    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may write there still: what is left is in the directory of temporary files.
        let _left = fs::remove_dir_all(&self.store);
    }
}

pub fn is_installed() -> bool {
    Command::new("nats-server").arg("--version").stdout(Stdio::null()).status().is_ok()
}
