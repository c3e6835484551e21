//! A request and its answer, between the connection and whoever answers.
//!
//! # The problem
//!
//! A response is a value that its handler may complete at once, keep for later, or send to another
//! thread. Completed at once, it should cost neither a system call nor a notification, so that all
//! answers of a run leave together. Completed later, by anybody, the connection must hear of it, since
//! the next request waits for that. And there must be one answer, though the connection itself answers
//! too, when the body turns out to be malformed, or does not come.
//!
//! # The word
//!
//! ```text
//!   word = { status or refusal: 16, outcome: 8, phase: 8 }
//!
//!            enter                leave
//!   RESTING ───────► RUNNING ───────────► RESTING        (the connection, between its hooks)
//!      │                │
//!      │ finish         │ finish                         (whoever holds the response, once)
//!      ▼                ▼
//!     DONE, notify     DONE: the run that is on looks when it leaves
//! ```
//!
//! # Invariants
//!
//! 1. One request at a time: `begin` comes after the run has seen DONE of the one before.
//! 2. A response finishes once: it is a value, and finishing consumes it.
//! 3. DONE is seen. Finished in RUNNING, by the `leave` that is to come; in RESTING, by the run that
//!    the notification brings about.
//! 4. One head leaves for a request: whoever writes one takes `started` under the output's lock.
//! 5. What is written inside a run, on its thread, is only gathered: that run flushes it. All others
//!    write through. So bytes that are accepted leave.
//!
//! 6. A hook for the client's going is called once, if that is seen before the request is done: whoever sees it notes it
//!    and then takes the hook, whoever leaves one looks behind that for the note, both under the lock. A body that breaks
//!    off tells its taker itself, so the hook is forgotten then.
//!
//! # Orderings
//!
//! `finish` is a Release, which pairs with the Acquire of `leave`, `enter` and `outcome`: a run that
//! sees DONE sees the answer in the output, and what the response has left for it. `started` is
//! guarded by the output's lock, hence Relaxed.

pub(crate) mod body;
pub(crate) mod flags;
pub(crate) mod request;
pub(crate) mod response;

use self::flags::{Offer, RequestFlags};
use crate::error::{Error, Result};
use crate::http::message::head::Head;
use crate::http::message::refusal::Refusal;
use crate::http::telemetry::access_log::{Ended, Noted};
use crate::http::telemetry::{RequestEnd, Telemetry, Timing};
use crate::log::Record;
use crate::net::calls::Calls;
use crate::net::stream::conn::refused;
use crate::net::stream::connection::Connection;
use crate::net::stream::output_buffer::{OutputBuffer, Unwritten, Wire};
use crate::net::stream::socket::SendHalf;
use crate::net::{ConnHandler, WriteStatus};
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU32};
use crate::sys::clock;
use crate::sys::fd::{Peer, peer_of};
use core::any::Any;
use core::cell::Cell;
use core::time::Duration;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What has become of a request, as whoever held its response says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Answered with this status; more requests may follow, or not.
    Answered { status: u16, closes: bool },
    /// Answered with 101: the connection is now another handler's.
    Upgraded,
    /// The library has answered in its place; more requests may follow, or not.
    Refused { refusal: Refusal, closes: bool },
    /// The head is sent, and the body will never be whole.
    Unfinished,
    /// The connection did not take the answer.
    Lost,
}

const PHASE: u32 = 0xff;
const RESTING: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;

impl Outcome {
    /// The peer has got one.
    pub(crate) fn is_answer(self) -> bool {
        !matches!(self, Self::Unfinished | Self::Lost)
    }

    /// The status that the peer got. None: no whole answer.
    pub(crate) fn status(self) -> Option<u16> {
        match self {
            Self::Answered { status, .. } => Some(status),
            Self::Upgraded => Some(101),
            Self::Refused { refusal, .. } => Some(refusal.status()),
            Self::Unfinished | Self::Lost => None,
        }
    }

    #[inline]
    fn to_word(self) -> u32 {
        let (status, outcome) = match self {
            Self::Answered { status, closes } => (status, u32::from(closes)),
            Self::Upgraded => (101, 2),
            Self::Refused { refusal, closes } => (refusal as u16, 4 + u32::from(closes)),
            Self::Unfinished => (0, 6),
            Self::Lost => (0, 7),
        };
        u32::from(status) << 16 | outcome << 8 | DONE
    }

