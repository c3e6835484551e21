//! What all that is done over one connection has.

use super::requests::Requests;
use super::shared::Shared;
use super::window::Window;
use async_nats::{Client, PublishError, PublishErrorKind};
use core::cell::RefCell;
use core::time::Duration;

/// Why a connection is of no use any more.
#[derive(Debug)]
pub(super) struct Lost(pub(super) String);

impl<E: core::fmt::Display> From<E> for Lost {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Whether the client has taken a message: it refuses what is too large for the broker, with its headers.
pub(super) fn taken(published: Result<(), PublishError>) -> Result<bool, Lost> {
    match published {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == PublishErrorKind::MaxPayloadExceeded => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What all parts of one connection have.
pub(super) struct Session<'a> {
    pub(super) shared: &'a Shared,
    pub(super) client: Client,
    pub(super) requests: Requests,
    /// Of this bridge, not of the connection.
    pub(super) window: &'a RefCell<Window>,
}

/// Resolves when the bridge is to end, and what it has taken of streams is dealt with: until then handlers and tasks may
/// publish what is to go out still.
pub(super) async fn settled(shared: &Shared) {
    closing(shared).await;
    while !shared.is_settled() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Resolves when the bridge is to end.
pub(super) async fn closing(shared: &Shared) {
    let mut closing = shared.closing.subscribe();
    let _never = closing.wait_for(Option::is_some).await;
}
