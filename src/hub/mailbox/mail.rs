//! What waits for one subscription: the mailbox, what it does when it is full, and when it is served.
//!
//! Everything here happens under the mailbox's lock, which is held for a few steps and never while code
//! of the user runs.
//!
//! # Phases
//!
//! | phase | takes messages | is served | the handler is |
//! |---|---|---|---|
//! | OPEN | yes | yes | in the mailbox, or with its run |
//! | SUSPENDED | no: they become dead letters | no | likewise |
//! | DRAINING | no | yes | likewise |
//! | CLOSED | no | no: what waited was discarded | with its runs, until the last one ends |
//! | ENDING | no | no | with whoever drops it |
//! | ENDED | no | no | dropped |
//!
//! ```text
//!          unsubscribe(Drain)            nothing waits, no run is active
//!   OPEN ─────────────────────► DRAINING ───────────────────────────────┐
//!    ▲│ unsubscribe(Async, Sync)   │                                    ▼      handler dropped
//!    │├────────────────────────────┴──────► CLOSED ──no run is active──► ENDING ──────────────► ENDED
//!    │└─ suspended ─► SUSPENDED (unsubscribe as from OPEN)
//!    └─── resumed ────────┘
//! ```
//!
//! # Runs
//!
//! A *run* serves the mailbox on some thread for a while. It is *scheduled* from when it is put on the ready
//! list until it finds nothing to do, and *active* while a thread is in it.
//!
//! When the pool ends, each mailbox is *shut*: it takes no more messages, as if it had ended, whatever its phase. (What is
//! offered to a suspended one still becomes a dead letter.) What waits in it is served, pulled, or counted as left.
//!
//! A message that was failed at and is to be tried again is *held* until its time has come, and then *due*:
//! the next one to be taken. While a serial mailbox holds one that is not due, it *pauses*: nothing is taken
//! out of it.
//!
//! # Invariants
//!
//! 1. If something waits in an OPEN or DRAINING mailbox that the pool serves, a run is scheduled, or it
//!    pauses. (Offering and resting hold the same lock: a rest sees the message, or the offer sees the rest.)
//!    For each message that is held and not due a timer is on its way.
//! 2. At most `rules.runs` are scheduled: one for serial execution, so a handler there is never on two
//!    threads. It is even moved out of the mailbox by its run, and back before the run is no longer
//!    scheduled.
//! 3. After CLOSED no handler begins, and the handler leaves the mailbox once, when no run is active.
//! 4. offered = delivered + failed + dead + dropped + rejected + discarded + waiting + taken.
//! 5. While room is kept for messages to come (`publish/all.rs`), nobody else is given it: a mailbox that refuses
//!    counts it as taken, so those messages are not refused.
//! 6. What becomes a dead letter is one before it is counted as one. Until then it is taken, and whoever buries it
//!    is active: who suspends, or offers to a suspended mailbox, as well as a run.
//! 7. Behind a shut, a look at what waits sees all messages that were accepted: offers and the shut hold the same lock.
//! 8. Each loss is told once, on the message behind it. (`Entry::lost`; when the lost one was the last, on
//!    the next that comes.)

use crate::hub::channel::cursor::RingCursor;
use crate::hub::keys::key::Key;
use crate::hub::mailbox::counters::{Counters, Settled};
use crate::hub::mailbox::entry::Entry;
use crate::hub::mailbox::rules::{Overflow, Rules};
use crate::hub::message::{Priority, Stored};
use std::collections::{HashMap, VecDeque};

/// Messages that are to be tried again.
#[derive(Debug, Default)]
pub(in crate::hub) struct Held {
    later: Vec<Entry>,
    due: VecDeque<Entry>,
}

/// Where the messages of a mailbox wait, in the order in which they are delivered.
#[derive(Debug)]
enum Queue {
    Plain(VecDeque<Entry>),
    /// By priority.
    Ranked([VecDeque<Entry>; Priority::ALL.len()]),
    /// By arrival, and where each key's message is: its place since the first of all.
    Conflating {
        queue: VecDeque<Entry>,
        places: HashMap<Key, u64>,
        first: u64,
    },
}

