//! How many of the pool's threads work: the first so many. The others are *set aside*: they park
//! outside of everything, until they are wanted again.
//!
//! # The problem
//!
//! The pool is fixed, and yet a pool for the busiest hour has threads that only get in each other's way
//! in all others. A follower that is parked costs nothing, but it is called as soon as there is work for
//! two. So a thread that is not wanted must be where no thread calls it; and whatever only it would come
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
//!    that it parks or polls. Whoever changes the number of active threads wakes all that it may
//!    concern *afterwards*. So none of them stays parked as if nothing had happened.
//! 2. Before it parks it puts down what only it would come across, as a member that leaves: the
//!    searching mark, its local queue, its chain, the watch, leadership. Another member is called to what is
//!    left.
//! 3. A parked thread is announced nowhere. So no call is on its way to it, and no reason of the wake
//!    word can be lost on it.
//! 4. The first thread is never set aside. With several handle sets there is always one active thread
//!    more than there are sets, so that one is free to watch.
//! 5. A thread that waits inside for another's task lends its place: as many more are active as wait.
//!    So a wait that was possible before is possible still.
//! 6. When the pool closes, all are called back.
//!
//! Invariants 2 and 3 of the pool speak of threads that are not set aside; that is all that changes.
//!
//! # The overseer
//!
//! Whoever adapts the number to the load must be able to look while every active thread is inside a long
//! task. So one of those that are parked aside asks it, and parks for as long as it says: for good, unless there is
//! something to look at. It is the *asker* until it is active again, and calls the others then, of which the first to
//! come is the next. Not by rank: the first of those that are to be set aside may be inside a long task still.
//!
//! # Orderings
//!
//! *Change the number, barrier, wake and ring* against *announce, barrier, look at the number*. *Something to look at,
//! barrier, call the asker* against *become the asker, barrier, look*. *Be no asker, barrier, call the others* needs no
//! look: who found an asker parks, and is called after that. A
//! thread that parks takes the wake with Acquire, and so sees the number that it was woken for.

use super::Members;
use crate::log::{Component, Logger};
use crate::pool::ready::ReadyWork;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{CachePadded, Wakes, store_load_barrier};
use core::ops::Range;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Whoever decides how many threads are active. One of those that are set aside asks it to look, because
/// every active one may be inside a long task.
pub(crate) trait Overseer: Send + Sync {
    /// Looks, and may change the number. After which time to look again; None: when it is called
    /// ([`Places::wake_overseer`]).
    fn look(&self) -> Option<Duration>;
}

/// See the module's documentation.
pub(crate) struct Places {
    /// How many ordinary threads work, the first ones.
    active: CachePadded<AtomicU32>,
    /// Members inside a wait of ours; see `begin_wait` for which.
    waiting: AtomicU32,
    overseer: Mutex<Option<Weak<dyn Overseer>>>,
    asker: Asker,
    ordinary: usize,
    least: usize,
}

/// The rank of the thread that asks the overseer, and 1; 0: none does.
struct Asker(AtomicU32);

impl Asker {
    fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Whether the thread of this rank, which is set aside and about to park, is the one. Passes a barrier.
    fn is(&self, rank: u32) -> bool {
        let found = self.0.compare_exchange(0, rank + 1, AcqRel, Acquire);
        store_load_barrier();
        found.is_ok() || found == Err(rank + 1)
    }

    /// It is active again. True: the others are to be called.
    fn leave(&self, rank: u32) -> bool {
        self.0.load(Relaxed) == rank + 1 && {
            self.0.store(0, Release);
            true
        }
    }

    /// Whom to call. The caller has passed a barrier since there is something to look at.
    fn rank(&self) -> Option<u32> {
        self.0.load(Acquire).checked_sub(1)
    }
}

impl Places {
    /// All `ordinary` threads of a pool with so many sets are active.
    pub(crate) fn new(ordinary: usize, sets: usize) -> Self {
        Self {
            active: CachePadded::new(AtomicU32::new(ordinary.max(1) as u32)),
            waiting: AtomicU32::new(0),
            overseer: Mutex::default(),
            asker: Asker::new(),
            ordinary,
            least: if sets == 1 { 1 } else { sets + 1 },
        }
    }

    /// How many ordinary threads there are.
    pub(crate) fn ordinary(&self) -> usize {
        self.ordinary
    }

    /// How many ordinary threads there must be at work.
    pub(crate) fn least(&self) -> usize {
        self.least
    }

    /// How many ordinary threads are not set aside, whoever may wait.
    pub(crate) fn active(&self) -> usize {
        (self.active.load(Relaxed) as usize).min(self.ordinary)
    }

    pub(crate) fn set_active(&self, threads: usize, ready: &ReadyWork, log: &Logger) {
        let before = self.active.swap(threads as u32, AcqRel) as usize;
        if before != threads {
            log.debug(Component::Pool, "pool.active", |record| {
                record
                    .with("before", before)
                    .with("threads", threads)
                    .say("more or fewer threads work");
            });
        }
        // Against *announce parking, then look at the number*.
        store_load_barrier();
        ready.handles.sets.ring_all();
        self.call_back(before.min(threads)..self.ordinary, &ready.members);
    }

    fn call_back(&self, range: Range<usize>, members: &Members) {
        range.for_each(|member| members.unpark(member, Wakes::ACTIVE));
    }

