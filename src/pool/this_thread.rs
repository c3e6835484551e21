//! What a thread knows of itself without its pool: whose member it is, at which place, and how its last task ended.
//!
//! A pool is named by the address of what its members share, which is only compared.

use crate::thread_state::{self, is_member};
use core::cell::Cell;

/// How the task that just ran ended, told by the task's own wrapper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Completed,
    Failed,
    Cancelled,
}

thread_local! {
    static MEMBER: Cell<usize> = const { Cell::new(0) };
    /// The address of the pool whose host this thread was last, or 0.
    static HOST: Cell<usize> = const { Cell::new(0) };
    /// The address of the pool that this thread sweeps up, or 0.
    static SWEEPS: Cell<usize> = const { Cell::new(0) };
    static OUTCOME: Cell<Outcome> = const { Cell::new(Outcome::Completed) };
}

/// From now on this thread is a member of `pool`, with this number.
pub(super) fn enter(pool: usize, member: usize) {
    thread_state::set_pool(pool);
    MEMBER.set(member);
}

/// This thread is a member no more.
pub(super) fn leave() {
    thread_state::set_pool(0);
}

/// Whether this thread is a member of `pool`.
#[inline]
pub(super) fn is_inside(pool: usize) -> bool {
    thread_state::pool() == pool
}

/// This thread's number in `pool`, if it is a member.
#[inline]
pub(super) fn member_of(pool: usize) -> Option<usize> {
    is_inside(pool).then(|| MEMBER.get())
}

/// This thread's number in the pool whose member it is.
#[inline]
pub(crate) fn member_here() -> Option<usize> {
    is_member().then(|| MEMBER.get())
}

/// This thread sweeps `pool` up until the guard is dropped.
pub(super) fn sweep(pool: usize) -> impl Drop + use<> {
    struct Before(usize);
    impl Drop for Before {
        fn drop(&mut self) {
            let _ = SWEEPS.try_with(|sweeps| sweeps.set(self.0));
        }
    }
    Before(SWEEPS.try_with(|sweeps| sweeps.replace(pool)).unwrap_or(0))
}

/// Whether this thread sweeps `pool` up.
pub(super) fn sweeps(pool: usize) -> bool {
    SWEEPS.try_with(Cell::get).unwrap_or(0) == pool
}

/// A number that no other thread has as long as this one lives, and is neither 0 nor the greatest.
pub(super) fn mark() -> usize {
    // While the thread ends it passes for another one.
    HOST.try_with(|place| core::ptr::from_ref(place).addr()).unwrap_or(1)
}

/// Something of `pool`, or of what stands on it, was taken here: this thread is a host that handles it.
pub(super) fn note_host(pool: usize) {
    let _ = HOST.try_with(|host| host.set(pool));
}

/// Whether this thread is a host that handles things of `pool`.
pub(super) fn is_host(pool: usize) -> bool {
    HOST.try_with(Cell::get).unwrap_or(0) == pool
}

/// Tells the worker how the task that runs now ended.
#[inline]
pub(crate) fn report(outcome: Outcome) {
    OUTCOME.set(outcome);
}

#[inline]
pub(crate) fn take_outcome() -> Outcome {
    OUTCOME.replace(Outcome::Completed)
}
