//! A handle set and the right to lead it.
//!
//! # The word
//!
//! ```text
//! { harvest: 40, last: 12, holder: 12 }       holder: 0 = offered, else member + 1
//! ```
//!
//! | holder | meaning | who may change it |
//! |---|---|---|
//! | 0 | *offered*: no member leads this set | any free member, by CAS (`try_lead`) |
//! | member + 1 | that member leads | that member, by `promote` |
//!
//! ```text
//!              try_lead (CAS)                     demultiplex …
//!   offered ───────────────────► led by one member ──────────┐
//!      ▲                                                     │
//!      └──────────── promote: offered again, harvest + 1 ◄───┘
//! ```
//!
//! `harvest` counts terms that were handed on. A watch that sees the set offered with the same
//! number at two ticks knows that no member came for it in between. `last` is who led before, so that a
//! term can tell whether leadership changed hands.
//!
//! # Invariants
//!
//! 1. A set has at most one leader: the CAS from 0 is the only way in, and [`Leadership`], which it
//!    yields, is consumed by `promote`. Waiting needs `&mut Leadership`.
//! 2. The leader's tools (`LeaderState`: event buffer, timer wheel) are touched by the leader only.
//! 3. Every event that a wait brought is in a slot's word, and its slot in ready work (but the
//!    first, which the leader keeps), before `promote`.
//!
//! # Orderings
//!
//! `promote` is Release and `try_lead` Acquire: the next leader sees the tools as they were left.
#![allow(unsafe_code, reason = "the leader's tools are guarded by the leadership word")]

mod staging;

pub(super) use staging::{CELLS, Shard, count, pack, unpack};

use super::slots::{Expire, Key, SlotTable};
use crate::metrics::Histogram;
use crate::queue::{Batch, IntrusiveStack, Surplus};
use crate::source::{Clock, Events, Source};
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::sync::{CachePadded, UnsafeCell, store_load_barrier};
use crate::time::Wheel;
use core::ops::Deref;
use staging::Staging;
use std::sync::OnceLock;

const FIELD: u64 = 0xfff;
const LAST_SHIFT: u32 = 12;
const HARVEST_SHIFT: u32 = 24;

/// The most events that one wait may bring. loom makes every entry of the surplus ring anew for each
/// interleaving, and needs few.
pub(crate) const BATCH: usize = if cfg!(loom) { 1 } else { 256 };

/// A leader that waits is called once for so many cancelled timers.
const CLEAR_UP_EVERY: u64 = 1024;

/// What one wait brought.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Harvest {
    /// The activation that the leader keeps.
    pub(crate) first: Option<u32>,
    /// How many more were put into ready work.
    pub(crate) surplus: usize,
}

/// Handles that are waited for together, under one leader at a time.
pub(crate) struct HandleSet {
    word: CachePadded<AtomicU64>,
    /// The deadline that the leader waits until; meaningful while it polls.
    earliest: AtomicU64,
    /// Timers that were closed while in the wheel.
    dead: AtomicU64,
    pub(crate) source: Source,
    /// Activations of the last harvests: filled by the leader only, popped by any member.
    pub(crate) surplus: Surplus,
    /// Timers on their way into the wheel.
    intake: IntrusiveStack,
    /// Timers that stay with those who armed them, for the time being.
    pub(super) staging: Staging,
    /// How late timers are when they leave the wheel, once somebody has asked for figures.
    pub(crate) lateness: OnceLock<Histogram>,
    tools: UnsafeCell<LeaderState>,
}

struct LeaderState {
    events: Events,
    wheel: Wheel,
    /// What the wheel has said that is due next (`u64::MAX`: nothing), as long as that holds. To ask it is to
    /// look at timers that lie anywhere, before each wait.
    due: Option<u64>,
    /// Timers from a visit, with their times, on their way into the wheel.
    visited: Vec<(u64, u32)>,
}

// SAFETY: `tools` is touched by the leader only (invariants 1 and 2); the rest is Sync by itself.
unsafe impl Sync for HandleSet {}
// SAFETY: nothing here is tied to a thread.
unsafe impl Send for HandleSet {}

