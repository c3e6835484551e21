//! Records of tasks: one end, told once; a value that is dropped once; a record that is freed once, by
//! whoever is the last.
//!
//! The word, both ends, the table and its slab are the real ones. What an end does to counters and
//! callbacks is counted in plain memory; the record's `UnsafeCell` lets loom see a value that is read
//! before it is written, or a room with two users.

use super::explore;
use crate::pool::record::{
    ASKED, FIRST_END, Holder, Magazine, Meta, PENDING, RETRYING, RUNNING, Record, RecordTable,
    Runner,
};
use crate::sync::StaticRef;
use loom::thread;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::LocalKey;

const COMPLETED: u32 = FIRST_END;
const CANCELLED: u32 = 5;
const TIMED_OUT: u32 = 6;

/// What one exploration counts.
#[derive(Default)]
struct Books {
    ends: [AtomicUsize; 8],
    told: AtomicUsize,
    notified: AtomicUsize,
    cleared: AtomicUsize,
    /// Somebody is told of each end.
    is_told: bool,
}

impl Books {
    fn ended(&self) -> usize {
        self.ends.iter().map(|count| count.load(Relaxed)).sum()
    }
}

#[derive(Default)]
struct Noted {
    books: StaticRef<Books>,
}

thread_local! {
    static TABLE: Cell<Option<&'static RecordTable<Noted>>> = const { Cell::new(None) };
    static MAGAZINE: Magazine = const { Magazine::new(|_| {}) };
}

impl Meta for Noted {
    type Owner = &'static Books;

    fn table() -> &'static RecordTable<Self> {
        TABLE.get().expect("inside a case")
    }

    fn magazine() -> &'static LocalKey<Magazine> {
        &MAGAZINE
    }

    fn owner(&self) -> &'static Books {
        self.books.get().expect("a tenant")
    }

    fn is_told(owner: &'static Books) -> bool {
        owner.is_told
    }

    fn count(owner: &'static Books, status: u32) {
        owner.ends[status as usize].fetch_add(1, Relaxed);
    }

    fn tell(record: &'static Record<Self>, status: u32, _: Option<&str>) {
        // It has not been freed, nor let again.
        assert_eq!(record.status(), status);
        record.meta.owner().told.fetch_add(1, Relaxed);
    }

    fn notify(record: &'static Record<Self>) {
        record.meta.owner().notified.fetch_add(1, Relaxed);
    }

    fn clear(&self) {
        self.owner().cleared.fetch_add(1, Relaxed);
    }

    fn is_forked(_: &'static Books) -> bool {
        false
    }
}

/// A value.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

type Ends = (Runner<Noted, Counted>, Holder<Noted, Counted>);

/// A table of two records, and what happens in it.
struct Case {
    table: &'static RecordTable<Noted>,
    books: &'static Books,
    made: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

impl Case {
    fn new(is_told: bool) -> Self {
        let table: &'static _ = Box::leak(Box::new(RecordTable::new(2)));
        let books: &'static _ = Box::leak(Box::new(Books { is_told, ..Books::default() }));
        TABLE.set(Some(table));
        let case = Self { table, books, made: Arc::default(), dropped: Arc::default() };
        // The table makes its records here, because loom does not see that the `OnceLock` of a chunk
        // orders their making.
        drop([case.open(), case.open()]);
        case.books.ends[CANCELLED as usize].store(0, Relaxed);
        case.books.told.store(0, Relaxed);
        case.books.cleared.store(0, Relaxed);
        case
    }

    fn open(&self) -> Ends {
        let record = self.table.take().expect("a free record");
        record.meta.books.set(self.books);
        self.table.publish(record)
    }

    fn value(&self) -> Counted {
        self.made.fetch_add(1, Relaxed);
        Counted(self.dropped.clone())
    }

    /// What a worker does with a job of one attempt. True: it ran.
    fn run(&self, runner: Runner<Noted, Counted>) -> thread::JoinHandle<bool> {
        let (made, dropped) = (self.made.clone(), self.dropped.clone());
        thread::spawn(move || {
            let runs = runner.begin();
            if runs {
                made.fetch_add(1, Relaxed);
                runner.finish(COMPLETED, Counted(dropped), None);
            }
            runs
        })
    }

