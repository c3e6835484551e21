//! The head of a request: bytes in, a judgement out.
//!
//! `httparse` finds the parts. What it tolerates and RFC 9112 does not, and how long the body is, is
//! decided here. Two readers of the same bytes that disagree about where a request ends are how
//! requests are smuggled, so whatever could be read in two ways is refused:
//!
//! | smell | |
//! |---|---|
//! | a line that ends with LF alone, a CR alone, an empty line with LF alone | 400 |
//! | white space before the colon or in front of a field (obs-fold) | 400 |
//! | no Host or several in HTTP/1.1, several in HTTP/1.0, one that names no host, as an empty one | 400 |
//! | a byte beyond ASCII, a control, or one of `"#<>\` in the target; its authority, if that names no host | 400 |
//! | several lengths, a length that is not digits alone or does not fit 64 bits | 400 |
//! | CONNECT to anything but a host and a port; those with any other method | 400 |
//! | a length and a transfer coding; codings that do not end with `chunked`, or have it twice; one in HTTP/1.0 | 400 |
//! | other codings before `chunked`, which are not understood | 501 |
//!
//! Square brackets and any of ``^`{|}`` are taken in a target, though RFC 3986 has them in no path and no query:
//! browsers send them as they are (URL Standard, 1.3).
//!
//! The judgement does not depend on how the bytes came: all of them at once, or one at a time.

use super::chunks::{Length, is_token};
use super::refusal::{Media, Refusal};
use core::mem::MaybeUninit;
use httparse::{Header, Status};

/// The most fields that a head may be allowed to have.
pub(crate) const MAX_FIELDS: usize = 256;

/// Where the fields of a head are noted while it is looked at.
pub(crate) struct Scratch<'b> {
    fields: [MaybeUninit<Header<'b>>; MAX_FIELDS],
    /// Those of a version that `httparse` does not know.
    later: Vec<Header<'b>>,
}

/// An empty one.
#[inline]
pub(crate) fn scratch<'b>() -> Scratch<'b> {
    Scratch { fields: [const { MaybeUninit::uninit() }; MAX_FIELDS], later: Vec::new() }
}

/// What bounds a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeadLimits {
    /// All of it, in bytes.
    pub(crate) bytes: usize,
    /// The request-target, in bytes.
    pub(crate) target: usize,
    /// Up to [`MAX_FIELDS`].
    pub(crate) fields: usize,
}

/// A head that may be acted upon.
#[derive(Debug)]
pub(crate) struct Head<'h, 'b> {
    pub(crate) method: &'b str,
    pub(crate) target: &'b str,
    pub(crate) path: &'b str,
    pub(crate) query: Option<&'b str>,
    /// HTTP/1.1, not 1.0. A later minor version is taken for 1.1 (RFC 9110, 2.5).
    pub(crate) is_1_1: bool,
    /// In order, with the white space around their values removed.
    pub(crate) fields: &'h [Header<'b>],
    /// Its own bytes, with the empty line.
    pub(crate) size: usize,
    pub(crate) body: Length,
    /// The peer wants to send more requests.
    pub(crate) persists: bool,
    pub(crate) expects_continue: bool,
    /// Wants another protocol.
    pub(crate) upgrade: Option<&'b str>,
    /// For errors.
    pub(crate) media: Media,
}

impl<'b> Head<'_, 'b> {
    /// The names and the values of its fields.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'b str, &'b [u8])> {
        self.fields.iter().map(|field| (field.name, field.value))
    }

    pub(crate) fn has_body(&self) -> bool {
        self.body != Length::Known(0)
    }

    /// The peer sends its body only after `100 Continue`.
    pub(crate) fn awaits(&self) -> bool {
        self.expects_continue && self.has_body()
    }
}

/// What the bytes are.
#[derive(Debug)]
pub(crate) enum Parsed<'h, 'b> {
    /// More must come.
    Partial,
    Complete(Head<'h, 'b>),
    Refused(Refusal),
}

