//! What a newcomer does: clones the repository, and types the commands of the README.
//!
//! Method: a clone of this working tree, and a shell that is given the lines of README.md that begin with `$ `, in
//! order. The lines below a command are what it prints. Numbers may differ, so each run of digits counts as one 0. So
//! may the order of lines, which come from several threads.
//!
//! Differences from what a newcomer types:
//!
//! - `cargo xtask test` is left out: this is a part of it; and so is what installs packages.
//! - The ports are free ones, in the programs, too.
//! - Programs that serve run in the background, where a newcomer has another terminal: what they say of their jobs is left
//!   out. They are ended, by SIGTERM, before the next one serves.
//! - The release profile does not optimize and has no debug information: the commands are tried, not their speed. For
//!   the same reason the clone's target directory is kept for the next run, and the clone has the times of the files
//!   that it was made from, so that cargo builds only what has changed.
#![cfg(not(loom))]

#[path = "common/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const PORTS: [&str; 2] = ["8080", "9090"];
const TESTS: &str = "cargo xtask test";
const PACKAGES: &str = "sudo apt-get install ";
/// The programs that the README shows, which serve.
const PROGRAMS: [&str; 4] = ["readme.rs", "c/readme.c", "cpp/readme.cpp", "python/readme.py"];
/// What they print for each request.
const JOB: &str = "a job: ";
/// Begins the line that the shell prints after a command, with the command's status.
const ENDED: &str = "the command has ended: ";

/// A line of the README that begins with `$ `, and what it shows below.
#[derive(Debug, PartialEq)]
struct Step<'a> {
    command: &'a str,
    printed: Vec<&'a str>,
}

impl Step<'_> {
    /// Whether it goes on until it is interrupted.
    fn serves(&self) -> bool {
        self.command.contains("readme")
    }
}

fn steps(readme: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut is_console = false;
    for line in readme.lines() {
        if let Some(language) = line.strip_prefix("```") {
            is_console = language == "console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            steps.push(Step { command, printed: Vec::new() });
        } else if is_console {
            steps.last_mut().expect("a command comes first").printed.push(line);
        }
    }
    steps
}

/// Whether a command has printed what is shown, numbers and the order of lines aside.
fn agree(shown: &[&str], printed: &[String]) -> bool {
    let comparable = |line: &str| {
        let mut text = line.replace(|c: char| c.is_ascii_digit(), "0");
        while text.contains("00") {
            text = text.replace("00", "0");
        }
        text
    };
    let mut shown: Vec<_> = shown.iter().map(|line| comparable(line)).collect();
    let mut printed: Vec<_> = printed.iter().map(|line| comparable(line)).collect();
    shown.sort();
    printed.sort();
    shown == printed
}

#[test]
fn what_is_shown_is_compared_without_its_numbers() {
    let readme = "\
        $ not in a block\n\
        ```console\n$ cargo build\n$ work --n 3\n12 of 3 done\nall\n```\n\
        ```text\n$ not a console\n```\n\
        ```console\n$ cargo run --example readme\nlistening\n```\n";
    let steps = steps(readme);
    let commands: Vec<_> = steps.iter().map(|step| step.command).collect();
    assert_eq!(commands, ["cargo build", "work --n 3", "cargo run --example readme"]);
    assert_eq!(steps[1].printed, ["12 of 3 done", "all"]);
    assert_eq!(steps.iter().map(Step::serves).collect::<Vec<_>>(), [false, false, true]);
    let agrees = |lines: &[&str]| {
        agree(&steps[1].printed, &lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>())
    };
    assert!(agrees(&["12 of 3 done", "all"]) && agrees(&["all", "7 of 1000 done"]));
    assert!(!agrees(&["12 of 3 begun", "all"]), "a word differs");
    assert!(!agrees(&["12 of 3 done"]), "a line is missing");
    assert!(!agrees(&["12 of 3 done", "all", "all"]), "a line too many");
    assert!(!agrees(&["12 of done", "all"]), "a number is missing");
}

#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn the_commands_of_the_readme_print_what_it_shows() {
    for tool in ["git", "bash", "cc", "c++", "curl", "python3", "stdbuf"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return skipped(format_args!("there is no {tool}"));
        }
    }
    let Some(clone) = cloned() else { return skipped("this is no clone of a repository") };
    let readme = fs::read_to_string(clone.join("README.md")).expect("it is there");
    let steps = steps(&readme);
    assert!(steps.iter().any(|step| step.command == TESTS), "the tests are not mentioned");
    let mut shell = Shell::start(&clone);
    for program in PROGRAMS {
        let path = clone.join("examples").join(program);
        let source = fs::read_to_string(&path).expect("a program of the README");
        fs::write(path, shell.with_free_ports(&source)).expect("it is the clone's");
    }
    let is_typed = |step: &&Step<'_>| step.command != TESTS && !step.command.starts_with(PACKAGES);
    let asks = steps.iter().find(|step| step.command.contains("curl -s")).expect("a request");
    // Each program is asked, not only the one that is asked there.
    for step in steps.iter().filter(is_typed).flat_map(|step| match step.serves() {
        true => vec![step, asks],
        false => vec![step],
    }) {
        let printed = shell.run(step);
        let errors = || fs::read_to_string(clone.join("target/errors")).unwrap_or_default();
        assert!(agree(&step.printed, &printed), "{step:#?} prints {printed:#?}\n{}", errors());
    }
}

