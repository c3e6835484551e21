//! The command line.

use lexopt::Arg::{Long, Short};
use lexopt::ValueExt;
use std::process::ExitCode;

const HELP: &str = "\
A store in memory that speaks the protocol of Redis. Serves until SIGINT or SIGTERM.

Usage: resp [FLAGS]

  --listen ADDR       where to listen: an address and a port (0 takes a free one), or unix:PATH;
                      default 127.0.0.1:6380
  --threads N         threads of the pool; default: one per CPU
  --help              this text
";

pub struct Options {
    pub listen: String,
    pub threads: usize,
}

pub fn help() -> ExitCode {
    print!("{HELP}");
    ExitCode::SUCCESS
}

/// None: help is wanted.
pub fn parse() -> Result<Option<Options>, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let mut listen = "127.0.0.1:6380".to_owned();
    let mut threads = std::thread::available_parallelism().map_or(1, usize::from);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => listen = parser.value()?.string()?,
            Long("threads") => {
                let text = parser.value()?.string()?;
                let wrong = || format!("--threads is {text:?}, but must be a number");
                threads = text.parse().map_err(|_| wrong())?;
            }
            Long("help") | Short('h') => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(Options { listen, threads }))
}
