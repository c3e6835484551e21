//! A thread's hold on a shard, and what it does there: arm timers, and cancel them. `leader/staging.rs` describes
//! what a shard is, and why.

use crate::pool::leader::{CELLS, HandleSet, Shard, count, pack, unpack};
use crate::pool::shared::Shared;
use crate::pool::slots::{Key, Payload, Slot};
use crate::queue::Run;
use crate::sync::atomic::Ordering::{Relaxed, Release};
use crate::sync::store_load_barrier;
use core::cell::RefCell;
use std::sync::{Arc, Weak};

/// Pools whose shards a thread keeps.
const POOLS: usize = 4;
/// So many free slots a thread takes at once.
const SHARE: usize = 64;
/// A table with fewer slots than this is too small to have some of them rest with threads.
const LARGE: usize = 1 << 14;

/// Arms a timer in this thread's shard, and passes a barrier. None: nothing was taken. Else the key's token.
#[inline]
pub(super) fn arm<F: Run, N: FnOnce(Key)>(
    shared: &Arc<Shared>,
    deadline: u64,
    given: &mut Option<(F, N)>,
) -> Option<u64> {
    // A host that polls has an alarm to be set, by whoever arms. Models have all their threads on one.
    if shared.alarm.is_wanted() || cfg!(loom) {
        return None;
    }
    match with_own(shared, |own| own.stage(shared, deadline, given)) {
        Some(token) => token,
        None => arm_as_owner(shared, deadline, given),
    }
}

/// The same, of a thread that has no shard yet.
#[cold]
fn arm_as_owner<F: Run, N: FnOnce(Key)>(
    shared: &Arc<Shared>,
    deadline: u64,
    given: &mut Option<(F, N)>,
) -> Option<u64> {
    become_owner(shared);
    with_own(shared, |own| own.stage(shared, deadline, given)).flatten()
}

/// Cancels a timer that is still staged. False: it is not, or this thread has no shard.
#[inline]
pub(super) fn cancel(shared: &Arc<Shared>, key: Key, closure: &mut Payload) -> bool {
    !cfg!(loom) && with_own(shared, |own| own.cancel(shared, key, closure)).unwrap_or(false)
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
    /// Its address, which no other pool can have.
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
        let set = shared.ready.handles.sets.pick();
        let (number, shard) = shared.ready.handles.sets[set as usize].staging.claim()?;
        let keep = slots_to_keep(shared.ready.handles.slots.limit());
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
        &shared.ready.handles.sets[self.set as usize]
    }

    /// Arms a timer for the work that is `given`, and returns its key's token. If there is no cell or no slot for
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
        let key = shared.ready.handles.slots.stage(index, self.set, work, deadline, number);
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
        let Some(slot) = shared.ready.handles.slots.get(key.index) else { return false };
        let Some(place) = shared.ready.handles.slots.close_staged(slot, key.generation, closure)
        else {
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
        shared.ready.handles.slots.free(index);
        if self.free_slots.len() >= SHARE {
            shared.ready.handles.slots.give_back_all(&self.free_slots[..SHARE]);
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
            0 => shared.ready.handles.slots.take(),
            _ => {
                shared.ready.handles.slots.take_free(SHARE, &mut self.free_slots);
                self.free_slots.pop().or_else(|| shared.ready.handles.slots.take())
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
            let is_staged =
                |key: Key| shared.ready.handles.slots.slot(key.index).is_staged(key.generation);
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
            let slot = shared.ready.handles.slots.slot(key.index);
            if slot.unstage(key.generation) {
                earliest = earliest.min(slot.deadline());
                home.push_timer(&shared.ready.handles.slots, key.index);
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
        shared.ready.handles.slots.give_back_all(&self.free_slots);
        self.home(&shared).staging.give_up(self.number);
    }
}
