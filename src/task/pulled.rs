//! Tasks whose attempts are pulled: data for hosts that cannot be called back.
//!
//! # The problem
//!
//! A host with an interpreter's lock wants its tasks in batches, on its own threads, and completes each
//! when it likes, on whatever thread. All else is to be as for other tasks: lanes, limits, retries, keys,
//! rates, cancelling, shutdown, reports.
//!
//! # The shape
//!
//! ```text
//!   submit ─► key, rate, time ─► waiting ──pull: begins──► out ──complete──► end
//!                                   ▲                       └── failed, one is left ──► timer ─┐
//!                                   └──────────────────────────────────────────────────────────┘
//! ```
//!
//! | where the job is | its task | left by |
//! |---|---|---|
//! | waiting, in an [`Outbox`] in the order of lanes | PENDING or RETRYING | the thread that pulls it |
//! | out, in a table, by a number of the attempt's own | RUNNING, or ended | who takes that number out of the table |
//! | with the thread that begins or completes it | as it was | that thread |
//!
//! # Invariants
//!
//! 1. A job is in one place at a time, and each place gives it to one thread: so attempts of one task
//!    do not overlap, and each is completed once. The number of an attempt that was completed names
//!    nothing any more (`Stale`).
//! 2. An attempt begins when it is pulled, by the same change of the task's word as any other. So what was
//!    cancelled before is never pulled.
//! 3. A task may end while its attempt is out: its time is over, or it is cancelled by a shutdown. Then
//!    the job stays in the table until its host comes back, and keeps its key until then, but not its place
//!    among those that may run. Whether the
//!    completion or the other end was first is settled by the task's word, and told (`Stale`).
//! 4. Each task ends by the answer to a completion, or by an [`TaskEvent::End`] that is pulled: the end is
//!    told as an event if it is CANCELLED, TIMED_OUT or REJECTED, or FAILED for a lease that is over.
//! 5. Nothing is left waiting when it is over: from the change that takes all jobs out, no other comes in.
//! 6. An end that was told before it is over stays until it is pulled, and so does one that comes later: of
//!    a cancel, or of a job whose key was held by an attempt that is out. A pull that begins after it was
//!    told brings it.
//! 7. When the pool and the worker pool are gone nobody can come back: what is out then has failed for good.
//!
//! # Time
//!
//! No thread of the pool is inside the attempt, so the guard of `limits.rs` does not see it. One that has a
//! limit has a timer of its own, which is cancelled when it is completed; and so has one that has a *lease*. If
//! its host has given no sign of life for that long it is taken out of the table, as if its host had said that
//! it failed.
//!
//! While every timer is in use an attempt stands on a list instead, which the *keeper* goes through: a service
//! of the pool, which has had its slot since the first task was submitted. It looks every [`LOOK`], or when the
//! earliest time on the list is over, until each attempt has a timer of its own or is out no more. So a lease,
//! or a limit, may end later by as much.
//!
//! # Orderings
//!
//! Both places are ordered by their locks; no lock is held while a job begins, completes or is dropped. That
//! no more jobs come is said in the outbox, under its lock. Who would submit asks a copy first, which may
//! be behind.

use super::attempt::{Attempt, Fault, Outcome};
use super::execute::{Begun, Body, Job};
use super::handle::TaskHandle;
use super::limits::Watch;
use super::record::Head;
use super::report::Status;
use super::sleepers::LOOK;
use super::submit::TaskBuilder;
use super::task_type::TaskType;
use super::{WorkerPool, limits};
use crate::error::{Error, Rejected, Result};
use crate::pool::{Deadline, Key, NEVER, Shared, Timer, contain, current, service};
use crate::queue::{Aged, Lane, Outbox, Store, Turn};
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::atomic::{AtomicBool, AtomicUsize};
use crate::sync::{Mutex, MutexGuard};
use core::cell::Cell;
use core::time::Duration;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock, PoisonError};

/// What a task without a function has in its place: the number by which its host knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pulled {
    pub(super) token: u64,
}

impl Pulled {
    /// As it was given.
    pub fn token(self) -> u64 {
        self.token
    }
}

impl Body for Pulled {
    type Output = core::result::Result<(), Fault>;
    const PULLED: bool = true;

    fn call(&mut self, _attempt: &Attempt<'_>) -> Self::Output {
        Ok(())
    }

    fn token(&self) -> u64 {
        self.token
    }
}

/// The name of an attempt that is out: see [`WorkerPool::pull`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AttemptId(pub(crate) u64);

