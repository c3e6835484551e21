//! Bodies: whole and piece by piece, in both directions, and answers that have none.

use crate::common::{Count, hang_guard, until};
use crate::http_kit::*;
use crate::kit::{Client, KINDS, Kind, TICK, pattern, pool};
use paceline::Error;
use paceline::http::{Body, HttpBuilder, Request, RequestBody, Response};
use paceline::net::{ConnRef, WriteStatus};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

const HOST: &str = "HTTP/1.1\r\nHost: h\r\n";

fn echo(builder: HttpBuilder) -> HttpBuilder {
    builder.route("POST", "/echo", |request: &Request, response: Response| {
        response.send(request.body())
    })
}

/// A body in chunks of these sizes.
fn chunked(bytes: &[u8], sizes: &[usize]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), bytes);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, behind) = rest.split_at(rest.len().min(*size));
        out.extend(format!("{:x};name=\"value\"\r\n", chunk.len()).into_bytes());
        out.extend(chunk);
        out.extend(b"\r\n");
        rest = behind;
    }
    out.extend(b"0\r\nTrailer: dropped\r\n\r\n");
    out
}

#[test]
fn chunks_are_put_together() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, echo);
        let mut asker = Asker::connect(&address);
        for size in [0, 1, 17, 5000, 200_000] {
            let body = pattern(size);
            let mut request =
                format!("POST /echo {HOST}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
            request.extend(chunked(&body, &[1, 3000, 16, 70_000]));
            let mut sender = Client(asker.client.0.try_clone().unwrap());
            let sender = thread::spawn(move || sender.send(request));
            assert!(asker.answer().body == body);
            sender.join().unwrap();
        }
        drop(asker);
        end(&server);
    }
}

#[test]
fn a_body_that_is_announced_is_asked_for() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, echo);
        let mut asker = Asker::connect(&address);
        for framing in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
            let head = format!("POST /echo {HOST}Expect: 100-Continue\r\n{framing}\r\n\r\n");
            assert_eq!(asker.ask(head).status, 100);
            let body = if framing.ends_with('5') { "hello" } else { "5\r\nhello\r\n0\r\n\r\n" };
            assert_eq!(asker.ask(body).text(), "hello");
        }
        // Nothing to ask for, and a version that knows nothing of it.
        let none = format!("POST /echo {HOST}Expect: 100-continue\r\n\r\n");
        assert_eq!(asker.ask(none).status, 200);
        let old = "POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        asker.send(old);
        thread::sleep(TICK / 5);
        assert_eq!(asker.ask("ok").text(), "ok");
        asker.expect_end();
        end(&server);
    }
}

#[test]
fn some_answers_have_no_body() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| {
            let answer = |request: &Request, response: Response| {
                let status = request.param("status").unwrap().parse().unwrap();
                let response = response.status(status);
                match request.query() {
                    None => response.header("X-Own", "mine").send("body"),
                    Some("owned") => response.send_owned(b"body".to_vec()),
                    Some(_) => {
                        let mut body = response.stream(Some(4)).unwrap();
                        body.write(b"body").unwrap();
                        body.finish()
                    }
                }
            };
            builder.route("GET", "/{status}", answer)
        });
        let mut asker = Asker::connect(&address);
        for how in ["", "?owned", "?stream"] {
            for (status, length) in [(200, Some("4")), (204, None), (304, None), (404, Some("4"))] {
                let get = asker.ask(format!("GET /{status}{how} {HOST}\r\n"));
                assert_eq!((get.status, get.header("content-length")), (status, length));
                assert_eq!(get.text(), if length.is_some() { "body" } else { "" });
                let head = asker.ask(format!("HEAD /{status}{how} {HOST}\r\n"));
                assert_eq!((head.status, head.header("content-length")), (status, length));
                assert_eq!(head.header("x-own").is_some(), how.is_empty());
            }
            let missing = asker.ask(format!("HEAD /a/b{how} {HOST}\r\n"));
            assert_eq!(missing.status, 404);
        }
        drop(asker);
        end(&server);
    }
}

