//! Panics, maxima, other protocols, drains, and the counters.

use crate::common::{
    Count, Gate, LONG, Random, finish, hang_guard, quiet_panic, until, with_longer_ticks,
};
use crate::http_kit::*;
use crate::kit::{Client, KINDS, Kind, TICK, pool};
use paceline::http::{Http, HttpBuilder, HttpStats, Request, RequestBody, Response};
use paceline::net::{
    Accept, Admission, Conn, ConnHandler, Filter, FilterRead, Listen, Outgoing, Reason, Server,
    ServerBuilder, Timeout,
};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const HOST: &str = "HTTP/1.1\r\nHost: h\r\n";

fn root(builder: HttpBuilder) -> HttpBuilder {
    builder.route("GET", "/", |_: &Request, response: Response| response.send("root"))
}

struct Panicking(#[allow(dead_code, reason = "it is dropped in the panic")] Response, &'static str);

impl RequestBody for Panicking {
    fn data(&mut self, bytes: &[u8]) -> usize {
        assert!(self.1 != "data" || quiet_panic("data"));
        bytes.len()
    }

    fn end(self: Box<Self>) {
        quiet_panic("end")
    }
}

/// Goal: the end of a pool waits for answers that come later, as long as it may, and says how many connections it has
/// cut off; a connection that rests holds nothing up. Method: a request that another thread answers in the drain, or
/// never, beside a connection that has had its answer.
#[test]
fn the_end_of_a_pool_waits_for_answers() {
    let _guard = hang_guard();
    for (kind, answers) in KINDS.into_iter().flat_map(|kind| [(kind, true), (kind, false)]) {
        let (pool, kept) = (pool(2), Arc::new(Mutex::new(Vec::new())));
        let inner = Arc::clone(&kept);
        let (server, address) = serve(&pool, kind, move |builder| {
            let keep = move |_: &Request, response: Response| inner.lock().unwrap().push(response);
            root(builder).route("GET", "/later", keep)
        });
        let (mut asker, mut resting) = (Asker::connect(&address), Asker::connect(&address));
        assert_eq!(resting.ask(format!("GET / {HOST}\r\n")).text(), "root");
        asker.send(format!("GET /later {HOST}\r\n"));
        until("the request", || kept.lock().unwrap().len() == 1);
        let time = if answers { LONG } else { TICK };
        let ending = thread::spawn({
            let pool = pool.clone();
            move || pool.shutdown(time)
        });
        assert!(resting.client.rest().is_empty());
        if answers {
            kept.lock().unwrap().pop().unwrap().send("at last").unwrap();
            assert_eq!(asker.answer().text(), "at last");
        }
        let report = ending.join().unwrap();
        assert_eq!(
            (report.drained, report.connections),
            (answers, (!answers).into()),
            "{report:?}"
        );
        assert_eq!(asker.client.rest_or_reset().0, b"");
        let HttpStats { answered, aborted, .. } = balanced(&server);
        assert_eq!(
            (answered.successful, aborted.total()),
            (1 + u64::from(answers), (!answers).into())
        );
        kept.lock().unwrap().clear();
    }
}

/// Goal: a client that keeps its answered connection open holds the end of the pool up by nothing.
#[test]
fn the_end_of_a_pool_does_not_wait_for_clients_that_keep_alive() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) =
            serve(&pool, kind, |builder| root(builder).server(|builder| builder.linger(2 * LONG)));
        let mut asker = Asker::connect(&address);
        assert_eq!(asker.ask(format!("GET / {HOST}\r\n")).text(), "root");
        let report = pool.shutdown(LONG);
        let counts = (report.drained, report.connections, report.cancelled);
        assert_eq!(counts, (true, 0, 0), "{report:?}");
        assert!(asker.client.rest().is_empty());
        let HttpStats { answered, aborted, .. } = balanced(&server);
        assert_eq!((answered.successful, aborted.total()), (1, 0));
    }
}

