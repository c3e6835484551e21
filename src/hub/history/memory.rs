//! The part of a history that is in memory: a ring of the latest records, by position.
//!
//! ```text
//!   position   first                 held                next
//!   ───────────┼─────────────────────┼───────────────────┼──────► not yet recorded
//!    let go of │  may go by limits   │  must stay: not   │
//!              │                     │  on disk yet      │
//! ```
//!
//! # Invariants
//!
//! 1. It holds exactly the positions from `first` to below `next`, in order, each once.
//! 2. What lies at or behind the position that [`Memory::trim`] is told to hold stays, whatever the limits
//!    say.
//! 3. After a trim, what may go is within the limits, unless there was more to let go of than one trim
//!    does: the next one goes on. `bytes` is the sum of what is held.

use crate::hub::history::limits::Limits;
use crate::hub::history::record::bytes;
use crate::hub::message::Stored;
use std::collections::VecDeque;

/// One trim lets at most so many records go: it may run in a publisher's thread.
const STEP: usize = 64;

#[derive(Debug)]
pub(super) struct Memory {
    limits: Limits,
    first: u64,
    bytes: usize,
    records: VecDeque<Stored>,
}

impl Memory {
    /// Nothing in it; the first record gets the position `first`.
    pub(super) fn new(limits: Limits, first: u64) -> Self {
        Self { limits, first, bytes: 0, records: VecDeque::new() }
    }

    /// The oldest position that it holds, or `next`.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The position that the next record gets.
    pub(super) fn next(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, record: Stored) {
        self.bytes += bytes(&record);
        self.records.push_back(record);
    }

    /// Lets go of what the limits want gone at the time `now` and lies before `held`.
    pub(super) fn trim(&mut self, now: u64, held: u64) {
        for _ in 0..STEP {
            let may_go = self.first < held.min(self.next());
            if !(may_go && self.is_beyond_limits(now)) {
                return;
            }
            self.pop();
        }
    }

    /// As [`trim`](Self::trim), to the end.
    pub(super) fn trim_all(&mut self, now: u64, held: u64) {
        loop {
            let before = self.first;
            self.trim(now, held);
            if self.first == before {
                return;
            }
        }
    }

    fn is_beyond_limits(&self, now: u64) -> bool {
        let Limits { count, bytes, age } = &self.limits;
        let too_old =
            |record: &Stored| age.is_some_and(|age| record.time.saturating_add(age) < now);
        count.is_some_and(|count| self.records.len() as u64 > count)
            || bytes.is_some_and(|bytes| self.bytes as u64 > bytes)
            || self.records.front().is_some_and(too_old)
    }

    fn pop(&mut self) {
        if let Some(record) = self.records.pop_front() {
            self.first += 1;
            self.bytes -= bytes(&record);
        }
    }

    /// The records from this position on, with their positions. What is not held is left out.
    pub(super) fn from(&self, position: u64) -> impl DoubleEndedIterator<Item = (u64, &Stored)> {
        self.between(position, u64::MAX)
    }

    /// As [`from`](Self::from), up to below another position. It passes none that it does not give.
    pub(super) fn between(
        &self,
        from: u64,
        below: u64,
    ) -> impl DoubleEndedIterator<Item = (u64, &Stored)> {
        let from = from.clamp(self.first, self.next());
        let below = below.clamp(from, self.next());
        let [start, end] = [from, below].map(|position| (position - self.first) as usize);
        let kept = self.records.range(start..end).enumerate();
        kept.map(move |(index, record)| (from + index as u64, record))
    }

    /// The record at a position that is held.
    pub(super) fn get(&self, position: u64) -> Option<&Stored> {
        self.records.get(usize::try_from(position.checked_sub(self.first)?).ok()?)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::plain;
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    #[derive(Clone, Debug)]
    enum Step {
        Push {
            size: usize,
        },
        /// A time later, with the last so many held.
        Trim {
            later: u64,
            held: u64,
        },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let push = (0usize..300).prop_map(|size| Step::Push { size });
        let trim = (0u64..20, 0u64..10).prop_map(|(later, held)| Step::Trim { later, held });
        prop::collection::vec(prop_oneof![3 => push, 1 => trim], 1..300)
    }

    fn limits() -> impl Strategy<Value = Limits> {
        let some = |range| prop::option::of(range);
        (some(0u64..20), some(0u64..3000), some(0u64..50)).prop_map(|(count, bytes, age)| {
            let mut limits = Limits::unlimited();
            limits.count = count;
            limits.bytes = bytes;
            limits.age = age;
            limits
        })
    }

    /// The plain model: everything that was pushed, and how much of it is gone.
    struct Model {
        all: Vec<Stored>,
        gone: usize,
    }

    impl Model {
        fn trim(&mut self, limits: &Limits, now: u64, held: usize) {
            let mut left = STEP;
            while left > 0 && self.gone < held && self.wants_one_gone(limits, now) {
                self.gone += 1;
                left -= 1;
            }
        }

        fn wants_one_gone(&self, limits: &Limits, now: u64) -> bool {
            let kept = &self.all[self.gone..];
            let sum: usize = kept.iter().map(bytes).sum();
            limits.count.is_some_and(|count| kept.len() as u64 > count)
                || limits.bytes.is_some_and(|limit| sum as u64 > limit)
                || limits.age.is_some_and(|age| kept[0].time + age < now)
        }
    }

    proptest! {
        /// Goal: invariants 1 to 3. Method: a vector of everything beside it.
        #[test]
        fn agrees_with_a_vector(limits in limits(), start in 0u64..5, steps in steps()) {
            let mut memory = Memory::new(limits.clone(), start);
            let mut model = Model { all: Vec::new(), gone: 0 };
            let mut now = 0;
            for step in steps {
                match step {
                    Step::Push { size } => {
                        let sequence = model.all.len() as u64;
                        let record = plain(sequence, now, "a", &vec![7; size]);
                        model.all.push(record.clone());
                        memory.push(record);
                    }
                    Step::Trim { later, held } => {
                        now += later;
                        let held = model.all.len().saturating_sub(held as usize);
                        memory.trim(now, start + held as u64);
                        model.trim(&limits, now, held);
                    }
                }
                let first = start + model.gone as u64;
                prop_assert_eq!(memory.first(), first);
                prop_assert_eq!(memory.next(), start + model.all.len() as u64);
                let kept: Vec<_> = memory.from(0).map(|(at, record)| (at, record.clone())).collect();
                let expected: Vec<_> = (first..).zip(model.all[model.gone..].to_vec()).collect();
                prop_assert_eq!(memory.bytes(), kept.iter().map(|(_, kept)| bytes(kept)).sum::<usize>());
                prop_assert_eq!(memory.from(first + 3).count(), kept.len().saturating_sub(3));
                let between: Vec<_> = memory.between(first + 1, first + 3).map(|(at, _)| at).collect();
                let asked: Vec<_> = (first + 1..first + 3).filter(|at| *at < memory.next()).collect();
                prop_assert_eq!(between, asked);
                prop_assert_eq!(memory.get(first), kept.first().map(|(_, record)| record));
                prop_assert_eq!(memory.get(first.wrapping_sub(1)), None);
                prop_assert_eq!(kept, expected);
            }
        }
    }

    #[test]
    fn old_records_go_though_nothing_comes() {
        let age = Duration::from_nanos(10);
        let mut memory = Memory::new(Limits::unlimited().age(age), 0);
        (0..3).for_each(|time| memory.push(plain(time, time, "a", b"")));
        memory.trim(11, 3);
        assert_eq!(memory.first(), 1);
    }
}
