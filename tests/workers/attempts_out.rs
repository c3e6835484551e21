//! Tasks whose attempts a host takes from a completion queue.

use super::common::{Gate, hang_guard, until};
use super::kit::{Host, Stage, pool, settled, small_stage, use_up_timers};
use paceline::cq::{CompletionQueue, EntryKind, OpenAttempt};
use paceline::task::{Fault, Phases, Retry, Status, WorkerPool};
use paceline::{Error, Lane, Rejected};
use std::collections::HashSet;
use std::thread;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// What the task is then. None: the attempt is stale.
fn complete(attempt: OpenAttempt, result: Result<(), Fault>) -> Option<Status> {
    match attempt.complete(result) {
        Ok(status) => Some(status),
        Err(Error::Stale { what: "attempt" }) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn an_attempt_comes_and_is_completed() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let host = Host::of(&workers);
    let kind = workers.task_type("plain").build().unwrap();
    let task = kind.task_tagged(42).submit().unwrap();
    assert_eq!(task.status(), Status::Pending);
    let (tag, attempt) = host.attempts().remove(0);
    assert_eq!((tag, attempt.task(), attempt.number()), (42, task.id(), 1));
    assert_eq!((task.status(), kind.stats().running), (Status::Running, 1));
    assert!(!attempt.is_cancelled().unwrap());
    assert_eq!(complete(attempt, Ok(())), Some(Status::Completed));
    assert_eq!(kind.stats().running, 0);
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.attempts, report.worker), (Status::Completed, 1, None));
    assert_eq!(host.ends(), [], "its end was the answer to its completion");
    settled(&workers);
}

/// A host that forgets an attempt has failed.
#[test]
fn one_that_is_dropped_has_failed() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let host = Host::of(&workers);
    let kind = workers.task_type("dropped").build().unwrap();
    let task = kind.task_tagged(1).submit().unwrap();
    drop(host.one());
    let report = task.wait().unwrap();
    assert_eq!(report.status, Status::Failed);
    let reason = report.result.unwrap_err().to_string();
    assert_eq!(reason, "nobody has completed the attempt that a completion queue brought");
    settled(&workers);
}

#[test]
fn what_failed_comes_again_until_its_attempts_are_used_up() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let host = Host::of(&stage.workers);
    let retry = Retry::fixed(2, HOUR);
    let kind = stage.workers.task_type("again").retry(retry).build().unwrap();
    let task = kind.task_tagged(1).submit().unwrap();
    for (number, then) in [(1, Status::Retrying), (2, Status::Retrying), (3, Status::Failed)] {
        let attempt = host.one();
        assert_eq!(attempt.number(), number);
        assert_eq!(complete(attempt, Err(Fault::new("not yet"))), Some(then));
        assert_eq!(host.ends(), []);
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
    let host = Host::of(&workers);
    let kind = workers.task_type("lanes").build().unwrap();
    for tag in 0..256 {
        let lane = Lane::ALL[tag as usize % 4];
        drop(kind.task_tagged(tag).lane(lane).submit().unwrap());
    }
    let tags: Vec<_> = host.attempts().iter().map(|&(tag, _)| tag).collect();
    let of = |lane| tags.iter().filter(move |&&tag| tag % 4 == lane).copied();
    for lane in 0..4 {
        assert!(of(lane).is_sorted(), "in order within a lane");
    }
    let first: Vec<_> = tags[..64].iter().map(|tag| tag % 4).collect();
    let counts = [0, 1, 2, 3].map(|lane| first.iter().filter(|&&of| of == lane).count());
    assert_eq!(counts, [32, 18, 10, 4]);
}

#[test]
fn what_was_cancelled_never_comes_but_its_end_does() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let host = Host::of(&workers);
    let kind = workers.task_type("cancelled").build().unwrap();
    let task = kind.task_tagged(5).submit().unwrap();
    assert!(task.cancel());
    let end = (5, task.id(), Status::Cancelled);
    assert_eq!(host.ends(), [end]);
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
    let host = Host::of(&workers);
    let kind = workers.task_type("rejected").build().unwrap();
    let out = kind.task_tagged(1).submit().unwrap();
    let attempt = host.one();
    let waits = kind.task_tagged(2).submit().unwrap();
    assert!(waits.reject());
    assert!(!waits.reject() && !waits.cancel(), "it has ended");
    let end = (2, waits.id(), Status::Rejected);
    assert_eq!(host.ends(), [end]);
    let report = waits.wait().unwrap();
    assert_eq!(report.status, Status::Rejected);
    assert_eq!(report.result.unwrap_err().message(), "it was dropped to make room for others");
    assert!(!out.reject(), "it runs");
    assert!(!attempt.is_cancelled().unwrap(), "and is not asked");
    assert_eq!(complete(attempt, Ok(())), Some(Status::Completed));
    assert!(!out.reject());
    assert_eq!(kind.stats().dropped, 1);
    settled(&workers);
}

