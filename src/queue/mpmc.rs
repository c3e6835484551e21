//! A bounded lock-free queue for many producers and many consumers.
//!
//! # The problem
//!
//! Threads put values in and take them out without locks, singly or in batches, and never copy a
//! value more than once each way. A thread that stops half-way may delay others, but never makes
//! the ring lie: "empty" must not be said because somebody else is slow.
//!
//! # The idea
//!
//! Dmitry Vyukov's bounded MPMC queue: positions count up for ever, and each slot says by itself
//! for which position it is ready. Added here: claiming a run of slots by one CAS, a third answer
//! beside "some" and "empty", and close bits in the tail.
//!
//! ```text
//!  tail  { closed_all:1, closed_outside:1, position:62 }   next position to push
//!  head  { position:64 }                                   next position to pop
//!
//!          head                 tail
//!           │                    │
//!   ┌───┬───┼───┬───┬───┬───┬───┬┴──┬───┐      p  published      ·  free
//!   │ · │ c │ p │ p │ w │ p │ p │ · │ · │      w  being written  c  claimed, not yet taken
//!   └───┴───┴───┴───┴───┴───┴───┴───┴───┘
//! ```
//!
//! A slot's state is `{ 0:2, published:1, lap:61 }`, where the lap is the position with its index bits
//! cleared. A fresh ring is therefore all zeros, and its memory is not there before it is needed.
//!
//! | state | means for position p = lap + index | changed by | to |
//! |---|---|---|---|
//! | `{0, lap}`, p ≥ tail | free | whoever moved the tail over p | itself, writing |
//! | `{0, lap}`, p < tail | being written: `Busy` | the same | `{1, lap}` |
//! | `{1, lap}`, p ≥ head | published | whoever moved the head over p | itself, reading |
//! | `{1, lap}`, p < head | claimed, not yet taken | the same | `{0, lap + capacity}` |
//!
//! # Invariants
//!
//! 1. A position is pushed by the one thread whose CAS moved the tail over it, and that thread had
//!    seen its slot free. Head and tail only grow, so a successful CAS proves that what was seen
//!    still holds.
//! 2. A position is taken by the one thread whose CAS moved the head over it, and that thread had
//!    seen its slot published.
//! 3. A slot holds a live value exactly while `published` is set.
//! 4. No code of the user runs between a claim and its end; where a closure must, a guard ends it.
//! 5. `Empty` is said only after the tail was seen equal to the head, so a value that was published
//!    before (in the sense of happens-before) and that nobody else has claimed is never missed.
//! 6. After `close`, no push that it refuses is accepted: both change the tail.
//!
//! # Orderings
//!
//! | store | partner | carries |
//! |---|---|---|
//! | state := published, Release | Acquire in `published_from` | the value |
//! | state := next lap, Release | Acquire in `free_from` | the end of the read |
//! | head CAS, Release | Acquire load of the head in `claim`, `head` | the tail as the claimer saw it, so that whoever sees the head sees a tail that is not behind it, and a push before that pop too (5) |
//! | tail CAS, Release | Acquire load of the tail in `claim_free`, `tail` | the same for "full": a pop before that push is seen |
//!
//! Loads are made in the order that makes the answer true at the instant of the last one: head
//! before tail for "empty", tail before head for "full". On x86-64 all of this is free.
#![allow(unsafe_code, reason = "slots are handed from thread to thread by their state words")]

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{CachePadded, UnsafeCell};
use crate::{Error, Result};
use core::alloc::Layout;
use core::mem::{MaybeUninit, align_of, size_of};
use core::ptr::NonNull;
use core::slice;
use std::alloc;

/// Refuses pushes from [`Origin::Outside`].
pub(crate) const CLOSED_OUTSIDE: u64 = 1 << 62;
/// Refuses every push.
pub(crate) const CLOSED_ALL: u64 = 1 << 63;
const POSITION: u64 = CLOSED_OUTSIDE - 1;

/// Beside the close bits, so that a tail with one of them equals no state.
const PUBLISHED: u64 = 1 << 61;

/// The largest capacity of any ring.
pub(crate) const MAX_CAPACITY: usize = 1 << 31;

const LINE: usize = 64;

/// How far ahead single operations ask for a line to write to, where a slot fills one. Each of them
/// ends with a locked instruction, which waits for all that went before: without this, so does the
/// next operation for its own line. It makes a queue beyond the first cache, used by threads that
/// share a core, about twice as fast, and costs nothing when they do not.
const PUSH_AHEAD: u64 = 8;
const POP_AHEAD: u64 = 4;

