//! Publishers that want to know when the broker has stored their message.

use super::wire::RECEIPT;
use crate::error::{Error, Result};
use crate::hub::Stored;
use core::future::Future;
use core::hash::BuildHasher;
use core::pin::Pin;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// By the number in the message's own header, which is noted before it is published.
pub(super) struct Waiters {
    last: AtomicU64,
    open: Mutex<Open>,
    /// Says why the time of one that waits has run out.
    late: OnceLock<Box<dyn Fn() -> Error + Send + Sync>>,
}

impl Default for Waiters {
    fn default() -> Self {
        // A message that a spool has kept may carry a number of a process that is gone.
        let last = RandomState::new().hash_one(()) >> 1;
        Self { last: AtomicU64::new(last), open: Mutex::default(), late: OnceLock::new() }
    }
}

#[derive(Default)]
struct Open {
    slots: HashMap<u64, Arc<Slot>>,
    /// The bridge has: nobody will tell one more.
    has_ended: bool,
}

/// Where one learns it.
#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Exports that have not stored it; None: that is not known yet.
    left: Option<u64>,
    ended: u64,
    place: Option<Place>,
    /// Why one never will.
    failure: Option<String>,
    /// Its number in the hub, and which exports with a spool it waits for; 0: that is not known yet.
    sequence: u64,
    spools: Vec<usize>,
    /// An archive has let go of it before it was sent.
    is_gone: bool,
    has_ended: bool,
    waker: Option<Waker>,
    then: Option<Box<dyn FnOnce(Result<Place>) + Send>>,
}

/// Where a stream has a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) sequence: u64,
    /// It had one of the same id already, there.
    pub(super) is_duplicate: bool,
}

impl State {
    fn end(&self) -> Option<Result<Place>> {
        if let Some(reason) = &self.failure {
            let allowed = "one that the broker's stream takes";
            return Some(Err(Error::invalid("the message", reason.clone(), allowed)));
        }
        match self.left {
            _ if self.is_gone => Some(Err(Error::Stale { what: "message" })),
            Some(left) if self.ended >= left => self.place.map(Ok),
            _ if self.has_ended => Some(Err(Error::ShutDown)),
            _ => None,
        }
    }
}

