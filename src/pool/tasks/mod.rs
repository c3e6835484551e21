//! Closures that are posted or submitted: ways in, results, and serial execution.

pub(crate) mod cell;
mod post;
mod room;
mod scope;
mod strand;
mod submit;
mod task;

pub(crate) use cell::Cells;
pub(crate) use post::Staged;
pub(crate) use room::Rooms;
pub use scope::Scope;
pub use strand::Strand;
pub use submit::{LaneRef, Unposted};
pub use task::Task;
