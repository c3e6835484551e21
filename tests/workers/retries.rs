//! When and how often a failed task is tried again.

use super::common::{Count, Gate, hang_guard, until};
use super::kit::{Stage, pool, settled};
use paceline::task::{
    Attempt, Backoff, Fault, Observer, Retry, RetryBudget, Status, TaskHandle, WorkerPool,
};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

fn fails(_: &Attempt<'_>) -> Result<(), Fault> {
    Err(Fault::new("the backend is down"))
}

/// The delays that were announced.
#[derive(Default)]
struct Delays(Mutex<Vec<Duration>>);

impl Observer for Delays {
    fn on_retry(&self, _: &str, _: u64, _: u32, _: &str, delay: Duration) {
        self.0.lock().unwrap().push(delay);
    }
}

/// The delays of three tasks that fail five times, one after the other.
fn delays(seed: Option<u64>) -> Vec<Duration> {
    let pool = pool(1);
    let heard = Arc::new(Delays::default());
    let mut builder = WorkerPool::builder(&pool).observe(heard.clone());
    if let Some(seed) = seed {
        builder = builder.seed(seed);
    }
    let workers = builder.build().unwrap();
    let retry = Retry::new(4, Backoff::exponential(Duration::from_nanos(1000)));
    for _ in 0..3 {
        let task = workers.task("jitter", fails).retry(retry.clone()).submit().unwrap();
        assert_eq!(task.wait().unwrap().attempts, 5);
    }
    settled(&workers);
    heard.0.lock().unwrap().clone()
}

#[test]
fn jitter_is_repeated_from_its_seed_and_differs_from_task_to_task() {
    let _guard = hang_guard();
    let first = delays(Some(7));
    assert_eq!(first.len(), 12);
    assert_eq!(delays(Some(7)), first);
    assert_ne!(delays(Some(8)), first);
    assert_ne!(delays(None), delays(None));
    assert_ne!(first[..4], first[4..8], "two tasks retry in step");
}

#[test]
fn retries_come_at_their_times() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let task = stage.workers.task("linear", fails).retry(Retry::linear(3, HOUR)).submit().unwrap();
    stage.settle();
    let attempts = || stage.pool.audit().failed;
    for (hours, expected) in [(0, 1), (1, 2), (1, 2), (1, 3), (2, 3), (1, 4), (9, 4)] {
        stage.pass(hours * HOUR + MS);
        assert_eq!(attempts(), expected);
    }
    assert_eq!(task.wait().unwrap().attempts, 4);
    settled(&stage.workers);
}

#[test]
fn who_asks_for_more_time_gets_it() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let work = |attempt: &Attempt<'_>| match attempt.number() {
        1 => Err(Fault::retry_after("the backend asks for an hour", HOUR)),
        2 => Err(Fault::retry_after("at once", Duration::ZERO)),
        _ => Ok(()),
    };
    let task = stage.workers.task("asks", work).retry(Retry::fixed(9, MS)).submit().unwrap();
    stage.settle();
    stage.pass(HOUR / 2);
    assert_eq!(task.status(), Status::Retrying);
    stage.pass(HOUR / 2 + MS / 2);
    assert_eq!(task.status(), Status::Retrying, "less than its own delay is not to be had");
    stage.pass(2 * MS);
    assert_eq!(task.wait().unwrap().attempts, 3);
    settled(&stage.workers);
}

#[test]
fn a_budget_keeps_retries_in_bounds() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let budget = RetryBudget::new(0.1).per_second(0).burst(5);
    let kind =
        workers.task_type("storm").retry(Retry::fixed(3, Duration::ZERO)).retry_budget(budget);
    let kind = kind.build().unwrap();
    let tasks: Vec<_> = (0..200).map(|_| kind.submit(fails).unwrap()).collect();
    let attempts: u32 = tasks.into_iter().map(|task| task.wait().unwrap().attempts).sum();
    settled(&workers);
    let stats = &workers.stats().task_types[0];
    assert_eq!(u64::from(attempts), 200 + stats.retried);
    // A tenth of 200 and what can be saved up; it may be full when some of the 200 come.
    assert!((5..=25).contains(&stats.retried), "{} retries", stats.retried);
    assert!(stats.retries_refused > 0);
    assert_eq!(stats.failed, 200);
}

