//! How long to wait between attempts, and when to give up.
//!
//! Everything here is a pure function of its arguments: no clock is read and no state is kept. The
//! same seed gives the same delays, so a run can be replayed, and a policy can be shared by any number
//! of tasks without a lock.
//!
//! Full jitter is after Marc Brooker, "Exponential Backoff And Jitter" (AWS, 2015): clients that
//! failed together must not come back together. The numbers are drawn by SplitMix64 (Steele, Lea and
//! Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).

use super::MAX_DELAY;
use crate::error::{Error, Result};
use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;
use std::sync::Arc;

/// Where exponential delays begin and end, unless told otherwise.
const EXPONENTIAL_FIRST: Duration = Duration::from_millis(100);
const EXPONENTIAL_CAP: Duration = Duration::from_secs(30);

/// The delay between one attempt and the next.
///
/// ```
/// use paceline::{Backoff, Jitter};
/// use std::time::Duration;
///
/// let backoff = Backoff::exponential(Duration::from_millis(10))
///     .cap(Duration::from_millis(50))
///     .jitter(Jitter::None);
/// let delays: Vec<u128> = (1..=4).map(|retry| backoff.delay(retry, 0).as_millis()).collect();
/// assert_eq!(delays, [10, 20, 40, 50]);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Backoff {
    shape: Shape,
    cap: Duration,
    jitter: Jitter,
}

/// How a delay is spread, so that tasks that failed together do not come back together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Jitter {
    /// Exactly the delay.
    None,
    /// Anything from nothing to the delay, evenly.
    Full,
    /// Anything from half of the delay to all of it, evenly.
    Equal,
}

#[derive(Clone)]
enum Shape {
    Fixed(Duration),
    Linear(Duration),
    Exponential(Duration),
    Random(Duration, Duration),
    Custom(Arc<dyn Fn(u32) -> Duration + Send + Sync>),
}

impl Backoff {
    /// The same `delay` each time, without jitter.
    pub fn fixed(delay: Duration) -> Self {
        Self::new(Shape::Fixed(delay))
    }

    /// `step` before the first retry, twice that before the second, and so on, without jitter.
    pub fn linear(step: Duration) -> Self {
        Self::new(Shape::Linear(step))
    }

    /// `first` before the first retry, and twice as much each time, with full jitter.
    pub fn exponential(first: Duration) -> Self {
        Self::new(Shape::Exponential(first)).jitter(Jitter::Full)
    }

    /// Anything in `range`, evenly. Jitter changes nothing.
    pub fn random(range: RangeInclusive<Duration>) -> Self {
        Self::new(Shape::Random(*range.start(), *range.end()))
    }

    /// Whatever `delay` answers to the number of the retry, which begins at 1. Without jitter, unless
    /// asked for. It is called on any thread, by several at once.
    pub fn custom(delay: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        Self::new(Shape::Custom(Arc::new(delay)))
    }

    fn new(shape: Shape) -> Self {
        Self { shape, cap: MAX_DELAY, jitter: Jitter::None }
    }

    /// No delay is longer than `cap`; 100 years unless set.
    #[must_use]
    pub fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap.min(MAX_DELAY);
        self
    }

    /// How to spread the delays.
    #[must_use]
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// The delay before retry number `retry`, from 1 on. It is drawn from `seed` and `retry` alone.
    pub fn delay(&self, retry: u32, seed: u64) -> Duration {
        let drawn = draw(seed, retry);
        let whole = match &self.shape {
            Shape::Fixed(delay) => *delay,
            Shape::Linear(step) => step.saturating_mul(retry),
            Shape::Exponential(first) => double(*first, retry.saturating_sub(1)),
            Shape::Random(from, to) => return between(*from, *to, drawn).min(self.cap),
            Shape::Custom(delay) => delay(retry),
        };
        let whole = whole.min(self.cap);
        match self.jitter {
            Jitter::None => whole,
            Jitter::Full => between(Duration::ZERO, whole, drawn),
            Jitter::Equal => between(whole / 2, whole, drawn),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self.shape {
            Shape::Random(from, to) if from > to => {
                let value = format!("{from:?}..={to:?}");
                Err(Error::invalid("backoff", value, "a range that begins before it ends"))
            }
            _ => Ok(()),
        }
    }
}

