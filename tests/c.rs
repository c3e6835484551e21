//! The C interface, by programs in C: each in `tests/c` runs with the shared library, and must end well. With `--ignored`, each
//! is checked by the other compilers that are here, and some run with the static library.
#![cfg(all(feature = "capi", not(loom)))]

#[path = "common/mod.rs"]
mod common;
#[path = "common/header.rs"]
mod header;
#[path = "resp/kit.rs"]
mod kit;
#[path = "resp/same.rs"]
mod same;
#[path = "resp/table.rs"]
#[allow(dead_code, reason = "some commands are not in C")]
mod table;

use common::skipped;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::{env, fs, thread};
use table::COMMANDS;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const COMPILERS: [&str; 2] = ["gcc", "clang"];
const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wundef"];
const C_WARNINGS: [&str; 2] = ["-Wstrict-prototypes", "-Wc++-compat"];

/// How a program finds the library.
#[derive(Clone, Copy, Debug)]
enum Link {
    Shared,
    Static,
}

/// One test per program.
macro_rules! programs {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            run(stringify!($name), Link::Shared);
        })*

        mod elsewhere {
            $(#[test]
            #[ignore = "it takes long: cargo xtask test all"]
            fn $name() {
                super::run_elsewhere(stringify!($name));
            })*
        }

        /// Goal: no program is forgotten above.
        #[test]
        fn every_program_is_run() {
            let named = BTreeSet::from([$(stringify!($name).to_owned()),*]);
            let files = fs::read_dir(Path::new(ROOT).join("tests/c")).unwrap();
            let names = files.map(|file| file.unwrap().path()).filter(|path| {
                path.extension().is_some_and(|extension| extension == "c")
            });
            let there: BTreeSet<_> =
                names.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
            assert_eq!(named, there);
        }
    };
}

programs! { abuse status pool task strand handle timer ring queue host stats layout matrix random
server conn filter framing http inherited udp fork_net random_net random_hub
requests workers hub hostile_hub hostile_log hostile_bridge outside log cq bridge durable turns }

/// Programs that run with the static library, too. It has the same code, and to link it takes longer than all else here: a
/// plain program, one that forks, and the parts with code of others (SQLite, TLS, the client of NATS).
const STATIC: [&str; 5] = ["task", "inherited", "server", "log", "bridge"];

fn run(name: &str, link: Link) {
    let Some(first) = compilers(&COMPILERS).first().copied() else { return };
    let program = compile(first, name, link);
    let output = succeeds(&mut Command::new(&program));
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines.lines().filter_map(|line| line.strip_prefix("skipped: ")).for_each(skipped);
    fs::remove_file(program).expect("it was made above");
}

/// The library is the same, whoever calls it: one compiler makes the program that runs, the others check it.
fn run_elsewhere(name: &str) {
    compilers(&COMPILERS).iter().skip(1).for_each(|compiler| check(compiler, name));
    if STATIC.contains(&name) {
        run(name, Link::Static);
    }
}

fn compile(compiler: &str, name: &str, link: Link) -> PathBuf {
    let program = scratch(&format!("c-{}-{compiler}-{link:?}", name.replace('/', "-")));
    let mut command = strict(compiler, name);
    succeeds(command.args(["-g", "-O1", "-o"]).arg(&program).args(library(link)));
    program
}

fn check(compiler: &str, name: &str) {
    succeeds(strict(compiler, name).arg("-fsyntax-only"));
}

fn strict(compiler: &str, name: &str) -> Command {
    let source = Path::new(ROOT).join(format!("tests/c/{name}.c"));
    let mut command = Command::new(compiler);
    command.args(["-std=c11", "-D_GNU_SOURCE"]).args(WARNINGS).args(C_WARNINGS);
    command.arg("-I").arg(Path::new(ROOT).join("include")).arg(source);
    command
}

/// Cargo puts all kinds of the library beside the tests.
fn library(link: Link) -> Vec<String> {
    let test = env::current_exe().expect("a test has a path");
    let beside = test.parent().expect("a test is in a directory").display().to_string();
    let arguments = match link {
        Link::Shared => {
            vec![
                format!("-L{beside}"),
                "-lpaceline".into(),
                format!("-Wl,--disable-new-dtags,-rpath,{beside}"),
            ]
        }
        // Without the library's debug information, which is many times what is run.
        Link::Static => vec![format!("{beside}/libpaceline.a"), "-Wl,--strip-debug".into()],
    };
    arguments.into_iter().chain(["-lpthread", "-ldl", "-lm"].map(str::to_owned)).collect()
}

