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
//! A mailbox that the host pulls has no runs. It *rests* from when all has been pulled, and is called when something
//! comes: whoever sleeps for it, or its descriptor, is told, once, and who pulls and leaves something tells the next.
//!
//! A ring *flows* from a message on until all have read what there is and rest. What it needs for that, it has only
//! then: most rings of a million are idle.
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
//!    it only until the publisher that moved the head has called it, under the same lock. One that is pulled rests
//!    if, and only if, its cursor is there. So if all rest, nobody will read any segment, nor does, but for
//!    pullers, who have references to what they read. In a ring that does not flow, all rest. In one that does,
//!    each that rests is in `idle`, unless all do.
//! 5. Of a subscription in the ring: offered = head + what its mailbox says, from which the head was taken away
//!    when it came; waiting = head - cursor + what its mailbox says.
//! 6. A cursor is moved forward by the subscription's run, under the mailbox's lock, and set under both locks
//!    when the subscription comes or goes. So a run takes what has been appended to the segment that it is
//!    in without the channel's lock, which publishers need (*streaming*): `shown` of the page says how far
//!    it may go. Before it rests it looks with the channel's lock. Before it streams, it looks at its mailbox, by
//!    invariant 2: a message in the ring that it sees was appended after what the same publisher brought to the
//!    mailbox, so it sees that, too.
//!    What a run takes with the channel's lock may lie in several segments. It *turns over* from one to the next
//!    under the mailbox's lock alone, and tells there who waits for room.
//! 7. `started` says up to which message all have begun. It is behind the truth at the most, so no member is
//!    given more than its capacity by a publisher that looks at it without the mailbox's lock.
//! 8. A puller that sleeps has found its mailbox resting, under the mailbox's lock, and is counted before it gives
//!    that back. Whoever calls clears `resting`, takes that lock, and then looks whether somebody sleeps. So one of
//!    the two sees the other.
//!
//! Locks are taken in this order: channel, ready list, mailbox, spare segments.

use super::handler::Handler;
use super::mailbox::{Close, Entry, Mail, Offer, Overflow, Phase, Room, Settled};
use super::message::{Draft, Headers, Payload, Stored};
use super::publish::{Over, Waiting, count};
use super::ready::Call;
use super::route::{Channel, Snapshot, State};
use super::subscribe::{Execution, Subscriber};
use super::{Core, Work};
use crate::error::receipt::Told;
use crate::queue::{Page, Pen, Shown};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

/// Slots of a segment.
pub(super) const SEGMENT: usize = if cfg!(loom) { 2 } else { 128 };
/// How many segments a run takes at once at the most: the channel's lock, which all of its runs and publishers
/// need, and the count of references of each segment are what threads that serve it fight for.
const AT_ONCE: usize = if cfg!(loom) { 2 } else { 5 };
/// How many segments, and flows, are kept for whoever needs one next.
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
    fn is_full(&self) -> bool {
        self.pen.is_full()
    }

    #[inline(always)] // A part of `Ring::push`.
    fn push(&mut self, draft: Draft<'_>) {
        self.heavy |= draft.is_heavy();
        draft.write_over(self.pen.place());
        self.pen.push();
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

    /// Whether it may lie about until somebody happens to need it, which what is heavy may not.
    fn is_worth_keeping(&mut self) -> bool {
        self.reset() || !self.heavy
    }
}

/// Messages of a page, one after the other.
pub(super) struct InPlace<'a>(Shown<'a, Option<Stored>>);

impl<'a> Iterator for InPlace<'a> {
    type Item = &'a Stored;

    #[inline(always)] // A part of `Lent::next`.
    fn next(&mut self) -> Option<&'a Stored> {
        Some(self.0.next()?.as_ref().expect("written by `Segment::push`"))
    }
}

/// Messages of a page from an index on, all of which are shown.
#[inline]
fn read(page: &Messages, from: usize, count: usize) -> InPlace<'_> {
    InPlace(page.read(from, count))
}

/// What no ring of a hub uses.
#[derive(Default)]
pub(super) struct Spares(Mutex<Spare>);

#[derive(Default)]
struct Spare {
    /// Somebody may read them still.
    segments: VecDeque<Segment>,
    /// Without segments, and nobody in them.
    #[allow(clippy::vec_box, reason = "a ring takes the box")]
    flows: Vec<Box<Flow>>,
}

