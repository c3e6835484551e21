//! How many of the pool's threads work: the first so many. The others are *set aside*: they sleep
//! outside of everything, until they are wanted again.
//!
//! # The problem
//!
//! The pool is fixed, and yet a pool for the busiest hour has threads that only get in each other's way
//! in all others. A follower that sleeps costs nothing, but it is called as soon as there is work for
//! two. So a thread that is not wanted must be where nobody calls it; and whatever only it would come
//! across must not stay with it.
//!
//! ```text
//!            set_active: rank ≥ active            set_active, a shutdown, a wait that lends its place
//!   any role ─────────────────────────► parked ─────────────────────────────────────────► leader
//!              puts everything down first
//! ```
//!
//! # Rules
//!
//! 1. A thread looks whether it is set aside between two steps of its loop, and after it has announced
//!    that it sleeps or polls. Whoever changes the number of active threads wakes all that it may
//!    concern *afterwards*. So none of them sleeps on as if nothing had happened.
//! 2. Before it parks it puts down what only it would come across, as a member that leaves: the
//!    searching mark, its hand, its chain, the watch, leadership. Somebody else is called to what is
//!    left.
//! 3. A parked thread is announced nowhere. So no call is on its way to it, and no reason of the wake
//!    word can be lost on it.
//! 4. The first thread is never set aside. With several handle sets there is always one active thread
//!    more than there are sets, so that one is free to watch.
//! 5. A thread that waits inside for another's task lends its place: as many more are active as wait.
//!    So a wait that was possible before is possible still.
//! 6. When the pool closes, everybody is called back.
//!
//! Invariants 2 and 3 of the pool speak of threads that are not set aside; that is all that changes.
//!
//! # The overseer
//!
//! Whoever adapts the number to the load must be able to look while every active thread is inside a long
//! task. So the first of those that are set aside asks it, and sleeps for as long as it says: for good,
//! unless there is something to look at.
//!
//! # Orderings
//!
//! *Change the number, barrier, wake and ring* against *announce, barrier, look at the number*. A
//! thread that parks takes the wake with Acquire, and so sees the number that it was woken for.

use super::crew::ThreadRole;
use super::worker::Worker;
use super::{Pool, Shared};
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::{Wakes, store_load_barrier};
use core::time::Duration;
use std::sync::{Arc, PoisonError};

impl Pool {
    /// Lets only the first `threads` of the ordinary threads work; the others finish what they are at,
    /// and park until more are wanted. Parked threads cost nothing. At the start all are active; a
    /// shutdown calls them all back to help.
    ///
    /// 1 to the number of ordinary threads; with more than one handle set, at least one more than
    /// there are sets. Reserved threads and host threads always work. While threads of the pool wait
    /// inside for others' tasks, as many more are active.
    ///
    /// Any thread may call this, and so may handlers.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the range; [`Error::ShutDown`], [`Error::Forked`].
    pub fn set_active(&self, threads: usize) -> Result<()> {
        let shared = self.shared();
        shared.check_open()?;
        let (least, most) = (shared.least_active(), shared.crew.ordinary);
        if !(least..=most).contains(&threads) {
            return Err(Error::invalid("active", threads, format!("{least} to {most}")));
        }
        shared.set_active(threads);
        Ok(())
    }
}

/// Whoever decides how many threads are active. One of those that are set aside asks it to look, because
/// every active one may be inside a long task.
pub(crate) trait Overseer: Send + Sync {
    /// Looks, and may change the number. After which time to look again; None: when it is called
    /// (`wake_overseer`).
    fn look(&self, shared: &Shared) -> Option<Duration>;
}

impl Shared {
    /// Has `overseer` decide, as long as it lives. False: another one does.
    pub(crate) fn let_oversee(&self, overseer: &Arc<dyn Overseer>) -> bool {
        let mut place = self.overseer.lock().unwrap_or_else(PoisonError::into_inner);
        let free = place.as_ref().is_none_or(|other| other.strong_count() == 0);
        if free {
            *place = Some(Arc::downgrade(overseer));
        }
        free
    }

    /// Has the first thread that is set aside, if one is, ask the overseer.
    pub(crate) fn wake_overseer(&self) {
        let first = self.places() as usize;
        self.call_back(first.min(self.crew.ordinary)..(first + 1).min(self.crew.ordinary));
    }

    /// What the thread with this rank, which is set aside, sleeps for.
    fn oversee(&self, rank: u32) -> Option<Duration> {
        if rank != self.places() {
            return None;
        }
        let place = self.overseer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        place?.upgrade()?.look(self)
    }

    /// How many ordinary threads there are.
    pub(crate) fn ordinary_threads(&self) -> usize {
        self.crew.ordinary
    }

    /// Tasks that nobody has begun: in the lanes, and claimed with others.
    pub(crate) fn waiting_tasks(&self) -> usize {
        let held: usize = self.crew.members.iter().map(|member| member.hand.len()).sum();
        self.queued().0 + held
    }

    /// How many ordinary threads there must be at work.
    pub(crate) fn least_active(&self) -> usize {
        if self.sets.len() == 1 { 1 } else { self.sets.len() + 1 }
    }

    /// How many ordinary threads are not set aside, whoever may wait.
    pub(crate) fn active(&self) -> usize {
        (self.active.load(Relaxed) as usize).min(self.crew.ordinary)
    }

    pub(crate) fn set_active(&self, threads: usize) {
        let before = self.active.swap(threads as u32, AcqRel) as usize;
        if before != threads {
            self.tell_active(before, threads);
        }
        // Against *announce sleep, then look at the number*.
        store_load_barrier();
        for set in &self.sets {
            set.source.ring();
        }
        self.call_back(before.min(threads)..self.crew.ordinary);
    }

    fn call_back(&self, members: core::ops::Range<usize>) {
        members.for_each(|member| self.crew.unpark(member, Wakes::ACTIVE));
    }

    /// A member waits inside, as the `waiting`th: another one works in its place.
    pub(crate) fn lend_place(&self, waiting: u32) {
        let active = self.active();
        if active < self.crew.ordinary {
            // The count of those that wait was changed before: see the orderings.
            store_load_barrier();
            self.call_back(active..(active + waiting as usize).min(self.crew.ordinary));
        }
    }

    /// Whether the thread with this rank is set aside.
    #[inline]
    pub(crate) fn is_set_aside(&self, rank: u32) -> bool {
        rank >= self.active.load(Relaxed) && self.has_no_place(rank)
    }

    #[cold]
    fn has_no_place(&self, rank: u32) -> bool {
        rank > 0 && rank >= self.places() && self.is_open_to(false)
    }

    /// How many threads are active, those included that work in the place of others.
    fn places(&self) -> u32 {
        self.active.load(Acquire) + self.waiting.load(Acquire)
    }
}

impl Worker<'_> {
    /// Parks until it is wanted again.
    pub(super) fn stand_aside(&mut self) {
        let shared = self.shared;
        self.put_down(ThreadRole::Parked);
        while shared.is_set_aside(self.rank) {
            // Whatever the reason, the number says whether it is for this thread (rule 3).
            let _woken = self.seat.parker.park(shared.oversee(self.rank));
        }
        self.set_role(ThreadRole::Leader);
        // What passed was sleep, and is no handler's.
        self.pace.read_clock(shared, shared.now());
    }
}
