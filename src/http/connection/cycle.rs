//! What an HTTP connection does with bytes, answers and times.
//!
//! ```text
//!              ┌──────────────────────── answered ────────────────────────┐
//!              ▼                                                          │
//!   HEAD ── head, body there ──► handler ── kept the response ──► WORK ───┤
//!    │ ├─── body to come ──► COLLECT ── whole ──► handler …               │
//!    │ ├─── streamed ──────► FEED ───── whole ──► end() … WORK            │
//!    │ │                       └─ answered before that ──► DISCARD ───────┤
//!    │ └─── refused, with a body ────────────────────────► DISCARD ───────┘
//!    └───── refused for good, or the last ──► OVER
//! ```
//!
//! One request is in work at a time. While it is, nothing is read: what the peer sends ahead waits, a
//! part of it here as unconsumed input, the rest in the kernel and at the peer. So answers are in order
//! and memory is bounded. All that is counted is counted here, by the thread that runs the connection.

use super::handler::{answered, begin_other_protocol, pause_until_answered};
use super::hook::Hook;
use super::incoming::{Collect, Feed, Incoming};
use crate::http::exchange::flags::{Offer, RequestFlags};
use crate::http::exchange::request::Request;
use crate::http::exchange::response::{Response, refuse};
use crate::http::exchange::{Exchange, Outcome};
use crate::http::message::chunks::{Length, Piece};
use crate::http::message::head::{self, Head, Parsed};
use crate::http::message::refusal::Refusal;
use crate::http::service::routes::{Found, Route, StreamingFactory, WholeHandler};
use crate::http::telemetry::Timing;
use crate::http::telemetry::counters::Abort;
use crate::net::stream::output_buffer::End;
use crate::net::{Accept, Conn, ConnHandler, Reason, Timeout, TimeoutAction};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// See the head of the file.
pub(crate) enum Stage {
    Head,
    Collect(Box<Collect>),
    Feed(Box<Feed>),
    Work,
    Discard(Box<Incoming>),
    /// No requests any more: the connection is another handler's. Twice in a box, or every connection
    /// would have the room for its second pointer.
    Upgraded(Box<Box<dyn ConnHandler>>),
    Over,
}

/// How much of the bytes was taken, and whether there may be more to do with the rest.
pub(crate) struct Step {
    pub(crate) taken: usize,
    pub(crate) goes_on: bool,
}

impl Step {
    fn on(taken: usize) -> Self {
        Self { taken, goes_on: true }
    }

    pub(super) fn wait(taken: usize) -> Self {
        Self { taken, goes_on: false }
    }
}

/// Shows bytes to the handler of another protocol, if that wants any: what came with the request for it
/// is shown in the same run as its `open`, which may have closed or paused the connection.
fn pass_on(handler: &mut dyn ConnHandler, conn: &Conn, bytes: &[u8]) -> usize {
    let connection = &conn.connection;
    if connection.output.lock().state().end == End::Close {
        return bytes.len();
    }
    if bytes.is_empty() || connection.output.is_pressed() || connection.output.calls.is_paused() {
        return 0;
    }
    handler.data(conn, bytes)
}

/// One request of a connection after another.
pub(crate) struct RequestCycle {
    pub(crate) exchange: Arc<Exchange>,
    /// The same, for the next response to hold.
    spare: Option<Arc<Exchange>>,
    pub(crate) stage: Stage,
    /// By the request that is looked at.
    flags: RequestFlags,
    /// Requests so far.
    served: u32,
    /// Counted as in work by the server.
    counted: bool,
    /// Counted as in work by the connection, so that it neither idles nor is drained away.
    working: bool,
    /// A part of a head waits for its rest.
    partial: bool,
    /// No request follows this one, whatever its answer says.
    last: bool,
}

impl RequestCycle {
    pub(crate) fn new(exchange: Arc<Exchange>) -> Self {
        Self {
            exchange,
            spare: None,
            stage: Stage::Head,
            flags: RequestFlags::nothing(),
            served: 0,
            counted: false,
            working: false,
            partial: false,
            last: false,
        }
    }

