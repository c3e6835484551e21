//! Records of tasks: one end, told once; a value that is dropped once; a record that is freed once, by
//! whoever is the last.
//!
//! The word, both ends, the table and its slab are the real ones. What an end does to counters and
//! callbacks is counted in plain memory; the record's `UnsafeCell` lets loom see a value that is read
//! before it is written, or a room with two users.
//!
//! # Seeded faults
//!
//! Each model has been seen to fail with such a fault put into the code under it: the race, the fault, and how it
//! shows.
//!
//! | race | fault | how it shows |
//! |---|---|---|
//! | a task's record: cancel against start | `begin` from an end; an end that does not ask, or that takes another's place | a cancelled task begins, or a task ends twice |
//! | time-out against completion | no `ending` mark, or its clearing frees nothing | the record is freed while it is told, or never |
//! |  | the runner that lost takes no notice of the end, or of its value | two ends; a value that is not dropped |
//! |  | `finish` Relaxed | a value is read while it is written |
//! | an end against a waiter | nobody is woken; no new epoch; the epoch read after the mark | deadlock |
//! | the handle's going | its load or its change of the word Relaxed; no look at `ending` | a value is taken while it is written; the record is freed while it is told |
//! |  | the runner leaves before it tells; a value that nobody wants is left | likewise; a value is not dropped |
//! | a request to be told | the end does not linger for it, or does not answer | nobody is told |
//! | a kind that is freed behind the ends of its tasks | `free` Relaxed | it is freed while an end looks at it |
//! | a closure that is dropped unrun | its task does not end, or it does not leave | deadlock; the record is never free |
//! | a late look | attempts are not counted, or not compared | the next attempt is marked, or ended |
//! | who asks as an attempt begins | what was noted is compared once only | one too many have begun |
//! | the next tenant | the generation does not grow | it is ended by who looked at the last |
//! | a closure that waits for its time | `parked` set, or an end left, Relaxed; `unfile` takes what is not marked | a closure is taken while it is written, or twice |
//! |  | `unfile` does not free; the handle does not look at `filed` | the record is never free, or is let while a wheel has it |
//! | a retry that overtakes against the return | `claim` does not look, or `overtake` does not look for `returned`; nothing keeps the record | a task has two runners, or a record is freed under an attempt |
//! | a submission that meets a shutdown | no second look at the phase; no barrier before it, or in the shutdown | a function uses what the shutdown has taken away |
//! |  | accepted too late; ended Relaxed | likewise |
#![allow(unsafe_code, reason = "an attempt is overtaken, whose type the record does not know")]

use super::table::{Magazine, RecordTable};
use super::word::{
    ASKED, FIRST_END, Holder, LATE, Meta, PENDING, Parks, RETRYING, RUNNING, Record, Runner, Seen,
    Yield,
};
use crate::pool::models::explore;
use crate::queue::Run;
use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::sync::{StaticRef, UnsafeCell, barrier_after_change, store_load_barrier};
use loom::thread;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread::LocalKey;

pub(crate) const COMPLETED: u32 = FIRST_END;
pub(crate) const CANCELLED: u32 = 5;
pub(crate) const TIMED_OUT: u32 = 6;

/// What one exploration counts.
#[derive(Default)]
pub(crate) struct Counters {
    ends: [AtomicUsize; 8],
    told: AtomicUsize,
    notified: AtomicUsize,
    cleared: AtomicUsize,
    /// Somebody is told of each end.
    is_told: bool,
    kind: Kind,
}

/// What ends of tasks look at, and is freed behind them.
#[derive(Default)]
struct Kind(Option<UnsafeCell<()>>);

// SAFETY: there is nothing in it, and loom watches it.
unsafe impl Sync for Kind {}

impl Kind {
    fn look(&self) {
        self.0.iter().for_each(|kind| kind.with(|_| ()));
    }

    fn free(&self) {
        self.0.iter().for_each(|kind| kind.with_mut(|_| ()));
    }
}

impl Counters {
    fn ended(&self) -> usize {
        self.ends.iter().map(|count| count.load(Relaxed)).sum()
    }
}

