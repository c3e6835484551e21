//! The end of a worker pool: refuse, drain, stop, clean up.

use super::common::{Gate, LONG, hang_guard};
use super::kit::{pool, settled};
use paceline::Rejected;
use paceline::task::{Attempt, Fault, Phases, Retry, Status, WorkerPool};
use std::sync::{Arc, Mutex};
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
    let kind = workers.kind("drained").retry(retry).build().unwrap();
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
