//! The ring of events: many producers, and a consumer that is called only when it rests.
//!
//! # The problem
//!
//! Small fixed-size events come from any number of threads, singly or in batches, and are to be
//! handled in the order of publication, batch by batch, without copying them, without a lock, and
//! without waking anybody who is awake. The memory is bounded, so somebody must wait when it is full.
//!
//! # The idea
//!
//! The LMAX Disruptor's multi-producer sequencer (Thompson, Farley, Barker, Gee, Stewart,
//! "Disruptor", 2011; github.com/LMAX-Exchange/disruptor): positions count up for ever, producers
//! claim a run of them by one CAS on the tail, write, and mark each position *available* in an array
//! apart from the events. The events therefore lie side by side, and a consumer gets them as a slice.
//! Two things differ. A claim is a CAS that checks for room first, so a full ring refuses and nobody
//! ever has to wait with a claim in hand. And the consumer is not a thread that spins: it rests, and
//! the publisher that finds it resting is told to call it.
//!
//! ```text
//!  tail      { closed:1, position:63 }   next position to publish        moved by producers
//!  taken     { position:64 }             next position to consume        (concurrent rings)
//!  released  { position:64 }             oldest position still in use    moved by consumers
//!
//!               released        taken               tail
//!                  │              │                  │
//!   events ┌───┬───┼───┬───┬───┬──┼┬───┬───┬───┬───┬─┼─┬───┐    p published   w being written
//!          │ · │ · │ d │ c │ d │ p │ p │ w │ p │ w │ · │ · │    c being read   d done with
//!          └───┴───┴───┴───┴───┴───┴───┴───┴───┴───┴───┴───┘    · free
//!   stamps   …   …   5   5   5   5   5   4   5   4   4   4      lap + 1 once published
//!   done     …   …  5,1  4  5,1  …                              { lap + 1, length of the run }
//! ```
//!
//! | a position p is | when | who may touch its event |
//! |---|---|---|
//! | free | tail ≤ p < released + capacity | nobody |
//! | being written | p < tail, its stamp is of an earlier lap | the producer whose CAS passed it |
//! | published | its stamp is lap + 1, p ≥ taken | nobody |
//! | being read | p < taken, p ≥ released | the consumer that took it |
//!
//! A *serial* ring has one [`SerialConsumer`], and `&mut` is what makes it one at a time: it reads in
//! place and moves `released` itself. A *concurrent* ring's [`ConcurrentConsumer`]s take runs by a CAS
//! on `taken`, copy them out, and note them as done; whoever finds the oldest run done moves `released`
//! over it and all that follow. So nobody waits for a thread that stopped half-way, except for room.
//!
//! # Attention
//!
//! | word | consumer | publisher |
//! |---|---|---|
//! | RESTING | nobody is coming | swaps it to AWAKE, and is told [`Published::Call`] |
//! | AWAKE | somebody was called, or is consuming | nothing |
//!
//! The consumer says RESTING, passes a barrier and looks once more; a publisher stamps, passes a
//! barrier and looks at the word. So at least one sees the other.
//!
//! # Invariants
//!
//! 1. A position is written by the one producer whose CAS moved the tail over it, and only when
//!    p < released + capacity was seen. Both only grow, so a successful CAS proves it still.
//! 2. An event is read only after its stamp was seen, and its position is written again only after
//!    `released` was seen behind it.
//! 3. A position is handed to one consumer once, also if the handler panics.
//! 4. If an event is published and not taken, the word is AWAKE and somebody is coming, or its
//!    publisher is about to look at the word.
//! 5. `released` does not stay behind a done run at its front: of those that finish, one sees all.
//! 6. No waiter sleeps while half of the ring is free.
//!
//! # Orderings
//!
//! | store | partner | carries |
//! |---|---|---|
//! | stamp, Release | Acquire in `published_from` | the event |
//! | `released`, Release | Acquire in `room_at` | the end of the read |
//! | `gate`, Release | Acquire in `claim_free` | the same, through the producer that looked it up |
//! | `done`, Release | Acquire in `done_at` | the end of the read, to whoever moves `released` |
//!
//! The tail carries nothing: that a position is free is known from `released`, that it is written
//! from its stamp. `store_load_barrier` closes three races: stamp / attention (4), done / done (5), and
//! released / waiting (6).
//!
//! # Trade-offs
//!
//! The barrier costs each publication some 5 ns. A consumer that spins would not need it, and would
//! burn a core. A producer that is held up between its CAS and its stamp delays all that is
//! published behind it; a Vyukov ring has the same gap. `u32` stamps repeat after 2^32 laps, and no
//! stamp outlives the next lap.
#![allow(unsafe_code, reason = "positions are handed from thread to thread by the ring's words")]

