//! Tasks whose attempts a host takes as data.

use super::common::{Gate, hang_guard, readable, until};
use super::kit::{Stage, pool, settled, small_stage, use_up_timers};
use paceline::task::{AttemptId, Fault, Phases, Retry, Status, TaskEvent, WorkerPool};
use paceline::{Error, Lane, Rejected};
use std::collections::HashSet;
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// What can be pulled now.
fn pull_all(workers: &WorkerPool) -> Vec<TaskEvent> {
    let mut events = Vec::new();
    while workers.pull(&mut events, 7, Duration::ZERO).unwrap() > 0 {}
    events
}

/// The one attempt that is there, or will be at once, and its number.
#[track_caller]
fn pull_one(workers: &WorkerPool) -> (AttemptId, u32) {
    let mut events = Vec::new();
    workers.pull(&mut events, 7, HOUR).unwrap();
    match events[..] {
        [TaskEvent::Attempt { id, number, .. }] => (id, number),
        ref other => panic!("{other:?}"),
    }
}

/// What the task is then. None: the attempt is stale.
fn complete(workers: &WorkerPool, id: AttemptId, result: Result<(), Fault>) -> Option<Status> {
    match workers.complete(id, result) {
        Ok(status) => Some(status),
        Err(Error::Stale { what: "attempt" }) => None,
        Err(other) => panic!("{other}"),
    }
}

#[track_caller]
fn token(event: &TaskEvent) -> u64 {
    match *event {
        TaskEvent::Attempt { token, .. } | TaskEvent::End { token, .. } => token,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn an_attempt_is_pulled_and_completed() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("pulled").build().unwrap();
    let task = kind.task_pulled(42).submit().unwrap();
    assert_eq!(task.status(), Status::Pending);
    let events = pull_all(&workers);
    let [TaskEvent::Attempt { id, token: 42, task: of, number: 1 }] = events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((of, task.status()), (task.id(), Status::Running));
    assert_eq!(kind.stats().running, 1);
    assert!(!workers.is_cancelled(id).unwrap());
    assert_eq!(complete(&workers, id, Ok(())), Some(Status::Completed));
    assert_eq!(complete(&workers, id, Ok(())), None);
    assert!(workers.is_cancelled(id).is_err());
    assert_eq!(kind.stats().running, 0);
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.attempts, report.worker), (Status::Completed, 1, None));
    assert_eq!(pull_all(&workers), [], "its end was the answer to its completion");
    settled(&workers);
}

#[test]
fn what_failed_is_pulled_again_until_its_attempts_are_used_up() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let retry = Retry::fixed(2, HOUR);
    let kind = stage.workers.task_type("again").retry(retry).build().unwrap();
    let task = kind.task_pulled(1).submit().unwrap();
    for (number, then) in [(1, Status::Retrying), (2, Status::Retrying), (3, Status::Failed)] {
        let (id, seen) = pull_one(&stage.workers);
        assert_eq!(seen, number);
        assert_eq!(complete(&stage.workers, id, Err(Fault::new("not yet"))), Some(then));
        assert_eq!(pull_all(&stage.workers), []);
        stage.pass(HOUR + MS);
    }
    let report = task.wait().unwrap();
    assert_eq!(report.result.unwrap_err().message(), "not yet");
    assert_eq!((report.status, report.attempts), (Status::Failed, 3));
    settled(&stage.workers);
}

#[test]
fn lanes_are_taken_by_their_weights() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("lanes").build().unwrap();
    for token in 0..256 {
        let lane = Lane::ALL[token as usize % 4];
        drop(kind.task_pulled(token).lane(lane).submit().unwrap());
    }
    let tokens: Vec<_> = pull_all(&workers).iter().map(token).collect();
    let of = |lane| tokens.iter().filter(move |&&token| token % 4 == lane).copied();
    for lane in 0..4 {
        assert!(of(lane).is_sorted(), "in order within a lane");
    }
    let first: Vec<_> = tokens[..64].iter().map(|token| token % 4).collect();
    let counts = [0, 1, 2, 3].map(|lane| first.iter().filter(|&&of| of == lane).count());
    assert_eq!(counts, [32, 18, 10, 4]);
}

