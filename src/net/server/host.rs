//! A server whose connections' events a completion queue brings.
//!
//! # The problem
//!
//! Hooks run on threads of the pool. A host with an interpreter's lock, or a loop that must stay in
//! charge, wants what they would be called with in batches, on threads of its own, and answers later. All
//! the while a connection's events must come in order and to one thread at a time, and neither a slow
//! host nor a fast peer may make memory grow.
//!
//! # The shape
//!
//! The handler of a *hosted* connection turns hooks into *events*. One event of a connection is *out*
//! at a time: it lies in the server's outbox, or a completion queue has brought it. What happens meanwhile is
//! kept in the connection's *ledger*, as bits, and as one read of bytes that the peer has sent ahead. When
//! the event is completed the ledger gives the next one.
//!
//! ```text
//!    hook (pool) ──► ledger: nothing out? ──► outbox ──► completion queue ──► completed ──┐
//!                       │ something out                                                  │
//!                       └──► bits, bytes ahead ◄──────── the next one ────────────────────┘
//! ```
//!
//! | hosted | the ledger | the connection |
//! |---|---|---|
//! | IDLE | nothing out, nothing due | as any other |
//! | OUT | an event is out | reads on, is not idle, is not closed by a drain |
//! | FULL | there are bytes ahead, or the event shows what was left of one before, or that is on its way back | reads no more |
//!
//! In the common case, a peer that waits for its answer, a completion touches no slot and wakes no
//! thread of the pool: `hosted` becomes IDLE, and the next bytes find it so. What the host did not
//! consume goes back into the connection's input, by a notification, so that all that the stream
//! layer promises about unconsumed bytes holds here too.
//!
//! # Invariants
//!
//! 1. One event of a connection is out at most: `out` is set and cleared under the ledger's lock, and
//!    who clears it takes the next one in the same step.
//! 2. What is due has an event that is out: so it comes when that is completed, which dropping does.
//! 3. FULL is left by the completion of the event, or the one that takes what was read ahead, and that has the connection
//!    run. The connection sets FULL on the thread that reads, so nothing is read beyond that: and a host that takes
//!    parts, with a pause after each, has no more read than it has taken.
//! 4. `Closed` is the last event, and comes once: whoever asked for it hears of every connection.
//! 5. No lock is held while code of the user runs, and the ledger's never while the outbox's is.
//!
//! # Orderings
//!
//! `hosted` changes under the ledger's lock. A run of the connection reads it without: it sees its own
//! OUT and FULL; IDLE may come late, which matters to a drain alone, hence the barrier and the call.

use super::Server;
use super::settings::ServerBuilder;
use crate::error::{Error, Result};
use crate::net::calls::Calls;
use crate::net::stream::conn::{Admission, Answer, Conn, ConnHandler, ConnRef};
use crate::net::stream::connection::Hosted;
use crate::net::stream::status::{self, Reason, Timeout, TimeoutAction};
use crate::queue::Outbox;
use crate::sync::Mutex;
use core::fmt;
use core::ops::{BitOr, BitOrAssign};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

// --- what a host sees ------------------------------------------------------------------------------

/// Kinds of events that a host wants besides [`ConnEventKind::Data`]. For others the connection does
/// what the hooks of a [`ConnHandler`] do by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wanted(u32);

impl Wanted {
    /// [`ConnEventKind::Opened`].
    pub const OPENED: Wanted = Wanted(1);
    /// [`ConnEventKind::Finished`].
    pub const FINISHED: Wanted = Wanted(1 << 1);
    /// [`ConnEventKind::Writable`].
    pub const WRITABLE: Wanted = Wanted(1 << 2);
    /// [`ConnEventKind::Written`].
    pub const WRITTEN: Wanted = Wanted(1 << 3);
    /// [`ConnEventKind::TimedOut`].
    pub const TIMED_OUT: Wanted = Wanted(1 << 4);
    /// [`ConnEventKind::Draining`].
    pub const DRAINING: Wanted = Wanted(1 << 5);
    /// [`ConnEventKind::Closed`].
    pub const CLOSED: Wanted = Wanted(1 << 6);
    /// Nothing but data.
    pub const NONE: Wanted = Wanted(0);
    /// Everything.
    pub const ALL: Wanted = Wanted((1 << 7) - 1);