#[test]
fn one_that_is_out_is_asked_and_its_answer_counts() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let host = Host::of(&workers);
    let kind = workers.task_type("asked").retry(Retry::fixed(9, MS)).build().unwrap();
    for (result, then) in
        [(Err(Fault::new("gave up")), Status::Cancelled), (Ok(()), Status::Completed)]
    {
        let task = kind.task_tagged(5).submit().unwrap();
        let attempt = host.one();
        assert!(!task.cancel(), "it runs");
        assert!(attempt.is_cancelled().unwrap());
        assert_eq!(complete(attempt, result), Some(then));
        assert_eq!(task.wait().unwrap().status, then);
        host.ends();
    }
    settled(&workers);
}

#[test]
fn a_time_out_ends_it_though_its_host_does_not_come_back() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let host = Host::of(&stage.workers);
    let kind = stage.workers.task_type("late").timeout(HOUR).build().unwrap();
    let task = kind.task_tagged(6).submit().unwrap();
    let attempt = host.one();
    stage.pass(HOUR / 2);
    attempt.heartbeat().unwrap();
    stage.pass(HOUR / 2 + MS);
    assert_eq!(task.status(), Status::Running, "it gave a sign of life");
    stage.pass(HOUR);
    assert_eq!(task.status(), Status::TimedOut);
    assert!(attempt.is_cancelled().unwrap());
    let end = (6, task.id(), Status::TimedOut);
    assert_eq!(host.ends(), [end]);
    assert_eq!(complete(attempt, Ok(())), None);
    assert_eq!(task.wait().unwrap().status, Status::TimedOut);
    settled(&stage.workers);
}

/// Goal: an attempt whose host is gone does not hang for ever. Method: one that is silent for its lease, by the
/// test's clock, is followed by another, and the last by an end that is told; what the first host says is stale.
#[test]
fn a_host_that_is_silent_for_its_lease_has_failed() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let host = Host::of(&stage.workers);
    let kind = stage.workers.task_type("leased").lease(HOUR).retry(Retry::fixed(1, Duration::ZERO));
    let kind = kind.max_running(1).build().unwrap();
    let task = kind.task_tagged(6).key("account 7").submit().unwrap();
    let gone = host.one();
    stage.pass(HOUR - MS);
    gone.heartbeat().unwrap();
    stage.pass(HOUR - MS);
    assert_eq!((task.status(), host.ends()), (Status::Running, vec![]));
    stage.pass(2 * MS);
    let next = host.one();
    assert_eq!((next.number(), kind.stats().retried, kind.stats().running), (2, 1, 1));
    assert!(gone.heartbeat().is_err() && gone.is_cancelled().is_err());
    assert_eq!(complete(gone, Ok(())), None);
    stage.pass(HOUR + MS);
    let end = (6, task.id(), Status::Failed);
    assert_eq!(host.ends(), [end]);
    assert_eq!(complete(next, Ok(())), None);
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
    let host = Host::of(&stage.workers);
    let leased = stage.workers.task_type("leased").lease(HOUR).build().unwrap();
    let free = stage.workers.task_type("free").build().unwrap();
    let task = leased.task_tagged(1).submit().unwrap();
    let attempt = host.one();
    let waits = free.task_tagged(2).submit().unwrap();
    let patient = host.one();
    stage.pass(HOUR - MS);
    assert_eq!(complete(attempt, Ok(())), Some(Status::Completed));
    stage.pass(100 * HOUR);
    assert_eq!((task.status(), waits.status()), (Status::Completed, Status::Running));
    assert_eq!(host.ends(), []);
    assert_eq!(complete(patient, Ok(())), Some(Status::Completed));
    settled(&stage.workers);
}

