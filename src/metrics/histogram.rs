//! How values are spread, counted by each thread for itself.
//!
//! **The problem.** A value is recorded for every task, and nobody may wait for it: no lock, no line of
//! memory that two threads write. And whoever reads must see every value that was recorded before, also
//! those of threads that sleep or have ended. (hdrhistogram's own `SyncHistogram` sees a thread's values
//! only when that thread records again.)
//!
//! ```text
//!   thread 1 ──writes──► shard ─┐
//!   thread 2 ──writes──► shard ─┼─ snapshot: summed into one hdrhistogram
//!   (ended)              shard ─┘
//! ```
//!
//! A *shard* is one thread's histogram: a count for each bucket, where the buckets are those of
//! hdrhistogram for two significant digits (128 in each octave, so a value is off by less than 0.8%). A coarse one has
//! 16 in each octave: a value is off by less than 6.3%, and a shard has 6 KB in place of 43.
//!
//! | `owned` | |
//! |---|---|
//! | true | one thread has it, and only that thread writes its counts |
//! | false | its thread has ended; its counts stand, and the next new thread goes on with them |
//!
//! **Invariants.**
//! 1. A shard has at most one owner, and only the owner writes: so a plain load and store adds one.
//! 2. A shard lives as long as its histogram; there are at most as many as threads were recording at once.
//!
//! **Orderings.** Counts are Relaxed: each is a number for itself. An owner gives its shard up by a
//! Release store, and the next takes it by an Acquire exchange, so that it adds to what the last has
//! written and not to less.

use super::snapshot::{Distribution, Unit};
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU64};
use core::cell::RefCell;
use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Buckets in each octave, as a power of two.
const OCTAVE_BITS: u32 = 7;
/// The same of a coarse histogram.
const COARSE_BITS: u32 = 4;

/// Values above this count as this: 78 hours in nanoseconds, or 256 TiB.
#[cfg(not(loom))]
pub(super) const HIGHEST: u64 = (1 << 48) - 1;
/// In models: one bucket for each value.
#[cfg(loom)]
pub(super) const HIGHEST: u64 = 3;

/// A distribution of values. Clones are the same histogram; any thread. Each thread that records has some
/// 43 KB of counts in each histogram.
///
/// ```
/// use paceline::metrics::{Registry, Unit};
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let registry = Registry::new();
/// let latency = registry.histogram("latency", "Of answers", &[], Unit::Time)?;
/// latency.record_time(Duration::from_millis(5));
/// assert_eq!(latency.snapshot().count(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Histogram(Arc<Core>);

struct Core {
    unit: Unit,
    octave_bits: u32,
    shards: Mutex<Vec<Arc<Shard>>>,
}

/// One thread's counts.
struct Shard {
    owned: AtomicBool,
    octave_bits: u32,
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
    most: AtomicU64,
}

/// A shard in the hands of its thread.
struct Own {
    histogram: Weak<Core>,
    shard: Arc<Shard>,
}

thread_local! {
    /// Of this thread, one for each histogram that it has recorded in.
    static OWN: RefCell<Vec<Own>> = const { RefCell::new(Vec::new()) };
}

impl Histogram {
    pub(crate) fn new(unit: Unit) -> Self {
        Self(Arc::new(Core { unit, octave_bits: OCTAVE_BITS, shards: Mutex::default() }))
    }

    /// For those that there are many of.
    pub(crate) fn coarse(unit: Unit) -> Self {
        Self(Arc::new(Core { unit, octave_bits: COARSE_BITS, shards: Mutex::default() }))
    }

    /// Whether anything may have been recorded.
    pub(crate) fn is_used(&self) -> bool {
        !self.0.lock().is_empty()
    }

    /// Counts one value, in the histogram's unit; a time, in nanoseconds.
    #[inline]
    pub fn record(&self, value: u64) {
        let recorded = OWN.try_with(|own| {
            let mut own = own.borrow_mut();
            // As long as an entry is there, nothing else can have its histogram's address.
            match own.iter().find(|own| Weak::as_ptr(&own.histogram) == Arc::as_ptr(&self.0)) {
                Some(own) => own.shard.record(value),
                None => self.record_first(&mut own, value),
            }
        });
        if recorded.is_err() {
            // The thread is ending.
            self.claim().shard.record(value);
        }
    }

