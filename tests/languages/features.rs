//! The programs in examples/features: one for each row of docs/EXAMPLES.md in C, C++ and Python, and the page itself.
//!
//! A line `feature: pool/timers` in the head of a program says which row it shows; the name of a program in
//! examples/features is that of its row. Other examples have such lines, too, one for each row. In the head of a program
//! of examples/features stands what it prints, too: the lines below `prints:` that are indented deeper.
//!
//! PACELINE_BLESS=1 cargo test --test languages features    writes the page anew.

use super::programs::{Broker, built, printed_beside, printed_by_python_beside, scratch};
use super::source;
use rows::{AREAS, HOLES};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "rows.rs"]
mod rows;

const PAGE: &str = "docs/EXAMPLES.md";
/// The languages, as the page names them, and how files in them end.
const LANGUAGES: [(&str, &str); 3] = [("C", "c"), ("C++", "cpp"), ("Python", "py")];
/// A program says which features it shows, and what it prints, within this number of lines from its first.
const HEAD: usize = 40;

/// All examples in these languages, as paths in the repository.
fn examples() -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![source("examples")]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("it can be listed") {
            let path = entry.expect("it can be listed").path();
            match path.extension().and_then(|ending| ending.to_str()) {
                None if path.is_dir() => open.push(path),
                Some(ending) if LANGUAGES.iter().any(|language| language.1 == ending) => {
                    found.push(path.strip_prefix(source("")).expect("it is in here").to_owned());
                }
                _ => (),
            }
        }
    }
    found.sort();
    found
}

fn ending(path: &Path) -> &str {
    path.extension().and_then(|ending| ending.to_str()).expect("it is in a language")
}

/// The rows that a program shows.
fn features(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(source(path.to_str().expect("it is in UTF-8")));
    let text = text.expect("an example");
    let lines = text.lines().take(HEAD).map(|line| line.trim_start_matches([' ', '*', '/', '#']));
    lines.filter_map(|line| line.strip_prefix("feature: ").map(str::to_owned)).collect()
}

/// What a program says in its head that it prints: the lines below `prints:` that are indented deeper, without the
/// indentation of the first of them.
fn promised(path: &Path) -> Option<String> {
    let text = fs::read_to_string(source(path.to_str().expect("it is in UTF-8")));
    let text = text.expect("an example");
    let comment = match ending(path) {
        "c" => "*",
        "cpp" => "//",
        _ => "",
    };
    let depth = |line: &str| line.len() - line.trim_start().len();
    let strip = |line| match comment {
        "" => line,
        _ => str::trim_start(line).strip_prefix(comment).unwrap_or_default(),
    };
    let mut lines = text.lines().take(HEAD).map(strip).skip_while(|line| line.trim() != "prints:");
    let outer = depth(lines.next()?);
    let lines = lines.take_while(|line| depth(line) > outer).collect::<Vec<_>>();
    let inner = depth(lines.first()?);
    Some(lines.iter().map(|line| format!("{}\n", line.get(inner..).unwrap_or_default())).collect())
}

/// Asserts that a program has printed what its head says, or that it has no broker.
fn compare(path: &Path, broker: Option<&Broker>, printed: &str) {
    let promised = promised(path);
    let promised = promised.unwrap_or_else(|| panic!("{}: no lines `prints:`", path.display()));
    if broker.is_some() || !printed.starts_with("There is no NATS_URL") {
        assert_eq!(printed, promised, "{} prints the first", path.display());
    }
}

/// The programs of examples/features in a language.
fn programs(language: &str) -> Vec<PathBuf> {
    let all = examples().into_iter();
    all.filter(|path| path.starts_with("examples/features") && ending(path) == language).collect()
}

/// "pool/timers" of examples/features/pool/timers.c.
fn row_of(path: &Path) -> String {
    let name = path.with_extension("");
    let name = name.strip_prefix("examples/features").expect("it is there");
    name.to_str().expect("it is in UTF-8").to_owned()
}

/// Goal: a program of examples/features can be copied out as it is.
#[test]
fn programs_include_public_headers_only() {
    for path in programs("c").into_iter().chain(programs("cpp")) {
        let text = fs::read_to_string(source(path.to_str().expect("it is in UTF-8")));
        let text = text.expect("an example");
        let private = text.lines().find(|line| line.starts_with("#include \""));
        assert_eq!(private, None, "{}", path.display());
    }
}

