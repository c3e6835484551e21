//! A replay that a thread of the host takes messages of.

use crate::error::{Error, Result};
use crate::hub::core::{Core, ReplayRun};
use crate::hub::history::asking::own_key;
use crate::hub::history::log::{Log, Sleeper};
use crate::hub::history::replay::{AGAIN, BATCH, Cursor, KEPT};
use crate::hub::history::replay_stats::{ReplayFigures, ReplayStats};
use crate::hub::keys::key::Key;
use crate::hub::mailbox::counters::Counters;
use crate::hub::mailbox::pull::{Acknowledged, HostMailbox, Messages, check_key};
use crate::hub::mailbox::subscription::{Unsubscribe, Unsubscribed};
use crate::hub::message::{Received, Stored};
#[cfg(not(loom))]
use crate::hub::naps::NAP;
use crate::hub::supervise::burial::{Who, bury};
use crate::hub::supervise::dead::{DeadReason, Origin, Unfit};
use crate::hub::supervise::failure_policy::FailurePolicy;
use crate::hub::supervise::failures::{AfterCrash, crashed, tell_resumption, tell_suspension};
use crate::hub::supervise::supervisor::{Find, Supervised};
use crate::hub::system::notice::lock;
use crate::pool::{TurnClock, contain};
use crate::queue::{Line, Pollable, Wire};
use crate::sync::{Condvar, Mutex, MutexGuard, store_load_barrier};
use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

/// A replay to whoever pulls. Any thread may pull; each message goes to one of them. Whoever has a loop of his own
/// waits for [`descriptor`](Self::descriptor). Dropping it ends it.
#[must_use = "dropping it ends the replay"]
pub struct ReplayMailbox {
    pub(in crate::hub) core: Arc<Core>,
    pub(super) log: Arc<Log>,
    pub(in crate::hub) cursor: Mutex<Cursor>,
    pub(in crate::hub) pulling: Arc<Pulling>,
}

/// What the log, and the dead letters of a replay that is pulled, know of it.
///
/// No lock is taken under `state`. It is taken under those of logs, and under the cursor's.
pub(in crate::hub) struct Pulling {
    id: u64,
    pattern: Arc<str>,
    /// The host says what becomes of what it has taken.
    acknowledged: bool,
    pub(in crate::hub) policy: FailurePolicy,
    state: Mutex<Ledger>,
    /// Pullers wait here.
    changed: Condvar,
    pollable: Pollable<Wire>,
}

/// What became of a pulled replay's messages.
#[derive(Default)]
struct Ledger {
    /// How often pullers were woken.
    rung: u64,
    ended: bool,
    /// Nothing can be taken.
    suspended: bool,
    /// Dead letters that are delivered again before what is read.
    again: VecDeque<Stored>,
    /// Of the counters, `offered` is what was pulled and what waits to be pulled again.
    counters: Counters,
    /// If it is acknowledged: the sequences of what was taken and is not, in order.
    hand: VecDeque<u64>,
    /// Of the delivered, or taken out of `hand`: those that are about to become dead letters.
    burying: u64,
    lost: u64,
    last: u64,
    /// The counters are the hub's by now.
    moved: bool,
}

impl Pulling {
    pub(in crate::hub) fn new(
        id: u64,
        pattern: &str,
        acknowledged: bool,
        policy: FailurePolicy,
    ) -> Self {
        Self {
            id,
            pattern: pattern.into(),
            acknowledged,
            policy,
            state: Mutex::default(),
            changed: Condvar::new(),
            pollable: Pollable::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.state)
    }

    /// Takes dead letters that are to be delivered again. False: it is suspended.
    fn take_again(&self, into: &mut Vec<Received>, most: usize) -> Result<bool> {
        let mut state = self.state();
        if state.ended {
            return Err(Error::Stale { what: "replay" });
        }
        if state.suspended {
            return Ok(false);
        }
        let (count, before) = (most.min(state.again.len()), into.len());
        into.extend(state.again.drain(..count).map(|stored| Received { stored, lost_before: 0 }));
        self.count_taken(&mut state, &into[before..]);
        Ok(true)
    }

    /// Counts what was read.
    fn count(&self, read: &[Received]) {
        let mut state = self.state();
        state.counters.offered += read.len() as u64;
        state.lost += read.iter().map(|received| received.lost_before).sum::<u64>();
        if !self.acknowledged {
            state.last = read.last().map_or(state.last, |received| received.stored.sequence);
        }
        self.count_taken(&mut state, read);
    }

    fn count_taken(&self, state: &mut Ledger, taken: &[Received]) {
        match self.acknowledged {
            true => state.hand.extend(taken.iter().map(|received| received.stored.sequence)),
            false => state.counters.delivered += taken.len() as u64,
        }
    }

