//! The dead letters of imports, which the broker keeps: in the stream `paceline_dead`, which the first one makes, until
//! somebody deletes them.
//!
//! Each has the subject `paceline.imports.STREAM.DURABLE.NUMBER-TIME`, by the message's number in its stream and when that
//! stored it, the message's headers and payload, and of its own:
//!
//! | header | |
//! |---|---|
//! | `Paceline-Subject` | the subject that the message had |
//! | `Paceline-Failure` | what its handler has failed with |
//! | `Paceline-Attempts` | after how many attempts |
//!
//! # The message that ends its process
//!
//! ```text
//!   comes for its last attempt ──► nothing else is with the hub ──► letter stored ──► offered, alone
//!                                                                                       │
//!            letter deleted, ack ◄── its handler succeeds ──────────────────────────────┤
//!            letter in its place, term ◄── its handler fails ───────────────────────────┤
//!            comes again, has a letter: dead, term ◄── its process ends ────────────────┘
//! ```
//!
//! All that is with the hub when its process ends comes again, and the broker counts a delivery for each. So deliveries
//! alone cannot tell which one has ended the process: whoever is alone with its last attempt has. Of one that has come once
//! only it is not known either, so a message that may be tried once is tried once more, alone.

use super::asks::look;
use super::question::{What, Which};
use super::refusal::{Sent, sent};
use super::rules::{Keeps, Source};
use super::session::{Lost, Session};
use super::sink::{Death, Entry};
use super::store::stream;
use async_nats::HeaderMap;
use async_nats::header::HeaderValue;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use core::time::Duration;

const STREAM: &str = "paceline_dead";
const ALL: &str = "paceline.imports.>";
const SUBJECT: &str = "Paceline-Subject";
const FAILURE: &str = "Paceline-Failure";
const ATTEMPTS: &str = "Paceline-Attempts";

/// So many bytes of a failure are kept.
const MOST_FAILURE: usize = 4096;
/// How long the broker may take for one answer.
const LIMIT: Duration = Duration::from_secs(2);
/// How often a letter is sent to a broker that does not store it, and how long after the time before.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// Whether messages of this stream have letters: letters have none, or each that fails would make another.
pub(super) fn are_of(source: &Source) -> bool {
    source.stream != STREAM
}

/// Stores the letter of a message that its stream still has.
pub(super) async fn store(
    session: &Session<'_>,
    source: &Source,
    entry: Entry,
    death: &Death,
) -> Result<(), Lost> {
    let mut tried = 0;
    loop {
        let reason = match try_to_store(session, source, entry, death).await {
            Ok(Sent::Stored(_)) => return Ok(()),
            Ok(Sent::Never(reason)) => return Err(Lost(reason)),
            Ok(Sent::NoRoom(reason) | Sent::Unknown(reason)) | Err(Lost(reason)) => reason,
        };
        tried += 1;
        if tried == TRIES {
            return Err(Lost(reason));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The same, tried once.
pub(super) async fn store_once(
    session: &Session<'_>,
    source: &Source,
    entry: Entry,
    death: &Death,
) -> Result<(), Lost> {
    match try_to_store(session, source, entry, death).await? {
        Sent::Stored(_) => Ok(()),
        Sent::NoRoom(reason) | Sent::Unknown(reason) | Sent::Never(reason) => Err(Lost(reason)),
    }
}

async fn try_to_store(
    session: &Session<'_>,
    source: &Source,
    entry: Entry,
    death: &Death,
) -> Result<Sent, Lost> {
    let context = context(session);
    stream(&context, STREAM, ALL, Keeps::All, session.shared.window.0).await?;
    let from = context.get_stream_no_info(&source.stream).await?;
    let found = look(&from, What::Get(Which::Number(entry.number))).await;
    let found = found.map_err(|_| Lost(format!("stream {:?} does not answer", source.stream)))?;
    let Some(found) = found else { return Ok(Sent::Never("its stream has it no more".into())) };
    let mut headers = HeaderMap::new();
    for (name, values) in found.headers.iter().filter(|(name, _)| !is_order(name.as_ref())) {
        values.iter().for_each(|value| headers.append(name.clone(), value.clone()));
    }
    let mut failure = death.failure.replace(['\r', '\n'], " ");
    let most = MOST_FAILURE.min(failure.len());
    failure.truncate((0..=most).rev().find(|&at| failure.is_char_boundary(at)).unwrap_or(0));
    headers.insert(SUBJECT, found.subject.as_str());
    headers.insert(FAILURE, HeaderValue::from(failure));
    headers.insert(ATTEMPTS, death.attempts.to_string().as_str());
    let subject = subject(source, entry);
    let ack = match context.publish_with_headers(subject, headers, found.payload).await {
        Ok(ack) => ack.await,
        // The client does not send what is too large for the broker.
        Err(refused) => Err(refused),
    };
    Ok(sent(ack, false))
}

/// Whether a message has a letter already.
pub(super) async fn is_stored(
    session: &Session<'_>,
    source: &Source,
    entry: Entry,
) -> Result<bool, Lost> {
    ask(session, What::Get(Which::Last(subject(source, entry)))).await
}

/// The message is not dead after all. A letter that stays, as the broker is away, is one of a message that was handled.
pub(super) async fn delete(session: &Session<'_>, source: &Source, entry: Entry) {
    let _stays = ask(session, What::Delete(Which::Last(subject(source, entry)))).await;
}

async fn ask(session: &Session<'_>, what: What) -> Result<bool, Lost> {
    let stream = context(session).get_stream_no_info(STREAM).await?;
    let found = look(&stream, what).await;
    found
        .map(|found| found.is_some())
        .map_err(|_| Lost(format!("stream {STREAM:?} does not answer")))
}

fn context(session: &Session<'_>) -> Context {
    ContextBuilder::new().timeout(LIMIT).ack_timeout(LIMIT).build(session.client.clone())
}

fn subject(source: &Source, entry: Entry) -> String {
    // A broker that has lost its stream gives numbers again.
    let Entry { number, stored } = entry;
    format!("paceline.imports.{}.{}.{number}-{stored}", source.stream, source.durable)
}

/// Whether a header is an order to the broker about the message that it was of, its id for one.
fn is_order(name: &str) -> bool {
    name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("nats-"))
}
