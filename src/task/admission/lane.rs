//! What is done with a task for which its lane has no room.
//!
//! Three of the policies need nothing but the lane. For the fourth, which drops the oldest, tasks must lie
//! where a submitter can take them from. So tasks that may be dropped lie in a list of their own for each
//! lane, and a *ticket* for each lies in the lane itself: a thread that comes to a ticket runs the oldest
//! of its list.
//!
//! ```text
//!   submit ─► list of the lane ──── a ticket is run ───► attempt
//!       │        │
//!       │        └── full, and the oldest ─► dropped: REJECTED
//!       └─ a ticket, unless one is to spare ─► lane
//! ```
//!
//! A list keeps the order of the lane, and who is dropped leaves a ticket to the one who comes in its
//! place. Nobody is dropped who did not agree to it: what was submitted by another policy lies in the
//! lane itself.
//!
//! # Invariants
//!
//! 1. A lane has at least as many tickets as its list has tasks. So none is forgotten; a ticket to spare
//!    runs nothing.
//! 2. `count` is the number of tasks in all lists, and never above `most`.
//! 3. A task is dropped only for one of its own lane or of a higher one.
//! 4. What is dropped leaves its list under the lock, and its closure is dropped after it.
//!
//! # Orderings
//!
//! All under one lock. A ticket is pushed under it too: whoever comes to the ticket finds the task.

use crate::error::Rejected;
use crate::pool::{Deadline, Shared, contain};
use crate::queue::{Lane, Run};
use crate::task::attempt::execute::{Body, Job};
use crate::task::attempt::fault::Outcome;
use crate::task::common::WaitLists;
use crate::task::record::Parked;
use crate::task::result::report::Status;
use crate::task::settings::OverloadPolicy;
use crate::time::MAX_DELAY;
use core::time::Duration;

/// Brings a job to its lane, or does what the policy says.
#[inline]
pub(in crate::task) fn take_in<B, T>(
    full: OverloadPolicy,
    shared: &Shared,
    lane: Lane,
    job: Job<B, T>,
) -> Result<(), Rejected<Job<B, T>>>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    if full == OverloadPolicy::DropOldest {
        return enlist(shared, lane, job);
    }
    shared.post_or(lane, job, |job| match full {
        OverloadPolicy::Wait(time) => shared.post_within(lane, job, patience(time)),
        OverloadPolicy::RunHere => {
            job.run_here();
            Ok(())
        }
        OverloadPolicy::Reject | OverloadPolicy::DropOldest => {
            Err(shared.counters.count_rejected(Rejected::Full(job, shared.no_room(lane))))
        }
    })
}

/// As [`take_in`], for what has no record.
#[cold]
pub(in crate::task) fn post_when_full<F>(
    full: OverloadPolicy,
    shared: &Shared,
    lane: Lane,
    work: F,
) -> Result<(), Rejected<F>>
where
    F: FnOnce() + Send + 'static,
{
    match full {
        OverloadPolicy::Wait(time) => shared.post_within(lane, work, patience(time)),
        OverloadPolicy::RunHere => {
            let _panicked = contain(work);
            Ok(())
        }
        OverloadPolicy::Reject | OverloadPolicy::DropOldest => {
            Err(shared.counters.count_rejected(Rejected::Full(work, shared.no_room(lane))))
        }
    }
}

pub(in crate::task) fn patience(time: Duration) -> Deadline {
    Deadline::after((time <= MAX_DELAY).then_some(time))
}

/// Puts a job into the list of its lane.
#[cold]
fn enlist<B, T>(shared: &Shared, lane: Lane, job: Job<B, T>) -> Result<(), Rejected<Job<B, T>>>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    let wait_lists = job.head().task_type().wait_lists;
    let post = || {
        let posted = shared.try_post(lane, Ticket { wait_lists, lane: Some(lane) });
        posted.map_err(|rejected| rejected.map(Ticket::forget))
    };
    let mut work = Some(job);
    let park =
        |work: &mut Option<_>| -> Parked { Box::new(work.take().expect("it is parked once")) };
    let entered = wait_lists.lists.enter(lane, || park(&mut work), post);
    match (entered, work) {
        (Ok(dropped), _) => {
            dropped.into_iter().for_each(drop_for_others);
            Ok(())
        }
        (Err(rejected), Some(job)) => Err(rejected.map(|()| job)),
        (Err(_), None) => unreachable!("what is parked is taken in"),
    }
}

fn drop_for_others(oldest: Parked) {
    // If it was cancelled, it has made room without being dropped.
    oldest.task().end_if(Status::Rejected, |_| true);
    let _panicked = contain(|| drop(oldest));
}

/// Stands in a lane for the oldest of its list.
struct Ticket {
    wait_lists: &'static WaitLists,
    /// None: it is used, or was not taken.
    lane: Option<Lane>,
}

impl Ticket {
    fn take(&mut self) -> Option<Parked> {
        self.lane.take().and_then(|lane| self.wait_lists.lists.leave(lane))
    }

    fn forget(mut self) {
        self.lane = None;
    }
}

impl Run for Ticket {
    fn run(mut self) {
        if let Some(job) = self.take() {
            job.run_now();
        }
    }
}

impl Drop for Ticket {
    /// The pool stops: as many tasks are dropped as tickets.
    fn drop(&mut self) {
        let left = self.take();
        let _panicked = contain(|| drop(left));
    }
}
