//! `Task<T>`: the handle of submitted work, and the recycled cell that both ends share.
//!
//! # The cell
//!
//! A cell has two owners: the *completer*, which travels with the closure, and the *handle*. Each
//! leaves once, the later one frees the cell. All of it is one word that threads can sleep on:
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
//! the freeing side sees what the other did last. A waiter sets `waiting` before it sleeps by a
//! read-modify-write of the same word, so no wake-up can be lost and no barrier is needed.
#![allow(unsafe_code, reason = "the result is handed over through a word")]

use crate::error::{Error, Result};
use crate::sync::UnsafeCell;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sys::fork::ForkGuard;
use crate::sys::futex::Futex;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use super::context;
use super::slab::{Entry, Slab};

const PHASE: u32 = 0b11;
const PENDING: u32 = 0;
const RUNNING: u32 = 1;
const CANCELLED: u32 = 2;
const FINISHED: u32 = 1 << 2;
const DETACHED: u32 = 1 << 3;
const WAITING: u32 = 1 << 4;
const WAKER: u32 = 1 << 5;

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
    word: Futex,
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
            // SAFETY: nobody reads before `finished` (invariant 1); size and alignment are checked.
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
    unsafe fn take<T>(&self) -> Outcome<T> {
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
    fn replace_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        let mut place = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::replace(&mut *place, waker)
    }

    fn take_waker(&self) -> Option<Waker> {
        self.replace_waker(None)
    }

    fn is_finished(&self) -> bool {
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
    table: NonNull<TaskTable>,
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
        // worst wake the next tenant for nothing: a sleeper looks again, a future is polled again
        // and puts its waker back.
        if before & WAITING != 0 {
            cell.word.wake(i32::MAX);
        }
        if before & WAKER != 0
            && let Some(waker) = cell.take_waker()
        {
            // This may run while a panic unwinds, and another one would end the process.
            let _panicked = context::contain(|| waker.wake());
        }
    }
}

impl<T> Drop for Completer<T> {
    fn drop(&mut self) {
        self.complete(Err(Failure::Cancelled));
    }
}

/// The result of submitted work. It can be waited for by any thread, or awaited.
///
/// Dropping it lets the task run on unobserved; its result is dropped where it ends.
///
/// ```
/// use paceline::Pool;
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let squares = [1, 2, 3].map(|n| pool.submit(move || n * n));
/// let mut sum = 0;
/// for square in squares {
///     sum += square?.wait()?; // a task that panics is an `Error::Panicked` here
/// }
/// assert_eq!(sum, 14);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping a Task detaches it; use `post` for work whose result nobody needs"]
pub struct Task<T> {
    cell: NonNull<TaskCell>,
    table: Arc<TaskTable>,
    taken: bool,
    result: PhantomData<T>,
}

// SAFETY: the result moves to the thread that takes it, so `T: Send`; everything else is atomic.
unsafe impl<T: Send> Send for Task<T> {}
// SAFETY: `&Task` gives no access to the result.
unsafe impl<T: Send> Sync for Task<T> {}

impl<T> Task<T> {
    fn cell(&self) -> &TaskCell {
        // SAFETY: cells are type-stable and `table` keeps them alive.
        unsafe { self.cell.as_ref() }
    }

    /// Whether the task has ended, in whatever way. Any thread, never blocks.
    pub fn is_done(&self) -> bool {
        self.cell().is_finished()
    }

