//! The head of an answer: put together without formatting machinery. Each thread keeps the line of its date for a second.

use super::refusal::Media;
use crate::sys::clock;
use core::cell::Cell;
use core::time::Duration;
use std::io::Write;
use std::time::UNIX_EPOCH;

/// Room for the longest head that [`Lines`] ask for.
const ROOM: usize = 192;

/// A line of a date. It has one length, until the year 9999.
const DATE: &[u8; 37] = b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

/// How the head announces the body's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Framing {
    /// There is no body, and none is announced.
    None,
    Length(u64),
    Chunked,
    /// By the connection's end.
    Close,
}

/// What the head says about the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Persistence {
    /// Nothing: HTTP/1.1 goes on.
    Implied,
    /// HTTP/1.0 goes on if the head says so.
    KeepAlive,
    Close,
    Upgrade,
}

/// The lines of a head that the library writes, besides the date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lines {
    pub(crate) status: u16,
    pub(crate) framing: Framing,
    pub(crate) persistence: Persistence,
    /// `Content-Type: text/plain; charset=utf-8`
    pub(crate) is_text: bool,
}

const SECOND: Duration = Duration::from_secs(1);

/// What ends a line, and, as a line of its own, a head.
const END: &[u8] = b"\r\n";

/// A head of some lines, for those of the handler to follow.
pub(crate) struct AnswerHead {
    bytes: [u8; ROOM],
    len: usize,
}

impl AnswerHead {
    /// With the date of now.
    pub(crate) fn new(lines: Lines) -> Self {
        Self::dated(lines, &date_line())
    }

    fn dated(lines: Lines, date: &[u8]) -> Self {
        let Lines { status, framing, persistence, is_text } = lines;
        let mut head = Self { bytes: [0; ROOM], len: 0 };
        head.push_status(status);
        head.push(date);
        match framing {
            Framing::Length(length) => {
                head.push(b"Content-Length: ");
                head.push(decimal_line(length, &mut [0; 22]));
            }
            Framing::Chunked => head.push(b"Transfer-Encoding: chunked\r\n"),
            Framing::None | Framing::Close => {}
        }
        match persistence {
            Persistence::Implied => {}
            Persistence::KeepAlive => head.push(b"Connection: keep-alive\r\n"),
            Persistence::Close => head.push(b"Connection: close\r\n"),
            Persistence::Upgrade => head.push(b"Connection: upgrade\r\n"),
        }
        if is_text {
            head.push(b"Content-Type: text/plain; charset=utf-8\r\n");
        }
        head.push(END);
        head
    }

    /// With the empty line: nothing follows.
    #[inline]
    pub(crate) fn whole(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Without the empty line.
    #[inline]
    pub(crate) fn open(&self) -> &[u8] {
        &self.bytes[..self.len - END.len()]
    }

    fn push_status(&mut self, status: u16) {
        if status == 200 {
            return self.push(b"HTTP/1.1 200 OK\r\n");
        }
        self.push(b"HTTP/1.1 ");
        self.push(&decimal_line(status.into(), &mut [0; 22])[..3]);
        self.push(b" ");
        self.push(reason(status).as_bytes());
        self.push(END);
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

/// The line of the date that it is now.
fn date_line() -> [u8; DATE.len()] {
    thread_local! {
        /// The line, and when its second is over, by [`clock::soon`]. The clock of the system may
        /// have been set meanwhile, which is seen then.
        static KEPT: Cell<(u64, [u8; DATE.len()])> = const { Cell::new((0, *DATE)) };
    }
    let now = clock::soon();
    let (until, line) = KEPT.get();
    if now < until {
        return line;
    }
    let unix = clock::unix();
    let left = SECOND - Duration::from_nanos(unix.subsec_nanos().into());
    let line = date_line_of(unix.as_secs());
    KEPT.set((now + left.as_nanos() as u64, line));
    line
}

#[cold]
fn date_line_of(second: u64) -> [u8; DATE.len()] {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(second)).unwrap_or(UNIX_EPOCH);
    let date = httpdate::HttpDate::from(clock::with_a_form(time));
    let mut line = *DATE;
    let _ = write!(&mut line[..], "Date: {date}\r\n");
    line
}

/// The digits of a number, and the end of the line.
#[inline]
fn decimal_line(mut number: u64, line: &mut [u8; 22]) -> &[u8] {
    let mut at = line.len() - 2;
    line[at..].copy_from_slice(b"\r\n");
    loop {
        at -= 1;
        line[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &line[at..];
        }
    }
}

/// The line in front of a chunk: its size in hexadecimal.
pub(crate) fn chunk_line(size: usize, line: &mut [u8; 18]) -> &[u8] {
    let mut at = line.len() - 2;
    line[at..].copy_from_slice(b"\r\n");
    let mut left = size;
    loop {
        at -= 1;
        line[at] = b"0123456789abcdef"[left % 16];
        left /= 16;
        if left == 0 {
            return &line[at..];
        }
    }
}

/// The words behind a status (RFC 9110, 15); none for one that has none there.
fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        511 => "Network Authentication Required",
        _ => "",
    }
}