/// How many slots of a batch are written before they are published, and read before they are
/// released, *the last one first*. Who waits at the other end looks at the first of them: it meets
/// all of the chunk or none, instead of following slot by slot on the very lines that this thread
/// is working on. That made batches three to six times as fast.
const CHUNK: usize = 16;

/// Who pushes; it decides which close bit refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Outside,
    Inside,
}

impl Origin {
    #[inline(always)]
    fn refused_by(self) -> u64 {
        match self {
            Self::Outside => CLOSED_OUTSIDE | CLOSED_ALL,
            Self::Inside => CLOSED_ALL,
        }
    }
}

/// A push that did not happen, with what should have gone in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum PushError<T> {
    /// The next slot still holds the value of one lap ago. That may have been claimed but not yet
    /// taken, so a ring can be full while its length is less than its capacity.
    Full(T),
    /// Closed for this origin, for good.
    Closed(T),
}

impl<T> PushError<T> {
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> PushError<U> {
        match self {
            Self::Full(value) => PushError::Full(f(value)),
            Self::Closed(value) => PushError::Closed(f(value)),
        }
    }
}

/// Why nothing was popped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum PopError {
    /// There was nothing.
    Empty,
    /// The next slot is being written. There may be published values behind it: never to be trusted
    /// as empty, and never to be waited for by spinning alone.
    Busy,
}

/// A run of positions that belong to the thread that claimed them.
#[must_use = "a claimed slot that is not used is lost to the ring"]
struct Claim {
    start: u64,
    len: usize,
}

/// See the module's documentation.
pub(crate) struct MpmcRing<T> {
    head: CachePadded<AtomicU64>,
    tail: CachePadded<AtomicU64>,
    slots: Slots<T>,
}

// SAFETY: values move through the ring from thread to thread, one owner at a time (invariants 1, 2).
unsafe impl<T: Send> Send for MpmcRing<T> {}
// SAFETY: as above; no `&T` is ever handed out, so `T: Sync` is not needed.
unsafe impl<T: Send> Sync for MpmcRing<T> {}

impl<T> MpmcRing<T> {
    /// Room for `capacity` values, rounded up to a power of two. `name` is what the error calls it.
    pub(crate) fn new(name: &'static str, capacity: usize) -> Result<Self> {
        if !(1..=MAX_CAPACITY).contains(&capacity) {
            return Err(Error::invalid(name, capacity, format!("1 to {MAX_CAPACITY}")));
        }
        Ok(Self {
            head: CachePadded::new(AtomicU64::new(0)),
            tail: CachePadded::new(AtomicU64::new(0)),
            slots: Slots::new(name, capacity.next_power_of_two())?,
        })
    }

    /// Has the system provide the memory of a new ring now, so that no push waits for it.
    pub(crate) fn touch(&mut self) {
        debug_assert!(self.tail() == 0);
        self.slots.touch();
    }

    /// Appends `value`, or gives it back.
    #[inline]
    pub(crate) fn try_push(&self, value: T, origin: Origin) -> Result<(), PushError<T>> {
        // SAFETY: the value is written.
        unsafe {
            self.try_push_with(value, origin, |place, value| {
                place.write(value);
            })
        }
    }

    /// Appends what `put` makes of `value` in its place, or gives it back. `put` runs while its slot holds
    /// up everyone, so it must be short; if it panics the process is aborted.
    ///
    /// # Safety
    ///
    /// On return of `put` there is a `T` in the place that it is given.
    #[inline(always)]
    pub(crate) unsafe fn try_push_with<V>(
        &self,
        value: V,
        origin: Origin,
        put: impl FnOnce(&mut MaybeUninit<T>, V),
    ) -> Result<(), PushError<V>> {
        let position = match self.claim_one_free() {
            Some(position) => position,
            None => match self.claim_one_free_again(origin) {
                Ok(position) => position,
                Err(refused) => return Err(refused.map(|()| value)),
            },
        };
        self.slots.prefetch(position + PUSH_AHEAD);
        let slot = self.slots.at(position);
        let unpublished = AbortOnUnwind;
        // SAFETY: the position is ours to write (invariant 1).
        unsafe { slot.write_with(|place| put(place, value)) };
        slot.publish(self.slots.lap(position));
        core::mem::forget(unpublished);
        Ok(())
    }

