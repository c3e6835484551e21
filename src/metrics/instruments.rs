//! What is one number.

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Arc, CachePadded};

/// A number that only grows. Clones are the same counter; any thread.
///
/// ```
/// use paceline::metrics::{Registry, TextFormat};
/// # fn main() -> paceline::Result<()> {
/// let registry = Registry::new();
/// let orders = registry.counter("orders", "Orders taken", &[("region", "eu")])?;
/// orders.inc();
/// orders.add(2);
/// assert_eq!(orders.get(), 3);
/// # Ok(())
/// # }
/// ```
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
///
/// ```
/// use paceline::metrics::Registry;
/// # fn main() -> paceline::Result<()> {
/// let registry = Registry::new();
/// let temperature = registry.gauge("temperature_celsius", "Of the room", &[])?;
/// temperature.set(21.5);
/// temperature.add(-0.5);
/// assert_eq!(temperature.get(), 21.0);
/// # Ok(())
/// # }
/// ```
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
