//! What a handler answers with: at once, later, or piece by piece.

use super::answer::{AnswerHead, Framing, Lines, Persistence, chunk_line, error_page};
use super::chunks::{is_text, is_token};
use super::exchange::{Exchange, Outcome, Pieces};
use super::head::{Head, Media, Refusal};
use crate::error::{Error, Result};
use crate::net::{ConnHandler, ConnRef, WriteStatus};
use core::cell::Cell;
use core::fmt;
use std::io::IoSlice;
use std::sync::Arc;

thread_local! {
    /// What a handler has said of a response, kept for the next one.
    static SPARE: Cell<Option<Box<Said>>> = const { Cell::new(None) };
}

/// Up to so much of its buffer is kept.
const SPARE_ROOM: usize = 4 << 10;

/// What the request says about its answer. In one byte, for what is shared, and for connections to be small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked(u8);

/// What the peer would do besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Offer {
    Nothing,
    /// Speak another protocol.
    Upgrade,
    /// Send the body, when it is told to (`100 Continue`), which it was not yet.
    Body,
}

impl Asked {
    const IS_1_1: u8 = 1;
    const HEAD_ONLY: u8 = 1 << 1;
    const PERSISTS: u8 = 1 << 2;
    const UPGRADE: u8 = 1 << 3;
    /// The bit of [`Offer::Body`].
    pub(super) const BODY: u8 = 1 << 4;
    /// Where the two bits of [`Media`] are.
    const MEDIA: u32 = 5;

    #[inline]
    pub(super) fn to_bits(self) -> u8 {
        self.0
    }

    #[inline]
    pub(super) fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    #[inline]
    pub(super) fn is_1_1(self) -> bool {
        self.0 & Self::IS_1_1 != 0
    }

    /// HEAD: the answer has no body.
    #[inline]
    pub(super) fn head_only(self) -> bool {
        self.0 & Self::HEAD_ONLY != 0
    }

    /// More requests may follow, as far as the request and the server's settings go.
    #[inline]
    pub(super) fn persists(self) -> bool {
        self.0 & Self::PERSISTS != 0
    }

    /// The same, unless no more requests follow.
    #[inline]
    pub(super) fn persists_if(self, persists: bool) -> Self {
        if persists { self } else { Self(self.0 & !Self::PERSISTS) }
    }

    #[inline]
    pub(super) fn offer(self) -> Offer {
        match self.0 & (Self::UPGRADE | Self::BODY) {
            0 => Offer::Nothing,
            Self::UPGRADE => Offer::Upgrade,
            _ => Offer::Body,
        }
    }

    #[inline]
    pub(super) fn with_offer(self, offer: Offer) -> Self {
        let bits = match offer {
            Offer::Nothing => 0,
            Offer::Upgrade => Self::UPGRADE,
            Offer::Body => Self::BODY,
        };
        Self(self.0 & !(Self::UPGRADE | Self::BODY) | bits)
    }

    /// How it wants to be told of an error.
    fn media(self) -> Media {
        match self.0 >> Self::MEDIA & 3 {
            0 => Media::Text,
            1 => Media::Json,
            2 => Media::Problem,
            _ => Media::Html,
        }
    }

    /// Whether the answer may be followed by another request. One that comes before the body was asked for
    /// is the last: whether the peer sends the body then cannot be known (RFC 9110, 10.1.1).
    #[inline]
    fn goes_on(self) -> bool {
        self.persists() && self.offer() != Offer::Body
    }

    /// By what is no request.
    pub(super) fn nothing() -> Self {
        Self(Self::IS_1_1)
    }

    /// By bytes that are no whole or no good head.
    #[cold]
    pub(super) fn by_part(bytes: &[u8]) -> Self {
        let head_only = bytes.trim_ascii_start().starts_with(b"HEAD ");
        Self(Self::IS_1_1 | if head_only { Self::HEAD_ONLY } else { 0 })
    }

