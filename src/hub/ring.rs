//! One ring of messages for all plain subscriptions of a channel.
//!
//! # The problem
//!
//! A copy into each of a thousand mailboxes costs a thousand times a lock, a copy and a count of references. So
//! subscriptions whose mailboxes do nothing special *share*: a message is appended once, and each of them reads
//! it where it lies, through a cursor of its own, many at a time.
//!
//! ```text
//!   segments   [ ■ ■ ■ ■ | ■ ■ ■ ■ | ■ ■ · · ]
//!                ▲    ▲          ▲       ▲
//!              base   cursor     cursor  head        limit = the least of cursor + capacity
//! ```
//!
//! # Who is where
//!
//! | a subscription is | its messages wait | it comes there |
//! |---|---|---|
//! | in the ring | from its cursor to the head | when it subscribes, and whenever it rests |
//! | on its own | in its mailbox | when it has fallen behind by its capacity |
//! | closed | in its mailbox, if at all | when it is unsubscribed: publishers do not meet it any more |
//!
//! Its overflow policy is then the mailbox's affair, and one that is slow holds up nobody else. While the
//! head is below the limit nobody is full, and a publisher looks at no cursor.
//!
//! # Invariants
//!
//! 1. A publication sees each subscription in the ring or on its own, never both or neither: it reads both
//!    lists under the channel's lock, and moves are made under it.
//! 2. What is in the mailbox of a subscription is older, for each publisher, than what it has in the ring. (A
//!    publisher that read the list before the subscription came to the ring may still bring its message
//!    to the mailbox; its next one is in the ring.) So the mailbox is served first.
//! 3. A slot is written before the head passes it, and again only after its segment was reset, which needs the
//!    only reference to it. Whoever reads holds another. So reading needs no lock. (`queue/page.rs`)
//! 4. A subscription in the ring that no run serves or is to serve rests: its cursor is at the head, or behind
//!    it only until the publisher that moved the head has called it, under the same lock. So if all rest,
//!    nobody reads any segment, nor will.
//! 5. Of a subscription in the ring: offered = books.offered + head - joined, waiting = head - cursor + what its
//!    mailbox says.
//! 6. A cursor is moved forward by the subscription's run, under the mailbox's lock, and set under both locks
//!    when the subscription comes or goes. So a run takes what has been appended to the segment that it is
//!    in without the channel's lock, which publishers need (*streaming*): `written` of the page says how far
//!    it may go. Before, it looks at its mailbox, by invariant 2: a message in the ring that it sees was
//!    appended after what the same publisher brought to the mailbox, so it sees that, too.
//! 7. `started` says up to which message all have begun. It is behind the truth at the most, so no member is
//!    given more than its capacity by a publisher that looks at it without the mailbox's lock.
//!
//! Locks are taken in this order: channel, mailbox, and last the ready list or the spare segments.

use super::handler::Handler;
use super::mailbox::{Close, Entry, Mail, Offer, Overflow, Phase, Room, Settled};
use super::message::{Draft, Headers, Payload, Stored};
use super::publish::count;
use super::ready::Call;
use super::receipt::Receipt;
use super::route::{Channel, Snapshot, State};
use super::subscribe::Subscriber;
use super::{Core, Work};
use crate::queue::{Page, Pen};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{Mutex, MutexGuard};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// Slots of a segment, which is what a run takes at once at the most.
pub(super) const SEGMENT: usize = if cfg!(loom) { 2 } else { 128 };
/// How many segments are kept for whoever needs one next.
const SPARES: usize = 256;
/// Of those that are kept, how many are asked whether somebody reads them still.
const ASKED: usize = 4;

/// What runs read of a segment.
type Messages = Page<Option<Stored>>;

/// Some messages, one after the other.
struct Segment {
    pen: Pen<Option<Stored>>,
    /// Some of them keep more than their places: payloads and headers elsewhere.
    heavy: bool,
}

impl Segment {
    fn new() -> Self {
        Self { pen: Pen::new(SEGMENT), heavy: false }
    }

    #[inline]
    fn push(&mut self, draft: Draft<'_>) {
        self.heavy |= draft.is_heavy();
        self.pen.push(|place| draft.write_over(place));
    }

