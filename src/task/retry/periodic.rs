//! A function that runs again and again: each run is a task of its own.
//!
//! # The states
//!
//! | state | the closure is with | what a tick does |
//! |---|---|---|
//! | IDLE | this | starts a run |
//! | BUSY | a run that waits, runs or is to be retried | counts as missed |
//! | OWING | the same | counts as missed |
//!
//! ```text
//!             tick: submit             tick, with MissedTick::Coalesce
//!   IDLE ──────────────────► BUSY ──────────────────────────────► OWING
//!     ▲                       │ ▲                                   │
//!     └── the run's closure ──┘ └── the run's closure is dropped: ──┘
//!         is dropped                another run, in the same lane
//! ```
//!
//! A run is over when its closure is dropped: after its last attempt has returned, or when it was
//! cancelled. So runs never overlap, whatever their time-outs say.
//!
//! # Orderings
//!
//! The closure goes back under its lock before the state leaves BUSY (Release), and is taken after a
//! change into BUSY (Acquire).

use crate::error::{Error, Result};
use crate::pool::{Flow, Handle, Shared, contain};
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use crate::task::admission::submit::{Pattern, TaskBuilder};
use crate::task::attempt::Attempt;
use crate::task::attempt::fault::Outcome;
use crate::task::common::OPEN;
use crate::task::result::handle::Known;
use crate::time::MAX_DELAY;
use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

const IDLE: u32 = 0;
const BUSY: u32 = 1;
const OWING: u32 = 2;

/// What becomes of the ticks that come while a run has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissedTick {
    /// Nothing: the next run is at the next tick.
    Skip,
    /// However many there were, one run makes up for them, as soon as the one before has ended.
    Coalesce,
}

/// A periodic task. Dropping it ends it: no other run begins, one that waits (for its lane, or for another attempt) is
/// cancelled, and one that runs is asked to stop by its [`Attempt::is_cancelled`]. On a thread outside the pool the drop
/// returns when no run is left and the function has been dropped; on a thread of the pool it does not wait.
#[must_use = "dropping it ends the periodic task; `detach` lets it go on"]
pub struct Periodic {
    handle: Option<Handle<()>>,
    beat: Arc<Beat>,
    shared: Arc<Shared>,
}

/// What does not depend on the closure's type.
struct Beat {
    state: AtomicU32,
    ended: AtomicBool,
    /// The run that was submitted last.
    run: Mutex<Option<Known>>,
    /// The closure has been dropped.
    dropped: AtomicBool,
    runs: AtomicU64,
    missed: AtomicU64,
}

impl Periodic {
    /// How many runs were submitted.
    pub fn runs(&self) -> u64 {
        self.beat.runs.load(Relaxed)
    }

    /// How many ticks started no run of their own: the one before had not ended, or the lane was full.
    pub fn missed(&self) -> u64 {
        self.beat.missed.load(Relaxed)
    }

    /// Lets it go on until the worker pool is shut down.
    pub fn detach(mut self) {
        if let Some(handle) = self.handle.take() {
            handle.detach();
        }
    }
}

impl Drop for Periodic {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        if self.shared.is_forked() {
            // The handle does nothing there, as it should.
            return drop(handle);
        }
        let beat = &self.beat;
        // Release: pairs with the Acquire in `is_over`.
        beat.ended.store(true, Release);
        // No tick runs any more, or this is on a thread of the pool.
        drop(handle);
        let run = beat.run.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _cancelled = run.is_some_and(Known::cancel);
        // Acquire: pairs with the Release in the drop of `Source`.
        let ended = || beat.dropped.load(Acquire);
        // The tick's is closed already.
        let none = || None;
        self.shared
            .wait_outside(none, |time| self.shared.ready.handles.changed.wait_unless(time, ended));
    }
}

impl fmt::Debug for Periodic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Periodic")
            .field("runs", &self.runs())
            .field("missed", &self.missed())
            .finish_non_exhaustive()
    }
}

/// A periodic task with its closure, while no run has it.
struct Source<F> {
    beat: Arc<Beat>,
    pattern: Pattern<'static>,
    missed: MissedTick,
    work: Mutex<Option<F>>,
}

impl<F> Drop for Source<F> {
    fn drop(&mut self) {
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let _panicked = contain(|| drop(work));
        // Release: pairs with the Acquire in the drop of `Periodic`.
        self.beat.dropped.store(true, Release);
        self.pattern.common.shared.ready.handles.changed.announce();
    }
}

/// A closure on its run. It goes back when the run is over.
struct Run<F, R>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome + 'static,
{
    source: Arc<Source<F>>,
    work: Option<F>,
}