#[test]
fn a_panic_is_a_500_or_an_abort_and_is_counted() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let kept = Arc::new(Mutex::new(Vec::new()));
        let inner = Arc::clone(&kept);
        let (server, address) = serve(&pool, kind, move |builder| {
            root(builder)
                .route("GET", "/at-once", |_: &Request, _: Response| quiet_panic("at once"))
                .route("GET", "/after", |_: &Request, response: Response| {
                    response.send("all is well").unwrap();
                    quiet_panic("after")
                })
                .route("GET", "/midway", |_: &Request, response: Response| {
                    let _body = response.stream(None).unwrap();
                    quiet_panic("midway")
                })
                .route("GET", "/away", move |_: &Request, response: Response| {
                    inner.lock().unwrap().push(response);
                    quiet_panic("away")
                })
                .route("GET", "/pump", |_: &Request, response: Response| {
                    response.stream(None).unwrap().pump(|_| quiet_panic("pump"));
                })
                .route_streaming("PUT", "/made", |_: &Request, _: Response| -> Option<Panicking> {
                    quiet_panic("made")
                })
                .route_streaming("PUT", "/data", |_: &Request, response: Response| {
                    Panicking(response, "data")
                })
                .route_streaming("PUT", "/end", |_: &Request, response: Response| {
                    Panicking(response, "end")
                })
        });
        let cases = [
            ("GET /at-once", Some(500)),
            ("GET /after", Some(200)),
            ("GET /midway", None),
            ("GET /pump", None),
            ("PUT /made", Some(500)),
            ("PUT /data", Some(500)),
            ("PUT /end", Some(500)),
        ];
        for (request, status) in cases {
            let mut asker = Asker::connect(&address);
            asker.send(format!("{request} {HOST}Content-Length: 3\r\n\r\nabcGET / {HOST}\r\n"));
            match status {
                Some(status) => {
                    assert_eq!(asker.answer().status, status, "{request}");
                    asker.expect_end();
                }
                None => drop(asker.rest_or_reset()),
            }
        }
        let mut asker = Asker::connect(&address);
        asker.send(format!("GET /away {HOST}\r\n"));
        until("it is kept", || !kept.lock().unwrap().is_empty());
        kept.lock().unwrap().pop().unwrap().send("from elsewhere").unwrap();
        assert_eq!(asker.answer().text(), "from elsewhere");
        asker.expect_end();
        let stats = end(&server);
        assert_eq!((stats.begun, stats.panics), (8, 8), "{stats:#?}");
        assert_eq!((stats.refused.panicked, stats.answered.successful), (4, 2), "{stats:#?}");
        assert_eq!(stats.aborted.total(), 2, "{stats:#?}");
    }
}

/// Goal: who answers elsewhere and fails, by its word or by a panic, ends the connection as a handler that
/// panics does, and is counted, though the peer has gone. Method: responses that are kept, each given up
/// in another way.
#[test]
fn a_failure_elsewhere_is_a_500_or_a_reset_and_is_counted() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let kept = Arc::new(Mutex::new(Vec::new()));
        let inner = Arc::clone(&kept);
        let (server, address) = serve(&pool, kind, move |builder| {
            let keep = move |_: &Request, response: Response| inner.lock().unwrap().push(response);
            root(builder).route("GET", "/keep", keep)
        });
        let ask = || {
            let mut asker = Asker::connect(&address);
            asker.send(format!("GET /keep {HOST}\r\n"));
            until("it is kept", || !kept.lock().unwrap().is_empty());
            (asker, kept.lock().unwrap().pop().unwrap())
        };
        let panics = |response: Response| {
            let panicking = thread::spawn(move || {
                let _response = response;
                quiet_panic("elsewhere")
            });
            assert!(panicking.join().is_err());
        };
        for fail in [&Response::fail as &dyn Fn(Response), &panics] {
            let (mut asker, response) = ask();
            fail(response);
            let answer = asker.answer();
            assert_eq!((answer.status, answer.header("connection")), (500, Some("close")));
            asker.expect_end();
        }
        let (mut asker, response) = ask();
        response.stream(None).unwrap().fail();
        drop(asker.rest_or_reset());
        // It was answered, so all that is left to be ended is the connection.
        let (mut asker, response) = ask();
        let conn = response.conn();
        response.send("all is well").unwrap();
        assert_eq!(asker.answer().text(), "all is well");
        server.fail(conn.id()).unwrap();
        asker.expect_end();
        until_stats(&server, "it has ended", |stats| stats.server.open == 0);
        assert!(matches!(server.fail(conn.id()), Err(paceline::Error::Stale { .. })));
        let (_asker, response) = ask();
        response.conn().abort().unwrap();
        // It may have been kept here before it was counted.
        let ended = |stats: &HttpStats| stats.begun == 5 && stats.in_work == 0;
        until_stats(&server, "the connection has ended", ended);
        response.fail();
        let stats = end(&server);
        assert_eq!((stats.begun, stats.panics), (5, 5), "{stats:#?}");
        assert_eq!((stats.refused.panicked, stats.answered.successful), (2, 1), "{stats:#?}");
        assert_eq!((stats.aborted.total(), stats.server.closed.panicked), (2, 0), "{stats:#?}");
    }
}

#[test]
fn requests_beyond_the_maximum_are_told_that_it_is_busy() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, kept) = (pool(2), Arc::new(Mutex::new(Vec::new())));
        let inner = Arc::clone(&kept);
        let (server, address) = serve(&pool, kind, move |builder| {
            let keep = move |_: &Request, response: Response| inner.lock().unwrap().push(response);
            root(builder).max_requests(2).route("POST", "/keep", keep)
        });
        let mut askers: Vec<_> = (0..3).map(|_| Asker::connect(&address)).collect();
        for asker in &mut askers[..2] {
            asker.send(format!("POST /keep {HOST}\r\n"));
        }
        until("two are kept", || kept.lock().unwrap().len() == 2);
        for _ in 0..3 {
            let answer = askers[2].ask(format!("POST /keep {HOST}Content-Length: 3\r\n\r\nabc"));
            assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
        }
        kept.lock().unwrap().pop().unwrap().send("").unwrap();
        until_stats(&server, "one left", |stats| stats.in_work == 1);
        assert_eq!(askers[2].ask(format!("GET / {HOST}\r\n")).text(), "root");
        kept.lock().unwrap().pop().unwrap().send("").unwrap();
        drop(askers);
        let stats = end(&server);
        assert_eq!((stats.begun, stats.refused.busy, stats.answered.successful), (6, 3, 3));
    }
}

