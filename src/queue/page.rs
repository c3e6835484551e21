//! A page: slots that are written one after the other, and read by many where they lie.
//!
//! ```text
//!   slots   [ ■ ■ ■ ■ □ □ · · ]
//!                     ▲   ▲
//!                 shown   count: goes up with each push, and back only when nobody reads
//! ```
//!
//! # States of a slot
//!
//! | a slot is | whose it is | what is in it |
//! |---|---|---|
//! | free, from `count` on | the pen's alone | the default, or what was written before the last reset |
//! | written, from `shown` on | the pen's alone | what was written |
//! | shown | everybody's, to read | what was written |
//!
//! The pen writes over what a free slot has in it, so a value that is much like the one before need not be made
//! anew.
//!
//! Each look at `shown` moves its line to the reader, and the next change moves it back, for which the pen's thread
//! waits. So slots are shown several at a time: when there are [`SHOWN`], when a reader has [asked](Page::ask), and
//! when whoever has the pen says so, as for a reader that comes to it. A reader that looks for what is not shown must
//! do one of the two, or never see it.
//!
//! # Whose lines they are
//!
//! A line that somebody has read is with both of them, and the pen's next write to it waits until the reader's copy is
//! gone; the next locked instruction waits for that write, and the processor has room for no more than the stores of
//! some messages until then. To ask ahead for a line to be written is no help while it is here to be read: the prefetch is
//! answered with nothing (AMD EPYC, family 25). So one reader *writes* what it reads: one byte of each line that means
//! nothing. The line is then that reader's alone, for the one transfer that reading it takes anyway, and the pen, which
//! has no copy, asks for it ahead with success. One is enough: if several do, they take it from each other.
//!
//! # Invariants
//!
//! 1. A page has one [`Pen`], which writes, shows and resets by `&mut`. So one thread at a time touches what is not shown.
//! 2. A slot is written before `shown` passes it (Release), and read after that was seen (Acquire).
//! 3. A page is reset while the pen has the only reference to it. Whoever had another let go of it with Release,
//!    and that it is gone is seen with Acquire: so its reads are over.
#![allow(unsafe_code, reason = "slots are handed from the pen to readers by a count")]

use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicUsize};
use crate::sync::{Arc, UnsafeCell};

/// How far ahead of a push a slot is asked for: its lines are with those who have read what was in it, who may be on a
/// processor from which a line takes as long as some pushes.
const AHEAD: usize = 10;
/// So many slots are shown at once, if nobody asks.
pub(crate) const SHOWN: usize = if cfg!(loom) { 2 } else { 32 };
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
    shown: AtomicUsize,
    /// Somebody waits for the next.
    asked: AtomicBool,
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

    /// Has the next slot that is written shown at once. A hint: the pen may have written one meanwhile.
    #[inline]
    pub(crate) fn ask(&self) {
        if !self.asked.load(Relaxed) {
            self.asked.store(true, Relaxed);
        }
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
    /// How many slots are written, whether that is shown or not.
    count: usize,
}

impl<T: Default> Pen<T> {
    /// A page of so many slots, all free.
    pub(crate) fn new(slots: usize) -> Self {
        let slots = (0..slots).map(|_| UnsafeCell::new(T::default())).collect();
        let (shown, asked) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { page: Arc::new(Page { shown, asked, slots }), count: 0 }
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

    /// The next free slot is written.
    #[inline(always)] // As `place`.
    pub(crate) fn push(&mut self) {
        self.count += 1;
        debug_assert!(self.count <= self.page.slots.len());
        if self.count.is_multiple_of(SHOWN) || self.page.asked.load(Relaxed) {
            self.show();
        }
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

    /// Shows readers all that is written.
    #[inline]
    pub(crate) fn show(&mut self) {
        // Its line is looked at by others, so it is not changed for nothing.
        if self.page.shown.load(Relaxed) != self.count {
            // Release: pairs with the Acquire in `shown`.
            self.page.shown.store(self.count, Release);
        }
        if self.page.asked.load(Relaxed) {
            self.page.asked.store(false, Relaxed);
        }
    }

    /// Frees all slots, each of which is `clean`ed first. False: somebody reads still, and nothing was done.
    pub(crate) fn reset(&mut self, mut clean: impl FnMut(&mut T)) -> bool {
        let Some(page) = Arc::get_mut(&mut self.page) else { return false };
        for slot in &mut page.slots[..self.count] {
            // SAFETY: nobody else has a reference to the page.
            slot.with_mut(|value| clean(unsafe { &mut *value }));
        }
        page.shown.store(0, Relaxed);
        // By somebody who reads no more.
        page.asked.store(false, Relaxed);
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
        pen.show();
        assert_eq!(page.shown(), 2);
        assert_eq!(page.read(0, 2).collect::<Vec<_>>(), [&[1][..], &[2][..]]);
        assert!(!pen.reset(Vec::clear));
        page.ask();
        pen.push_with(|slot| slot.push(3));
        assert_eq!(page.read(2, 1).collect::<Vec<_>>(), [&[3][..]]);
        drop(page);
        // Not cleaned: the next push finds what was there.
        assert!(pen.reset(|_| ()));
        pen.push_with(|slot| slot.push(4));
        pen.show();
        assert_eq!((pen.page().shown(), pen.page().read(0, 1).next()), (1, Some(&vec![1, 4])));
        assert!(pen.reset(Vec::clear));
        pen.push_with(|slot| slot.push(5));
        pen.show();
        assert_eq!(pen.page().read(0, 1).next(), Some(&vec![5]));
    }

    #[test]
    #[should_panic(expected = "not shown")]
    fn what_is_not_shown_is_not_read() {
        let mut pen = Pen::<u32>::new(3);
        pen.push_with(|slot| *slot = 1);
        let _ = pen.page().read(0, 1).count();
    }

    #[test]
    fn so_many_are_shown_or_what_was_asked_for() {
        let mut pen = Pen::<usize>::new(3 * SHOWN);
        let mut shown = || {
            pen.push_with(|slot| *slot += 1);
            pen.page().shown()
        };
        let seen: Vec<usize> = (0..2 * SHOWN).map(|_| shown()).collect();
        assert!(
            seen.iter().enumerate().all(|(index, &shown)| shown == (index + 1) / SHOWN * SHOWN)
        );
        pen.page().ask();
        for _ in 0..2 {
            pen.push_with(|slot| *slot += 1);
            assert_eq!(pen.page().shown(), 2 * SHOWN + 1, "the next one, and no more");
        }
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
                page.ask();
                let shown = page.shown();
                let sum: u32 = page.read(0, shown).sum();
                assert_eq!(sum, [0, 1, 3][shown]);
            });
            pen.show();
            pen.push_with(|slot| *slot = 2);
            if resets(&mut pen) {
                pen.push_with(|slot| *slot = 7);
                pen.show();
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