    /// Every task has ended once and was told once if it was to be, every value was dropped once, and
    /// both records are free.
    fn settle(self, tasks: usize) {
        assert_eq!(self.books.ended(), tasks);
        assert_eq!(self.books.told.load(Relaxed), if self.books.is_told { tasks } else { 0 });
        assert_eq!(self.made.load(Relaxed), self.dropped.load(Relaxed));
        assert_eq!(self.books.cleared.load(Relaxed), tasks);
        let both = [self.open(), self.open()];
        assert!(self.table.take().is_none());
        for (runner, holder) in both {
            assert!(runner.forget());
            drop(holder);
        }
    }
}

fn wait(holder: &Holder<Noted, Counted>) -> u32 {
    while !holder.record().sleep(None) {}
    holder.record().status()
}

/// Goal: a task that was cancelled before it began never begins, and one that has begun is not cancelled
/// but by its own end. Method: `cancel` by a handle that then waits, against the run.
#[test]
fn cancel_against_start() {
    explore(3, || {
        let case = Case::new(false);
        let (runner, mut holder) = case.open();
        let worker = case.run(runner);
        let may = |seen: crate::pool::record::Seen| seen.status() != RUNNING;
        let cancelled = holder.record().end_if(CANCELLED, may, |_| {}, "");
        let status = wait(&holder);
        let value = holder.take();
        let ran = worker.join().unwrap();
        assert_eq!(cancelled, !ran);
        assert_eq!(status, if cancelled { CANCELLED } else { COMPLETED });
        assert_eq!(value.is_some(), ran);
        drop((value, holder));
        case.settle(1);
    });
}

/// Goal: an attempt that returns as its time ends has one end; the loser's value is dropped, and whoever
/// ends it may look at the record until all have been told. Method: a guard that is no end of the task
/// against the run, and a handle that lets go at any moment.
#[test]
fn timeout_against_completion() {
    explore(2, || {
        let case = Case::new(true);
        let (runner, holder) = case.open();
        let record = holder.record();
        let worker = case.run(runner);
        let guard = thread::spawn(move || {
            let seen = record.look();
            let may = move |now: crate::pool::record::Seen| {
                now.status() == RUNNING && now.is_same_attempt(seen)
            };
            seen.status() == RUNNING && record.end_if(TIMED_OUT, may, |_| {}, "")
        });
        drop(holder);
        worker.join().unwrap();
        let timed_out = guard.join().unwrap();
        let count = |status: u32| case.books.ends[status as usize].load(Relaxed);
        assert_eq!(count(TIMED_OUT), usize::from(timed_out));
        case.settle(1);
    });
}

/// Goal: a task that is being tried again when the worker pool stops ends once, and no attempt begins
/// after it was cancelled. Method: two attempts, against a shutdown that looks once.
#[test]
fn retry_against_shutdown() {
    explore(3, || {
        let case = Case::new(false);
        let (runner, mut holder) = case.open();
        let record = holder.record();
        let value = case.value();
        let worker = thread::spawn(move || {
            let mut begun = 0;
            while runner.begin() {
                begun += 1;
                if record.has(ASKED) || begun == 2 {
                    runner.finish(COMPLETED, value, None);
                    return begun;
                }
                if !runner.retry() {
                    break;
                }
            }
            drop((runner, value));
            begun
        });
        let seen = record.look();
        let may = move |now: crate::pool::record::Seen| {
            now.is_same_task(seen) && matches!(now.status(), PENDING | RETRYING)
        };
        let cancelled = record.end_if(CANCELLED, may, |_| {}, "");
        if !cancelled {
            record.mark_running(seen, ASKED);
        }
        let status = wait(&holder);
        let value = holder.take();
        assert_eq!(status, if cancelled { CANCELLED } else { COMPLETED });
        assert_eq!(value.is_some(), !cancelled);
        let begun = worker.join().unwrap();
        assert!(begun <= 2 && (cancelled || begun > 0));
        drop((value, holder));
        case.settle(1);
    });
}

/// Goal: whoever leaves last drops the value and frees the record, and what is late does not touch the
/// next tenant. Method: the handle is dropped while the task ends; another task takes a free record
/// meanwhile.
#[test]
fn release_against_completion() {
    explore(3, || {
        let case = Case::new(false);
        let (runner, holder) = case.open();
        let worker = case.run(runner);
        drop(holder);
        let (next_runner, next) = case.open();
        let next_worker = case.run(next_runner);
        assert_eq!(wait(&next), COMPLETED);
        drop(next);
        worker.join().unwrap();
        next_worker.join().unwrap();
        case.settle(2);
    });
}

/// Goal: who asks to be told of the end is told once, by the end or at once. Method: the request, and
/// then the handle's going, against the run.
#[test]
fn a_request_to_be_told_against_the_end() {
    explore(3, || {
        let case = Case::new(false);
        let (runner, holder) = case.open();
        let worker = case.run(runner);
        if holder.record().ask_to_notify() {
            Noted::notify(holder.record());
        }
        drop(holder);
        worker.join().unwrap();
        assert_eq!(case.books.notified.load(Relaxed), 1);
        case.settle(1);
    });
}

/// Goal: a closure that is dropped unrun ends its task. Method: against a handle that cancels and goes.
#[test]
fn a_dropped_closure_against_cancel() {
    explore(3, || {
        let case = Case::new(true);
        let (runner, holder) = case.open();
        let sweeper = thread::spawn(move || drop(runner));
        holder.record().end_if(CANCELLED, |_| true, |_| {}, "");
        assert_eq!(wait(&holder), CANCELLED);
        drop(holder);
        sweeper.join().unwrap();
        case.settle(1);
    });
}