/// Goal: a listener's maximum of requests is its own, beside the server's, in its counters too. Method: three
/// listeners, one with the default of the stream server beneath, one that says otherwise, and one of
/// which the server's maximum is the lower; requests that stay in work, and are answered then.
#[test]
fn each_listener_has_its_own_requests_in_work() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, kept) = (pool(2), Arc::new(Mutex::new(Vec::new())));
        let inner = Arc::clone(&kept);
        let keep = move |_: &Request, response: Response| inner.lock().unwrap().push(response);
        let server = root(Http::builder(&pool))
            .listen(kind.address())
            .listen(Listen::on(kind.address()).max_requests(2))
            .listen(Listen::on(kind.address()).max_requests(100))
            .server(|server| server.max_requests(1))
            .max_requests(4)
            .route("GET", "/keep", keep)
            .serve()
            .unwrap();
        let keep = format!("GET /keep {HOST}\r\n");
        let mut askers = Vec::new();
        for (address, most) in server.addresses().iter().zip([1, 2, 1]) {
            for _ in 0..most {
                askers.push(Asker::connect(address));
                askers.last_mut().unwrap().send(&keep);
            }
            until_stats(&server, "they are in work", |stats| stats.in_work == askers.len());
            let mut beyond = Asker::connect(address);
            for _ in 0..2 {
                let answer = beyond.ask(&keep);
                assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
            }
        }
        until("all are kept", || kept.lock().unwrap().len() == 4);
        kept.lock().unwrap().drain(..).for_each(|response| response.send("at last").unwrap());
        for asker in &mut askers {
            assert_eq!(asker.answer().text(), "at last");
            assert_eq!(
                asker.ask(format!("GET / {HOST}\r\n")).text(),
                "root",
                "there is room again"
            );
        }
        drop(askers);
        let stats = end(&server);
        assert_eq!((stats.refused.busy, stats.answered.successful), (6, 8));
        let of = |at: usize| {
            let at = &stats.server.listeners[at];
            (at.requests, at.answered, at.requests_aborted, at.busy)
        };
        // What the server's maximum refuses never comes to the listener's.
        assert_eq!([0, 1, 2].map(of), [(2, 2, 0, 2), (4, 4, 0, 2), (2, 2, 0, 0)]);
    }
}

/// Goal: what a protocol admits after an upgrade counts at the listener with its HTTP requests.
#[test]
fn requests_of_other_protocols_count_at_their_listener() {
    /// Admits a request, and keeps it until its peer has finished.
    struct Keeps(Option<Admission>);
    impl ConnHandler for Keeps {
        fn open(&mut self, conn: &Conn) -> Accept {
            self.0 = conn.admit();
            conn.write(if self.0.is_some() { b"yes" } else { b"no " }).unwrap();
            Accept::Yes
        }
        fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
            bytes.len()
        }
        fn finished(&mut self, _: &Conn) {
            self.0 = None;
        }
    }
    let _guard = hang_guard();
    let pool = pool(2);
    let server = root(Http::builder(&pool))
        .listen(Listen::on(Kind::Tcp.address()).max_requests(1))
        .route("GET", "/up", |_: &Request, response: Response| response.upgrade("x", Keeps(None)))
        .serve()
        .unwrap();
    let connect = || Asker::connect(&server.addresses()[0]);
    let up = format!("GET /up {HOST}Connection: Upgrade\r\nUpgrade: x\r\n\r\n");
    let mut first = connect();
    assert_eq!(first.ask(&up).status, 101);
    assert_eq!(first.take(3), b"yes");
    let mut second = connect();
    assert_eq!(second.ask(&up).status, 503);
    drop(first);
    until_stats(&server, "it has ended", |stats| stats.server.in_work == 0);
    assert_eq!(second.ask(format!("GET / {HOST}\r\n")).status, 200);
    drop(second);
    end(&server);
}

#[test]
fn what_a_listener_cannot_have_is_named() {
    let pool = pool(1);
    let listen = || Listen::on(Kind::Abstract.address());
    let least = "147456, which is max_head and 128 KiB, or more";
    let refused = |settings: &dyn Fn(HttpBuilder) -> HttpBuilder| {
        settings(Http::builder(&pool)).serve().unwrap_err().to_string()
    };
    let small = format!("max_unconsumed is 147455, but must be {least}");
    assert_eq!(refused(&|http| http.listen(listen().max_unconsumed(147_455))), small);
    let beneath = |settings: fn(ServerBuilder) -> ServerBuilder| {
        refused(&|http| http.listen(listen()).server(settings))
    };
    assert_eq!(beneath(|server| server.max_unconsumed(147_455)), small);
    let busy = "busy is 4 bytes, but must be empty: what HTTP answers beyond max_requests is 503";
    assert_eq!(refused(&|http| http.listen(listen().busy("busy"))), busy);
    assert_eq!(beneath(|server| server.busy("busy")), busy);
    let idle = "idle_timeout is 1s, but must be told as keep_alive_timeout, or to a Listen";
    assert_eq!(beneath(|server| server.idle_timeout(Duration::from_secs(1))), idle);
    let read = beneath(|server| server.read_timeout(Duration::MAX));
    assert!(read.starts_with("read_timeout is "), "{read}");
    assert!(read.ends_with(", but must be told as head_timeout, or to a Listen"), "{read}");
    // It grows with the head, which is as large as its maximum.
    let small = Http::builder(&pool).max_head(64).listen(listen().max_unconsumed(64 + (128 << 10)));
    end(&small.serve().unwrap());
}

