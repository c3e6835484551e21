//! The echo server: its command line, and that it holds out against clients that mean it no good.

use crate::kit::{KINDS, Kind, Server, Stream, eventually, fill, is_over, printed, run};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// More bytes than the kernel keeps for both ends of a connection.
const FLOOD: usize = 64 << 20;
/// The first byte of a slow request.
const SLOW: u8 = 0xBB;

#[test]
fn echo_without_arguments_shows_leadership_moving() {
    // A machine that is starved may run one thread only for as long as the demo lasts.
    let moved = (0..10).any(|_| {
        let text = printed(run("echo", &[]));
        assert!(text.contains("every byte came back"), "{text}");
        assert!(text.contains("p50") && text.contains("p99.9"), "{text}");
        let table = Table::find_in(&text);
        assert!(table.rows.len() >= 2, "{text}");
        assert!(table.sum("led") > 0 && table.sum("handled") > 0, "{text}");
        table.sum("hand-overs") > 0
    });
    assert!(moved, "leadership has never changed hands");
}

#[test]
fn echo_serves_with_every_flag() {
    let flags = "--threads 4 --leaders 2 --promotion eager --watch-us 500 --pin none --slow sleep";
    let server = Server::start(Kind::Tcp, "echo", &flags.split(' ').collect::<Vec<_>>());
    let mut client = server.connect();
    assert_echo(&mut client, b"hello");
    assert_echo(&mut client, &[SLOW; 64]);
    drop(client);
    let table = Table::find_in(&server.stop("TERM"));
    assert_eq!(table.rows.len(), 4);
    assert!(table.sum("handled") >= 2);
}

#[test]
fn echo_ends_well_on_either_signal_even_with_clients() {
    for kind in KINDS {
        for signal in ["INT", "TERM"] {
            let server = Server::start(kind, "echo", &["--threads", "2"]);
            let mut client = server.connect();
            assert_echo(&mut client, b"still here");
            let table = Table::find_in(&server.stop(signal));
            assert_eq!(table.rows.len(), 2, "{signal}");
            assert!(is_over(&mut client), "{signal}: the connection is closed");
        }
    }
}

#[test]
fn slow_requests_burn_cpu_time_unless_they_sleep() {
    const REQUESTS: u64 = 100;
    let used = |how| {
        let server = Server::start(Kind::Tcp, "echo", &["--threads", "2", "--slow", how]);
        let mut client = server.connect();
        (0..REQUESTS).for_each(|_| assert_echo(&mut client, &[SLOW, 1, 2, 3]));
        server.cpu_time()
    };
    let (burnt, slept) = (used("burn"), used("sleep"));
    // What the kernel tells is rounded down twice, to steps of 10 ms.
    assert!(burnt + Duration::from_millis(20) > Duration::from_millis(REQUESTS), "burnt {burnt:?}");
    assert!(slept < burnt, "slept {slept:?}, burnt {burnt:?}");
}

#[test]
fn bad_flags_end_with_one_line_and_code_2() {
    for line in [
        "--bogus",
        "extra",
        "--threads",
        "--threads many",
        "--threads 0",
        "--threads 1025",
        "--threads 2 --threads 3",
        "--threads 2 --leaders 2",
        "--leaders 0",
        "--promotion sometimes",
        "--watch-us 1",
        "--pin nowhere",
        "--pin 99999",
        "--slow fast",
        "--listen nowhere",
        "--listen 127.0.0.1:0 --listen 127.0.0.1:0",
    ] {
        let output = run("echo", &line.split(' ').collect::<Vec<_>>());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        assert!(errors.starts_with("echo: ") && errors.lines().count() == 1, "{line}: {errors}");
        assert!(output.stdout.is_empty(), "{line}: {output:?}");
    }
}

#[test]
fn an_address_in_use_is_called_that() {
    for kind in KINDS {
        let server = Server::start(kind, "echo", &[]);
        let output = run("echo", &["--listen", &server.address]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let expected = format!("echo: cannot listen on {}: Address already in use", server.address);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.starts_with(&expected) && errors.lines().count() == 1, "{errors}");
    }
}