/// What HTTP/1.0 can do, and when connections end.
#[test]
fn old_peers_are_served_as_they_know_it() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| {
            let parts = |_: &Request, response: Response| {
                let mut body = response.stream(None).unwrap();
                body.write(b"part ").unwrap();
                body.write(b"").unwrap();
                body.write(b"by part").unwrap();
                body.finish()
            };
            let close = |_: &Request, response: Response| response.close().send("bye");
            echo(builder).route("GET", "/parts", parts).route("GET", "/close", close)
        });
        let mut asker = Asker::connect(&address);
        let kept = "POST /echo HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx";
        for _ in 0..2 {
            let answer = asker.ask(kept);
            assert_eq!(answer.header("connection"), Some("keep-alive"));
        }
        let answer = asker.ask("GET /parts HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!((answer.text(), answer.closes()), ("part by part", true));

        let mut asker = Asker::connect(&address);
        let answer = asker.ask(format!("GET /parts {HOST}\r\n"));
        assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
        assert_eq!((answer.text(), answer.closes()), ("part by part", false));
        assert!(asker.ask(format!("GET /close {HOST}\r\n")).closes());
        asker.expect_end();
        end(&server);
    }
}

#[test]
fn what_a_response_may_not_have_is_an_error_and_a_500() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let said = Arc::new(Mutex::new(Vec::new()));
        let inner = Arc::clone(&said);
        let (server, address) = serve(&pool, kind, move |builder| {
            let spoil = move |request: &Request, response: Response| {
                let result = match request.param("what").unwrap() {
                    "name" => response.header("na me", "x").send(""),
                    "value" => response.header("X", "a\r\nY: b").send(""),
                    "own" => response.header("content-length", "7").send(""),
                    "status" => response.status(199).status(600).send(""),
                    "upgrade" => response.upgrade("raw", Nothing),
                    "large" => response.send(vec![0; 17 << 20]),
                    "more" => {
                        let mut body = response.stream(Some(2)).unwrap();
                        let error = body.write(b"abc").unwrap_err();
                        body.write(b"ab").unwrap();
                        body.finish().unwrap();
                        Err(error)
                    }
                    _ => response.stream(Some(2)).unwrap().finish(),
                };
                inner.lock().unwrap().push(result.unwrap_err().to_string());
            };
            builder.route("GET", "/{what}", spoil)
        });
        let cases = [
            ("name", "header is \"na me\", but must be a token (RFC 9110, 5.6.2)"),
            ("value", "header is X: a\\r\\nY: b, but must be free of control characters"),
            (
                "own",
                "header is content-length, but must be one that the library does not write itself",
            ),
            ("status", "status is 199, but must be 200 to 599"),
            (
                "upgrade",
                "upgrade is \"raw\", but must be offered by its client, which offers nothing",
            ),
            ("large", "all 16777216 bytes of a connection's output are in use"),
            ("more", "bytes of a body is 3, but must be up to the 2 bytes that are left"),
            ("less", "bytes left of a body is 2, but must be 0 at its end"),
        ];
        for (what, error) in cases {
            let mut asker = Asker::connect(&address);
            asker.send(format!("GET /{what} {HOST}\r\n"));
            match what {
                "more" => assert_eq!(asker.answer().text(), "ab"),
                "less" => {
                    let is_reset = asker.rest_or_reset().1;
                    assert_eq!(is_reset, matches!(kind, Kind::Tcp | Kind::Tcp6), "{kind:?}");
                }
                "upgrade" => assert_eq!(asker.answer().status, 426),
                _ => assert_eq!(asker.answer().status, 500),
            }
            assert_eq!(said.lock().unwrap().pop().unwrap(), error);
        }
        let stats = end(&server);
        assert_eq!((stats.refused.unanswered, stats.aborted.unfinished), (5, 1));
    }
}

struct Nothing;

impl paceline::net::ConnHandler for Nothing {
    fn data(&mut self, _: &paceline::net::Conn, bytes: &[u8]) -> usize {
        bytes.len()
    }
}