mod room;
mod slots;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

use super::mpmc::PushError;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::sync::{CachePadded, SpinWait, store_load_barrier};
use crate::{Error, Result};
use core::slice;
use room::Room;
use slots::Slots;
use std::sync::Arc;

const CLOSED: u64 = 1 << 63;
const MAX_CAPACITY: usize = 1 << 31;

const RESTING: u32 = 0;
const AWAKE: u32 = 1;

/// What a publication found out about the consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum Published {
    /// Somebody is consuming, or has been called.
    Seen,
    /// The consumer rested. It counts as called from now on: the caller must see to it that it runs.
    Call,
}

/// What became of a consumer that wanted to rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum Rest {
    /// It rests, and the next publisher will call it. (One may have called it already.)
    Resting,
    /// More had been published: it is still awake, and nobody else will be told to call it.
    More,
}

/// A run of positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    start: u64,
    len: usize,
}

impl Run {
    fn end(self) -> u64 {
        self.start + self.len as u64
    }
}

/// The producers' side. Any thread may publish.
pub(crate) struct EventRing<T> {
    producers: CachePadded<Producers>,
    released: CachePadded<AtomicU64>,
    taken: CachePadded<AtomicU64>,
    attention: CachePadded<AtomicU32>,
    room: CachePadded<Room>,
    events: Slots<T>,
    stamps: Box<[AtomicU32]>,
    /// A position is `{ lap, index: shift }`.
    shift: u32,
    /// `{ stamp: 32, length: 32 }` of a run, at its first position. Empty in a serial ring.
    done: Box<[AtomicU64]>,
}

/// What producers write: one line, which the one that claims has in hand anyway.
struct Producers {
    tail: AtomicU64,
    /// A value that `released` has had: good enough while it leaves room.
    gate: AtomicU64,
}

/// A ring for one consumer at a time. Its capacity is rounded up to a power of two; `name` is what
/// the error calls it. An event is `width` values, side by side.
pub(crate) fn serial<T: Copy + Send>(
    name: &'static str,
    capacity: usize,
    width: usize,
) -> Result<(Arc<EventRing<T>>, SerialConsumer<T>)> {
    let ring = Arc::new(EventRing::new(name, capacity, width, 0)?);
    Ok((ring.clone(), SerialConsumer { ring, head: 0 }))
}

/// A ring for any number of consumers. Its capacity is rounded up to a power of two; `name` is what
/// the error calls it. An event is `width` values, side by side.
pub(crate) fn concurrent<T: Copy + Send>(
    name: &'static str,
    capacity: usize,
    width: usize,
) -> Result<(Arc<EventRing<T>>, ConcurrentConsumer<T>)> {
    let ring = Arc::new(EventRing::new(name, capacity, width, capacity)?);
    Ok((ring.clone(), ConcurrentConsumer { ring }))
}