/// Looks at the bytes of which the first is a request's.
#[inline(always)] // What it finds is long, and would be moved several times.
pub(crate) fn parse<'h, 'b>(
    bytes: &'b [u8],
    limits: &HeadLimits,
    scratch: &'h mut Scratch<'b>,
) -> Parsed<'h, 'b> {
    // What lies behind the limit has no say, or it would matter how much has come.
    let bytes = &bytes[..bytes.len().min(limits.bytes)];
    let skipped = match skip_empty_lines(bytes) {
        Ok(skipped) => skipped,
        Err(refusal) => return Parsed::Refused(refusal),
    };
    let bytes_of_head = &bytes[skipped..];
    let mut request = httparse::Request::new(&mut []);
    let Scratch { fields, later } = scratch;
    let most = limits.fields.min(MAX_FIELDS);
    let fields = &mut fields[..most];
    match request.parse_with_uninit_headers(bytes_of_head, fields) {
        Ok(Status::Complete(size)) => match judge(request, bytes, skipped, size, limits) {
            Ok(head) => Parsed::Complete(head),
            Err(refusal) => Parsed::Refused(refusal),
        },
        Ok(Status::Partial) if bytes.len() < limits.bytes => Parsed::Partial,
        Ok(Status::Partial) => Parsed::Refused(too_large(bytes_of_head)),
        Err(httparse::Error::TooManyHeaders) => Parsed::Refused(Refusal::HeadTooLarge),
        Err(httparse::Error::Version) => {
            later.resize(most, httparse::EMPTY_HEADER);
            match other_version(bytes, skipped, limits, later) {
                Ok(Some(head)) => Parsed::Complete(head),
                Ok(None) if bytes.len() < limits.bytes => Parsed::Partial,
                Ok(None) => Parsed::Refused(too_large(bytes_of_head)),
                Err(refusal) => Parsed::Refused(refusal),
            }
        }
        Err(_) => Parsed::Refused(Refusal::BadRequest),
    }
}

/// Empty lines in front of a request are skipped (RFC 9112, 2.2).
#[inline]
fn skip_empty_lines(bytes: &[u8]) -> Result<usize, Refusal> {
    let mut skipped = 0;
    loop {
        match bytes[skipped..] {
            [b'\r', b'\n', ..] => skipped += 2,
            [b'\r', _, ..] | [b'\n', ..] => return Err(Refusal::BadRequest),
            _ => return Ok(skipped),
        }
    }
}

/// The method and the target that bytes begin with which are no head: empty if they do not, and cut if they are
/// too long.
#[cold]
pub(crate) fn first_words(bytes: &[u8], limit: usize) -> (&str, &str) {
    let bytes = bytes.trim_ascii_start();
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let mut next = |fits: fn(u8) -> bool| {
        let word = words.next().unwrap_or_default();
        let word = if word.iter().all(|byte| fits(*byte)) { word } else { &[] };
        core::str::from_utf8(&word[..word.len().min(limit)]).unwrap_or_default()
    };
    let method = next(is_token);
    (method, if method.is_empty() { "" } else { next(|byte| byte.is_ascii_graphic()) })
}

#[cold]
fn too_large(head: &[u8]) -> Refusal {
    if head.contains(&b'\n') { Refusal::HeadTooLarge } else { Refusal::TargetTooLong }
}

