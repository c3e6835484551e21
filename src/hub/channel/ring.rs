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
//!    when the subscription comes or goes, or when a run whose turn is over gives back what it took and has not
//!    begun. So a run takes what has been appended to the segment that it is in without the channel's lock, which
//!    publishers need (*streaming*): `shown` of the page says how far it may go. Before it rests it looks with the channel's lock. Before it streams, it looks at its mailbox, by
//!    invariant 2: a message in the ring that it sees was appended after what the same publisher brought to the
//!    mailbox, so it sees that, too.
//!    What a run takes with the channel's lock may lie in several segments. It *turns over* from one to the next
//!    under the mailbox's lock alone, and tells there who waits for room.
//! 7. `started` says up to which message all have begun. It is behind the truth at the most, so no member is
//!    given more than its capacity by a publisher that looks at it without the mailbox's lock. A segment stays until all
//!    of its messages have begun everywhere: so what is given back is there still.
//! 8. A puller that sleeps has found its mailbox resting, under the mailbox's lock, and is counted before it gives
//!    that back. Whoever calls clears `resting`, takes that lock, and then looks whether somebody sleeps. So one of
//!    the two sees the other.
//!
//! Locks are taken in this order: channel, ready list, mailbox, spare segments.

use crate::hub::channel::segment::{AT_ONCE, Following, SEGMENT, Segment, Taken, read};
use crate::hub::mailbox::handler::Handler;
use crate::hub::mailbox::mail::Mail;
use crate::hub::mailbox::rules::Execution;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::message::{Draft, Stored};
use crate::hub::run::ready::Call;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

/// How many segments, and flows, are kept for whoever needs one next.
const SPARES: usize = 256;
/// Of those that are kept, how many are asked whether somebody reads them still.
const ASKED: usize = 4;

/// What a ring needs of its hub.
pub(in crate::hub) trait Host {
    fn spares(&self) -> &Spares;
    /// Puts some of `count` subscriptions on the ready list, by their places among these.
    fn list(&self, count: usize, called: impl Iterator<Item = (usize, Arc<Subscriber>)>) -> Call;
}

/// What no ring of a hub uses.
#[derive(Default)]
pub(in crate::hub) struct Spares(Mutex<Spare>);

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

/// See the head of the file.
#[derive(Default)]
pub(in crate::hub) struct Ring {
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
    pub(in crate::hub) fn members(&self) -> &[Arc<Subscriber>] {
        &self.members
    }

    pub(in crate::hub) fn is_full(&self) -> bool {
        self.flow.as_ref().is_some_and(|flow| self.head >= flow.limit)
    }

    /// Whether there is room for a message with everybody.
    #[inline]
    pub(in crate::hub) fn has_room(&mut self) -> bool {
        !self.is_full() || self.survey().is_empty()
    }

    /// Appends a message, for all members.
    #[inline(never)]
    pub(in crate::hub) fn push_seldom(&mut self, host: &impl Host, draft: Draft<'_>) {
        self.push(host, draft);
    }

    /// The same, as a part of whoever publishes, of which it is the most.
    #[inline(always)]
    pub(in crate::hub) fn push(&mut self, host: &impl Host, draft: Draft<'_>) {
        if self.flow.is_none() {
            self.begin_to_flow(host);
        }
        let flow = self.flow.as_mut().expect("it flows");
        let last = match &mut flow.last {
            Some(last) if !last.is_full() => last,
            _ => flow.grow(host, &self.members, self.head),
        };
        last.push(draft);
        self.head += 1;
    }

    #[cold]
    fn begin_to_flow(&mut self, host: &impl Host) {
        let mut flow = host.spares().flow();
        flow.base = self.head;
        // There is room for one message in any mailbox; before the next, somebody looks.
        flow.limit = self.head;
        flow.resting = self.members.len();
        self.flow = Some(flow);
    }

