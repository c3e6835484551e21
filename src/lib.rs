//! paceline: an embeddable event engine. A fixed pool of threads takes turns at the front, as riders do in a
//! paceline: one of them, the *leader*, waits at the event source; when something happens it hands leadership on
//! and handles the event itself. So in the common case no event changes threads.
//!
//! ```text
//!   follower ──try to lead──► leader ──wait──► harvest ──promote──► processing ──► follower
//!                                                 └─ all but one ─► ready work ─► any thread
//! ```
//!
//! | what | where to begin |
//! |---|---|
//! | threads, tasks, descriptors, timers, rings, strands | [`Pool`] |
//! | a queue for several producers and consumers, by itself | [`Queue`] |
//! | TCP and Unix servers, datagrams, HTTP (feature `http`) | `net::Server`, `http::Http`, `net::UdpSocket` |
//! | tasks with names, retries, limits and reports | `task::WorkerPool` |
//! | publish and subscribe by keys | `hub::Hub` |
//! | what happens as data, for hosts that cannot be called back | `cq::CompletionQueue` |
//! | a live page, figures and health of a pool at work, by HTTP | `ops::Ops` |
//! | settings from files, the log's files, services, webhooks | `admin` |
//!
//! [`Task`] is what [`Pool::submit`] gives, and its `wait` the closure's value; `task::TaskHandle` is a worker pool's, whose
//! `wait` gives a report: what it came to, and how long it took.
//!
//! ```
//! let pool = paceline::Pool::new()?;
//! let answer = pool.submit(|| 6 * 7).map_err(|_| "refused")?.wait()?;
//! assert_eq!(answer, 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(
    not(feature = "capi"),
    allow(dead_code, unused_imports, reason = "for `ffi` and `ops`")
)]

#[cfg(any(feature = "http", feature = "metrics"))]
mod accept;
pub mod admin;
#[cfg(feature = "nats")]
pub mod bridge;
mod contain;
pub mod cq;
mod error;
#[cfg(feature = "capi")]
mod ffi;
#[cfg(feature = "http")]
pub mod http;
pub mod hub;
pub mod log;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(not(feature = "metrics"))]
#[path = "metrics/without.rs"]
mod metrics;
pub mod net;
#[cfg(all(feature = "http", feature = "metrics"))]
pub mod ops;
mod pool;
mod queue;
mod rotate;
mod source;
mod sync;
mod sys;
pub mod task;
mod thread_state;
mod time;
mod trace;

pub use error::{Error, NoRoom, Problem, Rejected, Result};
pub use log::faults::quiet;
pub use pool::{
    Audit, Builder, EventKind, Flow, Handle, HandleId, HandleOptions, LaneRef, Pin, Pool,
    PoolReport, Promotion, Recording, Ring, Scope, SetStats, Signals, SlowReport, SourceKind,
    Stats, Strand, Task, ThreadRole, ThreadState, ThreadStats, Timer, Trace, Unposted,
    promote_new_leader, unconfined,
};
pub use queue::{Lane, Queue, QueueFull};
pub use source::{Interest, Ready, ScriptedCall, ScriptedIo, ScriptedSource};
pub use time::{Backoff, GiveUp, Jitter, Retry};

/// The README's code compiles as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The programs in Rust of docs/coming-from.md run as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/coming-from.md")]
struct ComingFrom;