    #[inline(always)] // It is a few instructions of each request.
    fn from_word(word: u32) -> Option<Self> {
        if word & PHASE != DONE {
            return None;
        }
        let (status, outcome) = ((word >> 16) as u16, word >> 8 & 0xff);
        if outcome <= 1 {
            return Some(Self::Answered { status, closes: outcome == 1 });
        }
        Some(match outcome {
            2 => Self::Upgraded,
            4 | 5 => Self::Refused { refusal: Refusal::numbered(status), closes: outcome == 5 },
            6 => Self::Unfinished,
            _ => Self::Lost,
        })
    }
}

/// The word; see the head of the file.
struct Word(AtomicU32);

impl Word {
    /// By the connection: a new request, which nobody else knows yet.
    fn begin(&self) {
        self.0.store(RESTING, Relaxed);
    }

    /// The same, before the code that makes it known.
    fn enter_first(&self) {
        self.0.store(RUNNING, Relaxed);
    }

    /// By the connection, in a later run, before code that may finish the request.
    fn enter(&self) {
        // It fails if the request is done.
        let _ = self.0.compare_exchange(RESTING, RUNNING, Acquire, Relaxed);
    }

    /// By the connection, behind it. None: whoever finishes it will notify.
    #[inline(always)] // It is a few instructions of each request.
    fn leave(&self) -> Option<Outcome> {
        let word = self.0.load(Acquire);
        if word != RUNNING {
            return Outcome::from_word(word);
        }
        match self.0.compare_exchange(RUNNING, RESTING, Relaxed, Acquire) {
            Ok(_) => None,
            Err(word) => Outcome::from_word(word),
        }
    }

    fn outcome(&self) -> Option<Outcome> {
        Outcome::from_word(self.0.load(Acquire))
    }

    /// By whoever held the response. True: the connection is to be notified.
    #[must_use]
    fn finish(&self, outcome: Outcome) -> bool {
        self.0.swap(outcome.to_word(), AcqRel) == RESTING
    }

    /// The same on the thread of the run that is on.
    #[inline]
    fn finish_inside(&self, outcome: Outcome) {
        self.0.store(outcome.to_word(), Release);
    }
}

/// What is known of a request, for its end.
struct Trace {
    /// Empty: not known, as in a request that is malformed.
    method: String,
    /// Likewise.
    target: String,
    /// When it began, by the clock.
    began: u64,
    /// Whether, and for which route, its time is measured.
    timing: Timing,
    /// For the access log.
    noted: Option<Noted>,
    /// How many bytes of the body of its answer were sent.
    bytes: u64,
}

/// What waits for the end of the request, and for the connection.
struct Left {
    late: Late,
    trace: Option<Box<Trace>>,
    /// Called once, if the client goes before it has its answer.
    gone: Option<Box<dyn FnOnce() + Send>>,
}

/// The same, as whoever answers and the connection share it.
struct Leavings(Mutex<Left>);

impl Leavings {
    fn new() -> Self {
        Self(Mutex::new(Left { late: Late::Nothing, trace: None, gone: None }))
    }

    fn lock(&self) -> impl core::ops::DerefMut<Target = Left> + '_ {
        // Nothing under this lock panics.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn exchange_late(&self, new: Late) -> Late {
        core::mem::replace(&mut self.lock().late, new)
    }

    fn take_gone(&self) -> Option<Box<dyn FnOnce() + Send>> {
        self.lock().gone.take()
    }

    fn tell_gone(&self) {
        if let Some(hook) = self.take_gone() {
            hook();
        }
    }

    /// See [`Exchange::on_gone`]; `has_left`: whether the connection has noted that the client has.
    fn on_gone(&self, hook: Box<dyn FnOnce() + Send>, has_left: impl FnOnce() -> bool) {
        let mut left = self.lock();
        let has_ended = matches!(left.late, Late::Ended);
        let before = left.gone.replace(hook);
        drop(left);
        drop(before);
        // Whoever has looked for a hook in vain has noted before that why; the lock orders that.
        if has_ended || has_left() {
            self.tell_gone();
        }
    }

    /// See [`Exchange::end`].
    fn end(&self, is_told: bool) {
        drop(self.exchange_late(Late::Ended));
        if is_told {
            return drop(self.take_gone());
        }
        self.tell_gone();
    }
}