/// What [`WorkerPool::pull`] brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TaskEvent {
    /// An attempt has begun. It is out until it is completed.
    Attempt {
        /// Its name, for [`WorkerPool::complete`].
        id: AttemptId,
        /// The task's.
        token: u64,
        /// The task's number.
        task: u64,
        /// 1 for the first attempt.
        number: u32,
    },
    /// A task has ended otherwise than by the completion of an attempt. An attempt of it may be out still,
    /// and is to be completed all the same.
    End {
        /// The task's.
        token: u64,
        /// The task's number.
        task: u64,
        /// How it ended.
        status: Status,
    },
}

/// A job whose attempts are pulled, its types forgotten.
pub(super) trait Pull: Send {
    fn task(&self) -> Head;
    fn token(&self) -> u64;
    /// None: the task has ended, or waits for its rate.
    fn begin(self: Box<Self>) -> Option<(Box<dyn Pull>, Begun)>;
    /// What the task is then. None: it had ended before.
    fn complete(self: Box<Self>, begun: Begun, result: Said) -> Option<Status>;
}

/// What a host has to say of an attempt.
type Said = core::result::Result<(), Fault>;

impl<B, T> Pull for Job<B, T>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    fn task(&self) -> Head {
        self.head()
    }

    fn token(&self) -> u64 {
        self.body_ref().token()
    }

    fn begin(mut self: Box<Self>) -> Option<(Box<dyn Pull>, Begun)> {
        let head = self.head();
        let task_type = head.task_type();
        let other = task_type.has_other_limits(head);
        let now = task_type.stamp(head.attempt_limit());
        if !limits::may_begin(head, task_type, now, other) {
            return None;
        }
        if let Some(gate) = &task_type.gate {
            self = Box::new(gate.pass(head, *self)?);
        }
        let begun = Job::begin(&mut *self, now, None, other)?;
        if B::OVERLAPS && begun.is_void {
            self.discard::<T>(begun, Err(Fault::new("the pool has stopped")));
            return None;
        }
        Some((self, begun))
    }

    fn complete(mut self: Box<Self>, begun: Begun, result: Said) -> Option<Status> {
        let attempt = Attempt::new(self.head(), begun.number, true);
        let result = result.and_then(|()| self.body().call(&attempt).into_result());
        if B::OVERLAPS && self.is_overtaken(&begun) {
            self.discard(begun, result);
            return None;
        }
        match result {
            Ok(value) => Job::complete(*self, begun, value).then_some(Status::Completed),
            Err(fault) => self.fail(begun, fault),
        }
    }
}

// --- where they wait --------------------------------------------------------------------------------

enum Item<J> {
    Job(Lane, J),
    End(TaskEvent),
}

/// Ends first, which are old news; then jobs, in the order of lanes.
struct Waiting<J> {
    ends: VecDeque<TaskEvent>,
    lanes: [VecDeque<J>; Lane::ALL.len()],
    turn: Turn,
    len: usize,
    /// No more jobs come.
    shut: bool,
}

impl<J> Default for Waiting<J> {
    fn default() -> Self {
        let (ends, lanes) = (VecDeque::new(), Lane::ALL.map(|_| VecDeque::new()));
        Self { ends, lanes, turn: Turn::default(), len: 0, shut: false }
    }
}

impl<J> Store<Item<J>> for Waiting<J> {
    fn len(&self) -> usize {
        self.len
    }

    fn push(&mut self, item: Item<J>) {
        self.len += 1;
        match item {
            Item::End(end) => self.ends.push_back(end),
            Item::Job(lane, job) => self.lanes[lane as usize].push_back(job),
        }
    }

    fn take(&mut self, count: usize, out: &mut Vec<Item<J>>) {
        for _ in 0..count {
            out.extend(self.pop());
        }
        self.len -= count;
    }
}

impl<J> Waiting<J> {
    /// As a thread of the pool claims.
    fn pop(&mut self) -> Option<Item<J>> {
        if let Some(end) = self.ends.pop_front() {
            return Some(Item::End(end));
        }
        let from = |lane: Lane| self.lanes[lane as usize].pop_front().map(|job| (lane, job));
        let ((lane, job), picked) = self.turn.pick(Aged::NONE, from)?;
        self.turn.note(picked, |lane| !self.lanes[lane as usize].is_empty());
        Some(Item::Job(lane, job))
    }

    /// No more jobs come: those that are there.
    fn shut(&mut self) -> Vec<J> {
        self.shut = true;
        let jobs: Vec<_> = self.lanes.iter_mut().flat_map(|lane| lane.drain(..)).collect();
        self.len -= jobs.len();
        jobs
    }
}

