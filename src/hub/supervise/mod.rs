//! What becomes of handlers that fail, and of their messages.

pub(in crate::hub) mod burial;
pub(in crate::hub) mod dead;
pub(in crate::hub) mod failure_policy;
pub(in crate::hub) mod failures;
pub(in crate::hub) mod redelivery;
pub(in crate::hub) mod supervisor;
