//! The doorbell: how work that no descriptor announces reaches a leader that blocks in its source.
//!
//! # The problem
//!
//! A leader with nothing to do blocks in the kernel. Whoever publishes work then, or sets a timer
//! that is due earlier, must wake it, and that takes a system call. Everybody else must not pay for
//! one: not while the leader is busy, and not when another publisher has rung already. And no
//! publication may fall between the leader's last look at the queues and its sleep.
//!
//! # The word
//!
//! | state | the leader | a ringer |
//! |---|---|---|
//! | QUIET | is not in the source, and looks at the queues before it blocks there | does nothing |
//! | LOOKING | waits in the source, awake, with an eye on this word | marks it RUNG |
//! | POLLING | blocks in the kernel, or is about to | marks it RUNG and **sounds** the bell |
//! | RUNG | has been called, and is coming | does nothing |
//!
//! ```text
//!           arm ┌──────────► LOOKING ───fall_asleep───┐
//!               │               │                     ▼
//!             QUIET ──arm──────────────────────────► POLLING
//!               ▲               │ ring                │ ring, then sound
//!               │               ▼                     ▼
//!               └──disarm───── RUNG ◄─────────────────┘         (disarm leaves every state)
//! ```
//!
//! To *sound* is the source's business: a futex wake on this very word, one write to an eventfd, or
//! a condition variable.
//!
//! # Invariants
//!
//! 1. **No lost ring.** The leader arms, passes a barrier, and only then looks at the queues a last
//!    time before it blocks. A ringer publishes, passes a barrier, and only then reads the word. So
//!    either the leader sees the work, or the ringer sees the word armed.
//! 2. One sound per arming: only the CAS that leaves POLLING sounds.
//! 3. The leader disarms after its wait has returned, never before: a ringer that found QUIET would
//!    leave it asleep. It looks at the queues afterwards, since those who found RUNG rely on that.
//! 4. A sound may come late, when the leader has disarmed and armed again. Then it ends that wait
//!    early, and nothing else.
//!
//! # Orderings
//!
//! `arm` ends with `store_load_barrier`; its partner is the barrier that a ringer passes *before*
//! it calls `ring` (the caller does, since one barrier serves this word and the wake word). The same
//! barrier, followed by the CAS in `ring`, releases to the Acquire swap in `disarm`: a leader that
//! finds RUNG sees what was published before it. A ringer that found RUNG has only invariant 1 on its side: if the scan
//! after `disarm` misses its work, the scan after the next `arm` cannot.
//!
//! # Trade-offs
//!
//! One word could carry the earliest deadline too, and save the ring for a timer that is due later
//! than the wait ends anyway. The timer intake knows that already, so it rings only when it must.

use crate::sync::atomic::Ordering::{Acquire, Relaxed};
use crate::sync::{CachePadded, store_load_barrier};
use crate::sys::futex::Futex;
use core::time::Duration;

const QUIET: u32 = 0;
const LOOKING: u32 = 1;
const POLLING: u32 = 2;
const RUNG: u32 = 3;

/// How a leader waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// It blocks in the kernel at once.
    Blocking,
    /// It looks at the word for a while first.
    Looking,
}

/// The doorbell of one handle set, on a cache line of its own: it is read at every publication.
#[derive(Debug)]
pub(crate) struct Doorbell {
    word: CachePadded<Futex>,
}

impl Doorbell {
    pub(super) fn new() -> Self {
        Self { word: CachePadded::new(Futex::new(QUIET)) }
    }

    /// The leader is about to wait. The barrier is included; the leader looks at the queues next,
    /// and then waits or disarms.
    #[inline]
    pub(super) fn arm(&self, wait: Wait) {
        let state = if wait == Wait::Blocking { POLLING } else { LOOKING };
        self.word.store(state, Relaxed);
        // Against *publish, then read this word* in `ring`'s callers (invariant 1).
        store_load_barrier();
    }

    /// Calls the leader, if it waits and nobody has called it. True: the caller must sound the bell.
    /// The caller has published its work and passed a barrier since.
    #[inline]
    #[must_use]
    pub(super) fn ring(&self) -> bool {
        // Relaxed: the caller's barrier orders it after the publication.
        match self.word.load(Relaxed) {
            LOOKING | POLLING => self.call(),
            _ => false,
        }
    }

    #[cold]
    fn call(&self) -> bool {
        let mut state = self.word.load(Relaxed);
        while matches!(state, LOOKING | POLLING) {
            // Relaxed: the caller's barrier is a release fence for what it published.
            match self.word.compare_exchange_weak(state, RUNG, Relaxed, Relaxed) {
                Ok(_) => return state == POLLING,
                Err(now) => state = now,
            }
        }
        false
    }

    /// The leader's wait has returned, or it found work after all. True if somebody rang. The leader
    /// looks at the queues next (invariant 3).
    #[inline]
    pub(super) fn disarm(&self) -> bool {
        // Acquire: pairs with the ringer's barrier and its CAS in `call`. One step, so that no ring is overwritten unseen.
        self.word.swap(QUIET, Acquire) == RUNG
    }

    /// Whether somebody has called the leader since it armed.
    #[inline]
    pub(super) fn is_rung(&self) -> bool {
        self.word.load(Relaxed) == RUNG
    }

    /// Whether a leader waits here that nobody has called. A hint: it may be stale at once.
    #[inline]
    pub(super) fn is_armed(&self) -> bool {
        matches!(self.word.load(Relaxed), LOOKING | POLLING)
    }