    #[inline]
    pub(crate) fn step(&mut self, service: &Hook<'_>, conn: &Conn, bytes: &[u8]) -> Step {
        match &mut self.stage {
            Stage::Head => self.head(service, conn, bytes),
            Stage::Collect(_) => self.collect(service, conn, bytes),
            Stage::Feed(_) => self.feed(service, conn, bytes),
            Stage::Discard(_) => self.discard(service, conn, bytes),
            Stage::Work => pause_until_answered(conn),
            Stage::Over => Step::wait(bytes.len()),
            Stage::Upgraded(handler) => Step::wait(pass_on(&mut ***handler, conn, bytes)),
        }
    }

    // --- a request -------------------------------------------------------------------------------

    #[inline]
    fn head(&mut self, service: &Hook<'_>, conn: &Conn, bytes: &[u8]) -> Step {
        self.partial = false;
        if bytes.is_empty() || conn.connection.output.is_pressed() {
            return Step::wait(0);
        }
        self.parse_head(service, conn, bytes)
    }

    /// Not inlined: its scratch is long, and what is long on the stack takes time to be made.
    #[inline(never)]
    fn parse_head(&mut self, service: &Hook<'_>, conn: &Conn, bytes: &[u8]) -> Step {
        let mut scratch = head::scratch();
        match head::parse(bytes, &service.limits.head, &mut scratch) {
            Parsed::Complete(head) => {
                let (own, rest) = bytes.split_at(head.size);
                let body = self.request(service, conn, &head, own, rest);
                Step::on(own.len() + body)
            }
            Parsed::Partial => {
                // Empty lines are no request yet.
                self.partial = !bytes.trim_ascii_start().is_empty();
                self.flags = RequestFlags::by_part(bytes);
                if self.partial {
                    self.note_part(service, bytes);
                }
                Step::wait(0)
            }
            Parsed::Refused(refusal) => {
                self.flags = RequestFlags::by_part(bytes);
                self.note_part(service, bytes);
                self.refuse_head(service, conn, refusal);
                Step::wait(bytes.len())
            }
        }
    }

    /// Bytes that are no request, or one that does not come.
    #[cold]
    fn refuse_head(&mut self, service: &Hook<'_>, conn: &Conn, refusal: Refusal) {
        service.telemetry.counters.begun();
        self.exchange.begin();
        self.refuse_for_good(service, conn, refusal);
    }

    /// Says how many bytes of its body were taken.
    #[inline(always)] // As `ran`.
    fn request(
        &mut self,
        service: &Hook<'_>,
        conn: &Conn,
        head: &Head<'_, '_>,
        own: &[u8],
        rest: &[u8],
    ) -> usize {
        service.tally(|tally| tally.begun += 1);
        self.served = self.served.saturating_add(1);
        let persists = head.persists && self.served < service.limits.keep_alive_requests;
        self.flags = RequestFlags::by(head, persists);
        self.exchange.begin();
        let mut params = None;
        let found = service.routes.find(head, &mut params);
        let endpoint = match found {
            Found::Route(endpoint) => endpoint.entered(),
            missing => {
                service.begin_timing(None);
                return self.refuse_missing(service, conn, head, &missing);
            }
        };
        service.begin_timing(Some(endpoint));
        if service.counts_all() {
            self.note(service, head);
            if !self.begin_counting(service) {
                return self.refuse_whole(service, conn, head, Refusal::Busy, "Retry-After: 1\r\n");
            }
            self.counted = true;
        }
        let mut request =
            Request { head, params: params.as_ref(), body: &[], conn, pattern: &endpoint.pattern };
        match (&endpoint.route, head.body) {
            (Route::Whole(_), Length::Known(length)) if length > service.limits.max_body as u64 => {
                self.note(service, head);
                self.refuse_for_good(service, conn, Refusal::BodyTooLarge);
                0
            }
            (Route::Whole(handler), Length::Known(length)) if length <= rest.len() as u64 => {
                request.body = &rest[..length as usize];
                self.handle(service, &**handler, &request);
                request.body.len()
            }
            (Route::Whole(_), _) => {
                self.note(service, head);
                let incoming = Incoming::new(head.body);
                let collect = Collect { incoming, head: own.to_vec(), body: Vec::new() };
                self.stage = Stage::Collect(Box::new(collect));
                if head.awaits() {
                    self.exchange.note_flags(self.flags.with_offer(Offer::Body));
                    self.exchange.inside(|| self.exchange.ask_for_body());
                }
                self.await_body(service, conn);
                0
            }
            (Route::Streaming(factory), _) => {
                self.stream(service, &request, &**factory, None);
                0
            }
        }
    }