impl<F, R> Run<F, R>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome + 'static,
{
    fn call(&mut self, attempt: &Attempt<'_>) -> R {
        let work = self.work.as_mut().expect("it is taken by drop only");
        work(attempt)
    }
}

impl<F, R> Drop for Run<F, R>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome + 'static,
{
    fn drop(&mut self) {
        let source = &self.source;
        *source.work.lock().unwrap_or_else(PoisonError::into_inner) = self.work.take();
        let busy = source.beat.state.compare_exchange(BUSY, IDLE, AcqRel, Acquire);
        if busy.is_err() {
            source.pay();
        }
    }
}

impl<F, R> Source<F>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome + 'static,
{
    fn tick(self: &Arc<Self>) -> Flow {
        if self.is_over() {
            return Flow::Done;
        }
        if self.beat.state.compare_exchange(IDLE, BUSY, AcqRel, Relaxed).is_ok() {
            self.start();
            return Flow::Wait;
        }
        self.beat.missed.fetch_add(1, Relaxed);
        if self.missed == MissedTick::Coalesce {
            let owes = self.beat.state.compare_exchange(BUSY, OWING, AcqRel, Relaxed);
            // The run has just ended.
            if owes == Err(IDLE)
                && self.beat.state.compare_exchange(IDLE, BUSY, AcqRel, Relaxed).is_ok()
            {
                self.start();
            }
        }
        Flow::Wait
    }

    /// Submits a run. The caller has made the state BUSY.
    fn start(self: &Arc<Self>) {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut run = Run { source: Arc::clone(self), work };
        self.beat.runs.fetch_add(1, Relaxed);
        let submitted = self.pattern.submit(move |attempt: &Attempt<'_>| run.call(attempt));
        match submitted {
            Ok(task) => {
                let mut run = self.beat.run.lock().unwrap_or_else(PoisonError::into_inner);
                *run = task.known();
                drop(run);
                // The end may have come before it was known.
                if self.beat.ended.load(Acquire) {
                    let _cancelled = task.cancel();
                }
            }
            Err(refused) => {
                self.beat.runs.fetch_sub(1, Relaxed);
                self.beat.missed.fetch_add(1, Relaxed);
                // This puts the closure back.
                drop(refused);
            }
        }
    }

    /// A run has ended that owes another. That is started from a lane, since this may be anywhere.
    fn pay(self: &Arc<Self>) {
        self.beat.state.store(BUSY, Relaxed);
        let source = Arc::clone(self);
        let pay = move || match source.is_over() {
            true => source.rest(),
            false => source.start(),
        };
        let posted = self.pattern.common.shared.try_post(self.pattern.lane, pay);
        if posted.is_err() {
            self.rest();
        }
    }

    /// BUSY → IDLE without a run.
    fn rest(&self) {
        self.beat.state.store(IDLE, Relaxed);
    }

    fn is_over(&self) -> bool {
        // Acquire: pairs with the Release in the drop of `Periodic`.
        self.beat.ended.load(Acquire) || self.pattern.task_type.phase() != OPEN
    }
}

impl<F, R> TaskBuilder<'_, F>
where
    F: FnMut(&Attempt<'_>) -> R + Send + 'static,
    R: Outcome + 'static,
{
    /// Runs it every `period` (1 µs to 100 years), first after one period (and the delay, if there is
    /// one), until the [`Periodic`] is dropped or the worker pool is shut down. Each run is a task of its
    /// own, with these settings: its own attempts, limits and report to observers. Runs never overlap.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a period or a delay out of range, [`Error::Full`] when all `max_handles` of
    /// the pool are in use, [`Error::ShutDown`], [`Error::Forked`].
    pub fn every(self, period: Duration, missed: MissedTick) -> Result<Periodic> {
        let (pattern, work) = self.into_pattern();
        let mut pattern = pattern.into_owned();
        // Of the first run only.
        let delay = core::mem::take(&mut pattern.delay);
        if delay > MAX_DELAY {
            let allowed = "up to 100 years";
            return Err(Error::invalid("delay", format!("{delay:?}"), allowed));
        }
        if pattern.task_type.phase() != OPEN {
            return Err(Error::ShutDown);
        }
        let shared = Arc::clone(&pattern.common.shared);
        let beat = Arc::new(Beat {
            state: AtomicU32::new(IDLE),
            ended: AtomicBool::new(false),
            run: Mutex::new(None),
            dropped: AtomicBool::new(false),
            runs: AtomicU64::new(0),
            missed: AtomicU64::new(0),
        });
        let work = Mutex::new(Some(work));
        let source = Arc::new(Source { beat: Arc::clone(&beat), pattern, missed, work });
        let handle = Handle::every(&shared, delay, period, move || source.tick())?;
        Ok(Periodic { handle: Some(handle), beat, shared })
    }
}
