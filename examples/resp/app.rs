//! What all clients share: the store, and what the server knows of itself.

use crate::store::Store;
use paceline::net::Address;
use std::fmt::Write;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

pub struct App {
    pub store: Store,
    /// Set once it listens.
    pub address: OnceLock<Address>,
    threads: usize,
    began: Instant,
    connections: AtomicU64,
    clients: AtomicU64,
    commands: AtomicU64,
}

impl App {
    pub fn new(threads: usize) -> Self {
        Self {
            store: Store::new(),
            address: OnceLock::new(),
            threads,
            began: Instant::now(),
            connections: AtomicU64::new(0),
            clients: AtomicU64::new(0),
            commands: AtomicU64::new(0),
        }
    }

    pub fn count_client(&self) {
        self.connections.fetch_add(1, Relaxed);
        self.clients.fetch_add(1, Relaxed);
    }

    pub fn forget_client(&self) {
        self.clients.fetch_sub(1, Relaxed);
    }

    pub fn count_commands(&self, commands: u64) {
        self.commands.fetch_add(commands, Relaxed);
    }

    fn port(&self) -> u16 {
        self.address.get().and_then(Address::tcp).map_or(0, |address| address.port())
    }

    /// The settings that clients ask for, as CONFIG GET names them.
    pub fn settings(&self) -> [(&'static str, String); 8] {
        [
            ("appendonly", "no".into()),
            (
                "bind",
                self.address
                    .get()
                    .and_then(Address::tcp)
                    .map_or_else(String::new, |address| address.ip().to_string()),
            ),
            ("databases", "1".into()),
            ("io-threads", self.threads.to_string()),
            ("maxmemory", "0".into()),
            ("port", self.port().to_string()),
            ("proto-max-bulk-len", (512 << 20).to_string()),
            ("save", String::new()),
        ]
    }

    /// The sections of INFO.
    pub fn describe(&self) -> [(&'static str, String); 5] {
        let totals = self.store.totals();
        let memory = resident();
        [
            (
                "Server",
                lines(&[
                    // The last one without RESP3, which is not spoken here, and HELLO, which asks for it.
                    ("redis_version", &"5.0.0"),
                    ("redis_mode", &"standalone"),
                    ("server_name", &concat!("paceline ", env!("CARGO_PKG_VERSION"))),
                    ("process_id", &std::process::id()),
                    ("tcp_port", &self.port()),
                    ("uptime_in_seconds", &self.began.elapsed().as_secs()),
                    ("io_threads", &self.threads),
                ]),
            ),
            (
                "Clients",
                lines(&[
                    ("connected_clients", &self.clients.load(Relaxed)),
                    ("blocked_clients", &0),
                ]),
            ),
            ("Memory", lines(&[("used_memory", &memory), ("used_memory_rss", &memory)])),
            (
                "Stats",
                lines(&[
                    ("total_connections_received", &self.connections.load(Relaxed)),
                    ("total_commands_processed", &self.commands.load(Relaxed)),
                    ("expired_keys", &totals.expired),
                    ("keyspace_hits", &totals.hits),
                    ("keyspace_misses", &totals.misses),
                ]),
            ),
            (
                "Keyspace",
                match totals.keys {
                    0 => String::new(),
                    keys => format!("db0:keys={keys},expires={},avg_ttl=0\r\n", totals.expiring),
                },
            ),
        ]
    }
}

fn lines(fields: &[(&str, &dyn std::fmt::Display)]) -> String {
    fields.iter().fold(String::new(), |mut text, (name, value)| {
        // Writing into a string does not fail.
        let _ = write!(text, "{name}:{value}\r\n");
        text
    })
}

/// Bytes of memory that the process uses; 0 if that cannot be told.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
}
