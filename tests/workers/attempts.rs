//! Attempts: what they are told, what they answer, and what follows.

use super::common::{Count, Gate, hang_guard, until};
use super::kit::{Stage, pool, settled};
use paceline::Lane;
use paceline::task::{Attempt, EndRecord, Fault, Observer, Retry, Status, WorkerPool};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_value_comes_back_with_its_report() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let task = workers.task("add", |_: &Attempt<'_>| 20 + 22).lane(Lane::High).submit().unwrap();
    assert_eq!(task.name(), "add");
    let id = task.id();
    let report = task.wait().unwrap();
    assert_eq!((report.id, report.name, report.status), (id, "add", Status::Completed));
    assert_eq!((report.result.unwrap(), report.attempts), (42, 1));
    assert!(report.worker.is_some_and(|worker| worker < 2));
    settled(&workers);
}

#[test]
fn a_failure_is_tried_again_as_often_as_was_said() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let numbers = Arc::clone(&seen);
    let work = move |attempt: &Attempt<'_>| -> Result<(), Fault> {
        numbers.lock().unwrap().push(attempt.number());
        Err(Fault::new(format!("no {}", attempt.number())))
    };
    let task = workers.task("flaky", work).retry(Retry::fixed(2, MS)).submit().unwrap();
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Failed, 3));
    assert_eq!(report.result.unwrap_err().message(), "no 3");
    assert_eq!(*seen.lock().unwrap(), [1, 2, 3]);
    let kinds = workers.stats().task_types;
    assert_eq!((kinds[0].failed, kinds[0].retried), (1, 2));
    settled(&workers);
}

#[test]
fn an_attempt_that_succeeds_is_the_last() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let work = |attempt: &Attempt<'_>| match attempt.number() {
        1 => Err(Fault::retry_after("busy", MS)),
        2 => panic!("not yet"),
        number => Ok(number),
    };
    let retry = Retry::fixed(9, Duration::ZERO);
    let report = workers.task("third", work).retry(retry).submit().unwrap().wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Completed, 3));
    assert_eq!(report.result.unwrap(), 3);
    settled(&workers);
}

#[test]
fn permanent_means_no_other_attempt() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let work = |_: &Attempt<'_>| -> Result<(), _> { Err(Fault::permanent("no such file")) };
    let report = workers.task("p", work).retry(Retry::fixed(9, MS)).submit().unwrap().wait();
    let report = report.unwrap();
    assert_eq!((report.status, report.attempts), (Status::Failed, 1));
    assert!(report.result.unwrap_err().is_permanent());
    settled(&workers);
}

#[test]
fn panics_and_errors_become_failures_with_their_message() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let panics = |_: &Attempt<'_>| -> u8 { panic!("out of {}", "ink") };
    let report = workers.task("panics", panics).submit().unwrap().wait().unwrap();
    let fault = report.result.unwrap_err();
    assert_eq!((report.status, fault.message()), (Status::Failed, "out of ink"));
    assert!(fault.is_panic());
    let errs = |_: &Attempt<'_>| "seven".parse::<u32>();
    let report = workers.task("errs", errs).submit().unwrap().wait().unwrap();
    let message = report.result.unwrap_err().message().to_owned();
    assert_eq!(message, "invalid digit found in string");
    super::common::until("the pool's books", || pool.audit().failed == 2);
    settled(&workers);
}

#[test]
fn a_kind_lends_its_settings_to_its_tasks() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let build = |retries| workers.task_type("k").retry(Retry::fixed(retries, MS)).build();
    let kind = build(1).unwrap();
    let fails = |_: &Attempt<'_>| -> Result<(), _> { Err(Fault::new("no")) };
    assert_eq!(kind.submit(fails).unwrap().wait().unwrap().attempts, 2);
    let own = kind.task(fails).retry(Retry::none()).submit().unwrap();
    assert_eq!(own.wait().unwrap().attempts, 1);
    assert_eq!(build(1).unwrap().name(), "k");
    assert_eq!(
        build(2).unwrap_err().to_string(),
        "task type is \"k\", which is there already with other settings, but must be a new name, or the same settings"
    );
    let wrong = workers.task_type("z").timeout(Duration::ZERO).build().unwrap_err();
    assert_eq!(wrong.to_string(), "timeout is 0ns, but must be more than 0, up to 100 years");
    settled(&workers);
}

