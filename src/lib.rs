//! paceline: a fixed pool of CPU-pinned threads that take turns leading.
#![deny(unsafe_code)]

mod error;
mod queue;
mod source;
mod sync;
mod sys;
mod time;

pub use error::{Error, Rejected, Result};
pub use queue::{Full, Lane, Queue};