#[derive(Default)]
pub(crate) struct Noted {
    counters: StaticRef<Counters>,
}

thread_local! {
    static TABLE: Cell<Option<&'static RecordTable<Noted>>> = const { Cell::new(None) };
    static MAGAZINE: Magazine<Noted> = const { Magazine::new() };
}

impl Meta for Noted {
    type Owner = &'static Counters;
    type Seldom = AtomicU64;

    fn table() -> &'static RecordTable<Self> {
        TABLE.get().expect("inside a case")
    }

    fn magazine() -> &'static LocalKey<Magazine<Noted>> {
        &MAGAZINE
    }

    fn owner(&self) -> &'static Counters {
        self.counters.get().expect("a tenant")
    }

    fn is_told(owner: &'static Counters) -> bool {
        owner.kind.look();
        owner.is_told
    }

    fn count(owner: &'static Counters, status: u32) {
        owner.kind.look();
        owner.ends[status as usize].fetch_add(1, Relaxed);
    }

    fn tell(record: &'static Record<Self>, status: u32, _: Option<&str>) {
        // It has not been freed, nor let again.
        assert_eq!(record.status(), status);
        record.meta.owner().told.fetch_add(1, Relaxed);
    }

    fn notify(record: &'static Record<Self>) {
        record.meta.owner().notified.fetch_add(1, Relaxed);
        drop(record.unpark());
    }

    fn clear(&self) {
        self.owner().cleared.fetch_add(1, Relaxed);
    }

    fn wake_at(wake_at: &AtomicU64) -> &AtomicU64 {
        wake_at
    }

    fn is_forked(owner: &'static Counters) -> bool {
        owner.kind.look();
        false
    }
}

/// A value.
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl Yield for Counted {
    type Value = Self;

    fn split(self) -> Result<Self, Self> {
        Ok(self)
    }

    fn join(value: Self) -> Self {
        value
    }
}

pub(crate) type Ends = (Runner<Noted, Counted>, Holder<Noted, Counted>);

/// A table of two records, and what happens in it.
pub(crate) struct Case {
    counters: &'static Counters,
    made: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

impl Case {
    pub(crate) fn new(is_told: bool) -> Self {
        Self::of(Counters { is_told, ..Counters::default() })
    }

    fn of(counters: Counters) -> Self {
        let table: &'static _ = Box::leak(Box::new(RecordTable::new(2)));
        let counters: &'static _ = Box::leak(Box::new(counters));
        TABLE.set(Some(table));
        let case = Self { counters, made: Arc::default(), dropped: Arc::default() };
        // The table makes its records here, because loom does not see that the `OnceLock` of a chunk
        // orders their making.
        drop([case.open(), case.open()]);
        case.counters.ends[CANCELLED as usize].store(0, Relaxed);
        case.counters.told.store(0, Relaxed);
        case.counters.cleared.store(0, Relaxed);
        case
    }

    pub(crate) fn open(&self) -> Ends {
        let record = RecordTable::<Noted>::take().expect("a free record");
        record.meta.counters.set(self.counters);
        record.publish()
    }

    pub(crate) fn value(&self) -> Counted {
        self.made.fetch_add(1, Relaxed);
        Counted(self.dropped.clone())
    }

    /// What a worker does with a job of one attempt. True: it ran.
    fn run(&self, runner: Runner<Noted, Counted>) -> thread::JoinHandle<bool> {
        let (made, dropped) = (self.made.clone(), self.dropped.clone());
        thread::spawn(move || {
            let runs = runner.begin().is_some();
            if runs {
                made.fetch_add(1, Relaxed);
                runner.finish(COMPLETED, Counted(dropped), None);
            }
            runs
        })
    }

    /// Every task has ended once and was told once if it was to be, every value was dropped once, and
    /// both records are free.
    /// How many tasks have ended so.
    pub(crate) fn count(&self, status: u32) -> usize {
        self.counters.ends[status as usize].load(Relaxed)
    }

