//! Rings: fixed-size events from any number of threads, handled in batches by the pool.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{self, Failure, Out, Result, call, call_void, callback};
use super::callback::{pace_drop_fn, pace_events_fn};
use super::cells::{Cell, LARGEST, fill, for_size, in_place};
use super::owner::pair;
use super::pool::{open, pace_pool_t};
use super::status::*;
use crate::{Pool, Rejected, Ring};
use core::ffi::c_void;

/// A bounded ring of events of one size, with a handler on a pool.
pub struct pace_ring_t {
    event_size: usize,
    events: Box<dyn Events>,
}

/// Makes a ring whose handler gets the events in the order of their publication, on one thread at a
/// time. `event_size` is 1 to 256 bytes; `capacity`, 1 to 2^31 events, is rounded up to a power of
/// two.
///
/// PACE_EINVAL, PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ring_serial(
    pool: *mut pace_pool_t,
    event_size: usize,
    capacity: usize,
    handler: pace_events_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    ring: *mut *mut pace_ring_t,
) -> pace_status_t {
    let order = Order::Serial;
    // SAFETY: as the header demands.
    call(|| unsafe { make(pool, order, event_size, capacity, handler, user_data, drop, ring) })
}

/// Makes a ring whose handler gets batches of up to 256 events on as many threads as are free, in no
/// particular order. Otherwise as pace_ring_serial().
///
/// PACE_EINVAL, PACE_EFULL, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ring_concurrent(
    pool: *mut pace_pool_t,
    event_size: usize,
    capacity: usize,
    handler: pace_events_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    ring: *mut *mut pace_ring_t,
) -> pace_status_t {
    let order = Order::Concurrent;
    // SAFETY: as the header demands.
    call(|| unsafe { make(pool, order, event_size, capacity, handler, user_data, drop, ring) })
}

/// Publishes one event: event_size bytes are copied. From outside the pool's threads it waits while
/// the ring is full; inside a handler it never waits.
///
/// PACE_EFULL (inside only), PACE_ESHUTDOWN (or closed).
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ring_publish(
    ring: *mut pace_ring_t,
    event: *const c_void,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { publish(ring, event, true) })
}

/// As pace_ring_publish(), and never waits.
///
/// PACE_EFULL, PACE_ESHUTDOWN (or closed).
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ring_try_publish(
    ring: *mut pace_ring_t,
    event: *const c_void,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { publish(ring, event, false) })
}

/// Publishes `count` events in order, which lie event_size bytes apart. Waits as pace_ring_publish()
/// does. *published says how many went in, also for PACE_EFULL and PACE_ESHUTDOWN. Copying is least
/// when event_size is 8, 16, 32, 64, 128 or 256 and `events` is aligned to 8.
///
/// PACE_EFULL (inside only), PACE_ESHUTDOWN (or closed).
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ring_publish_batch(
    ring: *mut pace_ring_t,
    events: *const c_void,
    count: usize,
    published: *mut usize,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let ring = unsafe { boundary::borrow(ring, "ring") }?;
        // SAFETY: as the header demands.
        let published = unsafe { Out::new(published, "published") }?;
        // SAFETY: as the header demands.
        let events = unsafe { boundary::bytes(events, count, ring.event_size, "events") }?;
        match ring.events.publish_batch(events) {
            Ok(()) => {
                published.set(count);
                Ok(())
            }
            Err(rejected) => {
                let failure = Failure::from(&rejected);
                published.set(rejected.into_inner());
                Err(failure)
            }
        }
    })
}

/// How many events were published and how many handled since the start; those of a running handler
/// count when it returns. Either argument may be NULL.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ring_counts(
    ring: *const pace_ring_t,
    published: *mut u64,
    handled: *mut u64,
) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let ring = unsafe { boundary::borrow(ring, "ring") }?;
        ring.events.check_process()?;
        // SAFETY: as the header demands.
        let published = unsafe { Out::optional(published, "published") }?;
        // SAFETY: as the header demands.
        let handled = unsafe { Out::optional(handled, "handled") }?;
        // Handled first: it never seems to be ahead.
        handled.set(ring.events.handled());
        published.set(ring.events.published());
        Ok(())
    })
}

/// Refuses events from now on. What has been published is still handled, and then `drop` runs.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ring_close(ring: *mut pace_ring_t) -> pace_status_t {
    call(|| {
        // SAFETY: as the header demands.
        let ring = unsafe { boundary::borrow(ring, "ring") }?;
        ring.events.check_process()?;
        ring.events.close();
        Ok(())
    })
}

/// Closes a ring and frees it. It waits until what was published has been handled and `drop` has run. NULL is a no-op,
/// and in a forked child nothing is freed.
///
/// Threads: any, as long as no other uses the ring any more. In handlers, and on threads of the pool: yes, it never
/// waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ring_free(ring: *mut pace_ring_t) {
    call_void(|| {
        // SAFETY: as the header demands.
        let Ok(shared) = (unsafe { boundary::borrow(ring, "ring") }) else { return };
        if shared.events.check_process().is_ok() {
            // SAFETY: as the header demands, it came from here and is used by nobody else.
            drop(unsafe { Box::from_raw(ring) });
        }
    });
}