/// Goal: a body larger than all marks arrives whole, and its writer is never far ahead of the peer.
/// Method: by a producer, and by a thread that waits for room.
#[test]
fn a_streamed_answer_goes_as_fast_as_the_peer() {
    const SIZE: usize = 3_000_000;
    const MAX: usize = 100_000;
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| {
            let pumped = |request: &Request, response: Response| {
                let length = request.query().map(|_| SIZE as u64);
                let (bytes, mut sent) = (pattern(SIZE), 0);
                response.stream(length).unwrap().pump(move |body| {
                    let next = (sent + 10_000).min(SIZE);
                    body.write(&bytes[sent..next])?;
                    sent = next;
                    Ok(sent < SIZE)
                });
            };
            // So little at a time that the output does not press before others have their turn.
            let sipped = |_: &Request, response: Response| {
                let mut left = 100_u8;
                response.stream(None).unwrap().pump(move |body| {
                    body.write(&[left])?;
                    left -= 1;
                    Ok(left > 0)
                });
            };
            let waited = |request: &Request, response: Response| {
                let body = response.stream(request.query().map(|_| SIZE as u64)).unwrap();
                thread::spawn(move || write_when_there_is_room(body, &pattern(SIZE)));
            };
            builder
                .server(|server| server.output_marks(10_000, 40_000, MAX).send_buffer(4096))
                .route("GET", "/pumped", pumped)
                .route("GET", "/sipped", sipped)
                .route("GET", "/waited", waited)
        });
        let whole = pattern(SIZE);
        let mut asker = Asker::connect(&address);
        for path in ["/pumped", "/pumped?length", "/waited", "/waited?length"] {
            let answer = asker.ask(format!("GET {path} {HOST}\r\n"));
            assert!(answer.body == whole, "{path}: {} bytes", answer.body.len());
        }
        let sips: Vec<_> = (1..=100).rev().collect();
        assert_eq!(asker.ask(format!("GET /sipped {HOST}\r\n")).body, sips);
        drop(asker);
        assert_eq!(end(&server).answered.successful, 5);
    }
}

fn write_when_there_is_room(mut body: Body, bytes: &[u8]) {
    let room = Count::new();
    let inner = room.clone();
    body.on_writable(move || inner.up());
    let mut falls = 0;
    for part in bytes.chunks(10_000) {
        if body.write(part).unwrap() == WriteStatus::AboveHighMark {
            // The first call may have come when nothing pressed.
            room.until(falls + 1);
            until("the output has fallen", || !body.is_pressed());
            falls = room.get();
        }
    }
    body.finish().unwrap();
}

/// A body that takes what it is told to, when it is told to.
struct Tasting {
    response: Option<Response>,
    seen: Arc<Mutex<Vec<u8>>>,
    allowed: Arc<Mutex<usize>>,
}

impl RequestBody for Tasting {
    fn data(&mut self, bytes: &[u8]) -> usize {
        let mut allowed = self.allowed.lock().unwrap();
        let taken = bytes.len().min(*allowed);
        *allowed -= taken;
        self.seen.lock().unwrap().extend_from_slice(&bytes[..taken]);
        taken
    }

    fn end(self: Box<Self>) {
        let size = self.seen.lock().unwrap().len();
        self.response.unwrap().text(format!("{size} bytes")).unwrap();
    }
}

#[derive(Clone, Default)]
struct Taste {
    seen: Arc<Mutex<Vec<u8>>>,
    allowed: Arc<Mutex<usize>>,
    conn: Arc<Mutex<Option<ConnRef>>>,
}

fn tasting(builder: HttpBuilder, taste: &Taste) -> HttpBuilder {
    let taste = taste.clone();
    builder.route_streaming("PUT", "/taste", move |request: &Request, response: Response| {
        assert!(request.body().is_empty());
        *taste.conn.lock().unwrap() = Some(request.conn());
        Tasting {
            response: Some(response),
            seen: Arc::clone(&taste.seen),
            allowed: Arc::clone(&taste.allowed),
        }
    })
}

