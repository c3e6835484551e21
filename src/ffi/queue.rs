//! Queues: bounded, for any number of producers and consumers, without a pool.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, Failure, Handle, Result, TIMED_OUT, call, call_void, consumed, nanos, out, usable,
};
use super::cells::{Cell, Item, LARGEST, for_size};
use super::status::*;
use crate::queue::Pollable;
use crate::sys::eventfd::EventFd;
use crate::sys::fork::ForkGuard;
use crate::{Error, Queue};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::time::Duration;
use std::os::fd::{AsFd, AsRawFd};

/// A bounded first-in first-out queue of items of one size.
pub struct pace_queue_t {
    item_size: usize,
    items: Box<dyn Items>,
    pollable: Pollable,
    fork: ForkGuard,
}

/// Makes a queue. `item_size` is 1 to 131072 bytes; `capacity`, 1 to 2^31 items, is rounded up to a
/// power of two. All memory is taken now, except that of items of more than 256 bytes: a push
/// allocates for each of them, and a pop frees it.
///
/// PACE_EINVAL, PACE_EOS.
///
/// Threads: any. In handlers: yes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_queue_new(
    item_size: usize,
    capacity: usize,
    queue: Option<&mut MaybeUninit<*mut pace_queue_t>>,
) -> pace_status_t {
    call(|| {
        let to = out(queue, "queue")?;
        let fork = ForkGuard::new().map_err(|e| Error::os("map a page that tells of a fork", e))?;
        let items = for_size!(item_size, I => typed::<I>(item_size, capacity),
            _ => Err(Failure::invalid("item_size", item_size, &format!("1 to {LARGEST}"))))?;
        let queue = pace_queue_t { item_size, items, pollable: Pollable::new(), fork };
        to.set(Box::into_raw(Box::new(queue)));
        Ok(())
    })
}

/// Appends one item: item_size bytes are copied. Waits for room for up to `timeout_ns`.
///
/// PACE_EFULL: there is no room, and `timeout_ns` is 0; PACE_ETIMEDOUT; PACE_ESHUTDOWN: closed.
///
/// Threads: any. In handlers: yes; it hands leadership on before it waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_queue_push(
    queue: Option<&pace_queue_t>,
    item: *const c_void,
    timeout_ns: u64,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        // SAFETY: as the header demands.
        let item = unsafe { boundary::bytes(item, 1, queue.item_size, "item") }?;
        queue.items.push(item, nanos(timeout_ns))?;
        queue.pollable.pushed();
        Ok(())
    })
}

/// Appends items that lie item_size bytes apart, as many of `count` as there is room for, in one step:
/// they follow each other in the queue. Never waits. *pushed says how many, and is 0 for PACE_EFULL
/// and PACE_ESHUTDOWN.
///
/// PACE_EFULL: no room for any; PACE_ESHUTDOWN: closed.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_queue_push_batch(
    queue: Option<&pace_queue_t>,
    items: *const c_void,
    count: usize,
    pushed: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let to = out(pushed, "pushed")?;
        // SAFETY: as the header demands.
        let bytes = unsafe { boundary::bytes(items, count, queue.item_size, "items") }?;
        let pushed = queue.items.push_batch(bytes);
        to.set(pushed);
        if pushed > 0 {
            queue.pollable.pushed();
        } else if count > 0 {
            return Err(if queue.items.is_closed() { CLOSED } else { FULL });
        }
        Ok(())
    })
}

/// Removes the oldest item into `item`, item_size bytes. Waits for one for up to `timeout_ns`.
///
/// PACE_EEMPTY: there is none, and `timeout_ns` is 0; PACE_ETIMEDOUT; PACE_ESHUTDOWN: closed, and
/// empty.
///
/// Threads: any. In handlers: yes; it hands leadership on before it waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_queue_pop(
    queue: Option<&pace_queue_t>,
    item: *mut c_void,
    timeout_ns: u64,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        boundary::check(item, "item")?;
        // SAFETY: as the header demands.
        unsafe { pop_batch(queue, item, 1, timeout_ns) }.map(drop)
    })
}

