//! What is around every handler: middleware, the end of each request, what no route takes, and errors.

use crate::common::{finish, hang_guard, quiet_panic, until};
use crate::http_kit::*;
use crate::kit::{KINDS, pool};
use paceline::http::{HttpBuilder, Next, Request, RequestBody, Response};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const HOST: &str = "HTTP/1.1\r\nHost: h\r\n";

/// What several threads have noted, in order.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    /// As soon as there are so many.
    #[track_caller]
    fn take(&self, count: usize) -> Vec<String> {
        until("all notes", || self.0.lock().unwrap().len() >= count);
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

struct Sink(Option<Response>, usize);

impl RequestBody for Sink {
    fn data(&mut self, bytes: &[u8]) -> usize {
        self.1 += bytes.len();
        bytes.len()
    }
    fn end(mut self: Box<Self>) {
        let size = self.1;
        self.0.take().unwrap().text(size.to_string()).unwrap();
    }
}

/// One of each way to answer, or not to.
fn routes(builder: HttpBuilder, kept: &Arc<Mutex<Vec<Response>>>) -> HttpBuilder {
    let kept = Arc::clone(kept);
    builder
        .route("GET", "/hello/{name}", |_: &Request, response: Response| response.text("hello"))
        .route("POST", "/echo", |request: &Request, response: Response| {
            response.send(request.body())
        })
        .route("GET", "/panic", |_: &Request, _: Response| quiet_panic("a route's fault"))
        .route("GET", "/none", |_: &Request, response: Response| drop(response))
        .route("GET", "/later", move |_: &Request, response: Response| {
            kept.lock().unwrap().push(response);
        })
        .route("GET", "/broken", |_: &Request, response: Response| drop(response.stream(Some(5))))
        .route_streaming("PUT", "/body", |_: &Request, response: Response| Sink(Some(response), 0))
}

/// Goal: the end of each request is told once, with what is known of it, whoever has answered. Method: requests
/// that end in every way, on connections that go on or end.
#[test]
fn every_end_is_told_once() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (notes, kept) = (Notes::default(), Arc::new(Mutex::new(Vec::new())));
        let (told, begun) = (notes.clone(), Instant::now());
        let (server, address) = serve(&pool, kind, |builder| {
            let builder = routes(builder, &kept).max_body(10).max_head(300).max_target(100);
            builder.head_timeout(Duration::from_millis(50)).on_end(move |end| {
                assert!(end.duration <= begun.elapsed() && !end.peer.to_string().is_empty());
                told.add(format!("{} {} {:?}", end.method, end.target, end.status));
            })
        });
        let long = format!("/{}", "x".repeat(100));
        let cut = &long[..100];
        for (request, status, expected) in [
            (format!("GET /hello/you?a=b {HOST}\r\n"), 200, "GET /hello/you?a=b Some(200)"),
            (format!("HEAD /hello/you {HOST}\r\n"), 200, "HEAD /hello/you Some(200)"),
            (format!("GET /nowhere {HOST}\r\n"), 404, "GET /nowhere Some(404)"),
            (format!("POST /hello/you {HOST}\r\n"), 405, "POST /hello/you Some(405)"),
            (format!("GET /hello/%zz {HOST}\r\n"), 400, "GET /hello/%zz Some(400)"),
            (format!("BREW / {HOST}\r\n"), 501, "BREW / Some(501)"),
            (format!("OPTIONS * {HOST}\r\n"), 204, "OPTIONS * Some(204)"),
            (format!("GET /panic {HOST}\r\n"), 500, "GET /panic Some(500)"),
            (format!("GET /none {HOST}\r\n"), 500, "GET /none Some(500)"),
            (
                format!("PUT /body {HOST}Content-Length: 20\r\n\r\n{}", "x".repeat(20)),
                200,
                "PUT /body Some(200)",
            ),
            (format!("POST /echo {HOST}Content-Length: 2\r\n\r\nab"), 200, "POST /echo Some(200)"),
            (format!("POST /echo {HOST}Content-Length: 20\r\n\r\n"), 413, "POST /echo Some(413)"),
            (
                format!("POST /echo {HOST}Transfer-Encoding: chunked\r\n\r\nx\r\n"),
                400,
                "POST /echo Some(400)",
            ),
            (format!("GET {long} {HOST}\r\n"), 414, &format!("GET {cut} Some(414)")),
            (format!("GET / {HOST}X: {}\r\n\r\n", "x".repeat(300)), 431, "GET / Some(431)"),
            ("GET / HTTP/1.1\r\n\r\n".into(), 400, "GET / Some(400)"),
            ("GET / HTTP/2.0\r\n\r\n".into(), 505, "GET / Some(505)"),
            ("(@\0\r\n\r\n".into(), 400, "  Some(400)"),
            ("GET /hello/slow HTTP/1.1\r\nHo".into(), 408, "GET /hello/slow Some(408)"),
        ] {
            let mut asker = Asker::connect(&address);
            let answer = asker.ask(&request);
            assert_eq!(answer.status, status, "{request}");
            assert_eq!(notes.take(1), [expected], "{request}");
        }
        // One after the other on one connection, and ahead of each other.
        let mut asker = Asker::connect(&address);
        let get = format!("GET /hello/you {HOST}\r\n");
        assert_eq!(asker.ask(&get).status, 200);
        asker.send(format!("{get}GET /nowhere {HOST}\r\n{get}"));
        assert_eq!([0; 3].map(|_| asker.answer().status), [200, 404, 200]);
        let expected = ["you Some(200)", "you Some(200)", "Some(404)", "you Some(200)"];
        let told = notes.take(4);
        assert!(told.iter().zip(expected).all(|(told, end)| told.ends_with(end)), "{told:?}");
        // Later, by another thread.
        asker.send(format!("GET /later {HOST}\r\n"));
        until("the handler", || !kept.lock().unwrap().is_empty());
        assert!(notes.0.lock().unwrap().is_empty(), "it is in work");
        kept.lock().unwrap().pop().unwrap().status(201).send("").unwrap();
        assert_eq!(asker.answer().status, 201);
        assert_eq!(notes.take(1), ["GET /later Some(201)"]);
        // Without a whole answer.
        asker.send(format!("GET /broken {HOST}\r\n"));
        assert_eq!(notes.take(1), ["GET /broken None"]);
        let mut asker = Asker::connect(&address);
        asker.send(format!("GET /later {HOST}\r\n"));
        until("the handler", || !kept.lock().unwrap().is_empty());
        let response = kept.lock().unwrap().pop().unwrap();
        response.conn().abort().unwrap();
        assert_eq!(notes.take(1), ["GET /later None"]);
        drop(response);
        drop(asker);
        end(&server);
        assert!(notes.0.lock().unwrap().is_empty());
        drop(server);
        finish(&pool);
    }
}

