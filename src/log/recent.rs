//! The last warnings and errors of this process, for whoever looks at it from outside.
//!
//! They come through cold paths that make a record anyway. One that comes while another is kept or read is only
//! counted: whoever logs never waits, and in a forked child, where the lock may be held for ever, nothing hangs.

use super::record::{Level, Record, Value};
use std::collections::VecDeque;
use std::sync::Mutex;
// Not those of loom: they are static, and no model runs into them.
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How many are kept. Of faults that are equal, the last one, with how many there were.
const KEPT: usize = 256;
/// Bytes of each text that are kept: messages of a program's own errors may have any length.
const LONGEST: usize = 1024;
const MOST_FIELDS: usize = 32;
/// The newest, which are looked at for one that is equal.
const COMPARED: usize = 16;

/// Each with how many were equal to it.
static RECENT: Mutex<VecDeque<(Record, u64)>> = Mutex::new(VecDeque::new());
static MISSED: AtomicU64 = AtomicU64::new(0);
/// Errors, and warnings, since the process began.
static COUNTED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Keeps a warning or an error.
pub(super) fn note(record: &Record) {
    if record.level > Level::Warn {
        return;
    }
    COUNTED[usize::from(record.level != Level::Error)].fetch_add(1, Relaxed);
    let Ok(mut recent) = RECENT.try_lock() else {
        MISSED.fetch_add(1, Relaxed);
        return;
    };
    let record = shortened(record);
    let is_equal = |(other, _): &(Record, u64)| {
        (other.event, &other.pool, &other.message) == (record.event, &record.pool, &record.message)
    };
    let compared = recent.len().saturating_sub(COMPARED);
    let equal = (compared..recent.len()).rev().find(|&at| is_equal(&recent[at]));
    let times = equal.and_then(|at| recent.remove(at)).map_or(0, |(_, times)| times);
    if recent.len() == KEPT {
        recent.pop_front();
    }
    recent.push_back((record, times + 1));
}

/// How many errors and warnings there were since the process began.
#[cfg(feature = "metrics")]
pub(crate) fn counted() -> &'static [AtomicU64; 2] {
    &COUNTED
}

fn shortened(record: &Record) -> Record {
    let fields = record.fields.iter().take(MOST_FIELDS).map(|(name, value)| match value {
        Value::Text(text) => (name.clone(), Value::Text(start_of(text))),
        other => (name.clone(), other.clone()),
    });
    Record {
        time: record.time,
        level: record.level,
        component: record.component,
        event: record.event,
        pool: record.pool.clone(),
        message: start_of(&record.message),
        fields: fields.collect(),
    }
}

/// All of it, or its start with `…`.
fn start_of(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.into();
    }
    let end = (0..=LONGEST).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// The newest `most` of them, the newest first, each with how many were equal, and how many were missed since the process
/// began.
pub(crate) fn recent(most: usize) -> (Vec<(Record, u64)>, u64) {
    let records = match RECENT.try_lock() {
        Ok(recent) => recent.iter().rev().take(most).cloned().collect(),
        Err(_) => Vec::new(),
    };
    (records, MISSED.load(Relaxed))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::log::Component;

    #[test]
    fn equal_faults_push_no_other_out() {
        let fault = |says: &str| {
            let mut record = Record::new(Component::Log, Level::Error, "a.test", "equal".into());
            record.say(says);
            note(&record);
        };
        let before = counted()[0].load(Relaxed);
        fault("another");
        (0..2 * KEPT).for_each(|_| fault("the same"));
        let found = recent(KEPT).0.into_iter().filter(|(record, _)| &*record.pool == "equal");
        let found: Vec<_> = found.map(|(record, times)| (record.message, times)).collect();
        assert_eq!(found, [("the same".into(), 2 * KEPT as u64), ("another".into(), 1)]);
        assert!(counted()[0].load(Relaxed) - before > 2 * KEPT as u64);
    }

    #[test]
    fn what_is_kept_of_a_long_text_is_its_start() {
        let mut record = Record::new(Component::Log, Level::Warn, "a.test", "".into());
        record.message = "é".repeat(1 << 20);
        record.fields = vec![("text".into(), Value::Text("x".repeat(1 << 20))); 1000];
        let kept = shortened(&record);
        assert_eq!(kept.message, format!("{}…", "é".repeat(LONGEST / 2)));
        assert_eq!(kept.fields.len(), MOST_FIELDS);
        assert!(kept.to_json().len() < (MOST_FIELDS + 2) * (LONGEST + 64));
        let short = "é".repeat(LONGEST / 2);
        assert_eq!(start_of(&short), short);
    }
}
