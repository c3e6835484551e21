//! The limits of requests, and what they are to the connections beneath.

use crate::error::{Error, Result};
use crate::http::message::head::{HeadLimits, MAX_FIELDS};
use crate::net::bounds::{nanos, range, time};
use crate::net::stream::limits::{Limits, UNSET_SIZE, UNSET_TIME};
use core::time::Duration;

/// What a connection leaves unconsumed beyond a head: what came with it in one read, twice.
const BESIDE_HEAD: usize = 128 << 10;

#[derive(Clone, Debug)]
pub(crate) struct HttpLimits {
    pub(crate) head: HeadLimits,
    pub(crate) head_time: Duration,
    pub(crate) max_body: usize,
    pub(crate) body_rate: u64,
    pub(crate) body_time: Duration,
    pub(crate) keep_alive_requests: u32,
    pub(crate) keep_alive_time: Duration,
    pub(crate) max_requests: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            head: HeadLimits { bytes: 16 << 10, target: 8 << 10, fields: 100 },
            head_time: Duration::from_secs(10),
            max_body: 1 << 20,
            body_rate: 500,
            body_time: Duration::from_secs(10),
            keep_alive_requests: u32::MAX,
            keep_alive_time: Duration::from_secs(60),
            max_requests: usize::MAX,
        }
    }
}

impl HttpLimits {
    pub(crate) fn check(&self) -> Result<()> {
        range("max_head", self.head.bytes, 64, 1 << 20)?;
        range("max_target", self.head.target, 1, 1 << 20)?;
        range("max_headers", self.head.fields, 1, MAX_FIELDS)?;
        range("max_body", self.max_body, 0, 1 << 40)?;
        range("max_requests", self.max_requests, 1, usize::MAX)?;
        range("keep_alive_requests", self.keep_alive_requests as usize, 1, u32::MAX as usize)?;
        time("head_timeout", nanos(self.head_time))?;
        time("body_timeout", nanos(self.body_time))?;
        time("keep_alive_timeout", nanos(self.keep_alive_time))
    }

    /// What listeners have where nothing else is set.
    pub(crate) fn of_listeners(&self, set: &Limits) -> Result<Limits> {
        must_be_unset("idle_timeout", set.idle, "keep_alive_timeout")?;
        must_be_unset("read_timeout", set.read, "head_timeout")?;
        let max_unconsumed = match set.max_unconsumed {
            UNSET_SIZE => self.least_unconsumed(),
            bytes => bytes,
        };
        let (idle, read) = (nanos(self.keep_alive_time), nanos(self.head_time));
        Ok(Limits { idle, read, max_unconsumed, ..set.clone() })
    }

    /// A head that is not whole lies there.
    fn least_unconsumed(&self) -> usize {
        self.head.bytes + BESIDE_HEAD
    }

    /// An error for what is set on a listener, and cannot be.
    pub(crate) fn check_listener(&self, limits: &Limits) -> Result<()> {
        let least = self.least_unconsumed();
        if limits.max_unconsumed < least {
            let allowed = format!("{least}, which is max_head and 128 KiB, or more");
            return Err(Error::invalid("max_unconsumed", limits.max_unconsumed, allowed));
        }
        if !limits.busy.is_empty() {
            let allowed = "empty: what HTTP answers beyond max_requests is 503";
            return Err(Error::invalid("busy", format!("{} bytes", limits.busy.len()), allowed));
        }
        Ok(())
    }
}

/// The stream server's word for a time that has another one here.
fn must_be_unset(name: &'static str, time: u64, own: &str) -> Result<()> {
    if time == UNSET_TIME {
        return Ok(());
    }
    let value = format!("{:?}", Duration::from_nanos(time));
    Err(Error::invalid(name, value, format!("told as {own}, or to a Listen")))
}

/// What a stream server has that has no protocol.
pub(crate) fn of_outgoing(set: &Limits) -> Limits {
    let mut limits = set.clone();
    let plain = Limits::default();
    (limits.idle, limits.read) = (plain.idle, plain.read);
    if limits.max_unconsumed == UNSET_SIZE {
        limits.max_unconsumed = plain.max_unconsumed;
    }
    limits
}