#[test]
fn cancelling_a_task_that_waits_for_its_retry_drops_it_at_once() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let drops = Count::new();
    let held = drops.on_drop();
    let work = move |_: &Attempt<'_>| -> Result<(), _> {
        let _held = &held;
        Err(Fault::new("no"))
    };
    let task = workers.task("waits", work).retry(Retry::fixed(1, HOUR)).submit().unwrap();
    until("the failure", || task.status() == Status::Retrying);
    // The status changes before the timer is armed, after which the closure is there.
    assert!(task.cancel());
    drops.until(1);
    assert_eq!(task.wait().unwrap().status, Status::Cancelled);
    settled(&workers);
    until("its timer's end", || pool.audit().in_flight == 0);
}

#[test]
fn a_function_that_panics_instead_of_a_delay_ends_the_retries() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let retry = Retry::custom(5, |retry| match retry {
        1 => Duration::ZERO,
        _ => super::common::quiet_panic("no delay"),
    });
    let report = workers.task("custom", fails).retry(retry).submit().unwrap().wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Failed, 2));
    settled(&workers);
}

/// Goal: who cancels while the attempt that has failed is on its way to wait for the next is not forgotten. Method: the
/// function that chooses the delay has it cancelled.
#[test]
fn a_task_that_is_cancelled_as_it_begins_to_wait_does_not_wait() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let (give, handle) = mpsc::channel::<Arc<TaskHandle<()>>>();
    let (handle, said) = (Mutex::new(handle), Arc::new(Mutex::new(None)));
    let answer = Arc::clone(&said);
    let retry = Retry::custom(5, move |_| {
        let task = handle.lock().unwrap().recv().unwrap();
        *answer.lock().unwrap() = Some(task.cancel());
        HOUR
    });
    let task = Arc::new(workers.task("cancelled", fails).retry(retry).submit().unwrap());
    give.send(Arc::clone(&task)).unwrap();
    until("its end", || task.status().is_end());
    assert_eq!((task.status(), *said.lock().unwrap()), (Status::Cancelled, Some(false)));
    settled(&workers);
}

#[test]
fn a_retry_waits_for_the_attempt_that_is_stuck() {
    let _guard = hang_guard();
    let pool = pool(4);
    let workers = WorkerPool::new(&pool);
    let (gate, at_once) = (Gate::new(), Count::new());
    let (inner, most) = (gate.clone(), at_once.clone());
    let running = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let work = move |attempt: &Attempt<'_>| {
        use std::sync::atomic::Ordering::SeqCst;
        if running.fetch_add(1, SeqCst) != 0 {
            most.up();
        }
        if attempt.number() == 1 {
            inner.wait();
        }
        running.fetch_sub(1, SeqCst);
        match attempt.number() {
            1 => Err(Fault::new("too late")),
            _ => Ok(()),
        }
    };
    let task = workers.task("stuck", work).retry(Retry::fixed(9, Duration::ZERO)).timeout(MS);
    let task = task.grace(HOUR).submit().unwrap();
    gate.until_entered(1);
    std::thread::sleep(5 * MS);
    assert_eq!(task.status(), Status::Running);
    gate.open();
    let report = task.wait().unwrap();
    assert!(report.attempts >= 2);
    assert_eq!((report.status, at_once.get()), (Status::Completed, 0));
    settled(&workers);
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let error = workers.task_type("a").retry(Retry::random(1, 2 * MS..=MS)).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "backoff is 2ms..=1ms, but must be a range that begins before it ends"
    );
    let error = workers.task_type("b").retry_budget(RetryBudget::new(-1.0)).build().unwrap_err();
    assert_eq!(error.to_string(), "retry budget's ratio is -1, but must be 0 to 1000");
    let error = WorkerPool::builder(&pool).max_waiting(0).build().unwrap_err();
    assert_eq!(error.to_string(), "max_waiting is 0, but must be 1 to 16777216");
}
