//! The event hub: keyed publish/subscribe inside one process.
//!
//! Publishers hand over a key and a payload; the hub finds the subscriptions; each works through a
//! mailbox of its own in a context of its own, and what one of them does never touches another.
//!
//! ```text
//!                      ┌─ literal ──┐
//!   publish ─► key ─► route ─────────► channels ─► mailboxes ─► ready ─► services ─► handlers
//!             (interned) └─ trie of patterns      (capacity,   (hub's   (slots of
//!                            (generation)          overflow)    list)    the pool)
//! ```
//!
//! # Words
//!
//! | word | what it is | file |
//! |---|---|---|
//! | key | what a message is published with; interned | `key.rs`, `intern.rs` |
//! | pattern | what a subscription asks for: a key, or one with wildcards | `key.rs` |
//! | channel | all subscriptions of one pattern; a key's is all that is kept of it | `route.rs` |
//! | route | the channels that match a key | `route.rs` |
//! | stored message | one publication, however many subscribe | `message.rs` |
//! | receipt | what its publisher is told | `receipt.rs`, `publish.rs` |
//! | subscription | a pattern, a handler and a mailbox | `subscribe.rs`, `handler.rs` |
//! | mailbox | what waits for one subscription; its phases and invariants | `mailbox.rs` |
//! | puller | a thread of the host that takes messages itself | `pull.rs` |
//! | ring | where plain subscriptions of a channel read their messages in place | `ring.rs` |
//! | run | one thread serves one mailbox for a while | `execute.rs` |
//! | ready list, service | the mailboxes to be served, and the slots of the pool that do it | `ready.rs` |
//! | strand | the hub's own serial context: one order over all keys | `execute.rs` |
//! | together | messages that everybody takes, or nobody | `together.rs` |
//! | filter | what of the messages comes into the mailbox | `filter.rs` |
//! | supervision | what becomes of handlers that fail, and of their messages | `supervise.rs`, `care.rs` |
//! | group | subscriptions that share the messages of their pattern | `group.rs`, `share.rs` |
//! | request | a message with an inbox to reply to | `request.rs` |
//! | topic | a key or pattern whose messages are values of one type | `topic.rs` |
//! | dead letter | a message that a subscription could not deal with | `dead.rs` |
//! | history | what was published, in memory and on disk; replay | `history/mod.rs` |
//! | notice | what the hub tells of itself, under `$SYS.` | `notice.rs` |
//! | books | what has been counted | `stats.rs` |
//! | threshold | a limit for a figure of a registry | `threshold.rs` |
//! | figures | the books of all, to be read | `figures.rs` |
//!
//! # Invariants
//!
//! 1. Messages of one publisher reach a subscription in the order in which they were published, unless its
//!    mailbox regards priorities, or its handler runs on several threads at once.
//! 2. A handler that is not for several threads is on one at a time. (`mailbox.rs`)
//! 3. After unsubscribing with `Sync` no handler runs, and it has been dropped, once.
//! 4. Conservation: the sum over all messages of the subscriptions they matched = delivered + failed +
//!    dead-lettered + dropped + rejected + discarded + waiting + running. Every message that a full mailbox
//!    has dropped or rejected is in the lag mark of a later one.
//! 5. No lock is held while a handler runs, inline ones included, nor while one is dropped.
//! 6. Publishing takes time with the subscriptions that match, and not with the number of keys or of other
//!    subscriptions.
//!
//! # What cannot be isolated
//!
//! Handlers share the process. One that crashes it, or writes where it must not, takes all down; one that
//! never returns keeps its thread of the pool until it does. A handler that panics or fails touches
//! nobody else.
//!
//! # What it rests on
//!
//! 1. **A key knows who subscribes.** It is interned: all that is kept of it is one channel, which has those who
//!    subscribe to it by name, and the channels of the patterns that match it, made anew when the set of patterns
//!    has changed (`route.rs`). So publishing takes time with those who get the message, and goes from the key to
//!    the one who alone subscribes inline in one step.
//! 2. **A subscription has no slot of the pool.** The hub has a few services, which are slots, and one list of
//!    mailboxes to be served (`ready.rs`), with a shelf for each service, so that neighbours in memory are not
//!    served by two threads at once. A million idle subscriptions are only memory.
//! 3. **A mailbox is a value under a lock** (`mailbox.rs`), held for a few steps, and never while code of the user
//!    runs. Its run takes the handler out of it, so a serial handler cannot be on two threads.
//! 4. **What is tried again stays in front.** A message that a serial handler failed at is held ahead of its
//!    mailbox until its time has come, and nothing passes it; a timer brings it back, and no thread waits. A drain
//!    of the pool, and the end of its last owner, waits for it if its time comes before the deadline.
//! 5. **Restarts are counted as Erlang/OTP counts them** (`supervise.rs`): when a message is given up, and at every
//!    panic. Past the intensity nothing is served; all mail of the subscription, or of its supervisor's, becomes
//!    dead letters, which can be delivered again.
//! 6. **A key of a group has one owner, and a fence** (`group.rs`). When the members change a key may move
//!    (rendezvous hashing moves the fewest), and the new owner gets nothing of it before the old one has finished.
//! 7. **An inbox is an entry in a table.** The hub subscribes once to all of them, inline (`request.rs`).
//! 8. **The books balance**: what matched was delivered, has failed, is a dead letter, was dropped, rejected or
//!    discarded, waits, or runs. A message is a dead letter before it is counted as one.
//! 9. **Plain subscriptions read in place**, mailboxes that the host pulls among them. A message is appended once
//!    to the channel's ring, and each of them reads it there through a cursor, many at a time. Whoever falls behind
//!    by its capacity goes on its own, and comes back when its mailbox is empty: one that is slow holds up nobody
//!    (`ring.rs`). Slots are written again when nobody reads them; what is `unsafe` about that is in `page.rs`.
//!    What a ring needs while messages are in it, it has only then: most of a million channels are idle.

