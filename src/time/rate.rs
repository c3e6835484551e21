//! How often something may happen: a token bucket without a lock or a clock of its own. Tasks of one name
//! start by one, publishers have one as their quota, and subscriptions filter by one.
//!
//! # The word
//!
//! The bucket is one number, the time at which it would be full again, `full_at`. Whatever happens
//! takes a token by adding the time in which one comes back:
//!
//! ```text
//!            now                 full_at
//!   ──────────┼──────┬──────┬──────┼────────► time
//!             │  a token is missing for each `interval` in between
//!             └── at most `burst - 1` of them, or it must wait
//! ```
//!
//! # Invariant
//!
//! 1. In every span of time there are at most `burst` + span / `interval` tokens taken (rounded
//!    down).
//!
//! # Orderings
//!
//! All Relaxed: the word stands for nothing else in memory.
//!
//! This is the generic cell rate algorithm in its virtual scheduling form (ITU-T I.371).

use super::MAX_DELAY;
use crate::error::{Error, Result};
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

/// How often something may happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    times: u32,
    per: Duration,
    burst: u32,
}

impl Rate {
    /// So many times (at least 1) in each `per` (1 ns for each to 100 years), evenly spread.
    pub fn new(times: u32, per: Duration) -> Self {
        Self { times, per, burst: 1 }
    }

    /// So many times in each second, from 1 to 1 000 000 000, evenly spread.
    pub fn per_second(times: u32) -> Self {
        Self::new(times, Duration::from_secs(1))
    }

    /// Up to so many at once (at least 1) after a time with fewer; 1 unless set.
    #[must_use]
    pub fn burst(mut self, times: u32) -> Self {
        self.burst = times;
        self
    }

    /// Nanoseconds between one and the next, rounded up.
    fn interval(&self) -> Result<u64> {
        if self.times == 0 {
            return Err(Error::invalid("rate's times", 0, "at least 1"));
        }
        let least = Duration::from_nanos(u64::from(self.times));
        if !(least..=MAX_DELAY).contains(&self.per) {
            let allowed = "1 nanosecond for each to 100 years";
            return Err(Error::invalid("rate's time", format!("{:?}", self.per), allowed));
        }
        Ok((self.per.as_nanos() as u64).div_ceil(u64::from(self.times)))
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.interval()?;
        match self.burst {
            0 => Err(Error::invalid("rate's burst", 0, "at least 1")),
            _ => Ok(()),
        }
    }
}

/// See the head of the file. Times are nanoseconds of one monotonic clock.
#[derive(Debug)]
pub(crate) struct Tokens {
    interval: u64,
    /// For how long ahead tokens may be missing.
    slack: u64,
    full_at: AtomicU64,
}

impl Tokens {
    /// A full bucket.
    pub(crate) fn new(rate: Rate) -> Result<Self> {
        rate.check()?;
        let interval = rate.interval()?;
        let slack = interval.saturating_mul(u64::from(rate.burst - 1)).min(u64::MAX / 4);
        Ok(Self { interval, slack, full_at: AtomicU64::new(0) })
    }

    /// Takes a token at `now`.
    ///
    /// # Errors
    /// When the next one is there, if nobody else takes it.
    pub(crate) fn take(&self, now: u64) -> Result<(), u64> {
        let mut full_at = self.full_at.load(Relaxed);
        loop {
            let missing_until = full_at.max(now);
            let earliest = missing_until.saturating_sub(self.slack);
            if earliest > now {
                return Err(earliest);
            }
            let taken = missing_until.saturating_add(self.interval);
            match self.full_at.compare_exchange_weak(full_at, taken, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => full_at = other,
            }
        }
    }
}

impl Tokens {
    /// How many it holds when it is full.
    pub(crate) fn burst(&self) -> usize {
        usize::try_from(self.slack / self.interval).unwrap_or(usize::MAX).saturating_add(1)
    }

