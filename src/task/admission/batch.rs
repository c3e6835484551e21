//! Many tasks at once: up to [`CHUNK`] of them enter their lane by one compare-exchange.
//!
//! All of a batch have the same settings, as they enter one lane together. Those with a key or a delay go
//! elsewhere first, and those that may drop others look at each: they are submitted one after the other.

use crate::error::{NoRoom, Rejected};
use crate::pool::Staged;
use crate::task::admission::lane::patience;
use crate::task::admission::limiter::Limiter;
use crate::task::admission::submit::{Pattern, TaskBuilder, refused};
use crate::task::attempt::Attempt;
use crate::task::attempt::execute::Job;
use crate::task::attempt::fault::Outcome;
use crate::task::common::OPEN;
use crate::task::counters::Event;
use crate::task::record::{self, Holder};
use crate::task::result::handle::TaskHandle;
use crate::task::settings::OverloadPolicy;
use crate::task::task_type::TaskType;
use core::fmt;
use std::collections::VecDeque;

/// What a batch could not submit, in order. It is an iterator over the closures.
pub struct Unsubmitted<I, F> {
    first: VecDeque<F>,
    rest: I,
}

impl<I: Iterator<Item = F>, F> Iterator for Unsubmitted<I, F> {
    type Item = F;

    fn next(&mut self) -> Option<F> {
        self.first.pop_front().or_else(|| self.rest.next())
    }
}

impl<I, F> fmt::Debug for Unsubmitted<I, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unsubmitted(..)")
    }
}

type Submitted<I, F> = Result<(), Rejected<Unsubmitted<I, F>>>;

/// What a batch has in the place of a function: see [`TaskType::batch`].
#[derive(Debug)]
pub struct Batch(());

impl TaskType {
    /// Submits everything that `work` yields, up to 32 tasks by one compare-exchange, and appends a
    /// handle for each that was taken to `tasks`.
    ///
    /// # Errors
    /// As [`TaskBuilder::submit`]; [`Rejected`] holds an iterator over what was not taken, in order. All
    /// before it was. It counts as one rejected task.
    pub fn submit_batch<I, F, R>(
        &self,
        work: I,
        tasks: &mut Vec<TaskHandle<R::Value>>,
    ) -> Result<(), Rejected<Unsubmitted<I::IntoIter, F>>>
    where
        I: IntoIterator<Item = F>,
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        self.batch().submit(work, tasks)
    }

    /// Settings for the tasks of a batch, to be submitted together.
    ///
    /// ```
    /// use paceline::task::{Attempt, Retry, WorkerPool};
    /// use paceline::{Lane, Pool};
    ///
    /// # fn main() -> paceline::Result<()> {
    /// let workers = WorkerPool::new(&Pool::new()?);
    /// let task_type = workers.task_type("square").build()?;
    /// let squares = (0..100u64).map(|number| move |_: &Attempt<'_>| number * number);
    /// let mut tasks = Vec::new();
    /// let batch = task_type.batch().lane(Lane::Low).retry(Retry::none());
    /// batch.submit(squares, &mut tasks).expect("an open pool");
    /// assert_eq!(tasks.pop().expect("a hundred").wait()?.result.expect("a number"), 99 * 99);
    /// # Ok(()) }
    /// ```
    pub fn batch(&self) -> TaskBuilder<'_, Batch> {
        self.task_of(Batch(()))
    }
}

impl TaskBuilder<'_, Batch> {
    /// Submits everything that `work` yields, with these settings, up to 32 tasks by one compare-exchange
    /// (with a key, a delay or [`OverloadPolicy::DropOldest`] one after the other), and appends a handle for each that
    /// was taken to `tasks`. Any thread.
    ///
    /// # Errors
    /// As [`TaskType::submit_batch`].
    pub fn submit<I, F, R>(
        self,
        work: I,
        tasks: &mut Vec<TaskHandle<R::Value>>,
    ) -> Result<(), Rejected<Unsubmitted<I::IntoIter, F>>>
    where
        I: IntoIterator<Item = F>,
        F: FnMut(&Attempt<'_>) -> R + Send + 'static,
        R: Outcome,
    {
        let (pattern, Batch(())) = self.into_pattern();
        submit(&pattern, work.into_iter(), tasks)
    }
}

fn submit<I, F, R>(
    pattern: &Pattern<'_>,
    mut rest: I,
    tasks: &mut Vec<TaskHandle<R::Value>>,
) -> Submitted<I, F>
where
    I: Iterator<Item = F>,
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome,
{
    if !pattern.is_direct() {
        return one_by_one(pattern, rest, tasks);
    }
    let mut chunk = Chunk::new(pattern);
    loop {
        // The closures come first: what yields them is code of the user, and may take its time.
        let closures: VecDeque<F> = rest.by_ref().take(CHUNK).collect();
        if closures.is_empty() {
            return Ok(());
        }
        let result = chunk.push(closures, tasks);
        if let Err(rejected) = result {
            return Err(rejected.map(|first| Unsubmitted { first, rest }));
        }
    }
}

