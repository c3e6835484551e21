//! Code of the user that may panic where nothing may unwind.

use core::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs code of the user, a destructor perhaps. None: it panicked. Nothing that it does may unwind
/// into a member's loop.
#[inline]
pub(crate) fn contain<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) => {
            discard(payload);
            None
        }
    }
}

/// Drops what was panicked with. Should that panic in its turn, the second payload is leaked.
#[cold]
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(second);
    }
}
