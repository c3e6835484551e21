//! Finds requests in what a client has sent: arrays of bulk strings, or lines of words.
//!
//! Arguments are not copied: a request is a list of places in the bytes that the connection shows.
//! What is incomplete is shown again with more behind it, so the parser remembers how far it has
//! come, and how much must be there before another look is worth it. However a request arrives, each
//! of its bytes is looked at once.

use crate::number;
use std::ops::Index;

/// Bytes of the longest argument.
const MAX_ARGUMENT: i64 = 512 << 20;
/// Arguments of one request.
const MAX_ARGUMENTS: i64 = i32::MAX as i64;
/// Bytes of the longest line: an inline request, or a number.
const MAX_LINE: usize = 64 << 10;
/// Room for so many arguments is kept from one request to the next.
const KEPT: usize = 16;

/// Where an argument is. Requests end before 2^32: the connection does not hold that much.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
}

/// A command and its arguments; the command's name is the first.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Request<'a> {
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    #[inline]
    pub fn get(&self, index: usize) -> &'a [u8] {
        let Span { start, end } = self.spans[index];
        &self.bytes[start as usize..end as usize]
    }

    /// All arguments from this one on.
    pub fn from(&self, index: usize) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        let bytes = self.bytes;
        let spans = self.spans.get(index..).unwrap_or_default();
        spans.iter().map(|span| &bytes[span.start as usize..span.end as usize])
    }
}

impl Index<usize> for Request<'_> {
    type Output = [u8];

    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        self.get(index)
    }
}

/// What is at the front of the bytes.
pub enum Parsed {
    /// A request that takes up so many bytes: [`Parser::request`].
    Request(usize),
    /// So many bytes that ask for nothing: an empty line or array.
    Nothing(usize),
    /// A part of a request, or nothing at all.
    Partial,
    /// Something else. The connection is to be closed: where the next request begins is unknown.
    Wrong(Wrong),
}

/// How a client breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Count,
    Length,
    NoLength(u8),
    LongCount,
    LongLength,
    LongLine,
    Quotes,
}

impl Wrong {
    pub fn message(self) -> Vec<u8> {
        let what: &[u8] = match self {
            Self::Count => b"invalid multibulk length",
            Self::Length => b"invalid bulk length",
            Self::NoLength(byte) => return [b"expected '$', got '", &[byte][..], b"'"].concat(),
            Self::LongCount => b"too big mbulk count string",
            Self::LongLength => b"too big bulk count string",
            Self::LongLine => b"too big inline request",
            Self::Quotes => b"unbalanced quotes in request",
        };
        what.into()
    }
}

/// A number on a line of its own, after one byte that says what it counts.
enum Header {
    Number { value: i64, end: usize },
    Malformed,
    Partial,
    TooLong,
}

/// The parser of one connection.
#[derive(Default)]
pub struct Parser {
    /// Arguments that are complete.
    spans: Vec<Span>,
    /// How many are still to come.
    missing: usize,
    /// Where the next of them begins; 0 if even their number is not known.
    at: usize,
    /// No look before so many bytes are there.
    needed: usize,
    /// An inline request of which so much holds no end.
    searched: usize,
    /// The words of an inline request.
    words: Vec<u8>,
    /// The spans are places in the words.
    is_inline: bool,
}

impl Parser {
    /// Looks at the front of `bytes`. After [`Parsed::Partial`] they must begin with the same bytes
    /// next time; otherwise with those that follow.
    #[inline]
    pub fn next(&mut self, bytes: &[u8]) -> Parsed {
        if bytes.len() < self.needed {
            return Parsed::Partial;
        }
        if self.at > 0 {
            return self.arguments(bytes);
        }
        match bytes.first() {
            None => Parsed::Partial,
            Some(b'*') => self.array(bytes),
            Some(_) => self.line(bytes),
        }
    }

    /// The request that [`next`](Self::next) has found at the front of `bytes`.
    #[inline]
    pub fn request<'a>(&'a self, bytes: &'a [u8]) -> Request<'a> {
        let bytes = if self.is_inline { &self.words } else { bytes };
        Request { bytes, spans: &self.spans }
    }

    /// To be called when all that is complete was carried out: an idle connection does not hold what
    /// its longest request needed.
    #[inline]
    pub fn rest(&mut self) {
        if self.at == 0 && self.spans.capacity() > KEPT {
            (self.spans, self.words) = (Vec::new(), Vec::new());
        } else if self.words.capacity() > KEPT * KEPT {
            self.words = Vec::new();
        }
    }

    #[inline]
    fn array(&mut self, bytes: &[u8]) -> Parsed {
        match header(bytes, 0) {
            Header::Number { value: ..=0, end } => Parsed::Nothing(end),
            Header::Number { value, end } if value <= MAX_ARGUMENTS => {
                self.spans.clear();
                (self.missing, self.at) = (value as usize, end);
                self.arguments(bytes)
            }
            Header::Number { .. } | Header::Malformed => Parsed::Wrong(Wrong::Count),
            Header::Partial => Parsed::Partial,
            Header::TooLong => Parsed::Wrong(Wrong::LongCount),
        }
    }

    #[inline]
    fn arguments(&mut self, bytes: &[u8]) -> Parsed {
        let mut at = self.at;
        while self.missing > 0 {
            let Span { start, end } = match argument(bytes, at) {
                Argument::Whole(span) => span,
                Argument::Part { needed } => {
                    (self.at, self.needed) = (at, needed);
                    return Parsed::Partial;
                }
                Argument::Wrong(wrong) => return Parsed::Wrong(wrong),
            };
            self.spans.push(Span { start, end });
            self.missing -= 1;
            at = end as usize + 2;
        }
        (self.at, self.needed) = (0, 0);
        self.is_inline = false;
        Parsed::Request(at)
    }

