//! What a registry held at one time.

use super::histogram::HIGHEST;
use super::prometheus::TextFormat;
use hdrhistogram::Histogram;
use serde_json::{Map, Value as Json, json};

/// Names and values that tell samples of one family apart, sorted by name.
pub type Labels = Vec<(String, String)>;

/// Everything in a registry, read one figure after another.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Snapshot {
    /// Sorted by name.
    pub families: Vec<Family>,
    /// Collectors that panicked, figures that could not be read, and figures that were refused for their
    /// names, since the registry was made.
    pub failures: u64,
}

/// All samples of one name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Family {
    /// Its name, without the `_total` that text formats put behind counters.
    pub name: String,
    /// What it is.
    pub help: String,
    /// What its samples are.
    pub kind: MetricKind,
    /// Sorted by labels.
    pub samples: Vec<Sample>,
}

/// What the samples of a family are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MetricKind {
    /// A number that only grows.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// A distribution.
    Histogram,
}

/// One figure.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sample {
    /// What tells it from its neighbours.
    pub labels: Labels,
    /// What it was.
    pub value: Value,
}

/// What a figure was.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// Of a counter.
    Counter(f64),
    /// Of a gauge.
    Gauge(f64),
    /// Of a histogram.
    Histogram(Distribution),
}

/// What a histogram measures. It is read in base units: times in seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unit {
    /// Times, recorded in nanoseconds and read in seconds.
    Time,
    /// Amounts of memory or data, in bytes.
    Bytes,
    /// Anything else.
    Count,
}

impl Unit {
    /// A recorded value in base units. Divided, not multiplied by a fraction that no float is.
    pub(super) fn read(self, value: u64) -> f64 {
        match self {
            Self::Time => value as f64 / 1e9,
            Self::Bytes | Self::Count => value as f64,
        }
    }
}

/// How values were spread. Quantiles are exact to two significant digits, those of HTTP requests and of handlers of hubs
/// within 6 %; count, sum and maximum are exact.
#[derive(Clone, Debug)]
pub struct Distribution {
    unit: Unit,
    counts: Option<Histogram<u64>>,
    sum: u64,
    most: u64,
}

/// The quantiles that JSON and text show, with their names in JSON.
pub(super) const QUANTILES: [(f64, &str); 4] =
    [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")];

impl Distribution {
    pub(super) fn new(unit: Unit) -> Self {
        // The bounds are right, and without counts everything below says 0.
        let counts = Histogram::new_with_bounds(1, HIGHEST.max(2), 2).ok();
        Self { unit, counts, sum: 0, most: 0 }
    }

    pub(super) fn add(&mut self, value: u64, count: u64) {
        if let (Some(counts), 1..) = (&mut self.counts, count) {
            counts.saturating_record_n(value, count);
        }
    }

    pub(super) fn add_sum(&mut self, sum: u64, most: u64) {
        self.sum = self.sum.wrapping_add(sum);
        self.most = self.most.max(most);
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.as_ref().map_or(0, Histogram::len)
    }

    /// Their sum, in seconds for times.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.unit.read(self.sum)
    }

    /// Their mean; 0 if there are none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum() / self.count().max(1) as f64
    }

    /// The largest; 0 if there are none.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.unit.read(self.most)
    }

    /// The value that this part of all values, of 1, does not exceed; 0 if there are none.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> f64 {
        match &self.counts {
            Some(counts) if !counts.is_empty() => {
                self.unit.read(counts.value_at_quantile(quantile).min(self.most))
            }
            _ => 0.0,
        }
    }

    /// Of what it measures.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// What was recorded after `before`, an earlier snapshot of the same histogram. Its largest value is that of all time.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let mut since = self.clone();
        if let (Some(counts), Some(before)) = (&mut since.counts, &before.counts) {
            // A snapshot that is not earlier takes away more than there is: then all of it stays.
            let _later = counts.subtract(before);
        }
        since.sum = since.sum.wrapping_sub(before.sum);
        since
    }

    /// The values of both.
    pub(crate) fn with(mut self, other: &Self) -> Self {
        if let (Some(counts), Some(more)) = (&mut self.counts, &other.counts) {
            // Both have the same bounds.
            let _cannot_fail = counts.add(more);
        }
        self.add_sum(other.sum, other.most);
        self
    }

    /// How many values lie above the bound before and up to each of these, as recorded, and then how many
    /// above the last. A value that is less than a bucket above a bound may count for it.
    pub(super) fn between(&self, bounds: &[u64]) -> Vec<u64> {
        let mut parts = vec![0; bounds.len() + 1];
        let Some(counts) = &self.counts else { return parts };
        for step in counts.iter_recorded() {
            let value = counts.lowest_equivalent(step.value_iterated_to());
            parts[bounds.partition_point(|bound| *bound < value)] += step.count_at_value();
        }
        parts
    }

    pub(crate) fn json(&self) -> Json {
        let mut json = Map::new();
        json.insert("count".into(), self.count().into());
        for (name, figure) in [("sum", self.sum()), ("mean", self.mean()), ("max", self.max())] {
            json.insert(name.into(), number(figure));
        }
        for (quantile, name) in QUANTILES {
            json.insert(name.into(), number(self.quantile(quantile)));
        }
        json.into()
    }
}

