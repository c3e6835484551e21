//! Scopes: tasks that may borrow from the stack of who waits for them.
//!
//! # The protocol
//!
//! The tasks of a scope lie in a list of its own. What is posted to the pool is a *helper*, which owns nothing of the
//! program's: it takes one task off the list, if there is one still, and runs it. Who ends the scope does the same until the
//! list is empty, and then waits for the tasks that run. So a scope ends with each of its tasks run once, whatever becomes of
//! its helpers: the pool may be full, stop, or have no thread that is free.
//!
//! # Invariants
//!
//! 1. A task is in the list, or counted in `running` from the moment it is taken until it has been run and dropped. Both
//!    change under one lock, so `list empty and nothing runs` is seen only when nothing of the program's is left.
//! 2. [`Group::end`] returns only when that is so. Until then no borrow that a task has may end: it is called before
//!    [`LaneRef::scope`] returns, also by a panic.
//! 3. A helper that is late finds an empty list.
//! 4. In a forked child the threads that ran tasks are gone, and one may have held the lock: nothing is waited for there,
//!    nothing is locked, and nothing that waits is ever dropped.
//!
//! # Orderings
//!
//! The lock orders all that is kept. `changed` is only what is slept on: it is raised after the change, and read before
//! the look.
#![allow(unsafe_code, reason = "the lifetime of what is borrowed is kept by the wait at the end")]

use super::submit::LaneRef;
use crate::contain::discard;
use crate::pool::Pool;
use crate::pool::context::blocking;
use crate::pool::host::wait_for;
use crate::pool::shared::Shared;
use crate::pool::this_thread::{Outcome, report};
use crate::queue::Lane;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::{AcqRel, Acquire};
use crate::sys::futex::Futex;
use core::any::Any;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, MutexGuard, PoisonError};

/// Where every other thread waits, who ends a scope looks again after this.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    running: usize,
    /// Helpers that are on their way.
    helpers: usize,
    /// Somebody ends the scope, and may sleep.
    ending: bool,
    /// What the first task that failed has panicked with.
    panic: Option<Box<dyn Any + Send>>,
}

/// The tasks of a scope.
struct Group {
    state: Mutex<State>,
    changed: Futex,
}

impl Group {
    fn new() -> Self {
        Self { state: Mutex::new(State::default()), changed: Futex::new(0) }
    }

    #[cfg(not(loom))]
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of the program runs under it: what is there holds.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(loom)]
    fn lock(&self) -> crate::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn announce(&self) {
        self.changed.fetch_add(1, AcqRel);
        self.changed.wake(i32::MAX);
    }

    fn add(&self, job: Job) {
        let ending = {
            let mut state = self.lock();
            state.jobs.push_back(job);
            state.ending
        };
        if ending {
            self.announce();
        }
    }

    /// Runs the oldest task that has not begun. None: there is none. False: it has failed.
    fn run_one(&self) -> Option<bool> {
        let job = {
            let mut state = self.lock();
            let job = state.jobs.pop_front()?;
            state.running += 1;
            job
        };
        // What it owns is dropped by the call.
        let failed = catch_unwind(AssertUnwindSafe(job)).err();
        let is_well = failed.is_none();
        let mut unwanted = None;
        let ending = {
            let mut state = self.lock();
            match (failed, &mut state.panic) {
                (Some(first), kept @ None) => *kept = Some(first),
                (another, _) => unwanted = another,
            }
            state.running -= 1;
            state.ending
        };
        if ending {
            self.announce();
        }
        if let Some(panic) = unwanted {
            discard(panic);
        }
        Some(is_well)
    }

    /// Runs what has not begun and waits for what runs. `wait` sleeps until a change after the epoch that it is given.
    fn end(&self, mut wait: impl FnMut(u32)) {
        self.lock().ending = true;
        loop {
            while self.run_one().is_some() {}
            let epoch = self.changed.load(Acquire);
            {
                let state = self.lock();
                if state.jobs.is_empty() && state.running == 0 {
                    return;
                }
                if !state.jobs.is_empty() {
                    continue;
                }
            }
            wait(epoch);
        }
    }
}