    fn stats(&self) -> ReplayStats {
        let state = self.state();
        let Counters { offered, delivered, failed, dead, discarded, redelivered, .. } =
            state.counters;
        ReplayStats {
            matched: offered,
            delivered,
            failed,
            dead_lettered: dead,
            discarded,
            waiting: state.again.len() as u64,
            running: state.running(self.acknowledged),
            lost: state.lost,
            last: state.last,
            restarts: self.policy.restarts(),
            redelivered,
        }
    }

    /// If it is acknowledged, and nothing is left: its counters become the hub's.
    fn settle(&self, core: &Core) {
        // In this order, so that whoever adds them up finds these once.
        let mut ended = core.lock_ended();
        let mut state = self.state();
        let is_over = state.ended && state.running(self.acknowledged) == 0;
        if self.acknowledged && is_over && !state.moved {
            state.moved = true;
            ended.add(&state.counters);
        }
    }
}

impl Ledger {
    fn running(&self, acknowledged: bool) -> u64 {
        if acknowledged { self.hand.len() as u64 + self.burying } else { 0 }
    }
}

impl ReplayRun for Pulling {
    /// Whoever pulls does.
    fn run(self: Arc<Self>, _: &Core, _: &mut TurnClock) -> bool {
        false
    }

    /// It leaves when it is dropped.
    fn leave_log(self: Arc<Self>) {}

    fn audit(&self) -> Option<(Counters, u64, u64)> {
        let state = self.state();
        let left = (state.again.len() as u64, state.running(self.acknowledged));
        (!state.moved).then_some((state.counters, left.0, left.1))
    }

    fn figures(&self) -> Option<ReplayFigures> {
        let (stats, state) = (self.stats(), self.state());
        (!state.moved).then(|| ReplayFigures {
            id: self.id,
            pattern: (&*self.pattern).into(),
            suspended: state.suspended,
            stats,
        })
    }
}

impl Supervised for (Arc<Core>, Arc<Pulling>) {
    fn suspend(&self) -> bool {
        let (core, pulling) = self;
        let mut state = pulling.state();
        let is_new = !state.suspended && !state.ended;
        state.suspended |= is_new;
        let waited = state.again.len() as u64;
        drop(state);
        if is_new {
            tell_suspension(&pulling.who(), core, &pulling.policy, waited, KEPT);
        }
        is_new
    }

