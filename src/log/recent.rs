//! The last warnings and errors of this process, for whoever looks at it from outside.
//!
//! They come through cold paths that make a record anyway. One that comes while another is kept or read is only
//! counted: whoever logs never waits, and in a forked child, where the lock may be held for ever, nothing hangs.

use super::record::{Level, Record};
use std::collections::VecDeque;
use std::sync::Mutex;
// Not those of loom: they are static, and no model runs into them.
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How many are kept.
const KEPT: usize = 256;

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
    recent.push_back(record.clone());
}

/// The newest `most` of them, the newest first, and how many were missed since the process began.
pub(crate) fn recent(most: usize) -> (Vec<Record>, u64) {
    let records = match RECENT.try_lock() {
        Ok(recent) => recent.iter().rev().take(most).cloned().collect(),
        Err(_) => Vec::new(),
    };
    (records, MISSED.load(Relaxed))
}
