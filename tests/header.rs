//! The committed headers are what `src/ffi` says.
#![cfg(all(feature = "capi", not(loom)))]

#[path = "common/header.rs"]
mod header;

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// What the headers hold, by their paths beneath a directory.
fn headers(directory: &Path) -> BTreeMap<String, String> {
    let listed = ["", "paceline/"].into_iter().flat_map(|folder| {
        let entries = fs::read_dir(directory.join(folder)).into_iter().flatten();
        entries.map(move |entry| {
            let name = entry.expect("it can be listed").file_name();
            format!("{folder}{}", name.to_str().expect("names are UTF-8"))
        })
    });
    let files = listed.filter(|name| name.ends_with(".h"));
    files
        .map(|name| {
            let text = fs::read_to_string(directory.join(&name)).expect("it can be read");
            (name, text)
        })
        .collect()
}

/// Goal: the headers in `include` are never older than the code. Method: the build script makes them anew;
/// byte for byte. `PACELINE_BLESS=1 cargo test --test header` takes the new ones over.
#[test]
fn the_headers_are_up_to_date() {
    let fresh = headers(&Path::new(env!("OUT_DIR")).join("include"));
    let place = Path::new(ROOT).join("include");
    if env::var_os("PACELINE_BLESS").is_some() {
        fs::create_dir_all(place.join("paceline")).expect("include can be written to");
        for old in headers(&place).keys() {
            fs::remove_file(place.join(old)).expect("include can be written to");
        }
        for (name, text) in &fresh {
            fs::write(place.join(name), text).expect("include can be written to");
        }
    }
    let committed = headers(&place);
    for name in fresh.keys().chain(committed.keys()) {
        let [old, new] = [&committed, &fresh].map(|all| all.get(name).map_or("", String::as_str));
        let first = old.lines().zip(new.lines()).position(|(old, new)| old != new);
        assert!(
            old == new,
            "include/{name} differs from src/ffi at line {}; renew it by\n\
             PACELINE_BLESS=1 cargo test --test header",
            first.map_or("(its end)".into(), |line| (line + 1).to_string())
        );
    }
}

/// Goal: whoever needs a pool, or less, is not given thousands of lines to read. Method: the bytes of a header and
/// of what it includes, comments and all.
#[test]
fn a_header_of_a_small_topic_is_small() {
    for (topic, most) in [("pool", 60_000), ("log", 30_000), ("queue", 20_000)] {
        let texts = header::C.reached(topic).into_iter().map(|topic| header::C.text(&topic));
        let size: usize = texts.map(|text| text.len()).sum();
        assert!(size > 10_000 && size <= most, "{topic}.h: {size} bytes of at most {most}");
    }
}