impl Spares {
    fn get(&self) -> Segment {
        let segment = self.lock().segment();
        segment.unwrap_or_else(Segment::new)
    }

    fn put(&self, mut segment: Segment) {
        if segment.is_worth_keeping() {
            self.lock().put(segment);
        }
    }

    /// A flow with one segment.
    fn flow(&self) -> Box<Flow> {
        let mut spare = self.lock();
        let (flow, segment) = (spare.flows.pop(), spare.segment());
        drop(spare);
        let mut flow = flow.unwrap_or_else(|| Box::new(Flow::new()));
        flow.last = Some(segment.unwrap_or_else(Segment::new));
        flow
    }

    /// Takes a flow back, with all its segments.
    fn put_flow(&self, mut flow: Box<Flow>) {
        // Some of those who rest may be listed still: they are another ring's affair when it flows again.
        flow.idle.clear();
        flow.full.extend(flow.last.take());
        flow.full.retain_mut(Segment::is_worth_keeping);
        let mut spare = self.lock();
        flow.full.drain(..).for_each(|segment| spare.put(segment));
        if spare.flows.len() < SPARES {
            spare.flows.push(flow);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Spare> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spare {
    fn segment(&mut self) -> Option<Segment> {
        for _ in 0..ASKED.min(self.segments.len()) {
            let mut first = self.segments.pop_front()?;
            if first.reset() {
                return Some(first);
            }
            self.segments.push_back(first);
        }
        None
    }

    fn put(&mut self, segment: Segment) {
        if self.segments.len() < SPARES {
            self.segments.push_back(segment);
        }
    }
}

/// The next position that a subscription in the ring takes, or [`APART`]. Written under the mailbox's lock while a
/// run may be active, and under both locks when it comes or goes.
pub(super) struct Cursor(AtomicU64);

/// The subscription is not in the ring.
const APART: u64 = u64::MAX;

impl Cursor {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(APART))
    }

    /// At the head, from where it is in the ring.
    pub(super) fn join(&self, head: u64) {
        self.0.store(head, Relaxed);
    }

    /// Out of the ring. Answers the next position that it would have taken.
    pub(super) fn part(&self) -> u64 {
        let next = self.next();
        self.0.store(APART, Relaxed);
        next
    }

    /// Takes so many.
    pub(super) fn advance(&self, count: usize) {
        self.0.store(self.next() + count as u64, Relaxed);
    }

    pub(super) fn is_in_ring(&self) -> bool {
        self.next() != APART
    }

    pub(super) fn next(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What a run takes from a segment of the ring.
pub(super) struct Taken {
    page: crate::sync::Arc<Messages>,
    from: usize,
    pub(super) count: usize,
    /// The position of the first.
    pub(super) position: u64,
}

/// What it takes with that from the segments behind, from their first messages on.
#[derive(Default)]
pub(super) struct Following {
    pub(super) count: usize,
    pages: [Option<crate::sync::Arc<Messages>>; AT_ONCE - 1],
}

impl Following {
    /// The next segment, and how many messages were taken of it. Something was.
    fn next(&mut self) -> (crate::sync::Arc<Messages>, usize) {
        self.pages.rotate_left(1);
        let next = self.pages.last_mut().and_then(Option::take);
        let count = self.count.min(SEGMENT);
        self.count -= count;
        (next.expect("taken with the messages in it"), count)
    }

    fn messages(&self) -> impl Iterator<Item = &Stored> {
        let mut left = self.count;
        self.pages.iter().map_while(Option::as_ref).flat_map(move |page| {
            let count = left.min(SEGMENT);
            left -= count;
            read(page, 0, count)
        })
    }
}

/// How often a publisher looks out for room, and a run for messages, before it rests.
const LOOKS: u32 = 16;
/// So many messages are worth a run at once.
const RIPE: usize = 16;

/// Waits for a moment, after so many looks: most handlers have made room before a thread were asleep.
fn pause(looks: u32) {
    match looks {
        0..8 => (0..8).for_each(|_| core::hint::spin_loop()),
        _ => std::thread::yield_now(),
    }
}

impl Taken {
    pub(super) fn messages(&self) -> InPlace<'_> {
        read(&self.page, self.from, self.count)
    }

    /// How many are shown behind it in its segment.
    #[inline]
    pub(super) fn more(&self) -> usize {
        self.page.shown().saturating_sub(self.from + self.count)
    }

    /// Looks out for a moment whether more comes behind it in its segment: to rest and to be called again takes longer
    /// than some messages do. It ends early when there are several, as each look takes the publisher's line from it.
    pub(super) fn await_more(&self) -> bool {
        for looks in 0..LOOKS {
            if self.more() >= RIPE {
                break;
            }
            pause(looks);
        }
        self.more() > 0
    }

    /// Whether nothing can come behind it in its segment.
    pub(super) fn is_at_end(&self) -> bool {
        self.from + self.count == SEGMENT
    }

    /// Goes on to so many that follow.
    fn advance(&mut self, count: usize) {
        self.from += self.count;
        self.position += self.count as u64;
        self.count = count;
    }

    /// Goes on to the next segment.
    fn turn_over(&mut self, following: &mut Following) {
        self.position += self.count as u64;
        (self.page, self.count) = following.next();
        self.from = 0;
    }

    /// What is left after the first so many, for a mailbox.
    pub(super) fn rest<'a>(
        &'a self,
        begun: usize,
        following: &'a Following,
    ) -> impl Iterator<Item = Entry> + 'a {
        let left = read(&self.page, self.from + begun, self.count - begun);
        left.chain(following.messages()).map(|stored| Entry::of_ring(stored, 0))
    }
}

