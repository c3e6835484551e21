//! `TaskHandle<T>`: what the submitter holds.

use crate::error::{Error, Result};
use crate::pool::{Deadline, Shared, blocking, stops_around_us, wait_for};
use crate::task::attempt::fault::Fault;
use crate::task::attempt::limits;
use crate::task::record;
use crate::task::record::{Head, Holder};
use crate::task::result::report::{Status, TaskReport};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

/// A submitted task. It can be waited for by any thread, awaited, asked, and cancelled. Dropping it lets
/// the task run on unobserved.
#[must_use = "dropping a TaskHandle detaches it; use `post` for work that nobody waits for"]
pub struct TaskHandle<T: Send + 'static> {
    holder: Holder<T>,
}

impl<T: Send + 'static> TaskHandle<T> {
    #[inline]
    pub(in crate::task) fn new(holder: Holder<T>) -> Self {
        Self { holder }
    }

    #[inline]
    pub(in crate::task) fn head(&self) -> Head {
        Head(self.holder.record())
    }

    /// The task's name.
    pub fn name(&self) -> &'static str {
        self.head().task_type().name()
    }

    /// As C has it.
    pub(crate) fn c_name(&self) -> &'static core::ffi::CStr {
        self.head().task_type().c_name()
    }

    /// The task's number, which no other task of this process has or had.
    pub fn id(&self) -> u64 {
        self.head().id()
    }

    /// How the task stands. Any thread, never blocks.
    pub fn status(&self) -> Status {
        self.head().status()
    }

    /// Whether the task has ended, in whatever way. Any thread, never blocks.
    pub fn is_done(&self) -> bool {
        self.head().is_ended()
    }

    /// Cancels the task. One that waits, for its first attempt or for another, ends here and now, as
    /// CANCELLED: true. One that runs is asked through its token, and may end as it likes: false. False
    /// too if it has ended. Any thread; O(1), never blocks.
    pub fn cancel(&self) -> bool {
        let head = self.head();
        if head.task_type().fork.is_child() {
            return false;
        }
        head.ask();
        head.end_if(Status::Cancelled, |seen| !record::is(seen, Status::Running))
    }

    /// Drops the task for the sake of others, by a policy of one's own: one that waits, for its first attempt
    /// or for another, ends here and now, as REJECTED: true. False: it runs, or has ended. Any thread; O(1),
    /// never blocks.
    pub fn reject(&self) -> bool {
        let head = self.head();
        if head.task_type().fork.is_child() {
            return false;
        }
        head.end_if(Status::Rejected, |seen| !record::is(seen, Status::Running))
    }

    /// What the task is known by without this. None in a child made by fork.
    pub(crate) fn known(&self) -> Option<Known> {
        let head = self.head();
        (!head.task_type().fork.is_child()).then(|| Known { head, seen: head.look() })
    }

    /// Waits until the task has ended.
    ///
    /// # Errors
    /// [`Error::Forked`], and on a thread of the task's own pool [`Error::WouldDeadlock`] when all
    /// others there are waiting already. A pool thread hands leadership on before it blocks. In a pool without threads the
    /// caller takes part meanwhile, as in [`Pool::join`](crate::Pool::join).
    #[inline]
    pub fn wait(self) -> Result<TaskReport<T>> {
        self.ended(None)?;
        Ok(self.holder.redeem(|record, seen, said| report(Head(record), seen, said)))
    }

    /// As [`wait`](Self::wait), for at most `timeout`. The report is given once.
    ///
    /// # Errors
    /// [`Error::TimedOut`] as well; the task can be waited for again. [`Error::Stale`] if the report
    /// was given already.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<TaskReport<T>> {
        let seen = self.ended(Some(timeout))?;
        Ok(self.take(seen))
    }

    /// The report, if the task has ended. None: it has not, or the report was given already.
    pub fn poll_report(&mut self) -> Option<TaskReport<T>> {
        let seen = self.head().look();
        (!seen.is_taken() && is_ended(seen)).then(|| self.take(seen))
    }

    /// Calls `callback` when the task has ended, on the thread that ends it; at once, here, if it has.
    /// It should be short. A panic in it is dropped. In a child made by fork it is never called.
    pub fn on_end(&self, callback: impl FnOnce(Status) + Send + 'static) {
        if self.head().task_type().fork.is_child() {
            return;
        }
        let ended = self.head().when_ended(|extras| extras.callbacks.push(Box::new(callback)));
        if !ended {
            limits::arm_own(self.head());
        }
    }

    /// Its end, once it has come. The report was not given.
    #[inline(always)]
    fn ended(&self, timeout: Option<Duration>) -> Result<record::Look> {
        let seen = self.head().look();
        match is_ended(seen) && !seen.is_taken() {
            true => Ok(seen),
            false => self.ended_later(seen, timeout),
        }
    }

    #[cold]
    fn ended_later(&self, seen: record::Look, timeout: Option<Duration>) -> Result<record::Look> {
        if seen.is_taken() {
            return Err(Error::Stale { what: "task report" });
        }
        let is_over = match self.head().task_type().common() {
            Some(common) => wait_for(&common.shared, timeout, |time| self.block(time))?,
            None => self.block(timeout)?,
        };
        if is_over { Ok(self.head().look()) } else { Err(Error::TimedOut) }
    }

    /// Sleeps until the end, having told the pool whose thread this is.
    #[cold]
    pub(crate) fn block(&self, timeout: Option<Duration>) -> Result<bool> {
        let task_type = self.head().task_type();
        if task_type.fork.is_child() {
            return Err(Error::Forked);
        }
        let is_own = |own: &Shared| task_type.is_in(own);
        // Inside a pool that stops, what has not begun never will; and whoever is to come across it
        // may be this very thread.
        if stops_around_us(is_own) && self.cancel() {
            return Ok(true);
        }
        blocking(is_own, || self.sleep(timeout))
    }

    /// Sleeps until the end, and brings it about itself when a time of the task is over: it may be that
    /// no thread of the pool is free to do so. False: the time ran out.
    fn sleep(&self, timeout: Option<Duration>) -> bool {
        let head = self.head();
        let deadline = Deadline::after(timeout);
        loop {
            let due = limits::enforce_asleep(head);
            let due = (due != u64::MAX)
                .then(|| Duration::from_nanos(due.saturating_sub(head.task_type().clock.now())));
            let left = match (deadline.left(), due) {
                (Some(left), Some(due)) => Some(left.min(due)),
                (left, due) => left.or(due),
            };
            if head.sleep(left) {
                return true;
            }
            if deadline.is_over() {
                return false;
            }
        }
    }

    /// The task has ended, as was seen, and the report was not given.
    fn take(&mut self, seen: record::Look) -> TaskReport<T> {
        let said = self.holder.take(seen);
        report(self.head(), seen, said)
    }
}

