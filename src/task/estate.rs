//! What a worker pool leaves behind, and when it is freed.
//!
//! # The problem
//!
//! A task counts no reference to its task type, nor to the guard and the lobby of its worker pool: that would be two
//! locked instructions for each. They are referred to as if they lived for ever, by threads, timers, jobs and
//! handles. So somebody must know when the last of these is gone.
//!
//! # Who may refer to an estate
//!
//! | who | gone, when |
//! |---|---|
//! | a worker pool, a task type, a builder, a periodic task; whoever submits, pulls or completes | the pool is: each has it |
//! | threads of the pool, timers, jobs in lanes | the pool is |
//! | a task's handle | its record is free, or another's |
//! | who looks at all records, or at one that may be another's by now: a *late reader* | it lets go of its [`Pin`] |
//!
//! So the pool owns the estates of its worker pools and drops them last of all. An estate is not freed by
//! that, but goes into the *limbo*, which is swept whenever one comes in, or a new one is made: those are
//! freed that no record refers to that is let. Handles that outlive their pool cost its estate as much memory
//! as they keep it.
//!
//! # Invariants
//!
//! 1. A record of an estate in the limbo was let before it came there: no new task can be, as that takes a
//!    worker pool or a task_type. So a record that was found free, or another's, does not refer to it again.
//! 2. Whoever is an end of a task touches its task type only while the record is let, unless it has the pool.
//! 3. A sweep frees only while nobody has a `Pin`, and a late reader takes its `Pin` before it looks: what it
//!    finds let then stays until it lets go, and what was freed before it does not find.
//!
//! # Orderings
//!
//! The `Pin` is a lock, of which a sweep takes the other side if nobody has it, and never waits: who has one may
//! run code of the user. A record's word is read with Acquire, which pairs with the Release of who frees it.
#![allow(unsafe_code, reason = "frees what is referred to without a count")]

use super::record;
use crate::pool::{Shared, contain};
use crate::sync::Lasting;
use crate::sys::fork::ForkGuard;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// What one worker pool has made.
pub(crate) struct Estate {
    kept: Mutex<Vec<Lasting>>,
    fork: ForkGuard,
}

impl Estate {
    /// One that lasts as long as the pool, at least.
    pub(super) fn new(shared: &Shared) -> Arc<Self> {
        sweep();
        let estate = Arc::new(Self { kept: Mutex::default(), fork: shared.fork_guard() });
        shared.keep_to_the_end(Arc::clone(&estate) as _);
        estate
    }

    /// Makes `value` part of it.
    pub(super) fn keep<T: Send + Sync + 'static>(&self, value: T) -> &'static T {
        let (kept, value) = Lasting::new(value);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
        value
    }
}

impl Drop for Estate {
    fn drop(&mut self) {
        if self.fork.is_child() {
            return;
        }
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        limbo().push(core::mem::take(kept));
        sweep();
    }
}

static LIMBO: Mutex<Vec<Vec<Lasting>>> = Mutex::new(Vec::new());
static PINS: RwLock<()> = RwLock::new(());

fn limbo() -> std::sync::MutexGuard<'static, Vec<Vec<Lasting>>> {
    LIMBO.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While there is one no estate is freed.
#[must_use]
pub(crate) struct Pin(#[expect(dead_code, reason = "held")] RwLockReadGuard<'static, ()>);

/// For a late reader, before it looks.
pub(super) fn pin() -> Pin {
    Pin(PINS.read().unwrap_or_else(PoisonError::into_inner))
}

/// Frees what nobody refers to.
fn sweep() {
    let all = core::mem::take(&mut *limbo());
    if all.is_empty() {
        return;
    }
    let used = referred_to(&all).unwrap_or_else(|| vec![true; all.len()]);
    for (estate, used) in all.into_iter().zip(used) {
        match used {
            true => limbo().push(estate),
            false => estate.into_iter().for_each(free),
        }
    }
}

/// Which of them a record refers to that is let. None: there are late readers.
fn referred_to(estates: &[Vec<Lasting>]) -> Option<Vec<bool>> {
    let _alone = PINS.try_write().ok()?;
    let owners = estates.iter().enumerate();
    let owner: HashMap<usize, usize> =
        owners.flat_map(|(at, kept)| kept.iter().map(move |one| (one.addr(), at))).collect();
    let mut used = vec![false; estates.len()];
    for task_type in record::task_types_referred_to() {
        if let Some(&at) = owner.get(&task_type) {
            used[at] = true;
        }
    }
    Some(used)
}

fn free(kept: Lasting) {
    // SAFETY: its pool is gone and no record refers to its estate: nobody else can (see the table above).
    let _panicked = contain(|| unsafe { kept.free() });
}