/// An attempt that is out.
struct Open {
    job: Box<dyn Pull>,
    begun: Begun,
    timer: Option<Timer>,
    lease: Option<Lease>,
}

/// How long a host may be silent.
struct Lease {
    time: u64,
    /// When it gave the last sign of life.
    heard: u64,
    /// What looks next, and when.
    timer: Option<(u64, Timer)>,
}

impl Lease {
    fn of(head: Head) -> Option<Self> {
        let task_type = head.task_type();
        let time = task_type.settings.limits.lease;
        (time != u64::MAX).then(|| Self { time, heard: task_type.clock.now(), timer: None })
    }

    fn due(&self) -> u64 {
        self.heard.saturating_add(self.time)
    }
}

/// Keeps the timer that is due last, and gives the other one back: whoever has armed a timer may come here when it has
/// gone off, and the next is kept already.
fn keep_last<T>(kept: &mut Option<(u64, T)>, due: u64, timer: T) -> Option<T> {
    match kept {
        Some((last, _)) if *last > due => Some(timer),
        _ => kept.replace((due, timer)).map(|(_, timer)| timer),
    }
}

impl Open {
    fn complete(self, result: Said) -> Option<Status> {
        let look = self.lease.and_then(|lease| lease.timer).map(|(_, timer)| timer);
        for timer in [self.timer, look].into_iter().flatten() {
            timer.cancel();
        }
        self.job.complete(self.begun, result)
    }
}

/// What is out, by numbers: `{ generation: 32, index + 1: 32 }`.
struct Table<O> {
    places: Vec<(u32, Option<O>)>,
    free: Vec<u32>,
}

impl<O> Table<O> {
    fn put(&mut self, open: O) -> AttemptId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let (generation, place) = &mut self.places[index as usize];
        *place = Some(open);
        AttemptId(u64::from(*generation) << 32 | u64::from(index + 1))
    }

    fn place(&mut self, id: AttemptId) -> Option<&mut (u32, Option<O>)> {
        let place = self.places.get_mut((id.0 as u32).checked_sub(1)? as usize)?;
        (u64::from(place.0) == id.0 >> 32).then_some(place)
    }

    fn take(&mut self, id: AttemptId) -> Option<O> {
        let (generation, place) = self.place(id)?;
        let open = place.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(id.0 as u32 - 1);
        Some(open)
    }

    fn take_all(&mut self) -> Vec<O> {
        let mut taken = Vec::new();
        for (index, (generation, place)) in self.places.iter_mut().enumerate() {
            if let Some(open) = place.take() {
                *generation = generation.wrapping_add(1);
                self.free.push(index as u32);
                taken.push(open);
            }
        }
        taken
    }
}

/// Both places: of jobs `J`, and of attempts `O`.
struct Desk<J, O> {
    outbox: Outbox<Item<J>, Waiting<J>>,
    /// How many jobs wait.
    waiting: AtomicUsize,
    out: Mutex<Table<O>>,
}

impl<J, O> Desk<J, O> {
    fn new() -> Self {
        let table = Table { places: Vec::new(), free: Vec::new() };
        Self { outbox: Outbox::new(), waiting: AtomicUsize::new(0), out: Mutex::new(table) }
    }

    /// Lets a job wait. Err: no more come.
    fn put<G: Into<J>>(&self, lane: Lane, job: G) -> core::result::Result<(), G> {
        self.waiting.fetch_add(1, Relaxed);
        let may = |waiting: &Waiting<J>| !waiting.shut;
        let put = self.outbox.put_if(may, job, |job| Item::Job(lane, job.into()));
        if put.is_err() {
            self.waiting.fetch_sub(1, Relaxed);
        }
        put
    }

    fn tell(&self, end: TaskEvent) {
        drop(self.outbox.put(Item::End(end)));
    }

    /// No more jobs come, and those that wait are dropped.
    fn end(&self) {
        for job in self.outbox.change(Waiting::shut) {
            self.waiting.fetch_sub(1, Relaxed);
            let _panicked = contain(|| drop(job));
        }
        self.outbox.end();
    }