impl Queue {
    fn new(rules: &Rules) -> Self {
        match (rules.overflow, rules.ranked) {
            (Overflow::Conflate, _) => {
                Self::Conflating { queue: VecDeque::new(), places: HashMap::new(), first: 0 }
            }
            (_, true) => Self::Ranked(Default::default()),
            (_, false) => Self::Plain(VecDeque::new()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Plain(queue) | Self::Conflating { queue, .. } => queue.len(),
            Self::Ranked(queues) => queues.iter().map(VecDeque::len).sum(),
        }
    }

    fn push(&mut self, entry: Entry) {
        match self {
            Self::Plain(queue) => queue.push_back(entry),
            Self::Ranked(queues) => queues[entry.stored.priority as usize].push_back(entry),
            Self::Conflating { queue, places, first } => {
                let place = first.wrapping_add(queue.len() as u64);
                places.insert(entry.stored.key.clone(), place);
                queue.push_back(entry);
            }
        }
    }

    /// The next one to be delivered.
    fn pop(&mut self) -> Option<Entry> {
        match self {
            Self::Plain(queue) => queue.pop_front(),
            Self::Ranked(queues) => queues.iter_mut().rev().find_map(VecDeque::pop_front),
            Self::Conflating { queue, places, first } => {
                let entry = queue.pop_front()?;
                *first = first.wrapping_add(1);
                places.remove(&entry.stored.key);
                Some(entry)
            }
        }
    }

    /// What is given up for a newer one: the oldest; with priorities, of the least.
    fn pop_oldest(&mut self) -> Option<Entry> {
        match self {
            Self::Ranked(queues) => queues.iter_mut().find_map(VecDeque::pop_front),
            Self::Plain(_) | Self::Conflating { .. } => self.pop(),
        }
    }

    /// Puts the next one back, where it was.
    fn push_front(&mut self, entry: Entry) {
        match self {
            Self::Plain(queue) => queue.push_front(entry),
            Self::Ranked(queues) => queues[entry.stored.priority as usize].push_front(entry),
            Self::Conflating { queue, places, first } => {
                *first = first.wrapping_sub(1);
                places.entry(entry.stored.key.clone()).or_insert(*first);
                queue.push_front(entry);
            }
        }
    }

    fn front_mut(&mut self) -> Option<&mut Entry> {
        match self {
            Self::Plain(queue) | Self::Conflating { queue, .. } => queue.front_mut(),
            Self::Ranked(queues) => queues.iter_mut().rev().find_map(VecDeque::front_mut),
        }
    }

    /// The message of the same key that waits, if one may be replaced by another.
    fn same_key(&mut self, key: &Key) -> Option<&mut Entry> {
        let Self::Conflating { queue, places, first } = self else { return None };
        let place = places.get(key)?.wrapping_sub(*first);
        queue.get_mut(place as usize)
    }
}

/// See the head of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::hub) enum Phase {
    Open,
    Suspended,
    Draining,
    Closed,
    Ending,
    Ended,
}

/// What became of an offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(in crate::hub) enum Offer {
    /// The mailbox takes nothing more: the subscription has ended.
    Closed,
    /// It waits. `schedule`: the caller puts a run on the ready list.
    Enqueued {
        schedule: bool,
        number: u64,
    },
    /// It has taken the place of an older one of its key.
    Replaced,
    Dropped,
    Rejected,
    /// The subscription is suspended: the caller makes it a dead letter, and then calls `buried`.
    Dead,
    /// There is no room yet. It has not been counted.
    Full,
}

/// Whether a message to come has room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(in crate::hub) enum Room {
    /// It will not be refused. The caller offers it by `offer_kept`, or calls `release_room`.
    Kept,
    /// It would be refused.
    Full,
    /// The subscription has ended.
    Closed,
}

/// What a closed mailbox leaves to do.
#[must_use]
pub(in crate::hub) enum Close<H> {
    /// It was closed before.
    Stale,
    /// The last run will end it.
    Later,
    /// No run is active: the caller drops the handler, if there is one, and then calls `ended`.
    Now(Option<H>),
}