/// See the head of the file.
#[derive(Default)]
pub(super) struct Ring {
    /// The position of the next message.
    head: u64,
    members: SmallVec<[Arc<Subscriber>; 1]>,
    flow: Option<Box<Flow>>,
}

/// What a ring has while it flows.
#[derive(Default)]
struct Flow {
    /// Those before the last.
    full: VecDeque<Segment>,
    /// None: it is a spare one.
    last: Option<Segment>,
    /// The position of the first slot.
    base: u64,
    /// Nobody is full while the head is below.
    limit: u64,
    /// Those that rest, unless all do. Some of them may have gone, or be there twice.
    idle: Vec<Arc<Subscriber>>,
    /// While they are called: those that are pulled.
    pulled: Vec<Arc<Subscriber>>,
    /// How many rest.
    resting: usize,
}

impl Ring {
    pub(super) fn members(&self) -> &[Arc<Subscriber>] {
        &self.members
    }

    pub(super) fn is_full(&self) -> bool {
        self.flow.as_ref().is_some_and(|flow| self.head >= flow.limit)
    }

    /// Whether there is room for a message with everybody.
    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        !self.is_full() || self.survey().is_empty()
    }

    /// Appends a message, for all members.
    #[inline(never)]
    fn push_seldom(&mut self, core: &Core, draft: Draft<'_>) {
        self.push(core, draft);
    }

    /// The same, as a part of whoever publishes, of which it is the most.
    #[inline(always)]
    pub(super) fn push(&mut self, core: &Core, draft: Draft<'_>) {
        if self.flow.is_none() {
            self.begin_to_flow(core);
        }
        let flow = self.flow.as_mut().expect("it flows");
        let last = match &mut flow.last {
            Some(last) if !last.is_full() => last,
            _ => flow.grow(core, &self.members, self.head),
        };
        last.push(draft);
        self.head += 1;
    }

    #[cold]
    fn begin_to_flow(&mut self, core: &Core) {
        let mut flow = core.spares.flow();
        flow.base = self.head;
        // There is room for one message in any mailbox; before the next, somebody looks.
        flow.limit = self.head;
        flow.resting = self.members.len();
        self.flow = Some(flow);
    }

    /// Looks at all cursors: those that are full now, if any, and a new limit.
    #[inline(never)]
    pub(super) fn survey(&mut self) -> Vec<Arc<Subscriber>> {
        let mut full = Vec::new();
        let Some(flow) = &mut self.flow else { return full };
        flow.limit = u64::MAX;
        for member in &*self.members {
            let ends = member.started() + u64::from(member.rules.capacity);
            flow.limit = flow.limit.min(ends);
            if ends <= self.head {
                full.push(Arc::clone(member));
            }
        }
        full
    }

    /// A subscription comes, or comes back, and rests. `mail` is its mailbox.
    pub(super) fn join(&mut self, member: &Arc<Subscriber>, mail: &mut Mail<Handler>) {
        mail.join(self.head);
        member.place.store(self.members.len() as u32, Relaxed);
        member.cursor.join(self.head);
        member.started.store(self.head as u32, Relaxed);
        if let Some(flow) = &mut self.flow {
            flow.limit = flow.limit.min(self.head + u64::from(member.rules.capacity));
        }
        self.members.push(Arc::clone(member));
        self.rest(member);
    }

    /// It has nothing to do, and is to be called.
    pub(super) fn rest(&mut self, member: &Arc<Subscriber>) {
        if member.resting.swap(true, Relaxed) {
            return;
        }
        let Some(flow) = &mut self.flow else { return };
        flow.resting += 1;
        if flow.resting == self.members.len() {
            return flow.idle.clear();
        }
        if flow.idle.len() > 2 * self.members.len() + 64 {
            // Each that rests, once.
            flow.idle.retain(|other| other.resting.swap(false, Relaxed));
            flow.idle.iter().for_each(|other| other.resting.store(true, Relaxed));
        }
        flow.idle.push(Arc::clone(member));
    }

    /// It does not rest any more. False: it did not.
    fn rouse(&mut self, member: &Subscriber) -> bool {
        let rested = member.resting.load(Relaxed);
        if rested {
            member.resting.store(false, Relaxed);
            if let Some(flow) = &mut self.flow {
                flow.resting -= 1;
            }
        }
        rested
    }

    /// When nobody has anything left to read, it does not flow any more.
    pub(super) fn release(&mut self, core: &Core) {
        if let Some(flow) = self.flow.take_if(|flow| flow.resting == self.members.len()) {
            core.spares.put_flow(flow);
        }
    }

    /// Puts those that rest on the ready list.
    #[inline]
    pub(super) fn call(&mut self, core: &Core) -> Call {
        match self.flow.as_mut() {
            Some(flow) if flow.resting > 0 => flow.call(core, &self.members),
            _ => None,
        }
    }

    /// Takes what is next for a member, up to the end of a segment and up to `most`.
    pub(super) fn take(&mut self, member: &Subscriber, most: usize) -> Option<Taken> {
        Some(self.take_several(member, 1, most)?.0)
    }

    /// The same, up to the end of so many `segments`.
    fn take_several(
        &mut self,
        member: &Subscriber,
        segments: usize,
        most: usize,
    ) -> Option<(Taken, Following)> {
        let next = member.cursor.next();
        if next == self.head {
            return None;
        }
        let flow = self.flow.as_mut()?;
        let index = (next - flow.base) as usize;
        let (first, from) = (index / SEGMENT, index % SEGMENT);
        let total = most.min((self.head - next) as usize).min(segments * SEGMENT - from);
        member.cursor.advance(total);
        let page = |segment: usize| crate::sync::Arc::clone(flow.segment(segment).pen.page());
        let count = total.min(SEGMENT - from);
        let mut following = Following { count: total - count, ..Following::default() };
        let pages = following.pages.iter_mut().take(following.count.div_ceil(SEGMENT));
        pages.zip(first + 1..).for_each(|(place, segment)| *place = Some(page(segment)));
        let (page, position) = (page(first), next);
        Some((Taken { page, from, count, position }, following))
    }

    /// What waits in the ring for a member. Under its mailbox's lock, if a run may be active.
    pub(super) fn waiting(&self, member: &Subscriber) -> u64 {
        if member.cursor.is_in_ring() { self.head - member.cursor.next() } else { 0 }
    }

    /// What is to be added to what its mailbox says that it was offered.
    pub(super) fn offered(&self, member: &Subscriber) -> u64 {
        if member.cursor.is_in_ring() { self.head } else { 0 }
    }

    /// Takes a member out of the ring. What waits for it goes to its mailbox, or with `discard` is only counted there.
    pub(super) fn part(&mut self, member: &Arc<Subscriber>, discard: bool) {
        self.rouse(member);
        let place = member.place.load(Relaxed);
        drop(self.members.swap_remove(place as usize));
        if let Some(moved) = self.members.get(place as usize) {
            moved.place.store(place, Relaxed);
        }
        let mut mail = member.mail();
        let waiting = self.waiting(member);
        let next = member.cursor.part();
        match discard {
            true => mail.part(&member.rules, self.head, waiting, core::iter::empty()),
            false => {
                let flow = self.flow.as_ref();
                let message = |position: u64| flow.expect("it flows").message(position).clone();
                let waiting = (next..next + waiting).map(message);
                mail.part(&member.rules, self.head, 0, waiting);
            }
        }
    }
}

