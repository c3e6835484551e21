//! The public queue: the ring, with waiting.
//!
//! # Waiting without lost wake-ups
//!
//! ```text
//!   pop_timeout                          push
//!   waiting += 1                         tail moved by CAS          (claims a position)
//!   ── barrier ──                        value written, published
//!   look: Empty?                         ── barrier ──
//!   futex wait while epoch is unchanged  waiting ≠ 0 → epoch += 1, futex wake
//! ```
//!
//! Each side writes one word and then reads the other's, so at least one of them sees the other
//! (`store_load_barrier`). What the consumer looks for is the *claim*: if the tail has not moved it
//! sleeps, and the push that moves it later sees `waiting`. If the tail has moved but nothing is
//! published, the ring is `Busy` and the consumer does not sleep. So the barrier of the push may
//! stand anywhere behind its CAS, and on x86-64 that CAS is itself the barrier: nobody pays for
//! waiting that nobody does. Waiting for room is the same with the head.
//!
//! The epoch is read before looking, and changed before waking: a wake between the look and the
//! sleep ends the sleep at once.
#![allow(unsafe_code, reason = "moves items out of a vector into slots")]

use super::mpmc::{CLOSED_ALL, MpmcRing, Origin, PopError, PushError, keep_off};
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{CachePadded, store_load_barrier};
use crate::sys::futex::Futex;
use crate::{Error, NoRoom, Result};
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::time::Duration;
use std::time::Instant;

/// A bounded first-in first-out queue for any number of producer and consumer threads.
///
/// Pushing and popping take no lock and no system call, except to wake a thread that waits in
/// [`pop_timeout`](Self::pop_timeout) or [`push_timeout`](Self::push_timeout). Batches go in and
/// out by a single atomic step. Every method may be called from any thread, handlers included; only
/// the two that end in `_timeout` block. The others may wait, spinning and then yielding, for the
/// few instructions in which another thread copies an item in or out.
///
/// All items are allocated for when the queue is made, and never afterwards. Items that are left
/// when it is dropped are dropped.
///
/// ```
/// use paceline::Queue;
///
/// let queue = Queue::new(2)?;
/// queue.push("lead")?;
/// queue.push("follow")?;
/// let refused = queue.push("too many").unwrap_err();
/// assert_eq!(refused.into_inner(), "too many");
/// assert_eq!(queue.pop(), Some("lead"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The algorithm is Dmitry Vyukov's bounded MPMC queue, extended by batches and closing.
pub struct Queue<T> {
    ring: MpmcRing<T>,
    sleepers: CachePadded<Sleepers>,
}

/// Read by every push and pop, written only by those who wait: a line of its own.
struct Sleepers {
    for_items: WaitPoint,
    for_room: WaitPoint,
}

impl<T> Queue<T> {
    /// A queue with room for `capacity` items, rounded up to the next power of two.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`](crate::Error::Invalid) unless `capacity` is from 1 to 2^31 and the memory
    /// for it can be had.
    pub fn new(capacity: usize) -> Result<Self> {
        let mut ring = MpmcRing::new("capacity", capacity)?;
        ring.touch();
        Ok(Self {
            ring,
            sleepers: CachePadded::new(Sleepers {
                for_items: WaitPoint::new(),
                for_room: WaitPoint::new(),
            }),
        })
    }

    /// Appends `item`.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] gives the item back if there is no room or the queue is closed.
    #[inline]
    pub fn push(&self, item: T) -> Result<(), QueueFull<T>> {
        match self.ring.try_push(item, Origin::Inside) {
            Ok(()) => {}
            Err(refused) => self.push_again(refused)?,
        }
        self.sleepers.for_items.notify(1);
        Ok(())
    }

