//! Where messages come from, without keeping it.

use crate::error::Error;
use crate::hub::history::ReplayMailbox;
use crate::hub::{Mailbox, Messages};
use core::time::Duration;
use std::sync::Weak;

/// A mailbox, or a replay.
#[derive(Clone)]
pub(crate) enum Mail {
    Mailbox(Weak<Mailbox>),
    Replay(Weak<ReplayMailbox>),
}

impl Mail {
    /// Messages, how many, and whether there may be more, or the end.
    pub(super) fn take(&self, most: usize) -> Option<(Messages, usize, bool)> {
        let mut messages = Messages::default();
        let (count, more) = match self {
            Self::Mailbox(mailbox) => {
                let mailbox = mailbox.upgrade()?;
                let count = mailbox.pull_batch(&mut messages, most, Duration::ZERO).ok()?;
                // It does not call again for its end if it was draining before the last message was taken.
                (count, count > 0 && mailbox.is_worth_a_look())
            }
            Self::Replay(replay) => {
                let mut received = Vec::new();
                let count = replay.upgrade()?.recv_batch(&mut received, most).ok()?;
                received.into_iter().for_each(|message| messages.push(message));
                (count, false)
            }
        };
        Some((messages, count, more || count == most))
    }

    /// A message that was taken becomes a dead letter. Where they came from is gone: nothing.
    pub(crate) fn bury(
        &self,
        message: &crate::hub::Stored,
        failure: Option<&str>,
        attempts: u32,
    ) -> Result<(), Error> {
        const GONE: Error = Error::Stale { what: "mailbox" };
        match self {
            Self::Mailbox(mailbox) => {
                mailbox.upgrade().ok_or(GONE)?.bury(message, failure, attempts)
            }
            Self::Replay(replay) => replay.upgrade().ok_or(GONE)?.bury(message, failure, attempts),
        }
    }
}