/// What became of messages that a run has given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(in crate::hub) enum Back {
    Kept,
    /// The subscription is suspended: the caller makes them dead letters, and then settles them.
    Dead,
    /// It has ended.
    Discarded,
}

/// See the head of the file. `H` is the handler.
pub(in crate::hub) struct Mail<H> {
    /// Made for the first message that does not just come and go by the channel's ring.
    aside: Option<Box<Aside>>,
    handler: Option<H>,
    /// Of the counters, what every message is in. While it is in the channel's ring: less the ring's head when it came
    /// there.
    offered: u64,
    delivered: u64,
    active: u32,
    /// Messages that a run took and has not settled.
    taken: u32,
    scheduled: u16,
    phase: Phase,
    /// The pool ends.
    shut: bool,
    /// Publishers wait for room, and have not been told.
    pub(in crate::hub) has_waiters: bool,
}

/// What a mailbox needs when something waits in it, or has been lost or failed at.
#[derive(Debug, Default)]
struct Aside {
    /// Made for the first message.
    queue: Option<Queue>,
    held: Held,
    /// Losses that no message tells yet.
    lost: u64,
    /// Messages to come that room is kept for.
    kept: u32,
    /// Of the delivered, those that are about to become dead letters.
    burying: u64,
    /// But for what the mailbox counts itself.
    counters: Counters,
}

fn take_lost(aside: &mut Option<Box<Aside>>) -> u64 {
    aside.as_mut().map_or(0, |aside| core::mem::take(&mut aside.lost))
}

impl<H> Mail<H> {
    pub(in crate::hub) fn new(handler: Option<H>) -> Self {
        Self {
            aside: None,
            handler,
            offered: 0,
            delivered: 0,
            active: 0,
            taken: 0,
            scheduled: 0,
            phase: Phase::Open,
            shut: false,
            has_waiters: false,
        }
    }

    pub(in crate::hub) fn phase(&self) -> Phase {
        self.phase
    }

    /// The pool ends: it takes no more messages.
    pub(in crate::hub) fn shut(&mut self) {
        self.shut = true;
    }

    fn takes_messages(&self) -> bool {
        self.phase == Phase::Open && !self.shut
    }

    /// The counters; of one in the channel's ring, by `with_ring` of the channel, which says what is to be added to
    /// what it was offered.
    pub(in crate::hub) fn counters(&self) -> Counters {
        let others = self.aside.as_ref().map(|aside| aside.counters).unwrap_or_default();
        Counters { offered: self.offered, delivered: self.delivered, ..others }
    }

    fn aside(&mut self) -> &mut Aside {
        self.aside.get_or_insert_default()
    }

    fn count_offer(&mut self) {
        // One that comes late to the ring: see `offered`.
        self.offered = self.offered.wrapping_add(1);
    }

    /// How many a full mailbox has dropped or refused.
    pub(in crate::hub) fn losses(&self) -> u64 {
        self.aside.as_ref().map_or(0, |aside| aside.counters.dropped + aside.counters.rejected)
    }

    /// Whether a publisher would have to wait for room.
    pub(in crate::hub) fn has_no_room(&self, rules: &Rules, begun: u32) -> bool {
        matches!(rules.overflow, Overflow::Block(_))
            && self.phase == Phase::Open
            && self.waiting(begun) + self.kept(rules) >= rules.capacity as usize
    }

    /// How many messages wait. `begun` of those that are taken do not.
    pub(in crate::hub) fn waiting(&self, begun: u32) -> usize {
        self.queued() + self.taken.saturating_sub(begun) as usize
    }

    fn queued(&self) -> usize {
        let held = self.held().map_or(0, |held| held.later.len() + held.due.len());
        held + self.aside.as_ref().and_then(|aside| aside.queue.as_ref()).map_or(0, Queue::len)
    }

    fn queue(&mut self) -> Option<&mut Queue> {
        self.aside.as_mut()?.queue.as_mut()
    }

    fn held(&self) -> Option<&Held> {
        self.aside.as_ref().map(|aside| &aside.held)
    }

