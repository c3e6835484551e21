//! How many threads are active follows how long tasks wait; and how the pool is, in one word.

use super::common::{Gate, hang_guard, until};
use super::kit::{pool, settled};
use paceline::task::{Attempt, Health, Scaling, Status, WorkerPool};
use paceline::{Error, Lane, Pool};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn quick() -> Scaling {
    Scaling { high: 4 * MS, low: MS, period: MS, patience: 2, ..Scaling::default() }
}

/// Goal: tasks that wait behind long ones get more threads, though every active thread is stuck and
/// nobody submits any more; at rest the number falls to the least.
#[test]
fn a_jam_calls_threads_back_and_rest_sets_them_aside() {
    let _guard = hang_guard();
    let pool = pool(4);
    let workers = WorkerPool::builder(&pool).scaling(quick()).build().unwrap();
    assert_eq!(pool.stats().active, 1);
    for _ in 0..5 {
        let gate = Gate::new();
        let long: Vec<_> = (0..4)
            .map(|_| {
                let gate = gate.clone();
                workers.task("long", move |_: &Attempt<'_>| gate.wait()).submit().unwrap()
            })
            .collect();
        // Each needs a thread of its own: four of four were active. As nothing waits any more, the number may fall while
        // they run.
        gate.until_entered(4);
        gate.open();
        for task in long {
            assert_eq!(task.wait().unwrap().status, Status::Completed);
        }
        until("the least number", || pool.stats().active == 1);
    }
    settled(&workers);
}

/// Goal: nobody looks when nothing is left to do, also where no thread is ever set aside. Method: each look of the timer is
/// counted as a task of the pool; none comes in a time in which there would be many.
#[test]
fn nobody_looks_at_rest() {
    let _guard = hang_guard();
    for (threads, min_active) in [(1, 1), (2, 2), (2, 1)] {
        let pool = pool(threads);
        let scaling = Scaling { min_active, ..quick() };
        let workers = WorkerPool::builder(&pool).scaling(scaling).build().unwrap();
        for _ in 0..3 {
            let task = workers.task("quick", |_: &Attempt<'_>| ()).submit().unwrap();
            assert_eq!(task.wait().unwrap().status, Status::Completed);
            let looks = || pool.stats().threads.iter().map(|thread| thread.tasks).sum::<u64>();
            until("nobody looks", || {
                let before = looks();
                std::thread::sleep(100 * MS);
                looks() == before
            });
        }
        settled(&workers);
    }
}

#[test]
fn quick_tasks_need_no_more_threads() {
    let _guard = hang_guard();
    let pool = pool(3);
    // A limit that no wait of a busy machine comes near.
    let scaling = Scaling { high: 3600 * 1000 * MS, ..quick() };
    let workers = WorkerPool::builder(&pool).scaling(scaling).build().unwrap();
    for _ in 0..200 {
        let task = workers.task("quick", |_: &Attempt<'_>| ()).submit().unwrap();
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    settled(&workers);
}

/// Goal: a thread that does not come back is not counted: another one takes its place, though nothing waits.
/// Method: a function outlives its time while the least number is active; when it returns that is enough again.
#[test]
fn a_stuck_thread_is_replaced() {
    let _guard = hang_guard();
    let pool = pool(3);
    // Nothing but the stuck thread calls for another.
    let scaling = Scaling { high: 3600 * 1000 * MS, period: 20 * MS, ..quick() };
    let workers = WorkerPool::builder(&pool).scaling(scaling).build().unwrap();
    assert_eq!(pool.stats().active, 1);
    for _ in 0..2 {
        let gate = Gate::new();
        let inner = gate.clone();
        let deaf = move |_: &Attempt<'_>| inner.wait();
        let stuck = workers.task("deaf", deaf).timeout(MS).submit().unwrap();
        gate.until_entered(1);
        assert_eq!(stuck.wait().unwrap().status, Status::TimedOut);
        until("another thread", || pool.stats().active == 2);
        let held = workers.health().stuck[0];
        let quick = workers.task("quick", |_: &Attempt<'_>| ()).submit().unwrap();
        let report = quick.wait().unwrap();
        assert_eq!(report.status, Status::Completed);
        assert_ne!(report.worker, Some(held));
        assert_eq!(workers.health().stuck.len(), 1);
        gate.open();
        until("the least number", || pool.stats().active == 1);
    }
    settled(&workers);
}

#[test]
fn senseless_scaling_is_refused_by_name() {
    let pool = pool(2);
    let refused = |scaling: Scaling| match WorkerPool::builder(&pool).scaling(scaling).build() {
        Err(Error::Invalid { name, value, allowed }) => format!("{name} {value}: {allowed}"),
        other => panic!("{other:?}"),
    };
    let table = [
        (Scaling { min_active: 0, ..quick() }, "min_active 0: 1 to 2"),
        (Scaling { min_active: 3, ..quick() }, "min_active 3: 1 to 2"),
        (Scaling { high: Duration::ZERO, ..quick() }, "high 0ns: more than 0"),
        (Scaling { low: 3 * MS, ..quick() }, "low 3ms: 0 to 2ms, which is half of high"),
        (Scaling { percentile: 101, ..quick() }, "percentile 101: 1 to 100"),
        (Scaling { period: Duration::ZERO, ..quick() }, "period 0ns: 1ms to 3600s"),
        (Scaling { patience: 0, ..quick() }, "patience 0: at least 1"),
    ];
    for (scaling, message) in table {
        assert_eq!(refused(scaling), message);
    }
    let first = WorkerPool::builder(&pool).scaling(quick()).build().unwrap();
    let again = "scaling asked for again: by one worker pool of a pool";
    assert_eq!(refused(quick()), again);
    drop(first);
}

/// Goal: health says how many threads are left. Method: functions that do not listen outlive their time
/// one after another, and return at last.
#[test]
fn health_counts_what_is_left() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(2).reserve(Lane::Critical, 1).build().unwrap();
    let workers = WorkerPool::new(&pool);
    let health = || workers.health();
    assert_eq!((health().health, health().threads, health().reserved), (Health::Ready, 2, 1));
    until("both are there", || (health().capacity, health().free) == (2, 2));
    let gate = Gate::new();
    for stuck in 1..=2 {
        let inner = gate.clone();
        let deaf = move |_: &Attempt<'_>| inner.wait();
        let task = workers.task("deaf", deaf).timeout(MS).submit().unwrap();
        gate.until_entered(stuck);
        assert_eq!(task.wait().unwrap().status, Status::TimedOut);
        let expected = if stuck == 1 { Health::Degraded } else { Health::Stuck };
        until("the mark", || health().stuck.len() == stuck as usize);
        let seen = health();
        assert_eq!((seen.health, seen.capacity), (expected, 2 - stuck as usize), "{seen:?}");
    }
    // A reserved thread still begins what is its own.
    let critical = workers.task("critical", |_: &Attempt<'_>| 7).lane(Lane::Critical);
    assert_eq!(critical.submit().unwrap().wait().unwrap().result.unwrap(), 7);
    let waits = workers.task("waits", |_: &Attempt<'_>| ()).submit().unwrap();
    assert_eq!(health().queued, 1);
    gate.open();
    until("they return", || health().health == Health::Ready);
    assert_eq!(waits.wait().unwrap().status, Status::Completed);
    settled(&workers);
    let _ = workers.shutdown(paceline::task::Phases::default());
    assert_eq!(health().health, Health::Draining);
}