impl Flow {
    /// A spare one. It has room for what most fill, so that none is made when one is behind for the first time.
    fn new() -> Self {
        Self { full: VecDeque::with_capacity(AT_ONCE), ..Self::default() }
    }

    /// Makes room at the end, where possible of what everybody has read.
    #[inline(never)]
    fn grow(&mut self, core: &Core, members: &[Arc<Subscriber>], head: u64) -> &mut Segment {
        self.full.extend(self.last.take());
        let read = members.iter().map(|member| member.cursor.next()).min();
        let read = read.unwrap_or(head);
        while self.base + SEGMENT as u64 <= read
            && let Some(mut first) = self.full.pop_front()
        {
            self.base += SEGMENT as u64;
            if first.reset() {
                return self.last.insert(first);
            }
            core.spares.put(first);
        }
        self.last.insert(core.spares.get())
    }

    fn segment(&self, index: usize) -> &Segment {
        let segment = match index == self.full.len() {
            true => self.last.as_ref(),
            false => self.full.get(index),
        };
        segment.expect("a position between base and head")
    }

    /// Puts those that rest on the ready list, and tells those who pull.
    #[inline(never)] // Where many are published few rest, so that who looks is inlined.
    fn call(&mut self, core: &Core, members: &[Arc<Subscriber>]) -> Call {
        let pulled = &mut self.pulled;
        let mut called = |member: &Arc<Subscriber>| match member.resting.swap(false, Relaxed) {
            true if member.rules.execution == Execution::Pull => {
                pulled.push(Arc::clone(member));
                false
            }
            rested => rested && member.mail().call(),
        };
        let call = match self.resting == members.len() {
            true => {
                let called = members.iter().filter(|member| called(member));
                let placed =
                    called.map(|member| (member.place(), Work::Mailbox(Arc::clone(member))));
                core.ready.push_all(members.len(), placed)
            }
            // The room for them is kept.
            false => {
                let called = self.idle.drain(..).filter(called);
                let placed = called.map(|member| (member.place(), Work::Mailbox(member)));
                core.ready.push_all(members.len(), placed)
            }
        };
        self.resting = 0;
        self.pulled.drain(..).for_each(|member| member.call_pullers());
        call
    }

