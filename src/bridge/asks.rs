//! What others ask of the broker by way of the bridge's thread.

use super::question::{Ask, Found, What, Which};
use super::session::{Lost, Session};
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::stream::Stream;
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
        let found = look(&stream, what).await;
        // Nobody waits any more.
        let _gone = answer.try_send(found);
    }
}

async fn look<I>(stream: &Stream<I>, what: What) -> Option<Found> {
    let message = match what {
        What::Get(Which::Last(subject)) => {
            stream.get_last_raw_message_by_subject(&subject).await.ok()?
        }
        What::Get(Which::From(subject, number)) => {
            stream.get_first_raw_message_by_subject(&subject, number).await.ok()?
        }
        What::Delete(number) => {
            let message = stream.get_raw_message(number).await.ok()?;
            stream.delete_message(number).await.ok().filter(|was_there| *was_there)?;
            message
        }
    };
    let subject = message.subject.to_string();
    Some(Found {
        sequence: message.sequence,
        subject,
        headers: message.headers,
        payload: message.payload,
    })
}
