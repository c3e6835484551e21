//! A page: slots that are written one after the other, and read by many where they lie.
//!
//! ```text
//!   slots   [ ■ ■ ■ ■ ■ · · · ]
//!                       ▲
//!                    written: goes up with each push, and back only when nobody reads
//! ```
//!
//! # States of a slot
//!
//! | a slot is | whose it is | what is in it |
//! |---|---|---|
//! | free, from `written` on | the pen's alone | the default, or what was written before the last reset |
//! | written | everybody's, to read | what was written |
//!
//! The pen writes over what a free slot has in it, so a value that is much like the one before need not be made
//! anew.
//!
//! # Invariants
//!
//! 1. A page has one [`Pen`], which writes and resets by `&mut`. So one thread at a time touches free slots.
//! 2. A slot is written before `written` passes it (Release), and read after that was seen (Acquire).
//! 3. A page is reset while the pen has the only reference to it. Whoever had another let go of it with Release,
//!    and that it is gone is seen with Acquire: so its reads are over.
#![allow(unsafe_code, reason = "slots are handed from the pen to readers by a count")]

use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{Arc, UnsafeCell};

/// How far ahead of a push a slot is asked for: its lines are with those who have read what was in it.
const AHEAD: usize = 2;
const LINE: usize = 64;

/// Asks for the lines of a slot in a state that can be written.
#[inline(always)]
fn prefetch<T>(slot: &UnsafeCell<T>) {
    for offset in (0..size_of::<T>()).step_by(LINE) {
        let line = core::ptr::from_ref(slot).cast::<u8>().wrapping_add(offset);
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
        // SAFETY: a hint: it changes neither memory nor flags, and cannot fault.
        unsafe {
            core::arch::asm!(
                "prefetchw [{}]",
                in(reg) line,
                options(nostack, preserves_flags, readonly)
            );
        }
        #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
        let _ = line;
    }
}

/// See the head of the file.
pub(crate) struct Page<T> {
    written: AtomicUsize,
    slots: Box<[UnsafeCell<T>]>,
}

// SAFETY: threads that share a page share the `T`s of written slots, hence `T: Sync`, and the pen may write
// and drop those of free slots on another thread than the one that made them, hence `T: Send`. No slot is
// both (invariants 1 to 3).
unsafe impl<T: Send + Sync> Sync for Page<T> {}

impl<T> Page<T> {
    /// How many slots are written.
    #[inline]
    pub(crate) fn written(&self) -> usize {
        // Acquire: pairs with the Release in `push`.
        self.written.load(Acquire)
    }

    /// So many written slots, from this one on.
    ///
    /// # Panics
    /// If they are not all written.
    #[inline]
    pub(crate) fn read(&self, from: usize, count: usize) -> Written<'_, T> {
        assert!(from + count <= self.written(), "slots that are not written");
        Written(self.slots[from..from + count].iter())
    }
}

/// Written slots of a page, one after the other.
pub(crate) struct Written<'a, T>(core::slice::Iter<'a, UnsafeCell<T>>);

impl<'a, T> Iterator for Written<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        // SAFETY: a written slot, which nobody writes while there is this reference to its page.
        self.0.next().map(|slot| slot.with(|value| unsafe { &*value }))
    }
}

/// The one that writes a page.
pub(crate) struct Pen<T> {
    page: Arc<Page<T>>,
}

impl<T: Default> Pen<T> {
    /// A page of so many slots, all free.
    pub(crate) fn new(slots: usize) -> Self {
        let slots = (0..slots).map(|_| UnsafeCell::new(T::default())).collect();
        Self { page: Arc::new(Page { written: AtomicUsize::new(0), slots }) }
    }
}

impl<T> Pen<T> {
    pub(crate) fn page(&self) -> &Arc<Page<T>> {
        &self.page
    }

    /// Has the next free slot written.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut T)) {
        // Relaxed: this pen alone changes it.
        let index = self.page.written.load(Relaxed);
        // SAFETY: a free slot, which is the pen's; nobody else has the pen while it is borrowed.
        self.page.slots[index].with_mut(|value| write(unsafe { &mut *value }));
        // Release: pairs with the Acquire in `written`.
        self.page.written.store(index + 1, Release);
        if let Some(slot) = self.page.slots.get(index + AHEAD) {
            prefetch(slot);
        }
    }

    /// Frees all slots, each of which is `clean`ed first. False: somebody reads still, and nothing was done.
    pub(crate) fn reset(&mut self, mut clean: impl FnMut(&mut T)) -> bool {
        let Some(page) = Arc::get_mut(&mut self.page) else { return false };
        let written = page.written.load(Relaxed);
        for slot in &mut page.slots[..written] {
            // SAFETY: nobody else has a reference to the page.
            slot.with_mut(|value| clean(unsafe { &mut *value }));
        }
        page.written.store(0, Relaxed);
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_written_over_when_nobody_reads() {
        let mut pen = Pen::<Vec<u32>>::new(3);
        (1..=2).for_each(|number| pen.push(|slot| slot.push(number)));
        let page = Arc::clone(pen.page());
        assert_eq!(page.written(), 2);
        assert_eq!(page.read(0, 2).collect::<Vec<_>>(), [&[1][..], &[2][..]]);
        assert!(!pen.reset(Vec::clear));
        pen.push(|slot| slot.push(3));
        assert_eq!(page.read(2, 1).collect::<Vec<_>>(), [&[3][..]]);
        drop(page);
        // Not cleaned: the next push finds what was there.
        assert!(pen.reset(|_| ()));
        pen.push(|slot| slot.push(4));
        assert_eq!((pen.page().written(), pen.page().read(0, 1).next()), (1, Some(&vec![1, 4])));
        assert!(pen.reset(Vec::clear));
        pen.push(|slot| slot.push(5));
        assert_eq!(pen.page().read(0, 1).next(), Some(&vec![5]));
    }

    #[test]
    #[should_panic(expected = "not written")]
    fn a_free_slot_is_not_read() {
        let pen = Pen::<u32>::new(3);
        let _ = pen.page().read(0, 1).count();
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn a_full_page_is_not_written() {
        let mut pen = Pen::<u32>::new(1);
        pen.push(|slot| *slot = 1);
        pen.push(|slot| *slot = 2);
    }
}

/// Readers beside a pen that pushes, and resets when nobody seems to read.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;

    fn model(resets: fn(&mut Pen<u32>) -> bool) {
        loom::model(move || {
            let mut pen = Pen::<u32>::new(2);
            pen.push(|slot| *slot = 1);
            let page = Arc::clone(pen.page());
            let reader = thread::spawn(move || {
                let written = page.written();
                let sum: u32 = page.read(0, written).sum();
                assert_eq!(sum, [0, 1, 3][written]);
            });
            pen.push(|slot| *slot = 2);
            if resets(&mut pen) {
                pen.push(|slot| *slot = 7);
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
            pen.page.written.store(0, Relaxed);
            true
        });
    }
}
