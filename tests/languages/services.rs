//! The shop of examples/service in four languages.
//!
//! Method: each is started, and sent the same requests. What it answers and publishes becomes a transcript, which must be
//! the same for all of them. At the end SIGTERM comes while an order is charged for.

use super::{example_in, programs, source};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// After this a test gives up, and fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// For an order that is never charged for. The others are through long before, on a machine that is not held up.
const DEADLINE: &str = "5s";

const EXPECTED: &str = include_str!("services.txt");

#[test]
fn the_shop_in_rust() {
    shop_in("rust");
}

#[test]
fn the_shop_in_c() {
    shop_in("c");
}

#[test]
fn the_shop_in_cpp() {
    shop_in("cpp");
}

#[test]
fn the_shop_in_python() {
    shop_in("python");
}

fn shop_in(language: &str) {
    if let Some(command) = example_in(language, "service") {
        // In Rust its feature `systemd` is off in a build of all.
        drive(language, command, language != "rust");
    }
}

/// Sends all requests, and compares what comes back.
fn drive(language: &str, command: Command, tells_systemd: bool) {
    let mut shop = Shop::start(language, command);
    let mut events = Events::open(&shop.address, None);
    let mut script = Transcript { shop: &shop, text: String::new() };
    script.orders(&mut events);
    script.refusals();
    script.receipts();
    script.library();
    assert_eq!(script.text, EXPECTED, "in {language}:\n{}", script.text);
    let strangers = shop.check_events(&events.all);

    // An order is accepted, and then comes the signal: it is paid for all the same, and told so.
    let body = r#"{"item": "flaky", "quantity": 1000}"#;
    let last = shop.ask("POST /orders", "", body.as_bytes()).json()["id"].as_u64().expect("an id");
    shop.signal();
    let seen = events.until(last, "paid");
    assert!(!events.has_more(), "the stream goes on after {seen:?}");
    for mut stream in strangers {
        let body = unchunked(&mut stream);
        let body = String::from_utf8(body).expect("events are UTF-8");
        let count = body.matches("event: order\n").count();
        assert_eq!(count, events.all.len(), "in {language}, all events in\n{body}");
    }
    let printed = shop.ended();
    assert_eq!(printed, format!("drained: true, orders: {last}\n"), "{language}");
    shop.check_log();
    if tells_systemd {
        assert_eq!(shop.told(), ["READY=1", "STOPPING=1"], "{language}");
    }
}

// ---- what is asked --------------------------------------------------------------------------------

/// What was asked, and what came back.
struct Transcript<'a> {
    shop: &'a Shop,
    text: String,
}

