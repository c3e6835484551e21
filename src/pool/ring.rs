//! Rings: fixed-size events from any number of producers, handled in batches by the pool.
//!
//! The ring itself, with its protocol, is `queue/event_ring.rs`. Here it meets the pool: a publisher
//! that finds the consumer resting makes the ring's slot runnable, as any activation. A serial ring
//! has one slot, so its handler runs on one thread at a time. A concurrent ring has one per thread:
//! whoever has taken a batch and sees more calls the next slot *before* it handles its own.
//!
//! A call is never lost. Either the slot becomes QUEUED by it, or it is QUEUED or RUNNING already and
//! keeps the readiness, and then it runs once more.

use super::Pool;
use super::end::{Remains, Served};
use super::handler::Flow;
use super::service;
use super::shared::Shared;
use super::slots::{Activity, Key};
use crate::error::{Error, NoRoom, Rejected, Result};
use crate::queue::PushError;
use crate::queue::event_ring::{
    ConcurrentConsumer, EventRing, Published, Rest, SerialConsumer, concurrent, serial,
};
use crate::source::Ready;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::trace::Name;
use core::any::Any;
use core::fmt;
use std::sync::{Arc, Weak};

/// Events per run of a serial handler, before other ready work has its turn.
const RUN: usize = 1024;
/// Events per batch of a concurrent handler.
const BATCH: usize = 256;
/// Values per batch of a concurrent handler, at least one event: 64 KiB of 8 bytes each.
const BATCH_VALUES: usize = 8192;

/// A bounded ring of fixed-size events with a handler on the pool. Clones are the same ring, and any
/// thread may publish. When the last clone is dropped, or [`close`](Self::close) is called, it
/// refuses more; what has been published is still handled, and the drain of a shutdown waits for it.
/// On a thread outside the pool, dropping the last clone waits until all of that was handled and the handler has been
/// dropped. On a thread of the pool it does not wait.
///
/// ```
/// use paceline::{Pool, Ring};
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::sync::Arc;
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let pool = Pool::new()?;
/// let sum = Arc::new(AtomicU64::new(0));
/// let total = Arc::clone(&sum);
/// let ring = Ring::serial(&pool, 1024, move |events: &[u64]| {
///     total.fetch_add(events.iter().sum(), Ordering::Relaxed);
/// })?;
/// for event in 1..=100 {
///     ring.publish(event)?; // from any thread; waits if the ring is full
/// }
/// assert!(pool.shutdown(Duration::from_secs(10)).drained);
/// assert_eq!(sum.load(Ordering::Relaxed), 5050);
/// # Ok(())
/// # }
/// ```
pub struct Ring<T: Copy + Send + Sync + 'static> {
    owner: Arc<Owner<T>>,
}

struct Owner<T: Copy + Send + Sync + 'static> {
    shared: Arc<Shared>,
    ring: Arc<EventRing<T>>,
    slots: Box<[Key]>,
    /// Of a concurrent ring: its events are taken before they are handled. A serial one's are taken
    /// when its handler returns.
    handled: Option<Arc<AtomicU64>>,
    /// How many slots have the handler.
    serving: Arc<AtomicU64>,
}