#[test]
fn what_was_cancelled_is_never_pulled_but_its_end_is() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("cancelled").build().unwrap();
    let task = kind.task_pulled(5).submit().unwrap();
    assert!(task.cancel());
    let end = TaskEvent::End { token: 5, task: task.id(), status: Status::Cancelled };
    assert_eq!(pull_all(&workers), [end]);
    assert_eq!(task.wait().unwrap().status, Status::Cancelled);
    settled(&workers);
}

/// Goal: a host that has a policy of its own for what it has no room for can follow it. Method: it rejects
/// one that waits and one that is out; the first ends so, in the books too.
#[test]
fn what_its_host_rejects_ends_as_that_unless_it_is_out() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("rejected").build().unwrap();
    let out = kind.task_pulled(1).submit().unwrap();
    let (id, _) = pull_one(&workers);
    let waits = kind.task_pulled(2).submit().unwrap();
    assert!(waits.reject());
    assert!(!waits.reject() && !waits.cancel(), "it has ended");
    let end = TaskEvent::End { token: 2, task: waits.id(), status: Status::Rejected };
    assert_eq!(pull_all(&workers), [end]);
    let report = waits.wait().unwrap();
    assert_eq!(report.status, Status::Rejected);
    assert_eq!(report.result.unwrap_err().message(), "it was dropped to make room for others");
    assert!(!out.reject(), "it runs");
    assert!(!workers.is_cancelled(id).unwrap(), "and is not asked");
    assert_eq!(complete(&workers, id, Ok(())), Some(Status::Completed));
    assert!(!out.reject());
    assert_eq!(kind.stats().dropped, 1);
    settled(&workers);
}

#[test]
fn one_that_is_out_is_asked_and_its_answer_counts() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("asked").retry(Retry::fixed(9, MS)).build().unwrap();
    for (result, then) in
        [(Err(Fault::new("gave up")), Status::Cancelled), (Ok(()), Status::Completed)]
    {
        let task = kind.task_pulled(5).submit().unwrap();
        let (id, _) = pull_one(&workers);
        assert!(!task.cancel(), "it runs");
        assert!(workers.is_cancelled(id).unwrap());
        assert_eq!(complete(&workers, id, result), Some(then));
        assert_eq!(task.wait().unwrap().status, then);
        pull_all(&workers);
    }
    settled(&workers);
}

#[test]
fn a_time_out_ends_it_though_its_host_does_not_come_back() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let kind = stage.workers.task_type("late").timeout(HOUR).build().unwrap();
    let task = kind.task_pulled(6).submit().unwrap();
    let (id, _) = pull_one(&stage.workers);
    stage.pass(HOUR / 2);
    stage.workers.heartbeat(id).unwrap();
    stage.pass(HOUR / 2 + MS);
    assert_eq!(task.status(), Status::Running, "it gave a sign of life");
    stage.pass(HOUR);
    assert_eq!(task.status(), Status::TimedOut);
    assert!(stage.workers.is_cancelled(id).unwrap());
    let end = TaskEvent::End { token: 6, task: task.id(), status: Status::TimedOut };
    assert_eq!(pull_all(&stage.workers), [end]);
    assert_eq!(complete(&stage.workers, id, Ok(())), None);
    assert_eq!(task.wait().unwrap().status, Status::TimedOut);
    settled(&stage.workers);
}

/// Goal: an attempt whose host is gone does not hang for ever. Method: one that is silent for its lease, by the
/// test's clock, is followed by another, and the last by an end that is told; what the first host says is stale.
#[test]
fn a_host_that_is_silent_for_its_lease_has_failed() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let kind = stage.workers.task_type("leased").lease(HOUR).retry(Retry::fixed(1, Duration::ZERO));
    let kind = kind.max_running(1).build().unwrap();
    let task = kind.task_pulled(6).key("account 7").submit().unwrap();
    let (gone, _) = pull_one(&stage.workers);
    stage.pass(HOUR - MS);
    stage.workers.heartbeat(gone).unwrap();
    stage.pass(HOUR - MS);
    assert_eq!((task.status(), pull_all(&stage.workers)), (Status::Running, vec![]));
    stage.pass(2 * MS);
    let (next, number) = pull_one(&stage.workers);
    assert_eq!((number, kind.stats().retried, kind.stats().running), (2, 1, 1));
    assert_eq!(complete(&stage.workers, gone, Ok(())), None);
    assert!(stage.workers.heartbeat(gone).is_err());
    stage.pass(HOUR + MS);
    let end = TaskEvent::End { token: 6, task: task.id(), status: Status::Failed };
    assert_eq!(pull_all(&stage.workers), [end]);
    assert_eq!(complete(&stage.workers, next, Ok(())), None);
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Failed, 2));
    let reason = report.result.unwrap_err().to_string();
    assert_eq!(reason, "its host has given no sign of life for as long as its lease");
    settled(&stage.workers);
}

