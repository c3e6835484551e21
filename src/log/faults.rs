//! What is said when nobody listens: one line on the standard error stream for a fault of a pool without a log.
//!
//! # The way of a line
//!
//! ```text
//!   a fault ─► a row of KINDS? ─no──► nothing: it is as the program has asked for
//!                  │ yes: it is among the last faults (recent.rs)
//!                  ▼
//!              quiet? a hook was told? ─yes─► nothing
//!                  │ no
//!                  ▼
//!              a line of this kind in the last 10 s? ─yes─► counted
//!                  │ no
//!                  ▼
//!              one write(2), if that does not wait; else counted
//! ```
//!
//! # Invariants
//!
//! 1. No lock is waited for, so a forked child that has inherited a copy in the middle of it can go on.
//! 2. A line is one write of at most [`MOST`] bytes, which a pipe takes whole or not at all. It is asked before
//!    whether it has room. A standard error stream that is closed, or whose reader has gone, ends nothing.
//! 3. Told + counted = faults of a kind, in each process. What was counted is in the next line of its kind.

use super::recent;
use super::record::{Component, Level, Record, Value};
use crate::sys::clock;
use crate::sys::stderr;
use crate::thread_state::lap;
use core::cell::Cell;
use core::fmt::Write;
// Not those of loom: they are static, and no model runs into them.
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::SystemTime;

/// Of one kind at most one line is written in this time.
const PAUSE_NS: u64 = 10_000_000_000;

/// The longest line. A pipe takes as much in one piece.
const MOST: usize = 1024;

/// Between what was counted and the line's end.
const REMEDY: &str =
    "(give the pool a log to have this there, or call paceline's quiet() to have it nowhere)\n";

static QUIET: AtomicBool = AtomicBool::new(false);

/// A kind of fault: the event's name, and what that means to who has never heard of it.
struct Kind {
    event: &'static str,
    means: &'static str,
    /// When the next line may be written.
    due: AtomicU64,
    /// Faults that no line was written for.
    counted: AtomicU64,
}

impl Kind {
    /// Whether a line is to be written now; else the fault is counted.
    fn is_due(&self, now: u64) -> bool {
        let due = self.due.load(Relaxed);
        let next = now.saturating_add(PAUSE_NS);
        if now >= due && self.due.compare_exchange(due, next, Relaxed, Relaxed).is_ok() {
            return true;
        }
        self.counted.fetch_add(1, Relaxed);
        false
    }
}

const fn kind(event: &'static str, means: &'static str) -> Kind {
    Kind { event, means, due: AtomicU64::new(0), counted: AtomicU64::new(0) }
}

/// All that is said. What is not here is an answer to a setting that the program has chosen by name.
static KINDS: [Kind; 20] = [
    kind(
        "pool.panicked",
        "code of the program has failed; if it was a timer's or a handle's, that is closed",
    ),
    kind("pool.unhandled", "code of the program has thrown an exception that nothing catches"),
    kind("pool.not_pinned", "a thread could not be pinned to its CPU"),
    kind(
        "pool.closed_registered",
        "a handle's descriptor was closed before the handle, which is closed now",
    ),
    kind("pool.thread_stuck", "a handler has not returned until the end of its pool"),
    kind(
        "handler.panicked",
        "the handler of an HTTP request has failed; its client got status 500 or a reset",
    ),
    kind("server.cut_off", "a server's time to drain was over, and connections were cut off"),
    kind(
        "accept.paused",
        "a server can accept no connection for want of resources, and tries again",
    ),
    kind("task.panicked", "a task of a worker pool has panicked"),
    kind("middleware.panicked", "a middleware of a worker pool has panicked"),
    kind("subscription.restarted", "the handler of a subscription has crashed, and was restarted"),
    kind(
        "subscription.suspended",
        "the handler of a subscription has crashed too often: the subscription is suspended",
    ),
    kind("dead.forgotten", "dead letters were forgotten for newer ones"),
    kind("history.failed", "a history cannot be written to disk"),
    kind("history.lines_lost", "a history's lines could not be written"),
    kind("history.given_up", "a history has given messages up: they are on no disk"),
    kind(
        "threshold.stopped",
        "a watch for thresholds has ended, as the pool has no room for its timer",
    ),
    kind(
        "statistics.stopped",
        "a hub's statistics have ended, as the pool has no room for their timer",
    ),
    kind("webhook.failed", "a webhook could not be delivered"),
    kind("log.failed", "a log cannot write its file, or its callback has panicked"),
];

/// Whether the library keeps silent about faults that no log and no hook is told of. Default: false.
///
/// Without this, a fault of a pool that has no [log](crate::Builder::log) is one line on the standard error
/// stream: code of the program that panics in a handler, a suspended subscription, a log's file that cannot be
/// written and the like. Of each kind of fault at most one line is written in 10 seconds, with the number of those
/// that were not. With a log, a fault is a record of it and no line; with a hook for the fault
/// (a server's for want of descriptors, say), neither.
///
/// It holds for the process. Any thread may call this, and it never waits.
pub fn quiet(quiet: bool) {
    QUIET.store(quiet, Relaxed);
}

/// What is known of a failure of the code that runs now, on this thread.
#[derive(Default)]
enum Note {
    #[default]
    Nothing,
    /// Somebody was told.
    Told,
    /// What it has thrown says this.
    Says(String),
}

thread_local! {
    /// And in which lap of the thread that was.
    static NOTE: Cell<(u64, Note)> = const { Cell::new((0, Note::Nothing)) };
}

/// Somebody was told of the failure that is to come: no line is written for it.
pub(crate) fn note_told() {
    let _ends = NOTE.try_with(|note| note.set((lap(), Note::Told)));
}

