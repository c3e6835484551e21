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
//! The Release of [`Raw::give_back`] pairs with the Acquire of the change from `FREE`: whoever has it
//! sees all that was done under it before.
//!
//! # The light lock
//!
//! A swap waits until all stores before it are done, also those to lines that another processor reads. Where there
//! are such, [`Light`] gives back by a plain store, and who sleeps pays: a word of its own says whether somebody does.
//!
//! ```text
//!   give back:  lock = FREE ─ light ─ asleep?          sleep:  asleep = 1 ─ heavy ─ lock taken?
//! ```
//!
//! 3. One of the two sees the other (`asymmetric.rs`): who is about to sleep finds the lock free, or whoever has it
//!    finds `asleep`, clears it, and wakes all. Each who is woken and does not get the lock sets it again.
//! 4. Whoever sleeps does so while `asleep` is set. So who clears it before another one sleeps, wakes that one, too.
//! 5. Where there is no heavy barrier, who sleeps may not be seen, and looks again every millisecond.
#![allow(unsafe_code, reason = "what a lock guards is reached through a shared reference")]

#[cfg(not(loom))]
use super::UnsafeCell;
use super::atomic::Ordering::{Acquire, Relaxed, Release};
use super::{heavy_barrier, light_barrier};
use crate::sys::futex::Futex;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::time::Duration;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const AWAITED: u32 = 2;

/// Looks before it sleeps: the lock is held for a few steps.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 100 };

/// The same of a light one, whose sleep costs it and whoever has the lock many microseconds. Each look takes the line
/// from the latter, who needs it to give the lock back, so there are pauses between them, which grow up to so many of
/// the processor's. After some of them whoever has it may be waiting for this very processor: the rest yield.
const SPARING_LOOKS: u32 = if cfg!(loom) { 1 } else { 128 };
const PAUSED_LOOKS: u32 = 24;
const MOST_PAUSES: u32 = 64;

/// How a lock is taken and given back.
pub(crate) trait Raw {
    fn new() -> Self;
    fn take(&self);
    fn give_back(&self);
}

/// The word; see the head of the file.
#[derive(Debug)]
#[cfg_attr(loom, allow(dead_code, reason = "models of what is above have loom's own"))]
pub(crate) struct Plain(Futex);

impl Raw for Plain {
    fn new() -> Self {
        Self(Futex::new(FREE))
    }

    #[inline(always)] // It is a few instructions.
    fn take(&self) {
        if self.0.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_err() {
            self.wait();
        }
    }

    #[inline(always)] // As `take`.
    fn give_back(&self) {
        if self.0.swap(FREE, Release) == AWAITED {
            self.wake();
        }
    }
}

impl Plain {
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

    #[cold]
    fn wake(&self) {
        self.0.wake(1);
    }
}

/// One that is given back by a plain store; see the head of the file.
#[derive(Debug)]
#[cfg_attr(loom, allow(dead_code, reason = "as above"))]
pub(crate) struct Light {
    lock: Futex,
    asleep: Futex,
}

/// So long one sleeps who may not be seen.
const UNSEEN: Duration = Duration::from_millis(1);

impl Raw for Light {
    fn new() -> Self {
        Self { lock: Futex::new(FREE), asleep: Futex::new(0) }
    }

    #[inline(always)] // As of `Plain`.
    fn take(&self) {
        if !self.try_take() {
            self.wait();
        }
    }

    #[inline(always)] // As `take`.
    fn give_back(&self) {
        self.lock.store(FREE, Release);
        light_barrier();
        // Relaxed: it stands for nothing else, and the barriers order it.
        if self.asleep.load(Relaxed) != 0 {
            self.wake();
        }
    }
}

impl Light {
    #[inline(always)]
    fn try_take(&self) -> bool {
        self.lock.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        for look in 0..SPARING_LOOKS {
            if self.lock.load(Relaxed) == FREE && self.try_take() {
                return;
            }
            match look {
                0..PAUSED_LOOKS => {
                    (0..MOST_PAUSES.min(4 << look.min(8))).for_each(|_| core::hint::spin_loop());
                }
                _ => std::thread::yield_now(),
            }
        }
        loop {
            self.asleep.store(1, Relaxed);
            let is_seen = heavy_barrier();
            if self.try_take() {
                // Others may sleep, so it stays set.
                return;
            }
            self.asleep.wait(1, if is_seen { None } else { Some(UNSEEN) });
        }
    }

    #[cold]
    fn wake(&self) {
        self.asleep.store(0, Relaxed);
        self.asleep.wake(i32::MAX);
    }
}