mod care;
mod dead;
mod execute;
mod figures;
mod filter;
mod group;
mod handler;
pub mod history;
mod intern;
mod key;
mod mailbox;
mod message;
#[cfg(all(test, loom))]
mod models;
mod notice;
mod publish;
mod publisher;
mod pull;
mod ready;
mod request;
mod ring;
mod route;
mod share;
mod stats;
mod subscribe;
mod supervise;
#[cfg(feature = "metrics")]
mod threshold;
mod together;
mod topic;

pub use crate::error::receipt::Receipt;
pub use crate::time::{Backoff, Jitter, Rate, Retry};
pub use care::Restart;
pub use dead::{DeadFilter, DeadLetter, DeadReason, DeadStats, Redelivered};
pub use figures::HUB_LOG_TARGET;
pub use figures::{HubRates, HubStats, KeyFigures, PublisherFigures, SubscriptionFigures};
pub use filter::Filter;
pub use group::Balance;
pub use handler::{Answer, Failure};
pub use key::{Key, Pattern};
pub use mailbox::Overflow;
pub use message::{Headers, INLINE, Message, Payload, Priority, Received, Stored};
pub use notice::{ErrorFilter, ErrorRecord, NoticeStats, Severity};
pub use publish::{Publication, ToKey};
pub use publisher::{Publisher, PublisherBuilder, PublisherStats};
pub use pull::Mailbox;
pub use request::{Asked, PendingReply, RequestError};
pub use stats::{HubAudit, SubscriptionStats};
pub use subscribe::{Execution, Subscription, SubscriptionBuilder, Unsubscribe, Unsubscribed};
pub use supervise::{Intensity, OnExhausted, OnFailure, RestartStrategy, Supervisor};
#[cfg(feature = "metrics")]
pub use threshold::{Crossing, Threshold, Watch, WatchBuilder};
pub use topic::{Codec, Json, Text, Topic};

#[cfg(feature = "capi")]
pub(crate) use self::{
    message::MAX_HEADERS, publish::Mode, pull::Pulled, together::MOST as MOST_TOGETHER,
};
use crate::error::{Error, Result};
use crate::pool::{self, Pool, Remains, Served, Shared, service};
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use crate::sync::{CachePadded, Mutex, MutexGuard, store_load_barrier};
use crate::sys::futex::Futex;
use core::fmt;
use core::time::Duration;
use history::{Histories, History, Replaying};
use mailbox::Books;
use ready::{Call, Ready};
use route::Router;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::Instant;
use subscribe::Subscriber;

