//! What all parts of a hub share.

use crate::error::{Error, Result};
use crate::hub::channel::ring::{Host, Spares};
use crate::hub::channel::router::Router;
use crate::hub::group::members::Groups;
use crate::hub::history::keep::Histories;
use crate::hub::history::replay_stats::ReplayFigures;
use crate::hub::keys::intern::Keys;
use crate::hub::mailbox::counters::Counters;
use crate::hub::mailbox::rules::RuleBook;
use crate::hub::mailbox::subscriber::Subscriber;
use crate::hub::publish::publisher_stats::PublisherInner;
use crate::hub::request::requests::{Ended, Requests};
use crate::hub::run::ready::{Call, Ready};
use crate::hub::supervise::dead::DeadLetters;
use crate::hub::system::key_counts::KeyCounts;
use crate::pool::{self, Shared, TurnClock, service};
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use crate::sync::{CachePadded, Mutex, MutexGuard, store_load_barrier};
use crate::sys::futex::Futex;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::Instant;

/// What all parts of a hub share.
pub(in crate::hub) struct Core {
    /// Itself, for timers.
    pub(in crate::hub) me: Weak<Core>,
    /// The pool.
    pub(in crate::hub) shared: Arc<Shared>,
    /// All keys, by their text.
    pub(in crate::hub) keys: Keys,
    /// The patterns with wildcards.
    pub(in crate::hub) router: Router,
    /// What is to be served.
    pub(in crate::hub) ready: Ready<Work>,
    /// The slots of the pool that serve it.
    pub(in crate::hub) services: OnceLock<Box<[pool::Key]>>,
    /// The order of messages on the strand.
    pub(in crate::hub) strand: Mutex<Strand>,
    /// Segments that no ring uses.
    pub(in crate::hub) spares: Spares,
    /// The rules of mailboxes, each once.
    pub(in crate::hub) rules: RuleBook,
    /// In bytes.
    pub(in crate::hub) max_payload: usize,
    /// Dead letters.
    pub(in crate::hub) dead: Arc<DeadLetters>,
    /// Groups, by pattern and name.
    pub(in crate::hub) groups: Groups<Subscriber>,
    /// Requests that wait for a reply.
    pub(in crate::hub) requests: Arc<Requests>,
    /// The number of the last message.
    pub(in crate::hub) sequence: CachePadded<AtomicU64>,
    /// Messages of this hub have been tracked: mailboxes keep in mind which of them the host has taken.
    pub(in crate::hub) tracks: AtomicBool,
    /// How many subscriptions there were.
    pub(in crate::hub) subscriptions: AtomicU64,
    /// What was published.
    pub(in crate::hub) histories: Histories,
    /// What the hub tells of itself.
    pub(in crate::hub) notices: crate::hub::system::notice::Notices,
    /// How often keys were published, if that is counted.
    pub(in crate::hub) key_counts: Option<KeyCounts>,
    /// Publishers with settings of their own.
    pub(in crate::hub) publishers: Mutex<Vec<Weak<PublisherInner>>>,
    /// Replays to handlers.
    pub(in crate::hub) replays: Mutex<Vec<Weak<dyn ReplayRun>>>,
    /// Those that nobody else keeps, whether they wait for messages, a retry, or the end of a suspension.
    pub(in crate::hub) detached: Mutex<Vec<Arc<dyn ReplayRun>>>,
    /// The counters of subscriptions that have ended.
    pub(in crate::hub) ended: Mutex<Counters>,
    /// The pool has ended: nothing is accepted.
    pub(in crate::hub) closed: AtomicBool,
    /// Publishers that wait for room in mailboxes of handlers: a drain waits for them. Whom the end of the pool has turned
    /// away stays counted.
    pub(in crate::hub) held_up: AtomicU32,
    /// Changes when something has ended that a thread may wait for.
    pub(in crate::hub) changed: Futex,
    /// Threads that wait for that.
    pub(in crate::hub) waiters: AtomicU32,
    /// What its figures call it.
    pub(in crate::hub) name: Mutex<Option<String>>,
}

/// A replay to a handler, as far as its hub has to do with it.
pub(in crate::hub) trait ReplayRun: Send + Sync {
    /// Runs it for a while. True: there may be more, and it is to be listed again.
    fn run(self: Arc<Self>, core: &Core, turn: &mut TurnClock) -> bool;
    /// The hub ends: nothing wakes it any more.
    fn leave_log(self: Arc<Self>);
    /// What is not among the hub's counters: its own, what waits and what runs.
    fn audit(&self) -> Option<(Counters, u64, u64)>;
    /// None: it has ended.
    fn figures(&self) -> Option<ReplayFigures>;
}