    /// Whether all of `other` is among them.
    #[must_use]
    pub fn has(self, other: Wanted) -> bool {
        self.0 & other.0 == other.0
    }

    /// As a number, for a host in another language.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The inverse of [`bits`](Self::bits). None: there are bits that stand for nothing.
    #[must_use]
    pub fn from_bits(bits: u32) -> Option<Self> {
        (bits & !Self::ALL.0 == 0).then_some(Self(bits))
    }
}

impl BitOr for Wanted {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Wanted {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// What has happened to a connection: the hooks of a [`ConnHandler`] as data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnEventKind {
    /// It is there. It may be [refused](ConnEvent::refuse).
    Opened,
    /// There are [bytes](ConnEvent::bytes). All of them are consumed, or [as many as one
    /// says](ConnEvent::consume); the rest comes again, followed by more.
    Data,
    /// The peer sends no more. Afterwards the connection is closed by itself, when no request of it is in work and
    /// everything is sent, unless it is [allowed to be half open](ServerBuilder::allow_half_open).
    Finished,
    /// The output pressed, and has fallen to the low mark.
    Writable,
    /// A tracked write with this token has been given to the kernel.
    Written(u64),
    /// A time is over. Unwanted, or if one does not [keep](ConnEvent::keep) it, the connection is
    /// closed at once.
    TimedOut(Timeout),
    /// The server drains.
    Draining,
    /// The end, and its last event.
    Closed(Reason),
}

/// An event that a completion queue has brought. The connection's next event comes after this one was *completed*, which
/// dropping it does. It may be kept for as long as one likes, and dropped by any thread.
pub struct ConnEvent {
    peer: Arc<Peer>,
    what: What,
}

struct What {
    kind: ConnEventKind,
    bytes: Vec<u8>,
    consumed: usize,
    decision: Option<Decision>,
}

/// An answer that is more than "done".
enum Decision {
    Keep,
    Refuse(Vec<u8>),
    Fail,
}

impl ConnEvent {
    /// What has happened.
    #[must_use]
    pub fn kind(&self) -> ConnEventKind {
        self.what.kind
    }

    /// What has arrived, for [`ConnEventKind::Data`]; else nothing.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.what.bytes
    }

    /// To what. Writes go to the peer at once, also before the event is completed.
    #[must_use]
    pub fn conn(&self) -> &ConnRef {
        self.peer.conn()
    }

    /// As [`Conn::admit`]: begins a request that counts as in work until its admission is dropped, which
    /// may be long after the event is completed. None: as many are in work as its listener allows; then
    /// the busy message has been written instead.
    pub fn admit(&self) -> Option<Admission> {
        self.conn().admit()
    }

    /// Of the bytes the first so many are consumed. If this is never said, all are.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are not so many; then nothing has changed.
    pub fn consume(&mut self, count: usize) -> Result<()> {
        if count > self.bytes().len() {
            let allowed = format!("at most {}, as many as there are", self.bytes().len());
            return Err(Error::invalid("consumed", count, allowed));
        }
        self.what.consumed = count;
        Ok(())
    }

    /// A connection whose time was over goes on; the time begins anew. For other kinds nothing.
    pub fn keep(&mut self) {
        self.what.decision = Some(Decision::Keep);
    }

    /// What handles it has failed: the connection is closed at once, with [`Reason::Panicked`]. At its end,
    /// that is counted in [`ServerStats::panics_in_close`](crate::net::ServerStats::panics_in_close).
    pub fn fail(&mut self) {
        self.what.decision = Some(Decision::Fail);
    }

