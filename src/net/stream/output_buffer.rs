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
//! 4. Once it is to end, nothing is accepted any more; the wire is finished once, after the
//!    last byte.
//! 5. While blocked, the buffers of its own take up to 2 `queued` + 64 KiB.
//! 6. `pressed` is set when `queued` exceeds `high`, and cleared, once, when it is at most `low`.
//! 7. What is foreign lies in the tail, behind an empty head when it is the first. It is dropped when the lock
//!    is free, which may call code of the user: until then it is *spent*.

use super::filter::{Filter, FilterRead};
use super::limits::Marks;
use crate::sys::clock;
use core::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};

/// So much is gathered before it is tried.
pub(crate) const GATHER: usize = 64 << 10;

/// Buffers of up to so many bytes are copied rather than kept: a queue of tiny ones would take many times
/// the memory of their bytes.
const SMALL: usize = 4 << 10;

/// Pieces given to one send.
const PIECES: usize = 16;

/// What takes the bytes: a socket, or a stand-in of tests and models.
pub(crate) trait Wire {
    /// Takes some of the bytes; `WouldBlock`, or less than all, when it is full.
    fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;
    /// There will be no more.
    fn finish(&self);
    /// When the output to it presses, and how much of it there may be.
    fn marks(&self) -> &Marks;
}

/// Bytes of somebody else's, who learns by its drop that they are not needed any more.
pub(crate) trait Foreign: Send + 'static {
    /// Always the same.
    fn bytes(&self) -> &[u8];
}

/// What waits behind the head.
enum Chunk {
    Own(Vec<u8>),
    /// The first `sent` bytes have gone.
    Foreign {
        bytes: Box<dyn Foreign>,
        sent: usize,
    },
}

impl Chunk {
    fn rest(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Foreign { bytes, sent } => &bytes.bytes()[*sent..],
        }
    }
}

/// How an output is to end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(crate) enum End {
    /// It is not.
    Open,
    /// After the last byte the socket is shut down for writing.
    Finish,
    /// The same, and then the connection closes.
    Close,
}

/// Why bytes were not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unwritten {
    Closed,
    Full,
}

/// What the handler wants to know after a flush.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputState {
    pub(crate) queued: usize,
    pub(crate) end: End,
    /// The wire has been finished.
    pub(crate) finished: bool,
    /// The queue fell to the low mark since this was last asked.
    pub(crate) fell: bool,
    /// Bytes that somebody tracks have been sent.
    pub(crate) tracked: bool,
    pub(crate) broken: Option<ErrorKind>,
    /// Since when nothing has moved; 0 while nothing is queued.
    pub(crate) still_since: u64,
}

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The thread's buffer to gather in; empty.
#[inline]
fn lend_spare() -> Vec<u8> {
    let spare = SPARE.try_with(Cell::take).unwrap_or_default();
    if spare.capacity() == GATHER { spare } else { Vec::with_capacity(GATHER) }
}

#[inline]
fn give_back(mut buffer: Vec<u8>) {
    if buffer.capacity() == GATHER {
        buffer.clear();
        let _ = SPARE.try_with(|spare| spare.set(buffer));
    }
}

/// See the head of the file. In the order in which it is used, since there may be many.
#[repr(C)]
pub(crate) struct OutputBuffer<W> {
    head: Vec<u8>,
    /// How much of the head has been sent.
    sent: usize,
    queued: usize,
    /// Bytes ever accepted.
    accepted: u64,
    rare: Option<Box<Rare>>,
    /// None: closed.
    wire: Option<W>,
    blocked: bool,
    pressed: bool,
    fell: bool,
    end: End,
    finished: bool,
    broken: Option<ErrorKind>,
    /// It is broken since the filter could not turn what was written; the wire may be sound.
    unturned: bool,
}

/// What few outputs have, and those seldom. It goes when nothing is left in it.
#[derive(Default)]
struct Rare {
    tail: VecDeque<Chunk>,
    /// Positions in the stream, in order, and the tokens to report when they have been sent.
    tracked: VecDeque<(u64, u64)>,
    /// Since when nothing has moved; 0 while nothing is queued.
    still_since: u64,
    filter: Option<Box<dyn Filter>>,
    spent: Vec<Box<dyn Foreign>>,
}

