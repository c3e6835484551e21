//! Queues.

mod activations;
mod erased;
mod lanes;
mod mpmc;

pub(crate) use activations::{Chain, ChainHand, IntrusiveStack, Links, NONE, Surplus};
pub(crate) use erased::Erased;
pub use lanes::Lane;
pub(crate) use lanes::{Claimed, Hand, TaskQueue, Turn};
pub(crate) use mpmc::{CLOSED_ALL, CLOSED_OUTSIDE, MpmcRing, Origin, PopError, PushError};

#[cfg(test)]
mod tests;
