//! Clients that others have written.

use crate::common::{hang_guard, skipped};
use crate::http_kit::*;
use crate::kit::{KINDS, Kind, pattern, pool};
use paceline::http::{HttpBuilder, Request, Response};
use paceline::net::Address;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// curl's command for this server; None, having said so: it is not installed.
fn curl(address: &Address) -> Option<(Command, String)> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--include", "--http1.1", "--max-time", "30"]);
    let base = match address {
        Address::Tcp(tcp) => format!("http://{tcp}"),
        Address::Unix(path) => {
            command.arg("--unix-socket").arg(path);
            String::from("http://localhost")
        }
        Address::Abstract(name) => {
            command.arg("--abstract-unix-socket").arg(String::from_utf8(name.clone()).unwrap());
            String::from("http://localhost")
        }
        other => panic!("{other:?}"),
    };
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        skipped("curl is not installed");
        return None;
    }
    Some((command, base))
}

/// What curl says, of whose answers the last is looked at.
fn run(mut command: Command, input: &[u8]) -> (Output, Vec<u8>) {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = std::thread::spawn(move || {
        // It may want nothing of it.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    let end = output.stdout.windows(4).rposition(|four| four == b"\r\n\r\n").map_or(0, |at| at + 4);
    let body = output.stdout[end..].to_vec();
    (output, body)
}

fn routes(builder: HttpBuilder) -> HttpBuilder {
    builder
        .max_body(10 << 20)
        .route("GET", "/hello/{name}", |request: &Request, response: Response| {
            response.text(format!("hello {}", request.param("name").unwrap()))
        })
        .route("POST", "/length", |request: &Request, response: Response| {
            response.text(request.body().len().to_string())
        })
        .route("GET", "/parts", |_: &Request, response: Response| {
            let mut left = 200;
            response.stream(None).unwrap().pump(move |body| {
                left -= 1;
                body.write(&[b'x'; 5000])?;
                Ok(left > 0)
            });
        })
}

#[test]
fn curl_gets_what_it_asks_for() {
    let _guard = hang_guard();
    for kind in KINDS {
        let pool = pool(2);
        let (server, address) = serve(&pool, kind, routes);
        let Some((mut twice, base)) = curl(&address) else { return };
        let curl = || curl(&address).unwrap().0;

        twice.args([format!("{base}/hello/a"), format!("{base}/hello/b")]);
        let (output, body) = run(twice, b"");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(body, b"hello b");

        let mut parts = curl();
        parts.arg(format!("{base}/parts"));
        assert_eq!(run(parts, b"").1.len(), 1_000_000);

        let upload = pattern(3_000_000);
        for framing in ["Expect: 100-continue", "Transfer-Encoding: chunked", "Expect:"] {
            let mut post = curl();
            post.args(["--data-binary", "@-", "--header", framing, &format!("{base}/length")]);
            let (output, body) = run(post, &upload);
            assert_eq!(body, b"3000000", "{framing}: {output:?}");
        }

        let mut head = curl();
        head.args(["--head", &format!("{base}/hello/you")]);
        let (output, _) = run(head, b"");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
        assert!(said.contains("Content-Length: 9\r\n"), "{said}");

        let mut old = curl();
        old.args(["--http1.0", &format!("{base}/hello/old")]);
        assert_eq!(run(old, b"").1, b"hello old");

        let mut missing = curl();
        missing.arg(format!("{base}/nowhere"));
        assert_eq!(run(missing, b"").1, b"404 Not Found\n");
        end(&server);
    }
}

/// Goal: real load, and the counters balance.
#[test]
fn wrk_is_served() {
    let _guard = hang_guard();
    let pool = pool(2);
    let (server, address) = serve(&pool, Kind::Tcp, routes);
    let mut wrk = Command::new("wrk");
    wrk.args(["-t1", "-c20", "-d1", &format!("http://{}/hello/wrk", address.tcp().unwrap())]);
    let Ok(output) = wrk.output() else {
        return skipped("wrk is not installed");
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!said.contains("Socket errors") && !said.contains("Non-2xx"), "{said}");
    let stats = end(&server);
    assert!(stats.answered.successful > 100, "{stats:?}");
    assert_eq!(stats.begun, stats.answered.successful + stats.aborted.disconnected);
}
