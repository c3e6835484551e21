//! Tasks that wait for their time.

use super::common::{Count, Gate, hang_guard};
use super::kit::{Notes, Stage, pool, settled, small_stage, use_up_timers};
use paceline::task::{Attempt, Status, TaskHandle, WorkerPool};
use paceline::{Lane, Pin, Pool};
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

/// Goal: a delay that no timer takes is the longest that one does: the lane has room, and nothing says otherwise.
#[test]
fn a_delay_of_more_than_a_hundred_years_is_a_hundred_years() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let notes = Notes::default();
    const YEARS: Duration = Duration::from_secs(100 * 366 * 86_400);
    let delays = [Duration::MAX, YEARS + MS, YEARS];
    let tasks = delays.map(|delay| stage.workers.task("late", notes.pen(1)).delay(delay).submit());
    let tasks = tasks.map(|submitted| submitted.expect("there is room"));
    stage.pass(YEARS - HOUR);
    assert!(tasks.iter().all(|task| task.status() == Status::Pending));
    stage.pass(HOUR + MS);
    assert_eq!(notes.take(), [1; 3]);
    for task in tasks {
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    settled(&stage.workers);
}

/// What a sweep takes out, and what it leaves: of many that sleep most are cancelled, at different
/// distances, and the others begin when they are due.
#[test]
fn of_many_that_are_cancelled_the_others_begin() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let (notes, drops) = (Notes::default(), Count::new());
    let hours = |number: u32| 1 + number % 100;
    let mut tasks = Vec::new();
    for number in 0..5000 {
        let (mut pen, held) = (notes.pen(hours(number)), drops.on_drop());
        let work = move |attempt: &Attempt<'_>| {
            let _held = &held;
            pen(attempt)
        };
        tasks.push(stage.workers.task("many", work).delay(HOUR * hours(number)).submit().unwrap());
    }
    for task in tasks.iter().enumerate().filter(|(number, _)| number % 50 != 0) {
        assert!(task.1.cancel());
    }
    stage.pass(200 * HOUR);
    let mut expected: Vec<u32> = (0..5000).step_by(50).map(hours).collect();
    expected.sort_unstable();
    assert_eq!(notes.take(), expected);
    drop(tasks);
    settled(&stage.workers);
    assert_eq!(drops.get(), 5000);
    assert_eq!(stage.pool.audit().in_flight, 0, "an alarm is left");
}

/// The earliest is submitted last: the alarm is set anew for each.
#[test]
fn a_task_that_is_due_before_all_others_begins_before_them() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let notes = Notes::default();
    for hours in (1..=300).rev() {
        let task = stage.workers.task("earlier", notes.pen(hours)).delay(HOUR * hours);
        drop(task.submit().unwrap());
    }
    // A timer may be a tick of the wheel late.
    stage.pass(MS);
    for hours in 1..=300 {
        stage.pass(HOUR);
        assert_eq!(notes.take(), [hours]);
    }
    settled(&stage.workers);
}

/// A pool that stops ends what sleeps, and drops its closure.
#[test]
fn a_pool_that_stops_ends_what_sleeps() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let drops = Count::new();
    let sleeping = |hours: u32| {
        let held = drops.on_drop();
        let work = move |_: &Attempt<'_>| _ = &held;
        workers.task("sleeps", work).delay(HOUR * hours).submit().unwrap()
    };
    let tasks = [3, 1, 2].map(sleeping);
    let _report = pool.shutdown(Duration::ZERO);
    for task in tasks {
        assert_eq!(task.wait().unwrap().status, Status::Cancelled);
    }
    assert_eq!(drops.get(), 3);
}

/// Goal: those that wait for their time do so though every timer is in use when the alarm is to be armed anew,
/// and every place of all lanes, and begin when they are due. Method: one that is due before those that sleep.
#[test]
fn an_alarm_needs_no_free_timer() {
    let _guard = hang_guard();
    let stage = small_stage();
    let (pool, workers) = (&stage.pool, &stage.workers);
    let notes = Notes::default();
    let later = |hours: u32| workers.task("later", notes.pen(hours)).delay(HOUR * hours).submit();
    let last = later(4).unwrap();
    let mut timers = use_up_timers(pool);
    let gate = Gate::new();
    let inner = gate.clone();
    pool.lane(Lane::Critical).post(move || inner.wait()).unwrap();
    gate.until_entered(1);
    for lane in Lane::ALL {
        while pool.lane(lane).try_post(|| ()).is_ok() {}
    }
    let tasks = [3, 1].map(|hours| later(hours).unwrap());
    // Its alarm was another.
    timers.extend(use_up_timers(pool));
    assert_eq!(tasks.each_ref().map(TaskHandle::status), [Status::Pending; 2]);
    gate.open();
    stage.pass(HOUR - MS);
    assert_eq!(notes.take(), [0; 0]);
    stage.pass(101 * MS);
    assert_eq!(notes.take(), [1]);
    stage.pass(2 * HOUR);
    assert_eq!(notes.take(), [3]);
    // From now on there is a timer.
    timers.iter().for_each(|timer| assert!(timer.cancel()));
    stage.pass(HOUR - 101 * MS);
    assert_eq!(notes.take(), [0; 0]);
    stage.pass(2 * MS);
    assert_eq!((notes.take(), last.status()), (vec![4], Status::Completed));
    settled(workers);
}

/// Those that sleep without a timer end with the pool, as all do.
#[test]
fn a_pool_that_stops_ends_what_sleeps_without_a_timer() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).pin(Pin::None).max_handles(8).build().unwrap();
    let workers = WorkerPool::new(&pool);
    let mut timers = Vec::new();
    let tasks = [2, 1].map(|hours| {
        let task = workers.task("sleeps", |_: &Attempt<'_>| ()).delay(HOUR * hours).submit();
        timers.extend(use_up_timers(&pool));
        task.unwrap()
    });
    let _report = pool.shutdown(Duration::ZERO);
    for task in tasks {
        assert_eq!(task.wait().unwrap().status, Status::Cancelled);
    }
}
