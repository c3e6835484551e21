//! Metrics: what is recorded is what is read, in a struct, as JSON, and as text that Prometheus's own
//! parser understands.
#![cfg(feature = "metrics")]

#[cfg(feature = "nats")]
mod bridge;
#[path = "../common/mod.rs"]
mod common;
mod parts;
mod pools;
mod progress;
mod text;

use paceline::Error;
use paceline::metrics::{MetricKind, Registry, Snapshot, SystemFigures, Unit, Value};
use serde_json::{Value as Json, json};
use std::thread;
use std::time::Duration;

fn number(snapshot: &Snapshot, name: &str, labels: &[(&str, &str)]) -> f64 {
    let value = snapshot.sample(name, labels);
    value.and_then(Value::number).unwrap_or_else(|| panic!("{name} {labels:?}: {value:?}"))
}

#[test]
fn what_threads_record_together_is_read() {
    let registry = Registry::new();
    let counter = registry.counter("hits", "Hits", &[]).unwrap();
    let gauge = registry.gauge("level", "Level", &[]).unwrap();
    let times = registry.histogram("wait_seconds", "Waits", &[], Unit::Time).unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for millis in 1..=1000 {
                    counter.inc();
                    counter.add(2);
                    gauge.add(0.5);
                    gauge.add(-0.25);
                    times.record_time(Duration::from_millis(millis));
                }
            });
        }
        // Reading meanwhile holds nobody up, and never sees more than there is.
        scope.spawn(|| {
            for _ in 0..20 {
                let count = registry.snapshot().sample("wait_seconds", &[]).unwrap().clone();
                assert!(count.distribution().unwrap().count() <= 8000);
            }
        });
    });
    let snapshot = registry.snapshot();
    assert_eq!(number(&snapshot, "hits", &[]), 24_000.0);
    assert_eq!(number(&snapshot, "level", &[]), 2000.0);
    let spread = snapshot.sample("wait_seconds", &[]).unwrap().distribution().unwrap();
    assert_eq!(spread.count(), 8000);
    assert!((spread.sum() - 8.0 * 500.5).abs() < 1e-6, "{}", spread.sum());
    assert_eq!(spread.max(), 1.0);
    for (quantile, exact) in [(0.5, 0.5), (0.9, 0.9), (0.99, 0.99), (0.999, 0.999)] {
        let read = spread.quantile(quantile);
        assert!((read / exact - 1.0).abs() < 0.01, "{quantile}: {read}");
    }
    assert_eq!(snapshot.failures, 0);
}

#[test]
fn the_same_name_and_labels_are_the_same_metric() {
    let registry = Registry::new();
    let counter = |labels: &[(&str, &str)]| registry.counter("hits", "Hits", labels).unwrap();
    counter(&[("a", "1"), ("b", "2")]).inc();
    counter(&[("b", "2"), ("a", "1")]).inc();
    counter(&[("a", "1")]).inc();
    let snapshot = registry.snapshot();
    assert_eq!(number(&snapshot, "hits", &[("a", "1"), ("b", "2")]), 2.0);
    let family = snapshot.family("hits").unwrap();
    assert_eq!((family.kind, family.samples.len()), (MetricKind::Counter, 2));
    assert_eq!(number(&registry.clone().snapshot(), "hits", &[("b", "2")]), 2.0);
}

#[test]
fn wrong_names_are_refused_by_name() {
    let registry = Registry::new();
    let told = |name: &str, labels: &[(&str, &str)]| match registry.counter(name, "", labels) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    for name in ["", "1a", "a b", "ä", "a-b", "a\n"] {
        let allowed = "letters, digits, _ and :, and no digit first";
        let text = format!("the name of a metric is {name:?}, but must be {allowed}");
        assert_eq!(told(name, &[]), text);
    }
    for suffix in ["_total", "_bucket", "_count", "_sum", "_created", "_info", "_quantile"] {
        let text = format!("but must be without {suffix} at its end");
        assert!(told(&format!("a{suffix}"), &[]).contains(&text), "{suffix}");
    }
    let text = "the name of a metric is \"hits_total\", but must be without _total at its end, as \"hits\": text \
                formats put it there themselves";
    assert_eq!(told("hits_total", &[]), text);
    for labels in [
        &[("", "")][..],
        &[("1", "")],
        &[("a:b", "")],
        &[("__a", "")],
        &[("le", "")],
        &[("quantile", "")],
        &[("a", "1"), ("a", "2")],
    ] {
        assert!(told("hits", labels).starts_with("the name of a label is"), "{labels:?}");
    }
    assert_eq!(told("hits:all_1", &[("_a1", "any \"\\\n text")]), "");
}

#[test]
fn a_name_keeps_its_kind_and_its_unit() {
    let registry = Registry::new();
    registry.counter("a", "", &[]).unwrap();
    registry.histogram("h", "", &[], Unit::Time).unwrap();
    let taken = |told: Error, name: &str, kind: &str| {
        let allowed = format!("unused, or used as it is now: as a {kind} with its unit");
        let text = format!("the name of a metric is {name:?}, but must be {allowed}");
        assert_eq!(told.to_string(), text);
    };
    taken(registry.gauge("a", "", &[]).unwrap_err(), "a", "Counter");
    taken(registry.gauge("a", "", &[("x", "y")]).unwrap_err(), "a", "Counter");
    taken(registry.histogram("a", "", &[], Unit::Count).unwrap_err(), "a", "Counter");
    taken(registry.counter("h", "", &[]).unwrap_err(), "h", "Histogram");
    taken(registry.histogram("h", "", &[], Unit::Bytes).unwrap_err(), "h", "Histogram");
    let families = registry.snapshot().families;
    assert_eq!(families.iter().map(|family| family.samples.len()).sum::<usize>(), 2);
}

