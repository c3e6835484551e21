//! Replay: what was published, and then what is published, to one handler or one puller.
//!
//! # The states of a replay with a handler
//!
//! | state | who goes on |
//! |---|---|
//! | LISTED | it is on the hub's ready list: the service that takes it runs it |
//! | RUNS | one thread reads the log and calls the handler |
//! | SLEEPS | the log has it among its sleepers: whoever records wakes it |
//! | HELD | a timer: the message that the handler failed at is to be tried again |
//! | SUSPENDED | nobody, until it is resumed: what comes is in the history |
//! | ENDED | nobody; the handler has been dropped |
//!
//! ```text
//!             takes it                  at the end of the log, not woken meanwhile
//!   LISTED ─────────────► RUNS ─────────────────────────────► SLEEPS
//!     ▲                    │ ▲ woken meanwhile: it reads on      │
//!     └── had its share ───┘                                     │
//!     └───────────────────────── a message is recorded ──────────┘
//!
//!   RUNS ── to be tried again ──► HELD ── its time has come ──► LISTED
//!   RUNS, SLEEPS, LISTED when its turn comes ── suspended ──► SUSPENDED ── resumed ──► LISTED
//! ```
//!
//! # Invariants
//!
//! 1. At most one thread runs it, so the handler is on one thread at a time.
//! 2. It is asleep only while the log has it among its sleepers, or has taken it out to wake it: a wake that
//!    comes while it still RUNS is kept in `woken`.
//! 3. It ends once: by the thread that runs it, or, if none does, by the one that closes it.
//! 4. Whoever runs it has the cursor and the handler out of their place, and puts them back before it sleeps
//!    or is listed.
//! 5. What was read and has no end yet is kept with the cursor, in order, the message to be tried again first.
//! 6. Dead letters that are to be delivered again are taken as what is recorded is: they are put down, and it is woken,
//!    under one lock, and not when it is closing.
//! 7. offered = delivered + failed + dead + discarded + waiting + running, under one lock; at its end this moves to
//!    the hub's counters, and what waits is discarded.
//!
//! # Orderings
//!
//! The state is under one lock. It is taken by wakers, who hold the locks of other logs at most, and is
//! never held while a log is read or a handler runs.

use crate::error::{Error, Result};
use crate::hub::core::{Core, ReplayRun, Work};
use crate::hub::handle::Hub;
use crate::hub::history::asking::own_key;
use crate::hub::history::log::{Batch, Log, Sleeper};
use crate::hub::history::query::Query;
use crate::hub::history::replay_mailbox::{Pulling, ReplayMailbox};
use crate::hub::history::replay_stats::{ReplayFigures, ReplayStats};
use crate::hub::history::turn::{Next, State, Turn};
use crate::hub::mailbox::counters::Counters;
use crate::hub::mailbox::entry::Tried;
use crate::hub::mailbox::factory::{Renew, Told};
use crate::hub::mailbox::failure::Answer;
use crate::hub::mailbox::handler::Handler;
use crate::hub::mailbox::subscription::{Unsubscribe, Unsubscribed};
use crate::hub::message::{Message, Stored};
use crate::hub::run::depth::is_in_handler;
use crate::hub::run::inline::call_in_handler;
use crate::hub::supervise::burial::Who;
use crate::hub::supervise::dead::{Origin, Unfit};
use crate::hub::supervise::failure_policy::{
    After, FailurePolicy, FailureSettings, HandlerOf, Restart,
};
use crate::hub::supervise::failures::{failed, tell_resumption, tell_suspension};
use crate::hub::supervise::supervisor::{Find, Intensity, OnFailure, Supervised, Supervisor};
use crate::pool::{Timer, TurnClock, contain};
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{Acquire, Release};
use crate::sync::{Mutex, MutexGuard};
use crate::trace;
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, Weak};
use std::time::SystemTime;

