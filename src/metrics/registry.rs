//! Where all figures are found by their names.

use super::histogram::Histogram;
use super::instruments::{Counter, Gauge};
use super::snapshot::{Distribution, Family, Labels, MetricKind, Sample, Snapshot, Unit, Value};
use crate::contain::contain;
use crate::error::{Error, Result};
use core::fmt;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many figures a registry keeps, and how many its collectors may give at one snapshot.
const MAX_SAMPLES: usize = 16_384;

/// How many series of one family collectors may give at one snapshot. Prometheus advises hundreds at most; what has
/// more (a key, a route or a subscription for each user) would make every scrape long and every query slow.
const MAX_SERIES: usize = 1000;

/// Where it is said how many series were left out, by family.
const OVERFLOW: &str = "paceline_metrics_overflow";

/// What text formats put behind names, and what is therefore in no name.
const SUFFIXES: [&str; 7] =
    ["_total", "_bucket", "_count", "_sum", "_created", "_info", "_quantile"];

/// A set of metrics. Clones are the same registry; any thread.
///
/// ```
/// use paceline::metrics::{Registry, Unit};
/// use std::time::Duration;
///
/// # fn main() -> paceline::Result<()> {
/// let registry = Registry::new();
/// let hits = registry.counter("cache_hits", "Answers from the cache", &[("cache", "pages")])?;
/// let times = registry.histogram("fetch_seconds", "Time of a fetch", &[], Unit::Time)?;
/// hits.inc();
/// times.record_time(Duration::from_millis(3));
/// let text = registry.snapshot().to_prometheus();
/// assert!(text.contains("cache_hits_total{cache=\"pages\"} 1"));
/// assert!(text.contains("fetch_seconds_quantile{quantile=\"0.99\"} 0.003"));
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Registry(Arc<Shared>);

#[derive(Default)]
struct Shared {
    kept: Mutex<Kept>,
    collectors: Mutex<Vec<Arc<Collect>>>,
    failures: Counter,
}

type Collect = dyn Fn(&mut Collector) -> bool + Send + Sync;

/// The instruments, by name and labels.
#[derive(Default)]
struct Kept {
    families: BTreeMap<String, KeptFamily>,
    samples: usize,
}

struct KeptFamily {
    help: String,
    kind: MetricKind,
    series: BTreeMap<Labels, Instrument>,
}

#[derive(Clone)]
enum Instrument {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
}

impl Registry {
    /// One without metrics.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A counter of this name and labels; the same one for every call with the same. A name has letters,
    /// digits and underscores, and does not end as text formats end theirs (`_total`, `_sum` …): the counter `hits` is
    /// `hits_total` there.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a name is not one, or belongs to metrics of another kind; [`Error::Full`]
    /// for more than 16384 metrics.
    pub fn counter(&self, name: &str, help: &str, labels: &[(&str, &str)]) -> Result<Counter> {
        let new = || Instrument::Counter(Counter::default());
        match self.instrument(name, help, labels, new)? {
            Instrument::Counter(counter) => Ok(counter),
            other => Err(taken(name, other.kind())),
        }
    }

    /// A gauge, as [`counter`](Self::counter).
    ///
    /// # Errors
    /// As [`counter`](Self::counter).
    pub fn gauge(&self, name: &str, help: &str, labels: &[(&str, &str)]) -> Result<Gauge> {
        let new = || Instrument::Gauge(Gauge::default());
        match self.instrument(name, help, labels, new)? {
            Instrument::Gauge(gauge) => Ok(gauge),
            other => Err(taken(name, other.kind())),
        }
    }

    /// A histogram, as [`counter`](Self::counter).
    ///
    /// # Errors
    /// As [`counter`](Self::counter); the unit, too, must be that of the first call.
    pub fn histogram(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        unit: Unit,
    ) -> Result<Histogram> {
        let new = || Instrument::Histogram(Histogram::new(unit));
        match self.instrument(name, help, labels, new)? {
            Instrument::Histogram(histogram) if histogram.unit() == unit => Ok(histogram),
            other => Err(taken(name, other.kind())),
        }
    }

    /// Asks `collect` for figures at every snapshot, until it answers false. It runs on the thread that
    /// takes the snapshot; a panic in it is counted as a failure.
    pub fn collect(&self, collect: impl Fn(&mut Collector) -> bool + Send + Sync + 'static) {
        lock(&self.0.collectors).push(Arc::new(collect));
    }