/// Goal: what is not taken is shown again after a resume, byte for byte, and nothing is read meanwhile.
#[test]
fn a_streamed_request_goes_as_fast_as_it_is_taken() {
    const SIZE: usize = 400_000;
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, taste) = (pool(2), Taste::default());
        let (server, address) = serve(&pool, kind, |builder| tasting(echo(builder), &taste));
        let mut asker = Asker::connect(&address);
        let bytes = pattern(SIZE);
        for is_chunked in [false, true] {
            taste.seen.lock().unwrap().clear();
            *taste.allowed.lock().unwrap() = 10;
            let mut request = match is_chunked {
                false => format!("PUT /taste {HOST}Content-Length: {SIZE}\r\n\r\n").into_bytes(),
                true => format!("PUT /taste {HOST}Transfer-Encoding: chunked\r\n\r\n").into_bytes(),
            };
            match is_chunked {
                false => request.extend(&bytes),
                true => request.extend(chunked(&bytes, &[1000, 77_777])),
            }
            request.extend(format!("POST /echo {HOST}Content-Length: 4\r\n\r\nnext").bytes());
            let mut sender = Client(asker.client.0.try_clone().unwrap());
            let sender = thread::spawn(move || sender.send(request));
            let mut expected = 10;
            while expected < SIZE {
                until("a taste", || taste.seen.lock().unwrap().len() == expected);
                *taste.allowed.lock().unwrap() = 7000;
                expected = (expected + 7000).min(SIZE);
                let conn = taste.conn.lock().unwrap().clone().unwrap();
                conn.resume().unwrap();
            }
            assert_eq!(asker.answer().text(), format!("{SIZE} bytes"));
            assert!(*taste.seen.lock().unwrap() == bytes);
            assert_eq!(asker.answer().text(), "next");
            sender.join().unwrap();
        }
        drop(asker);
        assert_eq!(end(&server).answered.successful, 4);
    }
}

/// Goal: a body that is not taken for longer than it may take to come is not its peer's fault. Method: it is
/// there as a whole, and nobody takes it, for several times that long.
#[test]
fn a_body_that_is_held_back_is_not_too_slow() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, taste) = (pool(2), Taste::default());
        let (server, address) = serve(&pool, kind, |builder| {
            tasting(builder, &taste).body_timeout(TICK).body_rate(1 << 20)
        });
        let mut asker = Asker::connect(&address);
        asker.send(format!("PUT /taste {HOST}Content-Length: 5\r\n\r\nbytes"));
        until("it is asked for", || taste.conn.lock().unwrap().is_some());
        thread::sleep(TICK * 4);
        *taste.allowed.lock().unwrap() = 5;
        taste.conn.lock().unwrap().take().unwrap().resume().unwrap();
        assert_eq!(asker.answer().text(), "5 bytes");
        drop(asker);
        end(&server);
    }
}

/// Goal: what a body calls for room goes with its connection. Method: the client goes; the body stays.
#[test]
fn a_hook_for_room_goes_with_its_connection() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, dropped, kept) = (pool(2), Count::new(), Arc::new(Mutex::new(Vec::new())));
        let (count, bodies) = (dropped.clone(), Arc::clone(&kept));
        let (server, address) = serve(&pool, kind, |builder| {
            builder.route("GET", "/", move |_: &Request, response: Response| {
                let (body, goes) = (response.stream(None).unwrap(), count.on_drop());
                body.on_writable(move || {
                    let _ = &goes;
                });
                bodies.lock().unwrap().push(body);
            })
        });
        let mut asker = Asker::connect(&address);
        asker.send(format!("GET / {HOST}\r\n"));
        until("it is kept", || !kept.lock().unwrap().is_empty());
        assert_eq!(dropped.get(), 0);
        kept.lock().unwrap()[0].conn().abort().unwrap();
        dropped.until(1);
        drop(kept.lock().unwrap().pop());
        end(&server);
    }
}

/// Goal: a factory may answer before the body has come, which is then dropped, or not asked for.
#[test]
fn an_early_answer_spares_the_body() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| {
            let refuse = |_: &Request, response: Response| {
                response.status(401).send("no").unwrap();
                None::<Tasting>
            };
            echo(builder).max_body(1000).route_streaming("PUT", "/no", refuse)
        });
        let mut asker = Asker::connect(&address);
        for framing in [
            "Content-Length: 4\r\n\r\nbody",
            "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
        ] {
            let answer = asker.ask(format!("PUT /no {HOST}{framing}"));
            assert_eq!((answer.status, answer.closes()), (401, false));
        }
        assert_eq!(asker.ask(format!("POST /echo {HOST}Content-Length: 2\r\n\r\nok")).text(), "ok");
        let expects = format!("PUT /no {HOST}Expect: 100-continue\r\nContent-Length: 4\r\n\r\n");
        assert_eq!(asker.ask(expects).status, 401);
        asker.expect_end();
        // More than will be dropped.
        let mut asker = Asker::connect(&address);
        assert_eq!(asker.ask(format!("PUT /no {HOST}Content-Length: 5000\r\n\r\n")).status, 401);
        asker.try_send([b'x'; 1001]);
        asker.expect_end();
        end(&server);
    }
}