/// Goal: a listener may have more of unconsumed bytes than HTTP needs. Method: a protocol that an upgrade
/// has brought wants more than that at once.
#[test]
fn what_may_be_left_unconsumed_is_the_listeners_to_say() {
    const MESSAGE: usize = 600_000;
    struct Long;
    impl ConnHandler for Long {
        fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
            if bytes.len() < MESSAGE {
                return 0;
            }
            conn.write(b"whole").unwrap();
            bytes.len()
        }
    }
    let _guard = hang_guard();
    let pool = pool(2);
    let server = root(Http::builder(&pool))
        .listen(Kind::Tcp.address())
        .listen(Listen::on(Kind::Tcp.address()).max_unconsumed(MESSAGE))
        .listen(Listen::on(Kind::Tcp.address()).max_unconsumed(150_000))
        .server(|server| server.max_unconsumed(1 << 20))
        .route("GET", "/up", |_: &Request, response: Response| response.upgrade("x", Long))
        .serve()
        .unwrap();
    for (address, expected) in server.addresses().iter().zip([true, true, false]) {
        let mut asker = Asker::connect(address);
        asker.send(format!("GET /up {HOST}Connection: Upgrade\r\nUpgrade: x\r\n\r\n"));
        assert_eq!(asker.answer().status, 101);
        asker.try_send(vec![0; MESSAGE]);
        match expected {
            true => assert_eq!(asker.take(5), b"whole"),
            false => assert!(asker.rest_or_reset().0.is_empty()),
        }
    }
    until_stats(&server, "the last has ended", |stats| stats.server.closed.unconsumed == 1);
    end(&server);
}

/// Goal: what HTTP sets for its listeners is not for what is connected from its server.
#[test]
fn outgoing_connections_of_its_server_have_settings_of_their_own() {
    struct Silent(Arc<Mutex<Option<Reason>>>);
    impl ConnHandler for Silent {
        fn data(&mut self, _: &Conn, bytes: &[u8]) -> usize {
            bytes.len()
        }
        fn close(&mut self, _: &Conn, reason: Reason) {
            *self.0.lock().unwrap() = Some(reason);
        }
    }
    let _guard = hang_guard();
    let pool = pool(2);
    // Its other end is what ends the silence.
    let builder = Server::builder(&pool)
        .listen(Listen::on(Kind::Tcp.address()).idle_timeout(TICK * 3))
        .listen(Kind::Tcp.address());
    let peer = builder.serve(|_| Silent(Arc::default())).unwrap();
    let strict = Outgoing::new().idle_timeout(TICK);
    let cases = [(Outgoing::new(), Reason::Peer), (strict, Reason::TimedOut(Timeout::Idle))];
    for ((own, expected), there) in cases.into_iter().zip(peer.addresses()) {
        let builder = root(Http::builder(&pool)).listen(Kind::Tcp.address());
        let builder = builder.keep_alive_timeout(TICK);
        let server = builder.server(|server| server.outgoing(own)).serve().unwrap();
        let reason = Arc::new(Mutex::new(None));
        let conn = Silent(Arc::clone(&reason));
        server.server().connect(there, conn).unwrap();
        until("it has ended", || reason.lock().unwrap().is_some());
        let ended = reason.lock().unwrap().unwrap();
        assert_eq!(ended, expected);
        end(&server);
    }
    assert!(peer.drain(LONG).drained);
}

#[test]
fn connections_beyond_the_maximum_are_told_too() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(1);
        let (server, address) =
            serve(&pool, kind, |builder| root(builder).server(|server| server.max_connections(1)));
        let mut first = Asker::connect(&address);
        assert_eq!(first.ask(format!("GET / {HOST}\r\n")).status, 200);
        let answer = Asker::connect(&address).answer();
        assert_eq!((answer.status, answer.closes()), (503, true));
        drop(first);
        assert_eq!(end(&server).server.turned_away, 1);
    }
}

/// Goal: whoever keeps all places without asking for anything keeps nobody out. Method: idle connections take all places, or
/// those that a server keeps free while it can, of a server whose keep-alive time is long.
#[test]
fn idle_connections_give_way_when_few_places_are_left() {
    const PLACES: usize = 32;
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| {
            let builder = root(builder).keep_alive_timeout(2 * LONG);
            builder.server(|server| server.max_connections(PLACES))
        });
        let mut idle: Vec<_> = (0..PLACES).map(|_| Asker::connect(&address)).collect();
        assert_eq!(idle[0].ask(format!("GET / {HOST}\r\n")).status, 200);
        let room = PLACES - PLACES / 8;
        until_stats(&server, "some give way", |stats| stats.server.open <= room);
        let ask = || Asker::connect(&address).ask(format!("GET / {HOST}\r\n")).status;
        (0..2 * PLACES).for_each(|_| assert_eq!(ask(), 200));
        drop(idle);
        until_stats(&server, "all have ended", |stats| stats.server.open == 0);
        let closed = end(&server).server.closed;
        assert!(closed.timed_out >= PLACES as u64 / 8, "{closed:?}");
    }
}