    /// What all metrics are now. Any thread; allocates.
    pub fn snapshot(&self) -> Snapshot {
        let mut collector = Collector::default();
        self.collect_kept(&mut collector);
        self.ask_collectors(&mut collector);
        collector.tell_overflow();
        self.0.failures.add(collector.failures);
        let families = collector.families.into_iter();
        Snapshot {
            families: families.map(|(name, family)| family.finish(name)).collect(),
            failures: self.0.failures.get(),
        }
    }

    fn instrument(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        new: impl FnOnce() -> Instrument,
    ) -> Result<Instrument> {
        let labels = check(name, labels)?;
        let mut kept = lock(&self.0.kept);
        let Kept { families, samples } = &mut *kept;
        if let Some(found) = families.get(name).and_then(|family| family.series.get(&labels)) {
            return Ok(found.clone());
        }
        let instrument = new();
        match families.get(name) {
            Some(family) if family.kind != instrument.kind() => {
                return Err(taken(name, family.kind));
            }
            _ if *samples >= MAX_SAMPLES => {
                return Err(Error::Full { what: "metrics", capacity: MAX_SAMPLES });
            }
            _ => {}
        }
        *samples += 1;
        let family = families.entry(name.into()).or_insert_with(|| KeptFamily {
            help: help.into(),
            kind: instrument.kind(),
            series: BTreeMap::new(),
        });
        family.series.insert(labels, instrument.clone());
        Ok(instrument)
    }

    fn collect_kept(&self, collector: &mut Collector) {
        for (name, family) in &lock(&self.0.kept).families {
            for (labels, instrument) in &family.series {
                let value = instrument.value();
                collector.put(name, &family.help, family.kind, labels.clone(), value);
            }
        }
        collector.count = 0;
    }

    /// No lock is held while they run.
    fn ask_collectors(&self, collector: &mut Collector) {
        let collectors = lock(&self.0.collectors).clone();
        for collect in collectors {
            match contain(|| collect(collector)) {
                Some(true) => {}
                Some(false) => {
                    lock(&self.0.collectors).retain(|other| !Arc::ptr_eq(other, &collect))
                }
                None => collector.fail(),
            }
            // This may be the last reference.
            if contain(|| drop(collect)).is_none() {
                collector.fail();
            }
        }
    }
}

impl Instrument {
    fn kind(&self) -> MetricKind {
        match self {
            Self::Counter(_) => MetricKind::Counter,
            Self::Gauge(_) => MetricKind::Gauge,
            Self::Histogram(_) => MetricKind::Histogram,
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Counter(counter) => Value::Counter(counter.get() as f64),
            Self::Gauge(gauge) => Value::Gauge(gauge.get()),
            Self::Histogram(histogram) => Value::Histogram(histogram.snapshot()),
        }
    }
}

/// Takes the figures of collectors; see [`Registry::collect`]. A figure with a wrong name, or of another
/// kind than its family, or that is there already, is left out and counted as a failure. A family has room for
/// 1000 series; how many were left out is told by the gauge `paceline_metrics_overflow`, with the label `family`.
#[derive(Default)]
pub struct Collector {
    families: BTreeMap<String, Collected>,
    count: usize,
    failures: u64,
    /// Series that were left out, by family.
    overflow: BTreeMap<String, usize>,
    /// The parts of pools that were asked: what they are, with their addresses.
    asked: HashSet<(&'static str, usize)>,
    /// The same with their names.
    names: HashSet<(&'static str, String)>,
}

struct Collected {
    help: String,
    kind: MetricKind,
    samples: BTreeMap<Labels, Value>,
}

impl Collector {
    /// A figure that only grows.
    pub fn counter(&mut self, name: &str, help: &str, labels: &[(&str, &str)], figure: f64) {
        self.checked(name, help, labels, Value::Counter(figure));
    }

    /// A figure that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, labels: &[(&str, &str)], figure: f64) {
        self.checked(name, help, labels, Value::Gauge(figure));
    }

    /// How values were spread.
    pub fn histogram(
        &mut self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        distribution: Distribution,
    ) {
        self.checked(name, help, labels, Value::Histogram(distribution));
    }

    /// A figure could not be read.
    pub fn fail(&mut self) {
        self.failures += 1;
    }

    /// So many series of a family were left out.
    pub(crate) fn leave_out(&mut self, family: &str, series: usize) {
        *self.overflow.entry(family.into()).or_default() += series;
    }

    /// What a part of a pool is called at this snapshot: `name`, with a number if another part of its kind is called
    /// so. None: it has given its figures, as it is in the registry in more than one way.
    pub(crate) fn enter<P: ?Sized>(
        &mut self,
        part: &P,
        kind: &'static str,
        name: &str,
    ) -> Option<String> {
        if !self.asked.insert((kind, core::ptr::from_ref(part).cast::<()>().addr())) {
            return None;
        }
        let numbered = (2_u32..).map(|number| format!("{name}#{number}"));
        let mut names = core::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| self.names.insert((kind, name.clone())))
    }