    #[inline(always)] // As `ran`.
    fn handle(&mut self, service: &Hook<'_>, handler: &WholeHandler, request: &Request<'_>) {
        let response = Response::new(self.lend(), self.flags).offering(request.head.upgrade);
        // One that panics after it has sent its response away leaves nothing undone.
        self.run_first(request, || handler(request, response));
        match self.exchange.leave() {
            Some(outcome) => {
                if let Outcome::Refused { .. } = outcome {
                    self.note(service, request.head);
                }
                self.conclude(service, request.conn, outcome);
            }
            None => {
                self.note(service, request.head);
                self.wait_for_answer(service);
            }
        }
    }

    /// What a response holds.
    #[inline]
    fn lend(&mut self) -> Arc<Exchange> {
        self.spare.take().unwrap_or_else(|| Arc::clone(&self.exchange))
    }

    /// Runs the code of the user that is given the response. None: it panicked.
    #[inline]
    fn run_first<R>(&mut self, request: &Request<'_>, code: impl FnOnce() -> R) -> Option<R> {
        let ran = self.exchange.run_first(|| catch_unwind(AssertUnwindSafe(code)));
        if ran.is_err() {
            // It is reported whether or not there is a log.
            self.exchange.trace(request.head.method, request.head.target, Timing::default());
        }
        self.ran(request.conn, ran)
    }

    /// Runs other code of the user. None: it panicked.
    fn run<R>(&mut self, conn: &Conn, code: impl FnOnce() -> R) -> Option<R> {
        let ran = self.exchange.run(|| catch_unwind(AssertUnwindSafe(code)));
        self.ran(conn, ran)
    }

    #[inline(always)] // It is a few instructions of each request.
    fn ran<R>(&mut self, conn: &Conn, ran: std::thread::Result<R>) -> Option<R> {
        conn.touched.set(true);
        if let Some(handed_back) = self.exchange.take_back() {
            self.spare = Some(handed_back);
        }
        match ran {
            Ok(value) => Some(value),
            Err(panic) => {
                self.last = true;
                self.exchange.count_panic(panic);
                None
            }
        }
    }

    fn await_body(&mut self, service: &Hook<'_>, conn: &Conn) {
        self.begin_work(service);
        conn.set_deadline(Some(service.limits.body_time));
        conn.touched.set(true);
    }

    fn stream(
        &mut self,
        service: &Hook<'_>,
        request: &Request<'_>,
        factory: &StreamingFactory,
        refused: Option<(Refusal, &str)>,
    ) {
        let Request { head, conn, .. } = *request;
        // The body comes before another protocol may begin (RFC 9110, 7.8).
        self.flags = self.flags.with_offer(match self.flags.offer() {
            _ if head.awaits() => Offer::Body,
            Offer::Upgrade if head.has_body() => Offer::Nothing,
            offer => offer,
        });
        let mut response = Response::new(self.lend(), self.flags).offering(head.upgrade);
        if let Some((refusal, fields)) = refused {
            response = response.refused(refusal, fields);
        }
        let made = self.run_first(request, || factory(request, response));
        let answered = self.exchange.leave();
        if !matches!(answered, Some(Outcome::Answered { .. })) {
            self.note(service, head);
        }
        let Some((to, is_wanted)) = made else {
            return match answered {
                Some(outcome) => self.conclude(service, conn, outcome),
                // Nobody takes the body, so there is no answer to wait for.
                None => self.refuse_for_good(service, conn, Refusal::Panicked),
            };
        };
        self.stage = Stage::Feed(Box::new(Feed { incoming: Incoming::new(head.body), to }));
        match answered {
            None => {
                self.await_body(service, conn);
                match is_wanted || !head.awaits() {
                    true => self.exchange.inside(|| self.exchange.ask_for_body()),
                    // Its peer is not to blame that it does not come.
                    false => conn.pause(),
                }
            }
            Some(outcome) => self.conclude(service, conn, outcome),
        }
    }

    // --- its body --------------------------------------------------------------------------------

