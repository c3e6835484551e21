//! Where records lie: a table that grows, and free records that lie with each thread.

use super::word::{Annex, Meta, Record};
use crate::pool::{Entry, Slab};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::time::WheelEntries;
use core::cell::RefCell;
use crossbeam_queue::ArrayQueue;
use std::sync::OnceLock;

/// All records. They are recycled, so a task allocates only while more are under way than ever before.
pub(crate) struct RecordTable<M: Meta> {
    pub(super) records: Slab<Record<M>>,
    /// Those of the records, chunk by chunk.
    annexes: Box<[Annexes<M>]>,
    /// Free ones by the share. They need not be touched to be taken, as the slab's are, which are linked:
    /// their lines may be in another core's cache.
    shares: ArrayQueue<Share<M>>,
}

/// Those of a chunk of records.
type Annexes<M> = OnceLock<Box<[Annex<M>]>>;

/// So many records go from a thread's magazine, or come to it, at once.
const SHARE: usize = 64;
type Share<M> = [&'static Record<M>; SHARE];
/// Shares beyond these go back to the slab.
const SHARES: usize = 256;

impl<M: Meta> RecordTable<M> {
    pub(crate) fn new(limit: usize) -> Self {
        let chunks = limit.div_ceil(Record::<M>::CHUNK);
        Self {
            records: Slab::new(limit),
            annexes: (0..chunks).map(|_| OnceLock::new()).collect(),
            shares: ArrayQueue::new(SHARES),
        }
    }

    /// A free record, whose fields the caller writes before `publish`. None: all are in use.
    #[inline(always)]
    pub(crate) fn take() -> Option<&'static Record<M>> {
        match M::magazine().try_with(Magazine::take) {
            Ok(record) => record,
            // This thread ends.
            Err(_) => M::table().take_alone(),
        }
    }

    #[cold]
    fn take_alone(&'static self) -> Option<&'static Record<M>> {
        self.take_from_slab().map(|index| &self.records[index])
    }

    fn take_from_slab(&self) -> Option<u32> {
        let index = self.records.take()?;
        let chunk = &self.annexes[index as usize / Record::<M>::CHUNK];
        chunk.get_or_init(|| (0..Record::<M>::CHUNK).map(|_| Annex::new()).collect());
        Some(index)
    }

    /// That of a record that has been taken before. Not inlined: few tasks need it, and what all of them do has better
    /// uses for the registers.
    #[inline(never)]
    pub(super) fn annex(&self, index: u32) -> &Annex<M> {
        let index = index as usize;
        let chunk = self.annexes[index / Record::<M>::CHUNK].get();
        &chunk.expect("it was made with the first tenancy")[index % Record::<M>::CHUNK]
    }

    /// The record of an index that was given out.
    pub(crate) fn get(&'static self, index: u32) -> Option<&'static Record<M>> {
        self.records.get(index)
    }

    /// Every record that was ever used.
    pub(crate) fn all(&'static self) -> impl Iterator<Item = &'static Record<M>> {
        self.records.indices().filter_map(|index| self.records.get(index))
    }
}

/// A wheel has a let record's link, and a word of its tenant.
impl<M: Meta> WheelEntries for RecordTable<M> {
    fn link(&self, index: u32) -> &AtomicU32 {
        &self.records[index].link
    }

    fn deadline(&self, index: u32) -> &AtomicU64 {
        M::wake_at(&self.annex(index).seldom)
    }
}

/// A few free records of one thread, so that a thread that submits and waits does not pass each of them
/// through a word that all threads share.
pub(crate) struct Magazine<M: Meta> {
    free: RefCell<Free<M>>,
}

struct Free<M: Meta> {
    records: Vec<&'static Record<M>>,
    /// Those that come next, while they come.
    coming: Vec<u32>,
}

impl<M: Meta> Magazine<M> {
    pub(crate) const fn new() -> Self {
        Self { free: RefCell::new(Free { records: Vec::new(), coming: Vec::new() }) }
    }

    #[inline(always)]
    pub(super) fn take(&self) -> Option<&'static Record<M>> {
        // Models have all their threads on one.
        if cfg!(loom) {
            return M::table().take_alone();
        }
        let mut free = self.free.borrow_mut();
        free.records.pop().or_else(|| free.refill())
    }

    #[inline]
    pub(super) fn give_back(&self, record: &'static Record<M>) {
        if cfg!(loom) {
            return M::table().records.give_back(record.index());
        }
        let mut free = self.free.borrow_mut();
        if free.records.len() >= 2 * SHARE {
            free.spill();
        }
        free.records.push(record);
    }
}

impl<M: Meta> Free<M> {
    #[cold]
    pub(super) fn refill(&mut self) -> Option<&'static Record<M>> {
        let table = M::table();
        if let Some(share) = table.shares.pop() {
            self.records.extend(share);
            return self.records.pop();
        }
        table.records.take_free(SHARE, &mut self.coming);
        if self.coming.is_empty() {
            self.coming.extend(core::iter::from_fn(|| table.take_from_slab()).take(SHARE));
            self.coming.reverse();
        }
        self.records.extend(self.coming.drain(..).map(|index| &table.records[index]));
        self.records.pop()
    }

    /// The older half goes.
    #[cold]
    fn spill(&mut self) {
        let table = M::table();
        let share: &Share<M> = self.records.first_chunk().expect("more than a share");
        if let Err(share) = table.shares.push(*share) {
            table.records.give_back_all(&share.map(|record| record.index()));
        }
        self.records.drain(..SHARE);
    }
}

impl<M: Meta> Drop for Magazine<M> {
    fn drop(&mut self) {
        for record in self.free.get_mut().records.drain(..) {
            M::table().records.give_back(record.index());
        }
    }
}
