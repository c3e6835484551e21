//! Webhooks: what is posted arrives, in order; what fails is tried again or given up, and counted; nobody who
//! posts ever waits.
#![cfg(feature = "webhook")]

mod common;

use common::{Gate, LONG, hang_guard, threads_named, until};
use paceline::admin::{Webhook, WebhookBuilder, WebhookStats};
use paceline::hub::Hub;
use paceline::{Error, Pool, Retry};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(1);

/// What the server has got: the head in small letters, and the body.
type Requests = Arc<Mutex<Vec<(String, String)>>>;

/// Answers one request of each connection with the next of these numbers, 0: by closing; then with 200. Waits at
/// the gate first.
struct Server {
    address: SocketAddr,
    got: Requests,
    gate: Gate,
}

impl Server {
    fn new(answers: &[u16]) -> Self {
        let server = Self::closed(answers);
        server.gate.open();
        server
    }

    fn closed(answers: &[u16]) -> Self {
        Self::saying(answers, "")
    }

    /// With this line in each head.
    fn saying(answers: &[u16], line: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (got, gate) = (Requests::default(), Gate::new());
        let (keep, visitor, answers) = (Arc::clone(&got), gate.clone(), answers.to_vec());
        // It ends with the process: nobody connects any more.
        thread::spawn(move || {
            let mut answers = answers.into_iter();
            for connection in listener.incoming() {
                let Ok(connection) = connection else { return };
                let Some(request) = read(&connection) else { continue };
                keep.lock().unwrap().push(request);
                visitor.wait();
                answer(connection, answers.next().unwrap_or(200), line);
            }
        });
        Self { address, got, gate }
    }

    fn webhook(&self) -> WebhookBuilder {
        Webhook::builder(&format!("http://{}/hook", self.address)).timeout(Duration::from_secs(300))
    }

    fn bodies(&self) -> Vec<String> {
        self.got.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }
}

fn read(connection: &TcpStream) -> Option<(String, String)> {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let size = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; size.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).ok()?))
}

fn answer(mut connection: TcpStream, status: u16, line: &str) {
    if status != 0 {
        let text = format!(
            "HTTP/1.1 {status} X\r\n{line}Content-Length: 2\r\nConnection: close\r\n\r\nok"
        );
        let _gone = connection.write_all(text.as_bytes());
    }
}

fn counts(stats: &WebhookStats) -> [u64; 5] {
    [stats.posted, stats.delivered, stats.retried, stats.failed, stats.dropped]
}

