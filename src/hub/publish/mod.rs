//! Publishing: one message, a batch, all or none, and by a publisher with settings of its own.

pub(in crate::hub) mod all;
pub(in crate::hub) mod enqueue;
pub(in crate::hub) mod notices;
pub(in crate::hub) mod publisher;
pub(in crate::hub) mod publisher_stats;
pub(in crate::hub) mod publishing;
pub(in crate::hub) mod settings;
pub(in crate::hub) mod waiting;
