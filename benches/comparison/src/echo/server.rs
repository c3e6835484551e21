//! How the echo servers are started.

use std::env;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use crate::options::Plan;
use crate::process::{self, Process};
use crate::serve::Slow;

/// How a peer's server is started.
#[derive(Clone)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<String>,
}

/// The C++ servers that the build found the packages for.
const PROGRAMS: [(&str, Option<&str>); 3] = [
    ("asio", option_env!("PROGRAM_echo_asio")),
    ("libuv", option_env!("PROGRAM_echo_libuv")),
    ("ace", option_env!("PROGRAM_echo_ace")),
];

/// How to start `peer`; `None` for a C++ one that was not built.
pub fn launch(peer: &str, plan: &Plan) -> io::Result<Option<Launch>> {
    if let Some((_, program)) = PROGRAMS.iter().find(|(name, _)| *name == peer) {
        return Ok(program.map(|path| Launch { program: path.into(), arguments: Vec::new() }));
    }
    let launch = match peer {
        "paceline" | "paceline-eager" => {
            let mut arguments = plan.echo_args.clone();
            if peer == "paceline-eager" {
                arguments.extend(["--promotion".into(), "eager".into()]);
            }
            Launch { program: paceline_echo(plan)?, arguments }
        }
        rival => {
            Launch { program: env::current_exe()?, arguments: vec!["serve".into(), rival.into()] }
        }
    };
    Ok(Some(launch))
}

/// The example `echo`, given or built.
fn paceline_echo(plan: &Plan) -> io::Result<PathBuf> {
    match &plan.echo_program {
        Some(program) => Ok(program.into()),
        None => process::example("echo"),
    }
}

/// A started server and where it listens.
pub struct Server {
    pub process: Process,
    pub address: SocketAddr,
}

impl Server {
    pub fn start(launch: &Launch, threads: usize, slow: Slow) -> io::Result<Self> {
        let (slow, _) = Slow::ALL.into_iter().find(|known| known.1 == slow).expect("all are there");
        let mut command = Command::new(&launch.program);
        command.args(&launch.arguments).args(["--listen", "127.0.0.1:0", "--slow", slow]);
        command.args(["--threads", &threads.to_string()]);
        let mut process = Process::start(command)?;
        let address = process.announced()?;
        Ok(Self { process, address })
    }
}