/// Goal: middleware sees every request with a whole head, knows its route and its status, and what it adds is in
/// every answer; a panic is counted once, and ends the connection. Method: two around all routes, and all ways.
#[test]
fn middleware_is_around_every_request() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (notes, kept) = (Notes::default(), Arc::new(Mutex::new(Vec::new())));
        let (outer, inner) = (notes.clone(), notes.clone());
        let (server, address) = serve(&pool, kind, |builder| {
            routes(builder, &kept)
                .around(move |request: &Request, response: Response, next: Next| {
                    let status = next.run(request, response.header("X-Outer", "1"));
                    outer.add(format!("{:?} {status:?}", request.pattern()));
                })
                .around(move |request: &Request, response: Response, next: Next| {
                    inner.add(request.target());
                    if request.query() == Some("stop") {
                        return response.status(403).error().unwrap();
                    }
                    next.run(request, response.header("X-Inner", "1"));
                })
        });
        let mut panics = 0;
        for (line, body, status, pattern) in [
            ("GET /hello/you", "", 200, Some("/hello/{name}")),
            ("GET /nowhere", "", 404, None),
            ("POST /hello/you", "", 405, None),
            ("POST /nowhere", "a body", 404, None),
            ("OPTIONS /echo", "", 204, None),
            ("GET /panic", "", 500, Some("/panic")),
            ("GET /none", "", 500, Some("/none")),
            ("POST /echo", "a body", 200, Some("/echo")),
            ("PUT /body", "a body", 200, Some("/body")),
            ("PUT /body?stop", "a body", 403, Some("/body")),
            ("GET /hello/you?stop", "", 403, Some("/hello/{name}")),
        ] {
            let mut asker = Asker::connect(&address);
            // Twice on a connection that goes on.
            for _ in 0..2 {
                let length = body.len();
                let answer =
                    asker.ask(format!("{line} {HOST}Content-Length: {length}\r\n\r\n{body}"));
                assert_eq!(answer.status, status, "{line}");
                assert_eq!(answer.header("x-outer"), Some("1"), "{line}");
                let is_stopped = line.ends_with("?stop");
                assert_eq!(answer.header("x-inner").is_none(), is_stopped, "{line}");
                assert_eq!(answer.header("allow").is_some(), matches!(status, 405 | 204), "{line}");
                let target = line.split(' ').nth(1).unwrap();
                // What takes a body answers behind the middleware.
                let seen = if line == "PUT /body" { None } else { Some(status) };
                assert_eq!(notes.take(2), [target, &format!("{pattern:?} {seen:?}")]);
                assert_eq!(answer.closes(), line == "GET /panic");
                if answer.closes() {
                    panics += 1;
                    asker.expect_end();
                    break;
                }
            }
        }
        let mut asker = Asker::connect(&address);
        asker.send(format!("GET /later {HOST}\r\n"));
        assert_eq!(notes.take(2), ["/later", "Some(\"/later\") None"]);
        kept.lock().unwrap().pop().unwrap().text("late").unwrap();
        assert_eq!(asker.answer().header("x-inner"), Some("1"));
        drop(asker);
        let stats = end(&server);
        assert_eq!((stats.panics, stats.refused.panicked), (panics, panics));
        let refused = (stats.refused.not_found, stats.refused.method_not_allowed);
        assert_eq!(refused, (4, 2), "they count as without middleware");
        drop(server);
        finish(&pool);
    }
}

