//! Many tasks at once: up to [`CHUNK`] of them enter their lane by one compare-exchange.

use super::attempt::{Attempt, Outcome};
use super::execute::Job;
use super::gate::Gate;
use super::handle::Task;
use super::intake::{Full, patience};
use super::kind::KindInner;
use super::record::{self, Holder};
use super::stats::Event;
use super::submit::{self, refused};
use super::{Common, OPEN};
use crate::error::Rejected;
use crate::pool::{Staged, is_inside};
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

pub(super) fn submit<I, F, R>(
    kind: &'static KindInner,
    common: &Common,
    mut rest: I,
    tasks: &mut Vec<Task<R::Value>>,
) -> Submitted<I, F>
where
    I: Iterator<Item = F>,
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome,
{
    if kind.full == Full::DropOldest {
        return one_by_one(kind, common, rest, tasks);
    }
    let mut chunk = Chunk::new(kind);
    loop {
        // The closures come first: what yields them is code of the user, and may take its time.
        let closures: VecDeque<F> = rest.by_ref().take(CHUNK).collect();
        if closures.is_empty() {
            return Ok(());
        }
        let result = chunk.push(common, closures, tasks);
        if let Err(rejected) = result {
            return Err(rejected.map(|first| Unsubmitted { first, rest }));
        }
    }
}

/// Each of them may have to drop another.
fn one_by_one<I, F, R>(
    kind: &'static KindInner,
    common: &Common,
    mut rest: I,
    tasks: &mut Vec<Task<R::Value>>,
) -> Submitted<I, F>
where
    I: Iterator<Item = F>,
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome,
{
    let (lane, limit) = (kind.settings.lane, kind.settings.limits.attempt);
    while let Some(work) = rest.next() {
        match submit::submit(kind, common, lane, limit, None, kind.full, work) {
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
struct Chunk<F, R: Outcome> {
    kind: &'static KindInner,
    staged: Staged<Job<F, R::Value>>,
    holders: VecDeque<Holder<R::Value>>,
}

impl<F, R> Chunk<F, R>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome,
{
    fn new(kind: &'static KindInner) -> Self {
        Self { kind, staged: Staged::new(), holders: VecDeque::with_capacity(CHUNK) }
    }

    /// Submits up to [`CHUNK`] tasks. What was not taken comes back, in order.
    fn push(
        &mut self,
        common: &Common,
        mut closures: VecDeque<F>,
        tasks: &mut Vec<Task<R::Value>>,
    ) -> Result<(), Rejected<VecDeque<F>>> {
        let kind = self.kind;
        if kind.phase() != OPEN {
            return Err(refused(kind, Rejected::ShutDown(closures)));
        }
        if kind.gate.as_ref().is_some_and(Gate::is_full) {
            return Err(refused(kind, Rejected::Full(closures)));
        }
        self.open(&mut closures);
        let pushed = self.push_staged(common, tasks);
        if let Some(scaler) = &common.scaler {
            scaler.note_submission(&common.shared);
        }
        match pushed {
            Ok(()) if closures.is_empty() => Ok(()),
            // There are no records left.
            Ok(()) => Err(refused(kind, Rejected::Full(closures))),
            Err(rejected) => {
                let mut left = self.take_back();
                left.append(&mut closures);
                Err(refused(kind, rejected).map(|()| left))
            }
        }
    }

    /// Makes jobs of the closures, as long as there are records for them.
    fn open(&mut self, closures: &mut VecDeque<F>) {
        let (kind, settings) = (self.kind, &self.kind.settings);
        let now = kind.stamp(settings.limits.queue.min(settings.limits.overall));
        let holders = &mut self.holders;
        let mut jobs = core::iter::from_fn(|| {
            let work = closures.pop_front()?;
            let limit = settings.limits.attempt;
            let Some((runner, holder)) = record::open(kind, settings.lane, limit, None, now) else {
                closures.push_front(work);
                return None;
            };
            kind.stats.count(Event::Accepted);
            holders.push_back(holder);
            Some(Job::new(runner, work))
        });
        self.staged.fill(&mut jobs);
    }

    /// Brings what is staged to its lane, or does what the policy says.
    fn push_staged(
        &mut self,
        common: &Common,
        tasks: &mut Vec<Task<R::Value>>,
    ) -> Result<(), Rejected<()>> {
        let (kind, lane, shared) = (self.kind, self.kind.settings.lane, &common.shared);
        let inside = is_inside(shared);
        let staged = &mut self.staged;
        let mut pushed = shared.push_staged(lane, staged, inside);
        if let (Err(Rejected::Full(())), false) = (&pushed, inside) {
            pushed = match kind.full {
                Full::Wait(time) => {
                    let room = shared.lane_room(lane);
                    shared.retry_for_room_until(patience(time), room, (), |()| {
                        shared.push_staged(lane, staged, false)
                    })
                }
                Full::RunHere => {
                    staged.for_each(Job::run_here);
                    Ok(())
                }
                Full::Reject | Full::DropOldest => pushed,
            };
        }
        if pushed.is_err() {
            shared.count_rejected(());
        }
        let taken = self.holders.len() - self.staged.len();
        tasks.extend(self.holders.drain(..taken).map(Task::new));
        pushed
    }

    /// The closures of those that were not taken.
    fn take_back(&mut self) -> VecDeque<F> {
        let kind = self.kind;
        let closures = self.staged.by_ref().map(|job| {
            let mut first = false;
            let work = job.into_body(&mut first);
            // A shutdown may have found it, and cancelled it: then it stays in the books as that.
            if first {
                kind.stats.take_back_accepted();
            }
            work
        });
        let closures = closures.collect();
        self.holders.clear();
        closures
    }
}