/// Exponential from 100 milliseconds to 30 seconds, with full jitter.
impl Default for Backoff {
    fn default() -> Self {
        Self::exponential(EXPONENTIAL_FIRST).cap(EXPONENTIAL_CAP)
    }
}

/// A custom function equals itself and its clones.
impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fixed(a), Self::Fixed(b))
            | (Self::Linear(a), Self::Linear(b))
            | (Self::Exponential(a), Self::Exponential(b)) => a == b,
            (Self::Random(a, b), Self::Random(c, d)) => (a, b) == (c, d),
            (Self::Custom(a), Self::Custom(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(delay) => write!(f, "Fixed({delay:?})"),
            Self::Linear(step) => write!(f, "Linear({step:?})"),
            Self::Exponential(first) => write!(f, "Exponential({first:?})"),
            Self::Random(from, to) => write!(f, "Random({from:?}..={to:?})"),
            Self::Custom(_) => f.write_str("Custom(..)"),
        }
    }
}

/// `delay` doubled so many times, at most [`MAX_DELAY`].
fn double(delay: Duration, times: u32) -> Duration {
    let nanos = delay.min(MAX_DELAY).as_nanos() as u64;
    match nanos.leading_zeros() > times {
        true => Duration::from_nanos(nanos << times).min(MAX_DELAY),
        false if nanos == 0 => Duration::ZERO,
        false => MAX_DELAY,
    }
}

/// A point of `from..=to` that `drawn` chooses evenly.
fn between(from: Duration, to: Duration, drawn: u64) -> Duration {
    let from = from.min(MAX_DELAY).as_nanos() as u64;
    let width = (to.min(MAX_DELAY).as_nanos() as u64).saturating_sub(from);
    // The upper half of the product: a division by 2^64 (Lemire, "Fast Random Integer Generation in
    // an Interval", 2019). The bias is below the width / 2^64.
    let part = (u128::from(drawn) * (u128::from(width) + 1)) >> 64;
    Duration::from_nanos(from + part as u64)
}

/// Number `index` of SplitMix64's sequence for `seed`.
fn draw(seed: u64, index: u32) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = seed.wrapping_add(GOLDEN.wrapping_mul(u64::from(index)));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Whether, when and how often something that failed is tried again.
///
/// ```
/// use paceline::{Backoff, GiveUp, Retry};
/// use std::time::Duration;
///
/// let second = Duration::from_secs(1);
/// let retry = Retry::fixed(2, second).within(Duration::from_secs(60));
/// assert_eq!(retry.next(1, 3 * second, None, 0), Ok(second));
/// assert_eq!(retry.next(1, 3 * second, Some(9 * second), 0), Ok(9 * second));
/// assert_eq!(retry.next(3, 5 * second, None, 0), Err(GiveUp::Attempts));
/// assert_eq!(retry.next(1, 60 * second, None, 0), Err(GiveUp::Deadline));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Retry {
    backoff: Backoff,
    attempts: u32,
    within: Option<Duration>,
}

/// Why nothing is tried again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum GiveUp {
    /// Every attempt that the policy allows has failed.
    Attempts,
    /// The next attempt would begin after the overall deadline.
    Deadline,
}

impl Retry {
    /// One attempt and no more.
    pub fn none() -> Self {
        Self::new(0, Backoff::fixed(Duration::ZERO))
    }

    /// Up to `retries` retries (so one attempt more) after the delays of `backoff`.
    pub fn new(retries: u32, backoff: Backoff) -> Self {
        Self { backoff, attempts: retries.saturating_add(1), within: None }
    }

    /// Up to `retries` retries with [`Backoff::default`]: exponential with full jitter.
    pub fn exponential(retries: u32) -> Self {
        Self::new(retries, Backoff::default())
    }

    /// Up to `retries` retries, `delay` after each failure.
    pub fn fixed(retries: u32, delay: Duration) -> Self {
        Self::new(retries, Backoff::fixed(delay))
    }

    /// Up to `retries` retries, each `step` later after its failure than the one before.
    pub fn linear(retries: u32, step: Duration) -> Self {
        Self::new(retries, Backoff::linear(step))
    }

    /// Up to `retries` retries, each anywhere in `range` after its failure.
    pub fn random(retries: u32, range: RangeInclusive<Duration>) -> Self {
        Self::new(retries, Backoff::random(range))
    }

    /// Up to `retries` retries, each as long after its failure as `delay` answers to its number.
    pub fn custom(retries: u32, delay: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        Self::new(retries, Backoff::custom(delay))
    }