/// A head of a version that `httparse` does not know. Its first line is judged as one of HTTP/1.1 if that is
/// its highest version known here. None: more must come.
#[cold]
fn other_version<'h, 'b>(
    bytes: &'b [u8],
    skipped: usize,
    limits: &HeadLimits,
    fields: &'h mut Vec<Header<'b>>,
) -> Result<Option<Head<'h, 'b>>, Refusal> {
    let head = &bytes[skipped..];
    let mut parts = head.splitn(3, |byte| *byte == b' ');
    let mut next = || parts.next().unwrap_or_default();
    let (method, target, version) = (next(), next(), next());
    let mut fits = version.iter().zip(b"HTTP/9.9");
    if !fits.all(|(byte, like)| byte == like || *like == b'9' && byte.is_ascii_digit()) {
        return Err(Refusal::BadRequest);
    }
    let minor = match *version {
        [_, _, _, _, _, major, _, _, ..] if major != b'1' => return Err(Refusal::Version),
        [_, _, _, _, _, _, _, _, b'\r', b'\n', ..] => 1,
        [_, _, _, _, _, _, _, _, b'\r'] | [_, _, _, _, _, _, _, _] => return Ok(None),
        [_, _, _, _, _, _, _, _, ..] => return Err(Refusal::BadRequest),
        _ => return Ok(None),
    };
    let line = method.len() + target.len() + "  HTTP/1.1\r\n".len();
    let as_known = [&head[..line - "1\r\n".len()], b"1\r\n"].concat();
    // A first line alone is the beginning of a head.
    let judged = httparse::Request::new(&mut []).parse_with_uninit_headers(&as_known, &mut []);
    let texts = (core::str::from_utf8(method), core::str::from_utf8(target));
    let (Ok(Status::Partial), (Ok(method), Ok(target))) = (judged, texts) else {
        return Err(Refusal::BadRequest);
    };
    let size = match httparse::parse_headers(&head[line..], fields) {
        Ok(Status::Complete((size, found))) => {
            let count = found.len();
            fields.truncate(count);
            line + size
        }
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Refusal::HeadTooLarge),
        Err(_) => return Err(Refusal::BadRequest),
    };
    let mut request = httparse::Request::new(fields);
    (request.method, request.path, request.version) = (Some(method), Some(target), Some(minor));
    judge(request, bytes, skipped, size, limits).map(Some)
}

/// The fields that say where the request ends, and what becomes of the connection.
#[derive(Default)]
struct Draft<'b> {
    host: bool,
    length: Option<u64>,
    chunked: bool,
    /// In another way before that.
    coded: bool,
    close: bool,
    keep_alive: bool,
    upgrades: bool,
    expects: bool,
    expects_else: bool,
    protocol: Option<&'b str>,
    accept: Option<&'b [u8]>,
}

/// A request of `size` bytes behind those that were skipped.
#[inline(always)]
fn judge<'h, 'b>(
    request: httparse::Request<'h, 'b>,
    bytes: &'b [u8],
    skipped: usize,
    size: usize,
    limits: &HeadLimits,
) -> Result<Head<'h, 'b>, Refusal> {
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version)
    else {
        return Err(Refusal::BadRequest);
    };
    let (is_1_1, size) = (minor == 1, skipped + size);
    let (bytes, fields) = (&bytes[..size], &*request.headers);
    let mut said = Draft::default();
    for field in fields {
        begins_a_line(bytes, field)?;
        said.note(field)?;
    }
    if !bytes.ends_with(b"\r\n\r\n") {
        return Err(Refusal::BadRequest);
    }
    if target.len() > limits.target {
        return Err(Refusal::TargetTooLong);
    }
    let (path, query) = split_target(method, target)?;
    if is_1_1 && !said.host || said.chunked && (!is_1_1 || said.length.is_some()) {
        return Err(Refusal::BadRequest);
    }
    if said.coded {
        // Without `chunked` behind it, its end cannot be known (RFC 9112, 6.3).
        return Err(if said.chunked { Refusal::NotImplemented } else { Refusal::BadRequest });
    }
    if said.expects_else && is_1_1 {
        return Err(Refusal::Expectation);
    }
    Ok(Head {
        method,
        target,
        path,
        query,
        is_1_1,
        fields,
        size,
        body: if said.chunked { Length::Chunked } else { Length::Known(said.length.unwrap_or(0)) },
        persists: !said.close && (is_1_1 || said.keep_alive),
        expects_continue: said.expects && is_1_1,
        upgrade: said.protocol.filter(|_| said.upgrades && is_1_1),
        media: match said.accept {
            None | Some(b"*/*") => Media::Text,
            Some(accept) => Media::by(accept),
        },
    })
}