#[test]
fn what_is_posted_runs_and_is_in_the_pools_books() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("post").lane(Lane::Low).build().unwrap();
    let (ran, gate) = (Count::new(), Gate::new());
    for _ in 0..100 {
        let ran = ran.clone();
        kind.post(move || ran.up()).unwrap();
    }
    ran.until(100);
    assert_eq!(workers.audit().submitted, 0);
    drop(gate);
    super::common::until("the pool's books", || pool.audit().completed == 100);
}

/// What an observer has heard.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Observer for Heard {
    fn on_end(&self, end: &EndRecord<'_>) {
        let message = end.message.unwrap_or("-");
        let line = format!("{} {} {} {message}", end.name, end.status, end.attempts);
        self.0.lock().unwrap().push(line);
    }

    fn on_retry(&self, name: &str, _: u64, attempt: u32, message: &str, delay: Duration) {
        self.0.lock().unwrap().push(format!("{name} retry {attempt} {message} {delay:?}"));
        panic!("observers may not hurt");
    }
}

#[test]
fn observers_hear_of_each_retry_and_each_end() {
    let _guard = hang_guard();
    let pool = pool(1);
    let heard = Arc::new(Heard::default());
    let workers = WorkerPool::builder(&pool).observe(heard.clone()).build().unwrap();
    let work = |attempt: &Attempt<'_>| match attempt.number() {
        1 => Err(Fault::new("once")),
        _ => Ok(()),
    };
    let task = workers.task("o", work).retry(Retry::fixed(1, MS)).submit().unwrap();
    assert_eq!(task.wait().unwrap().status, Status::Completed);
    settled(&workers);
    assert_eq!(*heard.0.lock().unwrap(), ["o retry 1 once 1ms", "o COMPLETED 2 -"]);
}

/// Whatever comes after it: signs of life, which let the time of the attempt begin anew, and other attempts.
#[test]
fn the_time_in_the_queue_is_that_before_the_first_attempt() {
    let _guard = hang_guard();
    for (beats, attempts) in [(false, 1), (true, 1), (false, 3), (true, 3)] {
        let stage = Stage::new();
        let (busy, inside) = (Gate::new(), Gate::new());
        let inner = busy.clone();
        stage.pool.post(move || inner.wait()).unwrap();
        busy.until_entered(1);
        let inner = inside.clone();
        let work = move |attempt: &Attempt<'_>| {
            if attempt.number() == 1 {
                inner.wait();
            }
            if beats {
                attempt.heartbeat();
            }
            if attempt.number() < attempts { Err(Fault::new("again")) } else { Ok(()) }
        };
        let task = stage.workers.task("late", work).retry(Retry::fixed(9, 10 * SECOND));
        let task = task.submit().unwrap();
        _ = stage.pass_without_settling(5 * SECOND);
        busy.open();
        inside.until_entered(1);
        _ = stage.pass_without_settling(3 * SECOND);
        inside.open();
        stage.settle();
        for _ in 1..attempts {
            stage.pass(11 * SECOND);
        }
        let report = task.wait().unwrap();
        assert_eq!(report.attempts, attempts);
        let times = (report.queue_time, report.run_time);
        assert_eq!(times, (5 * SECOND, 3 * SECOND), "beats: {beats}, attempts: {attempts}");
    }
}

/// Goal: a task whose time is over has run until then, however late its function returns, and whatever signs of life it
/// gives. Method: a deaf function of two threads, by the test's clock; who waits ends the task.
#[test]
fn a_time_that_is_over_is_counted_once() {
    let _guard = hang_guard();
    let stage = Stage::with(2);
    let gate = Gate::new();
    let inner = gate.clone();
    let deaf = move |attempt: &Attempt<'_>| {
        inner.wait();
        attempt.heartbeat();
    };
    let task = stage.workers.task("deaf", deaf).timeout(4 * SECOND).submit().unwrap();
    gate.until_entered(1);
    let settle = stage.pass_without_settling(5 * SECOND);
    settle();
    until("the end of its time", || task.is_done());
    let settle_later = stage.pass_without_settling(3 * SECOND);
    gate.open();
    settle_later();
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.run_time), (Status::TimedOut, 5 * SECOND));
}

/// Goal: a task that never began has waited until its end. Method: one that nobody takes is dropped as its pool stops.
#[test]
fn what_never_began_has_waited_until_its_end() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let kind = stage.workers.task_type("late").build().unwrap();
    let task = kind.task_tagged(7).submit().unwrap();
    stage.pass(5 * SECOND);
    _ = stage.pool.shutdown(Duration::ZERO);
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.attempts, report.worker), (Status::Cancelled, 0, None));
    assert_eq!((report.queue_time, report.run_time), (5 * SECOND, Duration::ZERO));
}
