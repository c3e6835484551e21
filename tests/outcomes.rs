//! The log of outcomes: every end is told to each sink, and no sink can hold up or break a worker.

mod common;

use common::{Gate, PATIENCE, hang_guard, until};
use paceline::admin::{LOG_TARGET, OutcomeEvent, OutcomeLog};
use paceline::task::{Attempt, Fault, Retry, Status, WorkerPool};
use paceline::{Error, Pool};
use serde_json::Value as Json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;
use std::{env, fs, process};

/// A folder of its own, gone when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("paceline-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn workers(pool: &Pool, log: &Arc<OutcomeLog>) -> WorkerPool {
    WorkerPool::builder(pool).observe(log.clone() as _).build().unwrap()
}

/// Twelve tasks: eight complete, one of them after a retry; four fail for good.
fn twelve_tasks(workers: &WorkerPool) {
    let mut tasks = vec![];
    for number in 0..12 {
        let work = move |attempt: &Attempt<'_>| match number {
            0 if attempt.number() == 1 => Err(Fault::new("once \"more\"\n")),
            8.. => Err(Fault::permanent("never")),
            _ => Ok(number),
        };
        let retry = Retry::fixed(5, Duration::from_millis(1));
        tasks.push(workers.task("count", work).retry(retry).submit().unwrap());
    }
    tasks.into_iter().for_each(|task| drop(task.wait().unwrap()));
    // A waiter may hear of the end before observers do.
    until("the books", || workers.audit().in_flight == 0);
}

fn lines(path: &std::path::Path) -> Vec<Json> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_end_and_retry_is_a_line_of_json() {
    let _guard = hang_guard();
    let folder = Folder::new("outcomes");
    let path = folder.0.join("tasks.log");
    let pool = Pool::builder().threads(2).build().unwrap();
    let log = OutcomeLog::builder().facade(false).file(&path).build().unwrap();
    twelve_tasks(&workers(&pool, &log));
    until("what observers were told", || log.stats().told == 13);
    log.flush(PATIENCE).unwrap();
    let lines = lines(&path);
    let count = |what: &str, is: &str| lines.iter().filter(|line| line[what] == is).count();
    assert_eq!((count("event", "end"), count("event", "retry"), lines.len()), (12, 1, 13));
    assert_eq!((count("status", "COMPLETED"), count("status", "FAILED")), (8, 4));
    let retry = lines.iter().find(|line| line["event"] == "retry").unwrap();
    assert_eq!((&retry["message"], &retry["attempt"]), (&"once \"more\"\n".into(), &1.into()));
    for line in &lines {
        assert_eq!(line["name"], "count");
        assert!(line["id"].is_u64() && line["time"].as_str().unwrap().ends_with('Z'), "{line}");
    }
    for end in lines.iter().filter(|line| line["event"] == "end") {
        assert!(end["queue_ms"].is_number() && end["run_ms"].is_number(), "{end}");
        assert!(end["attempts"].as_u64().unwrap() >= 1 && end["worker"].is_u64(), "{end}");
    }
    let stats = log.stats();
    assert_eq!((stats.told, stats.dropped, stats.errors), (13, 0, 0));
}

#[test]
fn files_are_rotated_and_no_line_is_torn_or_lost() {
    let _guard = hang_guard();
    let folder = Folder::new("rotated");
    let path = folder.0.join("tasks.log");
    let pool = Pool::builder().threads(2).build().unwrap();
    let log = OutcomeLog::builder().facade(false).file(&path).max_size(1024).files(100).build();
    let log = log.unwrap();
    twelve_tasks(&workers(&pool, &log));
    until("what observers were told", || log.stats().told == 13);
    log.flush(PATIENCE).unwrap();
    let files: Vec<_> =
        fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 1, "{files:?}");
    assert!(files.iter().all(|file| fs::metadata(file).unwrap().len() <= 1024));
    assert_eq!(files.iter().map(|file| lines(file).len()).sum::<usize>(), 13);
}

#[test]
fn the_callback_is_told_and_may_panic() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let told = Arc::new(Mutex::new(vec![]));
    let place = told.clone();
    let log = OutcomeLog::builder().facade(false).callback(move |outcome| {
        place.lock().unwrap().push((outcome.event.clone(), outcome.to_string()));
        if let OutcomeEvent::End { status: Status::Failed, .. } = outcome.event {
            panic!("a callback's own fault");
        }
    });
    let log = log.build().unwrap();
    twelve_tasks(&workers(&pool, &log));
    until("what observers were told", || log.stats().told == 13);
    let told = told.lock().unwrap();
    let ends = told.iter().filter(|(event, _)| matches!(event, OutcomeEvent::End { .. }));
    assert_eq!(ends.count(), 12);
    let failed = told.iter().find(|(_, text)| text.contains("FAILED")).unwrap();
    assert!(failed.1.starts_with("count ") && failed.1.ends_with("FAILED after 1 attempt: never"));
    let stats = log.stats();
    assert_eq!((stats.errors, stats.last_error.as_deref()), (4, Some("a callback panicked")));
}

