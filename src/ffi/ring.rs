//! Rings: fixed-size events from any number of threads, handled in batches by the pool.
#![allow(unsafe_code, non_camel_case_types, reason = "the symbols and pointers of the C interface")]

use super::boundary::{
    self, Failure, Handle, Result, call, call_void, callback, consumed, optional_out, out, usable,
};
use super::callback::{pace_drop_fn, pace_events_fn};
use super::cells::{LARGEST, as_words, copy};
use super::owner::pair;
use super::pool::pace_pool_t;
use super::status::*;
use crate::trace;
use crate::{Rejected, Ring};
use core::ffi::c_void;
use core::mem::MaybeUninit;

/// A bounded ring of events of one size, with a handler on a pool.
pub struct pace_ring_t {
    event_size: usize,
    ring: Ring<u64>,
}

impl Handle for pace_ring_t {
    const NAME: &'static str = "ring";

    fn is_forked(&self) -> bool {
        self.ring.is_forked()
    }
}

/// Makes a ring whose handler gets the events in the order of their publication, on one thread at a
/// time. `event_size` is 1 to 131072 bytes; `capacity`, 1 to 2^31 events, is rounded up to a power of
/// two. All memory is taken now.
///
/// PACE_EINVAL, PACE_EFULL when all max_handles are in use, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ring_serial(
    pool: Option<&pace_pool_t>,
    event_size: usize,
    capacity: usize,
    handler: pace_events_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    ring: Option<&mut MaybeUninit<*mut pace_ring_t>>,
) -> pace_status_t {
    let order = Order::Serial;
    // SAFETY: as the header demands.
    call(|| unsafe { make(pool, order, event_size, capacity, handler, user_data, drop, ring) })
}

/// Makes a ring whose handler gets batches of up to 256 events, of no more than 64 KiB if there
/// is more than one event in it, on as many threads as are free, in no
/// particular order. Otherwise as pace_ring_serial().
///
/// PACE_EINVAL, PACE_EFULL, PACE_ESHUTDOWN.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ring_concurrent(
    pool: Option<&pace_pool_t>,
    event_size: usize,
    capacity: usize,
    handler: pace_events_fn,
    user_data: *mut c_void,
    drop: pace_drop_fn,
    ring: Option<&mut MaybeUninit<*mut pace_ring_t>>,
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
    ring: Option<&pace_ring_t>,
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
    ring: Option<&pace_ring_t>,
    event: *const c_void,
) -> pace_status_t {
    // SAFETY: as the header demands.
    call(|| unsafe { publish(ring, event, false) })
}