/// Removes up to `capacity` of the oldest items in one step into `items`, where they lie item_size
/// bytes apart. Waits for the first for up to `timeout_ns`. *popped says how many.
///
/// PACE_EEMPTY: there is none, and `timeout_ns` is 0; PACE_ETIMEDOUT; PACE_ESHUTDOWN: closed, and
/// empty; PACE_EINVAL: `capacity` is 0.
///
/// Threads: any. In handlers: yes; it hands leadership on before it waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_queue_pop_batch(
    queue: Option<&pace_queue_t>,
    items: *mut c_void,
    capacity: usize,
    timeout_ns: u64,
    popped: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        boundary::check(items, "items")?;
        let to = out(popped, "popped")?;
        if capacity == 0 {
            return Err(Failure::invalid("capacity", 0, "1 or more"));
        }
        // SAFETY: as the header demands.
        to.set(unsafe { pop_batch(queue, items, capacity, timeout_ns) }?);
        Ok(())
    })
}

/// A descriptor that is readable while the queue may have something, or is closed, for hosts that wait
/// in a loop of their own. When it is, pop until nothing comes: a pop that finds nothing makes it
/// unreadable. It belongs to the queue: never read, write or close it. Made on the first call.
///
/// PACE_EOS.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_queue_pollable(
    queue: Option<&pace_queue_t>,
    fd: Option<&mut MaybeUninit<i32>>,
) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        let to = out(fd, "fd")?;
        let eventfd = queue.pollable.demand(EventFd::new, || queue.is_worth_a_look());
        let eventfd = eventfd.map_err(|error| Error::os("open an eventfd", error))?;
        to.set(eventfd.as_fd().as_raw_fd());
        Ok(())
    })
}

/// Refuses pushes from now on. What is in the queue can still be popped. Threads that wait in a push,
/// and in a pop of an empty queue, return.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_queue_close(queue: Option<&pace_queue_t>) -> pace_status_t {
    call(|| {
        let queue = usable(queue)?;
        queue.items.close();
        queue.pollable.pushed();
        Ok(())
    })
}

/// How many items are in the queue. While others push or pop this may be out of date at once.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_queue_len(
    queue: Option<&pace_queue_t>,
    len: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| tell(queue, len, "len", |queue| queue.items.len()))
}

/// How many items there is room for in all: what was asked for, rounded up.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_queue_capacity(
    queue: Option<&pace_queue_t>,
    capacity: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| tell(queue, capacity, "capacity", |queue| queue.items.capacity()))
}

/// Whether pace_queue_close() has been called.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_queue_is_closed(
    queue: Option<&pace_queue_t>,
    closed: Option<&mut MaybeUninit<bool>>,
) -> pace_status_t {
    call(|| tell(queue, closed, "closed", |queue| queue.items.is_closed()))
}

/// Frees a queue with all that is in it. NULL is a no-op, and in a forked child nothing is freed.
///
/// Threads: any, as long as no other uses the queue any more. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_queue_free(queue: Option<Box<pace_queue_t>>) {
    call_void(|| drop(consumed(queue)));
}

const FULL: Failure = Failure::plain(PACE_EFULL, c"the queue is full");
const EMPTY: Failure = Failure::plain(PACE_EEMPTY, c"the queue is empty");
const CLOSED: Failure = Failure::plain(PACE_ESHUTDOWN, c"the queue is closed");

impl pace_queue_t {
    fn is_worth_a_look(&self) -> bool {
        self.items.len() > 0 || self.items.is_closed()
    }
}

impl Handle for pace_queue_t {
    const NAME: &'static str = "queue";

    fn is_forked(&self) -> bool {
        self.fork.is_child()
    }
}