#[test]
fn connections_have_a_last_request_and_a_time() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| root(builder).keep_alive_requests(3));
        let mut asker = Asker::connect(&address);
        let request = format!("GET / {HOST}\r\n");
        asker.send(request.repeat(5));
        assert!(!asker.answer().closes() && !asker.answer().closes() && asker.answer().closes());
        asker.expect_end();
        assert_eq!(end(&server).begun, 3);
        with_longer_ticks("a request comes in time", |tick| {
            let settings = |builder| root(builder).keep_alive_timeout(tick * 4);
            let (server, address) = serve(&pool, kind, settings);
            let mut idle = Asker::connect(&address);
            let mut used = Asker::connect(&address);
            used.try_send(&request);
            let (answer, _) = used.rest_or_reset();
            idle.expect_end();
            let stats = end(&server);
            assert_eq!(stats.server.closed.timed_out, 2);
            assert_eq!(answer.starts_with(b"HTTP/1.1 200 OK"), stats.begun == 1);
            stats.begun == 1
        });
    }
}

/// Sends back what comes, in capitals, and says hello.
struct Shout(Arc<Mutex<Option<Reason>>>);

impl ConnHandler for Shout {
    fn open(&mut self, conn: &Conn) -> Accept {
        conn.write(b"hello ").unwrap();
        Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        conn.write(&bytes.to_ascii_uppercase()).unwrap();
        bytes.len()
    }

    fn notified(&mut self, conn: &Conn) {
        conn.write(b"notified").unwrap();
    }

    fn close(&mut self, _: &Conn, reason: Reason) {
        *self.0.lock().unwrap() = Some(reason);
    }
}

#[test]
fn a_connection_may_be_given_to_another_protocol() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (reason, conn) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
        let (inner, conns) = (Arc::clone(&reason), Arc::clone(&conn));
        let (server, address) = serve(&pool, kind, move |builder| {
            let upgrade = move |request: &Request, response: Response| {
                *conns.lock().unwrap() = Some(request.conn());
                let protocol = request.upgrade().map(String::from);
                let shout = Shout(Arc::clone(&inner));
                let answer = move || match protocol {
                    Some(protocol) => response.header("X-Own", "1").upgrade(&protocol, shout),
                    None => response.status(426).send(""),
                };
                if request.query().is_some() {
                    thread::spawn(move || answer().unwrap());
                } else {
                    answer().unwrap();
                }
            };
            let words =
                |_: &Request, response: Response| response.upgrade("words", Shout(Arc::default()));
            root(builder).route("GET", "/shout", upgrade).route("GET", "/words", words)
        });
        for query in ["", "?later"] {
            let mut asker = Asker::connect(&address);
            let plain = asker.ask(format!("GET /shout{query} {HOST}\r\n"));
            assert_eq!((plain.status, plain.closes()), (426, false));
            asker.send(format!(
                "GET /shout{query} {HOST}Connection: Upgrade\r\nUpgrade: shout\r\n\r\nearly "
            ));
            let answer = asker.answer();
            assert_eq!((answer.status, answer.header("upgrade")), (101, Some("shout")));
            assert_eq!(answer.header("connection"), Some("upgrade"));
            assert_eq!(answer.header("content-length"), None);
            asker.send("GET / late ");
            asker.client.finish();
            assert_eq!(asker.rest(), b"hello EARLY GET / LATE ");
            until("the end", || reason.lock().unwrap().take() == Some(Reason::Peer));
            let _ = conn.lock().unwrap().take();
        }
        // A client that offers another protocol hears which one is spoken here, and may go on.
        let mut asker = Asker::connect(&address);
        let answer = asker
            .ask(format!("GET /words {HOST}Connection: Upgrade\r\nUpgrade: h2c, SHOUT/2\r\n\r\n"));
        assert_eq!(
            (answer.status, answer.header("upgrade"), answer.closes()),
            (426, Some("words"), false)
        );
        assert_eq!(answer.header("connection"), Some("upgrade"));
        let answer = asker
            .ask(format!("GET /words {HOST}Connection: Upgrade\r\nUpgrade: h2c, Words\r\n\r\n"));
        assert_eq!((answer.status, answer.header("upgrade")), (101, Some("words")));
        let mut asker = Asker::connect(&address);
        asker.send(format!("GET /shout {HOST}Connection: Upgrade\r\nUpgrade: x\r\n\r\n"));
        assert_eq!(asker.answer().status, 101);
        conn.lock().unwrap().as_ref().unwrap().notify().unwrap();
        asker.client.finish();
        assert_eq!(asker.rest(), b"hello notified");
        let stats = end(&server);
        assert_eq!((stats.answered.upgraded, stats.answered.client_errors), (4, 3));
    }
}

/// What its `open` does with a connection that it was given.
enum Opening {
    Takes,
    Pauses,
    Refuses,
}

struct Told(Opening);

