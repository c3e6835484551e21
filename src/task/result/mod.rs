//! What becomes of tasks: status, report, handle, and those who are told.

pub(in crate::task) mod end;
pub(in crate::task) mod handle;
pub(in crate::task) mod observe;
pub(in crate::task) mod observer;
pub(in crate::task) mod report;