    #[inline]
    pub(super) fn by(head: &Head<'_, '_>, persists: bool) -> Self {
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        Self(
            bit(head.is_1_1, Self::IS_1_1)
                | bit(head.method == "HEAD", Self::HEAD_ONLY)
                | bit(persists, Self::PERSISTS)
                | bit(head.upgrade.is_some(), Self::UPGRADE)
                | (head.media as u8) << Self::MEDIA,
        )
    }

    #[inline]
    fn persistence(self, closes: bool) -> Persistence {
        match (closes, self.is_1_1()) {
            (true, _) => Persistence::Close,
            (false, true) => Persistence::Implied,
            (false, false) => Persistence::Told,
        }
    }
}

/// The answer to a request. It may be completed by the handler, or kept and completed by any thread
/// later; until then the connection's next request waits.
///
/// A response that is dropped is a failure of its handler: the peer gets a 500.
///
/// ```
/// use paceline::{Pool, http::{Http, Request, Response}};
/// # fn main() -> paceline::Result<()> {
/// # let pool = Pool::new()?;
/// let server = Http::builder(&pool)
///     .listen("127.0.0.1:0")
///     .route("POST", "/orders", |_: &Request<'_>, response: Response| {
///         response.status(201).header("Location", "/orders/1").text("created\n")
///     })
///     .route("GET", "/later", |_: &Request<'_>, response: Response| {
///         // From another thread, when there is an answer.
///         std::thread::spawn(move || response.text("sorry for the delay\n"));
///     })
///     .serve()?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a Response answers with 500"]
pub struct Response {
    /// None: completed.
    exchange: Option<Arc<Exchange>>,
    /// None: nothing, and the status is 200.
    said: Option<Box<Said>>,
}

// Two words are passed in registers. What is written in small pieces and moved in large ones is waited for
// at each move.
const _: () = assert!(size_of::<Response>() <= 2 * size_of::<usize>());

/// What a handler has said of its response.
struct Said {
    status: u16,
    /// No more requests follow.
    closes: bool,
    fields: Vec<u8>,
    /// So many bytes of them are sent with an error, too.
    kept: usize,
    /// They have a Content-Type.
    typed: bool,
    /// Why no route has taken the request.
    refusal: Option<Refusal>,
    /// What was wrong with the status or a header.
    spoiled: Option<Box<Error>>,
}

impl Said {
    fn nothing() -> Box<Self> {
        Box::new(Self::with(Vec::new()))
    }

    fn with(fields: Vec<u8>) -> Self {
        Self {
            status: 200,
            closes: false,
            fields,
            kept: 0,
            typed: false,
            refusal: None,
            spoiled: None,
        }
    }

    fn lend() -> Box<Self> {
        SPARE.try_with(Cell::take).ok().flatten().unwrap_or_else(Self::nothing)
    }

    fn give_back(mut self: Box<Self>) {
        if self.fields.capacity() <= SPARE_ROOM {
            let mut fields = core::mem::take(&mut self.fields);
            fields.clear();
            *self = Self::with(fields);
            let _ = SPARE.try_with(|spare| spare.set(Some(self)));
        }
    }
}

impl Response {
    #[inline]
    pub(super) fn new(exchange: Arc<Exchange>, asked: Asked) -> Self {
        exchange.note_asked(asked);
        Self { exchange: Some(exchange), said: None }
    }

    /// What the request and the handler say about the answer.
    #[inline]
    fn asked(&self) -> Asked {
        let asked = self.exchange().asked();
        let closes = self.said.as_ref().is_some_and(|said| said.closes);
        asked.persists_if(!closes)
    }

    #[inline]
    fn status_now(&self) -> u16 {
        self.said.as_ref().map_or(200, |said| said.status)
    }

    fn say(&mut self) -> &mut Said {
        self.said.get_or_insert_with(Said::lend)
    }

    /// The status, 200 to 599; without this it is 200. Another one is an error of what completes the
    /// response.
    pub fn status(mut self, status: u16) -> Self {
        if (200..=599).contains(&status) {
            self.say().status = status;
        } else {
            self.spoil(Error::invalid("status", status, "200 to 599"));
        }
        self
    }

