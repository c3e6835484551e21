//! Measures paceline beside its rivals: one interleaved run, one table of medians, and the bars
//! that paceline must reach. README.md beside this crate says how to run it and how it measures.

mod bridge;
mod cq;
mod durable;
mod echo;
mod http;
mod hub;
mod machine;
mod options;
mod process;
mod queue;
mod render;
mod report;
mod resp;
mod scale;
mod serve;
mod size;
mod stats;
mod submit;
mod sys;
mod tasks;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use lexopt::prelude::*;
use serde_json::json;

use options::Plan;
use report::Results;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(reason)) => {
            eprintln!("comparison: {reason}\n{}", options::USAGE);
            ExitCode::from(2)
        }
        Err(Failure::Run(reason)) => {
            eprintln!("comparison: {reason}");
            ExitCode::FAILURE
        }
    }
}

enum Failure {
    Usage(String),
    Run(String),
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        Failure::Usage(error.to_string())
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Failure::Run(reason)
    }
}

fn run() -> Result<(), Failure> {
    let mut parser = lexopt::Parser::from_env();
    let command = match parser.next()? {
        Some(Value(command)) => command.string()?,
        Some(Long("help") | Short('h')) => {
            println!("{}", options::USAGE);
            return Ok(());
        }
        Some(other) => return Err(other.unexpected().into()),
        None => return Err(Failure::Usage("say what to compare".into())),
    };
    match command.as_str() {
        "serve" => serve(parser),
        name @ "echo" => compare(name, parser, Duration::from_secs(1), echo::run),
        name @ "submit" => compare(name, parser, Duration::from_millis(250), submit::run),
        "serve-http" => serve_http(parser),
        name @ "http" => compare(name, parser, Duration::from_secs(2), http::run),
        "serve-resp" => resp::floor::serve()
            .map_err(|error| Failure::Run(format!("the floor of resp: {error}"))),
        name @ "resp" => compare(name, parser, Duration::from_secs(1), resp::run),
        "serve-delayed" => serve_delayed(parser),
        name @ "tasks" => compare(name, parser, Duration::from_millis(250), tasks::run),
        name @ "hub" => compare(name, parser, Duration::from_millis(500), hub::run),
        name @ "bridge" => compare(name, parser, Duration::from_millis(500), bridge::run),
        name @ "cq" => compare(name, parser, Duration::from_millis(250), cq::run),
        name @ "queue" => compare(name, parser, Duration::from_millis(250), queue::run),
        name @ "durable" => compare(name, parser, Duration::from_secs(1), durable::run),
        name @ "scale" => compare(name, parser, Duration::from_secs(1), scale::run),
        name @ "size" => compare(name, parser, Duration::from_secs(1), size::run),
        "work-durable" => work_durable(parser),
        "render" => render(parser),
        other => Err(Failure::Usage(format!("no comparison {other:?}"))),
    }
}

/// The worker's process of `durable`.
fn work_durable(mut parser: lexopt::Parser) -> Result<(), Failure> {
    let url = parser.value()?.string()?;
    let count = parser.value()?.parse()?;
    Ok(durable::work(&url, count, parser.value()?.into())?)
}

fn compare(
    name: &str,
    parser: lexopt::Parser,
    window: Duration,
    measure: fn(&Plan, &mut Results) -> Result<(), String>,
) -> Result<(), Failure> {
    let plan = Plan::parse(parser, window)?;
    let mut results = Results::default();
    if plan.list {
        return Ok(measure(&plan, &mut results)?);
    }
    sys::raise_open_files(20_000).map_err(|error| format!("open files: {error}"))?;
    let machine = machine::description();
    println!("{}", report::pretty(&machine, 0));
    println!("{} rounds, windows of {:?}, medians\n", plan.rounds, plan.window);
    let before = machine::round_trip();
    let neighbours = machine::Neighbours::now();
    let outcome = measure(&plan, &mut results);
    let share = neighbours.share_since();
    let after = machine::round_trip();
    if let (Some(before), Some(after)) = (before, after) {
        let what = "from one processor to another and back";
        println!("a word went {what} in {before:.0} ns before, and in {after:.0} ns after");
    }
    println!("other processes used {share:.0} % of the machine's CPU time meanwhile");
    if let Some(file) = &plan.json {
        let (scenarios, bars) = results.json();
        let round_trips = [before, after].map(|ns| ns.map(|ns| ns.round() as u64));
        let run = json!({
            "comparison": name,
            "machine": machine,
            "quick": plan.quick,
            "rounds": plan.rounds,
            "seconds of a window": plan.window.as_secs_f64(),
            "ns from one processor to another and back": round_trips,
            "percent of CPU time used by others": share.round() as u64,
            "scenarios": scenarios,
            "bars": bars,
        });
        let text = report::pretty(&run, 0) + "\n";
        fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(outcome?)
}

/// Writes the page beside the directory that the files are in, and the pictures into it; prints the guide's table.
fn render(mut parser: lexopt::Parser) -> Result<(), Failure> {
    let mut files = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Value(file) => files.push(PathBuf::from(file)),
            _ => return Err(argument.unexpected().into()),
        }
    }
    let directory = files.first().and_then(|file| file.parent()?.parent());
    let directory = directory.ok_or(Failure::Usage("render docs/benchmarks/*.json".into()))?;
    let runs = render::read(&files)?;
    println!("The table of docs/GUIDE.md:\n\n{}", render::scale(&runs)?);
    for (name, text) in render::render(&runs)? {
        let file = directory.join(name);
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

/// The child process of the echo comparison.
fn serve(mut parser: lexopt::Parser) -> Result<(), Failure> {
    let name: String = parser.value()?.string()?;
    let mut address = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut options = serve::Options { threads: 2, slow: serve::Slow::Burn };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => address = parser.value()?.parse()?,
            Long("threads") => options.threads = parser.value()?.parse()?,
            Long("slow") => {
                let name = parser.value()?.string()?;
                let known = serve::Slow::ALL.into_iter().find(|known| known.0 == name);
                let no_such = || Failure::Usage(format!("no such --slow {name:?}"));
                options.slow = known.ok_or_else(no_such)?.1;
            }
            _ => return Err(argument.unexpected().into()),
        }
    }
    serve::run(&name, address, options).map_err(|error| Failure::Run(format!("{name}: {error}")))
}

/// The child process of the http comparison.
fn serve_http(mut parser: lexopt::Parser) -> Result<(), Failure> {
    let name: String = parser.value()?.string()?;
    let mut address = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut threads = 1;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => address = parser.value()?.parse()?,
            Long("threads") => threads = parser.value()?.parse()?,
            _ => return Err(argument.unexpected().into()),
        }
    }
    http::serve::run(&name, address, threads)
        .map_err(|error| Failure::Run(format!("{name}: {error}")))
}

/// The child process of the tasks comparison.
fn serve_delayed(mut parser: lexopt::Parser) -> Result<(), Failure> {
    let name: String = parser.value()?.string()?;
    let quick = parser.value()?.string()? == "quick";
    tasks::delayed::serve(&name, quick).map_err(Failure::Run)
}
