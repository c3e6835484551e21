//! A small number for each of the first threads, by which it has something of its own in many places: counters,
//! say, that it alone changes, by a plain load and store.
//!
//! A thread gets its number when it first asks, and gives it back when it ends; the next thread that has it sees what
//! that one has done (Release and Acquire of the same word). Threads beyond [`NUMBERED`] have none.

use core::cell::Cell;
// Not loom's: which thread has which number decides nothing.
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// How many threads have a number at a time.
pub(crate) const NUMBERED: usize = 64;
/// What all other threads have: nothing there belongs to one thread.
pub(crate) const UNNUMBERED: u8 = NUMBERED as u8;
const UNKNOWN: u8 = u8::MAX;

/// Bit *n*: number *n* is taken.
static TAKEN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static MINE: Cell<u8> = const { Cell::new(UNKNOWN) };
    static OWNED: Number = const { Number(Cell::new(UNNUMBERED)) };
}

/// Given back when the thread ends.
struct Number(Cell<u8>);

impl Drop for Number {
    fn drop(&mut self) {
        let mine = self.0.get();
        // What comes after this in the same thread has none.
        let _gone = MINE.try_with(|number| number.set(UNNUMBERED));
        if mine != UNNUMBERED {
            TAKEN.fetch_and(!(1 << mine), Release);
        }
    }
}

/// The number of this thread, or [`UNNUMBERED`], as in models: loom's threads are one to thread-locals.
#[inline]
pub(crate) fn thread_number() -> u8 {
    if cfg!(loom) {
        return UNNUMBERED;
    }
    match MINE.try_with(Cell::get) {
        Ok(UNKNOWN) => take_number(),
        Ok(number) => number,
        Err(_) => UNNUMBERED,
    }
}

#[cold]
fn take_number() -> u8 {
    let taken = OWNED.try_with(|number| {
        let free = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        let before = TAKEN.fetch_update(Acquire, Relaxed, free);
        let mine = before.map_or(UNNUMBERED, |taken| taken.trailing_ones() as u8);
        number.0.set(mine);
        mine
    });
    let mine = taken.unwrap_or(UNNUMBERED);
    MINE.set(mine);
    mine
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    /// Goal: no two threads that live have one number, and numbers are given back. Method: more threads than there are
    /// numbers, all at once, twice.
    #[test]
    fn each_number_is_one_threads() {
        for _ in 0..2 {
            let together = Barrier::new(NUMBERED + 8);
            let take = || {
                let mine = thread_number();
                together.wait();
                assert_eq!(thread_number(), mine);
                mine
            };
            let numbers: Vec<u8> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..NUMBERED + 8).map(|_| scope.spawn(take)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let numbered: Vec<u8> =
                numbers.into_iter().filter(|&number| number != UNNUMBERED).collect();
            // Other threads of this process may have some, too.
            assert!(!numbered.is_empty() && numbered.len() <= NUMBERED);
            assert_eq!(numbered.iter().collect::<BTreeSet<_>>().len(), numbered.len());
        }
    }
}