    /// Adds a header. `Content-Length`, `Transfer-Encoding`, `Connection`, `Upgrade` and `Date` are
    /// the library's own. One that is not allowed is an error of what completes the response.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        if let Err(error) = check_field(name, value) {
            self.spoil(error);
            return self;
        }
        self.say().typed |= name.eq_ignore_ascii_case("content-type");
        self.add(name, value);
        self
    }

    /// No more requests follow on this connection.
    pub fn close(mut self) -> Self {
        self.say().closes = true;
        self
    }

    /// Completes it with this body.
    ///
    /// The request's body is not awaited then. If its peer waits for `100 Continue`, and was not told yet,
    /// this is the final answer: there is no 100, and the connection closes behind it.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the status or header that was not allowed, and [`Error::Full`] tells
    /// of a body that is larger than a connection's output may be ([`stream`](Self::stream) it): then
    /// the peer gets a 500. [`Error::Stale`]: the connection has ended, or the library has answered
    /// already, as it does when a body does not come. [`Error::Forked`] in a forked child.
    #[inline]
    pub fn send(self, body: impl AsRef<[u8]>) -> Result<()> {
        self.complete(false, Payload::Borrowed(body.as_ref()))
    }

    /// As [`send`](Self::send), without copying a large body.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_owned(self, body: Vec<u8>) -> Result<()> {
        self.complete(false, Payload::Owned(body))
    }

    /// As [`send`](Self::send), with `Content-Type: text/plain; charset=utf-8` unless it has another.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[inline]
    pub fn text(self, text: impl AsRef<str>) -> Result<()> {
        let is_text = !self.said.as_ref().is_some_and(|said| said.typed);
        self.complete(is_text, Payload::Borrowed(text.as_ref().as_bytes()))
    }

    /// As [`send`](Self::send), with this `Content-Type` unless it has another: a media type, as
    /// `application/json`.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_as(self, content_type: &str, body: impl AsRef<[u8]>) -> Result<()> {
        self.typed(content_type).complete(false, Payload::Borrowed(body.as_ref()))
    }

    /// As [`send`](Self::send), with a value as JSON and `Content-Type: application/json` unless it has another.
    ///
    /// # Errors
    /// As [`send`](Self::send); [`Error::Invalid`] also if the value cannot be JSON: then the peer gets a 500.
    #[cfg(feature = "http")]
    pub fn json<T: serde::Serialize + ?Sized>(mut self, value: &T) -> Result<()> {
        match serde_json::to_vec(value) {
            Ok(body) => self.typed("application/json").complete(false, Payload::Owned(body)),
            Err(error) => {
                self.spoil(Error::invalid("body", error, "a value that can be JSON"));
                self.send("")
            }
        }
    }

    /// Completes it with a short page about its [`status`](Self::status), as the server's own errors have it, in
    /// the form that the request's `Accept` wants most: text (`404 Not Found`), JSON
    /// (`{"title":"Not Found","status":404}`, as RFC 9457 has it) or HTML. `Content-Type` is set accordingly.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn error(mut self) -> Result<()> {
        let status = self.status_now();
        let (content_type, page) = error_page(status, self.asked().media());
        let refusal = self.said.as_ref().and_then(|said| said.refusal);
        self = self.typed(content_type);
        let empty = bodyless(status);
        let framing = empty.unwrap_or(Framing::Length(page.len() as u64));
        let is_sent = empty.is_none() && !self.asked().head_only();
        let page = if is_sent { page.as_bytes() } else { &[] };
        let closes = self.start(false, framing, Payload::Borrowed(page))?;
        self.end_answered(match refusal.filter(|refusal| refusal.status() == status) {
            // As without a fallback.
            Some(refusal) => Outcome::Refused { refusal, closes },
            None => Outcome::Answered { status, closes },
        });
        Ok(())
    }

    /// Unless it has a type already.
    fn typed(self, content_type: &str) -> Self {
        match self.said.as_ref().is_some_and(|said| said.typed) {
            true => self,
            false => self.header("Content-Type", content_type),
        }
    }

    /// Of a request that no route has taken: with the status and the headers of that, for whoever answers it.
    #[cold]
    pub(super) fn refused(mut self, refusal: Refusal, fields: &str) -> Self {
        let said = self.say();
        (said.status, said.refusal) = (refusal.status(), Some(refusal));
        said.fields.extend_from_slice(fields.as_bytes());
        self
    }

    /// The headers that it has by now are sent if it fails, too: middleware has set them for every answer.
    pub(super) fn keep_for_errors(&mut self) {
        if let Some(said) = &mut self.said
            && !said.typed
        {
            said.kept = said.fields.len();
        }
    }

    /// Those headers.
    #[cold]
    fn take_kept(&mut self) -> Vec<u8> {
        self.said.take().map_or_else(Vec::new, |mut said| {
            said.fields.truncate(said.kept);
            said.fields
        })
    }

    /// Sends the head, and gives what the body is written to: exactly `length` bytes, or chunks if
    /// that is not known. (To a peer that speaks HTTP/1.0 the end of the connection is the end of
    /// such a body.)
    ///
    /// A peer that waits for `100 Continue` before it sends its body is told so first, since none can be
    /// told behind a head. To answer without that body, [`send`](Self::send).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn stream(mut self, length: Option<u64>) -> Result<Body> {
        self.exchange().ask_for_body();
        let (status, asked) = (self.status_now(), self.asked());
        let empty = bodyless(status);
        let framing = match (empty, length) {
            (Some(empty), _) => empty,
            (None, Some(length)) => Framing::Length(length),
            (None, None) if asked.is_1_1() => Framing::Chunked,
            (None, None) => Framing::Close,
        };
        if framing == Framing::Close {
            self.say().closes = true;
        }
        let closes = self.start(false, framing, Payload::Borrowed(&[]))?;
        let is_empty = asked.head_only() || empty.is_some();
        let rest = if is_empty { Framing::None } else { framing };
        let answered = Outcome::Answered { status, closes };
        Ok(Body { exchange: self.exchange.take(), rest, answered })
    }

    /// Answers with 101, and gives the connection to `handler`, for a protocol that the request has
    /// asked for ([`Request::upgrade`](super::Request::upgrade)). Its `open` comes next. The server's
    /// limits for connections stay in force; the time between requests is now its idle time.
    ///
    /// # Errors
    /// As [`send`](Self::send). [`Error::Invalid`] also if the request has asked for no other protocol, or has
    /// a body that is streamed, which would be taken for that protocol.
    pub fn upgrade(mut self, protocol: &str, handler: impl ConnHandler) -> Result<()> {
        if self.asked().offer() != Offer::Upgrade {
            self.spoil(Error::invalid("upgrade", protocol, "what the request asks for"));
        } else if !protocol.bytes().all(is_text) {
            self.spoil(Error::invalid("upgrade", protocol, "free of control characters"));
        }
        self.say().status = 101;
        self.add("Upgrade", protocol.as_bytes());
        self.start(false, Framing::None, Payload::Borrowed(&[]))?;
        if let Some(exchange) = self.exchange.take() {
            exchange.leave_upgrade(Box::new(handler));
            exchange.finish(Outcome::Upgraded);
        }
        Ok(())
    }

    /// The connection that it goes to. To write there while a request is in work would break the
    /// protocol.
    pub fn conn(&self) -> ConnRef {
        ConnRef { connection: Arc::clone(&self.exchange().connection) }
    }

    #[inline]
    pub(super) fn exchange(&self) -> &Arc<Exchange> {
        self.exchange.as_ref().expect("what completes a response consumes it")
    }

    #[inline]
    fn complete(self, is_text: bool, body: Payload<'_>) -> Result<()> {
        match body {
            Payload::Borrowed(body) if self.said.is_none() => self.complete_plainly(is_text, body),
            body => self.complete_as_said(is_text, body),
        }
    }

    /// Of which nothing has been said.
    #[inline]
    fn complete_plainly(mut self, is_text: bool, body: &[u8]) -> Result<()> {
        let exchange = self.exchange();
        let asked = exchange.asked();
        let closes = !asked.goes_on() || exchange.connection.service.is_draining();
        let framing = Framing::Length(body.len() as u64);
        let persistence = asked.persistence(closes);
        let lines = Lines { status: 200, framing, persistence, is_text };
        let body = if asked.head_only() { &[] } else { body };
        let wrote = exchange.start(Pieces::Pair(AnswerHead::new(lines).whole(), body));
        if let Err(error) = wrote {
            return Err(self.failed(*error));
        }
        self.end_answered(Outcome::Answered { status: 200, closes });
        Ok(())
    }

    #[inline]
    fn end_answered(mut self, outcome: Outcome) {
        if let Some(exchange) = self.exchange.take() {
            exchange.finish(outcome);
        }
        // Nothing is left in it.
        core::mem::forget(self);
    }

    #[inline(never)]
    fn complete_as_said(mut self, is_text: bool, body: Payload<'_>) -> Result<()> {
        let status = self.status_now();
        let empty = bodyless(status);
        let framing = empty.unwrap_or(Framing::Length(body.len() as u64));
        let has_body = empty.is_none() && !self.asked().head_only();
        let body = if has_body { body } else { Payload::Borrowed(&[]) };
        let closes = self.start(is_text, framing, body)?;
        self.end_answered(Outcome::Answered { status, closes });
        Ok(())
    }

    /// Writes the head, and says whether it has told that the connection closes.
    fn start(&mut self, is_text: bool, framing: Framing, body: Payload<'_>) -> Result<bool> {
        if let Some(error) = self.said.as_mut().and_then(|said| said.spoiled.take()) {
            return Err(*error);
        }
        let (status, asked) = (self.status_now(), self.asked());
        let exchange = self.exchange();
        let closes = !asked.goes_on() || exchange.connection.service.is_draining();
        let persistence = match status {
            101 => Persistence::Upgrade,
            _ => asked.persistence(closes),
        };
        let lines = Lines { status, framing, persistence, is_text };
        let said = self.said.take().unwrap_or_else(Said::lend);
        let exchange = self.exchange();
        // Should there be no room for it, there is for a 500 that closes as this would.
        exchange.note_asked(asked);
        let wrote = start_as_said(exchange, lines, said, body);
        wrote.map(|_| closes).map_err(|error| self.failed(*error))
    }

    #[cold]
    fn failed(&mut self, error: Error) -> Error {
        // The 500 has room.
        if !matches!(error, Error::Full { .. }) {
            self.end(Outcome::Lost);
        }
        error
    }

    #[cold]
    fn end(&mut self, outcome: Outcome) {
        if let Some(exchange) = self.exchange.take() {
            exchange.finish(outcome);
        }
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        let fields = &mut self.say().fields;
        for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
            fields.extend_from_slice(piece);
        }
    }

    #[cold]
    fn spoil(&mut self, error: Error) {
        // The first one is the one to mend.
        self.say().spoiled.get_or_insert_with(|| Box::new(error));
    }
}

