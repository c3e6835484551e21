//! Requests come and are answered.

use crate::common::{finish, hang_guard, until};
use crate::http_kit::*;
use crate::kit::{Client, KINDS, pattern, pool};
use paceline::Error;
use paceline::http::{Http, HttpBuilder, Request, Response};
use std::sync::{Arc, Mutex};
use std::thread;

fn hello(builder: HttpBuilder) -> HttpBuilder {
    builder
        .route("GET", "/hello/{name}", |request: &Request, response: Response| {
            response.text(format!("Hello, {}!", request.param("name").unwrap()))
        })
        .route("POST", "/echo", |request: &Request, response: Response| {
            response.send(request.body())
        })
        .route("PUT", "/echo", |request: &Request, response: Response| {
            response.send_owned(request.body().to_vec())
        })
}

#[test]
fn requests_are_routed_and_answered_over_every_kind_of_socket() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, hello);
        let mut asker = Asker::connect(&address);
        let answer = asker.ask("GET /hello/you HTTP/1.1\r\nHost: here\r\n\r\n");
        assert_eq!((answer.status, answer.text()), (200, "Hello, you!"));
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
        let date = answer.header("date").unwrap();
        assert_eq!((date.len(), &date[25..]), (29, " GMT"));
        for size in [0, 1, 5000, 300_000] {
            let body = pattern(size);
            for method in ["POST", "PUT"] {
                let head =
                    format!("{method} /echo HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n");
                asker.send(head);
                let mut sender = Client(asker.client.0.try_clone().unwrap());
                let sent = body.clone();
                let sender = thread::spawn(move || sender.send(sent));
                let answer = asker.answer();
                sender.join().unwrap();
                assert!(answer.status == 200 && answer.body == body);
            }
        }
        drop(asker);
        let stats = end(&server);
        assert_eq!((stats.begun, stats.answered.successful), (9, 9));
        drop(server);
        finish(&pool);
    }
}

/// Goal: a request is served as what it says, whether its like was there before or not. Method: each of
/// some after each of them, that differ in their first line or in a field, by the same thread.
#[test]
fn requests_that_come_again_are_served_anew() {
    let _guard = hang_guard();
    let pool = pool(1);
    let (server, address) = serve(&pool, KINDS[0], |builder| {
        let say = |request: &Request, response: Response| {
            let fields = request.headers().map(|(name, value)| (name, value.escape_ascii()));
            let fields: String = fields.map(|(name, value)| format!("{name}={value};")).collect();
            let name = request.param("name").unwrap();
            let (method, query) = (request.method(), request.query());
            response.text(format!("{method} {name} {query:?} {} {fields}", request.version()))
        };
        builder.route("GET", "/{name}", say).route("POST", "/{name}", say)
    });
    let lines =
        [("GET", "a", None), ("GET", "b", None), ("GET", "a", Some("q")), ("POST", "a", None)];
    let fields = [
        "",
        "X: 1\r\n",
        "X: 2\r\n",
        "x:1\t\r\nY: 3\r\n",
        // These two end alike.
        "X: 1\r\nZ: the same end\r\n",
        "X: 2\r\nZ: the same end\r\n",
    ];
    let mut all = Vec::new();
    for (line, fields) in lines.iter().flat_map(|line| fields.map(|fields| (line, fields))) {
        let (method, name, query) = *line;
        let target = format!("/{name}{}", query.map_or(String::new(), |query| format!("?{query}")));
        let request = format!("{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let said: String = fields
            .lines()
            .filter_map(|field| field.split_once(':'))
            .map(|(name, value)| format!("{name}={};", value.trim()))
            .collect();
        all.push((request, format!("{method} {name} {query:?} 1 Host=h;{said}")));
    }
    let mut asker = Asker::connect(&address);
    for (first, second) in
        all.iter().flat_map(|first| all.iter().map(move |second| (first, second)))
    {
        for (request, expected) in [first, second] {
            assert_eq!(asker.ask(request).text(), expected);
        }
    }
    drop(asker);
    assert_eq!(end(&server).answered.successful, 2 * (all.len() * all.len()) as u64);
    drop(server);
    finish(&pool);
}

/// Goal: an answer is whole whether its body fits beside the head or not.
#[test]
fn small_bodies_of_every_size_are_whole() {
    let _guard = hang_guard();
    let pool = pool(2);
    let (server, address) = serve(&pool, KINDS[0], hello);
    let mut asker = Asker::connect(&address);
    for size in 0..300 {
        let body = pattern(size);
        let head = format!("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n");
        let answer = asker.ask([head.as_bytes(), &body].concat());
        assert_eq!((answer.status, answer.body.len()), (200, size));
        assert!(answer.body == body);
    }
    drop(asker);
    end(&server);
    drop(server);
    finish(&pool);
}

/// Goal: all that lies ahead is answered, in order. Method: everything in one write.
#[test]
fn what_is_sent_ahead_is_answered_in_order() {
    const MANY: usize = 500;
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, hello);
        let mut asker = Asker::connect(&address);
        let requests: String = (0..MANY)
            .map(|number| match number % 3 {
                0 => format!("GET /hello/{number} HTTP/1.1\r\nHost: h\r\n\r\n"),
                1 => {
                    let body = number.to_string();
                    let length = body.len();
                    format!(
                        "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}"
                    )
                }
                _ => format!("GET /nowhere/{number} HTTP/1.1\r\nHost: h\r\n\r\n"),
            })
            .collect();
        asker.send(requests);
        for number in 0..MANY {
            let answer = asker.answer();
            match number % 3 {
                0 => assert_eq!(answer.text(), format!("Hello, {number}!")),
                1 => assert_eq!(answer.text(), number.to_string()),
                _ => assert_eq!(answer.status, 404),
            }
        }
        drop(asker);
        let stats = end(&server);
        assert_eq!(stats.begun, MANY as u64);
        assert_eq!(stats.refused.not_found, MANY as u64 / 3);
    }
}