/// A task that has ended otherwise is told of once, and its key is free when its host counts as gone.
#[test]
fn a_lease_frees_the_key_of_a_task_that_has_ended() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let host = Host::of(&stage.workers);
    let kind = stage.workers.task_type("leased").lease(2 * HOUR).timeout(HOUR).build().unwrap();
    let lost = kind.task_tagged(1).key(7).submit().unwrap();
    let attempt = host.one();
    let next = kind.task_tagged(2).key(7).submit().unwrap();
    stage.pass(HOUR + 100 * MS);
    let end = (1, lost.id(), Status::TimedOut);
    assert_eq!((host.ends(), next.status()), (vec![end], Status::Pending));
    stage.pass(HOUR);
    let second = host.one();
    assert_eq!(complete(attempt, Ok(())), None);
    assert_eq!(complete(second, Ok(())), Some(Status::Completed));
    settled(&stage.workers);
}

/// Goal: a lease is kept though every timer is in use when the attempt comes, and every place of the low
/// lane; and so again when timers were free meanwhile. Method: three attempts; one is completed, one gives a
/// sign of life, and one is silent.
#[test]
fn a_lease_needs_no_free_timer() {
    let _guard = hang_guard();
    let stage = small_stage();
    let host = Host::of(&stage.workers);
    let (pool, workers) = (&stage.pool, &stage.workers);
    let kind = workers.task_type("leased").lease(HOUR).build().unwrap();
    for _ in 0..2 {
        let tasks = [0, 1, 2].map(|tag| kind.task_tagged(tag).submit().unwrap());
        let end = |at: usize| (at as u64, tasks[at].id(), Status::Failed);
        let timers = use_up_timers(pool);
        let gate = Gate::new();
        let inner = gate.clone();
        pool.lane(Lane::Critical).post(move || inner.wait()).unwrap();
        gate.until_entered(1);
        while pool.lane(Lane::Low).try_post(|| ()).is_ok() {}
        let [first, second, silent] = host.some();
        gate.open();
        stage.pass(HOUR - MS);
        assert_eq!(complete(first, Ok(())), Some(Status::Completed));
        second.heartbeat().unwrap();
        stage.pass(100 * MS);
        let seen = [0, 1, 2].map(|at: usize| tasks[at].status());
        assert_eq!(seen, [Status::Completed, Status::Running, Status::Failed]);
        assert_eq!(host.ends(), [end(2)]);
        // From now on it has a timer of its own.
        timers.iter().for_each(|timer| assert!(timer.cancel()));
        stage.pass(200 * MS);
        stage.pass(HOUR - 299 * MS);
        assert_eq!((host.ends(), tasks[1].status()), (vec![end(1)], Status::Failed));
        assert_eq!([second, silent].map(|late| complete(late, Ok(()))), [None, None]);
    }
    settled(workers);
}

/// Goal: an attempt's time is kept though every timer is in use when it comes, and nobody waits for its task; and
/// so is the rest of it when a timer is free meanwhile. Method: three attempts; one is completed in time, one may take
/// longer, and one not.
#[test]
fn a_limit_needs_no_free_timer() {
    let _guard = hang_guard();
    let stage = small_stage();
    let host = Host::of(&stage.workers);
    let (pool, workers) = (&stage.pool, &stage.workers);
    let kind = workers.task_type("limited").timeout(HOUR).build().unwrap();
    for _ in 0..2 {
        let limits = [HOUR, 2 * HOUR, HOUR];
        let tasks = [0, 1, 2]
            .map(|tag: usize| kind.task_tagged(tag as u64).timeout(limits[tag]).submit().unwrap());
        let status = || [0, 1, 2].map(|at: usize| tasks[at].status());
        let end = |at: usize| (at as u64, tasks[at].id(), Status::TimedOut);
        let timers = use_up_timers(pool);
        let [first, late, later] = host.some();
        stage.pass(HOUR - MS);
        assert_eq!(complete(first, Ok(())), Some(Status::Completed));
        assert_eq!(status(), [Status::Completed, Status::Running, Status::Running]);
        stage.pass(200 * MS);
        assert_eq!(status(), [Status::Completed, Status::Running, Status::TimedOut]);
        assert_eq!(host.ends(), [end(2)]);
        // From now on it has a timer of its own.
        timers.iter().for_each(|timer| assert!(timer.cancel()));
        stage.pass(200 * MS);
        stage.pass(HOUR);
        assert_eq!((host.ends(), tasks[1].status()), (vec![end(1)], Status::TimedOut));
        assert_eq!([late, later].map(|late| complete(late, Ok(()))), [None, None]);
    }
    settled(workers);
}