    fn lock(&self) -> MutexGuard<'_, Table<O>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up to `most` out of where they wait, and begins those that are jobs. None: it is over.
    /// False: nothing came in time.
    fn pull(
        &self,
        events: &mut Vec<TaskEvent>,
        most: usize,
        left: Duration,
        begin: impl Fn(J) -> Option<(O, TaskEvent)>,
    ) -> Option<bool> {
        let mut items = Vec::new();
        let taken = self.outbox.take(&mut items, most, left)?;
        let mut begun = Vec::with_capacity(taken);
        for item in items {
            match item {
                Item::End(end) => events.push(end),
                Item::Job(_, job) => {
                    self.waiting.fetch_sub(1, Relaxed);
                    begun.extend(begin(job));
                }
            }
        }
        let mut table = self.lock();
        for (open, mut event) in begun {
            let place = table.put(open);
            if let TaskEvent::Attempt { id, .. } = &mut event {
                *id = place;
            }
            events.push(event);
        }
        Some(taken > 0)
    }

    /// The attempt of that number, which is not out any more.
    fn take(&self, id: AttemptId) -> Option<O> {
        self.lock().take(id)
    }
}

/// A job that has its type still.
struct Typed<J>(J);

impl<J: Pull + 'static> From<Typed<J>> for Box<dyn Pull> {
    fn from(Typed(job): Typed<J>) -> Self {
        Box::new(job)
    }
}

/// Attempts that every timer was in use for.
struct Unwatched {
    /// For their leases.
    ids: Vec<AttemptId>,
    /// For their limits.
    watches: Vec<Watch>,
    /// The earliest of their times.
    due: u64,
    /// The keeper runs, was called, or will run by itself.
    kept: bool,
}

impl Unwatched {
    const NONE: Self = Self { ids: Vec::new(), watches: Vec::new(), due: NEVER, kept: false };
}

/// See the head of the file.
pub(crate) struct Attempts {
    desk: Desk<Box<dyn Pull>, Open>,
    /// How many jobs may wait before new tasks are refused.
    most: usize,
    keeper: OnceLock<Key>,
    unwatched: Mutex<Unwatched>,
    /// For those who would submit; who puts a job in is told by the desk.
    over: AtomicBool,
}

impl Attempts {
    pub(super) fn new(most: usize) -> Self {
        let (keeper, unwatched) = (OnceLock::new(), Mutex::new(Unwatched::NONE));
        Self { desk: Desk::new(), most, keeper, unwatched, over: AtomicBool::new(false) }
    }

    /// Whether new tasks may come.
    pub(super) fn open(&'static self, shared: &Arc<Shared>) -> Result<()> {
        shared.check_open()?;
        if self.keeper.get().is_none() {
            self.open_keeper(shared)?;
        }
        if self.over.load(Relaxed) {
            return Err(Error::ShutDown);
        }
        match self.desk.waiting.load(Relaxed) < self.most {
            true => Ok(()),
            false => Err(Error::Full {
                what: "places of tasks that wait to be pulled",
                capacity: self.most,
            }),
        }
    }

    #[cold]
    fn open_keeper(&'static self, shared: &Arc<Shared>) -> Result<()> {
        let one_at_a_time = self.lock_unwatched();
        if self.keeper.get().is_none() {
            let keeper = Keeper(self);
            let key = service::open_timed(shared, move || keeper.run())?;
            self.keeper.set(key).expect("it is set under this lock only");
        }
        drop(one_at_a_time);
        Ok(())
    }

    /// It is over when the pool stops.
    pub(super) fn end_with(&'static self, shared: &Shared) {
        shared.keep(Arc::new(Over(self)));
        // Nobody may come for it any more.
        if shared.is_too_late() {
            self.end();
        }
    }

