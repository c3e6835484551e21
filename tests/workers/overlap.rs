//! Retries that do not wait for an attempt that has outlived its time.

use super::common::{Count, Gate, hang_guard, until};
use super::kit::{Host, Stage, pool, settled};
use paceline::task::{Attempt, Fault, Health, Retry, Status, TaskType, WorkerPool};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// Tasks with an attempt's time of one hour, and two retries at once.
fn overlapping(workers: &WorkerPool) -> TaskType {
    let retry = Retry::fixed(2, Duration::ZERO);
    workers.task_type("late").timeout(HOUR).retry(retry).overlap_retries(true).build().unwrap()
}

/// The time of the attempts that run is over. What follows may take its time.
fn make_late(stage: &Stage) {
    drop(stage.pass_without_settling(HOUR + HOUR));
}

/// Counts what is dropped.
struct Dropped(Count);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.up();
    }
}

/// Goal: the retry starts though the first attempt runs, its value is the task's, and what the first comes
/// to is discarded; the closure goes once, after both. Method: the first attempt is held at a gate.
#[test]
fn a_retry_overtakes_and_the_late_outcome_is_discarded() {
    let _guard = hang_guard();
    let stage = Stage::with(2);
    let workers = &stage.workers;
    let kind = overlapping(workers);
    let (gate, dropped) = (Gate::new(), Count::new());
    let (inner, data) = (gate.clone(), Dropped(dropped.clone()));
    let told = Count::new();
    let hears = told.clone();
    let task = kind
        .task_concurrent(move |attempt: &Attempt<'_>| {
            let _ = &data;
            if attempt.number() == 1 {
                inner.wait();
                if attempt.is_cancelled() && attempt.time_left() == Some(Duration::ZERO) {
                    hears.up();
                }
            }
            attempt.number()
        })
        .submit()
        .unwrap();
    gate.until_entered(1);
    make_late(&stage);
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Completed, 2));
    assert_eq!(report.result.unwrap(), 2);
    let stats = kind.stats();
    assert_eq!((stats.completed, stats.retried, stats.discarded), (1, 1, 0));
    assert_eq!(dropped.get(), 0, "an attempt runs still");
    until("one that is stuck", || workers.stats().stuck.len() == 1);
    assert_eq!(workers.health().health, Health::Degraded);
    gate.open();
    until("the late outcome", || kind.stats().discarded == 1);
    until("the end of the closure", || dropped.get() == 1);
    assert_eq!(told.get(), 1, "it was told to give up");
    until("a free thread", || workers.health().health == Health::Ready);
    let stats = kind.stats();
    assert_eq!((stats.completed, stats.failed, stats.retried), (1, 0, 1));
    settled(workers);
}

/// Goal: each attempt that outlives its time is overtaken, as long as there are retries; then the task
/// ends. Method: none returns before the end.
#[test]
fn attempts_are_overtaken_until_there_are_no_more() {
    let _guard = hang_guard();
    let stage = Stage::with(4);
    let workers = &stage.workers;
    let kind = overlapping(workers);
    let gate = Gate::new();
    let inner = gate.clone();
    let work = move |_: &Attempt<'_>| inner.wait();
    let task = kind.task_concurrent(work).submit().unwrap();
    for attempts in 1..=3 {
        gate.until_entered(attempts);
        make_late(&stage);
    }
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::TimedOut, 3));
    until("three that are stuck", || workers.stats().stuck.len() == 3);
    gate.open();
    until("both that were overtaken", || kind.stats().discarded == 2);
    settled(workers);
    assert_eq!(kind.stats().timed_out, 1);
}

