//! How long threads that wait sleep between two looks.

use core::time::Duration;

/// Threads that wait look so often whether the pool has ended.
pub(in crate::hub) const NAP: Duration = Duration::from_millis(100);
/// As above, by those who wait for what is not always told: at first, and twice as long each time.
pub(in crate::hub) const SHORT_NAP: Duration = Duration::from_millis(1);
