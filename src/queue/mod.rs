//! Queues: which one when, and why.
//!
//! | what waits in it | queue | full | order |
//! |---|---|---|---|
//! | tasks, by value | [`TaskQueue`]: four [`MpmcRing`]s of [`Erased`] | refuses, gives back | by lane, then first in, first out |
//! | what a leader harvested beyond the one event it keeps | [`Surplus`] | asked for room beforehand | first in, first out |
//! | any other activation | [`IntrusiveStack`] | never: each object brings its link | oldest first, by chains |
//! | anything of the user's | [`Queue`] | refuses, gives back, or waits | first in, first out |
//! | a hub's messages, for many subscriptions | [`Page`]s: in place, each subscription by a cursor of its own | another page | publication |
//! | events, for a handler | [`event_ring`]: in place, as slices | refuses, or waits | publication, or none |
//! | what a cold path keeps (threads to be joined) | `crossbeam_queue::SegQueue` | never | first in, first out |
//!
//! *Tasks* are foreign and unbounded in number, so their queue must be able to say no.
//! *Activations* stand for readiness that the kernel will not report twice, so theirs must not.
//!
//! What a thread has claimed but not begun is never its own: it lies in a [`LocalQueue`] (tasks) or a
//! [`LocalChain`] (activations), one word each, which any other thread can take over. A batch thus
//! costs one compare-exchange on a shared line, and still nothing is stuck behind a slow handler.
//!
//! The ring has three answers: something, `Empty`, and `Busy` when the next slot is claimed by a
//! push that has not finished. `Busy` is not `Empty`: a thread that parked on it could sleep through
//! its own task. [`Queue`] waits it out, since a push runs no foreign code; the pool looks elsewhere
//! first.
//!
//! Files: `mpmc` the ring, `lanes` and `erased` for tasks, `activations`, `standalone` the public
//! queue, `pollable` a descriptor beside it, `event_ring` what `Ring` is made of, `outbox` where what is
//! for a host and the host's threads wait for each other, `page` slots that one writes and many read.

mod activations;
mod erased;
pub(crate) mod event_ring;
mod lanes;
mod mpmc;
mod outbox;
mod page;
mod pollable;
mod standalone;

pub(crate) use activations::{Batch, IntrusiveStack, Links, LocalChain, Surplus};
pub(crate) use erased::ErasedIn;
pub(crate) use erased::{ClosureType, Erased, Run};
pub use lanes::Lane;
pub(crate) use lanes::{Aged, Claimed, LANES, LocalQueue, Taken, TaskQueue, Turn};
pub(crate) use mpmc::{CLOSED_ALL, MpmcRing, Origin, PopError, PushError};
pub(crate) use outbox::Outbox;
pub(crate) use outbox::Store;
pub(crate) use page::{Page, Pen, Shown};
pub(crate) use pollable::{Line, Pollable, Wire};
pub use standalone::{Queue, QueueFull};

#[cfg(test)]
mod tests;
