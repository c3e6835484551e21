//! The C interface. Each file is a section of `include/paceline.h`, which is generated from here:
//! `build.rs` hands the files to cbindgen in the order of the header.
//!
//! Functions are translations: check, borrow, call, map. Ownership can be read from the signature.
//!
//! | file | idea |
//! |---|---|
//! | `boundary.rs` | panics, NULL, failures and their texts |
//! | `sized.rs` | structs that may grow |
//! | `registry.rs` | numbers for tasks and strands |
//! | `owner.rs` | whose user_data is while a handler is being registered |
//! | `work.rs` | a task of C's |
//! | `settings.rs` | what a file and the environment say |
//! | `cells.rs` | events and items whose size is known at run time only |
//! | the others | a section of the header each |
//!
//! A library with the feature `capi` alone has pools, queues, rings, servers and datagrams; the hub, settings
//! and worker pools come with their features, which are on by default. The header always declares all.
//!
//! What C hands over must be what the header says it is: a pointer that is not NULL is good for what
//! is done with it. Each `SAFETY` comment that says "as the header demands" rests on that.

#[cfg(feature = "hub")]
mod ask;
#[cfg(all(feature = "config", feature = "log", feature = "metrics", feature = "tasks"))]
mod attempt;
mod boundary;
mod callback;
mod cells;
mod conn;
#[cfg(feature = "hub")]
mod dead;
#[cfg(all(
    feature = "config",
    feature = "hub",
    feature = "log",
    feature = "metrics",
    feature = "tasks"
))]
mod figures;
mod filter;
mod framing;
mod handle;
#[cfg(feature = "hub")]
mod history;
mod host;
mod http;
#[cfg(feature = "hub")]
mod hub;
mod inherited;
#[cfg(all(feature = "config", feature = "log", feature = "metrics", feature = "tasks"))]
mod kind;
mod listener;
#[cfg(all(feature = "config", feature = "log"))]
mod log;
/// There is none without these features.
#[cfg(not(all(feature = "config", feature = "log")))]
mod log {
    use super::boundary::{Failure, Result};

    #[allow(non_camel_case_types, reason = "as C has it")]
    pub struct pace_log_t;

    #[allow(unsafe_code, reason = "as the one that does something")]
    pub(super) unsafe fn tell_by(
        _: crate::Builder,
        _: *const pace_log_t,
    ) -> Result<crate::Builder> {
        let text = "the library was built without the features `config` and `log`";
        Err(Failure::told(super::status::PACE_EUNSUPPORTED, text))
    }
}
#[cfg(feature = "hub")]
mod mailbox;
#[cfg(feature = "hub")]
mod message;
#[cfg(feature = "hub")]
mod message_filter;
#[cfg(all(feature = "config", feature = "log", feature = "metrics", feature = "tasks"))]
mod metric;
#[cfg(all(feature = "config", feature = "log", feature = "metrics", feature = "tasks"))]
mod middleware;
mod net_pull;
#[cfg(feature = "hub")]
mod notice;
#[cfg(all(feature = "config", feature = "log", feature = "metrics", feature = "tasks"))]
mod outcome_log;
mod owner;
#[cfg(all(feature = "config", feature = "log", feature = "metrics", feature = "tasks"))]
mod periodic;
mod pool;
#[cfg(feature = "hub")]
mod publisher;
mod pull;
mod queue;
mod registry;
mod remote;
#[cfg(feature = "hub")]
mod replay;
#[cfg(feature = "hub")]
mod replies;
mod request;
mod requests;
mod response;
#[cfg(any(
    feature = "hub",
    all(feature = "config", feature = "log", feature = "metrics", feature = "tasks")
))]
mod retry;
mod ring;
mod server;
mod service;
#[cfg(feature = "config")]
mod settings;
mod signals;
mod sized;
mod stats;
mod status;
mod strand;
#[cfg(feature = "hub")]
mod subscription;
#[cfg(feature = "hub")]
mod supervisor;
mod task;
#[cfg(all(feature = "config", feature = "log", feature = "metrics", feature = "tasks"))]
mod task_fd;
#[cfg(all(
    feature = "config",
    feature = "hub",
    feature = "log",
    feature = "metrics",
    feature = "tasks"
))]
mod threshold;
mod timer;
#[cfg(feature = "hub")]
mod together;
mod udp;
mod udp_pull;
#[cfg(all(
    feature = "config",
    feature = "hub",
    feature = "log",
    feature = "metrics",
    feature = "tasks"
))]
mod webhook;
mod work;
#[cfg(all(feature = "config", feature = "log", feature = "metrics", feature = "tasks"))]
mod work_pull;
#[cfg(all(feature = "config", feature = "log", feature = "metrics", feature = "tasks"))]
mod work_stats;
#[cfg(all(feature = "config", feature = "log", feature = "metrics", feature = "tasks"))]
mod work_task;
#[cfg(all(feature = "config", feature = "log", feature = "metrics", feature = "tasks"))]
mod workers;
