//! Numbers that are given out once each, and cost one thread no locked instruction.
//!
//! # The problem
//!
//! A counter that any thread may take the next number of is a locked instruction for each. Yet most such counters are
//! used by one thread for a long time, if not for ever.
//!
//! # The shape
//!
//! So one thread, its *owner*, takes numbers by a plain load and store. Another one that comes takes it over, with
//! the kernel's help, and is the owner from then on; when that has happened a few times the counter is *shared*, for
//! good, and everybody takes numbers by the locked instruction.
//!
//! ```text
//!            first take              take by another              the last of these
//!   NOBODY ────────────► owner = A ────────────────► owner = B … ──────────────────► SHARED
//!                                 (MOVING meanwhile)
//! ```
//!
//! | the word | who changes `last` |
//! |---|---|
//! | a seat | the thread that sits there, in a *turn*: while it is `busy`, and only if it saw the word after that |
//! | `NOBODY`, `MOVING` | whoever has the lock `moves` |
//! | `SHARED` | anybody, by a read-modify-write |
//!
//! # Invariants
//!
//! 1. Each number is given out once, and those that a thread is given grow.
//! 2. The word changes under the lock only, and from a seat first to `MOVING`; then whoever changes it waits until
//!    nobody is in a turn that began before.
//!
//! # Orderings
//!
//! *Busy, then look at the word* in a turn against *move, then look whether the owner is busy*: a light barrier here, a
//! heavy one there ([asymmetric.rs](asymmetric.rs)), so either the turn sees that it is nobody's, or whoever moves sees
//! the turn. `busy` is given up with Release and looked at with Acquire: what the turn has made of `last` is seen. `SHARED` is
//! set with Release and seen with Acquire, for the same. A seat passes from thread to thread by its own word
//! ([seat.rs](seat.rs)).

use super::atomic::Ordering::{Acquire, Relaxed, Release};
use super::atomic::{AtomicBool, AtomicU32, AtomicU64};
use super::{Mutex, STANDING, SpinWait, heavy_barrier, light_barrier, seat};
use core::time::Duration;
use std::sync::PoisonError;

const SHARED: u32 = u32::MAX;
const MOVING: u32 = SHARED - 1;
const NOBODY: u32 = SHARED - 2;

/// So often it has another owner. One thread may have set things up, and another one goes on.
const MOVES: u32 = if cfg!(loom) { 1 } else { 4 };

/// Who waits for a turn to end sleeps so long at a time.
const NAP: Duration = Duration::from_micros(50);
/// Where the heavy barrier was forbidden in the meantime: within such a time a processor has written what it had to.
const UNSEEN: Duration = Duration::from_millis(1);

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Numbers {
    owner: AtomicU32,
    busy: AtomicBool,
    last: AtomicU64,
    /// How often it may have another owner still.
    moves: Mutex<u32>,
}

impl Numbers {
    /// After `last`. `asymmetric`: there is a [`heavy_barrier`].
    pub(crate) fn after(last: u64, asymmetric: bool) -> Self {
        Self {
            owner: AtomicU32::new(if asymmetric { NOBODY } else { SHARED }),
            busy: AtomicBool::new(false),
            last: AtomicU64::new(last),
            moves: Mutex::new(MOVES),
        }
    }

