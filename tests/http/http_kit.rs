//! A client that reads answers, and servers to ask.

use crate::common::{LONG, until};
use crate::kit::{Client, Kind};
use paceline::Pool;
use paceline::http::{Http, HttpBuilder, HttpStats};
use paceline::net::Address;
use std::io::Read;

/// An answer, taken apart.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(of, _)| of.eq_ignore_ascii_case(name));
        let first = found.next();
        assert!(found.next().is_none(), "{name} is there twice: {self:?}");
        first.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn closes(&self) -> bool {
        self.header("connection") == Some("close")
    }
}

/// A client of an HTTP server. It knows nothing of the library: it reads what RFC 9112 says.
pub struct Asker {
    pub client: Client,
    read: Vec<u8>,
}

impl Asker {
    pub fn connect(address: &Address) -> Self {
        Self::of(Client::connect(address))
    }

    pub fn of(client: Client) -> Self {
        Self { client, read: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.client.send(bytes);
    }

    /// What the peer may refuse to take, since it has closed.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = std::io::Write::write_all(&mut self.client.0, bytes.as_ref());
    }

    #[track_caller]
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> Answer {
        let head_only = request.as_ref().starts_with(b"HEAD ");
        self.send(request);
        self.answer_to(head_only)
    }

    #[track_caller]
    pub fn answer(&mut self) -> Answer {
        self.answer_to(false)
    }

    /// None: the connection has ended instead.
    #[track_caller]
    pub fn try_answer(&mut self) -> Option<Answer> {
        if self.read.is_empty() {
            let mut bytes = [0; 16384];
            let count = self.client.0.read(&mut bytes).unwrap_or(0);
            self.read.extend_from_slice(&bytes[..count]);
        }
        (!self.read.is_empty()).then(|| self.answer())
    }

    #[track_caller]
    pub fn answer_to(&mut self, head_only: bool) -> Answer {
        let mut answer = self.head();
        let bodyless = head_only || matches!(answer.status, 100..=199 | 204 | 304);
        answer.body = match (answer.header("content-length"), answer.header("transfer-encoding")) {
            _ if bodyless => Vec::new(),
            (Some(length), None) => self.take(length.parse().unwrap()),
            (None, Some("chunked")) => self.chunks(),
            (None, None) => self.rest(),
            both => panic!("{both:?}"),
        };
        answer
    }

    #[track_caller]
    fn head(&mut self) -> Answer {
        let mut lines = Vec::new();
        loop {
            match self.line() {
                line if line.is_empty() => break,
                line => lines.push(line),
            }
        }
        let (version, rest) = lines[0].split_once(' ').unwrap();
        assert_eq!(version, "HTTP/1.1");
        let header = |line: &String| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_owned(), value.to_owned())
        };
        Answer {
            status: rest[..3].parse().unwrap(),
            headers: lines[1..].iter().map(header).collect(),
            body: Vec::new(),
        }
    }

    #[track_caller]
    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line(), 16).unwrap();
            body.extend(self.take(size));
            assert_eq!(self.line(), "");
            if size == 0 {
                return body;
            }
        }
    }

    #[track_caller]
    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.read.windows(2).position(|two| two == b"\r\n") {
                let line = self.take(end + 2);
                return String::from_utf8(line[..end].to_vec()).unwrap();
            }
            self.more();
        }
    }

    #[track_caller]
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        while self.read.len() < count {
            self.more();
        }
        self.read.drain(..count).collect()
    }

    #[track_caller]
    fn more(&mut self) {
        let mut bytes = [0; 16384];
        let count = self.client.0.read(&mut bytes).unwrap();
        assert!(count > 0, "the connection ended after {:?}", self.read.escape_ascii().to_string());
        self.read.extend_from_slice(&bytes[..count]);
    }

    /// Everything up to the end.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.read);
        rest.extend(self.client.rest());
        rest
    }

    /// Everything up to the end, which may be a reset.
    pub fn rest_or_reset(&mut self) -> (Vec<u8>, bool) {
        let mut rest = std::mem::take(&mut self.read);
        let (more, reset) = self.client.rest_or_reset();
        rest.extend(more);
        (rest, reset)
    }

    /// Nothing more comes, and the connection ends in an orderly way.
    #[track_caller]
    pub fn expect_end(&mut self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "{}", rest.escape_ascii());
    }
}

/// A server with these routes and settings.
pub fn serve(
    pool: &Pool,
    kind: Kind,
    settings: impl FnOnce(HttpBuilder) -> HttpBuilder,
) -> (Http, Address) {
    let server = settings(Http::builder(pool).listen(kind.address())).serve().unwrap();
    let address = server.addresses()[0].clone();
    (server, address)
}

/// Drains, and the counters must balance with nothing left.
#[track_caller]
pub fn end(server: &Http) -> HttpStats {
    assert!(server.drain(LONG), "{:?}", server.stats());
    balanced(server)
}

#[track_caller]
pub fn balanced(server: &Http) -> HttpStats {
    let stats = server.stats();
    assert!(stats.balances(), "{stats:#?}");
    assert_eq!((stats.in_work, stats.server.open), (0, 0), "{stats:#?}");
    stats
}

/// Waits until the counters say so.
#[track_caller]
pub fn until_stats(server: &Http, what: &str, condition: impl Fn(&HttpStats) -> bool) {
    until(what, || condition(&server.stats()));
}
