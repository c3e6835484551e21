//! A lock that is held for a few steps: what `std::sync::Mutex` is, without poison.
//!
//! Taken and given back without anybody else about, it is one compare-exchange and one swap, in place. The
//! algorithm is the standard library's, and Ulrich Drepper's (*Futexes Are Tricky*, "mutex 2").
//!
//! | word | meaning |
//! |---|---|
//! | `FREE` | nobody has it |
//! | `TAKEN` | somebody has it, and nobody sleeps |
//! | `AWAITED` | somebody has it, and somebody may sleep |
//!
//! # Invariants
//!
//! 1. One thread has it: it was the one that changed `FREE` into something else.
//! 2. Whoever sleeps has made the word `AWAITED` and sleeps only while it is. Whoever gives it back finds
//!    that, and wakes one; that one makes the word `AWAITED` again, for the others.
//!
//! # Orderings
//!
//! The Release of [`RawLock::give_back`] pairs with the Acquire of the change from `FREE`: whoever has it
//! sees all that was done under it before.
#![allow(unsafe_code, reason = "what a lock guards is reached through a shared reference")]

#[cfg(not(loom))]
use super::UnsafeCell;
use super::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sys::futex::Futex;
#[cfg(not(loom))]
use core::ops::{Deref, DerefMut};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const AWAITED: u32 = 2;

/// Looks before it sleeps: the lock is held for a few steps.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 100 };

/// The word; see the head of the file.
#[derive(Debug)]
struct RawLock(Futex);

#[cfg_attr(loom, allow(dead_code, reason = "models of what is above have loom's own"))]
impl RawLock {
    fn new() -> Self {
        Self(Futex::new(FREE))
    }

    #[inline(always)] // It is a few instructions.
    fn take(&self) {
        if self.0.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_err() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..LOOKS {
            let word = self.0.load(Relaxed);
            if word == FREE && self.0.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok() {
                return;
            }
            if word == AWAITED {
                break;
            }
            core::hint::spin_loop();
        }
        while self.0.swap(AWAITED, Acquire) != FREE {
            self.0.wait(AWAITED, None);
        }
    }

    #[inline(always)] // As `take`.
    fn give_back(&self) {
        if self.0.swap(FREE, Release) == AWAITED {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.0.wake(1);
    }
}

/// A value that one thread at a time reaches.
#[cfg(not(loom))]
#[repr(C)]
pub(crate) struct Lock<T> {
    raw: RawLock,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time reaches the value (invariant 1), so it needs to be Send only.
#[cfg(not(loom))]
unsafe impl<T: Send> Sync for Lock<T> {}

#[cfg(not(loom))]
impl<T> Lock<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Self { raw: RawLock::new(), value: UnsafeCell::new(value) }
    }

    #[inline(always)] // As `take`.
    pub(crate) fn lock(&self) -> Locked<'_, T> {
        self.raw.take();
        Locked(self)
    }
}

/// The lock is given back when this is dropped.
#[cfg(not(loom))]
#[must_use = "the lock is given back when this is dropped"]
pub(crate) struct Locked<'a, T>(&'a Lock<T>);

#[cfg(not(loom))]
impl<T> Deref for Locked<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this thread has the lock (invariant 1), and `self` lends it out as shared.
        self.0.value.with(|value| unsafe { &*value })
    }
}

#[cfg(not(loom))]
impl<T> DerefMut for Locked<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread has the lock (invariant 1), and `self` lends it out once.
        self.0.value.with_mut(|value| unsafe { &mut *value })
    }
}

#[cfg(not(loom))]
impl<T> Drop for Locked<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.raw.give_back();
    }
}

/// For models of what is above: loom's lock, whose interleavings are few.
#[cfg(loom)]
pub(crate) struct Lock<T>(loom::sync::Mutex<T>);

#[cfg(loom)]
pub(crate) use loom::sync::MutexGuard as Locked;

#[cfg(loom)]
impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Locked<'_, T> {
        self.0.lock().unwrap()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Goal: one thread at a time. Method: threads that add to a number in two steps.
    #[test]
    fn one_thread_at_a_time_has_it() {
        const EACH: u64 = if cfg!(miri) { 100 } else { 100_000 };
        let lock = Lock::new([0_u64; 2]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let mut numbers = lock.lock();
                        numbers[0] += 1;
                        numbers[1] += 1;
                        assert_eq!(numbers[0], numbers[1]);
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), [4 * EACH; 2]);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::sync::{Arc, UnsafeCell};
    use loom::thread;

    /// Goal: the two invariants. Method: three threads that change one value under it: loom sees two that
    /// reach it at once, one that does not see what another has done, and one that sleeps for ever.
    #[test]
    fn one_thread_at_a_time_has_it_and_none_sleeps_for_ever() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let shared = Arc::new((RawLock::new(), UnsafeCell::new(0)));
            let add = |shared: &(RawLock, UnsafeCell<u32>)| {
                shared.0.take();
                // SAFETY: this thread has the lock.
                shared.1.with_mut(|number| unsafe { *number += 1 });
                shared.0.give_back();
            };
            let others = [0; 2].map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || add(&shared))
            });
            add(&shared);
            others.into_iter().for_each(|other| other.join().unwrap());
            shared.0.take();
            // SAFETY: as above.
            assert_eq!(shared.1.with(|number| unsafe { *number }), 3);
            shared.0.give_back();
        });
    }
}