/// Goal: the thread of one that was overtaken is stuck, before the next attempt and beside it, and that one's
/// is not. Method: the next one is hours away, and the task is cancelled before it; or it is held at a gate.
#[test]
fn who_was_overtaken_is_stuck_and_who_overtakes_is_not() {
    let _guard = hang_guard();
    let stage = Stage::with(3);
    let workers = &stage.workers;
    for delay in [9 * HOUR, Duration::ZERO] {
        let name = format!("after {delay:?}");
        let kind = workers.task_type(&name).timeout(HOUR).retry(Retry::fixed(1, delay));
        let kind = kind.overlap_retries(true).build().unwrap();
        let gates = [Gate::new(), Gate::new()];
        let inner = gates.clone();
        let work = move |attempt: &Attempt<'_>| inner[attempt.number() as usize - 1].wait();
        let task = kind.task_concurrent(work).submit().unwrap();
        gates[0].until_entered(1);
        make_late(&stage);
        if delay.is_zero() {
            gates[1].until_entered(1);
            let stuck = workers.stats().stuck;
            assert_eq!((stuck.len(), kind.stats().running), (1, 2));
            gates[1].open();
            assert_ne!(task.wait().unwrap().worker, Some(stuck[0].worker));
        } else {
            until("it was overtaken", || task.status() == Status::Retrying);
            until("its thread is stuck", || workers.stats().stuck.len() == 1);
            assert!(task.cancel());
        }
        gates[0].open();
        until("the late outcome", || kind.stats().discarded == 1);
        until("a free thread", || workers.stats().stuck.is_empty());
    }
    settled(workers);
}

/// Without the option the retry waits, and so does that of a function which only one thread may call.
#[test]
fn without_it_the_retry_waits() {
    let _guard = hang_guard();
    let stage = Stage::with(2);
    let workers = &stage.workers;
    let (retry, grace) = (Retry::fixed(1, Duration::ZERO), HOUR * 9);
    let kind = workers.task_type("waits").timeout(HOUR).grace(grace).retry(retry.clone());
    let kind = kind.build().unwrap();
    let both =
        workers.task_type("once").timeout(HOUR).grace(grace).retry(retry).overlap_retries(true);
    let both = both.build().unwrap();
    let gate = Gate::new();
    let inside = Arc::new(AtomicU32::new(0));
    let work = || {
        let (inner, inside) = (gate.clone(), Arc::clone(&inside));
        move |attempt: &Attempt<'_>| {
            assert_eq!(inside.fetch_add(1, SeqCst), 0, "they overlap");
            if attempt.number() == 1 {
                inner.wait();
            }
            inside.fetch_sub(1, SeqCst);
            match attempt.number() {
                1 => Err(Fault::new("late")),
                _ => Ok(()),
            }
        }
    };
    let first = kind.task_concurrent(work()).submit().unwrap();
    gate.until_entered(1);
    make_late(&stage);
    until("its time is over", || workers.health().health == Health::Degraded);
    gate.open();
    assert_eq!(first.wait().unwrap().attempts, 2);
    let gate = Gate::new();
    let alone = work();
    let inner = gate.clone();
    let second = both
        .submit(move |attempt: &Attempt<'_>| {
            if attempt.number() == 1 {
                inner.wait();
            }
            alone(attempt)
        })
        .unwrap();
    gate.until_entered(1);
    make_late(&stage);
    until("its time is over", || workers.health().health == Health::Degraded);
    gate.open();
    assert_eq!(second.wait().unwrap().attempts, 2);
    assert_eq!(kind.stats().discarded + both.stats().discarded, 0);
    settled(workers);
}

