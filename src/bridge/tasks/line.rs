//! What the worker of a queue has stored, and asks, at the broker.

use super::wire::stream_name;
use crate::bridge::question::{Found, What};
use crate::bridge::shared::Shared;
use crate::bridge::wire::RECEIPT;
use crate::error::{Error, Result};
use crate::hub::{Headers, Hub};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How long the broker may take to say what a stream has.
const LIMIT: Duration = Duration::from_secs(5);

/// From a queue to its bridge, once that is open and until it has ended.
pub(super) struct Line {
    pub(super) queue: String,
    pub(super) hub: Hub,
    bridge: Mutex<Weak<Shared>>,
}

impl Line {
    pub(super) fn new(queue: &str, hub: &Hub) -> Self {
        Self { queue: queue.to_owned(), hub: hub.clone(), bridge: Mutex::default() }
    }

    pub(super) fn open(&self, bridge: Weak<Shared>) {
        *self.bridge.lock().unwrap_or_else(PoisonError::into_inner) = bridge;
    }

    fn bridge(&self) -> Option<Arc<Shared>> {
        self.bridge.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Publishes something that is to be stored, and tells when it is, or that it is not.
    pub(super) fn publish_then(
        &self,
        key: &str,
        headers: Headers,
        payload: &[u8],
        then: impl FnOnce(Result<()>) + Send + 'static,
    ) {
        let Some(bridge) = self.bridge() else { return then(Err(Error::ShutDown)) };
        let (number, pending) = bridge.waiters.open();
        let message = self.hub.message(key).headers(headers).payload(payload).no_wait();
        let published = message
            .with_header(RECEIPT, &number.to_string(), |_| ())
            .and_then(|(message, ())| message.publish());
        match published {
            Ok(_) => {
                pending.expect(1);
                pending.then_at(move |end| then(end.map(drop)));
            }
            Err(error) => then(Err(error)),
        }
    }

    /// Asks for a message of one of the queue's streams.
    pub(super) fn ask(
        &self,
        stream: &str,
        what: What,
        told: impl FnOnce(Result<Option<Found>>) + Send + 'static,
    ) {
        match self.bridge() {
            Some(bridge) => bridge.ask_then(&stream_name(&self.queue, stream), what, LIMIT, told),
            None => told(Err(Error::ShutDown)),
        }
    }
}
