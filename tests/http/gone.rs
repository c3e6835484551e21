//! Clients that go away while their request is in work.

use crate::common::{finish, hang_guard, until};
use crate::http_kit::*;
use crate::kit::{KINDS, Kind, pool};
use paceline::http::{Next, Request, Response};
use paceline::net::WriteStatus;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const HOST: &str = "HTTP/1.1\r\nHost: h\r\n\r\n";

/// Goal: a reset is noticed at once, whatever the client has sent ahead, and however full its output is.
#[test]
fn a_reset_is_noticed_while_the_answer_is_under_way() {
    let _guard = hang_guard();
    let pool = pool(2);
    let kept = Arc::new(Mutex::new(Vec::new()));
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let (keep, stream) = (Arc::clone(&kept), Arc::clone(&bodies));
    let (server, address) = serve(&pool, Kind::Tcp, move |builder| {
        builder
            .route("GET", "/keep", move |_: &Request, response: Response| {
                keep.lock().unwrap().push(response);
            })
            .route("GET", "/stream", move |_: &Request, response: Response| {
                let mut body = response.stream(None).unwrap();
                while !body
                    .write(&[b'x'; 65536])
                    .is_ok_and(|status| status == WriteStatus::AboveHighMark)
                {}
                stream.lock().unwrap().push(body);
            })
            .route("GET", "/big", |_: &Request, response: Response| {
                response.send_owned(vec![b'x'; 12 << 20])
            })
    });
    let ahead = format!("GET /keep {HOST}");
    let cases = [
        ("kept", ahead.clone()),
        ("with a request ahead", ahead.repeat(2)),
        ("with many ahead", ahead.repeat(20_000)),
        ("pressed", format!("GET /stream {HOST}")),
        ("pressed, with requests ahead", format!("GET /stream {HOST}") + &ahead.repeat(20_000)),
        ("answered, and not taken", format!("GET /big {HOST}")),
        ("answered, with requests ahead", format!("GET /big {HOST}") + &ahead.repeat(20_000)),
    ];
    for (count, (what, sent)) in cases.into_iter().enumerate() {
        println!("{what}");
        let mut asker = Asker::connect(&address);
        asker.client.0.set_nonblocking(true).unwrap();
        asker.try_send(&sent);
        until_stats(&server, what, |stats| stats.begun > count as u64);
        asker.client.reset();
        until_stats(&server, what, |stats| stats.server.open == 0);
    }
    // The last two were handed over whole.
    let stats = balanced(&server);
    let lost = stats.aborted.disconnected;
    assert_eq!((stats.answered.total(), lost), (2, stats.begun - 2), "{stats:#?}");
    drop((kept, bodies));
    finish(&pool);
}

/// Goal: whoever works for a client can ask whether it is still there, in the handler, elsewhere, and between two pieces of a
/// body; and one that has only finished sending gets its answer.
#[test]
fn whoever_works_can_ask_whether_the_client_is_there() {
    let _guard = hang_guard();
    for kind in KINDS {
        for allowed in [false, true] {
            let pool = pool(2);
            let entered = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&entered);
            let (server, address) = serve(&pool, kind, |builder| {
                let builder =
                    builder.around(move |request: &Request, response: Response, next: Next| {
                        count.fetch_add(1, Relaxed);
                        next.run(request, response);
                    });
                let builder = builder.server(|server| server.allow_half_open(allowed));
                let builder = builder.route("GET", "/inside", |_: &Request, response: Response| {
                    until("it has gone", || response.is_client_gone());
                    response.send("inside")
                });
                let builder =
                    builder.route("GET", "/outside", |_: &Request, response: Response| {
                        std::thread::spawn(move || {
                            until("it has gone", || response.is_client_gone());
                            response.send("outside")
                        });
                    });
                builder.route("GET", "/body", |_: &Request, response: Response| {
                    let mut body = response.stream(None).unwrap();
                    std::thread::spawn(move || {
                        until("it has gone", || body.is_client_gone());
                        body.write(b"body").and_then(|_| body.finish())
                    });
                })
            });
            for (count, path) in ["inside", "outside", "body"].into_iter().enumerate() {
                let mut asker = Asker::connect(&address);
                asker.send(format!("GET /{path} {HOST}"));
                until("it is in work", || entered.load(Relaxed) > count);
                if allowed {
                    asker.client.reset();
                } else {
                    asker.client.finish();
                    assert_eq!(asker.answer().text(), path, "{kind:?}");
                }
            }
            until_stats(&server, "all have ended", |stats| stats.server.open == 0);
            let stats = balanced(&server);
            assert_eq!(stats.begun, 3, "{stats:#?}");
            finish(&pool);
        }
    }
}
