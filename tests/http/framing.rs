//! What is refused, and what becomes of the connection.

use crate::common::{hang_guard, unread, until, with_longer_ticks};
use crate::http_kit::*;
use crate::kit::{KINDS, Kind, TICK, pool};
use paceline::http::{HttpBuilder, Request, Response};
use std::thread;

fn routes(builder: HttpBuilder) -> HttpBuilder {
    builder
        .route("GET", "/", |_: &Request, response: Response| response.send("root"))
        .route("POST", "/", |request: &Request, response: Response| response.send(request.body()))
        .route("PUT", "/put", |_: &Request, response: Response| response.status(204).send(""))
}

/// What smells of smuggling: 400, and nothing that follows is looked at.
const SMELLS: [&str; 39] = [
    "GET / HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n",
    "GET / HTTP/1.1\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n",
    "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nx",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 1\r\n\r\nx",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\nx",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\nx\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
    "GET /#part HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET nowhere HTTP/1.1\r\nHost: a\r\n\r\n",
];

#[test]
fn what_smells_of_smuggling_is_refused_and_closes() {
    let _guard = hang_guard();
    for kind in [Kind::Tcp, Kind::Unix] {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, routes);
        for smell in SMELLS {
            let mut asker = Asker::connect(&address);
            // A good one before, and what must not be taken for one behind.
            let request = format!(
                "GET / HTTP/1.1\r\nHost: a\r\n\r\n{smell}GET / HTTP/1.1\r\nHost: a\r\n\r\n"
            );
            asker.send(request);
            assert_eq!(asker.answer().text(), "root");
            let answer = asker.answer();
            assert_eq!((answer.status, answer.closes()), (400, true), "{smell:?}");
            asker.expect_end();
        }
        let stats = end(&server);
        let many = SMELLS.len() as u64;
        assert_eq!((stats.begun, stats.refused.bad_request), (2 * many, many));
    }
}

