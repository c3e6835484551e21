//! Limits in time: whoever waits hears of the end at the deadline, whatever the function does.

use super::common::{Count, Gate, hang_guard, until};
use super::kit::{pool, settled};
use paceline::task::{Attempt, Fault, Observer, Retry, Status, StuckRecord, WorkerPool};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Default)]
struct Stuck(Mutex<Vec<(String, Option<usize>)>>);

impl Observer for Stuck {
    fn on_stuck(&self, stuck: &StuckRecord<'_>) {
        self.0.lock().unwrap().push((stuck.name.to_owned(), stuck.worker));
    }
}

/// Lets a function return that has heard that its time is over, before anything else happens.
struct Patient(Count);

impl Observer for Patient {
    fn on_stuck(&self, _: &StuckRecord<'_>) {
        self.0.until(1);
        std::thread::sleep(20 * MS);
    }
}

/// Goal: a task whose time is over has timed out, also if its function gives up and returns as if all were well. Method: an
/// observer that lets it return between hearing of it and the end.
#[test]
fn who_gives_up_when_its_time_is_over_has_not_completed() {
    let _guard = hang_guard();
    let pool = pool(2);
    for of_all in [true, false] {
        let returned = Count::new();
        let patient = Arc::new(Patient(returned.clone()));
        let workers = WorkerPool::builder(&pool).observe(patient).build().unwrap();
        let task = workers.task("gives up", move |attempt: &Attempt<'_>| {
            while !attempt.is_cancelled() {
                std::thread::yield_now();
            }
            returned.up();
        });
        let task = if of_all { task.deadline(20 * MS) } else { task.timeout(20 * MS) };
        let report = task.submit().unwrap().wait().unwrap();
        assert_eq!((report.status, report.attempts), (Status::TimedOut, 1), "{of_all}");
        settled(&workers);
    }
}

#[test]
fn a_function_that_does_not_listen_keeps_its_thread_but_not_its_waiter() {
    let _guard = hang_guard();
    let pool = pool(2);
    let stuck = Arc::new(Stuck::default());
    let workers = WorkerPool::builder(&pool).observe(stuck.clone()).build().unwrap();
    let gate = Gate::new();
    let inner = gate.clone();
    let task = workers.task("deaf", move |_: &Attempt<'_>| inner.wait()).timeout(MS);
    let report = task.submit().unwrap().wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::TimedOut, 1));
    assert_eq!(report.result.unwrap_err().message(), "its time was over");
    // The waiter may be the faster one.
    let expected = [("deaf".to_owned(), report.worker)];
    until("the observer", || *stuck.0.lock().unwrap() == expected);
    let stats = workers.stats();
    assert_eq!((stats.task_types[0].running, stats.in_flight), (1, 0));
    let stuck: Vec<_> =
        stats.stuck.iter().map(|one| (one.name, one.id, Some(one.worker))).collect();
    assert_eq!(stuck, [("deaf", report.id, report.worker)]);
    gate.open();
    until("its return", || workers.stats().task_types[0].running == 0);
    assert!(workers.stats().stuck.is_empty());
    settled(&workers);
}

#[test]
fn an_attempt_that_listens_is_followed_by_another() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let work = |attempt: &Attempt<'_>| {
        if attempt.number() == 1 {
            assert!(attempt.time_left().is_some());
            until("the end of its time", || attempt.is_cancelled());
            return Err(Fault::new("too slow"));
        }
        Ok(attempt.number())
    };
    // With attempts to spare a later one may take as long as a busy machine needs.
    let task = workers.task("listens", work).timeout(5 * MS).retry(Retry::fixed(99, MS));
    let report = task.grace(HOUR).submit().unwrap().wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Completed, 2));
    settled(&workers);
}

#[test]
fn a_soft_time_is_told_to_the_function_and_to_nobody_else() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let listens = |attempt: &Attempt<'_>| {
        until("its soft time", || attempt.is_cancelled());
        assert!(attempt.is_over_softly() && attempt.time_left().is_none());
        attempt.number()
    };
    let kind =
        workers.task_type("soft").soft_timeout(MS).retry(Retry::fixed(9, MS)).build().unwrap();
    let own = workers.task("own", listens).soft_timeout(2 * MS).submit().unwrap();
    for task in [kind.submit(listens).unwrap(), own] {
        let report = task.wait().unwrap();
        assert_eq!((report.status, report.attempts), (Status::Completed, 1));
    }
    assert!(workers.stats().stuck.is_empty());
    let never = kind.task(|attempt: &Attempt<'_>| attempt.is_cancelled()).soft_timeout(HOUR);
    assert!(!never.submit().unwrap().wait().unwrap().result.unwrap());
    let wrong =
        workers.task_type("z").soft_timeout(Duration::ZERO).build().unwrap_err().to_string();
    assert_eq!(wrong, "soft_timeout is 0ns, but must be more than 0, up to 100 years");
    settled(&workers);
}

/// Goal: who waits hears of it although retries are left, because none can begin. Method: an attempt that
/// does not return, with a waiter and a callback.
#[test]
fn a_retry_that_cannot_begin_keeps_nobody_waiting() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let (gate, told) = (Gate::new(), Count::new());
    let kind = workers.task_type("deaf").retry(Retry::fixed(9, MS)).timeout(MS).grace(MS);
    let kind = kind.build().unwrap();
    let submit = || {
        let inner = gate.clone();
        kind.submit(move |_: &Attempt<'_>| -> Result<(), Fault> {
            inner.wait();
            Err(Fault::new("too late"))
        })
    };
    let inner = told.clone();
    submit().unwrap().on_end(move |status| {
        assert_eq!(status, Status::TimedOut);
        inner.up();
    });
    told.until(1);
    let report = submit().unwrap().wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::TimedOut, 1));
    gate.open();
    until("their return", || workers.stats().task_types[0].running == 0);
    settled(&workers);
    assert_eq!((gate.entered(), workers.stats().task_types[0].retried), (2, 0));
}

#[test]
fn time_in_the_queue_and_in_all_are_limited() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let first = workers.task("first", move |_: &Attempt<'_>| inner.wait()).submit().unwrap();
    gate.until_entered(1);
    // The only thread is taken, and so are all that could run a timer.
    let queued = workers.task("queued", |_: &Attempt<'_>| ()).queue_timeout(MS).submit().unwrap();
    let overall = workers.task("overall", |_: &Attempt<'_>| ()).deadline(MS).submit().unwrap();
    for task in [queued, overall] {
        let report = task.wait().unwrap();
        assert_eq!((report.status, report.attempts), (Status::TimedOut, 0));
        let message = report.result.unwrap_err().message().to_owned();
        assert_eq!(message, "its time was over before it could begin");
    }
    gate.open();
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

#[test]
fn retries_end_with_the_time_in_all() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let fails = |_: &Attempt<'_>| -> Result<(), _> { Err(Fault::new("no")) };
    let task = workers.task("d", fails).retry(Retry::fixed(u32::MAX, HOUR)).deadline(HOUR);
    let report = task.submit().unwrap().wait().unwrap();
    // The next attempt could not begin in time, so there is none.
    assert_eq!((report.status, report.attempts), (Status::Failed, 1));
    settled(&workers);
}