    /// Has `overseer` decide, as long as it lives. False: another one does.
    pub(crate) fn let_oversee(&self, overseer: &Arc<dyn Overseer>) -> bool {
        let mut place = self.overseer.lock().unwrap_or_else(PoisonError::into_inner);
        let free = place.as_ref().is_none_or(|other| other.strong_count() == 0);
        if free {
            *place = Some(Arc::downgrade(overseer));
        }
        free
    }

    /// Has a thread that is parked aside, if one is, ask the overseer.
    pub(crate) fn wake_overseer(&self, members: &Members) {
        // Against *become the asker, then look*.
        store_load_barrier();
        if let Some(rank) = self.asker.rank() {
            self.call_back(rank as usize..rank as usize + 1, members);
        }
    }

    /// The thread with this rank is active again: another one that is set aside asks the overseer.
    pub(crate) fn oversee_no_more(&self, rank: u32, members: &Members) {
        if self.asker.leave(rank) {
            // Against *the number, then those that it concerns*: who is beyond it now is called.
            store_load_barrier();
            self.call_back((self.places() as usize).min(self.ordinary)..self.ordinary, members);
        }
    }

    /// What the thread with this rank, which is set aside, parks for.
    pub(crate) fn oversee(&self, rank: u32) -> Option<Duration> {
        if !self.asker.is(rank) {
            return None;
        }
        let place = self.overseer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        place?.upgrade()?.look()
    }

    /// Whether the thread with this rank is active, to be on the safe side: others may work in the place of those that
    /// wait.
    #[inline]
    pub(crate) fn is_active(&self, rank: u32) -> bool {
        rank < self.active.load(Relaxed)
    }

    /// Whether the thread with this rank is to be set aside while the pool is open.
    #[cold]
    pub(crate) fn has_none_for(&self, rank: u32) -> bool {
        rank > 0 && rank >= self.places()
    }

    /// How many threads are active, those included that work in the place of others.
    fn places(&self) -> u32 {
        self.active.load(Acquire) + self.waiting.load(Acquire)
    }

    /// A member is about to wait for another's work. None: no other member is left.
    ///
    /// Host threads come and go. So in a pool that has threads of its own one of these must be left,
    /// and hosts that wait are not counted. Nor are reserved threads.
    pub(crate) fn begin_wait(&self, member: usize, ready: &ReadyWork) -> Option<impl Drop + '_> {
        struct Waiting<'a>(&'a Places, u32);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.waiting.fetch_sub(self.1, AcqRel);
            }
        }
        // Reserved threads could not run what is waited for.
        let threads = self.ordinary;
        let counts = u32::from(threads == 0 || member < threads);
        let waiting = self.waiting.fetch_add(counts, AcqRel) + counts;
        let guard = Waiting(self, counts);
        let all = if threads == 0 { ready.members.present() } else { threads as u32 };
        if waiting < all {
            self.lend(waiting, &ready.members);
        }
        (waiting < all).then_some(guard)
    }

    /// A member waits inside, as the `waiting`th: another one works in its place.
    fn lend(&self, waiting: u32, members: &Members) {
        let active = self.active();
        if active < self.ordinary {
            // The count of those that wait was changed before: see the orderings.
            store_load_barrier();
            self.call_back(active..(active + waiting as usize).min(self.ordinary), members);
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | two threads are set aside, the asker is wanted again, and there is something to look at | who leaves does not call the other | nobody looks |
    //! |  | no barrier between becoming the asker and the look | nobody looks |

    use super::*;
    use crate::pool::models::explore;
    use crate::sync::Parker;
    use crate::sync::atomic::AtomicBool;
    use loom::thread;

    struct Aside {
        active: AtomicU32,
        asker: Asker,
        something: AtomicBool,
        parkers: [Parker; 3],
    }

    impl Aside {
        /// `Worker::stand_aside`, until it is active or has looked at something. Whether it has.
        fn stand(&self, rank: u32) -> bool {
            let mut looked = false;
            while !looked && rank >= self.active.load(Acquire) {
                looked = self.asker.is(rank) && self.something.load(Relaxed);
                if !looked {
                    let _woken = self.parkers[rank as usize].park(None);
                }
            }
            if self.asker.leave(rank) {
                self.call_from(1);
            }
            looked
        }

        fn call_from(&self, first: u32) {
            self.parkers[first as usize..]
                .iter()
                .for_each(|parker| _ = parker.unpark(Wakes::ACTIVE));
        }
    }

    /// Goal: while a thread is parked aside, somebody looks at what there is. Method: of two threads that are set aside
    /// one is wanted again, as there begins to be something to look at.
    #[test]
    fn somebody_asks_the_overseer() {
        explore(3, || {
            let aside = Arc::new(Aside {
                active: AtomicU32::new(1),
                asker: Asker::new(),
                something: AtomicBool::new(false),
                parkers: core::array::from_fn(|_| Parker::new()),
            });
            let threads = [1, 2].map(|rank| {
                let aside = Arc::clone(&aside);
                thread::spawn(move || aside.stand(rank))
            });
            aside.active.store(2, Release);
            store_load_barrier();
            aside.call_from(1);
            aside.something.store(true, Relaxed);
            store_load_barrier();
            if let Some(rank) = aside.asker.rank() {
                let _ = aside.parkers[rank as usize].unpark(Wakes::ACTIVE);
            }
            let looked = threads.map(|thread| thread.join().unwrap());
            assert!(looked[1] || looked[0]);
        });
    }
}