    /// Appends up to `count` values, by one CAS; says how many. `make` is called that many times.
    ///
    /// `make` runs while its slots hold up everyone, so it must be short; if it panics the process
    /// is aborted.
    #[inline]
    pub(crate) fn push_batch_with(
        &self,
        count: usize,
        origin: Origin,
        mut make: impl FnMut() -> T,
    ) -> Result<usize, PushError<()>> {
        if count == 0 {
            return Ok(0);
        }
        let free = self.claim_free(count, origin)?;
        let unpublished = AbortOnUnwind;
        for (lap, slots) in self.slots.run(free.start, free.len) {
            for chunk in slots.chunks(CHUNK) {
                // SAFETY: the positions are ours to write (invariant 1).
                chunk.iter().for_each(|slot| unsafe { slot.write(make()) });
                chunk.iter().rev().for_each(|slot| slot.publish(lap));
            }
        }
        core::mem::forget(unpublished);
        Ok(free.len)
    }

    /// Removes the oldest value.
    #[inline]
    pub(crate) fn try_pop(&self) -> Result<T, PopError> {
        let position = match self.claim_one() {
            Some(position) => position,
            None => self.claim_one_again()?,
        };
        self.slots.prefetch(position + POP_AHEAD);
        let slot = self.slots.at(position);
        // SAFETY: claimed just now, read once (invariant 2).
        let value = unsafe { slot.read() };
        slot.release(self.slots.next_lap(position));
        Ok(value)
    }

    /// Removes up to `max` of the oldest values by one CAS and gives them to `sink`; says how many.
    /// Should `sink` panic, the rest of them are dropped.
    #[inline]
    pub(crate) fn pop_batch(&self, max: usize, mut sink: impl FnMut(T)) -> Result<usize, PopError> {
        if max == 0 {
            return Ok(0);
        }
        let claim = self.claim(max)?;
        let runs = self.slots.run(claim.start, claim.len);
        let mut rest = Rest { slots: &self.slots, runs };
        while let Some(mut chunk) = rest.next_chunk() {
            while let Some(value) = chunk.read_next() {
                sink(value);
            }
        }
        Ok(claim.len)
    }

    /// Refuses pushes from now on; `which` is [`CLOSED_OUTSIDE`] or [`CLOSED_ALL`]. Pushes already
    /// accepted may still be being written: they show as `Busy`.
    pub(crate) fn close(&self, which: u64) {
        debug_assert!(which & POSITION == 0);
        self.tail.fetch_or(which, Relaxed);
    }

    /// Whether a push from there would be refused as closed.
    pub(crate) fn is_closed(&self, origin: Origin) -> bool {
        self.tail.load(Relaxed) & origin.refused_by() != 0
    }