    /// A connection that was opened is not wanted: it is sent this and closed, with
    /// [`Reason::Refused`]. For other kinds nothing.
    pub fn refuse(&mut self, message: impl Into<Vec<u8>>) {
        self.what.decision = Some(Decision::Refuse(message.into()));
    }
}

impl Drop for ConnEvent {
    fn drop(&mut self) {
        // A forked child must not touch the parent's connections.
        if !self.peer.conn().connection.is_forked() {
            self.peer.complete(&mut self.what);
        }
    }
}

impl fmt::Debug for ConnEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ConnEvent");
        debug.field("kind", &self.kind()).field("conn", self.conn());
        debug.field("bytes", &self.bytes().len()).finish()
    }
}

impl ServerBuilder {
    /// Serves for a completion queue, and gives what it is to listen to.
    pub(crate) fn serve_to_host(self, wanted: Wanted) -> Result<(Server, Arc<Host>)> {
        let host = Arc::new(Host { outbox: Outbox::new() });
        let (made, ended) = (Arc::clone(&host), Arc::clone(&host));
        let server = self.serve(move |_| made.handler(wanted))?;
        server.when_over(move || ended.outbox.end());
        server.set_host(&host);
        Ok((server, host))
    }
}

/// What the connections of a server share whose events a completion queue brings.
pub(crate) struct Host {
    pub(crate) outbox: Outbox<ConnEvent>,
}

impl Host {
    /// What a connection is given to, so that what happens to it is told here.
    pub(crate) fn handler(self: &Arc<Self>, wanted: Wanted) -> impl ConnHandler + use<> {
        Recorder::new(self, wanted)
    }
}

// --- the ledger ------------------------------------------------------------------------------------

/// What has happened to a connection and was not reported yet.
struct Ledger {
    wanted: Wanted,
    out: bool,
    /// Bytes that the host has not consumed, followed by what was read ahead.
    input: Vec<u8>,
    /// Some of the input was never shown.
    fresh: bool,
    /// The host has left bytes of the last event that had some.
    has_left: bool,
    due: Due,
    written: VecDeque<u64>,
    timeout: Option<Timeout>,
    /// A time was over, and the host has not said what is to be done.
    timing: bool,
    closed: Option<Reason>,
    /// It is about to end: only the end is reported any more.
    ending: bool,
    /// What the next notification brings the connection.
    answer: Option<Answer>,
}

/// What is reported without anything to add.
#[derive(Default)]
struct Due {
    opened: bool,
    writable: bool,
    finished: bool,
    draining: bool,
}

/// What is to be done next.
#[derive(Debug, PartialEq)]
enum Step {
    /// Hand this out.
    Emit(ConnEventKind, Vec<u8>),
    /// Have the connection run, and take its answer.
    Notify,
    /// It has ended, and all was reported.
    Leave,
    Rest,
}

