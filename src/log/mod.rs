//! One structured log for all components.
//!
//! # The way of a record
//!
//! ```text
//!   a component ── is its level on? ──no──► nothing: one relaxed load, and a branch that is not taken
//!                        │ yes (cold)
//!                        ▼
//!                 a Record is made ─► queue (bounded) ─► thread of the log ─► file · callback · facade
//!                                        └─ full: dropped, counted, and logged by a record of its own
//! ```
//!
//! # Why it is like this
//!
//! - **A pool has its log**, given by [`Builder::log`](crate::Builder::log): two pools in one process need
//!   not share one, and tests do not meet each other. The same log may be given to several, as each record
//!   names its pool; and [`Log::install`] makes it that of all pools that have none of their own.
//! - **What stands on a pool asks the pool.** Servers, worker pools and hubs have no setting for it.
//! - **Only what is rare is logged.** No event of a hot path is a record: not a promotion, a task's begin, a
//!   request that went well, or a delivery. Figures are for those, and the access log of an HTTP
//!   server, if it is asked for. So a thread pays nothing as long as nothing happens.
//! - **Nobody waits for a sink.** The thread of the log is created with it and not with a pool, so it is there
//!   only if somebody wants it.
//! - **A record is data**: a stable name of the event, and fields with types. The message is for people.
//!
//! The log is off by default. Without one nothing is made or written, but for faults: these are lines on the standard
//! error stream (`faults.rs`).

pub(crate) mod faults;
mod levels;
mod logger;
pub(crate) mod recent;
mod record;
mod sinks;
mod writer;

#[cfg(feature = "config")]
pub(crate) use levels::ALLOWED as ALLOWED_LEVELS;
pub use levels::Levels;
pub(crate) use logger::Logger;
pub use record::{Component, Level, Record, Value};
pub use sinks::{Log, LogBuilder};
pub use writer::LogStats;