impl Rare {
    fn is_empty(&self) -> bool {
        let Self { tail, tracked, still_since, filter, spent } = self;
        tail.is_empty()
            && tracked.is_empty()
            && *still_since == 0
            && filter.is_none()
            && spent.is_empty()
    }

    /// Of a tail that is not empty: what bytes are appended to.
    fn last_buffer(&mut self) -> &mut Vec<u8> {
        if let Some(Chunk::Foreign { .. }) = self.tail.back() {
            self.tail.push_back(Chunk::Own(Vec::new()));
        }
        match self.tail.back_mut() {
            Some(Chunk::Own(last)) => last,
            _ => unreachable!("it ends with a buffer of its own"),
        }
    }

    fn spend(&mut self, chunks: impl IntoIterator<Item = Chunk>) {
        for chunk in chunks {
            if let Chunk::Foreign { bytes, .. } = chunk {
                self.spent.push(bytes);
            }
        }
    }
}

impl<W> OutputBuffer<W> {
    /// Whether there is something to be tidied up.
    #[inline]
    pub(crate) fn has_rare(&self) -> bool {
        self.rare.is_some()
    }

    /// Tidies up. What comes is to be dropped when the lock is free.
    pub(crate) fn take_spent(&mut self) -> Vec<Box<dyn Foreign>> {
        let Some(rare) = &mut self.rare else { return Vec::new() };
        let spent = core::mem::take(&mut rare.spent);
        if rare.tail.is_empty() {
            rare.tail = VecDeque::new();
        }
        if rare.is_empty() {
            self.rare = None;
        }
        spent
    }
}

impl<W: Wire> OutputBuffer<W> {
    /// `blocked`: the wire is not connected yet.
    pub(crate) fn new(wire: W, blocked: bool) -> Self {
        Self {
            head: Vec::new(),
            sent: 0,
            queued: 0,
            accepted: 0,
            rare: None,
            wire: Some(wire),
            blocked,
            pressed: false,
            fell: false,
            end: End::Open,
            finished: false,
            broken: None,
            unturned: false,
        }
    }