/// What is completed in time has its answer, and neither its key nor its place is another's. Without a lease
/// a host may be silent for as long as it likes.
#[test]
fn a_host_that_answers_within_its_lease_is_heard() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let leased = stage.workers.task_type("leased").lease(HOUR).build().unwrap();
    let free = stage.workers.task_type("free").build().unwrap();
    let task = leased.task_pulled(1).submit().unwrap();
    let (id, _) = pull_one(&stage.workers);
    let waits = free.task_pulled(2).submit().unwrap();
    let (patient, _) = pull_one(&stage.workers);
    stage.pass(HOUR - MS);
    assert_eq!(complete(&stage.workers, id, Ok(())), Some(Status::Completed));
    stage.pass(100 * HOUR);
    assert_eq!((task.status(), waits.status()), (Status::Completed, Status::Running));
    assert_eq!(pull_all(&stage.workers), []);
    assert_eq!(complete(&stage.workers, patient, Ok(())), Some(Status::Completed));
    settled(&stage.workers);
}

/// A task that has ended otherwise is told of once, and its key is free when its host counts as gone.
#[test]
fn a_lease_frees_the_key_of_a_task_that_has_ended() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let kind = stage.workers.task_type("leased").lease(2 * HOUR).timeout(HOUR).build().unwrap();
    let lost = kind.task_pulled(1).key(7).submit().unwrap();
    let (id, _) = pull_one(&stage.workers);
    let next = kind.task_pulled(2).key(7).submit().unwrap();
    stage.pass(HOUR + 100 * MS);
    let end = TaskEvent::End { token: 1, task: lost.id(), status: Status::TimedOut };
    assert_eq!((pull_all(&stage.workers), next.status()), (vec![end], Status::Pending));
    stage.pass(HOUR);
    let (second, _) = pull_one(&stage.workers);
    assert_eq!(complete(&stage.workers, id, Ok(())), None);
    assert_eq!(complete(&stage.workers, second, Ok(())), Some(Status::Completed));
    settled(&stage.workers);
}

/// Goal: a lease is kept though every timer is in use when the attempt is pulled, and every place of the low
/// lane; and so again when timers were free meanwhile. Method: three attempts; one is completed, one gives a
/// sign of life, and one is silent.
#[test]
fn a_lease_needs_no_free_timer() {
    let _guard = hang_guard();
    let stage = small_stage();
    let (pool, workers) = (&stage.pool, &stage.workers);
    let kind = workers.task_type("leased").lease(HOUR).build().unwrap();
    for _ in 0..2 {
        let tasks = [0, 1, 2].map(|token| kind.task_pulled(token).submit().unwrap());
        let end = |at: u64| TaskEvent::End {
            token: at,
            task: tasks[at as usize].id(),
            status: Status::Failed,
        };
        let timers = use_up_timers(pool);
        let gate = Gate::new();
        let inner = gate.clone();
        pool.lane(Lane::Critical).post(move || inner.wait()).unwrap();
        gate.until_entered(1);
        while pool.lane(Lane::Low).try_post(|| ()).is_ok() {}
        let ids: Vec<_> = pull_all(workers).iter().map(attempt).collect();
        gate.open();
        stage.pass(HOUR - MS);
        assert_eq!(complete(workers, ids[0], Ok(())), Some(Status::Completed));
        workers.heartbeat(ids[1]).unwrap();
        stage.pass(100 * MS);
        let seen = [0, 1, 2].map(|at: usize| tasks[at].status());
        assert_eq!(seen, [Status::Completed, Status::Running, Status::Failed]);
        assert_eq!(pull_all(workers), [end(2)]);
        // From now on it has a timer of its own.
        timers.iter().for_each(|timer| assert!(timer.cancel()));
        stage.pass(200 * MS);
        stage.pass(HOUR - 299 * MS);
        assert_eq!((pull_all(workers), tasks[1].status()), (vec![end(1)], Status::Failed));
    }
    settled(workers);
}

