//! One task at a time per key, in order, and no thread waits for its turn.

use super::common::{Count, Gate, LONG, hang_guard, quiet_panic, until};
use super::kit::{Notes, pool, settled};
use paceline::task::{Attempt, Fault, Phases, Retry, Status, WorkerPool};
use paceline::{Lane, Rejected};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Goal: each key's tasks run in order and never two at once, whatever their lanes, failures and
/// panics. Method: counts, per key, of what runs now and what is next.
#[test]
fn tasks_of_a_key_run_one_after_the_other() {
    const KEYS: usize = 5;
    const TASKS: u32 = 200;
    let _guard = hang_guard();
    let pool = pool(4);
    let workers = WorkerPool::new(&pool);
    let keys: [_; KEYS] = std::array::from_fn(|_| Arc::new((AtomicU32::new(0), AtomicU32::new(0))));
    let wrong = Count::new();
    let mut tasks = Vec::new();
    for number in 0..TASKS {
        for (key, state) in keys.iter().enumerate() {
            let (state, wrong) = (Arc::clone(state), wrong.clone());
            let work = move |attempt: &Attempt<'_>| {
                let (running, next) = (&state.0, &state.1);
                if running.fetch_add(1, SeqCst) != 0 || next.load(SeqCst) != number {
                    wrong.up();
                }
                std::thread::yield_now();
                let is_last = attempt.number() == 1 + number % 3;
                if is_last {
                    next.store(number + 1, SeqCst);
                }
                running.fetch_sub(1, SeqCst);
                match (is_last, number % 2) {
                    (true, 0) => quiet_panic("an end like any other"),
                    (true, _) => Ok(()),
                    (false, _) => Err(Fault::new("once more")),
                }
            };
            let task = workers
                .task("keyed", work)
                .key(("account", key))
                .retry(Retry::fixed(number % 3, Duration::from_micros(10)));
            let lane = Lane::ALL[number as usize % Lane::ALL.len()];
            tasks.push(task.lane(lane).submit().unwrap());
        }
    }
    for task in tasks {
        assert!(matches!(task.wait().unwrap().status, Status::Completed | Status::Failed));
    }
    assert_eq!(wrong.get(), 0);
    settled(&workers);
}

