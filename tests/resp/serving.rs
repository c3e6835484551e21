//! The server with raw clients.

use crate::common::{hang_guard, until};
use crate::kit::{Client, Server, encoded, example, socket_path};
use crate::same;
use crate::table::{COMMANDS, MORE_COMMANDS};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread;

#[test]
fn replies_are_those_of_the_table() {
    let _guard = hang_guard();
    for server in [Server::start, |flags: &[&str]| Server::spawn_unix(&example(), flags)] {
        same::assert_replies(&server(&["--threads", "2"]), &[COMMANDS, MORE_COMMANDS]);
    }
}

#[test]
fn it_does_not_matter_where_requests_are_cut() {
    let _guard = hang_guard();
    let server = Server::spawn_unix(&example(), &["--threads", "2"]);
    same::assert_cuts_do_not_matter(&server, &[COMMANDS, MORE_COMMANDS]);
}

#[test]
fn hostile_clients_harm_nobody() {
    let _guard = hang_guard();
    same::assert_holds_out(&Server::start(&["--threads", "2"]));
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let _guard = hang_guard();
    let server = Server::start(&["--threads", "2"]);
    let mut client = server.connect();
    let set = encoded(&[b"SET", b"key", b"a value that is longer than one in place"]);
    let stream = [&set[..], b"INCR n\r\n", &encoded(&[b"GET", b"key"]), b"foo\n"].concat();
    for byte in &stream {
        client.send(std::slice::from_ref(byte));
    }
    assert_eq!(client.reply(), b"+OK\r\n");
    assert_eq!(client.reply(), b":1\r\n");
    assert_eq!(client.reply(), b"$40\r\na value that is longer than one in place\r\n");
    assert!(client.reply().starts_with(b"-ERR unknown command 'foo'"));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let _guard = hang_guard();
    const REQUESTS: usize = 20_000;
    let server = Server::start(&["--threads", "2"]);
    let mut client = server.connect();
    let text: Vec<String> = (0..REQUESTS).map(|number| number.to_string()).collect();
    let stream: Vec<u8> =
        text.iter().flat_map(|number| encoded(&[b"ECHO", number.as_bytes()])).collect();
    client.send(&stream);
    for number in &text {
        assert_eq!(client.reply(), format!("${}\r\n{number}\r\n", number.len()).as_bytes());
    }
}

#[test]
fn big_values_come_back_and_are_freed() {
    let _guard = hang_guard();
    const SIZE: usize = 40 << 20;
    const ROUNDS: u64 = 6;
    let server = Server::start(&["--threads", "2"]);
    let mut client = server.connect();
    assert_eq!(client.say("PING"), b"+PONG\r\n");
    let value = vec![b'v'; SIZE];
    let expected = [format!("${SIZE}\r\n").as_bytes(), &value, b"\r\n"].concat();
    let mut round = || {
        assert_eq!(client.ask(&[b"SET", b"big", &value]), b"+OK\r\n");
        assert!(client.ask(&[b"GET", b"big"]) == expected);
        assert_eq!(client.say("DEL big"), b":1\r\n");
    };
    // The allocator may keep some of what was freed.
    round();
    let before = server.allocated();
    (0..ROUNDS).for_each(|_| round());
    let grown = server.allocated().saturating_sub(before);
    assert!(grown < ROUNDS / 2 * SIZE as u64, "{grown} bytes");
}

#[test]
fn many_arguments_are_one_request() {
    let _guard = hang_guard();
    const KEYS: usize = 50_000;
    let server = Server::start(&["--threads", "2"]);
    let mut client = server.connect();
    let names: Vec<String> = (0..KEYS).map(|number| format!("key:{number}")).collect();
    let pairs = names.iter().flat_map(|name| [name.as_bytes(), name.as_bytes()]);
    let request: Vec<&[u8]> = [&b"MSET"[..]].into_iter().chain(pairs).collect();
    assert_eq!(client.ask(&request), b"+OK\r\n");
    assert_eq!(client.say("DBSIZE"), format!(":{KEYS}\r\n").as_bytes());
    assert_eq!(client.say("GET key:49999"), b"$9\r\nkey:49999\r\n");
}

/// Goal: a client that asks for more than it reads costs no memory beyond what the output may hold.
/// Method: it asks for 512 MiB, and reads only later; then everything comes.
#[test]
fn a_client_that_reads_late_holds_up_only_itself() {
    let _guard = hang_guard();
    const VALUE: usize = 1 << 20;
    const TIMES: usize = 512;
    let server = Server::start(&["--threads", "2"]);
    let mut other = server.connect();
    assert_eq!(other.ask(&[b"SET", b"v", &vec![b'x'; VALUE]]), b"+OK\r\n");
    let before = server.peak();
    let mut client = server.connect();
    client.send(&encoded(&[b"GET", b"v"]).repeat(TIMES));
    // Answered after what was asked before, or without waiting for it: either way it is.
    (0..100).for_each(|_| assert_eq!(other.say("PING"), b"+PONG\r\n"));
    for _ in 0..TIMES {
        assert_eq!(client.reply().len(), "$1048576\r\n".len() + VALUE + 2);
    }
    let grown = server.peak().saturating_sub(before);
    assert!(grown < (TIMES * VALUE / 8) as u64, "{grown} bytes for a client that reads late");
}

