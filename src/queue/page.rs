//! A page: slots that are written one after the other, and read by many where they lie.
//!
//! ```text
//!   slots   [ ■ ■ ■ ■ □ □ · · ]
//!                     ▲
//!                   shown: goes up with each push, and back only when nobody reads
//! ```
//!
//! # States of a slot
//!
//! | a slot is | whose it is | what is in it |
//! |---|---|---|
//! | free, from `shown` on | the pen's alone | the default, or what was written before the last reset |
//! | shown | everybody's, to read | what was written |
//!
//! The pen writes over what a free slot has in it, so a value that is much like the one before need not be made
//! anew.
//!
//! # Lines of the cache
//!
//! The lines of a slot that was read before are with its readers' processors. A plain store to them waits until they are
//! back, and the next locked instruction of the pen's thread waits for that store. So a push asks for the lines of a slot
//! some places ahead, in a state that can be written. Without it ten subscribers of a channel get a third
//! less, and so does one (docs/design/rejected.md).
//!
//! # Invariants
//!
//! 1. A page has one [`Pen`], which writes, shows and resets by `&mut`. So one thread at a time touches what is not shown.
//! 2. A slot is written before `shown` passes it (Release), and read after that was seen (Acquire).
//! 3. A page is reset while the pen has the only reference to it. Whoever had another let go of it with Release,
//!    and that it is gone is seen with Acquire: so its reads are over.
#![allow(unsafe_code, reason = "slots are handed from the pen to readers by a count")]

use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{Arc, UnsafeCell};

/// So many slots ahead of a push its lines are asked for: a line from another processor takes as long as some pushes.
const AHEAD: usize = 10;
/// Bytes of a line of the cache.
#[cfg(all(target_arch = "x86_64", not(loom)))]
const LINE: usize = 64;

/// Asks for the lines of a slot, to be written soon. A hint: it changes no memory.
#[inline(always)] // A part of `Pen::push`.
#[cfg(all(target_arch = "x86_64", not(loom)))]
fn prefetch<T>(slot: &UnsafeCell<T>) {
    for offset in (0..size_of::<T>()).step_by(LINE) {
        let line = core::ptr::from_ref(slot).cast::<u8>().wrapping_add(offset);
        // SAFETY: the instruction changes neither memory nor flags, and faults at no address.
        unsafe {
            core::arch::asm!(
                "prefetchw [{}]",
                in(reg) line,
                options(nostack, preserves_flags, readonly)
            );
        }
    }
}

/// Other processors have no such hint in stable Rust.
#[cfg(not(all(target_arch = "x86_64", not(loom))))]
fn prefetch<T>(_: &UnsafeCell<T>) {}

/// See the head of the file.
pub(crate) struct Page<T> {
    shown: AtomicUsize,
    slots: Box<[UnsafeCell<T>]>,
}

// SAFETY: threads that share a page share the `T`s of written slots, hence `T: Sync`, and the pen may write
// and drop those of free slots on another thread than the one that made them, hence `T: Send`. No slot is
// both (invariants 1 to 3).
unsafe impl<T: Send + Sync> Sync for Page<T> {}

impl<T> Page<T> {
    /// How many slots are shown.
    #[inline]
    pub(crate) fn shown(&self) -> usize {
        // Acquire: pairs with the Release in `show`.
        self.shown.load(Acquire)
    }

    /// So many shown slots, from this one on.
    ///
    /// # Panics
    /// If they are not all shown.
    #[inline]
    pub(crate) fn read(&self, from: usize, count: usize) -> Shown<'_, T> {
        assert!(from + count <= self.shown(), "slots that are not shown");
        Shown(self.slots[from..from + count].iter())
    }
}

/// Shown slots of a page, one after the other.
pub(crate) struct Shown<'a, T>(core::slice::Iter<'a, UnsafeCell<T>>);

impl<'a, T> Iterator for Shown<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        // SAFETY: a shown slot, which nobody writes while there is this reference to its page.
        self.0.next().map(|slot| slot.with(|value| unsafe { &*value }))
    }
}

/// The one that writes a page.
pub(crate) struct Pen<T> {
    page: Arc<Page<T>>,
    /// How many slots are written: what `shown` says.
    count: usize,
}

impl<T: Default> Pen<T> {
    /// A page of so many slots, all free.
    pub(crate) fn new(slots: usize) -> Self {
        let slots = (0..slots).map(|_| UnsafeCell::new(T::default())).collect();
        Self { page: Arc::new(Page { shown: AtomicUsize::new(0), slots }), count: 0 }
    }
}

