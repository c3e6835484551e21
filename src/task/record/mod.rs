//! What a task's record holds, and the one reference to it that the rest of this module uses.
//!
//! The word, and every race about a task's end, are in [`crate::task::record::word`]. Records are never
//! freed, and a task type is there as long as a record refers to it (`arena.rs`), so a task counts no
//! references; and what is late is turned away by the generation in the word.

#[cfg(all(test, loom))]
pub(crate) mod models;
pub(in crate::task) mod table;
pub(crate) mod word;

use crate::task::arena::Pin;
use crate::task::attempt::fault::Fault;
use crate::task::attempt::guard::Begun;
use crate::task::stamp::LONG;

use crate::queue::Lane;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use crate::sync::{SpinWait, StaticRef};
use crate::sys::clock;
use crate::task::common::TaskTypeInner;
pub(in crate::task) use crate::task::record::word::Seen as Look;
use crate::task::result::report::Status;
use crate::task::settings::Limits;
use crate::time::Retry;
use core::task::Waker;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use table::{Magazine, RecordTable};
use word::{ASKED, LATE, Meta, Seen, Yield};

/// The most tasks with a handle that may be under way in a process.
pub(in crate::task) const MAX_TASKS: usize = 1 << 24;

/// A million of them may wait for their time, and nothing else is kept for one.
#[cfg(not(loom))]
const _: () = assert!(size_of::<Record>() == 64 && size_of::<Annex>() <= 56);

/// Nobody, as a worker's number.
const NOBODY: u16 = u16::MAX;
/// The task has extras.
pub(in crate::task) const EXTRAS: u8 = 1;
/// Its name's limiter has let it go.
const RELEASED: u8 = 2;
/// It has one of the places of those that run.
const PLACE: u8 = 4;
/// Its time in the queue is in the annex. Otherwise its first attempt is the last one, and says it.
const NOTED: u8 = 8;

/// Of `run_time`: that of the last attempt is in it.
const RUN_NOTED: u64 = 1 << 63;

pub(in crate::task) type Record = word::Record<TaskMeta>;
pub(in crate::task) type Runner<T> = word::Runner<TaskMeta, Result<T, Fault>>;
pub(in crate::task) type Holder<T> = word::Holder<TaskMeta, Result<T, Fault>>;

#[cfg(not(loom))]
type Annex = word::Annex<TaskMeta>;

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
pub(in crate::task) fn table() -> &'static RecordTable<TaskMeta> {
    static TABLE: OnceLock<RecordTable<TaskMeta>> = OnceLock::new();
    TABLE.get_or_init(|| RecordTable::new(MAX_TASKS))
}

thread_local! {
    pub(in crate::task) static MAGAZINE: Magazine<TaskMeta> = const { Magazine::new() };
}

/// The tenant's part of a record. Times are nanoseconds of the pool's clock.
#[derive(Default)]
pub(crate) struct TaskMeta {
    pub(in crate::task) task_type: StaticRef<TaskTypeInner>,
    submitted: AtomicU64,
    /// Of the attempt that runs, or of the last one.
    began: AtomicU64,
    run_time: AtomicU64,
    /// Of each attempt; u64::MAX: none.
    attempt_limit: AtomicU64,
    attempts: AtomicU32,
    worker: AtomicU16,
    lane: AtomicU8,
    pub(in crate::task) flags: AtomicU8,
}

/// The tenant's part of an annex.
#[derive(Default)]
pub(crate) struct Seldom {
    queue_time: AtomicU64,
    /// Of a task that waits for its time.
    pub(in crate::task) wake_at: AtomicU64,
}

/// What fewer tasks have is kept apart, by the address of their records, so that a million tasks that have
/// nothing of it take no room for it.
static APART: [Apart; 64] = [const { Apart::new(BTreeMap::new()) }; 64];

type Apart = Mutex<BTreeMap<usize, Box<Extras>>>;

/// What few tasks have.
#[derive(Default)]
pub(in crate::task) struct Extras {
    /// In place of the task type's.
    pub(in crate::task) retry: Option<Retry>,
    pub(in crate::task) limits: Option<Limits>,
    /// Who is told of the end.
    pub(in crate::task) waker: Option<Waker>,
    pub(in crate::task) callbacks: Vec<Callback>,
    /// Where its job waits.
    pub(in crate::task) place: Place,
    /// By which the host that takes its attempts knows it.
    pub(in crate::task) tag: Option<u64>,
    /// What overtakes its attempts.
    pub(in crate::task) again: Option<Weak<dyn Again>>,
}

