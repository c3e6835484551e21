//! What goes from the hub to a stream of the broker, which stores it.
//!
//! ```text
//!   mailbox ──taken──► unstored: [ m1 m2 m3 │ m4 m5 ]
//!                                  sent ────┘ └──── to be sent
//!                                  │
//!        stored: m1 leaves the front, its publisher is told
//!        connection lost: nothing is sent any more, all are to be sent again, m1 first
//! ```
//!
//! # Invariants
//!
//! 1. A message leaves `unstored` only when the broker has said that it is stored, or that it never will be.
//! 2. They are sent in the order of the mailbox, and after a lost connection from the first on; what the client of the
//!    old connection held is gone (`connection.rs`). So what the stream gets of one key is in order, with repetitions at the
//!    most, which it drops by their ids within its window.
//! 3. In the mailbox, or the replay of a spool (`spool.rs`), they count as running until then.

use super::export::{Batch, Inbox, send};
use super::foreign::check_stream;
use super::outbox::Taken;
use super::refusal::{Pace, Sent, sent};
use super::rules::Keeps;
use super::session::{Lost, Session};
use super::shared::Exporting;
use super::stats::count;
use super::waiters::Place;
use super::wire::{EXPECTED_STREAM, bytes_of, headers_of, is_imported, subject_of};
use crate::hub::Received;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{ContextBuilder, PublishAckFuture, PublishError};
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use core::cell::RefCell;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use std::collections::VecDeque;

/// How long the broker may take to store one.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// What survives a connection.
#[derive(Default)]
pub(super) struct Storing {
    unstored: VecDeque<Received>,
}

/// Makes the stream if there is none of its name.
pub(super) async fn stream(
    context: &Context,
    name: &str,
    subject: &str,
    keeps: Keeps,
    window: Duration,
) -> Result<async_nats::jetstream::stream::Stream, Lost> {
    let config = Config {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        retention: match keeps {
            Keeps::All | Keeps::For(_) | Keeps::Last(_) => RetentionPolicy::Limits,
            Keeps::UntilDone => RetentionPolicy::WorkQueue,
        },
        max_age: match keeps {
            Keeps::For(time) | Keeps::Last(time) => time,
            Keeps::All | Keeps::UntilDone => Duration::ZERO,
        },
        duplicate_window: match keeps {
            Keeps::For(time) | Keeps::Last(time) => window.min(time),
            Keeps::All | Keeps::UntilDone => window,
        },
        max_messages_per_subject: if let Keeps::Last(_) = keeps { 1 } else { -1 },
        ..Config::default()
    };
    let stream = context.get_or_create_stream(config).await;
    let stream = stream.map_err(|error| Lost(format!("stream {name:?}: {error}")))?;
    check_stream(&stream.cached_info().config, keeps)?;
    Ok(stream)
}

pub(super) async fn store(
    session: &Session<'_>,
    exporting: &Exporting,
    storing: &RefCell<Storing>,
    kept: &RefCell<Taken>,
) -> Result<(), Lost> {
    let rule = &exporting.rule;
    let Some(name) = &rule.stream else { return Ok(()) };
    let context = ContextBuilder::new()
        .timeout(STORE_TIMEOUT)
        .ack_timeout(STORE_TIMEOUT)
        .max_ack_inflight(rule.in_flight)
        .build(session.client.clone());
    let subject = format!("{}{}", rule.prefix, rule.pattern);
    stream(&context, name, &subject, rule.keeps, session.shared.window.0).await?;
    if exporting.is_empty() {
        exporting.trouble.end();
    }
    let mut pace = Pace::new(rule.in_flight);
    let again = storing.borrow().unstored.len();
    exporting.counters.again.fetch_add(again as u64, Relaxed);
    let mut batch = Batch::of(kept);
    let mut inbox = Inbox::new(session, exporting);
    let mut acks = FuturesOrdered::new();
    let mut has_more = true;
    loop {
        while acks.len() < pace.window() {
            if storing.borrow().unstored.len() == acks.len() {
                let room = pace.window() - acks.len();
                match take(session, exporting, &inbox, storing, &mut batch, room).await? {
                    None => has_more = false,
                    Some(0) => {}
                    Some(_) => continue,
                }
                break;
            }
            let expects = expects(&storing.borrow().unstored[acks.len()]);
            let ack = send_next(session, exporting, &context, storing, acks.len()).await;
            acks.push_back(async move {
                let ack = match ack {
                    Ok(ack) => ack.await,
                    // The client does not send what is too large for the broker.
                    Err(refused) => Err(refused),
                };
                sent(ack, expects)
            });
        }
        if acks.is_empty() && !has_more {
            return Ok(());
        }
        tokio::select! {
            Some(end) = acks.next() => match end {
                Sent::Stored(place) => {
                    pace.stored();
                    exporting.trouble.end();
                    exporting.counters.settled.fetch_add(1, Relaxed);
                    leave(session, exporting, storing, Ok(place));
                }
                Sent::Never(reason) => {
                    count(&exporting.counters.refused);
                    session.shared.refused(format!("stream {name:?} refuses a message: {reason}"));
                    leave(session, exporting, storing, Err(reason));
                }
                Sent::NoRoom(reason) => {
                    let reason = format!("stream {name:?} has no room: {reason}");
                    session.shared.troubled(&exporting.trouble, reason);
                    let pause = pace.refused();
                    // Those behind it are sent again as well, so that they stay behind it.
                    while acks.next().await.is_some() {}
                    exporting.counters.again.fetch_add(storing.borrow().unstored.len() as u64, Relaxed);
                    tokio::time::sleep(pause).await;
                }
                Sent::Unknown(reason) => {
                    return Err(Lost(format!("stream {name:?} does not store: {reason}")));
                }
            },
            ready = inbox.ready(), if has_more && acks.len() < pace.window() => ready?,
        }
    }
}

