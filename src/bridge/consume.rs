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
//! 3. The bridge never has more than `in_flight` of them, the hub's among them: it asks for no more than there is room for
//!    (`pull.rs`), takes all that has come, and tells the broker of each that it is in progress.
//! 4. What may have come, and not been taken, for longer than `ack_wait` is dropped: the broker has given it to another.

use super::flights::{Came, Flights, Settlement};
use super::foreign::{begin, check_consumer};
use super::import::{accept, key_of, room_nap};
use super::letters;
use super::places::displaced;
use super::pull::Pull;
use super::rules::{Keeps, Source};
use super::session::{Lost, Session};
use super::shared::Importing;
use super::sink::{ABSENT, Arrival, Death, End, Entry};
use super::stats::count;
use super::store::stream;
use super::wire::is_made;
use crate::error::Error;
use crate::hub::Severity;
use crate::time::MAX_DELAY;
use async_nats::datetime::DateTime;
use async_nats::jetstream::consumer::{AckPolicy, FromConsumer, PullConsumer, pull};
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{AckKind, Message};
use core::cell::RefCell;
use core::future::poll_fn;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Instant;
use tokio::sync::mpsc;

/// How many may be with all processes of a durable name.
const MOST_PENDING: i64 = 65_536;

/// What survives a connection.
pub(super) struct Consuming {
    flights: Flights<Rc<Acker>>,
    end: mpsc::UnboundedSender<(Entry, End)>,
    ends: mpsc::UnboundedReceiver<(Entry, End)>,
    /// Messages in flight that there was no room for yet, and how often the first was offered.
    waiting: VecDeque<Arrival>,
    tries: usize,
    /// The one that is with the hub for its last attempt, and nothing beside it: see `letters.rs`.
    alone: Option<Entry>,
    /// How often this process has given one back that no handler has tried.
    untried: HashMap<Entry, u32>,
    /// Those in flight that wait for the broker to store their letters.
    dead: HashMap<Entry, Death>,
    /// The latest message that has come, by the time of storing, and when the stream was made that it is of.
    seen: Option<Entry>,
    stream_made: Option<DateTime>,
    /// When the consumer was made that it was bound to first.
    bound: Option<DateTime>,
}

impl Consuming {
    /// For how long, and how many, ids of messages that have ended are kept.
    pub(super) fn new(window: (Duration, usize), importing: &Importing) -> Self {
        let (end, ends) = mpsc::unbounded_channel();
        // A task may have been stored twice.
        Self {
            flights: Flights::new(window, importing.sink.takes_own()),
            end,
            ends,
            waiting: VecDeque::new(),
            tries: 0,
            alone: None,
            untried: HashMap::new(),
            dead: HashMap::new(),
            seen: None,
            stream_made: None,
            bound: None,
        }
    }

    /// Whether the first that waits may be offered.
    fn may_offer(&self) -> bool {
        self.waiting.front().is_some_and(|next| match self.alone {
            Some(entry) => next.entry == entry,
            None => !next.is_alone || self.flights.len() == self.waiting.len(),
        })
    }

    /// Notes how one has ended; whether it was alone.
    fn left(&mut self, entry: Entry, how: &End) -> bool {
        match how {
            End::Away(_) => {
                if self.untried.len() >= MOST_PENDING as usize {
                    self.untried.clear();
                }
                *self.untried.entry(entry).or_default() += 1;
            }
            End::Again(_) => {}
            End::Done | End::Never | End::Dead(_) => drop(self.untried.remove(&entry)),
        }
        self.alone.take_if(|alone| *alone == entry).is_some()
    }

    /// Whether the hub has none of its messages.
    pub(super) fn is_settled(&self) -> bool {
        self.flights.len() == 0
    }
}

