//! What a handler that rests is called for by other threads: a word of bits.
//!
//! ```text
//!   caller:  publish ─► calls |= bit ─► was 0: poke the slot
//!   run:     claim the slot ─► bits = calls.swap(0) ─► look at what they stand for
//! ```
//!
//! A caller sets its bit and, if the word was empty, *pokes*: it makes the handler's slot runnable. The handler takes
//! all bits at the start of each run.
//!
//! # Invariants
//!
//! 1. A bit that is set has a run after it. Whoever found the word empty pokes; whoever did not comes before the swap
//!    of the run that the first one's poke, still to come or done, brings about.
//! 2. A poke of a running slot is kept by the slot word (invariant 4 of the pool's slots), so a bit that is set after
//!    the swap brings another run.
//!
//! # Orderings
//!
//! The caller's `fetch_or` is a Release that pairs with the Acquire of `take`: a run that sees the bit sees what was
//! published before it.

use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// What a connection or a datagram socket is called for: bits of one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Calls(pub(crate) u32);

impl Calls {
    pub(crate) const NONE: Calls = Calls(0);
    /// Its output was changed by another thread in a way that the handler must see.
    pub(crate) const OUTPUT: Calls = Calls(1);
    /// Its alarm has gone off.
    pub(crate) const ALARM: Calls = Calls(1 << 1);
    /// Reading goes on.
    pub(crate) const RESUME: Calls = Calls(1 << 2);
    /// The server drains; or a request has ended while it does.
    pub(crate) const DRAIN: Calls = Calls(1 << 3);
    /// Close at once.
    pub(crate) const ABORT: Calls = Calls(1 << 4);
    /// Close at once: the drain's time is over.
    pub(crate) const CUT: Calls = Calls(1 << 5);
    /// Its `notified` hook is to be called.
    pub(crate) const NOTIFY: Calls = Calls(1 << 6);

    pub(crate) fn has(self, other: Calls) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// See the head of the file.
pub(crate) struct CallWord(AtomicU32);

impl CallWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Asks for a run. True: the caller pokes the slot.
    #[must_use]
    pub(crate) fn call(&self, call: Calls) -> bool {
        // Release: pairs with the Acquire in `take`.
        self.0.fetch_or(call.0, Release) == 0
    }

    pub(crate) fn is_called(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// By a run: all that it is called for.
    #[inline]
    pub(crate) fn take(&self) -> Calls {
        if self.0.load(Relaxed) == 0 {
            // A bit that comes now finds the word empty, and its poke is still to come.
            return Calls(0);
        }
        // Acquire: pairs with the Release in `call`.
        Calls(self.0.swap(0, Acquire))
    }
}
