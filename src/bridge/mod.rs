//! Bridges: keys of a hub, and tasks, between processes and hosts, over a broker that people run already.
//!
//! ```text
//!   process A                          broker                          process B
//!   hub ──► mailbox ──► export ──► subject, or stream ──► import ──► hub ──► mailboxes ──► handlers
//!           bounded      │                                   ▲        │ tracked
//!                        └◄── stored (at least once)         └── ack ─┘ (at least once)
//! ```
//!
//! A bridge has a thread of its own, on which the broker's client lives: threads of the pool never wait for a broker. What
//! is exported waits in a mailbox of the hub, with a capacity, an overflow policy and counters as every other mailbox
//! has, or in the archive of the hub's history (`outbox.rs`). What is imported is published in the hub as if a local publisher did. All that belongs to one connection is
//! dropped with it (`connection.rs`).
//!
//! | what may be lost, or come twice | at most once | at least once |
//! |---|---|---|
//! | the exporting process dies | what waits, and what the connection has not sent | what waits and is not stored: who awaits [`Bridge::publish`] knows which; with a [spool](Export::spool) what its archive had not committed and was not sent |
//! | the broker dies, or the network | what is under way; what waits is sent later | nothing; what is under way is sent again, and its repetition dropped by the stream's window |
//! | the importing process dies | what its hub has not handled | nothing; what its hub has not finished comes again, to it or to another |
//! | the broker and the importing process die | both of these | nothing; what was acknowledged just before may come again, too |
//! | a handler fails | as the hub's failure policy says | comes again after the retry's delay, then it is a dead letter |
//!
//! # Invariants
//!
//! 1. Nothing circulates: what another process has published is not exported, and what this hub has published is not
//!    imported (`wire.rs`).
//! 2. What a peer sends costs bounded memory: a buffer for each import, a window of ids, a number of requests. What is
//!    beyond, malformed or too large is dropped and counted.
//! 3. Of at least once: `store.rs` and `consume.rs`.

mod asks;
mod connection;
mod consume;
mod export;
mod figures;
mod flights;
mod foreign;
#[cfg(feature = "config")]
mod from_settings;
mod handle;
mod import;
mod letters;
mod outbox;
mod places;
mod pull;
mod question;
mod refusal;
mod requests;
mod rules;
mod session;
mod settings;
mod shared;
mod sink;
mod spool;
mod stats;
mod store;
pub mod tasks;
mod waiters;
mod window;
mod wire;

pub use handle::{Bridge, BridgeBuilder};
pub use rules::{Export, Import, StartAt};
pub use settings::NatsSettings;
pub use stats::{BridgeStats, ExportStats, ImportStats};
pub use waiters::PendingStore;
