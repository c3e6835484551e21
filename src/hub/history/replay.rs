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
//!    the hub's books, and what waits is discarded.
//!
//! # Orderings
//!
//! The state is under one lock. It is taken by wakers, who hold the locks of other logs at most, and is
//! never held while a log is read or a handler runs.

use super::log::{Batch, Log, Sleeper};
use super::query::Query;
use crate::error::{Error, Result};
use crate::hub::care::{self, After, Care, Restart, Supervised, Terms, Who};
use crate::hub::dead::{DeadReason, Origin, Recipient, Unfit};
use crate::hub::handler::{Answer, Handler};
#[cfg(feature = "capi")]
use crate::hub::key::Key;
use crate::hub::mailbox::{Books, Tried};
use crate::hub::message::{Message, Received, Stored};
use crate::hub::notice::Severity;
use crate::hub::pull::check_key;
use crate::hub::subscribe::{Unsubscribe, Unsubscribed};
use crate::hub::supervise::{Intensity, OnFailure, Supervisor};
use crate::hub::{self, Core, Hub, Work, execute};
use crate::pool::{Timer, contain};
use crate::queue::Pollable;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{Acquire, Release};
use crate::sync::{Condvar, Mutex, MutexGuard, store_load_barrier};
use crate::sys::eventfd::EventFd;
use core::fmt;
use core::time::Duration;
use serde_json::Value;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Instant, SystemTime};

/// Messages of one read.
const BATCH: usize = 64;
/// Reads of one run, before others on the list have their turn.
const READS: usize = 4;
/// So many dead letters may wait to be delivered again.
const AGAIN: usize = 1024;

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
    care: Terms,
}

impl Hub {
    /// Replays what a [history](super::History) has kept of the keys that the pattern matches, and goes on with
    /// what is published: each message once, in the order of their sequences. The history's pattern must match
    /// all that this one does.
    ///
    /// A message that was no longer kept when its turn came is lost; the next one tells how many
    /// ([`Message::lost_before`]), other keys of the history included.
    pub fn replay<'a>(&'a self, pattern: &'a str, from: ReplayFrom) -> ReplayBuilder<'a> {
        ReplayBuilder { hub: self, pattern, from, care: Terms::default() }
    }
}

