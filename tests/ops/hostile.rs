//! Viewers and clients that misbehave.

use super::client::{Events, connect, get};
use super::common::{hang_guard, until};
use paceline::ops::Ops;
use paceline::{Pin, Pool};
use serde_json::Value;
use std::io::Write;

fn pool() -> Pool {
    Pool::builder().threads(2).pin(Pin::None).build().unwrap()
}

fn viewers(ops: &Ops) -> u64 {
    let stats: Value = serde_json::from_str(&get(&ops.addresses()[0], "/stats.json").body).unwrap();
    stats["viewers"].as_u64().unwrap()
}

#[test]
fn a_ninth_viewer_is_refused_until_another_leaves() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    let mut eight: Vec<_> = (0..8).map(|_| Events::open(at, "/events").ok().unwrap()).collect();
    assert!(matches!(Events::open(at, "/events"), Err(503)));
    assert_eq!(viewers(&ops), 8);
    eight.pop();
    until("one has left", || viewers(&ops) < 8);
    let _again = Events::open(at, "/events").ok().unwrap();
}

#[test]
fn a_thousand_connections_cost_the_watched_pool_nothing() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    let before = pool.audit().accepted;
    let mut open = Vec::new();
    for number in 0..1000 {
        let mut stream = connect(at);
        let rude: &[u8] = match number % 4 {
            0 => b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n",
            1 => b"GET /stats.json HTT",
            2 => b"\x16\x03\x01\x02\x00\x01\x00",
            _ => b"",
        };
        // It may be turned away already.
        let _gone = stream.write_all(rude);
        open.push(stream);
    }
    assert_eq!(pool.audit().accepted, before, "the watched pool was given work");
    assert!(pool.submit(|| 7).unwrap().wait().is_ok_and(|seven| seven == 7));
    drop(open);
    until("it answers again", || {
        let answered = std::panic::catch_unwind(|| get(at, "/health/live").status);
        answered.is_ok_and(|status| status == 200)
    });
}

/// One who never reads is sent away, and holds up nobody.
#[test]
fn a_viewer_that_does_not_read_holds_up_nobody() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    let mut deaf = connect(at);
    deaf.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut events = Events::open(at, "/events").ok().unwrap();
    for _ in 0..3 {
        assert_eq!(events.next()["health"]["live"], true);
    }
}

#[test]
fn dropping_it_ends_its_viewers() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = ops.addresses()[0].clone();
    let mut events = Events::open(&at, "/events").ok().unwrap();
    let _first = events.next();
    drop(ops);
    let ended = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        loop {
            let _more = events.next();
        }
    }));
    assert!(ended.is_err());
}