/// What can be on the ready list.
pub(in crate::hub) enum Work {
    /// The mailbox of a subscription.
    Mailbox(Arc<Subscriber>),
    Replay(Arc<dyn ReplayRun>),
    /// The next messages of the strand.
    Strand,
    /// Notices that were not published yet.
    Notices,
    /// A reply to a request that has a function.
    Reply(Ended),
}

/// The order of all messages for subscriptions on the strand: the subscription, and the message's number in
/// its mailbox.
#[derive(Default)]
pub(in crate::hub) struct Strand {
    pub(in crate::hub) order: VecDeque<(Arc<Subscriber>, u64)>,
    /// It is on the ready list, or being served.
    pub(in crate::hub) scheduled: bool,
}

/// The most that `max_payload` can be.
pub(crate) const MAX_PAYLOAD: usize = 1 << 30;
/// More services than this would not be faster.
pub(in crate::hub) const MAX_SERVICES: usize = 64;

impl Host for Core {
    fn spares(&self) -> &Spares {
        &self.spares
    }

    #[inline]
    fn list(&self, count: usize, called: impl Iterator<Item = (usize, Arc<Subscriber>)>) -> Call {
        let works = called.map(|(place, subscriber)| (place, Work::Mailbox(subscriber)));
        self.ready.push_all(count, works)
    }
}

impl Core {
    /// Calls a service, if the ready list asks for one.
    #[inline]
    pub(in crate::hub) fn call(&self, call: Call) {
        if let Some(service) = call
            && let Some(keys) = self.services.get()
        {
            service::call(&self.shared, keys[service]);
        }
    }

    #[inline]
    pub(in crate::hub) fn check_open(&self) -> Result<()> {
        self.shared.check_open()?;
        if self.is_closed() { Err(Error::ShutDown) } else { Ok(()) }
    }

    /// From now on mailboxes keep in mind which messages the host has taken.
    pub(in crate::hub) fn begin_to_track(&self) {
        // Relaxed: a mailbox's lock orders it before the message that is tracked.
        self.tracks.store(true, Relaxed);
    }

    #[inline]
    pub(in crate::hub) fn tracks(&self) -> bool {
        self.tracks.load(Relaxed)
    }

    /// Whether the pool has ended. Relaxed: beside the end a publication learns it from the locks under which it is
    /// offered.
    #[inline]
    pub(in crate::hub) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Whether this thread is one of the pool's, or sweeps it up.
    #[inline]
    pub(in crate::hub) fn is_inside(&self) -> bool {
        self.shared.may_not_wait()
    }

    pub(in crate::hub) fn published(&self) -> u64 {
        self.sequence.load(Relaxed)
    }

    pub(in crate::hub) fn next_subscription(&self) -> u64 {
        self.subscriptions.fetch_add(1, Relaxed) + 1
    }

    pub(in crate::hub) fn strand(&self) -> MutexGuard<'_, Strand> {
        self.strand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::hub) fn lock_ended(&self) -> MutexGuard<'_, Counters> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::hub) fn add_replay(&self, replay: Arc<dyn ReplayRun>) {
        let mut replays = self.replays.lock().unwrap_or_else(PoisonError::into_inner);
        replays.retain(|replaying| replaying.strong_count() > 0);
        replays.push(Arc::downgrade(&replay));
    }

    /// Keeps a replay as long as the hub.
    pub(in crate::hub) fn keep_replay(&self, replay: Arc<dyn ReplayRun>) {
        let mut detached = self.detached.lock().unwrap_or_else(PoisonError::into_inner);
        detached.push(replay);
    }

    /// All replays with a handler that there are.
    pub(in crate::hub) fn replays(&self) -> Vec<Arc<dyn ReplayRun>> {
        let replays = self.replays.lock().unwrap_or_else(PoisonError::into_inner);
        replays.iter().filter_map(Weak::upgrade).collect()
    }

    /// Sleeps until the condition holds, which `announce` follows.
    pub(in crate::hub) fn wait_until(&self, condition: impl Fn() -> bool) {
        self.wait_for(None, condition);
    }

    /// Sleeps until the condition holds, or the deadline is over. Whether it holds.
    pub(in crate::hub) fn wait_for(
        &self,
        deadline: Option<Instant>,
        condition: impl Fn() -> bool,
    ) -> bool {
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
    pub(in crate::hub) fn let_go(&self, held: usize) {
        if held > 0 {
            self.ready.let_go(held);
            self.shared.recheck_drain();
        }
    }

    /// Something has ended that somebody may wait for.
    pub(in crate::hub) fn announce(&self) {
        // Against *announce waiting, then look at the condition* in `wait_until`.
        store_load_barrier();
        if self.waiters.load(Relaxed) > 0 {
            self.changed.fetch_add(1, AcqRel);
            self.changed.wake(i32::MAX);
        }
    }
}
