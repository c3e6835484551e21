//! Strands: serial execution without locks.
//!
//! A strand is a queue of tasks and one slot. Whoever posts makes the slot runnable, if it is not
//! already; the slot's run takes tasks in order, for a share of its thread's turn (`turn.rs`), and goes to the back of
//! the ready work when there are more. The slot word's rule that a handler runs on one thread at a time is what
//! makes the strand serial; no thread ever waits for another.
//!
//! No post is missed: it publishes its task and *then* changes the slot word, while the run claims the
//! word and *then* looks at the queue. Both are read-modify-writes of the one word, so one comes first.
//! If it is the post's, the claim acquires the task from it; else the post finds the word claimed, and
//! leaves new readiness in it. No barrier is needed.

use super::submit::submit_by;
use super::task::Task;
use crate::error::{Error, NoRoom, Rejected, Result};
use crate::pool::Pool;
use crate::pool::deadline::Deadline;
use crate::pool::handler::Flow;
use crate::pool::ring::Serves;
use crate::pool::shared::Shared;
use crate::pool::slots::{Activity, Key};
use crate::pool::this_thread;
use crate::pool::turn::TurnClock;
use crate::queue::{CLOSED_ALL, Erased, MpmcRing, Origin, PopError, PushError, Run};
use crate::source::Ready;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::store_load_barrier;
use crate::trace::{self, Name};
use core::any::Any;
use core::fmt;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Runs tasks one at a time, in the order in which they were posted, on whatever thread of the pool
/// is free. Clones are the same strand. It ends by itself when the last clone is dropped and its
/// tasks have run.
///
/// ```
/// use paceline::Pool;
/// use std::sync::{Arc, Mutex};
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let strand = pool.strand()?;
/// let log = Arc::new(Mutex::new(Vec::new()));
/// for n in 0..100 {
///     let log = Arc::clone(&log);
///     strand.post(move || log.lock().unwrap().push(n))?; // one at a time, in this order
/// }
/// strand.submit(|| ())?.wait()?;
/// assert!(log.lock().unwrap().is_sorted());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Strand {
    owner: Arc<Owner>,
}

struct Owner {
    shared: Arc<Shared>,
    key: Key,
    tasks: Arc<MpmcRing<Erased>>,
    /// 1 as long as the slot serves it.
    serving: Arc<AtomicU64>,
}

/// The strand's side in its slot.
struct Serve {
    shared: std::sync::Weak<Shared>,
    tasks: Arc<MpmcRing<Erased>>,
    /// Dropped after the tasks.
    _serves: Serves,
}

impl Activity for Serve {
    fn run(&mut self, _: Ready) -> Flow {
        let Some(shared) = self.shared.upgrade() else { return Flow::Done };
        let flow = self.run_some(&shared);
        shared.rooms.made_room_in_strand();
        flow
    }

    fn name(&self) -> Name {
        Name::new("strand")
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

impl Serve {
    fn run_some(&self, shared: &Shared) -> Flow {
        let mut turn = TurnClock::new();
        while !turn.share_is_over() {
            if shared.must_stop() {
                // What has not begun is cancelled, by this value's end.
                return Flow::Done;
            }
            match self.tasks.try_pop() {
                Ok(task) => {
                    run_one(shared, task);
                    turn.is_over();
                }
                Err(PopError::Empty) if self.tasks.is_closed(Origin::Inside) => {
                    // The last task may have come after the first look, and the close after it. From
                    // the close on nothing comes.
                    if self.tasks.is_empty() {
                        return Flow::Done;
                    }
                }
                // A post that is between its two steps activates the slot again when it is through.
                Err(PopError::Empty | PopError::Busy) => return Flow::Wait,
            }
        }
        Flow::Again
    }
}

impl Drop for Serve {
    /// What was accepted and will not run is cancelled.
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        self.tasks.close(CLOSED_ALL);
        loop {
            match self.tasks.try_pop() {
                Ok(task) => {
                    shared.counters.cancel(task);
                    shared.counters.in_strands.fetch_sub(1, AcqRel);
                }
                Err(PopError::Busy) => std::thread::yield_now(),
                Err(PopError::Empty) => return,
            }
        }
    }
}

fn run_one(shared: &Shared, task: Erased) {
    let closure = task.closure_type();
    trace::runs(trace::of_function(closure.address(), || closure.name()));
    let ran = catch_unwind(AssertUnwindSafe(|| task.run()));
    let panicked = ran.map_err(|panic| shared.log_panic("task", panic)).is_err();
    shared.end_if_forked();
    let outcome = this_thread::take_outcome();
    match shared.member_here() {
        Some(me) => shared.ready.members[me].tally.count_task(panicked, outcome),
        None => shared.counters.count_outside(panicked, outcome),
    }
    shared.counters.in_strands.fetch_sub(1, AcqRel);
}

impl Strand {
    pub(crate) fn open(shared: &Arc<Shared>) -> Result<Self> {
        shared.check_open()?;
        let tasks = Arc::new(MpmcRing::new("strand_capacity", shared.strand_capacity)?);
        let serving = Arc::new(AtomicU64::new(0));
        let _serves = Serves::new(&serving, shared);
        let serve = Serve { shared: Arc::downgrade(shared), tasks: Arc::clone(&tasks), _serves };
        let key = shared.ready.handles.let_slot(Box::new(serve))?;
        if shared.is_too_late() {
            drop(shared.ready.handles.close(key, false));
            return Err(Error::ShutDown);
        }
        Ok(Self { owner: Arc::new(Owner { shared: Arc::clone(shared), key, tasks, serving }) })
    }

