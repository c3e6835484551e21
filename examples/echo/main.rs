//! An echo server on a pool whose threads take turns leading.
//!
//! ```text
//! cargo run --release --example echo                             # the demo: drives itself, prints what happened
//! cargo run --release --example echo -- --listen 127.0.0.1:7000  # serves until SIGINT or SIGTERM
//! ```
//!
//! A request whose first byte is 0xBB is slow: it takes a millisecond before it is echoed, which is
//! when leadership has to move. Read [`server`] first; the rest is a command line, a load generator
//! for the demo, and printing.

mod load;
mod options;
mod server;
mod sys;
mod table;

use options::{Command, Options};
use paceline::{Error, Pool};
use server::Acceptor;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::ExitCode;
use std::time::Duration;

/// How long requests that are being handled at the end may take.
const DRAIN: Duration = Duration::from_secs(2);
/// How long the demo lasts.
const DEMO: Duration = Duration::from_secs(3);
/// Connections that the demo opens.
const CONNECTIONS: usize = 100;

fn main() -> ExitCode {
    let command = match options::parse() {
        Ok(command) => command,
        Err(error) => return fail(2, &error),
    };
    let done = match command {
        Command::Help => return options::help(),
        Command::Demo(options) => demo(&options),
        Command::Serve(address, options) => serve(address, &options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The pool checks what it was given: a flag's value was wrong.
        Err(Failure::Pool(error @ Error::Invalid { .. })) => fail(2, &error),
        Err(failure) => fail(1, &failure),
    }
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("echo: {error}");
    ExitCode::from(code)
}

fn serve(address: SocketAddr, options: &Options) -> Result<(), Failure> {
    // Before any thread is started, so that every thread inherits it.
    let signals = sys::block_signals(&[libc::SIGINT, libc::SIGTERM])?;
    let (pool, acceptor) = start(address, options)?;
    table::print_now(format_args!("listening on {}", acceptor.address()))?;
    sys::wait_for(&signals)?;
    finish(&pool, acceptor)
}

fn demo(options: &Options) -> Result<(), Failure> {
    let (pool, acceptor) = start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options)?;
    let seconds = DEMO.as_secs();
    table::print_now(format_args!(
        "echo server on {}; {CONNECTIONS} connections for {seconds} s, every {}th request takes 1 ms\n",
        acceptor.address(),
        load::ONE_SLOW_IN,
    ))?;
    let outcome = load::drive(acceptor.address(), CONNECTIONS, DEMO)?;
    table::print_now(&outcome)?;
    finish(&pool, acceptor)
}

fn start(address: SocketAddr, options: &Options) -> Result<(Pool, Acceptor), Failure> {
    let listener = TcpListener::bind(address).map_err(|error| Failure::Listen(address, error))?;
    // As many as the hard limit allows: each connection is a descriptor.
    sys::raise_open_files()?;
    let pool = options.builder().build()?;
    let acceptor = Acceptor::start(&pool, listener, options.slow)?;
    Ok((pool, acceptor))
}

/// Accepts no more, lets what was accepted end, and shows what each thread has done.
fn finish(pool: &Pool, acceptor: Acceptor) -> Result<(), Failure> {
    drop(acceptor);
    let report = pool.shutdown(DRAIN);
    table::print_now(table::Threads(&pool.stats()))?;
    if report.stuck.is_empty() { Ok(()) } else { Err(Failure::Stuck(report.stuck)) }
}

/// What can go wrong once the command line is understood.
#[derive(Debug)]
enum Failure {
    Listen(SocketAddr, std::io::Error),
    Pool(Error),
    Io(std::io::Error),
    Stuck(Vec<usize>),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen(address, error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                write!(f, "cannot listen on {address}: the port is in use")
            }
            Self::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::Pool(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::Stuck(threads) => write!(f, "handlers on threads {threads:?} have not returned"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Pool(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
