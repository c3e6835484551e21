//! The text that Prometheus reads, in its older format and in OpenMetrics.
//!
//! | | Prometheus 0.0.4 | OpenMetrics 1.0 |
//! |---|---|---|
//! | a counter's family is called | `hits_total` | `hits` |
//! | units | | `# UNIT wait_seconds seconds` |
//! | help texts escape | `\`, line ends | `\`, line ends, `"` |
//! | the end | | `# EOF` |
//!
//! A parser of one of them misreads the other: for that of 0.0.4 a counter that is called `hits` has no samples,
//! and `hits_total` no type.

use super::snapshot::{Distribution, Family, Labels, MetricKind, QUANTILES, Snapshot, Unit, Value};
use crate::accept::preferred;
use core::fmt::Write;

/// A text format for figures, and its media type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TextFormat {
    /// Prometheus's text format, version 0.0.4: every collector reads it.
    #[default]
    Prometheus,
    /// OpenMetrics 1.0: Prometheus asks for it first.
    OpenMetrics,
}

impl TextFormat {
    /// The format that a request with this `Accept` header wants most. Without one, and where it wants both
    /// equally or neither, this is [`Prometheus`](Self::Prometheus).
    #[must_use]
    pub fn negotiate(accept: Option<&str>) -> Self {
        let offers = ["text/plain", "application/openmetrics-text"];
        match preferred(accept.unwrap_or_default(), &offers) {
            1 => Self::OpenMetrics,
            _ => Self::Prometheus,
        }
    }

    /// The `Content-Type` to send it with. A collector may take the text for another format without it.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

pub(super) fn text(snapshot: &Snapshot, format: TextFormat) -> String {
    let mut text = Text { format, written: String::new() };
    snapshot.families.iter().for_each(|family| text.family(family));
    if format == TextFormat::OpenMetrics {
        text.written.push_str("# EOF\n");
    }
    text.written
}

/// Writing to a `String` cannot fail.
macro_rules! put {
    ($text:expr, $($what:tt)*) => { let _cannot_fail = write!($text.written, $($what)*); };
}

struct Text {
    format: TextFormat,
    written: String,
}

impl Text {
    fn family(&mut self, family: &Family) {
        let name = &*family.name;
        match family.kind {
            MetricKind::Counter => self.head(name, "_total", "counter", &family.help),
            MetricKind::Gauge => self.head(name, "", "gauge", &family.help),
            MetricKind::Histogram => self.head(name, "", "histogram", &family.help),
        }
        for sample in &family.samples {
            match &sample.value {
                Value::Counter(number) => self.sample(name, "_total", &sample.labels, *number),
                Value::Gauge(number) => self.sample(name, "", &sample.labels, *number),
                Value::Histogram(found) => self.histogram(name, &sample.labels, found),
            }
        }
        if family.kind == MetricKind::Histogram {
            self.quantiles(family);
        }
    }

    /// `suffix` is that of the samples, which the family has in the older format only.
    fn head(&mut self, name: &str, suffix: &str, kind: &str, help: &str) {
        let is_exact = self.format == TextFormat::OpenMetrics;
        let suffix = if is_exact { "" } else { suffix };
        put!(self, "# HELP {name}{suffix} ");
        self.escaped(help, is_exact);
        put!(self, "\n# TYPE {name}{suffix} {kind}\n");
        let unit = ["seconds", "bytes"]
            .into_iter()
            .find(|unit| name.strip_suffix(unit).is_some_and(|before| before.ends_with('_')));
        if let Some(unit) = unit.filter(|_| is_exact) {
            put!(self, "# UNIT {name} {unit}\n");
        }
    }

    fn histogram(&mut self, name: &str, labels: &Labels, found: &Distribution) {
        self.sample(name, "_sum", labels, found.sum());
        self.count(name, "_count", labels, None, found.count());
        let unit = found.unit();
        let bounds = bounds(unit);
        let read = bounds.iter().map(|bound| unit.read(*bound)).chain([f64::INFINITY]);
        let mut up_to = 0;
        for (bound, between) in read.zip(found.between(&bounds)) {
            up_to += between;
            self.count(name, "_bucket", labels, Some(bound), up_to);
        }
    }

    /// What buckets tell only roughly.
    fn quantiles(&mut self, family: &Family) {
        let name = format!("{}_quantile", family.name);
        self.head(&name, "", "summary", &family.help);
        for sample in &family.samples {
            let Value::Histogram(found) = &sample.value else { continue };
            for (quantile, _) in QUANTILES {
                let mut labels = sample.labels.clone();
                labels.push(("quantile".into(), quantile.to_string()));
                self.sample(&name, "", &labels, found.quantile(quantile));
            }
        }
    }

    fn sample(&mut self, name: &str, suffix: &str, labels: &Labels, number: f64) {
        self.name(name, suffix, labels, None);
        self.number(number);
        self.written.push('\n');
    }

    fn count(&mut self, name: &str, suffix: &str, labels: &Labels, le: Option<f64>, count: u64) {
        self.name(name, suffix, labels, le);
        put!(self, "{count}\n");
    }

    /// With the bound of a bucket before the other labels.
    fn name(&mut self, name: &str, suffix: &str, labels: &Labels, le: Option<f64>) {
        put!(self, "{name}{suffix}");
        let mut before = '{';
        if let Some(bound) = le {
            put!(self, "{before}le=\"");
            self.number(bound);
            self.written.push('"');
            before = ',';
        }
        for (label, value) in labels {
            put!(self, "{before}{label}=\"");
            self.escaped(value, true);
            self.written.push('"');
            before = ',';
        }
        self.written.push_str(if before == '{' { " " } else { "} " });
    }

    /// As both formats, and their parsers, write and read floats.
    fn number(&mut self, number: f64) {
        match number {
            _ if number.is_nan() => self.written.push_str("NaN"),
            f64::INFINITY => self.written.push_str("+Inf"),
            f64::NEG_INFINITY => self.written.push_str("-Inf"),
            // Without an exponent, unless it would be long.
            _ if (1e-9..1e-4).contains(&number.abs()) => {
                put!(self, "{number}");
            }
            _ => {
                put!(self, "{number:?}");
            }
        }
    }

    fn escaped(&mut self, text: &str, quotes: bool) {
        for letter in text.chars() {
            match letter {
                '\\' => self.written.push_str("\\\\"),
                '\n' => self.written.push_str("\\n"),
                '"' if quotes => self.written.push_str("\\\""),
                letter => self.written.push(letter),
            }
        }
    }
}

/// As recorded: for times 1, 2.5 and 5 in each decade from a microsecond to 50 s; else powers of 4.
fn bounds(unit: Unit) -> Vec<u64> {
    match unit {
        Unit::Time => {
            (2..=9).flat_map(|power| [10, 25, 50].map(|step| step * 10_u64.pow(power))).collect()
        }
        Unit::Bytes | Unit::Count => (0..=20).map(|power| 4_u64.pow(power)).collect(),
    }
}
