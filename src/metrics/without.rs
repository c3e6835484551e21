//! In place of `metrics`, without that feature: what parts of a pool give figures to does nothing.

use crate::error::Result;
use core::time::Duration;

/// Has no figures.
#[derive(Clone)]
pub(crate) struct Registry;

impl Registry {
    pub(crate) fn collect(&self, _: impl Fn(&mut Collector) -> bool + Send + Sync + 'static) {}

    pub(crate) fn histogram(
        &self,
        _: &str,
        _: &str,
        _: &[(&str, &str)],
        _: Unit,
    ) -> Result<Histogram> {
        Ok(Histogram)
    }
}

/// Takes no figures.
pub(crate) struct Collector;

impl Collector {
    pub(crate) fn counter(&mut self, _: &str, _: &str, _: &[(&str, &str)], _: f64) {}

    pub(crate) fn gauge(&mut self, _: &str, _: &str, _: &[(&str, &str)], _: f64) {}

    pub(crate) fn histogram(&mut self, _: &str, _: &str, _: &[(&str, &str)], _: Distribution) {}

    pub(crate) fn leave_out(&mut self, _: &str, _: usize) {}

    pub(crate) fn enter<P: ?Sized>(&mut self, _: &P, _: &str, _: &str) -> Option<String> {
        None
    }
}

/// Has no values.
pub(crate) struct Distribution;

/// Records nothing.
pub(crate) struct Histogram;

impl Histogram {
    pub(crate) fn new(_: Unit) -> Self {
        Self
    }

    pub(crate) fn coarse(_: Unit) -> Self {
        Self
    }

    pub(crate) fn is_used(&self) -> bool {
        false
    }

    pub(crate) fn record(&self, _: u64) {}

    pub(crate) fn record_time(&self, _: Duration) {}

    pub(crate) fn snapshot(&self) -> Distribution {
        Distribution
    }
}

/// What a histogram would measure.
pub(crate) enum Unit {
    Time,
}