pub(super) async fn consume(
    session: &Session<'_>,
    importing: &Importing,
    source: &Source,
    consuming: &RefCell<Consuming>,
) -> Result<(), Lost> {
    // None: it takes no more.
    let pull = pull(session, importing, source, consuming).await?;
    let mut tick = tokio::time::interval(pull.ack_wait() / 3);
    let mut pull = Some(pull);
    let context = ContextBuilder::new().build(session.client.clone());
    importing.trouble.end();
    let closing = super::session::closing(session.shared);
    tokio::pin!(closing);
    let bury = async |entry, death: Death| {
        if let Err(Lost(reason)) = letters::store(session, source, entry, &death).await {
            let number = entry.number;
            session.shared.refused(format!("the dead letter of message {number}: {reason}"));
        }
        entry
    };
    // Of a connection that was lost.
    let unstored = consuming.borrow().dead.clone();
    let mut burials: FuturesUnordered<_> =
        unstored.into_iter().map(|(entry, death)| bury(entry, death)).collect();
    loop {
        let (tries, has_waiting) = {
            let consuming = consuming.borrow();
            (consuming.tries, consuming.may_offer())
        };
        if let Some(pull) = &mut pull {
            let taken = consuming.borrow().flights.len();
            pull.ask(source.in_flight.saturating_sub(taken)).await?;
        }
        let is_open = pull.is_some();
        let next = async {
            match &mut pull {
                Some(pull) => pull.next(&session.client).await,
                None => core::future::pending().await,
            }
        };
        tokio::select! {
            // Ends first: they make room.
            biased;
            end = poll_fn(|context| consuming.borrow_mut().ends.poll_recv(context)) => {
                let Some((entry, how)) = end else { continue };
                if consuming.borrow_mut().left(entry, &how) {
                    letters::delete(session, source, entry).await;
                }
                match how {
                    // It stays in flight: the broker is told that it is in progress.
                    End::Dead(death) if letters::are_of(source) => {
                        consuming.borrow_mut().dead.insert(entry, death.clone());
                        burials.push(bury(entry, death));
                    }
                    how => settle(importing, consuming, entry, how).await,
                }
            }
            Some(entry) = burials.next(), if !burials.is_empty() => {
                consuming.borrow_mut().dead.remove(&entry);
                settle(importing, consuming, entry, End::Never).await;
            }
            _ = tick.tick() => extend(source, consuming).await,
            () = &mut closing, if is_open => {
                for message in rest(pull.take()) {
                    let message = Message { message, context: context.clone() };
                    match importing.sink.takes_own() {
                        // Who works at tasks gives them back, with what is known of them.
                        true => take(session, importing, source, consuming, message).await,
                        false => drop(message.ack_with(AckKind::Nak(None)).await),
                    }
                }
                offer(session, importing, source, consuming).await?;
            }
            () = tokio::time::sleep(room_nap(tries)), if has_waiting => {
                offer(session, importing, source, consuming).await?;
            }
            message = next => {
                let lost = |Lost(reason)| Lost(format!("stream {:?}: {reason}", source.stream));
                let Some(message) = message.map_err(lost)? else { continue };
                let message = Message { message, context: context.clone() };
                take(session, importing, source, consuming, message).await;
                if tries == 0 {
                    offer(session, importing, source, consuming).await?;
                }
            }
        }
    }
}

/// Takes no more, and answers what has come meanwhile, to be given back: another process need not wait until its time is
/// over.
fn rest(pull: Option<Pull>) -> impl Iterator<Item = async_nats::Message> {
    // The pull ends first, or they would come here again; and the broker would send to it for as long as tasks are worked off.
    let come = pull.map_or(Vec::new(), |mut pull| pull.rest());
    come.into_iter().filter(|message| message.status.is_none())
}

/// Asks for what the broker has for this name.
async fn pull(
    session: &Session<'_>,
    importing: &Importing,
    source: &Source,
    consuming: &RefCell<Consuming>,
) -> Result<Pull, Lost> {
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
        deliver_policy: {
            let consuming = consuming.borrow();
            begin(source.start, consuming.bound, consuming.seen)?
        },
        ack_policy: AckPolicy::Explicit,
        ack_wait: source.ack_wait,
        max_deliver: -1,
        // Tasks have no order, and one that waits for its time is not to hold up all.
        max_ack_pending: match (source.in_flight, source.keeps) {
            (1, Keeps::All) => 1,
            _ => MOST_PENDING,
        },
        filter_subject: subject.clone(),
        ..pull::Config::default()
    };
    let mut consumer = stream
        .get_or_create_consumer(&source.durable, config)
        .await
        .map_err(|error| lost(&error))?;
    let found = consumer.cached_info();
    let ack_wait = check_consumer(&found.config, &subject).map_err(|error| lost(&error))?;
    if consuming.borrow().bound.is_none() && ack_wait != source.ack_wait {
        let (durable, stream) = (&source.durable, &source.stream);
        let message = format!(
            "consumer {durable:?} of stream {stream:?} has an ack_wait of {ack_wait:?}, and keeps it: {:?} is not set",
            source.ack_wait
        );
        let fields =
            json!({ "stream": stream, "durable": durable, "ack_wait": format!("{ack_wait:?}") });
        session.shared.tell("bridge.other_ack_wait", Severity::Warning, message, fields);
    }
    consuming.borrow_mut().bound.get_or_insert(found.created);
    if let Some(anew) = made_anew(session, source, &stream, &consumer, consuming).await? {
        consumer = anew;
    }
    Pull::new(&context, consumer, ack_wait).await
}

