//! What every server among the examples needs around it: flags, signals, and how it ends.

use lexopt::ValueExt;
use paceline::net::{Address, ToAddress};
use paceline::{Builder, Pool, Signals};
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

pub type Failure = Box<dyn std::error::Error>;

/// Turns the outcome into what the shell sees: one line, and 2 for a command line that makes no sense.
pub fn exit(name: &str, outcome: Result<(), Failure>) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    eprintln!("{name}: {error}");
    // What the library refuses as invalid came from a flag.
    let library: Option<&paceline::Error> = error.downcast_ref();
    let invalid = matches!(library, Some(paceline::Error::Invalid { .. }));
    ExitCode::from(if error.is::<lexopt::Error>() || invalid { 2 } else { 1 })
}

/// Gives a flag the value that follows it. Twice the same flag is a contradiction.
pub fn set<T>(
    flag: &str,
    place: &mut Option<T>,
    read: fn(&str) -> Result<T, String>,
    parser: &mut lexopt::Parser,
) -> Result<(), lexopt::Error> {
    let text = parser.value()?.string()?;
    let value =
        read(&text).map_err(|allowed| format!("--{flag} is {text:?}, but must be {allowed}"))?;
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("--{flag} is given twice").into()),
    }
}

pub fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "a number".into())
}

pub fn address(text: &str) -> Result<Address, String> {
    text.to_address().map_err(|error| match error {
        paceline::Error::Invalid { allowed, .. } => allowed,
        other => other.to_string(),
    })
}

/// Prints a line and sees to it that whoever reads the other end of a pipe gets it now.
pub fn print_now(line: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// As many descriptors as the hard limit allows, since each connection is one.
pub fn raise_open_files() -> io::Result<()> {
    rlimit::increase_nofile_limit(u64::MAX).map(drop)
}

/// Says where the server listens, and waits until it is interrupted.
pub fn serve_until_interrupted(pool: &Pool, addresses: &[Address]) -> Result<(), Failure> {
    let signals = Signals::new(pool, &[libc::SIGINT, libc::SIGTERM], |_| ())?;
    addresses.iter().try_for_each(|address| print_now(format_args!("listening on {address}")))?;
    signals.wait();
    Ok(())
}

/// A pool that only its own threads drive, so many if that was said.
pub fn pool(threads: Option<usize>) -> Builder {
    let builder = Pool::builder().max_joined(0);
    match threads {
        Some(threads) => builder.threads(threads),
        None => builder,
    }
}
