//! The head of an answer: put together without formatting machinery.
//!
//! Most answers of a server begin alike: the same status, the same framing, the same second. So each
//! thread keeps the last head that it has made, and writes anew only what differs.

use super::head::Media;
use crate::sys::clock;
use core::cell::RefCell;
use core::time::Duration;
use std::io::Write;
use std::time::UNIX_EPOCH;

/// Room for the longest head that [`Lines`] ask for.
const ROOM: usize = 192;

/// A line of a date. It has one length, until the year 9999.
const DATE: &[u8; 37] = b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

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

/// The lines of a head that the library writes, besides the date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lines {
    pub(super) status: u16,
    pub(super) framing: Framing,
    pub(super) persistence: Persistence,
    /// `Content-Type: text/plain; charset=utf-8`
    pub(super) is_text: bool,
}

/// A head of these lines, for those of the handler to follow.
pub(super) struct AnswerHead<'a>(&'a [u8]);

impl<'a> AnswerHead<'a> {
    /// With the empty line: nothing follows.
    #[inline]
    pub(super) fn whole(&self) -> &'a [u8] {
        self.0
    }

    /// Without the empty line.
    #[inline]
    pub(super) fn open(&self) -> &'a [u8] {
        &self.0[..self.0.len() - END.len()]
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// What ends a line, and, as a line of its own, a head.
const END: &[u8] = b"\r\n";

thread_local! {
    static LAST: RefCell<Kept> = const { RefCell::new(Kept::nothing()) };
}