    /// A task that nobody waits for, as it is parked. It completes when it runs.
    pub(crate) fn sleeping(&self) -> Sleeping {
        let (runner, _) = self.open();
        Sleeping { runner, value: self.value() }
    }

    pub(crate) fn settle(self, tasks: usize) {
        assert_eq!(self.counters.ended(), tasks);
        assert_eq!(self.counters.told.load(Relaxed), if self.counters.is_told { tasks } else { 0 });
        assert_eq!(self.made.load(Relaxed), self.dropped.load(Relaxed));
        assert_eq!(self.counters.cleared.load(Relaxed), tasks);
        let both = [self.open(), self.open()];
        assert!(RecordTable::<Noted>::take().is_none());
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
        let may = |seen: crate::task::record::word::Seen| seen.status() != RUNNING;
        let cancelled = holder.record().end_if(CANCELLED, may, |_| {}, "");
        let status = wait(&holder);
        let value = holder.take(holder.record().look());
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
            let may = move |now: crate::task::record::word::Seen| {
                now.status() == RUNNING && now.is_same_attempt(seen)
            };
            seen.status() == RUNNING && record.end_if(TIMED_OUT, may, |_| {}, "")
        });
        drop(holder);
        worker.join().unwrap();
        let timed_out = guard.join().unwrap();
        let count = |status: u32| case.counters.ends[status as usize].load(Relaxed);
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
            while runner.begin().is_some() {
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
        let may = move |now: crate::task::record::word::Seen| {
            now.is_same_task(seen) && matches!(now.status(), PENDING | RETRYING)
        };
        let cancelled = record.end_if(CANCELLED, may, |_| {}, "");
        if !cancelled {
            record.mark_running(seen, ASKED);
        }
        let status = wait(&holder);
        let value = holder.take(holder.record().look());
        assert_eq!(status, if cancelled { CANCELLED } else { COMPLETED });
        assert_eq!(value.is_some(), !cancelled);
        let begun = worker.join().unwrap();
        assert!(begun <= 2 && (cancelled || begun > 0));
        drop((value, holder));
        case.settle(1);
    });
}

/// Goal: whoever ends a task, or looks at it, knows how many attempts have begun, though each was noted before.
/// Method: a cancel that may come right before an attempt begins, against two attempts.
#[test]
fn an_end_knows_how_many_have_begun() {
    explore(3, || {
        let case = Case::new(false);
        let (runner, holder) = case.open();
        let record = holder.record();
        let noted = crate::sync::Arc::new(AtomicU32::new(0));
        let (value, note) = (case.value(), noted.clone());
        let worker = thread::spawn(move || {
            for number in 1..=2 {
                note.store(number, Release);
                if runner.begin().is_none() {
                    return number - 1;
                }
                if number == 1 && !runner.retry() {
                    return number;
                }
            }
            runner.finish(COMPLETED, value, None);
            2
        });
        let begun = || record.begun(|| noted.load(Acquire));
        let (before, mut at_end) = (begun(), 0);
        let may = |seen: Seen| seen.status() != RUNNING;
        let cancelled = record.end_if(CANCELLED, may, |_| at_end = begun(), "");
        let all = worker.join().unwrap();
        assert!(!cancelled || at_end == all);
        assert!(before <= all);
        assert_eq!(begun(), all);
        drop(holder);
        case.settle(1);
    });
}

/// Goal: whoever leaves last drops the value and frees the record, and what is late does not touch the
/// next tenant. Method: the handle is dropped while the task ends; another task takes a free record
/// meanwhile, and its handle is dropped, or redeemed, while its runner leaves.
#[test]
fn release_against_completion() {
    for redeems in [false, true] {
        explore(3, move || {
            let case = Case::new(false);
            let (runner, holder) = case.open();
            let worker = case.run(runner);
            drop(holder);
            let (next_runner, next) = case.open();
            let next_worker = case.run(next_runner);
            assert_eq!(wait(&next), COMPLETED);
            if redeems {
                assert!(
                    next.redeem(|_, seen, value| seen.status() == COMPLETED && value.is_some())
                );
            } else {
                drop(next);
            }
            worker.join().unwrap();
            next_worker.join().unwrap();
            case.settle(2);
        });
    }
}