/// Goal: a streamed body that is malformed, too slow, or cut off, is never ended, and its response comes
/// too late.
#[test]
fn a_broken_body_never_ends() {
    let _guard = hang_guard();
    for kind in KINDS {
        let (pool, taste) = (pool(2), Taste::default());
        *taste.allowed.lock().unwrap() = usize::MAX;
        let (server, address) = serve(&pool, kind, |builder| {
            tasting(builder, &taste).body_timeout(TICK * 2).body_rate(1000)
        });
        let request = format!("PUT /taste {HOST}Transfer-Encoding: chunked\r\n\r\n3\r\nabc");
        for (more, status) in [("x", 400), ("", 408)] {
            let mut asker = Asker::connect(&address);
            asker.send(request.clone() + more);
            let answer = asker.answer();
            assert_eq!((answer.status, answer.closes()), (status, true));
            asker.expect_end();
        }
        let stats = end(&server);
        assert_eq!((stats.refused.bad_request, stats.refused.timed_out, stats.begun), (1, 1, 2));
        let (server, address) = serve(&pool, kind, |builder| tasting(builder, &taste));
        let asker = Asker::connect(&address);
        asker.client.finish();
        drop(asker);
        let mut asker = Asker::connect(&address);
        asker.send(&request);
        asker.client.finish();
        asker.expect_end();
        let stats = end(&server);
        assert_eq!((stats.begun, stats.aborted.disconnected), (1, 1));
        assert_eq!(&taste.seen.lock().unwrap()[..], b"abcabcabc");
    }
}

#[test]
fn a_body_dropped_before_its_end_resets_the_connection() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| {
            let stop = |_: &Request, response: Response| {
                let mut body = response.stream(None).unwrap();
                body.write(b"a part").unwrap();
                thread::spawn(move || drop(body));
            };
            let fail = |_: &Request, response: Response| {
                response.stream(None).unwrap().pump(|_| Err(Error::Cancelled));
            };
            builder.route("GET", "/stop", stop).route("GET", "/fail", fail)
        });
        for path in ["/stop", "/fail"] {
            let mut asker = Asker::connect(&address);
            asker.send(format!("GET {path} {HOST}\r\n"));
            let (got, reset) = asker.rest_or_reset();
            assert!(!got.ends_with(b"0\r\n\r\n"), "{}", got.escape_ascii());
            assert!(reset || !matches!(kind, Kind::Tcp | Kind::Tcp6), "{path}");
        }
        assert_eq!(end(&server).aborted.unfinished, 2);
    }
}

/// By whom reading is resumed.
#[derive(Clone, Copy, Debug)]
enum Resumes {
    /// By `data` itself, before it has returned.
    Inside,
    /// By a thread that was started in `data`, and has ended before that returns.
    Beside,
    /// By a thread that takes what `data` has handed over.
    Taker,
}

/// Takes a part at a time, and has reading resumed at once.
struct Hasty {
    conn: ConnRef,
    resumes: Resumes,
    response: Option<Response>,
    seen: Arc<Mutex<Vec<u8>>>,
    most: Arc<Mutex<usize>>,
    parts: SyncSender<(Vec<u8>, ConnRef)>,
}

impl Hasty {
    fn hand_over(&self, part: &[u8]) -> usize {
        let sent = self.parts.try_send((part.to_vec(), self.conn.clone()));
        if sent.is_ok() { part.len() } else { 0 }
    }
}

impl RequestBody for Hasty {
    fn data(&mut self, bytes: &[u8]) -> usize {
        let mut most = self.most.lock().unwrap();
        *most = bytes.len().max(*most);
        let part = &bytes[..bytes.len().min(4096)];
        match self.resumes {
            Resumes::Taker => return self.hand_over(part),
            Resumes::Inside => self.conn.resume().unwrap(),
            Resumes::Beside => thread::scope(|scope| {
                scope.spawn(|| self.conn.resume().unwrap());
            }),
        }
        self.seen.lock().unwrap().extend_from_slice(part);
        part.len()
    }