impl Ledger {
    fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            out: false,
            input: Vec::new(),
            fresh: false,
            has_left: false,
            due: Due::default(),
            written: VecDeque::new(),
            timeout: None,
            timing: false,
            closed: None,
            ending: false,
            answer: None,
        }
    }

    /// Bytes have arrived.
    fn arrive(&mut self, bytes: &[u8]) -> Step {
        if self.ending {
            return Step::Rest;
        }
        self.input.extend_from_slice(bytes);
        self.fresh = true;
        self.go_on()
    }

    /// Something has happened.
    fn note(&mut self, note: impl FnOnce(&mut Self)) -> Step {
        if !self.ending {
            note(self);
        }
        self.go_on()
    }

    /// The event that was out is completed, with these bytes left.
    fn complete(&mut self, kind: ConnEventKind, left: Vec<u8>) -> Step {
        self.out = false;
        if kind == ConnEventKind::Data {
            self.has_left = !left.is_empty();
        }
        if self.input.is_empty() {
            self.input = left;
        } else {
            self.input.splice(..0, left);
        }
        self.go_on()
    }

    /// The connection is to end like this. Until it has, nothing else is reported.
    fn end_by(&mut self, answer: Answer) {
        self.forget();
        self.ending = true;
        self.answer = Some(answer);
    }

    /// Nothing is reported any more but the end.
    fn forget(&mut self) {
        self.input = Vec::new();
        self.fresh = false;
        self.due = Due::default();
        self.written = VecDeque::new();
        self.timeout = None;
    }

    fn go_on(&mut self) -> Step {
        if self.out { Step::Rest } else { self.next() }
    }

    /// What comes next, when nothing is out.
    fn next(&mut self) -> Step {
        if core::mem::take(&mut self.due.opened) {
            return self.emit(ConnEventKind::Opened);
        }
        if core::mem::take(&mut self.fresh) {
            self.out = true;
            return Step::Emit(ConnEventKind::Data, core::mem::take(&mut self.input));
        }
        if let Some(token) = self.written.pop_front() {
            return self.emit(ConnEventKind::Written(token));
        }
        if core::mem::take(&mut self.due.writable) {
            return self.emit(ConnEventKind::Writable);
        }
        if core::mem::take(&mut self.due.draining) {
            return self.emit(ConnEventKind::Draining);
        }
        if core::mem::take(&mut self.due.finished) {
            return self.emit(ConnEventKind::Finished);
        }
        if let Some(reason) = self.closed.take() {
            self.forget();
            return match self.wanted.has(Wanted::CLOSED) {
                true => self.emit(ConnEventKind::Closed(reason)),
                false => Step::Leave,
            };
        }
        if let Some(kind) = self.timeout.take() {
            return self.emit(ConnEventKind::TimedOut(kind));
        }
        let notifies = self.answer.is_some() || !self.input.is_empty();
        if notifies { Step::Notify } else { Step::Rest }
    }

    fn emit(&mut self, kind: ConnEventKind) -> Step {
        self.out = true;
        Step::Emit(kind, Vec::new())
    }

    /// By the connection, notified: what it is to do.
    fn take_answer(&mut self) -> Answer {
        match self.answer.take() {
            Some(answer) => answer,
            None if self.out => Answer::Nothing,
            None => Answer::PutBack(core::mem::take(&mut self.input)),
        }
    }

    fn hosted(&self) -> Hosted {
        let goes_back = !self.out && !self.input.is_empty();
        if self.fresh || self.ending || goes_back || self.out && self.has_left {
            Hosted::Full
        } else if self.out {
            Hosted::Out
        } else {
            Hosted::Idle
        }
    }
}

// --- the connection --------------------------------------------------------------------------------

/// A connection as its handler and its events know it.
struct Peer {
    ledger: Mutex<Ledger>,
    host: Arc<Host>,
    /// From the first hook on.
    conn: OnceLock<ConnRef>,
}

impl Peer {
    fn conn(&self) -> &ConnRef {
        self.conn.get().expect("events are made by hooks")
    }

    /// Changes the ledger, and does what follows. Whether what was not read may be read now, which the connection's own
    /// run sees.
    fn change(self: &Arc<Self>, conn: &ConnRef, change: impl FnOnce(&mut Ledger) -> Step) -> bool {
        // Nothing panics while it is held.
        let mut ledger = self.ledger.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let step = change(&mut ledger);
        let (before, now) = conn.connection.set_hosted(ledger.hosted());
        drop(ledger);
        self.take(conn, step);
        if before != Hosted::Idle && now == Hosted::Idle {
            conn.connection.call_if_ending();
        }
        before == Hosted::Full && now != Hosted::Full
    }

