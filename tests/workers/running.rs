//! How many tasks of a name run at once.

use super::common::{Count, Gate, LONG, hang_guard, quiet_panic, until};
use super::kit::{Notes, Stage, pool, settled};
use paceline::Rejected;
use paceline::task::{
    Attempt, Fault, Phases, Rate, Retry, Status, TaskHandle, TaskType, WorkerPool,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

fn bounded(workers: &WorkerPool, attempts: u32) -> TaskType {
    workers.task_type("bounded").max_running(attempts).build().unwrap()
}

fn until_waiting(kind: &TaskType, count: u64) {
    until("those who wait", || kind.stats().waiting == count);
}

/// A task that has a place until the gate is opened.
fn hold(kind: &TaskType, gate: &Gate) -> TaskHandle<()> {
    let inner = gate.clone();
    let before = gate.entered();
    let task = kind.submit(move |_: &Attempt<'_>| inner.wait()).unwrap();
    gate.until_entered(before + 1);
    task
}

#[test]
fn so_many_run_at_once_and_others_pass() {
    let _guard = hang_guard();
    let pool = pool(4);
    let workers = WorkerPool::new(&pool);
    let kind = bounded(&workers, 2);
    let gate = Gate::new();
    let mut tasks = vec![hold(&kind, &gate), hold(&kind, &gate)];
    for _ in 0..3 {
        let inner = gate.clone();
        tasks.push(kind.submit(move |_: &Attempt<'_>| inner.wait()).unwrap());
    }
    until_waiting(&kind, 3);
    // They have no thread, and are in nobody's way.
    for _ in 0..20 {
        let other = workers.task("other", |_: &Attempt<'_>| ()).submit().unwrap();
        assert_eq!(other.wait().unwrap().status, Status::Completed);
    }
    let stats = kind.stats();
    assert_eq!((stats.running, stats.waiting, stats.max_running), (2, 3, Some(2)));
    assert_eq!(gate.entered(), 2);
    gate.open();
    for task in tasks {
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    assert_eq!(kind.stats().waiting, 0);
    settled(&workers);
}

/// Goal: under a storm there are never more. Method: those inside are counted.
#[test]
fn a_storm_stays_in_its_bounds() {
    let _guard = hang_guard();
    let pool = pool(4);
    let workers = WorkerPool::new(&pool);
    let kind = bounded(&workers, 2);
    let (inside, over) = (Arc::new(AtomicU32::new(0)), Count::new());
    let submit = |number: u32| {
        let (inside, over) = (Arc::clone(&inside), over.clone());
        let task = kind.task(move |attempt: &Attempt<'_>| {
            if inside.fetch_add(1, SeqCst) >= 2 {
                over.up();
            }
            std::thread::yield_now();
            inside.fetch_sub(1, SeqCst);
            match (number % 5, attempt.number()) {
                (0, 1) => Err(Fault::new("once")),
                (1, _) => quiet_panic("now and then"),
                _ => Ok(()),
            }
        });
        task.retry(Retry::fixed(1, Duration::ZERO)).submit().unwrap()
    };
    let tasks: Vec<_> = (0..2000).map(submit).collect();
    for (number, task) in tasks.iter().enumerate() {
        if number % 7 == 0 {
            task.cancel();
        }
    }
    for task in tasks {
        assert!(task.wait().unwrap().status.is_end());
    }
    assert_eq!(over.get(), 0);
    settled(&workers);
}

#[test]
fn those_who_wait_go_in_the_order_of_their_submission() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let kind = bounded(&workers, 1);
    let (gate, notes) = (Gate::new(), Notes::default());
    let first = hold(&kind, &gate);
    let tasks: Vec<_> = (0..6).map(|number| kind.submit(notes.pen(number)).unwrap()).collect();
    until_waiting(&kind, 6);
    // Whoever ends while it waits is gone from the line at once, closure and all.
    let drops = Count::new();
    let held = drops.on_drop();
    let doomed = kind.submit(move |_: &Attempt<'_>| _ = &held).unwrap();
    until_waiting(&kind, 7);
    assert!(doomed.cancel() && tasks[2].cancel());
    assert_eq!((drops.get(), kind.stats().waiting), (1, 5));
    gate.open();
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    let ends: Vec<_> = tasks.into_iter().map(|task| task.wait().unwrap().status).collect();
    assert_eq!(ends.iter().filter(|end| **end == Status::Completed).count(), 5);
    assert_eq!(notes.take(), [0, 1, 3, 4, 5]);
    settled(&workers);
}

#[test]
fn between_attempts_a_task_has_no_place_and_keeps_its_turn() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let kind = bounded(&stage.workers, 1);
    let notes = Notes::default();
    let inner = notes.clone();
    let fails = move |attempt: &Attempt<'_>| {
        inner.add(attempt.number());
        if attempt.number() == 1 { Err(Fault::new("once")) } else { Ok(()) }
    };
    let first = kind.task(fails).retry(Retry::fixed(1, HOUR)).submit().unwrap();
    let second = kind.submit(notes.pen(10)).unwrap();
    stage.settle();
    assert_eq!(notes.take(), [1, 10]);
    assert_eq!(second.wait().unwrap().status, Status::Completed);
    // While the place is taken the retry comes into the line, before all who are younger.
    let gate = Gate::new();
    let busy = hold(&kind, &gate);
    let younger: Vec<_> = (11..13).map(|number| kind.submit(notes.pen(number)).unwrap()).collect();
    let settle = stage.pass_without_settling(HOUR + MS);
    gate.open();
    settle();
    let order = notes.take();
    assert_eq!(order.len(), 3);
    assert_eq!(order.iter().filter(|number| **number >= 11).copied().collect::<Vec<_>>(), [11, 12]);
    for task in younger.into_iter().chain([first, busy]) {
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    settled(&stage.workers);
}

#[test]
fn what_does_not_listen_keeps_its_place() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let kind = bounded(&workers, 1);
    let gate = Gate::new();
    let inner = gate.clone();
    let deaf = kind.task(move |_: &Attempt<'_>| inner.wait()).timeout(MS).submit().unwrap();
    gate.until_entered(1);
    assert_eq!(deaf.wait().unwrap().status, Status::TimedOut);
    let next = kind.submit(|_: &Attempt<'_>| ()).unwrap();
    until_waiting(&kind, 1);
    assert_eq!(next.status(), Status::Pending);
    gate.open();
    assert_eq!(next.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

/// A place and a token: whoever has the one and not the other waits in its turn.
#[test]
fn places_and_rates_go_together() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let kind = stage.workers.task_type("both").max_running(1).rate(Rate::new(1, HOUR).burst(2));
    let kind = kind.build().unwrap();
    stage.pass(2 * HOUR);
    let notes = Notes::default();
    let tasks: Vec<_> = (0..5).map(|number| kind.submit(notes.pen(number)).unwrap()).collect();
    stage.settle();
    assert_eq!(notes.take(), [0, 1]);
    for number in 2..5 {
        stage.pass(HOUR + MS);
        assert_eq!(notes.take(), [number]);
    }
    for task in tasks {
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    settled(&stage.workers);
}

#[test]
fn places_and_keys_go_together() {
    let _guard = hang_guard();
    let pool = pool(4);
    let workers = WorkerPool::new(&pool);
    let kind = bounded(&workers, 2);
    let notes: Vec<_> = (0..4).map(|_| Notes::default()).collect();
    let submit = |number: u32| {
        let key = number % 4;
        kind.task(notes[key as usize].pen(number)).key(key).submit().unwrap()
    };
    let tasks: Vec<_> = (0..400).map(submit).collect();
    for task in tasks {
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    for notes in notes {
        assert!(notes.take().is_sorted());
    }
    settled(&workers);
}

#[test]
fn a_shutdown_ends_who_waits_for_a_place() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let kind = bounded(&workers, 1);
    let gate = Gate::new();
    let first = hold(&kind, &gate);
    let waiting: Vec<_> = (0..9).map(|_| kind.submit(|_: &Attempt<'_>| ()).unwrap()).collect();
    until_waiting(&kind, 9);
    let mut phases = Phases::default();
    (phases.drain, phases.stop) = (Duration::ZERO, Duration::ZERO);
    let report = workers.shutdown(phases);
    assert_eq!(report.cancelled, ["bounded"; 9]);
    for task in waiting {
        assert_eq!(task.wait().unwrap().status, Status::Cancelled);
    }
    assert_eq!(kind.stats().waiting, 0);
    gate.open();
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

/// Goal: the pool's end comes to those in the line though the one that has the place does not return.
/// Method: so many wait that letting each go from within the one before would not end well.
#[test]
fn the_pools_end_ends_who_waits_for_a_place() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let kind = bounded(&workers, 1);
    let gate = Gate::new();
    let first = hold(&kind, &gate);
    let waiting: Vec<_> = (0..9).map(|_| kind.submit(|_: &Attempt<'_>| ()).unwrap()).collect();
    until_waiting(&kind, 9);
    let _report = pool.shutdown(Duration::ZERO);
    for task in waiting {
        assert_eq!(task.wait().unwrap().status, Status::Cancelled);
    }
    gate.open();
    assert_eq!(first.wait().unwrap().status, Status::Completed);
    settled(&workers);
}

#[test]
fn a_drain_of_the_pool_lets_them_all_run() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let kind = bounded(&workers, 1);
    let gate = Gate::new();
    let first = hold(&kind, &gate);
    let waiting: Vec<_> = (0..2000).map(|_| kind.submit(|_: &Attempt<'_>| ()).unwrap()).collect();
    until_waiting(&kind, 2000);
    gate.open();
    let report = pool.shutdown(LONG);
    assert!(report.drained);
    for task in waiting.into_iter().chain([first]) {
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    settled(&workers);
}

#[test]
fn who_waits_for_a_place_is_bounded_and_the_bound_has_a_range() {
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::builder(&pool).max_waiting(2).build().unwrap();
    let kind = bounded(&workers, 1);
    let gate = Gate::new();
    let first = hold(&kind, &gate);
    let waiting: Vec<_> = (0..2).map(|_| kind.submit(|_: &Attempt<'_>| ()).unwrap()).collect();
    until_waiting(&kind, 2);
    assert!(matches!(kind.submit(|_: &Attempt<'_>| ()), Err(Rejected::Full(_, _))));
    gate.open();
    for task in waiting.into_iter().chain([first]) {
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    let wrong = workers.task_type("none").max_running(0).build().unwrap_err().to_string();
    assert_eq!(wrong, "max_running is 0, but must be at least 1");
    settled(&workers);
}
