//! What C names by a number: tasks and strands.
//!
//! A number is `{ generation: 32, index + 1: 32 }`, so 0 names nothing. Places are type-stable (see
//! `pool/slab.rs`), so a number of any bits leads to a place or to none, and the generation there
//! tells whether it is late.
//!
//! | a place is | value | who may change it |
//! |---|---|---|
//! | free | none | whoever `reserve`d it |
//! | let | there | whoever holds the lock: `take` |
//! | let and held | there, and shared with the holder | the holder alone |
//!
//! The lock is held for some instructions only; a *hold* is how a thread uses the value for longer
//! without it, to wait for a task. While a place is held its value is neither moved nor dropped, and
//! others may look at it, under the lock.
#![allow(unsafe_code, reason = "a holder uses the value without the lock")]

use super::boundary::{Failure, Result};
use super::status::{PACE_EBUSY, PACE_EFULL, PACE_ESTALE};
use crate::pool::{Entry, Slab};
use crate::sync::atomic::AtomicU32;
use core::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) struct Registry<T> {
    places: Slab<Place<T>>,
}

struct Place<T> {
    index: u32,
    link: AtomicU32,
    tenancy: Mutex<Tenancy>,
    value: UnsafeCell<Option<T>>,
}

struct Tenancy {
    generation: u32,
    held: bool,
}

// SAFETY: the value is changed under the lock by `T: Send` moves, and shared as `&T` only.
unsafe impl<T: Send + Sync> Sync for Place<T> {}

impl<T> Entry for Place<T> {
    const CHUNK: usize = 256;

    fn new(index: u32) -> Self {
        Self {
            index,
            link: AtomicU32::new(0),
            tenancy: Mutex::new(Tenancy { generation: 0, held: false }),
            value: UnsafeCell::new(None),
        }
    }

    fn link(&self) -> &AtomicU32 {
        &self.link
    }
}

impl<T> Place<T> {
    fn lock(&self) -> MutexGuard<'_, Tenancy> {
        // Nothing panics while it is held.
        self.tenancy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const STALE: Failure =
    Failure::plain(PACE_ESTALE, c"this id names nothing, or what it named is gone");
const BUSY: Failure = Failure::plain(PACE_EBUSY, c"another thread waits for this task already");
const NO_ID_LEFT: Failure = Failure::plain(PACE_EFULL, c"all ids are in use");

impl<T: Send + Sync> Registry<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { places: Slab::new(limit) }
    }

    /// A place for a value that is still to be made.
    pub(crate) fn reserve(&self) -> Result<Reserved<'_, T>> {
        let index = self.places.take().ok_or(NO_ID_LEFT)?;
        Ok(Reserved { registry: self, place: &self.places[index] })
    }

    /// Shows `user` the value of `id`. It must be quick, and must not come back here: nothing
    /// of the program's may run in it.
    pub(crate) fn with<R>(&self, id: u64, user: impl FnOnce(&T) -> R) -> Result<R> {
        let (place, _locked) = self.find(id)?;
        // SAFETY: the lock is held, so nobody changes it.
        unsafe { &*place.value.get() }.as_ref().map(user).ok_or(STALE)
    }

    /// Ends the tenancy and gives the value back.
    pub(crate) fn take(&self, id: u64) -> Result<T> {
        let (place, mut tenancy) = self.find(id)?;
        if tenancy.held {
            return Err(BUSY);
        }
        self.end(place, &mut tenancy).ok_or(STALE)
    }

    /// Keeps the value of `id` in its place until the hold is dropped.
    pub(crate) fn hold(&self, id: u64) -> Result<Hold<'_, T>> {
        let (place, mut tenancy) = self.find(id)?;
        if tenancy.held {
            return Err(BUSY);
        }
        tenancy.held = true;
        drop(tenancy);
        Ok(Hold { registry: self, place })
    }

    /// The place of `id`, locked, if it is let to that tenant.
    fn find(&self, id: u64) -> Result<(&Place<T>, MutexGuard<'_, Tenancy>)> {
        let index = (id as u32).checked_sub(1).ok_or(STALE)?;
        let place = self.places.get(index).ok_or(STALE)?;
        let tenancy = place.lock();
        // SAFETY: the lock is held, so nobody changes it.
        let is_let = unsafe { &*place.value.get() }.is_some();
        match is_let && u64::from(tenancy.generation) == id >> 32 {
            true => Ok((place, tenancy)),
            false => Err(STALE),
        }
    }

    fn end(&self, place: &Place<T>, tenancy: &mut Tenancy) -> Option<T> {
        tenancy.generation = tenancy.generation.wrapping_add(1);
        // SAFETY: the lock is held, and nobody else holds the value.
        let value = unsafe { &mut *place.value.get() }.take();
        self.places.give_back(place.index);
        value
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
        let tenancy = place.lock();
        // SAFETY: the lock is held, and the place is reserved: nobody holds its value.
        unsafe { *place.value.get() = Some(value) };
        u64::from(tenancy.generation) << 32 | u64::from(place.index + 1)
    }
}

impl<T: Send + Sync> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        self.registry.places.give_back(self.place.index);
    }
}

/// A value that stays where it is.
pub(crate) struct Hold<'a, T: Send + Sync> {
    registry: &'a Registry<T>,
    place: &'a Place<T>,
}

impl<T: Send + Sync> Hold<'_, T> {
    pub(crate) fn value(&self) -> &T {
        // SAFETY: while it is held nobody changes it.
        let value = unsafe { &*self.place.value.get() };
        value.as_ref().expect("a place that is held is let")
    }

    /// Ends the tenancy and gives the value back.
    pub(crate) fn take(self) -> T {
        let (registry, place) = (self.registry, self.place);
        core::mem::forget(self);
        let mut tenancy = place.lock();
        tenancy.held = false;
        registry.end(place, &mut tenancy).expect("a place that is held is let")
    }
}

impl<T: Send + Sync> Drop for Hold<'_, T> {
    fn drop(&mut self) {
        self.place.lock().held = false;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_bits_are_stale_and_do_no_harm() {
        let registry = Registry::new(1000);
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
        let registry = Registry::new(10);
        let id = registry.reserve().unwrap().fill(7);
        let hold = registry.hold(id).unwrap();
        assert!(registry.take(id).is_err() && registry.hold(id).is_err());
        assert_eq!(registry.with(id, |value| *value).unwrap(), 7);
        assert_eq!(*hold.value(), 7);
        drop(hold);
        assert_eq!(registry.hold(id).unwrap().take(), 7);
        assert!(registry.with(id, |_| ()).is_err());
    }

    #[test]
    fn a_reservation_that_is_dropped_gives_its_place_back() {
        let registry = Registry::<u32>::new(1);
        for _ in 0..2000 {
            drop(registry.reserve().unwrap());
        }
        let places: Vec<_> = core::iter::from_fn(|| registry.reserve().ok()).collect();
        assert_eq!(places.len(), Place::<u32>::CHUNK);
    }
}