/// `httparse` takes a lone LF for the end of a line.
#[inline]
fn begins_a_line(bytes: &[u8], field: &Header<'_>) -> Result<(), Refusal> {
    let before = &bytes[..place(bytes, field)];
    if before.ends_with(b"\r\n") { Ok(()) } else { Err(Refusal::BadRequest) }
}

/// Where in the bytes the field is.
#[inline]
fn place(bytes: &[u8], field: &Header<'_>) -> usize {
    field.name.as_ptr() as usize - bytes.as_ptr() as usize
}

impl<'b> Draft<'b> {
    #[inline]
    fn note(&mut self, field: &Header<'b>) -> Result<(), Refusal> {
        match field.name.len() {
            4 if is(field, b"host") => self.note_host(field.value),
            6 if is(field, b"accept") => {
                self.accept = Some(field.value);
                Ok(())
            }
            6 if is(field, b"expect") => {
                let expects = field.value.eq_ignore_ascii_case(b"100-continue");
                self.expects |= expects;
                self.expects_else |= !expects;
                Ok(())
            }
            7 if is(field, b"upgrade") => {
                self.protocol = core::str::from_utf8(field.value).ok();
                Ok(())
            }
            10 if is(field, b"connection") => {
                self.note_connection(field.value);
                Ok(())
            }
            14 if is(field, b"content-length") => self.note_length(field.value),
            17 if is(field, b"transfer-encoding") => self.note_coding(field.value),
            _ => Ok(()),
        }
    }

    #[inline]
    fn note_host(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let is_plain = value.iter().fold(true, |fits, byte| fits & UNRESERVED[usize::from(*byte)]);
        let names_one = is_plain && !value.is_empty() || is_host(value);
        if core::mem::replace(&mut self.host, true) || !names_one {
            return Err(Refusal::BadRequest);
        }
        Ok(())
    }

    fn note_connection(&mut self, value: &[u8]) {
        for token in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= token.eq_ignore_ascii_case(b"close");
            self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
            self.upgrades |= token.eq_ignore_ascii_case(b"upgrade");
        }
    }

    fn note_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let length = decimal(value).ok_or(Refusal::BadRequest)?;
        match self.length.replace(length) {
            None => Ok(()),
            Some(_) => Err(Refusal::BadRequest),
        }
    }

    fn note_coding(&mut self, value: &[u8]) -> Result<(), Refusal> {
        for coding in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            let name = coding.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            let is_chunked = name.eq_ignore_ascii_case(b"chunked");
            let is_good = match is_chunked {
                true => coding.len() == name.len(),
                false => !name.is_empty() && name.iter().copied().all(is_token),
            };
            if self.chunked || !is_good {
                return Err(Refusal::BadRequest);
            }
            self.chunked = is_chunked;
            self.coded |= !is_chunked;
        }
        Ok(())
    }
}

/// What stands for itself in every part of a URI (RFC 3986, 2.3).
const UNRESERVED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-._~";
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};

/// What ends a path: the question mark, or a byte that no target may have.
const ENDS_PATH: [bool; 256] = {
    let mut table = [true; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        table[byte] = matches!(byte as u8, b'?' | b'"' | b'#' | b'<' | b'>' | b'\\');
        byte += 1;
    }
    table
};

/// Whether this is the field's name. A name is a token, and in a token no other bytes than the two cases
/// of a letter become that letter by this bit, and none but itself the hyphen.
#[inline]
fn is<const N: usize>(field: &Header<'_>, lower: &[u8; N]) -> bool {
    let Ok(name) = <&[u8; N]>::try_from(field.name.as_bytes()) else { return false };
    name.iter().zip(lower).fold(0, |differs, (byte, lower)| differs | (byte | 0x20) ^ lower) == 0
}