    /// Another number of retries.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.attempts = retries.saturating_add(1);
        self
    }

    /// Other delays.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// No attempt begins later than `limit` after the first was asked for.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.within = Some(limit);
        self
    }

    /// How many attempts there are at most, the first included.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// What comes after `failed` attempts have failed, `elapsed` after the first was asked for: how
    /// long to wait for the next one.
    ///
    /// `retry_after` is what the last one asked to wait at least; it may be longer than the cap of the
    /// delays, which is the policy's own measure. `seed` fixes the sequence of jitters: two tasks
    /// should not share one.
    ///
    /// # Errors
    /// [`GiveUp`], when there is no next one.
    pub fn next(
        &self,
        failed: u32,
        elapsed: Duration,
        retry_after: Option<Duration>,
        seed: u64,
    ) -> Result<Duration, GiveUp> {
        if failed >= self.attempts {
            return Err(GiveUp::Attempts);
        }
        let delay = self.backoff.delay(failed, seed).max(retry_after.unwrap_or_default());
        match self.within {
            Some(limit) if elapsed.saturating_add(delay) > limit => Err(GiveUp::Deadline),
            _ => Ok(delay.min(MAX_DELAY)),
        }
    }

    /// Whether the settings make sense.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a range of delays that ends before it begins.
    pub fn check(&self) -> Result<()> {
        self.backoff.check()
    }
}