impl HandleSet {
    pub(crate) fn new(source: Source, now: u64) -> Self {
        Self {
            word: CachePadded::new(AtomicU64::new(0)),
            earliest: AtomicU64::new(u64::MAX),
            dead: AtomicU64::new(0),
            source,
            surplus: Surplus::new("surplus", BATCH * 4).expect("a capacity in range"),
            intake: IntrusiveStack::new(),
            staging: Staging::new(),
            lateness: OnceLock::new(),
            tools: UnsafeCell::new(LeaderState {
                events: Events::with_capacity(BATCH),
                wheel: Wheel::new(now),
                due: None,
                visited: Vec::new(),
            }),
        }
    }

    /// Whether no member leads. A hint that is exact after a barrier.
    #[inline]
    pub(crate) fn is_offered(&self) -> bool {
        self.word.load(Relaxed) & FIELD == 0
    }

    /// For the watch: the word, if the set is offered.
    pub(crate) fn vacancy(&self) -> Option<u64> {
        let word = self.word.load(Acquire);
        (word & FIELD == 0).then_some(word)
    }

    /// Terms that were led so far.
    pub(crate) fn harvests(&self) -> u64 {
        self.word.load(Relaxed) >> HARVEST_SHIFT
    }

    /// Who leads now.
    pub(crate) fn leader(&self) -> Option<usize> {
        let holder = self.word.load(Relaxed) & FIELD;
        (holder != 0).then(|| holder as usize - 1)
    }

    /// The deadline that the last leader would have waited until.
    #[cfg(all(test, loom))]
    pub(crate) fn earliest(&self) -> u64 {
        self.earliest.load(Relaxed)
    }

    /// Takes an offered leadership.
    #[inline]
    pub(crate) fn try_lead(&self, me: usize) -> Option<Leadership<'_>> {
        let word = self.word.load(Relaxed);
        if word & FIELD != 0 {
            return None;
        }
        let led = word | (me as u64 + 1);
        // Acquire: pairs with the Release in `promote`.
        self.word.compare_exchange(word, led, Acquire, Relaxed).ok()?;
        let last = word >> LAST_SHIFT & FIELD;
        Some(Leadership { set: self, me, last: last as usize })
    }

    /// Hands a timer (ARMED, with its deadline in its links) to the leader, and wakes it if it
    /// waits longer than that.
    pub(crate) fn arm(&self, slots: &SlotTable, index: u32, deadline: u64) {
        self.push_timer(slots, index);
        // Against *earliest stored, armed, then the intake looked at* in the leader.
        store_load_barrier();
        if deadline < self.earliest.load(Relaxed) {
            self.source.ring();
        }
    }

    /// The first half of `arm`, which a barrier and a look at `earliest` must follow.
    pub(super) fn push_timer(&self, slots: &SlotTable, index: u32) {
        self.intake.push(index, slots);
    }

    /// Has the leader visit what is staged if it waits for longer than until `deadline`. The caller has
    /// passed a barrier since that timer could be seen.
    #[inline]
    pub(super) fn ask(&self, deadline: u64) {
        if deadline < self.earliest.load(Relaxed) {
            self.staging.ask();
            // Against *bell armed, then the question looked for* in the leader.
            store_load_barrier();
            self.source.ring();
        }
    }

    /// A timer is being closed, and its entry stays behind. A leader that waits is called now and
    /// then to clear up, or entries would pile up as long as nothing else happens.
    pub(crate) fn note_dead(&self) {
        let dead = self.dead.fetch_add(1, Relaxed) + 1;
        if dead.is_multiple_of(CLEAR_UP_EVERY) {
            store_load_barrier();
            self.source.ring();
        }
    }

    /// It did not, after all: the entry was found in the middle of closing, or in ready work.
    pub(crate) fn note_undead(&self) {
        self.dead.fetch_sub(1, Relaxed);
    }
}

/// All sets of a pool.
pub(crate) struct HandleSets {
    sets: Box<[HandleSet]>,
    next: AtomicU32,
    clock: Clock,
}

impl Deref for HandleSets {
    type Target = [HandleSet];

    #[inline]
    fn deref(&self) -> &[HandleSet] {
        &self.sets
    }
}

