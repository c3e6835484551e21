//! Runnable objects: what became ready, in a ring that may be full and a stack that never is.
//!
//! # The problem
//!
//! An activation cannot be refused: the edge that caused it is already consumed. It names an object
//! (handle, strand, timer, mailbox) that has at most one activation at a time, so all of them
//! fit if each object brings the link with it. But one shared list is a poor hot path, and what one
//! thread takes from it must not wait behind that thread's first handler.
//!
//! # The parts
//!
//! ```text
//!  leader ────batch────► Surplus ring ──pop──► any thread           one CAS per pop, oldest first
//!
//!  anyone ──push──► IntrusiveStack ──take_all──► Chain ──install──► LocalChain ──pop───► owner
//!                   youngest on top   one CAS     oldest first               └──steal──► any thread
//! ```
//!
//! The leader asks the ring for [`room`](Surplus::room) before it waits, so what it harvests always
//! fits; every other activation goes on the stack.
//!
//! | type | word | states |
//! |---|---|---|
//! | `Surplus` | head and tail, `{ position:64 }` | positions head … tail − 1 hold entries |
//! | `IntrusiveStack` | `{ takes:32, top:32 }` | top = [`NONE`]: empty |
//! | `LocalChain` | `{ installs:32, first:32 }` | first = [`NONE`]: empty, only the owner may change it |
//!
//! # Invariants
//!
//! 1. The ring has one producer at a time; the next one knows all that the last one did (both hold
//!    the leadership). It overwrites an entry only after it saw the head beyond it, so a pop whose
//!    CAS succeeds has read the right entry, and one that read a wrong entry fails. No slot is
//!    ever half done: the ring is never busy. (This is the run queue of the Go scheduler.)
//! 2. An index is in at most one stack, chain or local chain at a time, and its link belongs to whoever
//!    has it there.
//! 3. Only its owner fills a local chain, and only an empty one.
//!
//! # Why a recycled index cannot hurt (ABA)
//!
//! - *push*: the CAS may succeed on a top that was taken and pushed again meanwhile. Its link was
//!   set to that top, and that top is the top: the list is right, whatever happened in between.
//! - *take_all* looks at no link before its CAS.
//! - *pop* by the owner reads the first one's link and then changes the word by CAS. Had a thief
//!   taken the chain in between, the word would be empty, and nobody but the owner, who is in
//!   `pop`, fills it: the CAS fails and the link, which may be another chain's by now, is
//!   forgotten.
//! - *steal* looks at no link before its CAS.
//!
//! # Orderings
//!
//! | store | partner | carries |
//! |---|---|---|
//! | ring tail, Release | Acquire load in `pop` | the entries |
//! | ring head, Release CAS | Acquire load in `room` | the end of the read of an entry |
//! | stack top, Release CAS | Acquire CAS in `take_all` | links, and all the pusher wrote before; later pushes continue the release sequence |
//! | `install`, Release | Acquire CAS in `steal` | the chain's links; the owner's pops continue the release sequence |

use super::mpmc::MAX_CAPACITY;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::sync::{CachePadded, SpinWait};
use crate::{Error, Result};

/// No object: the end of a chain. Indices are below it.
pub(crate) const NONE: u32 = u32::MAX;

/// Ready entries of one handle set, put in by its leader and taken out by anybody.
#[derive(Debug)]
pub(crate) struct Surplus {
    head: CachePadded<AtomicU64>,
    tail: CachePadded<AtomicU64>,
    entries: Box<[AtomicU64]>,
}

