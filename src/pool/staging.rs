//! Timers that are likely to be cancelled: where they lie until a leader has a reason to look.
//!
//! # The problem
//!
//! Nearly every time-out is cancelled by the thread that armed it, long before it is due. Its way
//! through the intake into the wheel, and its dead entry's way back, would move half a dozen lines from
//! CPU to CPU for nothing. But a leader must never sleep through one of those that stay.
//!
//! # The shape
//!
//! A thread that arms timers has a [`Shard`] of one set for itself. It fills the slot of a timer as
//! ever, publishes it ARMED and *staged*, and writes its key into a free cell of the shard. That is
//! all, as long as the set's leader sleeps no longer than until this timer is due:
//!
//! ```text
//!              stage                 leader visits
//!   FREE ───────────────► ARMED,staged ───────────► ARMED ──► in the wheel
//!    ▲                         │
//!    └──── cancel, by anybody ─┘     one CAS: no entry names the slot
//! ```
//!
//! The leader visits the shards of its set, and takes all that is staged there into its wheel, when it is
//! about to sleep *longer than it has said*, or when it has been asked to: by a timer that is due
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
use super::Shared;
use super::set::HandleSet;
use super::slots::{Key, Payload, Slot, SlotTable};
use crate::queue::Run;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use crate::sync::store_load_barrier;
use core::cell::RefCell;
use std::sync::{Arc, OnceLock, Weak};

/// Timers that a thread may have staged.
const CELLS: usize = if cfg!(loom) { 2 } else { 512 };
/// Threads that may have a shard of a set.
const SHARDS: usize = 32;
/// Pools whose shards a thread keeps.
const POOLS: usize = 4;
/// So many free slots a thread takes at once.
const SHARE: usize = 64;
/// A table with fewer slots than this is too small to have some of them rest with threads.
const LARGE: usize = 1 << 14;

/// One thread's staged timers, and its part of the books.
pub(crate) struct Shard {
    /// `{ generation: 32, index + 1: 32 }`, or 0.
    cells: Box<[AtomicU64]>,
    /// Cells from here on were never used.
    used: AtomicU32,
    /// Timers armed here, and cancelled here: so many slots were let here, and freed.
    armed: AtomicU64,
    cancelled: AtomicU64,
    /// Slots of those cancelled that were freed in the table's books.
    spilled: AtomicU64,
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
}

/// Counts one more where one thread writes. Release: whoever reads it sees what it counts.
#[inline]
fn count(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Release);
}

fn pack(key: Key) -> u64 {
    u64::from(key.generation) << 32 | u64::from(key.index + 1)
}