impl Transcript<'_> {
    /// Sends a request, and writes down what was answered.
    fn ask(&mut self, request: &str, headers: &str, body: &[u8]) -> Answer {
        let answer = self.shop.ask(request, headers, body);
        let shown = match body.len() {
            0 => String::new(),
            1..=100 => format!(" {}", String::from_utf8_lossy(body).replace("\r\n", "\\r\\n")),
            size => format!(" {size} bytes"),
        };
        writeln!(self.text, "> {request}{shown}").expect("a text takes all");
        write!(self.text, "< {}", answer.status).expect("a text takes all");
        for name in ["content-type", "location", "allow", "cache-control"] {
            if let Some(value) = answer.headers.get(name) {
                write!(self.text, "; {name}: {value}").expect("a text takes all");
            }
        }
        writeln!(self.text, "\n{}", answer.shown()).expect("a text takes all");
        answer
    }

    /// Places an order, which must be taken. Its number.
    fn post(&mut self, order: &str) -> u64 {
        let answer = self.ask("POST /orders", "", order.as_bytes());
        assert_eq!(answer.status, 201, "{order}");
        answer.json()["id"].as_u64().expect("a number")
    }

    /// Places an order, and writes down all its states until it ends.
    fn place(&mut self, events: &mut Events, order: &str, end: &str) -> u64 {
        let id = self.post(order);
        let states = events.until(id, end).join(", ");
        writeln!(self.text, "= {states}").expect("a text takes all");
        id
    }

    fn orders(&mut self, events: &mut Events) {
        // Others are charged for meanwhile.
        let stuck = self.post(r#"{"item": "stuck", "quantity": 1}"#);
        let tea = self.place(events, r#"{"item": "tea", "quantity": 2}"#, "paid");
        self.place(events, r#"{"item": "flaky", "quantity": 1000}"#, "paid");
        self.place(events, r#"{"quantity": 1, "item": "stolen", "note": [{}]}"#, "declined");
        let text = r#"{"item": "\"caf\u00e9\"\n\t\\ \ud83c\udf75 /", "quantity": 1}"#;
        self.place(events, text, "paid");
        let states = events.until(stuck, "late").join(", ");
        writeln!(self.text, "= {states}").expect("a text takes all");
        self.ask(&format!("GET /orders/{tea}"), "", b"");
        self.ask("GET /orders", "", b"");
    }

    /// What is no order.
    fn refusals(&mut self) {
        for body in [
            "",
            "{",
            "[]",
            "7",
            r#"{"item": "tea"} and more"#,
            "{}",
            r#"{"item": "", "quantity": 1}"#,
            r#"{"item": 7, "quantity": 1}"#,
            r#"{"item": "tea"}"#,
            r#"{"item": "tea", "quantity": 0}"#,
            r#"{"item": "tea", "quantity": 1001}"#,
            r#"{"item": "tea", "quantity": -1}"#,
            r#"{"item": "tea", "quantity": 1.5}"#,
            r#"{"item": "tea", "quantity": 1e300}"#,
            r#"{"item": "tea", "quantity": "2"}"#,
            r#"{"item": "tea", "quantity": true}"#,
        ] {
            let answer = self.ask("POST /orders", "", body.as_bytes());
            assert!(matches!(answer.status, 400 | 422), "{body}");
        }
        for id in ["99", "0", "-1", "x", "1x", "99999999999999999999"] {
            self.ask(&format!("GET /orders/{id}"), "", b"");
        }
    }

    fn receipts(&mut self) {
        self.ask("PUT /orders/2/receipt", "", b"");
        self.ask("PUT /orders/2/receipt", "", b"Wikipedia");
        self.ask("PUT /orders/2/receipt", "", &vec![255; 65536]);
        self.ask("PUT /orders/2/receipt", "", &vec![b'r'; 65537]);
        self.ask("PUT /orders/99/receipt", "", b"of what?");
        // In two chunks.
        let chunks = b"4\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n";
        self.ask("PUT /orders/2/receipt", "Transfer-Encoding: chunked\r\n", chunks);
    }

    /// What the library answers by itself, and the operations page.
    fn library(&mut self) {
        self.ask("GET /", "Accept: application/json\r\n", b"");
        self.ask("DELETE /orders", "Accept: application/json\r\n", b"");
        self.ask("POST /orders", "Accept: application/json\r\n", &vec![b' '; 4097]);
        self.ask("HEAD /events", "", b"");
        for path in ["/health/live", "/health/ready"] {
            assert_eq!(ask(&self.shop.page, &format!("GET {path}"), "", b"").status, 200, "{path}");
        }
        let metrics = ask(&self.shop.page, "GET /metrics", "", b"").body;
        let metrics = String::from_utf8(metrics).expect("it is a text");
        for figure in ["task_completed", "http_answered", "hub_published"] {
            let name = format!("\npaceline_{figure}_total{{");
            assert!(metrics.contains(&name), "{name:?} is not among {} bytes", metrics.len());
        }
    }
}

// ---- a client of HTTP -----------------------------------------------------------------------------

struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// JSON with its members in one order.
    fn shown(&self) -> String {
        match serde_json::from_slice::<Value>(&self.body) {
            Ok(value) => value.to_string(),
            Err(_) => String::from_utf8_lossy(&self.body).into_owned(),
        }
    }
}

/// Sends a request, "GET /orders", on a connection of its own, and reads what is answered.
fn ask(address: &str, request: &str, headers: &str, body: &[u8]) -> Answer {
    let mut stream = send(address, request, headers, body);
    let (status, headers) = head(&mut stream);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("an answer, and its end");
    let is_chunked = headers.contains_key("transfer-encoding");
    let body = if is_chunked && !rest.is_empty() { unchunked(&mut &*rest) } else { rest };
    Answer { status, headers, body }
}

fn send(address: &str, request: &str, headers: &str, body: &[u8]) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).expect("the shop listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
    let length = match headers.contains("Transfer-Encoding") || body.is_empty() {
        true => String::new(),
        false => format!("Content-Length: {}\r\n", body.len()),
    };
    let head = format!(
        "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}{length}\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).expect("the shop reads");
    BufReader::new(stream)
}

fn head(stream: &mut impl BufRead) -> (u16, BTreeMap<String, String>) {
    let first = line(stream);
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let mut headers = BTreeMap::new();
    loop {
        let line = line(stream);
        let Some((name, value)) = line.split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    (status.unwrap_or_else(|| panic!("{first:?} is no status line")), headers)
}

/// A line without its end.
fn line(stream: &mut impl BufRead) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).expect("a line");
    line.trim_end_matches(['\r', '\n']).to_owned()
}

fn unchunked(stream: &mut impl BufRead) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(mut piece) = chunk(stream) {
        body.append(&mut piece);
    }
    body
}