    /// The slow half of `push`: full for good, or only until a pop has finished copying.
    #[cold]
    fn push_again(&self, mut refused: PushError<T>) -> Result<(), QueueFull<T>> {
        let mut wait = CopyWait::default();
        loop {
            match refused {
                PushError::Closed(item) => return Err(QueueFull { item, closed: true }),
                PushError::Full(item) if self.is_full() => {
                    return Err(QueueFull { item, closed: false });
                }
                PushError::Full(item) => {
                    wait.wait();
                    match self.ring.try_push(item, Origin::Inside) {
                        Ok(()) => return Ok(()),
                        Err(again) => refused = again,
                    }
                }
            }
        }
    }

    /// Appends items from the front of `items`, as many as there is room for, in one step: they
    /// follow each other in the queue. Says how many; the others stay in `items`. Into a closed
    /// queue none go.
    pub fn push_batch(&self, items: &mut Vec<T>) -> usize {
        // SAFETY: below, the items that were moved out leave the vector without being dropped.
        let pushed = unsafe { self.push_from(items.as_ptr(), items.len()) };
        let rest = items.len() - pushed;
        // SAFETY: the first `pushed` items were moved out; the others move to the front.
        unsafe {
            let front = items.as_mut_ptr();
            front.copy_from(front.add(pushed), rest);
            items.set_len(rest);
        }
        pushed
    }

    /// Appends copies of `items` from the front, as many as there is room for, in one step. Says
    /// how many. Into a closed queue none go.
    #[inline]
    pub fn push_batch_copied(&self, items: &[T]) -> usize
    where
        T: Copy,
    {
        // SAFETY: items that are `Copy` may be read as often as one likes.
        unsafe { self.push_from(items.as_ptr(), items.len()) }
    }

    /// Moves up to `count` items out of the memory at `next` into the queue; says how many.
    ///
    /// # Safety
    ///
    /// There are `count` items, and those that went in are not used again.
    #[inline]
    unsafe fn push_from(&self, mut next: *const T, count: usize) -> usize {
        self.push_batch_with(count, || {
            // SAFETY: called at most `count` times in all.
            let item = unsafe { next.read() };
            // SAFETY: at most one past the last item.
            next = unsafe { next.add(1) };
            item
        })
    }

    /// Appends what `make` makes, up to `count` items, as many as there is room for, in one step.
    /// Says how many; `make` is called as often. It must not panic.
    #[inline]
    pub(crate) fn push_batch_with(&self, count: usize, mut make: impl FnMut() -> T) -> usize {
        let mut wait = CopyWait::default();
        loop {
            match self.ring.push_batch_with(count, Origin::Inside, &mut make) {
                Ok(pushed) => {
                    self.sleepers.for_items.notify(pushed);
                    return pushed;
                }
                Err(PushError::Full(())) if !self.is_full() => wait.wait(),
                Err(_) => return 0,
            }
        }
    }

