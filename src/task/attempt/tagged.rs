//! Tasks without a function, with a tag: their attempts come to a completion queue, as data.
//!
//! # The problem
//!
//! A host that cannot be called back, such as an interpreter with a lock, wants its tasks in batches, on its own
//! threads, and completes each when it likes, on whatever thread. All else is to be as for other tasks: lanes, limits, retries, keys,
//! rates, cancelling, shutdown, reports.
//!
//! # The shape
//!
//! ```text
//!   submit ─► key, rate, time ─► waiting ──taken: begins─► out ──complete──► end
//!                                   ▲                       └── failed, one is left ──► timer ─┐
//!                                   └──────────────────────────────────────────────────────────┘
//! ```
//!
//! | where the job is | its task | left by |
//! |---|---|---|
//! | waiting, in an [`Outbox`] in the order of lanes | PENDING or RETRYING | the thread that takes it |
//! | out, in a table, by a number of the attempt's own | RUNNING, or ended | who takes that number out of the table |
//! | with the thread that begins or completes it | as it was | that thread |
//!
//! # Invariants
//!
//! 1. A job is in one place at a time, and each place gives it to one thread: so attempts of one task
//!    do not overlap, and each is completed once. The number of an attempt that was completed names
//!    nothing any more (`Stale`).
//! 2. An attempt begins when it is taken, by the same change of the task's word as any other. So what was
//!    cancelled before is never brought.
//! 3. A task may end while its attempt is out: its time is over, or it is cancelled by a shutdown. Then
//!    the job stays in the table until its host comes back, and keeps its key until then, but not its place
//!    among those that may run. Whether the
//!    completion or the other end was first is settled by the task's word, and told (`Stale`).
//! 4. Each task ends by the answer to a completion, or by an [`TaskEvent::End`] that is brought: the end is
//!    told as an event if it is CANCELLED, TIMED_OUT or REJECTED, or FAILED for a lease that is over.
//! 5. Nothing is left waiting when it is over: from the change that takes all jobs out, no other comes in.
//! 6. An end that was told before it is over stays until it is taken. One that comes about later, of a cancel or of a
//!    job whose key was held by an attempt that is out, is brought unless the queue has told already that it is over.
//! 7. When the last handle of the worker pool is gone nobody can end it any more: what is out then has failed for good.
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

use crate::error::{Error, NoRoom, Rejected, Result};
use crate::pool::{NEVER, Shared, Timer, contain, current, service};
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
use crate::task::record::HostJob;
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
use std::sync::{Arc, PoisonError};

/// What a task without a function has in its place: the number by which its host knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tagged {
    pub(in crate::task) tag: u64,
}

impl Tagged {
    /// As it was given.
    pub fn tag(self) -> u64 {
        self.tag
    }
}

impl Body for Tagged {
    type Output = core::result::Result<(), Fault>;
    const TAGGED: bool = true;

    fn call(&mut self, _attempt: &Attempt<'_>) -> Self::Output {
        Ok(())
    }

    fn tag(&self) -> u64 {
        self.tag
    }
}