/// An event hub over a [`Pool`], whose threads run its handlers beside everything else. Clones are the same
/// hub.
///
/// ```
/// use paceline::Pool;
/// use paceline::hub::{Hub, Message};
///
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let hub = Hub::new(&pool)?;
/// let (tell, told) = std::sync::mpsc::channel();
/// let _orders = hub.subscribe("orders.*.created", move |message: &Message<'_>| {
///     tell.send(message.key().to_string()).unwrap();
/// })?;
/// let receipt = hub.publish("orders.eu.created", "42")?;
/// assert_eq!((receipt.matched, receipt.enqueued), (1, 1));
/// assert_eq!(told.recv().unwrap(), "orders.eu.created");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Hub {
    pool: Pool,
    core: Arc<Core>,
}

/// What all parts of a hub share.
struct Core {
    me: Weak<Core>,
    shared: Arc<Shared>,
    keys: intern::Keys,
    router: Router,
    ready: Ready<Work>,
    services: OnceLock<Box<[pool::Key]>>,
    strand: Mutex<Strand>,
    spares: ring::Spares,
    rules: mailbox::RuleBook,
    max_payload: usize,
    dead: Arc<dead::DeadLetters>,
    groups: share::Groups,
    requests: Arc<request::Requests>,
    sequence: CachePadded<AtomicU64>,
    subscriptions: AtomicU64,
    histories: Histories,
    notices: notice::Notices,
    key_counts: Option<figures::KeyCounts>,
    publishers: Mutex<Vec<Weak<publisher::Inner>>>,
    replays: Mutex<Vec<Weak<Replaying>>>,
    /// Those that nobody else keeps, whether they wait for messages, a retry, or the end of a suspension.
    detached: Mutex<Vec<Arc<Replaying>>>,
    /// The books of subscriptions that have ended.
    ended: Mutex<Books>,
    closed: AtomicBool,
    /// Publishers that wait for room in mailboxes of handlers: a drain waits for them. Whom the end of the pool has turned
    /// away stays counted.
    held_up: AtomicU32,
    /// Changes when something has ended that a thread may wait for.
    changed: Futex,
    /// Threads that wait for that.
    waiters: AtomicU32,
}

/// What can be on the ready list.
enum Work {
    Mailbox(Arc<Subscriber>),
    Replay(Arc<Replaying>),
    Strand,
    Notices,
    /// A reply to a request that has a function.
    Reply(request::Ended),
}

/// The order of all messages for subscriptions on the strand: the subscription, and the message's number in
/// its mailbox.
#[derive(Default)]
struct Strand {
    order: VecDeque<(Arc<Subscriber>, u64)>,
    /// It is on the ready list, or being served.
    scheduled: bool,
}

/// Settings of a [`Hub`].
#[must_use = "a builder does nothing until `build`"]
pub struct HubBuilder<'a> {
    pool: &'a Pool,
    max_payload: usize,
    dead_letters: usize,
    histories: Vec<History>,
    notices: notice::Settings,
    count_keys: usize,
    #[cfg(feature = "metrics")]
    registry: Option<(crate::metrics::Registry, String)>,
    log_stats: Option<Duration>,
}

/// The most that `max_payload` can be.
pub(crate) const MAX_PAYLOAD: usize = 1 << 30;
/// Threads that wait look so often whether the pool has ended.
const NAP: Duration = Duration::from_millis(100);
/// As above, by those who wait for what is not always told: at first, and twice as long each time.
const SHORT_NAP: Duration = Duration::from_millis(1);
/// More services than this would not be faster.
const MAX_SERVICES: usize = 64;