/// Goal: what no route takes is the fallback's, with the status that it would have, and a body that nobody wants
/// holds up nothing.
#[test]
fn what_no_route_takes_is_the_fallbacks() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (server, address) = serve(&pool, kind, |builder| {
            routes(builder, &kept).max_requests(2).fallback(
                |request: &Request, response: Response| match request.path() {
                    "/page" => response.status(200).text("a page"),
                    "/error" => response.error(),
                    "/panic" => quiet_panic("a fallback's fault"),
                    path => response.text(format!("no {path}")),
                },
            )
        });
        let mut asker = Asker::connect(&address);
        for (line, status, text) in [
            ("GET /page", 200, "a page"),
            ("GET /other", 404, "no /other"),
            ("POST /hello/you", 405, "no /hello/you"),
            ("GET /hello/%zz", 400, "no /hello/%zz"),
            ("BREW /pot", 501, "no /pot"),
            ("GET /error", 404, "404 Not Found\n"),
            ("GET /hello/you", 200, "hello"),
        ] {
            for body in ["", "a body that nobody wants"] {
                let length = body.len();
                let answer =
                    asker.ask(format!("{line} {HOST}Content-Length: {length}\r\n\r\n{body}"));
                assert_eq!((answer.status, answer.text()), (status, text), "{line}");
                assert_eq!(answer.header("allow").is_some(), status == 405, "{line}");
                assert!(!answer.closes(), "{line}");
            }
        }
        assert_eq!(asker.ask(format!("DELETE /panic {HOST}\r\n")).status, 500);
        drop(asker);
        let stats = end(&server);
        assert_eq!((stats.refused.not_found, stats.answered.client_errors), (2, 6));
        assert_eq!((stats.answered.server_errors, stats.panics), (2, 1));
        drop(server);
        finish(&pool);
    }
}