    pub(crate) fn wire(&self) -> Option<&W> {
        self.wire.as_ref()
    }

    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// Bytes ever accepted.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted
    }

    pub(crate) fn is_pressed(&self) -> bool {
        self.pressed
    }

    #[inline]
    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    #[inline]
    fn filter(&mut self) -> Option<&mut Box<dyn Filter>> {
        self.rare.as_mut()?.filter.as_mut()
    }

    #[inline]
    fn has_filter(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.filter.is_some())
    }

    #[inline]
    fn has_tail(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| !rare.tail.is_empty())
    }

    fn still_since(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.still_since)
    }

    fn has_moved(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.still_since = 0;
        }
    }

    /// By the handler: appends, and sends only what is too much to gather.
    pub(crate) fn gather(&mut self, bytes: &[u8]) -> Result<(), Unwritten> {
        if self.has_filter() {
            return self.write_filtered(&[IoSlice::new(bytes)], false);
        }
        if self.queued + bytes.len() >= GATHER {
            return self.write_through(&[IoSlice::new(bytes)]);
        }
        self.admit(bytes.len())?;
        self.append(bytes);
        self.note_pressure();
        Ok(())
    }

    /// The same of several pieces, as one.
    pub(crate) fn gather_vectored(&mut self, pieces: &[IoSlice<'_>]) -> Result<(), Unwritten> {
        if self.has_filter() {
            return self.write_filtered(pieces, false);
        }
        let total = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        if self.queued + total >= GATHER {
            return self.write_through(pieces);
        }
        self.admit(total)?;
        if total == 0 {
            // A buffer that is lent comes back when what is in it has left.
            return Ok(());
        }
        let buffer = self.buffer();
        if buffer.len() + total <= GATHER {
            pieces.iter().for_each(|piece| buffer.extend_from_slice(piece));
            self.count(total);
        } else {
            pieces.iter().for_each(|piece| self.append(piece));
        }
        self.note_pressure();
        Ok(())
    }

    /// The same of two pieces, not both empty: of most answers the head and the body.
    #[cfg(feature = "http")]
    #[inline]
    pub(crate) fn gather_pair(&mut self, first: &[u8], second: &[u8]) -> Result<(), Unwritten> {
        let total = first.len() + second.len();
        if self.has_filter() || self.queued + total >= GATHER {
            return self.gather_vectored(&[IoSlice::new(first), IoSlice::new(second)]);
        }
        self.admit(total)?;
        let buffer = self.buffer();
        if buffer.len() + total <= GATHER {
            buffer.extend_from_slice(first);
            buffer.extend_from_slice(second);
            self.count(total);
        } else {
            self.append(first);
            self.append(second);
        }
        self.note_pressure();
        Ok(())
    }

    /// The same with a last piece that need not be copied.
    #[cfg(feature = "http")]
    pub(crate) fn gather_owned(
        &mut self,
        pieces: &[IoSlice<'_>],
        last: Vec<u8>,
    ) -> Result<(), Unwritten> {
        if self.has_filter() {
            pieces.iter().try_for_each(|piece| self.gather(piece))?;
            return self.gather(&last);
        }
        let total = pieces.iter().map(|piece| piece.len()).sum::<usize>() + last.len();
        self.admit(total)?;
        pieces.iter().for_each(|piece| self.append(piece));
        if self.queued + last.len() < GATHER {
            self.append(&last);
        } else {
            self.append_owned(last, 0);
            self.flush();
        }
        self.note_pressure();
        Ok(())
    }

    /// By anybody: sends at once what the wire takes, after what is queued; the rest is appended.
    pub(crate) fn write_through(&mut self, pieces: &[IoSlice<'_>]) -> Result<(), Unwritten> {
        if self.has_filter() {
            return self.write_filtered(pieces, true);
        }
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
    pub(crate) fn write_owned(&mut self, bytes: Vec<u8>) -> Result<(), Unwritten> {
        if self.has_filter() {
            return self.write_filtered(&[IoSlice::new(&bytes)], true);
        }
        self.admit(bytes.len())?;
        self.flush();
        let sent = if self.queued == 0 { self.try_send(&[IoSlice::new(&bytes)]) } else { 0 };
        self.append_owned(bytes, sent);
        self.note_progress();
        self.note_pressure();
        Ok(())
    }

    /// The same of bytes of somebody else's, which are taken only if they have to wait: what is left in
    /// `slot` is not needed any more, or was refused.
    pub(crate) fn write_foreign<F: Foreign>(
        &mut self,
        slot: &mut Option<F>,
    ) -> Result<(), Unwritten> {
        let bytes = slot.as_ref().map_or(&[][..], F::bytes);
        if self.has_filter() {
            return self.write_filtered(&[IoSlice::new(bytes)], true);
        }
        self.admit(bytes.len())?;
        self.flush();
        let sent = if self.queued == 0 { self.try_send(&[IoSlice::new(bytes)]) } else { 0 };
        let left = bytes.len() - sent;
        if left <= SMALL || self.broken.is_some() {
            self.append(&bytes[sent..]);
        } else if let Some(bytes) = slot.take() {
            self.rare().tail.push_back(Chunk::Foreign { bytes: Box::new(bytes), sent });
            self.count(left);
        }
        self.note_progress();
        self.note_pressure();
        Ok(())
    }

    /// What is written from here on goes through this filter.
    pub(crate) fn set_filter(&mut self, filter: Box<dyn Filter>) {
        self.rare().filter = Some(filter);
    }

    /// As [`write_through`](Self::write_through), of what the filter makes of it; without `through`,
    /// as [`gather`](Self::gather).
    #[cold]
    fn write_filtered(&mut self, pieces: &[IoSlice<'_>], through: bool) -> Result<(), Unwritten> {
        self.admit(pieces.iter().map(|piece| piece.len()).sum())?;
        let mut turned = Vec::new();
        for piece in pieces {
            if let Some(filter) = self.filter()
                && let Err(error) = filter.written(piece, &mut turned)
            {
                // A part of a message may be missing now: nothing follows it.
                (self.broken, self.unturned) = (Some(error.kind()), true);
                return Err(Unwritten::Closed);
            }
        }
        self.append(&turned);
        if through || self.queued >= GATHER {
            self.flush();
        }
        self.note_pressure();
        Ok(())
    }

    /// By the handler: bytes that have come, through the filter. It may have an answer to them.
    pub(crate) fn filter_received(
        &mut self,
        bytes: &[u8],
        plain: &mut Vec<u8>,
    ) -> io::Result<FilterRead> {
        let Some(filter) = self.filter() else { return Ok(FilterRead::Open) };
        let mut answer = Vec::new();
        let read = filter.received(bytes, plain, &mut answer);
        if self.wire.is_some() && !self.finished {
            self.append(&answer);
            self.note_pressure();
        }
        read
    }

    /// It broke by its filter: there is no end to read up to.
    pub(crate) fn is_unturned(&self) -> bool {
        self.unturned
    }

    /// By the handler: the socket has ended.
    pub(crate) fn filter_cut_off(&mut self) -> io::Result<()> {
        self.filter().map_or(Ok(()), |filter| filter.cut_off())
    }

    /// The bytes accepted so far will be reported when they have been sent.
    pub(crate) fn track(&mut self, token: u64) {
        let position = self.accepted;
        self.rare().tracked.push_back((position, token));
    }

    /// The next token whose bytes have been sent.
    pub(crate) fn take_tracked(&mut self) -> Option<u64> {
        if !self.is_tracked_sent() {
            return None;
        }
        self.rare.as_mut()?.tracked.pop_front().map(|(_, token)| token)
    }

    pub(crate) fn is_tracked_sent(&self) -> bool {
        let Some(rare) = &self.rare else { return false };
        let sent = self.accepted - self.queued as u64;
        self.broken.is_none() && rare.tracked.front().is_some_and(|(position, _)| *position <= sent)
    }

    /// The wire has room again.
    pub(crate) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// Sends what is queued, and the end if it is due.
    pub(crate) fn flush(&mut self) {
        while self.queued > 0 && !self.blocked {
            let Some(wire) = &self.wire else { return };
            let (sent, outcome) = match self.has_tail() {
                false => attempt(wire, &[IoSlice::new(&self.head[self.sent..])], self.queued),
                true => self.attempt_many(wire),
            };
            self.note(outcome);
            self.advance(sent);
        }
        self.note_progress();
        self.note_pressure();
        self.finish_if_due();
    }

    /// Sends what was gathered. True: all of it has left, and there is nothing to report. Otherwise
    /// [`flush`](Self::flush) goes on.
    #[inline]
    pub(crate) fn send_plainly(&mut self) -> bool {
        let open = self.end == End::Open && self.broken.is_none() && !self.blocked;
        let quiet = !self.pressed && !self.fell && self.rare.is_none();
        let Some(wire) = &self.wire else { return false };
        if !open || !quiet {
            return false;
        }
        if self.queued > 0 {
            let (sent, outcome) =
                attempt(wire, &[IoSlice::new(&self.head[self.sent..])], self.queued);
            if sent < self.queued {
                self.note(outcome);
                self.advance(sent);
                return false;
            }
            (self.sent, self.queued) = (0, 0);
            give_back(core::mem::take(&mut self.head));
        }
        true
    }

    /// What whoever looks after it wants to know.
    pub(crate) fn state(&self) -> OutputState {
        OutputState {
            queued: self.queued,
            end: self.end,
            finished: self.finished,
            fell: self.fell,
            tracked: self.is_tracked_sent(),
            broken: self.broken,
            still_since: self.still_since(),
        }
    }

    /// The handler has been called since it fell.
    pub(crate) fn forget_fall(&mut self) {
        self.fell = false;
    }

    /// Nothing more is accepted. False: it was to end like this already, or is closed.
    pub(crate) fn end(&mut self, end: End) -> bool {
        let changes = self.wire.is_some() && end > self.end;
        if changes {
            if self.end == End::Open
                && let Some(filter) = self.filter()
            {
                let mut last = Vec::new();
                filter.finish(&mut last);
                self.append(&last);
            }
            self.end = end;
            self.finish_if_due();
        }
        changes
    }

    /// Closes at once; what was queued is dropped. Gives the wire back, and the filter: it is the user's, and is
    /// not to be dropped under a lock.
    pub(crate) fn close(&mut self) -> (Option<W>, Option<Box<dyn Filter>>) {
        self.discard();
        self.end = End::Close;
        let filter = self.rare.as_mut().and_then(|rare| rare.filter.take());
        (self.wire.take(), filter)
    }

    #[inline]
    fn admit(&self, len: usize) -> Result<(), Unwritten> {
        match &self.wire {
            Some(wire) if self.end == End::Open && self.broken.is_none() => {
                let fits = self.queued.saturating_add(len) <= wire.marks().max;
                if fits { Ok(()) } else { Err(Unwritten::Full) }
            }
            _ => Err(Unwritten::Closed),
        }
    }

    /// Appends bytes of an output that admitted them.
    fn append(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || self.broken.is_some() {
            return;
        }
        let buffer = self.buffer();
        if buffer.len() + bytes.len() <= GATHER {
            buffer.extend_from_slice(bytes);
        } else {
            self.rare().tail.push_back(Chunk::Own(bytes.into()));
        }
        self.count(bytes.len());
    }

    /// What bytes are appended to.
    #[inline]
    fn buffer(&mut self) -> &mut Vec<u8> {
        let last = match &mut self.rare {
            Some(rare) if !rare.tail.is_empty() => rare.last_buffer(),
            _ => &mut self.head,
        };
        if last.capacity() == 0 && !self.blocked {
            *last = lend_spare();
        }
        last
    }

    /// So many bytes were appended.
    #[inline]
    fn count(&mut self, len: usize) {
        self.queued += len;
        self.accepted += len as u64;
    }

    fn append_owned(&mut self, bytes: Vec<u8>, sent: usize) {
        let left = bytes.len() - sent;
        if left <= SMALL || is_wasteful(&bytes, sent) {
            return self.append(&bytes[sent..]);
        }
        if self.broken.is_some() {
            return;
        }
        if self.queued == 0 {
            (self.head, self.sent) = (bytes, sent);
        } else {
            self.rare().tail.push_back(Chunk::Own(bytes));
        }
        self.queued += left;
        self.accepted += left as u64;
    }

    /// Sends bytes that are not queued. Says how many the wire took, and counts them.
    fn try_send(&mut self, pieces: &[IoSlice<'_>]) -> usize {
        let mut total = 0;
        for pieces in pieces.chunks(libc::UIO_MAXIOV as usize) {
            let asked: usize = pieces.iter().map(|piece| piece.len()).sum();
            let sent = self.try_send_some(pieces, asked);
            total += sent;
            if sent < asked {
                break;
            }
        }
        self.accepted += total as u64;
        total
    }

    /// No more pieces than the kernel takes at once.
    fn try_send_some(&mut self, pieces: &[IoSlice<'_>], asked: usize) -> usize {
        match &self.wire {
            Some(wire) if !self.blocked && asked > 0 => {
                let (sent, outcome) = attempt(wire, pieces, asked);
                self.note(outcome);
                sent
            }
            _ => 0,
        }
    }

    /// One send of as many pieces of the queue as it takes.
    #[cold]
    fn attempt_many(&self, wire: &W) -> (usize, Outcome) {
        let mut pieces = [IoSlice::new(&[]); PIECES];
        pieces[0] = IoSlice::new(&self.head[self.sent..]);
        let mut count = 1;
        let tail = self.rare.iter().flat_map(|rare| &rare.tail);
        for (piece, chunk) in pieces[1..].iter_mut().zip(tail) {
            *piece = IoSlice::new(chunk.rest());
            count += 1;
        }
        let asked = pieces[..count].iter().map(|piece| piece.len()).sum();
        attempt(wire, &pieces[..count], asked)
    }

    /// `sent` bytes of the queue have gone.
    fn advance(&mut self, mut sent: usize) {
        self.queued -= sent;
        if sent > 0 {
            self.has_moved();
        }
        while sent > 0 {
            let left = self.head.len() - self.sent;
            if sent < left {
                self.sent += sent;
                break;
            }
            sent -= left;
            self.next_head();
            if self.head.is_empty() && self.has_tail() {
                sent = self.advance_foreign(sent);
            }
        }
        if self.blocked {
            self.keep_little();
        }
    }

    fn next_head(&mut self) {
        self.sent = 0;
        let next = self.rare.as_mut().and_then(|rare| match rare.tail.pop_front()? {
            Chunk::Own(next) => Some(next),
            foreign => {
                rare.tail.push_front(foreign);
                None
            }
        });
        give_back(core::mem::replace(&mut self.head, next.unwrap_or_default()));
    }

    /// Of what has gone, foreign bytes behind the head have taken their part; says what is left of it.
    #[cold]
    fn advance_foreign(&mut self, count: usize) -> usize {
        let rare = self.rare();
        let Some(Chunk::Foreign { bytes, sent }) = rare.tail.front_mut() else { return count };
        let left = bytes.bytes().len() - *sent;
        if count < left {
            *sent += count;
            return 0;
        }
        let spent = rare.tail.pop_front();
        rare.spend(spent);
        count - left
    }

    /// What the wire did not take may wait for long: it gets a buffer of its size.
    fn keep_little(&mut self) {
        if is_wasteful(&self.head, self.sent) {
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
        (self.sent, self.queued, self.pressed) = (0, 0, false);
        if let Some(rare) = &mut self.rare {
            let tail = core::mem::take(&mut rare.tail);
            rare.spend(tail);
            rare.tracked = VecDeque::new();
            rare.still_since = 0;
        }
    }

    /// From the first moment at which something waits for the wire.
    fn note_progress(&mut self) {
        if self.queued == 0 {
            self.has_moved();
        } else if self.blocked && self.still_since() == 0 {
            self.rare().still_since = clock::now();
        }
    }

    #[inline]
    fn note_pressure(&mut self) {
        let Some(wire) = &self.wire else { return };
        let marks = wire.marks();
        if self.queued > marks.high {
            self.pressed = true;
        } else if self.pressed && self.queued <= marks.low {
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
            // The peer must not take a part for the whole.
            && self.broken.is_none()
            && let Some(wire) = &self.wire
        {
            self.finished = true;
            wire.finish();
        }
    }
}

/// Whether a buffer of which so much has been sent holds much more than what is left. Not before most of
/// it has gone, or a long buffer that leaves in many sends would be copied at each.
fn is_wasteful(buffer: &Vec<u8>, sent: usize) -> bool {
    let left = buffer.len() - sent;
    buffer.capacity() - left > left.max(GATHER / 2)
}

enum Outcome {
    TookAll,
    Full,
    Broken(ErrorKind),
}

/// One send. A stream that took less than it was given is full, and owes an edge (epoll(7)).
#[inline(always)] // Of plain runs.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::sync::Arc;

    /// A wire with room for so many bytes.
    #[derive(Default)]
    struct Room {
        left: Cell<usize>,
        taken: RefCell<Vec<u8>>,
    }

    impl Wire for (&Room, Marks) {
        fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
            let mut count = 0;
            for piece in pieces {
                let some = piece.len().min(self.0.left.get());
                self.0.left.set(self.0.left.get() - some);
                self.0.taken.borrow_mut().extend_from_slice(&piece[..some]);
                count += some;
            }
            if count > 0 { Ok(count) } else { Err(ErrorKind::WouldBlock.into()) }
        }

        fn finish(&self) {}

        fn marks(&self) -> &Marks {
            &self.1
        }
    }

    impl OutputBuffer<(&Room, Marks)> {
        fn tail(&self) -> impl Iterator<Item = &Chunk> {
            self.rare.iter().flat_map(|rare| &rare.tail)
        }

        /// What its buffers take.
        fn held(&self) -> usize {
            let tail = self.tail().map(|chunk| match chunk {
                Chunk::Own(bytes) => bytes.capacity() + size_of::<Chunk>(),
                Chunk::Foreign { .. } => size_of::<Chunk>(),
            });
            self.head.capacity() + tail.sum::<usize>()
        }
    }

    /// Bytes that count how many like them there are.
    struct Lent {
        bytes: Vec<u8>,
        #[allow(dead_code, reason = "it is counted")]
        out: Arc<()>,
    }

    impl Lent {
        fn new(bytes: &[u8], out: &Arc<()>) -> Self {
            Self { bytes: bytes.into(), out: Arc::clone(out) }
        }
    }

    impl Foreign for Lent {
        fn bytes(&self) -> &[u8] {
            &self.bytes
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Gather(usize),
        Write(Vec<usize>),
        Own { len: usize, spare: usize },
        Lend(usize),
        Track,
        Flush { room: usize },
    }

    fn step() -> impl Strategy<Value = Step> {
        let len = prop_oneof![0..100_usize, 4000..5000_usize, 30_000..150_000_usize];
        prop_oneof![
            len.clone().prop_map(Step::Gather),
            proptest::collection::vec(len.clone(), 0..4).prop_map(Step::Write),
            (len.clone(), len.clone()).prop_map(|(len, spare)| Step::Own { len, spare }),
            len.clone().prop_map(Step::Lend),
            Just(Step::Track),
            len.prop_map(|room| Step::Flush { room }),
        ]
    }

    /// The obvious output: one long string, of which the first so many bytes have gone.
    #[derive(Default)]
    struct Obvious {
        accepted: Vec<u8>,
        tracked: Vec<(usize, u64)>,
    }

    impl Obvious {
        fn next(&self, len: usize) -> Vec<u8> {
            (0..len).map(|at| ((self.accepted.len() + at) % 251) as u8).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

        /// Goal: whatever ways bytes take, they come out as they went in, in bounds, and tokens are reported
        /// when theirs have. Method: against the obvious one, with any room at any time.
        #[test]
        fn bytes_come_out_as_they_went_in(steps in proptest::collection::vec(step(), 0..60)) {
            let marks = Marks { low: 50_000, high: 100_000, max: 300_000 };
            let (wire, mut obvious) = (Room::default(), Obvious::default());
            let mut output = OutputBuffer::new((&wire, marks), false);
            let lent = Arc::new(());
            for (token, step) in steps.into_iter().enumerate() {
                let before = output.queued();
                let (bytes, written) = match step {
                    Step::Gather(len) => {
                        let bytes = obvious.next(len);
                        let written = output.gather(&bytes);
                        (bytes, written)
                    }
                    Step::Write(lens) => {
                        let bytes = obvious.next(lens.iter().sum());
                        let (mut rest, mut pieces) = (&bytes[..], Vec::new());
                        for len in lens {
                            let piece;
                            (piece, rest) = rest.split_at(len);
                            pieces.push(IoSlice::new(piece));
                        }
                        let written = match token % 2 {
                            0 => output.write_through(&pieces),
                            _ => output.gather_vectored(&pieces),
                        };
                        (bytes, written)
                    }
                    Step::Own { len, spare } => {
                        let bytes = obvious.next(len);
                        let mut own = Vec::with_capacity(len + spare);
                        own.extend_from_slice(&bytes);
                        (bytes, output.write_owned(own))
                    }
                    Step::Lend(len) => {
                        let bytes = obvious.next(len);
                        let mut slot = Some(Lent::new(&bytes, &lent));
                        let written = output.write_foreign(&mut slot);
                        prop_assert!(written.is_ok() || slot.is_some());
                        (bytes, written)
                    }
                    Step::Track => {
                        output.track(token as u64);
                        obvious.tracked.push((obvious.accepted.len(), token as u64));
                        continue;
                    }
                    Step::Flush { room } => {
                        wire.left.set(room);
                        output.unblock();
                        output.flush();
                        (Vec::new(), Ok(()))
                    }
                };
                prop_assert_eq!(written.is_err(), before + bytes.len() > marks.max);
                if written.is_ok() {
                    obvious.accepted.extend(bytes);
                }
                let sent = wire.taken.borrow().len();
                prop_assert!(obvious.accepted[..sent] == wire.taken.borrow()[..]);
                prop_assert_eq!(output.queued(), obvious.accepted.len() - sent);
                prop_assert!(output.queued() <= marks.max);
                drop(output.take_spent());
                let waits = |chunk: &&Chunk| matches!(chunk, Chunk::Foreign { .. });
                prop_assert_eq!(Arc::strong_count(&lent) - 1, output.tail().filter(waits).count());
                if output.blocked {
                    prop_assert!(output.held() <= 2 * output.queued() + GATHER, "{}", output.held());
                }
                prop_assert!(output.queued() <= marks.high || output.is_pressed());
                prop_assert!(output.queued() > marks.low || !output.is_pressed());
                while let Some(token) = output.take_tracked() {
                    let (position, first) = obvious.tracked.remove(0);
                    prop_assert!(first == token && position <= sent);
                }
                prop_assert!(obvious.tracked.first().is_none_or(|(position, _)| *position > sent));
            }
            wire.left.set(usize::MAX);
            output.unblock();
            output.flush();
            prop_assert!(*wire.taken.borrow() == obvious.accepted);
            prop_assert_eq!(output.held(), 0);
            drop(output.take_spent());
            prop_assert_eq!(Arc::strong_count(&lent), 1);
        }
    }

    #[test]
    fn tiny_buffers_do_not_take_many_times_their_bytes() {
        let (wire, marks) = (Room::default(), Marks { low: 1, high: 2, max: 1 << 20 });
        let mut output = OutputBuffer::new((&wire, marks), true);
        (0..50_000).for_each(|_| output.write_owned(vec![7]).unwrap());
        assert_eq!(output.queued(), 50_000);
        assert!(output.held() <= 2 * output.queued() + GATHER, "{}", output.held());
    }

    /// Goal: what is lent comes back once, whatever becomes of it: sent at once, copied, sent later,
    /// refused, or in the queue of an output that closes.
    #[test]
    fn what_is_lent_comes_back() {
        let (wire, marks) = (Room::default(), Marks { low: 1, high: 2, max: 10 * GATHER });
        let (mut output, out) = (OutputBuffer::new((&wire, marks), false), Arc::new(()));
        let lend = |output: &mut OutputBuffer<_>, len: usize| {
            let mut slot = Some(Lent::new(&vec![7; len], &out));
            (output.write_foreign(&mut slot), slot.is_some())
        };
        let count = || Arc::strong_count(&out) - 1;
        wire.left.set(GATHER);
        assert_eq!((lend(&mut output, GATHER), count()), ((Ok(()), true), 0));
        assert_eq!((lend(&mut output, SMALL), count()), ((Ok(()), true), 0));
        assert_eq!((lend(&mut output, GATHER), count()), ((Ok(()), false), 1));
        assert_eq!((lend(&mut output, 10 * GATHER), count()), ((Err(Unwritten::Full), true), 1));
        assert_eq!((lend(&mut output, 2 * GATHER), count()), ((Ok(()), false), 2));
        wire.left.set(SMALL + GATHER + 1);
        output.unblock();
        output.flush();
        // It is not dropped under the lock.
        assert_eq!((count(), output.queued()), (2, 2 * GATHER - 1));
        drop(output.take_spent());
        assert_eq!(count(), 1);
        output.close();
        assert_eq!(count(), 1);
        drop(output.take_spent());
        assert_eq!((lend(&mut output, 9), count()), ((Err(Unwritten::Closed), true), 0));
    }

    /// Goal: a send may take any number of the queue's buffers, whole or in part. Method: five of
    /// them wait, and the wire makes room for as many bytes as reach into each.
    #[test]
    fn one_send_may_take_several_buffers() {
        for room in (0..=5 * GATHER).step_by(GATHER / 2) {
            let (wire, bytes) = (Room::default(), vec![7; 5 * GATHER]);
            let marks = Marks { low: 1, high: 2, max: bytes.len() };
            let mut output = OutputBuffer::new((&wire, marks), false);
            bytes.chunks(GATHER).for_each(|chunk| output.gather(chunk).unwrap());
            assert_eq!(output.queued(), bytes.len());
            for left in [room, bytes.len() - room] {
                wire.left.set(left);
                output.unblock();
                output.flush();
            }
            assert!(*wire.taken.borrow() == bytes, "after {room}");
            assert_eq!((output.queued(), output.is_pressed()), (0, false), "after {room}");
        }
    }

    /// Goal: a long buffer that leaves in many sends is copied a few times, not at each of them, and
    /// does not stay when little of it is left.
    #[test]
    fn a_long_buffer_is_copied_seldom() {
        let wire = Room::default();
        let marks = Marks { low: 1, high: 2, max: usize::MAX };
        let mut output = OutputBuffer::new((&wire, marks), false);
        output.write_owned(vec![7; 64 * GATHER]).unwrap();
        let (mut copies, mut place) = (0, output.head.as_ptr());
        while output.queued() > 0 {
            wire.left.set(GATHER / 4);
            output.unblock();
            output.flush();
            copies += usize::from(output.head.as_ptr() != place);
            place = output.head.as_ptr();
            assert!(output.head.capacity() <= 2 * output.queued() + GATHER);
        }
        assert!((1..10).contains(&copies), "{copies} copies");
    }
}