impl<T> Pen<T> {
    pub(crate) fn page(&self) -> &Arc<Page<T>> {
        &self.page
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.count == self.page.slots.len()
    }

    /// The next free slot, to be written, and then [pushed](Self::push).
    ///
    /// # Panics
    /// If there is none.
    #[inline(always)] // It is a few instructions.
    pub(crate) fn place(&mut self) -> &mut T {
        // SAFETY: a free slot, which is the pen's; nobody else has the pen while it is borrowed.
        self.page.slots[self.count].with_mut(|value| unsafe { &mut *value })
    }

    /// The next free slot is written: readers see it.
    #[inline(always)] // As `place`.
    pub(crate) fn push(&mut self) {
        self.count += 1;
        debug_assert!(self.count <= self.page.slots.len());
        // Release: pairs with the Acquire in `shown`.
        self.page.shown.store(self.count, Release);
        if let Some(slot) = self.page.slots.get(self.count - 1 + AHEAD) {
            prefetch(slot);
        }
    }

    /// The next free slot is written, and pushed.
    #[cfg(test)]
    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut T)) {
        write(self.place());
        self.push();
    }

    /// Frees all slots, each of which is `clean`ed first. False: somebody reads still, and nothing was done.
    pub(crate) fn reset(&mut self, mut clean: impl FnMut(&mut T)) -> bool {
        let Some(page) = Arc::get_mut(&mut self.page) else { return false };
        for slot in &mut page.slots[..self.count] {
            // SAFETY: nobody else has a reference to the page.
            slot.with_mut(|value| clean(unsafe { &mut *value }));
        }
        page.shown.store(0, Relaxed);
        self.count = 0;
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_written_over_when_nobody_reads() {
        let mut pen = Pen::<Vec<u32>>::new(3);
        (1..=2).for_each(|number| pen.push_with(|slot| slot.push(number)));
        let page = Arc::clone(pen.page());
        assert_eq!(page.shown(), 2);
        assert_eq!(page.read(0, 2).collect::<Vec<_>>(), [&[1][..], &[2][..]]);
        assert!(!pen.reset(Vec::clear));
        pen.push_with(|slot| slot.push(3));
        assert_eq!(page.read(2, 1).collect::<Vec<_>>(), [&[3][..]]);
        drop(page);
        // Not cleaned: the next push finds what was there.
        assert!(pen.reset(|_| ()));
        pen.push_with(|slot| slot.push(4));
        assert_eq!((pen.page().shown(), pen.page().read(0, 1).next()), (1, Some(&vec![1, 4])));
        assert!(pen.reset(Vec::clear));
        pen.push_with(|slot| slot.push(5));
        assert_eq!(pen.page().read(0, 1).next(), Some(&vec![5]));
    }

    #[test]
    #[should_panic(expected = "not shown")]
    fn what_is_not_shown_is_not_read() {
        let mut pen = Pen::<u32>::new(3);
        pen.push_with(|slot| *slot = 1);
        let _ = pen.page().read(0, 2).count();
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn a_full_page_is_not_written() {
        let mut pen = Pen::<u32>::new(1);
        pen.push_with(|slot| *slot = 1);
        pen.push_with(|slot| *slot = 2);
    }
}

/// Readers beside a pen that pushes, and resets when nobody seems to read.
#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | the slots that a hub's ring is made of | a page is reset while somebody reads | two threads touch a slot |

    use super::*;
    use loom::thread;

    fn model(resets: fn(&mut Pen<u32>) -> bool) {
        loom::model(move || {
            let mut pen = Pen::<u32>::new(2);
            pen.push_with(|slot| *slot = 1);
            let page = Arc::clone(pen.page());
            let reader = thread::spawn(move || {
                let shown = page.shown();
                let sum: u32 = page.read(0, shown).sum();
                assert_eq!(sum, [0, 1, 3][shown]);
            });
            pen.push_with(|slot| *slot = 2);
            if resets(&mut pen) {
                pen.push_with(|slot| *slot = 7);
                assert_eq!(pen.page().read(0, 1).sum::<u32>(), 7);
            }
            reader.join().unwrap();
        });
    }

    #[test]
    fn nobody_reads_what_is_written() {
        model(|pen| pen.reset(|slot| *slot = 0));
    }

    #[test]
    #[should_panic]
    fn a_reset_beside_readers_is_seen() {
        model(|pen| {
            pen.page.shown.store(0, Relaxed);
            pen.count = 0;
            true
        });
    }
}
