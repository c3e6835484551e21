//! What goes from the hub to the broker.

use super::outbox::Taken;
use super::session::{Lost, Session, settled, taken};
use super::shared::Exporting;
use super::stats::count;
use super::wire::{bytes_of, headers_of, is_imported, subject_of};
use crate::hub::Stored;
use core::cell::RefCell;
use core::sync::atomic::Ordering::Relaxed;

/// How many messages are taken of the mailbox at once.
const BATCH: usize = 256;

/// Works off the mailbox, at most once, until the bridge is to end and it is empty.
pub(super) async fn export(
    session: &Session<'_>,
    exporting: &Exporting,
    kept: &RefCell<Taken>,
) -> Result<(), Lost> {
    let mut inbox = Inbox::new(session, exporting);
    let mut batch = Batch::of(kept);
    let in_hand = &exporting.counters.in_flight;
    loop {
        while let Some(message) = batch.taken.front() {
            send(session, exporting, message).await?;
            batch.taken.pop_front();
        }
        // What is taken does not wait in the mailbox, and is not sent: no one who looks is to miss it.
        in_hand.store(BATCH as u64, Relaxed);
        let taken = inbox.try_take(&mut batch.taken, BATCH);
        in_hand.store(batch.taken.len() as u64, Relaxed);
        match taken {
            None => break,
            Some(0) => inbox.ready().await?,
            Some(_) => {}
        }
    }
    session.client.flush().await?;
    Ok(())
}

/// Those of one connection: what is left when it is lost is kept for the next.
pub(super) struct Batch<'a> {
    pub(super) taken: Taken,
    kept: &'a RefCell<Taken>,
}

impl<'a> Batch<'a> {
    pub(super) fn of(kept: &'a RefCell<Taken>) -> Self {
        Self { taken: kept.take(), kept }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.kept.replace(core::mem::take(&mut self.taken));
    }
}

/// The outbox, as something that can be awaited.
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
    pub(super) fn try_take(&self, into: &mut Taken, most: usize) -> Option<usize> {
        self.exporting.outbox.take(into, most.min(BATCH))
    }

    /// Waits until something may wait.
    pub(super) async fn ready(&mut self) -> Result<(), Lost> {
        let shared = self.session.shared;
        self.exporting.outbox.rest();
        if !self.is_closing && shared.deadline().is_some() && shared.is_settled() {
            self.is_closing = true;
            return Ok(self.exporting.outbox.drain()?);
        }
        tokio::select! {
            // What came since the last look has left its permit there.
            () = self.exporting.bell.0.notified() => {}
            () = settled(shared), if !self.is_closing => {}
        }
        Ok(())
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
    let headers =
        headers_of(message, &exporting.rule.prefix, &session.shared.origin, exporting.outbox.ids());
    let subject = subject_of(&exporting.rule.prefix, message);
    let payload = bytes_of(message.payload());
    match taken(session.client.publish_with_headers(subject, headers, payload).await)? {
        true => count(&counters.passed),
        false => count(&counters.refused),
    }
    Ok(())
}