/// Goal: an attempt's time is kept though every timer is in use when it is pulled, and nobody waits for its task; and
/// so is the rest of it when a timer is free meanwhile. Method: three attempts; one is completed in time, one may take
/// longer, and one not.
#[test]
fn a_limit_needs_no_free_timer() {
    let _guard = hang_guard();
    let stage = small_stage();
    let (pool, workers) = (&stage.pool, &stage.workers);
    let kind = workers.task_type("limited").timeout(HOUR).build().unwrap();
    for _ in 0..2 {
        let limits = [HOUR, 2 * HOUR, HOUR];
        let tasks = [0, 1, 2].map(|token: usize| {
            kind.task_pulled(token as u64).timeout(limits[token]).submit().unwrap()
        });
        let status = || [0, 1, 2].map(|at: usize| tasks[at].status());
        let end = |at: usize| TaskEvent::End {
            token: at as u64,
            task: tasks[at].id(),
            status: Status::TimedOut,
        };
        let timers = use_up_timers(pool);
        let ids: Vec<_> = pull_all(workers).iter().map(attempt).collect();
        stage.pass(HOUR - MS);
        assert_eq!(complete(workers, ids[0], Ok(())), Some(Status::Completed));
        assert_eq!(status(), [Status::Completed, Status::Running, Status::Running]);
        stage.pass(200 * MS);
        assert_eq!(status(), [Status::Completed, Status::Running, Status::TimedOut]);
        assert_eq!(pull_all(workers), [end(2)]);
        // From now on it has a timer of its own.
        timers.iter().for_each(|timer| assert!(timer.cancel()));
        stage.pass(200 * MS);
        stage.pass(HOUR);
        assert_eq!((pull_all(workers), tasks[1].status()), (vec![end(1)], Status::TimedOut));
        ids[1..].iter().for_each(|&id| assert_eq!(complete(workers, id, Ok(())), None));
    }
    settled(workers);
}

#[track_caller]
fn attempt(event: &TaskEvent) -> AttemptId {
    match *event {
        TaskEvent::Attempt { id, .. } => id,
        ref other => panic!("{other:?}"),
    }
}

/// Who is refused since every handle is in use is not refused for ever.
#[test]
fn the_first_that_is_pulled_may_come_when_handles_are_free() {
    let _guard = hang_guard();
    let stage = small_stage();
    let kind = stage.workers.task_type("pulled").build().unwrap();
    let timers = use_up_timers(&stage.pool);
    let refused = kind.task_pulled(1).submit().unwrap_err();
    assert!(matches!(refused, Rejected::Full(_)), "{refused:?}");
    timers.iter().for_each(|timer| assert!(timer.cancel()));
    stage.settle();
    let task = kind.task_pulled(2).submit().unwrap();
    let (id, _) = pull_one(&stage.workers);
    assert_eq!(complete(&stage.workers, id, Ok(())), Some(Status::Completed));
    assert_eq!(task.wait().unwrap().status, Status::Completed);
    settled(&stage.workers);
}

#[test]
fn a_lease_has_a_range() {
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    for wrong in [Duration::ZERO, Duration::from_micros(999), Duration::MAX] {
        let error = workers.task_type("leased").lease(wrong).build().unwrap_err();
        let expected = format!("lease is {wrong:?}, but must be 1 ms to 100 years");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_soft_time_that_is_over_only_asks() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let kind = stage.workers.task_type("soft").soft_timeout(HOUR).build().unwrap();
    let task = kind.task_pulled(6).submit().unwrap();
    let (id, _) = pull_one(&stage.workers);
    assert!(!stage.workers.is_cancelled(id).unwrap());
    stage.pass(2 * HOUR);
    assert!(stage.workers.is_cancelled(id).unwrap());
    assert_eq!(task.status(), Status::Running);
    assert_eq!(complete(&stage.workers, id, Ok(())), Some(Status::Completed));
    settled(&stage.workers);
}

#[test]
fn a_late_attempt_is_not_overlapped_by_its_retry() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let retry = Retry::fixed(1, Duration::ZERO);
    let kind = stage.workers.task_type("slow").timeout(HOUR).retry(retry).build().unwrap();
    let task = kind.task_pulled(6).submit().unwrap();
    let (id, _) = pull_one(&stage.workers);
    // Less than the grace of an attempt that may be followed by another.
    stage.pass(HOUR + 500 * MS);
    assert_eq!((task.status(), pull_all(&stage.workers)), (Status::Running, vec![]));
    until("it is asked", || stage.workers.is_cancelled(id).unwrap());
    let failed = Err(Fault::new("too slow"));
    assert_eq!(complete(&stage.workers, id, failed), Some(Status::Retrying));
    let (next, number) = pull_one(&stage.workers);
    assert_eq!((number, next == id), (2, false));
    assert_eq!(complete(&stage.workers, next, Ok(())), Some(Status::Completed));
    assert_eq!(task.wait().unwrap().attempts, 2);
    settled(&stage.workers);
}

