//! One connection to the broker, from its making to its loss, and what is done over it.
//!
//! ```text
//!             connected                      lost, or closed by the broker
//!   AWAY ───────────────────► CONNECTED ────────────────────────────────────┐
//!    ▲                            │ closing: exports are worked off          │
//!    │ jittered back-off          ▼                                          │
//!    └────────────────────── runtime dropped ◄───────────────────────────────┘
//!                                 │ closing, or its deadline is over
//!                                 ▼
//!                               ENDED
//! ```
//!
//! # Invariants
//!
//! 1. **Nothing of a connection survives it.** Each has an async runtime of its own, on the bridge's thread, which is
//!    dropped with it: so what the client had in its buffers is not sent after what is sent again.
//! 2. What is to survive is in `Exporting` (the mailbox), and in the states that exports and imports at least once keep
//!    from one connection to the next: what is sent and not stored, what is in the hub and not acknowledged.
//! 3. Futures of a connection run on one thread, one at a time. They call the hub without waiting: a publication only
//!    tries, and is tried again later if a mailbox has no room.

use super::asks;
use super::consume::{Consuming, consume};
use super::export::export;
use super::foreign::{Cluster, Told};
use super::import::import;
use super::outbox::Taken;
use super::places;
use super::question::Ask;
use super::requests::Requests;
use super::session::{Lost, Session, closing};
use super::shared::{Exporting, Shared, Trouble};
use super::stats::count;
use super::store::{Storing, store};
use super::window::Window;
use crate::contain::contain;
use crate::hub::Severity;
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, UnboundedReceiver};

/// After so long a connection, or a stream, was of use: what fails next is tried again soon.
const STEADY: Duration = Duration::from_secs(10);
/// How many commands wait for the connection: beyond that an export waits, and its mailbox holds what comes.
const CLIENT_CAPACITY: usize = 4096;

/// How soon a bridge without a connection finds out that it is to end.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A part of what is done over a connection. Its end is that of the connection, unless all exports have ended.
type Part<'a> = Pin<Box<dyn Future<Output = Result<(), Lost>> + 'a>>;

/// What survives a connection.
struct Kept {
    taken: Vec<RefCell<Taken>>,
    storing: Vec<RefCell<Storing>>,
    consuming: Vec<RefCell<Consuming>>,
    window: RefCell<Window>,
    cluster: Cluster,
    asks: RefCell<UnboundedReceiver<Ask>>,
}

/// The bridge's thread.
pub(super) fn run(shared: &Shared, asks: UnboundedReceiver<Ask>) {
    if contain(|| serve(shared, asks)).is_none() {
        shared.status().reason = Some("its thread has panicked".into());
    }
    // Nobody takes what waits, or comes, any more: publishers do not wait for that.
    let (mut left, mut unstored) = (0, 0);
    for exporting in &shared.exports {
        let lost = exporting.outbox.close(exporting.in_hand());
        left += lost;
        if exporting.rule.stream.is_some() {
            unstored += lost;
        }
    }
    let mut status = shared.status();
    status.is_connected = false;
    status.has_ended = true;
    (status.left, status.unstored) = (left, unstored);
    drop(status);
    shared.waiters.end_all();
    shared.tell("bridge.closed", Severity::Info, "it has ended".into(), json!({ "left": left }));
}

