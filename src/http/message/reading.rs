//! Requests read from bytes without a connection, for tests and fuzz targets.
//!
//! The reader does with `head.rs` and `chunks.rs` what a connection does, and notes what it sees. It is
//! given the bytes in pieces; what it sees must not depend on where they were cut.

use super::chunks::{BodyReader, Length, Piece};
use super::head::{Head, HeadLimits, Parsed, parse, scratch};
use super::refusal::Refusal;

/// What was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    Request {
        method: String,
        target: String,
        path: String,
        query: Option<String>,
        is_1_1: bool,
        fields: Vec<(String, Vec<u8>)>,
        length: Length,
        persists: bool,
    },
    /// The whole body, or what of it has come.
    Body(Vec<u8>),
    End,
    Refused(Refusal),
}

/// See the head of the file.
pub(crate) struct Reader {
    limits: HeadLimits,
    left: Vec<u8>,
    body: Option<BodyReader>,
    pub(crate) seen: Vec<Seen>,
}

impl Reader {
    pub(crate) fn new(limits: HeadLimits) -> Self {
        Self { limits, left: Vec::new(), body: None, seen: Vec::new() }
    }

    /// Everything that is seen in bytes that come in these pieces.
    pub(crate) fn read<'a>(
        limits: HeadLimits,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Vec<Seen> {
        let mut reader = Self::new(limits);
        pieces.into_iter().for_each(|piece| reader.feed(piece));
        reader.seen
    }

    fn feed(&mut self, piece: &[u8]) {
        let mut bytes = core::mem::take(&mut self.left);
        bytes.extend_from_slice(piece);
        let mut taken = 0;
        while let Some(count) = self.step(&bytes[taken..]) {
            taken += count;
        }
        self.left = bytes.split_off(taken);
    }

    /// How much was taken; None: more must come.
    fn step(&mut self, bytes: &[u8]) -> Option<usize> {
        if let Some(Seen::Refused(_)) = self.seen.last() {
            return None;
        }
        match &mut self.body {
            Some(body) => {
                let seen = body.next(bytes);
                self.step_in_body(seen)
            }
            None => self.step_in_head(bytes),
        }
    }

    fn step_in_head(&mut self, bytes: &[u8]) -> Option<usize> {
        let limits = self.limits;
        let mut scratch = scratch();
        match parse(bytes, &limits, &mut scratch) {
            Parsed::Partial => None,
            Parsed::Refused(refusal) => {
                self.seen.push(Seen::Refused(refusal));
                None
            }
            Parsed::Complete(head) => Some(self.see_request(&head, bytes)),
        }
    }

    /// A head, and its body if it is there.
    fn see_request(&mut self, head: &Head<'_, '_>, bytes: &[u8]) -> usize {
        self.see_head(head);
        match self.see_whole_body(head.body, &bytes[head.size..]) {
            Some(length) => head.size + length,
            None => {
                self.body = Some(BodyReader::new(head.body));
                head.size
            }
        }
    }

    fn see_head(&mut self, head: &Head<'_, '_>) {
        self.seen.push(Seen::Request {
            method: head.method.into(),
            target: head.target.into(),
            path: head.path.into(),
            query: head.query.map(String::from),
            is_1_1: head.is_1_1,
            fields: head.pairs().map(|(name, value)| (name.into(), value.into())).collect(),
            length: head.body,
            persists: head.persists,
        });
    }

    /// A body that has come with its head is taken with it. None: it has not.
    fn see_whole_body(&mut self, length: Length, rest: &[u8]) -> Option<usize> {
        let Length::Known(length) = length else { return None };
        let body = rest.get(..usize::try_from(length).ok()?)?;
        if !body.is_empty() {
            self.seen.push(Seen::Body(body.into()));
        }
        self.seen.push(Seen::End);
        Some(body.len())
    }

