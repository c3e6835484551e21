//! Metrics: counters, gauges and histograms in one registry, and what is read out of it.
//!
//! ```text
//!   Counter, Gauge, Histogram ──kept──┐
//!                                     ├─► Registry ──snapshot──► Snapshot ─► struct, JSON, Prometheus text
//!   collectors ───────────────asked───┘
//! ```
//!
//! Recording takes no lock and allocates nothing after a thread's first value. Figures that somebody else
//! keeps (a pool, the kernel) are asked for at the snapshot, by *collectors*. Nothing here panics: what
//! cannot be read or is refused is left out, and counted in [`Snapshot::failures`].

mod histogram;
mod instruments;
mod prometheus;
mod registry;
mod snapshot;
mod system;

pub use histogram::Histogram;
pub use instruments::{Counter, Gauge};
pub use prometheus::TextFormat;
pub use registry::{Collector, Registry};
pub use snapshot::{Distribution, Family, Labels, MetricKind, Sample, Snapshot, Unit, Value};
pub use system::SystemFigures;
