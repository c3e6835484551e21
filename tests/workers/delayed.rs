//! Tasks that wait for their time.

use super::common::{Count, hang_guard};
use super::kit::{Notes, Stage, pool, settled};
use paceline::Rejected;
use paceline::task::{Attempt, Status, WorkerPool};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_delayed_task_begins_when_it_is_due_and_not_before() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let notes = Notes::default();
    let later = |hours: u32| stage.workers.task("later", notes.pen(hours)).delay(HOUR * hours);
    let tasks = [3, 1, 2].map(|hours| later(hours).submit().unwrap());
    stage.settle();
    assert_eq!(notes.take(), [0; 0]);
    stage.pass(HOUR - MS);
    assert_eq!(notes.take(), [0; 0]);
    stage.pass(2 * MS);
    assert_eq!(notes.take(), [1]);
    assert_eq!(tasks[0].status(), Status::Pending);
    stage.pass(2 * HOUR);
    assert_eq!(notes.take(), [2, 3]);
    for task in tasks {
        let report = task.wait().unwrap();
        assert_eq!(report.status, Status::Completed);
        assert!(report.queue_time < 2 * HOUR, "the delay counts: {:?}", report.queue_time);
    }
    settled(&stage.workers);
}

#[test]
fn its_limits_begin_when_it_is_due() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let notes = Notes::default();
    let task = stage.workers.task("limits", notes.pen(1)).queue_timeout(MS).deadline(2 * MS);
    let task = task.delay(HOUR).submit().unwrap();
    stage.pass(HOUR / 2);
    assert_eq!(task.status(), Status::Pending);
    // A timer may be a tick of the wheel late.
    stage.pass(HOUR / 2 + MS / 10);
    assert_eq!(task.wait().unwrap().status, Status::Completed);
    assert_eq!(notes.take(), [1]);
    settled(&stage.workers);
}

#[test]
fn cancelling_it_drops_its_closure_at_once() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let drops = Count::new();
    let held = drops.on_drop();
    let work = move |_: &Attempt<'_>| _ = &held;
    let task = workers.task("never", work).delay(HOUR).submit().unwrap();
    assert!(task.cancel());
    assert_eq!(drops.get(), 1);
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Cancelled, 0));
    settled(&workers);
    assert_eq!(pool.audit().in_flight, 0, "its timer is left");
}

#[test]
fn a_delay_that_no_timer_takes_is_refused() {
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let task = workers.task("never", |_: &Attempt<'_>| ()).delay(Duration::MAX);
    assert!(matches!(task.submit(), Err(Rejected::Full(_))));
    settled(&workers);
}