/// Connects, again and again, until the bridge or the hub is to end.
fn serve(shared: &Shared, asks: UnboundedReceiver<Ask>) {
    let (lasts, most) = shared.window;
    let kept = Kept {
        taken: shared.exports.iter().map(|_| RefCell::default()).collect(),
        storing: shared.exports.iter().map(|_| RefCell::default()).collect(),
        consuming: shared
            .imports
            .iter()
            .map(|one| RefCell::new(Consuming::new(shared.window, one)))
            .collect(),
        window: RefCell::new(Window::new(lasts, most)),
        cluster: Cluster::default(),
        asks: RefCell::new(asks),
    };
    let mut failed = 0;
    while !is_over(shared, &kept) {
        let begun = Instant::now();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let ended = match runtime {
            Ok(runtime) => {
                let ended = runtime.block_on(connect_and_serve(shared, &kept));
                // Not waiting for a name that is being looked up on a thread of its own.
                runtime.shutdown_background();
                ended
            }
            Err(error) => Err(Lost(format!("no async runtime: {error}"))),
        };
        shared.exports.iter().for_each(|exporting| exporting.outbox.rest());
        match ended {
            Ok(()) => break,
            Err(_) if shared.hub.check_open().is_err() => break,
            Err(Lost(reason)) => shared.disconnected(reason),
        }
        nap(shared, &kept, next_delay(shared, &mut failed, begun));
    }
}

/// After how long to try again what has failed, and was begun then.
fn next_delay(shared: &Shared, failed: &mut u32, begun: Instant) -> Duration {
    if begun.elapsed() > STEADY {
        *failed = 0;
    }
    *failed += 1;
    let seed = u64::from(shared.hub.number()) ^ u64::from(*failed);
    shared.settings.reconnect.delay(*failed, seed)
}

/// What concerns one stream: if the broker refuses that it is tried again, and the rest of the bridge goes on.
async fn persist<F: Future<Output = Result<(), Lost>>>(
    shared: &Shared,
    trouble: &Trouble,
    part: impl Fn() -> F,
) -> Result<(), Lost> {
    let mut failed = 0;
    loop {
        let begun = Instant::now();
        let Err(Lost(reason)) = part().await else { return Ok(()) };
        shared.hub.check_open()?;
        if !trouble.is_forbidden() {
            shared.troubled(trouble, reason);
        }
        tokio::time::sleep(next_delay(shared, &mut failed, begun)).await;
    }
}

/// Whether it is to end, and another connection is of no use, or its time is over.
fn is_over(shared: &Shared, kept: &Kept) -> bool {
    let is_idle = || {
        kept.consuming.iter().all(|one| one.borrow().is_settled())
            && shared.exports.iter().all(Exporting::is_empty)
    };
    shared.deadline().is_some_and(|deadline| Instant::now() >= deadline || is_idle())
}

/// Sleeps for so long, or until the bridge is to end: then for a moment at the most.
fn nap(shared: &Shared, kept: &Kept, delay: Duration) {
    let until = Instant::now() + delay;
    while let Some(left) = until.checked_duration_since(Instant::now())
        && !is_over(shared, kept)
    {
        std::thread::sleep(left.min(LOOK_AGAIN));
    }
}

/// Resolves when the time to end is over.
async fn deadline_over(shared: &Shared) {
    let mut closing = shared.closing.subscribe();
    loop {
        let deadline = *closing.borrow_and_update();
        tokio::select! {
            () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now).into()),
                if deadline.is_some() => return,
            // Earlier than it was, maybe.
            _ = closing.changed() => {}
        }
    }
}