impl<T: Copy + Send> EventRing<T> {
    fn new(name: &'static str, capacity: usize, width: usize, done: usize) -> Result<Self> {
        if !(1..=MAX_CAPACITY).contains(&capacity) {
            return Err(Error::invalid(name, capacity, format!("1 to {MAX_CAPACITY}")));
        }
        let rounded = capacity.next_power_of_two();
        let too_large = || Error::invalid(name, capacity, "a capacity whose events fit in memory");
        Ok(Self {
            producers: CachePadded::new(Producers {
                tail: AtomicU64::new(0),
                gate: AtomicU64::new(0),
            }),
            released: CachePadded::new(AtomicU64::new(0)),
            taken: CachePadded::new(AtomicU64::new(0)),
            attention: CachePadded::new(AtomicU32::new(RESTING)),
            room: CachePadded::new(Room::new()),
            events: Slots::new(rounded, width).ok_or_else(too_large)?,
            stamps: filled(rounded, || AtomicU32::new(0)).ok_or_else(too_large)?,
            shift: rounded.trailing_zeros(),
            done: filled(if done == 0 { 0 } else { rounded }, || AtomicU64::new(0))
                .ok_or_else(too_large)?,
        })
    }

    /// Publishes one event of one value, or gives it back. Never waits.
    #[inline]
    pub(crate) fn try_publish(&self, event: &T) -> Result<Published, PushError<T>> {
        debug_assert_eq!(self.width(), 1, "an event is one value");
        match self.try_publish_run(1, slice::from_ref(event)) {
            Ok((_, published)) => Ok(published),
            Err(refused) => Err(refused.map(|()| *event)),
        }
    }

    /// Publishes events from the front of `events`, as many as there is room for, by one CAS: they
    /// follow each other in the ring. Says how many; none of none. Never waits.
    #[inline]
    pub(crate) fn try_publish_batch(
        &self,
        events: &[T],
    ) -> Result<(usize, Published), PushError<()>> {
        match events.len() / self.width() {
            0 => Ok((0, Published::Seen)),
            count => self.try_publish_run(count, events),
        }
    }

    #[inline]
    fn try_publish_run(
        &self,
        count: usize,
        values: &[T],
    ) -> Result<(usize, Published), PushError<()>> {
        let run = self.claim_free(count)?;
        // SAFETY: the run is ours to write, and no longer than the ring (invariant 1).
        unsafe { self.events.write(run.start, run.len, &values[..run.len * self.width()]) };
        for position in run.start..run.end() {
            // Release: pairs with the Acquire in `published_from`.
            self.stamps[self.index(position)].store(self.stamp(position), Release);
        }
        Ok((run.len, self.look_for_consumer()))
    }

    /// Publishes all of `events`, in order, and waits for room as often as it must: spinning, then
    /// yielding, then asleep until half of the ring is free. What one step publishes stays together;
    /// that is all of it if it fits when it comes. `call` must call the consumer.
    ///
    /// Says how many were published: all, or fewer if the ring was closed meanwhile. Never to be
    /// called by what the consumer waits for, a handler of the same pool for one.
    pub(crate) fn publish_batch(&self, events: &[T], mut call: impl FnMut()) -> usize {
        let (mut done, count) = (0, events.len() / self.width());
        while done < count {
            match self.try_publish_batch(&events[done * self.width()..]) {
                Ok((some, published)) => {
                    done += some;
                    if published == Published::Call {
                        call();
                    }
                }
                Err(PushError::Full(())) => self.room.wait(|| self.has_room() || self.is_closed()),
                Err(PushError::Closed(())) => break,
            }
        }
        done
    }

    /// Claims up to `max` free positions by one CAS.
    #[inline]
    fn claim_free(&self, max: usize) -> Result<Run, PushError<()>> {
        let mut lost = SpinWait::new();
        loop {
            let tail = self.producers.tail.load(Relaxed);
            if tail & CLOSED != 0 {
                return Err(PushError::Closed(()));
            }
            let Some(room) = self.room_at(tail, max) else { continue };
            if room == 0 {
                return Err(PushError::Full(()));
            }
            let run = Run { start: tail, len: room.min(max) };
            // Relaxed: the tail carries nothing (see the module's documentation).
            match self.producers.tail.compare_exchange_weak(tail, run.end(), Relaxed, Relaxed) {
                Ok(_) => return Ok(run),
                Err(_) => lost.back_off(),
            }
        }
    }

