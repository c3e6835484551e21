//! Timers that are likely to be cancelled: where they lie until a leader has a reason to look.
//!
//! # The problem
//!
//! Nearly every time-out is cancelled by the thread that armed it, long before it is due. Its way
//! through the intake into the wheel, and its dead entry's way back, would move half a dozen lines from
//! CPU to CPU for nothing. But a leader must never wait past one of those that stay.
//!
//! # The shape
//!
//! A thread that arms timers has a [`Shard`] of one set for itself. It fills the slot of a timer as
//! ever, publishes it ARMED and *staged*, and writes its key into a free cell of the shard. That is
//! all, as long as the set's leader waits no longer than until this timer is due:
//!
//! ```text
//!              stage                 leader visits
//!   FREE ───────────────► ARMED,staged ───────────► ARMED ──► in the wheel
//!    ▲                         │
//!    └──── cancel, any thread ─┘     one CAS: no entry names the slot
//! ```
//!
//! The leader visits the shards of its set, and takes all that is staged there into its wheel, when it is
//! about to wait *longer than it has said*, or when it has been asked to: by a timer that is due
//! before that. Whoever cancels first has nothing to do with the leader, nor it with the timer.
//!
//! A cell is a hint. Whether its timer is still staged is decided by the slot's word alone, by CAS with
//! the generation. Only the shard's owner writes cells, so one whose timer was taken, or cancelled
//! by another thread, stays as it is until the owner needs it. If the owner finds that most of its
//! timers stay, it hands half of them to the intake.
//!
//! Slots that the owner frees stay with it, and with their cells: a few, in a table that is large.
//!
//! What a timer is passes in registers, or lies where it is to be. A closure, a key or a handle that is
//! written in pieces, and then moved in larger ones, is waited for by the processor, which cost more than the
//! locked instructions.
//!
//! # Invariants
//!
//! 1. A staged timer's key is in a cell of a shard of its set, or its owner is just writing it there
//!    and will compare its time with what the leader says *afterwards*.
//! 2. What a leader says (`HandleSet::earliest`) is at most the deadline of every staged timer, or it
//!    has been asked to visit. It grows only before a visit.
//! 3. A claimed shard's cells and counts are written by one thread.
//!
//! # Orderings
//!
//! *Cell, then look at what the leader says* in `stage`, against *say more, then look at the cells* in
//! `Leadership::take_in_timers`: a barrier in each, so that either the owner asks for a visit or the leader sees
//! the cell. *Ask, then ring* against *arm the bell, then look whether it was asked* is the doorbell's.
//! A cell is stored with Release and loaded with Acquire: its slot is complete. A shard passes from owner to
//! owner by its bit in `claimed`, given up with Release and taken with Acquire.

use crate::pool::slots::{Key, SlotTable};
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

/// Timers that a thread may have staged.
pub(crate) const CELLS: usize = if cfg!(loom) { 2 } else { 512 };
/// Threads that may have a shard of a set.
const SHARDS: usize = 32;

/// One thread's staged timers, and its part of the counters.
pub(crate) struct Shard {
    /// `{ generation: 32, index + 1: 32 }`, or 0.
    pub(crate) cells: Box<[AtomicU64]>,
    /// Cells from here on were never used.
    pub(crate) used: AtomicU32,
    /// Timers armed here, and cancelled here: so many slots were let here, and freed.
    pub(crate) armed: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    /// Slots of those cancelled that were freed in the table's count.
    pub(crate) spilled: AtomicU64,
}

impl Shard {
    fn new() -> Self {
        Self {
            cells: (0..CELLS).map(|_| AtomicU64::new(0)).collect(),
            used: AtomicU32::new(0),
            armed: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            spilled: AtomicU64::new(0),
        }
    }

    pub(super) fn armed(self: &Arc<Self>) -> u64 {
        self.armed.load(Acquire)
    }

    pub(super) fn cancelled(self: &Arc<Self>) -> u64 {
        self.cancelled.load(Acquire)
    }

    /// Slots that were let here, less those that were freed here: it may be below zero.
    pub(super) fn slots_in_use(&self) -> u64 {
        // What has ended is read first.
        let cancelled = self.cancelled.load(Acquire);
        let let_here = self.armed.load(Acquire).wrapping_sub(cancelled);
        let_here.wrapping_add(self.spilled.load(Acquire))
    }
}

/// Counts one more where one thread writes. Release: whoever reads it sees what it counts.
#[inline]
pub(crate) fn count(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Release);
}

pub(crate) fn pack(key: Key) -> u64 {
    u64::from(key.generation) << 32 | u64::from(key.index + 1)
}

pub(crate) fn unpack(cell: u64) -> Option<Key> {
    let index = (cell as u32).checked_sub(1)?;
    Some(Key { index, generation: (cell >> 32) as u32 })
}

/// What is staged for one set.
pub(crate) struct Staging {
    /// A bit per shard: it has an owner.
    claimed: AtomicU32,
    /// The leader is to visit.
    asked: AtomicBool,
    /// Made in order, never taken away.
    shards: [OnceLock<Arc<Shard>>; SHARDS],
}

impl Staging {
    pub(crate) fn new() -> Self {
        Self {
            claimed: AtomicU32::new(0),
            asked: AtomicBool::new(false),
            shards: [const { OnceLock::new() }; SHARDS],
        }
    }

    /// All shards that there are. A shard is made before anything is staged in it.
    pub(super) fn shards(&self) -> impl Iterator<Item = &Arc<Shard>> {
        self.shards.iter().map_while(OnceLock::get)
    }

    /// Whether nothing was ever staged here.
    #[inline]
    pub(crate) fn is_unused(&self) -> bool {
        self.shards[0].get().is_none()
    }

    /// Whether the leader has been asked to visit.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        !self.is_unused() && self.asked.load(Acquire)
    }

    /// Asks the leader to visit.
    #[cold]
    pub(crate) fn ask(&self) {
        self.asked.swap(true, Release);
    }

    /// Takes all that is staged. The caller leads the set, and has passed a barrier since it said that it
    /// waits longer.
    pub(crate) fn visit(&self, slots: &SlotTable, mut take: impl FnMut(u32)) {
        // Acquire: the cell of whoever has asked is seen below. Before the cells, so that whoever asks
        // later is not forgotten.
        if self.asked.load(Relaxed) {
            self.asked.swap(false, Acquire);
        }
        for shard in self.shards() {
            let used = shard.used.load(Acquire) as usize;
            for key in shard.cells[..used].iter().filter_map(|cell| unpack(cell.load(Acquire))) {
                if slots.slot(key.index).unstage(key.generation) {
                    take(key.index);
                }
            }
        }
    }

    pub(crate) fn claim(&self) -> Option<(usize, Arc<Shard>)> {
        let mut claimed = self.claimed.load(Relaxed);
        loop {
            let free = claimed.trailing_ones() as usize;
            if free == SHARDS {
                return None;
            }
            // Acquire: the shard is as its last owner left it.
            match self.claimed.compare_exchange_weak(claimed, claimed | 1 << free, Acquire, Relaxed)
            {
                Ok(_) => {
                    let make = || Arc::new(Shard::new());
                    self.shards[..free].iter().for_each(|shard| _ = shard.get_or_init(make));
                    return Some((free, Arc::clone(self.shards[free].get_or_init(make))));
                }
                Err(now) => claimed = now,
            }
        }
    }

    pub(crate) fn give_up(&self, shard: usize) {
        self.claimed.fetch_and(!(1 << shard), Release);
    }
}