impl Response {
    /// What was to answer has failed: the peer gets a 500, the connection closes, and the failure is
    /// counted ([`HttpStats::panics`](super::HttpStats::panics)), as if the handler had panicked.
    pub fn fail(mut self) {
        if let Some(exchange) = self.exchange.take() {
            exchange.count_failure();
            refuse_unanswered(exchange, Refusal::Panicked, true, &self.take_kept());
        }
    }

    /// The status that no route has given it; 0: a route has the request.
    #[cfg(feature = "capi")]
    pub(crate) fn refusal(&self) -> u16 {
        let refusal = self.said.as_ref().and_then(|said| said.refusal);
        refusal.map_or(0, Refusal::status)
    }

    /// Whether the code that is given it runs on this thread.
    #[cfg(feature = "capi")]
    pub(crate) fn is_inside(&self) -> bool {
        self.exchange().is_inside()
    }

    /// As [`fail`](Self::fail), inside code whose failure is counted when it returns.
    #[cfg(feature = "capi")]
    pub(crate) fn fail_inside(mut self) {
        if let Some(exchange) = self.exchange.take() {
            refuse_unanswered(exchange, Refusal::Panicked, true, &self.take_kept());
        }
    }
}

impl Drop for Response {
    #[inline]
    fn drop(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            let closes = self.said.as_ref().is_some_and(|said| said.closes);
            was_dropped(exchange, closes, &self.take_kept());
        }
    }
}

