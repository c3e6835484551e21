//! How what has failed is tried again: of tasks, messages and webhooks.
#![allow(non_camel_case_types, reason = "the symbols of the C interface")]

use super::boundary::{Failure, Result, nanos};
use super::values::PACE_FOREVER;
use crate::time::{Backoff, Jitter, Retry};

/// Retry as usual: for a task as its task type says, for a task type not at all.
pub const PACE_RETRY_DEFAULT: u32 = 0;
/// Never retry: the first failure is the last.
pub const PACE_RETRY_NONE: u32 = 1;
/// Retry first_ns after each failure.
pub const PACE_RETRY_FIXED: u32 = 2;
/// Retry after first_ns, then after twice that, then after three times that.
pub const PACE_RETRY_LINEAR: u32 = 3;
/// Retry after first_ns, then after twice as long each time. Both times 0: first_ns is 100 ms, cap_ns 30 s.
pub const PACE_RETRY_EXPONENTIAL: u32 = 4;
/// Retry at a random time from first_ns to cap_ns after each failure.
pub const PACE_RETRY_RANDOM: u32 = 5;
/// Retry after the time that retry_delay of the task type returns.
pub const PACE_RETRY_CUSTOM: u32 = 6;

/// The jitter that fits the shape: PACE_JITTER_FULL for exponential delays, else PACE_JITTER_NONE.
pub const PACE_JITTER_DEFAULT: u32 = 0;
/// No jitter: each retry waits exactly the delay.
pub const PACE_JITTER_NONE: u32 = 1;
/// Full jitter: between nothing and the delay, evenly.
pub const PACE_JITTER_FULL: u32 = 2;
/// Equal jitter: between half of the delay and all of it, evenly.
pub const PACE_JITTER_EQUAL: u32 = 3;

/// How failed attempts are followed by others. All zero: PACE_RETRY_DEFAULT.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct pace_retry_t {
    /// How delays grow: one of PACE_RETRY_DEFAULT to PACE_RETRY_CUSTOM.
    pub shape: u32,
    /// How delays are spread: one of PACE_JITTER_DEFAULT to PACE_JITTER_EQUAL.
    pub jitter: u32,
    /// How many retries there are at most: one less than attempts.
    pub retries: u32,
    /// Room for later versions; zero.
    pub reserved: u32,
    /// The first delay in nanoseconds; later ones depend on the shape.
    pub first_ns: u64,
    /// The longest delay in nanoseconds. 0: no limit.
    pub cap_ns: u64,
    /// How long after the submission the last attempt may begin, in nanoseconds. PACE_FOREVER or 0: no limit.
    pub within_ns: u64,
}

pub(super) const NO_RETRY: pace_retry_t = pace_retry_t {
    shape: PACE_RETRY_DEFAULT,
    jitter: PACE_JITTER_DEFAULT,
    retries: 0,
    reserved: 0,
    first_ns: 0,
    cap_ns: 0,
    within_ns: 0,
};

/// None: the default. `custom` is for PACE_RETRY_CUSTOM.
pub(super) fn retry_of(retry: &pace_retry_t, custom: Option<Backoff>) -> Result<Option<Retry>> {
    if retry.reserved != 0 {
        return Err(Failure::invalid("retry.reserved", retry.reserved, "zero"));
    }
    let first = nanos(retry.first_ns);
    let backoff = match (retry.shape, custom) {
        (PACE_RETRY_DEFAULT, _) => return Ok(None),
        (PACE_RETRY_NONE, _) => return Ok(Some(Retry::none())),
        (PACE_RETRY_FIXED, _) => Backoff::fixed(first),
        (PACE_RETRY_LINEAR, _) => Backoff::linear(first),
        (PACE_RETRY_EXPONENTIAL, _) if retry.first_ns | retry.cap_ns == 0 => Backoff::default(),
        (PACE_RETRY_EXPONENTIAL, _) => Backoff::exponential(first),
        (PACE_RETRY_RANDOM, _) => Backoff::random(first..=nanos(retry.cap_ns)),
        (PACE_RETRY_CUSTOM, Some(custom)) => custom,
        (other, _) => {
            let allowed = "0 to 5 (PACE_RETRY_), or 6 for a kind";
            return Err(Failure::invalid("retry.shape", other, allowed));
        }
    };
    let backoff = match retry.cap_ns {
        0 => backoff,
        cap => backoff.cap(nanos(cap)),
    };
    let backoff = match retry.jitter {
        PACE_JITTER_DEFAULT => backoff,
        PACE_JITTER_NONE => backoff.jitter(Jitter::None),
        PACE_JITTER_FULL => backoff.jitter(Jitter::Full),
        PACE_JITTER_EQUAL => backoff.jitter(Jitter::Equal),
        other => return Err(Failure::invalid("retry.jitter", other, "0 to 3 (PACE_JITTER_)")),
    };
    let made = Retry::new(retry.retries, backoff);
    Ok(Some(match retry.within_ns {
        0 | PACE_FOREVER => made,
        within => made.within(nanos(within)),
    }))
}
