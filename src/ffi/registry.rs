//! What C names by a number: tasks and strands.
//!
//! A number is `{ generation: 32, index + 1: 32 }`, so 0 names nothing. Places are type-stable (see
//! `pool/slots/slab.rs`), so a number of any bits leads to a place or to none, and the generation there
//! tells whether it is late.
//!
//! # The word
//!
//! `{ generation: 32, looks: 30, held: 1, let: 1 }`
//!
//! | a place is | value | who may change it |
//! |---|---|---|
//! | free: neither mark | none | whoever `reserve`d it |
//! | let | there, and shared with those who look | nobody; whoever sets `held` becomes its holder |
//! | let and held | there, and shared with the holder and those who look | nobody; the holder may end it |
//! | held, and not let any more | there, until those who look have gone | the holder |
//!
//! ```text
//!   free ──fill──► let ──hold──► let and held ──take──► held ──the last look ends──► free, generation + 1
//!                   ▲                 │
//!                   └──dropped────────┘
//! ```
//!
//! A look is over after some instructions; a *hold* is how a thread uses the value for longer, to wait for a
//! task. While a place is held its value is neither moved nor dropped.
//!
//! # Invariants
//!
//! 1. Only a word that is let is changed by whoever has a number, by a compare-exchange that knows the
//!    generation: what is late changes nothing. So whoever reserved a place, and a holder for whom nobody looks
//!    any more, write the word without asking what it was.
//! 2. There is one holder: it changed the word from "not held".
//! 3. Nobody begins to look once `let` is cleared, and a holder takes the value when those who did have gone.
//! 4. In a forked child the looks of threads that it does not have never end. So there a holder that meets one
//!    leaves the value where it is, and the place held.
//!
//! # Orderings
//!
//! A place is let with Release, and looked at and held with Acquire: the value. A look ends with Release, and
//! the holder takes the value after an Acquire of a word without looks: all of them were before. What the next
//! tenant must see of the last one goes through the free list.
#![allow(unsafe_code, reason = "those who look and the holder share the value by a word")]

use super::boundary::{FORKED, Failure, Result};
use super::status::{PACE_EBUSY, PACE_EFULL, PACE_ESTALE};
use crate::pool::{Entry, Slab};
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::sync::{SpinWait, UnsafeCell};
use crate::sys::fork::ForkGuard;
#[cfg(loom)]
use loom::thread::yield_now as nap;

const LET: u64 = 1;
const HELD: u64 = 1 << 1;
const LOOK: u64 = 1 << 2;
const GENERATION_SHIFT: u32 = 32;

/// How many look.
fn looks(word: u64) -> u64 {
    u64::from(word as u32) / LOOK
}

pub(crate) struct Registry<T> {
    places: Slab<Place<T>>,
    fork: ForkGuard,
}

struct Place<T> {
    word: AtomicU64,
    index: u32,
    link: AtomicU32,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is changed by one thread at a time, by moves of `T: Send`, and otherwise shared as `&T`.
unsafe impl<T: Send + Sync> Sync for Place<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Place<T> {}

impl<T> Entry for Place<T> {
    const CHUNK: usize = if cfg!(loom) { 2 } else { 256 };

    fn new(index: u32) -> Self {
        Self {
            word: AtomicU64::new(0),
            index,
            link: AtomicU32::new(0),
            value: UnsafeCell::new(None),
        }
    }

    fn link(&self) -> &AtomicU32 {
        &self.link
    }
}

const STALE: Failure =
    Failure::plain(PACE_ESTALE, c"this id names nothing, or what it named is gone");
const BUSY: Failure = Failure::plain(PACE_EBUSY, c"another thread waits for this task already");
const NO_ID_LEFT: Failure = Failure::plain(PACE_EFULL, c"all ids are in use");

impl<T: Send + Sync> Registry<T> {
    /// `fork` is of the process whose threads it is for.
    pub(crate) fn new(limit: usize, fork: ForkGuard) -> Self {
        Self { places: Slab::new(limit), fork }
    }

    /// A place for a value that is still to be made.
    pub(crate) fn reserve(&self) -> Result<Reserved<'_, T>> {
        let index = self.places.take().ok_or(NO_ID_LEFT)?;
        Ok(Reserved { registry: self, place: &self.places[index] })
    }

    /// Shows `user` the value of `id`. It must be quick, and must not come back here: nothing
    /// of the program's may run in it.
    pub(crate) fn with<R>(&self, id: u64, user: impl FnOnce(&T) -> R) -> Result<R> {
        let look = Look(self.change(id, |word| Ok(word + LOOK))?);
        Ok(user(look.0.shared()))
    }