/// A response without an answer.
#[cold]
fn was_dropped(exchange: Arc<Exchange>, closes: bool, fields: &[u8]) {
    let refusal = match std::thread::panicking() {
        true => Refusal::Panicked,
        false => Refusal::Unanswered,
    };
    if refusal == Refusal::Panicked && !exchange.is_inside() {
        // A panic of the handler itself is counted where it is caught.
        exchange.count_failure();
    }
    refuse_unanswered(exchange, refusal, closes, fields);
}

#[cold]
fn refuse_unanswered(exchange: Arc<Exchange>, refusal: Refusal, closes: bool, fields: &[u8]) {
    let asked = exchange.asked().persists_if(!closes && refusal == Refusal::Unanswered);
    let outcome = match refuse(&exchange, refusal, asked, fields) {
        Ok(closes) => Outcome::Refused { refusal, closes },
        Err(_) => Outcome::Lost,
    };
    exchange.finish(outcome);
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("status", &self.status_now()).finish_non_exhaustive()
    }
}

/// Writes a head with what the handler has said, and what follows it.
fn start_as_said(
    exchange: &Exchange,
    lines: Lines,
    mut said: Box<Said>,
    body: Payload<'_>,
) -> Result<WriteStatus, Box<Error>> {
    said.fields.extend_from_slice(b"\r\n");
    let head = AnswerHead::new(lines);
    let [head, fields] = [head.open(), &said.fields].map(IoSlice::new);
    let wrote = match body {
        Payload::Borrowed(body) => {
            exchange.start(Pieces::Borrowed(&[head, fields, IoSlice::new(body)]))
        }
        Payload::Owned(body) => exchange.start(Pieces::Owned(&[head, fields], body)),
    };
    said.give_back();
    wrote
}