/// A consumer in place of one whose place is not in this stream, and a word about it. What was taken of another stream, or
/// by another consumer, is answered no more: its number may be that of another message.
async fn made_anew(
    session: &Session<'_>,
    source: &Source,
    stream: &Stream,
    consumer: &PullConsumer,
    consuming: &RefCell<Consuming>,
) -> Result<Option<PullConsumer>, Lost> {
    let made = stream.cached_info().created;
    let was_made = consuming.borrow_mut().stream_made.replace(made);
    if was_made.is_some_and(|before| before != made) {
        let mut consuming = consuming.borrow_mut();
        consuming.seen = None;
        consuming.flights.cut();
    }
    let seen = consuming.borrow().seen;
    let Some(displaced) = displaced(stream, consumer, source, seen).await? else { return Ok(None) };
    consuming.borrow_mut().flights.cut();
    let config = consumer.cached_info().config.clone();
    let mut config = pull::Config::try_from_consumer_config(config)?;
    config.deliver_policy = displaced.begin;
    // Another process may have done so.
    let _gone = stream.delete_consumer(&source.durable).await;
    let consumer = stream.get_or_create_consumer(&source.durable, config).await?;
    let message = format!(
        "consumer {:?} of stream {:?} was made anew: {}; messages may come once more",
        source.durable, source.stream, displaced.why,
    );
    let fields = json!({
        "stream": source.stream, "durable": source.durable, "reason": displaced.why,
    });
    session.shared.tell("bridge.made_anew", Severity::Warning, message, fields);
    Ok(Some(consumer))
}

/// Notes a message as in flight, to be offered; or answers it at once.
async fn take(
    session: &Session<'_>,
    importing: &Importing,
    source: &Source,
    consuming: &RefCell<Consuming>,
    message: Message,
) {
    let counters = &importing.counters;
    let Ok(info) = message.info() else { return count(&counters.refused) };
    let (number, delivered) = (info.stream_sequence, u32::try_from(info.delivered).unwrap_or(1));
    let entry = Entry { number, stored: info.published.unix_timestamp_nanos() };
    counters.lag.store(info.pending, Relaxed);
    {
        let seen = &mut consuming.borrow_mut().seen;
        *seen = (*seen).filter(|seen| seen.stored > entry.stored).or(Some(entry));
    }
    let (message, acker) = message.split();
    let payload = message.payload;
    let key = key_of(&message.subject, importing);
    if key.is_none() {
        count(&counters.refused);
    }
    let accepted = key.and_then(|key| {
        let incoming = accept(session, importing, message.headers.as_ref(), payload.len())?;
        Some((key.to_owned(), incoming))
    });
    let Some((key, incoming)) = accepted else {
        // It will not do so the next time either. A connection that is gone has the broker send it once more.
        let _gone = acker.ack_with(AckKind::Term).await;
        return;
    };
    let id = match &incoming.id {
        // Of tasks each has a key of its own.
        _ if importing.sink.takes_own() => key.clone(),
        // Of an export: the stream has it once more if the broker has forgotten the id.
        Some(id) if is_made(id) => id.clone(),
        // What somebody else calls an id is new to us if the stream has stored it as new.
        _ => format!("{number} of {}", entry.stored),
    };
    let came = consuming.borrow_mut().flights.come(entry, id, Rc::new(acker), Instant::now());
    counters.in_flight.store(consuming.borrow().flights.len() as u64, Relaxed);
    match came {
        (Came::New, _) => {
            let untried = consuming.borrow().untried.get(&entry).copied().unwrap_or(0);
            let attempt = delivered.saturating_sub(untried).max(1);
            let again = source.retry.next(attempt, Duration::ZERO, None, number).ok();
            let is_alone = again.is_none()
                && attempt > 1
                && !importing.sink.takes_own()
                && letters::are_of(source);
            let arrival =
                Arrival { entry, delivered, attempt, key, payload, incoming, again, is_alone };
            consuming.borrow_mut().waiting.push_back(arrival);
        }
        (Came::Again, _) => {}
        (Came::Twin, acker) => {
            count(&counters.again);
            if let Some(acker) = acker {
                let _gone = acker.ack_with(AckKind::Nak(Some(ABSENT))).await;
            }
        }
        (Came::Ended, acker) => {
            count(&counters.duplicates);
            if let Some(acker) = acker {
                let _gone = acker.ack().await;
            }
        }
    }
}