/// Goal: an error is told in the form that its peer wants most. Method: the server's own, and a handler's.
#[test]
fn errors_come_in_the_form_that_is_wanted() {
    let _guard = hang_guard();
    let pool = pool(2);
    let (server, address) = serve(&pool, KINDS[0], |builder| {
        let teapot = |_: &Request, response: Response| response.status(403).error();
        routes(builder, &Arc::default()).max_body(10).route("GET", "/forbidden", teapot)
    });
    let (text, html) = ("text/plain; charset=utf-8", "text/html; charset=utf-8");
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for (line, status, title) in [
        ("GET /nowhere", 404, "Not Found"),
        ("GET /forbidden", 403, "Forbidden"),
        ("GET /none", 500, "Internal Server Error"),
        ("GET /panic", 500, "Internal Server Error"),
    ] {
        let json = format!("{{\"title\":\"{title}\",\"status\":{status}}}\n");
        let page = format!(
            "<!DOCTYPE html>\n<title>{status} {title}</title>\n<h1>{status} {title}</h1>\n"
        );
        for (accept, content_type, expected) in [
            ("", text, &format!("{status} {title}\n")),
            ("Accept: */*\r\n", text, &format!("{status} {title}\n")),
            ("Accept: application/json\r\n", "application/json", &json),
            ("accept: application/problem+json, */*;q=0.1\r\n", "application/problem+json", &json),
            (&format!("Accept: {browser}\r\n"), html, &page),
        ] {
            let mut asker = Asker::connect(&address);
            // Again, since a head that comes again is known.
            for _ in 0..3 {
                let answer = asker.ask(format!("{line} {HOST}{accept}\r\n"));
                assert_eq!((answer.status, answer.text()), (status, expected.as_str()), "{line}");
                assert_eq!(answer.header("content-type"), Some(content_type), "{line} {accept}");
                if answer.closes() {
                    break;
                }
            }
            let head =
                Asker::connect(&address).ask(format!("HEAD {} {HOST}{accept}\r\n", &line[4..]));
            assert_eq!(head.header("content-length"), Some(&*expected.len().to_string()));
        }
    }
    // Without a head there is nothing that it wants.
    let answer = Asker::connect(&address).ask("GET / HTTP/1.1\r\nAccept: text/html\r\n\r\n");
    assert_eq!((answer.status, answer.text()), (400, "400 Bad Request\n"));
    end(&server);
    drop(server);
    finish(&pool);
}

#[test]
fn queries_are_pairs_and_bodies_are_values() {
    let _guard = hang_guard();
    let pool = pool(1);
    let (server, address) = serve(&pool, KINDS[0], |builder| {
        let builder = builder.route("GET", "/query", |request: &Request, response: Response| {
            let pairs = request.query_pairs().map(|(name, value)| format!("{name}>{value};"));
            response.send_as("text/x-pairs", pairs.collect::<String>())
        });
        #[cfg(feature = "http")]
        let builder = builder.route("POST", "/sum", |request: &Request, response: Response| {
            match request.json::<Vec<i64>>() {
                Ok(numbers) => {
                    response.json(&serde_json::json!({ "sum": numbers.iter().sum::<i64>() }))
                }
                Err(error) => response.status(400).text(error.to_string()),
            }
        });
        builder
    });
    let mut asker = Asker::connect(&address);
    let answer = asker.ask(format!("GET /query?a=1&b=%C3%BC+%26&a=2&c {HOST}\r\n"));
    assert_eq!(answer.text(), "a>1;b>ü &;a>2;c>;");
    assert_eq!(answer.header("content-type"), Some("text/x-pairs"));
    assert_eq!(asker.ask(format!("GET /query {HOST}\r\n")).text(), "");
    #[cfg(feature = "http")]
    for (body, status, expected) in [
        ("[1, 2, 39]", 200, r#"{"sum":42}"#),
        (
            "[1, ",
            400,
            "body is 4 bytes (EOF while parsing a value at line 1 column 4), but must be JSON of what is expected",
        ),
    ] {
        let length = body.len();
        let answer = asker.ask(format!("POST /sum {HOST}Content-Length: {length}\r\n\r\n{body}"));
        assert_eq!((answer.status, answer.text()), (status, expected));
        let is_json = answer.header("content-type") == Some("application/json");
        assert_eq!(is_json, status == 200);
    }
    drop(asker);
    end(&server);
    drop(server);
    finish(&pool);
}