    /// Lets a job wait until it is pulled.
    pub(super) fn put<J: Pull + 'static>(&self, job: J) -> core::result::Result<(), Rejected<J>> {
        let (lane, job) = (job.task().lane(), Typed(job));
        self.desk.put(lane, job).map_err(|Typed(job)| Rejected::ShutDown(job))
    }

    /// No more tasks come, and those that wait end.
    pub(super) fn end(&self) {
        self.over.store(true, Relaxed);
        self.desk.end();
    }

    /// See [`WorkerPool::pull`]. None: it is over.
    fn pull(
        &'static self,
        shared: &Arc<Shared>,
        events: &mut Vec<TaskEvent>,
        most: usize,
        time: Duration,
    ) -> Option<usize> {
        let before = events.len();
        let leased = Cell::new(false);
        let deadline = Deadline::after(Some(time));
        let begin = |job: Box<dyn Pull>| {
            let (job, begun) = job.begin()?;
            let watch = Watch::of(job.task(), &begun);
            let timer = watch.and_then(|watch| self.watch(shared, watch));
            let lease = Lease::of(job.task());
            leased.set(leased.get() || lease.is_some());
            let (task, token, number) = (job.task().id(), job.token(), begun.number);
            // Its place in the table gives it its number.
            let event = TaskEvent::Attempt { id: AttemptId(0), token, task, number };
            Some((Open { job, begun, timer, lease }, event))
        };
        loop {
            let left = deadline.left().unwrap_or(Duration::MAX);
            let came = self.desk.pull(events, most, left, begin)?;
            if leased.take() {
                self.watch_leases(shared, &events[before..]);
            }
            if !came || events.len() > before {
                return Some(events.len() - before);
            }
        }
    }

    fn watch_leases(&'static self, shared: &Arc<Shared>, events: &[TaskEvent]) {
        for event in events {
            if let TaskEvent::Attempt { id, .. } = *event {
                self.look_at_lease(shared, id);
            }
        }
    }

    /// Ends the attempt if its host has been silent for too long, or looks again when that would be.
    fn look_at_lease(&'static self, shared: &Arc<Shared>, id: AttemptId) {
        let mut table = self.desk.lock();
        let open = table.place(id).and_then(|(_, open)| open.as_mut());
        let Some((head, lease)) =
            open.and_then(|open| Some((open.job.task(), open.lease.as_ref()?)))
        else {
            return;
        };
        let due = lease.due();
        if head.task_type().clock.now() < due {
            drop(table);
            return self.arm_lease(shared, id, due);
        }
        let lost = table.take(id);
        drop(table);
        let Some(lost) = lost else { return };
        let (head, token) = (lost.job.task(), lost.job.token());
        let task = head.id();
        let fault = Fault::new("its host has given no sign of life for as long as its lease");
        if lost.complete(Err(fault)) == Some(Status::Failed) {
            self.desk.tell(TaskEvent::End { token, task, status: Status::Failed });
        }
    }

    fn arm_lease(&'static self, shared: &Arc<Shared>, id: AttemptId, due: u64) {
        let look = move || {
            if let Some((shared, _)) = current() {
                self.look_at_lease(&shared, id);
            }
        };
        match Timer::at(shared, due, look, |_| ()) {
            Ok(timer) => self.keep_timer(id, due, timer),
            Err((Error::Full { .. }, _)) => {
                self.leave_to_keeper(shared, due, |unwatched| unwatched.ids.push(id));
            }
            // The pool stops.
            Err(_) => {}
        }
    }

    /// A timer for the limits of an attempt, which is over with it. None: the keeper looks after it.
    fn watch(&'static self, shared: &Arc<Shared>, watch: Watch) -> Option<Timer> {
        let look = move || {
            if let Some(next) = watch.look()
                && let Some((shared, _)) = current()
            {
                drop(self.watch(&shared, next));
            }
        };
        match Timer::at(shared, watch.at, look, |_| ()) {
            Ok(timer) => Some(timer),
            Err((Error::Full { .. }, _)) => {
                let add = |unwatched: &mut Unwatched| unwatched.watches.push(watch);
                self.leave_to_keeper(shared, watch.at, add);
                None
            }
            // The pool stops.
            Err(_) => None,
        }
    }

    #[cold]
    fn leave_to_keeper(&self, shared: &Shared, due: u64, add: impl FnOnce(&mut Unwatched)) {
        let mut unwatched = self.lock_unwatched();
        add(&mut unwatched);
        unwatched.due = unwatched.due.min(due);
        let was_kept = core::mem::replace(&mut unwatched.kept, true);
        drop(unwatched);
        if let Some(&keeper) = self.keeper.get().filter(|_| !was_kept) {
            service::call(shared, keeper);
        }
    }

    /// Looks at each attempt that has no timer. When it is to look again.
    fn look_at_unwatched(&'static self, shared: &Arc<Shared>) -> u64 {
        let kept = Unwatched { kept: true, ..Unwatched::NONE };
        let list = core::mem::replace(&mut *self.lock_unwatched(), kept);
        for id in list.ids {
            self.look_at_lease(shared, id);
        }
        for next in list.watches.into_iter().filter_map(Watch::look) {
            drop(self.watch(shared, next));
        }
        let mut unwatched = self.lock_unwatched();
        unwatched.kept = !(unwatched.ids.is_empty() && unwatched.watches.is_empty());
        match unwatched.kept {
            true => unwatched.due.min(shared.now().saturating_add(LOOK)),
            false => NEVER,
        }
    }

    fn lock_unwatched(&self) -> MutexGuard<'_, Unwatched> {
        self.unwatched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_timer(&self, id: AttemptId, due: u64, timer: Timer) {
        let mut table = self.desk.lock();
        let open = table.place(id).and_then(|(_, open)| open.as_mut());
        let replaced = match open.and_then(|open| open.lease.as_mut()) {
            Some(lease) => keep_last(&mut lease.timer, due, timer),
            // It was completed meanwhile.
            None => Some(timer),
        };
        drop(table);
        if let Some(timer) = replaced {
            timer.cancel();
        }
    }

    fn complete(&self, id: AttemptId, result: Said) -> Result<Status> {
        self.desk.take(id).and_then(|open| open.complete(result)).ok_or(STALE)
    }

    /// Nobody can complete an attempt any more.
    pub(super) fn abandon(&self) {
        let open = self.desk.lock().take_all();
        for open in open {
            let fault = Fault::permanent("nobody has completed the attempt that was pulled");
            let _panicked = contain(|| open.complete(Err(fault)));
        }
    }

    fn heartbeat(&self, id: AttemptId) -> Result<()> {
        let mut table = self.desk.lock();
        let (_, open) = table.place(id).ok_or(STALE)?;
        let open = open.as_mut().ok_or(STALE)?;
        let head = open.job.task();
        if let Some(lease) = &mut open.lease {
            lease.heard = head.task_type().clock.now();
        }
        Attempt::new(head, open.begun.number, false).heartbeat();
        Ok(())
    }

    fn with<R>(&self, id: AttemptId, f: impl FnOnce(&Attempt<'_>) -> R) -> Result<R> {
        let mut table = self.desk.lock();
        let (_, open) = table.place(id).ok_or(STALE)?;
        let open = open.as_ref().ok_or(STALE)?;
        Ok(f(&Attempt::new(open.job.task(), open.begun.number, false)))
    }

    /// How many attempts are out.
    pub(super) fn out(&self, of: impl Fn(Head) -> bool) -> u64 {
        let table = self.desk.lock();
        let open = table.places.iter().filter_map(|(_, open)| open.as_ref());
        open.filter(|open| of(open.job.task())).count() as u64
    }
}