    /// How many positions from `tail` on are free: exactly, if fewer than `wanted`. None: the tail
    /// has moved on.
    #[inline]
    fn room_at(&self, tail: u64, wanted: usize) -> Option<usize> {
        // Acquire: pairs with the Release below, and through it with the consumer.
        let room = self.room_behind(self.producers.gate.load(Acquire), tail);
        match room {
            Some(room) if room >= wanted => Some(room),
            _ => self.room_looked_up(tail),
        }
    }

    #[inline(never)]
    fn room_looked_up(&self, tail: u64) -> Option<usize> {
        // Acquire: pairs with the Release in `release` and `finish`; what is free has been read.
        let released = self.released.load(Acquire);
        // Release: pairs with the Acquire in `room_at`. An older value may overwrite a newer one; it
        // is looked up again then.
        self.producers.gate.store(released, Release);
        self.room_behind(released, tail)
    }

    /// None if `tail` is older than `released`.
    #[inline]
    fn room_behind(&self, released: u64, tail: u64) -> Option<usize> {
        let used = tail.checked_sub(released)?;
        Some(self.capacity().saturating_sub(used as usize))
    }

    /// The publisher's half of invariant 4.
    #[inline]
    fn look_for_consumer(&self) -> Published {
        // Against *rest, then look for stamps* in `rest_unless`.
        store_load_barrier();
        if self.attention.load(Relaxed) == AWAKE {
            return Published::Seen;
        }
        self.call_consumer()
    }

    /// Of several publishers that find the consumer resting, one calls it.
    #[cold]
    fn call_consumer(&self) -> Published {
        // Relaxed: the stamps carry the events.
        match self.attention.swap(AWAKE, Relaxed) {
            RESTING => Published::Call,
            _ => Published::Seen,
        }
    }

    /// The consumer's half of invariant 4. `more` looks whether there is anything to consume.
    fn rest_unless(&self, more: impl FnOnce() -> bool) -> Rest {
        // A swap, so that all changes of the word form one chain.
        self.attention.swap(RESTING, Relaxed);
        // Against *stamp, then look at the word* in `look_for_consumer`.
        store_load_barrier();
        // A publisher that called in between is told from the rest by the swap.
        if more() && self.attention.swap(AWAKE, Relaxed) == RESTING {
            return Rest::More;
        }
        Rest::Resting
    }

    /// How many events from `head` on are published without a gap, up to `max`.
    #[inline]
    fn published_from(&self, head: u64, max: usize) -> usize {
        let most = max.min(self.capacity()) as u64;
        // Acquire: pairs with the Release in `try_publish_batch`.
        let published = |&position: &u64| {
            self.stamps[self.index(position)].load(Acquire) == self.stamp(position)
        };
        (head..head + most).take_while(published).count()
    }

    /// Everything before `position` has been read: it may be written again.
    #[inline]
    fn release(&self, position: u64) {
        // Release: pairs with the Acquire in `room_looked_up`.
        self.released.store(position, Release);
        // Against *wait, then look for room* in `Room::wait`.
        store_load_barrier();
        self.tell_waiters();
    }

    /// The caller has made room and passed a barrier.
    #[inline]
    fn tell_waiters(&self) {
        self.room.notify(|| self.len() <= self.capacity() / 2);
    }

    /// Takes up to `max` published events off the front by one CAS.
    fn take_published(&self, max: usize) -> Option<Run> {
        let mut lost = SpinWait::new();
        loop {
            let run = self.published_untaken(max)?;
            // Relaxed: the stamps carry the events, and success proves that nobody took them.
            let taken = &self.taken;
            match taken.compare_exchange_weak(run.start, run.end(), Relaxed, Relaxed) {
                Ok(_) => return Some(run),
                Err(_) => lost.back_off(),
            }
        }
    }

