//! Type-stable storage: entries are recycled, never freed while the slab lives.
//!
//! That an entry's memory is always an entry is what makes plain indices safe to pass between
//! threads: whoever holds an old index reads a valid word and learns from its generation (or from the
//! tag of the free list here) that it is late. No hazard pointers, no epochs.
//!
//! The free list is a Treiber stack (R. K. Treiber, 1986) whose head carries a tag that changes with
//! every pop, so that an entry that was taken and given back in between is not mistaken for the one
//! that was seen (ABA).
//!
//! Orderings: a push of the head is Release, a pop is Acquire, so whatever the last tenant did is
//! visible to the next. The links may be Relaxed: they are written before the push and read after the
//! load of the head; a stale one makes the CAS fail by the tag.

use crate::sync::CachePadded;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use core::ops::Index;
use std::sync::OnceLock;

/// What can live in a [`Slab`].
pub(crate) trait Entry {
    /// Entries per chunk: chunks appear as they are needed.
    const CHUNK: usize;
    fn new(index: u32) -> Self;
    /// A link that is the slab's while the entry is free, and the tenant's otherwise.
    fn link(&self) -> &AtomicU32;
}

pub(crate) struct Slab<E> {
    chunks: Box<[OnceLock<Box<[E]>>]>,
    /// `{ tag: 32, first free index + 1: 32 }`
    free: CachePadded<AtomicU64>,
    /// Indices from here on have never been given out.
    fresh: AtomicU32,
}

impl<E: Entry> Slab<E> {
    /// A slab that can grow to `limit` entries, rounded up to whole chunks.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            chunks: (0..limit.div_ceil(E::CHUNK)).map(|_| OnceLock::new()).collect(),
            free: CachePadded::new(AtomicU64::new(0)),
            fresh: AtomicU32::new(0),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.chunks.len() * E::CHUNK
    }

    /// The entry of an index, if that index was ever given out.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&E> {
        let index = index as usize;
        self.chunks.get(index / E::CHUNK)?.get().map(|chunk| &chunk[index % E::CHUNK])
    }

    /// Takes a free entry; allocates only when more are in use than ever before. None: all are.
    pub(crate) fn take(&self) -> Option<u32> {
        self.pop().or_else(|| self.grow())
    }

    /// Gives an entry back.
    pub(crate) fn give_back(&self, index: u32) {
        let link = self[index].link();
        let mut head = self.free.load(Relaxed);
        loop {
            link.store(head as u32, Relaxed);
            let after = head & !0xffff_ffff | u64::from(index + 1);
            match self.free.compare_exchange_weak(head, after, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Gives several entries back by one change of the shared word.
    pub(crate) fn give_back_all(&self, indices: &[u32]) {
        let [first, .., last] = indices else {
            return indices.iter().for_each(|&index| self.give_back(index));
        };
        for pair in indices.windows(2) {
            self[pair[0]].link().store(pair[1] + 1, Relaxed);
        }
        let last = self[*last].link();
        let mut head = self.free.load(Relaxed);
        loop {
            last.store(head as u32, Relaxed);
            let after = head & !0xffff_ffff | u64::from(first + 1);
            match self.free.compare_exchange_weak(head, after, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes up to `most` free entries by one change of the shared word. None are made anew, so `taken`
    /// may stay as it was.
    pub(crate) fn take_free(&self, most: usize, taken: &mut Vec<u32>) {
        let before = taken.len();
        let mut head = self.free.load(Acquire);
        loop {
            taken.truncate(before);
            let mut next = head as u32;
            // What is behind the head may be taken and linked anew meanwhile. Then the tag has changed,
            // and nothing of this counts.
            while taken.len() - before < most
                && let Some(index) = next.checked_sub(1)
                && let Some(entry) = self.get(index)
            {
                taken.push(index);
                next = entry.link().load(Relaxed);
            }
            if taken.len() == before {
                return;
            }
            let after = ((head >> 32) + 1) << 32 | u64::from(next);
            match self.free.compare_exchange_weak(head, after, Acquire, Acquire) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Every index that was ever given out.
    pub(crate) fn indices(&self) -> core::ops::Range<u32> {
        0..self.fresh.load(Acquire)
    }

    fn pop(&self) -> Option<u32> {
        let mut head = self.free.load(Acquire);
        loop {
            let index = (head as u32).checked_sub(1)?;
            let next = self[index].link().load(Relaxed);
            let after = ((head >> 32) + 1) << 32 | u64::from(next);
            match self.free.compare_exchange_weak(head, after, Acquire, Acquire) {
                Ok(_) => return Some(index),
                Err(now) => head = now,
            }
        }
    }

    #[cold]
    fn grow(&self) -> Option<u32> {
        let limit = self.limit() as u32;
        let index = self
            .fresh
            .fetch_update(Relaxed, Relaxed, |fresh| (fresh < limit).then_some(fresh + 1))
            .ok()?;
        let chunk = index as usize / E::CHUNK;
        let first = (chunk * E::CHUNK) as u32;
        self.chunks[chunk].get_or_init(|| (first..).take(E::CHUNK).map(E::new).collect());
        Some(index)
    }
}

impl<E: Entry> Index<u32> for Slab<E> {
    type Output = E;

    /// The entry of an index that was given out.
    #[inline]
    fn index(&self, index: u32) -> &E {
        self.get(index).expect("an index that was given out")
    }
}
