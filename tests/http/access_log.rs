//! The access log: one line for each request, whatever became of it, which no client can forge.

use crate::common::{LONG, finish, hang_guard, quiet_panic, until};
use crate::http_kit::*;
use crate::kit::{Kind, pool};
use paceline::Pool;
use paceline::http::{AccessLog, Http, HttpBuilder, Request, Response};
use paceline::log::{Log, Value};
use serde_json::Value as Json;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Keeps what is written.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// As soon as there are so many.
    #[track_caller]
    fn take(&self, count: usize) -> Vec<String> {
        let lines = || -> Vec<String> {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            text.split_terminator('\n').map(str::to_owned).collect()
        };
        until("all lines", || lines().len() >= count);
        lines()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One of each way to answer, or not to.
fn routes(builder: HttpBuilder) -> HttpBuilder {
    builder
        .route("GET", "/hello/{name}", |_: &Request, response: Response| response.text("hello"))
        .route("GET", "/drafted", |_: &Request, response: Response| {
            response.status(202).header("X-A", "b").text("drafted")
        })
        .route("GET", "/empty", |_: &Request, response: Response| response.status(204).send(""))
        .route("GET", "/later", |_: &Request, response: Response| {
            std::thread::spawn(move || response.text("later").unwrap());
        })
        .route("GET", "/pieces", |_: &Request, response: Response| {
            let mut body = response.stream(None)?;
            body.write(b"one")?;
            body.write(b"three")?;
            body.finish()
        })
        .route("GET", "/broken", |_: &Request, response: Response| drop(response.stream(Some(5))))
        .route("POST", "/echo", |request: &Request, response: Response| {
            response.send(request.body())
        })
}

/// Without the peer and the time, which is between brackets.
#[track_caller]
fn rest(line: &str) -> &str {
    let (before, rest) = line.split_once("] ").unwrap();
    let time = before.strip_prefix("127.0.0.1 - - [").unwrap();
    let parts: Vec<&str> = time.split(['/', ':', ' ']).collect();
    assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [2, 3, 4, 2, 2, 2, 5]);
    rest
}