    /// Makes it as good as new, but for what costs nothing to keep; false: somebody reads still.
    fn reset(&mut self) -> bool {
        let lighten = |place: &mut Option<Stored>| {
            if let Some(stored) = place {
                stored.headers = Headers::NONE;
                stored.payload = Payload::EMPTY;
            }
        };
        let done = if self.heavy { self.pen.reset(lighten) } else { self.pen.reset(|_| ()) };
        self.heavy &= !done;
        done
    }
}

/// Messages of a page from an index on, all of which are written.
#[inline]
fn read(page: &Messages, from: usize, count: usize) -> impl Iterator<Item = &Stored> {
    page.read(from, count).map(|place| place.as_ref().expect("written by `Segment::push`"))
}

/// Segments of a hub that no ring uses. Somebody may read them still.
#[derive(Default)]
pub(super) struct Spares(Mutex<VecDeque<Segment>>);

impl Spares {
    fn get(&self) -> Segment {
        let mut spares = self.lock();
        for _ in 0..ASKED.min(spares.len()) {
            let Some(mut first) = spares.pop_front() else { break };
            if first.reset() {
                return first;
            }
            spares.push_back(first);
        }
        drop(spares);
        Segment::new()
    }

    fn put(&self, mut segment: Segment) {
        // What is heavy is not kept for as long as nobody happens to need it.
        if !segment.reset() && segment.heavy {
            return;
        }
        let mut spares = self.lock();
        if spares.len() < SPARES {
            spares.push_back(segment);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Segment>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a subscription knows of the ring.
#[derive(Default)]
pub(super) struct Cursor {
    /// The next position that it takes. Written under the mailbox's lock while a run may be active.
    next: AtomicU64,
    /// The head when it came to the ring, or [`APART`]. Written under both locks.
    joined: AtomicU64,
}

/// In `Cursor::joined`: the subscription is not in the ring.
const APART: u64 = u64::MAX;

impl Cursor {
    pub(super) fn new() -> Self {
        Self { next: AtomicU64::new(0), joined: AtomicU64::new(APART) }
    }

    /// At the head, from where it is in the ring.
    pub(super) fn join(&self, head: u64) {
        self.next.store(head, Relaxed);
        self.joined.store(head, Relaxed);
    }

    /// Out of the ring. Answers the next position that it would have taken.
    pub(super) fn part(&self) -> u64 {
        self.joined.store(APART, Relaxed);
        self.next()
    }

    /// Takes so many.
    pub(super) fn advance(&self, count: usize) {
        self.next.store(self.next() + count as u64, Relaxed);
    }

    pub(super) fn is_in_ring(&self) -> bool {
        self.joined.load(Relaxed) != APART
    }

    pub(super) fn next(&self) -> u64 {
        self.next.load(Relaxed)
    }
}

/// What a run takes from the ring.
pub(super) struct Taken {
    page: crate::sync::Arc<Messages>,
    from: usize,
    pub(super) count: usize,
    /// The position of the first.
    pub(super) position: u64,
    /// How often somebody has looked for more behind it.
    looks: u32,
}

/// Messages behind what was taken that are worth a run. When they are fewer, who comes back a little later
/// takes more at once, and does not have the publisher wait for the lines that both of them touch.
const RIPE: usize = 64;
/// After so many looks any message is worth one.
const RIPE_LOOKS: u32 = 12;
/// After so many the run rests.
const LAST_LOOK: u32 = 2 * LOOKS;

/// How often whoever waits for the other side looks.
const LOOKS: u32 = 16;
/// After so many looks it pauses for longer, and after so many it yields.
const SHORT: u32 = 8;
const PAUSED: u32 = 12;
/// How long it pauses first, in what the processor takes for one pause.
const PAUSES: u32 = 8;

/// Waits for a moment, after so many looks.
fn pause(looks: u32) {
    match looks {
        0..SHORT => (0..PAUSES).for_each(|_| core::hint::spin_loop()),
        SHORT..PAUSED => (0..2 * PAUSES).for_each(|_| core::hint::spin_loop()),
        _ => std::thread::yield_now(),
    }
}

impl Taken {
    pub(super) fn messages(&self) -> impl Iterator<Item = &Stored> {
        read(&self.page, self.from, self.count)
    }

    /// How many there are behind it in its segment.
    #[inline]
    pub(super) fn more(&self) -> usize {
        self.page.written() - self.from - self.count
    }

    /// Whether its segment has no place behind it.
    fn is_at_end(&self) -> bool {
        self.from + self.count == SEGMENT
    }

    /// Whether it is worth a run to see what comes behind it.
    #[inline]
    pub(super) fn is_ripe(&self) -> bool {
        let more = self.more();
        more >= RIPE || self.is_at_end() || more > 0 && self.looks >= RIPE_LOOKS
    }

    /// Whether somebody may look for more.
    pub(super) fn may_look(&self) -> bool {
        self.looks < LAST_LOOK
    }

    /// Somebody has looked, and `waits` for a moment before the next time.
    pub(super) fn look(mut self, waits: bool) -> Self {
        if waits {
            pause(self.looks / 2);
        }
        self.looks += 1;
        self
    }

    /// Goes on to so many that follow.
    fn advance(&mut self, count: usize) {
        self.from += self.count;
        self.position += self.count as u64;
        self.count = count;
        self.looks = 0;
    }

    /// What is left after the first so many, for a mailbox.
    pub(super) fn rest(&self, begun: usize) -> impl Iterator<Item = Entry> {
        let left = read(&self.page, self.from + begun, self.count - begun);
        left.map(|stored| Entry::of_ring(stored, 0))
    }
}

/// See the head of the file.
#[derive(Default)]
pub(super) struct Ring {
    segments: VecDeque<Segment>,
    /// The position of the first slot.
    base: u64,
    /// The position of the next message.
    head: u64,
    /// Nobody is full while the head is below.
    limit: u64,
    members: Vec<Arc<Subscriber>>,
    /// Those that rest. Some of them may have gone, or be there twice.
    idle: Vec<Arc<Subscriber>>,
    /// How many rest.
    resting: usize,
}

impl Ring {
    pub(super) fn members(&self) -> &[Arc<Subscriber>] {
        &self.members
    }

    pub(super) fn is_full(&self) -> bool {
        self.head >= self.limit
    }

    /// Whether there is room for a message with everybody.
    #[inline]
    fn has_room(&mut self) -> bool {
        !self.is_full() || self.survey().is_empty()
    }

    /// Appends a message, for all members.
    pub(super) fn push(&mut self, core: &Core, draft: Draft<'_>) {
        let index = (self.head - self.base) as usize;
        if index == self.segments.len() * SEGMENT {
            self.grow(core);
        }
        // The last, since each is full before there is another.
        self.segments.back_mut().expect("there is room").push(draft);
        self.head += 1;
    }

    /// Makes room at the end, where possible of what everybody has read.
    fn grow(&mut self, core: &Core) {
        let read = self.members.iter().map(|member| member.cursor.next()).min();
        let read = read.unwrap_or(self.head);
        while self.base + SEGMENT as u64 <= read
            && let Some(mut first) = self.segments.pop_front()
        {
            self.base += SEGMENT as u64;
            if first.reset() {
                return self.segments.push_back(first);
            }
            core.spares.put(first);
        }
        self.segments.push_back(core.spares.get());
    }

    /// Looks at all cursors: those that are full now, if any, and a new limit.
    pub(super) fn survey(&mut self) -> Vec<Arc<Subscriber>> {
        let mut full = Vec::new();
        self.limit = u64::MAX;
        for member in &self.members {
            let ends = member.started() + u64::from(member.rules.capacity);
            self.limit = self.limit.min(ends);
            if ends <= self.head {
                full.push(Arc::clone(member));
            }
        }
        full
    }

    /// A subscription comes, or comes back, and rests.
    pub(super) fn join(&mut self, member: &Arc<Subscriber>) {
        if self.members.is_empty() {
            // Many channels have one subscription for ever.
            self.members.reserve_exact(1);
            self.idle.reserve_exact(1);
        }
        member.place.store(self.members.len() as u32, Relaxed);
        member.cursor.join(self.head);
        member.started.store(self.head as u32, Relaxed);
        self.limit = match self.members.is_empty() {
            true => self.head + u64::from(member.rules.capacity),
            false => self.limit.min(self.head + u64::from(member.rules.capacity)),
        };
        self.members.push(Arc::clone(member));
        self.rest(member);
    }

    /// It has nothing to do, and is to be called.
    pub(super) fn rest(&mut self, member: &Arc<Subscriber>) {
        if member.resting.swap(true, Relaxed) {
            return;
        }
        self.resting += 1;
        if self.idle.len() > 2 * self.members.len() + 64 {
            // Each that rests, once.
            self.idle.retain(|other| other.resting.swap(false, Relaxed));
            self.idle.iter().for_each(|other| other.resting.store(true, Relaxed));
        }
        self.idle.push(Arc::clone(member));
    }

    /// It does not rest any more. False: it did not.
    fn rouse(&mut self, member: &Subscriber) -> bool {
        let rested = member.resting.load(Relaxed);
        if rested {
            member.resting.store(false, Relaxed);
            self.resting -= 1;
        }
        rested
    }

    /// When nobody has anything left to read, gives the segments back.
    pub(super) fn release(&mut self, core: &Core) {
        if self.resting == self.members.len() && !self.segments.is_empty() {
            self.base = self.head;
            self.segments.drain(..).for_each(|segment| core.spares.put(segment));
        }
    }

    /// Puts those that rest on the ready list.
    #[inline]
    fn call(&mut self, core: &Core) -> Call {
        if self.idle.is_empty() {
            return None;
        }
        let mut idle = core::mem::take(&mut self.idle);
        let rested = idle.drain(..).filter(|member| self.rouse(member));
        let called = rested.filter(|member| member.mail().call());
        let call = core.ready.push_all(called.map(Work::Mailbox));
        // Its room is kept.
        self.idle = idle;
        call
    }

    /// Takes what is next for a member, up to the end of a segment.
    pub(super) fn take(&mut self, member: &Subscriber) -> Option<Taken> {
        let next = member.cursor.next();
        if next == self.head {
            return None;
        }
        let index = (next - self.base) as usize;
        let left = (self.head - next) as usize;
        let count = left.min(SEGMENT - index % SEGMENT);
        member.cursor.advance(count);
        let page = crate::sync::Arc::clone(self.segments[index / SEGMENT].pen.page());
        Some(Taken { page, from: index % SEGMENT, count, position: next, looks: 0 })
    }

    /// What waits in the ring for a member. Under its mailbox's lock, if a run may be active.
    pub(super) fn waiting(&self, member: &Subscriber) -> u64 {
        if member.cursor.is_in_ring() { self.head - member.cursor.next() } else { 0 }
    }

    /// How many messages it was offered in the ring.
    pub(super) fn offered(&self, member: &Subscriber) -> u64 {
        match member.cursor.joined.load(Relaxed) {
            APART => 0,
            joined => self.head - joined,
        }
    }

    /// Takes a member out of the ring. What waits for it goes to its mailbox, or with `discard` is only counted there.
    pub(super) fn part(&mut self, member: &Arc<Subscriber>, discard: bool) {
        self.rouse(member);
        let place = member.place.load(Relaxed);
        self.members.swap_remove(place as usize);
        if let Some(moved) = self.members.get(place as usize) {
            moved.place.store(place, Relaxed);
        }
        let mut mail = member.mail();
        let (offered, waiting) = (self.offered(member), self.waiting(member));
        let next = member.cursor.part();
        match discard {
            true => mail.part(&member.rules, offered, waiting, core::iter::empty()),
            false => {
                let first = (next - self.base) as usize;
                let segments = &self.segments;
                let message = |index: usize| {
                    let mut one = read(segments[index / SEGMENT].pen.page(), index % SEGMENT, 1);
                    one.next().expect("one").clone()
                };
                let waiting = (first..first + waiting as usize).map(message);
                mail.part(&member.rules, offered, 0, waiting);
            }
        }
    }
}

/// What is next for a run of a subscription that shares.
pub(super) enum Next {
    /// It has taken messages from its mailbox.
    Mailbox,
    /// It has taken these from the ring; so many were lost before the first.
    Ring(Taken, u64),
    /// Nothing: the run is over.
    Nothing,
}

impl Channel {
    /// Takes a subscription out of the ring, if it is there: what waits comes to its mailbox.
    pub(super) fn part(&self, state: &mut State, member: &Arc<Subscriber>) {
        if member.cursor.is_in_ring() {
            self.apart(state, member);
        }
    }

    /// Keeps room in the mailbox of a subscription for a message to come. It is on its own until then: what it
    /// has in the ring is before that message.
    pub(super) fn keep_room(&self, member: &Arc<Subscriber>) -> Room {
        let mut state = member.rules.shared.then(|| self.lock());
        if let Some(state) = &mut state {
            self.part(state, member);
        }
        // Acquire: pairs with the Release where messages begin.
        let begun = member.begun.load(Acquire);
        member.mail().keep_room(&member.rules, begun)
    }

    /// Takes what is next for a subscription that shares.
    /// Publishers that wait for room are told.
    pub(super) fn next(&self, member: &Arc<Subscriber>, batch: &mut VecDeque<Entry>) -> Next {
        let mut state = self.lock();
        let mut mail = member.mail();
        let waiters = core::mem::take(&mut mail.waiters) > 0;
        let next = Self::next_of(&mut state, &mut mail, member, batch);
        drop((mail, state));
        if waiters {
            member.notify_room();
        }
        next
    }

    fn next_of(
        state: &mut State,
        mail: &mut Mail<Handler>,
        member: &Arc<Subscriber>,
        batch: &mut VecDeque<Entry>,
    ) -> Next {
        if mail.is_empty() && mail.phase() == Phase::Open && member.cursor.is_in_ring() {
            let Some(taken) = state.ring().take(member) else { return Next::Nothing };
            member.begun.store(0, Relaxed);
            let lost = mail.take_shared(taken.count as u32);
            return Next::Ring(taken, lost);
        }
        member.begun.store(0, Relaxed);
        match mail.take(&member.rules, batch) {
            true => Next::Mailbox,
            false => Next::Nothing,
        }
    }

    /// A run of a subscription that shares has found nothing more, and leaves with the handler. True: something
    /// has come meanwhile. If not it rests, and comes back to the ring if it was on its own. Publishers that wait
    /// for room are told.
    pub(super) fn leave_run(
        &self,
        core: &Core,
        member: &Arc<Subscriber>,
        handler: Option<Handler>,
    ) -> (Close<Handler>, bool) {
        let mut state = self.lock();
        let mut mail = member.mail();
        let waiters = core::mem::take(&mut mail.waiters) > 0;
        let again = match mail.phase() == Phase::Open && mail.is_empty() {
            true if state.ring().waiting(member) > 0 => true,
            true => {
                if !member.cursor.is_in_ring() && !mail.keeps_room() {
                    self.join_ring(&mut state, member);
                }
                // Who has room kept for messages to come is on its own until it has them.
                if member.cursor.is_in_ring() {
                    let ring = state.ring();
                    ring.rest(member);
                    ring.release(core);
                }
                !mail.rest(&member.rules)
            }
            false => !mail.rest(&member.rules),
        };
        let close = mail.leave(handler);
        drop((mail, state));
        if waiters {
            member.notify_room();
        }
        (close, again)
    }

    /// Appends a message and as many of `more` as have room, if everybody is in the ring and has room. Else
    /// the first comes back.
    #[inline]
    pub(super) fn push_shared<'a>(
        &self,
        core: &Core,
        draft: Draft<'a>,
        more: &mut impl Iterator<Item = Draft<'a>>,
        receipt: &mut Receipt,
    ) -> Result<(), Draft<'a>> {
        let mut state = self.lock();
        let (ring, nobody_else) = state.ring_alone();
        let members = ring.members().len() as u64;
        if !nobody_else || members == 0 || !ring.has_room() {
            return Err(draft);
        }
        let mut next = Some(draft);
        while let Some(draft) = next {
            receipt.sequence = draft.sequence;
            receipt.matched += members;
            receipt.enqueued += members;
            ring.push(core, draft);
            next = if ring.has_room() { more.next() } else { None };
        }
        let call = ring.call(core);
        drop(state);
        core.call(call);
        Ok(())
    }

    /// Offers a message to all who are in the ring. Who is on his own is answered, to be offered it by the
    /// caller; none, if nobody is.
    pub(super) fn offer_shared(
        &self,
        core: &Core,
        stored: &Stored,
        may_block: bool,
        receipt: &mut Receipt,
    ) -> Option<Snapshot> {
        let mut state = self.lock();
        let full = match state.ring().is_full() {
            true => {
                let (waited, full) = self.wait_for_room(state, may_block);
                state = waited;
                full
            }
            false => Vec::new(),
        };
        // Before anybody is moved: those who are, are offered it here.
        let own = self.snapshot_of(&state);
        for member in &full {
            self.apart(&mut state, member);
            count(receipt, member.offer_apart(stored));
        }
        let ring = state.ring();
        let members = ring.members().len() as u64;
        if members > 0 {
            receipt.matched += members;
            receipt.enqueued += members;
            ring.push(core, stored.to_draft(&mut stored.payload.clone()));
        }
        let call = ring.call(core);
        drop(state);
        core.call(call);
        full.iter().for_each(|member| member.lost(core));
        own
    }

    /// Waits while those who are full let the publisher wait. Answers those who are full then.
    #[cold]
    fn wait_for_room<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        may_block: bool,
    ) -> (MutexGuard<'a, State>, Vec<Arc<Subscriber>>) {
        let mut until: Option<Instant> = None;
        let mut look = 0;
        loop {
            let full = state.ring().survey();
            let timeout = |member: &&Arc<Subscriber>| match member.rules.overflow {
                Overflow::Block(timeout) if may_block => Some(timeout),
                _ => None,
            };
            let blocking = full.iter().find(|member| timeout(member).is_some());
            let Some(member) = blocking else { return (state, full) };
            if look < LOOKS {
                // A handler that is at work has made room before this thread were asleep.
                drop(state);
                pause(look);
                look += 1;
                state = self.lock();
                continue;
            }
            let timeout = timeout(&member).unwrap_or_default().min(FOREVER);
            let at = *until.get_or_insert_with(|| Instant::now() + timeout);
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return (state, full);
            }
            let mut mail = member.mail();
            mail.waiters += 1;
            // Whoever makes room comes by the mailbox's lock, so it is not slept through.
            drop(state);
            let waited = member.room().wait_timeout(mail, left);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            state = self.lock();
        }
    }
}

