//! What is known of requests afterwards: counters, log records, and a hook at their end.

pub(crate) mod counters;
pub(crate) mod stats;
pub(crate) mod telemetry;