const STALE: Error = Error::Stale { what: "attempt" };

/// What the pool drops when it stops.
struct Over(&'static Attempts);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The service that looks after leases.
struct Keeper(&'static Attempts);

impl Keeper {
    fn run(&self) -> u64 {
        current().map_or(NEVER, |(shared, _)| self.0.look_at_unwatched(&shared))
    }
}

/// The task of that token has ended.
pub(super) fn tell_end(head: Head, token: u64, status: Status) {
    // Its attempt may be out, with a host that never comes back.
    if let Some(gate) = &head.task_type().gate {
        gate.leave(head);
    }
    if matches!(status, Status::Cancelled | Status::TimedOut | Status::Rejected) {
        head.task_type().lobby.attempts.desk.tell(TaskEvent::End {
            token,
            task: head.id(),
            status,
        });
    }
}

/// Why a task was not taken.
pub(super) fn refusal<F>(error: &Error, work: F) -> Rejected<F> {
    match error {
        Error::Full { .. } => Rejected::Full(work),
        Error::Forked => Rejected::Forked(work),
        _ => Rejected::ShutDown(work),
    }
}

impl TaskType {
    /// A task without a function, to be submitted: each of its attempts comes out of
    /// [`WorkerPool::pull`], with `token`, and is completed by [`WorkerPool::complete`].
    pub fn task_pulled(&self, token: u64) -> TaskBuilder<'_, Pulled> {
        self.task_of(Pulled { token })
    }
}

impl WorkerPool {
    fn attempts(&self) -> Result<&'static Attempts> {
        match self.common.shared.is_forked() {
            true => Err(Error::Forked),
            false => Ok(&self.common.lobby.attempts),
        }
    }

    /// Waits for up to `time` for attempts of tasks that were submitted by [`TaskType::task_pulled`], begins up
    /// to `most` of them (at least 1), and appends them to `events`; says how many events there are. They are
    /// taken in the order of lanes. 0: the time ran out. If a host may be gone without a word, give its tasks a
    /// [`lease`](super::TaskTypeBuilder::lease). An attempt that is out when the worker pool and its pool
    /// are gone has failed for good.
    ///
    /// Any thread but the pool's own, unless `time` is zero.
    ///
    /// # Errors
    /// [`Error::ShutDown`] when the worker pool was shut down, or its pool, and nothing is left to tell (an
    /// end that comes about after that, by a cancel or a completion, is brought by a pull after it);
    /// [`Error::WouldDeadlock`] on a thread of the pool, [`Error::Forked`].
    pub fn pull(&self, events: &mut Vec<TaskEvent>, most: usize, time: Duration) -> Result<usize> {
        let attempts = self.attempts()?;
        if !time.is_zero() && self.pool.is_inside() {
            return Err(Error::WouldDeadlock);
        }
        let shared = &self.common.shared;
        let count = attempts.pull(shared, events, most.max(1), time).ok_or(Error::ShutDown)?;
        if count > 0 {
            shared.note_pulled();
        }
        Ok(count)
    }

    /// Completes an attempt that was pulled, and says what its task is then: `Completed`, `Failed`,
    /// `Cancelled`, `TimedOut`, or `Retrying` if another attempt will be pulled. Any thread, never waits.
    ///
    /// # Errors
    /// [`Error::Stale`] if the attempt was completed already, or its task has ended meanwhile, or a retry has
    /// overtaken it ([`overlap_retries`](super::TaskTypeBuilder::overlap_retries)); [`Error::Forked`].
    pub fn complete(
        &self,
        attempt: AttemptId,
        result: core::result::Result<(), Fault>,
    ) -> Result<Status> {
        self.attempts()?.complete(attempt, result)
    }

    /// Whether an attempt that is out should be given up: as
    /// [`Attempt::is_cancelled`](super::Attempt::is_cancelled). Any thread, never waits.
    ///
    /// # Errors
    /// [`Error::Stale`], [`Error::Forked`].
    pub fn is_cancelled(&self, attempt: AttemptId) -> Result<bool> {
        self.attempts()?.with(attempt, |open| open.is_cancelled())
    }

    /// An attempt that is out still makes progress: as [`Attempt::heartbeat`](super::Attempt::heartbeat), and its
    /// lease begins anew.
    /// Any thread, never waits.
    ///
    /// # Errors
    /// [`Error::Stale`], [`Error::Forked`].
    pub fn heartbeat(&self, attempt: AttemptId) -> Result<()> {
        self.attempts()?.heartbeat(attempt)
    }

    /// A descriptor that is readable while a pull would not wait. It belongs to the worker pool: never
    /// read or close it.
    ///
    /// # Errors
    /// [`Error::Os`] if there are no descriptors left, [`Error::Forked`].
    pub fn pollable(&self) -> Result<BorrowedFd<'static>> {
        self.attempts()?.desk.outbox.pollable()
    }
}

