//! Checks of settings: whether a number or a time is in its bounds.

use crate::error::{Error, Result};
use core::time::Duration;

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn range(name: &'static str, value: usize, from: usize, to: usize) -> Result<()> {
    if (from..=to).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(name, value, format!("{from} to {to}")))
}

pub(crate) fn time(name: &'static str, value: u64) -> Result<()> {
    if value >= 1_000_000 {
        return Ok(());
    }
    let value = format!("{:?}", Duration::from_nanos(value));
    Err(Error::invalid(name, value, "at least 1 ms, or no limit"))
}
