//! `Task<T>`: the handle of submitted work.
#![allow(unsafe_code, reason = "the result is handed over through a word")]

use super::cell::{
    CANCELLED, Cells, Completer, DETACHED, FINISHED, Failure, PHASE, RUNNING, TaskCell, WAITING,
    WAKER,
};
use crate::error::{Error, Result};
use crate::pool::context;
use crate::pool::deadline::Deadline;
use crate::pool::host::wait_for;
use crate::pool::shared::Shared;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

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
#[must_use = "dropping a Task detaches it; use `post` for work whose result is not needed"]
pub struct Task<T> {
    cell: NonNull<TaskCell>,
    table: Arc<Cells>,
    taken: bool,
    result: PhantomData<T>,
}

// SAFETY: the result moves to the thread that takes it, so `T: Send`; everything else is atomic.
unsafe impl<T: Send> Send for Task<T> {}
// SAFETY: `&Task` gives no access to the result.
unsafe impl<T: Send> Sync for Task<T> {}

impl<T> Task<T> {
    /// A fresh pair of ends. None: every cell is in use.
    pub(crate) fn pair(table: &Arc<Cells>) -> Option<(Completer<T>, Self)> {
        let (completer, cell) = table.take()?;
        let task = Self { cell, table: Arc::clone(table), taken: false, result: PhantomData };
        Some((completer, task))
    }

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
    /// pool thread hands leadership on before it blocks. In a pool without threads the caller takes part meanwhile, as in
    /// [`Pool::join`](crate::Pool::join).
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
        let is_over = self.is_done()
            || match self.table.hosted() {
                Some(shared) => wait_for(&shared, timeout, |time| self.block(time))?,
                None => self.block(timeout)?,
            };
        if is_over { self.take() } else { Err(Error::TimedOut) }
    }

    /// Waits until finished, having told the pool whose thread this is.
    pub(crate) fn block(&self, timeout: Option<Duration>) -> Result<bool> {
        if self.table.fork.is_child() {
            return Err(Error::Forked);
        }
        let is_own = |shared: &Shared| Arc::ptr_eq(&shared.cells, &self.table);
        // Inside a pool that stops, what has not begun never will; and whoever is to come across it
        // may be this very thread.
        if context::stops_around_us(is_own) && self.cancel() {
            return Err(Error::Cancelled);
        }
        context::blocking(is_own, || self.park(timeout))?
    }

    /// Waits until finished. False: the time ran out.
    fn park(&self, timeout: Option<Duration>) -> Result<bool> {
        let word = &self.cell().word;
        let deadline = Deadline::after(timeout);
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
