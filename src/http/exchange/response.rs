//! What a handler answers with: at once, later, or piece by piece.

use super::body::Body;
use super::flags::{Offer, RequestFlags};
use super::{Exchange, Outcome, Pieces};
use crate::error::{Error, Result};
use crate::http::message::answer_head::{AnswerHead, Framing, Lines, Persistence, error_page};
use crate::http::message::chunks::{is_text, is_token};
use crate::http::message::refusal::Refusal;
use crate::net::{ConnHandler, ConnRef, WriteStatus};
use core::cell::Cell;
use core::fmt;
use std::io::IoSlice;
use std::sync::Arc;

thread_local! {
    /// The draft of a response, kept for the next one.
    static SPARE: Cell<Option<Box<Draft>>> = const { Cell::new(None) };
}

/// Up to so much of its buffer is kept.
const SPARE_ROOM: usize = 4 << 10;

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
    draft: Option<Box<Draft>>,
}

// Two words are passed in registers. What is written in small pieces and moved in large ones is waited for
// at each move.
const _: () = assert!(size_of::<Response>() <= 2 * size_of::<usize>());

/// The head of a response as far as its handler has set it.
struct Draft {
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
    /// The protocols that the request offers to speak instead.
    offered: Option<Box<str>>,
    /// What was wrong with the status or a header.
    spoiled: Option<Box<Error>>,
}

impl Draft {
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
            offered: None,
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
    pub(crate) fn new(exchange: Arc<Exchange>, flags: RequestFlags) -> Self {
        exchange.note_flags(flags);
        Self { exchange: Some(exchange), draft: None }
    }

    /// Of a request that offers this: "websocket", "h2c, foo/2".
    pub(crate) fn offering(mut self, protocols: Option<&str>) -> Self {
        if let Some(protocols) = protocols {
            self.draft_mut().offered = Some(protocols.into());
        }
        self
    }

    /// What the request and the handler say about the answer.
    #[inline]
    fn flags(&self) -> RequestFlags {
        let flags = self.exchange().flags();
        let closes = self.draft.as_ref().is_some_and(|draft| draft.closes);
        flags.persists_if(!closes)
    }

    #[inline]
    fn status_now(&self) -> u16 {
        self.draft.as_ref().map_or(200, |draft| draft.status)
    }

    fn draft_mut(&mut self) -> &mut Draft {
        self.draft.get_or_insert_with(Draft::lend)
    }

    /// The status, 200 to 599; without this it is 200. Another one is an error of what completes the
    /// response.
    pub fn status(mut self, status: u16) -> Self {
        if (200..=599).contains(&status) {
            self.draft_mut().status = status;
        } else {
            self.spoil(Error::invalid("status", status, "200 to 599"));
        }
        self
    }