impl Slot {
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let Some(end) = state.end() else { return };
        let (waker, then) = (state.waker.take(), state.then.take());
        drop(state);
        self.changed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
        if let Some(then) = then {
            then(end);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiters {
    /// Once, before anyone waits.
    pub(super) fn explain(&self, late: impl Fn() -> Error + Send + Sync + 'static) {
        let _first = self.late.set(Box::new(late));
    }

    /// One more, and the number that its message is to carry.
    pub(super) fn open(self: &Arc<Self>) -> (u64, PendingStore) {
        let number = self.last.fetch_add(1, Relaxed) + 1;
        let slot = Arc::<Slot>::default();
        let mut open = self.lock();
        slot.lock().has_ended = open.has_ended;
        open.slots.insert(number, Arc::clone(&slot));
        drop(open);
        (number, PendingStore { slot, number, waiters: Arc::clone(self) })
    }

    /// An export has come to the end with this message.
    pub(super) fn end(&self, message: &Stored, end: core::result::Result<Place, String>) {
        let Some(number) = message.headers().get(RECEIPT) else { return };
        let slot =
            number.parse().ok().and_then(|number: u64| self.lock().slots.get(&number).cloned());
        if let Some(slot) = slot {
            slot.change(|state| match end {
                Ok(place) => {
                    state.ended += 1;
                    state.place = Some(place);
                }
                Err(reason) => state.failure = Some(reason),
            });
        }
    }

    /// This export with a spool has come to a message of the hub's number `until`, and some before it were not there any
    /// more: all, but for those that it `has`.
    pub(super) fn gone(&self, spool: usize, until: u64, has: impl Fn(u64) -> bool) {
        let slots: Vec<_> = self.lock().slots.values().cloned().collect();
        for slot in slots {
            slot.change(|state| {
                let is_before = state.sequence != 0 && state.sequence < until;
                let is_open = state.spools.contains(&spool) && state.end().is_none();
                state.is_gone |= is_before && is_open && !has(state.sequence);
            });
        }
    }

    /// The bridge has ended.
    pub(super) fn end_all(&self) {
        let ended = Open { has_ended: true, ..Open::default() };
        let open = core::mem::replace(&mut *self.lock(), ended);
        open.slots.into_values().for_each(|slot| slot.change(|state| state.has_ended = true));
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message that was published, and that the broker is to store: wait for it, or await it. Dropping it changes nothing
/// but that nobody learns of it.
#[must_use = "the broker has not stored the message yet"]
pub struct PendingStore {
    slot: Arc<Slot>,
    number: u64,
    waiters: Arc<Waiters>,
}

impl PendingStore {
    /// So many exports store it.
    pub(super) fn expect(&self, exports: u64) {
        self.expect_of(exports, 0, Vec::new());
    }

    /// The same, and its number in the hub, and which of them have a spool.
    pub(super) fn expect_of(&self, exports: u64, sequence: u64, spools: Vec<usize>) {
        self.slot.change(|state| {
            (state.left, state.sequence, state.spools) = (Some(exports), sequence, spools);
        });
    }

    /// Waits until the broker has stored the message, for up to `timeout`. Not in handlers and tasks: a thread of the pool
    /// would stand still for as long; await it there, or use [`then`](Self::then).
    ///
    /// # Errors
    /// [`Error::TimedOut`], or [`Error::Broker`] with the reason: it is not stored yet, and will be. [`Error::Invalid`]: the
    /// stream does not take it. [`Error::ShutDown`]: the bridge has ended before. [`Error::Stale`]: the archive of a
    /// [spool](super::Export::spool) has let go of it before it was sent, which the bridge finds when it comes to what is kept.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        let until = Instant::now().checked_add(timeout);
        let mut state = self.slot.lock();
        loop {
            if let Some(end) = state.end() {
                return end.map(drop);
            }
            let left = until.map_or(Duration::from_secs(3600), |until| {
                until.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                drop(state);
                return Err(self.waiters.late.get().map_or(Error::TimedOut, |late| late()));
            }
            let waited = self.slot.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Has the function called when the message is stored, or never will be: with what [`wait`](Self::wait) answers. It is
    /// called once, by the thread of the bridge, or at once by this one; it is to return soon, and a panic of it ends
    /// there.
    pub fn then(self, function: impl FnOnce(Result<()>) + Send + 'static) {
        self.then_at(move |end| function(end.map(drop)));
    }

    /// As [`then`](Self::then): where it is stored.
    pub(super) fn then_at(self, function: impl FnOnce(Result<Place>) + Send + 'static) {
        let contained = move |end| {
            let _panicked = crate::pool::contain(move || function(end));
        };
        let slot = Arc::clone(&self.slot);
        slot.change(move |state| {
            state.then = Some(Box::new(move |end| {
                // Not before it is told: whoever drops it is not told.
                drop(self);
                contained(end);
            }));
        });
    }
}

impl Drop for PendingStore {
    fn drop(&mut self) {
        drop(self.waiters.lock().slots.remove(&self.number));
    }
}

impl Future for PendingStore {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut state = self.slot.lock();
        match state.end() {
            Some(end) => Poll::Ready(end.map(drop)),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl core::fmt::Debug for PendingStore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let end = self.slot.lock().end();
        f.debug_struct("PendingStore").field("end", &end).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_after_the_end_is_told_of_it() {
        let waiters = Arc::<Waiters>::default();
        waiters.end_all();
        let (_, pending) = waiters.open();
        let told = Arc::new(Mutex::new(None));
        let tell = Arc::clone(&told);
        pending.then(move |end| *tell.lock().unwrap() = Some(end));
        assert!(matches!(*told.lock().unwrap(), Some(Err(Error::ShutDown))));
        assert!(waiters.lock().slots.is_empty());
    }
}
