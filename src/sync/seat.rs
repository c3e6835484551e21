//! A small number for each of the first threads, by which it has something of its own in many places: counters,
//! say, that it alone changes, by a plain load and store.
//!
//! A thread gets its seat when it first asks, and gives it back when it ends; the next one that sits there sees
//! what its predecessor has done (Release and Acquire of the same word). Threads beyond [`SEATS`] stand.

use core::cell::Cell;
// Not loom's: who sits where decides nothing.
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// How many threads have seats.
pub(crate) const SEATS: usize = 64;
/// The seat of all who stand: nothing there is anybody's own.
pub(crate) const STANDING: u8 = SEATS as u8;
const UNKNOWN: u8 = u8::MAX;

/// Bit *n*: seat *n* is taken.
static TAKEN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static MINE: Cell<u8> = const { Cell::new(UNKNOWN) };
    static SEAT: Seat = const { Seat(Cell::new(STANDING)) };
}

/// Given back when the thread ends.
struct Seat(Cell<u8>);

impl Drop for Seat {
    fn drop(&mut self) {
        let mine = self.0.get();
        // What comes after this in the same thread stands.
        let _gone = MINE.try_with(|seat| seat.set(STANDING));
        if mine != STANDING {
            TAKEN.fetch_and(!(1 << mine), Release);
        }
    }
}

/// The seat of this thread, or [`STANDING`]. In models all stand: loom's threads are one to thread-locals.
#[inline]
pub(crate) fn seat() -> u8 {
    if cfg!(loom) {
        return STANDING;
    }
    match MINE.try_with(Cell::get) {
        Ok(UNKNOWN) => sit_down(),
        Ok(seat) => seat,
        Err(_) => STANDING,
    }
}

#[cold]
fn sit_down() -> u8 {
    let seated = SEAT.try_with(|seat| {
        let free = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        let before = TAKEN.fetch_update(Acquire, Relaxed, free);
        let mine = before.map_or(STANDING, |taken| taken.trailing_ones() as u8);
        seat.0.set(mine);
        mine
    });
    let mine = seated.unwrap_or(STANDING);
    MINE.set(mine);
    mine
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    /// Goal: no two threads that live have one seat, and seats are given back. Method: more threads than there are
    /// seats, all at once, twice.
    #[test]
    fn each_seat_is_one_threads() {
        for _ in 0..2 {
            let together = Barrier::new(SEATS + 8);
            let sit = || {
                let mine = seat();
                together.wait();
                assert_eq!(seat(), mine);
                mine
            };
            let seats: Vec<u8> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..SEATS + 8).map(|_| scope.spawn(sit)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let sitting: Vec<u8> = seats.into_iter().filter(|&seat| seat != STANDING).collect();
            // Others of this process may sit, too.
            assert!(!sitting.is_empty() && sitting.len() <= SEATS);
            assert_eq!(sitting.iter().collect::<BTreeSet<_>>().len(), sitting.len());
        }
    }
}
