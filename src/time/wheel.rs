//! A hierarchical timing wheel that owns no timers.
//!
//! # The problem
//!
//! A handle set may hold hundreds of thousands of timers, nearly all of which are cancelled or
//! postponed before they are due (idle time-outs). Arming must cost a few nanoseconds whatever their
//! number, nothing may be allocated, and one call after a long stall must not walk through the ticks
//! that were missed. Cancelling happens on other threads and never comes here: it leaves a dead
//! entry behind, which is dropped when it is met, or swept out with all others.
//!
//! # The shape
//!
//! Time is counted in ticks of [`TICK_NS`]. A tick number is written in base 64: level 0 is its last
//! digit, level 1 the one before it. An entry lies at the level of the *highest digit in which its
//! tick differs from the wheel's present*, in the slot of that digit:
//!
//! ```text
//!             digit:      2    1    0
//!   present          … : 07 · 33 · 12
//!   due a few ticks on : 07 · 33 · 40    level 0, slot 40: fires when the present gets there
//!   due a turn on      : 07 · 35 · 02    level 1, slot 35: moves to level 0 at 07·35·00
//!   due far away       : 09 · 00 · 00    level 2, slot  9: moves down at 09·00·00
//! ```
//!
//! [`LEVELS`] digits hold every tick of a 64-bit nanosecond clock, so there is no "too far". A
//! bitmap per level and one of levels find the earliest slot with two bit scans.
//!
//! The entries themselves live elsewhere, in a table of slots of the caller: the wheel links them by
//! index through the two words that each has for it ([`WheelEntries`]), in singly linked lists with a
//! head and a tail.
//!
//! # Invariants
//!
//! 1. Every entry in a slot has a tick later than the present, shares with it all digits above its
//!    level, and has a greater digit at its level. Hence all of level *n* is due before all of level
//!    *n + 1*, a slot before the slots above it, and the lowest bit of the lowest level is the
//!    earliest slot.
//! 2. Two entries of the same tick are always in the same list, in the order of their insertion.
//!    Hence entries fire in the order of their ticks, and equal ticks in the order of insertion.
//! 3. An entry whose time has come when it is inserted waits in the `DUE` list for the next advance.
//!    An entry fires at most once per advance, however far behind its new deadline is: a stall
//!    makes no burst.
//! 4. An entry is out of the wheel while a callback is asked about it. If the answer lets it go, it
//!    is not touched again: the place in the table may have another tenant by then.
//!
//! # Trade-offs
//!
//! Deadlines are rounded up to a tick: nothing fires early, and at most one tick late. An entry
//! moves at most once per level on its way down, eight times in the worst case.
//!
//! After "Hashed and Hierarchical Timing Wheels", Varghese and Lauck, SOSP 1987 (scheme 7). Choosing
//! the level by the highest differing digit is tokio's (`tokio/src/runtime/time/wheel`).

use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::atomic::{AtomicU32, AtomicU64};

/// Nanoseconds per tick of the lowest level: well below what a timed wait of the kernel resolves.
const TICK_NS: u64 = 1 << TICK_SHIFT;

const TICK_SHIFT: u32 = 13;
const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
/// Enough digits for the last tick of the clock, `u64::MAX` nanoseconds rounded up.
const LEVELS: usize = (u64::BITS - TICK_SHIFT + 1).div_ceil(DIGIT_BITS) as usize;

/// The list of entries that were already due when they were inserted.
const DUE: u32 = (LEVELS * SLOTS) as u32;
const LISTS: usize = LEVELS * SLOTS + 1;
/// The end of a list.
const NIL: u32 = u32::MAX;

/// So many entries of the earliest slot are looked at to tell when the wheel must next be advanced.
const LOOK_AHEAD: usize = 8;

/// The table that the entries live in, and the two words that the wheel keeps in each. An index stays
/// valid while its entry is in the wheel.
///
/// The words are atomic only so that a shared table can hold them without `unsafe`: nobody but the thread
/// that holds the wheel may touch them while the entry is in it, and whatever hands the wheel from one
/// thread to the next orders these accesses too. Outside of the wheel they are the table's.
pub(crate) trait WheelEntries {
    fn link(&self, index: u32) -> &AtomicU32;
    fn deadline(&self, index: u32) -> &AtomicU64;
}