#[test]
fn commands_of_many_clients_are_one_after_the_other() {
    let _guard = hang_guard();
    const CLIENTS: usize = 8;
    const TIMES: usize = 2000;
    let server = Server::start(&["--threads", "2"]);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let mut client = server.connect();
            scope.spawn(move || {
                client.send(&encoded(&[b"INCR", b"n"]).repeat(TIMES));
                (0..TIMES).for_each(|_| assert_eq!(client.reply()[0], b':'));
            });
        }
    });
    let total = (CLIENTS * TIMES).to_string();
    let expected = format!("${}\r\n{total}\r\n", total.len());
    assert_eq!(server.connect().say("GET n"), expected.as_bytes());
}

/// Goal: MSET and MGET are one step each, whatever shards their keys are in. Method: many keys are set
/// to one number again and again, and the first and the last are never seen to differ.
#[test]
fn several_keys_change_at_once() {
    let _guard = hang_guard();
    const KEYS: usize = 500;
    const TIMES: usize = 1000;
    let server = Server::start(&["--threads", "2"]);
    let set = |number: usize| {
        (0..KEYS).fold("MSET".to_owned(), |line, key| line + &format!(" key:{key} {number}"))
    };
    assert_eq!(server.connect().say(&set(0)), b"+OK\r\n");
    thread::scope(|scope| {
        let mut writer = server.connect();
        scope.spawn(move || {
            (0..TIMES).for_each(|number| assert_eq!(writer.say(&set(number)), b"+OK\r\n"));
        });
        let mut reader = server.connect();
        scope.spawn(move || {
            for _ in 0..TIMES {
                let reply = String::from_utf8(reader.say("MGET key:499 key:0")).expect("numbers");
                let values: Vec<&str> = reply.lines().skip(2).step_by(2).collect();
                assert!(values.len() == 2 && values[0] == values[1], "{values:?}");
            }
        });
    });
}

#[test]
fn keys_expire_when_they_are_met_and_when_they_are_not() {
    let _guard = hang_guard();
    let server = Server::start(&["--threads", "1"]);
    let mut client = server.connect();
    for number in 0..1000 {
        // Set twice: the first deadline is one that means nothing any more.
        assert_eq!(client.say(&format!("SET key:{number} v EX 1000")), b"+OK\r\n");
        assert_eq!(client.say(&format!("PEXPIRE key:{number} 100")), b":1\r\n");
    }
    assert_eq!(client.say("SET met v PX 30"), b"+OK\r\n");
    let mut expired = 1001;
    until("one is kept in time", || {
        assert_eq!(client.say("SET kept v PX 30"), b"+OK\r\n");
        let is_kept = client.say("PERSIST kept") == b":1\r\n";
        expired += u32::from(!is_kept);
        is_kept
    });
    until("it has expired", || client.say("GET met") == b"$-1\r\n");
    until("the others are swept", || client.say("DBSIZE") == b":1\r\n");
    assert_eq!(client.say("GET kept"), b"$1\r\nv\r\n");
    let info = String::from_utf8(client.say("INFO stats")).expect("text");
    assert!(info.contains(&format!("expired_keys:{expired}\r\n")), "{info}");
}

#[test]
fn info_counts_clients_and_commands() {
    let _guard = hang_guard();
    let server = Server::start(&["--threads", "2"]);
    let mut clients: Vec<_> = (0..5).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.say("PING"), b"+PONG\r\n"));
    let info = |client: &mut Client| String::from_utf8(client.say("INFO")).expect("text");
    let text = info(&mut clients[0]);
    assert!(text.contains("connected_clients:5\r\n"), "{text}");
    assert!(text.contains("total_commands_processed:5\r\n"), "{text}");
    assert_eq!(clients[1].say("SET a b EX 100"), b"+OK\r\n");
    let text = info(&mut clients[0]);
    assert!(text.contains("db0:keys=1,expires=1,avg_ttl=0\r\n"), "{text}");
    clients.truncate(1);
    until("they are gone", || info(&mut clients[0]).contains("connected_clients:1\r\n"));
    assert_eq!(clients[0].say("QUIT"), b"+OK\r\n");
    assert_eq!(clients[0].rest(), b"");
    // The server waits a while for a peer that it has told the end.
    drop(clients);
    let text = server.stop();
    assert_eq!(text, "5 connections, drained: true\n");
}

#[test]
fn unix_sockets_are_served_too() {
    let _guard = hang_guard();
    let path = socket_path();
    let listen = format!("unix:{}", path.display());
    let mut command = Command::new(example());
    let mut child = command.args(["--listen", &listen]).stdout(Stdio::null()).spawn().unwrap();
    until("it listens", || UnixStream::connect(&path).is_ok());
    let mut client = Client::new(UnixStream::connect(&path).unwrap());
    assert_eq!(client.say("PING"), b"+PONG\r\n");
    assert_eq!(client.say("CONFIG GET port"), b"*2\r\n$4\r\nport\r\n$1\r\n0\r\n");
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn bad_flags_end_with_one_line_and_code_2() {
    for line in
        ["--bogus", "extra", "--threads", "--threads many", "--threads 0", "--listen nowhere"]
    {
        let output = Command::new(example()).args(line.split(' ')).output().expect("it starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        assert!(errors.starts_with("resp: ") && errors.lines().count() == 1, "{line}: {errors}");
    }
    let server = Server::start(&[]);
    let listen = ["--listen", &server.address];
    let output = Command::new(example()).args(listen).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn requests_of_http_end_the_connection() {
    let _guard = hang_guard();
    same::assert_http_is_refused(&Server::start(&["--threads", "2"]));
}