    /// Ends the tenancy and gives the value back.
    pub(crate) fn take(&self, id: u64) -> Result<T> {
        self.hold(id).and_then(Hold::take)
    }

    /// Keeps the value of `id` in its place until the hold is dropped.
    pub(crate) fn hold(&self, id: u64) -> Result<Hold<'_, T>> {
        let hold = |word| if word & HELD == 0 { Ok(word | HELD) } else { Err(BUSY) };
        Ok(Hold { registry: self, place: self.change(id, hold)? })
    }

    /// Changes the word of `id`, if its place is let to that tenant.
    fn change(&self, id: u64, next: impl Fn(u64) -> Result<u64>) -> Result<&Place<T>> {
        let index = (id as u32).checked_sub(1).ok_or(STALE)?;
        let place = self.places.get(index).ok_or(STALE)?;
        let mut word = place.word.load(Relaxed);
        while word & LET != 0 && word >> GENERATION_SHIFT == id >> GENERATION_SHIFT {
            match place.word.compare_exchange_weak(word, next(word)?, Acquire, Relaxed) {
                Ok(_) => return Ok(place),
                Err(now) => word = now,
            }
        }
        Err(STALE)
    }
}

impl<T> Place<T> {
    /// The value of one that is let, for whoever looks at it or holds it.
    fn shared(&self) -> &T {
        // SAFETY: it is not changed until the holder has taken it, after the last look (invariant 3).
        let value = self.value.with(|value| unsafe { &*value });
        value.as_ref().expect("a place that is let has a value")
    }
}

/// While it lasts the value stays.
struct Look<'a, T>(&'a Place<T>);

impl<T> Drop for Look<'_, T> {
    fn drop(&mut self) {
        self.0.word.fetch_sub(LOOK, Release);
    }
}

/// A place that has no value yet. Dropped, it is given back.
pub(crate) struct Reserved<'a, T: Send + Sync> {
    registry: &'a Registry<T>,
    place: &'a Place<T>,
}

impl<T: Send + Sync> Reserved<'_, T> {
    /// Lets the place, and names it.
    pub(crate) fn fill(self, value: T) -> u64 {
        let place = self.place;
        core::mem::forget(self);
        // SAFETY: the place is reserved: nobody else reaches its value.
        place.value.with_mut(|room| unsafe { *room = Some(value) });
        // Relaxed: who had it before has given it back.
        let generation = place.word.load(Relaxed) >> GENERATION_SHIFT << GENERATION_SHIFT;
        place.word.store(generation | LET, Release);
        generation | u64::from(place.index + 1)
    }
}

impl<T: Send + Sync> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        self.registry.places.give_back(self.place.index);
    }
}

/// Not a yield: a thread of a real-time priority that yields keeps its CPU from one of a lower one, which looks.
#[cfg(not(loom))]
fn nap() {
    std::thread::sleep(core::time::Duration::from_micros(50));
}

/// A value that stays where it is.
pub(crate) struct Hold<'a, T: Send + Sync> {
    registry: &'a Registry<T>,
    place: &'a Place<T>,
}

impl<T: Send + Sync> Hold<'_, T> {
    pub(crate) fn value(&self) -> &T {
        self.place.shared()
    }

    /// Ends the tenancy and gives the value back. It fails in a forked child only.
    pub(crate) fn take(self) -> Result<T> {
        let (registry, place) = (self.registry, self.place);
        core::mem::forget(self);
        let mut word = place.word.fetch_and(!LET, Acquire) & !LET;
        let mut wait = SpinWait::new();
        while looks(word) > 0 {
            // Whoever looks runs nothing of the program's: it is a matter of its having a CPU.
            if !wait.spin() {
                if registry.fork.is_child() {
                    return Err(FORKED);
                }
                nap();
            }
            word = place.word.load(Acquire);
        }
        // SAFETY: it is held, and nobody looks any more (invariant 3).
        let value = place.value.with_mut(|value| unsafe { (*value).take() });
        let next = (word >> GENERATION_SHIFT).wrapping_add(1) << GENERATION_SHIFT;
        place.word.store(next, Relaxed);
        registry.places.give_back(place.index);
        Ok(value.expect("a place that is held has a value"))
    }
}