    /// Appends a task. From outside the pool's threads it waits for room; from inside it never waits.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back.
    pub fn post<F>(&self, work: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.append(work)
    }

    fn append<F: Run>(&self, work: F) -> Result<(), Rejected<F>> {
        let shared = self.shared();
        match self.push(work) {
            Err(Rejected::Full(work, _)) if !shared.is_inside() => {
                shared.rooms.strands.retry_until(Deadline::NEVER, work, |work| self.push(work))
            }
            other => other,
        }
        .map_err(|rejected| shared.counters.count_rejected(rejected))
    }

    fn try_append<F: Run>(&self, work: F) -> Result<(), Rejected<F>> {
        self.push(work).map_err(|rejected| self.shared().counters.count_rejected(rejected))
    }

    /// Appends a task if there is room.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back.
    pub fn try_post<F>(&self, work: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.try_append(work)
    }

    fn push<F: Run>(&self, work: F) -> Result<(), Rejected<F>> {
        let shared = self.shared();
        if shared.is_forked() {
            return Err(Rejected::Forked(work));
        }
        // Counted before it can run, so that the count never falls below zero.
        shared.counters.in_strands.fetch_add(1, AcqRel);
        // Against *drain (or stop), then look at the count*: a drain that this does not see waits.
        store_load_barrier();
        let pushed = match shared.end.is_open_to(shared.is_inside()) {
            true => self.push_counted(work),
            false => Err(Rejected::ShutDown(work)),
        };
        if pushed.is_err() {
            shared.counters.in_strands.fetch_sub(1, AcqRel);
            // A drain may have seen the count.
            shared.recheck_drain();
        }
        pushed
    }

    #[cold]
    fn no_room(&self) -> NoRoom {
        let helps =
            "a larger strand_capacity, or to post outside of handlers and tasks, where that waits";
        NoRoom::new("the strand", self.owner.tasks.capacity(), helps)
    }

    fn push_counted<F: Run>(&self, work: F) -> Result<(), Rejected<F>> {
        let pushed = self.owner.tasks.try_push(Erased::new(work), Origin::Inside);
        let Err(refused) = pushed else {
            self.shared().counters.strands_accepted.fetch_add(1, Relaxed);
            self.owner.activate();
            return Ok(());
        };
        #[allow(unsafe_code, reason = "the closure comes back")]
        // SAFETY: what comes back is what `Erased::new` made of an `F` above.
        let back = refused.map(|task| unsafe { task.into_inner::<F>() });
        Err(match back {
            PushError::Full(work) => Rejected::Full(work, self.no_room()),
            PushError::Closed(work) => Rejected::ShutDown(work),
        })
    }

    /// As [`post`](Self::post), with a handle to wait for the value.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back.
    pub fn submit<F, T>(&self, work: F) -> Result<Task<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        submit_by(self.shared(), work, |work| self.append(work))
    }

    /// As [`try_post`](Self::try_post), with a handle to wait for the value.
    ///
    /// # Errors
    /// [`Rejected`] gives the closure back.
    pub fn try_submit<F, T>(&self, work: F) -> Result<Task<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        submit_by(self.shared(), work, |work| self.try_append(work))
    }

    /// Appends several tasks in order; says how many. It waits for room as [`post`](Self::post).
    ///
    /// # Errors
    /// [`Rejected`] gives the first closure that was refused back; those before it were accepted.
    pub fn post_batch<F>(&self, work: impl IntoIterator<Item = F>) -> Result<usize, Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let mut accepted = 0;
        for work in work {
            self.post(work)?;
            accepted += 1;
        }
        Ok(accepted)
    }

    /// Takes no more tasks, and waits for up to `time` until those that were accepted have run: whether they have. On a
    /// thread of the pool it is only a request, and returns at once. In a pool without threads of its own, this thread runs
    /// what no host has begun.
    pub fn drain(&self, time: Duration) -> bool {
        let (owner, shared) = (&self.owner, self.shared());
        if shared.is_forked() {
            return false;
        }
        owner.close();
        let deadline = Deadline::after(Some(time));
        // Acquire: pairs with the Release in the drop of `Serves`.
        let is_drained = || owner.serving.load(Acquire) == 0;
        let ended = |step: Duration| {
            let step = deadline.left().map_or(step, |left| left.min(step));
            shared.ready.handles.changed.wait_unless(step, is_drained) || deadline.is_over()
        };
        shared.wait_outside(|| [owner.key], ended);
        is_drained()
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }
}

impl Owner {
    fn close(&self) {
        self.tasks.close(CLOSED_ALL);
        self.activate();
    }

    /// Makes the strand runnable: its queue has changed.
    fn activate(&self) {
        if self.shared.ready.handles.slots.slot(self.key.index).activate(self.key.generation) {
            self.shared.push_activation(self.key.index);
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if !self.shared.is_forked() {
            self.close();
        }
    }
}

impl fmt::Debug for Strand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strand").field("queued", &self.owner.tasks.len()).finish_non_exhaustive()
    }
}

impl Pool {
    /// A new strand.
    ///
    /// # Errors
    /// [`Error::Full`] when all `max_handles` are in use, [`Error::ShutDown`], [`Error::Forked`].
    pub fn strand(&self) -> Result<Strand> {
        Strand::open(self.shared())
    }
}