/// Digits alone, and a number that fits.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// The path and the query of a request-target in any of its four forms (RFC 9112, 3.2).
#[inline]
fn split_target<'b>(method: &str, target: &'b str) -> Result<(&'b str, Option<&'b str>), Refusal> {
    let ends = |byte: u8| ENDS_PATH[usize::from(byte)];
    let end = target.bytes().position(ends);
    if let Some(end) = end
        && target.bytes().skip(end).any(|byte| byte != b'?' && ends(byte))
    {
        return Err(Refusal::BadRequest);
    }
    if !target.starts_with('/') || method == "CONNECT" {
        return other_form(method, target);
    }
    match end {
        None => Ok((target, None)),
        Some(end) => Ok((&target[..end], Some(&target[end + 1..]))),
    }
}

#[cold]
fn other_form<'b>(method: &str, target: &'b str) -> Result<(&'b str, Option<&'b str>), Refusal> {
    match method {
        "CONNECT" if is_authority(target) => return Ok((target, None)),
        "CONNECT" => return Err(Refusal::BadRequest),
        "OPTIONS" if target == "*" => return Ok((target, None)),
        _ => {}
    }
    let has = |scheme: &str| {
        target.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    let authority = match () {
        () if has("http://") => &target["http://".len()..],
        () if has("https://") => &target["https://".len()..],
        () => return Err(Refusal::BadRequest),
    };
    let end = authority.find(['/', '?']).unwrap_or(authority.len());
    let local = &authority[end..];
    let (path, query) = match local.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (local, None),
    };
    match path {
        _ if !is_host(&authority.as_bytes()[..end]) => Err(Refusal::BadRequest),
        // The whole server, as proxies are asked for it.
        "" if method == "OPTIONS" && query.is_none() => Ok(("*", None)),
        "" => Ok(("/", query)),
        path => Ok((path, query)),
    }
}

/// A host and a port, as CONNECT has to name them (RFC 9110, 9.3.6).
fn is_authority(target: &str) -> bool {
    let Some(Some(port)) = port_of(target.as_bytes()) else { return false };
    decimal(port).is_some_and(|port| (1..=65535).contains(&port))
}

/// A host, and perhaps a port, as Host and a target name them (RFC 9110, 7.2). A name has no other
/// punctuation than the unreserved one: RFC 3986 would allow more, and no host is called so.
#[inline(never)]
fn is_host(value: &[u8]) -> bool {
    match port_of(value) {
        None => false,
        Some(None | Some([])) => true,
        Some(Some(port)) => decimal(port).is_some_and(|port| port <= 65535),
    }
}

/// What follows the colon behind a host. None: it is no host.
fn port_of(authority: &[u8]) -> Option<Option<&[u8]>> {
    let is_bracketed = authority.starts_with(b"[");
    let last = if is_bracketed { b']' } else { b':' };
    let end = authority.iter().position(|byte| *byte == last);
    let end = if is_bracketed { end? + 1 } else { end.unwrap_or(authority.len()) };
    let (host, rest) = authority.split_at(end);
    let is_host = match host {
        [b'[', address @ .., b']'] => {
            let address = core::str::from_utf8(address).ok();
            address.is_some_and(|address| address.parse::<core::net::Ipv6Addr>().is_ok())
        }
        name => is_name(name),
    };
    match rest {
        _ if !is_host => None,
        [] => Some(None),
        [b':', port @ ..] => Some(Some(port)),
        _ => None,
    }
}

/// The name of a host, or an IPv4 address.
fn is_name(name: &[u8]) -> bool {
    let mut rest = name;
    loop {
        rest = match rest {
            [] => return !name.is_empty(),
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest
            }
            [byte, rest @ ..] if UNRESERVED[usize::from(*byte)] => rest,
            _ => return false,
        }
    }
}
