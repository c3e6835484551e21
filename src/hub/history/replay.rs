//! Replay: what was published, and then what is published, to one handler or one puller.
//!
//! # The states of a replay with a handler
//!
//! | state | who goes on |
//! |---|---|
//! | LISTED | it is on the hub's ready list: the service that takes it runs it |
//! | RUNS | one thread reads the log and calls the handler |
//! | SLEEPS | the log has it among its sleepers: whoever records wakes it |
//! | ENDED | nobody; the handler has been dropped |
//!
//! ```text
//!             takes it                  at the end of the log, not woken meanwhile
//!   LISTED ─────────────► RUNS ─────────────────────────────► SLEEPS
//!     ▲                    │ ▲ woken meanwhile: it reads on      │
//!     └── had its share ───┘                                     │
//!     └───────────────────────── a message is recorded ──────────┘
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
//!
//! # Orderings
//!
//! The state is under one lock. It is taken by wakers, who hold the locks of other logs at most, and is
//! never held while a log is read or a handler runs.

use super::log::{Batch, Log, Sleeper};
use super::query::Query;
use crate::error::{Error, Result};
use crate::hub::handler::{Answer, Handler};
use crate::hub::message::{Message, Received};
use crate::hub::subscribe::{Unsubscribe, Unsubscribed};
use crate::hub::{Core, Hub, Work, execute};
use crate::pool::contain;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::{Condvar, Mutex, MutexGuard};
use core::fmt;
use core::time::Duration;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Instant, SystemTime};

/// Messages of one read.
const BATCH: usize = 64;
/// Reads of one run, before others on the list have their turn.
const READS: usize = 4;

/// Where a replay begins.
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
}

impl Hub {
    /// Replays what a [history](super::History) has kept of the keys that the pattern matches, and goes on with
    /// what is published: each message once, in the order of their sequences. The history's pattern must match
    /// all that this one does.
    ///
    /// A message that was no longer kept when its turn came is lost; the next one tells how many
    /// ([`Message::lost_before`]), other keys of the history included.
    pub fn replay<'a>(&'a self, pattern: &'a str, from: ReplayFrom) -> ReplayBuilder<'a> {
        ReplayBuilder { hub: self, pattern, from }
    }
}

