//! The command line.

use crate::common::{self, address, number, set};
use crate::server::Slow;
use lexopt::Arg::{Long, Short};
use paceline::net::Address;
use paceline::{Builder, Pin, Promotion};
use std::time::Duration;

pub const HELP: &str = "\
An echo server on a pool whose threads take turns leading.

Usage: echo [FLAGS]                 drives itself for some seconds and prints what happened
       echo --listen ADDR [FLAGS]   serves until SIGINT or SIGTERM, then prints what happened

  --listen ADDR       where to listen, like 127.0.0.1:7000; port 0 takes a free one
  --threads N         threads of the pool; default: one per CPU, but at least 2
  --leaders N         handle sets, each with one leader at a time; less than the threads
  --promotion WHEN    deferred (leadership is offered) or eager (a thread is woken to lead)
  --watch-us N        how often the watch looks for stuck work, in microseconds
  --pin WHERE         none, compact, spread, or a list of CPUs like 0,2,4-7
  --slow HOW          what a request that begins with 0xBB does: burn 1 ms of CPU, sleep 1 ms, or wait 50 ms
                      for a database
  --help              this text";

pub enum Command {
    Help,
    Demo(Options),
    Serve(Address, Options),
}

/// What the flags say about the pool and the server. `None` leaves it to the pool.
pub struct Options {
    threads: Option<usize>,
    leaders: Option<usize>,
    promotion: Option<Promotion>,
    watch_period: Option<Duration>,
    pin: Option<Pin>,
    pub slow: Slow,
}

impl Options {
    /// The pool that the flags ask for. Only its own threads drive it.
    pub fn builder(&self) -> Builder {
        let mut builder = common::pool(Some(self.threads())).name("echo");
        if let Some(leaders) = self.leaders {
            builder = builder.leaders(leaders);
        }
        if let Some(promotion) = self.promotion {
            builder = builder.promotion(promotion);
        }
        if let Some(period) = self.watch_period {
            builder = builder.watch_period(period);
        }
        if let Some(pin) = &self.pin {
            builder = builder.pin(pin.clone());
        }
        builder
    }

    /// Leadership cannot move among less than two.
    fn threads(&self) -> usize {
        let cpus = std::thread::available_parallelism().map_or(2, usize::from);
        self.threads.unwrap_or(cpus.max(2))
    }
}

pub fn parse() -> Result<Command, lexopt::Error> {
    let mut parser = lexopt::Parser::from_env();
    let (mut listen, mut slow) = (None, None);
    let (mut threads, mut leaders, mut promotion) = (None, None, None);
    let (mut watch_us, mut pin) = (None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => set("listen", &mut listen, address, &mut parser)?,
            Long("threads") => set("threads", &mut threads, number, &mut parser)?,
            Long("leaders") => set("leaders", &mut leaders, number, &mut parser)?,
            Long("promotion") => set("promotion", &mut promotion, when, &mut parser)?,
            Long("watch-us") => set("watch-us", &mut watch_us, number, &mut parser)?,
            Long("pin") => set("pin", &mut pin, place, &mut parser)?,
            Long("slow") => set("slow", &mut slow, how, &mut parser)?,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    let options = Options {
        threads,
        leaders,
        promotion,
        watch_period: watch_us.map(|micros| Duration::from_micros(micros as u64)),
        pin,
        slow: slow.unwrap_or(Slow::Burn),
    };
    Ok(match listen {
        Some(address) => Command::Serve(address, options),
        None => Command::Demo(options),
    })
}

fn when(text: &str) -> Result<Promotion, String> {
    match text {
        "deferred" => Ok(Promotion::Deferred),
        "eager" => Ok(Promotion::Eager),
        _ => Err("deferred or eager".into()),
    }
}

fn place(text: &str) -> Result<Pin, String> {
    text.parse().map_err(|_| "none, compact, spread or a list of CPUs like 0,2,4-7".into())
}

fn how(text: &str) -> Result<Slow, String> {
    match text {
        "burn" => Ok(Slow::Burn),
        "sleep" => Ok(Slow::Sleep),
        "database" => Ok(Slow::Database),
        _ => Err("burn, sleep or database".into()),
    }
}
