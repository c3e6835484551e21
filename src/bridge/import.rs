//! What comes from the broker to the hub, at most once.

use super::session::{Lost, Session};
use super::shared::Importing;
use super::stats::count;
use super::wire::{Incoming, read};
use crate::error::Error;
use crate::hub::{Mode, is_inbox};
use async_nats::{HeaderMap, Message};
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use futures_util::StreamExt;
use std::time::Instant;

/// Between two attempts to publish what some mailbox has no room for.
const ROOM_NAPS: [Duration; 5] = [
    Duration::from_micros(200),
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(20),
];

/// How long to wait before the next attempt, of which so many were made.
pub(super) fn room_nap(tries: usize) -> Duration {
    ROOM_NAPS[tries.min(ROOM_NAPS.len() - 1)]
}

/// Publishes what comes, for as long as the connection lasts.
pub(super) async fn import(session: &Session<'_>, importing: &Importing) -> Result<(), Lost> {
    let rule = &importing.rule;
    let subject = format!("{}{}", rule.prefix, rule.pattern);
    let mut messages = match &rule.group {
        None => session.client.subscribe(subject).await?,
        Some(group) => session.client.queue_subscribe(subject, group.clone()).await?,
    };
    while let Some(message) = messages.next().await {
        publish(session, importing, message).await?;
    }
    Err(Lost("a subscription has ended".into()))
}

/// The key in the hub of what comes with this subject. None: it is none of ours.
pub(super) fn key_of<'a>(subject: &'a str, importing: &Importing) -> Option<&'a str> {
    let key = subject.strip_prefix(importing.rule.prefix.as_str())?;
    (!key.starts_with('$') && !is_inbox(key)).then_some(key)
}

/// What is to be published. None: it is not, and counted.
pub(super) fn accept(
    session: &Session<'_>,
    importing: &Importing,
    headers: Option<&HeaderMap>,
    size: usize,
) -> Option<Incoming> {
    let counters = &importing.counters;
    let incoming = match read(headers, &session.shared.origin) {
        Ok(incoming) if session.shared.hub.check_payload_size(size).is_ok() => incoming,
        _ => {
            count(&counters.refused);
            return None;
        }
    };
    if incoming.is_own && !importing.sink.takes_own() {
        count(&counters.turned_back);
        return None;
    }
    Some(incoming)
}

async fn publish(
    session: &Session<'_>,
    importing: &Importing,
    message: Message,
) -> Result<(), Lost> {
    let counters = &importing.counters;
    let Some(key) = key_of(&message.subject, importing) else {
        count(&counters.refused);
        return Ok(());
    };
    let payload = &message.payload[..];
    let incoming = accept(session, importing, message.headers.as_ref(), payload.len());
    let Some(incoming) = incoming else { return Ok(()) };
    if let Some(reply) = message.reply.clone() {
        let rule = &importing.rule;
        let how = (rule.request_timeout, rule.group.is_some());
        match session.requests.ask(session, (key, payload), incoming, reply, how) {
            true => count(&counters.passed),
            false => count(&counters.refused),
        }
        return Ok(());
    }
    let is_new = |id: &String| session.window.borrow_mut().note(id, Instant::now());
    if !incoming.id.as_ref().is_none_or(is_new) {
        count(&counters.duplicates);
        return Ok(());
    }
    for tries in 0.. {
        let published = session
            .shared
            .hub
            .message(key)
            .payload(payload)
            .headers(incoming.headers.clone())
            .priority(incoming.priority)
            .if_full(Mode::Try)
            .publish();
        match published {
            Err(Error::TimedOut) => tokio::time::sleep(room_nap(tries)).await,
            // Mailboxes that refuse when they are full have counted it.
            Ok(_) | Err(Error::MailboxFull { .. }) => {
                counters.passed.fetch_add(1, Relaxed);
                return Ok(());
            }
            Err(Error::ShutDown) => return Err(Lost("the hub has ended".into())),
            Err(_) => {
                count(&counters.refused);
                return Ok(());
            }
        }
    }
    Ok(())
}
