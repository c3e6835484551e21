//! Functions that run again and again.

use super::common::{Count, Gate, hang_guard, until};
use super::kit::{Notes, Stage, pool, settled};
use paceline::task::{Attempt, Fault, MissedTick, Phases, Retry, WorkerPool};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn it_runs_at_each_tick_until_it_is_dropped() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let notes = Notes::default();
    let mut runs = 0;
    let inner = notes.clone();
    let work = move |_: &Attempt<'_>| {
        runs += 1;
        inner.add(runs);
    };
    let task = stage.workers.task("tick", work).delay(HOUR / 2);
    let periodic = task.every(HOUR, MissedTick::Skip).unwrap();
    stage.pass(HOUR);
    assert_eq!(notes.take(), [0; 0]);
    stage.pass(HOUR / 2 + MS);
    assert_eq!(notes.take(), [1]);
    for expected in 2..6 {
        stage.pass(HOUR);
        assert_eq!(notes.take(), [expected]);
    }
    assert_eq!((periodic.runs(), periodic.missed()), (5, 0));
    drop(periodic);
    stage.pass(9 * HOUR);
    assert_eq!(notes.take(), [0; 0]);
    settled(&stage.workers);
    assert_eq!(stage.workers.audit().completed, 5);
}

/// A periodic task whose runs wait at a gate, and what happens to the ticks meanwhile: how many runs
/// there have been after the gate was opened, and after one tick more.
fn held_up(missed: MissedTick) -> [u64; 2] {
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let work = move |_: &Attempt<'_>| inner.wait();
    let periodic = workers.task("held up", work).every(MS, missed).unwrap();
    gate.until_entered(1);
    until("four ticks that are missed", || periodic.missed() >= 4);
    assert_eq!((periodic.runs(), gate.entered()), (1, 1));
    // It waits for the run that is held.
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(5 * MS);
            gate.open();
        });
        drop(periodic);
    });
    settled(&workers);
    [gate.entered(), workers.audit().completed]
}

#[test]
fn runs_never_overlap_and_missed_ticks_are_counted() {
    let _guard = hang_guard();
    assert_eq!(held_up(MissedTick::Skip), [1, 1]);
    // The one that is owed is no more wanted.
    assert_eq!(held_up(MissedTick::Coalesce), [1, 1]);
}

/// Goal: what is missed is made up for by one run at once, or skipped. Method: a retry that takes three
/// ticks, on a clock that is turned.
#[test]
fn missed_ticks_coalesce_or_are_skipped() {
    let _guard = hang_guard();
    for (missed, expected) in [(MissedTick::Skip, [1, 2]), (MissedTick::Coalesce, [2, 3])] {
        let stage = Stage::new();
        let notes = Notes::default();
        let inner = notes.clone();
        let mut runs = 0;
        let work = move |attempt: &Attempt<'_>| {
            runs += u32::from(attempt.number() == 1);
            if runs == 1 && attempt.number() == 1 {
                return Err(Fault::new("the first run takes long"));
            }
            inner.add(runs);
            Ok(())
        };
        let task = stage.workers.task("slow", work).retry(Retry::fixed(1, 7 * HOUR / 2));
        let periodic = task.every(HOUR, missed).unwrap();
        // A timer may be a tick of the wheel late.
        stage.pass(MS);
        for _ in 0..4 {
            stage.pass(HOUR);
        }
        assert_eq!(notes.take(), [0; 0]);
        assert_eq!((periodic.runs(), periodic.missed()), (1, 3));
        stage.pass(HOUR * 3 / 5);
        assert_eq!(periodic.runs(), expected[0], "{missed:?}");
        stage.pass(HOUR / 2);
        assert_eq!(periodic.runs(), expected[1], "{missed:?}");
        assert!(notes.take().into_iter().eq(1..=expected[1] as u32));
        drop(periodic);
        stage.settle();
        settled(&stage.workers);
    }
}

#[test]
fn a_detached_one_ends_with_the_worker_pool() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let notes = Notes::default();
    stage.workers.task("tick", notes.pen(1)).every(HOUR, MissedTick::Skip).unwrap().detach();
    stage.pass(HOUR + MS);
    stage.pass(HOUR);
    assert_eq!(notes.take(), [1, 1]);
    let report = stage.workers.shutdown(Phases::default());
    assert!(report.drained);
    stage.pass(3 * HOUR);
    stage.pass(3 * HOUR);
    assert_eq!(notes.take(), [0; 0]);
    assert_eq!(stage.pool.audit().in_flight, 0);
    assert!(stage.workers.task("late", notes.pen(1)).every(HOUR, MissedTick::Skip).is_err());
}

#[test]
fn a_period_out_of_range_is_named() {
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let task = || workers.task("tick", |_: &Attempt<'_>| ());
    let error = task().every(Duration::ZERO, MissedTick::Skip).unwrap_err();
    assert_eq!(error.to_string(), "period is 0ns, but must be 1 microsecond to 100 years");
    let error = task().delay(Duration::MAX).every(HOUR, MissedTick::Skip).unwrap_err();
    assert!(error.to_string().starts_with("delay is 18446744073709551615.999999999s"), "{error}");
}

/// Goal: a drop waits for the run that is under way, and for no other. Method: one run is held until it is asked to
/// stop; another one is to be tried again in an hour.
#[test]
fn a_drop_asks_the_run_that_runs_and_cancels_the_one_that_waits() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let inside = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&inside);
    let until_asked = move |attempt: &Attempt<'_>| {
        flag.store(true, SeqCst);
        until("the question", || attempt.is_cancelled());
        thread::sleep(5 * MS);
        flag.store(false, SeqCst);
    };
    let asked = workers.task("asked", until_asked).every(MS, MissedTick::Skip).unwrap();
    until("a run", || inside.load(SeqCst));
    drop(asked);
    assert!(!inside.load(SeqCst), "it has returned");

    let (tried, gone) = (Count::new(), Count::new());
    let fails = {
        let (tried, gone) = (tried.clone(), gone.on_drop());
        move |_: &Attempt<'_>| {
            let _held = &gone;
            tried.up();
            Err::<(), _>(Fault::new("on purpose"))
        }
    };
    let task = workers.task("fails", fails).retry(Retry::fixed(1, HOUR));
    let waits = task.every(MS, MissedTick::Skip).unwrap();
    tried.until(1);
    drop(waits);
    assert_eq!((tried.get(), gone.get()), (1, 1), "its function was dropped");
    settled(&workers);
}
