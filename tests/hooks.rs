//! What a host sees of the pool's threads: names, start and stop hooks, reports of slow handlers.

mod common;

use common::{Count, Gate, LONG, Tid, finish, hang_guard, threads_named, until};
use paceline::{Error, Pool, SlowReport};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

#[test]
fn threads_bear_the_pools_name_and_their_index() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(12).name("crew").build().unwrap();
    // A thread names itself, which may be after `build` has returned.
    until("all are named", || threads_named("crew-").len() == 12);
    let mut names: Vec<_> = threads_named("crew-").into_iter().filter_map(Tid::name).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    let expected: Vec<_> = (0..12).map(|index| format!("crew-{index}")).collect();
    assert_eq!(names, expected);
    finish(&pool);
    until("all are gone", || threads_named("crew-").is_empty());
    let pool = Pool::builder().threads(1).name("a-name-too-long-for-it").build().unwrap();
    until("it is cut", || threads_named("a-name-too-long").len() == 1);
    finish(&pool);
}

#[test]
fn hooks_run_on_each_thread_when_it_starts_and_when_it_stops() {
    let _guard = hang_guard();
    let log = Arc::new(Mutex::new(Vec::new()));
    let hook = |what: &'static str| {
        let log = Arc::clone(&log);
        move |index| log.lock().unwrap().push((what, index, Tid::current()))
    };
    let builder = Pool::builder().threads(8).on_start(hook("start")).on_stop(hook("stop"));
    let pool = builder.build().unwrap();
    let gate = Gate::new();
    for _ in 0..8 {
        let visitor = gate.clone();
        pool.post(move || visitor.wait()).unwrap();
    }
    gate.until_entered(8);
    let mut started: Vec<_> = log.lock().unwrap().clone();
    assert!(started.iter().all(|&(what, ..)| what == "start"));
    started.sort_by_key(|&(_, index, _)| index);
    assert!(started.iter().map(|&(_, index, _)| index).eq(0..8));
    gate.open();
    finish(&pool);
    // The same threads stop, and each has started first.
    let log = log.lock().unwrap();
    assert_eq!(log.len(), 16);
    for (_, index, tid) in started {
        let start = log.iter().position(|&entry| entry == ("start", index, tid));
        let stop = log.iter().position(|&entry| entry == ("stop", index, tid));
        assert!(start.unwrap() < stop.unwrap());
    }
}

fn reporting(threads: usize) -> (Pool, Arc<Mutex<Vec<SlowReport>>>) {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&reports);
    let hook = move |report: &SlowReport| list.lock().unwrap().push(report.clone());
    let builder = Pool::builder().threads(threads).on_slow(Duration::from_millis(2), hook);
    (builder.build().unwrap(), reports)
}

/// Goal: a handler that does not return is reported, once, though nothing else is to be done.
/// Method: it ends only after it was reported.
#[test]
fn a_handler_that_still_runs_is_reported_once() {
    let _guard = hang_guard();
    for _ in 0..20 {
        let (pool, reports) = reporting(2);
        let gate = Gate::new();
        let visitor = gate.clone();
        let slow = pool.submit(move || visitor.wait()).unwrap();
        until("it is reported", || !reports.lock().unwrap().is_empty());
        gate.open();
        slow.wait().unwrap();
        finish(&pool);
        let reports = reports.lock().unwrap();
        let [report] = &reports[..] else { panic!("{reports:?}") };
        assert!(report.running && report.thread < 2, "{report:?}");
        assert!(report.elapsed >= Duration::from_millis(2), "{report:?}");
    }
}

/// Goal: where there is no watch the report comes when the handler returns.
#[test]
fn a_thread_alone_reports_its_slow_handler_when_it_returns() {
    let _guard = hang_guard();
    let (pool, reports) = reporting(1);
    let slept = Duration::from_millis(5);
    pool.submit(move || std::thread::sleep(slept)).unwrap().wait().unwrap();
    until("it is reported", || !reports.lock().unwrap().is_empty());
    finish(&pool);
    let reports = reports.lock().unwrap();
    assert!(reports.iter().all(|report| !report.running && report.thread == 0), "{reports:?}");
    assert!(reports.iter().any(|report| report.elapsed >= slept), "{reports:?}");
}

/// Goal: handlers of every kind are reported, not tasks only.
#[test]
fn slow_handlers_timers_and_strands_are_reported_too() {
    let _guard = hang_guard();
    let (pool, reports) = reporting(1);
    let sleep = || std::thread::sleep(Duration::from_millis(4));
    let reported = |count: usize| {
        until("a report", || {
            let reports = reports.lock().unwrap();
            reports.iter().filter(|r| r.elapsed >= Duration::from_millis(4)).count() >= count
        });
    };
    pool.after(Duration::ZERO, sleep).unwrap();
    reported(1);
    pool.strand().unwrap().post(sleep).unwrap();
    reported(2);
    let periodic = pool.every(Duration::from_millis(1), move || {
        sleep();
        paceline::Flow::Done
    });
    reported(3);
    drop(periodic);
    let (read, write) = common::Fd::pipe();
    write.write(b"!").unwrap();
    let handle = pool.register(read, move |fd: &mut common::Fd, _| {
        sleep();
        fd.drain();
        paceline::Flow::Wait
    });
    reported(4);
    drop(handle);
    let _ = pool.shutdown(LONG);
    common::settled(&pool);
}

/// Goal: a hook is inside its pool. What it asks for must not wait for its own thread: it would wait
/// for ever.
#[test]
fn hooks_may_use_their_pool() {
    let _guard = hang_guard();
    let place: Arc<OnceLock<Pool>> = Arc::default();
    let (sender, answers) = mpsc::channel();
    let (pool_of_hook, stops) = (Arc::clone(&place), sender.clone());
    let start = move |_| {
        let pool = pool_of_hook.wait();
        let waited = pool.submit(|| 7).unwrap().wait();
        sender.send(matches!(waited, Err(Error::WouldDeadlock))).unwrap();
    };
    let pool_of_hook = Arc::clone(&place);
    let stop = move |_| {
        let pool = pool_of_hook.wait();
        stops.send(pool.shutdown(LONG).requested && pool.submit(|| 7).is_err()).unwrap();
    };
    let pool = Pool::builder().threads(1).on_start(start).on_stop(stop).build().unwrap();
    place.set(pool.clone()).unwrap();
    assert!(answers.recv().unwrap(), "nobody else is there to run what the first hook waits for");
    finish(&pool);
    assert!(answers.recv().unwrap(), "the second hook's shutdown is a request");
}

/// Goal: the last clone of a pool may go in a stop hook.
#[test]
fn a_pool_dropped_in_its_stop_hook_ends() {
    let _guard = hang_guard();
    let place: Arc<Mutex<Option<Pool>>> = Arc::default();
    let (taken, gate, held) = (Arc::clone(&place), Gate::new(), Count::new());
    let (visitor, ended) = (gate.clone(), held.on_drop());
    let stop = move |_| {
        let _ended = &ended;
        visitor.wait();
        drop(taken.lock().unwrap().take());
    };
    let pool = Pool::builder().threads(2).on_stop(stop).build().unwrap();
    *place.lock().unwrap() = Some(pool.clone());
    let report = pool.shutdown(Duration::ZERO);
    assert_eq!(gate.entered(), 2, "{report:?}");
    drop(pool);
    gate.open();
    held.until(1);
}