    /// What a concurrent consumer would take next.
    fn published_untaken(&self, max: usize) -> Option<Run> {
        let mut start = self.taken.load(Relaxed);
        loop {
            let len = self.published_from(start, max);
            if len > 0 {
                return Some(Run { start, len });
            }
            // `start` may be so old that its place has been written again, and then its stamp, being
            // an Acquire, has brought a newer `taken` with it.
            let now = self.taken.load(Relaxed);
            if now == start {
                return None;
            }
            start = now;
        }
    }

    /// A run taken from a concurrent ring has been copied out. Releases it if it is the oldest, with
    /// all that are done behind it; else whoever finishes the oldest one will.
    fn finish(&self, run: Run) {
        let entry = u64::from(self.stamp(run.start)) << 32 | run.len as u64;
        // Release: pairs with the Acquire in `done_at`.
        self.done[self.index(run.start)].store(entry, Release);
        // Against another *done, then look for mine*: of all that finish, the one whose barrier comes
        // last sees every entry, and goes on until it meets a run that is not done (invariant 5).
        store_load_barrier();
        let mut released = self.released.load(Relaxed);
        while let Some(len) = self.done_at(released) {
            let next = released + len;
            // Release: pairs with the Acquire in `room_looked_up`. A read-modify-write, so what the
            // movers before this one released stays released.
            match self.released.compare_exchange(released, next, Release, Relaxed) {
                Ok(_) => released = next,
                Err(now) => released = now,
            }
        }
        // Against *wait, then look for room* in `Room::wait`.
        store_load_barrier();
        self.tell_waiters();
    }

    /// The length of the run that begins at `position`, if it is done.
    fn done_at(&self, position: u64) -> Option<u64> {
        // Acquire: pairs with the Release in `finish`.
        let entry = self.done[self.index(position)].load(Acquire);
        let done = (entry >> 32) as u32 == self.stamp(position);
        done.then_some(entry & u64::from(u32::MAX))
    }

    /// Refuses events from now on, and sends away those who wait for room. What has been published
    /// can still be consumed.
    pub(crate) fn close(&self) {
        self.producers.tail.fetch_or(CLOSED, Relaxed);
        // Against *wait, then look for the close* in `Room::wait`.
        store_load_barrier();
        self.room.notify(|| true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.producers.tail.load(Relaxed) & CLOSED != 0
    }

    /// Whether it is closed and `head` has reached the end. A closed tail does not move any more.
    fn is_finished_at(&self, head: u64) -> bool {
        self.producers.tail.load(Relaxed) == head | CLOSED
    }

    /// How many events have been accepted since the start.
    pub(crate) fn accepted(&self) -> u64 {
        self.producers.tail.load(Relaxed) & !CLOSED
    }

    /// How many events have been consumed since the start; a serial consumer's count when its
    /// handler has returned.
    pub(crate) fn consumed(&self) -> u64 {
        self.released.load(Acquire)
    }

    /// How many positions are in use. Exact when nobody publishes or consumes.
    pub(crate) fn len(&self) -> usize {
        let consumed = self.consumed();
        ((self.accepted().saturating_sub(consumed)) as usize).min(self.capacity())
    }

    fn has_room(&self) -> bool {
        // Not `len`: a tail that has moved on since must not make a full ring of one with room.
        self.room_looked_up(self.accepted()).is_none_or(|room| room > 0)
    }

    /// How many values an event has.
    #[inline]
    pub(crate) fn width(&self) -> usize {
        self.events.width()
    }

    /// How many events fit: a power of two.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.stamps.len()
    }

    #[inline]
    fn index(&self, position: u64) -> usize {
        position as usize & (self.stamps.len() - 1)
    }

    /// What `position` is stamped with when it is published: its lap, from 1 on.
    #[inline]
    fn stamp(&self, position: u64) -> u32 {
        ((position >> self.shift) as u32).wrapping_add(1)
    }
}