/// Makes the clone anew. None: there is nothing to clone.
fn cloned() -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("newcomer");
    let (clone, target) = (place.join("paceline"), place.join("target"));
    fs::create_dir_all(&target).expect("a directory for builds");
    if clone.exists() {
        fs::remove_dir_all(&clone).expect("the clone of the last run goes");
    }
    git(ROOT, &["clone", "--quiet", ".", clone.to_str().expect("a path in UTF-8")])?;
    // What is not committed yet, as far as git knows the files.
    for changed in git(ROOT, &["diff", "--name-only", "--no-renames", "HEAD"])?.lines() {
        let (from, to) = (Path::new(ROOT).join(changed), clone.join(changed));
        if from.exists() {
            fs::create_dir_all(to.parent().expect("it is in the clone")).expect("its directory");
            fs::copy(from, to).expect("a changed file");
        } else {
            fs::remove_file(to).expect("a file that is gone");
        }
    }
    // Directories, too: cargo looks at the times of those that a build script names.
    let names = git(ROOT, &["ls-files"])?;
    let mut names: BTreeSet<&Path> =
        names.lines().flat_map(|name| Path::new(name).ancestors()).collect();
    names.remove(Path::new(""));
    for name in names {
        let time = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
        let (from, to) = (Path::new(ROOT).join(name), clone.join(name));
        if let (Some(modified), Ok(file)) = (time(&from), File::open(to)) {
            file.set_modified(modified).expect("the file is ours");
        }
    }
    symlink(target, clone.join("target")).expect("there is none in a clone");
    Some(clone)
}

fn git(directory: impl AsRef<Path>, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(directory).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).expect("paths in UTF-8"))
}

/// A shell in a group of processes of its own, which ends with this.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    ports: [String; 2],
}

impl Shell {
    fn start(directory: &Path) -> Shell {
        let listeners = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let port = |listener: &TcpListener| listener.local_addr().map(|at| at.port().to_string());
        let errors = File::create(directory.join("target/errors")).expect("a file for errors");
        let mut command = Command::new("bash");
        command.current_dir(directory).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        // What cargo has set for this test, or its caller for cargo, is not for a newcomer.
        for name in ["CARGO_TARGET_DIR", "CARGO_MANIFEST_DIR", "LD_LIBRARY_PATH", "RUSTFLAGS"] {
            command.env_remove(name);
        }
        command.envs([
            ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
            ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ]);
        let mut child = command.spawn().expect("bash starts");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut input = input.expect("it is piped");
        // What runs in the background is a group of its own, which can be ended.
        input.write_all(b"set -m\n").expect("the shell reads");
        Shell {
            child,
            input,
            output: BufReader::new(output.expect("it is piped")),
            ports: listeners.map(|listener| port(&listener).expect("it is bound")),
        }
    }

    fn with_free_ports(&self, text: &str) -> String {
        PORTS
            .iter()
            .zip(&self.ports)
            .fold(text.to_owned(), |text, (shown, free)| text.replace(shown, free))
    }

    /// What a command prints until it ends; of one that serves, as much as is shown. A status that is not 0 is a
    /// line, too.
    fn run(&mut self, step: &Step<'_>) -> Vec<String> {
        let command = self.with_free_ports(step.command);
        let ended = format!("printf '{ENDED}%s\\n' $?");
        // In braces, and not in parentheses, a command may set variables for those that follow.
        let line = match step.serves() {
            true => {
                let end = "[[ -z $served ]] || { kill -- -$served; wait $served; }";
                // Line by line, as at a terminal.
                let command =
                    format!("stdbuf -oL bash -c '{command}' | grep --line-buffered -v '^{JOB}'");
                format!("{end}; {{ {command}; {ended}; }} </dev/null & served=$!\n")
            }
            false => format!("{{ {command}; }} </dev/null; {ended}\n"),
        };
        self.input.write_all(line.as_bytes()).expect("the shell reads");
        let mut printed = Vec::new();
        while !step.serves() || printed.len() < step.printed.len() {
            let mut line = String::new();
            let size = self.output.read_line(&mut line).expect("the shell prints UTF-8");
            match line.trim_end_matches('\n').split_once(ENDED) {
                // The last line that a command prints may have no end.
                Some((rest, status)) => {
                    printed.extend((!rest.is_empty()).then(|| rest.to_owned()));
                    printed.extend((status != "0").then(|| format!("status {status}")));
                    break;
                }
                None if size == 0 => panic!("the shell has ended after {printed:#?}"),
                None => printed.push(line.trim_end_matches('\n').to_owned()),
            }
        }
        printed
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // What serves is in a group of its own. A shell that is busy with another command does not come to this.
        let _ = self.input.write_all(b"kill -- -$served; exit\n");
        for _ in 0..1000 {
            if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-TERM", "--", &group]).status();
        let _ = self.child.wait();
    }
}