/// What a response leaves for its connection.
enum Late {
    Nothing,
    /// Called when the output has fallen.
    Writable(Box<dyn FnMut() + Send>),
    /// Takes the connection over.
    Upgrade(Box<dyn ConnHandler>),
    /// The connection has ended: nothing is left any more.
    Ended,
}

thread_local! {
    /// Which exchange's code runs on this thread: its address.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
    /// What a response that was completed there has held, for the next one.
    static HANDED_BACK: Cell<Option<Arc<Exchange>>> = const { Cell::new(None) };
}

/// Whether code of the user that a request has runs on this thread.
pub(crate) fn is_inside_any() -> bool {
    INSIDE.get() != 0
}

/// Whether the code that runs on this thread has just dropped its response without an answer.
#[cold]
pub(crate) fn is_unanswered_here() -> bool {
    let Ok(Some(exchange)) = HANDED_BACK.try_with(Cell::take) else { return false };
    let refused = Outcome::Refused { refusal: Refusal::Unanswered, closes: false }.to_word();
    let closed = Outcome::Refused { refusal: Refusal::Unanswered, closes: true }.to_word();
    let word = exchange.outcome().map(Outcome::to_word);
    let _ = HANDED_BACK.try_with(|handed_back| handed_back.set(Some(exchange)));
    word == Some(refused) || word == Some(closed)
}

/// Restores what ran outside.
struct Inside(usize);

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(self.0));
    }
}

/// See the head of the file. One for each connection.
pub(crate) struct Exchange {
    pub(crate) connection: Arc<Connection>,
    /// Where failures of whoever answers are counted, though the connection may be gone.
    telemetry: Arc<Telemetry>,
    word: Word,
    /// The head of an answer to this request is on its way.
    started: AtomicBool,
    /// What the request says about its answer, for whoever holds the response.
    flags: AtomicU8,
    /// `Late::Writable` is to be called though the output has not fallen.
    due: AtomicBool,
    late: Leavings,
    /// There may be something in it.
    left: AtomicBool,
}

impl Exchange {
    pub(crate) fn new(connection: Arc<Connection>, telemetry: Arc<Telemetry>) -> Self {
        Self {
            connection,
            telemetry,
            word: Word(AtomicU32::new(RESTING)),
            started: AtomicBool::new(false),
            flags: AtomicU8::new(0),
            due: AtomicBool::new(false),
            late: Leavings::new(),
            left: AtomicBool::new(false),
        }
    }

    // --- by the connection -----------------------------------------------------------------------

    pub(crate) fn begin(&self) {
        self.started.store(false, Relaxed);
        self.word.begin();
    }

    /// Before there is a response.
    #[inline]
    pub(crate) fn note_flags(&self, flags: RequestFlags) {
        self.flags.store(flags.to_bits(), Relaxed);
    }

    /// By whoever holds the response.
    #[inline]
    pub(crate) fn flags(&self) -> RequestFlags {
        // Relaxed: it was noted before there was a response, and whatever hands that on orders it.
        RequestFlags::from_bits(self.flags.load(Relaxed))
    }

    /// No answer begins any more, whoever has the response. If the client goes, that is told by what has led to this.
    pub(crate) fn seal(&self) {
        self.connection.output.change(|_| self.started.store(true, Relaxed));
        self.forget_gone();
    }

    /// Runs code of the user that may finish the request.
    #[inline]
    pub(crate) fn run<R>(&self, code: impl FnOnce() -> R) -> R {
        self.word.enter();
        self.inside(code)
    }

    /// The same for the code that makes the request known.
    #[inline(always)] // It is a few instructions of each request.
    pub(crate) fn run_first<R>(&self, code: impl FnOnce() -> R) -> R {
        self.word.enter_first();
        self.inside(code)
    }

    /// After code that may have completed a response: what that has held. To count a reference up and
    /// down for each request takes longer than to hand it to and fro.
    #[inline(always)] // It is a few instructions of each request.
    pub(crate) fn take_back(&self) -> Option<Arc<Self>> {
        let handed_back = HANDED_BACK.try_with(Cell::take).ok()??;
        (handed_back.address() == self.address()).then_some(handed_back)
    }

    /// Runs code whose writes are gathered.
    #[inline(always)] // It is a few instructions of each request.
    pub(crate) fn inside<R>(&self, code: impl FnOnce() -> R) -> R {
        let _outside = Inside(INSIDE.replace(self.address()));
        code()
    }

