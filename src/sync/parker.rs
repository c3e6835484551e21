//! One thread's place to sleep, with the reason it was woken.
//!
//! # The word
//!
//! ```text
//! { wakes: 31, parked: 1 }
//! ```
//!
//! `wakes` is a set of reasons ([`Wakes`]); reasons given before the owner sleeps are kept, and
//! several are merged. Only the owner sets and clears `parked`.
//!
//! | step | owner | waker |
//! |---|---|---|
//! | 1 | takes `wakes` if there are any, else `parked` := 1 by the same CAS | ORs its reason in |
//! | 2 | futex wait while the word is exactly `parked` | futex wake only if `parked` was set |
//! | 3 | swaps the word to 0: what it takes is why it woke | |
//!
//! No wake is lost: both sides change the same word, so either the owner's CAS sees the reason, or
//! the waker sees `parked`, and the futex compares the word again before it sleeps.
//!
//! # Orderings
//!
//! `unpark` is Release and `park` is Acquire, so whatever the waker wrote before is visible to the
//! woken thread. Nothing here orders a *store then load*: callers who announce sleep in another
//! word use `store_load_barrier` themselves.

use super::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sys::futex::Futex;
use crate::sys::timerfd::TimerFd;
use core::time::Duration;

/// A set of reasons to be awake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) struct Wakes(u32);

impl Wakes {
    /// There is work to look for; the woken thread holds the `searching` mark.
    pub(crate) const SEARCH: Wakes = Wakes(1 << 1);
    /// The woken thread is the watch from now on.
    pub(crate) const WATCH: Wakes = Wakes(1 << 2);
    /// The woken thread should lead before it looks for anything else.
    pub(crate) const LEAD: Wakes = Wakes(1 << 3);
    /// The pool is closing.
    pub(crate) const STOP: Wakes = Wakes(1 << 4);
    /// Other threads are active than before.
    pub(crate) const ACTIVE: Wakes = Wakes(1 << 7);
    /// With `SEARCH` or `LEAD`: the call took the watch from the woken thread.
    pub(crate) const OFF_WATCH: Wakes = Wakes(1 << 6);

    pub(crate) fn with(self, other: Wakes) -> Wakes {
        Wakes(self.0 | other.0)
    }

    #[inline]
    pub(crate) fn contains(self, other: Wakes) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the wake word gave a reason: somebody took this thread's announcement.
    #[inline]
    pub(crate) fn is_call(self) -> bool {
        self.contains(Wakes(Self::SEARCH.0 | Self::WATCH.0 | Self::LEAD.0))
    }
}

const PARKED: u32 = 1;
/// With `PARKED`: it is parked on a timer descriptor, not on this word.
const ON_TIMER: u32 = 1 << 5;

/// What an unpark leaves to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum Unparked {
    /// The owner is awake, or was woken before.
    Awake,
    /// The owner slept on its word and has been woken.
    Woken,
    /// The owner is parked on a timer descriptor: the caller sets the alarm for now.
    OnTimer,
}

/// A thread's own futex word. Any thread may `unpark`; only the owner parks.
#[derive(Debug)]
pub(crate) struct Parker {
    word: Futex,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self { word: Futex::new(0) }
    }

    /// Sleeps until somebody unparks this thread or `timeout` passes. A signal does not end it.
    pub(crate) fn park(&self, timeout: Option<Duration>) -> Wakes {
        // Acquire (failure): pairs with the Release in `unpark`, which came first.
        if self.word.compare_exchange(0, PARKED, Relaxed, Acquire).is_ok() {
            self.word.wait(PARKED, timeout);
        }
        self.take()
    }

    /// Parks on `timer`, whose alarm others set. May return for no reason.
    pub(crate) fn park_on(&self, timer: &TimerFd) -> Wakes {
        // Acquire (failure): as in `park`.
        if self.word.compare_exchange(0, PARKED | ON_TIMER, Relaxed, Acquire).is_ok() {
            timer.wait();
        }
        self.take()
    }

    /// Leaves a reason to be found when the alarm goes off. False, and nothing is left: the owner
    /// is not parked on a timer, or is being called.
    pub(crate) fn leave_reason(&self, reason: Wakes) -> bool {
        let (asleep, told) = (PARKED | ON_TIMER, PARKED | ON_TIMER | reason.0);
        // Release: pairs with the Acquire in `take`.
        self.word.compare_exchange(asleep, told, Release, Relaxed).is_ok()
    }

    /// Takes a reason back that was left. False: the owner has found it, or was called.
    pub(crate) fn take_back(&self, reason: Wakes) -> bool {
        let (asleep, told) = (PARKED | ON_TIMER, PARKED | ON_TIMER | reason.0);
        self.word.compare_exchange(told, asleep, Relaxed, Relaxed).is_ok()
    }

    /// Takes the reasons that are there.
    fn take(&self) -> Wakes {
        // Acquire: pairs with the Release in `unpark`.
        Wakes(self.word.swap(0, Acquire) & !(PARKED | ON_TIMER))
    }

    /// Adds a reason and wakes the owner if it sleeps.
    pub(crate) fn unpark(&self, reason: Wakes) -> Unparked {
        // Release: pairs with the Acquire in `park`.
        let before = self.word.fetch_or(reason.0, Release);
        if before & ON_TIMER != 0 {
            // It may sleep on with a reason that was left for later, so every call counts.
            return Unparked::OnTimer;
        }
        if before != PARKED {
            return Unparked::Awake;
        }
        self.word.wake(1);
        Unparked::Woken
    }
}