#[test]
fn who_waits_for_a_key_keeps_no_thread() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let first = workers.task("holds", move |_: &Attempt<'_>| inner.wait()).key(1).submit().unwrap();
    gate.until_entered(1);
    let notes = Notes::default();
    let task = |number| workers.task("waits", notes.pen(number)).key(1).submit().unwrap();
    let waiting: Vec<_> = (0..100).map(task).collect();
    for _ in 0..100 {
        let other = workers.task("other", |_: &Attempt<'_>| ()).key(2).submit().unwrap();
        assert_eq!(other.wait().unwrap().status, Status::Completed);
    }
    assert_eq!(notes.take(), [0; 0]);
    gate.open();
    for task in waiting {
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    assert!(notes.take().into_iter().eq(0..100));
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

/// Goal: the key of a task that has ended stays taken while its function runs.
#[test]
fn a_function_that_does_not_listen_keeps_its_key() {
    let _guard = hang_guard();
    let pool = pool(3);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let deaf = workers.task("deaf", move |_: &Attempt<'_>| inner.wait()).key("k").timeout(MS);
    let deaf = deaf.submit().unwrap();
    gate.until_entered(1);
    let next = workers.task("next", |_: &Attempt<'_>| ()).key("k").submit().unwrap();
    assert_eq!(deaf.wait().unwrap().status, Status::TimedOut);
    workers.task("other", |_: &Attempt<'_>| ()).submit().unwrap().wait().unwrap();
    assert_eq!(next.status(), Status::Pending);
    gate.open();
    assert_eq!(next.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

/// Goal: a retry's delay keeps the key, and a cancellation gives it back at once.
#[test]
fn a_key_is_kept_between_attempts() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let fails = |_: &Attempt<'_>| -> Result<(), _> { Err(Fault::new("no")) };
    let first = workers.task("fails", fails).key(7).retry(Retry::fixed(1, HOUR)).submit().unwrap();
    until("the failure", || first.status() == Status::Retrying);
    let next = workers.task("next", |_: &Attempt<'_>| ()).key(7).submit().unwrap();
    workers.task("other", |_: &Attempt<'_>| ()).submit().unwrap().wait().unwrap();
    assert_eq!(next.status(), Status::Pending);
    assert!(first.cancel());
    assert_eq!(next.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

/// Goal: a long queue of tasks that were cancelled is gone through without going deep. Method: more of
/// them than any stack has frames for.
#[test]
fn cancelled_tasks_pass_their_turn_on() {
    const TASKS: usize = 50_000;
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let first = workers.task("holds", move |_: &Attempt<'_>| inner.wait()).key(1).submit().unwrap();
    gate.until_entered(1);
    let drops = Count::new();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let held = drops.on_drop();
            workers.task("c", move |_: &Attempt<'_>| _ = &held).key(1).submit().unwrap()
        })
        .collect();
    let last = workers.task("last", |_: &Attempt<'_>| ()).key(1).submit().unwrap();
    assert!(tasks.iter().all(|task| task.cancel()));
    gate.open();
    assert_eq!(last.wait().unwrap().status, Status::Completed);
    assert_eq!(drops.get(), TASKS as u64);
    drop(first);
    settled(&workers);
}

#[test]
fn a_shutdown_ends_who_waits_for_a_key() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let first = workers.task("holds", move |_: &Attempt<'_>| inner.wait()).key(1).submit().unwrap();
    gate.until_entered(1);
    let task = |_| workers.task("waits", |_: &Attempt<'_>| ()).key(1).submit().unwrap();
    let waiting: Vec<_> = (0..100).map(task).collect();
    let opener = {
        let (gate, workers) = (gate.clone(), workers.clone());
        std::thread::spawn(move || {
            until("the cancellation", || workers.audit().cancelled == 100);
            gate.open();
        })
    };
    let phases = Phases { drain: Duration::ZERO, stop: LONG, ..Phases::default() };
    let report = workers.shutdown(phases);
    opener.join().unwrap();
    assert_eq!((report.cancelled.len(), report.stuck.len()), (100, 0));
    for task in waiting {
        assert_eq!(task.wait().unwrap().status, Status::Cancelled);
    }
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

/// Goal: the pool beneath may end first.
#[test]
fn the_pools_end_ends_who_waits_for_a_key() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let first = workers.task("holds", move |_: &Attempt<'_>| inner.wait()).key(1).submit().unwrap();
    gate.until_entered(1);
    let task = |_| workers.task("waits", |_: &Attempt<'_>| ()).key(1).submit().unwrap();
    let waiting: Vec<_> = (0..100).map(task).collect();
    let stopper = std::thread::spawn(move || pool.shutdown(Duration::ZERO));
    for task in waiting {
        // Not before the one that holds the key has returned.
        gate.open();
        let status = task.wait().unwrap().status;
        assert!(matches!(status, Status::Cancelled | Status::Completed), "{status}");
    }
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    let _report = stopper.join().unwrap();
    settled(&workers);
}

#[test]
fn a_queue_of_a_key_is_bounded() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::builder(&pool).max_waiting(3).build().unwrap();
    let gate = Gate::new();
    let inner = gate.clone();
    let first = workers.task("holds", move |_: &Attempt<'_>| inner.wait()).key(1).submit().unwrap();
    gate.until_entered(1);
    let task = || workers.task("waits", |_: &Attempt<'_>| ()).key(1).submit();
    let waiting: Vec<_> = (0..3).map(|_| task().unwrap()).collect();
    assert!(matches!(task(), Err(Rejected::Full(_, _))));
    gate.open();
    for task in waiting {
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    drop(first);
    assert_eq!(task().unwrap().wait().unwrap().status, Status::Completed);
    settled(&workers);
    assert_eq!(workers.audit().rejected, 1);
}