    /// Asks that the task should not begin. True: it never will, and waiting for it gives
    /// [`Error::Cancelled`] (once a thread has come across it in the queue). False: it runs already
    /// or has ended. Any thread; O(1), never blocks.
    pub fn cancel(&self) -> bool {
        if self.table.fork.is_child() {
            return false;
        }
        let word = &self.cell().word;
        let mut now = word.load(Relaxed);
        loop {
            if now & FINISHED != 0 || now & PHASE == RUNNING {
                return false;
            }
            if now & PHASE == CANCELLED {
                return true;
            }
            match word.compare_exchange_weak(now, now | CANCELLED, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
    }

    /// Waits until the task has ended and returns its value.
    ///
    /// # Errors
    /// [`Error::Panicked`] with the message, [`Error::Cancelled`], [`Error::Forked`], and on a thread
    /// of the task's own pool [`Error::WouldDeadlock`] when all others there are waiting already. A
    /// pool thread hands leadership on before it blocks.
    pub fn wait(mut self) -> Result<T> {
        self.wait_until(None)
    }

    /// As [`wait`](Self::wait), for at most `timeout`.
    ///
    /// # Errors
    /// [`Error::TimedOut`] as well; the task can be waited for again.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<T> {
        self.wait_until(Some(timeout))
    }

    fn wait_until(&mut self, timeout: Option<Duration>) -> Result<T> {
        if self.taken {
            return Err(Error::Stale { what: "task result" });
        }
        if !self.is_done() && !self.block(timeout)? {
            return Err(Error::TimedOut);
        }
        self.take()
    }

    /// Sleeps until finished, having told the pool whose thread this is.
    pub(crate) fn block(&self, timeout: Option<Duration>) -> Result<bool> {
        if self.table.fork.is_child() {
            return Err(Error::Forked);
        }
        let is_own = |shared: &super::Shared| Arc::ptr_eq(&shared.cells, &self.table);
        // Inside a pool that stops, what has not begun never will; and whoever is to come across it
        // may be this very thread.
        if context::stops_around_us(is_own) && self.cancel() {
            return Err(Error::Cancelled);
        }
        context::blocking(is_own, || self.sleep(timeout))?
    }

    /// Sleeps until finished. False: the time ran out.
    fn sleep(&self, timeout: Option<Duration>) -> Result<bool> {
        let word = &self.cell().word;
        let deadline = super::Deadline::after(timeout);
        loop {
            // Acquire: pairs with the Release in `complete`.
            let now = word.fetch_or(WAITING, Acquire) | WAITING;
            if now & FINISHED != 0 {
                return Ok(true);
            }
            if deadline.is_over() {
                return Ok(false);
            }
            word.wait(now, deadline.left());
        }
    }

    fn take(&mut self) -> Result<T> {
        self.taken = true;
        // SAFETY: `finished` was seen with Acquire, and `taken` makes this the only time.
        match unsafe { self.cell().take::<T>() } {
            Ok(value) => Ok(value),
            Err(Failure::Cancelled) => Err(Error::Cancelled),
            Err(Failure::Panicked(message)) => Err(Error::Panicked { message: message.into() }),
        }
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.taken {
            return Poll::Ready(Err(Error::Stale { what: "task result" }));
        }
        if !self.is_done() {
            if self.table.fork.is_child() {
                return Poll::Ready(Err(Error::Forked));
            }
            drop(self.cell().replace_waker(Some(cx.waker().clone())));
            // Release: the waker is in place. Acquire: pairs with `complete`.
            if self.cell().word.fetch_or(WAKER, AcqRel) & FINISHED == 0 {
                return Poll::Pending;
            }
        }
        Poll::Ready(self.take())
    }
}

impl<T> Unpin for Task<T> {}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if self.table.fork.is_child() {
            // The waker's lock may be held for ever, and nothing here is used again.
            return;
        }
        let cell = self.cell();
        // Relaxed: this side has set it. Nobody waits any more; the next tenant must not keep it.
        let waker = (cell.word.load(Relaxed) & WAKER != 0).then(|| cell.take_waker());
        // Release: this side is done with the cell. Acquire: pairs with `finished`.
        let before = cell.word.fetch_or(DETACHED, AcqRel);
        if before & FINISHED == 0 {
            return drop(waker);
        }
        // SAFETY: `finished` was seen with Acquire and the result is still there.
        let unwanted = (!self.taken).then(|| unsafe { cell.take::<T>() });
        self.table.free(cell);
        // Last, because destructors may panic.
        drop((unwanted, waker));
    }
}

impl<T> core::fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Task").field("done", &self.is_done()).finish_non_exhaustive()
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
pub(crate) struct TaskTable {
    cells: Slab<TaskCell>,
    fork: ForkGuard,
}

impl TaskTable {
    pub(crate) fn new(limit: usize, fork: ForkGuard) -> Self {
        Self { cells: Slab::new(limit), fork }
    }

    /// A fresh pair of ends. None: every cell is in use.
    pub(crate) fn pair<T>(self: &Arc<Self>) -> Option<(Completer<T>, Task<T>)> {
        let cell = &self.cells[self.cells.take()?];
        // Relaxed: the ends reach other threads through queues, which order it.
        cell.word.store(PENDING, Relaxed);
        let cell = NonNull::from(cell);
        let completer = Completer { cell, table: NonNull::from(&**self), result: PhantomData };
        let task = Task { cell, table: Arc::clone(self), taken: false, result: PhantomData };
        Some((completer, task))
    }

    fn free(&self, cell: &TaskCell) {
        // Relaxed: both ends are done with the cell. A future that nobody polls any more must not
        // live on in a free cell.
        let waker = (cell.word.load(Relaxed) & WAKER != 0).then(|| cell.take_waker());
        self.cells.give_back(cell.index);
        // Last, because its destructor may panic; contained, because this may run while one unwinds.
        let _panicked = context::contain(|| drop(waker));
    }
}