/// The next chunk. `None` is the last one, which ends the body.
fn chunk(stream: &mut impl BufRead) -> Option<Vec<u8>> {
    let size = line(stream);
    let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("{size:?} is no size"));
    let mut piece = vec![0; size + 2];
    stream.read_exact(&mut piece).expect("a whole chunk");
    assert!(piece.ends_with(b"\r\n"));
    piece.truncate(size);
    (size > 0).then_some(piece)
}

/// Server-sent events: their ids, and the order that each is about.
struct Events {
    stream: BufReader<TcpStream>,
    text: String,
    all: Vec<(u64, Value)>,
}

impl Events {
    fn open(address: &str, seen: Option<u64>) -> Self {
        let header = seen.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
        let mut stream = send(address, "GET /events", &header, b"");
        let (status, headers) = head(&mut stream);
        assert_eq!((status, &*headers["content-type"]), (200, "text/event-stream"));
        Self { stream, text: String::new(), all: Vec::new() }
    }

    /// The next event. `None` if the stream has ended as it should.
    fn next(&mut self) -> Option<(u64, Value)> {
        let begun = Instant::now();
        loop {
            // What comes now and then for its own sake is no event.
            assert!(begun.elapsed() < PATIENCE, "no event has come since {:?}", self.all.last());
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if block.starts_with(':') {
                    continue;
                }
                let [id, event, data] = *block.lines().collect::<Vec<_>>() else {
                    panic!("{block:?} is no event of ours");
                };
                assert_eq!(event, "event: order");
                let id = id.strip_prefix("id: ").and_then(|id| id.parse().ok());
                let data = data.strip_prefix("data: ").map(|data| serde_json::from_str(data).ok());
                let found = (id.expect("an id"), data.flatten().expect("JSON"));
                self.all.push(found.clone());
                return Some(found);
            }
            let piece = String::from_utf8(chunk(&mut self.stream)?).expect("events are UTF-8");
            self.text += &piece;
        }
    }

    /// All states of an order so far, when this one has come.
    fn until(&mut self, id: u64, state: &str) -> Vec<String> {
        let is_last = |(_, order): &(u64, Value)| order["id"] == id && order["state"] == state;
        while !self.all.iter().any(is_last) {
            assert!(self.next().is_some(), "the stream has ended before {id} is {state}");
        }
        let of_order = self.all.iter().filter(|(_, order)| order["id"] == id);
        of_order
            .map(|(_, order)| {
                format!("{} {}", order["state"].as_str().unwrap_or("?"), order["attempts"])
            })
            .collect()
    }

    fn has_more(&mut self) -> bool {
        self.next().is_some()
    }
}

