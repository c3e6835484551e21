//! Deadlines and delays: the timer wheel that each handle set's leader turns, the policies of when to
//! try again, and how often something may happen.

use core::time::Duration;

mod backoff;
#[cfg(any(feature = "hub", feature = "tasks"))]
mod rate;
mod wheel;

pub use backoff::{Backoff, GiveUp, Jitter, Retry};
#[cfg(any(feature = "hub", feature = "tasks"))]
pub use rate::Rate;
#[cfg(any(feature = "hub", feature = "tasks"))]
pub(crate) use rate::Tokens;
pub(crate) use wheel::{Wheel, WheelEntries};

/// The longest delay of any timer: 100 years.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(100 * 366 * 86_400);