    /// Counts one time.
    #[inline]
    pub fn record_time(&self, time: Duration) {
        self.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// What all threads have recorded.
    #[must_use]
    pub fn snapshot(&self) -> Distribution {
        let mut distribution = Distribution::new(self.0.unit);
        for shard in self.0.lock().iter() {
            shard.add_to(&mut distribution);
        }
        distribution
    }

    /// Of what it measures.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.0.unit
    }

    #[cold]
    fn record_first(&self, own: &mut Vec<Own>, value: u64) {
        own.retain(|own| own.histogram.strong_count() > 0);
        let mine = self.claim();
        mine.shard.record(value);
        own.push(mine);
    }

    /// A shard that no thread has any more, or a new one.
    fn claim(&self) -> Own {
        let mut shards = self.0.lock();
        let shard = match shards.iter().find(|shard| shard.claim()) {
            Some(shard) => shard.clone(),
            None => {
                let shard = Arc::new(Shard::new(self.0.octave_bits));
                shards.push(shard.clone());
                shard
            }
        };
        Own { histogram: Arc::downgrade(&self.0), shard }
    }
}

impl Core {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Shard>>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.shard.give_up();
    }
}

impl Shard {
    /// Owned by whoever makes it.
    fn new(octave_bits: u32) -> Self {
        Self {
            owned: AtomicBool::new(true),
            octave_bits,
            counts: (0..=index(HIGHEST, octave_bits)).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
            most: AtomicU64::new(0),
        }
    }

    fn claim(&self) -> bool {
        // Acquire: pairs with the Release of its last owner.
        self.owned.compare_exchange(false, true, Acquire, Relaxed).is_ok()
    }

    /// The owner only, as its last.
    fn give_up(&self) {
        // Release: pairs with the Acquire in `claim`.
        self.owned.store(false, Release);
    }

    /// The owner only (invariant 1).
    #[inline]
    fn record(&self, value: u64) {
        let value = value.min(HIGHEST);
        raise(&self.counts[index(value, self.octave_bits)], 1);
        raise(&self.sum, value);
        if self.most.load(Relaxed) < value {
            self.most.store(value, Relaxed);
        }
    }

    fn add_to(&self, distribution: &mut Distribution) {
        for (index, count) in self.counts.iter().enumerate() {
            distribution.add(lowest(index, self.octave_bits), count.load(Relaxed));
        }
        distribution.add_sum(self.sum.load(Relaxed), self.most.load(Relaxed));
    }
}

/// Adds to a number that nobody else writes.
#[inline]
fn raise(number: &AtomicU64, by: u64) {
    number.store(number.load(Relaxed).wrapping_add(by), Relaxed);
}

/// The bucket of a value: the value itself up to two octaves' worth, then so many for each octave.
#[inline]
fn index(value: u64, octave_bits: u32) -> usize {
    let octave = (value | 1).ilog2().saturating_sub(octave_bits);
    ((octave as usize) << octave_bits) + (value >> octave) as usize
}