    /// After [`run`](Self::run). None: the request is in work; who finishes it notifies.
    #[inline(always)] // It is a few instructions of each request.
    pub(crate) fn leave(&self) -> Option<Outcome> {
        self.word.leave()
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.word.outcome()
    }

    /// Takes the handler that an upgrade has left.
    pub(crate) fn take_upgrade(&self) -> Option<Box<dyn ConnHandler>> {
        match self.late.exchange_late(Late::Nothing) {
            Late::Upgrade(handler) => Some(handler),
            _ => None,
        }
    }

    /// Whether the hook for room is to be called at once.
    pub(crate) fn take_due(&self) -> bool {
        // Acquire: pairs with the Release in `set_writable`.
        self.due.swap(false, Acquire)
    }

    pub(crate) fn take_writable(&self) -> Option<Box<dyn FnMut() + Send>> {
        let late = &mut self.lock().late;
        match core::mem::replace(late, Late::Nothing) {
            Late::Writable(hook) => Some(hook),
            other => {
                *late = other;
                None
            }
        }
    }

    /// After a call, unless there is another one already.
    pub(crate) fn put_back_writable(&self, hook: Box<dyn FnMut() + Send>) {
        let late = &mut self.lock().late;
        if matches!(*late, Late::Nothing) {
            *late = Late::Writable(hook);
        }
    }

    /// Drops what the request has left.
    #[inline(always)] // As `leave`.
    pub(crate) fn clear(&self) {
        // Relaxed: it was set before the request was done, which orders it.
        if self.left.load(Relaxed) {
            self.left.store(false, Relaxed);
            drop(self.late.exchange_late(Late::Nothing));
            drop(self.take_trace());
            self.forget_gone();
        }
    }

    /// Notes what the request is, for its end. That it began is noted once.
    #[cold]
    pub(crate) fn trace(&self, method: &str, target: &str, timing: Timing) {
        self.left.store(true, Relaxed);
        let (method, target) = (method.into(), target.into());
        let trace = &mut self.lock().trace;
        if let Some(trace) = trace {
            (trace.method, trace.target) = (method, target);
            trace.timing = if timing.began == 0 { trace.timing } else { timing };
            return;
        }
        let began = if timing.began == 0 { clock::now() } else { timing.began };
        *trace = Some(Box::new(Trace { method, target, began, timing, noted: None, bytes: 0 }));
    }

    /// Notes what the access log says of a request that is noted.
    #[cold]
    pub(crate) fn note_head(&self, head: &Head<'_, '_>) {
        if let Some(trace) = &mut self.lock().trace {
            trace.noted.get_or_insert_with(|| Noted::of(head));
        }
    }

    /// So many bytes of the body of its answer are sent.
    #[inline]
    pub(crate) fn note_bytes(&self, bytes: usize) {
        if self.telemetry.access_log.is_some()
            && let Some(trace) = &mut self.lock().trace
        {
            trace.bytes += bytes as u64;
        }
    }

    fn take_trace(&self) -> Option<(Box<Trace>, Duration)> {
        let trace = self.lock().trace.take()?;
        let time = Duration::from_nanos(clock::now().saturating_sub(trace.began));
        Some((trace, time))
    }

    /// What times the request, if it was noted.
    #[cold]
    pub(crate) fn timing(&self) -> Timing {
        self.lock().trace.as_ref().map_or_else(Timing::default, |trace| trace.timing)
    }

    /// What is known of the request, for the log: its method and its path, empty if there is none.
    #[cold]
    fn traced(&self) -> (String, String) {
        let left = self.lock();
        left.trace.as_ref().map_or_else(Default::default, |trace| {
            let path = trace.target.split('?').next().unwrap_or_default();
            (trace.method.clone(), path.to_owned())
        })
    }

    /// Says in the log which request it is, as far as that is known.
    fn name(&self, record: &mut Record) {
        let (method, path) = self.traced();
        if !method.is_empty() {
            record.with("method", method).with("path", path);
        }
    }

    /// Counts that it was answered in a handler's place, or for want of an answer.
    #[cold]
    pub(crate) fn count_refusal(&self, refusal: Refusal) {
        self.telemetry.refused(refusal, &self.connection.peer, |record| self.name(record));
    }

