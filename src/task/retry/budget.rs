//! Retry budgets: how many retries the tasks of one name may make together.
//!
//! When a backend fails, every task that needs it fails, and policies that are mild one by one make a
//! storm together: three retries each are four times the load, on the backend that can bear it least.
//! A budget measures retries against first attempts, so that whatever fails, the load grows by a
//! stated part at most.
//!
//! It is a bucket of tokens, of which a retry takes one. Each first attempt puts `ratio` of a token in,
//! and each second `per_second` tokens, so that a name that is seldom used may retry too. The bucket
//! holds at most `burst`.
//!
//! # Invariant
//!
//! 1. In every span of time there are at most `burst` + `ratio` × the first attempts of the span +
//!    `per_second` × its seconds retries. (When it begins the bucket holds `burst` at most.)
//!
//! # Trade-offs
//!
//! The bucket is filled when a retry asks, from the number of first attempts that is counted anyway: a
//! task that does not fail pays nothing. A retry takes a lock for a few nanoseconds.
//!
//! After Finagle's `RetryBudget`, whose deposits expire with time where these are bounded in number.

use crate::error::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// A token in the smallest parts that are counted: then a rate per second is one per nanosecond.
const TOKEN: u64 = 1_000_000_000;

/// How many retries the tasks of one name may make together: the default is a fifth of the first
/// attempts, and 10 in a second besides, of which 100 can be saved up.
///
/// ```
/// use paceline::{Pool, Retry, task::{RetryBudget, WorkerPool}};
/// use std::time::Duration;
/// # fn main() -> paceline::Result<()> {
/// let workers = WorkerPool::new(&Pool::new()?);
/// // When all calls fail, a tenth of them is tried again, and not three times as many are made.
/// let call = workers
///     .task_type("call")
///     .retry(Retry::fixed(3, Duration::from_millis(10)))
///     .retry_budget(RetryBudget::new(0.1))
///     .build()?;
/// # drop(call);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RetryBudget {
    ratio: f64,
    per_second: u32,
    burst: u32,
}

impl RetryBudget {
    /// So many retries for each first attempt, from 0 to 1000, and the other settings' defaults.
    pub fn new(ratio: f64) -> Self {
        Self { ratio, ..Self::default() }
    }

    /// So many retries in each second besides, from 0 to 1 000 000.
    #[must_use]
    pub fn per_second(mut self, retries: u32) -> Self {
        self.per_second = retries;
        self
    }

    /// At most so many retries are saved up, from 1 to 1 000 000.
    #[must_use]
    pub fn burst(mut self, retries: u32) -> Self {
        self.burst = retries;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        if !(0.0..=1000.0).contains(&self.ratio) {
            return Err(Error::invalid("retry budget's ratio", self.ratio, "0 to 1000"));
        }
        if self.per_second > 1_000_000 {
            let (name, allowed) = ("retry budget's per_second", "0 to 1000000");
            return Err(Error::invalid(name, self.per_second, allowed));
        }
        if !(1..=1_000_000).contains(&self.burst) {
            return Err(Error::invalid("retry budget's burst", self.burst, "1 to 1000000"));
        }
        Ok(())
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { ratio: 0.2, per_second: 10, burst: 100 }
    }
}

/// See the head of the file. Times are nanoseconds of one monotonic clock.
#[derive(Debug)]
pub(crate) struct Budget {
    per_attempt: u64,
    per_nanosecond: u64,
    most: u64,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    balance: u64,
    /// When it was last filled, and how many first attempts there had been.
    at: u64,
    attempts: u64,
}

impl Budget {
    /// A full bucket.
    pub(crate) fn new(settings: RetryBudget, now: u64) -> Result<Self> {
        settings.check()?;
        let most = u64::from(settings.burst) * TOKEN;
        Ok(Self {
            per_attempt: (settings.ratio * TOKEN as f64) as u64,
            per_nanosecond: u64::from(settings.per_second),
            most,
            bucket: Mutex::new(Bucket { balance: most, at: now, attempts: 0 }),
        })
    }

    /// Asks for one retry, at `now`, after so many first attempts.
    pub(crate) fn take(&self, now: u64, attempts: u64) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.fill(self, now, attempts);
        let taken = bucket.balance.checked_sub(TOKEN);
        bucket.balance = taken.unwrap_or(bucket.balance);
        taken.is_some()
    }
}