impl HandleSets {
    pub(crate) fn new(sets: Box<[HandleSet]>) -> Self {
        let clock = sets[0].source.clock();
        Self { sets, next: AtomicU32::new(0), clock }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The set for a new handle: they are dealt out in turn.
    pub(crate) fn pick(&self) -> u16 {
        if self.sets.len() == 1 {
            return 0;
        }
        (self.next.fetch_add(1, Relaxed) as usize % self.sets.len()) as u16
    }

    /// Whether some set has no leader.
    #[inline]
    pub(crate) fn is_offered(&self) -> bool {
        self.sets.iter().any(HandleSet::is_offered)
    }

    /// Calls every leader that waits at its source.
    pub(crate) fn ring_all(&self) {
        for set in &self.sets {
            set.source.ring();
        }
    }

    /// Activations in the surplus rings.
    pub(crate) fn surplus(&self) -> usize {
        self.sets.iter().map(|set| set.surplus.len()).sum()
    }

    /// What was staged, for the counters: armed, cancelled.
    pub(crate) fn staged(&self) -> (u64, u64) {
        let shards = || self.sets.iter().flat_map(|set| set.staging.shards());
        // What has ended is read first.
        let cancelled = shards().map(Shard::cancelled).sum();
        (shards().map(Shard::armed).sum(), cancelled)
    }

    /// Slots that are let to staged timers, by shard; some of these numbers are below zero.
    pub(crate) fn staged_slots(&self) -> impl Iterator<Item = u64> {
        self.sets.iter().flat_map(|set| set.staging.shards()).map(|shard| shard.slots_in_use())
    }
}

/// Proof of being the leader of a set. Dropping it offers leadership as `promote` does, so that a
/// panic cannot leave a set without a leader.
#[must_use]
pub(crate) struct Leadership<'a> {
    pub(crate) set: &'a HandleSet,
    me: usize,
    /// The number of the member that led before, plus one; 0: none did.
    last: usize,
}

impl Leadership<'_> {
    /// Whether another member led this set before.
    pub(crate) fn took_over(&self) -> bool {
        self.last != 0 && self.last != self.me + 1
    }

    /// The member that led this set before, if one did.
    pub(crate) fn before(&self) -> Option<usize> {
        self.last.checked_sub(1)
    }

    fn tools<R>(&mut self, f: impl FnOnce(&mut LeaderState) -> R) -> R {
        // SAFETY: `self` proves that this thread leads, and `&mut` that it is not in here already.
        self.set.tools.with_mut(|tools| f(unsafe { &mut *tools }))
    }

    /// Moves new timers from the intake into the wheel, and says when the next one is due. What it
    /// says is also what `arm` compares with from here on.
    pub(crate) fn take_in_timers(&mut self, slots: &SlotTable) -> u64 {
        let set = self.set;
        let earliest = self.tools(|tools| {
            let mut chain = set.intake.take_all(slots);
            while let Some(index) = chain.pop(slots) {
                let slot = slots.slot(index);
                if slot.is_dead() {
                    set.bury(slots, index);
                } else {
                    tools.wheel.insert(slots, index, slot.deadline());
                    tools.due = None;
                }
            }
            let wheel = &tools.wheel;
            *tools.due.get_or_insert_with(|| wheel.next_deadline(slots).unwrap_or(u64::MAX))
        });
        // Staged timers are due no earlier than what was said last, or it has been asked for a visit.
        let longer = earliest > set.earliest.load(Relaxed);
        set.earliest.store(earliest, Relaxed);
        if longer || set.staging.is_asked() { self.visit(slots, earliest) } else { earliest }
    }

    /// Takes staged timers into the wheel, having said `earliest`. Says when the next one is due.
    fn visit(&mut self, slots: &SlotTable, mut earliest: u64) -> u64 {
        let set = self.set;
        // Against *cell, then look at what the leader says*.
        store_load_barrier();
        if set.staging.is_unused() {
            return earliest;
        }
        self.tools(|LeaderState { wheel, visited, due, .. }| {
            set.staging.visit(slots, |index| visited.push((slots.slot(index).deadline(), index)));
            // Cells are taken in any order, and the wheel keeps that of one tick.
            visited.sort_by_key(|&(deadline, _)| deadline);
            for (deadline, index) in visited.drain(..) {
                wheel.insert(slots, index, deadline);
            }
            earliest = wheel.next_deadline(slots).unwrap_or(u64::MAX);
            *due = Some(earliest);
        });
        set.earliest.store(earliest, Relaxed);
        earliest
    }

    /// Whether a timer waits to be taken in: the leader looks after it has armed the doorbell.
    pub(crate) fn has_new_timers(&self) -> bool {
        !self.set.intake.is_empty() || self.set.staging.is_asked()
    }

    /// Waits at the source for at most `timeout` nanoseconds (none: until something happens), for
    /// no more events than ready work has room for.
    pub(crate) fn wait(&mut self, timeout: Option<u64>) -> usize {
        let set = self.set;
        let most = BATCH.min(set.surplus.room() + 1);
        // An error here would be a broken descriptor of our own: there is nothing to be had from it,
        // and the doorbell still ends the next wait.
        self.tools(|tools| set.source.wait(&mut tools.events, most, timeout)).unwrap_or(0)
    }

    /// The same until `deadline` (u64::MAX: for ever), by the clock that was read as `now`.
    pub(crate) fn wait_until(&mut self, now: u64, deadline: u64) -> usize {
        let set = self.set;
        let most = BATCH.min(set.surplus.room() + 1);
        let wait =
            |tools: &mut LeaderState| set.source.wait_until(&mut tools.events, most, now, deadline);
        self.tools(wait).unwrap_or(0)
    }

    /// Sorts out what the last wait brought and which timers are due at `now`: the first activation
    /// is the caller's, the rest becomes ready work.
    pub(crate) fn sort_out(
        &mut self,
        slots: &SlotTable,
        overflow: &IntrusiveStack,
        now: u64,
    ) -> Harvest {
        let set = self.set;
        self.tools(|LeaderState { events, wheel, due, .. }| {
            let mut kept = Kept { slots, overflow, first: None, batch: set.surplus.batch() };
            for (token, ready) in events.iter() {
                let key = Key::from_token(token);
                let slot = slots.get(key.index);
                if slot.is_some_and(|slot| slot.ready(key.generation, ready)) {
                    kept.keep(key.index);
                }
            }
            if due.is_some_and(|due| due <= now) {
                *due = None;
            }
            let lateness = set.lateness.get();
            wheel.advance(slots, now, |index| {
                let slot = slots.slot(index);
                let deadline = slot.deadline();
                if deadline > now && !slot.is_dead() {
                    return Some(deadline);
                }
                match slot.expire() {
                    Expire::Queue => {
                        if let Some(lateness) = lateness {
                            lateness.record(now.saturating_sub(deadline));
                        }
                        kept.keep(index);
                    }
                    Expire::Free => set.bury(slots, index),
                    Expire::Nothing => {}
                }
                None
            });
            if set.sweep(slots, wheel) {
                *due = None;
            }
            Harvest { first: kept.first, surplus: kept.batch.len() }
        })
    }

    /// Offers leadership: no thread is woken.
    pub(crate) fn promote(self) {}
}

