//! The end of a task: once, whoever brings it.

use super::common::{Count, Gate, hang_guard, until};
use super::kit::{pool, settled};
use paceline::task::{Attempt, Fault, Retry, Status, TaskHandle, WorkerPool};
use paceline::{Error, Pool, Rejected};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_queued_task_that_is_cancelled_never_begins() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let (gate, ran) = (Gate::new(), Count::new());
    let inner = gate.clone();
    let first = workers.task("first", move |_: &Attempt<'_>| inner.wait()).submit().unwrap();
    gate.until_entered(1);
    let counted = ran.clone();
    let second = workers.task("second", move |_: &Attempt<'_>| counted.up()).submit().unwrap();
    assert_eq!(second.status(), Status::Pending);
    assert!(second.cancel());
    assert!(!second.cancel());
    // The only thread is still in the first.
    let report = second.wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Cancelled, 0));
    assert_eq!(report.result.unwrap_err().message(), "it was cancelled");
    gate.open();
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(&workers);
    until("the queue's end", || pool.audit().in_flight == 0);
    assert_eq!(ran.get(), 0);
}

/// Goal: a report says of each task whether it began. Method: many that are cancelled from the last to the first, until
/// that meets the thread that begins them.
#[test]
fn a_task_that_is_cancelled_as_it_begins_says_whether_it_began() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("late").build().unwrap();
    for _ in 0..1000 {
        let submit = |_| kind.submit(|_: &Attempt<'_>| ()).unwrap();
        let tasks: Vec<_> = (0..64).map(submit).collect();
        for task in tasks.into_iter().rev() {
            let cancelled = task.cancel();
            let report = task.wait().unwrap();
            assert_eq!(report.status == Status::Cancelled, cancelled);
            let attempts = u32::from(!cancelled);
            assert_eq!((report.attempts, report.worker.is_some()), (attempts, !cancelled));
        }
    }
    settled(&workers);
}

#[test]
fn a_running_task_is_asked() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let work = move |attempt: &Attempt<'_>| {
        assert!(!attempt.is_cancelled());
        inner.wait();
        if attempt.is_cancelled() { Err(Fault::new("gave up")) } else { Ok(()) }
    };
    let task = workers.task("asked", work).retry(Retry::fixed(9, HOUR)).submit().unwrap();
    gate.until_entered(1);
    assert_eq!(task.status(), Status::Running);
    assert!(!task.cancel());
    gate.open();
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Cancelled, 1));
    assert_eq!(report.result.unwrap_err().message(), "gave up");
    settled(&workers);
}

#[test]
fn a_retry_that_waits_can_be_cancelled() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let fails = |_: &Attempt<'_>| -> Result<(), _> { Err(Fault::new("no")) };
    let task = workers.task("waits", fails).retry(Retry::fixed(2, HOUR)).submit().unwrap();
    until("the first failure", || task.status() == Status::Retrying);
    assert!(task.cancel());
    assert_eq!(task.wait().unwrap().status, Status::Cancelled);
    settled(&workers);
}

#[test]
fn waits_time_out_and_can_be_repeated_and_the_report_comes_once() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let mut task = workers.task("w", move |_: &Attempt<'_>| inner.wait()).submit().unwrap();
    assert!(matches!(task.wait_timeout(Duration::from_millis(1)), Err(Error::TimedOut)));
    assert!(task.poll_report().is_none());
    gate.open();
    assert_eq!(task.wait_timeout(HOUR).unwrap().status, Status::Completed);
    assert!(matches!(task.wait_timeout(HOUR), Err(Error::Stale { what: "task report" })));
    assert!(task.poll_report().is_none());
    settled(&workers);
}

#[test]
fn callbacks_are_called_once_before_and_after_the_end() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let (gate, told) = (Gate::new(), Count::new());
    let inner = gate.clone();
    let task = workers.task("c", move |_: &Attempt<'_>| inner.wait()).submit().unwrap();
    let tell = |told: Count| {
        move |status| {
            assert_eq!(status, Status::Completed);
            told.up();
        }
    };
    task.on_end(tell(told.clone()));
    assert_eq!(told.get(), 0);
    gate.open();
    told.until(1);
    task.on_end(tell(told.clone()));
    assert_eq!(told.get(), 2);
    settled(&workers);
}

#[test]
fn a_task_can_be_awaited() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let task = workers.task("future", |_: &Attempt<'_>| String::from("done")).submit().unwrap();
    let report = super::kit::block_on(task).unwrap();
    assert_eq!(report.result.unwrap(), "done");
    settled(&workers);
}

