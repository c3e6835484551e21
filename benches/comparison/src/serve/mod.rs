//! The rivals' echo servers that are written in Rust: one file each, one trait.
//!
//! Every server, whatever its language, obeys the same rules: what arrives is sent back; a request
//! whose first byte is `0xBB` first burns 1 ms of its thread's CPU time, or sleeps 1 ms or 50 ms, on the
//! thread that handles it; TCP_NODELAY; a read buffer of 32 KiB; a backlog of 4096. A server prints
//! `listening on ADDR` and serves until it is killed.

mod connection;
mod epoll;
mod half_sync;
mod shared;
mod textbook;
mod tokio_server;
mod uring;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use crate::sys;

pub const READ_BUFFER: usize = 32 * 1024;
pub const SLOW_MARK: u8 = 0xBB;
/// The least that a slow request takes.
pub const SLOW_TIME: Duration = Duration::from_millis(1);
const DATABASE_TIME: Duration = Duration::from_millis(50);

/// What a slow request does before it is echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slow {
    Burn,
    Sleep,
    /// Sleeps as one that asks a database.
    Database,
}

impl Slow {
    pub const ALL: [(&str, Slow); 3] =
        [("burn", Slow::Burn), ("sleep", Slow::Sleep), ("database", Slow::Database)];

    /// Holds the calling thread up if `chunk` begins a slow request.
    pub fn hold(self, chunk: &[u8]) {
        if chunk.first() == Some(&SLOW_MARK) {
            self.work();
        }
    }

    #[cold]
    fn work(self) {
        match self {
            Slow::Sleep => std::thread::sleep(SLOW_TIME),
            Slow::Database => std::thread::sleep(DATABASE_TIME),
            Slow::Burn => {
                let end = sys::thread_cpu() + SLOW_TIME;
                while sys::thread_cpu() < end {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
pub struct Options {
    pub threads: usize,
    pub slow: Slow,
}

/// An echo server. `serve` returns only on an error that ends it.
trait Server {
    fn serve(&self, listener: TcpListener, options: Options) -> io::Result<()>;
}

/// The servers by name. The harness knows the same names.
fn server(name: &str) -> Option<&'static dyn Server> {
    Some(match name {
        "epoll" => &epoll::LoopPerThread,
        "tokio" => &tokio_server::Tokio { block_in_place: false },
        "tokio-bip" => &tokio_server::Tokio { block_in_place: true },
        "shared" => &shared::SharedEpoll,
        "textbook" => &textbook::LeaderFollowers,
        "half-sync" => &half_sync::HalfSync,
        "io_uring" => &uring::Uring,
        _ => return None,
    })
}

/// Says why a server cannot run on this machine, if that is so.
pub fn probe(name: &str) -> io::Result<()> {
    if name == "io_uring" { uring::probe() } else { Ok(()) }
}

/// The body of the child process: announces the address and serves.
pub fn run(name: &str, address: SocketAddr, options: Options) -> io::Result<()> {
    let server = server(name).ok_or_else(|| io::Error::other(format!("no server {name:?}")))?;
    sys::raise_open_files(20_000)?;
    let listener = sys::listen(address)?;
    println!("listening on {}", listener.local_addr()?);
    server.serve(listener, options)
}