/// Goal: each row has a program in each language, or a reason why there is none, and nothing is said of rows that are not
/// there. Method: the heads of all examples against the rows.
#[test]
fn no_row_has_a_hole_without_a_reason() {
    let known: BTreeSet<&str> = AREAS.iter().flat_map(|area| area.rows).map(|row| row.0).collect();
    let mut shown: BTreeSet<(String, String)> = BTreeSet::new();
    let mut wrong = Vec::new();
    for path in examples() {
        let features = features(&path);
        for feature in &features {
            if !known.contains(feature.as_str()) {
                wrong.push(format!("{}: there is no row {feature}", path.display()));
            }
            shown.insert((feature.clone(), ending(&path).to_owned()));
        }
        if path.starts_with("examples/features") && features != [row_of(&path)] {
            wrong.push(format!("{}: its head does not say its name", path.display()));
        }
    }
    for (row, (name, language)) in
        known.iter().flat_map(|row| LANGUAGES.map(|language| (row, language)))
    {
        let is_shown = shown.contains(&(row.to_string(), language.to_owned()));
        match (is_shown, reason(row, name)) {
            (false, None) => wrong.push(format!("{row}: no program in {name}, and no reason")),
            (true, Some(_)) => wrong.push(format!("{row}: a program in {name}, and a reason")),
            _ => (),
        }
    }
    for (row, language, _) in HOLES {
        if !known.contains(row) || !LANGUAGES.iter().any(|known| known.0 == *language) {
            wrong.push(format!("a reason for {row} in {language}, which is not there"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Why there is no program of a row in a language.
fn reason(row: &str, language: &str) -> Option<&'static str> {
    HOLES.iter().find(|hole| hole.0 == row && hole.1 == language).map(|hole| hole.2)
}

fn page() -> String {
    let mut programs: BTreeMap<(String, String), Vec<PathBuf>> = BTreeMap::new();
    for path in examples() {
        for feature in features(&path) {
            programs.entry((feature, ending(&path).to_owned())).or_default().push(path.clone());
        }
    }
    let mut page = include_str!("examples_head.md").to_owned();
    for area in AREAS {
        let _ = write!(
            page,
            "\n## {}\n\n| feature | C | C++ | Python |\n|---|---|---|---|\n",
            area.name
        );
        for (row, says) in area.rows {
            let _ = write!(page, "| {says} |");
            for (language, ending) in LANGUAGES {
                let paths = programs.get(&(row.to_string(), ending.to_owned()));
                let links = paths.into_iter().flatten().map(|path| {
                    let name = path.file_name().expect("a file").to_string_lossy();
                    format!("[{name}](../{})", path.display())
                });
                let cell = match reason(row, language) {
                    Some(reason) => format!("no: {reason}"),
                    None => links.collect::<Vec<_>>().join(", "),
                };
                let _ = write!(page, " {cell} |");
            }
            page.push('\n');
        }
    }
    page
}

#[test]
fn the_page_is_what_the_programs_say() {
    let made = page();
    if env::var_os("PACELINE_BLESS").is_some() {
        return fs::write(source(PAGE), made).expect("the page can be written");
    }
    let found = fs::read_to_string(source(PAGE)).expect("the page is there");
    assert!(
        found == made,
        "{PAGE} is out of date: PACELINE_BLESS=1 cargo test --test languages features"
    );
}

#[test]
fn programs_in_c() {
    let broker = Broker::start();
    for path in programs("c") {
        let Some(program) = built(&path) else { return };
        let printed = printed_beside(broker.as_ref(), &program, &[]);
        compare(&path, broker.as_ref(), &printed);
    }
}

/// All of an area are one translation unit, for the time that the headers take: each is in a namespace of its own, below
/// what all of them include.
#[test]
fn programs_in_cpp() {
    let broker = Broker::start();
    let mut areas: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in programs("cpp") {
        let row = row_of(&path);
        let area = row.split('/').next().expect("a row has an area");
        areas.entry(area.to_owned()).or_default().push(path);
    }
    for (area, paths) in areas {
        let unit = scratch(&format!("features-{area}.cpp"));
        fs::write(&unit, one_unit(&paths)).expect("the scratch directory can be written to");
        let Some(program) = built(&unit) else { return };
        for path in paths {
            let printed = printed_beside(broker.as_ref(), &program, &[&row_of(&path)]);
            compare(&path, broker.as_ref(), &printed);
        }
    }
}

fn one_unit(paths: &[PathBuf]) -> String {
    let (mut includes, mut bodies, mut calls) = (BTreeSet::new(), String::new(), String::new());
    for path in paths {
        let path = source(path.to_str().expect("it is in UTF-8"));
        let text = fs::read_to_string(&path).expect("an example");
        includes
            .extend(text.lines().filter(|line| line.starts_with("#include <")).map(str::to_owned));
        let row = row_of(path.strip_prefix(source("")).expect("it is in here"));
        let space = row.replace(['/', '-'], "_");
        let _ = writeln!(bodies, "namespace {space} {{\n#include \"{}\"\n}}", path.display());
        let _ = writeln!(calls, "if (row == \"{row}\") return {space}::main();");
    }
    includes.insert("#include <string_view>".to_owned());
    let includes = includes.into_iter().collect::<Vec<_>>().join("\n");
    format!(
        "{includes}\n{bodies}\nint main(int, char **arguments) {{\nconst std::string_view row = arguments[1];\n{calls}return 127;\n}}\n"
    )
}

#[test]
fn programs_in_python() {
    let broker = Broker::start();
    for path in programs("py") {
        let file = source(path.to_str().expect("it is in UTF-8"));
        let Some(printed) = printed_by_python_beside(broker.as_ref(), &file) else { return };
        compare(&path, broker.as_ref(), &printed);
    }
}
