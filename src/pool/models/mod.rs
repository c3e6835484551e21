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
//! Each model has been seen to fail under the faults that its file lists.
//!
//! # Faults that no model shows
//!
//! Three, because the ordering is given twice: the Acquire of a producer's load of its room's epoch (a barrier
//! follows), the Release of a timer's expiry (the push into ready work is one), and the barrier in `Pollable::pushed` (`Queue` passes one of its own). And three in how a
//! drain looks at its members, which rest on the argument in `Shared::is_drained`: one look instead of two, a role
//! stored Relaxed, and a local queue's age loaded Relaxed.
//!
//! Nor that an outbox calls more often than it must: that costs, and harms nobody; nor that a list of tasks that
//! may be dropped has a ticket too many, which finds nothing. That two threads let go at once, which only changes
//! the order of those that wait, is not shown either.
//!
//! Nor do these of a task's record, whose orderings another change of the same word gives, or the queue that the
//! closure travels through: Relaxed in `begin`, `retry`, `end_if`, `publish`, `sleep`, `ask_to_notify`, `take` and
//! `status`; and a runner that lost and leaves before it has taken its value back. A closure that is not dropped
//! when its task ends is dropped later, by the wheel: that it happens at once is shown by tests/workers/delayed.rs.
//! Of threads that are set aside, the barriers of `set_active` and of leaving, the looks before a park, one that
//! puts nothing down, and one that leaves without calling for what is ready have shown nothing. Of the sleepers'
//! keeper these have not: the barrier before the look whether it is too late (to loom the lock, and the slot's
//! word, order it), an old alarm that wakes or stands in, and a call too many, which find nothing to do. And of
//! reserved threads, the calls that a watch mends one tick later: of a parked reserved one, of a reserved leader, for
//! the lane when a mark is given up; and the look at the lane before they park.
//!
//! The faults of the hub's models are twins of them: tests that must panic. The hub's snapshots rest on `arc-swap`,
//! which loom does not see inside of; the tests with threads are all there is for them.
//!
//! A limit of loom: to leave out interleavings that cannot differ, it remembers only the last access to a word, so
//! an access that only loads is not tried behind a thread that loads and then changes the same word. The remedy: both
//! pass a read-modify-write of one more word first.

pub(crate) mod fixture;
mod heap;
mod leadership;
mod reserve;
mod room;
mod shutdown;
mod slab;
mod slots;
mod staging;
mod task;
mod timers;
mod turns;
mod wake;

/// Runs `model` through everything that `preemptions` allow.
pub(crate) fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}