/// Goal: the place of one that was overtaken on a thread is its own until it returns, and its key its
/// task's. Method: one place: the retry waits for it. Two: another task of the key waits for both.
#[test]
fn places_and_keys_are_kept_until_all_have_returned() {
    let _guard = hang_guard();
    let stage = Stage::with(3);
    let workers = &stage.workers;
    for places in [1, 2] {
        let retry = Retry::fixed(1, Duration::ZERO);
        let name = format!("places {places}");
        let kind = workers.task_type(&name).timeout(HOUR).retry(retry).overlap_retries(true);
        let kind = kind.max_running(places).build().unwrap();
        let (gate, other) = (Gate::new(), Count::new());
        let inner = gate.clone();
        let work = move |attempt: &Attempt<'_>| {
            if attempt.number() == 1 {
                inner.wait();
            }
        };
        let task = kind.task_concurrent(work).key("one").submit().unwrap();
        let ran = other.clone();
        let next = workers.task("next", move |_: &Attempt<'_>| ran.up()).key("one");
        let next = next.submit().unwrap();
        gate.until_entered(1);
        make_late(&stage);
        if places == 1 {
            until("the retry waits", || kind.stats().waiting == 1);
            assert_eq!(kind.stats().running, 1);
            gate.open();
            assert_eq!(task.wait().unwrap().attempts, 2);
        } else {
            assert_eq!(task.wait().unwrap().attempts, 2);
            assert_eq!(other.get(), 0, "the key is not free");
            gate.open();
        }
        assert_eq!(next.wait().unwrap().status, Status::Completed);
        until("the late outcome", || kind.stats().discarded == 1);
        // The places are all there again.
        let many: Vec<_> =
            (0..8).map(|_| kind.task_concurrent(|_: &Attempt<'_>| ()).submit().unwrap()).collect();
        for task in many {
            assert_eq!(task.wait().unwrap().status, Status::Completed);
        }
    }
    settled(workers);
}

/// Goal: under a storm every task has one end, every closure goes once, every late outcome is counted, and
/// the thread of an attempt that was overtaken does not disturb the next. Method: attempts that take
/// about as long as their time, cancelled or let go by their handles now and then.
#[test]
fn a_storm_of_late_attempts_settles() {
    let _guard = hang_guard();
    let pool = pool(4);
    let workers = WorkerPool::new(&pool);
    let retry = Retry::fixed(3, Duration::ZERO);
    let limit = Duration::from_micros(200);
    let kind = workers.task_type("storm").timeout(limit).retry(retry).overlap_retries(true);
    let kind = kind.max_running(3).build().unwrap();
    let dropped = Count::new();
    const TASKS: u64 = 600;
    let submit = |number: u64| {
        let data = Dropped(dropped.clone());
        let work = move |attempt: &Attempt<'_>| {
            let _ = &data;
            if !number.is_multiple_of(3) && attempt.number() < 3 {
                std::thread::sleep(Duration::from_micros(number % 5 * 100));
            }
            match number % 7 {
                0 => Err(Fault::new("now and then")),
                _ => Ok(()),
            }
        };
        kind.task_concurrent(work).key(number % 50).submit().unwrap()
    };
    let tasks: Vec<_> = (0..TASKS).map(submit).collect();
    for (number, task) in tasks.into_iter().enumerate() {
        match number % 5 {
            0 => drop(task),
            1 => {
                task.cancel();
            }
            _ => assert!(task.wait().unwrap().status.is_end()),
        }
    }
    settled(&workers);
    until("every closure has gone", || dropped.get() == TASKS);
    let stats = kind.stats();
    assert_eq!((stats.running, stats.waiting), (0, 0));
    assert!(stats.discarded <= stats.retried + stats.timed_out + stats.cancelled);
}

/// Goal: the same for a task whose attempts a host takes. Method: the first is out when its time is over; its
/// retry comes, and may run though there is one place.
#[test]
fn an_attempt_that_is_out_is_overtaken_and_completed_in_vain() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let workers = &stage.workers;
    let host = Host::of(workers);
    let retry = Retry::fixed(1, Duration::ZERO);
    let kind = workers.task_type("tagged").timeout(HOUR).retry(retry).overlap_retries(true);
    let kind = kind.max_running(1).build().unwrap();
    let task = kind.task_tagged(7).submit().unwrap();
    let [first] = host.some();
    assert!(!first.is_cancelled().unwrap());
    stage.pass(HOUR + HOUR);
    assert!(first.is_cancelled().unwrap());
    let [second] = host.some();
    assert_eq!(second.number(), 2);
    assert!(first.is_cancelled().unwrap());
    assert!(!second.is_cancelled().unwrap());
    first.heartbeat().unwrap();
    let late = first.complete(Ok(())).unwrap_err();
    assert_eq!(late.to_string(), "this attempt has ended, was closed, or was taken");
    assert_eq!(task.status(), Status::Running);
    assert_eq!(kind.stats().discarded, 1);
    assert_eq!(second.complete(Ok(())).unwrap(), Status::Completed);
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Completed, 2));
    assert_eq!(kind.stats().discarded, 1);
    settled(workers);
}