/// The request, the status, and whether the connection goes on.
const REFUSED: [(&str, u16, bool); 20] = [
    ("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", 404, true),
    ("POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 404, true),
    (
        "POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        404,
        true,
    ),
    ("POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 404, false),
    (
        "POST /nowhere HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
        404,
        false,
    ),
    ("GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404, false),
    ("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", 405, true),
    ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501, true),
    ("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 501, true),
    ("CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", 400, false),
    ("CONNECT http://a:80/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, false),
    ("GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400, false),
    ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400, false),
    ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413, false),
    ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3E8\r\n", 200, true),
    ("POST / HTTP/1.1\r\nHost: a\r\nExpect: a miracle\r\nContent-Length: 3\r\n\r\n", 417, false),
    ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, false),
    ("GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505, false),
    ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, false),
    ("GET / HTTQ/1.1\r\nHost: a\r\n\r\n", 400, false),
];

#[test]
fn what_cannot_be_served_is_told_why() {
    let _guard = hang_guard();
    for kind in [Kind::Tcp, Kind::Unix] {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| routes(builder).max_body(1000));
        for (request, status, goes_on) in REFUSED {
            let mut asker = Asker::connect(&address);
            asker.send(request);
            if status == 200 {
                asker.send([b'x'; 1000]);
                asker.send("\r\n0\r\n\r\n");
            }
            let answer = asker.answer();
            assert_eq!((answer.status, answer.closes()), (status, !goes_on), "{request:?}");
            if status == 405 {
                assert_eq!(answer.header("allow"), Some("GET, HEAD, POST, OPTIONS"));
            }
            if goes_on {
                let next = asker.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                assert_eq!(next.text(), "root", "{request:?}");
            } else {
                asker.expect_end();
            }
        }
        end(&server);
    }
}

/// Requests that are good, one behind the other on a connection, and the status and body of each answer.
const GOOD: [(&str, &[(u16, &str)]); 9] = [
    (
        "GET / HTTP/1.2\r\nHost: a\r\n\r\nPOST / HTTP/1.3\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
        &[(200, "root"), (200, "x")],
    ),
    (
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &[(200, "root"), (200, "root")],
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: b\r\nX: y\r\n\r\n",
        &[(200, "abc"), (200, "root")],
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n\r\n\r\n",
        &[(200, ""), (200, "\r\n\r\n")],
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n00A;x=\"y\"\r\n0123456789\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &[(200, "abc0123456789"), (200, "root")],
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0;last\r\nTrailer: x\r\nOther:\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &[(200, "a"), (200, "root")],
    ),
    (
        "PUT /put HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxyPOST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n0\r\r\n0\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nz",
        &[(204, ""), (200, "0\r"), (200, "z")],
    ),
    // Of a body that nobody wants nothing is taken for a request.
    (
        "POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 28\r\n\r\nGET /put HTTP/1.1\r\nHost: b\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &[(404, "404 Not Found\n"), (200, "root")],
    ),
    (
        "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &[(200, "root")],
    ),
];

/// All that is answered to a stream that ends, without its dates.
fn answered(asker: &mut Asker) -> String {
    let answers = String::from_utf8(asker.rest()).unwrap();
    let is_no_date = |line: &&str| !line.starts_with("Date: ");
    answers.split_inclusive("\r\n").filter(is_no_date).collect()
}

/// Goal: answers, and where a connection ends, do not depend on where its bytes were cut. Method: a Unix socket tells
/// what its peer has not read yet, so both pieces are known to come by themselves; over TCP, byte by byte, the
/// kernel may put some together.
#[test]
fn it_does_not_matter_where_a_stream_is_cut() {
    let _guard = hang_guard();
    let good = GOOD.iter().map(|(stream, _)| (*stream).to_owned());
    let smells = SMELLS.iter().map(|smell| format!("{smell}GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    let refused = REFUSED.iter().map(|(stream, ..)| (*stream).to_owned());
    let streams: Vec<String> = good.chain(smells).chain(refused).collect();
    for kind in [Kind::Unix, Kind::Tcp] {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| routes(builder).max_body(1000));
        for (stream, answers) in GOOD {
            let mut asker = Asker::connect(&address);
            asker.send(stream);
            for (status, body) in answers {
                let answer = asker.answer();
                assert_eq!((answer.status, answer.text()), (*status, *body), "{stream:?}");
            }
            asker.client.finish();
            asker.expect_end();
        }
        for stream in &streams {
            let cut = |pieces: &[&[u8]]| {
                let mut asker = Asker::connect(&address);
                let _ = asker.client.0.set_tcp_nodelay(true);
                for piece in pieces {
                    asker.try_send(piece);
                    if kind == Kind::Unix {
                        until("it has been read", || unread(&asker.client.0) == 0);
                    }
                }
                // Whoever has answered with an end has it already.
                let _ = asker.client.0.shutdown(std::net::Shutdown::Write);
                answered(&mut asker)
            };
            let bytes = stream.as_bytes();
            let whole = cut(&[bytes]);
            assert!(!whole.is_empty() || stream.contains("3E8"), "{stream:?}");
            let each: Vec<_> = bytes.chunks(1).collect();
            assert_eq!(cut(&each), whole, "{stream:?}, byte by byte, {kind:?}");
            let ats = if kind == Kind::Unix { 1..bytes.len() } else { 0..0 };
            for at in ats {
                let (front, back) = bytes.split_at(at);
                assert_eq!(cut(&[front, back]), whole, "{stream:?}, at {at}");
            }
        }
        end(&server);
    }
}

#[test]
fn heads_are_bounded() {
    let _guard = hang_guard();
    for kind in [Kind::Tcp, Kind::Unix] {
        let pool = pool(2);
        let settings =
            |builder| routes(builder).max_head(1000).max_target(100).max_headers(5).max_body(10);
        let (server, address) = serve(&pool, kind, settings);
        let host = "HTTP/1.1\r\nHost: a\r\n";
        let many = "X: y\r\n".repeat(4);
        let requests = [
            (format!("GET /?{} {host}\r\n", "x".repeat(98)), 200),
            (format!("GET /?{} {host}\r\n", "x".repeat(99)), 414),
            (format!("GET /?{} {host}\r\n", "x".repeat(2000)), 414),
            (format!("GET / {host}X: {}\r\n\r\n", "x".repeat(1000 - 33)), 200),
            (format!("GET / {host}X: {}\r\n\r\n", "x".repeat(1000 - 32)), 200),
            (format!("GET / {host}X: {}\r\n\r\n", "x".repeat(1000 - 31)), 431),
            (format!("GET / {host}{many}\r\n"), 200),
            (format!("GET / {host}X: y\r\n{many}\r\n"), 431),
            // A limit, and what lies behind it has no say.
            (format!("GET / {host}X: {}\r\nContent-Length: x\r\n\r\n", "x".repeat(1000)), 431),
        ];
        for (request, status) in requests {
            let mut asker = Asker::connect(&address);
            let answer = asker.ask(&request);
            assert_eq!((answer.status, answer.closes()), (status, status != 200), "{request}");
            if status != 200 {
                asker.expect_end();
            }
        }
        end(&server);
    }
}

/// Goal: a head, or a body, that does not come in time is given up, however it drips; those that come
/// in time are served.
#[test]
fn what_comes_too_slowly_is_given_up() {
    let _guard = hang_guard();
    for kind in KINDS {
        with_longer_ticks("a steady body is served", |tick| {
            let pool = pool(2);
            let settings = |builder| {
                routes(builder).head_timeout(tick * 4).body_timeout(tick * 4).body_rate(2000)
            };
            let (server, address) = serve(&pool, kind, settings);
            let mut slow_head = Asker::connect(&address);
            let mut slow_body = Asker::connect(&address);
            let mut steady = Asker::connect(&address);
            // Twice what is asked for, and next to nothing.
            let enough = vec![b'x'; 4 * tick.as_millis() as usize];
            let length = 10 * enough.len();
            let post = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            slow_head.send("GET / HTTP/1.1\r\n");
            slow_body.send(&post);
            steady.try_send(&post);
            for _ in 0..10 {
                slow_head.try_send("X");
                slow_body.try_send("x");
                steady.try_send(&enough);
                thread::sleep(tick);
            }
            let served = steady.answer().status == 200;
            for mut slow in [slow_head, slow_body] {
                let answer = slow.answer();
                assert_eq!((answer.status, answer.closes()), (408, true));
                slow.rest_or_reset();
            }
            drop(steady);
            let stats = end(&server);
            assert_eq!((stats.begun, stats.refused.timed_out), (3, 3 - u64::from(served)));
            served
        });
    }
}

/// Goal: what is no request to be answered with a body has none in its refusal, either. Method: HEAD, refused
/// while its head is read, or not whole in time; the answer tells of a length, and ends with its head.
#[test]
fn a_refused_head_request_has_no_body() {
    let _guard = hang_guard();
    for kind in [Kind::Tcp, Kind::Unix] {
        let pool = pool(2);
        let settings =
            |builder| routes(builder).max_head(1000).max_target(100).head_timeout(TICK * 2);
        let (server, address) = serve(&pool, kind, settings);
        let host = "HTTP/1.1\r\nHost: a\r\n";
        for (request, status) in [
            (format!("HEAD / {host}X : y\r\n\r\n"), 400),
            (format!("\r\nHEAD / {host}X : y\r\n\r\n"), 400),
            (format!("HEAD /nowhere {host}Connection: close\r\n\r\n"), 404),
            (format!("HEAD / {host}"), 408),
            (format!("HEAD /{} {host}\r\n", "x".repeat(100)), 414),
            (format!("HEAD / {host}Expect: a miracle\r\n\r\n"), 417),
            (format!("HEAD / {host}X: {}\r\n\r\n", "x".repeat(1000)), 431),
            (String::from("HEAD / HTTP/2.0\r\n\r\n"), 505),
        ] {
            let mut asker = Asker::connect(&address);
            asker.send(&request);
            let answer = asker.answer_to(true);
            assert_eq!((answer.status, answer.closes()), (status, true), "{request}");
            assert_ne!(answer.header("content-length"), Some("0"));
            asker.expect_end();
        }
        end(&server);
    }
}

/// Goal: empty lines are no request: whoever sends nothing else is not told that it was too slow.
#[test]
fn empty_lines_alone_are_no_request() {
    let _guard = hang_guard();
    for kind in [Kind::Tcp, Kind::Unix] {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| routes(builder).head_timeout(TICK));
        let mut asker = Asker::connect(&address);
        asker.send("\r\n\r\n");
        asker.expect_end();
        drop(asker);
        assert_eq!(end(&server).begun, 0);
    }
}

/// Goal: what surrounds the data of a body is bounded as the data is, and small chunks are no attack.
#[test]
fn chunks_may_be_small_but_not_nearly_nothing_else() {
    let _guard = hang_guard();
    for kind in [Kind::Tcp, Kind::Unix] {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, routes);
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let small = format!("{head}{}0\r\n\r\n", "1;a=b\r\nx\r\n".repeat(5000));
        assert_eq!(Asker::connect(&address).ask(small).body, [b'x'; 5000]);
        let mut asker = Asker::connect(&address);
        let extended = format!("1;{}\r\nx\r\n", "e".repeat(200));
        asker.try_send(format!("{head}{}0\r\n\r\n", extended.repeat(200)));
        let answer = asker.answer();
        assert_eq!((answer.status, answer.closes()), (400, true));
        asker.expect_end();
        end(&server);
    }
}

