//! What systemd is told, by a process that believes to be its service.
#![cfg(all(feature = "systemd", feature = "http", feature = "metrics"))]

mod common;

use common::{hang_guard, skipped, until};
use paceline::Pool;
use paceline::admin::Service;
use paceline::ops::Ops;
use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::{env, fs, process};

/// Set in the process that is the service.
const ROLE: &str = "PACELINE_TEST_SERVICE";

/// Is asked again and again: it is well three times, not well three times, and then well again.
fn be_the_service() {
    let pool = Pool::builder().threads(1);
    let (log, told) = common::log_of_events("info");
    let pool = pool.log(&log);
    let pool = pool.build().unwrap();
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let is_well = move || !(3..6).contains(&count.fetch_add(1, SeqCst));
    let service = Service::start(&pool, is_well).unwrap();
    assert!(service.status("two\nlines").unwrap_err().to_string().contains("one line"));
    until("it was asked", || asked.load(SeqCst) >= 8);
    drop(service);
    let at_the_end = asked.load(SeqCst);
    service_is_over(&pool);
    assert_eq!(asked.load(SeqCst), at_the_end, "nobody asks any more");
    {
        use paceline::log::{Component, Level};
        log.flush(common::LONG).unwrap();
        let mut told = told.lock().unwrap().clone();
        told.retain(|(component, ..)| *component == Component::Service);
        // The timer may come before READY.
        told.sort_by_key(|(_, _, event)| *event != "service.ready");
        let expected = [
            (Level::Info, "service.ready"),
            (Level::Error, "service.not_well"),
            (Level::Info, "service.well"),
            (Level::Info, "service.stopping"),
        ];
        assert_eq!(told, expected.map(|(level, event)| (Component::Service, level, event)));
    }
}

/// Whatever a timer of the pool had to do before, it has done.
fn service_is_over(pool: &Pool) {
    let report = pool.shutdown(common::LONG);
    assert!(report.drained);
}

/// Its only thread computes until the gate is opened. It says so, waits for a line of its parent's, and is watched with
/// a limit that is soon over from then on.
fn compute_as_a_service() {
    let pool = Pool::builder().threads(1).build().unwrap();
    let gate = common::Gate::new();
    let service = Service::start(&pool, || true).unwrap();
    let visitor = gate.clone();
    pool.post(move || visitor.wait()).unwrap();
    gate.until_entered(1);
    service.status("computing").unwrap();
    let line = |what: &str| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), what);
    };
    line("starve");
    let limit = std::time::Duration::from_millis(100);
    let _ops = Ops::builder(&pool).ready_after(limit).dead_after(limit).build().unwrap();
    line("go on");
    gate.open();
    line("end");
    drop(service);
    service_is_over(&pool);
}

/// Goal: a pool that computes for longer than the watchdog's time is not ended, unless something waits for longer than
/// `dead_after`. Method: as below; what waits is the question whether it is well.
#[test]
fn a_pool_that_computes_is_fed_and_one_that_starves_is_not() {
    let _guard = hang_guard();
    if env::var_os(ROLE).is_some() {
        return compute_as_a_service();
    }
    let path: PathBuf = env::temp_dir().join(format!("paceline-computes-{}", process::id()));
    let _from_before = fs::remove_file(&path);
    let manager = UnixDatagram::bind(&path).unwrap();
    let mut service = Command::new(env::current_exe().unwrap())
        .args(["--exact", "a_pool_that_computes_is_fed_and_one_that_starves_is_not"])
        .env(ROLE, "1")
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "4000")
        .env_remove("WATCHDOG_PID")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut says = service.stdin.take().unwrap();
    let until = |state: &str| while heard(&manager) != state {};
    until("STATUS=computing");
    for _ in 0..100 {
        assert_eq!(heard(&manager), "WATCHDOG=1");
    }
    writeln!(says, "starve").unwrap();
    until("STATUS=not well: the watchdog is not fed");
    writeln!(says, "go on").unwrap();
    assert_eq!(heard(&manager), "WATCHDOG=1\nSTATUS=well again", "nothing is told before");
    writeln!(says, "end").unwrap();
    until("STOPPING=1");
    assert!(service.wait().unwrap().success());
    fs::remove_file(&path).unwrap();
}

/// What came in one datagram, without the last line's end.
fn heard(socket: &UnixDatagram) -> String {
    let mut room = [0; 512];
    let size = socket.recv(&mut room).unwrap();
    String::from_utf8(room[..size].to_vec()).unwrap().trim_end().to_owned()
}

/// Goal: READY, the watchdog as long as the answer is yes, and STOPPING, in this order. Method: the same
/// program, started once more, with the environment that systemd gives to services.
#[test]
fn it_is_told_that_the_process_is_ready_lives_and_stops() {
    let _guard = hang_guard();
    if env::var_os(ROLE).is_some() {
        return be_the_service();
    }
    // An abstract address: containers have such a one.
    let name = format!("paceline-systemd-{}", process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let manager = UnixDatagram::bind_addr(&address).unwrap();
    let path = format!("@{name}");
    let mut service = Command::new(env::current_exe().unwrap())
        .args(["--exact", "it_is_told_that_the_process_is_ready_lives_and_stops"])
        .env(ROLE, "1")
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "4000")
        .env_remove("WATCHDOG_PID")
        .spawn()
        .unwrap();
    let mut all: Vec<String> = Vec::new();
    while all.last().is_none_or(|last| last != "STOPPING=1") {
        all.push(heard(&manager));
    }
    assert!(service.wait().unwrap().success());
    // The timer may come before READY.
    let ready = all.iter().position(|state| state == "READY=1").expect("it is ready");
    all.remove(ready);
    let fed = "WATCHDOG=1";
    // The answers are told, and so is the last one again in between.
    let times = all.iter().take_while(|state| *state == fed).count();
    assert!(times >= 3, "{all:?}");
    all.dedup();
    let status = "STATUS=not well: the watchdog is not fed";
    let again = "WATCHDOG=1\nSTATUS=well again";
    assert_eq!(all, [fed, status, again, fed, "STOPPING=1"], "{times}");
}

/// Goal: a program that systemd has not started runs as it does. (The tests' own environment may have a socket:
/// then this tells it, which harms nobody.)
#[test]
fn without_systemd_nothing_happens() {
    let _guard = hang_guard();
    if env::var_os("NOTIFY_SOCKET").is_some() {
        return skipped("systemd has started the tests");
    }
    let pool = Pool::builder().threads(1).build().unwrap();
    let service = Service::start(&pool, || panic!("nobody asks")).unwrap();
    service.status("fine").unwrap();
    drop(service);
    service_is_over(&pool);
}
