//! What is one number.

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, CachePadded};

/// A number that only grows. Clones are the same counter; any thread.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<CachePadded<AtomicU64>>);

impl Counter {
    /// One more.
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }

    /// So many more.
    #[inline]
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    /// How many there are.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that goes up and down. Clones are the same gauge; any thread.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<CachePadded<AtomicU64>>);

impl Gauge {
    /// It is this now.
    #[inline]
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }

    /// So much more; less, if it is negative.
    #[inline]
    pub fn add(&self, difference: f64) {
        let sum = |bits| Some((f64::from_bits(bits) + difference).to_bits());
        let _always_ok = self.0.fetch_update(Relaxed, Relaxed, sum);
    }

    /// What it is now.
    #[must_use]
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}