/// Who is refused since every handle is in use is not refused for ever.
#[test]
fn the_first_task_may_come_when_handles_are_free() {
    let _guard = hang_guard();
    let stage = small_stage();
    let host = Host::of(&stage.workers);
    let kind = stage.workers.task_type("first").build().unwrap();
    let timers = use_up_timers(&stage.pool);
    let refused = kind.task_tagged(1).submit().unwrap_err();
    assert!(matches!(refused, Rejected::Full(_, _)), "{refused:?}");
    timers.iter().for_each(|timer| assert!(timer.cancel()));
    stage.settle();
    let task = kind.task_tagged(2).submit().unwrap();
    let attempt = host.one();
    assert_eq!(complete(attempt, Ok(())), Some(Status::Completed));
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
    let host = Host::of(&stage.workers);
    let kind = stage.workers.task_type("soft").soft_timeout(HOUR).build().unwrap();
    let task = kind.task_tagged(6).submit().unwrap();
    let attempt = host.one();
    assert!(!attempt.is_cancelled().unwrap());
    stage.pass(2 * HOUR);
    assert!(attempt.is_cancelled().unwrap());
    assert_eq!(task.status(), Status::Running);
    assert_eq!(complete(attempt, Ok(())), Some(Status::Completed));
    settled(&stage.workers);
}

#[test]
fn a_late_attempt_is_not_overlapped_by_its_retry() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let host = Host::of(&stage.workers);
    let retry = Retry::fixed(1, Duration::ZERO);
    let kind = stage.workers.task_type("slow").timeout(HOUR).retry(retry).build().unwrap();
    let task = kind.task_tagged(6).submit().unwrap();
    let attempt = host.one();
    // Less than the grace of an attempt that may be followed by another.
    stage.pass(HOUR + 500 * MS);
    assert_eq!((task.status(), host.ends()), (Status::Running, vec![]));
    until("it is asked", || attempt.is_cancelled().unwrap());
    let failed = Err(Fault::new("too slow"));
    assert_eq!(complete(attempt, failed), Some(Status::Retrying));
    let next = host.one();
    assert_eq!(next.number(), 2);
    assert_eq!(complete(next, Ok(())), Some(Status::Completed));
    assert_eq!(task.wait().unwrap().attempts, 2);
    settled(&stage.workers);
}

#[test]
fn tasks_of_a_key_are_out_one_at_a_time_and_in_order() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let host = Host::of(&workers);
    let kind = workers.task_type("keyed").build().unwrap();
    for tag in 0..20 {
        drop(kind.task_tagged(tag).key("account 7").submit().unwrap());
    }
    for tag in 0..20 {
        let (seen, attempt) = host.attempts().remove(0);
        assert_eq!(seen, tag);
        attempt.complete(Ok(())).unwrap();
    }
    settled(&workers);
}

#[test]
fn no_more_are_out_than_may_run() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let host = Host::of(&workers);
    let kind = workers.task_type("bounded").max_running(2).build().unwrap();
    for tag in 0..6 {
        drop(kind.task_tagged(tag).submit().unwrap());
    }
    let (mut out, mut seen) = (Vec::new(), Vec::new());
    for done in 0..6 {
        for (tag, attempt) in host.attempts() {
            out.push(attempt);
            seen.push(tag);
        }
        assert_eq!((out.len(), kind.stats().running), (2.min(6 - done), 2.min(6 - done as u64)));
        out.remove(0).complete(Ok(())).unwrap();
    }
    assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
    settled(&workers);
}

/// Goal: one that ends after it was let go gives its place back once. Method: it is cancelled where it waits to
/// be taken; the next comes out in its place, and no other with it.
#[test]
fn the_place_of_one_that_was_let_go_is_given_back_once() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let host = Host::of(&workers);
    let kind = workers.task_type("bounded").max_running(1).build().unwrap();
    let tasks: Vec<_> = (0..5).map(|tag| kind.task_tagged(tag).submit().unwrap()).collect();
    let first = host.one();
    // The others come to the gate.
    assert_eq!((host.ends(), kind.stats().waiting), (vec![], 4));
    assert_eq!(complete(first, Ok(())), Some(Status::Completed));
    assert!(tasks[1].cancel());
    for tag in 2..5 {
        let (mut out, _ends) = host.all();
        assert_eq!(out.len(), 1, "{out:?}");
        let (seen, attempt) = out.remove(0);
        assert_eq!(seen, tag);
        assert_eq!(complete(attempt, Ok(())), Some(Status::Completed));
    }
    settled(&workers);
}

