//! The C headers, for tests that read them.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// What a header includes of ours, in its order.
fn includes(text: &str) -> Vec<&str> {
    let paths = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split_once('"'));
    paths.map(|(path, _)| path.trim_start_matches("paceline/").trim_end_matches(".h")).collect()
}

/// The topics: `pool` for `paceline/pool.h`. None comes before one that it includes.
pub fn topics() -> Vec<String> {
    includes(&read("paceline.h")).into_iter().map(str::to_owned).collect()
}

/// All headers as one, as `paceline.h` includes them: it compiles alone.
pub fn whole() -> String {
    let umbrella = read("paceline.h");
    let without = |text: String| {
        let lines = text.lines().filter(|line| !line.starts_with("#include \""));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let topics = topics().into_iter().map(|topic| without(read(&format!("paceline/{topic}.h"))));
    let topics: String = topics.collect();
    without(umbrella) + &topics
}

/// The header of a topic, and each that it includes, once.
pub fn with_includes(topic: &str) -> Vec<String> {
    let (mut open, mut found) = (vec![topic.to_owned()], Vec::new());
    let mut seen = open.clone();
    while let Some(topic) = open.pop() {
        let text = read(&format!("paceline/{topic}.h"));
        for other in includes(&text) {
            if !seen.iter().any(|one| one == other) {
                seen.push(other.to_owned());
                open.push(other.to_owned());
            }
        }
        found.push(text);
    }
    found
}