    /// Whether nothing may be taken now, because the one before it is to be tried again.
    fn pauses(&self, rules: &Rules) -> bool {
        rules.runs == 1
            && self.held().is_some_and(|held| held.due.is_empty() && !held.later.is_empty())
    }

    // --- by publishers -----------------------------------------------------------------------------

    /// Offers a message. `begun` says how many of those that are taken have begun. With `may_wait` a full
    /// mailbox that blocks answers `Full`, and the caller waits and comes again; without it, refuses.
    pub(in crate::hub) fn offer(
        &mut self,
        rules: &Rules,
        begun: u32,
        stored: &Stored,
        may_wait: bool,
    ) -> Offer {
        let full = self.waiting(begun) + self.kept(rules) >= rules.capacity as usize;
        self.offer_if(full, rules, stored, may_wait)
    }

    fn offer_if(&mut self, full: bool, rules: &Rules, stored: &Stored, may_wait: bool) -> Offer {
        if !self.takes_messages() {
            // Whoever would wait for room does so until the pool stops, and is turned away then.
            let waits = may_wait && full && matches!(rules.overflow, Overflow::Block(_));
            return if waits && self.phase == Phase::Open {
                Offer::Full
            } else {
                self.offer_late()
            };
        }
        let aside = self.aside.get_or_insert_default();
        let queue = aside.queue.get_or_insert_with(|| Queue::new(rules));
        if let Some(older) = queue.same_key(&stored.key) {
            older.stored.end_one();
            older.stored = stored.clone();
            older.lost += 1;
            aside.counters.dropped += 1;
            self.count_offer();
            return Offer::Replaced;
        }
        match rules.overflow {
            _ if !full => {}
            Overflow::Block(_) if may_wait => return Offer::Full,
            Overflow::Reject | Overflow::Block(_) => {
                aside.counters.rejected += 1;
                return self.lose(Offer::Rejected);
            }
            Overflow::DropNewest => {
                aside.counters.dropped += 1;
                return self.lose(Offer::Dropped);
            }
            Overflow::DropOldest | Overflow::Conflate => {
                let Some(oldest) = queue.pop_oldest() else {
                    // All that there is room for has been taken.
                    aside.counters.dropped += 1;
                    return self.lose(Offer::Dropped);
                };
                oldest.stored.end_one();
                aside.counters.dropped += 1;
                match queue.front_mut() {
                    Some(front) => front.lost += oldest.lost + 1,
                    None => aside.lost += oldest.lost + 1,
                }
            }
        }
        let lost = core::mem::take(&mut aside.lost);
        let number = self.offered;
        queue.push(Entry { stored: stored.clone(), lost, number, tried: None });
        self.count_offer();
        Offer::Enqueued { schedule: self.schedule(rules), number }
    }

    /// Keeps room for a message to come, whatever else comes before it. One that does not refuse messages has it.
    pub(in crate::hub) fn keep_room(&mut self, rules: &Rules, begun: u32) -> Room {
        if self.shut || !matches!(self.phase, Phase::Open | Phase::Suspended) {
            return Room::Closed;
        }
        let refuses = matches!(rules.overflow, Overflow::Reject | Overflow::Block(_));
        if refuses && self.waiting(begun) + self.kept(rules) >= rules.capacity as usize {
            return Room::Full;
        }
        self.aside().kept += 1;
        Room::Kept
    }

    /// The message does not come.
    pub(in crate::hub) fn release_room(&mut self) {
        self.aside().kept -= 1;
    }

    /// Offers a message that has been accepted before, whether there is room or not.
    pub(in crate::hub) fn offer_accepted(&mut self, rules: &Rules, stored: &Stored) -> Offer {
        self.offer_if(false, rules, stored, false)
    }

    /// Offers a message that room was kept for.
    pub(in crate::hub) fn offer_kept(
        &mut self,
        rules: &Rules,
        begun: u32,
        stored: &Stored,
    ) -> Offer {
        self.release_room();
        // What has been failed at meanwhile, and is held, may have filled it: it has its room all the same.
        let refuses = matches!(rules.overflow, Overflow::Reject | Overflow::Block(_));
        let full = !refuses && self.waiting(begun) >= rules.capacity as usize;
        self.offer_if(full, rules, stored, false)
    }

