//! Names that documents and comments say are names of something: functions and constants of the header, and paths
//! of the crate's first page. What was renamed, or never was, is found here.
#![cfg(all(not(loom), feature = "capi"))]

#[path = "common/header.rs"]
mod header;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// All files with such an ending beneath a directory.
fn files(directory: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(ROOT).join(directory)];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("it can be listed") {
            let path = entry.expect("it can be listed").path();
            match path.is_dir() {
                true => open.push(path),
                false if path.to_string_lossy().ends_with(ending) => found.push(path),
                false => (),
            }
        }
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|word| !word.is_empty())
}

/// The header without its comments.
fn declared(header: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for (index, part) in header.split("/*").enumerate() {
        let code = if index == 0 { part } else { part.split_once("*/").expect("it ends").1 };
        names.extend(words(code));
    }
    names
}

/// What pace_status_name() says about a number that is no status.
const NO_STATUS: &str = "PACE_UNKNOWN";

/// A name that ends with an underscore stands for all that begin so.
#[test]
fn every_name_of_the_header_that_is_said_exists() {
    let header = header::C.whole();
    let known = declared(&header);
    let exists = |word: &str| match word.ends_with('_') {
        true => known.range(word..).next().is_some_and(|next| next.starts_with(word)),
        false => known.contains(word) || word == NO_STATUS,
    };
    let mut places = vec![Path::new(ROOT).join("README.md")];
    places.extend(files("include", ".h"));
    places.extend(files("docs", ".md"));
    places.extend(files("src", ".rs").into_iter().chain(files("src", ".h")));
    places.extend(files("examples", ".c").into_iter().chain(files("examples", ".cpp")));
    for ending in [".md", ".hpp", ".cpp", ".py"] {
        places.extend(files("bindings", ending));
    }
    let (mut unknown, mut count) = (Vec::new(), 0);
    for place in places {
        let text = fs::read_to_string(&place).expect("it can be read");
        for (index, line) in text.lines().enumerate() {
            // In Rust only comments: code has names of its own, and the compiler.
            let said = match place.extension().is_some_and(|ending| ending == "rs") {
                true => line.find("//").map_or("", |at| &line[at..]),
                false => line,
            };
            for word in
                words(said).filter(|word| word.starts_with("pace_") || word.starts_with("PACE_"))
            {
                count += 1;
                if !exists(word) {
                    unknown.push(format!("{}:{}: {word}", place.display(), index + 1));
                }
            }
        }
    }
    assert!(count > 5000 && unknown.is_empty(), "of {count}:\n{}", unknown.join("\n"));
}

/// Method: of `http::Http`, said in backquotes in a comment of the crate or in a document, each part must stand
/// in a line of src/http that makes something public.
#[test]
fn every_path_of_the_crate_that_is_said_exists() {
    let rooms = [
        "admin", "http", "hub", "log", "metrics", "net", "pool", "queue", "source", "task", "time",
    ];
    let public = rooms.map(|room| {
        let code = files(&format!("src/{room}"), ".rs");
        let code = code.iter().map(|file| fs::read_to_string(file).expect("it can be read"));
        let lines: Vec<_> = code.collect();
        let lines = lines.iter().flat_map(|text| text.lines());
        // Lists of what is exported go on in lines of their own.
        let lines = lines.filter(|line| {
            line.contains("pub ") || line.starts_with("    ") && line.ends_with(',')
        });
        lines.flat_map(words).map(str::to_owned).collect::<BTreeSet<_>>()
    });
    let mut places = vec![Path::new(ROOT).join("README.md")];
    places.extend(files("docs", ".md"));
    places.extend(files("src", ".rs"));
    let (mut unknown, mut count) = (Vec::new(), 0);
    for place in places {
        let is_code = place.extension().is_some_and(|ending| ending == "rs");
        let text = fs::read_to_string(&place).expect("it can be read");
        for (index, line) in text.lines().enumerate() {
            if is_code && !line.trim_start().starts_with("//") {
                continue;
            }
            for said in line.split('`').skip(1).step_by(2) {
                let said = said.strip_prefix("paceline::").unwrap_or(said);
                let mut parts = said.trim_end_matches("()").split("::");
                let room = rooms.iter().position(|room| parts.clone().next() == Some(room));
                let Some(room) =
                    room.filter(|_| said.chars().all(|c| is_word(c) || ":()".contains(c)))
                else {
                    continue;
                };
                count += 1;
                if !parts.by_ref().skip(1).all(|part| public[room].contains(part)) {
                    unknown.push(format!("{}:{}: {said}", place.display(), index + 1));
                }
            }
        }
    }
    assert!(count > 20 && unknown.is_empty(), "of {count}:\n{}", unknown.join("\n"));
}