/// Messages of one read.
pub(in crate::hub) const BATCH: usize = 64;
/// So many dead letters may wait to be delivered again.
pub(in crate::hub) const AGAIN: usize = 1024;
/// What becomes of the messages of one that is suspended.
pub(in crate::hub) const KEPT: &str = "what comes stays in the history";

/// Where a replay begins.
///
/// ```
/// use paceline::{Pool, hub::{Hub, Message, history::{History, ReplayFrom}}};
/// use std::sync::mpsc;
/// # fn main() -> paceline::Result<()> {
/// let hub = Hub::builder(&Pool::new()?).history(History::of("a")).build()?;
/// hub.publish("a", "before")?;
/// let (seen, saw) = mpsc::channel();
/// // What was kept, and then what comes, without a gap.
/// let _replay = hub.replay("a", ReplayFrom::Beginning).serve(move |message: &Message<'_>| {
///     let _receiver_may_be_gone = seen.send(message.payload().to_vec());
/// })?;
/// hub.publish("a", "after")?;
/// assert_eq!([saw.recv().unwrap(), saw.recv().unwrap()], [&b"before"[..], b"after"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReplayFrom {
    /// With the oldest message that is kept.
    Beginning,
    /// With the message of this number, or the next one that there is.
    Sequence(u64),
    /// With the first message that was published at this time or later, by the clock of the system.
    Time(SystemTime),
    /// With the last so many messages that are kept.
    Last(usize),
    /// With the next message.
    Now,
}

/// Settings of a replay; see [`Hub::replay`].
#[must_use = "nothing is replayed before `serve` or `mailbox`"]
pub struct ReplayBuilder<'a> {
    hub: &'a Hub,
    pattern: &'a str,
    from: ReplayFrom,
    failure: FailureSettings,
    acknowledged: bool,
}

impl Hub {
    /// Replays what a [history](super::History) has kept of the keys that the pattern matches, and goes on with
    /// what is published: each message once, in the order of their sequences. The history's pattern must match
    /// all that this one does.
    ///
    /// A message that was no longer kept when its turn came is lost; the next one tells how many
    /// ([`Message::lost_before`]), other keys of the history included.
    pub fn replay<'a>(&'a self, pattern: &'a str, from: ReplayFrom) -> ReplayBuilder<'a> {
        let failure = FailureSettings::default();
        ReplayBuilder { hub: self, pattern, from, failure, acknowledged: false }
    }
}

