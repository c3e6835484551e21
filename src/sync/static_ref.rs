//! A reference to something that lives for ever, in a place that several threads write and read.
#![allow(unsafe_code, reason = "a pointer that was made from a static reference")]

use super::atomic::AtomicPtr;
use super::atomic::Ordering::Relaxed;

/// An `Option<&'static T>` that is read and written as one word. It orders nothing.
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
        self.0.store(core::ptr::from_ref(to).cast_mut(), Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or made from a `&'static T`; what lies behind it is only ever shared.
        unsafe { self.0.load(Relaxed).as_ref() }
    }
}
