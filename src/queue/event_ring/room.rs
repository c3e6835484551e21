//! Where publishers wait for room.
//!
//! ```text
//! { epoch: 31, waiting: 1 }
//! ```
//!
//! | a waiter | who makes room |
//! |---|---|
//! | sets `waiting`, notes the word | moves `released` |
//! | ── barrier ── | ── barrier ── |
//! | looks for room: none | sees `waiting`; is there enough room to wake for? |
//! | sleeps while the word is as noted | adds 1, which clears `waiting` and begins an epoch; wakes all |
//!
//! Each side writes before the barrier and reads behind it, so one sees the other. The epoch is for a
//! waiter between its look and its sleep: it must not sleep because yet another one has set
//! `waiting` again.

use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{SpinWait, store_load_barrier};
use crate::sys::futex::Futex;

const WAITING: u32 = 1;

pub(super) struct Room {
    word: Futex,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { word: Futex::new(0) }
    }

    /// Waits until there may be room: spins, yields, then sleeps once. The caller tries again.
    pub(super) fn wait(&self, has_room: impl Fn() -> bool) {
        let mut spin = SpinWait::new();
        // A model has nothing to learn from spinning.
        while !cfg!(loom) && spin.spin() {
            if has_room() {
                return;
            }
        }
        let noted = self.word.fetch_or(WAITING, Relaxed) | WAITING;
        // Against *make room, then look for waiters* in `notify`'s callers.
        store_load_barrier();
        if !has_room() {
            self.word.wait(noted, None);
        }
    }

    /// Wakes all who wait, if `enough` room is there for it. The caller has made room, and passed a
    /// barrier since.
    #[inline]
    pub(super) fn notify(&self, enough: impl FnOnce() -> bool) {
        let seen = self.word.load(Relaxed);
        if seen & WAITING != 0 && enough() {
            self.wake_all(seen);
        }
    }

    #[cold]
    fn wake_all(&self, seen: u32) {
        // Failure: another thread wakes them. Relaxed: waiters look at the ring for themselves.
        if self.word.compare_exchange(seen, seen.wrapping_add(1), Relaxed, Relaxed).is_ok() {
            self.word.wake(i32::MAX);
        }
    }
}
