//! Deadlines and delays: the timer wheel that each handle set's leader turns, and the policies of when
//! to try again.

use core::time::Duration;

mod backoff;
mod wheel;

pub use backoff::{Backoff, GiveUp, Jitter, Retry};
pub(crate) use wheel::{Wheel, WheelEntries, WheelLinks};

/// The longest delay of any timer: 100 years.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(100 * 366 * 86_400);
