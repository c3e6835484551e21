//! What comes from a stream of the broker to the hub, and is acknowledged when the hub's handlers have succeeded.
//!
//! ```text
//!                    published, tracked               all handlers have succeeded: ack
//!   broker ──taken──► IN FLIGHT ─────────────────────────────────────────────────────► gone
//!      ▲                 │ ▲  └─ every third of ack_wait: "in progress", up to handle_timeout
//!      │                 │ │
//!      │                 │ └── comes again over a new connection: the acknowledgement goes there
//!      └─ nak, delay ────┤ a handler has failed, or nobody subscribes; attempts are left
//!                        └ a handler has failed, none is left: a dead letter in the hub, term ──► gone
//! ```
//!
//! # Invariants
//!
//! 1. A message is acknowledged only after every subscription that got it has dealt with it (`hub/outcome.rs`), or the
//!    task that it is has ended.
//! 2. A message that is in flight in this process is not published again; one that was acknowledged within the window is
//!    acknowledged again and not published.
//! 3. The bridge never has more than `in_flight` of them in the hub.

use super::import::{accept, key_of, room_nap};
use super::rules::{Source, StartAt};
use super::session::{Lost, Session};
use super::shared::Importing;
use super::sink::{ABSENT, Arrival, End};
use super::stats::count;
use super::store::stream;
use super::window::Window;
use crate::error::Error;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::{AckKind, Message};
use core::cell::RefCell;
use core::future::poll_fn;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use futures_util::StreamExt;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;
use tokio::sync::mpsc;

/// How many may be with all processes of a durable name.
const MOST_PENDING: i64 = 65_536;

/// What survives a connection.
pub(super) struct Consuming {
    /// By their number in the stream.
    flights: HashMap<u64, Flight>,
    end: mpsc::UnboundedSender<(u64, End)>,
    ends: mpsc::UnboundedReceiver<(u64, End)>,
    /// Of messages that were acknowledged.
    done: Option<Window>,
}

impl Default for Consuming {
    fn default() -> Self {
        let (end, ends) = mpsc::unbounded_channel();
        Self { flights: HashMap::new(), end, ends, done: None }
    }
}

impl Consuming {
    /// Whether the hub has none of its messages.
    pub(super) fn is_settled(&self) -> bool {
        self.flights.is_empty()
    }
}

/// A message that the hub has.
struct Flight {
    acker: Rc<Acker>,
    id: String,
    began: Instant,
}

/// A message that the hub has no room for yet, and how often it was offered.
type Waiting = (Arrival, usize);

pub(super) async fn consume(
    session: &Session<'_>,
    importing: &Importing,
    source: &Source,
    consuming: &RefCell<Consuming>,
) -> Result<(), Lost> {
    let (lasts, most) = session.shared.window;
    consuming.borrow_mut().done.get_or_insert_with(|| Window::new(lasts, most));
    let mut messages = messages(session, importing, source).await?;
    let mut waiting: Option<Waiting> = None;
    let mut tick = tokio::time::interval(source.ack_wait / 3);
    let closing = super::session::closing(session.shared);
    tokio::pin!(closing);
    let mut is_closing = false;
    loop {
        let has_room = consuming.borrow().flights.len() < source.in_flight;
        tokio::select! {
            // Ends first: they make room.
            biased;
            end = poll_fn(|context| consuming.borrow_mut().ends.poll_recv(context)) => {
                if let Some((number, how)) = end {
                    settle(importing, consuming, number, how).await;
                }
            }
            _ = tick.tick() => extend(source, consuming).await,
            () = &mut closing, if !is_closing => is_closing = true,
            () = tokio::time::sleep(waiting.as_ref().map_or(ABSENT, |(_, tries)| room_nap(*tries))),
                if waiting.is_some() => {
                waiting = publish(importing, consuming, waiting)?;
            }
            message = messages.next(), if waiting.is_none() && has_room && !is_closing => {
                let Some(message) = message else {
                    return Err(Lost("a stream of messages has ended".into()));
                };
                let message = message.map_err(|error| Lost(format!("stream {:?}: {error}", source.stream)))?;
                let taken = take(session, importing, source, consuming, message).await;
                waiting = publish(importing, consuming, taken)?;
            }
        }
    }
}

/// What the broker has for this name.
async fn messages(
    session: &Session<'_>,
    importing: &Importing,
    source: &Source,
) -> Result<pull::Stream, Lost> {
    let lost = |error: &dyn core::fmt::Display| {
        Lost(format!("consumer {:?} of stream {:?}: {error}", source.durable, source.stream))
    };
    let context =
        ContextBuilder::new().timeout(Duration::from_secs(5)).build(session.client.clone());
    let subject = format!("{}{}", importing.rule.prefix, importing.rule.pattern);
    let whole = source.subjects.as_ref().unwrap_or(&subject);
    let stream =
        stream(&context, &source.stream, whole, source.keeps, session.shared.window.0).await?;
    let config = pull::Config {
        durable_name: Some(source.durable.clone()),
        deliver_policy: match source.start {
            StartAt::First => DeliverPolicy::All,
            StartAt::New => DeliverPolicy::New,
            StartAt::Sequence(number) => {
                DeliverPolicy::ByStartSequence { start_sequence: number.max(1) }
            }
            StartAt::Time(time) => DeliverPolicy::ByStartTime { start_time: time.into() },
        },
        ack_policy: AckPolicy::Explicit,
        ack_wait: source.ack_wait,
        max_deliver: -1,
        max_ack_pending: MOST_PENDING,
        filter_subject: subject.clone(),
        ..pull::Config::default()
    };
    let consumer = stream
        .get_or_create_consumer(&source.durable, config)
        .await
        .map_err(|error| lost(&error))?;
    let found = &consumer.cached_info().config.filter_subject;
    if *found != subject {
        return Err(lost(&format!("it is of {found:?}, and not of {subject:?}")));
    }
    let stream = consumer
        .stream()
        .max_messages_per_batch(source.in_flight.min(256))
        .expires(Duration::from_secs(30))
        .heartbeat(Duration::from_secs(10));
    stream.messages().await.map_err(|error| lost(&error))
}