    /// Counts that code of the user has panicked.
    #[cold]
    pub(crate) fn count_panic(&self, panic: Box<dyn Any + Send>) {
        self.telemetry.panicked(panic, &self.connection.peer, |record| self.name(record));
    }

    /// Tells whoever wants to know of ends. None: no whole answer has left. What was noted is forgotten.
    pub(crate) fn report_end(&self, status: Option<u16>) {
        let trace = if self.left.load(Relaxed) { self.take_trace() } else { None };
        if self.telemetry.reports_ends()
            && let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.report(&trace, status)))
        {
            self.count_panic(panic);
        }
    }

    fn report(&self, trace: &Option<(Box<Trace>, Duration)>, status: Option<u16>) {
        let Telemetry { on_end, access_log, log, .. } = &*self.telemetry;
        let (method, target, duration) = match trace {
            Some((trace, time)) => (&*trace.method, &*trace.target, *time),
            None => ("", "", Duration::ZERO),
        };
        let peer = &self.connection.peer;
        if let Some(access_log) = access_log {
            let trace = trace.as_ref().map(|(trace, _)| trace);
            let noted = trace.and_then(|trace| trace.noted.as_ref());
            let bytes = trace.map_or(0, |trace| trace.bytes);
            access_log.write(log, &Ended { peer, method, target, noted, status, bytes, duration });
        }
        if let Some(hook) = on_end {
            self.inside(|| hook(&RequestEnd { method, target, status, duration, peer }));
        }
    }

    /// The connection has ended; whether whoever works for its client is told otherwise.
    pub(crate) fn end(&self, is_told: bool) {
        self.late.end(is_told);
    }

    /// The client has gone, or sends no more: whoever works for it is told, once.
    pub(crate) fn tell_gone(&self) {
        self.late.tell_gone();
    }

    fn forget_gone(&self) {
        drop(self.late.take_gone());
    }

    fn lock(&self) -> impl core::ops::DerefMut<Target = Left> + '_ {
        self.late.lock()
    }

    // --- by whoever answers ----------------------------------------------------------------------

    fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    /// The calling thread is in a run of this connection.
    #[inline]
    pub(crate) fn is_inside(&self) -> bool {
        INSIDE.get() == self.address()
    }

    /// Writes the head of an answer, and what follows it, as one.
    ///
    /// # Errors
    /// [`Error::Stale`] if the request is answered already, or the connection gone; otherwise as
    /// [`ConnRef::write`](crate::net::ConnRef::write).
    #[inline]
    pub(crate) fn start(&self, pieces: Pieces<'_>) -> Result<WriteStatus, Box<Error>> {
        self.write_as(|output| {
            if self.started.load(Relaxed) {
                return Err(Unwritten::Closed);
            }
            pieces.write(output)?;
            self.started.store(true, Relaxed);
            Ok(())
        })
    }

    /// Asks a peer that waits for that to send its body, unless it was asked, or is answered already.
    pub(crate) fn ask_for_body(&self) {
        if self.flags().offer() != Offer::Body {
            return;
        }
        let asked = self.write_as(|output| {
            // Relaxed: guarded by the output's lock, as `started` is.
            let offers =
                self.flags.fetch_and(!RequestFlags::BODY, Relaxed) & RequestFlags::BODY != 0;
            match offers && !self.started.load(Relaxed) {
                true => output.gather(b"HTTP/1.1 100 Continue\r\n\r\n"),
                false => Ok(()),
            }
        });
        // A peer that does not take it will not send a body either.
        let _ = asked;
    }

    /// Writes more of an answer.
    pub(crate) fn write(&self, pieces: Pieces<'_>) -> Result<WriteStatus> {
        self.write_as(|output| pieces.write(output)).map_err(|error| *error)
    }

    /// The error is in a box, since it is long, and what is answered well would be moved with its room.
    #[inline]
    fn write_as<W>(&self, write: W) -> Result<WriteStatus, Box<Error>>
    where
        W: FnOnce(&mut OutputBuffer<SendHalf>) -> Result<(), Unwritten>,
    {
        let connection = &*self.connection;
        if self.is_inside() {
            let (written, pressed) = connection.output.change(write);
            written.map_err(|unwritten| boxed(connection, unwritten))?;
            return Ok(if pressed { WriteStatus::AboveHighMark } else { WriteStatus::Queued });
        }
        self.write_from_elsewhere(write)
    }

    #[inline(never)]
    fn write_from_elsewhere<W>(&self, write: W) -> Result<WriteStatus, Box<Error>>
    where
        W: FnOnce(&mut OutputBuffer<SendHalf>) -> Result<(), Unwritten>,
    {
        if self.connection.is_forked() {
            return Err(Box::new(Error::Forked));
        }
        let wrote = crate::net::stream::conn::write(&self.connection, None, |output| {
            write(output)?;
            output.flush();
            Ok(())
        });
        wrote.map_err(Box::new)
    }

    /// By what has held it, and holds it no more.
    #[inline]
    pub(crate) fn finish(self: Arc<Self>, outcome: Outcome) {
        if self.is_inside() {
            self.word.finish_inside(outcome);
            let _ = HANDED_BACK.try_with(|handed_back| handed_back.set(Some(self)));
        } else if self.word.finish(outcome) {
            self.connection.call(Calls::NOTIFY);
        }
    }

    /// What was to answer, on whatever thread, has failed.
    #[cold]
    pub(crate) fn count_failure(&self) {
        self.telemetry.failed(&self.connection.peer, |record| self.name(record));
    }

    /// Before [`finish`](Self::finish) with [`Outcome::Upgraded`].
    pub(crate) fn leave_upgrade(&self, handler: Box<dyn ConnHandler>) {
        self.leave_late(Late::Upgrade(handler));
    }

    /// Has `hook` called when the output has fallen, or soon if it does not press.
    pub(crate) fn set_writable(&self, hook: Box<dyn FnMut() + Send>) {
        if self.connection.is_forked() {
            // Whoever held the lock in the parent holds it here for ever.
            return;
        }
        self.leave_late(Late::Writable(hook));
        // Whoever looked for a hook in vain has seen the output fall before; the lock orders that.
        if !self.connection.output.is_pressed() {
            self.call_soon();
        }
    }

    /// Has `hook` called once, by any thread, if the client goes before it has its answer; now, if it has gone. It neither
    /// waits nor panics.
    pub(crate) fn on_gone(&self, hook: Box<dyn FnOnce() + Send>) {
        if self.connection.is_forked() {
            // As above.
            return;
        }
        self.left.store(true, Relaxed);
        self.late.on_gone(hook, || self.has_client_left());
    }

    /// The connection has seen that the client sends no more.
    pub(crate) fn has_client_left(&self) -> bool {
        self.connection.peer_left.load(Relaxed)
    }

    /// Whether nobody is there for the answer any more, as far as the kernel knows now.
    pub(crate) fn is_client_gone(&self) -> bool {
        let Ok(output) = self.connection.reach() else { return true };
        let peer = output.lock().wire().map_or(Peer::Gone, |wire| peer_of(wire.as_fd()));
        let half_open = self.connection.origin.limits.allow_half_open;
        peer == Peer::Gone || peer == Peer::Finished && !half_open
    }

    fn leave_late(&self, new: Late) {
        self.left.store(true, Relaxed);
        let mut left = self.lock();
        let dropped = match left.late {
            Late::Ended => new,
            _ => core::mem::replace(&mut left.late, new),
        };
        // Code of the user may run here, so not under the lock.
        drop(left);
        drop(dropped);
    }

    /// Has the hook called again soon.
    pub(crate) fn call_soon(&self) {
        // Release: pairs with the Acquire in `take_due`.
        self.due.store(true, Release);
        self.connection.call(Calls::NOTIFY);
    }
}