impl ConnHandler for Told {
    fn open(&mut self, conn: &Conn) -> Accept {
        match self.0 {
            Opening::Takes => {}
            Opening::Pauses => conn.pause(),
            Opening::Refuses => return Accept::Refuse(b"no".to_vec()),
        }
        Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        conn.write(format!("[{}]", String::from_utf8_lossy(bytes)).as_bytes()).unwrap();
        bytes.len()
    }

    fn notified(&mut self, conn: &Conn) {
        conn.write(b"resumed ").unwrap();
        conn.resume();
    }
}

/// Goal: the new handler is shown bytes if there are some and it wants them. Method: with and without
/// bytes behind the request, and handlers that take, pause and refuse in their `open`.
#[test]
fn another_protocol_is_shown_what_it_wants() {
    let _guard = hang_guard();
    let cases = [
        ("takes", "", "[late]"),
        ("takes", "early", "[early][late]"),
        ("pauses", "early", "resumed [early][late]"),
        ("refuses", "early", "no"),
    ];
    for (kind, (query, early, rest)) in
        KINDS.into_iter().flat_map(|kind| cases.map(|case| (kind, case)))
    {
        let pool = pool(2);
        let (sender, conns) = std::sync::mpsc::channel();
        let (server, address) = serve(&pool, kind, move |builder| {
            let sender = Mutex::new(sender.clone());
            builder.route("GET", "/", move |request: &Request, response: Response| {
                sender.lock().unwrap().send(request.conn()).unwrap();
                let opening = match request.query() {
                    Some("pauses") => Opening::Pauses,
                    Some("refuses") => Opening::Refuses,
                    _ => Opening::Takes,
                };
                response.upgrade("told", Told(opening))
            })
        });
        let mut asker = Asker::connect(&address);
        asker.send(format!(
            "GET /?{query} {HOST}Connection: upgrade\r\nUpgrade: told\r\n\r\n{early}"
        ));
        assert_eq!(asker.answer().status, 101);
        if query == "pauses" {
            conns.recv().unwrap().notify().unwrap();
        }
        let first = rest.strip_suffix("[late]").unwrap_or(rest).len();
        assert_eq!(asker.take(first), rest.as_bytes()[..first]);
        asker.try_send("late");
        asker.client.finish();
        assert_eq!(asker.rest(), rest.as_bytes()[first..], "{query} {early}");
        end(&server);
    }
}

/// Goal: no body is taken for another protocol. Method: a streamed request with a body asks to upgrade.
#[test]
fn a_streamed_body_comes_before_another_protocol() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| {
            builder.route_streaming("PUT", "/", |request: &Request, response: Response| {
                let protocol = request.upgrade().unwrap().to_owned();
                let upgraded = response.upgrade(&protocol, Told(Opening::Takes));
                assert_eq!(
                    upgraded.unwrap_err().to_string(),
                    "upgrade is \"told\", but must be of a request whose body is not streamed"
                );
                None::<Box<dyn paceline::http::RequestBody>>
            })
        });
        let mut asker = Asker::connect(&address);
        let head = format!("PUT / {HOST}Connection: upgrade\r\nUpgrade: told\r\n");
        let answer = asker.ask(format!("{head}Content-Length: 4\r\n\r\nbody"));
        assert_eq!(answer.status, 500);
        end(&server);
    }
}

/// Goal: what is in work when a drain begins is answered, with `Connection: close`; who idles is closed.
#[test]
fn a_drain_finishes_what_is_in_work() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (gate, kept) = (Gate::new(), Arc::new(Mutex::new(Vec::new())));
        let (inner, stuck) = (Arc::clone(&kept), gate.clone());
        let (server, address) = serve(&pool, kind, move |builder| {
            let keep = move |_: &Request, response: Response| inner.lock().unwrap().push(response);
            let wait = move |_: &Request, response: Response| {
                stuck.wait();
                response.send("waited")
            };
            root(builder).route("GET", "/keep", keep).route("GET", "/wait", wait).route(
                "POST",
                "/",
                |request: &Request, response: Response| response.send(request.body()),
            )
        });
        let mut idle = Asker::connect(&address);
        assert_eq!(idle.ask(format!("GET / {HOST}\r\n")).status, 200);
        let [mut keeping, mut waiting, mut sending] = [(); 3].map(|()| Asker::connect(&address));
        keeping.send(format!("GET /keep {HOST}\r\nGET / {HOST}\r\n"));
        waiting.send(format!("GET /wait {HOST}\r\nGET / {HOST}\r\n"));
        sending.send(format!("POST / {HOST}Content-Length: 4\r\n\r\nbo"));
        gate.until_entered(1);
        until_stats(&server, "all are in work", |stats| stats.in_work == 2);
        let drain = {
            let server = server.clone();
            thread::spawn(move || server.drain(LONG))
        };
        idle.expect_end();
        gate.open();
        kept.lock().unwrap().pop().unwrap().send("kept").unwrap();
        sending.send("dy");
        for (mut asker, text) in [(keeping, "kept"), (waiting, "waited"), (sending, "body")] {
            let answer = asker.answer();
            assert_eq!((answer.text(), answer.closes()), (text, true));
            asker.rest_or_reset();
        }
        assert!(drain.join().unwrap());
        let stats = balanced(&server);
        assert_eq!((stats.begun, stats.answered.successful), (4, 4));
    }
}