impl TaskHandle<()> {
    /// Has the host told of the end that pulls the attempts.
    pub(super) fn tell_host(&self) {
        if !self.head().when_ended(|_| ()) {
            limits::arm_own(self.head());
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_has_gone_off_replaces_none_that_was_armed_since() {
        let mut kept = None;
        assert_eq!(keep_last(&mut kept, 3, "first"), None);
        assert_eq!(keep_last(&mut kept, 9, "third"), Some("first"));
        assert_eq!(keep_last(&mut kept, 6, "second"), Some("second"));
        assert_eq!(kept, Some((9, "third")));
    }
}

#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | attempts that are pulled | a job comes in after all were taken out | it is never pulled, and its task never ends |
    //! |  | what a shutdown takes out is not dropped, or ends go with it | a host does not hear of an end |
    //! |  | it is over before the ends of what waited are told | likewise |
    //! |  | a number does not change when its attempt is completed | the next attempt is completed by it |
    //! |  | who is refused is counted as waiting | new tasks are refused for nothing |

    use super::*;
    use crate::pool::models::explore;
    use crate::pool::models::record::{CANCELLED, COMPLETED, Case, Counted, Noted, TIMED_OUT};
    use crate::pool::record::{Record, Runner};
    use loom::thread;

    type Place = Desk<Work, Work>;

    const FOR_EVER: Duration = Duration::MAX;

    /// A job of two attempts, the first of which fails. None: the task has ended by it.
    struct Work {
        runner: Option<Runner<Noted, Counted>>,
        value: Option<Counted>,
        failed: bool,
        desk: &'static Place,
    }

    impl Drop for Work {
        fn drop(&mut self) {
            if let Some(runner) = self.runner.take() {
                end(runner.record(), CANCELLED, self.desk);
            }
        }
    }

    /// Another end than that of an attempt.
    fn end(record: &'static Record<Noted>, status: u32, desk: &Place) {
        if record.end_if(status, |_| true, |_| {}, "") {
            desk.tell(TaskEvent::End { token: 7, task: 7, status: Status::Cancelled });
        }
    }

    fn desk() -> &'static Place {
        Box::leak(Box::new(Desk::new()))
    }