/// A ring for events of one size class.
trait Events: Send + Sync {
    /// # Safety
    ///
    /// The bytes of an event can be read.
    unsafe fn publish(&self, event: *const u8, waits: bool) -> Result;
    fn publish_batch(&self, events: &[u8]) -> core::result::Result<(), Rejected<usize>>;
    fn published(&self) -> u64;
    fn handled(&self) -> u64;
    fn close(&self);
    fn check_process(&self) -> Result;
}

struct Typed<const N: usize> {
    event_size: usize,
    ring: Ring<Cell<N>>,
}

impl<const N: usize> Typed<N> {
    /// How many events are brought into shape at once.
    const CHUNK: usize = 1024 / N;

    fn publish_reshaped(&self, events: &[u8]) -> core::result::Result<(), Rejected<usize>> {
        let mut done = 0;
        let mut cells = Vec::with_capacity(Self::CHUNK.min(events.len() / self.event_size));
        for chunk in events.chunks(self.event_size * Self::CHUNK) {
            cells.clear();
            cells.extend(chunk.chunks_exact(self.event_size).map(|event| {
                // SAFETY: a slice of the size that the class was chosen for.
                unsafe { fill::<N>(event.as_ptr(), self.event_size) }
            }));
            self.ring.publish_batch(&cells).map_err(|rejected| rejected.map(|some| done + some))?;
            done += cells.len();
        }
        Ok(())
    }
}

impl<const N: usize> Events for Typed<N> {
    unsafe fn publish(&self, event: *const u8, waits: bool) -> Result {
        // SAFETY: as the caller promises.
        let event = unsafe { fill::<N>(event, self.event_size) };
        let published = if waits { self.ring.publish(event) } else { self.ring.try_publish(event) };
        published.map_err(|rejected| Failure::from(&rejected))
    }

    fn publish_batch(&self, events: &[u8]) -> core::result::Result<(), Rejected<usize>> {
        match in_place::<N>(events, self.event_size) {
            Some(cells) => self.ring.publish_batch(cells),
            None => self.publish_reshaped(events),
        }
    }

    fn published(&self) -> u64 {
        self.ring.published()
    }

    fn handled(&self) -> u64 {
        self.ring.handled()
    }

    fn close(&self) {
        self.ring.close();
    }

    fn check_process(&self) -> Result {
        if self.ring.is_forked() { Err(boundary::FORKED) } else { Ok(()) }
    }
}

#[derive(Clone, Copy)]
enum Order {
    Serial,
    Concurrent,
}

/// # Safety
///
/// As the header demands of the arguments.
#[allow(clippy::too_many_arguments, reason = "those of the C function")]
unsafe fn make(
    pool: *mut pace_pool_t,
    order: Order,
    event_size: usize,
    capacity: usize,
    handler: pace_events_fn,
    data: *mut c_void,
    drop: pace_drop_fn,
    ring: *mut *mut pace_ring_t,
) -> Result {
    // SAFETY: as the caller promises.
    let pool = &unsafe { open(pool) }?.pool;
    let handler = callback(handler, "handler")?;
    // SAFETY: as the caller promises.
    let to = unsafe { Out::new(ring, "ring") }?;
    let (registration, owner) = pair(data, drop);
    let call = move |events: *const c_void, stride: usize, count: usize| {
        // SAFETY: as the header demands, the handler takes what came with it. Nothing is published
        // before the ring has been given out, so no call comes before that.
        unsafe { handler(owner.data(), events, stride, count) }
    };
    let made = for_size!(event_size, N => typed::<N>(pool, order, event_size, capacity, call),
        _ => Err(Failure::invalid("event_size", event_size, &format!("1 to {LARGEST}"))));
    match made {
        Ok(events) => {
            to.set(Box::into_raw(Box::new(pace_ring_t { event_size, events })));
            registration.keep();
            Ok(())
        }
        Err(failure) => {
            registration.give_back();
            Err(failure)
        }
    }
}

fn typed<const N: usize>(
    pool: &Pool,
    order: Order,
    event_size: usize,
    capacity: usize,
    call: impl Fn(*const c_void, usize, usize) + Send + Sync + 'static,
) -> Result<Box<dyn Events>> {
    let handler = move |events: &[Cell<N>]| {
        call(events.as_ptr().cast(), size_of::<Cell<N>>(), events.len());
    };
    let ring = match order {
        Order::Serial => Ring::serial(pool, capacity, handler)?,
        Order::Concurrent => Ring::concurrent(pool, capacity, handler)?,
    };
    Ok(Box::new(Typed { event_size, ring }))
}

/// # Safety
///
/// As the header demands of the arguments.
#[inline]
unsafe fn publish(ring: *const pace_ring_t, event: *const c_void, waits: bool) -> Result {
    // SAFETY: as the caller promises.
    let ring = unsafe { boundary::borrow(ring, "ring") }?;
    boundary::check(event, "event")?;
    // SAFETY: as the caller promises.
    unsafe { ring.events.publish(event.cast(), waits) }
}