    fn resume(&self) -> bool {
        let (core, pulling) = self;
        let mut state = pulling.state();
        let resumed = core::mem::take(&mut state.suspended);
        // Before its next message, which needs the lock.
        if resumed {
            pulling.policy.restart_later();
        }
        drop(state);
        if resumed {
            tell_resumption(&pulling.who(), core);
            Sleeper::wake(Arc::clone(pulling));
        }
        resumed
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

impl Pulling {
    fn origin(self: &Arc<Self>) -> Origin {
        let pulling = Arc::downgrade(self);
        Origin::new(move |stored| match pulling.upgrade() {
            Some(pulling) => pulling.redeliver(stored),
            None => Err(Unfit::Orphaned),
        })
    }

    pub(in crate::hub) fn find(self: &Arc<Self>, core: &Arc<Core>) -> Find {
        let (core, pulling) = (Arc::downgrade(core), Arc::downgrade(self));
        Arc::new(move || {
            Some(Box::new((core.upgrade()?, pulling.upgrade()?)) as Box<dyn Supervised>)
        })
    }

    fn who(self: &Arc<Self>) -> Who {
        let (id, pattern) = (self.id, Arc::clone(&self.pattern));
        Who { kind: "replay", id, pattern, origin: self.origin() }
    }

    fn redeliver(self: Arc<Self>, stored: &Stored) -> Result<(), Unfit> {
        let mut state = self.state();
        if state.ended {
            return Err(Unfit::Orphaned);
        }
        if state.suspended || state.again.len() >= AGAIN {
            return Err(Unfit::Refused);
        }
        state.again.push_back(stored.clone());
        state.counters.offered += 1;
        state.counters.redelivered += 1;
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
        Ok(self.take(into, most, None, usize::MAX)?.0)
    }

    /// As [`recv_batch`](Self::recv_batch), and looks at no more records than it can in a few milliseconds, if none of them
    /// comes here: whoever listens is told again.
    #[cfg(feature = "nats")]
    pub(crate) fn recv_some(&self, into: &mut Vec<Received>, most: usize) -> Result<usize> {
        Ok(self.take(into, most, None, 2)?.0)
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
            let (count, sleeps) = self.take(into, most, Some(&sleeper), usize::MAX)?;
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
        let acknowledged = self.pulling.acknowledged;
        let mut state = self.pulling.state();
        let is_taken = match acknowledged {
            true => {
                let place = state.hand.iter().position(|taken| *taken == message.sequence);
                place.and_then(|place| state.hand.remove(place)).is_some()
            }
            false => state.counters.delivered > state.burying,
        };
        if !is_taken {
            let allowed = "one that was taken from this mailbox and not buried before";
            return Err(Error::invalid("the message", format!("{message:?}"), allowed));
        }
        state.burying += 1;
        drop(state);
        let reason = if attempts == 0 { DeadReason::Suspended } else { DeadReason::Failed };
        bury(&self.core, &self.pulling.who(), message, reason, failure, attempts);
        let mut state = self.pulling.state();
        state.burying -= 1;
        state.counters.dead += 1;
        match acknowledged {
            // What is delivered again is older.
            true => state.last = state.last.max(message.sequence),
            false => state.counters.delivered -= 1,
        }
        drop(state);
        self.pulling.settle(&self.core);
        Ok(())
    }

    /// Of one that is [acknowledged](crate::hub::history::ReplayBuilder::acknowledged): as
    /// [`Mailbox::acknowledge`](crate::hub::Mailbox::acknowledge).
    ///
    /// # Errors
    /// As there.
    pub fn acknowledge(&self, done: Acknowledged) -> Result<()> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let mut state = self.pulling.state();
        let (count, left) = (done.count(), state.hand.len() as u64);
        if count > left {
            drop(state);
            return Err(done.too_many(left));
        }
        // What is thrown away was taken last.
        let dealt = (done.delivered + done.failed) as usize;
        let last = state.hand.drain(..count as usize).take(dealt).max();
        state.last = state.last.max(last.unwrap_or(0));
        state.counters.delivered += done.delivered;
        state.counters.failed += done.failed;
        state.counters.discarded += done.discarded;
        let is_over = state.ended;
        drop(state);
        if is_over {
            self.pulling.settle(&self.core);
        }
        Ok(())
    }

    /// As [`Mailbox::crashed`](crate::hub::Mailbox::crashed).
    ///
    /// # Errors
    /// As there.
    pub fn crashed(&self, failure: &str) -> Result<AfterCrash> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let (policy, who) = (&self.pulling.policy, self.pulling.who());
        Ok(crashed(policy, &self.core, &who, &self.find(), failure))
    }

    /// As [`Mailbox::catch_up`](crate::hub::Mailbox::catch_up).
    pub fn catch_up(&self) -> bool {
        self.pulling.policy.catch_up()
    }

