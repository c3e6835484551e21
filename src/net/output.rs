//! Bytes on their way out of one connection.
//!
//! # The problem
//!
//! Any thread may write, nobody may wait, and what one thread has written before another was told to
//! write must arrive first. The handler of a pipelined protocol answers many small requests in one
//! run, and a system call for each would cost more than the answers.
//!
//! # The shape
//!
//! ```text
//!   handler: gather ──►┐                                 ┌─► wire (until it is full)
//!                      ├──► head ── tail ── … ── flush ──┤
//!   others:  write  ──►┘                                 └─► blocked, until the edge comes
//! ```
//!
//! The handler *gathers*: its bytes are only appended, and are tried when its hook returns, or at
//! [`GATHER`]. Other threads *write through*: what was gathered goes first, then their own bytes,
//! without being copied as long as the wire takes them. All of it is one queue under one lock, held
//! while bytes are copied or a send is tried, and never while code of the user runs.
//!
//! | blocked | queued | meaning |
//! |---|---|---|
//! | no | 0 | nothing to do |
//! | no | > 0 | gathered: the handler runs, and flushes before it rests |
//! | yes | any | the wire was full, or is not connected: its edge makes the handler flush |
//!
//! # Invariants
//!
//! 1. Bytes leave in the order in which they were accepted.
//! 2. Outside the lock, queued bytes of an open output have somebody who will flush them: the running
//!    handler, or the edge that the kernel owes since the wire was full.
//! 3. `queued` ≤ `max`: what would go beyond is refused as a whole.
//! 4. Once it is to end, nothing is accepted any more; the end is told to the wire once, after the
//!    last byte.
//! 5. `pressed` is set when `queued` exceeds `high`, and cleared, once, when it is at most `low`.

use super::limits::Marks;
use crate::sys::clock;
use core::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};

/// So much is gathered before it is tried.
pub(super) const GATHER: usize = 64 << 10;

/// Pieces given to one send.
const PIECES: usize = 16;

/// What takes the bytes: a socket, or a stand-in of tests and models.
pub(super) trait Wire {
    /// Takes some of the bytes; `WouldBlock`, or less than all, when it is full.
    fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;
    /// There will be no more.
    fn finish(&self);
}

/// How an output is to end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(super) enum End {
    /// It is not.
    Open,
    /// After the last byte the peer is told that there are no more.
    Finish,
    /// The same, and then the connection closes.
    Close,
}

/// Why bytes were not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unwritten {
    Closed,
    Full,
}

/// What the handler wants to know after a flush.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) queued: usize,
    pub(super) end: End,
    /// The end has been told to the wire.
    pub(super) finished: bool,
    /// The queue fell to the low mark since this was last asked.
    pub(super) fell: bool,
    /// Bytes that somebody tracks have been sent.
    pub(super) tracked: bool,
    pub(super) broken: Option<ErrorKind>,
    /// Since when nothing has moved; 0 while nothing is queued.
    pub(super) still_since: u64,
}

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The thread's buffer to gather in; empty.
fn lend_spare() -> Vec<u8> {
    let spare = SPARE.try_with(Cell::take).unwrap_or_default();
    if spare.capacity() == GATHER { spare } else { Vec::with_capacity(GATHER) }
}

fn give_back(mut buffer: Vec<u8>) {
    if buffer.capacity() == GATHER {
        buffer.clear();
        let _ = SPARE.try_with(|spare| spare.set(buffer));
    }
}

/// See the head of the file.
pub(super) struct Output<W> {
    /// None: closed.
    wire: Option<W>,
    head: Vec<u8>,
    /// How much of the head has been sent.
    sent: usize,
    tail: VecDeque<Vec<u8>>,
    queued: usize,
    /// Bytes ever accepted.
    accepted: u64,
    /// Positions in the stream, in order, and the tokens to tell when they have been sent.
    tracked: VecDeque<(u64, u64)>,
    marks: Marks,
    blocked: bool,
    pressed: bool,
    fell: bool,
    end: End,
    finished: bool,
    broken: Option<ErrorKind>,
    still_since: u64,
}

impl<W: Wire> Output<W> {
    /// `blocked`: the wire is not connected yet.
    pub(super) fn new(wire: W, marks: Marks, blocked: bool) -> Self {
        Self {
            wire: Some(wire),
            head: Vec::new(),
            sent: 0,
            tail: VecDeque::new(),
            queued: 0,
            accepted: 0,
            tracked: VecDeque::new(),
            marks,
            blocked,
            pressed: false,
            fell: false,
            end: End::Open,
            finished: false,
            broken: None,
            still_since: 0,
        }
    }