/// Goal: a kind is freed behind all ends of its tasks (`task/arena.rs`). Method: a sweep looks at the record once;
/// against it a handle that goes, or somebody who ends the task as the pool that would have run it does.
#[test]
fn a_kind_is_freed_behind_all_ends() {
    for cancels in [false, true] {
        explore(3, move || {
            let kind = Kind(Some(UnsafeCell::new(())));
            let case = Case::of(Counters { kind, ..Counters::default() });
            let (runner, holder) = case.open();
            let record = holder.record();
            let other = if cancels {
                let other = thread::spawn(move || {
                    record.end_if(CANCELLED, |_| true, |_| {}, "");
                });
                drop((runner, holder));
                other
            } else {
                assert!(runner.begin().is_some() && runner.finish(COMPLETED, case.value(), None));
                thread::spawn(move || drop(holder))
            };
            if !record.look().is_let() {
                case.counters.kind.free();
            }
            other.join().unwrap();
            case.settle(1);
        });
    }
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
        assert_eq!(case.counters.notified.load(Relaxed), 1);
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

/// What a submission and a shutdown of a worker pool share (`task/shutdown.rs`).
struct Door {
    phase: AtomicU32,
    accepted: AtomicU64,
    ended: AtomicU64,
    /// What functions use, and whoever has shut down takes away.
    used: UnsafeCell<()>,
}

const OPEN: u32 = 0;
const STOPPING: u32 = 2;

/// Goal: when a shutdown that stops has found nothing under way no function runs, and none will. Method: a
/// submission, and the run of what it has pushed, against a shutdown.
#[test]
fn a_late_submission_against_shutdown() {
    explore(3, || {
        let case = Case::new(false);
        let (runner, holder) = case.open();
        let door = Arc::new(Door {
            phase: AtomicU32::new(OPEN),
            accepted: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            used: UnsafeCell::new(()),
        });
        let inner = Arc::clone(&door);
        let value = case.value();
        let worker = thread::spawn(move || {
            if inner.phase.load(Relaxed) != OPEN {
                return;
            }
            inner.accepted.store(1, Release);
            if runner.begin().is_some() {
                barrier_after_change();
                if inner.phase.load(Relaxed) == STOPPING {
                    drop((runner, value));
                } else {
                    inner.used.with_mut(|_| ());
                    runner.finish(COMPLETED, value, None);
                }
            }
            inner.ended.store(1, Release);
        });
        door.phase.fetch_max(STOPPING, AcqRel);
        store_load_barrier();
        let ended = door.ended.load(Acquire);
        if door.accepted.load(Acquire) == ended {
            door.used.with_mut(|_| ());
        }
        worker.join().unwrap();
        drop(holder);
        case.settle(1);
    });
}

/// A closure that waits for its time, and ends its task when it runs.
pub(crate) struct Sleeping {
    runner: Runner<Noted, Counted>,
    value: Counted,
}

impl Run for Sleeping {
    fn run(self) {
        if self.runner.begin().is_some() {
            self.runner.finish(COMPLETED, self.value, None);
        }
    }
}

impl Parks<Noted> for Sleeping {
    fn record(&self) -> &'static Record<Noted> {
        self.runner.record()
    }
}

/// Goal: a closure that waits for its time runs once, or is dropped once, and its record is not free
/// while a wheel has it. Method: it is parked as the task is cancelled by its handle, which then goes and
/// takes a free record; the holder of the wheel takes it out at some moment.
#[test]
fn expiry_against_cancel() {
    explore(3, || {
        let case = Case::new(false);
        let (runner, holder) = case.open();
        let value = case.value();
        let wheel = thread::spawn(move || {
            if let Ok(record) = Record::park(Sleeping { runner, value }) {
                loom::thread::yield_now();
                if let Some(parcel) = record.unfile() {
                    parcel.run();
                }
            }
        });
        let may = |seen: crate::task::record::word::Seen| seen.status() != RUNNING;
        let cancelled = holder.record().end_if(CANCELLED, may, |_| {}, "");
        drop(holder);
        let (next_runner, next) = case.open();
        let next_worker = case.run(next_runner);
        assert_eq!(wait(&next), COMPLETED);
        drop(next);
        wheel.join().unwrap();
        next_worker.join().unwrap();
        let count = |status: u32| case.counters.ends[status as usize].load(Relaxed);
        assert_eq!(count(CANCELLED), usize::from(cancelled));
        case.settle(2);
    });
}