impl<B, T> HostJob for Job<B, T>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    fn task(&self) -> Head {
        self.head()
    }

    fn tag(&self) -> u64 {
        self.body_ref().tag()
    }

    fn begin(mut self: Box<Self>) -> Option<(Box<dyn HostJob>, Begun)> {
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

impl Open<Box<dyn HostJob>> {
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

impl<J: HostJob + 'static> From<Typed<J>> for Box<dyn HostJob> {
    fn from(Typed(job): Typed<J>) -> Self {
        Box::new(job)
    }
}

impl Attempts<Box<dyn HostJob>> {
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
                what: "the line of tasks that wait to be taken from the completion queue",
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

    /// Lets a job wait until it is taken.
    pub(in crate::task) fn put<J: HostJob + 'static>(
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

    /// Begins up to `most` attempts without waiting, and says how many events there are now. None: it is over.
    fn bring(
        &'static self,
        shared: &Arc<Shared>,
        events: &mut Vec<TaskEvent>,
        most: usize,
    ) -> Option<usize> {
        let before = events.len();
        let leased = Cell::new(false);
        let begin = |job: Box<dyn HostJob>| {
            let (job, begun) = job.begin()?;
            let watch = Watch::of(job.task(), &begun);
            let timer = watch.and_then(|watch| self.watch(shared, watch));
            let lease = Lease::of(job.task());
            leased.set(leased.get() || lease.is_some());
            let (task, tag, number) = (job.task().id(), job.tag(), begun.number);
            // Its place in the table gives it its number.
            let event = TaskEvent::Attempt { id: AttemptId(0), tag, task, number };
            Some((Open { job, begun, timer, lease }, event))
        };
        loop {
            let came = self.desk.bring(events, most, begin)?;
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
        let (head, tag) = (lost.job.task(), lost.job.tag());
        let task = head.id();
        let fault = Fault::new("its host has given no sign of life for as long as its lease");
        if lost.complete(Err(fault)) == Some(Status::Failed) {
            self.desk.tell(TaskEvent::End { tag, task, status: Status::Failed });
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
            let fault =
                Fault::permanent("its worker pool is gone, and nobody has completed the attempt");
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
struct Over(&'static Attempts<Box<dyn HostJob>>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The service that looks after leases.
struct Keeper(&'static Attempts<Box<dyn HostJob>>);

impl Keeper {
    fn run(&self) -> u64 {
        current().map_or(NEVER, |(shared, _)| self.0.look_at_unwatched(&shared))
    }
}

/// The task of that tag has ended.
pub(in crate::task) fn tell_end(head: Head, tag: u64, status: Status) {
    // Its attempt may be out, with a host that never comes back.
    if let Some(limiter) = &head.task_type().limiter {
        limiter.leave(head);
    }
    if matches!(status, Status::Cancelled | Status::TimedOut | Status::Rejected) {
        head.task_type().wait_lists.attempts.desk.tell(TaskEvent::End {
            tag,
            task: head.id(),
            status,
        });
    }
}

/// Why a task was not taken.
pub(in crate::task) fn refusal<F>(error: &Error, work: F) -> Rejected<F> {
    match error {
        &Error::Full { what, capacity } => {
            let helps = "a larger max_queued, or to take more from the completion queue";
            Rejected::Full(work, NoRoom::new(what, capacity, helps))
        }
        Error::Forked => Rejected::Forked(work),
        _ => Rejected::ShutDown(work),
    }
}

impl TaskType {
    /// A task without a function, to be submitted: each of its attempts comes with `tag` to the completion queue that its
    /// worker pool is attached to ([`CompletionQueue::workers`](crate::cq::CompletionQueue::workers)).
    pub fn task_tagged(&self, tag: u64) -> TaskBuilder<'_, Tagged> {
        self.task_of(Tagged { tag })
    }
}

/// The attempts of a worker pool, for a completion queue.
pub(crate) struct OfWorkers {
    attempts: &'static Attempts<Box<dyn HostJob>>,
    shared: Arc<Shared>,
}

impl OfWorkers {
    pub(crate) fn of(workers: &WorkerPool) -> Result<Self> {
        let shared = &workers.common.shared;
        if shared.is_forked() {
            return Err(Error::Forked);
        }
        Ok(Self { attempts: &workers.common.wait_lists.attempts, shared: Arc::clone(shared) })
    }

    /// False: another queue has them.
    pub(crate) fn listen(&self, line: Arc<dyn Line>) -> bool {
        self.attempts.desk.outbox.listen(line)
    }

    /// Begins up to `most` attempts without waiting, and says how many events there are now. None: it is over.
    pub(crate) fn bring(&self, events: &mut Vec<TaskEvent>, most: usize) -> Option<usize> {
        self.attempts.bring(&self.shared, events, most)
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

/// Has the host that takes the attempts of this task told of its end.
pub(in crate::task) fn tell_host(task: &TaskHandle<()>) {
    if !task.head().when_ended(|_| ()) {
        limits::arm_own(task.head());
    }
}
