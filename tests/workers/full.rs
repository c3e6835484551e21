//! What is done with a task for which its lane has no room.

use super::common::{Gate, LONG, hang_guard, until};
use super::kit::{Notes, settled};
use paceline::task::{
    Attempt, Fault, OverloadPolicy, Retry, Status, TaskHandle, WorkerPool, WorkerPoolBuilder,
};
use paceline::{Lane, Pin, Pool, Rejected};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// A pool of one thread, which is inside a task, and whose lanes have room for `capacity` tasks.
struct Held {
    pool: Pool,
    workers: WorkerPool,
    gate: Gate,
    first: Option<TaskHandle<()>>,
}

impl Held {
    fn new(capacity: usize, set: impl FnOnce(WorkerPoolBuilder) -> WorkerPoolBuilder) -> Self {
        let pool = Pool::builder().threads(1).pin(Pin::None).lane_capacity(capacity);
        let pool = pool.build().unwrap();
        let workers = set(WorkerPool::builder(&pool)).build().unwrap();
        let gate = Gate::new();
        let inner = gate.clone();
        let first = workers.task("first", move |_: &Attempt<'_>| inner.wait()).submit().unwrap();
        gate.until_entered(1);
        Self { pool, workers, gate, first: Some(first) }
    }

    /// Tasks that are not dropped, until the lane is full.
    fn fill(&self, lane: Lane) -> Vec<TaskHandle<()>> {
        let kind = self.workers.task_type("filler").full(OverloadPolicy::Reject).build().unwrap();
        let filler = || kind.task(|_: &Attempt<'_>| ()).lane(lane).submit().ok();
        std::iter::from_fn(filler).collect()
    }

    fn open(&mut self) {
        self.gate.open();
        assert_eq!(self.first.take().unwrap().wait().unwrap().status, Status::Completed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.gate.open();
        if !thread::panicking() {
            settled(&self.workers);
        }
    }
}

#[test]
fn reject_gives_the_work_back() {
    let _guard = hang_guard();
    let held = Held::new(4, |builder| builder.full(OverloadPolicy::Reject));
    let filled = held.fill(Lane::Normal);
    assert_eq!(filled.len(), 4);
    let value = String::from("mine");
    let Err(Rejected::Full(mut work, _)) =
        held.workers.task("t", move |_: &Attempt<'_>| value.clone()).submit()
    else {
        panic!("there is no room")
    };
    // Another lane has room.
    let task = held.workers.task("t", move |attempt: &Attempt<'_>| work(attempt)).lane(Lane::High);
    let task = task.submit().unwrap();
    held.gate.open();
    assert_eq!(task.wait().unwrap().result.unwrap(), "mine");
    let stats = held.workers.stats().task_types;
    let of = |name: &str| stats.iter().find(|kind| kind.name == name).unwrap().rejected;
    assert_eq!((of("t"), of("filler")), (1, 1));
}

#[test]
fn wait_waits_for_its_time_and_no_longer() {
    let _guard = hang_guard();
    let held = Held::new(2, |builder| builder.full(OverloadPolicy::Wait(MS)));
    let filled = held.fill(Lane::Normal);
    let submit = |full: Option<OverloadPolicy>| {
        let task = held.workers.task("t", |_: &Attempt<'_>| ());
        match full {
            Some(full) => task.full(full).submit(),
            None => task.submit(),
        }
    };
    assert!(matches!(submit(None), Err(Rejected::Full(_, _))));
    thread::scope(|scope| {
        let waits = scope.spawn(|| submit(Some(OverloadPolicy::Wait(LONG))));
        let forever = scope.spawn(|| submit(Some(OverloadPolicy::Wait(Duration::MAX))));
        assert!(matches!(
            submit(Some(OverloadPolicy::Wait(Duration::ZERO))),
            Err(Rejected::Full(_, _))
        ));
        held.gate.open();
        for waiter in [waits, forever] {
            let task = waiter.join().unwrap().unwrap();
            assert_eq!(task.wait().unwrap().status, Status::Completed);
        }
    });
    drop(filled);
}

/// Goal: no thread of the pool waits for room, or runs anything on top of what it runs. Method: the only
/// thread fills its lane from inside.
#[test]
fn inside_the_pool_nothing_waits_and_nothing_runs_on_the_stack() {
    let _guard = hang_guard();
    let pool = Pool::builder().threads(1).pin(Pin::None).lane_capacity(2).build().unwrap();
    let workers = WorkerPool::new(&pool);
    let inside = workers.clone();
    let work = move |_: &Attempt<'_>| {
        let submit = |full| inside.task("in", |_: &Attempt<'_>| ()).full(full).submit();
        let taken: Vec<_> = std::iter::from_fn(|| submit(OverloadPolicy::Reject).ok()).collect();
        let refused = [
            OverloadPolicy::Wait(LONG),
            OverloadPolicy::Wait(Duration::MAX),
            OverloadPolicy::RunHere,
        ];
        let refused = refused.map(|full| matches!(submit(full), Err(Rejected::Full(_, _))));
        (taken.len(), refused.to_vec())
    };
    let report = workers.task("out", work).submit().unwrap().wait().unwrap();
    assert_eq!(report.result.unwrap(), (2, vec![true; 3]));
    settled(&workers);
}

#[test]
fn run_here_runs_the_first_attempt_in_the_submitters_thread() {
    let _guard = hang_guard();
    let held = Held::new(2, |builder| builder.full(OverloadPolicy::RunHere));
    let filled = held.fill(Lane::Normal);
    let threads = Arc::new(Mutex::new(Vec::new()));
    let inner = Arc::clone(&threads);
    let work = move |attempt: &Attempt<'_>| {
        inner.lock().unwrap().push(thread::current().id());
        match attempt.number() {
            1 => Err(Fault::new("once")),
            _ => Ok(()),
        }
    };
    let task = held.workers.task("here", work).retry(Retry::fixed(1, MS)).submit().unwrap();
    assert_eq!(task.status(), Status::Retrying);
    assert_eq!(*threads.lock().unwrap(), [thread::current().id()]);
    // It has a panic of its own, and no place among the threads.
    let panics = |_: &Attempt<'_>| -> u8 { super::common::quiet_panic("here") };
    let report = held.workers.task("panics", panics).submit().unwrap().wait().unwrap();
    assert_eq!((report.status, report.worker, report.attempts), (Status::Failed, None, 1));
    held.gate.open();
    let report = task.wait().unwrap();
    assert_eq!((report.status, report.attempts, report.worker), (Status::Completed, 2, Some(0)));
    assert_ne!(threads.lock().unwrap()[1], thread::current().id());
    drop(filled);
}

/// Goal: limits hold for what runs in the submitter's thread, though no thread of the pool is free to
/// run a timer. Method: the function waits for its token.
#[test]
fn what_runs_here_hears_of_its_time() {
    let _guard = hang_guard();
    let held = Held::new(2, |builder| builder.full(OverloadPolicy::RunHere));
    let filled = held.fill(Lane::Normal);
    let listens = |attempt: &Attempt<'_>| -> Result<(), Fault> {
        until("the end of its time", || attempt.is_cancelled());
        Err(Fault::new("too slow"))
    };
    let task = held.workers.task("attempt", listens).timeout(MS).submit().unwrap();
    assert_eq!(task.wait().unwrap().status, Status::TimedOut);
    let task = held.workers.task("overall", listens).deadline(MS).submit().unwrap();
    assert_eq!(task.wait().unwrap().status, Status::TimedOut);
    drop(filled);
}

/// A thread of one pool may run a task of another here: its own books and its own seat are not touched.
#[test]
fn run_here_on_a_thread_of_another_pool() {
    let _guard = hang_guard();
    let held = Held::new(2, |builder| builder.full(OverloadPolicy::RunHere));
    let filled = held.fill(Lane::Normal);
    let other = super::kit::pool(2);
    let others = WorkerPool::new(&other);
    let workers = held.workers.clone();
    let visits = move |_: &Attempt<'_>| {
        let fails = |_: &Attempt<'_>| -> Result<(), _> { Err(Fault::new("no")) };
        let report = workers.task("visitor", fails).submit().unwrap().wait().unwrap();
        assert_eq!((report.status, report.worker), (Status::Failed, None));
    };
    let report = others.task("host", visits).submit().unwrap().wait().unwrap();
    assert_eq!(report.status, Status::Completed);
    until("the books", || other.audit().in_flight == 0);
    assert_eq!((other.audit().completed, other.audit().failed), (1, 0));
    drop(filled);
}

fn droppable(
    held: &Held,
    lane: Lane,
    work: impl FnMut(&Attempt<'_>) + Send + 'static,
) -> Result<TaskHandle<()>, ()> {
    let task =
        held.workers.task("droppable", work).lane(lane).full(OverloadPolicy::DropOldest).submit();
    task.map_err(|rejected| assert!(matches!(rejected, Rejected::Full(_, _))))
}

#[test]
fn the_oldest_of_the_lowest_lane_is_dropped() {
    let _guard = hang_guard();
    let mut held = Held::new(64, |builder| builder.max_droppable(3));
    let notes = Notes::default();
    let submit = |held: &Held, lane, number| droppable(held, lane, notes.pen(number));
    let low = submit(&held, Lane::Low, 1).unwrap();
    let normal = submit(&held, Lane::Normal, 2).unwrap();
    let later = submit(&held, Lane::Low, 3).unwrap();
    let fourth = submit(&held, Lane::Normal, 4).unwrap();
    let report = low.wait().unwrap();
    assert_eq!((report.status, report.attempts), (Status::Rejected, 0));
    assert_eq!(report.result.unwrap_err().message(), "it was dropped to make room for others");
    let fifth = submit(&held, Lane::Normal, 5).unwrap();
    assert_eq!(later.wait().unwrap().status, Status::Rejected);
    let sixth = submit(&held, Lane::Normal, 6).unwrap();
    assert_eq!(normal.wait().unwrap().status, Status::Rejected);
    // Nobody is dropped for a lower lane.
    submit(&held, Lane::Low, 7).unwrap_err();
    let eighth = submit(&held, Lane::Critical, 8).unwrap();
    assert_eq!(fourth.wait().unwrap().status, Status::Rejected);
    held.open();
    for task in [fifth, sixth, eighth] {
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    assert_eq!(notes.take(), [8, 5, 6]);
    let audit = held.workers.audit();
    assert_eq!((audit.dropped, audit.rejected), (4, 1));
    // The tickets to spare do no harm, and no good.
    let task = submit(&held, Lane::Low, 9).unwrap();
    assert_eq!(task.wait().unwrap().status, Status::Completed);
    until("the tickets", || held.pool.audit().in_flight == 0);
}

#[test]
fn in_a_full_lane_only_those_are_dropped_who_agreed() {
    let _guard = hang_guard();
    let mut held = Held::new(4, |builder| builder);
    let notes = Notes::default();
    let first = droppable(&held, Lane::Normal, notes.pen(1)).unwrap();
    let filled = held.fill(Lane::Normal);
    assert_eq!(filled.len(), 3);
    let second = droppable(&held, Lane::Normal, notes.pen(2)).unwrap();
    assert_eq!(first.wait().unwrap().status, Status::Rejected);
    let full = held.fill(Lane::High);
    assert_eq!(full.len(), 4);
    droppable(&held, Lane::High, notes.pen(3)).unwrap_err();
    // What was cancelled makes room without being dropped.
    assert!(second.cancel());
    let third = droppable(&held, Lane::Normal, notes.pen(4)).unwrap();
    held.open();
    for task in filled.into_iter().chain(full).chain([third]) {
        assert_eq!(task.wait().unwrap().status, Status::Completed);
    }
    assert_eq!(notes.take(), [4]);
    assert_eq!(second.wait().unwrap().status, Status::Cancelled);
    assert_eq!(held.workers.audit().dropped, 1);
}

#[test]
fn the_pools_end_cancels_what_may_be_dropped() {
    let _guard = hang_guard();
    let held = Held::new(8, |builder| builder.full(OverloadPolicy::DropOldest).max_droppable(2));
    let tasks: Vec<_> =
        (0..5).map(|_| held.workers.task("d", |_: &Attempt<'_>| ()).submit().unwrap()).collect();
    let _report = held.pool.shutdown(Duration::ZERO);
    let statuses: Vec<_> = tasks.into_iter().map(|task| task.wait().unwrap().status).collect();
    use Status::{Cancelled, Rejected};
    assert_eq!(statuses, [Rejected, Rejected, Rejected, Cancelled, Cancelled]);
}

#[test]
fn a_task_with_a_key_has_the_policy_when_it_goes_at_once() {
    let _guard = hang_guard();
    let held = Held::new(2, |builder| builder);
    let filled = held.fill(Lane::Normal);
    let keyed = |full| held.workers.task("keyed", |_: &Attempt<'_>| ()).key(7).full(full).submit();
    assert!(matches!(keyed(OverloadPolicy::Reject), Err(Rejected::Full(_, _))));
    assert!(matches!(keyed(OverloadPolicy::DropOldest), Err(Rejected::Full(_, _))));
    let task = keyed(OverloadPolicy::RunHere).unwrap();
    assert_eq!(task.wait().unwrap().worker, None);
    drop(filled);
}

#[test]
fn what_is_posted_has_the_policy_of_its_kind() {
    let _guard = hang_guard();
    let held = Held::new(2, |builder| builder.full(OverloadPolicy::DropOldest));
    let filled = held.fill(Lane::Normal);
    let workers = &held.workers;
    let kind = |name: &str, full| workers.task_type(name).full(full).build().unwrap();
    for full in [OverloadPolicy::Reject, OverloadPolicy::DropOldest, OverloadPolicy::Wait(MS)] {
        let name = format!("{full:?}");
        let refused = kind(&name, full).post(|| ());
        assert!(matches!(refused, Err(Rejected::Full(_, _))), "{full:?}");
    }
    let (here, there) = (thread::current().id(), Arc::new(Mutex::new(None)));
    let inner = Arc::clone(&there);
    let note = move || *inner.lock().unwrap() = Some(thread::current().id());
    kind("here", OverloadPolicy::RunHere).post(note).unwrap();
    assert_eq!(*there.lock().unwrap(), Some(here));
    drop(filled);
}

#[test]
fn how_many_may_be_dropped_has_a_range() {
    let _guard = hang_guard();
    let pool = super::kit::pool(1);
    let build = |most| WorkerPool::builder(&pool).max_droppable(most).build();
    assert!(build(1).is_ok());
    let wrong = build(0).unwrap_err().to_string();
    assert_eq!(wrong, "max_droppable is 0, but must be 1 to 16777216");
}