/// What a harvest consists of so far.
struct Kept<'a> {
    slots: &'a SlotTable,
    overflow: &'a IntrusiveStack,
    first: Option<u32>,
    batch: Batch<'a>,
}

impl Kept<'_> {
    #[inline(always)] // Of each event.
    fn keep(&mut self, index: u32) {
        if self.first.is_none() {
            self.first = Some(index);
        } else if !self.batch.push(u64::from(index)) {
            self.overflow.push(index, self.slots);
        }
    }
}

impl Drop for Leadership<'_> {
    fn drop(&mut self) {
        let harvest = (self.set.word.load(Relaxed) >> HARVEST_SHIFT) + 1;
        let last = (self.me as u64 + 1) << LAST_SHIFT;
        // Release: pairs with the Acquire in `try_lead`. A plain store: only the leader writes here.
        self.set.word.store(harvest << HARVEST_SHIFT | last, Release);
    }
}

impl HandleSet {
    fn bury(&self, slots: &SlotTable, index: u32) {
        self.dead.fetch_sub(1, Relaxed);
        slots.free(index);
    }

    /// Throws closed timers out once they outnumber the live ones, so that cancelling costs one CAS
    /// and yet memory stays bounded by the timers that are wanted. False: they did not.
    fn sweep(&self, slots: &SlotTable, wheel: &mut Wheel) -> bool {
        let dead = self.dead.load(Relaxed);
        if dead < 64 || dead <= wheel.len() as u64 / 2 {
            return false;
        }
        wheel.sweep(slots, |index| {
            let is_dead = slots.slot(index).is_dead();
            if is_dead {
                self.bury(slots, index);
            }
            is_dead
        });
        true
    }
}