impl<T: Copy + Send + Sync + 'static> Ring<T> {
    /// A ring whose handler gets the events in the order of their publication, on one thread at a
    /// time, in slices of everything that has come. `capacity`, 1 to 2^31 events, is rounded up to a
    /// power of two.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the capacity; [`Error::Full`] when all `max_handles` are in use,
    /// [`Error::ShutDown`], [`Error::Forked`].
    pub fn serial<F>(pool: &Pool, capacity: usize, handler: F) -> Result<Self>
    where
        F: FnMut(&[T]) + Send + 'static,
    {
        Self::serial_of(pool, 1, capacity, handler)
    }

    /// As [`serial`](Self::serial), for events of `width` values each, which are published by
    /// [`publish_values`](Self::publish_values) only.
    pub(crate) fn serial_of<F>(
        pool: &Pool,
        width: usize,
        capacity: usize,
        handler: F,
    ) -> Result<Self>
    where
        F: FnMut(&[T]) + Send + 'static,
    {
        let shared = pool.shared();
        shared.check_open()?;
        let (ring, consumer) = serial("capacity", capacity, width)?;
        let serving = Arc::new(AtomicU64::new(0));
        let serves = Serves::new(&serving, shared);
        let key = shared.ready.handles.let_slot(Box::new(Serial {
            consumer,
            handler,
            _serves: serves,
        }))?;
        Self::open(shared, ring, Box::new([key]), None, serving)
    }

    /// A ring whose handler gets batches of up to 256 events on as many threads as are free, in no
    /// particular order. `capacity` as for [`serial`](Self::serial).
    ///
    /// # Errors
    /// As [`serial`](Self::serial).
    pub fn concurrent<F>(pool: &Pool, capacity: usize, handler: F) -> Result<Self>
    where
        F: Fn(&[T]) + Send + Sync + 'static,
    {
        Self::concurrent_of(pool, 1, capacity, handler)
    }

    /// As [`concurrent`](Self::concurrent), for events of `width` values each, which are published by
    /// [`publish_values`](Self::publish_values) only.
    pub(crate) fn concurrent_of<F>(
        pool: &Pool,
        width: usize,
        capacity: usize,
        handler: F,
    ) -> Result<Self>
    where
        F: Fn(&[T]) + Send + Sync + 'static,
    {
        let shared = pool.shared();
        shared.check_open()?;
        let (ring, consumer) = concurrent("capacity", capacity, width)?;
        let batch = (BATCH_VALUES / width).clamp(1, BATCH) * width;
        let handler = Arc::new(handler);
        let handled = Arc::new(AtomicU64::new(0));
        let serving = Arc::new(AtomicU64::new(0));
        let keys: Arc<[std::sync::OnceLock<Key>]> =
            (0..shared.places.ordinary().max(1)).map(|_| std::sync::OnceLock::new()).collect();
        for key in &*keys {
            let batch = Concurrent {
                consumer: consumer.clone(),
                handler: Arc::clone(&handler),
                handled: Arc::clone(&handled),
                batch: Vec::with_capacity(batch),
                keys: Arc::clone(&keys),
                serves: Serves::new(&serving, shared),
            };
            match shared.ready.handles.let_slot(Box::new(batch)) {
                Ok(slot) => drop(key.set(slot)),
                Err(error) => {
                    let begun = keys.iter().filter_map(|key| key.get().copied());
                    begun.for_each(|slot| drop(shared.ready.handles.close(slot, false)));
                    return Err(error);
                }
            }
        }
        let slots = keys.iter().filter_map(|key| key.get().copied()).collect();
        Self::open(shared, ring, slots, Some(handled), serving)
    }

    fn open(
        shared: &Arc<Shared>,
        ring: Arc<EventRing<T>>,
        slots: Box<[Key]>,
        handled: Option<Arc<AtomicU64>>,
        serving: Arc<AtomicU64>,
    ) -> Result<Self> {
        if shared.is_too_late() {
            slots.iter().for_each(|&key| drop(shared.ready.handles.close(key, false)));
            return Err(Error::ShutDown);
        }
        let served: Weak<EventRing<T>> = Arc::downgrade(&ring);
        shared.end.serve(served);
        let shared = Arc::clone(shared);
        Ok(Self { owner: Arc::new(Owner { shared, ring, slots, handled, serving }) })
    }

    /// Publishes one event. From outside the pool's threads it waits while the ring is full; inside
    /// a handler it never waits.
    ///
    /// # Errors
    /// [`Rejected`] gives the event back: `Full` (inside only), `ShutDown` (or closed), `Forked`.
    #[inline]
    pub fn publish(&self, event: T) -> Result<(), Rejected<T>> {
        match self.try_publish(event) {
            Err(Rejected::Full(event, _)) if !self.owner.shared.is_inside() => {
                match self.owner.ring.publish_batch(&[event], || self.owner.call()) {
                    1 => Ok(()),
                    _ => Err(Rejected::ShutDown(event)),
                }
            }
            other => other,
        }
    }

    /// Publishes one event if there is room.
    ///
    /// # Errors
    /// [`Rejected`] gives the event back.
    #[inline]
    pub fn try_publish(&self, event: T) -> Result<(), Rejected<T>> {
        let owner = &*self.owner;
        if owner.shared.is_forked() {
            return Err(Rejected::Forked(event));
        }
        if owner.is_too_late() {
            return Err(Rejected::ShutDown(event));
        }
        match owner.ring.try_publish(&event) {
            Ok(Published::Seen) => Ok(()),
            Ok(Published::Call) => {
                owner.call();
                Ok(())
            }
            Err(PushError::Full(event)) => Err(Rejected::Full(event, self.no_room())),
            Err(PushError::Closed(event)) => Err(Rejected::ShutDown(event)),
        }
    }

    /// Publishes several events in order; those that fit at once stay together. Waits as
    /// [`publish`](Self::publish) does.
    ///
    /// # Errors
    /// [`Rejected`] says how many were published before the refusal.
    pub fn publish_batch(&self, events: &[T]) -> Result<(), Rejected<usize>> {
        self.publish_values(events, true)
    }

    /// Publishes the events that `values` are made of, in order. Waits for room if `waits`, but not inside.
    pub(crate) fn publish_values(&self, values: &[T], waits: bool) -> Result<(), Rejected<usize>> {
        let owner = &*self.owner;
        if owner.shared.is_forked() {
            return Err(Rejected::Forked(0));
        }
        if owner.is_too_late() {
            return Err(Rejected::ShutDown(0));
        }
        if !waits || owner.shared.is_inside() {
            return self.try_publish_values(values);
        }
        match owner.ring.publish_batch(values, || owner.call()) {
            all if all == values.len() / owner.ring.width() => Ok(()),
            some => Err(Rejected::ShutDown(some)),
        }
    }

    #[cold]
    fn no_room(&self) -> NoRoom {
        let capacity = self.owner.ring.capacity() / self.owner.ring.width();
        NoRoom::new(
            "the ring",
            capacity,
            "a larger capacity, or to publish outside of handlers, where that waits",
        )
    }

    fn try_publish_values(&self, values: &[T]) -> Result<(), Rejected<usize>> {
        let width = self.owner.ring.width();
        let mut done = 0;
        while done < values.len() / width {
            match self.owner.ring.try_publish_batch(&values[done * width..]) {
                Ok((count, published)) => {
                    done += count;
                    if published == Published::Call {
                        self.owner.call();
                    }
                }
                Err(PushError::Full(())) => return Err(Rejected::Full(done, self.no_room())),
                Err(PushError::Closed(())) => return Err(Rejected::ShutDown(done)),
            }
        }
        Ok(())
    }

    /// Refuses events from now on. What has been published is still handled.
    pub fn close(&self) {
        self.owner.close();
    }

    /// How many events were published since the start.
    pub fn published(&self) -> u64 {
        self.owner.ring.accepted()
    }

    /// How many events have been handled since the start; those of a running handler count when it
    /// returns.
    pub fn handled(&self) -> u64 {
        match &self.owner.handled {
            // Acquire: pairs with the Release of `Handled`, so that what handlers wrote is seen.
            Some(handled) => handled.load(Acquire),
            None => self.owner.ring.consumed(),
        }
    }

    /// Whether this is a child of the process that made it.
    pub(crate) fn is_forked(&self) -> bool {
        self.owner.shared.is_forked()
    }

    /// How many events fit.
    pub fn capacity(&self) -> usize {
        self.owner.ring.capacity()
    }
}