impl Snapshot {
    /// The family of this name.
    #[must_use]
    pub fn family(&self, name: &str) -> Option<&Family> {
        self.families.iter().find(|family| family.name == name)
    }

    /// The sample of this name that has all of these labels.
    #[must_use]
    pub fn sample(&self, name: &str, labels: &[(&str, &str)]) -> Option<&Value> {
        let has = |sample: &Sample, (name, value): &(&str, &str)| {
            sample.labels.iter().any(|(its, is)| its == name && is == value)
        };
        let all = |sample: &&Sample| labels.iter().all(|label| has(sample, label));
        self.family(name)?.samples.iter().find(all).map(|sample| &sample.value)
    }

    /// As JSON: an object with `families`, a list of objects with `name`, `help`, `kind` and `samples`;
    /// those have `labels` and a `value`, which is a number, or for a histogram an object with `count`,
    /// `sum`, `mean`, `max`, `p50`, `p90`, `p99` and `p99.9`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let families: Vec<_> = self.families.iter().map(Family::json).collect();
        json!({ "failures": self.failures, "families": families }).to_string()
    }

    /// As text for a collector: [`TextFormat::Prometheus`], which every collector reads. To serve it, choose the
    /// format that the request wants, and send its media type:
    ///
    /// ```
    /// use paceline::metrics::{Registry, TextFormat};
    ///
    /// let registry = Registry::new();
    /// // The request's `Accept` header.
    /// let accept = Some("application/openmetrics-text; version=1.0.0");
    /// let format = TextFormat::negotiate(accept);
    /// let (content_type, body) = (format.media_type(), registry.snapshot().to_text(format));
    /// assert_eq!(content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    /// assert_eq!(body, "# EOF\n");
    /// ```
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        self.to_text(TextFormat::Prometheus)
    }

    /// As text for a collector, in this format. A histogram is a family of buckets, and a summary whose name ends in
    /// `_quantile`.
    #[must_use]
    pub fn to_text(&self, format: TextFormat) -> String {
        super::prometheus::text(self, format)
    }
}

impl Family {
    fn json(&self) -> Json {
        let kind = match self.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let samples: Vec<_> = self.samples.iter().map(Sample::json).collect();
        json!({ "name": self.name, "help": self.help, "kind": kind, "samples": samples })
    }
}

impl Sample {
    fn json(&self) -> Json {
        let labels: Map<_, _> =
            self.labels.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        json!({ "labels": labels, "value": self.value.json() })
    }
}

impl Value {
    /// The number of a counter or gauge.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Counter(number) | Self::Gauge(number) => Some(*number),
            Self::Histogram(_) => None,
        }
    }

    /// The distribution of a histogram.
    #[must_use]
    pub fn distribution(&self) -> Option<&Distribution> {
        match self {
            Self::Histogram(distribution) => Some(distribution),
            _ => None,
        }
    }

    fn json(&self) -> Json {
        match self {
            Self::Counter(figure) | Self::Gauge(figure) => number(*figure),
            Self::Histogram(distribution) => distribution.json(),
        }
    }
}

/// Whole numbers without a point; what JSON has no word for is null.
fn number(figure: f64) -> Json {
    const EXACT: f64 = (1_u64 << 53) as f64;
    match figure.fract() == 0.0 && figure.abs() < EXACT {
        true => Json::from(figure as i64),
        false => Json::from(figure),
    }
}
