//! The events of a ring, side by side, so that a run of them is a slice.
#![allow(unsafe_code, reason = "positions are handed from thread to thread by the ring's words")]

use crate::sync::UnsafeCell;
use core::mem::MaybeUninit;

/// A power of two of places for events.
pub(super) struct Slots<T> {
    places: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: events are copied in by one thread and read by others, never both at a time, as the callers
// of `write` and `with` promise.
unsafe impl<T: Copy + Send> Send for Slots<T> {}
// SAFETY: as above. A `&T` is seen by one thread at a time, so `T: Sync` is not needed.
unsafe impl<T: Copy + Send> Sync for Slots<T> {}

impl<T: Copy> Slots<T> {
    /// `None` if there is no memory for so many. What is never written is never touched.
    pub(super) fn new(capacity: usize) -> Option<Self> {
        debug_assert!(capacity.is_power_of_two());
        let mut places = Vec::new();
        places.try_reserve_exact(capacity).ok()?;
        #[cfg(loom)]
        places.resize_with(capacity, || UnsafeCell::new(MaybeUninit::uninit()));
        #[cfg(not(loom))]
        // SAFETY: a place may be uninitialized, and there is room for `capacity` of them.
        unsafe {
            places.set_len(capacity);
        }
        Some(Self { places: places.into_boxed_slice() })
    }

    /// How many of the `len` places from `position` on lie before the end of the memory.
    #[inline]
    pub(super) fn unbroken(&self, position: u64, len: usize) -> usize {
        len.min(self.places.len() - self.index(position))
    }

    /// Copies `events` to the places from `position` on.
    ///
    /// # Safety
    ///
    /// `events` is no longer than the ring, and no other thread uses these places.
    #[inline]
    pub(super) unsafe fn write(&self, position: u64, events: &[T]) {
        let (front, rest) = events.split_at(self.unbroken(position, events.len()));
        // SAFETY: as the caller promises; both parts lie within the memory.
        unsafe {
            self.write_unbroken(self.index(position), front);
            self.write_unbroken(0, rest);
        }
    }

    #[inline]
    fn index(&self, position: u64) -> usize {
        position as usize & (self.places.len() - 1)
    }
}

#[cfg(not(loom))]
impl<T: Copy> Slots<T> {
    #[inline]
    unsafe fn write_unbroken(&self, index: usize, events: &[T]) {
        let places = &self.places[index..index + events.len()];
        // A place is a transparent cell, so a slice of them is an array of events.
        let first = places.as_ptr().cast::<T>().cast_mut();
        // SAFETY: the slice bounds the places; they are cells, and the caller's to write.
        unsafe { first.copy_from_nonoverlapping(events.as_ptr(), events.len()) };
    }

    /// Shows `user` the `len` events from `position` on.
    ///
    /// # Safety
    ///
    /// They are unbroken, have been written, and no other thread uses these places meanwhile.
    #[inline]
    pub(super) unsafe fn with<R>(
        &self,
        position: u64,
        len: usize,
        user: impl FnOnce(&[T]) -> R,
    ) -> R {
        let index = self.index(position);
        let first = self.places[index..index + len].as_ptr().cast::<T>();
        // SAFETY: within the memory, initialized, and nobody writes them, as the caller promises.
        user(unsafe { core::slice::from_raw_parts(first, len) })
    }
}

/// loom's cells are larger than what they hold, so `with` copies; but it holds on to every cell
/// until the user returns, and so a write in the meantime is still found.
#[cfg(loom)]
impl<T: Copy> Slots<T> {
    unsafe fn write_unbroken(&self, index: usize, events: &[T]) {
        for (place, event) in self.places[index..].iter().zip(events) {
            // SAFETY: the caller's to write.
            place.with_mut(|place| unsafe { place.write(MaybeUninit::new(*event)) });
        }
    }

    pub(super) unsafe fn with<R>(
        &self,
        position: u64,
        len: usize,
        user: impl FnOnce(&[T]) -> R,
    ) -> R {
        let index = self.index(position);
        let held: Vec<_> = self.places[index..index + len].iter().map(UnsafeCell::get).collect();
        // SAFETY: initialized, as the caller promises, and loom checks that nobody writes.
        let events: Vec<T> =
            held.iter().map(|place| unsafe { place.deref().assume_init() }).collect();
        user(&events)
    }
}