enum Payload<'a> {
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
}

impl Payload<'_> {
    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Borrowed(bytes) => bytes.len(),
            Self::Owned(bytes) => bytes.len(),
        }
    }
}

/// How answers are framed that never have a body (RFC 9112, 6.3; RFC 9110, 15.3.6).
#[inline]
fn bodyless(status: u16) -> Option<Framing> {
    match status {
        200 => None,
        101 | 204 | 304 => Some(Framing::None),
        205 => Some(Framing::Length(0)),
        _ => None,
    }
}

fn check_field(name: &str, value: &[u8]) -> Result<()> {
    const OWN: [&str; 5] = ["content-length", "transfer-encoding", "connection", "upgrade", "date"];
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(Error::invalid("header", format!("{name:?}"), "a token (RFC 9110, 5.6.2)"));
    }
    if OWN.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        return Err(Error::invalid("header", name, "one that the library does not write itself"));
    }
    if !value.iter().copied().all(is_text) {
        let value = format!("{name}: {}", value.escape_ascii());
        return Err(Error::invalid("header", value, "free of control characters"));
    }
    Ok(())
}

/// Answers in a handler's place. Says whether it has told that the connection closes.
#[cold]
pub(super) fn refuse(
    exchange: &Exchange,
    refusal: Refusal,
    asked: Asked,
    fields: &[u8],
) -> Result<bool> {
    let closes = !asked.goes_on() || exchange.connection.service.is_draining();
    let (content_type, page) = error_page(refusal.status(), asked.media());
    let framing = Framing::Length(page.len() as u64);
    let lines = Lines {
        status: refusal.status(),
        framing,
        persistence: asked.persistence(closes),
        is_text: false,
    };
    let kind = format!("Content-Type: {content_type}\r\n\r\n");
    let body = if asked.head_only() { "" } else { &page };
    let head = AnswerHead::new(lines);
    let pieces = [head.open(), fields, kind.as_bytes(), body.as_bytes()].map(IoSlice::new);
    let wrote = exchange.start(Pieces::Borrowed(&pieces));
    wrote.map(|_| closes).map_err(|error| *error)
}

