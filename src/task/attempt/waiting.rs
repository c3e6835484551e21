//! Where a task is while it neither runs nor lies in a lane: it waits for its time, for its key, or for
//! its name's rate.
//!
//! ```text
//!   submit ─► its time: delay ─► key's queue ─► lane ─► rate's queue ─► lane ─► attempt
//!                                                 ▲                                │
//!                                                 └────── its time: retry ◄────────┘
//! ```
//!
//! No thread waits with it. What waits is the job itself, closure and all: whoever lets it go on pushes
//! it into its lane. A lane that is full is tried again later; the task was accepted, and is not refused
//! any more.
//!
//! # Invariants
//!
//! 1. A job is in one place at a time: with the delay queue, in a key's queue, a rate's queue, a lane, or
//!    with the thread of its attempt. Wherever it is dropped, its task ends.
//! 2. A job that holds a key gives it up when it is dropped, after its closure.
//! 3. A task that ends while its job waits for its time or in a rate's queue takes the job out. From a
//!    key's queue it is taken at its turn.
//! 4. A job comes to its lane by its submitter's policy (`lane.rs`) only if it needed not wait before.
//! 5. Who puts a job to where others may take it from touches its record no more.

use crate::error::{Error, NoRoom, Rejected};
use crate::pool::{Shared, contain};
use crate::queue::Run;
use crate::task::admission::keyed::Entered;
use crate::task::attempt::Attempt;
use crate::task::attempt::execute::{Body, Job};
use crate::task::attempt::fault::Outcome;
use crate::task::record::Hold;
use crate::task::record::Parked;
use crate::task::record::Waits;
use crate::task::record::word::Parks;
use crate::task::record::{Head, Place, Record, TaskMeta};
use crate::task::settings::OverloadPolicy;
use core::time::Duration;
use std::sync::Arc;

/// When a job finds its lane full it tries again after this.
const LANE_WAIT: Duration = Duration::from_millis(1);

/// A closure whose task has a key.
pub(in crate::task) struct Special<F> {
    work: F,
    /// Dropped after the closure.
    turn: Turn,
}

impl<F> Special<F> {
    pub(in crate::task) fn new(work: F, key: Option<u64>) -> Self {
        Self { work, turn: Turn { key, hold: None } }
    }

    pub(in crate::task) fn into_work(self) -> F {
        self.work
    }
}

impl<B: Body> Body for Special<B> {
    type Output = B::Output;
    const TAGGED: bool = B::TAGGED;
    const OVERLAPS: bool = B::OVERLAPS;

    fn call(&mut self, attempt: &Attempt<'_>) -> B::Output {
        self.work.call(attempt)
    }

    fn tag(&self) -> u64 {
        self.work.tag()
    }

    fn turn(&mut self) -> Option<&mut Turn> {
        Some(&mut self.turn)
    }

    fn begun(&mut self) {
        if B::OVERLAPS
            && let Some(hold) = self.turn.hold.take()
        {
            self.turn.key = None;
            self.work.keep(hold);
        }
    }
}

/// A task's turn at its key.
pub(in crate::task) struct Turn {
    key: Option<u64>,
    hold: Option<Hold>,
}

/// A job that waits for its time.
pub(in crate::task) struct Sleeping<B, T: Send + 'static>(pub(in crate::task) Job<B, T>);

impl<B, T> Run for Sleeping<B, T>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    fn run(self) {
        self.0.go_on();
    }
}

impl<B, T> Parks<TaskMeta> for Sleeping<B, T>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    fn record(&self) -> &'static Record {
        self.0.head().0
    }
}