impl<T: Copy + Send + Sync + 'static> Served for EventRing<T> {
    fn remains(&self, _: u64) -> Remains {
        if self.left() == 0 { Remains::Nothing } else { Remains::Work }
    }

    fn left(&self) -> u64 {
        self.accepted().saturating_sub(self.consumed())
    }

    fn close(&self) {
        EventRing::close(self);
    }
}

impl<T: Copy + Send + Sync + 'static> Clone for Ring<T> {
    fn clone(&self) -> Self {
        Self { owner: Arc::clone(&self.owner) }
    }
}

impl<T: Copy + Send + Sync + 'static> fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("capacity", &self.capacity())
            .field("published", &self.published())
            .field("handled", &self.handled())
            .finish_non_exhaustive()
    }
}

impl<T: Copy + Send + Sync + 'static> Owner<T> {
    /// Whether the pool drains, which handlers may add to and others may not.
    #[inline]
    fn is_too_late(&self) -> bool {
        !self.shared.end.is_open_to(true)
            || !self.shared.end.is_open_to(false) && !self.shared.is_inside()
    }

    #[cold]
    fn call(&self) {
        service::call_one(&self.shared, self.slots.iter().copied());
    }

    fn close(&self) {
        self.ring.close();
        // Each slot sees the close when it runs, and ends.
        for &key in &self.slots {
            service::call_one(&self.shared, core::iter::once(key));
        }
    }
}

