//! Models of the pool's races, one file per race. loom runs each through every interleaving that a
//! bounded number of preemptions allows, and through every value that a load may return.
//!
//! What they look for:
//!
//! * a **lost wake-up** is a deadlock, because a handler that "never returns" is a thread of the
//!   model that ends: whatever it leaves behind, somebody else must come for;
//! * a **broken ownership** is a causality violation of an `UnsafeCell` (payloads, leaders' tools,
//!   results);
//! * the rest are assertions.
//!
//! The words are the real ones. Where the code around them is a member's whole loop, a model has a
//! small loop of its own that takes the same steps in the same order, and names the functions it
//! stands for. A tick of the watch is a nondeterministic step: under loom a timed park may end
//! at once.
//!
//! Each model has been seen to fail under the mutations that docs/TESTING.md lists for it.

mod heap;
#[cfg_attr(
    not(feature = "tasks"),
    allow(dead_code, reason = "some of it is for those who stand on the pool")
)]
pub(crate) mod house;
mod leadership;
mod pull;
mod purse;
#[cfg(feature = "tasks")]
pub(crate) mod record;
mod reserve;
mod room;
mod shutdown;
mod slab;
mod slots;
mod staging;
mod task;
mod timers;
mod wake;

/// Runs `model` through everything that `preemptions` allow.
pub(crate) fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}
