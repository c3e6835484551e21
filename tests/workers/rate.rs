//! How often the tasks of a name start.

use super::common::{Count, hang_guard};
use super::kit::{Notes, Stage, pool, settled};
use paceline::Rejected;
use paceline::task::{Attempt, Fault, Rate, Retry, Status, TaskType, WorkerPool};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

fn hourly(workers: &WorkerPool, burst: u32) -> TaskType {
    workers.task_type("hourly").rate(Rate::new(1, HOUR).burst(burst)).build().unwrap()
}

#[test]
fn tasks_start_as_often_as_their_name_may_and_in_order() {
    let _guard = hang_guard();
    let stage = Stage::new();
    stage.pass(HOUR);
    let kind = hourly(&stage.workers, 3);
    let notes = Notes::default();
    let tasks: Vec<_> = (0..8).map(|number| kind.submit(notes.pen(number)).unwrap()).collect();
    stage.settle();
    assert_eq!(notes.take(), [0, 1, 2]);
    stage.pass(HOUR - MS);
    assert_eq!(notes.take(), [0; 0]);
    stage.pass(2 * MS);
    assert_eq!(notes.take(), [3]);
    // Those who come later wait behind, and nothing is saved up while somebody waits.
    let late = kind.submit(notes.pen(8)).unwrap();
    stage.pass(HOUR);
    stage.pass(HOUR);
    assert_eq!(notes.take(), [4, 5]);
    assert!(tasks[6].cancel());
    stage.pass(HOUR);
    assert_eq!(notes.take(), [7], "a cancelled task takes no turn");
    stage.pass(HOUR);
    assert_eq!(notes.take(), [8]);
    assert_eq!(late.wait().unwrap().status, Status::Completed);
    // A time without tasks fills the bucket, and no more than that.
    stage.pass(9 * HOUR);
    for number in 10..19 {
        drop(kind.submit(notes.pen(number)).unwrap());
    }
    stage.settle();
    assert_eq!(notes.take(), [10, 11, 12]);
    for _ in 13..19 {
        stage.pass(HOUR + MS);
    }
    assert!(notes.take().into_iter().eq(13..19));
    settled(&stage.workers);
}

/// Goal: a retry is a start like any other.
#[test]
fn retries_wait_for_their_rate() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let kind = hourly(&stage.workers, 2);
    let fails = |_: &Attempt<'_>| -> Result<(), _> { Err(Fault::new("no")) };
    let task = kind.task(fails).retry(Retry::fixed(3, Duration::ZERO)).submit().unwrap();
    for failed in [2, 3, 4] {
        stage.settle();
        stage.pass(MS);
        // The last failure is a start too.
        let now = stage.workers.stats().task_types[0].clone();
        assert_eq!(now.retried + now.failed, failed);
        stage.pass(HOUR + MS);
    }
    assert_eq!(task.wait().unwrap().attempts, 4);
    settled(&stage.workers);
}

/// Goal: with threads that are slow to come the bound is one of starts, not of permissions. Method: the
/// only thread is busy while the clock goes on.
#[test]
fn a_full_lane_makes_no_burst() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let kind = hourly(&stage.workers, 1);
    let notes = Notes::default();
    let gate = super::common::Gate::new();
    let tasks: Vec<_> = (0..4).map(|number| kind.submit(notes.pen(number)).unwrap()).collect();
    stage.settle();
    assert_eq!(notes.take(), [0]);
    let inner = gate.clone();
    let busy = stage.workers.task("busy", move |_: &Attempt<'_>| inner.wait()).submit().unwrap();
    gate.until_entered(1);
    let script = stage.pass_without_settling(3 * HOUR);
    gate.open();
    assert_eq!(busy.wait().unwrap().status, Status::Completed);
    script();
    assert_eq!(notes.take(), [1]);
    stage.pass(HOUR + MS);
    stage.pass(HOUR + MS);
    assert_eq!(notes.take(), [2, 3]);
    drop(tasks);
    settled(&stage.workers);
}

#[test]
fn cancelling_a_task_that_waits_for_its_rate_drops_it_at_once() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let kind = hourly(&stage.workers, 1);
    drop(kind.submit(|_: &Attempt<'_>| ()).unwrap());
    let drops = Count::new();
    let held = drops.on_drop();
    let task = kind.submit(move |_: &Attempt<'_>| _ = &held).unwrap();
    stage.settle();
    assert_eq!(task.status(), Status::Pending);
    assert!(task.cancel());
    assert_eq!(drops.get(), 1);
    settled(&stage.workers);
}

#[test]
fn the_pools_end_ends_who_waits_for_a_rate() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let kind = hourly(&workers, 1);
    let submit = || kind.submit(|_: &Attempt<'_>| ()).unwrap();
    assert_eq!(submit().wait().unwrap().status, Status::Completed);
    let waiting: Vec<_> = (0..50).map(|_| submit()).collect();
    let _report = pool.shutdown(Duration::ZERO);
    for task in waiting {
        assert_eq!(task.wait().unwrap().status, Status::Cancelled);
    }
    settled(&workers);
}

#[test]
fn who_waits_for_a_rate_is_bounded() {
    let _guard = hang_guard();
    let script = Stage::new();
    let workers = WorkerPool::builder(&script.pool).max_waiting(2).build().unwrap();
    let kind = hourly(&workers, 1);
    let submit = || kind.submit(|_: &Attempt<'_>| ());
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(submit().unwrap());
        script.settle();
    }
    assert!(matches!(submit(), Err(Rejected::Full(_, _))));
    script.pass(HOUR + MS);
    tasks.push(submit().unwrap());
    assert!(tasks.iter().filter(|task| task.cancel()).count() >= 2);
    script.settle();
    settled(&workers);
}
