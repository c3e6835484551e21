//! What a task's record holds, and the one reference to it that the rest of this module uses.
//!
//! The word, and every race about a task's end, are in [`crate::pool::record`]. Records are never
//! freed, and a task type is there as long as a record refers to it (`estate.rs`), so a task counts no
//! references; and what is late is turned away by the generation in the word.

use super::attempt::Fault;
use super::estate::Pin;
use super::overlap::Again;
use super::report::Status;
use super::task_type::{Limits, TaskTypeInner};
use super::{observe, pulled, waiting};
use crate::pool::contain;
pub(super) use crate::pool::record::Seen as Look;
use crate::pool::record::{self, ASKED, LATE, Magazine, Meta, RecordTable, Seen, Yield};
use crate::queue::Lane;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use crate::sync::{SpinWait, StaticRef};
use crate::sys::clock;
use crate::thread_state::lap;
use crate::time::Retry;
use core::task::Waker;
use core::time::Duration;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// The most tasks with a handle that may be under way in a process.
pub(super) const MAX_TASKS: usize = 1 << 24;

/// A million of them may wait for their time, and nothing else is kept for one.
#[cfg(not(loom))]
const _: () = assert!(size_of::<Record>() == 64 && size_of::<Annex>() <= 56);

/// Nobody, as a worker's number.
const NOBODY: u16 = u16::MAX;
/// The task has extras.
const EXTRAS: u8 = 1;
/// Its name's gate has let it go.
const RELEASED: u8 = 2;
/// It has one of the places of those that run.
const PLACE: u8 = 4;
/// Its time in the queue is in the annex. Otherwise its first attempt is the last one, and says it.
const NOTED: u8 = 8;

/// Of `run_time`: that of the last attempt is in it.
const RUN_NOTED: u64 = 1 << 63;

pub(super) type Record = record::Record<TaskMeta>;
pub(super) type Runner<T> = record::Runner<TaskMeta, Result<T, Fault>>;
pub(super) type Holder<T> = record::Holder<TaskMeta, Result<T, Fault>>;

#[cfg(not(loom))]
type Annex = record::Annex<TaskMeta>;

impl<T> Yield for Result<T, Fault> {
    type Value = T;

    #[inline]
    fn split(self) -> Result<T, Self> {
        self.map_err(Err)
    }

    #[inline]
    fn join(value: T) -> Self {
        Ok(value)
    }
}

/// All tasks of the process.
#[inline]
pub(super) fn table() -> &'static RecordTable<TaskMeta> {
    static TABLE: OnceLock<RecordTable<TaskMeta>> = OnceLock::new();
    TABLE.get_or_init(|| RecordTable::new(MAX_TASKS))
}

thread_local! {
    static MAGAZINE: Magazine<TaskMeta> = const { Magazine::new() };
}

/// The tenant's part of a record. Times are nanoseconds of the pool's clock.
#[derive(Default)]
pub(crate) struct TaskMeta {
    task_type: StaticRef<TaskTypeInner>,
    submitted: AtomicU64,
    /// Of the attempt that runs, or of the last one.
    began: AtomicU64,
    run_time: AtomicU64,
    /// Of each attempt; u64::MAX: none.
    attempt_limit: AtomicU64,
    attempts: AtomicU32,
    worker: AtomicU16,
    lane: AtomicU8,
    flags: AtomicU8,
}

/// The tenant's part of an annex.
#[derive(Default)]
pub(crate) struct Seldom {
    queue_time: AtomicU64,
    /// Of a task that waits for its time.
    wake_at: AtomicU64,
}

/// What fewer tasks have is kept apart, by the address of their records, so that a million tasks that have
/// nothing of it take no room for it.
static APART: [Apart; 64] = [const { Apart::new(BTreeMap::new()) }; 64];

type Apart = Mutex<BTreeMap<usize, Box<Extras>>>;

/// What few tasks have.
#[derive(Default)]
pub(super) struct Extras {
    /// In place of the task type's.
    pub(super) retry: Option<Retry>,
    pub(super) limits: Option<Limits>,
    /// Who is told of the end.
    pub(super) waker: Option<Waker>,
    pub(super) callbacks: Vec<Callback>,
    /// Where its job waits.
    pub(super) place: Place,
    /// By which the host knows it that pulls its attempts.
    pub(super) token: Option<u64>,
    /// What overtakes its attempts.
    pub(super) again: Option<Weak<dyn Again>>,
}

