//! What histories need of a stored message beside what users do.

use crate::hub::message::Stored;
use std::time::SystemTime;

/// About what a message takes in memory beside its payload and headers.
const OVERHEAD: usize = 96;

/// What limits in bytes count for it: payload and headers, and [`OVERHEAD`] for the rest.
pub(super) fn bytes(stored: &Stored) -> usize {
    let headers = stored.headers.iter().map(|(name, value)| name.len() + value.len());
    OVERHEAD + stored.payload.len() + headers.sum::<usize>()
}

/// Nanoseconds since 1970; 0 for what was before.
pub(super) fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
