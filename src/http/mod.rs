//! An HTTP/1.1 server on the stream server: routes, handlers, and answers at once or later.
//!
//! ```text
//!   bytes ──► head.rs: what is asked, how long is the body ──► routes.rs ──► the user's handler
//!     │  └──► chunks.rs: where the body ends                                   │ Response
//!     └── cycle.rs: one request at a time ◄── exchange/: answered? ◄───────────┘ (any thread)
//! ```
//!
//! | folder | idea |
//! |---|---|
//! | `message` | framing, judged strictly (RFC 9112); bytes in, judgements out, no sockets. How a head is written |
//! | `telemetry` | what is counted, logged and reported of requests |
//! | `exchange` | who has the request: the word between a connection and whoever answers. What handlers see |
//! | `service` | routes, middleware, limits |
//! | `connection` | the stages of a connection, as a handler of the stream server |
//! | `server.rs` | settings, start, drain |
//! | `attached.rs` | requests as data, which a completion queue brings |
//!
//! TLS is not here: a [`Filter`](crate::net::Filter) between socket and protocol is where it goes, as the
//! example `tls` shows.
//!
//! # What it rests on
//!
//! 1. **Judged from bytes alone.** Whether a head is good, and where a body ends, is decided by functions without
//!    sockets (`message/head.rs`, `message/chunks.rs`); what lies beyond a limit has no say, so the judgement does not depend on
//!    how the bytes came. Whatever two readers could understand differently is refused with 400, and the connection
//!    closes.
//! 2. **One request of a connection is in work at a time.** What is sent ahead waits unread, so answers are in
//!    order, and a peer that asks without listening costs itself only.
//! 3. **A response is a value.** Its holder completes it, on whatever thread; dropped, it is a 500. Failed, it is
//!    one too, and the connection closes: as after a handler that panics, and counted as that. `exchange/mod.rs` has
//!    the word between it and the connection: answers from inside a run are gathered and leave together, others
//!    write through and notify.
//! 4. **One head leaves for each request**, though the library may answer in a handler's place.
//! 5. **The counters balance**: begun = answered + refused + aborted + in work, each by cause.
//!
//! A connection in use adds to the formula above what it collects: a body up to `max_body`, twice while it grows,
//! and its head. Its `max_unconsumed` is `max_head` + 128 KiB, unless its listener has more, and it reads no
//! request while its output presses, so a peer that asks and never reads has `high` and one answer in place of
//! `max`: with the defaults up to 1 MiB, of which 250 KB have been seen. A head that never ends takes twice what
//! has come of it.

#[cfg(feature = "capi")]
mod attached;
mod connection;
mod exchange;
mod message;
mod server;
mod service;
mod telemetry;

#[cfg(feature = "capi")]
pub(crate) use self::{
    attached::{AttachedRequest, HttpEvent, Requests, Upload, Whose},
    exchange::{Exchange, is_inside_any},
    message::form::{decode, split},
    service::routes::Patterns,
};
pub use exchange::body::Body;
pub use exchange::request::{Request, RequestBody};
pub use exchange::response::Response;
#[cfg(fuzzing)]
#[doc(hidden)]
pub use message::reading::fuzzing;
pub use server::{Http, HttpBuilder};
pub use service::middleware::Next;
pub use service::returned::HandlerResult;
pub use telemetry::RequestEnd;
pub use telemetry::access_log::AccessLog;
pub use telemetry::stats::{Aborted, Answered, HttpStats, Refused};