/// Goal: the same for a task that is parked already, and is taken out by its time and by its end at
/// once: one of them has the closure. Method: it is parked before; bound 3.
#[test]
fn two_take_a_closure_out() {
    explore(3, || {
        let case = Case::new(false);
        let (runner, holder) = case.open();
        let value = case.value();
        let record = Record::park(Sleeping { runner, value }).unwrap_or_else(|_| unreachable!());
        let wheel = thread::spawn(move || {
            if let Some(parcel) = record.unfile() {
                parcel.run();
            }
        });
        holder.record().end_if(CANCELLED, |_| true, |_| {}, "");
        drop(holder);
        wheel.join().unwrap();
        case.settle(1);
    });
}

/// Goal: a report sees what who ended the task has noted. Method: a guard ends one that runs, and notes it behind the
/// end; the handle has seen the end, and waits for the mark.
#[test]
fn a_report_against_the_note() {
    explore(3, || {
        let case = Case::new(false);
        let (runner, holder) = case.open();
        assert!(runner.begin().is_some());
        let record = holder.record();
        let times = Arc::new(UnsafeCell::new(0));
        let noted = Arc::clone(&times);
        let guard = thread::spawn(move || {
            // SAFETY: nobody reads it before the mark.
            record.end_if(TIMED_OUT, |_| true, |_| noted.with_mut(|at| unsafe { *at = 1 }), "");
        });
        assert_eq!(wait(&holder), TIMED_OUT);
        while record.look().is_unnoted() {
            thread::yield_now();
        }
        // SAFETY: the mark has been seen, and nobody writes it any more.
        assert_eq!(times.with(|at| unsafe { *at }), 1);
        guard.join().unwrap();
        drop((runner, holder));
        case.settle(1);
    });
}

/// Goal: whoever ends a task may look at its record until all have been told, though both ends have left
/// meanwhile. Method: the handle goes after the runner has left; the guard is telling, or is not.
#[test]
fn a_handle_that_goes_last_against_telling() {
    explore(2, || {
        let case = Case::new(true);
        let (runner, holder) = case.open();
        let record = holder.record();
        let worker = case.run(runner);
        let guard = thread::spawn(move || {
            record.end_if(TIMED_OUT, |seen| seen.status() == RUNNING, |_| {}, "");
        });
        worker.join().unwrap();
        drop(holder);
        guard.join().unwrap();
        case.settle(1);
    });
}

/// Goal: the next tenant of a record meets nobody of the last: neither a runner that lost, nor a guard
/// that looked before. Method: there is one record; whoever was quicker has freed it, and it is let again
/// at once.
#[test]
fn the_next_tenant_meets_nobody() {
    explore(2, || {
        let case = Case::new(false);
        let (other_runner, other) = case.open();
        let (runner, holder) = case.open();
        let record = holder.record();
        let seen = record.look();
        let worker = case.run(runner);
        let guard = thread::spawn(move || {
            record.end_if(TIMED_OUT, |now| now.is_same_task(seen), |_| {}, "");
        });
        drop(holder);
        let mut tasks = 1;
        if let Some(free) = RecordTable::<Noted>::take() {
            free.meta.counters.set(case.counters);
            let (runner, mut next) = free.publish::<Counted>();
            tasks += 1;
            assert!(runner.begin().is_some());
            runner.finish(COMPLETED, case.value(), None);
            assert_eq!(next.record().status(), COMPLETED);
            assert!(next.take(next.record().look()).is_some());
        }
        worker.join().unwrap();
        guard.join().unwrap();
        assert!(other_runner.forget());
        drop(other);
        // That one has not ended, by the counters.
        case.counters.cleared.fetch_sub(1, Relaxed);
        case.settle(tasks);
    });
}