    fn collect(&mut self, service: &Hook<'_>, conn: &Conn, bytes: &[u8]) -> Step {
        let Stage::Collect(collect) = &mut self.stage else { return Step::on(0) };
        match collect.incoming.reader.next(bytes) {
            Ok((framing, Piece::Partial)) => Step::wait(framing),
            Ok((framing, Piece::Data(data))) => {
                if collect.body.len() + data.len() > service.limits.max_body {
                    self.refuse_for_good(service, conn, Refusal::BodyTooLarge);
                    return Step::wait(bytes.len());
                }
                collect.body.extend_from_slice(data);
                collect.incoming.took(data.len());
                Step::on(framing + data.len())
            }
            Ok((framing, Piece::End)) => {
                if let Stage::Collect(collect) = core::mem::replace(&mut self.stage, Stage::Head) {
                    conn.set_deadline(None);
                    self.handle_collected(service, conn, &collect);
                }
                Step::on(framing)
            }
            Err(refusal) => {
                self.refuse_for_good(service, conn, refusal);
                Step::wait(bytes.len())
            }
        }
    }

    /// Looks at a head again that was found good. Not inlined, as [`parse_head`](Self::parse_head).
    #[inline(never)]
    fn handle_collected(&mut self, service: &Hook<'_>, conn: &Conn, collect: &Collect) {
        let mut scratch = head::scratch();
        let mut params = None;
        if let Parsed::Complete(head) =
            head::parse(&collect.head, &service.limits.head, &mut scratch)
            && let Found::Route(endpoint) = service.routes.find(&head, &mut params)
            && let Route::Whole(handler) = &endpoint.entered().route
        {
            let params = params.as_ref();
            let request = Request {
                head: &head,
                params,
                body: &collect.body,
                conn,
                pattern: &endpoint.pattern,
            };
            self.handle(service, &**handler, &request);
        }
    }

    fn feed(&mut self, service: &Hook<'_>, conn: &Conn, bytes: &[u8]) -> Step {
        let Stage::Feed(feed) = &mut self.stage else { return Step::on(0) };
        match feed.incoming.reader.next(bytes) {
            Ok((framing, Piece::Partial)) => Step::wait(framing),
            Ok((framing, Piece::Data(data))) => {
                let taken = self.feed_data(service, conn, data);
                // Once it is answered, nobody has the rest shown again.
                let answered = !matches!(self.stage, Stage::Feed(_));
                Step { taken: framing + taken, goes_on: answered || taken == data.len() }
            }
            Ok((framing, Piece::End)) => {
                if let Stage::Feed(feed) = core::mem::replace(&mut self.stage, Stage::Head) {
                    conn.set_deadline(None);
                    self.run(conn, || feed.to.end());
                    match self.exchange.leave() {
                        Some(outcome) => self.conclude(service, conn, outcome),
                        None => self.wait_for_answer(service),
                    }
                }
                Step::on(framing)
            }
            Err(refusal) => {
                self.refuse_for_good(service, conn, refusal);
                Step::wait(bytes.len())
            }
        }
    }

    /// Says how many bytes were taken.
    fn feed_data(&mut self, service: &Hook<'_>, conn: &Conn, data: &[u8]) -> usize {
        let Stage::Feed(mut feed) = core::mem::replace(&mut self.stage, Stage::Head) else {
            return 0;
        };
        let ran = self.run(conn, || feed.to.data(data).min(data.len()));
        let answered = self.exchange.leave();
        let taken = ran.unwrap_or(data.len());
        feed.incoming.took(taken);
        feed.incoming.held |= taken < data.len();
        self.stage = Stage::Feed(feed);
        match answered {
            Some(outcome) => self.conclude(service, conn, outcome),
            None if ran.is_none() => self.refuse_for_good(service, conn, Refusal::Panicked),
            None if taken < data.len() => conn.pause(),
            None => {}
        }
        taken
    }

    fn discard(&mut self, service: &Hook<'_>, conn: &Conn, bytes: &[u8]) -> Step {
        let Stage::Discard(incoming) = &mut self.stage else { return Step::on(0) };
        match incoming.reader.next(bytes) {
            Ok((framing, Piece::Partial)) => Step::wait(framing),
            Ok((framing, Piece::Data(data))) => {
                incoming.took(data.len());
                if incoming.total > service.limits.max_body as u64 {
                    self.close(conn);
                }
                Step::on(framing + data.len())
            }
            Ok((framing, Piece::End)) => {
                conn.set_deadline(None);
                self.stage = Stage::Head;
                Step::on(framing)
            }
            Err(_) => {
                // It is answered already.
                self.close(conn);
                Step::wait(bytes.len())
            }
        }
    }

