//! What the calling thread is doing, as far as layers below the pool must know it.

use core::cell::Cell;

thread_local! {
    /// The address of the pool whose member this thread is now, or 0.
    static POOL: Cell<usize> = const { Cell::new(0) };
    /// Grows with each task that this thread has run as a member, and with whatever else it does.
    static LAP: Cell<u64> = const { Cell::new(0) };
}

/// Makes this thread a member of the pool at that address, or of none: 0.
pub(crate) fn set_pool(address: usize) {
    POOL.set(address);
}

/// The address of the pool whose member this thread is, or 0. It is only compared.
#[inline]
pub(crate) fn pool() -> usize {
    POOL.try_with(Cell::get).unwrap_or(0)
}

/// Whether this thread is a member of any pool.
#[inline]
pub(crate) fn is_member() -> bool {
    pool() != 0
}

/// The thread does something else than before: the next task of a claim begins, or that task has ended.
#[inline]
pub(crate) fn next_lap() {
    LAP.set(LAP.get() + 1);
}

/// The number of what the thread is doing: two calls with the same answer are of one task.
#[inline]
pub(crate) fn lap() -> u64 {
    LAP.try_with(Cell::get).unwrap_or(0)
}