fn unpack(cell: u64) -> Option<Key> {
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
    fn shards(&self) -> impl Iterator<Item = &Arc<Shard>> {
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
    /// sleeps longer.
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

    fn claim(&self) -> Option<(usize, Arc<Shard>)> {
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

    fn give_up(&self, shard: usize) {
        self.claimed.fetch_and(!(1 << shard), Release);
    }
}

/// How many free slots a thread may keep of a table of so many: all threads together a quarter at most, and
/// none more than it has cells.
fn slots_to_keep(limit: usize) -> usize {
    match limit {
        ..LARGE => 0,
        _ => (limit >> 9).clamp(2 * SHARE, 512),
    }
}

/// A thread's hold on a shard.
pub(crate) struct Own {
    shared: Weak<Shared>,
    /// Where that is, which cannot be anybody else's.
    address: usize,
    set: u16,
    number: usize,
    shard: Arc<Shard>,
    /// Free slots, each with a cell that holds nothing.
    ready: Vec<(u32, u16)>,
    /// Other cells that hold nothing, the first ones last.
    free_cells: Vec<u16>,
    /// Other free slots.
    free_slots: Vec<u32>,
    /// How many free slots it may keep.
    keep: usize,
}

thread_local! {
    /// The last one used comes first.
    static OWN: RefCell<Vec<Own>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f` with this thread's hold on a shard of `shared`, if it has one.
#[inline]
fn with_own<R>(shared: &Arc<Shared>, f: impl FnOnce(&mut Own) -> R) -> Option<R> {
    OWN.try_with(|own| {
        let mut own = own.try_borrow_mut().ok()?;
        match own.first_mut() {
            Some(first) if first.is_of(shared) => Some(f(first)),
            _ => find_own(&mut own, shared).map(f),
        }
    })
    .ok()?
}

#[cold]
fn find_own<'a>(own: &'a mut [Own], shared: &Arc<Shared>) -> Option<&'a mut Own> {
    let found = own.iter().position(|own| own.is_of(shared))?;
    own[..=found].rotate_right(1);
    own.first_mut()
}

#[cold]
fn become_owner(shared: &Arc<Shared>) {
    let Some(claimed) = Own::claim(shared) else { return };
    let given_up = OWN.try_with(|own| {
        let mut own = own.try_borrow_mut().ok()?;
        own.insert(0, claimed);
        let (keep, mut gone): (Vec<_>, Vec<_>) =
            own.drain(..).partition(|own| own.shared.strong_count() > 0);
        *own = keep;
        let kept = POOLS.min(own.len());
        gone.extend(own.drain(kept..));
        Some(gone)
    });
    // Without the borrow: the last reference to a pool may be among them.
    drop(given_up);
}

impl Own {
    /// Claims a shard for this thread. None: all have owners.
    #[cold]
    pub(crate) fn claim(shared: &Arc<Shared>) -> Option<Self> {
        let set = shared.pick_set();
        let (number, shard) = shared.sets[set as usize].staging.claim()?;
        let keep = slots_to_keep(shared.slots.limit());
        let mut own = Self {
            shared: Arc::downgrade(shared),
            address: Arc::as_ptr(shared) as usize,
            set,
            number,
            shard,
            ready: Vec::with_capacity(keep.saturating_sub(SHARE)),
            free_cells: Vec::with_capacity(CELLS),
            free_slots: Vec::new(),
            keep,
        };
        own.free_slots.reserve_exact(keep + SHARE);
        own.find_free_cells(shared);
        Some(own)
    }

    #[inline]
    fn is_of(&self, shared: &Arc<Shared>) -> bool {
        self.address == Arc::as_ptr(shared) as usize
    }

    #[inline]
    fn home<'a>(&self, shared: &'a Shared) -> &'a HandleSet {
        &shared.sets[self.set as usize]
    }

    /// Arms a timer for the work that is `given`, and tells its key's token. If there is no cell or no slot for
    /// it, nothing is taken.
    #[inline]
    pub(crate) fn stage<F: Run, N: FnOnce(Key)>(
        &mut self,
        shared: &Shared,
        deadline: u64,
        given: &mut Option<(F, N)>,
    ) -> Option<u64> {
        let (index, cell) = match self.ready.pop() {
            Some(ready) => ready,
            None => self.make_ready(shared)?,
        };
        let (work, named) = given.take()?;
        let number = (self.number as u32) << 16 | u32::from(cell);
        let key = shared.slots.stage(index, self.set, work, deadline, number);
        let shard = &*self.shard;
        count(&shard.armed);
        named(key);
        let place = usize::from(cell);
        shard.cells[place].store(pack(key), Release);
        if place >= shard.used.load(Relaxed) as usize {
            shard.used.store(u32::from(cell) + 1, Release);
        }
        // Against *say more, then look at the cells* in the leader, and *stop, then sweep*.
        store_load_barrier();
        self.home(shared).ask(deadline);
        Some(key.token())
    }

    /// Cancels a timer that is still staged, by whomever. False: it is not. The caller drops what is its
    /// `closure` then, without the hold.
    #[inline]
    pub(crate) fn cancel(&mut self, shared: &Shared, key: Key, closure: &mut Payload) -> bool {
        let Some(slot) = shared.slots.get(key.index) else { return false };
        let Some(place) = shared.slots.close_staged(slot, key.generation, closure) else {
            return false;
        };
        count(&self.shard.cancelled);
        let cell = place as u16;
        let is_own = slot.traits().set == self.set && (place >> 16) as usize == self.number;
        if is_own {
            self.shard.cells[usize::from(cell)].store(0, Relaxed);
        }
        if is_own && self.ready.len() < self.ready.capacity() {
            slot.vacate();
            self.ready.push((key.index, cell));
        } else {
            self.part(shared, slot, key.index, is_own.then_some(cell));
        }
        true
    }

    /// A slot and its cell go apart. Another shard's owner finds its cell out of date.
    #[cold]
    fn part(&mut self, shared: &Shared, slot: &Slot, index: u32, cell: Option<u16>) {
        self.free_cells.extend(cell);
        if self.ready.len() + self.free_slots.len() < self.keep {
            slot.vacate();
            self.free_slots.push(index);
        } else {
            self.spill(shared, index);
        }
    }

    #[cold]
    fn spill(&mut self, shared: &Shared, index: u32) {
        count(&self.shard.spilled);
        shared.slots.free(index);
        if self.free_slots.len() >= SHARE {
            shared.slots.give_back_all(&self.free_slots[..SHARE]);
            self.free_slots.drain(..SHARE);
        }
    }

    #[cold]
    fn make_ready(&mut self, shared: &Shared) -> Option<(u32, u16)> {
        let cell = self.free_cells.pop().or_else(|| self.make_room(shared))?;
        let index = self.free_slots.pop().or_else(|| self.take_slots(shared));
        if index.is_none() {
            self.free_cells.push(cell);
        }
        Some((index?, cell))
    }

    #[cold]
    fn take_slots(&mut self, shared: &Shared) -> Option<u32> {
        match self.keep {
            0 => shared.slots.take(),
            _ => {
                shared.slots.take_free(SHARE, &mut self.free_slots);
                self.free_slots.pop().or_else(|| shared.slots.take())
            }
        }
    }

    /// Looks for cells that are out of date. If they are few, half of what is staged goes to the intake.
    #[cold]
    fn make_room(&mut self, shared: &Shared) -> Option<u16> {
        self.find_free_cells(shared);
        if self.free_cells.len() <= CELLS / 4 {
            self.hand_over(shared);
            self.find_free_cells(shared);
        }
        self.free_cells.pop()
    }

    pub(crate) fn find_free_cells(&mut self, shared: &Shared) {
        // Their cells are found again.
        self.free_slots.extend(self.ready.drain(..).map(|(slot, _)| slot));
        let shard = &*self.shard;
        self.free_cells.clear();
        for (place, cell) in shard.cells.iter().enumerate().rev() {
            let held = cell.load(Relaxed);
            let is_staged = |key: Key| shared.slots.slot(key.index).is_staged(key.generation);
            if unpack(held).is_some_and(is_staged) {
                continue;
            }
            if held != 0 {
                cell.store(0, Relaxed);
            }
            self.free_cells.push(place as u16);
        }
    }

    pub(crate) fn hand_over(&self, shared: &Shared) {
        let home = self.home(shared);
        let mut earliest = u64::MAX;
        let cells = &self.shard.cells[..CELLS / 2];
        for key in cells.iter().filter_map(|cell| unpack(cell.load(Relaxed))) {
            let slot = shared.slots.slot(key.index);
            if slot.unstage(key.generation) {
                earliest = earliest.min(slot.deadline());
                home.push_timer(&shared.slots, key.index);
            }
        }
        store_load_barrier();
        home.ask(earliest);
    }
}

impl Drop for Own {
    /// What is staged stays so; the shard's next owner finds it there.
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        if shared.is_forked() {
            return;
        }
        self.free_slots.extend(self.ready.iter().map(|&(slot, _)| slot));
        shared.slots.give_back_all(&self.free_slots);
        self.home(&shared).staging.give_up(self.number);
    }
}

impl Shared {
    /// Arms a timer in this thread's shard, and passes a barrier. None: nothing was taken. Else the key's token.
    #[inline]
    pub(super) fn stage_timer<F: Run, N: FnOnce(Key)>(
        self: &Arc<Self>,
        deadline: u64,
        given: &mut Option<(F, N)>,
    ) -> Option<u64> {
        // A host that polls has an alarm to be set, by whoever arms. Models have all their threads on one.
        if self.hosted.load(Relaxed) || cfg!(loom) {
            return None;
        }
        match with_own(self, |own| own.stage(self, deadline, given)) {
            Some(token) => token,
            None => self.stage_as_owner(deadline, given),
        }
    }

    /// The same, of a thread that has no shard yet.
    #[cold]
    fn stage_as_owner<F: Run, N: FnOnce(Key)>(
        self: &Arc<Self>,
        deadline: u64,
        given: &mut Option<(F, N)>,
    ) -> Option<u64> {
        become_owner(self);
        with_own(self, |own| own.stage(self, deadline, given)).flatten()
    }

    /// Cancels a timer that is still staged. False: it is not, or this thread has no shard.
    #[inline]
    pub(super) fn cancel_staged(self: &Arc<Self>, key: Key, closure: &mut Payload) -> bool {
        !cfg!(loom) && with_own(self, |own| own.cancel(self, key, closure)).unwrap_or(false)
    }

    /// What was staged here, for the books: armed, cancelled.
    pub(crate) fn staged(&self) -> (u64, u64) {
        let shards = || self.sets.iter().flat_map(|set| set.staging.shards());
        // What has ended is read first.
        let cancelled = shards().map(|shard| shard.cancelled.load(Acquire)).sum();
        (shards().map(|shard| shard.armed.load(Acquire)).sum(), cancelled)
    }

    /// Slots that are let.
    pub(crate) fn slots_in_use(&self) -> u64 {
        let shards = self.sets.iter().flat_map(|set| set.staging.shards());
        // What has ended is read first.
        let here = shards.map(|shard| {
            let cancelled = shard.cancelled.load(Acquire);
            let let_here = shard.armed.load(Acquire).wrapping_sub(cancelled);
            let_here.wrapping_add(shard.spilled.load(Acquire))
        });
        here.fold(self.slots.in_use(), u64::wrapping_add)
    }
}
