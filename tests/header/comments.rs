//! What an editor shows of a public item when a reader points at it says more than its name does.

use crate::model::{Item, Kind};
use crate::{ROOT, fresh_model, read};
use std::fs;
use std::path::Path;

/// A comment says at least as many words.
const FEWEST: usize = 5;

/// What is going to be replaced: beginnings of names of C.
#[rustfmt::skip]
const REPLACED: &[&str] = &[
    "PACE_LOG_", "pace_log_", "PACE_EVENT_", "pace_event_t",
    "pace_query_t", "pace_history_stats_t", "pace_replay_",
];

fn is_short(comment: &str) -> bool {
    let words = comment.split_whitespace();
    words.filter(|word| word.contains(char::is_alphanumeric)).count() < FEWEST
}

/// All names of a declaration that have a comment, and this.
fn comments(item: &Item) -> Vec<(String, &str)> {
    let mut found = vec![(item.name.clone(), &*item.doc)];
    if let Kind::Record(record) = &item.kind {
        let fields = record.fields.iter();
        found.extend(fields.map(|field| (format!("{}.{}", item.name, field.name), &*field.doc)));
    }
    found
}

/// Goal: each comment of the C headers can be read alone. Method: none has fewer than five words, and nothing public
/// is without one.
#[test]
fn comments_of_c_are_sentences() {
    let model = fresh_model();
    let comments: Vec<_> = model.items.iter().flat_map(comments).collect();
    assert!(comments.len() > 1500, "{} comments", comments.len());
    let is_replaced = |name: &str| REPLACED.iter().any(|begin| name.starts_with(begin));
    let short: Vec<_> = comments
        .iter()
        .filter(|(name, comment)| is_short(comment) && !is_replaced(name))
        .map(|(name, comment)| format!("{name}: {comment}"))
        .collect();
    assert!(short.is_empty(), "{} of {}:\n{}", short.len(), comments.len(), short.join("\n"));
}

/// Goal: the same for the C++ headers, whose enumerations have C's comments. Method: each run of lines that begin with
/// three slashes.
#[test]
fn comments_of_cpp_are_sentences() {
    let folder = Path::new(ROOT).join("bindings/cpp/paceline");
    let entries = fs::read_dir(&folder).expect("it can be listed");
    let (mut short, mut count) = (Vec::new(), 0);
    for path in entries.map(|entry| entry.expect("it can be listed").path()) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("names are UTF-8");
        if name == "enums.hpp" {
            continue;
        }
        let mut comment = String::new();
        for line in read(&path).lines().map(str::trim) {
            if let Some(more) = line.strip_prefix("///") {
                comment += more;
            } else if !comment.is_empty() {
                count += 1;
                if is_short(&comment) {
                    short.push(format!("{name}:{comment}: {line}"));
                }
                comment.clear();
            }
        }
    }
    assert!(count > 700 && short.is_empty(), "{} of {count}:\n{}", short.len(), short.join("\n"));
}