impl HubBuilder<'_> {
    /// The largest payload, 1 byte to 1 GiB; default 16 MiB.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// How many dead letters are kept, 0 to 10 000 000; default 10 000. When there are more the oldest is
    /// forgotten.
    pub fn dead_letters(mut self, most: usize) -> Self {
        self.dead_letters = most;
        self
    }

    /// Adds a history; up to 31. [`Hub::query`] and [`Hub::replay`] ask the first that keeps all they want.
    pub fn history(mut self, history: History) -> Self {
        self.histories.push(history);
        self
    }

    /// A hub with these settings.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the setting; [`Error::Os`] names the archive that cannot be opened, and what
    /// is wrong with it; [`Error::Full`] when all `max_handles` of the pool are in use,
    /// [`Error::ShutDown`], [`Error::Forked`].
    pub fn build(self) -> Result<Hub> {
        static HUBS: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(1);
        let shared = Arc::clone(self.pool.shared());
        shared.check_open()?;
        if !(1..=MAX_PAYLOAD).contains(&self.max_payload) {
            return Err(Error::invalid("max_payload", self.max_payload, "1 to 1073741824 bytes"));
        }
        let histories = Histories::open(self.histories, &shared)?;
        let services = shared.ready.members.len().clamp(1, MAX_SERVICES);
        let dead = Arc::new(dead::DeadLetters::new(self.dead_letters)?);
        let notices = notice::Notices::new(self.notices)?;
        let key_counts = figures::KeyCounts::new(self.count_keys)?;
        figures::check_log_period(self.log_stats)?;
        let core = Arc::new_cyclic(|me| Core {
            me: Weak::clone(me),
            keys: intern::Keys::new(HUBS.fetch_add(1, core::sync::atomic::Ordering::Relaxed)),
            router: Router::new(),
            ready: Ready::new(services),
            services: OnceLock::new(),
            strand: Mutex::default(),
            spares: ring::Spares::default(),
            rules: mailbox::RuleBook::default(),
            max_payload: self.max_payload,
            dead,
            groups: share::Groups::default(),
            requests: Arc::default(),
            sequence: CachePadded::new(AtomicU64::new(histories.first_sequence() - 1)),
            subscriptions: AtomicU64::new(0),
            histories,
            notices,
            key_counts,
            publishers: Mutex::default(),
            replays: Mutex::default(),
            detached: Mutex::default(),
            ended: Mutex::default(),
            closed: AtomicBool::new(false),
            held_up: AtomicU32::new(0),
            changed: Futex::new(0),
            waiters: AtomicU32::new(0),
            shared,
        });
        core.histories.belong_to(&core.me);
        core.open_services(services)?;
        let served: Weak<Core> = Arc::downgrade(&core);
        core.shared.end.serve(served);
        #[cfg(feature = "metrics")]
        if let Some((registry, name)) = self.registry {
            figures::attach(&registry, name, &core.me);
        }
        if let Some(every) = self.log_stats {
            core.log_later(every, core.audit(), crate::sys::clock::now());
        }
        Ok(Hub { pool: self.pool.clone(), core })
    }
}

impl Hub {
    /// A hub with default settings.
    ///
    /// # Errors
    /// As [`HubBuilder::build`].
    pub fn new(pool: &Pool) -> Result<Hub> {
        Self::builder(pool).build()
    }

    /// Settings to build a hub from.
    pub fn builder(pool: &Pool) -> HubBuilder<'_> {
        HubBuilder {
            pool,
            max_payload: 16 << 20,
            dead_letters: 10_000,
            histories: Vec::new(),
            notices: notice::Settings::default(),
            count_keys: 0,
            #[cfg(feature = "metrics")]
            registry: None,
            log_stats: None,
        }
    }

    /// The pool whose threads run the handlers.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The key of this text. Publishing with a key is faster than with its text, which is looked up.
    ///
    /// # Errors
    /// [`Error::Invalid`] says what is wrong with it.
    pub fn key(&self, text: &str) -> Result<Key> {
        key::check_key(text)?;
        Ok(self.core.keys.intern(text))
    }

    /// Subscribes with default settings: serial, and up to 1024 messages wait. Publishers wait for room then; on a thread
    /// of the pool or in a handler, publishing fails instead.
    ///
    /// # Errors
    /// As [`SubscriptionBuilder::serve`].
    pub fn subscribe<F, A>(&self, pattern: &str, handler: F) -> Result<Subscription>
    where
        F: FnMut(&Message<'_>) -> A + Send + 'static,
        A: Answer,
    {
        self.subscription(pattern).serve(handler)
    }

    /// Settings of a subscription to a key or pattern.
    pub fn subscription<'a>(&'a self, pattern: &'a str) -> SubscriptionBuilder<'a> {
        SubscriptionBuilder::new(self, pattern)
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("published", &self.core.published()).finish_non_exhaustive()
    }
}

impl Core {
    fn open_services(self: &Arc<Self>, count: usize) -> Result<()> {
        let mut keys = Vec::with_capacity(count);
        for number in 0..count {
            let mut service = execute::Service::new(Arc::downgrade(self), number);
            match service::open(&self.shared, move || service.serve()) {
                Ok(key) => keys.push(key),
                Err(error) => {
                    keys.iter().for_each(|&key| service::close(&self.shared, key));
                    return Err(error);
                }
            }
        }
        let _first = self.services.set(keys.into());
        Ok(())
    }

    /// Calls a service, if the ready list asks for one.
    #[inline]
    fn call(&self, call: Call) {
        if let Some(service) = call
            && let Some(keys) = self.services.get()
        {
            service::call(&self.shared, keys[service]);
        }
    }