    /// Adds a header. `Content-Length`, `Transfer-Encoding`, `Connection` and `Date` are the library's own; beside
    /// `Upgrade`, as of a 426, goes the `Connection: upgrade` that belongs to it. One that is not allowed is an error of what completes the response.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        if let Err(error) = check_field(name, value) {
            self.spoil(error);
            return self;
        }
        self.draft_mut().typed |= name.eq_ignore_ascii_case("content-type");
        self.add(name, value);
        if name.eq_ignore_ascii_case("upgrade") {
            self.add("Connection", b"upgrade");
        }
        self
    }

    /// No more requests follow on this connection.
    pub fn close(mut self) -> Self {
        self.draft_mut().closes = true;
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
        let is_text = !self.draft.as_ref().is_some_and(|draft| draft.typed);
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
        let (content_type, page) = error_page(status, self.flags().media());
        let refusal = self.draft.as_ref().and_then(|draft| draft.refusal);
        self = self.typed(content_type);
        let empty = bodyless(status);
        let framing = empty.unwrap_or(Framing::Length(page.len() as u64));
        let is_sent = empty.is_none() && !self.flags().head_only();
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
        match self.draft.as_ref().is_some_and(|draft| draft.typed) {
            true => self,
            false => self.header("Content-Type", content_type),
        }
    }

    /// Of a request that no route has taken: with the status and the headers of that, for whoever answers it.
    #[cold]
    pub(crate) fn refused(mut self, refusal: Refusal, fields: &str) -> Self {
        let draft = self.draft_mut();
        (draft.status, draft.refusal) = (refusal.status(), Some(refusal));
        draft.fields.extend_from_slice(fields.as_bytes());
        self
    }

    /// The headers that it has by now are sent if it fails, too: middleware has set them for every answer.
    pub(crate) fn keep_for_errors(&mut self) {
        if let Some(draft) = &mut self.draft
            && !draft.typed
        {
            draft.kept = draft.fields.len();
        }
    }

    /// Those headers.
    #[cold]
    fn take_kept(&mut self) -> Vec<u8> {
        self.draft.take().map_or_else(Vec::new, |mut draft| {
            draft.fields.truncate(draft.kept);
            draft.fields
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
        let (status, flags) = (self.status_now(), self.flags());
        let empty = bodyless(status);
        let framing = match (empty, length) {
            (Some(empty), _) => empty,
            (None, Some(length)) => Framing::Length(length),
            (None, None) if flags.is_1_1() => Framing::Chunked,
            (None, None) => Framing::Close,
        };
        if framing == Framing::Close {
            self.draft_mut().closes = true;
        }
        let closes = self.start(false, framing, Payload::Borrowed(&[]))?;
        let is_empty = flags.head_only() || empty.is_some();
        let rest = if is_empty { Framing::None } else { framing };
        let answered = Outcome::Answered { status, closes };
        Ok(Body::new(self.exchange.take(), rest, answered))
    }

    /// Answers with 101, and gives the connection to `handler`, for a protocol that the request
    /// offers ([`Request::upgrade`](crate::http::Request::upgrade)), in upper or lower case. Its `open` comes next. The
    /// server's limits for connections stay in force; the time between requests is now its idle time.
    ///
    /// # Errors
    /// As [`send`](Self::send). [`Error::Invalid`] also if the request does not offer the protocol, or has a body that is
    /// streamed, which would be taken for that protocol: its client has got a 426 with `Upgrade` then.
    pub fn upgrade(mut self, protocol: &str, handler: impl ConnHandler) -> Result<()> {
        if !protocol.bytes().all(is_token_of_protocol) || protocol.is_empty() {
            self.spoil(Error::invalid(
                "upgrade",
                format!("{protocol:?}"),
                "a protocol, as \"websocket\"",
            ));
        } else if self.is_offered_behind_its_body() {
            let allowed = "of a request whose body is not streamed";
            self.spoil(Error::invalid("upgrade", format!("{protocol:?}"), allowed));
        } else if !self.offers(protocol) {
            let allowed = match self.draft_mut().offered.take() {
                Some(offered) => format!("what its client offers: {offered}"),
                None => "offered by its client, which offers nothing".to_owned(),
            };
            let error = Error::invalid("upgrade", format!("{protocol:?}"), allowed);
            // If it fails, the peer is gone.
            let _ = self.status(426).header("Upgrade", protocol).error();
            return Err(error);
        }
        self.draft_mut().status = 101;
        self.add("Upgrade", protocol.as_bytes());
        self.start(false, Framing::None, Payload::Borrowed(&[]))?;
        if let Some(exchange) = self.exchange.take() {
            exchange.leave_upgrade(Box::new(handler));
            exchange.finish(Outcome::Upgraded);
        }
        Ok(())
    }

    /// Whether its client has gone: it has reset or closed the connection, or sends no more and is not [allowed to be half
    /// open](crate::net::ServerBuilder::allow_half_open). Whoever works for long looks here from time to time; it is one
    /// call of the kernel. A client that has only finished sending still gets an answer.
    pub fn is_client_gone(&self) -> bool {
        self.exchange().is_client_gone()
    }

    fn offered(&self) -> Option<&str> {
        self.draft.as_ref()?.offered.as_deref()
    }

    /// Another protocol could begin only when the body has come, which is taken by then (RFC 9110, 7.8).
    fn is_offered_behind_its_body(&self) -> bool {
        self.offered().is_some() && self.flags().offer() != Offer::Upgrade
    }

    fn offers(&self, protocol: &str) -> bool {
        let mut offered = self.offered().unwrap_or_default().split(',').map(str::trim);
        offered.any(|one| one.eq_ignore_ascii_case(protocol))
    }

    /// The connection that it goes to. To write there while a request is in work would break the
    /// protocol.
    pub fn conn(&self) -> ConnRef {
        ConnRef { connection: Arc::clone(&self.exchange().connection) }
    }

    #[inline]
    pub(crate) fn exchange(&self) -> &Arc<Exchange> {
        self.exchange.as_ref().expect("what completes a response consumes it")
    }

    #[inline]
    fn complete(self, is_text: bool, body: Payload<'_>) -> Result<()> {
        match body {
            Payload::Borrowed(body) if self.draft.is_none() => self.complete_plainly(is_text, body),
            body => self.complete_draft(is_text, body),
        }
    }

    /// With status 200 and no headers of the handler.
    #[inline]
    fn complete_plainly(mut self, is_text: bool, body: &[u8]) -> Result<()> {
        let exchange = self.exchange();
        let flags = exchange.flags();
        let closes = !flags.goes_on() || exchange.connection.service.is_draining();
        let framing = Framing::Length(body.len() as u64);
        let persistence = flags.persistence(closes);
        let lines = Lines { status: 200, framing, persistence, is_text };
        let body = if flags.head_only() { &[] } else { body };
        let wrote = exchange.start(Pieces::Pair(AnswerHead::new(lines).whole(), body));
        if let Err(error) = wrote {
            return Err(self.failed(*error));
        }
        exchange.note_bytes(body.len());
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
    fn complete_draft(mut self, is_text: bool, body: Payload<'_>) -> Result<()> {
        let status = self.status_now();
        let empty = bodyless(status);
        let framing = empty.unwrap_or(Framing::Length(body.len() as u64));
        let has_body = empty.is_none() && !self.flags().head_only();
        let body = if has_body { body } else { Payload::Borrowed(&[]) };
        let closes = self.start(is_text, framing, body)?;
        self.end_answered(Outcome::Answered { status, closes });
        Ok(())
    }

    /// Writes the head, and says whether it says that the connection closes.
    fn start(&mut self, is_text: bool, framing: Framing, body: Payload<'_>) -> Result<bool> {
        if let Some(error) = self.draft.as_mut().and_then(|draft| draft.spoiled.take()) {
            return Err(*error);
        }
        let (status, flags) = (self.status_now(), self.flags());
        let exchange = self.exchange();
        let closes = !flags.goes_on() || exchange.connection.service.is_draining();
        let persistence = match status {
            101 => Persistence::Upgrade,
            _ => flags.persistence(closes),
        };
        let lines = Lines { status, framing, persistence, is_text };
        let draft = self.draft.take().unwrap_or_else(Draft::lend);
        let exchange = self.exchange();
        // Should there be no room for it, there is for a 500 that closes as this would.
        exchange.note_flags(flags);
        let wrote = start_draft(exchange, lines, draft, body);
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
        let fields = &mut self.draft_mut().fields;
        for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
            fields.extend_from_slice(piece);
        }
    }

    #[cold]
    fn spoil(&mut self, error: Error) {
        // The first one is the one to mend.
        self.draft_mut().spoiled.get_or_insert_with(|| Box::new(error));
    }
}

impl Response {
    /// What was to answer has failed: the peer gets a 500, the connection closes, and the failure is
    /// counted ([`HttpStats::panics`](crate::http::HttpStats::panics)), as if the handler had panicked.
    pub fn fail(mut self) {
        if let Some(exchange) = self.exchange.take() {
            exchange.count_failure();
            refuse_unanswered(exchange, Refusal::Panicked, true, &self.take_kept());
        }
    }

    /// There is no answer, and the connection is closed at once.
    pub(crate) fn abort(mut self) {
        if let Some(exchange) = self.exchange.take() {
            exchange.seal();
            exchange.finish(Outcome::Lost);
        }
    }

    /// The status that no route has given it; 0: a route has the request.
    pub(crate) fn refusal(&self) -> u16 {
        let refusal = self.draft.as_ref().and_then(|draft| draft.refusal);
        refusal.map_or(0, Refusal::status)
    }

    /// Whether the code that is given it runs on this thread.
    pub(crate) fn is_inside(&self) -> bool {
        self.exchange().is_inside()
    }

    /// As [`fail`](Self::fail), inside code whose failure is counted when it returns.
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
            let closes = self.draft.as_ref().is_some_and(|draft| draft.closes);
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
    let flags = exchange.flags().persists_if(!closes && refusal == Refusal::Unanswered);
    let outcome = match refuse(&exchange, refusal, flags, fields) {
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

/// Writes a head with what the handler has drafted, and what follows it.
fn start_draft(
    exchange: &Exchange,
    lines: Lines,
    mut draft: Box<Draft>,
    body: Payload<'_>,
) -> Result<WriteStatus, Box<Error>> {
    draft.fields.extend_from_slice(b"\r\n");
    let head = AnswerHead::new(lines);
    let [head, fields] = [head.open(), &draft.fields].map(IoSlice::new);
    let length = body.len();
    let wrote = match body {
        Payload::Borrowed(body) => {
            exchange.start(Pieces::Borrowed(&[head, fields, IoSlice::new(body)]))
        }
        Payload::Owned(body) => exchange.start(Pieces::Owned(&[head, fields], body)),
    };
    draft.give_back();
    wrote.inspect(|_| exchange.note_bytes(length))
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
    const OWN: [&str; 4] = ["content-length", "transfer-encoding", "connection", "date"];
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

/// A protocol is a name, or a name and a version: "h2c", "foo/2".
fn is_token_of_protocol(byte: u8) -> bool {
    is_token(byte) || byte == b'/'
}

/// Answers in a handler's place. Says whether it says that the connection closes.
#[cold]
pub(crate) fn refuse(
    exchange: &Exchange,
    refusal: Refusal,
    flags: RequestFlags,
    fields: &[u8],
) -> Result<bool> {
    let closes = !flags.goes_on() || exchange.connection.service.is_draining();
    let (content_type, page) = error_page(refusal.status(), flags.media());
    let framing = Framing::Length(page.len() as u64);
    let lines = Lines {
        status: refusal.status(),
        framing,
        persistence: flags.persistence(closes),
        is_text: false,
    };
    let kind = format!("Content-Type: {content_type}\r\n\r\n");
    let body = if flags.head_only() { "" } else { &page };
    let head = AnswerHead::new(lines);
    let pieces = [head.open(), fields, kind.as_bytes(), body.as_bytes()].map(IoSlice::new);
    exchange.start(Pieces::Borrowed(&pieces)).map_err(|error| *error)?;
    exchange.note_bytes(body.len());
    Ok(closes)
}
