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
//! | `{ tenure: 24, seat: 8 }` | the thread that sits there, in a *turn*: while that tenure is `busy`, and only if it saw the same word after that |
//! | `NOBODY`, `MOVING` | whoever has the lock of `tenures` |
//! | `SHARED` | anybody, by a read-modify-write |
//!
//! # Invariants
//!
//! 1. Each number is given out once, and those that a thread is given grow.
//! 2. The word changes under the lock only, and from an owner first to `MOVING`; then whoever changes it waits until
//!    that tenure is not busy.
//! 3. No word of an owner comes twice, and of each tenure its owner alone says whether it is busy. So a turn that is
//!    too late, since its tenure is over, hides nobody's turn in the next one.
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

/// So many owners it has. One thread may have set things up, and another one goes on.
const TENURES: u32 = if cfg!(loom) { 2 } else { 4 };

/// Who waits for a turn to end sleeps so long at a time.
const NAP: Duration = Duration::from_micros(50);
/// Where the heavy barrier was forbidden in the meantime: within such a time a processor has written what it had to.
const UNSEEN: Duration = Duration::from_millis(1);

/// See the head of the file.
#[derive(Debug)]
pub(crate) struct Numbers {
    owner: AtomicU32,
    /// Of each tenure.
    busy: [AtomicBool; TENURES as usize],
    last: AtomicU64,
    /// How many tenures there were.
    tenures: Mutex<u32>,
}

impl Numbers {
    /// After `last`. `asymmetric`: there is a [`heavy_barrier`].
    pub(crate) fn after(last: u64, asymmetric: bool) -> Self {
        Self {
            owner: AtomicU32::new(if asymmetric { NOBODY } else { SHARED }),
            busy: core::array::from_fn(|_| AtomicBool::new(false)),
            last: AtomicU64::new(last),
            tenures: Mutex::new(0),
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
        let word = self.owner.load(Relaxed);
        // No other word ends like this.
        if word as u8 == seat {
            let busy = self.busy_of(word);
            busy.store(true, Relaxed);
            light_barrier();
            let is_own = self.owner.load(Relaxed) == word;
            let before = self.last.load(Relaxed);
            if is_own {
                self.last.store(before + count, Relaxed);
            }
            // Release: whoever moves it sees what this turn has done.
            busy.store(false, Release);
            if is_own {
                return before;
            }
        }
        self.take_anyhow(seat, count)
    }

    /// That of the tenure of an owner's word.
    #[inline(always)]
    fn busy_of(&self, word: u32) -> &AtomicBool {
        &self.busy[(word >> 8) as usize % self.busy.len()]
    }

    #[cold]
    fn take_anyhow(&self, seat: u8, count: u64) -> u64 {
        // Acquire: what the last owner has done is in `last`.
        if self.owner.load(Acquire) != SHARED {
            let mut tenures = self.tenures.lock().unwrap_or_else(PoisonError::into_inner);
            if self.owner.load(Relaxed) != SHARED {
                return self.take_over(&mut tenures, seat, count);
            }
        }
        self.last.fetch_add(count, Relaxed)
    }

    /// Under the lock, of which `tenures` is the proof.
    fn take_over(&self, tenures: &mut u32, seat: u8, count: u64) -> u64 {
        let word = self.owner.load(Relaxed);
        if word != NOBODY {
            self.owner.store(MOVING, Relaxed);
            if !heavy_barrier() {
                std::thread::sleep(UNSEEN);
            }
            // It is a few instructions away from the end of its turn, unless it has lost its processor there: to this
            // thread perhaps, which may have the higher priority, so a yield would not do.
            let mut wait = SpinWait::new();
            // Acquire: pairs with the end of the turn.
            while self.busy_of(word).load(Acquire) {
                if !wait.spin() {
                    std::thread::sleep(NAP);
                }
            }
        }
        let before = self.last.load(Relaxed);
        self.last.store(before + count, Relaxed);
        let tenure = *tenures;
        let next = match seat != STANDING && tenure < TENURES {
            true => {
                *tenures = tenure + 1;
                tenure << 8 | u32::from(seat)
            }
            false => SHARED,
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
        for seat in 0..TENURES as u8 {
            numbers.take_as(seat, 1);
            assert_eq!(numbers.owner.load(Relaxed), u32::from(seat) << 8 | u32::from(seat));
        }
        numbers.take_as(9, 1);
        assert_eq!(numbers.owner.load(Relaxed), SHARED);
        assert_eq!(numbers.take_as(0, 1), u64::from(TENURES) + 1);
        let numbers = Numbers::after(0, true);
        assert_eq!((numbers.take_as(STANDING, 2), numbers.take_as(STANDING, 1)), (0, 2));
        assert_eq!(numbers.owner.load(Relaxed), SHARED);
    }
}

#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | numbers that one thread takes without a locked instruction | a turn does not look at the word again; who moves it has no heavy barrier, or does not wait for a turn; all owners have one mark for their turns | a number given out twice, or that does not grow |

    use super::*;
    use crate::sync::Arc;
    use loom::thread;

    fn take_twice(numbers: &Numbers, seat: u8) -> [u64; 2] {
        let taken = [numbers.take_as(seat, 1), numbers.take_as(seat, 1)];
        assert!(taken[0] < taken[1], "they do not grow");
        taken
    }

    /// Threads with seats from 0 on take two numbers each.
    fn take(threads: u8) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let numbers = Arc::new(Numbers::after(0, true));
            let others: Vec<_> = (1..threads)
                .map(|seat| {
                    let numbers = Arc::clone(&numbers);
                    thread::spawn(move || take_twice(&numbers, seat))
                })
                .collect();
            let mut all = Vec::from(take_twice(&numbers, 0));
            all.extend(others.into_iter().flat_map(|other| other.join().unwrap()));
            all.sort_unstable();
            assert!(all.iter().copied().eq(0..2 * u64::from(threads)), "one twice: {all:?}");
        });
    }

    /// Goal: invariant 1, when a past owner is still in a turn that began too late. Method: two threads, so that each
    /// owns it, and it moves from the one to the other.
    #[test]
    fn a_number_is_given_out_once_while_it_moves() {
        take(2);
    }

    /// Goal: the same, up to where it is shared. Method: one thread more than there are owners.
    #[test]
    fn a_number_is_given_out_once_until_it_is_shared() {
        take(3);
    }
}