    /// From LOOKING, gives up looking and sleeps on the word until it is rung, or `timeout` passes.
    /// Its bell is sounded by [`sound`](Self::sound).
    pub(super) fn fall_asleep(&self, timeout: Option<Duration>) {
        // Relaxed: the same word decides, and `disarm` has the Acquire.
        if self.word.compare_exchange(LOOKING, POLLING, Relaxed, Relaxed).is_ok() {
            self.word.wait(POLLING, timeout);
        }
    }

    /// Wakes a leader that sleeps on the word.
    pub(super) fn sound(&self) {
        self.word.wake(1);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_ring_of_a_blocked_leader_sounds() {
        let bell = Doorbell::new();
        assert!(!bell.ring());
        bell.arm(Wait::Blocking);
        assert!(bell.ring());
        assert!(!bell.ring());
        assert!(bell.disarm());
        assert!(!bell.ring());
        assert!(!bell.disarm());
    }

    #[test]
    fn a_looking_leader_is_called_without_a_sound() {
        let bell = Doorbell::new();
        bell.arm(Wait::Looking);
        assert!(bell.is_armed());
        assert!(!bell.ring());
        assert!(bell.is_rung() && !bell.is_armed());
        // The futex compares first, so this returns although the bell is never sounded.
        bell.fall_asleep(None);
        assert!(bell.disarm());
    }
}

/// Each model's leader sleeps without a time-out, so a lost ring shows as a deadlock.
#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | doorbell | no barrier in `arm`, or in the ringer; Relaxed `disarm`; no sound while polling; a store for the CAS that falls asleep | a ring is lost, the leader sleeps for ever |

    use super::*;
    use crate::sync::atomic::AtomicUsize;
    use crate::sync::{Arc, UnsafeCell};
    use loom::thread;

    /// A queue of which only the length matters.
    struct Set {
        bell: Doorbell,
        published: AtomicUsize,
    }

    impl Set {
        fn new() -> Arc<Self> {
            Arc::new(Self { bell: Doorbell::new(), published: AtomicUsize::new(0) })
        }

        fn publish(&self) {
            self.published.fetch_add(1, Relaxed);
            store_load_barrier();
            if self.bell.ring() {
                self.bell.sound();
            }
        }

        /// Leads until `count` publications have been seen, sleeping whenever there is no new one.
        fn lead_until(&self, count: usize, wait: Wait) {
            let mut seen = 0;
            while seen < count {
                self.bell.arm(wait);
                let now = self.published.load(Relaxed);
                if now == seen {
                    self.sleep(wait);
                }
                self.bell.disarm();
                seen = now.max(self.published.load(Relaxed));
            }
        }

        fn sleep(&self, wait: Wait) {
            match wait {
                Wait::Looking => self.bell.fall_asleep(None),
                Wait::Blocking => drop(self.bell.word.wait(POLLING, None)),
            }
        }
    }

    fn explore(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    fn no_ring_is_lost(ringers: usize, each: usize, wait: Wait) {
        explore(move || {
            let set = Set::new();
            let ringers: Vec<_> = (0..ringers)
                .map(|_| {
                    let set = set.clone();
                    thread::spawn(move || (0..each).for_each(|_| set.publish()))
                })
                .collect();
            set.lead_until(ringers.len() * each, wait);
            for ringer in ringers {
                ringer.join().unwrap();
            }
        });
    }

    /// Goal: invariant 1. Method: one publication against a leader that is about to block.
    #[test]
    fn one_ringer() {
        no_ring_is_lost(1, 1, Wait::Blocking);
    }

    /// Goal: invariants 1, 3 and 4: a sound of the first arming may fall into the second.
    #[test]
    fn one_ringer_twice() {
        no_ring_is_lost(1, 2, Wait::Blocking);
    }

    /// Goal: invariant 2 with 3: who finds RUNG and stays silent is not forgotten.
    #[test]
    fn two_ringers() {
        no_ring_is_lost(2, 1, Wait::Blocking);
    }

    /// Goal: the step from LOOKING to POLLING loses no ring either.
    #[test]
    fn two_ringers_and_a_leader_that_looks_first() {
        no_ring_is_lost(2, 1, Wait::Looking);
    }

    /// Goal: a leader that finds RUNG sees what was published. Method: plain data, and a leader
    /// that never sleeps, so that nothing but the word's own ordering passes it on.
    #[test]
    fn a_ring_carries_what_was_published() {
        explore(|| {
            let shared = Arc::new((Doorbell::new(), UnsafeCell::new(0)));
            shared.0.arm(Wait::Looking);
            let ringer = {
                let shared = shared.clone();
                thread::spawn(move || {
                    #[allow(unsafe_code, reason = "the data whose ordering is tested")]
                    // SAFETY: the leader reads only after it has seen the ring.
                    shared.1.with_mut(|data| unsafe { *data = 7 });
                    store_load_barrier();
                    assert!(!shared.0.ring(), "a looking leader needs no sound");
                })
            };
            while !shared.0.is_rung() {
                thread::yield_now();
            }
            assert!(shared.0.disarm());
            #[allow(unsafe_code, reason = "the data whose ordering is tested")]
            // SAFETY: the ring was seen, and the ringer wrote before it.
            shared.1.with(|data| assert_eq!(unsafe { *data }, 7));
            ringer.join().unwrap();
        });
    }
}