    /// Whether it stays out of the channel's ring: messages are to come that room is kept for, or none are to come.
    pub(in crate::hub) fn stays_detached(&self) -> bool {
        self.shut || self.aside.as_ref().is_some_and(|aside| aside.kept > 0)
    }

    /// What is as good as taken.
    fn kept(&self, rules: &Rules) -> usize {
        match rules.overflow {
            Overflow::Reject | Overflow::Block(_) => {
                self.aside.as_ref().map_or(0, |aside| aside.kept as usize)
            }
            _ => 0,
        }
    }

    /// Offers what had become a dead letter. It counts as offered once more if it is enqueued, and else not
    /// at all: `None`.
    pub(in crate::hub) fn offer_again(
        &mut self,
        rules: &Rules,
        begun: u32,
        stored: &Stored,
    ) -> Option<Offer> {
        let full = self.waiting(begun) + self.kept(rules) >= rules.capacity as usize;
        if !self.takes_messages() || full {
            return None;
        }
        self.aside().counters.redelivered += 1;
        Some(self.offer(rules, begun, stored, false))
    }

    #[cold]
    fn offer_late(&mut self) -> Offer {
        if self.phase != Phase::Suspended {
            return Offer::Closed;
        }
        self.count_offer();
        self.taken += 1;
        self.active += 1;
        Offer::Dead
    }

    /// Who had to make messages dead letters has done so.
    pub(in crate::hub) fn buried(&mut self, dead: u64) -> Close<H> {
        self.settle(&Settled { dead, ..Settled::default() });
        self.leave(None)
    }

    fn lose(&mut self, offer: Offer) -> Offer {
        self.count_offer();
        self.aside().lost += 1;
        offer
    }

    /// Whether one more run is to be scheduled, which it is from now on.
    fn schedule(&mut self, rules: &Rules) -> bool {
        // A run that has taken something is busy with it.
        let work = self.queued() + self.taken as usize;
        let room = u32::from(self.scheduled) < rules.runs && !self.pauses(rules);
        let wanted = room && usize::from(self.scheduled) < work;
        self.scheduled += u16::from(wanted);
        wanted
    }

    /// A message that was refused after waiting for room.
    pub(in crate::hub) fn refuse(&mut self) -> Offer {
        if self.phase != Phase::Open {
            return self.offer_late();
        }
        self.aside().counters.rejected += 1;
        self.lose(Offer::Rejected)
    }

    /// A message that the caller delivers itself, on its own thread: its run is active from now on. Says
    /// what was lost before it.
    pub(in crate::hub) fn enter_inline(&mut self) -> Result<u64, Offer> {
        if !self.takes_messages() {
            return Err(self.offer_late());
        }
        self.count_offer();
        self.active += 1;
        self.taken += 1;
        Ok(take_lost(&mut self.aside))
    }

    // --- by runs -----------------------------------------------------------------------------------

    /// A scheduled run begins. False: there is nothing to serve any more.
    pub(in crate::hub) fn begin(&mut self) -> bool {
        let serves = matches!(self.phase, Phase::Open | Phase::Draining);
        match serves {
            true => self.active += 1,
            false => self.scheduled -= 1,
        }
        serves
    }

    /// A run begins that was not scheduled by this mailbox.
    pub(in crate::hub) fn begin_unscheduled(&mut self) -> bool {
        let serves = matches!(self.phase, Phase::Open | Phase::Draining);
        self.active += u32::from(serves);
        serves
    }

    /// The handler, for a serial run, which gives it back in `rest` or `pause`.
    pub(in crate::hub) fn lend(&mut self) -> Option<H> {
        self.handler.take()
    }

    /// The handler, for runs beside others.
    pub(in crate::hub) fn share(&self, lend: impl FnOnce(&H) -> Option<H>) -> Option<H> {
        self.handler.as_ref().and_then(lend)
    }

