//! A store in memory that speaks the protocol of Redis, on the stream server.
//!
//! ```text
//! cargo run --release -p examples --example resp -- --listen 127.0.0.1:6380   # serves until SIGINT or SIGTERM
//! redis-cli -p 6380
//! redis-benchmark -p 6380 -t set,get -P 16
//! ```
//!
//! ```text
//!   bytes ──request.rs──► words ──commands/──► store.rs: shards with short locks
//!     ▲                                          │
//!   session.rs ◄──replies.rs── replies ◄─────────┘
//! ```
//!
//! Read [`session`] first: a connection is one handler with a parser in it. There is no thread that
//! owns the data; whichever thread of the pool has read a request carries it out.

mod app;
mod bytes;
mod commands;
mod number;
mod options;
mod pattern;
mod replies;
mod request;
mod session;
mod store;
mod sys;
mod value;

use app::App;
use options::Options;
use paceline::net::Server;
use paceline::{Error, Flow, Pool};
use session::Session;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// What has expired is taken out so often.
const SWEEP: Duration = Duration::from_millis(100);
/// A request may be so long: the longest value, and its key.
const MAX_REQUEST: usize = 1 << 30;
/// Replies that may wait for a client, and how many of them there may be before nothing more of it is
/// read.
const MAX_REPLIES: usize = 1 << 30;
const PRESSURE: (usize, usize) = (64 << 10, 256 << 10);
/// How long the end may take.
const DRAIN: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let options = match options::parse() {
        Ok(Some(options)) => options,
        Ok(None) => return options::help(),
        Err(error) => return fail(2, &error),
    };
    match serve(&options) {
        Ok(()) => ExitCode::SUCCESS,
        // The pool and the server check what they are given: a flag's value was wrong.
        Err(Failure::Library(error @ Error::Invalid { .. })) => fail(2, &error),
        Err(failure) => fail(1, &failure),
    }
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("resp: {error}");
    ExitCode::from(code)
}

fn serve(options: &Options) -> Result<(), Failure> {
    // Before any thread is started, so that every thread inherits it.
    let signals = sys::block_signals(&[libc::SIGINT, libc::SIGTERM])?;
    sys::raise_open_files()?;
    let pool = Pool::builder().name("resp").max_joined(0).threads(options.threads).build()?;
    let app = Arc::new(App::new(options.threads));
    let server = listen(&pool, options, &app)?;
    let store = Arc::clone(&app);
    let _sweep = pool.every(SWEEP, move || {
        store.store.sweep();
        Flow::Wait
    })?;
    sys::print_now(format_args!("listening on {}", server.addresses()[0]))?;
    sys::wait_for(&signals)?;
    let drain = server.drain(DRAIN);
    let (accepted, drained) = (drain.stats.accepted, drain.drained);
    let report = pool.shutdown(DRAIN);
    sys::print_now(format_args!("{accepted} connections, drained: {drained}"))?;
    if report.stuck.is_empty() { Ok(()) } else { Err(Failure::Stuck(report.stuck)) }
}

fn listen(pool: &Pool, options: &Options, app: &Arc<App>) -> Result<Server, Failure> {
    let (low, high) = PRESSURE;
    let shared = Arc::clone(app);
    let server = Server::builder(pool)
        .listen(options.listen.as_str())
        .max_unconsumed(MAX_REQUEST)
        .output_marks(low, high, MAX_REPLIES)
        .serve(move |_| Session::new(Arc::clone(&shared)))?;
    app.address.get_or_init(|| server.addresses()[0].clone());
    Ok(server)
}

/// What can go wrong once the command line is understood.
#[derive(Debug)]
enum Failure {
    Library(Error),
    Io(std::io::Error),
    Stuck(Vec<usize>),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Library(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::Stuck(threads) => write!(f, "commands on threads {threads:?} have not returned"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