impl ReplayBuilder<'_> {
    /// What happens to a message that the handler fails at, or panics at; default: it becomes a dead letter.
    pub fn on_failure(mut self, policy: OnFailure) -> Self {
        self.care.policy = policy;
        self
    }

    /// How many panics of the handler suspend the replay, and for how long; default: more than 3 in 5 seconds, for 1
    /// second, and each time for twice as long, up to 60 seconds. What comes meanwhile stays in the history.
    pub fn intensity(mut self, intensity: Intensity) -> Self {
        self.care.intensity = Some(intensity);
        self
    }

    /// Supervises it together with others, replays or subscriptions; default: alone.
    pub fn supervisor(mut self, supervisor: &Supervisor) -> Self {
        self.care.supervisor = Some(supervisor.clone());
        self
    }

    /// As [`SubscriptionBuilder::on_restart`](crate::hub::SubscriptionBuilder::on_restart).
    pub fn on_restart(mut self, f: impl Fn(&Restart<'_>) + Send + Sync + 'static) -> Self {
        self.care.on_restart = Some(Arc::new(f));
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
        self.care.check(true, true)?;
        let (log, cursor) = self.cursor()?;
        let core = &self.hub.core;
        let supervisor = self.care.supervisor.clone();
        let replaying = Arc::new(Replaying {
            core: Arc::downgrade(core),
            id: core.next_subscription(),
            pattern: self.pattern.into(),
            log,
            turn: Mutex::new(Turn::new()),
            work: Mutex::new(Some(Serving::new(cursor, Handler::serial(handler)))),
            again: Mutex::default(),
            care: Care::with(self.care)?,
            counts: Mutex::default(),
            ended: AtomicBool::new(false),
        });
        core.add_replay(&replaying);
        if let Some(supervisor) = supervisor {
            supervisor.join(core, Arc::<Replaying>::clone(&replaying));
        }
        core.call(core.ready.push(Work::Replay(Arc::clone(&replaying))));
        Ok(Replay { core: Arc::clone(core), replaying, detached: false })
    }

    /// To whoever pulls.
    ///
    /// # Errors
    /// As [`serve`](Self::serve), and for settings of a handler's failures.
    pub fn mailbox(self) -> Result<ReplayMailbox> {
        self.care.check(false, true)?;
        let (log, cursor) = self.cursor()?;
        let core = Arc::clone(&self.hub.core);
        let pulling = Arc::new(Pulling::new(core.next_subscription(), self.pattern));
        Ok(ReplayMailbox { core, log, cursor: Mutex::new(cursor), pulling })
    }

    fn cursor(&self) -> Result<(Arc<Log>, Cursor)> {
        let core = &self.hub.core;
        core.check_open()?;
        let mut query = Query::of(self.pattern)?;
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

/// A place in a log.
struct Cursor {
    query: Query,
    next: u64,
    /// What was lost and no message has told yet.
    lost: u64,
    /// Nothing has come yet, and what is missing before the first was not asked for.
    forgives: bool,
}

impl Cursor {
    /// The next messages. An archive that cannot be read is a loss: it goes on with what is in memory.
    fn read(&mut self, log: &Log, most: usize, sleeper: Option<&Arc<dyn Sleeper>>) -> Batch {
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

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    Listed,
    Runs,
    Sleeps,
    Held,
    Suspended,
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
enum Next {
    Reads,
    /// Somebody else goes on.
    Rests,
    /// The caller has a timer go on.
    IsHeld,
    IsListed,
    Ends,
}

/// See the head of the file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Turn {
    state: State,
    /// Something was recorded since the log was read to its end.
    woken: bool,
    closing: bool,
    suspended: bool,
}

impl Turn {
    fn new() -> Self {
        Self { state: State::Listed, woken: false, closing: false, suspended: false }
    }

    /// Somebody begins to run it. False: it is not to be run.
    fn run(&mut self) -> bool {
        if self.state != State::Listed {
            return false;
        }
        self.state = if self.suspended { State::Suspended } else { State::Runs };
        !self.suspended
    }

    /// Whether no message is to begin.
    fn halts(&self) -> bool {
        self.closing || self.suspended
    }

    /// True: the caller puts it on the list.
    fn wake(&mut self) -> bool {
        let sleeps = self.state == State::Sleeps;
        match sleeps {
            true => self.state = State::Listed,
            false => self.woken = true,
        }
        sleeps
    }

    /// What whoever runs it and is at the end of the log does next.
    fn sleep(&mut self) -> Next {
        if core::mem::take(&mut self.woken) && !self.halts() {
            return Next::Reads;
        }
        self.leave(State::Sleeps, Next::Rests)
    }

    /// What whoever runs it does when it has had its share.
    fn list(&mut self) -> Next {
        self.leave(State::Listed, Next::IsListed)
    }

    /// What whoever runs it does when a message is to be tried again later.
    fn hold(&mut self) -> Next {
        self.leave(State::Held, Next::IsHeld)
    }

    fn leave(&mut self, state: State, next: Next) -> Next {
        let (state, next) = match (self.closing, self.suspended) {
            (true, _) => (State::Ended, Next::Ends),
            (false, true) => (State::Suspended, Next::Rests),
            (false, false) => (state, next),
        };
        self.state = state;
        next
    }

    /// The time of what is held has come. True: the caller puts it on the list.
    fn due(&mut self) -> bool {
        let is_held = self.state == State::Held;
        if is_held {
            self.state = State::Listed;
        }
        is_held
    }

    /// False: it was suspended before, or has ended.
    fn suspend(&mut self) -> bool {
        let is_new = !self.suspended && !self.closing;
        self.suspended |= is_new;
        if is_new && self.state == State::Sleeps {
            self.state = State::Suspended;
        }
        is_new
    }

    /// Whether it was suspended, and whether the caller puts it on the list.
    fn resume(&mut self) -> (bool, bool) {
        let was_suspended = core::mem::take(&mut self.suspended);
        let is_listed = self.state == State::Suspended;
        if is_listed {
            self.state = State::Listed;
        }
        (was_suspended, is_listed)
    }

    /// If nobody runs it, the caller ends it. Says in what state it was then.
    fn close(&mut self) -> Option<State> {
        self.closing = true;
        let was = self.state;
        if matches!(was, State::Runs | State::Ended) {
            return None;
        }
        self.state = State::Ended;
        Some(was)
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
    care: Care,
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
    books: Books,
    waiting: u64,
    running: u64,
    lost: u64,
    last: u64,
    /// The books are the hub's by now.
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

impl Sleeper for Replaying {
    fn wake(self: Arc<Self>) {
        let is_listed = self.turn().wake();
        if let (true, Some(core)) = (is_listed, self.core.upgrade()) {
            core.call(core.ready.push(Work::Replay(self)));
        }
    }
}

impl Recipient for Replaying {
    fn redeliver(self: Arc<Self>, core: &Core, stored: &Stored) -> Result<(), Unfit> {
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
        counts.books.offered += 1;
        counts.books.redelivered += 1;
        counts.waiting += 1;
        drop(counts);
        let is_listed = turn.wake();
        drop(turn);
        if is_listed {
            core.call(core.ready.push(Work::Replay(self)));
        }
        Ok(())
    }
}

impl Supervised for Replaying {
    fn suspend_member(self: Arc<Self>, core: &Core) {
        // Not in the condition: the lock would be held to the end of the block.
        let is_new = self.turn().suspend();
        if is_new {
            self.who().tell(core, "subscription.suspended", Severity::Error, || {
                let (waited, lasts) =
                    (self.counts().waiting, self.care.supervisor().suspended_for());
                let until = care::until(lasts);
                let message =
                    format!("panicked too often; what comes stays in the history; {until}");
                (message, care::suspension(waited, lasts))
            });
        }
    }

    fn resume_member(self: Arc<Self>, core: &Core) -> bool {
        let mut turn = self.turn();
        let (resumed, is_listed) = turn.resume();
        // Before its next message, which needs the lock.
        if resumed {
            self.care.restart_later();
        }
        drop(turn);
        if resumed {
            let say = || ("it takes messages again".into(), Value::Null);
            self.who().tell(core, "subscription.resumed", Severity::Info, say);
        }
        if is_listed {
            core.call(core.ready.push(Work::Replay(self)));
        }
        resumed
    }
}

impl Replaying {
    /// Runs it for a while. True: there may be more, and it is to be listed again.
    pub(in crate::hub) fn run(self: &Arc<Self>, core: &Core) -> bool {
        if !self.turn().run() {
            return false;
        }
        let sleeper: Arc<dyn Sleeper> = Arc::<Self>::clone(self);
        let mut reads = 0;
        loop {
            let Some(mut serving) = lock(&self.work).take() else { return false };
            let mut left = Left::More;
            while reads < READS && matches!(left, Left::More) && !self.turn().halts() {
                left = self.deliver(core, &mut serving, &sleeper);
                reads += 1;
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
            counts.books.offered += serving.pending.len() as u64;
            counts.waiting += serving.pending.len() as u64;
        }
        while let Some((lost_before, mut stored)) = serving.pending.pop_front() {
            if self.turn().halts() {
                serving.pending.push_front((lost_before, stored));
                return Left::More;
            }
            core.own_key(&mut stored);
            let after = self.call(core, serving, lost_before, &stored);
            if let Some(After::Retry(delay)) = after {
                serving.pending.push_front((lost_before, stored));
                match delay.is_zero() {
                    true => continue,
                    false => return Left::Held(delay),
                }
            }
            serving.tried = None;
            if after == Some(After::Suspend) {
                let found: Arc<dyn Supervised> = Arc::<Self>::clone(self);
                self.care.supervisor().suspend_members(core, &found);
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
        self.care.catch_up();
        let message = Message { stored, lost_before, attempt };
        let failure = execute::call_in_handler(core, &mut serving.handler, &message);
        let after = failure.map(|failure| {
            self.care.failed(core, &self.who(), stored, &mut serving.tried, &failure)
        });
        let mut counts = self.counts();
        counts.running = 0;
        match after {
            Some(After::Retry(_)) => {
                counts.waiting += 1;
                return after;
            }
            None => counts.books.delivered += 1,
            Some(After::Discard) => counts.books.failed += 1,
            Some(After::Dead | After::Suspend) => counts.books.dead += 1,
        }
        // What is delivered again is older.
        counts.last = counts.last.max(stored.sequence);
        after
    }

    fn who(self: &Arc<Self>) -> Who {
        let (id, pattern) = (self.id, Arc::clone(&self.pattern));
        Who { kind: "replay", id, pattern, origin: Origin::of(self) }
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

    /// The hub ends: nobody wakes it any more.
    pub(in crate::hub) fn leave_log(self: &Arc<Self>) {
        let sleeper: Arc<dyn Sleeper> = Arc::<Self>::clone(self);
        self.log.forget(&sleeper);
    }

    fn end(&self, core: &Core) {
        let ended = (lock(&self.work).take(), core::mem::take(&mut *lock(&self.again)));
        let _panicked = contain(|| drop(ended));
        // Under the lock of the books, so that whoever adds them up finds these once.
        let mut books = core.lock_ended();
        let mut counts = self.counts();
        counts.books.discarded += core::mem::take(&mut counts.waiting);
        counts.moved = true;
        books.add(&counts.books);
        drop((counts, books));
        // Release: pairs with the Acquire in `has_ended`.
        self.ended.store(true, Release);
        core.announce();
    }

    /// What is not among the hub's books: the books, what waits and what runs.
    pub(in crate::hub) fn audit(&self) -> Option<(Books, u64, u64)> {
        let counts = *self.counts();
        (!counts.moved).then_some((counts.books, counts.waiting, counts.running))
    }

    pub(in crate::hub) fn figures(&self) -> Option<ReplayFigures> {
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

    fn stats(&self) -> ReplayStats {
        let Counts { books, waiting, running, lost, last, moved: _ } = *self.counts();
        ReplayStats {
            matched: books.offered,
            delivered: books.delivered,
            failed: books.failed,
            dead_lettered: books.dead,
            discarded: books.discarded,
            waiting,
            running,
            lost,
            last,
            restarts: self.care.restarts(),
            redelivered: books.redelivered,
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

/// What a replay has done.
///
/// matched = delivered + failed + dead_lettered + discarded + waiting + running
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ReplayStats {
    /// Messages that were read for it, and dead letters that were delivered to it again.
    pub matched: u64,
    /// Messages that the handler could deal with.
    pub delivered: u64,
    /// Those that it failed at for good, and that were not made dead letters.
    pub failed: u64,
    /// Those that have become dead letters.
    pub dead_lettered: u64,
    /// Those that were read and had not begun when it ended.
    pub discarded: u64,
    /// Those that were read and have not begun, or wait for another attempt.
    pub waiting: u64,
    /// Those that are being handled now.
    pub running: u64,
    /// Those that were no longer kept when their turn came.
    pub lost: u64,
    /// The greatest sequence that the handler was done with; 0 for none.
    pub last: u64,
    /// How often the handler was restarted.
    pub restarts: u64,
    /// Of `matched`, dead letters that were delivered again.
    pub redelivered: u64,
}

/// What is known of a replay to a handler that has not ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReplayFigures {
    /// Its number.
    pub id: u64,
    /// What it replays.
    pub pattern: String,
    /// Whether it is suspended.
    pub suspended: bool,
    /// Its counts.
    pub stats: ReplayStats,
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
        let resume = || Supervised::resume_member(Arc::clone(&self.replaying), &self.core);
        self.replaying.care.supervisor().resume_members(resume)
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
        let is_inside = execute::is_in_handler() || self.core.is_inside();
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
        self.core.keep_replay(&self.replaying);
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

/// A replay to whoever pulls. Any thread may pull; each message goes to one of them. Whoever has a loop of his own
/// waits for [`descriptor`](Self::descriptor). Dropping it ends it.
#[must_use = "dropping it ends the replay"]
pub struct ReplayMailbox {
    core: Arc<Core>,
    log: Arc<Log>,
    cursor: Mutex<Cursor>,
    pulling: Arc<Pulling>,
}

/// What the log, and the dead letters of a replay that is pulled, know of it.
///
/// No lock is taken under `state`. It is taken under those of logs, and under the cursor's.
struct Pulling {
    id: u64,
    pattern: Arc<str>,
    state: Mutex<Ledger>,
    /// Pullers wait here.
    changed: Condvar,
    pollable: Pollable,
}

/// What became of a pulled replay's messages.
#[derive(Default)]
struct Ledger {
    /// How often pullers were woken.
    rung: u64,
    ended: bool,
    /// Dead letters that are delivered again before what is read.
    again: VecDeque<Stored>,
    /// Of the books, `offered` is what was pulled and what waits to be pulled again.
    books: Books,
    /// Of the delivered, those that are about to become dead letters.
    burying: u64,
    lost: u64,
    last: u64,
}

impl Pulling {
    fn new(id: u64, pattern: &str) -> Self {
        Self {
            id,
            pattern: pattern.into(),
            state: Mutex::default(),
            changed: Condvar::new(),
            pollable: Pollable::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.state)
    }

    /// Takes dead letters that are to be delivered again.
    fn take_again(&self, into: &mut Vec<Received>, most: usize) -> Result<()> {
        let mut state = self.state();
        if state.ended {
            return Err(Error::Stale { what: "replay" });
        }
        let count = most.min(state.again.len());
        state.books.delivered += count as u64;
        into.extend(state.again.drain(..count).map(|stored| Received { stored, lost_before: 0 }));
        Ok(())
    }

    /// Counts what was read.
    fn count(&self, read: &[Received]) {
        let mut state = self.state();
        state.books.offered += read.len() as u64;
        state.books.delivered += read.len() as u64;
        state.lost += read.iter().map(|received| received.lost_before).sum::<u64>();
        state.last = read.last().map_or(state.last, |received| received.stored.sequence);
    }
}

impl Sleeper for Pulling {
    fn wake(self: Arc<Self>) {
        self.state().rung += 1;
        self.changed.notify_all();
        // Against *set QUIET, then look at the queue* (`queue/pollable.rs`).
        store_load_barrier();
        self.pollable.pushed();
    }
}

impl Recipient for Pulling {
    fn redeliver(self: Arc<Self>, _: &Core, stored: &Stored) -> Result<(), Unfit> {
        let mut state = self.state();
        if state.ended {
            return Err(Unfit::Orphaned);
        }
        if state.again.len() >= AGAIN {
            return Err(Unfit::Refused);
        }
        state.again.push_back(stored.clone());
        state.books.offered += 1;
        state.books.redelivered += 1;
        drop(state);
        self.wake();
        Ok(())
    }
}

impl ReplayMailbox {
    /// Appends the next messages, at most `most`, without waiting for one; says how many.
    ///
    /// # Errors
    /// [`Error::Stale`] when it has ended; [`Error::Forked`].
    pub fn recv_batch(&self, into: &mut Vec<Received>, most: usize) -> Result<usize> {
        Ok(self.take(into, most, None)?.0)
    }

    /// As [`recv_batch`](Self::recv_batch), and waits for the first message so long. 0: none came.
    ///
    /// # Errors
    /// As there, also if it ends meanwhile; [`Error::ShutDown`] if the pool ends, and nothing came;
    /// [`Error::WouldDeadlock`] on a thread of the pool.
    pub fn recv_batch_timeout(
        &self,
        into: &mut Vec<Received>,
        most: usize,
        timeout: Duration,
    ) -> Result<usize> {
        if !self.core.shared.is_forked() && self.core.is_inside() {
            return Err(Error::WouldDeadlock);
        }
        let deadline = Instant::now().checked_add(timeout);
        let sleeper = self.sleeper();
        loop {
            let rung = self.pulling.state().rung;
            let (count, sleeps) = self.take(into, most, Some(&sleeper))?;
            if count > 0 || most == 0 {
                return Ok(count);
            }
            if sleeps && !self.wait(rung, deadline)? {
                return Ok(0);
            }
        }
    }

    /// Makes a message that was pulled a dead letter of this replay, as
    /// [`Mailbox::bury`](crate::hub::Mailbox::bury) does. As long as the replay lasts,
    /// [`Hub::redeliver`](crate::hub::Hub::redeliver) has it pulled again, before what is read next.
    ///
    /// # Errors
    /// As there.
    pub fn bury(&self, message: &Stored, failure: Option<&str>, attempts: u32) -> Result<()> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        check_key(self.pattern(), message.key.as_str())?;
        let mut state = self.pulling.state();
        if state.books.delivered <= state.burying {
            let allowed = "one that was taken from this mailbox and not buried before";
            return Err(Error::invalid("the message", format!("{message:?}"), allowed));
        }
        state.burying += 1;
        drop(state);
        let reason = if attempts == 0 { DeadReason::Suspended } else { DeadReason::Failed };
        let (id, pattern) = (self.id(), Arc::clone(&self.pulling.pattern));
        let who = Who { kind: "replay", id, pattern, origin: Origin::of(&self.pulling) };
        self.core.bury(&who, message, reason, failure, attempts);
        let mut state = self.pulling.state();
        state.burying -= 1;
        state.books.delivered -= 1;
        state.books.dead += 1;
        Ok(())
    }

    /// A key of messages that come here.
    #[cfg(feature = "capi")]
    pub(crate) fn key(&self, text: &str) -> Result<Key> {
        check_key(self.pattern(), text)?;
        Ok(self.core.keys.intern(text))
    }

    /// A descriptor that is readable while a message may wait, or when it has ended. Poll it, do not read it: a
    /// receive that finds nothing makes it unreadable. It belongs to this value.
    ///
    /// # Errors
    /// [`Error::Os`] when the process is out of descriptors; [`Error::Forked`].
    pub fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let make = || EventFd::new().map_err(|error| Error::os("create an eventfd", error));
        let pollable = &self.pulling.pollable;
        Ok(pollable.demand(make, || self.is_worth_a_look())?.as_fd())
    }

    /// Its number, which no subscription and no other replay of the hub has or had.
    pub fn id(&self) -> u64 {
        self.pulling.id
    }

    /// What it replays.
    pub fn pattern(&self) -> &str {
        &self.pulling.pattern
    }

    /// Its counts. What was pulled counts as delivered until it is [buried](Self::bury); what is in the history
    /// and was not pulled is not counted.
    pub fn stats(&self) -> ReplayStats {
        let state = self.pulling.state();
        let Books { offered, delivered, dead, discarded, redelivered, .. } = state.books;
        ReplayStats {
            matched: offered,
            delivered,
            dead_lettered: dead,
            discarded,
            waiting: state.again.len() as u64,
            lost: state.lost,
            last: state.last,
            redelivered,
            ..ReplayStats::default()
        }
    }

    /// Ends it: nothing can be pulled any more, and who waits hears of it. Any thread, any number of times.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn end(&self) -> Result<()> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let mut state = self.pulling.state();
        state.ended = true;
        state.books.discarded += state.again.len() as u64;
        let left = core::mem::take(&mut state.again);
        drop(state);
        let _panicked = contain(|| drop(left));
        Sleeper::wake(Arc::clone(&self.pulling));
        Ok(())
    }

    /// Until pullers were woken once more than so often, or for a while. False: the time is over.
    #[cfg(not(loom))]
    fn wait(&self, rung: u64, deadline: Option<Instant>) -> Result<bool> {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(false);
        }
        if self.core.shared.must_stop() {
            return Err(Error::ShutDown);
        }
        let nap = left.unwrap_or(hub::NAP).min(hub::NAP);
        let state = self.pulling.state();
        let changed = &self.pulling.changed;
        drop(changed.wait_timeout_while(state, nap, |state| state.rung == rung));
        Ok(true)
    }

    /// Loom has no time.
    #[cfg(loom)]
    fn wait(&self, _: u64, _: Option<Instant>) -> Result<bool> {
        Ok(false)
    }

    /// Takes what there is: how many, and whether the log wakes `sleeper` when there is more.
    fn take(
        &self,
        into: &mut Vec<Received>,
        most: usize,
        sleeper: Option<&Arc<dyn Sleeper>>,
    ) -> Result<(usize, bool)> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let before = into.len();
        self.pulling.take_again(into, most)?;
        let again = into.len() - before;
        // What comes again while this reads is found by the next: it has woken those who wait.
        let sleeper = sleeper.filter(|_| again == 0);
        let (read, sleeps) = self.read(into, most - again, sleeper);
        if again + read < most {
            self.pulling.pollable.found_nothing(|| self.is_worth_a_look());
        }
        Ok((again + read, sleeps))
    }

    fn read(
        &self,
        into: &mut Vec<Received>,
        most: usize,
        sleeper: Option<&Arc<dyn Sleeper>>,
    ) -> (usize, bool) {
        let mut cursor = lock(&self.cursor);
        let before = into.len();
        loop {
            let count = into.len() - before;
            let sleeper = sleeper.filter(|_| count == 0);
            let batch = cursor.read(&self.log, (most - count).min(BATCH), sleeper);
            let is_end = batch.records.is_empty() && batch.next >= self.log.next();
            for (lost_before, mut stored) in batch.records {
                self.core.own_key(&mut stored);
                into.push(Received { stored, lost_before });
            }
            let count = into.len() - before;
            if is_end || batch.sleeps || count >= most {
                // Under the cursor's lock, so that the last that is told is the greatest.
                self.pulling.count(&into[before..]);
                return (count, batch.sleeps);
            }
        }
    }

    /// Whether there may be something to pull, or it has ended; if not, the log wakes it for the next.
    fn is_worth_a_look(&self) -> bool {
        let state = self.pulling.state();
        if state.ended || !state.again.is_empty() {
            return true;
        }
        drop(state);
        let cursor = lock(&self.cursor);
        !self.log.sleeps(&cursor.query, cursor.next, &self.sleeper())
    }

    fn sleeper(&self) -> Arc<dyn Sleeper> {
        Arc::<Pulling>::clone(&self.pulling)
    }
}

impl Drop for ReplayMailbox {
    fn drop(&mut self) {
        // In a child made by fork it is the parent's.
        if self.end().is_ok() {
            let sleeper: Arc<dyn Sleeper> = Arc::<Pulling>::clone(&self.pulling);
            self.log.forget(&sleeper);
        }
    }
}

impl fmt::Debug for ReplayMailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayMailbox")
            .field("id", &self.id())
            .field("pattern", &self.pattern())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// All that a turn has to do with.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct World {
        turn: Turn,
        listed: u32,
        runs: bool,
        /// Whoever runs it has read to the end of the log.
        at_end: bool,
        /// The log has it among its sleepers.
        sleeper: bool,
        timer: bool,
        /// Something is recorded and was not read.
        unread: bool,
        /// A dead letter is to be delivered again.
        again: bool,
        ends: u32,
    }

    impl World {
        fn leave(&mut self, next: Next) {
            self.runs = next == Next::Reads;
            self.at_end = false;
            match next {
                Next::Reads | Next::Rests => {}
                Next::IsHeld => self.timer = true,
                Next::IsListed => self.listed += 1,
                Next::Ends => self.ends += 1,
            }
        }

        /// What may happen next. All that a turn does is under its lock, so that these are all interleavings.
        fn steps(&self) -> Vec<World> {
            let mut all = Vec::new();
            let mut step = |may: bool, take: &dyn Fn(&mut World)| {
                if may {
                    let mut world = self.clone();
                    take(&mut world);
                    all.push(world);
                }
            };
            step(self.listed > 0, &|world| {
                world.listed -= 1;
                if world.turn.run() {
                    assert!(!world.runs, "it runs twice");
                    world.runs = true;
                }
            });
            step(self.runs && !self.at_end && !self.again, &|world| {
                world.at_end = !world.unread;
                world.sleeper |= world.at_end;
                world.unread = false;
            });
            step(self.runs && !self.at_end && self.again, &|world| world.again = false);
            step(!self.turn.halts(), &|world| {
                world.again = true;
                world.listed += u32::from(world.turn.wake());
            });
            step(self.runs && self.at_end, &|world| {
                let next = world.turn.sleep();
                world.leave(next);
            });
            step(self.runs, &|world| {
                let next = world.turn.list();
                world.leave(next);
            });
            step(self.runs, &|world| {
                let next = world.turn.hold();
                world.leave(next);
            });
            step(true, &|world| {
                world.unread = true;
                if core::mem::take(&mut world.sleeper) && world.turn.wake() {
                    world.listed += 1;
                }
            });
            step(self.timer, &|world| {
                world.timer = false;
                world.listed += u32::from(world.turn.due());
            });
            step(true, &|world| {
                world.turn.suspend();
            });
            step(true, &|world| world.listed += u32::from(world.turn.resume().1));
            step(true, &|world| world.ends += u32::from(world.turn.close().is_some()));
            all
        }

        fn check(&self) {
            let Turn { closing, suspended, state, .. } = self.turn;
            assert!(self.listed <= 1, "listed twice: {self:?}");
            assert_eq!(self.ends, u32::from(closing && !self.runs), "the end: {self:?}");
            let goes_on = self.runs || self.listed > 0 || self.timer;
            assert!(state != State::Held || self.timer, "nobody goes on: {self:?}");
            let is_idle = !closing && !suspended && (self.unread || self.again);
            assert!(!is_idle || goes_on, "a message lies beside it: {self:?}");
        }
    }

    /// Goal: whatever comes in between, at most one thread runs it, it ends once, and nothing that is recorded is
    /// left lying. Method: all states that can be reached.
    #[test]
    fn a_turn_is_never_lost() {
        let first = World {
            turn: Turn::new(),
            listed: 1,
            runs: false,
            at_end: false,
            sleeper: false,
            timer: false,
            unread: true,
            again: false,
            ends: 0,
        };
        let (mut seen, mut next) = (HashSet::new(), vec![first]);
        while let Some(world) = next.pop() {
            if seen.insert(world.clone()) {
                world.check();
                next.extend(world.steps());
            }
        }
        assert!(seen.len() > 100, "{} states", seen.len());
    }
}