impl ReplayBuilder<'_> {
    /// To a handler, which runs on one thread of the pool at a time. A message at which it fails or panics is
    /// counted, and the next one comes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a bad pattern, and if no history keeps all that it matches; [`Error::Os`] if the
    /// archive cannot be read; [`Error::ShutDown`], [`Error::Forked`].
    pub fn serve<F, A>(self, handler: F) -> Result<Replay>
    where
        F: FnMut(&Message<'_>) -> A + Send + 'static,
        A: Answer,
    {
        let (log, cursor) = self.cursor()?;
        let core = &self.hub.core;
        let replaying = Arc::new(Replaying {
            core: Arc::downgrade(core),
            log,
            turn: Mutex::new(Turn { state: State::Listed, woken: false, closing: false }),
            work: Mutex::new(Some(Serving { cursor, handler: Handler::serial(handler) })),
            counts: Counts::default(),
            ended: AtomicBool::new(false),
        });
        core.call(core.ready.push(Work::Replay(Arc::clone(&replaying))));
        Ok(Replay { core: Arc::clone(core), replaying, detached: false })
    }

    /// To whoever pulls.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub fn mailbox(self) -> Result<ReplayMailbox> {
        let (log, cursor) = self.cursor()?;
        let core = Arc::clone(&self.hub.core);
        Ok(ReplayMailbox { core, log, cursor: Mutex::new(cursor), bell: Arc::default() })
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Listed,
    Runs,
    Sleeps,
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
enum Next {
    Reads,
    Sleeps,
    IsListed,
    Ends,
}

/// See the head of the file.
struct Turn {
    state: State,
    woken: bool,
    closing: bool,
}

impl Turn {
    /// True: the caller puts it on the list.
    fn wake(&mut self) -> bool {
        match self.state {
            State::Sleeps => self.state = State::Listed,
            State::Runs => self.woken = true,
            State::Listed | State::Ended => return false,
        }
        self.state == State::Listed
    }

    /// What whoever runs it and is at the end of the log does next.
    fn sleep(&mut self) -> Next {
        if self.closing {
            return self.end();
        }
        if core::mem::take(&mut self.woken) {
            return Next::Reads;
        }
        self.state = State::Sleeps;
        Next::Sleeps
    }

    /// What whoever runs it does when it has had its share.
    fn list(&mut self) -> Next {
        if self.closing {
            return self.end();
        }
        self.state = State::Listed;
        Next::IsListed
    }

    fn end(&mut self) -> Next {
        self.state = State::Ended;
        Next::Ends
    }

    /// True: nobody runs it, and the caller ends it.
    fn close(&mut self) -> bool {
        self.closing = true;
        let is_idle = matches!(self.state, State::Sleeps | State::Listed);
        if is_idle {
            self.state = State::Ended;
        }
        is_idle
    }
}

/// A replay with a handler.
pub(in crate::hub) struct Replaying {
    core: Weak<Core>,
    log: Arc<Log>,
    turn: Mutex<Turn>,
    work: Mutex<Option<Serving>>,
    counts: Counts,
    /// The handler has been dropped.
    ended: AtomicBool,
}

struct Serving {
    cursor: Cursor,
    handler: Handler,
}

#[derive(Default)]
struct Counts {
    delivered: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
    last: AtomicU64,
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
    /// Runs it for a while. True: there may be more, and it is to be listed again.
    pub(in crate::hub) fn run(self: &Arc<Self>, core: &Core) -> bool {
        let mut turn = self.turn();
        if turn.state != State::Listed {
            return false;
        }
        turn.state = State::Runs;
        drop(turn);
        let sleeper: Arc<dyn Sleeper> = Arc::<Self>::clone(self);
        let mut reads = 0;
        loop {
            let Some(mut serving) = lock(&self.work).take() else { return false };
            let mut sleeps = false;
            while reads < READS && !sleeps && !self.turn().closing {
                sleeps = self.deliver(core, &mut serving, &sleeper);
                reads += 1;
            }
            *lock(&self.work) = Some(serving);
            let next = if sleeps { self.turn().sleep() } else { self.turn().list() };
            match next {
                Next::Reads => {}
                Next::Sleeps => return false,
                Next::IsListed => return true,
                Next::Ends => {
                    self.end(core);
                    return false;
                }
            }
        }
    }

    /// Delivers what one read brings. True: it was at the end of the log.
    fn deliver(&self, core: &Core, serving: &mut Serving, sleeper: &Arc<dyn Sleeper>) -> bool {
        let batch = serving.cursor.read(&self.log, BATCH, Some(sleeper));
        for (lost_before, mut stored) in batch.records {
            if self.turn().closing {
                return false;
            }
            core.own_key(&mut stored);
            let message = Message { stored: &stored, lost_before, attempt: 1 };
            self.counts.lost.fetch_add(lost_before, Relaxed);
            let done = execute::call_in_handler(core, &mut serving.handler, &message);
            let count = if done { &self.counts.delivered } else { &self.counts.failed };
            count.fetch_add(1, Relaxed);
            self.counts.last.store(stored.sequence, Relaxed);
        }
        batch.sleeps
    }

    fn close(&self, core: &Core) {
        // Not in the condition: the lock would be held to the end of the block.
        let is_idle = self.turn().close();
        if is_idle {
            self.end(core);
        }
    }

    fn end(&self, core: &Core) {
        let ended = lock(&self.work).take();
        let _panicked = contain(|| drop(ended));
        // Release: pairs with the Acquire in `has_ended`.
        self.ended.store(true, Release);
        core.announce();
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ReplayStats {
    /// Messages that the handler could deal with.
    pub delivered: u64,
    /// Those at which it failed or panicked.
    pub failed: u64,
    /// Those that were no longer kept when their turn came.
    pub lost: u64,
    /// The sequence of the last that was delivered; 0 for none.
    pub last: u64,
}

/// A replay to a handler. Dropping it ends it as [`Unsubscribe::Async`]; [`detach`](Self::detach) does not.
#[must_use = "dropping it ends the replay"]
pub struct Replay {
    core: Arc<Core>,
    replaying: Arc<Replaying>,
    detached: bool,
}

impl Replay {
    /// Its counts, as they are now.
    pub fn stats(&self) -> ReplayStats {
        let counts = &self.replaying.counts;
        ReplayStats {
            delivered: counts.delivered.load(Relaxed),
            failed: counts.failed.load(Relaxed),
            lost: counts.lost.load(Relaxed),
            last: counts.last.load(Relaxed),
        }
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
        self.detached = true;
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        if !self.detached && !self.core.shared.is_forked() {
            self.replaying.close(&self.core);
        }
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// A replay to whoever pulls. Any thread may pull; each message goes to one of them.
pub struct ReplayMailbox {
    core: Arc<Core>,
    log: Arc<Log>,
    cursor: Mutex<Cursor>,
    bell: Arc<Bell>,
}

/// Wakes those who pull.
#[derive(Default)]
struct Bell {
    /// How often.
    rung: Mutex<u64>,
    changed: Condvar,
}

impl Sleeper for Bell {
    fn wake(self: Arc<Self>) {
        *lock(&self.rung) += 1;
        self.changed.notify_all();
    }
}

impl ReplayMailbox {
    /// Appends the next messages, at most `most`, without waiting for one; says how many.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn recv_batch(&self, into: &mut Vec<Received>, most: usize) -> Result<usize> {
        match self.core.shared.is_forked() {
            true => Err(Error::Forked),
            false => Ok(self.read(into, most, None).0),
        }
    }

    /// As [`recv_batch`](Self::recv_batch), and waits for the first message so long. 0: none came.
    ///
    /// # Errors
    /// [`Error::WouldDeadlock`] on a thread of the pool; [`Error::Forked`].
    pub fn recv_batch_timeout(
        &self,
        into: &mut Vec<Received>,
        most: usize,
        timeout: Duration,
    ) -> Result<usize> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        if self.core.is_inside() {
            return Err(Error::WouldDeadlock);
        }
        let deadline = Instant::now().checked_add(timeout);
        let sleeper: Arc<dyn Sleeper> = Arc::<Bell>::clone(&self.bell);
        loop {
            let rung = *lock(&self.bell.rung);
            let (count, sleeps) = self.read(into, most, Some(&sleeper));
            if count > 0 || most == 0 {
                return Ok(count);
            }
            if sleeps && !self.wait(rung, deadline) {
                return Ok(0);
            }
        }
    }

    /// Until it was rung once more than so often. False: the time is over.
    #[cfg(not(loom))]
    fn wait(&self, rung: u64, deadline: Option<Instant>) -> bool {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.unwrap_or(Duration::MAX).min(Duration::from_secs(3600));
        let now = lock(&self.bell.rung);
        let waited = self.bell.changed.wait_timeout_while(now, left, |now| *now == rung);
        let (_now, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        !waited.timed_out() || deadline.is_none_or(|at| Instant::now() < at)
    }

    /// Loom has no time.
    #[cfg(loom)]
    fn wait(&self, _: u64, _: Option<Instant>) -> bool {
        false
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
                return (count, batch.sleeps);
            }
        }
    }
}

impl fmt::Debug for ReplayMailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cursor = lock(&self.cursor);
        f.debug_struct("ReplayMailbox")
            .field("pattern", &cursor.query.pattern)
            .finish_non_exhaustive()
    }
}
