//! Atomics, loom's in models. Everything else of the crate stands on this, so it stands on nothing.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::*;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::*;
