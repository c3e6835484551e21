//! Whether this thread is in a handler, and how deep inline handlers have published to inline ones.

use core::cell::Cell;

/// How deep inline handlers may publish to inline handlers.
pub(in crate::hub) const MAX_DEPTH: u32 = 16;

thread_local! {
    /// How many handlers of hubs this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether this thread is in a handler of a hub.
#[inline]
pub(in crate::hub) fn is_in_handler() -> bool {
    DEPTH.get() > 0
}

/// Whether an inline handler would be too deep.
pub(in crate::hub) fn is_too_deep() -> bool {
    DEPTH.get() >= MAX_DEPTH
}

/// In a handler until it is dropped.
pub(in crate::hub) struct InHandler;

impl InHandler {
    pub(in crate::hub) fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self
    }
}

impl Drop for InHandler {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