/// Responses that handlers have kept.
type Kept = Arc<Mutex<Vec<Response>>>;

fn take(kept: &Kept) -> Response {
    let mut response = None;
    until("a response is kept", || {
        response = kept.lock().unwrap().pop();
        response.is_some()
    });
    response.unwrap()
}

fn keeping(builder: HttpBuilder) -> (HttpBuilder, Kept) {
    let kept = Kept::default();
    let inner = Arc::clone(&kept);
    let keep = move |_: &Request, response: Response| inner.lock().unwrap().push(response);
    (builder.route("GET", "/later", keep), kept)
}

#[test]
fn an_answer_may_come_from_another_thread_and_later_requests_wait() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let mut kept = None;
        let (server, address) = serve(&pool, kind, |builder| {
            let (builder, responses) = keeping(hello(builder));
            kept = Some(responses);
            builder
        });
        let kept = kept.unwrap();
        let mut asker = Asker::connect(&address);
        for round in 0..20 {
            asker.send(
                "GET /later HTTP/1.1\r\nHost: h\r\n\r\nGET /hello/a HTTP/1.1\r\nHost: h\r\n\r\n",
            );
            let response = take(&kept);
            // The counters are settled when the handler has returned.
            until_stats(&server, "the first", |stats| stats.begun > 2 * round);
            assert_eq!(server.stats().begun, 2 * round + 1, "the second one waits");
            response.text("at last").unwrap();
            assert_eq!(asker.answer().text(), "at last");
            assert_eq!(asker.answer().text(), "Hello, a!");
        }
        drop(asker);
        let stats = end(&server);
        assert_eq!((stats.begun, stats.answered.successful), (40, 40));
    }
}

#[test]
fn a_response_that_is_dropped_is_a_500_and_one_whose_peer_is_gone_an_error() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let mut kept = None;
        let (server, address) = serve(&pool, kind, |builder| {
            let (builder, responses) = keeping(builder);
            kept = Some(responses);
            builder.route("GET", "/forget", |_: &Request, _: Response| ())
        });
        let kept = kept.unwrap();
        let mut asker = Asker::connect(&address);
        let answer = asker.ask("GET /forget HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!((answer.status, answer.closes()), (500, false));
        asker.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
        drop(take(&kept));
        assert_eq!(asker.answer().status, 500);
        asker.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
        let response = take(&kept);
        response.conn().abort().unwrap();
        until_stats(&server, "the end", |stats| stats.server.open == 0);
        assert!(matches!(response.send("too late"), Err(Error::Stale { .. })));
        let stats = end(&server);
        assert_eq!((stats.refused.unanswered, stats.aborted.closed), (2, 1));
    }
}

