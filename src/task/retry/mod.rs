//! What waits: for another attempt, for its time, for its key.

pub(in crate::task) mod budget;
pub(in crate::task) mod delay_queue;
pub(in crate::task) mod overlap;
pub(in crate::task) mod periodic;