/// What a peer is sent about an error, and the media type of that.
#[cold]
pub(crate) fn error_page(status: u16, media: Media) -> (&'static str, String) {
    let reason = reason(status);
    match media {
        Media::Text => ("text/plain; charset=utf-8", format!("{status} {reason}\n")),
        Media::Json => ("application/json", problem(status, reason)),
        Media::Problem => ("application/problem+json", problem(status, reason)),
        Media::Html => {
            let title = format!("{status} {reason}");
            let page = format!("<!DOCTYPE html>\n<title>{title}</title>\n<h1>{title}</h1>\n");
            ("text/html; charset=utf-8", page)
        }
    }
}

/// RFC 9457, 3: of the type `about:blank`.
fn problem(status: u16, reason: &str) -> String {
    format!("{{\"title\":\"{reason}\",\"status\":{status}}}\n")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A head without its date.
    fn head(status: u16, framing: Framing, persistence: Persistence, is_text: bool) -> String {
        let head = AnswerHead::new(Lines { status, framing, persistence, is_text });
        assert_eq!([head.open(), b"\r\n"].concat(), head.whole());
        let text = std::str::from_utf8(head.whole()).unwrap();
        let (before, behind) = text.split_once("Date: ").unwrap();
        assert!(httpdate::parse_http_date(&behind[..29]).is_ok(), "{text}");
        format!("{before}{}", behind[29..].strip_prefix("\r\n").unwrap())
    }

    #[test]
    fn heads_are_put_together() {
        let plain = head(200, Framing::Length(64), Persistence::Implied, false);
        assert_eq!(plain, "HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n");
        let none = head(204, Framing::None, Persistence::Close, false);
        assert_eq!(none, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        let odd = head(299, Framing::Chunked, Persistence::KeepAlive, false);
        assert_eq!(
            odd,
            "HTTP/1.1 299 \r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n"
        );
        let empty = head(200, Framing::Length(0), Persistence::Implied, true);
        assert!(
            empty.ends_with("Content-Length: 0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n")
        );
    }

    /// Goal: there is a date whatever the clock says, since it may be set to anything.
    #[test]
    fn a_date_has_a_form_at_any_time() {
        for (second, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (253_402_300_800, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (u64::MAX, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] {
            assert_eq!(date_line_of(second), format!("Date: {date}\r\n").as_bytes());
        }
    }

    #[test]
    fn the_longest_head_has_room() {
        for status in 200..=599 {
            head(status, Framing::Length(u64::MAX), Persistence::KeepAlive, true);
        }
    }

    #[test]
    fn chunks_tell_their_size() {
        assert_eq!(chunk_line(0xabc, &mut [0; 18]), b"abc\r\n");
        assert_eq!(chunk_line(usize::MAX, &mut [0; 18]), b"ffffffffffffffff\r\n");
    }
}