    /// Takes messages for a run, which then has them to settle. False: there are none.
    pub(in crate::hub) fn take(&mut self, rules: &Rules, into: &mut VecDeque<Entry>) -> bool {
        let batch = rules.batch();
        let serves = matches!(self.phase, Phase::Open | Phase::Draining) && !self.pauses(rules);
        if serves && let Some(aside) = &mut self.aside {
            if let Some(due) = aside.held.due.pop_front() {
                into.push_back(due);
            } else if let Some(queue) = &mut aside.queue {
                while let Some(entry) = queue.pop() {
                    into.push_back(entry);
                    if into.len() >= batch {
                        break;
                    }
                }
            }
        }
        self.taken += into.len() as u32;
        !into.is_empty()
    }

    /// So many of the channel's ring that a run has taken are there again.
    pub(in crate::hub) fn give_back_shared(&mut self, count: u32) {
        self.taken -= count;
    }

    /// A run has found nothing more. Under the same lock it leaves. True: nothing has come meanwhile, and it
    /// is no longer scheduled.
    pub(in crate::hub) fn rest(&mut self, rules: &Rules) -> bool {
        let rests = !self.has_takeable(rules);
        self.scheduled -= u16::from(rests);
        rests
    }

    /// Whether `take` would give something.
    fn has_takeable(&self, rules: &Rules) -> bool {
        let serves = matches!(self.phase, Phase::Open | Phase::Draining) && !self.pauses(rules);
        let has_some = |aside: &Aside| {
            !aside.held.due.is_empty() || aside.queue.as_ref().is_some_and(|queue| queue.len() > 0)
        };
        serves && self.aside.as_deref().is_some_and(has_some)
    }

    /// A run has taken so many messages from the channel's ring. Says what was lost before them.
    pub(in crate::hub) fn take_shared(&mut self, count: u32) -> u64 {
        self.taken += count;
        take_lost(&mut self.aside)
    }

    /// A run takes so many more from the channel's ring, without the channel's lock. None: there are none, or
    /// something else comes first.
    pub(in crate::hub) fn stream(&mut self, cursor: &RingCursor, count: usize) -> Option<u64> {
        let first = self.phase == Phase::Open && self.is_empty() && !self.has_waiters;
        if count == 0 || !first || !cursor.is_in_ring() {
            return None;
        }
        cursor.advance(count);
        Some(self.take_shared(count as u32))
    }

    /// Takes the message of this place in the order, if it still waits, and nothing ahead of it does.
    pub(in crate::hub) fn take_number(&mut self, number: u64) -> Option<Entry> {
        let queue = self.queue()?;
        if queue.front_mut()?.number > number {
            return None;
        }
        let entry = queue.pop();
        self.taken += 1;
        entry
    }

    /// Says what became of messages that a run had taken.
    pub(in crate::hub) fn settle(&mut self, settled: &Settled) {
        let Settled { delivered, failed, dead } = *settled;
        self.taken -= (delivered + failed + dead) as u32;
        self.delivered += delivered;
        if failed + dead > 0 {
            let counters = &mut self.aside().counters;
            counters.failed += failed;
            counters.dead += dead;
        }
    }

    /// Takes messages back that a run has not begun. Those that are not kept stay in `batch`.
    pub(in crate::hub) fn put_back(&mut self, rules: &Rules, batch: &mut VecDeque<Entry>) -> Back {
        let back = self.give_back(batch.len() as u64);
        if back == Back::Kept && !batch.is_empty() {
            let queue = self.aside().queue.get_or_insert_with(|| Queue::new(rules));
            while let Some(entry) = batch.pop_back() {
                queue.push_front(entry);
            }
        }
        back
    }

    /// Holds a message that a run has failed at, until `due`; at once, if `later` is false. It comes back if
    /// it is not kept.
    #[allow(clippy::result_large_err, reason = "it fails as seldom as subscriptions end")]
    pub(in crate::hub) fn hold(&mut self, entry: Entry, later: bool) -> Result<(), (Back, Entry)> {
        match self.give_back(1) {
            Back::Kept => {}
            back => return Err((back, entry)),
        }
        let held = &mut self.aside().held;
        match later {
            true => held.later.push(entry),
            false => held.due.push_back(entry),
        }
        Ok(())
    }

