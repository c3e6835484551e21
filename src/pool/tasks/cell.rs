//! The recycled cell that both ends of a submitted task share: the completer, and the handle (`task.rs`).
//!
//! # The cell
//!
//! A cell has two owners: the *completer*, which travels with the closure, and the *handle*. Each
//! leaves once, the later one frees the cell. All of it is one word that threads can wait on:
//!
//! ```text
//! { phase: 2, finished: 1, detached: 1, waiting: 1, waker: 1 }
//! ```
//!
//! | phase | set by | then |
//! |---|---|---|
//! | PENDING | submit | |
//! | RUNNING | the completer, by CAS from PENDING | `cancel` comes too late |
//! | CANCELLED | `cancel`, by CAS from PENDING | the completer drops the closure unrun |
//!
//! ```text
//!   completer:  PENDING ─► RUNNING ─► write result ─► finished ┐   whoever sets the second of
//!   handle:     … wait, take the result …            detached ┘   these two frees the cell
//! ```
//!
//! # Invariants
//!
//! 1. The result is written by the completer before `finished` and read by the handle after it.
//! 2. Exactly one of the two sees the other's bit when it sets its own, and frees the cell.
//! 3. A closure runs at most once, and never after a `cancel` that returned true.
//!
//! # Orderings
//!
//! `finished` is set with Release and read with Acquire (the result). `detached` likewise, so that
//! the freeing side sees what the other did last. A waiter sets `waiting` before it waits by a
//! read-modify-write of the same word, so no wake-up can be lost and no barrier is needed.
#![allow(unsafe_code, reason = "the result is handed over through a word")]

use crate::contain::contain;
use crate::error::NoRoom;
use crate::pool::shared::Shared;
use crate::pool::slots::{Entry, Slab};
use crate::sync::UnsafeCell;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sys::fork::ForkGuard;
use crate::sys::futex::Futex;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use core::task::Waker;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

pub(super) const PHASE: u32 = 0b11;
pub(super) const PENDING: u32 = 0;
pub(super) const RUNNING: u32 = 1;
pub(super) const CANCELLED: u32 = 2;
pub(super) const FINISHED: u32 = 1 << 2;
pub(super) const DETACHED: u32 = 1 << 3;
pub(super) const WAITING: u32 = 1 << 4;
pub(super) const WAKER: u32 = 1 << 5;

/// How a task ended.
pub(crate) type Outcome<T> = core::result::Result<T, Failure>;

/// Why a task has no value.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It panicked, with this message.
    Panicked(Box<str>),
    /// It was cancelled before it began, or the pool stopped.
    Cancelled,
}

/// Room for a small result; a larger one is boxed and its pointer lies here.
const INLINE: usize = 48;

#[repr(C, align(16))]
struct Room(MaybeUninit<[u8; INLINE]>);

/// One recycled cell.
pub(crate) struct TaskCell {
    pub(super) word: Futex,
    index: u32,
    next: AtomicU32,
    waker: Mutex<Option<Waker>>,
    result: UnsafeCell<Room>,
}

// SAFETY: the result is touched by one owner at a time, as `word` says (invariant 1), and only
// `T: Send` results are put into it.
unsafe impl Sync for TaskCell {}
// SAFETY: as above.
unsafe impl Send for TaskCell {}

impl TaskCell {
    fn new(index: u32) -> Self {
        Self {
            word: Futex::new(PENDING),
            index,
            next: AtomicU32::new(0),
            waker: Mutex::new(None),
            result: UnsafeCell::new(Room(MaybeUninit::uninit())),
        }
    }

    /// # Safety
    /// The caller is the completer, and has not set `finished`.
    unsafe fn write<T>(&self, outcome: Outcome<T>) {
        self.result.with_mut(|room| {
            // SAFETY: no thread reads before `finished` (invariant 1); size and alignment are checked.
            unsafe {
                if fits::<T>() {
                    room.cast::<Outcome<T>>().write(outcome);
                } else {
                    room.cast::<Box<Outcome<T>>>().write(Box::new(outcome));
                }
            }
        });
    }

    /// # Safety
    /// `finished` has been seen with Acquire, `T` is what was written, and it is taken only once.
    pub(super) unsafe fn take<T>(&self) -> Outcome<T> {
        self.result.with_mut(|room| {
            // SAFETY: as the caller promises.
            unsafe {
                if fits::<T>() {
                    room.cast::<Outcome<T>>().read()
                } else {
                    *room.cast::<Box<Outcome<T>>>().read()
                }
            }
        })
    }

    /// Puts a waker in place of the one before. That is the caller's to drop: code of the user must
    /// not run under the lock.
    pub(super) fn replace_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        let mut place = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::replace(&mut *place, waker)
    }

    pub(super) fn take_waker(&self) -> Option<Waker> {
        self.replace_waker(None)
    }

    pub(super) fn is_finished(&self) -> bool {
        // Acquire: pairs with the Release in `finish`.
        self.word.load(Acquire) & FINISHED != 0
    }
}

