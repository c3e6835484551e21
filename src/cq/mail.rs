//! Where messages come from, without keeping it.

use crate::error::Error;
use crate::hub::{HostMailbox, Messages, Stored};
use std::sync::{Arc, Weak};

/// A mailbox: of a subscription, or of a replay.
#[derive(Clone)]
pub(crate) struct Mail(Weak<dyn HostMailbox>);

impl Mail {
    pub(crate) fn of(mailbox: &Arc<dyn HostMailbox>) -> Self {
        Self(Arc::downgrade(mailbox))
    }

    /// Messages, how many, and whether there may be more, or the end.
    pub(super) fn take(&self, most: usize) -> Option<(Messages, usize, bool)> {
        let (messages, count, more) = self.0.upgrade()?.take_brought(most).ok()?;
        Some((messages, count, more || count == most))
    }

    /// A message that was taken becomes a dead letter. Where they came from is gone: nothing.
    pub(crate) fn bury(
        &self,
        message: &Stored,
        failure: Option<&str>,
        attempts: u32,
    ) -> Result<(), Error> {
        let mailbox = self.0.upgrade().ok_or(Error::Stale { what: "mailbox" })?;
        mailbox.bury(message, failure, attempts)
    }
}