impl Surplus {
    /// Room for `capacity` entries, rounded up to a power of two.
    pub(crate) fn new(name: &'static str, capacity: usize) -> Result<Self> {
        if !(1..=MAX_CAPACITY).contains(&capacity) {
            return Err(Error::invalid(name, capacity, format!("1 to {MAX_CAPACITY}")));
        }
        Ok(Self {
            head: CachePadded::new(AtomicU64::new(0)),
            tail: CachePadded::new(AtomicU64::new(0)),
            entries: (0..capacity.next_power_of_two()).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    #[inline(always)]
    fn entry(&self, position: u64) -> &AtomicU64 {
        &self.entries[position as usize & (self.entries.len() - 1)]
    }

    /// How many entries fit. For the leader this holds until it pushes, whatever others do.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        // Relaxed: only leaders change the tail, one after the other.
        let tail = self.tail.load(Relaxed);
        // Acquire: pairs with the Release in `pop`: an entry is overwritten after it was read.
        let head = self.head.load(Acquire);
        self.entries.len() - (tail - head) as usize
    }

    /// A batch of entries to append. Only the set's leader may call this, and begin the next one after
    /// the end of this one.
    #[inline]
    pub(crate) fn batch(&self) -> Batch<'_> {
        let first = self.tail.load(Relaxed);
        Batch { ring: self, first, next: first, end: first + self.room() as u64 }
    }

    /// Appends as many of `entries` as fit, as one batch; says how many.
    #[cfg(test)]
    pub(crate) fn push_batch(&self, entries: &[u64]) -> usize {
        let mut batch = self.batch();
        entries.iter().take_while(|&&entry| batch.push(entry)).count()
    }

    /// Takes the oldest entry. Any thread may call this.
    #[inline]
    pub(crate) fn pop(&self) -> Option<u64> {
        let mut lost = SpinWait::new();
        loop {
            // Acquire: the tail is loaded after the head, so `None` means that there was nothing.
            let head = self.head.load(Acquire);
            // Acquire: pairs with the Release at the end of a `Batch`.
            if self.tail.load(Acquire) == head {
                return None;
            }
            let entry = self.entry(head).load(Relaxed);
            // Release: pairs with the Acquire in `room`; the read above is over.
            match self.head.compare_exchange(head, head + 1, Release, Relaxed) {
                Ok(_) => return Some(entry),
                Err(_) => lost.back_off(),
            }
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries there are; as exact as can be while others pop.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let head = self.head();
        (self.tail() - head) as usize
    }

    /// The position of the oldest entry. An entry that was there when [`tail`](Self::tail) was read
    /// is still unclaimed while the head is below that.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.head.load(Acquire)
    }

    /// The position after the youngest entry.
    #[inline]
    pub(crate) fn tail(&self) -> u64 {
        self.tail.load(Acquire)
    }
}

/// Entries that become visible at once, when this is dropped.
#[must_use]
pub(crate) struct Batch<'a> {
    ring: &'a Surplus,
    first: u64,
    next: u64,
    /// Where there is no room any more.
    end: u64,
}

impl Batch<'_> {
    /// Adds an entry. False: it does not fit.
    #[inline]
    #[must_use]
    pub(crate) fn push(&mut self, entry: u64) -> bool {
        let fits = self.next < self.end;
        if fits {
            self.ring.entry(self.next).store(entry, Relaxed);
            self.next += 1;
        }
        fits
    }

    pub(crate) fn len(&self) -> usize {
        (self.next - self.first) as usize
    }
}

impl Drop for Batch<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `pop`.
        self.ring.tail.store(self.next, Release);
    }
}

/// Where the objects keep their links.
pub(crate) trait Links {
    /// The link of one object. Only the queues touch it while the object is in one of them.
    fn next(&self, index: u32) -> &AtomicU32;
}

#[inline(always)]
fn pack(count: u32, index: u32) -> u64 {
    u64::from(count) << 32 | u64::from(index)
}

#[inline(always)]
fn count_of(word: u64) -> u32 {
    (word >> 32) as u32
}

#[inline(always)]
fn index_of(word: u64) -> u32 {
    word as u32
}

/// Activations from anybody. It never refuses: each object brings its own link.
#[derive(Debug)]
pub(crate) struct IntrusiveStack {
    word: CachePadded<AtomicU64>,
}

impl IntrusiveStack {
    pub(crate) fn new() -> Self {
        Self { word: CachePadded::new(AtomicU64::new(pack(0, NONE))) }
    }

    /// Adds one object, which is in no queue. Any thread may call this.
    #[inline]
    pub(crate) fn push(&self, index: u32, links: &impl Links) {
        self.push_chain(index, index, links);
    }