impl<T: Send + Sync> Drop for Hold<'_, T> {
    fn drop(&mut self) {
        // Release: the next holder may take the value, after what was done with it here.
        self.place.word.fetch_and(!HELD, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn registry(limit: usize) -> Registry<u32> {
        Registry::new(limit, ForkGuard::new().unwrap())
    }

    #[test]
    fn numbers_of_any_bits_are_stale_and_do_no_harm() {
        let registry = registry(1000);
        let id = registry.reserve().unwrap().fill(7);
        for made_up in [0, 1 << 32, id + 1, id + (1 << 32), u64::MAX, u64::MAX - 1, 1 << 63] {
            assert!(registry.with(made_up, |_| ()).is_err(), "{made_up:#x}");
            assert!(registry.take(made_up).is_err(), "{made_up:#x}");
            assert!(registry.hold(made_up).is_err(), "{made_up:#x}");
        }
        assert_eq!(registry.take(id).unwrap(), 7);
        assert!(registry.take(id).is_err());
        assert_ne!(registry.reserve().unwrap().fill(8), id, "places are let again, ids are not");
    }

    #[test]
    fn what_is_held_can_be_looked_at_but_not_taken() {
        let registry = registry(10);
        let id = registry.reserve().unwrap().fill(7);
        let hold = registry.hold(id).unwrap();
        assert!(registry.take(id).is_err() && registry.hold(id).is_err());
        assert_eq!(registry.with(id, |value| *value).unwrap(), 7);
        assert_eq!(*hold.value(), 7);
        drop(hold);
        assert_eq!(registry.hold(id).unwrap().take().unwrap(), 7);
        assert!(registry.with(id, |_| ()).is_err());
    }

    #[test]
    fn a_reservation_that_is_dropped_gives_its_place_back() {
        let registry = registry(1);
        for _ in 0..2000 {
            drop(registry.reserve().unwrap());
        }
        let places: Vec<_> = core::iter::from_fn(|| registry.reserve().ok()).collect();
        assert_eq!(places.len(), Place::<u32>::CHUNK);
    }

    /// Goal: in a forked child a value that somebody looks at, who is not there, is not waited for. Method: a fork
    /// beside a look; an alarm ends a child that waits.
    #[test]
    fn a_child_does_not_wait_for_looks_of_its_parents_threads() {
        let registry = registry(1);
        let id = registry.reserve().unwrap().fill(7);
        let take_in_child = |_: &u32| {
            // SAFETY: the child uses atomics, sleeps, and ends without running anything of the parent's.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: of this process.
                unsafe { libc::alarm(10) };
                let was_taken = registry.take(id).is_ok() || registry.with(id, |_| ()).is_ok();
                // SAFETY: as above.
                unsafe { libc::_exit(i32::from(was_taken)) }
            }
            child
        };
        let child = registry.with(id, take_in_child).unwrap();
        let mut status = 0;
        // SAFETY: `status` is valid to write to.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
        assert_eq!(registry.take(id).unwrap(), 7);
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
    //! | C's numbers | a value is taken though somebody looks at it; two hold it | an access beside another |

    use super::*;
    use crate::sync::Arc;
    use loom::cell::Cell;
    use loom::thread;

    /// Loom sees who reads it while another writes.
    struct Value(Cell<u32>);

    // SAFETY: that it is not reached by two at once while one of them writes is what the models are to show.
    unsafe impl Sync for Value {}

    fn registry() -> Registry<Value> {
        Registry::new(1, ForkGuard::new().unwrap())
    }

    fn filled(registry: &Registry<Value>, value: u32) -> u64 {
        registry.reserve().unwrap().fill(Value(Cell::new(value)))
    }

    /// Goal: whoever looks sees the value that its number names, whole, or is late; the value is taken once, when
    /// nobody looks. Method: one looks while another takes the value, changes it as an owner may, and lets the
    /// place to the next tenant.
    #[test]
    fn a_look_meets_its_own_value_or_none() {
        loom::model(|| {
            let registry = Arc::new(registry());
            let id = filled(&registry, 1);
            let other = Arc::clone(&registry);
            let looks = thread::spawn(move || {
                if let Ok(value) = other.with(id, |value| value.0.get()) {
                    assert_eq!(value, 1);
                }
            });
            let value = registry.take(id).unwrap();
            value.0.set(2);
            let next = filled(&registry, 3);
            assert_eq!(registry.with(next, |value| value.0.get()).unwrap(), 3);
            looks.join().unwrap();
            assert!(registry.with(id, |_| ()).is_err());
        });
    }

    /// Goal: one has it at a time. Method: two take, of whom one holds before.
    #[test]
    fn a_value_is_taken_once() {
        loom::model(|| {
            let registry = Arc::new(registry());
            let id = filled(&registry, 1);
            let other = Arc::clone(&registry);
            let takes = thread::spawn(move || other.take(id).map(|value| value.0.set(2)).is_ok());
            let holds = registry.hold(id).map(|hold| hold.value().0.get());
            let took = registry.take(id).map(|value| value.0.set(3)).is_ok();
            let others = takes.join().unwrap();
            assert!(!(took && others));
            // Who met the other's hold was told so.
            assert!(took || others || holds.is_ok());
            assert_eq!(registry.take(id).is_ok(), !took && !others);
        });
    }
}
