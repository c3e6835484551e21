//! Where a subscription is in the ring of its channel.

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;

/// The next position that a subscription in the ring takes, or [`NOT_IN_RING`]. Written under the mailbox's lock while a
/// run may be active, and under both locks when it comes or goes.
pub(in crate::hub) struct RingCursor(AtomicU64);

/// The subscription is not in the ring.
const NOT_IN_RING: u64 = u64::MAX;

impl RingCursor {
    pub(in crate::hub) fn new() -> Self {
        Self(AtomicU64::new(NOT_IN_RING))
    }

    /// At the head, from where it is in the ring.
    pub(in crate::hub) fn join(&self, head: u64) {
        self.0.store(head, Relaxed);
    }

    /// Out of the ring. Answers the next position that it would have taken.
    pub(in crate::hub) fn part(&self) -> u64 {
        let next = self.next();
        self.0.store(NOT_IN_RING, Relaxed);
        next
    }

    /// Takes so many.
    pub(in crate::hub) fn advance(&self, count: usize) {
        self.0.store(self.next() + count as u64, Relaxed);
    }

    /// Gives so many back that it has taken last.
    pub(in crate::hub) fn retreat(&self, count: usize) {
        self.0.store(self.next() - count as u64, Relaxed);
    }

    pub(in crate::hub) fn is_in_ring(&self) -> bool {
        self.next() != NOT_IN_RING
    }

    pub(in crate::hub) fn next(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