    fn tell_overflow(&mut self) {
        let help = "Series of a family that were left out, since it has room for 1000";
        for (family, series) in core::mem::take(&mut self.overflow) {
            self.gauge(OVERFLOW, help, &[("family", &family)], series as f64);
        }
    }

    fn series(&self, family: &str) -> usize {
        self.families.get(family).map_or(0, |family| family.samples.len())
    }

    fn checked(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: Value) {
        let kind = match value {
            Value::Counter(_) => MetricKind::Counter,
            Value::Gauge(_) => MetricKind::Gauge,
            Value::Histogram(_) => MetricKind::Histogram,
        };
        match check(name, labels) {
            Ok(_) if self.series(name) >= MAX_SERIES => self.leave_out(name, 1),
            Ok(labels) => self.put(name, help, kind, labels, value),
            Err(_) => self.fail(),
        }
    }

    fn put(&mut self, name: &str, help: &str, kind: MetricKind, labels: Labels, value: Value) {
        let family = self.families.entry(name.into()).or_insert_with(|| Collected {
            help: help.into(),
            kind,
            samples: BTreeMap::new(),
        });
        let free = family.kind == kind && !family.samples.contains_key(&labels);
        if !free || self.count >= MAX_SAMPLES {
            return self.fail();
        }
        self.count += 1;
        family.samples.insert(labels, value);
    }
}

impl Collected {
    fn finish(self, name: String) -> Family {
        let samples = self.samples.into_iter();
        Family {
            name,
            help: self.help,
            kind: self.kind,
            samples: samples.map(|(labels, value)| Sample { labels, value }).collect(),
        }
    }
}

/// The labels, sorted, if all names are ones.
fn check(name: &str, labels: &[(&str, &str)]) -> Result<Labels> {
    if let Some(suffix) = SUFFIXES.iter().find(|suffix| name.ends_with(*suffix)) {
        let base = name.trim_end_matches(suffix);
        let allowed = format!(
            "without {suffix} at its end, as {base:?}: text formats put it there themselves"
        );
        return Err(Error::invalid("the name of a metric", format!("{name:?}"), allowed));
    }
    if !is_name(name, true) {
        let allowed = "letters, digits, _ and :, and no digit first";
        return Err(Error::invalid("the name of a metric", format!("{name:?}"), allowed));
    }
    let mut sorted: Labels = Vec::with_capacity(labels.len());
    for (label, value) in labels {
        let is_free = !matches!(*label, "le" | "quantile") && !label.starts_with("__");
        if !is_name(label, false) || !is_free || sorted.iter().any(|(other, _)| other == label) {
            let allowed = "letters, digits and _, no digit or __ first, not le or quantile, and not \
                           given twice";
            return Err(Error::invalid("the name of a label", format!("{label:?}"), allowed));
        }
        sorted.push(((*label).into(), (*value).into()));
    }
    sorted.sort_unstable();
    Ok(sorted)
}

fn is_name(name: &str, colon: bool) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || (colon && byte == b':');
    !name.is_empty() && name.bytes().all(fits) && !name.as_bytes()[0].is_ascii_digit()
}

fn taken(name: &str, kind: MetricKind) -> Error {
    let allowed = format!("unused, or used as it is now: as a {kind:?} with its unit");
    Error::invalid("the name of a metric", format!("{name:?}"), allowed)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metrics = lock(&self.0.kept).samples;
        f.debug_struct("Registry").field("metrics", &metrics).finish_non_exhaustive()
    }
}