impl<T: Copy + Send + Sync + 'static> Drop for Owner<T> {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            return;
        }
        self.close();
        // Acquire: pairs with the Release in the drop of `Serves`.
        let ended = || self.serving.load(Acquire) == 0;
        let slots = || self.slots.iter().copied();
        self.shared
            .wait_outside(slots, |time| self.shared.ready.handles.changed.wait_unless(time, ended));
    }
}

/// The serial ring's side in its slot.
struct Serial<T: Copy + Send, F> {
    consumer: SerialConsumer<T>,
    handler: F,
    /// Dropped after the handler.
    _serves: Serves,
}

/// Counts a slot that has the handler.
pub(super) struct Serves {
    serving: Arc<AtomicU64>,
    shared: std::sync::Weak<Shared>,
}

impl Serves {
    pub(super) fn new(serving: &Arc<AtomicU64>, shared: &Arc<Shared>) -> Self {
        serving.fetch_add(1, Relaxed);
        Self { serving: Arc::clone(serving), shared: Arc::downgrade(shared) }
    }
}

impl Drop for Serves {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in the drop of `Owner`.
        if self.serving.fetch_sub(1, Release) == 1
            && let Some(shared) = self.shared.upgrade()
        {
            shared.ready.handles.changed.announce();
        }
    }
}

impl<T: Copy + Send + Sync + 'static, F: FnMut(&[T]) + Send> Activity for Serial<T, F> {
    fn run(&mut self, _: Ready) -> Flow {
        let consumed = self.consumer.consume(RUN, &mut self.handler);
        if consumed == RUN || self.consumer.rest() == Rest::More {
            return Flow::Again;
        }
        if self.consumer.is_finished() { Flow::Done } else { Flow::Wait }
    }

    fn name(&self) -> Name {
        Name::of::<F>()
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

impl<T: Copy + Send, F> Drop for Serial<T, F> {
    /// Without a consumer nothing more can be taken: publishers must know.
    fn drop(&mut self) {
        self.consumer.ring().close();
    }
}

/// Counts a batch when its handler has returned, or panicked.
struct Handled<'a>(&'a AtomicU64, u64);

impl Drop for Handled<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `Ring::handled`.
        self.0.fetch_add(self.1, Release);
    }
}

/// One of the concurrent ring's sides, in one of its slots.
struct Concurrent<T: Copy + Send, F> {
    consumer: ConcurrentConsumer<T>,
    handler: Arc<F>,
    handled: Arc<AtomicU64>,
    batch: Vec<T>,
    keys: Arc<[std::sync::OnceLock<Key>]>,
    /// Dropped after the handler.
    serves: Serves,
}

impl<T, F> Activity for Concurrent<T, F>
where
    T: Copy + Send + Sync + 'static,
    F: Fn(&[T]) + Send + Sync + 'static,
{
    fn run(&mut self, _: Ready) -> Flow {
        self.batch.clear();
        let taken = self.consumer.claim(&mut self.batch);
        if self.consumer.rest() == Rest::More
            && let Some(shared) = self.serves.shared.upgrade()
        {
            service::call_one(&shared, self.keys.iter().filter_map(|key| key.get().copied()));
        }
        if taken > 0 {
            let _counted = Handled(&self.handled, taken as u64);
            (self.handler)(&self.batch);
            return Flow::Again;
        }
        if self.consumer.is_finished() { Flow::Done } else { Flow::Wait }
    }

    fn name(&self) -> Name {
        Name::of::<F>()
    }

    fn into_io(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

impl<T: Copy + Send, F> Drop for Concurrent<T, F> {
    fn drop(&mut self) {
        self.consumer.ring().close();
    }
}