    /// How many tokens there are at `now`.
    pub(crate) fn available(&self, now: u64) -> u64 {
        let missing = self.full_at.load(Relaxed).saturating_sub(now);
        (self.slack + self.interval).saturating_sub(missing) / self.interval
    }

    /// When there will be a token beside `promised` others: `now` at the earliest.
    pub(crate) fn next(&self, now: u64, promised: u64) -> u64 {
        let missing_until = self.full_at.load(Relaxed).max(now);
        let after = missing_until.saturating_add(self.interval.saturating_mul(promised));
        after.saturating_sub(self.slack).max(now)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    proptest! {
        /// Goal: invariant 1 in every span; whoever comes when told is served; a refusal is right: the
        /// span that ends there is full. Method: a virtual clock and all pairs of starts.
        #[test]
        fn starts_are_bounded_in_every_span(
            starts in 1u32..50,
            per in 1u64..5 * SECOND,
            burst in 1u32..10,
            begin in 0..10 * SECOND,
            steps in prop::collection::vec((0..SECOND, 0u32..12, any::<bool>()), 1..40),
        ) {
            let rate = Rate::new(starts, Duration::from_nanos(per.max(50))).burst(burst);
            let tokens = Tokens::new(rate).unwrap();
            let interval = rate.interval().unwrap();
            let mut now = begin;
            let mut begun: Vec<u64> = Vec::new();
            for (pass, wanted, patient) in steps {
                now += pass;
                for _ in 0..wanted {
                    let available = tokens.available(now);
                    prop_assert_eq!(tokens.next(now, available.saturating_sub(1)) > now, available == 0);
                    prop_assert!(tokens.next(now, available) > now);
                    prop_assert!(available <= u64::from(burst));
                    if let Err(told) = tokens.take(now) {
                        prop_assert!(told > now);
                        prop_assert_eq!(tokens.next(now, 0), told);
                        let full = (1..=begun.len()).any(|count| {
                            let span = told - 1 - begun[begun.len() - count];
                            count as u64 + 1 > u64::from(burst) + span / interval
                        });
                        prop_assert!(full, "refused at {now} though there was room before {told}");
                        if !patient {
                            break;
                        }
                        now = told;
                        prop_assert_eq!(tokens.available(now), 1);
                        prop_assert_eq!(tokens.take(now), Ok(()));
                    } else {
                        prop_assert_eq!(tokens.available(now), available - 1);
                    }
                    begun.push(now);
                }
            }
            for (first, from) in begun.iter().enumerate() {
                for (last, to) in begun.iter().enumerate().skip(first) {
                    let most = u64::from(burst) + (to - from) / interval;
                    prop_assert!((last - first + 1) as u64 <= most);
                }
            }
        }
    }

    /// Goal: the long run keeps the rate, however eager the callers.
    #[test]
    fn the_long_run_keeps_the_rate() {
        let tokens = Tokens::new(Rate::per_second(300).burst(5)).unwrap();
        let (mut now, mut begun) = (7 * SECOND, 0);
        while now < 17 * SECOND {
            match tokens.take(now) {
                Ok(()) => begun += 1,
                Err(told) => now = told,
            }
        }
        assert!((2999..=3005).contains(&begun), "{begun} starts in ten seconds");
    }

    /// Goal: threads that take at once get no more than one alone. Method: no time passes.
    #[test]
    fn takers_at_once_share_the_burst() {
        let tokens = &Tokens::new(Rate::new(1, Duration::from_secs(1)).burst(1000)).unwrap();
        let taken: usize = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..1000).filter(|_| tokens.take(SECOND).is_ok()).count()))
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!(taken, 1000);
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let error = |rate| Tokens::new(rate).unwrap_err().to_string();
        assert_eq!(error(Rate::per_second(0)), "rate's times is 0, but must be at least 1");
        assert_eq!(
            error(Rate::per_second(1).burst(0)),
            "rate's burst is 0, but must be at least 1"
        );
        assert_eq!(
            error(Rate::new(2, Duration::from_nanos(1))),
            "rate's time is 1ns, but must be 1 nanosecond for each to 100 years"
        );
    }
}