    fn give_back(&mut self, count: u64) -> Back {
        let back = match self.phase {
            Phase::Open | Phase::Draining => Back::Kept,
            Phase::Suspended => return Back::Dead,
            Phase::Closed | Phase::Ending | Phase::Ended => Back::Discarded,
        };
        self.taken -= count as u32;
        if back == Back::Discarded && count > 0 {
            self.aside().counters.discarded += count;
        }
        back
    }

    /// The time of the held message with this number has come, if it is held still. True: the caller puts a run
    /// on the ready list.
    pub(in crate::hub) fn due(&mut self, rules: &Rules, number: u64) -> Option<bool> {
        let held = &mut self.aside.as_deref_mut()?.held;
        let place = held.later.iter().position(|entry| entry.number == number)?;
        held.due.push_back(held.later.remove(place));
        Some(self.schedule(rules))
    }

    /// How many are held and not due.
    pub(in crate::hub) fn held_later(&self) -> usize {
        self.held().map_or(0, |held| held.later.len())
    }

    /// Serves and takes no more until `resume`. What waits comes back, to become dead letters: if there is any, the
    /// caller then calls `buried`.
    pub(in crate::hub) fn suspend(&mut self) -> Vec<Entry> {
        match self.phase {
            Phase::Open => self.phase = Phase::Suspended,
            Phase::Draining => {}
            Phase::Suspended | Phase::Closed | Phase::Ending | Phase::Ended => {
                return Vec::new();
            }
        }
        let waited = self.clear();
        self.taken += waited.len() as u32;
        self.active += u32::from(!waited.is_empty());
        waited
    }

    /// False: it was not suspended.
    pub(in crate::hub) fn resume(&mut self) -> bool {
        let suspended = self.phase == Phase::Suspended;
        if suspended {
            self.phase = Phase::Open;
        }
        suspended
    }

    /// All that waits, in order.
    fn clear(&mut self) -> Vec<Entry> {
        let Some(aside) = &mut self.aside else { return Vec::new() };
        let held = core::mem::take(&mut aside.held);
        let mut all: Vec<Entry> = held.due.into_iter().chain(held.later).collect();
        if let Some(mut queue) = aside.queue.take() {
            all.extend(core::iter::from_fn(|| queue.pop()));
        }
        all
    }

    /// A run ends, and gives back what it was lent. One that `rest`s does both under the same lock: or the
    /// next run would find the handler gone.
    pub(in crate::hub) fn leave(&mut self, handler: Option<H>) -> Close<H> {
        if handler.is_some() {
            self.handler = handler;
        }
        self.active -= 1;
        self.end_if_over()
    }

    // --- by the channel's ring ---------------------------------------------------------------------

    /// There is something in the ring. True: the caller puts a run on the ready list.
    pub(in crate::hub) fn call(&mut self) -> bool {
        let called = self.phase == Phase::Open && self.scheduled == 0;
        self.scheduled += u16::from(called);
        called
    }

    /// The subscription comes to the ring, of which this is the head.
    pub(in crate::hub) fn join(&mut self, head: u64) {
        self.offered = self.offered.wrapping_sub(head);
    }

    /// The subscription leaves the ring, of which this is the head, and brings those that wait for it.
    pub(in crate::hub) fn part(
        &mut self,
        rules: &Rules,
        head: u64,
        discarded: u64,
        waiting: impl Iterator<Item = Stored>,
    ) {
        self.offered = self.offered.wrapping_add(head);
        if discarded > 0 {
            self.aside().counters.discarded += discarded;
        }
        for stored in waiting {
            let aside = self.aside();
            let lost = core::mem::take(&mut aside.lost);
            let queue = aside.queue.get_or_insert_with(|| Queue::new(rules));
            queue.push(Entry::of_ring(&stored, lost));
        }
    }

    // --- by pullers --------------------------------------------------------------------------------

