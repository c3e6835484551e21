//! What others ask of the broker by way of the bridge's thread.

use super::question::{Ask, Found, What, Which};
use super::session::{Lost, Session};
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::stream::{DeleteMessageErrorKind, RawMessageErrorKind, Stream};
use async_nats::jetstream::{self, ErrorCode};
use core::cell::RefCell;
use core::future::poll_fn;
use core::time::Duration;
use std::time::Instant;
use tokio::sync::mpsc::UnboundedReceiver;

/// How long the broker may take for one answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Answers what is asked, one after the other.
pub(super) async fn answer(
    session: &Session<'_>,
    asks: &RefCell<UnboundedReceiver<Ask>>,
) -> Result<(), Lost> {
    let context = ContextBuilder::new().timeout(LIMIT).build(session.client.clone());
    loop {
        let ask = poll_fn(|context| asks.borrow_mut().poll_recv(context)).await;
        let Some(Ask { stream, what, answer, until }) = ask else {
            return core::future::pending().await;
        };
        if Instant::now() >= until {
            continue;
        }
        let stream = context.get_stream_no_info(&stream).await?;
        if let Ok(found) = look(&stream, what).await {
            answer.tell(found);
        }
    }
}

/// The broker has not said what the stream has.
pub(super) struct NoAnswer;

pub(super) async fn look<I>(stream: &Stream<I>, what: What) -> Result<Option<Found>, NoAnswer> {
    let (What::Get(which) | What::Delete(which)) = &what;
    let message = match which {
        Which::Last(subject) => stream.get_last_raw_message_by_subject(subject).await,
        Which::From(subject, number) => {
            stream.get_first_raw_message_by_subject(subject, *number).await
        }
        Which::Number(number) => stream.get_raw_message(*number).await,
    };
    let message = match message {
        Ok(message) => message,
        Err(error) => {
            return match error.kind() {
                RawMessageErrorKind::NoMessageFound => Ok(None),
                RawMessageErrorKind::JetStream(error) if is_missing(&error) => Ok(None),
                _ => Err(NoAnswer),
            };
        }
    };
    if let What::Delete(_) = what {
        match stream.delete_message(message.sequence).await {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => match error.kind() {
                DeleteMessageErrorKind::JetStream(error) if is_missing(&error) => return Ok(None),
                _ => return Err(NoAnswer),
            },
        }
    }
    let subject = message.subject.to_string();
    Ok(Some(Found {
        sequence: message.sequence,
        subject,
        headers: message.headers,
        payload: message.payload,
    }))
}

/// Whether there is no such message, or no such stream yet.
fn is_missing(error: &jetstream::Error) -> bool {
    const MISSING: [ErrorCode; 3] = [
        ErrorCode::STREAM_NOT_FOUND,
        ErrorCode::SEQUENCE_NOT_FOUND,
        ErrorCode::STREAM_MESSAGE_DELETE_FAILED,
    ];
    MISSING.contains(&error.error_code())
}