#[cold]
fn boxed(connection: &Connection, unwritten: Unwritten) -> Box<Error> {
    Box::new(refused(connection, unwritten))
}

/// What is written as one.
pub(crate) enum Pieces<'a> {
    Pair(&'a [u8], &'a [u8]),
    Borrowed(&'a [IoSlice<'a>]),
    /// With a last piece that need not be copied.
    Owned(&'a [IoSlice<'a>], Vec<u8>),
}

impl Pieces<'_> {
    #[inline]
    fn write<W: Wire>(self, output: &mut OutputBuffer<W>) -> Result<(), Unwritten> {
        match self {
            Self::Pair(first, second) => output.gather_pair(first, second),
            Self::Borrowed(pieces) => output.gather_vectored(pieces),
            Self::Owned(pieces, last) => output.gather_owned(pieces, last),
        }
    }
}

/// One model per race. The connection's slot is a flag with a condition variable, which keeps a poke of a
/// running slot as the slot word does (its own models show that).
#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | an HTTP answer against the run that waits | `finish` Relaxed, or its old phase not looked at | an answer that is done cannot be seen, or nobody is notified |
    //! | a hook for the client's going against what sees that, and against the connection's end | `has_left` asked before the hook is left, or the end not looked for | the hook is never called |

    use super::*;
    use crate::sync::Condvar;
    use loom::thread;

    #[derive(Default)]
    struct Shared {
        word: Option<Word>,
        /// Stands for the answer in the output, and what the response has left.
        answer: AtomicU32,
        notified: Mutex<bool>,
        changed: Condvar,
    }

    impl Shared {
        fn new() -> Arc<Self> {
            Arc::new(Self { word: Some(Word(AtomicU32::new(RESTING))), ..Self::default() })
        }

        fn word(&self) -> &Word {
            self.word.as_ref().unwrap()
        }

        /// By whoever holds the response.
        fn answer(&self) {
            self.answer.store(1, Relaxed);
            if self.word().finish(Outcome::Answered { status: 200, closes: false }) {
                *self.notified.lock().unwrap() = true;
                self.changed.notify_one();
            }
        }

        fn wait_for_notification(&self) {
            let mut notified = self.notified.lock().unwrap();
            while !*notified {
                notified = self.changed.wait(notified).unwrap();
            }
        }

        #[track_caller]
        fn check(&self, outcome: Option<Outcome>) {
            assert_eq!(outcome, Some(Outcome::Answered { status: 200, closes: false }));
            assert_eq!(self.answer.load(Relaxed), 1, "what is done can be seen");
        }
    }

    /// Goal: an answer by another thread, while the handler runs or after it, is seen by the run or
    /// brings a notification (invariant 3). Method: a connection that would wait for ever.
    #[test]
    fn an_answer_is_seen_by_the_run_or_notified() {
        loom::model(|| {
            let shared = Shared::new();
            shared.word().enter_first();
            let answering = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.answer())
            };
            match shared.word().leave() {
                Some(outcome) => shared.check(Some(outcome)),
                None => {
                    shared.wait_for_notification();
                    shared.check(shared.word().outcome());
                }
            }
            answering.join().unwrap();
        });
    }

    /// Goal: the same when the answer meets a later run of the connection, a part of a body for
    /// example. Method: a run that begins and ends beside it.
    #[test]
    fn an_answer_beside_a_later_run_is_not_lost() {
        loom::model(|| {
            let shared = Shared::new();
            let answering = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.answer())
            };
            shared.word().enter();
            match shared.word().leave() {
                Some(outcome) => shared.check(Some(outcome)),
                None => {
                    shared.wait_for_notification();
                    shared.check(shared.word().outcome());
                }
            }
            answering.join().unwrap();
        });
    }

    /// What `act` does beside a thread that leaves a hook: how often that is called. The flag is the connection's.
    fn calls_beside(acts: &[fn(&Leavings, &AtomicBool)]) -> usize {
        let calls = Arc::new(AtomicU32::new(0));
        let shared = Arc::new((Leavings::new(), AtomicBool::new(false)));
        let others: Vec<_> = acts
            .iter()
            .map(|&act| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || act(&shared.0, &shared.1))
            })
            .collect();
        let count = Arc::clone(&calls);
        let hook = Box::new(move || {
            count.fetch_add(1, Relaxed);
        });
        shared.0.on_gone(hook, || shared.1.load(Relaxed));
        others.into_iter().for_each(|other| other.join().unwrap());
        calls.load(Relaxed) as usize
    }

    /// As the connection does that sees the client's going.
    fn goes(leavings: &Leavings, peer_left: &AtomicBool) {
        if !peer_left.swap(true, Relaxed) {
            leavings.tell_gone();
        }
    }

    fn ends(leavings: &Leavings, _: &AtomicBool) {
        leavings.end(false);
    }

    /// Goal: a hook for the client's going is called once, whenever it is left (invariant 6). Method: what sees the going,
    /// the connection's end, and both, beside the thread that leaves it.
    #[test]
    fn a_hook_for_the_clients_going_is_called_once() {
        for acts in [&[goes as fn(&Leavings, &AtomicBool)][..], &[ends], &[goes, ends]] {
            loom::model(move || assert_eq!(calls_beside(acts), 1));
        }
    }
}