    fn step_in_body(&mut self, seen: Result<(usize, Piece<'_>), Refusal>) -> Option<usize> {
        match seen {
            Ok((framing, Piece::Partial)) => (framing > 0).then_some(framing),
            Ok((framing, Piece::Data(data))) => {
                self.body.as_mut()?.took(data.len());
                match self.seen.last_mut() {
                    Some(Seen::Body(body)) => body.extend_from_slice(data),
                    _ => self.seen.push(Seen::Body(data.into())),
                }
                Some(framing + data.len())
            }
            Ok((framing, Piece::End)) => {
                self.body = None;
                self.seen.push(Seen::End);
                Some(framing)
            }
            Err(refusal) => {
                self.seen.push(Seen::Refused(refusal));
                None
            }
        }
    }
}

pub(crate) const LIMITS: HeadLimits = HeadLimits { bytes: 600, target: 100, fields: 10 };

/// For fuzz targets.
pub mod fuzzing {
    use super::super::chunks::{BodyReader, Length};
    use super::{LIMITS, Reader};

    /// Reads requests: the first byte says into pieces of which size the rest is cut.
    ///
    /// # Panics
    /// If it matters where.
    pub fn requests(bytes: &[u8]) {
        let Some((size, bytes)) = bytes.split_first() else { return };
        let whole = Reader::read(LIMITS, [bytes]);
        let cut = Reader::read(LIMITS, bytes.chunks(usize::from(*size) % 40 + 1));
        assert_eq!(whole, cut);
    }