/// Where a job waits from which it can be taken.
#[derive(Clone, Copy, Default)]
pub(in crate::task) enum Place {
    #[default]
    Elsewhere,
    Limiter,
}

/// What can overtake an attempt of a task.
pub(in crate::task) trait Again: Send + Sync {
    /// Has the next attempt come though the one that was seen runs still, if it is not over meanwhile.
    fn overtake(self: Arc<Self>, head: Head, seen: Look);
}

pub(in crate::task) type Callback = Box<dyn FnOnce(Status) + Send>;

impl TaskMeta {
    pub(in crate::task) fn with_extras<R>(
        &self,
        f: impl FnOnce(&mut Option<Box<Extras>>) -> R,
    ) -> R {
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
pub(crate) struct Head(pub(in crate::task) &'static Record);

/// A new task of `task_type`. None: there are too many.
#[inline(always)]
pub(in crate::task) fn open<T: Send + 'static>(
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
pub(in crate::task) fn live<'a>(
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
pub(in crate::task) fn task_types_referred_to() -> Vec<usize> {
    // The look has Acquire: who freed a record is through with the task type that it had.
    let referring = table().all().filter(|record| record.look().is_let());
    referring.map(|record| record.meta.task_type.addr()).collect()
}

/// The task with this number, as it was seen. The `Pin` is held as long as it is looked at.
pub(in crate::task) fn find(_pin: &Pin, id: u64) -> Option<(Head, Seen)> {
    let (index, generation) = Record::of_id(id);
    let record = table().get(index)?;
    let seen = record.look();
    seen.is_tenant(generation).then_some((Head(record), seen))
}

impl Head {
    #[inline]
    pub(in crate::task) fn task_type(self) -> &'static TaskTypeInner {
        self.0.meta.owner()
    }

    #[inline]
    pub(in crate::task) fn id(self) -> u64 {
        self.0.id()
    }

    #[inline]
    pub(in crate::task) fn lane(self) -> Lane {
        Lane::ALL[usize::from(self.0.meta.lane.load(Relaxed))]
    }

    #[inline]
    pub(in crate::task) fn status(self) -> Status {
        Status::from_bits(self.0.status())
    }

    #[inline]
    pub(in crate::task) fn is_ended(self) -> bool {
        self.status().is_end()
    }

    #[inline]
    pub(in crate::task) fn submitted(self) -> u64 {
        self.0.meta.submitted.load(Relaxed)
    }

    #[inline]
    pub(in crate::task) fn began(self) -> u64 {
        self.0.meta.began.load(Relaxed)
    }

    /// How many attempts have begun.
    #[inline]
    pub(in crate::task) fn attempts(self) -> u32 {
        self.0.begun(|| self.noted())
    }

    /// The number of the last attempt that was noted. An end may come before it begins.
    #[inline]
    pub(in crate::task) fn noted(self) -> u32 {
        // Acquire: pairs with `note_begin`, and keeps the word's load behind this one.
        self.0.meta.attempts.load(Acquire)
    }

    #[inline]
    pub(in crate::task) fn worker(self) -> Option<usize> {
        self.worker_of(self.attempts())
    }

    /// That of the last of so many attempts that have begun.
    #[inline]
    pub(in crate::task) fn worker_of(self, attempts: u32) -> Option<usize> {
        let worker = self.0.meta.worker.load(Relaxed);
        (worker != NOBODY && attempts > 0).then_some(usize::from(worker))
    }

    #[inline]
    pub(in crate::task) fn queue_time(self) -> Duration {
        self.queue_time_of(self.attempts())
    }

    /// That of a task of which so many attempts have begun.
    #[inline]
    pub(in crate::task) fn queue_time_of(self, attempts: u32) -> Duration {
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
    pub(in crate::task) fn run_time(self) -> Duration {
        Duration::from_nanos(self.0.meta.run_time.load(Relaxed) & !RUN_NOTED)
    }

    /// Whether it may have another limit than that of its attempts.
    #[inline]
    pub(in crate::task) fn has_other_limits(self) -> bool {
        self.task_type().has_limits || self.has_extras()
    }

    #[inline]
    pub(in crate::task) fn has_extras(self) -> bool {
        self.0.meta.flags.load(Relaxed) & EXTRAS != 0
    }

    /// The task's own limits in the queue and in all, or its task type's.
    pub(in crate::task) fn limits(self) -> Limits {
        let own =
            self.has_extras().then(|| self.0.meta.with_extras(|extras| extras.as_ref()?.limits));
        let limits = own.flatten().unwrap_or(self.task_type().settings.limits);
        Limits { attempt: self.0.meta.attempt_limit.load(Relaxed), ..limits }
    }

    /// Its name's limiter lets it go on, with a place or where there are none.
    pub(in crate::task) fn set_released(self, has_place: bool) {
        let place = if has_place { PLACE } else { 0 };
        self.0.meta.flags.fetch_or(RELEASED | place, Relaxed);
    }

    pub(in crate::task) fn set_place(self, has_place: bool) {
        let flags = &self.0.meta.flags;
        match has_place {
            true => flags.fetch_or(PLACE, Relaxed),
            false => flags.fetch_and(!PLACE, Relaxed),
        };
    }

    /// Whether it had a place until now.
    pub(in crate::task) fn take_place(self) -> bool {
        self.0.meta.flags.fetch_and(!PLACE, Relaxed) & PLACE != 0
    }

    /// Whether its name's limiter has let it go since this was last asked.
    pub(in crate::task) fn take_released(self) -> bool {
        self.0.meta.flags.fetch_and(!RELEASED, Relaxed) & RELEASED != 0
    }

    /// Calls `f` with the task's own retry policy, or its task type's.
    pub(in crate::task) fn with_retry<R>(self, f: impl FnOnce(&Retry) -> R) -> R {
        let own = self.has_extras().then(|| {
            self.0.meta.with_extras(|extras| extras.as_ref().and_then(|own| own.retry.clone()))
        });
        f(own.flatten().as_ref().unwrap_or(&self.task_type().settings.retry))
    }

    /// What overtakes its attempts, if they may overlap and it has not ended.
    pub(in crate::task) fn again(self) -> Option<Arc<dyn Again>> {
        if !self.task_type().settings.overlap_retries || !self.has_extras() {
            return None;
        }
        self.0.meta.with_extras(|extras| extras.as_ref()?.again.as_ref()?.upgrade())
    }

    #[inline]
    pub(in crate::task) fn attempt_limit(self) -> u64 {
        self.0.meta.attempt_limit.load(Relaxed)
    }

    /// When the attempt that runs must be over; u64::MAX: never.
    pub(in crate::task) fn attempt_deadline(self) -> u64 {
        self.attempt_deadline_from(self.began())
    }

    #[inline]
    pub(in crate::task) fn attempt_deadline_from(self, began: u64) -> u64 {
        deadline(began, self.attempt_limit())
    }

    pub(in crate::task) fn overall_deadline(self) -> u64 {
        self.deadline_from_start(self.limits().overall)
    }

    pub(in crate::task) fn deadline_from_start(self, limit: u64) -> u64 {
        deadline(self.submitted(), limit)
    }

    /// The function has given a sign of life: the time of its attempt begins anew.
    pub(in crate::task) fn renew(self, now: u64) {
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
    pub(in crate::task) fn note_begin(self, now: u64, worker: Option<usize>) -> u32 {
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
    pub(in crate::task) fn note_unbegun(self, number: u32) {
        // Release: the word says so, too, to whoever sees it.
        self.0.meta.attempts.store(number - 1, Release);
        self.0.meta.worker.store(NOBODY, Relaxed);
    }

    /// The attempt that was noted was overtaken: no thread runs it for the task any more.
    pub(in crate::task) fn note_overtaken(self) {
        self.0.meta.worker.store(NOBODY, Relaxed);
    }

    /// The attempt has returned. If the task has ended before, its time is noted already: one that is over its limit
    /// has run until then.
    #[inline]
    pub(in crate::task) fn note_return(self, now: u64) {
        let meta = &self.0.meta;
        let before = meta.run_time.load(Relaxed);
        if before & RUN_NOTED == 0 {
            let took = now.saturating_sub(meta.began.load(Relaxed));
            // If the task ends meanwhile either time will do, and one replaces the other.
            meta.run_time.store((before + took) | RUN_NOTED, Relaxed);
        }
    }

    /// For an end that is not an attempt's: the times until now.
    pub(in crate::task) fn note_end(self, before: Status) {
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
    pub(in crate::task) fn until_noted(self) {
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
    pub(in crate::task) fn end_if(self, status: Status, may: impl Fn(Seen) -> bool) -> bool {
        let note = |before| self.note_end(Status::from_bits(before));
        self.0.end_if(status as u32, may, note, self.reason(status))
    }

    /// Why a task that ended so has no value, if its function did not say.
    pub(in crate::task) fn reason(self, status: Status) -> &'static str {
        match status {
            Status::Cancelled => "it was cancelled",
            Status::Rejected => "it was dropped to make room for others",
            _ if self.attempts() == 0 => "its time was over before it could begin",
            _ => "its time was over",
        }
    }

    /// Asks the function to give up.
    pub(in crate::task) fn ask(self) {
        self.0.mark(ASKED);
    }

    /// The same for an attempt that was seen to run, by whoever is no end of the task.
    pub(in crate::task) fn ask_seen(self, seen: Seen) {
        self.0.mark_running(seen, ASKED);
    }

    pub(in crate::task) fn is_asked(self) -> bool {
        self.0.has(ASKED)
    }

    /// The time of the attempt that was seen is over. True for the first who says so.
    pub(in crate::task) fn make_late(self, seen: Seen) -> bool {
        self.0.mark_running(seen, LATE)
    }

    pub(in crate::task) fn is_late(self) -> bool {
        self.0.has(LATE)
    }

    #[inline]
    pub(in crate::task) fn should_stop(self) -> bool {
        self.0.should_stop()
    }

    #[inline]
    pub(in crate::task) fn look(self) -> Seen {
        self.0.look()
    }

    /// Sleeps until the end, at most for `timeout`. False: it has not come.
    pub(in crate::task) fn sleep(self, timeout: Option<Duration>) -> bool {
        self.0.sleep(timeout)
    }

    /// Has somebody told of the end: by `put`, unless it has come. True: it has, and what was put is
    /// called by now.
    pub(in crate::task) fn when_ended(self, put: impl FnOnce(&mut Extras)) -> bool {
        let meta = &self.0.meta;
        meta.with_extras(|extras| put(extras.get_or_insert_default()));
        meta.flags.fetch_or(EXTRAS, Relaxed);
        let ended = self.0.ask_to_notify();
        if ended {
            <TaskMeta as Meta>::notify(self.0);
        }
        ended
    }
}

/// Whether the status that was seen is `status`.
pub(in crate::task) fn is(seen: Seen, status: Status) -> bool {
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

/// A job whose type is forgotten.
pub(in crate::task) type Parked = Box<dyn Waits>;

pub(in crate::task) trait Waits: Send {
    fn task(&self) -> Head;
    /// What it waited for has come.
    fn go(self: Box<Self>);
    /// Its attempt begins here.
    fn run_now(self: Box<Self>);
    /// Its key is its own now. If it does not go the key comes back.
    fn take_turn(self: Box<Self>, hold: Hold) -> Result<(), Hold>;
}

/// The right to run a task of a key.
pub(in crate::task) struct Hold {
    key: u64,
    /// Any task type of the worker pool. None: it has been passed on.
    task_type: Option<&'static TaskTypeInner>,
}

impl Hold {
    pub(in crate::task) fn new(task_type: &'static TaskTypeInner, key: u64) -> Self {
        Self { key, task_type: Some(task_type) }
    }
}

impl Drop for Hold {
    /// Hands the key over. A loop and no recursion: a queue of tasks that were cancelled may be long.
    fn drop(&mut self) {
        let Some(task_type) = self.task_type.take() else { return };
        while let Some(next) = task_type.wait_lists.keys.leave(self.key) {
            match next.take_turn(Hold::new(task_type, self.key)) {
                Ok(()) => return,
                Err(mut hold) => hold.task_type = None,
            }
        }
    }
}

/// A job whose attempts a host takes, its types forgotten.
pub(in crate::task) trait HostJob: Send {
    fn task(&self) -> Head;
    fn tag(&self) -> u64;
    /// None: the task has ended, or waits for its rate.
    fn begin(self: Box<Self>) -> Option<(Box<dyn HostJob>, Begun)>;
    /// What the task is then. None: it had ended before.
    fn complete(self: Box<Self>, begun: Begun, result: Said) -> Option<Status>;
}

/// What a host has to say of an attempt.
pub(in crate::task) type Said = core::result::Result<(), Fault>;

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