    fn work(case: &Case, runner: Runner<Noted, Counted>, desk: &'static Place) -> Work {
        Work { runner: Some(runner), value: Some(case.value()), failed: false, desk }
    }

    fn begin(work: Work) -> Option<(Work, TaskEvent)> {
        let begun = work.runner.as_ref()?.begin();
        let event = TaskEvent::Attempt { id: AttemptId(0), token: 7, task: 7, number: 1 };
        begun.is_some().then_some((work, event))
    }

    /// What an attempt has come to: 1 if that was its task's end.
    fn complete(mut work: Work) -> u32 {
        let runner = work.runner.take().expect("it has not ended");
        if work.failed {
            let value = work.value.take().expect("it has not ended");
            return u32::from(runner.finish(COMPLETED, value, None));
        }
        let again = runner.retry();
        work.runner = Some(runner);
        work.failed = true;
        if again {
            let desk = work.desk;
            drop(desk.put(Lane::Normal, work));
        }
        0
    }

    /// How many ends it hears of, by events or by completing, until it is over or (`time` is zero)
    /// nothing is there.
    fn host(desk: &Place, time: Duration) -> u32 {
        let (mut ends, mut last) = (0, None);
        let mut events = Vec::new();
        while desk.pull(&mut events, 2, time, begin) == Some(true) {
            for event in events.drain(..) {
                match event {
                    TaskEvent::End { .. } => ends += 1,
                    TaskEvent::Attempt { id, .. } => {
                        if let Some(last) = last.replace(id) {
                            assert!(desk.take(last).is_none(), "it was completed");
                        }
                        ends += complete(desk.take(id).expect("it is out"));
                    }
                }
            }
        }
        ends
    }

    fn nothing_is_left(desk: &Place) {
        assert_eq!(desk.waiting.load(Relaxed), 0);
        assert!(desk.lock().places.iter().all(|(_, open)| open.is_none()));
    }

    /// Goal: whatever waits when it is over, whatever is out then and fails, its host hears of the end
    /// before it hears that it is over. Method: a host against a shutdown.
    #[test]
    fn a_shutdown_is_the_last_that_is_heard_of() {
        explore(3, || {
            let (case, desk) = (Case::new(false), desk());
            let (runner, holder) = case.open();
            assert!(desk.put(Lane::Normal, work(&case, runner, desk)).is_ok());
            let puller = thread::spawn(move || host(desk, FOR_EVER));
            desk.end();
            assert_eq!(puller.join().unwrap(), 1);
            nothing_is_left(desk);
            drop(holder);
            case.settle(1);
        });
    }

    /// Goal: a task whose time is over while it waits, is out or is to be tried again has one end, and is
    /// answered or told of, not both. Method: a time-out and a shutdown beside a host, and a pull when all
    /// is through.
    #[test]
    fn an_end_is_answered_or_told_of() {
        explore(2, || {
            let (case, desk) = (Case::new(false), desk());
            let (runner, holder) = case.open();
            assert!(desk.put(Lane::Normal, work(&case, runner, desk)).is_ok());
            let puller = thread::spawn(move || host(desk, FOR_EVER));
            let guard = thread::spawn(move || {
                end(holder.record(), TIMED_OUT, desk);
            });
            desk.end();
            guard.join().unwrap();
            assert_eq!(puller.join().unwrap() + host(desk, Duration::ZERO), 1);
            nothing_is_left(desk);
            case.settle(1);
        });
    }

    /// Goal: an end that was told is brought by the next pull, whoever comes too late meanwhile, and whose
    /// task ends too. Method: a task that was cancelled, and a submission beside a shutdown.
    #[test]
    fn an_end_that_was_told_stays() {
        explore(3, || {
            let (case, desk) = (Case::new(false), desk());
            let ((runner, holder), (late, late_holder)) = (case.open(), case.open());
            assert!(desk.put(Lane::Normal, work(&case, runner, desk)).is_ok());
            end(holder.record(), CANCELLED, desk);
            let late = work(&case, late, desk);
            let submitter = thread::spawn(move || drop(desk.put(Lane::High, late)));
            desk.end();
            let first = host(desk, Duration::ZERO);
            assert!(first > 0);
            submitter.join().unwrap();
            assert_eq!(desk.waiting.load(Relaxed), 0, "nobody would pull it");
            assert_eq!(first + host(desk, Duration::ZERO), 2);
            nothing_is_left(desk);
            drop((holder, late_holder));
            case.settle(2);
        });
    }
}