/// Where a job waits from which it can be taken.
#[derive(Clone, Copy, Default)]
pub(super) enum Place {
    #[default]
    Elsewhere,
    Gate,
}

pub(super) type Callback = Box<dyn FnOnce(Status) + Send>;

impl Meta for TaskMeta {
    type Owner = &'static TaskTypeInner;
    type Seldom = Seldom;

    #[inline]
    fn table() -> &'static RecordTable<Self> {
        table()
    }

    #[inline]
    fn magazine() -> &'static std::thread::LocalKey<Magazine<Self>> {
        &MAGAZINE
    }

    #[inline]
    fn owner(&self) -> &'static TaskTypeInner {
        self.task_type.get().expect("a record that is let has a task type")
    }

    #[inline]
    fn is_told(owner: &'static TaskTypeInner) -> bool {
        owner.told
    }

    #[inline]
    fn count(owner: &'static TaskTypeInner, status: u32) {
        owner.ended(Status::from_bits(status));
    }

    fn tell(record: &'static Record, status: u32, message: Option<&str>) {
        observe::tell_end(Head(record), Status::from_bits(status), message);
    }

    fn notify(record: &'static Record) {
        Head(record).notify();
    }

    #[inline]
    fn clear(&self) {
        if self.flags.load(Relaxed) & EXTRAS != 0 {
            let extras = self.with_extras(Option::take);
            let _panicked = contain(|| drop(extras));
        }
    }

    fn gone_unrun(record: &'static Record) {
        if let Some(gate) = &record.meta.owner().gate {
            gate.gone_unrun(Head(record));
        }
    }

    fn note_unrun(record: &'static Record) {
        // No attempt runs: one that had begun was revoked, and has no time.
        Head(record).note_end(Status::Pending);
    }

    fn wake_at(seldom: &Seldom) -> &AtomicU64 {
        &seldom.wake_at
    }

    #[inline]
    fn is_forked(owner: &'static TaskTypeInner) -> bool {
        owner.fork.is_child()
    }
}

impl TaskMeta {
    fn with_extras<R>(&self, f: impl FnOnce(&mut Option<Box<Extras>>) -> R) -> R {
        let key = core::ptr::from_ref(self).addr();
        let part = &APART[key / size_of::<Record>() % APART.len()];
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        let mut extras = part.remove(&key);
        let result = f(&mut extras);
        if let Some(extras) = extras {
            part.insert(key, extras);
        }
        result
    }
}

/// A task under way. Whoever has one is an end of the task, or is ending it, or has a `Pin` of its task type and looks at
/// what was seen there, which may be over.
#[derive(Clone, Copy)]
pub(crate) struct Head(pub(super) &'static Record);

/// A new task of `task_type`. None: there are too many.
#[inline(always)]
pub(super) fn open<T: Send + 'static>(
    task_type: &'static TaskTypeInner,
    lane: Lane,
    attempt_limit: u64,
    extras: Option<Box<Extras>>,
    now: u64,
) -> Option<(Runner<T>, Holder<T>)> {
    let record = RecordTable::<TaskMeta>::take()?;
    let meta = &record.meta;
    meta.task_type.set(task_type);
    meta.submitted.store(now, Relaxed);
    meta.run_time.store(0, Relaxed);
    meta.attempt_limit.store(attempt_limit, Relaxed);
    meta.attempts.store(0, Relaxed);
    meta.worker.store(NOBODY, Relaxed);
    meta.lane.store(lane as u8, Relaxed);
    meta.flags.store(if extras.is_some() { EXTRAS } else { 0 }, Relaxed);
    if extras.is_some() {
        meta.with_extras(|place| *place = extras);
    }
    Some(record.publish())
}

/// Every task whose task type passes `of` and that has not ended, as it was seen. The `Pin` is held as long as
/// they are looked at.
pub(super) fn live<'a>(
    _pin: &'a Pin,
    of: impl Fn(&'static TaskTypeInner) -> bool + 'a,
) -> impl Iterator<Item = (Head, Seen)> + 'a {
    table().all().filter_map(move |record| {
        let seen = record.look();
        (seen.is_live() && record.meta.task_type.get().is_some_and(&of))
            .then_some((Head(record), seen))
    })
}

/// Where the task types are that records refer to.
pub(super) fn task_types_referred_to() -> impl Iterator<Item = usize> {
    // The look has Acquire: who freed a record is through with the task type that it had.
    table().all().filter(|record| record.look().is_let()).map(|record| record.meta.task_type.addr())
}

