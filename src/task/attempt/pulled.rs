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

use crate::error::{Error, Rejected, Result};
use crate::pool::{Deadline, NEVER, Shared, Timer, contain, current, service};
use crate::task::admission::submit::TaskBuilder;
use crate::task::attempt::Attempt;
use crate::task::attempt::attempts::AttemptId;
use crate::task::attempt::attempts::Attempts;
use crate::task::attempt::attempts::Lease;
use crate::task::attempt::attempts::Open;
use crate::task::attempt::attempts::TaskEvent;
use crate::task::attempt::attempts::Unwatched;
use crate::task::attempt::attempts::keep_last;
use crate::task::attempt::execute::{Body, Job};
use crate::task::attempt::fault::{Fault, Outcome};
use crate::task::attempt::guard::Begun;
use crate::task::attempt::guard::Watch;
use crate::task::attempt::limits;
use crate::task::record::Head;
use crate::task::record::Pull;
use crate::task::record::Said;
use crate::task::result::handle::TaskHandle;
use crate::task::result::report::Status;
use crate::task::retry::delay_queue::LOOK;
use crate::task::task_type::TaskType;
use crate::task::worker_pool::WorkerPool;

use crate::queue::Line;
use crate::sync::MutexGuard;
use crate::sync::atomic::Ordering::Relaxed;
use core::cell::Cell;
use core::time::Duration;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, PoisonError};

/// What a task without a function has in its place: the number by which its host knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pulled {
    pub(in crate::task) token: u64,
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
        let other = head.has_other_limits();
        let now = task_type.stamp(head.attempt_limit());
        if !limits::may_begin(head, task_type, now, other) {
            return None;
        }
        if let Some(limiter) = &task_type.limiter {
            self = Box::new(limiter.pass(head, *self)?);
        }
        let begun = Job::begin(&mut *self, now, None, other)?;
        if B::OVERLAPS && begun.is_void {
            self.discard::<T>(begun, Err(Fault::new("the pool has stopped")));
            return None;
        }
        Some((self, begun))
    }

    fn complete(mut self: Box<Self>, begun: Begun, result: Said) -> Option<Status> {
        let attempt = Attempt::new(self.head(), begun.number, Some(limits::enforce));
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

impl Lease {
    fn of(head: Head) -> Option<Self> {
        let task_type = head.task_type();
        let time = task_type.settings.limits.lease;
        (time != u64::MAX).then(|| Self { time, heard: task_type.clock.now(), timer: None })
    }
}

impl Open<Box<dyn Pull>> {
    fn complete(self, result: Said) -> Option<Status> {
        let look = self.lease.and_then(|lease| lease.timer).map(|(_, timer)| timer);
        for timer in [self.timer, look].into_iter().flatten() {
            timer.cancel();
        }
        self.job.complete(self.begun, result)
    }
}

/// A job that has its type still.
struct Typed<J>(J);

impl<J: Pull + 'static> From<Typed<J>> for Box<dyn Pull> {
    fn from(Typed(job): Typed<J>) -> Self {
        Box::new(job)
    }
}

impl Attempts<Box<dyn Pull>> {
    /// Whether new tasks may come.
    pub(in crate::task) fn open(&'static self, shared: &Arc<Shared>) -> Result<()> {
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
    pub(in crate::task) fn end_with(&'static self, shared: &Shared) {
        shared.keep(Arc::new(Over(self)));
        // Nobody may come for it any more.
        if shared.is_too_late() {
            self.end();
        }
    }

    /// Lets a job wait until it is pulled.
    pub(in crate::task) fn put<J: Pull + 'static>(
        &self,
        job: J,
    ) -> core::result::Result<(), Rejected<J>> {
        let (lane, job) = (job.task().lane(), Typed(job));
        self.desk.put(lane, job).map_err(|Typed(job)| Rejected::ShutDown(job))
    }

