//! Deadlines and delays: the timer wheel that each handle set's leader turns, the policies of when to
//! try again, and how often something may happen.

use core::time::Duration;

mod backoff;
mod rate;
mod wheel;

pub use backoff::{Backoff, GiveUp, Jitter, Retry};
pub use rate::Rate;
pub(crate) use rate::Tokens;
pub(crate) use wheel::{Wheel, WheelEntries};

/// The longest delay of any timer: 100 years.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(100 * 366 * 86_400);
