//! Whether something waits for too long in a lane.
//!
//! No task carries a time: that would cost every task a reading of the clock. But positions in a lane
//! only grow, and whoever reads the clock anyway can note how far a lane was filled then. What was in
//! the lane at one look and still is at the next, `after` later, has waited for that long at least. So
//! a lane is found to be aged between one and two times `after` from the moment when its oldest task
//! came, plus the time until a thread reads the clock: threads do so after at most 64 tasks. And it
//! ceases to be when a look finds that nothing of the last one is left.
//!
//! CRITICAL is never aged: nothing is preferred to it.

use crate::queue::{Aged, LANES, Lane, TaskQueue};
use crate::sync::CachePadded;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// See the module's documentation.
pub(crate) struct Ageing {
    /// Nanoseconds; u64::MAX: nothing ages.
    after: u64,
    next_look: CachePadded<AtomicU64>,
    /// The position after the youngest task of each lane at the last look.
    marks: [AtomicU64; LANES],
}

impl Ageing {
    pub(crate) fn new(after: u64) -> Self {
        Self {
            after,
            next_look: CachePadded::new(AtomicU64::new(0)),
            marks: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Looks, if it is time to.
    #[inline]
    pub(crate) fn note_time(&self, now: u64, tasks: &TaskQueue) {
        if self.after != u64::MAX && now >= self.next_look.load(Relaxed) {
            self.look(now, tasks);
        }
    }

    #[cold]
    fn look(&self, now: u64, tasks: &TaskQueue) {
        // Acquire and Release: whoever looks next sees the marks of this look.
        let due = self.next_look.load(Acquire);
        let next = now.saturating_add(self.after);
        let mine =
            now >= due && self.next_look.compare_exchange(due, next, Acquire, Relaxed).is_ok();
        if !mine {
            return;
        }
        let heads = tasks.heads();
        let marks = core::array::from_fn(|lane| self.marks[lane].load(Relaxed));
        tasks.set_aged(aged(marks, heads));
        for (mark, tail) in self.marks.iter().zip(tasks.ages()) {
            mark.store(tail, Relaxed);
        }
        self.next_look.store(next, Release);
    }
}

/// The lanes below CRITICAL of which something is left that was there at the marks.
fn aged(marks: [u64; LANES], heads: [u64; LANES]) -> Aged {
    let mut aged = Aged::NONE;
    for lane in [Lane::High, Lane::Normal, Lane::Low] {
        if heads[lane as usize] < marks[lane as usize] {
            aged = aged.with(lane);
        }
    }
    aged
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::queue::{Claimed, Erased, LocalQueue, Origin, Turn};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const AFTER: u64 = 1_000;

    proptest! {
        /// On a virtual clock that is read at least every `AFTER`: a lane is aged if something has waited
        /// in it for three times that, and is not if nothing has waited for that long.
        #[test]
        fn a_lane_is_aged_by_what_has_waited(
            steps in prop::collection::vec((0..4_usize, 0..3_usize, 1..AFTER), 1..300),
        ) {
            let (mut now, mut next_look) = (0, 0);
            let mut lanes: [VecDeque<u64>; LANES] = Default::default();
            let (mut heads, mut tails) = ([0_u64; LANES], [0_u64; LANES]);
            let (mut marks, mut seen) = ([0_u64; LANES], Aged::NONE);
            for (lane, what, passed) in steps {
                now += passed;
                if now >= next_look {
                    seen = aged(marks, heads);
                    marks = tails;
                    next_look = now + AFTER;
                    for lane in Lane::ALL {
                        let oldest = lanes[lane as usize].front().map_or(0, |came| now - came);
                        if oldest < AFTER || lane == Lane::Critical {
                            prop_assert!(!seen.contains(lane), "{:?} for {}", lane, oldest);
                        }
                        if oldest >= 3 * AFTER && lane != Lane::Critical {
                            prop_assert!(seen.contains(lane), "{:?} for {}", lane, oldest);
                        }
                    }
                }
                if what > 0 {
                    lanes[lane].push_back(now);
                    tails[lane] += 1;
                } else if lanes[lane].pop_front().is_some() {
                    heads[lane] += 1;
                }
            }
            let _last = seen;
        }
    }

    /// Which lane each of `count` claims is of, while all lanes are kept full.
    fn claims(queue: &TaskQueue, count: usize) -> Vec<Lane> {
        let (local, mut turn) = (LocalQueue::new(), Turn::default());
        let lengths = || Lane::ALL.map(|lane| queue.len(lane));
        (0..count)
            .map(|_| {
                for lane in Lane::ALL {
                    while queue.push(lane, Erased::new(|| ()), Origin::Outside).is_ok() {}
                }
                let before = lengths();
                let Claimed::Some(task) = queue.claim(&local, &mut turn, 1) else { panic!("full") };
                drop(task);
                let after = lengths();
                let taken = |lane: &Lane| after[*lane as usize] < before[*lane as usize];
                Lane::ALL.into_iter().find(taken).expect("one of them")
            })
            .collect()
    }

    /// The longest run of claims without one of `lane`.
    fn longest_wait(claims: &[Lane], lane: Lane) -> usize {
        claims.split(|&of| of == lane).map(<[Lane]>::len).max().unwrap()
    }

    /// Goal: the bounds that `queue::lanes` states. Method: every lane is full for ever; claims are
    /// counted, over all rounds of the tables.
    #[test]
    fn no_lane_waits_longer_than_is_said() {
        let queue = TaskQueue::new(8).unwrap();
        let plain = claims(&queue, 1024);
        assert!(longest_wait(&plain, Lane::Low) <= 16, "{}", longest_wait(&plain, Lane::Low));
        queue.set_aged(Aged::NONE.with(Lane::Low));
        let low = claims(&queue, 1024);
        assert_eq!(longest_wait(&low, Lane::Low), 3);
        let critical = low.iter().filter(|&&lane| lane == Lane::Critical).count();
        assert!(critical >= 1024 * 3 / 8, "{critical}");
        let all = Aged::NONE.with(Lane::Low).with(Lane::Normal).with(Lane::High);
        queue.set_aged(all);
        let all = claims(&queue, 1024);
        for lane in [Lane::Low, Lane::Normal, Lane::High] {
            assert!(longest_wait(&all, lane) < 16, "{lane:?}: {}", longest_wait(&all, lane));
        }
    }

    /// Goal: a look sees what has been there since the last one, once per `after`, and marks the queue.
    #[test]
    fn looks_come_once_and_mark_the_queue() {
        let queue = TaskQueue::new(8).unwrap();
        let ageing = Ageing::new(AFTER);
        queue.push(Lane::Low, Erased::new(|| ()), Origin::Outside).ok().unwrap();
        ageing.note_time(1, &queue);
        assert_eq!(queue.aged(), Aged::NONE);
        // Too early.
        ageing.note_time(AFTER, &queue);
        assert_eq!(queue.aged(), Aged::NONE);
        ageing.note_time(AFTER + 1, &queue);
        assert_eq!(queue.aged(), Aged::NONE.with(Lane::Low));
        // What is there now came since.
        drop(queue.claim_of(Lane::Low, &LocalQueue::new()).unwrap());
        queue.push(Lane::Low, Erased::new(|| ()), Origin::Outside).ok().unwrap();
        ageing.note_time(2 * AFTER + 1, &queue);
        assert_eq!(queue.aged(), Aged::NONE);
        // Nothing ages.
        let never = Ageing::new(u64::MAX);
        for _ in 0..3 {
            never.note_time(u64::MAX - 1, &queue);
        }
        assert_eq!(queue.aged(), Aged::NONE);
    }
}