/// Calls `then` with the head of these lines, as of now.
#[inline]
pub(super) fn with_head<R>(lines: Lines, then: impl FnOnce(AnswerHead<'_>) -> R) -> R {
    // Not `with`, which is not inlined.
    let answered = LAST.try_with(|last| match last.try_borrow_mut() {
        Ok(mut kept) => then(kept.head(lines)),
        // A filter of the connection below answers on another one.
        Err(_) => with_another_head(lines, then),
    });
    answered.expect("there is nothing to be dropped when a thread ends")
}

#[cold]
fn with_another_head<R>(lines: Lines, then: impl FnOnce(AnswerHead<'_>) -> R) -> R {
    then(Kept::nothing().head(lines))
}

/// A head, and what it was made of.
struct Kept {
    /// When the second of its date is over, as [`clock::soon`] tells it. The clock of the system may have been
    /// set meanwhile, which is seen then.
    until: u64,
    lines: Lines,
    date: [u8; DATE.len()],
    bytes: [u8; ROOM],
    len: usize,
}

impl Kept {
    const fn nothing() -> Self {
        let lines = Lines {
            status: 0,
            framing: Framing::None,
            persistence: Persistence::Implied,
            is_text: false,
        };
        Self { until: 0, lines, date: *DATE, bytes: [0; ROOM], len: 0 }
    }

    #[inline]
    fn head(&mut self, lines: Lines) -> AnswerHead<'_> {
        let now = clock::soon_for_all();
        if now >= self.until {
            let unix = clock::unix();
            let left = SECOND - Duration::from_nanos(unix.subsec_nanos().into());
            self.begin_second(unix.as_secs(), now + left.as_nanos() as u64);
        }
        if self.lines != lines {
            self.make(lines);
        }
        AnswerHead(&self.bytes[..self.len])
    }

    #[cold]
    fn begin_second(&mut self, second: u64, until: u64) {
        let time = UNIX_EPOCH.checked_add(Duration::from_secs(second)).unwrap_or(UNIX_EPOCH);
        let date = httpdate::HttpDate::from(clock::with_a_form(time));
        let _ = write!(&mut self.date[..], "Date: {date}\r\n");
        self.until = until;
        // No head has this status: whatever is asked for is made anew.
        self.lines.status = 0;
    }

    fn make(&mut self, lines: Lines) {
        let Lines { status, framing, persistence, is_text } = lines;
        self.len = 0;
        self.push_status(status);
        let date = self.date;
        self.push(&date);
        match framing {
            Framing::Length(length) => {
                self.push(b"Content-Length: ");
                self.push(decimal_line(length, &mut [0; 22]));
            }
            Framing::Chunked => self.push(b"Transfer-Encoding: chunked\r\n"),
            Framing::None | Framing::Close => {}
        }
        match persistence {
            Persistence::Implied => {}
            Persistence::Told => self.push(b"Connection: keep-alive\r\n"),
            Persistence::Close => self.push(b"Connection: close\r\n"),
            Persistence::Upgrade => self.push(b"Connection: upgrade\r\n"),
        }
        if is_text {
            self.push(b"Content-Type: text/plain; charset=utf-8\r\n");
        }
        self.push(END);
        self.lines = lines;
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

/// What a peer is told of an error, and the media type of that.
#[cold]
pub(super) fn error_page(status: u16, media: Media) -> (&'static str, String) {
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
        with_head(Lines { status, framing, persistence, is_text }, |head| {
            assert_eq!([head.open(), b"\r\n"].concat(), head.whole());
            let text = std::str::from_utf8(head.whole()).unwrap();
            let (before, behind) = text.split_once("Date: ").unwrap();
            assert!(httpdate::parse_http_date(&behind[..29]).is_ok(), "{text}");
            format!("{before}{}", behind[29..].strip_prefix("\r\n").unwrap())
        })
    }

    #[test]
    fn heads_are_put_together() {
        let plain = head(200, Framing::Length(64), Persistence::Implied, false);
        assert_eq!(plain, "HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n");
        let none = head(204, Framing::None, Persistence::Close, false);
        assert_eq!(none, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        let odd = head(299, Framing::Chunked, Persistence::Told, false);
        assert_eq!(
            odd,
            "HTTP/1.1 299 \r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n"
        );
        let empty = head(200, Framing::Length(0), Persistence::Implied, true);
        assert!(
            empty.ends_with("Content-Length: 0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n")
        );
    }

    /// Goal: a head does not depend on the one before it. Method: every pair of a few that differ in
    /// one thing or in many.
    #[test]
    fn a_head_that_was_kept_serves_only_its_like() {
        let like = (200, Framing::Length(64), Persistence::Implied, false);
        let all = [
            like,
            (404, like.1, like.2, like.3),
            (like.0, Framing::Length(65), like.2, like.3),
            (like.0, Framing::Chunked, like.2, like.3),
            (like.0, like.1, Persistence::Close, like.3),
            (like.0, like.1, like.2, true),
            (304, Framing::None, Persistence::Told, false),
        ];
        let of =
            |(status, framing, persistence, is_text)| head(status, framing, persistence, is_text);
        // Each made with nothing kept.
        let fresh = all.map(|lines| std::thread::scope(|s| s.spawn(|| of(lines)).join().unwrap()));
        for (first, second) in (0..all.len()).flat_map(|a| (0..all.len()).map(move |b| (a, b))) {
            assert_eq!(of(all[first]), fresh[first]);
            assert_eq!(of(all[second]), fresh[second], "after {:?}", all[first]);
        }
    }

    /// Goal: the date is of the second in which the head is asked for. Method: a kept head that was
    /// made long ago.
    #[test]
    fn a_head_that_was_kept_gets_a_new_date() {
        let lines = Lines {
            status: 200,
            framing: Framing::Length(1),
            persistence: Persistence::Implied,
            is_text: false,
        };
        let mut kept = Kept::nothing();
        let now = kept.head(lines).whole().to_vec();
        kept.begin_second(784_111_777, 0);
        kept.make(lines);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        assert!(text(&kept.bytes).contains("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
        let year = |head: &[u8]| text(head).split("Date: ").nth(1).unwrap()[12..16].to_owned();
        assert_eq!(year(kept.head(lines).whole()), year(&now));
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
            let mut kept = Kept::nothing();
            kept.begin_second(second, 0);
            assert_eq!(kept.date, format!("Date: {date}\r\n").as_bytes());
        }
    }

    #[test]
    fn the_longest_head_has_room() {
        for status in 200..=599 {
            head(status, Framing::Length(u64::MAX), Persistence::Told, true);
        }
    }

    /// Goal: heads may be asked for while one is in use.
    #[test]
    fn one_head_may_be_made_beside_another() {
        let lines = |status| Lines {
            status,
            framing: Framing::None,
            persistence: Persistence::Implied,
            is_text: false,
        };
        with_head(lines(204), |outer| {
            let inner = with_head(lines(304), |inner| inner.whole().to_vec());
            assert!(inner.starts_with(b"HTTP/1.1 304 Not Modified\r\n"));
            assert!(outer.whole().starts_with(b"HTTP/1.1 204 No Content\r\n"));
        });
    }

    #[test]
    fn chunks_tell_their_size() {
        assert_eq!(chunk_line(0xabc, &mut [0; 18]), b"abc\r\n");
        assert_eq!(chunk_line(usize::MAX, &mut [0; 18]), b"ffffffffffffffff\r\n");
    }
}