/// Takes what waits; None: nothing more comes. What is not stored goes at once.
async fn take(
    session: &Session<'_>,
    exporting: &Exporting,
    inbox: &Inbox<'_>,
    storing: &RefCell<Storing>,
    batch: &mut Batch<'_>,
    room: usize,
) -> Result<Option<usize>, Lost> {
    let left = batch.taken.len();
    let taken = match left {
        0 => inbox.try_take(&mut batch.taken, room),
        // Of a connection that was lost.
        _ => Some(left),
    };
    while let Some(message) = batch.taken.front() {
        if message.lost_before > 0 {
            let unstored = &storing.borrow().unstored;
            let has = |sequence| unstored.iter().any(|one| one.sequence() == sequence);
            session.shared.waiters.gone(exporting.id(), message.sequence(), has);
        }
        let is_stored = message.reply_to().is_none() && !is_imported(message);
        if !is_stored {
            match (message.reply_to(), exporting.outbox.ids()) {
                // By the time that its turn comes, its inbox may be another's.
                (Some(_), Some(_)) => count(&exporting.counters.turned_back),
                _ => send(session, exporting, message).await?,
            }
            let is_next = storing.borrow().unstored.is_empty();
            exporting.outbox.ended(1, is_next.then(|| message.sequence()));
        }
        let message = batch.taken.pop_front();
        storing.borrow_mut().unstored.extend(message.filter(|_| is_stored));
    }
    Ok(taken)
}

async fn send_next(
    session: &Session<'_>,
    exporting: &Exporting,
    context: &Context,
    storing: &RefCell<Storing>,
    index: usize,
) -> Result<PublishAckFuture, PublishError> {
    let (subject, headers, payload) = {
        let storing = storing.borrow();
        let message = &storing.unstored[index];
        let (prefix, ids) = (&exporting.rule.prefix, exporting.outbox.ids());
        let mut headers = headers_of(message, prefix, &session.shared.origin, ids);
        // Another stream may have this subject, and would say that it has stored it.
        if !expects(message) {
            headers.insert(EXPECTED_STREAM, exporting.rule.stream.as_deref().unwrap_or_default());
        }
        (subject_of(prefix, message), headers, bytes_of(message.payload()))
    };
    let ack = context.publish_with_headers(subject, headers, payload).await?;
    exporting.counters.passed.fetch_add(1, Relaxed);
    Ok(ack)
}

/// Whether its publisher has said which stream is to store it.
fn expects(message: &Received) -> bool {
    message.headers().get(EXPECTED_STREAM).is_some()
}

/// The first has come to its end.
fn leave(
    session: &Session<'_>,
    exporting: &Exporting,
    storing: &RefCell<Storing>,
    end: Result<Place, String>,
) {
    let Some(message) = storing.borrow_mut().unstored.pop_front() else { return };
    exporting.outbox.ended(1, Some(message.sequence()));
    session.shared.waiters.end(&message, end);
}
