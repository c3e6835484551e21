//! docs/coming-from.md: each program in it prints what the page shows. Those in Rust are doc tests of the crate.

use super::programs::{built, printed, printed_by_python, scratch};
use std::fs;

/// The programs in a language, with what they print.
fn programs(page: &'static str, language: &str) -> Vec<(&'static str, &'static str)> {
    let begins = format!("```{language}\n");
    let parts = page.split(begins.as_str()).skip(1);
    parts
        .map(|part| {
            let (program, rest) = part.split_once("```\n").expect("a block ends");
            let shown = rest.strip_prefix("\n```text\n").expect("what it prints is below");
            (program, shown.split_once("```").expect("a block ends").0)
        })
        .collect()
}

fn each_prints_what_is_shown(language: &str, ending: &str, at_least: usize) {
    let found = programs(include_str!("../../docs/coming-from.md"), language);
    assert!(found.len() >= at_least, "{} programs in {language}", found.len());
    for (number, (program, shown)) in found.into_iter().enumerate() {
        let unit = scratch(&format!("coming-from-{number}.{ending}"));
        fs::write(&unit, program).expect("the scratch directory can be written to");
        let said = match ending {
            "py" => printed_by_python(&unit),
            _ => built(&unit).map(|program| printed(&program, &[])),
        };
        assert!(said.as_deref().is_none_or(|said| said == shown), "{program}\nprints\n{said:?}");
    }
}

#[test]
fn programs_in_c() {
    each_prints_what_is_shown("c", "c", 1);
}

#[test]
fn programs_in_cpp() {
    each_prints_what_is_shown("cpp", "cpp", 2);
}

#[test]
fn programs_in_python() {
    each_prints_what_is_shown("python", "py", 3);
}
