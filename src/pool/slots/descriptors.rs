//! Which slot each descriptor's number was last registered for.
//!
//! # The problem
//!
//! The kernel ends the watch of a descriptor that is closed, and gives its number to the next one. So a program that
//! closes a registered descriptor without deregistering it leaves a handle that names another file by now. What that
//! handle did at its source (a deregistration, or a new look at a level-triggered descriptor) would be done to the other
//! one's registration, which would be silent from then on.
//!
//! # The rule
//!
//! Under the lock of a number, a source is changed, and its newest registration noted, at once. Who is not the newest any
//! more leaves the source alone: the kernel has ended its watch.

use super::Key;
use crate::sync::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::PoisonError;

/// Numbers that are registered by several threads together are neighbours, as a rule: these have locks of their own.
const SHARES: usize = if cfg!(loom) { 1 } else { 16 };

pub(super) struct Descriptors {
    shares: [Mutex<HashMap<RawFd, Key>>; SHARES],
}

impl Descriptors {
    pub(super) fn new() -> Self {
        Self { shares: core::array::from_fn(|_| Mutex::new(HashMap::new())) }
    }

    /// The newest registrations of `number` and others. As long as it is held, no source is changed for `number`.
    pub(super) fn lock(&self, number: RawFd) -> MutexGuard<'_, HashMap<RawFd, Key>> {
        // No code of the program runs under it: what is there holds.
        let share = &self.shares[number as usize % SHARES];
        share.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