    /// Adds objects that are linked from `youngest` to `oldest`, at once.
    #[inline]
    pub(crate) fn push_chain(&self, youngest: u32, oldest: u32, links: &impl Links) {
        let mut lost = SpinWait::new();
        let mut word = self.word.load(Relaxed);
        loop {
            links.next(oldest).store(index_of(word), Relaxed);
            let with = pack(count_of(word), youngest);
            // Release: pairs with the Acquire in `take_all`.
            match self.word.compare_exchange(word, with, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
            lost.back_off();
        }
    }

    /// Takes everything, oldest first. Any thread may call this.
    #[inline]
    pub(crate) fn take_all(&self, links: &impl Links) -> Chain {
        let mut word = self.word.load(Relaxed);
        while index_of(word) != NONE {
            let emptied = pack(count_of(word).wrapping_add(1), NONE);
            // Acquire: pairs with the Release in `push_chain`, of this push and all before it.
            match self.word.compare_exchange(word, emptied, Acquire, Relaxed) {
                Ok(_) => return reversed(index_of(word), links),
                Err(now) => word = now,
            }
        }
        Chain { first: NONE }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        index_of(self.word.load(Relaxed)) == NONE
    }

    /// A value that changes whenever the stack is taken; none while it is empty. Two equal ages a
    /// while apart mean that what was there is there still.
    #[inline]
    pub(crate) fn age(&self) -> Option<u32> {
        let word = self.word.load(Acquire);
        (index_of(word) != NONE).then_some(count_of(word))
    }
}

/// Turns the links round, from youngest-first to oldest-first.
fn reversed(youngest: u32, links: &impl Links) -> Chain {
    let (mut first, mut rest) = (NONE, youngest);
    while rest != NONE {
        let older = links.next(rest).load(Relaxed);
        links.next(rest).store(first, Relaxed);
        (first, rest) = (rest, older);
    }
    Chain { first }
}

/// Objects that belong to the caller, linked oldest first.
#[derive(Debug)]
#[must_use = "activations that are dropped are lost"]
pub(crate) struct Chain {
    first: u32,
}

impl Chain {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Takes the oldest object off.
    #[inline]
    pub(crate) fn pop(&mut self, links: &impl Links) -> Option<u32> {
        let index = self.first;
        if index == NONE {
            return None;
        }
        self.first = links.next(index).load(Relaxed);
        Some(index)
    }
}

/// What one thread has taken from a stack and not yet begun. Its owner pops one at a time, and any
/// other thread may take the whole rest.
#[derive(Debug)]
pub(crate) struct LocalChain {
    word: CachePadded<AtomicU64>,
}

impl LocalChain {
    pub(crate) fn new() -> Self {
        Self { word: CachePadded::new(AtomicU64::new(pack(0, NONE))) }
    }

    /// Fills the local chain. Only its owner may call this, and only on an empty local chain (invariant 3).
    #[inline]
    pub(crate) fn install(&self, chain: Chain) {
        debug_assert!(self.is_empty());
        let installs = count_of(self.word.load(Relaxed)).wrapping_add(1);
        // Release: pairs with the Acquire in `steal`.
        self.word.store(pack(installs, chain.first), Release);
    }

    /// Takes the oldest object. The owner alone may call this.
    #[inline]
    pub(crate) fn pop(&self, links: &impl Links) -> Option<u32> {
        let word = self.word.load(Relaxed);
        let first = index_of(word);
        if first == NONE {
            return None;
        }
        let rest = pack(count_of(word), links.next(first).load(Relaxed));
        // Relaxed: the owner has the links from its own `install`. Only a thief can be in the way,
        // and it takes all: there is nothing to try again for.
        self.word.compare_exchange(word, rest, Relaxed, Relaxed).ok().map(|_| first)
    }

    /// Takes all that is left: the oldest is returned, the rest goes into `own`, the caller's own
    /// local chain, which is empty. Any thread may call this.
    pub(crate) fn steal(&self, own: &LocalChain, links: &impl Links) -> Option<u32> {
        let mut chain = self.take();
        let first = chain.pop(links)?;
        if !chain.is_empty() {
            own.install(chain);
        }
        Some(first)
    }

    fn take(&self) -> Chain {
        let mut word = self.word.load(Relaxed);
        while index_of(word) != NONE {
            let emptied = pack(count_of(word), NONE);
            // Acquire: pairs with the Release in `install`.
            match self.word.compare_exchange(word, emptied, Acquire, Relaxed) {
                Ok(_) => return Chain { first: index_of(word) },
                Err(now) => word = now,
            }
        }
        Chain { first: NONE }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        index_of(self.word.load(Relaxed)) == NONE
    }

    /// A value that stays the same while nothing is taken from a local chain that is not empty; none if it
    /// is empty. Two equal ages a while apart mean that these are stuck behind their owner.
    pub(crate) fn age(&self) -> Option<u64> {
        Some(self.word.load(Acquire)).filter(|&word| index_of(word) != NONE)
    }
}