/// Publishes `count` events in order, which lie event_size bytes apart. Waits as pace_ring_publish()
/// does. *published says how many went in, also for PACE_EFULL and PACE_ESHUTDOWN. Copying is least
/// when event_size is a multiple of 8 and `events` is aligned to 8.
///
/// PACE_EFULL (inside only), PACE_ESHUTDOWN (or closed).
///
/// Threads: any. In handlers: yes, it never waits there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pace_ring_publish_batch(
    ring: Option<&pace_ring_t>,
    events: *const c_void,
    count: usize,
    published: Option<&mut MaybeUninit<usize>>,
) -> pace_status_t {
    call(|| {
        let ring = usable(ring)?;
        let published = out(published, "published")?;
        // SAFETY: as the header demands.
        let events = unsafe { boundary::bytes(events, count, ring.event_size, "events") }?;
        match ring.publish(events, true) {
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
pub extern "C" fn pace_ring_counts(
    ring: Option<&pace_ring_t>,
    published: Option<&mut MaybeUninit<u64>>,
    handled: Option<&mut MaybeUninit<u64>>,
) -> pace_status_t {
    call(|| {
        let ring = usable(ring)?;
        ring.check_process()?;
        let published = optional_out(published);
        let handled = optional_out(handled);
        // Handled first: it never seems to be ahead.
        handled.set(ring.ring.handled());
        published.set(ring.ring.published());
        Ok(())
    })
}

/// Refuses events from now on. What has been published is still handled, and then `drop` runs.
///
/// Threads: any. In handlers: yes, it never waits.
#[unsafe(no_mangle)]
pub extern "C" fn pace_ring_close(ring: Option<&pace_ring_t>) -> pace_status_t {
    call(|| {
        let ring = usable(ring)?;
        ring.check_process()?;
        ring.ring.close();
        Ok(())
    })
}

/// Closes a ring and frees it. It waits until what was published has been handled and `drop` has run. NULL is a no-op,
/// and in a forked child nothing is freed.
///
/// Threads: any, as long as no other uses the ring any more. In handlers, and on threads of the pool: yes, it never
/// waits there.
#[unsafe(no_mangle)]
pub extern "C" fn pace_ring_free(ring: Option<Box<pace_ring_t>>) {
    call_void(|| drop(consumed(ring)));
}

impl pace_ring_t {
    fn publish(&self, events: &[u8], waits: bool) -> core::result::Result<(), Rejected<usize>> {
        match as_words(events, self.event_size) {
            Some(words) => self.ring.publish_values(words, waits),
            None => self.publish_copied(events, waits),
        }
    }

    /// Copies events into words, some at a time.
    fn publish_copied(
        &self,
        events: &[u8],
        waits: bool,
    ) -> core::result::Result<(), Rejected<usize>> {
        let width = width(self.event_size);
        let room = (events.len() / self.event_size * width).min(width.max(MOST_WORDS));
        let (mut few, mut many) = ([0; FEW_WORDS], Vec::new());
        let words = if room <= FEW_WORDS {
            &mut few[..room]
        } else {
            many.resize(room, 0);
            &mut many[..]
        };
        let at_once = (room / width).max(1);
        for (index, chunk) in events.chunks(self.event_size * at_once).enumerate() {
            let places = words.chunks_exact_mut(width);
            chunk.chunks_exact(self.event_size).zip(places).for_each(|(event, to)| copy(event, to));
            let words = &words[..chunk.len() / self.event_size * width];
            let published = self.ring.publish_values(words, waits);
            published.map_err(|rejected| rejected.map(|some| index * at_once + some))?;
        }
        Ok(())
    }

    fn check_process(&self) -> Result {
        if self.ring.is_forked() { Err(boundary::FORKED) } else { Ok(()) }
    }
}

/// How many words of events are copied on the stack.
const FEW_WORDS: usize = 32;
/// How many words of several events are copied before they are published.
const MOST_WORDS: usize = 1024;

/// How many words an event takes.
fn width(event_size: usize) -> usize {
    event_size.div_ceil(size_of::<u64>())
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
    pool: Option<&pace_pool_t>,
    order: Order,
    event_size: usize,
    capacity: usize,
    handler: pace_events_fn,
    data: *mut c_void,
    drop: pace_drop_fn,
    ring: Option<&mut MaybeUninit<*mut pace_ring_t>>,
) -> Result {
    let pool = &usable(pool)?.pool;
    let handler = callback(handler, "handler")?;
    let to = out(ring, "ring")?;
    if !(1..=LARGEST).contains(&event_size) {
        return Err(Failure::invalid("event_size", event_size, &format!("1 to {LARGEST}")));
    }
    let (registration, owner) = pair(data, drop);
    let call = move |events: *const c_void, stride: usize, count: usize| {
        trace::runs(trace::of_code(handler as *const () as usize));
        // SAFETY: as the header demands, the handler takes what came with it. Nothing is published
        // before the ring has been given out, so no call comes before that.
        unsafe { handler(owner.data(), events, stride, count) }
    };
    let width = width(event_size);
    let handler = move |words: &[u64]| {
        call(words.as_ptr().cast(), width * size_of::<u64>(), words.len() / width);
    };
    let made = match order {
        Order::Serial => Ring::serial_of(pool, width, capacity, handler),
        Order::Concurrent => Ring::concurrent_of(pool, width, capacity, handler),
    };
    match made {
        Ok(made) => {
            to.set(Box::into_raw(Box::new(pace_ring_t { event_size, ring: made })));
            registration.keep();
            Ok(())
        }
        Err(error) => {
            registration.give_back();
            Err(error.into())
        }
    }
}

/// # Safety
///
/// As the header demands of the arguments.
#[inline]
unsafe fn publish(ring: Option<&pace_ring_t>, event: *const c_void, waits: bool) -> Result {
    let ring = usable(ring)?;
    // SAFETY: as the caller promises.
    let event = unsafe { boundary::bytes(event, 1, ring.event_size, "event") }?;
    ring.publish(event, waits).map_err(|rejected| Failure::from(&rejected))
}