/// One attempt and no more.
impl Default for Retry {
    fn default() -> Self {
        Self::none()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn duration() -> impl Strategy<Value = Duration> {
        prop_oneof![
            Just(Duration::ZERO),
            Just(Duration::MAX),
            (0u64..10_000).prop_map(Duration::from_millis),
            (0u32..64, any::<u16>())
                .prop_map(|(bits, more)| Duration::from_nanos((1 << bits) | u64::from(more))),
        ]
    }

    fn jitter() -> impl Strategy<Value = Jitter> {
        prop_oneof![Just(Jitter::None), Just(Jitter::Full), Just(Jitter::Equal)]
    }

    /// A back-off with what its delays may be before jitter, written down a second time: with 128 bits,
    /// step by step.
    fn backoff() -> impl Strategy<Value = (Backoff, fn(Duration, u32) -> u128, Duration)> {
        (duration(), 0..4).prop_map(|(unit, shape)| {
            let (backoff, plain): (_, fn(Duration, u32) -> u128) = match shape {
                0 => (Backoff::fixed(unit), |unit, _| unit.as_nanos()),
                1 => (Backoff::linear(unit), |unit, retry| unit.as_nanos() * u128::from(retry)),
                2 => (Backoff::exponential(unit), |unit, retry| {
                    (1..retry).fold(unit.as_nanos(), |delay, _| (2 * delay).min(1 << 100))
                }),
                _ => (Backoff::custom(move |retry| unit / retry), |unit, retry| {
                    (unit / retry).as_nanos()
                }),
            };
            (backoff, plain, unit)
        })
    }

    proptest! {
        /// Goal: every shape follows its law, up to the cap, and jitter stays in its bounds. Method:
        /// each law in 128 bits beside it.
        #[test]
        fn delays_follow_their_law(
            (backoff, plain, unit) in backoff(),
            cap in duration(),
            jitter in jitter(),
            seed in any::<u64>(),
            retries in 1u32..200,
        ) {
            let backoff = backoff.cap(cap).jitter(jitter);
            let most = cap.min(MAX_DELAY).as_nanos();
            for retry in 1..=retries {
                let whole = plain(unit, retry).min(most);
                let delay = backoff.delay(retry, seed).as_nanos();
                match jitter {
                    Jitter::None => prop_assert_eq!(delay, whole),
                    Jitter::Full => prop_assert!(delay <= whole),
                    Jitter::Equal => prop_assert!((whole / 2..=whole).contains(&delay)),
                }
                prop_assert_eq!(backoff.delay(retry, seed).as_nanos(), delay, "not repeatable");
            }
        }

        #[test]
        fn random_delays_stay_in_their_range(
            (a, b) in (duration(), duration()),
            cap in duration(),
            seed in any::<u64>(),
            retry in any::<u32>(),
        ) {
            let (from, to) = (a.min(b), a.max(b));
            let delay = Backoff::random(from..=to).cap(cap).delay(retry, seed);
            let most = to.min(cap).min(MAX_DELAY);
            prop_assert!(from.min(most) <= delay && delay <= most, "{delay:?}");
        }

        /// Goal: on a virtual clock, a task that always fails makes at most its attempts, none begins
        /// after the deadline, each waits as long as it was asked to, and nothing but these two reasons
        /// ends it.
        #[test]
        fn attempts_end_for_a_reason(
            (backoff, ..) in backoff(),
            retries in 0u32..20,
            within in prop::option::of(duration()),
            runs in prop::collection::vec((duration(), prop::option::of(duration())), 20),
            seed in any::<u64>(),
        ) {
            let mut retry = Retry::new(retries, backoff);
            retry.within = within;
            let mut now = Duration::ZERO;
            for failed in 1u32.. {
                let (run, asked) = runs[failed as usize % runs.len()];
                now = now.saturating_add(run);
                match retry.next(failed, now, asked, seed) {
                    Ok(delay) => {
                        prop_assert!(delay >= asked.unwrap_or_default().min(MAX_DELAY));
                        now = now.saturating_add(delay);
                        prop_assert!(failed <= retries);
                        prop_assert!(within.is_none_or(|limit| now <= limit));
                    }
                    Err(GiveUp::Attempts) => {
                        prop_assert_eq!(failed, retries + 1);
                        break;
                    }
                    Err(GiveUp::Deadline) => {
                        let least = asked.unwrap_or_default();
                        let delay = retry.backoff.delay(failed, seed).max(least);
                        prop_assert!(now.saturating_add(delay) > within.unwrap());
                        break;
                    }
                }
            }
        }
    }

    /// Goal: full jitter is even, and neither seeds nor retries go together. Method: means, whose
    /// deviation of 20 000 draws is 0.2%.
    #[test]
    fn full_jitter_is_even() {
        const DRAWS: u64 = 20_000;
        let backoff = Backoff::fixed(1000 * MILLI).jitter(Jitter::Full);
        let mean = |delay: &dyn Fn(u64) -> Duration| {
            (0..DRAWS).map(|i| delay(i).as_secs_f64()).sum::<f64>() / DRAWS as f64
        };
        let by_seed = mean(&|i| backoff.delay(1, i));
        let by_retry = mean(&|i| backoff.delay(i as u32 + 1, 7));
        assert!((0.49..0.51).contains(&by_seed), "{by_seed}");
        assert!((0.49..0.51).contains(&by_retry), "{by_retry}");
        let below_a_tenth = mean(&|i| match backoff.delay(1, i) < 100 * MILLI {
            true => Duration::from_secs(1),
            false => Duration::ZERO,
        });
        assert!((0.09..0.11).contains(&below_a_tenth), "{below_a_tenth}");
    }

    #[test]
    fn tasks_with_seeds_of_their_own_spread() {
        let backoff = Backoff::default();
        let delays: std::collections::BTreeSet<Duration> =
            (0..1000).map(|seed| backoff.delay(3, seed)).collect();
        assert!(delays.len() > 990, "{} different delays", delays.len());
    }

    #[test]
    fn the_default_is_exponential_up_to_30_seconds() {
        let backoff = Backoff::default().jitter(Jitter::None);
        let delays: Vec<u64> =
            (1..=11).map(|retry| backoff.delay(retry, 0).as_millis() as u64).collect();
        assert_eq!(delays[..4], [100, 200, 400, 800]);
        assert_eq!(delays[8..], [25_600, 30_000, 30_000]);
    }

    #[test]
    fn policies_are_compared_by_what_they_do() {
        let custom = Retry::custom(1, |_| MILLI);
        assert_eq!(custom, custom.clone());
        assert_ne!(custom, Retry::custom(1, |_| MILLI));
        assert_eq!(Retry::exponential(3), Retry::none().backoff(Backoff::default()).retries(3));
        assert_ne!(Retry::fixed(3, MILLI), Retry::linear(3, MILLI));
        assert_ne!(Retry::fixed(3, MILLI), Retry::fixed(3, 2 * MILLI));
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_refused() {
        let error = Retry::random(3, 2 * MILLI..=MILLI).check().unwrap_err().to_string();
        assert_eq!(error, "backoff is 2ms..=1ms, but must be a range that begins before it ends");
        assert!(Retry::random(3, MILLI..=MILLI).check().is_ok());
    }
}
