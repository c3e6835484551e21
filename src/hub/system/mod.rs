//! What the hub tells of itself: notices, statistics, thresholds.

pub(in crate::hub) mod figures;
pub(in crate::hub) mod key_counts;
pub(in crate::hub) mod notice;
pub(in crate::hub) mod stats;
pub(in crate::hub) mod tell;
#[cfg(feature = "metrics")]
pub(in crate::hub) mod threshold;