#[derive(Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
}

const EMPTY: List = List { head: NIL, tail: NIL };

/// See the head of the file. All times are nanoseconds of one monotonic clock.
pub(crate) struct Wheel {
    /// The tick up to which everything has fired.
    present: u64,
    len: usize,
    /// Bit *n*: level *n* has an occupied slot.
    levels: u32,
    /// Bit *n* of each: slot *n* of that level is occupied.
    slots: [u64; LEVELS],
    lists: Box<[List; LISTS]>,
}

impl Wheel {
    pub(crate) fn new(now_ns: u64) -> Self {
        Self {
            present: tick_before(now_ns),
            len: 0,
            levels: 0,
            slots: [0; LEVELS],
            lists: Box::new([EMPTY; LISTS]),
        }
    }

    /// How many entries are in the wheel.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry that is in no wheel. It fires in the first advance to a `now` at or after its
    /// deadline, rounded up to a tick.
    pub(crate) fn insert(&mut self, entries: &impl WheelEntries, index: u32, deadline_ns: u64) {
        self.put(entries, index, deadline_ns, self.present);
        self.len += 1;
    }

    /// Moves the present to `now_ns` and hands every entry that has become due to `expired`, which
    /// either lets it go or answers with its new deadline: the entry is then put back, to fire in a
    /// later advance. So whoever postpones a timer stores the new deadline and leaves the wheel
    /// alone. Costs a step per occupied slot that is passed, none for empty ones.
    pub(crate) fn advance(
        &mut self,
        entries: &impl WheelEntries,
        now_ns: u64,
        mut expired: impl FnMut(u32) -> Option<u64>,
    ) {
        let target = tick_before(now_ns).max(self.present);
        self.fire_overdue(entries, target, &mut expired);
        while let Some((level, slot, start)) = self.earliest_slot()
            && start <= target
        {
            self.present = start;
            let list = list_of(level, slot);
            while let Some(index) = self.pop(entries, list) {
                if level == 0 {
                    self.fire(entries, index, target, &mut expired);
                } else {
                    self.put_down(entries, index);
                }
            }
        }
        self.present = target;
    }

    /// When `advance` must be called next, None if the wheel is empty: the earliest deadline rounded
    /// up to a tick, or before it, if many entries have to move down a level first.
    pub(crate) fn next_deadline(&self, entries: &impl WheelEntries) -> Option<u64> {
        if self.lists[DUE as usize].head != NIL {
            return Some(self.present << TICK_SHIFT);
        }
        let (level, slot, start) = self.earliest_slot()?;
        let tick = match level {
            0 => start,
            _ => self.earliest_of_few(entries, list_of(level, slot)).unwrap_or(start),
        };
        // Only a deadline within the last tick of the clock overflows: it is never due.
        Some(tick.saturating_mul(TICK_NS))
    }

    /// Removes every entry that `is_dead` in one pass and says how many those were.
    pub(crate) fn sweep(
        &mut self,
        entries: &impl WheelEntries,
        mut is_dead: impl FnMut(u32) -> bool,
    ) -> usize {
        let before = self.len;
        for level in 0..LEVELS {
            let mut slots = self.slots[level];
            while slots != 0 {
                let slot = slots.trailing_zeros() as usize;
                slots &= slots - 1;
                self.sweep_list(entries, list_of(level, slot), &mut is_dead);
            }
        }
        self.sweep_list(entries, DUE, &mut is_dead);
        before - self.len
    }

    fn sweep_list(
        &mut self,
        entries: &impl WheelEntries,
        list: u32,
        is_dead: &mut impl FnMut(u32) -> bool,
    ) {
        // One turn of the list: what stays goes to the end, and so keeps its order.
        let last = self.lists[list as usize].tail;
        while let Some(index) = self.pop(entries, list) {
            if is_dead(index) {
                self.len -= 1;
            } else {
                self.push(entries, index, list);
            }
            if index == last {
                break;
            }
        }
    }

    /// Fires what the `DUE` list holds now. What is put back into it meanwhile stays (invariant 3).
    fn fire_overdue(
        &mut self,
        entries: &impl WheelEntries,
        target: u64,
        expired: &mut impl FnMut(u32) -> Option<u64>,
    ) {
        let last = self.lists[DUE as usize].tail;
        while let Some(index) = self.pop(entries, DUE) {
            self.fire(entries, index, target, expired);
            if index == last {
                break;
            }
        }
    }