    /// Takes up to `most` messages; they count as delivered, or as taken until `acknowledge` if the rules have it so.
    pub(in crate::hub) fn pull(
        &mut self,
        rules: &Rules,
        most: usize,
        mut into: impl FnMut(Entry),
    ) -> usize {
        let Some(queue) = self.queue() else { return 0 };
        let mut count = 0;
        while count < most
            && let Some(entry) = queue.pop()
        {
            into(entry);
            count += 1;
        }
        self.count_pulled(rules, count);
        count
    }

    /// So many messages of the channel's ring were taken, as by `pull`. Says what was lost before them.
    pub(in crate::hub) fn pull_shared(&mut self, rules: &Rules, count: usize) -> u64 {
        self.count_pulled(rules, count);
        take_lost(&mut self.aside)
    }

    fn count_pulled(&mut self, rules: &Rules, count: usize) {
        if rules.acknowledged {
            // Each is a run of its own, so that the subscription ends when the last is acknowledged.
            self.taken += count as u32;
            self.active += count as u32;
        } else {
            self.delivered += count as u64;
        }
    }

    /// Says what became of messages that were pulled.
    pub(in crate::hub) fn acknowledge(&mut self, settled: &Settled, discarded: u64) -> Close<H> {
        self.settle(settled);
        if discarded > 0 {
            self.taken -= discarded as u32;
            self.aside().counters.discarded += discarded;
        }
        self.active -= (settled.delivered + settled.failed + settled.dead + discarded) as u32;
        self.end_if_over()
    }

    /// Whether it takes no more messages for good.
    pub(in crate::hub) fn is_over(&self) -> bool {
        !matches!(self.phase, Phase::Open | Phase::Suspended)
    }

    /// A message that was pulled is to become a dead letter; then the caller calls `buried_pulled`. False: none is
    /// left that was pulled.
    pub(in crate::hub) fn bury_pulled(&mut self) -> bool {
        let is_left = self.delivered > self.aside.as_ref().map_or(0, |aside| aside.burying);
        if is_left {
            self.aside().burying += 1;
        }
        is_left
    }

    pub(in crate::hub) fn buried_pulled(&mut self) {
        self.delivered -= 1;
        let aside = self.aside();
        aside.burying -= 1;
        aside.counters.dead += 1;
    }

    pub(in crate::hub) fn is_empty(&self) -> bool {
        self.queued() == 0
    }

    // --- by whoever unsubscribes -------------------------------------------------------------------

    /// Takes no more messages. Those that wait are served still with `drain`, and else discarded: they
    /// come back to be dropped outside the lock.
    pub(in crate::hub) fn close(&mut self, drain: bool) -> (Close<H>, Vec<Entry>) {
        let mut discarded = Vec::new();
        let close = match self.phase {
            Phase::Closed | Phase::Ending | Phase::Ended => Close::Stale,
            Phase::Draining if drain => Close::Later,
            Phase::Open | Phase::Suspended | Phase::Draining => {
                self.phase = if drain { Phase::Draining } else { Phase::Closed };
                if !drain {
                    discarded = self.clear();
                    if !discarded.is_empty() {
                        self.aside().counters.discarded += discarded.len() as u64;
                    }
                }
                self.end_if_over()
            }
        };
        (close, discarded)
    }

    /// Closes for good when nothing is left to do.
    pub(in crate::hub) fn end_if_over(&mut self) -> Close<H> {
        let over = match self.phase {
            Phase::Draining => self.queued() == 0 && self.taken == 0,
            Phase::Closed => true,
            Phase::Open | Phase::Suspended | Phase::Ending | Phase::Ended => return Close::Stale,
        };
        if !over || self.active > 0 {
            return Close::Later;
        }
        self.phase = Phase::Ending;
        Close::Now(self.handler.take())
    }

    /// The handler has been dropped. The counters are closed: they come out once.
    pub(in crate::hub) fn ended(&mut self) -> Counters {
        debug_assert_eq!(self.phase, Phase::Ending);
        self.phase = Phase::Ended;
        self.counters()
    }
}
