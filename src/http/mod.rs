//! An HTTP/1.1 server on the stream server: routes, handlers, and answers at once or later.
//!
//! ```text
//!   bytes ──► head.rs: what is asked, how long is the body ──► routes.rs ──► the user's handler
//!     │  └──► chunks.rs: where the body ends                                   │ Response
//!     └── connection.rs: one request at a time ◄── exchange.rs: answered? ◄────┘ (any thread)
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `head.rs`, `chunks.rs` | framing, judged strictly (RFC 9112); bytes in, judgements out, no sockets |
//! | `connection.rs` | the stages of a connection, as a handler of the stream server |
//! | `exchange.rs` | who has the request: the word between a connection and whoever answers |
//! | `response.rs`, `answer.rs` | what handlers answer with; how a head is written |
//! | `request.rs`, `routes.rs` | what handlers see; which one it is |
//! | `around.rs`, `form.rs` | middleware; the pairs of a query |
//! | `pulled.rs` | requests as data, for hosts that cannot be called back |
//! | `server.rs`, `stats.rs` | settings, start, drain; the books |
//!
//! TLS is not here: a [`Filter`](crate::net::Filter) between socket and protocol is where it goes, as the
//! example `tls` shows.

mod answer;
mod around;
mod chunks;
mod connection;
mod exchange;
mod form;
mod head;
#[cfg(feature = "capi")]
mod pulled;
#[cfg(any(all(test, not(loom)), fuzzing))]
mod reading;
mod request;
mod response;
mod routes;
mod server;
mod stats;

#[cfg(feature = "capi")]
pub(crate) use self::{
    exchange::is_inside_any,
    form::{decode, split},
    pulled::{Pulled, PulledRequest, Requests, Upload},
};
pub use around::Next;
#[cfg(fuzzing)]
#[doc(hidden)]
pub use reading::fuzzing;
pub use request::{Request, RequestBody};
pub use response::{Body, Response};
pub use server::{Http, HttpBuilder, RequestEnd};
pub use stats::{Aborted, Answered, HttpStats, Refused};