    // --- its answer ------------------------------------------------------------------------------

    /// Somebody has the response.
    fn wait_for_answer(&mut self, service: &Hook<'_>) {
        self.begin_work(service);
        self.stage = Stage::Work;
    }

    /// Whether what was in work is done.
    pub(crate) fn look(&mut self, service: &Hook<'_>, conn: &Conn) {
        if let Stage::Work | Stage::Feed(_) = self.stage
            && let Some(outcome) = self.exchange.outcome()
        {
            answered(conn);
            self.conclude(service, conn, outcome);
        }
    }

    /// The request is answered, or never will be.
    #[inline(always)] // As `ran`.
    fn conclude(&mut self, service: &Hook<'_>, conn: &Conn, outcome: Outcome) {
        if let Outcome::Answered { status: 200..=299, closes: false } = outcome
            && let (Stage::Head, false, false) = (&self.stage, self.last, self.works())
        {
            service.tally(|tally| tally.successful += 1);
            service.end_timing(service.timing(), outcome.status());
            return self.exchange.clear();
        }
        self.conclude_fully(service, conn, outcome);
    }

    /// All that a request can have left.
    fn conclude_fully(&mut self, service: &Hook<'_>, conn: &Conn, outcome: Outcome) {
        self.end_work(service, outcome.is_answer());
        self.count(service, outcome, Abort::Closed);
        let goes_on = match outcome {
            Outcome::Answered { closes, .. } => !closes,
            Outcome::Refused { closes, .. } => !closes && !conn.is_draining(),
            Outcome::Upgraded => return self.upgrade(conn),
            Outcome::Unfinished | Outcome::Lost => {
                self.stage = Stage::Over;
                return conn.abort();
            }
        };
        self.exchange.clear();
        if !goes_on || self.last {
            return self.close(conn);
        }
        if let Stage::Work = self.stage {
            self.stage = Stage::Head;
        } else if let Stage::Feed(_) = self.stage
            && let Stage::Feed(feed) = core::mem::replace(&mut self.stage, Stage::Head)
        {
            conn.set_deadline(Some(service.limits.body_time));
            self.stage = Stage::Discard(Box::new(feed.incoming));
        }
    }

    fn upgrade(&mut self, conn: &Conn) {
        let Some(mut handler) = self.exchange.take_upgrade() else {
            self.stage = Stage::Over;
            return conn.abort();
        };
        begin_other_protocol(conn);
        if let Accept::Refuse(message) = handler.open(conn) {
            // If there is no room for it, there is nothing better to be done.
            let _ = conn.write(&message);
            conn.close();
        }
        self.stage = Stage::Upgraded(Box::new(handler));
    }

    /// The output has room for more of a body.
    pub(crate) fn call_writable(&mut self, service: &Hook<'_>, conn: &Conn) {
        let Some(mut hook) = self.exchange.take_writable() else { return };
        let ran = self.run(conn, &mut hook);
        self.exchange.leave();
        if ran.is_some() {
            return self.exchange.put_back_writable(hook);
        }
        // It is what would have written the body, and may have it.
        drop(hook);
        if self.exchange.outcome().is_none() {
            self.abort(service, conn, Abort::Closed);
        }
    }

    fn begin_work(&mut self, service: &Hook<'_>) {
        if !core::mem::replace(&mut self.working, true) {
            self.exchange.connection.begin_work();
        }
        if !core::mem::replace(&mut self.counted, true) {
            service.begin_work();
        }
    }

    /// Whether the request is counted anywhere as in work.
    #[inline]
    fn works(&self) -> bool {
        self.working || self.counted
    }

    /// False: as many are in work as may be, at the server or at the listener.
    fn begin_counting(&mut self, service: &Hook<'_>) -> bool {
        let origin = &self.exchange.connection.origin;
        let fits = service.begin_work();
        if fits && origin.limits_requests() && !origin.begin_request() {
            service.end_work();
            return false;
        }
        fits
    }

    fn end_work(&mut self, service: &Hook<'_>, answered: bool) {
        if core::mem::take(&mut self.working) {
            self.exchange.connection.end_work();
        }
        if core::mem::take(&mut self.counted) {
            service.end_work();
            let origin = &self.exchange.connection.origin;
            if origin.limits_requests() {
                origin.end_request(answered);
            }
        }
    }