    fn end(self: Box<Self>) {
        self.response.unwrap().text("all").unwrap();
    }
}

fn takes_hastily(kind: Kind, resumes: Resumes, is_chunked: bool, size: usize) {
    let case = format!("{kind:?}, {resumes:?}, chunked: {is_chunked}, {size} bytes");
    let pool = pool(2);
    let (seen, most) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
    let (parts, taken) = sync_channel::<(Vec<u8>, ConnRef)>(2);
    let taker = {
        let seen = Arc::clone(&seen);
        thread::spawn(move || {
            for (part, conn) in taken {
                seen.lock().unwrap().extend(part);
                // It may have ended, with its last part.
                let _stale = conn.resume();
            }
        })
    };
    let (all, longest) = (Arc::clone(&seen), Arc::clone(&most));
    let (server, address) = serve(&pool, kind, |builder| {
        builder.max_body(1 << 30).route_streaming("PUT", "/", move |request: &Request, response| {
            Hasty {
                conn: request.conn(),
                resumes,
                response: Some(response),
                seen: Arc::clone(&all),
                most: Arc::clone(&longest),
                parts: parts.clone(),
            }
        })
    });
    let mut asker = Asker::connect(&address);
    let body = pattern(size);
    let mut put = match is_chunked {
        false => format!("PUT / {HOST}Content-Length: {size}\r\n\r\n").into_bytes(),
        true => format!("PUT / {HOST}Transfer-Encoding: chunked\r\n\r\n").into_bytes(),
    };
    match is_chunked {
        false => put.extend(&body),
        true => put.extend(chunked(&body, &[1000, 77_777])),
    }
    let mut sender = Client(asker.client.0.try_clone().unwrap());
    let sender = thread::spawn(move || {
        // A server that resets the connection is seen by its answer.
        let _ = std::io::Write::write_all(&mut sender.0, &put);
    });
    let answer = asker.try_answer().map(|answer| (answer.status, answer.body));
    assert_eq!(answer, Some((200, b"all".to_vec())), "{case}");
    sender.join().unwrap();
    // One read, and no more, is there at once.
    let most = *most.lock().unwrap();
    assert!(most <= 64 << 10, "{case}: {most} bytes were there at once");
    drop(asker);
    assert_eq!(end(&server).answered.successful, 1, "{case}");
    drop(server);
    drop(pool);
    taker.join().unwrap();
    assert!(*seen.lock().unwrap() == body, "{case}");
}

/// Goal: a resume is not lost though it comes before the body's `data` has returned, and has nothing read before that
/// has taken what is there. Method: bodies up to 20 MB, of which no more is taken at a time than 4 KiB.
#[test]
fn a_resume_may_come_early() {
    let _guard = hang_guard();
    for kind in KINDS {
        for is_chunked in [false, true] {
            for size in [1, 5, 100_000, 1_000_000] {
                takes_hastily(kind, Resumes::Inside, is_chunked, size);
                takes_hastily(kind, Resumes::Taker, is_chunked, size);
            }
            takes_hastily(kind, Resumes::Beside, is_chunked, 1_000_000);
        }
    }
    takes_hastily(Kind::Tcp, Resumes::Inside, false, 20_000_000);
    takes_hastily(Kind::Tcp, Resumes::Taker, false, 20_000_000);
}