    /// The position of the oldest unclaimed value: how many were claimed since the start.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        self.head.load(Acquire)
    }

    /// The position of the next push: how many were accepted since the start.
    #[inline]
    pub(crate) fn tail(&self) -> u64 {
        self.tail.load(Acquire) & POSITION
    }

    /// Whether the oldest unclaimed value has been published, so that a claim would get it. A value
    /// that is still being written does not count: its producer wakes somebody when it is done.
    #[inline]
    pub(crate) fn is_claimable(&self) -> bool {
        self.published_from(self.head(), 1) != 0
    }

    /// How many values are accepted and unclaimed. Exact when nobody pushes or pops, and else a
    /// number that was true at some instant of the call, or slightly less.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // The head first: it never passes the tail, so the difference is not negative.
        let head = self.head();
        ((self.tail() - head) as usize).min(self.capacity())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        let head = self.head();
        self.tail() == head
    }

    /// Whether as many values are accepted and unclaimed as there are slots.
    pub(crate) fn is_full(&self) -> bool {
        // The tail first: if a head that was seen later is a whole lap behind, there was no room.
        let tail = self.tail();
        tail - self.head().min(tail) == self.slots.capacity()
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity() as usize
    }

    /// Claims one free position; none if there is anything in the way.
    #[inline(always)]
    fn claim_one_free(&self) -> Option<u64> {
        // Acquire: pairs with the Release of the CAS.
        let tail = self.tail.load(Acquire);
        // A closed tail is in no lap. Acquire: pairs with the Release in `Slot::release`.
        let is_free = self.slots.at(tail).state.load(Acquire) == self.slots.lap(tail);
        // A close bit that was set meanwhile makes it fail.
        let claim = || self.tail.compare_exchange(tail, tail + 1, Release, Relaxed);
        (is_free && claim().is_ok()).then_some(tail)
    }

    #[cold]
    fn claim_one_free_again(&self, origin: Origin) -> Result<u64, PushError<()>> {
        self.claim_free(1, origin).map(|free| free.start)
    }

    /// Claims up to `max` free positions by one CAS.
    #[inline]
    fn claim_free(&self, max: usize, origin: Origin) -> Result<Claim, PushError<()>> {
        let mut lost = Lost::new();
        // Acquire, here and below: pairs with the Release of the CAS.
        let mut tail = self.tail.load(Acquire);
        loop {
            if tail & origin.refused_by() != 0 {
                return Err(PushError::Closed(()));
            }
            let start = tail & POSITION;
            let len = self.free_from(start, max);
            if len == 0 {
                let now = self.tail.load(Acquire);
                if now == tail {
                    return Err(PushError::Full(()));
                }
                tail = now;
                continue;
            }
            // A close bit that was set meanwhile makes it fail.
            match self.tail.compare_exchange(tail, tail + len as u64, Release, Acquire) {
                Ok(_) => return Ok(Claim { start, len }),
                Err(now) => tail = now,
            }
            lost.back_off();
        }
    }

    /// Claims one published position; none if there is nothing or anything in the way.
    #[inline(always)]
    fn claim_one(&self) -> Option<u64> {
        // Acquire: pairs with the Release of the CAS.
        let head = self.head.load(Acquire);
        // Acquire: pairs with the Release in `Slot::publish`.
        let state = self.slots.at(head).state.load(Acquire);
        let is_published = state == self.slots.lap(head) | PUBLISHED;
        let claim = || self.head.compare_exchange(head, head + 1, Release, Relaxed);
        (is_published && claim().is_ok()).then_some(head)
    }

    #[cold]
    fn claim_one_again(&self) -> Result<u64, PopError> {
        self.claim(1).map(|claim| claim.start)
    }

    /// Claims up to `max` (at least 1) of the oldest values by one CAS.
    #[inline]
    fn claim(&self, max: usize) -> Result<Claim, PopError> {
        debug_assert!(max > 0);
        let mut lost = Lost::new();
        let mut waited = false;
        loop {
            // Acquire: pairs with the Release below, and keeps the load of the tail behind this one.
            let head = self.head.load(Acquire);
            let len = self.published_from(head, max);
            if len == 0 {
                match self.why_nothing(head) {
                    Some(PopError::Busy) if !waited => keep_off(),
                    Some(why) => return Err(why),
                    None => {}
                }
                waited = true;
                continue;
            }
            // Release: pairs with the Acquire above. The slots' states carry the values.
            match self.head.compare_exchange(head, head + len as u64, Release, Relaxed) {
                Ok(_) => return Ok(Claim { start: head, len }),
                Err(_) => lost.back_off(),
            }
        }
    }

    /// How many slots from `start` on are free, up to `max`.
    #[inline]
    fn free_from(&self, start: u64, max: usize) -> usize {
        // Acquire: pairs with the Release in `Slot::release`.
        self.count_in_state(start, max, 0)
    }

    /// How many slots from `start` on are published, up to `max`.
    #[inline]
    fn published_from(&self, start: u64, max: usize) -> usize {
        // Acquire: pairs with the Release in `Slot::publish`.
        self.count_in_state(start, max, PUBLISHED)
    }

    #[inline(always)]
    fn count_in_state(&self, start: u64, max: usize, published: u64) -> usize {
        let mut count = 0;
        for (lap, slots) in self.slots.run(start, max.min(self.capacity())) {
            for slot in slots {
                if slot.state.load(Acquire) != lap | published {
                    return count;
                }
                count += 1;
            }
        }
        count
    }

    /// Why the slot at `head` was not published; none if the head has moved on.
    #[cold]
    fn why_nothing(&self, head: u64) -> Option<PopError> {
        let tail = self.tail();
        if self.head.load(Relaxed) != head {
            return None;
        }
        Some(if tail == head { PopError::Empty } else { PopError::Busy })
    }
}

impl<T> Drop for MpmcRing<T> {
    /// Should a value's drop panic, those behind it leak.
    fn drop(&mut self) {
        while let Ok(value) = self.try_pop() {
            drop(value);
        }
    }
}