    /// No more tasks come, and those that wait end.
    pub(in crate::task) fn end(&self) {
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
    pub(in crate::task) fn abandon(&self) {
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
        Attempt::new(head, open.begun.number, None).heartbeat();
        Ok(())
    }

    fn with<R>(&self, id: AttemptId, f: impl FnOnce(&Attempt<'_>) -> R) -> Result<R> {
        let mut table = self.desk.lock();
        let (_, open) = table.place(id).ok_or(STALE)?;
        let open = open.as_ref().ok_or(STALE)?;
        Ok(f(&Attempt::new(open.job.task(), open.begun.number, None)))
    }

    /// How many attempts are out.
    pub(in crate::task) fn out(&self, of: impl Fn(Head) -> bool) -> u64 {
        let table = self.desk.lock();
        let open = table.places.iter().filter_map(|(_, open)| open.as_ref());
        open.filter(|open| of(open.job.task())).count() as u64
    }
}

const STALE: Error = Error::Stale { what: "attempt" };

/// What the pool drops when it stops.
struct Over(&'static Attempts<Box<dyn Pull>>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The service that looks after leases.
struct Keeper(&'static Attempts<Box<dyn Pull>>);

impl Keeper {
    fn run(&self) -> u64 {
        current().map_or(NEVER, |(shared, _)| self.0.look_at_unwatched(&shared))
    }
}

/// The task of that token has ended.
pub(in crate::task) fn tell_end(head: Head, token: u64, status: Status) {
    // Its attempt may be out, with a host that never comes back.
    if let Some(limiter) = &head.task_type().limiter {
        limiter.leave(head);
    }
    if matches!(status, Status::Cancelled | Status::TimedOut | Status::Rejected) {
        head.task_type().wait_lists.attempts.desk.tell(TaskEvent::End {
            token,
            task: head.id(),
            status,
        });
    }
}

/// Why a task was not taken.
pub(in crate::task) fn refusal<F>(error: &Error, work: F) -> Rejected<F> {
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
    fn attempts(&self) -> Result<&'static Attempts<Box<dyn Pull>>> {
        match self.common.shared.is_forked() {
            true => Err(Error::Forked),
            false => Ok(&self.common.wait_lists.attempts),
        }
    }

    /// Waits for up to `time` for attempts of tasks that were submitted by [`TaskType::task_pulled`], begins up
    /// to `most` of them (at least 1), and appends them to `events`; says how many events there are. They are
    /// taken in the order of lanes. 0: the time ran out. If a host may be gone without a word, give its tasks a
    /// [`lease`](crate::task::TaskTypeBuilder::lease). An attempt that is out when the worker pool and its pool
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
    /// overtaken it ([`overlap_retries`](crate::task::TaskTypeBuilder::overlap_retries)); [`Error::Forked`].
    pub fn complete(
        &self,
        attempt: AttemptId,
        result: core::result::Result<(), Fault>,
    ) -> Result<Status> {
        self.attempts()?.complete(attempt, result)
    }

    /// Whether an attempt that is out should be given up: as
    /// [`Attempt::is_cancelled`](crate::task::Attempt::is_cancelled). Any thread, never waits.
    ///
    /// # Errors
    /// [`Error::Stale`], [`Error::Forked`].
    pub fn is_cancelled(&self, attempt: AttemptId) -> Result<bool> {
        self.attempts()?.with(attempt, |open| open.is_cancelled())
    }

    /// An attempt that is out still makes progress: as [`Attempt::heartbeat`](crate::task::Attempt::heartbeat), and its
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

/// The attempts of a worker pool, for a completion queue.
pub(crate) struct OfWorkers {
    attempts: &'static Attempts<Box<dyn Pull>>,
    shared: Arc<Shared>,
}

impl OfWorkers {
    pub(crate) fn of(workers: &WorkerPool) -> Result<Self> {
        let (attempts, shared) = (workers.attempts()?, Arc::clone(&workers.common.shared));
        Ok(Self { attempts, shared })
    }

    /// False: another queue has them.
    pub(crate) fn listen(&self, line: Arc<dyn Line>) -> bool {
        self.attempts.desk.outbox.listen(line)
    }

    /// Begins up to `most` attempts without waiting, and says how many jobs and ends there were. None: it is over.
    pub(crate) fn pull(&self, events: &mut Vec<TaskEvent>, most: usize) -> Option<usize> {
        self.attempts.pull(&self.shared, events, most, Duration::ZERO)
    }

    pub(crate) fn complete(
        &self,
        attempt: AttemptId,
        result: core::result::Result<(), Fault>,
    ) -> Result<Status> {
        self.attempts.complete(attempt, result)
    }

    pub(crate) fn is_cancelled(&self, attempt: AttemptId) -> Result<bool> {
        self.attempts.with(attempt, |open| open.is_cancelled())
    }

    pub(crate) fn heartbeat(&self, attempt: AttemptId) -> Result<()> {
        self.attempts.heartbeat(attempt)
    }
}

/// Has the host told of the end that pulls the attempts of this task.
pub(in crate::task) fn tell_host(task: &TaskHandle<()>) {
    if !task.head().when_ended(|_| ()) {
        limits::arm_own(task.head());
    }
}