/// Offers what waits to where it goes, if something does, until there is no room.
async fn offer(
    session: &Session<'_>,
    importing: &Importing,
    source: &Source,
    consuming: &RefCell<Consuming>,
) -> Result<(), Lost> {
    while consuming.borrow().may_offer() {
        let Some(arrival) = consuming.borrow_mut().waiting.pop_front() else { return Ok(()) };
        if arrival.is_alone && consuming.borrow().alone.is_none() {
            let is_dead = ends_processes(session, source, &arrival).await;
            let mut consuming = consuming.borrow_mut();
            if is_dead {
                let _gone = consuming.end.send((arrival.entry, End::Never));
                continue;
            }
            consuming.alone = Some(arrival.entry);
        }
        let tries = core::mem::take(&mut consuming.borrow_mut().tries);
        let (entry, end) = (arrival.entry, consuming.borrow().end.clone());
        let at_once = end.clone();
        let tell = Box::new(move |how| {
            // The bridge has ended.
            let _gone = end.send((entry, how));
        });
        match importing.sink.offer(&arrival, tell) {
            Ok(()) => {
                importing.counters.passed.fetch_add(1, Relaxed);
            }
            Err(Error::TimedOut) => {
                let mut consuming = consuming.borrow_mut();
                consuming.waiting.push_front(arrival);
                consuming.tries = tries + 1;
                return Ok(());
            }
            Err(Error::ShutDown) => {
                let _gone = at_once.send((entry, End::Away(ABSENT)));
                return Err(Lost("the hub has ended".into()));
            }
            // Of a mailbox that refuses what it has no room for.
            Err(Error::MailboxFull { .. }) => {
                let _gone = at_once.send((entry, End::Away(ABSENT)));
            }
            Err(_) => {
                count(&importing.counters.refused);
                let _gone = at_once.send((entry, End::Never));
            }
        }
    }
    Ok(())
}

/// Whether the last attempt of a message has begun before, and has ended its process; notes that it begins, if not.
async fn ends_processes(session: &Session<'_>, source: &Source, arrival: &Arrival) -> bool {
    let entry = arrival.entry;
    match letters::is_stored(session, source, entry).await {
        Ok(true) => {
            let (number, stream) = (entry.number, &source.stream);
            let message =
                format!("message {number} of stream {stream:?} is dead: it has ended its process");
            let fields = json!({ "stream": stream, "durable": source.durable, "number": number });
            session.shared.tell("bridge.ended_its_process", Severity::Error, message, fields);
            true
        }
        // If no letter can be stored it is tried all the same, as often as it comes.
        _ => {
            let failure = format!("its process ended in attempt {}", arrival.attempt).into();
            let death = Death { failure, attempts: arrival.attempt };
            if let Err(Lost(reason)) = letters::store_once(session, source, entry, &death).await {
                session
                    .shared
                    .refused(format!("the last attempt of message {}: {reason}", entry.number));
            }
            false
        }
    }
}

/// Tells the broker what became of a message.
async fn settle(importing: &Importing, consuming: &RefCell<Consuming>, entry: Entry, how: End) {
    let counters = &importing.counters;
    let ended = consuming.borrow_mut().flights.end(entry, how, Instant::now());
    counters.in_flight.store(consuming.borrow().flights.len() as u64, Relaxed);
    let Some((acker, settlement)) = ended else { return };
    let kind = match settlement {
        Settlement::Acknowledge => {
            count(&counters.settled);
            AckKind::Ack
        }
        Settlement::Terminate => {
            count(&counters.dead);
            AckKind::Term
        }
        Settlement::Refuse(delay) => {
            count(&counters.again);
            // The broker has a word of 64 bits for it, and takes one that is larger for none.
            AckKind::Nak(Some(delay.min(MAX_DELAY)))
        }
    };
    if let Some(acker) = acker {
        // If the connection is gone the broker sends it again, and what has ended for good is known.
        let _gone = acker.ack_with(kind).await;
    }
}

/// Tells the broker that handlers are at work.
async fn extend(source: &Source, consuming: &RefCell<Consuming>) {
    let at_work: Vec<Rc<Acker>> = {
        let consuming = consuming.borrow();
        consuming.flights.at_work(Instant::now(), source.handle_timeout).map(Rc::clone).collect()
    };
    for acker in at_work {
        let _gone = acker.ack_with(AckKind::Progress).await;
    }
}
