//! Figures of bridges.

use super::number;
use crate::common::hang_guard;
use crate::text::accepted_by_parsers;
use paceline::Pool;
use paceline::bridge::{Bridge, Export, Import};
use paceline::hub::Hub;
use paceline::metrics::{Registry, Snapshot};
use std::collections::BTreeSet;

const OF_EXPORTS: [&str; 6] = ["waiting", "sent", "dropped", "refused", "late", "turned_back"];
const OF_STORING: [&str; 3] = ["in_flight", "stored", "sent_again"];
const OF_IMPORTS: [&str; 4] = ["published", "duplicates", "turned_back", "refused"];
const OF_TAKING: [&str; 5] = ["in_flight", "lag", "acknowledged", "again", "dead"];

/// The names of bridges' families that have a series with this label.
fn names(snapshot: &Snapshot, label: (&str, &str)) -> BTreeSet<String> {
    let (name, value) = label;
    let families = snapshot.families.iter().filter(|it| it.name.starts_with("paceline_bridge"));
    families
        .filter(|family| {
            let mut labels = family.samples.iter().flat_map(|sample| &sample.labels);
            labels.any(|(of, is)| of == name && is == value)
        })
        .map(|family| family.name.clone())
        .collect()
}

fn all(kind: &str, lists: &[&[&str]]) -> BTreeSet<String> {
    let names = lists.iter().flat_map(|list| list.iter());
    names.map(|name| format!("paceline_bridge_{kind}_{name}")).collect()
}

#[test]
fn a_bridge_without_a_broker_has_figures_of_all_its_rules() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let hub = Hub::new(&pool).unwrap();
    let registry = Registry::new();
    pool.attach_metrics(&registry, "main");
    let nats = || Bridge::nats(&hub, "nats://127.0.0.1:1");
    let bridge = nats()
        .name("a \"b\"\\\nc")
        .export(Export::new("plain").buffer(2))
        .export(Export::new("stored").at_least_once("S"))
        .import("taken")
        .import(Import::new("kept").at_least_once("K", "k"))
        .open()
        .unwrap();
    let _same = nats().name("a \"b\"\\\nc").export("plain").open().unwrap();
    for _ in 0..5 {
        let _ = hub.publish("plain", "x").unwrap();
    }
    let _ = hub.publish("stored", "x").unwrap();

    let snapshot = registry.snapshot();
    assert_eq!(snapshot.failures, 0);
    let name = ("bridge", "a \"b\"\\\nc");
    let of = |figure: &str, labels: &[(&str, &str)]| {
        let labels = [&[("pool", "main"), name], labels].concat();
        number(&snapshot, &format!("paceline_bridge_{figure}"), &labels)
    };
    for figure in ["connected", "connects", "lost", "requests_in", "requests_out"] {
        assert_eq!(of(figure, &[]), 0.0, "{figure}");
    }
    let plain = [("rule", "0"), ("pattern", "plain")];
    assert_eq!((of("export_waiting", &plain), of("export_dropped", &plain)), (2.0, 3.0));
    let stored = [("rule", "1"), ("pattern", "stored")];
    assert_eq!((of("export_waiting", &stored), of("export_stored", &stored)), (1.0, 0.0));
    for (pattern, expected) in [
        ("plain", all("export", &[&OF_EXPORTS])),
        ("stored", all("export", &[&OF_EXPORTS, &OF_STORING])),
        ("taken", all("import", &[&OF_IMPORTS])),
        ("kept", all("import", &[&OF_IMPORTS, &OF_TAKING])),
    ] {
        assert_eq!(names(&snapshot, ("pattern", pattern)), expected, "{pattern}");
    }
    // Another bridge of this name is told from it.
    let again = [("bridge", "a \"b\"\\\nc#2"), ("pattern", "plain")];
    assert_eq!(number(&snapshot, "paceline_bridge_export_waiting", &again), 5.0);
    accepted_by_parsers(&snapshot);
    drop(bridge);
    let gone = registry.snapshot();
    assert!(names(&gone, ("pattern", "kept")).is_empty());
}