    pub(super) fn wire(&self) -> Option<&W> {
        self.wire.as_ref()
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Bytes ever accepted.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted
    }

    pub(super) fn is_pressed(&self) -> bool {
        self.pressed
    }

    /// By the handler: appends, and sends only what is too much to gather.
    pub(super) fn gather(&mut self, bytes: &[u8]) -> Result<(), Unwritten> {
        if self.queued + bytes.len() >= GATHER {
            return self.write_through(&[IoSlice::new(bytes)]);
        }
        self.admit(bytes.len())?;
        self.append(bytes);
        self.note_pressure();
        Ok(())
    }

    /// By anybody: sends at once what the wire takes, after what is queued; the rest is appended.
    pub(super) fn write_through(&mut self, pieces: &[IoSlice<'_>]) -> Result<(), Unwritten> {
        self.admit(pieces.iter().map(|piece| piece.len()).sum())?;
        self.flush();
        let mut skip = if self.queued == 0 { self.try_send(pieces) } else { 0 };
        for piece in pieces {
            let skipped = skip.min(piece.len());
            skip -= skipped;
            self.append(&piece[skipped..]);
        }
        self.note_progress();
        self.note_pressure();
        Ok(())
    }

    /// As [`write_through`](Self::write_through), of a buffer that need not be copied.
    pub(super) fn write_owned(&mut self, bytes: Vec<u8>) -> Result<(), Unwritten> {
        self.admit(bytes.len())?;
        self.flush();
        let sent = if self.queued == 0 { self.try_send(&[IoSlice::new(&bytes)]) } else { 0 };
        self.append_owned(bytes, sent);
        self.note_progress();
        self.note_pressure();
        Ok(())
    }

    /// The bytes accepted so far will be told of when they have been sent.
    pub(super) fn track(&mut self, token: u64) {
        self.tracked.push_back((self.accepted, token));
    }

    /// The next token whose bytes have been sent.
    pub(super) fn take_tracked(&mut self) -> Option<u64> {
        self.is_tracked_sent().then(|| self.tracked.pop_front())?.map(|(_, token)| token)
    }

    pub(super) fn is_tracked_sent(&self) -> bool {
        let sent = self.accepted - self.queued as u64;
        self.broken.is_none() && self.tracked.front().is_some_and(|(position, _)| *position <= sent)
    }

    /// The wire has room again.
    pub(super) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// Sends what is queued, and the end if it is due.
    pub(super) fn flush(&mut self) {
        while self.queued > 0 && !self.blocked {
            let mut pieces = [IoSlice::new(&[]); PIECES];
            let count = self.fill(&mut pieces);
            let Some(wire) = &self.wire else { return };
            let asked = pieces[..count].iter().map(|piece| piece.len()).sum();
            let (sent, outcome) = attempt(wire, &pieces[..count], asked);
            self.note(outcome);
            self.advance(sent);
        }
        self.note_progress();
        self.note_pressure();
        self.finish_if_due();
    }

    /// What whoever looks after it wants to know.
    pub(super) fn state(&self) -> State {
        State {
            queued: self.queued,
            end: self.end,
            finished: self.finished,
            fell: self.fell,
            tracked: self.is_tracked_sent(),
            broken: self.broken,
            still_since: self.still_since,
        }
    }

    /// The handler has been told that it fell.
    pub(super) fn forget_fall(&mut self) {
        self.fell = false;
    }

    /// Nothing more is accepted. False: it was to end like this already, or is closed.
    pub(super) fn end(&mut self, end: End) -> bool {
        let changes = self.wire.is_some() && end > self.end;
        if changes {
            self.end = end;
            self.finish_if_due();
        }
        changes
    }

    /// Closes at once; what was queued is dropped. Gives the wire back.
    pub(super) fn close(&mut self) -> Option<W> {
        self.discard();
        self.end = End::Close;
        self.wire.take()
    }

    fn admit(&self, len: usize) -> Result<(), Unwritten> {
        if self.wire.is_none() || self.end != End::Open || self.broken.is_some() {
            Err(Unwritten::Closed)
        } else if self.queued.saturating_add(len) > self.marks.max {
            Err(Unwritten::Full)
        } else {
            Ok(())
        }
    }

    /// Appends bytes of an output that admitted them.
    fn append(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || self.broken.is_some() {
            return;
        }
        let last = self.tail.back_mut().unwrap_or(&mut self.head);
        if last.capacity() == 0 && !self.blocked {
            *last = lend_spare();
        }
        if last.len() + bytes.len() <= GATHER {
            last.extend_from_slice(bytes);
        } else {
            self.tail.push_back(bytes.into());
        }
        self.queued += bytes.len();
        self.accepted += bytes.len() as u64;
    }

    fn append_owned(&mut self, bytes: Vec<u8>, sent: usize) {
        if sent == bytes.len() || self.broken.is_some() {
            return;
        }
        let left = bytes.len() - sent;
        if self.queued == 0 {
            (self.head, self.sent) = (bytes, sent);
        } else {
            self.tail.push_back(bytes);
        }
        self.queued += left;
        self.accepted += left as u64;
    }

    /// Sends bytes that are not queued. Says how many the wire took, and counts them.
    fn try_send(&mut self, pieces: &[IoSlice<'_>]) -> usize {
        let asked: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut sent = 0;
        if let Some(wire) = &self.wire
            && !self.blocked
            && asked > 0
        {
            let outcome;
            (sent, outcome) = attempt(wire, pieces, asked);
            self.note(outcome);
        }
        self.accepted += sent as u64;
        sent
    }

    /// The front of the queue, as pieces for one send.
    fn fill<'a>(&'a self, pieces: &mut [IoSlice<'a>; PIECES]) -> usize {
        pieces[0] = IoSlice::new(&self.head[self.sent..]);
        let mut count = 1;
        for (piece, bytes) in pieces[1..].iter_mut().zip(&self.tail) {
            *piece = IoSlice::new(bytes);
            count += 1;
        }
        count
    }

    /// `sent` bytes of the queue have gone.
    fn advance(&mut self, mut sent: usize) {
        self.queued -= sent;
        if sent > 0 {
            self.still_since = 0;
        }
        while sent > 0 {
            let left = self.head.len() - self.sent;
            if sent < left {
                self.sent += sent;
                break;
            }
            sent -= left;
            self.next_head();
        }
        if self.blocked {
            self.keep_little();
        }
    }

    fn next_head(&mut self) {
        self.sent = 0;
        let next = self.tail.pop_front().unwrap_or_default();
        give_back(core::mem::replace(&mut self.head, next));
        if self.queued == 0 {
            self.tail = VecDeque::new();
        }
    }

    /// What the wire did not take may wait for long: it gets a buffer of its size.
    fn keep_little(&mut self) {
        if self.head.capacity() - (self.head.len() - self.sent) > GATHER / 2 {
            let little = self.head[self.sent..].to_vec();
            self.sent = 0;
            give_back(core::mem::replace(&mut self.head, little));
        }
    }

    fn note(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::TookAll => {}
            Outcome::Full => self.blocked = true,
            Outcome::Broken(kind) => {
                self.broken = Some(kind);
                self.discard();
            }
        }
    }

    fn discard(&mut self) {
        give_back(core::mem::take(&mut self.head));
        self.tail = VecDeque::new();
        (self.sent, self.queued, self.still_since) = (0, 0, 0);
        self.tracked = VecDeque::new();
        self.pressed = false;
    }

    /// From the first moment at which something waits for the wire.
    fn note_progress(&mut self) {
        if self.queued == 0 {
            self.still_since = 0;
        } else if self.blocked && self.still_since == 0 {
            self.still_since = clock::now();
        }
    }

    fn note_pressure(&mut self) {
        if self.queued > self.marks.high {
            self.pressed = true;
        } else if self.pressed && self.queued <= self.marks.low {
            self.pressed = false;
            self.fell = true;
        }
    }

    fn finish_if_due(&mut self) {
        // Blocked with nothing queued: it is not connected yet, and the edge is still to come.
        if self.queued == 0
            && self.end != End::Open
            && !self.finished
            && !self.blocked
            && let Some(wire) = &self.wire
        {
            self.finished = true;
            wire.finish();
        }
    }
}

enum Outcome {
    TookAll,
    Full,
    Broken(ErrorKind),
}

/// One send. A stream that took less than it was given is full, and owes an edge (epoll(7)).
fn attempt(wire: &impl Wire, pieces: &[IoSlice<'_>], asked: usize) -> (usize, Outcome) {
    loop {
        match wire.send(pieces) {
            Ok(sent) if sent == asked => return (sent, Outcome::TookAll),
            Ok(sent) => return (sent, Outcome::Full),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return (0, Outcome::Full),
            Err(error) => return (0, Outcome::Broken(error.kind())),
        }
    }
}
