//! What a subscription has: its mailbox, its handler or the threads that pull, and how it begins and ends.

pub(in crate::hub) mod closing;
pub(in crate::hub) mod counters;
pub(in crate::hub) mod ending;
pub(in crate::hub) mod entry;
pub(in crate::hub) mod factory;
pub(in crate::hub) mod failure;
pub(in crate::hub) mod handler;
pub(in crate::hub) mod lent;
pub(in crate::hub) mod mail;
pub(in crate::hub) mod progress;
pub(in crate::hub) mod pull;
pub(in crate::hub) mod puller;
pub(in crate::hub) mod rules;
pub(in crate::hub) mod subscribe;
pub(in crate::hub) mod subscriber;
pub(in crate::hub) mod subscription;