#[test]
fn the_combined_format_has_a_line_for_each_request_whatever_became_of_it() {
    let _guard = hang_guard();
    let (pool, lines) = (pool(2), Lines::default());
    let (server, address) = serve(&pool, Kind::Tcp, |builder| {
        routes(builder).access_log(AccessLog::combined().writer(lines.clone()))
    });
    let mut asker = Asker::connect(&address);
    let host = "HTTP/1.1\r\nHost: h\r\n";
    let agent = "Referer: http://a/\"b\\\r\nUser-Agent: \u{e4} \" 200 1\t[x]\r\n";
    for (request, status) in [
        (format!("GET /hello/you?a=b {host}{agent}\r\n"), 200),
        (format!("HEAD /hello/you {host}\r\n"), 200),
        (format!("GET /drafted {host}\r\n"), 202),
        (format!("GET /empty {host}\r\n"), 204),
        (format!("GET /later {host}\r\n"), 200),
        (format!("GET /pieces {host}\r\n"), 200),
        (format!("POST /echo {host}Content-Length: 3\r\n\r\nabc"), 200),
        (format!("GET /nowhere {host}\r\n"), 404),
    ] {
        assert_eq!(asker.ask(&request).status, status, "{request}");
    }
    // A body that comes later than its head.
    asker.send(format!("POST /echo {host}User-Agent: slow\r\nContent-Length: 3\r\n\r\n"));
    asker.send("abc");
    assert_eq!(asker.answer().status, 200);
    // The last two end their connections.
    assert_eq!(asker.ask("GET /with\"quote HTTP/1.1\r\n\r\n").status, 400);
    let mut asker = Asker::connect(&address);
    asker.send(format!("GET /broken {host}\r\n"));
    let _ = asker.rest_or_reset();
    let lines = lines.take(11);
    let page = |line: &str| {
        let size = line.rsplit(" \"-\"").last().unwrap().rsplit(' ').next().unwrap();
        size.parse::<usize>().unwrap()
    };
    let expected = [
        r#""GET /hello/you?a=b HTTP/1.1" 200 5 "http://a/\"b\\" "\xc3\xa4 \" 200 1\x09[x]""#,
        r#""HEAD /hello/you HTTP/1.1" 200 - "-" "-""#,
        r#""GET /drafted HTTP/1.1" 202 7 "-" "-""#,
        r#""GET /empty HTTP/1.1" 204 - "-" "-""#,
        r#""GET /later HTTP/1.1" 200 5 "-" "-""#,
        r#""GET /pieces HTTP/1.1" 200 8 "-" "-""#,
        r#""POST /echo HTTP/1.1" 200 3 "-" "-""#,
        &format!(r#""GET /nowhere HTTP/1.1" 404 {} "-" "-""#, page(&lines[7])),
        r#""POST /echo HTTP/1.1" 200 3 "-" "slow""#,
        &format!(r#""GET /with\"quote" 400 {} "-" "-""#, page(&lines[9])),
        r#""GET /broken HTTP/1.1" - - "-" "-""#,
    ];
    assert_eq!(lines.iter().map(|line| rest(line)).collect::<Vec<_>>(), expected);
    assert!(server.drain(LONG) && server.stats().balances());
    finish(&pool);
}

#[test]
fn json_has_what_is_known() {
    let _guard = hang_guard();
    let (pool, lines) = (pool(1), Lines::default());
    let (server, address) = serve(&pool, Kind::Unix, |builder| {
        routes(builder).access_log(AccessLog::json().writer(lines.clone()))
    });
    let mut asker = Asker::connect(&address);
    let host = "HTTP/1.1\r\nHost: h\r\n";
    asker.ask(format!("GET /drafted {host}User-Agent: \u{85}\"\r\n\r\n"));
    asker.ask("nonsense\r\n\r\n");
    let lines = lines.take(2);
    assert!(lines[0].contains(r#""user_agent":"\u0085\"""#), "{}", lines[0]);
    let read: Vec<Json> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read[0]["method"], "GET");
    assert_eq!(read[0]["target"], "/drafted");
    assert_eq!(read[0]["version"], "1.1");
    assert_eq!(read[0]["status"], 202);
    assert_eq!(read[0]["bytes"], 7);
    assert_eq!(read[0]["user_agent"], "\u{85}\"");
    assert_eq!(read[0]["referer"], Json::Null);
    assert!(read[0]["duration_ns"].is_u64());
    assert!(read[0]["time"].as_str().unwrap().ends_with('Z'));
    assert_eq!((&read[1]["status"], &read[1]["version"]), (&Json::from(400), &Json::Null));
    drop(server);
    finish(&pool);
}

#[test]
fn a_log_takes_it_as_records() {
    let _guard = hang_guard();
    let seen = Arc::new(Mutex::new(vec![]));
    let to = Arc::clone(&seen);
    let log = Log::builder()
        .facade(false)
        .callback(move |record| {
            if record.event == "request.ended" {
                to.lock().unwrap().push(record.clone());
            }
        })
        .build()
        .unwrap();
    // The pool's log, and one of the server's own.
    let pools = [Pool::builder().log(&log).build().unwrap(), pool(1)];
    for (pool, access_log) in pools.iter().zip([AccessLog::combined(), AccessLog::json().log(&log)])
    {
        let (_server, address) =
            serve(pool, Kind::Tcp, |builder| routes(builder).access_log(access_log));
        let mut asker = Asker::connect(&address);
        asker.ask("GET /hello/x HTTP/1.1\r\nHost: h\r\nUser-Agent: a\"b\r\n\r\n");
    }
    until("both records", || seen.lock().unwrap().len() == 2);
    let seen = seen.lock().unwrap();
    assert_eq!(rest(&seen[0].message), r#""GET /hello/x HTTP/1.1" 200 5 "-" "a\"b""#);
    assert!(seen[0].fields.is_empty());
    let field = |name: &str| {
        let found = seen[1].fields.iter().find(|(its, _)| its == name);
        found.map(|(_, value)| value.clone())
    };
    assert_eq!(field("target"), Some(Value::Text("/hello/x".into())));
    assert_eq!(field("status"), Some(Value::U64(200)));
    assert_eq!(field("bytes"), Some(Value::U64(5)));
    assert_eq!(field("user_agent"), Some(Value::Text("a\"b".into())));
    assert_eq!(field("referer"), None);
    drop(seen);
    pools.iter().for_each(finish);
}

/// A writer that fails at first, and panics then.
struct Fails(u32);

impl Write for Fails {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        self.0 += 1;
        match self.0 {
            1 | 2 => Err(io::Error::other("the writer's fault")),
            _ => quiet_panic("the writer's fault"),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_that_fails_harms_no_request() {
    let _guard = hang_guard();
    let faults = Arc::new(Mutex::new(vec![]));
    let to = Arc::clone(&faults);
    let callback = move |record: &paceline::log::Record| to.lock().unwrap().push(record.event);
    let log = Log::builder().facade(false).levels("error".parse().unwrap()).callback(callback);
    let log = log.build().unwrap();
    let pool = Pool::builder().threads(1).log(&log).build().unwrap();
    let (server, address) = serve(&pool, Kind::Tcp, |builder| {
        routes(builder).access_log(AccessLog::combined().writer(Fails(0)))
    });
    let mut asker = Asker::connect(&address);
    for _ in 0..3 {
        assert_eq!(asker.ask("GET /hello/x HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    }
    until("the panic is counted", || server.stats().panics == 1);
    log.flush(LONG).unwrap();
    assert_eq!(*faults.lock().unwrap(), ["access_log.failed", "handler.panicked"]);
    drop(server);
    finish(&pool);
}

#[test]
fn without_a_log_there_is_nothing_to_write_to() {
    let pool = pool(1);
    let refused = Http::builder(&pool).listen("127.0.0.1:0").access_log(AccessLog::json()).serve();
    let expected = "access_log is without a log, but must be to a pool that has a log, or with a log \
                    or a writer of its own";
    assert_eq!(refused.unwrap_err().to_string(), expected);
}