/// An example, built by the line that its head shows.
fn build_example(name: &str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    // Others may run it already, so it is built once.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built.entry(name.to_owned()).or_insert_with(|| compile_example(name)).clone()
}

fn compile_example(name: &str) -> PathBuf {
    let path = format!("examples/c/{name}.c");
    let source = fs::read_to_string(Path::new(ROOT).join(&path)).expect("an example");
    let line = source.lines().find_map(|line| line.strip_prefix(" *     cc ")).expect("its line");
    let beside = env::current_exe().unwrap().parent().unwrap().display().to_string();
    let program = scratch(&format!("example-{name}"));
    let line = line.replace("target/release", &beside);
    let (arguments, output) = line.rsplit_once(" -o ").expect("it says where to");
    assert_eq!((arguments.split(' ').next(), output), (Some(&*path), name));
    let mut command = Command::new("cc");
    command.current_dir(ROOT).args(["-Wall", "-Wextra", "-Werror"]);
    succeeds(command.args(arguments.split(' ')).arg("-o").arg(&program));
    program
}

fn printed(output: Output) -> String {
    String::from_utf8(output.stdout).expect("examples print UTF-8")
}

#[test]
fn examples_print_what_those_in_rust_do() {
    if compilers(&["cc"]).is_empty() {
        return;
    }
    let run = |name| printed(succeeds(&mut Command::new(build_example(name))));
    assert_eq!(
        run("hello"),
        "a task says 42\n\
         ten tasks say [1, 4, 9, 16, 25, 36, 49, 64, 81, 100]\n\
         a timer says that 20 ms have passed: true\n\
         drained: true, the books balance: true\n"
    );
    assert_eq!(
        run("ring"),
        "station  readings  lowest    mean highest\n\
         harbour    100000     8.0    14.0    20.0\n\
         airport    100000     5.0    11.0    17.0\n\
         summit     100000    -9.0    -3.0     3.0\n"
    );
    assert_eq!(
        run("worker"),
        "status       tasks\n\
         COMPLETED       95\n\
         FAILED           4\n\
         TIMED_OUT        1\n\
         the squares add up to 312524\n\
         4 failed, because there is no such number\n\
         attempts that were followed by another: 93\n\
         the periodic task ran at least 3 times\n\
         clean-up: the backend is told goodbye\n\
         drained: true, stuck: 0\n\
         the books balance: true\n"
    );
    assert_eq!(
        run("hub"),
        "the roof may not publish for the room: true\n\
         drained: true\n\
         \u{20}          matched  delivered   dead  restarts\n\
         adds          2000       2000      0         0\n\
         alarm           24         24      0         0\n\
         checks        2000       1998      2         0\n\
         the display has lost some: true\n\
         it was told of each: true\n\
         the sum is 19048, and there were 24 alarms\n\
         dead letter of temperature.roof after 2 attempts: colder than cold can be\n\
         dead letter of temperature.room after 2 attempts: colder than cold can be\n\
         the books balance: true\n"
    );
    assert_eq!(
        run("hub_history"),
        "archives: yes\n\
         replayed: order 1, order 2, order 3, order 4\n\
         the last two: order 3, order 4\n\
         recorded: true\n"
    );
    let game = run("embed");
    assert!(game.ends_with("game over after 3 ticks and 1 message\n"), "{game}");
}

