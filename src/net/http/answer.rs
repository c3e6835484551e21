//! The head of an answer: put together on the stack, without formatting machinery.

use super::head::Refusal;
use crate::sys::clock;
use core::cell::Cell;
use core::time::Duration;
use std::io::Write;
use std::time::UNIX_EPOCH;

/// Room for the longest head that [`AnswerHead::new`] and a content type make.
const ROOM: usize = 192;

/// How most answers begin, with this second's date in place of this one.
const BEGIN: &[u8; 70] =
    b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: ";

/// Where the parts of it end: the status line, and the date's.
const STATUS_END: usize = 17;
const DATE_END: usize = 54;

thread_local! {
    static SECOND: Cell<u64> = const { Cell::new(u64::MAX) };
    /// The beginning as of that second.
    static TEMPLATE: Cell<[u8; ROOM]> = const { Cell::new([0; ROOM]) };
}

/// How an answer begins in this second, in a buffer of its own.
#[inline]
fn template() -> [u8; ROOM] {
    let second = clock::unix_seconds();
    if SECOND.get() == second { TEMPLATE.get() } else { new_template(second) }
}

#[cold]
fn new_template(second: u64) -> [u8; ROOM] {
    let date = httpdate::HttpDate::from(UNIX_EPOCH + Duration::from_secs(second));
    let mut template = [0; ROOM];
    template[..BEGIN.len()].copy_from_slice(BEGIN);
    // A date has one length, until the year 9999.
    let _ = write!(&mut template[STATUS_END..DATE_END], "Date: {date}\r\n");
    TEMPLATE.set(template);
    SECOND.set(second);
    template
}

/// How the body's end is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Framing {
    /// There is no body, and none is announced.
    None,
    Length(u64),
    Chunked,
    /// By the connection's end.
    Close,
}

/// What the head says about the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Persistence {
    /// Nothing: HTTP/1.1 goes on.
    Implied,
    /// HTTP/1.0 goes on if it is told.
    Told,
    Close,
    Upgrade,
}

/// The lines of a head that the library writes; those of the handler and the empty line follow.
pub(super) struct AnswerHead {
    bytes: [u8; ROOM],
    len: usize,
}

impl AnswerHead {
    #[inline]
    pub(super) fn new(status: u16, framing: Framing, persistence: Persistence) -> Self {
        let mut head = Self { bytes: template(), len: DATE_END };
        if status != 200 {
            head.change_status(status);
        }
        match framing {
            Framing::Length(length) => {
                head.push(&BEGIN[DATE_END..]);
                head.push(decimal_line(length, &mut [0; 22]));
            }
            Framing::Chunked => head.push(b"Transfer-Encoding: chunked\r\n"),
            Framing::None | Framing::Close => {}
        }
        match persistence {
            Persistence::Implied => {}
            Persistence::Told => head.push(b"Connection: keep-alive\r\n"),
            Persistence::Close => head.push(b"Connection: close\r\n"),
            Persistence::Upgrade => head.push(b"Connection: upgrade\r\n"),
        }
        head
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// How many bytes more fit: often a small body does.
    #[inline]
    pub(super) fn room(&self) -> usize {
        ROOM - self.len
    }

    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn change_status(&mut self, status: u16) {
        let date: [u8; DATE_END - STATUS_END] =
            core::array::from_fn(|at| self.bytes[STATUS_END + at]);
        self.len = b"HTTP/1.1 ".len();
        self.push(&decimal_line(status.into(), &mut [0; 22])[..3]);
        self.push(b" ");
        self.push(reason(status).as_bytes());
        self.push(b"\r\n");
        self.push(&date);
    }
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
pub(super) fn chunk_line(size: usize, line: &mut [u8; 18]) -> &[u8] {
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

/// What the peer is told in a handler's place, as text.
pub(super) fn refusal_text(refusal: Refusal) -> String {
    let status = refusal.status();
    format!("{status} {}\n", reason(status))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn head(status: u16, framing: Framing, persistence: Persistence) -> String {
        let head = AnswerHead::new(status, framing, persistence);
        let text = std::str::from_utf8(head.bytes()).unwrap();
        let (before, behind) = text.split_once("Date: ").unwrap();
        assert!(httpdate::parse_http_date(&behind[..29]).is_ok(), "{text}");
        format!("{before}{}", behind[29..].strip_prefix("\r\n").unwrap())
    }

    #[test]
    fn heads_are_put_together() {
        let plain = head(200, Framing::Length(64), Persistence::Implied);
        assert_eq!(plain, "HTTP/1.1 200 OK\r\nContent-Length: 64\r\n");
        let none = head(204, Framing::None, Persistence::Close);
        assert_eq!(none, "HTTP/1.1 204 No Content\r\nConnection: close\r\n");
        let odd = head(299, Framing::Chunked, Persistence::Told);
        assert_eq!(
            odd,
            "HTTP/1.1 299 \r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n"
        );
        let empty = head(200, Framing::Length(0), Persistence::Implied);
        assert!(empty.ends_with("Content-Length: 0\r\n"));
    }

    #[test]
    fn the_longest_head_has_room() {
        for status in 200..=599 {
            let mut head = AnswerHead::new(status, Framing::Length(u64::MAX), Persistence::Told);
            head.push(b"Content-Type: text/plain; charset=utf-8\r\n\r\n");
        }
    }

    #[test]
    fn chunks_tell_their_size() {
        assert_eq!(chunk_line(0xabc, &mut [0; 18]), b"abc\r\n");
        assert_eq!(chunk_line(usize::MAX, &mut [0; 18]), b"ffffffffffffffff\r\n");
    }
}