    /// Removes the oldest item; none if the queue is empty.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let item = match self.ring.try_pop() {
            Ok(item) => item,
            Err(PopError::Empty) => return None,
            Err(PopError::Busy) => self.pop_again()?,
        };
        self.sleepers.for_room.notify(1);
        Some(item)
    }

    /// The slow half of `pop`: another thread is writing the item that is next.
    #[cold]
    fn pop_again(&self) -> Option<T> {
        let mut wait = CopyWait::default();
        loop {
            match self.ring.try_pop() {
                Ok(item) => return Some(item),
                Err(PopError::Empty) => return None,
                Err(PopError::Busy) => wait.wait(),
            }
        }
    }

    /// Removes up to `max` of the oldest items in one step and appends them to `out`, which grows
    /// by at most the queue's capacity. Says how many; 0 if the queue is empty.
    #[inline]
    pub fn pop_batch(&self, out: &mut Vec<T>, max: usize) -> usize {
        let max = max.min(self.capacity());
        // Before anything is claimed, as an allocation may take its time or fail.
        out.reserve(max);
        let mut next = out.spare_capacity_mut().as_mut_ptr();
        let popped = self.pop_batch_with(max, |item| {
            // SAFETY: called at most `max` times, and there is room for as many.
            unsafe {
                (*next).write(item);
                next = next.add(1);
            }
        });
        // SAFETY: `popped` items were written behind the old ones.
        unsafe { out.set_len(out.len() + popped) };
        popped
    }

    /// Removes up to `max` of the oldest items in one step and hands them to `sink`, which must not
    /// panic. Says how many.
    #[inline]
    pub(crate) fn pop_batch_with(&self, max: usize, mut sink: impl FnMut(T)) -> usize {
        let mut wait = CopyWait::default();
        loop {
            match self.ring.pop_batch(max, &mut sink) {
                Ok(popped) => {
                    self.sleepers.for_room.notify(popped);
                    return popped;
                }
                Err(PopError::Empty) => return 0,
                Err(PopError::Busy) => wait.wait(),
            }
        }
    }

    /// As [`pop_batch_with`](Self::pop_batch_with), waiting for the first item for up to `timeout`;
    /// 0 at once if the queue is closed and empty. This blocks the thread.
    pub(crate) fn pop_batch_timeout_with(
        &self,
        max: usize,
        timeout: Duration,
        mut sink: impl FnMut(T),
    ) -> usize {
        let some = |popped: usize| (popped > 0).then_some(popped);
        let popped = some(self.pop_batch_with(max, &mut sink)).or_else(|| {
            self.sleepers.for_items.wait_until(timeout, || {
                match self.pop_batch_with(max, &mut sink) {
                    // Closed first, then empty: nothing is accepted after the first look.
                    0 if self.is_closed() => Some(self.pop_batch_with(max, &mut sink)),
                    popped => some(popped),
                }
            })
        });
        popped.unwrap_or(0)
    }

    /// Removes the oldest item, waiting for one for up to `timeout`. None if the time ran out, or
    /// at once if the queue is closed and empty. This blocks the thread.
    pub fn pop_timeout(&self, timeout: Duration) -> Option<T> {
        self.pop().or_else(|| {
            self.sleepers.for_items.wait_until(timeout, || match self.pop() {
                Some(item) => Some(Some(item)),
                // Closed first, then empty: nothing is accepted after the first look.
                None if self.is_closed() => Some(self.pop()),
                None => None,
            })?
        })
    }

    /// Appends `item`, waiting for room for up to `timeout`. This blocks the thread.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] gives the item back if the time ran out, or at once if the queue is closed.
    pub fn push_timeout(&self, item: T, timeout: Duration) -> Result<(), QueueFull<T>> {
        let mut refused = match self.push(item) {
            Ok(()) => return Ok(()),
            Err(full) if full.closed => return Err(full),
            Err(full) => Some(full),
        };
        let pushed =
            self.sleepers.for_room.wait_until(timeout, || match self.push(refused.take()?.item) {
                Ok(()) => Some(Ok(())),
                Err(full) if full.closed => Some(Err(full)),
                Err(full) => {
                    refused = Some(full);
                    None
                }
            });
        pushed.unwrap_or_else(|| refused.map_or(Ok(()), Err))
    }

    /// Refuses pushes from now on. What is in the queue can still be popped. Threads that wait in
    /// `push_timeout`, and in `pop_timeout` on an empty queue, return.
    pub fn close(&self) {
        self.ring.close(CLOSED_ALL);
        self.sleepers.for_items.notify(usize::MAX);
        self.sleepers.for_room.notify(usize::MAX);
    }

    /// Whether [`close`](Self::close) has been called.
    pub fn is_closed(&self) -> bool {
        self.ring.is_closed(Origin::Inside)
    }

    /// How many items are in the queue. While others push or pop this may be out of date at once.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Whether there is no room.
    pub fn is_full(&self) -> bool {
        self.ring.is_full()
    }

    /// How many items there is room for in all: what was asked for, rounded up.
    pub fn capacity(&self) -> usize {
        self.ring.capacity()
    }
}

impl<T> UnwindSafe for Queue<T> {}
impl<T> RefUnwindSafe for Queue<T> {}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("closed", &self.is_closed())
            .finish()
    }
}