    /// Looks at all cursors: those that are full now, if any, and a new limit.
    #[inline(never)]
    pub(in crate::hub) fn survey(&mut self) -> Vec<Arc<Subscriber>> {
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
    pub(in crate::hub) fn join(&mut self, member: &Arc<Subscriber>, mail: &mut Mail<Handler>) {
        mail.join(self.head);
        member.place.store(self.members.len() as u32, Relaxed);
        member.cursor.join(self.head);
        member.progress.started.store(self.head as u32, Relaxed);
        if let Some(flow) = &mut self.flow {
            flow.limit = flow.limit.min(self.head + u64::from(member.rules.capacity));
        }
        self.members.push(Arc::clone(member));
        self.rest(member);
    }

    /// It has nothing to do, and is to be called.
    pub(in crate::hub) fn rest(&mut self, member: &Arc<Subscriber>) {
        if member.progress.resting.swap(true, Relaxed) {
            return;
        }
        let Some(flow) = &mut self.flow else { return };
        flow.resting += 1;
        if flow.resting == self.members.len() {
            return flow.idle.clear();
        }
        if flow.idle.len() > 2 * self.members.len() + 64 {
            // Each that rests, once.
            flow.idle.retain(|other| other.progress.resting.swap(false, Relaxed));
            flow.idle.iter().for_each(|other| other.progress.resting.store(true, Relaxed));
        }
        flow.idle.push(Arc::clone(member));
    }

    /// It does not rest any more. False: it did not.
    fn rouse(&mut self, member: &Subscriber) -> bool {
        let rested = member.progress.resting.load(Relaxed);
        if rested {
            member.progress.resting.store(false, Relaxed);
            if let Some(flow) = &mut self.flow {
                flow.resting -= 1;
            }
        }
        rested
    }

    /// When nobody has anything left to read, it does not flow any more.
    pub(in crate::hub) fn release(&mut self, host: &impl Host) {
        if let Some(flow) = self.flow.take_if(|flow| flow.resting == self.members.len()) {
            host.spares().put_flow(flow);
        }
    }

    /// Puts those that rest on the ready list.
    #[inline]
    pub(in crate::hub) fn call(&mut self, host: &impl Host) -> Call {
        match self.flow.as_mut() {
            Some(flow) if flow.resting > 0 => flow.call(host, &self.members),
            _ => None,
        }
    }

    /// Takes what is next for a member, up to the end of a segment and up to `most`.
    pub(in crate::hub) fn take(&mut self, member: &Subscriber, most: usize) -> Option<Taken> {
        Some(self.take_several(member, 1, most)?.0)
    }

    /// The same, up to the end of so many `segments`.
    pub(in crate::hub) fn take_several(
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
    pub(in crate::hub) fn waiting(&self, member: &Subscriber) -> u64 {
        if member.cursor.is_in_ring() { self.head - member.cursor.next() } else { 0 }
    }

    /// What is to be added to what its mailbox says that it was offered.
    pub(in crate::hub) fn offered(&self, member: &Subscriber) -> u64 {
        if member.cursor.is_in_ring() { self.head } else { 0 }
    }

    /// Takes a member out of the ring. What waits for it goes to its mailbox, or with `discard` is only counted there.
    pub(in crate::hub) fn part(&mut self, member: &Arc<Subscriber>, discard: bool) {
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
    fn grow(&mut self, host: &impl Host, members: &[Arc<Subscriber>], head: u64) -> &mut Segment {
        self.full.extend(self.last.take());
        let read = members.iter().map(|member| member.started()).min();
        let read = read.unwrap_or(head);
        while self.base + SEGMENT as u64 <= read
            && let Some(mut first) = self.full.pop_front()
        {
            self.base += SEGMENT as u64;
            if first.reset() {
                return self.last.insert(first);
            }
            host.spares().put(first);
        }
        self.last.insert(host.spares().get())
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
    fn call(&mut self, host: &impl Host, members: &[Arc<Subscriber>]) -> Call {
        let pulled = &mut self.pulled;
        let mut called =
            |member: &Arc<Subscriber>| match member.progress.resting.swap(false, Relaxed) {
                true if member.rules.execution == Execution::Pull => {
                    pulled.push(Arc::clone(member));
                    false
                }
                rested => rested && member.mail().call(),
            };
        let call = match self.resting == members.len() {
            true => {
                let called = members.iter().filter(|member| called(member));
                let placed = called.map(|member| (member.place(), Arc::clone(member)));
                host.list(members.len(), placed)
            }
            // The room for them is kept.
            false => {
                let called = self.idle.drain(..).filter(called);
                let placed = called.map(|member| (member.place(), member));
                host.list(members.len(), placed)
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
