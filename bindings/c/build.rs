//! How the shared library is linked, and that it is the one that was asked for.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // What has been loaded into a process stays there: threads of the pool may be in it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // The libraries have the same names whatever their features are, so one build takes the place of another, and cargo
    // takes it for what it has built itself. Who finds the features of another here links anew.
    let stamp = directory_of_libraries().join("libpaceline.features");
    println!("cargo::rerun-if-changed={}", stamp.display());
    let features = env::var("CARGO_CFG_FEATURE").unwrap_or_default();
    if fs::read_to_string(&stamp).ok().as_deref() != Some(&features) {
        fs::write(&stamp, features).expect("the target directory can be written to");
    }
}

/// `OUT_DIR` is in `build/paceline-c-…/out` below it.
fn directory_of_libraries() -> PathBuf {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    out.ancestors().nth(3).map(Path::to_owned).expect("it is deep below")
}