impl Bucket {
    /// Both measures may have been read before those of another thread that was here first.
    fn fill(&mut self, budget: &Budget, now: u64, attempts: u64) {
        let by_time = now.saturating_sub(self.at).saturating_mul(budget.per_nanosecond);
        let by_use = attempts.saturating_sub(self.attempts).saturating_mul(budget.per_attempt);
        let filled = self.balance.saturating_add(by_time).saturating_add(by_use);
        self.balance = filled.min(budget.most);
        self.at = self.at.max(now);
        self.attempts = self.attempts.max(attempts);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Pass(u64),
        Attempt(u64),
        Retry(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..3 * SECOND).prop_map(Step::Pass),
            (0u64..50).prop_map(Step::Attempt),
            (0u32..60).prop_map(Step::Retry),
        ]
    }

    fn settings() -> impl Strategy<Value = RetryBudget> {
        (0u32..30, 0u32..20, 1u32..40).prop_map(|(tenths, per_second, burst)| {
            RetryBudget::new(f64::from(tenths) / 10.0).per_second(per_second).burst(burst)
        })
    }

    /// What had happened when a retry was allowed.
    #[derive(Clone, Copy)]
    struct Mark {
        now: u64,
        attempts: u64,
    }

    proptest! {
        /// Goal: invariant 1 in every span, and no retry refused that the bucket's law allows. Method:
        /// a virtual clock; all pairs of allowed retries, and the law in floating point beside it.
        #[test]
        fn retries_are_bounded_in_every_span(
            settings in settings(),
            start in 0..SECOND,
            steps in prop::collection::vec(step(), 1..40),
        ) {
            let budget = Budget::new(settings, start).unwrap();
            let (mut now, mut attempts) = (start, 0);
            let mut allowed: Vec<Mark> = Vec::new();
            let mut balance = f64::from(settings.burst);
            for step in steps {
                match step {
                    Step::Pass(by) => {
                        now += by;
                        balance += by as f64 / 1e9 * f64::from(settings.per_second);
                    }
                    Step::Attempt(count) => {
                        attempts += count;
                        balance += settings.ratio * count as f64;
                    }
                    Step::Retry(count) => for _ in 0..count {
                        balance = balance.min(f64::from(settings.burst));
                        let took = budget.take(now, attempts);
                        prop_assert!(took || balance < 1.001, "refused with {balance}");
                        prop_assert!(!took || balance > 0.999, "allowed with {balance}");
                        if took {
                            balance -= 1.0;
                            allowed.push(Mark { now, attempts });
                        }
                    }
                }
                balance = balance.min(f64::from(settings.burst) * 1e6);
            }
            for (first, from) in allowed.iter().enumerate() {
                for (last, to) in allowed.iter().enumerate().skip(first) {
                    let retries = (last - first + 1) as f64;
                    let most = f64::from(settings.burst)
                        + settings.ratio * (to.attempts - from.attempts) as f64
                        + f64::from(settings.per_second) * (to.now - from.now) as f64 / 1e9;
                    prop_assert!(retries <= most + 1e-6, "{retries} retries, at most {most}");
                }
            }
        }
    }

    /// Goal: a backend that fails for everybody sees the stated part more, not a multiple. Method: ten
    /// thousand tasks whose every attempt fails, as many retries wanted as there are.
    #[test]
    fn a_failing_backend_is_not_stormed() {
        let budget = Budget::new(RetryBudget::new(0.1).per_second(0).burst(10), 0).unwrap();
        let mut retries = 0;
        for task in 1..=10_000 {
            retries += (0..3).filter(|_| budget.take(task, task)).count();
        }
        assert!((1000..=1010).contains(&retries), "{retries} retries");
    }

    #[test]
    fn measures_that_come_late_give_nothing() {
        let budget = Budget::new(RetryBudget::new(1.0).per_second(1).burst(1), 0).unwrap();
        assert!(budget.take(5 * SECOND, 5));
        for _ in 0..3 {
            assert!(!budget.take(SECOND, 1), "the past paid for a retry");
        }
        assert!(!budget.take(5 * SECOND, 5));
        assert!(budget.take(6 * SECOND, 5));
        assert!(budget.take(6 * SECOND, 6));
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let error = |settings| Budget::new(settings, 0).unwrap_err().to_string();
        assert_eq!(
            error(RetryBudget::new(f64::NAN)),
            "retry budget's ratio is NaN, but must be 0 to 1000"
        );
        assert_eq!(
            error(RetryBudget::default().burst(0)),
            "retry budget's burst is 0, but must be 1 to 1000000"
        );
        assert_eq!(
            error(RetryBudget::default().per_second(1_000_001)),
            "retry budget's per_second is 1000001, but must be 0 to 1000000"
        );
    }
}
