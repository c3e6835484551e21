//! Tasks whose retries do not wait for an attempt that has outlived its time.
//!
//! ```text
//!   attempt 1 ───────────── its time is over ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ returns: discarded, counted
//!                            └─ overtaken ─► delay ─► lane ─► attempt 2 ──► its outcome is the task's
//! ```
//!
//! The closure is shared by all attempts, so it is one that several threads may call at once. The right to
//! go on with the task passes by one change of its word (`record/word.rs`, *Overtaking*): the attempt that
//! returns claims it, or finds that it was overtaken, and then touches the task no more.
//!
//! # Invariants
//!
//! 1. The closure, and the task's key, go when the last attempt has returned and no other is to come: with
//!    the last reference to the [`Line`].
//! 2. While attempts that were overtaken run, the line keeps the record: what they look at is their task's.
//! 3. A record knows its line weakly. Who has a reference through it may be the last to let the line go.
//! 4. A place of `max_running` is that of the attempt while it runs on a thread of the pool. One that is
//!    out with a host has none once it is overtaken.
#![allow(unsafe_code, reason = "the runner is made anew, whose type the record does not know")]

use crate::error::Rejected;
use crate::pool::contain;
use crate::sync::Mutex;
use crate::task::admission::submit::{self, TaskBuilder};
use crate::task::attempt::Attempt;
use crate::task::attempt::execute::{Body, Job};
use crate::task::attempt::fault::{Fault, Outcome};
use crate::task::attempt::tagged::Tagged;
use crate::task::record::Again;
use crate::task::record::Hold;
use crate::task::record::{Extras, Head, Look};
use crate::task::result::handle::TaskHandle;
use crate::task::task_type::TaskType;
use core::fmt;
use std::sync::{Arc, OnceLock, PoisonError, Weak};

/// A function that several threads may call at once: see [`TaskType::task_concurrent`].
pub struct Concurrent<F>(F);

impl<F> fmt::Debug for Concurrent<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Concurrent(..)")
    }
}

/// As [`Body`], for attempts that overlap.
pub(in crate::task) trait SharedBody: Send + Sync + 'static {
    type Output: Outcome;

    const TAGGED: bool = false;

    fn call(&self, attempt: &Attempt<'_>) -> Self::Output;

    fn tag(&self) -> u64 {
        0
    }
}

impl<F, R> SharedBody for F
where
    F: Fn(&Attempt<'_>) -> R + Send + Sync + 'static,
    R: Outcome,
{
    type Output = R;

    fn call(&self, attempt: &Attempt<'_>) -> R {
        self(attempt)
    }
}

impl SharedBody for Tagged {
    type Output = Result<(), Fault>;
    const TAGGED: bool = true;

    fn call(&self, _attempt: &Attempt<'_>) -> Self::Output {
        Ok(())
    }

    fn tag(&self) -> u64 {
        self.tag
    }
}

/// What all attempts of a task share. Its fields go in this order.
struct Line<W> {
    work: W,
    key: Mutex<Option<Hold>>,
    keeps: Keeps,
}

/// The record, from when an attempt was overtaken.
#[derive(Default)]
struct Keeps(OnceLock<Head>);

impl Drop for Keeps {
    fn drop(&mut self) {
        if let Some(head) = self.0.get() {
            head.0.keep_no_more();
        }
    }
}

/// One attempt's part of the line.
pub(in crate::task) struct Overlapping<W>(Arc<Line<W>>);

impl<W: SharedBody> Overlapping<W> {
    /// `extras` learn of it.
    pub(in crate::task) fn new(work: W, extras: &mut Option<Box<Extras>>) -> Self {
        let line = Line { work, key: Mutex::new(None), keeps: Keeps::default() };
        let line = Arc::new(line);
        let weak: Weak<dyn Again> = Arc::<Line<W>>::downgrade(&line);
        extras.get_or_insert_default().again = Some(weak);
        Self(line)
    }

    /// The closure of a task that was not taken in.
    pub(in crate::task) fn into_work(self) -> W {
        let mut line = self.0;
        // Somebody who looked at the record's last tenant may have it for a moment, and leaves it alone.
        loop {
            match Arc::try_unwrap(line) {
                Ok(line) => return line.work,
                Err(shared) => line = shared,
            }
            // To a thread of whatever priority.
            std::thread::sleep(core::time::Duration::from_micros(50));
        }
    }
}

impl<W: SharedBody> Body for Overlapping<W> {
    type Output = W::Output;
    const TAGGED: bool = W::TAGGED;
    const OVERLAPS: bool = true;

    fn call(&mut self, attempt: &Attempt<'_>) -> W::Output {
        self.0.work.call(attempt)
    }

    fn tag(&self) -> u64 {
        self.0.work.tag()
    }

    fn keep(&mut self, key: Hold) {
        *self.0.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }
}

impl<W: SharedBody> Again for Line<W> {
    fn overtake(self: Arc<Self>, head: Head, seen: Look) {
        // SAFETY: the task yields what its body does, and jobs of overlapping bodies claim before they use
        // their runners (`Job::is_overtaken`).
        let Some(runner) = (unsafe { head.0.overtake(seen) }) else {
            // It may be the last reference.
            let _panicked = contain(|| drop(self));
            return;
        };
        self.keeps.0.get_or_init(|| head);
        let _panicked = contain(|| Job::new(runner, Overlapping(self)).follow());
    }
}

impl TaskType {
    /// A task whose function may be called by several threads at once, to be submitted. It is as one of
    /// [`task`](Self::task), but if the task type [overlaps its retries](crate::task::TaskTypeBuilder::overlap_retries)
    /// an attempt whose time is over does not hold up the next one. Allocates.
    pub fn task_concurrent<F, R>(&self, work: F) -> TaskBuilder<'_, Concurrent<F>>
    where
        F: Fn(&Attempt<'_>) -> R + Send + Sync + 'static,
        R: Outcome,
    {
        self.task_of(Concurrent(work))
    }
}

impl<F, R> TaskBuilder<'_, Concurrent<F>>
where
    F: Fn(&Attempt<'_>) -> R + Send + Sync + 'static,
    R: Outcome,
{
    /// Submits it. Any thread; what it does without room is as for other tasks.
    ///
    /// # Errors
    /// As for other tasks: [`Rejected`] gives the closure back.
    pub fn submit(self) -> Result<TaskHandle<R::Value>, Rejected<F>> {
        if !self.overlaps() {
            return submit::hand_in(self.with(|Concurrent(work), _| work));
        }
        let task = self.with(|Concurrent(work), extras| Overlapping::new(work, extras));
        submit::hand_in(task).map_err(|rejected| rejected.map(Overlapping::into_work))
    }
}
