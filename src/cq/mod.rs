//! One queue for hosts that cannot be called back: an interpreter with a lock of its own, a loop that must stay in
//! charge, a program in C that likes data better than functions.
//!
//! # The idea
//!
//! Whatever can be given a handler can be *attached* to a completion queue with a *tag* instead. What would have been
//! a call is an *entry* then: who waits takes a batch of entries, works on them wherever it likes, and *completes*
//! each, which is what a handler's return is.
//!
//! ```text
//!   source: something happens ──► its own store ──first──► listed ──► waiter: takes of the source ──► out
//!             ▲                                              ▲                                        │
//!             └── what must not overlap comes now ◄──────────┼──────────── completed, from any thread ┘
//!                                                            └─ lease over: brought again, the token is stale
//! ```
//!
//! Events stay where their kind is bounded (a server's connections, a socket's bytes, a mailbox's messages, the lanes
//! of a worker pool) until somebody takes them; the queue has only the list of *sources* that have something. So a
//! slow host costs no more memory than a slow handler, and one source cannot crowd out another: each gives a share of
//! a batch and goes to the back of the list.
//!
//! | file | what |
//! |---|---|
//! | `completion_queue` | the queue as Rust has it |
//! | `list` | the sources that have something |
//! | `queue` | how hosts wait for them |
//! | `source`, `mail` | how each kind of source gives what it has |
//! | `entry`, `internal` | what is given |
//! | `table` | tokens: what is out, leases, and the counters |
//!
//! It rests on all rooms that have sources: the pool, net, http, task, hub and log.

mod completion_queue;
mod entry;
#[cfg(feature = "capi")]
pub(crate) mod internal;
mod list;
mod mail;
#[cfg(all(test, loom))]
mod models;
mod queue;
mod source;
#[cfg(any(feature = "capi", all(test, loom)))]
mod table;

/// So many messages are one entry at most: one place of the table lends them.
const GROUP: usize = 256;

pub use completion_queue::CompletionQueue;
pub use entry::{Entry, EntryKind, Held, MessageBatch, OpenAttempt};
