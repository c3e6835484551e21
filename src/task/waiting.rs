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
//! 1. A job is in one place at a time: with the sleepers, in a key's queue, a rate's queue, a lane, or
//!    with the thread of its attempt. Wherever it is dropped, its task ends.
//! 2. A job that holds a key gives it up when it is dropped, after its closure.
//! 3. A task that ends while its job waits for its time or in a rate's queue takes the job out. From a
//!    key's queue it is taken at its turn.
//! 4. A job comes to its lane by its submitter's policy (`intake.rs`) only if it needed not wait before.
//! 5. Who puts a job to where others may take it from touches its record no more.

use super::attempt::{Attempt, Outcome};
use super::execute::{Body, Job};
use super::intake::{Lists, OverloadPolicy};
use super::keyed::{Entered, Keys};
use super::pulled::Attempts;
use super::record::{Head, Place, Record, TaskMeta};
use super::sleepers::Sleepers;
use super::task_type::TaskTypeInner;
use crate::error::{Error, Rejected};
use crate::pool::record::Parks;
use crate::pool::{Shared, contain};
use crate::queue::Run;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// When a job finds its lane full it tries again after this.
const LANE_WAIT: Duration = Duration::from_millis(1);

/// A job whose type is forgotten.
pub(super) type Parked = Box<dyn Waits>;

pub(super) trait Waits: Send {
    fn task(&self) -> Head;
    /// What it waited for has come.
    fn go(self: Box<Self>);
    /// Its attempt begins here.
    fn run_now(self: Box<Self>);
    /// Its key is its own now. If it does not go the key comes back.
    fn take_turn(self: Box<Self>, hold: Hold) -> Result<(), Hold>;
}

/// What the waiting tasks of a worker pool share. It lasts as long as the task types that refer to it.
pub(crate) struct Lobby {
    pub(super) keys: Keys<Parked>,
    /// Tasks that may be dropped for others.
    pub(super) lists: Lists<Parked>,
    pub(super) attempts: Attempts,
    pub(super) sleepers: Sleepers,
    /// How many tasks may wait for the rate of each name.
    pub(super) most: usize,
    seed: u64,
    draws: AtomicU64,
}

impl Lobby {
    pub(super) fn new(most: usize, droppable: usize, pulled: usize, seed: Option<u64>) -> Self {
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(()));
        let (keys, lists, attempts) =
            (Keys::new(most), Lists::new(droppable), Attempts::new(pulled));
        let sleepers = Sleepers::new();
        Self { keys, lists, attempts, sleepers, most, seed, draws: AtomicU64::new(0) }
    }

    /// A seed of its own for the jitter of one retry.
    pub(super) fn draw(&self) -> u64 {
        let number = self.draws.fetch_add(1, Relaxed);
        self.seed ^ number.wrapping_mul(0xd134_2543_de82_ef95)
    }
}

/// A closure whose task has a key.
pub(super) struct Special<F> {
    work: F,
    /// Dropped after the closure.
    turn: Turn,
}

impl<F> Special<F> {
    pub(super) fn new(work: F, key: Option<u64>) -> Self {
        Self { work, turn: Turn { key, hold: None } }
    }

    pub(super) fn into_work(self) -> F {
        self.work
    }
}

impl<B: Body> Body for Special<B> {
    type Output = B::Output;
    const PULLED: bool = B::PULLED;
    const OVERLAPS: bool = B::OVERLAPS;

    fn call(&mut self, attempt: &Attempt<'_>) -> B::Output {
        self.work.call(attempt)
    }

    fn token(&self) -> u64 {
        self.work.token()
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
pub(super) struct Turn {
    key: Option<u64>,
    hold: Option<Hold>,
}

/// The right to run a task of a key.
pub(super) struct Hold {
    key: u64,
    /// Any task type of the worker pool. None: it has been passed on.
    task_type: Option<&'static TaskTypeInner>,
}

impl Hold {
    fn new(task_type: &'static TaskTypeInner, key: u64) -> Self {
        Self { key, task_type: Some(task_type) }
    }
}

impl Drop for Hold {
    /// Hands the key over. A loop and no recursion: a queue of tasks that were cancelled may be long.
    fn drop(&mut self) {
        let Some(task_type) = self.task_type.take() else { return };
        while let Some(next) = task_type.lobby.keys.leave(self.key) {
            match next.take_turn(Hold::new(task_type, self.key)) {
                Ok(()) => return,
                Err(mut hold) => hold.task_type = None,
            }
        }
    }
}

/// A job that waits for its time.
pub(super) struct Sleeping<B, T: Send + 'static>(pub(super) Job<B, T>);

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
    pub(super) fn come_in(
        self,
        shared: &Arc<Shared>,
        delay: Duration,
        full: OverloadPolicy,
    ) -> Result<(), Rejected<Self>> {
        if !delay.is_zero() {
            return self.sleep(shared, delay).map_err(|(error, job)| match error {
                Error::ShutDown => Rejected::ShutDown(job),
                Error::Forked => Rejected::Forked(job),
                _ => Rejected::Full(job),
            });
        }
        match self.enter() {
            Entered::Goes(job) => {
                let lane = job.head().lane();
                job.post(shared, lane, full)
            }
            Entered::Waits => Ok(()),
            Entered::Full(job) => Err(Rejected::Full(job)),
        }
    }

    /// Gets its key, if it has one to get, or waits for it.
    fn enter(mut self) -> Entered<Self> {
        let turn = self.body().turn().filter(|turn| turn.hold.is_none());
        let Some(key) = turn.and_then(|turn| turn.key) else { return Entered::Goes(self) };
        let task_type = self.head().task_type();
        let mut entered = task_type.lobby.keys.enter(key, self, |job| Box::new(job) as Parked);
        if let Entered::Goes(job) = &mut entered
            && let Some(turn) = job.body().turn()
        {
            turn.hold = Some(Hold::new(task_type, key));
        }
        entered
    }

    /// Goes on to its lane: what it waited for has come. If that cannot be, its task ends.
    pub(super) fn go_on(self) {
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
            Ok(()) => Ok(()),
            Err(Rejected::Full(job)) => job.try_later(),
            Err(Rejected::ShutDown(job) | Rejected::Forked(job)) => Err(job),
        }
    }

    fn try_later(self) -> Result<(), Self> {
        let Some(common) = self.head().task_type().common() else { return Err(self) };
        self.sleep(&common.shared, LANE_WAIT).map_err(|(_, job)| job)
    }

    /// Waits for its time.
    pub(super) fn sleep(self, shared: &Arc<Shared>, delay: Duration) -> Result<(), (Error, Self)> {
        let sleepers = &self.head().task_type().lobby.sleepers;
        let put = sleepers.put(shared, delay, Sleeping(self));
        put.map_err(|(error, Sleeping(job))| (error, job))
    }
}

/// Takes the job of a task that has ended out of where it waits, if it is there still.
pub(super) fn take_out(head: Head, place: Place) {
    let task_type = head.task_type();
    let _panicked = contain(|| match place {
        Place::Elsewhere => {}
        Place::Gate => drop(task_type.gate.as_ref().and_then(|gate| gate.take_out(head))),
    });
}
