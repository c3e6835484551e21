//! Watching a pool while it works: an HTTP endpoint with a live page, figures, health, errors and settings.
//!
//! ```text
//!   watched pool                        │  the endpoint: a pool of its own, with one thread
//!   role words, counters ◄──looks at────│── observer ──► feed ──► viewers of /events, at most 8
//!   parts: servers, hubs, … ◄──asks─────│── registry ──► /metrics, /stats.json
//!   log's last faults ◄──copies─────────│── /errors.json
//!                                       │  routes ◄── guard: token, loopback, Host
//! ```
//!
//! | route | answer |
//! |---|---|
//! | `/` | the live page, which needs nothing from elsewhere |
//! | `/events` | what feeds it: server-sent events, one a second |
//! | `/curves.json` | the last 15 minutes: rates, what waits, handling times; a sample each 5 s |
//! | `/metrics` | all figures, as OpenMetrics or Prometheus text |
//! | `/stats.json` | the pool's threads and sets, all figures, and how bridges are |
//! | `/health/live`, `/health/ready` | 200 or 503, with reasons; the rule is in `pool/progress.rs` |
//! | `/errors.json` | the last faults of this process |
//! | `/config` | the settings in force and where each came from |
//! | `/trace?seconds=3` | what each thread does in the next seconds, 1 to 30, for Perfetto |
//! | `/log-level` | the levels of the pool's log; PUT changes them |
//!
//! # Invariants
//!
//! 1. **Nothing here runs on the watched pool.** Handlers of a mounted endpoint only hand the request over; what is
//!    asked is answered on the endpoint's own thread. So the page loads when all threads of the pool are blocked.
//! 2. **Looking takes no lock that a thread of the watched pool waits for while it handles an event.** The observer
//!    reads one word a thread: its role, and how often that has changed. A thread that handles, and whose word has
//!    not changed since, is in the same handler still.
//! 3. **The cost does not grow with viewers.** One text is made a second, and the same one goes to all of them. A
//!    viewer that has not taken the last one misses it, and is sent away after 30 of them: the kernel keeps 32 KiB for
//!    it, also of a server of the program's, so that one that never reads is seen soon. A ninth viewer takes the place of the one
//!    that has missed most, or of the oldest.
//! 4. **Memory is bounded**: 8 viewers, 30 events that are kept for who comes later, 180 samples of up to 17 curves, 32 answers under way, one
//!    timeline among them, until their peers have them, 256 faults.

mod curves;
mod endpoint;
mod errors;
mod feed;
mod figures;
mod guard;
mod health;
mod observer;
mod page;
mod routes;
mod tables;

pub use endpoint::{Ops, OpsBuilder};
