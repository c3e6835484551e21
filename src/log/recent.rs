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

/// How many are kept.
const KEPT: usize = 256;
/// Bytes of each text that are kept: messages of a program's own errors may have any length.
const LONGEST: usize = 1024;
const MOST_FIELDS: usize = 32;

static RECENT: Mutex<VecDeque<Record>> = Mutex::new(VecDeque::new());
static MISSED: AtomicU64 = AtomicU64::new(0);

/// Keeps a warning or an error.
pub(super) fn note(record: &Record) {
    if record.level > Level::Warn {
        return;
    }
    let Ok(mut recent) = RECENT.try_lock() else {
        MISSED.fetch_add(1, Relaxed);
        return;
    };
    if recent.len() == KEPT {
        recent.pop_front();
    }
    recent.push_back(shortened(record));
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

/// The newest `most` of them, the newest first, and how many were missed since the process began.
pub(crate) fn recent(most: usize) -> (Vec<Record>, u64) {
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
