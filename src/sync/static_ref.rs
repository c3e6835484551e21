//! References to what lives as long as anybody may use them, which nobody counts.
#![allow(
    unsafe_code,
    reason = "pointers that were made from static references, and what lies behind them"
)]

use super::atomic::AtomicPtr;
use super::atomic::Ordering::{Acquire, Relaxed, Release};
use core::ptr::NonNull;

/// An `Option<&'static T>` that is read and written as one word.
#[derive(Debug)]
pub(crate) struct StaticRef<T>(AtomicPtr<T>);

impl<T> Default for StaticRef<T> {
    fn default() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }
}

impl<T: Sync> StaticRef<T> {
    #[inline]
    pub(crate) fn set(&self, to: &'static T) {
        // Release: what lies behind it, which may be new.
        self.0.store(core::ptr::from_ref(to).cast_mut(), Release);
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or made from a `&'static T`; what lies behind it is only ever shared, and whoever
        // frees it knows that nobody asks here any more. Acquire: pairs with `set`.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// Where it is, which may be freed by now; 0: nowhere.
    pub(crate) fn addr(&self) -> usize {
        self.0.load(Relaxed).addr()
    }
}

/// The one who can free what others refer to as `&'static`. Dropped, it frees nothing.
pub(crate) struct Lasting(NonNull<dyn Send + Sync>);

// SAFETY: what it owns may be sent, and shared.
unsafe impl Send for Lasting {}
// SAFETY: as above.
unsafe impl Sync for Lasting {}

impl Lasting {
    pub(crate) fn new<T: Send + Sync + 'static>(value: T) -> (Self, &'static T) {
        let kept = NonNull::from(Box::leak(Box::new(value)));
        // SAFETY: it is there until `free`, whose caller answers for it.
        (Self(kept), unsafe { kept.as_ref() })
    }

    pub(crate) fn addr(&self) -> usize {
        self.0.addr().get()
    }

    /// # Safety
    /// The reference that `new` gave, and its copies, are used no more.
    pub(crate) unsafe fn free(self) {
        // SAFETY: made from a box, and this is the only owner.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