impl<B, T> Waits for Job<B, T>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    fn task(&self) -> Head {
        self.head()
    }

    fn go(self: Box<Self>) {
        self.go_on();
    }

    fn run_now(self: Box<Self>) {
        self.run();
    }

    fn take_turn(self: Box<Self>, hold: Hold) -> Result<(), Hold> {
        let mut job = *self;
        if job.head().is_ended() {
            let _panicked = contain(|| drop(job));
            return Err(hold);
        }
        job.body().turn().expect("only those with a key wait for it").hold = Some(hold);
        job.go_to_lane().map_err(|mut job| {
            let hold = job.body().turn().and_then(|turn| turn.hold.take());
            let _panicked = contain(|| drop(job));
            hold.expect("it was given above")
        })
    }
}

impl<B, T> Job<B, T>
where
    B: Body<Output: Outcome<Value = T>>,
    T: Send + 'static,
{
    /// The way in of a task that is submitted.
    pub(in crate::task) fn come_in(
        self,
        shared: &Arc<Shared>,
        delay: Duration,
        full: OverloadPolicy,
    ) -> Result<(), Rejected<Self>> {
        if !delay.is_zero() {
            return self.sleep(shared, delay).map_err(|(error, job)| match error {
                Error::ShutDown => Rejected::ShutDown(job),
                Error::Forked => Rejected::Forked(job),
                _ => Rejected::Full(job, NoRoom::TIMERS),
            });
        }
        match self.enter() {
            Entered::Goes(job) => {
                let lane = job.head().lane();
                job.post(shared, lane, full)
            }
            Entered::Waits => Ok(()),
            Entered::Full(job) => Err(Rejected::Full(job, NoRoom::TASKS_WAIT)),
        }
    }

    /// Gets its key, if it has one to get, or waits for it.
    fn enter(mut self) -> Entered<Self> {
        let turn = self.body().turn().filter(|turn| turn.hold.is_none());
        let Some(key) = turn.and_then(|turn| turn.key) else { return Entered::Goes(self) };
        let task_type = self.head().task_type();
        let mut entered = task_type.wait_lists.keys.enter(key, self, |job| Box::new(job) as Parked);
        if let Entered::Goes(job) = &mut entered
            && let Some(turn) = job.body().turn()
        {
            turn.hold = Some(Hold::new(task_type, key));
        }
        entered
    }

    /// Goes on to its lane: what it waited for has come. If that cannot be, its task ends.
    pub(in crate::task) fn go_on(self) {
        if self.head().is_ended() {
            return;
        }
        let refused = match self.enter() {
            Entered::Goes(job) => job.go_to_lane(),
            Entered::Waits => Ok(()),
            Entered::Full(job) => job.try_later(),
        };
        drop(refused);
    }

    fn go_to_lane(self) -> Result<(), Self> {
        let Some(common) = self.head().task_type().common() else { return Err(self) };
        match self.try_post(&common.shared) {
            Ok(()) => {
                common.note_submission(true);
                Ok(())
            }
            Err(Rejected::Full(job, _)) => job.try_later(),
            Err(Rejected::ShutDown(job) | Rejected::Forked(job)) => Err(job),
        }
    }

    fn try_later(self) -> Result<(), Self> {
        let Some(common) = self.head().task_type().common() else { return Err(self) };
        self.sleep(&common.shared, LANE_WAIT).map_err(|(_, job)| job)
    }

    /// Waits for its time.
    pub(in crate::task) fn sleep(
        self,
        shared: &Arc<Shared>,
        delay: Duration,
    ) -> Result<(), (Error, Self)> {
        let delay_queue = &self.head().task_type().wait_lists.delay_queue;
        let put = delay_queue.put(shared, delay, Sleeping(self));
        put.map_err(|(error, Sleeping(job))| (error, job))
    }
}

/// Takes the job of a task that has ended out of where it waits, if it is there still.
pub(in crate::task) fn take_out(head: Head, place: Place) {
    let task_type = head.task_type();
    let _panicked = contain(|| match place {
        Place::Elsewhere => {}
        Place::Limiter => {
            drop(task_type.limiter.as_ref().and_then(|limiter| limiter.take_out(head)))
        }
    });
}