/// The body of an answer, written piece by piece by whoever holds it.
///
/// Dropped before its end, it can never be whole: the connection is reset, so that the peer can tell.
///
/// ```
/// use paceline::{Pool, http::{Http, Request, Response}};
/// # fn main() -> paceline::Result<()> {
/// # let pool = Pool::new()?;
/// let server = Http::builder(&pool)
///     .listen("127.0.0.1:0")
///     .route("GET", "/numbers", |_: &Request<'_>, response: Response| {
///         let mut left = 1_000_000;
///         // Called again whenever there is room for more: a slow reader costs no memory.
///         response.stream(None)?.pump(move |body| {
///             left -= 1;
///             body.write(format!("{left}\n").as_bytes())?;
///             Ok(left > 0)
///         });
///         Ok::<_, paceline::Error>(())
///     })
///     .serve()?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a Body before its end resets the connection"]
pub struct Body {
    /// None: finished.
    exchange: Option<Arc<Exchange>>,
    /// What may still be written.
    rest: Framing,
    answered: Outcome,
}

impl Body {
    /// Writes, in order, without waiting. What the peer does not take is queued; with
    /// [`WriteStatus::AboveHighMark`] whoever can should write no more until the output has fallen
    /// ([`on_writable`](Self::on_writable)). [`WriteStatus::Unwanted`]: the peer gets no body (an answer to HEAD,
    /// or with the status 204, 205 or 304), and the bytes were dropped. No mark paces such a body:
    /// [`finish`](Self::finish) it. To write no bytes tells this before the first ones are produced.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more bytes than were announced, [`Error::Full`] if the queue would exceed
    /// its maximum: then nothing of it was taken. [`Error::Stale`] if the connection has ended,
    /// [`Error::Forked`] in a forked child.
    pub fn write(&mut self, bytes: &[u8]) -> Result<WriteStatus> {
        let exchange = self.exchange.as_ref().expect("finishing a body consumes it");
        let piece = IoSlice::new(bytes);
        match &mut self.rest {
            Framing::Length(left) => {
                let Some(rest) = left.checked_sub(bytes.len() as u64) else {
                    let allowed = format!("up to the {left} bytes that are left");
                    return Err(Error::invalid("bytes of a body", bytes.len(), allowed));
                };
                let wrote = exchange.write(Pieces::Borrowed(&[piece]))?;
                *left = rest;
                Ok(wrote)
            }
            Framing::Chunked if bytes.is_empty() => exchange.write(Pieces::Borrowed(&[])),
            Framing::Chunked => {
                let mut line = [0; 18];
                let line = IoSlice::new(chunk_line(bytes.len(), &mut line));
                exchange.write(Pieces::Borrowed(&[line, piece, IoSlice::new(b"\r\n")]))
            }
            Framing::Close => exchange.write(Pieces::Borrowed(&[piece])),
            Framing::None => Ok(WriteStatus::Unwanted),
        }
    }

