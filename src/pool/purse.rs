//! References to the pool that a thread has at hand.
//!
//! # The problem
//!
//! A [`Timer`](super::Timer) may outlive its pool, so each holds a counted reference. To count one, and to give it
//! up, are a locked instruction each, of a line that all threads change. Yet a thread that arms and cancels gives
//! up one for each that it makes.
//!
//! # The shape
//!
//! So it keeps what its timers give up, and gives it to the next ones. What a purse holds are true references, each
//! counted: whoever has a pool's `Arc` need not know of purses. But a thread that never comes again would keep
//! the memory and the descriptors of a pool that has ended. So whoever ends the pool empties the purses of all
//! threads, each of which is changed without locked instructions until then.
//!
//! ```text
//!            open                     the pool ends, or the thread does
//!   closed ───────► open: take, put ──────────────────────────────────► closed, and emptied once
//! ```
//!
//! # Invariants
//!
//! 1. `held` counts references of the pool's `Arc` that nobody else has.
//! 2. The owner changes it in a *turn*: while it is `busy`, and only if it saw the purse open after that.
//! 3. Whoever closes the purse empties it, unless the owner is in a turn, which empties it when it is over. So nobody
//!    waits for a thread that is held up in its turn. Emptying is an exchange: of two, one gets what there is.
//!
//! # Orderings
//!
//! *Busy, then look whether it is closed* and *not busy, then look whether it is closed* in a turn, against *close, then
//! look whether it is busy*: light barriers here, a heavy one there ([asymmetric.rs](../sync/asymmetric.rs)). By the
//! first, a turn that begins too late sees that it is; by the second, a turn that the closer saw sees the closer.
//! `busy` is given up with Release and looked at with Acquire: the closer sees the count that a turn has left.
//! *Open, then look whether the pool ends* against *end, then close* is a full barrier on both sides: a purse is
//! not opened behind the end.
//!
//! If there is no heavy barrier purses stay closed, and each reference is counted as ever. If it is forbidden
//! after that, purses are closed and not emptied: their owners do, at their next turn or their end.

use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU32};
use crate::sync::{light_barrier, store_load_barrier};

/// References that a thread keeps at most.
const MOST: u32 = if cfg!(loom) { 2 } else { 512 };

/// What one thread, its owner, has; closed by anybody.
pub(crate) struct Purse {
    busy: AtomicBool,
    closed: AtomicBool,
    held: AtomicU32,
}

/// What came of a turn.
#[must_use]
pub(crate) struct Turn {
    /// A reference changed hands.
    pub(crate) done: bool,
    /// So many references are the caller's to be given up: the purse was closed meanwhile.
    pub(crate) left: u32,
}

impl Purse {
    /// Closed.
    pub(crate) fn new() -> Self {
        Self {
            busy: AtomicBool::new(false),
            closed: AtomicBool::new(true),
            held: AtomicU32::new(0),
        }
    }

    /// By the owner, who then looks whether the pool ends, and if so [shuts](Self::shut) it.
    pub(crate) fn open(&self) {
        self.closed.store(false, Relaxed);
        // Against *end, then close*.
        store_load_barrier();
    }

    /// By the owner: takes a reference out.
    #[inline]
    pub(crate) fn take(&self) -> Turn {
        self.turn(|held| held.checked_sub(1))
    }

    /// By the owner: puts one in.
    #[inline]
    pub(crate) fn put(&self) -> Turn {
        self.turn(|held| (held < MOST).then_some(held + 1))
    }

    /// By the owner, who leaves: so many references are the caller's.
    pub(crate) fn shut(&self) -> u32 {
        self.closed.store(true, Relaxed);
        self.empty()
    }

    #[inline]
    fn turn(&self, change: impl FnOnce(u32) -> Option<u32>) -> Turn {
        self.busy.store(true, Relaxed);
        // Against *close, then look whether it is busy*.
        light_barrier();
        let after = change(self.held.load(Relaxed)).filter(|_| !self.closed.load(Relaxed));
        if let Some(held) = after {
            self.held.store(held, Relaxed);
        }
        self.busy.store(false, Release);
        // As above.
        light_barrier();
        let left = if self.closed.load(Relaxed) { self.empty() } else { 0 };
        Turn { done: after.is_some(), left }
    }

    /// Refuses further turns. A heavy barrier follows, and then `collect`.
    pub(crate) fn close(&self) {
        self.closed.store(true, Relaxed);
    }

    /// So many references are the caller's, who has closed the purse.
    pub(crate) fn collect(&self) -> u32 {
        if self.busy.load(Acquire) { 0 } else { self.empty() }
    }

    #[cold]
    fn empty(&self) -> u32 {
        // Most often it was emptied long ago.
        if self.held.load(Relaxed) == 0 { 0 } else { self.held.swap(0, Relaxed) }
    }
}