    #[inline]
    fn check_open(&self) -> Result<()> {
        self.shared.check_open()?;
        if self.is_closed() { Err(Error::ShutDown) } else { Ok(()) }
    }

    /// Whether the pool has ended. Relaxed: beside the end a publication learns it from the locks under which it is
    /// offered.
    #[inline]
    fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Whether this thread is one of the pool's, or sweeps it up.
    #[inline]
    fn is_inside(&self) -> bool {
        self.shared.may_not_wait()
    }

    fn published(&self) -> u64 {
        self.sequence.load(Relaxed)
    }

    fn next_subscription(&self) -> u64 {
        self.subscriptions.fetch_add(1, Relaxed) + 1
    }

    fn strand(&self) -> MutexGuard<'_, Strand> {
        self.strand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_ended(&self) -> MutexGuard<'_, Books> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_replay(&self, replaying: &Arc<Replaying>) {
        let mut replays = self.replays.lock().unwrap_or_else(PoisonError::into_inner);
        replays.retain(|replaying| replaying.strong_count() > 0);
        replays.push(Arc::downgrade(replaying));
    }

    /// Keeps a replay as long as the hub.
    fn keep_replay(&self, replaying: &Arc<Replaying>) {
        let mut detached = self.detached.lock().unwrap_or_else(PoisonError::into_inner);
        detached.push(Arc::clone(replaying));
    }

    /// All replays with a handler that there are.
    fn replays(&self) -> Vec<Arc<Replaying>> {
        let replays = self.replays.lock().unwrap_or_else(PoisonError::into_inner);
        replays.iter().filter_map(Weak::upgrade).collect()
    }

    /// Sleeps until the condition holds, which `announce` follows.
    fn wait_until(&self, condition: impl Fn() -> bool) {
        self.wait_for(None, condition);
    }

    /// Sleeps until the condition holds, or the deadline is over. Whether it holds.
    fn wait_for(&self, deadline: Option<Instant>, condition: impl Fn() -> bool) -> bool {
        self.waiters.fetch_add(1, AcqRel);
        let holds = loop {
            // Acquire: a change after this load changes the word, and is not slept through.
            let changed = self.changed.load(Acquire);
            // Against *change, then look for waiters* in `announce`.
            store_load_barrier();
            if condition() {
                break true;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break false;
            }
            self.changed.wait(changed, left);
        };
        self.waiters.fetch_sub(1, AcqRel);
        holds
    }

    /// So many messages that were held for a retry have been taken back.
    fn let_go(&self, held: usize) {
        if held > 0 {
            self.ready.let_go(held);
            self.shared.recheck_drain();
        }
    }

    /// Something has ended that somebody may wait for.
    fn announce(&self) {
        // Against *announce waiting, then look at the condition* in `wait_until`.
        store_load_barrier();
        if self.waiters.load(Relaxed) > 0 {
            self.changed.fetch_add(1, AcqRel);
            self.changed.wake(i32::MAX);
        }
    }
}

impl Served for Core {
    fn remains(&self, deadline: u64) -> Remains {
        // First: whoever waited for room is not counted any more when its message is in the list.
        match self.held_up.load(Acquire) {
            0 => self.ready.remains(deadline),
            _ => Remains::Work,
        }
    }

    fn left(&self) -> u64 {
        self.audit().waiting + u64::from(self.held_up.load(Acquire))
    }

    /// Behind this, no mailbox takes a message, and what waits is all there is: see *shut* in `mailbox.rs`. Each thread that
    /// ends the pool shuts all of them, since another one may not be through yet.
    fn close(&self) {
        self.closed.store(true, Relaxed);
        // What a group does under its lock is done before its members are shut, or sees that the hub is closed.
        self.for_each_group(|_, _| ());
        self.for_each_subscriber(|subscriber| subscriber.shut(self));
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if !self.shared.is_forked() {
            let keys = self.services.get().into_iter().flatten();
            keys.for_each(|&key| service::close(&self.shared, key));
            let keys = self.keys.all();
            keys.iter().for_each(|key| key.channel().clear());
            self.router.channels().iter().for_each(|channel| channel.clear());
            let mut detached = self.detached.lock().unwrap_or_else(PoisonError::into_inner);
            let detached = core::mem::take(&mut *detached);
            detached.iter().for_each(Replaying::leave_log);
            let _panicked = pool::contain(|| drop(detached));
        }
    }
}