    /// The same from outside of the connection's runs.
    fn change_from_outside(self: &Arc<Self>, change: impl FnOnce(&mut Ledger) -> Step) {
        let conn = self.conn();
        if self.change(conn, change) {
            // Reading goes on (invariant 3).
            conn.connection.call(Calls::OUTPUT);
        }
    }

    fn take(self: &Arc<Self>, conn: &ConnRef, step: Step) {
        match step {
            Step::Emit(kind, bytes) => self.hand_out(kind, bytes),
            Step::Notify => conn.connection.call(Calls::NOTIFY),
            Step::Leave => self.host.outbox.left(),
            Step::Rest => {}
        }
    }

    fn hand_out(self: &Arc<Self>, kind: ConnEventKind, bytes: Vec<u8>) {
        let consumed = bytes.len();
        let what = What { kind, bytes, consumed, decision: None };
        let event = ConnEvent { peer: Arc::clone(self), what };
        if let Err(unwanted) = self.host.outbox.put(event) {
            // The completion queue is closed: what else is due would come here, one inside the other.
            self.change_from_outside(|ledger| {
                ledger.forget();
                Step::Rest
            });
            drop(unwanted);
        }
    }

    fn complete(self: &Arc<Self>, what: &mut What) {
        let mut left = core::mem::take(&mut what.bytes);
        left.drain(..what.consumed);
        let answer = self.answer(what, left.len());
        self.change_from_outside(|ledger| {
            match what.kind {
                ConnEventKind::Closed(_) => {
                    if answer.is_some() {
                        self.conn().connection.origin.close_failed();
                    }
                    return Step::Leave;
                }
                ConnEventKind::TimedOut(_) => ledger.timing = false,
                _ => {}
            }
            if let Some(answer) = answer {
                ledger.end_by(answer);
                left = Vec::new();
            }
            ledger.complete(what.kind, left)
        });
    }

    /// How the connection is to end, if this event ends it.
    fn answer(&self, what: &mut What, left: usize) -> Option<Answer> {
        let most = self.conn().connection.origin.limits.max_unconsumed;
        match (what.kind, what.decision.take()) {
            (_, Some(Decision::Fail)) => Some(Answer::End(Reason::Panicked)),
            (ConnEventKind::Data, _) if left > most => Some(Answer::End(Reason::Unconsumed)),
            (ConnEventKind::Opened, Some(Decision::Refuse(message))) => {
                Some(Answer::Refuse(message))
            }
            (ConnEventKind::TimedOut(_), Some(Decision::Keep)) => None,
            (ConnEventKind::TimedOut(kind), _) => Some(Answer::End(Reason::TimedOut(kind))),
            _ => None,
        }
    }
}

/// The handler of a hosted connection.
struct Recorder {
    peer: Arc<Peer>,
    wanted: Wanted,
    closed: bool,
}

impl Recorder {
    fn new(host: &Arc<Host>, wanted: Wanted) -> Self {
        host.outbox.enter();
        let ledger = Mutex::new(Ledger::new(wanted));
        let peer = Peer { ledger, host: Arc::clone(host), conn: OnceLock::new() };
        Self { peer: Arc::new(peer), wanted, closed: false }
    }

    /// Something that is reported if it is wanted.
    fn note(&self, conn: &Conn, kind: Wanted, note: impl FnOnce(&mut Ledger)) {
        if self.wanted.has(kind) {
            self.change(conn, |ledger| ledger.note(note));
        }
    }

    fn change(&self, conn: &Conn, change: impl FnOnce(&mut Ledger) -> Step) {
        let conn = self.peer.conn.get_or_init(|| conn.handle());
        // The run that is on reads on, or is not over.
        let _reads_on = self.peer.change(conn, change);
    }
}

impl ConnHandler for Recorder {
    fn open(&mut self, conn: &Conn) -> status::Accept {
        self.note(conn, Wanted::OPENED, |ledger| ledger.due.opened = true);
        status::Accept::Yes
    }