// ---- the program ----------------------------------------------------------------------------------

/// A shop that runs.
struct Shop {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// What it tells systemd.
    systemd: UnixDatagram,
    folder: PathBuf,
    address: String,
    /// Where the operations page is.
    page: String,
}

impl Shop {
    fn start(language: &str, mut command: Command) -> Self {
        let folder = programs::scratch(&format!("shop-{language}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a directory");
        let systemd = UnixDatagram::bind(folder.join("systemd")).expect("a socket");
        systemd.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        command.current_dir(source(".")).env("NOTIFY_SOCKET", folder.join("systemd"));
        command.env("PACELINE_SERVER_ADDRESS", "127.0.0.1:0");
        command.env("PACELINE_OPS_ADDRESS", "127.0.0.1:0");
        command.env("PACELINE_LOG_FILE", folder.join("log"));
        command.env("PACELINE_TASKS_DEADLINE", DEADLINE);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the shop opens");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut place = |before: &str, after: &str| {
            let line = line(&mut stdout);
            let place = line.strip_prefix(before).and_then(|line| line.strip_suffix(after));
            place.unwrap_or_else(|| panic!("it prints {line:?}")).to_owned()
        };
        let address = place("the shop: http://", "/orders");
        let page = place("the live page: http://", "/");
        Self { child, stdout, systemd, folder, address, page }
    }

    fn ask(&self, request: &str, headers: &str, body: &[u8]) -> Answer {
        ask(&self.address, request, headers, body)
    }

    /// Who has seen some of the events gets the rest, and none twice.
    fn check_events(&self, all: &[(u64, Value)]) -> Vec<BufReader<TcpStream>> {
        let mut strangers = Vec::new();
        for from in [1, all.len() / 2, all.len() - 1] {
            let mut rest = Events::open(&self.address, Some(all[from - 1].0));
            for expected in &all[from..] {
                assert_eq!(rest.next().as_ref(), Some(expected), "behind {:?}", all[from - 1]);
            }
        }
        assert!(all.is_sorted_by(|one, two| one.0 < two.0), "{all:#?}");
        // An id that no event has is no reason to fail.
        for id in ["x", "-1", "1000000", "18446744073709551615", "99999999999999999999"] {
            let header = format!("Last-Event-ID: {id}\r\n");
            let mut stream = send(&self.address, "GET /events", &header, b"");
            assert_eq!(head(&mut stream).0, 200, "{id}");
            strangers.push(stream);
        }
        strangers
    }

    fn signal(&self) {
        let kill = format!("kill -TERM {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().expect("there is a shell");
        assert!(sent.success());
    }

    /// What it prints until its end, which must be a good one.
    fn ended(&mut self) -> String {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("it prints UTF-8");
        let status = self.child.wait().expect("it is our child");
        assert!(status.success(), "{status}\n{text}");
        text
    }

    /// The log has each request, and the end.
    fn check_log(&self) {
        let log = fs::read_to_string(self.folder.join("log")).expect("there is a log");
        let records: Vec<Value> =
            log.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        let is_post = |record: &&Value| {
            let fields = &record["fields"];
            record["event"] == "request.ended"
                && fields["method"] == "POST"
                && fields["status"] == 201
        };
        assert_eq!(records.iter().filter(is_post).count(), 6, "{log}");
        assert!(records.iter().any(|record| record["event"] == "workers.stopped"), "{log}");
    }

    /// What it has told systemd.
    fn told(&self) -> Vec<String> {
        let receive = || {
            let mut bytes = [0; 256];
            let size = self.systemd.recv(&mut bytes).expect("it tells systemd");
            String::from_utf8_lossy(&bytes[..size]).trim().to_owned()
        };
        vec![receive(), receive()]
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        // They fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
