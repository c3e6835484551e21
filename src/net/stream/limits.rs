//! The numbers that bound the connections of a listener, with their defaults.

use crate::error::{Error, Result};
use crate::net::bounds::{nanos, range, time};
use core::time::Duration;

/// When a connection's output presses, and how much of it there may be. In bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    pub(crate) low: usize,
    pub(crate) high: usize,
    pub(crate) max: usize,
}

/// Settings of one listener, or of outgoing connections. Times are in nanoseconds; `u64::MAX` stands for "never".
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) marks: Marks,
    pub(crate) max_connections: usize,
    pub(crate) max_unconsumed: usize,
    pub(crate) max_requests: usize,
    pub(crate) refusal: Vec<u8>,
    pub(crate) busy: Vec<u8>,
    pub(crate) idle: u64,
    pub(crate) read: u64,
    pub(crate) stall: u64,
    pub(crate) connect: u64,
    pub(crate) linger: u64,
    pub(crate) backlog: i32,
    pub(crate) no_delay: bool,
    pub(crate) allow_half_open: bool,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) v6_only: bool,
    pub(crate) reuse_port: bool,
    pub(crate) socket_mode: Option<u32>,
    pub(crate) send_buffer: Option<usize>,
    pub(crate) receive_buffer: Option<usize>,
    /// What is read and written goes through a filter.
    pub(crate) is_filtered: bool,
    /// A descriptor is kept for the time when there are no others, so that somebody is let in all the same.
    pub(crate) keeps_descriptor: bool,
}

/// Stand for what was not set on a server whose protocol has defaults of its own. They cannot be set:
/// they are out of range.
#[cfg(feature = "http")]
pub(crate) const UNSET_TIME: u64 = 1;
#[cfg(feature = "http")]
pub(crate) const UNSET_SIZE: usize = usize::MAX;

impl Default for Limits {
    fn default() -> Self {
        Self {
            marks: Marks { low: 64 << 10, high: 256 << 10, max: 16 << 20 },
            max_connections: 1 << 20,
            max_unconsumed: 1 << 20,
            max_requests: usize::MAX,
            refusal: Vec::new(),
            busy: Vec::new(),
            idle: u64::MAX,
            read: u64::MAX,
            stall: nanos(Duration::from_secs(30)),
            connect: nanos(Duration::from_secs(10)),
            linger: nanos(Duration::from_secs(2)),
            backlog: 4096,
            no_delay: true,
            allow_half_open: false,
            keep_alive: None,
            v6_only: false,
            reuse_port: false,
            socket_mode: None,
            send_buffer: None,
            receive_buffer: None,
            is_filtered: false,
            keeps_descriptor: false,
        }
    }
}

impl Limits {
    /// What may be sent to a connection that gets no filter.
    pub(crate) fn refusal_in_plain(&self) -> &[u8] {
        if self.is_filtered { &[] } else { &self.refusal }
    }

    /// An error that names the first field that is out of its range.
    pub(crate) fn check(&self) -> Result<()> {
        let Marks { low, high, max } = self.marks;
        if low >= high || high > max {
            let value = format!("{low} / {high} / {max}");
            return Err(Error::invalid("output_marks", value, "low < high <= max"));
        }
        range("output_marks.max", max, 1, 1 << 40)?;
        range("max_connections", self.max_connections, 1, 1 << 24)?;
        range("max_unconsumed", self.max_unconsumed, 1, 1 << 40)?;
        range("max_requests", self.max_requests, 1, usize::MAX)?;
        range("refusal", self.refusal.len(), 0, 64 << 10)?;
        range("busy", self.busy.len(), 0, 64 << 10)?;
        range("backlog", self.backlog.max(0) as usize, 1, 1 << 20)?;
        range("send_buffer", self.send_buffer.unwrap_or(1), 1, 1 << 30)?;
        range("receive_buffer", self.receive_buffer.unwrap_or(1), 1, 1 << 30)?;
        mode("socket_mode", self.socket_mode.unwrap_or(0))?;
        keep_alive(self.keep_alive)?;
        time("idle_timeout", self.idle)?;
        time("read_timeout", self.read)?;
        time("stall_timeout", self.stall)?;
        time("connect_timeout", self.connect)
    }
}

fn mode(name: &'static str, value: u32) -> Result<()> {
    if value <= 0o777 {
        return Ok(());
    }
    Err(Error::invalid(name, format!("{value:#o}"), "0 to 0o777"))
}

/// The longest that Linux takes.
const LONGEST_KEEP_ALIVE: u64 = 32_767;

/// Beyond its bounds the kernel refuses it, and would go on with its own two hours.
fn keep_alive(time: Option<Duration>) -> Result<()> {
    let Some(time) = time else { return Ok(()) };
    if (Duration::from_secs(1)..=Duration::from_secs(LONGEST_KEEP_ALIVE)).contains(&time) {
        return Ok(());
    }
    let allowed = format!("1 s to {LONGEST_KEEP_ALIVE} s");
    Err(Error::invalid("keep_alive", format!("{time:?}"), allowed))
}

/// The kernel counts whole seconds.
pub(crate) fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}