/// Keeps what this file's tests log.
struct Kept;

static KEPT: Mutex<Vec<(log::Level, String)>> = Mutex::new(Vec::new());

impl log::Log for Kept {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target() == LOG_TARGET
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            KEPT.lock().unwrap().push((record.level(), record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

#[test]
fn the_log_facade_is_told() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Kept).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    });
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let log = OutcomeLog::builder().build().unwrap();
    twelve_tasks(&workers(&pool, &log));
    until("what observers were told", || log.stats().told == 13);
    let kept = KEPT.lock().unwrap();
    let count = |level| kept.iter().filter(|(its, _)| *its == level).count();
    let levels = [log::Level::Debug, log::Level::Info, log::Level::Warn];
    assert_eq!(levels.map(count), [8, 1, 4], "{kept:?}");
}

#[test]
fn a_full_disk_is_counted_and_holds_up_nobody() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let log = OutcomeLog::builder().facade(false).file("/dev/full").build().unwrap();
    twelve_tasks(&workers(&pool, &log));
    until("what observers were told", || log.stats().told == 13);
    log.flush(PATIENCE).unwrap();
    let stats = log.stats();
    assert_eq!((stats.told, stats.dropped, stats.errors), (13, 0, 13));
    assert_eq!(stats.last_error.as_deref(), Some("No space left on device (os error 28)"));
}

#[test]
fn a_log_that_is_held_up_drops_and_counts_and_workers_go_on() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).build().unwrap();
    let gate = Gate::new();
    let held = gate.clone();
    let log = OutcomeLog::builder().facade(false).capacity(2).callback(move |_| held.wait());
    let log = log.build().unwrap();
    let workers = workers(&pool, &log);
    // All end while the log's thread stands still with the first.
    workers.task("first", |_: &Attempt<'_>| ()).submit().unwrap().wait().unwrap();
    gate.until_entered(1);
    twelve_tasks(&workers);
    until("what found no room", || log.stats().dropped == 11);
    assert!(matches!(log.flush(Duration::ZERO), Err(Error::TimedOut)), "there is no room for it");
    gate.open();
    log.flush(PATIENCE).unwrap();
    let stats = log.stats();
    assert_eq!((stats.told, stats.dropped), (1 + 13 - 11, 11));
}

/// Goal: a callback that waits for the log itself is told so. Method: it flushes, with patience for ever.
#[test]
fn a_callback_that_flushes_is_told_that_it_would_wait_for_itself() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (own, place) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
    let (log, said) = (own.clone(), place.clone());
    let built = OutcomeLog::builder().facade(false).callback(move |_| {
        let log: Option<Arc<OutcomeLog>> = log.lock().unwrap().take();
        *said.lock().unwrap() = log.map(|log| log.flush(Duration::MAX));
    });
    let log = built.build().unwrap();
    *own.lock().unwrap() = Some(log.clone());
    let workers = workers(&pool, &log);
    workers.task("one", |_: &Attempt<'_>| ()).submit().unwrap().wait().unwrap();
    until("the callback", || place.lock().unwrap().is_some());
    assert!(matches!(*place.lock().unwrap(), Some(Err(Error::WouldDeadlock))));
}

/// Goal: a signal for the program never meets the log's thread, where nobody has blocked it. Method: what
/// the kernel says that thread blocks.
#[test]
fn the_thread_of_a_log_blocks_signals() {
    let _guard = hang_guard();
    let _log = OutcomeLog::builder().facade(false).build().unwrap();
    let threads = || fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    // Threads of other tests come and go.
    let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    let is_of_a_log = |thread: &PathBuf| read(thread.join("comm")) == "paceline-log\n";
    until("the log's thread", || threads().any(|thread| is_of_a_log(&thread)));
    for thread in threads().filter(is_of_a_log) {
        let status = read(thread.join("status"));
        let Some(mask) = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")) else {
            continue;
        };
        let mask = u64::from_str_radix(mask, 16).unwrap();
        let term = 1 << (libc::SIGTERM - 1);
        assert!(mask & term != 0, "{mask:x}");
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let new = OutcomeLog::builder;
    for (builder, name, value, allowed) in [
        (new().max_size(1023), "max_size", "1023", "1024 to 1099511627776"),
        (new().files(0), "files", "0", "1 to 1000"),
        (new().files(1001), "files", "1001", "1 to 1000"),
        (new().capacity(0), "capacity", "0", "1 to 1048576"),
    ] {
        let refused = builder.build().unwrap_err();
        assert_eq!(refused.to_string(), format!("{name} is {value}, but must be {allowed}"));
        assert!(matches!(refused, Error::Invalid { .. }));
    }
}