/// Goal: an attempt whose host does not come back has no place once its task has ended, and gives none
/// back when the host comes after all. Method: both places are out when their time is over.
#[test]
fn the_place_of_one_that_is_abandoned_is_free() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let host = Host::of(&stage.workers);
    let kind = stage.workers.task_type("abandoned").max_running(2).timeout(HOUR).build().unwrap();
    for tag in 0..6 {
        drop(kind.task_tagged(tag).submit().unwrap());
    }
    let lost = host.attempts();
    assert_eq!(
        (lost.iter().map(|&(tag, _)| tag).collect::<Vec<_>>(), kind.stats().waiting),
        (vec![0, 1], 4)
    );
    stage.pass(HOUR + HOUR);
    let (out, ends) = host.all();
    assert_eq!(out.iter().map(|&(tag, _)| tag).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(ends.len(), 2);
    for (_, attempt) in lost {
        assert_eq!(complete(attempt, Ok(())), None);
    }
    assert_eq!(host.ends(), [], "a place was given back twice");
    for (_, attempt) in out {
        assert_eq!(complete(attempt, Ok(())), Some(Status::Completed));
        assert_eq!(complete(host.one(), Ok(())), Some(Status::Completed));
    }
    settled(&stage.workers);
}

#[test]
fn a_time_in_the_queue_is_over_though_nobody_comes() {
    let _guard = hang_guard();
    let stage = Stage::new();
    let host = Host::of(&stage.workers);
    let kind = stage.workers.task_type("forgotten").build().unwrap();
    let task = kind.task_tagged(7).queue_timeout(HOUR).delay(HOUR).submit().unwrap();
    stage.pass(HOUR + MS);
    assert_eq!(task.status(), Status::Pending);
    stage.pass(2 * HOUR);
    assert_eq!(task.status(), Status::TimedOut);
    assert_eq!(host.ends(), [(7, task.id(), Status::TimedOut)]);
    settled(&stage.workers);
}

#[test]
fn full_gives_the_task_back() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::builder(&pool).max_queued(2).build().unwrap();
    let host = Host::of(&workers);
    let kind = workers.task_type("many").build().unwrap();
    let _two = [1, 2].map(|tag| kind.task_tagged(tag).submit().unwrap());
    match kind.task_tagged(3).submit() {
        Err(Rejected::Full(task, _)) => assert_eq!(task.tag(), 3),
        other => panic!("{other:?}"),
    }
    let _out = host.attempts();
    let _third = kind.task_tagged(3).submit().unwrap();
    assert_eq!(kind.stats().rejected, 1);
}

#[test]
fn a_shutdown_waits_for_hosts_and_ends_what_nobody_takes() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let host = Host::of(&workers);
    let kind = workers.task_type("last").build().unwrap();
    let tasks: Vec<_> = (0..100).map(|tag| kind.task_tagged(tag).submit().unwrap()).collect();
    let completes = thread::spawn(move || {
        let mut done = 0;
        host.until_ended(|_, kind| {
            let EntryKind::Attempt(attempt) = kind else { panic!("{kind:?}") };
            attempt.complete(Ok(())).unwrap();
            done += 1;
        });
        done
    });
    let report = workers.shutdown(Phases::default());
    assert!(report.drained && report.stuck.is_empty() && report.cancelled.is_empty());
    assert_eq!(completes.join().unwrap(), 100);
    assert!(tasks.iter().all(|task| task.status() == Status::Completed));
    assert!(matches!(kind.task_tagged(1).submit(), Err(Rejected::ShutDown(_))));

    let workers = WorkerPool::new(&pool);
    let host = Host::of(&workers);
    let kind = workers.task_type("left").build().unwrap();
    let out = kind.task_tagged(1).submit().unwrap();
    let attempt = host.one();
    let left = kind.task_tagged(2).submit().unwrap();
    let report = workers.shutdown(Phases { drain: MS, stop: MS, clean_up: MS });
    assert_eq!(report.cancelled, ["left"]);
    assert_eq!(report.stuck, [("left".to_owned(), None)]);
    assert_eq!((left.status(), out.status()), (Status::Cancelled, Status::Running));
    assert!(attempt.is_cancelled().unwrap());
    assert_eq!(complete(attempt, Err(Fault::new("gave up"))), Some(Status::Cancelled));
    let mut ended = HashSet::new();
    host.until_ended(|tag, kind| {
        assert!(matches!(kind, EntryKind::TaskEnded { status: Status::Cancelled, .. }), "{kind:?}");
        ended.insert(tag);
    });
    assert_eq!(ended, HashSet::from([1, 2]));
    settled(&workers);
}

