//! What each thread of the pool has done.

use super::common::{Gate, hang_guard, until};
use super::kit::{Stage, pool, settled};
use paceline::ThreadRole;
use paceline::task::{Attempt, Fault, Retry, Status, WorkerPool};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Goal: attempts, their ends and their times are those of the thread that ran them. Method: one thread by the test's
/// clock; a task that fails once, one that fails for good, one that panics; each attempt takes a second.
#[test]
fn each_attempt_is_counted_for_its_thread() {
    let stage = Stage::new();
    let pass = std::sync::Arc::new(stage);
    let work = |ends: fn(u32) -> Result<(), Fault>| {
        let stage = pass.clone();
        move |attempt: &Attempt<'_>| {
            drop(stage.pass_without_settling(SECOND));
            ends(attempt.number())
        }
    };
    let workers = &pass.workers;
    let second = work(|number| if number == 1 { Err(Fault::new("once")) } else { Ok(()) });
    let never = work(|_| Err(Fault::permanent("no")));
    let panics = work(|_| panic!("no"));
    let second = workers.task("second", second).retry(Retry::fixed(1, Duration::ZERO)).submit();
    let never = workers.task("never", never).submit();
    let panics = workers.task("panics", panics).submit();
    pass.settle();
    let reports = [second, never, panics].map(|task| task.unwrap().wait().unwrap());
    assert_eq!(reports.each_ref().map(|report| report.worker), [Some(0); 3]);
    assert_eq!(reports[0].run_time, 2 * SECOND);
    drop(pass.pass_without_settling(4 * SECOND));
    let rows = workers.stats().workers;
    assert_eq!(rows.len(), pass.pool.stats().threads.len());
    let row = &rows[0];
    assert_eq!((row.worker, row.attempts, row.completed, row.failed), (0, 4, 1, 3));
    assert_eq!((row.run_time, row.utilisation), (4 * SECOND, 0.5));
    assert_eq!((row.task_type, row.stuck), (None, false));
    assert!(rows[1..].iter().all(|row| row.attempts == 0 && row.role == ThreadRole::Away));
    settled(workers);
}

/// Goal: what a thread runs now is told by name, and whether its time is over.
#[test]
fn a_thread_that_runs_is_told_with_its_task() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let deaf = workers.task("deaf", move |_: &Attempt<'_>| inner.wait());
    let report = deaf.timeout(Duration::from_millis(1)).submit().unwrap().wait().unwrap();
    assert_eq!(report.status, Status::TimedOut);
    let worker = report.worker.unwrap();
    until("its thread is stuck", || workers.stats().workers[worker].stuck);
    let row = workers.stats().workers.swap_remove(worker);
    assert_eq!((row.task_type, row.role, row.attempts), (Some("deaf"), ThreadRole::Task, 1));
    assert!(row.run_time >= Duration::from_millis(1) && row.utilisation > 0.0, "{row:?}");
    assert_eq!((row.completed, row.failed), (0, 0));
    assert!(!workers.stats().workers[1 - worker].stuck);
    // Of another worker pool of the pool it is no task.
    let other = WorkerPool::new(&pool).stats().workers.swap_remove(worker);
    assert_eq!((other.task_type, other.role, other.attempts), (None, ThreadRole::Task, 0));
    gate.open();
    until("its return", || workers.stats().workers[worker].completed == 1);
    let row = workers.stats().workers.swap_remove(worker);
    assert_eq!((row.task_type, row.stuck, row.attempts), (None, false, 1));
    settled(&workers);
}
