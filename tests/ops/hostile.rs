//! Viewers and clients that misbehave.

use super::client::{Events, ask, connect, get};
use super::common::{hang_guard, in_child, limit, until};
use paceline::http::Http;
use paceline::log::Log;
use paceline::metrics::Registry;
use paceline::ops::Ops;
use paceline::{Pin, Pool};
use serde_json::Value;
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{BorrowedFd, RawFd};

fn pool() -> Pool {
    Pool::builder().threads(2).pin(Pin::None).build().unwrap()
}

fn viewers(ops: &Ops) -> u64 {
    let stats: Value = serde_json::from_str(&get(&ops.addresses()[0], "/stats.json").body).unwrap();
    stats["viewers"].as_u64().unwrap()
}

/// Whether more events than one come: the first could be one that was kept.
fn is_fed(events: &mut Events) -> bool {
    events.next_or_end().is_some() && events.next_or_end().is_some()
}

#[test]
fn a_ninth_viewer_takes_the_place_of_the_oldest() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    let mut oldest = connect(at);
    let head = "GET /events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    oldest.write_all(head.as_bytes()).unwrap();
    until("it watches", || viewers(&ops) == 1);
    let mut seven: Vec<_> = (0..7).map(|_| Events::open(at, "/events").ok().unwrap()).collect();
    let mut ninth = Events::open(at, "/events").ok().unwrap();
    until("one has left", || viewers(&ops) == 8);
    assert!(is_fed(&mut ninth));
    let mut told = String::new();
    oldest.read_to_string(&mut told).unwrap();
    assert!(told.contains("event: replaced\ndata:\n\n"), "it was not told why: {told}");
    assert!(is_fed(&mut seven[0]));
    seven.pop();
    until("one has left", || viewers(&ops) < 8);
    let mut again = Events::open(at, "/events").ok().unwrap();
    assert!(is_fed(&mut again) && is_fed(&mut seven[0]));
}

/// Those who never read take no place that somebody wants who does.
/// Goal: a program that has used up its descriptors can still be asked how it is.
#[test]
fn without_descriptors_one_client_is_answered_at_a_time() {
    in_child(|| {
        let _guard = hang_guard();
        let pool = pool();
        let ops = Ops::builder(&pool).serve("127.0.0.1:0").unwrap();
        let at = ops.addresses()[0].clone();
        assert_eq!(get(&at, "/health/live").status, 200);
        limit(libc::RLIMIT_NOFILE, 256);
        let mut files: Vec<_> =
            core::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        // The client's.
        files.pop();
        for _ in 0..3 {
            assert_eq!(get(&at, "/health/live").status, 200);
        }
    });
}

#[test]
fn viewers_that_never_read_keep_nobody_out() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    let mut deaf: Vec<_> = (0..8).map(|_| connect(at)).collect();
    for stream in &mut deaf {
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    }
    until("all places are taken", || viewers(&ops) == 8);
    let mut events = Events::open(at, "/events").ok().unwrap();
    assert!(is_fed(&mut events));
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

/// The send buffer of this process's other end of a connection, as the kernel counts it.
#[allow(unsafe_code, reason = "looks at descriptors by number")]
fn send_buffer_of(client: &TcpStream) -> Option<usize> {
    let here = client.local_addr().unwrap();
    let look = |number: RawFd| {
        // SAFETY: only asked about; a number that is not open any more is an error.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        let socket = SockRef::from(&fd);
        let peer = socket.peer_addr().ok()?.as_socket()?;
        (peer == here).then(|| socket.send_buffer_size().unwrap())
    };
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    open.filter_map(|fd| fd.unwrap().file_name().to_str()?.parse().ok()).find_map(look)
}