/// What has not been begun of a claim. Dropping it, as only a panic does, drops the values.
struct Rest<'a, T> {
    slots: &'a Slots<T>,
    runs: [(u64, &'a [Slot<T>]); 2],
}

impl<'a, T> Rest<'a, T> {
    #[inline]
    fn next_chunk(&mut self) -> Option<Chunk<'a, T>> {
        let (lap, slots) = self.runs.iter_mut().find(|(_, slots)| !slots.is_empty())?;
        let (chunk, rest) = slots.split_at(slots.len().min(CHUNK));
        *slots = rest;
        Some(Chunk { slots: chunk, unread: chunk.iter(), next_lap: *lap + self.slots.capacity() })
    }
}

impl<T> Drop for Rest<'_, T> {
    #[inline]
    fn drop(&mut self) {
        while let Some(chunk) = self.next_chunk() {
            drop(chunk);
        }
    }
}

/// A chunk of a claim. Dropping it releases its slots, the last one first.
struct Chunk<'a, T> {
    slots: &'a [Slot<T>],
    unread: slice::Iter<'a, Slot<T>>,
    next_lap: u64,
}

impl<T> Chunk<'_, T> {
    #[inline]
    fn read_next(&mut self) -> Option<T> {
        // SAFETY: the slot is claimed, and is read once (invariant 2).
        self.unread.next().map(|slot| unsafe { slot.read() })
    }
}

impl<T> Drop for Chunk<'_, T> {
    #[inline]
    fn drop(&mut self) {
        while let Some(value) = self.read_next() {
            drop(value);
        }
        self.slots.iter().rev().for_each(|slot| slot.release(self.next_lap));
    }
}

/// Ends the process when unwinding drops it.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// How long to stay away after a lost CAS: four times as long after each one.
///
/// Whoever wins a race works on lines that are its own, and whoever tries again takes them away. So
/// losers leave early and for long, and the winner gets a run of many operations at full speed.
struct Lost {
    pauses: u32,
}

impl Lost {
    const FIRST: u32 = 32;
    const LONGEST: u32 = 512;

    #[inline(always)]
    fn new() -> Self {
        Self { pauses: Self::FIRST }
    }

    #[cold]
    fn back_off(&mut self) {
        pause(self.pauses);
        self.pauses = (self.pauses * 4).min(Self::LONGEST);
    }
}

/// Gives a thread at the other end time to finish, and to get ahead.
///
/// It needs a few instructions, and this is some microseconds: whoever comes back at once will
/// find the next slot unfinished too, and again, and each look takes the line from the thread that
/// is writing it. After a wait there is a run of finished slots. Single operations became two to
/// three times as fast by this.
#[cold]
pub(crate) fn keep_off() {
    pause(128);
}

fn pause(pauses: u32) {
    #[cfg(loom)]
    {
        let _ = pauses;
        loom::thread::yield_now();
    }
    #[cfg(not(loom))]
    for _ in 0..pauses {
        core::hint::spin_loop();
    }
}

/// With a value of 56 bytes this is one line of the cache; small values are packed.
#[repr(C)]
struct Slot<T> {
    state: AtomicU64,
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Slot<T> {
    /// # Safety
    ///
    /// The slot's position in this lap was claimed by this thread with `claim_free`, and the value
    /// is written before it is published, once.
    #[inline(always)]
    unsafe fn write(&self, value: T) {
        // SAFETY: as the caller promises.
        unsafe { self.write_with(|place| *place = MaybeUninit::new(value)) };
    }

    /// The same, by `put`.
    ///
    /// # Safety
    ///
    /// As for [`write`](Self::write); on return of `put` there is a value.
    #[inline(always)]
    unsafe fn write_with(&self, put: impl FnOnce(&mut MaybeUninit<T>)) {
        // SAFETY: the slot is free and ours (invariant 1), so nobody else looks at the value.
        self.value.with_mut(|place| put(unsafe { &mut *place }));
    }

    #[inline(always)]
    fn publish(&self, lap: u64) {
        // Release: pairs with the Acquire in `published_from` and `claim_one`.
        self.state.store(lap | PUBLISHED, Release);
    }

    /// # Safety
    ///
    /// The slot's position was claimed, that happened before, and the value is read before it is
    /// released, once.
    #[inline(always)]
    unsafe fn read(&self) -> T {
        // SAFETY: the slot is published and the claim is ours alone (invariants 2 and 3).
        self.value.with(|value| unsafe { value.read().assume_init() })
    }

    #[inline(always)]
    fn release(&self, next_lap: u64) {
        // Release: pairs with the Acquire in `free_from` and `claim_one_free`; the read is over
        // before the next write.
        self.state.store(next_lap, Release);
    }
}

/// The array of slots, aligned to a line, and zeroed by the system rather than by writing to it.
struct Slots<T> {
    first: NonNull<Slot<T>>,
    mask: u64,
    memory: NonNull<u8>,
}

impl<T> Slots<T> {
    fn new(name: &'static str, capacity: usize) -> Result<Self> {
        let too_large = || Error::invalid(name, capacity, "a capacity whose slots fit in memory");
        let layout = Self::layout(capacity).ok_or_else(too_large)?;
        // SAFETY: a slot has a state, so the layout's size is not zero.
        let memory = NonNull::new(unsafe { alloc::alloc_zeroed(layout) }).ok_or_else(too_large)?;
        // SAFETY: the layout has room for moving the start to the next line.
        let first = unsafe { memory.add(memory.align_offset(LINE)) }.cast::<Slot<T>>();
        #[cfg(loom)]
        for index in 0..capacity {
            // SAFETY: within the allocation; loom's atomics are not valid as zeros.
            unsafe {
                first.add(index).write(Slot {
                    state: AtomicU64::new(0),
                    value: UnsafeCell::new(MaybeUninit::uninit()),
                });
            }
        }
        Ok(Self { first, mask: capacity as u64 - 1, memory })
    }

