//! The text that Prometheus reads.

use super::snapshot::{Distribution, Family, MetricKind, QUANTILES, Snapshot, Unit, Value};
use core::fmt;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// Writing to a `String` cannot fail.
pub(super) fn text(snapshot: &Snapshot) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(snapshot.families.clone())));
    let mut written = String::new();
    let _cannot_fail = text::encode(&mut written, &registry);
    written
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|family| encode_family(&mut encoder, family))
    }
}

fn encode_family(encoder: &mut DescriptorEncoder<'_>, family: &Family) -> fmt::Result {
    let kind = match family.kind {
        MetricKind::Counter => MetricType::Counter,
        MetricKind::Gauge => MetricType::Gauge,
        MetricKind::Histogram => MetricType::Histogram,
    };
    let help = escaped(&family.help);
    let mut metric = encoder.encode_descriptor(&family.name, &help, None, kind)?;
    for sample in &family.samples {
        encode_value(&mut metric.encode_family(&sample.labels)?, &sample.value)?;
    }
    match family.kind {
        MetricKind::Histogram => encode_quantiles(encoder, family, &help),
        MetricKind::Counter | MetricKind::Gauge => Ok(()),
    }
}

fn encode_value(metric: &mut MetricEncoder<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Counter(number) => metric.encode_counter::<NoLabelSet, f64, f64>(number, None),
        Value::Gauge(number) => metric.encode_gauge(number),
        Value::Histogram(distribution) => metric.encode_histogram::<NoLabelSet>(
            distribution.sum(),
            distribution.count(),
            &buckets(distribution),
            None,
        ),
    }
}

/// What buckets tell only roughly.
fn encode_quantiles(
    encoder: &mut DescriptorEncoder<'_>,
    family: &Family,
    help: &str,
) -> fmt::Result {
    let name = format!("{}_quantile", family.name);
    let mut metric = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
    for sample in &family.samples {
        let Value::Histogram(distribution) = &sample.value else { continue };
        for (quantile, _) in QUANTILES {
            let mut labels = sample.labels.clone();
            labels.push(("quantile".into(), quantile.to_string()));
            metric.encode_family(&labels)?.encode_gauge(&distribution.quantile(quantile))?;
        }
    }
    Ok(())
}

/// Upper bounds in base units, each with how many values lie between it and the one before.
fn buckets(distribution: &Distribution) -> Vec<(f64, u64)> {
    let unit = distribution.unit();
    let bounds = bounds(unit);
    let read = bounds.iter().map(|bound| unit.read(*bound)).chain([f64::INFINITY]);
    read.zip(distribution.between(&bounds)).collect()
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

/// Label values are escaped by the library, help texts are not.
fn escaped(help: &str) -> String {
    help.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}
