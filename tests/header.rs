//! The committed header is what `src/ffi` says.
#![cfg(all(feature = "capi", not(loom)))]

use std::path::Path;
use std::{env, fs};

/// Goal: the header in `include` is never older than the code. Method: the build script makes one;
/// byte for byte. `PACELINE_BLESS=1 cargo test --test header` takes the new one over.
#[test]
fn the_header_is_up_to_date() {
    let fresh = include_str!(concat!(env!("OUT_DIR"), "/paceline.h"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/paceline.h");
    if env::var_os("PACELINE_BLESS").is_some() {
        fs::write(&path, fresh).expect("include can be written to");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let first = committed.lines().zip(fresh.lines()).position(|(old, new)| old != new);
    assert!(
        committed == fresh,
        "include/paceline.h differs from src/ffi at line {}; renew it by\n\
         PACELINE_BLESS=1 cargo test --test header",
        first.map_or("(its end)".into(), |line| (line + 1).to_string())
    );
}