/// Notes a message as in flight. None: it is not to be published.
async fn take(
    session: &Session<'_>,
    importing: &Importing,
    source: &Source,
    consuming: &RefCell<Consuming>,
    message: Message,
) -> Option<Waiting> {
    let counters = &importing.counters;
    let info = message.info().ok()?;
    let (number, delivered) = (info.stream_sequence, u32::try_from(info.delivered).unwrap_or(1));
    counters.lag.store(info.pending, Relaxed);
    let (message, acker) = message.split();
    let acker = Rc::new(acker);
    if let Some(flight) = consuming.borrow_mut().flights.get_mut(&number) {
        flight.acker = acker;
        return None;
    }
    let payload = message.payload;
    let accepted = key_of(&message.subject, importing).and_then(|key| {
        let incoming = accept(session, importing, message.headers.as_ref(), payload.len())?;
        Some((key.to_owned(), incoming))
    });
    let Some((key, incoming)) = accepted else {
        // It will not do so the next time either. A connection that is gone has the broker send it once more.
        let _gone = acker.ack_with(AckKind::Term).await;
        return None;
    };
    let id = match &incoming.id {
        // One that its publisher gave may come again on purpose.
        Some(id) if !importing.sink.takes_own() => id.clone(),
        _ => number.to_string(),
    };
    let is_done = consuming.borrow().done.as_ref().is_some_and(|done| done.has(&id));
    if is_done {
        count(&counters.duplicates);
        let _gone = acker.ack().await;
        return None;
    }
    let again = source.retry.next(delivered, Duration::ZERO, None, number).ok();
    let flight = Flight { acker, id, began: Instant::now() };
    consuming.borrow_mut().flights.insert(number, flight);
    counters.in_flight.store(consuming.borrow().flights.len() as u64, Relaxed);
    Some((Arrival { number, delivered, key, payload, incoming, again }, 0))
}

/// Offers a message to where it goes. Some: there is no room yet.
fn publish(
    importing: &Importing,
    consuming: &RefCell<Consuming>,
    waiting: Option<Waiting>,
) -> Result<Option<Waiting>, Lost> {
    let Some((arrival, tries)) = waiting else { return Ok(None) };
    let (number, end) = (arrival.number, consuming.borrow().end.clone());
    let refused = end.clone();
    let tell = Box::new(move |how| {
        // The bridge has ended.
        let _gone = end.send((number, how));
    });
    match importing.sink.offer(&arrival, tell) {
        Ok(()) => {
            importing.counters.passed.fetch_add(1, Relaxed);
            Ok(None)
        }
        Err(Error::TimedOut) => Ok(Some((arrival, tries + 1))),
        Err(Error::ShutDown) => Err(Lost("the hub has ended".into())),
        Err(_) => {
            count(&importing.counters.refused);
            let _gone = refused.send((number, End::Never));
            Ok(None)
        }
    }
}

/// Tells the broker what became of a message.
async fn settle(importing: &Importing, consuming: &RefCell<Consuming>, number: u64, how: End) {
    let counters = &importing.counters;
    let Some(flight) = consuming.borrow_mut().flights.remove(&number) else { return };
    counters.in_flight.store(consuming.borrow().flights.len() as u64, Relaxed);
    let kind = match how {
        End::Done => {
            counters.settled.fetch_add(1, Relaxed);
            if let Some(done) = &mut consuming.borrow_mut().done {
                done.note(&flight.id, Instant::now());
            }
            AckKind::Ack
        }
        End::Never => {
            count(&counters.dead);
            AckKind::Term
        }
        End::Again(delay) | End::Away(delay) => {
            count(&counters.again);
            AckKind::Nak(Some(delay))
        }
    };
    // If the connection is gone the broker sends it again, and what was acknowledged is known.
    let _gone = flight.acker.ack_with(kind).await;
}

/// Tells the broker that handlers are at work.
async fn extend(source: &Source, consuming: &RefCell<Consuming>) {
    let at_work: Vec<Rc<Acker>> = {
        let consuming = consuming.borrow();
        let flights = consuming.flights.values();
        let in_time = flights.filter(|flight| flight.began.elapsed() < source.handle_timeout);
        in_time.map(|flight| Rc::clone(&flight.acker)).collect()
    };
    for acker in at_work {
        let _gone = acker.ack_with(AckKind::Progress).await;
    }
}