#[test]
fn tasks_of_a_key_are_out_one_at_a_time_and_in_order() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("keyed").build().unwrap();
    for token in 0..20 {
        drop(kind.task_pulled(token).key("account 7").submit().unwrap());
    }
    for token in 0..20 {
        let events = pull_all(&workers);
        let [TaskEvent::Attempt { id, token: seen, .. }] = events[..] else { panic!("{events:?}") };
        assert_eq!(seen, token);
        workers.complete(id, Ok(())).unwrap();
    }
    settled(&workers);
}

#[test]
fn no_more_are_out_than_may_run() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("bounded").max_running(2).build().unwrap();
    for token in 0..6 {
        drop(kind.task_pulled(token).submit().unwrap());
    }
    let (mut out, mut seen) = (Vec::new(), Vec::new());
    for done in 0..6 {
        for event in pull_all(&workers) {
            let TaskEvent::Attempt { id, token, .. } = event else { panic!("{event:?}") };
            out.push(id);
            seen.push(token);
        }
        assert_eq!((out.len(), kind.stats().running), (2.min(6 - done), 2.min(6 - done as u64)));
        workers.complete(out.remove(0), Ok(())).unwrap();
    }
    assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
    settled(&workers);
}

/// Goal: one that ends after it was let go gives its place back once. Method: it is cancelled where it waits to
/// be pulled; the next comes out in its place, and no other with it.
#[test]
fn the_place_of_one_that_was_let_go_is_given_back_once() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("bounded").max_running(1).build().unwrap();
    let tasks: Vec<_> = (0..5).map(|token| kind.task_pulled(token).submit().unwrap()).collect();
    let (first, _) = pull_one(&workers);
    // The others come to the gate.
    assert_eq!((pull_all(&workers), kind.stats().waiting), (vec![], 4));
    assert_eq!(complete(&workers, first, Ok(())), Some(Status::Completed));
    assert!(tasks[1].cancel());
    for token in 2..5 {
        let events = pull_all(&workers);
        let out: Vec<_> = events
            .iter()
            .filter_map(|event| match *event {
                TaskEvent::Attempt { id, token, .. } => Some((id, token)),
                _ => None,
            })
            .collect();
        assert_eq!(out.len(), 1, "{events:?}");
        assert_eq!(out[0].1, token);
        assert_eq!(complete(&workers, out[0].0, Ok(())), Some(Status::Completed));
    }
    settled(&workers);
}

/// Goal: an attempt whose host does not come back has no place once its task has ended, and gives none
/// back when the host comes after all. Method: both places are out when their time is over.
#[test]
fn the_place_of_one_that_is_abandoned_is_free() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let kind = stage.workers.task_type("abandoned").max_running(2).timeout(HOUR).build().unwrap();
    for token in 0..6 {
        drop(kind.task_pulled(token).submit().unwrap());
    }
    let lost: Vec<_> = pull_all(&stage.workers);
    assert_eq!((lost.iter().map(token).collect::<Vec<_>>(), kind.stats().waiting), (vec![0, 1], 4));
    stage.pass(HOUR + HOUR);
    let mut out: Vec<_> = pull_all(&stage.workers);
    out.sort_by_key(|event| matches!(event, TaskEvent::Attempt { .. }));
    assert_eq!(out[2..].iter().map(token).collect::<Vec<_>>(), [2, 3]);
    assert!(out[..2].iter().all(|event| matches!(event, TaskEvent::End { .. })));
    for event in lost {
        let TaskEvent::Attempt { id, .. } = event else { panic!("{event:?}") };
        assert_eq!(complete(&stage.workers, id, Ok(())), None);
    }
    assert_eq!(pull_all(&stage.workers), [], "a place was given back twice");
    for event in &out[2..] {
        let TaskEvent::Attempt { id, .. } = *event else { panic!("{event:?}") };
        assert_eq!(complete(&stage.workers, id, Ok(())), Some(Status::Completed));
        let next = pull_all(&stage.workers);
        let [TaskEvent::Attempt { id, .. }] = next[..] else { panic!("{next:?}") };
        assert_eq!(complete(&stage.workers, id, Ok(())), Some(Status::Completed));
    }
    settled(&stage.workers);
}

