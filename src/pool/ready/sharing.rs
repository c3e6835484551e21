//! When a helper is worth waking.

use crate::sync::CachePadded;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;

/// When a helper is worth waking: the work in nanoseconds above which it is. Adapts to how late
/// helpers start here.
pub(crate) struct Sharing {
    threshold: CachePadded<AtomicU64>,
    /// The ring position at which half of the shared harvest is gone; 0: no helper was called.
    half: AtomicU64,
}

/// On two busy cores a helper that is woken for 50 µs of work costs more than it brings; at 400 µs
/// fifteen of sixteen threads would stay idle.
const THRESHOLD: (u64, u64) = (40_000, 400_000);

impl Sharing {
    pub(crate) fn new() -> Self {
        Self { threshold: CachePadded::new(AtomicU64::new(100_000)), half: AtomicU64::new(0) }
    }

    #[inline]
    pub(crate) fn threshold(&self) -> u64 {
        self.threshold.load(Relaxed)
    }

    /// A helper was called for a harvest of which half is gone at `half`.
    pub(crate) fn called(&self, half: u64) {
        self.half.store(half, Relaxed);
    }

    /// A helper has arrived. Races of two helpers only blur the measure.
    pub(crate) fn answered(&self, head: u64) {
        let half = self.half.load(Relaxed);
        if half == 0 {
            return;
        }
        self.half.store(0, Relaxed);
        let threshold = self.threshold();
        let adapted = if head >= half { threshold * 2 } else { threshold - threshold / 8 };
        self.threshold.store(adapted.clamp(THRESHOLD.0, THRESHOLD.1), Relaxed);
    }
}
