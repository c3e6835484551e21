//! Thin safe wrappers over the kernel: one file per facility, no policy.
//!
//! Nothing above this layer makes a system call, so a scripted source, loom and the fault injector
//! of the tests can stand in for it.

pub(crate) mod affinity;
pub(crate) mod clock;
pub(crate) mod code;
pub(crate) mod datagram;
pub(crate) mod epoll;
pub(crate) mod eventfd;
pub(crate) mod fd;
pub(crate) mod fork;
pub(crate) mod futex;
#[cfg(feature = "metrics")]
pub(crate) mod machine;
#[cfg(any(feature = "archive", feature = "nats"))]
pub(crate) mod own_file;
pub(crate) mod signalfd;
pub(crate) mod stderr;
pub(crate) mod stream;
pub(crate) mod thread;
pub(crate) mod timerfd;
pub(crate) mod topology;
pub(crate) mod unconfined;