/// The task with this number, as it was seen. The `Pin` is held as long as it is looked at.
pub(super) fn find(_pin: &Pin, id: u64) -> Option<(Head, Seen)> {
    let (index, generation) = Record::of_id(id);
    let record = table().get(index)?;
    let seen = record.look();
    seen.is_tenant(generation).then_some((Head(record), seen))
}

impl Head {
    #[inline]
    pub(super) fn task_type(self) -> &'static TaskTypeInner {
        self.0.meta.owner()
    }

    #[inline]
    pub(super) fn id(self) -> u64 {
        self.0.id()
    }

    #[inline]
    pub(super) fn lane(self) -> Lane {
        Lane::ALL[usize::from(self.0.meta.lane.load(Relaxed))]
    }

    #[inline]
    pub(super) fn status(self) -> Status {
        Status::from_bits(self.0.status())
    }

    #[inline]
    pub(super) fn is_ended(self) -> bool {
        self.status().is_end()
    }

    #[inline]
    pub(super) fn submitted(self) -> u64 {
        self.0.meta.submitted.load(Relaxed)
    }

    #[inline]
    pub(super) fn began(self) -> u64 {
        self.0.meta.began.load(Relaxed)
    }

    /// How many attempts have begun.
    #[inline]
    pub(super) fn attempts(self) -> u32 {
        self.0.begun(|| self.noted())
    }

    /// The number of the last attempt that was noted. An end may come before it begins.
    #[inline]
    pub(super) fn noted(self) -> u32 {
        // Acquire: pairs with `note_begin`, and keeps the word's load behind this one.
        self.0.meta.attempts.load(Acquire)
    }

    #[inline]
    pub(super) fn worker(self) -> Option<usize> {
        self.worker_of(self.attempts())
    }

    /// That of the last of so many attempts that have begun.
    #[inline]
    pub(super) fn worker_of(self, attempts: u32) -> Option<usize> {
        let worker = self.0.meta.worker.load(Relaxed);
        (worker != NOBODY && attempts > 0).then_some(usize::from(worker))
    }

    #[inline]
    pub(super) fn queue_time(self) -> Duration {
        self.queue_time_of(self.attempts())
    }

    /// That of a task of which so many attempts have begun.
    #[inline]
    pub(super) fn queue_time_of(self, attempts: u32) -> Duration {
        // Acquire: whoever changes the time of the begin has noted this before.
        let began = self.0.meta.began.load(Acquire);
        Duration::from_nanos(match self.0.meta.flags.load(Relaxed) & NOTED {
            0 if attempts == 0 => 0,
            0 => began.saturating_sub(self.submitted()),
            _ => self.0.annex().seldom.queue_time.load(Relaxed),
        })
    }

    /// The first attempt's begin is about to be forgotten.
    #[cold]
    fn keep_queue_time(self) {
        // Acquire: pairs with `renew`, which notes it before.
        let began = self.0.meta.began.load(Acquire);
        if self.0.meta.flags.load(Relaxed) & NOTED == 0 {
            self.note_queue_time(began);
        }
    }

    /// Its time in the queue was until then.
    #[cold]
    fn note_queue_time(self, until: u64) {
        let waited = until.saturating_sub(self.submitted());
        self.0.annex().seldom.queue_time.store(waited, Relaxed);
        self.0.meta.flags.fetch_or(NOTED, Release);
    }

    #[inline]
    pub(super) fn run_time(self) -> Duration {
        Duration::from_nanos(self.0.meta.run_time.load(Relaxed) & !RUN_NOTED)
    }

    #[inline]
    pub(super) fn has_extras(self) -> bool {
        self.0.meta.flags.load(Relaxed) & EXTRAS != 0
    }

    /// The task's own limits in the queue and in all, or its task type's.
    pub(super) fn limits(self) -> Limits {
        let own =
            self.has_extras().then(|| self.0.meta.with_extras(|extras| extras.as_ref()?.limits));
        let limits = own.flatten().unwrap_or(self.task_type().settings.limits);
        Limits { attempt: self.0.meta.attempt_limit.load(Relaxed), ..limits }
    }

    /// Its name's gate lets it go on, with a place or where there are none.
    pub(super) fn set_released(self, has_place: bool) {
        let place = if has_place { PLACE } else { 0 };
        self.0.meta.flags.fetch_or(RELEASED | place, Relaxed);
    }

    pub(super) fn set_place(self, has_place: bool) {
        let flags = &self.0.meta.flags;
        match has_place {
            true => flags.fetch_or(PLACE, Relaxed),
            false => flags.fetch_and(!PLACE, Relaxed),
        };
    }

    /// Whether it had a place until now.
    pub(super) fn take_place(self) -> bool {
        self.0.meta.flags.fetch_and(!PLACE, Relaxed) & PLACE != 0
    }

    /// Whether its name's gate has let it go since this was last asked.
    pub(super) fn take_released(self) -> bool {
        self.0.meta.flags.fetch_and(!RELEASED, Relaxed) & RELEASED != 0
    }

    /// Calls `f` with the task's own retry policy, or its task type's.
    pub(super) fn with_retry<R>(self, f: impl FnOnce(&Retry) -> R) -> R {
        let own = self.has_extras().then(|| {
            self.0.meta.with_extras(|extras| extras.as_ref().and_then(|own| own.retry.clone()))
        });
        f(own.flatten().as_ref().unwrap_or(&self.task_type().settings.retry))
    }

    /// What overtakes its attempts, if they may overlap and it has not ended.
    pub(super) fn again(self) -> Option<Arc<dyn Again>> {
        if !self.task_type().settings.overlap_retries || !self.has_extras() {
            return None;
        }
        self.0.meta.with_extras(|extras| extras.as_ref()?.again.as_ref()?.upgrade())
    }

    #[inline]
    pub(super) fn attempt_limit(self) -> u64 {
        self.0.meta.attempt_limit.load(Relaxed)
    }

    /// When the attempt that runs must be over; u64::MAX: never.
    pub(super) fn attempt_deadline(self) -> u64 {
        self.attempt_deadline_from(self.began())
    }

    #[inline]
    pub(super) fn attempt_deadline_from(self, began: u64) -> u64 {
        deadline(began, self.attempt_limit())
    }

    pub(super) fn overall_deadline(self) -> u64 {
        self.deadline_from_start(self.limits().overall)
    }

    pub(super) fn deadline_from_start(self, limit: u64) -> u64 {
        deadline(self.submitted(), limit)
    }

    /// The function has given a sign of life: the time of its attempt begins anew.
    pub(super) fn renew(self, now: u64) {
        self.keep_queue_time();
        let meta = &self.0.meta;
        if meta.run_time.load(Relaxed) & RUN_NOTED != 0 {
            return;
        }
        // A sign of one that was overtaken meanwhile is older than the begin of the next. Release: the time
        // in the queue is noted.
        let took = now.saturating_sub(meta.began.fetch_max(now, Release));
        // Whoever ends the task at this moment has counted it.
        let add = |time| (time & RUN_NOTED == 0).then_some(time + took);
        let _ended = meta.run_time.fetch_update(Relaxed, Relaxed, add);
    }

    /// Notes what the attempt that is about to begin is like, and says its number.
    #[inline]
    pub(super) fn note_begin(self, now: u64, worker: Option<usize>) -> u32 {
        let meta = &self.0.meta;
        let number = self.noted() + 1;
        if number > 1 {
            self.keep_queue_time();
        }
        // Release: the time in the queue is noted.
        meta.began.store(now, Release);
        let worker = worker.and_then(|worker| u16::try_from(worker).ok());
        meta.worker.store(worker.unwrap_or(NOBODY), Relaxed);
        // Release: what has begun before it is seen by whoever sees it.
        meta.attempts.store(number, Release);
        // Last: until then a late sign of the attempt before is seen to be counted.
        if number > 1 && !self.is_ended() {
            meta.run_time.fetch_and(!RUN_NOTED, Relaxed);
        }
        number
    }

    /// The attempt that was noted does not begin after all.
    pub(super) fn note_unbegun(self, number: u32) {
        // Release: the word says so, too, to whoever sees it.
        self.0.meta.attempts.store(number - 1, Release);
        self.0.meta.worker.store(NOBODY, Relaxed);
    }

    /// The attempt that was noted was overtaken: no thread runs it for the task any more.
    pub(super) fn note_overtaken(self) {
        self.0.meta.worker.store(NOBODY, Relaxed);
    }

    /// The attempt has returned. If the task has ended before, its time is noted already: one that is over its limit
    /// has run until then.
    #[inline]
    pub(super) fn note_return(self, now: u64) {
        let meta = &self.0.meta;
        let before = meta.run_time.load(Relaxed);
        if before & RUN_NOTED == 0 {
            let took = now.saturating_sub(meta.began.load(Relaxed));
            // If the task ends meanwhile either time will do, and one replaces the other.
            meta.run_time.store((before + took) | RUN_NOTED, Relaxed);
        }
    }

    /// For an end that is not an attempt's: the times until now.
    fn note_end(self, before: Status) {
        let now = self.task_type().clock.now();
        let meta = &self.0.meta;
        match before {
            _ if self.attempts() == 0 => self.note_queue_time(now),
            Status::Running => {
                let took = now.saturating_sub(self.began());
                let add = |time| (time & RUN_NOTED == 0).then_some((time + took) | RUN_NOTED);
                let _returned = meta.run_time.fetch_update(Relaxed, Relaxed, add);
            }
            _ => {}
        }
    }

    /// The task has ended: until what a report says of it is noted, which is a matter of its clock. In a child made
    /// by fork whoever was about to do so may be missing.
    #[cold]
    pub(super) fn until_noted(self) {
        let mut wait = SpinWait::new();
        while self.look().is_unnoted() && !self.task_type().fork.is_child() {
            if !wait.spin() {
                // That thread has lost its processor, to this one perhaps, which may have the higher priority.
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }

    /// Brings the task to an end that is not its function's own, if `may` allows it by what lives in the
    /// record at that moment. True: this was it.
    pub(super) fn end_if(self, status: Status, may: impl Fn(Seen) -> bool) -> bool {
        let note = |before| self.note_end(Status::from_bits(before));
        self.0.end_if(status as u32, may, note, self.reason(status))
    }

    /// Why a task that ended so has no value, if its function did not say.
    pub(super) fn reason(self, status: Status) -> &'static str {
        match status {
            Status::Cancelled => "it was cancelled",
            Status::Rejected => "it was dropped to make room for others",
            _ if self.attempts() == 0 => "its time was over before it could begin",
            _ => "its time was over",
        }
    }

    /// Asks the function to give up.
    pub(super) fn ask(self) {
        self.0.mark(ASKED);
    }

    /// The same for an attempt that was seen to run, by whoever is no end of the task.
    pub(super) fn ask_seen(self, seen: Seen) {
        self.0.mark_running(seen, ASKED);
    }

    pub(super) fn is_asked(self) -> bool {
        self.0.has(ASKED)
    }

    /// The time of the attempt that was seen is over. True for the first who says so.
    pub(super) fn make_late(self, seen: Seen) -> bool {
        self.0.mark_running(seen, LATE)
    }

    pub(super) fn is_late(self) -> bool {
        self.0.has(LATE)
    }

    #[inline]
    pub(super) fn should_stop(self) -> bool {
        self.0.should_stop()
    }

    #[inline]
    pub(super) fn look(self) -> Seen {
        self.0.look()
    }

    /// Sleeps until the end, at most for `timeout`. False: it has not come.
    pub(super) fn sleep(self, timeout: Option<Duration>) -> bool {
        self.0.sleep(timeout)
    }

    /// Has somebody told of the end: by `put`, unless it has come. True: it has, and what was put is
    /// called by now.
    pub(super) fn when_ended(self, put: impl FnOnce(&mut Extras)) -> bool {
        let meta = &self.0.meta;
        meta.with_extras(|extras| put(extras.get_or_insert_default()));
        meta.flags.fetch_or(EXTRAS, Relaxed);
        let ended = self.0.ask_to_notify();
        if ended {
            self.notify();
        }
        ended
    }

    fn notify(self) {
        if let Some(parcel) = self.0.unpark() {
            self.task_type().lobby.sleepers.drop_taken(self, parcel);
        }
        if !self.has_extras() {
            return;
        }
        let status = self.status();
        let (waker, callbacks, place, token) = self.0.meta.with_extras(|extras| match extras {
            Some(extras) => {
                let callbacks = core::mem::take(&mut extras.callbacks);
                let place = core::mem::take(&mut extras.place);
                (extras.waker.take(), callbacks, place, extras.token.take())
            }
            None => (None, Vec::new(), Place::Elsewhere, None),
        });
        waiting::take_out(self, place);
        if let Some(token) = token {
            pulled::tell_end(self, token, status);
        }
        if let Some(waker) = waker {
            let _panicked = contain(|| waker.wake());
        }
        for callback in callbacks {
            let _panicked = contain(|| callback(status));
        }
    }
}