#[test]
fn what_is_dropped_unrun_ends_as_cancelled() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let gate = Gate::new();
    let inner = gate.clone();
    let first = workers.task("first", move |_: &Attempt<'_>| inner.wait()).submit().unwrap();
    gate.until_entered(1);
    let second = workers.task("second", |_: &Attempt<'_>| ()).submit().unwrap();
    let report = pool.shutdown(Duration::ZERO);
    assert_eq!(report.cancelled, 1);
    assert_eq!(second.wait().unwrap().status, Status::Cancelled);
    gate.open();
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    let refused = workers.task("third", |_: &Attempt<'_>| ()).submit();
    assert!(matches!(refused, Err(Rejected::ShutDown(_))));
    settled(&workers);
}

/// Takes its time when it is dropped.
struct Slow;

const PAUSE: Duration = Duration::from_millis(100);

impl Drop for Slow {
    fn drop(&mut self) {
        std::thread::sleep(PAUSE);
    }
}

/// An attempt begins when the one before it has ended, which is known already, if nothing came between.
#[test]
fn what_comes_between_two_attempts_is_in_neither() {
    // With a handle nobody is told of the end.
    type Between = fn(&Pool, &WorkerPool) -> Option<TaskHandle<()>>;
    let between: [(&str, Between); 4] = [
        ("a callback", |_, workers| {
            let first = workers.task("first", |_: &Attempt<'_>| ()).submit().unwrap();
            first.on_end(|_| std::thread::sleep(PAUSE));
            Some(first)
        }),
        ("a task without a handle", |pool, workers| {
            drop(workers.task("first", |_: &Attempt<'_>| ()).submit().unwrap());
            pool.post(|| std::thread::sleep(PAUSE)).unwrap();
            None
        }),
        ("the end of a closure", |_, workers| {
            let slow = Slow;
            let work = move |_: &Attempt<'_>| _ = &slow;
            Some(workers.task("first", work).submit().unwrap())
        }),
        ("the end of a value", |_, workers| {
            let work = |_: &Attempt<'_>| Ok::<_, Fault>(Slow);
            drop(workers.task("first", work).submit().unwrap());
            None
        }),
    ];
    let _guard = hang_guard();
    for (what, first) in between {
        let pool = pool(1);
        let workers = WorkerPool::new(&pool);
        let gate = Gate::new();
        let inner = gate.clone();
        pool.post(move || inner.wait()).unwrap();
        gate.until_entered(1);
        let handle = first(&pool, &workers);
        let second = workers.task("second", |_: &Attempt<'_>| ()).timeout(HOUR).submit().unwrap();
        // Both are claimed at once.
        gate.open();
        let waited = second.wait().unwrap().queue_time;
        // Times of long limits may be a tick behind.
        assert!(waited >= PAUSE / 2, "{what}: the second began after {waited:?}");
        drop(handle);
        settled(&workers);
    }
}

/// What has no size is not kept anywhere. It is one value all the same.
#[test]
fn a_value_without_size_is_dropped_once() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Mark;
    impl Drop for Mark {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Relaxed);
        }
    }
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let dropped = || {
        settled(&workers);
        until("the end of its closure", || pool.audit().in_flight == 0);
        DROPPED.swap(0, Relaxed)
    };
    let mark = |_: &Attempt<'_>| Ok::<_, Fault>(Mark);
    let gated = || {
        let gate = Gate::new();
        let inner = gate.clone();
        let work = move |_: &Attempt<'_>| {
            inner.wait();
            Ok::<_, Fault>(Mark)
        };
        (gate, workers.task("gated", work))
    };

    let report = workers.task("taken", mark).submit().unwrap().wait().unwrap();
    assert_eq!(dropped(), 0, "the report has it");
    drop(report);
    assert_eq!(dropped(), 1);

    let task = workers.task("left", mark).submit().unwrap();
    until("its end", || task.status() == Status::Completed);
    assert_eq!(dropped(), 0, "the handle has it");
    drop(task);
    assert_eq!(dropped(), 1);

    let (gate, task) = gated();
    drop(task.submit().unwrap());
    gate.open();
    assert_eq!(dropped(), 1, "nobody wants it");

    let (gate, task) = gated();
    // A limit of the attempt: it begins in any case. A deadline may be over before.
    let report = task.timeout(Duration::from_millis(1)).submit().unwrap().wait().unwrap();
    assert_eq!(report.status, Status::TimedOut);
    assert!(report.result.is_err());
    gate.open();
    assert_eq!(dropped(), 1, "it came too late");

    let told = workers.task("told", mark).submit().unwrap();
    told.on_end(|_| ());
    assert!(told.wait().unwrap().result.is_ok());
    assert_eq!(dropped(), 1);
}