#[test]
fn the_echo_server_in_c_echoes() {
    if compilers(&["cc"]).is_empty() {
        return;
    }
    let mut command = Command::new(build_example("echo"));
    command.args(["--listen", "127.0.0.1:0", "--threads", "2"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the example starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("it says where it listens");
    let address = line.trim().strip_prefix("listening on ").expect("an address").to_owned();
    let clients = (0..20).map(|number: u8| {
        let address = address.clone();
        thread::spawn(move || {
            let mut client = TcpStream::connect(address).expect("it accepts");
            client.set_read_timeout(Some(common::PATIENCE)).unwrap();
            for size in [1, 100, 70_000] {
                let (sent, mut back) = (vec![number; size], vec![0; size]);
                client.write_all(&sent).expect("it reads");
                client.read_exact(&mut back).expect("it answers");
                assert!(sent == back);
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    clients.into_iter().for_each(|client| client.join().expect("all came back"));
    let kill = format!("kill -TERM {}", child.id());
    succeeds(Command::new("sh").args(["-c", &kill]));
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("it prints UTF-8");
    assert!(child.wait().expect("our child").success());
    assert!(rest.contains("handled"), "{rest}");
}

#[test]
fn the_store_in_c_replies_as_the_table_says() {
    if compilers(&["cc"]).is_empty() {
        return;
    }
    let _guard = common::hang_guard();
    let program = build_example("resp");
    for spawn in [kit::Server::spawn, kit::Server::spawn_unix] {
        let server = spawn(&program, &["--threads", "2"]);
        same::assert_replies(&server, &[COMMANDS]);
        assert_eq!(server.stop(), "drained: true\n");
    }
}

#[test]
fn requests_of_http_end_the_connection_to_the_store_in_c() {
    if compilers(&["cc"]).is_empty() {
        return;
    }
    let _guard = common::hang_guard();
    let server = kit::Server::spawn(&build_example("resp"), &["--threads", "2"]);
    same::assert_http_is_refused(&server);
    assert_eq!(server.stop(), "drained: true\n");
}

#[test]
fn it_does_not_matter_where_requests_to_the_store_in_c_are_cut() {
    if compilers(&["cc"]).is_empty() {
        return;
    }
    let _guard = common::hang_guard();
    let server = kit::Server::spawn_unix(&build_example("resp"), &["--threads", "2"]);
    same::assert_cuts_do_not_matter(&server, &[COMMANDS]);
    assert_eq!(server.stop(), "drained: true\n");
}

#[test]
fn hostile_clients_harm_nobody_at_the_store_in_c() {
    if compilers(&["cc"]).is_empty() {
        return;
    }
    let _guard = common::hang_guard();
    let server = kit::Server::spawn(&build_example("resp"), &["--threads", "2"]);
    same::assert_holds_out(&server);
    assert_eq!(server.stop(), "drained: true\n");
}

/// Goal: the two stores are one to their clients. Method: garbage that comes near requests, the same to both.
#[test]
fn the_stores_in_c_and_in_rust_reply_alike_to_garbage() {
    if compilers(&["cc"]).is_empty() {
        return;
    }
    let _guard = common::hang_guard();
    let one = kit::Server::spawn(&build_example("resp"), &["--threads", "2"]);
    let other = kit::Server::start(&["--threads", "2"]);
    for seed in 1000..3000 {
        let stream = same::garbage_of(seed);
        let [one, other] = [&one, &other].map(|server| same::replies_to(server, &stream));
        let stream = stream.escape_ascii();
        assert_eq!(one.escape_ascii().to_string(), other.escape_ascii().to_string(), "{stream}");
    }
}

#[test]
fn the_store_in_c_replies_as_redis_does() {
    if compilers(&["cc"]).is_empty() || !kit::is_installed("redis-server") {
        return;
    }
    let _guard = common::hang_guard();
    let server = kit::Server::spawn(&build_example("resp"), &["--threads", "2"]);
    same::assert_replies_are_those_of_redis(&server, &[COMMANDS]);
    assert_eq!(server.stop(), "drained: true\n");
}

/// Those that are here. A test says what it leaves out.
fn compilers<'a>(wanted: &'a [&'a str]) -> Vec<&'a str> {
    let is_here = |name: &&&str| {
        let here =
            Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
        if !here {
            skipped(format_args!("there is no {name}"));
        }
        here
    };
    wanted.iter().filter(is_here).copied().collect()
}

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[track_caller]
fn succeeds(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
    output
}

/// Goal: no call reads or writes what it must not, and nothing is lost. Method: valgrind's memcheck,
/// which must also complain of a program that does so on purpose.
#[test]
#[ignore = "it takes long: cargo xtask test all"]
fn memcheck_finds_only_the_seeded_fault() {
    if compilers(&["gcc", "valgrind"]).len() < 2 {
        return;
    }
    let memcheck = |name: &str| {
        let program = compile("gcc", name, Link::Shared);
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=9", "--errors-for-leak-kinds=definite"]);
        // Without this, a thread that spins may keep the one that it waits for from running.
        command.arg("--fair-sched=try");
        command.arg("--leak-check=full").arg(&program).arg("valgrind");
        let output = command.output().expect("valgrind starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for name in [
        "task", "handle", "queue", "cq", "server", "conn", "http", "udp", "filter", "requests",
        "workers", "hub", "log", "bridge", "durable",
    ] {
        let (code, errors) = memcheck(name);
        assert_eq!(code, Some(0), "{name}:\n{errors}");
    }
    let (code, errors) = memcheck("faults/used_after_free");
    assert_eq!(code, Some(9), "valgrind sees nothing:\n{errors}");
}

/// Goal: no header adds a warning to anybody's program, and each can be included alone. Method: each language version
/// of each compiler, with each header alone and twice.
#[test]
fn each_header_compiles_everywhere() {
    let c = ["c99", "c11", "c17", "c2x"];
    let cpp = ["c++17", "c++20", "c++2b"];
    let topics = header::C.topics().into_iter().map(|topic| format!("paceline/{topic}.h"));
    let headers: Vec<_> = topics.chain(["paceline.h".to_owned()]).collect();
    let sources: Vec<_> = headers
        .iter()
        .map(|header| {
            let source = scratch(&format!("header-{}.c", header.replace('/', "-")));
            let line = format!("#include <{header}>\n");
            fs::write(&source, line.repeat(2)).expect("the scratch directory can be written to");
            source
        })
        .collect();
    assert!(sources.len() > 10, "{headers:?}");
    let languages = [("c", &["gcc", "clang"], &c[..]), ("c++", &["g++", "clang++"], &cpp[..])];
    for (language, names, standards) in languages {
        for compiler in compilers(names) {
            for standard in standards {
                let mut command = Command::new(compiler);
                command.args(["-x", language, &format!("-std={standard}"), "-fsyntax-only"]);
                command.args(WARNINGS).arg("-I").arg(Path::new(ROOT).join("include"));
                if language == "c" {
                    command.args(C_WARNINGS);
                }
                succeeds(command.args(&sources));
            }
        }
    }
}

/// Goal: what the header declares is what the library has, and nothing else gets out of it.
#[test]
fn exports_are_the_functions_of_the_header() {
    if compilers(&["nm"]).is_empty() {
        return;
    }
    let test = env::current_exe().unwrap();
    let library = test.with_file_name("libpaceline.so");
    let output = succeeds(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let text = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<_> =
        text.lines().filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect();
    assert_eq!(exported, declared_functions());
}

/// `type pace_name(` at the beginning of a line.
fn declared_functions() -> BTreeSet<String> {
    let header = header::C.whole();
    let is_declaration = |line: &&str| {
        line.starts_with(|c: char| c.is_ascii_alphabetic()) && !line.starts_with("typedef")
    };
    let name = |line: &str| {
        let before = line.split_once('(')?.0;
        let name = before.rsplit([' ', '*']).next()?;
        name.starts_with("pace_").then(|| name.to_owned())
    };
    header.lines().filter(is_declaration).filter_map(name).collect()
}

/// Goal: the program at the head of the header is one. Method: it is taken out, compiled and run.
#[test]
fn the_program_in_the_header_runs() {
    let header = include_str!("../include/paceline.h");
    let lines = header.lines().take_while(|line| !line.starts_with(" * THREADS."));
    let code: Vec<_> = lines.filter_map(|line| line.strip_prefix(" *     ")).collect();
    let source = scratch("overview.c");
    fs::write(&source, code.join("\n") + "\n").unwrap();
    for compiler in compilers(&COMPILERS) {
        let program = scratch(&format!("overview-{compiler}"));
        let mut command = Command::new(compiler);
        command.args(["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-I"]);
        command.arg(Path::new(ROOT).join("include")).arg(&source).arg("-o").arg(&program);
        succeeds(command.args(library(Link::Shared)));
        let output = succeeds(&mut Command::new(&program));
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, "the task says 42\nhello\nthe counters balance\n");
    }
}
