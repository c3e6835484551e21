//! Groups: subscriptions that share the messages of their pattern.

pub(in crate::hub) mod balance;
pub(in crate::hub) mod dispatch;
pub(in crate::hub) mod members;