#[test]
fn a_time_in_the_queue_is_over_though_nobody_pulls() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let kind = stage.workers.task_type("forgotten").build().unwrap();
    let task = kind.task_pulled(7).queue_timeout(HOUR).delay(HOUR).submit().unwrap();
    stage.pass(HOUR + MS);
    assert_eq!(task.status(), Status::Pending);
    stage.pass(2 * HOUR);
    assert_eq!(task.status(), Status::TimedOut);
    assert_eq!(pull_all(&stage.workers).iter().map(token).collect::<Vec<_>>(), [7]);
    settled(&stage.workers);
}

#[test]
fn full_gives_the_task_back() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::builder(&pool).max_pulled(2).build().unwrap();
    let kind = workers.task_type("many").build().unwrap();
    let _two = [1, 2].map(|token| kind.task_pulled(token).submit().unwrap());
    match kind.task_pulled(3).submit() {
        Err(Rejected::Full(task)) => assert_eq!(task.token(), 3),
        other => panic!("{other:?}"),
    }
    assert_eq!(pull_all(&workers).len(), 2);
    let _third = kind.task_pulled(3).submit().unwrap();
    assert_eq!(kind.stats().rejected, 1);
}

#[test]
fn the_descriptor_is_readable_while_there_is_something_to_pull() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("polled").build().unwrap();
    let fd = workers.pollable().unwrap();
    let readable = || readable(fd.as_raw_fd(), 0);
    assert!(!readable());
    let _task = kind.task_pulled(1).submit().unwrap();
    assert!(readable());
    let (id, _) = pull_one(&workers);
    assert!(!readable());
    workers.complete(id, Ok(())).unwrap();
    let _ = workers.shutdown(Phases::default());
    assert!(readable(), "a pull says that it is over");
}

#[test]
fn a_shutdown_waits_for_hosts_and_ends_what_nobody_pulls() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("last").build().unwrap();
    let tasks: Vec<_> = (0..100).map(|token| kind.task_pulled(token).submit().unwrap()).collect();
    let host = {
        let workers = workers.clone();
        thread::spawn(move || {
            let (mut events, mut done) = (Vec::new(), 0);
            while workers.pull(&mut events, 8, HOUR).is_ok() {
                for event in events.drain(..) {
                    let TaskEvent::Attempt { id, .. } = event else { panic!("{event:?}") };
                    workers.complete(id, Ok(())).unwrap();
                    done += 1;
                }
            }
            done
        })
    };
    let report = workers.shutdown(Phases::default());
    assert!(report.drained && report.stuck.is_empty() && report.cancelled.is_empty());
    assert_eq!(host.join().unwrap(), 100);
    assert!(tasks.iter().all(|task| task.status() == Status::Completed));
    assert!(matches!(kind.task_pulled(1).submit(), Err(Rejected::ShutDown(_))));

    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("left").build().unwrap();
    let out = kind.task_pulled(1).submit().unwrap();
    let (id, _) = pull_one(&workers);
    let left = kind.task_pulled(2).submit().unwrap();
    let report = workers.shutdown(Phases { drain: MS, stop: MS, clean_up: MS });
    assert_eq!(report.cancelled, ["left"]);
    assert_eq!(report.stuck, [("left".to_owned(), None)]);
    assert_eq!((left.status(), out.status()), (Status::Cancelled, Status::Running));
    assert!(workers.is_cancelled(id).unwrap());
    assert_eq!(complete(&workers, id, Err(Fault::new("gave up"))), Some(Status::Cancelled));
    let mut events = Vec::new();
    while workers.pull(&mut events, 8, HOUR).is_ok() {}
    let ended: HashSet<_> = events.iter().map(token).collect();
    assert_eq!(ended, HashSet::from([1, 2]));
    settled(&workers);
}

