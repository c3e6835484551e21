//! Files: which one a path names, which part of it is wanted, and how it gets to the peer.
//!
//! # Reading on the pool
//!
//! The kernel has no readiness for files: a read of what is not in the page cache waits for the disk,
//! and the thread that waits may be the one that leads. So each read first asks for what is cached
//! (`RWF_NOWAIT`), which costs the common case nothing; only when that is not there, the pool is told
//! that this thread is about to block, and another one leads on meanwhile. A pool that serves cold
//! files needs more threads than CPUs.
//!
//! What fits into one read is sent with its head at once. More is pumped: 64 KiB at a time, as fast as
//! the peer takes it, so a response holds no more than the output's high mark and one read, however
//! large the file and slow the peer.

use httpdate::{fmt_http_date, parse_http_date};
use paceline::http::{Body, Request, Response};
use percent_encoding::percent_decode_str;
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Read at once.
const READ: usize = 64 << 10;

const TYPES: [(&str, &str); 18] = [
    ("css", "text/css; charset=utf-8"),
    ("gif", "image/gif"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/vnd.microsoft.icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("md", "text/markdown; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
];

/// The files of a directory.
pub struct Files {
    root: PathBuf,
}

impl Files {
    pub fn of(root: PathBuf) -> Self {
        Self { root }
    }

    /// Answers a GET or HEAD.
    pub fn get(&self, request: &Request<'_>, response: Response) -> paceline::Result<()> {
        let Some(path) = self.find(request.path()) else { return not_found(response) };
        match open(&path) {
            Ok((file, metadata)) if metadata.is_file() => {
                Found::new(&path, file, &metadata).send(request, response)
            }
            // With a slash at its end, `find` would have looked for its index.
            Ok((_, metadata)) if metadata.is_dir() && !request.path().ends_with('/') => {
                let query = request.query().map(|query| format!("?{query}"));
                let location = format!("{}/{}", request.path(), query.unwrap_or_default());
                response.status(301).header("Location", location).send(b"")
            }
            _ => not_found(response),
        }
    }

    /// The file that a path names, be it there or not. None: no path of this server.
    fn find(&self, path: &str) -> Option<PathBuf> {
        let mut file = self.root.clone();
        let mut segments = path.strip_prefix('/')?.split('/').peekable();
        while let Some(segment) = segments.next() {
            if segment.is_empty() && segments.peek().is_none() {
                file.push("index.html");
                break;
            }
            let segment: Vec<u8> = percent_decode_str(segment).collect();
            if segment.is_empty()
                || segment[0] == b'.'
                || segment.iter().any(|b| b"/\0".contains(b))
            {
                return None;
            }
            file.push(OsStr::from_bytes(&segment));
        }
        Some(file)
    }
}

fn open(path: &Path) -> io::Result<(File, Metadata)> {
    // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for somebody.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

fn not_found(response: Response) -> paceline::Result<()> {
    response.status(404).text("not found\n")
}

// --- a file ----------------------------------------------------------------------------------------

struct Found {
    file: File,
    size: u64,
    /// In whole seconds, as HTTP tells it.
    modified: SystemTime,
    content_type: &'static str,
}

impl Found {
    fn new(path: &Path, file: File, metadata: &Metadata) -> Self {
        let modified =
            metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = UNIX_EPOCH + Duration::from_secs(modified.unwrap_or_default().as_secs());
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        let of = TYPES.iter().find(|(of, _)| of.eq_ignore_ascii_case(extension));
        let content_type = of.map_or("application/octet-stream", |(_, named)| named);
        Self { file, size: metadata.len(), modified, content_type }
    }

    fn send(self, request: &Request<'_>, response: Response) -> paceline::Result<()> {
        let last_modified = fmt_http_date(self.modified);
        let response =
            response.header("Last-Modified", &last_modified).header("Accept-Ranges", "bytes");
        if let Some(status) = self.unmet(request) {
            return response.status(status).send(b"");
        }
        let size = self.size;
        let wanted = match request.header("Range") {
            Some(range)
                if request.method() == "GET" && self.is_current(request, &last_modified) =>
            {
                Wanted::of(range, size)
            }
            _ => Wanted::Whole,
        };
        match wanted {
            Wanted::Whole => self.send_part(0..size, request, response),
            Wanted::Part(part) => {
                let content_range = format!("bytes {}-{}/{size}", part.start, part.end - 1);
                let response = response.status(206).header("Content-Range", content_range);
                self.send_part(part, request, response)
            }
            Wanted::Nothing => {
                let content_range = format!("bytes */{size}");
                response.status(416).header("Content-Range", content_range).send(b"")
            }
        }
    }

    /// What the peer is told in the file's place since a condition is not met. They are looked at in the order
    /// of RFC 9110, 13.2.2. A file has no entity tag, so nothing but `*` matches it.
    fn unmet(&self, request: &Request<'_>) -> Option<u16> {
        let date = |name| request.header(name).and_then(|date| parse_http_date(date).ok());
        let modified_after = |name| date(name).is_some_and(|date| self.modified > date);
        let unmodified_after = |name| date(name).is_some_and(|date| self.modified <= date);
        match request.header("If-Match") {
            Some("*") => {}
            Some(_) => return Some(412),
            None if modified_after("If-Unmodified-Since") => return Some(412),
            None => {}
        }
        match request.header("If-None-Match") {
            Some("*") => Some(304),
            None if unmodified_after("If-Modified-Since") => Some(304),
            _ => None,
        }
    }

    /// Whether a part of this file goes with the parts that the peer has.
    fn is_current(&self, request: &Request<'_>, last_modified: &str) -> bool {
        request.header("If-Range").is_none_or(|validator| validator == last_modified)
    }

    fn send_part(
        self,
        part: Range<u64>,
        request: &Request<'_>,
        response: Response,
    ) -> paceline::Result<()> {
        let response = response.header("Content-Type", self.content_type);
        let length = part.end - part.start;
        if request.method() == "HEAD" {
            return response.stream(Some(length))?.finish();
        }
        if length <= READ as u64 {
            // Head and body leave in one send.
            return match self.read(part) {
                Ok(bytes) => response.send_owned(bytes),
                Err(_) => response.status(500).text("the file cannot be read\n"),
            };
        }
        let mut at = part.start;
        response.stream(Some(length))?.pump(move |body| {
            at += self.pass_on(at..part.end, body)?;
            Ok(at < part.end)
        });
        Ok(())
    }

    fn read(&self, part: Range<u64>) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; (part.end - part.start) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += read_at(&self.file, &mut bytes[filled..], part.start + filled as u64)?;
        }
        Ok(bytes)
    }

    /// Reads once, and writes that. Says how much it was.
    fn pass_on(&self, rest: Range<u64>, body: &mut Body) -> paceline::Result<u64> {
        let mut buffer = [0; READ];
        let wanted = (rest.end - rest.start).min(READ as u64) as usize;
        let failed = |source| paceline::Error::Os { doing: "read a file".into(), source };
        let count = read_at(&self.file, &mut buffer[..wanted], rest.start).map_err(failed)?;
        body.write(&buffer[..count])?;
        Ok(count as u64)
    }
}

/// See the head of this file. It fails at the end of one that has become shorter meanwhile: then an
/// answer can never be whole.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let cached = preadv2(file, &mut [IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT);
    let count = match cached {
        // It is not cached; or its file system cannot tell.
        Err(Errno::AGAIN | Errno::OPNOTSUPP) => {
            paceline::promote_new_leader();
            pread(file, buffer, at)?
        }
        done => done?,
    };
    if count > 0 { Ok(count) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

// --- ranges ----------------------------------------------------------------------------------------

/// What a Range header asks for.
#[derive(PartialEq, Eq, Debug)]
enum Wanted {
    Whole,
    Part(Range<u64>),
    /// A range without a byte of the file.
    Nothing,
}

impl Wanted {
    fn of(header: &str, size: u64) -> Self {
        Self::parse(header, size).unwrap_or(Self::Whole)
    }

    /// None: nonsense, or more than is served.
    fn parse(header: &str, size: u64) -> Option<Self> {
        let (unit, range) = header.split_once('=')?;
        let (first, last) = range.trim().split_once('-')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let part = match (first, last) {
            ("", last) => size - digits(last)?.min(size)..size,
            (first, "") => digits(first)?..size,
            (first, last) => {
                let (first, last) = (digits(first)?, digits(last)?);
                if last < first {
                    return None;
                }
                first..last.saturating_add(1).min(size)
            }
        };
        Some(if part.is_empty() { Self::Nothing } else { Self::Part(part) })
    }
}

/// A number; one that is too large for any file is the largest.
fn digits(text: &str) -> Option<u64> {
    let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().unwrap_or(u64::MAX))
}