#[test]
fn the_whole_server_can_be_asked_for_its_options() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(1);
        let (server, address) = serve(&pool, kind, |builder| {
            let handler = |_: &Request, response: Response| response.send("");
            routes(builder).route("PROPFIND", "/b", handler).route("OPTIONS", "/b", handler)
        });
        let mut asker = Asker::connect(&address);
        for target in ["*", "http://a", "HTTPS://a:1"] {
            let answer = asker.ask(format!("OPTIONS {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!((answer.status, answer.text()), (204, ""), "{target}");
            assert_eq!(answer.header("allow"), Some("GET, HEAD, POST, PUT, PROPFIND, OPTIONS"));
        }
        // What is asked of a path is not.
        for target in ["http://a/", "http://a?b"] {
            let answer = asker.ask(format!("OPTIONS {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!(answer.status, 204, "{target}");
            assert_eq!(answer.header("allow"), Some("GET, HEAD, POST, OPTIONS"));
        }
        drop(asker);
        end(&server);
    }
}

#[test]
fn the_answer_about_the_whole_server_can_be_ones_own() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(1);
        let (server, address) = serve(&pool, kind, |builder| {
            let options = |_: &Request, response: Response| response.status(204).send("");
            routes(builder).route("OPTIONS", "*", options)
        });
        let mut asker = Asker::connect(&address);
        assert_eq!(asker.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").status, 204);
        let answer = asker.ask("OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(answer.header("allow"), Some("GET, HEAD, POST, OPTIONS"));
        assert_eq!(asker.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").text(), "root");
        drop(asker);
        end(&server);
    }
}

/// Values, and the request that has one of them.
type Values = (&'static [&'static str], fn(&str) -> String);

/// What is no host, no target, or no extension of a chunk: 400, and the connection closes.
const NONE_OF_THESE: [Values; 4] = [
    (
        &[
            "",
            ":",
            ":80",
            "a:b",
            "a:b:c",
            "::1",
            "[",
            "]",
            "[]",
            "[::1",
            "[::1]x",
            "[::1]:x",
            "[a]",
            "[1.2.3.4]",
            "h:99999",
            "h:65536",
            "h:+1",
            "h: 1",
            "%zz",
            "a%2",
            "%",
            ";=!",
            "a;b",
            "a@b",
            "a(b)",
            "a b",
            "a,b",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "\u{e9}",
            "[::1%1]",
        ],
        |host| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    ),
    (&["a:b:c", "a:x", "u@a", "u:p@a:1", "[", "%zz", "a:99999", ":80", "a,b"], |host| {
        format!("GET http://{host}/ HTTP/1.1\r\nHost: a\r\n\r\n")
    }),
    (&["\\", "<", ">", "\"", "\x01", "\x7f", "\u{e9}"], |byte| {
        format!("GET /a{byte}b HTTP/1.1\r\nHost: a\r\n\r\n")
    }),
    (
        &[
            "1;",
            "1;;",
            "1;;a",
            "1;a;",
            "1;a=",
            "1;a=;b",
            "1;=b",
            "1;a=\"",
            "1;a=\"b",
            "1;a=\"\\\"",
            "1;a=\"b\"c",
            "1;a b",
            "1;a=b c",
            "1;a@",
            "1;a=b@",
            "1;a\t",
            "1;a=b ",
            "1 ",
            "1;(a)",
            "1;a=\"\x01\"",
            "1;\u{e9}",
            "0;",
        ],
        |line| {
            let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
            format!("{head}{line}\r\nx\r\n0\r\n\r\n")
        },
    ),
];

/// The same kinds, and these are good.
const THESE: [Values; 4] = [
    (
        &[
            "a",
            "a.b-c_d~e",
            "A1:80",
            "a:",
            "a:0",
            "a:065535",
            "1.2.3.4",
            "1.2.3.4:8080",
            "[::1]",
            "[::1]:80",
            "[1:2:3:4:5:6:7.8.9.10]",
            "%41b",
            "xn--bcher-kva.example.:1",
        ],
        |host| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    ),
    (&["a", "a:80", "a:", "[::1]", "[::1]:1", "%41"], |host| {
        format!("GET http://{host}/ HTTP/1.1\r\nHost: a\r\n\r\n")
    }),
    // The last three as browsers send them.
    (&["/?\u{21}$&'()*+,;=:@/?-._~%41%", "/?a[b]=c", "/?a={b|c}^`", "/?{"], |target| {
        format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")
    }),
    (
        &[
            "1;a",
            "1;a=b",
            "1;a=\"b\"",
            "1;a=\"\"",
            "1;a=\"b\\\"\\\\c;\u{e9}\t\"",
            "1;a;b=c;d=\"e\"",
            "1 ; a = b ; c",
            "1\t;\ta",
            "1 ;a \t= \"b\" ;c",
            "01;a",
        ],
        |line| {
            let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
            format!("{head}{line}\r\nx\r\n0\r\n\r\n")
        },
    ),
];

#[test]
fn hosts_and_targets_and_extensions_are_what_their_grammars_say() {
    let _guard = hang_guard();
    let pool = pool(2);
    let (server, address) = serve(&pool, Kind::Tcp, routes);
    let mut wrong = Vec::new();
    for (values, request) in NONE_OF_THESE {
        for value in values {
            let mut asker = Asker::connect(&address);
            let answer = asker.ask(request(value));
            if (answer.status, answer.closes()) != (400, true) {
                wrong.push(format!("{:?} is answered with {}", request(value), answer.status));
            }
        }
    }
    let mut asker = Asker::connect(&address);
    for (values, request) in THESE {
        for value in values {
            let answer = asker.ask(request(value));
            if answer.closes() {
                asker = Asker::connect(&address);
            }
            if answer.status != 200 {
                wrong.push(format!("{:?} is answered with {}", request(value), answer.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    drop(asker);
    end(&server);
}

/// Goal: a body in a coding that is not understood is told apart from one that has no end (RFC 9112, 6.1 and
/// 6.3). The connection ends with both.
#[test]
fn transfer_codings_that_are_not_understood_are_told() {
    let _guard = hang_guard();
    let pool = pool(2);
    let (server, address) = serve(&pool, Kind::Tcp, routes);
    let cases = [
        ("HTTP/1.1", "gzip, chunked", 501),
        ("HTTP/1.1", "gzip\t,chunked", 501),
        ("HTTP/1.1", "gzip;q=\"1\", deflate, Chunked", 501),
        ("HTTP/1.1", "gzip\r\nTransfer-Encoding: chunked", 501),
        ("HTTP/1.1", "gzip", 400),
        ("HTTP/1.1", "chunked, gzip", 400),
        ("HTTP/1.1", "chunked\r\nTransfer-Encoding: gzip", 400),
        ("HTTP/1.1", "gzip, chunked, chunked", 400),
        ("HTTP/1.1", "chunked, gzip, chunked", 400),
        ("HTTP/1.1", "gzip, chunked\r\nContent-Length: 5", 400),
        ("HTTP/1.1", "g zip, chunked", 400),
        ("HTTP/1.1", ", chunked", 400),
        ("HTTP/1.1", "gzip, chunked;a=b", 400),
        ("HTTP/1.0", "gzip, chunked", 400),
    ];
    for (version, coding, status) in cases {
        let mut asker = Asker::connect(&address);
        let head = format!("POST / {version}\r\nHost: a\r\nTransfer-Encoding: {coding}\r\n\r\n");
        let answer = asker.ask(head + "0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!((answer.status, answer.closes()), (status, true), "{version} {coding:?}");
        asker.expect_end();
    }
    let stats = end(&server);
    assert_eq!((stats.refused.not_implemented, stats.begun), (4, cases.len() as u64));
}

/// Goal: a minor version that is not known is taken for the highest that is (RFC 9110, 2.5), whatever comes
/// before and behind. Method: requests with a body and without one, alone and in one write, cut anywhere.
#[test]
fn a_later_minor_version_is_served_as_this_one() {
    let _guard = hang_guard();
    let pool = pool(2);
    let (server, address) = serve(&pool, Kind::Unix, |builder| routes(builder).max_body(100));
    let requests = [
        "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.9\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nroot\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.3\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.2\r\nHost: a\r\nContent-Length: 4\r\n\r\nroot",
        "GET / HTTP/1.2\r\nHost: a\r\nConnection: close\r\n\r\n",
    ];
    let all = requests.concat();
    for at in 0..all.len() {
        let mut asker = Asker::connect(&address);
        asker.send(&all[..at]);
        until("it has been read", || unread(&asker.client.0) == 0);
        asker.send(&all[at..]);
        for request in requests {
            let answer = asker.answer();
            assert_eq!((answer.status, answer.text()), (200, "root"), "{request:?} cut at {at}");
        }
        asker.expect_end();
    }
    // What is asked of that one is asked of this one.
    for (request, status) in [
        ("GET / HTTP/1.2\r\n\r\n", 400),
        ("GET / HTTP/1.2\nHost: a\r\n\r\n", 400),
        ("GET /\x01 HTTP/1.2\r\nHost: a\r\n\r\n", 400),
        ("GET  / HTTP/1.2\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.2\r\nHost : a\r\n\r\n", 400),
        ("GET / HTTP/1.2\r\nHost: a\r\nX\r\n\r\n", 400),
        ("GET / HTTP/1.22\r\nHost: a\r\n\r\n", 400),
        ("POST / HTTP/1.2\r\nHost: a\r\nExpect: a miracle\r\n\r\n", 417),
        ("GET / HTTP/2.1\r\nHost: a\r\n\r\n", 505),
        ("GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505),
    ] {
        let mut asker = Asker::connect(&address);
        let answer = asker.ask(request);
        assert_eq!((answer.status, answer.closes()), (status, true), "{request:?}");
        asker.expect_end();
    }
    let many = format!("GET / HTTP/1.2\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(100));
    assert_eq!(Asker::connect(&address).ask(many).status, 431);
    let long = format!("GET /{} HTTP/1.2\r\nHost: a\r\n\r\n", "x".repeat(8 << 10));
    assert_eq!(Asker::connect(&address).ask(long).status, 414);
    end(&server);
}

/// Goal: a route of one method hides none of another, and what a path is asked for its options says all
/// that it has.
#[test]
fn methods_are_routed_apart() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(1);
        let (server, address) = serve(&pool, kind, |builder| {
            let say =
                |name: &'static str| move |_: &Request, response: Response| response.send(name);
            builder
                .max_body(100)
                .route("POST", "/users/new", say("new"))
                .route("GET", "/users/{id}", say("user"))
                .route("DELETE", "/users/{name}", say("deleted"))
                .route("PUT", "/{*all}", say("put"))
                .route("HEAD", "/users/{id}/", say("head"))
                .route("OPTIONS", "/own", say("own"))
                .route("GET", "/own", say("get"))
        });
        let mut asker = Asker::connect(&address);
        for (request, expected) in [
            ("GET /users/new", "user"),
            ("POST /users/new", "new"),
            ("DELETE /users/new", "deleted"),
            ("PUT /users/new", "put"),
            ("PUT /own", "put"),
            ("OPTIONS /own", "own"),
            ("GET /own", "get"),
        ] {
            // Twice, since what was found is remembered.
            for _ in 0..2 {
                let answer = asker.ask(format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n"));
                assert_eq!((answer.status, answer.text()), (200, expected), "{request}");
            }
        }
        assert_eq!(asker.ask("HEAD /users/new HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
        for (request, status, allow) in [
            ("PATCH /users/new", 405, Some("POST, GET, HEAD, DELETE, PUT, OPTIONS")),
            ("POST /users/1", 405, Some("GET, HEAD, DELETE, PUT, OPTIONS")),
            ("GET /else", 405, Some("PUT, OPTIONS")),
            ("GET /users/1/", 405, Some("PUT, HEAD, OPTIONS")),
            ("GET /", 404, None),
            ("OPTIONS /", 404, None),
            ("BREW /users/new", 501, None),
            ("OPTIONS /users/new", 204, Some("POST, GET, HEAD, DELETE, PUT, OPTIONS")),
            ("OPTIONS /users/1?a", 204, Some("GET, HEAD, DELETE, PUT, OPTIONS")),
            ("OPTIONS /else", 204, Some("PUT, OPTIONS")),
            ("OPTIONS *", 204, Some("POST, GET, HEAD, DELETE, PUT, OPTIONS")),
        ] {
            for body in ["", "Content-Length: 4\r\n\r\nbody"] {
                let end = if body.is_empty() { "\r\n" } else { body };
                let answer = asker.ask(format!("{request} HTTP/1.1\r\nHost: a\r\n{end}"));
                assert_eq!((answer.status, answer.header("allow")), (status, allow), "{request}");
                assert!(
                    !answer.closes()
                        && answer.header("content-length").is_some() == (status != 204)
                );
            }
        }
        drop(asker);
        end(&server);
    }
}
