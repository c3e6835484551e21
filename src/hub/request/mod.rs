//! Requests: messages with an inbox to reply to.

pub(in crate::hub) mod asking;
pub(in crate::hub) mod requests;