/// Goal: every request that was begun is answered, whenever the drain comes. Method: clients ask one after the other,
/// and some two at once, for answers that come at once and for such that come later, until they see the end. What the
/// server has answered, and what they got, is the same.
#[test]
fn a_drain_under_load_loses_no_request() {
    const CLIENTS: usize = 8;
    let _guard = hang_guard();
    for (round, kind) in KINDS.into_iter().cycle().take(12).enumerate() {
        let pool = pool(2);
        let own = pool.clone();
        let (server, address) = serve(&pool, kind, move |builder| {
            root(builder).route("GET", "/later", move |_: &Request, response: Response| {
                let answer = move || response.send("later").unwrap();
                let _ = own.after(Duration::from_millis(1), answer).unwrap();
            })
        });
        let answers = Count::new();
        thread::scope(|scope| {
            for index in 0..CLIENTS {
                let (address, answers) = (&address, &answers);
                let (path, text) = [("/", "root"), ("/later", "later")][index % 2];
                let request = format!("GET {path} {HOST}\r\n").repeat(1 + index / 2 % 2);
                scope.spawn(move || {
                    // The drain may be over before this client has come.
                    let Ok(client) = Client::try_connect(address) else { return };
                    let mut asker = Asker::of(client);
                    loop {
                        asker.try_send(&request);
                        for _ in 0..1 + index / 2 % 2 {
                            let Some(answer) = asker.try_answer() else { return };
                            assert_eq!((answer.status, answer.text()), (200, text));
                            answers.up();
                        }
                    }
                });
            }
            answers.until(10 + 7 * round as u64);
            assert!(server.drain(LONG), "{:?}", server.stats());
        });
        let stats = balanced(&server);
        let seen = (stats.begun, stats.answered.successful, stats.aborted.total());
        assert_eq!(seen, (answers.get(), answers.get(), 0), "{kind:?}");
        drop(server);
        finish(&pool);
    }
}

/// The end of what comes is a tilde, for protocols that tell it themselves.
struct Tilde;

impl Filter for Tilde {
    fn received(
        &mut self,
        bytes: &[u8],
        plain: &mut Vec<u8>,
        _: &mut Vec<u8>,
    ) -> std::io::Result<FilterRead> {
        let end = bytes.iter().position(|byte| *byte == b'~');
        plain.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        Ok(if end.is_some() { FilterRead::Ended } else { FilterRead::Open })
    }

    fn written(&mut self, bytes: &[u8], wire: &mut Vec<u8>) -> std::io::Result<()> {
        wire.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(&mut self, _: &mut Vec<u8>) {}
}

/// Goal: a client that has said all it has to say gets its answer. Method: the end is the socket's, or is
/// told by a filter, whose word comes though nothing is read meanwhile.
#[test]
fn a_client_that_has_finished_gets_its_answer() {
    let _guard = hang_guard();
    for (kind, tilde) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        let (pool, kept) = (pool(2), Arc::new(Mutex::new(Vec::new())));
        let inner = Arc::clone(&kept);
        let keep = move |_: &Request, response: Response| inner.lock().unwrap().push(response);
        let listen = Listen::on(kind.address());
        let listen = if tilde { listen.filter(|_| Tilde) } else { listen };
        let server = Http::builder(&pool).listen(listen).route("GET", "/", keep).serve().unwrap();
        let mut asker = Asker::connect(&server.addresses()[0]);
        asker.send(format!("GET / {HOST}\r\n{}", if tilde { "~" } else { "" }));
        if !tilde {
            asker.client.finish();
        }
        until("it is kept", || !kept.lock().unwrap().is_empty());
        // Its run is over, and with it what came along.
        until_stats(&server, "it is in work", |stats| stats.in_work == 1);
        kept.lock().unwrap().pop().unwrap().send("all the same").unwrap();
        assert_eq!(asker.answer().text(), "all the same");
        asker.expect_end();
        assert_eq!(end(&server).answered.successful, 1);
    }
}

/// Goal: an answer that its client does not take ends as one that took too long.
#[test]
fn an_answer_that_nobody_takes_has_timed_out() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| {
            let endless = |_: &Request, response: Response| {
                response.stream(None).unwrap().pump(|body| {
                    body.write(&[b'x'; 10_000])?;
                    Ok(true)
                });
            };
            builder
                .server(|server| server.stall_timeout(TICK).send_buffer(1))
                .route("GET", "/", endless)
        });
        let mut asker = Asker::of(Client::with_buffers(&address, Some(1)).unwrap());
        asker.send(format!("GET / {HOST}\r\n"));
        until_stats(&server, "its end", |stats| stats.aborted.total() == 1);
        assert_eq!(server.stats().aborted.timed_out, 1, "{:?}", server.stats());
        drop(asker);
        end(&server);
    }
}