/// The report of a task that has ended, as was seen. `said`: what its function has come to.
#[inline(always)]
fn report<T>(head: Head, seen: record::Look, said: Option<Result<T, Fault>>) -> TaskReport<T> {
    if seen.is_unnoted() {
        head.until_noted();
    }
    let status = Status::from_bits(seen.status());
    // None begins any more.
    let attempts = head.attempts();
    TaskReport {
        id: head.id(),
        name: head.task_type().name(),
        status,
        result: said.unwrap_or_else(|| unsaid(head, status)),
        queue_time: head.queue_time_of(attempts),
        run_time: head.run_time(),
        attempts,
        worker: head.worker_of(attempts),
    }
}

#[inline]
fn is_ended(seen: record::Look) -> bool {
    Status::from_bits(seen.status()).is_end()
}

/// What a task yields that has ended without its function.
#[cold]
fn unsaid<T>(head: Head, status: Status) -> Result<T, Fault> {
    Err(Fault::new(head.reason(status)))
}

/// A task as somebody knows it who has no handle, so that who has may give that back meanwhile: what lives in
/// its record by then is left alone.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    head: Head,
    seen: record::Look,
}

impl Known {
    /// As [`TaskHandle::cancel`].
    pub(crate) fn cancel(self) -> bool {
        loop {
            if self.end(Status::Cancelled) {
                return true;
            }
            let now = self.head.look();
            if !now.is_same_task(self.seen) || Status::from_bits(now.status()).is_end() {
                return false;
            }
            // One that has begun to wait since is looked at again, as is one whose next attempt has begun.
            self.head.ask_seen(now);
            if record::is(now, Status::Running) && self.head.look().is_same_attempt(now) {
                return false;
            }
        }
    }

    /// As [`TaskHandle::reject`].
    pub(crate) fn reject(self) -> bool {
        self.end(Status::Rejected)
    }

    fn end(self, status: Status) -> bool {
        let may =
            |now: record::Look| now.is_same_task(self.seen) && !record::is(now, Status::Running);
        self.head.end_if(status, may)
    }
}

impl<T: Send + 'static> Future for TaskHandle<T> {
    type Output = Result<TaskReport<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let seen = self.head().look();
        if seen.is_taken() {
            return Poll::Ready(Err(Error::Stale { what: "task report" }));
        }
        if !is_ended(seen) {
            if self.head().task_type().fork.is_child() {
                return Poll::Ready(Err(Error::Forked));
            }
            let (mut old, mut first) = (None, true);
            let waker = cx.waker().clone();
            let ended = self.head().when_ended(|extras| {
                old = extras.waker.replace(waker);
                first = old.is_none();
            });
            drop(old);
            if !ended {
                if first {
                    limits::arm_own(self.head());
                }
                return Poll::Pending;
            }
        }
        let seen = self.head().look();
        Poll::Ready(Ok(self.take(seen)))
    }
}

impl<T: Send + 'static> Unpin for TaskHandle<T> {}

impl<T: Send + 'static> fmt::Debug for TaskHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle")
            .field("name", &self.name())
            .field("id", &self.id())
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
