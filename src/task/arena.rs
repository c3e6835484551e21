//! What a worker pool leaves behind, and when it is freed.
//!
//! # The problem
//!
//! A task counts no reference to its task type, nor to the guard and the wait lists of its worker pool: that would be two
//! locked instructions for each. They are referred to as if they lived for ever, by threads, timers, jobs and
//! handles. So somebody must know when the last of these is gone.
//!
//! # Who may refer to an arena
//!
//! | who | gone, when |
//! |---|---|
//! | a worker pool, a task type, a builder, a periodic task; whoever submits, takes or completes | the pool is: each has it |
//! | threads of the pool, timers, jobs in lanes | the pool is |
//! | a task's handle | its record is free, or another's |
//! | who looks at all records, or at one that may be another's by now: a *late reader* | it lets go of its [`Pin`] |
//!
//! So the pool owns the arenas of its worker pools and drops them last of all. An arena is not freed by
//! that, but goes into the *garbage*, which is swept whenever one comes in, or a new one is made: those are
//! freed that no record refers to that is let. Handles that outlive their pool cost its arena as much memory
//! as they keep it.
//!
//! # Invariants
//!
//! 1. A record of an arena in the garbage was let before it came there: no new task can be, as that takes a
//!    worker pool or a task type. So a record that was found free, or another's, does not refer to it again.
//! 2. Whoever is an end of a task touches its task type only while the record is let, unless it has the pool.
//! 3. A sweep frees only while nobody has a `Pin`, and a late reader takes its `Pin` before it looks: what it
//!    finds let then stays until it lets go, and what was freed before it does not find.
//!
//! # Orderings
//!
//! The `Pin` is a lock, of which a sweep takes the other side if nobody has it, and never waits: who has one may
//! run code of the user. A record's word is read with Acquire, which pairs with the Release of who frees it.
#![allow(unsafe_code, reason = "frees what is referred to without a count")]

use crate::pool::{Shared, contain};
use crate::sync::Lasting;
use crate::sys::fork::ForkGuard;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// What one worker pool has made.
pub(crate) struct Arena {
    kept: Mutex<Vec<Lasting>>,
    fork: ForkGuard,
    referred_to: Referred,
}

/// Says which addresses records refer to.
pub(super) type Referred = fn() -> Vec<usize>;

impl Arena {
    /// One that lasts as long as the pool, at least.
    pub(super) fn new(shared: &Shared, referred_to: Referred) -> Arc<Self> {
        sweep(referred_to);
        let fork = shared.fork_guard();
        let arena = Arc::new(Self { kept: Mutex::default(), fork, referred_to });
        shared.keep_to_the_end(Arc::clone(&arena) as _);
        arena
    }

    /// Makes `value` part of it.
    pub(super) fn keep<T: Send + Sync + 'static>(&self, value: T) -> &'static T {
        let (kept, value) = Lasting::new(value);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
        value
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.fork.is_child() {
            return;
        }
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        garbage().push(core::mem::take(kept));
        sweep(self.referred_to);
    }
}

static GARBAGE: Mutex<Vec<Vec<Lasting>>> = Mutex::new(Vec::new());
static PINS: RwLock<()> = RwLock::new(());

fn garbage() -> std::sync::MutexGuard<'static, Vec<Vec<Lasting>>> {
    GARBAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While there is one no arena is freed.
#[must_use]
pub(crate) struct Pin(#[expect(dead_code, reason = "held")] RwLockReadGuard<'static, ()>);

/// For a late reader, before it looks.
pub(super) fn pin() -> Pin {
    Pin(PINS.read().unwrap_or_else(PoisonError::into_inner))
}

/// Frees what nobody refers to.
fn sweep(referred: Referred) {
    let all = core::mem::take(&mut *garbage());
    if all.is_empty() {
        return;
    }
    let used = referred_to(&all, referred).unwrap_or_else(|| vec![true; all.len()]);
    for (arena, used) in all.into_iter().zip(used) {
        match used {
            true => garbage().push(arena),
            false => arena.into_iter().for_each(free),
        }
    }
}

/// Which of them a record refers to that is let. None: there are late readers.
fn referred_to(arenas: &[Vec<Lasting>], referred: Referred) -> Option<Vec<bool>> {
    let _alone = PINS.try_write().ok()?;
    let owners = arenas.iter().enumerate();
    let owner: HashMap<usize, usize> =
        owners.flat_map(|(at, kept)| kept.iter().map(move |one| (one.addr(), at))).collect();
    let mut used = vec![false; arenas.len()];
    for task_type in referred() {
        if let Some(&at) = owner.get(&task_type) {
            used[at] = true;
        }
    }
    Some(used)
}

fn free(kept: Lasting) {
    // SAFETY: its pool is gone and no record refers to its arena: nobody else can (see the table above).
    let _panicked = contain(|| unsafe { kept.free() });
}