#[test]
fn bodies_arrive_in_order_as_json() {
    let _guard = hang_guard();
    let server = Server::new(&[]);
    let webhook = server.webhook().header("Authorization", "Bearer 17").build().unwrap();
    for number in 0..10 {
        assert!(webhook.post(format!("{{\"n\":{number}}}")));
    }
    webhook.flush(LONG).unwrap();
    let wanted: Vec<_> = (0..10).map(|number| format!("{{\"n\":{number}}}")).collect();
    assert_eq!(server.bodies(), wanted);
    let (head, _) = server.got.lock().unwrap()[0].clone();
    assert!(head.starts_with("post /hook http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{head}");
    assert!(head.contains("\r\nauthorization: bearer 17\r\n"), "{head}");
    assert_eq!(counts(&webhook.stats()), [10, 10, 0, 0, 0]);
    assert_eq!(webhook.stats().last_error, None);
}

#[test]
fn what_fails_is_tried_again_while_that_may_help() {
    let _guard = hang_guard();
    let server = Server::new(&[500, 0, 429, 408, 204, 400, 302, 503, 503, 503]);
    let webhook = server.webhook().retry(Retry::fixed(4, SHORT)).build().unwrap();
    assert!(webhook.post("1"));
    webhook.flush(LONG).unwrap();
    assert_eq!(counts(&webhook.stats()), [1, 1, 4, 0, 0], "{:?}", webhook.stats());
    assert!(webhook.post("2") && webhook.post("3"));
    webhook.flush(LONG).unwrap();
    assert_eq!(
        counts(&webhook.stats()),
        [3, 1, 4, 2, 0],
        "an answer for good: {:?}",
        webhook.stats()
    );
    assert!(webhook.stats().last_error.unwrap().contains("302"));
    drop(webhook);
    let stubborn = server.webhook().retry(Retry::fixed(2, SHORT)).build().unwrap();
    assert!(stubborn.post("4"));
    stubborn.flush(LONG).unwrap();
    assert_eq!(counts(&stubborn.stats()), [1, 0, 2, 1, 0]);
    assert_eq!(server.bodies(), ["1", "1", "1", "1", "1", "2", "3", "4", "4", "4"]);
}

/// Goal: an answer's `Retry-After` is waited for. Method: no attempt may begin so late, so the body is given up.
#[test]
fn a_server_may_ask_to_wait() {
    let _guard = hang_guard();
    let retry = Retry::fixed(4, SHORT).within(LONG);
    for (line, wanted) in [
        ("", [1, 1, 1, 0, 0]),
        ("Retry-After: soon\r\n", [1, 1, 1, 0, 0]),
        ("Retry-After: 0\r\n", [1, 1, 1, 0, 0]),
        ("Retry-After: 3600\r\n", [1, 0, 0, 1, 0]),
        ("Retry-After: 18446744073709551615\r\n", [1, 0, 0, 1, 0]),
    ] {
        let server = Server::saying(&[503], line);
        server.gate.open();
        let webhook = server.webhook().retry(retry.clone()).build().unwrap();
        assert!(webhook.post("1"));
        webhook.flush(LONG).unwrap();
        assert_eq!(counts(&webhook.stats()), wanted, "{line:?}: {:?}", webhook.stats());
    }
}

#[test]
fn who_posts_never_waits() {
    let _guard = hang_guard();
    let server = Server::closed(&[]);
    let webhook = server.webhook().capacity(1).build().unwrap();
    assert!(webhook.post("1"));
    server.gate.until_entered(1);
    assert!(webhook.post("2"), "the first one has left the queue");
    assert!(!webhook.post("3"));
    assert!(matches!(webhook.flush(SHORT), Err(Error::TimedOut)));
    server.gate.open();
    webhook.flush(LONG).unwrap();
    assert_eq!(server.bodies(), ["1", "2"]);
    assert_eq!(counts(&webhook.stats()), [3, 2, 0, 0, 1]);
}

/// Goal: a server that does not answer, and one that is not there, hold up what is behind for no longer than they
/// are allowed to.
#[test]
fn no_answer_is_a_failure() {
    let _guard = hang_guard();
    let server = Server::closed(&[]);
    let silent = server.webhook().timeout(Duration::from_millis(20)).retry(Retry::none());
    // The port of a client is in use, and nobody listens there.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let nobody = client.local_addr().unwrap();
    let away = Webhook::builder(&format!("http://{nobody}")).retry(Retry::none());
    for builder in [silent, away] {
        let webhook = builder.build().unwrap();
        assert!(webhook.post("1"));
        webhook.flush(LONG).unwrap();
        assert_eq!(counts(&webhook.stats()), [1, 0, 0, 1, 0]);
        assert!(webhook.stats().last_error.is_some());
    }
    server.gate.open();
}

/// Goal: the log of the pool hears what is tried again, given up and dropped.
#[test]
fn what_fails_is_logged() {
    use common::log_of_events;
    use paceline::log::{Component, Level};
    let _guard = hang_guard();
    let (log, told) = log_of_events("debug");
    let pool = Pool::builder().threads(1).log(&log).build().unwrap();
    let server = Server::closed(&[500, 400]);
    let webhook = server.webhook().retry(Retry::fixed(4, SHORT)).capacity(1).log_of(&pool);
    let webhook = webhook.build().unwrap();
    assert!(webhook.post("1"));
    server.gate.until_entered(1);
    assert!(webhook.post("2") && !webhook.post("3"));
    server.gate.open();
    webhook.flush(LONG).unwrap();
    log.flush(LONG).unwrap();
    let mut told = told.lock().unwrap().clone();
    told.retain(|(component, ..)| *component == Component::Webhook);
    let expected = [
        (Level::Debug, "webhook.dropped"),
        (Level::Info, "webhook.retried"),
        (Level::Warn, "webhook.failed"),
    ];
    assert_eq!(told, expected.map(|(level, event)| (Component::Webhook, level, event)));
}

/// Goal: what a hub tells of itself is posted; and the thread goes with the last who has the webhook, though it
/// is in the middle of a very long wait.
#[test]
fn notices_are_forwarded_until_nobody_wants_them() {
    let _guard = hang_guard();
    let server = Server::new(&[200, 503]);
    let pool = Pool::builder().threads(1).build().unwrap();
    let hub = Hub::new(&pool).unwrap();
    let hour = Duration::from_secs(3600);
    let webhook = server.webhook().retry(Retry::fixed(1, hour)).build().unwrap();
    let forwarded = webhook.forward(&hub, "$SYS.subscription.>").unwrap();
    let full = hub.mailbox("a", 1).unwrap();
    assert!(matches!(hub.publish_batch("a", ["x"; 2]), Err(Error::MailboxFull { .. })));
    until("two requests", || server.bodies().len() == 2);
    let notice = |body: &String| serde_json::from_str::<Value>(body).unwrap();
    let notices: Vec<_> = server.bodies().iter().map(notice).collect();
    assert_eq!(notices[0]["event"], "subscription.started");
    assert_eq!(notices[1]["event"], "subscription.overflow");
    assert_eq!(notices[1]["count"], 1);
    drop((forwarded, full));
    until("nothing runs", || hub.audit().waiting + hub.audit().running == 0);
    drop(webhook);
    assert!(pool.shutdown(LONG).drained);
    drop(hub);
}

#[test]
fn bad_settings_are_named() {
    let refused = |builder: WebhookBuilder| builder.build().unwrap_err().to_string();
    let good = || Webhook::builder("http://localhost/");
    for url in ["", "localhost", "ftp://localhost", "http://", "/hook", "http://a b"] {
        let told = refused(Webhook::builder(url));
        assert_eq!(told, format!("url is {url:?}, but must be http:// or https:// and a host"));
    }
    assert_eq!(refused(good().capacity(0)), "capacity is 0, but must be 1 to 65536");
    assert_eq!(refused(good().capacity(65537)), "capacity is 65537, but must be 1 to 65536");
    assert_eq!(
        refused(good().timeout(Duration::ZERO)),
        "timeout is 0ns, but must be 1 ms to 5 minutes"
    );
    assert_eq!(
        refused(good().header("a b", "c")),
        "the name of a header is \"a b\", but must be a token of HTTP"
    );
    assert_eq!(
        refused(good().header("Token", "a\nb")),
        "the value of a header is that of Token, but must be visible ASCII and blanks"
    );
    assert!(refused(good().proxy("::")).starts_with("proxy is \"::\", but must be the URL"));
}

/// Last by its name and alone in what it looks for: a thread's name is cut at 15 letters.
#[test]
fn the_thread_goes_with_the_webhook() {
    let _guard = hang_guard();
    let server = Server::new(&[503]);
    let hour = Duration::from_secs(3600);
    let webhook = server.webhook().retry(Retry::fixed(1, hour)).build().unwrap();
    assert!(webhook.post("1") && webhook.post("2"));
    until("the first attempt", || webhook.stats().last_error.is_some());
    let clone = webhook.clone();
    drop(webhook);
    assert!(clone.post("3"), "a clone is the same one");
    drop(clone);
    until("its thread is gone, and those of other tests", || {
        threads_named("paceline-hook").is_empty()
    });
    assert_eq!(server.bodies(), ["1"]);
}
