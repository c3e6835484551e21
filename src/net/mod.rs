//! The stream server: connections that belong to no thread.
//!
//! ```text
//!   listener ──accept──► connection = one handle of the pool ──data──► the user's handler
//!                            ▲   │                                          │ write
//!          calls, edges ─────┘   └── input: what was not consumed           ▼
//!   other threads ──write, close, resume──────────────────────────────► link: output queue
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `connection.rs` | what a connection does when it runs: a flat list of steps |
//! | `link.rs` | what is shared between a connection and other threads: calls, and the output |
//! | `output.rs` | bytes on their way out: gathered, tried, queued, tracked |
//! | `input.rs` | bytes that were not consumed yet |
//! | `conn.rs` | what users see: the handler trait, `Conn`, `ConnRef` |
//! | `listener.rs` | accepting, refusing, waiting for descriptors |
//! | `server.rs` | settings, start, drain, counters |
//! | `framing.rs` | where a message ends: delimiter, fixed length, length in front |
//! | `address.rs`, `socket.rs`, `limits.rs` | names, sockets, numbers |
//!
//! A connection is one edge-triggered handle, so the pool's slot word gives the two promises that
//! everything here rests on: its handler runs on one thread at a time, and no event is lost
//! (invariant 4 of the pool).

mod address;
mod conn;
mod connection;
mod framing;
mod input;
mod limits;
mod link;
mod listener;
mod output;
mod server;
mod socket;

pub use address::{Address, ToAddress};
pub use conn::{
    Admission, Conn, ConnHandler, ConnId, ConnRef, Patience, Reason, Timeout, Verdict, Wrote,
};
pub use framing::{Delimited, FixedLength, Frame, LengthPrefixed};
pub use server::{Closed, DrainReport, Server, ServerBuilder, ServerStats};
