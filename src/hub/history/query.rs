//! Which records are asked for.

use crate::hub::history::record::nanos;
use crate::hub::keys::key::{is_reserved, matches};
use crate::hub::message::Stored;
use core::ops::RangeInclusive;
use std::time::SystemTime;

/// Which records of a history are asked for: by key, sequence and time, each range with its ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Query {
    /// As it was given: whoever takes a query looks at it.
    pub(super) pattern: String,
    pub(super) sequences: RangeInclusive<u64>,
    /// In nanoseconds since 1970.
    pub(super) times: RangeInclusive<u64>,
    pub(super) limit: usize,
    pub(super) newest: bool,
}

impl Query {
    /// Everything published to keys that the pattern matches: `>` for all. As with [`History::of`](super::History::of), what
    /// is no pattern is an error ([`Error::Invalid`](crate::Error::Invalid)) of the call that takes it.
    pub fn of(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            sequences: 0..=u64::MAX,
            times: 0..=u64::MAX,
            limit: usize::MAX,
            newest: false,
        }
    }

    /// Only messages with these numbers.
    pub fn sequences(mut self, sequences: RangeInclusive<u64>) -> Self {
        self.sequences = sequences;
        self
    }

    /// Only what was published at this time or later.
    pub fn since(mut self, time: SystemTime) -> Self {
        self.times = nanos(time)..=*self.times.end();
        self
    }

    /// Only what was published at this time or before.
    pub fn until(mut self, time: SystemTime) -> Self {
        self.times = *self.times.start()..=nanos(time);
        self
    }

    /// At most so many records, from the oldest on. Default: all.
    pub fn limit(mut self, records: usize) -> Self {
        self.limit = records;
        self
    }

    /// At most so many records, and the newest ones; they come in their order all the same.
    pub fn last(mut self, records: usize) -> Self {
        self.limit = records;
        self.newest = true;
        self
    }

    /// Whether it asks for this record. Of a query whose pattern is none, the answer has no meaning.
    #[must_use]
    pub fn selects(&self, record: &Stored) -> bool {
        self.sequences.contains(&record.sequence)
            && self.times.contains(&record.time)
            && matches(&self.pattern, record.key.as_str())
    }
}

/// Whether `wide` matches every key that `narrow` matches.
pub(crate) fn covers(wide: &str, narrow: &str) -> bool {
    // The hub's own keys are matched only by those who spell the first token out.
    if is_reserved(narrow) && matches!(wide.split('.').next(), Some("*" | ">")) {
        return false;
    }
    let mut parts = narrow.split('.');
    for part in wide.split('.') {
        match (part, parts.next()) {
            (">", Some(_)) => return true,
            ("*", Some(part)) if part != ">" => {}
            (part, Some(other)) if part == other => {}
            _ => return false,
        }
    }
    parts.next().is_none()
}

/// What all keys that a pattern matches begin with, whole tokens and the dot behind them included; the key
/// itself if only one matches.
#[cfg(any(feature = "archive", test))]
pub(super) fn literal_part(pattern: &str) -> (&str, bool) {
    let mut at = 0;
    for part in pattern.split_inclusive('.') {
        if matches!(part, "*" | "*." | ">") {
            return (&pattern[..at], false);
        }
        at += part.len();
    }
    (pattern, true)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::hub::keys::key::matches;
    use proptest::prelude::*;

    #[test]
    fn what_all_matches_begin_with() {
        assert_eq!(literal_part("a.b"), ("a.b", true));
        assert_eq!(literal_part("a.b.>"), ("a.b.", false));
        assert_eq!(literal_part("a.*.c"), ("a.", false));
        assert_eq!(literal_part(">"), ("", false));
    }

    /// Patterns and keys over two letters and up to three tokens.
    fn tokens(with: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
        prop::collection::vec(prop::sample::select(with), 1..4)
    }

    fn pattern() -> impl Strategy<Value = String> {
        (tokens(&["a", "b", "*"]), any::<bool>()).prop_map(|(mut tokens, open)| {
            if open {
                *tokens.last_mut().unwrap() = ">";
            }
            tokens.join(".")
        })
    }

    proptest! {
        /// Goal: a pattern that covers another matches all that it matches, and begins with its literal part.
        #[test]
        fn covering_agrees_with_matching(wide in pattern(), narrow in pattern()) {
            let letters = ["a", "b"];
            let mut keys: Vec<String> = letters.map(String::from).to_vec();
            for _ in 0..3 {
                let longer = keys.iter().flat_map(|key| letters.map(|last| format!("{key}.{last}")));
                keys = keys.iter().cloned().chain(longer).collect();
            }
            // A third letter, which only the wildcards match.
            keys.extend(["c", "c.c", "a.c", "b.c", "c.a", "c.b", "a.c.a", "c.c.c", "a.a.c", "b.c.c"].map(String::from));
            keys.extend(["a.b.c", "b.a.c", "b.b.c", "c.a.a", "c.a.b", "c.b.a", "c.b.b"].map(String::from));
            keys.extend(["a.c.b", "b.c.a", "b.c.b", "a.c.c", "c.a.c", "c.b.c", "c.c.a", "c.c.b"].map(String::from));
            let (prefix, is_whole) = literal_part(&narrow);
            for key in keys.iter().filter(|key| matches(&narrow, key)) {
                prop_assert!(key.starts_with(prefix) && (!is_whole || key == prefix));
            }
            let all = keys.iter().filter(|key| matches(&narrow, key)).all(|key| matches(&wide, key));
            prop_assert_eq!(covers(&wide, &narrow), all, "{} {}", wide, narrow);
        }
    }
}
