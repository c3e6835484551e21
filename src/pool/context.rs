//! What a thread knows of itself: which pool it belongs to at this moment.

use super::Shared;
pub(crate) use crate::contain::{contain, discard};
use crate::error::{Error, Result};
use crate::sync::store_load_barrier;
use crate::thread_state::{self, is_member};
use core::cell::{Cell, RefCell};
use std::sync::Arc;

/// How the task that just ran ended, told by the task's own wrapper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Completed,
    Failed,
    Cancelled,
}

thread_local! {
    static SEAT: Cell<usize> = const { Cell::new(0) };
    /// The address of the pool of whose things this thread has pulled some last, or 0. It is only compared.
    static PULLED: Cell<usize> = const { Cell::new(0) };
    /// The address of the pool that this thread sweeps up, or 0. It is only compared.
    static SWEEPS: Cell<usize> = const { Cell::new(0) };
    static OUTCOME: Cell<Outcome> = const { Cell::new(Outcome::Completed) };
    static MEMBER: RefCell<Option<(Arc<Shared>, usize)>> = const { RefCell::new(None) };
}

/// Makes this thread a member until the guard is dropped.
pub(crate) fn enter(shared: &Arc<Shared>, member: usize) -> impl Drop + use<> {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            thread_state::set_pool(0);
            MEMBER.with_borrow_mut(Option::take);
        }
    }
    thread_state::set_pool(Arc::as_ptr(shared).addr());
    SEAT.set(member);
    MEMBER.set(Some((Arc::clone(shared), member)));
    Leave
}

/// Whether this thread is a member of `shared`.
#[inline]
pub(crate) fn is_inside(shared: &Shared) -> bool {
    thread_state::pool() == core::ptr::from_ref(shared).addr()
}

/// This thread sweeps `shared` up until the guard is dropped.
pub(super) fn sweep(shared: &Shared) -> impl Drop + use<> {
    struct Before(usize);
    impl Drop for Before {
        fn drop(&mut self) {
            let _ = SWEEPS.try_with(|sweeps| sweeps.set(self.0));
        }
    }
    let own = core::ptr::from_ref(shared).addr();
    Before(SWEEPS.try_with(|sweeps| sweeps.replace(own)).unwrap_or(0))
}

/// Whether this thread sweeps `shared` up.
pub(super) fn sweeps(shared: &Shared) -> bool {
    SWEEPS.try_with(Cell::get).unwrap_or(0) == core::ptr::from_ref(shared).addr()
}

/// Something of `shared`, or of what stands on it, was pulled here: this thread is a host that handles it.
pub(crate) fn note_pulled(shared: &Shared) {
    let _ = PULLED.try_with(|pulled| pulled.set(core::ptr::from_ref(shared).addr()));
}

/// Whether this thread is a host that handles things of `shared`.
pub(super) fn has_pulled(shared: &Shared) -> bool {
    PULLED.try_with(Cell::get).unwrap_or(0) == core::ptr::from_ref(shared).addr()
}

/// This thread's seat in `shared`, if it is a member.
#[inline]
pub(crate) fn seat_in(shared: &Shared) -> Option<usize> {
    is_inside(shared).then(|| SEAT.get())
}

/// This thread's seat in the pool whose member it is.
#[inline]
pub(crate) fn seat_here() -> Option<usize> {
    is_member().then(|| SEAT.get())
}

/// This thread's pool and seat.
pub(crate) fn current() -> Option<(Arc<Shared>, usize)> {
    if !is_member() {
        return None;
    }
    MEMBER.try_with(|member| member.borrow().clone()).ok().flatten()
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

/// Whether this thread is a member of that pool, and the pool stops.
pub(crate) fn stops_around_us(is_own: impl FnOnce(&Shared) -> bool) -> bool {
    // Against *stop, then sweep*: a stop that is not seen here finds what this thread waits for.
    store_load_barrier();
    current().is_some_and(|(shared, _)| is_own(&shared) && shared.must_stop())
}

/// Runs a wait of ours. On a member it hands leadership on first, and refuses when what is waited
/// for is its own pool's and no other member is left that could do it.
pub(crate) fn blocking<R>(
    is_own: impl FnOnce(&Shared) -> bool,
    wait: impl FnOnce() -> R,
) -> Result<R> {
    let Some((shared, member)) = current() else { return Ok(wait()) };
    let _waiting = match is_own(&shared) {
        true => Some(shared.begin_wait(member).ok_or(Error::WouldDeadlock)?),
        false => None,
    };
    shared.promote_for_blocking();
    Ok(wait())
}