/// Goal: who has looked at an attempt does nothing to the next one, and an end stays an end. Method: the
/// attempt that was looked at fails, and another begins, as its time is said to be over; or it ends.
#[test]
fn a_late_look_does_not_meet_the_next_attempt() {
    for ends in [false, true] {
        explore(3, move || {
            let case = Case::new(false);
            let (runner, holder) = case.open();
            let record = holder.record();
            assert!(runner.begin().is_some());
            let seen = record.look();
            let value = case.value();
            let worker = thread::spawn(move || {
                if runner.retry() && runner.begin().is_some() {
                    assert!(!record.has(LATE), "of the last attempt");
                    runner.finish(COMPLETED, value, None);
                } else {
                    drop((runner, value));
                }
            });
            if ends {
                let same = move |now: crate::task::record::word::Seen| {
                    now.status() == RUNNING && now.is_same_attempt(seen)
                };
                record.end_if(TIMED_OUT, same, |_| {}, "");
            } else {
                record.mark_running(seen, LATE);
            }
            wait(&holder);
            worker.join().unwrap();
            drop(holder);
            case.settle(1);
        });
    }
}

/// Goal: a closure that is dropped unrun ends its task though nobody else does. Method: the handle waits.
#[test]
fn a_dropped_closure_ends_its_task() {
    explore(3, || {
        let case = Case::new(true);
        let (runner, holder) = case.open();
        let sweeper = thread::spawn(move || drop(runner));
        assert_eq!(wait(&holder), CANCELLED);
        drop(holder);
        sweeper.join().unwrap();
        case.settle(1);
    });
}

/// A closure that attempts share, which keeps the record while some that were overtaken run.
struct Common {
    record: &'static Record<Noted>,
    was_overtaken: AtomicBool,
}

impl Drop for Common {
    fn drop(&mut self) {
        if self.was_overtaken.load(Relaxed) {
            self.record.keep_no_more();
        }
    }
}

/// An attempt that returns. True: it ends the task.
fn returns(case: &Case, runner: Runner<Noted, Counted>, begun: Seen, last: bool) -> bool {
    let value = case.value();
    if !runner.claim(begun, || last) {
        runner.yield_to_other();
        return false;
    }
    runner.finish(COMPLETED, value, None)
}

/// Goal: an attempt that returns as it is overtaken has one runner after it, its task one end, and its
/// record is there until both have returned. Method: the attempt returns while a guard overtakes it, runs
/// the next one and ends the task; the handle goes, or cancels first.
#[test]
fn overtaking_against_the_return() {
    for cancels in [false, true] {
        explore(3, move || {
            let case = Arc::new(Case::new(false));
            let (runner, holder) = case.open();
            let record = holder.record();
            let begun = runner.begin().expect("it has not ended");
            let common = loom::sync::Arc::new(Common { record, was_overtaken: false.into() });
            let (again, mine) = (loom::sync::Arc::clone(&common), Arc::clone(&case));
            let guard = thread::spawn(move || {
                // SAFETY: the task yields `Counted`, and the other attempt claims.
                let Some(next) = (unsafe { record.overtake::<Counted>(begun) }) else {
                    return false;
                };
                again.was_overtaken.store(true, Relaxed);
                let ended = next.begin().is_some_and(|begun| returns(&mine, next, begun, true));
                drop(again);
                ended
            });
            if cancels {
                holder.record().end_if(CANCELLED, |seen| seen.status() != RUNNING, |_| {}, "");
            }
            drop(holder);
            let first = returns(&case, runner, begun, true);
            // What an attempt that was overtaken may look at.
            assert!(first || record.look().is_same_task(begun));
            drop(common);
            let second = guard.join().unwrap();
            assert!(!(first && second));
            let case = Arc::into_inner(case).expect("the only one");
            case.settle(1);
        });
    }
}