fn tell<T>(
    queue: Option<&pace_queue_t>,
    to: Option<&mut MaybeUninit<T>>,
    what: &str,
    answer: impl FnOnce(&pace_queue_t) -> T,
) -> Result {
    let queue = usable(queue)?;
    out(to, what)?.set(answer(queue));
    Ok(())
}

/// # Safety
///
/// `max` items can be written to `to`.
unsafe fn pop_batch(
    queue: &pace_queue_t,
    to: *mut c_void,
    max: usize,
    timeout_ns: u64,
) -> Result<usize> {
    // SAFETY: as the caller promises.
    let popped = unsafe { queue.items.pop_batch(to.cast(), max, nanos(timeout_ns)) };
    if popped > 0 {
        return Ok(popped);
    }
    queue.pollable.found_nothing(|| queue.is_worth_a_look());
    Err(if queue.items.is_closed() && queue.items.len() == 0 {
        Failure::plain(PACE_ESHUTDOWN, c"the queue is closed and empty")
    } else if timeout_ns == 0 {
        EMPTY
    } else {
        TIMED_OUT
    })
}

/// A queue of items of one size class.
trait Items: Send + Sync {
    fn push(&self, item: &[u8], timeout: Duration) -> Result;
    fn push_batch(&self, items: &[u8]) -> usize;
    /// # Safety
    ///
    /// `max` items can be written to `to`.
    unsafe fn pop_batch(&self, to: *mut u8, max: usize, timeout: Duration) -> usize;
    fn close(&self);
    fn is_closed(&self) -> bool;
    fn len(&self) -> usize;
    fn capacity(&self) -> usize;
}

struct Typed<I> {
    item_size: usize,
    queue: Queue<I>,
}

fn typed<I: Item>(item_size: usize, capacity: usize) -> Result<Box<dyn Items>> {
    Ok(Box::new(Typed::<I> { item_size, queue: Queue::new(capacity)? }))
}

impl<I: Item> Typed<I> {
    fn push_each(&self, mut each: impl ExactSizeIterator<Item = I>) -> usize {
        let count = each.len();
        let make = || each.next().expect("the queue takes no more than there are");
        self.queue.push_batch_with(count, make)
    }
}

impl<I: Item> Items for Typed<I> {
    fn push(&self, item: &[u8], timeout: Duration) -> Result {
        let item = match self.queue.push(I::copy_of(item)) {
            Ok(()) => return Ok(()),
            Err(full) if full.is_closed() => return Err(CLOSED),
            Err(_) if timeout.is_zero() => return Err(FULL),
            Err(full) => full.into_inner(),
        };
        crate::promote_new_leader();
        self.queue.push_timeout(item, timeout).map_err(|full| match full.is_closed() {
            true => CLOSED,
            false => TIMED_OUT,
        })
    }

    fn push_batch(&self, items: &[u8]) -> usize {
        let each = items.chunks_exact(self.item_size).map(I::copy_of);
        if !I::BOXED {
            return self.push_each(each);
        }
        // Nothing is allocated while the places in the queue hold up the other threads.
        let room = self.queue.capacity() - self.queue.len();
        self.push_each(each.take(room).collect::<Vec<_>>().into_iter())
    }

    unsafe fn pop_batch(&self, mut to: *mut u8, max: usize, timeout: Duration) -> usize {
        let mut sink = |item: I| {
            // SAFETY: called at most `max` times, and the caller has room for as many.
            unsafe {
                to.copy_from_nonoverlapping(item.bytes().as_ptr(), self.item_size);
                to = to.add(self.item_size);
            }
        };
        let popped = self.queue.pop_batch_with(max, &mut sink);
        if popped > 0 || timeout.is_zero() {
            return popped;
        }
        crate::promote_new_leader();
        self.queue.pop_batch_timeout_with(max, timeout, sink)
    }

    fn close(&self) {
        self.queue.close();
    }

    fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn capacity(&self) -> usize {
        self.queue.capacity()
    }
}