/// A wait for a thread that is copying an item. It runs no code but that, so this ends as soon as
/// it is scheduled: at first it is given time, then the CPU.
#[derive(Default)]
struct CopyWait {
    rounds: u32,
}

impl CopyWait {
    #[cold]
    fn wait(&mut self) {
        self.rounds += 1;
        if self.rounds <= 4 {
            return keep_off();
        }
        #[cfg(loom)]
        loom::thread::yield_now();
        #[cfg(not(loom))]
        std::thread::yield_now();
    }
}

/// An item that a [`Queue`] did not take.
///
/// ```
/// # fn main() -> paceline::Result<()> {
/// let queue = paceline::Queue::new(2)?;
/// queue.push(1)?;
/// queue.push(2)?;
/// let full = queue.push(3).unwrap_err();
/// assert!(!full.is_closed());
/// assert_eq!(full.into_inner(), 3); // the item comes back
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct QueueFull<T> {
    item: T,
    closed: bool,
}

impl<T> QueueFull<T> {
    /// The item itself.
    pub fn into_inner(self) -> T {
        self.item
    }

    /// Whether it was refused because the queue is closed, so that trying again is of no use.
    pub fn is_closed(&self) -> bool {
        self.closed
    }
}

impl<T> fmt::Display for QueueFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.closed { "the queue is closed" } else { "the queue is full" })
    }
}

impl<T> fmt::Debug for QueueFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.closed { "QueueFull(closed)" } else { "QueueFull(..)" })
    }
}

impl<T> std::error::Error for QueueFull<T> {}

/// The item is dropped.
impl<T> From<QueueFull<T>> for Error {
    fn from(full: QueueFull<T>) -> Self {
        match full.closed {
            true => Self::Stale { what: "queue" },
            false => Self::NoRoom(NoRoom::QUEUE),
        }
    }
}

/// Where threads sleep until something changes. See the module's documentation.
struct WaitPoint {
    waiting: AtomicU32,
    epoch: Futex,
}

impl WaitPoint {
    fn new() -> Self {
        Self { waiting: AtomicU32::new(0), epoch: Futex::new(0) }
    }

    /// Wakes up to `count` of those who wait for what the caller's last CAS on the ring has done.
    #[inline]
    fn notify(&self, count: usize) {
        barrier_after_cas();
        // Relaxed: the barriers here and in `wait_until` close the race.
        if self.waiting.load(Relaxed) != 0 {
            self.wake(count);
        }
    }

    #[cold]
    fn wake(&self, count: usize) {
        // Release: pairs with the Acquire in `wait_until`.
        self.epoch.fetch_add(1, Release);
        self.epoch.wake(i32::try_from(count).unwrap_or(i32::MAX));
    }

    /// Tries again and again, sleeping in between, until `attempt` has an answer or time runs out.
    #[cold]
    fn wait_until<R>(
        &self,
        timeout: Duration,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        // A deadline beyond what the clock can say is none.
        let deadline = Instant::now().checked_add(timeout);
        let _announced = Announced::new(&self.waiting);
        loop {
            // Acquire: pairs with the Release in `wake`. It is read before the attempt.
            let epoch = self.epoch.load(Acquire);
            if let Some(answer) = attempt() {
                return Some(answer);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return None;
            }
            self.epoch.wait(epoch, left);
        }
    }
}

/// A thread counted among those who wait, until it is dropped.
struct Announced<'a>(&'a AtomicU32);

impl<'a> Announced<'a> {
    fn new(waiting: &'a AtomicU32) -> Self {
        waiting.fetch_add(1, Relaxed);
        // Closes the race of announcing and looking against moving the tail (or head) and looking
        // for sleepers: pairs with `barrier_after_cas`.
        store_load_barrier();
        Self(waiting)
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// `store_load_barrier` for a store that was a compare-exchange. On x86-64 that instruction is the
/// barrier already, and only the compiler must be kept from moving what follows in front of it.
#[inline(always)]
pub(super) fn barrier_after_cas() {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri, paceline_tsan))))]
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri, paceline_tsan)))))]
    store_load_barrier();
}
