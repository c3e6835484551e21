//! How tasks come in: submission, what is done when a lane is full, keys, and bounds for each name.

pub(in crate::task) mod batch;
pub(in crate::task) mod droppable;
pub(in crate::task) mod keyed;
pub(in crate::task) mod lane;
pub(in crate::task) mod limited;
pub(in crate::task) mod limiter;
pub(in crate::task) mod submit;