#[test]
fn a_pool_that_stops_ends_what_waits() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("orphan").build().unwrap();
    let out = kind.task_pulled(1).submit().unwrap();
    let (id, _) = pull_one(&workers);
    let left = kind.task_pulled(2).submit().unwrap();
    let _ = pool.shutdown(Duration::ZERO);
    until("the end of what waits", || left.status() == Status::Cancelled);
    assert_eq!(complete(&workers, id, Ok(())), Some(Status::Completed));
    assert_eq!(out.wait().unwrap().status, Status::Completed);
    let mut events = Vec::new();
    while workers.pull(&mut events, 8, HOUR).is_ok() {}
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(matches!(kind.task_pulled(3).submit(), Err(Rejected::ShutDown(_))));
    settled(&workers);
}

#[test]
fn what_is_out_when_all_is_gone_has_failed() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let kind = workers.task_type("lost").retry(Retry::fixed(9, HOUR)).build().unwrap();
    let out = kind.task_pulled(1).submit().unwrap();
    pull_one(&workers);
    drop(pool);
    drop((kind, workers.clone()));
    assert_eq!(out.status(), Status::Running);
    drop(workers);
    let report = out.wait().unwrap();
    assert_eq!(report.status, Status::Failed);
    let reason = report.result.unwrap_err().to_string();
    assert_eq!(reason, "nobody has completed the attempt that was pulled");
}

/// Goal: every task ends once, whoever submits, pulls, completes and cancels meanwhile. Method: three
/// threads of each; hosts fail some attempts, and complete others on another thread.
#[test]
fn many_hosts_and_submitters_lose_nothing() {
    const EACH: u64 = 4000;
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let retry = Retry::fixed(3, Duration::ZERO);
    let kind = workers.task_type("crowd").retry(retry).build().unwrap();
    let ends = thread::scope(|scope| {
        let hosts: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let (mut events, mut ends) = (Vec::new(), Vec::new());
                    while workers.pull(&mut events, 32, HOUR).is_ok() {
                        for event in events.drain(..) {
                            match event {
                                TaskEvent::Attempt { id, token, number, .. } => {
                                    let fails = token % 7 >= u64::from(number);
                                    let said =
                                        if fails { Err(Fault::new("again")) } else { Ok(()) };
                                    let then = workers.complete(id, said).unwrap();
                                    // Of what ended as cancelled an event tells.
                                    if matches!(then, Status::Completed | Status::Failed) {
                                        ends.push(token);
                                    }
                                }
                                other => ends.push(token(&other)),
                            }
                        }
                    }
                    ends
                })
            })
            .collect();
        let submitters: Vec<_> = (0..3)
            .map(|submitter| {
                let kind = &kind;
                scope.spawn(move || {
                    for number in 0..EACH {
                        let token = submitter * EACH + number;
                        let task = kind.task_pulled(token).key(token % 500);
                        let task = task.lane(Lane::ALL[token as usize % 4]).submit().unwrap();
                        if token.is_multiple_of(5) {
                            task.cancel();
                        }
                    }
                })
            })
            .collect();
        submitters.into_iter().for_each(|each| each.join().unwrap());
        assert!(workers.shutdown(Phases { drain: HOUR, ..Phases::default() }).drained);
        hosts.into_iter().flat_map(|host| host.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(ends.len() as u64, 3 * EACH);
    assert_eq!(ends.iter().collect::<HashSet<_>>().len() as u64, 3 * EACH);
    settled(&workers);
}

/// Goal: who waits for attempts hears that the pool has stopped, though no task was ever submitted, and whether the
/// worker pool was there before it stopped or not. Method: pulls that would wait for an hour.
#[test]
fn a_pull_hears_of_the_end_of_a_pool_without_tasks() {
    let _guard = hang_guard();
    let pool = pool(1);
    let before = WorkerPool::new(&pool);
    let other = before.clone();
    let waits = thread::spawn(move || other.pull(&mut Vec::new(), 1, HOUR));
    let _report = pool.shutdown(Duration::ZERO);
    let after = WorkerPool::new(&pool);
    let pulls = [waits.join().unwrap(), before.pull(&mut Vec::new(), 1, HOUR)];
    let pulls = pulls.into_iter().chain([after.pull(&mut Vec::new(), 1, HOUR)]);
    pulls.for_each(|pulled| assert!(matches!(pulled, Err(Error::ShutDown)), "{pulled:?}"));
}
