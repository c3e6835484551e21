//! redis-server beside ours, and redis-cli and redis-benchmark, unchanged.

use crate::common::hang_guard;
use crate::kit::{Server, is_installed};
use crate::same;
use crate::table::{COMMANDS, MORE_COMMANDS};
use std::io::Write;
use std::process::{Command, Stdio};

fn cli(server: &Server, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["-p", &server.port()]).args(arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("redis-cli starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn replies_are_those_of_redis() {
    if !is_installed("redis-server") {
        return;
    }
    let _guard = hang_guard();
    let server = Server::start(&["--threads", "2"]);
    same::assert_replies_are_those_of_redis(&server, &[COMMANDS, MORE_COMMANDS]);
}

#[test]
fn redis_cli_works() {
    if !is_installed("redis-cli") {
        return;
    }
    let _guard = hang_guard();
    let server = Server::start(&["--threads", "2"]);
    assert_eq!(cli(&server, &["SET", "key", "two words"], ""), "OK\n");
    assert_eq!(cli(&server, &["GET", "key"], ""), "two words\n");
    let script = "lpush l a b c\nlrange l 0 -1\nhset h f v\nhgetall h\nget nothing\n";
    assert_eq!(cli(&server, &[], script), "3\nc\nb\na\n1\nf\nv\n\n");
    let help = cli(&server, &["COMMAND", "DOCS", "hgetall"], "");
    assert_eq!(help, "hgetall\nsummary\nAnswers a hash\ngroup\nhash\n");
    assert_eq!(cli(&server, &["-x", "SET", "piped"], "value"), "OK\n");
    assert_eq!(cli(&server, &["-r", "3", "INCR", "n"], ""), "1\n2\n3\n");
    assert!(cli(&server, &["INFO", "server"], "").contains("server_name:paceline"));
    let mass = cli(&server, &["--pipe"], "SET a 1\r\nINCR a\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n");
    assert!(mass.contains("errors: 0, replies: 3"), "{mass}");
}

#[test]
fn redis_benchmark_works() {
    if !is_installed("redis-benchmark") {
        return;
    }
    let _guard = hang_guard();
    let server = Server::start(&["--threads", "2"]);
    let port = server.port();
    let tests = "ping,set,get,incr,lpush,rpush,lpop,rpop,hset,lrange_100,mset";
    for depth in ["1", "16"] {
        let mut command = Command::new("redis-benchmark");
        command.args(["-p", &port, "-q", "-n", "2000", "-P", depth, "-r", "100", "-t", tests]);
        let output = command.output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        for test in ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "LPUSH", "RPUSH", "LPOP"] {
            let done = text.split(['\r', '\n']).any(|line| {
                line.starts_with(&format!("{test}: ")) && line.contains("requests per second")
            });
            assert!(done, "{test} with -P {depth}: {text}");
        }
        assert!(text.contains("MSET (10 keys): "), "{text}");
        assert!(!text.contains("Error"), "{text}");
    }
}
