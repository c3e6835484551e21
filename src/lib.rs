//! paceline: a fixed pool of CPU-pinned threads that take turns leading.
#![deny(unsafe_code)]
#![warn(missing_docs)]

#[cfg(any(feature = "config", feature = "log", feature = "systemd", feature = "webhook"))]
pub mod admin;
mod contain;
mod error;
#[cfg(feature = "capi")]
mod ffi;
#[cfg(feature = "hub")]
pub mod hub;
#[cfg(feature = "log")]
pub mod log;
#[cfg(not(feature = "log"))]
mod log;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "net")]
pub mod net;
mod pool;
mod queue;
#[cfg(any(feature = "hub", feature = "log"))]
mod rotate;
mod source;
mod sync;
mod sys;
#[cfg(feature = "tasks")]
pub mod task;
mod time;

#[cfg(feature = "config")]
pub use error::Problem;
pub use error::{Error, Rejected, Result};
pub use pool::{
    Audit, Builder, Event, EventKind, Flow, Handle, HandleId, HandleOptions, LaneRef, Pin, Pool,
    Promotion, Report, Ring, Role, SetStats, Signals, SlowReport, SourceKind, Stats, Strand, Task,
    ThreadState, ThreadStats, Timer, Unposted, promote_new_leader,
};
pub use queue::{Full, Lane, Queue};
pub use source::{Interest, Ready, ScriptedCall, ScriptedIo, ScriptedSource};
pub use time::{Backoff, GiveUp, Jitter, Retry};

/// The README's code runs as a test.
#[cfg(all(doctest, feature = "http"))]
#[doc = include_str!("../README.md")]
struct Readme;
