//! `Task<T>`: what the submitter holds.

use super::attempt::Fault;
use super::execute::{finish_if, reason};
use super::limits;
use super::record::{Notify, Record};
use super::report::{Status, TaskReport};
use crate::error::{Error, Result};
use crate::pool::{Deadline, Shared, blocking, stops_around_us};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::{Arc, PoisonError};

/// A submitted task. It can be waited for by any thread, awaited, asked, and cancelled. Dropping it lets
/// the task run on unobserved.
#[must_use = "dropping a Task detaches it; use `post` for work that nobody waits for"]
pub struct Task<T> {
    record: Arc<Record<T>>,
    taken: bool,
}

impl<T: Send + 'static> Task<T> {
    pub(super) fn new(record: Arc<Record<T>>) -> Self {
        Self { record, taken: false }
    }

    /// The task's name.
    pub fn name(&self) -> &str {
        self.record.head.kind.name()
    }

    /// The task's number, which no other task of its worker pool has.
    pub fn id(&self) -> u64 {
        self.record.head.id
    }

    /// How the task stands. Any thread, never blocks.
    pub fn status(&self) -> Status {
        self.record.head.status()
    }

    /// Whether the task has ended, in whatever way. Any thread, never blocks.
    pub fn is_done(&self) -> bool {
        self.record.head.is_ended()
    }

    /// Cancels the task. One that waits, for its first attempt or for another, ends here and now, as
    /// CANCELLED: true. One that runs is asked through its token, and may end as it likes: false. False
    /// too if it has ended. Any thread; O(1), never blocks.
    pub fn cancel(&self) -> bool {
        let head = &self.record.head;
        if head.kind.common().shared.is_forked() {
            return false;
        }
        head.ask();
        finish_if(head, Status::Cancelled, |status| status != Status::Running)
    }

    /// Waits until the task has ended.
    ///
    /// # Errors
    /// [`Error::Forked`], and on a thread of the task's own pool [`Error::WouldDeadlock`] when all
    /// others there are waiting already. A pool thread hands leadership on before it blocks.
    pub fn wait(mut self) -> Result<TaskReport<T>> {
        self.wait_until(None)
    }

    /// As [`wait`](Self::wait), for at most `timeout`. The report is given once.
    ///
    /// # Errors
    /// [`Error::TimedOut`] as well; the task can be waited for again. [`Error::Stale`] if the report
    /// was given already.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<TaskReport<T>> {
        self.wait_until(Some(timeout))
    }

    /// The report, if the task has ended. None: it has not, or the report was given already.
    pub fn poll_report(&mut self) -> Option<TaskReport<T>> {
        (!self.taken && self.is_done()).then(|| self.take())
    }

    /// Calls `callback` when the task has ended, on the thread that ends it; at once, here, if it has.
    /// It should be short. A panic in it is dropped.
    pub fn on_end(&self, callback: impl FnOnce(Status) + Send + 'static) {
        let record = Arc::downgrade(&self.record);
        let call = move || {
            let ended = record.upgrade().map(|record| record.head.status());
            callback(ended.unwrap_or(Status::Cancelled));
        };
        self.record.head.when_ended(Notify::Callback(Box::new(call)));
    }

    fn wait_until(&mut self, timeout: Option<Duration>) -> Result<TaskReport<T>> {
        if self.taken {
            return Err(Error::Stale { what: "task report" });
        }
        if !self.is_done() && !self.block(timeout)? {
            return Err(Error::TimedOut);
        }
        Ok(self.take())
    }

    /// Sleeps until the end, having told the pool whose thread this is.
    fn block(&self, timeout: Option<Duration>) -> Result<bool> {
        let head = &self.record.head;
        let shared = &head.kind.common().shared;
        if shared.is_forked() {
            return Err(Error::Forked);
        }
        let is_own = |own: &Shared| core::ptr::eq(own, &**shared);
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
        let head = &self.record.head;
        let deadline = Deadline::after(timeout);
        loop {
            let due = limits::enforce(head);
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

    fn take(&mut self) -> TaskReport<T> {
        self.taken = true;
        let head = &self.record.head;
        let status = head.status();
        let said = self.record.value.lock().unwrap_or_else(PoisonError::into_inner).take();
        // An attempt that lost the race for the end may be about to take its value back.
        let own = |result: &Result<T, Fault>| (status == Status::Completed) == result.is_ok();
        let result = said.filter(own).unwrap_or_else(|| Err(Fault::new(reason(head, status))));
        TaskReport {
            id: head.id,
            name: Arc::clone(head.kind.name_arc()),
            status,
            result,
            queue_time: head.queue_time(),
            run_time: head.run_time(),
            attempts: head.attempts(),
            worker: head.worker(),
        }
    }
}

impl<T: Send + 'static> Future for Task<T> {
    type Output = Result<TaskReport<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.taken {
            return Poll::Ready(Err(Error::Stale { what: "task report" }));
        }
        if !self.is_done() {
            if self.record.head.kind.common().shared.is_forked() {
                return Poll::Ready(Err(Error::Forked));
            }
            self.record.head.when_ended(Notify::Waker(cx.waker().clone()));
            if !self.is_done() {
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(self.take()))
    }
}

impl<T> Unpin for Task<T> {}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("name", &self.record.head.kind.name())
            .field("id", &self.record.head.id)
            .field("status", &self.record.head.status())
            .finish_non_exhaustive()
    }
}
