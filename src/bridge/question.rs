//! What can be asked of the broker about a stream.

use async_nats::HeaderMap;
use bytes::Bytes;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

/// A message of a stream, found there.
pub(super) struct Found {
    pub(super) sequence: u64,
    pub(super) subject: String,
    pub(super) headers: HeaderMap,
    pub(super) payload: Bytes,
}

/// Which message of a stream.
pub(super) enum Which {
    /// The last with this subject, which may be a pattern.
    Last(String),
    /// The first with a subject of this pattern, of this number or a later one.
    From(String, u64),
}

pub(super) enum What {
    Get(Which),
    /// The message of this number; it is found if it was there.
    Delete(u64),
}

/// A question, and where the answer goes: None: there is no such message. Without a connection it waits. Dropped, it has
/// no answer.
pub(super) struct Ask {
    pub(super) stream: String,
    pub(super) what: What,
    pub(super) answer: SyncSender<Option<Found>>,
    /// Nobody waits for the answer any more then.
    pub(super) until: Instant,
}