/// Whether the status that was seen is `status`.
pub(super) fn is(seen: Seen, status: Status) -> bool {
    Status::from_bits(seen.status()) == status
}

/// When a time that began at a stamp is over. Never early: of a long time the stamp may be behind.
#[inline]
fn deadline(stamp: u64, limit: u64) -> u64 {
    match limit {
        u64::MAX => u64::MAX,
        LONG.. => stamp.saturating_add(limit).saturating_add(clock::TICK),
        _ => stamp.saturating_add(limit),
    }
}

// --- the time ---------------------------------------------------------------------------------------

/// So many stamps of one tick are exact.
const EXACT: u32 = 64;
/// Of the others, one in so many is.
const SAMPLED: u32 = 32;
/// What limits times of this length or more may be told by a stamp that is a tick behind.
pub(super) const LONG: u64 = 1_000_000_000;

thread_local! {
    static STAMPS: Stamps = const {
        Stamps {
            tick: Cell::new(0),
            given: Cell::new(0),
            last: Cell::new(0),
            next_lap: Cell::new(u64::MAX),
        }
    };
}

/// Reading the clock takes longer than an empty task. A thread that asks for the time very often within
/// one tick of the kernel's gets the last answer again for most of them.
struct Stamps {
    tick: Cell<u64>,
    given: Cell<u32>,
    last: Cell<u64>,
    /// If this is the thread's lap, it has done nothing since the last answer.
    next_lap: Cell<u64>,
}