impl ReplayBuilder<'_> {
    /// What happens to a message that the handler fails at, or panics at; default: it becomes a dead letter.
    pub fn on_failure(mut self, policy: OnFailure) -> Self {
        self.failure.on_failure = policy;
        self
    }

    /// How many panics of the handler suspend the replay, and for how long; default: more than 3 in 5 seconds, for 1
    /// second, and each time for twice as long, up to 60 seconds. What comes meanwhile stays in the history.
    pub fn intensity(mut self, intensity: Intensity) -> Self {
        self.failure.intensity = Some(intensity);
        self
    }

    /// Supervises it together with others, replays or subscriptions; default: alone.
    pub fn supervisor(mut self, supervisor: &Supervisor) -> Self {
        self.failure.supervisor = Some(supervisor.clone());
        self
    }

    /// As [`SubscriptionBuilder::on_restart`](crate::hub::SubscriptionBuilder::on_restart).
    pub fn on_restart(mut self, f: impl Fn(&Restart<'_>) + Send + Sync + 'static) -> Self {
        self.failure.on_restart = Some(Arc::new(f));
        self
    }

    /// For a [`mailbox`](Self::mailbox) of a host that runs a handler of its own, as
    /// [`SubscriptionBuilder::acknowledged`](crate::hub::SubscriptionBuilder::acknowledged): what was taken counts as
    /// running until [`ReplayMailbox::acknowledge`] or [`ReplayMailbox::bury`], and the replay is among the figures of its
    /// hub. Default: what was taken counts as delivered.
    pub fn acknowledged(mut self) -> Self {
        self.acknowledged = true;
        self
    }

    /// To a handler, which runs on one thread of the pool at a time. Its failures are dealt with as those of a
    /// serial subscription are, but that messages which come while it is suspended stay in the history, and are
    /// delivered after [`Replay::resume`]. Its dead letters are delivered again by
    /// [`Hub::redeliver`](crate::hub::Hub::redeliver) as long as it lasts.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a bad pattern or setting, and if no history keeps all that it matches; [`Error::Os`] if the
    /// archive cannot be read; [`Error::ShutDown`], [`Error::Forked`].
    pub fn serve<F, A>(self, handler: F) -> Result<Replay>
    where
        F: FnMut(&Message<'_>) -> A + Send + 'static,
        A: Answer,
    {
        self.failure.check(HandlerOf::Hub, true)?;
        let (log, cursor) = self.cursor()?;
        let core = &self.hub.core;
        let supervisor = self.failure.supervisor.clone();
        let replaying = Arc::new(Replaying {
            core: Arc::downgrade(core),
            id: core.next_subscription(),
            pattern: self.pattern.into(),
            log,
            turn: Mutex::new(Turn::new()),
            work: Mutex::new(Some(Serving::new(cursor, Handler::serial(handler)))),
            again: Mutex::default(),
            policy: FailurePolicy::with(self.failure)?,
            counts: Mutex::default(),
            ended: AtomicBool::new(false),
        });
        core.add_replay(Arc::<Replaying>::clone(&replaying));
        if let Some(supervisor) = supervisor {
            supervisor.join(replaying.find());
        }
        core.call(core.ready.push(Work::Replay(Arc::<Replaying>::clone(&replaying))));
        Ok(Replay { core: Arc::clone(core), replaying, detached: false })
    }

    /// As [`serve`](Self::serve), with handlers of a factory's making, as
    /// [`SubscriptionBuilder::serve_factory`](crate::hub::SubscriptionBuilder::serve_factory) says.
    ///
    /// # Errors
    /// As there.
    pub fn serve_factory<M, F, A>(self, mut factory: M) -> Result<Replay>
    where
        M: FnMut() -> F + Send + 'static,
        F: FnMut(&Message<'_>) -> A + Send + 'static,
        A: Answer + 'static,
    {
        let first = factory();
        self.serve_renewed(first, move || Ok(factory()))
    }

    /// To whoever pulls.
    ///
    /// # Errors
    /// As [`serve`](Self::serve), and for settings of a handler's failures.
    pub fn mailbox(self) -> Result<ReplayMailbox> {
        let whose = if self.acknowledged { HandlerOf::Host } else { HandlerOf::Nobody };
        self.failure.check(whose, true)?;
        let (log, cursor) = self.cursor()?;
        let core = Arc::clone(&self.hub.core);
        let (id, supervisor) = (core.next_subscription(), self.failure.supervisor.clone());
        let policy = FailurePolicy::with(self.failure)?;
        let pulling = Arc::new(Pulling::new(id, self.pattern, self.acknowledged, policy));
        if self.acknowledged {
            core.add_replay(Arc::<Pulling>::clone(&pulling));
        }
        if let Some(supervisor) = supervisor {
            supervisor.join(pulling.find(&core));
        }
        Ok(ReplayMailbox { core, log, cursor: Mutex::new(cursor), pulling })
    }

    fn cursor(&self) -> Result<(Arc<Log>, Cursor)> {
        let core = &self.hub.core;
        core.check_open()?;
        let mut query = Query::of(self.pattern);
        let log = Arc::clone(&core.histories.covering(self.pattern)?.log);
        let next = match self.from {
            ReplayFrom::Beginning => 1,
            ReplayFrom::Now => log.next(),
            ReplayFrom::Sequence(sequence) => {
                query = query.sequences(sequence..=u64::MAX);
                log.start_of(&query)?
            }
            // Later messages may have earlier times, if the clock was set back.
            ReplayFrom::Time(time) => log.start_of(&query.clone().since(time))?,
            ReplayFrom::Last(count) => {
                let next = log.next();
                let found = log.read_last(&query.clone().last(count), count)?;
                found.first().map_or(next, |(position, _)| *position)
            }
        };
        let is_beginning = self.from == ReplayFrom::Beginning;
        Ok((log, Cursor { query, next, lost: 0, forgives: is_beginning }))
    }
}

impl Renew for ReplayBuilder<'_> {
    type Served = Replay;

    fn renews(&mut self, stale: Arc<AtomicBool>) {
        self.failure.stale = Some(stale);
    }

    fn serve_all(
        self,
        handler: impl FnMut(&Message<'_>) -> Told + Send + 'static,
    ) -> Result<Replay> {
        self.serve(handler)
    }
}

/// A place in a log.
pub(in crate::hub) struct Cursor {
    pub(in crate::hub) query: Query,
    pub(in crate::hub) next: u64,
    /// What was lost and no message has told yet.
    lost: u64,
    /// Nothing has come yet, and what is missing before the first was not asked for.
    forgives: bool,
}

impl Cursor {
    /// The next messages. An archive that cannot be read is a loss: it goes on with what is in memory.
    pub(super) fn read(
        &mut self,
        log: &Log,
        most: usize,
        sleeper: Option<&Arc<dyn Sleeper>>,
    ) -> Batch {
        let mut batch = log.read_on(&self.query, self.next, most, sleeper);
        self.next = batch.next;
        if let Some((lost_before, _)) = batch.records.first_mut() {
            let lost = core::mem::take(&mut self.lost) + *lost_before;
            *lost_before = if core::mem::take(&mut self.forgives) { 0 } else { lost };
        }
        self.lost += batch.lost;
        batch
    }
}

/// A replay with a handler.
pub(in crate::hub) struct Replaying {
    core: Weak<Core>,
    id: u64,
    pattern: Arc<str>,
    log: Arc<Log>,
    turn: Mutex<Turn>,
    work: Mutex<Option<Serving>>,
    /// Dead letters that are delivered again when what was read has been.
    again: Mutex<VecDeque<Stored>>,
    policy: FailurePolicy,
    counts: Mutex<Counts>,
    /// The handler has been dropped.
    ended: AtomicBool,
}

struct Serving {
    cursor: Cursor,
    handler: Handler,
    /// What was read and has no end yet, with the losses before each.
    pending: VecDeque<(u64, Stored)>,
    /// The failed attempts at the first of these.
    tried: Option<Box<Tried>>,
    /// The last read was at the end of the log, which then has it among its sleepers.
    at_end: bool,
}

impl Serving {
    fn new(cursor: Cursor, handler: Handler) -> Self {
        Self { cursor, handler, pending: VecDeque::new(), tried: None, at_end: false }
    }
}

#[derive(Clone, Copy, Default)]
struct Counts {
    counters: Counters,
    waiting: u64,
    running: u64,
    lost: u64,
    last: u64,
    /// The counters are the hub's by now.
    moved: bool,
}

/// Why a run delivers no more.
enum Left {
    /// It was at the end of the log.
    Nothing,
    More,
    /// A message is to be tried again after this delay.
    Held(Duration),
}

impl ReplayRun for Replaying {
    fn run(self: Arc<Self>, core: &Core, turn: &mut TurnClock) -> bool {
        if !self.turn().run() {
            return false;
        }
        trace::runs(trace::of_text(&self.pattern));
        let sleeper: Arc<dyn Sleeper> = Arc::<Self>::clone(&self);
        loop {
            let Some(mut serving) = lock(&self.work).take() else { return false };
            let mut left = Left::More;
            while !turn.share_is_over() && matches!(left, Left::More) && !self.turn().halts() {
                left = self.deliver(core, &mut serving, &sleeper, turn);
                // A page may have nothing for it.
                turn.is_over();
            }
            *lock(&self.work) = Some(serving);
            let next = match left {
                Left::Nothing => self.turn().sleep(),
                Left::More => self.turn().list(),
                Left::Held(delay) => self.hold(core, delay),
            };
            match next {
                Next::Reads => {}
                Next::Rests | Next::IsHeld => return false,
                Next::IsListed => return true,
                Next::Ends => {
                    self.end(core);
                    return false;
                }
            }
        }
    }

    fn leave_log(self: Arc<Self>) {
        let sleeper: Arc<dyn Sleeper> = Arc::<Self>::clone(&self);
        self.log.forget(&sleeper);
    }

    fn audit(&self) -> Option<(Counters, u64, u64)> {
        let counts = *self.counts();
        (!counts.moved).then_some((counts.counters, counts.waiting, counts.running))
    }

    fn figures(&self) -> Option<ReplayFigures> {
        let suspended = self.turn().suspended;
        let stats = self.stats();
        let ended = self.counts().moved;
        (!ended).then(|| ReplayFigures {
            id: self.id,
            pattern: (&*self.pattern).into(),
            suspended,
            stats,
        })
    }
}

impl Sleeper for Replaying {
    fn wake(self: Arc<Self>) {
        let is_listed = self.turn().wake();
        if let (true, Some(core)) = (is_listed, self.core.upgrade()) {
            core.call(core.ready.push(Work::Replay(self)));
        }
    }
}

impl Replaying {
    fn origin(self: &Arc<Self>) -> Origin {
        let replaying = Arc::downgrade(self);
        Origin::new(move |stored| match replaying.upgrade() {
            Some(replaying) => replaying.redeliver(stored),
            None => Err(Unfit::Orphaned),
        })
    }

    fn redeliver(self: Arc<Self>, stored: &Stored) -> Result<(), Unfit> {
        let mut turn = self.turn();
        if turn.closing {
            return Err(Unfit::Orphaned);
        }
        let mut again = lock(&self.again);
        if turn.suspended || again.len() >= AGAIN {
            return Err(Unfit::Refused);
        }
        again.push_back(stored.clone());
        drop(again);
        let mut counts = self.counts();
        counts.counters.offered += 1;
        counts.counters.redelivered += 1;
        counts.waiting += 1;
        drop(counts);
        let is_listed = turn.wake();
        drop(turn);
        if let (true, Some(core)) = (is_listed, self.core.upgrade()) {
            core.call(core.ready.push(Work::Replay(self)));
        }
        Ok(())
    }

    fn find(self: &Arc<Self>) -> Find {
        let replaying = Arc::downgrade(self);
        Arc::new(move || {
            let replaying = replaying.upgrade()?;
            Some(Box::new((replaying.core.upgrade()?, replaying)) as Box<dyn Supervised>)
        })
    }

    fn suspend(self: &Arc<Self>, core: &Core) -> bool {
        // Not in the condition: the lock would be held to the end of the block.
        let is_new = self.turn().suspend();
        if is_new {
            let waited = self.counts().waiting;
            tell_suspension(&self.who(), core, &self.policy, waited, KEPT);
        }
        is_new
    }

    fn resume(self: &Arc<Self>, core: &Core) -> bool {
        let mut turn = self.turn();
        let (resumed, is_listed) = turn.resume();
        // Before its next message, which needs the lock.
        if resumed {
            self.policy.restart_later();
        }
        drop(turn);
        if resumed {
            tell_resumption(&self.who(), core);
        }
        if is_listed {
            core.call(core.ready.push(Work::Replay(Arc::<Self>::clone(self))));
        }
        resumed
    }
}

impl Supervised for (Arc<Core>, Arc<Replaying>) {
    fn suspend(&self) -> bool {
        self.1.suspend(&self.0)
    }

    fn resume(&self) -> bool {
        self.1.resume(&self.0)
    }
}

impl Replaying {
    /// Has it go on after a delay; at once if the pool has no place for a timer.
    fn hold(self: &Arc<Self>, core: &Core, delay: Duration) -> Next {
        // Before anybody can find it held.
        core.ready.hold(core.shared.now_and(delay));
        let next = self.turn().hold();
        if next != Next::IsHeld {
            core.ready.let_go(1);
            return next;
        }
        let held = Arc::downgrade(self);
        let due = move || {
            let Some(replaying) = held.upgrade() else { return };
            // Whoever has closed it has let go of it.
            let is_due = replaying.turn().due();
            if let (true, Some(core)) = (is_due, replaying.core.upgrade()) {
                core.call(core.ready.push_due(Work::Replay(replaying)));
            }
        };
        match Timer::after(&core.shared, delay, due, |_| ()) {
            Ok(timer) => drop(timer),
            Err((_full, due)) => due(),
        }
        next
    }

    /// Delivers what was read, or what one read brings.
    fn deliver(
        self: &Arc<Self>,
        core: &Core,
        serving: &mut Serving,
        sleeper: &Arc<dyn Sleeper>,
        turn: &mut TurnClock,
    ) -> Left {
        let again = match serving.pending.is_empty() {
            true => core::mem::take(&mut *lock(&self.again)),
            false => VecDeque::new(),
        };
        if !again.is_empty() {
            // They are counted already. What is at the end of the log is looked at afterwards.
            serving.at_end = false;
            serving.pending.extend(again.into_iter().map(|stored| (0, stored)));
        } else if serving.pending.is_empty() {
            let batch = serving.cursor.read(&self.log, BATCH, Some(sleeper));
            serving.at_end = batch.sleeps;
            serving.pending.extend(batch.records);
            let mut counts = self.counts();
            counts.counters.offered += serving.pending.len() as u64;
            counts.waiting += serving.pending.len() as u64;
        }
        while let Some((lost_before, mut stored)) = serving.pending.pop_front() {
            if self.turn().halts() || turn.was_over() {
                serving.pending.push_front((lost_before, stored));
                return Left::More;
            }
            own_key(core, &mut stored);
            let after = self.call(core, serving, lost_before, &stored);
            turn.is_over();
            if let Some(After::Retry(delay)) = after {
                serving.pending.push_front((lost_before, stored));
                match delay.is_zero() {
                    true => continue,
                    false => return Left::Held(delay),
                }
            }
            serving.tried = None;
            if after == Some(After::Suspend) {
                self.policy.supervisor().suspend_members(&core.shared, &self.find());
            }
        }
        if serving.at_end { Left::Nothing } else { Left::More }
    }

    /// Calls the handler, and counts what became of the message.
    fn call(
        self: &Arc<Self>,
        core: &Core,
        serving: &mut Serving,
        lost_before: u64,
        stored: &Stored,
    ) -> Option<After> {
        let attempt = serving.tried.as_ref().map_or(1, |tried| tried.attempts + 1);
        let mut counts = self.counts();
        (counts.waiting, counts.running) = (counts.waiting - 1, 1);
        counts.lost += if attempt == 1 { lost_before } else { 0 };
        drop(counts);
        self.policy.catch_up();
        let message = Message { stored, lost_before, attempt };
        let failure = call_in_handler(core, &mut serving.handler, &message);
        let after = failure.map(|failure| {
            failed(&self.policy, core, &self.who(), stored, &mut serving.tried, &failure)
        });
        let mut counts = self.counts();
        counts.running = 0;
        match after {
            Some(After::Retry(_)) => {
                counts.waiting += 1;
                return after;
            }
            None => counts.counters.delivered += 1,
            Some(After::Discard) => counts.counters.failed += 1,
            Some(After::Dead | After::Suspend) => counts.counters.dead += 1,
        }
        // What is delivered again is older.
        counts.last = counts.last.max(stored.sequence);
        after
    }

    fn who(self: &Arc<Self>) -> Who {
        let (id, pattern) = (self.id, Arc::clone(&self.pattern));
        Who { kind: "replay", id, pattern, origin: self.origin() }
    }

    fn close(&self, core: &Core) {
        // Not in the condition: the lock would be held to the end of the block.
        let was = self.turn().close();
        if was == Some(State::Held) {
            core.let_go(1);
        }
        if was.is_some() {
            self.end(core);
        }
    }

    fn end(&self, core: &Core) {
        let ended = (lock(&self.work).take(), core::mem::take(&mut *lock(&self.again)));
        let _panicked = contain(|| drop(ended));
        // Under the lock of the counters, so that whoever adds them up finds these once.
        let mut counters = core.lock_ended();
        let mut counts = self.counts();
        counts.counters.discarded += core::mem::take(&mut counts.waiting);
        counts.moved = true;
        counters.add(&counts.counters);
        drop((counts, counters));
        // Release: pairs with the Acquire in `has_ended`.
        self.ended.store(true, Release);
        core.announce();
    }

    fn stats(&self) -> ReplayStats {
        let Counts { counters, waiting, running, lost, last, moved: _ } = *self.counts();
        ReplayStats {
            matched: counters.offered,
            delivered: counters.delivered,
            failed: counters.failed,
            dead_lettered: counters.dead,
            discarded: counters.discarded,
            waiting,
            running,
            lost,
            last,
            restarts: self.policy.restarts(),
            redelivered: counters.redelivered,
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        lock(&self.counts)
    }

    fn has_ended(&self) -> bool {
        // Acquire: pairs with the Release in `end`.
        self.ended.load(Acquire)
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        lock(&self.turn)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A replay to a handler. Dropping it ends it as [`Unsubscribe::Sync`]: on a thread outside the pool the drop returns when
/// the handler has returned and has been dropped. Inside a handler, and on a thread of the pool, it does not wait; nor
/// does it after `unsubscribe(Unsubscribe::Async)`. [`detach`](Self::detach) keeps the replay.
#[must_use = "dropping it ends the replay"]
pub struct Replay {
    core: Arc<Core>,
    replaying: Arc<Replaying>,
    detached: bool,
}

impl Replay {
    /// Its counts, as they are now.
    pub fn stats(&self) -> ReplayStats {
        self.replaying.stats()
    }

    /// Its number, which no subscription and no other replay of the hub has or had.
    pub fn id(&self) -> u64 {
        self.replaying.id
    }

    /// Whether it is suspended, because its handler has panicked too often.
    pub fn is_suspended(&self) -> bool {
        self.replaying.turn().suspended
    }

    /// Ends its suspension, and that of all others of its supervisor: it goes on with the message behind the last
    /// that its handler was called with. False: none was suspended.
    pub fn resume(&self) -> bool {
        let resume = || self.replaying.resume(&self.core);
        self.replaying.policy.supervisor().resume_members(resume)
    }

    /// Ends it; any thread, any number of times. A replay has no mailbox to drain: `Drain` is as `Async`.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn unsubscribe(&self, how: Unsubscribe) -> Result<Unsubscribed> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        self.replaying.close(&self.core);
        let is_inside = is_in_handler() || self.core.is_inside();
        if how == Unsubscribe::Sync && !is_inside {
            self.core.wait_until(|| self.replaying.has_ended());
        }
        match self.replaying.has_ended() {
            true => Ok(Unsubscribed::Now),
            false => Ok(Unsubscribed::Later),
        }
    }

    /// Lets it last as long as its hub.
    pub fn detach(mut self) {
        self.core.keep_replay(Arc::<Replaying>::clone(&self.replaying));
        self.detached = true;
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        // One that was ended by name before is not waited for.
        if !self.detached && !self.core.shared.is_forked() && !self.replaying.turn().closing {
            let _ended = self.unsubscribe(Unsubscribe::Sync);
        }
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