fn one_by_one<I, F, R>(
    pattern: &Pattern<'_>,
    mut rest: I,
    tasks: &mut Vec<TaskHandle<R::Value>>,
) -> Submitted<I, F>
where
    I: Iterator<Item = F>,
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome,
{
    while let Some(work) = rest.next() {
        match pattern.submit(work) {
            Ok(task) => tasks.push(task),
            Err(rejected) => {
                return Err(rejected.map(|work| Unsubmitted { first: [work].into(), rest }));
            }
        }
    }
    Ok(())
}

/// As many as a lane takes by one compare-exchange.
const CHUNK: usize = 32;

/// Tasks on their way into their lane.
struct Chunk<'a, F, R: Outcome> {
    pattern: &'a Pattern<'a>,
    staged: Staged<Job<F, R::Value>>,
    holders: VecDeque<Holder<R::Value>>,
}

impl<'a, F, R> Chunk<'a, F, R>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome,
{
    fn new(pattern: &'a Pattern<'a>) -> Self {
        Self { pattern, staged: Staged::new(), holders: VecDeque::with_capacity(CHUNK) }
    }

    /// Submits up to [`CHUNK`] tasks. What was not taken comes back, in order.
    fn push(
        &mut self,
        mut closures: VecDeque<F>,
        tasks: &mut Vec<TaskHandle<R::Value>>,
    ) -> Result<(), Rejected<VecDeque<F>>> {
        let (task_type, common) = (self.pattern.task_type, &*self.pattern.common);
        if task_type.phase() != OPEN {
            return Err(refused(task_type, Rejected::ShutDown(closures)));
        }
        if task_type.limiter.as_ref().is_some_and(Limiter::is_full) {
            return Err(refused(task_type, Rejected::Full(closures, NoRoom::TASKS_WAIT)));
        }
        self.open(&mut closures);
        let pushed = self.push_staged(tasks);
        if let Some(scaler) = &common.scaler {
            scaler.note_submission(&common.shared);
        }
        match pushed {
            Ok(()) if closures.is_empty() => Ok(()),
            // There are no records left.
            Ok(()) => Err(refused(task_type, Rejected::Full(closures, NoRoom::TASKS_OPEN))),
            Err(rejected) => {
                let mut left = self.take_back();
                left.append(&mut closures);
                Err(refused(task_type, rejected).map(|()| left))
            }
        }
    }

    /// Makes jobs of the closures, as long as there are records for them.
    fn open(&mut self, closures: &mut VecDeque<F>) {
        let (pattern, task_type) = (self.pattern, self.pattern.task_type);
        let now = pattern.stamp();
        let holders = &mut self.holders;
        let mut jobs = core::iter::from_fn(|| {
            let work = closures.pop_front()?;
            let (lane, limit) = (pattern.lane, pattern.attempt_limit);
            let Some((runner, holder)) =
                record::open(task_type, lane, limit, pattern.extras(), now)
            else {
                closures.push_front(work);
                return None;
            };
            task_type.stats.count(Event::Accepted);
            holders.push_back(holder);
            Some(Job::new(runner, work))
        });
        self.staged.fill(&mut jobs);
    }

    /// Brings what is staged to its lane, or does what the policy says.
    fn push_staged(&mut self, tasks: &mut Vec<TaskHandle<R::Value>>) -> Result<(), Rejected<()>> {
        let (lane, shared) = (self.pattern.lane, &self.pattern.common.shared);
        let inside = shared.is_inside();
        let staged = &mut self.staged;
        let mut pushed = shared.push_staged(lane, staged, inside);
        if let (Err(Rejected::Full((), _)), false) = (&pushed, inside) {
            pushed = match self.pattern.full {
                OverloadPolicy::Wait(time) => {
                    let room = shared.rooms.of(lane);
                    room.retry_until(patience(time), (), |()| {
                        shared.push_staged(lane, staged, false)
                    })
                }
                OverloadPolicy::RunHere => {
                    staged.for_each(Job::run_here);
                    Ok(())
                }
                OverloadPolicy::Reject | OverloadPolicy::DropOldest => pushed,
            };
        }
        if pushed.is_err() {
            shared.counters.count_rejected(());
        }
        let taken = self.holders.len() - self.staged.len();
        tasks.extend(self.holders.drain(..taken).map(TaskHandle::new));
        pushed
    }

    /// The closures of those that were not taken.
    fn take_back(&mut self) -> VecDeque<F> {
        let task_type = self.pattern.task_type;
        let closures = self.staged.by_ref().map(|job| {
            let mut first = false;
            let work = job.into_body(&mut first);
            // A shutdown may have found it, and cancelled it: then it stays in the counters as that.
            if first {
                task_type.stats.take_back_accepted();
            }
            work
        });
        let closures = closures.collect();
        self.holders.clear();
        closures
    }
}