    // --- refusals --------------------------------------------------------------------------------

    #[cold]
    fn refuse_missing(
        &mut self,
        service: &Hook<'_>,
        conn: &Conn,
        head: &Head<'_, '_>,
        missing: &Found<'_>,
    ) -> usize {
        let (refusal, fields) = match missing {
            Found::NotAllowed(allow) => (Refusal::MethodNotAllowed, allow.as_str()),
            Found::Undecodable => (Refusal::BadRequest, ""),
            Found::NotImplemented => (Refusal::NotImplemented, ""),
            _ => (Refusal::NotFound, ""),
        };
        let Some(endpoint) = &service.routes.fallback else {
            return self.refuse_whole(service, conn, head, refusal, fields);
        };
        if service.counts_all() {
            self.note(service, head);
            if !self.begin_counting(service) {
                return self.refuse_whole(service, conn, head, Refusal::Busy, "Retry-After: 1\r\n");
            }
            self.counted = true;
        }
        if let Route::Streaming(factory) = &endpoint.entered().route {
            let request =
                Request { head, params: None, body: &[], conn, pattern: &endpoint.pattern };
            self.stream(service, &request, &**factory, Some((refusal, fields)));
        }
        0
    }

    /// Refuses a request that was understood; others may follow. None of its body was taken yet.
    #[cold]
    fn refuse_whole(
        &mut self,
        service: &Hook<'_>,
        conn: &Conn,
        head: &Head<'_, '_>,
        refusal: Refusal,
        fields: &str,
    ) -> usize {
        let max = service.limits.max_body as u64;
        let too_long = matches!(head.body, Length::Known(length) if length > max);
        // The peer may or may not send a body that was not asked for.
        let uncertain = head.has_body() && (head.expects_continue || too_long);
        self.flags = self.flags.persists_if(!uncertain);
        self.note(service, head);
        if let Some(true) = self.answer_with(service, conn, refusal, fields)
            && head.has_body()
        {
            conn.set_deadline(Some(service.limits.body_time));
            self.stage = Stage::Discard(Box::new(Incoming::new(head.body)));
        }
        0
    }

    /// Refuses, and closes.
    #[cold]
    fn refuse_for_good(&mut self, service: &Hook<'_>, conn: &Conn, refusal: Refusal) {
        self.flags = self.flags.persists_if(false);
        self.answer_with(service, conn, refusal, "");
    }

    /// Answers in a handler's place. Says whether requests may follow; None: there was an answer.
    fn answer_with(
        &mut self,
        service: &Hook<'_>,
        conn: &Conn,
        refusal: Refusal,
        fields: &str,
    ) -> Option<bool> {
        let exchange = &self.exchange;
        let refused = exchange.inside(|| refuse(exchange, refusal, self.flags, fields.as_bytes()));
        let outcome = exchange.outcome();
        conn.touched.set(true);
        self.end_work(service, refused.is_ok() || outcome.is_some_and(Outcome::is_answer));
        match (refused, outcome) {
            (Ok(closes), _) => {
                self.exchange.count_refusal(refusal);
                self.ended(service, Some(refusal.status()));
                if closes {
                    self.close(conn);
                }
                return Some(!closes);
            }
            (Err(_), Some(outcome)) => {
                self.count(service, outcome, Abort::Closed);
                self.close(conn);
            }
            // Somebody is in the middle of an answer that is worth nothing now.
            (Err(_), None) => self.abort(service, conn, Abort::Closed),
        }
        None
    }

    fn close(&mut self, conn: &Conn) {
        self.stage = Stage::Over;
        conn.set_deadline(None);
        conn.close();
    }

    #[cold]
    fn abort(&mut self, service: &Hook<'_>, conn: &Conn, abort: Abort) {
        self.end_work(service, false);
        service.telemetry.counters.aborted(abort);
        self.ended(service, None);
        self.exchange.seal();
        self.stage = Stage::Over;
        conn.abort();
    }

    // --- times and ends --------------------------------------------------------------------------

    pub(crate) fn timeout(
        &mut self,
        service: &Hook<'_>,
        conn: &Conn,
        kind: Timeout,
    ) -> TimeoutAction {
        match kind {
            Timeout::Deadline => self.look_at_rate(service, conn),
            Timeout::Read | Timeout::Idle if self.partial => {
                self.partial = false;
                self.refuse_head(service, conn, Refusal::Timeout);
            }
            // Nothing but empty lines.
            Timeout::Read => self.close(conn),
            _ => return TimeoutAction::Close,
        }
        TimeoutAction::Keep
    }