/// Whether a name stands in a text as a whole word, with one of these before it.
fn stands(text: &str, name: &str, before: &[&str]) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (head, tail) = (&text[..at], &text[at + name.len()..]);
        !tail.starts_with(is_word) && before.iter().any(|word| head.ends_with(word))
    })
}

/// Goal: docs/FEATURES.md names what there is. Method: of each row that has five cells each name in backquotes must be
/// declared in the language of its column, part by part. A cell without a name must say that there is none.
#[test]
fn every_name_in_the_table_of_features_exists() {
    let read = |directory, ending| {
        let files = files(directory, ending).into_iter();
        files.map(|file| fs::read_to_string(file).expect("it can be read")).collect::<String>()
    };
    let rust = read("src", ".rs");
    let (c, cpp) = (read("include", ".h"), read("bindings/cpp/paceline", ".hpp"));
    let python = read("bindings/python/src", ".py");
    let (c, cpp) = (declared(&c), declared(&cpp));
    let (rust_words, python_words) = (
        ["fn ", "struct ", "enum ", "trait ", "mod ", "type "],
        ["def ", "class ", "\n    ", "\n        "],
    );
    let is_declared = |column: usize, part: &str| match column {
        1 => rust_words.iter().any(|word| stands(&rust, part, &[&format!("pub {word}")])),
        2 => c.contains(part),
        3 => cpp.contains(part),
        _ => stands(&python, part, &python_words),
    };
    let (mut wrong, mut count) = (Vec::new(), 0);
    for line in include_str!("../docs/FEATURES.md").lines() {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let is_row = cells.len() == 5 && cells[0] != "feature" && !cells[0].starts_with("---");
        for (column, cell) in cells.iter().enumerate().skip(1).filter(|_| is_row) {
            let names: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
            if names.is_empty() && !cell.starts_with("no") {
                wrong.push(format!("{}: neither a name nor a no: {cell}", cells[0]));
            }
            for name in names {
                count += 1;
                let mut parts = name.split([':', '.']).filter(|part| !part.is_empty());
                if !parts.all(|part| is_declared(column, part)) {
                    wrong.push(format!("{}: {name}", cells[0]));
                }
            }
        }
    }
    assert!(count > 300 && wrong.is_empty(), "of {count}:\n{}", wrong.join("\n"));
}

/// The anchor that a forge makes of a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    heading
        .chars()
        .filter(|&c| is_word(c) || c == '-' || c == ' ')
        .collect::<String>()
        .replace(' ', "-")
}

/// Goal: what a reader clicks on is there. Method: the links in Markdown that name no other host, with the headings of
/// the documents that they lead to.
#[test]
fn every_link_of_a_document_leads_somewhere() {
    let mut places = vec![Path::new(ROOT).join("README.md")];
    let others = ["docs", "bindings", "examples"];
    places.extend(others.into_iter().flat_map(|folder| files(folder, ".md")));
    let (mut broken, mut count) = (Vec::new(), 0);
    for place in places {
        let text = fs::read_to_string(&place).expect("it can be read");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            // With a blank it is no link, but a closure in C++.
            if link.contains("://") || link.contains(' ') {
                continue;
            }
            count += 1;
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => place.clone(),
                path => place.parent().expect("it is in a directory").join(path),
            };
            let has = |text: String| {
                text.lines().any(|line| line.starts_with('#') && anchor(line) == fragment)
            };
            let leads = match fragment {
                "" => target.exists(),
                _ => fs::read_to_string(&target).is_ok_and(has),
            };
            if !leads {
                broken.push(format!("{}: {link}", place.display()));
            }
        }
    }
    assert!(count > 50 && broken.is_empty(), "of {count}:\n{}", broken.join("\n"));
}
