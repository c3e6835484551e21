//! What a pool knows of its hosts: where their events wait, and how they are called.

use super::outbox::{Outbox, Totals};
use crate::pool::ready::ReadyWork;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::store_load_barrier;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The outboxes of a pool, and who is there beside those that empty them.
pub(crate) struct Hosts {
    state: Mutex<State>,
    totals: Arc<Totals>,
    capacity: usize,
    /// Sources of completion queues that have something for a host.
    pub(crate) listed: AtomicUsize,
    /// Completion queues, which take nothing of each other's, and threads that only [join](crate::Pool::join): with more
    /// than one of them a call for one host may miss it.
    pub(crate) others: AtomicUsize,
}

#[derive(Default)]
struct State {
    outboxes: Vec<Weak<Outbox>>,
    closed_outside: bool,
    closed: bool,
}

impl Hosts {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::default(),
            totals: Arc::default(),
            capacity,
            listed: AtomicUsize::new(0),
            others: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An outbox for one more host, closed if the pool is.
    pub(crate) fn outbox(&self) -> Arc<Outbox> {
        let mut state = self.lock();
        state.outboxes.retain(|outbox| outbox.strong_count() > 0);
        let closed = (state.closed_outside, state.closed);
        let outbox = Arc::new(Outbox::new(self.capacity, Arc::clone(&self.totals), closed));
        state.outboxes.push(Arc::downgrade(&outbox));
        outbox
    }

    fn all(&self, change: impl FnOnce(&mut State)) -> Vec<Arc<Outbox>> {
        let mut state = self.lock();
        change(&mut state);
        state.outboxes.iter().filter_map(Weak::upgrade).collect()
    }

    /// Tags from outside are refused.
    pub(crate) fn close_outside(&self) {
        self.all(|state| state.closed_outside = true).iter().for_each(|each| each.close_outside());
    }

    /// Everything is refused, and those who wait are told.
    pub(crate) fn close(&self) {
        self.all(|state| state.closed = true).iter().for_each(|each| each.close());
    }

    /// Drops what no host took; says how many tags were among it.
    pub(crate) fn sweep(&self) -> u64 {
        self.all(|_| ()).iter().map(|each| each.sweep()).sum()
    }

    /// Whether every tag that was accepted has been handed out.
    pub(crate) fn is_delivered(&self) -> bool {
        self.counts().2 == 0
    }

    /// Tags accepted, handed out, and waiting.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        self.totals.get()
    }

    /// Whether another thread than this one comes back to an outbox.
    pub(crate) fn are_elsewhere(&self) -> bool {
        self.all(|_| ()).iter().any(|outbox| outbox.is_served_elsewhere())
    }

    /// Something is there for a host. In a pool with threads those who wait beside it have been called already; in
    /// one without they are members.
    pub(crate) fn call(&self, ready: &ReadyWork, inside: bool) {
        if ready.members.threads > 0 {
            return;
        }
        // A member that serves finds it by itself.
        if inside && self.others.load(Relaxed) <= 1 {
            return;
        }
        ready.notify_outside();
        // Others would not take it. Against *count as one of the others, then search or lead*: a mark of theirs that was
        // relied on above is seen here.
        store_load_barrier();
        if self.others.load(Relaxed) <= 1 {
            return;
        }
        ready.handles.sets.ring_all();
        ready.members.stop_all();
    }
}