/// Somebody was told of a failure, and there may be another one of the same code to come, of which no line is written
/// then, unless it is known what that one says.
pub(crate) fn note_told_of_another() {
    let _ends = NOTE.try_with(|note| match note.take() {
        says @ (at, Note::Says(_)) if at == lap() => note.set(says),
        _ => note.set((lap(), Note::Told)),
    });
}

/// What the failure that is to come says.
pub(crate) fn note_text(says: String) {
    let _ends = NOTE.try_with(|note| note.set((lap(), Note::Says(says))));
}

/// What the code that has failed just now says, if it is known better than by the panic.
pub(crate) fn take_text() -> Option<String> {
    match NOTE.try_with(Cell::take).unwrap_or_default() {
        (at, Note::Says(says)) if at == lap() => Some(says),
        told => {
            let _ends = NOTE.try_with(|note| note.set(told));
            None
        }
    }
}

/// A failure of the program's code that its language has told already is among the last faults, and nowhere else.
#[cfg(feature = "capi")]
pub(crate) fn keep(level: Level, pool: &str, says: &str) {
    let mut record = Record::new(Component::Pool, level, "program.failed", pool.into());
    record.say(says);
    recent::note(&record);
}

/// Whether a failure of code of the program was told already.
fn was_told(event: &str) -> bool {
    let by_code = ["pool.panicked", "handler.panicked", "subscription.restarted"].contains(&event);
    by_code
        && matches!(NOTE.try_with(Cell::take).unwrap_or_default(), (at, Note::Told) if at == lap())
}

/// In a forked child nothing was said yet.
fn forget_the_parent() {
    static PROCESS: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id();
    if PROCESS.swap(own, Relaxed) != own {
        for kind in &KINDS {
            kind.due.store(0, Relaxed);
            kind.counted.store(0, Relaxed);
        }
    }
}

/// Writes a line, if one is due. `pool` may be empty.
#[cold]
#[inline(never)]
pub(crate) fn log(
    component: Component,
    level: Level,
    event: &'static str,
    pool: &str,
    fill: &mut dyn FnMut(&mut Record),
) {
    let told = was_told(event);
    let Some(kind) = KINDS.iter().find(|kind| kind.event == event) else { return };
    forget_the_parent();
    let is_line = !told && !QUIET.load(Relaxed) && kind.is_due(clock::now());
    let mut record = Record {
        time: SystemTime::now(),
        level,
        component,
        event,
        pool: pool.into(),
        message: String::new(),
        fields: Vec::new(),
    };
    fill(&mut record);
    recent::note(&record);
    if !is_line {
        return;
    }
    let counted = kind.counted.swap(0, Relaxed);
    if !stderr::write(line(kind.means, &record, counted).as_bytes()) {
        kind.counted.fetch_add(counted + 1, Relaxed);
    }
}

/// Of a record, with its end.
fn line(means: &str, record: &Record, counted: u64) -> String {
    let mut line = String::with_capacity(MOST);
    let mut more = String::new();
    // Into memory: it cannot fail.
    if counted > 0 {
        let _ = write!(more, "[{counted} more of this kind since the last line] ");
    }
    let _ = write!(line, "paceline: {means}: {record}");
    if !record.pool.is_empty() {
        let _ = write!(line, " pool={}", Value::from(&*record.pool));
    }
    // One line, whatever the message has.
    line = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let rest = MOST - more.len() - REMEDY.len() - 2;
    if line.len() > rest {
        line.truncate((0..=rest - 3).rev().find(|&at| line.is_char_boundary(at)).unwrap_or(0));
        line.push('…');
    }
    line + " " + &more + REMEDY
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn record(message: &str) -> Record {
        let mut record = Record {
            time: SystemTime::UNIX_EPOCH,
            level: Level::Error,
            component: Component::Pool,
            event: "pool.panicked",
            pool: "p q".into(),
            message: String::new(),
            fields: Vec::new(),
        };
        record.with("thread", 1u64).say(message);
        record
    }

    #[test]
    fn a_line_has_all_and_is_one() {
        let told = line("it failed", &record("a\nb"), 0);
        let expected = "paceline: it failed: pool.panicked: a b thread=1 pool=\"p q\" ";
        assert_eq!(told.strip_suffix(REMEDY), Some(expected));
        let told = line("it failed", &record("a"), 7);
        assert!(told.contains(" [7 more of this kind since the last line] (give"), "{told}");
    }

    #[test]
    fn a_line_is_cut_at_a_character() {
        let told = line("m", &record(&"é".repeat(5000)), u64::MAX);
        assert!(told.len() <= MOST && told.len() > MOST - 8, "{}", told.len());
        assert!(told.contains("é… [18446744073709551615 more"), "{told}");
    }

    #[test]
    fn a_line_is_due_once_in_a_while() {
        let kind = kind("event", "it failed");
        let due = [1, 2, PAUSE_NS, PAUSE_NS + 1, PAUSE_NS + 2].map(|now| kind.is_due(now));
        assert_eq!(due, [true, false, false, true, false]);
        assert_eq!(kind.counted.load(Relaxed), 3);
    }

    /// Goal: what a failure says that the library has not told yet is told, though other code has failed meanwhile, a
    /// destructor, say.
    #[test]
    #[cfg(feature = "capi")]
    fn a_text_outlasts_a_failure_that_was_told_at_once() {
        note_text("the first".into());
        note_told_of_another();
        assert_eq!(take_text().as_deref(), Some("the first"));
        note_told_of_another();
        assert!(take_text().is_none() && was_told("pool.panicked"));
    }

    #[test]
    fn no_kind_is_named_twice() {
        let mut names: Vec<_> = KINDS.iter().map(|kind| kind.event).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KINDS.len());
    }
}