/// The least value of a bucket.
fn lowest(index: usize, octave_bits: u32) -> u64 {
    let octave = (index >> octave_bits).saturating_sub(1);
    ((index - (octave << octave_bits)) as u64) << octave
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram").field("unit", &self.0.unit).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::thread;

    fn any_value() -> impl Strategy<Value = u64> {
        (0_u32..48, any::<u64>()).prop_map(|(shift, bits)| (bits & HIGHEST) >> shift)
    }

    proptest! {
        /// Goal: a value lands in the bucket that hdrhistogram would have it in.
        #[test]
        fn buckets_are_those_of_hdrhistogram(value in any_value()) {
            let like = hdrhistogram::Histogram::<u64>::new_with_bounds(1, HIGHEST, 2).unwrap();
            prop_assert_eq!(lowest(index(value, 7), 7), like.lowest_equivalent(value));
            prop_assert_eq!(index(lowest(index(value, 7), 7), 7), index(value, 7));
        }

        /// Goal: a coarse histogram is off by less than it says.
        #[test]
        fn a_coarse_bucket_is_off_by_a_sixteenth_at_most(value in any_value()) {
            let bucket = index(value, COARSE_BITS);
            let lowest = lowest(bucket, COARSE_BITS);
            prop_assert!(lowest <= value && value - lowest <= value / 16, "{lowest}");
            let histogram = Histogram::coarse(Unit::Count);
            histogram.record(value);
            prop_assert_eq!(histogram.snapshot().sum(), value as f64);
        }

        /// Goal: what threads have recorded apart is what one hdrhistogram would have recorded.
        #[test]
        fn threads_together_are_one_histogram(values in prop::collection::vec(any_value(), 1..200)) {
            let histogram = Histogram::new(Unit::Count);
            let mut whole = hdrhistogram::Histogram::<u64>::new_with_bounds(1, HIGHEST, 2).unwrap();
            thread::scope(|scope| {
                for part in values.chunks(50) {
                    scope.spawn(|| part.iter().for_each(|value| histogram.record(*value)));
                }
            });
            values.iter().for_each(|value| whole.record(*value).unwrap());
            let merged = histogram.snapshot();
            prop_assert_eq!(merged.count(), values.len() as u64);
            prop_assert_eq!(merged.sum(), values.iter().sum::<u64>() as f64);
            prop_assert_eq!(merged.max(), *values.iter().max().unwrap() as f64);
            for quantile in [0.0, 0.5, 0.9, 0.99, 0.999] {
                let one = whole.value_at_quantile(quantile);
                prop_assert_eq!(merged.quantile(quantile), one.min(merged.max() as u64) as f64);
            }
        }
    }

    /// Goal: what is above the highest value counts as the highest.
    #[test]
    fn the_highest_value_is_a_ceiling() {
        let histogram = Histogram::new(Unit::Count);
        histogram.record(u64::MAX);
        histogram.record_time(Duration::MAX);
        assert_eq!(histogram.snapshot().max(), HIGHEST as f64);
        assert_eq!(histogram.snapshot().count(), 2);
    }

    /// Goal: threads that end leave their shards to others (invariant 2), and their counts stay.
    #[test]
    fn a_thousand_threads_one_after_another_share_a_shard() {
        let histogram = Histogram::new(Unit::Count);
        for value in 0..1000 {
            let histogram = histogram.clone();
            thread::spawn(move || histogram.record(value)).join().unwrap();
        }
        assert_eq!(histogram.snapshot().count(), 1000);
        assert_eq!(histogram.0.lock().len(), 1);
    }

    /// Goal: a histogram that is gone is forgotten by the threads that recorded in it.
    #[test]
    fn a_thread_forgets_histograms_that_are_gone() {
        thread::spawn(|| {
            for _ in 0..100 {
                Histogram::new(Unit::Count).record(1);
            }
            OWN.with(|own| assert!(own.borrow().len() <= 1, "{}", own.borrow().len()));
        })
        .join()
        .unwrap();
    }

    /// Goal: a value that is recorded while the thread's own things are torn down is not lost.
    #[test]
    fn a_thread_that_ends_still_records() {
        struct Last(Histogram);
        impl Drop for Last {
            fn drop(&mut self) {
                self.0.record(1);
            }
        }
        thread_local!(static LAST: RefCell<Option<Last>> = const { RefCell::new(None) });
        let histogram = Histogram::new(Unit::Count);
        let last = histogram.clone();
        let thread = thread::spawn(move || {
            // In either order of the two destructors.
            LAST.with(|place| *place.borrow_mut() = Some(Last(last.clone())));
            last.record(1);
        });
        thread.join().unwrap();
        assert_eq!(histogram.snapshot().count(), 2);
    }
}

#[cfg(all(test, loom))]
mod models {
    //! # Seeded faults
    //!
    //! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
    //! shows.
    //!
    //! | race | fault | how it shows |
    //! |---|---|---|
    //! | a histogram's shard from thread to thread | it is given up, or claimed, Relaxed | a value is lost |

    use super::*;
    use loom::thread;

    /// Goal: nothing is lost when a shard goes from one thread to the next. Method: both record in the
    /// one shard there is, each when it can have it.
    #[test]
    fn hand_over_of_a_shard() {
        loom::model(|| {
            let shard = loom::sync::Arc::new(Shard::new(OCTAVE_BITS));
            let next = shard.clone();
            let heir = thread::spawn(move || {
                let claimed = next.claim();
                if claimed {
                    next.record(1);
                    next.give_up();
                }
                claimed
            });
            shard.record(1);
            shard.give_up();
            let inherited = heir.join().unwrap();
            assert_eq!(shard.counts[1].load(Relaxed), 1 + u64::from(inherited));
            assert_eq!(shard.sum.load(Relaxed), 1 + u64::from(inherited));
        });
    }
}
