//! Runs: which mailboxes are to be served, and the service of one for a while.

pub(in crate::hub) mod depth;
pub(in crate::hub) mod execute;
pub(in crate::hub) mod inline;
pub(in crate::hub) mod ready;