/// Goal: a resume that comes after the end of the body does not have the next requests read while the answer is in work.
/// Method: a peer that sends megabytes ahead, and a resume again and again before the answer.
#[test]
fn a_late_resume_reads_no_requests_ahead() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let place = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&place);
        let (server, address) = serve(&pool, kind, |builder| {
            echo(builder).route("GET", "/", move |request: &Request, response: Response| {
                *kept.lock().unwrap() = Some((request.conn(), response));
            })
        });
        let mut asker = Asker::connect(&address);
        let mut ahead = format!("GET / {HOST}\r\n").into_bytes();
        let body = pattern(900_000);
        for _ in 0..4 {
            ahead.extend(format!("POST /echo {HOST}Content-Length: 900000\r\n\r\n").bytes());
            ahead.extend(&body);
        }
        let mut sender = Client(asker.client.0.try_clone().unwrap());
        let sender = thread::spawn(move || {
            let _ = std::io::Write::write_all(&mut sender.0, &ahead);
        });
        until("it is in work", || place.lock().unwrap().is_some());
        let (conn, response) = place.lock().unwrap().take().unwrap();
        for _ in 0..1000 {
            conn.resume().unwrap();
            thread::yield_now();
        }
        response.text("at last").unwrap();
        assert_eq!(asker.answer().text(), "at last");
        for _ in 0..4 {
            assert!(asker.answer().body == body);
        }
        sender.join().unwrap();
        drop(asker);
        end(&server);
    }
}

/// Answers at the first byte.
struct Curt(Option<Response>);

impl RequestBody for Curt {
    fn data(&mut self, _: &[u8]) -> usize {
        self.0.take().unwrap().text("enough").unwrap();
        1
    }

    fn end(self: Box<Self>) {}
}

/// Goal: what a body has left when it answers does not hold up the next request, which is there already.
#[test]
fn an_answer_within_a_body_lets_the_next_request_come() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| {
            echo(builder)
                .route_streaming("PUT", "/", |_: &Request, response: Response| Curt(Some(response)))
        });
        let mut asker = Asker::connect(&address);
        let next = format!("POST /echo {HOST}Content-Length: 4\r\n\r\nnext");
        let put = format!("PUT / {HOST}Content-Length: 5\r\n\r\nbytes{next}");
        assert_eq!(asker.ask(put).text(), "enough");
        assert_eq!(asker.answer().text(), "next");
        drop(asker);
        end(&server);
    }
}

/// Goal: a 500 in the place of a response that was to be the last one is the last one, too.
#[test]
fn a_500_that_says_close_closes() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| {
            echo(builder)
                .route("GET", "/", |_: &Request, response: Response| drop(response.close()))
        });
        let mut asker = Asker::connect(&address);
        let next = format!("POST /echo {HOST}Content-Length: 4\r\n\r\nnext");
        let answer = asker.ask(format!("GET / {HOST}\r\n{next}"));
        assert_eq!((answer.status, answer.closes()), (500, true));
        asker.expect_end();
        drop(asker);
        assert_eq!(end(&server).begun, 1);
    }
}

/// Goal: 205 says that there is nothing (RFC 9110, 15.3.6), whatever its handler writes, and what follows it
/// is not taken for its body.
#[test]
fn reset_content_has_none() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| {
            let sends = |_: &Request, response: Response| response.status(205).send("body");
            let streams = |request: &Request, response: Response| {
                let length = request.query().map(|_| 4);
                let mut body = response.status(205).stream(length)?;
                body.write(b"body")?;
                body.finish()
            };
            echo(builder).route("GET", "/send", sends).route("GET", "/stream", streams)
        });
        let mut asker = Asker::connect(&address);
        for path in ["/send", "/stream", "/stream?4"] {
            let answer = asker.ask(format!("GET {path} {HOST}\r\n"));
            assert_eq!((answer.status, answer.header("content-length")), (205, Some("0")));
            let next = asker.ask(format!("POST /echo {HOST}Content-Length: 4\r\n\r\nnext"));
            assert_eq!(next.text(), "next");
        }
        drop(asker);
        end(&server);
    }
}