    /// Ends the body. The connection's next request may come.
    ///
    /// # Errors
    /// [`Error::Invalid`] if fewer bytes were written than were announced: then the connection is
    /// reset. Otherwise as [`write`](Self::write).
    pub fn finish(mut self) -> Result<()> {
        if let Framing::Length(left @ 1..) = self.rest {
            return Err(Error::invalid("bytes left of a body", left, "0 at its end"));
        }
        if self.rest == Framing::Chunked {
            let last = [IoSlice::new(b"0\r\n\r\n")];
            self.exchange().write(Pieces::Borrowed(&last))?;
        }
        if let Some(exchange) = self.exchange.take() {
            exchange.finish(self.answered);
        }
        Ok(())
    }

    /// What writes it has failed: the connection is reset, as when it is dropped, and the failure is
    /// counted ([`HttpStats::panics`](super::HttpStats::panics)).
    pub fn fail(self) {
        self.exchange().count_failure();
    }

    /// Nothing is left that could be sent.
    fn is_over(&self) -> bool {
        matches!(self.rest, Framing::None | Framing::Length(0))
    }

    /// The output is above its high mark, or has not fallen to the low one yet.
    pub fn is_pressed(&self) -> bool {
        self.exchange().connection.output.is_pressed()
    }

    /// Has `hook` called, in a run of the connection, each time that the output has fallen to its low
    /// mark. If the output is not above its high mark now, the hook is called once without delay. It replaces the one
    /// before. It is dropped when the
    /// body is finished or the connection has ended. One that panics ends the connection. In a forked
    /// child it is dropped at once.
    pub fn on_writable(&self, hook: impl FnMut() + Send + 'static) {
        self.exchange().set_writable(Box::new(hook));
    }

    /// Has `produce` write the body, in runs of the connection, as fast as the peer takes it and no
    /// faster. It is called again as long as it says true and there is something left to be sent; with
    /// false the body is finished. So it is not called at all for a body that is not sent (an answer to
    /// HEAD, or with the status 204, 205 or 304), and not again when as many bytes are written as were
    /// announced. If it fails, or panics, the connection is reset.
    ///
    /// One that says true without having written anything is called again at once: what has to wait for
    /// its data should keep the body instead, and write when there are some.
    pub fn pump(self, produce: impl FnMut(&mut Body) -> Result<bool> + Send + 'static) {
        let exchange = Arc::clone(self.exchange());
        let mut pump = Pump { body: Some(self), produce };
        exchange.set_writable(Box::new(move || pump.run()));
    }

    #[cfg(feature = "capi")]
    pub(crate) fn is_forked(&self) -> bool {
        self.exchange().connection.is_forked()
    }

    /// Whether code of its request runs on this thread.
    #[cfg(feature = "capi")]
    pub(crate) fn is_inside(&self) -> bool {
        self.exchange().is_inside()
    }

    /// The connection that it goes to. To write there would break the protocol.
    pub fn conn(&self) -> ConnRef {
        ConnRef { connection: Arc::clone(&self.exchange().connection) }
    }

    fn exchange(&self) -> &Arc<Exchange> {
        self.exchange.as_ref().expect("finishing a body consumes it")
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            exchange.finish(Outcome::Unfinished);
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("rest", &self.rest).finish_non_exhaustive()
    }
}

/// Calls of a producer in one run, before others have their turn.
const PUMPED: usize = 16;

struct Pump<F> {
    body: Option<Body>,
    produce: F,
}

impl<F: FnMut(&mut Body) -> Result<bool>> Pump<F> {
    fn run(&mut self) {
        for _ in 0..PUMPED {
            let Some(body) = &mut self.body else { return };
            // What is not sent is not produced: nothing would pace it.
            let goes_on = if body.is_over() { Ok(false) } else { (self.produce)(body) };
            match goes_on {
                Ok(true) if body.is_pressed() => return,
                Ok(true) => {}
                Ok(false) => {
                    // If it does not succeed the connection is reset, and nobody is left to be told.
                    let _ = self.body.take().map(Body::finish);
                    return;
                }
                Err(_) => {
                    self.body = None;
                    return;
                }
            }
        }
        if let Some(body) = &self.body {
            body.exchange().call_soon();
        }
    }
}