    /// The last number that was given out, as far as is known here.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Relaxed)
    }

    /// Takes so many numbers, one after the other, and says which is before the first.
    #[inline]
    pub(crate) fn take(&self, count: u64) -> u64 {
        self.take_as(seat(), count)
    }

    /// As the thread that has this seat.
    #[inline(always)]
    fn take_as(&self, seat: u8, count: u64) -> u64 {
        if self.owner.load(Relaxed) == u32::from(seat) {
            self.busy.store(true, Relaxed);
            light_barrier();
            let is_own = self.owner.load(Relaxed) == u32::from(seat);
            let before = self.last.load(Relaxed);
            if is_own {
                self.last.store(before + count, Relaxed);
            }
            // Release: whoever moves it sees what this turn has done.
            self.busy.store(false, Release);
            if is_own {
                return before;
            }
        }
        self.take_anyhow(seat, count)
    }

    #[cold]
    fn take_anyhow(&self, seat: u8, count: u64) -> u64 {
        // Acquire: what the last owner has done is in `last`.
        if self.owner.load(Acquire) != SHARED {
            let mut moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
            if self.owner.load(Relaxed) != SHARED {
                return self.take_over(&mut moves, seat, count);
            }
        }
        self.last.fetch_add(count, Relaxed)
    }

    /// Under the lock, of which `moves` is the proof.
    fn take_over(&self, moves: &mut u32, seat: u8, count: u64) -> u64 {
        if self.owner.load(Relaxed) != NOBODY {
            self.owner.store(MOVING, Relaxed);
            if !heavy_barrier() {
                std::thread::sleep(UNSEEN);
            }
            // It is a few instructions away from the end of its turn, unless it has lost its processor there: to this
            // thread perhaps, which may have the higher priority, so a yield would not do.
            let mut wait = SpinWait::new();
            // Acquire: pairs with the end of the turn.
            while self.busy.load(Acquire) {
                if !wait.spin() {
                    std::thread::sleep(NAP);
                }
            }
        }
        let before = self.last.load(Relaxed);
        self.last.store(before + count, Relaxed);
        let next = match moves.checked_sub(1) {
            Some(left) if seat != STANDING => {
                *moves = left;
                u32::from(seat)
            }
            _ => SHARED,
        };
        // Release: `last`.
        self.owner.store(next, Release);
        before
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Goal: invariant 1. Method: threads that take one or several, and come one after the other, so that the
    /// counter moves in the middle of their work; as an owner's, and as one without a heavy barrier.
    #[test]
    fn each_number_is_given_out_once() {
        const THREADS: usize = 8;
        const EACH: u64 = if cfg!(miri) { 50 } else { 50_000 };
        for asymmetric in [super::super::is_asymmetric(), false] {
            let numbers = Numbers::after(7, asymmetric);
            let take = |thread: usize| {
                std::thread::sleep(Duration::from_micros(200 * thread as u64));
                let all = (0..EACH).flat_map(|round| {
                    let count = 1 + round % 3;
                    let before = numbers.take(count);
                    before + 1..=before + count
                });
                let all: Vec<u64> = all.collect();
                assert!(all.is_sorted_by(|one, next| one < next), "they do not grow");
                all
            };
            let mut all: Vec<u64> = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..THREADS).map(|it| scope.spawn(move || take(it))).collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            all.sort_unstable();
            assert!(all.iter().copied().eq(8..8 + all.len() as u64), "one twice, or not at all");
            assert_eq!(numbers.last(), 7 + all.len() as u64);
        }
    }

    #[test]
    fn it_has_another_owner_a_few_times() {
        let numbers = Numbers::after(0, true);
        for seat in 0..MOVES as u8 {
            numbers.take_as(seat, 1);
            assert_eq!(numbers.owner.load(Relaxed), u32::from(seat));
        }
        numbers.take_as(9, 1);
        assert_eq!(numbers.owner.load(Relaxed), SHARED);
        assert_eq!(numbers.take_as(0, 1), u64::from(MOVES) + 1);
        let numbers = Numbers::after(0, true);
        assert_eq!((numbers.take_as(STANDING, 2), numbers.take_as(STANDING, 1)), (0, 2));
        assert_eq!(numbers.owner.load(Relaxed), SHARED);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::sync::Arc;
    use loom::thread;

    /// Goal: invariant 1. Method: an owner, one that takes it over, and one for whom it is shared; each takes twice.
    #[test]
    fn a_number_is_given_out_once_while_it_moves() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let numbers = Arc::new(Numbers::after(0, true));
            let take = |seat| {
                let numbers = Arc::clone(&numbers);
                thread::spawn(move || [numbers.take_as(seat, 1), numbers.take_as(seat, 1)])
            };
            let others = [take(1), take(2)];
            let mut all = vec![numbers.take_as(0, 1), numbers.take_as(0, 1)];
            all.extend(others.into_iter().flat_map(|other| {
                let taken = other.join().unwrap();
                assert!(taken[0] < taken[1]);
                taken
            }));
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4, 5]);
        });
    }
}