/// A group of tasks that may borrow what outlives the call of [`Pool::scope`], which waits for them.
///
/// ```
/// # fn main() -> paceline::Result<()> {
/// let pool = paceline::Pool::new()?;
/// let mut numbers = [1, 2, 3];
/// pool.scope(|scope| {
///     for number in &mut numbers {
///         scope.post(|| *number *= 10);
///     }
/// });
/// assert_eq!(numbers, [10, 20, 30]);
/// # Ok(())
/// # }
/// ```
pub struct Scope<'scope, 'env: 'scope> {
    shared: Arc<Shared>,
    lane: Lane,
    group: Arc<Group>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// Runs `work` once, on some thread of the pool or on that which ends the scope, before the scope ends. Tasks may post
    /// more. Any thread; it never waits and never fails: what the pool has no room for, or does not take any more, is run
    /// by who ends the scope. In a forked child it runs here.
    pub fn post<F>(&'scope self, work: F)
    where
        F: FnOnce() + Send + 'scope,
    {
        if self.shared.is_forked() {
            return work();
        }
        let job: Box<dyn FnOnce() + Send + 'scope> = Box::new(work);
        // SAFETY: only the lifetime differs. The scope does not end before the task was run and dropped (invariant 2).
        let job = unsafe { core::mem::transmute::<Box<dyn FnOnce() + Send + 'scope>, Job>(job) };
        self.group.add(job);
        call_helper(&self.shared, self.lane, &self.group);
    }
}

/// Posts a helper if there are more tasks than helpers, and threads, and there is room. Each posts the next, so more than
/// there are threads would only fill the lane.
fn call_helper(shared: &Arc<Shared>, lane: Lane, group: &Arc<Group>) {
    {
        let mut state = group.lock();
        let most = shared.ready.members.threads.max(1);
        if state.helpers >= state.jobs.len().min(most) {
            return;
        }
        state.helpers += 1;
    }
    let (weak, theirs) = (Arc::downgrade(shared), Arc::clone(group));
    let helper = move || {
        let ran = theirs.run_one();
        if ran == Some(false) {
            report(Outcome::Failed);
        }
        theirs.lock().helpers -= 1;
        if let (Some(_), Some(shared)) = (ran, weak.upgrade()) {
            call_helper(&shared, lane, &theirs);
        }
    };
    if shared.try_post(lane, helper).is_err() {
        group.lock().helpers -= 1;
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("lane", &self.lane).finish_non_exhaustive()
    }
}

impl Pool {
    /// Calls `tasks` with a scope for tasks that may borrow, and waits until they have run. This thread runs those that no
    /// other has begun, so it also works in a pool without threads, inside a handler or a task, and while the pool ends.
    ///
    /// # Panics
    /// If `tasks` panics, or else with what the first task that failed has panicked with; both when all have run.
    pub fn scope<'env, R>(
        &self,
        tasks: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        self.lane(Lane::Normal).scope(tasks)
    }
}

impl LaneRef<'_> {
    /// As [`Pool::scope`], for tasks of this lane.
    ///
    /// # Panics
    /// As there.
    pub fn scope<'env, R>(
        &self,
        tasks: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        let (pool, lane) = self.parts();
        let scope = Scope {
            shared: Arc::clone(pool.shared()),
            lane,
            group: Arc::new(Group::new()),
            scope: PhantomData,
            env: PhantomData,
        };
        let result = catch_unwind(AssertUnwindSafe(|| tasks(&scope)));
        let Scope { shared, group, .. } = &scope;
        if shared.is_forked() {
            // Invariant 4.
            core::mem::forget(Arc::clone(group));
        } else {
            group.end(|epoch| {
                let is_own = |own: &Shared| core::ptr::eq(own, Arc::as_ptr(shared));
                if blocking(is_own, || group.changed.wait(epoch, None)).is_err() {
                    group.changed.wait(epoch, Some(LOOK_AGAIN));
                }
            });
            // Where nobody else may come, what is left of the helpers goes.
            let _ran = wait_for(shared, Some(LOOK_AGAIN), |_| Ok(group.lock().helpers == 0));
        }
        let failed = (!shared.is_forked()).then(|| group.lock().panic.take()).flatten();
        match (result, failed) {
            (Ok(result), None) => result,
            (Ok(_), Some(panic)) => resume_unwind(panic),
            (Err(panic), failed) => {
                failed.into_iter().for_each(discard);
                resume_unwind(panic)
            }
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::sync::atomic::AtomicUsize;
    use loom::thread;

    /// Goal: a scope ends when each of its tasks has run once, and nothing of them is left, whoever has run them. Method: a
    /// helper beside who ends the scope, for two tasks, of which one posts the other.
    #[test]
    fn a_scope_ends_with_its_tasks() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let group = Arc::new(Group::new());
            let ran = Arc::new(AtomicUsize::new(0));
            let (more, first, second) = (Arc::clone(&group), Arc::clone(&ran), Arc::clone(&ran));
            group.add(Box::new(move || {
                first.fetch_add(1, AcqRel);
                more.add(Box::new(move || drop(second.fetch_add(1, AcqRel))));
            }));
            let helper = {
                let group = Arc::clone(&group);
                thread::spawn(move || group.run_one())
            };
            group.end(|epoch| _ = group.changed.wait(epoch, None));
            assert_eq!(ran.load(Acquire), 2);
            assert_eq!(Arc::strong_count(&ran), 1, "nothing of a task is left");
            helper.join().unwrap();
        });
    }
}
