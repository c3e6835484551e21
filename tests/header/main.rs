//! What is generated from `src/ffi` and committed is what `src/ffi` says: the headers of C, and what is made from
//! these for Python and C++, and for the test of layouts.
#![cfg(all(feature = "header", not(loom)))]

mod comments;
mod cpp;
#[path = "../common/header.rs"]
mod header;
mod layout;
mod model;
mod python;

use model::Model;
use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The headers beneath a directory, by their paths in it.
fn headers(directory: &Path) -> BTreeMap<String, String> {
    let listed = ["", "paceline/"].into_iter().flat_map(|folder| {
        let entries = fs::read_dir(directory.join(folder)).into_iter().flatten();
        entries.map(move |entry| {
            let name = entry.expect("it can be listed").file_name();
            format!("{folder}{}", name.to_str().expect("names are UTF-8"))
        })
    });
    let files = listed.filter(|name| name.ends_with(".h"));
    files.map(|name| (name.clone(), read(&directory.join(name)))).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The headers as the build script has made them of today's code.
fn fresh_headers() -> BTreeMap<String, String> {
    headers(&Path::new(env!("OUT_DIR")).join("include"))
}

/// The C interface as today's code has it.
fn fresh_model() -> Model {
    let headers = fresh_headers();
    let umbrella = &headers["paceline.h"];
    let included = umbrella.lines().filter_map(|line| line.strip_prefix("#include \"paceline/"));
    let topics = included.filter_map(|line| line.split_once(".h\"")).map(|(topic, _)| topic);
    Model::read(topics.map(|topic| &*headers[&format!("paceline/{topic}.h")]))
}

/// The files of `src/ffi`, by their names.
fn sources() -> BTreeMap<String, String> {
    let entries = fs::read_dir(Path::new(ROOT).join("src/ffi")).expect("it can be listed");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let named = paths.filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    let name = |path: &Path| path.file_stem().and_then(|name| name.to_str()).unwrap().to_owned();
    named.map(|path| (name(&path), read(&path))).collect()
}

/// Parts as lines of up to 100 characters, each of which begins alike.
fn wrapped(begin: &str, parts: impl Iterator<Item = String>) -> String {
    let (mut text, mut line) = (String::new(), String::new());
    for part in parts {
        if !line.is_empty() && line.chars().count() + 1 + part.chars().count() > 100 {
            text.extend([&line, "\n"]);
            line.clear();
        }
        line.extend([if line.is_empty() { begin } else { " " }, &part]);
    }
    text.extend([&line, "\n"]);
    text
}

fn is_blessed() -> bool {
    env::var_os("PACELINE_BLESS").is_some()
}

/// Fails if the two texts of a file differ.
fn compare(name: &str, committed: &str, fresh: &str) {
    let first = committed.lines().zip(fresh.lines()).position(|(old, new)| old != new);
    assert!(
        committed == fresh,
        "{name} differs from src/ffi at line {}; renew it by\nPACELINE_BLESS=1 cargo test --test header",
        first.map_or("(its end)".into(), |line| (line + 1).to_string())
    );
}

/// Goal: the headers in `include` are never older than the code. Method: the build script makes them anew;
/// byte for byte. `PACELINE_BLESS=1 cargo test --test header` takes the new ones over.
#[test]
fn the_headers_are_up_to_date() {
    let fresh = fresh_headers();
    let place = Path::new(ROOT).join("include");
    if is_blessed() {
        fs::create_dir_all(place.join("paceline")).expect("include can be written to");
        let old = headers(&place);
        for name in old.keys().filter(|name| !fresh.contains_key(*name)) {
            fs::remove_file(place.join(name)).expect("include can be written to");
        }
        // Only what has changed: other tests read them meanwhile.
        for (name, text) in fresh.iter().filter(|(name, text)| old.get(*name) != Some(text)) {
            fs::write(place.join(name), text).expect("include can be written to");
        }
    }
    let committed = headers(&place);
    for name in fresh.keys().chain(committed.keys()) {
        let [old, new] = [&committed, &fresh].map(|all| all.get(name).map_or("", String::as_str));
        compare(&format!("include/{name}"), old, new);
    }
}

/// Goal: what other languages know of the C interface is never older than the code, and written by nobody. Method:
/// it is made from the headers anew; byte for byte. Blessed as these.
#[test]
fn what_is_made_from_the_headers_is_up_to_date() {
    let model = fresh_model();
    let python = "bindings/python/src/paceline";
    for (name, fresh) in [
        (format!("{python}/_layout.py"), python::layout(&model)),
        (format!("{python}/_signatures.py"), python::signatures(&model)),
        ("bindings/cpp/paceline/enums.hpp".into(), cpp::enums(&model)),
        ("tests/c/layout.h".into(), layout::c(&model)),
        ("src/ffi/layout.rs".into(), layout::rust(&model, &sources())),
    ] {
        let path = Path::new(ROOT).join(&name);
        if is_blessed() {
            fs::write(&path, &fresh).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        compare(&name, &read(&path), &fresh);
    }
}

/// Goal: unions, which few structs have, are understood, named and anonymous ones. Method: a header of its own.
#[test]
fn unions_are_read_and_written() {
    let header = "typedef union pace_either_t { uint64_t number; const void *bytes; } pace_either_t;\n\
        typedef struct pace_one_t { uint32_t kind; pace_either_t either; union { double mean; struct { int32_t low; \
        int32_t high; } range; }; union { bool yes; } last[2]; } pace_one_t;";
    let layout = python::layout(&Model::read([header]));
    let (_, classes) = layout.split_once("import ctypes as c").expect("it imports ctypes");
    let (classes, _) =
        classes.split_once("\n\n\n#:").expect("the table comes after two empty lines");
    assert_eq!(classes.trim_start(), include_str!("unions.py").trim_end());
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