    /// Asks for no more alignment than the allocator gives anyway, as long as a value's is not
    /// greater than a line: for more it would zero the memory by hand.
    fn layout(capacity: usize) -> Option<Layout> {
        let size = size_of::<Slot<T>>().checked_mul(capacity)?.checked_add(LINE)?;
        let align = if align_of::<Slot<T>>() > LINE { align_of::<Slot<T>>() } else { 16 };
        Layout::from_size_align(size, align).ok()
    }

    /// Has the system provide all of the memory now.
    fn touch(&self) {
        const PAGE: usize = 4096;
        for index in (0..self.capacity()).step_by((PAGE / size_of::<Slot<T>>()).max(1)) {
            self.at(index).state.store(0, Relaxed);
        }
    }

    #[inline(always)]
    fn at(&self, position: u64) -> &Slot<T> {
        // SAFETY: the mask keeps the index within the allocation, which lives as long as `self`;
        // all zeros is a valid slot.
        unsafe { self.first.add((position & self.mask) as usize).as_ref() }
    }

    /// Asks for a slot's line in a state that can be written, unless slots share lines.
    ///
    /// Rust's `_mm_prefetch` makes this a read prefetch unless the whole crate is built for newer
    /// CPUs; `prefetchw` is a no-op at worst on every x86-64.
    #[inline(always)]
    fn prefetch(&self, position: u64) {
        if size_of::<Slot<T>>() < LINE {
            return;
        }
        let slot = self.at(position);
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
        // SAFETY: a hint: it changes neither memory nor flags, and cannot fault.
        unsafe {
            core::arch::asm!(
                "prefetchw [{}]",
                in(reg) core::ptr::from_ref(slot),
                options(nostack, preserves_flags, readonly)
            );
        }
        #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
        let _ = slot;
    }

    /// The slots of `len` positions from `start` on, in two pieces with the lap of each. `len` is at
    /// most the capacity.
    #[inline(always)]
    fn run(&self, start: u64, len: usize) -> [(u64, &[Slot<T>]); 2] {
        let index = (start & self.mask) as usize;
        let first = len.min(self.capacity() as usize - index);
        // SAFETY: both pieces lie within the allocation, as `len` is at most the capacity.
        let piece =
            |from, len| unsafe { slice::from_raw_parts(self.first.add(from).as_ptr(), len) };
        [(self.lap(start), piece(index, first)), (self.next_lap(start), piece(0, len - first))]
    }

    #[inline(always)]
    fn lap(&self, position: u64) -> u64 {
        position & !self.mask
    }

    #[inline(always)]
    fn next_lap(&self, position: u64) -> u64 {
        (position | self.mask) + 1
    }

    #[inline(always)]
    fn capacity(&self) -> u64 {
        self.mask + 1
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        let capacity = self.mask as usize + 1;
        #[cfg(loom)]
        for index in 0..capacity {
            // SAFETY: written by `new`; the values in them are not dropped by this.
            unsafe { self.first.add(index).drop_in_place() };
        }
        if let Some(layout) = Self::layout(capacity) {
            // SAFETY: allocated by `new` with this very layout.
            unsafe { alloc::dealloc(self.memory.as_ptr(), layout) };
        }
    }
}