    /// Reads a body in chunks, likewise.
    ///
    /// # Panics
    /// If it matters where it is cut, or more is taken than there is.
    pub fn chunks(bytes: &[u8]) {
        let Some((size, bytes)) = bytes.split_first() else { return };
        let read = |size: usize| {
            let mut reader = Reader::new(LIMITS);
            reader.body = Some(BodyReader::new(Length::Chunked));
            for piece in bytes.chunks(size) {
                if reader.body.is_some() {
                    reader.feed(piece);
                }
            }
            // What follows the body is no matter here.
            let end = reader.seen.iter().position(|seen| *seen == super::Seen::End);
            reader.seen.truncate(end.map_or(usize::MAX, |end| end + 1));
            reader.seen
        };
        assert_eq!(read(usize::MAX), read(usize::from(*size) % 40 + 1));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(refusal: Refusal) -> Vec<Seen> {
        vec![Seen::Refused(refusal)]
    }

    /// What is seen of a request with this target and these fields.
    fn request(
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        length: Length,
        body: &str,
    ) -> Vec<Seen> {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        let field = |(name, value): &(&str, &str)| (name.to_string(), value.as_bytes().to_vec());
        let mut seen = vec![Seen::Request {
            method: method.into(),
            target: target.into(),
            path: path.into(),
            query,
            is_1_1: true,
            fields: fields.iter().map(field).collect(),
            length,
            persists: true,
        }];
        if !body.is_empty() {
            seen.push(Seen::Body(body.into()));
        }
        seen.push(Seen::End);
        seen
    }

    /// Requests, and what must be seen of them.
    fn vectors() -> Vec<(String, Vec<Seen>)> {
        let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let post = |fields: &str, body: &str| {
            format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{body}")
        };
        let plain = |target: &str| request("GET", target, &[("Host", "a")], Length::Known(0), "");
        let sent = |name: &str, value: &str, length: Length, body: &str| {
            request("POST", "/", &[("Host", "a"), (name, value)], length, body)
        };
        let chunked = |body: &str| post("Transfer-Encoding: Chunked", body);
        let put_together = |body: &str| sent("Transfer-Encoding", "Chunked", Length::Chunked, body);
        let mut broken = put_together("");
        broken.truncate(1);
        broken.push(Seen::Refused(Refusal::BadRequest));
        let broken_after = |body: &str| {
            let mut seen = put_together(body);
            seen.truncate(2);
            seen.push(Seen::Refused(Refusal::BadRequest));
            seen
        };
        let bad = || refused(Refusal::BadRequest);
        let mut many = String::from("GET / HTTP/1.1\r\nHost: a\r\n");
        (0..10).for_each(|_| many.push_str("x:\r\n"));
        vec![
            (get("/"), plain("/")),
            (get("/a/b?c=d?e"), plain("/a/b?c=d?e")),
            (get("/?"), plain("/?")),
            (format!("\r\n\r\n{}", get("/")), plain("/")),
            (get("/a") + &get("/b"), [plain("/a"), plain("/b")].concat()),
            (
                post("Content-Length: 3", "abc"),
                sent("Content-Length", "3", Length::Known(3), "abc"),
            ),
            (
                post("Content-Length:\t3 \t", "abc"),
                sent("Content-Length", "3", Length::Known(3), "abc"),
            ),
            (
                post("content-length: 0003", "abc"),
                sent("content-length", "0003", Length::Known(3), "abc"),
            ),
            (post("X: \u{e9}", ""), sent("X", "\u{e9}", Length::Known(0), "")),
            (chunked("0\r\n\r\n"), put_together("")),
            (
                chunked("3\r\nabc\r\n00A;x=\"y\"\r\n0123456789\r\n0\r\n\r\n"),
                put_together("abc0123456789"),
            ),
            (chunked("1\r\na\r\n0;last\r\nTrailer: x\r\nOther:\r\n\r\n"), put_together("a")),
            (chunked("\r\n"), broken.clone()),
            (chunked(";x\r\n"), broken.clone()),
            (chunked("g\r\n"), broken.clone()),
            (chunked("0x1\r\n"), broken.clone()),
            (chunked("-1\r\n"), broken.clone()),
            (chunked(" 1\r\n"), broken.clone()),
            (chunked("1 \r\n"), broken.clone()),
            (chunked("1;\r\n"), broken.clone()),
            (chunked("1;x=\"y\r\n"), broken.clone()),
            (chunked("1;x y\r\n"), broken.clone()),
            (chunked("1 ; x\t= \"\\\"y\" ;z\r\na\r\n0\r\n\r\n"), put_together("a")),
            (chunked("00000000000000001\r\n"), broken.clone()),
            (chunked("1;\0\r\n"), broken.clone()),
            (chunked("1\n"), broken.clone()),
            (chunked("1\rx"), broken.clone()),
            (chunked(&format!("1;{}\r\n", "x".repeat(300))), broken.clone()),
            (chunked("0\r\n x\r\n\r\n"), broken.clone()),
            (chunked("0\r\nx\r\n\r\n"), broken.clone()),
            (chunked("0\r\nx : y\r\n\r\n"), broken.clone()),
            (chunked("0\r\nx: y\n\r\n"), broken.clone()),
            (chunked("0\r\nx: y\r\n z\r\n\r\n"), broken.clone()),
            (chunked("0\r\n\n"), broken),
            (chunked("1\r\na\n0\r\n\r\n"), broken_after("a")),
            (chunked("1\r\nab\r\n"), broken_after("a")),
            (chunked("1\r\na\r\r\n"), broken_after("a")),
            (
                format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(100)),
                refused(Refusal::TargetTooLong),
            ),
            (format!("GET /{}", "x".repeat(700)), refused(Refusal::TargetTooLong)),
            // The last byte of the version lies behind the limit.
            (format!("GET /{} HTTP/2.0", "x".repeat(587)), refused(Refusal::TargetTooLong)),
            (
                format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(700)),
                refused(Refusal::HeadTooLarge),
            ),
            (many, refused(Refusal::HeadTooLarge)),
            (String::from("GET / HTTP/2.0\r\n\r\n"), refused(Refusal::Version)),
            (String::from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), refused(Refusal::Version)),
            (String::from("GET / HTTP/x.0\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1,1\r\n\r\n"), bad()),
            (String::from("GET /\r\n\r\n"), bad()),
            (String::from("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), bad()),
            (String::from("GET /  HTTP/1.1\r\nHost: a\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1 \r\nHost: a\r\n\r\n"), bad()),
            (String::from(" GET / HTTP/1.1\r\nHost: a\r\n\r\n"), bad()),
            (String::from("G\u{e9}T / HTTP/1.1\r\nHost: a\r\n\r\n"), bad()),
            (get("/\u{e9}"), bad()),
            (get("/#x"), bad()),
            (get("x"), bad()),
            (get("*"), bad()),
            (get("http:///x"), bad()),
            (get("ftp://a/x"), bad()),
            (String::from("GET / HTTP/1.1\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\r\nHost: a\r\n X: b\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\r\nHost: a\r\nX: b\x0bc\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\r\nHost: a\r\nX: b\x7fc\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\nHost: a\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\r\nHost: a\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\r\nHost: a\r\n\n"), bad()),
            (String::from("GET / HTTP/1.1\r\nX: a\nHost: a\r\n\r\n"), bad()),
            (String::from("GET / HTTP/1.1\r\rHost: a\r\n\r\n"), bad()),
            (String::from("\n") + &get("/"), bad()),
            (String::from("\r\r\n") + &get("/"), bad()),
            (post("Content-Length: 3\r\nContent-Length: 3", "abc"), bad()),
            (post("Content-Length: 3, 3", "abc"), bad()),
            (post("Content-Length: +3", "abc"), bad()),
            (post("Content-Length: 3.0", "abc"), bad()),
            (post("Content-Length: ", "abc"), bad()),
            (post("Content-Length: 18446744073709551616", "abc"), bad()),
            (post("Content-Length: 3\r\nTransfer-Encoding: chunked", "0\r\n\r\n"), bad()),
            (post("Transfer-Encoding: chunked\r\nContent-Length: 3", "0\r\n\r\n"), bad()),
            (
                post("Transfer-Encoding: gzip, chunked", "0\r\n\r\n"),
                refused(Refusal::NotImplemented),
            ),
            (post("Transfer-Encoding: gzip", "0\r\n\r\n"), bad()),
            (get("/").replace("1.1", "1.2"), plain("/")),
            (get("/a").replace("1.1", "1.9") + &get("/b"), [plain("/a"), plain("/b")].concat()),
            (get("/\\"), bad()),
            (get("/?<"), bad()),
            (get("http://a:b/"), bad()),
            (get("/").replace(": a", ": "), bad()),
            (get("/").replace(": a", ": a:65536"), bad()),
            (post("Transfer-Encoding: chunked, identity", "0\r\n\r\n"), bad()),
            (post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "0\r\n\r\n"), bad()),
            (post("Transfer-Encoding: \"chunked\"", "0\r\n\r\n"), bad()),
            (post("Transfer-Encoding:", "0\r\n\r\n"), bad()),
            (post("Expect: 200-ok", ""), refused(Refusal::Expectation)),
            (String::from("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), bad()),
        ]
    }

    #[test]
    fn every_vector_is_seen_alike_wherever_it_is_cut() {
        for (bytes, expected) in vectors() {
            let bytes = bytes.as_bytes();
            let name = bytes.escape_ascii();
            assert_eq!(Reader::read(LIMITS, [bytes]), expected, "{name}");
            for at in 0..=bytes.len() {
                let (front, back) = bytes.split_at(at);
                assert_eq!(Reader::read(LIMITS, [front, back]), expected, "{name} cut at {at}");
            }
            assert_eq!(Reader::read(LIMITS, bytes.chunks(1)), expected, "{name} byte by byte");
        }
    }

    /// The forms of a target, and what persists.
    #[test]
    fn heads_say_what_they_say() {
        let seen = |bytes: &str| match Reader::read(LIMITS, [bytes.as_bytes()]).swap_remove(0) {
            Seen::Request { path, query, persists, .. } => (path, query, persists),
            other => panic!("{bytes:?}: {other:?}"),
        };
        let path = |target: &str, method: &str| {
            let (path, query, _) = seen(&format!("{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            (path, query)
        };
        assert_eq!(path("http://a.b:1/c?d", "GET"), ("/c".into(), Some("d".into())));
        assert_eq!(path("HTTPS://a", "GET"), ("/".into(), None));
        assert_eq!(path("http://a?d", "GET"), ("/".into(), Some("d".into())));
        assert_eq!(path("*", "OPTIONS"), ("*".into(), None));
        assert_eq!(path("http://a:80", "OPTIONS"), ("*".into(), None));
        assert_eq!(path("http://a/", "OPTIONS"), ("/".into(), None));
        assert_eq!(path("http://a?", "OPTIONS"), ("/".into(), Some("".into())));
        assert_eq!(path("a:443", "CONNECT"), ("a:443".into(), None));
        let persists = |version: &str, connection: &str| {
            let (.., persists) = seen(&format!(
                "GET / HTTP/{version}\r\nHost: a\r\nConnection: {connection}\r\n\r\n"
            ));
            persists
        };
        assert!(
            persists("1.1", "x") && persists("1.1", "keep-alive") && !persists("1.1", "x, Close")
        );
        assert!(
            !persists("1.0", "x") && persists("1.0", "Keep-Alive") && !persists("1.0", "close")
        );
        assert!(!persists("1.0", "close, keep-alive"));
    }

    /// CONNECT names a host and a port, and nothing else does.
    #[test]
    fn only_an_authority_is_connected_to() {
        let seen = |method: &str, target: &str| {
            let bytes = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            Reader::read(LIMITS, [bytes.as_bytes()]).swap_remove(0)
        };
        let good = ["a:1", "a.b-c:65535", "127.0.0.1:080", "[::1]:443", "%41:1", "a:00443"];
        for target in good {
            match seen("CONNECT", target) {
                Seen::Request { path, query, .. } => assert_eq!((&*path, query), (target, None)),
                other => panic!("{target}: {other:?}"),
            }
            assert_eq!(seen("GET", target), Seen::Refused(Refusal::BadRequest), "{target}");
        }
        for target in [
            "/",
            "/a:1",
            "*",
            "a",
            "a:",
            ":1",
            "a:0",
            "a:65536",
            "a:+1",
            "a:1/",
            "a:1?b",
            "a:1#b",
            "a:b",
            "a@b:1",
            "a:b:1",
            "::1:1",
            "[::1]",
            "[::1]:",
            "[a]:1",
            "[]:1",
            "[::1]a:1",
            "a,b:1",
            "http://a:1",
            "http://a:1/",
            "a:18446744073709551617",
        ] {
            assert_eq!(seen("CONNECT", target), Seen::Refused(Refusal::BadRequest), "{target}");
        }
    }

    /// Goal: a head that follows another one with the same fields is seen as if it had come alone.
    /// Method: each pair of first lines, good and bad, with each of a few blocks of fields, in one
    /// piece and in two.
    #[test]
    fn heads_with_the_same_fields_are_seen_as_they_are_alone() {
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(100));
        let lines = [
            "GET / HTTP/1.1\r\n",
            "GET / HTTP/1.0\r\n",
            "HEAD /a?b HTTP/1.1\r\n",
            "GET http://a/b?c HTTP/1.1\r\n",
            "OPTIONS * HTTP/1.1\r\n",
            "OPTIONS http://a HTTP/1.1\r\n",
            "CONNECT a:1 HTTP/1.1\r\n",
            "CONNECT /a HTTP/1.1\r\n",
            "GET * HTTP/1.1\r\n",
            "GET /#a HTTP/1.1\r\n",
            "GET /?#a HTTP/1.1\r\n",
            "GET / HTTP/1.1\n",
            // As long as one that ends with CR and LF.
            "GET / HTTP/1.1\nX",
            "GET / HTTP/1.1\n\r",
            "\nGET / HTTP/1.1\n",
            "GET / HTTP/1.1\r",
            "GET / HTTP/1.1 \r\n",
            "GET  / HTTP/1.1\r\n",
            "GET / HTTP/1.2\r\n",
            "GET / HTTP/2.0\r\n",
            "GET / HTTP/1.",
            "GET /\r\n",
            "GET / HTTP/1.1\r\nX: y\r\n",
            // As long as those two lines.
            "GET /123456 HTTP/1.1\r\n",
            " / HTTP/1.1\r\n",
            "\r\n",
            "\r\n\r\nGET / HTTP/1.1\r\n",
            "",
            &long,
        ];
        let blocks = [
            "Host: a\r\n\r\n",
            "\r\n",
            "Host: a\r\nContent-Length: 1\r\n\r\nx",
            "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            "Host: a\r\nConnection: close\r\n\r\n",
            "Connection: keep-alive\r\nExpect: 200-ok\r\n\r\n",
            "Host: a\r\nHost: a\r\n\r\n",
        ];
        let mut followed = 0;
        for (first, second, block) in lines
            .iter()
            .flat_map(|first| lines.iter().map(move |second| (first, second)))
            .flat_map(|(first, second)| blocks.iter().map(move |block| (first, second, block)))
        {
            let one = format!("{first}{block}");
            let both = format!("{one}{second}{block}");
            let mut expected = Reader::new(LIMITS);
            // The second one is read by itself, from where the first one ended.
            expected.feed(one.as_bytes());
            let whole = expected.left.is_empty() && expected.body.is_none();
            followed += usize::from(whole && expected.seen.last() == Some(&Seen::End));
            expected.feed(&both.as_bytes()[one.len()..]);
            let seen = Reader::read(LIMITS, [both.as_bytes()]);
            assert_eq!(seen, expected.seen, "{both:?}");
        }
        assert!(followed > 100, "{followed} pairs have a second request");
    }

    fn name() -> impl Strategy<Value = String> {
        "[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,8}".prop_map(|name| format!("X-{name}"))
    }

    /// A request, and what must be seen of it.
    fn any_request() -> impl Strategy<Value = (Vec<u8>, Vec<Seen>)> {
        let fields = proptest::collection::vec((name(), "[!-~]([ -~]{0,10}[!-~])?"), 0..5);
        let body = proptest::collection::vec(any::<u8>(), 0..60);
        let cuts = proptest::option::of(1usize..20);
        ("[A-Z]{1,6}", "/[a-z0-9/%.]{0,20}(\\?[a-z=&]{0,9})?", fields, body, cuts).prop_map(
            |(method, target, fields, body, chunk)| {
                let mut bytes = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n").into_bytes();
                let mut all = vec![(String::from("Host"), String::from("a"))];
                all.extend(fields);
                all.push(match chunk {
                    Some(_) => ("Transfer-Encoding".into(), "chunked".into()),
                    None => ("Content-Length".into(), body.len().to_string()),
                });
                for (name, value) in &all[1..] {
                    bytes.extend(format!("{name}: {value}\r\n").into_bytes());
                }
                bytes.extend(b"\r\n");
                match chunk {
                    Some(size) => {
                        for part in body.chunks(size) {
                            bytes.extend(format!("{:X}\r\n", part.len()).into_bytes());
                            bytes.extend(part);
                            bytes.extend(b"\r\n");
                        }
                        bytes.extend(b"0\r\n\r\n");
                    }
                    None => bytes.extend(&body),
                }
                let length = match chunk {
                    Some(_) => Length::Chunked,
                    None => Length::Known(body.len() as u64),
                };
                let all: Vec<_> =
                    all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let mut seen = request(&method, &target, &all, length, "");
                if !body.is_empty() {
                    seen.insert(1, Seen::Body(body));
                }
                (bytes, seen)
            },
        )
    }

    proptest! {
        /// Goal: a pipeline of any requests is seen as it was made, however it comes.
        #[test]
        fn pipelines_do_not_depend_on_cuts(
            requests in proptest::collection::vec((any_request(), 1_usize..4), 1..5),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..9),
        ) {
            // A client often sends one request several times.
            let requests: Vec<_> = requests
                .into_iter()
                .flat_map(|(request, times)| core::iter::repeat_n(request, times))
                .collect();
            let bytes: Vec<u8> = requests.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
            let expected: Vec<Seen> = requests.into_iter().flat_map(|(_, seen)| seen).collect();
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            ends.sort_unstable();
            ends.push(bytes.len());
            let mut from = 0;
            let pieces: Vec<&[u8]> = ends
                .into_iter()
                .map(|end| &bytes[core::mem::replace(&mut from, end)..end])
                .collect();
            prop_assert_eq!(Reader::read(LIMITS, pieces), expected);
        }

        /// Goal: bytes of any kind neither panic nor depend on cuts. Method: those that often occur.
        #[test]
        fn garbage_does_not_depend_on_cuts(
            size in any::<u8>(),
            parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..25),
        ) {
            let bytes = [vec![size], parts.concat().into_bytes()].concat();
            fuzzing::requests(&bytes);
            fuzzing::chunks(&bytes);
        }
    }

    const PARTS: &[&str] = &[
        "GET / HTTP/1.1\r\n",
        "POST /a?b HTTP/1.1\r\n",
        "HTTP/1.0",
        "HTTP/2",
        "Host: a\r\n",
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Connection: close\r\n",
        "\r\n",
        "\r",
        "\n",
        " ",
        ":",
        ";",
        "5\r\nabcde\r\n",
        "0\r\n",
        "a",
        "\0",
        "\u{ff}",
        "ffffffffffffffff",
    ];
}