    /// As [`Mailbox::suspend`](crate::hub::Mailbox::suspend), but that what comes stays in the history, and can be taken
    /// after [`resume`](Self::resume), or when the time is over: until then nothing can.
    ///
    /// # Errors
    /// As there.
    pub fn suspend(&self, lasts: Option<Duration>) -> Result<bool> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        self.pulling.policy.supervisor().suspend_for(&self.core.shared, lasts, &self.find())
    }

    /// Ends a suspension. False: there was none.
    pub fn resume(&self) -> bool {
        let own = || self.find()().is_some_and(|found| found.resume());
        !self.core.shared.is_forked() && self.pulling.policy.supervisor().resume_members(own)
    }

    /// Whether it is suspended.
    pub fn is_suspended(&self) -> bool {
        self.pulling.state().suspended
    }

    fn find(&self) -> Find {
        self.pulling.find(&self.core)
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
        let pollable = &self.pulling.pollable;
        pollable.demand(Wire::descriptor, || self.is_worth_a_look())?.as_fd()
    }

    /// Its number, which no subscription and no other replay of the hub has or had.
    pub fn id(&self) -> u64 {
        self.pulling.id
    }

    /// What it replays.
    pub fn pattern(&self) -> &str {
        &self.pulling.pattern
    }

    /// Its counts. What was pulled counts as delivered until it is [buried](Self::bury), or if it is
    /// [acknowledged](crate::hub::history::ReplayBuilder::acknowledged) as running until then; what is in the history and
    /// was not pulled is not counted.
    pub fn stats(&self) -> ReplayStats {
        self.pulling.stats()
    }

    /// How many records of the history it has not looked at, those of other keys included.
    #[cfg(feature = "nats")]
    pub(crate) fn behind(&self) -> u64 {
        self.log.next().saturating_sub(lock(&self.cursor).next)
    }

    /// The position of the first message behind this sequence that is kept, or of the next one.
    ///
    /// # Errors
    /// [`Error::Os`] if the archive cannot be read; [`Error::ShutDown`].
    #[cfg(feature = "nats")]
    pub(crate) fn first_behind(&self, sequence: u64) -> Result<u64> {
        let query =
            super::query::Query::of(&*self.pulling.pattern).sequences(sequence + 1..=u64::MAX);
        self.log.start_of(&query)
    }

    /// Before anything is taken: it reads from this position on, and what is not there any more counts as lost.
    #[cfg(feature = "nats")]
    pub(crate) fn begin_at(&self, position: u64) {
        let mut cursor = lock(&self.cursor);
        cursor.next = cursor.next.min(position);
    }

    /// Whether nothing waits to be pulled, and nothing that was is unacknowledged.
    #[cfg(feature = "nats")]
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_worth_a_look() && self.stats().running == 0
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
        state.counters.discarded += state.again.len() as u64;
        let left = core::mem::take(&mut state.again);
        drop(state);
        let _panicked = contain(|| drop(left));
        self.pulling.settle(&self.core);
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
        let nap = left.map_or(NAP, |left| left.min(NAP));
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
        reads: usize,
    ) -> Result<(usize, bool)> {
        if self.core.shared.is_forked() {
            return Err(Error::Forked);
        }
        let before = into.len();
        if !self.pulling.take_again(into, most)? {
            self.pulling.pollable.found_nothing(|| self.is_worth_a_look());
            // Whoever resumes it wakes those who wait.
            return Ok((0, true));
        }
        let again = into.len() - before;
        // What comes again while this reads is found by the next: it has woken those who wait.
        let sleeper = sleeper.filter(|_| again == 0);
        let (read, sleeps) = self.read(into, most - again, sleeper, reads);
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
        mut reads: usize,
    ) -> (usize, bool) {
        let mut cursor = lock(&self.cursor);
        let before = into.len();
        loop {
            let count = into.len() - before;
            let sleeper = sleeper.filter(|_| count == 0);
            let batch = cursor.read(&self.log, (most - count).min(BATCH), sleeper);
            let is_end = batch.records.is_empty() && batch.next >= self.log.next();
            for (lost_before, mut stored) in batch.records {
                own_key(&self.core, &mut stored);
                into.push(Received { stored, lost_before });
            }
            let count = into.len() - before;
            reads -= 1;
            if is_end || batch.sleeps || count >= most || reads == 0 {
                // Under the cursor's lock, so that the last that is told is the greatest.
                self.pulling.count(&into[before..]);
                return (count, batch.sleeps);
            }
        }
    }

    /// Whether there may be something to pull, or it has ended; if not, the log wakes it for the next.
    fn is_worth_a_look(&self) -> bool {
        let state = self.pulling.state();
        if state.ended || state.suspended {
            return state.ended;
        }
        if !state.again.is_empty() {
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

impl HostMailbox for ReplayMailbox {
    fn take_brought(&self, most: usize) -> Result<(Messages, usize, bool)> {
        let (mut received, mut messages) = (Vec::new(), Messages::default());
        let count = self.recv_batch(&mut received, most)?;
        received.into_iter().for_each(|message| messages.push(message));
        Ok((messages, count, false))
    }

    fn listen(&self, line: Arc<dyn Line>) -> bool {
        self.pulling.pollable.listen(line, || self.is_worth_a_look())
    }

    fn bury(&self, message: &Stored, failure: Option<&str>, attempts: u32) -> Result<()> {
        self.bury(message, failure, attempts)
    }

    fn key(&self, text: &str) -> Result<Key> {
        check_key(self.pattern(), text)?;
        Ok(self.core.keys.intern(text))
    }

    fn acknowledge(&self, done: Acknowledged) -> Result<()> {
        self.acknowledge(done)
    }

    fn crashed(&self, failure: &str) -> Result<AfterCrash> {
        self.crashed(failure)
    }

    fn catch_up(&self) -> bool {
        self.catch_up()
    }

    fn is_suspended(&self) -> bool {
        self.is_suspended()
    }

    fn suspend(&self, lasts: Option<Duration>) -> Result<bool> {
        self.suspend(lasts)
    }

    fn resume(&self) -> bool {
        self.resume()
    }

    fn unsubscribe(&self, _: Unsubscribe) -> Result<Unsubscribed> {
        self.end()?;
        match self.pulling.state().running(self.pulling.acknowledged) {
            0 => Ok(Unsubscribed::Now),
            _ => Ok(Unsubscribed::Later),
        }
    }
}

impl Drop for ReplayMailbox {
    fn drop(&mut self) {
        // In a child made by fork it is the parent's.
        if self.end().is_ok() {
            // Nobody acknowledges the rest any more.
            let left = self.pulling.state().hand.len() as u64;
            let _none = self.acknowledge(Acknowledged { discarded: left, ..Default::default() });
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