#[test]
fn a_client_that_reads_late_gets_everything_in_order() {
    for kind in KINDS {
        let server = Server::start(kind, "echo", &["--threads", "2"]);
        let mut writer = server.connect();
        let mut reader = writer.try_clone().expect("a socket can be cloned");
        let bytes: Vec<u8> =
            (0..FLOOD / 4).flat_map(|n| (n as u32 & 0x7fff_ffff).to_be_bytes()).collect();
        let (full, filled) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                writer.set_nonblocking(true).expect("a socket can be made non-blocking");
                let sent = fill(&mut writer, &bytes);
                assert!(sent < FLOOD, "nothing has stopped the flood");
                writer.set_nonblocking(false).expect("a socket can be made blocking");
                full.send(()).expect("the reader waits for this");
                writer.write_all(&bytes[sent..]).expect("the server reads on");
                writer.shutdown(Shutdown::Write).expect("the connection is open");
            });
            filled.recv().expect("the writer says when buffers are full");
            let mut back = Vec::with_capacity(FLOOD);
            reader.read_to_end(&mut back).expect("the server sends everything, then closes");
            assert!(back == bytes, "{} bytes came back", back.len());
        });
    }
}

#[test]
fn a_client_that_never_reads_costs_neither_memory_nor_cpu_time() {
    for kind in KINDS {
        let server = Server::start(kind, "echo", &["--threads", "2"]);
        let mut other = server.connect();
        assert_echo(&mut other, b"warm");
        let before = server.allocated();
        let mut rude = server.connect();
        rude.set_nonblocking(true).expect("a socket can be made non-blocking");
        let sent = fill(&mut rude, &vec![1; FLOOD]);
        assert!(sent < FLOOD, "nothing has stopped the flood");
        let grown = server.allocated().saturating_sub(before);
        // With room for huge pages. A server that keeps what it has read has all of it.
        assert!(grown < FLOOD / 8, "{grown} bytes for a client that took nothing of {sent}");
        let used = server.cpu_time();
        thread::sleep(Duration::from_millis(500));
        let used = server.cpu_time() - used;
        assert!(used < Duration::from_millis(100), "used {used:?} while nothing happened");
        assert_echo(&mut other, b"the others do not notice");
    }
}

#[test]
fn garbage_and_resets_leave_nothing_behind() {
    for kind in KINDS {
        let server = Server::start(kind, "echo", &["--threads", "2"]);
        let mut other = server.connect();
        assert_echo(&mut other, b"first");
        let before = server.open_files();
        for round in 0..100u8 {
            let mut client = server.connect();
            // Closed with an echo unread, a socket resets its connection.
            client.write_all(&[round; 1000]).expect("the server reads");
            assert_echo(&mut other, &[round; 10]);
        }
        eventually("all descriptors are closed", || server.open_files() == before);
    }
}

#[test]
fn half_closed_connections_are_answered_and_closed() {
    for kind in KINDS {
        let server = Server::start(kind, "echo", &["--threads", "2"]);
        for size in [1, 100, 32 * 1024, 100_000] {
            let mut client = server.connect();
            let bytes = vec![7; size];
            client.write_all(&bytes).expect("the server reads");
            client.shutdown(Shutdown::Write).expect("the connection is open");
            let mut back = Vec::new();
            client.read_to_end(&mut back).expect("the server answers, then closes");
            assert!(back == bytes, "{} of {size} bytes came back", back.len());
        }
    }
}

#[test]
fn without_descriptors_the_server_waits_for_some_instead_of_spinning() {
    for kind in KINDS {
        let echo = super::example("echo");
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -n 32 && exec \"$0\" \"$@\""]).arg(echo).args(["--threads", "2"]);
        let server = Server::spawn(kind, shell);
        let clients: Vec<_> = (0..64).map(|_| server.connect()).collect();
        eventually("it has run out of them", || server.open_files() >= 32);
        let used = server.cpu_time();
        thread::sleep(Duration::from_millis(500));
        let used = server.cpu_time() - used;
        assert!(used < Duration::from_millis(100), "used {used:?} while nothing could be accepted");
        // The others wait in the backlog until the first have gone.
        for (number, mut client) in clients.into_iter().enumerate() {
            assert_echo(&mut client, &number.to_le_bytes());
        }
    }
}

/// The table that the echo server prints at its end.
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn find_in(text: &str) -> Self {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut lines = text.lines().map(words);
        let is_head = |line: &Vec<String>| line.first().is_some_and(|word| word == "thread");
        let columns = lines.find(is_head).unwrap_or_else(|| panic!("no table in {text}"));
        Self { columns, rows: lines.collect() }
    }

    fn sum(&self, column: &str) -> u64 {
        let place = self.columns.iter().position(|name| name == column);
        let place = place.unwrap_or_else(|| panic!("no column {column}"));
        self.rows.iter().map(|row| row[place].parse::<u64>().expect("a number")).sum()
    }
}

fn assert_echo(client: &mut Stream, bytes: &[u8]) {
    client.write_all(bytes).expect("the server reads");
    let mut back = vec![0; bytes.len()];
    client.read_exact(&mut back).expect("the server answers");
    assert_eq!(back, bytes);
}