    fn data(&mut self, conn: &Conn, bytes: &[u8]) -> usize {
        self.change(conn, |ledger| ledger.arrive(bytes));
        bytes.len()
    }

    fn finished(&mut self, conn: &Conn) {
        self.note(conn, Wanted::FINISHED, |ledger| ledger.due.finished = true);
    }

    fn writable(&mut self, conn: &Conn) {
        self.note(conn, Wanted::WRITABLE, |ledger| ledger.due.writable = true);
    }

    fn written(&mut self, conn: &Conn, token: u64) {
        self.note(conn, Wanted::WRITTEN, |ledger| ledger.written.push_back(token));
    }

    fn timeout(&mut self, conn: &Conn, kind: Timeout) -> TimeoutAction {
        let mut action = TimeoutAction::Close;
        // A second time that is over before the host has said anything to the first ends it; and for
        // a connection that could not be made there is nothing to be said.
        if kind != Timeout::Connect {
            self.note(conn, Wanted::TIMED_OUT, |ledger| {
                if !core::mem::replace(&mut ledger.timing, true) {
                    ledger.timeout = Some(kind);
                    action = TimeoutAction::Keep;
                }
            });
        }
        action
    }

    fn notified(&mut self, conn: &Conn) {
        self.change(conn, |ledger| {
            conn.answer.set(Some(Box::new(ledger.take_answer())));
            Step::Rest
        });
    }

    fn draining(&mut self, conn: &Conn) {
        self.note(conn, Wanted::DRAINING, |ledger| ledger.due.draining = true);
    }

    fn close(&mut self, conn: &Conn, reason: Reason) {
        self.closed = true;
        self.change(conn, |ledger| {
            ledger.closed = Some(reason);
            ledger.go_on()
        });
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.closed {
            // An attempt to connect that has failed before there was a connection.
            self.peer.host.outbox.left();
        }
    }
}

