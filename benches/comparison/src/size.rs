//! `comparison size`: the shared library for other languages as it is shipped, with each feature by itself and with all.
//! It builds the library that often, which takes some minutes each.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::options::Plan;
use crate::report::{self, Column, Results};

const SCENARIO: &str = "library";
/// Features of `bindings/c`.
const PEERS: [&str; 6] = ["core", "archive", "nats", "systemd", "webhook", "full"];
const SIZE: &str = "MB";

pub fn run(plan: &Plan, results: &mut Results) -> Result<(), String> {
    if plan.list {
        println!("scenarios: {SCENARIO}\npeers: {}", PEERS.join(", "));
        return Ok(());
    }
    if plan.quick {
        eprintln!("size is left out: it has nothing that is quick");
        return Ok(());
    }
    let peers = plan.peers(&PEERS)?;
    for peer in &peers {
        eprintln!("{peer}");
        results.add(SCENARIO, peer, SIZE, size(peer)? as f64 / 1e6);
    }
    let what = "the shared library, as it is shipped, with these features of bindings/c";
    results.print(SCENARIO, what, &peers, &[Column { metric: SIZE, decimals: 2 }]);
    report::outcome(0)
}

fn size(feature: &str) -> Result<u64, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "paceline-c", "--profile", "shipped"]);
    build.args(["--no-default-features", "--features", feature]);
    let built = build.current_dir(&root).status().map_err(|error| format!("cargo: {error}"))?;
    if !built.success() {
        return Err(format!("the library with {feature} could not be built"));
    }
    let target = env::var("CARGO_TARGET_DIR").map_or_else(|_| root.join("target"), Into::into);
    let file = target.join("shipped/libpaceline.so");
    let metadata = fs::metadata(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(metadata.len())
}
