//! The headers of C and C++, for tests that read them.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A header `paceline` that includes one for each topic, which lies in a folder `paceline` beside it.
pub struct Headers {
    folder: &'static str,
    ending: &'static str,
}

pub const C: Headers = Headers { folder: "include", ending: ".h" };
pub const CPP: Headers = Headers { folder: "bindings/cpp", ending: ".hpp" };

impl Headers {
    fn read(&self, name: &str) -> String {
        let path = format!("{}/{}/{name}{}", env!("CARGO_MANIFEST_DIR"), self.folder, self.ending);
        fs::read_to_string(Path::new(&path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// What a text includes of the same kind, in its order.
    fn included(&self, text: &str) -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("#include \""));
        let names = lines.filter_map(|line| line.split_once(self.ending)).map(|(name, _)| name);
        names.map(|name| name.trim_start_matches("paceline/").to_owned()).collect()
    }

    /// `pool` for `paceline/pool.h`. None comes before one that it includes.
    pub fn topics(&self) -> Vec<String> {
        self.included(&self.read("paceline"))
    }

    /// The text of a topic's header.
    pub fn text(&self, topic: &str) -> String {
        self.read(&format!("paceline/{topic}"))
    }

    /// All headers as one, as the umbrella includes them: it compiles alone.
    pub fn whole(&self) -> String {
        let topics = self.topics().into_iter().map(|topic| self.text(&topic));
        let texts: String = [self.read("paceline")].into_iter().chain(topics).collect();
        let lines = texts.lines().filter(|line| !line.starts_with("#include \""));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// A topic, and those that its header includes.
    pub fn reached(&self, topic: &str) -> BTreeSet<String> {
        let included = self.included(&self.text(topic)).into_iter();
        let others = included.flat_map(|other| self.reached(&other));
        others.chain([topic.to_owned()]).collect()
    }
}