    fn fire(
        &mut self,
        entries: &impl WheelEntries,
        index: u32,
        target: u64,
        expired: &mut impl FnMut(u32) -> Option<u64>,
    ) {
        self.len -= 1;
        if let Some(deadline_ns) = expired(index) {
            self.put(entries, index, deadline_ns, target);
            self.len += 1;
        }
    }

    /// Puts an entry into its slot, or into `DUE` if its tick is not after `passed`.
    fn put(&mut self, entries: &impl WheelEntries, index: u32, deadline_ns: u64, passed: u64) {
        entries.deadline(index).store(deadline_ns, Relaxed);
        let tick = tick_after(deadline_ns);
        let list = if tick <= passed { DUE } else { self.list_for(tick) };
        self.push(entries, index, list);
    }

    /// Moves an entry of the slot that the present has just reached to a lower level.
    fn put_down(&mut self, entries: &impl WheelEntries, index: u32) {
        let tick = tick_after(entries.deadline(index).load(Relaxed));
        debug_assert!(tick >= self.present);
        self.push(entries, index, self.list_for(tick));
    }

    /// The level of the highest digit in which `tick` and the present differ, and that digit.
    fn list_for(&self, tick: u64) -> u32 {
        let differing = (tick ^ self.present) | (SLOTS as u64 - 1);
        let level = (u64::BITS - 1 - differing.leading_zeros()) / DIGIT_BITS;
        let digit = (tick >> (level * DIGIT_BITS)) as usize % SLOTS;
        list_of(level as usize, digit)
    }

    /// Level, slot and first tick of the earliest occupied slot (invariant 1).
    fn earliest_slot(&self) -> Option<(usize, usize, u64)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros();
        let slot = self.slots[level as usize].trailing_zeros();
        let shift = level * DIGIT_BITS;
        let above = (self.present >> shift >> DIGIT_BITS) << DIGIT_BITS;
        Some((level as usize, slot as usize, (above | u64::from(slot)) << shift))
    }

    /// The earliest tick of a list, if the list is short enough to look.
    fn earliest_of_few(&self, entries: &impl WheelEntries, list: u32) -> Option<u64> {
        let mut index = self.lists[list as usize].head;
        let mut earliest = u64::MAX;
        for _ in 0..LOOK_AHEAD {
            if index == NIL {
                return Some(earliest);
            }
            earliest = earliest.min(tick_after(entries.deadline(index).load(Relaxed)));
            index = entries.link(index).load(Relaxed);
        }
        (index == NIL).then_some(earliest)
    }

    /// Appends an entry to a list.
    fn push(&mut self, entries: &impl WheelEntries, index: u32, place: u32) {
        entries.link(index).store(NIL, Relaxed);
        let list = &mut self.lists[place as usize];
        let last = core::mem::replace(&mut list.tail, index);
        if last == NIL {
            list.head = index;
            self.mark_occupied(place);
        } else {
            entries.link(last).store(index, Relaxed);
        }
    }

    /// Takes the oldest entry of a list.
    fn pop(&mut self, entries: &impl WheelEntries, place: u32) -> Option<u32> {
        let list = &mut self.lists[place as usize];
        let index = list.head;
        if index == NIL {
            return None;
        }
        list.head = entries.link(index).load(Relaxed);
        if list.head == NIL {
            list.tail = NIL;
            self.mark_empty(place);
        }
        Some(index)
    }

    fn mark_occupied(&mut self, place: u32) {
        if place != DUE {
            let (level, slot) = (place as usize / SLOTS, place as usize % SLOTS);
            self.slots[level] |= 1 << slot;
            self.levels |= 1 << level;
        }
    }

    fn mark_empty(&mut self, place: u32) {
        if place != DUE {
            let (level, slot) = (place as usize / SLOTS, place as usize % SLOTS);
            self.slots[level] &= !(1 << slot);
            if self.slots[level] == 0 {
                self.levels &= !(1 << level);
            }
        }
    }
}

fn list_of(level: usize, slot: usize) -> u32 {
    (level * SLOTS + slot) as u32
}

/// The last tick that has begun at `ns`.
fn tick_before(ns: u64) -> u64 {
    ns >> TICK_SHIFT
}

