//! What goes from the hub to the broker.

use super::session::{Lost, Session, closing, taken};
use super::shared::Exporting;
use super::stats::count;
use super::wire::{bytes_of, headers_of, is_imported, subject_of};
use crate::hub::{Received, Stored, Unsubscribe};

/// How many messages are taken of the mailbox at once.
const BATCH: usize = 256;

/// Works off the mailbox, at most once, until the bridge is to end and it is empty.
pub(super) async fn export(session: &Session<'_>, exporting: &Exporting) -> Result<(), Lost> {
    let mut inbox = Inbox::new(session, exporting);
    let mut batch = Vec::with_capacity(BATCH);
    while inbox.take(&mut batch).await? {
        for message in batch.drain(..) {
            send(session, exporting, &message).await?;
        }
    }
    session.client.flush().await?;
    Ok(())
}

/// The mailbox, as something that can be awaited.
pub(super) struct Inbox<'a> {
    session: &'a Session<'a>,
    exporting: &'a Exporting,
    is_closing: bool,
}

impl<'a> Inbox<'a> {
    pub(super) fn new(session: &'a Session<'a>, exporting: &'a Exporting) -> Self {
        Self { session, exporting, is_closing: false }
    }

    /// Takes what waits, up to a batch, without waiting. None: nothing more comes.
    pub(super) fn try_take(&self, batch: &mut Vec<Received>, most: usize) -> Option<usize> {
        self.exporting.mailbox.recv_batch(batch, most.min(BATCH)).ok()
    }

    /// Waits until something may wait.
    pub(super) async fn ready(&mut self) -> Result<(), Lost> {
        if !self.is_closing && self.session.shared.deadline().is_some() {
            self.is_closing = true;
            let _drains = self.exporting.mailbox.unsubscribe(Unsubscribe::Drain)?;
            return Ok(());
        }
        tokio::select! {
            // What came since the last look has left its permit there.
            () = self.exporting.bell.0.notified() => {}
            () = closing(self.session.shared), if !self.is_closing => {}
        }
        Ok(())
    }

    /// Waits for messages and takes them. False: nothing more comes.
    async fn take(&mut self, batch: &mut Vec<Received>) -> Result<bool, Lost> {
        loop {
            match self.try_take(batch, BATCH) {
                None => return Ok(false),
                Some(0) => self.ready().await?,
                Some(_) => return Ok(true),
            }
        }
    }
}

/// Sends one at most once.
pub(super) async fn send(
    session: &Session<'_>,
    exporting: &Exporting,
    message: &Stored,
) -> Result<(), Lost> {
    let counters = &exporting.counters;
    if let Some(inbox) = message.reply_to() {
        return session.requests.send(session, exporting, message, inbox).await;
    }
    if is_imported(message) {
        count(&counters.turned_back);
        return Ok(());
    }
    let headers = headers_of(message, &session.shared.origin);
    let subject = subject_of(&exporting.rule.prefix, message);
    let payload = bytes_of(message.payload());
    match taken(session.client.publish_with_headers(subject, headers, payload).await)? {
        true => count(&counters.passed),
        false => count(&counters.refused),
    }
    Ok(())
}