/// The one consumer of a serial ring.
pub(crate) struct SerialConsumer<T> {
    ring: Arc<EventRing<T>>,
    head: u64,
}

impl<T: Copy + Send> SerialConsumer<T> {
    /// Hands what has been published, up to `max` events, to `handler`: in order, in place, their values
    /// in one slice or, at the end of the ring, two. Says how many. Each slice's room is given back when the
    /// handler returns; if it panics too, so that no event is handled twice.
    pub(crate) fn consume(&mut self, max: usize, mut handler: impl FnMut(&[T])) -> usize {
        let len = self.ring.published_from(self.head, max);
        let mut left = len;
        while left > 0 {
            let run = Run { start: self.head, len: self.ring.events.unbroken(self.head, left) };
            let handed = Handed { consumer: self, run };
            // SAFETY: unbroken; published, and not released before `handed` goes (invariant 2).
            unsafe { handed.consumer.ring.events.with(run.start, run.len, &mut handler) };
            left -= run.len;
        }
        len
    }

    /// Rests, if there is nothing more. Called after the last `consume`, by who was called.
    pub(crate) fn rest(&mut self) -> Rest {
        self.ring.rest_unless(|| self.ring.published_from(self.head, 1) > 0)
    }

    /// Whether the ring is closed and nothing is left, nor on its way.
    pub(crate) fn is_finished(&self) -> bool {
        self.ring.is_finished_at(self.head)
    }

    pub(crate) fn ring(&self) -> &Arc<EventRing<T>> {
        &self.ring
    }
}

/// Events in the handler's hands; released on the way out, also by a panic (invariant 3).
struct Handed<'a, T: Copy + Send> {
    consumer: &'a mut SerialConsumer<T>,
    run: Run,
}

impl<T: Copy + Send> Drop for Handed<'_, T> {
    fn drop(&mut self) {
        self.consumer.head = self.run.end();
        self.consumer.ring.release(self.run.end());
    }
}

/// A consumer of a concurrent ring. Any thread may use it; clones serve the same ring.
#[derive(Clone)]
pub(crate) struct ConcurrentConsumer<T> {
    ring: Arc<EventRing<T>>,
}

impl<T: Copy + Send> ConcurrentConsumer<T> {
    /// Takes what has been published, up to the spare capacity of `out`, and appends it there. Says
    /// how many. Allocates nothing.
    pub(crate) fn claim(&self, out: &mut Vec<T>) -> usize {
        let spare = (out.capacity() - out.len()) / self.ring.width();
        let Some(run) = self.ring.take_published(spare) else { return 0 };
        let mut position = run.start;
        while position < run.end() {
            let left = (run.end() - position) as usize;
            let len = self.ring.events.unbroken(position, left);
            // SAFETY: unbroken; published, taken by us, and not released before `finish`
            // (invariants 2 and 3).
            unsafe { self.ring.events.with(position, len, |run| out.extend_from_slice(run)) };
            position += len as u64;
        }
        self.ring.finish(run);
        run.len
    }

    /// Gives the call on: rests if there is nothing more, and else says that somebody must go on.
    /// The thread that was called does this after its `claim`, and may handle what it took after it.
    pub(crate) fn rest(&self) -> Rest {
        self.ring.rest_unless(|| self.ring.published_untaken(1).is_some())
    }

    /// Whether the ring is closed and everything was taken.
    pub(crate) fn is_finished(&self) -> bool {
        self.ring.is_finished_at(self.ring.taken.load(Relaxed))
    }

    pub(crate) fn ring(&self) -> &Arc<EventRing<T>> {
        &self.ring
    }
}

/// A slice of `len` values; `None` if there is no memory for it.
fn filled<A>(len: usize, make: impl FnMut() -> A) -> Option<Box<[A]>> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).ok()?;
    list.resize_with(len, make);
    Some(list.into_boxed_slice())
}