#[test]
fn routes_that_cannot_be_are_named() {
    let _guard = hang_guard();
    let pool = pool(1);
    let route = |builder: HttpBuilder, method: &str, pattern: &str| {
        builder.route(method, pattern, |_: &Request, response: Response| response.send(""))
    };
    let error = |builder: HttpBuilder| builder.serve().unwrap_err().to_string();
    let twice = route(route(Http::builder(&pool), "GET", "/a"), "GET", "/a");
    assert_eq!(error(twice), "route is GET /a, but must be there once");
    let relative = route(Http::builder(&pool), "GET", "a");
    assert_eq!(error(relative), "route is a, but must be a path that begins with /");
    let conflict = route(route(Http::builder(&pool), "GET", "/{a}"), "GET", "/{b}");
    assert!(error(conflict).starts_with("route is /{b}, but must be a pattern of its own"));
    let method = route(Http::builder(&pool), "G T", "/");
    assert_eq!(error(method), "method is \"G T\", but must be a token, as GET");
    let tunnel = route(Http::builder(&pool), "CONNECT", "/");
    let allowed = "another one, as there are no tunnels here";
    assert_eq!(error(tunnel), format!("method is CONNECT, but must be {allowed}"));
    let star = route(Http::builder(&pool), "GET", "*");
    assert_eq!(error(star), "route is GET *, but must be OPTIONS * or one of a path");
    for (pattern, allowed) in [
        ("/items/:id", "a path whose parameters are written {id}, not :id"),
        ("/a/:", "a path whose parameters are written {name}, not :"),
        ("/files/*path", "a path whose parameters are written {*path}, not *path"),
        ("/a/{x}/{x}", "one with a name of its own for each parameter: {x} is there twice"),
        ("/a/{x}/{*x}", "one with a name of its own for each parameter: {x} is there twice"),
        ("/a?b={b}", "a path alone, without ? and what follows"),
        ("/a#b", "a path alone, without # and what follows"),
        ("/items/<id>", "percent-encoded where it has '<': paths are matched as they are sent"),
        ("/ü", "percent-encoded where it has 'ü': paths are matched as they are sent"),
        ("/a b", "percent-encoded where it has ' ': paths are matched as they are sent"),
    ] {
        let told = error(route(Http::builder(&pool), "GET", pattern));
        assert_eq!(told, format!("route is {pattern}, but must be {allowed}"));
    }
    for (method, upper) in [("get", "GET"), ("Post", "POST"), ("connect", "CONNECT")] {
        let allowed = format!("\"{upper}\": methods distinguish upper and lower case");
        let told = error(route(Http::builder(&pool), method, "/"));
        assert_eq!(told, format!("method is \"{method}\", but must be {allowed}"));
    }
    let nowhere = "an address or more: an HTTP server without one gets no requests";
    let told = error(route(Http::builder(&pool), "GET", "/"));
    assert_eq!(told, format!("listen is empty, but must be {nowhere}"));
    // What looks alike, and can be.
    let listening = Http::builder(&pool).listen("127.0.0.1:0");
    let odd = ["/a:b", "/{id}/x:y", "/{{id}}/{id}", "/a*b", "/{x}/{y}/{*rest}", "/~!$&'()*+,;=:@|"];
    let odd = odd.iter().fold(listening, |builder, pattern| route(builder, "GET", pattern));
    end(&route(odd, "brew", "/").serve().unwrap());
    let limits = Http::builder(&pool).max_headers(257);
    assert_eq!(error(limits), "max_headers is 257, but must be 1 to 256");
}

/// Goal: parameters are text: decoded once, and what cannot be decoded is no request. Routes are matched with
/// the path as it was sent, so a slash in a parameter stays in it.
#[test]
fn parameters_are_decoded() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, |builder| {
            let say = |request: &Request, response: Response| {
                let all: Vec<_> = request.params().collect();
                for (name, value) in &all {
                    assert_eq!(request.param(name), Some(*value));
                }
                response.text(format!("{all:?} {} {:?}", request.path(), request.query()))
            };
            builder
                .max_body(100)
                .route("GET", "/one/{name}", say)
                .route("POST", "/one/{name}", say)
                .route("GET", "/two/{first}/{second}", say)
                .route("GET", "/all/{*rest}", say)
                .route("GET", "/plain", say)
        });
        let mut asker = Asker::connect(&address);
        for (target, expected) in [
            ("/one/you", r#"[("name", "you")] /one/you None"#),
            ("/one/a%2Fb", r#"[("name", "a/b")] /one/a%2Fb None"#),
            ("/one/a%2fb?c%2F=%zz", r#"[("name", "a/b")] /one/a%2fb Some("c%2F=%zz")"#),
            (
                "/one/%C3%BC+%2B%20%25%32%35",
                r#"[("name", "ü++ %25")] /one/%C3%BC+%2B%20%25%32%35 None"#,
            ),
            ("/one/..%2F..", r#"[("name", "../..")] /one/..%2F.. None"#),
            ("/two/a%3D/b", r#"[("first", "a="), ("second", "b")] /two/a%3D/b None"#),
            ("/two/a/%62c", r#"[("first", "a"), ("second", "bc")] /two/a/%62c None"#),
            ("/all/a/b%2Fc/%C3%A9", r#"[("rest", "a/b/c/é")] /all/a/b%2Fc/%C3%A9 None"#),
            ("/plain", r#"[] /plain None"#),
        ] {
            // Twice, since what was found is remembered.
            for _ in 0..2 {
                let answer = asker.ask(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
                assert_eq!((answer.status, answer.text()), (200, expected), "{target}");
            }
        }
        let post = "POST /one/a%2Fb HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let answer = asker.ask(format!("{post}1\r\nx\r\n0\r\n\r\n"));
        assert_eq!(answer.text(), r#"[("name", "a/b")] /one/a%2Fb None"#);
        for value in ["%", "%4", "%zz", "a%g0", "%ff", "%C3", "%c3%28", "%ED%A0%80", "a%00b"] {
            for path in ["one/", "two/a/", "all/", "all/a/"] {
                let answer = asker.ask(format!("GET /{path}{value} HTTP/1.1\r\nHost: h\r\n\r\n"));
                assert_eq!((answer.status, answer.closes()), (400, false), "{path}{value}");
            }
        }
        // What is no parameter is matched as it is.
        assert_eq!(asker.ask("GET /pla%69n HTTP/1.1\r\nHost: h\r\n\r\n").status, 404);
        drop(asker);
        end(&server);
    }
}
