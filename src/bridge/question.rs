//! What can be asked of the broker about a stream.

use crate::error::{Error, Result};
use async_nats::HeaderMap;
use bytes::Bytes;
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
    /// The one of this number.
    Number(u64),
}

pub(super) enum What {
    Get(Which),
    /// It is found if it was there.
    Delete(Which),
}

type Told = Box<dyn FnOnce(Result<Option<Found>>) + Send>;

/// Where an answer goes, once. None: there is no such message. Dropped, it answers that nobody has said.
pub(super) struct Answer(Option<Told>);

impl Answer {
    pub(super) fn new(told: impl FnOnce(Result<Option<Found>>) + Send + 'static) -> Self {
        Self(Some(Box::new(told)))
    }

    pub(super) fn tell(mut self, found: Option<Found>) {
        if let Some(told) = self.0.take() {
            let _panicked = crate::pool::contain(|| told(Ok(found)));
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(told) = self.0.take() {
            let _panicked = crate::pool::contain(|| told(Err(Error::TimedOut)));
        }
    }
}

/// A question, and where the answer goes. Without a connection it waits.
pub(super) struct Ask {
    pub(super) stream: String,
    pub(super) what: What,
    pub(super) answer: Answer,
    /// Nobody waits for the answer any more then.
    pub(super) until: Instant,
}