/// A value that one thread at a time reaches.
#[cfg(not(loom))]
#[repr(C)]
pub(crate) struct Lock<T, R = Plain> {
    raw: R,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time reaches the value (invariant 1), so it needs to be Send only.
#[cfg(not(loom))]
unsafe impl<T: Send, R: Sync> Sync for Lock<T, R> {}

#[cfg(not(loom))]
impl<T, R: Raw> Lock<T, R> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Self { raw: R::new(), value: UnsafeCell::new(value) }
    }

    #[inline(always)] // As `take`.
    pub(crate) fn lock(&self) -> Locked<'_, T, R> {
        self.raw.take();
        Locked(self, PhantomData)
    }
}

/// The lock is given back when this is dropped. It is Send and Sync as the value is, and not as the lock.
#[cfg(not(loom))]
#[must_use = "the lock is given back when this is dropped"]
pub(crate) struct Locked<'a, T, R: Raw = Plain>(&'a Lock<T, R>, PhantomData<&'a mut T>);

#[cfg(not(loom))]
impl<T, R: Raw> Deref for Locked<'_, T, R> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this thread has the lock (invariant 1), and `self` lends it out as shared.
        self.0.value.with(|value| unsafe { &*value })
    }
}

#[cfg(not(loom))]
impl<T, R: Raw> DerefMut for Locked<'_, T, R> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread has the lock (invariant 1), and `self` lends it out once.
        self.0.value.with_mut(|value| unsafe { &mut *value })
    }
}

#[cfg(not(loom))]
impl<T, R: Raw> Drop for Locked<'_, T, R> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.raw.give_back();
    }
}

/// For models of what is above: loom's lock, whose interleavings are few.
#[cfg(loom)]
pub(crate) struct Lock<T, R = Plain>(loom::sync::Mutex<T>, PhantomData<R>);

#[cfg(loom)]
pub(crate) struct Locked<'a, T, R = Plain>(loom::sync::MutexGuard<'a, T>, PhantomData<R>);

#[cfg(loom)]
impl<T, R> Lock<T, R> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value), PhantomData)
    }

    pub(crate) fn lock(&self) -> Locked<'_, T, R> {
        Locked(self.0.lock().unwrap(), PhantomData)
    }
}

#[cfg(loom)]
impl<T, R> Deref for Locked<'_, T, R> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(loom)]
impl<T, R> DerefMut for Locked<'_, T, R> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Goal: several threads get a shared reference through the one that has it only if the value is Sync. Method: were
    /// it Sync whatever the value is, there would be two to choose from, and this would not compile.
    const _: () = {
        trait Chosen<Which> {
            const ONE: () = ();
        }
        impl<T> Chosen<()> for T {}
        impl<T: Sync> Chosen<u8> for T {}
        <Locked<'static, core::cell::Cell<u32>> as Chosen<_>>::ONE
    };

    /// Goal: one thread at a time. Method: threads that add to a number in two steps.
    #[test]
    fn one_thread_at_a_time_has_it() {
        one_thread_at_a_time_has::<Plain>();
        one_thread_at_a_time_has::<Light>();
    }

    fn one_thread_at_a_time_has<R: Raw + Sync>() {
        const EACH: u64 = if cfg!(miri) { 100 } else { 100_000 };
        let lock = Lock::<_, R>::new([0_u64; 2]);
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
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | the lock of a connection's output | it is given back Relaxed; nobody is woken; who was woken does not say that others sleep | an access beside another; deadlock; no end |
    //! | the lock of a hub's channel, given back by a plain store | nobody is woken, or before `asleep` is cleared; no light barrier, or no heavy one; no look behind it | deadlock |
    //! |  | it is given back Relaxed; who was woken does not say again that somebody sleeps | an access beside another; no end |

    use super::*;
    use crate::sync::{Arc, UnsafeCell};
    use loom::thread;

    /// Goal: the two invariants. Method: three threads that change one value under it: loom sees two that
    /// reach it at once, one that does not see what another has done, and one that sleeps for ever.
    #[test]
    fn one_thread_at_a_time_has_it_and_none_sleeps_for_ever() {
        check::<Plain>();
    }

    #[test]
    fn one_thread_at_a_time_has_a_light_one_and_none_sleeps_for_ever() {
        check::<Light>();
    }

    fn check<R: Raw + Send + Sync + 'static>() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let shared = Arc::new((R::new(), UnsafeCell::new(0)));
            let add = |shared: &(R, UnsafeCell<u32>)| {
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
