//! The end of a worker pool: refuse, drain, stop, clean up.

use super::common::{Count, Gate, LONG, hang_guard, with_longer_ticks};
use super::kit::{pool, settled};
use paceline::Rejected;
use paceline::task::{Attempt, EndRecord, Fault, Observer, Phases, Retry, Status, WorkerPool};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

fn phases(drain: Duration, stop: Duration) -> Phases {
    let mut phases = Phases::default();
    (phases.drain, phases.stop, phases.clean_up) = (drain, stop, LONG);
    phases
}

#[test]
fn a_drain_lets_everything_end_and_hooks_run_last_first() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let order = Arc::new(Mutex::new(Vec::new()));
    for name in ["first", "second"] {
        let order = order.clone();
        workers.on_shutdown(name, move || order.lock().unwrap().push(name));
    }
    workers.on_shutdown("bad", || panic!("no"));
    let work = |attempt: &Attempt<'_>| match attempt.number() {
        1 => Err(Fault::new("once more")),
        _ => Ok(()),
    };
    let retry = Retry::fixed(2, Duration::from_millis(1));
    let kind = workers.task_type("drained").retry(retry).build().unwrap();
    let tasks: Vec<_> = (0..50).map(|_| kind.submit(work).unwrap()).collect();
    let report = workers.shutdown(phases(LONG, LONG));
    assert!(report.drained && !report.requested);
    assert_eq!(report.failed_hooks, ["bad"]);
    assert_eq!(*order.lock().unwrap(), ["second", "first"]);
    for task in tasks {
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    assert!(matches!(kind.submit(work), Err(Rejected::ShutDown(_))));
    pool.submit(|| ()).unwrap().wait().unwrap();
    settled(&workers);
}

#[test]
fn what_has_not_begun_is_cancelled_and_what_runs_is_asked() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let (deaf, listens) = (Gate::new(), Gate::new());
    let inner = deaf.clone();
    let first = workers.task("deaf", move |_: &Attempt<'_>| inner.wait()).submit().unwrap();
    let inner = listens.clone();
    let work = move |attempt: &Attempt<'_>| {
        inner.wait();
        super::common::until("the request", || attempt.is_cancelled());
        Err::<(), _>(Fault::new("stopped"))
    };
    let second = workers.task("listens", work).submit().unwrap();
    listens.open();
    deaf.until_entered(1);
    listens.until_entered(1);
    let third = workers.task("queued", |_: &Attempt<'_>| ()).submit().unwrap();
    let report = workers.shutdown(phases(Duration::ZERO, Duration::from_millis(50)));
    assert!(!report.drained);
    assert_eq!(report.cancelled, ["queued"]);
    assert!(report.stuck.iter().any(|(name, _)| name == "deaf"), "{report:?}");
    assert_eq!(third.wait().unwrap().status, Status::Cancelled);
    assert_eq!(second.wait().unwrap().status, Status::Cancelled);
    deaf.open();
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

/// Goal: a hook that does not end holds nobody up. Method: one that waits for what comes after the
/// shutdown, and one behind it for which there is no time.
#[test]
fn a_hook_that_takes_too_long_is_left_alone() {
    let _guard = hang_guard();
    with_longer_ticks("a hook that is left alone", |tick| {
        let pool = pool(2);
        let workers = WorkerPool::new(&pool);
        let (gate, ran) = (Gate::new(), Count::new());
        let (inner, caller, counted) = (gate.clone(), thread::current().id(), ran.clone());
        workers.on_shutdown("behind", move || counted.up());
        // On this thread, if none of the pool has come in time, it is waited for.
        workers.on_shutdown("slow", move || {
            if thread::current().id() != caller {
                inner.wait();
            }
        });
        let mut phases = phases(LONG, LONG);
        phases.clean_up = tick;
        let report = workers.shutdown(phases);
        gate.open();
        if report.abandoned_hooks.is_empty() {
            return false;
        }
        assert_eq!(report.abandoned_hooks, ["slow"]);
        assert_eq!((report.failed_hooks, ran.get()), (vec!["behind".to_owned()], 0));
        true
    });
}

#[test]
fn hooks_run_though_no_thread_of_the_pool_is_free() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let deaf = workers.task("deaf", move |_: &Attempt<'_>| inner.wait()).submit().unwrap();
    gate.until_entered(1);
    let ran = Arc::new(Mutex::new(None));
    let place = Arc::clone(&ran);
    workers.on_shutdown("here", move || *place.lock().unwrap() = Some(thread::current().id()));
    let report = workers.shutdown(phases(Duration::ZERO, Duration::ZERO));
    assert!(report.failed_hooks.is_empty() && report.abandoned_hooks.is_empty(), "{report:?}");
    assert_eq!(*ran.lock().unwrap(), Some(thread::current().id()));
    gate.open();
    assert_eq!(deaf.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

#[test]
fn a_shutdown_from_inside_is_a_request() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let inside = workers.clone();
    let work = move |_: &Attempt<'_>| inside.shutdown(phases(LONG, LONG)).requested;
    assert!(workers.task("asks", work).submit().unwrap().wait().unwrap().result.unwrap());
    assert!(matches!(
        workers.task("late", |_: &Attempt<'_>| ()).submit(),
        Err(Rejected::ShutDown(_))
    ));
    assert!(workers.shutdown(phases(LONG, LONG)).drained);
    settled(&workers);
}

/// Goal: who shuts down and then lets go of what those functions use may rely on it that none comes later. Method: they
/// take their time. Seen to fail when only the ends were counted.
#[test]
fn who_is_to_be_told_of_an_end_has_been_told_when_the_drain_is_over() {
    struct Slow(Count);
    impl Observer for Slow {
        fn on_end(&self, _: &EndRecord<'_>) {
            thread::sleep(Duration::from_millis(20));
            self.0.up();
        }
    }
    let _guard = hang_guard();
    let pool = pool(2);
    for observed in [false, true] {
        let told = Count::new();
        let mut builder = WorkerPool::builder(&pool);
        if observed {
            builder = builder.observe(Arc::new(Slow(told.clone())));
        }
        let workers = builder.build().unwrap();
        let gate = Gate::new();
        let (inner, tells) = (gate.clone(), told.clone());
        let work = move |_: &Attempt<'_>| inner.wait();
        let task = workers.task("told", work).submit().unwrap();
        if !observed {
            task.on_end(move |_| {
                thread::sleep(Duration::from_millis(20));
                tells.up();
            });
        }
        gate.open();
        assert!(workers.shutdown(phases(LONG, LONG)).drained);
        assert_eq!(told.get(), 1, "observed: {observed}");
    }
}

/// Goal: what is told of an end may shut the worker pool down, though it is what a shutdown waits for. Method: on this
/// thread, which is no pool's, as it cancels the task. Hangs for LONG where a shutdown waits for itself.
#[test]
fn what_is_told_of_an_end_may_shut_down() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let first = workers.task("first", move |_: &Attempt<'_>| inner.wait()).submit().unwrap();
    let second = workers.task("second", |_: &Attempt<'_>| ()).submit().unwrap();
    let (end, open) = (workers.clone(), gate.clone());
    second.on_end(move |_| {
        open.open();
        assert!(end.shutdown(phases(LONG, LONG)).drained);
    });
    assert!(second.cancel());
    assert_eq!(first.wait().unwrap().status, Status::Completed);
}