/// Goal: a body that is not sent is not produced: nothing would pace it. Method: producers without an end, for
/// HEAD and for statuses that have no body; one whose bytes are all there is not called again.
#[test]
fn a_body_that_is_not_sent_is_not_produced() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (calls, dropped) = (Count::new(), Count::new());
        let (inner, on_drop) = (calls.clone(), dropped.clone());
        let (server, address) = serve(&pool, kind, |builder| {
            let endless = move |request: &Request, response: Response| {
                let status = request.param("status").unwrap().parse().unwrap();
                let length = request.query().map(|length| length.parse().unwrap());
                let (calls, kept) = (inner.clone(), on_drop.on_drop());
                response.status(status).stream(length).unwrap().pump(move |body| {
                    let _kept = &kept;
                    calls.up();
                    body.write(b"body")?;
                    Ok(true)
                });
            };
            // Whoever writes by hand is told.
            let written = |_: &Request, response: Response| {
                let mut body = response.stream(None).unwrap();
                assert_eq!(body.write(b"").unwrap(), WriteStatus::Unwanted);
                assert_eq!(body.write(b"body").unwrap(), WriteStatus::Unwanted);
                body.finish().unwrap();
            };
            builder.route("GET", "/{status}", endless).route("GET", "/written", written)
        });
        let mut asker = Asker::connect(&address);
        let requests = [
            ("HEAD", "200", None),
            ("HEAD", "200?4", Some("4")),
            ("HEAD", "404?8", Some("8")),
            ("GET", "204", None),
            ("GET", "205", Some("0")),
            ("GET", "304?4", None),
            ("GET", "200?0", Some("0")),
        ];
        for (method, path, length) in requests {
            let answer = asker.ask(format!("{method} /{path} {HOST}\r\n"));
            assert_eq!(answer.header("content-length"), length, "{method} {path}");
        }
        assert_eq!(asker.ask(format!("HEAD /written {HOST}\r\n")).status, 200);
        dropped.until(requests.len() as u64);
        assert_eq!(calls.get(), 0);
        // What is announced is there after two calls.
        assert_eq!(asker.ask(format!("GET /200?8 {HOST}\r\n")).text(), "bodybody");
        assert_eq!(calls.get(), 2);
        // A client that goes at once leaves nothing behind, either.
        asker.send(format!("HEAD /200 {HOST}\r\n"));
        drop(asker);
        end(&server);
    }
}

/// Goal: what a peer waits for is decided before the first byte of an answer: a body that is wanted is asked
/// for, also when the answer begins at once, and one that is refused is not, and not waited for.
#[test]
fn a_body_is_asked_for_when_it_is_wanted() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let kept: Arc<Mutex<Vec<Response>>> = Arc::default();
        let keep = Arc::clone(&kept);
        let (server, address) = serve(&pool, kind, |builder| {
            let begin = |_: &Request, response: Response| Back(response.stream(None).ok());
            let refuse = |_: &Request, response: Response| {
                response.status(401).send("no").unwrap();
                None::<Back>
            };
            // Answered later, and without the body.
            let later = move |_: &Request, response: Response| {
                keep.lock().unwrap().push(response);
                None::<Back>
            };
            builder
                .body_timeout(TICK)
                .route_streaming("PUT", "/begin", begin)
                .route_streaming("PUT", "/refuse", refuse)
                .route_streaming("PUT", "/later", later)
        });
        let put = |path: &str| {
            format!("PUT {path} {HOST}Expect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        };
        let mut asker = Asker::connect(&address);
        for _ in 0..2 {
            // The client waits for the 100 before it sends the body.
            assert_eq!(asker.ask(put("/begin")).status, 100);
            asker.send("body");
            let answer = asker.answer();
            assert_eq!((answer.status, answer.text(), answer.closes()), (200, "body", false));
        }
        let answer = asker.ask(put("/refuse"));
        assert_eq!((answer.status, answer.text(), answer.closes()), (401, "no", true));
        asker.expect_end();
        // It waits for its answer, and not for a body that was not asked for.
        let mut asker = Asker::connect(&address);
        asker.send(put("/later"));
        until("it is there", || !kept.lock().unwrap().is_empty());
        thread::sleep(TICK * 3);
        let response = kept.lock().unwrap().pop().unwrap();
        response.status(403).send("no").unwrap();
        let answer = asker.answer();
        assert_eq!((answer.status, answer.text(), answer.closes()), (403, "no", true));
        asker.expect_end();
        let stats = end(&server);
        assert_eq!((stats.begun, stats.refused.total(), stats.aborted.total()), (4, 0, 0));
    }
}

/// Sends back what comes.
struct Back(Option<Body>);

impl RequestBody for Back {
    fn data(&mut self, bytes: &[u8]) -> usize {
        self.0.as_mut().unwrap().write(bytes).unwrap();
        bytes.len()
    }

    fn end(mut self: Box<Self>) {
        self.0.take().unwrap().finish().unwrap();
    }
}
