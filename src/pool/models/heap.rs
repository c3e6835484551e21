//! Work, reduced to a count.

use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Things to take: each is taken once.
pub(super) struct Heap(AtomicU32);

impl Heap {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    pub(super) fn add(&self) {
        self.0.fetch_add(1, Release);
    }

    /// As with the real queues, a look is a plain load, and so may be stale without a barrier.
    pub(super) fn any(&self) -> bool {
        self.0.load(Acquire) > 0
    }

    pub(super) fn take(&self) -> bool {
        let mut count = self.0.load(Acquire);
        while count > 0 {
            match self.0.compare_exchange(count, count - 1, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
        false
    }
}
