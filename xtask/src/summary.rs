//! All tests, and at the end what has failed of them.
//!
//! `cargo test --no-fail-fast` runs the binaries of all tests, but what it prints last are the binaries that failed, and
//! the names of the tests stand far above. So its output is passed on, and read: cargo says which binary runs, and a
//! binary ends with the names of its failures and a line that counts.

use std::io::{self, BufRead, BufReader, Write, pipe};
use std::path::Path;
use std::process::Command;

/// Runs the tests of the package or workspace at `root`, with `arguments` of `cargo test`, and passes on to `out` what they
/// print. Whether all went well.
pub fn run_tests(root: &Path, arguments: &[String], out: &mut impl Write) -> io::Result<bool> {
    // One for both streams, so that lines come in the order in which they were written.
    let (reader, writer) = pipe()?;
    let mut child = {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        super::forget_xtask(&mut cargo);
        cargo.current_dir(root).args(["test", "--no-fail-fast"]).args(arguments);
        // The command has ends of the pipe, which would keep the reader waiting.
        cargo.stdout(writer.try_clone()?).stderr(writer).spawn()?
    };
    let (mut reader, mut line) = (BufReader::new(reader), Vec::new());
    let mut summary = Summary::default();
    while reader.read_until(b'\n', &mut line)? > 0 {
        out.write_all(&line)?;
        summary.read(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    let went_well = child.wait()?.success();
    writeln!(out, "\n{}", summary.end(went_well))?;
    Ok(went_well)
}

/// What has been read so far.
#[derive(Default)]
struct Summary {
    passed: u64,
    /// Left out, as they take long.
    ignored: u64,
    /// A line each: binary and test.
    failed: Vec<String>,
    /// What tests say that do not run for want of a tool.
    skipped: Vec<String>,
    binary: Option<Binary>,
}

/// What the binary that runs has said so far. What tests print may look the same, so the last counts.
#[derive(Default)]
struct Binary {
    name: String,
    passed: Option<u64>,
    failed: Vec<String>,
    /// Whether the lines are names of failures.
    lists: bool,
    /// How it has ended without ending its tests.
    death: Option<String>,
}

impl Summary {
    fn read(&mut self, line: &str) {
        if let Some(name) = binary_of(line) {
            self.close();
            self.binary = Some(Binary { name, ..Binary::default() });
            return;
        }
        // With one thread, the name of the test stands before.
        let said = line.split_once(" ... ").map_or(line, |(_, said)| said);
        if said.starts_with("skipped: ") && !self.skipped.iter().any(|known| known == said) {
            self.skipped.push(said.to_owned());
        }
        let Some(binary) = &mut self.binary else { return };
        if line == "failures:" {
            (binary.lists, binary.failed) = (true, Vec::new());
        } else if binary.lists
            && let Some(name) = line.strip_prefix("    ")
        {
            binary.failed.push(name.to_owned());
        } else if let Some((_, counts)) = line.split_once("test result: ") {
            let (passed, failed) = (count(counts, " passed"), count(counts, " failed"));
            binary.passed = passed;
            self.ignored += count(counts, " ignored").unwrap_or(0);
            if failed == Some(0) {
                binary.failed.clear();
            }
            binary.lists = false;
        } else {
            // A list begins in the line below its title; the output of the failures has an empty one there.
            binary.lists = false;
            if line.starts_with("HANG: ") {
                binary.death = Some(line.to_owned());
            } else if line.contains("process didn't exit successfully: ")
                && let Some((_, how)) = line.rsplit_once(" (signal: ")
            {
                let how = how.trim_end_matches(')');
                binary.death.get_or_insert_with(|| format!("ended by signal {how}"));
            }
        }
    }

    /// The binary that ran has ended.
    fn close(&mut self) {
        let Some(binary) = self.binary.take() else { return };
        let name = &binary.name;
        self.passed += binary.passed.unwrap_or(0);
        self.failed.extend(binary.failed.iter().map(|test| format!("{name}: {test}")));
        let unknown = || (binary.passed.is_none()).then(|| "ended before its tests".to_owned());
        if let Some(how) = binary.death.clone().or_else(unknown) {
            self.failed.push(format!("{name}: {how}"));
        }
    }

    fn end(mut self, went_well: bool) -> String {
        self.close();
        let Self { passed, ignored, failed, mut skipped, .. } = self;
        if ignored > 0 {
            skipped.push(format!("{ignored} that take long were left out: cargo xtask test all"));
        }
        if went_well {
            let but = if skipped.is_empty() { "" } else { ", without what was skipped" };
            skipped.push(format!("all {passed} passed{but}"));
            return skipped.join("\n");
        }
        skipped.push(match failed.len() {
            0 => "cargo test has failed, and no test has: see above".to_owned(),
            many => format!("{passed} passed, {many} failed:\n{}", failed.join("\n")),
        });
        skipped.join("\n")
    }
}

/// The binary that cargo says it begins to run: its file without the hash, or the package whose documentation it is.
fn binary_of(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(package) = line.strip_prefix("Doc-tests ") {
        return Some(format!("documentation of {package}"));
    }
    let (_, path) = line.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once(" (")?;
    let (name, _hash) = path.rsplit('/').next()?.rsplit_once('-')?;
    Some(name.to_owned())
}

/// The number before a word: 14 in `ok. 14 passed; 0 failed`.
fn count(counts: &str, word: &str) -> Option<u64> {
    counts.split_once(word)?.0.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// What is printed last when the tests of a package of these files have run, and whether all went well.
    fn last_of(name: &str, files: &[(&str, &str)]) -> (String, bool) {
        let place = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        let manifest = "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n";
        for (path, text) in [("Cargo.toml", manifest)].iter().chain(files) {
            let path = place.join(path);
            fs::create_dir_all(path.parent().expect("it is below")).expect("a directory");
            fs::write(path, text).expect("a file of our own");
        }
        let target = place.join("target").display().to_string();
        let mut out = Vec::new();
        let went_well =
            run_tests(&place, &["--target-dir".into(), target], &mut out).expect("cargo runs");
        fs::remove_dir_all(place).expect("it is ours");
        let out = String::from_utf8(out).expect("cargo prints UTF-8");
        let (_, last) = out.rsplit_once("\n\n").expect("the end stands alone");
        (last.to_owned(), went_well)
    }

    const PASSES: &str = "#[test] fn one() {}\n#[test] fn two() {}\n";
    /// What it prints is what a binary prints, as of a test that runs another one.
    const FAILS: &str = "#[test] fn good() {}\nmod inner {\n#[test] fn bad() {\n\
        println!(\"failures:\\n    not_me\\n\\ntest result: FAILED. 100 passed; 1 failed;\");\npanic!() } }\n";
    const DIES: &str = "#[test] fn dies() { std::process::abort() }\n";
    const SKIPS: &str = "#[test] fn skips() { use std::io::Write;\n\
        std::io::stderr().write_all(b\"skipped: skips: there is no moon\\n\").unwrap() }\n";
    const SHOWN: &str = "/// ```\n/// assert!(false);\n/// ```\npub fn shown() {}\n";

    #[test]
    fn all_that_fails_is_named_at_the_end() {
        let files = [
            ("src/lib.rs", SHOWN),
            ("tests/a_fails.rs", FAILS),
            ("tests/b_dies.rs", DIES),
            ("tests/c_passes.rs", PASSES),
            ("tests/d_skips.rs", SKIPS),
        ];
        let expected = "skipped: skips: there is no moon\n4 passed, 3 failed:\na_fails: inner::bad\n\
            b_dies: ended by signal 6, SIGABRT: process abort signal\n\
            documentation of small: src/lib.rs - shown (line 1)\n";
        assert_eq!(last_of("fails", &files), (expected.to_owned(), false));
    }

    #[test]
    fn that_all_have_passed_is_said() {
        let files = [("src/lib.rs", PASSES), ("tests/other.rs", PASSES)];
        assert_eq!(last_of("passes", &files), ("all 4 passed\n".to_owned(), true));
        let files = [("src/lib.rs", PASSES), ("tests/skips.rs", SKIPS)];
        let expected = "skipped: skips: there is no moon\nall 3 passed, without what was skipped\n";
        assert_eq!(last_of("skips", &files), (expected.to_owned(), true));
    }

    #[test]
    fn what_does_not_compile_is_no_test() {
        let expected = "cargo test has failed, and no test has: see above\n";
        assert_eq!(last_of("broken", &[("src/lib.rs", "nonsense")]), (expected.to_owned(), false));
    }

    /// A binary that was ended says which of its tests hangs.
    #[test]
    fn a_test_that_hangs_is_named() {
        let mut summary = Summary::default();
        let said = [
            "     Running tests/hub/main.rs (target/debug/deps/hub-0123)",
            "test one ... ok",
            "HANG: two has not ended after 300s",
            "  process didn't exit successfully: `/deps/hub-0123` (signal: 6, SIGABRT: process abort signal)",
        ];
        said.iter().for_each(|line| summary.read(line));
        let expected = "0 passed, 1 failed:\nhub: HANG: two has not ended after 300s";
        assert_eq!(summary.end(false), expected);
    }
}