const fn fits<T>() -> bool {
    size_of::<Outcome<T>>() <= size_of::<Room>() && align_of::<Outcome<T>>() <= align_of::<Room>()
}

/// The end that travels with the closure. Dropped without `finish`, it reports "cancelled".
pub(crate) struct Completer<T> {
    cell: NonNull<TaskCell>,
    table: NonNull<Cells>,
    result: PhantomData<fn(T)>,
}

// SAFETY: both pointers lead into the table, which is Sync and outlives every queue that can hold a
// completer (the pool drops its queues first, and running threads hold the pool).
unsafe impl<T: Send> Send for Completer<T> {}

impl<T> Completer<T> {
    fn cell(&self) -> &TaskCell {
        // SAFETY: cells are type-stable and the table outlives the completer.
        unsafe { self.cell.as_ref() }
    }

    /// PENDING → RUNNING. False: it was cancelled and must not run.
    pub(crate) fn begin(&self) -> bool {
        let word = &self.cell().word;
        let mut now = word.load(Relaxed);
        while now & PHASE == PENDING {
            match word.compare_exchange_weak(now, now | RUNNING, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    pub(crate) fn finish(self, outcome: Outcome<T>) {
        ManuallyDrop::new(self).complete(outcome);
    }

    fn complete(&self, outcome: Outcome<T>) {
        let cell = self.cell();
        // SAFETY: this is the completer, and `finished` is set only below.
        unsafe { cell.write(outcome) };
        // Release: pairs with `is_finished`. Acquire: pairs with `detached`.
        let before = cell.word.fetch_or(FINISHED, AcqRel);
        if before & DETACHED != 0 {
            // SAFETY: the handle has left without taking the result (invariant 2).
            let unwanted = unsafe { cell.take::<T>() };
            // SAFETY: the table outlives the completer.
            unsafe { self.table.as_ref() }.free(cell);
            // Last, because its destructor may panic.
            return drop(unwanted);
        }
        // The handle may free the cell from here on. Cells are type-stable, so what follows can at
        // worst wake the next tenant for nothing: a waiter looks again, a future is polled again
        // and puts its waker back.
        if before & WAITING != 0 {
            cell.word.wake(i32::MAX);
        }
        if before & WAKER != 0
            && let Some(waker) = cell.take_waker()
        {
            // This may run while a panic unwinds, and another one would end the process.
            let _panicked = contain(|| waker.wake());
        }
    }
}

impl<T> Drop for Completer<T> {
    fn drop(&mut self) {
        self.complete(Err(Failure::Cancelled));
    }
}

impl Entry for TaskCell {
    const CHUNK: usize = if cfg!(loom) { 2 } else { 256 };

    fn new(index: u32) -> Self {
        Self::new(index)
    }

    fn link(&self) -> &AtomicU32 {
        &self.next
    }
}

/// All cells of a pool. They are recycled, so a submission allocates only while the number of
/// outstanding tasks reaches a new height.
pub(crate) struct Cells {
    cells: Slab<TaskCell>,
    /// The pool, if it has no threads: who waits for a task takes part.
    hosted: OnceLock<Weak<Shared>>,
    pub(super) fork: ForkGuard,
}

impl Cells {
    pub(crate) fn new(limit: usize, fork: ForkGuard) -> Self {
        Self { cells: Slab::new(limit), hosted: OnceLock::new(), fork }
    }

    /// The pool has no threads of its own.
    pub(crate) fn are_of_hosts(&self, shared: &Arc<Shared>) {
        let _once = self.hosted.set(Arc::downgrade(shared));
    }

    /// The pool, if it has no threads of its own and has not been freed.
    pub(super) fn hosted(&self) -> Option<Arc<Shared>> {
        self.hosted.get()?.upgrade()
    }

    /// That every cell is in use.
    #[cold]
    pub(super) fn no_room(&self) -> NoRoom {
        let helps = "to wait for tasks that were submitted, or to post what nobody waits for";
        NoRoom::new("the place for results of tasks", self.cells.limit(), helps)
    }

    /// A fresh cell with the end that completes it. None: every cell is in use.
    pub(super) fn take<T>(&self) -> Option<(Completer<T>, NonNull<TaskCell>)> {
        let cell = &self.cells[self.cells.take()?];
        // Relaxed: the ends reach other threads through queues, which order it.
        cell.word.store(PENDING, Relaxed);
        let cell = NonNull::from(cell);
        let completer = Completer { cell, table: NonNull::from(self), result: PhantomData };
        Some((completer, cell))
    }

    pub(super) fn free(&self, cell: &TaskCell) {
        // Relaxed: both ends are done with the cell. A future that is polled no more must not
        // live on in a free cell.
        let waker = (cell.word.load(Relaxed) & WAKER != 0).then(|| cell.take_waker());
        self.cells.give_back(cell.index);
        // Last, because its destructor may panic; contained, because this may run while one unwinds.
        let _panicked = contain(|| drop(waker));
    }
}
