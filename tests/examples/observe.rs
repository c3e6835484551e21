//! The service to look at: its page shows what blocks and what lags.

use super::kit::eventually;
use super::program;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The body of an answer, and its status.
fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a time");
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it writes UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    (head[9..12].parse().expect("a status"), body.to_owned())
}

#[test]
fn the_page_shows_what_lags_and_what_blocks() {
    if super::is_missing() {
        return;
    }
    let mut child = program("observe")
        .args(["127.0.0.1:0", "127.0.0.1:0"])
        // As under a service manager: that it has no input does not end it.
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut address = |prefix: &str| {
        let line = lines.next().expect("a line").expect("UTF-8");
        let rest = line.strip_prefix(prefix).unwrap_or_else(|| panic!("{line}"));
        rest.split('/').next().expect("an address").to_owned()
    };
    let page = address("the live page: http://");
    let server = address("the server: http://");
    assert_eq!(get(&server, "/hello"), (200, "hello\n".into()));
    assert!(get(&page, "/").1.contains("<title>paceline</title>"));

    let mut feed = TcpStream::connect(&page).expect("it listens");
    feed.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
    let mut events = BufReader::new(feed).lines().map_while(Result::ok).filter_map(|line| {
        line.strip_prefix("data: ").map(|data| serde_json::from_str::<Value>(data).expect("JSON"))
    });
    let asked = std::thread::spawn(move || get(&server, "/slow"));
    let (mut lags, mut blocks, mut works) = (false, false, false);
    eventually("the page shows all of it", || {
        let event = events.next().expect("the feed goes on");
        let waiting = event["figures"]["waiting"].as_array().expect("a list");
        lags |= waiting.iter().any(|one| one["name"] == "orders.*");
        blocks |= !event["blocked"].as_array().expect("a list").is_empty();
        works |= event["figures"]["cards"]["tasks"]["rate"].as_f64().is_some_and(|it| it > 0.0);
        lags && blocks && works
    });
    assert_eq!(asked.join().expect("it was answered"), (200, "at last\n".into()));
    let kill = format!("kill -TERM {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("there is a shell").success());
    assert!(child.wait().expect("it ends").success());
}