    #[cold]
    fn line(&mut self, bytes: &[u8]) -> Parsed {
        let from = std::mem::take(&mut self.searched);
        let Some(end) = find(bytes, from, b'\n').filter(|end| *end <= MAX_LINE) else {
            self.searched = bytes.len();
            return if bytes.len() > MAX_LINE {
                Parsed::Wrong(Wrong::LongLine)
            } else {
                Parsed::Partial
            };
        };
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        self.spans.clear();
        self.words.clear();
        if split(line, &mut self.words, &mut self.spans).is_none() {
            return Parsed::Wrong(Wrong::Quotes);
        }
        if self.spans.is_empty() {
            return Parsed::Nothing(end + 1);
        }
        self.is_inline = true;
        Parsed::Request(end + 1)
    }
}

/// What is found where an argument begins.
enum Argument {
    Whole(Span),
    /// It is not all there; there is nothing new to be found before so many bytes are.
    Part {
        needed: usize,
    },
    Wrong(Wrong),
}

#[inline]
fn argument(bytes: &[u8], at: usize) -> Argument {
    let (length, start) = match short_length(bytes, at) {
        Some(found) => found,
        None => match long_length(bytes, at) {
            Ok(found) => found,
            Err(otherwise) => return otherwise,
        },
    };
    let end = start + length;
    if bytes.len() < end + 2 {
        return Argument::Part { needed: end + 2 };
    }
    Argument::Whole(Span { start: start as u32, end: end as u32 })
}

/// A length of one or two digits, as most are, and what is behind its line.
#[inline]
fn short_length(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let word = u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
    let digit = |place: u32| (word >> (8 * place) & 0xFF).wrapping_sub(u32::from(b'0'));
    if word & 0xFFFF_00FF == u32::from_le_bytes(*b"$\0\r\n") && digit(1) < 10 {
        return Some((digit(1) as usize, at + 4));
    }
    let is_plain = digit(1).wrapping_sub(1) < 9 && digit(2) < 10;
    if word & 0xFF00_00FF == u32::from_le_bytes(*b"$\0\0\r") && is_plain {
        return Some(((digit(1) * 10 + digit(2)) as usize, at + 5));
    }
    None
}

#[cold]
fn long_length(bytes: &[u8], at: usize) -> Result<(usize, usize), Argument> {
    Err(match header(bytes, at) {
        Header::Partial => Argument::Part { needed: bytes.len() + 1 },
        Header::TooLong => Argument::Wrong(Wrong::LongLength),
        _ if bytes[at] != b'$' => Argument::Wrong(Wrong::NoLength(bytes[at])),
        Header::Number { value: value @ 0..=MAX_ARGUMENT, end } => {
            return Ok((value as usize, end));
        }
        Header::Number { .. } | Header::Malformed => Argument::Wrong(Wrong::Length),
    })
}

/// Reads the number behind the byte at `at`, up to the CR and the byte after it.
#[inline]
fn header(bytes: &[u8], at: usize) -> Header {
    // Most requests have few arguments.
    match bytes.get(at..).unwrap_or_default() {
        [_, digit @ b'0'..=b'9', b'\r', _, ..] => {
            Header::Number { value: i64::from(digit - b'0'), end: at + 4 }
        }
        _ => long_header(bytes, at),
    }
}

#[cold]
fn long_header(bytes: &[u8], at: usize) -> Header {
    let Some(end) = find(bytes, at, b'\r').filter(|end| end - at <= MAX_LINE) else {
        return if bytes.len() - at > MAX_LINE { Header::TooLong } else { Header::Partial };
    };
    if end + 1 == bytes.len() {
        return Header::Partial;
    }
    match bytes.get(at + 1..end).and_then(number::parse) {
        Some(value) => Header::Number { value, end: end + 2 },
        None => Header::Malformed,
    }
}

fn find(bytes: &[u8], from: usize, byte: u8) -> Option<usize> {
    memchr::memchr(byte, bytes.get(from..)?).map(|at| from + at)
}

// --- words of a line -------------------------------------------------------------------------------

/// Splits a line at blanks. Words may be quoted, doubly with escapes, singly without. None: a quote
/// is not closed, or something follows it.
fn split(line: &[u8], words: &mut Vec<u8>, spans: &mut Vec<Span>) -> Option<()> {
    // As in Redis, nothing comes after a zero byte.
    let mut rest = line.split(|byte| *byte == 0).next()?;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(());
        }
        let start = words.len() as u32;
        rest = word(rest, words)?;
        spans.push(Span { start, end: words.len() as u32 });
    }
}

/// Appends the first word; answers what follows it.
fn word<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] | [b' ' | b'\t' | b'\r', ..] => return Some(rest),
            [b'"', quoted @ ..] => return closed(double_quoted(quoted, word)?),
            [b'\'', quoted @ ..] => return closed(single_quoted(quoted, word)?),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

/// A closing quote is followed by a blank or the end.
fn closed(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(u8::is_ascii_whitespace).then_some(rest)
}

fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'"', after @ ..] => return Some(after),
            [b'\\', escaped @ ..] if !escaped.is_empty() => {
                let (byte, after) = unescape(escaped);
                word.push(byte);
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'\'', after @ ..] => return Some(after),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        };
    }
}

/// The byte that an escape stands for, and what follows it.
fn unescape(escaped: &[u8]) -> (u8, &[u8]) {
    if let [b'x', high, low, after @ ..] = escaped
        && let (Some(high), Some(low)) = (hex(*high), hex(*low))
    {
        return (high << 4 | low, after);
    }
    let byte = match escaped[0] {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    };
    (byte, &escaped[1..])
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}