/// The ledger is changed under a lock, so the races are those of *who comes first*: every order of
/// hooks and completions, noted in a ledger, reports all of it once and in order.
#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ConnEventKind::{Closed, Data, Draining, Finished, Opened, TimedOut, Writable, Written};

    /// What the ledger has reported, and what it was left with.
    struct Host {
        ledger: Ledger,
        reported: Vec<(ConnEventKind, Vec<u8>)>,
        other: Vec<Step>,
    }

    impl Host {
        fn new(wanted: Wanted) -> Self {
            Self { ledger: Ledger::new(wanted), reported: Vec::new(), other: Vec::new() }
        }

        fn take(&mut self, step: Step) {
            match step {
                Step::Emit(kind, bytes) => self.reported.push((kind, bytes)),
                Step::Rest => {}
                other => self.other.push(other),
            }
        }

        fn hook(&mut self, hook: impl FnOnce(&mut Ledger) -> Step) {
            let step = hook(&mut self.ledger);
            self.take(step);
        }

        /// The event that is out is completed, leaving so many bytes.
        fn complete(&mut self, left: usize) {
            assert!(self.ledger.out);
            let (kind, bytes) = self.reported.last().unwrap();
            let step = match kind {
                Closed(_) => Step::Leave,
                kind => self.ledger.complete(*kind, bytes[bytes.len() - left..].to_vec()),
            };
            self.take(step);
        }

        fn kinds(&self) -> Vec<ConnEventKind> {
            self.reported.iter().map(|(kind, _)| *kind).collect()
        }
    }

    fn all_at_once(host: &mut Host) {
        host.hook(|ledger| ledger.note(|ledger| ledger.due.opened = true));
        host.hook(|ledger| ledger.note(|ledger| ledger.due.draining = true));
        host.hook(|ledger| ledger.note(|ledger| ledger.due.writable = true));
        host.hook(|ledger| ledger.note(|ledger| ledger.written.push_back(1)));
        host.hook(|ledger| ledger.note(|ledger| ledger.written.push_back(2)));
        host.hook(|ledger| ledger.arrive(b"ab"));
        host.hook(|ledger| ledger.note(|ledger| ledger.due.finished = true));
        host.hook(|ledger| {
            ledger.closed = Some(Reason::Peer);
            ledger.go_on()
        });
    }

    const ALL: [ConnEventKind; 8] =
        [Opened, Data, Written(1), Written(2), Writable, Draining, Finished, Closed(Reason::Peer)];

    #[test]
    fn one_is_out_at_a_time_and_the_end_is_the_last() {
        let mut host = Host::new(Wanted::ALL);
        all_at_once(&mut host);
        for count in 1..=ALL.len() {
            assert_eq!(host.kinds(), ALL[..count]);
            host.complete(0);
        }
        assert_eq!(host.kinds(), ALL);
        assert_eq!(host.other, [Step::Leave]);
    }

    #[test]
    fn what_is_not_wanted_has_its_default() {
        let mut host = Host::new(Wanted::OPENED);
        host.hook(|ledger| ledger.note(|ledger| ledger.due.opened = true));
        host.complete(0);
        host.hook(|ledger| {
            ledger.closed = Some(Reason::Local);
            ledger.go_on()
        });
        assert_eq!(host.other, [Step::Leave]);
        assert_eq!(host.kinds(), [Opened]);
    }

    #[test]
    fn bytes_are_reported_in_order_and_the_rest_goes_back() {
        let mut host = Host::new(Wanted::NONE);
        host.hook(|ledger| ledger.arrive(b"abc"));
        assert_eq!(host.ledger.hosted(), Hosted::Out);
        host.hook(|ledger| ledger.arrive(b"def"));
        assert_eq!(host.ledger.hosted(), Hosted::Full);
        host.complete(2);
        assert_eq!(host.reported.last().unwrap().1, b"bcdef");
        // Something was left: nothing more is read before the host has said what it takes now.
        assert_eq!(host.ledger.hosted(), Hosted::Full);
        host.complete(1);
        // It is on its way back: until then the connection has it to do.
        assert_eq!((host.other.pop(), host.ledger.hosted()), (Some(Step::Notify), Hosted::Full));
        assert_eq!(host.ledger.take_answer(), Answer::PutBack(b"f".to_vec()));
        assert_eq!(host.ledger.hosted(), Hosted::Idle);
        // And if more comes first it goes along.
        host.hook(|ledger| ledger.arrive(b"fg"));
        host.complete(1);
        host.hook(|ledger| ledger.arrive(b"h"));
        assert_eq!(host.reported.last().unwrap().1, b"gh");
        assert_eq!(host.ledger.take_answer(), Answer::Nothing);
        host.complete(0);
        host.hook(|ledger| ledger.arrive(b"i"));
        assert_eq!(host.ledger.hosted(), Hosted::Out);
    }

    #[test]
    fn a_connection_that_is_to_end_reports_nothing_but_its_end() {
        let mut host = Host::new(Wanted::ALL);
        host.hook(|ledger| ledger.note(|ledger| ledger.timeout = Some(Timeout::Idle)));
        host.hook(|ledger| ledger.arrive(b"late"));
        host.ledger.end_by(Answer::End(Reason::TimedOut(Timeout::Idle)));
        host.complete(0);
        host.hook(|ledger| ledger.note(|ledger| ledger.due.writable = true));
        host.hook(|ledger| ledger.arrive(b"later"));
        assert_eq!(host.ledger.hosted(), Hosted::Full);
        assert_eq!(host.ledger.take_answer(), Answer::End(Reason::TimedOut(Timeout::Idle)));
        host.hook(|ledger| {
            ledger.closed = Some(Reason::TimedOut(Timeout::Idle));
            ledger.go_on()
        });
        let reason = Reason::TimedOut(Timeout::Idle);
        assert_eq!(host.kinds(), [TimedOut(Timeout::Idle), Closed(reason)]);
    }
}
