//! Code of the user that may panic where nothing may unwind.

use core::any::Any;
use core::ops::Deref;
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

/// What a panic said.
pub(crate) fn message_of(panic: &(dyn core::any::Any + Send)) -> Box<str> {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").into()
}

/// What belongs to the user and is dropped by whichever thread lets go of it last, a thread of a pool perhaps: a
/// panic of its destructor ends there.
#[derive(Debug)]
pub(crate) struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    pub(crate) fn into_inner(mut self) -> T {
        self.0.take().expect("it is there until it is dropped")
    }
}

impl<T> Deref for Contained<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        let _panicked = contain(|| drop(value));
    }
}
