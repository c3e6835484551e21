//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;

pub const USAGE: &str = "\
usage: comparison echo|http|resp|submit|tasks|hub|queue|cq|bridge|durable|scale|size [options]
       comparison render FILE...   docs/BENCHMARKS.md and its pictures from such JSON files in docs/benchmarks
  --rounds N        rounds of the interleaved run (default 9; 1 with --quick)
  --seconds S       length of one measured window (default 1 for echo and resp, 2 for http, 0.5 for hub and bridge, else 0.25)
  --scenario NAME   only this scenario; may be given several times
  --only A,B        only these peers
  --quick           a smoke run of a few seconds; its figures mean nothing
  --json FILE       write every round's figures and the bars there, too
  --list            print the names of the scenarios and peers
echo only:
  --echo PATH       the paceline echo program (default: build the example and use it)
  --echo-args ARGS  more arguments for it, e.g. \"--pin none\"";

/// What to measure and how long.
pub struct Plan {
    pub rounds: usize,
    pub window: Duration,
    pub quick: bool,
    pub list: bool,
    pub json: Option<PathBuf>,
    pub echo_program: Option<String>,
    pub echo_args: Vec<String>,
    scenarios: Vec<String>,
    only: Vec<String>,
}

impl Plan {
    /// Reads the options; `window` is the default length of a window.
    pub fn parse(mut parser: lexopt::Parser, window: Duration) -> Result<Self, lexopt::Error> {
        let mut plan = Plan {
            rounds: 0,
            window: Duration::ZERO,
            quick: false,
            list: false,
            json: None,
            echo_program: None,
            echo_args: Vec::new(),
            scenarios: Vec::new(),
            only: Vec::new(),
        };
        while let Some(argument) = parser.next()? {
            match argument {
                Long("rounds") => plan.rounds = parser.value()?.parse()?,
                Long("seconds") => plan.window = seconds(&parser.value()?.string()?)?,
                Long("scenario") => plan.scenarios.push(parser.value()?.string()?),
                Long("only") => plan.only = words(&parser.value()?.string()?, ','),
                Long("quick") => plan.quick = true,
                Long("json") => plan.json = Some(parser.value()?.into()),
                Long("list") => plan.list = true,
                Long("echo") => plan.echo_program = Some(parser.value()?.string()?),
                Long("echo-args") => plan.echo_args = words(&parser.value()?.string()?, ' '),
                _ => return Err(argument.unexpected()),
            }
        }
        if plan.rounds == 0 {
            plan.rounds = if plan.quick { 1 } else { 9 };
        }
        if plan.window.is_zero() {
            plan.window = if plan.quick { Duration::from_millis(100) } else { window };
        }
        Ok(plan)
    }

    /// The scenarios to run, of `all`; a quick run takes those of `quick`. A name that does not
    /// exist is an error.
    pub fn scenarios<'a>(
        &self,
        all: &[&'a str],
        quick: &[&'a str],
    ) -> Result<Vec<&'a str>, String> {
        let default = if self.quick { quick } else { all };
        choose(&self.scenarios, all, default, "scenario")
    }

    pub fn peers<'a>(&self, all: &[&'a str]) -> Result<Vec<&'a str>, String> {
        choose(&self.only, all, all, "peer")
    }
}

fn choose<'a>(
    asked: &[String],
    all: &[&'a str],
    default: &[&'a str],
    kind: &str,
) -> Result<Vec<&'a str>, String> {
    if let Some(unknown) = asked.iter().find(|name| !all.contains(&name.as_str())) {
        return Err(format!("no {kind} {unknown:?} here; there are: {}", all.join(", ")));
    }
    let from = if asked.is_empty() { default } else { all };
    let wanted = |name: &&&str| asked.is_empty() || asked.iter().any(|a| a == **name);
    Ok(from.iter().filter(wanted).copied().collect())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("--seconds {text:?} is not a number"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(window) if (0.01..=60.0).contains(&seconds) => Ok(window),
        _ => Err("--seconds must be between 0.01 and 60".to_owned()),
    }
}

fn words(text: &str, separator: char) -> Vec<String> {
    text.split(separator).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