    /// Whether the body comes fast enough.
    fn look_at_rate(&mut self, service: &Hook<'_>, conn: &Conn) {
        let incoming = match &mut self.stage {
            Stage::Collect(collect) => &mut collect.incoming,
            Stage::Feed(feed) => &mut feed.incoming,
            Stage::Discard(incoming) => incoming,
            _ => return,
        };
        let limits = &service.limits;
        let expected = u128::from(limits.body_rate).saturating_mul(limits.body_time.as_nanos());
        let expected = expected / 1_000_000_000;
        // What is not read is not the peer's fault, and a pause may end just before this looks again.
        let holds = conn.connection.is_held() || conn.connection.output.is_pressed();
        let held = core::mem::replace(&mut incoming.held, holds) || holds;
        let came = core::mem::take(&mut incoming.lately);
        if held || u128::from(came) >= expected {
            return conn.set_deadline(Some(limits.body_time));
        }
        match self.stage {
            Stage::Discard(_) => self.close(conn),
            _ => self.refuse_for_good(service, conn, Refusal::Timeout),
        }
    }

    pub(crate) fn peer_finished(&mut self, service: &Hook<'_>, conn: &Conn) {
        match self.stage {
            // It gets its answer.
            Stage::Work => self.last = true,
            Stage::Collect(_) | Stage::Feed(_) => {
                let outcome = self.exchange.outcome().unwrap_or(Outcome::Lost);
                self.end_work(service, outcome.is_answer());
                self.count(service, outcome, Abort::Disconnected);
                self.exchange.seal();
                self.close(conn);
            }
            _ => self.close(conn),
        }
    }

    pub(crate) fn end(&mut self, service: &Hook<'_>, reason: Reason) {
        if self.working {
            let outcome = self.exchange.outcome().unwrap_or(Outcome::Lost);
            self.end_work(service, outcome.is_answer());
            self.count(service, outcome, Abort::by(reason));
        }
        // Whoever takes a body hears of it there.
        self.exchange.end(matches!(self.stage, Stage::Feed(_)));
    }

    // --- counts and reports ----------------------------------------------------------------------

    /// Enters a request's end in the counters. `lost`: why its answer did not leave, if it did not.
    fn count(&self, service: &Hook<'_>, outcome: Outcome, lost: Abort) {
        match outcome {
            Outcome::Answered { status: 200..=299, .. } => {
                service.tally(|tally| tally.successful += 1);
            }
            Outcome::Answered { status, .. } => service.telemetry.counters.answered(status),
            Outcome::Upgraded => service.telemetry.counters.answered(101),
            Outcome::Refused { refusal, .. } => self.exchange.count_refusal(refusal),
            Outcome::Unfinished => service.telemetry.counters.aborted(Abort::Unfinished),
            Outcome::Lost => service.telemetry.counters.aborted(lost),
        }
        self.ended(service, outcome.status());
    }

    /// None: without a whole answer.
    fn ended(&self, service: &Hook<'_>, status: Option<u16>) {
        service.end_timing(self.timing(service), status);
        self.exchange.report_end(status);
    }

    /// Of the request that ends, which began in this hook or before.
    #[inline]
    fn timing(&self, service: &Hook<'_>) -> Timing {
        let timing = service.timing();
        match timing.began == 0 && service.measures() {
            true => self.exchange.timing(),
            false => timing,
        }
    }

    /// Notes what a request is that may outlive this hook, if that will be reported or measured.
    #[cold]
    fn note(&self, service: &Hook<'_>, head: &Head<'_, '_>) {
        if service.telemetry.notes() || service.measures() {
            self.exchange.trace(head.method, head.target, service.timing());
            if service.telemetry.access_log.is_some() {
                self.exchange.note_head(head);
            }
        }
    }

    /// The same as far as it can be seen in bytes that are no whole or no good head.
    #[cold]
    fn note_part(&self, service: &Hook<'_>, bytes: &[u8]) {
        if service.telemetry.notes() {
            let (method, target) = head::first_words(bytes, service.limits.head.target);
            self.exchange.trace(method, target, Timing::default());
        }
    }
}
