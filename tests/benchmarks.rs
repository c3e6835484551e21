//! Goal: docs/BENCHMARKS.md and its pictures are what the measured JSON in docs/benchmarks says, and the page is short.
//!
//! Method: the renderer of benches/comparison is compiled into this test, without the rivals.

#![allow(dead_code)]

#[path = "../benches/comparison/src/render/mod.rs"]
mod render;
#[path = "../benches/comparison/src/report.rs"]
mod report;
#[path = "../benches/comparison/src/stats.rs"]
mod stats;

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_page_is_what_was_measured() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let measured = fs::read_dir(docs.join("benchmarks")).expect("docs/benchmarks");
    let paths = measured.map(|entry| entry.expect("an entry").path());
    let json: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    let runs = render::read(&json).expect("what the comparisons wrote");
    for (name, text) in render::render(&runs).expect("all that the page refers to") {
        let is = fs::read_to_string(docs.join(&name)).unwrap_or_default();
        assert!(
            is == text,
            "docs/{name}: cargo run -p comparison -- render docs/benchmarks/*.json"
        );
    }
}

#[test]
fn the_guide_has_the_table_of_what_many_hosts_ask() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let runs = render::read(&[docs.join("benchmarks/scale.json")]).expect("what it wrote");
    let table = render::scale(&runs).expect("a table");
    let guide = fs::read_to_string(docs.join("GUIDE.md")).expect("the guide");
    assert!(guide.contains(&table), "docs/GUIDE.md has another table than this:\n{table}");
}

#[test]
fn the_page_is_short() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/BENCHMARKS.md");
    let words = fs::read_to_string(page).expect("the page").split_whitespace().count();
    assert!(words <= 3_000, "{words} words");
}
