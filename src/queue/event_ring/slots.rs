//! The events of a ring, side by side, so that a run of them is a slice.
#![allow(unsafe_code, reason = "positions are handed from thread to thread by the ring's words")]

use crate::sync::UnsafeCell;
use core::mem::MaybeUninit;

/// A power of two of places for events, each of `width` values.
pub(super) struct Slots<T> {
    values: Box<[UnsafeCell<MaybeUninit<T>>]>,
    width: usize,
    capacity: usize,
}

// SAFETY: events are copied in by one thread and read by others, never both at a time, as the callers
// of `write` and `with` promise.
unsafe impl<T: Copy + Send> Send for Slots<T> {}
// SAFETY: as above. A `&T` is seen by one thread at a time, so `T: Sync` is not needed.
unsafe impl<T: Copy + Send> Sync for Slots<T> {}

impl<T: Copy> Slots<T> {
    /// `None` if there is no memory for so many. What is never written is never touched.
    pub(super) fn new(capacity: usize, width: usize) -> Option<Self> {
        debug_assert!(capacity.is_power_of_two());
        let count = capacity.checked_mul(width)?;
        let mut values = Vec::new();
        values.try_reserve_exact(count).ok()?;
        #[cfg(loom)]
        values.resize_with(count, || UnsafeCell::new(MaybeUninit::uninit()));
        #[cfg(not(loom))]
        // SAFETY: a value may be uninitialized, and there is room for `count` of them.
        unsafe {
            values.set_len(count);
        }
        Some(Self { values: values.into_boxed_slice(), width, capacity })
    }

    /// How many values an event has.
    #[inline]
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// How many of the `len` places from `position` on lie before the end of the memory.
    #[inline]
    pub(super) fn unbroken(&self, position: u64, len: usize) -> usize {
        len.min(self.capacity - self.index(position))
    }

    /// Copies the values of `len` events to the places from `position` on.
    ///
    /// # Safety
    ///
    /// `len` is no more than the capacity, and no other thread uses these places.
    #[inline]
    pub(super) unsafe fn write(&self, position: u64, len: usize, values: &[T]) {
        let (front, rest) = values.split_at(self.unbroken(position, len) * self.width);
        // SAFETY: as the caller promises; both parts lie within the memory.
        unsafe {
            self.write_unbroken(self.index(position), front);
            self.write_unbroken(0, rest);
        }
    }

    #[inline]
    fn index(&self, position: u64) -> usize {
        position as usize & (self.capacity - 1)
    }
}

#[cfg(not(loom))]
impl<T: Copy> Slots<T> {
    #[inline]
    unsafe fn write_unbroken(&self, index: usize, values: &[T]) {
        let start = index * self.width;
        let places = &self.values[start..start + values.len()];
        // A place is made of transparent cells, so a slice of them is an array of values.
        let first = places.as_ptr().cast::<T>().cast_mut();
        // SAFETY: the slice bounds the places; they are cells, and the caller's to write.
        unsafe { first.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
    }

    /// Shows `user` the values of the `len` events from `position` on.
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
        let start = self.index(position) * self.width;
        let values = &self.values[start..start + len * self.width];
        // SAFETY: within the memory, initialized, and nobody writes them, as the caller promises.
        user(unsafe { core::slice::from_raw_parts(values.as_ptr().cast::<T>(), values.len()) })
    }
}

/// loom's cells are larger than what they hold, so `with` copies; but it holds on to every cell
/// until the user returns, and so a write in the meantime is still found.
#[cfg(loom)]
impl<T: Copy> Slots<T> {
    unsafe fn write_unbroken(&self, index: usize, values: &[T]) {
        for (place, value) in self.values[index * self.width..].iter().zip(values) {
            // SAFETY: the caller's to write.
            place.with_mut(|place| unsafe { place.write(MaybeUninit::new(*value)) });
        }
    }

    pub(super) unsafe fn with<R>(
        &self,
        position: u64,
        len: usize,
        user: impl FnOnce(&[T]) -> R,
    ) -> R {
        let start = self.index(position) * self.width;
        let places = &self.values[start..start + len * self.width];
        let held: Vec<_> = places.iter().map(UnsafeCell::get).collect();
        // SAFETY: initialized, as the caller promises, and loom checks that nobody writes.
        let values: Vec<T> =
            held.iter().map(|place| unsafe { place.deref().assume_init() }).collect();
        user(&values)
    }
}