    fn message(&self, position: u64) -> &Stored {
        let index = (position - self.base) as usize;
        let mut one = read(self.segment(index / SEGMENT).pen.page(), index % SEGMENT, 1);
        one.next().expect("one")
    }
}

/// What is next for a run of a subscription that shares.
pub(super) enum Next {
    /// It has taken messages from its mailbox.
    Mailbox,
    /// It has taken these from the ring; so many were lost before the first.
    Ring(Taken, Following, u64),
    /// Nothing: the run is over.
    Nothing,
}

/// What who pulls has got.
pub(super) struct Pull {
    pub(super) count: usize,
    /// If the last one pulled lies in the ring: how many were lost before it, and where it lies.
    pub(super) several: Option<(u64, Taken)>,
    /// There is more.
    pub(super) left: bool,
    /// The subscription takes no more messages.
    pub(super) over: bool,
    pub(super) close: Close<Handler>,
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
        let mut mail = member.mail();
        // Acquire: pairs with the Release where messages begin. Under the lock: a run that turns over changes what it
        // has taken together with what has begun of it.
        let begun = member.begun.load(Acquire);
        mail.keep_room(&member.rules, begun)
    }

    /// Takes what is next for a subscription that shares, up to `most` messages.
    /// Publishers that wait for room are told.
    pub(super) fn next(
        &self,
        member: &Arc<Subscriber>,
        batch: &mut VecDeque<Entry>,
        most: usize,
    ) -> Next {
        let mut state = self.lock();
        let mut mail = member.mail();
        let waiters = core::mem::take(&mut mail.has_waiters);
        let next = Self::next_of(&mut state, &mut mail, member, batch, most);
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
        most: usize,
    ) -> Next {
        if mail.is_empty() && mail.phase() == Phase::Open && member.cursor.is_in_ring() {
            // What was taken cannot be dropped for what comes; and whose handler fails is likely to give the rest
            // back, which has to be copied then.
            let drops = member.rules.overflow == Overflow::DropOldest;
            let segments = if drops || member.care().is_some() { 1 } else { AT_ONCE };
            let taken = state.ring.take_several(member, segments, most);
            let Some((taken, following)) = taken else { return Next::Nothing };
            member.begun.store(0, Relaxed);
            let lost = mail.take_shared((taken.count + following.count) as u32);
            return Next::Ring(taken, following, lost);
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
        let waiters = core::mem::take(&mut mail.has_waiters);
        let again = match mail.phase() == Phase::Open && mail.is_empty() {
            true if state.ring.waiting(member) > 0 => true,
            true => {
                if !member.cursor.is_in_ring() && !mail.stays_apart() {
                    self.join_ring(&mut state, member, &mut mail);
                }
                // Who has room kept for messages to come is on its own until it has them, and who is shut for good.
                if member.cursor.is_in_ring() {
                    state.ring.rest(member);
                    state.ring.release(core);
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

    /// Takes up to `most` messages for who pulls: `one` is given those of the mailbox, and those of a segment come
    /// back, with what was lost before them. `before` were taken by the same pull. Publishers that wait for room
    /// are told.
    pub(super) fn pull(
        &self,
        core: &Core,
        member: &Arc<Subscriber>,
        most: usize,
        before: usize,
        one: impl FnMut(Entry),
    ) -> Pull {
        let mut state = self.lock();
        let mut mail = member.mail();
        let over = mail.phase() != Phase::Open;
        let mut count = mail.pull(most, one);
        let is_apart = over || !mail.is_empty() || mail.stays_apart();
        if !is_apart && !member.cursor.is_in_ring() {
            self.join_ring(&mut state, member, &mut mail);
        }
        let mut several = None;
        if count < most && member.cursor.is_in_ring() {
            several = state.ring.take(member, most - count).map(|taken| {
                count += taken.count;
                (mail.pull_shared(taken.count), taken)
            });
        }
        let mut left = !mail.is_empty();
        if member.cursor.is_in_ring() {
            // Release: pairs with the Acquire in `started`.
            member.started.store(member.cursor.next() as u32, Release);
            left |= state.ring.waiting(member) > 0;
            if state.ring.waiting(member) == 0 {
                state.ring.rest(member);
            }
            if before + count == 0 {
                state.ring.release(core);
            }
        }
        let close = mail.end_if_over();
        let waiters = core::mem::take(&mut mail.has_waiters);
        drop((mail, state));
        if waiters {
            member.notify_room();
        }
        Pull { count, several, left, over, close }
    }

    /// Appends a message, if everybody is in the ring and has room. Answers for how many subscriptions; none: it was not
    /// taken.
    pub(super) fn push_one(&self, core: &Core, draft: &mut Option<Draft<'_>>) -> u64 {
        let mut state = self.lock();
        let members = state.all_in_ring();
        if members == 0 || !state.ring.has_room() {
            return 0;
        }
        if let Some(draft) = draft.take() {
            state.ring.push_seldom(core, draft);
        }
        let call = state.ring.call(core);
        drop(state);
        core.call(call);
        members
    }

    /// Appends as many of the next `most` messages as have room, if everybody is in the ring. Answers how many, and
    /// for how many subscriptions.
    #[inline]
    pub(super) fn push_shared<'a>(
        &self,
        core: &Core,
        drafts: &mut impl Iterator<Item = Draft<'a>>,
        most: usize,
    ) -> (usize, u64) {
        let mut state = self.lock();
        let (members, mut pushed) = (state.all_in_ring(), 0);
        if members == 0 {
            return (0, 0);
        }
        let ring = &mut state.ring;
        while pushed < most
            && ring.has_room()
            && let Some(draft) = drafts.next()
        {
            ring.push(core, draft);
            pushed += 1;
        }
        if pushed == 0 {
            return (0, 0);
        }
        let call = ring.call(core);
        drop(state);
        core.call(call);
        (pushed, members)
    }

    /// Offers a message to all who are in the ring. Who is on his own is answered, to be offered it by the
    /// caller; none, if nobody is. With `tries` nobody gets it where somebody would have the publisher wait.
    pub(super) fn offer_shared(
        &self,
        core: &Core,
        stored: &Stored,
        may_wait: bool,
        tries: bool,
        told: &mut Told,
    ) -> Option<Snapshot> {
        // It goes last, when the message is in the list.
        let mut waiting = None;
        let mut state = self.lock();
        let (full, stops) = match state.ring.is_full() {
            true => {
                let (waited, full, stops) = self.wait_for_room(core, state, may_wait, &mut waiting);
                state = waited;
                (full, stops)
            }
            false => (Vec::new(), false),
        };
        let blocks = |member: &Arc<Subscriber>| matches!(member.rules.overflow, Overflow::Block(_));
        if tries && full.iter().any(blocks) {
            told.again = true;
            return None;
        }
        // Before anybody is moved: those who are, are offered it here.
        let own = self.snapshot_of(&state);
        for member in &full {
            self.apart(&mut state, member);
            let offer = match member.rules.overflow {
                Overflow::Block(_) if stops => member.mail().refuse(),
                _ => member.offer_apart(stored),
            };
            count(told, offer, || member.refused());
        }
        let ring = &mut state.ring;
        let members = ring.members().len() as u64;
        if members > 0 {
            told.receipt.matched += members;
            told.receipt.enqueued += members;
            ring.push_seldom(core, stored.to_draft(&mut stored.payload.clone()));
        }
        let call = ring.call(core);
        drop(state);
        core.call(call);
        full.iter().for_each(|member| member.lost(core));
        own
    }

    /// Waits while those who are full let the publisher wait. Answers those who are full then; or, if the pool stops, also
    /// all who let publishers wait, and that it does.
    #[cold]
    fn wait_for_room<'a, 'b>(
        &'a self,
        core: &'b Core,
        mut state: MutexGuard<'a, State>,
        may_wait: bool,
        waiting: &mut Option<Waiting<'b>>,
    ) -> (MutexGuard<'a, State>, Vec<Arc<Subscriber>>, bool) {
        let blocks = |member: &&Arc<Subscriber>| {
            may_wait && matches!(member.rules.overflow, Overflow::Block(_))
        };
        let (mut look, mut next) = (0, None);
        loop {
            let mut full = state.ring.survey();
            if next == Some(Err(Over::Pool)) {
                let is_full =
                    |one: &Arc<Subscriber>| full.iter().any(|other| Arc::ptr_eq(other, one));
                let others = state.ring.members().iter().filter(blocks);
                let others: Vec<_> = others.filter(|one| !is_full(one)).cloned().collect();
                full.extend(others);
                return (state, full, true);
            }
            let Some(member) = full.iter().find(blocks) else { return (state, full, false) };
            match next {
                None => drop(state),
                Some(Ok(nap)) => {
                    let mut mail = member.mail();
                    mail.has_waiters = true;
                    // Whoever takes messages comes by the mailbox's lock and tells. Room is made when one begins, too,
                    // which nobody tells: hence short naps.
                    drop(state);
                    let waited = member.room().wait_timeout(mail, nap);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
                Some(Err(_)) => return (state, full, false),
            }
            if look < LOOKS {
                // A handler that is at work has made room before this thread were asleep.
                pause(look);
                look += 1;
            } else {
                // Not under the lock: it may be this thread that ends the drain, for which others' work may be dropped.
                next = Some(waiting.get_or_insert_with(|| Waiting::new(core, member)).nap(member));
            }
            state = self.lock();
        }
    }
}

impl Subscriber {
    /// Something has come into the ring for those who pull.
    fn call_pullers(&self) {
        // Invariant 8.
        drop(self.mail());
        if let Some(puller) = self.puller() {
            puller.notify();
        }
    }

    /// Where its channel has it among those in the ring. Under the channel's lock.
    fn place(&self) -> usize {
        self.place.load(Relaxed) as usize
    }

    /// Whether something is in the ring for those who pull. Under the mailbox's lock.
    pub(super) fn is_called(&self) -> bool {
        self.cursor.is_in_ring() && !self.resting.load(Relaxed)
    }

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

    /// Goes on to the next of the segments that a run has taken, having said what became of the messages in this
    /// one. False: there is none. Publishers that wait for room are told.
    pub(super) fn turn_over(
        &self,
        taken: &mut Taken,
        following: &mut Following,
        settled: &mut Settled,
    ) -> bool {
        if following.count == 0 {
            return false;
        }
        let mut mail = self.mail();
        mail.settle(&core::mem::take(settled));
        self.begun.store(0, Relaxed);
        let waiters = core::mem::take(&mut mail.has_waiters);
        drop(mail);
        if waiters {
            self.notify_room();
        }
        taken.turn_over(following);
        true
    }

    /// Offers a message to a mailbox that has just come from the ring, because it was full there.
    fn offer_apart(&self, stored: &Stored) -> Offer {
        let mut mail = self.mail();
        // Acquire: as in `keep_room`.
        let begun = self.begun.load(Acquire);
        // It is scheduled, for it had something in the ring.
        mail.offer(&self.rules, begun, stored, false)
    }
}

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