/// Goal: whatever ends requests, the counters balance. Method: clients that go away, send too little, send
/// nonsense or wait for answers that nobody gives, and then a pool that ends under all of them.
#[test]
fn the_books_balance_whatever_happens() {
    let _guard = hang_guard();
    for (round, kind) in KINDS.into_iter().enumerate() {
        let (pool, kept) = (pool(2), Arc::new(Mutex::new(Vec::new())));
        let inner = Arc::clone(&kept);
        let (server, address) = serve(&pool, kind, move |builder| {
            let keep = move |_: &Request, response: Response| inner.lock().unwrap().push(response);
            root(builder)
                .body_timeout(TICK)
                .head_timeout(TICK)
                .route("GET", "/keep", keep)
                .route("GET", "/forget", |_: &Request, _: Response| ())
                .route("GET", "/panic", |_: &Request, _: Response| quiet_panic("once more"))
                .route("POST", "/", |request: &Request, response: Response| {
                    response.send(request.body())
                })
        });
        let pieces = [
            format!("GET / {HOST}\r\n"),
            format!("GET /keep {HOST}\r\n"),
            format!("GET /forget {HOST}\r\n"),
            format!("GET /nowhere {HOST}\r\n"),
            format!("POST / {HOST}Content-Length: 3\r\n\r\nabc"),
            format!("POST / {HOST}Content-Length: 3\r\n\r\na"),
            format!("GET /panic {HOST}\r\n"),
            String::from("GET / HTTP/1.1\r\nHo"),
            String::from("nonsense\r\n\r\n"),
        ];
        let mut random = Random::new(round as u64);
        let mut clients = Vec::new();
        for _ in 0..200 {
            let mut asker = Asker::connect(&address);
            for _ in 0..=random.below(3) {
                asker.try_send(&pieces[random.below(pieces.len() as u64) as usize]);
            }
            match random.below(4) {
                0 => asker.client.reset(),
                1 => {
                    // The server may be through with it already.
                    let _ = asker.client.0.shutdown(std::net::Shutdown::Write);
                    clients.push(asker);
                }
                _ => clients.push(asker),
            }
            if random.below(3) == 0 {
                let response = kept.lock().unwrap().pop();
                // Its client may be gone.
                let _ = response.map(|response: Response| response.send("late"));
            }
        }
        until_stats(&server, "something of everything", |stats| {
            let HttpStats { answered, refused, .. } = stats;
            answered.successful > 10 && refused.total() > 10 && refused.panicked > 0
        });
        drop(clients.split_off(clients.len() / 2));
        // At least one is left that nobody answers.
        let mut last = Asker::connect(&address);
        last.send(format!("GET /keep {HOST}\r\n"));
        until("one is kept", || !kept.lock().unwrap().is_empty());
        let report = pool.stop_now();
        assert!(!report.drained && report.connections > 0, "{report:?}");
        let stats = balanced(&server);
        assert!(stats.aborted.total() > 0, "{stats:#?}");
        // Too late, and counted already.
        kept.lock().unwrap().drain(..).for_each(|response| drop(response.send("")));
        assert_eq!(balanced(&server), stats);
    }
}

/// Goal: answers reach their requests, in whatever order they are completed, by whichever thread.
#[test]
fn answers_in_any_order_reach_their_requests() {
    const CLIENTS: usize = 60;
    const ROUNDS: usize = 20;
    let _guard = hang_guard();
    for kind in [Kind::Tcp, Kind::Unix] {
        let pool = pool(2);
        let (sender, receiver) = std::sync::mpsc::channel::<(String, Response)>();
        let sender = Mutex::new(sender);
        let (server, address) = serve(&pool, kind, move |builder| {
            let keep = move |request: &Request, response: Response| {
                let name = request.param("name").unwrap().to_owned();
                sender.lock().unwrap().send((name, response)).unwrap();
            };
            builder.route("GET", "/{name}", keep)
        });
        let answering = thread::spawn(move || {
            let (mut random, mut kept) = (Random::new(7), Vec::new());
            for _ in 0..2 * CLIENTS * ROUNDS {
                if kept.is_empty() {
                    kept.push(receiver.recv().unwrap());
                }
                kept.extend(receiver.try_iter());
                let (name, response) = kept.swap_remove(random.below(kept.len() as u64) as usize);
                response.text(name).unwrap();
            }
        });
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let address = &address;
                scope.spawn(move || {
                    let mut asker = Asker::connect(address);
                    for round in 0..ROUNDS {
                        let request = |which| format!("GET /{client}-{round}-{which} {HOST}\r\n");
                        asker.send(request("a") + &request("b"));
                        for which in ["a", "b"] {
                            assert_eq!(asker.answer().text(), format!("{client}-{round}-{which}"));
                        }
                    }
                });
            }
        });
        answering.join().unwrap();
        let stats = end(&server);
        assert_eq!(stats.answered.successful, (2 * CLIENTS * ROUNDS) as u64);
    }
}

#[test]
fn a_server_that_is_dropped_lets_go() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(1);
        let (server, address) = serve(&pool, kind, root);
        let mut asker = Asker::connect(&address);
        assert_eq!(asker.ask(format!("GET / {HOST}\r\n")).status, 200);
        let again: Http = server.clone();
        drop(server);
        assert_eq!(asker.ask(format!("GET / {HOST}\r\n")).status, 200);
        drop(again);
        asker.rest_or_reset();
        let _: fn(&Http) -> &Server = Http::server;
        let refused = || Client::try_connect(&address).is_err();
        until("nobody listens", refused);
        assert!(pool.shutdown(LONG).drained);
    }
}