#[test]
fn a_pool_that_stops_ends_what_waits() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let host = Host::of(&workers);
    let kind = workers.task_type("orphan").build().unwrap();
    let out = kind.task_tagged(1).submit().unwrap();
    let attempt = host.one();
    let left = kind.task_tagged(2).submit().unwrap();
    let _ = pool.shutdown(Duration::ZERO);
    until("the end of what waits", || left.status() == Status::Cancelled);
    assert_eq!(complete(attempt, Ok(())), Some(Status::Completed));
    assert_eq!(out.wait().unwrap().status, Status::Completed);
    let mut ended = Vec::new();
    host.until_ended(|tag, _| ended.push(tag));
    assert_eq!(ended, [2]);
    assert!(matches!(kind.task_tagged(3).submit(), Err(Rejected::ShutDown(_))));
    settled(&workers);
}

#[test]
fn what_is_out_when_all_is_gone_has_failed() {
    let _guard = hang_guard();
    let pool = pool(1);
    let workers = WorkerPool::new(&pool);
    let host = Host::of(&workers);
    let kind = workers.task_type("lost").retry(Retry::fixed(9, HOUR)).build().unwrap();
    let out = kind.task_tagged(1).submit().unwrap();
    let attempt = host.one();
    drop((host, pool));
    drop((kind, workers.clone()));
    assert_eq!(out.status(), Status::Running);
    drop(workers);
    let report = out.wait().unwrap();
    assert_eq!(report.status, Status::Failed);
    let reason = report.result.unwrap_err().to_string();
    assert_eq!(reason, "its worker pool is gone, and nobody has completed the attempt");
    assert_eq!(complete(attempt, Ok(())), None);
}

/// Goal: every task ends once, whoever submits, takes, completes and cancels meanwhile. Method: three
/// threads of each; hosts fail some attempts, and complete others on another thread.
#[test]
fn many_hosts_and_submitters_lose_nothing() {
    const EACH: u64 = 4000;
    let _guard = hang_guard();
    let pool = pool(2);
    let workers = WorkerPool::new(&pool);
    let host = Host::of(&workers);
    let retry = Retry::fixed(3, Duration::ZERO);
    let kind = workers.task_type("crowd").retry(retry).build().unwrap();
    let ends = thread::scope(|scope| {
        let hosts: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut ends = Vec::new();
                    host.until_ended(|tag, kind| match kind {
                        EntryKind::Attempt(attempt) => {
                            let fails = tag % 7 >= u64::from(attempt.number());
                            let said = if fails { Err(Fault::new("again")) } else { Ok(()) };
                            let then = attempt.complete(said).unwrap();
                            // Of what ended as cancelled an entry tells.
                            if matches!(then, Status::Completed | Status::Failed) {
                                ends.push(tag);
                            }
                        }
                        _ => ends.push(tag),
                    });
                    ends
                })
            })
            .collect();
        let submitters: Vec<_> = (0..3)
            .map(|submitter| {
                let kind = &kind;
                scope.spawn(move || {
                    for number in 0..EACH {
                        let tag = submitter * EACH + number;
                        let task = kind.task_tagged(tag).key(tag % 500);
                        let task = task.lane(Lane::ALL[tag as usize % 4]).submit().unwrap();
                        if tag.is_multiple_of(5) {
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
/// worker pool was there before it stopped or not. Method: waits of an hour.
#[test]
fn a_host_hears_of_the_end_of_a_pool_without_tasks() {
    let _guard = hang_guard();
    let pool = pool(1);
    let before = Host::of(&WorkerPool::new(&pool));
    let after = CompletionQueue::new(&pool).unwrap();
    let waits = thread::spawn(move || before.until_ended(|_, kind| panic!("{kind:?}")));
    let _report = pool.shutdown(Duration::ZERO);
    waits.join().unwrap();
    let workers = WorkerPool::new(&pool);
    after.workers(&workers, 1).unwrap();
    Host(after).until_ended(|_, kind| panic!("{kind:?}"));
}