#[test]
fn a_registry_has_room_for_16384_metrics() {
    let registry = Registry::new();
    let add = |index: usize| registry.counter("a", "", &[("index", &index.to_string())]);
    for index in 0..16_384 {
        add(index).unwrap();
    }
    let full = add(16_384).unwrap_err();
    assert!(matches!(full, Error::Full { what: "metrics", capacity: 16_384 }), "{full:?}");
    assert!(add(7).is_ok(), "it is there already");
}

#[test]
fn collectors_are_asked_until_they_have_nothing_more() {
    let registry = Registry::new();
    let asked = registry.counter("asked", "", &[]).unwrap();
    let counter = asked.clone();
    registry.collect(move |collector| {
        counter.inc();
        collector.counter("level", "Level", &[("of", "a")], 1.0);
        collector.gauge("depth", "Depth", &[], -2.5);
        counter.get() < 2
    });
    let first = registry.snapshot();
    assert_eq!(number(&first, "level", &[("of", "a")]), 1.0);
    assert_eq!(number(&first, "depth", &[]), -2.5);
    registry.snapshot();
    assert!(registry.snapshot().family("level").is_none());
    assert_eq!(asked.get(), 2);
}

/// And nothing of what went well is lost.
#[test]
fn what_goes_wrong_in_a_collector_is_counted() {
    let registry = Registry::new();
    registry.counter("kept", "", &[]).unwrap();
    registry.collect(|collector| {
        collector.counter("1", "", &[], 1.0);
        collector.gauge("good", "", &[("__bad", "")], 1.0);
        collector.gauge("kept", "", &[("a", "another kind")], 1.0);
        collector.gauge("good", "", &[], 1.0);
        collector.gauge("good", "", &[], 2.0);
        true
    });
    registry.collect(|collector| {
        collector.gauge("before", "", &[], 1.0);
        panic!("a collector's own fault")
    });
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.failures, 5);
    assert_eq!(number(&snapshot, "good", &[]), 1.0);
    assert_eq!(number(&snapshot, "before", &[]), 1.0);
    assert_eq!(registry.snapshot().failures, 10);
}

/// A collector may use its own registry: no lock is held while it runs.
#[test]
fn a_collector_may_take_a_snapshot() {
    let _guard = common::hang_guard();
    let registry = Registry::new();
    let inner = registry.clone();
    registry.collect(move |collector| {
        let nested = inner.counter("nested", "", &[]).unwrap();
        nested.inc();
        if nested.get() == 1 {
            collector.gauge("families", "", &[], inner.snapshot().families.len() as f64);
        }
        true
    });
    assert_eq!(number(&registry.snapshot(), "families", &[]), 1.0);
}

#[test]
fn json_has_everything() {
    let registry = Registry::new();
    registry.counter("hits", "Hits of \"it\"", &[("a", "x\"\\\ny")]).unwrap().add(3);
    registry.gauge("level", "", &[]).unwrap().set(f64::NAN);
    registry.gauge("warmth", "", &[]).unwrap().set(-1.5);
    let sizes = registry.histogram("sizes", "", &[], Unit::Bytes).unwrap();
    (1..=4).for_each(|size| sizes.record(size));
    let json: Json = serde_json::from_str(&registry.snapshot().to_json()).unwrap();
    let spread = json!({"count": 4, "sum": 10, "mean": 2.5, "max": 4, "p50": 2, "p90": 4, "p99": 4,
        "p99.9": 4});
    let family = |name, help, kind, labels, value: Json| {
        json!({"name": name, "help": help, "kind": kind,
            "samples": [{"labels": labels, "value": value}]})
    };
    let families = [
        family("hits", "Hits of \"it\"", "counter", json!({"a": "x\"\\\ny"}), json!(3)),
        family("level", "", "gauge", json!({}), Json::Null),
        family("sizes", "", "histogram", json!({}), spread),
        family("warmth", "", "gauge", json!({}), json!(-1.5)),
    ];
    assert_eq!(json, json!({"failures": 0, "families": families}));
}

#[test]
fn the_system_is_seen() {
    let registry = Registry::new();
    SystemFigures::new().disk("/").disk("/proc/no/such/place").attach(&registry);
    let held = vec![1_u8; 32 << 20];
    let threads: Vec<_> = (0..3).map(|_| thread::spawn(thread::park)).collect();
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.failures, 1, "only the place that is none");
    assert!(number(&snapshot, "process_threads", &[]) >= 4.0);
    assert!(number(&snapshot, "process_resident_memory_bytes", &[]) >= held.len() as f64);
    assert!(number(&snapshot, "process_open_fds", &[]) >= 3.0);
    assert!(number(&snapshot, "process_cpu_seconds", &[("mode", "user")]) >= 0.0);
    let of_root = [("path", "/")];
    let total = number(&snapshot, "system_disk_total_bytes", &of_root);
    assert!(number(&snapshot, "system_disk_free_bytes", &of_root) <= total && total > 0.0);
    assert!(number(&snapshot, "system_memory_total_bytes", &[]) > 0.0);
    assert!(number(&snapshot, "system_cpu_seconds", &[("mode", "idle")]) > 0.0);
    assert!(snapshot.sample("system_network_receive_bytes", &[]).is_some());
    for thread in threads {
        thread.thread().unpark();
        thread.join().unwrap();
    }
    drop(held);
}