/// The first tick that begins at or after `ns`.
fn tick_after(ns: u64) -> u64 {
    ns.div_ceil(TICK_NS)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    struct Table(Vec<(AtomicU32, AtomicU64)>);

    impl WheelEntries for Table {
        fn link(&self, index: u32) -> &AtomicU32 {
            &self.0[index as usize].0
        }

        fn deadline(&self, index: u32) -> &AtomicU64 {
            &self.0[index as usize].1
        }
    }

    const ENTRIES: usize = 24;
    const SECOND: u64 = 1_000_000_000;

    /// What the wheel promises, in the plainest words: entries ordered by effective tick and turn.
    struct Model {
        present: u64,
        turn: u64,
        waiting: BTreeMap<(u64, u64), u32>,
        keys: [Option<(u64, u64)>; ENTRIES],
    }

    impl Model {
        fn insert(&mut self, index: u32, deadline: u64) {
            let key = (deadline.div_ceil(TICK_NS).max(self.present), self.turn);
            self.turn += 1;
            self.waiting.insert(key, index);
            self.keys[index as usize] = Some(key);
        }

        fn remove(&mut self, index: u32) -> bool {
            let key = self.keys[index as usize].take();
            key.is_some_and(|key| self.waiting.remove(&key).is_some())
        }

        /// All entries that are due at `now`, in order; `renew` says what comes back.
        fn advance(&mut self, now: u64, renew: impl Fn(u32) -> Option<u64>) -> Vec<u32> {
            self.present = now / TICK_NS;
            let later = self.waiting.split_off(&(self.present + 1, 0));
            let due: Vec<u32> = std::mem::replace(&mut self.waiting, later).into_values().collect();
            for &index in &due {
                self.keys[index as usize] = None;
                if let Some(deadline) = renew(index) {
                    self.insert(index, deadline);
                }
            }
            due
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(usize, Distance),
        /// Goes forward; entries whose bit is set are put back, so far from the new present.
        Advance(Distance, u32, Distance),
        Sweep(u32),
    }

    /// Nanoseconds from the present; a negative one lies in the past.
    type Distance = i128;

    /// Every scale occurs: parts of a tick, ticks, each level's width and the whole clock.
    fn distance() -> impl Strategy<Value = Distance> {
        prop_oneof![
            -(SECOND as i128)..=0,
            0..3 * TICK_NS as i128,
            (0u32..64, 0u64..4 * TICK_NS)
                .prop_map(|(bits, extra)| { i128::from((1u64 << bits).saturating_add(extra)) }),
            0..10 * SECOND as i128,
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..ENTRIES, distance()).prop_map(|(index, at)| Step::Insert(index, at)),
            3 => (distance(), any::<u32>(), distance()).prop_map(|(by, mask, at)| {
                Step::Advance(by.max(0) >> 2, mask & mask >> 7, at)
            }),
            1 => any::<u32>().prop_map(Step::Sweep),
            1 => (0..ENTRIES).prop_map(|index| Step::Sweep(1 << index)),
        ]
    }

    fn after(now: u64, distance: Distance) -> u64 {
        (i128::from(now) + distance).clamp(0, i128::from(u64::MAX)) as u64
    }

    proptest! {
        /// Goal: every entry fires exactly once, never early, in the advance that passes its tick,
        /// in order; a swept one never fires. Method: a plain ordered map beside it.
        #[test]
        fn agrees_with_an_ordered_map(
            start in prop_oneof![0..SECOND, any::<u64>()],
            steps in prop::collection::vec(step(), 1..120),
        ) {
            let entries = &table(ENTRIES);
            let mut wheel = Wheel::new(start);
            let mut now = start;
            let mut model = Model {
                present: now / TICK_NS,
                turn: 0,
                waiting: BTreeMap::new(),
                keys: [None; ENTRIES],
            };
            for step in steps {
                match step {
                    Step::Insert(index, _) if model.keys[index].is_some() => {}
                    Step::Insert(index, at) => {
                        let deadline = after(now, at);
                        wheel.insert(entries, index as u32, deadline);
                        model.insert(index as u32, deadline);
                    }
                    Step::Advance(by, mask, at) => {
                        now = after(now, by);
                        let renew = |index: u32| (mask >> index & 1 != 0).then(|| after(now, at));
                        let mut fired = Vec::new();
                        wheel.advance(entries, now, |index| {
                            fired.push(index);
                            renew(index)
                        });
                        prop_assert_eq!(fired, model.advance(now, renew));
                    }
                    Step::Sweep(mask) => {
                        let dead = |index: u32| mask >> index & 1 != 0;
                        let expected =
                            (0..ENTRIES as u32).filter(|&i| dead(i) && model.remove(i)).count();
                        let swept = wheel.sweep(entries, dead);
                        prop_assert_eq!(swept, expected);
                    }
                }
                prop_assert_eq!(wheel.len(), model.waiting.len());
                check_next(&wheel, entries, &model)?;
            }
        }
    }

    /// The wheel asks to be advanced no later than the earliest tick, and exactly then when there
    /// are few entries to look through.
    fn check_next(wheel: &Wheel, entries: &Table, model: &Model) -> Result<(), TestCaseError> {
        let next = wheel.next_deadline(entries);
        let earliest = model.waiting.keys().next().map(|&(tick, _)| tick.saturating_mul(TICK_NS));
        if wheel.len() <= LOOK_AHEAD {
            prop_assert_eq!(next, earliest);
        } else {
            prop_assert!(next <= earliest && next.is_some());
        }
        Ok(())
    }

    fn table(len: usize) -> Table {
        Table((0..len).map(|_| Default::default()).collect())
    }

    /// Goal: sleeping until `next_deadline` fires every entry in its own tick, in a bounded number
    /// of rounds, though crowded slots have to move down level by level.
    #[test]
    fn following_next_deadline_fires_each_in_its_tick() {
        const CROWD: u32 = 1000;
        let deadline = |index: u32| 3600 * SECOND + u64::from(CROWD - index) * 3 * TICK_NS;
        let entries = &table(CROWD as usize);
        let mut wheel = Wheel::new(17);
        for index in 0..CROWD {
            wheel.insert(entries, index, deadline(index));
        }
        let (mut rounds, mut fired) = (0, 0);
        while let Some(next) = wheel.next_deadline(entries) {
            rounds += 1;
            wheel.advance(entries, next, |index| {
                assert!((deadline(index)..deadline(index) + TICK_NS).contains(&next));
                fired += 1;
                None
            });
        }
        assert_eq!(fired, CROWD);
        // A round that fires nothing moves more than LOOK_AHEAD entries down.
        assert!(rounds <= CROWD + CROWD / LOOK_AHEAD as u32, "{rounds} rounds");
    }

    /// Goal: a `now` before the last one changes nothing.
    #[test]
    fn the_present_never_goes_back() {
        let entries = &table(1);
        let mut wheel = Wheel::new(SECOND);
        wheel.advance(entries, SECOND / 4, |_| None);
        wheel.insert(entries, 0, SECOND / 2);
        assert_eq!(wheel.next_deadline(entries), Some(tick_before(SECOND) * TICK_NS));
    }

    /// Goal: a timer that puts itself back with a deadline that is long past (as a periodic one does
    /// after a stall) fires once per advance, not once per period missed.
    #[test]
    fn a_stall_makes_no_burst() {
        let entries = &table(1);
        let mut wheel = Wheel::new(0);
        wheel.insert(entries, 0, SECOND / 1000);
        let mut deadline = SECOND / 1000;
        for round in 1..4 {
            let mut fired = 0;
            wheel.advance(entries, 2 * SECOND, |_| {
                fired += 1;
                deadline += SECOND / 1000;
                Some(deadline)
            });
            assert_eq!((fired, wheel.len()), (1, 1), "round {round}");
        }
    }

    /// Goal: a deadline that the clock can never reach is held and can be taken back.
    #[test]
    fn the_last_instant_of_the_clock_is_held() {
        let entries = &table(1);
        let mut wheel = Wheel::new(SECOND);
        wheel.insert(entries, 0, u64::MAX);
        assert_eq!(wheel.next_deadline(entries), Some(u64::MAX));
        wheel.advance(entries, u64::MAX, |_| panic!("fired before its tick began"));
        assert_eq!(wheel.sweep(entries, |_| true), 1);
        assert_eq!((wheel.len(), wheel.next_deadline(entries)), (0, None));
    }
}
