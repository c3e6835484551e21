//! The stream server: connections that belong to no thread.
//!
//! ```text
//!   listener ──accept──► connection = one handle of the pool ──data──► the user's handler
//!                            ▲   │                                          │ write
//!          calls, edges ─────┘   └── input: what was not consumed           ▼
//!   other threads ──write, close, resume──────────────────────────────► output buffer
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `stream/conn.rs` | what users see: the handler trait, `Conn`, `ConnRef` |
//! | `stream/connection.rs` | what all threads share of a connection |
//! | `stream/driver.rs` | what a connection does when it runs: a flat list of steps |
//! | `stream/output.rs`, `stream/output_buffer.rs` | bytes on their way out: shared; gathered, tried, queued, tracked |
//! | `stream/input.rs` | bytes that were not consumed yet |
//! | `stream/filter.rs` | what turns the bytes of a connection, as TLS does |
//! | `stream/origin.rs`, `stream/stats.rs` | where connections come from, and what is counted there |
//! | `stream/service.rs` | what the listeners and connections of one server share |
//! | `server/mod.rs`, `server/listener.rs` | start and drain; accepting, refusing, waiting for descriptors |
//! | `server/settings.rs` | settings of a server, of each of its listeners and of its outgoing connections |
//! | `server/inherited.rs` | sockets that a supervisor has opened |
//! | `server/host.rs`, `datagram/host.rs` | hooks as events, which a completion queue brings |
//! | `datagram/` | datagrams, which have no connections; the same as data |
//! | `framing.rs` | where a message ends: delimiter, fixed length, length in front |
//! | `calls.rs`, `slot_ref.rs` | how other threads reach a handler that rests |
//! | `address.rs`, `socket.rs`, `bounds.rs` | names, sockets, numbers |
//!
//! # How to answer later
//!
//! A hook that cannot answer at once [admits](Conn::admit) the request, hands the [`Admission`] to whoever works on the
//! answer, and returns. That writes the answer to [`Admission::conn`], from any thread, and calls
//! [`Admission::answered`]. While a request is in work its connection is not idle, it is not closed when its peer
//! finishes, and a drain waits for it. Without the admission the connection may be closed before the answer comes: when
//! its idle time is over, its peer has finished, or the server drains; the write then fails with
//! [`Error::Stale`](crate::Error::Stale). A [`ConnRef`] alone admits nothing: it may be kept to push to the connection
//! at any time, and nobody could tell when such a request had ended.
//!
//! # How it works
//!
//! A connection is one edge-triggered handle, so the pool's slot word gives the two promises that
//! everything here rests on: its handler runs on one thread at a time, and no event is lost
//! (invariant 4 of the pool).
//!
//! # Memory
//!
//! An idle connection of the stream server takes up to 1 KiB: its activity, what it shares with other threads, its
//! entry in the registry, its slot and its timer's. No connection holds a buffer that has nothing in it. With the
//! limits of its listener, a connection takes at most
//!
//! ```text
//! 1 KiB + the handler's own
//!       + 2 × (max_unconsumed + 64 KiB)     input that was not consumed: grown by doubling
//!       + 2 × output_marks.max + 64 KiB     output that was not taken, or is being gathered
//!       + 16 bytes for each tracked write that is not through
//! ```
//!
//! where a buffer that C lends with pace_conn_write_owned() is its caller's memory, and not counted twice; and each
//! pool thread 128 KiB for reading and gathering. A handler that writes no more above the high mark has `high` and
//! its one last answer in place of `max`. The kernel's buffers come on top (`send_buffer`, `receive_buffer`). A
//! datagram socket takes `batch` × `max_datagram`, of which the kernel maps what datagrams have touched.
//! `tests/memory.rs` counts what lives for each of 10,000 idle connections, and hostile ones below the formula.

mod address;
pub(crate) mod bounds;
pub(crate) mod calls;
mod datagram;
mod framing;
pub(crate) mod server;
mod slot_ref;
mod socket;
pub(crate) mod stream;

pub(crate) use self::{datagram::host::Host as UdpHost, server::host::Host as ConnHost};
#[cfg(feature = "capi")]
pub(crate) use self::{framing::next_delimited, stream::output_buffer::Foreign};
pub use address::{Address, ToAddress};
pub use datagram::{
    Datagram, DatagramHandler, Datagrams, DatagramsIter, UdpBuilder, UdpEvent, UdpReport,
    UdpSocket, UdpStats,
};
pub use framing::{Delimited, FixedLength, Frame, LengthPrefixed};
pub use server::{
    ConnEvent, ConnEventKind, DrainReport, Inherited, Listen, Outgoing, Server, ServerBuilder,
    Wanted, inherited,
};
pub use stream::conn::{Admission, Conn, ConnHandler, ConnRef};
pub use stream::filter::{Filter, FilterRead};
pub use stream::stats::{Closed, ListenerStats, ServerStats};
pub use stream::status::{Accept, ConnId, Reason, Timeout, TimeoutAction, WriteStatus};