/// The time of the machine's clock, which may be behind by up to a tick of the kernel's (1 to 10 ms) if
/// this thread has asked for it more than 64 times within that tick.
#[inline]
pub(super) fn stamp() -> u64 {
    STAMPS.try_with(Stamps::take).unwrap_or_else(|_| clock::now())
}

/// The same for an attempt that ends. `at_once`: nothing of the user's runs between this and the thread's
/// next lap but what begins one.
#[inline]
pub(super) fn stamp_end(at_once: bool) -> u64 {
    if at_once {
        let _gone = STAMPS.try_with(|stamps| stamps.next_lap.set(lap() + 1));
    }
    stamp()
}

/// The same for an attempt that begins on a thread of the pool: when the one before it ended, if they
/// were claimed together.
#[inline]
pub(super) fn stamp_begin() -> u64 {
    let last =
        STAMPS.try_with(|stamps| (stamps.next_lap.get() == lap()).then(|| stamps.last.get()));
    last.ok().flatten().unwrap_or_else(stamp)
}

impl Stamps {
    #[inline(always)]
    fn take(&self) -> u64 {
        let tick = clock::coarse();
        if self.tick.replace(tick) != tick {
            self.given.set(0);
        }
        let given = self.given.get();
        self.given.set(given + 1);
        if given < EXACT || given.is_multiple_of(SAMPLED) {
            self.last.set(clock::now());
        }
        self.last.get()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Pool;
    use crate::task::WorkerPool;

    const SECOND: Duration = Duration::from_secs(1);

    /// Goal: the report of a task that ends in the very moment when it is about to begin is that of one that never
    /// began. Method: the steps of who begins it, with a cancel in between; and a begin that a shutdown revokes.
    #[test]
    fn what_was_about_to_begin_has_no_attempt() {
        let pool = Pool::builder().threads(1).build().unwrap();
        let workers = WorkerPool::new(&pool);
        let task_type = workers.task_type("late").build().unwrap();
        for revoked in [false, true] {
            let clock = &task_type.inner().clock;
            let submitted = clock.now().saturating_sub(SECOND.as_nanos() as u64);
            let opened = open::<()>(task_type.inner(), Lane::Normal, u64::MAX, None, submitted);
            let (runner, holder) = opened.unwrap();
            let head = Head(holder.record());
            let number = head.note_begin(clock.now(), Some(0));
            assert_eq!((number, head.noted(), head.attempts(), head.worker()), (1, 1, 0, None));
            if revoked {
                assert!(runner.begin().is_some());
                assert_eq!((head.attempts(), head.worker()), (1, Some(0)));
                head.note_unbegun(number);
                runner.unbegin();
                drop(runner);
            } else {
                assert!(head.end_if(Status::Cancelled, |_| true));
                assert!(runner.begin().is_none());
                drop(runner);
            }
            assert_eq!((head.status(), head.attempts()), (Status::Cancelled, 0));
            assert_eq!((head.worker(), head.run_time()), (None, Duration::ZERO));
            assert!(head.queue_time() >= SECOND, "{:?}", head.queue_time());
        }
    }
}
