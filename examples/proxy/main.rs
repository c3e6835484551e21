//! A TCP proxy: whoever connects here talks to whoever listens there.
//!
//! ```text
//! cargo run --release -p examples --example proxy -- --listen 127.0.0.1:7000 --to 127.0.0.1:80
//! ```
//!
//! A stream is two connections, and what the one reads is written to the other:
//!
//! ```text
//!   client ══► data ─► write ══► upstream        not all of it sent? pause the reader,
//!          ◄══ write ◄─ data ◄══                 until the kernel has the last byte
//! ```
//!
//! - **Back-pressure** in each direction by itself: what the library reads at once, 64 KiB, is the
//!   most that waits here. The output's own marks would not do: above the high mark the library stops
//!   reading from that same connection, and a client that sends much before it reads anything would
//!   wait for itself.
//! - **An end is passed on** as what it was: a half-close as a half-close, a reset as a reset.
//! - **An upstream that cannot be reached** resets the client, and is told on stderr.
//! - **When interrupted**, it lets streams go on to their ends, for up to 10 s.

#[path = "../common/mod.rs"]
mod common;

use common::{Failure, address, number, print_now, set};
use lexopt::Arg::{Long, Short};
use paceline::net::{
    Accept, Address, Admission, Conn, ConnHandler, ConnRef, Reason, Server, WriteStatus,
};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HELP: &str = "\
A TCP proxy: whoever connects here talks to whoever listens there.

Usage: proxy --listen ADDR --to ADDR [--threads N]

  --listen ADDR   where to listen: 127.0.0.1:7000, *:7000, unix:/run/proxy; port 0 takes a free one
  --to ADDR       whom to connect to, written alike
  --threads N     threads of the pool; default: one per CPU
  --help          this text";

/// How long streams may go on after an interrupt.
const DRAIN: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    common::exit("proxy", run())
}

fn run() -> Result<(), Failure> {
    let (mut listen, mut to, mut threads) = (None, None, None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => set("listen", &mut listen, address, &mut parser)?,
            Long("to") => set("to", &mut to, address, &mut parser)?,
            Long("threads") => set("threads", &mut threads, number, &mut parser)?,
            Long("help") | Short('h') => return Ok(print_now(HELP)?),
            other => return Err(other.unexpected().into()),
        }
    }
    let missing = |flag| lexopt::Error::from(format!("--{flag} is missing"));
    let (listen, to) = (listen.ok_or(missing("listen"))?, to.ok_or(missing("to"))?);
    common::raise_open_files()?;
    let pool = common::pool(threads).build()?;
    // A server without listeners only connects. Apart from the clients', so that these drain first. Each direction of a
    // stream ends by itself.
    let upstreams = Server::builder(&pool)
        .allow_half_open(true)
        .serve(|_| -> Half { unreachable!("nobody can connect to it") })?;
    let proxy = Arc::new(Proxy { to, upstreams, unreachable: 0.into(), peak: 0.into() });
    let clients = Server::builder(&pool).allow_half_open(true).listen(listen).serve({
        let proxy = Arc::clone(&proxy);
        move |_| Half::new(&proxy, &Arc::default(), None)
    })?;
    common::serve_until_interrupted(&pool, clients.addresses())?;
    let books = clients.drain(DRAIN).stats;
    // What the clients have sent last may still be on its way.
    let _ = proxy.upstreams.drain(DRAIN);
    print_now(format_args!(
        "{} streams: {} to their ends, {} broken off, of them {} without upstream; \
         up to {} bytes waited",
        books.requests,
        books.answered,
        books.requests_aborted,
        proxy.unreachable.load(Relaxed),
        proxy.peak.load(Relaxed),
    ))?;
    Ok(())
}

struct Proxy {
    to: Address,
    upstreams: Server,
    /// Streams whose upstream could not be reached.
    unreachable: AtomicU64,
    /// The longest queue.
    peak: AtomicUsize,
}

/// What both connections of a stream share.
#[derive(Default)]
struct Stream {
    /// One of both peers has finished.
    half_done: AtomicBool,
    /// Keeps the client's connection from being drained away before the stream has ended.
    admission: Mutex<Option<Admission>>,
}

/// A connection of a stream: the client's or the upstream's.
struct Half {
    proxy: Arc<Proxy>,
    stream: Arc<Stream>,
    /// None: before the client's is open.
    other: Option<ConnRef>,
    open: bool,
}

impl Half {
    fn new(proxy: &Arc<Proxy>, stream: &Arc<Stream>, other: Option<ConnRef>) -> Self {
        Self { proxy: Arc::clone(proxy), stream: Arc::clone(stream), other, open: false }
    }

    fn connect(&mut self, conn: &Conn) {
        *self.stream.admission.lock().expect("nobody panics with it") = conn.admit();
        let upstream = Half::new(&self.proxy, &self.stream, Some(conn.handle()));
        match self.proxy.upstreams.connect(&self.proxy.to, upstream) {
            Ok(upstream) => self.other = Some(upstream),
            Err(error) => {
                self.proxy.tell_unreachable(&error);
                conn.abort();
            }
        }
    }
}

impl ConnHandler for Half {
    fn open(&mut self, conn: &Conn) -> Accept {
        self.open = true;
        if !conn.is_outgoing() {
            self.connect(conn);
        }
        Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        let Some(other) = &self.other else { return bytes.len() };
        if !other.write(bytes).is_ok_and(|wrote| wrote == WriteStatus::Sent) {
            // First the pause: another thread may tell of the token at once.
            conn.pause();
            self.proxy.peak.fetch_max(other.queued(), Relaxed);
            // It fails if the other has ended, and then the other's `close` ends this one.
            let _ = other.write_tracked(&[], 0);
        }
        bytes.len()
    }

    fn written(&mut self, _: &Conn, _: u64) {
        if let Some(other) = &self.other {
            // It fails if the other has ended: then nobody waits for this.
            let _ = other.resume();
        }
    }

    fn finished(&mut self, conn: &Conn) {
        let Some(other) = &self.other else { return };
        let _ = other.shutdown_write();
        if self.stream.half_done.swap(true, Relaxed) {
            let admission = self.stream.admission.lock().expect("nobody panics with it").take();
            if let Some(admission) = admission {
                // Before the client's connection may end.
                admission.answered();
            }
            conn.close();
            let _ = other.close();
        }
    }

    fn close(&mut self, conn: &Conn, reason: Reason) {
        if conn.is_outgoing() && !self.open {
            self.proxy.tell_unreachable(&Cause(reason));
        }
        let Some(other) = &self.other else { return };
        // An end in good order is one for both, and only such a stream is drained; any other breaks off
        // the other one, too. It fails if that has ended already.
        if !matches!(reason, Reason::Local | Reason::Peer | Reason::Drained) {
            let _ = other.abort();
        }
    }
}

impl Proxy {
    fn tell_unreachable(&self, cause: &dyn std::fmt::Display) {
        self.unreachable.fetch_add(1, Relaxed);
        eprintln!("proxy: no upstream at {}: {cause}", self.to);
    }
}

/// Why a connection was not made, for people.
struct Cause(Reason);

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Reason::Failed(kind) => kind.fmt(f),
            Reason::TimedOut(_) => f.write_str("it does not answer"),
            other => write!(f, "{other:?}"),
        }
    }
}
