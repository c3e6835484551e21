//! An echo server on a pool whose threads take turns leading.
//!
//! ```text
//! cargo run --release -p examples --example echo                             # the demo: drives itself, prints what happened
//! cargo run --release -p examples --example echo -- --listen 127.0.0.1:7000  # serves until SIGINT or SIGTERM
//! ```
//!
//! A request whose first byte is 0xBB is slow: it takes a millisecond before it is echoed, which is
//! when leadership has to move. Read [`server`] first; the rest is a command line, a load generator
//! for the demo, and printing.

#[path = "../common/mod.rs"]
mod common;
mod load;
mod options;
mod server;
mod sys;
mod table;

use common::{Failure, print_now};
use options::{Command, Options};
use paceline::Pool;
use paceline::net::{Address, Server};
use server::Echo;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::Duration;

/// How long requests that are being handled at the end may take.
const DRAIN: Duration = Duration::from_secs(5);
/// How long the demo lasts.
const DEMO: Duration = Duration::from_secs(3);
/// Connections that the demo opens.
const CONNECTIONS: usize = 100;

fn main() -> ExitCode {
    common::exit("echo", run())
}

fn run() -> Result<(), Failure> {
    match options::parse()? {
        Command::Help => Ok(print_now(options::HELP)?),
        Command::Demo(options) => demo(&options),
        Command::Serve(address, options) => serve(address, &options),
    }
}

fn serve(address: Address, options: &Options) -> Result<(), Failure> {
    common::raise_open_files()?;
    let (pool, server) = start(address, options)?;
    common::serve_until_interrupted(&pool, server.addresses())?;
    finish(&pool, &server)
}

fn demo(options: &Options) -> Result<(), Failure> {
    let (pool, server) = start(Address::Tcp((Ipv4Addr::LOCALHOST, 0).into()), options)?;
    let address = &server.addresses()[0];
    let seconds = DEMO.as_secs();
    print_now(format_args!(
        "echo server on {address}; {CONNECTIONS} connections for {seconds} s, every {}th request takes 1 ms\n",
        load::ONE_SLOW_IN,
    ))?;
    let address = address.tcp().expect("the demo listens on TCP");
    print_now(load::drive(address, CONNECTIONS, DEMO)?)?;
    finish(&pool, &server)
}

fn start(address: Address, options: &Options) -> Result<(Pool, Server), Failure> {
    let pool = options.builder().build()?;
    let slow = options.slow;
    let server = Server::builder(&pool).listen(address).serve(move |_| Echo(slow))?;
    Ok((pool, server))
}

/// Accepts no more, lets what has come be answered, and shows what each thread has done.
fn finish(pool: &Pool, server: &Server) -> Result<(), Failure> {
    let drained = server.drain(DRAIN).drained;
    let stuck = pool.shutdown(Duration::ZERO).stuck;
    print_now(table::Threads(&pool.stats()))?;
    match drained && stuck.is_empty() {
        true => Ok(()),
        false => Err(format!("not everybody was through; stuck threads: {stuck:?}").into()),
    }
}
