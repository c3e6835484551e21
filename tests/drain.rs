//! The drain: what was accepted runs, whoever comes across it last, or is cancelled where it lies.

mod common;

use common::{Count, Fd, Gate, LONG, hang_guard, settled, until};
use paceline::{Error, Flow, Pool, Ready, ScriptedIo, ScriptedSource, SourceKind};
use std::thread;
use std::time::{Duration, Instant};

/// Goal: a drain ends with its last task, though the host thread that ran it leaves at once. Method:
/// the pool's own thread has seen the host at its task, and waits at the source.
#[test]
fn the_last_task_may_be_a_hosts_that_leaves() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).max_joined(1).build().unwrap();
    let (handler, task) = (Gate::new(), Gate::new());
    let (read, write) = Fd::pipe();
    let visitor = handler.clone();
    let handle = pool.register(read, move |fd: &mut Fd, _| {
        fd.drain();
        visitor.wait();
        Flow::Wait
    });
    write.write(b"!").unwrap();
    handler.until_entered(1);
    thread::scope(|scope| {
        const STAY: Duration = Duration::from_millis(20);
        // There when the host comes: it may not be for long.
        let visitor = task.clone();
        pool.post(move || visitor.wait()).unwrap();
        let joined = Instant::now();
        let host = scope.spawn(|| pool.join(STAY).unwrap());
        task.until_entered(1);
        handler.open();
        let shutdown = scope.spawn(|| pool.shutdown(LONG));
        until("it refuses", || pool.strand().is_err());
        until("the pool's own thread waits", || pool.stats().sets[0].leader == Some(0));
        until("the host's time is up", || joined.elapsed() > 4 * STAY);
        task.open();
        assert!(shutdown.join().unwrap().drained);
        assert!(host.join().unwrap() > 0);
    });
    drop(handle);
    settled(&pool);
}

/// Goal: a one-shot timer that is due when the drain begins has been accepted, and runs. Method: it is
/// harvested together with an event whose handler holds the only thread up.
#[test]
fn a_timer_that_is_due_runs_in_the_drain() {
    let _guard = hang_guard();
    let source = ScriptedSource::new();
    let pool =
        Pool::builder().threads(1).source(SourceKind::Scripted(source.clone())).build().unwrap();
    let (gate, ran) = (Gate::new(), Count::new());
    let io = ScriptedIo::new().unwrap();
    let visitor = gate.clone();
    let handle = pool.register(io.clone(), move |_: &mut ScriptedIo, _| {
        visitor.wait();
        Flow::Wait
    });
    let count = ran.clone();
    let timer = pool.after(Duration::from_secs(1), move || count.up()).unwrap();
    source.ready_at(Duration::from_secs(2), &io, Ready::READABLE);
    assert!(source.settle(common::PATIENCE));
    source.advance(Duration::from_secs(2));
    gate.until_entered(1);
    assert!(timer.is_pending());
    thread::scope(|scope| {
        let shutdown = scope.spawn(|| pool.shutdown(LONG));
        until("it refuses", || pool.strand().is_err());
        gate.open();
        let report = shutdown.join().unwrap();
        assert!(report.drained && report.cancelled == 0, "{report:?}");
    });
    assert_eq!(ran.get(), 1);
    drop(handle);
    settled(&pool);
}

/// Goal: a timer that was not due when a drain was through has not been lost, though it becomes due before the last thread
/// has left. Method: threads that take longer to leave than the timer has to go.
#[test]
fn a_timer_that_becomes_due_when_the_drain_is_through_is_not_lost() {
    let _guard = hang_guard();
    let leave = |_| thread::sleep(Duration::from_millis(100));
    let pool = Pool::builder().threads(2).on_stop(leave).build().unwrap();
    let timer = pool.after(Duration::from_millis(50), || ()).unwrap();
    let report = pool.shutdown(LONG);
    assert!(report.drained, "{report:?}");
    // It may have run in time after all.
    assert!(report.cancelled <= 1 && !timer.is_pending(), "{report:?}");
}

/// Goal: what lies in the hand of a thread that is stuck when the pool stops is cancelled, and whoever
/// waits for it hears of that. Method: tasks that one thread claims together, the first of which does
/// not return in time.
#[test]
fn what_a_stuck_thread_has_claimed_is_cancelled() {
    const TASKS: u64 = 40;
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (first, stuck) = (Gate::new(), Gate::new());
    let visitor = first.clone();
    pool.post(move || visitor.wait()).unwrap();
    first.until_entered(1);
    let visitor = stuck.clone();
    pool.post(move || visitor.wait()).unwrap();
    let behind: Vec<_> = (0..TASKS).map(|_| pool.submit(|| ()).unwrap()).collect();
    first.open();
    stuck.until_entered(1);
    let report = pool.shutdown(Duration::ZERO);
    assert_eq!((report.drained, &*report.stuck, report.cancelled), (false, &[0][..], TASKS));
    for task in behind {
        assert!(matches!(task.wait(), Err(Error::Cancelled)));
    }
    assert_eq!(pool.audit().in_flight, 1, "the one that runs");
    assert!(pool.audit().balances());
    stuck.open();
    until("it has returned", || pool.audit().in_flight == 0);
    settled(&pool);
}

/// A worker pool with a task that fails at first, and succeeds at its second attempt after `delay`.
fn task_to_retry(pool: &Pool, delay: Duration) -> (paceline::task::WorkerPool, Count) {
    let workers = paceline::task::WorkerPool::new(pool);
    let attempts = Count::new();
    let seen = attempts.clone();
    let work = move |_: &paceline::task::Attempt<'_>| {
        seen.up();
        if seen.get() == 1 { Err(std::io::Error::other("not yet")) } else { Ok(()) }
    };
    drop(workers.task("flaky", work).retry(paceline::Retry::fixed(3, delay)).submit().unwrap());
    until("the first attempt has failed", || {
        attempts.get() == 1 && workers.stats().task_types[0].retried == 1
    });
    (workers, attempts)
}

/// Goal: what waits for another attempt is waited for, if that comes before the deadline. Method: by the end of a
/// pool, and by that of its last owner.
#[test]
fn the_shutdown_of_a_pool_waits_for_retries() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (workers, attempts) = task_to_retry(&pool, Duration::from_millis(50));
    let report = pool.shutdown(LONG);
    assert!(report.drained, "{report:?}");
    assert_eq!((attempts.get(), report.worker_tasks), (2, 0), "{report:?}");
    drop(workers);

    let pool = Pool::builder().threads(1).build().unwrap();
    let (workers, attempts) = task_to_retry(&pool, Duration::from_millis(50));
    drop(workers);
    drop(pool);
    assert_eq!(attempts.get(), 2);
}

/// Goal: what is due beyond the deadline is not waited for, and reported.
#[test]
fn a_retry_beyond_the_deadline_is_cancelled_at_once() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).build().unwrap();
    let (_workers, attempts) = task_to_retry(&pool, Duration::from_secs(30 * 86400));
    let begun = Instant::now();
    let report = pool.shutdown(LONG);
    assert!(begun.elapsed() < LONG, "it has waited for nothing");
    assert!(!report.drained, "{report:?}");
    assert_eq!((attempts.get(), report.worker_tasks), (1, 1), "{report:?}");
}