/// A viewer that never reads holds one event of this process's memory, and little of the kernel's: also of a server of
/// the program's, which has settings of its own.
#[test]
fn a_viewer_that_does_not_read_holds_little_memory() {
    let _guard = hang_guard();
    // An event of it is larger than what a client's kernel takes and what is kept for it here.
    let pool = Pool::builder().threads(1000).pin(Pin::None).build().unwrap();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let http = Http::builder(&pool).listen("127.0.0.1:0");
    let http = ops.mount(http, "/ops").unwrap().serve().unwrap();
    for (at, path) in [(&ops.addresses()[0], "/events"), (&http.addresses()[0], "/ops/events")] {
        let mut deaf = connect(at);
        SockRef::from(&deaf).set_recv_buffer_size(4096).unwrap();
        write!(deaf, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        until("it watches", || viewers(&ops) == 1);
        // The kernel counts twice what it was told.
        assert!(send_buffer_of(&deaf).is_some_and(|bytes| bytes <= 64 << 10), "{path}");
        let mut reader = Events::open(at, path).ok().unwrap();
        let lengths: Vec<_> = (0..3).map(|_| reader.next().to_string().len()).collect();
        let metrics = get(&ops.addresses()[0], "/metrics").body;
        let queued = metrics.lines().filter(|it| it.starts_with("paceline_server_queued_bytes"));
        let queued = queued.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
        let queued = queued.map(|bytes| bytes as usize).sum::<usize>();
        // The endpoint's own server is not among the figures.
        let (is_mounted, least) = (path == "/ops/events", *lengths.iter().min().unwrap());
        assert_eq!(queued > 0, is_mounted, "{path}");
        assert!(queued < 2 * least, "{path}: {queued} bytes for events of {least}");
        drop((deaf, reader));
        until("both have left", || viewers(&ops) == 0);
    }
}

fn under_way(ops: &Ops) -> u64 {
    let stats: Value = serde_json::from_str(&get(&ops.addresses()[0], "/stats.json").body).unwrap();
    stats["under_way"].as_u64().unwrap()
}

/// An answer that its peer does not take is held in memory: so it is one of those that may be under way.
#[test]
fn an_answer_is_under_way_until_its_peer_has_it() {
    let _guard = hang_guard();
    let pool = pool();
    let registry = Registry::new();
    for number in 0..300 {
        let long = format!("{number}{}", "x".repeat(64 << 10));
        registry.gauge("long", "More than a socket takes", &[("text", &long)]).unwrap();
    }
    let ops = Ops::builder(&pool).registry(&registry).serve("127.0.0.1:0").unwrap();
    assert_eq!(under_way(&ops), 1);
    let mut deaf = connect(&ops.addresses()[0]);
    deaf.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    until("its answer is under way", || under_way(&ops) == 2);
    drop(deaf);
    until("it has gone", || under_way(&ops) == 1);
}

/// All of its pool's threads are shown, however many they are, and a pool of none is one that waits for hosts.
#[test]
fn pools_of_any_size_are_shown() {
    let _guard = hang_guard();
    for (threads, hosts) in [(0, 1), (1000, 0)] {
        let builder = Pool::builder().threads(threads).max_joined(hosts).pin(Pin::None);
        let pool = builder.build().unwrap();
        let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
        let at = &ops.addresses()[0];
        for path in ["/metrics", "/stats.json", "/health/live", "/health/ready", "/trace?seconds=1"]
        {
            assert_eq!(get(at, path).status, 200, "{path} of {threads} threads");
        }
        let mut events = Events::open(at, "/events").ok().unwrap();
        let shown = |event: Value| event["threads"].as_array().unwrap().len();
        assert_eq!((shown(events.next()), shown(events.next())), (threads, threads));
    }
}

/// A peer that asks many things at once, and one that wants no body.
#[test]
fn requests_in_a_row_and_heads_are_answered_in_order() {
    let _guard = hang_guard();
    let pool = pool();
    let ops = Ops::serve(&pool, "127.0.0.1:0").unwrap();
    let at = &ops.addresses()[0];
    let mut row = String::new();
    for path in ["/events", "/health/live", "/metrics", "/", "/trace?seconds=1"] {
        row.push_str(&format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    }
    for _ in 0..200 {
        row.push_str("GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    row.push_str("GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut stream = connect(at);
    stream.write_all(row.as_bytes()).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    assert_eq!(all.matches("HTTP/1.1 200 ").count(), 206, "{all}");
    assert_eq!(all.matches("\r\n\r\nok\n").count(), 201);
    assert_eq!((viewers(&ops), under_way(&ops)), (0, 1));
}

/// Levels that are none: what was asked for is not sent back at length, and no control character is.
#[test]
fn garbage_for_levels_is_refused() {
    let _guard = hang_guard();
    let log = Log::builder().facade(false).build().unwrap();
    let pool = Pool::builder().threads(1).log(&log).build().unwrap();
    let token = "correct-horse-battery";
    let bearer = format!("Authorization: Bearer {token}");
    let own = Ops::builder(&pool).token(token).serve("127.0.0.1:0").unwrap();
    let http =
        own.mount(Http::builder(&pool).listen("127.0.0.1:0"), "/ops").unwrap().serve().unwrap();
    for (at, path) in
        [(&own.addresses()[0], "/log-level"), (&http.addresses()[0], "/ops/log-level")]
    {
        let put = |body: &str| ask(at, &format!("PUT {path}"), &[&bearer], body);
        for garbage in
            ["", " ", "\u{1b}[2J\0", "info,", "info;debug", "<script>", &"x".repeat(1000)]
        {
            let answer = put(garbage);
            assert_eq!(answer.status, 400, "{garbage:?}");
            assert!(!answer.body.trim_end().contains(char::is_control), "{:?}", answer.body);
        }
        let large = put(&"y".repeat(100_000));
        assert!(matches!(large.status, 400 | 413), "{}", large.status);
        assert!(large.body.len() < 2000, "{} bytes came back", large.body.len());
        assert_eq!(log.levels().to_string(), "info");
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