/// Ok: it has ended as it was told to.
async fn connect_and_serve(shared: &Shared, kept: &Kept) -> Result<(), Lost> {
    let (tell, mut told) = mpsc::unbounded_channel();
    let named = shared.settings.addresses()?;
    let connect = connect(shared, kept.cluster.with(named.clone()), tell);
    let needless = async {
        closing(shared).await;
        while !is_over(shared, kept) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    let client = tokio::select! {
        client = connect => client?,
        () = needless => return Ok(()),
    };
    let _told = Told { client: client.clone(), cluster: &kept.cluster, named };
    let session =
        Session { shared, requests: Requests::new(&client).await?, client, window: &kept.window };
    let server = session.client.server_info();
    shared.connected(&server);
    if !places::is_safe(&server.version) {
        shared.old_version(&server.version);
    }
    let mut sending: FuturesUnordered<Part<'_>> = FuturesUnordered::new();
    for ((exporting, storing), taken) in shared.exports.iter().zip(&kept.storing).zip(&kept.taken) {
        let session = &session;
        sending.push(match exporting.rule.stream {
            None => Box::pin(export(session, exporting, taken)),
            Some(_) => Box::pin(persist(shared, &exporting.trouble, move || {
                store(session, exporting, storing, taken)
            })),
        });
    }
    let mut others: FuturesUnordered<Part<'_>> = FuturesUnordered::new();
    others.push(Box::pin(session.requests.receive(&session)));
    others.push(Box::pin(session.requests.answer(&session)));
    others.push(Box::pin(asks::answer(&session, &kept.asks)));
    for (importing, consuming) in shared.imports.iter().zip(&kept.consuming) {
        match &importing.rule.stream {
            None => others.push(Box::pin(import(&session, importing))),
            Some(source) => {
                let session = &session;
                others.push(Box::pin(persist(shared, &importing.trouble, move || {
                    consume(session, importing, source, consuming)
                })));
            }
        }
    }
    let over = deadline_over(shared);
    tokio::pin!(over);
    loop {
        tokio::select! {
            event = told.recv() => match event {
                Some(Event::Disconnected | Event::Closed) | None => {
                    return Err(Lost("the connection is lost".into()));
                }
                Some(Event::LameDuckMode) => return Err(Lost("the server is about to stop".into())),
                // The client has dropped a message, as an import has not taken those before; it does not say which.
                Some(Event::SlowConsumer(_)) => count(&shared.lost),
                Some(Event::ServerError(error)) => shared.forbidden(&error.to_string()),
                Some(_) => {}
            },
            Some(ended) = sending.next(), if !sending.is_empty() => {
                ended?;
                let is_to_end = shared.deadline().is_some() || shared.hub.check_open().is_err();
                if sending.is_empty() && is_to_end {
                    break;
                }
            }
            Some(ended) = others.next() => ended?,
            () = &mut over => return Ok(()),
            () = closing(shared), if sending.is_empty() => break,
        }
    }
    // All that waited was handed over: what the hub has taken on is worked off, and the last acknowledgements go.
    drop(sending);
    let settled = async {
        while kept.consuming.iter().any(|one| !one.borrow().is_settled()) {
            tokio::select! {
                Some(ended) = others.next() => ended?,
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
        }
        session.client.flush().await?;
        Ok(())
    };
    tokio::select! {
        settled = settled => settled,
        () = over => Ok(()),
    }
}

/// Connects, to one of the servers, once.
async fn connect(
    shared: &Shared,
    servers: Vec<ServerAddr>,
    tell: mpsc::UnboundedSender<Event>,
) -> Result<Client, Lost> {
    let buffer = shared.imports.iter().map(|import| import.rule.buffer).max().unwrap_or(1);
    let was_connected = Arc::new(AtomicBool::new(false));
    let (seen, lost) = (Arc::clone(&was_connected), tell.clone());
    let options: ConnectOptions = shared
        .settings
        .options()?
        .client_capacity(CLIENT_CAPACITY)
        .subscription_capacity(buffer)
        .event_callback(move |event| {
            if event == Event::Connected {
                seen.store(true, Relaxed);
            }
            // Who would hear it is gone with the connection.
            let _gone = tell.send(event);
            core::future::ready(())
        })
        // It connects once: see the first invariant.
        .reconnect_delay_callback(move |_| match was_connected.load(Relaxed) {
            true => {
                // Its own event is not sure to come while others flood.
                let _gone = lost.send(Event::Disconnected);
                Duration::from_secs(86_400)
            }
            false => Duration::ZERO,
        });
    let connected = options.connect(servers).await;
    connected.map_err(|error| {
        let error = error.to_string();
        // What comes in place of TLS.
        let hint = match error.contains("InvalidContentType") {
            true => ": it does not speak TLS, which is required",
            false => "",
        };
        Lost(format!("{}: {error}{hint}", shared.settings.shown()))
    })
}