impl Subscriber {
    /// The message at this position begins: it does not wait any more.
    #[inline]
    pub(super) fn start(&self, position: u64) {
        // Release: pairs with the Acquire in `started`.
        self.started.store((position as u32).wrapping_add(1), Release);
    }

    /// Up to where messages have begun, which is not far from the cursor.
    fn started(&self) -> u64 {
        // Acquire: pairs with the Release in `start`.
        let started = self.started.load(Acquire);
        near(self.cursor.next(), started)
    }

    /// Says what became of messages that a run has taken from the ring, and takes those that have been appended
    /// behind them in the same segment, up to `most`. Answers what was lost before the first. None: there is
    /// nothing, or the run has to come by the channel's lock.
    pub(super) fn stream(
        &self,
        taken: &mut Taken,
        settled: &mut Settled,
        most: usize,
    ) -> Option<u64> {
        let more = taken.more().min(most);
        let mut mail = self.mail();
        mail.settle(&core::mem::take(settled));
        let lost = mail.stream(&self.cursor, more)?;
        self.begun.store(0, Relaxed);
        drop(mail);
        taken.advance(more);
        Some(lost)
    }

    /// Offers a message to a mailbox that has just come from the ring, because it was full there.
    fn offer_apart(&self, stored: &Stored) -> Offer {
        let begun = self.begun.load(Acquire);
        // It is scheduled, for it had something in the ring.
        self.mail().offer(&self.rules, begun, stored, false)
    }
}

/// Nobody waits for longer at a time.
const FOREVER: Duration = Duration::from_secs(100 * 366 * 86_400);

/// The position with these last bits that is next to another.
fn near(position: u64, bits: u32) -> u64 {
    let ahead = (position as u32).wrapping_sub(bits) as i32;
    position.wrapping_sub(i64::from(ahead) as u64)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_told_by_its_last_bits() {
        for position in [0, 5, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 3, 7 << 32] {
            for other in [0, 1, 128, 1 << 20] {
                let before = u64::saturating_sub(position, other);
                assert_eq!(near(position, before as u32), before);
                assert_eq!(near(before, position as u32), position);
            }
        }
    }
}
